"""Stories in windows: SEND in its published layout, and the stand-in."""

from pathlib import Path

import pytest

from attnscope.errors import BadInput
from attnscope.lab.data import read_send, standin_stories
from attnscope.lab.data.sst_trees import parse_tree
from attnscope.lab.data.story import story_of


def test_windows_take_the_words_and_the_mean_rating_of_their_seconds() -> None:
    words = [(0.4, "so"), (4.9, "glad"), (5.0, "then"), (21.0, "end"), (31.0, "late")]
    ratings = [(0.5 * step, 0.1 * (step // 10)) for step in range(50)]  # 25 seconds: 0, .1, .2, .3, .4
    story = story_of("x", words, ratings)
    assert [window.tokens for window in story.windows] == [("so", "glad"), ("then",), ("null",), ("null",), ("end",)]
    # what nothing is said in is read as the last word before
    assert [window.read for window in story.windows] == [("so", "glad"), ("then",), ("then",), ("then",), ("end",)]
    assert [window.silent for window in story.windows] == [False, False, True, True, False]
    assert story.valences == pytest.approx((0, 0.1, 0.2, 0.3, 0.4))


def test_a_silent_beginning_is_read_as_unknown_and_ratings_end_the_story() -> None:
    story = story_of("x", [(6.0, "hm"), (11.0, "lost")], [(0.0, 0.5), (5.0, 0.3), (9.5, 0.5), (16.0, 1.0)])
    assert [window.read for window in story.windows] == [("[UNK]",), ("hm",)]
    assert story.valences == pytest.approx((0.5, 0.4))
    with pytest.raises(BadInput, match="no rating"):
        story_of("x", [(1.0, "hm")], [(6.0, 0.5)])


def send(folder: Path) -> Path:
    for part in ("Train", "Valid", "Test"):
        said = folder / "features" / part / "linguistic-word-level"
        rated = folder / "ratings" / part / "observer_EWE"
        said.mkdir(parents=True)
        rated.mkdir(parents=True)
        (said / "ID112_vid3_aligned.tsv").write_text(
            "time-offset\tword\tglove0\n0.5\tI\t0.1\n1.0\twon\t0.2\n12.0\tit\t0.3\n"
        )
        rows = [f"{0.5 * step},{50 if step < 10 else 75 if step < 20 else 100}" for step in range(30)]
        (rated / "results_112_3.csv").write_text("\n".join(["time, evaluatorWeightedEstimate", *rows]) + "\n")
    return folder


def test_send_is_read_in_its_layout(tmp_path: Path) -> None:
    splits = read_send(send(tmp_path))
    assert list(splits) == ["train", "dev", "test"]
    (story,) = splits["dev"]
    assert story.name == "ID112_vid3"
    assert [window.tokens for window in story.windows] == [("I", "won"), ("null",), ("it",)]
    assert story.windows[1].read == ("won",)
    assert story.valences == pytest.approx((0, 0.5, 1))


def test_what_send_lacks_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="folder of SEND"):
        read_send(tmp_path)
    rated = send(tmp_path) / "ratings" / "Test" / "observer_EWE" / "results_112_3.csv"
    rated.write_text("time,mean\n0,1\n")
    with pytest.raises(BadInput, match="no column evaluatorWeightedEstimate"):
        read_send(tmp_path)
    rated.write_text("time,evaluatorWeightedEstimate\n0,much\n")
    with pytest.raises(BadInput, match="no number"):
        read_send(tmp_path)
    rated.unlink()
    with pytest.raises(BadInput, match="no file"):
        read_send(tmp_path)


def test_the_stand_in_has_the_shape_of_send_and_something_to_learn() -> None:
    trees = [parse_tree(f"({label} ({label} w{label}) (2 x{number}))") for label in range(5) for number in range(9)]
    stories = standin_stories(trees, count=40, windows=12, seed=3)
    assert stories == standin_stories(trees, count=40, windows=12, seed=3)
    assert stories != standin_stories(trees, count=40, windows=12, seed=4)
    assert {len(story.windows) for story in stories} == {12}
    windows = [
        (window, valence) for story in stories for window, valence in zip(story.windows, story.valences, strict=True)
    ]
    assert all(-1 <= valence <= 1 for _, valence in windows)
    silent = sum(window.silent for window, _ in windows) / len(windows)
    assert 0.01 < silent < 0.12
    means = [[valence for window, valence in windows if window.tokens[0] == f"w{label}"] for label in (0, 2, 4)]
    low, middle, high = (sum(found) / len(found) for found in means)
    assert low + 0.3 < middle < high - 0.3
    assert all(story.name.startswith("stand-in") for story in stories)
    with pytest.raises(BadInput, match="there are none"):
        standin_stories([], count=1)
