"""Every claim of snell2021 on figures made by hand: all hold on what the paper shows, and each fails by its own."""

from collections.abc import Callable

import pandas as pd
import pytest
from scipy.stats import fisher_exact

from attnscope.reproduce.snell2021 import reproduce_snell2021
from attnscope.reproduce.snell2021.agreement_claims import ALL, OF_TEXTS, PAIRS
from attnscope.reproduce.snell2021.claims import Evidence

STEPS = (0, 50, 100)
AGREED = {
    "attention_uniform": (0.1, 0.5, 0.3),
    "uniform_proxy": (0.1, 0.5, 0.5),
    "saliency_uniform": (0.1, 0.4, 0.4),
    "attention_lexical": (0.1, 0.5, 0.6),
    "attention_attention": (0.1, 0.6, 0.7),
    "attention_frozen": (0.1, 0.2, 0.2),
    "uniform_logistic": (0.1, 0.5, 0.55),
}
CHANCE, ERROR = 0.06, 0.01


def copying() -> pd.DataFrame:
    """Ends: every seed copies a choice of words, half of them fail on the same words and on mixtures, none reorders."""
    ends = {
        "choice": [1.0] * 20,
        "same": [1.0, 0.1] * 10,
        "mixture": [0.9, 0.1, 1.0, 0.05, 1.0, 0.1],
        "reordered": [0.3] * 4,
    }
    rows = [
        {"task": task, "attention": "learned", "seed": seed, "step": step, "accuracy": accuracy}
        for task, accuracies in ends.items()
        for seed, end in enumerate(accuracies)
        for step, accuracy in ((0, 0.02), (200, end))
    ]
    rows += [
        {
            "task": task,
            "attention": "uniform",
            "seed": 0,
            "step": 200,
            "lexical_right": -3.0,
            "lexical_other": -5.0,
            "lexical_top": 0.9,
        }
        for task in ("choice", "reordered")
    ]
    return pd.DataFrame(rows)


def heads() -> pd.DataFrame:
    learned = {"bad": 1, "good": 9, "random": 10}
    return pd.DataFrame(
        {
            "contexts": contexts,
            "kind": kind,
            "combination": number,
            "heads": f"{number} 99",
            "step": step,
            "accuracy": accuracy,
        }
        for contexts in ("mean", "sum")
        for kind, many in learned.items()
        for number in range(10)
        for step, accuracy in ((0, 0.1), (300, 0.99 if number < many else 0.3))
    )


def locality() -> pd.DataFrame:
    rows = [(0, 0.0, 0.0, 0.0, 0.0), (50, 3.0, 1.0, 0.1, 0.0), (1000, 5.0, 10.0, 4.5, 20.0)]
    columns = ["step", "keyword", "after", "mean", "last"]
    return pd.concat([pd.DataFrame(rows, columns=columns).assign(seed=seed) for seed in (0, 1)])


def agreements() -> pd.DataFrame:
    """What is judged is of two seeds on validation data; all else is at chance, so that it shows if it is taken."""
    return pd.DataFrame(
        {
            "data": data,
            "part": part,
            "seeds": seeds,
            "pair": pair,
            "step": step,
            "agreement": CHANCE
            if seeds != "two"
            else 0.2
            if (data, pair) == ("sms", "attention_attention")
            else agreement,
            "error": ERROR,
            "chance": CHANCE,
        }
        for data in ALL
        for part, seeds in (("training", "two"), ("validation", "same"), ("validation", "two"))
        for pair, curve in {**AGREED, **({"optimal_lexical": (0.4,)} if data == "multi30k" else {})}.items()
        # on training data a little more than at chance, so that it shows if it is taken for validation data
        for step, agreement in zip(
            STEPS, curve if part == "validation" else (0.06, 0.12, 0.11)[: len(curve)], strict=False
        )
    )


def contexts() -> pd.DataFrame:
    row = {"part": "validation", "seeds": "two", "by": "agreement", "measure": "accuracy", "pair": "attention_uniform"}
    found = {"agreement": 0.5, "performance": 0.8, "step": 50, "reached": True, "best": 0.9, "trivial": 0.5}
    others = [{}, {"part": "training"}, {"seeds": "same"}, {"by": "tau"}, {"measure": "bleu"}]
    # what is not judged stands first, and would not hold
    return pd.DataFrame(
        {"data": data, **row, **found, **other, **({"performance": 0.5} if other else {})}
        for data in ALL
        for other in reversed(others)
    )


def theory() -> dict[str, pd.DataFrame]:
    widths = pd.DataFrame({"width": [64, 1024], "logits_error": [0.2, 0.04]})
    return {
        "initial_gradient": widths.assign(probabilities_slope=0.14, one_over_outputs=1 / 7),
        "counterexample": pd.DataFrame({"lexical": [0.33, 0.01, 0.01], "attention": [0.0, 0.5, 0.5]}),
        "logistic": pd.DataFrame({"difference": [1e-7, -1e-8]}),
    }


WHOLE = Evidence(
    {
        "copying": copying(),
        "heads": heads(),
        "locality": locality(),
        "agreements": agreements(),
        "contexts": contexts(),
        **theory(),
    }
)
TABLES = WHOLE.tables


def whole_but(name: str, table: pd.DataFrame) -> Evidence:
    return Evidence({**TABLES, name: table})


def verdicts(evidence: Evidence) -> dict[str, bool | None]:
    return {claim.id: claim.holds for claim in reproduce_snell2021.judge(evidence)}


def verdict(evidence: Evidence, name: str) -> bool | None:
    """Of one claim: to judge all others again for each takes most of the time."""
    (rule,) = (rule for rule in reproduce_snell2021.rules if rule.id == name)
    return rule.claim(evidence).holds


def test_all_hold_on_what_the_paper_shows() -> None:
    found = verdicts(WHOLE)
    assert [name for name, holds in found.items() if not holds] == []
    assert len(found) == len(reproduce_snell2021.rules) == 13 + 6 * len(ALL) + 2 * len(OF_TEXTS) + 6


def test_nothing_measured_is_no_verdict_with_a_reason() -> None:
    empty = Evidence({})
    for claim in reproduce_snell2021.judge(empty):
        assert claim.holds is None, claim.id
        assert claim.note.endswith("."), claim.id


def changed(table: pd.DataFrame, which: dict[str, object], column: str, value: float | bool) -> pd.DataFrame:
    table = table.copy()
    chosen = pd.Series(data=True, index=table.index)
    for name, wanted in which.items():
        chosen &= table[name] == wanted
    assert chosen.any()
    table.loc[chosen, column] = value
    return table


def of_copying(column: str, value: float, **which: object) -> Callable[[], Evidence]:
    return lambda: whole_but("copying", changed(TABLES["copying"], which, column, value))


def of_heads(value: float, **which: object) -> Callable[[], Evidence]:
    return lambda: whole_but("heads", changed(TABLES["heads"], which, "accuracy", value))


def of_locality(column: str, value: float, step: int) -> Callable[[], Evidence]:
    table = TABLES["locality"].reset_index(drop=True)
    return lambda: whole_but("locality", changed(table, {"step": step, "seed": 1}, column, value))


def of_agreements(value: float, column: str = "agreement", **which: object) -> Callable[[], Evidence]:
    return lambda: whole_but("agreements", changed(TABLES["agreements"], which, column, value))


def of_theory(name: str, column: str, value: float, row: int) -> Callable[[], Evidence]:
    def made() -> Evidence:
        table = TABLES[name].copy()
        table.loc[row, column] = value
        return whole_but(name, table)

    return made


FAILURES = {
    "copy-40-of-60-always-learns": of_copying("accuracy", 0.5, task="choice", seed=7, step=200, attention="learned"),
    "copy-permutation-sometimes-fails": of_copying("accuracy", 1.0, task="same", step=200),
    "mixture-sometimes-fails": of_copying("accuracy", 1.0, task="mixture", step=200),
    "fixed-permutation-fails": of_copying("accuracy", 0.96, task="reordered", seed=3, step=200, attention="learned"),
    "beta-uf-same-for-copy-and-permutation": of_copying(
        "lexical_right", -3.2, task="reordered", attention="uniform", seed=0
    ),
    **{
        f"{name}{ending}": of_heads(value, kind=kind, step=300, contexts=contexts)
        for ending, contexts in (("", "mean"), ("-summed", "sum"))
        for name, kind, value in (
            ("eight-bad-heads-fail", "bad", 0.99),
            ("one-good-head-suffices", "good", 0.3),
            ("random-eight-learn", "random", 0.3),
        )
    },
    "locality-early": of_locality("last", 0.9, 50),
    "locality-late-last-state": of_locality("last", 9.0, 1000),
    **{
        f"{name}-sst": of_agreements(CHANCE - 4 * ERROR, data="sst", part="validation", pair=pair)
        for name, (pair, _) in PAIRS.items()
    },
    "training-agrees-too-imdb": of_agreements(0.01, data="imdb", part="training", pair="uniform_proxy"),
    "optimal-attention-agrees-with-beta": of_agreements(0.2, data="multi30k", pair="optimal_lexical"),
    "frozen-beta-below-imdb": of_agreements(0.6, data="imdb", pair="attention_frozen", step=100),
    "logistic-agrees-imdb": of_agreements(0.7, data="imdb", pair="uniform_logistic", step=100),
    "beta-uf-agreement-rises-then-falls": of_agreements(0.495, data="amazon", pair="attention_uniform", step=100),
    "sms-seeds-disagree": of_agreements(0.8, data="sms", pair="attention_attention", step=100),
    "proxy-is-logistic": of_theory("logistic", "difference", 1e-3, 1),
    "initial-gradient-is-cooccurrence": of_theory("initial_gradient", "logits_error", 0.06, 1),
    "optimal-attention-may-avoid-largest-beta": of_theory("counterexample", "attention", 0.1, 0),
}


UNDECIDED = {
    **{
        f"{name}-sst": of_agreements(CHANCE + ERROR, data="sst", part="validation", pair=pair)
        for name, (pair, _) in PAIRS.items()
    },
    "training-agrees-too-imdb": of_agreements(0.07, data="imdb", part="training", pair="uniform_proxy"),
    "optimal-attention-agrees-with-beta": of_agreements(0.295, data="multi30k", pair="optimal_lexical"),
    "frozen-beta-below-imdb": of_agreements(0.49, data="imdb", pair="attention_frozen", step=100),
    "xi-nontrivial-sst": lambda: whole_but(
        "contexts", changed(TABLES["contexts"], {"data": "sst"}, "reached", value=False)
    ),
}


@pytest.mark.parametrize("name", UNDECIDED)
def test_what_is_at_chance_or_starred_decides_nothing(name: str) -> None:
    (rule,) = (rule for rule in reproduce_snell2021.rules if rule.id == name)
    found = rule.claim(UNDECIDED[name]())
    assert found.holds is None
    assert found.here != "–"
    assert found.note
    assert rule.post_hoc, "this was added after results had been seen"


def test_who_says_it() -> None:
    kinds = {rule.id: rule.kind for rule in reproduce_snell2021.rules}
    assert {name for name, kind in kinds.items() if kind == "derived"} == {
        "proxy-is-logistic",
        "initial-gradient-is-cooccurrence",
        "optimal-attention-may-avoid-largest-beta",
    }
    own = {name for name, kind in kinds.items() if kind == "own"}
    # its tables leave SMS out, and its code averages contexts
    assert own == {name for name in kinds if name.endswith(("-sms", "-summed"))}


def test_the_share_that_learns_has_wilsons_interval() -> None:
    claims = {claim.id: claim for claim in reproduce_snell2021.judge(WHOLE)}
    effect = claims["copy-permutation-sometimes-fails"].effect
    assert (effect.size, claims["copy-permutation-sometimes-fails"].n) == (0.5, {"seeds": 20})
    z, half = 1.96, 0.5  # of one half, Wilson's interval is even on both sides
    width = z / (1 + z * z / 20) * (half * half / 20 + z * z / 1600) ** 0.5
    assert effect.low == pytest.approx(0.5 - width, abs=1e-4)
    assert effect.high == pytest.approx(0.5 + width, abs=1e-4)


@pytest.mark.parametrize("name", FAILURES)
def test_each_fails_by_its_own(name: str) -> None:
    assert verdict(FAILURES[name](), name) is False


def test_a_context_below_half_of_the_way_is_trivial() -> None:
    low = changed(TABLES["contexts"], {"data": "sst"}, "performance", 0.69)
    found = verdicts(whole_but("contexts", low))
    assert [name for name, holds in found.items() if not holds] == ["xi-nontrivial-sst"]


def test_a_run_that_only_guesses_gives_no_context() -> None:
    guessed = changed(TABLES["contexts"], {"data": "sst"}, "best", 0.5)
    assert verdicts(whole_but("contexts", guessed))["xi-nontrivial-sst"] is None


def test_heads_that_were_drawn_twice_count_once() -> None:
    bad = TABLES["heads"]["kind"] == "bad"
    same = TABLES["heads"].assign(
        heads=TABLES["heads"]["heads"].where(~bad | (TABLES["heads"]["combination"] == 0), "1 99")
    )
    claim = next(
        claim for claim in reproduce_snell2021.judge(whole_but("heads", same)) if claim.id == "eight-bad-heads-fail"
    )
    assert claim.here == "1 of 2 learn"


@pytest.mark.parametrize("best", [0.4, 0.5])
def test_a_context_of_models_that_only_guess_is_not_judged(best: float) -> None:
    guessing = changed(TABLES["contexts"], {"data": "sst"}, "best", best)
    claim = next(
        claim for claim in reproduce_snell2021.judge(whole_but("contexts", guessing)) if claim.id == "xi-nontrivial-sst"
    )
    assert claim.holds is None
    told = f"The models end with {best:.1%} and guessing gives 50.0%"
    assert claim.note == f"{told}: nothing was learned of which a share could be told."


def test_the_p_of_a_failing_task_is_fishers() -> None:
    claim = next(claim for claim in reproduce_snell2021.judge(WHOLE) if claim.id == "copy-permutation-sometimes-fails")
    p = fisher_exact([[10, 10], [0, 20]], alternative="greater").pvalue
    assert claim.here == f"10 of 20 fail against 0 of 20, p {p:.2g}"


def test_a_task_that_no_seed_learns_is_told_so() -> None:
    none = changed(TABLES["copying"], {"task": "same", "step": 200}, "accuracy", 0.1)
    claim = next(
        claim
        for claim in reproduce_snell2021.judge(whole_but("copying", none))
        if claim.id == "copy-permutation-sometimes-fails"
    )
    assert claim.holds
    assert claim.here.endswith("; that some learn is not seen")


@pytest.mark.parametrize(("name", "steps"), [("eight-bad-heads-fail", 150), ("random-eight-learn-summed", 299)])
def test_heads_that_had_fewer_steps_are_not_judged(name: str, steps: int) -> None:
    short = TABLES["heads"].assign(step=TABLES["heads"]["step"].clip(upper=steps))
    (rule,) = (rule for rule in reproduce_snell2021.rules if rule.id == name)
    found = rule.claim(whole_but("heads", short))
    assert (found.holds, found.note) == (None, f"Not run at this size: combinations had {steps} of 300 steps.")


def test_an_agreement_is_told_beside_the_papers() -> None:
    claims = {claim.id: claim for claim in reproduce_snell2021.judge(WHOLE)}
    # 50% where chance is 6%; the paper has 52.55% and 5.30% of IMDB, and leaves SMS out
    told = claims["agreement-alpha-beta-uf-imdb"].here
    assert told.endswith(f"44.0 points above chance, {0.44 / 0.4725:.2f} of the paper's 47.2")
    assert claims["agreement-alpha-beta-uf-sms"].here.endswith("; 44.0 points above chance")
    # half of the 53% less 7.11% of A.1
    assert claims["optimal-attention-agrees-with-beta"].here.endswith(
        f"{0.34 / 0.4589:.2f} as far above chance as the paper's"
    )
