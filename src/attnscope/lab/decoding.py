"""What a Seq2Seq writes by itself: the likeliest word at each step, or the best of several beams."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ..capture.watching import in_evaluation
from ..errors import BadInput

if TYPE_CHECKING:  # which writes by this file
    from .models.seq2seq import Encoded, Seq2Seq

Source = Int[Tensor, "batch source"]
Real = Bool[Tensor, "batch source"]
LONGEST = 100
"""Words at most, eos not counted."""
BEAMS = 5


def greedy(model: "Seq2Seq", source: Source, real: Real, longest: int = LONGEST) -> list[list[int]]:
    """The likeliest word at each step but padding, up to eos, of every source."""
    return beam_search(model, source, real, beams=1, longest=longest)


def beam_search(
    model: "Seq2Seq", source: Source, real: Real, beams: int = BEAMS, longest: int = LONGEST
) -> list[list[int]]:
    """The output of the highest mean log probability per word, eos counted, among those that the beams came to.

    All beams of all sources go on together, and those with the highest sum are kept; padding is never written. A beam
    that writes eos is finished and keeps its place, and a source is
    done when all its beams are; outputs that come to no end within `longest` words are taken as they are.
    """
    if beams < 1 or longest < 1:
        raise BadInput(f"Decoding needs at least one beam and one word, not {beams} and {longest}.")
    with torch.no_grad(), in_evaluation(model, model):
        encoded = _repeated(model.encode(source, real), beams)
        return _searched(model, encoded, len(source), beams, longest)


def _searched(model: "Seq2Seq", encoded: "Encoded", sources: int, beams: int, longest: int) -> list[list[int]]:
    end, pad = (model.vocabulary.number(name) for name in ("eos", "pad"))
    words = encoded.real.new_full((sources * beams, 1), model.vocabulary.number("bos"), dtype=torch.long)
    # in the beginning all beams of a source are the same: only the first counts
    total = torch.full((sources, beams), -torch.inf)
    total[:, 0] = 0.0
    done = torch.zeros(sources, beams, dtype=torch.bool)
    base = torch.arange(sources)[:, None] * beams
    for _ in range(longest):
        step = model.decode(encoded, words[:, -1:])
        gains = step.logits[:, -1].log_softmax(-1).view(sources, beams, -1)
        # a finished beam goes on with padding, which costs nothing
        gains = gains.masked_fill(done[..., None], -torch.inf)
        gains[..., pad] = torch.where(done, 0.0, -torch.inf)
        total, flat = (total[..., None] + gains).flatten(1).topk(beams, dim=1)
        kept, word = flat // gains.shape[-1], flat % gains.shape[-1]
        done = done.gather(1, kept) | (word == end)
        rows = (base + kept).flatten()
        words = torch.cat([words[rows], word.view(-1, 1)], 1)
        encoded = replace(encoded, start=tuple(part[:, rows] for part in step.end))
        if done.all():
            break
    return _best(words[:, 1:].view(sources, beams, -1), total, (end, pad))


def _best(
    words: Int[Tensor, "batch beam step"], total: Float[Tensor, "batch beam"], ending: tuple[int, int]
) -> list[list[int]]:
    """The words of the best beam of each source, without eos and padding."""
    end, pad = ending
    lengths = (words != pad).sum(-1)
    best = (total / lengths).argmax(1)
    return [
        [word for word in row[place].tolist() if word not in (end, pad)]
        for row, place in zip(words, best.tolist(), strict=True)
    ]


def _repeated(encoded: "Encoded", beams: int) -> "Encoded":
    """Each source once for every beam, behind each other."""
    return replace(
        encoded,
        values=encoded.values.repeat_interleave(beams, 0),
        real=encoded.real.repeat_interleave(beams, 0),
        start=tuple(part.repeat_interleave(beams, 1) for part in encoded.start),
    )


def in_order_of_length(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Numbers of texts in batches of like length, so that little is padded.

    >>> in_order_of_length([5, 2, 9], size=2)
    [[1, 0], [2]]
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    return [order[start : start + size] for start in range(0, len(order), size)]
