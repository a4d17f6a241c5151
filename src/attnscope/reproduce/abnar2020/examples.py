"""The sentences trained, validated and tested on at each scale."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...errors import BadInput
from ...lab.agreement import grammar_examples, read_agreement, split
from ...lab.data import AgreementExample, build_agreement
from ...lab.data.examples_file import card_of, words_of
from ...progress import tokens_done
from .paper import Scale

SENTENCES = 3_000
"""Sentences of the shipped grammar."""
SOURCES = ("ud_ewt:train", "ud_ewt:dev", "wikitext2", "imdb:train")
"""What training data is built from: gold parses first, then plain text for a parser."""
SHUFFLED = 42
"""The seed by which the authors shuffled Linzen's file."""


@dataclass(frozen=True)
class Examples:
    """What is learned from and looked at."""

    training: list[AgreementExample]
    validation: list[AgreementExample]
    held_out: list[AgreementExample]
    """Of the same text as the training sentences, in its own mix: most have no attractor."""
    testing: list[AgreementExample]
    """What the tables are made of."""
    told: str
    """Where they come from, in words."""


def examples_of(
    scale: Scale, folder: Path, *, corpus: str | None, data: str | Path | None, parser: str, limit: int | None
) -> Examples:
    """All sentences of a scale; what must be built is built in `folder`, and found there the next time.

    `corpus` is what to train on in place of the scale's own: a file that `attnscope data build agreement` has written,
    with its words beside it, or Linzen's own file (.tsv), which is then split as the authors did.
    """
    if limit is not None and (corpus is not None or scale.text != "text"):
        raise BadInput("A limit says how much text training data is built from, and nothing is built here.")
    if corpus is not None and ".tsv" in Path(corpus).suffixes:
        return linzen_split(read_agreement(corpus), Path(corpus).name)
    if corpus is not None:
        return _tested(Path(corpus), folder, data, parser)
    if scale.text == "linzen":
        raise BadInput(
            "The paper's sentences are those of Linzen et al. 2016: give their file agr_50_mostcommon_10K.tsv(.gz) from"
            " github.com/TalLinzen/rnn_agreement with --corpus."
        )
    if scale.text == "grammar":
        training, validation, testing = split(grammar_examples(SENTENCES))
        return Examples(training, validation, testing, testing, "of the shipped grammar")
    path = folder / "train.jsonl.gz"
    if not path.exists():
        with tokens_done() as watch:
            build_agreement(SOURCES, path, parser=parser, limit=limit, data=data, resume=True, watch=watch)
    return _tested(path, folder, data, parser)


def _tested(path: Path, folder: Path, data: str | Path | None, parser: str) -> Examples:
    """The sentences of a built file to train on, and those of Linzen's subset to test on, with the same words kept."""
    training, validation, held_out = split(read_agreement(path))
    if not words_of(path).is_file():
        raise BadInput(f"{path} has no {words_of(path).name} beside it, which attnscope data build agreement writes.")
    tested = folder / "test.jsonl.gz"
    if not tested.exists():
        with tokens_done() as watch:
            build_agreement(
                ["agreement"], tested, parser=parser, words=words_of(path), data=data, resume=True, watch=watch
            )
    return Examples(
        training, validation, held_out, read_agreement(tested), f"{_sources(path)}; tested on Linzen's subset"
    )


def _sources(path: Path) -> str:
    """Where built sentences come from, as their card says it."""
    if not card_of(path).is_file():
        return f"of {path.name}"
    return f"of {', '.join(json.loads(card_of(path).read_text(encoding='utf-8'))['recipe']['sources'])}"


def linzen_split(examples: Sequence[AgreementExample], name: str) -> Examples:
    """The authors' split of Linzen's file: a tenth trains, a hundredth validates, the rest tests, shuffled by 42."""
    order = np.random.RandomState(SHUFFLED).permutation(len(examples))
    tenth, hundredth = len(examples) // 10, len(examples) // 100
    parts = np.split(order, [tenth, tenth + hundredth])
    training, validation, testing = ([examples[place] for place in part] for part in parts)
    return Examples(training, validation, testing, testing, f"of {name}, 10% to train, 1% to validate and 89% to test")
