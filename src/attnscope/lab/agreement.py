"""The recipe of the agreement model: trained on agreement examples, stopped when held-out ones get no better."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import torch
from torch import nn
from torch.optim import Adam, Optimizer

from ..errors import BadInput
from ..syntax import agreement_sentences
from .batches import Batches
from .data import NUMBERS, AgreementExample, read_examples, read_linzen
from .folder import finish, unfinished_training
from .models import AgreementTransformer
from .train import EarlyStopping, LogRow, Measurement, train, warmup_then_decay
from .vocabulary import Vocabulary

STEPS = 6000
SENTENCES_PER_STEP = 64
PEAK, WARMUP = 1e-3, 300
STEPS_PER_LOOK, PATIENCE = 250, 8
BLANKED = 0.02
"""The share of words that training replaces by [UNK], so that a blanked-out word is nothing new to the model."""
GRAMMAR_SENTENCES = 12_000
SHARES = 20
"""Of so many parts, decided by the words alone, the first validates, the second tests, and the others train."""


Parts = tuple[list[AgreementExample], list[AgreementExample], list[AgreementExample]]
"""Training, validation and test examples."""


def train_agreement(
    out: Path, seed: int = 0, resume: bool = False, steps: int = STEPS, data: str | Path | None = None
) -> Path:
    """Train an `AgreementTransformer` into the folder `out` and return it: model, vocabulary, log and card.

    `data` is a file of examples (`attnscope data build agreement` writes such), the file of Linzen et al. 2016, or
    nothing for sentences of our own grammar. Until the end a subfolder `unfinished` holds the checkpoint. With
    `resume`, an unfinished training goes on from there and ends with the very same weights.
    """
    source = "sentences of attnscope's own grammar" if data is None else Path(data).name
    return train_on(
        out,
        lambda: split(grammar_examples(GRAMMAR_SENTENCES) if data is None else read_agreement(data)),
        source,
        seed=seed,
        resume=resume,
        steps=steps,
    )


def train_on(
    out: Path,
    parts: Callable[[], Parts],
    source: str,
    *,
    seed: int = 0,
    resume: bool = False,
    steps: int = STEPS,
    settings: Mapping[str, Any] | None = None,
    blanked: float = BLANKED,
) -> Path:
    """Train on the first of the `parts`, validate on the second, and test on the third for the card.

    `source` says in the card where they come from. They are read only where there is something left to train.
    """
    unfinished = unfinished_training(out, resume, seed)
    if unfinished is None:
        return out
    training, validation, testing = parts()
    checkpoint = unfinished / "checkpoint.safetensors"
    model, log = trained(training, validation, checkpoint, seed, steps, settings=settings, blanked=blanked)
    card = agreement_card(
        source=source,
        sentences=len(training),
        seed=seed,
        log=log,
        settings=asdict(model.settings),
        words=len(model.vocabulary),
        accuracy=accuracy_by_attractors(model, testing),
    )
    finish(out, log, card, model.save)
    return out


def trained(
    training: Sequence[AgreementExample],
    validation: Sequence[AgreementExample],
    checkpoint: Path,
    seed: int = 0,
    steps: int = STEPS,
    *,
    settings: Mapping[str, Any] | None = None,
    blanked: float = BLANKED,
) -> tuple[AgreementTransformer, list[LogRow]]:
    """A model trained on these examples, best on the validation examples, and its log.

    The vocabulary is that of the training examples. The same seed makes the same model; a checkpoint is gone on with.
    """
    vocabulary = Vocabulary.of(example.words for example in training)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AgreementTransformer(vocabulary, **(settings or {}))
        log = train(
            model,
            _measuring(model, _fitting(model, training), seed, blanked),
            warmup_then_decay(PEAK, min(WARMUP, steps // 4), steps),
            steps,
            recipe={
                "task": "agreement",
                "seed": seed,
                "steps": steps,
                "examples": _fingerprint([*training, *validation]),
                "settings": asdict(model.settings),
                "blanked": blanked,
            },
            checkpoint=checkpoint,
            optimizer=adam,
            stopping=EarlyStopping(_validating(model, _fitting(model, validation)), STEPS_PER_LOOK, PATIENCE),
        )
    return model.eval(), log


def adam(model: nn.Module) -> Optimizer:
    """Adam with an L2 penalty of 1e-4, as the paper's authors have it."""
    return Adam(model.parameters(), weight_decay=1e-4, fused=True)


def grammar_examples(count: int, seed: int = 0) -> list[AgreementExample]:
    """Examples from our own grammar."""
    drawn = islice(agreement_sentences(seed), count)
    return [
        AgreementExample(item.prefix, item.number, item.attractors, item.subject, item.sentence.words[item.verb])  # type: ignore[arg-type] # the grammar knows only the two numbers
        for item in drawn
    ]


def read_agreement(data: str | Path) -> list[AgreementExample]:
    """The examples of a file: JSON lines that we have built, or the tab-separated file of Linzen et al. 2016."""
    path = Path(data)
    if not path.is_file():
        raise BadInput(f"There is no file {path}: give one that attnscope data build agreement has written.")
    reader = read_linzen if ".tsv" in path.suffixes[-2:] else read_examples
    return list(reader(path))


def split(examples: Sequence[AgreementExample]) -> Parts:
    """Training, validation and test examples; the same words are never in two of them."""
    parts: tuple[list[AgreementExample], ...] = ([], [], [])
    for example in examples:
        share = crc32(" ".join(example.words).encode()) % SHARES
        parts[{0: 1, 1: 2}.get(share, 0)].append(example)
    if not all(parts):
        raise BadInput(
            f"{len(examples)} examples are too few to train, validate and test on: give at least some hundreds."
        )
    return parts[0], parts[1], parts[2]


def accuracy_by_attractors(
    model: AgreementTransformer, examples: Sequence[AgreementExample]
) -> dict[int, tuple[int, int]]:
    """For each number of attractors: how many verbs the model gets right, and of how many."""
    counts: dict[int, tuple[int, int]] = {}
    known = _fitting(model, examples)
    for example, answer in zip(known, answers(model, known), strict=True):
        right, total = counts.get(example.attractors, (0, 0))
        counts[example.attractors] = (right + (answer == example.number), total + 1)
    return dict(sorted(counts.items()))


def answers(model: AgreementTransformer, examples: Sequence[AgreementExample]) -> list[str]:
    """What the model says to each example, in their order."""
    order = sorted(range(len(examples)), key=lambda place: len(examples[place].words))
    found: dict[int, str] = {}
    for start in range(0, len(order), 256):
        places = order[start : start + 256]
        with torch.no_grad():
            chosen = model(**model.batch([examples[place].words for place in places])).argmax(-1).tolist()
        found.update(zip(places, (NUMBERS[index] for index in chosen), strict=True))
    return [found[place] for place in range(len(examples))]


def _measuring(
    model: AgreementTransformer, examples: Sequence[AgreementExample], seed: int, blanked: float
) -> Callable[[int], Measurement]:
    batches = Batches([len(example.words) for example in examples], SENTENCES_PER_STEP, seed)
    unknown = model.vocabulary.special["unk"]

    def measure(step: int) -> Measurement:
        batch = [examples[place] for place in batches[step]]
        dice = Random(f"{seed} {step}")
        sentences = [[unknown if dice.random() < blanked else word for word in example.words] for example in batch]
        targets = torch.tensor([NUMBERS.index(example.number) for example in batch])
        logits = model(**model.batch(sentences))
        accuracy = (logits.argmax(-1) == targets).float().mean().item()
        return Measurement(nn.functional.cross_entropy(logits, targets), accuracy)

    return measure


def _validating(model: AgreementTransformer, examples: Sequence[AgreementExample]) -> Callable[[], float]:
    def accuracy() -> float:
        found = answers(model, examples)
        return sum(said == example.number for said, example in zip(found, examples, strict=True)) / len(examples)

    return accuracy


def _fitting(model: AgreementTransformer, examples: Sequence[AgreementExample]) -> list[AgreementExample]:
    """The examples that the model has positions for."""
    return [example for example in examples if len(example.words) + 2 <= model.settings.positions]


def _fingerprint(examples: Sequence[AgreementExample]) -> str:
    """What tells these examples from others, in their order."""
    digest = hashlib.sha256()
    for example in examples:
        digest.update(f"{' '.join(example.words)}\t{example.number}\n".encode())
    return digest.hexdigest()


# The agreement model's card: what it is, what it learned from, and how well it does.


_CARD = """\
# An agreement model

{layers} layers of {heads} heads, width {width}, {words} words: blocks as in GPT-2 without the causal mask, after
Abnar & Zuidema 2020. It reads `[CLS]`, the words before a verb and `[EOS]` in the verb's place, and tells at `[CLS]`
whether the verb must be singular or plural.

```python
from attnscope.lab.models import AgreementTransformer

model = AgreementTransformer.load("path/to/this/folder").instrumented()
record = model.record("the key to the cabinets")
```

## Training

By `attnscope train agreement` on {sentences} examples ({source}), seed {seed}. Dropout: {residual_dropout} behind
attention and feed-forward, {attention_dropout} of attention weights, {embedding_dropout} of embeddings. It was trained
for {steps} steps; the weights are those of step {best_step}, where {best:.2%} of the validation examples were right.
The loss and what was seen on the way are in `training_log.jsonl`.

## Accuracy

On {total} examples that were kept for testing; no training or validation example has the same words.

| attractors | examples | right |
|---:|---:|---:|
{rows}
| **all** | {total} | {share} |
"""


def agreement_card(
    source: str,
    sentences: int,
    seed: int,
    log: Sequence[LogRow],
    settings: Mapping[str, Any],
    words: int,
    accuracy: Mapping[int, tuple[int, int]],
) -> str:
    """The card as Markdown; `accuracy` holds (right, total) for each number of attractors."""
    # the first of equal figures is the one whose weights were kept
    best = max((row for row in log if "validation" in row), key=lambda row: float(row["validation"]))
    right, total = (sum(column) for column in zip(*accuracy.values(), strict=True))
    rows = [f"| {attractors} | {of} | {good / of:.2%} |" for attractors, (good, of) in accuracy.items()]
    return _CARD.format(
        **settings,
        words=words,
        source=source,
        sentences=sentences,
        seed=seed,
        steps=log[-1]["step"],
        best=best["validation"],
        best_step=best["step"],
        rows="\n".join(rows),
        total=total,
        share=f"{right / total:.2%}",
    )
