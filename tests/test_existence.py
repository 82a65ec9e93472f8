import numpy as np
import pytest
from independent import draw, simplex
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo import _existence as module
from mcllo._estimate import estimate
from mcllo._existence import existence
from mcllo._fit import fit_predictions
from mcllo._penalty import FreeLikelihood
from mcllo.exceptions import ConvergenceWarning, SeparationWarning

TOY = Predictions.from_arrays(TOY_X, TOY_Y)
PERFECT = Predictions.from_arrays(TOY_X, TOY_X.argmax(axis=1))
ABSENT = Predictions.from_arrays(TOY_X, np.where(TOY_Y == 2, 0, TOY_Y), classes=range(3))


def found(predictions, penalty=0.0):
    end = estimate(FreeLikelihood(predictions), predictions, penalty, "identity")
    return existence(end, predictions)


def test_it_exists():
    assert found(TOY) == module.Existence((), True, False)


@pytest.mark.parametrize("predictions", [PERFECT, ABSENT])
@pytest.mark.parametrize("penalty", [1.0, "firth"])
def test_a_penalty_makes_it_exist(predictions, penalty):
    assert found(predictions, penalty).determined


def test_causes():
    assert found(ABSENT) == module.Existence((2,), False, False)
    assert found(PERFECT).causes == (0, 1, 2)


def test_a_program_that_is_too_large_decides_nothing(monkeypatch):
    monkeypatch.setattr(module, "MOST_CONSTRAINTS", 2.0 * 2 * 2 * 16 - 1.0)  # K = 2, n = 16
    assert found(PERFECT) == module.Existence((), False, True)
    with pytest.warns(ConvergenceWarning, match="Whether a maximum exists was not decided"):
        fit = fit_predictions(PERFECT)
    assert not fit.converged
    assert not fit.separated
    assert np.isnan(fit.se_tau).all()


def test_one_of_many_that_its_own_log_odds_drive_apart():
    rng = np.random.default_rng(0)
    probs = simplex(rng, 1500, 122, 0.5)
    codes = draw(probs, rng)
    logits, own = np.log(probs), codes == 3
    logits[own, 3] = logits[own, -1] + (logits[:, 3] - logits[:, -1]).max() + 0.1
    predictions = Predictions.from_arrays(y=codes, logits=logits, classes=range(122))
    assert found(predictions).causes == (3,)


def test_what_is_said():
    with pytest.warns(SeparationWarning, match=r"no row has class 2\)"):
        fit_predictions(ABSENT)
    with pytest.warns(SeparationWarning, match=r"separate the labels: class 0, 1, 2\)"):
        fit_predictions(PERFECT)
