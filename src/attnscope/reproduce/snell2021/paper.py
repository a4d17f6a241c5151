"""The paper: its title and figures (in percent, as printed), how much is run at each scale, and what may be chosen."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

TITLE = "Snell, Zhong, Klein & Steinhardt 2021: Approximating How Single Head Attention Learns"
TITLES = {
    "imdb": "IMDB",
    "ag_news": "AG News",
    "20news": "20 NG",
    "sst": "SST",
    "amazon": "Amazon",
    "sms": "SMS",
    "multi30k": "Multi30k",
    "yelp": "Yelp",
    "iwslt14": "IWSLT14",
    "news_it_pt": "News It-Pt",
    "news_en_nl": "News En-Nl",
    "news_en_pt": "News En-Pt",
}
"""The data sets by their names in tables."""
BROUGHT = ("yelp", "iwslt14", "news_it_pt", "news_en_nl", "news_en_pt")
"""Those that their users must bring, because nobody may hand them on; they are run where their files are found."""


@dataclass(frozen=True)
class InPaper:
    """One row of a table: agreements with the baseline, and contextualised agreements with ξ*."""

    attention_uniform: float
    """A(α, β_uf)"""
    uniform_proxy: float
    """A(β_uf, β_px)"""
    saliency_uniform: float
    """A(Δ, β_uf)"""
    attention_lexical: float | None
    """A(α, β)"""
    chance: float
    """Â"""
    context_attention_uniform: float
    context_uniform_proxy: float
    context_saliency_uniform: float
    context_attention_lexical: float | None
    best: float
    """ξ*"""
    starred: tuple[str, ...] = ()
    """The pairs that the other runs never agree more than, so that their ξ is ξ*."""


TABLE_5: Mapping[str, InPaper] = {
    "imdb": InPaper(52.55, 81.60, 61.55, 60.35, 5.30, 86.81, 88.88, 86.81, 86.81, 89.55),
    "ag_news": InPaper(39.24, 55.13, 43.08, 48.13, 6.20, 93.54, 96.05, 94.32, 94.50, 96.05, ("uniform_proxy",)),
    "20news": InPaper(65.08, 41.33, 64.82, 63.07, 5.11, 91.16, 60.75, 84.57, 84.57, 94.22),
    "sst": InPaper(19.85, 33.57, 22.45, 25.33, 8.39, 78.16, 83.53, 78.16, 82.38, 83.53, ("uniform_proxy",)),
    "amazon": InPaper(52.02, 76.78, 49.68, 62.13, 5.80, 82.48, 90.38, 82.48, 88.07, 90.38, ("uniform_proxy",)),
    "multi30k": InPaper(31.02, 34.43, 27.06, 48.78, 7.11, 43.45, 43.45, 43.45, 48.58, 66.29),
    "yelp": InPaper(17.55, 75.38, 58.90, 35.00, 5.80, 90.39, 95.22, 95.31, 93.59, 96.20),
    "iwslt14": InPaper(35.75, 39.09, 27.69, 55.25, 6.52, 35.82, 35.82, 32.98, 44.09, 67.36),
    "news_it_pt": InPaper(29.13, 38.62, 25.45, 52.48, 6.17, 21.82, 25.06, 21.82, 25.06, 55.41),
    "news_en_nl": InPaper(35.53, 41.72, 29.15, 60.15, 6.36, 18.59, 23.21, 18.59, 26.79, 62.90),
    "news_en_pt": InPaper(35.90, 37.37, 30.23, 65.49, 6.34, 19.12, 19.12, 19.12, 27.85, 67.75),
}
"""Table 5, of which Table 2 shows a part without decimals: validation data, accuracy."""
TABLE_3: Mapping[str, InPaper] = {
    "imdb": InPaper(12.77, 33.31, 12.56, None, 0.0, 70.60, 80.50, 70.60, None, 89.55),
    "ag_news": InPaper(26.31, 36.65, 20.55, None, 0.0, 89.31, 93.54, 85.85, None, 96.05),
    "20news": InPaper(16.06, 22.03, 6.50, None, 0.0, 60.75, 60.75, 60.75, None, 94.22),
    "sst": InPaper(11.68, 31.43, 15.01, None, 0.0, 76.69, 83.53, 76.69, None, 83.53, ("uniform_proxy",)),
    "amazon": InPaper(15.21, 35.84, 9.33, None, 0.0, 69.91, 88.07, 57.36, None, 90.38),
    "multi30k": InPaper(7.89, 27.54, 3.93, None, 0.0, 22.94, 36.61, 22.94, None, 66.29),
}
"""Table 3: the same with Kendall's τ."""
TABLE_7: Mapping[str, InPaper] = {
    "imdb": InPaper(51.52, 80.10, 42.85, 64.88, 5.29, 90.40, 99.95, 90.40, 95.01, 99.95, ("uniform_proxy",)),
    "ag_news": InPaper(36.97, 53.95, 43.11, 46.89, 6.17, 93.57, 98.42, 94.63, 95.54, 98.42, ("uniform_proxy",)),
    "20news": InPaper(72.36, 38.69, 71.73, 69.47, 5.32, 100.0, 65.40, 100.0, 100.0, 100.0),
    "sst": InPaper(
        21.82, 29.35, 20.48, 28.50, 8.48, 97.72, 100.0, 84.11, 100.0, 100.0, ("uniform_proxy", "attention_lexical")
    ),
    "amazon": InPaper(51.95, 77.18, 40.15, 61.78, 5.91, 87.96, 99.58, 80.98, 91.09, 99.58, ("uniform_proxy",)),
    "multi30k": InPaper(32.89, 34.67, 28.36, 56.39, 7.21, 43.27, 43.27, 43.27, 51.97, 80.76),
}
"""Table 7: Table 5 on training data."""
TABLE_4 = {"multi30k": InPaper(8.68, 27.54, 4.24, None, 0.0, 1.99, 6.91, 1.99, None, 37.89)}
"""Table 4: Table 3 with BLEU for performance."""
TABLE_6 = {"multi30k": InPaper(30.77, 34.43, 27.24, 48.70, 7.19, 11.43, 11.43, 11.43, 16.41, 37.89)}
"""Table 6: Table 5 with BLEU for performance."""
TABLE_8 = {"multi30k": InPaper(32.89, 34.67, 28.36, None, 7.16, 11.87, 11.87, 11.87, None, 52.28)}
"""Table 8: Table 7 with BLEU for performance."""
TABLE_10 = {"imdb": 9.0, "yelp": 8.0, "ag_news": 17.0, "20news": 19.0, "sst": 14.0, "amazon": 15.0}
"""A(α, α_fr): attention learned while everything else is frozen."""
TABLE_11 = {
    "yelp": (74.0, 76.0),
    "imdb": (81.0, 84.0),
    "ag_news": (57.0, 58.0),
    "20news": (40.0, 45.0),
    "sst": (39.0, 46.0),
    "amazon": (53.0, 60.0),
}
"""A(β_uf, β_px) and A(β_uf, β_log)."""
OPTIMAL_AGREEMENT, OPTIMAL_BLEU, NETWORK_BLEU = 53.0, 38.2, 37.9
"""A.1: A(α_opt, β) on Multi30k, and the BLEU of the variant softmax(W(c + d)) against that of the main model."""


@dataclass(frozen=True)
class TextsInPaper:
    """A row of Table 9: median lengths of texts, how many there are, the vocabulary, and median lengths of outputs."""

    train_length: int
    train: int
    validation_length: int
    validation: int | None
    vocabulary: int
    train_target_length: int | None = None
    validation_target_length: int | None = None


TABLE_9: Mapping[str, TextsInPaper] = {
    "imdb": TextsInPaper(181, 25_000, 178, 4_000, 60_338),
    "ag_news": TextsInPaper(40, 60_000, 40, 3_800, 31_065),
    "20news": TextsInPaper(183, 1_197, 207, 796, 12_488),
    "sst": TextsInPaper(16, 5_130, 17, 1_421, 11_022),
    "amazon": TextsInPaper(71, 32_514, 72, 4_000, 37_110),
    "sms": TextsInPaper(13, 3_500, 13, None, 4_691),
    "multi30k": TextsInPaper(14, 29_000, 15, 1_014, 8_000, 14, 14),
}
"""Where the table gives 20 Newsgroups the vocabulary of AG News, this is the one that its number of parameters (A.8)
tells; the messages are described in A.9."""


# How much is run at each scale: the settings of every stage. A setting that is not named is the paper's.


TASKS = ("same", "choice", "mixture", "reordered")
"""Permutations of the same words, some of half as many again, one of two sets, and a fixed order of the output."""


@dataclass(frozen=True, kw_only=True)
class CopyingScale:
    """How many seeds each task has, and how long it is trained."""

    length: int = 40
    width: int = 256
    steps: int = 300
    reordered_steps: int = 300
    """Of the output in a fixed order, of which the paper speaks after 300."""
    batch: int = 128
    seeds: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(TASKS, 20))
    """Of each task with learned attention."""
    uniform_seeds: int = 5
    """Of the two tasks of section 6.2 with uniform attention."""
    every: int = 10
    sequences: int = 50


@dataclass(frozen=True, kw_only=True)
class LocalityScale:
    """How long the classifier of keywords is trained, and how often it is looked at."""

    length: int = 40
    words: int = 40
    hidden: int = 256
    steps: int = 10_000
    batch: int = 32
    seeds: int = 5
    every: int = 50
    early: int = 50
    """Up to this step it is looked at after every step, because what is local is lost soon."""
    sequences: int = 1_000

    @property
    def looks(self) -> frozenset[int]:
        """The steps at which it is looked at."""
        return frozenset(range(self.early)) | frozenset(range(0, self.steps + 1, self.every))


@dataclass(frozen=True, kw_only=True)
class TheoryScale:
    """How wide the proxies are whose first step is compared with theory."""

    widths: tuple[int, ...] = (64, 1_024, 16_384, 262_144)


@dataclass(frozen=True, kw_only=True)
class DataScale:
    """What is trained on one data set of texts; None takes all there is."""

    steps: int = 4_000
    others: int = 5
    """Runs beside the first that differ in their seed alone: B, C, … of the paper."""
    longest: int | None = None
    """Words of a text."""
    train: int | None = None
    validation: int | None = None
    sample: int | None = None
    """Training texts that are looked at."""


@dataclass(frozen=True, kw_only=True)
class ClassificationScale:
    """The data sets of texts in the order they are done, and the size of the models."""

    data: Mapping[str, DataScale]
    width: int = 300
    hidden: int = 256
    attention_width: int = 256
    proxy_epochs: int = 60
    proxy_width: int = 256
    toy: bool = False
    """Whether made-up sentences stand in for the data sets."""


@dataclass(frozen=True, kw_only=True)
class HeadsScale:
    """How long a sequence is, how many heads are tried, and how many are combined."""

    length: int = 40
    width: int = 256
    batch: int = 128
    steps: int = 200
    """Of a head alone."""
    combined_steps: int = 300
    """Of several heads together: at 150, where most of them still rise, nothing is decided."""
    contexts: tuple[str, ...] = ("mean", "sum")
    """How the contexts of several heads are put together: averaged, as in the authors' code, or summed (Eq. 21)."""
    data_seeds: int = 3
    """Each head is tried on so many streams of sequences."""
    wanted: int = 20
    """Of good heads and of bad ones; trying ends when there are so many of both."""
    tried: int = 400
    """At most so many heads are tried."""
    together: int = 8
    """Heads of a combined model."""
    pool: int = 30
    """Random heads are taken from the first so many, whatever they are."""
    combinations: int = 20
    """Of each kind."""
    sequences: int = 400
    every: int = 10
    wave: int = 10
    """So many heads are tried before their kinds are counted, the same on every engine."""


EARLY = (0, 50, 100, 500, 1000, 1500)
"""The first checkpoints of translation in the paper; then come every 2,000 steps."""


@dataclass(frozen=True, kw_only=True)
class TranslationScale:
    """How long the models are trained, and on how many sentences they are looked at."""

    steps: int = 36_260
    """20 epochs of Multi30k's 29,000 pairs in batches of 16."""
    epochs: Mapping[str, int] = field(default_factory=dict)
    """Of other data sets, in place of the steps."""
    every: int = 2_000
    """Checkpoints after the early ones, and looks for the best weights."""
    batch: int = 16
    bag_epochs: int = 30
    validation_pairs: int = 1_014
    training_pairs: int = 1_014
    beams: int = 5
    width: int = 256
    uniform_seeds: tuple[int, ...] = (2, 0)
    """Other than 0, that of run A, for the authors' way; 0 adds the same-seed variant."""
    iterations: tuple[int, ...] = (0, 5)
    """Steps of expectation maximisation in IBM Model 1; 0 is the paper's."""
    made_up: dict[str, int] | None = None
    """Sentences translated word for word, in place of Multi30k."""

    @property
    def checkpoints(self) -> list[int]:
        """The steps of snapshots, the last one included."""
        return sorted({*(step for step in EARLY if step <= self.steps), *range(0, self.steps, self.every), self.steps})


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The settings of every stage, under its name."""

    copying: CopyingScale
    locality: LocalityScale
    theory: TheoryScale
    classification: ClassificationScale
    heads: HeadsScale
    translation: TranslationScale

    @property
    def toy(self) -> bool:
        """Whether texts and pairs are made up."""
        return self.classification.toy


SST_SIZES = {"train": 5_130, "validation": 1_421}
"""The paper's; which of SST's 6,920 and 1,821 sentences these are it does not say, and they are drawn at random."""
SCALES = {
    "smoke": Scale(
        copying=CopyingScale(
            length=5,
            width=16,
            steps=20,
            reordered_steps=30,
            batch=8,
            seeds=dict.fromkeys(TASKS, 2),
            uniform_seeds=1,
            sequences=10,
        ),
        locality=LocalityScale(
            length=6, words=5, hidden=8, steps=20, batch=16, seeds=2, every=10, early=2, sequences=20
        ),
        theory=TheoryScale(widths=(64, 1_024)),
        classification=ClassificationScale(
            data={
                "sst": DataScale(steps=60, others=2, validation=30, sample=20),
                "20news": DataScale(steps=20, others=1, validation=30, sample=20),
            },
            width=16,
            hidden=8,
            attention_width=8,
            proxy_epochs=3,
            proxy_width=8,
            toy=True,
        ),
        heads=HeadsScale(
            length=3,
            width=8,
            batch=8,
            steps=10,
            combined_steps=10,
            data_seeds=2,
            wanted=2,
            tried=4,
            together=2,
            pool=3,
            combinations=2,
            sequences=20,
            every=5,
            wave=2,
        ),
        translation=TranslationScale(
            steps=10,
            every=5,
            batch=4,
            bag_epochs=1,
            validation_pairs=6,
            training_pairs=4,
            beams=2,
            width=12,
            iterations=(0, 1),
            made_up={"words": 12, "longest": 6, "train": 40, "dev": 8},
        ),
    ),
    "cpu": Scale(
        copying=CopyingScale(steps=200, uniform_seeds=2),
        locality=LocalityScale(steps=2_000, seeds=3, early=30, sequences=200),
        theory=TheoryScale(),
        classification=ClassificationScale(
            data={
                "sst": DataScale(sample=500, **SST_SIZES),
                "20news": DataScale(steps=500, others=2, longest=120, sample=400),
                "imdb": DataScale(steps=750, others=1, longest=100, train=10_000, validation=800, sample=300),
                "sms": DataScale(steps=750, others=4, longest=60, validation=1_000, sample=400),
                "ag_news": DataScale(steps=750, others=2, sample=400),
                "amazon": DataScale(steps=750, others=2, longest=80, sample=300),
                "yelp": DataScale(steps=750, others=2, longest=80, train=10_000, validation=800, sample=300),
            }
        ),
        # so small, within 150 steps some heads learn and some do not, as at length 40 within 200
        heads=HeadsScale(length=20, width=128, batch=64, steps=150, wanted=10, tried=60, sequences=200),
        translation=TranslationScale(
            steps=7_000, every=1_000, bag_epochs=15, validation_pairs=200, training_pairs=100, uniform_seeds=(2,)
        ),
    ),
    "paper": Scale(
        copying=CopyingScale(),
        locality=LocalityScale(),
        theory=TheoryScale(),
        classification=ClassificationScale(
            data={
                "sst": DataScale(sample=4_000, **SST_SIZES),
                **{name: DataScale(sample=4_000) for name in ("20news", "imdb", "sms", "ag_news", "amazon", "yelp")},
            }
        ),
        heads=HeadsScale(),
        translation=TranslationScale(
            epochs={"iwslt14": 30, "news_it_pt": 40, "news_en_nl": 40, "news_en_pt": 30},
        ),
    ),
}


@dataclass(frozen=True)
class Options:
    """What may be chosen. Paths are given as text too, and stages as one text or as a list."""

    stages: Annotated[Any, "Which to run now, with commas between them; those done before stay in the report."] = None
    vectors: Annotated[Any, "What words begin as: a GloVe file, glove-50 (the package) or scratch."] = None
    leave_out: Annotated[str, "Data sets that are not run, with commas between them; their claims say so."] = ""
    engine: Annotated[str, "local, or cores or ray, which spread the models to train over workers."] = "local"
    data: Annotated[Any, "Where the data sets are, before $ATTNSCOPE_DATA."] = None
