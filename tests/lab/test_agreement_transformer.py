"""The agreement model is what its docstring says, and gives records like any model."""

import json
import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

import attnscope
from attnscope.errors import BadInput
from attnscope.lab.models import AgreementTransformer
from attnscope.lab.vocabulary import Vocabulary

WORDS = Vocabulary("the key keys to cabinet cabinets of old men near".split())
TEXTS = ["the key to the cabinets", "men", "the keys of the old men near the cabinet"]


@pytest.fixture
def model() -> AgreementTransformer:
    torch.manual_seed(0)
    made = AgreementTransformer(WORDS, layers=3, heads=4, width=32)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return made


def norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight + bias


def by_hand(model: AgreementTransformer, words: list[str]) -> tuple[Tensor, Tensor]:
    """The weights [layer, head, query, key] and the logits, by loops over the state dict alone."""
    state = {name: tensor.double() for name, tensor in model.state_dict().items()}
    ids = [WORDS.number("cls"), *WORDS.encode(words), WORDS.number("eos")]
    x = state["words.weight"][ids] + state["positions.weight"][: len(ids)]
    heads, width = model.settings.heads, model.settings.width // model.settings.heads
    layers = []
    for layer in range(model.settings.layers):
        of = {name.removeprefix(f"blocks.{layer}."): tensor for name, tensor in state.items()}
        start = norm(x, of["attention_norm.weight"], of["attention_norm.bias"])
        joined = start @ of["attention.queries_keys_values.weight"].T + of["attention.queries_keys_values.bias"]
        q, k, v = joined.chunk(3, dim=-1)
        maps, gathered = torch.zeros(heads, len(ids), len(ids), dtype=torch.double), torch.zeros_like(x)
        for head in range(heads):
            part = slice(head * width, (head + 1) * width)
            for query in range(len(ids)):
                scores = [math.exp(q[query, part] @ k[key, part] / math.sqrt(width)) for key in range(len(ids))]
                maps[head, query] = torch.tensor(scores, dtype=torch.double) / sum(scores)
            gathered[:, part] = maps[head] @ v[:, part]
        layers.append(maps)
        x = x + gathered @ of["attention.projection.weight"].T + of["attention.projection.bias"]
        inner = norm(x, of["feed_forward_norm.weight"], of["feed_forward_norm.bias"])
        inner = inner @ of["feed_forward.0.weight"].T + of["feed_forward.0.bias"]
        inner = 0.5 * inner * (1 + torch.tanh(math.sqrt(2 / math.pi) * (inner + 0.044715 * inner**3)))
        x = x + inner @ of["feed_forward.2.weight"].T + of["feed_forward.2.bias"]
    read = norm(x[0], state["norm.weight"], state["norm.bias"])
    return torch.stack(layers), read @ state["classifier.weight"].T + state["classifier.bias"]


@pytest.mark.parametrize("text", TEXTS)
def test_attention_and_answer_are_those_worked_out_by_hand(model: AgreementTransformer, text: str) -> None:
    weights, logits = by_hand(model, text.split())
    record = model.instrumented().record(text)
    torch.testing.assert_close(record.weights, weights.float(), atol=1e-5, rtol=0)
    assert record.tokens == ("[CLS]", *text.split(), "[EOS]")
    assert record.special == (True, *[False] * len(text.split()), True)
    assert record.readout.tolist() == [1.0, *[0.0] * (len(record.tokens) - 1)]
    assert dict(record.prediction)["plural"] == pytest.approx(logits.softmax(-1)[1].item(), abs=1e-5)


def test_padding_does_not_change_a_record(model: AgreementTransformer) -> None:
    reads = model.instrumented()
    for text, batched in zip(TEXTS, reads.records(TEXTS, batch_size=3, gradients=True), strict=True):
        alone = reads.record(text, gradients=True)
        torch.testing.assert_close(batched.weights, alone.weights, atol=1e-6, rtol=0)
        torch.testing.assert_close(batched.embedding_gradients, alone.embedding_gradients, atol=1e-5, rtol=1e-3)
        torch.testing.assert_close(batched.attention_gradients, alone.attention_gradients, atol=1e-5, rtol=1e-3)


def test_gradients_are_those_of_autograd_by_hand(model: AgreementTransformer) -> None:
    record = model.instrumented().record(TEXTS[0], gradients=True, target="singular", quantity="difference")
    model.eval()
    ids = model.batch([TEXTS[0].split()])["input_ids"]
    start = (model.words(ids) + model.positions(torch.arange(ids.shape[1]))).detach().requires_grad_()
    hidden = start
    for block in model.blocks:
        hidden = block(hidden, torch.ones_like(ids).bool())
    singular, plural = model.classifier(model.norm(hidden)[:, 0])[0].softmax(-1)
    (expected,) = torch.autograd.grad(singular - plural, start)
    torch.testing.assert_close(record.embedding_gradients, expected[0], atol=1e-6, rtol=1e-4)
    torch.testing.assert_close(attnscope.gradient(record).scores, expected[0].norm(dim=-1), atol=1e-6, rtol=1e-4)
    # every way to the answer leads through a LayerNorm, which takes out what the paper adds up over dimensions
    assert attnscope.gradient(record, reduce="abs_sum").warnings


def test_every_method_and_trust_run_on_it(model: AgreementTransformer) -> None:
    reads = model.instrumented()
    record = reads.record(TEXTS[0])
    scores = attnscope.blank_out(record, reads).scores
    blanked = ["the", "[UNK]", "to", "the", "cabinets"]
    before, after = (dict(reads.record(words).prediction) for words in (TEXTS[0], blanked))
    label = record.prediction[0][0]
    assert scores[2].item() == pytest.approx(abs(before[label] - after[label]), abs=1e-6)
    for method in (attnscope.flow, attnscope.rollout, attnscope.raw):
        assert method(record).scores.sum().item() > 0
    table = attnscope.trust(reads, TEXTS, methods=["raw", "rollout", "flow"]).table
    assert {"raw", "rollout", "flow"} <= set(table["method"])


def test_an_unknown_word_is_shown_and_read_as_unknown(model: AgreementTransformer) -> None:
    record = model.instrumented().record("the xylophones")
    assert record.tokens[2] == "xylophones"
    assert record.inputs["input_ids"].tolist()[2] == WORDS.number("unk")


def test_first_weights_and_sizes_are_those_of_the_paper() -> None:
    torch.manual_seed(0)
    model = AgreementTransformer(Vocabulary([f"w{number}" for number in range(2000)]))
    assert len(model.blocks) == 6
    assert model.blocks[0].attention.heads == 8
    assert model.words.weight.shape == (2004, 128)
    assert model.words.weight.abs().max() <= 0.1
    # cut at two deviations, a normal of .05 has a spread of .044
    assert model.words.weight.std().item() == pytest.approx(0.05 * 0.8796, rel=0.01)
    dropouts = (model.dropout.p, model.blocks[0].attention.dropout.p, model.blocks[0].dropout.p)
    assert dropouts == (0.2, 0.6, 0.4)


def test_what_is_saved_is_loaded(model: AgreementTransformer, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    again = AgreementTransformer.load(tmp_path / "model")
    assert again.settings == model.settings
    assert again.vocabulary == WORDS
    assert not again.training
    for name, tensor in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor), name
    first, second = (reads.instrumented().record(TEXTS[0]) for reads in (model, again))
    assert torch.equal(first.weights, second.weights)


def test_what_is_wrong_is_told(model: AgreementTransformer, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be shared by 3 heads"):
        AgreementTransformer(WORDS, heads=3)
    with pytest.raises(BadInput, match="reads at most 64"):
        model.instrumented().record("key " * 63)
    with pytest.raises(BadInput, match="empty"):
        model.instrumented().record(" ")
    with pytest.raises(BadInput, match="holds no model of the lab"):
        AgreementTransformer.load(tmp_path)
    folder = model.save(tmp_path / "model")
    with pytest.raises(BadInput, match="holds a model of the lab, which is loaded as it was trained: leave device out"):
        attnscope.load(folder, device="cpu")
    (folder / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(BadInput, match="cannot be read"):
        AgreementTransformer.load(folder)
    settings = json.loads((folder / "lab_model.json").read_text())
    (folder / "lab_model.json").write_text(json.dumps(settings | {"settings": {"colour": 1}}))
    with pytest.raises(BadInput, match="are not those of AgreementTransformer"):
        AgreementTransformer.load(folder)
    (folder / "lab_model.json").write_text(json.dumps(settings | {"model": "Other"}))
    for load in (AgreementTransformer.load, attnscope.load):
        with pytest.raises(BadInput, match="of the class Other"):
            load(folder)
