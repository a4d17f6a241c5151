"""The experiment: survey a corpus as the paper did, judge its claims, and write the report."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from ...errors import BadInput
from ...progress import Watch
from ...surveying import Survey, survey
from ...syntax import Sentence, Unaligned, spread
from ...views.plots import layer_bars_by_label
from ..claims import Claim, Criterion, judged, without_verdicts
from ..document import Figure
from ..writing import SURVEY, Reproduction, compare, own_folder, write_reproduction
from . import dependencies, distances, tags
from .corpus import Scale, corpus_of, documents_of, genres_of, scale_named, toys
from .dependencies import EITHER
from .evidence import chosen
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
    from ...surveying.shard import read_sentence

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


# Every claim of the paper with the rule by which it is judged, in the order of the paper's sections.


ORDER = (
    "tags-with-specialised-head-to tags-with-specialised-head-from nouns-head-share propn-heads-deep det-heads-shallow "
    "punct-from-heads-deep from-shares-uniform-in-early-layers alignment-peaks-in-middle-layers "
    "alignment-peaks-where-distance-lowest subjects-deeper aux-cc-det-expl-neg-lower "
    "distance-greatest-in-deepest-layers distance-sd distance-entropy-correlate distance-alignment-anticorrelate "
    "far-but-sharp-head previous-token-head null-attention-share some-null-above-97 dependency-by-distance "
    "dependency-distance"
).split()

CRITERIA: tuple[Criterion[Survey], ...] = tuple(
    sorted((*tags.CRITERIA, *dependencies.CRITERIA, *distances.CRITERIA), key=lambda one: ORDER.index(one.id))
)


def claims_of(survey: Survey) -> list[Claim]:
    """The paper's claims, judged on a survey of whatever model and corpus."""
    return judged(CRITERIA, survey)


# What differs between genres: alignment and distance by layer, side by side.


def by_genre(surveys: Mapping[str, Survey], statistic: str, labels: Mapping[str, str]) -> pd.DataFrame:
    """The figures of each layer, one genre below the other."""
    tables = [
        chosen(found[statistic].by_layer(), statistic, dict(labels)).assign(genre=name)
        for name, found in surveys.items()
    ]
    return pd.concat(tables, ignore_index=True)


def genre_figures(surveys: Mapping[str, Survey]) -> tuple[list[Figure], dict[str, pd.DataFrame]]:
    """The figures of the comparison, and the tables behind them."""
    distance = by_genre(surveys, "distance", {})
    tables = {"distance_by_layer": distance}
    plot = layer_bars_by_label(distance, "genre", label="mean distance (tokens)", shared=True)
    figures = [Figure("distance_by_layer", plot, "Mean distance by layer in each genre, on one scale (Fig. 11).")]
    if all("dependency_alignment" in found for found in surveys.values()):
        alignment = by_genre(surveys, "dependency_alignment", EITHER)
        tables["dependency_alignment_by_layer"] = alignment
        plot = layer_bars_by_label(alignment, "genre", label="share of attention", shared=True)
        words = "Attention along dependency relations by layer in each genre, either direction, on one scale (Fig. 8)."
        figures.insert(0, Figure("dependency_alignment_by_layer", plot, words))
    return figures, tables
