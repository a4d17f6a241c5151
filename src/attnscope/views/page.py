"""One offline HTML file out of one view or several: their payloads, their scripts, and a small host that runs them."""

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ..errors import BadInput
from ..files import written_atomically
from .palette import colour_properties

HERE = Path(__file__).parent
IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+)\.js";\n', re.MULTILINE)


@dataclass(frozen=True)
class Part:
    """One view on a page: the name of its script, and what its model holds when the page opens."""

    name: str
    model: Mapping[str, Any]


@runtime_checkable
class Viewable(Protocol):
    """Whatever can stand on a page."""

    @property
    def part(self) -> Part:
        """The script and the model."""


def write_page(
    path: str | Path, views: Viewable | Sequence[Viewable], title: str, intro_html: str | None = None
) -> Path:
    """Write views as one offline HTML file, and return its path."""
    path = Path(path)
    if path.is_dir():
        raise BadInput(f"A page is one file, but {path} is a folder: name a file in it.")
    content = page_html(views, title, intro_html)
    with written_atomically(path) as temporary:
        temporary.write_text(content, encoding="utf-8")
    return path


def page_html(views: Viewable | Sequence[Viewable], title: str, intro_html: str | None = None) -> str:
    """The page: a title, an introduction, and the views below each other.

    Its content security policy names each script and style by its hash and forbids everything else, so neither a token
    nor a model's name can do anything, and the page asks for nothing. Only `intro_html` is taken as it is: it must be
    made by code that escapes what it quotes, and may hold images as data, but no script and no style.
    """
    parts = [view.part for view in (views if isinstance(views, Sequence) else [views])]
    if not parts:
        raise BadInput("A page needs at least one view.")
    names = dict.fromkeys(part.name for part in parts)
    scripts = [(HERE / "host.js").read_text(encoding="utf-8")]
    scripts += [f'{module_text(name)}\nattnscopeHost.mount("{name}", render);\n' for name in names]
    style = colour_properties() + (HERE / "view.css").read_text(encoding="utf-8")
    policy = (
        f"default-src 'none'; script-src {' '.join(map(_hash, scripts))}; style-src {_hash(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    figures = "".join(
        f"<section class=attnscope data-view={part.name}>"
        f"<script type=application/json>{safe_json(part.model)}</script></section>"
        for part in parts
    )
    running = "".join(f"<script type=module>{script}</script>" for script in scripts)
    return (
        '<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content="width=device-width">'
        f'<meta http-equiv=Content-Security-Policy content="{policy}">'
        f'<meta name=color-scheme content="light dark"><title>{escape(title)}</title><style>{style}</style></head>'
        f"<body class=attnscope-page><header class=attnscope><h1>{escape(title)}</h1>{intro_html or ''}</header>"
        f"<main>{figures}</main>{running}</body></html>\n"
    )


def module_text(name: str) -> str:
    """The script of a view as one module: what it imports from its room stands before it, once."""
    seen: set[str] = set()

    def whole(name: str) -> str:
        seen.add(name)
        text = (HERE / f"{name}.js").read_text(encoding="utf-8")
        before = "".join(without_exports(whole(found)) for found in IMPORT.findall(text) if found not in seen)
        return before + IMPORT.sub("", text)

    def without_exports(text: str) -> str:
        return re.sub(r"^export ", "", text, flags=re.MULTILINE)

    return whole(name)


def safe_json(value: object) -> str:
    """JSON that no token can break out of: a script element ends at the first `</script`, whatever is quoted.

    >>> "<" in safe_json("</script>")
    False
    """
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode('utf-8')).digest()).decode('ascii')}'"
