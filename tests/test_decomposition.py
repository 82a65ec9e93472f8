"""Scores split into miscalibration, discrimination and uncertainty."""

import numpy as np
import pytest
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._fit import fit_predictions
from mcllo.exceptions import InputError, ZeroProbabilityWarning
from mcllo.metrics import (
    brier_score,
    decompose_brier,
    decompose_brier_by_group,
    decompose_log_loss,
    log_loss,
)


def test_recalibrated_predictions_have_no_miscalibration():
    fit = fit_predictions(Predictions.from_arrays(TOY_X, TOY_Y))
    again = fit.recalibrate(TOY_X)
    before, after = decompose_log_loss(TOY_Y, TOY_X), decompose_log_loss(TOY_Y, again)
    assert after.miscalibration == pytest.approx(0.0, abs=1e-12)
    assert after.discrimination == pytest.approx(before.discrimination, abs=1e-9)
    assert decompose_brier(TOY_Y, again).miscalibration == pytest.approx(0.0, abs=1e-8)


def test_groups_by_hand():
    # equal rows (.75, .25) with labels 0 1: mean label (.5, .5) in both groups and overall
    parts = decompose_brier_by_group([0, 1], [[0.75, 0.25]] * 2, groups="equal")
    assert parts.to_dict() == pytest.approx(
        {
            "reliability": 0.125,
            "resolution": 0.0,
            "uncertainty": 0.5,
            "within_variance": 0.0,
            "within_covariance": 0.0,
            "score": 0.625,
        }
    )


def test_reference_values():
    # methods.md 4, TOY
    parts = decompose_log_loss(TOY_Y, TOY_X).to_dict()
    expected = {
        "miscalibration": 0.03581911,
        "discrimination": 0.34288798,
        "uncertainty": 1.09478023,
        "score": 0.78771135,
    }
    assert parts == pytest.approx(expected, abs=5e-9)
    brier = decompose_brier(TOY_Y, TOY_X)
    assert brier.miscalibration == pytest.approx(0.00894271, abs=5e-9)
    assert brier.discrimination == pytest.approx(0.21144271, abs=5e-9)
    expected = {
        "reliability": 0.02936458,
        "resolution": 0.05989583,
        "uncertainty": 0.6640625,
        "within_variance": 0.03219792,
        "within_covariance": 0.20416667,
        "score": 0.4615625,
    }
    assert decompose_brier_by_group(TOY_Y, TOY_X).to_dict() == pytest.approx(expected, abs=5e-9)


@pytest.mark.parametrize("baseline", [0, 1, 2])
def test_miscalibration_is_the_statistic(baseline):
    # methods.md 4 (iii): for log loss MCB = lambda / (2 n); 0.4 for lambda of each baseline
    statistic = {0: 1.1250835514, 1: 0.9305895999, 2: 1.1462114203}[baseline]
    parts = decompose_log_loss(TOY_Y, TOY_X, baseline=baseline)
    assert parts.miscalibration == pytest.approx(statistic / 32, abs=1e-10)


@pytest.mark.parametrize("groups", ["argmax", "equal"])
@pytest.mark.parametrize("weighted", [False, True])
def test_parts_add_up(groups, weighted):
    rng = np.random.default_rng(10)
    probs, y = rng.multinomial(5, [0.2, 0.3, 0.5], 200) / 5, rng.integers(0, 3, 200)
    w = rng.integers(0, 3, 200) if weighted else None
    parts = decompose_brier_by_group(y, probs, groups=groups, sample_weight=w)
    total = parts.reliability - parts.resolution + parts.uncertainty
    total += parts.within_variance - parts.within_covariance
    assert parts.score == pytest.approx(total)
    assert parts.score == pytest.approx(brier_score(y, probs, sample_weight=w))
    if groups == "equal":
        assert parts.within_variance == pytest.approx(0.0, abs=1e-15)


def test_parts_of_a_score_add_up():
    for decompose, score in ((decompose_log_loss, log_loss), (decompose_brier, brier_score)):
        parts = decompose(TOY_Y, TOY_X)
        total = parts.miscalibration - parts.discrimination + parts.uncertainty
        assert parts.score == pytest.approx(total) == pytest.approx(score(TOY_Y, TOY_X))


def test_zeros_are_raised_with_a_warning():
    probs = TOY_X.copy()
    probs[0] = [0.8, 0.2, 0.0]
    with pytest.warns(ZeroProbabilityWarning, match="1 of 48 probabilities were 0"):
        parts = decompose_log_loss(TOY_Y, probs)
    assert np.isfinite(parts.score)


def test_errors():
    with pytest.raises(InputError, match="groups must be 'argmax' or 'equal'; got groups='bins'"):
        decompose_brier_by_group(TOY_Y, TOY_X, groups="bins")
    with pytest.raises(InputError, match=r"Call with \(y_true, y_prob\)"):
        decompose_log_loss(TOY_X, TOY_Y)
