"""Every claim on figures made by hand: all hold on what the paper shows, and each fails once its own figures change."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from attnscope.reproduce.abnar2020 import reproduce_abnar2020
from attnscope.reproduce.abnar2020.claims import Evidence, Run
from attnscope.reproduce.abnar2020.paper import TABLE_1, TABLE_2, TABLE_3
from attnscope.reproduce.abnar2020.scoring import Cell, Correlations, cells_of
from attnscope.reproduce.abnar2020.sentiment import classifier_cells
from attnscope.reproduce.claims import NO_RUN

IDS = (
    "layer1-rollout-equals-flow raw-collapses-after-layer1 rollout-beats-raw-from-layer3-blankout "
    "rollout-beats-raw-from-layer3-gradient flow-above-rollout-layers2-4-blankout "
    "flow-above-rollout-layers2-6-gradient raw-best-at-layer1 raw-near-uniform-above-layer3 "
    "rollout-more-focused-than-flow accuracy-096 order-survives-without-cls order-survives-average-ranks "
    "sst2-rollout-and-flow-above-raw deep-flow-is-saturated residual-fades-higher-up more-distinctive-higher-up "
    "order-survives-with-attractors order-survives-where-wrong pronouns-follow-rollout-and-flow"
).split()
PAPER = {"blank_out": TABLE_1, "gradient": TABLE_2, "gradient_sum": TABLE_2}
SEEDS = (0, 1)


def as_published(figure: Cell) -> float:
    reference, method, layer, _, _ = figure
    return PAPER[reference][method][layer][0] if layer else 0.0


def of_sentiment(figure: Cell) -> float:
    _, method, layer, _, _ = figure
    # the paper shows four of six layers
    return TABLE_3[method].get(layer, TABLE_3[method][6])[0] if layer else 0.0


def correlations(seed: int | None, figures: tuple[Cell, ...], mean: Callable[[Cell], float]) -> Correlations:
    """Fifty sentences that differ a little, all figures alike."""
    noise = np.linspace(-0.1, 0.1, 50)[:, None]
    return Correlations(seed, figures, np.array([[mean(figure) for figure in figures]]) + noise)


def by_layer(**columns: Callable[[str, int], float]) -> pd.DataFrame:
    rows = [
        {"seed": seed, "method": method, "layer": layer}
        | {name: value(method, layer) for name, value in columns.items()}
        for seed in SEEDS
        for method in ("raw", "rollout", "flow")
        for layer in range(1, 7)
    ]
    return pd.DataFrame(rows)


def evenness(method: str, layer: int) -> float:
    return {"raw": min(0.6 + 0.08 * layer, 0.99), "rollout": 0.8, "flow": 0.95}[method]


def residual(method: str, layer: int) -> dict[str, float]:
    """What [CLS] keeps of itself, which fades but in raw attention, and how even the words are, which fades too."""
    traced = method != "raw"
    own, even = (0.6 - 0.08 * layer, 0.95 - 0.05 * layer) if traced else (0.1, 0.9 + 0.01 * layer)
    return {"own": own, "even": even}


def residual_rows(of: Callable[[str, int], dict[str, float]]) -> pd.DataFrame:
    names = [(name, end, off) for name in ("own", "even") for end, off in (("", 0), ("_low", -0.01), ("_high", 0.01))]
    columns = {f"{name}{end}": lambda m, n, name=name, off=off: of(m, n)[name] + off for name, end, off in names}
    return by_layer(**columns)


def pronoun_rows(right: dict[str, int], pairs: int = 20, his: int = 20) -> pd.DataFrame:
    """So many sentences in which each method is right, the first ones; his is the likelier in the first so many."""
    return pd.DataFrame(
        {
            "pair": number // 2 + 1,
            "form": ("his first", "her first")[number % 2],
            "sentence": f"sentence {number}",
            "method": method,
            "predicted": "his" if number < his else "her",
            "agrees": float(number < right[method]),
        }
        for number in range(2 * pairs)
        for method in right
    )


PRONOUNS = {"raw": 10, "rollout": 30, "flow": 28}


def made(
    mean: Callable[[Cell], float] = as_published,
    sentiment: Callable[[Cell], float] = of_sentiment,
    even: Callable[[str, int], float] = evenness,
    saturated: float = 0.97,
    apart: float = 1e-8,
    right: int = 960,
    traced: Callable[[str, int], dict[str, float]] = residual,
    pronouns: pd.DataFrame | None = None,
    others: dict[str, Callable[[Cell], float]] | None = None,
) -> Evidence:
    parts = {"attractors, right": as_published, "natural, wrong": as_published} if others is None else others
    runs = [
        Run(
            correlations(seed, cells_of(6), mean),
            apart,
            {0: (right, 1000)},
            {0: (700, 1000), 1: (500, 1000)},
            {name: correlations(seed, cells_of(6), of_part) for name, of_part in parts.items()},
        )
        for seed in SEEDS
    ]
    table = by_layer(
        evenness=even,
        low=lambda method, layer: even(method, layer) - 0.01,
        high=lambda method, layer: even(method, layer) + 0.01,
    )
    saturation = pd.DataFrame(
        [
            {
                "seed": seed,
                "layer": layer,
                "saturated": saturated,
                "low": saturated - 0.01,
                "high": saturated,
                "tied": 0.5,
            }
            for seed in SEEDS
            for layer in range(1, 7)
        ]
    )
    tables = {
        "saturation": saturation,
        "evenness": table,
        "residual": residual_rows(traced),
        "pronouns": pronoun_rows(PRONOUNS) if pronouns is None else pronouns,
    }
    return Evidence(tables, runs=tuple(runs), sentiment=correlations(None, classifier_cells(6), sentiment))


def verdicts(evidence: Evidence) -> dict[str, bool | None]:
    return {claim.id: claim.holds for claim in reproduce_abnar2020.judge(evidence)}


def verdict(evidence: Evidence, name: str) -> bool | None:
    """Of one claim: to judge all others again for each takes most of the time."""
    (rule,) = (rule for rule in reproduce_abnar2020.rules if rule.id == name)
    return rule.claim(evidence).holds


def test_the_claims_are_those_of_the_issue_in_their_order():
    assert [rule.id for rule in reproduce_abnar2020.rules] == IDS


def test_all_hold_on_what_the_paper_shows():
    claims = reproduce_abnar2020.judge(made())
    assert {claim.id: claim.holds for claim in claims if not claim.holds} == {}
    assert all(claim.effect is not None and claim.n for claim in claims)
    assert [claim.id for claim in claims if claim.kind == "by-definition"] == ["layer1-rollout-equals-flow"]
    named = ("seed 0", "the classifier", "by rollout")
    assert all(any(name in claim.here for name in named) and claim.paper for claim in claims)
    told = {claim.id: claim.here for claim in claims}
    assert "seed 1 +0.06 [0.06, 0.06] (layer 2, blank-out)" in told["flow-above-rollout-layers2-4-blankout"]
    assert "seed 0: 0.960 [0.946, 0.970]" in told["accuracy-096"]  # Wilson's interval of 960 in 1000


def changed(method: str, layers: range | list[int], value: float, **where: str) -> Callable[[Cell], float]:
    """What the paper shows, but for one method at some layers of some tables."""

    def mean(figure: Cell) -> float:
        said = dict(zip(("reference", "method", "layer", "ranks", "tokens"), figure, strict=True))
        hit = figure[1] == method and figure[2] in layers and all(said[name] == label for name, label in where.items())
        return value if hit else as_published(figure)

    return mean


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("layer1-rollout-equals-flow", lambda: made(apart=1e-3)),
        ("raw-collapses-after-layer1", lambda: made(changed("raw", [3], 0.4, reference="blank_out", ranks="authors"))),
        ("raw-collapses-after-layer1", lambda: made(changed("raw", [6], 0.6, reference="gradient", ranks="authors"))),
        ("rollout-beats-raw-from-layer3-blankout", lambda: made(changed("raw", [5], 0.75, reference="blank_out"))),
        ("rollout-beats-raw-from-layer3-gradient", lambda: made(changed("raw", [6], 0.54, reference="gradient"))),
        ("flow-above-rollout-layers2-4-blankout", lambda: made(changed("flow", [3], 0.5, reference="blank_out"))),
        ("flow-above-rollout-layers2-6-gradient", lambda: made(changed("flow", [6], 0.5, reference="gradient"))),
        ("raw-best-at-layer1", lambda: made(changed("raw", [1], 0.2, reference="gradient"))),
        ("raw-near-uniform-above-layer3", lambda: made(even=lambda m, n: 0.5 if m == "raw" else evenness(m, n))),
        ("rollout-more-focused-than-flow", lambda: made(even=lambda m, n: 0.94 if m == "rollout" else evenness(m, n))),
        ("accuracy-096", lambda: made(right=940)),
        ("order-survives-without-cls", lambda: made(changed("flow", [4], 0.3, tokens="words", ranks="authors"))),
        ("order-survives-average-ranks", lambda: made(changed("raw", [4], 0.9, tokens="all", ranks="average"))),
        ("sst2-rollout-and-flow-above-raw", lambda: made(sentiment=lambda of: 0.2 * (of[1] == "raw"))),
        ("raw-near-uniform-above-layer3", lambda: made(even=lambda m, n: 0.95 if m == "raw" else evenness(m, n))),
        ("rollout-more-focused-than-flow", lambda: made(even=lambda m, n: 0.92 if m == "rollout" else evenness(m, n))),
        ("deep-flow-is-saturated", lambda: made(saturated=0.6)),
        ("residual-fades-higher-up", lambda: made(traced=lambda m, n: residual(m, 1))),  # it stays as it is
        # it rises once
        ("residual-fades-higher-up", lambda: made(traced=lambda m, n: residual(m, {3: 2, 2: 3}.get(n, n)))),
        ("more-distinctive-higher-up", lambda: made(traced=lambda m, n: residual(m, n) | {"even": 0.9})),
        ("more-distinctive-higher-up", lambda: made(traced=lambda m, n: residual("flow", n))),  # raw too
        ("order-survives-with-attractors", lambda: made(others={"attractors, right": changed("raw", [4], 0.9)})),
        ("order-survives-where-wrong", lambda: made(others={"natural, wrong": changed("flow", [5], 0.1)})),
        ("pronouns-follow-rollout-and-flow", lambda: made(pronouns=pronoun_rows(PRONOUNS | {"raw": 40}))),
    ],
)  # fmt: skip
def test_each_fails_by_its_own_figures(claim, evidence):
    assert verdict(evidence(), claim) is False


def test_a_level_flow_is_no_break_of_the_order():
    level = changed("flow", [6], TABLE_1["rollout"][6][0] - 0.015, reference="blank_out", ranks="average")
    assert verdicts(made(level))["order-survives-average-ranks"]


def test_what_is_higher_by_chance_does_not_hold():
    evidence = made()
    dice = np.random.default_rng(0)
    noisy = Correlations(
        0, cells_of(6), evidence.runs[0].correlations.values + dice.normal(0, 3, (50, len(cells_of(6))))
    )
    run = Run(noisy, 0.0, {0: (96, 100)}, {0: (96, 100)})
    found = verdicts(replace(evidence, runs=(run,)))
    assert not found["flow-above-rollout-layers2-6-gradient"]


def test_a_table_that_could_not_be_made_is_not_judged():
    evidence = made()
    missing = replace(evidence, sentiment="No encoder is here.")
    claim = next(claim for claim in reproduce_abnar2020.judge(missing) if claim.id.startswith("sst2"))
    assert claim.holds is None
    assert claim.note == "No encoder is here."


def test_a_classifier_of_two_layers_is_not_judged():
    evidence = made()
    shallow = correlations(None, classifier_cells(2), of_sentiment)
    judged = reproduce_abnar2020.judge(replace(evidence, sentiment=shallow))
    claim = next(claim for claim in judged if claim.id.startswith("sst2"))
    assert claim.holds is None
    assert "Not every layer" in claim.note


@pytest.mark.parametrize(
    ("claim", "evidence", "why"),
    [
        ("pronouns-follow-rollout-and-flow", lambda: made(pronouns=pronoun_rows(PRONOUNS, pairs=10)), "fewer than 20"),
        ("pronouns-follow-rollout-and-flow", lambda: made(pronouns=pronoun_rows(PRONOUNS, his=39)), "the same pronoun"),
        (
            "pronouns-follow-rollout-and-flow",
            lambda: made(pronouns=pronoun_rows({"raw": 20, "rollout": 23, "flow": 22})),
            "may be chance",
        ),
        ("order-survives-with-attractors", lambda: made(others={}), "Not run at this size"),
        ("order-survives-where-wrong", lambda: made(others={}), "Not run at this size"),
    ],
)  # fmt: skip
def test_what_decides_nothing_has_no_verdict(claim, evidence, why):
    (rule,) = (rule for rule in reproduce_abnar2020.rules if rule.id == claim)
    found = rule.claim(evidence())
    assert found.holds is None
    assert why in found.note


@pytest.mark.parametrize("table", ["residual", "pronouns"])
def test_a_table_that_was_not_made_leaves_its_claims_without_a_verdict(table):
    evidence = made()
    tables = {name: rows for name, rows in evidence.tables.items() if name != table}
    found = reproduce_abnar2020.judge(replace(evidence, tables=tables, missing={table: "It was not run."}))
    undecided = [claim for claim in found if claim.holds is None]
    assert len(undecided) == {"residual": 2, "pronouns": 1}[table]
    assert all(claim.note == "It was not run." for claim in undecided)


def test_where_nothing_was_run_nothing_is_judged():
    claims = reproduce_abnar2020.judge(Evidence({}, runs=(), sentiment="No encoder is here."))
    assert {claim.id for claim in claims if claim.holds is not None or not claim.note} == set()
    assert next(claim.note for claim in claims if claim.id == "accuracy-096") == NO_RUN
