"""What a client may ask for, checked before anything is done for it."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat

CHARACTERS = 20_000
"""Of a text, at most."""
MOST_SELECTED = 4096
"""Tokens or heads at a time."""


def _whole(text: str) -> str:
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError("it holds half a character")
    return text


Words = Annotated[str, AfterValidator(_whole)]
Name = Annotated[Words, Field(max_length=200)]
Number = Annotated[int, Field(ge=-(2**53), le=2**53)]
"""As far as a browser counts."""
One = bool | Number | FiniteFloat | Name | None
Some = Annotated[list[One], Field(max_length=MOST_SELECTED)]
Selected = One | Some | Annotated[list[Some], Field(max_length=MOST_SELECTED)]
"""What can be selected in a view: one thing, several, or several heads, each with its layer."""


class Asked(BaseModel):
    """What a client sends; nothing else is accepted."""

    model_config = ConfigDict(extra="forbid")


class TextAsked(Asked):
    """A text, or a pair, for one of the models."""

    model: Name
    text: Annotated[Words, Field(min_length=1, max_length=CHARACTERS)]
    second: Annotated[Words, Field(min_length=1, max_length=CHARACTERS)] | None = None


class ViewAsked(Asked):
    """A view of a text that was read."""

    text: Name
    view: Name
    methods: Annotated[list[Name], Field(max_length=50)] | None = None
    queries: Annotated[list[Annotated[int, Field(ge=0, le=1_000_000)]], Field(max_length=16)] | None = None


class StateAsked(Asked):
    """What is selected in a view."""

    state: dict[Name, Selected] = {}


class FigureAsked(StateAsked):
    """A figure of a view."""

    format: Literal["svg", "pdf", "png"]


class SavedFile(Asked):
    """One file of a folder."""

    name: Name
    base64: str


class FolderAsked(Asked):
    """The files of a saved survey or trust table."""

    files: Annotated[list[SavedFile], Field(min_length=1, max_length=100)]
