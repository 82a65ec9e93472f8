import json

import numpy as np
import pytest
from independent import direct_nll, draw, log_odds_of, power_formula, simplex
from scipy.optimize import minimize
from scipy.stats import binom, chi2, norm
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._class_tests import class_tests, in_the_large
from mcllo._multiplicity import holm
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
def test_size_with_few_rows():
    # H0 true, class 1's parameters far from the identity: class 0's p-value is at most 0.1 in about
    # a tenth of 120 samples (sd .027); any false rejection after Holm in at most a tenth
    rng = np.random.default_rng(21)
    probs = simplex(rng, 60, 3, 1.5)
    truth = power_formula(probs, np.array([1.0, 2.0]), np.array([1.0, 0.5]))
    own, large, classes = [], [], [0, 1, 2]
    for k in range(120):
        y = draw(truth, rng)
        options = {"classes": classes, "method": "exact", "n_resamples": 39, "seed": k}
        own.append(class_tests(probs, y, **options).table["pvalue"][0])
        p = Predictions.from_arrays(probs, draw(probs, rng), classes=classes)
        large.append(min(in_the_large(p)["large_adjusted"]))
    assert abs(np.mean(np.array(own) <= 0.1) - 0.1) < 0.08
    assert np.mean(np.array(large) <= 0.1) < 0.1 + 0.08
