"""Generation, and the steps of `generate()` stitched together."""

import pytest
import torch

import attnscope
from attnscope.report.page import report_html


def test_one_pass_equals_the_stitched_steps(tiny, decoder):
    model = tiny.load(decoder)
    record = model.record_generation(tiny.texts[1], max_new_tokens=6)
    eager = tiny.build(decoder, "eager")
    ids = model.tokenizer(tiny.texts[1], return_tensors="pt")["input_ids"]
    output = eager.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=6, do_sample=False, output_attentions=True,
        return_dict_in_generate=True, pad_token_id=0,
    )  # fmt: skip
    tokens = model.tokenizer.convert_ids_to_tokens(output.sequences[0][:-1].tolist())
    stitched = attnscope.AttentionRecord.from_weights(output.attentions, tokens)
    assert stitched.causal
    length = min(len(tokens), len(record.tokens))
    assert length >= 6
    assert stitched.tokens[:length] == record.tokens[:length]
    torch.testing.assert_close(
        stitched.weights[..., :length, :length], record.weights[..., :length, :length], atol=1e-5, rtol=0
    )


def test_stitched_steps_of_an_encoder_decoder(tiny, encoder_decoder):
    model = tiny.load(encoder_decoder)
    eager = tiny.build(encoder_decoder, "eager")
    ids = model.tokenizer(tiny.texts[1], return_tensors="pt")["input_ids"]
    output = eager.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=5, do_sample=False, num_beams=1,
        output_attentions=True, return_dict_in_generate=True,
    )  # fmt: skip
    written = model.tokenizer.convert_ids_to_tokens(output.sequences[0][:-1].tolist())
    for stack, attentions in (("cross", output.cross_attentions), ("decoder", output.decoder_attentions)):
        record = model.record_generation(tiny.texts[1], max_new_tokens=5, stack=stack)
        key_tokens = record.key_tokens if stack == "cross" else None
        stitched = attnscope.AttentionRecord.from_weights(attentions, written, key_tokens=key_tokens)
        length = min(len(written), len(record.query_tokens))
        keys = len(record.key_tokens) if stack == "cross" else length
        torch.testing.assert_close(
            stitched.weights[..., :length, :keys], record.weights[..., :length, :keys], atol=1e-6, rtol=0
        )


def test_generation_continues_the_prompt(tiny):
    model = tiny.load("llama")
    record = model.record_generation(tiny.texts[1], max_new_tokens=4)
    assert record.tokens[:4] == ("the", "red", "dogs", "see")
    assert 5 <= len(record.tokens) <= 8
    words = [word for word in record.word_ids if word is not None]
    assert len(set(words)) == len(words)
    assert record.readout.argmax() == len(record.tokens) - 1
    assert record.card["answer"].split() == [token for token in record.tokens[4:] if not token.startswith("[")]
    assert f"Answer <b dir=auto>{record.card['answer']}</b>" in report_html(record)


def test_beams_are_refused(tiny):
    eager = tiny.build("gpt2", "eager")
    ids = torch.tensor([[6, 7, 8]])
    output = eager.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=3, num_beams=2, output_attentions=True,
        return_dict_in_generate=True, pad_token_id=0,
    )  # fmt: skip
    with pytest.raises(attnscope.BadInput, match="beams"):
        attnscope.AttentionRecord.from_weights(output.attentions, ["a"] * 5)


def test_too_many_new_tokens_are_refused_before_running(tiny):
    model = tiny.load("gpt2")
    with pytest.raises(attnscope.BadInput, match="4 tokens and 60 new ones are more than the 40"):
        model.record_generation(tiny.texts[1], max_new_tokens=60)
    with pytest.raises(attnscope.BadInput, match="at least 1"):
        model.record_generation(tiny.texts[1], max_new_tokens=0)
    with pytest.raises(attnscope.BadInput, match="does not generate"):
        tiny.load("bert").record_generation(tiny.texts[1])


def test_teacher_forcing_reads_the_target_one_step_behind(tiny, encoder_decoder):
    model = tiny.load(encoder_decoder)
    record = model.record(tiny.texts[0], text_target="the dogs", stack="cross")
    start = model.tokenizer.convert_ids_to_tokens([model.model.config.decoder_start_token_id])[0]
    assert record.query_tokens == (start, "the", "dogs")
    assert record.key_tokens[-1] == "</s>"
    assert record.readout.tolist() == [0, 0, 1]
    with pytest.raises(attnscope.BadInput, match="query_tokens"):
        _ = record.tokens
    labels = model.tokenizer(text_target="the dogs", return_tensors="pt")["input_ids"]
    shifted = tiny.build(encoder_decoder).prepare_decoder_input_ids_from_labels(labels)
    assert record.inputs["decoder_input_ids"].tolist() == shifted[0].tolist()


def test_options_of_generate_are_taken_and_stand_on_the_card(tiny):
    model = tiny.load("llama")
    drawn = [model.record_generation("the", 12, do_sample=True, temperature=5.0, seed=seed) for seed in (1, 1, 2)]
    assert drawn[0].tokens == drawn[1].tokens != drawn[2].tokens
    assert drawn[0].card["generation"] == {"do_sample": True, "num_beams": 1, "temperature": 5.0, "seed": 1}
    beams = model.record_generation("the dogs", 5, num_beams=3, heads="mean")
    expected = tiny.build("llama").generate(
        torch.tensor([[6, 14]]), attention_mask=torch.ones(1, 2, dtype=torch.long), max_new_tokens=5, num_beams=3,
        do_sample=False, pad_token_id=0,
    )  # fmt: skip
    assert beams.inputs["input_ids"].tolist() == expected[0][: len(beams.tokens)].tolist()


def test_drawing_without_a_seed_draws_anew_and_leaves_the_random_state_alone(tiny):
    model = tiny.load("llama")
    before = torch.get_rng_state()
    drawn = [model.record_generation("the", 12, do_sample=True, temperature=9.0) for _ in range(2)]
    assert torch.equal(before, torch.get_rng_state())
    seeds = [record.card["generation"]["seed"] for record in drawn]
    assert seeds[0] != seeds[1]
    again = model.record_generation("the", 12, do_sample=True, temperature=9.0, seed=seeds[0])
    assert again.tokens == drawn[0].tokens


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"colour": "red"}, "no option colour"),
        ({"num_return_sequences": 2}, "of one sequence"),
        ({"do_sample": True, "temperature": -1.0}, "cannot generate with these options"),
        ({"seed": -1}, "seed is a whole number"),
        ({"stack": "cross"}, "no cross stack"),
    ],
)
def test_options_that_generate_cannot_take_get_one_sentence(tiny, options, sentence):
    with pytest.raises(attnscope.BadInput, match=sentence) as caught:
        tiny.load("llama").record_generation("the dogs", 3, **options)
    assert "\n" not in str(caught.value)


def test_the_card_says_where_the_prompt_ends(tiny):
    record = tiny.load("llama").record_generation(tiny.texts[1], max_new_tokens=4)
    assert record.card["prompt_tokens"] == 4
    assert "prompt_tokens" not in tiny.load("t5").record_generation(tiny.texts[1], max_new_tokens=4).card


def test_a_given_answer_stands_behind_the_prompt_of_a_causal_model(tiny):
    model = tiny.load("llama")
    record = model.record("the dogs", text_target="see the key")
    whole = model.record("the dogs see the key")
    assert record.tokens == whole.tokens
    assert record.card["prompt_tokens"] == 2
    assert len(set(record.word_ids)) == 5
    torch.testing.assert_close(record.weights, whole.weights)
    several = list(model.records(["the dogs", "key"], text_targets=["see", "is red"]))
    assert [item.card["prompt_tokens"] for item in several] == [2, 1]
    with pytest.raises(attnscope.BadInput, match="one string"):
        model.record("the dogs", text_target=["see"])
    with pytest.raises(attnscope.BadInput, match="2 tokens and an answer of 39 are more than the 40"):
        model.record("the dogs", text_target=" ".join(["key"] * 39))
    with pytest.raises(attnscope.BadInput, match="writes no text"):
        tiny.load("bert").record("the dogs", text_target="see")


def test_views_set_the_answer_apart_from_the_prompt(tiny):
    record = tiny.load("llama").record("the dogs", text_target="see the key")
    keys = attnscope.views.head(record).payload["keys"]
    assert keys["sentences"] == [0, 0, 1, 1, 1]
    assert keys["pair"] == ["Prompt", "Answer"]
    assert attnscope.views.head(tiny.load("llama").record("the dogs")).payload["keys"]["sentences"] is None
    page = report_html(record)
    assert "Behind the answer, which begins after 2 tokens, it predicts" in page
