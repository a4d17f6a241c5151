"""Integrated gradients: the gradient averaged on the way from a blank text to the real one, times that way."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import BadInput
from ..progress import tell
from ..record import AttentionRecord, Model, TokenScores
from ..record.model import EMBEDDINGS
from ..record.schema import checked
from ..record.scores import scores_of
from ..record.target import Quantity, Target
from .rerunning import blank_embeddings, key_embeddings, key_ids, rerunnable

INCOMPLETE = 0.05
"""The share of the target's change that the attributions may miss before the scores say so."""

STEEP = 1e6
"""How many times the gradient at the text the one at a baseline may be long: norms of a model jump where it is longer.

Seen are at most 1e3 where a baseline is sound, and at least 1e10 at embeddings of zero in models with RMSNorm: each
layer multiplies the gradient by one over the root of its epsilon, until even float32 overflows (SmolLM2).
"""
FLAT = 1e-3
"""A gradient at the text that is shorter says nothing of what is steep: the probability may be all but one."""

PARTS = 2
"""Into how many parts the way is cut at first."""
MOST = 128
"""Steps that are taken at most, unless more are asked for: SmolLM2 on four words, where it all but jumps, needs 117."""
NEW_STEPS = 4
"""What it takes to halve a part."""
COMPLETE = 0.005
"""What attributions may miss the target's change by before steps are added, as a share of the sum of their sizes."""
BOOLE = (7 / 90, 32 / 90, 12 / 90, 32 / 90, 7 / 90)
SIMPSON = (1 / 6, 0.0, 4 / 6, 0.0, 1 / 6)
UNSETTLED = 0.05
"""The share of the difference of these two rules that counts as an error of the better one."""
Span = tuple[float, float]
"""A part of the way, from one fraction of it to another."""
Step = tuple[float, Float[Tensor, " key"]]
"""The value at a place of the way; and the gradient there times the way, summed over each token's dimensions."""

Slopes = tuple[Float[Tensor, " step"], Float[Tensor, "step key width"]]
"""The values of a function of the embeddings at some points, and its gradients there."""
Slope = Callable[[Float[Tensor, "step key width"]], Slopes]


def path_points(steps: int) -> tuple[Float[Tensor, " step"], Float[Tensor, " step"]]:
    """Where on the way from 0 to 1 the gradient is taken, and what each place weighs: Gauss-Legendre quadrature.

    For a smooth function it comes as near with 50 steps as the paper's Riemann sum with thousands.
    """
    places, weights = np.polynomial.legendre.leggauss(steps)
    return torch.tensor((places + 1) / 2, dtype=torch.float32), torch.tensor(weights / 2, dtype=torch.float32)


def along_way(
    slope: Slope,
    start: Float[Tensor, "key width"],
    end: Float[Tensor, "key width"],
    fractions: Float[Tensor, " step"],
    batch_size: int,
    before: int = 0,
) -> Iterator[Step]:
    """The steps at places of the way; so many were taken `before`, and are told as done."""
    for number, some in enumerate(fractions.split(batch_size)):
        tell(before + batch_size * number, before + len(fractions))
        yield from _steps(*slope(start + some[:, None, None] * (end - start)), end - start)


def _steps(
    values: Float[Tensor, " step"], gradients: Float[Tensor, "step key width"], way: Float[Tensor, "key width"]
) -> Iterator[Step]:
    return zip(values.tolist(), torch.einsum("kw,skw->sk", way, gradients), strict=True)


def integrate(
    slope: Slope, start: Float[Tensor, "key width"], end: Float[Tensor, "key width"], steps: int, batch_size: int
) -> Float[Tensor, " key"]:
    """The attribution of every token, by so many steps."""
    fractions, shares = path_points(steps)
    return shares @ torch.stack([row for _, row in along_way(slope, start, end, fractions, batch_size)])


def integrate_until_complete(
    slope: Slope,
    start: Float[Tensor, "key width"],
    end: Float[Tensor, "key width"],
    batch_size: int,
    ends: Sequence[Step] = (),
) -> tuple[Float[Tensor, " key"], int]:
    """The attribution of every token, with steps added where the way is rough; and how many steps were taken.

    On every part of the way attributions must sum to the change of the target over that part. Parts where they do not
    are halved, the worst first, until what all parts miss together is COMPLETE of the attributions' size. A part has
    five steps, Boole's rule, of which its halves keep all. `ends` are the first step and the last, where already known.
    """
    known: dict[float, Step] = dict(zip((0.0, 1.0), ends, strict=False))
    spans = [(number / PARTS, (number + 1) / PARTS) for number in range(PARTS)]
    while True:
        asked = sorted({place for span in spans for place in _places(span)} - known.keys())
        fractions = torch.tensor(asked, dtype=torch.float32)
        known.update(zip(asked, along_way(slope, start, end, fractions, batch_size, len(known)), strict=True))
        pieces = {span: _piece([known[place] for place in _places(span)], span[1] - span[0]) for span in spans}
        whole = torch.stack([attributions for attributions, _ in pieces.values()]).sum(0)
        rough = _to_halve({span: missed for span, (_, missed) in pieces.items()}, COMPLETE * float(whole.abs().sum()))
        rough = rough[: max((MOST - len(known)) // NEW_STEPS, 0)]
        if not rough:
            return whole, len(known)
        kept = [span for span in spans if span not in rough]
        spans = sorted([*kept, *(half for low, high in rough for half in _halves(low, high))])


def _places(span: Span) -> list[float]:
    """Where the gradient is taken on a part of the way."""
    low, high = span
    return [low + (high - low) * number / 4 for number in range(5)]


def _halves(low: float, high: float) -> tuple[Span, Span]:
    middle = (low + high) / 2
    return (low, middle), (middle, high)


def _piece(steps: Sequence[Step], length: float) -> tuple[Float[Tensor, " key"], float]:
    """The attributions of one part of the way, and by how much they may be wrong.

    They miss the change of the target by so much; and since a sum can be right by accident, a part of how far they
    differ from those of three steps counts too.
    """
    rows = torch.stack([row for _, row in steps])
    fine, coarse = (length * torch.tensor(rule) @ rows for rule in (BOOLE, SIMPSON))
    missed = abs(float(fine.sum()) - (steps[-1][0] - steps[0][0]))
    return fine, max(missed, UNSETTLED * float((fine - coarse).abs().sum()))


def _to_halve(missed: Mapping[Span, float], most: float) -> list[Span]:
    """The fewest parts without which the others miss no more than this together, the worst first."""
    worst = sorted(missed, key=lambda span: -missed[span])
    left = [sum(missed[span] for span in worst[number:]) for number in range(len(worst))]
    return [span for span, rest in zip(worst, left, strict=True) if rest > most]


@checked
def integrated_gradients(
    record: AttentionRecord,
    model: Model | None = None,
    steps: int | None = None,
    baseline: str | None = None,
    target: int | str | None = None,
    signed: bool = False,
    batch_size: int = 16,
    quantity: str | None = None,
) -> TokenScores:
    """What each key token adds to the target on the straight way from a blank text to this one.

    Sundararajan, Taly & Yan 2017, Eq. 1: |Σ_d (x_d - x'_d) ∫₀¹ ∂F(x' + α(x - x'))/∂x_d dα| with x the token's
    embedding, x' the `baseline`'s at every position, special tokens too, and F the target: the one captured in the
    record, or else the logit of the predicted or given outcome; `quantity` follows its logit, its probability or its
    difference to the next best instead. `signed=True` keeps the sign; then the scores sum to F(x) - F(x'), and where
    they miss it they carry a warning.

    The integral is a sum over so many `steps` (Gauss-Legendre). Unless a number is given there are at least 9, and
    more, up to 128, where the way is rough: on every part of it the scores must sum to what F changes there, all parts
    together within 0.5% of the sum of the scores' sizes.

    The baseline is zero, the embedding of the unk, mask or pad token, or the mean embedding of the text. Unless one is
    named it is zero; where the model jumps there, as all with RMSNorm do (Llama, Qwen, Gemma, T5: zero has no
    direction), it is the first of the others where it does not, and the scores say so.
    """
    runner = rerunnable(record, model, "integrated_gradients")
    for name, number in (("steps", steps), ("batch_size", batch_size)):
        if number is not None and number < 1:
            raise BadInput(f"{name} must be at least 1, not {number}.")
    goal = _goal(record, runner, target, quantity)
    name = EMBEDDINGS[key_ids(record)]

    def slope(points: Float[Tensor, "step key width"]) -> Slopes:
        return runner.target_gradients([{**record.inputs, name: point} for point in points], goal)

    end = key_embeddings(record, runner)
    baseline, start, ends, said = _start(record, runner, baseline, end, slope)
    change = ends[1][0] - ends[0][0]
    if steps is None:
        attributions, steps = integrate_until_complete(slope, start, end, batch_size, ends)
    else:
        attributions = integrate(slope, start, end, steps, batch_size)
    scores = torch.nn.functional.pad(attributions, (record.added_tokens, 0))  # a learned sink is no input
    missed = abs(scores.sum().item() - change)
    sentence = (
        f"With {steps} steps from {baseline} these attributions miss the change of {goal}, {change:.3g}, by"
        f" {missed:.3g}: take more steps, or another baseline."
    )
    return scores_of(
        record,
        "integrated_gradients",
        scores if signed else scores.abs(),
        warnings=(*said, sentence) if missed > INCOMPLETE * abs(change) else said,
    )


def _goal(record: AttentionRecord, model: Model, target: int | str | None, quantity: str | None) -> Target:
    """What is followed on the way."""
    if quantity not in (None, *get_args(Quantity)):
        raise BadInput(f"quantity is {', '.join(get_args(Quantity))}, not {quantity!r}.")
    if target is None and record.target is not None:
        return replace(record.target, quantity=cast(Quantity, quantity or record.target.quantity))
    return model.target(record.inputs, target, quantity or "logit")


def _start(
    record: AttentionRecord, model: Model, baseline: str | None, end: Float[Tensor, "key width"], slope: Slope
) -> tuple[str, Float[Tensor, "key width"], tuple[Step, Step], tuple[str, ...]]:
    """The baseline by name, its embeddings, the first step on the way and the last, and what must be said of it.

    One that will not do is refused before anything long is computed.
    """
    choices = ["zero", *model.blank_ids, "mean"]
    if baseline is not None:
        start = blank_embeddings(record, model, baseline)
        at_start = slope(start.unsqueeze(0))
        if not np.isfinite(_length(at_start[1])):
            others = ", ".join(name for name in choices if name != baseline)
            raise BadInput(
                f"The gradient at {baseline} embeddings is not finite, as in models with RMSNorm: give another baseline"
                f" of {others}."
            )
        return baseline, start, _ends(at_start, slope(end.unsqueeze(0)), end - start), ()
    at_text = slope(end.unsqueeze(0))
    for name in choices:
        start = blank_embeddings(record, model, name)
        at_start = slope(start.unsqueeze(0))
        if _length(at_start[1]) <= STEEP * max(_length(at_text[1]), FLAT):  # which no NaN is
            said = f"the way begins at {name} embeddings, because this model jumps at {choices[0]}"
            return name, start, _ends(at_start, at_text, end - start), () if name == choices[0] else (said,)
    raise BadInput("Integrated gradients has no baseline here: the gradient of this model is not finite at any.")


def _ends(first: Slopes, last: Slopes, way: Float[Tensor, "key width"]) -> tuple[Step, Step]:
    """The first step and the last."""
    return next(_steps(*first, way)), next(_steps(*last, way))


def _length(gradient: Float[Tensor, "step key width"]) -> float:
    return float(torch.linalg.vector_norm(gradient))
