"""Which method to trust on answers: its order of the segments held against what the answer loses without them."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ..attribution.answer import Answer
from ..attribution.answer_rows import METHODS_OF_ANSWERS
from ..attribution.comparing import round_scores, spearman
from ..capture import InstrumentedModel, load
from ..engine import UNFINISHED, Store, checked_folder, fingerprint_of
from ..errors import BadInput, check_number
from ..evaluation.faithfulness import WHAT, find_finished
from ..evaluation.per_text import ERASURE, SEGMENT_BASELINES, Figure, random_scores
from ..evaluation.result import CARD, Trust
from ..evaluation.tables import tabulate
from ..record.schema import checked, quote
from .ask import Finished, answers_of, finished_answers

REFERENCE = "leave_one_out"
FIRST = (1, 3, 5)
"""So many segments that a method puts first are taken away together."""
SLOW = ("flow", "effective", "integrated_gradients", "blank_out")
"""Measured where they are named; blank-out of segments is what the others are held against."""
TOGETHER = 8
"""Answers of a part that is kept."""
SATURATION, LENGTH_SHARE = 1.5, 0.75
"""BM25's k1 and b, as Robertson & Zaragoza 2009 recommend them."""


@checked
def trust_answers(
    model: str | InstrumentedModel,
    answers: str | Path | Sequence[Any],
    methods: Sequence[str] | None = None,
    *,
    by: str = "sentence",
    masks: int = 32,
    seed: int = 0,
    out: str | Path | None = None,
    resume: bool = False,
    limit: int | None = None,
    watch: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Trust:
    """How well methods find what answers rest on, with intervals and beside baselines.

    `answers` is a JSONL file, or such objects: a question or messages, documents, the answer, and if only a part of it
    is to be judged, its `span`. Segments of the level `by` are ranked by each method; by `leave_one_out`, the fall of
    the log-probability when a segment is deleted (Spearman); and what is lost when those put first are deleted together
    (`drop_1`, `drop_3`, `drop_5`, in nats; their mean is the comprehensiveness). Baselines know nothing of the model:
    chance, nearness to the answer, length, and BM25 of the answer's words (Robertson & Zaragoza 2009).

    With a folder `out` what is done is kept, and `resume` goes on to the very same table. `card["costs"]` has for each
    method the runs of the model and the seconds that an answer took, beside the one run of its record.
    """
    folder = None if out is None else checked_folder(Path(out), WHAT, resume=resume, finished=CARD)
    check_number("masks", masks, 2, 10_000)
    check_number("seed", seed, 0)
    if limit is not None:
        check_number("limit", limit, 1)
    lines = _lines(answers, limit)
    wanted = (
        [name for name in METHODS_OF_ANSWERS if name not in SLOW] if methods is None else list(dict.fromkeys(methods))
    )
    for name in wanted:
        if name not in METHODS_OF_ANSWERS:
            raise BadInput(f"There is no method {quote(name)} for answers: choose {', '.join(METHODS_OF_ANSWERS)}.")
    loaded = load(model) if isinstance(model, str) else model
    recipe = {
        "model": loaded.name,
        "texts": len(lines),
        "fingerprint": fingerprint_of([[dict(line.given), line.span] for line in lines]),
        "methods": wanted,
        "by": by,
        "masks": masks,
        "seed": seed,
        "options": {name: str(value) for name, value in options.items()},
    }
    store = Store(None if folder is None else folder / UNFINISHED, WHAT, recipe)
    if (finished := find_finished(folder, recipe, store)) is not None:
        return finished
    figures = _figures(wanted)

    def measure(some: Sequence[Finished], start: int) -> dict[str, Tensor]:
        made = []
        for offset, (line, answer) in enumerate(zip(some, answers_of(loaded, some, **options), strict=True)):
            try:
                made.append(_measure(answer, line.span, wanted, by, masks, seed, start + offset))
            except BadInput as error:
                raise BadInput(f"Answer {line.name}: {error}") from None
        return {
            "values": torch.tensor(
                [[found[figure] for figure in figures] for found, _, _ in made], dtype=torch.float64
            ),
            "segments": torch.tensor([segments for _, segments, _ in made]),
            "costs": torch.tensor([[costs[name] for name in wanted] for _, _, costs in made], dtype=torch.float64),
        }

    parts = list(store.in_parts(lines, TOGETHER, measure, lambda line: [dict(line.given), line.span], watch))
    values, segments, costs = (torch.cat([part[name] for part in parts]) for name in ("values", "segments", "costs"))
    table = tabulate(figures, values.numpy(), segments.numpy(), seed)
    means = zip(wanted, costs.mean(0).tolist(), strict=True)
    spent = {name: {"runs": runs, "seconds": seconds} for name, (runs, seconds) in means}
    result = Trust(table, {**recipe, "left_out": {}, "costs": spent})
    if folder is not None:
        result.save(folder)
        store.clear()
    return result


def _lines(answers: str | Path | Sequence[Any], limit: int | None) -> list[Finished]:
    """The finished answers, of a file or as they are given."""
    if isinstance(answers, (str, Path)):
        lines = list(finished_answers(answers))
    else:
        lines = [Finished.of(dict(said), f"Answer {number}", number) for number, said in enumerate(answers, 1)]
    lines = lines[:limit]
    if not lines:
        raise BadInput("There are no answers to measure on.")
    for line in lines:
        if not {"answer", "text"} & set(line.given):
            raise BadInput(f'Answer {line.name} has no "answer": trust is measured on answers that are given.')
    return lines


def _figures(methods: Sequence[str]) -> list[Figure]:
    """What is measured of every answer."""
    ranked = [*methods, *SEGMENT_BASELINES]
    measures = ("comprehensiveness", *(f"drop_{count}" for count in FIRST))
    return [
        *(Figure(name, None, REFERENCE, "spearman", "without") for name in ranked if name != "blank_out"),
        *(Figure(name, None, ERASURE, measure, "without") for name in ranked for measure in measures),
    ]


def _measure(
    answer: Answer, span: str | None, methods: Sequence[str], by: str, masks: int, seed: int, number: int
) -> tuple[dict[Figure, float], int, dict[str, tuple[float, float]]]:
    """The figures of one answer, how many segments were ranked, and what each method took."""
    tokens = list(range(len(answer.tokens))) if span is None else answer.tokens_of(span)
    groups, places = answer.groups(by)[0], answer.removable(by)
    scored, costs = {}, {}
    for name in methods:
        begun = time.perf_counter()
        with runs_counted(answer) as runs:
            scored[name] = _scores(answer, name, by, tokens, groups, places, masks, seed)
        costs[name] = (float(runs["rows"]), time.perf_counter() - begun)
    scored |= baseline_scores(answer, [groups[place] for place in places], tokens, seed, number)
    reference = answer.leave_one_out(by).of_tokens([tokens])[0]
    lots = np.random.default_rng([seed, number, 1]).random(len(places))
    orders = {
        name: sorted(range(len(places)), key=lambda one: (-values[one], lots[one]))
        for name, values in ((name, round_scores(scores)) for name, scores in scored.items())
    }
    counts = [count for count in FIRST if count < len(places)]
    sets = list(dict.fromkeys(frozenset(order[:count]) for order in orders.values() for count in counts))
    dropped = dict(zip(sets, answer.drops_of_sets(by, sets, tokens), strict=True))
    figures = {}
    for name in scored:
        drops = {count: dropped[frozenset(orders[name][:count])] for count in counts}
        figures[Figure(name, None, REFERENCE, "spearman", "without")] = spearman(scored[name], reference)
        for count in FIRST:
            figures[Figure(name, None, ERASURE, f"drop_{count}", "without")] = drops.get(count, float("nan"))
        mean = sum(drops.values()) / len(drops) if drops else float("nan")
        figures[Figure(name, None, ERASURE, "comprehensiveness", "without")] = mean
    return figures, len(places), costs


def _scores(
    answer: Answer,
    method: str,
    by: str,
    tokens: list[int],
    groups: Sequence[Sequence[int]],
    places: Sequence[int],
    masks: int,
    seed: int,
) -> Float[Tensor, " segment"]:
    """What a method gives to each segment that can be taken away, for these tokens of the answer."""
    if method == "blank_out":
        return answer.leave_one_out(by).of_tokens([tokens])[0]
    if method == "sampled_ablation":
        return answer.sampled(by, masks, seed).of_tokens([tokens])[0]
    rows, _ = answer.rows(method, [tokens])
    return torch.stack([rows[0, list(groups[place])].sum() for place in places])


@contextmanager
def runs_counted(answer: Answer) -> Iterator[Counter[str]]:
    """How many texts the model runs on meanwhile: rows of its batches, whole or behind a common beginning."""
    seen: Counter[str] = Counter()

    def count(_module: Any, given: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        rows = next(
            found for found in (*given, named.get("input_ids"), named.get("inputs_embeds")) if found is not None
        )
        seen["rows"] += len(rows)

    assert isinstance(answer.model, InstrumentedModel)  # noqa: S101 -- answers are made here with it
    handle = answer.model.model.register_forward_pre_hook(count, with_kwargs=True)
    try:
        yield seen
    finally:
        handle.remove()


# Scores that know nothing of the model.


def baseline_scores(
    answer: Answer, segments: Sequence[Sequence[int]], tokens: Sequence[int], seed: int, number: int
) -> dict[str, Float[Tensor, " segment"]]:
    """Every baseline, in the order of SEGMENT_BASELINES."""
    assert answer.record.segments is not None  # noqa: S101 -- an answer has them
    offsets, text = answer.record.segments.offsets, answer.record.segments.text
    texts = [text[offsets[some[0]][0] : offsets[some[-1]][1]] for some in segments]
    said = answer.text[answer.offsets[tokens[0]][0] : answer.offsets[tokens[-1]][1]]
    scores = (
        random_scores(len(segments), seed, number),
        torch.tensor([float(some[-1]) for some in segments]).double(),
        torch.tensor([float(len(some)) for some in segments]).double(),
        torch.tensor(bm25(texts, said)).double(),
    )
    return dict(zip(SEGMENT_BASELINES, scores, strict=True))


def bm25(texts: Sequence[str], asked: str) -> list[float]:
    """How much each text has of the words that are asked for (Robertson & Zaragoza 2009, Eq. 3.15).

    >>> [round(score, 2) for score in bm25(["the old key", "a door"], "key")]
    [0.25, 0.0]
    """
    words = [Counter(_words(text)) for text in texts]
    mean = sum(counts.total() for counts in words) / len(words)
    found = []
    for counts in words:
        score = 0.0
        for word in set(_words(asked)):
            holding = sum(word in others for others in words)
            rarity = np.log1p((len(words) - holding + 0.5) / (holding + 0.5))
            room = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * counts.total() / max(mean, 1e-9))
            score += float(rarity * counts[word] / (counts[word] + room)) if counts[word] else 0.0
        found.append(score)
    return found


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
