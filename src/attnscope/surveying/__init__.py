"""Statistics over a corpus, on one machine or many."""

from .result import PAGE as PAGE
from .result import Survey as Survey
from .run import survey as survey
