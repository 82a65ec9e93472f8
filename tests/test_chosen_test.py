import numpy as np
import pytest
from refusal import refusal
from toy import TOY_X, TOY_Y

from mcllo import Predictions, assess, calibration_test
from mcllo._best_baseline import best_baseline
from mcllo._chosen_test import fit_and_test, needs_robust, split_baseline
from mcllo._robust import robust_test

TOY = Predictions.from_arrays(TOY_X, TOY_Y)


@pytest.mark.parametrize("baseline", [None, 0, "cat", "Auto"])
def test_classes_are_no_rules(baseline):
    assert split_baseline(baseline) == ("", baseline)


def test_all_is_for_recalibration():
    assert split_baseline("auto") == ("auto", None)
    assert split_baseline("all", allowed=("auto", "all")) == ("all", None)
    assert "is for recalibration (MCLLOCalibrator)" in str(refusal(split_baseline, "all"))
    assert "is for recalibration" in str(refusal(assess, TOY_X, TOY_Y, baseline="all"))


def test_auto_is_the_likeliest_baseline_and_pays_for_it():
    chosen = best_baseline(TOY, seed=1)
    found = fit_and_test(TOY, "auto", seed=1)
    assert found.predictions.baseline == found.fit.baseline == chosen.baseline
    assert (found.test.statistic, found.test.pvalue) == (chosen.max_score, chosen.pvalue)
    assert found.test.kind == "max_score"
    assert str(found.test).startswith("largest score (over all baselines) statistic 0.990 on")


def test_permuting_classes_does_not_change_the_answer_of_auto():
    order = [2, 0, 1]
    here = calibration_test(TOY_X, TOY_Y, baseline="auto", seed=1)
    there = calibration_test(TOY_X[:, order], TOY_Y, classes=order, baseline="auto", seed=1)
    assert there.statistic == pytest.approx(here.statistic, rel=1e-12)


def test_groups_choose_the_robust_test():
    groups = np.arange(16) // 2
    test = calibration_test(TOY_X, TOY_Y, groups=groups, seed=3)
    robust = robust_test(TOY_X, TOY_Y, groups=groups, seed=3)
    assert (test.kind, test.method, test.pvalue) == ("robust_score", robust.method, robust.pvalue)
    assert "sign flips" in str(test)


def test_survey_weights_choose_the_robust_test():
    options = {"sample_weight": np.linspace(1, 2, 16), "weight_kind": "survey"}
    assert calibration_test(TOY_X, TOY_Y, **options, seed=3).kind == "robust_score"
    assert needs_robust(Predictions.from_arrays(TOY_X, TOY_Y, **options))
    counted = {"sample_weight": np.full(16, 2.0)}
    assert not needs_robust(Predictions.from_arrays(TOY_X, TOY_Y, **counted))


def test_nothing_pays_for_a_chosen_baseline_of_dependent_rows():
    groups = np.arange(16) // 2
    message = str(refusal(calibration_test, TOY_X, TOY_Y, groups=groups, baseline="auto"))
    assert "must not be combined with groups" in message
