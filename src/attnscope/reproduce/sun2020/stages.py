"""The stages of the experiment, each kept in a folder of its own: every cell of Table 2, and what drives the scores."""

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.optim import Adagrad, Optimizer

from ...engine import UNFINISHED, Store, engine
from ...lab.batches import TextBatches
from ...lab.data import CLASSIFIED, ClassifiedTexts, PackedTexts, synthetic_polarity, toy_polarity
from ...lab.models import AttentionClassifier
from ...lab.probes import Probe, WatchedTerms
from ...lab.probes.score_terms import NAMES, penalty_value
from ...lab.sweep import Recipe, RunSettings, TrainedRun, begin_runs, sweep_groups, train_epoch
from ...lab.train import LogRow, Measurement, Rate, train
from ...lab.word_vectors import check_vectors
from ...progress import items_done
from ..experiment import Attempt
from .evidence import Evidence, signs_of
from .next_steps import contextual_words, pretrained_words
from .paper import L2, LARGE, MODERATE, PENALTIES, SCALINGS, VARIANTS, Options, Scale
from .sign_claims import MADE_UP, REAL
from .words import NEGATIVE, NEUTRAL, POSITIVE, kinds_of, model_of, word_table

SETS = "data sets"
"""The name of what `prepare` has read."""
Rows = list[dict[str, Any]]


def prepare(attempt: Attempt[Scale, Options]) -> dict[str, Any]:
    """Read the data sets; the recipe says which vectors and encoder there are."""
    options = attempt.options
    engine(options.engine)  # a wrong name is refused before anything is written, and so are vectors that are not there
    check_vectors(options.vectors)
    attempt.results[SETS] = {name: data_set(name, attempt.scale, options.data) for name in attempt.scale.seeds}
    vectors = None if options.vectors is None else str(options.vectors)
    return {"scale": attempt.scale_name, "vectors": vectors, "encoder": options.encoder}


def data_set(name: str, scale: Scale, place: str | Path | None) -> ClassifiedTexts:
    """The data set of that name; at a scale for trials it is made up."""
    if scale.toy:
        return replace(toy_polarity(), name=name)
    found = CLASSIFIED[name](place)
    if scale.longest is None:
        return found
    train, dev, test = (shorten(part, scale.longest) for part in (found.train, found.dev, found.test))
    return replace(found, train=train, dev=dev, test=test)


def shorten(texts: PackedTexts, longest: int) -> PackedTexts:
    """The first words of each text, no more than so many.

    >>> shorten(PackedTexts.of([[5, 6, 7], [8]], [1, 0]), 2).tokens.tolist()
    [5, 6, 8]
    """
    places = np.arange(len(texts.tokens)) - np.repeat(texts.starts[:-1], texts.lengths)
    starts = np.concatenate([[0], np.cumsum(np.minimum(texts.lengths, longest))])
    return PackedTexts(texts.tokens[places < longest], starts, texts.labels)


def evidence_of(attempt: Attempt[Scale, Options]) -> Evidence:
    """What the claims are judged on."""
    accuracies, words = attempt["sweeps"]
    signs = signs_of_both(attempt["terms"], attempt["made_up"].curves)
    return Evidence(accuracies, words, attempt["made_up"].ends, attempt["skewed"], signs)


def signs_of_both(terms: pd.DataFrame, made_up: pd.DataFrame) -> pd.DataFrame:
    """The signs of the terms on real and on made-up data; with a penalty, other terms stand beside them."""
    real = terms.assign(run=[f"λ = {row.scaling:g}, seed {row.seed}" for row in terms.itertuples()])
    free = made_up[made_up["penalty"] == 0]
    free = free.assign(run=[f"data {row.set}, seed {row.seed}" for row in free.itertuples()])
    return pd.concat([signs_of(real, REAL), signs_of(free, MADE_UP)], ignore_index=True)


def run_next_steps(attempt: Attempt[Scale, Options]) -> tuple[pd.DataFrame | None, pd.DataFrame | None]:
    """The words of both steps beyond the paper, as far as there are vectors and an encoder."""
    scale, options, folder = attempt.scale, attempt.options, attempt.folder
    data, seeds = attempt[SETS]["sst"], scale.seeds["sst"]
    rare = pretrained_words(folder / "pretrained", data, seeds, scale, options.vectors)
    if options.encoder is None:
        return rare, None
    return rare, contextual_words(folder / "contextual", data, seeds, scale, options.encoder)


# The sweep of Table 2: every λ, variant and seed of a data set; accuracies and the words' scores are what is kept.


def run_sweeps(attempt: Attempt[Scale, Options]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The accuracies of all runs, and the words' scores in some of them.

    Those are every λ of each variant, and dot products at a large λ with a penalty on |V·W| of several strengths.
    """
    found = []
    for name, seeds in attempt.scale.seeds.items():
        for variant in VARIANTS:
            l2 = 0.0 if variant == "dot" else L2
            runs = [RunSettings(variant, scaling, seed, l2) for seed in seeds for scaling in SCALINGS]
            found.append(_sweep(attempt, name, variant, runs, _has_words))
    seeds = attempt.scale.seeds["sst"]
    runs = [RunSettings("dot", LARGE, seed, penalty=strength) for seed in seeds for strength in PENALTIES]
    found.append(_sweep(attempt, "sst", "penalty", runs, lambda _data, _run: True))
    return (
        pd.concat([accuracies for accuracies, _ in found], ignore_index=True),
        pd.concat([words for _, words in found if len(words)], ignore_index=True),
    )


def _has_words(data: str, run: RunSettings) -> bool:
    """Whether the words of a run are looked at: of dot products on SST all, elsewhere those that figures show."""
    if run.variant == "dot":
        return data == "sst" or run.scaling in {MODERATE, LARGE}
    return data == "sst" and run.scaling == MODERATE


def _sweep(
    attempt: Attempt[Scale, Options],
    name: str,
    what: str,
    runs: Sequence[RunSettings],
    has_words: Callable[[str, RunSettings], bool],
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Train these runs on a data set, or read what was kept of them; checkpoints go when all are done."""
    data: ClassifiedTexts = attempt[SETS][name]
    place, width = attempt.folder / "sweeps" / f"{name}-{what}", attempt.scale.width
    store = Store(place, "sweep", {})
    rows, words = store.find("accuracies"), store.find_table("words")
    if rows is None or words is None:
        training = attempt.scale.training(runs[0].variant)
        # the workers of a cluster stand in folders of their own
        checkpoints = (place / UNFINISHED).resolve()
        with items_done(place.name) as bar:
            if attempt.options.engine == "local":  # a worker elsewhere cannot reach the bar
                epochs, seen = training["epochs"] * len({run.seed for run in runs}), count(1)
                training["watch"] = lambda *_: bar(next(seen), epochs)
            found = sweep_groups(
                data, runs, on=attempt.options.engine, checkpoints=checkpoints, width=width, **training
            )
        kinds = kinds_of(data)
        tables = [_words_of(data, run, width, kinds) for run in found if has_words(name, run.settings)]
        words = store.keep_table("words", pd.concat(tables, ignore_index=True) if tables else pd.DataFrame())
        rows = [{"data": name, "epochs": len(run.dev_accuracy), **run.row()} for run in found]
        store.keep("accuracies", rows)
        shutil.rmtree(checkpoints, ignore_errors=True)
    return pd.DataFrame(rows), words.assign(data=name)


def _words_of(data: ClassifiedTexts, run: TrainedRun, width: int, kinds: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """The words of a run with its settings, and V·W of the weights they are from."""
    product = run.context_dot_output[run.best_epoch - 1]
    table = word_table(data, model_of(data, run, width), kinds)
    return table.assign(**asdict(run.settings), context_dot_output=float(product[0]) if len(product) == 1 else None)


# The supplement's study on made-up sentences: which vectors come to point the same way, and what moves V·W.
#
# Plain descent at a rate of .015, 200 sentences to a step, λ = 10, W from U(-1, 1), dropout of a half.


RATE, BATCH = 0.015, 200
STEADY = 1e8
"""Adagrad divides a step by √Σg² + ε. Beside an ε this large the sum is nothing, and with a rate ε times as large what
is left is plain descent."""
SWAPPED = 0.05
"""The share of sentences of data II with polar words of the other class; the paper has "a few"."""
PENALTY = 1e-3
"""c of c |V·W|, as it stands in the authors' notebook, switched off."""
SHARES = (0.5, 0.6, 0.7, 0.8, 0.9)
"""Of positive sentences: the paper has five ratios and does not say which."""
BEGINNINGS = (1, 2, 3, 4)
LOOKS = 50
"""How often a run is looked at."""


@dataclass(frozen=True, eq=False)
class MadeUpRun:
    """One run on made-up sentences, the name by which what was seen of it is kept, and what tells it from others."""

    name: str
    data: ClassifiedTexts
    settings: RunSettings
    epochs: int
    width: int
    labels: dict[str, Any]


@dataclass(frozen=True, eq=False)
class MadeUp:
    """How each run on made-up sentences ends, and what was seen of it on the way, as `curves` has it."""

    ends: pd.DataFrame
    curves: pd.DataFrame


def run_made_up(attempt: Attempt[Scale, Options]) -> MadeUp:
    """Both data sets with and without a penalty."""
    scale, runs = attempt.scale, []
    for name, swapped in (("I", 0.0), ("II", SWAPPED)):
        data = synthetic_polarity(swapped=swapped, **scale.made_up)
        for penalty in (0.0, PENALTY):
            for seed in scale.seeds["sst"]:
                settings = RunSettings("dot", MODERATE, seed, penalty=penalty)
                labels = {"set": name, "penalty": penalty, "seed": seed}
                part = f"{name}-{penalty:g}-{seed}"
                runs.append(MadeUpRun(part, data, settings, scale.made_up_epochs, scale.width, labels))
    seen = _see_all(attempt.folder, runs, "Made-up sentences")
    points = [run.labels | row for run, rows in zip(runs, seen, strict=True) for row in curves(rows)]
    return MadeUp(_ends(runs, seen), pd.DataFrame(points))


def run_skewed(attempt: Attempt[Scale, Options]) -> pd.DataFrame:
    """How runs end on data with more positive than negative sentences, from several beginnings."""
    scale, runs = attempt.scale, []
    for share in SHARES:
        data = synthetic_polarity(positive_share=share, **scale.made_up)
        for seed in BEGINNINGS:
            settings, labels = RunSettings("dot", MODERATE, seed), {"share": share, "seed": seed}
            part = f"share-{share:g}-{seed}"
            runs.append(MadeUpRun(part, data, settings, scale.skew_epochs, scale.width, labels))
    return _ends(runs, _see_all(attempt.folder, runs, "Skewed sentences"))


def _ends(runs: Iterable[MadeUpRun], seen: Iterable[Rows]) -> pd.DataFrame:
    return pd.DataFrame([run.labels | rows[-1] for run, rows in zip(runs, seen, strict=True)]).drop(columns="probe")


def _see_all(folder: Path, runs: Sequence[MadeUpRun], title: str) -> list[Rows]:
    """What was seen of each run, trained now or before; those that are left go side by side."""
    store = Store(folder / "made_up", "study", {})
    with ThreadPoolExecutor(torch.get_num_threads()) as pool, items_done(title) as watch:
        found = []
        for number, rows in enumerate(pool.map(lambda run: store.once(run.name, lambda: train_made_up(run)), runs)):
            watch(number + 1, len(runs))
            found.append(rows)
        return found


def train_made_up(run: MadeUpRun) -> Rows:
    """Train a run, and look at it from time to time."""
    recipe = Recipe(run.width, run.epochs, BATCH, RATE * STEADY, 0.0, 0.5, "float32", None, epsilon=STEADY)
    states = begin_runs(run.data, [run.settings], recipe)
    dice = np.random.default_rng(run.settings.seed)
    states[0].weights["output.weight"][:] = dice.uniform(-1, 1, (1, run.width))
    looks = {round(look * run.epochs / LOOKS) for look in range(LOOKS + 1)}
    rows = [_look_at(run, 0, states[0].weights)]
    for epoch in range(run.epochs):
        train_epoch(run.data, epoch, recipe, states)
        if epoch + 1 in looks:
            rows.append(_look_at(run, states[0].step, states[0].weights))
    return rows


def _look_at(run: MadeUpRun, step: int, weights: dict[str, np.ndarray]) -> dict[str, Any]:
    """The terms and dot products of a model with these weights."""
    model = AttentionClassifier(run.data.vocabulary, scaling=MODERATE, classes=run.data.classes, width=run.width)
    model.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    kinds = {kind: _numbers(run.data, kind) for kind in (POSITIVE, NEGATIVE, NEUTRAL)}
    probe = WatchedTerms(model, run.data.train, kinds, penalty=run.settings.penalty)
    return {"step": step, "probe": probe.name, **probe(step)}


def _numbers(data: ClassifiedTexts, kind: str) -> np.ndarray:
    """The words of a kind, which have it in their names."""
    return np.array([number for number, word in enumerate(data.vocabulary.tokens) if word.startswith(kind)])


# What drives the scores of words while a classifier learns from real text: the terms A to F over the first epochs
# (sections 4.1 and 4.2). `sweep` trains many runs at once and shows nothing until they are done; one run by PyTorch can
# be watched.


TERM_EPOCHS, TERM_LOOKS = 8, 40


def run_terms(attempt: Attempt[Scale, Options]) -> pd.DataFrame:
    """Rows of scaling (λ), seed, step, quantity, name, group and value."""
    store, points = Store(attempt.folder / "terms", "study", {}), []
    for seed in attempt.scale.seeds["sst"]:
        for scaling in (MODERATE, LARGE):
            work = partial(_watch_terms, attempt[SETS]["sst"], scaling, seed, attempt.scale)
            seen = curves(store.grow(f"terms-{scaling:g}-{seed}", work))
            points += [{"scaling": scaling, "seed": seed, **row} for row in seen]
    return pd.DataFrame(points)


def _watch_terms(data: ClassifiedTexts, scaling: float, seed: int, scale: Scale, checkpoint: Path) -> Rows:
    """What the probe sees of a run that is trained now."""
    steps = TERM_EPOCHS * -(-len(data.train) // 100)
    looks = {round(look * steps / TERM_LOOKS) for look in range(TERM_LOOKS + 1)}
    kinds = {kind: numbers for kind, numbers in kinds_of(data).items() if kind in {POSITIVE, NEGATIVE, NEUTRAL}}
    _, log = train_watched(
        data,
        lambda: AttentionClassifier(data.vocabulary, scaling=scaling, classes=data.classes, width=scale.width),
        checkpoint,
        epochs=TERM_EPOCHS,
        seed=seed,
        probes=lambda model: [WatchedTerms(model, data.train, kinds, steps=looks)],
    )
    return [row for row in log if "probe" in row]


CURVES = {name: name for name in NAMES} | {"polarity": "polarity score", "attention": "attention score"}
"""What a probe sees of words, and what it is called in a table of curves."""


def falling_rate(rate: float, decay: float) -> Rate:
    """The authors' rate on real data: it falls with the number of updates."""
    return lambda step: rate / (1 + step * decay)


def adagrad(model: nn.Module) -> Optimizer:
    """The authors' optimizer on real data; the loop sets the rate."""
    return Adagrad(model.parameters())


def train_watched(
    data: ClassifiedTexts,
    make: Callable[[], AttentionClassifier],
    checkpoint: Path,
    *,
    epochs: int,
    rate: Rate = falling_rate(0.02, 0.001),  # noqa: B008 - a function that never changes
    batch: int = 100,
    seed: int = 0,
    penalty: int | float = 0.0,
    probes: Callable[[AttentionClassifier], Sequence[Probe]] = lambda _model: (),
) -> tuple[AttentionClassifier, list[LogRow]]:
    """The model that `make` makes, trained on all epochs, and its log with what the probes saw.

    `penalty` is c of c |V·W|. The same seed makes the same model; training continues from a checkpoint.
    """
    batches = TextBatches(data.train, batch, seed)
    steps = epochs * len(batches)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = make()

        def measure(step: int) -> Measurement:
            ids, real, classes = batches[step]
            logits = model(ids, real)
            right = float((model.predicted(logits) == classes).float().mean())
            added = penalty_value(model.output.weight @ model.context, penalty, "absolute")
            return Measurement(model.loss(logits, classes) + added, right)

        log = train(
            model,
            measure,
            rate,
            steps,
            recipe={
                "task": "polarity",
                "data": data.name,
                "texts": len(data.train),
                "seed": seed,
                "steps": steps,
                "batch": batch,
                "penalty": penalty,
                "scaling": model.settings.scaling,
            },
            checkpoint=checkpoint,
            optimizer=adagrad,
            longest_gradient=float("inf"),
            probes=probes(model),
        )
    return model.eval(), log


def curves(log: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What probes saw, as rows of step, quantity, name and value, ready for `attnscope.views.learning`.

    >>> curves([{"step": 5, "probe": "score_terms", "A_positive": 0.5, "V·W": 2.0}])[0]
    {'step': 5, 'quantity': 'A', 'name': 'positive words', 'group': 'positive', 'value': 0.5}
    """
    rows = []
    for row in log:
        for seen, value in row.items() if "probe" in row else ():
            term, _, kind = seen.partition("_")
            if term in CURVES and kind:
                place = {"quantity": CURVES[term], "name": f"{kind} words", "group": kind}
            elif seen in {"V·W", "|V|", "|W|"}:
                place = {"quantity": seen, "name": "", "group": ""}
            elif "-" in seen:
                place = {"quantity": "dot products", "name": seen, "group": ""}
            else:
                continue
            rows.append({"step": row["step"], **place, "value": value})
    return rows
