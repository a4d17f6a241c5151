"""The experiment: survey a corpus as the paper did, judge its claims, and write the report."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ...errors import BadInput
from ...progress import Watch
from ...surveying import Survey, survey
from ...syntax import Sentence, Unaligned, spread
from ..comparing import compare
from ..judging import without_verdicts
from ..writing import SURVEY, Reproduction, own_folder, write_reproduction
from .corpus import Scale, corpus_of, documents_of, genres_of, scale_named, toys
from .criteria import claims_of
from .genres import genre_figures
from .report import report_of


def reproduce_vig2019(
    out: str | Path,
    *,
    scale: str = "smoke",
    model: Any = None,
    corpus: Any = None,
    data: str | Path | None = None,
    parser: Any = None,
    limit: int | None = None,
    by_genre: bool = False,
    documents: bool = False,
    null: str | None = None,
    engine: str = "local",
    resume: bool = False,
    watch: Watch | None = None,
) -> Reproduction:
    """Every figure, table and claim of Vig & Belinkov (2019), for any model and corpus, in the folder `out`.

    `scale` is "smoke" (the shipped model, 200 sentences of the shipped grammar), "cpu" (GPT-2 over the dev and test
    sentences of ud_ewt) or "paper" (10,000 sentences of all of ud_ewt); `model`, `corpus` and `limit` replace its own.
    `corpus` is the name of a data set in `data` ("ud_ewt", "wikitext2", "ud_ewt:train") or whatever `survey` takes, and
    a limit takes sentences spread evenly over it. With `by_genre` each genre gets a report of its own, and `out` one
    that compares them. With `documents` the sentences of a document are read together, up to 250 words at a time.

    Where GPT-2 cannot be loaded, another model must be named, and the claims are then about that model. The survey
    behind the report grows in `out`/survey; with `resume` it goes on where it was stopped.

    Raises:
        BadInput: If the scale is not known, the model or corpus cannot be read, or the folder holds something else.
    """
    chosen = scale_named(scale)
    folder = own_folder(out, resume=resume)
    limit = chosen.limit if limit is None else limit
    # sentences that are spread out would not follow each other: of documents, the limit counts them and not sentences
    taken = None if documents else limit
    texts = corpus_of(corpus, chosen, data=data, parser=parser, limit=taken, whole=by_genre or documents)
    if texts.parser is not None:
        next(texts.sentences(), None)  # a parser that cannot be loaded is told now, before anything is written
    parts = genres_of(texts) if by_genre and not documents else {}
    loaded = _loaded(model, chosen)
    if documents:
        joined = documents_of(texts, partial(_is_readable, loaded))
        texts = joined if limit is None else spread(joined, limit)
        parts = genres_of(texts) if by_genre else {}
    options: dict[str, Any] = {"null": null, "engine": engine, "resume": resume, "watch": watch}
    caution = toys(chosen.model if model is None else model, chosen.corpus if corpus is None else corpus)
    if not by_genre:
        return _one(folder, survey(loaded, texts, out=folder / SURVEY, **options), caution)
    surveys = {name: survey(loaded, part, out=folder / name / SURVEY, **options) for name, part in parts.items()}
    return _all_genres(folder, surveys, caution)


# What runs models takes seconds to import: it is imported where it is used, so that a slip is told before.


def _is_readable(model: Any, sentence: Sentence) -> bool:
    """Whether the words of a sentence meet the model's tokens."""
    from ...surveying.aligning import read_sentence

    try:
        read_sentence(model.reader, sentence, 0, frozenset())
    except Unaligned:
        return False
    return True


def _loaded(model: Any, scale: Scale) -> Any:
    from ...capture import load

    if model is not None:
        return load(model) if isinstance(model, str) else model
    try:
        return load(scale.model)
    except BadInput as error:
        raise BadInput(
            f"The paper's model is GPT-2, and it cannot be loaded here ({str(error).rstrip('.')}): name another model"
            " or its folder (--model, model=), and the claims are then about that."
        ) from error


def _one(folder: Path, found: Survey, caution: str) -> Reproduction:
    claims = without_verdicts(claims_of(found), caution)
    document, tables = report_of(found, claims, caution)
    return write_reproduction(folder, document, claims, tables)


def _all_genres(folder: Path, surveys: Mapping[str, Survey], caution: str) -> Reproduction:
    for name, found in surveys.items():
        _one(folder / name, found, caution)
    cards = [found.card for found in surveys.values()]
    corpus = str(cards[0]["corpus"]).rpartition(",")[0]
    figures, tables = genre_figures(surveys)
    title = f"Vig & Belinkov (2019) on {cards[0]['model']['name']}, {corpus}, by genre"
    runs = {name: folder / name for name in surveys}
    return compare(folder, runs, title, caution=caution, figures=figures, tables=tables)
