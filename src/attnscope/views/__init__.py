"""What can be looked at: each view a function that makes its payload, and a script of the same name that draws it."""

from collections.abc import Callable

from .answer import answer as answer
from .flow import flow as flow
from .head import head as head
from .image import image as image
from .learning import learning as learning
from .model import model as model
from .neuron import neuron as neuron
from .page import page_html as page_html
from .page import write_page as write_page
from .scores import scores as scores
from .survey import survey as survey
from .tracing import tracing as tracing
from .view import View as View

VIEWS: dict[str, Callable[..., View]] = {
    "answer": answer,
    "flow": flow,
    "head": head,
    "image": image,
    "learning": learning,
    "model": model,
    "neuron": neuron,
    "scores": scores,
    "survey": survey,
    "tracing": tracing,
}
