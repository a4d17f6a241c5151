"""The survey beside the bare forward pass: the work it adds, a NumPy loop that does the same, and its memory."""

import os
import random
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np
import torch
from transformers import GPT2Config, GPT2Model

from ..statistics import STATISTICS, Frame, Reading, observer
from ..statistics.batch import is_punctuation
from ..syntax import Sentence
from .figure import Figure, faster, share, taking_turns

LAYERS, HEADS, SENTENCES, TOKENS = 12, 12, 16, 64
LONG = 256
PROCESSES = 3
"""Runs of each way whose peaks are compared."""
MAPPED_ALONE = 1_000_000
"""Bytes from which the allocator gives a tensor its own pages, and gives them back when it is freed: the peak is then
what was in use at once. Without it, what lies unused in the allocator's heap moves a peak by up to 150 MB."""
TAGS = tuple("ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB".split())
RELATIONS = tuple(f"relation{number}" for number in range(40))


def measure_survey() -> Iterator[Figure]:
    """GPT-2-small size, 16 sentences of 64 tokens: time; and of 256 tokens: memory."""
    dice = random.Random(0)
    readings = [_reading(dice, place) for place in range(SENTENCES)]
    frame = Frame(LAYERS, HEADS, causal=True, null="first", tags=TAGS, relations=RELATIONS)
    generator = torch.Generator().manual_seed(0)
    model = GPT2Model(GPT2Config()).eval()
    ids = torch.randint(0, 50_000, (SENTENCES, TOKENS), generator=generator)
    future = torch.ones(TOKENS, TOKENS).triu(1).bool()
    layers = [
        torch.randn(SENTENCES, HEADS, TOKENS, TOKENS, generator=generator).masked_fill(future, -torch.inf).softmax(-1)
        for _ in range(LAYERS)
    ]
    with torch.no_grad():
        seconds = taking_turns(
            {
                "forward": lambda: model(ids),
                "ours": lambda: survey_layers(readings, frame, layers),
                "numpy": lambda: loop_over_heads(readings, layers),
            }
        )
    case = f"all statistics, {SENTENCES} x {TOKENS} tokens"
    yield share(case, "forward pass (sdpa)", seconds["ours"], seconds["forward"], 0.05, "timed alone")
    yield faster(case, "NumPy loop", seconds["ours"], seconds["numpy"], 10, "one sentence and head at a time")
    bare, streamed, kept = median_peaks()
    yield share(
        f"peak memory above the forward pass, {SENTENCES} x {LONG} tokens",
        "keeping all attentions",
        max(streamed - bare, 0.0),
        kept - bare,
        0.10,
        f"one thread, medians of {PROCESSES}; bare {bare:.0f} MB, survey {streamed:.0f} MB, all kept {kept:.0f} MB",
        unit="MB",
    )


def survey_layers(readings: list[Reading], frame: Frame, layers: list[torch.Tensor]) -> list[object]:
    """What every statistic does with one batch, from nothing to its state."""
    statistics = [kind.empty(frame) for kind in STATISTICS.values()]
    show = observer(readings, frame, statistics)
    for layer, weights in enumerate(layers):
        show(layer, weights)
    return [statistic.state() for statistic in statistics]


@dataclass(frozen=True)
class Layout:
    """What the loop needs to know of a sentence, worked out once for all layers and heads."""

    tags: np.ndarray
    relations: np.ndarray
    distances: np.ndarray
    links: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]
    """In each direction the query, key and relation of every link that looks back, and not at the first token."""
    repeated: np.ndarray
    induction: tuple[np.ndarray, np.ndarray]
    punctuation: np.ndarray
    others: np.ndarray
    shared_alike: np.ndarray
    """The map of a head that looks alike at everything that counts."""
    pairs: dict[str, np.ndarray]
    """In each direction how many weights that count each token has."""

    @classmethod
    def of(cls, reading: Reading) -> "Layout":
        """Lay a sentence of one token to a word out."""
        heads, ids, count = np.array(reading.sentence.heads), np.array(reading.token_ids), len(reading)
        position = np.arange(count)
        like = ids[:, None] == ids
        last = np.where(np.tril(like, -1), position, -1).max(1)
        seen = (last >= 0) & (last + 1 < position)
        child = position[heads >= 0]
        parent = heads[child]
        kept = np.tri(count) * (position > 0)
        relations = np.array([RELATIONS.index(relation) for relation in reading.sentence.relations or ()])
        return cls(
            tags=np.array([TAGS.index(tag) for tag in reading.sentence.tags or ()]),
            relations=relations,
            distances=np.abs(position[:, None] - position),
            links={
                "up": _that_count(child, parent, relations[child]),
                "down": _that_count(parent, child, relations[child]),
            },
            repeated=like & ~np.eye(count, dtype=bool),
            induction=(position[seen], last[seen] + 1),
            punctuation=np.array([is_punctuation(token) for token in reading.tokens]),
            others=np.maximum(count - position - 1, 1),
            shared_alike=kept / np.maximum(kept.sum(1, keepdims=True), 1),
            pairs={"to": kept.sum(0), "from": kept.sum(1)},
        )


def loop_over_heads(readings: list[Reading], layers: list[torch.Tensor]) -> list[dict[str, np.ndarray]]:
    """The plain way to the same sums: one sentence, one head at a time, with NumPy inside."""
    layouts = [Layout.of(reading) for reading in readings]
    return [
        _one_head(weights[number, head].double().numpy(), layout)
        for weights in layers
        for number, layout in enumerate(layouts)
        for head in range(HEADS)
    ]


def _that_count(query: np.ndarray, key: np.ndarray, relation: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    counts = (key < query) & (key > 0)
    return query[counts], key[counts], relation[counts]


def _one_head(weights: np.ndarray, layout: Layout) -> dict[str, np.ndarray]:
    kept = weights.copy()
    kept[:, 0] = 0
    given, received, relations = kept.sum(1), kept.sum(0), layout.relations
    counted = (given > 0) & (weights.sum(1) - given <= 0.9 * weights.sum(1))
    shares = kept[counted] / given[counted, None]
    found = {
        "to": np.bincount(layout.tags, received, len(TAGS)),
        "from": np.bincount(layout.tags, given, len(TAGS)),
        "type": np.bincount(relations, received, len(RELATIONS)),
        "distance": (kept * layout.distances).sum(),
        "entropy": -(shares * np.log(np.where(shares > 0, shares, 1))).sum(),
        "rows": counted.sum(),
        "null": weights[:, 0].sum(),
        "map": kept[:10, :10],
        "previous": np.trace(kept, -1),
        "next": np.trace(kept, 1),
        "same": np.trace(kept),
        "repeated": kept[layout.repeated].sum(),
        "induction": kept[layout.induction].sum(),
        "punctuation": weights[:, layout.punctuation].sum(),
        "largest": np.array(np.unravel_index(kept.argmax(), kept.shape)),
    }
    found["most"], found["most_by_chance"] = received.max(), (given @ layout.shared_alike).max()
    for direction, numbers in (("to", received), ("from", given)):
        largest, most_pairs = np.zeros(len(TAGS)), np.zeros(len(TAGS))
        np.maximum.at(largest, layout.tags, numbers)
        np.maximum.at(most_pairs, layout.tags, layout.pairs[direction])
        all_pairs = np.bincount(layout.tags, layout.pairs[direction], len(TAGS))
        found[f"{direction}_largest"] = largest
        found[f"{direction}_by_chance"] = found[direction] * most_pairs / np.maximum(all_pairs, 1)
    for direction, (query, key, relation) in layout.links.items():
        along = kept[query, key]
        found[direction] = np.bincount(relation, along, len(RELATIONS))
        others = (received[key] - along) / layout.others[key]
        found[f"{direction}_others"] = np.bincount(relation, others, len(RELATIONS))
        asking = np.unique(np.stack([query, relation]), axis=1)
        found[f"{direction}_asked"] = np.bincount(asking[1], given[asking[0]], len(RELATIONS))
    return found


def median_peaks() -> tuple[float, float, float]:
    """The median peak of the bare pass, the survey, and all attentions kept, each run by turns."""
    ways = ("bare", "survey", "keep")
    peaks = [[peak_megabytes(way) for way in ways] for _ in range(PROCESSES)]
    bare, streamed, kept = (median(column) for column in zip(*peaks, strict=True))
    return bare, streamed, kept


def peak_megabytes(way: str) -> float:
    """The largest memory of a process of its own that runs one batch in this way, on one thread.

    Each further thread keeps buffers of the mathematical library, which differ from run to run.
    """
    code = f"from attnscope.bench.survey import run_once; print(run_once({way!r}))"
    steady = {**os.environ, "OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": str(MAPPED_ALONE)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=steady)  # noqa: S603
    return float(done.stdout.split()[-1])


def run_once(way: str) -> float:
    """Run one batch of long sentences: bare, surveyed, or with all attentions kept; the peak in megabytes."""
    from ..capture.watching import watch_model

    torch.manual_seed(0)
    implementation = "eager" if way == "keep" else "sdpa"
    model = GPT2Model._from_config(GPT2Config(), attn_implementation=implementation).eval()  # noqa: SLF001
    ids = torch.randint(0, 50_000, (SENTENCES, LONG))
    with torch.no_grad():
        if way == "survey":
            dice = random.Random(0)
            frame = Frame(LAYERS, HEADS, causal=True, null="first", tags=TAGS, relations=RELATIONS)
            readings = [_reading(dice, place, LONG) for place in range(SENTENCES)]
            show = observer(readings, frame, [kind.empty(frame) for kind in STATISTICS.values()])
            layers = iter(range(LAYERS))
            with watch_model(model, lambda call: show(next(layers), call.weights)) as run:
                run(input_ids=ids)
        else:
            model(ids, output_attentions=way == "keep")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _reading(dice: random.Random, place: int, tokens: int = TOKENS) -> Reading:
    order = dice.sample(range(tokens), tokens)
    heads = [-1] * tokens
    for place_in_order, word in enumerate(order[1:], start=1):
        heads[word] = order[dice.randrange(place_in_order)]
    sentence = Sentence(
        words=tuple(f"w{word}" for word in range(tokens)),
        tags=tuple(dice.choice(TAGS) for _ in range(tokens)),
        heads=tuple(heads),
        relations=tuple(dice.choice(RELATIONS) for _ in range(tokens)),
    )
    ids = tuple(dice.randrange(5_000) for _ in range(tokens))
    return Reading(place, sentence, ids, sentence.words, (False,) * tokens, tuple(range(tokens)))
