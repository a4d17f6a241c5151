"""The stages of the experiment, each kept in a folder of its own: a model and its sentences for each seed, Table 3."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float64

from ...attribution.agreement import rounded
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
from .paper import Scale
from .scoring import METHODS, REFERENCES, Scored, scored_sentences
from .sentiment import evenly, reviews, sentiment_correlations
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


# A table of our own: how often the word that decides, the verb's subject, is the highest of all words.


MANY = 4
"""Sentences with so many attractors or more are one group."""


def subjects_found(scores: Mapping[int, Sequence[Scored]]) -> pd.DataFrame:
    """By seed, attractors, method and layer: the share of sentences whose subject is highest.

    [CLS] and the verb's place are left out. Words that share the highest score are each it with the same probability.
    Beside the methods stand blank-out and the gradient, which say how often the model itself goes by the subject;
    `chance`, one word drawn; `first` and `last`, the first and the last word. Sentences whose subject nobody knows are
    left out.
    """
    rows = []
    for seed, sentences in scores.items():
        known = [sentence for sentence in sentences if sentence.subject > 0]
        for attractors in [None, *range(MANY + 1)]:
            some = [one for one in known if attractors is None or min(one.attractors, MANY) == attractors]
            if not some:
                continue
            hits = [dict(_hits(sentence)) for sentence in some]
            named = "all" if attractors is None else f"{attractors}{' or more' if attractors == MANY else ''}"
            for method, layer in hits[0]:
                values = np.array([of_sentence[method, layer] for of_sentence in hits])
                mean, error = values.mean(), values.std() / np.sqrt(len(values))
                rows.append(
                    {"seed": seed, "attractors": named, "method": method, "layer": layer, "found": mean,
                     "error": error, "sentences": len(values)}
                )  # fmt: skip
    return pd.DataFrame(rows)


def _hits(sentence: Scored) -> Iterator[tuple[tuple[str, int], float]]:
    """How likely the subject is the highest word, by method and layer (0 where there is no layer)."""
    subject, words = sentence.subject - 1, sentence.methods.shape[-1] - 2
    for method, layers in zip(METHODS, sentence.methods.numpy(), strict=True):
        for layer, row in enumerate(layers):
            yield (method, layer + 1), share_of_top(row[1:-1], subject)
    for reference, row in zip(REFERENCES[:2], sentence.references.numpy(), strict=False):
        yield (reference, 0), share_of_top(row[1:-1], subject)
    yield ("chance", 0), 1 / words
    yield ("first", 0), float(subject == 0)
    yield ("last", 0), float(subject == words - 1)


def share_of_top(scores: Float64[np.ndarray, " word"], place: int) -> float:
    """How likely a word is the highest when ties are broken at random.

    >>> share_of_top(np.array([0.5, 0.5, 0.1]), 0), share_of_top(np.array([0.5, 0.5, 0.1]), 2)
    (0.5, 0.0)
    """
    values = rounded(scores)
    highest = values == values.max()
    return float(highest[place] / highest.sum())
