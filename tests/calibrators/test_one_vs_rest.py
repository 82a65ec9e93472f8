import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit
from toy import TOY_X, TOY_Y

from mcllo.calibrators import BetaCalibration, IsotonicCalibration
from mcllo.calibrators._base import normalize_rows
from mcllo.calibrators._beta import beta_features, fit_beta, is_separable
from mcllo.exceptions import SeparationWarning

ROW = np.array([[0.5, 0.3, 0.2]])


def negative_log_likelihood(coef, s, hit):
    eta = coef[0] * np.log(s) - coef[1] * np.log(1.0 - s) + coef[2]
    return np.logaddexp(0.0, eta).sum() - eta[hit].sum()


def test_labels_in_the_right_shares_give_the_identity():
    s = np.array([0.25] * 4 + [0.5] * 4 + [0.75] * 4)
    hit = np.array([1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0], dtype=bool)
    np.testing.assert_allclose(fit_beta(s, hit), [1.0, 1.0, 0.0], atol=1e-6)
    X = np.column_stack([1.0 - s, s])
    answer = BetaCalibration().fit(X, hit.astype(int)).predict_proba(X)
    np.testing.assert_allclose(answer, X, atol=1e-6)


def test_hand_sized_example():
    # Two values of s with shares 1/4 and 3/4 at s = .4 and .6: by symmetry a = b and m = 0, and
    # a (log .6 - log .4) = log 3.
    s, hit = np.repeat([0.4, 0.6], 4), np.array([1, 0, 0, 0, 1, 1, 1, 0], dtype=bool)
    a, b, m = fit_beta(s, hit)
    np.testing.assert_allclose((a + b) * np.log(0.6 / 0.4), 2 * np.log(3.0), atol=1e-6)
    q = expit(beta_features(np.array([0.4, 0.6])).T @ [a, b, m])
    np.testing.assert_allclose(q, [0.25, 0.75], atol=1e-6)


def test_against_a_general_optimiser():
    rng = np.random.default_rng(3)
    s = rng.beta(2, 2, size=300)
    hit = rng.random(300) < expit(1.5 * np.log(s) - 0.7 * np.log(1 - s) + 0.3)
    bounds = [(0, None), (0, None), (None, None)]
    expected = minimize(
        negative_log_likelihood, [1, 1, 0], args=(s, hit), bounds=bounds
    )
    np.testing.assert_allclose(fit_beta(s, hit), expected.x, atol=1e-3)
    assert negative_log_likelihood(fit_beta(s, hit), s, hit) <= expected.fun + 1e-9


def test_toy():
    # methods.md 3: beta (a, b, c), tolerance 1e-5.
    expected = [
        (1.065812, 1.759938, -0.010730),
        (1.113748, 1.844950, -0.638982),
        (1.478130, 1.812191, 0.107506),
    ]
    np.testing.assert_allclose(
        BetaCalibration().fit(TOY_X, TOY_Y).coef_, expected, atol=1e-5
    )


def test_sign_rule_down_to_the_constant_map():
    # methods.md 3: s = x_0, target y = 1; the unconstrained b is -3.726131, and without it a is
    # -.155784, so only the intercept is left: log(5 / 11).
    coef = fit_beta(TOY_X[:, 0], TOY_Y == 1)
    np.testing.assert_allclose(coef, [0.0, 0.0, np.log(5 / 11)], atol=1e-9)


def test_sign_rule_drops_one_term():
    # Hits come with b = -.8, so b is dropped and what is left is fitted again.
    rng = np.random.default_rng(0)
    s = rng.uniform(0.01, 0.99, size=500)
    hit = rng.random(500) < expit(1.2 * np.log(s) + 0.8 * np.log(1.0 - s) + 1.5)
    a, b, m = fit_beta(s, hit)
    assert b == 0.0
    expected = minimize(
        lambda v: negative_log_likelihood([v[0], 0.0, v[1]], s, hit), [1, 0]
    )
    np.testing.assert_allclose([a, m], expected.x, atol=1e-3)
    # The mirror image, hits and misses swapped with s and 1 - s, drops a instead.
    np.testing.assert_allclose(fit_beta(1.0 - s, ~hit), [0.0, a, -m], atol=1e-6)


def test_two_classes_are_one_map():
    rng = np.random.default_rng(1)
    s = rng.random(200)
    y = (rng.random(200) < s**2).astype(int)
    fitted = BetaCalibration().fit(np.column_stack([1 - s, s]), y)
    a, b, m = fitted.coef_[1]
    np.testing.assert_allclose(fitted.coef_[0], [b, a, -m], atol=1e-6)
    q = expit(beta_features(s).T @ fitted.coef_[1])
    np.testing.assert_allclose(
        fitted.predict_proba(np.column_stack([1 - s, s]))[:, 1], q
    )


def test_a_constant_column_gives_the_share():
    q = expit(
        beta_features(np.full(1, 0.3)).T @ fit_beta(np.full(8, 0.3), np.arange(8) < 2)
    )
    np.testing.assert_allclose(q, 0.25, atol=1e-6)


def test_a_step_warns_and_answers():
    X = np.array([[8, 1, 1], [7, 2, 1], [3, 4, 3], [2, 3, 5], [1, 5, 4]]) / 10
    words = "tells a class from the rest without error"
    with pytest.warns(SeparationWarning, match=words) as caught:
        fitted = BetaCalibration().fit(X, ["a", "a", "b", "b", "c"])
    assert caught[0].filename == __file__
    assert "tells class 'a' from" in caught[0].message.text()
    assert caught[0].message.numbers == {"classes": ("a",)}
    answer = fitted.predict_proba(np.vstack([X, [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]]))
    assert np.isfinite(answer).all()
    np.testing.assert_allclose(answer.sum(axis=1), 1.0)
    assert fitted.predict(X)[:2].tolist() == ["a", "a"]


def test_what_is_a_step():
    s = np.array([0.1, 0.4, 0.4, 0.9])
    assert is_separable(s, np.array([0, 0, 1, 1], dtype=bool))
    assert not is_separable(s, np.array([0, 1, 0, 0], dtype=bool))
    assert not is_separable(np.full(4, 0.3), np.array([0, 0, 1, 1], dtype=bool))
    assert not is_separable(s, np.ones(4, dtype=bool))


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_maps_never_fall_and_average_to_the_share(seed):
    rng = np.random.default_rng(seed)
    s = rng.uniform(0.05, 0.95, size=60)
    hit = rng.random(60) < rng.uniform(0.2, 0.8, size=60)
    coef = fit_beta(s, hit)
    assert (coef[:2] >= 0.0).all()
    np.testing.assert_allclose(
        expit(beta_features(s).T @ coef).mean(), hit.mean(), atol=1e-6
    )


# ---- what calibrators by class share


def test_answers_that_sum_to_one_stay():
    np.testing.assert_allclose(
        normalize_rows(TOY_X, TOY_X[::-1], zero_row="uniform"), TOY_X
    )


def test_an_absent_class_keeps_its_share():
    # Class 1 keeps .3; the answers .6 and .2 of the others share .7 as 3 : 1.
    answer = normalize_rows(
        np.array([[0.6, 9.0, 0.2]]), ROW, absent=(1,), zero_row="uniform"
    )
    np.testing.assert_allclose(answer, [[0.525, 0.3, 0.175]])
    nothing = normalize_rows(
        np.array([[0.0, 9.0, 0.0]]), ROW, absent=(1,), zero_row="uniform"
    )
    np.testing.assert_allclose(nothing, [[0.35, 0.3, 0.35]])
    x = np.array([[0.0, 1.0, 0.0]])  # all on the absent class
    answer = normalize_rows(
        np.array([[0.1, 0.0, 0.1]]), x, absent=(1,), zero_row="original"
    )
    np.testing.assert_array_equal(answer, x)


def test_absent_columns_look_at_the_weight():
    assert IsotonicCalibration().fit(TOY_X, TOY_Y).absent_ == ()
    with pytest.warns(match="no row has class 2"):
        fitted = IsotonicCalibration().fit(TOY_X, TOY_Y, sample_weight=TOY_Y != 2)
    assert fitted.absent_ == (2,)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["original", "uniform"]))
def test_rows_sum_to_one_and_the_input_is_untouched(seed, zero_row):
    rng = np.random.default_rng(seed)
    x = rng.dirichlet(np.ones(4), size=5)
    q = rng.random((5, 4)) * rng.integers(0, 2, size=(5, 4))
    before = x.copy(), q.copy()
    absent = tuple(np.flatnonzero(rng.integers(0, 2, size=4))[:3].tolist())
    answer = normalize_rows(q, x, absent=absent, zero_row=zero_row)
    np.testing.assert_allclose(answer.sum(axis=1), 1.0)
    np.testing.assert_array_equal(answer[:, absent], x[:, absent])
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(q, before[1])
