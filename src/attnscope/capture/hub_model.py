"""A Hugging Face model with all that was found out about it: how it is fed, where its answer is read, what it says."""

import inspect
import secrets
import threading
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import (
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    StoppingCriteria,
    StoppingCriteriaList,
)

from ..errors import BadInput
from ..progress import tell, tell_text
from ..record.attention import Stack
from .answers import distribution, position_read, prediction_of, probabilities_of
from .encoding import Encoded, Passage, encode_ids, pad_rows
from .families import PROMPT_TYPES, WITHOUT_PADDING, Pooling, Task, has_two_towers, is_decoder_only, longest_input
from .watching import evaluation_mode

GREEDY_TOKENS = 128
"""How far a decoder goes on by itself where the user gives no target text."""
GREEDY = {"do_sample": False, "num_beams": 1}
ONE_SEQUENCE = frozenset(
    {"num_return_sequences", "return_dict_in_generate", "output_scores", "output_logits", "output_attentions"}
    | {"output_hidden_states", "max_length", "max_new_tokens"}
)
"""What would change the form of the output, or how long it is said to be."""
Ids = Mapping[str, Int[Tensor, " _"]]
"""What a model is given for one text, without padding: `input_ids` and whatever else it takes."""


@dataclass(frozen=True, eq=False)
class HubModel:
    """A model, its tokenizer, its task, where it reads its answer and what its answers are called."""

    model: PreTrainedModel
    given_tokenizer: PreTrainedTokenizerBase | None
    task: Task
    pooling: Pooling
    labels: tuple[str, ...] | None

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """The tokenizer of a model that reads text."""
        if self.given_tokenizer is None:
            raise BadInput(
                f"{type(self.model).__name__} was loaded without a tokenizer, so it reads no text: record it with"
                " inputs=, what its processor makes of a picture or a sound."
            )
        return self.given_tokenizer

    @property
    def name(self) -> str:
        """What it is called: its name on the hub, its folder, or its class."""
        return str(self.model.config.name_or_path or type(self.model).__name__)

    @cached_property
    def longest(self) -> int | None:
        """How many tokens the model can read."""
        return longest_input(self.model)

    @cached_property
    def has_both_sides(self) -> bool:
        """Whether this is an encoder with a decoder."""
        return bool(self.model.config.is_encoder_decoder)

    @cached_property
    def stacks(self) -> tuple[Stack, ...]:
        """The stacks this model has; the first is the one recorded by default."""
        if self.has_both_sides:
            return ("cross", "encoder", "decoder")
        if has_two_towers(self.model):
            return ("encoder",)
        return ("decoder",) if is_decoder_only(self.model) else ("encoder",)

    @cached_property
    def padding(self) -> int:
        """The id that fills a batch: the model's own if it has one, as some count positions or find the end by it."""
        for holder in (self.model.config, self.given_tokenizer):
            padding = getattr(holder, "pad_token_id", None)
            if padding is not None and padding >= 0:
                return int(padding)
        return 0

    @cached_property
    def takes_padding(self) -> bool:
        """Not where padding would change the answer: a causal classifier without a padding token, and some families."""
        if self.model.config.model_type in WITHOUT_PADDING:
            return False
        finds_end = self.task == "classifier" and is_decoder_only(self.model)
        return not finds_end or self._padding_of_model is not None

    @cached_property
    def _padding_of_model(self) -> int | None:
        """The padding token by the model's own configuration, or by that of its language model."""
        holders = (self.model.config, self.model.config.get_text_config())
        found = (getattr(holder, "pad_token_id", None) for holder in holders)
        return next((token for token in found if token is not None), None)

    @cached_property
    def accepted(self) -> Container[str]:
        """The arguments that the model's forward pass takes."""
        parameters = inspect.signature(self.model.forward).parameters
        takes_more = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
        return {*parameters, *(("return_dict",) if takes_more else ())}

    @property
    def device(self) -> torch.device:
        """Where token ids go: to the table they are looked up in, which may not be where the other layers are."""
        try:
            table = self.model.get_input_embeddings()
        except NotImplementedError:  # CANINE hashes characters
            return self.model.device
        weight = getattr(table, "weight", None)
        return weight.device if isinstance(weight, Tensor) else self.model.device

    def batch_of(self, items: Sequence[Ids]) -> dict[str, Any]:
        """Items as one padded batch on the model's device, with masks, and no cache where the model would keep one."""
        device = self.device
        batch: dict[str, Any] = {}
        for name, mask_name in (("input_ids", "attention_mask"), ("decoder_input_ids", "decoder_attention_mask")):
            if name in items[0]:
                ids, mask = pad_rows([item[name] for item in items], self.padding)
                batch[name] = ids.to(device)
                if mask_name in self.accepted:
                    batch[mask_name] = mask.to(device)
        if "token_type_ids" in items[0] and "token_type_ids" in self.accepted:
            batch["token_type_ids"] = pad_rows([item["token_type_ids"] for item in items], 0)[0].to(device)
        elif self.model.config.model_type in PROMPT_TYPES:
            batch["token_type_ids"] = torch.zeros_like(batch["input_ids"])
        wishes = {"use_cache": False, "return_dict": True}
        return batch | {name: value for name, value in wishes.items() if name in self.accepted}

    def position(self, item: Ids) -> int | None:
        """The position at which the model reads its answer, or None where it pools over all."""
        if "decoder_input_ids" not in item:
            # a causal classifier reads the last token that is not its padding token, even one that stands for another
            skipped = self._padding_of_model if self.task == "classifier" else None
            return position_read(self.pooling, item["input_ids"], self.tokenizer.mask_token_id, skipped)
        if self.task == "classifier":
            # the decoder reads the source once more, and answers where the source ends
            ends = (item["input_ids"] == self.model.config.eos_token_id).nonzero().flatten()
            return int(ends[-1]) if len(ends) else len(item["input_ids"]) - 1
        return len(item["decoder_input_ids"]) - 1

    def readout(self, passage: Passage, stack: Stack) -> Float[Tensor, " query"]:
        """The read-out of a passage in a stack; an encoder below a decoder is read everywhere alike."""
        queries = len(passage.sides(stack)[0])
        below_decoder = passage.target is not None and stack == "encoder"
        return distribution(None if below_decoder else self.position(passage.inputs), queries)

    def only_answers(self, items: Sequence[Ids]) -> dict[str, int]:
        """What tells a causal model to give logits from the first position on that is read, and none before it."""
        if self.task != "causal_lm" or "logits_to_keep" not in self.accepted:
            return {}
        read = [self.position(item) for item in items]
        positions = [position for position in read if position is not None]
        longest = max(len(item["input_ids"]) for item in items)
        return {"logits_to_keep": longest - min(positions)} if len(positions) == len(items) else {}

    def logits(self, output: Any, row: int, item: Ids, missing: int = 0) -> Float[Tensor, " outcome"] | None:
        """What the model says of each outcome where it reads its answer, or None where it answers nothing.

        So many positions are `missing` at the front.
        """
        logits = getattr(output, "logits", None)
        logits = getattr(output, "prediction_logits", None) if logits is None else logits
        if self.task == "encoder" or logits is None:
            return None
        if self.task == "classifier":
            return logits[row]  # type: ignore[no-any-return]
        if self.task == "masked_lm" and not bool((item["input_ids"] == self.tokenizer.mask_token_id).any()):
            return None
        position = self.position(item)
        return None if position is None else logits[row, position - missing]

    def probabilities(self, logits: Float[Tensor, " outcome"]) -> Float[Tensor, " outcome"]:
        """The probability of each outcome."""
        return probabilities_of(self.model, self.task, logits)

    def prediction(self, logits: Float[Tensor, " outcome"] | None) -> tuple[tuple[str, float], ...]:
        """(label, probability) pairs, best first; none where the model answers nothing."""
        if logits is None:
            return ()
        probabilities = self.probabilities(logits.detach())
        if bool(probabilities.isnan().any()):
            raise BadInput(
                f"{type(self.model).__name__} answers with what is not a number: its weights or its precision are at"
                " fault, so nothing it attends to means anything."
            )
        return prediction_of(probabilities, self.labels, self.given_tokenizer)


def lookups(model: PreTrainedModel) -> list[nn.Module]:
    """The modules that look up the embeddings of each kind of ids, the encoder's before the decoder's."""
    holders = [model.get_encoder(), model.get_decoder()] if model.config.is_encoder_decoder else [model]
    try:
        return [holder.get_input_embeddings() for holder in holders]
    except NotImplementedError:
        raise BadInput(
            f"{type(model).__name__} looks its tokens up in no table, so there are no embeddings to begin from."
        ) from None


@contextmanager
def changed_lookups(model: PreTrainedModel, change: Callable[[Tensor], Tensor] | None) -> Iterator[None]:
    """Within this, `change(embeddings)` takes the place of the embeddings that are looked up, in this thread."""
    if change is None:
        yield
        return
    thread = threading.get_ident()

    def in_this_thread(_module: nn.Module, _given: Any, output: Tensor) -> Tensor:
        return change(output) if threading.get_ident() == thread else output

    # encoder and decoder may share one module, which then must not be hooked twice
    with ExitStack() as hooks:
        for module in dict.fromkeys(lookups(model)):
            hooks.enter_context(module.register_forward_hook(in_this_thread))
        yield


# ---- generation: what a model writes by itself


def decoder_start(reader: HubModel) -> int:
    """The token that begins every output of an encoder-decoder."""
    for holder in (getattr(reader.model, "generation_config", None), reader.model.config):
        start = getattr(holder, "decoder_start_token_id", None)
        if start is not None:
            return int(start)
    raise BadInput("This model's configuration has no decoder_start_token_id, so its decoder cannot begin.")


def greedy_outputs(reader: HubModel, sources: Sequence[Encoded]) -> list[Encoded]:
    """What an encoder-decoder says to each source, as the input its decoder reads while saying it."""
    room = GREEDY_TOKENS if reader.longest is None else min(GREEDY_TOKENS, reader.longest - 1)
    written = _sequences(reader, sources, room, GREEDY)
    return [encode_ids(reader.tokenizer, _without_end(reader, sequence, 1)) for sequence in written]


def checked_generation(options: Mapping[str, Any], seed: int | None) -> dict[str, Any]:
    """The user's options of transformers' `generate`, with a seed where they draw; greedy without any."""
    unknown = [name for name in options if name not in vars(GenerationConfig()) or name.startswith("_")]
    if unknown:
        raise BadInput(
            f"There is no option {unknown[0]}: the options are those of record and of transformers' generate."
        )
    fixed = [name for name in options if name in ONE_SEQUENCE]
    if fixed:
        raise BadInput(f"A record is of one sequence and its attention, so {fixed[0]}= has no use in a record.")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63):
        raise BadInput(f"seed is a whole number from 0 to 2**63 - 1, not {seed!r}.")
    chosen = {**GREEDY, **options}
    # the random state is put back after each call: without a seed of its own, every call would draw the same text
    return {**chosen, "seed": secrets.randbits(32) if seed is None and chosen["do_sample"] else seed}


class Told(StoppingCriteria):
    """What stops nothing, and tells after each token how far the text is, and what it is."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, read: int, most: int) -> None:
        self.tokenizer, self.read, self.most = tokenizer, read, most

    def __call__(self, input_ids: Tensor, _scores: Any, **_: Any) -> Tensor:
        """Not one of these sequences is at its end."""
        tell(input_ids.shape[1] - self.read, self.most)
        tell_text(lambda: str(self.tokenizer.decode(input_ids[0, self.read :].tolist(), skip_special_tokens=True)))
        return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)


def generate(
    reader: HubModel, source: Encoded, max_new_tokens: int, options: Mapping[str, Any], ends: Sequence[int] = ()
) -> Encoded:
    """The prompt and its continuation, or an encoder-decoder's output, without the end token that closes it.

    `ends` are tokens that end it beside those that the model names.
    """
    prompt = [] if reader.has_both_sides else source.inputs["input_ids"].tolist()
    read = len(prompt) or 1
    if isinstance(max_new_tokens, bool) or not isinstance(max_new_tokens, int) or max_new_tokens < 1:
        raise BadInput(f"max_new_tokens must be at least 1, not {max_new_tokens}.")
    if reader.longest is not None and read + max_new_tokens > reader.longest:
        raise BadInput(
            f"{read} tokens and {max_new_tokens} new ones are more than the {reader.longest} the model reads:"
            " lower max_new_tokens."
        )
    known = _ends(reader)
    told: dict[str, Any] = {"stopping_criteria": StoppingCriteriaList([Told(reader.tokenizer, read, max_new_tokens)])}
    if not set(ends) <= known and "eos_token_id" not in options:
        told["eos_token_id"] = sorted({*ends, *known})
    written = _sequences(reader, [source], max_new_tokens, {**options, **told})[0]
    sequence = _without_end(reader, written, read, ends)
    if not prompt:
        return encode_ids(reader.tokenizer, sequence)
    new = sequence[len(prompt) :]
    return source.followed_by(encode_ids(reader.tokenizer, new)) if new else source


def _sequences(
    reader: HubModel, sources: Sequence[Encoded], max_new_tokens: int, options: Mapping[str, Any]
) -> list[list[int]]:
    if not reader.model.can_generate():
        raise BadInput(f"{type(reader.model).__name__} cannot generate: give the decoder's text as text_target=.")
    batch = reader.batch_of([source.inputs for source in sources])
    inputs: dict[str, Any] = {name: tensor for name, tensor in batch.items() if isinstance(tensor, torch.Tensor)}
    if reader.has_both_sides:
        inputs["decoder_start_token_id"] = decoder_start(reader)
    wishes = {name: value for name, value in options.items() if name != "seed"}
    # what the user's generation config may say about the form of the output must not reach us
    form = {"num_return_sequences": 1, "return_dict_in_generate": False, "max_new_tokens": max_new_tokens}
    with torch.no_grad(), evaluation_mode(reader.model):
        if options.get("seed") is not None:
            torch.manual_seed(options["seed"])
        try:
            sequences = reader.model.generate(  # type: ignore[operator]
                **{"pad_token_id": reader.padding, **inputs, **wishes, **form}
            )
        except (TypeError, ValueError) as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".:")
            raise BadInput(f"The model cannot generate with these options: {reason}.") from None
    return [list(sequence) for sequence in sequences.tolist()]


def _ends(reader: HubModel) -> set[int]:
    """The tokens that end what a model writes."""
    config = getattr(reader.model, "generation_config", None)
    named = [getattr(config, "eos_token_id", None), reader.tokenizer.eos_token_id]
    return {end for name in named if name is not None for end in (name if isinstance(name, list) else [name])}


def _without_end(reader: HubModel, sequence: list[int], read: int, more: Sequence[int] = ()) -> list[int]:
    """The sequence without the end token, and without the padding behind it, that close it."""
    ends = {*_ends(reader), reader.padding, *more}
    while len(sequence) > read and sequence[-1] in ends:
        sequence = sequence[:-1]
    return sequence
