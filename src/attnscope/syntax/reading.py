"""What a corpus may be, and how its sentences are read, again and again."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, cast

from ..errors import BadInput, check_number, is_text
from .from_conllu import read_conllu
from .from_datasets import is_dataset, open_dataset, read_dataset, size_of
from .from_spacy import Parser
from .from_text import COLUMN, is_heading, plain, read_csv, read_jsonl, read_table, read_text, wikitext_lines
from .grammar import AgreementSentence, agreement_sentences
from .lines import numbered_lines
from .sentence import Sentence

Items = Iterator[Sentence | str]

DEMO = "demo"
DEMO_SENTENCES = 1_000
"""How many sentences "demo" is unless a limit says otherwise; the grammar itself has no end."""

FileKind = Literal["conllu", "csv", "jsonl", "table", "text", "wikitext"]
READERS: dict[FileKind, Callable[[Path], Items]] = {
    "conllu": read_conllu,
    "csv": read_csv,
    "jsonl": read_jsonl,
    "table": read_table,
    "text": read_text,
    "wikitext": wikitext_lines,
}
SUFFIXES: dict[str, FileKind] = {".conllu": "conllu", ".csv": "csv", ".jsonl": "jsonl", ".tsv": "table", ".txt": "text"}
COUNTED: dict[FileKind, Callable[[str], bool]] = {
    "conllu": lambda line: line.startswith("1\t"),
    "jsonl": lambda line: bool(line.strip()),
    "table": lambda line: bool(line.strip()) and COLUMN not in line.split("\t"),
    "text": lambda line: bool(line.strip()),
    "wikitext": lambda line: bool(line.strip()) and not is_heading(line.strip()),
}
"""Which lines of a file begin an item, so that items are counted without being read; CSV does not tell it."""

WHAT = f'a corpus is "{DEMO}", a file, a data set, or a list of sentences or texts'


@dataclass(frozen=True)
class Corpus:
    """Sentences that can be read again and again, or texts and the name of the parser that is to read them.

    Without a `parser`, every item is a `Sentence`. With one, an item may also be a text that holds several sentences,
    and a sentence may wait for its parse: `syntax.Parser(corpus.parser).parse(items)` gives them, in another process if
    need be. `name` is that of the data set or file, without its folder. `size` is the number of items, where it is
    known before they are read; the blank rows of a data set are counted in it.
    """

    name: str
    size: int | None
    parser: str | None
    source: Callable[[], Items] = field(repr=False)

    def items(self) -> Items:
        """Yield the sentences or texts, from the first one, each time it is called."""
        return self.source()

    def sentences(self) -> Iterator[Sentence]:
        """Yield every sentence, parsed here if the corpus has a parser."""
        parsed = ([item] for item in self.items()) if self.parser is None else Parser(self.parser).parse(self.items())
        return (plain(item) if isinstance(item, str) else item for item in chain.from_iterable(parsed))

    def __iter__(self) -> Items:
        return self.items()


def sentences_of(
    corpus: object,
    *,
    parser: Any = None,
    limit: int | None = None,
    split: str | None = None,
    column: str | None = None,
    kind: str | None = None,
) -> Corpus:
    """The sentences of whatever a corpus may be.

    A corpus is "demo" (sentences of our own grammar with their parses), a file (.conllu, .txt with a text to a line,
    .jsonl, .tsv or .csv with a column "text"; also .gz), a Hugging Face data set, or any iterable of sentences, texts
    and lists of words. A data set is loaded already, or given by its name or folder, which may say the configuration,
    split and column: "stanfordnlp/imdb:test", "Salesforce/wikitext:wikitext-2-raw-v1:test", "reviews/:test#review".
    Blank lines and texts hold no words and are passed over.

    Args:
        corpus: What to read; also a `Corpus`.
        parser: A spaCy model for what has no parse yet. A name is kept for whoever reads the corpus; a loaded model
            parses while the items are read. Without one, texts are split at white space and have no tags or heads.
        limit: How many items are read at most: sentences, or texts where a parser is still to find the sentences.
        split: Which split of a data set, such as "test".
        column: Which column of a data set holds the texts or words, if its name does not tell.
        kind: How a file is written, if its suffix does not tell: one of `READERS`, such as "conllu" or "wikitext".

    Raises:
        BadInput: If this is no corpus, or one without any sentence.

    >>> dogs = sentences_of(["the dog sleeps", ["dogs", "sleep"]])
    >>> dogs.size, [sentence.words for sentence in dogs]
    (2, [('the', 'dog', 'sleeps'), ('dogs', 'sleep')])
    """
    found = _open(corpus, split=split, column=column, kind=kind, limit=limit)
    found = _parsed_by(_limit(found, limit), parser)
    if next(found.items(), None) is None:
        raise BadInput(f"There is no sentence in {found.name}.")
    return found


def texts_of(corpus: object, *, limit: int | None = None, kind: str | None = None) -> list[str]:
    """The texts of whatever a corpus may be (see `sentences_of`), as they are written; a sentence is its words.

    >>> texts_of(["the  dog sleeps", ["dogs", "sleep"]])
    ['the  dog sleeps', 'dogs sleep']
    """
    found = _limit(_open(corpus, split=None, column=None, kind=kind, limit=limit), limit)
    texts = [item if isinstance(item, str) else item.text for item in found.items()]
    if not texts:
        raise BadInput(f"There is no text in {found.name}.")
    return texts


def names_a_file(text: str) -> bool:
    """Whether this is the name of a file to read rather than a text: by its ending, if it is there or is one word.

    >>> names_a_file("texts.txt"), names_a_file("It stands in texts.txt")
    (True, False)
    """
    try:
        return _suffix(Path(text)) in SUFFIXES and (len(text.split()) == 1 or Path(text).is_file())
    except OSError:  # too long for a name
        return False


def _open(corpus: object, *, split: str | None, column: str | None, kind: str | None, limit: int | None) -> Corpus:
    """The corpus as it is written: its items may be texts, whether or not there is a parser."""
    if limit is not None:
        check_number("limit", limit, 1)
    if isinstance(corpus, str | Path):
        _check_name(str(corpus))
    options = {"split": split, "column": column, "kind": kind}
    if isinstance(corpus, str) and corpus == DEMO:
        _refuse(options, ("split", "column", "kind"), '"demo"')
        many = limit or DEMO_SENTENCES
        return Corpus(DEMO, many, None, lambda: (drawn.sentence for drawn in islice(agreement_sentences(0), many)))
    path = _file(corpus, kind)
    if path is not None:
        _refuse(options, ("split", "column"), "a file")
        return _from_file(path, kind, limit)
    if isinstance(corpus, str | Path) or is_dataset(corpus):
        _refuse(options, ("kind",), "a data set")
        return _from_dataset(corpus, split, column)
    _refuse(options, ("split", "column", "kind"), "a corpus in memory")
    return corpus if isinstance(corpus, Corpus) else _from_memory(corpus, limit)


def _check_name(name: str) -> None:
    """Refuse what no file and no data set can be called."""
    if not name.strip():
        raise BadInput(f"The name of the corpus is empty: {WHAT}.")
    if not is_text(name) or "\0" in name:
        raise BadInput(f"{name[:40]!r} is no name of a file or data set: it has half a character or a NUL in it.")
    try:
        Path(name).exists()
    except OSError as error:
        raise BadInput(f"{name[:40]!r} … cannot be looked for ({error.strerror}): {WHAT}.") from error


def _from_dataset(corpus: object, split: str | None, column: str | None) -> Corpus:
    """A data set by name or loaded; split and column are said apart or in the name."""
    named = isinstance(corpus, str | Path)
    said = DatasetName.parse(str(corpus)) if named else DatasetName(f"a data set ({type(corpus).__name__})")
    for what, apart, within in (("split", split, said.split), ("column", column, said.column)):
        if apart is not None and within is not None and apart != within:
            raise BadInput(f"The name {str(corpus)!r} has a {what} of its own: leave out {what}={apart!r}.")
    said = replace(said, split=split or said.split, column=column or said.column)
    rows = open_dataset(said.name if named else corpus, said.split, said.configuration)
    # What a stream says of its size may date from before it was filtered, unless nobody has had it in hands.
    size = size_of(rows) if named or hasattr(rows, "__len__") else None
    return Corpus(str(said), size, None, lambda: read_dataset(rows, column=said.column))


def _refuse(options: dict[str, str | None], names: tuple[str, ...], what: str) -> None:
    for name in names:
        if options[name] is not None:
            raise BadInput(f"There is no {name} in {what}: leave out {name}={options[name]!r}.")


def _file(corpus: object, kind: str | None) -> Path | None:
    """The file that this names, if it does; a folder is a data set, and so may be a name without a suffix of ours."""
    if not isinstance(corpus, str | Path):
        return None
    path = Path(corpus)
    means_a_file = kind is not None or _suffix(path) in SUFFIXES or not DatasetName.parse(str(corpus)).is_possible
    return path if path.is_file() or (means_a_file and not path.is_dir()) else None


def _suffix(path: Path) -> str:
    return (path.with_suffix("") if path.suffix == ".gz" else path).suffix


def _from_file(path: Path, kind: str | None, limit: int | None) -> Corpus:
    if not path.is_file():
        raise BadInput(f"There is no file {str(path)!r}: {WHAT}.")
    written = cast("FileKind", kind or SUFFIXES.get(_suffix(path)))
    if written not in READERS:
        raise BadInput(
            f"How {path} is written is not known: let its name end in {', '.join(SUFFIXES)} (or these and .gz), "
            f"or say which kind it is: {', '.join(READERS)}."
        )
    read, begins = READERS[written], COUNTED.get(written)
    if begins is None:
        return Corpus(path.name, None, None, lambda: read(path))
    size = sum(1 for _ in islice((line for _, line in numbered_lines(path) if begins(line)), limit))
    return Corpus(path.name, size, None, lambda: read(path))


def _from_memory(corpus: object, limit: int | None) -> Corpus:
    # A table would give the names of its columns, and a mapping its keys.
    if not isinstance(corpus, Iterable) or isinstance(corpus, Mapping | bytes) or hasattr(corpus, "columns"):
        raise BadInput(f"This is a {type(corpus).__name__}: {WHAT}.")
    # What can be read only once is kept.
    things = list(islice(_items(corpus), limit)) if isinstance(corpus, Iterator) else corpus
    size = sum(1 for _ in _items(things)) if hasattr(things, "__len__") else None
    return Corpus("sentences in memory", size, None, lambda: _items(things))


def _items(things: Iterable[Any]) -> Items:
    for number, thing in enumerate(things):
        if not all(is_text(part) for part in _strings(thing)):
            raise BadInput(f"Item {number} of the corpus has half a character in it, which is no text.")
        if isinstance(thing, AgreementSentence):
            yield thing.sentence
        elif isinstance(thing, Sentence):
            yield thing
        elif isinstance(thing, str):
            if text := thing.strip():
                yield text
        elif isinstance(thing, list | tuple) and thing and all(isinstance(word, str) for word in thing):
            yield Sentence(tuple(thing))
        else:
            raise BadInput(
                f"Item {number} of the corpus is {_quote(thing)}: give a sentence, a text, or a list of words."
            )


def _strings(thing: object) -> Iterable[str]:
    """What is written in an item."""
    if isinstance(thing, Sentence):
        return thing.words
    found = [thing] if isinstance(thing, str) else thing if isinstance(thing, list | tuple) else []
    return (part for part in found if isinstance(part, str))


def _quote(thing: object) -> str:
    return f"a {type(thing).__name__}" if thing or not isinstance(thing, list | tuple) else "an empty list"


def _limit(corpus: Corpus, limit: int | None) -> Corpus:
    if limit is None:
        return corpus
    size = None if corpus.size is None else min(corpus.size, limit)
    return replace(corpus, size=size, source=lambda: islice(corpus.items(), limit))


def _parsed_by(corpus: Corpus, parser: Any) -> Corpus:
    if isinstance(parser, str):
        return replace(corpus, parser=parser)
    if parser is not None:
        loaded = Parser(parser)
        return replace(corpus, size=None, parser=None, source=lambda: chain.from_iterable(loaded.parse(corpus.items())))
    if corpus.parser is not None:
        return corpus
    return replace(corpus, source=lambda: (plain(item) if isinstance(item, str) else item for item in corpus.items()))


# The name of a data set, with the part of it that is meant: NAME:SPLIT, NAME:CONFIGURATION:SPLIT, and #COLUMN.


PARTS = re.compile(r"(?P<name>[^:#]+)(:(?P<configuration>[\w.-]+)(?=:))?(:(?P<split>[\w.-]+))?(#(?P<column>[^#]+))?")
HUB_NAME = re.compile(r"\w[\w.-]*(/[\w.-]+)?")
"""A data set of the hub, perhaps with its owner."""


@dataclass(frozen=True)
class DatasetName:
    """What the name of a data set says.

    >>> DatasetName.parse("stanfordnlp/imdb:test#review")
    DatasetName(name='stanfordnlp/imdb', configuration=None, split='test', column='review')
    >>> DatasetName.parse("Salesforce/wikitext:wikitext-2-raw-v1:test").configuration
    'wikitext-2-raw-v1'
    """

    name: str
    configuration: str | None = None
    split: str | None = None
    column: str | None = None

    @classmethod
    def parse(cls, text: str) -> "DatasetName":
        """The parts of a name; a folder of just this name is taken as it is."""
        found = None if Path(text).is_dir() else PARTS.fullmatch(text)
        return cls(text) if found is None else cls(**found.groupdict())

    @property
    def is_possible(self) -> bool:
        """Whether this is a folder, or may be a data set of the hub."""
        return Path(self.name).is_dir() or HUB_NAME.fullmatch(self.name) is not None

    def __str__(self) -> str:
        """What is read, in words, without the path of a folder: results hold no paths."""
        name = Path(self.name).resolve().name if Path(self.name).is_dir() else self.name
        name = name if self.configuration is None else f"{name}:{self.configuration}"
        name = name if self.split is None else f"{name}, {self.split}"
        return name if self.column is None else f"{name} ({self.column})"


# Some sentences of a corpus, spread evenly over it: a file may be sorted by what it is about.


def spread(corpus: Corpus, limit: int) -> Corpus:
    """So many of its items, as evenly spread as can be; the first ones where nobody knows how many there are.

    >>> [sentence.words for sentence in spread(sentences_of(["one", "two", "three", "four"]), 2)]
    [('two',), ('four',)]
    """
    check_number("limit", limit, 1)
    size = corpus.size
    if size is None:
        return replace(sentences_of(corpus, limit=limit), name=f"{corpus.name}, the first {limit}")
    if limit >= size:
        return corpus
    return replace(
        corpus,
        name=f"{corpus.name}, {limit} of {size}",
        size=limit,
        source=lambda: (
            item for place, item in enumerate(corpus.items()) if (place + 1) * limit // size > place * limit // size
        ),
    )
