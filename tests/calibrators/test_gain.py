"""What a recalibration gains on rows that it did not see."""

import numpy as np
import pytest

from mcllo import AutoCalibrator, Predictions
from mcllo.calibrators._auto import gain as module
from mcllo.calibrators._auto.gain import CrossFittedGain, cross_fitted_gain


def rows(n=1500, slope=0.6, c=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.dirichlet(np.ones(c), n)
    truth = x**slope / (x**slope).sum(axis=1, keepdims=True)
    return x, (rng.random(n)[:, None] > truth.cumsum(axis=1)).sum(axis=1), truth


def test_it_is_the_gain_of_the_auto_calibrator():
    x, y, truth = rows()
    found = cross_fitted_gain(Predictions.from_arrays(x, y))
    assert found.gain == pytest.approx(AutoCalibrator().fit(x, y).stack_.gain)
    assert found.low < (truth * np.log(truth / x)).sum(axis=1).mean() < found.high
    assert found.low > 0.0


def test_calibrated_rows_gain_nothing():
    x, y, _ = rows(slope=1.0)
    found = cross_fitted_gain(Predictions.from_arrays(x, y))
    assert found.low <= 0.0
    assert "does not lower the log loss" in found.statement(1500).text


def test_groups_are_left_out_whole_and_widen_the_interval():
    x, y, _ = rows(400)
    groups = np.repeat(np.arange(400), 4)
    copies = Predictions.from_arrays(
        np.repeat(x, 4, axis=0), np.repeat(y, 4), groups=groups
    )
    once = cross_fitted_gain(Predictions.from_arrays(x, y))
    found = cross_fitted_gain(copies)
    assert found.high - found.low > 0.6 * (once.high - once.low)


def test_words():
    shown = CrossFittedGain(0.034, 0.023, 0.048, 0.95, 1000)
    assert shown.statement(1000).text == (
        "A recalibration learned on four fifths of these rows lowers the log loss of the others by "
        "0.034 a row (95 % confidence: 0.023 to 0.048)."
    )
    assert "of 1,000 of these rows" in shown.statement(5000).text


@pytest.mark.parametrize(
    ("n", "c", "words"), [(19, 3, "19 rows"), (900, 201, "201 classes")]
)
def test_where_it_is_not_computed_it_says_why(n, c, words):
    x, y, _ = rows(n, c=c)
    found = cross_fitted_gain(Predictions.from_arrays(x, y, classes=range(c)))
    assert np.isnan(found.gain)
    assert words in found.reason
    assert found.reason in found.statement(n).text


def test_many_rows_are_sampled(monkeypatch):
    monkeypatch.setattr(module, "MAX_ENTRIES", 1500)
    x, y, _ = rows()
    found = cross_fitted_gain(Predictions.from_arrays(x, y), seed=1)
    assert found.n_samples == 500
    assert (
        found.to_dict()
        == cross_fitted_gain(Predictions.from_arrays(x, y), seed=1).to_dict()
    )
