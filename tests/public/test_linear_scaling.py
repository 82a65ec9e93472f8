"""Temperature, vector, matrix and Dirichlet calibration: linear maps of scores."""

import numpy as np
import pytest
import sklearn.calibration
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from shared_data import load_cifar10_vgg16_keras
from sklearn.linear_model import LogisticRegression
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo.calibrators import (
    AutoCalibrator,
    DirichletCalibration,
    MatrixScaling,
    TemperatureScaling,
    VectorScaling,
)
from mcllo.exceptions import ConvergenceWarning, InputError, SeparationWarning

LOGS, SHIFT = np.log(TOY_X), np.linspace(-3, 3, 16)[:, None]
SCALINGS = pytest.mark.parametrize("cls", [VectorScaling, MatrixScaling])


def drawn(n, seed, c=3):
    """Return logits, and labels of a map that mixes them."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0.0, 1.5, size=(n, c))
    W = np.eye(c) + 0.3 * np.random.default_rng(99).normal(size=(c, c))
    return z, (z @ W.T + rng.gumbel(size=z.shape)).argmax(axis=1)


def sharpened(n, c, seed, power=1.5):
    """Return overconfident probabilities, and labels of a temperature."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0.0, 2.0, (n, c))
    return softmax(power * z, axis=1), (z + rng.gumbel(size=z.shape)).argmax(axis=1)


def mean_loss(answer, y, weight=None):
    return np.average(-np.log(answer[np.arange(len(y)), y]), weights=weight)


def odir(W, b, lam, mu):
    """The penalty of methods.md 3, written out."""
    k = len(b)
    off = W[~np.eye(k, dtype=bool)]
    return lam / (k * (k - 1)) * (off**2).sum() + mu / k * (b**2).sum()


# ------------------------------------------------------------------------ fixed points and by hand


@SCALINGS
def test_refit_on_recalibrated_logits_is_the_identity(cls):
    z, y = drawn(400, seed=0)
    first = cls().fit(z, y)
    W = np.diag(first.coef_) if first.coef_.ndim == 1 else first.coef_
    second = cls().fit(z @ W.T + first.intercept_, y)
    identity = np.ones(3) if first.coef_.ndim == 1 else np.eye(3)
    np.testing.assert_allclose(second.coef_, identity, atol=1e-6)
    np.testing.assert_allclose(second.intercept_, 0.0, atol=1e-6)


def test_refit_on_recalibrated_rows_is_the_identity():
    X, y = sharpened(500, 3, seed=0)
    recalibrated = TemperatureScaling().fit(X, y).predict_proba(X)
    assert TemperatureScaling().fit(recalibrated, y).temperature_ == pytest.approx(
        1.0, abs=1e-9
    )


def test_labels_in_the_right_shares_give_the_identity():
    # Four rows of (.5, .25, .25) with labels 0, 0, 1, 2, and so on: the gradient is 0 at W = I.
    X = np.repeat(0.25 * (np.ones((3, 3)) + np.eye(3)), 4, axis=0)
    y = [0, 0, 1, 2, 0, 1, 1, 2, 0, 1, 2, 2]
    for lam in (0.0, 1.0):
        fitted = DirichletCalibration(off_diagonal=lam, intercept=lam).fit(X, y)
        np.testing.assert_allclose(fitted.predict_proba(X), X, atol=1e-8)


def test_hand_sized_temperature():
    # p = .8 came true 2 times of 3: u log 4 = log 2, u = 1/2; the row (.8, .2) becomes (2/3, 1/3).
    fitted = TemperatureScaling().fit([[0.8, 0.2]] * 3, [0, 0, 1])
    assert fitted.temperature_ == pytest.approx(2.0)
    np.testing.assert_allclose(fitted.predict_proba([[0.8, 0.2]]), [[2 / 3, 1 / 3]])


def test_hand_sized_vector():
    # Equal logits in every row leave only intercepts: shares 4/8, 3/8, 1/8 are matched exactly.
    y = [0, 0, 0, 0, 1, 1, 1, 2]
    answer = VectorScaling().fit(np.zeros((8, 3)), y).predict_proba(np.zeros((1, 3)))
    np.testing.assert_allclose(answer, [[0.5, 0.375, 0.125]], atol=1e-8)


def test_hand_sized_matrix():
    # Two kinds of rows, z = (1, 0) and (0, 1); label 0 in 3 of 4 and in 1 of 5. The map has enough
    # freedom to give each kind its own share.
    z = np.repeat(np.eye(2), [4, 5], axis=0)
    answer = (
        MatrixScaling().fit(z, [0, 0, 0, 1, 0, 1, 1, 1, 1]).predict_proba(np.eye(2))
    )
    np.testing.assert_allclose(answer[:, 0], [3 / 4, 1 / 5], atol=1e-8)


@pytest.mark.parametrize(
    "calibrator",
    [
        VectorScaling(),
        VectorScaling(penalty=1.0),
        MatrixScaling(),
        MatrixScaling(penalty=2.0),
        DirichletCalibration(off_diagonal=0.01, intercept=0.01),
        DirichletCalibration(off_diagonal=1.0, intercept=0.01),
        DirichletCalibration(off_diagonal=0.1, intercept=5.0),
    ],
    ids=str,
)
def test_against_a_general_optimiser(calibrator):
    z, y = drawn(300, seed=1)
    weight = np.random.default_rng(2).exponential(size=300)
    if calibrator.input == "probs":
        z = log_softmax(z, axis=1)
    total, free = weight.sum(), np.ones(12, dtype=bool)
    if calibrator.method == "vector":
        free[:9] = np.eye(3, dtype=bool).ravel()

    def objective(x):
        theta = np.append(np.eye(3).ravel(), np.zeros(3))
        theta[free] = x
        W, b = theta[:9].reshape(3, 3), theta[9:]
        loss = mean_loss(softmax(z @ W.T + b, axis=1), y, weight)
        if calibrator.method == "dirichlet":
            return loss + odir(W, b, calibrator.off_diagonal, calibrator.intercept)
        return loss + 0.5 * calibrator.penalty / total * (
            ((W - np.eye(3)) ** 2).sum() + b @ b
        )

    start = np.append(np.eye(3).ravel(), np.zeros(3))[free]
    best = minimize(objective, start, options={"gtol": 1e-9})
    coef, b = best.x[:-3].reshape(-1, 3).squeeze(), best.x[-3:]
    if (
        calibrator.method != "dirichlet"
    ):  # of all maps of equal probabilities, the one reported
        b = b - b.mean()
    if calibrator.method == "matrix":
        coef = coef - (coef - np.eye(3)).mean(axis=0)
    X = z if calibrator.input == "logits" else np.exp(z)
    fitted = calibrator.fit(X, y, weight)
    found = np.append(fitted.coef_.ravel(), fitted.intercept_)
    assert objective(found) == pytest.approx(best.fun, abs=1e-9)
    np.testing.assert_allclose(fitted.coef_, coef, atol=1e-4)
    np.testing.assert_allclose(fitted.intercept_, b, atol=1e-4)


def test_against_multinomial_logistic_regression():
    # Without penalty matrix scaling is multinomial logistic regression on the logits.
    z, y = drawn(500, seed=2, c=4)
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(z, y)
    ours = MatrixScaling().fit(z, y).predict_proba(z)
    np.testing.assert_allclose(ours, theirs.predict_proba(z), atol=1e-5)


@pytest.mark.skipif(
    not hasattr(sklearn.calibration, "_TemperatureScaling"),
    reason="this scikit-learn has no temperature scaling",
)
def test_against_scikit_learn():
    for n, c in ((200, 2), (1000, 10)):
        X, y = sharpened(n, c, seed=n)
        theirs = sklearn.calibration._TemperatureScaling().fit(X, y)
        ours = TemperatureScaling().fit(X, y)
        assert ours.inverse_temperature_ == pytest.approx(theirs.beta_, abs=1e-6)
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict(X), atol=1e-6)


def test_more_classes_than_newton_takes():
    rng = np.random.default_rng(3)
    z = rng.normal(0.0, 2.0, size=(4000, 25))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    fitted = MatrixScaling(penalty=1.0).fit(z, y)  # 650 parameters
    assert fitted.map_.converged
    gradient = (
        (fitted.predict_proba(z) - np.eye(25)[y]).T @ z + fitted.coef_ - np.eye(25)
    )
    np.testing.assert_allclose(gradient, 0.0, atol=2e-3)


def test_an_endless_penalty_leaves_vector_scaling():
    X, y = softmax(drawn(300, seed=3)[0], axis=1), drawn(300, seed=3)[1]
    stiff = DirichletCalibration(off_diagonal=1e6, intercept=0.0).fit(X, y)
    expected = VectorScaling(on="log_probs").fit(X, y).predict_proba(X)
    np.testing.assert_allclose(stiff.predict_proba(X), expected, atol=1e-5)


# -------------------------------------------------------------------------------- reference values


def test_toy_temperature():
    # methods.md 3, TOY: T = .72261424, mean NLL .768920625, row 0 (.803649, .141955, .054396);
    # "unchanged when row i gets shift linspace(-3, 3, 16)[i]".
    fitted = TemperatureScaling().fit(TOY_X, TOY_Y)
    answer = fitted.predict_proba(TOY_X)
    assert fitted.temperature_ == pytest.approx(0.72261424, abs=1e-7)
    assert mean_loss(answer, TOY_Y) == pytest.approx(0.768920625, abs=1e-9)
    np.testing.assert_allclose(answer[0], [0.803649, 0.141955, 0.054396], atol=1e-6)
    shifted = TemperatureScaling(on="logits").fit(LOGS + SHIFT, TOY_Y)
    assert shifted.inverse_temperature_ == pytest.approx(1.38386423, abs=1e-7)
    np.testing.assert_allclose(shifted.predict_proba(LOGS + SHIFT), answer, atol=1e-12)


def test_toy_vector():
    # methods.md 3, TOY (z = log x), tolerance 1e-5.
    fitted = VectorScaling(on="log_probs").fit(TOY_X, TOY_Y)
    answer = fitted.predict_proba(TOY_X)
    np.testing.assert_allclose(fitted.coef_, [1.086886, 1.372634, 1.767722], atol=1e-5)
    np.testing.assert_allclose(
        fitted.intercept_, [-0.168055, -0.234512, 0.402567], atol=1e-5
    )
    assert mean_loss(answer, TOY_Y) == pytest.approx(0.754946838, abs=1e-9)
    statistic = 2 * 16 * (mean_loss(TOY_X, TOY_Y) - mean_loss(answer, TOY_Y))
    assert statistic == pytest.approx(1.048464, abs=1e-5)
    np.testing.assert_allclose(answer[0], [0.836197, 0.126584, 0.037219], atol=1e-5)


def test_toy_vector_with_other_logits_is_another_map():
    # methods.md 3: row i shifted by linspace(-3, 3, 16)[i], for vector scaling is not shift
    # invariant; then VS on clr, centred logits.
    shifted, centred = LOGS + SHIFT, LOGS - LOGS.mean(axis=1, keepdims=True)
    fitted = VectorScaling().fit(shifted, TOY_Y)
    answer = fitted.predict_proba(shifted)
    np.testing.assert_allclose(fitted.coef_, [1.297973, 1.266751, 1.497655], atol=1e-5)
    assert mean_loss(answer, TOY_Y) == pytest.approx(0.750867154, abs=1e-9)
    np.testing.assert_allclose(answer[0], [0.849693, 0.128281, 0.022026], atol=1e-5)
    fitted.fit(centred, TOY_Y)
    np.testing.assert_allclose(fitted.coef_, [1.014284, 1.491180, 1.733032], atol=1e-5)
    np.testing.assert_allclose(
        fitted.intercept_, [0.252577, -0.220852, -0.031725], atol=1e-5
    )
    assert mean_loss(fitted.predict_proba(centred), TOY_Y) == pytest.approx(
        0.754460146, abs=1e-9
    )


def test_toy_full_map():
    # methods.md 3: the full map of log x without penalty, total NLL 11.847236913, statistic
    # 1.512289, row 0 (.815362, .169759, .014878).
    free = DirichletCalibration(off_diagonal=0.0, intercept=0.0)
    for calibrator in (MatrixScaling(on="log_probs"), free):
        answer = calibrator.fit(TOY_X, TOY_Y).predict_proba(TOY_X)
        total = 16 * mean_loss(answer, TOY_Y)
        assert total == pytest.approx(11.847236913, abs=1e-8)
        assert 2 * (12.6033816017 - total) == pytest.approx(1.512289, abs=1e-5)
        np.testing.assert_allclose(answer[0], [0.815362, 0.169759, 0.014878], atol=1e-5)


def test_toy_dirichlet():
    # methods.md 3, ODIR lambda = mu = .01, then 1, tolerance 1e-5.
    fitted = DirichletCalibration(off_diagonal=0.01, intercept=0.01).fit(TOY_X, TOY_Y)
    expected = [
        [1.247874, -0.294514, 0.176125],
        [0.216865, 1.265404, -0.176125],
        [-0.216865, 0.294514, 1.645783],
    ]
    np.testing.assert_allclose(fitted.coef_, expected, atol=1e-5)
    np.testing.assert_allclose(
        fitted.intercept_, [0.017774, -0.297707, 0.279933], atol=1e-5
    )
    stiff = DirichletCalibration(off_diagonal=1.0, intercept=1.0).fit(TOY_X, TOY_Y)
    np.testing.assert_allclose(
        np.diag(stiff.coef_), [1.168256, 1.549662, 1.502789], atol=1e-5
    )
    for found, strength, value in (
        (fitted, 0.01, 0.743418551),
        (stiff, 1.0, 0.754065564),
    ):
        loss = mean_loss(found.predict_proba(TOY_X), TOY_Y)
        penalty = odir(found.coef_, found.intercept_, strength, strength)
        assert loss + penalty == pytest.approx(value, abs=1e-9)


def test_cifar_split():
    # methods.md 7, seed-0 split 8000/2000, hold-out log losses: TS .1837 with u = .5892, VS(log p)
    # .1814.
    held = load_cifar10_vgg16_keras()
    rows = np.random.default_rng(0).permutation(10_000)
    train, holdout = held.take(rows[:8000]), held.take(rows[8000:])
    temperature = TemperatureScaling()
    for calibrator, loss in (
        (temperature, 0.1837),
        (VectorScaling(on="log_probs"), 0.1814),
    ):
        answer = calibrator.fit(train).predict_proba(holdout)
        assert mean_loss(answer, holdout.codes) == pytest.approx(loss, abs=5e-5)
    assert temperature.inverse_temperature_ == pytest.approx(0.5892, abs=5e-5)


# -------------------------------------------------------------------------------------- properties


def test_logits_too_far_apart_for_probabilities_and_held_logits():
    # softmax rounds all but one probability of a row to 0; the logits still know.
    X, y = sharpened(300, 3, seed=4)
    expected = TemperatureScaling().fit(X, y).temperature_
    far = TemperatureScaling(on="logits").fit(1000.0 * np.log(X), y)
    assert far.temperature_ == pytest.approx(1000.0 * expected)
    held = Predictions.from_arrays(logits=np.log(X) + 3.0, y=y)
    assert TemperatureScaling().fit(held, None).temperature_ == pytest.approx(expected)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6), power=st.floats(0.2, 5.0))
def test_the_most_probable_class_stays(seed, power):
    X, y = sharpened(50, 4, seed, power)
    fitted = TemperatureScaling().fit(X, y)
    assert fitted.temperature_ > 0.0
    np.testing.assert_array_equal(fitted.predict(X), X.argmax(axis=1))


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10**6), scale=st.floats(0.1, 10.0))
def test_the_unit_of_the_logits_does_not_matter(seed, scale):
    z, y = drawn(300, seed)
    plain, scaled = VectorScaling().fit(z, y), VectorScaling().fit(scale * z, y)
    np.testing.assert_allclose(scaled.coef_ * scale, plain.coef_, rtol=1e-5)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_an_invertible_map_of_the_logits_does_not_matter(seed):
    z, y = drawn(300, seed)
    A = np.eye(3) + 0.2 * np.random.default_rng(seed).normal(size=(3, 3))
    plain = MatrixScaling().fit(z, y).predict_proba(z)
    moved = MatrixScaling().fit(z @ A.T, y).predict_proba(z @ A.T)
    np.testing.assert_allclose(moved, plain, atol=1e-6)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_more_penalty_means_smaller_off_diagonals_and_a_worse_fit(seed):
    z, y = drawn(200, seed)
    X, sizes, losses = softmax(z, axis=1), [], []
    for lam in (0.001, 0.1, 10.0):
        fitted = DirichletCalibration(off_diagonal=lam).fit(X, y)
        sizes.append(odir(fitted.coef_, fitted.intercept_, 1.0, 0.0))
        loss = mean_loss(fitted.predict_proba(X), y)
        losses.append(loss + odir(fitted.coef_, fitted.intercept_, 0.0, 0.01))
    assert sizes[0] >= sizes[1] >= sizes[2]
    assert losses[0] <= losses[1] <= losses[2]


def test_log_probs_of_predictions_that_hold_logits():
    # The logits of `held` are shifted row by row; maps of log probabilities must not see that.
    held = Predictions.from_arrays(logits=LOGS + np.arange(16.0)[:, None], y=TOY_Y)
    for calibrator in (VectorScaling(on="log_probs"), DirichletCalibration()):
        coef, answer = (
            calibrator.fit(TOY_X, TOY_Y).coef_,
            calibrator.predict_proba(TOY_X),
        )
        np.testing.assert_allclose(calibrator.fit(held, None).coef_, coef, atol=1e-9)
        np.testing.assert_allclose(calibrator.predict_proba(held), answer, atol=1e-9)


# ---------------------------------------------------------------------------- warnings, refusals


@pytest.mark.parametrize(
    ("calibrator", "remedy"),
    [
        (VectorScaling(), r"Use VectorScaling\(penalty=1.0\)"),
        (MatrixScaling(), r"Use MatrixScaling\(penalty=1.0\)"),
        (DirichletCalibration(), r'MatrixScaling\(on="log_probs", penalty=1.0\)'),
    ],
    ids=lambda made: getattr(made, "method", ""),
)
def test_separated_rows_warn_with_the_remedy(calibrator, remedy):
    z, _ = drawn(100, seed=2)
    y = z.argmax(axis=1)
    X = z if calibrator.input == "logits" else softmax(z, axis=1)
    with pytest.warns(SeparationWarning, match=remedy) as caught:
        calibrator.fit(X, y)
    assert caught[0].filename == __file__
    answer = calibrator.predict_proba(X)
    np.testing.assert_allclose(answer.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_array_equal(answer.argmax(axis=1), y)
    assert np.isfinite(calibrator.coef_).all()
    if calibrator.method != "dirichlet":
        assert not calibrator.set_params(penalty=1.0).fit(X, y).map_.separated
        assert np.abs(calibrator.coef_).max() < 10.0


@pytest.mark.parametrize(
    ("pick", "warning", "words"),
    [
        ("argmax", SeparationWarning, r"T goes to 0; .* bound .*penalty=1.0"),
        ("argmin", ConvergenceWarning, "no positive temperature is best"),
    ],
)
def test_no_best_temperature_warns_and_predicts(pick, warning, words):
    X, _ = sharpened(100, 3, seed=0)
    with pytest.warns(warning, match=words) as caught:
        fitted = TemperatureScaling().fit(X, getattr(X, pick)(axis=1))
    assert caught[0].filename == __file__
    bound = caught[0].message.numbers["inverse_temperature"]
    assert bound == fitted.inverse_temperature_
    answer = fitted.predict_proba(X)
    if pick == "argmin":
        np.testing.assert_allclose(answer, 1 / 3, atol=1e-5)
    assert np.isfinite(answer).all()
    np.testing.assert_array_equal(answer.argmax(axis=1), X.argmax(axis=1))


def test_options_that_are_refused():
    for cls, name, value in (
        (DirichletCalibration, "off_diagonal", -1.0),
        (DirichletCalibration, "intercept", -1.0),
        (VectorScaling, "penalty", -1.0),
        (MatrixScaling, "penalty", np.nan),
    ):
        message = f"{name} must be finite and not negative; got {name}={value}"
        with pytest.raises(InputError, match=message):
            cls(**{name: value}).fit(TOY_X, TOY_Y)
    for cls in (VectorScaling, MatrixScaling, TemperatureScaling, AutoCalibrator):
        assert cls().on == (
            "logits" if cls in (VectorScaling, MatrixScaling) else "log_probs"
        )
        assert (cls(on="logits").input, cls(on="log_probs").input) == (
            "logits",
            "probs",
        )
        with pytest.raises(
            InputError, match=r"on must be one of .*'log_probs'.*; got on='odds'"
        ):
            cls(on="odds").fit(TOY_X, TOY_Y)
