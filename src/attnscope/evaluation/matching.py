"""Words of a text looked up in a lexicon: as they stand, by their lemma, or over forms of the same word.

Lemmas are found without any download, by rules of our own for English: irregular forms from a short list, then
endings taken off (detachments, as WordNet's morphological rules have them). A lemma counts only if the lexicon has it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from .lexicons import Lexicon

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
            if ending in DOUBLING and not other and _doubled(rest):
                yield rest[:-1]


@cache
def stem(word: str) -> str:
    """What the forms of a word have in common; two words are forms of one if their stems are equal.

    >>> stem("disappointments") == stem("disappointing"), stem("happily") == stem("happiness"), stem("early")
    (True, True, 'early')
    """
    current = word
    while word.isalpha() and (shorter := _shortened(current)) != current:
        current = shorter
    return current


def _shortened(word: str) -> str:
    """A word without one ending, if enough of it stays."""
    for ending, other in STEMMED.items():
        rest = word.removesuffix(ending)
        if rest == word or (ending == "s" and rest.endswith("s")):
            continue
        rest = rest[:-1] if ending in DOUBLING and _doubled(rest) else rest + other
        # a final e tells short words apart: quit and quite
        if len(rest) >= SHORTEST_STEM + (ending == "e") and VOWELS & set(rest):
            return rest
    return word


def _doubled(word: str) -> bool:
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
