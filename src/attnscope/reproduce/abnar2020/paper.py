"""The paper: its title and tables as published, how much is run at each scale, and what may be chosen."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

TITLE = "Abnar & Zuidema (2020), Quantifying Attention Flow in Transformers"
Row = dict[int, tuple[float, float]]
"""The mean and the SD over sentences, by layer from 1."""


def _row(means: str, deviations: str, layers: str = "123456") -> Row:
    figures = zip(map(float, means.split()), map(float, deviations.split()), strict=True)
    return dict(zip(map(int, layers), figures, strict=True))


TABLE_1 = {
    "raw": _row(".69 .10 -.11 -.09 .20 .29", ".27 .43 .49 .52 .45 .39"),
    "rollout": _row(".32 .38 .51 .62 .70 .71", ".26 .27 .26 .26 .25 .24"),
    "flow": _row(".32 .44 .70 .70 .71 .70", ".26 .29 .25 .22 .22 .22"),
}
"""Agreement with blank-out."""
TABLE_2 = {
    "raw": _row(".53 .16 -.06 .00 .24 .46", ".33 .38 .42 .47 .40 .35"),
    "rollout": _row(".22 .27 .39 .47 .53 .54", ".31 .32 .32 .32 .32 .31"),
    "flow": _row(".22 .31 .54 .61 .60 .61", ".31 .34 .32 .28 .28 .28"),
}
"""Agreement with input gradients."""
TABLE_3 = {
    "raw": _row(".12 .09 .08 .09", ".21 .21 .20 .21", "1356"),
    "rollout": _row(".11 .12 .13 .13", ".19 .21 .21 .20", "1356"),
    "flow": _row(".11 .11 .12 .14", ".19 .21 .22 .21", "1356"),
}
"""Agreement with input gradients in DistilBERT fine-tuned on SST-2; the paper shows four of six layers."""


# How much is run at each scale. A setting that is not named is the paper's.


PAPER_ENCODER = "distilbert-base-uncased"
"""What the classifier of Table 3 was fine-tuned from."""


@dataclass(frozen=True, kw_only=True)
class HeadScale:
    """How much a masked-LM head learns from, and for how long."""

    steps: int = 600
    reviews: int = 2_000
    """Of IMDB; beside them stands all of WikiText-2 that is trained on."""
    held_out: int = 400
    """Blocks that it is measured on, of texts it has not learned from."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The text trained on, the seeds, the steps of each training and the sentences that are looked at."""

    text: str = "linzen"
    """"grammar", the shipped one; "text", present-tense verbs found in real text; "linzen", the file of the paper."""
    seeds: tuple[int, ...] = (0, 1, 2)
    steps: int = 150_000
    sentences: int = 2_000
    """Sentences of Tables 1 and 2, of each kind: in their natural mix, and chosen for their attractors."""
    reviews: int = 100
    """Sentences of Table 3."""
    encoder: str | None = PAPER_ENCODER
    """What the classifier of Table 3 is fine-tuned from; the shipped model stands in for it where there is none."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of the agreement model, where they are not the paper's."""
    blanked: float = 0.0
    """The share of words that training replaces by [UNK]; the authors replace none."""
    head: HeadScale = field(default_factory=HeadScale)
    """How long the masked-LM head of Figure 4 is trained."""


SCALES = {
    "smoke": Scale(
        text="grammar",
        seeds=(0,),
        steps=120,
        sentences=40,
        reviews=12,
        encoder=None,
        settings={"heads": 2, "width": 32},
        blanked=0.02,
        head=HeadScale(steps=2, reviews=2, held_out=4),
    ),
    "cpu": Scale(text="text", steps=4_000, reviews=500, blanked=0.02),
    "paper": Scale(),
}
PARSER = "en_core_web_sm"


@dataclass(frozen=True)
class Options:
    """What may be chosen."""

    model: Annotated[Any, "A masked language model, for Figure 4."] = None
    head_on: Annotated[str | None, "For Figure 4 without one: an encoder that a masked-LM head is trained on."] = None
    encoder: Annotated[str | None, "What Table 3's classifier is fine-tuned from: a hub name or a folder."] = None
    corpus: Annotated[str | None, "A file that `attnscope data build agreement` wrote, or Linzen's .tsv."] = None
    data: Annotated[Path | None, "Where the data sets are, before $ATTNSCOPE_DATA."] = None
    parser: Annotated[str, "The spaCy model that parses plain text."] = PARSER
    limit: Annotated[int | None, "Parse only so many texts of each source."] = None
