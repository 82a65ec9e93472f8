import numpy as np
import pytest
from independent import direct_nll, log_odds_of
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._fit.estimate import (
    COLLAPSED,
    FLAT,
    covariance,
    estimate,
    information_left,
    objective_of,
)
from mcllo._fit.objective import FreeLikelihood
from mcllo._fit.penalty import FirthObjective, Ridge

TOY = Predictions.from_arrays(TOY_X, TOY_Y)
PERFECT = Predictions.from_arrays(TOY_X, TOY_X.argmax(axis=1))


def end_of(predictions, penalty=0.0, center="identity"):
    return estimate(FreeLikelihood.of(predictions), predictions, penalty, center)


def left(predictions, penalty=0.0):
    return information_left(end_of(predictions, penalty), FreeLikelihood.of(predictions))


@pytest.mark.parametrize("penalty", [0.0, 1.0, "auto", "firth"])
def test_values_are_without_penalty(penalty):
    end = end_of(TOY, penalty)
    value = direct_nll(end.solution.x, log_odds_of(TOY_X), TOY_Y)
    assert end.value == pytest.approx(value, abs=1e-9)
    # methods specification 0.4, TOY: negative log likelihood and its gradient at the identity
    assert end.null.value == pytest.approx(12.6033816017, rel=1e-10)
    np.testing.assert_allclose(end.null.gradient, [-0.8, 0.8, -0.77466884, -0.89888965], atol=1e-8)


def test_what_was_asked_is_kept():
    assert end_of(TOY, 0.5).penalty == 0.5
    assert end_of(TOY, "auto").rule == "auto"
    assert end_of(TOY, "firth").rule == "firth"
    tempered = end_of(TOY, 0.5, "temperature")
    assert tempered.center == "temperature"
    assert tempered.center_gamma == pytest.approx(1.38386, abs=1e-5)


def test_information_vanishes_where_there_is_no_maximum():
    assert left(PERFECT) < FLAT
    assert 0.1 < left(TOY) < 1.0
    assert COLLAPSED > FLAT


def test_information_left_by_hand():
    # constant log odds 0: tau alone, H = n g (1 - g); at the identity g = 1/2, at the estimate 1/5
    predictions = Predictions.from_arrays(np.full((5, 2), 0.5), [0, 1, 1, 1, 1])
    assert left(predictions) == pytest.approx((0.2 * 0.8) / 0.25, rel=1e-6)


@pytest.mark.parametrize("penalty", [1.0, "firth"])
def test_a_penalty_leaves_information(penalty):
    assert left(PERFECT, penalty) == 1.0


@pytest.mark.parametrize("penalty", [0.0, 2.0, "firth"])
def test_the_objective_is_stationary_at_the_estimate(penalty):
    likelihood, end = FreeLikelihood.of(TOY), end_of(TOY, penalty)
    objective = objective_of(likelihood, TOY, end.penalty, end.rule, end.center_gamma)
    kinds = {0.0: FreeLikelihood, 2.0: Ridge, "firth": FirthObjective}
    assert isinstance(objective, kinds[penalty])
    np.testing.assert_allclose(objective(end.solution.x).gradient, 0.0, atol=1e-5)


def test_a_diagonal_by_hand():
    free = np.array([True, True])
    np.testing.assert_array_equal(covariance(np.diag([4.0, 2.0]), free, True), np.diag([0.25, 0.5]))


def test_fixed_parameters_have_none():
    free = np.array([True, False, True])
    found = covariance(np.diag([4.0, 2.0]), free, True)
    assert np.isnan(found[1]).all()
    assert np.isnan(found[:, 1]).all()
    np.testing.assert_array_equal(found[np.ix_(free, free)], np.diag([0.25, 0.5]))


def test_what_is_not_determined_has_none():
    assert np.isnan(covariance(np.eye(2), np.ones(2, dtype=bool), False)).all()
