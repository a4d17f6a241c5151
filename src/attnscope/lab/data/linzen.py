"""The data of Linzen et al. 2016: how they chose subjects and verbs, their own file, and the subset for testing.

The subset is what Gulordava et al. 2018 tested on.

Their file (agr_50_mostcommon_10K.tsv, https://github.com/TalLinzen/rnn_agreement) has a header and 18 columns between
tabs. `sentence` has rare words replaced by their tag already; `subj_index` and `verb_index` count from one.

The subset (https://github.com/facebookresearch/colorlessgreenRNNs, data/linzen_testset) is two files, line by line: the
sentences with their words as they are and <eos> at the end; and the position of the verb from zero, its right form, its
wrong form and the number of attractors. It names no subject and no tags: those are a parser's.
"""

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from pathlib import Path

from ...corpora import CORPORA, dataset_file
from ...errors import BadInput, check_number
from ...syntax import Corpus, Sentence, general, sentences_of, spread
from ...syntax.lines import numbered_lines
from .examples_file import AgreementExample, Number

# Subjects and the verbs that agree with them, found in a parsed sentence, as Linzen et al. 2016 chose them.
# - The subject is a common noun (NN, NNS) that stands before its verb: pronouns, names and numbers are left out, and so
#   are questions, inversions and what follows "there is".
# - The verb is the word that shows the number: the first auxiliary or copula if there is any, else the main verb. It is
#   in the present tense (VBZ, VBP): after "will" or "was" nothing is shown that the paper's task asks for.
# - Both show the same number. Where they do not, the parse is wrong or another word decides ("the cat and the dog are",
#   "a number of people are"), and the pair is left out. A subject such as "dogs and a cat" is kept by its first noun.
# - Attractors are common nouns between the two whose number is the other one. Names (NNP) are not counted.


NOUNS: dict[str, Number] = {"NN": "singular", "NNS": "plural"}
VERBS: dict[str, Number] = {"VBZ": "singular", "VBP": "plural"}
FINITE = {*VERBS, "VBD", "MD"}
HELPING = {"aux", "cop"}
OUTER = "nsubj:outer"

NO_NOUN = "the subject is no common noun"
AFTER = "the subject stands after the verb"
NOT_PRESENT = "the verb is not in the present tense"
DISAGREE = "subject and verb differ in number"


@dataclass(frozen=True)
class Agreement:
    """A subject and its verb, by their positions in the sentence; `reason` says why it is left out, if it is."""

    subject: int
    verb: int
    number: Number
    attractors: int
    reason: str | None = None


def agreements(sentence: Sentence) -> Iterator[Agreement]:
    """Yield every subject with the verb that shows its number, in the order of the subjects.

    Those with a `reason` are no examples; they are given so that they can be counted. The sentence needs heads,
    relations and Penn's tags.

    >>> found = agreements(Sentence(
    ...     words=("the", "keys", "to", "the", "cabinet", "are", "rusty"),
    ...     heads=(1, 6, 4, 4, 1, 6, -1),
    ...     relations=("det", "nsubj", "case", "det", "nmod", "cop", "root"),
    ...     fine_tags=("DT", "NNS", "IN", "DT", "NN", "VBP", "JJ"),
    ... ))
    >>> next(found)
    Agreement(subject=1, verb=5, number='plural', attractors=1, reason=None)
    """
    if sentence.heads is None or sentence.relations is None or sentence.fine_tags is None:
        raise BadInput(
            f"{sentence.text!r} has no heads, relations and Penn tags: parse it before looking for subjects."
        )
    for subject, relation in enumerate(sentence.relations):
        if general(relation) == "nsubj" and sentence.heads[subject] != -1:
            yield _agreement(sentence.fine_tags, subject, _shows_number(sentence, subject))


def _agreement(tags: tuple[str, ...], subject: int, verb: int) -> Agreement:
    number = NOUNS.get(tags[subject], "singular")
    if tags[verb] not in VERBS:
        return Agreement(subject, verb, number, 0, NOT_PRESENT)
    if tags[subject] not in NOUNS:
        return Agreement(subject, verb, number, 0, NO_NOUN)
    if subject > verb:
        return Agreement(subject, verb, number, 0, AFTER)
    attractors = sum(tag in NOUNS and tag != tags[subject] for tag in tags[subject:verb])
    return Agreement(subject, verb, number, attractors, None if VERBS[tags[verb]] == number else DISAGREE)


def _shows_number(sentence: Sentence, subject: int) -> int:
    """The word that shows the number of a subject: the first finite one of its clause, or else the head of it."""
    assert sentence.heads is not None  # noqa: S101 -- the caller has looked
    assert sentence.relations is not None  # noqa: S101
    assert sentence.fine_tags is not None  # noqa: S101
    head = sentence.heads[subject]
    inner = [place for place in _dependents(sentence, head) if sentence.relations[place] in {"nsubj", "nsubj:pass"}]
    outer = [place for place in _dependents(sentence, head) if sentence.relations[place] == OUTER]
    words = [place for place in _dependents(sentence, head) if general(sentence.relations[place]) in HELPING]
    words = sorted([*words, head])
    if outer and inner:
        # "the problem is that dogs bark": "is" and "bark" hang together, but each has a subject of its own
        first = min(inner)
        words = [place for place in words if (place < first) == (sentence.relations[subject] == OUTER)]
    return next((place for place in words if sentence.fine_tags[place] in FINITE), head)


def _dependents(sentence: Sentence, head: int) -> list[int]:
    return [place for place, above in enumerate(sentence.heads or ()) if above == head]


# Their files.


END = "<eos>"
COLUMNS = ("sentence", "verb", "verb_pos", "subj_index", "verb_index", "n_diff_intervening")
"""The columns of their file that are read here."""


@dataclass(frozen=True)
class MarkedVerb:
    """A sentence whose verb is known, with its number and attractors; what its subject is must be found."""

    words: tuple[str, ...]
    verb: int
    number: Number
    attractors: int


def read_linzen(path: str | Path) -> Iterator[AgreementExample]:
    """Yield the examples of Linzen's own file (.tsv or .tsv.gz), in its order.

    Raises:
        BadInput: If a column is missing or a row does not fit, with the number of the line.
    """
    lines = numbered_lines(Path(path))
    header = next(csv.reader([next(lines, (0, ""))[1]], delimiter="\t"), [])
    if missing := [name for name in COLUMNS if name not in header]:
        raise BadInput(f"{path} has no column {', '.join(missing)}: it is not the file of Linzen et al. 2016.")
    places = {name: header.index(name) for name in COLUMNS}
    for number, line in lines:
        if line:
            yield _row(next(csv.reader([line], delimiter="\t")), len(header), places, f"Line {number} of {path}")


def _row(row: list[str], columns: int, places: dict[str, int], place: str) -> AgreementExample:
    if len(row) != columns:
        raise BadInput(f"{place} has {len(row)} columns where the header has {columns}.")
    sentence, verb, tag, *numbers = (row[places[name]] for name in COLUMNS)
    words = sentence.split()
    if tag not in VERBS:
        raise BadInput(f"{place} has the verb tag {tag!r}, which is neither VBZ nor VBP.")
    if not all(_is_number(number) for number in numbers):
        raise BadInput(f"{place} has a position or a number of attractors that is not a whole number.")
    subject, position, attractors = map(int, numbers)
    if not 1 <= subject < position <= len(words):
        raise BadInput(f"{place} has its subject at {subject} and its verb at {position} of {len(words)} words.")
    return AgreementExample(tuple(words[: position - 1]), VERBS[tag], attractors, subject - 1, verb)


def read_subset(text: str | Path, gold: str | Path) -> Iterator[MarkedVerb]:
    """Yield the sentences of the subset with their verb, in its order.

    A few rows mark a word that has no two forms ("wherein"): they are passed over.

    Raises:
        BadInput: If the two files do not fit each other, with the number of the line.
    """
    rows = zip_longest(numbered_lines(Path(text)), numbered_lines(Path(gold)))
    for number, (sentence, row) in enumerate(rows, start=1):
        if sentence is None or row is None:
            raise BadInput(f"{text} and {gold} have not as many lines: line {number} is in one of them only.")
        found = _marked(sentence[1].split(), row[1].split("\t"), f"Line {number} of {gold}")
        if found is not None:
            yield found


def _marked(words: list[str], row: list[str], place: str) -> MarkedVerb | None:
    if len(row) != 4 or not (_is_number(row[0]) and _is_number(row[3])):
        raise BadInput(f"{place} is not a position, two forms and a number of attractors, with tabs between them.")
    if words[-1:] == [END]:
        words = words[:-1]
    position, right, wrong = int(row[0]), row[1].lower(), row[2].lower()
    if position >= len(words) or words[position].lower() != right:
        raise BadInput(f"{place} has the verb {right!r} at {position}, where the sentence has another word.")
    number = number_of(right, wrong)
    return None if number is None else MarkedVerb(tuple(words), position, number, int(row[3]))


def _is_number(text: str) -> bool:
    """Whether this is a whole number in our digits, and no longer than one that can be meant."""
    return text.isascii() and text.isdecimal() and len(text) < 10


def number_of(form: str, other: str) -> Number | None:
    """The number of a verb's form, from its other form; None where the two are the same.

    >>> number_of("is", "are"), number_of("pass", "passes"), number_of("en", "en")
    ('singular', 'plural', None)
    """
    if form == other:
        return None
    # "passes" and "pass" both end in s, and the longer one is singular
    singular = max((form, other), key=lambda word: (word.endswith("s"), len(word)))
    return "singular" if form == singular else "plural"


# What agreement data is made from: text in files and data sets, parsed or not, or the verbs of Linzen's subset.


SUBSET = "agreement"
"""The data set that is Linzen's subset."""

Item = Sentence | str | MarkedVerb


@dataclass(frozen=True)
class Source:
    """One file or data set: its name without its folder, how many items it has if that is known, and its files."""

    name: str
    size: int | None
    files: tuple[Path, ...]
    read: Callable[[], Iterator[Item]] = field(repr=False)


def sources_of(corpus: str, parser: str, limit: int | None = None, data: str | Path | None = None) -> list[Source]:
    """The sources that a user names: a file, a data set with its split ("ud_ewt:train"), or one with all its splits.

    `limit` is how many sentences of each are read at most, or texts where they are parsed here, spread evenly over it.
    """
    if limit is not None:
        check_number("limit", limit, 1)
    name, _, split = corpus.partition(":")
    if name == SUBSET:
        return [_subset(limit, data)]
    if name not in CORPORA:
        whole = sentences_of(corpus, parser=parser)
        read = _limited(whole, limit)
        files = (Path(corpus),) if Path(corpus).is_file() else ()
        return [Source(whole.name, read.size, files, read.items)]
    return [_split(name, one, parser, limit, data) for one in ([split] if split else CORPORA[name].files)]


def _split(name: str, split: str, parser: str, limit: int | None, data: str | Path | None) -> Source:
    path = dataset_file(name, split, data)
    found = _limited(sentences_of(path, parser=parser, kind=CORPORA[name].kind), limit)
    return Source(f"{name}:{split}", found.size, (path,), found.items)


def _limited(corpus: Corpus, limit: int | None) -> Corpus:
    return corpus if limit is None else spread(corpus, limit)


def _subset(limit: int | None, data: str | Path | None) -> Source:
    files = subset_files(data)
    size = sum(1 for _ in islice(read_subset(*files), limit))
    return Source(SUBSET, size, files, lambda: islice(read_subset(*files), limit))


def subset_files(data: str | Path | None = None) -> tuple[Path, Path]:
    """The text and the gold file of Linzen's subset.

    Raises:
        BadInput: If they are nowhere; the sentence says where they were looked for.
    """
    return dataset_file(SUBSET, "test", data), dataset_file(SUBSET, "gold", data)
