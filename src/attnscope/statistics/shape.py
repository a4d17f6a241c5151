"""The shape of a head's attention, whatever the words are: how far, how broad, on nothing, in a pattern, how steady."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float64
from torch import Tensor

from .batch import Batch, Frame
from .statistic import (
    ROWS,
    SOLE,
    Additive,
    Caption,
    LayerAttention,
    Ratio,
    RatioStatistic,
    Reads,
    Tally,
    no_counts,
    per_corpus,
    per_head,
)

# How far a head reaches (Vig & Belinkov 2019, Eq. 6).


@dataclass
class Distance(RatioStatistic):
    """The mean of |i - j| in tokens, weighted by attention; `signed` is that of i - j, positive for looking back."""

    caption: ClassVar[Caption] = Caption(
        "Distance", "tokens", "How far the head looks: the mean distance of attending and attended token."
    )
    reads: ClassVar[Reads] = ROWS
    errors: ClassVar[Mapping[str, str]] = {"value": "error", "signed": "signed_error"}

    before: Tally = per_head()
    behind: Tally = per_head()
    mass: Tally = per_head()

    def update(self, attention: LayerAttention) -> None:
        """Take in one layer of one batch."""
        # each side by itself, row by row: large numbers that cancel lose digits, and so do long sums in float32
        for side, distances in zip((self.before, self.behind), attention.batch.distances, strict=False):
            rows = (attention.kept * distances.to(attention.kept)).sum(-1)
            side.add(attention.layer, rows.double().sum((0, 2)))
        self.mass.add(attention.layer, attention.mass)

    def ratio(self) -> Ratio:
        """Weighted distances over all attention."""
        before, behind, mass = self.before.sums, self.behind.sums, self.mass.sums
        return Ratio(before + behind, mass, beside={"signed": (before - behind) / mass})


# How widely a head spreads its attention (Vig & Belinkov 2019, Eq. 7).


SMALLEST = torch.finfo(torch.float32).tiny
"""Stands for 0 under a logarithm that is then multiplied by 0."""
MOSTLY_NULL = 0.9
"""Rows with more null attention than this are left out, or what little remains of them would weigh like a whole row."""


@dataclass
class Entropy(RatioStatistic):
    """The mean entropy of a row in nats, null attention dropped and the rest renormalised.

    `evenness` is that over the entropy of looking at everything alike. `rows` is how many rows were counted and
    `rows_share` which share of all that is: a head with few rows left is known less well than its error says.
    """

    caption: ClassVar[Caption] = Caption("Entropy", "nats", "How broadly the head looks: 0 is one token only.")
    reads: ClassVar[Reads] = ROWS

    total: Tally = per_head()
    widest: Tally = per_head()
    rows: Tally = per_head()
    all_rows: Tally = per_corpus()

    def update(self, attention: LayerAttention) -> None:
        """Take in one layer of one batch."""
        batch, given, rows = attention.batch, attention.given, attention.rows
        kept_rows = batch.at_queries(batch.kept_queries)
        counted = kept_rows.unsqueeze(1).to(given.device) & (given > 0)
        if batch.frame.null != "none":
            counted &= rows - given <= MOSTLY_NULL * rows
        # entropy of p / s, where s is the sum of p: log s - sum(p log p) / s
        logarithms = attention.kept.clamp_min(SMALLEST).log_()  # twice as fast as torch.special.entr
        entropies = given.log() - logarithms.mul_(attention.kept).sum(-1) / given
        entropies = torch.where(counted, entropies, 0.0)
        self.total.add(attention.layer, entropies.double().sum((0, 2)))
        keys = batch.pairs_from.clamp_min(1).log().to(given.device)
        self.widest.add(attention.layer, (counted * keys.unsqueeze(1)).double().sum((0, 2)))
        self.rows.add(attention.layer, counted.sum((0, 2)).double())
        if attention.layer == 0:
            self.all_rows.sums += kept_rows.sum()

    def ratio(self) -> Ratio:
        """Entropies over rows."""
        rows = self.rows.sums
        return Ratio(
            self.total.sums,
            rows,
            beside={
                "evenness": self.total.sums / self.widest.sums,
                "rows": rows,
                "rows_share": rows / self.all_rows.sums,
            },
        )


# How much of its attention a head rests on null tokens (Vig & Belinkov 2019, Fig. 5), and on a sink besides.
# The rule for null attention says where the sinks are. A model may have one more that no rule can name, because it
# stands elsewhere in every sentence: the first "the", say. It shows in that one token gets what counts from nearly
# everywhere. So does a token that the sentence turns on, as in a small classifier: attention alone does not tell the
# two apart.


@dataclass
class NullAttention(RatioStatistic):
    """The share of all attention, all rows counted, that goes to what is null; without a rule, to the first token.

    `one_token` is about the rest: of what goes to no sink, the share that goes to the most attended token of each
    sentence. `one_token_chance` is what that token would get if every row shared what it gives alike: more in short
    sentences, and more in causal models, where all rows see the first tokens.
    """

    caption: ClassVar[Caption] = Caption(
        "Null attention", "share of attention", "How much attention goes to tokens that stand for none."
    )
    reads: ClassVar[Reads] = ("given", "received", "rows", "columns", "received_alike")
    errors: ClassVar[Mapping[str, str]] = {"value": "error", "one_token": "one_token_error"}

    null: Tally = per_head()
    mass: Tally = per_head()
    most: Tally = per_head()
    most_by_chance: Tally = per_head()
    kept_mass: Tally = per_head()
    sentences: Tally = per_corpus()

    def update(self, attention: LayerAttention) -> None:
        """Take in one layer of one batch."""
        batch, layer = attention.batch, attention.layer
        self.null.add(layer, attention.received_by(batch.null_keys))
        self.mass.add(layer, attention.rows.double().sum((0, 2)))
        self.most.add(layer, attention.received.amax(-1).double().sum(0))
        self.most_by_chance.add(layer, attention.received_alike.amax(-1).double().sum(0))
        self.kept_mass.add(layer, attention.mass)
        if layer == 0:
            self.sentences.sums += len(batch.readings)

    def ratio(self) -> Ratio:
        """Null attention over all attention; the most attended tokens over all that counts."""
        null, kept_mass = self.null.sums, self.kept_mass.sums
        return Ratio(
            null,
            self.mass.sums,
            beside={
                "one_token": self.most.sums / kept_mass,
                "one_token_chance": self.most_by_chance.sums / kept_mass,
                "sentences": self.sentences.sums.expand_as(null),
            },
        )


# Simple patterns: the token before, the same token again, the token behind its last occurrence, and sinks.
# Previous, next, same, repeated and induction are shares of the attention that counts. First, special and punctuation
# are shares of all attention, null attention included: they are where heads rest.


OF_WHAT_COUNTS = ("previous", "next", "same", "repeated", "induction")
OF_ALL = ("first", "special", "punctuation")
OFFSETS = (-1, 1, 0)
"""Where the first three stand: the place of the key less that of the query."""


@dataclass
class Patterns(RatioStatistic):
    """The share of attention in each pattern; `chance` is the pattern's share of token pairs.

    Repeated is another occurrence of the same token. Induction is the token behind the last occurrence of the token
    that attends: what followed it then (Olsson et al. 2022).
    """

    caption: ClassVar[Caption] = Caption(
        "Pattern", "share of attention", "How much of the head’s attention follows a simple pattern."
    )
    reads: ClassVar[Reads] = ROWS

    along: Tally = per_head(OF_WHAT_COUNTS)
    mass: Tally = per_head()
    resting: Tally = per_head(OF_ALL)
    all_mass: Tally = per_head()
    pairs_along: Tally = per_corpus(OF_WHAT_COUNTS)
    pairs: Tally = per_corpus()
    pairs_resting: Tally = per_corpus(OF_ALL)
    all_pairs: Tally = per_corpus()

    def update(self, attention: LayerAttention) -> None:
        """Take in one layer of one batch."""
        batch, layer = attention.batch, attention.layer
        kept, start = attention.kept, batch.queries.start
        for place, offset in enumerate(OFFSETS):
            self.along.sums[place, layer] += _total(kept.diagonal(start + offset, -2, -1))
        for place, pairs in ((3, batch.repeated), (4, batch.induction)):
            self.along.sums[place, layer] += attention.along(pairs).double().sum(0).cpu()
        self.mass.add(layer, attention.mass)
        for place, keys in enumerate((batch.first, batch.special, batch.punctuation)):
            self.resting.sums[place, layer] += attention.received_by(keys).cpu()
        self.all_mass.add(layer, attention.rows.double().sum((0, 2)))
        if layer == 0:
            self._count(batch)

    def _count(self, batch: Batch) -> None:
        diagonals = (batch.kept.diagonal(batch.queries.start + offset, 1, 2).sum() for offset in OFFSETS)
        along = (*diagonals, len(batch.repeated), len(batch.induction))
        self.pairs_along.sums += torch.tensor(along, dtype=torch.float64).view(-1, 1, 1)
        self.pairs.sums += batch.kept.sum()
        received = batch.exists.sum(1)
        resting = [received[keys].sum() for keys in (batch.first, batch.special, batch.punctuation)]
        self.pairs_resting.sums += torch.tensor(resting, dtype=torch.float64).view(-1, 1, 1)
        self.all_pairs.sums += batch.exists.sum()

    def ratio(self) -> Ratio:
        """Attention in each pattern over what it is a share of."""
        above = torch.cat([self.along.sums, self.resting.sums])
        below = torch.cat([self.mass.sums.expand_as(self.along.sums), self.all_mass.sums.expand_as(self.resting.sums)])
        chance = torch.cat([self.pairs_along.sums / self.pairs.sums, self.pairs_resting.sums / self.all_pairs.sums])
        return Ratio(above, below, labels={"pattern": [*OF_WHAT_COUNTS, *OF_ALL]}, beside={"chance": chance.flatten()})


def _total(diagonal: Tensor) -> Float64[Tensor, " head"]:
    return diagonal.double().sum((0, 2)).cpu()


# Whether a head looks at positions or at content: how its attention varies over texts (Vig & Belinkov 2019, Eq. 5).


POSITIONS = 10
"""The first N tokens are looked at, so that there are enough texts for every position."""


def _first_tokens(attention: LayerAttention) -> tuple[slice, Float64[Tensor, "sentence head row key"]] | None:
    """The attention among the first tokens of each sentence that has as many, and which of these tokens are queries.

    All of them are, but for a block of a long text; None if no sentence has as many, or none of them is a query.
    """
    batch, frame = attention.batch, attention.batch.frame
    rows, blocks = slice(0, POSITIONS), []
    for sentence, (reading, start) in enumerate(zip(batch.readings, batch.first_counted, strict=True)):
        end, first, last = start + POSITIONS, batch.queries.start, batch.queries.stop
        skipped = frame.null == "special" and any(reading.special[start:end])
        if end <= len(reading) and not skipped and first < end and last > start:
            rows = slice(max(start, first) - start, min(end, last) - start)
            block = attention.kept[sentence, :, start + rows.start - first : start + rows.stop - first, start:end]
            blocks.append(torch.nn.functional.pad(block, (0, POSITIONS - block.shape[-1])))
    return (rows, torch.stack(blocks).to("cpu", torch.float64)) if blocks else None


@dataclass
class Deviations(RatioStatistic):
    """The second pass: absolute deviations from the means, over twice the attention; 0 for one same map, at most 1.

    Without some of the texts the means would be others. `signs` says how the deviations follow the means, to first
    order, so that standard errors by leaving out texts are right though the corpus is not read again for each.
    """

    first_tokens: ClassVar[int] = POSITIONS
    reads: ClassVar[Reads] = ROWS

    means: Float64[Tensor, "layer head query key"]
    deviations: Tally = per_head()
    mass: Tally = per_head()
    maps: Tally = per_head(SOLE, POSITIONS, POSITIONS)
    signs: Tally = per_head(SOLE, POSITIONS, POSITIONS)
    sentences: Tally = per_corpus()

    @classmethod
    def after(cls, first: "Variability", frame: Frame) -> "Deviations":
        """One that has seen nothing, for the means of the first pass."""
        return cls(means=first.means(), **no_counts(cls, frame))

    def update(self, attention: LayerAttention) -> None:
        """Take in one layer of one batch."""
        found = _first_tokens(attention)
        if found is not None:
            rows, blocks = found
            away = blocks - self.means[attention.layer][:, rows]
            self.deviations.add(attention.layer, away.abs().sum((0, 2, 3)))
            self.mass.add(attention.layer, blocks.sum((0, 2, 3)))
            self.maps.sums[0, attention.layer, :, rows] += blocks.sum(0)
            self.signs.sums[0, attention.layer, :, rows] += away.sign().sum(0)
            self.sentences.sums += len(blocks) * (attention.layer == 0 and rows.start == 0)

    def ratio(self) -> Ratio:
        """Deviations over twice the attention."""
        sentences = self.sentences.sums
        shift = self.maps.sums / sentences.flatten() - self.means
        deviations = self.deviations.sums - (shift * self.signs.sums).sum((-2, -1))
        return Ratio(deviations, 2 * self.mass.sums, beside={"sentences": sentences.expand_as(deviations)})


@dataclass
class Variability(Additive):
    """The first pass: the mean attention between the first tokens of a text, over all texts that have as many.

    Low variability: the head looks at positions, whatever stands there. High variability: it looks at content.
    """

    caption: ClassVar[Caption] = Caption(
        "Variability",
        "share",
        "How much the pattern changes with the text: 0 is bound to position alone, 1 to content.",
    )
    second_pass: ClassVar[type[Any] | None] = Deviations
    reads: ClassVar[Reads] = ROWS

    maps: Tally = per_head(SOLE, POSITIONS, POSITIONS)
    sentences: Tally = per_corpus()

    def update(self, attention: LayerAttention) -> None:
        """Take in one layer of one batch."""
        found = _first_tokens(attention)
        if found is not None:
            rows, blocks = found
            self.maps.sums[0, attention.layer, :, rows] += blocks.sum(0)
            self.sentences.sums += len(blocks) * (attention.layer == 0 and rows.start == 0)

    def means(self) -> Float64[Tensor, "layer head query key"]:
        """The mean map of each head; all NaN where no text was long enough."""
        return self.maps.sums[0] / self.sentences.sums.flatten()
