"""The agreement model's card: what it is, what it learned from, and how well it does."""

from collections.abc import Mapping, Sequence
from typing import Any

from .train import LogRow

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
