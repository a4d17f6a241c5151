"""Text in, record out, from any Hugging Face model and any torch module."""

from .estimate import Estimate as Estimate
from .instrument import instrument as instrument
from .loading import load as load
from .model import InstrumentedModel as InstrumentedModel
from .module_inputs import Tokenized as Tokenized
from .module_model import ModuleModel as ModuleModel
