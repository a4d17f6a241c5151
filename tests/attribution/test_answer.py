"""Answers token by token: rows of the queries that foretold them, segments that sum, what is lost without some."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
import torch

import attnscope
from attnscope import BadInput
from attnscope.attribution.answer_rows import attention_rows
from attnscope.attribution.segment_ablation import PENALTY, fit_sparse

DOCUMENTS = [("Rome", "Rome fell. It was late."), ("The Ald", "The river is called Ald.\nYou see it.")]
ASKED = {"question": "Which river?", "documents": DOCUMENTS, "answer": "The river is called Ald, you see."}


@pytest.fixture(scope="module")
def answered(chat_model):
    """An answer with the weights of its record, and the same with vectors."""
    full = attnscope.answer(chat_model, **ASKED, keep="weights")
    vectors = attnscope.answer(chat_model, **ASKED, keep="vectors")
    return full, vectors


def test_an_answer_is_what_was_given_with_the_probability_of_each_token(chat_model, answered):
    answer, _ = answered
    assert answer.text == ASKED["answer"]
    assert "".join(answer.text[start:end] for start, end in answer.offsets) == answer.text
    assert answer.tokens == answer.record.tokens[answer.start :]
    ids = answer.record.inputs["input_ids"]
    with torch.no_grad():
        logits = chat_model.model(ids[None]).logits[0].log_softmax(-1)
    plain = torch.stack([logits[place - 1, ids[place]] for place in range(answer.start, len(ids))])
    torch.testing.assert_close(answer.log_probabilities, plain, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(answer.probabilities, plain.exp(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("method", ["raw", "rollout", "layerwise_tracing", "flow", "value_weighted", "effective"])
def test_a_row_is_that_of_the_query_that_foretold_the_token(answered, method):
    answer, vectors = answered
    queries = [answer.start + place - 1 for place in range(len(answer.tokens))]
    rows = attention_rows(answer.record, queries, method)
    if method == "layerwise_tracing":
        alone = [
            attnscope.layerwise_tracing(dataclasses.replace(answer.record, readout=one_hot(answer, query))).scores
            for query in queries
        ]
    else:
        scores = attnscope.attribute(answer.record, method)
        alone = [scores.at(query).float() for query in queries]
    torch.testing.assert_close(rows, torch.stack(alone), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(attention_rows(vectors.record, queries, method), rows, atol=1e-5, rtol=1e-4)
    for row, query in zip(rows, queries, strict=True):
        assert row[query + 1 :].abs().max() == 0


def one_hot(answer, query):
    readout = torch.zeros(len(answer.record.tokens))
    readout[query] = 1
    return readout


@pytest.mark.parametrize("by", ["turn", "document", "sentence", "word", "token"])
def test_segments_sum_to_the_rows_and_the_answer_is_one(answered, by):
    answer, _ = answered
    table = answer.scores("rollout", by=by)
    assert table.shape[0] == len(answer.tokens)
    assert table.columns[-1] == "answer"
    np.testing.assert_allclose(table.to_numpy().sum(-1), 1, atol=1e-5)
    groups, labels, kinds = answer.groups(by)
    assert sorted(place for group in groups for place in group) == list(range(len(answer.record.tokens)))
    assert list(table.columns) == list(labels)
    assert table.attrs["kinds"] == list(kinds)
    rows, _ = answer.rows("rollout", [[place] for place in range(len(answer.tokens))])
    np.testing.assert_allclose(table.to_numpy()[:, -1], rows[:, answer.start :].sum(-1).numpy(), atol=1e-6)
    assert table.to_numpy()[0, -1] == 0


def test_a_span_is_the_mean_of_its_rows(answered):
    answer, _ = answered
    places = answer.tokens_of("river")
    start = answer.text.index("river")
    assert places == answer.tokens_of((start, start + 5)) == answer.tokens_of(range(places[0], places[-1] + 1))
    whole = answer.scores("rollout")
    part = answer.scores("rollout", span="river")
    assert part.shape == (1, whole.shape[1])
    np.testing.assert_allclose(part.to_numpy()[0], whole.iloc[places].to_numpy().mean(0), atol=1e-6)


@pytest.mark.parametrize("method", ["gradient", "gradient_x_input"])
def test_gradients_are_those_of_each_tokens_log_probability(chat_model, answered, method):
    answer, _ = answered
    table = answer.scores(method, by="token").to_numpy()
    ids, model = answer.record.inputs["input_ids"], chat_model.model
    for number in (0, 2, len(answer.tokens) - 1):
        embeddings = model.get_input_embeddings()(ids[None]).detach().requires_grad_()
        place = answer.start + number
        likely = model(inputs_embeds=embeddings).logits[0, place - 1].log_softmax(-1)[ids[place]]
        (slope,) = torch.autograd.grad(likely, embeddings)
        naive = slope[0].norm(dim=-1) if method == "gradient" else (slope * embeddings)[0].sum(-1).abs()
        expected = [*naive[: answer.start].tolist(), naive[answer.start :].sum().item()]
        np.testing.assert_allclose(table[number], expected, atol=1e-4, rtol=1e-3)
    # a span is one backward pass, of the sum of its log-probabilities
    span = answer.scores("gradient_x_input", by="token", span=range(2), signed=True).to_numpy()[0]
    each = answer.scores("gradient_x_input", by="token", signed=True).to_numpy()[:2].sum(0)
    np.testing.assert_allclose(span, each, atol=1e-4, rtol=1e-3)


def test_integrated_gradients_sum_to_the_change_from_the_baseline(chat_model, answered):
    answer, _ = answered
    table = answer.scores("integrated_gradients", by="document", span=range(3), signed=True, steps=96, baseline="mean")
    ids = answer.record.inputs["input_ids"]
    own = chat_model.embedded({"input_ids": ids})["inputs_embeds"]
    embeddings = own.mean(0).expand_as(own)
    count = len(answer.tokens)
    before = chat_model.answer_log_probabilities([{"input_ids": ids, "inputs_embeds": embeddings}], count)[0, :3].sum()
    change = float(answer.log_probabilities[:3].sum() - before)
    assert table.to_numpy().sum() == pytest.approx(change, rel=0.05)
    assert table.attrs["warnings"] == []
    rough = answer.scores("integrated_gradients", span=range(1), steps=1)
    assert "take more steps" in rough.attrs["warnings"][0]


# ---- without some of the context


def plain_log_probabilities(model, ids, count):
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0].log_softmax(-1)
    return [float(logits[place - 1, ids[place]]) for place in range(len(ids) - count, len(ids))]


@pytest.mark.parametrize("by", ["document", "sentence"])
def test_leave_one_out_is_the_plain_loop(chat_model, answered, by):
    answer, _ = answered
    ids, count = answer.record.inputs["input_ids"].tolist(), len(answer.tokens)
    groups, labels, kinds = answer.groups(by)
    before = plain_log_probabilities(chat_model.model, ids, count)
    naive = {}
    for group, label, kind in zip(groups, labels, kinds, strict=True):
        if kind not in ("marker", "answer"):
            left = [token for place, token in enumerate(ids) if place not in group]
            naive[label] = np.subtract(before, plain_log_probabilities(chat_model.model, left, count))
    drops = answer.drops(by=by)
    assert list(drops["segment"]) == list(naive)
    np.testing.assert_allclose(drops["drop"], [lost.sum() for lost in naive.values()], atol=1e-4)
    np.testing.assert_allclose(drops["before"] - drops["after"], drops["drop"], atol=1e-6)
    span = answer.drops(by=by, span=range(1, 3))
    np.testing.assert_allclose(span["drop"], [lost[1:3].sum() for lost in naive.values()], atol=1e-4)
    table = answer.scores("blank_out", by=by)
    np.testing.assert_allclose(table.to_numpy().T, np.stack([*naive.values()]), atol=1e-4)


@pytest.mark.parametrize("changes", [{}, {"sliding_window": 16}])
def test_runs_that_share_a_beginning_are_whole_runs(chat_model, monkeypatch, changes):
    """Batches, padding and the keys and values of a common beginning change nothing."""
    ids = torch.arange(60) % 300 + 6
    runs = [
        ids,
        *(torch.cat([ids[:start], ids[start + size :]]) for start, size in ((5, 9), (20, 9), (20, 3), (41, 2))),
    ]
    model = chat_model
    if changes:
        import transformers

        config = transformers.MistralConfig(**{**chat_model.model.config.to_dict(), **changes, "model_type": "mistral"})
        torch.manual_seed(1)
        model = attnscope.load(transformers.MistralForCausalLM(config).eval(), tokenizer=chat_model.tokenizer)
    found = model.answer_log_probabilities([{"input_ids": run} for run in runs], 7, batch_size=3)
    plain = [plain_log_probabilities(model.model, run.tolist(), 7) for run in runs]
    np.testing.assert_allclose(found.numpy(), plain, atol=1e-4)
    monkeypatch.setattr("attnscope.capture.likelihood.MOST_NUMBERS", 3000)
    monkeypatch.setattr("attnscope.capture.likelihood.SHORT", 0)
    again = model.answer_log_probabilities([{"input_ids": run} for run in runs], 7)
    torch.testing.assert_close(again, found, atol=1e-5, rtol=1e-4)


def test_a_model_that_cannot_go_on_exactly_is_run_whole(chat_model, monkeypatch):
    runs = [{"input_ids": torch.arange(30) + 6}, {"input_ids": torch.cat([torch.arange(20), torch.arange(24, 30)]) + 6}]
    right = chat_model.answer_log_probabilities(runs, 3)
    from attnscope.capture import likelihood, prefix

    copy = likelihood._copy

    def wrong(*given):
        cache = copy(*given)
        for layer in cache.layers:
            layer.keys = layer.keys + 1
        return cache

    monkeypatch.setattr(likelihood, "_copy", wrong)
    monkeypatch.setitem(prefix._checked, chat_model.model, 0)
    torch.testing.assert_close(chat_model.answer_log_probabilities(runs, 3), right, atol=1e-5, rtol=1e-5)


def test_other_replacements_leave_the_places_there(chat_model, answered):
    answer, _ = answered
    ids = answer.record.inputs["input_ids"].tolist()
    groups, labels, kinds = answer.groups("document")
    place = kinds.index("document")
    blanked = [5 if number in groups[place] else token for number, token in enumerate(ids)]
    count = len(answer.tokens)
    lost = np.subtract(*(plain_log_probabilities(chat_model.model, some, count) for some in (ids, blanked))).sum()
    drops = answer.drops(replacement="pad").set_index("segment")
    assert drops.loc[labels[place], "drop"] == pytest.approx(lost, abs=1e-4)
    zero = answer.drops(replacement="zero").set_index("segment")
    embeddings = chat_model.embedded({"input_ids": torch.tensor(ids)})["inputs_embeds"]
    embeddings[groups[place]] = 0
    with torch.no_grad():
        logits = chat_model.model(inputs_embeds=embeddings[None]).logits[0].log_softmax(-1)
    after = sum(float(logits[number - 1, ids[number]]) for number in range(answer.start, len(ids)))
    assert zero.loc[labels[place], "after"] == pytest.approx(after, abs=1e-4)


def test_the_sparse_fit_is_the_lasso_of_scikit_learn():
    linear_model = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed: pip install it.")
    random = np.random.default_rng(3)
    masks = random.random((48, 9)) < 0.5
    masks[:, 4] = True
    response = masks @ random.normal(size=9) + random.normal(size=48) * 0.1
    spread = masks.std(0)
    spread[spread == 0] = 1
    for penalty in (PENALTY, 0.3, 10.0):
        lasso = linear_model.Lasso(alpha=penalty, tol=1e-12, max_iter=100_000)
        lasso.fit((masks - masks.mean(0)) / spread, response)
        np.testing.assert_allclose(fit_sparse(masks, response, penalty), lasso.coef_ / spread, atol=1e-7)


def test_sampled_ablation_asks_under_masks_and_has_intervals(chat_model, answered):
    answer, _ = answered
    sample = answer.sampled("sentence", masks=24, seed=5)
    groups, _, kinds = answer.groups("sentence")
    ids, count = answer.record.inputs["input_ids"].tolist(), len(answer.tokens)
    removable = [group for group, kind in zip(groups, kinds, strict=True) if kind not in ("marker", "answer")]
    for row in (0, 7):
        gone = {p for group, keep in zip(removable, sample.masks[row], strict=True) if not keep for p in group}
        left = [token for place, token in enumerate(ids) if place not in gone]
        naive = plain_log_probabilities(chat_model.model, left, count)
        np.testing.assert_allclose(sample.log_probabilities[row], naive, atol=1e-4)
    together = sample.log_probabilities.double().sum(-1).numpy()
    odds = [value - math.log(-math.expm1(value)) for value in together]
    expected = fit_sparse(sample.masks.numpy(), np.array(odds) / count, PENALTY) * count
    np.testing.assert_allclose(sample.weights().numpy(), expected, atol=1e-9)
    table = sample.to_frame()
    assert list(table.columns) == ["segment", "weight", "low", "high"]
    assert bool((table["low"] <= table["high"]).all())
    assert bool((table["high"] - table["low"] > 0).any())
    assert answer.sampled("sentence", masks=24, seed=5) is sample
    scores = answer.scores("sampled_ablation", by="sentence", masks=24, seed=5, span=range(count))
    np.testing.assert_allclose(scores.to_numpy()[0], sample.weights(), atol=1e-9)


def test_where_an_answer_comes_from(chat_model, answered):
    answer, _ = answered
    origin = answer.origin()
    shares = origin[["document", "question", "prompt", "answer", "sink"]]
    assert len(origin) == len(answer.tokens)
    ids, count = answer.record.inputs["input_ids"].tolist(), len(answer.tokens)
    documents = [place for place, kind in enumerate(answer.kinds) if kind == "document"]
    left = [token for place, token in enumerate(ids) if place not in documents]
    lost = np.subtract(*(plain_log_probabilities(chat_model.model, some, count) for some in (ids, left)))
    np.testing.assert_allclose(origin["without_documents"], lost, atol=1e-4)
    assert set(origin["strongest"]) <= {"Rome", "The Ald"}
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-5)
    alone = attnscope.Answer(record=answer.record, log_probabilities=answer.log_probabilities)
    pd.testing.assert_frame_equal(alone.origin(), origin[[*alone.origin().columns]])
    with pytest.raises(BadInput, match="runs the model again"):
        alone.drops()


def test_a_given_answer_scores_as_the_same_that_was_generated(chat_model):
    asked = {"question": "Which river?", "documents": DOCUMENTS}
    # a random model writes what its tokenizer would write otherwise: the first seed whose text has these tokens
    for seed in range(60):
        written = attnscope.answer(chat_model, **asked, max_new_tokens=2, do_sample=True, seed=seed, keep="weights")
        try:
            given = attnscope.answer(chat_model, **asked, answer=written.text, keep="weights")
        except BadInput:
            continue
        if given.tokens == written.tokens:
            break
    else:
        pytest.fail("no text of this model is tokenized as it was written")
    for method in ("rollout", "gradient", "blank_out"):
        pd.testing.assert_frame_equal(given.scores(method), written.scores(method))


def test_answers_are_pure_and_checked(chat_model, answered):
    answer, _ = answered
    for given, sentence in (
        ({"span": (0, 999)}, "outside the answer, which has"),
        ({"span": (5, 5)}, "outside the answer"),
        ({"span": "Nile"}, "does not stand in the answer"),
        ({"span": "e"}, "stands more than once"),
        ({"span": range(90, 95)}, "no range of the"),
        ({"span": range(0)}, "no range of the"),
        ({"by": "page"}, "no level 'page' here"),
        ({"method": "guess"}, "no method 'guess' for answers"),
    ):
        with pytest.raises(BadInput, match=sentence) as caught:
            answer.scores(**given)
        assert "\n" not in str(caught.value)
    with pytest.raises(BadInput, match="no replacement 'noise'"):
        answer.drops(replacement="noise")
    with pytest.raises(BadInput, match="masks must be at least 2"):
        answer.sampled(masks=1)
    with pytest.raises(BadInput, match="holds no answer"):
        attnscope.Answer(record=chat_model.record("The river"), log_probabilities=torch.zeros(1))
    with pytest.raises(BadInput, match="1 probabilities for an answer of"):
        attnscope.Answer(record=answer.record, log_probabilities=torch.zeros(1))
    with pytest.raises(BadInput, match="at most 32 tokens"):
        attention_rows(answer.record, list(range(40)), "flow")
