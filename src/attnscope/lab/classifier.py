"""The recipe of a classifier: any Hugging Face encoder, fine-tuned on texts with one of two labels."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from ..capture.families import longest_input
from ..capture.loading import SHIPPED
from ..errors import BadInput
from .batches import Batches
from .data.labelled import Labelled, labelled_splits
from .lesson import (
    CODE,
    Lesson,
    best_look,
    card,
    fingerprint,
    learn_into,
    measure_answers,
    share_right,
    write_hugging_face,
)
from .train import EarlyStopping, LogRow, Measurement, warmup_then_decay

EPOCHS, TEXTS_PER_STEP, PEAK = 3, 32, 5e-5
MOST_TOKENS = 256


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

    `model` is a hub name or a folder, `data` the data set "sst" or "imdb" or a JSON-lines file with "text" and
    "label"; three epochs unless `steps` says otherwise. Data sets are looked for in `place` before $ATTNSCOPE_DATA.
    Until the end a subfolder `unfinished` holds the checkpoint, from which `resume` continues to the very same weights.
    """
    if model is None:
        raise BadInput("A classifier is fine-tuned from a model: name one with --model.")
    named, encoder = str(data), str(model)
    return learn_into(out, lambda: _lesson(encoder, named, labelled_splits(named, place), seed, steps), seed, resume)


def _lesson(
    encoder: str, data: str, splits: Mapping[str, Sequence[Labelled]], seed: int, steps: int | None
) -> Lesson[PreTrainedModel]:
    """All of the encoder is fine-tuned; the weights are those of the best epoch."""
    labels = sorted({item.label for item in splits["train"]})
    if len(labels) != 2:
        raise BadInput(f"A classifier is trained on two labels here, and {data} has {len(labels)}.")
    classifier, tokenizer = _loaded(encoder, labels)
    limit = longest_input(classifier)
    longest = MOST_TOKENS if limit is None else min(MOST_TOKENS, limit)
    batches = Batches([len(item.text) for item in splits["train"]], TEXTS_PER_STEP, seed)
    planned = EPOCHS * len(batches) if steps is None else steps
    learned_from = [*splits["train"], *splits["dev"]]

    def logits_of(items: Sequence[Labelled]) -> Any:
        texts = [item.text for item in items]
        inputs = tokenizer(texts, padding=True, truncation=True, max_length=longest, return_tensors="pt")
        return classifier(**inputs).logits

    def measure(step: int) -> Measurement:
        batch = [splits["train"][place] for place in batches[step]]
        return measure_answers(logits_of(batch), torch.tensor([labels.index(item.label) for item in batch]))

    def accuracy(items: Sequence[Labelled]) -> float:
        return share_right(
            items, lambda item: len(item.text), logits_of, lambda item: labels.index(item.label), TEXTS_PER_STEP
        )

    def card_of(log: Sequence[LogRow]) -> str:
        best = best_look(log)
        return card(
            f"A classifier fine-tuned from {Path(encoder).name}",
            f"It tells whether a text is {' or '.join(labels)}.",
            header=_HEADER,
            code=CODE.format(text="a text"),
            training=_TRAINING.format(
                data=Path(data).name,
                labels=" or ".join(labels),
                texts=len(splits["train"]),
                dev=len(splits["dev"]),
                size=TEXTS_PER_STEP,
                peak=PEAK,
                seed=seed,
                step=best["step"],
                validation=best["validation"],
            ),
            accuracy=f"On {len(splits['test'])} test texts, used for nothing else,"
            f" **{accuracy(splits['test']):.2%}** are right.",
        )

    return Lesson(
        task="classifier",
        model=classifier,
        measure=measure,
        steps=planned,
        rate=warmup_then_decay(PEAK, max(1, planned // 10), planned),
        recipe={
            "model": Path(encoder).name,
            "texts": fingerprint(f"{item.text}\t{item.label}\n" for item in learned_from),
        },
        card=card_of,
        save=lambda folder: write_hugging_face(folder, classifier, tokenizer),
        stopping=EarlyStopping(lambda: accuracy(splits["dev"]), len(batches), EPOCHS),
    )


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


_HEADER = """\
---
library_name: transformers
pipeline_tag: text-classification
---

"""
_TRAINING = """\
By `attnscope train classifier --model … --data …` on {texts} texts ({data}), {labels}: AdamW, a learning rate of {peak}
that rises for a tenth of the steps and then falls in a line, {size} texts to a step, seed {seed}. After every epoch it
was looked at on {dev} validation texts; the weights are those of step {step}, with {validation:.2%} of them right."""
