"""The folder of a survey: nothing is overwritten, nothing mixed, nothing half-written."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from attnscope import BadInput, Survey, survey

NAMES = ["distance", "entropy"]


@pytest.fixture
def begun(small, lab, tmp_path: Path) -> Path:
    """A survey that was interrupted after its first shard."""
    with pytest.raises(KeyboardInterrupt):
        ask(small(), lab.sentences(1, [4] * 6), tmp_path / "begun", watch=interrupt)
    return tmp_path / "begun"


@pytest.fixture
def finished(small, lab, tmp_path: Path) -> Path:
    ask(small(), lab.sentences(1, [4] * 6), tmp_path / "finished")
    return tmp_path / "finished"


@pytest.fixture(params=["begun", "finished"])
def there(request: pytest.FixtureRequest) -> Path:
    return request.getfixturevalue(request.param)


def ask(model, corpus, out: Path, **options) -> Survey:
    return survey(model, corpus, **{"statistics": NAMES, "shard_size": 2, "out": out, "threads": 1, **options})


def interrupt(progress) -> None:
    raise KeyboardInterrupt


def failing(make_worker, items):
    raise BadInput("the third line is bad.")


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_second_run_says_that_there_is_a_survey(there: Path, small, lab) -> None:
    before = content(there)
    sentence = rf"^.*{there.name} already holds an? (un)?finished survey: choose another folder, or go on with it "
    with pytest.raises(BadInput, match=sentence) as raised:
        ask(small(), lab.sentences(1, [4] * 6), there)
    assert ("an unfinished survey" if there.name == "begun" else "a finished survey") in str(raised.value)
    assert content(there) == before


def test_it_says_so_before_the_model_is_loaded(there: Path) -> None:
    with pytest.raises(BadInput, match="already holds"):
        survey("no/such-model", "demo", out=there)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"null": "none"}, "null was first, is now none"),
        ({"null": [0, 1]}, "null was first, is now 0, 1"),
        ({"statistics": ["distance"]}, "statistics was distance, entropy, is now distance"),
        ({"statistics": ["entropy", "distance"]}, "statistics was distance, entropy, is now entropy, distance"),
        ({"shard_size": 3}, "shard_size was 2, is now 3"),
        ({"limit": 5}, "limit was not given, is now 5"),
        ({"tokens_per_batch": 7, "null": "none"}, "null was first, is now none; tokens_per_batch was 2048, is now 7"),
        ({"threads": 2}, "threads was 1, is now 2"),
    ],
)
def test_other_options_are_told_with_both_values(there: Path, lab, options: dict, told: str) -> None:
    """Before the model is loaded: there is none of this name."""
    before = content(there)
    with pytest.raises(BadInput, match=rf" belongs to another survey \({told}\): choose another folder"):
        ask("no/such-model", lab.sentences(1, [4] * 6), there, resume=True, **options)
    assert content(there) == before


def test_another_model_is_told(there: Path, small, tiny, lab) -> None:
    trained = small()
    with torch.no_grad():
        trained.model.transformer.h[1].attn.c_attn.weight[0, 0] += 1e-3
    for model in (trained, tiny.load("gpt2", n_layer=2), tiny.load("opt")):
        with pytest.raises(BadInput, match=r"\(model .*was .*, is now .*\): choose another folder"):
            ask(model, lab.sentences(1, [4] * 6), there, resume=True)


def test_other_sentences_are_told(there: Path, small, lab) -> None:
    before = content(there)
    first, *rest = lab.sentences(1, [4] * 6)
    other_tag = replace(first, tags=("X", *first.tags[1:]))
    for corpus in ([*rest, first], [other_tag, *rest]):
        with pytest.raises(BadInput, match=r"made of other input, which has changed|corpus_fingerprint"):
            ask(small(), corpus, there, resume=True)
    assert content(there) == before


def test_a_finished_survey_of_a_longer_corpus_is_another(finished: Path, small, lab) -> None:
    corpus = lab.sentences(1, [4] * 6)
    for other in ([*corpus, *corpus], corpus[:5]):
        with pytest.raises(BadInput, match=r"another survey \(corpus_fingerprint was \w+, is now"):
            ask(small(), other, finished, resume=True)


def test_a_file_that_changed_is_told(small, tmp_path: Path) -> None:
    path = tmp_path / "texts.txt"
    path.write_text("the key\nthe dogs see\na boy runs\n")
    with pytest.raises(KeyboardInterrupt):
        ask(small(), path, tmp_path / "out", watch=interrupt)
    path.write_text("the key\nthe dogs see !\na boy runs\n")
    with pytest.raises(BadInput, match=r"pass-1-000000.* was made of other input, which has changed since:"):
        ask(small(), path, tmp_path / "out", resume=True)


def test_a_corpus_of_another_name_is_told(small, tmp_path: Path) -> None:
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text("the key\nthe dogs see\na boy runs\n")
    ask(small(), tmp_path / "one.txt", tmp_path / "out")
    with pytest.raises(BadInput, match=r"\(corpus was one\.txt, is now two\.txt\)"):
        ask(small(), tmp_path / "two.txt", tmp_path / "out", resume=True)


@pytest.mark.parametrize("resume", [False, True])
def test_a_foreign_folder_is_left_alone(small, lab, tmp_path: Path, resume: bool) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "diary.txt").write_text("mine")
    with pytest.raises(BadInput, match=r"notes is not empty and holds no survey: choose another folder\.$"):
        ask(small(), lab.sentences(1, [4]), tmp_path / "notes", resume=resume)
    assert content(tmp_path / "notes") == {"diary.txt": b"mine"}
    with pytest.raises(BadInput, match=r"^A survey is kept in a folder, but .*diary\.txt is a file\.$"):
        ask(small(), lab.sentences(1, [4]), tmp_path / "notes" / "diary.txt", resume=resume)


@pytest.mark.parametrize(
    "options",
    [
        {"statistics": ["no such thing"]},
        {"engine": "no such thing"},
        {"null": "no such thing"},
        {"limit": 0},
        {"shard_size": 0},
        {"tokens_per_batch": 0},
        {"threads": 0},
        {"engine_options": {"workers": 2}},
        {"corpus": []},
    ],
    ids=str,
)
def test_what_is_refused_at_once_leaves_no_folder(small, lab, tmp_path: Path, options: dict) -> None:
    corpus = options.pop("corpus", lab.sentences(1, [4]))
    with pytest.raises(BadInput):
        ask(small(), corpus, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_an_error_in_mid_run_leaves_whole_files_only(small, tmp_path: Path) -> None:
    path = tmp_path / "broken.conllu"
    good = "1\tthe\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tkey\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
    path.write_text(good * 4 + "1\tthe\t_\tDET\n\n")
    with pytest.raises(BadInput, match=r"^Line 13 of .*broken\.conllu has 4 columns"):
        ask(small(), path, tmp_path / "out")
    assert set(content(tmp_path / "out")) == {
        "unfinished/recipe.json", "unfinished/pass-1-000000.safetensors", "unfinished/pass-1-000001.safetensors"
    }  # fmt: skip
    path.write_text(good * 5)  # mended behind what was read: it goes on
    found = ask(small(), path, tmp_path / "out", resume=True)
    assert found.card["sentences"] == 5


def test_a_finished_folder_holds_nothing_else(finished: Path) -> None:
    tables = {
        f"tables/{name}{part}.{kind}" for name in NAMES for part in ("", "_by_layer") for kind in ("csv", "parquet")
    }
    assert set(content(finished)) == {*tables, "survey.html", "survey.json"}


@pytest.mark.parametrize("statistics", [["exemplars"], ["dependency_by_distance"]])
def test_a_statistic_without_a_map_can_be_saved(small, lab, tmp_path: Path, statistics: list[str]) -> None:
    found = ask(small(), lab.sentences(1, [4] * 6), tmp_path / "out", statistics=statistics)
    lab.assert_identical(Survey.load(tmp_path / "out"), found)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"engine": "cores", "engine_options": {"workers": 0}}, "workers must be at least 1"),
        # the third sentence where the cluster of other tests runs in this process
        ({"engine": "ray", "engine_options": {"address": "localhost:1"}}, "Nothing answers|needs Ray|another Ray than"),
        ({"threads": 100_000}, "threads must be at most 1024"),
        ({"shard_size": 2**40}, "shard_size must be at most"),
        ({"engine": failing}, "^the third line is bad"),
    ],
)
def test_bad_input_leaves_no_folder_that_blocks_the_corrected_command(
    small, lab, tmp_path: Path, options: dict, match: str
) -> None:
    corpus, out = lab.sentences(1, [4] * 6), tmp_path / "new" / "out"
    with pytest.raises(BadInput, match=match):
        ask(small(), corpus, out, **options)
    assert not out.exists()
    ask(small(), corpus, out)


def test_bad_input_after_some_shards_keeps_them_and_says_so(small, lab, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"text": "the key"}\n' * 2 + "bad\n")
    with pytest.raises(
        BadInput, match=r"^Line 3 of .*; what was done before is kept, and --resume .* goes on from it\.$"
    ):
        ask(small(), corpus, tmp_path / "out")
    corpus.write_text('{"text": "the key"}\n' * 3)
    resumed = ask(small(), corpus, tmp_path / "out", resume=True)
    lab.assert_identical(resumed, ask(small(), corpus, tmp_path / "other"))


def test_a_recipe_that_is_damaged_is_told(begun: Path, small, lab) -> None:
    (begun / "unfinished" / "recipe.json").write_text("[1")
    with pytest.raises(BadInput, match=r"recipe\.json is damaged: remove .*unfinished"):
        ask(small(), lab.sentences(1, [4] * 6), begun, resume=True)
