"""Statistics over a corpus, on one machine or many."""

from .plan import survey as survey
from .result import PAGE as PAGE
from .result import Survey as Survey
