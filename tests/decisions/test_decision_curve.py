"""Net benefit: by hand, by another implementation, and as a cost."""

import numpy as np
import pytest
from inputs import case, refusal

import mcllo
from mcllo import decision_curve, decision_value, simulate


def net_benefit(risks, is_case, threshold):
    """Return it as Vickers and Elkin (2006) define it, by counts."""
    acts = risks >= threshold
    n = len(risks)
    true = int((acts & is_case).sum())
    false = int((acts & ~is_case).sum())
    return true / n - false / n * threshold / (1.0 - threshold)


def two_columns(risks):
    return np.column_stack([1.0 - risks, risks])


def risks_of(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.beta(0.6, 3.0, size=n)
    odds = (truth / (1.0 - truth)) ** 1.6  # overconfident
    return np.round(odds / (1.0 + odds), 3).clip(0.001, 0.999), rng.random(n) < truth


def test_by_hand():
    # risks .1 .3 .6 .2, cases the second and third. t = .2: acts on .3 .6 .2, two true and one
    # false: 2/4 - 1/4 x .25 = .4375; all: 2/4 - 2/4 x .25 = .375. t = .5: 1/4; all: 0
    probs = two_columns(np.array([0.1, 0.3, 0.6, 0.2]))
    curve = decision_curve(probs, [0, 1, 1, 0], thresholds=[0.2, 0.5], calibrator=None)
    assert curve.table["net_benefit"] == pytest.approx([0.4375, 0.25])
    assert curve.table["treat_all"] == pytest.approx([0.375, 0.0])
    assert (curve.positive, curve.prevalence) == (1, 0.5)
    assert "recalibrated" not in curve.table.columns
    other = decision_curve(
        probs, [0, 1, 1, 0], positive=0, thresholds=[0.8], calibrator=None
    )
    # risks of class 0: .9 .7 .4 .8, at .8 the first and the last, both true
    assert other.table["net_benefit"] == pytest.approx([0.5])


def test_another_implementation_and_the_intervals():
    risks, is_case = risks_of()
    curve = decision_curve(two_columns(risks), is_case.astype(int), calibrator=None)
    assert len(curve.table) == 99
    for row in curve.table:
        t = row["threshold"]
        with case(t):
            expected = net_benefit(risks, is_case, t)
            assert row["net_benefit"] == pytest.approx(expected)
            assert row["low"] <= expected <= row["high"]
    # the delta method at t = .25: variance of the rows' shares over n
    odds = 1.0 / 3.0
    shares = np.where(risks >= 0.25, np.where(is_case, 1.0, -odds), 0.0)
    row = curve.table.rows()[24]
    half = (row["high"] - row["low"]) / 2
    assert half == pytest.approx(1.9615 * shares.std(ddof=1) / np.sqrt(1500), rel=1e-3)


def test_net_benefit_is_a_cost():
    risks, is_case = risks_of()
    probs = two_columns(risks)
    y = is_case.astype(int)
    curve = decision_curve(probs, y, thresholds=[0.3], calibrator="temperature")
    costs = {"miss": {1: 0.7 / 0.3}, "false_alarm": {1: 1}}
    value = decision_value(probs, y, costs, calibrator="temperature")
    odds = 0.3 / 0.7
    prevalence = is_case.mean()
    row = curve.table.rows()[0]
    for name, cost in (
        ("net_benefit", value.realised),
        ("recalibrated", value.recalibrated),
    ):
        assert row[name] == pytest.approx(prevalence - odds * cost.value)
    assert row["gain"] == pytest.approx(odds * value.price.value)
    assert row["gain_low"] <= row["gain"] <= row["gain_high"]


def test_more_than_two_classes_and_what_is_refused():
    rows = simulate.draw(300, n_classes=3, distribution="dirichlet", seed=0)
    curve = decision_curve(rows, positive=2, calibrator=None, thresholds=(0.5,))
    expected = net_benefit(rows.probs[:, 2], rows.codes == 2, 0.5)
    assert curve.table["net_benefit"] == pytest.approx([expected])
    assert "acting on the risk of 2" in str(curve)
    assert "must name the class" in str(refusal(decision_curve, rows))
    two = mcllo.Predictions.from_arrays([[0.5, 0.5]] * 4, [0, 1, 0, 1])
    assert "lie between 0 and 1" in str(refusal(decision_curve, two, thresholds=[1]))
    assert "at least one" in str(refusal(decision_curve, two, thresholds=[]))
    assert "too few" in str(refusal(decision_curve, two))
    assert "is not a class" in str(refusal(decision_curve, two, positive=7))
