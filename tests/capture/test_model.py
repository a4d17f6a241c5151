"""Read-outs, predictions, order, estimates: what InstrumentedModel promises beyond exact weights."""

import os
import subprocess
import sys
from collections import Counter

import pytest
import torch
from transformers import AutoModel, AutoModelForCausalLM

import attnscope
from attnscope.record import Model


def test_it_is_a_model_by_the_protocol(tiny):
    assert isinstance(tiny.load("bert"), Model)


@pytest.mark.parametrize(
    ("family", "architecture", "task", "position"),
    [
        ("bert", "BertForSequenceClassification", "classifier", 0),
        ("bert", "BertForMaskedLM", "masked_lm", 2),
        ("bert", "BertForPreTraining", "masked_lm", 2),
        ("bert", "BertModel", "encoder", None),
        ("bert", "BertForTokenClassification", "encoder", None),
        ("gpt2", "GPT2LMHeadModel", "causal_lm", -1),
        ("gpt2", "GPT2ForSequenceClassification", "classifier", -1),
        ("llama", "LlamaForSequenceClassification", "classifier", -1),
        ("llama", "LlamaModel", "encoder", -1),
    ],
)
def test_task_and_readout_come_from_the_class(tiny, family, architecture, task, position):
    inner = tiny.build(family, architecture=architecture)
    inner.config.architectures = None
    model = attnscope.load(inner, tokenizer=tiny.tokenizer("pair" if family == "bert" else "plain"))
    record = model.record("the [MASK] dogs see")
    assert model.task == task
    if position is None:
        torch.testing.assert_close(record.readout, torch.full_like(record.readout, 1 / len(record.readout)))
    else:
        assert record.readout[position] == 1
    assert bool(record.prediction) == (task != "encoder")


def test_masked_model_without_a_mask_reads_the_first_token(tiny):
    record = tiny.load("bert", architecture="BertForMaskedLM").record("the dogs see")
    assert record.readout[0] == 1
    assert record.prediction == ()


def test_predictions_are_those_of_the_model(tiny):
    model = tiny.load("gpt2")
    record = model.record(tiny.texts[0])
    with torch.no_grad():
        logits = model.model(**model.tokenizer(tiny.texts[0], return_tensors="pt")).logits[0, -1]
    best, ids = logits.softmax(-1).topk(5)
    assert [label for label, _ in record.prediction] == model.tokenizer.convert_ids_to_tokens(ids.tolist())
    assert [share for _, share in record.prediction] == pytest.approx(best.tolist(), abs=1e-6)


def test_labels_of_a_classifier_and_their_override(tiny):
    inner = tiny.build("bert", id2label={0: "bad", 1: "good"}, label2id={"bad": 0, "good": 1})
    record = attnscope.load(inner, tokenizer=tiny.tokenizer("pair")).record(tiny.texts[0])
    assert {label for label, _ in record.prediction} == {"bad", "good"}
    assert sum(share for _, share in record.prediction) == pytest.approx(1)
    renamed = attnscope.load(inner, tokenizer=tiny.tokenizer("pair"), labels=["no", "yes"])
    assert {label for label, _ in renamed.record(tiny.texts[0]).prediction} == {"no", "yes"}
    with pytest.raises(attnscope.BadInput, match="1 labels were given for a classifier of 2"):
        attnscope.load(inner, tokenizer=tiny.tokenizer("pair"), labels=["no"])


def test_several_labels_at_once_are_sigmoids_and_one_output_is_itself(tiny):
    several = tiny.load("bert", num_labels=3, problem_type="multi_label_classification")
    record = several.record(tiny.texts[0])
    with torch.no_grad():
        logits = several.model(**several.tokenizer(tiny.texts[0], return_tensors="pt")).logits[0]
    assert sorted(share for _, share in record.prediction) == pytest.approx(sorted(logits.sigmoid().tolist()), abs=1e-6)
    one = tiny.load("bert", num_labels=1)
    with torch.no_grad():
        value = one.model(**one.tokenizer(tiny.texts[0], return_tensors="pt")).logits[0, 0].item()
    assert one.record(tiny.texts[0]).prediction[0][1] == pytest.approx(value, abs=1e-6)


def test_readout_and_task_can_be_overridden(tiny):
    inner = tiny.build("bert")
    mean = attnscope.load(inner, tokenizer=tiny.tokenizer("pair"), readout="mean")
    assert len(set(mean.record(tiny.texts[1]).readout.tolist())) == 1
    headless = attnscope.load(inner, tokenizer=tiny.tokenizer("pair"), task="encoder")
    assert headless.record(tiny.texts[1]).prediction == ()
    with pytest.raises(attnscope.BadInput, match="no task 'poet'"):
        attnscope.load(inner, tokenizer=tiny.tokenizer("pair"), task="poet")


def test_causal_classifier_without_padding_token_runs_one_by_one(tiny):
    inner = tiny.build("gpt2", architecture="GPT2ForSequenceClassification", pad_token_id=None)
    model = attnscope.load(inner, tokenizer=tiny.tokenizer("plain"))
    records = list(model.records(tiny.texts, batch_size=4))
    for text, record in zip(tiny.texts, records, strict=True):
        with torch.no_grad():
            expected = inner(**model.tokenizer(text, return_tensors="pt")).logits.softmax(-1).max().item()
        assert record.prediction[0][1] == pytest.approx(expected, abs=1e-5)


def test_encoder_decoder_classifier_reads_its_last_end_token(tiny):
    model = tiny.load("bart", architecture="BartForSequenceClassification")
    record = model.record("the dogs see")
    assert record.stack == "cross"
    assert record.query_tokens == ("</s>", "the", "dogs", "see")
    assert record.readout.argmax() == 3
    with torch.no_grad():
        expected = model.model(**model.tokenizer("the dogs see", return_tensors="pt")).logits.softmax(-1).max().item()
    assert record.prediction[0][1] == pytest.approx(expected, abs=1e-5)


def test_records_come_in_the_order_given_while_texts_are_still_read(tiny):
    model = tiny.load("bert")
    taken = 0

    def endless():
        nonlocal taken
        while True:
            taken += 1
            yield " ".join(["the", "dogs", "see", "red"][: 1 + taken % 4])

    records = model.records(endless(), batch_size=2)
    lengths = [len(next(records).tokens) for _ in range(8)]
    assert lengths == [2 + 1 + number % 4 for number in range(1, 9)]
    assert taken <= 16


def test_probabilities_run_the_same_inputs_again(tiny):
    model = tiny.load("bert")
    records = list(model.records(tiny.texts))
    again = model.probabilities([record.inputs for record in records], batch_size=3)
    assert again.shape == (4, 2)
    for record, row in zip(records, again, strict=True):
        assert row.max().item() == pytest.approx(record.prediction[0][1], abs=1e-5)
    with pytest.raises(attnscope.BadInput, match="gives no prediction"):
        headless = tiny.load("bert", architecture="BertModel")
        headless.probabilities([headless.record("the dogs").inputs])


def test_estimate_is_what_recording_takes(tiny):
    model = tiny.load("bert")
    calls = Counter()
    model.model.register_forward_hook(lambda *_: calls.update(["pass"]))
    estimate = model.estimate(tiny.texts, batch_size=3)
    assert calls["pass"] == 0
    records = list(model.records(tiny.texts, batch_size=3, verify="never"))
    assert estimate.forward_passes == calls["pass"] == 2
    assert estimate.record_bytes == sum(record.weights.numel() * 4 for record in records)
    assert estimate.head_mean_bytes * 4 == estimate.record_bytes
    assert estimate.peak_bytes >= max(record.weights.numel() * 4 for record in records)
    assert model.estimate([512]).record_bytes == 3 * 4 * 512 * 512 * 4
    assert "1 forward pass" in str(model.estimate(tiny.texts[0]))


def test_stacks_and_options_that_do_not_exist_get_one_sentence(tiny):
    model = tiny.load("bert")
    for options, sentence in (
        ({"stack": "cross"}, "no cross stack"),
        ({"heads": "max"}, "heads is"),
        ({"heads": "mean", "values": True}, "single heads"),
        ({"text_targets": ["the"]}, "text_target"),
        ({"batch_size": 0}, "batch_size"),
    ):
        with pytest.raises(attnscope.BadInput, match=sentence):
            list(model.records(["the dogs"], **options))
    with pytest.raises(attnscope.BadInput, match="use record"):
        model.records("the dogs")


def test_loading_by_folder_name_and_object(tiny, tmp_path):
    tiny.build("bert").save_pretrained(tmp_path / "mine")
    tiny.tokenizer("pair").save_pretrained(tmp_path / "mine")
    by_folder = attnscope.load(tmp_path / "mine")
    by_object = tiny.load("bert")
    first, second = by_folder.record(tiny.texts[0]), by_object.record(tiny.texts[0])
    torch.testing.assert_close(first.weights, second.weights, atol=1e-6, rtol=0)
    assert first.card["model"] == "mine"
    assert os.sep not in first.card["model"]
    assert first.card["dtype"] == "float32"
    half = attnscope.load(tmp_path / "mine", dtype=torch.bfloat16)
    assert half.model.dtype == torch.bfloat16


def test_a_half_precision_checkpoint_is_float32_on_a_cpu(tiny, tmp_path):
    tiny.build("bert").half().save_pretrained(tmp_path)
    tiny.tokenizer("pair").save_pretrained(tmp_path)
    assert attnscope.load(tmp_path).model.dtype == torch.float32


def test_a_tokenizer_beside_the_model_is_found(tiny, tmp_path):
    tiny.build("bert").save_pretrained(tmp_path)
    tiny.tokenizer("pair").save_pretrained(tmp_path)
    from transformers import AutoModelForSequenceClassification

    assert (
        attnscope.load(AutoModelForSequenceClassification.from_pretrained(tmp_path)).record("the dogs").tokens[1]
        == "the"
    )
    with pytest.raises(attnscope.BadInput, match="pass one as tokenizer="):
        attnscope.load(tiny.build("bert"))


def test_a_sentence_encoder_says_how_it_pools(tiny, tmp_path):
    tiny.build("bert", architecture="BertModel").save_pretrained(tmp_path)
    tiny.tokenizer("pair").save_pretrained(tmp_path)
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text(
        '{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}'
    )
    assert attnscope.load(tmp_path).record("the dogs").readout.tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize(
    ("name", "sentence"), [("no/such-model", "cannot be loaded"), ("", "needs a name"), (3, "not int")]
)
def test_models_that_cannot_be_loaded_get_one_sentence(name, sentence, tmp_path):
    with pytest.raises(attnscope.BadInput, match=sentence):
        attnscope.load.__wrapped__(name) if not isinstance(name, str) else attnscope.load(name)
    with pytest.raises(attnscope.BadInput, match=r"no config\.json"):
        attnscope.load(tmp_path)


@pytest.mark.parametrize(("name", "auto"), [("minilm", AutoModel), ("smollm2", AutoModelForCausalLM)])
def test_real_models_equal_themselves_loaded_eager(real_model, name, auto):
    folder = real_model(name)
    model = attnscope.load(folder)
    record = model.record("The key to the cabinets is on the table, unbelievably.")
    eager = auto.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    with torch.no_grad():
        expected = eager(record.inputs["input_ids"].unsqueeze(0), output_attentions=True).attentions
    torch.testing.assert_close(record.weights, torch.cat(expected), atol=1e-6, rtol=0)
    assert model.model.config._attn_implementation == "sdpa"
    assert "unbelievably" in record.words().tokens
    if name == "minilm":
        assert len(set(record.readout.tolist())) == 1
    else:
        assert record.weights.shape[1] == 9
        assert record.causal


WRONG_CALLS = """
import attnscope
model = attnscope.load("demo")
text = "the key"
calls = [
    lambda: attnscope.load(3), lambda: attnscope.load(None), lambda: attnscope.load([]), lambda: attnscope.load(model),
    lambda: attnscope.load("demo", tokenizer=3), lambda: attnscope.load("demo", device=3.5),
    lambda: attnscope.load("demo", dtype=3), lambda: attnscope.load("demo", dtype="float99"),
    lambda: attnscope.load("demo", allow_missing=[3]), lambda: attnscope.load("demo", allow_missing=3),
    lambda: attnscope.load("demo", labels=3), lambda: attnscope.load("demo", labels="ab"),
    lambda: attnscope.load("demo", task=[]), lambda: attnscope.load("demo", readout=[]),
    lambda: model.record(5), lambda: model.record(None), lambda: model.record(b"the"), lambda: model.record(["the", 3]),
    lambda: model.record((text, None)), lambda: model.record({"a": 1}),
    lambda: model.record(text, window="9"), lambda: model.record(text, window=9, stride=2.5),
    lambda: model.record(text, gradients="yes"), lambda: model.record(text, gradients=True, target=[1]),
    lambda: model.record(text, gradients=True, target=True), lambda: model.record(text, quantity=[]),
    lambda: model.record(text, heads=[]), lambda: model.record(text, stack=[]), lambda: model.record(text, values=1),
    lambda: list(model.records(5)), lambda: list(model.records(text)), lambda: list(model.records([5])),
    lambda: list(model.records([text], "3")), lambda: list(model.records([text], 2.5)),
    lambda: list(model.records([text], text_targets=3)), lambda: list(model.records([text], text_targets="the")),
    lambda: list(model.records([text], colour="red")), lambda: model.record_generation(text, "9"),
    lambda: model.record_generation(5), lambda: model.record_generation(text, seed="x"),
    lambda: model.estimate(True), lambda: model.estimate([None]), lambda: model.estimate(text, "3"),
    lambda: model.tokens(5), lambda: model.probabilities([]), lambda: model.probabilities([], batch_size="x"),
]
for number, call in enumerate(calls):
    try:
        call()
        print(number, "nothing is wrong")
    except attnscope.BadInput as error:
        if len(str(error).splitlines()) != 1:
            print(number, error)
    except Exception as error:
        print(number, repr(error))
"""


def test_arguments_of_wrong_types_get_one_sentence():
    # in a process of its own: here, the types are checked before the functions are called
    run = subprocess.run([sys.executable, "-c", WRONG_CALLS], capture_output=True, text=True, check=True)
    assert run.stdout == ""


def test_a_mask_without_a_real_token_gets_one_sentence():
    with pytest.raises(attnscope.BadInput, match="is all zeros, so that no token is left"):
        attnscope.AttentionRecord.from_weights([[[[1.0, 0.0], [0.5, 0.5]]]], ["so", "long"], attention_mask=[0, 0])
