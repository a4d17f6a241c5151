"""attnscope shows, traces, measures and trains attention.

Names are imported when they are first used, so that `import attnscope` is quick and does not import torch.
"""

from importlib import import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import views as views
    from .answering import answer as answer
    from .answering import trust_answers as trust_answers
    from .attribution import METHODS as METHODS
    from .attribution import Answer as Answer
    from .attribution import Comparison as Comparison
    from .attribution import attribute as attribute
    from .attribution import blank_out as blank_out
    from .attribution import compare as compare
    from .attribution import effective as effective
    from .attribution import flow as flow
    from .attribution import gradient as gradient
    from .attribution import gradient_rollout as gradient_rollout
    from .attribution import gradient_x_input as gradient_x_input
    from .attribution import integrated_gradients as integrated_gradients
    from .attribution import layerwise_tracing as layerwise_tracing
    from .attribution import minimum_cut as minimum_cut
    from .attribution import phrases as phrases
    from .attribution import raw as raw
    from .attribution import rollout as rollout
    from .attribution import value_weighted as value_weighted
    from .capture import InstrumentedModel as InstrumentedModel
    from .capture import Tokenized as Tokenized
    from .capture import instrument as instrument
    from .capture import load as load
    from .errors import BadInput as BadInput
    from .evaluation import LexiconStudy as LexiconStudy
    from .evaluation import Mistakes as Mistakes
    from .evaluation import Trust as Trust
    from .evaluation import mistakes as mistakes
    from .evaluation import trust as trust
    from .evaluation.ratings import lexicon as lexicon
    from .explaining import Explanation as Explanation
    from .explaining import explain as explain
    from .record import AttentionRecord as AttentionRecord
    from .record import Segments as Segments
    from .record import TokenScores as TokenScores
    from .record import VectorRecord as VectorRecord
    from .report import write_mistakes as write_mistakes
    from .report import write_report as write_report
    from .reproduce import EXPERIMENTS as EXPERIMENTS
    from .statistics import STATISTICS as STATISTICS
    from .surveying import Survey as Survey
    from .surveying import survey as survey
    from .syntax import Sentence as Sentence
    from .views import VIEWS as VIEWS
    from .views import View as View

_HOME = {
    "Answer": "attribution",
    "AttentionRecord": "record",
    "BadInput": "errors",
    "Comparison": "attribution",
    "EXPERIMENTS": "reproduce",
    "Explanation": "explaining",
    "InstrumentedModel": "capture",
    "LexiconStudy": "evaluation",
    "METHODS": "attribution",
    "Mistakes": "evaluation",
    "STATISTICS": "statistics",
    "Segments": "record",
    "Sentence": "syntax",
    "Survey": "surveying",
    "TokenScores": "record",
    "Tokenized": "capture",
    "Trust": "evaluation",
    "VIEWS": "views",
    "VectorRecord": "record",
    "View": "views",
    "answer": "answering",
    "attribute": "attribution",
    "blank_out": "attribution",
    "compare": "attribution",
    "effective": "attribution",
    "explain": "explaining",
    "flow": "attribution",
    "gradient": "attribution",
    "gradient_rollout": "attribution",
    "gradient_x_input": "attribution",
    "instrument": "capture",
    "integrated_gradients": "attribution",
    "layerwise_tracing": "attribution",
    "lexicon": "evaluation",
    "load": "capture",
    "mistakes": "evaluation",
    "minimum_cut": "attribution",
    "phrases": "attribution",
    "raw": "attribution",
    "rollout": "attribution",
    "survey": "surveying",
    "trust": "evaluation",
    "trust_answers": "answering",
    "value_weighted": "attribution",
    "write_mistakes": "report",
    "write_report": "report",
}
"""The public names, and the room each lives in."""
_ROOMS = ("views",)
"""Rooms that are entered by their own name: `attnscope.views.head(record)`."""

__all__ = [*_HOME, *_ROOMS, "__version__"]  # noqa: PLE0604 - the names above, strings all


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version("attnscope")
    if name in _ROOMS:
        return import_module(f".{name}", __name__)
    if name not in _HOME:
        raise AttributeError(f"attnscope has no {name!r}: it has {', '.join(sorted(_HOME))}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
