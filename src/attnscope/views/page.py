"""One offline HTML file out of one view or several: their payloads, their scripts, and a small host that runs them."""

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ..errors import BadInput
from ..files import written_atomically
from ..paint import colour_properties
from .weights import WRITERS, Writer, seven_bit_text

HERE = Path(__file__).parent
COMMENT = re.compile(r"^[ \t]*(?://[^\n]*|/\*\*(?:(?!\*/).)*\*/)\n|^[ \t]+", re.MULTILINE | re.DOTALL)
"""What a browser does not need of a script or style: lines of comment, and the space before lines."""
IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";\n', re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)


@dataclass(frozen=True)
class Part:
    """One view on a page: the name of its script, what its model holds when the page opens, and its arrays."""

    name: str
    model: Mapping[str, Any]
    blobs: Mapping[str, bytes] = field(default_factory=dict)


@runtime_checkable
class Viewable(Protocol):
    """Whatever can stand on a page."""

    @property
    def part(self) -> Part:
        """The script and the model."""


@dataclass(frozen=True)
class Prose:
    """HTML between views, made by code that escapes what it quotes: no script, no style, images only as data."""

    html: str
    name: str = ""
    """A class of its own, for the page's style."""


@dataclass(frozen=True)
class FoldedView:
    """A view that is unfolded when its title is clicked."""

    title: str
    view: Viewable


Item = Viewable | Prose | FoldedView


def write_page(
    path: str | Path, views: Item | Sequence[Item], title: str, intro_html: str | None = None, style: str = ""
) -> Path:
    """Write views as one offline HTML file, and return its path."""
    path = Path(path)
    if path.is_dir():
        raise BadInput(f"A page is one file, but {path} is a folder: name a file in it.")
    content = page_html(views, title, intro_html, style)
    with written_atomically(path) as temporary:
        temporary.write_bytes(content.encode("utf-8"))  # as bytes: no system may change the ends of lines
    return path


def page_html(
    views: Item | Sequence[Item],
    title: str,
    intro_html: str | None = None,
    style: str = "",
    write: Writer = seven_bit_text,
) -> str:
    """The page: a title, an introduction as `Prose` has it, and the views below each other.

    Its content security policy names each script and style by its hash and forbids everything else, so neither a token
    nor a model's name can do anything, and the page asks for nothing. `style` is added to the style of the views.
    `write` turns the arrays into letters: seven bits each are for a file; base64 is for what must travel through other
    formats.
    """
    items = list(views) if isinstance(views, Sequence) else [views]
    shown = [item.view if isinstance(item, FoldedView) else item for item in items if not isinstance(item, Prose)]
    if not items:
        raise BadInput("A page needs at least one view, or something to read.")
    names = dict.fromkeys(view.part.name for view in shown)
    scripts = [module_text("host")]
    scripts += [f'{module_text(name)}\nattnscopeHost.mount("{name}", render);\n' for name in names]
    style = style_text(names) + style
    policy = (
        f"default-src 'none'; script-src {' '.join(map(_hash, scripts))}; style-src {_hash(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    figures = "".join(_item_html(item, write) for item in items)
    running = "".join(f"<script type=module>{script}</script>" for script in scripts)
    return (
        '<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content="width=device-width">'
        f'<meta http-equiv=Content-Security-Policy content="{policy}">'
        f'<meta name=color-scheme content="light dark"><title>{escape(title)}</title><style>{style}</style></head>'
        f"<body class=attnscope-page><header class=attnscope><h1>{escape(title)}</h1>{intro_html or ''}</header>"
        f"<main>{figures}</main>{running}</body></html>\n"
    )


def _item_html(item: Item, write: Writer) -> str:
    if isinstance(item, Prose):
        return f"<div class='attnscope prose {item.name}'>{item.html}</div>"
    if isinstance(item, FoldedView):
        title = f"<summary>{escape(item.title)}</summary>"
        return f"<details class='attnscope folded'>{title}{_item_html(item.view, write)}</details>"
    part = item.part
    return (
        f"<section class=attnscope data-view={part.name}>"
        f"<script type=application/json>{safe_json(part.model)}</script>{_blobs(part, write)}</section>"
    )


def style_text(names: Iterable[str]) -> str:
    """The style of these views: the colours, what all share, and the sheet of each view whose scripts they use."""
    # head_lines.js is a part of the head view, wherever it stands: its sheet is head.css
    used = dict.fromkeys(module.partition("_")[0] for name in names for module in modules_of(name))
    sheets = [HERE / "view.css", *(HERE / f"{name}.css" for name in used)]
    return colour_properties() + "".join(sheet.read_text(encoding="utf-8") for sheet in sheets if sheet.is_file())


def modules_of(name: str) -> list[str]:
    """The script of a view and all that it imports from its room, by their names: what is imported stands first."""
    found: dict[str, None] = {}

    def take(name: str) -> None:
        for _, other in IMPORT.findall(_script(name)):
            if other not in found:
                take(other)
        found[name] = None

    take(name)
    return list(found)


def module_text(name: str) -> str:
    """The script of a view as one module: what it imports from its room stands before it, each in its own scope."""
    *imported, own = modules_of(name)
    return COMMENT.sub("", "".join([*map(_scope, imported), _with_imports(own)]))


def _scope(module: str) -> str:
    """A script whose names are its own, and which hands out what it exports."""
    text = _with_imports(module)
    exported = ", ".join(name for _, name in EXPORT.findall(text))
    plain = EXPORT.sub(r"\1", text)
    return f"const in_{module} = (() => {{\n{plain}return {{ {exported} }};\n}})();\n"


def _with_imports(module: str) -> str:
    """A script that takes what it imports from the scopes before it."""
    return IMPORT.sub(r"const \1 = in_\2;\n", _script(module))


def _script(module: str) -> str:
    return (HERE / f"{module}.js").read_text(encoding="utf-8")


def safe_json(value: object) -> str:
    """JSON that no token can break out of: a script element ends at the first `</script`, whatever is quoted.

    >>> "<" in safe_json("</script>")
    False
    """
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _blobs(part: Part, write: Writer) -> str:
    code = next(name for name, writer in WRITERS.items() if writer is write)
    return "".join(
        f'<script type="application/octet-stream" data-blob="{name}" data-code="{code}" data-size="{len(content)}">'
        f"{write(content)}</script>"
        for name, content in part.blobs.items()
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode('utf-8')).digest()).decode('ascii')}'"
