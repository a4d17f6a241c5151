"""What a hard reviewer found: models used meanwhile, unusual classes, tokenizers and generation settings."""

import copy
import threading
from types import SimpleNamespace

import pytest
import torch
import transformers
from tokenizers import normalizers
from transformers import BertForSequenceClassification

import attnscope
from attnscope.capture.encoding import windows


def test_two_handles_on_one_model_in_two_threads(tiny):
    inner = tiny.build("bert")
    tokenizer = tiny.tokenizer("pair")
    expected = attnscope.load(inner, tokenizer=tokenizer).record(tiny.texts[0]).weights
    same = []

    def work():
        model = attnscope.load(inner, tokenizer=tokenizer)
        same.extend(torch.allclose(model.record(tiny.texts[0]).weights, expected, atol=1e-6) for _ in range(15))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert same == [True] * 30
    assert inner.config._attn_implementation == "sdpa"


def test_a_model_used_by_another_thread_while_it_is_watched_just_runs(tiny):
    inner = tiny.build("bert")
    model = attnscope.load(inner, tokenizer=tiny.tokenizer("pair"))
    ids = torch.tensor([[2, 7, 3]])
    found = []

    def meanwhile(module, inputs, output):
        thread = threading.Thread(target=lambda: found.append(module(ids)[0]))
        thread.start()
        thread.join()

    hook = inner.bert.encoder.layer[1].register_forward_hook(
        lambda module, inputs, output: meanwhile(inner.bert.embeddings, inputs, output)
    )
    record = model.record(tiny.texts[0], verify="never")
    hook.remove()
    assert record.weights.shape[0] == 3
    assert len(found) == 1


def test_a_hook_that_runs_the_model_adds_no_layers(tiny):
    inner = tiny.build("bert")
    model = attnscope.load(inner, tokenizer=tiny.tokenizer("pair"))
    before = model.record(tiny.texts[0])
    running = []

    def run_again(module, inputs, output):
        if not running:
            running.append(True)
            inner(torch.tensor([[2, 7, 3]]))

    hook = inner.bert.encoder.layer[1].register_forward_hook(run_again)
    record = model.record(tiny.texts[0])
    hook.remove()
    assert running
    assert torch.equal(record.weights, before.weights)


class Mine(BertForSequenceClassification):
    """A user's own class, outside transformers, with a shorter forward."""

    def forward(self, input_ids, attention_mask=None):
        return super().forward(input_ids, attention_mask=attention_mask)


def test_a_class_of_the_users_own_is_still_on_the_interface(tiny):
    parent = tiny.build("bert")
    mine = Mine(parent.config).eval()
    mine.load_state_dict(parent.state_dict())
    record = attnscope.load(mine, tokenizer=tiny.tokenizer("pair")).record(tiny.texts[0], queries_and_keys=True)
    expected = attnscope.load(parent, tokenizer=tiny.tokenizer("pair")).record(tiny.texts[0])
    torch.testing.assert_close(record.weights, expected.weights, atol=1e-6, rtol=0)
    torch.testing.assert_close(record.logits().softmax(-1), record.weights, atol=1e-6, rtol=0)
    assert "token_type_ids" not in record.inputs


def test_windows_hold_few_bytes_but_at_least_one_batch():
    sizes = [100_000_000] * 10
    assert [len(window) for window in windows(sizes, 2, lambda size: size)] == [2, 2, 2, 2, 2]
    assert [len(window) for window in windows([1] * 40, 2, lambda size: size)] == [16, 16, 8]


def test_head_means_of_a_bfloat16_model(tiny):
    inner = tiny.build("llama").to(torch.bfloat16)
    record = attnscope.load(inner, tokenizer=tiny.tokenizer("plain")).record(
        " ".join(["the key to"] * 12), heads="mean"
    )
    torch.testing.assert_close(record.weights.sum(-1), torch.ones(3, 1, 36), atol=1e-5, rtol=0)


def test_a_headless_encoder_decoder_reads_a_target_or_its_encoder(tiny):
    model = tiny.load("bart", architecture="BartModel")
    assert model.record(tiny.texts[0], stack="encoder").weights.shape[0] == 2
    assert model.record(tiny.texts[0], text_target="the dogs").query_tokens[1:] == ("the", "dogs")
    with pytest.raises(attnscope.BadInput, match="text_target="):
        model.record(tiny.texts[0])


def test_the_encoder_stack_writes_nothing(tiny, encoder_decoder):
    model = tiny.load(encoder_decoder)
    passes = []
    model.model.register_forward_hook(lambda *_: passes.append(1))
    record = model.record(tiny.texts[0], stack="encoder", verify="never")
    assert len(passes) == 1
    assert record.tokens[-1] == "</s>"


def test_outputs_written_in_batches_are_those_written_alone(tiny, encoder_decoder):
    model = tiny.load(encoder_decoder)
    for text, record in zip(tiny.texts, model.records(tiny.texts, batch_size=4), strict=True):
        assert record.query_tokens == model.record(text).query_tokens


def test_estimates_know_the_stack(tiny):
    model = tiny.load("bart")
    assert model.estimate([10], stack="encoder").record_bytes == 2 * 4 * 100 * 4
    assert model.estimate([10]).record_bytes == 3 * 4 * 100 * 4
    assert model.estimate([10]).generates
    assert "writing" in str(model.estimate([10]))
    assert model.estimate([10], heads="mean").record_bytes == 3 * 100 * 4


def test_generation_settings_of_the_user_do_no_harm(tiny):
    model = tiny.load("gpt2")
    expected = model.record_generation(tiny.texts[1], max_new_tokens=4).tokens
    model.model.generation_config.return_dict_in_generate = True
    model.model.generation_config.output_attentions = False
    assert model.record_generation(tiny.texts[1], max_new_tokens=4).tokens == expected


def test_a_language_model_reads_its_last_token_even_if_it_is_the_padding_token(tiny):
    inner = tiny.build("gpt2", pad_token_id=tiny.end)
    record = attnscope.load(inner, tokenizer=tiny.tokenizer("plain")).record("the dogs </s>")
    assert record.tokens[-1] == "</s>"
    assert record.readout.argmax() == 2


def test_electra_tells_replaced_tokens_not_words(tiny):
    record = tiny.load("electra", architecture="ElectraForPreTraining").record("the [MASK] see")
    assert record.prediction == ()


def test_a_configuration_without_return_dict(tiny):
    model = tiny.load("bert")
    model.model.config.return_dict = False
    record = model.record(tiny.texts[0])
    assert model.probabilities([record.inputs]).max().item() == pytest.approx(record.prediction[0][1], abs=1e-6)


def test_inference_mode_and_gradients(tiny):
    model = tiny.load("bert")
    expected = model.record(tiny.texts[0], gradients=True).embedding_gradients
    with torch.inference_mode():
        found = model.record(tiny.texts[0], gradients=True).embedding_gradients
    torch.testing.assert_close(found, expected)


def test_texts_that_fail_are_named(tiny):
    model = tiny.load("bert")
    with pytest.raises(attnscope.BadInput, match="Text 1: The text is empty"):
        list(model.records(["the dogs", ""]))
    with pytest.raises(attnscope.BadInput, match="Text 1 has no target"):
        list(tiny.load("bart").records(["the dogs", "the key"], text_targets=["the"]))


def test_text_is_one_string_or_a_pair(tiny):
    model = tiny.load("bert")
    assert model.record(["the", "dogs"]).text == "the dogs"
    assert model.record(("the", "dogs")).text == ("the", "dogs")


def test_a_text_of_nothing_but_special_tokens_is_refused(tiny):
    tokenizer = copy.deepcopy(tiny.tokenizer("pair"))
    tokenizer.backend_tokenizer.normalizer = normalizers.BertNormalizer()  # it takes control characters away
    with pytest.raises(attnscope.BadInput, match="no token of this text"):
        attnscope.load(tiny.build("bert"), tokenizer=tokenizer).record("\x00\x01")


def test_a_compiled_model_is_taken_as_the_model_it_wraps(tiny):
    inner = tiny.build("bert")
    compiled = SimpleNamespace(_orig_mod=inner)  # torch.compile itself warns of its own past
    model = attnscope.load.__wrapped__(compiled, tokenizer=tiny.tokenizer("pair"))
    assert model.model is inner


def test_a_broken_checkpoint_gets_one_sentence(tiny, tmp_path):
    tiny.build("bert").save_pretrained(tmp_path)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(attnscope.BadInput, match=r"cannot be loaded: .*\.$") as caught:
        attnscope.load(tmp_path)
    assert "\n" not in str(caught.value)
    with pytest.raises(attnscope.BadInput, match="no folder"):
        attnscope.load("no/such/folder/")


def test_a_head_whose_weights_are_not_in_the_file_is_not_made_up(tiny, tmp_path):
    inner = tiny.build("bert")
    inner.bert.save_pretrained(tmp_path)
    tiny.tokenizer("pair").save_pretrained(tmp_path)
    config = transformers.AutoConfig.from_pretrained(tmp_path)
    config.architectures = ["BertForMaskedLM"]  # as in the folders of some sentence encoders
    config.save_pretrained(tmp_path)
    model = attnscope.load(tmp_path)
    assert (type(model.model).__name__, model.task) == ("BertModel", "encoder")
    expected = attnscope.load(inner, tokenizer=tiny.tokenizer("pair")).record(tiny.texts[0]).weights
    assert torch.allclose(model.record(tiny.texts[0]).weights, expected, atol=1e-6)


def test_several_texts_in_a_list_are_no_words(tiny):
    with pytest.raises(attnscope.BadInput, match=r"'a text' is no word: give several texts to records.* a tuple"):
        tiny.load("bert").record(["a text", "another text"])


def test_weights_are_read_without_a_bar_and_bars_come_back(tiny, tmp_path, capfd):
    from transformers.utils import logging as chatter

    tiny.build("bert").save_pretrained(tmp_path)
    tiny.tokenizer("pair").save_pretrained(tmp_path)
    chatter.enable_progress_bar()
    attnscope.load(tmp_path)
    assert "Loading weights" not in capfd.readouterr().err
    for _ in chatter.tqdm(range(2), desc="Loading weights"):
        pass
    assert "Loading weights" in capfd.readouterr().err


@pytest.fixture
def hub(monkeypatch):
    """A hub on this machine that takes questions, and answers only when it is told to."""
    from http.server import BaseHTTPRequestHandler, HTTPServer

    from attnscope.capture import loading

    monkeypatch.setattr(loading, "is_offline_mode", lambda: False)
    monkeypatch.setattr(loading.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(loading.constants, "HF_HUB_ETAG_TIMEOUT", 1)
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        monkeypatch.setattr(
            loading, "hf_hub_url", lambda *_, **__: f"http://127.0.0.1:{server.server_port}/config.json"
        )
        yield server


def test_who_asks_the_hub_says_so_at_once(hub, monkeypatch, caplog):
    from threading import Thread

    from attnscope.capture import loading

    def refuse(*_, **__):
        raise OSError("there is no such name")

    monkeypatch.setattr(loading.AutoConfig, "from_pretrained", refuse)
    Thread(target=hub.handle_request, daemon=True).start()  # which says that it knows no such question
    with pytest.raises(attnscope.BadInput, match="there is no such name"):
        attnscope.load("bert-base-uncasd")
    assert "asking the Hugging Face hub" in caplog.text


@pytest.mark.usefixtures("hub")
def test_a_hub_that_does_not_answer_is_asked_but_once(monkeypatch):
    from attnscope.capture import loading

    monkeypatch.setattr(loading.AutoConfig, "from_pretrained", lambda *_, **__: pytest.fail("it was asked again"))
    with pytest.raises(
        attnscope.BadInput, match='no folder "bert-base-uncasd" here, and the Hugging Face hub does not'
    ):
        attnscope.load("bert-base-uncasd")
