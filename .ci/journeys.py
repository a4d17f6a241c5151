"""The files that a journey crosses: those of which a function is called, in the order in which they are entered.

`python .ci/journeys.py` shows those of explain, flow, survey and reproduce, as docs/architecture.md has them.
"""

import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

PACKAGE = Path(__file__).parents[1] / "src" / "attnscope"


def crossed(journey: Callable[[], Any]) -> list[str]:
    """The files of the package in which a function runs during a journey; what runs at import is no step of it."""
    files: dict[str, None] = {}

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name not in {"<module>", "<lambda>"}:
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(PACKAGE) and frame.f_code.co_name.isidentifier() and not _at_import(frame):
                files.setdefault(path.relative_to(PACKAGE).as_posix())

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        journey()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(files)


def _at_import(frame: FrameType | None) -> bool:
    """Whether a function was called while a module was imported, as a decorator is, or is the body of a class."""
    if frame is not None and "__qualname__" in frame.f_locals and "__module__" in frame.f_locals:
        return True
    while frame is not None:
        if frame.f_code.co_name == "<module>" and "attnscope" in frame.f_code.co_filename:
            return Path(frame.f_code.co_filename).is_relative_to(PACKAGE)
        frame = frame.f_back
    return False


def main() -> None:
    """Print each journey with its files."""
    from attnscope.cli import app

    with tempfile.TemporaryDirectory() as folder:
        commands = {
            "explain": ["explain", "demo", "the key to the cabinets", "--methods", "rollout"],
            "flow": ["explain", "demo", "the key to the cabinets", "--methods", "flow"],
            "survey": ["survey", "demo", "demo", "--limit", "70", "--out", f"{folder}/survey"],
            "reproduce": ["reproduce", "wu2020", "--out", f"{folder}/wu2020"],
        }
        for name, command in commands.items():
            files = crossed(lambda command=command: app(command, standalone_mode=False))
            sys.stdout.write(f"{name}: {len(files)}\n  {' '.join(files)}\n")


if __name__ == "__main__":
    main()
