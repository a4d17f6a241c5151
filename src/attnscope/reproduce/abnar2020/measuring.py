"""All sentences of Tables 1 and 2, scored for one model."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from ...lab.data import AgreementExample
from ...lab.models import AgreementTransformer
from .keeping import State, done_in_parts
from .scoring import Scored, scored


def scored_sentences(
    model: AgreementTransformer,
    weights: str,
    examples: Sequence[AgreementExample],
    folder: Path,
    seed: int,
    watch: Callable[[int, int], None],
) -> list[Scored]:
    """The scores of all sentences in their order; each part of them is kept in `folder`.

    `weights` tells this model from others.
    """
    work = partial(_scored, model, seed)
    states = done_in_parts(examples, work, folder, weights, AgreementExample.to_dict, watch)
    return [Scored(**state) for state in states]


def _scored(model: AgreementTransformer, seed: int, examples: Sequence[AgreementExample], start: int) -> list[State]:
    """The scores of some sentences; gradients are of p(right) - p(wrong), one target to a run."""
    instrumented = model.instrumented()
    found: dict[int, State] = {}
    for number in sorted({example.number for example in examples}):
        places = [place for place, example in enumerate(examples) if example.number == number]
        texts = [list(examples[place].words) for place in places]
        records = instrumented.records(texts, gradients=True, target=number, quantity="difference")
        for place, record in zip(places, records, strict=True):
            found[place] = vars(scored(examples[place], record, instrumented, seed=seed, number=start + place))
    return [found[place] for place in range(len(examples))]
