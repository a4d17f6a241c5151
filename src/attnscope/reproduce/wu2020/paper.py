"""The paper: its title and figures, how much is run at each scale, and what may be chosen."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

TITLE = "Wu, Nguyen & Ong (2020), Structured Self-Attention Weights Encode Semantics in Sentiment Analysis"
ACCURACY, CONCORDANCE = 0.475, 0.54
"""SST-5 (Table 1, in percent there), and the mean concordance per transcript of SEND."""
T_QUADRATIC = {"sst": 7.04, "send": 6.21}
"""t of the quadratic term for layer-wise tracing (Fig. 5)."""
P_GRADIENT = {"sst": 0.19, "send": 0.28}
SPEARMAN = {"sst": 0.80, "send": 0.37}
"""Between layer-wise tracing and gradients, over words."""


PAPER_HAD = (
    "the same model with GloVe vectors of 300 dimensions; 8,544 sentences of SST, 500 to a step, up to 200 epochs (the "
    "best near 100), seeds not named; SEND beside it; words matched with the raters by hand where need be"
)
"""What the paper had, to be held against what is run here."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The data, the seeds, and how long each model is trained. A setting that is not named is the paper's."""

    toy: bool = False
    """Whether sentences, stories and raters are our own toys."""
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)
    epochs: int = 200
    patience: int = 200
    """How many epochs in a row may bring nothing better before a training ends."""
    sentences_per_step: int = 500
    story_epochs: int = 200
    story_patience: int = 200
    stories_per_step: int = 25
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of the model, where they are not the paper's."""


SCALES = {
    "smoke": Scale(
        toy=True,
        seeds=(1,),
        epochs=3,
        patience=3,
        sentences_per_step=50,
        story_epochs=3,
        story_patience=3,
        stories_per_step=5,
        settings={"layers": 2, "heads": 2, "head_width": 8, "width": 16},
    ),
    "cpu": Scale(epochs=100, patience=15, story_epochs=40, story_patience=10),
    "paper": Scale(),
}


@dataclass(frozen=True)
class Options:
    """What may be chosen."""

    corpus: Annotated[str | None, "A folder laid out like SST, in place of it."] = None
    send: Annotated[Path | None, "The folder of SEND, which its authors give on request."] = None
    vectors: Annotated[
        str | None,
        "Word vectors: a GloVe file, glove-50 (the package), trained-300 (made of IMDB and wikitext) or scratch.",
    ] = None
    lexicon: Annotated[str | None, "What raters say of words: warriner, vader or a file."] = None
    probabilities: Annotated[str, "How classes are learned: sigmoid as in the authors' code, or softmax."] = "sigmoid"
    engine: Annotated[str, "local, or cores or ray, which spread the models to train over workers."] = "local"
    data: Annotated[Path | None, "Where the data sets are, before $ATTNSCOPE_DATA."] = None
