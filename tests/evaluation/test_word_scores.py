"""Scores of words against plain loops over records; pieces of words; a run that goes on is the unbroken one."""

import math
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest
import torch

import attnscope
from attnscope.errors import BadInput
from attnscope.evaluation import WORD_METHODS, word_scores
from attnscope.evaluation import word_methods as measuring
from attnscope.record.scores import scores_of


def means(occurrences):
    return {word: sum(values) / len(values) for word, values in occurrences.items()}


def naive(model, texts, method, **options):
    """The mean softmax score of each word and N times it, one text and one word after the other."""
    plain, corrected = defaultdict(list), defaultdict(list)
    for text in texts:
        record = model.record(text, **options)
        sums, names = {}, {}
        for place, value in enumerate(method(record)):
            if not record.key_special[place]:
                word = record.key_word_ids[place]
                sums[word] = sums.get(word, 0.0) + value
                names[word] = names.get(word, "") + record.key_tokens[place].removeprefix("##")
        most = max(sums.values())
        total = sum(math.exp(value - most) for value in sums.values())
        for word, value in sums.items():
            plain[names[word].lower()].append(math.exp(value - most) / total)
            corrected[names[word].lower()].append(len(sums) * math.exp(value - most) / total)
    return means(plain), means(corrected)


def traced(record):
    held = [record.readout.double() for _ in record.heads]
    for layer in reversed(range(len(record.layers))):
        held = [held[head] @ record.weights[layer, head].double() for head in range(len(held))]
    return sum(held).tolist()


def squared(record):
    return record.embedding_gradients.double().square().sum(-1).tolist()


REFERENCES = {
    "layerwise_tracing": (traced, {}),
    "gradient_of_prediction": (squared, {"gradients": True, "quantity": "probability"}),
    "rollout": (lambda record: attnscope.rollout(record).scores.tolist(), {}),
    "flow": (lambda record: attnscope.flow(record).scores.tolist(), {}),
    "raw": (lambda record: (record.readout @ record.weights[-1].mean(0)).tolist(), {}),
}


@pytest.fixture(scope="module")
def table(demo, sentences):
    return word_scores(demo, sentences).set_index("word")


@pytest.mark.parametrize("method", REFERENCES)
def test_they_are_those_of_a_plain_loop(method, table, demo, sentences):
    scores, options = REFERENCES[method]
    columns = (method, f"{method}_length_corrected")
    for column, expected in zip(columns, naive(demo, sentences, scores, **options), strict=True):
        assert set(expected) == set(table.index)
        np.testing.assert_allclose(table[column].loc[list(expected)], list(expected.values()), rtol=2e-5)


def test_words_are_counted(table, sentences):
    counts = pd.Series(" ".join(sentences).lower().split()).value_counts()
    assert table["count"].sort_index().to_dict() == counts.sort_index().to_dict()
    frequent = table[table["count"] >= 3]
    assert 0 < len(frequent) < len(table)
    assert table["layerwise_tracing"].is_monotonic_decreasing


def test_rare_words_can_be_left_out(demo, sentences, table):
    frequent = word_scores(demo, sentences, ["raw"], minimum_count=3)
    assert set(frequent["word"]) == set(table.index[table["count"] >= 3])


def test_probabilities_that_sum_to_one_have_no_gradient_of_their_sum(table, demo, sentences):
    assert "gradient_of_sum" not in table.columns
    with pytest.raises(BadInput, match="always sum to one"):
        word_scores(demo, sentences[:1], ["gradient_of_sum"])


def test_the_papers_gradient_is_that_of_all_sigmoids(sentences):
    model = attnscope.load("demo")
    model.model.config.problem_type = "multi_label_classification"
    found = word_scores(model, sentences[:6], ["gradient_of_sum", "raw"]).set_index("word")
    options = {"gradients": True, "target": "sum", "quantity": "probability"}
    expected, _ = naive(model, sentences[:6], squared, **options)
    np.testing.assert_allclose(found["gradient_of_sum"].loc[list(expected)], list(expected.values()), rtol=2e-5)
    one = model.record(sentences[0], gradients=True, target="sum", quantity="probability")
    assert one.target.index is None
    assert float(one.embedding_gradients.norm()) > 0


def test_methods_of_your_own(demo, sentences, word_lengths):
    found = word_scores(demo, sentences[:3], [word_lengths, "gradient_x_input"])
    expected, _ = naive(demo, sentences[:3], lambda record: word_lengths(record).scores.tolist())
    np.testing.assert_allclose(found.set_index("word")["word_lengths"].loc[list(expected)], list(expected.values()))
    assert {"gradient_x_input", "gradient_x_input_length_corrected"} <= set(found.columns)


def test_split_words_keep_their_spelling(demo):
    found = word_scores(demo, [["the", "Unbelievable", "keys"]], ["raw"])
    assert set(found["word"]) == {"the", "unbelievable", "keys"}
    assert "[unk]" in set(word_scores(demo, ["the unbelievable keys"], ["raw"])["word"])


# ---- pieces of words


class PieceModel:
    """A model that cuts words in pieces of two letters and attends as a seed says."""

    name, blank_ids = "pieces", {}

    def tokens(self, text, truncate=False):
        return self.record(text).tokens

    probabilities = target = embedded = target_gradients = tokens

    def record(self, text, truncate=False):
        pieces, word_ids = ["[CLS]"], [None]
        for number, word in enumerate(text.split()):
            cut = [word[start : start + 2] for start in range(0, len(word), 2)]
            pieces += [cut[0], *(f"##{piece}" for piece in cut[1:])]
            word_ids += [number] * len(cut)
        dice = torch.Generator().manual_seed(sum(map(ord, text)))
        weights = torch.rand(3, 2, len(pieces), len(pieces), generator=dice).mul(3).softmax(-1)
        special = [True] + [False] * (len(pieces) - 1)
        return attnscope.AttentionRecord.from_weights(
            weights, pieces, causal=False, readout=0, word_ids=word_ids, special=special
        )

    def records(self, texts, batch_size=16, **options):
        return (self.record(text, **options) for text in texts)


def test_pieces_are_summed_before_the_softmax():
    texts = ["a wonderful film", "a film", "wonderful wonderful a"]
    found = word_scores(PieceModel(), texts, ["layerwise_tracing", "raw"]).set_index("word")
    expected, corrected = naive(PieceModel(), texts, traced)
    assert found["count"].to_dict() == {"a": 3, "wonderful": 3, "film": 2}
    for word in expected:
        assert found.loc[word, "layerwise_tracing"] == pytest.approx(expected[word], rel=1e-5)
        assert found.loc[word, "layerwise_tracing_length_corrected"] == pytest.approx(corrected[word], rel=1e-5)


def test_where_there_is_no_gradient_the_others_are_scored():
    class Plain(PieceModel):
        def record(self, text, truncate=False, **options):
            if options:
                raise BadInput("This model gives no gradients.")
            return super().record(text)

    found = word_scores(Plain(), ["a film", "a wonderful film"])
    assert set(found.columns) >= {"layerwise_tracing", "rollout", "flow", "raw"}
    assert not any(column.startswith("gradient") for column in found.columns)


# ---- killed and resumed


def test_killed_in_the_middle_and_resumed_it_is_the_unbroken_one(demo, sentences, tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "BATCHES_IN_PART", 2)
    options = dict(methods=["layerwise_tracing", "raw", "gradient_of_prediction"], batch_size=3)
    seen = []

    def stop(done, whole):
        seen.append((done, whole))
        if done == 15:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        word_scores(demo, sentences, out=tmp_path / "cut", watch=stop, **options)
    assert [done for done, _ in seen] == [0, 3, 6, 9, 12, 15]
    with pytest.raises(BadInput, match="already holds an unfinished"):
        word_scores(demo, sentences, out=tmp_path / "cut", **options)
    with pytest.raises(BadInput, match="texts was 20, is now 19"):
        word_scores(demo, sentences[:19], out=tmp_path / "cut", resume=True, **options)
    again = []
    watch = lambda done, whole: again.append(done)  # noqa: E731 - one line, one use
    resumed = word_scores(demo, sentences, out=tmp_path / "cut", resume=True, watch=watch, **options)
    assert again == [12, 15, 18, 20]
    unbroken = word_scores(demo, sentences, out=tmp_path / "whole", **options)
    pd.testing.assert_frame_equal(resumed, unbroken, check_exact=True)
    files = [sorted(path.name for path in (tmp_path / name).iterdir()) for name in ("cut", "whole")]
    assert files == [["words.csv", "words.json"]] * 2
    for name in files[0]:
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    finished = word_scores(demo, sentences, out=tmp_path / "cut", resume=True, **options)
    pd.testing.assert_frame_equal(finished, unbroken, check_exact=True)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"texts": []}, "no texts"),
        ({"texts": "one text"}, "put a single one into a list"),
        ({"methods": []}, "name at least one"),
        ({"methods": ["nope"]}, "There is no method 'nope'"),
        ({"methods": ["raw", "raw"]}, "given twice"),
        ({"minimum_count": 0}, "minimum_count must be at least 1"),
    ],
)
def test_bad_input_is_refused(demo, options, sentence, tmp_path):
    given = {"texts": ["the keys"], **options}
    with pytest.raises(BadInput, match=sentence):
        word_scores(demo, out=tmp_path / "out", **given)
    assert not (tmp_path / "out").exists()


def test_scores_that_are_not_finite_are_refused(demo):
    def broken(record):
        return scores_of(record, "broken", torch.full((len(record.key_tokens),), torch.nan))

    with pytest.raises(BadInput, match="not finite"):
        word_scores(demo, ["the keys"], [broken])


def test_every_method_has_its_reference():
    assert set(WORD_METHODS) == {*REFERENCES, "gradient_of_sum"}
