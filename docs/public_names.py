"""A hook of mkdocs: the API page lists the public names by itself, room by room."""

from itertools import groupby
from typing import Any

import attnscope

PLACE = "<!-- public names -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put one mkdocstrings entry for each public name where the page asks for them."""
    return markdown.replace(PLACE, public_names()) if PLACE in markdown else markdown


def public_names() -> str:
    """The entries, under one heading for each room."""
    by_room = sorted(attnscope._HOME.items(), key=lambda entry: (entry[1], entry[0].lower()))  # noqa: SLF001 - ours
    lines = []
    for room, entries in groupby(by_room, key=lambda entry: entry[1]):
        lines.append(f"## {room}\n")
        lines += [f"::: attnscope.{room}.{name}\n" for name, _ in entries]
    return "\n".join(lines)
