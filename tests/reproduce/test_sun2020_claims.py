"""Every claim of sun2020 on figures made by hand: all hold on what the paper shows, and each fails by its own."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import mannwhitneyu

from attnscope.reproduce.claims import Claim
from attnscope.reproduce.sun2020 import reproduce_sun2020
from attnscope.reproduce.sun2020.evidence import SIGNS, Evidence, signs_of
from attnscope.reproduce.sun2020.paper import PENALTIES, SCALINGS, TITLES, VARIANTS, accuracy_in_paper
from attnscope.reproduce.sun2020.words import MATCHED, NEGATIVE, NEUTRAL, OUTLIER, POSITIVE, rank_sum

ON_ACCURACY = (
    "dp-collapses-at-lambda-0001 dp-poor-at-lambda-1 dp-flat-from-lambda-10 dpl-barely-affected"
    " dpa-worse-below-lambda-10 ad-worse-below-lambda-10 dpa-flat-from-lambda-10 ad-flat-from-lambda-10"
).split()
ON_SIGNS = "signs-of-pi-and-b signs-of-c signs-of-rho-and-e signs-of-f".split()
STUDIES = ("sst", "made-up")
ON_WORDS = (
    "polarity-signs-at-lambda-10 polar-tokens-attended-at-lambda-10 gap-follows-sign-of-vw-at-lambda-100"
    " attention-shrinks-at-lambda-100 polarity-stays-large-at-lambda-100 penalty-closes-gap-without-accuracy-loss"
    " label-tokens-attended-20news2 additive-behaves-alike"
    " polar-weights-above-neutral synthetic-dot-products vw-smaller-when-balanced weights-follow-scores"
    " relative-weight-outlier neutral-effect-survives-frequency-matching"
).split()
SEEDS = (1, 2)
WORDS = 60
COLUMNS = ("data", "variant", "scaling", "seed", "penalty")


def accuracies() -> pd.DataFrame:
    """The paper's own Table 2 for every seed, and the same accuracy with a penalty."""
    rows = [
        (data, variant, scaling, seed, 0.0, accuracy_in_paper(data, variant, scaling) / 100)
        for data in TITLES
        for variant in VARIANTS
        for scaling in SCALINGS
        for seed in SEEDS
    ]
    rows += [("sst", "dot", 100.0, seed, strength, 0.81) for seed in SEEDS for strength in PENALTIES]
    return pd.DataFrame(rows, columns=[*COLUMNS, "test_accuracy"])


def spread(middle: float) -> np.ndarray:
    return middle + np.linspace(-0.5, 0.5, WORDS)


def words_of(run: tuple[object, ...], kinds: dict[str, tuple[float, float, float]], product: float) -> pd.DataFrame:
    """Words whose polarity, attention and weight lie around these middles."""
    told = dict(zip(COLUMNS, run, strict=True)) | {"context_dot_output": product}
    tables = []
    for kind, middles in kinds.items():
        columns = {
            name: spread(middle) for name, middle in zip(("polarity", "attention", "weight"), middles, strict=True)
        }
        tables.append(pd.DataFrame({"kind": kind, **columns} | told))
    if run[0] == "sst":
        tables.append(pd.DataFrame({"kind": OUTLIER, "attention": [-1.0, -0.9, -0.2]} | told))
    return pd.concat(tables)


def words() -> pd.DataFrame:
    """λ = 10 as in Figures 2, 4 and 5, λ = 100 as in Figure 3 with V·W below zero, and no gap under a penalty."""
    moderate = {
        POSITIVE: (2.0, 1.0, 1.0),
        NEGATIVE: (-2.0, 1.5, 1.5),
        NEUTRAL: (0.1, 0.0, 0.0),
        MATCHED: (0.1, 0.1, 0.0),
    }
    large = {POSITIVE: (3.0, -0.4, 0.0), NEGATIVE: (-3.0, 0.4, 0.0), NEUTRAL: (0.0, 0.0, 0.0)}
    other_way = {POSITIVE: (3.0, 0.4, 0.0), NEGATIVE: (-3.0, -0.4, 0.0), NEUTRAL: (0.0, 0.0, 0.0)}
    closed = {POSITIVE: (3.0, 0.2, 0.0), NEGATIVE: (-3.0, 0.2, 0.0), NEUTRAL: (0.0, 0.0, 0.0)}
    labels = {"guns": (2.0, 1.0, 0.0), "med": (2.0, 1.0, 0.0), "bikes": (2.0, 1.0, 0.0), NEUTRAL: (0.0, 0.0, 0.0)}
    found = []
    for seed in SEEDS:
        found += [words_of((data, "dot", 10.0, seed, 0.0), moderate, 0.1) for data in ("sst", "imdb", "20news1")]
        found.append(words_of(("sst", "additive", 10.0, seed, 0.0), moderate, 0.1))
        found.append(words_of(("sst", "dot", 100.0, seed, 0.0), large, -2.0))
        found.append(words_of(("20news1", "dot", 100.0, seed, 0.0), other_way, 3.0))
        found.append(words_of(("20news2", "dot", 10.0, seed, 0.0), labels, 0.1))
        found += [words_of(("sst", "dot", 100.0, seed, strength), closed, 0.0) for strength in PENALTIES]
    return pd.concat(found, ignore_index=True)


def made() -> Evidence:
    row = {"positive-positive": 2.0, "negative-negative": 2.1, "positive-negative": -1.9}
    row |= {"positive-neutral": 0.01, "negative-neutral": -0.02, "neutral-neutral": 0.0}
    made_up = pd.DataFrame([{"set": "I", "penalty": 0.0, "seed": seed, **row} for seed in SEEDS])
    skewed = pd.DataFrame(
        [
            {"share": share, "seed": seed, "V·W": sign * share}
            for seed, sign in ((1, -1), (2, 1))
            for share in (0.5, 0.6, 0.7, 0.8, 0.9)
        ]
    )
    return Evidence(accuracies(), words(), made_up, skewed, signs())


def watched(term: str = "", kind: str = "", value: float = 0.0, looks: int = 20, since: int = 0) -> pd.DataFrame:
    """Curves of two runs with the paper's signs; in one, a term of a kind has another value from some look on."""
    rows = []
    for run in ("seed 1", "seed 2"):
        for look in range(looks + 1):
            for name, by_kind in SIGNS.items():
                for group, sign in {**by_kind, NEUTRAL: 0.1}.items():
                    changed = (run, name, group) == ("seed 2", term, kind) and look >= since
                    seen = value if changed else -sign if look == 0 else sign
                    rows.append({"run": run, "step": 10 * look, "quantity": name, "group": group, "value": seen})
    return pd.DataFrame(rows)


def signs(**changed: object) -> pd.DataFrame:
    return pd.concat([signs_of(watched(**changed), data) for data in STUDIES], ignore_index=True)  # type: ignore[arg-type]


def one_claim(claim: str, evidence: Evidence) -> Claim:
    return next(rule for rule in reproduce_sun2020.rules if rule.id == claim).claim(evidence)


def accuracy(data: str, variant: str, scaling: float, value: float) -> Evidence:
    """One seed with another accuracy."""
    table = accuracies()
    at = (table["data"] == data) & (table["variant"] == variant) & (table["scaling"] == scaling) & (table["seed"] == 2)
    table.loc[at, "test_accuracy"] = value
    return replace(made(), accuracies=table)


def changed(column: str, kind: str, value: float, **run: object) -> Evidence:
    """The words of one kind in one seed of some runs with another score."""
    table = words()
    at = (table["kind"] == kind) & (table["seed"] == 2)
    for name, wanted in run.items():
        at &= table[name] == wanted
    assert at.any()
    table.loc[at, column] = value + np.linspace(-0.5, 0.5, int(at.sum()))
    return replace(made(), words=table)


def test_the_claims_are_those_of_the_issue():
    assert [rule.id for rule in reproduce_sun2020.rules] == [
        *(f"{claim}-{data}" for data in TITLES for claim in ON_ACCURACY),
        *ON_WORDS,
        *(f"{claim}-{data}" for data in STUDIES for claim in ON_SIGNS),
    ]


def test_all_hold_on_what_the_paper_shows():
    assert {claim.id: claim.here for claim in reproduce_sun2020.judge(made()) if not claim.holds} == {}


DOT = {"variant": "dot", "penalty": 0.0}
FAILING: list[tuple[str, Callable[[], Evidence]]] = [
    ("dp-collapses-at-lambda-0001-sst", lambda: accuracy("sst", "dot", 0.001, 0.7)),
    ("dp-poor-at-lambda-1-imdb", lambda: accuracy("imdb", "dot", 1.0, 0.88)),
    ("dp-flat-from-lambda-10-20news1", lambda: accuracy("20news1", "dot", 10000.0, 0.8)),
    ("dpl-barely-affected-20news2", lambda: accuracy("20news2", "dot_lstm", 0.001, 0.8)),
    ("polarity-signs-at-lambda-10", lambda: changed("polarity", POSITIVE, -1.0, data="imdb", scaling=10.0, **DOT)),
    ("polarity-signs-at-lambda-10", lambda: changed("polarity", NEUTRAL, 0.9, data="imdb", scaling=10.0, **DOT)),
    ("polar-tokens-attended-at-lambda-10", lambda: changed("attention", POSITIVE, -1.0, data="20news1", **DOT)),
    ("gap-follows-sign-of-vw-at-lambda-100", lambda: changed("attention", POSITIVE, 1.0, scaling=100.0, **DOT)),
    ("penalty-closes-gap-without-accuracy-loss", lambda: changed("attention", POSITIVE, 2.0, scaling=100.0)),
    ("label-tokens-attended-20news2", lambda: changed("attention", NEUTRAL, 2.0, data="20news2")),
    ("additive-behaves-alike", lambda: changed("attention", NEGATIVE, -1.0, variant="additive")),
    ("polar-weights-above-neutral", lambda: changed("weight", NEUTRAL, 3.0, data="sst", scaling=10.0, **DOT)),
    ("weights-follow-scores", lambda: changed("weight", POSITIVE, 3.0, data="sst", scaling=10.0, **DOT)),
    ("relative-weight-outlier", lambda: changed("attention", OUTLIER, 5.0, data="sst", scaling=10.0, **DOT)),
    ("neutral-effect-survives-frequency-matching", lambda: changed("attention", MATCHED, 1.6, data="sst", **DOT)),
    ("synthetic-dot-products", lambda: replace(made(), made_up=made().made_up.assign(**{"positive-negative": 0.5}))),
    ("vw-smaller-when-balanced", lambda: replace(made(), skewed=made().skewed.replace({"V·W": {-0.5: 2.0}}))),
    ("dpa-worse-below-lambda-10-sst", lambda: accuracy("sst", "dot_affine", 1.0, 0.79)),
    ("ad-worse-below-lambda-10-imdb", lambda: accuracy("imdb", "additive", 0.001, 0.86)),
    ("dpa-flat-from-lambda-10-20news1", lambda: accuracy("20news1", "dot_affine", 50.0, 0.8)),
    ("ad-flat-from-lambda-10-20news2", lambda: accuracy("20news2", "additive", 10000.0, 0.8)),
    ("gap-follows-sign-of-vw-at-lambda-100", lambda: changed("attention", POSITIVE, -1.0, data="20news1", **DOT)),
    ("attention-shrinks-at-lambda-100", lambda: changed("attention", NEUTRAL, 1.5, data="sst", scaling=100.0, **DOT)),
    (
        "polarity-stays-large-at-lambda-100",
        lambda: changed("polarity", NEGATIVE, -0.8, data="sst", scaling=100.0, **DOT),
    ),
    ("signs-of-pi-and-b-sst", lambda: replace(made(), signs=signs(term="B", kind=NEGATIVE, value=0.5))),
    ("signs-of-c-made-up", lambda: replace(made(), signs=signs(term="C", kind=POSITIVE, value=-0.5, since=18))),
    ("signs-of-rho-and-e-sst", lambda: replace(made(), signs=signs(term="E", kind=NEUTRAL, value=0.9))),
    ("signs-of-f-made-up", lambda: replace(made(), signs=signs(term="F", kind=NEGATIVE, value=-0.1))),
]


@pytest.mark.parametrize(("claim", "evidence"), FAILING)
def test_one_seed_is_enough_to_fail(claim: str, evidence: Callable[[], Evidence]):
    assert one_claim(claim, evidence()).holds is False


def test_every_claim_can_fail():
    failing = {name.removesuffix(f"-{data}") for name, _ in FAILING for data in ("", *TITLES, *STUDIES)}
    assert failing >= {*ON_ACCURACY, *ON_WORDS, *ON_SIGNS}


def test_what_is_not_run_is_not_judged():
    evidence = made()
    only = replace(
        evidence,
        accuracies=evidence.accuracies[evidence.accuracies["data"] == "sst"],
        words=evidence.words[evidence.words["data"] == "sst"],
    )
    claims = {claim.id: claim for claim in reproduce_sun2020.judge(only)}
    assert claims["dp-poor-at-lambda-1-imdb"].holds is None
    assert "IMDB is not run at this scale" in claims["dp-poor-at-lambda-1-imdb"].note
    assert claims["label-tokens-attended-20news2"].holds is None
    assert claims["polarity-signs-at-lambda-10"].holds is True


def test_where_nothing_was_run_nothing_is_judged():
    none = Evidence(*(table[:0] for table in (accuracies(), words(), made().made_up, made().skewed)))
    claims = reproduce_sun2020.judge(none)
    assert {claim.id for claim in claims if claim.holds is not None or not claim.note} == set()


def test_an_order_that_chance_may_give_decides_nothing():
    level = changed("weight", POSITIVE, 1.5, data="sst", scaling=10.0, **DOT)
    found = {claim.id: claim for claim in reproduce_sun2020.judge(level)}["weights-follow-scores"]
    assert found.holds is None
    assert found.note == "SST seed 2: The two kinds are not told apart by both."


def test_who_says_it_and_how_large_it_is():
    claims = {claim.id: claim for claim in reproduce_sun2020.judge(made())}
    assert {name for name, claim in claims.items() if claim.kind == "own"} == {ON_WORDS[-1]}
    assert claims["dpl-barely-affected-sst"].kind == "reading"
    assert "the opposite" in claims["dpl-barely-affected-sst"].note, "the text does not say what the table shows"
    assert all(claim.effect is not None and claim.n for claim in claims.values())
    assert claims["dp-poor-at-lambda-1-sst"].effect.size == pytest.approx(0.822 - 0.744)
    assert claims["dp-poor-at-lambda-1-sst"].n == {"seeds": 2}


def test_v_w_is_compared_within_a_beginning():
    """In the mean over beginnings of opposite sign the balanced set would have the smallest |V·W|."""
    shares = (0.5, 0.6, 0.7, 0.8, 0.9)
    rows = [(share, 1, -9.0 + 2 * share) for share in shares] + [(share, 2, 1.0 + 8 * share) for share in shares]
    skewed = pd.DataFrame(rows, columns=["share", "seed", "V·W"]).assign(step=6_000)
    assert skewed["V·W"].abs().groupby(skewed["share"]).mean().idxmin() == 0.5
    found = one_claim("vw-smaller-when-balanced", replace(made(), skewed=skewed))
    assert found.holds is False
    assert found.note.startswith("So it is in 1 of 2 beginnings. V·W itself rises with every step of the share in 2 of")
    assert found.note.endswith("After 6,000 steps; the paper's 500 epochs are 30,000.")


def test_terms_are_judged_along_training_and_not_at_its_end():
    early = signs(term="F", kind=POSITIVE, value=-0.3)
    early.loc[early["last"] < 0, "last"] = 0.1
    found = one_claim("signs-of-f-sst", replace(made(), signs=early))
    assert found.holds is False
    assert found.note == "Below 95% of the looks: seed 2, positive words (0.1 at the end)."
    assert found.n == {"runs": 2, "looks": 40}
    assert found.here.startswith("right at the fewest looks of any run: positive words 0%, negative words 100%;")
    once = signs(term="F", kind=POSITIVE, value=-0.3, since=20)
    assert rows_of(once, "F", POSITIVE)["right"].tolist() == [1.0, 0.95], "the first step is before any training"
    assert one_claim("signs-of-f-sst", replace(made(), signs=once)).holds is True


def rows_of(table: pd.DataFrame, term: str, kind: str) -> pd.DataFrame:
    return table[(table["data"] == "sst") & (table["term"] == term) & (table["kind"] == kind)]


def test_what_was_not_watched_or_only_at_the_end_decides_nothing():
    for evidence, reason in (
        (replace(made(), signs=pd.DataFrame()), "What drives the scores was not watched."),
        (
            replace(made(), signs=signs_of(watched(), "sst")),
            "What drives the scores was not watched on made-up sentences.",
        ),
        (replace(made(), signs=signs(looks=1)), "Only the end of training was kept"),
    ):
        for name in ON_SIGNS:
            found = one_claim(f"{name}-made-up", evidence)
            assert found.holds is None
            assert found.note.startswith(reason)


def test_the_claims_of_figure_3_need_its_words():
    table = words()
    no_large = replace(made(), words=table[(table["scaling"] != 100.0) | (table["data"] != "sst")])
    assert one_claim("gap-follows-sign-of-vw-at-lambda-100", no_large).note == "SST is not run with λ = 100."
    for name in ("attention-shrinks-at-lambda-100", "polarity-stays-large-at-lambda-100"):
        found = one_claim(name, no_large)
        assert found.holds is None
        assert found.note == "The words of SST with λ = 100 are not there."


def test_tables_serve_where_the_words_are_gone():
    whole = made()
    kept = {"scores": whole.scores(variant="dot"), "comparisons": whole.comparisons(scaling=100.0)}
    bare = replace(whole, words=whole.words[:0], kept=kept)
    for name in ("gap-follows-sign-of-vw-at-lambda-100", "attention-shrinks-at-lambda-100"):
        assert one_claim(name, bare) == one_claim(name, whole)


def test_accuracies_have_the_unit_of_the_paper_and_what_is_missing_is_a_sentence():
    claims = {claim.id: claim for claim in reproduce_sun2020.judge(made())}
    assert claims["dp-poor-at-lambda-1-sst"].here == "74.4% against 82.2%; 74.4% against 82.2%"
    assert claims["dp-poor-at-lambda-1-sst"].paper == "74.4% against 82.2%"
    table = words()
    bare = replace(made(), words=table[table["kind"] != OUTLIER])
    note = {claim.id: claim.note for claim in reproduce_sun2020.judge(bare)}["relative-weight-outlier"]
    assert note == "The words of “is this progress” are not all in the texts of SST seed 1."


def test_a_stronger_penalty_that_costs_accuracy_does_not_count():
    evidence = made()
    table = evidence.accuracies.copy()
    table.loc[table["penalty"] > 0, "test_accuracy"] = 0.7
    claims = {claim.id: claim.holds for claim in reproduce_sun2020.judge(replace(evidence, accuracies=table))}
    assert claims["penalty-closes-gap-without-accuracy-loss"] is False


def test_groups_are_compared_by_pairs():
    random = np.random.default_rng(0)
    first, second = random.normal(0.5, 1, 40), np.round(random.normal(0, 1, 30), 1)
    pairs = [(one > other) + 0.5 * (one == other) for one in first for other in second]
    found = rank_sum(first, second)
    assert found.above == pytest.approx(np.mean(pairs))
    assert found.p == pytest.approx(mannwhitneyu(first, second, alternative="greater").pvalue)
