"""Agreement data built from any text: parsed in shards, rare words replaced, nothing twice, nothing of the test set."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from ...corpora import CORPORA
from ...engine import Store, engine
from ...errors import BadInput, check_number
from ...progress import CorpusProgress, Watch
from ...syntax import Parser, Sentence, joined
from .examples_file import (
    HIDDEN,
    AgreementExample,
    card_of,
    most_frequent,
    read_words,
    sha256_of,
    spell_word,
    with_tags_for_rare,
    words_of,
    write_card,
    write_examples,
    write_words,
)
from .linzen import (
    NOUNS,
    SUBSET,
    VERBS,
    Agreement,
    Item,
    MarkedVerb,
    Source,
    agreements,
    read_subset,
    sources_of,
    subset_files,
)

# Sentences that are kept for testing: what a training text shares with them is left out.


SENTENCE = "the sentence is kept for testing"
BEGINNING = "a sentence kept for testing begins with the same words"


class HeldOut:
    """The sentences of a test set, and how they begin up to their verb.

    Sentences are compared by their letters and digits alone, since each corpus has ways of its own to write quotation
    marks and to part words.

    >>> kept = HeldOut([MarkedVerb(("The", "key", "is", "mine", "."), 2, "singular", 0)])
    >>> kept.holds(["the", "key", "is", "mine"], 2), kept.holds(["the", "key", "opens"], 2), kept.holds(["key"], 0)
    ('the sentence is kept for testing', 'a sentence kept for testing begins with the same words', None)
    """

    def __init__(self, verbs: Iterable[MarkedVerb]) -> None:
        self.sentences, self.beginnings = set(), set()
        for marked in verbs:
            self.sentences.add(_letters(marked.words))
            self.beginnings.add(_letters(marked.words[: marked.verb]))

    def holds(self, words: Sequence[str], verb: int) -> str | None:
        """Why an example must not be trained on, or None if it may."""
        if _letters(words) in self.sentences:
            return SENTENCE
        return BEGINNING if _letters(words[:verb]) in self.beginnings else None


def _letters(words: Sequence[str]) -> str:
    return "".join(letter for word in words for letter in word.lower() if letter.isalnum())


# One shard of agreement data: some texts in, their subjects and verbs out.


LONGEST = 50
"""Words before the verb: Linzen's sentences are no longer."""
TOO_LONG = f"more than {LONGEST} words stand before the verb"
UNSEEN = "a noun that may decide is hidden as <unk>"

COMMON = {"NNP": "NN", "NNPS": "NNS"}
PRESENT = {number: tag for tag, number in VERBS.items()}

State = dict[str, Any]
"""What a shard gives: counts, and under "found" [words, tags, [[subject, verb, number, attractors], …]] by sentence."""


class Finder:
    """Finds the subjects and verbs of a shard. Made once on each worker; the parser is loaded if something needs it."""

    def __init__(self, parser: str) -> None:
        self.parser = Parser(parser)

    def __call__(self, items: Sequence[Item]) -> State:
        """What the texts of one shard hold."""
        counts: Counter[str] = Counter()
        left_out: Counter[str] = Counter()
        found, sentences = [], 0
        for sentence, marked in self._sentences(items):
            tags = sentence.fine_tags
            if tags is None:
                raise BadInput(f"{sentence.text!r} has no Penn tags: give a treebank with XPOS or features, or text.")
            words = [spell_word(word, tag) for word, tag in zip(sentence.words, tags, strict=True)]
            counts.update(words)
            sentences += 1
            pairs = list(_chosen(sentence, words, left_out) if marked is None else [_with_subject(sentence, marked)])
            if pairs:
                entries = [[pair.subject, pair.verb, pair.number, pair.attractors] for pair in pairs]
                found.append([words, list(tags), entries])
        return {"sentences": sentences, "counts": dict(counts), "left_out": dict(left_out), "found": found}

    def _sentences(self, items: Sequence[Item]) -> Iterator[tuple[Sentence, MarkedVerb | None]]:
        texts = [Sentence(item.words) if isinstance(item, MarkedVerb) else item for item in items]
        for item, parsed in zip(items, self.parser.parse(texts), strict=True):
            if isinstance(item, MarkedVerb):
                yield joined(parsed), item  # a marked sentence is one, also where the parser sees two
            else:
                yield from ((sentence, None) for sentence in parsed)


def _chosen(sentence: Sentence, words: Sequence[str], left_out: Counter[str]) -> Iterator[Agreement]:
    for pair in agreements(sentence):
        reason = pair.reason or _unfit(sentence, words, pair)
        if reason is None:
            yield pair
        else:
            left_out[reason] += 1


def _unfit(sentence: Sentence, words: Sequence[str], pair: Agreement) -> str | None:
    if pair.verb > LONGEST:
        return TOO_LONG
    tags = sentence.fine_tags or ()
    between = range(pair.subject, pair.verb)
    return UNSEEN if any(words[place] == HIDDEN and tags[place] in NOUNS for place in between) else None


def _with_subject(sentence: Sentence, marked: MarkedVerb) -> Agreement:
    """The marked verb with the subject that the parse gives it; -1 where that is no noun of the verb's number.

    What is known of such a verb is better than a tagger's guess: that it is in the present tense, and that its subject
    is a common noun, whatever a tagger makes of a rare word in lower case.
    """
    tags = [COMMON.get(tag, tag) for tag in sentence.fine_tags or ()]
    tags[marked.verb] = PRESENT[marked.number]
    corrected = replace(sentence, fine_tags=tuple(tags))
    found = (pair for pair in agreements(corrected) if pair.verb == marked.verb and pair.reason is None)
    subject = next((pair.subject for pair in found if pair.number == marked.number), -1)
    return Agreement(subject, marked.verb, marked.number, marked.attractors)


def part_of(source: int, number: int) -> str:
    """The name of a shard in the store."""
    return f"{source:03d}-{number:06d}"


def plain(items: Sequence[Item]) -> list[Any]:
    """The texts of a shard in JSON terms, which tell it from any others."""
    return [item if isinstance(item, str) else vars(item) for item in items]


SHARD_SIZE = 64
"""Texts in a shard: some seconds of a parser's work."""
VOCABULARY_SIZE = 10_000
PARSER = "en_core_web_sm"


def build_agreement(
    sources: Sequence[str],
    out: str | Path,
    *,
    parser: str = PARSER,
    limit: int | None = None,
    vocabulary_size: int = VOCABULARY_SIZE,
    words: str | Path | None = None,
    data: str | Path | None = None,
    resume: bool = False,
    watch: Watch | None = None,
) -> dict[str, Any]:
    """Build a file of agreement examples from texts, and give its card.

    Each source is a CoNLL-U, text or JSON-lines file, a data set by name ("ud_ewt:train", "imdb:train") or, for a test
    set, "agreement": Linzen's subset, whose marked verbs are taken as they are. Words outside the `vocabulary_size`
    most frequent of all that is read become their tag; `words` is the list of another build to use instead, which a
    test set needs. Examples that stand in Linzen's subset are left out of everything else, where the subset is found.

    The file is JSON lines, packed if it ends in .gz; beside it are its words and its card. Shards are kept beside it
    while it grows, and `resume` continues from them to the very same file.
    """
    path = Path(out)
    unfinished = path.with_name(f"{path.name}.unfinished")
    _check_place(path, unfinished, resume)
    if not sources:
        raise BadInput("Agreement data is built from at least one file or data set.")
    check_number("vocabulary_size", vocabulary_size, 1)
    opened = [source for name in sources for source in sources_of(name, parser, limit, data)]
    known = None if words is None else read_words(words)
    recipe = {
        "sources": [source.name for source in opened],
        "parser": parser,
        "limit": limit,
        "vocabulary_size": vocabulary_size if known is None else len(known),
        "words_of_another_build": words is not None,
    }
    held_out = _held_out(data)
    store = Store(unfinished, "build", recipe)
    try:
        passes = [SourcePass(number, len(opened), source, store, watch) for number, source in enumerate(opened)]
        for one in passes:
            one.run(parser)
        return Fold(passes, store, recipe, held_out).write(path, known)
    except BadInput:
        if store.is_empty:
            store.clear()  # a request that cannot be met leaves nothing written
        raise


def _check_place(path: Path, unfinished: Path, resume: bool) -> None:
    if path.exists():
        raise BadInput(f"{path} is there already: choose another file, or remove it.")
    if unfinished.exists() and not resume:
        raise BadInput(f"{path} has been begun: go on with it (--resume, resume=True), or remove {unfinished}.")


def _held_out(data: str | Path | None) -> HeldOut | None:
    try:
        files = subset_files(data)
    except BadInput:  # it is not here; the card will say so
        return None
    return HeldOut(read_subset(*files))


@dataclass
class SourcePass:
    """The way through one source, shard by shard; shards that the store has are not parsed again."""

    number: int
    passes: int
    source: Source
    store: Store
    watch: Watch | None
    shards: int = 0
    texts: int = 0
    sentences: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    """How often each word occurs."""
    left_out: Counter[str] = field(default_factory=Counter)
    """How many verbs are no examples, by the reason."""
    at_work: dict[int, list[Any]] = field(default_factory=dict)
    """The texts of each shard that is being parsed."""

    def run(self, parser: str) -> None:
        """Have every shard in the store."""
        for shard, state in engine("local")(partial(Finder, parser), self._missing()):
            texts = self.at_work.pop(shard)
            self.store.keep(part_of(self.number, shard), state, texts)
            self._add(state, len(texts))

    def _missing(self) -> Iterator[tuple[int, list[Item]]]:
        items = self.source.read()
        while shard := list(islice(items, SHARD_SIZE)):
            number, texts = self.shards, plain(shard)
            self.shards += 1
            saved = self.store.find(part_of(self.number, number), texts)
            if saved is None:
                self.at_work[number] = texts
                yield number, shard
            else:
                self._add(saved, len(shard))

    def _add(self, state: State, texts: int) -> None:
        self.texts += texts
        self.sentences += state["sentences"]
        self.counts.update(state["counts"])
        self.left_out.update(state["left_out"])
        if self.watch is not None:
            size, tokens = self.source.size, self.counts.total()
            self.watch(CorpusProgress(self.number + 1, self.passes, self.texts, size, self.sentences, tokens))

    def states(self) -> Iterator[State]:
        """The shards in order, from the disk."""
        return (self.store.find(part_of(self.number, number)) for number in range(self.shards))

    def describe(self) -> dict[str, Any]:
        """What the card says of the source before there are examples."""
        name, digests = self.source.name, {file.name: sha256_of(file) for file in self.source.files}
        entry = CORPORA.get(name.partition(":")[0])
        origin = {} if entry is None else {"licence": entry.licence, "from": entry.source}
        totals = {"sentences": self.sentences, "words": self.counts.total()}
        return {"name": name, **origin, "sha256": digests, **totals}


# All shards of agreement data put together: one vocabulary, each example once, none of the test set, and a card.


TWICE = "the same words stand before a verb of the same number already"


class Fold:
    """Reads the shards of all sources, whose words are counted, and writes the examples as they come."""

    def __init__(
        self, passes: Sequence[SourcePass], store: Store, recipe: Mapping[str, Any], held_out: HeldOut | None
    ) -> None:
        self.passes, self.store, self.recipe, self.held_out = passes, store, recipe, held_out
        self.numbers: Counter[str] = Counter()
        self.attractors: Counter[int] = Counter()
        self.left_out = sum((one.left_out for one in passes), Counter[str]())
        self.words_before = self.replaced = 0
        self.seen: set[tuple[str, ...]] = set()

    def write(self, path: Path, known: Sequence[str] | None) -> dict[str, Any]:
        """Write the words, the card and the examples, and give the card. The file of examples gets its name last."""
        sources = [one.describe() for one in self.passes]
        if known is None:
            known = most_frequent(sum((one.counts for one in self.passes), Counter()), self.recipe["vocabulary_size"])
        draft = self.store.file(path.name)
        write_examples(draft, self._examples(frozenset(known), sources))
        if not self.numbers:
            self.store.clear()
            raise BadInput(
                f"There is no present-tense verb with a noun as its subject in {', '.join(self.recipe['sources'])}: "
                "give English text, or a treebank with Penn's tags."
            )
        write_words(words_of(path), known)
        card = self._card(sources, {path.name: sha256_of(draft), words_of(path).name: sha256_of(words_of(path))})
        write_card(card_of(path), card)
        draft.replace(path)
        self.store.clear()
        return card

    def _examples(self, known: frozenset[str], sources: Sequence[dict[str, Any]]) -> Iterator[AgreementExample]:
        for one, described in zip(self.passes, sources, strict=True):
            attractors: Counter[int] = Counter()
            for state in one.states():
                for example in self._of_shard(state, one.source, known):
                    attractors[example.attractors] += 1
                    self.numbers[example.number] += 1
                    yield example
            self.attractors.update(attractors)
            described.update(examples=attractors.total(), attractors=_in_order(attractors))

    def _of_shard(self, state: State, source: Source, known: frozenset[str]) -> Iterator[AgreementExample]:
        for words, tags, pairs in state["found"]:
            for subject, verb, number, attractors in pairs:
                before = tuple(sys.intern(word) for word in words[:verb])  # they stay in memory, most of them often
                reason = self._unwanted((number, *before), words, verb, source)
                if reason is not None:
                    self.left_out[reason] += 1
                    continue
                self.words_before += len(before)
                self.replaced += sum(word not in known for word in before)
                shown = with_tags_for_rare(before, tags[:verb], known)
                yield AgreementExample(shown, number, attractors, subject, words[verb])

    def _unwanted(self, key: tuple[str, ...], words: Sequence[str], verb: int, source: Source) -> str | None:
        if source.name == SUBSET:
            return None  # a test set is taken as it was published, all of it
        if self.held_out is not None and (reason := self.held_out.holds(words, verb)):
            return reason
        if key in self.seen:
            return TWICE
        self.seen.add(key)
        return None

    def _card(self, sources: Sequence[dict[str, Any]], digests: dict[str, str]) -> dict[str, Any]:
        subset = f"left out of all but {SUBSET} itself, by whole sentences and by the words before the verb"
        if self.held_out is None:
            subset = f"not found ({SUBSET}), so nothing was left out for it"
        return {
            "what": "subject-verb agreement: sentences up to a present-tense verb, after Linzen et al. 2016",
            "recipe": dict(self.recipe),
            "sources": list(sources),
            "examples": self.attractors.total(),
            "attractors": _in_order(self.attractors),
            "numbers": dict(sorted(self.numbers.items())),
            "left_out": dict(sorted(self.left_out.items())),
            "linzen_subset": subset,
            "words_before_verbs": self.words_before,
            "of_them_replaced_by_tags": self.replaced,
            "sha256": digests,
        }


def _in_order(attractors: Counter[int]) -> dict[str, int]:
    return {str(count): attractors[count] for count in sorted(attractors)}
