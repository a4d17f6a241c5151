"""`attnscope answer`: what a model answers from documents, and which of them, down to the sentence, it came from."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import BadInput
from ..progress import working
from .answering import AsJson, say

if TYPE_CHECKING:
    from ..attribution.answer import Answer
    from ..views import View

PAGES = {".html", ".htm"}
SHOWN_AS = {*PAGES, ".pdf", ".png", ".svg"}
SHOWN = 8
"""Segments that are printed for each answer; JSON has them all."""
LONGEST_NAME = 60


def answer(
    model: Annotated[str, typer.Argument(help="A causal language model: its name on the hub, or a local folder.")],
    question: Annotated[str | None, typer.Option(help="What is asked.")] = None,
    documents: Annotated[Path | None, typer.Option(help="A folder of .txt, .md and .rst files to answer from.")] = None,
    given: Annotated[
        str | None, typer.Option("--answer", help="An answer that was given before; else the model writes one.")
    ] = None,
    text: Annotated[
        str | None, typer.Option(help="Another model's answer: explained is how likely this model finds it.")
    ] = None,
    answers: Annotated[
        Path | None,
        typer.Option(help='A .jsonl of finished answers: "question" or "messages", "documents", "answer" or "text".'),
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option("--methods", help="A method to score by; may be given again. By default rollout."),
    ] = None,
    by: Annotated[
        str, typer.Option(help="What gets a score each: document, sentence, word, token or turn.")
    ] = "sentence",
    span: Annotated[str | None, typer.Option(help="Explain only these words of the answer.")] = None,
    drops: Annotated[
        bool, typer.Option("--drops/--no-drops", help="Run the model without each document: what the answer loses.")
    ] = True,
    max_new_tokens: Annotated[int | None, typer.Option(help="How long the answer may become.")] = None,
    seed: Annotated[int | None, typer.Option(help="Draw the answer at random, by this seed.")] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Show it: a page (.html), or a figure (.svg, .pdf, .png) of a single answer."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ask a model, or take what was answered, and show which documents and sentences the answer came from.

    Example: attnscope answer HuggingFaceTB/SmolLM2-135M-Instruct --documents notes --question "Who was there?"
    """
    wishes: dict[str, Any] = {} if max_new_tokens is None else {"max_new_tokens": max_new_tokens}
    wishes |= {} if seed is None else {"seed": seed, "do_sample": True}
    single = {"question": question, "documents": documents, "answer": given, "text": text}
    asked = {name: value for name, value in single.items() if value is not None}
    if answers is None and question is None:
        raise BadInput("Nothing is asked: give --question, or --answers with a file of finished answers.")
    if answers is not None and (asked or wishes):
        raise BadInput("--answers says itself what was asked and answered: leave the options of a single answer out.")
    if out is not None and (
        out.suffix.lower() not in PAGES if answers is not None else out.suffix.lower() not in SHOWN_AS
    ):
        kinds = ".html" if answers is not None else ", ".join(sorted(SHOWN_AS))
        raise BadInput(f"What is shown here is saved as {kinds}, but {out.name} ends in {out.suffix or 'no suffix'}.")
    with working(f"Loading {model}"):
        from ..answering import Finished, answers_of, finished_answers
        from ..capture import load

        lines = [Finished(asked, "")] if answers is None else list(finished_answers(answers))
        loaded = load(model)
    told, views = [], []
    with working("Answering"):
        for line, found in zip(lines, answers_of(loaded, lines, **wishes), strict=True):
            told.append({"id": line.name, **_told(found, methods or ["rollout"], by, span, drops)})
            if out is not None:
                views.append(_view(found, methods or ["rollout"], by, drops))
            if not as_json:
                say(_in_words(told[-1]))
        if out is not None:
            _write(out, views)
    if as_json:
        say(json.dumps(told[0] if answers is None else told))


def _view(found: "Answer", methods: list[str], by: str, drops: bool) -> "View":
    """The answer beside its documents."""
    from ..views import answer as shown

    return shown(found, methods=methods, by=by, drops="document" if drops and "document" in found.kinds else None)


def _write(out: Path, views: "list[View]") -> None:
    """One answer as a page or a figure, several as one page."""
    from ..views import write_page

    if len(views) == 1:
        views[0].save(out)
    else:
        write_page(out, views, f"{len(views)} answers")


def _told(found: "Answer", methods: list[str], by: str, span: str | None, drops: bool) -> dict[str, Any]:
    """An answer as plain data: its tokens, the score of each segment for each, and what it loses without documents."""
    tables = {method: found.scores(method, by, span) for method in methods}
    has_documents = drops and "document" in found.kinds
    return {
        **found.to_dict(),
        "by": by,
        "span": span,
        "scores": {
            method: {
                "segments": list(table.columns),
                "kinds": table.attrs["kinds"],
                "rows": table.to_numpy().tolist(),
                "warnings": table.attrs["warnings"],
            }
            for method, table in tables.items()
        },
        "drops": found.drops("document", span).to_dict("records") if has_documents else [],
    }


def _in_words(told: dict[str, Any]) -> str:
    """The answer and its strongest segments, for a reader at a terminal."""
    lines = [f"{told['id'] and told['id'] + ': '}{told['answer'].strip()}"]
    lines += [f"  ({note})" for note in told["notes"]]
    for method, scores in told["scores"].items():
        means = [sum(column) / len(column) for column in zip(*scores["rows"], strict=True)]
        named = [
            (mean, " ".join(name.split())[:LONGEST_NAME])
            for mean, name, kind in zip(means, scores["segments"], scores["kinds"], strict=True)
            if kind not in ("marker", "sink", "answer")
        ]
        whole = sum(abs(mean) for mean, _ in named) or 1.0
        strongest = sorted(named, key=lambda pair: -abs(pair[0]))[:SHOWN]
        lines.append(f"  {method}, of what goes to the conversation:")
        lines += [f"    {mean / whole:7.1%}  {name}" for mean, name in strongest]
        lines += [f"    ({warning})" for warning in scores["warnings"] if warning not in told["notes"]]
    for place, row in enumerate(sorted(told["drops"], key=lambda row: -row["drop"])[:SHOWN]):
        if not place:
            lines.append(f"  without it, the log-probability of {row['before']:.2f} falls by:")
        lines.append(f"    {row['drop']:7.2f}  {' '.join(row['segment'].split())[:LONGEST_NAME]}")
    return "\n".join(lines)
