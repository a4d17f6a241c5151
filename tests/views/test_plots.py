"""Printed figures: the same bytes every time, text as text, any size, and one sentence where a table does not fit."""

import subprocess
import sys
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest

from attnscope.errors import BadInput
from attnscope.views import plots

FORMATS = ("svg", "pdf", "png")


@pytest.fixture(scope="module")
def drawn(make_tables, make_by_layer):
    return all_plots(make_tables(6, 8, 10), make_by_layer)


@pytest.fixture(scope="module")
def saved(drawn, tmp_path_factory):
    """Each figure as a file of each format, by both."""
    return saved_in(tmp_path_factory.mktemp("saved"), drawn)


def saved_in(folder, drawn):
    return {(name, kind): plot.save(folder / f"{name}.{kind}") for name, plot in drawn.items() for kind in FORMATS}


def all_plots(tables, make_by_layer):
    speech = tables["part_of_speech"]
    by_layer = make_by_layer(tables)
    alignment = by_layer["dependency_alignment"]
    alignment = alignment[(alignment["direction"] == "either") & (alignment["relation"] == "any")]
    return {
        "map": plots.head_map(tables["entropy"], label="entropy (nats)"),
        "maps": plots.head_maps(dict(iter(speech[speech["direction"] == "to"].groupby("tag"))), label="share"),
        "bars": plots.layer_bars(alignment, label="alignment", baseline=0.04),
        "by label": plots.layer_bars_by_label(by_layer["dependency_type"], "relation", label="share"),
        "scatter": plots.distance_against_entropy(tables["distance"], tables["entropy"]),
        "curve": plots.curve(tables["dependency_by_distance"], "distance", "value", "distance", "share linked"),
    }


def texts_of(path):
    return [element.text for element in ET.parse(path).iter("{http://www.w3.org/2000/svg}text")]  # noqa: S314


def check_files(drawn, saved):
    from PIL import Image

    for name, plot in drawn.items():
        width = plot.figure.get_size_inches()[0]
        assert width in {plots.COLUMN, plots.PAGE}
        assert ET.parse(saved[name, "svg"]).getroot().tag.endswith("svg")  # noqa: S314
        assert saved[name, "pdf"].read_bytes().startswith(b"%PDF")
        with Image.open(saved[name, "png"]) as image:
            assert image.size[0] == round(300 * width)
            assert image.info["Description"] == plot.caption


def test_every_figure_saves_in_every_format(drawn, saved):
    check_files(drawn, saved)


def test_so_do_the_figures_of_a_single_head(make_tables, make_by_layer, tmp_path):
    drawn = all_plots(make_tables(1, 1, 3), make_by_layer)
    check_files(drawn, saved_in(tmp_path, drawn))


def test_text_stays_text_and_the_caption_is_metadata(drawn, saved):
    found = {name: texts_of(saved[name, "svg"]) for name in drawn}
    assert {"entropy (nats)", "layer", "0", "5"} <= set(found["map"])
    assert {"ADJ", "NOUN", "VERB", "head", "share"} <= set(found["maps"])
    assert {"by chance", "alignment"} <= set(found["bars"])
    assert {"nsubj:pass", "layer", "share"} <= set(found["by label"])
    assert {"entropy of attention (nats)", "mean distance (tokens)"} <= set(found["scatter"])
    assert drawn["map"].caption in saved["map", "svg"].read_text(encoding="utf-8")
    assert b"/Type /Font" in saved["map", "pdf"].read_bytes()


def test_saving_twice_gives_the_same_bytes(drawn, saved, tmp_path):
    for (name, kind), path in saved.items():
        assert drawn[name].save(tmp_path / f"again.{kind}").read_bytes() == path.read_bytes()


# run here, and in a process of its own where names have other hashes and files another date
PROGRAM = """
import sys, pandas as pd
from attnscope.views import plots
print("matplotlib" in sys.modules, file=sys.stderr)
table = pd.DataFrame({"layer": [0, 0, 1, 1], "head": [0, 1, 0, 1], "value": [.1, float("nan"), .3, .4]})
for suffix in ("svg", "pdf", "png"):
    plots.save_figure(plots.head_map(table), sys.argv[1] + "." + suffix)
"""


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """The folder where another process has written `map` in each format, and what it said about matplotlib."""
    import matplotlib as mpl

    folder = tmp_path_factory.mktemp("elsewhere")
    # the list of fonts is known already: to make it anew would take longer than all else
    environment = {"PYTHONHASHSEED": "2", "SOURCE_DATE_EPOCH": "7", "MPLCONFIGDIR": mpl.get_cachedir()}
    command = [sys.executable, "-c", PROGRAM, folder / "map"]
    return folder, subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stderr


def test_two_processes_write_the_same_bytes(elsewhere, tmp_path, monkeypatch):
    folder, _ = elsewhere
    monkeypatch.setattr(sys, "argv", ["program", str(tmp_path / "map")])
    exec(PROGRAM, {})  # noqa: S102 - our own program
    here, there = (b"".join((where / f"map.{kind}").read_bytes() for kind in FORMATS) for where in (tmp_path, folder))
    assert len(here) > 10_000
    assert here == there


def test_importing_the_views_does_not_import_matplotlib(elsewhere):
    assert elsewhere[1] == "False\n"


def test_the_cells_have_the_colours_of_their_figures(tables):
    from attnscope import paint

    table = tables["null_attention"]
    mesh = plots.head_map(table).figure.axes[0].collections[-1]
    colours = (255 * mesh.to_rgba(mesh.get_array()).reshape(-1, 4)[:, :3]).round().astype(int)
    largest = table["value"].max()
    for colour, value in zip(colours, table["value"], strict=True):
        place = paint.step(value, largest)
        near = [paint.rgb(paint.sequential()[step]) for step in range(max(place - 1, 0), min(place + 2, 256))]
        assert tuple(colour) in near


def test_what_was_not_measured_is_hatched_and_said(tables):
    plot = plots.head_map(tables["entropy"])
    assert plot.caption.endswith("Hatched: not measured.")
    assert any(artist.get_hatch() for artist in plot.figure.axes[0].collections)
    assert "Hatched" not in plots.head_map(tables["distance"]).caption
    empty = tables["entropy"].assign(value=np.nan)
    assert plots.head_map(empty)._repr_png_().startswith(b"\x89PNG")
    assert plots.head_maps({"none": empty})._repr_png_().startswith(b"\x89PNG")


def test_signed_figures_diverge_from_zero(tables):
    mesh = plots.head_map(tables["distance"], value="signed").figure.axes[0].collections[-1]
    assert mesh.norm.vmin == -mesh.norm.vmax


def test_correlation_is_in_the_caption(tables):
    distance, entropy = tables["distance"], tables["entropy"]
    kept = entropy["value"].notna()
    expected = np.corrcoef(distance["value"][kept], entropy["value"][kept])[0, 1]
    assert f"r = {expected:.2f} over {kept.sum()} heads" in plots.distance_against_entropy(distance, entropy).caption


def test_a_large_model_with_many_relations_stays_small(make_tables, tmp_path):
    kinds = make_tables(48, 32, 50)["dependency_type"]
    plot = plots.head_maps(dict(iter(kinds.groupby("relation"))), label="share")
    assert plot.figure.get_size_inches()[1] <= plots.LARGEST_HEIGHT
    assert plot.save(tmp_path / "many.svg").stat().st_size < 2_000_000


@pytest.mark.parametrize(
    ("draw", "sentence"),
    [
        (lambda tables: plots.head_map(tables["part_of_speech"]), "one layer and head: choose one direction"),
        (lambda tables: plots.head_map(tables["distance"], value="depth"), "no column 'depth'; it has layer, head"),
        (lambda tables: plots.head_map(tables["distance"].iloc[:0]), "no rows"),
        (lambda tables: plots.head_maps({}), "at least one"),
        (lambda tables: plots.layer_bars(tables["distance"]), "choose one head first"),
        (lambda tables: plots.head_map(tables["distance"]).save("figure.gif"), "figure.gif ends in .gif"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(draw, sentence, tables, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match=sentence):
        draw(tables)
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_one_sentence_names_the_extra(tables, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(BadInput, match=r"attnscope\[figures\]"):
        plots.head_map(tables["distance"])


def test_a_missing_row_is_not_a_zero():
    table = pd.DataFrame({"layer": [0, 1], "head": [0, 1], "value": [0.5, 0.5]})
    assert "Hatched" in plots.head_map(table).caption
