"""What heads do over a corpus: one statistic in one file, each a measurement that accumulates."""

from typing import Any

from .batch import Batch, Frame
from .dependency_alignment import DependencyAlignment
from .dependency_by_distance import DependencyByDistance
from .dependency_type import DependencyType
from .distance import Distance
from .entropy import Entropy
from .exemplars import Exemplars
from .layer import LayerAttention, observer
from .null_attention import NullAttention
from .part_of_speech import PartOfSpeech
from .patterns import Patterns
from .reading import Null, Reading, checked_null
from .role_exemplars import RoleExemplars
from .roles import FAMILIES, NEEDED, role_symbol, roles
from .statistic import PARSE, TAGS, Accumulator, Caption, Statistic, merge_all, with_errors
from .variability import Variability

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
"""Every statistic by its name. `roles` is told from the tables of these."""

ROLES, ROLE_EXEMPLARS = "roles", "role_exemplars"

__all__ = [
    "FAMILIES",
    "NEEDED",
    "PARSE",
    "ROLES",
    "ROLE_EXEMPLARS",
    "STATISTICS",
    "TAGS",
    "Accumulator",
    "Batch",
    "Caption",
    "Frame",
    "LayerAttention",
    "Null",
    "Reading",
    "RoleExemplars",
    "Statistic",
    "checked_null",
    "merge_all",
    "observer",
    "role_symbol",
    "roles",
    "with_errors",
]
