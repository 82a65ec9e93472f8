import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import softmax

from mcllo._math.temperature import inverse_temperature


def scores_and_labels(n, c, seed, scale=1.0):
    rng = np.random.default_rng(seed)
    z = rng.normal(0.0, 2.0, (n, c))
    return (z * scale).T.copy(), (z + rng.gumbel(size=z.shape)).argmax(axis=1)


def root_of_the_likelihood_equation(z, y, weight=None):
    """The same equation by Brent's method on log u, rows written out one by one."""
    w = np.ones(len(y)) if weight is None else weight

    def h(v):
        p = softmax(math.exp(v) * z, axis=0)
        return float(w @ ((p * z).sum(axis=0) - z[y, np.arange(len(y))]))

    return math.exp(brentq(h, -16.0, 16.0, xtol=1e-13, rtol=1e-14))


def test_scores_that_need_no_change():
    # 3 of 4 labels where p = 3/4: the likelihood equation holds at u = 1.
    z = np.log(np.tile([[0.75], [0.25]], 4))
    root = inverse_temperature(z, np.array([0, 0, 0, 1]))
    assert root.value == pytest.approx(1.0, abs=1e-12)
    assert root.bound == 0


def test_hand_sized_example():
    # Scores (1, 0) in every row, 4 labels of 5 for the first: expit(u) = 4/5, u = log 4.
    z = np.tile([[1.0], [0.0]], 5)
    assert inverse_temperature(z, np.array([0, 0, 0, 0, 1])).value == pytest.approx(math.log(4.0))


@pytest.mark.parametrize("scale", [1e-5, 0.1, 1.0, 30.0, 1e5])
@pytest.mark.parametrize(
    ("n", "c", "weighted"), [(50, 2, False), (400, 3, False), (5000, 10, False), (6000, 4, True)]
)
def test_against_brent(n, c, weighted, scale):
    z, y = scores_and_labels(n, c, seed=n, scale=scale)
    weight = np.random.default_rng(2).exponential(size=n) if weighted else None
    expected = root_of_the_likelihood_equation(z, y, weight)
    assert inverse_temperature(z, y, weight).value == pytest.approx(expected, rel=1e-9)


def test_few_passes_over_the_rows():
    z, y = scores_and_labels(8000, 10, seed=0, scale=1.5)
    assert inverse_temperature(z, y).n_iter == 2


@pytest.mark.parametrize(("pick", "bound"), [("argmax", 1), ("argmin", -1)])
def test_all_labels_on_the_largest_or_smallest_score(pick, bound):
    z, _ = scores_and_labels(100, 3, seed=0)
    root = inverse_temperature(z, getattr(z, pick)(axis=0))
    assert (root.value, root.bound) == (math.exp(16.0 * bound), bound)


def test_one_hard_row_among_easy_ones_has_a_root():
    z, _ = scores_and_labels(500, 3, seed=0)
    y = z.argmax(axis=0)
    y[0] = z[:, 0].argmin()
    expected = root_of_the_likelihood_equation(z, y)
    assert inverse_temperature(z, y).value == pytest.approx(expected, rel=1e-9)


def test_scores_that_never_differ_leave_u_at_one():
    assert inverse_temperature(np.full((3, 10), 7.0), np.arange(10) % 3).value == 1.0


def test_the_first_guess_does_not_matter():
    # 4000 rows are worth a guess from every 8th, 3999 are not; one row twice, at half its weight.
    z, y = scores_and_labels(3999, 5, seed=3, scale=4.0)
    plain = inverse_temperature(z.copy(), y).value
    rows = np.append(np.arange(3999), 0)
    weight = np.where(rows == 0, 0.5, 1.0)
    guessed = inverse_temperature(z[:, rows], y[rows], weight).value
    assert guessed == pytest.approx(plain, rel=1e-11)


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 10**6), log_scale=st.floats(-10, 10), shift=st.floats(-100, 100))
def test_scaled_and_shifted_scores(seed, log_scale, shift):
    z, y = scores_and_labels(40, 3, seed)
    root = inverse_temperature(z.copy(), y)
    if root.bound == 0 and abs(math.log(root.value)) < 5.0:
        scale = math.exp(log_scale)
        moved = inverse_temperature(scale * (z + shift), y)
        assert moved.value * scale == pytest.approx(root.value, rel=1e-6)


def test_a_plateau_far_out_does_not_overflow():
    # found by hypothesis: at exp(9.78) times the scores the slope at u = 1 all but vanishes
    z, y = scores_and_labels(40, 3, 0)
    root = inverse_temperature(z.copy(), y)
    scale = math.exp(9.78125)
    assert inverse_temperature(scale * z, y).value * scale == pytest.approx(root.value, rel=1e-6)
