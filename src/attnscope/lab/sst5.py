"""The recipe of the sentiment model for five classes: trained on the sentences of SST, after Wu, Nguyen & Ong 2020.

Theirs are batches of 500 and 200 epochs on a GPU, and their code leaves dropout off after the first validation. Here
batches are smaller, so that a CPU needs fewer epochs, and dropout stays on.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import Adam, Optimizer

from .batches import Batches
from .data.sst_trees import SentimentTree, tree_splits
from .folder import finish, unfinished_training
from .models.sentiment import SPECIAL, SentimentTransformer
from .rates import constant
from .stopping import EarlyStopping
from .train import LogRow, Measurement, train
from .vocabulary import Vocabulary
from .word_vectors import word_vectors

EPOCHS, SENTENCES_PER_STEP, RATE = 30, 50, 1e-4
PATIENCE = 5
"""How many epochs in a row may bring nothing better on validation sentences."""
SEEN = 2
"""How often a word must stand in training to get a vector learned from scratch; rarer ones train the unknown word."""
SENTENCES_AT_ONCE = 128
CHECKPOINT_SECONDS = 30.0

_CARD = """\
# A sentiment model for five classes

{layers} layers of {heads} heads, width {width}, {parameters:,} trained parameters, after Wu, Nguyen & Ong 2020: words
as vectors, no positions, and a local attention that reads the answer. {source}

```python
from attnscope.lab.models import SentimentTransformer

model = SentimentTransformer.load("path/to/this/folder").instrumented()
record = model.record("a lovely film")
```

## Training

By `attnscope train sst5` on {sentences} sentences ({data}), seed {seed}: Adam, a learning rate of {rate}, weight decay
1e-4, {size} sentences to a step, probabilities by {probabilities}. It was trained for {steps} steps and looked at after
every epoch on {dev} validation sentences; the weights are those of step {step}, with {validation:.2%} of them right.

On {test} test sentences, used for nothing else, **{accuracy:.2%}** are right.
"""


def train_sst5(
    out: Path,
    seed: int = 0,
    resume: bool = False,
    steps: int | None = None,
    data: str | Path = "sst",
    vectors: str | Path | None = None,
    place: str | Path | None = None,
) -> Path:
    """Train a `SentimentTransformer` for five classes into the folder `out` and return it: model, log and card.

    `data` is the data set "sst" or a folder with train.txt, dev.txt and test.txt like it. `vectors` is a GloVe file,
    "glove-50" for the package of 50 dimensions, or "scratch" to learn them; by default the package if it is there.
    `place` is where data sets lie, before $ATTNSCOPE_DATA. Until the end a subfolder `unfinished` holds the checkpoint,
    from which `resume` goes on to the very same weights.
    """
    return train_on_trees(
        out, lambda: tree_splits(data, place), Path(data).name, vectors=vectors, seed=seed, resume=resume, steps=steps
    )


def train_on_trees(
    out: Path,
    splits_of: Callable[[], Mapping[str, Sequence[SentimentTree]]],
    source: str,
    *,
    vectors: str | Path | None = None,
    seed: int = 0,
    resume: bool = False,
    steps: int | None = None,
    epochs: int = EPOCHS,
    sentences_per_step: int | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Path:
    """Train on "train", validate on "dev" and test on "test" for the card, which names the `source` of the trees.

    They are read only where there is something left to train. `settings` are those of the model.
    """
    unfinished = unfinished_training(out, resume)
    if unfinished is None:
        return out
    splits = splits_of()
    model, log = trained(
        splits["train"],
        splits["dev"],
        unfinished / "checkpoint.safetensors",
        lambda: untrained(splits, vectors, **(settings or {})),
        seed,
        steps,
        epochs=epochs,
        sentences_per_step=sentences_per_step,
    )
    # the first of equal figures is the one whose weights were kept
    best = max((row for row in log if "validation" in row), key=lambda row: float(row["validation"]))
    card = _CARD.format(
        **asdict(model.settings),
        parameters=sum(weights.numel() for weights in model.parameters() if weights.requires_grad),
        sentences=len(splits["train"]),
        dev=len(splits["dev"]),
        test=len(splits["test"]),
        data=source,
        seed=seed,
        rate=RATE,
        size=sentences_per_step or SENTENCES_PER_STEP,
        steps=log[-1]["step"],
        step=best["step"],
        validation=best["validation"],
        accuracy=accuracy(model, splits["test"]),
    )
    finish(out, log, card, model.save)
    return out


def untrained(
    splits: Mapping[str, Sequence[SentimentTree]], vectors: str | Path | None, **settings: Any
) -> SentimentTransformer:
    """A model with the vectors of all words of the data, or with vectors to be learned of what training often has.

    Vectors that are given are not trained, so those of test words tell nothing about the test.
    """
    found = word_vectors(vectors, {word for trees in splits.values() for tree in trees for word in tree.words})
    if found is not None:
        return SentimentTransformer.for_sst5(found, **settings)
    counted = Counter(word.lower() for tree in splits["train"] for word in tree.words)
    words = sorted(word for word, count in counted.items() if count >= SEEN)
    return SentimentTransformer.learning(Vocabulary(words, special=SPECIAL), **settings)


def trained(
    training: Sequence[SentimentTree],
    validation: Sequence[SentimentTree],
    checkpoint: Path,
    make: Callable[[], SentimentTransformer],
    seed: int = 0,
    steps: int | None = None,
    *,
    epochs: int = EPOCHS,
    sentences_per_step: int | None = None,
    patience: int | None = None,
) -> tuple[SentimentTransformer, list[LogRow]]:
    """The model that `make` makes, trained on these sentences and best on the validation sentences, and its log.

    `steps` updates at most, or else `epochs` epochs. The same seed makes the same model; a checkpoint is gone on with.
    """
    size = SENTENCES_PER_STEP if sentences_per_step is None else sentences_per_step
    batches = Batches([len(tree.words) for tree in training], size, seed)
    planned = epochs * len(batches) if steps is None else steps
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = make()
        log = train(
            model,
            _measuring(model, training, batches),
            constant(RATE),
            planned,
            recipe={
                "task": "sst5",
                "seed": seed,
                "steps": planned,
                "sentences_per_step": size,
                "examples": _fingerprint([*training, *validation]),
                "settings": asdict(model.settings),
                "words": len(model.vocabulary),
            },
            checkpoint=checkpoint,
            seconds_between_checkpoints=CHECKPOINT_SECONDS,
            optimizer=adam,
            longest_gradient=math.inf,
            stopping=EarlyStopping(lambda: accuracy(model, validation), len(batches), patience or PATIENCE),
        )
    return model.eval(), log


def adam(model: nn.Module) -> Optimizer:
    """Adam with an L2 penalty of 1e-4, as the authors have it; word vectors that are given stay as they are."""
    learned = [weights for weights in model.parameters() if weights.requires_grad]
    return Adam(learned, weight_decay=1e-4, fused=True)


def answers(model: SentimentTransformer, sentences: Sequence[Sequence[str]]) -> list[int]:
    """The class that the model gives to each sentence, in their order."""
    order = sorted(range(len(sentences)), key=lambda place: len(sentences[place]))
    found: dict[int, int] = {}
    for start in range(0, len(order), SENTENCES_AT_ONCE):
        places = order[start : start + SENTENCES_AT_ONCE]
        with torch.no_grad():
            chosen = model(**model.batch([sentences[place] for place in places])).argmax(-1).tolist()
        found.update(zip(places, chosen, strict=True))
    return [found[place] for place in range(len(sentences))]


def accuracy(model: SentimentTransformer, trees: Sequence[SentimentTree]) -> float:
    """The share of sentences that get the right one of the five classes."""
    said = answers(model, [tree.words for tree in trees])
    return sum(answer == tree.label for answer, tree in zip(said, trees, strict=True)) / len(trees)


def _measuring(
    model: SentimentTransformer, trees: Sequence[SentimentTree], batches: Batches
) -> Callable[[int], Measurement]:
    def measure(step: int) -> Measurement:
        batch = [trees[place] for place in batches[step]]
        targets = torch.tensor([tree.label for tree in batch])
        logits = model(**model.batch([tree.words for tree in batch]))
        right = (logits.argmax(-1) == targets).float().mean().item()
        return Measurement(model.loss(logits, targets), right)

    return measure


def _fingerprint(trees: Sequence[SentimentTree]) -> str:
    """What tells these sentences from others, in their order."""
    digest = hashlib.sha256()
    for tree in trees:
        digest.update(f"{' '.join(tree.words)}\t{tree.label}\n".encode())
    return digest.hexdigest()
