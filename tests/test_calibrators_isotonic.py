import calibrator_checks
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import TOY_X, TOY_Y

from mcllo.calibrators._isotonic import IsotonicCalibration
from mcllo.exceptions import InputError


def pool_adjacent_violators(x, y):
    """Return the isotonic fit at each row, by merging blocks that fall; equal x are one block."""
    blocks = [[at, y[x == at].sum(), (x == at).sum()] for at in np.unique(x)]
    merged = []
    for at, total, count in blocks:
        merged.append([[at], total, count])
        while len(merged) > 1 and merged[-2][1] / merged[-2][2] >= merged[-1][1] / merged[-1][2]:
            upper = merged.pop()
            for part in range(3):
                merged[-1][part] += upper[part]
    value = {at: total / count for members, total, count in merged for at in members}
    return np.array([value[at] for at in x])


def test_rows_on_which_it_is_right_stay():
    X = np.array([[0.25, 0.75]] * 4 + [[0.5, 0.5]] * 2)
    fitted = IsotonicCalibration().fit(X, [0, 1, 1, 1, 0, 1])
    np.testing.assert_allclose(fitted.predict_proba(X), X)


def test_hand_sized_example():
    # Class 0 by x_0: .2 -> 0, .4 -> 0, .6 -> 1, .8 -> 0, .9 -> 1; .6 and .8 are pooled to 1/2.
    # Class 1 is its mirror image. At .5, halfway from (.4, 0) to (.6, 1/2): 1/4 and 3/4.
    X = [[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.4, 0.6], [0.2, 0.8]]
    fitted = IsotonicCalibration().fit(X, [0, 1, 0, 1, 1])
    answer = fitted.predict_proba([[0.8, 0.2], [0.95, 0.05], [0.5, 0.5]])
    np.testing.assert_allclose(answer, [[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]])


def test_against_pool_adjacent_violators():
    rng = np.random.default_rng(0)
    counts = rng.multinomial(20, rng.dirichlet([1, 1, 1], size=150))
    X, y = counts / 20, rng.integers(0, 3, 150)
    fitted = IsotonicCalibration().fit(X, y)
    raw = np.column_stack([pool_adjacent_violators(X[:, k], y == k) for k in range(3)])
    expected = raw / raw.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.predict_proba(X), expected, atol=1e-9)


def test_toy():
    # methods.md 3: isotonic row 6 raw (.333333, .4, .333333).
    fitted = IsotonicCalibration().fit(TOY_X, TOY_Y)
    raw = np.array([np.interp(TOY_X[6, k], *fitted.knots_[k]) for k in range(3)])
    np.testing.assert_allclose(raw, [1 / 3, 0.4, 1 / 3], atol=1e-12)
    np.testing.assert_allclose(fitted.predict_proba(TOY_X)[6], raw / raw.sum(), atol=1e-12)


def test_a_row_of_zeros_becomes_uniform():
    # Each class has 0 below its smallest hit: .6, .6 and .7.
    X = np.vstack([np.eye(3) * 0.6 + 0.4 / 3, np.eye(3) * 0.1 + 0.3])
    fitted = IsotonicCalibration().fit(X, [0, 1, 2, 1, 2, 0])
    np.testing.assert_allclose(fitted.predict_proba([[0.34, 0.33, 0.33]]), np.full((1, 3), 1 / 3))


@pytest.mark.parametrize("check", calibrator_checks.PROMISES, ids=lambda f: f.__name__)
def test_promises(check):
    check(IsotonicCalibration)


def test_json(tmp_path, monkeypatch):
    calibrator_checks.json_round_trip_is_exact(
        IsotonicCalibration, tmp_path / "map.json", monkeypatch
    )


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_functions_never_fall_and_average_to_the_share(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.dirichlet(np.ones(3), size=40), np.append([0, 1, 2], rng.integers(0, 3, 37))
    fitted = IsotonicCalibration().fit(X, y)
    for k, (at, value) in enumerate(fitted.knots_):
        assert (np.diff(at) > 0.0).all()
        assert (np.diff(value) >= 0.0).all()
        np.testing.assert_allclose(np.interp(X[:, k], at, value).mean(), (y == k).mean())


def test_refused_rows():
    with pytest.raises(InputError, match=r"row 1 sums to 0\.9"):
        IsotonicCalibration().fit([[0.5, 0.5], [0.5, 0.4]], [0, 1])
