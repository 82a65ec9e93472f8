"""The model written a second time, for clarity instead of speed, and data for property tests.

Nothing here imports `mcllo`: the literal Eq. (3)-(4), Eq. (5) row by row, and random designs.
"""

import numpy as np
from hypothesis import strategies as st
from scipy.special import logsumexp


def power_formula(probs, delta, gamma):
    """Eq. (3)-(4) of the paper as printed, with powers; the last column is the baseline."""
    x, base = probs[:, :-1], probs[:, -1:]
    g = np.empty_like(x)
    for j in range(x.shape[1]):
        others = (delta * x**gamma * base ** (gamma[j] - gamma)).sum(axis=1)
        g[:, j] = delta[j] * x[:, j] ** gamma[j] / (base[:, 0] ** gamma[j] + others)
    return np.column_stack([g, 1.0 - g.sum(axis=1)])


def direct_nll(theta, log_odds, codes, weight=None):
    """Eq. (5) as a sum over rows of ``-log g_{i, y_i}``; no sufficient statistic."""
    k, n = log_odds.shape
    eta = np.vstack([theta[:k, None] + theta[k:, None] * log_odds, np.zeros(n)])
    per_row = logsumexp(eta, axis=0) - eta[codes, np.arange(n)]
    return float(per_row @ (np.ones(n) if weight is None else weight))


def central_differences(function, x, h=1e-6):
    """Return the derivative of a function of a vector, one row for each coordinate of x."""
    steps = np.eye(len(x)) * h
    return np.array([(function(x + e) - function(x - e)) / (2.0 * h) for e in steps])


def assert_same_terms(first, second, rtol=1e-12, atol=1e-11):
    """Compare value, gradient and Hessian; all bits where the tolerances are 0."""
    np.testing.assert_allclose(
        first.value, second.value, rtol=rtol, atol=min(atol, 1e-12)
    )
    np.testing.assert_allclose(first.gradient, second.gradient, rtol=rtol, atol=atol)
    np.testing.assert_allclose(first.hessian, second.hessian, rtol=rtol, atol=atol)


def log_odds_of(probs):
    """Return log odds against the last column, shape (c - 1, n)."""
    return np.log(probs[:, :-1] / probs[:, -1:]).T


def draw(probs, rng):
    """Return labels drawn from the rows."""
    return (rng.random((len(probs), 1)) > probs.cumsum(axis=1)[:, :-1]).sum(axis=1)


def simplex(rng, n, c, sharpness=1.0):
    """Return n random rows of c probabilities; a larger sharpness moves them to the corners."""
    scores = sharpness * rng.normal(size=(n, c))
    rows = np.exp(scores - scores.max(axis=1, keepdims=True))
    return rows / rows.sum(axis=1, keepdims=True)


def sample(n, c, seed, sharpness=1.0):
    """Return random rows and labels drawn from them."""
    rng = np.random.default_rng(seed)
    probs = simplex(rng, n, c, sharpness)
    return probs, draw(probs, rng)


@st.composite
def designs(draw_from, min_rows=1, max_rows=40, max_classes=5, max_sharpness=4.0):
    """Random probabilities with random labels that use every class when there are rows enough."""
    rng = np.random.default_rng(draw_from(st.integers(0, 2**32 - 1)))
    c = draw_from(st.integers(2, max_classes))
    n = draw_from(st.integers(min_rows, max_rows))
    probs = simplex(rng, n, c, draw_from(st.floats(0.1, max_sharpness)))
    codes = np.resize(rng.permutation(c), n)
    return probs, rng.permutation(codes)


@st.composite
def maps(draw_from, n_compared):
    """Random delta and gamma of moderate size, gamma away from 0."""
    rng = np.random.default_rng(draw_from(st.integers(0, 2**32 - 1)))
    sign = np.where(rng.random(n_compared) < 0.2, -1.0, 1.0)
    return np.exp(rng.normal(size=n_compared)), sign * rng.uniform(
        0.3, 3.0, size=n_compared
    )
