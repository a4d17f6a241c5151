"""Random sentences with random attention: for the statistics as readings, for the reference as examples."""

import math
import random
from types import ModuleType

import torch

from attnscope.statistics import Batch, Frame, LayerAttention, Reading
from attnscope.syntax import Sentence

reference: ModuleType
"""Set by the fixture that loads this file."""

TAGS, RELATIONS = ("ADJ", "NOUN", "PUNCT", "VERB"), ("det", "nsubj", "obj", "punct")
TEXTS = (" the", " key", " key", " ,", "##s", " .", " is")


def reading(dice: random.Random, place: int, words: int, framed: bool) -> Reading:
    """A sentence whose words have one to three pieces, between [CLS] and [SEP] if framed."""
    heads = [-1, *(dice.randrange(word) for word in range(1, words))]
    order = dice.sample(range(words), words)
    shuffled = [0] * words
    for word, head in enumerate(heads):
        shuffled[order[word]] = -1 if head == -1 else order[head]
    sentence = Sentence(
        words=tuple(f"w{dice.randrange(5)}" for _ in range(words)),
        tags=tuple(dice.choice(TAGS) for _ in range(words)),
        heads=tuple(shuffled),
        relations=tuple("root" if head == -1 else dice.choice(RELATIONS) for head in shuffled),
    )
    of_token = [word for word in range(words) for _ in range(dice.choice((1, 1, 2)))]
    ids = [dice.randrange(len(TEXTS)) for _ in of_token]
    before, behind = ((90, "[CLS]"), (91, "[SEP]")) if framed else ((), ())
    edge = 1 if framed else 0
    return Reading(
        place=place,
        sentence=sentence,
        token_ids=(*before[:1], *ids, *behind[:1]),
        tokens=(*before[1:], *(TEXTS[one] for one in ids), *behind[1:]),
        special=(*[True] * edge, *[False] * len(ids), *[True] * edge),
        words=(*[None] * edge, *of_token, *[None] * edge),
    )


def weights(seed: int, readings, layers: int, heads: int, causal: bool) -> torch.Tensor:
    """Rows that sum to one, some of them resting on the first token; what padding attends to is NaN."""
    longest = max(len(one) for one in readings)
    made = torch.full((layers, len(readings), heads, longest, longest), torch.nan)
    generator = torch.Generator().manual_seed(seed)
    for number, one in enumerate(readings):
        logits = 2 * torch.randn(layers, heads, len(one), len(one), generator=generator)
        logits[..., 0] += 4 * torch.randn(layers, heads, len(one), generator=generator)
        if causal:
            logits = logits.masked_fill(torch.ones(len(one), len(one)).triu(1).bool(), -torch.inf)
        made[:, number, :, : len(one)] = 0.0
        made[:, number, :, : len(one), : len(one)] = logits.softmax(-1)
    return made


def corpus(seed: int, sizes, *, framed: bool, causal: bool, layers: int = 2, heads: int = 3):
    """Readings, their weights [layer, sentence, head, query, key], and the same as examples of the reference."""
    dice = random.Random(seed)
    readings = [reading(dice, place, size, framed) for place, size in enumerate(sizes)]
    made = weights(seed, readings, layers, heads, causal)
    return readings, made, [example(one, made[:, place], causal) for place, one in enumerate(readings)]


def example(one: Reading, weights: torch.Tensor, causal: bool):
    length = len(one)
    return reference.Example(
        weights=weights[..., :length, :length].double().numpy(),
        token_ids=list(one.token_ids),
        tokens=list(one.tokens),
        special=list(one.special),
        words=list(one.words),
        tags=None if one.sentence.tags is None else list(one.sentence.tags),
        heads=None if one.sentence.heads is None else list(one.sentence.heads),
        relations=None if one.sentence.relations is None else list(one.sentence.relations),
        causal=causal,
    )


def frame(readings, weights, causal: bool, null) -> Frame:
    return Frame(
        layers=weights.shape[0],
        heads=weights.shape[2],
        causal=causal,
        null=null,
        tags=tuple(sorted({tag for one in readings for tag in one.sentence.tags or ()})),
        relations=tuple(sorted({relation for one in readings for relation in one.sentence.relations or ()})),
    )


def fed(statistic, readings, weights, frame: Frame):
    """The statistic after one batch."""
    batch = Batch(readings, frame)
    for layer, of_layer in enumerate(weights):
        statistic.update(LayerAttention(batch, layer, of_layer[:, :, : batch.longest, : batch.longest]))
    return statistic


def measured(kind, readings, weights, frame: Frame):
    """What a statistic finds in one batch, with its second pass if it has one."""
    first = fed(kind.empty(frame), readings, weights, frame)
    return first if kind.second_pass is None else fed(kind.second_pass.after(first, frame), readings, weights, frame)


def compare(table, expected, labels, tolerance: float = 1e-6) -> None:
    """Every figure of the reference's table stands in ours, and ours has no others but zeros."""
    ours = table.set_index(labels) if labels else table
    assert ours.index.is_unique
    for column, figures in expected.items():
        found_by_key = ours[column].to_dict()  # many times faster than to look up each by itself
        for key, figure in figures.items():
            found = found_by_key[key if len(labels) > 1 else key[0]]
            if math.isnan(figure):
                assert column in ("best_offset", "focus_offset") or math.isnan(found) or found == 0, (column, key)
            else:
                close = math.isclose(found, figure, rel_tol=tolerance, abs_tol=tolerance)
                assert close, (column, key, found, figure)
    keys = set(next(iter(expected.values())))
    values = ours["value"].to_dict() if "value" in ours else {}
    rest = [key for key in ours.index if (key if isinstance(key, tuple) else (key,)) not in keys]
    assert all(values[key] == 0 for key in rest), rest
