"""Classification: of texts (Tables 2, 3, 5, 7, 10 and 11), and of sequences with a keyword (Figure 7, section 6.1)."""

from collections.abc import Container, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ...engine import Store, load_checkpoint, save_checkpoint
from ...errors import BadInput
from ...lab.data import WORD_LEVEL, ClassifiedTexts, PackedTexts, toy_polarity, word_level_statistics
from ...lab.data.classified import Row
from ...lab.data.packed import load_texts, save_texts
from ...lab.data.word_level import word_level_texts
from ...lab.models import RecurrentClassifier
from ...lab.models.bag_of_words import logistic_words
from ...lab.train import Measurement
from ...lab.vocabulary import Vocabulary
from ...lab.word_vectors import word_vectors
from .agreements import REFERENCE, SECOND, compare_classifiers
from .brought import brought_texts
from .paper import BROUGHT, ClassificationScale, DataScale, LocalityScale
from .snapshots import SnapshotProbe, look_at
from .training import (
    BAG_RATE,
    LOOKED_AT,
    SLOW_BAG_RATE,
    STAGE,
    Rows,
    all_runs,
    checkpoints,
    learn,
    mean_loss,
    rows_of_probes,
    stage_store,
    train_bag,
    train_recurrent,
    with_seed,
)

# The data sets, and vectors to begin with: prepared once and kept for all workers.


SEED = 0
FILE, VECTORS = "texts.safetensors", "vectors.safetensors"
PARTS = {"validation": "dev", "training": "test"}
"""What is looked at, and where the prepared data set has it."""


def read_texts(folder: Path, name: str, scale: ClassificationScale, place: str | Path | None) -> ClassifiedTexts:
    """The data set at this scale, read now or as it is kept: `train` to learn from, `dev` to look at.

    Its `test` are the training texts that are looked at too. `place` is where the data sets are.
    """
    if (folder / name / FILE).exists():
        return load_texts(folder / name / FILE)
    whole = replace(toy_polarity(), name=name) if scale.toy else _whole(name, place)
    return cut(whole, scale.data[name], ends=0 if scale.toy else 1)


def _whole(name: str, place: str | Path | None) -> ClassifiedTexts:
    return brought_texts(name, place) if name in BROUGHT else WORD_LEVEL[name](place)


def keep_texts(
    own: Path, scale: ClassificationScale, texts: ClassifiedTexts, vectors: str | Path | None = None
) -> ClassifiedTexts:
    """The texts as all runs read them, kept in a folder of their own with the `vectors` that its words begin with."""
    sizes = {each: value for each, value in asdict(scale).items() if each != "data"}
    begin = {"vectors": None if vectors is None else Path(vectors).name}
    Store(own, STAGE, {**asdict(scale.data[own.name]), **sizes, **begin}).begin()
    if not (own / FILE).exists():
        save_texts(own / FILE, texts)
    wanted = vectors is not None and not (own / VECTORS).exists()
    if wanted and (found := word_vectors(vectors, texts.vocabulary.words)) is not None:
        numbers, rows = (torch.from_numpy(places) for places in found.places(texts.vocabulary))
        save_checkpoint(own / VECTORS, {"numbers": numbers, "vectors": found.table[rows]})
    return load_texts(own / FILE)


def embedding_width(own: Path, otherwise: int) -> int:
    """How wide the vectors of words are: as those that are kept in the folder of a data set, if there are any."""
    return int(load_checkpoint(own / VECTORS)["vectors"].shape[1]) if (own / VECTORS).exists() else otherwise


@torch.no_grad()
def begin_with_vectors(embeddings: nn.Embedding, own: Path) -> None:
    """Let the words that have a vector in this folder begin as that; all others stay as they are."""
    if (own / VECTORS).exists():
        given = load_checkpoint(own / VECTORS)
        embeddings.weight[given["numbers"]] = given["vectors"]


def cut(texts: ClassifiedTexts, scale: DataScale, ends: int = 1) -> ClassifiedTexts:
    """Fewer and shorter texts, as the scale says; words that are rare in what is left are unknown.

    `ends` is how many special tokens a text has on either side; all have one on either side afterwards.
    """
    made = word_level_texts(
        texts.name,
        texts.classes,
        _rows(texts, texts.train, scale.train, scale.longest, ends),
        _rows(texts, texts.dev, scale.validation, scale.longest, ends),
    )
    return replace(made, test=_sample(made.train, scale.sample))


def _rows(texts: ClassifiedTexts, part: PackedTexts, most: int | None, longest: int | None, ends: int) -> list[Row]:
    sample = _sample(part, most)
    words = (texts.vocabulary.decode(text[ends : len(text) - ends].tolist())[:longest] for text in sample)
    return list(zip(words, sample.labels.tolist(), strict=True))


def _sample(texts: PackedTexts, most: int | None) -> PackedTexts:
    """So many of the texts, drawn at random, in their order."""
    if most is None or most >= len(texts):
        return texts
    numbers = np.sort(np.random.default_rng(SEED).permutation(len(texts))[:most])
    every = list(texts)
    return PackedTexts.of([every[number].tolist() for number in numbers], texts.labels[numbers].tolist())


# The runs on texts: each trained once, with its snapshots in a folder of its own.


SLOW = ("imdb", "amazon", "yelp")
"""The data sets for which the authors' proxy learns more slowly."""


@dataclass(frozen=True)
class ClassificationRun:
    """One training on one data set: "learned", "uniform" or "frozen" attention, or the "proxy" or "logistic"."""

    data: str
    kind: str
    seed: int

    @property
    def name(self) -> str:
        """What its files are called."""
        return f"{self.kind}-{self.seed}"


def run_classification(
    folder: Path,
    scale: ClassificationScale,
    texts: Mapping[str, ClassifiedTexts],
    engine: str = "local",
    vectors: str | Path | None = None,
) -> dict[str, pd.DataFrame]:
    """The tables agreements, contexts, performance and table_9; what is in `folder` already is not trained again.

    Performance has a row for each run, part and checkpoint, and one for each proxy and regression; table_9 has the
    statistics of the `texts`, which are as `read_texts` gives them. `vectors` are those that words begin with; random
    ones by default.
    """
    if not texts:
        return {}
    folder = folder.resolve()  # the workers of a cluster stand in folders of their own
    texts = {name: keep_texts(folder / name, scale, each, vectors) for name, each in texts.items()}
    runs = [run for name in texts for run in runs_of(name, scale)]
    rows = all_runs("Classifiers", partial(partial, do_classification_run, folder, scale), runs, engine)
    tables = [_compare(folder / name, scale.data[name], each) for name, each in texts.items()]
    agreements, contexts = (pd.concat(each, ignore_index=True) for each in zip(*tables, strict=True))
    return {
        "agreements": agreements,
        "contexts": contexts,
        "performance": pd.DataFrame(rows),
        "table_9": pd.concat([word_level_statistics(each) for each in texts.values()], ignore_index=True),
    }


def runs_of(data: str, scale: ClassificationScale) -> list[ClassificationRun]:
    """All runs of a data set: what others are compared with first."""
    return [
        ClassificationRun(data, "learned", REFERENCE),
        ClassificationRun(data, "uniform", SECOND),
        *(ClassificationRun(data, "learned", seed) for seed in _other_seeds(scale.data[data])),
        ClassificationRun(data, "proxy", REFERENCE),
        ClassificationRun(data, "logistic", REFERENCE),
        ClassificationRun(data, "frozen", SECOND),
    ]


def _other_seeds(scale: DataScale) -> range:
    return range(SECOND, SECOND + scale.others)


def do_classification_run(folder: Path, scale: ClassificationScale, run: ClassificationRun) -> Rows:
    """What was seen of a run, trained now, continued, or kept from before."""
    own = folder / run.data
    train = {"proxy": _train_proxy, "logistic": _fit_logistic}.get(run.kind, _train_model)
    return Store(own, STAGE, {}).grow(run.name, partial(train, own, scale, run))


def _train_model(own: Path, scale: ClassificationScale, run: ClassificationRun, checkpoint: Path) -> Rows:
    texts = load_texts(own / FILE)
    steps = scale.data[run.data].steps
    model = with_seed(
        run.seed,
        lambda: RecurrentClassifier(
            texts.vocabulary,
            width=embedding_width(own, scale.width),
            hidden=scale.hidden,
            attention_width=scale.attention_width,
            attention="uniform" if run.kind == "uniform" else "learned",
            classes=texts.classes,
        ),
    )
    begin_with_vectors(model.embeddings, own)
    if run.kind == "frozen":
        for name, weights in model.named_parameters():  # all but those of the attention (A.6)
            weights.requires_grad_(name.startswith("attention"))
    # Δ is asked of the first two runs with learned attention alone
    with_saliency = run.kind == "learned" and run.seed in (REFERENCE, SECOND)
    quantities = ("attention", "lexical", "saliency") if with_saliency else ("attention", "lexical")
    probes = [
        SnapshotProbe(
            name, own / run.name / name, checkpoints(steps), partial(look_at, model, getattr(texts, part), quantities)
        )
        for name, part in PARTS.items()
    ]
    details = {"data": run.data, "kind": run.kind}
    log = train_recurrent(model, texts.train, checkpoint, seed=run.seed, steps=steps, probes=probes, details=details)
    parts = [row["probe"] for row in log if "probe" in row]
    return [{**asdict(run), "part": part, **row} for part, row in zip(parts, rows_of_probes(log), strict=True)]


def _train_proxy(own: Path, scale: ClassificationScale, run: ClassificationRun, checkpoint: Path) -> Rows:
    texts = load_texts(own / FILE)
    epochs, rate, width = scale.proxy_epochs, proxy_rate(run.data), scale.proxy_width
    model = train_bag(texts, checkpoint, seed=run.seed, epochs=epochs, rate=rate, width=width)
    save_checkpoint(_weights_file(own, run), {"weights": model.word_weights()[:, 0]})
    return [{**asdict(run), "loss": mean_loss(model, texts.dev)}]


def proxy_rate(data: str) -> float:
    """The proxy's learning rate on a data set."""
    return SLOW_BAG_RATE if data in SLOW else BAG_RATE


def _fit_logistic(own: Path, _scale: ClassificationScale, run: ClassificationRun, _checkpoint: Path) -> Rows:
    texts = load_texts(own / FILE)
    found = logistic_words(texts.train, texts.dev, len(texts.vocabulary))
    save_checkpoint(_weights_file(own, run), {"weights": torch.from_numpy(found.weights)})
    return [{**asdict(run), "strength": found.strength, "accuracy": found.accuracy}]


def _weights_file(own: Path, run: ClassificationRun) -> Path:
    """Where the word weights of a proxy or a logistic regression are."""
    return own / f"{run.name}-words.safetensors"


def word_values(own: Path, run: ClassificationRun, texts: PackedTexts) -> Float[Tensor, "row position"]:
    """β of a model that knows words alone, as a logit for the right class, at every position."""
    weights: Float[Tensor, " word"] = load_checkpoint(_weights_file(own, run))["weights"].float()
    ids, real = texts.padded(np.arange(len(texts)))
    signs = torch.from_numpy(2 * texts.labels - 1)[:, None]
    return (weights[torch.from_numpy(ids)] * signs).masked_fill(~torch.from_numpy(real), 0.0)


def _compare(own: Path, scale: DataScale, texts: ClassifiedTexts) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The agreements of one data set on both parts, and what they are worth."""
    agreements, contexts = [], []
    runs = [ClassificationRun(own.name, kind, REFERENCE) for kind in ("proxy", "logistic")]
    for name, attribute in PARTS.items():
        part: PackedTexts = getattr(texts, attribute)
        words = {run.kind: word_values(own, run, part) for run in runs}
        positive = float(part.labels.mean())
        guessing = max(positive, 1 - positive)
        table, worth = compare_classifiers(own, name, _other_seeds(scale), words, guessing)
        agreements.append(table.assign(data=own.name, part=name))
        contexts.append(worth.assign(data=own.name, part=name))
    return pd.concat(agreements, ignore_index=True), pd.concat(contexts, ignore_index=True)


# Locality: where the keyword is known under uniform attention, early and late in training. Endless sequences in two
# classes, of which the positive ones hold a keyword, once.


SPECIAL = {"pad": "[PAD]", "unk": "[UNK]"}
"""A sequence begins and ends with words, so that its last state is the state at a word."""


@dataclass(frozen=True)
class KeywordTask:
    """Sequences of `length` words out of `words`, drawn with replacement; the keyword is "1".

    >>> ids, classes, places = KeywordTask(length=5, words=4).batch(6, seed=0, step=0)
    >>> tuple(ids.shape), classes.tolist(), bool((places[classes == 0] == -1).all())
    ((6, 5), [1, 1, 1, 0, 0, 0], True)
    """

    length: int = 40
    words: int = 40

    def __post_init__(self) -> None:
        if self.length < 1 or self.words < 2:
            raise BadInput(f"A sequence has a word and a language two: length={self.length}, words={self.words}.")

    @property
    def vocabulary(self) -> Vocabulary:
        """The words, named by their numbers; the keyword is the first."""
        return Vocabulary([str(number + 1) for number in range(self.words)], special=SPECIAL)

    def batch(
        self, rows: int, seed: int, step: int
    ) -> tuple[Int[Tensor, "row place"], Int[Tensor, " row"], Int[Tensor, " row"]]:
        """Sequences, their classes (half of them 1, first), and the keyword's place, -1 where there is none.

        They depend on the seed and the step alone. Words that are not the keyword are uniform over the others, which is
        what the paper's rejection of sequences gives: given how often the keyword appears, the others stay uniform.
        """
        random = np.random.default_rng([seed, step])
        ids = random.integers(1, self.words, (rows, self.length)) + len(SPECIAL)
        classes = (np.arange(rows) < rows - rows // 2).astype(np.int64)
        places = np.where(classes == 1, random.integers(self.length, size=rows), -1)
        positive = np.flatnonzero(classes)
        ids[positive, places[positive]] = len(SPECIAL)
        return torch.from_numpy(ids), torch.from_numpy(classes), torch.from_numpy(places)


def run_locality(folder: Path, scale: LocalityScale, engine: str = "local") -> dict[str, pd.DataFrame]:
    """The table locality, with a row for each seed and step: accuracy, loss, and four log-odds on positive sequences.

    `keyword` and `after` are at the keyword's place and one behind it (γ_l* and γ_l*+1), `mean` is over all places, and
    `last` is at the last one (γ_L). Sequences whose keyword stands in the last place, or before it, are left out, so
    that the four are four places.
    """
    make_worker = partial(partial, do_locality_run, folder.resolve(), scale)
    return {"locality": pd.DataFrame(all_runs("Locality", make_worker, list(range(scale.seeds)), engine))}


def do_locality_run(folder: Path, scale: LocalityScale, seed: int) -> Rows:
    """What was seen of a seed, trained now, continued, or kept from before."""
    return stage_store(folder, scale).grow(f"{seed}", partial(_find_keyword, scale, seed))


@dataclass(frozen=True, eq=False)
class KeywordLogits:
    """γ of positive sequences at four places, and how well the classes are told apart."""

    model: RecurrentClassifier
    scale: LocalityScale
    seed: int
    steps: Container[int]
    name: str = field(default="keyword", init=False)

    def __call__(self, step: int) -> Mapping[str, float]:
        """Means over fresh sequences."""
        task = KeywordTask(self.scale.length, self.scale.words)
        ids, classes, places = task.batch(self.scale.sequences, self.seed, LOOKED_AT + step)
        odds = self.model.word_logits(ids)
        # Attention is uniform, so that the answer is the mean over places (Eq. 8).
        logits = odds.mean(1, keepdim=True)
        inside = (classes == 1) & (places < self.scale.length - 2)
        odds, places = odds[inside], places[inside, None]
        seen = {
            "keyword": odds.gather(1, places),
            "after": odds.gather(1, places + 1),
            "mean": odds,
            "last": odds[:, -1],
        }
        return {
            "accuracy": float((self.model.predicted(logits) == classes).float().mean()),
            "loss": float(self.model.loss(logits, classes)),
            **{name: float(values.mean()) for name, values in seen.items()},
        }


def _find_keyword(scale: LocalityScale, seed: int, checkpoint: Path) -> Rows:
    task = KeywordTask(scale.length, scale.words)
    model = with_seed(
        seed,
        lambda: RecurrentClassifier(
            task.vocabulary, width=scale.hidden, hidden=scale.hidden, bidirectional=False, attention="uniform"
        ),
    )

    def measure(step: int) -> Measurement:
        ids, classes, _ = task.batch(scale.batch, seed, step)
        logits = model(ids)
        return Measurement(model.loss(logits, classes), float((model.predicted(logits) == classes).float().mean()))

    recipe = {
        "task": "keyword",
        "steps": scale.steps,
        "batch": scale.batch,
        "hidden": scale.hidden,
        "sequences": [scale.length, scale.words],
    }
    probes = [KeywordLogits(model, scale, seed, scale.looks)]
    log = learn(model, measure, checkpoint, seed=seed, steps=scale.steps, recipe=recipe, probes=probes)
    return [{"seed": seed, **row} for row in rows_of_probes(log)]
