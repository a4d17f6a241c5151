"""Figure 4 on more than two sentences: twenty of our own, each with two names that are exchanged in its second form.

A method that prefers the first name, or the nearer one, whatever the model does, is right in one form and wrong in the
other; so the exchange takes the place of a name out of the comparison.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from scipy.stats import binomtest

from ..claims import rows_with
from .drawing import TITLES
from .pronouns import TIE, MaskedSentence, Pronouns, masked_pronouns


@dataclass(frozen=True)
class SwappedPair:
    """A sentence with places for two names and a gap for the pronoun; `his` and `her` are whom it may mean."""

    text: str
    """With `{first}`, `{second}` and `{gap}`."""
    his: str
    her: str

    @property
    def forms(self) -> tuple[MaskedSentence, MaskedSentence]:
        """With the man's name first, and with the woman's."""
        return self._form(self.his, self.her), self._form(self.her, self.his)

    def _form(self, first: str, second: str) -> MaskedSentence:
        return MaskedSentence(
            self.text.format(first=first, second=second, gap="{}"), {"his": self.his, "her": self.her}
        )


PAIRS = tuple(
    SwappedPair(text, *names.split())
    for text, names in (
        ("{first} talked to {second} about {gap} book.", "John Mary"),
        ("{first} convinced {second} of {gap} love.", "Peter Anna"),
        ("{first} told {second} that {gap} car was ready.", "David Sarah"),
        ("{first} waited for {second} in {gap} office.", "Michael Laura"),
        ("{first} wrote to {second} before {gap} journey.", "Thomas Emma"),
        ("{first} thanked {second} for the help with {gap} speech.", "Robert Julia"),
        ("{first} called {second} when {gap} train was late.", "James Helen"),
        ("{first} found {second} asleep in {gap} chair.", "William Alice"),
        ("{first} met {second} on the way to {gap} school.", "Daniel Maria"),
        ("{first} warned {second} about {gap} brother.", "Paul Jane"),
        ("{first} asked {second} to look after {gap} dog.", "George Lucy"),
        ("{first} showed {second} the letter from {gap} mother.", "Henry Elizabeth"),
        ("{first} followed {second} to {gap} house.", "Charles Margaret"),
        ("{first} argued with {second} about {gap} plans.", "Frank Susan"),
        ("{first} painted {second} in {gap} garden.", "Martin Rose"),
        ("{first} reminded {second} of {gap} promise.", "Edward Linda"),
        ("{first} visited {second} during {gap} illness.", "Richard Karen"),
        ("{first} played {second} a song on {gap} guitar.", "Tom Kate"),
        ("{first} beat {second} in {gap} first race.", "Mark Lisa"),
        ("{first} helped {second} to carry {gap} bags.", "Steven Amy"),
    )
)
"""Ours: the pronoun may mean either of two people."""


@dataclass(frozen=True, eq=False)
class PronounStudy:
    """What a masked language model does in the paper's two sentences, and in pairs of sentences."""

    published: Pronouns
    pairs: Pronouns
    about: str
    """Which model it is, and how well it fills gaps, where that was measured."""

    def table(self) -> pd.DataFrame:
        """The pairs, as `pair_table` has them."""
        return pair_table(self.pairs)


def study_pronouns(model: Any, about: str, pairs: Sequence[SwappedPair] = PAIRS) -> PronounStudy:
    """Both studies of a model."""
    sentences = [form for pair in pairs for form in pair.forms]
    return PronounStudy(masked_pronouns(model), masked_pronouns(model, sentences), about)


def pair_table(found: Pronouns) -> pd.DataFrame:
    """By sentence and method: the pronoun that is preferred, and what the last layer gives the two names.

    `pair` counts from 1 and `form` says which name stands first. `agrees` is 1 where the name of the preferred pronoun
    has more than the other, 0 where it has less, and 0.5 where both have the same.
    """
    return pd.DataFrame(_rows(found))


def _rows(found: Pronouns) -> Iterator[dict[str, Any]]:
    for number, sentence in enumerate(found.sentences):
        pronoun = found.predicted(sentence)
        for method in TITLES:
            shares = found.last(sentence, method)
            his, her = (shares[sentence.words[name]] for name in ("his", "her"))
            ahead = his - her if pronoun == "his" else her - his
            yield {
                "pair": number // 2 + 1,
                "form": ("his first", "her first")[number % 2],
                "sentence": sentence.shown,
                "method": method,
                "predicted": pronoun,
                "probability": found.relative(sentence)[pronoun],
                "his": his,
                "her": her,
                "agrees": 0.5 if abs(ahead) <= TIE else float(ahead > 0),
            }


@dataclass(frozen=True)
class Sign:
    """Of sentences in which two methods differ: how many are the first one's, and how likely chance gives as many."""

    ahead: int
    behind: int

    @property
    def more(self) -> float:
        """The p of the first being ahead so often."""
        return self._p("greater")

    @property
    def fewer(self) -> float:
        """The p of the first being ahead so seldom."""
        return self._p("less")

    def _p(self, alternative: str) -> float:
        differing = self.ahead + self.behind
        return float(binomtest(self.ahead, differing, alternative=alternative).pvalue) if differing else 1.0


def sign_of(table: pd.DataFrame, method: str, other: str = "raw") -> Sign:
    """In how many sentences a method agrees with the model better than another, and worse."""
    one, two = (rows_with(table, method=each).set_index("sentence")["agrees"] for each in (method, other))
    apart = one - two
    return Sign(int((apart > 0).sum()), int((apart < 0).sum()))
