"""Truths that are no shift or slope: the examples of issue 36, as a reader meets them."""

import sys
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

import mcllo
from mcllo._utils.statements import suppress_warnings

sys.path.insert(
    0, str(Path(__file__).resolve().parents[2])
)  # studies are not installed
truths = import_module("studies.claims._truths")
levels = import_module("studies.claims.levels")
DESIGNS = {(design.name, design.n): design for design in truths.DESIGNS}
NOISE = ("10 % label noise, network, 10 classes", 2_000)
LITTLE_NOISE = ("2 % label noise, network, 3 classes", 20_000)
STEP = ("step, 2 classes", 40_000)
WAVE = ("wave, flat, 3 classes", 1_500)


@cache
def assessed(key, seed=0):
    """Return the assessment of one data set of a design, and the true mean error."""
    x, truth, y = DESIGNS[key].data(np.random.default_rng([36, seed]))
    with suppress_warnings():
        a = mcllo.assess(x, y, classes=range(x.shape[1]), n_resamples=99, seed=0)
    return a, 0.5 * np.abs(truth - x).sum(axis=1).mean()


@pytest.mark.parametrize("key", [NOISE, LITTLE_NOISE, STEP])
def test_what_is_no_shift_or_slope_is_called_so(key):
    a, error = assessed(key)
    assert a.verdict.kind == "miscalibrated"
    assert not a.verdict.equivalent
    assert a.verdict.beyond
    text = " ".join(a.text(brief=True).split())
    assert "At least" in text
    assert "If the error is one of shifts and slopes" not in text
    assert "at most" not in text
    assert 0.0 < a.effect_size.at_least <= error
    assert "divide the logits by" not in text
    assert "compare calibrators" in text


@pytest.mark.parametrize("key", [NOISE, LITTLE_NOISE, WAVE])
def test_levels_hold_where_the_map_does_not(key):
    a, _ = assessed(key)
    chance = levels.truth_at(DESIGNS[key], np.random.default_rng(1))
    held = [v.low <= chance(v.says) <= v.high for v in a.effect_size.levels]
    by_map = [v.map_low <= chance(v.says) <= v.map_high for v in a.effect_size.levels]
    assert sum(held) >= len(held) - 1  # each misses in one of twenty
    assert sum(by_map) < sum(held)


def test_the_step_is_not_equivalent_to_calibrated():
    a, error = assessed(STEP)
    assert error > 0.03
    assert (
        "hosmer_lemeshow" in a.verdict.other
    )  # not kept back where the main test rejects
    assert a.effect_size.at_least > 0.02
    assert a.verdict.fails()


def test_a_logistic_regression_whose_accuracy_and_confidence_differ():
    # findings/w/lr2.py: "average error 1.2 points" beside an accuracy 3.1 points above the promise
    X, y = make_classification(
        12_000,
        n_features=20,
        n_informative=8,
        n_classes=4,
        n_clusters_per_class=2,
        class_sep=1.0,
        flip_y=0.1,
        random_state=2,
    )
    model = LogisticRegression(max_iter=500).fit(X[:4000], y[:4000])
    a = mcllo.assess(model.predict_proba(X[4000:]), y[4000:], n_resamples=99, seed=0)
    gap = abs(a.metrics["accuracy"] - a.expected["accuracy"])
    assert gap == pytest.approx(0.031, abs=0.002)
    assert a.effect_size.in_the_large == pytest.approx(gap)
    assert a.effect_size.mean_change >= gap - 1e-12
    assert a.goodness_of_fit.rejects(0.05)
    level = next(v for v in a.effect_size.levels if v.says == 0.45)
    assert (
        level.low < 0.525 < level.high
    )  # 52.5 % of these rows are right; the map says 45 %
    assert level.map_high < 0.47
    assert a.recalibration_gain.low > 0.0


def test_a_truth_inside_the_family_keeps_its_sizes():
    a, error = assessed(("slope .7, flat, 4 classes", 8_000))
    assert a.verdict.kind == "miscalibrated"
    assert not a.verdict.beyond
    assert a.effect_size.low <= error <= a.effect_size.high
    assert "If the error is one of shifts and slopes" in " ".join(
        a.text(brief=True).split()
    )
