"""BertViz's own head view as a page that needs no network: its three libraries come from the loopback interface."""

import os
import shutil
import subprocess
import tarfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from torch import Tensor

from ..errors import BadInput
from ..files import written_atomically

CDN = "https://cdnjs.cloudflare.com/ajax/libs"
LIBRARIES = {
    "require.min.js": ("requirejs@2.3.6", "package/require.js", f"{CDN}/require.js/2.3.6/require.min.js"),
    "d3.min.js": ("d3@5.7.0", "package/dist/d3.min.js", f"{CDN}/d3/5.7.0/d3.min"),
    "jquery.min.js": ("jquery@2.1.0", "package/dist/jquery.min.js", f"{CDN}/jquery/2.0.0/jquery.min"),
}
"""For each file the npm package and the file in it, and the address that BertViz asks for; npm has no jQuery 2.0.0."""


def libraries() -> dict[str, Path]:
    """The three libraries in the user's cache; `npm pack` fetches what is missing, once."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "attnscope" / "bertviz"
    for name, (package, inside, _) in LIBRARIES.items():
        if not (cache / name).is_file():
            _fetch(package, inside, cache / name)
    return {name: cache / name for name in LIBRARIES}


def bertviz_html(weights: Sequence[Tensor], tokens: Sequence[str]) -> str:
    """BertViz's page, whole, with its libraries beside it; `weights` is a tensor `[1, head, query, key]` per layer."""
    try:
        from bertviz import head_view
    except ImportError:
        raise BadInput("This benchmark needs the peer: pip install 'attnscope[bench]'.") from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # it leaves its script open
        html: str = head_view(list(weights), list(tokens), html_action="return").data
    for name, (_, _, address) in LIBRARIES.items():
        # require.js adds the suffix itself to the modules it is told of
        html = html.replace(address, f"/{name}" if address.endswith(".js") else f"/{name.removesuffix('.js')}")
    return f"<!doctype html><html><head><meta charset=utf-8></head><body>{html}</body></html>"


def _fetch(package: str, inside: str, path: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise BadInput(f"BertViz needs {package}, and npm, which fetches it, is missing: install Node.js.")
    with TemporaryDirectory() as folder:
        done = subprocess.run([npm, "pack", package, "--silent"], cwd=folder, capture_output=True, text=True)  # noqa: S603, PLW1510
        packed = sorted(Path(folder).glob("*.tgz"))
        if done.returncode or not packed:
            raise BadInput(f"npm could not fetch {package}, which BertViz needs: {done.stderr.strip()[:200]}")
        with tarfile.open(packed[0]) as archive:
            member = archive.extractfile(inside)
            content = b"" if member is None else member.read()
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_atomically(path) as temporary:
        temporary.write_bytes(content)
