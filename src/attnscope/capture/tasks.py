"""What a model is for, told from its class, since `config.architectures` may be missing."""

from typing import Literal, get_args

from transformers import PreTrainedModel

from ..errors import BadInput
from .stacks import is_decoder_only

Task = Literal["classifier", "masked_lm", "causal_lm", "encoder", "encoder_decoder"]
CLASS_NAME_ENDINGS: dict[str, Task] = {
    "ForSequenceClassification": "classifier",
    "ForImageClassification": "classifier",
    "ForImageClassificationWithTeacher": "classifier",
    "ForAudioClassification": "classifier",
    "ForVideoClassification": "classifier",
    "ForMaskedLM": "masked_lm",
    "ForPreTraining": "masked_lm",
    "ForCausalLM": "causal_lm",
    "LMHeadModel": "causal_lm",
    "ForConditionalGeneration": "encoder_decoder",
    "MTModel": "encoder_decoder",
}


def task_of(model: PreTrainedModel) -> Task:
    """The task of a model; `encoder` is any model without a head that answers, also a headless decoder."""
    for kind in type(model).__mro__:
        for ending, task in CLASS_NAME_ENDINGS.items():
            if kind.__name__.endswith(ending):
                return _as_it_answers(model, task)
    return "encoder_decoder" if model.config.is_encoder_decoder else "encoder"


def _as_it_answers(model: PreTrainedModel, task: Task) -> Task:
    """The task a class name promises, as far as the model keeps it: some heads tell something else than tokens."""
    if task == "masked_lm" and model.get_output_embeddings() is None:
        return "encoder"  # ELECTRA's discriminator tells replaced tokens
    if task == "causal_lm" and not is_decoder_only(model):
        return "masked_lm"  # XLMWithLMHeadModel, BertLMHeadModel used as an encoder
    if task == "encoder_decoder" and not model.config.is_encoder_decoder:
        return "causal_lm"  # Gemma3ForConditionalGeneration: text is generated from images and text
    return task


def checked_task(task: str) -> Task:
    """A task named by the user."""
    for known in get_args(Task):
        if task == known:
            return known  # type: ignore[no-any-return]
    raise BadInput(f"There is no task {task!r}: choose one of {', '.join(get_args(Task))}.")
