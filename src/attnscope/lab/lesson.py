"""A lesson: what a small model learns and how, and the folder it is trained into, whatever the task."""

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.optim import Optimizer
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..engine import UNFINISHED, checked_folder
from ..errors import check_number
from ..files import write_tensors, written_atomically
from .batches import in_order_of_length
from .train import EarlyStopping, LogRow, Measurement, Rate, adamw, train, write_log

LOG, CARD = "training_log.jsonl", "README.md"
CHECKPOINT_SECONDS = 30.0
Model = TypeVar("Model", bound=nn.Module)
Item = TypeVar("Item")


@dataclass(frozen=True, eq=False)
class Lesson(Generic[Model]):
    """A model that is about to learn: from which batches, how fast, until when, and what its card says afterwards."""

    task: str
    model: Model
    measure: Callable[[int], Measurement]
    """How wrong the model is on the batch of a step, which depends on the step alone."""
    steps: int
    """How many at most."""
    rate: Rate
    recipe: Mapping[str, Any]
    """What tells this training from another, beside the task, the seed and the steps."""
    card: Callable[[Sequence[LogRow]], str]
    """The card of the model once it is trained."""
    save: Callable[[Path], Any]
    """Writes the files of the model into a folder."""
    optimizer: Callable[[nn.Module], Optimizer] = adamw
    longest_gradient: float = 1.0
    stopping: EarlyStopping | None = None
    """How good the model is on held-out examples; without it all steps are done, and the last weights kept."""


def learn(begin: Callable[[], Lesson[Model]], checkpoint: Path, seed: int = 0) -> tuple[Lesson[Model], list[LogRow]]:
    """The lesson that `begin` makes, with its model trained, and the log.

    The first weights and the dropout come from the seed, and the caller's random numbers stay as they were. The same
    seed makes the same model, also where a training that the folder `checkpoint` holds is continued.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        lesson = begin()
        log = train(
            lesson.model,
            lesson.measure,
            lesson.rate,
            lesson.steps,
            recipe={"task": lesson.task, "seed": seed, "steps": lesson.steps, **lesson.recipe},
            checkpoint=checkpoint,
            seconds_between_checkpoints=CHECKPOINT_SECONDS,
            optimizer=lesson.optimizer,
            longest_gradient=lesson.longest_gradient,
            stopping=lesson.stopping,
        )
    lesson.model.eval()
    return lesson, log


def learn_into(out: Path, begin: Callable[[], Lesson[Any]], seed: int, resume: bool) -> Path:
    """Train into the folder `out` and return it: the model's files, the log, and last the card, which says done.

    Until the end a subfolder `unfinished` holds the checkpoint. With `resume`, an unfinished training continues from
    there and ends with the very same weights; a finished one is left as it is, and `begin` is not called.
    """
    check_number("seed", seed, 0)
    checked_folder(out, "training", resume=resume, finished=LOG)
    if is_finished(out):
        return out
    lesson, log = learn(begin, out / UNFINISHED, seed)
    _finish(out, log, lesson.card(log), lesson.save)
    return out


def is_finished(out: Path) -> bool:
    """Whether a training has ended in this folder."""
    return (out / LOG).exists() and not (out / UNFINISHED).exists()


def _finish(out: Path, log: Sequence[LogRow], card: str, save: Callable[[Path], Any]) -> None:
    """Put everything into `out`, by way of a folder of their own, since not every writer is atomic."""
    (out / UNFINISHED).mkdir(parents=True, exist_ok=True)
    write_log(out / LOG, log)
    with tempfile.TemporaryDirectory(dir=out / UNFINISHED) as name:
        folder = Path(name)
        save(folder)
        (folder / CARD).write_text(card, encoding="utf-8")
        for path in sorted(folder.iterdir(), key=lambda path: path.name == CARD):  # the card last: it says done
            with written_atomically(out / path.name) as temporary:
                shutil.copyfile(path, temporary)
    shutil.rmtree(out / UNFINISHED)


def write_hugging_face(folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Write a model and its tokenizer as an ordinary Hugging Face folder."""
    model.config.save_pretrained(folder)
    try:
        tokenizer.save_pretrained(folder)
    except Exception as error:  # the library in Rust raises a bare one for a full disk
        raise OSError(f"The tokenizer cannot be written into {folder}: {error}") from error
    # What model.save_pretrained writes, without its progress bar.
    write_tensors(folder / "model.safetensors", model.state_dict(), {"format": "pt"})


# What lessons are made of.


def fingerprint(examples: Iterable[str]) -> str:
    """What tells these examples from others, in their order."""
    digest = hashlib.sha256()
    for example in examples:
        digest.update(example.encode())
    return digest.hexdigest()


def measure_answers(
    logits: Float[Tensor, "item outcome"],
    targets: Int[Tensor, " item"],
    loss: Callable[[Tensor, Tensor], Tensor] = nn.functional.cross_entropy,
) -> Measurement:
    """The loss of some answers, and the share of them that is right."""
    return Measurement(loss(logits, targets), (logits.argmax(-1) == targets).float().mean().item())


def answers(
    items: Sequence[Item],
    length: Callable[[Item], int],
    logits_of: Callable[[Sequence[Item]], Float[Tensor, "item outcome"]],
    at_once: int,
) -> list[int]:
    """The number of the outcome that a model gives to each item, in their order; those of like length run together."""
    found: dict[int, int] = {}
    for places in in_order_of_length([length(item) for item in items], at_once):
        with torch.no_grad():
            best = logits_of([items[place] for place in places]).argmax(-1).tolist()
        found.update(zip(places, best, strict=True))
    return [found[place] for place in range(len(items))]


def share_right(
    items: Sequence[Item],
    length: Callable[[Item], int],
    logits_of: Callable[[Sequence[Item]], Float[Tensor, "item outcome"]],
    right: Callable[[Item], int],
    at_once: int,
) -> float:
    """The share of items that get the outcome which is right for them."""
    found = answers(items, length, logits_of, at_once)
    return sum(answer == right(item) for answer, item in zip(found, items, strict=True)) / len(items)


def count_right(attractors: Iterable[int], is_right: Iterable[bool]) -> dict[int, tuple[int, int]]:
    """For each number of attractors: how many verbs a model gets right, and of how many.

    >>> count_right([1, 0, 1], [True, True, False])
    {0: (1, 1), 1: (1, 2)}
    """
    counts: dict[int, list[bool]] = {}
    for number, right in zip(attractors, is_right, strict=True):
        counts.setdefault(number, []).append(right)
    return {number: (sum(rights), len(rights)) for number, rights in sorted(counts.items())}


# The card of a trained model.


CODE = """\
import attnscope

record = attnscope.load("path/to/this/folder").record("{text}")"""


def card(
    title: str, about: str, *, code: str, training: str, accuracy: str, header: str = "", further: str = ""
) -> str:
    """The card as Markdown: what the model is, how to use it, what it learned from, and how well it does."""
    sections = (f"# {title}", about, f"```python\n{code}\n```", "## Training", training, "## Accuracy", accuracy)
    return header + "\n\n".join(sections) + "\n" + further


def best_look(log: Sequence[LogRow]) -> LogRow:
    """The look at held-out examples whose weights were kept: the first of equal ones."""
    return max((row for row in log if "validation" in row), key=lambda row: float(row["validation"]))
