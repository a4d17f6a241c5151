"""On a real Ray of two workers the tables have the same bits as those of one process, even if a worker is killed."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

from attnscope import STATISTICS, Survey, survey
from attnscope.statistics.shape import Distance

SIZES = [3, 12, 1, 9, 13, 2, 11, 12, 4, 10]


@pytest.fixture(scope="module")
def corpus(lab):
    return lab.sentences(21, SIZES)


@pytest.fixture(scope="module")
def locally(small, corpus) -> Survey:
    return survey(small(), corpus, shard_size=2, threads=1)


def only(found: Survey, names: list[str]) -> Survey:
    """Some of its statistics."""
    return Survey(
        {name: found.tables[name] for name in names},
        {name: table for name, table in found.layer_tables.items() if name in names},
        {**found.card, "statistics": names},
    )


def test_begun_here_and_finished_there(cluster, small, corpus, lab, locally: Survey, tmp_path: Path) -> None:
    told = []

    def stop(progress) -> None:
        told.append(progress)
        if len(told) == 7:  # in the second pass
            raise KeyboardInterrupt

    options = {"shard_size": 2, "threads": 1, "out": tmp_path / "out"}
    with pytest.raises(KeyboardInterrupt):
        survey(small(), corpus, **options, watch=stop)
    there = {"engine": "ray", "engine_options": {"workers": 1}}
    lab.assert_identical(survey(small(), corpus, **options, **there, resume=True), locally)
    lab.assert_identical(Survey.load(tmp_path / "out"), locally)


def test_a_model_by_name_is_loaded_by_the_worker(cluster, lab) -> None:
    asked = {"corpus": "demo", "statistics": ["distance", "part_of_speech"], "limit": 24, "threads": 1}
    there = survey("demo", **asked, engine="ray", engine_options={"workers": 1})
    lab.assert_identical(there, survey("demo", **asked))


def test_two_workers_of_which_one_is_killed_in_mid_run(
    cluster, small, corpus, lab, locally: Survey, tmp_path: Path
) -> None:
    """It dies inside a statistic, in the middle of a shard, when some of its layers are counted."""

    # written here, because what a worker cannot import must travel whole
    @dataclass
    class Dying(Distance):
        def update(self, attention) -> None:
            marker = tmp_path / "killed"
            if attention.layer == 1 and attention.batch.readings[-1].place >= 2_000_000 and not marker.exists():
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            super().update(attention)

    # one pass: a second one would only start two workers more, and the test above has both
    names = [name for name, kind in STATISTICS.items() if kind.second_pass is None]
    options = {"engine": "ray", "engine_options": {"workers": 2}, "shard_size": 2, "threads": 1}
    found = survey(small(), corpus, [Dying, *names], **options)
    assert (tmp_path / "killed").exists()
    assert found["Dying"].result().equals(locally["distance"].result())
    lab.assert_identical(only(found, names), only(locally, names))
