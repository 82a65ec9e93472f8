import numpy as np
import pytest
from toy import TOY_X, TOY_Y

from mcllo import Predictions, calibration_test
from mcllo._fit import fit_predictions
from mcllo._split_ratio import SMALLEST, _gain, _likelihood, split_pvalue


def rows(n, seed, power=1.0, concentration=0.05, c=4):
    """Sharp rows; `power` 1 draws labels from them, less makes them overconfident."""
    rng = np.random.default_rng(seed)
    probs = np.clip(rng.dirichlet(np.full(c, concentration), size=n), 1e-6, None)
    probs /= probs.sum(axis=1, keepdims=True)
    truth = probs**power
    truth /= truth.sum(axis=1, keepdims=True)
    y = (rng.random((n, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return Predictions.from_arrays(probs, y, classes=range(c))


def test_the_gain_is_that_of_a_ridge_fit_on_the_other_half():
    p = Predictions.from_arrays(TOY_X, TOY_Y)
    fit = fit_predictions(p.take(np.arange(0, 16, 2)), penalty=1.0)
    other = p.take(np.arange(1, 16, 2))
    own = np.arange(8)
    after = np.log(fit.recalibrate(other.probs)[own, other.codes]).sum()
    before = np.log(other.probs[own, other.codes]).sum()
    halves = [_likelihood(p, slice(k, None, 2)) for k in (0, 1)]
    assert _gain(*halves) == pytest.approx(after - before, abs=1e-9)


def test_it_is_one_at_most_and_never_zero():
    assert split_pvalue(Predictions.from_arrays(TOY_X[:3], TOY_Y[:3], classes=range(3))) == 1.0
    assert 0.0 < split_pvalue(Predictions.from_arrays(TOY_X, TOY_Y)) <= 1.0
    wrong = rows(20_000, 0, power=0.1)
    assert split_pvalue(wrong) == SMALLEST


def test_weights_are_repetitions_of_rows():
    p = rows(200, 1, power=0.5)
    twice = Predictions.from_arrays(
        p.probs, p.codes, sample_weight=np.full(200, 2.0), classes=range(4)
    )
    assert split_pvalue(twice) < split_pvalue(p)


def test_the_default_reports_the_bound_where_simulation_cannot_tell_more():
    test = calibration_test(rows(400, 2, power=0.3), seed=0)
    assert test.method == "bound"
    assert test.n_resamples == 0
    assert test.pvalue < 1 / (20 * 2000)
    assert "p <= " in str(test)
    assert "guaranteed bound" in str(test)
    assert test.rejects(0.001)
    asked = calibration_test(rows(400, 2, power=0.3), method="exact", n_resamples=99, seed=0)
    assert asked.method == "exact"
    assert asked.pvalue == pytest.approx(0.01)


@pytest.mark.slow
def test_its_expectation_under_calibration_is_at_most_one():
    # E has mean 1; Markov: P(p <= a) <= a. 2000 repetitions
    values = np.array([split_pvalue(rows(60, seed)) for seed in range(2000)])
    for alpha in (0.01, 0.05, 0.2):
        assert np.mean(values <= alpha) <= alpha + 2.6 * np.sqrt(alpha * (1 - alpha) / 2000)
