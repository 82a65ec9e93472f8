"""`class_tests`, Holm's adjustment and closed testing."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import direct_nll, draw, log_odds_of, power_formula, simplex
from scipy.optimize import minimize
from scipy.stats import binom, chi2, norm
from toy import TOY_X, TOY_Y

from mcllo import Predictions, class_tests
from mcllo._diagnosis.class_tests import closed_test, holm, in_the_large
from mcllo._fit.fit import fit_predictions
from mcllo.exceptions import InputError, SeparationWarning


def test_rows_that_equal_their_expectation():
    # four rows at (1/2, 1/2), two labels each: nothing is off, and the log odds never vary
    found = class_tests([[0.5, 0.5]] * 4, [0, 0, 1, 1], method="chi2").table
    assert found["statistic"][0] == pytest.approx(0.0, abs=1e-9)
    assert found["df"] == [1, 0]
    assert found["large_pvalue"] == [1.0, 1.0]


def test_in_the_large_by_hand():
    # ten rows at (.3, .7), one label 0: P(Bin(10, .3) <= 1) = .7^10 + 10 .3 .7^9 = .1493083459
    p = Predictions.from_arrays([[0.3, 0.7]] * 10, [0] + [1] * 9)
    found = in_the_large(p)
    assert found["predicted"] == pytest.approx([0.3, 0.7])
    assert found["observed"] == pytest.approx([0.1, 0.9])
    assert found["large_pvalue"] == pytest.approx([2 * 0.1493083459] * 2, abs=1e-9)
    assert found["large_pvalue"][0] == pytest.approx(2 * binom.cdf(1, 10, 0.3))
    assert found["z"][0] == pytest.approx((1 - 3) / np.sqrt(10 * 0.3 * 0.7))


def test_weights_that_are_not_whole_use_the_normal_distribution():
    half = in_the_large(Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=np.full(16, 0.5)))
    whole = in_the_large(Predictions.from_arrays(TOY_X, TOY_Y))
    np.testing.assert_allclose(np.array(half["z"]), np.array(whole["z"]) / np.sqrt(2.0))
    np.testing.assert_allclose(half["large_pvalue"], 2 * norm.sf(np.abs(half["z"])))
    twice = in_the_large(Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=np.full(16, 2.0)))
    rows = in_the_large(Predictions.from_arrays(np.tile(TOY_X, (2, 1)), np.tile(TOY_Y, 2)))
    np.testing.assert_allclose(twice["large_pvalue"], rows["large_pvalue"], rtol=1e-9)


@pytest.mark.parametrize("baseline", [0, 1, 2])
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

        return minimize(nll, theta[free].copy(), method="BFGS", options={"gtol": 1e-8}).fun

    for j, column in enumerate(order):
        other = [1 - j, 3 - j]
        expected = 2.0 * (best(other) - best([0, 1, 2, 3]))
        assert found["statistic"][column] == pytest.approx(expected, abs=1e-7)
        assert found["pvalue"][column] == pytest.approx(chi2.sf(expected, 2), abs=1e-7)
        assert found["df"][column] == 2
    assert np.isnan(found["statistic"][baseline])
    expected = holm([found["pvalue"][j] for j in order])
    assert [found["adjusted"][j] for j in order] == pytest.approx(expected.tolist())


def test_the_class_that_is_off_is_found():
    rng = np.random.default_rng(3)
    probs = simplex(rng, 4000, 4)
    y = draw(power_formula(probs, np.array([1.0, 2.0, 1.0]), np.array([1.0, 0.5, 1.0])), rng)
    found = class_tests(probs, np.array(list("abcd"))[y], classes=list("abcd"))
    assert found.method == "chi2"
    assert found.rejected(alpha=0.01) == ("b",)
    assert "b" in found.rejected_in_the_large(alpha=0.01)


def test_little_information_is_bootstrapped_and_repeatable():
    first, again = (class_tests(TOY_X, TOY_Y, seed=5, n_resamples=99) for _ in range(2))
    assert first.method == "bootstrap"
    assert 0 < first.n_resamples <= 99
    assert first.to_dict() == again.to_dict()
    assert first.rejected() == ()


def test_every_class_says_how_it_was_tested():
    found = class_tests(TOY_X, TOY_Y, seed=5, n_resamples=99, baseline=1)
    assert found.table["method"] == ["bootstrap", "", "bootstrap"]
    expected = class_tests(TOY_X, TOY_Y, method="chi2", baseline=1)
    assert expected.table["method"] == ["chi2", "", "chi2"]
    for j in (0, 2):
        assert found.table["chi2_pvalue"][j] == pytest.approx(expected.table["pvalue"][j])
        assert found.table["pvalue"][j] != found.table["chi2_pvalue"][j]


def test_little_work_is_spent_on_scores_and_none_on_chi_square():
    # 48 cells a draw, 2 tests: 96 cells of work for a draw of each
    few = class_tests(TOY_X, TOY_Y, seed=5, n_resamples=99, work=96 * 20)
    assert few.method == "score"
    assert 0 < few.n_resamples <= 99
    none = class_tests(TOY_X, TOY_Y, seed=5, n_resamples=99, work=96.0)  # and no fit less
    assert (none.method, none.n_resamples) == ("chi2", 0)
    assert "too costly" in none.reason


def test_where_fits_would_take_too_long_the_statistic_is_walds():
    # 48 cells, two fits: 96 cells at 4 for one of work. a' V^-1 a with V of the estimate
    p = Predictions.from_arrays(TOY_X, TOY_Y)
    fit = fit_predictions(p)
    found = class_tests(TOY_X, TOY_Y, work=20.0)
    assert found.method == "wald"
    assert "too long" in found.reason
    for j in range(2):
        a = np.array([fit.tau[j], fit.gamma[j] - 1.0])
        own = fit.cov_theta[np.ix_([j, 2 + j], [j, 2 + j])]
        assert found.table["statistic"][j] == pytest.approx(a @ np.linalg.inv(own) @ a)
        assert found.table["pvalue"][j] == pytest.approx(chi2.sf(found.table["statistic"][j], 2))
    assert class_tests(TOY_X, TOY_Y, work=25.0).method != "wald"
    assert class_tests(TOY_X, TOY_Y, work=20.0, method="chi2").method == "chi2"


def test_separated_rows_have_finite_statistics():
    with pytest.warns(SeparationWarning):
        found = class_tests(TOY_X, TOY_X.argmax(axis=1), seed=0, n_resamples=99).table
    assert np.isfinite(found["statistic"][:2]).all()
    assert all(0.0 < p <= 1.0 for p in found["pvalue"][:2])


def test_results_as_dict_frame_and_text():
    found = class_tests(TOY_X, TOY_Y, method="chi2", seed=1)
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [row["class"] for row in content["rows"]] == [0, 1, 2]
    assert content["rows"][2]["pvalue"] is None
    assert len(found.to_frame()) == 3
    lines = str(found).splitlines()
    assert lines[0] == "Shift and slope against '2'; share of the class"
    assert lines[1].split()[:3] == ["class", "statistic", "df"]
    assert len(lines) == 5
    assert repr(found) == "<ClassTests of 3 classes, baseline 2>"


def test_arguments_are_checked():
    with pytest.raises(InputError, match="method must be"):
        class_tests(TOY_X, TOY_Y, method="wald")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mcllo.exceptions.MclloWarning")
@pytest.mark.parametrize(("work", "method"), [(1e9, "bootstrap"), (1e4, "score")])
def test_size_with_few_rows(work, method):
    # H0 true, class 1's parameters far from the identity: class 0's p-value is at most 0.1 in about
    # a tenth of 120 samples (sd .027); refits and scores
    rng = np.random.default_rng(21)
    probs = simplex(rng, 60, 3, 1.5)
    truth = power_formula(probs, np.array([1.0, 2.0]), np.array([1.0, 0.5]))
    options = {"classes": [0, 1, 2], "n_resamples": 39, "work": work}
    found = [class_tests(probs, draw(truth, rng), seed=k, **options) for k in range(120)]
    own = np.array([tests.table["pvalue"][0] for tests in found])
    assert {tests.table["method"][0] for tests in found} == {method}
    assert abs(np.mean(own <= 0.1) - 0.1) < 3 * 0.027


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mcllo.exceptions.MclloWarning")
@pytest.mark.parametrize("work", [1e9, 1e4])
def test_any_false_rejection_after_holm(work):
    # all classes calibrated, 60 sharp rows: any rejection at .1 in at most a tenth of 80 samples
    # (sd .034), for shift and slope and for the share
    rng = np.random.default_rng(22)
    probs = simplex(rng, 60, 3, 2.5)
    options = {"classes": [0, 1, 2], "n_resamples": 39, "work": work}
    found = [class_tests(probs, draw(probs, rng), seed=k, **options) for k in range(80)]
    assert np.mean([len(tests.rejected(0.1)) > 0 for tests in found]) < 0.1 + 3 * 0.034
    assert np.mean([len(tests.rejected_in_the_large(0.1)) > 0 for tests in found]) < 0.1 + 3 * 0.034


PVALUES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("pvalues", "adjusted"),
    [
        ([0.3], [0.3]),
        # sorted .01 .02 .03 .30; times 4, 3, 2, 1: .04 .06 .06 .30; running maximum, given order
        ([0.30, 0.01, 0.03, 0.02], [0.30, 0.04, 0.06, 0.06]),
        ([np.nan, 0.6, 0.9], [np.nan, 1.0, 1.0]),  # two count: 2 * .6 = 1.2 -> 1
    ],
)
def test_holm_by_hand(pvalues, adjusted):
    np.testing.assert_allclose(holm(pvalues), adjusted)


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
