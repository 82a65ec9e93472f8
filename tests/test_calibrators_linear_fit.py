import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from mcllo import Predictions
from mcllo.calibrators import _linear_fit
from mcllo.calibrators._linear_fit import check_penalty, fit_map, identity_map
from mcllo.exceptions import (
    AbsentClassWarning,
    ConvergenceWarning,
    InputError,
    SeparationWarning,
)

REMEDY = "Ask for help."
KINDS = pytest.mark.parametrize("diagonal", [True, False], ids=["vector", "matrix"])


def drawn(n, c, seed, scale=1.5):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, c))
    return z, (scale * z + rng.gumbel(size=z.shape)).argmax(axis=1)


def no_penalty(c, diagonal):
    return np.zeros((c, 2 if diagonal else c + 1))


def fit(z, y, diagonal, weight=None, classes=None):
    held = Predictions.from_arrays(logits=z, y=y, sample_weight=weight, classes=classes)
    return fit_map(held, "logits", no_penalty(held.n_classes, diagonal), REMEDY), held


@KINDS
def test_refit_on_its_own_scores_is_the_identity(diagonal):
    z, y = drawn(400, 3, seed=0)
    first, _ = fit(z, y, diagonal)
    W = np.diag(first.coef) if diagonal else first.coef
    second, _ = fit(z @ W.T + first.intercept, y, diagonal)
    identity = identity_map(3, diagonal)
    np.testing.assert_allclose(second.coef, identity[:, 0] if diagonal else np.eye(3), atol=1e-6)
    np.testing.assert_allclose(second.intercept, 0.0, atol=1e-6)


@KINDS
def test_the_residuals_of_a_maximum_are_orthogonal_to_the_features(diagonal):
    z, y = drawn(400, 4, seed=1)
    fitted, held = fit(z, y, diagonal)
    residual = fitted.apply(held) - np.eye(4)[y]
    np.testing.assert_allclose(residual.sum(axis=0), 0.0, atol=1e-5)
    cross = residual.T @ z
    np.testing.assert_allclose(np.diag(cross) if diagonal else cross, 0.0, atol=1e-5)


@KINDS
def test_lbfgs_agrees_with_newton(diagonal, monkeypatch):
    z, y = drawn(1000, 5, seed=2)
    newton, held = fit(z, y, diagonal)
    monkeypatch.setattr(_linear_fit, "NEWTON_PARAMETERS", 0)
    other, _ = fit(z, y, diagonal)
    assert other.converged
    np.testing.assert_allclose(other.coef, newton.coef, atol=2e-5)
    np.testing.assert_allclose(other.apply(held), newton.apply(held), atol=2e-6)


def test_what_no_probability_depends_on_is_centred():
    z, y = drawn(300, 4, seed=3)
    fitted, _ = fit(z, y, diagonal=False)
    np.testing.assert_allclose((fitted.coef - np.eye(4)).sum(axis=0), 0.0, atol=1e-13)
    assert fitted.intercept.sum() == pytest.approx(0.0, abs=1e-13)


def test_scores_that_sum_to_zero_leave_the_matrix_near_the_identity():
    # A constant added to a row of W changes nothing when scores sum to 0. The floor chooses the one
    # nearest to I, feature k weighing sum z_k^2: those weighted sums of W - I are 0.
    z, y = drawn(300, 4, seed=4)
    z -= z.mean(axis=1, keepdims=True)
    fitted, _ = fit(z, y, diagonal=False)
    assert fitted.converged
    assert not fitted.separated
    np.testing.assert_allclose((fitted.coef - np.eye(4)) @ (z**2).mean(axis=0), 0.0, atol=1e-4)


@KINDS
@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_logits_of_any_size(diagonal, scale):
    z, y = drawn(300, 3, seed=5)
    plain, held = fit(z, y, diagonal)
    scaled, large = fit(scale * z, y, diagonal)
    np.testing.assert_allclose(scaled.apply(large), plain.apply(held), atol=1e-4)


@KINDS
def test_separated_rows_warn_and_have_a_finite_answer(diagonal):
    z, _ = drawn(200, 3, seed=6)
    with pytest.warns(SeparationWarning, match=r"separate the classes.* Ask for help\.$"):
        fitted, held = fit(z, z.argmax(axis=1), diagonal)
    assert fitted.separated
    assert np.isfinite(fitted.coef).all()
    answer = fitted.apply(held)
    np.testing.assert_allclose(answer.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_array_equal(answer.argmax(axis=1), z.argmax(axis=1))


def test_one_separated_class_is_noticed():
    z, y = drawn(200, 3, seed=7)
    rows = y != 2
    z, y = z[rows], y[rows]
    z[0], y[0] = [0.0, 0.0, 9.0], 2  # the only row of class 2 has by far its largest score
    with pytest.warns(SeparationWarning):
        fit(z, y, diagonal=True)


def test_a_penalty_takes_the_place_of_the_warning():
    z, _ = drawn(200, 3, seed=6)
    held = Predictions.from_arrays(logits=z, y=z.argmax(axis=1))
    fitted = fit_map(held, "logits", np.ones((3, 4)), REMEDY)
    assert not fitted.separated
    assert np.abs(fitted.coef).max() < 10.0


@KINDS
def test_an_absent_class_is_left_out(diagonal):
    z, y = drawn(400, 3, seed=8)
    rows = y != 1
    with pytest.warns(AbsentClassWarning, match="no row has class 1;"):
        fitted, held = fit(z[rows], y[rows], diagonal, classes=[0, 1, 2])
    answer = fitted.apply(held)
    np.testing.assert_array_equal(answer[:, 1], held.probs[:, 1])
    if diagonal:  # the other two are the fit of the two alone
        alone, pair = fit(z[rows][:, [0, 2]], y[rows] // 2, diagonal)
        share = answer[:, [0, 2]] / answer[:, [0, 2]].sum(axis=1, keepdims=True)
        np.testing.assert_allclose(share, alone.apply(pair), atol=1e-8)


def test_a_class_of_weight_zero_is_absent():
    z, y = drawn(400, 3, seed=8)
    weight = (y != 1).astype(float)
    with pytest.warns(AbsentClassWarning):
        weighted, held = fit(z, y, True, weight=weight)
    with pytest.warns(AbsentClassWarning):
        dropped, _ = fit(z[y != 1], y[y != 1], True, classes=[0, 1, 2])
    np.testing.assert_allclose(weighted.apply(held), dropped.apply(held), atol=1e-8)


def test_a_single_class_leaves_the_predictions_as_they_are():
    z, _ = drawn(50, 3, seed=9)
    with pytest.warns(AbsentClassWarning, match="no row has class 1, 2;"):
        fitted, held = fit(z, np.zeros(50, dtype=int), diagonal=False)
    np.testing.assert_allclose(fitted.apply(held), softmax(z, axis=1), atol=1e-15)


def test_a_solver_out_of_steps_says_so(monkeypatch):
    z, y = drawn(300, 3, seed=10, scale=3.0)
    monkeypatch.setattr(_linear_fit, "NEWTON_PARAMETERS", 0)
    monkeypatch.setattr(_linear_fit, "LBFGS_ITERATIONS", 1)
    with pytest.warns(ConvergenceWarning, match="stopped after 1 steps short of its tolerance"):
        fitted, _ = fit(z, y, diagonal=False)
    assert not fitted.converged


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10**6), diagonal=st.booleans())
def test_permuting_the_classes_permutes_the_map(seed, diagonal):
    z, y = drawn(200, 3, seed)
    order = np.random.default_rng(seed).permutation(3)
    plain, held = fit(z, y, diagonal)
    moved, _ = fit(z[:, order], np.argsort(order)[y], diagonal)
    coef = plain.coef[order] if diagonal else plain.coef[np.ix_(order, order)]
    np.testing.assert_allclose(moved.coef, coef, atol=1e-5)
    np.testing.assert_allclose(moved.intercept, plain.intercept[order], atol=1e-5)
    assert held.n_classes == 3


@pytest.mark.parametrize("value", [-1.0, np.inf, np.nan])
def test_penalties_that_are_refused(value):
    with pytest.raises(InputError, match="penalty must be finite and not negative; got penalty="):
        check_penalty("penalty", value)
