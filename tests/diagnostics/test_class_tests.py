"""`class_tests`, Holm's adjustment and closed testing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import direct_nll, log_odds_of
from scipy.optimize import minimize
from scipy.stats import binom, chi2, norm
from toy import TOY_X, TOY_Y

from mcllo import Predictions, class_tests
from mcllo._diagnostics.class_tests import closed_test, holm, in_the_large_columns


def test_in_the_large_by_hand():
    # ten rows at (.3, .7), one label 0: P(Bin(10, .3) <= 1) = .7^10 + 10 .3 .7^9 = .1493083459
    p = Predictions.from_arrays([[0.3, 0.7]] * 10, [0] + [1] * 9)
    found = in_the_large_columns(p)
    assert found["predicted"] == pytest.approx([0.3, 0.7])
    assert found["observed"] == pytest.approx([0.1, 0.9])
    assert found["large_pvalue"] == pytest.approx([2 * 0.1493083459] * 2, abs=1e-9)
    assert found["large_pvalue"][0] == pytest.approx(2 * binom.cdf(1, 10, 0.3))
    assert found["z"][0] == pytest.approx((1 - 3) / np.sqrt(10 * 0.3 * 0.7))


def test_weights_that_are_not_whole_use_the_normal_distribution():
    half = in_the_large_columns(
        Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=np.full(16, 0.5))
    )
    whole = in_the_large_columns(Predictions.from_arrays(TOY_X, TOY_Y))
    np.testing.assert_allclose(np.array(half["z"]), np.array(whole["z"]) / np.sqrt(2.0))
    np.testing.assert_allclose(half["large_pvalue"], 2 * norm.sf(np.abs(half["z"])))
    twice = in_the_large_columns(
        Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=np.full(16, 2.0))
    )
    rows = in_the_large_columns(
        Predictions.from_arrays(np.tile(TOY_X, (2, 1)), np.tile(TOY_Y, 2))
    )
    np.testing.assert_allclose(twice["large_pvalue"], rows["large_pvalue"], rtol=1e-9)


@pytest.mark.parametrize("baseline", [0, 2])
def test_statistics_against_independent_restricted_fits(baseline):
    order = [j for j in range(3) if j != baseline]
    odds = log_odds_of(TOY_X[:, [*order, baseline]])
    codes = np.array([[*order, baseline].index(label) for label in TOY_Y])
    found = class_tests(TOY_X, TOY_Y, baseline=baseline, method="chi2").table

    def best(free):
        theta = np.array([0.0, 0.0, 1.0, 1.0])

        def nll(x):
            theta[free] = x
            return direct_nll(theta, odds, codes)

        return minimize(
            nll, theta[free].copy(), method="BFGS", options={"gtol": 1e-8}
        ).fun

    for j, column in enumerate(order):
        other = [1 - j, 3 - j]
        expected = 2.0 * (best(other) - best([0, 1, 2, 3]))
        assert found["statistic"][column] == pytest.approx(expected, abs=1e-7)
        assert found["pvalue"][column] == pytest.approx(chi2.sf(expected, 2), abs=1e-7)
        assert found["df"][column] == 2
    assert np.isnan(found["statistic"][baseline])
    expected = holm([found["pvalue"][j] for j in order])
    assert [found["adjusted"][j] for j in order] == pytest.approx(expected.tolist())


PVALUES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12)


def test_holm_by_hand():
    # sorted .01 .02 .03 .30; times 4, 3, 2, 1: .04 .06 .06 .30; running maximum, given order
    np.testing.assert_allclose(holm([0.30, 0.01, 0.03, 0.02]), [0.30, 0.04, 0.06, 0.06])
    # two count: 2 * .6 = 1.2 -> 1
    np.testing.assert_allclose(holm([np.nan, 0.6, 0.9]), [np.nan, 1.0, 1.0])


@settings(deadline=None, max_examples=50)
@given(PVALUES, st.floats(0.001, 0.5))
def test_holm_rejects_what_the_step_down_procedure_rejects(pvalues, alpha):
    rejected, m = set(), len(pvalues)
    for step, place in enumerate(np.argsort(pvalues, kind="stable")):
        if pvalues[place] * (m - step) > alpha:
            break
        rejected.add(int(place))
    assert set(np.flatnonzero(holm(pvalues) <= alpha).tolist()) == rejected


def test_closed_test_needs_everything_inside_rejected():
    inside = {"a": (), "b": ("a",), "c": ("a",), "d": ("a", "b", "c")}
    found = closed_test({"a": 0.01, "b": 0.20, "c": 0.04, "d": 0.001}, inside, 0.05)
    assert found == {"a": True, "b": False, "c": True, "d": False}  # d holds b
    untested = closed_test({"a": 0.01, "b": float("nan")}, inside, 0.05)
    assert untested == {"a": True, "b": False}
