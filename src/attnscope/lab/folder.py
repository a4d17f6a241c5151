"""The folder that a model is trained into, and how its files come there: each at once, the card last."""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..engine import UNFINISHED, checked_folder
from ..errors import check_number
from ..files import write_tensors, written_atomically
from .train import LogRow, write_log

LOG, CARD = "training_log.jsonl", "README.md"


def is_finished(out: Path) -> bool:
    """Whether a training has ended in this folder."""
    return (out / LOG).exists() and not (out / UNFINISHED).exists()


def unfinished_training(out: Path, resume: bool, seed: int) -> Path | None:
    """The folder within `out` that keeps the checkpoint until the end, or None where the training is done already.

    Nothing of anybody else's is touched: `out` is empty or not there, or holds a training that shall go on.
    """
    check_number("seed", seed, 0)
    checked_folder(out, "training", resume=resume, finished=LOG)
    return None if is_finished(out) else out / UNFINISHED


def finish(out: Path, log: Sequence[LogRow], card: str, write: Callable[[Path], Any]) -> None:
    """Put the log, what `write` writes into the folder it is given, and last the card into `out`; the checkpoint goes.

    The files pass through a folder of their own, since not every writer is atomic.
    """
    (out / UNFINISHED).mkdir(parents=True, exist_ok=True)
    write_log(out / LOG, log)
    with tempfile.TemporaryDirectory(dir=out / UNFINISHED) as name:
        folder = Path(name)
        write(folder)
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
