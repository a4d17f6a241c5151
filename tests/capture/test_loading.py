"""Folders that are incomplete, broken or hostile: a model is loaded whole, or refused in one sentence."""

import json
import logging
import pickle
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

import attnscope


@pytest.fixture(scope="module")
def classifier(tiny, tmp_path_factory):
    """A whole folder of a tiny BERT classifier, to be copied and broken."""
    return _saved(tiny, "bert", "pair", tmp_path_factory.mktemp("whole"))


@pytest.fixture
def folder(classifier, tmp_path):
    """A copy of it."""
    for file in classifier.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def _saved(tiny, family, kind, folder, **changes):
    tiny.build(family, **changes).save_pretrained(folder)
    tiny.tokenizer(kind).save_pretrained(folder)
    return folder


def _configure(folder: Path, **changes):
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def _rename_weights(folder: Path, rename):
    """Give each weight another name; None leaves it out."""
    named = {rename(name): weight for name, weight in load_file(folder / "model.safetensors").items()}
    named.pop(None, None)
    save_file(named, folder / "model.safetensors", metadata={"format": "pt"})


def _refusal(folder, **options) -> str:
    with pytest.raises(attnscope.BadInput) as caught:
        attnscope.load(folder, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# ---- missing weights


def test_a_missing_layer_is_refused_and_named(folder):
    _rename_weights(folder, lambda name: None if ".layer.1." in name else name)
    sentence = _refusal(folder)
    assert "lacks bert.encoder.layer.1." in sentence
    assert "13 more weights of BertForSequenceClassification" in sentence


def test_a_configuration_with_more_layers_than_the_file_is_refused(folder):
    _configure(folder, num_hidden_layers=4)
    assert "lacks bert.encoder.layer.3." in _refusal(folder)


def test_a_file_with_more_layers_than_the_configuration_is_refused(folder):
    _configure(folder, num_hidden_layers=2)
    assert "more layers than its config.json says" in _refusal(folder)
    assert attnscope.load(folder, allow_missing=True).record("the dogs").weights.shape[0] == 2


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "_orig_mod.module."])
def test_names_that_a_wrapper_left_behind_are_unwrapped_and_it_is_said(folder, tiny, prefix, caplog):
    _rename_weights(folder, lambda name: prefix + name)
    with caplog.at_level(logging.WARNING, "attnscope"):
        record = attnscope.load(folder).record(tiny.texts[0])
    assert f"begin with {prefix}, which was taken off" in caplog.text
    torch.testing.assert_close(record.weights, tiny.load("bert").record(tiny.texts[0]).weights)


def test_a_head_that_is_half_there_is_refused(folder):
    _rename_weights(folder, lambda name: None if name == "classifier.bias" else name)
    assert "lacks classifier.bias of BertForSequenceClassification" in _refusal(folder)


def test_a_fresh_head_comes_only_when_it_is_asked_for(folder, caplog):
    _rename_weights(folder, lambda name: None if name.startswith("classifier") else name)
    with caplog.at_level(logging.WARNING, "attnscope"):
        assert attnscope.load(folder).task == "encoder"
    assert "predicts nothing" in caplog.text
    assert attnscope.load(folder, allow_missing=["classifier"]).task == "classifier"
    assert attnscope.load(folder, allow_missing=True).task == "classifier"
    assert "a list of how names" in _refusal(folder, allow_missing="classifier")


def test_allowing_a_head_allows_no_missing_layer(folder):
    _rename_weights(folder, lambda name: None if name.startswith("classifier") or ".layer.1." in name else name)
    assert "lacks encoder.layer.1." in _refusal(folder)
    assert "lacks bert.encoder.layer.1." in _refusal(folder, allow_missing=["classifier"])


def test_a_decoder_without_its_head_is_refused(tiny, tmp_path):
    _saved(tiny, "llama", "plain", tmp_path)
    _rename_weights(tmp_path, lambda name: None if name == "lm_head.weight" else name)
    assert "lacks lm_head.weight of LlamaForCausalLM" in _refusal(tmp_path)


@pytest.mark.parametrize("family", ["bert", "roberta", "albert", "electra", "mpnet"])
def test_an_encoder_saved_without_its_pooler_is_whole(tiny, family, tmp_path):
    inner = tiny.build(family)
    inner.base_model.save_pretrained(tmp_path)
    tiny.tokenizer("single").save_pretrained(tmp_path)
    _rename_weights(tmp_path, lambda name: None if name.startswith("pooler") else name)
    model = attnscope.load(tmp_path)
    assert model.task == "encoder"
    assert not any("pooler" in name for name, _ in model.model.named_parameters())
    expected = attnscope.load(inner, tokenizer=tiny.tokenizer("single")).record(tiny.texts[0])
    torch.testing.assert_close(model.record(tiny.texts[0]).weights, expected.weights)


def test_whole_folders_of_every_family_are_loaded_as_they_were_saved(tiny, family, tmp_path):
    inner = tiny.build(family)
    inner.save_pretrained(tmp_path)
    kind = "pair" if family in ("bert", "albert", "electra") else "single"
    tiny.tokenizer(kind).save_pretrained(tmp_path)
    loaded = attnscope.load(tmp_path).model
    assert type(loaded) is type(inner)
    for name, weight in inner.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], weight), name


def test_weights_of_other_shapes_are_refused(folder):
    _configure(folder, intermediate_size=64)
    assert "other shapes than its config.json asks for" in _refusal(folder)


def test_options_of_transformers_are_passed_on(folder, tiny):
    model = attnscope.load(folder, attn_implementation="eager")
    assert model.model.config._attn_implementation == "eager"
    assert "unexpected keyword argument 'colour'" in _refusal(folder, colour="red")
    with pytest.raises(attnscope.BadInput, match="leave device_map out"):
        attnscope.load(tiny.build("bert"), tokenizer=tiny.tokenizer("pair"), device_map="auto")


# ---- tokenizers


@pytest.mark.parametrize(
    "family",
    "bert distilbert deberta_v2 albert electra gemma2 roberta gpt2 opt qwen2 gpt_neox mpnet t5 marian".split(),
)
def test_a_folder_without_a_tokenizer_is_refused(tiny, family, tmp_path):
    tiny.build(family).save_pretrained(tmp_path)
    assert "There is no tokenizer" in _refusal(tmp_path)


def test_a_tokenizer_whose_words_are_gone_is_refused(folder, tiny):
    settings = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = settings["model"]["vocab"]
    settings["model"]["vocab"] = {word: number for word, number in vocabulary.items() if word.startswith("[")}
    (folder / "tokenizer.json").write_text(json.dumps(settings))
    assert "There is no tokenizer" in _refusal(folder)
    empty = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), unk_token="[UNK]")
    with pytest.raises(attnscope.BadInput, match="knows no words"):
        attnscope.load(tiny.build("bert"), tokenizer=empty)


def test_a_tokenizer_with_more_words_than_the_model_is_refused(tiny):
    with pytest.raises(attnscope.BadInput, match="ids up to 22 and BertForSequenceClassification embeds 20"):
        attnscope.load(tiny.build("bert", vocab_size=20), tokenizer=tiny.tokenizer("pair"))


def test_a_special_token_beyond_the_embeddings_is_refused_only_where_a_text_has_it(tiny, folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<new>"]})
    model = attnscope.load(tiny.build("bert"), tokenizer=tokenizer)
    assert len(model.record("the dogs").tokens) == 4
    for ask in (model.record, lambda text: list(model.records([text])), model.tokens, model.estimate):
        with pytest.raises(
            attnscope.BadInput, match="'<new>' of this text has the id 23, and the model embeds only 23"
        ):
            ask("the <new> dogs")


def test_an_embedding_with_rows_to_spare_is_taken(tiny):
    model = attnscope.load(tiny.build("gpt2", vocab_size=40), tokenizer=tiny.tokenizer("plain"))
    assert model.record("the dogs see").tokens == ("the", "dogs", "see")


# ---- broken and hostile folders


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, "requires optimum"),
        ({"quantization_config": [4]}, "not what transformers expects"),
        ({"id2label": ["bad", "good"]}, "not what transformers expects"),
        ({"id2label": {"bad": "0"}}, "cannot be loaded"),
        ({"dtype": "float99"}, "no attribute 'float99'"),
        ({"hidden_act": "wobble"}, "KeyError: 'wobble'"),
        ({"num_attention_heads": 0}, "ZeroDivisionError"),
        ({"num_hidden_layers": "3"}, "expected int, got str"),
        ({"max_position_embeddings": "40"}, "expected int, got str"),
        ({"pad_token_id": 1000}, "not what transformers expects"),
        ({"model_type": ["bert"]}, "not what transformers expects"),
        ({"model_type": "poem"}, "does not recognize"),
        ({"architectures": "BertModel"}, "no list of names of classes"),
        ({"architectures": [3]}, "no list of names of classes"),
        ({"architectures": ["GPT2LMHeadModel"]}, "not what transformers expects"),
        ({"auto_map": 3}, "not what transformers expects"),
    ],
)  # fmt: skip
def test_a_configuration_that_makes_no_model_gets_one_sentence(folder, changes, sentence):
    _configure(folder, **changes)
    assert sentence in _refusal(folder)


@pytest.mark.parametrize("content", ["[1]", "null", '"bert"', "", '{"a":', '{"a":' * 50_000])
def test_a_configuration_that_is_no_object_gets_one_sentence(folder, content):
    (folder / "config.json").write_text(content)
    assert "is no JSON object" in _refusal(folder)


@pytest.mark.parametrize("name", ["pipeline", "os", "BertTokenizer", "NoSuchClass"])
def test_an_unknown_class_is_read_without_its_head_and_it_is_said(folder, name, caplog):
    _configure(folder, architectures=[name])
    with caplog.at_level(logging.WARNING, "attnscope"):
        assert attnscope.load(folder).task == "encoder"
    assert f"no class '{name}'" in caplog.text


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


def test_a_pickle_is_refused_and_never_read(folder):
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Trap(folder / "sprung")))
    assert "in a pickle (.bin)" in _refusal(folder)
    assert not (folder / "sprung").exists()


@pytest.mark.parametrize(
    "index",
    ['{"metadata": {}, "weight_map": {"a": "../model.safetensors"}}', '{"weight_map": {"a": 3}}', "[]", "{", "{}"],
)
def test_a_list_of_shards_that_leaves_the_folder_is_refused(folder, index):
    (folder / "model.safetensors").rename(folder.parent / "model.safetensors")
    (folder / "model.safetensors.index.json").write_text(index)
    assert "does not list weights in files of that folder" in _refusal(folder)


def test_a_damaged_pooling_file_gets_one_sentence(folder):
    _configure(folder, architectures=["BertModel"])
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text("[1]")
    assert "does not say how the model pools" in _refusal(folder)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("x" * 100_000, "cannot be 100,000 characters long"),
        ("bad\udcff", "cannot be printed"),
        ("a\x00b", "cannot be printed"),
        ("two\nlines", "cannot be printed"),
        (__file__, "is a file"),
    ],
)
def test_names_that_are_none_get_one_sentence(name, sentence):
    assert sentence in _refusal(name)


@pytest.mark.parametrize("device", ["cuda", "cuda:7", "nowhere", "mps"])
def test_a_device_that_is_not_there_gets_one_sentence(folder, device):
    if device == "mps" or not torch.cuda.is_available():
        assert f"no device '{device}' here" in _refusal(folder, device=device)
    assert attnscope.load(folder, device="cpu").model.device.type == "cpu"


# ---- adapters


@pytest.fixture(scope="module")
def adapted(tiny, tmp_path_factory):
    """A LoRA adapter on every projection of a tiny Llama, and its folder."""
    peft = pytest.importorskip("peft")
    folder = tmp_path_factory.mktemp("lora")
    _saved(tiny, "llama", "plain", folder / "base")
    base = transformers.AutoModelForCausalLM.from_pretrained(folder / "base", dtype=torch.float32)
    settings = peft.LoraConfig(
        r=4, target_modules=["q_proj", "v_proj", "o_proj"], task_type="CAUSAL_LM", init_lora_weights=False
    )
    model = peft.get_peft_model(base, settings).eval()
    model.save_pretrained(folder / "adapter")
    return model, folder / "adapter"


def test_an_adapter_is_applied_from_its_object_and_its_folder(tiny, adapted):
    wrapped, folder = adapted
    with torch.no_grad():
        expected = wrapped(**tiny.tokenizer("plain")("the dogs see", return_tensors="pt")).logits[0, -1].softmax(-1)
    assert expected.max().item() != pytest.approx(tiny.load("llama").record("the dogs see").prediction[0][1], abs=1e-3)
    by_object = attnscope.load(wrapped, tokenizer=tiny.tokenizer("plain")).record("the dogs see")
    by_folder = attnscope.load(folder).record("the dogs see")
    assert by_object.prediction[0][1] == pytest.approx(expected.max().item(), abs=1e-6)
    assert dict(by_folder.prediction) == pytest.approx(dict(by_object.prediction))
    assert by_folder.card["model"] == "adapter"
    torch.testing.assert_close(by_folder.weights, by_object.weights, atol=1e-6, rtol=0)


def test_an_adapter_brings_its_own_classifier(tiny, tmp_path):
    peft = pytest.importorskip("peft")
    _saved(tiny, "bert", "pair", tmp_path / "base", architecture="BertModel")
    base = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "base", num_labels=3)
    settings = peft.LoraConfig(r=2, target_modules=["query"], task_type="SEQ_CLS", init_lora_weights=False)
    wrapped = peft.get_peft_model(base, settings).eval()
    wrapped.save_pretrained(tmp_path / "adapter")
    with torch.no_grad():
        expected = wrapped(**tiny.tokenizer("pair")("the dogs", return_tensors="pt")).logits[0].softmax(-1)
    found = dict(attnscope.load(tmp_path / "adapter").record("the dogs").prediction)
    assert [found[f"LABEL_{number}"] for number in range(3)] == pytest.approx(expected.tolist(), abs=1e-6)


def test_broken_adapters_get_one_sentence(adapted, tmp_path, monkeypatch):
    _, folder = adapted
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    weights = load_file(tmp_path / "adapter_model.safetensors")
    weights.pop(next(iter(weights)))
    save_file(weights, tmp_path / "adapter_model.safetensors")
    assert "which would be random numbers" in _refusal(tmp_path)
    (tmp_path / "adapter_model.safetensors").unlink()
    assert "has no adapter_model.safetensors" in _refusal(tmp_path)
    (tmp_path / "adapter_config.json").write_text("{}")
    assert "does not name the model" in _refusal(tmp_path)
    (tmp_path / "adapter_config.json").write_text("[1]")
    assert "describes no adapter" in _refusal(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "peft", None)
    assert "pip install 'attnscope[peft]'" in _refusal(folder)


def test_learned_prompts_are_refused(tiny):
    peft = pytest.importorskip("peft")
    settings = peft.PromptTuningConfig(num_virtual_tokens=3, task_type="CAUSAL_LM")
    wrapped = peft.get_peft_model(tiny.build("llama"), settings)
    with pytest.raises(attnscope.BadInput, match="learned prompts"):
        attnscope.load(wrapped, tokenizer=tiny.tokenizer("plain"))


# ---- what transformers takes is passed on


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("revision", "v1"),
        ("token", "hf_secret"),
        ("subfolder", "inner"),
        ("cache_dir", "somewhere"),
        ("local_files_only", True),
    ],
)
def test_where_files_are_is_passed_on_to_all_that_reads_files(folder, monkeypatch, option, value):
    seen = {}
    kinds = (transformers.AutoConfig, transformers.BertForSequenceClassification, transformers.AutoTokenizer)
    if option == "subfolder":
        (folder / value).mkdir()
        for file in [file for file in folder.iterdir() if file.is_file()]:
            file.rename(folder / value / file.name)
    for kind in kinds:
        plain = kind.from_pretrained

        def noted(*given, kind=kind, plain=plain, **options):
            seen[kind] = options.get(option)
            return plain(*given, **options)

        monkeypatch.setattr(kind, "from_pretrained", noted)
    assert attnscope.load(folder, **{option: value}).record("the key").tokens == ("[CLS]", "the", "key", "[SEP]")
    assert seen == dict.fromkeys(kinds, value)


def test_a_tokenizer_may_lie_above_the_subfolder_of_the_model(folder):
    (folder / "inner").mkdir()
    for name in ("config.json", "model.safetensors"):
        (folder / name).rename(folder / "inner" / name)
    assert attnscope.load(folder, subfolder="inner").task == "classifier"


@pytest.mark.parametrize("option", ["dtype", "torch_dtype"])
@pytest.mark.parametrize("value", [torch.bfloat16, "bfloat16"])
def test_dtype_is_passed_on(folder, option, value):
    assert attnscope.load(folder, **{option: value}).model.dtype == torch.bfloat16


@pytest.mark.parametrize("device_map", ["cpu", {"": "cpu"}, "auto"])
def test_device_map_is_passed_on(folder, monkeypatch, device_map):
    seen = []
    plain = transformers.BertForSequenceClassification.from_pretrained

    def noted(*given, **options):
        seen.append((options["device_map"], options["dtype"]))
        return plain(*given, **options)

    expected = attnscope.load(folder).record("the key").weights
    monkeypatch.setattr(transformers.BertForSequenceClassification, "from_pretrained", noted)
    torch.testing.assert_close(attnscope.load(folder, device_map=device_map).record("the key").weights, expected)
    assert seen == [(device_map, torch.float32 if device_map != "auto" or not torch.cuda.is_available() else "auto")]


def test_a_model_mapped_to_other_devices_keeps_the_dtype_of_its_file(folder, monkeypatch):
    seen = {}

    def noted(_name, **options):
        seen.update(options)
        raise OSError("there is no such device here")

    monkeypatch.setattr(transformers.BertForSequenceClassification, "from_pretrained", noted)
    _refusal(folder, device_map={"bert": 0, "classifier": "cpu"})
    assert seen["dtype"] == "auto"
    assert seen["device_map"] == {"bert": 0, "classifier": "cpu"}
    assert "give one." in _refusal(folder, device_map="auto", device="cpu")


def test_quantization_config_is_passed_on(folder, monkeypatch):
    seen = {}

    def noted(_name, **options):
        seen.update(options)
        raise ImportError("a library that quantises is not here")

    monkeypatch.setattr(transformers.BertForSequenceClassification, "from_pretrained", noted)
    wished = transformers.BitsAndBytesConfig(load_in_8bit=True)
    assert "quantises is not here" in _refusal(folder, quantization_config=wished)
    assert seen["quantization_config"] is wished
