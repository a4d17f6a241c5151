"""Rollout and tracing through the three stacks of an encoder-decoder, against the slow reference and on models."""

import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import CliRunner

import attnscope
from attnscope import AttentionRecord, BadInput
from attnscope.cli import app
from attnscope.explaining import show


def weights_of(dice, layers, heads, queries, keys, causal=False):
    scores = 4 * torch.randn(layers, heads, queries, keys, generator=dice)
    if causal:
        scores = scores.masked_fill(torch.ones(queries, keys).triu(1).bool(), -torch.inf)
    return scores.softmax(-1)


def record_of(seed, queries=4, keys=7, layers=3, below=2, heads=2, heads_below=2):
    """A random record of three stacks, with a spread read-out."""
    dice = torch.Generator().manual_seed(seed)
    record = AttentionRecord.from_weights(
        weights_of(dice, layers, heads, queries, keys),
        [f"q{number}" for number in range(queries)],
        key_tokens=[f"k{number}" for number in range(keys)],
        readout=torch.rand(queries, generator=dice).softmax(0),
    )
    return replace(
        record,
        encoder_weights=weights_of(dice, below, heads_below, keys, keys),
        decoder_weights=weights_of(dice, layers, heads, queries, queries, causal=True),
    )


def expected_of(reference, record, **options):
    return reference.rollout_through_stacks(record.encoder_weights, record.decoder_weights, record.weights, **options)


@pytest.mark.parametrize("heads", ["mean", "max", 1, [0, 1]])
@pytest.mark.parametrize("residual", [0.0, 0.2, 0.5, 1.0])
def test_rollout_against_the_loop(reference, heads, residual):
    record = record_of(0)
    expected = expected_of(reference, record, residual=residual, heads=heads)
    scores = attnscope.rollout(record, heads=heads, residual=residual)
    np.testing.assert_allclose(scores.map, expected.source, atol=1e-6)
    np.testing.assert_allclose(scores.prefix.map, expected.prefix, atol=1e-6)
    np.testing.assert_allclose(scores.scores, record.readout.numpy() @ expected.source[-1], atol=1e-6)
    np.testing.assert_allclose(scores.prefix.scores, record.readout.numpy() @ expected.prefix[-1], atol=1e-6)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**16),
    queries=st.integers(1, 5),
    keys=st.integers(1, 6),
    layers=st.integers(1, 4),
    below=st.integers(1, 4),
    residual=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
)
def test_nothing_is_lost_and_rows_are_rows_of_the_map(seed, queries, keys, layers, below, residual):
    record = record_of(seed, queries, keys, layers, below)
    scores = attnscope.rollout(record, residual=residual)
    torch.testing.assert_close(scores.map.sum(-1) + scores.prefix.map.sum(-1), torch.ones(layers, queries))
    torch.testing.assert_close(scores.prefix.scores.sum(), torch.tensor(residual**layers))
    assert scores.prefix.map.triu(1).abs().max() == 0  # nobody has anything of what comes after it
    fresh = attnscope.rollout(record, residual=residual)
    for layer in range(layers):
        for query in range(queries):
            torch.testing.assert_close(fresh.at(query, layer), scores.map[layer, query])
            torch.testing.assert_close(fresh.prefix.at(query, layer), scores.prefix.map[layer, query])


def test_two_tokens_by_hand():
    """One layer each, all on one token: a half of the cross-attention, an eighth and a quarter of the prefix."""
    record = replace(
        AttentionRecord.from_weights(torch.tensor([[[[1.0, 0.0], [0.0, 1.0]]]]), ["<s>", "a"], key_tokens=["x", "y"]),
        encoder_weights=torch.tensor([[[[0.0, 1.0], [0.0, 1.0]]]]),
        decoder_weights=torch.tensor([[[[1.0, 0.0], [1.0, 0.0]]]]),
    )
    scores = attnscope.rollout(record)
    torch.testing.assert_close(scores.map[0], torch.tensor([[0.25, 0.25], [0.0, 0.5]]))
    torch.testing.assert_close(scores.prefix.map[0], torch.tensor([[0.5, 0.0], [0.25, 0.25]]))


def test_some_queries_only():
    record = record_of(3)
    whole, some = attnscope.rollout(record), attnscope.rollout(record, queries=[1, -1])
    for one, other in ((whole, some), (whole.prefix, some.prefix)):
        torch.testing.assert_close(other.map[:, [1, 3]], one.map[:, [1, 3]])
        assert other.map[:, [0, 2]].isnan().all()


def test_words_sum_in_source_and_prefix():
    record = replace(record_of(4), key_word_ids=(0, 0, 1, 2, 2, 2, 3), query_word_ids=(None, 0, 0, 1))
    tokens = attnscope.rollout(record)
    words = tokens.words()
    assert len(words.tokens) == 4
    assert len(words.prefix.tokens) == 3
    torch.testing.assert_close(words.scores[2], tokens.scores[3:6].sum())
    torch.testing.assert_close(words.scores.sum() + words.prefix.scores.sum(), torch.tensor(1.0))
    merged = attnscope.rollout(record.words())
    assert merged.tokens == words.tokens
    torch.testing.assert_close(merged.map.sum(-1) + merged.prefix.map.sum(-1), torch.ones(3, 3))


# ---- tracing


@pytest.mark.parametrize("seed", range(3))
def test_tracing_is_the_last_cross_attention_traced_down_the_encoder(seed):
    record = record_of(seed, heads=3, heads_below=3)
    scores = attnscope.layerwise_tracing(record)
    for head in range(3):
        held = record.readout.numpy() @ record.weights[-1, head].numpy()
        np.testing.assert_allclose(scores.per_head[2, head], held, atol=1e-6)
        for layer in (1, 0):
            below = np.zeros(7)
            for query in range(7):
                for key in range(7):
                    below[key] += held[query] * record.encoder_weights[layer, head, query, key].item()
            held = below
            np.testing.assert_allclose(scores.per_head[layer, head], held, atol=1e-6)
    assert scores.scores.sum().item() == pytest.approx(3, abs=1e-5)
    assert "only the decoder's last cross-attention" in scores.warnings[0]


def test_tracing_with_one_head_is_rollout_without_residual():
    record = record_of(5, heads=1, heads_below=1)
    rolled = attnscope.rollout(record, residual=0.0)
    torch.testing.assert_close(attnscope.layerwise_tracing(record).scores, rolled.scores)
    assert rolled.prefix.scores.abs().max() == 0


def test_tracing_keeps_to_one_head():
    with pytest.raises(BadInput, match="2 heads of the decoder stand over 3 of the encoder"):
        attnscope.layerwise_tracing(record_of(0, heads_below=3))
    mean = record_of(0, heads_below=3)
    assert attnscope.rollout(mean).scores.isfinite().all()


# ---- models


FAMILIES = {
    "t5": ("t5", {}),
    "bart": ("bart", {}),
    "marian": ("marian", {}),
    "mbart": ("MBartConfig", "MBartForConditionalGeneration"),
    "pegasus": ("PegasusConfig", "PegasusForConditionalGeneration"),
    "t5, gated": ("t5", {"feed_forward_proj": "gated-gelu", "num_decoder_layers": 2}),
    "bart, heads that differ": ("bart", {"encoder_attention_heads": 2}),
}


def model_of(tiny, name):
    """A tiny model of a family that tests/capture builds, or of another with BART's settings."""
    family, changes = FAMILIES[name]
    if isinstance(changes, dict):
        return tiny.load(family, **changes)
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, family)(**tiny.BART_LIKE)
    return attnscope.load(getattr(transformers, changes)._from_config(config).eval(), tokenizer=tiny.tokenizer("ended"))


@pytest.fixture(params=FAMILIES)
def model(request, tiny):
    return model_of(tiny, request.param)


def test_models_against_what_transformers_returns_and_the_loop(reference, tiny, model):
    """The weights are those that the same model returns by itself; the rollout is the loop over them."""
    record = model.record(tiny.TEXTS[0], text_target="the red dogs see", stack="all")
    eager = model.model
    eager.set_attn_implementation("eager")
    inputs = {name: ids[None] for name, ids in record.inputs.items()}
    with torch.no_grad():
        output = eager(**inputs, output_attentions=True)
    for ours, theirs in (
        (record.encoder_weights, output.encoder_attentions),
        (record.decoder_weights, output.decoder_attentions),
        (record.weights, output.cross_attentions),
    ):
        torch.testing.assert_close(ours, torch.cat(theirs), atol=1e-5, rtol=0)
    scores = attnscope.rollout(record)
    expected = reference.rollout_through_stacks(
        *(torch.cat(maps) for maps in (output.encoder_attentions, output.decoder_attentions, output.cross_attentions))
    )
    np.testing.assert_allclose(scores.map, expected.source, atol=1e-5)
    np.testing.assert_allclose(scores.prefix.map, expected.prefix, atol=1e-5)
    assert scores.tokens == record.key_tokens
    assert scores.map.shape[1] == len(record.query_tokens)


def test_padded_batches_give_what_one_by_one_gives(tiny, model):
    targets = ["the dogs", "key", "the red dogs see the key", "boy"]
    together = list(model.records(tiny.TEXTS, batch_size=4, text_targets=targets, stack="all"))
    for text, target, record in zip(tiny.TEXTS, targets, together, strict=True):
        alone = attnscope.rollout(model.record(text, text_target=target, stack="all"))
        scores = attnscope.rollout(record)
        assert scores.tokens == alone.tokens
        torch.testing.assert_close(scores.map, alone.map, atol=1e-5, rtol=0)
        torch.testing.assert_close(scores.prefix.map, alone.prefix.map, atol=1e-5, rtol=0)


def test_one_pass_gives_what_three_records_give(tiny, model):
    given = {"text_target": "the red dogs"}
    whole = model.record(tiny.TEXTS[2], stack="all", **given)
    encoder, decoder, cross = (
        model.record(tiny.TEXTS[2], stack=stack, **given) for stack in ("encoder", "decoder", "cross")
    )
    torch.testing.assert_close(
        attnscope.rollout(cross.with_stacks(encoder, decoder)).map, attnscope.rollout(whole).map, atol=1e-6, rtol=0
    )
    for alone in (encoder, decoder, cross):
        part = whole.of_stack(alone.stack)
        torch.testing.assert_close(part.weights, alone.weights, atol=1e-6, rtol=0)
        for name in ("tokens", "word_ids", "special"):
            for side in ("query", "key"):
                assert getattr(part, f"{side}_{name}") == getattr(alone, f"{side}_{name}")
        torch.testing.assert_close(part.readout, alone.readout)
        assert (part.causal, part.layers, part.heads) == (alone.causal, alone.layers, alone.heads)


@pytest.fixture(scope="module")
def copyist(tiny):
    """A tiny Marian that has learned to write its source once more: output token i is source token i."""
    torch.manual_seed(0)
    model = tiny.build("marian", **COPYIST).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=COPY_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, COPY_RATE, total_steps=COPY_STEPS)
    for _ in range(COPY_STEPS):
        words = torch.randint(len(tiny.SPECIAL), tiny.SIZE, (64, int(torch.randint(2, 9, ()))))
        ids = torch.cat([words, torch.full((64, 1), tiny.END)], 1)
        optimizer.zero_grad()
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        schedule.step()
    return attnscope.load(model.eval(), tokenizer=tiny.tokenizer("ended"))


COPYIST = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "init_std": 0.1,
    "scale_embedding": True,
    "dropout": 0.0,
}
COPY_RATE, COPY_STEPS = 5e-3, 250


def pointed(tiny, model):
    """The share of output tokens that have most of the source token they are a copy of."""
    dice = torch.Generator().manual_seed(1)
    right = tokens = 0
    for _ in range(12):
        length = int(torch.randint(3, 8, (), generator=dice))
        words = [tiny.WORDS[place] for place in torch.randint(len(tiny.WORDS), (length,), generator=dice).tolist()]
        record = model.record(" ".join(words), text_target=" ".join(words), stack="all")
        # the query before an output token foretold it, so query i is of output token i; the last is of the end
        right += int((attnscope.rollout(record).map[-1].argmax(-1) == torch.arange(len(record.query_tokens))).sum())
        tokens += len(record.query_tokens)
    return right / tokens


def test_what_copies_points_to_what_it_copies(tiny, copyist):
    """Each output token has most of the source token it is a copy of; before training that is chance."""
    record = copyist.record("boy see the red table", stack="all")
    assert record.query_tokens[1:] == record.key_tokens[:-1], "it has not learned to copy"
    assert attnscope.rollout(record).at(query=0).argmax() == 0
    assert pointed(tiny, copyist) > 0.9
    assert pointed(tiny, tiny.load("marian", **COPYIST)) < 0.5


def test_prefix_and_source_together_are_a_record(copyist):
    record = copyist.record("the red dogs see", stack="all")
    scores = attnscope.rollout(record)
    whole = torch.cat([scores.prefix.map, scores.map], dim=-1).unsqueeze(1)
    tokens = [*scores.prefix.tokens, *scores.tokens]
    alignment = AttentionRecord.from_weights(whole, record.query_tokens, key_tokens=tokens)
    for view in (attnscope.views.head(alignment), attnscope.views.model(alignment)):
        assert len(view.payload["keys"]["texts"]) == len(tokens)


# ---- where it is shown and measured


def test_the_view_of_scores_shows_each_output_token(copyist):
    record = copyist.record("the red dogs see", stack="all")
    scores = attnscope.rollout(record)
    for view in (attnscope.views.scores(scores, record=record, query=2), attnscope.views.scores(scores, query=2)):
        assert (view.payload["stack"], view.state["queries"]) == ("cross", [2])
        assert tuple(view.payload["queries"]["texts"]) == ("[PAD]", "the", "red", "dogs", "see")
        shown = view.table()
        of_query = shown[shown["query"].eq(2).fillna(False) & shown["layer"].eq(1).fillna(False)]
        torch.testing.assert_close(
            torch.tensor(of_query["score"].to_numpy(float)).float(), scores.map[1, 2], atol=1e-6, rtol=0
        )
    assert attnscope.views.head(record).payload["stack"] == "cross"
    assert attnscope.views.head(record.of_stack("decoder")).payload["causal"]
    assert attnscope.views.tracing(record.of_stack("encoder")).payload
    assert attnscope.views.tracing(attnscope.layerwise_tracing(record)).payload
    with pytest.raises(BadInput, match="one text to another"):
        attnscope.views.tracing(record)


def test_explain_names_the_words_of_the_source_for_each_token_written(copyist):
    explanation = attnscope.explain(copyist, "the red dogs see", ["rollout", "layerwise_tracing"])
    assert [one.token for one in explanation.written] == ["the", "red", "dogs", "see", "</s>"]
    assert [one.scores.tokens[int(one.scores.scores.argmax())] for one in explanation.written[:4]] == [
        "the", "red", "dogs", "see",
    ]  # fmt: skip
    file = io.StringIO()
    show(Console(file=file, width=120), explanation)
    assert re.search(r"red +← “red” 0\.\d+", file.getvalue())
    told = json.loads(json.dumps(explanation.to_dict()))["written"]
    assert (told[1]["token"], len(told[1]["scores"])) == ("red", 5)
    assert attnscope.explain(copyist, "the red dogs", ["rollout"], query=1).written == ()
    assert attnscope.explain(copyist, "the red dogs", ["raw"]).written == ()


def test_explain_on_the_command_line(copyist, tiny, tmp_path):
    copyist.model.save_pretrained(tmp_path / "copyist")
    tiny.tokenizer("ended").save_pretrained(tmp_path / "copyist")
    given = ["explain", str(tmp_path / "copyist"), "the red dogs see", "--methods", "rollout"]
    done = CliRunner().invoke(app, given)
    assert (done.exit_code, "dogs  ← “dogs”" in done.stdout) == (0, True)
    row = json.loads(CliRunner().invoke(app, [*given, "--query", "2", "--json"]).stdout)["scores"]["rollout"]
    assert row[2] == max(row)
    refused = CliRunner().invoke(app, [*given, "--query", "9"])
    assert (refused.exit_code, "There is no query 9" in refused.stderr) == (2, True)


def test_a_classifier_writes_nothing(tiny):
    model = tiny.load("bart", architecture="BartForSequenceClassification", num_labels=2)
    explanation = attnscope.explain(model, "the red dogs", ["rollout", "raw"])
    assert explanation.written == ()
    rolled = explanation.comparison.scores[0]
    assert rolled.scores.sum() + rolled.prefix.scores.sum() == pytest.approx(1.0, abs=1e-6)


def test_trust_measures_rollout_through_the_stacks(tiny):
    trusted = attnscope.trust(tiny.load("t5"), ["the red dogs", "a boy"], ["raw", "rollout"], against=("gradient",))
    assert trusted.card["left_out"] == {}
    assert {"raw", "rollout"} <= set(trusted.table["method"])


def test_the_estimate_counts_all_stacks(tiny):
    model = tiny.load("t5")
    record = model.record("the red dogs see", text_target="the red dogs see", stack="all")
    held = sum(tensor.nbytes for tensor in (record.weights, record.encoder_weights, record.decoder_weights))
    estimate = model.estimate("the red dogs see", stack="all")
    assert (estimate.record_bytes, estimate.is_bound) == (held, True)


# ---- bad input


def test_bad_input_gets_one_sentence(tiny):
    bart, bert, gpt2 = (tiny.load(family) for family in ("bart", "bert", "gpt2"))
    record = bart.record("the red dogs", text_target="the key", stack="all")
    alone = {stack: bart.record("the red dogs", text_target="the key", stack=stack) for stack in ("encoder", "decoder")}
    other = bart.record("the red boy", stack="encoder")
    cross = record.of_stack("cross")
    for call, sentence in (
        (lambda: bert.record("the dogs", stack="all"), "one stack .encoder.: leave stack= out"),
        (lambda: gpt2.record("the dogs", stack="all"), "one stack .decoder."),
        (lambda: bart.record("the dogs", stack="all", keep="vectors"), "is for one stack"),
        (lambda: bart.stream("the dogs", print, stack="all"), "one stack"),
        (lambda: bart.record(inputs={"input_ids": torch.tensor([[6, 5]])}, stack="all"), "is for texts"),
        (lambda: attnscope.rollout(record).at(query=3), "There is no query 3: this record has 3"),
        (lambda: attnscope.rollout(record).prefix.at(query=-4), "There is no query -4"),
        (lambda: attnscope.rollout(record, queries=[9]), "There is no query 9"),
        (lambda: attnscope.rollout(record, residual=2.0), "not a share"),
        (lambda: attnscope.rollout(record, heads=7), "heads between 0 and 3"),
        (lambda: attnscope.rollout(record, start_layer=1), "is for one stack, and this record"),
        (lambda: attnscope.rollout(record, normalize="receptive_field"), "is for one stack, and this record"),
        (lambda: attnscope.rollout(record, attention="effective"), "is for one stack, and this record"),
        (lambda: attnscope.rollout(cross), "one text to another"),
        (lambda: attnscope.flow(record), "one text to another"),
        (lambda: cross.of_stack("encoder"), "cross stack alone"),
        (
            lambda: cross.with_stacks(other, alone["decoder"]),
            "different passes: the encoder read 4 tokens .the red boy",
        ),
        (lambda: cross.with_stacks(alone["encoder"], other), "different passes: the decoder read"),
        (lambda: cross.with_stacks(cross, alone["decoder"]), "this record is of cross-attention"),
        (lambda: alone["encoder"].with_stacks(alone["encoder"], alone["decoder"]), "this is of the encoder stack"),
        (
            lambda: cross.with_stacks(alone["encoder"], alone["decoder"].select(layers=0)),
            "are 1 layers of the decoder and 3",
        ),
        (
            lambda: cross.with_stacks(alone["encoder"], replace(alone["decoder"], inputs=other.inputs)),
            "different passes: the decoder was given other input_ids",
        ),
        (
            lambda: cross.with_stacks(replace(alone["encoder"], card={"model": "mine"}), alone["decoder"]),
            "different models",
        ),
        (lambda: replace(cross, encoder_weights=record.encoder_weights), "stand together"),
        (lambda: replace(alone["encoder"], encoder_weights=1.0 * record.encoder_weights), "stand together"),
        (lambda: replace(record, encoder_weights=2 * record.encoder_weights), "encoder_weights: The attention row"),
        (lambda: replace(record, decoder_weights=record.decoder_weights[:1]), "decoder_weights has the shape"),
    ):
        with pytest.raises(BadInput, match=sentence) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_a_decoder_of_another_order_is_refused(tiny):
    """The equation is of self-attention first: a layer that asks the source first is not rolled out by it."""
    model = tiny.load("bart")
    layer = model.model.model.decoder.layers[1]

    def source_first(hidden, mask=None, encoder_hidden_states=None, encoder_attention_mask=None, **rest):
        found, _ = layer.encoder_attn(
            hidden, key_value_states=encoder_hidden_states, attention_mask=encoder_attention_mask, **rest
        )
        return hidden + found + layer.self_attn(hidden + found, attention_mask=mask, **rest)[0]

    layer.forward = source_first
    assert model.record("the dogs", text_target="key", stack="cross").stack == "cross"
    with pytest.raises(BadInput, match="attends first to what it has read"):
        model.record("the dogs", text_target="key", stack="all")


def test_what_is_left_of_a_part(tiny):
    record = tiny.load("t5").record("the red dogs", text_target="the key", stack="all")
    part = record.select(layers=[0, 1])
    assert not part.has_all_stacks
    assert attnscope.rollout(record).prefix.tokens == record.query_tokens
    mean = tiny.load("t5").record("the red dogs", text_target="the key", stack="all", heads="mean")
    assert mean.encoder_weights.shape[1] == mean.decoder_weights.shape[1] == 1
    torch.testing.assert_close(attnscope.rollout(mean).map, attnscope.rollout(record).map, atol=1e-6, rtol=0)


def test_saved_and_loaded(tiny, tmp_path):
    record = tiny.load("t5").record("the red dogs", text_target="the key", stack="all", gradients=True, values=True)
    again = AttentionRecord.load(record.save(tmp_path / "r.safetensors"))
    torch.testing.assert_close(again.encoder_weights, record.encoder_weights, atol=0, rtol=0)
    torch.testing.assert_close(attnscope.rollout(again).map, attnscope.rollout(record).map)
    assert "with encoder and decoder" in repr(again)
