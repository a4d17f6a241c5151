"""Which tokens did it use: one method per file, each a function from a record to token scores."""

from collections.abc import Callable

from ..record import TokenScores
from .attribute import attribute as attribute
from .raw import raw as raw

METHODS: dict[str, Callable[..., TokenScores]] = {"raw": raw}
"""Every method by the name its paper gives it."""
