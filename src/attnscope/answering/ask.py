"""Ask a model, or take what was answered, and have it explained: conversations and documents in, an `Answer` out."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..attribution.answer import Answer
from ..capture import InstrumentedModel, load
from ..errors import BadInput
from ..record import Segments
from ..record.schema import checked, json_of, quote

TEXTS = (".txt", ".md", ".rst")
"""Files of a folder that are documents."""
FIELDS = ("question", "messages", "documents", "answer", "text")
"""What a line of finished answers may say for `answer`; `text` is another model's answer."""
BESIDE = ("id", "span", "evidence")
"""And beside it: what it is called, the part of the answer that is judged, and where people say that it stands."""


@checked
def answer(
    model: str | InstrumentedModel,
    question: str | None = None,
    documents: Any = None,
    messages: Any = None,
    answer: str | None = None,
    *,
    text: str | None = None,
    segments: Segments | None = None,
    keep: str = "auto",
    **options: Any,
) -> Answer:
    """What a causal language model answers to a question, its documents or a conversation, ready to be explained.

    `model` is a loaded model, or a name or folder. `documents` are texts, pairs of (title, text), texts by title, or a
    folder of .txt, .md and .rst files; `messages` a conversation in place of the question, or with documents one whose
    last turn of the user asks. `answer` is an answer that was given before; `text` one that another model gave, which
    is explained by how likely this model finds it. Without either the model answers, with `max_new_tokens`, `seed` and
    any option of transformers' `generate`; options of `model.record` may be given too.
    """
    if isinstance(model, str):
        model = load(model)
    if text is not None and answer is not None:
        raise BadInput("answer= is this model's answer and text= another model's: give one of them.")
    given = answer if text is None else text
    found = None if documents is None else documents_of(documents)
    if question is None and found is None and messages is None:
        raise BadInput("Nothing is asked: give question=, with documents= or without, or messages=.")
    wishes = {"values": True, **options}
    record = model.record(
        messages=messages, documents=found, question=question, answer=given, segments=segments, keep=keep, **wishes
    )
    count = len(record.inputs["input_ids"]) - record.card["prompt_tokens"]
    likely = model.answer_log_probabilities([record.inputs], count)[0]
    notes = () if text is None else (f"the answer is another model's; explained is how likely {model.name} finds it",)
    return Answer(record=record, log_probabilities=likely, model=model, notes=notes)


def documents_of(documents: Any) -> Any:
    """The documents as they are given, or those of a folder by the names of their files."""
    if isinstance(documents, Sequence) and not isinstance(documents, str):
        return [tuple(document) if isinstance(document, list) else document for document in documents]
    if not isinstance(documents, (str, Path)):
        return documents
    folder = Path(documents)
    if not folder.is_dir():
        raise BadInput(
            f"documents= is a folder, or a list of texts or (title, text); there is no folder {quote(str(folder))}."
        )
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in TEXTS and path.is_file())
    if not files:
        raise BadInput(f"The folder {quote(str(folder))} holds no documents: files that end in {', '.join(TEXTS)}.")
    return [(path.relative_to(folder).as_posix(), _text_of(path)) for path in files]


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise BadInput(f"{quote(str(path))} is no text in UTF-8.") from None
    except OSError as error:
        raise BadInput(f"{quote(str(path))} cannot be read: {error.strerror or error}.") from None


@dataclass(frozen=True)
class Finished:
    """A line of a file of finished answers: what `answer` is to be given."""

    given: Mapping[str, Any]
    name: str
    """What the line calls itself, or its number."""
    span: str | None = None
    """The part of the answer that is judged; all of it if None."""

    @classmethod
    def of(cls, said: Mapping[str, Any], where: str, number: int) -> "Finished":
        """What an object says, if it says no more than it may."""
        if not {"question", "messages"} & set(said):
            raise BadInput(f'{where} is an object with "question" or "messages".')
        unknown = [name for name in said if name not in (*FIELDS, *BESIDE)]
        if unknown:
            fields = ", ".join((*FIELDS, *BESIDE))
            raise BadInput(f"{where} has a field {quote(unknown[0])}; the fields are {fields}.")
        if isinstance(said.get("documents"), str):
            raise BadInput(f"{where}: documents is a list of texts or of [title, text], or texts by title.")
        span = said.get("span")
        if not isinstance(span, str | None):
            raise BadInput(f"{where}: span is a part of the answer that stands in it once.")
        given = {name: said[name] for name in FIELDS if name in said}
        return cls(given, str(said.get("id", number)), span)


def finished_answers(path: str | Path) -> Iterator[Finished]:
    """The lines of a JSONL file of finished answers.

    Each is an object with "question" or "messages", "documents" if there are any, and "answer", or "text" where it is
    another model's; without both the model answers.
    """
    path = Path(path)
    if not path.is_file():
        raise BadInput(f"There is no file {quote(str(path))}.")
    try:
        lines = json_of(path).decode("utf-8").split("\n")  # JSON may hold what else ends a line
    except UnicodeDecodeError:
        raise BadInput(f"{quote(str(path))} is no text in UTF-8.") from None
    if not any(line.strip() for line in lines):
        raise BadInput(f"{quote(str(path))} holds no answers.")
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield Finished.of(_object(line, where := f"Line {number} of {path.name}"), where, number)


def holds_answers(path: str | Path) -> bool:
    """Whether a file is one of finished answers, by its first line, and not one of texts."""
    path = Path(path)
    if path.suffix != ".jsonl" or not path.is_file():
        return False
    with path.open(encoding="utf-8", errors="replace") as lines:
        first = next((line for line in lines if line.strip()), "")
    try:
        said = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(said, dict) and bool({"question", "messages"} & set(said))


def _object(line: str, where: str) -> dict[str, Any]:
    """The JSON object that a line is."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        raise BadInput(f"{where} is not JSON.") from None
    if not isinstance(said, dict):
        raise BadInput(f'{where} is an object with "question" or "messages".')
    return said


def answers_of(model: InstrumentedModel, lines: Sequence[Finished], **options: Any) -> Iterator[Answer]:
    """The answers of the lines of a file; an error says which line it is about."""
    for line in lines:
        try:
            yield answer(model, **line.given, **options)
        except BadInput as error:
            raise BadInput(f"Answer {line.name}: {error}" if line.name else str(error)) from None
