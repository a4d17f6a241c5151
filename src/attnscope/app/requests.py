"""What a client may ask for, checked before anything is done for it."""

import asyncio
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, model_validator
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..record.words import Level

CHARACTERS = 20_000
"""Of a text, at most."""
CONTEXT = 120_000
"""Characters of all documents of a question together, at most."""
MOST_DOCUMENTS = 50
MOST_TURNS = 20
MOST_SELECTED = 4096
"""Tokens or heads at a time."""


def _whole(text: str) -> str:
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError("it holds half a character")
    return text


Words = Annotated[str, AfterValidator(_whole)]
Name = Annotated[Words, Field(max_length=200)]
Outcome = Annotated[Name, Field(min_length=1)]
"""A label of a classifier, or a token of a vocabulary."""
Number = Annotated[int, Field(ge=-(2**53), le=2**53)]
"""As far as a browser counts."""
One = bool | Number | FiniteFloat | Name | None
Some = Annotated[list[One], Field(max_length=MOST_SELECTED)]
Selected = One | Some | Annotated[list[Some], Field(max_length=MOST_SELECTED)]
"""What can be selected in a view: one thing, several, or several heads, each with its layer."""


class ClientRequest(BaseModel):
    """What a client sends; nothing else is accepted."""

    model_config = ConfigDict(extra="forbid")


class TextRequest(ClientRequest):
    """A text, or a pair, for one of the models, and what is to be explained: the prediction if nothing is said."""

    model: Name
    text: Annotated[Words, Field(min_length=1, max_length=CHARACTERS)]
    second: Annotated[Words, Field(min_length=1, max_length=CHARACTERS)] | None = None
    target: Outcome | None = None
    against: Outcome | None = None
    truncate: bool = False
    """Leave out what the model cannot read of a long text."""


class GivenDocument(ClientRequest):
    """One text that a question is about."""

    title: Name = ""
    text: Annotated[Words, Field(min_length=1, max_length=CONTEXT)]


class EarlierTurn(ClientRequest):
    """What was asked before, and what was answered."""

    question: Annotated[Words, Field(min_length=1, max_length=CHARACTERS)]
    answer: Annotated[Words, Field(min_length=1, max_length=CHARACTERS)]


class AnswerRequest(ClientRequest):
    """A question about documents, for a model that writes; or an answer that is there already."""

    model: Name
    question: Annotated[Words, Field(min_length=1, max_length=CHARACTERS)]
    documents: Annotated[list[GivenDocument], Field(max_length=MOST_DOCUMENTS)] = []
    turns: Annotated[list[EarlierTurn], Field(max_length=MOST_TURNS)] = []
    answer: Annotated[Words, Field(min_length=1, max_length=CHARACTERS)] | None = None
    tokens: Annotated[int, Field(ge=1, le=1000)] = 100
    """Of an answer that the model writes, at most."""
    temperature: Annotated[FiniteFloat, Field(ge=0, le=2)] = 0.0
    """0 takes the likeliest token each time."""
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0

    @property
    def options(self) -> dict[str, Any]:
        """What `attnscope.answer` is given beside the model."""
        earlier = [
            {"role": role, "content": content}
            for turn in self.turns
            for role, content in (("user", turn.question), ("assistant", turn.answer))
        ]
        # a model without a chat template can be asked too, but knows no earlier turns
        asked: dict[str, Any] = {"question": self.question}
        if earlier:
            asked = {"messages": [*earlier, {"role": "user", "content": self.question}]}
        if self.documents:
            asked["documents"] = [(document.title, document.text) for document in self.documents]
        if self.answer is not None:
            return {**asked, "text": self.answer}
        drawn = {"do_sample": True, "temperature": self.temperature, "seed": self.seed} if self.temperature else {}
        return {**asked, "max_new_tokens": self.tokens, **drawn}

    @model_validator(mode="after")
    def check_length(self) -> "AnswerRequest":
        """Refuse more than is read."""
        letters = sum(len(document.text) for document in self.documents)
        if letters > CONTEXT:
            raise ValueError(f"the documents have {letters:,} characters, and at most {CONTEXT:,} are read")
        return self


class ViewRequest(ClientRequest):
    """A view of a text that was read."""

    text: Name
    view: Name
    methods: Annotated[list[Name], Field(max_length=50)] | None = None
    by: Level = "token"
    queries: Annotated[list[Annotated[int, Field(ge=0, le=1_000_000)]], Field(max_length=16)] | None = None
    drops: Literal["document"] | None = None
    """Of an answer: what is deleted, one after the other, to measure what it was worth."""


class StateRequest(ClientRequest):
    """What is selected in a view."""

    state: dict[Name, Selected] = {}


class FigureRequest(StateRequest):
    """A figure of a view."""

    format: Literal["svg", "pdf", "png"]


class SavedFile(ClientRequest):
    """One file of a folder."""

    name: Name
    base64: str


class FolderRequest(ClientRequest):
    """The files of a saved survey or trust table."""

    files: Annotated[list[SavedFile], Field(min_length=1, max_length=100)]


# One connection of a browser: it must say in time what it wants, read in time what it asked for, or it is closed.


MOST_CONNECTIONS = 256
"""Connections at a time: a process has some thousand open files, and needs some for itself."""
ASKING = 15.0
"""Seconds from the first byte of a request, or from the start of a connection, to the end of the request's head."""
READING = 120.0
"""Seconds in which a client must take what was written to it."""


class Connection(H11Protocol):
    """A connection as uvicorn has it, which by itself waits forever for the rest of a head and for a slow reader."""

    _alarm: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Begin to wait for a request, unless there are too many already."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
        else:
            self._close_after(ASKING)

    def data_received(self, data: bytes) -> None:
        """Take what comes; between two requests it is the beginning of one, or the rest of one that was refused."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._alarm is None:
            self._close_after(ASKING)

    def pause_writing(self) -> None:
        """Wait for a client that does not read what it asked for."""
        super().pause_writing()
        self._close_after(READING)

    def resume_writing(self) -> None:
        """It has read."""
        super().resume_writing()
        self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the alarm."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _close_after(self, seconds: float) -> None:
        self._stop_waiting()
        self._alarm = self.loop.call_later(seconds, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
