"""A classifier trained on the states of a frozen encoder: its two vectors V and W, by the authors' recipe."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Float16
from torch import Tensor

from ...lab.batches import order_of_epoch
from ...lab.data import PackedTexts
from ...lab.models import AttentionClassifier
from ...lab.polarity import WordScores, padded_batches, scores_alone
from ...lab.vocabulary import Vocabulary

RATE, RATE_DECAY, BATCH = 0.02, 0.001, 100
TOGETHER = 4096
"""States that are scored at once."""


@dataclass(frozen=True, eq=False)
class ReadTexts:
    """Texts with the state of every occurrence of a word, in the order of `texts.tokens`."""

    texts: PackedTexts
    states: Float16[Tensor, "occurrence width"]

    @property
    def occurrences(self) -> PackedTexts:
        """The same texts with numbers of occurrences in place of those of words."""
        return PackedTexts(np.arange(len(self.states), dtype=np.int32), self.texts.starts, self.texts.labels)

    def batches(self) -> Iterator[tuple[Float[Tensor, "text token width"], Bool[Tensor, "text token"]]]:
        """States of texts in their order, some at a time with padding, and where words are."""
        for numbers, real in padded_batches(self.occurrences, BATCH):
            yield self.states[numbers].float(), real


@dataclass(frozen=True, eq=False)
class Reading:
    """All that an encoder has read: the texts, and words alone."""

    parts: dict[str, ReadTexts]
    alone: Float16[Tensor, "word width"]
    words: np.ndarray
    """The numbers of the words that were read alone."""


def trained_on(
    reading: Reading, classes: Sequence[str], seed: int, epochs: int, patience: int | None
) -> tuple[AttentionClassifier, int]:
    """The classifier with the weights of the first epoch that is best on dev, and the number of that epoch, from 1."""
    train, width = reading.parts["train"], reading.alone.shape[1]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        # states come from the encoder, so that the model needs no words of its own
        model = AttentionClassifier(Vocabulary([]), scaling=math.sqrt(width), classes=classes, width=width)
        optimizer = torch.optim.Adagrad([model.context, model.output.weight], lr=RATE, lr_decay=RATE_DECAY)
        best, best_epoch, kept = -1.0, 0, {}
        for epoch in range(epochs):
            model.train()
            order = order_of_epoch(seed, epoch, len(train.texts))
            for start in range(0, len(order), BATCH):
                chosen = order[start : start + BATCH]
                numbers, real = map(torch.from_numpy, train.occurrences.padded(chosen))
                logits = logits_of(model, train.states[numbers].float(), real)
                optimizer.zero_grad()
                model.loss(logits, torch.from_numpy(train.texts.labels[chosen])).backward()
                optimizer.step()
            right = accuracy(model, reading.parts["dev"])
            if right > best:
                best, best_epoch = right, epoch + 1
                kept = {name: value.clone() for name, value in model.state_dict().items()}
            if patience is not None and epoch + 1 - best_epoch >= patience:
                break
    model.load_state_dict(kept)
    return model.eval(), best_epoch


def logits_of(
    model: AttentionClassifier, states: Float[Tensor, "text token width"], real: Bool[Tensor, "text token"]
) -> Float[Tensor, "text logit"]:
    """The classifier on states in place of embeddings."""
    values, scores = model.values_and_scores(model.embedding_dropout(states), real)
    pooled = torch.einsum("bt,btw->bw", model.attention(scores, real)[0], values)
    logits: Tensor = model.output(model.output_dropout(pooled))
    return logits


@torch.no_grad()
def accuracy(model: AttentionClassifier, read: ReadTexts) -> float:
    """The share of texts that the classifier gets right."""
    model.eval()
    told = torch.cat([model.predicted(logits_of(model, states, real)) for states, real in read.batches()])
    return float((told.numpy() == read.texts.labels).mean())


@torch.no_grad()
def scores_of(model: AttentionClassifier, states: Float16[Tensor, "token width"]) -> WordScores:
    """The polarity s = h · W and the attention score a = h · V / λ of every state."""
    found = [scores_alone(model, part.float()) for part in states.split(TOGETHER)]
    polarity, attention = (torch.cat(parts) for parts in zip(*found, strict=True))
    return WordScores(polarity, attention)


@torch.no_grad()
def weights_of(model: AttentionClassifier, read: ReadTexts) -> Float[Tensor, " occurrence"]:
    """α of every occurrence."""
    model.eval()
    found = [
        model.attention(model.values_and_scores(states, real)[1], real)[0][real] for states, real in read.batches()
    ]
    return torch.cat(found)
