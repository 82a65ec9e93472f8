"""Restricted fits of MCLLO and of the full map, against SciPy, direct sums and each other."""

import numpy as np
import pytest
from hypothesis import given, settings
from independent import (
    central_differences,
    designs,
    direct_nll,
    log_odds_of,
    sample,
    simplex,
)
from scipy.optimize import minimize
from scipy.special import logsumexp
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._diagnostics.nested_models import free_directions_by_model
from mcllo._diagnostics.restricted_models import (
    Family,
    FullMapLogPartition,
    FullMapStatisticDraws,
    design_matrix,
    full_map_identity,
    full_map_sufficient_statistic,
    likelihood_ratio,
    mcllo_positions_in_full_map,
    restricted_fit,
)
from mcllo._fit.fit import fit_predictions
from mcllo._inference.monte_carlo import SufficientStatisticDraws, draw_labels
from mcllo._model.kernel import LogPartition
from mcllo._model.likelihood import sufficient_statistic

TOY = Predictions.from_arrays(TOY_X, TOY_Y)
BASES = free_directions_by_model(2)


def test_no_freedom_is_the_identity():
    fit = restricted_fit(Family(TOY), BASES["identity"])
    assert fit.df == 0
    assert fit.theta.tolist() == [0.0, 0.0, 1.0, 1.0]
    # methods specification 0.4, TOY: NLL(theta0)
    assert fit.log_likelihood == pytest.approx(-12.6033816017, abs=1e-9)


def test_a_shift_by_hand():
    # four rows at (1/2, 1/2), three of class 0: odds 3, so tau = log 3
    p = Predictions.from_arrays([[0.5, 0.5]] * 4, [0, 0, 0, 1])
    fit = restricted_fit(Family(p), free_directions_by_model(1)["shift"])
    assert fit.theta[0] == pytest.approx(np.log(3.0), abs=1e-8)
    assert fit.log_likelihood == pytest.approx(
        3 * np.log(0.75) + np.log(0.25), abs=1e-10
    )


def test_separated_rows_are_not_settled():
    fit = restricted_fit(
        Family(Predictions.from_arrays(TOY_X, TOY_X.argmax(axis=1))), BASES["mcllo"]
    )
    assert not fit.settled
    assert fit.log_likelihood > -1e-6


def test_constant_log_odds_leave_one_parameter_less():
    middle = np.linspace(
        0.1, 0.5, 12
    )  # class 0 has the baseline's probability in every row
    probs = np.column_stack([np.full(12, 0.2), middle, 0.6 - middle, np.full(12, 0.2)])
    p = Predictions.from_arrays(probs, [0, 2, 1, 3, 2, 1, 0, 1, 2, 3, 1, 2])
    family = Family(p)
    bases = free_directions_by_model(3)
    assert (
        family.identified_directions(bases["mcllo"]).shape[1]
        == fit_predictions(p).df
        == 5
    )
    assert family.identified_directions(bases["scale"]).shape[1] == 2
    assert family.identified_directions(bases["shift"]).shape[1] == 3
    fit = restricted_fit(family, family.identified_directions(bases["mcllo"]))
    assert fit.log_likelihood == pytest.approx(
        fit_predictions(p).log_likelihood, abs=1e-7
    )


@pytest.mark.parametrize(
    "model", ["temperature", "mcllo"]
)  # the smallest and the largest
def test_batched_gains_are_those_of_single_fits(model):
    probs, y = sample(60, 3, 2)
    p = Predictions.from_arrays(probs, y, classes=[0, 1, 2])
    family, drawn = Family(p), SufficientStatisticDraws(p, 3)(0, 6)
    basis = BASES[model]
    origin = family.identity + 0.2 * basis.sum(axis=1)
    found = likelihood_ratio(family, basis, origin).statistics(drawn)
    at_origin = family.partition()(origin).value
    for s, gained in zip(drawn, found, strict=True):
        family.statistic = s
        best = restricted_fit(family, basis).log_likelihood
        assert gained == pytest.approx(2.0 * (best - origin @ s + at_origin), abs=1e-6)


def test_the_full_map_in_batches():
    family = Family(TOY, full=True)
    ratio = likelihood_ratio(family, np.eye(6), family.identity)
    # methods specification 8f, TOY: full multinomial logit
    assert ratio.statistics(family.statistic[None])[0] == pytest.approx(
        1.410980507, abs=1e-7
    )


@settings(deadline=None, max_examples=25)
@given(designs(min_rows=15))
def test_larger_models_fit_better(design):
    probs, codes = design
    p = Predictions.from_arrays(probs, codes, classes=list(range(probs.shape[1])))
    family, bases = Family(p), free_directions_by_model(probs.shape[1] - 1)
    reached = {
        m: restricted_fit(family, family.identified_directions(b)).log_likelihood
        for m, b in bases.items()
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


def test_the_identity_gives_back_the_rows():
    # A(theta0) = sum_i log(1 + sum_j x_ij / x_ic) = -sum_i log x_ic
    value = FullMapLogPartition(design_matrix(log_odds_of(TOY_X)))(
        full_map_identity(2)
    ).value
    assert value == pytest.approx(-np.log(TOY_X[:, -1]).sum(), abs=1e-12)


def test_statistic_by_hand():
    # labels 0, 1, 2 (baseline), 0; features (1, l1, l2)
    odds = np.array([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    found = full_map_sufficient_statistic(
        design_matrix(odds), np.array([0, 1, 2, 0]), None
    )
    assert found.tolist() == [2.0, 5.0, 13.0, 1.0, 2.0, 6.0]
    twice = full_map_sufficient_statistic(
        design_matrix(odds), np.array([0, 1, 2, 0]), np.array([1.0, 2.0, 1.0, 0.0])
    )
    assert twice.tolist() == [1.0, 1.0, 5.0, 2.0, 4.0, 12.0]


def test_value_and_derivatives_against_a_direct_sum():
    rng = np.random.default_rng(0)
    x, weight = (
        design_matrix(log_odds_of(simplex(rng, 30, 4))),
        rng.uniform(0.5, 2.0, 30),
    )
    partition = FullMapLogPartition(x, weight)

    def direct(theta):
        eta = np.vstack([theta.reshape(3, 4) @ x, np.zeros(30)])
        return float(logsumexp(eta, axis=0) @ weight)

    theta = full_map_identity(3) + rng.normal(scale=0.3, size=12)
    terms = partition(theta)
    assert terms.value == pytest.approx(direct(theta), rel=1e-12)
    np.testing.assert_allclose(
        terms.gradient, central_differences(direct, theta), atol=1e-6
    )
    slopes = central_differences(lambda t: partition(t).gradient, theta)
    np.testing.assert_allclose(terms.hessian, slopes, atol=1e-6)


def test_chunks_do_not_matter():
    # more rows than one chunk of the full map holds, against the sum of two halves
    x = design_matrix(log_odds_of(simplex(np.random.default_rng(1), 40_000, 3)))
    whole, partition = FullMapLogPartition(x), FullMapLogPartition(x[:, :9000])
    assert whole._rows < 40_000
    first, second = (
        partition(full_map_identity(2)),
        FullMapLogPartition(x[:, 9000:])(full_map_identity(2)),
    )
    found = whole(full_map_identity(2))
    assert found.value == pytest.approx(first.value + second.value, rel=1e-12)
    np.testing.assert_allclose(
        found.hessian, first.hessian + second.hessian, rtol=1e-10
    )


@settings(deadline=None, max_examples=30)
@given(designs(min_rows=5))
def test_a_diagonal_map_is_mcllo(design):
    probs, codes = design
    odds, k = log_odds_of(probs), probs.shape[1] - 1
    theta, places = np.linspace(-0.5, 1.5, 2 * k), mcllo_positions_in_full_map(k)
    whole = np.zeros(k * (k + 1))
    whole[places] = theta
    ours, theirs = (
        FullMapLogPartition(design_matrix(odds))(whole),
        LogPartition(odds)(theta),
    )
    assert ours.value == pytest.approx(theirs.value, rel=1e-10)
    np.testing.assert_allclose(
        ours.gradient[places], theirs.gradient, rtol=1e-8, atol=1e-10
    )
    statistic = full_map_sufficient_statistic(design_matrix(odds), codes, None)[places]
    np.testing.assert_allclose(statistic, sufficient_statistic(odds, codes), atol=1e-10)


@pytest.mark.parametrize("baseline", [0, 2])
def test_draws_are_the_statistics_of_drawn_labels(baseline):
    p = Predictions.from_arrays(TOY_X, TOY_Y, baseline=baseline)
    labels = draw_labels(p.probs, 5, 2, 3)
    found = FullMapStatisticDraws(p, 5)(2, 3)
    for drawn, row in zip(labels, found, strict=True):
        again = Predictions.from_arrays(
            TOY_X, drawn, classes=[0, 1, 2], baseline=baseline
        )
        expected = full_map_sufficient_statistic(
            design_matrix(p.log_odds), again.model_codes, None
        )
        np.testing.assert_allclose(row, expected, atol=1e-12)


@pytest.mark.parametrize(
    "model", ["temperature", "shift", "scale", "common_slope", "mcllo"]
)
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
