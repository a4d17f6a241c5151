"""A real JupyterLab in Chromium: the widgets draw, and what is clicked in them comes back to Python."""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from textwrap import dedent
from urllib.request import urlopen

import pytest
from playwright.sync_api import expect

CELLS = [
    """
    import pandas as pd, torch
    from attnscope import AttentionRecord, views
    generator = torch.Generator().manual_seed(0)
    weights = torch.softmax(torch.randn(2, 3, 4, 4, generator=generator), dim=-1)
    record = AttentionRecord.from_weights(list(weights[:, None]), ["the", "<b>key</b>", "is", "lost"])
    table = pd.DataFrame({"layer": [0, 0, 1, 1], "head": [0, 1, 0, 1], "value": [0.1, 0.2, 0.3, 0.4]})
    view = views.head(record).selecting(threshold=0)
    view
    """,
    "view",
    "survey = views.survey({'distance': table}, {})\nsurvey",
    "import json\nprint(json.dumps([view.selected, survey.selected]))",
    "curves = views.learning([{'step': 0, 'quantity': 'A', 'name': 'x', 'value': 0}])\ncurves",
    "last = len(curves.to_frame())\ncurves.add([{'step': last, 'quantity': 'A', 'name': 'x', 'value': last / 4}])",
]
KERNEL = "jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
PATIENT = 300_000
"""Milliseconds for what starts a process; nothing here is timed, but something that hangs must end."""


@pytest.fixture
def lab(tmp_path):
    """The address of a JupyterLab of our own, on this machine only, with the notebook in it."""
    for library in ("jupyterlab", "ipykernel", "anywidget"):
        pytest.importorskip(library, reason=f"{library} is missing: pip install 'attnscope[dev,widget]'.")
    from nbformat import v4, write

    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    cells = [v4.new_code_cell(dedent(cell).strip()) for cell in CELLS]
    (tmp_path / "files").mkdir()
    write(v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), tmp_path / "files" / "views.ipynb")
    quiet = {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}}
    (tmp_path / "config" / "labconfig").mkdir(parents=True)
    (tmp_path / "config" / "labconfig" / "default_setting_overrides.json").write_text(json.dumps(quiet))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    places = {"HOME": "", "JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "IPYTHONDIR": "ipython"}
    environment = os.environ | {name: str(tmp_path / folder) for name, folder in places.items()}
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.port_retries=0"),
        *("--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", f"--IdentityProvider.token={token}"),
        *(f"--ServerApp.root_dir={tmp_path / 'files'}", "--LabApp.expose_app_in_browser=True"),
    ]
    with (tmp_path / "server.log").open("w") as log:
        server = subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=log, stderr=log)
        try:
            address = f"http://127.0.0.1:{port}"
            _wait_for(server, f"{address}/api?token={token}", tmp_path / "server.log")
            yield f"{address}/lab/tree/views.ipynb?token={token}"
        finally:
            server.terminate()
            server.wait(timeout=60)


def _wait_for(server, url, log):
    for _ in range(PATIENT // 200):
        if server.poll() is not None:
            pytest.fail(f"JupyterLab ended:\n{log.read_text()}")
        try:
            urlopen(url).close()  # noqa: S310 - our own server on this machine
        except OSError:
            time.sleep(0.2)
        else:
            return
    pytest.fail(f"JupyterLab did not answer:\n{log.read_text()}")


def test_a_notebook_turned_into_html_shows_its_views_offline(page, tmp_path):
    for library in ("nbclient", "nbconvert", "ipykernel", "anywidget"):
        pytest.importorskip(library, reason=f"{library} is missing: pip install 'attnscope[dev,widget]'.")
    from nbclient import NotebookClient
    from nbconvert import HTMLExporter
    from nbformat import v4

    notebook = v4.new_notebook(cells=[v4.new_code_cell(dedent(CELLS[0]).strip())])
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    html, _ = HTMLExporter().from_notebook_node(notebook)
    (tmp_path / "notebook.html").write_text(html, encoding="utf-8")
    page.route("**/*", lambda route: route.continue_() if route.request.url.startswith("file:") else route.abort())
    page.goto((tmp_path / "notebook.html").as_uri())
    shown = page.locator("[data-attnscope] iframe")
    shown.scroll_into_view_if_needed()
    expect(shown.content_frame.locator("[data-drawn]")).to_contain_text("<b>key</b>", use_inner_text=True)


def test_a_click_in_the_notebook_comes_back_to_python(lab, page, seen):
    page.set_viewport_size({"width": 1280, "height": 2400})
    page.set_default_timeout(PATIENT)
    page.goto(lab)
    page.wait_for_function(f"window.jupyterapp?.commands.hasCommand('notebook:run-all-cells') && {KERNEL}")
    page.evaluate("void jupyterapp.commands.execute('notebook:run-all-cells')")
    page.wait_for_function("document.querySelectorAll('[data-drawn]').length === 4")

    # every cell has its own, neither doubled nor blank, and none is the page that is kept for others
    cells = page.locator(".jp-CodeCell")
    assert [cells.nth(place).locator("[data-drawn]").count() for place in range(3)] == [1, 1, 1]
    expect(page.locator("iframe[srcdoc]:visible")).to_have_count(0)
    assert all(view.bounding_box()["height"] > 200 for view in page.locator("[data-drawn]").all())
    first, survey = page.locator("[data-drawn]").first, page.locator("[data-drawn]").nth(2)
    expect(first).to_contain_text("<b>key</b>", use_inner_text=True)

    first.get_by_role("button", name="Layer after").click()
    first.locator(".keys .token, .token").last.click()
    # letters are the view's while it has the focus: JupyterLab would cut the cell
    page.keyboard.press("x")
    page.keyboard.press("t")
    expect(cells).to_have_count(len(CELLS))
    # the same view further down follows
    page.wait_for_function("document.querySelectorAll('.view.head output')[2].textContent === '1'")
    survey.locator(".cells").click(position={"x": 5, "y": 5})
    survey.locator(".cells").click(position={"x": 5, "y": 40}, modifiers=["Shift"])
    expect(survey.locator("h3")).to_have_text(["Layer 0, head 0", "Layer 1, head 0"], use_inner_text=True)

    printed = cells.nth(3).locator(".jp-OutputArea-output")
    before = printed.inner_text()
    page.evaluate("jupyterapp.shell.currentWidget.content.activeCellIndex = 3")
    page.evaluate("void jupyterapp.commands.execute('notebook:run-cell')")
    page.wait_for_function(
        "before => { const text = document.querySelectorAll('.jp-CodeCell')[3]"
        ".querySelector('.jp-OutputArea-output')?.innerText; return text && text !== before; }",
        arg=before,
    )
    head_state, survey_state = json.loads(printed.inner_text())
    assert json.loads(before)[0]["layer"] == 0
    assert (head_state["layer"], head_state["keys"], head_state["threshold"]) == (1, [3], 0.05)
    assert survey_state["pinned"] == [[0, 0], [1, 0]]

    # what Python adds is drawn in the view that stands there, and what is chosen in it stays
    curves = page.locator(".view.learning")
    expect(curves.locator(".readout .step")).to_have_text("Step 1 latest")
    curves.get_by_role("button", name="Step before").click()
    page.evaluate("jupyterapp.shell.currentWidget.content.activeCellIndex = 5")
    page.evaluate("void jupyterapp.commands.execute('notebook:run-cell')")
    page.wait_for_function("document.querySelector('.learning .lines').scene.curves[0].points.length === 3")
    expect(curves.locator(".readout .step")).to_have_text("Step 0")
    curves.get_by_role("button", name="Latest").click()
    expect(curves.locator(".readout td")).to_have_text(["0.5"])
    assert [error for error in seen.errors if "attnscope" in error or "blob:" in error] == []
