import calibrator_checks
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.model_selection import GridSearchCV
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo.calibrators import DirichletCalibration, VectorScaling
from mcllo.calibrators._linear import odir_ridge
from mcllo.exceptions import InputError, SeparationWarning


def drawn(n, seed):
    rng = np.random.default_rng(seed)
    honest = rng.dirichlet([1.0, 1.0, 1.0], size=n)
    y = (np.log(honest) + rng.gumbel(size=honest.shape)).argmax(axis=1)
    sharp = honest**1.5
    return sharp / sharp.sum(axis=1, keepdims=True), y


def objective(W, b, X, y, lam, mu, weight=None):
    """The ODIR objective of methods.md 3, written out."""
    k = len(b)
    nll = -log_softmax(np.log(X) @ W.T + b, axis=1)[np.arange(len(y)), y]
    off = W[~np.eye(k, dtype=bool)]
    penalty = lam / (k * (k - 1)) * (off**2).sum() + mu / k * (b**2).sum()
    return np.average(nll, weights=weight) + penalty


@pytest.mark.parametrize("lam", [0.0, 1.0])
def test_labels_in_the_right_shares_give_the_identity(lam):
    # Four rows of (.5, .25, .25) with labels 0, 0, 1, 2, and so on: the gradient is 0 at W = I.
    X = np.repeat(0.25 * (np.ones((3, 3)) + np.eye(3)), 4, axis=0)
    y = [0, 0, 1, 2, 0, 1, 1, 2, 0, 1, 2, 2]
    fitted = DirichletCalibration(off_diagonal=lam, intercept=lam).fit(X, y)
    np.testing.assert_allclose(fitted.predict_proba(X), X, atol=1e-8)


def test_hand_sized_penalty():
    # c = 3, lambda = 6, mu = 3: off-diagonals weigh 2 * 6 / (3 * 2) = 2, intercepts 2 * 3 / 3 = 2.
    expected = [[0, 2, 2, 2], [2, 0, 2, 2], [2, 2, 0, 2]]
    np.testing.assert_array_equal(odir_ridge(3, 6.0, 3.0), expected)


@pytest.mark.parametrize(("lam", "mu"), [(0.01, 0.01), (1.0, 0.01), (0.1, 5.0)])
def test_against_a_general_optimiser(lam, mu):
    X, y = drawn(200, seed=1)
    weight = np.random.default_rng(2).exponential(size=200)
    best = minimize(
        lambda t: objective(t[:9].reshape(3, 3), t[9:], X, y, lam, mu, weight),
        np.append(np.eye(3).ravel(), [0, 0, 0]),
        options={"gtol": 1e-9},
    )
    fitted = DirichletCalibration(off_diagonal=lam, intercept=mu).fit(X, y, weight)
    value = objective(fitted.coef_, fitted.intercept_, X, y, lam, mu, weight)
    assert value == pytest.approx(best.fun, abs=1e-9)
    np.testing.assert_allclose(fitted.coef_, best.x[:9].reshape(3, 3), atol=1e-4)
    np.testing.assert_allclose(fitted.intercept_, best.x[9:], atol=1e-4)


def test_toy_without_penalty():
    # methods.md 3: total NLL 11.847236913, row 0 (.815362, .169759, .014878).
    fitted = DirichletCalibration(off_diagonal=0.0, intercept=0.0).fit(TOY_X, TOY_Y)
    answer = fitted.predict_proba(TOY_X)
    assert -np.log(answer[np.arange(16), TOY_Y]).sum() == pytest.approx(11.847236913, abs=1e-8)
    np.testing.assert_allclose(answer[0], [0.815362, 0.169759, 0.014878], atol=1e-5)


def test_toy_with_a_small_penalty():
    # methods.md 3, ODIR lambda = mu = .01, tolerance 1e-5.
    fitted = DirichletCalibration(off_diagonal=0.01, intercept=0.01).fit(TOY_X, TOY_Y)
    expected = [
        [1.247874, -0.294514, 0.176125],
        [0.216865, 1.265404, -0.176125],
        [-0.216865, 0.294514, 1.645783],
    ]
    np.testing.assert_allclose(fitted.coef_, expected, atol=1e-5)
    np.testing.assert_allclose(fitted.intercept_, [0.017774, -0.297707, 0.279933], atol=1e-5)
    value = objective(fitted.coef_, fitted.intercept_, TOY_X, TOY_Y, 0.01, 0.01)
    assert value == pytest.approx(0.743418551, abs=1e-9)


def test_toy_with_a_large_penalty():
    # methods.md 3, ODIR lambda = mu = 1.
    fitted = DirichletCalibration(off_diagonal=1.0, intercept=1.0).fit(TOY_X, TOY_Y)
    np.testing.assert_allclose(np.diag(fitted.coef_), [1.168256, 1.549662, 1.502789], atol=1e-5)
    value = objective(fitted.coef_, fitted.intercept_, TOY_X, TOY_Y, 1.0, 1.0)
    assert value == pytest.approx(0.754065564, abs=1e-9)


def test_an_endless_penalty_leaves_vector_scaling():
    X, y = drawn(300, seed=3)
    stiff = DirichletCalibration(off_diagonal=1e6, intercept=0.0).fit(X, y)
    expected = VectorScaling(on="log_probs").fit(X, y).predict_proba(X)
    np.testing.assert_allclose(stiff.predict_proba(X), expected, atol=1e-5)


def test_log_probs_of_predictions_that_hold_logits():
    held = Predictions.from_arrays(logits=np.log(TOY_X) + np.arange(16.0)[:, None], y=TOY_Y)
    fitted, expected = (
        DirichletCalibration().fit(held, None),
        DirichletCalibration().fit(TOY_X, TOY_Y),
    )
    np.testing.assert_allclose(fitted.coef_, expected.coef_, atol=1e-9)
    np.testing.assert_allclose(fitted.predict_proba(held), expected.predict_proba(TOY_X), atol=1e-9)


def test_searchable_with_grid_search():
    X, y = drawn(300, seed=4)
    search = GridSearchCV(
        DirichletCalibration(), {"off_diagonal": [1e-3, 1.0, 1e3]}, scoring="neg_log_loss", cv=3
    ).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert len(set(search.cv_results_["mean_test_score"])) == 3


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_more_penalty_means_smaller_off_diagonals_and_a_worse_fit(seed):
    X, y = drawn(200, seed)
    sizes, losses = [], []
    for lam in (0.001, 0.1, 10.0):
        fitted = DirichletCalibration(off_diagonal=lam).fit(X, y)
        off = fitted.coef_[~np.eye(3, dtype=bool)]
        sizes.append((off**2).sum())
        losses.append(objective(fitted.coef_, fitted.intercept_, X, y, 0.0, 0.01))
    assert sizes[0] >= sizes[1] >= sizes[2]
    assert losses[0] <= losses[1] <= losses[2]


@pytest.mark.parametrize("promise", calibrator_checks.PROMISES)
@pytest.mark.filterwarnings("ignore::mcllo.exceptions.ZeroProbabilityWarning")
def test_contract(promise):
    promise(DirichletCalibration)


def test_saved_and_loaded(tmp_path, monkeypatch):
    calibrator_checks.json_round_trip_is_exact(
        DirichletCalibration, tmp_path / "d.json", monkeypatch
    )


def test_separated_rows_warn_with_the_remedy():
    X, _ = drawn(100, seed=5)
    with pytest.warns(SeparationWarning, match=r'MatrixScaling\(on="log_probs", penalty=1.0\)'):
        fitted = DirichletCalibration().fit(X, X.argmax(axis=1))
    assert np.isfinite(fitted.predict_proba(X)).all()


@pytest.mark.parametrize("name", ["off_diagonal", "intercept"])
def test_options_that_are_refused(name):
    with pytest.raises(InputError, match=f"{name} must be finite and not negative; got {name}=-1"):
        DirichletCalibration(**{name: -1.0}).fit(TOY_X, TOY_Y)
