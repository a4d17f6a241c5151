"""A survey made by hand in which every claim of Vig & Belinkov (2019) holds, to be changed one claim at a time."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from attnscope.cli import app
from attnscope.reproduce import read_claims
from attnscope.surveying import Survey

LAYERS = HEADS = 12
TAGS = ["DET", "NOUN", "PROPN", "PUNCT", "VERB"]
RELATIONS = ["aux", "cc", "csubj", "csubj:pass", "det", "expl", "neg", "nsubj", "nsubj:pass", "obj"]
SUBJECTS = {"csubj", "csubj:pass", "nsubj", "nsubj:pass"}
DIRECTIONS = ["head_to_dependent", "dependent_to_head", "either"]
PATTERNS = ["previous", "next", "same", "repeated", "induction", "first", "special", "punctuation"]


def every(**labels: list[str]) -> pd.DataFrame:
    levels = [range(LAYERS), range(HEADS), *labels.values()]
    return (
        pd.MultiIndex.from_product(levels, names=["layer", "head", *labels]).to_frame(index=False).assign(error=0.001)
    )


def part_of_speech() -> pd.DataFrame:
    table = every(direction=["to", "from"], tag=TAGS)
    layer, head = table["layer"], table["head"]
    to, tag = table["direction"] == "to", table["tag"]
    # the heads of a layer differ a little, but not in the first two
    table["value"] = 0.15 + 0.02 * (head % 2) * (layer > 1)
    table.loc[to & (tag == "PROPN") & (layer >= 9) & (head < 2), "value"] = 0.5
    table.loc[to & (tag == "DET") & (layer <= 3) & (head < 2), "value"] = 0.5
    table.loc[to & (tag == "NOUN") & (layer == 9) & (head == 0), "value"] = 0.43
    table.loc[to & tag.isin(["VERB", "PUNCT"]) & (layer == 5) & (head == 3), "value"] = 0.6
    table.loc[~to & (tag == "PUNCT") & (layer >= 6) & (head < 3), "value"] = 0.5
    table.loc[~to & tag.isin(["VERB", "NOUN"]) & (layer == 8) & (head == 3), "value"] = 0.6
    return table.assign(chance=0.2, one_token=0.3, one_token_chance=0.2)


def tables() -> dict[str, pd.DataFrame]:
    distance = every()
    # least in layers 2 to 4, greatest in the last; each head by itself, so that heads differ as much as layers do
    by_layer = np.array([6, 5.5, 2, 1.8, 1.5, 2.5, 3, 3.5, 4, 7, 8, 9.0])
    distance["value"] = by_layer[distance["layer"]] * (0.5 + distance["head"] / 11)
    distance["signed"] = distance["value"]
    entropy = distance.assign(value=distance["value"] / 6 + 0.5 + 0.1 * (distance["head"] % 3))
    entropy = entropy.drop(columns="signed").assign(evenness=0.5, rows=100.0, rows_share=0.8)
    far = (distance["layer"] == 11) & (distance["head"] == 11)
    entropy.loc[far, "value"] = 0.41
    entropy.loc[entropy["layer"] < 2, "value"] += 0.6
    distance.loc[far, "value"] = 14.2
    alignment = every(direction=DIRECTIONS, relation=["any", "nsubj"])
    alignment = alignment.merge(distance[["layer", "head", "value"]], on=["layer", "head"])
    alignment["value"] = 0.3 - 0.02 * alignment["value"]
    variability = every().assign(value=0.3, sentences=90.0)
    variability.loc[variability["layer"] < 2, "value"] = 0.2
    patterns = every(pattern=PATTERNS).assign(value=0.05, chance=0.03)
    previous = (4, 11)
    for table in (alignment, variability, patterns):
        table["is_previous"] = (table["layer"] == previous[0]) & (table["head"] == previous[1])
    alignment.loc[alignment["is_previous"], "value"] = 0.42
    variability.loc[variability["is_previous"], "value"] = 0.004
    patterns.loc[patterns["is_previous"] & (patterns["pattern"] == "previous"), "value"] = 0.99
    alignment, variability, patterns = (
        table.drop(columns="is_previous") for table in (alignment, variability, patterns)
    )
    kinds = every(relation=RELATIONS)
    rises = kinds["relation"].isin(SUBJECTS)
    kinds["value"] = 0.05 + 0.002 * np.where(rises, kinds["layer"], -kinds["layer"])
    null = every().assign(value=0.58)
    null.loc[null["layer"] < 2, "value"] = 0.05
    null.loc[(null["layer"] == 10) & (null["head"] >= 10), "value"] = 0.98
    distances = np.arange(1, 19)
    linked = np.round(4_200 * distances**-1.2)
    curve = pd.DataFrame({"distance": distances, "value": linked / 10_000, "error": 0.001})
    return {
        "part_of_speech": part_of_speech(),
        "dependency_alignment": alignment.assign(chance=0.1),
        "dependency_type": kinds.assign(chance=0.05),
        "dependency_by_distance": curve.assign(pairs=10_000.0, linked=linked),
        "distance": distance,
        "entropy": entropy,
        "variability": variability,
        "null_attention": null,
        "patterns": patterns,
        "exemplars": exemplars(),
        "roles": every().assign(role="mixed", value=0.5, evidence="", also=""),
    }


def exemplars() -> pd.DataFrame:
    table = every(rank=[0, 1, 2, 3])
    tokens = ["Dogs", " chase", " *cats*", " |", " <b>", "."]
    table["value"] = 0.9 - 0.1 * table["rank"].astype(int) - 0.01 * table["head"]
    table["query"], table["key"] = 3, np.where(table["head"] == 0, 3, 2)
    table["query_token"], table["key_token"] = " |", " *cats*"
    table["tokens"] = [tokens] * len(table)
    return table.assign(text="".join(tokens), error=np.nan)


def by_layer(table: pd.DataFrame) -> pd.DataFrame:
    labels = [name for name in ("direction", "tag", "relation", "pattern") if name in table]
    keep = [name for name in ("value", "error", "chance") if name in table]
    layers = table.groupby(["layer", *labels], sort=False)[keep].mean().reset_index()
    return layers.assign(mean_of_heads=layers["value"])


def surveyed(changed: Mapping[str, pd.DataFrame], **card: object) -> Survey:
    layers = {
        name: by_layer(table)
        for name, table in changed.items()
        if name not in {"exemplars", "roles", "dependency_by_distance"}
    }
    facts = {
        "model": {"name": "handmade"},
        "class": "Handmade",
        "layers": LAYERS,
        "heads": HEADS,
        "corpus": "made by hand",
        "sentences": 1_000,
        "tokens": 27_700,
        "null": "first",
        "parser": None,
        "skipped": {},
        "versions": {"attnscope": "0"},
        "causal": True,
    }
    return Survey(dict(changed), layers, facts | card)


@pytest.fixture(scope="session")
def untouched_tables() -> dict[str, pd.DataFrame]:
    """Made once."""
    return tables()


@pytest.fixture
def paper_tables(untouched_tables) -> dict[str, pd.DataFrame]:
    """Tables of 12 layers of 12 heads that show what the paper found; yours to change."""
    return {name: table.copy() for name, table in untouched_tables.items()}


@pytest.fixture
def survey_from() -> Callable[..., Survey]:
    """Make a survey of such tables; keyword arguments change its card."""
    return surveyed


@pytest.fixture
def draw_from(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Take every figure from a finished run from now on: to draw them again takes most of the time of a small one."""

    def take(finished: Path) -> None:
        def copied(plot: object, stem: Path) -> Path:
            names = [f"{stem.name}.{kind}" for kind in ("svg", "png")]
            (there,) = (path for name in names if (path := finished / "figures" / name).is_file())
            stem.parent.mkdir(exist_ok=True)
            return Path(shutil.copy(there, stem.parent))

        monkeypatch.setattr("attnscope.reproduce.writing.draw_figure", copied)

    return take


@pytest.fixture(scope="module")
def run_by_command(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Run a paper at its smallest scale by the command, which prints the claims that are kept; the folder."""

    def run(paper: str) -> Path:
        out = tmp_path_factory.mktemp("whole") / "run"
        found = CliRunner().invoke(app, ["reproduce", paper, "--json", "--out", str(out)])
        assert found.exit_code == 0, found.output
        assert [claim["id"] for claim in json.loads(found.stdout)["claims"]] == [claim.id for claim in read_claims(out)]
        return out

    return run
