"""Every claim with the rule by which it is judged.

The rules were written before any run was done. A review made some stricter when copying was half done and none of them
had a result yet: heads that are the same count once, β must be known before it is compared, ξ needs a run that does
better than guessing, and an agreement falls where it does so by two errors of the difference, not of the peak alone.
"""

from collections.abc import Iterator
from functools import partial

import pandas as pd

from ..claims import Claim, Criterion, Finding, Unmeasured, judged
from .judges_agreement import (
    ALIKE,
    above_chance,
    frozen_below,
    logistic_agrees,
    nontrivial_context,
    rises_then_falls,
    seeds_disagree,
)
from .judges_copying import (
    BEGUN,
    KNOWN,
    LEARNED,
    MOSTLY,
    SAME_LEXICAL,
    SURELY,
    always_fails,
    always_learns,
    bad_heads_fail,
    good_head_suffices,
    last_state_at_end,
    local_at_first,
    random_heads_learn,
    same_lexical,
    sometimes_fails,
)
from .measuring import Evidence
from .paper import TABLE_5, TABLE_10, TABLE_11, TITLES

# How the claims that the paper derives are judged: by numbers.


SHARP = 1e-5
"""How far two probabilities may differ that are the same in theory."""
NEAR = 0.05
"""The relative difference that the largest width may leave."""
TOLD_APART = 1e-3


def proxy_is_logistic(evidence: Evidence) -> Finding:
    """Whether the proxy and a logistic regression give each text the same probability."""
    worst = float(_table(evidence, "logistic")["difference"].abs().max())
    return Finding(f"largest difference {worst:.1g}", worst <= SHARP)


def gradient_is_cooccurrence(evidence: Evidence) -> Finding:
    """Whether the first change of the logits nears the co-occurrence table as the model grows wider."""
    table = _table(evidence, "initial_gradient")
    errors = table.groupby("width")["logits_error"].mean().sort_index()
    last = table[table["width"] == table["width"].max()]
    shown = ", ".join(f"{width:,} wide {100 * error:.1f}%" for width, error in errors.items())
    note = (
        f"Of probabilities the slope is {last['probabilities_slope'].mean():.3f}, which is 1/|O| = "
        f"{last['one_over_outputs'].iloc[0]:.3f} and not the 1 of Eq. 15."
    )
    return Finding(shown, bool((errors.diff().dropna() < 0).all() and errors.iloc[-1] < NEAR), note)


def avoids_largest(evidence: Evidence) -> Finding:
    """Whether the best attention of the paper's example leaves out the place with the largest β."""
    table = _table(evidence, "counterexample")
    largest = table["lexical"].idxmax()
    others = table.drop(index=largest)["attention"]
    shown = ", ".join(f"β {row.lexical:.3f}: {row.attention:.3f}" for row in table.itertuples())
    holds = table.loc[largest, "attention"] < TOLD_APART and bool(((others - 0.5).abs() < TOLD_APART).all())
    return Finding(shown, bool(holds))


def _table(evidence: Evidence, name: str) -> pd.DataFrame:
    if name not in evidence.theory:
        raise Unmeasured("The theory was not checked.")
    return evidence.theory[name]


CLASSIFIED = ("sst", "20news", "imdb", "amazon", "ag_news", "sms")
ALL = (*CLASSIFIED, "multi30k")
LEARNS = f"accuracy of at least {LEARNED}"
SOME_FAIL = (
    f"at least one seed ends without an {LEARNS}, and more than with 40 of 60 words (Fisher's exact test, p < .05)"
)
PAIRS = {
    "agreement-alpha-beta-uf": (
        "attention_uniform",
        "Attention looks where β of uniform attention is highest, A(α, β_uf)",
    ),
    "agreement-beta-uf-proxy": ("uniform_proxy", "β of uniform attention is that of a bag of words, A(β_uf, β_px)"),
    "agreement-saliency-beta-uf": ("saliency_uniform", "Salient words are those with the highest β_uf, A(Δ, β_uf)"),
    "agreement-alpha-beta": ("attention_lexical", "Attention looks where β of another seed is highest, A(α, β)"),
}
"""Claims on agreements by their names: the pair in tables, and what is claimed."""


def _on_agreement(data: str) -> Iterator[Criterion[Evidence]]:
    paper = TABLE_5.get(data)
    for name, (pair, claimed) in PAIRS.items():
        yield Criterion(
            f"{name}-{data}",
            f"{claimed}, on {TITLES[data]}.",
            "at its best checkpoint it is above chance, the lower end of a 95% interval that allows for the choice of "
            "the best checkpoint",
            "not in the paper" if paper is None else f"{getattr(paper, pair)} (baseline {paper.chance})",
            partial(above_chance, data, pair),
        )
    yield Criterion(
        f"xi-nontrivial-{data}",
        f"A model whose attention agrees with the finished one as β_uf does has learned much of {TITLES[data]}.",
        "ξ(α, β_uf) is at least half of the way from guessing to ξ*",
        "not in the paper" if paper is None else f"{paper.context_attention_uniform} of {paper.best}",
        partial(nontrivial_context, data, "attention_uniform"),
    )


def _on_classification(data: str) -> Iterator[Criterion[Evidence]]:
    yield Criterion(
        f"frozen-beta-below-{data}",
        f"On {TITLES[data]} attention that learns while all else is frozen agrees less with the usual one than β_uf.",
        "the best A(α, α_fr) is below the best A(α, β_uf)",
        f"{TABLE_10[data]:g} against {TABLE_5[data].attention_uniform:.0f}" if data in TABLE_10 else "not in the paper",
        partial(frozen_below, data),
    )
    yield Criterion(
        f"logistic-agrees-{data}",
        f"On {TITLES[data]} logistic regression agrees with β_uf as the proxy does.",
        f"A(β_uf, β_log) and A(β_uf, β_px) differ by no more than {100 * ALIKE:.0f} points",
        "{:g} (proxy), {:g} (logistic)".format(*TABLE_11[data]) if data in TABLE_11 else "not in the paper",
        partial(logistic_agrees, data),
    )


CRITERIA = (
    Criterion(
        "copy-40-of-60-always-learns",
        "Copying is learned by every seed where each sequence has 40 of 60 words.",
        f"every seed ends with an {LEARNS}",
        "20 of 20 seeds",
        partial(always_learns, "choice"),
    ),
    Criterion(
        "copy-permutation-sometimes-fails",
        "Copying is sometimes not learned where each sequence is a permutation of the same 40 words.",
        SOME_FAIL,
        "some of 20 seeds (Figure 3)",
        partial(sometimes_fails, "same", "choice"),
    ),
    Criterion(
        "mixture-sometimes-fails",
        "Copying is sometimes not learned where each sequence is a permutation of one of two sets of 40 words.",
        SOME_FAIL,
        "some of 20 seeds (Figure 3)",
        partial(sometimes_fails, "mixture", "choice"),
    ),
    Criterion(
        "fixed-permutation-fails",
        "An output in a fixed other order is never learned, where copying always is.",
        f"no seed ever has an {LEARNS}, and every seed of copying ends with one",
        "always fails",
        partial(always_fails, "reordered", "choice"),
    ),
    Criterion(
        "beta-uf-same-for-copy-and-permutation",
        "Under uniform attention β is the same for copying and for that other order.",
        f"log β at the right place ends within {SAME_LEXICAL} of that of copying, in every seed, where it is at least "
        f"{KNOWN:g} above that elsewhere in both",
        "exactly the same",
        partial(same_lexical, "choice", "reordered"),
    ),
    Criterion(
        "eight-bad-heads-fail",
        "A model of eight heads that each fail alone mostly fails.",
        f"more than half of the combinations never have an {LEARNS}",
        "likely to fail (Figure 6)",
        bad_heads_fail,
    ),
    Criterion(
        "one-good-head-suffices",
        "One head that learns alone is enough for the model to learn.",
        f"at least {MOSTLY:.0%} of the combinations learn, and more than of eight bad heads (Fisher's exact test, "
        "p < .05)",
        "likely to learn (Figure 6)",
        good_head_suffices,
    ),
    Criterion(
        "random-eight-learn",
        "Eight heads at random nearly always learn.",
        f"at least {SURELY:.0%} of the combinations learn",
        "with very high probability (Figure 6)",
        random_heads_learn,
    ),
    Criterion(
        "locality-early",
        "At first β is highest at the keyword, then one further, and as low at the end as on average (Hypothesis 2).",
        f"so in every seed at the first check where the keyword is {BEGUN:g} above the mean; the last two are as low "
        "where they differ by less than half of the distance above",
        "so (Figure 7)",
        local_at_first,
    ),
    Criterion(
        "locality-late-last-state",
        "After long training it is highest at the end, then one behind the keyword, and at the keyword as on average "
        "(Observation 3).",
        "so in every seed at the last check, by the same measure",
        "so (Figure 7)",
        last_state_at_end,
    ),
    *(criterion for data in ALL for criterion in _on_agreement(data)),
    *(criterion for data in CLASSIFIED for criterion in _on_classification(data)),
    Criterion(
        "beta-uf-agreement-rises-then-falls",
        "A(α, β_uf) first rises and then falls while β_uf is trained.",
        "on every data set of texts that was run, its highest checkpoint lies more than two standard errors of the "
        "difference above both the first and the last",
        "on all data sets (A.7)",
        partial(rises_then_falls, CLASSIFIED),
    ),
    Criterion(
        "sms-seeds-disagree",
        "On SMS two seeds do not agree on where to look.",
        "A(α, α̂) at the end is less beyond chance than on every other data set of texts that was run",
        "did not correlate much (A.9)",
        partial(seeds_disagree, "sms", tuple(name for name in CLASSIFIED if name != "sms")),
    ),
    Criterion(
        "proxy-is-logistic",
        "The proxy is a logistic regression on counts divided by the length (A.10).",
        f"trained to their ends without a penalty, both give every text the same probability to {SHARP:g}",
        "proved",
        proxy_is_logistic,
    ),
    Criterion(
        "initial-gradient-is-cooccurrence",
        "The proxy's logits begin to move by the co-occurrence table, 2(C - mean C) (Eq. 53).",
        f"the relative difference falls with every width, to below {NEAR:.0%} at the largest",
        "proved for endless width; its Eq. 15 says the same of probabilities, where a factor 1/|O| is missing",
        gradient_is_cooccurrence,
    ),
    Criterion(
        "optimal-attention-may-avoid-largest-beta",
        "The best attention may leave out the place with the largest β (A.1).",
        f"in the paper's example the optimum has less than {TOLD_APART:g} there and one half on each of the others",
        ".5 on each of the other two",
        avoids_largest,
    ),
)


def claims_of(evidence: Evidence) -> list[Claim]:
    """The paper's claims, judged on these models."""
    return judged(CRITERIA, evidence)
