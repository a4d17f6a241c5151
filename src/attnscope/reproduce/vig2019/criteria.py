"""Every claim of the paper with the rule by which it is judged, in the order of the paper's sections."""

from ...surveying import Survey
from ..claims import Claim
from ..judging import Criterion, judged
from . import dependencies, distances, tags

ORDER = (
    "tags-with-specialised-head-to tags-with-specialised-head-from nouns-head-share propn-heads-deep det-heads-shallow "
    "punct-from-heads-deep from-shares-uniform-in-early-layers alignment-peaks-in-middle-layers "
    "alignment-peaks-where-distance-lowest subjects-deeper aux-cc-det-expl-neg-lower "
    "distance-greatest-in-deepest-layers distance-sd distance-entropy-correlate distance-alignment-anticorrelate "
    "far-but-sharp-head previous-token-head null-attention-share some-null-above-97 dependency-by-distance "
    "dependency-distance"
).split()

CRITERIA: tuple[Criterion[Survey], ...] = tuple(
    sorted((*tags.CRITERIA, *dependencies.CRITERIA, *distances.CRITERIA), key=lambda one: ORDER.index(one.id))
)


def claims_of(survey: Survey) -> list[Claim]:
    """The paper's claims, judged on a survey of whatever model and corpus."""
    return judged(CRITERIA, survey)
