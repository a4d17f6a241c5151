"""What the paper derives, checked by numbers: Eq. 15 and 53, the example of A.1, A.10, and permutations (3.3, 4.3)."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from ...lab.models.bag_of_words import BagOfWords
from ...lab.models.word_translation import WordTranslation
from ...lab.probes.optimal_attention import optimal_attention
from .copying import CopyingTask
from .training import with_seed

SEEDS = 4
COUNTEREXAMPLE = ((0.0, 0.0, 0.0), (0.0, -10.0, 5.0), (0.0, 5.0, -10.0))
"""γ of A.1, Eq. 29; the first word is right."""
TEXTS, WORDS, LONGEST = 60, 8, 12
"""Of the texts that logistic regression and the proxy both learn."""
ROUNDS = 400
COPIED, DRAWN = 8, 12
"""Length of the sequences to be copied, and the words they are drawn from where they are not all of them."""
STEPS, BATCH, RATE = 300, 64, 1e-2


def check_theory(widths: Sequence[int], seeds: int = SEEDS) -> dict[str, pd.DataFrame]:
    """The tables initial_gradient, counterexample, logistic and permutations; it takes some seconds."""
    return {
        "initial_gradient": initial_gradient(widths, seeds),
        "counterexample": counterexample(),
        "logistic": logistic(),
        "permutations": permutations(seeds),
    }


def initial_gradient(widths: Sequence[int], seeds: int = SEEDS) -> pd.DataFrame:
    """Eq. 53 and 15 for growing width: a row for each width and seed.

    `logits_error` is the distance of dθ̂/dτ from 2(C - mean C), over the length of that; `printed_error` the same of
    dθ/dτ, as Eq. 15 is printed, and `corrected_error` with the missing 1/|O|. Slopes are those of the regression
    through zero on 2(C - mean C): they go to 1 for logits and to 1/|O|, `one_over_outputs`, for probabilities.
    """
    sources, targets, outputs = _sentences()
    counts = WordTranslation.learned(sources, targets, outputs=outputs).counts.toarray()
    predicted = predicted_change(torch.from_numpy(counts))
    rows = []
    for width in widths:
        for seed in range(seeds):
            draw = torch.Generator().manual_seed(seed)
            embeddings, output = (
                torch.randn(size, width, dtype=torch.float64, generator=draw) / width**0.5 for size in counts.shape
            )
            logits, chances = initial_change(embeddings, output, sources, targets)
            rows.append(
                {
                    "width": width,
                    "seed": seed,
                    "logits_error": _distance(logits, predicted),
                    "logits_slope": _slope(logits, predicted),
                    "printed_error": _distance(chances, predicted),
                    "corrected_error": _distance(chances, predicted / outputs),
                    "probabilities_slope": _slope(chances, predicted),
                    "one_over_outputs": 1 / outputs,
                }
            )
    return pd.DataFrame(rows)


def _sentences() -> tuple[list[list[int]], list[list[int]], int]:
    """Pairs of sentences with words that are not alike in how often they meet."""
    draw = np.random.default_rng(0)
    inputs, outputs = 10, 7
    sources = [draw.integers(0, inputs, draw.integers(2, 7)).tolist() for _ in range(30)]
    targets = [[word % outputs for word in source if word % 3] + [int(draw.integers(outputs))] for source in sources]
    return sources, targets, outputs


def _distance(found: Float[Tensor, "input output"], expected: Float[Tensor, "input output"]) -> float:
    return float((found - expected).norm() / expected.norm())


def _slope(found: Float[Tensor, "input output"], expected: Float[Tensor, "input output"]) -> float:
    return float((found * expected).sum() / expected.square().sum())


def counterexample() -> pd.DataFrame:
    """A.1: β and the best attention of each of three positions; the largest β gets nothing."""
    logits = torch.tensor([COUNTEREXAMPLE], dtype=torch.float64)
    found = optimal_attention(logits, torch.zeros(1, 1, 3, dtype=torch.float64), torch.tensor([[0]]), tolerance=1e-9)
    chances = logits[0].softmax(-1)[:, 0]
    return pd.DataFrame(
        {
            "position": [1, 2, 3],
            "lexical": chances.tolist(),
            "attention": found.weights[0, 0].tolist(),
            "right_probability": float((-found.loss).exp()),
            "gap": float(found.gap),
        }
    )


def logistic() -> pd.DataFrame:
    """A.10: a row for each text with the probability that the proxy and a logistic regression give its class.

    Both are trained to their ends without a penalty, on texts that no line tells apart, so that there is an end. The
    regression is on counts divided by the length, and is the proxy with W e replaced by one table.
    """
    draw = np.random.default_rng(0)
    lengths = draw.integers(3, LONGEST + 1, TEXTS)
    ids = torch.from_numpy(draw.integers(0, WORDS, (TEXTS, LONGEST)))
    real = torch.from_numpy(np.arange(LONGEST) < lengths[:, None])
    classes = torch.from_numpy(draw.integers(0, 2, TEXTS))
    proxy = with_seed(0, lambda: BagOfWords(WORDS, 1)).double()
    counts = torch.stack([((ids == word) & real).sum(1) / real.sum(1) for word in range(WORDS)], 1).double()
    table = torch.zeros(WORDS + 1, dtype=torch.float64, requires_grad=True)
    _descend(list(proxy.parameters()), lambda: proxy.class_loss(proxy(ids, real), classes))
    _descend([table], lambda: proxy.class_loss((counts @ table[1:] + table[0])[:, None], classes))
    with torch.no_grad():
        by_proxy = proxy(ids, real).squeeze(1).sigmoid()
        by_table = (counts @ table[1:] + table[0]).sigmoid()
    return pd.DataFrame(
        {
            "text": range(TEXTS),
            "proxy": by_proxy.tolist(),
            "logistic": by_table.tolist(),
            "difference": (by_proxy - by_table).tolist(),
        }
    )


def _descend(weights: list[Any], loss: Any) -> None:
    """To the minimum, by a quasi-Newton method on all texts at once."""
    rule = torch.optim.LBFGS(
        weights, max_iter=ROUNDS, tolerance_grad=1e-10, tolerance_change=0.0, line_search_fn="strong_wolfe"
    )

    def closure() -> Float[Tensor, ""]:
        rule.zero_grad()
        value = loss()
        value.backward()
        return value  # type: ignore[no-any-return]

    rule.step(closure)


def permutations(seeds: int = SEEDS) -> pd.DataFrame:
    """The proxy on sequences to be copied: it is blind where each has the same words, and learns where words differ.

    A row for each task and seed: `informative`, the largest share by which an entry of C differs from the mean of its
    row; `first_loss` and `last_loss` per word; `right`, how often β^px of a word is largest at its own source place
    after training, with `chance`; and `order_effect`, by how much another order of a source changes a logit.
    """
    tasks = {"same": CopyingTask(COPIED, COPIED), "choice": CopyingTask(COPIED, DRAWN)}
    rows = [
        {"task": name, "seed": seed, **dict(_figures_of_copying(task, seed))}
        for name, task in tasks.items()
        for seed in range(seeds)
    ]
    return pd.DataFrame(rows)


def _figures_of_copying(task: CopyingTask, seed: int) -> Iterator[tuple[str, float]]:
    words = len(task.vocabulary)
    source, _, right = task.batch(2_000, seed=seed, step=0)
    source, right = source[:, : task.length], right[:, : task.length]  # without the end, which is always there
    counts = WordTranslation.learned(source.tolist(), right.tolist(), words, words).counts.toarray()
    own = counts[counts.sum(1) > 0][:, counts.sum(0) > 0]
    yield "informative", float(np.abs(own / own.mean(1, keepdims=True) - 1).max())
    model = with_seed(seed, lambda: BagOfWords(words, words))
    rule = torch.optim.Adam(model.parameters(), lr=RATE)
    everywhere = torch.ones(BATCH, task.length, dtype=torch.bool)
    losses = []
    for step in range(STEPS):
        chosen = slice(step * BATCH % 1_920, step * BATCH % 1_920 + BATCH)
        loss = model.word_loss(model(source[chosen], everywhere), right[chosen], everywhere)
        rule.zero_grad()
        loss.backward()
        rule.step()
        losses.append(loss.item() / everywhere.sum().item())
    yield "first_loss", losses[0]
    yield "last_loss", losses[-1]
    with torch.no_grad():
        lexical = model.word_logits(source).log_softmax(-1)
        by_step = lexical.gather(-1, right.unsqueeze(1).expand(-1, task.length, -1)).transpose(1, 2)
        hits = source.gather(1, by_step.argmax(-1)) == right
        yield "right", float(hits.double().mean())
        yield "chance", 1 / task.length
        turned = model(source[:BATCH].flip(1), everywhere) - model(source[:BATCH], everywhere)
        yield "order_effect", float(turned.abs().max())


# How the proxy's word translations begin to move, and what co-occurrence says of it (Snell et al. 2021, section 4.1).
# Symbols of the paper: e is `embeddings`, W is `output`, θ̂ = W e are the logits of each input word and θ =
# softmax(θ̂); C is the table of `WordTranslation.counts`. Under gradient flow on the loss of Eq. 14, at a random
# beginning of endless width, dθ̂/dτ = 2(C - mean_o C) (Eq. 53). Eq. 15 says the same of θ, where by the chain rule it
# is that over |O|.


Words = Sequence[Sequence[int]]
"""The numbers of the words of each sentence."""


def predicted_change(counts: Float[Tensor, "input output"]) -> Float[Tensor, "input output"]:
    """2(C - mean_o C), the right side of Eq. 15 and 53.

    >>> predicted_change(torch.tensor([[0.5, 0.0], [0.5, 0.5]])).tolist()
    [[0.5, -0.5], [0.0, 0.0]]
    """
    return 2 * (counts - counts.mean(1, keepdim=True))


def proxy_loss(
    embeddings: Float[Tensor, "input width"], output: Float[Tensor, "output width"], sources: Words, targets: Words
) -> Float[Tensor, ""]:
    """Eq. 14: minus the log probability of every output word, summed over all pairs of sentences."""
    total = embeddings.new_zeros(())
    for source, target in zip(sources, targets, strict=True):
        logits = output @ embeddings[list(source)].mean(0)
        total = total - logits.log_softmax(0)[list(target)].sum()
    return total


def initial_change(
    embeddings: Float[Tensor, "input width"], output: Float[Tensor, "output width"], sources: Words, targets: Words
) -> tuple[Float[Tensor, "input output"], Float[Tensor, "input output"]]:
    """dθ̂/dτ and dθ/dτ under gradient flow at these weights: how logits and probabilities of each input word move."""
    weights = [embeddings.detach().requires_grad_(), output.detach().requires_grad_()]
    by_embeddings, by_output = torch.autograd.grad(proxy_loss(weights[0], weights[1], sources, targets), weights)
    logits = -(by_embeddings @ output.T + embeddings @ by_output.T)
    chances = (embeddings @ output.T).softmax(1)
    return logits, chances * (logits - (chances * logits).sum(1, keepdim=True))
