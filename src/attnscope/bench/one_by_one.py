"""The attention classifier as anybody would write it in PyTorch, one run at a time: what the sweep is held against."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, dropout
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ..lab.batches import order_of_epoch
from ..lab.data.packed import PackedTexts
from ..lab.sweep import Recipe, RunSettings
from ..lab.sweep.kernels import kept_of_context, kept_of_tokens

Drop = Callable[[Tensor], Tensor]


class PlainClassifier(nn.Module):
    """Embedding, encoder, attention, output: the model of the paper from its equations, under the names of ours."""

    def __init__(self, run: RunSettings, size: int, width: int, outcomes: int, *, sparse: bool) -> None:
        super().__init__()
        self.run = run
        self.embeddings = nn.Embedding(size, width, sparse=sparse)
        self.context = nn.Parameter(torch.zeros(width))
        self.output = nn.Linear(width, outcomes, bias=False)
        if run.variant in {"dot_affine", "additive"}:
            self.affine = nn.Linear(width, width)
        if run.variant == "dot_lstm":
            self.lstm = nn.LSTM(width, width // 2, bidirectional=True, batch_first=True)

    def forward(
        self,
        tokens: Int64[Tensor, "text token"],
        real: Bool[Tensor, "text token"],
        drop_tokens: Drop,
        drop_context: Drop,
    ) -> Float[Tensor, "text outcome"]:
        """The logits of a padded batch."""
        values = keys = drop_tokens(self.embeddings(tokens))
        if self.run.variant == "dot_affine":
            values = keys = self.affine(values)
        elif self.run.variant == "additive":
            keys = torch.tanh(self.affine(values))
        elif self.run.variant == "dot_lstm":
            packed = pack_padded_sequence(values, real.sum(1), batch_first=True, enforce_sorted=False)
            values = keys = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)[0]
        scores = (keys @ self.context / self.run.scaling).masked_fill(~real, -torch.inf)
        logits: Tensor = self.output(drop_context((scores.softmax(-1)[..., None] * values).sum(1)))
        return logits


class OneByOne:
    """The training of one run, as far as it is: padded texts, PyTorch's Adagrad, a batch at a time."""

    def __init__(self, model: PlainClassifier, texts: PackedTexts, recipe: Recipe) -> None:
        self.model, self.texts, self.recipe = model, texts, recipe
        self.tokens = nn.utils.rnn.pad_sequence([torch.from_numpy(text).long() for text in texts], batch_first=True)
        self.lengths = torch.from_numpy(texts.lengths)
        self.labels = torch.from_numpy(texts.labels)
        others = [weight for name, weight in model.named_parameters() if name != "embeddings.weight"]
        groups: list[dict[str, Any]] = [
            {"params": [model.embeddings.weight]},
            {"params": others, "weight_decay": model.run.l2},
        ]
        self.rule = torch.optim.Adagrad(groups, lr=recipe.rate, lr_decay=recipe.rate_decay, eps=recipe.epsilon)
        self.step = 0

    def train(self, steps: int, *, our_masks: bool) -> None:
        """So many updates more, with our dropout masks or with PyTorch's own dropout."""
        run, batches = self.model.run, -(-len(self.texts) // self.recipe.batch)
        for _ in range(steps):
            epoch, turn = divmod(self.step, batches)
            order = order_of_epoch(run.seed, epoch, len(self.texts))
            chosen = order[turn * self.recipe.batch : (turn + 1) * self.recipe.batch]
            lengths = self.lengths[chosen]
            longest = int(lengths.max())
            real = torch.arange(longest) < lengths[:, None]
            drops = _drops(run.seed, self.step, chosen, self.recipe, longest if our_masks else None)
            loss = _loss(self.model(self.tokens[chosen, :longest], real, *drops), self.labels[chosen])
            if run.penalty:
                products = self.model.output.weight @ self.model.context
                loss = loss + run.penalty * (products**2 if run.penalty_kind == "square" else products.abs()).sum()
            self.rule.zero_grad()
            loss.backward()
            with torch.sparse.check_sparse_tensor_invariants(enable=False):  # torch warns where nobody says which
                self.rule.step()
            self.step += 1


def _loss(logits: Float[Tensor, "text outcome"], labels: Int64[Tensor, " text"]) -> Float[Tensor, ""]:
    if logits.shape[1] == 1:
        return binary_cross_entropy_with_logits(logits[:, 0], labels.to(logits.dtype))
    return cross_entropy(logits, labels)


def _drops(
    seed: int, step: int, chosen: Int64[np.ndarray, " text"], recipe: Recipe, longest: int | None
) -> tuple[Drop, Drop]:
    """Dropout of the embeddings and of the context; with `longest`, by our masks."""
    if not recipe.dropout:
        return (lambda vectors: vectors), (lambda vectors: vectors)
    if longest is None:
        return (lambda vectors: dropout(vectors, recipe.dropout)), (lambda vectors: dropout(vectors, recipe.dropout))
    tokens = 2 * torch.from_numpy(kept_of_tokens(seed, step, chosen, longest, recipe.width))
    context = 2 * torch.from_numpy(kept_of_context(seed, step, chosen, recipe.width))
    return (lambda vectors: vectors * tokens), (lambda vectors: vectors * context)
