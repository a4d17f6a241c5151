"""What a survey is asked: which statistics, of which stack, with what left out."""

import hashlib
import json
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

import torch

from ..capture import InstrumentedModel
from ..corpora import CORPORA, dataset_file
from ..errors import BadInput
from ..record.attention import Stack
from ..statistics import NEEDED, PARSE, ROLES, STATISTICS, TAGS
from ..syntax import Corpus, sentences_of

MEANINGS = {TAGS: "parts of speech", PARSE: "heads and relations"}
NAMES: dict[Any, str] = {kind: name for name, kind in STATISTICS.items()}
SHARD_SIZE, SMALLEST_SHARD, LARGEST_SHARD, SHARDS = 64, 8, 256, 32
"""Texts in a shard where the size of the corpus is not known; where it is, about so many shards within these limits."""


def source_of(corpus: Any, parser: Any, limit: int | None, data: str | Path | None) -> Corpus:
    """The corpus; a data set that is known by name is found where the data lies ("ud_ewt", "ud_ewt:dev")."""
    name, _, split = corpus.partition(":") if isinstance(corpus, str) else ("", "", "")
    if name not in CORPORA:
        return sentences_of(corpus, parser=parser, limit=limit)
    path = dataset_file(name, split or None, data)
    return sentences_of(path, parser=parser, limit=limit, kind=CORPORA[name].kind)


def chosen_statistics(asked: Sequence[str | type[Any]] | None, corpus: Corpus) -> tuple[dict[str, type[Any]], bool]:
    """The statistics by name, and whether roles are wanted; by default all that the corpus is annotated for."""
    offered = _annotation(corpus)
    if asked is None:
        return {name: kind for name, kind in STATISTICS.items() if offered >= set(kind.needs)}, True
    if isinstance(asked, str) or not asked:
        raise BadInput(f"statistics= is a list of {', '.join(STATISTICS)}, {ROLES}, not {asked!r}.")
    chosen: dict[str, type[Any]] = {}
    for one in asked:
        if one != ROLES:
            name, kind = _named(one)
            if name in chosen and chosen[name] is not kind:
                raise BadInput(f"Two statistics are called {name}: give each a name of its own.")
            chosen[name] = kind
    for name, kind in chosen.items():
        if missing := [MEANINGS[need] for need in kind.needs if need not in offered]:
            raise BadInput(
                f"{name} needs {' and '.join(missing)}, and the sentences of {corpus.name} have none: give annotated"
                " ones (CoNLL-U), or a parser (--parser, parser=)."
            )
    wants_roles = ROLES in asked
    if wants_roles:
        chosen |= {name: STATISTICS[name] for name in NEEDED if offered >= set(STATISTICS[name].needs)}
    return chosen, wants_roles


def _named(one: Any) -> tuple[str, type[Any]]:
    """A statistic by its name, or a class; a class of ours goes by the name it has here."""
    if isinstance(one, str):
        if one not in STATISTICS:
            raise BadInput(f"There is no statistic {one!r}: choose {', '.join(STATISTICS)} or {ROLES}.")
        return one, STATISTICS[one]
    name = str(NAMES.get(one) or getattr(one, "__name__", type(one).__name__))
    if not all(hasattr(one, part) for part in ("empty", "update", "from_state", "needs", "second_pass")):
        raise BadInput(f"{name} is no statistic: give a class such as those of STATISTICS.")
    if name == ROLES or STATISTICS.get(name, one) is not one:
        raise BadInput(f"There is another statistic called {name}: give yours a name of its own.")
    return name, one


def left_out(chosen: Container[str]) -> dict[str, str]:
    """The statistics that were not taken for want of annotation, and what they need."""
    return {
        name: " and ".join(MEANINGS[need] for need in kind.needs)
        for name, kind in STATISTICS.items()
        if name not in chosen and kind.needs
    }


def _annotation(corpus: Corpus) -> set[str]:
    """What the first sentence has; a parser that cannot be loaded is told here, before anything is written."""
    first = next(corpus.sentences())
    parsed = first.heads is not None and first.relations is not None
    return ({TAGS} if first.tags is not None else set()) | ({PARSE} if parsed else set())


def usual_null(model: InstrumentedModel) -> str:
    """Causal models rest on their first token, others on their special tokens."""
    return "first" if self_attention(model) == "decoder" else "special"


def self_attention(model: InstrumentedModel) -> Stack:
    """The stack that is surveyed: the text's attention to itself, in the encoder where there are both."""
    return "decoder" if model.stacks == ("decoder",) else "encoder"


def usual_shard_size(corpus_size: int | None) -> int:
    """Enough shards for standard errors, each large enough to batch well."""
    if corpus_size is None:
        return SHARD_SIZE
    return min(max(corpus_size // SHARDS, SMALLEST_SHARD), LARGEST_SHARD)


def identity(model: InstrumentedModel) -> dict[str, str]:
    """Tells a model from any other: its name, and a fingerprint of its settings, weights and tokens."""
    settings = model.model.config.to_dict()
    for changing in ("_name_or_path", "transformers_version"):
        settings.pop(changing, None)
    words = sorted(model.tokenizer.get_vocab().items(), key=lambda entry: entry[1])
    digest = hashlib.sha256(json.dumps([settings, words], default=str, sort_keys=True).encode())
    for name, tensor in sorted(model.model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    name = str(model.model.config.name_or_path or type(model.model).__name__)
    return {"name": Path(name).name if Path(name).is_dir() else name, "fingerprint": digest.hexdigest()[:16]}


def at_least(name: str, number: int, least: int) -> int:
    """The number, unless it is too small."""
    if number < least:
        raise BadInput(f"{name} must be at least {least}, not {number}.")
    return number
