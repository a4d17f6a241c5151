"""What watches a training while it goes on, and what drives the scores of words in attention classifiers."""

from .dot_products import dot_products as dot_products
from .group_terms import GroupTerms as GroupTerms
from .group_terms import group_terms as group_terms
from .probe import Probe as Probe
from .score_terms import ScoreTerms as ScoreTerms
from .score_terms import score_terms as score_terms
from .watched_terms import WatchedTerms as WatchedTerms
