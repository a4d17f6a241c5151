"""Views in a notebook: a real one is executed, and what its cells hold is looked at."""

import re
import sys
from textwrap import dedent

import pytest
import torch

from attnscope import AttentionRecord
from attnscope.errors import BadInput
from attnscope.views import View, head, survey
from attnscope.views.view import LARGEST

WIDGET = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"
RECORD = """
    import torch
    from attnscope import AttentionRecord, views
    generator = torch.Generator().manual_seed(0)
    weights = torch.softmax(torch.randn(2, 3, 4, 4, generator=generator), dim=-1)
    record = AttentionRecord.from_weights(list(weights[:, None]), ["a", "<b>", "c", "d"])
"""


@pytest.fixture
def record():
    weights = torch.softmax(torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(0)), dim=-1)
    return AttentionRecord.from_weights(list(weights[:, None]), ["a", "<b>", "c", "d"])


def executed(*cells: str):
    """A notebook after a real kernel has run it."""
    nbclient = pytest.importorskip("nbclient", reason="nbclient is missing: pip install 'attnscope[dev]'.")
    pytest.importorskip("ipykernel", reason="ipykernel is missing: pip install 'attnscope[dev]'.")
    from nbformat import v4

    notebook = v4.new_notebook(cells=[v4.new_code_cell(dedent(cell)) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    return notebook


def shown_in(notebook, cell: int):
    """The first output of a cell: of a view the live one, which the page follows."""
    return notebook.cells[cell].outputs[0].data


@pytest.fixture(scope="module")
def notebook():
    pytest.importorskip("anywidget", reason="anywidget is missing: pip install 'attnscope[widget]'.")
    return executed(
        RECORD,
        "view = views.head(record)\nview",
        "view",
        "views.head(record, layer=1)",
        "view.widget.layer, view.widget.keys_ = 1, [2]\nview.selected",
        """
        import pandas as pd
        table = pd.DataFrame({"layer": [0, 0, 1, 1], "head": [0, 1, 0, 1], "value": [.1, .2, .3, .4]})
        views.survey({"distance": table}, {})
        """,
    )


def test_every_cell_shows_one_live_view_and_keeps_a_page(notebook):
    models = []
    for cell in (1, 2, 3, 5):
        shown, page = (output.data for output in notebook.cells[cell].outputs)
        assert set(shown) == {"text/plain", WIDGET}
        assert set(page) == {"text/plain", "text/html"}
        assert re.match('<div data-attnscope="[0-9a-f]{32}"><iframe sandbox="allow-scripts"', page["text/html"])
        assert shown["text/plain"].startswith("View(name=")
        models.append(shown[WIDGET]["model_id"])
    # one view shown twice is one model, and what is chosen in one place is chosen in both; two views are two
    assert models[0] == models[1]
    assert len(set(models)) == 3


def test_the_arrays_travel_as_bytes_and_every_choice_is_a_trait(notebook, record):
    state = notebook.metadata.widgets[STATE]["state"][shown_in(notebook, 1)[WIDGET]["model_id"]]
    assert [buffer["path"] for buffer in state["buffers"]] == [["blobs", "layer0"], ["blobs", "layer1"]]
    assert {*head(record).state} - {"keys"} <= {*state["state"]}
    assert state["state"]["keys_"] == [2]
    assert state["state"]["payload"]["queries"]["texts"][1] == "<b>"


def test_what_is_selected_is_asked_of_the_widget(notebook):
    text = shown_in(notebook, 4)["text/plain"]
    assert "'layer': 1" in text
    assert "'keys': [2]" in text


def test_a_site_that_shows_notebooks_shows_the_page(notebook):
    """As nbviewer does: it has nobody to ask for the widget, and takes the next best."""
    nbconvert = pytest.importorskip("nbconvert", reason="nbconvert is missing: pip install 'attnscope[dev]'.")
    without = {**notebook, "metadata": {}}
    html, _ = nbconvert.HTMLExporter().from_notebook_node(type(notebook)(without))
    assert len(re.findall('<iframe [^>]*sandbox="allow-scripts"', html)) == 4
    assert "widget-view" not in html


def test_a_notebook_turned_into_html_holds_every_page(notebook):
    """Widget state is stored there, so that the live view is taken: offline nothing draws it, and the page is seen."""
    nbconvert = pytest.importorskip("nbconvert", reason="nbconvert is missing: pip install 'attnscope[dev]'.")
    html, _ = nbconvert.HTMLExporter().from_notebook_node(notebook)
    assert "widget-view" in html
    assert len(re.findall('<div data-attnscope="[0-9a-f]{32}"><iframe [^>]*sandbox="allow-scripts"', html)) == 4


def test_the_page_alone_where_no_kernel_runs(record):
    shown, details = head(record)._repr_mimebundle_()
    assert set(shown) == {"text/plain", "text/html"}
    assert details == {}
    assert set(head(record)._repr_mimebundle_(include={"text/plain"})[0]) == {"text/plain"}
    assert set(head(record)._repr_mimebundle_(exclude={"text/plain"})[0]) == {"text/html"}


def test_a_view_that_would_choke_the_notebook_says_so():
    for view in (View("head", {}, blobs={"layer0": bytes(LARGEST)}), View("head", {"text": '"' * (LARGEST // 6)})):
        html = view._repr_html_()
        assert len(html) < 1000
        assert "MB to the notebook" in html
        assert "size_budget=" in html
        assert "view.save(" in html


def test_without_anywidget_one_sentence_names_the_extra(record, monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    view = head(record)
    with pytest.raises(BadInput, match=r"pip install 'attnscope\[widget\]'"):
        _ = view.widget
    assert view.selected["layer"] == 0


def test_the_script_is_one_module_that_only_exports_its_host(record, tables, card):
    pytest.importorskip("anywidget", reason="anywidget is missing: pip install 'attnscope[widget]'.")
    from attnscope.views.notebook import widget_of

    made = [widget_of(view) for view in (head(record), survey(tables, card))]
    for widget in made:
        exported = [line for line in widget._esm.splitlines() if line.startswith(("export", "import"))]
        assert len(exported) == 1
        assert exported[0].startswith("export default inNotebook(render, {")
        assert ".attnscope" in widget._css
    # the style of a widget is kept by the name of its class: two views must not share one
    assert made[0]._anywidget_id != made[1]._anywidget_id
