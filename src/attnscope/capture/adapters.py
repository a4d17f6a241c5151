"""Adapters of PEFT (LoRA and its kin): a model with one applied, from an object or a folder. Only here is peft used."""

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import transformers
from safetensors import SafetensorError, safe_open
from transformers import PreTrainedModel

from ..errors import BadInput

CONFIGURATION = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"
CLASSES = {
    "CAUSAL_LM": "AutoModelForCausalLM",
    "SEQ_CLS": "AutoModelForSequenceClassification",
    "SEQ_2_SEQ_LM": "AutoModelForSeq2SeqLM",
    "FEATURE_EXTRACTION": "AutoModel",
}
"""What the base is loaded as, for each task that an adapter names."""
NEW_HEADS = ("classifier", "score")
"""What an adapter for classification saves of its own accord: the head that was trained with it."""


@dataclass(frozen=True)
class Adapter:
    """A folder with an adapter, and what it says of the model that it belongs to."""

    folder: Path
    settings: Mapping[str, Any]

    @property
    def base(self) -> str:
        """The name or folder of the model below."""
        base = self.settings.get("base_model_name_or_path")
        if not isinstance(base, str) or not base:
            raise BadInput(f"{CONFIGURATION} in {self.folder} does not name the model that it belongs to.")
        return base

    @property
    def kind(self) -> Any:
        """The class that the base is loaded with, or None where the base itself says it."""
        task = self.settings.get("task_type")
        return getattr(transformers, CLASSES[task]) if task in CLASSES else None

    @property
    def own_modules(self) -> tuple[str, ...]:
        """Modules that the adapter brings whole, so that the base need not have them."""
        saved = self.settings.get("modules_to_save") or ()
        return (*saved, *(NEW_HEADS if self.settings.get("task_type") == "SEQ_CLS" else ()))

    @cached_property
    def shapes(self) -> dict[str, list[int]]:
        """The names and shapes of the weights in its file."""
        file = self.folder / WEIGHTS
        if not file.is_file():
            raise BadInput(f"The adapter {self.folder} has no {WEIGHTS}: save it with safe_serialization=True.")
        try:
            with safe_open(file, framework="pt") as weights:
                return {key: weights.get_slice(key).get_shape() for key in weights.keys()}  # noqa: SIM118
        except SafetensorError:
            raise BadInput(f"{WEIGHTS} in {self.folder} is damaged: save the adapter again.") from None

    @property
    def config_options(self) -> dict[str, Any]:
        """What the base's configuration cannot know: how many classes the adapter's head tells apart."""
        if self.settings.get("task_type") != "SEQ_CLS":
            return {}
        heads = [
            shape[0] for key, shape in self.shapes.items() if len(shape) > 1 and set(key.split(".")) & {*NEW_HEADS}
        ]
        return {"num_labels": min(heads)} if heads else {}


def adapter_in(name: str) -> Adapter | None:
    """The adapter in a local folder, if that is what it holds."""
    file = Path(name) / CONFIGURATION
    if not file.is_file():
        return None
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        settings = None
    if not isinstance(settings, dict):
        raise BadInput(f"{CONFIGURATION} in {name} is no JSON object, so it describes no adapter.")
    return Adapter(Path(name), settings)


def with_adapter(model: PreTrainedModel, adapter: Adapter) -> PreTrainedModel:
    """The model with the adapter's layers in it; every weight of the adapter comes from its file."""
    try:
        from peft import PeftModel, get_peft_model_state_dict
    except ImportError as error:
        raise BadInput("An adapter needs peft: pip install 'attnscope[peft]'.") from error
    held = set(adapter.shapes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of missing weights, which are refused below
        adapted = PeftModel.from_pretrained(model, adapter.folder)
    missing = sorted(set(get_peft_model_state_dict(adapted)) - held)
    if missing:
        raise BadInput(
            f"The file of the adapter {adapter.folder} lacks {len(missing)} weights ({missing[0]} is the first), which"
            " would be random numbers: save the adapter again."
        )
    below: PreTrainedModel = without_wrapper(adapted)
    return below


def without_wrapper(model: Any) -> Any:
    """The Hugging Face model inside what torch.compile or PEFT wrap around it; adapters are layers of that model."""
    model = getattr(model, "_orig_mod", model)
    if isinstance(model, PreTrainedModel) or not hasattr(model, "get_base_model"):
        return model
    if any(getattr(settings, "is_prompt_learning", False) for settings in model.peft_config.values()):
        raise BadInput(
            f"{type(model).__name__} has learned prompts, which are no tokens and cannot be recorded: merge an adapter"
            " of another kind (LoRA, IA3), or give the model without it."
        )
    return model.get_base_model()
