import calibrator_checks
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression
from toy import TOY_X, TOY_Y

from mcllo.calibrators._matrix import MatrixScaling
from mcllo.exceptions import InputError, SeparationWarning


def drawn(n, seed, c=3):
    rng = np.random.default_rng(seed)
    z = rng.normal(0.0, 1.5, size=(n, c))
    W = np.eye(c) + 0.3 * np.random.default_rng(99).normal(size=(c, c))
    return z, (z @ W.T + rng.gumbel(size=z.shape)).argmax(axis=1)


def on_probs(**options):
    # 12 rows (the contract's weights) do not determine 8 parameters; the penalty does.
    return MatrixScaling(on="log_probs", penalty=0.1, **options)


def test_refit_on_recalibrated_logits_is_the_identity():
    z, y = drawn(400, seed=0)
    first = MatrixScaling().fit(z, y)
    second = MatrixScaling().fit(z @ first.coef_.T + first.intercept_, y)
    np.testing.assert_allclose(second.coef_, np.eye(3), atol=1e-6)
    np.testing.assert_allclose(second.intercept_, 0.0, atol=1e-6)


def test_hand_sized_example():
    # Two kinds of rows, z = (1, 0) and (0, 1); label 0 in 3 of 4 and in 1 of 5. The map has enough
    # freedom to give each kind its own share.
    z = np.repeat(np.eye(2), [4, 5], axis=0)
    answer = MatrixScaling().fit(z, [0, 0, 0, 1, 0, 1, 1, 1, 1]).predict_proba(np.eye(2))
    np.testing.assert_allclose(answer[:, 0], [3 / 4, 1 / 5], atol=1e-8)


@pytest.mark.parametrize("penalty", [0.0, 2.0])
def test_against_a_general_optimiser(penalty):
    z, y = drawn(300, seed=1)

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
    z, y = drawn(500, seed=2, c=4)
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(z, y)
    ours = MatrixScaling().fit(z, y).predict_proba(z)
    np.testing.assert_allclose(ours, theirs.predict_proba(z), atol=1e-5)


def test_toy():
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


def test_input_says_what_x_holds():
    assert MatrixScaling().input == "logits"
    assert on_probs().input == "probs"


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_an_invertible_map_of_the_logits_does_not_matter(seed):
    z, y = drawn(300, seed)
    A = np.eye(3) + 0.2 * np.random.default_rng(seed).normal(size=(3, 3))
    plain = MatrixScaling().fit(z, y).predict_proba(z)
    moved = MatrixScaling().fit(z @ A.T, y).predict_proba(z @ A.T)
    np.testing.assert_allclose(moved, plain, atol=1e-6)


@pytest.mark.parametrize("promise", calibrator_checks.PROMISES)
@pytest.mark.filterwarnings("ignore::mcllo.exceptions.ZeroProbabilityWarning")
def test_contract(promise):
    promise(on_probs)


def test_saved_and_loaded(tmp_path, monkeypatch):
    calibrator_checks.json_round_trip_is_exact(on_probs, tmp_path / "m.json", monkeypatch)


def test_separated_rows_warn_with_the_remedy():
    z, _ = drawn(100, seed=2)
    with pytest.warns(SeparationWarning, match=r"Use MatrixScaling\(penalty=1.0\)"):
        MatrixScaling().fit(z, z.argmin(axis=1))
    assert not MatrixScaling(penalty=1.0).fit(z, z.argmin(axis=1)).map_.separated


def test_options_that_are_refused():
    with pytest.raises(InputError, match="on must be one of"):
        MatrixScaling(on="probs").fit(TOY_X, TOY_Y)
    with pytest.raises(InputError, match="penalty must be finite and not negative"):
        MatrixScaling(penalty=np.nan).fit(TOY_X, TOY_Y)
