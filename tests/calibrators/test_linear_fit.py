import json
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._fit.linear_fit import (
    LinearMap,
    fit_linear_map,
    minimize_by_lbfgs,
    transposed_scores,
)
from mcllo._validation.probabilities import clean_logits, clean_probs
from mcllo.calibrators._linear import odir_ridge
from mcllo.exceptions import ConvergenceWarning, SeparationWarning

REMEDY = "Ask for help."
KINDS = pytest.mark.parametrize("diagonal", [True, False], ids=["vector", "matrix"])


def drawn(n, c, seed, scale=1.5):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, c))
    return z, (scale * z + rng.gumbel(size=z.shape)).argmax(axis=1)


def fit(z, y, diagonal, weight=None, classes=None, solver=None):
    held = Predictions.from_arrays(logits=z, y=y, sample_weight=weight, classes=classes)
    ridge = np.zeros((held.n_classes, 2 if diagonal else held.n_classes + 1))
    return fit_linear_map(held, "logits", ridge, REMEDY, solver), held


@KINDS
def test_the_residuals_of_a_maximum_are_orthogonal_to_the_features(diagonal):
    z, y = drawn(400, 4, seed=1)
    fitted, held = fit(z, y, diagonal)
    residual = fitted.apply(held) - np.eye(4)[y]
    np.testing.assert_allclose(residual.sum(axis=0), 0.0, atol=1e-5)
    cross = residual.T @ z
    np.testing.assert_allclose(np.diag(cross) if diagonal else cross, 0.0, atol=1e-5)


@KINDS
def test_secant_agrees_with_newton(diagonal):
    z, y = drawn(1000, 5, seed=2)
    newton, held = fit(z, y, diagonal)
    other, _ = fit(z, y, diagonal, solver=minimize_by_lbfgs)
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
    np.testing.assert_allclose(
        (fitted.coef - np.eye(4)) @ (z**2).mean(axis=0), 0.0, atol=1e-4
    )


def test_one_separated_class_is_noticed():
    z, y = drawn(200, 3, seed=7)
    rows = y != 2
    z, y = z[rows], y[rows]
    z[0], y[0] = (
        [0.0, 0.0, 9.0],
        2,
    )  # the only row of class 2 has by far its largest score
    with pytest.warns(SeparationWarning):
        fit(z, y, diagonal=True)


@KINDS
def test_an_absent_class_is_left_out(diagonal):
    z, y = drawn(400, 3, seed=8)
    rows = y != 1
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
    weighted, held = fit(z, y, True, weight=weight)
    dropped, _ = fit(z[y != 1], y[y != 1], True, classes=[0, 1, 2])
    np.testing.assert_allclose(weighted.apply(held), dropped.apply(held), atol=1e-8)


def test_a_single_class_leaves_the_predictions_as_they_are():
    z, _ = drawn(50, 3, seed=9)
    fitted, held = fit(z, np.zeros(50, dtype=int), diagonal=False)
    np.testing.assert_allclose(fitted.apply(held), softmax(z, axis=1), atol=1e-15)


def test_a_solver_out_of_steps_says_so():
    z, y = drawn(300, 3, seed=10, scale=3.0)
    with pytest.warns(
        ConvergenceWarning, match="stopped short of its tolerance"
    ) as caught:
        fitted, _ = fit(
            z, y, diagonal=False, solver=partial(minimize_by_lbfgs, max_iter=1)
        )
    assert caught[0].message.numbers == {"n_iter": 1}
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


def test_hand_sized_penalty():
    # c = 3, lambda = 6, mu = 3: off-diagonals weigh 2 * 6 / (3 * 2) = 2, intercepts 2 * 3 / 3 = 2.
    expected = [[0, 2, 2, 2], [2, 0, 2, 2], [2, 2, 0, 2]]
    np.testing.assert_array_equal(odir_ridge(3, 6.0, 3.0), expected)


def test_identity():
    for coef in (np.array(1.0), np.ones(3), np.eye(3)):
        answer = LinearMap(coef, np.zeros(3)).apply(clean_probs(TOY_X))
        np.testing.assert_allclose(answer, TOY_X, atol=1e-15, err_msg=str(coef))


def test_hand_sized_example():
    # W doubles the first score and b adds log 3 to the second: (1/4, 1/2, 1/4) has scores
    # log(1/16, 3/2, 1/4), that is 1 : 24 : 4.
    double = LinearMap(np.array([2.0, 1.0, 1.0]), np.array([0.0, np.log(3.0), 0.0]))
    answer = double.apply(clean_probs([[0.25, 0.5, 0.25]]))
    np.testing.assert_allclose(answer, [[1 / 29, 24 / 29, 4 / 29]])


def test_a_matrix_mixes_scores():
    W = np.array([[1.0, 0.5, 0.0], [0.0, 2.0, 0.0], [-1.0, 0.0, 1.0]])
    b = np.array([0.1, 0.2, -0.3])
    expected = softmax(np.log(TOY_X) @ W.T + b, axis=1)
    np.testing.assert_allclose(
        LinearMap(W, b).apply(clean_probs(TOY_X)), expected, atol=1e-14
    )


def test_an_absent_class_keeps_its_probability():
    # Of (.2, .3, .5) the middle is absent: u = 2 splits the other .7 as .04 : .25.
    twice = LinearMap(np.array(2.0), np.zeros(3), absent=(1,))
    answer = twice.apply(clean_probs([[0.2, 0.3, 0.5]]))
    np.testing.assert_allclose(answer, [[0.7 * 4 / 29, 0.3, 0.7 * 25 / 29]])


def test_many_rows_are_mapped_in_blocks_as_in_one():
    z = np.random.default_rng(0).normal(size=(20_001, 5))
    W = np.random.default_rng(1).normal(size=(5, 5))
    answer = LinearMap(W, np.zeros(5)).apply(clean_logits(z))
    np.testing.assert_allclose(answer, softmax(z @ W.T, axis=1), atol=1e-13)


def test_scores():
    logits = np.log(TOY_X) + np.arange(16.0)[:, None]
    held = Predictions.from_arrays(logits=logits, y=TOY_Y)
    np.testing.assert_array_equal(transposed_scores(held), logits.T)
    np.testing.assert_allclose(
        transposed_scores(held, "log_probs"), np.log(TOY_X).T, atol=1e-14
    )
    np.testing.assert_array_equal(
        transposed_scores(clean_probs(TOY_X)), np.log(TOY_X).T
    )


def test_log_probabilities_of_logits_too_far_apart_for_probabilities():
    held = Predictions.from_arrays(logits=[[0.0, -2000.0], [0.0, 1.0]], y=[0, 1])
    expected = log_softmax(held.logits, axis=1).T
    np.testing.assert_allclose(transposed_scores(held, "log_probs"), expected)


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    shape=st.sampled_from([(), (4,), (4, 4)]),
    absent=st.lists(st.integers(0, 3), max_size=3, unique=True),
)
def test_rows_sum_to_one_and_the_dictionary_is_exact(seed, shape, absent):
    rng = np.random.default_rng(seed)
    one = LinearMap(
        3 * rng.normal(size=shape), rng.normal(size=4), tuple(sorted(absent)), 5
    )
    rows = clean_logits(10 * rng.normal(size=(7, 4)))
    answer = one.apply(rows)
    np.testing.assert_allclose(answer.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_array_equal(
        answer[:, sorted(absent)], rows.probs[:, sorted(absent)]
    )
    again = LinearMap.from_dict(json.loads(json.dumps(one.to_dict())))
    np.testing.assert_array_equal(again.apply(rows), answer)
    assert again.to_dict() == one.to_dict()
