"""The census: every architecture that transformers registers, recorded and compared. `make census` runs it."""

import json
import logging
import sys
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch
import transformers
from building import USES, architectures
from judging import Verdict, judge
from rich.progress import track

from attnscope.files import written_atomically

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "families.md"
TOGETHER = 120
KEPT = ROOT / ".census.jsonl"
"""Verdicts so far: a census that was stopped goes on from here; a finished one takes it away."""


def quiet() -> None:
    """A worker that says nothing, with one thread."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    transformers.logging.set_verbosity_error()


def main(names: list[str]) -> int:
    """Judge these architectures (all by default), and write the page if it was all of them."""
    kept = (
        [Verdict(**json.loads(line)) for line in KEPT.read_text().splitlines()] if KEPT.exists() and not names else []
    )
    known = {verdict.name for verdict in kept}
    waiting = [name for name in names or architectures() if name not in known]
    # imported modules pile up in a worker: each few get new ones
    for start in track(range(0, len(waiting), TOGETHER), "Recording", disable=not sys.stderr.isatty()):
        with ProcessPoolExecutor(2, initializer=quiet, mp_context=get_context("spawn")) as pool:
            for verdict in pool.map(judge, waiting[start : start + TOGETHER]):
                kept.append(verdict)
                if names:
                    sys.stdout.write(f"{verdict.name}: {verdict.verdict} {verdict.note}\n")
                else:
                    with KEPT.open("a") as file:
                        file.write(json.dumps(verdict.as_row()) + "\n")
    counts = Counter(verdict.verdict for verdict in kept)
    sys.stdout.write(", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()) + "\n")
    if not names:
        with written_atomically(PAGE) as temporary:
            temporary.write_text(page(sorted(kept, key=lambda verdict: verdict.name.lower()), counts))
        KEPT.unlink()
    return 1 if counts["wrong"] or counts["raw error"] else 0


ORDER = {
    "wrong": "Wrong",
    "raw error": "Raw errors",
    "exact": "Exact",
    "refused": "Refused, with the sentence",
    "not built": "Could not be built here",
}
EXPLAINED = {
    "exact": "Recorded, and equal to the attentions that the same model returns when it is loaded eager, to 1e-5;"
    " where a model returns none itself, weights × values equal what each layer put out. A short text is the same alone"
    " and in a batch with a longer one.",
    "refused": "attnscope says in one sentence why these are not recorded.",
    "not built": "A tiny model could not be made by the rules, does not run by itself when it is that small, or needs a"
    " library that is not there. Nothing is said about these here; the self-check speaks when one is recorded.",
}


def page(verdicts: list[Verdict], counts: Counter[str]) -> str:
    """The table in the docs."""
    tried = sum(counts.values()) - counts["not built"]
    registered = f"transformers {transformers.__version__} registers {len(verdicts)} architectures"
    summary = (
        f"{registered} for text, pictures and sound. `make census` makes a tiny model of each from its own"
        " configuration, shrunk by rules, with random weights; records it in every stack; and compares it with the same"
        " model loaded"
        f" eager. Of {tried} that could be made, **{counts['exact']} are exact, {counts['refused']} are refused with a"
        f" sentence, {counts['wrong']} are wrong and {counts['raw error']} end in a raw error**; {counts['not built']}"
        " could not be made."
    )
    parts = ["# Families", "<!-- written by make census -->", summary]
    for verdict, title in ORDER.items():
        rows = [row for row in verdicts if row.verdict == verdict]
        if not rows:
            continue
        parts += [f"## {title}", EXPLAINED.get(verdict, ""), _table(verdict, rows)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(verdict: str, rows: list[Verdict]) -> str:
    """Exact ones by use, in lines; the others one by one, with their note."""
    if verdict != "exact":
        lines = [f"| {row.name} | {row.use} | {_escaped(row.note)} |" for row in rows]
        return "\n".join(["| architecture | use | why |", "|---|---|---|", *lines])
    lines = []
    for use in USES:
        names = [f"{row.name} ({_escaped(row.note)})" if row.note else row.name for row in rows if row.use == use]
        lines.append(f"| {use} | {len(names)} | {', '.join(names)} |")
    return "\n".join(["| use | count | architectures |", "|---|---|---|", *lines])


def _escaped(note: str) -> str:
    return note.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
