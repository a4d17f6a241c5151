"""The whole experiment, small: its files, its resuming to the same bytes, and what it refuses."""

from dataclasses import replace

import pytest
from typer.testing import CliRunner

from attnscope.cli import app
from attnscope.errors import BadInput
from attnscope.lab.data import AgreementExample
from attnscope.lab.data.examples_file import card_of, words_of, write_card, write_examples, write_words
from attnscope.reproduce import read_claims
from attnscope.reproduce.abnar2020 import paper, reproduce_abnar2020, sentiment, stages
from attnscope.reproduce.abnar2020.paper import SCALES, Options
from attnscope.reproduce.abnar2020.stages import build_examples, linzen_split
from attnscope.reproduce.experiment import Attempt

TINY = replace(
    SCALES["smoke"], steps=8, sentences=9, reviews=3, seeds=(0, 1), settings={"layers": 6, "heads": 2, "width": 8}
)


@pytest.fixture(scope="module")
def tiny():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(paper.SCALES, "smoke", TINY)
        yield patch


@pytest.fixture(scope="module")
def whole(tiny, run_by_command):
    """A finished run, made by the command."""
    return run_by_command("abnar2020")


def test_everything_is_written(whole):
    files = {path.relative_to(whole).as_posix() for path in whole.rglob("*") if path.is_file()}
    assert {"report.md", "report.html", "claims.json", "recipe.json"} <= files
    tables = "accuracy evenness residual saturation subjects table_3 tables_1_and_2".split()
    assert {f"tables/{name}.csv" for name in tables} <= files
    figures = "fig01_attention_graph fig02_raw_maps fig03_maps table_3 tables_1_and_2_authors_all".split()
    assert {f"figures/{name}" for name in figures} <= {path.removesuffix(".svg").removesuffix(".png") for path in files}
    assert len(read_claims(whole)) == 19
    text = (whole / "report.md").read_text()
    assert "The shipped grammar is a toy" in text
    assert "masked language model" in text  # what Figure 4 would need
    first = text.splitlines()[:20]
    for name in ("model", "weights", "data", "seeds", "steps", "differs from the paper"):
        assert any(line.startswith(f"| {name} |") for line in first), name
    assert not any("unfinished" in path for path in files)


def test_a_stopped_run_goes_on_to_the_same_bytes(whole, tiny, tmp_path, monkeypatch, draw_from):
    draw_from(whole)
    out = tmp_path / "run"
    real, calls = stages.score_sentences, []

    def stopping(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(stages, "score_sentences", stopping)
    with pytest.raises(KeyboardInterrupt):
        reproduce_abnar2020(out)
    assert not (out / "claims.json").exists()
    monkeypatch.setattr(stages, "score_sentences", real)
    with pytest.raises(BadInput, match="already holds an unfinished reproduction"):
        reproduce_abnar2020(out)
    reproduce_abnar2020(out, resume=True)
    for name in ("report.md", "claims.json", "tables/tables_1_and_2.csv", "tables/table_3.csv"):
        assert (out / name).read_bytes() == (whole / name).read_bytes()


def test_another_run_is_not_gone_on_with(whole):
    with pytest.raises(BadInput, match="parser"):
        reproduce_abnar2020(whole, parser="another", resume=True)


def test_the_authors_split():
    examples = [AgreementExample((f"word{number}",), "plural", 0, 0, "are") for number in range(1_000)]
    found = linzen_split(examples, "linzen.tsv")
    assert [len(part) for part in (found.training, found.validation, found.testing)] == [100, 10, 890]
    assert sorted(one.words for one in [*found.training, *found.validation, *found.testing]) == sorted(
        one.words for one in examples
    )
    assert [one.words for one in found.training] != [one.words for one in examples[:100]]


def attempt(folder, **options) -> Attempt:
    """The experiment at the scale "cpu", before its stages."""
    return Attempt(folder, "cpu", SCALES["cpu"], Options(**options), tuple(reproduce_abnar2020.stages))


def test_a_built_file_is_trained_on_and_its_words_serve_the_test_set(tmp_path, monkeypatch):
    built = tmp_path / "mine.jsonl"
    nouns = ("key", "keys", "cat", "cats")
    examples = [
        AgreementExample(("the", f"{noun}{number}"), "plural" if noun.endswith("s") else "singular", 0, 1, "do")
        for noun in nouns
        for number in range(50)
    ]
    write_examples(built, examples)
    write_words(words_of(built), ["the"])
    write_card(card_of(built), {"recipe": {"sources": ["mine.txt"]}})
    asked = {}

    def build(sources, out, **options):
        asked.update(options, sources=sources)
        write_examples(out, examples[:7])

    monkeypatch.setattr("attnscope.reproduce.abnar2020.stages.build_agreement", build)
    found = build_examples(attempt(tmp_path, corpus=str(built), parser="p"))
    assert (asked["sources"], asked["words"]) == (["agreement"], words_of(built))
    assert len(found.testing) == 7
    assert len(found.training) + len(found.validation) + len(found.held_out) == 200
    assert "mine.txt" in found.source


def test_what_is_missing_is_told(tmp_path):
    with pytest.raises(BadInput, match=r"agr_50_mostcommon_10K\.tsv"):
        reproduce_abnar2020(tmp_path / "paper", scale="paper")
    with pytest.raises(BadInput, match="no scale 'large'"):
        reproduce_abnar2020(tmp_path / "large", scale="large")
    with pytest.raises(BadInput, match="masked"):
        reproduce_abnar2020(tmp_path / "demo", model="demo")
    with pytest.raises(BadInput, match="There is no file"):
        reproduce_abnar2020(tmp_path / "corpus", corpus="nowhere.jsonl.gz")
    with pytest.raises(BadInput, match="nothing is built here"):
        reproduce_abnar2020(tmp_path / "limit", limit=3)
    with pytest.raises(BadInput, match="limit must be at least 1, not 0"):
        reproduce_abnar2020(tmp_path / "none", scale="cpu", limit=0)
    assert not any(tmp_path.iterdir())


def test_an_encoder_that_is_not_there_leaves_out_table_3_unless_it_was_named(tmp_path, monkeypatch):
    def refused(*arguments, **options):
        raise BadInput("It cannot be loaded.")

    monkeypatch.setattr(sentiment, "train_classifier", refused)
    found = sentiment.run_sentiment(attempt(tmp_path))
    assert found.correlations == found.about
    assert "It cannot be loaded. (--encoder names what is fine-tuned.)" in found.about
    with pytest.raises(BadInput, match="cannot be loaded"):
        sentiment.run_sentiment(attempt(tmp_path, encoder="mine"))


def test_what_another_paper_takes_is_refused(tmp_path):
    refused = CliRunner().invoke(app, ["reproduce", "abnar2020", "--by-genre", "--out", str(tmp_path / "refused")])
    assert refused.exit_code == 2
    assert "No such option: --by-genre" in refused.stderr
    with pytest.raises(BadInput, match="abnar2020 takes no --by-genre"):
        reproduce_abnar2020(tmp_path / "refused", by_genre=True)
    assert not any(tmp_path.iterdir())
