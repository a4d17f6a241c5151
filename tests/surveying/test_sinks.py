"""null="sinks": what many heads rest on is found as a double loop finds it, and left out as if its place were named."""

import pytest
import torch

from attnscope import Sentence, survey
from attnscope.statistics import Frame, Reading, observer
from attnscope.statistics.sinks import RestingHeads


def reading(place: int, length: int, special: tuple[int, ...] = ()) -> Reading:
    """A sentence of so many tokens, each a word of its own."""
    words = tuple(f"w{position}" for position in range(length))
    marks = tuple(position in special for position in range(length))
    of_tokens = tuple(None if mark else position for position, mark in enumerate(marks))
    return Reading(place, Sentence(words), tuple(range(length)), words, marks, of_tokens, sinks=(0,))


def resting_by_loops(weights: torch.Tensor, length: int, causal: bool) -> list[int]:
    """For each token, in how many heads the rows that see it give it over half of what they do not give the first."""
    counts = []
    for key in range(length):
        resting = 0
        for head in weights.double():
            rows = [row for row in range(length) if row >= key or not causal]
            offered = sum(float(head[row, 1:length].sum()) for row in rows)
            got = sum(float(head[row, key]) for row in rows)
            everything = sum(float(head[row, 1:length].sum()) for row in range(length))
            resting += key > 0 and len(rows) >= 4 and got > 0.5 * offered and everything > 0.03 * length
        counts.append(resting)
    return counts


@pytest.mark.parametrize("causal", [True, False])
def test_heads_at_rest_are_those_of_a_double_loop(causal: bool) -> None:
    dice = torch.Generator().manual_seed(3)
    lengths, frame = [9, 6, 4], Frame(2, 5, causal, "sinks")
    scores = torch.randn(2, 3, 5, 9, 9, generator=dice)
    scores[:, :, :3, :, 2] += 4  # three of five heads rest on the third token
    scores[:, :, 4, :, 0] += 9  # the last one rests on the first, and has nothing left
    real = torch.arange(9) < torch.tensor(lengths)[:, None]
    allowed = real[:, None, None, :] & (torch.ones(9, 9).tril().bool() if causal else True)
    weights = scores.masked_fill(~allowed, -1e9).softmax(-1)
    readings, resting = [reading(place, length) for place, length in enumerate(lengths)], RestingHeads(frame)
    observe = observer(readings, frame, [resting])
    for layer in range(2):
        observe(layer, weights[layer])
    for place, length in enumerate(lengths):
        expected = [resting_by_loops(weights[layer, place], length, causal) for layer in range(2)]
        assert resting.counts[place].tolist() == torch.tensor(expected).sum(0).tolist()
    assert resting.counts[0][2] == 6
    assert resting.mark(readings)[0].sinks == (0, 2)


def test_where_nothing_is_found_the_first_token_is_left_out_alone(small, lab) -> None:
    corpus = lab.sentences(4, [9, 3, 12])
    found, first = survey(small(), corpus, null="sinks"), survey(small(), corpus, null="first")
    assert (found.card["null"], found.card["sinks"]) == ("sinks", {})
    assert "none was found" in found.summary()
    lab.assert_like(found, first, 0, {name: list(first[name].result().columns[:3]) for name in first})


def test_a_sink_is_left_out_as_if_its_place_were_named(small, lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiny model has no habits, so the bar is lowered until it seems to have one."""
    monkeypatch.setattr("attnscope.statistics.sinks.DOMINANT", 0.2)
    monkeypatch.setattr("attnscope.statistics.sinks.MANY", 0.5)
    drawn = (lab.sentences(seed, [7]) for seed in range(10_000))
    (sentence,) = corpus = next(
        one for one in drawn if len({*one[0].words}) == 7 and all(map(str.isalpha, one[0].words))
    )
    found = survey(small(), corpus, null="sinks")
    assert found.card["sinks"]
    places = [place for place, word in enumerate(sentence.words) if place and word in found.card["sinks"]]
    assert len(places) == len(found.card["sinks"])
    named = survey(small(), corpus, null=(0, *places))
    for name in found:
        tables = [one[name].result().drop(columns="error", errors="ignore") for one in (found, named)]
        assert tables[0].equals(tables[1]), name
