"""The stage of the experiment: one survey of a corpus, or one for each of its genres.

Which sentences are read: by scale, by name, by genre, or joined to documents.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from ...capture import InstrumentedModel, load
from ...corpora import CORPORA, dataset_file
from ...errors import BadInput
from ...numerals import counted
from ...progress import tokens_done
from ...surveying import Survey, survey
from ...surveying.shard import read_sentence
from ...syntax import Corpus, Sentence, Unaligned, genre, joined, sentences_of, spread
from ..experiment import Attempt
from ..writing import SURVEY
from .paper import Options, Scale

DOCUMENT_WORDS = 250
"""Words in a piece of a document: with all their subwords they stay below the 512 tokens that small models read."""


def prepare(attempt: Attempt[Scale, Options]) -> dict[str, Any]:
    """Load the model and read the corpus, in parts where each genre is surveyed by itself."""
    scale, options = attempt.scale, attempt.options
    limit = scale.limit if options.limit is None else options.limit
    texts = corpus_of(
        options.corpus,
        scale,
        data=options.data,
        parser=options.parser,
        # sentences that are spread out would not follow each other: of documents, the limit counts them
        limit=None if options.documents else limit,
        sentences=options.sentences,
        whole=options.by_genre or options.documents,
    )
    if texts.parser is not None:
        next(texts.sentences(), None)  # a parser that cannot be loaded is refused now, before anything is written
    if options.by_genre and not options.documents:
        genres_of(texts)  # and so is a corpus without genres, before the model is loaded
    model = _load(options.model, scale)
    if options.documents:
        texts = documents_of(texts, partial(_is_readable, model))
        texts = texts if limit is None else spread(texts, limit)
    # where genres are parts, each has a folder of its own
    parts = genres_of(texts) if options.by_genre else {"": texts}
    attempt.results |= {"model": model, "parts": parts}
    return {
        "scale": attempt.scale_name,
        "model": Path(model.name).name,
        "corpus": texts.name,
        "by_genre": options.by_genre,
        "documents": options.documents,
        "limit": limit,
        **({} if options.sentences is None else {"sentences": options.sentences}),
    }


def run_survey(attempt: Attempt[Scale, Options]) -> dict[str, Survey]:
    """The survey of each part, begun now or continued."""
    options, surveys = attempt.options, {}
    with tokens_done() if options.watch is None else nullcontext(options.watch) as watch:
        for name, texts in attempt["parts"].items():
            place = attempt.folder / name / SURVEY
            surveys[name] = survey(
                attempt["model"],
                texts,
                engine=options.engine,
                out=place,
                resume=place.exists(),
                null=options.null,
                watch=watch,
            )
    return surveys


def _load(model: Any, scale: Scale) -> InstrumentedModel:
    if model is not None:
        return model if isinstance(model, InstrumentedModel) else load(model)
    try:
        return load(scale.model)
    except BadInput as error:
        raise BadInput(
            f"The paper's model is GPT-2, and it cannot be loaded here ({str(error).rstrip('.')}): name another model"
            " or its folder (--model, model=), and the claims are then about that."
        ) from error


def _is_readable(model: InstrumentedModel, sentence: Sentence) -> bool:
    """Whether the words of a sentence meet the model's tokens."""
    try:
        read_sentence(model.hugging_face, sentence, 0, frozenset())
    except Unaligned:
        return False
    return True


def lacks(_scale: str, given: Mapping[str, Any]) -> Iterator[str]:
    """Whether the paper's model is wanted and can be had."""
    if "model" not in given and os.environ.get("HF_HUB_OFFLINE") and not _is_cached("gpt2"):
        yield "the model gpt2 (some 550 MB from the Hugging Face hub, or another one by --model)"


def _is_cached(model: str) -> bool:
    from transformers.utils.hub import cached_file

    try:
        return cached_file(model, "config.json", local_files_only=True) is not None
    except OSError:
        return False


def toy_caution(model: Any, corpus: Any) -> str:
    """What a reader must know before the claims where what is shipped was run; nothing where it was not."""
    shipped = {"The shipped model is a toy": model, "The shipped grammar is a toy": corpus}
    toys = [sentence for sentence, run in shipped.items() if isinstance(run, str) and run == "demo"]
    if not toys:
        return ""
    sentence = "The shipped model and grammar are toys" if len(toys) == len(shipped) else toys[0]
    return f"{sentence}: this run shows that the experiment works, and is not meant to confirm claims about GPT-2."


# Which sentences are read.


def corpus_of(
    asked: Any,
    scale: Scale,
    *,
    data: str | Path | None,
    parser: Any,
    limit: int | None,
    sentences: int | None = None,
    whole: bool = False,
) -> Corpus:
    """The sentences of a corpus, of which a limit takes some that are spread evenly over it.

    A limit on what is to be parsed counts texts. With `sentences`, which counts what the parser makes of them, and with
    `whole`, where sentences are to be sorted or joined, the parse is made here and now.
    """
    found = _open_corpus(scale.corpus if asked is None else asked, scale, data, parser, limit)
    found = found if limit is None else spread(found, limit)
    if found.parser is not None and (whole or sentences is not None):
        parsed = tuple(found.sentences())
        found = Corpus(found.name, len(parsed), None, lambda: iter(parsed))
    return found if sentences is None else spread(found, sentences)


def _open_corpus(asked: Any, scale: Scale, data: str | Path | None, parser: Any, limit: int | None) -> Corpus:
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


def licence_of(asked: Any) -> str:
    """Under which licence sentences are quoted; nothing where that is not known.

    >>> licence_of("ud_ewt:dev"), licence_of([["Dogs", "bark"]])
    ('CC BY-SA 4.0', '')
    """
    name = asked.partition(":")[0] if isinstance(asked, str) else ""
    return CORPORA[name].licence if name in CORPORA else ""


def genres_of(corpus: Corpus) -> dict[str, Corpus]:
    """The corpus by genre, by the names of its sentences."""
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
    """The documents of the corpus in pieces of several sentences each; the name says what is left out.

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
