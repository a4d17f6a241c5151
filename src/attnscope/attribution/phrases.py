"""Phrases: words that carry the answer only together, found by taking neighbours away at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import BadInput
from ..record import AttentionRecord, Model
from ..record.schema import checked
from ..record.words import word_groups, word_labels
from .blank_out import DROWNED, blanking_of, replacement_noise

BEAM = 6
"""How many phrases of each length are made longer."""
GAIN = 1.25
"""A phrase grows only by a word that adds a quarter to what it changes."""
CORE = 0.7
"""The share of what a phrase changes that its core must change too."""
Span = tuple[int, int]
"""The first word of a phrase, and the first behind it."""


@dataclass(frozen=True)
class Phrase:
    """Neighbouring words, and what changes when they are taken away together."""

    words: tuple[str, ...]
    positions: tuple[int, ...]
    """Of their key tokens."""
    change: float
    """Of the log-odds of the answer, positive where the phrase speaks for it."""
    alone: float
    """The same of the one of its words that changes most when it is taken away alone."""

    def __str__(self) -> str:
        return " ".join(self.words)


@checked
def phrases(
    record: AttentionRecord,
    model: Model | None = None,
    replacement: str | None = None,
    target: int | str | None = None,
    against: int | str | None = None,
    longest: int = 6,
    count: int = 3,
    batch_size: int = 16,
) -> tuple[Phrase, ...]:
    """The phrases whose words together change the answer more than any of them alone, those that change most first.

    A hierarchical blank-out: every two neighbouring words are taken away together; the pairs that change the log-odds
    most are made longer on either side, word by word up to `longest`, as long as that adds a quarter. Of each the core
    stays, the shortest part that changes 70% as much, and of those that overlap the strongest. Nothing comes back where
    no phrase is above the noise of replacements (`replacement_noise`), or where single words do as much. It takes about
    two runs of the model for each word, or one where blank-out has asked of words before (`runs_kept`).
    """
    if longest < 2 or count < 1:
        raise BadInput("A phrase has at least two words, and at least one phrase is asked for.")
    groups = [
        group for group in word_groups(record.key_word_ids, record.key_special) if not record.key_special[group[0]]
    ]
    if len(groups) < 2:
        return ()
    blanking = blanking_of(record, model, "phrases", replacement, target, against, batch_size)

    def changes(spans: Sequence[Span]) -> dict[Span, float]:
        runs = [[position for group in groups[start:end] for position in group] for start, end in spans]
        _, odds = blanking.ask([[], *runs])
        if odds is None:
            raise BadInput("A model with a single output has no log-odds that a phrase could change.")
        return dict(zip(spans, (odds[0] - odds[1:]).tolist(), strict=True))

    alone = changes([(word, word + 1) for word in range(len(groups))])
    grown = changes([(word, word + 2) for word in range(len(groups) - 1)])
    found = dict(grown)
    for _ in range(longest - 2):
        best = sorted(grown, key=lambda span: -abs(grown[span]))[:BEAM]
        wider = {
            span: abs(grown[start, end])
            for start, end in best
            for span in ((start - 1, end), (start, end + 1))
            if span[0] >= 0 and span[1] <= len(groups)
        }
        if not wider:
            break
        asked = changes(list(wider))
        grown = {span: change for span, change in asked.items() if abs(change) >= GAIN * wider[span]}
        found |= grown
    least = DROWNED * replacement_noise(blanking)
    labels = word_labels(record.key_tokens, groups)
    chosen: list[Span] = []
    for widest in sorted(found, key=lambda span: -abs(found[span])):
        span = _core(widest, found)
        strongest = max(abs(alone[word, word + 1]) for word in range(*span))
        overlaps = any(span[0] < end and start < span[1] for start, end in chosen)
        if abs(found[span]) > max(least, GAIN * strongest) and not overlaps:
            chosen.append(span)
    return tuple(
        Phrase(
            words=labels[start:end],
            positions=tuple(position for group in groups[start:end] for position in group),
            change=found[start, end],
            alone=max((alone[word, word + 1] for word in range(start, end)), key=abs),
        )
        for start, end in chosen[:count]
    )


def _core(widest: Span, found: Mapping[Span, float]) -> Span:
    """The shortest part of a phrase that does nearly as much, as far as parts were tried."""
    parts = [
        (start, end)
        for start, end in found
        if widest[0] <= start and end <= widest[1] and abs(found[start, end]) >= CORE * abs(found[widest])
    ]
    return min(parts, key=lambda span: (span[1] - span[0], -abs(found[span])))
