"""The whole experiment: what it writes, what it reads, and what it refuses."""

import json
import re
from pathlib import Path

import pytest

from attnscope.errors import BadInput
from attnscope.reproduce import EXPERIMENTS, read_claims
from attnscope.reproduce.experiment import Attempt, command_options
from attnscope.reproduce.vig2019.figures import specific_heads
from attnscope.reproduce.vig2019.paper import SCALES, Options
from attnscope.reproduce.vig2019.stages import corpus_of, documents_of, genres_of, toy_caution
from attnscope.syntax import Corpus, Sentence

vig2019 = EXPERIMENTS["vig2019"]
FIGURES = (
    "fig05_null_attention figA1_all_tags_to figA2_all_tags_from fig08a_head_to_dependent fig08b_dependent_to_head "
    "fig08c_either fig09_dependency_types fig10_variability fig11a_distance fig11b_distance_by_layer fig12_entropy "
    "distance_against_entropy distance_against_alignment dependency_by_distance"
).split()


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    out = tmp_path_factory.mktemp("reproduce") / "smoke"
    seen = []
    return vig2019(out, limit=60, watch=seen.append), seen


@pytest.fixture
def undrawn(monkeypatch):
    """Leave the figures out, which take most of the time."""
    monkeypatch.setattr("attnscope.reproduce.vig2019.figures.FIGURES", ())


# ---- what it writes


def test_the_smoke_run_writes_everything(smoke):
    done, seen = smoke
    assert seen
    claims = json.loads((done.folder / "claims.json").read_text())
    assert [set(claim) for claim in claims] == [
        {"id", "statement", "paper", "here", "holds", "note", "kind", "post_hoc", "effect", "n"}
    ] * 24
    assert {claim["holds"] for claim in claims} == {None}, "a toy run gives no verdict"
    assert all(claim["note"] for claim in claims)
    assert any(claim["note"].startswith("A toy run: this is what would be measured") for claim in claims)
    assert read_claims(done.folder) == done.claims
    assert done.to_json() == claims
    report = (done.folder / "report.md").read_text()
    page = (done.folder / "report.html").read_text()
    for claim in done.claims:
        assert claim.id in report
        assert claim.id in page
        assert claim.id in done.summary()
    assert {path.stem for path in (done.folder / "figures").iterdir()} >= set(FIGURES)
    assert {"heads.csv", "part_of_speech.csv", "fig04_example_heads.csv", "tables_1_to_3_exemplars.csv"} <= {
        path.name for path in (done.folder / "tables").iterdir()
    }


def test_the_summary_has_the_papers_figure_beside_ours_and_says_that_a_toy_proves_nothing(smoke):
    done, _ = smoke
    told = done.summary()
    for claim in done.claims:
        assert f"({claim.id}): {claim.verdict}\n    paper  {claim.paper}\n    here   {claim.here}\n" in told
    assert told.endswith("The shipped model and grammar are toys: this run shows that the experiment works, and is not "
                         "meant to confirm claims about GPT-2.")  # fmt: skip
    for report in ("report.md", "report.html"):
        assert done.caution in (done.folder / report).read_text()


def test_only_what_is_shipped_is_called_a_toy():
    assert toy_caution("demo", "ud_ewt").startswith("The shipped model is a toy: ")
    assert toy_caution("gpt2", "demo").startswith("The shipped grammar is a toy: ")
    assert toy_caution("gpt2", "ud_ewt") == toy_caution("gpt2", [["demo"]]) == ""


def test_every_picture_of_the_report_is_there(smoke):
    done, _ = smoke
    pictures = re.findall(r"\]\((figures/[^)]+)\)", (done.folder / "report.md").read_text())
    assert len(pictures) >= len(FIGURES)
    assert all((done.folder / picture).is_file() for picture in pictures)


def test_the_page_asks_for_nothing_and_tells_no_path(smoke):
    done, _ = smoke
    page = (done.folder / "report.html").read_text()
    assert "default-src 'none'" in page
    assert not re.search(r"""(src|href)=(?!["']?data:)""", page)
    for text in (page, (done.folder / "report.md").read_text(), (done.folder / "claims.json").read_text()):
        assert str(done.folder) not in text
        assert str(Path.home()) not in text


def test_a_second_run_says_so(smoke):
    done, _ = smoke
    with pytest.raises(BadInput, match="already holds a finished reproduction"):
        vig2019(done.folder, limit=60)


def test_a_resumed_run_of_something_else_is_refused(smoke):
    done, _ = smoke
    with pytest.raises(BadInput, match=r"another reproduction \(limit was 60, is now 50\)"):
        vig2019(done.folder, limit=50, resume=True)
    with pytest.raises(BadInput, match=r"another survey \(null was special, is now none\)"):
        vig2019(done.folder, limit=60, null="none", resume=True)


def test_all_options_but_the_one_of_python_are_on_the_command_line():
    names = {option.name for option in command_options(Options)}
    corpus = {"corpus", "parser", "limit", "sentences", "by_genre", "documents"}
    assert names == {"model", "weights", "null", "engine", "data"} | corpus


def test_a_killed_run_goes_on_and_a_finished_one_is_written_again_to_the_byte(tmp_path, smoke, undrawn):
    class Killed(Exception):
        pass

    def kill(progress):
        if progress.texts >= 24:
            raise Killed

    out = tmp_path / "out"
    with pytest.raises(Killed):
        vig2019(out, limit=60, watch=kill)
    with pytest.raises(BadInput, match="unfinished reproduction"):
        vig2019(out, limit=60)
    assert vig2019(out, limit=60, resume=True).claims == smoke[0].claims
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    vig2019(out, limit=60, resume=True)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_whatever_a_text_holds_stays_text(paper_tables, survey_from, tmp_path, undrawn):
    attempt = Attempt(tmp_path, "cpu", SCALES["cpu"], Options(), ("survey",))
    vig2019._write(attempt, survey_from(paper_tables), tmp_path)
    page, report = (tmp_path / "report.html").read_text(), (tmp_path / "report.md").read_text()
    assert "<em> *cats*</em>" in page
    assert " &lt;b&gt;" in page
    assert "<b>" not in page
    assert r"<em> \*cats\*</em><strong> \|</strong> &lt;b&gt;" in report


def test_plain_sentences_leave_syntax_unmeasured(tmp_path):
    texts = [f"the {noun} sees a {other} and the old {noun} sleeps near the door ." for noun in ("dog", "fox", "owl")
             for other in ("cat", "bird")]  # fmt: skip
    done = vig2019(tmp_path / "out", corpus=texts)
    unknown = {claim.id for claim in done.claims if claim.here == "–"}
    assert {"nouns-head-share", "subjects-deeper", "dependency-distance", "previous-token-head"} <= unknown
    assert "distance-sd" not in unknown
    assert (done.folder / "report.html").is_file()


def test_the_examples_are_heads_that_look_elsewhere(paper_tables, survey_from):
    # head 0 attends to itself in its exemplars
    heads = specific_heads(survey_from(paper_tables))
    assert len(heads) == 3
    assert all(head != 0 for _, head in heads)


def test_the_papers_own_heads_are_shown_for_its_own_model(paper_tables, survey_from):
    heads = specific_heads(survey_from(paper_tables, model={"name": "openai-community/gpt2"}))
    assert heads == [(10, 10), (11, 2), (11, 10)]


# ---- what it reads


def sentence(text: str, name: str | None = None, document: str | None = None) -> Sentence:
    words = tuple(text.split())
    heads = (-1, *([0] * (len(words) - 1)))
    tags, relations = ("NOUN",) * len(words), ("root", *(["dep"] * (len(words) - 1)))
    return Sentence(words, tags, heads, relations, name=name, document=document)


def corpus(sentences: list[Sentence]) -> Corpus:
    return Corpus("made by hand", len(sentences), None, lambda: iter(sentences))


def test_a_limit_is_spread_evenly():
    found = corpus_of(list("abcdefghij"), SCALES["cpu"], data=None, parser=None, limit=5, whole=False)
    assert [item.text for item in found] == ["b", "d", "f", "h", "j"]
    assert found.size == 5
    assert "5 of 10" in found.name


def test_sentences_are_counted_behind_the_parser(monkeypatch):
    class Dots:
        def __init__(self, name: str) -> None:
            assert name == "dots"

        def parse(self, items):
            return ([sentence(part.strip()) for part in text.split(".") if part.strip()] for text in items)

    monkeypatch.setattr("attnscope.syntax.reading.Parser", Dots)
    texts = Corpus("texts", 3, "dots", lambda: iter(["a b. c d. e f.", "g h.", "i j. k l."]))
    found = corpus_of(texts, SCALES["cpu"], data=None, parser=None, limit=None, sentences=3)
    assert [item.text for item in found] == ["c d", "g h", "k l"], "spread over all six"
    assert (found.size, found.parser, found.name) == (3, None, "texts, 3 of 6")
    assert len(list(corpus_of(texts, SCALES["cpu"], data=None, parser=None, limit=1))) == 1, "a limit counts texts"


def test_the_first_lines_say_what_was_run_and_what_the_paper_had(paper_tables, survey_from, tmp_path, undrawn):
    given = Options(weights="Restored from 4 bits.", corpus="wikitext2", parser="en_core_web_sm")
    attempt = Attempt(tmp_path, "cpu", SCALES["cpu"], given, ("survey",))
    vig2019._write(attempt, survey_from(paper_tables), tmp_path)
    report = (tmp_path / "report.md").read_text()
    first = "\n".join(report.splitlines()[:20])
    for said in (
        "| model | handmade (Handmade), 12 layers of 12 heads |",
        "| weights | Restored from 4 bits. |",
        "1,000 texts read, 27,700 tokens",
        "| licence of the texts | CC BY-SA |",
        r"| annotation | by spaCy's en\_core\_web\_sm |",
        "| seeds | none: nothing is trained |",
        "| differs from the paper | the paper has GPT-2 small (12 layers of 12 heads) as published; 10,000 sentences",
    ):
        assert said in first, said
    assert "The sentences are quoted from made by hand (CC BY-SA)." in report


def test_named_data_sets_are_read_by_scale(tmp_path):
    folder, nothing_else = tmp_path / "ud_ewt", {"parser": None, "limit": None, "whole": False}
    folder.mkdir()
    for split in ("train", "dev", "test"):
        row = f"1\t{split}\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
        (folder / f"en_ewt-ud-{split}.conllu").write_text(row)
    read = {
        scale: [item.text for item in corpus_of("ud_ewt", SCALES[scale], data=tmp_path, **nothing_else)]
        for scale in ("cpu", "paper")
    }
    assert read == {"cpu": ["dev", "test"], "paper": ["train", "dev", "test"]}
    one = corpus_of("ud_ewt:train", SCALES["cpu"], data=tmp_path, **nothing_else)
    assert [item.text for item in one] == ["train"]
    with pytest.raises(BadInput, match="no split 'valid'"):
        corpus_of("ud_ewt:valid", SCALES["cpu"], data=tmp_path, **nothing_else)


def test_genres_come_from_the_names():
    found = genres_of(corpus([sentence("a b", f"{kind}-1", None) for kind in ("email", "weblog", "email")]))
    assert {name: part.size for name, part in found.items()} == {"email": 2, "weblog": 1}
    assert [item.name for item in found["email"]] == ["email-1", "email-1"]
    with pytest.raises(BadInput, match="tell a genre"):
        genres_of(corpus([sentence("a b", "", None)]))


def test_documents_are_cut_at_a_budget_and_have_several_sentences():
    long, short = "w " * 120, "w w"
    texts = [sentence(long, "a", "one")] * 3 + [sentence(short, "b", "two"), sentence(short, "c", None)]
    found = list(documents_of(corpus(texts)))
    assert [(piece.parts, len(piece)) for piece in found] == [(2, 240)]
    texts = [sentence(short, str(number), "one") for number in range(5)]
    found = documents_of(corpus(texts), lambda one: one.name != "2")
    assert [piece.parts for piece in found] == [2, 2]
    assert found.name.endswith("as documents without 1 sentence that cannot be aligned")
    texts = [sentence(short, "b", "two"), sentence(short, "c", None)]
    with pytest.raises(BadInput, match="no documents of several sentences"):
        documents_of(corpus(texts))


def test_sentences_that_no_document_takes_are_counted():
    documents = {"a": "one", "b": "one", "c": "two", "d": None, "e": None, "f": "six", "bad": "six"}
    texts = [sentence("w w", name, document) for name, document in documents.items()]
    found = documents_of(corpus(texts), lambda one: one.name != "bad")
    assert [piece.parts for piece in found] == [2]
    without = "without 1 sentence that cannot be aligned and 4 sentences that would stand alone"
    assert found.name.endswith(f", as documents {without}")
    assert documents_of(corpus(texts[:2])).name.endswith(", as documents")


def test_each_genre_has_its_report_and_all_are_compared(tmp_path, undrawn):
    words = "the dog sees a cat and the old dog sleeps near the door ."
    texts = [sentence(words, f"{kind}-{number}", None) for number in range(8) for kind in ("email", "weblog")]
    done = vig2019(tmp_path / "out", corpus=texts, by_genre=True)
    assert len(done.claims) == len(vig2019.rules)
    for kind in ("email", "weblog"):
        assert len(read_claims(tmp_path / "out" / kind)) == len(vig2019.rules)
    report = (done.folder / "report.md").read_text()
    assert "(email/report.md)" in report
    assert (done.folder / "figures" / "distance_by_layer.svg").is_file()
    with pytest.raises(BadInput, match="already holds"):
        vig2019(tmp_path / "out", corpus=texts, by_genre=True)


# ---- what it refuses


def test_bad_input_is_one_sentence_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.delenv("ATTNSCOPE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    out = tmp_path / "out"
    for options, words in (
        ({"scale": "huge"}, "no scale 'huge'"),
        ({"model": str(tmp_path / "nowhere")}, "no folder|cannot be loaded"),
        ({"corpus": "nowhere.conllu"}, "no file"),
        ({"limit": 0}, "at least 1"),
        ({"by_genre": True}, "tell a genre"),
        ({"documents": True}, "no documents"),
        ({"corpus": "ud_ewt", "data": tmp_path / "none"}, "no folder .*none to look for data sets in"),
    ):
        with pytest.raises(BadInput, match=words):
            vig2019(out, **options)
    assert not out.exists()


def test_without_gpt2_it_asks_for_a_model(tmp_path):
    with pytest.raises(BadInput, match=r"GPT-2.*--model"):
        vig2019(tmp_path / "out", scale="cpu", corpus="demo", limit=5)
    assert not (tmp_path / "out").exists()


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(BadInput, match="holds no reproduction"):
        vig2019(tmp_path)
    with pytest.raises(BadInput, match="is a file"):
        vig2019(tmp_path / "notes.txt")
