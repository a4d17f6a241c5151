"""What experiments share: claims as JSON, the report as Markdown and as a page, and several runs side by side."""

import json
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from attnscope.cli import app
from attnscope.commands.reproduce import PAPERS
from attnscope.errors import BadInput
from attnscope.reproduce import EXPERIMENTS, Claim, compare, read_claims
from attnscope.reproduce.claims import (
    TOY_NOTE,
    Effect,
    Finding,
    claims_blocks,
    claims_json,
    count,
    details_blocks,
    in_every,
    without_verdicts,
)
from attnscope.reproduce.document import (
    Code,
    Document,
    Emphasis,
    Heading,
    Link,
    Paragraph,
    Strong,
    Table,
    markdown_of,
    page_of,
)
from attnscope.reproduce.writing import write_reproduction

TRUE = Claim("a-b", "It is so. Holds if it is.", "0.42", "0.40 ± 0.01", True, "")
FALSE = Claim("c-d", "It is not. Holds if it is.", "1", "2", False, "Quite.")
UNKNOWN = Claim("e-f", "Who knows? Holds if one does.", "1", "–", None, "Nobody measured it.")
DOCUMENT = Document(
    "A & B",
    [
        Heading("One"),
        Paragraph(["see ", Code("x_y"), " and ", Link("there", "a b/c"), " ", Strong("*bold*"), Emphasis("<i>")]),
        Table(["name", "value"], [["a|b", "1"], [[Strong("c")], "2\n3"]]),
    ],
)


def test_claims_survive_a_round_trip(tmp_path):
    (tmp_path / "claims.json").write_text(claims_json([TRUE, FALSE, UNKNOWN]))
    assert read_claims(tmp_path) == (TRUE, FALSE, UNKNOWN)
    assert read_claims(tmp_path / "claims.json")[2].holds is None


@pytest.mark.parametrize("text", ["{", "[1]", '[{"id": "a"}]'])
def test_what_is_no_claims_is_refused(tmp_path, text):
    (tmp_path / "claims.json").write_text(text)
    with pytest.raises(BadInput, match="the claims of a reproduction, is damaged"):
        read_claims(tmp_path)


def test_a_folder_without_claims_is_refused(tmp_path):
    with pytest.raises(BadInput, match="no finished reproduction"):
        read_claims(tmp_path)


def test_the_count_is_of_what_the_paper_says_with_the_others_beside():
    own, reading = (replace(claim, kind=kind) for claim, kind in ((TRUE, "own"), (FALSE, "reading")))
    undecided = replace(TRUE, holds=None)
    said = "2 of 4 claims of the paper hold, 1 does not hold, 1 was not measured"
    assert count([TRUE, FALSE, UNKNOWN, TRUE]) == said
    beside = "0 of 1 readings of its tables, 1 of 2 of our own"
    others = [own, reading, replace(own, holds=False)]
    assert count([TRUE, FALSE, *others, UNKNOWN, TRUE]) == f"{said}; beside them {beside}"
    assert count([TRUE, undecided]) == "1 of 2 claims of the paper holds, 0 do not hold, 1 has no verdict"
    assert count([undecided, UNKNOWN]) == "no claim is judged: 1 was measured and 1 not"


def test_claims_say_who_says_it_how_large_it_is_and_of_how_many(tmp_path):
    large = Effect("accuracy", 0.475, 0.47, 0.48, "95%")
    found = replace(TRUE, kind="reading", post_hoc=True, effect=large, n={"seeds": 2, "words": 5262})
    (tmp_path / "claims.json").write_text(claims_json([found]))
    assert read_claims(tmp_path) == (found,)
    (row,) = json.loads(claims_json([found]))
    assert (row["kind"], row["post_hoc"], row["effect"]["low"], row["n"]["words"]) == ("reading", True, 0.47, 5262)
    old = {name: row[name] for name in ("id", "statement", "paper", "here", "holds", "note")}
    (tmp_path / "claims.json").write_text(json.dumps([old]))
    assert read_claims(tmp_path) == (TRUE,), "claims of an earlier version are read too"
    told = markdown_of(Document("A", details_blocks([found])), {})
    assert "Said by our reading of its tables. The rule was changed or added after results had been seen." in told
    assert r"Effect: accuracy 0.475 \[0.47, 0.48\] (95%). Of 2 seeds, 5,262 words." in told


def test_one_run_that_fails_decides_and_one_that_does_not_leaves_it_open():
    runs = {"one": (True, 0.2), "two": (None, 0.4), "three": (False, 0.9)}

    def judge(run) -> Finding:
        holds, size = runs[run.title]
        return Finding(str(size), holds, "" if holds else "Why.", Effect("size", size))

    def found(*names: str) -> Finding:
        return in_every(lambda _: [SimpleNamespace(title=name) for name in names])(judge)(None)

    assert [found(*names).holds for names in (["one"], ["one", "two"], ["one", "two", "three"])] == [True, None, False]
    assert found("one", "two").note == "two: Why."
    assert str(found("one", "two").effect) == "size 0.3 [0.2, 0.4] (range of 2 runs)"
    assert found("one", "two").n == {"runs": 2}


def test_a_toy_run_shows_what_it_measured_and_judges_nothing():
    found = without_verdicts([TRUE, FALSE, UNKNOWN])
    assert [claim.verdict for claim in found] == ["no verdict", "no verdict", "not measured"]
    assert [claim.holds for claim in found] == [None] * 3
    assert [claim.here for claim in found] == [TRUE.here, FALSE.here, UNKNOWN.here]
    assert [claim.note for claim in found] == [TOY_NOTE, f"{TOY_NOTE} Quite.", UNKNOWN.note]


def test_tables_and_summaries_say_the_sentence_and_keep_the_name(tmp_path):
    document = Document("A", claims_blocks([TRUE, UNKNOWN]))
    assert "| It is so. `a-b` | the paper | 0.42 | 0.40 ± 0.01 | <strong>holds</strong> |" in markdown_of(document, {})
    said = write_reproduction(tmp_path, document, [TRUE, UNKNOWN], {}).summary()
    assert "It is so. (a-b): holds\n    paper  0.42\n    here   0.40 ± 0.01" in said
    assert "Who knows? (e-f): not measured. Nobody measured it." in said


def test_a_wrong_paper_is_told_before_anything_heavy_is_imported():
    code = (
        "import sys; from attnscope.commands.reproduce import Papers\n"
        "try: Papers().get_command(None, 'vig2091')\n"
        "except Exception as error: print(error, {'torch', 'pandas'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "There is no experiment 'vig2091': choose vig2019, abnar2020, sun2020, wu2020, snell2021. set()\n"
    )
    assert tuple(EXPERIMENTS) == PAPERS


def test_markdown_means_what_the_document_says():
    text = markdown_of(DOCUMENT, {})
    assert text.startswith("# A &amp; B\n\n## One\n\n")
    assert r"see `x_y` and [there](a%20b/c.md) <strong>\*bold\*</strong><em>&lt;i&gt;</em>" in text
    assert "| a\\|b | 1 |\n| <strong>c</strong> | 2 3 |" in text


def test_the_page_escapes_everything():
    page = page_of(DOCUMENT, {})
    assert "<title>A &amp; B</title>" in page
    assert "<em>&lt;i&gt;</em>" in page
    assert '<a href="a%20b/c.html">there</a>' in page
    assert '<td data-name="name">a|b</td><td data-name="value">1</td>' in page


def test_a_comparison_has_every_run(tmp_path):
    for name, claims in (("one", [TRUE, FALSE, UNKNOWN]), ("two", [TRUE, TRUE, UNKNOWN])):
        same = [Claim(known.id, *[getattr(claim, field) for field in "statement paper here holds note".split()])
                for known, claim in zip([TRUE, FALSE, UNKNOWN], claims, strict=True)]  # fmt: skip
        write_reproduction(tmp_path / name, DOCUMENT, same, {})
    done = compare(tmp_path, {"first": tmp_path / "one", "second": tmp_path / "two"}, "Both")
    assert [claim.holds for claim in done.claims] == [True, False, None]
    assert done.claims[1].note == "Holds in 1 of 2 runs that decide it."
    report = (tmp_path / "report.md").read_text()
    assert "[report](one/report.md)" in report
    assert "second" in (tmp_path / "tables" / "claims.csv").read_text()


def test_a_comparison_refuses_what_cannot_be_compared(tmp_path):
    write_reproduction(tmp_path / "one", DOCUMENT, [TRUE], {})
    write_reproduction(tmp_path / "two", DOCUMENT, [FALSE], {})
    with pytest.raises(BadInput, match="same paper"):
        compare(tmp_path, {"one": tmp_path / "one", "two": tmp_path / "two"})
    with pytest.raises(BadInput, match="nothing to compare"):
        compare(tmp_path, {})
    (tmp_path / "one" / "survey").mkdir()
    with pytest.raises(BadInput, match="of its own"):
        compare(tmp_path / "one", {"two": tmp_path / "two"})


def test_every_experiment_introduces_itself():
    shown = CliRunner().invoke(app, ["reproduce", "--help"], env={"COLUMNS": "200"}).output
    for paper in EXPERIMENTS:
        assert paper in shown
    assert "Vig & Belinkov (2019)" in shown
