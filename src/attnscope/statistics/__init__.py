"""What heads do over a corpus: ten statistics, each a measurement that accumulates, and the roles derived from them."""

from typing import Any

from .batch import Batch, Frame, Null, Reading, checked_null
from .exemplars import Exemplars
from .grammar import DependencyAlignment, DependencyByDistance, DependencyType, PartOfSpeech
from .roles import NEEDED, ROLE_KINDS, ROLE_SYMBOLS, RoleExemplars, RoleSymbol, role_symbol, roles
from .shape import Distance, Entropy, NullAttention, Patterns, Variability
from .showing import long_observer, observer
from .statistic import (
    PARSE,
    TAGS,
    Accumulator,
    Caption,
    LayerAttention,
    Need,
    Statistic,
    merge_all,
    with_errors,
)

STATISTICS: dict[str, type[Any]] = {
    "part_of_speech": PartOfSpeech,
    "dependency_alignment": DependencyAlignment,
    "dependency_type": DependencyType,
    "dependency_by_distance": DependencyByDistance,
    "distance": Distance,
    "entropy": Entropy,
    "variability": Variability,
    "null_attention": NullAttention,
    "patterns": Patterns,
    "exemplars": Exemplars,
}
"""Every statistic by its name. `roles` is derived from the tables of these."""

ROLES, ROLE_EXEMPLARS = "roles", "role_exemplars"

__all__ = [
    "NEEDED",
    "PARSE",
    "ROLES",
    "ROLE_EXEMPLARS",
    "ROLE_KINDS",
    "ROLE_SYMBOLS",
    "STATISTICS",
    "TAGS",
    "Accumulator",
    "Batch",
    "Caption",
    "Frame",
    "LayerAttention",
    "Need",
    "Null",
    "Reading",
    "RoleExemplars",
    "RoleSymbol",
    "Statistic",
    "checked_null",
    "long_observer",
    "merge_all",
    "observer",
    "role_symbol",
    "roles",
    "with_errors",
]
