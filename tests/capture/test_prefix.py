"""Runs that begin alike: what they have in common is run once, and every answer is that of the plain model."""

import pytest
import torch

import attnscope
from attnscope.capture import prefix

UNK = 1
TEXT = "the key to the cabinets is on the table . the red dogs see a boy that runs"
FAMILIES = ["gpt2", "llama", "qwen2", "gemma2", "mistral", "bloom", "opt", "gpt_neox"]
"""Mistral's and Gemma's windows are narrower than what the runs have in common; BLOOM has no positions, OPT its own."""
SINGLE_STEPS = ["gemma2", "bloom"]
"""They compute norms or softmax in float32 in any dtype: in float64 it is the processor that decides whether runs that
go on from a common beginning differ by more than its rounding, and are run whole then."""


def blanked(inputs, token):
    """The ids of a text with one token blanked."""
    ids = inputs["input_ids"].clone()
    ids[token] = UNK
    return {"input_ids": ids}


def plain_logits(plain, items):
    """Each item by itself, by transformers alone and from its first token on."""
    with torch.no_grad():
        return torch.stack([plain(input_ids=item["input_ids"][None], use_cache=False).logits[0, -1] for item in items])


def plain_probabilities(plain, items):
    """The same as probabilities."""
    return plain_logits(plain, items).softmax(-1)


@pytest.fixture
def tokens_run(monkeypatch):
    """How many tokens each call of a model was given, rows times columns."""
    seen = []

    def count(model):
        model.model.get_input_embeddings().register_forward_hook(lambda _m, given, _o: seen.append(given[0].numel()))
        return seen

    monkeypatch.setattr(prefix, "_checked", type(prefix._checked)())
    return count


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_answers_are_those_of_whole_runs(tiny, tokens_run, family, dtype):
    plain = tiny.build(family).to(dtype)
    model = attnscope.load(tiny.build(family).to(dtype), tokenizer=tiny.tokenizer("plain"))
    inputs = {"input_ids": model.reader.passage(TEXT).inputs["input_ids"]}
    length, first, last = len(inputs["input_ids"]), 9, 15
    items = [blanked(inputs, token) for token in range(first, last)]
    expected = plain_logits(plain, items)
    seen = tokens_run(model)
    brought = [{**inputs, "inputs_embeds": model.embedded(item)["inputs_embeds"]} for item in items]
    seen.clear()
    with torch.no_grad():
        found = torch.stack(model.reader.answers_again(items))
    shared, whole = [first, len(items) * (length - first)], [len(items) * length]
    tried = [*shared, length]  # the last is the whole run that is held against the others
    depends = dtype == torch.float64 and family in SINGLE_STEPS
    goes_on = seen == tried
    assert goes_on or (depends and seen == [*tried, *whole])
    single = dtype == torch.float32 or (depends and goes_on)
    torch.testing.assert_close(found, expected, atol=1e-5 if single else 1e-12, rtol=0)
    seen.clear()
    torch.testing.assert_close(model.probabilities(brought), expected.softmax(-1).float(), atol=1e-5, rtol=0)
    assert seen == (shared if goes_on else whole)


def test_a_model_that_looks_ahead_is_run_whole(tiny, tokens_run):
    model, plain = tiny.load("llama"), tiny.build("llama")
    for one in (model.model, plain):
        one.model.layers[0].register_forward_hook(lambda _m, _given, output: output + output.mean(1, keepdim=True))
    inputs = {"input_ids": model.reader.passage(TEXT).inputs["input_ids"]}
    items = [blanked(inputs, token) for token in range(9, 15)]
    seen = tokens_run(model)
    for whole_only in (False, True):
        seen.clear()
        torch.testing.assert_close(model.probabilities(items), plain_probabilities(plain, items), atol=1e-5, rtol=0)
        assert (seen == [len(items) * len(inputs["input_ids"])]) == whole_only


def test_nothing_is_shared_where_it_saves_nothing(tiny, tokens_run):
    model = tiny.load("llama")
    inputs = {"input_ids": model.reader.passage(TEXT).inputs["input_ids"]}
    length = len(inputs["input_ids"])
    seen = tokens_run(model)
    for tokens in ([12], [0, 12], [1, 2, 3]):
        seen.clear()
        model.probabilities([blanked(inputs, token) for token in tokens])
        assert seen == [len(tokens) * length]


def test_only_the_answers_are_computed(tiny):
    model = tiny.load("llama")
    shapes = []
    model.model.lm_head.register_forward_hook(lambda _m, _given, output: shapes.append(tuple(output.shape[:2])))
    long, short = ({"input_ids": model.reader.passage(text).inputs["input_ids"]} for text in (TEXT, "the red dogs see"))
    found = model.probabilities([long, short, long])
    torch.testing.assert_close(found, plain_probabilities(tiny.build("llama"), [long, short, long]), atol=1e-5, rtol=0)
    assert shapes == [(3, 1 + len(long["input_ids"]) - len(short["input_ids"]))]


def test_blank_out_of_a_real_model_is_that_of_whole_runs(real_model, monkeypatch):
    model = attnscope.load(real_model("smollm2"))
    record = model.record("The keys to the old cabinet near the door")
    quick = attnscope.blank_out(record, model, signed=True, batch_size=3)
    monkeypatch.setattr(prefix, "may_go_on", lambda _reader: False)
    whole = attnscope.blank_out(record, model, signed=True, batch_size=3)
    assert prefix._checked[model.model] == len(record.tokens)
    torch.testing.assert_close(quick.scores, whole.scores, atol=1e-5, rtol=1e-4)
