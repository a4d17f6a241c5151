"""The recipe of a classifier: any Hugging Face encoder, fine-tuned on texts with one of two labels."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoModelForSequenceClassification, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from ..capture.families import longest_input
from ..capture.loading import SHIPPED
from ..errors import BadInput
from .batches import Batches
from .folder import finish, unfinished_training, write_hugging_face
from .sentiment import Labelled, labelled_splits
from .train import EarlyStopping, LogRow, Measurement, train, warmup_then_decay

EPOCHS, TEXTS_PER_STEP, PEAK = 3, 32, 5e-5
MOST_TOKENS = 256
CHECKPOINT_SECONDS = 30.0

_CARD = """\
---
library_name: transformers
pipeline_tag: text-classification
---

# A classifier fine-tuned from {name}

By `attnscope train classifier --model … --data …` on {texts} texts ({data}), {labels}: AdamW, a learning rate of {peak}
that rises for a tenth of the steps and then falls in a line, {size} texts to a step, seed {seed}. After every epoch it
was looked at on {dev} validation texts; the weights are those of step {step}, with {validation:.2%} of them right.

On {test} test texts, used for nothing else, **{accuracy:.2%}** are right.
"""


def train_classifier(
    out: Path,
    seed: int = 0,
    resume: bool = False,
    steps: int | None = None,
    model: str | None = None,
    data: str = "sst",
    place: str | Path | None = None,
) -> Path:
    """Fine-tune a Hugging Face encoder into the folder `out` and return it: an ordinary Hugging Face folder.

    `model` is a hub name or a folder, `data` the data set "sst" or a JSON-lines file with "text" and "label"; three
    epochs unless `steps` says otherwise. `place` is where data sets lie, before $ATTNSCOPE_DATA. Until the end a
    subfolder `unfinished` holds the checkpoint, from which `resume` goes on to the very same weights.
    """
    if model is None:
        raise BadInput("A classifier is fine-tuned from a model: name one with --model.")
    unfinished = unfinished_training(out, resume, seed)
    if unfinished is None:
        return out
    splits = labelled_splits(str(data), place)
    labels = sorted({item.label for item in splits["train"]})
    if len(labels) != 2:
        raise BadInput(f"A classifier is trained on two labels here, and {data} has {len(labels)}.")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        classifier, tokenizer = _loaded(str(model), labels)
        read = _Reading(classifier, tokenizer, labels)
        batches = Batches([len(item.text) for item in splits["train"]], TEXTS_PER_STEP, seed)
        planned = EPOCHS * len(batches) if steps is None else steps
        log = train(
            classifier,
            read.measuring(splits["train"], batches),
            warmup_then_decay(PEAK, max(1, planned // 10), planned),
            planned,
            recipe={
                "task": "classifier",
                "model": Path(str(model)).name,
                "seed": seed,
                "steps": planned,
                "texts": _fingerprint([*splits["train"], *splits["dev"]]),
            },
            checkpoint=unfinished / "checkpoint.safetensors",
            seconds_between_checkpoints=CHECKPOINT_SECONDS,
            stopping=EarlyStopping(lambda: read.accuracy(splits["dev"]), len(batches), EPOCHS),
        )
    classifier.eval()
    card = _card(log, splits, labels, Path(str(model)).name, Path(str(data)).name, seed, read.accuracy(splits["test"]))
    finish(out, log, card, lambda folder: write_hugging_face(folder, classifier, tokenizer))
    return out


class _Reading:
    """The model with its tokenizer and the order of its labels."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, labels: Sequence[str]) -> None:
        self.model, self.tokenizer, self.labels = model, tokenizer, list(labels)
        limit = longest_input(model)
        self.longest = MOST_TOKENS if limit is None else min(MOST_TOKENS, limit)

    def logits(self, texts: Sequence[str]) -> Any:
        inputs = self.tokenizer(
            list(texts), padding=True, truncation=True, max_length=self.longest, return_tensors="pt"
        )
        return self.model(**inputs).logits

    def measuring(self, items: Sequence[Labelled], batches: Batches) -> Callable[[int], Measurement]:
        def measure(step: int) -> Measurement:
            batch = [items[place] for place in batches[step]]
            targets = torch.tensor([self.labels.index(item.label) for item in batch])
            logits = self.logits([item.text for item in batch])
            accuracy = (logits.argmax(-1) == targets).float().mean().item()
            return Measurement(nn.functional.cross_entropy(logits, targets), accuracy)

        return measure

    def accuracy(self, items: Sequence[Labelled]) -> float:
        """The share of right answers."""
        ordered = sorted(items, key=lambda item: len(item.text))
        right = 0
        for start in range(0, len(ordered), TEXTS_PER_STEP):
            batch = ordered[start : start + TEXTS_PER_STEP]
            with torch.no_grad():
                chosen = self.logits([item.text for item in batch]).argmax(-1).tolist()
            right += sum(self.labels[index] == item.label for index, item in zip(chosen, batch, strict=True))
        return right / len(ordered)


def _loaded(name: str, labels: Sequence[str]) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """An encoder with a fresh head for these labels, and its tokenizer."""
    shipped = SHIPPED / name
    place = str(shipped if name and (shipped / "config.json").is_file() else name)
    named = dict(enumerate(labels))
    try:
        tokenizer = AutoTokenizer.from_pretrained(place)
        model = AutoModelForSequenceClassification.from_pretrained(
            place,
            num_labels=len(labels),
            id2label=named,
            label2id={label: index for index, label in named.items()},
            ignore_mismatched_sizes=True,
            dtype=torch.float32,
        )
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".:")
        raise BadInput(f'The model "{name}" cannot be fine-tuned: {reason}.') from None
    model.config.architectures = [type(model).__name__]
    model.config.problem_type = "single_label_classification"
    if tokenizer.pad_token_id is None:
        raise BadInput(f"The tokenizer of {name} has no padding token, so texts of several lengths cannot be batched.")
    return model, tokenizer


def _card(
    log: Sequence[LogRow],
    splits: dict[str, list[Labelled]],
    labels: Sequence[str],
    name: str,
    data: str,
    seed: int,
    accuracy: float,
) -> str:
    # the first of equal figures is the one whose weights were kept
    best = max((row for row in log if "validation" in row), key=lambda row: float(row["validation"]))
    return _CARD.format(
        name=name,
        data=data,
        labels=" or ".join(labels),
        texts=len(splits["train"]),
        dev=len(splits["dev"]),
        test=len(splits["test"]),
        size=TEXTS_PER_STEP,
        peak=PEAK,
        seed=seed,
        step=best["step"],
        validation=best["validation"],
        accuracy=accuracy,
    )


def _fingerprint(items: Sequence[Labelled]) -> str:
    """What tells these texts from others, in their order."""
    digest = hashlib.sha256()
    for item in items:
        digest.update(f"{item.text}\t{item.label}\n".encode())
    return digest.hexdigest()
