"""Beyond the paper, its two next steps: embeddings that begin as pretrained vectors, and a contextual encoder."""

import math
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Float16, Float64
from torch import Tensor

from ...capture import InstrumentedModel, load
from ...capture.encoding import by_length
from ...capture.hugging_face import source_of
from ...capture.watching import in_evaluation
from ...engine import UNFINISHED, Store
from ...errors import BadInput
from ...lab.batches import order_of_epoch
from ...lab.data import ClassifiedTexts, PackedTexts
from ...lab.models import AttentionClassifier
from ...lab.polarity import WordScores, global_scores, padded_batches, scores_alone
from ...lab.sweep import RunSettings, initial_weights, sweep
from ...lab.vocabulary import Vocabulary
from ...lab.word_vectors import WordVectors, word_vectors
from ...progress import items_done, working
from ...record.words import WordIds
from .paper import MODERATE, Scale
from .words import OUTLIER, kinds_of, model_of, rare_words, table_by_kind

# The first: do rare words gain polarity and attention from polar words of like vectors?
#
# Dot-product attention (DP) with λ = 10 is trained in three ways for each seed: from random embeddings, and twice from
# pretrained vectors, which go on to be trained. Once one factor for all words brings them to the root mean square of
# the random ones; they are then as soon overwritten, since Adagrad's first steps of .02 are large beside numbers below
# .1. Once they keep their own size (GloVe's is some ten times as large). A word without a vector begins as it does in
# the random run of that seed. A rare word is near a polar word if the cosine of their pretrained vectors, before any
# training, is at least .6. A word that no training text has keeps the vector it begins with: whatever it gains comes
# through V and W.


RANDOM, PRETRAINED, OWN_SIZE = "random", "pretrained", "pretrained of own size"


def pretrained_words(
    folder: Path, data: ClassifiedTexts, seeds: Sequence[int], scale: Scale, vectors: str | Path | None
) -> pd.DataFrame | None:
    """A row for each rare word, beginning and seed, from runs trained now or kept in `folder` from before.

    Columns: those of `rare_words`, beginning, seed, polarity, attention, and the test accuracy of the run. None where
    there are no vectors: none are wanted, none are installed, or the words are made up.
    """
    if scale.toy and vectors is None:
        return None
    place = folder / f"{data.name}-pretrained"
    training = scale.training("dot")
    name = None if vectors is None else Path(vectors).name
    store = Store(place, "study", {"vectors": name, "seeds": list(seeds), **training})
    if (words := store.find_table("words")) is not None:
        return words
    found = word_vectors(vectors, data.vocabulary.words)
    if found is None:
        return None
    store.begin()
    rare = rare_words(data, found)
    numbers = torch.tensor(rare["number"].to_numpy())
    tables = []
    for seed in seeds:
        for beginning, embeddings in beginnings(data, found, seed).items():
            checkpoint = place / UNFINISHED / f"{beginning}-{seed}"
            settings = [RunSettings("dot", MODERATE, seed)]
            (run,) = sweep(data, settings, width=found.width, vectors=embeddings, checkpoint=checkpoint, **training)
            scores = global_scores(model_of(data, run, found.width))
            table = rare.assign(
                polarity=scores.polarity[numbers, 0].double().numpy(),
                attention=scores.attention[numbers].double().numpy(),
                test_accuracy=run.test_accuracy,
            )
            tables.append(table.assign(beginning=beginning, seed=seed))
    words = store.keep_table("words", pd.concat(tables, ignore_index=True))
    shutil.rmtree(place / UNFINISHED, ignore_errors=True)
    return words


def beginnings(data: ClassifiedTexts, found: WordVectors, seed: int) -> dict[str, Float64[Tensor, "word width"]]:
    """The embeddings that runs of a seed begin with: random, with vectors as large as those, with vectors as found."""
    random = initial_weights("dot", len(data.vocabulary), found.width, 1, seed)["embeddings.weight"]
    numbers, rows = found.places(data.vocabulary)
    vectors = found.table[torch.from_numpy(rows)].double()
    same, own = random.clone(), random.clone()
    same[torch.from_numpy(numbers)] = vectors * (random.square().mean() / vectors.square().mean()).sqrt()
    own[torch.from_numpy(numbers)] = vectors
    return {RANDOM: random, PRETRAINED: same, OWN_SIZE: own}


# The second: the classifier on the words of a frozen contextual encoder.
#
# h_j is the encoder's last hidden state of word j, and does not change; V and W alone are trained, as in the other
# runs: a_j = h_j · V / λ with λ = √width (the paper's 10 is √100), α = softmax(a), s = Σ α_j h_j · W, dropout of a half
# on h_j and on their weighted mean, Adagrad at .02 that falls by .001 with the updates, 100 texts to a step, V from
# N(0, 1), the first epoch that is best on dev. "Local" scores of a word are the means over its occurrences in training
# texts, "global" ones (without that word in their names) those of the word alone as a text.


CONTEXTUAL = "contextual"
PARTS = ("train", "dev", "test")
RATE, RATE_DECAY, TRAINING_BATCH = 0.02, 0.001, 100
TOGETHER = 4096
"""States that are scored at once."""


def contextual_words(
    folder: Path, data: ClassifiedTexts, seeds: Sequence[int], scale: Scale, encoder: str | Path
) -> pd.DataFrame:
    """A row for each word of each kind and seed, from runs trained now or kept in `folder` from before.

    Columns: those of `word_table`, with local_polarity and local_attention, those that tell runs apart, as
    `comparisons` and `score_summary` take them, and test_accuracy, best_epoch and context_dot_output (V·W).
    The states are kept until all seeds are done; of SST, with an encoder 384 wide, they take 131 MB.
    """
    place = folder / f"{data.name}-{CONTEXTUAL}"
    training = scale.training("dot")
    store = Store(place, "study", {"encoder": Path(encoder).name, **training})
    tables = {seed: store.find_table(f"seed-{seed}") for seed in seeds}
    if missing := [seed for seed in seeds if tables[seed] is None]:
        with working("Loading the encoder"):
            model = encoder_named(str(encoder))
        store.begin()
        reading = read_by(model, data, place / "states")
        with items_done("Classifiers on the encoder") as watch:
            for done, seed in enumerate(missing):
                watch(done, len(missing))
                tables[seed] = store.keep_table(f"seed-{seed}", _words_of_seed(data, reading, seed, **training))
        shutil.rmtree(place / "states", ignore_errors=True)
    return pd.concat(tables.values(), ignore_index=True)


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
        for numbers, real in padded_batches(self.occurrences, TRAINING_BATCH):
            yield self.states[numbers].float(), real


@dataclass(frozen=True, eq=False)
class Reading:
    """All that an encoder has read: the texts, and words alone."""

    parts: dict[str, ReadTexts]
    alone: Float16[Tensor, "word width"]
    words: np.ndarray
    """The numbers of the words that were read alone."""


def read_by(model: InstrumentedModel, data: ClassifiedTexts, folder: Path) -> Reading:
    """The states of all texts, and of the words of each kind alone; parts are kept in the folder."""
    tokens = data.vocabulary.tokens
    words = np.unique(np.concatenate(list(_kinds(data).values())))
    parts = {}
    for part in PARTS:
        packed: PackedTexts = getattr(data, part)
        with items_done(f"The encoder reads {part} texts") as watch:
            texts = [[tokens[number] for number in text] for text in packed]
            parts[part] = ReadTexts(packed, read_states(model, texts, folder / part, watch))
    with items_done("The encoder reads words alone") as watch:
        alone = read_states(model, [[tokens[number]] for number in words], folder / "alone", watch)
    return Reading(parts, alone, words)


def _kinds(data: ClassifiedTexts) -> dict[str, np.ndarray]:
    return {kind: numbers for kind, numbers in kinds_of(data).items() if kind != OUTLIER}


def _words_of_seed(
    data: ClassifiedTexts, reading: Reading, seed: int, *, epochs: int, patience: int | None
) -> pd.DataFrame:
    """Train the classifier of a seed, and score the words; the weight is the mean over occurrences in test texts."""
    model, best_epoch = train_classifier(reading, data.classes, seed, epochs, patience)
    train, test, size = reading.parts["train"], reading.parts["test"], len(data.vocabulary)
    alone, everywhere = scores_of(model, reading.alone), scores_of(model, train.states)
    columns = {
        "attention": _spread(alone.attention, reading.words, size),
        "weight": _means(weights_of(model, test), test.texts.tokens, size),
        "polarity": _spread(alone.polarity[:, 0], reading.words, size),
        "local_attention": _means(everywhere.attention, train.texts.tokens, size),
        "local_polarity": _means(everywhere.polarity[:, 0], train.texts.tokens, size),
    }
    return table_by_kind(data, _kinds(data), lambda _kind: columns).assign(
        data=data.name,
        variant=CONTEXTUAL,
        scaling=model.settings.scaling,
        seed=seed,
        penalty=0.0,
        test_accuracy=accuracy(model, test),
        best_epoch=best_epoch,
        context_dot_output=float((model.output.weight[0] @ model.context).detach()),
    )


def _means(values: Float[Tensor, " occurrence"], tokens: np.ndarray, size: int) -> np.ndarray:
    """The mean over the occurrences of each word; not a number where it has none."""
    sums, counts = np.bincount(tokens, values.double().numpy(), size), np.bincount(tokens, minlength=size)
    means = np.full(size, np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means


def _spread(values: Float[Tensor, " word"], numbers: np.ndarray, size: int) -> np.ndarray:
    """The values at the numbers of their words; not a number elsewhere."""
    table = np.full(size, np.nan)
    table[numbers] = values.numpy()
    return table


# The classifier on states: its two vectors V and W, trained by the authors' recipe.


def train_classifier(
    reading: Reading, classes: Sequence[str], seed: int, epochs: int, patience: int | None
) -> tuple[AttentionClassifier, int]:
    """The classifier with the weights of the first epoch that is best on dev, and the number of that epoch, from 1."""
    train, width = reading.parts["train"], reading.alone.shape[1]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        # states come from the encoder, so that the model needs no words of its own
        model = AttentionClassifier(Vocabulary([]), scaling=math.sqrt(width), classes=classes, width=width)
        optimizer = torch.optim.Adagrad([model.context, model.output.weight], lr=RATE, lr_decay=RATE_DECAY)
        best, best_epoch, best_weights = -1.0, 0, {}
        for epoch in range(epochs):
            model.train()
            order = order_of_epoch(seed, epoch, len(train.texts))
            for start in range(0, len(order), TRAINING_BATCH):
                batch = order[start : start + TRAINING_BATCH]
                numbers, real = map(torch.from_numpy, train.occurrences.padded(batch))
                logits = logits_of(model, train.states[numbers].float(), real)
                optimizer.zero_grad()
                model.loss(logits, torch.from_numpy(train.texts.labels[batch])).backward()
                optimizer.step()
            right = accuracy(model, reading.parts["dev"])
            if right > best:
                best, best_epoch = right, epoch + 1
                best_weights = {name: value.clone() for name, value in model.state_dict().items()}
            if patience is not None and epoch + 1 - best_epoch >= patience:
                break
    model.load_state_dict(best_weights)
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
    predictions = torch.cat([model.predicted(logits_of(model, states, real)) for states, real in read.batches()])
    return float((predictions.numpy() == read.texts.labels).mean())


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


# What a frozen encoder makes of each word in its text: its last hidden state, kept on disk part by part.


PART, BATCH = 512, 32
"""Texts between two looks at the disk, some seconds of work; and texts that run together."""


def encoder_named(encoder: str) -> InstrumentedModel:
    """The body of a Hugging Face model, by its folder or hub name; a head on it would only cost time."""
    model = load(encoder)
    if model.hugging_face.has_both_sides:
        raise BadInput(f"{encoder} is an encoder with a decoder: give one that only reads, such as a BERT.")
    body: Any = model.model.base_model
    return model if body is model.model else load(body, tokenizer=model.tokenizer)


def read_states(
    model: InstrumentedModel, texts: Sequence[Sequence[str]], folder: Path, watch: Callable[[int, int], None]
) -> Float16[Tensor, "word width"]:
    """The states of the words of all texts behind each other, in half precision: two bytes a number, as on disk.

    Parts are kept in `folder`, and what is kept is not computed again; parts of other texts or of another model are
    refused. `watch` is told how many texts are done, and of how many.
    """
    store = Store(folder, "encoder", {"encoder": Path(model.name).name})

    def read(part: Sequence[Sequence[str]], _start: int) -> Tensor:
        return torch.cat(word_states(model, list(map(list, part)))).half()

    return torch.cat(list(store.in_parts(texts, PART, read, list, watch)))


def word_states(model: InstrumentedModel, texts: Sequence[list[str]]) -> list[Float[Tensor, "word width"]]:
    """The last hidden states of the words of each text: the mean over the pieces of a word, special tokens left out."""
    reader = model.hugging_face
    sources = [source_of(reader, words, longest=reader.longest) for words in texts]
    found: dict[int, Tensor] = {}
    with torch.no_grad(), in_evaluation(model.model, model.model):
        for batch in by_length([len(source) for source in sources], BATCH if reader.takes_padding else 1):
            hidden = model.model(**reader.batch_of([sources[place].inputs for place in batch])).last_hidden_state
            for place, states in zip(batch, hidden.float().cpu(), strict=True):
                found[place] = means_of_pieces(states, sources[place].word_ids, len(texts[place]))
    return [found[place] for place in range(len(texts))]


def means_of_pieces(
    states: Float[Tensor, "token width"], word_ids: WordIds, words: int
) -> Float[Tensor, "{words} width"]:
    """The mean state of the pieces of each word; tokens behind the last one are padding.

    A word that the tokenizer makes nothing of has zeros, and so no polarity and no attention score.

    >>> means_of_pieces(torch.tensor([[9.0], [1.0], [3.0], [5.0], [9.0]]), (None, 0, 0, 1), 2).tolist()
    [[2.0], [5.0]]
    """
    places = torch.tensor([place for place, word in enumerate(word_ids) if word is not None])
    owners = torch.tensor([word for word in word_ids if word is not None])
    sums = states.new_zeros(words, states.shape[1]).index_add_(0, owners, states[places])
    pieces = torch.bincount(owners, minlength=words).clamp(min=1)
    return sums / pieces[:, None]
