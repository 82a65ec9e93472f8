import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import designs, draw, simplex
from inputs import refusal
from scipy.stats import chi2
from shared_data import load_cifar10_vgg16_keras, load_hockey
from toy import TOY_X, TOY_Y

from mcllo import Predictions, calibration_posterior, ladder
from mcllo._fit.fit import fit_predictions
from mcllo._inference.posterior import (
    bic_warning,
    format_posterior,
    log_bayes_factor,
    posterior_probability,
)
from mcllo.exceptions import SeparationWarning


def test_no_evidence_leaves_the_prior():
    # lambda = d ln n is where the two BIC are equal
    assert log_bayes_factor(4 * math.log(100), 4, 100) == pytest.approx(0.0, abs=1e-12)
    assert posterior_probability(0.0, 0.3) == pytest.approx(0.3)


def test_a_fit_to_its_own_rows_has_only_the_charge():
    # recalibrated by their own estimate, rows have lambda 0: P = n^(d/2) / (1 + n^(d/2))
    fit = fit_predictions(Predictions.from_arrays(TOY_X, TOY_Y))
    found = calibration_posterior(fit.recalibrate(TOY_X), TOY_Y)
    assert found.statistic == pytest.approx(0.0, abs=1e-8)
    assert found.posterior == pytest.approx(256 / 257)


def test_by_hand():
    # BF = 3 against calibration, prior odds 4 : 1 for it, so odds 4 : 3
    assert posterior_probability(math.log(3.0), 0.8) == pytest.approx(4 / 7)


def test_toy():
    # methods specification 0.4 and 6: NLL 12.6033816017 and 12.0302758915, n = 16, d = 4
    found = calibration_posterior(TOY_X, TOY_Y)
    assert found.posterior == pytest.approx(0.99311890, abs=5e-9)
    assert found.bic_calibrated == pytest.approx(2 * 12.6033816017, abs=1e-8)
    assert found.bic_uncalibrated == pytest.approx(4 * math.log(16) + 2 * 12.0302758915, abs=1e-8)
    assert 2 * found.log_bayes_factor == pytest.approx(
        found.bic_calibrated - found.bic_uncalibrated, abs=1e-10
    )
    assert (found.df, found.n_samples, found.total_weight) == (4, 16, 16.0)
    assert found.pvalue == pytest.approx(0.88687265, abs=1e-8)
    assert found.warning == ""


def test_bic_is_the_ladders():
    found, rungs = calibration_posterior(TOY_X, TOY_Y), ladder(TOY_X, TOY_Y, method="chi2")
    assert found.bic_uncalibrated == pytest.approx(rungs.row("mcllo").bic, abs=1e-9)
    assert found.bic_calibrated == pytest.approx(rungs.row("identity").bic, abs=1e-9)


def test_hockey_is_brcals():
    # methods specification 0.4; BRcal's own unit test lists 0.9903632 from its Nelder-Mead fit
    found = calibration_posterior(load_hockey())
    assert found.posterior == pytest.approx(0.99036314, abs=5e-9)
    assert found.posterior == pytest.approx(0.9903632, abs=1e-6)
    assert found.bic_calibrated == pytest.approx(1148.63655715, abs=1e-7)
    assert found.bic_uncalibrated == pytest.approx(1157.90150993, abs=1e-7)
    assert found.warning == ""


@pytest.mark.parametrize(
    ("statistic", "df", "n", "expected", "digits"),
    [
        # methods specification 6: the paper's hold-out sets, CIFAR-10 with lambda 123 and obesity
        # (7 classes, 132 rows) with p = .014
        (123.0, 18, 2000, 0.9990, 5e-5),
        (chi2.isf(0.014, 12), 12, 132, 0.99999994, 5e-9),
    ],
)
def test_the_papers_rejections_have_a_posterior_near_one(statistic, df, n, expected, digits):
    found = posterior_probability(log_bayes_factor(statistic, df, n), 0.5)
    assert found == pytest.approx(expected, abs=digits)
    text = bic_warning(found, chi2.sf(statistic, df), df, n)
    assert f"BIC charges d ln n = {df * math.log(n):.3g} for d = {df} parameters" in text
    assert "favours calibration although the test rejects it (p" in text
    assert text.endswith("it is no evidence of calibration by itself.")


def test_the_warning_is_there_for_many_parameters_and_for_contradictions():
    assert bic_warning(0.9, 0.5, 4, 100) == ""
    assert "can favour calibration" in bic_warning(0.9, 0.5, 6, 100)
    assert "can favour calibration" in bic_warning(0.1, 0.001, 6, 100)
    assert "so favours calibration although" in bic_warning(0.9, 0.04, 2, 100)
    assert bic_warning(0.4, 0.04, 2, 100) == ""


def test_it_is_printed():
    found = calibration_posterior(load_cifar10_vgg16_keras().take(range(2000)))
    first, note = str(found).split("\n")
    assert first.startswith("posterior probability of calibration ")
    assert "(prior 0.5, BIC, n = 2,000); statistic " in first
    assert f"on 18 df, p = {found.pvalue:.1e} (chi-square)" in first
    assert note == f"Note: {found.warning}"
    assert "d = 18 parameters" in note
    assert "\n" not in str(calibration_posterior(TOY_X, TOY_Y))


def test_digits_that_tell_it_from_one():
    shown = {0.5: "0.50", 0.95: "0.95", 0.9931189: "0.993", 0.99909: "0.9991", 1e-30: "1e-30"}
    assert {value: format_posterior(value) for value in shown} == shown
    assert format_posterior(1.0 - 2e-7) == "1 - 2e-07"


def test_weights_are_counts():
    # BIC's n is the sum of the weights: doubling is the same as writing every row twice
    twice = calibration_posterior(np.repeat(TOY_X, 2, axis=0), np.repeat(TOY_Y, 2))
    found = calibration_posterior(TOY_X, TOY_Y, sample_weight=np.full(16, 2))
    assert found.posterior == pytest.approx(twice.posterior, rel=1e-9)
    assert found.bic_uncalibrated == pytest.approx(twice.bic_uncalibrated, rel=1e-9)
    assert (found.n_samples, found.total_weight) == (16, 32.0)


def test_the_baseline_is_the_fits():
    # methods specification 0.4: lambda 1.1250835514 with baseline 0
    found = calibration_posterior(TOY_X, TOY_Y, baseline=0)
    assert found.statistic == pytest.approx(1.1250835514, abs=1e-8)
    assert found.posterior != calibration_posterior(TOY_X, TOY_Y).posterior


def test_separated_labels_are_warned_of():
    with pytest.warns(SeparationWarning, match="does not exist"):
        found = calibration_posterior(TOY_X, TOY_X.argmax(axis=1))
    assert 0.0 < found.posterior < 1.0


def test_to_dict_is_strict_json():
    found = calibration_posterior(TOY_X, TOY_Y, prior=0.25)
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["posterior"] == found.posterior
    assert (content["prior"], content["df"], content["warning"]) == (0.25, 4, "")


@settings(deadline=None, max_examples=50)
@given(
    st.floats(0, 1e4), st.floats(0.1, 100), st.integers(1, 200), st.integers(2, 10**6),
    st.floats(0.01, 0.99),
)  # fmt: skip
def test_posterior_falls_with_the_statistic(statistic, more, df, n, prior):
    factors = [log_bayes_factor(value, df, n) for value in (statistic, statistic + more)]
    low, high = (posterior_probability(factor, prior) for factor in factors[::-1])
    assert 0.0 <= low <= high <= 1.0
    assert low < high or factors[0] > 700 or factors[1] < -30  # else rounding alone makes them one


@settings(deadline=None, max_examples=25)
@given(designs(min_rows=20, max_classes=2, max_sharpness=2.0), st.floats(0.05, 0.95))
def test_two_classes_can_be_swapped(design, prior):
    probs, codes = design
    found = calibration_posterior(probs, codes, prior=prior)
    swapped = calibration_posterior(probs[:, ::-1], 1 - codes, prior=prior)
    other = calibration_posterior(probs, codes, prior=prior, baseline=0)
    assert found.posterior == pytest.approx(swapped.posterior, rel=1e-6)
    assert found.posterior == pytest.approx(other.posterior, rel=1e-6)


@pytest.mark.slow
def test_the_posterior_of_honest_rows_grows_with_their_number():
    # BIC is consistent: labels drawn from the rows. P(chi2_4 > 4 ln n) is 2e-3 for n = 100 and
    # 6e-5 for n = 1000, so in 40 data sets hardly one posterior is below one half.
    rng = np.random.default_rng(11)
    low = []
    for n in (100, 1000):
        probs = simplex(rng, n, 3)
        found = [calibration_posterior(probs, draw(probs, rng)).posterior for _ in range(40)]
        assert np.sum(np.array(found) < 0.5) <= 2
        low.append(np.median(found))
    assert low[0] < low[1]


@pytest.mark.parametrize("prior", [0.0, 1.0, -0.5, math.nan])
def test_prior_must_be_a_share(prior):
    error = refusal(calibration_posterior, TOY_X, TOY_Y, prior=prior)
    assert str(error) == f"prior must lie in (0, 1); got prior={prior}."


def test_weights_must_count_rows():
    error = refusal(calibration_posterior, TOY_X, TOY_Y, sample_weight=np.full(16, 1 / 16))
    assert "sample_weight must count rows for BIC, so sum to more than 1; got 1." in str(error)
