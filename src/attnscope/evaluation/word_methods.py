"""One run over the texts that sums what each method gives each word and each head gives tagged words; it can go on."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from ..attribution import flow, gradient, layerwise_tracing, raw, rollout
from ..attribution.choosing import Method, named_methods, score
from ..engine import UNFINISHED, Store, check_recipe, checked_folder, fingerprint_of
from ..errors import BadInput, check_number
from ..record import AttentionRecord, Model, Text
from ..record.target import SUM
from .tables import read_card, read_table, write_card, write_table
from .word_tally import HeadTally, WordTally, scale_scores, words_and_tokens

# The methods that score words, each with the record it reads, and what of them a model can serve.


RecordKind = Literal["plain", "sum", "prediction"]
RECORDED: dict[RecordKind, dict[str, Any]] = {
    "plain": {},
    "sum": {"gradients": True, "target": SUM, "quantity": "probability"},
    "prediction": {"gradients": True, "quantity": "probability"},
}
"""The kinds of record: without gradients, with those of the sum of all outcomes, and of the predicted one."""
ROUNDING = 1e-5
"""A gradient of the sum that is a smaller share of the predicted logit's is rounding."""


@dataclass(frozen=True)
class WordMethod:
    """A method, and the kinds of record that it may be given, the cheapest first."""

    method: Method
    kinds: tuple[RecordKind, ...]


_squared = partial(gradient, reduce="squared")

WORD_METHODS = {
    "layerwise_tracing": WordMethod(layerwise_tracing, ("plain",)),
    "gradient_of_sum": WordMethod(_squared, ("sum",)),
    "gradient_of_prediction": WordMethod(_squared, ("prediction",)),
    "rollout": WordMethod(rollout, ("plain",)),
    "flow": WordMethod(flow, ("plain",)),
    "raw": WordMethod(raw, ("plain",)),
}
"""The methods by default. `gradient_of_sum` is the baseline of Wu, Nguyen & Ong 2020 (Eq. 13 and their code): the
squared gradient of all outcomes' probabilities added up; `gradient_of_prediction` takes the predicted outcome alone."""


@dataclass(frozen=True)
class Plan:
    """Which methods are scored on which kind of record, what is left out and why, and the heads of the model."""

    passes: Mapping[RecordKind, Mapping[str, Method]]
    """The methods by the kind of record; the model runs once for each kind."""
    left_out: Mapping[str, str]
    heads: tuple[int, ...]

    @property
    def methods(self) -> list[str]:
        """The methods that are scored, in the order of the passes."""
        return [name for methods in self.passes.values() for name in methods]


def chosen_methods(methods: Sequence[str | Method] | None) -> dict[str, WordMethod]:
    """The methods by name: of WORD_METHODS, of METHODS, or functions of a record; those of WORD_METHODS by default."""
    if methods is None:
        return dict(WORD_METHODS)
    chosen: dict[str, WordMethod] = {}
    for method in methods:
        if isinstance(method, str) and method in WORD_METHODS:
            found = {method: WORD_METHODS[method]}
        else:
            found = {name: WordMethod(own, ("plain", "prediction")) for name, own in named_methods([method]).items()}
        if chosen.keys() & found.keys():
            raise BadInput(f"The method {next(iter(found))!r} is given twice.")
        chosen |= found
    if not chosen:
        raise BadInput("There is no method to score the words by: name at least one.")
    return chosen


def plan_methods(
    model: Model, text: Text, methods: Mapping[str, WordMethod], record: Mapping[str, Any], *, all_needed: bool
) -> Plan:
    """What the model serves of these methods, as tried on one text; `record` are options of every record.

    Methods that read any record are scored on one that has to be taken anyway. If `all_needed`, a method that is not
    served raises what it lacks.
    """
    taken: dict[RecordKind, AttentionRecord] = {"plain": model.record(text, **record)}
    serving: dict[str, RecordKind] = {}
    left_out: dict[str, str] = {}
    for name, method in methods.items():
        lacking = ""
        for kind in method.kinds:
            try:
                if kind not in taken:
                    taken[kind] = _checked_record(model, text, kind, record)
                score(taken[kind], name, method.method, model)
            except BadInput as error:
                lacking = lacking or str(error)
            else:
                serving[name] = kind
                break
        if name not in serving:
            if all_needed:
                raise BadInput(lacking)
            left_out[name] = lacking
    if not serving:
        raise BadInput(f"No method can be scored on this model: {next(iter(left_out.values()))}")
    return Plan(_passes(serving, methods), left_out, taken["plain"].heads)


def records_of(
    model: Model, texts: Sequence[Text], plan: Plan, batch_size: int, record: Mapping[str, Any]
) -> Iterator[dict[RecordKind, AttentionRecord]]:
    """The records of each text, one of each kind in the plan."""
    runs = [model.records(texts, batch_size, **RECORDED[kind], **record) for kind in plan.passes]
    for found in zip(*runs, strict=True):
        yield dict(zip(plan.passes, found, strict=True))


def _checked_record(model: Model, text: Text, kind: RecordKind, record: Mapping[str, Any]) -> AttentionRecord:
    """A record of this kind, if the model gives one and its gradients are more than rounding."""
    taken = model.record(text, **RECORDED[kind], **record)
    if kind == "sum":
        of_logit = model.record(text, gradients=True, **record)
        if _length(taken) <= ROUNDING * _length(of_logit):
            raise BadInput(
                "The probabilities of this model always sum to one, so that their sum has no gradient:"
                " use gradient_of_prediction."
            )
    return taken


def _length(record: AttentionRecord) -> float:
    return 0.0 if record.embedding_gradients is None else float(record.embedding_gradients.norm())


def _passes(
    serving: Mapping[str, RecordKind], methods: Mapping[str, WordMethod]
) -> dict[RecordKind, dict[str, Method]]:
    """The methods of each kind of record; those that read any record join one with gradients if there is one."""
    kinds = [kind for kind in RECORDED if kind in serving.values()]
    host: RecordKind = next((kind for kind in kinds if kind != "plain"), "plain")
    passes: dict[RecordKind, dict[str, Method]] = {kind: {} for kind in kinds if kind != "plain" or host == "plain"}
    for name, kind in serving.items():
        passes[host if kind == "plain" else kind][name] = methods[name].method
    return passes


TALLY = "tally"
BATCHES_IN_PART = 8
"""What is measured between two writings to the disk: so much a kill may cost."""
WHAT = "measurement of words"

Watch = Callable[[int, int], None]
"""Is called with how many texts are done, and of how many."""


@dataclass(frozen=True)
class Inquiry:
    """What is asked of a model and its texts."""

    texts: list[Text]
    methods: Sequence[str | Method] | None
    batch_size: int
    truncate: bool
    recipe: Mapping[str, Any]
    """All of it in plain data: who goes on must ask the same again."""
    tags: tuple[str, ...]
    tag_of: Callable[[str], str | None]


@dataclass(frozen=True)
class WordSums:
    """The sums for each word and each head, and the methods that the model does not serve, with why."""

    words: WordTally
    heads: HeadTally
    left_out: Mapping[str, str]


def inquire(
    model: Model,
    texts: Iterable[Text],
    methods: Sequence[str | Method] | None,
    *,
    minimum_count: int,
    batch_size: int,
    truncate: bool,
    more: Mapping[str, Any] | None = None,
    tags: tuple[str, ...] = (),
    tag_of: Callable[[str], str | None] = lambda word: None,  # noqa: ARG005 - without tags, no word has one
) -> Inquiry:
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
        "fingerprint": fingerprint_of(given),
        "methods": list(chosen_methods(methods)),
        "all_methods": methods is None,
        "minimum_count": minimum_count,
        "batch_size": batch_size,
        "truncate": truncate,
        **(more or {}),
    }
    return Inquiry(given, methods, batch_size, truncate, recipe, tags, tag_of)


def measure_words(model: Model, inquiry: Inquiry, store: Store, watch: Watch | None) -> WordSums:
    """The sums over all texts, batch by batch; those that the store has are not computed again.

    A batch is recorded by itself and sums are added in the order of the texts, so that it does not matter at which part
    a run begins.
    """
    options = {"truncate": inquiry.truncate}
    needed = inquiry.methods is not None
    plan = plan_methods(model, inquiry.texts[0], chosen_methods(inquiry.methods), options, all_needed=needed)
    words, heads = WordTally(plan.methods), HeadTally(inquiry.tags, plan.heads)
    done = 0
    if (kept := store.find(TALLY)) is not None:
        words, heads, done = WordTally.from_state(kept["words"]), HeadTally.from_state(kept["heads"]), kept["done"]
    for start in range(done, len(inquiry.texts), inquiry.batch_size):
        if watch is not None:
            watch(start, len(inquiry.texts))
        batch = inquiry.texts[start : start + inquiry.batch_size]
        for text, records in zip(batch, records_of(model, batch, plan, inquiry.batch_size, options), strict=True):
            _add(words, heads, model, plan, inquiry, text, records)
        if store.folder is not None and (start // inquiry.batch_size + 1) % BATCHES_IN_PART == 0:
            through = start + len(batch)
            store.keep(TALLY, {"words": words.state(), "heads": heads.state(), "done": through})
    if watch is not None:
        watch(len(inquiry.texts), len(inquiry.texts))
    return WordSums(words, heads, plan.left_out)


def store_of(folder: Path | None, inquiry: Inquiry) -> Store:
    """Where the sums are kept while they grow."""
    return Store(None if folder is None else folder / UNFINISHED, WHAT, inquiry.recipe)


def _add(
    words: WordTally,
    heads: HeadTally,
    model: Model,
    plan: Plan,
    inquiry: Inquiry,
    text: Text,
    records: Mapping[RecordKind, AttentionRecord],
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
    words.update(names, scale_scores(np.stack(found), groups))
    if inquiry.tags and record.stack != "cross":
        heads.update(record, [inquiry.tag_of(name) for name in names], groups)


# Scores of words: the mean of what a method gives a word, over all places where it stands in some texts.


WORDS, CARD = "words.csv", "words.json"


def word_scores(
    model: Model,
    texts: Iterable[Text],
    methods: Sequence[str | Method] | None = None,
    *,
    minimum_count: int = 1,
    out: str | Path | None = None,
    resume: bool = False,
    batch_size: int = 16,
    truncate: bool = False,
    watch: Watch | None = None,
) -> pd.DataFrame:
    """The mean score of each word, over every place where it stands in the texts, by each method.

    Wu, Nguyen & Ong 2020, section 6.3. Special tokens are set aside, pieces of a word are summed, and scores go through
    a softmax over the words of the text, as in the paper; a column `…_length_corrected` has N times that for a text of
    N words, because a softmax over N words is about 1 / N. Words are in lower case; give texts as lists of words where
    the model's own idea of a word is not wanted.

    `methods` are names (of WORD_METHODS or METHODS) or functions of a record; by default WORD_METHODS as far as the
    model serves them. With a folder `out` the sums are kept while they grow, and `resume` goes on from there to the
    very same table. Memory grows with the number of different words, not of texts.
    """
    folder = None if out is None else checked_folder(Path(out), WHAT, resume=resume, finished=CARD)
    inquiry = inquire(model, texts, methods, minimum_count=minimum_count, batch_size=batch_size, truncate=truncate)
    store = store_of(folder, inquiry)
    if folder is not None and (folder / CARD).exists():
        check_recipe(folder, WHAT, read_card(folder / CARD), inquiry.recipe)
        return read_table(folder / WORDS)
    found = measure_words(model, inquiry, store, watch)
    table = found.words.table(minimum_count)
    if folder is not None:
        write_table(folder / WORDS, table)
        write_card(folder / CARD, {**inquiry.recipe, "left_out": dict(found.left_out)})
        store.clear()
    return table
