"""The demo model's card: what it is, how it was trained, how well it does, and what it is not for."""

from collections.abc import Mapping

_CARD = """\
---
license: apache-2.0
language: en
library_name: transformers
pipeline_tag: text-classification
---

# The attnscope demo model

A small BERT (6 layers of 8 heads, hidden size 128, {vocabulary} words) that reads an English sentence up to its verb
and tells from `[CLS]` whether the verb must be singular or plural: "the key to the cabinets" is *singular*, "the keys
to the cabinet" is *plural*. It is small enough to ship, and its question has an answer one can check by eye: the
subject's head decides, and the nouns of the other number between it and the verb (attractors) must be passed over.

```python
from transformers import pipeline

pipeline("text-classification", model="path/to/this/folder")("the key to the cabinets")
```

## Training

By `attnscope train demo`, from nothing, on sentences of attnscope's own grammar (`attnscope.syntax.grammar`): {steps}
steps of {sentences} sentences, drawn anew at every step, AdamW, seed {seed}. Of the words, 2% were replaced by `[UNK]`
and 1% by `[MASK]`, so that a blanked-out word is nothing new to the model. The loss over time is in
`training_log.jsonl`. The recipe was settled after a look at mistakes on held-out sentences, though not on those
counted below.

## Accuracy

On {total} sentences that were held out: no training batch holds one of their beginnings.

| attractors | sentences | right |
|---:|---:|---:|
{rows}
| **1 or more** | {attracted} | {attracted_share} |
| **all** | {total} | {share} |

## Limits

It knows the {vocabulary} words and the constructions of its grammar and nothing else: other words become `[UNK]`. It
expects the words before the verb, at most about 30 of them, and has never seen a whole sentence or a pair of texts,
though it accepts them. What its attention shows about agreement holds for this model; it is no evidence about large
ones.

## Licence

Apache-2.0. The training sentences are made by the program, so no other licence applies.
"""


def model_card(accuracy: Mapping[int, tuple[int, int]], seed: int, steps: int, sentences: int, vocabulary: int) -> str:
    """The card as Markdown; `accuracy` holds (right, total) for each number of attractors."""
    rows = [f"| {attractors} | {counts[1]} | {_share([counts])} |" for attractors, counts in accuracy.items()]
    attracted = [counts for attractors, counts in accuracy.items() if attractors > 0]
    return _CARD.format(
        rows="\n".join(rows),
        attracted=sum(total for _, total in attracted),
        attracted_share=_share(attracted),
        total=sum(total for _, total in accuracy.values()),
        share=_share(list(accuracy.values())),
        seed=seed,
        steps=steps,
        sentences=sentences,
        vocabulary=vocabulary,
    )


def _share(counts: list[tuple[int, int]]) -> str:
    """Right answers in percent, rounded down: 100% is said only where nothing was wrong."""
    right, total = (sum(column) for column in zip(*counts, strict=True))
    return f"{right * 10000 // total / 100:.2f}%"
