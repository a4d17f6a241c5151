"""What the docs show: the code of the page on views runs, its pictures are there, and the example notebook executes."""

import re
from pathlib import Path

import pytest

from attnscope.views import VIEWS

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "views.md"
NOTEBOOKS = DOCS / "examples"
MOST_PICTURE, MOST_PICTURES = 250_000, 2_500_000
"""Bytes of one picture, and of all."""


def test_the_code_of_the_page_runs(tmp_path, monkeypatch):
    """Each block by itself, as it stands, but for those that say that they need something."""
    monkeypatch.chdir(tmp_path)
    checked = 0
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        if block.startswith("# needs"):
            compile(block, str(PAGE), "exec")
            continue
        if "widget" in block:
            pytest.importorskip("anywidget", reason="anywidget is missing: pip install 'attnscope[widget]'.")
        names: dict[str, object] = {}
        exec(block, names)  # noqa: S102 - our own page
        for shown, value in re.findall(r"^([\w.(].*?)  # (\d+)$", block, re.MULTILINE):
            assert eval(shown, names) == eval(value), shown  # noqa: S307 - our own page
            checked += 1
    assert checked
    assert {file.name for file in tmp_path.iterdir()} >= {"head.html", "head.svg", "flow.pdf", "column.svg", "cut.html"}
    assert (tmp_path / "small.html").stat().st_size <= 500_000


def test_the_page_shows_every_view():
    text = PAGE.read_text(encoding="utf-8")
    for name in VIEWS:
        assert f"| [`{name}`](#{name}) |" in text
        assert f"(images/views/{name}.png)" in text


def test_pictures_are_there_and_small():
    pictures = [DOCS / name for name in re.findall(r"\((images/[^)]+)\)", PAGE.read_text(encoding="utf-8"))]
    for picture in pictures:
        assert picture.read_bytes().startswith(b"\x89PNG"), picture
        assert picture.stat().st_size <= MOST_PICTURE, picture
    assert sum(file.stat().st_size for file in (DOCS / "images").rglob("*.png")) <= MOST_PICTURES
    assert {*pictures} == {*(DOCS / "images" / "views").iterdir()}, "a picture that nobody shows"


# the pages that each notebook shows, and its pictures
@pytest.mark.parametrize(("name", "pages", "pictures"), [("views", 3, 1), ("answer", 2, 0)])
def test_the_notebooks_execute(tmp_path, name, pages, pictures):
    nbclient = pytest.importorskip("nbclient", reason="nbclient is missing: pip install 'attnscope[dev]'.")
    pytest.importorskip("ipykernel", reason="ipykernel is missing: pip install 'attnscope[dev]'.")
    import nbformat

    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code), "the notebook is kept without its outputs"
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    shown = [output.data for cell in code for output in cell.outputs if "data" in output]
    assert sum("iframe" in data.get("text/html", "") for data in shown) == pages
    assert sum("image/png" in data for data in shown) == pictures
