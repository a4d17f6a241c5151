"""When may attention be trusted as an explanation: methods held against what the model does."""

from .faithfulness import trust as trust
from .result import Trust as Trust
from .texts import read_texts as read_texts
