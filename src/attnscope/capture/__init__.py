"""Text in, record out, from any Hugging Face model."""

from .estimate import Estimate as Estimate
from .loading import load as load
from .model import InstrumentedModel as InstrumentedModel
