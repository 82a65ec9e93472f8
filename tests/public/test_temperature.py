import numpy as np
import pytest
import sklearn.calibration
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo.calibrators import TemperatureScaling
from mcllo.exceptions import ConvergenceWarning, InputError, SeparationWarning


def sharpened(n, c, seed, power=1.5):
    rng = np.random.default_rng(seed)
    z = rng.normal(0.0, 2.0, (n, c))
    return softmax(power * z, axis=1), (z + rng.gumbel(size=z.shape)).argmax(axis=1)


def test_refit_on_recalibrated_rows_is_the_identity():
    X, y = sharpened(500, 3, seed=0)
    recalibrated = TemperatureScaling().fit(X, y).predict_proba(X)
    assert TemperatureScaling().fit(recalibrated, y).temperature_ == pytest.approx(1.0, abs=1e-9)


def test_hand_sized_example():
    # p = .8 came true 2 times of 3: u log 4 = log 2, u = 1/2; the row (.8, .2) becomes (2/3, 1/3).
    fitted = TemperatureScaling().fit([[0.8, 0.2]] * 3, [0, 0, 1])
    assert fitted.temperature_ == pytest.approx(2.0)
    np.testing.assert_allclose(fitted.predict_proba([[0.8, 0.2]]), [[2 / 3, 1 / 3]])


@pytest.mark.skipif(
    not hasattr(sklearn.calibration, "_TemperatureScaling"),
    reason="this scikit-learn has no temperature scaling",
)
@pytest.mark.parametrize(("n", "c"), [(200, 2), (1000, 3), (8000, 10)])
def test_against_scikit_learn(n, c):
    X, y = sharpened(n, c, seed=n)
    theirs = sklearn.calibration._TemperatureScaling().fit(X, y)
    ours = TemperatureScaling().fit(X, y)
    assert ours.inverse_temperature_ == pytest.approx(theirs.beta_, abs=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict(X), atol=1e-6)


def test_toy():
    # methods.md 3, TOY: T = .72261424, mean NLL .768920625, row 0 (.803649, .141955, .054396).
    fitted = TemperatureScaling().fit(TOY_X, TOY_Y)
    answer = fitted.predict_proba(TOY_X)
    assert fitted.temperature_ == pytest.approx(0.72261424, abs=1e-7)
    assert -np.log(answer[np.arange(16), TOY_Y]).mean() == pytest.approx(0.768920625, abs=1e-9)
    np.testing.assert_allclose(answer[0], [0.803649, 0.141955, 0.054396], atol=1e-6)


def test_toy_with_shifted_logits():
    # methods.md 3: "unchanged when row i gets shift linspace(-3, 3, 16)[i]".
    logits = np.log(TOY_X) + np.linspace(-3, 3, 16)[:, None]
    fitted = TemperatureScaling(on="logits").fit(logits, TOY_Y)
    assert fitted.inverse_temperature_ == pytest.approx(1.38386423, abs=1e-7)
    expected = TemperatureScaling().fit(TOY_X, TOY_Y).predict_proba(TOY_X)
    np.testing.assert_allclose(fitted.predict_proba(logits), expected, atol=1e-12)


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


def test_every_row_right_warns_and_predicts():
    X, _ = sharpened(100, 3, seed=0)
    with pytest.warns(SeparationWarning, match=r"T goes to 0; .* bound 8.9e\+06 .*penalty=1.0"):
        fitted = TemperatureScaling().fit(X, X.argmax(axis=1))
    answer = fitted.predict_proba(X)
    assert np.isfinite(answer).all()
    np.testing.assert_array_equal(answer.argmax(axis=1), X.argmax(axis=1))


def test_worse_than_chance_warns_and_predicts_equal_probabilities():
    X, _ = sharpened(100, 3, seed=0)
    with pytest.warns(ConvergenceWarning, match="no positive temperature is best") as caught:
        fitted = TemperatureScaling().fit(X, X.argmin(axis=1))
    assert caught[0].filename == __file__
    np.testing.assert_allclose(fitted.predict_proba(X), 1 / 3, atol=1e-5)


def test_scores():
    assert (TemperatureScaling().input, TemperatureScaling(on="logits").input) == (
        "probs",
        "logits",
    )
    with pytest.raises(InputError, match="on must be one of 'log_probs', 'logits'; got on='odds'"):
        TemperatureScaling(on="odds").fit(TOY_X, TOY_Y)
