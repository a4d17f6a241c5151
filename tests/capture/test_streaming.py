"""What `stream` shows is what a record holds, for every family, with padding, one layer at a time, leaving no trace."""

import weakref
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

import attnscope
from attnscope import InstrumentedModel
from attnscope.capture.encoding import Encoded, encode
from attnscope.capture.streaming import body_of, shape_of, stream
from attnscope.capture.watching import _configurations
from attnscope.errors import BadInput

HEADLESS = {  # the same families without a head, and with another one
    "bert": ("BertModel", "BertForMaskedLM"),
    "gpt2": ("GPT2Model", "GPT2ForSequenceClassification"),
    "llama": ("LlamaModel", "LlamaForSequenceClassification"),
    "bart": ("BartModel", "BartForSequenceClassification"),
    "t5": ("T5Model", "T5EncoderModel"),
}


def stack_of(model: InstrumentedModel) -> str:
    return "decoder" if model.stacks == ("decoder",) else "encoder"


def encoded(model: InstrumentedModel, texts: list[str]) -> list[Encoded]:
    return [encode(model.tokenizer, text, None) for text in texts]


def shown(model: InstrumentedModel, texts: list[str], stack: str | None = None) -> list[Tensor]:
    """The weights of each layer, in the order in which they came."""
    layers: dict[int, Tensor] = {}

    def show(layer: int, weights: Tensor) -> None:
        assert layer == len(layers)
        layers[layer] = weights.clone()

    stream(body_of(model.reader), encoded(model, texts), stack or stack_of(model), show)
    return list(layers.values())


def assert_as_recorded(model: InstrumentedModel, texts: list[str]) -> None:
    layers = shown(model, texts)
    for place, text in enumerate(texts):
        expected = model.record(text, stack=stack_of(model)).weights
        assert len(layers) == len(expected)
        length = expected.shape[-1]
        found = torch.stack([weights[place, :, :length, :length] for weights in layers])
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
        beyond = torch.stack([weights[place, :, :length, length:] for weights in layers])
        assert beyond.abs().max() <= 1e-6 if beyond.numel() else True  # nobody looks at padding


def traces(model: torch.nn.Module) -> list[object]:
    """All that watching touches."""
    return [
        [config._attn_implementation for config in _configurations(model)],
        [module.training for module in model.modules()],
        [(len(module._forward_hooks), len(module._forward_pre_hooks)) for module in model.modules()],
    ]


def test_every_family_shows_what_its_records_hold(family: str, tiny: SimpleNamespace) -> None:
    model = tiny.load(family)
    lengths = {len(one) for one in encoded(model, tiny.texts)}
    assert len(lengths) > 2  # so the batch is padded
    assert_as_recorded(model, tiny.texts)


@pytest.mark.parametrize(
    ("family", "architecture"), [(family, kind) for family, kinds in HEADLESS.items() for kind in kinds]
)
def test_the_head_on_top_makes_no_difference(family: str, architecture: str, tiny: SimpleNamespace) -> None:
    model = tiny.load(family, architecture=architecture)
    assert_as_recorded(model, tiny.texts)
    assert torch.equal(shown(model, tiny.texts)[-1], shown(tiny.load(family, "eager", architecture), tiny.texts)[-1])


@pytest.mark.parametrize("family", ["mistral", "gemma2"])
def test_attention_that_is_not_a_number_is_told(family: str, tiny: SimpleNamespace) -> None:
    model = tiny.load(family)
    model.model.double()  # its mask is then endless in float32, in which softmax is taken
    with pytest.raises(BadInput, match=r"in layer 1 is not a number: load the model in float32"):
        shown(model, tiny.texts)
    assert len(shown(model, tiny.texts[:1])) > 1  # without padding all is well


def test_the_head_is_not_run(tiny: SimpleNamespace) -> None:
    model = tiny.load("bert")
    model.model.classifier.register_forward_hook(lambda *_: pytest.fail("The classifier ran."))
    assert len(shown(model, tiny.texts)) == 3


def test_train_mode_changes_nothing_and_is_given_back(family: str, tiny: SimpleNamespace) -> None:
    model = tiny.load(family)
    calm = shown(model, tiny.texts)
    model.model.train()
    before = traces(model.model)
    torch.manual_seed(5)
    lively = shown(model, tiny.texts)
    drawn = torch.rand(3)
    torch.manual_seed(5)
    assert torch.equal(drawn, torch.rand(3))  # no random number was used up
    assert traces(model.model) == before
    assert all(torch.equal(one, other) for one, other in zip(calm, lively, strict=True))


def test_an_error_while_showing_leaves_no_trace(family: str, tiny: SimpleNamespace) -> None:
    model = tiny.load(family)
    model.model.train()
    before = traces(model.model)

    def show(layer: int, weights: Tensor) -> None:
        if layer == 1:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        stream(body_of(model.reader), encoded(model, tiny.texts), stack_of(model), show)
    assert traces(model.model) == before
    assert_as_recorded(model, tiny.texts[:2])


def test_on_the_interface_one_layer_is_alive_at_a_time(on_interface: str, tiny: SimpleNamespace) -> None:
    model = tiny.load(on_interface)
    storages: list[weakref.ref[torch.UntypedStorage]] = []

    def show(layer: int, weights: Tensor) -> None:
        # the storage, because a view may die while what it looks at lives on
        assert [storage() for storage in storages] == [None] * layer
        storages.append(weakref.ref(weights.untyped_storage()))

    stream(body_of(model.reader), encoded(model, tiny.texts), stack_of(model), show)
    assert len(storages) > 1
    assert [storage() for storage in storages] == [None] * len(storages)


def test_off_the_interface_too(off_interface: str, tiny: SimpleNamespace) -> None:
    model = tiny.load(off_interface)
    storages: list[weakref.ref[torch.UntypedStorage]] = []

    def show(layer: int, weights: Tensor) -> None:
        assert [storage() for storage in storages] == [None] * layer
        storages.append(weakref.ref(weights.untyped_storage()))

    stream(body_of(model.reader), encoded(model, tiny.texts), stack_of(model), show)
    assert len(storages) == 3
    assert [storage() for storage in storages] == [None] * 3


def test_layers_shown_one_by_one_are_those_of_the_record(tiny: SimpleNamespace) -> None:
    for family in ("bert", "bloom", "deberta_v2", "t5"):
        model = tiny.load(family)
        shown_layers: dict[int, Tensor] = {}
        model.stream(tiny.texts[0], lambda layer, weights, kept=shown_layers: kept.update({layer: weights.clone()}))
        record = model.record(tiny.texts[0])
        assert list(shown_layers) == [0, 1, 2]
        torch.testing.assert_close(torch.stack(list(shown_layers.values())), record.weights, atol=1e-6, rtol=0)
    with pytest.raises(attnscope.BadInput, match="no cross stack"):
        tiny.load("bert").stream(tiny.texts[0], print, stack="cross")


def test_no_gradient_is_prepared(tiny: SimpleNamespace) -> None:
    model = tiny.load("llama")
    graphs = []
    stream(
        body_of(model.reader),
        encoded(model, tiny.texts),
        "decoder",
        lambda _, weights: graphs.append(weights.requires_grad),
    )
    assert graphs == [False] * 3


def test_the_decoder_above_an_encoder_is_asked_for_one_step_only(encoder_decoder: str, tiny: SimpleNamespace) -> None:
    model = tiny.load(encoder_decoder)
    lengths = []
    decoder = model.model.get_decoder()
    decoder.register_forward_pre_hook(
        lambda _, __, inputs: lengths.append(inputs["input_ids"].shape[1]), with_kwargs=True
    )
    shown(model, tiny.texts)
    assert set(lengths) == {1}


def test_the_shape_is_that_of_the_records(family: str, tiny: SimpleNamespace) -> None:
    model = tiny.load(family)
    weights = model.record("the key", stack=stack_of(model)).weights
    shape = shape_of(body_of(model.reader), stack_of(model))
    assert (shape.layers, shape.heads) == tuple(weights.shape[:2])
    assert shape.causal == (stack_of(model) == "decoder")


def test_a_stack_that_is_not_there_is_named(tiny: SimpleNamespace) -> None:
    with pytest.raises(BadInput, match=r"^BertModel shows no attention weights in its decoder stack"):
        shown(tiny.load("bert"), tiny.texts, "decoder")


def test_attention_that_is_no_whole_matrix_is_refused(tiny: SimpleNamespace) -> None:
    """A stand-in for local, pooled and sparse attention: fewer keys than tokens."""
    model = tiny.load("gptj")

    def pooled(_: torch.nn.Module, __: object, output: Any) -> Any:
        if output.attentions is not None:
            output.attentions = tuple(weights[..., :2] for weights in output.attentions)
        return output

    model.model.base_model.register_forward_hook(pooled)
    with pytest.raises(BadInput, match=r"^The attention of GPTJModel is not a whole query x key matrix .* surveyed\.$"):
        shown(model, tiny.texts)


def test_learned_sinks_are_refused(tiny: SimpleNamespace) -> None:
    model = attnscope.load(tiny.gpt_oss(), tokenizer=tiny.tokenizer("plain"))
    with pytest.raises(BadInput, match=r"^GptOssModel has learned sinks .* so shares of its attention mean nothing\.$"):
        shown(model, tiny.texts)
