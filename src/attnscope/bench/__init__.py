"""How fast, beside the peers: one benchmark per file, each a function that gives rows of figures."""

from collections.abc import Callable, Iterator

from .explain import measure_explain
from .figure import Figure as Figure
from .flow import measure_flow
from .long import measure_long
from .memory import measure_memory
from .rollout import measure_blank_out, measure_rollout
from .survey import measure_survey
from .sweep import measure_sweep
from .views import measure_views

BENCHMARKS: dict[str, Callable[[], Iterator[Figure]]] = {
    "flow": measure_flow,
    "rollout": measure_rollout,
    "blank_out": measure_blank_out,
    "explain": measure_explain,
    "long": measure_long,
    "memory": measure_memory,
    "survey": measure_survey,
    "sweep": measure_sweep,
    "views": measure_views,
}
"""Every benchmark by its name."""
