"""What a survey gives: tables, card, files; and statistics of one's own."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import attnscope
from attnscope import STATISTICS, BadInput, InstrumentedModel, Sentence, Survey, survey
from attnscope.statistics import NEEDED, Frame, LayerAttention
from attnscope.statistics.statistic import SOLE, Ratio, RatioStatistic, Tally

COLUMNS = {
    "part_of_speech": [
        "layer", "head", "direction", "tag", "value", "error", "chance", "one_token", "one_token_chance",
    ],
    "dependency_alignment": [
        "layer", "head", "direction", "relation", "value", "error", "chance", "best_offset", "offset_value", "focus",
        "focus_offset", "focus_offset_value",
    ],
    "dependency_type": ["layer", "head", "relation", "value", "error", "chance"],
    "distance": ["layer", "head", "value", "error", "signed"],
    "entropy": ["layer", "head", "value", "error", "rows", "rows_share"],
    "variability": ["layer", "head", "value", "error", "sentences"],
    "null_attention": [
        "layer", "head", "value", "error", "one_token", "one_token_error", "one_token_chance", "sentences",
    ],
    "patterns": ["layer", "head", "pattern", "value", "error", "chance"],
    "exemplars": [
        "layer", "head", "rank", "value", "error", "query", "key", "query_token", "key_token", "tokens", "text",
    ],
    "dependency_by_distance": ["distance", "value", "error", "pairs", "linked"],
    "roles": ["layer", "head", "role", "value", "error", "evidence", "also"],
    "role_exemplars": "layer head rank value query key query_token key_token tokens text".split(),
}  # fmt: skip
NOT_BY_LAYER = {"exemplars", "roles", "role_exemplars", "dependency_by_distance"}


@pytest.fixture(scope="module")
def found(demo: InstrumentedModel) -> Survey:
    return survey(demo, "demo", limit=24, shard_size=4)


def test_the_tables_are_as_agreed(found: Survey) -> None:
    assert set(found) == {*STATISTICS, "roles", "role_exemplars"} == set(COLUMNS)
    for name, columns in COLUMNS.items():
        table = found[name].result()
        assert [column for column in table if column in columns] == columns, name
        if "head" in columns:
            heads = set(zip(table["layer"], table["head"], strict=True))
            every = {(layer, head) for layer in range(6) for head in range(8)}
            assert heads <= every if name == "role_exemplars" else heads == every, name
        if name not in NOT_BY_LAYER:  # a distance may occur in one shard alone
            assert (table["error"].notna() | table["value"].isna()).all(), name
            assert table["error"].fillna(0).ge(0).all(), name


def test_a_table_is_a_copy(found: Survey) -> None:
    table, layers = found["distance"].result(), found["distance"].by_layer()
    table["value"] = layers["value"] = -1
    assert (found["distance"].result()["value"] >= 0).all()
    assert (found["distance"].by_layer()["value"] >= 0).all()


def test_by_layer(found: Survey) -> None:
    for name in found:
        if name in NOT_BY_LAYER:
            with pytest.raises(BadInput, match="says nothing of whole layers"):
                found[name].by_layer()
            continue
        by_layer, by_head = found[name].by_layer(), found[name].result()
        labels = [column for column in ("direction", "tag", "relation", "pattern") if column in by_head]
        assert set(by_layer) >= {"layer", *labels, "value", "mean_of_heads", "error"}
        means = by_head.groupby(["layer", *labels])["value"].mean()
        layers = by_layer.set_index(["layer", *labels]).sort_index()
        pd.testing.assert_series_equal(layers["mean_of_heads"], means, check_names=False)
        low, high = (getattr(by_head.groupby(["layer", *labels])["value"], side)() for side in ("min", "max"))
        assert (layers["value"].between(low - 1e-12, high + 1e-12) | layers["value"].isna()).all()


def test_a_layer_is_the_ratio_of_sums_over_its_heads(found: Survey) -> None:
    entropy, layers = found["entropy"].result(), found["entropy"].by_layer()
    entropy["sum"] = entropy["value"] * entropy["rows"]
    sums = entropy.groupby("layer")[["sum", "rows"]].sum()
    assert np.allclose(layers["value"], sums["sum"] / sums["rows"])


def test_the_card(found: Survey, demo: InstrumentedModel) -> None:
    card = found.card
    assert card["model"]["name"] == "demo"
    assert (card["layers"], card["heads"], card["causal"], card["null"]) == (6, 8, False, "special")
    assert (card["corpus"], card["sentences"], card["limit"], card["shard_size"]) == ("demo", 24, 24, 4)
    assert card["skipped"] == {}
    assert card["statistics"] == [*STATISTICS, "roles", "role_exemplars"] == list(found)
    assert card["versions"]["attnscope"] == attnscope.__version__
    lengths = [
        len(demo.tokenizer(drawn.text)["input_ids"]) for drawn in attnscope.syntax.sentences_of("demo", limit=24)
    ]
    assert card["tokens"] == sum(lengths)
    assert card["words"] < card["tokens"]
    assert json.loads(json.dumps(card)) == card
    assert str(Path.cwd()) not in json.dumps(card)
    assert "24 sentences" in found.summary()


def test_saved_and_loaded_it_is_the_same(found: Survey, lab, tmp_path: Path) -> None:
    assert found.save(tmp_path / "new" / "folder") == tmp_path / "new" / "folder"
    loaded = Survey.load(tmp_path / "new" / "folder")
    lab.assert_identical(loaded, found)
    assert loaded.card == found.card
    loaded.save(tmp_path / "again")
    lab.assert_identical(Survey.load(str(tmp_path / "again")), found)
    for path in (tmp_path / "new" / "folder" / "tables").iterdir():
        if path.suffix == ".csv":
            assert path.read_bytes() == (tmp_path / "again" / "tables" / path.name).read_bytes()


def test_csv_and_parquet_hold_the_same(found: Survey, tmp_path: Path) -> None:
    found.save(tmp_path)
    names = sorted(path.stem for path in (tmp_path / "tables").glob("*.parquet"))
    assert names == sorted(path.stem for path in (tmp_path / "tables").glob("*.csv"))
    assert names == sorted([*found, *(f"{name}_by_layer" for name in found if name not in NOT_BY_LAYER)])
    for name in names:
        from_csv = pd.read_csv(tmp_path / "tables" / f"{name}.csv", dtype=str, keep_default_na=False)
        parquet = pd.read_parquet(tmp_path / "tables" / f"{name}.parquet")
        assert list(from_csv) == list(parquet)
        if "tokens" in from_csv:
            assert from_csv["tokens"].map(json.loads).tolist() == parquet["tokens"].map(list).tolist()
        for column in [column for column in from_csv if column != "tokens"]:
            if pd.api.types.is_numeric_dtype(parquet[column]):
                numbers = [float(entry or "nan") for entry in from_csv[column]]
                assert np.array_equal(numbers, parquet[column].to_numpy(dtype=float), equal_nan=True), (name, column)
            else:
                assert from_csv[column].tolist() == parquet[column].tolist(), (name, column)


def test_half_a_file_left_by_a_kill_is_not_read(found: Survey, lab, tmp_path: Path) -> None:
    found.save(tmp_path)
    (tmp_path / "tables" / ".distance.x7.parquet").write_bytes(b"PAR1")
    (tmp_path / "tables" / "distances_by_layer.parquet").write_bytes(b"PAR1")
    lab.assert_identical(Survey.load(tmp_path), found)


def test_a_table_that_is_missing_is_told(found: Survey, tmp_path: Path) -> None:
    found.save(tmp_path)
    (tmp_path / "tables" / "distance.parquet").unlink()
    with pytest.raises(BadInput, match=r"is damaged: the tables of distance are missing\.$"):
        Survey.load(tmp_path)


def test_skipped_sentences_are_counted_with_their_reasons(small, tiny, lab, labels, tmp_path: Path) -> None:
    good = lab.sentences(1, [5, 12, 3])
    tree = {"tags": ("X", "X"), "heads": (-1, 0), "relations": ("root", "dep")}
    lost = Sentence(("the", "\u00a0"), **tree)  # a space, of which the tokenizer makes nothing
    long = Sentence(("the",) * 41, ("DET",) * 41, (-1, *(0,) * 40), ("root", *("dep",) * 40))
    bare = Sentence(("the", "key"), heads=(-1, 0), relations=("root", "dep"))
    unparsed = Sentence(("the", "key"), ("DET", "NOUN"))
    corpus = [good[0], lost, long, good[1], bare, long, unparsed, good[2]]
    with_gaps = survey(small(), corpus, shard_size=2, out=tmp_path / "out")
    assert with_gaps.card["skipped"] == {
        "a word has no token": 1,
        "it has more than the 40 tokens that the model reads": 2,
        "it has no parts of speech": 1,
        "it has no heads and relations": 1,
    }
    assert with_gaps.card["sentences"] == 3
    assert with_gaps.card["words"] == 20
    assert "Skipped 2: it has more than the 40 tokens that the model reads." in with_gaps.summary()
    assert Survey.load(tmp_path / "out").card["skipped"] == with_gaps.card["skipped"]
    lab.assert_like(with_gaps, survey(small(), good, shard_size=3), 1e-6, labels, errors=False)


def test_a_sentence_of_just_the_longest_length_is_read(small) -> None:
    found = survey(small(), [["the"] * 40, ["the"] * 41], ["distance"])
    assert (found.card["sentences"], found.card["tokens"]) == (1, 40)
    assert found.card["skipped"] == {"it has more than the 40 tokens that the model reads": 1}


@dataclass
class ShareOfSelf(RatioStatistic):
    """A statistic as a user may write it."""

    self_: Tally
    mass: Tally

    @classmethod
    def empty(cls, frame: Frame) -> "ShareOfSelf":
        return cls(Tally.zeros(SOLE, frame.layers, frame.heads), Tally.zeros(SOLE, frame.layers, frame.heads))

    def update(self, attention: LayerAttention) -> None:
        self.self_.add(attention.layer, attention.kept.diagonal(0, -2, -1).double().sum((0, 2)))
        self.mass.add(attention.layer, attention.mass)

    def ratio(self) -> Ratio:
        return Ratio(self.self_.sums, self.mass.sums)


def test_a_statistic_of_ones_own(small, lab, tmp_path: Path) -> None:
    corpus = lab.sentences(3, [3, 12, 7, 9])
    found = survey(small(), corpus, [ShareOfSelf, "patterns"], shard_size=1, out=tmp_path / "out")
    assert list(found) == ["ShareOfSelf", "patterns"]
    own, patterns = found["ShareOfSelf"].result(), found["patterns"].result()
    same = patterns[patterns["pattern"] == "same"].reset_index(drop=True)
    pd.testing.assert_frame_equal(own, same[["layer", "head", "value", "error"]], rtol=0, atol=1e-12)
    lab.assert_identical(Survey.load(tmp_path / "out"), found)


def test_roles_bring_what_they_are_told_from(small, lab) -> None:
    found = survey(small(), lab.sentences(4, [12, 11, 10]), ["roles"])
    assert set(found) == {*NEEDED, "roles"}
    assert len(found["roles"].result()) == 2 * 2  # layers, heads


def test_the_page_stands_alone(found: Survey, tmp_path: Path) -> None:
    page = found.report(tmp_path / "page.html").read_text()
    assert "What the heads of demo do on demo" in page
    assert 'src="http' not in page
    assert 'href="http' not in page
