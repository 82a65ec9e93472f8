from pathlib import Path

import calibrator_checks
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo.calibrators import MatrixScaling, VectorScaling
from mcllo.exceptions import InputError, SeparationWarning

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
CIFAR = SHARED / "cifar10_vgg16_keras" / "cifar10_vgg16_keras.npz"


def drawn(n, seed, w=(1.5, 0.7, 1.0), b=(0.5, 0.0, -0.5)):
    rng = np.random.default_rng(seed)
    z = rng.normal(0.0, 1.5, size=(n, len(w)))
    return z, (np.array(w) * z + b + rng.gumbel(size=z.shape)).argmax(axis=1)


def mean_loss(answer, y):
    return -np.log(answer[np.arange(len(y)), y]).mean()


def on_probs(**options):
    return VectorScaling(on="log_probs", **options)


def test_refit_on_recalibrated_logits_is_the_identity():
    z, y = drawn(400, seed=0)
    first = VectorScaling().fit(z, y)
    second = VectorScaling().fit(z * first.coef_ + first.intercept_, y)
    np.testing.assert_allclose(second.coef_, 1.0, atol=1e-6)
    np.testing.assert_allclose(second.intercept_, 0.0, atol=1e-6)


def test_hand_sized_example():
    # Equal logits in every row leave only intercepts: shares 4/8, 3/8, 1/8 are matched exactly.
    y = [0, 0, 0, 0, 1, 1, 1, 2]
    answer = VectorScaling().fit(np.zeros((8, 3)), y).predict_proba(np.zeros((1, 3)))
    np.testing.assert_allclose(answer, [[0.5, 0.375, 0.125]], atol=1e-8)


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_against_a_general_optimiser(penalty):
    z, y = drawn(300, seed=1)

    def objective(theta):
        w, b = theta[:3], theta[3:]
        nll = -log_softmax(w * z + b, axis=1)[np.arange(300), y].sum()
        return nll + 0.5 * penalty * (((w - 1) ** 2).sum() + (b**2).sum())

    best = minimize(objective, [1, 1, 1, 0, 0, 0], options={"gtol": 1e-8}).x
    fitted = VectorScaling(penalty=penalty).fit(z, y)
    np.testing.assert_allclose(fitted.coef_, best[:3], atol=1e-5)
    np.testing.assert_allclose(fitted.intercept_, best[3:] - best[3:].mean(), atol=1e-5)


def test_toy():
    # methods.md 3, TOY (z = log x), tolerance 1e-5.
    fitted = on_probs().fit(TOY_X, TOY_Y)
    answer = fitted.predict_proba(TOY_X)
    np.testing.assert_allclose(fitted.coef_, [1.086886, 1.372634, 1.767722], atol=1e-5)
    np.testing.assert_allclose(fitted.intercept_, [-0.168055, -0.234512, 0.402567], atol=1e-5)
    assert mean_loss(answer, TOY_Y) == pytest.approx(0.754946838, abs=1e-9)
    statistic = 2 * 16 * (mean_loss(TOY_X, TOY_Y) - mean_loss(answer, TOY_Y))
    assert statistic == pytest.approx(1.048464, abs=1e-5)
    np.testing.assert_allclose(answer[0], [0.836197, 0.126584, 0.037219], atol=1e-5)


def test_toy_with_shifted_logits_gives_another_map():
    # methods.md 3: row i shifted by linspace(-3, 3, 16)[i]; vector scaling is not shift invariant.
    logits = np.log(TOY_X) + np.linspace(-3, 3, 16)[:, None]
    fitted = VectorScaling().fit(logits, TOY_Y)
    answer = fitted.predict_proba(logits)
    np.testing.assert_allclose(fitted.coef_, [1.297973, 1.266751, 1.497655], atol=1e-5)
    assert mean_loss(answer, TOY_Y) == pytest.approx(0.750867154, abs=1e-9)
    np.testing.assert_allclose(answer[0], [0.849693, 0.128281, 0.022026], atol=1e-5)


def test_toy_with_centred_logits():
    # methods.md 3: VS on clr.
    logits = np.log(TOY_X)
    logits -= logits.mean(axis=1, keepdims=True)
    fitted = VectorScaling().fit(logits, TOY_Y)
    np.testing.assert_allclose(fitted.coef_, [1.014284, 1.491180, 1.733032], atol=1e-5)
    np.testing.assert_allclose(fitted.intercept_, [0.252577, -0.220852, -0.031725], atol=1e-5)
    assert mean_loss(fitted.predict_proba(logits), TOY_Y) == pytest.approx(0.754460146, abs=1e-9)


def test_cifar_split():
    # methods.md 7, seed-0 split 8000/2000: VS(log p) hold-out log loss .1814.
    if not CIFAR.exists():
        pytest.skip("the CIFAR-10 predictions are not beside the repository")
    with np.load(CIFAR, allow_pickle=True) as held:
        probs, labels = held["probs"].astype(np.float64), held["labels"]
    probs /= probs.sum(axis=1, keepdims=True)
    rows = np.random.default_rng(0).permutation(10_000)
    train, holdout = rows[:8000], rows[8000:]
    answer = on_probs().fit(probs[train], labels[train]).predict_proba(probs[holdout])
    assert mean_loss(answer, labels[holdout]) == pytest.approx(0.1814, abs=5e-5)


def test_input_says_what_x_holds():
    assert VectorScaling().input == "logits"
    assert on_probs().input == "probs"


def test_log_probs_of_predictions_that_hold_logits():
    # The logits of `held` are shifted row by row; on="log_probs" must not see that.
    held = Predictions.from_arrays(logits=np.log(TOY_X) + np.arange(16.0)[:, None], y=TOY_Y)
    expected = on_probs().fit(TOY_X, TOY_Y)
    fitted = on_probs().fit(held, None)
    np.testing.assert_allclose(fitted.coef_, expected.coef_, atol=1e-9)
    np.testing.assert_allclose(fitted.predict_proba(held), expected.predict_proba(TOY_X), atol=1e-9)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10**6), scale=st.floats(0.1, 10.0))
def test_the_unit_of_the_logits_does_not_matter(seed, scale):
    z, y = drawn(300, seed)
    plain, scaled = VectorScaling().fit(z, y), VectorScaling().fit(scale * z, y)
    np.testing.assert_allclose(scaled.coef_ * scale, plain.coef_, rtol=1e-5)


@pytest.mark.parametrize("promise", calibrator_checks.PROMISES)
@pytest.mark.filterwarnings("ignore::mcllo.exceptions.ZeroProbabilityWarning")
def test_contract(promise):
    promise(on_probs)


def test_saved_and_loaded(tmp_path, monkeypatch):
    calibrator_checks.json_round_trip_is_exact(on_probs, tmp_path / "v.json", monkeypatch)


def test_separated_rows_warn_with_the_remedy():
    z, _ = drawn(100, seed=2)
    with pytest.warns(SeparationWarning, match=r"Use VectorScaling\(penalty=1.0\)") as caught:
        VectorScaling().fit(z, z.argmax(axis=1))
    assert caught[0].filename == __file__
    assert not VectorScaling(penalty=1.0).fit(z, z.argmax(axis=1)).map_.separated


def test_options_that_are_refused():
    with pytest.raises(InputError, match="on must be one of"):
        VectorScaling(on="probs").fit(TOY_X, TOY_Y)
    with pytest.raises(InputError, match="penalty must be finite and not negative"):
        VectorScaling(penalty=-1.0).fit(TOY_X, TOY_Y)


def drawn_matrix(n, seed, c=3):
    rng = np.random.default_rng(seed)
    z = rng.normal(0.0, 1.5, size=(n, c))
    W = np.eye(c) + 0.3 * np.random.default_rng(99).normal(size=(c, c))
    return z, (z @ W.T + rng.gumbel(size=z.shape)).argmax(axis=1)


def on_probs_matrix(**options):
    # 12 rows (the contract's weights) do not determine 8 parameters; the penalty does.
    return MatrixScaling(on="log_probs", penalty=0.1, **options)


def test_refit_on_recalibrated_logits_is_the_identity_matrix():
    z, y = drawn_matrix(400, seed=0)
    first = MatrixScaling().fit(z, y)
    second = MatrixScaling().fit(z @ first.coef_.T + first.intercept_, y)
    np.testing.assert_allclose(second.coef_, np.eye(3), atol=1e-6)
    np.testing.assert_allclose(second.intercept_, 0.0, atol=1e-6)


def test_hand_sized_example_matrix():
    # Two kinds of rows, z = (1, 0) and (0, 1); label 0 in 3 of 4 and in 1 of 5. The map has enough
    # freedom to give each kind its own share.
    z = np.repeat(np.eye(2), [4, 5], axis=0)
    answer = MatrixScaling().fit(z, [0, 0, 0, 1, 0, 1, 1, 1, 1]).predict_proba(np.eye(2))
    np.testing.assert_allclose(answer[:, 0], [3 / 4, 1 / 5], atol=1e-8)


@pytest.mark.parametrize("penalty", [0.0, 2.0])
def test_against_a_general_optimiser_matrix(penalty):
    z, y = drawn_matrix(300, seed=1)

    def objective(theta):
        W, b = theta[:9].reshape(3, 3), theta[9:]
        nll = -log_softmax(z @ W.T + b, axis=1)[np.arange(300), y].sum()
        return nll + 0.5 * penalty * (((W - np.eye(3)) ** 2).sum() + (b**2).sum())

    best = minimize(objective, np.append(np.eye(3).ravel(), [0, 0, 0]), options={"gtol": 1e-8}).x
    W, b = best[:9].reshape(3, 3), best[9:]
    W = W - (W - np.eye(3)).mean(axis=0)  # of all W of equal probabilities, the one reported
    fitted = MatrixScaling(penalty=penalty).fit(z, y)
    np.testing.assert_allclose(fitted.coef_, W, atol=1e-5)
    np.testing.assert_allclose(fitted.intercept_, b - b.mean(), atol=1e-5)


def test_against_multinomial_logistic_regression():
    # Without penalty matrix scaling is multinomial logistic regression on the logits.
    z, y = drawn_matrix(500, seed=2, c=4)
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(z, y)
    ours = MatrixScaling().fit(z, y).predict_proba(z)
    np.testing.assert_allclose(ours, theirs.predict_proba(z), atol=1e-5)


def test_toy_matrix():
    # methods.md 3: the full map of log x without penalty, total NLL 11.847236913, statistic
    # 1.512289, row 0 (.815362, .169759, .014878).
    fitted = MatrixScaling(on="log_probs").fit(TOY_X, TOY_Y)
    answer = fitted.predict_proba(TOY_X)
    total = -np.log(answer[np.arange(16), TOY_Y]).sum()
    assert total == pytest.approx(11.847236913, abs=1e-8)
    assert 2 * (12.6033816017 - total) == pytest.approx(1.512289, abs=1e-5)
    np.testing.assert_allclose(answer[0], [0.815362, 0.169759, 0.014878], atol=1e-5)


def test_more_classes_than_newton_takes():
    rng = np.random.default_rng(3)
    z = rng.normal(0.0, 2.0, size=(4000, 25))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    fitted = MatrixScaling(penalty=1.0).fit(z, y)  # 650 parameters
    assert fitted.map_.converged
    gradient = (fitted.predict_proba(z) - np.eye(25)[y]).T @ z + fitted.coef_ - np.eye(25)
    np.testing.assert_allclose(gradient, 0.0, atol=2e-3)


def test_input_says_what_x_holds_matrix():
    assert MatrixScaling().input == "logits"
    assert on_probs_matrix().input == "probs"


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_an_invertible_map_of_the_logits_does_not_matter(seed):
    z, y = drawn_matrix(300, seed)
    A = np.eye(3) + 0.2 * np.random.default_rng(seed).normal(size=(3, 3))
    plain = MatrixScaling().fit(z, y).predict_proba(z)
    moved = MatrixScaling().fit(z @ A.T, y).predict_proba(z @ A.T)
    np.testing.assert_allclose(moved, plain, atol=1e-6)


@pytest.mark.parametrize("promise", calibrator_checks.PROMISES)
@pytest.mark.filterwarnings("ignore::mcllo.exceptions.ZeroProbabilityWarning")
def test_contract_matrix(promise):
    promise(on_probs_matrix)


def test_saved_and_loaded_matrix(tmp_path, monkeypatch):
    calibrator_checks.json_round_trip_is_exact(on_probs_matrix, tmp_path / "m.json", monkeypatch)


def test_separated_rows_warn_with_the_remedy_matrix():
    z, _ = drawn_matrix(100, seed=2)
    with pytest.warns(SeparationWarning, match=r"Use MatrixScaling\(penalty=1.0\)"):
        MatrixScaling().fit(z, z.argmin(axis=1))
    assert not MatrixScaling(penalty=1.0).fit(z, z.argmin(axis=1)).map_.separated


def test_options_that_are_refused_matrix():
    with pytest.raises(InputError, match="on must be one of"):
        MatrixScaling(on="probs").fit(TOY_X, TOY_Y)
    with pytest.raises(InputError, match="penalty must be finite and not negative"):
        MatrixScaling(penalty=np.nan).fit(TOY_X, TOY_Y)
