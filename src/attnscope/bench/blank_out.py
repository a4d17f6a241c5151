"""Blank-out in batches against one run after another."""

from collections.abc import Iterator

from ..attribution import blank_out
from ..capture import load
from .figure import Figure, faster, taking_turns

TEXT = "the keys to the cabinet near the old doors that the tall man with the dogs often opens"


def measure_blank_out() -> Iterator[Figure]:
    """The shipped model, one sentence, every token blanked in turn."""
    model = load("demo")
    record = model.record(TEXT)
    seconds = taking_turns(
        {
            "batched": lambda: blank_out(record, model),
            "one by one": lambda: blank_out(record, model, batch_size=1),
        }
    )
    yield faster(f"{len(record.tokens)} tokens, demo model", "one by one", seconds["batched"], seconds["one by one"], 2)
