"""Text in, record out, from any Hugging Face model and any torch module."""

from .loading import load as load
from .model import InstrumentedModel as InstrumentedModel
from .request import Estimate as Estimate
from .torch_module import Tokenized as Tokenized
from .torch_module import instrument as instrument

ModuleModel = InstrumentedModel
"""What `instrument` returns: the same class as of a Hugging Face model, which once had a name of its own."""
