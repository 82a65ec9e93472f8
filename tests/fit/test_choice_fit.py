"""The map of choice sets: the specification's vector, derivatives, and the ordinary path."""

import numpy as np
import pytest
from choice_data import simulate, vector
from scipy.optimize import approx_fprime
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._fit.choice_fit import choice_basis, fit_choice_sets
from mcllo._fit.objective import build_negative_log_likelihood
from mcllo._inference.likelihood_tests import run_test
from mcllo._model.likelihood import identity_theta
from mcllo.exceptions import InputError


def test_vector_of_the_specification():
    # methods specification, section 9a, computed by independent code; six decimals are given
    predictions = vector()
    fit = fit_choice_sets(predictions)
    assert fit.tau == pytest.approx([0.0, 0.356388, 0.986331, 1.295196], abs=1e-6)
    assert fit.gamma == pytest.approx(1.264001, abs=1e-6)
    assert fit.log_likelihood == pytest.approx(-10.551824, abs=1e-6)
    assert fit.log_likelihood_null == pytest.approx(-11.109543, abs=1e-6)
    test = run_test(predictions, fit, method="chi2")
    assert test.statistic == pytest.approx(1.115436, abs=1e-6)
    assert (test.df, test.method) == (4, "chi2")
    assert test.pvalue == pytest.approx(0.891815, abs=1e-6)
    recalibrated = fit.apply(predictions.logits, predictions.offered)
    expected = [
        [0.656898, 0.192563, 0.150540, 0.0],
        [0.538951, 0.461049, 0.0, 0.0],
        [0.042699, 0.844702, 0.047673, 0.064925],
    ]
    assert recalibrated[[0, 3, 4]] == pytest.approx(np.array(expected), abs=1e-6)


def test_likelihood_by_hand():
    # two rows at delta = (1, 2, .), gamma = 2: (.36, 2 * .16) -> g = .36 / .68;
    # (.25, 2 * .0625, .0625 * 1) -> g of B = .125 / .4375
    predictions = Predictions.from_choices(
        [[0.6, 0.4], [0.5, 0.25, 0.25]], [0, 1], kind="probs"
    )
    likelihood = build_negative_log_likelihood(predictions)
    theta = np.array([0.0, np.log(2.0), 0.0, 2.0, 2.0, 2.0])
    expected = -np.log(0.36 / 0.68) - np.log(0.125 / 0.4375)
    assert likelihood(theta).value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("gamma", [-0.5, 0.0, 0.7, 3.0])
def test_derivatives_match_finite_differences(gamma):
    likelihood = build_negative_log_likelihood(simulate(60, 6, seed=3))
    theta = np.concatenate([np.linspace(-0.5, 0.5, 6), np.full(6, gamma)])
    found = likelihood(theta)
    numeric = approx_fprime(theta, lambda t: likelihood(t).value, 1e-7)
    assert found.gradient == pytest.approx(numeric, abs=1e-4)
    curvature = approx_fprime(theta, lambda t: likelihood(t).gradient, 1e-7)
    assert found.hessian == pytest.approx(curvature, abs=1e-3)


def test_all_options_offered_is_the_nested_model_of_one_slope_and_shifts():
    # methods specification, section 8f: common gamma, free delta, of the TOY data
    fit = fit_choice_sets(Predictions.from_choices(TOY_X, TOY_Y, kind="probs"))
    assert -fit.log_likelihood == pytest.approx(12.138374571, abs=1e-8)
    assert fit.statistic == pytest.approx(0.930014060, abs=1e-8)
    assert fit.df == 3


@pytest.mark.parametrize(
    ("terms", "nll", "df"), [("slope", 12.302730003, 1), ("positions", 12.460926236, 2)]
)
def test_parts_are_temperature_and_shifts(terms, nll, df):
    # section 8f: temperature, and shift
    predictions = Predictions.from_choices(TOY_X, TOY_Y, kind="probs")
    fit = fit_choice_sets(predictions, terms=terms)
    assert -fit.log_likelihood == pytest.approx(nll, abs=1e-8)
    assert fit.df == df


def test_order_of_positions_changes_no_number():
    predictions = simulate(400, 4, 0.7, [0.0, 0.4, -0.2, 0.3], seed=2)
    table = np.where(predictions.offered, predictions.probs, np.nan)
    turned = Predictions.from_choices(
        table[:, ::-1],
        3 - predictions.codes,
        kind="probs",
        positions=["D", "C", "B", "A"],
    )
    fit = fit_choice_sets(predictions)
    other = fit_choice_sets(turned)
    assert other.gamma == pytest.approx(fit.gamma, abs=1e-8)
    assert other.statistic == pytest.approx(fit.statistic, abs=1e-8)
    shifts = other.tau[::-1] - other.tau[::-1][0]
    assert shifts == pytest.approx(fit.tau - fit.tau[0], abs=1e-7)


def test_recovers_shifts_and_slope():
    tau = [0.0, 0.4, -0.3, 0.2, -0.1]
    fit = fit_choice_sets(simulate(20_000, 5, 0.6, tau, seed=4))
    assert fit.converged
    # within 3.5 standard errors: of six numbers one is outside with a chance of .3 %
    assert np.all(np.abs(fit.tau - tau)[1:] < 3.5 * fit.se_tau[1:])
    assert abs(fit.gamma - 0.6) < 3.5 * fit.se_gamma
    assert fit.se_gamma < 0.02


def test_refit_of_recalibrated_rows_changes_nothing():
    predictions = simulate(500, 4, 0.6, [0.0, 0.5, 0.2, -0.4], seed=5)
    fit = fit_choice_sets(predictions)
    g = fit.apply(predictions.logits, predictions.offered)
    table = np.where(predictions.offered, g, np.nan)
    again = fit_choice_sets(
        Predictions.from_choices(table, predictions.codes, kind="probs")
    )
    assert again.statistic == pytest.approx(0.0, abs=1e-8)
    assert again.theta == pytest.approx(identity_theta(4), abs=1e-5)


def test_position_that_is_never_right_loses_all():
    predictions = simulate(300, 3, seed=6)
    rows = predictions.take(predictions.codes < 2)
    fit = fit_choice_sets(rows)
    assert fit.converged
    assert fit.never_right == ("C",)
    assert fit.delta[2] < 1e-15
    assert np.isnan(fit.se_tau[2])
    assert fit.df == 3  # it counts: the test could have found its shift
    # the supremum is the likelihood of the rows without that option
    kept = np.where(rows.offered[:, :2], rows.probs[:, :2], 0.0)
    kept /= kept.sum(axis=1, keepdims=True)
    own = fit_choice_sets(Predictions.from_choices(kept, rows.codes, kind="probs"))
    assert fit.log_likelihood == pytest.approx(own.log_likelihood, abs=1e-9)
    assert fit.gamma == pytest.approx(own.gamma, abs=1e-9)
    assert fit.se_gamma == pytest.approx(own.se_gamma, abs=1e-9)
    # towards it the likelihood rises: the search would never end
    likelihood = build_negative_log_likelihood(rows)
    values = []
    for tau in (-2.0, -5.0, -10.0):
        theta = fit.theta
        theta[2] = tau
        values.append(likelihood(theta).value)
    assert values == sorted(values, reverse=True)
    assert values[-1] > -fit.log_likelihood


def test_reference_is_a_position_that_is_right():
    predictions = simulate(300, 3, seed=6)
    rows = predictions.take(predictions.codes > 0)
    assert rows.baseline == "A"
    fit = fit_choice_sets(rows)
    assert fit.reference == "B"
    assert fit.delta[0] < 1e-15
    assert fit.converged


def test_ridge_leaves_the_probability_of_a_few_rows():
    predictions = simulate(300, 3, seed=6)
    rows = predictions.take(predictions.codes < 2)
    ridge = fit_choice_sets(rows, penalty=1.0)
    assert ridge.converged
    # where the gradient is 0, what is left on C is the pull of the ridge: sum g_iC = -1.0 tau_C
    g = ridge.apply(rows.logits, rows.offered)
    assert g[:, 2].sum() == pytest.approx(-ridge.tau[2], abs=1e-4)
    assert g[:, 2].sum() < 0.2 * rows.probs[:, 2].sum()


def test_option_that_is_always_right_is_not_determined():
    fit = fit_choice_sets(
        Predictions.from_choices(
            [[0.5, 0.3, 0.2], [0.4, 0.6]] * 10, [2, 0, 2, 1] * 5, kind="probs"
        )
    )
    assert not fit.converged


def test_basis_leaves_out_what_no_row_tells():
    predictions = Predictions.from_choices(
        [[0.5, 0.5], [0.25] * 4], [0, 2], kind="probs"
    )
    assert choice_basis(predictions).shape == (8, 3)  # three shifts and no slope
    assert choice_basis(predictions.take([0])).shape == (8, 1)


def test_unknown_terms_and_penalty():
    with pytest.raises(InputError, match="terms must be"):
        fit_choice_sets(vector(), terms="letters")
    with pytest.raises(InputError, match="penalty must be a number >= 0"):
        fit_choice_sets(vector(), penalty=-1.0)
