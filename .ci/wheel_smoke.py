"""The wheel as a user gets it: built, installed without extras into a clean environment, and README's ten lines run.

`make wheel-smoke` runs it: it takes minutes, most of them for PyTorch, so that it is no part of `make test`.
"""

import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(*command: str | Path, within: Path) -> None:
    """Run a command, or end with what it said."""
    sys.stdout.write(f"$ {' '.join(map(str, command[:6]))}\n")
    sys.stdout.flush()
    subprocess.run(command, check=True, cwd=within)


def main() -> None:
    """Build, install, try."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        venv.create(folder / "env", with_pip=True)
        python = folder / "env" / "bin" / "python"
        quiet = ("-q", "--disable-pip-version-check")
        run(python, "-m", "pip", "wheel", *quiet, "--no-deps", "-w", folder / "dist", ROOT, within=folder)
        (wheel,) = (folder / "dist").glob("attnscope-*.whl")
        run(python, "-m", "pip", "install", *quiet, "-c", ROOT / "constraints.txt", wheel, within=folder)
        found = re.search(r"## Ten lines\n+```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
        assert found, "README.md has no ten lines"  # noqa: S101 -- a check of ours
        (folder / "ten_lines.py").write_text(found[1])
        run(python, "ten_lines.py", within=folder)
        missing = [name for name in ("record.safetensors", "head.html", "report.html") if not (folder / name).is_file()]
        assert not missing, f"README's lines did not write {missing}"  # noqa: S101
        run(python, ROOT / ".ci" / "missing_extras.py", within=folder)
        run(folder / "env" / "bin" / "attnscope", "explain", "demo", "the key to the cabinets", within=folder)
    sys.stdout.write("The wheel works without extras.\n")


if __name__ == "__main__":
    main()
