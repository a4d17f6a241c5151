"""Which sentences are read: by scale, by name, by genre, or joined to documents."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from ...corpora import CORPORA, dataset_file
from ...errors import BadInput
from ...numerals import counted
from ...syntax import Corpus, Sentence, genre, joined, sentences_of, spread

DOCUMENT_WORDS = 250
"""Words in a piece of a document: with all their subwords they stay below the 512 tokens that small models read."""


@dataclass(frozen=True)
class Scale:
    """What is run where nothing else is said. `splits` are those of a named data set; none means all."""

    model: str
    corpus: str
    limit: int | None
    splits: tuple[str, ...] | None = ("dev", "valid", "test")


SCALES = {
    "smoke": Scale("demo", "demo", 200),
    "cpu": Scale("gpt2", "ud_ewt", None),
    "paper": Scale("gpt2", "ud_ewt", 10_000, splits=None),
}


def toys(model: Any, corpus: Any) -> str:
    """What a reader must know before the claims where what is shipped was run; nothing where it was not."""
    shipped = {"The shipped model is a toy": model, "The shipped grammar is a toy": corpus}
    told = [what for what, run in shipped.items() if isinstance(run, str) and run == "demo"]
    if not told:
        return ""
    what = "The shipped model and grammar are toys" if len(told) == len(shipped) else told[0]
    return f"{what}: this run shows that the experiment works, and is not meant to confirm claims about GPT-2."


def scale_named(name: str) -> Scale:
    """The scale, if there is one of that name."""
    if name not in SCALES:
        raise BadInput(f"There is no scale {name!r}: choose {', '.join(SCALES)}.")
    return SCALES[name]


def corpus_of(
    asked: Any, scale: Scale, *, data: str | Path | None, parser: Any, limit: int | None, whole: bool
) -> Corpus:
    """The sentences of a corpus, of which a limit takes some that are spread evenly over it.

    With `whole`, the parse is made here and now, because sentences are to be sorted or joined.
    """
    found = _opened(scale.corpus if asked is None else asked, scale, data, parser, limit)
    if whole and found.parser is not None:
        found = Corpus(found.name, None, None, found.sentences)
    return found if limit is None else spread(found, limit)


def _opened(asked: Any, scale: Scale, data: str | Path | None, parser: Any, limit: int | None) -> Corpus:
    name, _, split = asked.partition(":") if isinstance(asked, str) else ("", "", "")
    if name not in CORPORA:
        # the shipped grammar has no end, so here a limit says how far it goes
        return sentences_of(asked, parser=parser, limit=limit if asked == "demo" else None)
    files = CORPORA[name].files
    if split and split not in files:
        raise BadInput(f"{name} has no split {split!r}: choose from {', '.join(files)}.")
    splits = [split] if split else [one for one in files if scale.splits is None or one in scale.splits]
    kind = CORPORA[name].kind
    parts = [sentences_of(dataset_file(name, one, data), parser=parser, kind=kind) for one in splits]
    sizes = [part.size for part in parts if part.size is not None]
    size = sum(sizes) if len(sizes) == len(parts) else None
    return replace(
        parts[0],
        name=f"{name} ({' + '.join(splits)})",
        size=size,
        source=lambda: chain.from_iterable(part.items() for part in parts),
    )


def genres_of(corpus: Corpus) -> dict[str, Corpus]:
    """The corpus by genre, as the names of its sentences tell it."""
    found: dict[str, int] = {}
    for sentence in corpus.sentences():
        of_it = genre(sentence)
        if of_it is None:
            raise BadInput(f"The sentences of {corpus.name} have no names that tell a genre, as those of ud_ewt do.")
        found[of_it] = found.get(of_it, 0) + 1
    return {
        name: Corpus(f"{corpus.name}, {name}", size, None, _only(corpus, name)) for name, size in sorted(found.items())
    }


def _only(corpus: Corpus, name: str) -> Callable[[], Iterator[Sentence | str]]:
    return lambda: (sentence for sentence in corpus.sentences() if genre(sentence) == name)


def documents_of(corpus: Corpus, readable: Callable[[Sentence], bool] = bool) -> Corpus:
    """The documents of the corpus in pieces of several sentences each; what is left out is told in the name.

    A piece ends before a sentence that is not readable, or one such would cost the whole document.
    """
    verdicts = [readable(sentence) for sentence in corpus.sentences()]
    unreadable = verdicts.count(False)
    pieces = tuple(_pieces(corpus, readable))
    alone = sum(verdicts) - sum(piece.parts for piece in pieces)
    if not pieces:
        raise BadInput(
            f"{corpus.name} has no documents of several sentences: give a corpus that names them, such as ud_ewt."
        )
    left_out = [
        f"{counted(number, 'sentence')} that {why}"
        for number, why in ((unreadable, "cannot be aligned"), (alone, "would stand alone"))
        if number
    ]
    without = f" without {' and '.join(left_out)}" if left_out else ""
    return Corpus(f"{corpus.name}, as documents{without}", len(pieces), None, lambda: iter(pieces))


def _pieces(corpus: Corpus, readable: Callable[[Sentence], bool]) -> Iterator[Sentence]:
    for document, together in groupby(corpus.sentences(), key=lambda sentence: sentence.document):
        if document is None:
            continue
        piece: list[Sentence] = []
        for sentence in together:
            good = readable(sentence)
            if not good or sum(map(len, piece)) + len(sentence) > DOCUMENT_WORDS:
                yield from _several(piece)
                piece = []
            if good:
                piece.append(sentence)
        yield from _several(piece)


def _several(piece: list[Sentence]) -> Iterator[Sentence]:
    if len(piece) > 1:
        yield joined(piece)
