import numpy as np
import pytest
from hypothesis import given, settings
from independent import designs, direct_nll, draw, log_odds_of, simplex
from scipy.optimize import minimize
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._batch import BatchedRatio
from mcllo._fit import fit_predictions
from mcllo._ladder_models import mcllo_bases
from mcllo._monte_carlo import StatisticDraws
from mcllo._restriction import Family, RestrictedRatio, ratio_to_identity, restricted_fit

TOY = Predictions.from_arrays(TOY_X, TOY_Y)
BASES = mcllo_bases(2)


def test_no_freedom_is_the_identity():
    fit = restricted_fit(Family(TOY), BASES["identity"])
    assert fit.df == 0
    assert fit.theta.tolist() == [0.0, 0.0, 1.0, 1.0]
    # methods specification 0.4, TOY: NLL(theta0)
    assert fit.log_likelihood == pytest.approx(-12.6033816017, abs=1e-9)


def test_a_shift_by_hand():
    # four rows at (1/2, 1/2), three of class 0: odds 3, so tau = log 3
    p = Predictions.from_arrays([[0.5, 0.5]] * 4, [0, 0, 0, 1])
    fit = restricted_fit(Family(p), mcllo_bases(1)["shift"])
    assert fit.theta[0] == pytest.approx(np.log(3.0), abs=1e-8)
    assert fit.log_likelihood == pytest.approx(3 * np.log(0.75) + np.log(0.25), abs=1e-10)


@pytest.mark.parametrize("model", ["temperature", "shift", "scale", "common_slope", "mcllo"])
def test_restricted_fits_against_scipy(model):
    basis, identity = BASES[model], np.array([0.0, 0.0, 1.0, 1.0])
    odds = log_odds_of(TOY_X)
    other = minimize(
        lambda beta: direct_nll(identity + basis @ beta, odds, TOY_Y),
        np.zeros(basis.shape[1]),
        method="BFGS",
        options={"gtol": 1e-8},
    )
    fit = restricted_fit(Family(TOY), basis)
    assert fit.log_likelihood == pytest.approx(-other.fun, abs=1e-9)
    np.testing.assert_allclose(fit.theta, identity + basis @ other.x, atol=1e-5)
    assert fit.settled


def test_the_start_does_not_matter():
    family, basis = Family(TOY), BASES["common_slope"]
    plain = restricted_fit(family, basis)
    moved = restricted_fit(family, basis, family.identity + basis @ [1.0, -1.0, 0.5])
    np.testing.assert_allclose(moved.theta, plain.theta, atol=1e-7)


def test_separated_rows_are_not_settled():
    fit = restricted_fit(
        Family(Predictions.from_arrays(TOY_X, TOY_X.argmax(axis=1))), BASES["mcllo"]
    )
    assert not fit.settled
    assert fit.log_likelihood > -1e-6


def test_constant_log_odds_leave_one_parameter_less():
    middle = np.linspace(0.1, 0.5, 12)  # class 0 has the baseline's probability in every row
    probs = np.column_stack([np.full(12, 0.2), middle, 0.6 - middle, np.full(12, 0.2)])
    p = Predictions.from_arrays(probs, [0, 2, 1, 3, 2, 1, 0, 1, 2, 3, 1, 2])
    family = Family(p)
    bases = mcllo_bases(3)
    assert family.identified(bases["mcllo"]).shape[1] == fit_predictions(p).df == 5
    assert family.identified(bases["scale"]).shape[1] == 2
    assert family.identified(bases["shift"]).shape[1] == 3
    fit = restricted_fit(family, family.identified(bases["mcllo"]))
    assert fit.log_likelihood == pytest.approx(fit_predictions(p).log_likelihood, abs=1e-7)


@pytest.mark.parametrize("model", ["temperature", "shift", "scale", "common_slope", "mcllo"])
def test_batched_gains_are_those_of_single_fits(model):
    rng = np.random.default_rng(2)
    probs = simplex(rng, 60, 3)
    p = Predictions.from_arrays(probs, draw(probs, rng), classes=[0, 1, 2])
    family, drawn = Family(p), StatisticDraws(p, 3)(0, 6)
    basis = BASES[model]
    origin = family.identity + 0.2 * basis.sum(axis=1)
    found = RestrictedRatio(family, basis, origin).statistics(drawn)
    at_origin = family.partition()(origin).value
    for s, gained in zip(drawn, found, strict=True):
        family.statistic = s
        best = restricted_fit(family, basis).log_likelihood
        assert gained == pytest.approx(2.0 * (best - origin @ s + at_origin), abs=1e-6)


def test_the_full_map_in_batches():
    family = Family(TOY, full=True)
    ratio = RestrictedRatio(family, np.eye(6), family.identity)
    # methods specification 8f, TOY: full multinomial logit
    assert ratio.statistics(family.statistic[None])[0] == pytest.approx(1.410980507, abs=1e-7)


def test_ratio_to_identity_takes_the_quick_way_where_it_can():
    family = Family(TOY)
    drawn = StatisticDraws(TOY, 0)(0, 40)
    for model in ("temperature", "shift", "scale", "common_slope", "mcllo"):
        quick = ratio_to_identity(family, BASES[model])
        slow = RestrictedRatio(family, BASES[model], family.identity)
        assert (type(quick) is BatchedRatio) == (model in ("shift", "scale", "mcllo"))
        found = quick.statistics(drawn)
        np.testing.assert_allclose(found, slow.statistics(drawn), atol=1e-5)
        limit = float(np.median(found))
        assert (quick.reaches(drawn, limit) == slow.reaches(drawn, limit)).all()


@settings(deadline=None, max_examples=25)
@given(designs(min_rows=15))
def test_larger_models_fit_better(design):
    probs, codes = design
    p = Predictions.from_arrays(probs, codes, classes=list(range(probs.shape[1])))
    family, bases = Family(p), mcllo_bases(probs.shape[1] - 1)
    reached = {
        m: restricted_fit(family, family.identified(b)).log_likelihood for m, b in bases.items()
    }
    for small, large in [
        ("identity", "temperature"),
        ("identity", "shift"),
        ("temperature", "scale"),
        ("temperature", "common_slope"),
        ("shift", "common_slope"),
        ("scale", "mcllo"),
        ("common_slope", "mcllo"),
    ]:
        assert reached[small] <= reached[large] + 1e-6
