"""Lexicons: what people say of words, as one number for each. Warriner's norms, VADER's own, or any file.

The only file that imports vaderSentiment.
"""

import importlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from ..corpora import dataset_file
from ..errors import BadInput
from ..syntax.lines import numbered_lines, numbered_rows

VADER, WARRINER = "vader", "warriner"
WORD_COLUMNS = ("word", "Word", "lemma", "token", "entry")
VALUE_COLUMNS = ("value", "valence", "V.Mean.Sum", "rating", "score", "mean")
"""What the columns of a file with a header may be called; without one they are the first two."""
OUTER = 0.2
"""For a lexicon whose scale is not known: the lowest and highest fifth of its values are very negative and positive."""
NEGATIVE, POSITIVE = "very negative", "very positive"


@dataclass(frozen=True)
class Lexicon:
    """Words in lower case, each with its value; a word that is entered several times has the mean of its values."""

    name: str
    values: Mapping[str, float] = field(repr=False)
    negative_below: float
    """What is below this is very negative."""
    positive_from: float
    """What is this or above is very positive."""

    def tag(self, value: float) -> str | None:
        """Whether a value is very negative, very positive, or neither."""
        if value < self.negative_below:
            return NEGATIVE
        return POSITIVE if value >= self.positive_from else None


def read_lexicon(
    lexicon: str | Path | Mapping[str, float] | Lexicon,
    data: str | Path | None = None,
    *,
    negative_below: int | float | None = None,
    positive_from: int | float | None = None,
) -> Lexicon:
    """A lexicon by name ("vader", "warriner"), from a CSV or TSV file (word, value; also .gz), or of your own words.

    "warriner" is looked for as other data sets are (`data`, $ATTNSCOPE_DATA, cache); its valence runs from 1 to 9, very
    negative below 3.5 and very positive from 6.5 (Wu, Nguyen & Ong 2020, footnote 7). "vader" comes with the package
    vaderSentiment (Hutto & Gilbert 2014) and runs from -4 to 4; its limits are the same places on that scale, -1.5 and
    1.5. Of any other, the outer fifths are very negative and very positive unless you say what is.

    >>> read_lexicon({"good": 1.0, "Bad": -1.0, "so": 0.0}).values
    {'good': 1.0, 'bad': -1.0, 'so': 0.0}
    """
    if isinstance(lexicon, Lexicon):
        found = lexicon
    elif isinstance(lexicon, Mapping):
        found = _of_unknown_scale("own words", lexicon.items())
    elif lexicon == VADER:
        found = Lexicon(VADER, _means(VADER, _vader()), -1.5, 1.5)
    elif lexicon == WARRINER:
        found = Lexicon(WARRINER, _means(WARRINER, _rows(dataset_file(WARRINER, data=data))), 3.5, 6.5)
    else:
        path = Path(lexicon)
        if not path.is_file():
            raise BadInput(
                f"There is no lexicon {str(path)!r}: give {VADER}, {WARRINER}, or a CSV or TSV file (word, value)."
            )
        found = _of_unknown_scale(path.name, _rows(path))
    below = found.negative_below if negative_below is None else float(negative_below)
    above = found.positive_from if positive_from is None else float(positive_from)
    if not below <= above:
        raise BadInput(f"Very negative is below {below:g} and very positive from {above:g}: these overlap.")
    return Lexicon(found.name, found.values, below, above)


def _of_unknown_scale(name: str, pairs: Iterable[tuple[str, float]]) -> Lexicon:
    values = _means(name, pairs)
    low, high = np.quantile(list(values.values()), [OUTER, 1 - OUTER])
    return Lexicon(name, values, float(low), float(high))


def _means(name: str, pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    """The mean value of each word, in lower case and in the order of the lexicon."""
    found: dict[str, list[float]] = defaultdict(list)
    for word, value in pairs:
        if not math.isfinite(value):
            raise BadInput(f"The value of {word!r} in the lexicon {name} is {value}: give finite numbers.")
        if text := word.strip().lower():
            found[text].append(float(value))
    if not found:
        raise BadInput(f"There is no word in the lexicon {name}.")
    return {word: math.fsum(values) / len(values) for word, values in found.items()}


def _vader() -> Iterable[tuple[str, float]]:
    """The lines of VADER's file: the word, its mean rating, and what we do not need, between tabs."""
    try:
        package = importlib.import_module("vaderSentiment")
    except ImportError as error:
        raise BadInput("VADER's lexicon comes with vaderSentiment: pip install 'attnscope[lexicon]'.") from error
    text = (Path(package.__path__[0]) / "vader_lexicon.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        word, _, rest = line.partition("\t")
        if rest:
            yield word, float(rest.split("\t")[0])


def _rows(path: Path) -> Iterable[tuple[str, float]]:
    """Word and value of each row of a table: by the names of the header, or the first two columns without one."""
    first = next((line for _, line in numbered_lines(path)), "")
    rows = [row for _, row in numbered_rows(path, "\t" if "\t" in first else ",") if any(row)]
    if not rows:
        return
    word_at, value_at = _columns(path, rows[0])
    header = not _is_number(rows[0][value_at]) if len(rows[0]) > value_at else True
    for number, row in enumerate(rows[header:], 1 + header):
        if len(row) <= max(word_at, value_at) or not _is_number(row[value_at]):
            raise BadInput(f"Row {number} of the lexicon {path} has no number as its value: {row!r:.80}.")
        yield row[word_at], float(row[value_at])


def _columns(path: Path, header: list[str]) -> tuple[int, int]:
    """Where the word and its value stand."""
    word = next((header.index(name) for name in WORD_COLUMNS if name in header), None)
    value = next((header.index(name) for name in VALUE_COLUMNS if name in header), None)
    if word is not None and value is not None:
        return word, value
    if len(header) < 2:
        raise BadInput(f"The lexicon {path} has one column: give a word and its value, between commas or tabs.")
    return 0, 1


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


# Words of a text looked up in a lexicon: as they stand, by their lemma, or over forms of the same word.
# Lemmas are found without any download, by rules of our own for English: irregular forms from a short list, then
# endings taken off (detachments, as WordNet's morphological rules have them). A lemma counts only if the lexicon has
# it.


WAYS = ("exact", "lemma", "forms")
"""The ways in which a word is matched, the first that serves is taken."""

IRREGULAR_FORMS = """
be: am is are was were been; have: has had; do: does did done; go: goes went gone; good: better best; bad: worse
worst; far: farther farthest further furthest; feel: felt; make: made; give: gave given; take: took taken; find:
found; think: thought; see: saw seen; come: came; know: knew known; tell: told; say: said; get: got gotten;
keep: kept; leave: left; lose: lost; win: won; hold: held; stand: stood; bring: brought; write: wrote written;
break: broke broken; speak: spoke spoken; steal: stole stolen; choose: chose chosen; fall: fell fallen; grow:
grew grown; throw: threw thrown; draw: drew drawn; fly: flew flown; show: shown; wear: wore worn; tear: tore
torn; swear: swore sworn; begin: began begun; sing: sang sung; drink: drank drunk; sink: sank sunk; run: ran;
buy: bought; catch: caught; teach: taught; fight: fought; seek: sought; sell: sold; send: sent; spend: spent;
build: built; lend: lent; bend: bent; mean: meant; deal: dealt; sleep: slept; weep: wept; meet: met; lead: led;
feed: fed; bleed: bled; breed: bred; shoot: shot; shine: shone; stick: stuck; strike: struck; sting: stung;
hang: hung; hide: hid hidden; bite: bit bitten; ride: rode ridden; rise: rose risen; drive: drove driven; eat:
ate eaten; forget: forgot forgotten; forgive: forgave forgiven; understand: understood; die: dies died dying;
lie: lay lain lies lied lying; tie: ties tied tying; pay: paid; hear: heard; child: children; person: people;
man: men; woman: women; foot: feet; tooth: teeth; mouse: mice; goose: geese; life: lives; wife: wives; knife:
knives; wolf: wolves; thief: thieves
"""
"""Lemmas with the forms that no rule gives, between semicolons."""
IRREGULAR = {
    form: lemma.strip()
    for lemma, _, forms in (entry.partition(":") for entry in IRREGULAR_FORMS.split(";"))
    for form in forms.split()
}

DETACHED = {
    "ies": ("y",),
    "ied": ("y",),
    "ier": ("y",),
    "iest": ("y",),
    "men": ("man",),
    "ves": ("f",),
    "s": ("",),
    "es": ("",),
    "ed": ("e", ""),
    "ing": ("e", ""),
    "er": ("e", ""),
    "est": ("e", ""),
}
"""Endings of inflected words, and what the lemma may have instead."""
DOUBLING = ("ed", "ing", "er", "est")
"""Before these a short word doubles its last letter (stop, stopped), and a silent e is lost (stare, staring)."""
STEMMED = {
    **dict.fromkeys(("iness", "iest", "ily", "ies", "ied", "ier"), "y"),
    **dict.fromkeys(("fully", "ness", "ment", "ful", "ing", "ly", "ed", "es", "s", "e"), ""),
}
"""Endings that leave a word's valence much as it is, and what its stem has instead; "less" would turn it round."""
SHORTEST_LEMMA, SHORTEST_STEM = 3, 4
VOWELS = frozenset("aeiouy")


@dataclass(frozen=True)
class Match:
    """What a lexicon says of a word, by which of WAYS, and the entries that it rests on."""

    value: float
    way: str
    entries: tuple[str, ...]


@dataclass(frozen=True)
class Matcher:
    """Looks words up in one lexicon."""

    lexicon: Lexicon

    def match(self, word: str) -> Match | None:
        """Exactly, else by the first lemma that is an entry, else the mean over entries that are forms of the word.

        >>> from attnscope.evaluation.lexicons import read_lexicon
        >>> matcher = Matcher(read_lexicon({"stop": 1.0, "charm": 7.0, "charming": 8.0, "sad": 2.0}))
        >>> for word in ("sad", "stopped", "charmingly", "key"):
        ...     print(matcher.match(word))
        Match(value=2.0, way='exact', entries=('sad',))
        Match(value=1.0, way='lemma', entries=('stop',))
        Match(value=7.5, way='forms', entries=('charm', 'charming'))
        None
        """
        word = word.lower()
        values = self.lexicon.values
        if word in values:
            return Match(values[word], "exact", (word,))
        lemma = next((candidate for candidate in lemmas(word) if candidate in values), None)
        if lemma is not None:
            return Match(values[lemma], "lemma", (lemma,))
        forms = self._forms.get(stem(word), ())
        if not forms:
            return None
        return Match(sum(values[form] for form in forms) / len(forms), "forms", tuple(forms))

    @cached_property
    def _forms(self) -> dict[str, list[str]]:
        """The entries by their stem."""
        found: dict[str, list[str]] = defaultdict(list)
        for word in self.lexicon.values:
            if word.isalpha() and len(stem(word)) >= SHORTEST_STEM:
                found[stem(word)].append(word)
        return dict(found)


def counted_ways(matches: Iterable[Match | None]) -> dict[str, int]:
    """How many words were matched in each way, and how many were not."""
    counts = Counter("none" if match is None else match.way for match in matches)
    return {way: counts[way] for way in (*WAYS, "none")}


def lemmas(word: str) -> Iterator[str]:
    """What the lemma of a word may be, the likeliest first.

    >>> list(lemmas("stopped")), list(lemmas("staring")), list(lemmas("worst")), list(lemmas("happiest"))[:1]
    (['stoppe', 'stopp', 'stop'], ['stare'], ['bad'], ['happy'])
    """
    if word in IRREGULAR:
        yield IRREGULAR[word]
        return
    for ending, others in DETACHED.items():
        rest = word.removesuffix(ending)
        if rest == word or (ending == "s" and rest.endswith("s")):
            continue
        for other in others:
            lemma = rest + other
            if len(lemma) < SHORTEST_LEMMA or not VOWELS & set(lemma):
                continue
            if ending in DOUBLING and not other and _doubles(rest):
                continue  # "star" has "starring", so that "staring" is not of it
            yield lemma
            if ending in DOUBLING and not other and _double(rest):
                yield rest[:-1]


@cache
def stem(word: str) -> str:
    """What the forms of a word have in common; two words are forms of one if their stems are equal.

    >>> stem("disappointments") == stem("disappointing"), stem("happily") == stem("happiness"), stem("early")
    (True, True, 'early')
    """
    current = word
    while word.isalpha() and (shorter := _shorten(current)) != current:
        current = shorter
    return current


def _shorten(word: str) -> str:
    """A word without one ending, if enough of it stays."""
    for ending, other in STEMMED.items():
        rest = word.removesuffix(ending)
        if rest == word or (ending == "s" and rest.endswith("s")):
            continue
        rest = rest[:-1] if ending in DOUBLING and _double(rest) else rest + other
        # a final e tells short words apart: quit and quite
        if len(rest) >= SHORTEST_STEM + (ending == "e") and VOWELS & set(rest):
            return rest
    return word


def _double(word: str) -> bool:
    """Whether a word ends in a doubled consonant, as before an ending."""
    return len(word) > 2 and word[-1] == word[-2] and word[-1] not in VOWELS


def _doubles(word: str) -> bool:
    """Whether this is a short word (one vowel, then one consonant at its end) that would double it before an ending."""
    return (
        len(word) > 2
        and word[-1] not in VOWELS | set("wx")
        and word[-2] in VOWELS
        and sum(letter in VOWELS for letter in word) == 1
    )
