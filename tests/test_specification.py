"""Test vectors of the methods specification (sections 3 to 5) that no single module owns."""

import numpy as np
import pytest
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._fit.linear_fit import fit_linear_map
from mcllo._inference.omnibus import HosmerLemeshow
from mcllo.calibrators import TemperatureScaling
from mcllo.metrics._binned import TopLabelECE

TOY = Predictions.from_arrays(TOY_X, TOY_Y)


def ts_mixed():
    """Temperature scaling, then a mixture with the uniform of weight 1 / (n + 1) (section 3)."""
    probs = TemperatureScaling().fit(TOY_X, TOY_Y).predict_proba(TOY_X)
    n, c = probs.shape
    return TOY.with_probs(probs * (1.0 - 1.0 / (n + 1)) + 1.0 / ((n + 1) * c))


def test_structured_vector_scaling_on_the_shared_kernel():
    # section 3, SVS: (c/n)(|b|^2 + |diag|^2) on the mean is a ridge of 2c on the sum
    found = fit_linear_map(ts_mixed(), "log_probs", np.full((3, 2), 6.0), "")
    assert found.coef == pytest.approx([0.949765, 1.067860, 1.054026], abs=1e-5)
    assert found.intercept == pytest.approx([0.045571, -0.056219, 0.010648], abs=1e-5)


def test_structured_matrix_scaling_on_the_shared_kernel():
    # section 3, SMS: off-diagonal entries with c(c - 1)/n, so a ridge of 2c(c - 1) on the sum
    ridge = np.full((3, 4), 12.0)
    np.fill_diagonal(ridge, 6.0)
    ridge[:, -1] = 6.0
    found = fit_linear_map(ts_mixed(), "log_probs", ridge, "")
    expected = [
        [0.959511, -0.037291, -0.008309],
        [0.054688, 1.047403, -0.019586],
        [-0.034444, 0.013589, 1.055791],
    ]
    np.testing.assert_allclose(found.coef, expected, atol=1e-5)
    assert found.intercept == pytest.approx([0.036484, -0.036871, 0.000386], abs=1e-5)


def test_mean_confidence():
    assert TOY_X.max(axis=1).mean() == pytest.approx(0.596875)  # section 4


def test_hosmer_lemeshow_with_groups_that_keep_ties_together():
    # section 5.1: unique-quantile groups of 1 - x_ref, right-closed, reference 2, g = 4
    score = 1.0 - TOY_X[:, 2]
    inner = np.unique(np.quantile(score, [0.25, 0.5, 0.75]))
    group = np.searchsorted(inner, score, side="left")
    total = 0.0
    for k in np.unique(group):
        rows = group == k
        total += HosmerLemeshow(TOY.take(rows), 1).of_labels(TOY_Y[rows][None])[0]
    assert total == pytest.approx(2.40667426, abs=1e-7)


@pytest.mark.slow
def test_row_resampled_consistency_test():
    # section 5.3: rows and labels resampled, ECE with 10 bins, 9999 draws, seed 0: p = .0735
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 16, (9999, 16))
    u = rng.random((9999, 16))
    labels = (u[:, :, None] > TOY_X.cumsum(axis=1)[rows][:, :, :-1]).sum(axis=2)
    observed = TopLabelECE(TOY, 10).of_labels(TOY_Y[None])[0]
    draws = [
        TopLabelECE(TOY.take(r), 10).of_labels(y[None])[0]
        for r, y in zip(rows, labels, strict=True)
    ]
    p = (1 + np.sum(np.array(draws) >= observed - 1e-12)) / 10_000
    assert p == pytest.approx(0.0735, abs=1e-12)
