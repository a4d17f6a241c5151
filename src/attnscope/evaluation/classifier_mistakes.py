"""Where a classifier is wrong, which words pushed it there, and how right it is without them."""

import math
import re
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..attribution.blank_out import LEAST, blank_out, runs_kept
from ..attribution.phrases import Phrase, phrases
from ..capture import InstrumentedModel, load
from ..errors import BadInput
from ..record import TokenScores, readable
from ..record.schema import checked

PUSHING = 0.25
"""A word pushes if it changes the answer by this share of what the strongest word does."""
WORDS_OF_TEXT = 3
"""How many words of a text are said to have pushed its answer."""
WORDS_SHARED = 12
"""How many words are tried: the accuracy without each takes a run over all texts that hold it."""
Watch = Callable[[str, int, int], None]
"""Who is told how far it is: with what, how much is done, and of how much."""


@dataclass(frozen=True, eq=False)
class Mistake:
    """A text that a classifier gets wrong."""

    number: int
    """Its place among the texts, from one."""
    text: str
    gold: str
    predicted: str
    probability: float
    scores: TokenScores | None = None
    """What each word does for the wrong answer against the right one, in log-odds; None where time was up."""
    margin: float = math.nan
    """The log-odds of the predicted label to the right one: a word that changes more turns the answer."""
    phrases: tuple[Phrase, ...] = ()
    """Words that push together more than any does alone, looked for where none alone turns the answer."""

    @property
    def pushers(self) -> list[tuple[str, float]]:
        """The words that pushed it to the wrong answer, the strongest first."""
        if self.scores is None:
            return []
        words = zip(readable(self.scores.tokens), self.scores.scores.tolist(), self.scores.special, strict=True)
        pushing = sorted(
            ((word.strip(), push) for word, push, special in words if not special), key=lambda one: -one[1]
        )
        return [(word, push) for word, push in pushing[:WORDS_OF_TEXT] if push > max(0.0, PUSHING * pushing[0][1])]


@dataclass(frozen=True)
class SharedWord:
    """A word that pushed several texts to the same wrong answer."""

    word: str
    predicted: str
    mistakes: tuple[int, ...]
    """The numbers of the texts that it pushed."""
    push: float
    """By how much on average, in log-odds."""
    texts: int
    """How many of all texts hold it, right or wrong."""
    right: int
    """How many of these the model gets right."""
    right_without: int
    """How many of these it gets right when the word is taken out of them."""


@dataclass(frozen=True, eq=False)
class Mistakes:
    """What a classifier gets wrong, of texts whose labels are known."""

    model: str
    texts: int
    mistakes: tuple[Mistake, ...]
    """The surest first."""
    shared: tuple[SharedWord, ...]
    """The words behind several mistakes, those that pushed most first."""
    right_without: int
    """How many of all texts are right when every shared word is taken out."""
    confusion: Mapping[tuple[str, str], int]
    """How often each label (first) is taken for another (second)."""

    @property
    def accuracy(self) -> float:
        """The share of texts that it gets right."""
        return (self.texts - len(self.mistakes)) / self.texts

    @property
    def accuracy_without(self) -> float:
        """The same when every shared word is taken out of every text."""
        return self.right_without / self.texts

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data, ready for JSON."""
        return {
            "model": self.model,
            "texts": self.texts,
            "accuracy": self.accuracy,
            "accuracy_without_shared_words": self.accuracy_without,
            "shared_words": [dict(vars(word)) for word in self.shared],
            "mistakes": [
                {
                    "number": one.number,
                    "text": one.text,
                    "gold": one.gold,
                    "predicted": one.predicted,
                    "probability": one.probability,
                    "pushed_by": dict(one.pushers),
                    "phrases": {str(phrase): phrase.change for phrase in one.phrases},
                }
                for one in self.mistakes
            ],
        }


@checked
def mistakes(
    model: str | InstrumentedModel,
    texts: Sequence[str],
    labels: Sequence[str],
    *,
    replacement: str | None = None,
    truncate: bool = False,
    budget: int | float | None = None,
    batch_size: int = 16,
    watch: Watch | None = None,
) -> Mistakes:
    """Predict every text, and find the words that pushed the wrong predictions.

    The surest mistakes are explained first, for `budget` seconds (all of them by default): each word is blanked out in
    turn, and what is followed is the log-odds of the predicted label to the right one, so that a word above zero speaks
    for the mistake. Where no word alone turns the answer, phrases are tried. Words that pushed several texts to the
    same wrong label are then taken out of all texts that hold them, and these are predicted again.

    >>> found = mistakes("demo", ["the key", "the keys"], ["singular", "singular"])
    >>> found.accuracy, [(mistake.number, mistake.predicted) for mistake in found.mistakes]
    (0.5, [(2, 'plural')])
    """
    if isinstance(model, str):
        model = load(model)
    if not texts or len(texts) != len(labels):
        raise BadInput(f"Every text has one label, but there are {len(texts)} texts and {len(labels)} labels.")
    _check_one_label(model)
    gold = _named_as(labels, model)
    predicted = _predicted(model, texts, truncate, batch_size, watch)
    wrong = [place for place, (label, _) in enumerate(predicted) if label != gold[place]]
    wrong.sort(key=lambda place: -predicted[place][1])
    found = []
    ends = None if budget is None else time.monotonic() + budget
    for done, place in enumerate(wrong):
        one = Mistake(place + 1, texts[place], gold[place], *predicted[place])
        if ends is None or time.monotonic() < ends:
            one = _explain(one, model, replacement, truncate, batch_size)
            _tell(watch, "mistakes explained", done + 1, len(wrong))
        found.append(one)
    shared = _shared_words(found)
    tried = [
        _without(word, pushes, texts, gold, predicted, model, truncate, batch_size) for word, pushes in shared.items()
    ]
    rest = [_take_out(text, [word.word for word in tried]) for text in texts]
    after = _predicted(model, rest, truncate, batch_size, None) if tried else predicted
    confusion: dict[tuple[str, str], int] = defaultdict(int)
    for one in found:
        confusion[one.gold, one.predicted] += 1
    return Mistakes(
        model=model.name,
        texts=len(texts),
        mistakes=tuple(found),
        shared=tuple(tried),
        right_without=sum(label == right for (label, _), right in zip(after, gold, strict=True)),
        confusion=dict(confusion),
    )


def _check_one_label(model: InstrumentedModel) -> None:
    """Refuse a classifier that gives a text several labels: it is not wrong because another one is likelier."""
    config = getattr(model.model, "config", None)
    if getattr(config, "problem_type", None) == "multi_label_classification":
        raise BadInput(
            f"{model.name} may give a text several labels at once, so no single one is right or wrong: see its texts"
            " one by one, with explain and target."
        )


def _named_as(labels: Sequence[str], model: InstrumentedModel) -> list[str]:
    """The labels as the model calls them: by name, spelled in capitals or not, or by number."""
    names = model.labels
    if names is None or len(names) < 2:
        raise BadInput(f"{model.name} has no two labels to be right or wrong about: mistakes are of classifiers.")
    known = {str(number): name for number, name in enumerate(names)}
    known |= {name.casefold(): name for name in names} | {name: name for name in names}
    strange = sorted({label for label in labels if label not in known and label.casefold() not in known})
    if strange:
        raise BadInput(
            f"The model knows no label {', '.join(map(repr, strange[:5]))}: it has {', '.join(names[:20])}, or their"
            f" numbers from 0 to {len(names) - 1}."
        )
    return [known.get(label) or known[label.casefold()] for label in labels]


def _predicted(
    model: InstrumentedModel, texts: Sequence[str], truncate: bool, batch_size: int, watch: Watch | None
) -> list[tuple[str, float]]:
    """The label and its probability for each text."""
    found = []
    for prediction in model.predictions(texts, batch_size, truncate=truncate):
        found.append(prediction[0])
        _tell(watch, "texts predicted", len(found), len(texts))
    return found


def _tell(watch: Watch | None, what: str, done: int, whole: int) -> None:
    if watch is not None:
        watch(what, done, whole)


def _explain(
    one: Mistake, model: InstrumentedModel, replacement: str | None, truncate: bool, batch_size: int
) -> Mistake:
    """The mistake with what each of its words did; phrases where no word did anything."""
    record = model.record(one.text, truncate=truncate)
    asked = (record, model, replacement)
    pair: Any = {"target": one.predicted, "against": one.gold, "batch_size": batch_size}
    with runs_kept():
        scores = blank_out(*asked, by="word", signed=True, **pair)
        chances = dict(record.prediction)
        margin = math.log(max(chances[one.predicted], LEAST) / max(chances[one.gold], LEAST))
        alone = float(scores.scores.max())
        together = () if alone > margin else phrases(*asked, **pair)
    return replace(one, scores=scores, margin=margin, phrases=tuple(some for some in together if some.change > alone))


def _shared_words(found: Sequence[Mistake]) -> dict[tuple[str, str], list[tuple[int, float]]]:
    """The words that pushed several texts to one wrong label, with their numbers and pushes; the strongest first."""
    pushes: dict[tuple[str, str], list[tuple[int, float]]] = defaultdict(list)
    for one in found:
        strongest: dict[str, float] = {}
        for word, push in one.pushers:
            # a word that stands twice in a text is behind one mistake, not two
            strongest[word.casefold()] = max(push, strongest.get(word.casefold(), push))
        for word, push in strongest.items():
            pushes[word, one.predicted].append((one.number, push))
    several = {key: some for key, some in pushes.items() if len(some) > 1}
    order = sorted(several, key=lambda key: -sum(push for _, push in several[key]))
    return {key: several[key] for key in order[:WORDS_SHARED]}


def _without(
    key: tuple[str, str],
    pushes: Sequence[tuple[int, float]],
    texts: Sequence[str],
    gold: Sequence[str],
    predicted: Sequence[tuple[str, float]],
    model: InstrumentedModel,
    truncate: bool,
    batch_size: int,
) -> SharedWord:
    """How right the model is on the texts that hold a word, with it and without."""
    word, label = key
    changed = {place: _take_out(text, [word]) for place, text in enumerate(texts)}
    held = [place for place, text in changed.items() if text != texts[place]]
    after = _predicted(model, [changed[place] for place in held], truncate, batch_size, None)
    return SharedWord(
        word=word,
        predicted=label,
        mistakes=tuple(number for number, _ in pushes),
        push=sum(push for _, push in pushes) / len(pushes),
        texts=len(held),
        right=sum(predicted[place][0] == gold[place] for place in held),
        right_without=sum(label == gold[place] for place, (label, _) in zip(held, after, strict=True)),
    )


def _take_out(text: str, words: Sequence[str]) -> str:
    """The text without these words, however they are spelled in capitals; one of nothing else stays as it is.

    >>> _take_out("Fun, not funny: FUN.", ["fun"])
    ', not funny: .'
    """
    for word in words:
        before, after = (r"(?<!\w)" if word[:1].isalnum() else "", r"(?!\w)" if word[-1:].isalnum() else "")
        rest = re.sub(rf"{before}{re.escape(word)}{after} ?", "", text, flags=re.IGNORECASE)
        text = rest if rest.strip() else text
    return text
