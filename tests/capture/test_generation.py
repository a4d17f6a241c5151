"""Generation, and the steps of `generate()` stitched together."""

import pytest
import torch

import attnscope


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
