"""`compare` of choice sets."""

import json

import numpy as np
import pytest
from choice_data import simulate, vector
from scipy.stats import chi2

import mcllo
from mcllo import ChoiceCalibrator, compare
from mcllo.exceptions import InputError

TRAIN = simulate(800, 4, gamma=0.5, seed=1)
HOLDOUT = simulate(400, 4, gamma=0.5, seed=2)
METHODS = [
    "slope",
    "slope_ridge",
    "positions",
    "positions_ridge",
    "both",
    "both_ridge",
]


@pytest.fixture(scope="module")
def compared():
    return compare(TRAIN, HOLDOUT, method="chi2", seed=0)


def test_every_set_of_terms_is_judged(compared):
    methods = [row.method for row in compared.rows]
    assert methods == ["uncalibrated_train", "uncalibrated", *METHODS]
    # Only the slope is wrong: what learns it is better than doing nothing, what does not is not.
    lead = compared.recommendation
    assert lead.improves
    assert lead.difference("uncalibrated").is_clearly_worse
    assert lead.difference("positions").is_clearly_worse
    assert set(lead.ties) <= {"slope", "slope_ridge", "both", "both_ridge"}


def test_rows_are_what_calibrators_give(compared):
    for name, options in [
        ("slope", {"terms": "slope", "penalty": 0}),
        ("both_ridge", {}),
    ]:
        probs = ChoiceCalibrator(**options).fit(TRAIN).predict_proba(HOLDOUT)
        own = probs[np.arange(400), HOLDOUT.codes]
        again = mcllo.Predictions.from_choices(
            np.where(HOLDOUT.offered, probs, np.nan), HOLDOUT.codes, kind="probs"
        )
        row = compared[name]
        assert row.log_loss == pytest.approx(-np.log(own).mean(), abs=1e-12)
        test = mcllo.calibration_test(again, method="chi2")
        assert row.statistic == pytest.approx(test.statistic, abs=1e-6)
        assert (row.df, row.pvalue) == (4, pytest.approx(test.pvalue))
        assert compared.recalibrated[name].probs == pytest.approx(again.probs)


def test_corrected_pvalues(compared):
    # all 4 parameters fitted to 800 rows and judged on 400: chi2_4 times 1 + 400 / 800
    both = compared["both"]
    assert both.pvalue_corrected == pytest.approx(chi2.sf(both.statistic / 1.5, 4))
    same = compared["uncalibrated"]
    assert same.pvalue_corrected is None
    # one of 4: larger than without the noise of the fit, smaller than if all 4 had it
    slope = compared["slope"]
    assert slope.pvalue < slope.pvalue_corrected
    assert slope.pvalue_corrected < chi2.sf(slope.statistic / 1.5, 4)
    assert compared["slope_ridge"].pvalue_corrected is None


@pytest.mark.slow
@pytest.mark.parametrize("terms", ["slope", "positions", "both"])
def test_corrected_pvalues_hold_their_level(terms):
    gamma = 1.0 if terms == "positions" else 0.6
    tau = np.zeros(5) if terms == "slope" else np.log([1.0, 0.7, 1.2, 1.0, 0.9])
    n_rejected = 0
    n_plain = 0
    for seed in range(300):
        train = simulate(600, 5, gamma, tau, seed=2 * seed, concentration=1.0)
        holdout = simulate(400, 5, gamma, tau, seed=2 * seed + 1, concentration=1.0)
        row = compare(train, holdout, methods=[terms], method="chi2", seed=0)[terms]
        n_rejected += row.pvalue_corrected <= 0.05
        n_plain += row.pvalue <= 0.05
    # 15 of 300 are expected; 99.9 % of binomial(300, 0.05) lie within 4 and 28
    assert 4 <= n_rejected <= 28
    if terms != "slope":
        assert (
            n_plain > 28
        )  # the test of given predictions rejects a right map too often


def test_cross_validation_holds_out_each_row():
    c = compare(TRAIN, cv=4, methods=["slope"], method="chi2", seed=3)
    assert [row.method for row in c.rows] == ["uncalibrated", "slope"]
    assert c["slope"].n == 800
    assert c["slope"].log_loss < c["uncalibrated"].log_loss
    assert c["slope"].pvalue_corrected is None


def test_printed_and_as_values(compared):
    text = str(compared)
    assert "reference position: A" in text
    assert "nan" not in text
    assert "cw ECE" not in text
    rows = json.loads(json.dumps(compared.to_dict(), allow_nan=False))["rows"]
    assert rows[1]["classwise_ece"] is None
    assert compared.to_vega()["data"]["values"]


def test_a_calibrator_of_choices_may_be_named():
    gated = {"gated": ChoiceCalibrator(gate=0.05)}
    assert compare(TRAIN, HOLDOUT, methods=gated, seed=0)["gated"].n == 400
    plain = ChoiceCalibrator(penalty=0.0, terms="slope")
    c = compare(TRAIN, HOLDOUT, methods=[plain], method="chi2", seed=0)
    name = "ChoiceCalibrator(penalty=0.0, terms='slope')"
    assert c[name].pvalue_corrected is not None


def test_what_is_refused():
    with pytest.raises(InputError, match="for choice sets; got methods='mcllo'"):
        compare(TRAIN, HOLDOUT, methods=["mcllo"])
    with pytest.raises(InputError, match="same positions"):
        compare(TRAIN, simulate(50, 3))
    with pytest.raises(InputError, match="both be choice sets"):
        compare(TRAIN, ([[0.5, 0.5]] * 4, [0, 1, 0, 1]))
    with pytest.raises(InputError, match="0 for choice sets"):
        compare(TRAIN, HOLDOUT, bootstrap=9)


def test_few_rows_to_learn_from_have_no_corrected_pvalue():
    row = compare(vector(), vector(), methods=["both"], method="chi2", seed=0)["both"]
    assert row.pvalue_corrected is None
    assert row.corrected_reason


def test_other_probabilities_of_the_same_choices():
    p = vector()
    with pytest.raises(InputError, match=r"shape \(12, 4\)"):
        p.with_probs(p.probs[:3])
    same = p.with_probs(p.probs)
    assert np.array_equal(same.probs, p.probs)
    assert np.array_equal(same.logits, p.logits)
    # positions that none of these rows offers stay
    assert p.take([0, 1]).with_probs(p.probs[:2]).classes == p.classes
