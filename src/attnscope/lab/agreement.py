"""The recipe of the agreement model: trained on agreement examples, stopped when held-out ones get no better."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import torch

from ..errors import BadInput
from ..syntax import agreement_sentences
from .batches import Batches
from .data import NUMBERS, AgreementExample, read_examples, read_linzen
from .lesson import CODE, Lesson, answers, best_look, card, count_right, fingerprint, learn_into, measure_answers
from .models import AgreementTransformer
from .train import EarlyStopping, LogRow, Measurement, adam, warmup_then_decay
from .vocabulary import Vocabulary

STEPS = 6000
SENTENCES_PER_STEP = 64
PEAK, WARMUP = 1e-3, 300
STEPS_PER_LOOK, PATIENCE = 250, 8
BLANKED = 0.02
"""The share of words that training replaces by [UNK], so that a blanked-out word is nothing new to the model."""
EXAMPLES_AT_ONCE = 256
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
    `resume`, an unfinished training continues from there and ends with the very same weights.
    """
    source = "sentences of attnscope's own grammar" if data is None else Path(data).name

    def parts() -> Parts:
        return split(grammar_examples(GRAMMAR_SENTENCES) if data is None else read_agreement(data))

    return train_on(out, parts, source, seed=seed, resume=resume, steps=steps)


def train_on(
    out: Path, parts: Callable[[], Parts], source: str, *, seed: int = 0, resume: bool = False, **options: Any
) -> Path:
    """Train on the first of the `parts`, validate on the second, and test on the third for the card.

    `source` says in the card where they come from. They are read only where there is something left to train. Further
    options are those of `agreement_lesson`.
    """
    return learn_into(out, lambda: agreement_lesson(parts(), source, seed=seed, **options), seed, resume)


def agreement_lesson(
    parts: Parts,
    source: str,
    *,
    seed: int = 0,
    steps: int = STEPS,
    settings: Mapping[str, Any] | None = None,
    blanked: float = BLANKED,
) -> Lesson[AgreementTransformer]:
    """Adam with an L2 penalty of 1e-4, as the paper's authors have it; the vocabulary is that of the training part."""
    training, validation, testing = parts
    model = AgreementTransformer(Vocabulary.of(example.words for example in training), **(settings or {}))
    held_out = _short_enough(model, validation)
    return Lesson(
        task="agreement",
        model=model,
        measure=_measure_of(model, _short_enough(model, training), seed, blanked),
        steps=steps,
        rate=warmup_then_decay(PEAK, min(WARMUP, steps // 4), steps),
        recipe={
            "examples": fingerprint(
                f"{' '.join(example.words)}\t{example.number}\n" for example in [*training, *validation]
            ),
            "settings": asdict(model.settings),
            "blanked": blanked,
        },
        card=lambda log: _card(model, log, source, len(training), seed, accuracy_by_attractors(model, testing)),
        save=model.save,
        optimizer=partial(adam, penalty=1e-4),
        stopping=EarlyStopping(lambda: _share_right(model, held_out), STEPS_PER_LOOK, PATIENCE),
    )


def grammar_examples(count: int, seed: int = 0) -> list[AgreementExample]:
    """Examples from our own grammar."""
    return [
        AgreementExample(item.prefix, item.number, item.attractors, item.subject, item.sentence.words[item.verb])  # type: ignore[arg-type] # the grammar knows only the two numbers
        for item in islice(agreement_sentences(seed), count)
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
    short = _short_enough(model, examples)
    right = (number == example.number for number, example in zip(numbers_of(model, short), short, strict=True))
    return count_right((example.attractors for example in short), right)


def numbers_of(model: AgreementTransformer, examples: Sequence[AgreementExample]) -> list[str]:
    """The number that the model gives to the verb of each example, in their order."""
    found = answers(
        examples,
        lambda example: len(example.words),
        lambda batch: model(**model.batch([example.words for example in batch])),
        EXAMPLES_AT_ONCE,
    )
    return [NUMBERS[index] for index in found]


def _share_right(model: AgreementTransformer, examples: Sequence[AgreementExample]) -> float:
    found = numbers_of(model, examples)
    return sum(number == example.number for number, example in zip(found, examples, strict=True)) / len(examples)


def _measure_of(
    model: AgreementTransformer, examples: Sequence[AgreementExample], seed: int, blanked: float
) -> Callable[[int], Measurement]:
    batches = Batches([len(example.words) for example in examples], SENTENCES_PER_STEP, seed)
    unknown = model.vocabulary.special["unk"]

    def measure(step: int) -> Measurement:
        batch = [examples[place] for place in batches[step]]
        dice = Random(f"{seed} {step}")
        sentences = [[unknown if dice.random() < blanked else word for word in example.words] for example in batch]
        targets = torch.tensor([NUMBERS.index(example.number) for example in batch])
        return measure_answers(model(**model.batch(sentences)), targets)

    return measure


def _short_enough(model: AgreementTransformer, examples: Sequence[AgreementExample]) -> list[AgreementExample]:
    """The examples that the model has positions for."""
    return [example for example in examples if len(example.words) + 2 <= model.settings.positions]


_ABOUT = """\
{layers} layers of {heads} heads, width {width}, {words} words: blocks as in GPT-2 without the causal mask, after
Abnar & Zuidema 2020. It reads `[CLS]`, the words before a verb and `[EOS]` in the verb's place, and tells at `[CLS]`
whether the verb must be singular or plural."""
_TRAINING = """\
By `attnscope train agreement` on {sentences} examples ({source}), seed {seed}. Dropout: {residual_dropout} behind
attention and feed-forward, {attention_dropout} of attention weights, {embedding_dropout} of embeddings. It was trained
for {steps} steps; the weights are those of step {best_step}, where {best:.2%} of the validation examples were right.
The loss and what was seen on the way are in `training_log.jsonl`."""
_ACCURACY = """\
On {total} examples that were kept for testing; no training or validation example has the same words.

| attractors | examples | right |
|---:|---:|---:|
{rows}
| **all** | {total} | {share} |"""


def _card(
    model: AgreementTransformer,
    log: Sequence[LogRow],
    source: str,
    sentences: int,
    seed: int,
    accuracy: Mapping[int, tuple[int, int]],
) -> str:
    """The card; `accuracy` holds (right, total) for each number of attractors."""
    settings, best = asdict(model.settings), best_look(log)
    right, total = (sum(column) for column in zip(*accuracy.values(), strict=True))
    rows = [f"| {attractors} | {of} | {good / of:.2%} |" for attractors, (good, of) in accuracy.items()]
    return card(
        "An agreement model",
        _ABOUT.format(**settings, words=len(model.vocabulary)),
        code=CODE.format(text="the key to the cabinets"),
        training=_TRAINING.format(
            **settings,
            source=source,
            sentences=sentences,
            seed=seed,
            steps=log[-1]["step"],
            best=best["validation"],
            best_step=best["step"],
        ),
        accuracy=_ACCURACY.format(rows="\n".join(rows), total=total, share=f"{right / total:.2%}"),
    )
