"""What watches a training, what drives the scores of words, and how far two quantities agree."""

from .optimal_attention import optimal_attention as optimal_attention
from .saliency import Contextualised as Contextualised
from .saliency import contextualised as contextualised
from .saliency import saliency as saliency
from .score_terms import GroupTerms as GroupTerms
from .score_terms import Probe as Probe
from .score_terms import ScoreTerms as ScoreTerms
from .score_terms import WatchedTerms as WatchedTerms
from .score_terms import dot_products as dot_products
from .score_terms import group_terms as group_terms
from .score_terms import score_terms as score_terms
from .top_agreement import chance_agreement as chance_agreement
from .top_agreement import rank_agreement as rank_agreement
from .top_agreement import shuffled_agreement as shuffled_agreement
from .top_agreement import tied_rows as tied_rows
from .top_agreement import top_agreement as top_agreement
