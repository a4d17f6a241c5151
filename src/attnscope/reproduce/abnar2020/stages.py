"""The stages of the experiment: the sentences, a model for each seed, and what each does on the test sentences."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from ...capture import load
from ...engine import Store
from ...errors import BadInput
from ...lab.agreement import accuracy_by_attractors, grammar_examples, read_agreement, split, train_on
from ...lab.data import AgreementExample, build_agreement
from ...lab.data.examples_file import card_of, sha256_of, words_of
from ...lab.models import AgreementTransformer
from ...lab.models.word_model import WEIGHTS
from ...progress import items_done, tokens_done
from ..experiment import Attempt
from .claims import Evidence, Run
from .masked_head import HeadFigures, held_out_blocks, load_without_head, measure_head, train_masked_head
from .paper import Options, Scale
from .pattern_claims import NO_PRONOUNS, NOT_AT_THIS_SIZE
from .pronoun_pairs import PronounStudy, study_pronouns
from .pronouns import masked_pronouns
from .scoring import (
    Scores,
    SentenceScores,
    correlate,
    evenness_table,
    first_layer_gap,
    residual_table,
    saturation_table,
    score_sentences,
    subject_table,
)


def prepare(attempt: Attempt[Scale, Options]) -> dict[str, Any]:
    """See that a model of Figure 4 fills gaps, and that the sentences can be had; the recipe."""
    options = attempt.options
    corpus = None if options.corpus is None else Path(options.corpus)
    model = load(options.model) if isinstance(options.model, str) else options.model
    if model is not None:
        masked_pronouns(model)  # which refuses what cannot fill a gap
    elif options.head_on is not None:
        load_without_head(options.head_on)
    attempt.results["gap filler"] = model
    if corpus is not None and not corpus.is_file():
        raise BadInput(f"There is no file {corpus}: give one that attnscope data build agreement has written.")
    if options.limit is not None and (corpus is not None or attempt.scale.text != "text"):
        raise BadInput("A limit says how much text training data is built from, and nothing is built here.")
    if corpus is None and attempt.scale.text == "linzen":
        raise BadInput(
            "The paper's sentences are those of Linzen et al. 2016: give their file agr_50_mostcommon_10K.tsv(.gz) from"
            " github.com/TalLinzen/rnn_agreement with --corpus."
        )
    return {
        "scale": attempt.scale_name,
        # with what tells its content, so that another file of the same name is not taken for it
        "corpus": None if corpus is None else [corpus.name, sha256(corpus.read_bytes()).hexdigest()],
        "parser": options.parser,
        "limit": options.limit,
        **({} if options.head_on is None else {"head on": Path(options.head_on).name}),
    }


def is_toy(attempt: Attempt[Scale, Options]) -> bool:
    """Whether the models learn nothing but the shipped grammar."""
    return bool(attempt.scale.text == "grammar" and attempt.options.corpus is None)


# The sentences trained, validated and tested on at each scale.


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
    source: str
    """Where they come from, in words."""


def build_examples(attempt: Attempt[Scale, Options]) -> Examples:
    """All sentences of a scale; what must be built is built in the folder `data`, and found there the next time.

    `corpus` is what to train on in place of the scale's own: a file that `attnscope data build agreement` has written,
    with its words beside it, or Linzen's own file (.tsv), which is then split as the authors did.
    """
    options, folder = attempt.options, attempt.folder / "data"
    corpus = None if options.corpus is None else Path(options.corpus)
    if corpus is not None and ".tsv" in corpus.suffixes:
        return linzen_split(read_agreement(corpus), corpus.name)
    if corpus is None and attempt.scale.text == "grammar":
        training, validation, testing = split(grammar_examples(SENTENCES))
        return Examples(training, validation, testing, testing, "of the shipped grammar")
    path = corpus or folder / "train.jsonl.gz"
    if corpus is None:
        _build(options, SOURCES, path, limit=options.limit)
    training, validation, held_out = split(read_agreement(path))
    if not words_of(path).is_file():
        raise BadInput(f"{path} has no {words_of(path).name} beside it, which attnscope data build agreement writes.")
    tested = folder / "test.jsonl.gz"
    _build(options, ["agreement"], tested, words=words_of(path))
    source = path.name
    if card_of(path).is_file():  # where built sentences come from
        source = ", ".join(json.loads(card_of(path).read_text(encoding="utf-8"))["recipe"]["sources"])
    testing = read_agreement(tested)
    return Examples(training, validation, held_out, testing, f"of {source}; tested on Linzen's subset")


def _build(options: Options, sources: Sequence[str], path: Path, **further: Any) -> None:
    if not path.exists():
        with tokens_done() as watch:
            build_agreement(
                sources, path, parser=options.parser, data=options.data, resume=True, watch=watch, **further
            )


def linzen_split(examples: Sequence[AgreementExample], name: str) -> Examples:
    """The authors' split of Linzen's file: a tenth trains, a hundredth validates, the rest tests, shuffled by 42."""
    order = np.random.RandomState(SHUFFLED).permutation(len(examples))
    tenth, hundredth = len(examples) // 10, len(examples) // 100
    parts = np.split(order, [tenth, tenth + hundredth])
    training, validation, testing = ([examples[place] for place in part] for part in parts)
    return Examples(training, validation, testing, testing, f"of {name}, 10% to train, 1% to validate and 89% to test")


# The agreement models of all seeds, and what they do.


def train_models(attempt: Attempt[Scale, Options]) -> dict[int, AgreementTransformer]:
    """The agreement model of each seed: trained now, or found in the folder from before."""
    examples: Examples = attempt["examples"]
    models = {}
    for seed in attempt.scale.seeds:
        place = _place(attempt, seed)
        train_on(
            place,
            lambda: (examples.training, examples.validation, examples.held_out),
            examples.source,
            seed=seed,
            resume=place.exists(),
            steps=attempt.scale.steps,
            settings=attempt.scale.settings,
            blanked=attempt.scale.blanked,
        )
        models[seed] = AgreementTransformer.load(place)
    return models


def _place(attempt: Attempt[Scale, Options], seed: int) -> Path:
    return attempt.folder / "models" / f"seed-{seed}"


NATURAL, ATTRACTORS = "natural", "attractors"


def score_test_sentences(attempt: Attempt[Scale, Options]) -> dict[str, Scores]:
    """What the model of each seed does on the sentences of the tables, which are the same for all of them.

    They are held-out sentences in the natural mix of the text, and those that are chosen for their attractors, where
    there are such; each kind is drawn once for all seeds.
    """
    models: dict[int, AgreementTransformer] = attempt["models"]
    examples: Examples = attempt["examples"]
    longest = models[attempt.scale.seeds[0]].settings.positions
    kinds = {NATURAL: examples.held_out}
    if examples.testing is not examples.held_out:
        kinds[ATTRACTORS] = examples.testing
    scores: dict[str, dict[int, list[SentenceScores]]] = {}
    for kind, sentences in kinds.items():
        tested = draw_sentences(sentences, attempt.scale.sentences, longest)
        for seed, model in models.items():
            weights = sha256_of(_place(attempt, seed) / WEIGHTS)
            with items_done(f"Sentences ({kind}), seed {seed}") as watch:
                place = attempt.folder / "scores" / f"{kind}-{seed}"
                scores.setdefault(kind, {})[seed] = score_sentences(model, weights, tested, place, seed, watch)
    return dict(scores)


def draw_sentences(examples: Sequence[AgreementExample], count: int, longest: int) -> list[AgreementExample]:
    """So many test sentences that the model can read, drawn once for all seeds, in their order."""
    fitting = [example for example in examples if len(example.words) + 2 <= longest]
    drawn = np.random.default_rng(0).permutation(len(fitting))[:count]
    return [fitting[place] for place in sorted(drawn)]


def fill_gaps(attempt: Attempt[Scale, Options]) -> PronounStudy | None:
    """Figure 4 and its pairs, by the model that was named or by a head that is trained here; None without either."""
    options, scale = attempt.options, attempt.scale.head
    if (model := attempt["gap filler"]) is not None:
        return study_pronouns(model, f"{getattr(model, 'name', type(model).__name__)}, with its own head")
    if options.head_on is None:
        return None
    place = attempt.folder / "models" / f"masked-{Path(options.head_on).name}"
    train_masked_head(place, options.head_on, scale, options.data, resume=place.exists())
    model = load(str(place))
    figures = Store(attempt.folder / "models", "figures of the head", {}).once(
        f"{place.name}-figures",
        lambda: asdict(
            measure_head(model.model, model.tokenizer, held_out_blocks(model.tokenizer, scale, options.data))
        ),
        asdict(scale),
    )
    named = f"{Path(options.head_on).name} and a masked-LM head, fine-tuned here for {scale.steps} steps"
    about = f"{named}: {HeadFigures(**figures)}"
    return study_pronouns(model, about)


def evidence_of(attempt: Attempt[Scale, Options]) -> Evidence:
    """Everything the claims are judged on: the headline is on natural sentences that a model gets right."""
    examples, scores, study = attempt["examples"], attempt["scores"], attempt["pronouns"]
    parts = {seed: dict(_parts(scores, seed)) for seed in attempt["models"]}
    headline = {seed: next(iter(of_seed.values())) for seed, of_seed in parts.items()}
    runs = [
        Run(
            correlate(seed, headline[seed]),
            first_layer_gap(headline[seed]),
            accuracy_by_attractors(model, examples.held_out),
            accuracy_by_attractors(model, examples.testing),
            {name: correlate(seed, part) for name, part in list(parts[seed].items())[1:]},
        )
        for seed, model in attempt["models"].items()
    ]
    tables = {
        "saturation": saturation_table(headline),
        "evenness": evenness_table(headline),
        "residual": residual_table(headline),
        "subjects": subject_table(scores.get(ATTRACTORS, scores[NATURAL])),
        **({} if study is None else {"pronouns": study.table()}),
    }
    missing = {"pronouns": NO_PRONOUNS, "residual": NOT_AT_THIS_SIZE}
    return Evidence(tables, missing, runs=tuple(runs), sentiment=attempt["sentiment"].correlations)


def _parts(scores: Mapping[str, Scores], seed: int) -> Iterator[tuple[str, Sequence[SentenceScores]]]:
    """The sentences of each kind that the model of a seed gets right, and those that it gets wrong, if any.

    The first are the headline's: of a model that gets nothing right, all of them.
    """
    for kind, of_kind in scores.items():
        right = [sentence for sentence in of_kind[seed] if sentence.right]
        if right or kind == NATURAL:
            yield f"{kind}, right", right or of_kind[seed]
        if wrong := [sentence for sentence in of_kind[seed] if not sentence.right]:
            yield f"{kind}, wrong", wrong
