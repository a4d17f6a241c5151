"""The quadratic regression against a formula of statsmodels, and against cases worked out by hand."""

import numpy as np
import pandas as pd
import pytest

from attnscope.errors import BadInput
from attnscope.evaluation.regression import quadratic

FORMULA = pytest.importorskip("statsmodels.formula.api", reason="statsmodels is missing: attnscope[lexicon].")


@pytest.fixture
def rated():
    dice = np.random.default_rng(3)
    valence = dice.uniform(1, 9, 60).round(2)
    return valence, 0.02 * (valence - 4.6) ** 2 + dice.normal(0, 0.05, 60)


def test_it_is_the_formula_of_statsmodels(rated):
    """The raw parabola spans the same space: fit, t and p of the highest term, and where it turns are the same."""
    valence, scores = rated
    found = quadratic(valence, scores)
    table = pd.DataFrame({"score": scores, "valence": valence})
    raw = FORMULA.ols("score ~ valence + I(valence ** 2)", table).fit()
    assert found.t[2] == pytest.approx(raw.tvalues.iloc[2])
    assert found.p[2] == pytest.approx(raw.pvalues.iloc[2])
    assert found.r_squared == pytest.approx(raw.rsquared)
    assert found.vertex == pytest.approx(-raw.params.iloc[1] / (2 * raw.params.iloc[2]))
    np.testing.assert_allclose(found.curve(valence), raw.fittedvalues, atol=1e-12)
    # with columns of unit norm the error of b1 and b2 is the residual standard deviation
    assert found.errors[1] == pytest.approx(np.sqrt(raw.scale))
    assert found.errors[2] == pytest.approx(np.sqrt(raw.scale))
    # orthogonal columns: b1 is that of the straight line alone
    straight = FORMULA.ols("score ~ z", table.assign(z=(valence - valence.mean()) / np.sqrt(len(valence)))).fit()
    assert found.coefficients[1] == pytest.approx(straight.params.iloc[1] * valence.std())
    assert found.coefficients[0] == pytest.approx(scores.mean())


def test_by_hand():
    """Valence -1 0 0 1 with scores 1 0 2 1: b0 = 1, b1 = 0, P2 = (½, -½, -½, ½), so b2 = ½(1 - 0 - 2 + 1) = 0."""
    flat = quadratic(np.array([-1.0, 0.0, 0.0, 1.0]), np.array([1.0, 0.0, 2.0, 1.0]))
    np.testing.assert_allclose(flat.coefficients, [1, 0, 0], atol=1e-12)
    # scores 3 0 2 3: b2 = ½(3 - 0 - 2 + 3) = 2; residuals 0 -1 1 0, one degree of freedom, so SE = √2
    bent = quadratic(np.array([-1.0, 0.0, 0.0, 1.0]), np.array([3.0, 0.0, 2.0, 3.0]))
    np.testing.assert_allclose(bent.coefficients, [2, 0, 2], atol=1e-12)
    assert bent.errors[2] == pytest.approx(np.sqrt(2))
    assert bent.t[2] == pytest.approx(np.sqrt(2))
    assert bent.vertex == pytest.approx(0)
    assert bent.vertex_inside


def test_a_bend_that_turns_outside_is_no_u():
    valence = np.linspace(1, 9, 30)
    wobble = np.resize([1e-3, -1e-3], 30)
    assert quadratic(valence, (valence - 20) ** 2 + wobble).vertex == pytest.approx(20, abs=0.1)
    assert not quadratic(valence, (valence - 20) ** 2 + wobble).vertex_inside
    assert quadratic(valence, (valence - 6) ** 2 + wobble).vertex_inside
    assert quadratic(valence, -((valence - 6) ** 2) + wobble).coefficients[2] < 0


def test_what_cannot_be_fitted_is_refused():
    with pytest.raises(BadInput, match="at least 4 words, and there are 3"):
        quadratic(np.array([1.0, 2.0, 3.0]), np.zeros(3))
    with pytest.raises(BadInput, match="each word has one of both"):
        quadratic(np.arange(5.0), np.zeros(4))
    with pytest.raises(BadInput, match="not finite"):
        quadratic(np.arange(5.0), np.array([0, 1, 2, 3, np.nan]))
    with pytest.raises(BadInput, match="3 different values"):
        quadratic(np.array([1.0, 1.0, 2.0, 2.0]), np.zeros(4))
