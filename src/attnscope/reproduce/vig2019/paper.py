"""The paper: its title and figures, what is run at each scale, and what may be chosen."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from ...progress import Watch

SHORT_TITLE = "Vig & Belinkov (2019)"
TITLE = f"{SHORT_TITLE}, Analyzing the Structure of Attention in a Transformer Language Model"
CURVE = {1: 0.42, 5: 0.07, 10: 0.02}
"""How likely two tokens are linked, by their distance."""
DISTANCE, REACH, LEAST_WITHIN = 3.89, 18, 0.988
"""The mean distance of linked tokens, and the share within reach less one point of a hundred."""
SPREAD, NULL, LENGTH = 3.6, 0.57, 27.7
"""The deviation of the mean distance over heads, the mean null attention, and the tokens of a text."""
WITH_ENTROPY, WITH_ALIGNMENT = 0.61, -0.73
"""Pearson's r over heads of the mean distance with both."""
EXAMPLES = {
    "same": "layer 0: alignment 0.04",
    "evenness": "layer 0: alignment 0.10",
    "repeated": "layer 5, head 1: distance 14.2, entropy 0.41",
}
"""Fig. 4, by the column that is greatest."""
SET_UP = (
    "GPT-2 small (12 layers of 12 heads) as published; 10,000 sentences of Wikipedia, 27.7 tokens in each, parsed by "
    "spaCy"
)
"""What the paper had in place of what is run here."""
HEADS = ((10, 10), (11, 2), (11, 10))
"""The heads of Tables 1 to 3, in GPT-2 small."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """What is run where nothing else is chosen."""

    model: str
    corpus: str
    limit: int | None
    splits: tuple[str, ...] | None
    """Those of a named data set; None means all."""


SOME_SPLITS = ("dev", "valid", "test")
SCALES = {
    "smoke": Scale(model="demo", corpus="demo", limit=200, splits=SOME_SPLITS),
    "cpu": Scale(model="gpt2", corpus="ud_ewt", limit=None, splits=SOME_SPLITS),
    "paper": Scale(model="gpt2", corpus="ud_ewt", limit=10_000, splits=None),
}


@dataclass(frozen=True)
class Options:
    """What may be chosen; the model, the corpus and the limit replace those of the scale."""

    model: Annotated[Any, "Another model than the paper's: a hub name or a folder."] = None
    weights: Annotated[str | None, "What the report says of the weights, where they are not as published."] = None
    corpus: Annotated[Any, "Another corpus, as survey takes it."] = None
    parser: Annotated[Any, "The spaCy model that parses plain text."] = None
    limit: Annotated[
        int | None, "Read only so many sentences, texts to parse or documents, spread over the corpus."
    ] = None
    sentences: Annotated[
        int | None, "Read only so many sentences, spread over what is parsed: the paper has 10,000."
    ] = None
    by_genre: Annotated[bool, "One reproduction for each genre of the corpus, and one that compares them."] = False
    documents: Annotated[bool, "Whole documents in place of sentences, up to 250 words at a time."] = False
    null: Annotated[str | None, "What to leave out as null attention: first, special, sinks or none."] = None
    engine: Annotated[str, "local, cores (processes here) or ray (many machines)."] = "local"
    data: Annotated[Path | None, "Where the data sets are, before $ATTNSCOPE_DATA."] = None
    watch: Watch | None = None
    """Is told how far the survey is; without one, a terminal shows it."""
