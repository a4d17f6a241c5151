"""attnscope shows, traces, measures and trains attention.

Names are imported when they are first used, so that `import attnscope` is quick and does not import torch.
"""

from importlib import import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .attribution import METHODS as METHODS
    from .attribution import attribute as attribute
    from .attribution import raw as raw
    from .capture import InstrumentedModel as InstrumentedModel
    from .capture import load as load
    from .errors import BadInput as BadInput
    from .record import AttentionRecord as AttentionRecord
    from .record import TokenScores as TokenScores
    from .report import write_report as write_report

_HOME = {
    "AttentionRecord": "record",
    "BadInput": "errors",
    "InstrumentedModel": "capture",
    "METHODS": "attribution",
    "TokenScores": "record",
    "attribute": "attribution",
    "load": "capture",
    "raw": "attribution",
    "write_report": "report",
}
"""The public names, and the room each lives in."""

__all__ = [*_HOME, "__version__"]  # noqa: PLE0604 - the names above, strings all


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version("attnscope")
    if name not in _HOME:
        raise AttributeError(f"attnscope has no {name!r}: it has {', '.join(sorted(_HOME))}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
