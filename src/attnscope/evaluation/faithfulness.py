"""Which method to trust: its scores held against what the model does, over many texts."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..attribution.choosing import Method, every_method, named_methods, runs_model, score_what_can_be
from ..engine import UNFINISHED, Store, check_recipe, checked_folder, fingerprint_of
from ..errors import BadInput, check_number
from ..numerals import counted
from ..record import Model, Text
from ..record.schema import checked
from .per_text import BASELINES, FOLLOWED, Figure, Question, figures_of, token_counts
from .result import CARD, Trust
from .tables import tabulate
from .texts import model_and_texts

# What the measurement will cost, announced before it runs.


@dataclass(frozen=True)
class Cost:
    """How often the model runs on one text or a variant of it; `str()` says it in words."""

    texts: int
    tokens: int
    backward: int
    """Runs with gradients."""
    blank_out: int
    """One run for each token and each method that runs the model again."""
    erasure: int
    """At most: methods that put the same tokens first share their runs."""

    @property
    def forward(self) -> int:
        """All forward runs."""
        return self.texts + self.blank_out + self.erasure

    def __str__(self) -> str:
        return (
            f"{counted(self.texts, 'text')} with {counted(self.tokens, 'token')}: at most {self.forward:,} forward runs"
            f" ({self.blank_out:,} to blank single tokens out, up to {self.erasure:,} for erasure)"
            f" and {self.backward:,} backward"
        )


def price(lengths: Sequence[int], scored: int, running: int, gradients: bool) -> Cost:
    """From the tokens of each text, how many methods and baselines are scored, and how many run the model again."""
    # every distinct count once for each of: taken away or kept, with or without special tokens
    variants = sum(len(set(token_counts(length))) * 4 for length in lengths)
    return Cost(
        texts=len(lengths),
        tokens=sum(lengths),
        backward=len(lengths) if gradients else 0,
        blank_out=running * sum(lengths),
        erasure=scored * variants,
    )


WHAT = "measurement"
WAYS_TO_RECORD: tuple[dict[str, Any], ...] = ({}, {"gradients": True}, {"gradients": True, "values": True})
"""What a record can hold for the methods, the cheapest first."""


@checked
def trust(
    model: str | Model,
    texts: str | Path | Iterable[Text],
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
    limit: int | None = None,
    data: str | Path | None = None,
    watch: Callable[[int, Cost], None] | None = None,
) -> Trust:
    """How well methods follow what the model does on these texts, with intervals and beside baselines.

    The model, or its name or folder; the texts, or the name of a file or data set as `read_texts` takes it (in `data`,
    before $ATTNSCOPE_DATA), no more than `limit` of them.

    After Abnar & Zuidema 2020, section 4: per text, the rank agreement (Spearman, Kendall, overlap of the `top` tokens)
    of each method, at each of `layers`, with each reference in `against`; and after DeYoung et al. 2020
    comprehensiveness and sufficiency. Means over texts have bootstrap intervals. `methods` are names or functions; by
    default all that read a record without running the model again, as far as this model gives what they need. On a text
    whose probability no token moves by 0.01, blank-out follows the log-odds; `card["on_log_odds"]` counts them.

    Records are dropped once their figures are taken. With a folder `out` the figures are kept after every `batch_size`
    texts, and `resume` goes on from there to the very same table. `watch(texts done, cost)` is called once before the
    model runs over the texts and then after every batch.
    """
    folder = None if out is None else checked_folder(Path(out), WHAT, resume=resume, finished=CARD)
    for name, number, least in (("batch_size", batch_size, 1), ("top", top, 1), ("seed", seed, 0)):
        check_number(name, number, least)
    model, texts = model_and_texts(model, texts, limit, data)
    given = texts_of(texts)
    tokenized = [_tokens(model, text, number, truncate) for number, text in enumerate(given)]
    references = named_methods(against)
    wanted = named_methods(methods) if methods is not None else _reading_methods()
    asked = _join_methods(wanted, references)
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
        "fingerprint": fingerprint_of(given),
        "methods": list(asked),
        "against": list(references),
        "layers": None if question.layers is None else list(question.layers),
        "batch_size": batch_size,
        "top": top,
        "seed": seed,
        "truncate": truncate,
        "blank_out_follows": FOLLOWED["quantity"],
    }
    store = Store(None if folder is None else folder / UNFINISHED, WHAT, recipe)
    if (finished := find_finished(folder, recipe, store)) is not None:
        return finished
    lengths = [len(tokens) for tokens in tokenized]
    running = sum(map(runs_model, asked.values()))
    cost = price(lengths, len(asked) + len(BASELINES), running, "gradients" in options)
    tell = None if watch is None else lambda done, _: watch(done, cost)
    figures = _figures(model, given[0], question, options)
    parts = list(_measure_parts(model, given, question, options, figures, store, tell))
    values, lengths_of_texts = (torch.cat([part[name] for part in parts]).numpy() for name in ("values", "lengths"))
    table = tabulate(figures, values, lengths_of_texts, seed)
    on_log_odds = sum(int(part["on_log_odds"].sum()) for part in parts)
    result = Trust(table, {**recipe, "left_out": left_out, "on_log_odds": on_log_odds, "cost": str(cost)})
    if folder is not None:
        result.save(folder)
        store.clear()
    return result


def find_finished(folder: Path | None, recipe: Mapping[str, Any], store: Store) -> Trust | None:
    """The table that a folder holds already, if it was asked for in this way; what was kept meanwhile goes."""
    if folder is None or not (folder / CARD).exists():
        return None
    finished = Trust.load(folder)
    check_recipe(folder, WHAT, finished.card, recipe)
    store.clear()
    return finished


def _measure_parts(
    model: Model,
    texts: Sequence[Text],
    question: Question,
    options: Mapping[str, Any],
    figures: Sequence[Figure],
    store: Store,
    watch: Callable[[int, int], None] | None,
) -> Iterator[dict[str, Tensor]]:
    """The figures of all texts and how many tokens each has, batch by batch.

    A batch is recorded by itself, so that it does not matter at which batch a run begins: sums in a padded batch
    depend on its other texts in the last digit.
    """

    def measure(batch: Sequence[Text], start: int) -> dict[str, Tensor]:
        rows, lengths, on_log_odds = [], [], []
        for offset, record in enumerate(model.records(batch, question.batch_size, **options)):
            found, moved = figures_of(record, model, question, start + offset)
            rows.append([found[figure] for figure in figures])
            lengths.append(len(record.key_tokens))
            on_log_odds.append(moved)
        return {
            "values": torch.tensor(rows, dtype=torch.float64),
            "lengths": torch.tensor(lengths),
            "on_log_odds": torch.tensor(on_log_odds),
        }

    return store.in_parts(texts, question.batch_size, measure, lambda text: text, watch)


def _figures(model: Model, text: Text, question: Question, options: Mapping[str, Any]) -> list[Figure]:
    """Which figures every text has, as the first shows."""
    return list(figures_of(model.record(text, **options), model, question, 0)[0])


def _every_stack(model: Model, text: Text, truncate: bool) -> dict[str, str]:
    """What asks an encoder-decoder for all its stacks, by which methods follow its answer to the source."""
    if "cross" not in getattr(model, "stacks", ()):
        return {}
    try:
        model.record(text, stack="all", truncate=truncate)
    except BadInput:
        return {}
    return {"stack": "all"}


def _way_to_record(
    model: Model, text: Text, methods: Mapping[str, Method], truncate: bool
) -> tuple[dict[str, Any], dict[str, str], int]:
    """The cheapest way to record that serves the most methods; those it does not serve, and why; the model's layers."""
    tried: list[tuple[dict[str, Any], dict[str, str], int]] = []
    stacks = _every_stack(model, text, truncate)
    for way in WAYS_TO_RECORD:
        options = {**way, **stacks, "truncate": truncate}
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


def _join_methods(methods: Mapping[str, Method], references: Mapping[str, Method]) -> dict[str, Method]:
    """Methods and references, each once; a reference is a method like the others, held against the other references."""
    if not references:
        raise BadInput("There is nothing to hold the methods against: give at least one reference.")
    for name, method in {**methods, **references}.items():
        if name in BASELINES or methods.get(name, method) is not method:
            raise BadInput(f"Two methods are called {name!r}: give each function a name of its own.")
    return {**methods, **references}


@checked
def texts_of(texts: list[Text]) -> list[Text]:
    """The texts, if there are any and each is one."""
    if not texts:
        raise BadInput("There are no texts to measure on.")
    return texts


def _tokens(model: Model, text: Text, number: int, truncate: bool) -> tuple[str, ...]:
    """The tokens of a text, so that one the model cannot read is reported before anything runs."""
    try:
        return model.tokens(text, truncate)
    except BadInput as error:
        raise BadInput(f"Text {number} (counted from 0): {error}") from error


def _checked_layers(layers: Sequence[int], depth: int) -> tuple[int, ...]:
    for layer in layers:
        if not -depth <= layer < depth:
            raise BadInput(f"There is no layer {layer}: this model has {depth}, counted from 0.")
    return tuple(layer % depth for layer in layers)
