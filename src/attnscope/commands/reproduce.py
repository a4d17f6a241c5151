"""`attnscope reproduce`: a paper run again."""

import inspect
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from ..corpora import CORPORA, files_here
from ..errors import BadInput
from ..progress import tokens_done, told_in_log, working
from .answering import AsJson, resumable, say

NEEDS = {
    "vig2019": ("ud_ewt:dev", "ud_ewt:test"),
    "abnar2020": (
        *("ud_ewt:train", "ud_ewt:dev", "wikitext2:valid", "wikitext2:test", "imdb:train"),
        *("agreement:test", "agreement:gold"),
    ),
    "wu2020": ("sst:train", "sst:dev", "sst:test", "warriner:all"),
    "sun2020": (
        "sst:train",
        "sst:dev",
        "sst:test",
        "20news:train",
        "20news:test",
        "imdb:train",
        "imdb:val",
        "imdb:test",
    ),
}
"""The data sets that a paper cannot do without beyond a trial; snell2021 leaves out what is not here, and says so."""
MEGABYTES = {"ud_ewt": 4, "wikitext2": 1, "imdb": 26, "agreement": 1, "sst": 1, "warriner": 1, "20news": 4}
"""Packed, with all splits."""
REPLACED = {"corpus": ("ud_ewt", "wikitext2", "imdb", "sst"), "lexicon": ("warriner",)}
"""What an option of the user stands in for."""
PACKAGES = {
    "vig2019": {"conllu": "attnscope[syntax]"},
    "abnar2020": {"conllu": "attnscope[syntax]", "spacy": "attnscope[syntax]"},
    "wu2020": {"statsmodels": "attnscope[lexicon]"},
}
"""What else must be installed: the package, and the extra that brings it."""

PAPERS = ("vig2019", "abnar2020", "wu2020", "sun2020", "snell2021")


@resumable()
def reproduce(
    paper: Annotated[str, typer.Argument(help=f"The paper to run again: {', '.join(PAPERS)}.")],
    scale: Annotated[
        str,
        typer.Option(
            help="smoke (seconds, a toy model: a trial), cpu (an hour or so; snell2021 four), paper (as published)."
        ),
    ] = "smoke",
    model: Annotated[
        str | None, typer.Option(help="vig2019: another model than the paper's; abnar2020: a masked one, for Figure 4.")
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            help="abnar2020: what Table 3's classifier is fine-tuned from; sun2020: what reads SST beyond the paper."
            " A hub name or a folder."
        ),
    ] = None,
    corpus: Annotated[
        str | None,
        typer.Option(
            help="vig2019: another corpus, as survey takes it. abnar2020: a file that `attnscope data build agreement`"
            " wrote, or Linzen's .tsv."
        ),
    ] = None,
    vectors: Annotated[
        str | None,
        typer.Option(help="wu2020, sun2020, snell2021: word vectors, a GloVe file, glove-50 (the package) or scratch."),
    ] = None,
    lexicon: Annotated[
        str | None, typer.Option(help="wu2020: what raters say of words, warriner, vader or a file.")
    ] = None,
    send: Annotated[
        Path | None, typer.Option(help="wu2020: the folder of SEND, which its authors give on request.")
    ] = None,
    probabilities: Annotated[
        str | None, typer.Option(help="wu2020: how classes are learned, sigmoid as in the paper's code, or softmax.")
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(help="sun2020, snell2021: local, or cores or ray, which spread the models to train over workers."),
    ] = None,
    stages: Annotated[
        str | None,
        typer.Option(help="snell2021: which to run now, with commas between them; kept ones are taken as they are."),
    ] = None,
    parser: Annotated[str | None, typer.Option(help="The spaCy model that parses plain text.")] = None,
    limit: Annotated[
        int | None, typer.Option(help="Read only so many sentences, or texts to parse, of each source.")
    ] = None,
    by_genre: Annotated[
        bool, typer.Option("--by-genre", help="One reproduction for each genre of the corpus.")
    ] = False,
    documents: Annotated[bool, typer.Option("--documents", help="Whole documents in place of sentences.")] = False,
    data: Annotated[Path | None, typer.Option(help="Where data sets lie, before $ATTNSCOPE_DATA.")] = None,
    out: Annotated[Path | None, typer.Option(help="The folder to write; named after the paper by default.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a paper again: its figures and tables, and each claim judged here, the paper's number beside ours.

    Example: attnscope reproduce vig2019 --scale cpu --model gpt2 --data data --out vig2019
    """
    if paper not in PAPERS:  # told before the papers themselves are imported, which takes seconds
        raise BadInput(f"There is no experiment {paper!r}: choose {', '.join(PAPERS)}.")
    with working(f"Preparing {paper}"):
        from ..reproduce import EXPERIMENTS
    given = {
        "model": model,
        "encoder": encoder,
        "corpus": corpus,
        "vectors": vectors,
        "lexicon": lexicon,
        "send": send,
        "probabilities": probabilities,
        "engine": engine,
        "stages": stages,
        "parser": parser,
        "limit": limit,
        "by_genre": by_genre or None,
        "documents": documents or None,
        "data": data,
    }
    given = {name: value for name, value in given.items() if value is not None}
    taken = inspect.signature(EXPERIMENTS[paper]).parameters
    if unknown := [name for name in given if name not in taken]:
        raise BadInput(f"{paper} takes no --{unknown[0].replace('_', '-')}.")
    if vectors is not None:
        from ..lab.word_vectors import said_vectors

        said_vectors(vectors)  # a file that is not there is told before anything is written
    # what a run that goes on has built already it needs no more, and the paper's own sentences are a file to be given
    if scale in {"cpu", "paper"} and not resume and (paper, scale) != ("abnar2020", "paper"):
        _check_needs(paper, scale, given)
    with told_in_log(f"Reproducing {paper}"), tokens_done() if "watch" in taken else nullcontext() as watch:
        options = {"watch": watch} if "watch" in taken else {}
        result = EXPERIMENTS[paper](out or Path(paper), scale=scale, resume=resume, **given, **options)
    if as_json:
        say(json.dumps({"out": str(result.folder), "caution": result.caution, "claims": result.to_json()}))
        return
    say(result.summary())
    say(f"Written: {result.folder} (open {result.folder / 'report.html'} in a browser)")


def _check_needs(paper: str, scale: str, given: Mapping[str, Any]) -> None:
    """Refuse a run that lacks something, with all that it lacks, so that one errand is enough."""
    lacking = [*_lacking_data(paper, given), *_lacking_packages(paper, given)]
    if lacking:
        raise BadInput(f"{paper} at the scale {scale} lacks {len(lacking)} of its needs: {'; '.join(lacking)}.")


def _lacking_data(paper: str, given: Mapping[str, Any]) -> Iterator[str]:
    replaced = {name for option, names in REPLACED.items() if option in given for name in names}
    splits: dict[str, list[str]] = {}
    for need in NEEDS.get(paper, ()):
        name, _, split = need.partition(":")
        if name not in replaced and split not in files_here(name, given.get("data")):
            splits.setdefault(name, []).append(split)
    for name, missing in splits.items():
        how = f"attnscope data get {name}" if CORPORA[name].downloads else f"attnscope data add {name} FILE"
        size = f", some {MEGABYTES[name]} MB" if name in MEGABYTES else ""
        yield f"the data set {name} ({', '.join(missing)}{size}: {how})"


def _lacking_packages(paper: str, given: Mapping[str, Any]) -> Iterator[str]:
    for package, extra in {"matplotlib": "attnscope[figures]", **PACKAGES.get(paper, {})}.items():
        if not _is_installed(package):
            yield f"the package {package} (pip install '{extra}')"
    parser = given.get("parser", "en_core_web_sm")
    if paper == "abnar2020" and _is_installed("spacy") and not _is_installed(parser) and not Path(parser).exists():
        yield f"the spaCy model {parser} (some 13 MB: python -m spacy download {parser})"
    if paper == "vig2019" and "model" not in given and os.environ.get("HF_HUB_OFFLINE") and not _is_cached("gpt2"):
        yield "the model gpt2 (some 550 MB from the Hugging Face hub, or another one by --model)"


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):  # no name of a package
        return False


def _is_cached(model: str) -> bool:
    from transformers.utils.hub import cached_file

    try:
        return cached_file(model, "config.json", local_files_only=True) is not None
    except OSError:
        return False
