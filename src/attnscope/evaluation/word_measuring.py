"""One run over the texts that sums what each method gives each word and each head gives tagged words; it can go on."""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..attribution.choosing import Method, score
from ..engine import check_recipe, checked_folder, load_checkpoint, save_checkpoint
from ..errors import BadInput, check_number
from ..record import AttentionRecord, Model, Text
from .heads_on_words import HeadTally
from .word_methods import Plan, chosen_methods, planned, records_of
from .word_tally import WordTally, scaled, words_and_tokens

UNFINISHED, TALLY = "unfinished", "tally.safetensors"
BATCHES_IN_PART = 8
"""What is measured between two writings to the disk: so much a kill may cost."""
WHAT = "measurement of words"

Watch = Callable[[int, int], None]
"""Who is told how many texts are done, and of how many."""


@dataclass(frozen=True)
class Asked:
    """What is asked of a model and its texts."""

    texts: list[Text]
    methods: Sequence[str | Method] | None
    batch_size: int
    truncate: bool
    recipe: Mapping[str, Any]
    """All of it in plain data: who goes on must ask the same again."""
    tags: tuple[str, ...] = ()
    tag_of: Callable[[str], str | None] = lambda word: None  # noqa: ARG005 - without tags, no word has one


@dataclass(frozen=True)
class Measured:
    """The sums for each word and each head, and the methods that the model does not serve, with why."""

    words: WordTally
    heads: HeadTally
    left_out: Mapping[str, str]


def asked_of(
    model: Model,
    texts: Iterable[Text],
    methods: Sequence[str | Method] | None,
    *,
    minimum_count: int,
    batch_size: int,
    truncate: bool,
    more: Mapping[str, Any] | None = None,
    tags: tuple[str, ...] = (),
    tag_of: Callable[[str], str | None] | None = None,
) -> Asked:
    """What is asked, checked before anything runs; `more` is what else tells one measurement from another."""
    if isinstance(texts, str):
        raise BadInput("Words are scored over several texts; put a single one into a list.")
    given = list(texts)
    if not given:
        raise BadInput("There are no texts to measure on.")
    for name, number in (("minimum_count", minimum_count), ("batch_size", batch_size)):
        check_number(name, number, 1)
    recipe = {
        "model": model.name,
        "texts": len(given),
        "fingerprint": hashlib.sha256(json.dumps(given).encode()).hexdigest(),
        "methods": list(chosen_methods(methods)),
        "all_methods": methods is None,
        "minimum_count": minimum_count,
        "batch_size": batch_size,
        "truncate": truncate,
        **(more or {}),
    }
    asked = Asked(given, methods, batch_size, truncate, recipe)
    return asked if tag_of is None else Asked(given, methods, batch_size, truncate, recipe, tags, tag_of)


def measured(model: Model, asked: Asked, folder: Path | None, watch: Watch | None) -> Measured:
    """The sums over all texts, batch by batch; those that are kept in the folder are not computed again.

    A batch is recorded by itself and sums are added in the order of the texts, so that it does not matter at which part
    a run begins.
    """
    options = {"truncate": asked.truncate}
    needed = asked.methods is not None
    plan = planned(model, asked.texts[0], chosen_methods(asked.methods), options, all_needed=needed)
    words, heads = WordTally(plan.methods), HeadTally(asked.tags, plan.heads)
    done, path = 0, None if folder is None else folder / UNFINISHED / TALLY
    if path is not None and path.exists():
        state = load_checkpoint(path)
        check_recipe(path, WHAT, state["recipe"], asked.recipe)
        words, heads, done = WordTally.from_state(state["words"]), HeadTally.from_state(state["heads"]), state["done"]
    for start in range(done, len(asked.texts), asked.batch_size):
        if watch is not None:
            watch(start, len(asked.texts))
        batch = asked.texts[start : start + asked.batch_size]
        for text, records in zip(batch, records_of(model, batch, plan, asked.batch_size, options), strict=True):
            _add(words, heads, model, plan, asked, text, records)
        through = start + len(batch)
        if path is not None and (start // asked.batch_size + 1) % BATCHES_IN_PART == 0:
            kept = {"recipe": dict(asked.recipe), "words": words.state(), "heads": heads.state(), "done": through}
            save_checkpoint(path, kept)
    if watch is not None:
        watch(len(asked.texts), len(asked.texts))
    return Measured(words, heads, plan.left_out)


def own_folder(out: str | Path | None, resume: bool, finished: str) -> Path | None:
    """The folder of a measurement, if one is wanted and may be written to."""
    if out is None:
        return None
    return checked_folder(Path(out), WHAT, resume=resume, finished=finished, unfinished=(UNFINISHED,))


def forget_parts(folder: Path) -> None:
    """Remove what was kept of a measurement that is finished."""
    shutil.rmtree(folder / UNFINISHED, ignore_errors=True)


def _add(
    words: WordTally,
    heads: HeadTally,
    model: Model,
    plan: Plan,
    asked: Asked,
    text: Text,
    records: Mapping[str, AttentionRecord],
) -> None:
    """Add one text to both tallies."""
    record = next(iter(records.values()))
    names, groups = words_and_tokens(record, text)
    if not groups:
        return
    found = [
        score(records[kind], name, method, model).scores.double().numpy()
        for kind, methods in plan.passes.items()
        for name, method in methods.items()
    ]
    words.update(names, scaled(np.stack(found), groups))
    if asked.tags and record.stack != "cross":
        heads.update(record, [asked.tag_of(name) for name in names], groups)
