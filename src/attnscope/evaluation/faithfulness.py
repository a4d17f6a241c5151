"""Which method to trust: its scores held against what the model does, over many texts."""

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..attribution.choosing import Method, every_method, named_methods, runs_model, score_what_can_be
from ..engine import check_recipe, checked_folder
from ..errors import BadInput, check_number
from ..record import Model, Text
from ..record.schema import checked
from .baselines import BASELINES
from .cost import Cost, price
from .per_text import Figure, Question, figures_of
from .result import CARD, Trust
from .shards import Shard, save_shard, saved_shards
from .tabulating import tabulated

WAYS_TO_RECORD: tuple[dict[str, Any], ...] = ({}, {"gradients": True}, {"gradients": True, "values": True})
"""What a record can hold for the methods, the cheapest first."""
UNFINISHED = "unfinished"


@checked
def trust(
    model: Model,
    texts: Iterable[Text],
    methods: Sequence[str | Method] | None = None,
    against: Sequence[str | Method] = ("blank_out", "gradient"),
    *,
    layers: Sequence[int] | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    batch_size: int = 16,
    top: int = 3,
    seed: int = 0,
    truncate: bool = False,
    watch: Callable[[int, Cost], None] | None = None,
) -> Trust:
    """How well methods follow what the model does on these texts, with intervals and beside baselines.

    After Abnar & Zuidema 2020, section 4: per text, the rank agreement (Spearman, Kendall, overlap of the `top` tokens)
    of each method, at each of `layers`, with each reference in `against`; and after DeYoung et al. 2020
    comprehensiveness and sufficiency. Means over texts have bootstrap intervals. `methods` are names or functions; by
    default all that read a record without running the model again, as far as this model gives what they need.

    Records are dropped once their figures are taken. With a folder `out` the figures are kept after every `batch_size`
    texts, and `resume` goes on from there to the very same table. `watch(texts done, cost)` is called once before the
    model runs over the texts and then after every batch.
    """
    folder = None if out is None else _own_folder(Path(out), resume)
    for name, number, least in (("batch_size", batch_size, 1), ("top", top, 1), ("seed", seed, 0)):
        check_number(name, number, least)
    given = _checked_texts(texts)
    tokenized = [_tokens(model, text, number, truncate) for number, text in enumerate(given)]
    references = named_methods(against)
    wanted = named_methods(methods) if methods is not None else _reading_methods()
    asked = _joined(wanted, references)
    options, left_out, depth = _way_to_record(model, given[0], asked, truncate)
    if missing := [why for name, why in left_out.items() if methods is not None or name in references]:
        raise BadInput(missing[0])
    asked = {name: method for name, method in asked.items() if name not in left_out}
    question = Question(
        methods=asked,
        against=tuple(references),
        layers=None if layers is None else _checked_layers(layers, depth),
        counts=Counter(token for tokens in tokenized for token in tokens),
        top=top,
        seed=seed,
        batch_size=batch_size,
    )
    recipe = {
        "model": model.name,
        "texts": len(given),
        "fingerprint": hashlib.sha256(json.dumps(given).encode()).hexdigest(),
        "methods": list(asked),
        "against": list(references),
        "layers": None if question.layers is None else list(question.layers),
        "batch_size": batch_size,
        "top": top,
        "seed": seed,
        "truncate": truncate,
    }
    if folder is not None and (folder / CARD).exists():
        finished = Trust.load(folder)
        check_recipe(folder, "measurement", finished.card, recipe)
        shutil.rmtree(folder / UNFINISHED, ignore_errors=True)
        return finished
    lengths = [len(tokens) for tokens in tokenized]
    running = sum(map(runs_model, asked.values()))
    cost = price(lengths, len(asked) + len(BASELINES), running, "gradients" in options)
    figures, shards = _measured(model, given, question, options, recipe, folder, cost, watch)
    table = tabulated(
        figures, np.concatenate([s.values for s in shards]), np.concatenate([s.lengths for s in shards]), seed
    )
    result = Trust(table, {**recipe, "left_out": left_out, "cost": str(cost)})
    if folder is not None:
        result.save(folder)
        shutil.rmtree(folder / UNFINISHED)
    return result


def _measured(
    model: Model,
    texts: Sequence[Text],
    question: Question,
    options: Mapping[str, Any],
    recipe: Mapping[str, Any],
    folder: Path | None,
    cost: Cost,
    watch: Callable[[int, Cost], None] | None,
) -> tuple[list[Figure], list[Shard]]:
    """The figures of all texts, batch by batch; those that are kept in the folder are not computed again.

    A batch is recorded by itself, so that it does not matter at which batch a run begins: sums in a padded batch
    depend on its other texts in the last digit.
    """
    shards = [] if folder is None else saved_shards(folder / UNFINISHED, recipe)
    figures = _figures(model, texts[0], question, options)
    for start in range(len(shards) * question.batch_size, len(texts), question.batch_size):
        if watch is not None:
            watch(start, cost)
        batch = texts[start : start + question.batch_size]
        rows, lengths = [], []
        for offset, record in enumerate(model.records(batch, question.batch_size, **options)):
            found = figures_of(record, model, question, start + offset)
            rows.append([found[figure] for figure in figures])
            lengths.append(len(record.key_tokens))
        shards.append(Shard(np.array(rows), np.array(lengths)))
        if folder is not None:
            save_shard(folder / UNFINISHED, len(shards) - 1, shards[-1], recipe)
    if watch is not None:
        watch(len(texts), cost)
    return figures, shards


def _figures(model: Model, text: Text, question: Question, options: Mapping[str, Any]) -> list[Figure]:
    """Which figures every text has, told from the first."""
    return list(figures_of(model.record(text, **options), model, question, 0))


def _way_to_record(
    model: Model, text: Text, methods: Mapping[str, Method], truncate: bool
) -> tuple[dict[str, Any], dict[str, str], int]:
    """The cheapest way to record that serves the most methods; those it does not serve, and why; the model's layers."""
    tried: list[tuple[dict[str, Any], dict[str, str], int]] = []
    for way in WAYS_TO_RECORD:
        options = {**way, "truncate": truncate}
        try:
            record = model.record(text, **options)
        except BadInput:
            if not tried:
                raise
            break
        left_out = score_what_can_be(record, methods, model)[1]
        tried.append((options, left_out, len(record.layers)))
        if not left_out:
            break
    return min(tried, key=lambda attempt: len(attempt[1]))


def _reading_methods() -> dict[str, Method]:
    """Every method that needs only a record."""
    return {name: method for name, method in every_method().items() if not runs_model(method)}


def _joined(methods: Mapping[str, Method], references: Mapping[str, Method]) -> dict[str, Method]:
    """Methods and references, each once; a reference is a method like the others, held against the other references."""
    if not references:
        raise BadInput("There is nothing to hold the methods against: give at least one reference.")
    for name, method in {**methods, **references}.items():
        if name in BASELINES or methods.get(name, method) is not method:
            raise BadInput(f"Two methods are called {name!r}: give each function a name of its own.")
    return {**methods, **references}


def _checked_texts(texts: Iterable[Text]) -> list[Text]:
    if isinstance(texts, (str, Mapping)):
        raise BadInput("trust takes several texts; put a single one into a list.")
    return texts_of(list(texts))


@checked
def texts_of(texts: list[Text]) -> list[Text]:
    """The texts, if there are any and each is one."""
    if not texts:
        raise BadInput("There are no texts to measure on.")
    return texts


def _tokens(model: Model, text: Text, number: int, truncate: bool) -> tuple[str, ...]:
    """The tokens of a text, so that one the model cannot read is told before anything runs."""
    try:
        return model.tokens(text, truncate)
    except BadInput as error:
        raise BadInput(f"Text {number} (counted from 0): {error}") from error


def _checked_layers(layers: Sequence[int], depth: int) -> tuple[int, ...]:
    for layer in layers:
        if not -depth <= layer < depth:
            raise BadInput(f"There is no layer {layer}: this model has {depth}, counted from 0.")
    return tuple(layer % depth for layer in layers)


def _own_folder(out: Path, resume: bool) -> Path:
    return checked_folder(out, "measurement", resume=resume, finished=CARD, unfinished=(UNFINISHED,))
