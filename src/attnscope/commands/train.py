"""`attnscope train`: a model trained here, from a seed."""

import inspect
from pathlib import Path
from typing import Annotated

import typer

from ..errors import BadInput, check_number
from ..progress import quiet_libraries, told_in_log, working
from .answering import resumable, say

MOST_STEPS = 10**9
"""Each step has a seed of its own below this."""


@resumable()
def train(
    task: Annotated[
        str,
        typer.Argument(
            help='What to train: "demo" makes the shipped model again, "agreement" the model of Abnar & Zuidema (2020),'
            ' "classifier" fine-tunes a Hugging Face encoder, "sst5" trains the sentiment model of Wu, Nguyen'
            " & Ong (2020)."
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="The folder of the model; named after the task by default.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed makes the same model.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a training that was stopped.")] = False,
    steps: Annotated[int | None, typer.Option(help="How many updates at most; each task has its own number.")] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="What to learn from. agreement: a file that `attnscope data build agreement` wrote, or Linzen's .tsv;"
            ' the shipped grammar without one. classifier: sst, or JSON lines with "text" and "label".'
            " sst5: sst, or a folder laid out like it."
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="What a classifier is fine-tuned from: a hub name or a folder.")
    ] = None,
    vectors: Annotated[
        str | None,
        typer.Option(
            help='The word vectors of sst5: a GloVe file, "glove-50" for the package of the extra lab (if it is there,'
            ' the default), or "scratch" to learn them.'
        ),
    ] = None,
) -> None:
    """Train a small model here, from a seed.

    Example: attnscope train demo --out my-demo --seed 1
    """
    with working("Starting"):
        from ..lab import TASKS
        from ..lab.lesson import is_finished
    if task not in TASKS:
        raise BadInput(f"There is no task {task!r}: choose {', '.join(TASKS)}.")
    if steps is not None:
        check_number("--steps", steps, 1, MOST_STEPS)
    options = {"steps": steps, "data": data, "model": model, "vectors": vectors}
    given = {name: value for name, value in options.items() if value is not None}
    if unknown := [name for name in given if name not in inspect.signature(TASKS[task]).parameters]:
        raise BadInput(f"The task {task} takes no --{unknown[0]}.")
    folder = out or Path(task)
    if resume and is_finished(folder):
        say(f"{folder} holds a finished training, which is left as it is: choose another folder for a new one.")
        return
    with quiet_libraries(), told_in_log(f"Training {task}"):
        written = TASKS[task](folder, seed=seed, resume=resume, **given)
    say(f"Written: {written}")
