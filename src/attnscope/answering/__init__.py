"""Answers of chat models explained: asked for or given, and which method to trust on them."""

from .ask import Finished as Finished
from .ask import answer as answer
from .ask import answers_of as answers_of
from .ask import documents_of as documents_of
from .ask import finished_answers as finished_answers
from .ask import holds_answers as holds_answers
from .trust import trust_answers as trust_answers
