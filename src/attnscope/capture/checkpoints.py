"""Whole or refused: the weights in a file, an adapter on top (only here is peft used), the tokenizer beside them.

Weights that are missing would be random numbers, and with an empty or a foreign vocabulary, what is read is made up.
"""

import json
import logging
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import transformers
from safetensors import SafetensorError, safe_open
from transformers import AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils.logging import set_tqdm_hook

from ..errors import BadInput
from .families import is_decoder_only

WRAPPERS = re.compile(r"^(?:module\.|_orig_mod\.)+")
"""What DataParallel and torch.compile put before every name when the wrapped model was saved."""
LAYER_NUMBER = re.compile(r"\.\d+\.")
NAMED = 3
"""How many missing weights are named; the others are counted."""

log = logging.getLogger("attnscope")
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
TRIED_WORDS = 100
"""How many words of its own vocabulary a tokenizer is tried on."""


def complete_model(name: str, kind: Any, options: dict[str, Any], allowed: tuple[str, ...]) -> PreTrainedModel:
    """The model with every weight from its file, or without its head where the file of an encoder has none."""
    model, missing, unexpected = _read(name, kind, options)
    if any(WRAPPERS.match(key) for key in unexpected):
        prefix = next(match[0] for key in sorted(unexpected) if (match := WRAPPERS.match(key)))
        log.warning("The names of the weights of %s begin with %s, which was taken off.", name, prefix)
        options = {**options, "key_mapping": {WRAPPERS.pattern: "", **options.get("key_mapping", {})}}
        model, missing, unexpected = _read(name, kind, options)
    missing = _not_allowed(missing, allowed)
    headless = bool(missing) and _is_encoder_without_its_head(model, missing)
    if headless:
        model, missing, unexpected = _read(name, AutoModel, options)
        missing = _not_allowed(missing, allowed)
    if missing and all(key.startswith("pooler.") for key in missing) and getattr(model, "pooler", None) is not None:
        model.pooler = None  # type: ignore[assignment] # of an encoder without a head, which nothing reads
        missing = []
    if missing:
        raise BadInput(
            f"The file of {name} lacks {_listed(missing)} of {type(model).__name__}, which would be random numbers:"
            " give the whole checkpoint and its own config.json, or allow_missing= if you mean it."
        )
    more = _of_further_layers(model, unexpected)
    if more and "" not in allowed:
        raise BadInput(
            f"The file of {name} has more layers than its config.json says ({_listed(more)} would not be used): correct"
            " config.json, or pass allow_missing=True if you mean it."
        )
    if headless:
        log.warning("The file of %s has no weights of a head: it is read without one, and predicts nothing.", name)
    return model


def _read(name: str, kind: Any, options: dict[str, Any]) -> tuple[PreTrainedModel, list[str], list[str]]:
    """The model, the names of weights that are not in its file, and names in the file that it has no use for."""
    with _without_bars():
        model, found = kind.from_pretrained(name, output_loading_info=True, **options)
    # masks and position numbers are made by the code; numbers that were learned are not
    counted = {key for key, buffer in model.named_buffers() if not buffer.is_floating_point()}
    return model, sorted(set(found["missing_keys"]) - counted), sorted(found["unexpected_keys"])


@contextmanager
def _without_bars() -> Iterator[None]:
    """Within this, transformers draws no bars of weights that are read; those of downloads are the hub's, and stay."""
    before = set_tqdm_hook(lambda bar, given, named: bar(*given, **{**named, "disable": True}))
    try:
        yield
    finally:
        set_tqdm_hook(before)


def _not_allowed(missing: Iterable[str], allowed: tuple[str, ...]) -> list[str]:
    return [key for key in missing if not key.startswith(allowed)]


def _is_encoder_without_its_head(model: PreTrainedModel, missing: Collection[str]) -> bool:
    """Whether the whole head is missing, on an encoder: its body is sound by itself, as sentence encoders are."""
    if not hasattr(model, model.base_model_prefix) or model.config.is_encoder_decoder or is_decoder_only(model):
        return False
    of_body = {id(weight) for weight in model.base_model.parameters()}
    head = {key for key, weight in model.named_parameters() if id(weight) not in of_body}
    return bool(head) and head <= set(missing)


def _of_further_layers(model: PreTrainedModel, unexpected: Iterable[str]) -> list[str]:
    """Names that the model would know if it had more layers."""
    known = {LAYER_NUMBER.sub(".0.", key) for key in model.state_dict()}
    body = f"{model.base_model_prefix}."
    return [
        key
        for key in unexpected
        if {LAYER_NUMBER.sub(".0.", key), LAYER_NUMBER.sub(".0.", key.removeprefix(body))} & known
    ]


def _listed(keys: Collection[str]) -> str:
    """The first names, and how many there are in all."""
    first = ", ".join(list(keys)[:NAMED])
    return first if len(keys) <= NAMED else f"{first} and {len(keys) - NAMED} more weights"


# ---- adapters


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


# ---- vocabularies


def tokenizer_at(names: Sequence[str], place: Mapping[str, Any]) -> PreTrainedTokenizerBase:
    """The tokenizer at the first of these names that has one, in the subfolder of the model or above it.

    Where a folder has none, transformers makes up a tokenizer that knows nothing but its special tokens.
    """
    above = {option: value for option, value in place.items() if option != "subfolder"}
    for name, where_in in product(filter(None, names), [place] if above == place else [place, above]):
        try:
            tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(name, **where_in)
        except Exception:  # noqa: BLE001, S112 # without its files, each class of tokenizer fails in a way of its own
            continue
        if _knows_words(tokenizer):
            return tokenizer
    where = f'at "{names[0]}"' if names[0] else "beside this model"
    raise BadInput(f"There is no tokenizer {where}, or one without a vocabulary: pass one as tokenizer=.")


def check_vocabulary(tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel) -> None:
    """Refuse a tokenizer that knows no words, or words that the model has no embeddings for.

    Special tokens may lie beyond the embeddings: some real models never learned theirs. A text that uses one is refused
    when it is read.
    """
    if not _knows_words(tokenizer):
        raise BadInput(
            "This tokenizer knows no words, only special tokens: give the one that the model was trained with."
        )
    embedded = embedding_count(model)
    last = max(_words(tokenizer).values())
    if embedded is not None and last >= embedded:
        raise BadInput(
            f"This tokenizer has ids up to {last} and {type(model).__name__} embeds {embedded}: they do not belong"
            " together, give the tokenizer that the model was trained with."
        )


def embedding_count(model: PreTrainedModel) -> int | None:
    """How many ids the model has embeddings for, or None where it does not look them up in one table."""
    try:
        table = model.get_input_embeddings()
    except (NotImplementedError, AttributeError):
        return None
    count = getattr(table, "num_embeddings", None)
    return count if isinstance(count, int) else None


def check_ids(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int], embedded: int | None) -> None:
    """Refuse a text with a token that the model has no embedding for."""
    beyond = next((token for token in ids if embedded is not None and token >= embedded), None)
    if beyond is not None:
        name = token_names(tokenizer, [beyond])[0]
        raise BadInput(
            f"The token {name!r} of this text has the id {beyond}, and the model embeds only {embedded}: it was never"
            " taught this token, so leave it out."
        )


def token_names(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> tuple[str, ...]:
    """What ids are called; one that the tokenizer lacks, as in padded vocabularies, by its number."""
    names = tokenizer.convert_ids_to_tokens(list(ids))
    return tuple(f"[{token}]" if name is None else str(name) for token, name in zip(ids, names, strict=True))


def _knows_words(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether the tokenizer can read at least one word of its own vocabulary."""
    ids = sorted(_words(tokenizer).values())
    for token in ids[:: max(1, len(ids) // TRIED_WORDS)]:
        read = tokenizer(tokenizer.decode([token]), add_special_tokens=False, verbose=False)["input_ids"]
        if any(found != tokenizer.unk_token_id for found in read):
            return True
    return False


def _words(tokenizer: PreTrainedTokenizerBase) -> dict[str, int]:
    """The vocabulary without special and added tokens, and without the mere marker of a space."""
    added = {*tokenizer.all_special_tokens, *tokenizer.get_added_vocab()}
    return {word: number for word, number in tokenizer.get_vocab().items() if word not in added and word != "▁"}
