"""Any torch module gives its attention, exactly, and is left as it was."""

import math
from collections.abc import Mapping

import pytest
import torch
from torch import Tensor, nn

import attnscope
from attnscope import BadInput, Tokenized
from attnscope.record import Model

WIDTH, HEADS, VOCABULARY = 16, 4, 30
TEXTS = ["the key to the cabinets", "dogs sleep", "a boy that runs sees the red dogs", "no key"]


def number(word: str) -> int:
    """The same id in every process."""
    return 2 + sum(word.encode()) % (VOCABULARY - 2)


def tokenize(text: str) -> tuple[list[str], list[int]]:
    words = text.split()
    return words, [number(word) for word in words]


def naive(x: Tensor, query: Tensor, key: Tensor, hidden: Tensor | None = None) -> Tensor:
    """softmax(Q K^T / sqrt(d)) of one text, head by head: [head, query, key]."""
    width = x.shape[-1] // HEADS
    maps = []
    for head in range(HEADS):
        part = slice(head * width, (head + 1) * width)
        scores = (query[:, part] @ key[:, part].T) / math.sqrt(width)
        if hidden is not None:
            scores = scores.masked_fill(hidden, -torch.inf)
        maps.append(scores.exp() / scores.exp().sum(-1, keepdim=True))
    return torch.stack(maps)


def naive_multihead(attention: nn.MultiheadAttention, x: Tensor, hidden: Tensor | None = None) -> Tensor:
    query, key, _ = (x @ attention.in_proj_weight.T + attention.in_proj_bias).chunk(3, dim=-1)
    return naive(x, query, key, hidden)


class Single(nn.Module):
    """One nn.MultiheadAttention, asked for no weights, and a head."""

    def __init__(self, batch_first: bool = True) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, dropout=0.3, batch_first=batch_first)
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, ids: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        x = self.words(ids)
        x = x if self.attention.batch_first else x.transpose(0, 1)
        attended, weights = self.attention(x, x, x, key_padding_mask=key_padding_mask, need_weights=False)
        assert weights is None, "who asks for no weights gets none"
        attended = attended if self.attention.batch_first else attended.transpose(0, 1)
        return self.head(attended[:, 0])


class Encoder(nn.Module):
    """nn.TransformerEncoder of three layers."""

    def __init__(self, batch_first: bool, norm_first: bool, causal: bool = False) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        layer = nn.TransformerEncoderLayer(
            WIDTH, HEADS, 32, dropout=0.2, batch_first=batch_first, norm_first=norm_first
        )
        self.encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=batch_first and not norm_first)
        for parameter in self.encoder.parameters():
            nn.init.normal_(parameter, std=0.4)
        self.head = nn.Linear(WIDTH, 3)
        self.batch_first, self.causal = batch_first, causal

    def forward(self, input_ids: Tensor, src_key_padding_mask: Tensor | None = None) -> dict[str, Tensor]:
        x = self.words(input_ids)
        x = x if self.batch_first else x.transpose(0, 1)
        ahead = nn.Transformer.generate_square_subsequent_mask(input_ids.shape[1]).isinf() if self.causal else None
        hidden = self.encoder(x, mask=ahead, src_key_padding_mask=src_key_padding_mask)
        hidden = hidden if self.batch_first else hidden.transpose(0, 1)
        return {"logits": self.head(hidden[:, 0])}

    def by_hand(self, ids: Tensor) -> list[Tensor]:
        """The weights of each layer, with every layer's own outputs worked out again."""
        x, maps = self.words(ids), []
        hidden = torch.ones(len(ids), len(ids)).triu(1).bool() if self.causal else None
        for layer in self.encoder.layers:
            attention = layer.self_attn
            start = layer.norm1(x) if layer.norm_first else x
            weights = naive_multihead(attention, start, hidden)
            value = (start @ attention.in_proj_weight.T + attention.in_proj_bias).chunk(3, dim=-1)[2]
            joined = torch.cat([weights[head] @ part for head, part in enumerate(value.chunk(HEADS, dim=-1))], dim=-1)
            x = x + attention.out_proj(joined)
            x = x if layer.norm_first else layer.norm1(x)
            middle = layer.norm2(x) if layer.norm_first else x
            x = x + layer.linear2(layer.linear1(middle).relu())
            x = x if layer.norm_first else layer.norm2(x)
            maps.append(weights)
        return maps


class OwnAttention(nn.Module):
    """Hand-written attention that returns its weights beside its output, and keeps them."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.dropout = nn.Dropout(0.5)

    def forward(self, x: Tensor, real: Tensor) -> dict[str, Tensor]:
        query, key, value = (
            part(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(-1, -2) / math.sqrt(WIDTH // HEADS)
        weights = scores.masked_fill(~real[:, None, None].bool(), -torch.inf).softmax(-1)
        self.kept = weights
        return {"output": (self.dropout(weights) @ value).transpose(1, 2).flatten(2), "map": weights}


class Own(nn.Module):
    """Two layers of hand-written attention."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.words, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(40, WIDTH)
        self.layers = nn.ModuleList([OwnAttention(), OwnAttention()])
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, ids: Tensor, attention_mask: Tensor) -> Tensor:
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        for layer in self.layers:
            x = x + layer(x, attention_mask)["output"]
        return self.head(x[:, 0])

    def by_hand(self, ids: Tensor) -> list[Tensor]:
        x, maps = self.words(ids) + self.places(torch.arange(len(ids))), []
        for layer in self.layers:
            weights = naive(x, layer.query(x), layer.key(x))
            parts = layer.value(x).chunk(HEADS, dim=-1)
            x = x + torch.cat([weights[head] @ part for head, part in enumerate(parts)], dim=-1)
            maps.append(weights)
        return maps


def ids_of(text: str) -> Tensor:
    return torch.tensor(tokenize(text)[1])


@pytest.mark.parametrize("batch_first", [True, False])
def test_multihead_attention_is_exact_and_its_caller_gets_what_it_asked_for(batch_first):
    module = Single(batch_first)
    model = attnscope.instrument(module, tokenize=tokenize)
    record = model.record(TEXTS[0])
    expected = naive_multihead(module.attention, module.words(ids_of(TEXTS[0]))).detach()
    torch.testing.assert_close(record.weights, expected[None], atol=1e-6, rtol=0)
    assert record.tokens == tuple(TEXTS[0].split())
    assert record.stack == "encoder"
    module.eval()
    logits = module(ids_of(TEXTS[0])[None])[0]
    assert record.prediction[0][1] == pytest.approx(logits.softmax(-1).max().item(), abs=1e-6)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("attention", [None, "encoder", nn.TransformerEncoder, nn.MultiheadAttention])
def test_transformer_encoder_is_exact(batch_first, norm_first, attention):
    module = Encoder(batch_first, norm_first)
    model = attnscope.instrument(module, tokenize=tokenize, attention=attention, readout="first")
    for text, record in zip(TEXTS, model.records(TEXTS, batch_size=3), strict=True):
        expected = torch.stack(module.eval().by_hand(ids_of(text))).detach()
        torch.testing.assert_close(record.weights, expected, atol=1e-5, rtol=0)
        assert record.readout.tolist() == [1.0] + [0.0] * (len(record.tokens) - 1)


def test_causal_attention_of_an_encoder_is_seen_and_read_at_its_end():
    module = Encoder(batch_first=True, norm_first=True, causal=True)
    record = attnscope.instrument(module, tokenize=tokenize).record(TEXTS[2])
    assert record.causal
    assert record.stack == "decoder"
    assert record.readout[-1] == 1
    torch.testing.assert_close(
        record.weights, torch.stack(module.eval().by_hand(ids_of(TEXTS[2]))).detach(), atol=1e-5, rtol=0
    )


def by_function(module: Own, inputs: Mapping[str, Tensor]) -> list[Tensor]:
    assert set(inputs) == {"input_ids", "attention_mask"}
    module(inputs["input_ids"], inputs["attention_mask"])
    return [layer.kept for layer in module.layers]


@pytest.mark.parametrize(
    "attention",
    [["layers.0", "layers.1"], OwnAttention, ["layers.0.kept", "layers.1.kept"], by_function],
    ids=["names", "class", "attributes", "function"],
)
def test_hand_written_attention_is_exact_in_every_way_to_name_it(attention):
    module = Own()
    model = attnscope.instrument(module, tokenize=tokenize, attention=attention, embeddings="words")
    for text, record in zip(TEXTS, model.records(TEXTS, batch_size=4), strict=True):
        expected = torch.stack(module.by_hand(ids_of(text))).detach()
        torch.testing.assert_close(record.weights, expected, atol=1e-6, rtol=0)


def models():
    yield "single", attnscope.instrument(Single(), tokenize=tokenize, blanks={"unk": 1})
    yield "encoder", attnscope.instrument(Encoder(True, False), tokenize=tokenize, blanks={"unk": 1})
    own = dict(tokenize=tokenize, attention=OwnAttention, embeddings="words", blanks={"unk": 1})
    yield "own", attnscope.instrument(Own(), **own)


@pytest.mark.parametrize(("name", "model"), list(models()))
def test_padding_changes_nothing(name, model):
    for text, batched in zip(TEXTS, model.records(TEXTS, batch_size=4, gradients=True), strict=True):
        alone = model.record(text, gradients=True)
        torch.testing.assert_close(batched.weights, alone.weights, atol=1e-6, rtol=0)
        torch.testing.assert_close(batched.embedding_gradients, alone.embedding_gradients, atol=1e-5, rtol=1e-4)
        assert batched.prediction[0][1] == pytest.approx(alone.prediction[0][1], abs=1e-6)


@pytest.mark.parametrize(("name", "model"), list(models()))
@pytest.mark.parametrize("quantity", ["logit", "probability", "difference"])
def test_gradients_are_those_of_autograd(name, model, quantity):
    record = model.record(TEXTS[0], gradients=True, target=1, quantity=quantity)
    module = model.model.eval()
    embeddings = module.words(ids_of(TEXTS[0])[None]).detach().requires_grad_()
    handle = module.words.register_forward_hook(lambda *_: embeddings)
    mask = {"attention_mask": torch.ones(1, 5)} if name == "own" else {}
    logits = module(ids_of(TEXTS[0])[None], **mask)
    handle.remove()
    logits = (logits["logits"] if isinstance(logits, dict) else logits)[0]
    values = logits if quantity == "logit" else logits.softmax(-1)
    others = [value for index, value in enumerate(values) if index != 1]
    value = values[1] - max(others) if quantity == "difference" else values[1]
    (expected,) = torch.autograd.grad(value, embeddings)
    torch.testing.assert_close(record.embedding_gradients, expected[0], atol=1e-6, rtol=1e-4)
    summed = attnscope.gradient(record, reduce="abs_sum").scores
    torch.testing.assert_close(summed, expected[0].sum(-1).abs(), atol=1e-6, rtol=1e-3)


@pytest.mark.parametrize(("name", "model"), list(models()))
def test_gradients_at_the_weights_are_those_of_a_small_change(name, model):
    """The weights are scaled where the module computes them, and the answer follows the gradient."""
    record = model.record(TEXTS[0], gradients=True, target=1)
    assert record.attention_gradients is not None
    assert record.attention_gradients.abs().max() > 1e-4
    if name != "own":
        return
    module, step = model.model.double().eval(), 1e-6
    layer = module.layers[1]
    ids, mask = ids_of(TEXTS[0])[None], torch.ones(1, 5)
    softmax = Tensor.softmax

    def nudged(scores, dim):
        weights = softmax(scores, dim).clone()
        weights[0, 2, 0, 3] += step
        return weights

    before = module(ids, mask)[0, 1]
    forward = layer.forward
    layer.forward = lambda x, real: _with(nudged, forward, x, real)
    after = module(ids, mask)[0, 1]
    del layer.forward
    module.float()
    assert record.attention_gradients[1, 2, 0, 3].item() == pytest.approx(((after - before) / step).item(), rel=1e-3)


def _with(softmax, forward, *given):
    own = Tensor.softmax
    Tensor.softmax = softmax
    try:
        return forward(*given)
    finally:
        Tensor.softmax = own


@pytest.mark.parametrize(("name", "model"), list(models()))
def test_methods_that_run_the_model_again(name, model):
    assert isinstance(model, Model)
    record = model.record(TEXTS[0], gradients=True)
    found = attnscope.blank_out(record, model, signed=True).scores
    for position in range(5):
        _, ids = tokenize(TEXTS[0])
        ids[position] = 1
        blanked = model.probabilities([{"input_ids": torch.tensor(ids)}])[0]
        whole = model.probabilities([record.inputs])[0]
        outcome = int(whole.argmax())
        assert found[position].item() == pytest.approx((whole[outcome] - blanked[outcome]).item(), abs=1e-6)
    deleted = attnscope.blank_out(record, model, replacement="delete").scores
    assert len(deleted) == 5
    way = attnscope.integrated_gradients(record, model, baseline="unk", signed=True).scores.sum()
    blanks = torch.ones(5, dtype=torch.long)
    values = [
        model.target_gradients([model.embedded({"input_ids": ids})], record.target)[0]
        for ids in (ids_of(TEXTS[0]), blanks)
    ]
    assert way.item() == pytest.approx((values[0] - values[1]).item(), rel=0.02, abs=1e-3)
    for method in (attnscope.rollout, attnscope.flow, attnscope.gradient_rollout):
        assert len(method(record).scores) == 5


def test_trust_takes_a_torch_module():
    model = attnscope.instrument(
        Own(), tokenize=tokenize, attention=OwnAttention, embeddings="words", blanks={"unk": 1}
    )
    trust = attnscope.trust(model, TEXTS[:3], methods=["raw", "rollout"])
    assert {"raw", "rollout"} <= set(trust.table["method"])


def test_the_module_is_left_as_it_was():
    module = Encoder(True, False)
    module.train()
    module.head.eval()
    torch.manual_seed(5)
    before = torch.get_rng_state()
    fused = torch.backends.mha.get_fastpath_enabled()
    model = attnscope.instrument(module, tokenize=tokenize)
    model.record(TEXTS[0], gradients=True)
    with pytest.raises(BadInput):
        model.record(TEXTS[0], gradients=True, target="nothing")
    assert torch.equal(torch.get_rng_state(), before)
    assert module.training
    assert not module.head.training
    assert torch.backends.mha.get_fastpath_enabled() is fused
    for part in module.modules():
        assert not part._forward_hooks
        assert not part._forward_pre_hooks


def test_without_a_mask_only_texts_of_equal_length_run_together():
    sizes = []

    class Bare(Single):
        def forward(self, ids: Tensor) -> Tensor:
            sizes.append(tuple(ids.shape))
            return super().forward(ids)

    model = attnscope.instrument(Bare(), tokenize=tokenize)
    records = list(model.records([*TEXTS, "dogs bark"], batch_size=4))
    assert [record.text for record in records] == [*TEXTS, "dogs bark"]
    assert sorted(sizes) == [(1, 5), (1, 8), (3, 2)]


def test_a_mask_that_tokenize_brings_also_hides_padding():
    module = Single()

    def masked(text: str) -> tuple[list[str], dict[str, list]]:
        words, ids = tokenize(text)
        return words, {"input_ids": ids, "key_padding_mask": [False] * len(words)}

    own, brought = (attnscope.instrument(module, tokenize=way) for way in (tokenize, masked))
    for expected, record in zip(own.records(TEXTS), brought.records(TEXTS), strict=True):
        torch.testing.assert_close(record.weights, expected.weights, atol=1e-6, rtol=0)
        assert record.prediction[0][1] == pytest.approx(expected.prediction[0][1], abs=1e-6)


def test_one_query_that_pools_a_text_gives_a_cross_record():
    class Pooling(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(3)
            self.words = nn.Embedding(VOCABULARY, WIDTH)
            self.query = nn.Parameter(torch.randn(WIDTH))
            self.head = nn.Linear(WIDTH, 2)

        def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
            x = self.words(ids)
            weights = (x @ self.query).softmax(-1).unsqueeze(1)
            return self.head((weights @ x)[:, 0]), weights

    module = Pooling()

    def told(text: str) -> Tokenized:
        words, ids = tokenize(text)
        return Tokenized(words, ids, query_tokens=["the query"])

    record = attnscope.instrument(module, tokenize=told, attention="").record(TEXTS[0], gradients=True)
    assert record.stack == "cross"
    assert record.query_tokens == ("the query",)
    expected = (module.words(ids_of(TEXTS[0])) @ module.query).softmax(-1)
    torch.testing.assert_close(record.weights[0, 0, 0], expected.detach())


def test_float_inputs_and_a_module_without_an_answer():
    torch.manual_seed(4)
    module = nn.TransformerEncoder(nn.TransformerEncoderLayer(WIDTH, HEADS, 32, batch_first=True), 2)
    vectors = torch.randn(6, WIDTH)
    model = attnscope.instrument(module, tokenize=lambda text: (text.split(), {"src": vectors[: len(text.split())]}))
    record = model.record("a b c d")
    assert record.prediction == ()
    assert not record.inputs
    expected = naive_multihead(module.layers[0].self_attn, vectors[:4]).detach()
    torch.testing.assert_close(record.weights[0], expected, atol=1e-6, rtol=0)
    with pytest.raises(BadInput, match="does not hold what the model was given"):
        attnscope.blank_out(record, model)


class Silent(nn.Module):
    """Attends nowhere; returns scores that are no weights."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.unused = nn.Embedding(VOCABULARY, WIDTH), nn.MultiheadAttention(WIDTH, HEADS)
        self.scores = nn.Bilinear(WIDTH, WIDTH, 1)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids)
        self.kept = x @ x.transpose(1, 2)
        return self.kept


@pytest.mark.parametrize(
    ("attention", "sentence"),
    [
        (None, "No attention of Silent was captured: it never called unused"),
        ("attend", "Silent has no submodule 'attend'"),
        ("layers.0.attention", "Silent has no submodule 'layers.0.attention'"),
        ("words.kept", "'words.kept' is no submodule, and Embedding keeps no tensor of that name"),
        ("words", "returns no tensor with rows that sum to one"),
        (nn.LSTM, "no submodule of the class LSTM"),
        ([], "names of submodules, a class of them, or a function"),
        (lambda module, inputs: [torch.eye(3)], r"\[batch, head, query, key\] or \[batch, query, key\], not \(3, 3\)"),
        (lambda module, inputs: [torch.ones(1, 5, 5)], "sums to 5.0000, not to one"),
        (lambda module, inputs: [torch.ones(1, 5, 6)], "does not fit 1 texts of 5 queries and 5 keys"),
        (lambda module, inputs: torch.ones(1, 5, 5), "must return a list"),
        (lambda module, inputs: [], "the function gave none"),
    ],
)
def test_what_goes_wrong_is_one_sentence(attention, sentence):
    with pytest.raises(BadInput, match=sentence) as caught:
        attnscope.instrument(Silent(), tokenize=tokenize, attention=attention).record(TEXTS[0])
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_more_that_goes_wrong_is_one_sentence(tiny):
    with pytest.raises(BadInput, match="is a Hugging Face model"):
        attnscope.instrument(tiny.build("bert"), tokenize=tokenize)
    with pytest.raises(BadInput, match="say as attention= which submodules attend"):
        attnscope.instrument(nn.Linear(2, 2), tokenize=tokenize)
    with pytest.raises(BadInput, match="takes no mask: it takes ids, key_padding_mask"):
        attnscope.instrument(Single(), tokenize=tokenize, mask="mask")
    with pytest.raises(BadInput, match="to look embeddings up"):
        attnscope.instrument(Single(), tokenize=tokenize, embeddings="vectors")
    with pytest.raises(BadInput, match="first, last, mean"):
        attnscope.instrument(Single(), tokenize=tokenize, readout="middle")
    with pytest.raises(BadInput, match="a pair of tokens and inputs"):
        attnscope.instrument(Single(), tokenize=str.split).record("a b c")
    with pytest.raises(BadInput, match="one id for each token"):
        attnscope.instrument(Single(), tokenize=lambda text: (text.split(), [1])).record("a b c")
    with pytest.raises(BadInput, match="Text 1: This text has 5 tokens and the model reads at most 3"):
        list(attnscope.instrument(Single(), tokenize=tokenize, longest=3).records(["a b", TEXTS[0]]))
    with pytest.raises(BadInput, match="3 labels were given for a module of 2"):
        attnscope.instrument(Single(), tokenize=tokenize, labels=list("abc")).record("a b")
    own = attnscope.instrument(Own(), tokenize=tokenize, attention=OwnAttention)
    with pytest.raises(BadInput, match="name that submodule as embeddings="):
        own.record("a b", gradients=True)
    places = attnscope.instrument(Own(), tokenize=tokenize, attention=OwnAttention, embeddings="places")
    with pytest.raises(BadInput, match="is not given the ids"):
        places.record("a b", gradients=True)
    with pytest.raises(BadInput, match="cannot be read; its attention weights can"):
        own.record("a b", values=True)
    with pytest.raises(BadInput, match="cut by its own tokenize"):
        own.record("a b", truncate=True)


class Pooled(nn.Module):
    """Attention, and a pooling that decides for each text how much of each token is read."""

    class Pooling(nn.Module):
        def __init__(self, shape: str) -> None:
            super().__init__()
            self.score, self.shape = nn.Linear(WIDTH, 1), shape

        def forward(self, x: Tensor, real: Tensor) -> Tensor | tuple[Tensor, Tensor]:
            shares = self.score(x).masked_fill(~real[..., None], -torch.inf).softmax(1)
            if self.shape == "row":
                return shares.squeeze(-1)
            return ((shares * x).sum(1), shares) if self.shape == "pair" else self.score(x)

    def __init__(self, shape: str) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.pooling, self.head = self.Pooling(shape), nn.Linear(WIDTH, 2)

    def forward(self, ids: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        x = self.words(ids)
        x = self.attention(x, x, x, key_padding_mask=key_padding_mask)[0]
        real = torch.ones_like(ids).bool() if key_padding_mask is None else ~key_padding_mask
        shares = self.pooling(x, real)
        shares = shares[1].squeeze(-1) if isinstance(shares, tuple) else shares
        return self.head(torch.einsum("bt,btw->bw", shares, x)) if shares.ndim == 2 else self.head(x.mean(1))


@pytest.mark.parametrize("shape", ["row", "pair"])
def test_a_submodule_that_pools_is_the_readout(shape):
    module = Pooled(shape).eval()
    model = attnscope.instrument(module, tokenize=tokenize, readout="pooling")
    for text, record in zip(TEXTS, model.records(TEXTS, batch_size=4, gradients=True), strict=True):
        x = module.words(ids_of(text))[None]
        x = module.attention(x, x, x)[0][0]
        expected = (x @ module.pooling.score.weight[0] + module.pooling.score.bias).softmax(0)
        torch.testing.assert_close(record.readout, expected.detach(), atol=1e-6, rtol=0)
        torch.testing.assert_close(
            attnscope.layerwise_tracing(record).per_head[0], record.readout @ record.weights[0], atol=1e-6, rtol=0
        )
    assert not module.pooling._forward_hooks


def test_what_does_not_pool_is_no_readout():
    for name, sentence in (("pooling", "returns no tensors"), ("head", "returns no tensors")):
        with pytest.raises(BadInput, match=sentence):
            attnscope.instrument(Pooled("scores"), tokenize=tokenize, readout=name).record(TEXTS[0])
    with pytest.raises(BadInput, match="ran 0 times"):
        attnscope.instrument(Pooled("row"), tokenize=tokenize, readout="attention.out_proj").record(TEXTS[0])


def test_outcomes_that_are_judged_alone_have_sigmoids():
    module = Single().eval()
    model = attnscope.instrument(module, tokenize=tokenize, probabilities="sigmoid")
    record = model.record(TEXTS[0], gradients=True, target="sum", quantity="probability")
    logits = module(ids_of(TEXTS[0])[None])[0].detach()
    assert [value for _, value in record.prediction] == pytest.approx(sorted(logits.sigmoid().tolist(), reverse=True))
    torch.testing.assert_close(model.probabilities([record.inputs])[0], logits.sigmoid())
    start = module.words(ids_of(TEXTS[0]))[None].detach().requires_grad_()
    answer = module.head(module.attention(start, start, start)[0][:, 0])
    (expected,) = torch.autograd.grad(answer.sigmoid().sum(), start)
    torch.testing.assert_close(record.embedding_gradients, expected[0], atol=1e-6, rtol=1e-4)
    with pytest.raises(BadInput, match="softmax or sigmoid"):
        attnscope.instrument(module, tokenize=tokenize, probabilities="hardmax")


def test_what_only_hugging_face_models_can_is_refused_in_a_sentence() -> None:
    model = attnscope.instrument(Single(), tokenize=tokenize)
    assert isinstance(model, attnscope.InstrumentedModel)
    for call in (
        lambda: model.record(inputs={"ids": torch.ones(1, 2)}),
        lambda: model.record("a b c", window=2),
        lambda: model.estimate([3]),
        lambda: model.tokenizer,
        lambda: attnscope.survey(model, ["the key"]),
    ):
        with pytest.raises(BadInput, match="this is for Hugging Face models"):
            call()
    with pytest.raises(BadInput, match="does not generate text"):
        model.record_generation("a b")
    with pytest.raises(BadInput, match="writes no text"):
        model.record("a b", text_target="c")
