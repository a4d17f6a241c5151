"""The terms that drive scores add up to the true derivatives, and the gradients of the supplement are autograd's."""

import copy
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.func import functional_call

from attnscope.errors import BadInput
from attnscope.lab.data import PackedTexts
from attnscope.lab.models import AttentionClassifier
from attnscope.lab.models.attention_classifier import VARIANTS
from attnscope.lab.polarity import scores_alone
from attnscope.lab.probes import Probe, WatchedTerms, dot_products, group_terms, score_terms
from attnscope.lab.probes.score_terms import penalty_value
from attnscope.lab.vocabulary import Vocabulary

TOKENS = [4, 5, 9, 11, 12]
PENALTIES = [(0.0, "absolute"), (0.3, "absolute"), (0.3, "square")]
EXACT = partial(torch.testing.assert_close, rtol=0, atol=1e-10)


def texts(classes: int = 2) -> PackedTexts:
    """Some words stand twice in a text; number 12 stands in none."""
    random = np.random.default_rng(5)
    rows = [random.integers(4, 12, length).tolist() for length in (1, 2, 3, 5, 8, 4, 6, 9)]
    return PackedTexts.of(rows, [number % classes for number in range(len(rows))])


def made(variant: str, scaling: float = 1.7, **settings) -> AttentionClassifier:
    torch.manual_seed(7)
    model = AttentionClassifier(
        Vocabulary([f"word{number}" for number in range(9)]), variant=variant, scaling=scaling, width=6, **settings
    ).double()
    with torch.no_grad():
        for weights in model.parameters():
            weights.add_(0.4 * torch.randn_like(weights))
    return model


def loss(model: AttentionClassifier, data: PackedTexts, penalty: float = 0.0, kind: str = "absolute") -> Tensor:
    """Text by text, without any batch."""
    losses = [
        model.loss(model(torch.tensor(text.tolist())[None]), torch.tensor([label]))
        for text, label in zip(data, data.labels, strict=True)
    ]
    value = torch.stack(losses).mean()
    return value + penalty_value(model.output.weight @ model.context, penalty, kind) if penalty else value


def scores(model: AttentionClassifier) -> Tensor:
    """Polarity scores, then the attention score, of each chosen word read alone."""
    polarity, attention = scores_alone(model, model.embeddings.weight[TOKENS])
    return torch.cat([polarity, attention[:, None]], 1)


def true_derivatives(model: AttentionClassifier, data: PackedTexts, **penalty) -> Tensor:
    """The Jacobian of the scores times minus the gradient of the loss, by autograd alone."""
    model = model.eval()
    weights = dict(model.named_parameters())
    slopes = torch.autograd.grad(loss(model, data, **penalty), list(weights.values()))
    direction = {name: -slope for name, slope in zip(weights, slopes, strict=True)}

    def told(given: dict[str, Tensor]) -> Tensor:
        return functional_call(_Scores(model), {f"model.{name}": tensor for name, tensor in given.items()}, ())

    return torch.autograd.functional.jvp(
        lambda *parts: told(dict(zip(weights, parts, strict=True))),
        tuple(weights.values()),
        tuple(direction[name] for name in weights),
    )[1]


class _Scores(torch.nn.Module):
    def __init__(self, model: AttentionClassifier) -> None:
        super().__init__()
        self.model = model

    def forward(self) -> Tensor:
        return scores(self.model)


def finite_differences(model: AttentionClassifier, data: PackedTexts, step: float = 1e-5, **penalty) -> Tensor:
    """The scores a small step along minus the gradient, and one against it."""
    ends = []
    for sign in (1, -1):
        moved = copy.deepcopy(model).eval()
        slopes = torch.autograd.grad(loss(moved, data, **penalty), list(moved.parameters()))
        with torch.no_grad():
            for weights, slope in zip(moved.parameters(), slopes, strict=True):
                weights.sub_(sign * step * slope)
            ends.append(scores(moved))
    return (ends[0] - ends[1]) / (2 * step)


@pytest.mark.parametrize("scaling", [0.3, 1.7, 100.0])
@pytest.mark.parametrize(("strength", "kind"), PENALTIES)
def test_terms_a_to_f_and_the_penalty_are_the_true_derivatives(strength, kind, scaling) -> None:
    model, data = made("dot", scaling), texts()
    terms = score_terms(model, data, TOKENS, penalty=strength, penalty_kind=kind)
    found = torch.stack([terms.polarity, terms.attention], 1)
    EXACT(found, true_derivatives(model, data, penalty=strength, kind=kind))
    differences = finite_differences(model, data, penalty=strength, kind=kind)
    torch.testing.assert_close(found, differences, rtol=1e-6, atol=1e-8)


def test_each_term_is_that_of_the_paper_word_by_word() -> None:
    model, data = made("dot"), texts()
    e, v, w = model.embeddings.weight.detach(), model.context.detach(), model.output.weight.detach()[0]
    scaling, m = 1.7, len(data)
    expected = {name: torch.zeros(len(TOKENS)).double() for name in "ABCDEF"}
    for text, label in zip(data, data.labels, strict=True):
        rows = e[torch.tensor(text.tolist())]
        alpha = (rows @ v / scaling).softmax(0)
        y, s = 2 * label - 1, alpha @ rows @ w
        beta = 1 - torch.sigmoid(y * s)
        for j, token in enumerate(text.tolist()):
            share = y * beta * alpha[j]
            for place, chosen in enumerate(TOKENS):
                expected["C"][place] += share * (e[chosen] @ rows[j]) / m
                expected["F"][place] += share * (e[chosen] @ rows[j]) * (rows[j] @ w - s) / (m * scaling**2)
                if token == chosen:
                    rho = share * (rows[j] @ w - s)
                    expected["A"][place] += v @ w / scaling * rho / m
                    expected["B"][place] += w @ w * share / m
                    expected["D"][place] += v @ w * scaling * share / (m * scaling**2)
                    expected["E"][place] += v @ v * rho / (m * scaling**2)
    terms = score_terms(model, data, torch.tensor(TOKENS))
    for name, values in expected.items():
        EXACT(getattr(terms, name), values)
    assert terms.A[-1] == terms.B[-1] == 0  # a word that no text has moves only with W
    assert terms.C[-1] != 0


def test_the_penalty_terms_are_those_of_its_slope() -> None:
    model, data = made("dot"), texts()
    e, v, w = model.embeddings.weight.detach(), model.context.detach(), model.output.weight.detach()[0]
    terms = score_terms(model, data, TOKENS, penalty=0.01)
    attention, polarity = e[TOKENS] @ v / 1.7, e[TOKENS] @ w
    EXACT(terms.penalty_on_polarity, -0.01 * torch.sign(v @ w) * 1.7 * attention)
    EXACT(terms.penalty_on_attention, -0.01 * torch.sign(v @ w) * polarity / 1.7)
    assert not score_terms(model, data, TOKENS).penalty_on_polarity.any()
    with pytest.raises(BadInput, match="absolute or square"):
        score_terms(model, data, TOKENS, penalty_kind="cubic")


@pytest.mark.parametrize("classes", [("negative", "positive"), ("one", "two", "three")])
@pytest.mark.parametrize(("strength", "kind"), PENALTIES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_group_terms_are_the_true_derivatives(variant, strength, kind, classes) -> None:
    model, data = made(variant, classes=classes), texts(len(classes))
    terms = group_terms(model, data, TOKENS, penalty=strength, penalty_kind=kind)
    found = torch.cat([sum(terms.polarity.values()), sum(terms.attention.values())[:, None]], 1)
    EXACT(found, true_derivatives(model, data, penalty=strength, kind=kind))
    torch.testing.assert_close(
        found, finite_differences(model, data, penalty=strength, kind=kind), rtol=1e-5, atol=1e-7
    )
    assert bool(terms.polarity["encoder"].any()) == (variant in {"dot_lstm", "dot_affine"})
    assert bool(terms.attention["encoder"].any()) == (variant != "dot")
    assert not terms.polarity["context"].any()
    assert not terms.attention["output"].any()


def test_group_terms_agree_with_the_papers_for_dot() -> None:
    model, data = made("dot"), texts()
    groups, terms = group_terms(model.train(), data, TOKENS), score_terms(model, data, TOKENS)
    assert model.training
    EXACT(groups.polarity["embeddings"][:, 0], terms.A + terms.B)
    EXACT(groups.polarity["output"][:, 0], terms.C)
    EXACT(groups.attention["embeddings"], terms.D + terms.E)
    EXACT(groups.attention["context"], terms.F)


@pytest.mark.parametrize("variant", ["dot", "dot_affine", "additive"])
def test_gradients_of_the_supplement_are_those_of_autograd(variant) -> None:
    """One text, two classes; with an affine layer, h = M e + b takes the place of e, and M' carries on to e."""
    model, data = made(variant).eval(), texts()
    v, w, scaling = model.context.detach(), model.output.weight.detach()[0], 1.7
    matrix = model.affine.weight.detach() if variant != "dot" else torch.eye(6).double()
    shift = model.affine.bias.detach() if variant != "dot" else torch.zeros(6).double()
    for text, label in zip(data, data.labels, strict=True):
        ids, y = torch.tensor(text.tolist()), 2 * label - 1
        slopes = dict(
            zip(
                dict(model.named_parameters()),
                torch.autograd.grad(loss(model, PackedTexts.of([text.tolist()], [int(label)])), model.parameters()),
                strict=True,
            )
        )
        e = model.embeddings.weight.detach()[ids]
        inner = e @ matrix.T + shift
        values = inner if variant == "dot_affine" else e
        keys = inner.tanh() if variant == "additive" else values
        alpha = (keys @ v / scaling).softmax(0)
        h = alpha @ values
        s = h @ w
        beta = 1 - torch.sigmoid(y * s)
        EXACT(slopes["output.weight"][0], -y * beta * h)
        EXACT(slopes["context"], -(y * beta / scaling) * (alpha * (values @ w - s)) @ keys)
        by_word = torch.zeros_like(slopes["embeddings.weight"])
        for j, token in enumerate(text.tolist()):
            through_scores = v * ((values[j] - h) @ w) / scaling
            if variant == "additive":
                through_scores = matrix.T @ ((1 - keys[j] ** 2) * through_scores)
                gathered = through_scores + w
            else:
                gathered = matrix.T @ (through_scores + w)
            by_word[token] += -y * beta * alpha[j] * gathered
        EXACT(slopes["embeddings.weight"], by_word)


def test_gradients_of_the_supplement_hold_behind_an_lstm_and_for_several_classes() -> None:
    """At the values h_j the formulas are those of dot; with several classes, W (p - onehot) takes the place of -yβW."""
    for variant, classes in (("dot_lstm", ("a", "b")), ("dot_lstm", ("a", "b", "c")), ("dot", ("a", "b", "c"))):
        model = made(variant, classes=classes).eval()
        v, w, scaling = model.context, model.output.weight.detach(), 1.7
        ids = torch.tensor([[4, 6, 6, 9, 5]])
        values, scores_here = model.values_and_scores(model.embeddings(ids), torch.ones_like(ids).bool())
        alpha = scores_here.softmax(-1)
        logits = (alpha.unsqueeze(1) @ values).squeeze(1) @ model.output.weight.T
        EXACT(logits, model(ids))
        at_values, at_context, at_output = torch.autograd.grad(
            model.loss(logits, torch.tensor([1])), [values, v, model.output.weight]
        )
        values, alpha, logits = values[0].detach(), alpha[0].detach(), logits[0].detach()
        h = alpha @ values
        several = len(classes) > 2
        wrong = logits.softmax(0) - torch.eye(3).double()[1] if several else -(1 - torch.sigmoid(logits))  # y is 1
        at_pooled = wrong @ w
        EXACT(at_output, torch.outer(wrong, h))
        EXACT(at_context, (alpha * ((values - h) @ at_pooled)) @ values / scaling)
        expected = [
            share * (v.detach() * ((value - h) @ at_pooled) / scaling + at_pooled)
            for share, value in zip(alpha, values, strict=True)
        ]
        EXACT(at_values[0], torch.stack(expected))


def test_dot_products_are_means_over_pairs() -> None:
    model = made("dot")
    kinds = {"positive": np.array([4, 5, 6]), "negative": np.array([7, 8]), "neutral": np.array([9])}
    found = dot_products(model, kinds)
    e = model.embeddings.weight.detach()
    assert found["positive-positive"] == pytest.approx(
        np.mean([float(e[4] @ e[5]), *(float(e[i] @ e[6]) for i in (4, 5))])
    )
    assert found["positive-negative"] == pytest.approx(float((e[4:7] @ e[7:9].T).mean()))
    assert "neutral-neutral" not in found
    assert found["V·W"] == pytest.approx((model.context @ model.output.weight[0]).item())
    assert found["|V|"] == pytest.approx(model.context.norm().item())
    assert found["|W|"] == pytest.approx(model.output.weight.norm().item())
    assert "V·W_2" in dot_products(made("dot", classes=("a", "b", "c")), kinds)


def test_the_probe_gives_the_mean_of_each_term_over_each_kind() -> None:
    model, data = made("dot"), texts()
    kinds = {"positive": np.array([4, 5]), "neutral": np.array([9, 11, 12])}
    seen = []
    probe = WatchedTerms(model, data, kinds, range(0, 10, 5), watch=seen.append)
    assert isinstance(probe, Probe)
    row = probe(5)
    terms = score_terms(model, data, [4, 5, 9, 11, 12])
    assert row["D_positive"] == pytest.approx(terms.D[:2].mean().item())
    assert row["F_neutral"] == pytest.approx(terms.F[2:].mean().item())
    assert "positive-neutral" in row
    assert seen == [{"probe": "score_terms", **row}]
    vectors = model.embeddings.weight[kinds["positive"]]
    assert row["polarity_positive"] == pytest.approx((vectors @ model.output.weight[0]).mean().item())
    assert row["attention_positive"] == pytest.approx((vectors @ model.context).mean().item() / model.settings.scaling)


def test_terms_of_the_paper_are_only_for_its_model() -> None:
    for model in (made("additive"), made("dot", classes=("a", "b", "c"))):
        with pytest.raises(BadInput, match="group_terms"):
            score_terms(model, texts(), TOKENS)
