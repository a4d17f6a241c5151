"""Whether a tokenizer is there and fits its model: with an empty or a foreign vocabulary, what is read is made up."""

from collections.abc import Mapping, Sequence
from typing import Any

from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from ..errors import BadInput

TRIED_WORDS = 100
"""How many words of its own vocabulary a tokenizer is tried on."""


def tokenizer_at(names: Sequence[str], place: Mapping[str, Any]) -> PreTrainedTokenizerBase:
    """The tokenizer at the first of these names that has one.

    Where a folder has none, transformers makes up a tokenizer that knows nothing but its special tokens.
    """
    for name in filter(None, names):
        try:
            tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(name, **place)
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
