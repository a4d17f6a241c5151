"""A hook of mkdocs: pages list the public names, methods, statistics and roles by themselves."""

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

import attnscope


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the lists where a page asks for them."""
    for place, lines in LISTS.items():
        if place in markdown:
            markdown = markdown.replace(place, "\n".join(lines()))
    return markdown


def public_names() -> Iterator[str]:
    """One mkdocstrings entry for each public name, under one heading for each room."""
    by_room = sorted(attnscope._HOME.items(), key=lambda entry: (entry[1], entry[0].lower()))  # noqa: SLF001 - ours
    for room, entries in groupby(by_room, key=lambda entry: entry[1]):
        yield f"## {room}\n"
        yield from (f"::: attnscope.{room}.{name}\n" for name, _ in entries)


def methods() -> Iterator[str]:
    """A row for each method: its names, what it says of itself, and what it needs, found by trying."""
    from attnscope.attribution.choosing import every_method, runs_model

    record = attnscope.load("demo").record("the key")
    yield "| method | scores | needs |\n|---|---|---|"
    for name, method in every_method().items():
        names = ", ".join(f"`{other}`" for other in attnscope.METHODS if attnscope.METHODS[other] is method)
        yield f"| {names} | {_first_sentence(method)} | {'the model' if runs_model(method) else _needs(record, name)} |"


def _needs(record: attnscope.AttentionRecord, method: str) -> str:
    try:
        attnscope.attribute(record, method)
    except attnscope.BadInput as lacking:
        return next(f"`{option}`" for option in ("gradients=True", "values=True") if option in str(lacking))
    return ""


def statistics() -> Iterator[str]:
    """A row for each statistic, in its own words."""
    yield "| name | on the screen | what it measures |\n|---|---|---|"
    for name, statistic in attnscope.STATISTICS.items():
        yield f"| `{name}` | {statistic.caption.title} | {statistic.caption.meaning} |"


def roles() -> Iterator[str]:
    """A row for each kind of roles, with the letters of all that are of it."""
    from attnscope.statistics import ROLE_KINDS, ROLE_SYMBOLS

    yield "| kind | colour | letters |\n|---|---|---|"
    for kind, colour in ROLE_KINDS.items():
        of_kind = {role: symbol.letters for role, symbol in ROLE_SYMBOLS.items() if symbol.kind == kind}
        found = ", ".join(f"`{letters}` {role.removesuffix(' → its head')}" for role, letters in of_kind.items())
        told = {"to its dependent": "those of the relation, turned round", "other": "the initials of any other role"}
        swatch = f'<span style="background:{colour}">&emsp;</span> `{colour}`'
        yield f"| {kind} | {swatch} | {told.get(kind, found)} |"


def _first_sentence(of: object) -> str:
    return " ".join((of.__doc__ or "").strip().split("\n\n")[0].split()).replace("|", "\\|")


LISTS: dict[str, Callable[[], Iterator[str]]] = {
    "<!-- public names -->": public_names,
    "<!-- methods -->": methods,
    "<!-- statistics -->": statistics,
    "<!-- roles -->": roles,
}
