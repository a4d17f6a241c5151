"""The three sentences of Figures 1 to 3: two the model gets right, one it gets wrong, and each with another subject."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...lab.models import AgreementTransformer
from .drawing import Example


@dataclass(frozen=True)
class Illustration:
    """A sentence up to its verb, its subject, and the same noun in the other number."""

    text: str
    number: str
    subject: str
    changed: str

    @property
    def other(self) -> str:
        """The sentence with the other subject."""
        return " ".join(self.changed if word == self.subject else word for word in self.text.split())


ILLUSTRATIONS = (
    Illustration("the key to the rooms", "singular", "key", "keys"),
    Illustration("the picture of the large buildings", "singular", "picture", "pictures"),
    Illustration("the story about the old kings and the young soldiers", "singular", "story", "stories"),
    Illustration("the friends of the famous writer with the dog", "plural", "friends", "friend"),
    Illustration("the letters from the teacher near the school", "plural", "letters", "letter"),
    Illustration("the door behind the trees and the houses of the rich women", "singular", "door", "doors"),
    Illustration("the boys that the angry man outside the shop sees", "plural", "boys", "boy"),
    Illustration("the engine of the cars that the drivers like", "singular", "engine", "engines"),
    Illustration("the pictures of the king in the room of the castle", "plural", "pictures", "picture"),
    Illustration("the car near the trees that the women from the villages like", "singular", "car", "cars"),
    Illustration("here the girls that the brave captain of the boat loves", "plural", "girls", "girl"),
)
"""Written for this: nouns of the other number between subject and verb, the easier ones first."""


def illustrated(model: AgreementTransformer, of: Sequence[Illustration] = ILLUSTRATIONS) -> list[Example]:
    """The first two sentences that the model gets right and the first that it gets wrong, if there are such.

    Sentences with a word that the model does not know are passed over, unless no other is left.
    """
    known = [one for one in of if all(word in model.vocabulary for word in [*one.text.split(), one.changed])]
    found = list(_answered(model, known or of))
    right, wrong = ([one for one in found if one.right is verdict] for verdict in (True, False))
    return [*right[:2], *wrong[:1]]


def _answered(model: AgreementTransformer, of: Sequence[Illustration]) -> Iterator[Example]:
    instrumented = model.instrumented()
    for one in of:
        record, changed = instrumented.record(one.text), instrumented.record(one.other)
        outcome, changed_outcome = record.prediction[0][0], changed.prediction[0][0]
        yield Example(one.text, record, changed, outcome == one.number, outcome, changed_outcome)
