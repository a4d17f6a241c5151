"""Judge the committed reproductions again, from the tables that are committed with them, and write their verdicts anew.

`python .ci/rejudge.py` needs no model and no data. A claim whose evidence is not among the tables (single words, single
sentences) keeps what its run found, and one that is newer than the run has no verdict and says that it was not run;
figures that can be drawn from the tables are drawn anew; all else stays as it is.
"""

import json
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd

from attnscope.reproduce import EXPERIMENTS, Claim, compare, read_claims
from attnscope.reproduce.abnar2020 import figures as abnar_figures
from attnscope.reproduce.abnar2020.claims import Evidence as AbnarEvidence
from attnscope.reproduce.abnar2020.claims import Run
from attnscope.reproduce.abnar2020.pattern_claims import NO_PRONOUNS, NOT_AT_THIS_SIZE
from attnscope.reproduce.claims import NOTHING, Unmeasured, claims_blocks, claims_json, details_blocks, rows_with
from attnscope.reproduce.document import Block, Document, Figure, Paragraph, escape_markdown, markdown_of
from attnscope.reproduce.snell2021 import figures as snell_figures
from attnscope.reproduce.snell2021.claims import Evidence as SnellEvidence
from attnscope.reproduce.snell2021.counts import count_blocks
from attnscope.reproduce.snell2021.disclosing import facts_of as snell_facts
from attnscope.reproduce.sun2020 import figures as sun_figures
from attnscope.reproduce.sun2020.evidence import Evidence as SunEvidence
from attnscope.reproduce.sun2020.evidence import signs_of
from attnscope.reproduce.sun2020.sign_claims import MADE_UP
from attnscope.reproduce.sun2020.stages import curves
from attnscope.reproduce.sun2020.words import PRODUCT
from attnscope.reproduce.vig2019 import figures as vig_figures
from attnscope.reproduce.writing import FIGURES, REPORT, draw_figure
from attnscope.reproduce.wu2020.claims import Evidence as WuEvidence
from attnscope.reproduce.wu2020.claims import SeedRun
from attnscope.surveying import Survey

REPRODUCTIONS = Path(__file__).parents[1] / "docs" / "reproductions"
Tables = dict[str, pd.DataFrame]
NOT_RUN = "Not run at this size"
"""What is said of a claim that is newer than the run, and that its tables cannot decide."""


class NotKept:
    """Stands for what is not among the committed tables: whoever asks for anything of it is told so."""

    what = "What it is judged on"

    def __getattr__(self, name: str) -> Any:
        raise Unmeasured(f"{self.what} is not kept.")

    def __getitem__(self, name: object) -> Any:
        raise Unmeasured(f"{self.what} is not kept.")

    def __format__(self, form: str) -> str:
        raise Unmeasured(f"{self.what} is not kept.")


class WordsNotKept(NotKept):
    """The words of a lexicon study."""

    what = "What each single word got"


# The evidence of each paper, as far as its tables have it.


def of_snell2021(tables: Tables) -> SnellEvidence:
    """All of it."""
    return SnellEvidence(tables)


def of_sun2020(tables: Tables) -> SunEvidence:
    """Accuracies, made-up sentences and how kinds of words compare, no single words.

    Where the signs along training are not kept, those at the end are.
    """
    words = pd.DataFrame(columns=["data", "variant", "scaling", "seed", "penalty"])
    compared = tables["comparisons"]
    if PRODUCT not in compared:
        keys = list(words)
        products = tables["table_2"].assign(**{PRODUCT: lambda rows: rows[PRODUCT].map(_one_product)})
        compared = compared.merge(products[[*keys, PRODUCT]], on=keys, how="left")
    signs = tables.get("signs", pd.DataFrame(columns=["data"]))
    if MADE_UP not in set(signs["data"]):
        ends = tables["made_up"][tables["made_up"]["penalty"] == 0].to_dict("records")
        rows = [
            {"run": f"data {end['set']}, seed {end['seed']}", **row}
            for end in ends
            for row in curves([{"probe": "end", **end}])
        ]
        signs = pd.concat([signs, signs_of(pd.DataFrame(rows), MADE_UP)], ignore_index=True)
    kept = {"scores": tables["scores"], "comparisons": compared}
    return SunEvidence(tables["table_2"], words, tables["made_up"], tables["skewed"], signs, kept)


def _one_product(written: str) -> float:
    """V·W as a table of runs has it: in brackets, and of several classes nothing that could be told apart."""
    found = json.loads(written)
    return float(found[0]) if len(found) == 1 else float("nan")


SENTENCES = 2_210
"""Of SST's test split, on which a run that does not say so was scored."""


def of_wu2020(tables: Tables) -> WuEvidence:
    """Regressions, correlations, heads and layers, no single words."""
    runs = []
    for seed in tables["scores"]["seed"]:
        of_seed = {name: table[table["seed"] == seed] for name, table in tables.items()}
        regressions = of_seed["regressions"]
        study = SimpleNamespace(
            regressions=regressions,
            correlations=of_seed["correlations"],
            heads=of_seed["heads"],
            methods=list(regressions["method"].unique()),
            words=WordsNotKept(),
            card={"left_out": {}},
        )
        score = of_seed["scores"].iloc[0]
        texts = int(score.get("texts", SENTENCES))
        runs.append(SeedRun(int(seed), float(score["score"]), study, of_seed["evenness"], texts))  # type: ignore[arg-type]
    return WuEvidence(tuple(runs), ())


def of_abnar2020(tables: Tables) -> AbnarEvidence:
    """Accuracy, evenness and saturation, no correlations of single sentences."""

    def counts(seed: int, sentences: str) -> dict[int, tuple[int, int]]:
        rows = rows_with(tables["accuracy"], seed=seed, sentences=sentences)
        return {int(row.attractors): (int(row.right), int(row.of)) for row in rows.itertuples()}

    class OfSeed(NotKept):
        def __init__(self, seed: int) -> None:
            self.name = f"seed {seed}"

    seeds = [int(seed) for seed in tables["accuracy"]["seed"].unique()]
    kinds = list(tables["accuracy"]["sentences"].unique())
    runs = tuple(Run(OfSeed(seed), NotKept(), *(counts(seed, kind) for kind in kinds)) for seed in seeds)  # type: ignore[arg-type]
    missing = {"residual": NOT_AT_THIS_SIZE, "pronouns": NO_PRONOUNS}
    return AbnarEvidence(tables, missing, runs=runs, sentiment="Single sentences are not kept.")


SIZES = re.compile(r"\| (?:data|corpus) \| .*?([\d,]+) texts read, ([\d,]+) tokens")
"""Texts and tokens in the first lines of a report on a survey."""


def of_vig2019(tables: Tables) -> Survey:
    """The whole survey of heads and layers, but for its exemplars and its sizes, which its report has."""
    heads = tables["heads"]

    def one(name: str, **columns: Any) -> pd.DataFrame:
        error = heads.get(f"{name}_error", float("nan"))
        return heads[["layer", "head"]].assign(value=heads[name], error=error, **columns)

    texts, tokens = (int(tables["sizes"][name].iloc[0]) for name in ("texts", "tokens"))
    counts = {"layers": heads["layer"].nunique(), "heads": heads["head"].nunique()}
    card = {**counts, "sentences": texts, "tokens": tokens, "null": "first"}
    rows = heads["rows_share"] * (tokens - texts)
    types = tables["dependency_type_by_layer"]
    found = {
        "null_attention": one("null_attention"),
        "distance": one("distance"),
        "entropy": one("entropy", rows=rows, rows_share=heads["rows_share"], evenness=heads["evenness"]),
        "variability": one("variability"),
        "dependency_alignment": one("alignment", direction="either", relation="any"),
        "patterns": one("previous", pattern="previous"),
        "part_of_speech": tables["part_of_speech"],
        "dependency_type": types.assign(head=0),
        "dependency_by_distance": tables["dependency_by_distance"],
    }
    layers = {
        "distance": tables["distance_by_layer"],
        "null_attention": tables["null_attention_by_layer"],
        "dependency_alignment": tables["dependency_alignment_by_layer"],
        "dependency_type": types,
    }
    return Survey(found, layers, card)  # type: ignore[arg-type]


# The figures of each paper that its tables suffice for.


def drawn_of_vig2019(evidence: Survey) -> Iterator[Block]:
    """Figures 5 to 12."""
    for part in vig_figures.FIGURES:
        yield from part(evidence)


def drawn_of_snell2021(evidence: SnellEvidence) -> Iterator[Block]:
    """All."""
    yield from count_blocks()
    yield from snell_figures.figure_blocks(evidence.tables)


def drawn_of_abnar2020(evidence: AbnarEvidence) -> Iterator[Block]:
    """Tables 1 to 3 as curves."""
    yield from abnar_figures.correlation_blocks(evidence.tables["tables_1_and_2"], evidence)
    table = evidence.tables["table_3"].rename(columns={"source": "reference"}).assign(seed=0)
    yield from abnar_figures.sentiment_blocks(SimpleNamespace(table=lambda: table))  # type: ignore[arg-type]


def drawn_of_sun2020(evidence: SunEvidence) -> Iterator[Block]:
    """Accuracy over λ, and V·W over the share of positive sentences."""
    words = "Means over seeds; the paper's dashed."
    yield Figure("table_2", sun_figures.accuracy_over_scaling(evidence.accuracies), words)
    words = "Four beginnings for each share of positive sentences."
    yield Figure("skew", sun_figures.skew_curve(evidence.skewed), words)


PAPERS: dict[str, tuple[Callable[[Tables], Any], Callable[[Any], Iterator[Block]]]] = {
    "vig2019": (of_vig2019, drawn_of_vig2019),
    "abnar2020": (of_abnar2020, drawn_of_abnar2020),
    "sun2020": (of_sun2020, drawn_of_sun2020),
    "wu2020": (of_wu2020, lambda _: iter(())),
    "snell2021": (of_snell2021, drawn_of_snell2021),
}


# Verdicts and figures, written over what stood there.


def judge_again(paper: str, evidence: Any, kept: dict[str, Claim]) -> tuple[list[Claim], int]:
    """Every claim by its rule of today, and how many keep what their run found."""
    claims, stand = [], 0
    for rule in EXPERIMENTS[paper].rules:
        found, old = rule.claim(evidence), kept.get(rule.id)
        if found.here == NOTHING and (old is None or old.note.startswith(NOT_RUN)):
            told = found.note.startswith(NOT_RUN)
            found = replace(found, note=found.note if told else f"{NOT_RUN}. {found.note}")
        elif found.here == NOTHING and old is not None and old.here != NOTHING:
            stand += 1
            found = replace(found, here=old.here, holds=old.holds, note=old.note)
        claims.append(found)
    return claims, stand


def replaced(report: str, heading: str, blocks: list[Block]) -> str:
    """The report with another section under this heading."""
    made = markdown_of(Document("", blocks), {}).split("\n", 2)[2].strip()
    begins = report.index(f"\n## {heading}\n") + 1
    ends = report.find("\n## ", begins)
    made = made if made.startswith("## ") else f"## {heading}\n\n{made}"
    return f"{report[:begins]}{made}\n{report[ends:] if ends > 0 else ''}"


def with_facts(report: str, facts: dict[str, str]) -> str:
    """The report with these facts at its top, between the paper's name and the versions."""
    begins = report.index("| paper |")
    ends = report.index("| versions |")
    paper = report[begins:].split("\n", 1)[0]
    rows = [f"| {name} | {escape_markdown(fact)} |" for name, fact in facts.items()]
    return report[:begins] + "\n".join([paper, *rows]) + "\n" + report[ends:]


def redrawn(report: str, folder: Path, figure: Figure) -> str:
    """The report with this figure drawn anew."""
    old = [path for path in (folder / FIGURES).glob(f"{figure.name}.*") if path.suffix in (".svg", ".png")]
    new = draw_figure(figure.plot, folder / FIGURES / figure.name)
    for path in old:
        if path != new:
            path.unlink()
    line = f"![{escape_markdown(figure.plot.caption)}]({FIGURES}/{new.name})"
    pattern = rf"!\[[^\n]*\]\({FIGURES}/{re.escape(figure.name)}\.(?:svg|png)\)"
    if not re.search(pattern, report):
        raise ValueError(f"The report has no figure {figure.name}.")
    return re.sub(pattern, lambda _: line, report)


# Comparisons of several runs, whose tables are not kept: their figures stand in the comparison itself.


REPORTED = {"SmolLM2, wikitext-2": REPRODUCTIONS / "vig2019", "SmolLM2, EWT": REPRODUCTIONS / "vig2019" / "ewt"}
"""The runs in a comparison whose tables are kept, each with a report of its own."""
OLDER = "The rule has changed since, and the tables of this run are not kept."


def compare_again(folder: Path) -> None:
    """Read each run's figures in a comparison, take the verdicts away that today's rules do not give, and compare."""
    report = (folder / REPORT).read_text(encoding="utf-8")
    rules = {rule.id: rule for rule in EXPERIMENTS["vig2019"].rules}
    runs: dict[str, list[Claim]] = {}
    for name, rule in rules.items():
        _, _, behind = report.partition(f"\n### {name}\n")
        if not behind:
            newer = (name, rule.statement, rule.paper, NOTHING, None, f"{NOT_RUN}. Its tables are not kept.")
            for of_run in runs.values():
                of_run.append(Claim(*newer, rule.kind, rule.post_hoc))
            continue
        section = behind.split("\n##", 1)[0]
        said = re.sub(r"\\(.)", r"\1", section.strip().partition("\n")[0])
        rows = [_cells(line) for line in section.splitlines() if line.startswith("| ")][3:]
        for run, here, verdict, note in rows:
            holds = {"holds": True, "does not hold": False}.get(re.sub(r"\*\*|</?strong>", "", verdict))
            found = Claim(name, rule.statement, rule.paper, here, holds, note, rule.kind, rule.post_hoc)
            if said != rule.statement and here != NOTHING:
                found = replace(found, holds=None, note=f"{OLDER} {note}".strip())
            runs.setdefault(run, []).append(found)
    for run in runs.keys() & REPORTED.keys():
        runs[run] = list(read_claims(REPORTED[run]))
    links = [_cells(line)[2] for line in report.split("## Which claims")[0].splitlines() if line.startswith("| ")][2:]
    figures = re.search(r"\n\n(!\[.*?)\n## The figures\n", report, re.DOTALL)
    with tempfile.TemporaryDirectory() as temporary:
        places = {}
        for number, ((run, claims), link) in enumerate(zip(runs.items(), links, strict=True)):
            places[run] = Path(temporary) / str(number) / link
            places[run].mkdir(parents=True)
            (places[run] / "claims.json").write_text(claims_json(claims), encoding="utf-8")
        title = re.sub(r"\\(.)", r"\1", report.splitlines()[0].removeprefix("# "))
        compare(made := Path(temporary) / "made", places, title)
        new = (made / REPORT).read_text(encoding="utf-8")
        if figures is not None:
            new = new.replace("\n## The figures\n", f"\n{figures[1]}\n## The figures\n")
        (folder / REPORT).write_text(new, encoding="utf-8")
        for name in ("claims.json", "tables/claims.csv"):
            (folder / name).write_bytes((made / name).read_bytes())


def _cells(line: str) -> list[str]:
    cells = re.split(r"(?<!\\) \| ", line.strip().removeprefix("| ").removesuffix(" |").removesuffix("|"))
    return [re.sub(r"\\(.)", r"\1", cell).strip() for cell in cells]


def _in_short(claim: Claim) -> tuple[object, ...]:
    """What a claim says and comes to, without the last digits of its effect, which tables do not have."""
    return (claim.id, claim.statement, claim.paper, claim.here, claim.holds, claim.note, claim.kind, claim.post_hoc)


FOLDERS = [*((paper, REPRODUCTIONS / paper) for paper in PAPERS), ("vig2019", REPORTED["SmolLM2, EWT"])]


def main() -> None:
    """All reports, and the two comparisons of vig2019."""
    for paper, folder in FOLDERS:
        rejudge(paper, folder)
    for name in ("comparison", "genres"):
        compare_again(REPRODUCTIONS / "vig2019" / name)


def rejudge(paper: str, folder: Path) -> None:
    """One report, its claims and its figures."""
    evidence_of, drawn_of = PAPERS[paper]
    report = (folder / REPORT).read_text(encoding="utf-8")
    tables = {path.stem: pd.read_csv(path) for path in sorted((folder / "tables").glob("*.csv"))}
    if sizes := SIZES.search(report):
        texts, tokens = (int(number.replace(",", "")) for number in sizes.groups())
        tables["sizes"] = pd.DataFrame({"texts": [texts], "tokens": [tokens]})
    evidence = evidence_of(tables)
    kept = {claim.id: claim for claim in read_claims(folder)}
    claims, stand = judge_again(paper, evidence, kept)
    if [_in_short(claim) for claim in claims] == [_in_short(claim) for claim in kept.values()]:
        return  # the report stays as its run wrote it
    how = (
        "These verdicts were given anew from the tables beside this report, by the rules as they stand today; "
        f"{stand} claims on single words or sentences, which the tables do not have, keep what the run found."
        if stand
        else "These verdicts were given anew from the tables beside this report, by the rules as they stand today."
    )
    report = replaced(report, "What holds", [*claims_blocks(claims), Paragraph(how)])
    report = replaced(report, "The claims one by one", details_blocks(claims))
    if paper == "snell2021":  # whose tables tell all of it
        report = with_facts(report, snell_facts("cpu", tuple(EXPERIMENTS[paper].stages), evidence))
    for block in drawn_of(evidence):
        if isinstance(block, Figure):
            report = redrawn(report, folder, block)
    (folder / REPORT).write_text(report, encoding="utf-8")
    (folder / "claims.json").write_text(claims_json(claims), encoding="utf-8")
    for claim in claims:
        if claim.id in kept and kept[claim.id].holds is not claim.holds:
            print(f"{folder.name} {claim.id}: {kept[claim.id].holds} -> {claim.holds}")


if __name__ == "__main__":
    main()
