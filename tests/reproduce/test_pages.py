"""The pages on the papers: their counts are those of the claims, figures are there, and first lines tell the sizes."""

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from attnscope.reproduce import PAPERS, read_claims
from attnscope.reproduce.claims import count

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "reproductions"
INDEX = (PAGES / "index.md").read_text(encoding="utf-8")
FACTS = ("model", "weights", "data", "seeds", "steps", "differs from the paper")


@pytest.mark.parametrize("paper", PAPERS)
def test_the_page_counts_the_claims_as_they_stand(paper: str):
    claims = [claim for claim in read_claims(PAGES / paper) if claim.kind == "paper"]
    hold = sum(claim.holds is True for claim in claims)
    fail = sum(claim.holds is False for claim in claims)
    told = re.search(rf"<!-- {paper} -->(.*?)<!-- / -->", INDEX)[1]
    assert list(map(int, re.findall(r"\d+", told))) == [hold, fail, len(claims) - hold - fail], (
        "run python .ci/reproductions_page.py"
    )
    whole = re.search(rf"<!-- {paper} whole -->(.*?)<!-- / -->", INDEX)[1]
    assert whole == f"{count(read_claims(PAGES / paper))}."


@pytest.mark.parametrize("paper", PAPERS)
def test_every_paper_has_its_figure_and_its_page(paper: str):
    assert f"(figures/{paper}.svg)" in INDEX
    assert (PAGES / "figures" / f"{paper}.svg").stat().st_size > 5_000
    assert f"({paper}/index.md)" in INDEX


def test_what_is_counted_or_found_is_written_anew():
    spec = spec_from_file_location("reproductions_page", ROOT / ".ci" / "reproductions_page.py")
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    stale = re.sub(r"\*\*\d+\*\* hold", "**999** hold", INDEX)
    assert stale != INDEX
    assert script.with_counts(stale) == INDEX
    for page in script.pages():
        text = page.read_text(encoding="utf-8")
        assert script.with_counts(text) == text, f"{page.parent.name}: run python .ci/reproductions_page.py"


REPORTS = [*(f"{paper}/report.md" for paper in PAPERS), "vig2019/ewt/report.md"]


@pytest.mark.parametrize("page", [*REPORTS, "abnar2020/index.md", "snell2021/index.md"])
def test_the_first_lines_tell_what_was_run(page: str):
    first = (PAGES / page).read_text(encoding="utf-8").splitlines()[:20]
    for fact in FACTS:
        assert any(line.startswith(f"| {fact} |") for line in first), fact
