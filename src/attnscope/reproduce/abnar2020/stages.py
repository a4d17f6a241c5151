"""The stages of the experiment, each kept in a folder of its own: a model and its sentences for each seed, Table 3."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ...capture import load
from ...errors import BadInput
from ...lab import train_classifier
from ...lab.agreement import accuracy_by_attractors, train_on
from ...lab.data import AgreementExample
from ...lab.data.examples_file import sha256_of
from ...lab.models import AgreementTransformer
from ...lab.models.storage import WEIGHTS
from ...lab.sentiment import Labelled
from ...progress import items_done, working
from .evidence import Evidence, Run, first_layers_apart
from .examples import Examples
from .measuring import scored_sentences
from .scales import Scale
from .scoring import Scored
from .sentiment import evenly, reviews, sentiment_correlations
from .subjects import subjects_found
from .tables import Correlations, correlated, evenness_table, saturation_table

SHIPPED_MODEL = "demo"


def model_of(folder: Path, scale: Scale, examples: Examples, seed: int) -> AgreementTransformer:
    """The agreement model of a seed: trained now, or found in the folder from before."""
    place = _place(folder, seed)
    train_on(
        place,
        lambda: (examples.training, examples.validation, examples.held_out),
        examples.told,
        seed=seed,
        resume=place.exists(),
        steps=scale.steps,
        settings=scale.settings,
        blanked=scale.blanked,
    )
    return AgreementTransformer.load(place)


def _place(folder: Path, seed: int) -> Path:
    return folder / "models" / f"seed-{seed}"


def scores_of(folder: Path, model: AgreementTransformer, tested: list[AgreementExample], seed: int) -> list[Scored]:
    """What the model of a seed does on the sentences of the tables."""
    weights = sha256_of(_place(folder, seed) / WEIGHTS)
    with items_done(f"Sentences, seed {seed}") as watch:
        return scored_sentences(model, weights, tested, folder / "scores" / f"seed-{seed}", seed, watch)


def evidence_of(
    models: Mapping[int, AgreementTransformer],
    scores: Mapping[int, list[Scored]],
    examples: Examples,
    sentiment: Correlations | str,
) -> Evidence:
    """Everything the claims are judged on."""
    runs = [
        Run(
            correlated(seed, scores[seed]),
            first_layers_apart(scores[seed]),
            *(accuracy_by_attractors(model, part) for part in (examples.held_out, examples.testing)),
        )
        for seed, model in models.items()
    ]
    return Evidence(tuple(runs), saturation_table(scores), evenness_table(scores), subjects_found(scores), sentiment)


def some_of(examples: list[AgreementExample], count: int, longest: int) -> list[AgreementExample]:
    """So many test sentences that the model can read, drawn once for all seeds, in their order."""
    fitting = [example for example in examples if len(example.words) + 2 <= longest]
    drawn = np.random.default_rng(0).permutation(len(fitting))[:count]
    return [fitting[place] for place in sorted(drawn)]


def sentiment_of(
    folder: Path, scale: Scale, encoder: str | None, examples: Examples, data: str | Path | None
) -> tuple[Correlations | str, str]:
    """Table 3 and what it was measured on; or the sentence that says what is missing, twice.

    An encoder that the user names must be there; where the paper's own is not, the table is left out.
    """
    chosen = encoder or scale.encoder
    try:
        place = None if chosen is None else _classifier(folder, chosen, data)
    except BadInput as missing:
        if encoder is not None:
            raise
        told = f"Not measured: {missing} (--encoder names what is fine-tuned.)"
        return told, told
    with working("Loading the classifier"):
        model = load(SHIPPED_MODEL if place is None else str(place))
    if place is None:
        items = evenly([Labelled(" ".join(one.words), one.number) for one in examples.testing], scale.reviews)
        weights, name, about = SHIPPED_MODEL, SHIPPED_MODEL, "the shipped model in place of a sentiment classifier"
    else:
        items = reviews(scale.reviews, model, data)
        weights, name, about = sha256_of(place / WEIGHTS), place.name, f"{Path(str(chosen)).name}, fine-tuned on SST"
    with items_done("Sentences of Table 3") as watch:
        found, right = sentiment_correlations(model, weights, items, folder / "scores" / name, watch)
    return found, f"{about}; {len(items):,} sentences, {right:.1%} of them classified rightly"


def _classifier(folder: Path, encoder: str, data: str | Path | None) -> Path:
    """The folder of the classifier: fine-tuned now, or found there from before."""
    place = folder / "models" / f"classifier-{Path(encoder).name}"
    return train_classifier(place, resume=place.exists(), model=encoder, place=data)
