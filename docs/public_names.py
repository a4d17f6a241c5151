"""A hook of mkdocs: pages list the public names, the methods and the statistics by themselves."""

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


def _first_sentence(of: object) -> str:
    return " ".join((of.__doc__ or "").strip().split("\n\n")[0].split()).replace("|", "\\|")


LISTS: dict[str, Callable[[], Iterator[str]]] = {
    "<!-- public names -->": public_names,
    "<!-- methods -->": methods,
    "<!-- statistics -->": statistics,
}
