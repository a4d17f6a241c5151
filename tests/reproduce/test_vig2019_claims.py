"""Every claim judged on tables made by hand: once it holds, once it does not, once it cannot be measured."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from attnscope.reproduce import Claim
from attnscope.reproduce.vig2019 import reproduce_vig2019
from attnscope.reproduce.vig2019.measures import both, correlation, figure
from attnscope.surveying import Survey

IDS = (
    "tags-with-specialised-head-to tags-with-specialised-head-from nouns-head-share propn-heads-deep det-heads-shallow "
    "punct-from-heads-deep from-shares-uniform-in-early-layers alignment-peaks-in-middle-layers "
    "alignment-peaks-where-distance-lowest subjects-deeper aux-cc-det-expl-neg-lower "
    "distance-greatest-in-deepest-layers distance-sd distance-entropy-correlate distance-alignment-anticorrelate "
    "far-but-sharp-head first-layers-by-position first-layers-broad first-layers-reach-further "
    "previous-token-head null-attention-share some-null-above-97 dependency-by-distance "
    "dependency-distance"
).split()

Tables = dict[str, pd.DataFrame]
Change = Callable[[Tables], None]


def one_claim(claim: str, survey: Survey) -> Claim:
    return next(rule for rule in reproduce_vig2019.rules if rule.id == claim).claim(survey)


def tag(tables: Tables, name: str, direction: str) -> pd.Series:
    speech = tables["part_of_speech"]
    return (speech["tag"] == name) & (speech["direction"] == direction)


def at(table: pd.DataFrame, layer: int, head: int) -> pd.Series:
    return (table["layer"] == layer) & (table["head"] == head)


def no_specialists_to(tables: Tables) -> None:
    speech = tables["part_of_speech"]
    speech.loc[tag(tables, "VERB", "to"), "value"] = 0.15


def as_many_specialists_from(tables: Tables) -> None:
    speech = tables["part_of_speech"]
    for name in ("DET", "PROPN"):
        speech.loc[tag(tables, name, "from") & at(speech, 7, 7), "value"] = 0.6


def nouns_alike(tables: Tables) -> None:
    tables["part_of_speech"].loc[tag(tables, "NOUN", "to"), "value"] = 0.2


def top_elsewhere(name: str, direction: str, layer: int) -> Change:
    def change(tables: Tables) -> None:
        speech = tables["part_of_speech"]
        speech.loc[tag(tables, name, direction) & at(speech, layer, 6), "value"] = 0.9

    return change


def uneven_early(tables: Tables) -> None:
    speech = tables["part_of_speech"]
    early = (speech["direction"] == "from") & (speech["layer"] < 2)
    speech.loc[early, "value"] = 0.1 + 0.05 * speech.loc[early, "head"]


def aligned_late(tables: Tables) -> None:
    alignment = tables["dependency_alignment"]
    alignment.loc[alignment["layer"] == 10, "value"] = 0.6


def aligned_far(tables: Tables) -> None:
    alignment = tables["dependency_alignment"]
    alignment.loc[alignment["layer"].isin([5, 6]), "value"] = 0.6


def turned(relation: str) -> Change:
    def change(tables: Tables) -> None:
        kinds = tables["dependency_type"]
        ours = kinds["relation"] == relation
        kinds.loc[ours, "value"] = 0.1 - kinds.loc[ours, "value"]

    return change


def far_in_the_middle(tables: Tables) -> None:
    distance = tables["distance"]
    distance.loc[distance["layer"] == 6, "value"] = 20.0


def scaled(statistic: str, factor: float) -> Change:
    def change(tables: Tables) -> None:
        tables[statistic]["value"] *= factor

    return change


def shuffled(statistic: str) -> Change:
    def change(tables: Tables) -> None:
        values = tables[statistic]["value"].to_numpy()
        tables[statistic]["value"] = np.random.default_rng(1).permutation(values)

    return change


def broad_when_far(tables: Tables) -> None:
    entropy = tables["entropy"]
    entropy.loc[at(entropy, 11, 11), "value"] = 3.0


def early_layers(statistic: str, value: float) -> Change:
    def change(tables: Tables) -> None:
        tables[statistic].loc[tables[statistic]["layer"] < 2, "value"] = value

    return change


def another_steadier(tables: Tables) -> None:
    variability = tables["variability"]
    variability.loc[at(variability, 0, 0), "value"] = 0.001


def little_to_previous(tables: Tables) -> None:
    patterns = tables["patterns"]
    patterns.loc[patterns["pattern"] == "previous", "value"] *= 0.4


def one_at_rest(tables: Tables) -> None:
    null = tables["null_attention"]
    null.loc[at(null, 10, 11), "value"] = 0.97


def links_reach_far(tables: Tables) -> None:
    tables["dependency_by_distance"]["linked"] = 100.0


def links_far_apart(tables: Tables) -> None:
    curve = tables["dependency_by_distance"]
    more = pd.DataFrame({"distance": [40], "value": [0.05], "error": [0.01], "pairs": [9e3], "linked": [500.0]})
    tables["dependency_by_distance"] = pd.concat([curve, more])


def curve_rises(tables: Tables) -> None:
    curve = tables["dependency_by_distance"]
    curve.loc[curve["distance"] == 5, "value"] = 0.12


FAILING: list[tuple[str, Change]] = [
    ("tags-with-specialised-head-to", no_specialists_to),
    ("tags-with-specialised-head-from", as_many_specialists_from),
    ("nouns-head-share", nouns_alike),
    ("propn-heads-deep", top_elsewhere("PROPN", "to", 8)),
    ("det-heads-shallow", top_elsewhere("DET", "to", 4)),
    ("punct-from-heads-deep", top_elsewhere("PUNCT", "from", 5)),
    ("from-shares-uniform-in-early-layers", uneven_early),
    ("alignment-peaks-in-middle-layers", aligned_late),
    ("alignment-peaks-where-distance-lowest", aligned_far),
    ("subjects-deeper", turned("csubj")),
    ("aux-cc-det-expl-neg-lower", turned("expl")),
    ("distance-greatest-in-deepest-layers", far_in_the_middle),
    ("distance-sd", scaled("distance", 0.3)),
    ("distance-entropy-correlate", shuffled("entropy")),
    ("distance-alignment-anticorrelate", shuffled("dependency_alignment")),
    ("distance-alignment-anticorrelate", scaled("dependency_alignment", -1.0)),
    ("far-but-sharp-head", broad_when_far),
    ("first-layers-by-position", early_layers("variability", 0.32)),
    ("first-layers-broad", early_layers("entropy", 1.0)),
    ("first-layers-reach-further", early_layers("distance", 1.0)),
    ("previous-token-head", another_steadier),
    ("previous-token-head", little_to_previous),
    ("null-attention-share", scaled("null_attention", 0.1)),
    ("some-null-above-97", one_at_rest),
    ("dependency-by-distance", curve_rises),
    ("dependency-distance", links_reach_far),
    ("dependency-distance", links_far_apart),
]

BEHIND = {
    "part_of_speech": IDS[:7],
    "dependency_alignment": [IDS[7], IDS[8], "distance-alignment-anticorrelate", "previous-token-head"],
    "dependency_type": ["subjects-deeper", "aux-cc-det-expl-neg-lower"],
    "distance": ["alignment-peaks-where-distance-lowest", "first-layers-reach-further", *IDS[11:16]],
    "entropy": ["distance-entropy-correlate", "far-but-sharp-head", "first-layers-broad"],
    "variability": ["first-layers-by-position", "previous-token-head"],
    "null_attention": ["from-shares-uniform-in-early-layers", "null-attention-share", "some-null-above-97"],
    "dependency_by_distance": ["dependency-by-distance", "dependency-distance"],
    "patterns": ["previous-token-head"],
}


def test_the_claims_are_those_of_the_issue_in_its_order():
    assert [rule.id for rule in reproduce_vig2019.rules] == IDS


def test_each_claim_can_fail_and_can_be_unmeasured():
    assert {claim for claim, _ in FAILING} == set(IDS)
    assert {claim for claims in BEHIND.values() for claim in claims} == set(IDS)


def test_all_hold_where_the_tables_show_what_the_paper_found(paper_tables, survey_from):
    claims = reproduce_vig2019.judge(survey_from(paper_tables))
    assert {claim.id: claim.holds for claim in claims} == dict.fromkeys(IDS, True)
    for claim in claims:
        assert "Holds if" in claim.statement
        assert claim.paper
        assert claim.here


@pytest.mark.parametrize(("claim", "change"), FAILING)
def test_it_fails_where_the_tables_show_otherwise(claim, change, paper_tables, survey_from):
    change(paper_tables)
    assert one_claim(claim, survey_from(paper_tables)).holds is False


@pytest.mark.parametrize("statistic", BEHIND)
def test_it_has_no_verdict_without_its_statistic(statistic, paper_tables, survey_from):
    del paper_tables[statistic]
    claims = reproduce_vig2019.judge(survey_from(paper_tables))
    assert {claim.id for claim in claims if claim.holds is None} == set(BEHIND[statistic])
    assert all(claim.note.endswith(".") and claim.here == "–" for claim in claims if claim.holds is None)


@pytest.mark.parametrize("statistic", ["distance", "entropy", "variability", "null_attention"])
def test_figures_that_are_nothing_give_no_verdict(statistic, paper_tables, survey_from):
    paper_tables[statistic]["value"] = np.nan
    unknown = {claim.id for claim in reproduce_vig2019.judge(survey_from(paper_tables)) if claim.holds is None}
    assert unknown >= set(BEHIND[statistic])


def test_one_missing_head_is_left_out(paper_tables, survey_from):
    entropy = paper_tables["entropy"]
    entropy.loc[at(entropy, 3, 3), "value"] = np.nan
    claim = one_claim("distance-entropy-correlate", survey_from(paper_tables))
    assert claim.holds
    assert "141 heads" in claim.note


def test_a_head_that_rests_nearly_always_has_no_entropy(paper_tables, survey_from):
    entropy = paper_tables["entropy"]
    entropy.loc[at(entropy, 11, 11), "rows"] = 99.0
    survey = survey_from(paper_tables)
    assert "layer 11, head 11" not in one_claim("far-but-sharp-head", survey).here
    assert "141 heads" in one_claim("distance-entropy-correlate", survey).note
    entropy["rows"] = 3.0
    assert one_claim("far-but-sharp-head", survey_from(paper_tables)).holds is None


def test_a_head_at_rest_is_left_out_of_every_statistic_but_its_own(paper_tables, survey_from):
    null = paper_tables["null_attention"]
    null.loc[at(null, 11, 11) | at(null, 9, 0), "value"] = 0.975
    claims = {claim.id: claim for claim in reproduce_vig2019.judge(survey_from(paper_tables))}
    assert "layer 11, head 11" not in claims["far-but-sharp-head"].here
    assert "layer 9, head 0" not in claims["nouns-head-share"].here
    assert claims["distance-sd"].n == {"heads": 140}
    assert claims["some-null-above-97"].here.startswith("4 of 144 heads")


@pytest.mark.parametrize(("claim", "head"), [("far-but-sharp-head", (11, 11)), ("nouns-head-share", (9, 0))])
def test_a_head_with_hardly_a_row_left_decides_nothing(claim, head, paper_tables, survey_from):
    entropy = paper_tables["entropy"]
    entropy.loc[at(entropy, *head), "rows_share"] = 0.01
    found = one_claim(claim, survey_from(paper_tables))
    assert found.holds is None
    assert found.note.startswith("The head has 1.0% of its rows left.")
    assert found.here != "–"
    assert found.post_hoc
    entropy.loc[at(entropy, *head), "rows_share"] = 0.06
    assert one_claim(claim, survey_from(paper_tables)).holds is True


def test_a_head_that_may_not_look_far_at_all_decides_nothing(paper_tables, survey_from):
    distance = paper_tables["distance"]
    farthest = at(distance, 11, 11)
    mean, most = distance["value"].mean(), distance.loc[farthest, "value"].item()
    distance.loc[farthest, "error"] = (most - mean) / 2 + 1
    found = one_claim("far-but-sharp-head", survey_from(paper_tables))
    assert found.holds is None
    assert found.note.startswith("It is not certain that this head looks far")
    distance.loc[farthest, "error"] = (most - mean) / 4
    assert one_claim("far-but-sharp-head", survey_from(paper_tables)).holds is True


def test_heads_on_one_token_of_each_sentence_decide_nothing_of_a_tag(paper_tables, survey_from):
    speech = paper_tables["part_of_speech"]
    tables = paper_tables
    assert one_claim("det-heads-shallow", survey_from(tables)).holds is True
    speech.loc[speech["layer"] < 3, "one_token"] = 0.7
    found = one_claim("det-heads-shallow", survey_from(tables))
    assert found.holds is None
    assert found.note.startswith("5 of the 5 give the share of DET to one token of each sentence")
    assert one_claim("propn-heads-deep", survey_from(tables)).holds is True, "no article, no sink of that kind"
    bare = tables | {"part_of_speech": speech.drop(columns=["one_token", "one_token_chance"])}
    found = one_claim("det-heads-shallow", survey_from(bare))
    assert found.holds is None
    assert found.note.startswith("Whether these heads give the share of DET to one token of each sentence is not kept.")


def test_effects_are_the_figures(paper_tables, survey_from):
    claims = {claim.id: claim for claim in reproduce_vig2019.judge(survey_from(paper_tables))}
    assert all(claim.effect is not None and claim.n for claim in claims.values())
    distance = paper_tables["distance"]["value"][paper_tables["null_attention"]["value"] < 0.97]
    assert claims["distance-sd"].effect.size == pytest.approx(distance.std(ddof=1), rel=0.02)
    assert claims["distance-sd"].effect.low < claims["distance-sd"].effect.size < claims["distance-sd"].effect.high
    assert claims["distance-sd"].n == {"heads": 142}
    assert claims["null-attention-share"].effect.size == pytest.approx(paper_tables["null_attention"]["value"].mean())
    assert {claim.kind for claim in claims.values()} == {"paper"}


def test_a_rare_tag_is_not_judged(paper_tables, survey_from):
    speech = paper_tables["part_of_speech"]
    speech.loc[speech["tag"] == "VERB", "chance"] = 0.0005
    assert one_claim("tags-with-specialised-head-to", survey_from(paper_tables)).here.startswith("4 of 4 tags")


def test_a_corpus_without_a_tag_says_so(paper_tables, survey_from):
    speech = paper_tables["part_of_speech"]
    paper_tables["part_of_speech"] = speech[speech["tag"] != "PROPN"]
    claim = one_claim("propn-heads-deep", survey_from(paper_tables))
    assert claim.holds is None
    assert "PROPN" in claim.note


def test_relations_that_the_corpus_lacks_are_told(paper_tables, survey_from):
    kinds = paper_tables["dependency_type"]
    paper_tables["dependency_type"] = kinds[kinds["relation"] != "neg"]
    claim = one_claim("aux-cc-det-expl-neg-lower", survey_from(paper_tables))
    assert claim.holds
    assert claim.here.startswith("4 of 4")
    assert "neg" in claim.note


def test_depth_is_not_judged_in_a_shallow_model(paper_tables, survey_from):
    shallow = {name: table[table["layer"] < 2] if "layer" in table else table for name, table in paper_tables.items()}
    assert one_claim("alignment-peaks-in-middle-layers", survey_from(shallow, layers=2)).holds is None


def test_the_correlation_is_that_of_the_heads_with_both():
    one = pd.DataFrame({"layer": 0, "head": range(20), "value": np.arange(20.0)})
    other = one.assign(value=2 * one["value"] + 1).iloc[5:]
    xs, ys = both(one, other)
    r, p, (low, high) = correlation(xs, ys)
    assert len(xs) == 15
    assert r == pytest.approx(1)
    assert p < 1e-6
    assert low <= r <= high + 1e-12


@pytest.mark.parametrize(
    ("value", "error", "text"), [(0.2, 0.0, "0.20"), (1.0, np.nan, "1.00"), (0.25, 0.1, "0.25 ± 0.10")]
)
def test_a_figure_has_as_many_digits_as_its_error_allows(value, error, text):
    assert figure(value, error) == text
