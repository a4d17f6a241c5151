"""What an agreement model learns from: a sentence up to its verb, and the number that the verb must have."""

from dataclasses import dataclass
from typing import Any, Literal

from ...errors import BadInput

Number = Literal["singular", "plural"]
NUMBERS: tuple[Number, Number] = ("singular", "plural")
"""Both numbers; their places are the labels of the paper's data (VBZ 0, VBP 1)."""


@dataclass(frozen=True)
class AgreementExample:
    """One verb with its subject, as in Linzen et al. 2016.

    `words` is the sentence up to the verb, in lower case, rare words replaced by their Penn tag. `number` is that of
    the subject and of the verb. `attractors` are the nouns of the other number between the two. `subject` is the
    position of the subject's head in `words`, -1 where nobody knows. `verb` is the verb as it stands.

    >>> AgreementExample(("the", "key", "to", "the", "NNS"), "singular", 1, 1, "is").attractors
    1
    """

    words: tuple[str, ...]
    number: Number
    attractors: int
    subject: int
    verb: str

    def __post_init__(self) -> None:
        if self.number not in NUMBERS:
            raise BadInput(f"A verb is {' or '.join(NUMBERS)}, not {self.number!r}.")
        if not -1 <= self.subject < len(self.words):
            raise BadInput(f"The subject at {self.subject} is no word before the verb of {' '.join(self.words)!r}.")
        if self.attractors < 0:
            raise BadInput(f"There cannot be {self.attractors} attractors.")

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON takes them."""
        return {**vars(self), "words": list(self.words)}
