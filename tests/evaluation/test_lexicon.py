"""The lexicon study as a whole: its tables against references, on disk, resumed, in words and drawn."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import torch

from attnscope.errors import BadInput
from attnscope.evaluation import LexiconStudy, heads_on_words, lexicon, word_scores
from attnscope.evaluation import word_methods as measuring
from attnscope.evaluation.lexicon_study import TABLES, answer, shape
from attnscope.record.scores import scores_of

FORMULA = pytest.importorskip("statsmodels.formula.api", reason="statsmodels is missing: attnscope[lexicon].")

ANIMALS = {"rat": 2.5, "snake": 2.0, "wolf": 4.0, "dog": 8.0, "horse": 7.0, "bird": 7.5, "owl": 6.0, "monkey": 6.5}
OTHERS = {
    "tired": 3.0,
    "old": 4.5,
    "big": 5.5,
    "clever": 7.6,
    "several": 5.0,
    "without": 4.2,
    "still": 5.2,
    "both": 5.1,
}
VALENCE = {**ANIMALS, **OTHERS}
METHODS = ["layerwise_tracing", "gradient_of_prediction", "raw"]


@pytest.fixture(scope="module")
def study(demo, sentences):
    return lexicon(demo, sentences, VALENCE, METHODS)


def test_words_are_those_of_word_scores_with_their_valence(study, demo, sentences):
    scores = word_scores(demo, sentences, METHODS)
    pd.testing.assert_frame_equal(study.words[scores.columns], scores, check_exact=True)
    words = study.words.set_index("word")
    assert words.loc["several", "value"] == VALENCE["several"]
    plural = next(word for word in words.index if words.loc[word, "matched"] == "lemma")
    assert words.loc[plural, "entries"] in VALENCE
    assert words.loc["the", "matched"] == "none"
    assert np.isnan(words.loc["the", "value"])
    assert study.card["matched"] == {
        way: int((words["matched"] == way).sum()) for way in ("exact", "lemma", "forms", "none")
    }


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scaling", ["softmax", "length_corrected"])
def test_regressions_are_those_of_a_formula_over_matched_words(study, method, scaling):
    column = method if scaling == "softmax" else f"{method}_{scaling}"
    matched = study.words.dropna(subset=["value"]).rename(columns={column: "score"})
    raw = FORMULA.ols("score ~ value + I(value ** 2)", matched).fit()
    rows = study.regressions
    (row,) = rows[(rows["method"] == method) & (rows["scaling"] == scaling)].to_dict("records")
    assert row["words"] == len(matched)
    assert row["b2_t"] == pytest.approx(raw.tvalues.iloc[2], rel=1e-6)
    assert row["b2_p"] == pytest.approx(raw.pvalues.iloc[2], rel=1e-6)
    assert (row["lowest"], row["highest"]) == (matched["value"].min(), matched["value"].max())


def test_correlations_are_those_of_scipy(study):
    assert len(study.correlations) == 2 * 2 * 3
    for row in study.correlations.itertuples():
        words = study.words.dropna(subset=["value"]) if row.over == "matched" else study.words
        suffix = "" if row.scaling == "softmax" else "_length_corrected"
        expected = scipy.stats.spearmanr(words[row.first + suffix], words[row.second + suffix])
        assert row.words == len(words)
        assert row.spearman == pytest.approx(expected.statistic)
        assert row.p == pytest.approx(expected.pvalue)


def test_heads_are_those_of_heads_on_words(study, demo, sentences):
    tagged = study.words[study.words["tag"] != ""]
    assert set(tagged["tag"]) == {"very negative", "very positive"}
    low, high = np.quantile(list(VALENCE.values()), [0.2, 0.8])
    assert (tagged["value"][tagged["tag"] == "very negative"] < low).all()
    assert (tagged["value"][tagged["tag"] == "very positive"] >= high).all()
    alone = heads_on_words(demo, sentences, dict(zip(tagged["word"], tagged["tag"], strict=True)))
    both = study.heads.merge(alone, on=["tag", "head"], suffixes=("", "_alone"))
    assert len(both) == len(study.heads)
    np.testing.assert_allclose(both["share"], both["share_alone"], rtol=1e-4)
    np.testing.assert_allclose(both["chance"], both["chance_alone"])


def test_tags_of_your_own(demo, sentences):
    found = lexicon(demo, sentences, VALENCE, ["raw"], tags={"the": "article"})
    assert set(found.heads["tag"]) == {"article"}
    assert found.words.set_index("word").loc["the", "tag"] == "article"


def test_a_planted_u_is_found_and_an_arch_is_not_called_one(demo, sentences):
    def planted(record):
        words = [token.removesuffix("s") for token in record.key_tokens]
        values = [abs(VALENCE.get(word, 5.0) - 5.0) for word in words]
        return scores_of(record, "planted", torch.tensor(values))

    def inverted(record):
        return scores_of(record, "inverted", -planted(record).scores)

    found = lexicon(demo, sentences, VALENCE, [planted, inverted])
    corrected = found.regressions[found.regressions["scaling"] == "length_corrected"].set_index("method")
    assert corrected.loc["planted", "b2_t"] > 3
    assert shape(corrected.loc["planted"]) == "a U"
    assert corrected.loc["inverted", "b2_t"] < -3
    assert shape(corrected.loc["inverted"]).startswith("an arch")
    assert "planted: " in found.summary()


def test_the_summary_says_what_was_found(study):
    lines = study.summary().split("\n")
    found = sum(number for way, number in study.card["matched"].items() if way != "none")
    assert lines[0].startswith(("Yes: ", "No: ", "By some methods: "))
    assert lines[1].startswith(f"Of {len(study.words)} words, the lexicon own words has {found} (")
    for method in METHODS:
        assert any(line.startswith(f"{method}: ") and "corrected for length" in line for line in lines)
    assert any(line.startswith("On very positive words") for line in lines)
    assert "does not say that the model answers" in lines[-1]
    assert "held against own words" in repr(study)
    assert "corrected for length" in study._repr_html_()


def test_it_begins_with_yes_or_no():
    up, down = ({"b2_p": 0.001, "b2": sign, "vertex_inside": True} for sign in (1.0, -1.0))

    def answered(**shapes):
        return answer(pd.DataFrame([{"method": name, **row} for name, rows in shapes.items() for row in rows]))

    assert answered(raw=[up, up]).startswith("Yes: words that people find very positive or very negative get higher")
    assert answered(raw=[up, down], flow=[down, down]).startswith("No: by none of raw, flow is it so that words")
    mixed = answered(raw=[up, down], flow=[up, up])
    assert mixed.startswith("By some methods: ")
    assert mixed.endswith("by flow, but not by raw, once length is corrected for.")


def test_a_saved_study_comes_back(study, tmp_path):
    study.save(tmp_path / "study")
    again = LexiconStudy.load(tmp_path / "study")
    for name in TABLES:
        pd.testing.assert_frame_equal(getattr(again, name), getattr(study, name), check_exact=True)
    assert again.card == study.card
    assert again.summary() == study.summary() == (tmp_path / "study" / "summary.txt").read_text().rstrip("\n")
    (tmp_path / "study" / "heads.csv").unlink()
    with pytest.raises(BadInput, match=r"heads\.csv is missing"):
        LexiconStudy.load(tmp_path / "study")


def test_killed_and_resumed_it_is_the_unbroken_one(study, demo, sentences, tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "BATCHES_IN_PART", 1)

    def stop(done, whole):
        if done == 16:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lexicon(demo, sentences, VALENCE, METHODS, out=tmp_path / "cut", watch=stop)
    with pytest.raises(BadInput, match="lexicon_fingerprint was"):
        lexicon(demo, sentences, {**VALENCE, "dog": 1.0}, METHODS, out=tmp_path / "cut", resume=True)
    resumed = lexicon(demo, sentences, VALENCE, METHODS, out=tmp_path / "cut", resume=True)
    for name in TABLES:
        pd.testing.assert_frame_equal(getattr(resumed, name), getattr(study, name), check_exact=True)
    study.save(tmp_path / "whole")
    for path in (tmp_path / "whole").iterdir():
        assert (tmp_path / "cut" / path.name).read_bytes() == path.read_bytes()
    assert not (tmp_path / "cut" / "unfinished").exists()
    finished = lexicon(demo, sentences, VALENCE, METHODS, out=tmp_path / "cut", resume=True)
    assert finished.summary() == study.summary()


def test_figures_have_the_same_bytes_each_time(study, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is missing: attnscope[lexicon].")
    names = {"valence_softmax", "valence_length_corrected", "heads", "cloud"}
    first = study.save_figures(tmp_path / "first")
    assert {path.name for path in first} == {f"{name}.svg" for name in names}
    for path, again in zip(first, study.save_figures(tmp_path / "again"), strict=True):
        assert path.read_bytes() == again.read_bytes()
    assert "very positive" in (tmp_path / "first" / "heads.svg").read_text()


def test_too_few_words_are_told_before_the_model_runs(demo, sentences, tmp_path):
    def never(record):
        pytest.fail("the model has run")

    with pytest.raises(BadInput, match="has only 1 word of these texts, with 1 different value"):
        lexicon(demo, sentences, {"the": 1.0, "unicorn": 2.0}, [never], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(BadInput, match="a parabola needs more"):
        lexicon(demo, sentences[:4], VALENCE, ["raw"], minimum_count=4)
