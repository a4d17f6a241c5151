"""The local web app: type a text, see what the model attends to. `attnscope serve` runs it."""

from .desk import Desk as Desk
from .guard import Guard as Guard
