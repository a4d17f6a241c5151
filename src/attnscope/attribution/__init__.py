"""Which tokens did it use: one method per file, each a function from a record to token scores."""

from collections.abc import Callable

from ..record import TokenScores
from .answer import Answer as Answer
from .blank_out import blank_out as blank_out
from .choosing import attribute as attribute
from .comparing import Comparison as Comparison
from .comparing import compare as compare
from .effective import effective as effective
from .flow import flow as flow
from .gradient import gradient as gradient
from .gradient_rollout import gradient_rollout as gradient_rollout
from .gradient_x_input import gradient_x_input as gradient_x_input
from .integrated_gradients import integrated_gradients as integrated_gradients
from .layerwise_tracing import layerwise_tracing as layerwise_tracing
from .minimum_cut import minimum_cut as minimum_cut
from .phrases import Phrase as Phrase
from .phrases import phrases as phrases
from .raw import raw as raw
from .rollout import rollout as rollout
from .value_weighted import value_weighted as value_weighted

METHODS: dict[str, Callable[..., TokenScores]] = {
    "raw": raw,
    "rollout": rollout,
    "flow": flow,
    "layerwise_tracing": layerwise_tracing,
    "lat": layerwise_tracing,
    "effective": effective,
    "value_weighted": value_weighted,
    "gradient_rollout": gradient_rollout,
    "gradient": gradient,
    "gradient_x_input": gradient_x_input,
    "integrated_gradients": integrated_gradients,
    "blank_out": blank_out,
}
"""Every method by the name its paper gives it."""
