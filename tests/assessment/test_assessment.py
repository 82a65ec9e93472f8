"""`assess`: its numbers, and its details."""

import numpy as np
import pytest
from toy import TOY_X, TOY_Y

from mcllo import Predictions, assess, baseline_sensitivity, class_tests, nested_models
from mcllo._assessment.assessment import calibration_in_the_large
from mcllo._inference.budget import BRIEF_NESTED_WORK
from mcllo.exceptions import InputError


def test_calibration_in_the_large_by_hand():
    # two rows (.8, .2): expected 1.6 and .4, variance 2 * .16 = .32, observed 1 and 1
    p = Predictions.from_arrays([[0.8, 0.2], [0.8, 0.2]], [0, 1])
    shares = calibration_in_the_large(p)
    assert shares["predicted"] == pytest.approx([0.8, 0.2])
    assert shares["observed"] == pytest.approx([0.5, 0.5])
    assert shares["z"] == pytest.approx([-0.6 / np.sqrt(0.32), 0.6 / np.sqrt(0.32)])


def test_weights_equal_repetition():
    weight = 1 + np.arange(16) % 2
    rows = np.repeat(np.arange(16), weight)
    weighted = assess(TOY_X, TOY_Y, sample_weight=weight, seed=1)
    repeated = assess(TOY_X[rows], TOY_Y[rows], seed=1)
    assert weighted.test.statistic == pytest.approx(repeated.test.statistic)
    assert weighted.test.pvalue == repeated.test.pvalue
    assert weighted.metrics["log_loss"] == pytest.approx(repeated.metrics["log_loss"])


OPTIONS = {"n_resamples": 99, "seed": 1}


def test_details_are_those_of_their_functions_now_or_later():
    a, full = (assess(TOY_X, TOY_Y, full=full, **OPTIONS) for full in (False, True))
    brief = {**OPTIONS, "work": BRIEF_NESTED_WORK}
    kinds = nested_models(TOY_X, TOY_Y, **brief).to_dict()
    tests = class_tests(TOY_X, TOY_Y, **brief).to_dict()
    assert (
        a.details.nested_models is a.details.class_tests is None
    )  # nothing is rejected
    assert a.nested_models().to_dict() == full.details.nested_models.to_dict() == kinds
    assert a.class_tests().to_dict() == full.details.class_tests.to_dict() == tests
    assert full.nested_models() is full.details.nested_models  # made once
    assert full.class_tests() is full.details.class_tests
    expected = baseline_sensitivity(TOY_X, TOY_Y, **OPTIONS)
    assert a.details.baselines.to_dict() == expected.to_dict()
    assert (
        full.details.nested_models.row("identity").larger_pvalue == a.test.pvalue
    )  # made once


def test_full_details_can_be_had_later():
    a, full = (assess(TOY_X, TOY_Y, full=full, **OPTIONS) for full in (False, True))
    assert a.details.not_computed == ("nested_models", "class_tests")
    last = "Not computed: nested models and class tests; assess(..., full=True) does."
    assert a.text(full=True).splitlines()[-1] == last
    assert full.details.not_computed == ()
    assert full.with_full_details() is full
    assert a.with_full_details().text(full=True) == full.text(full=True)
    assert a.with_full_details().to_dict() == full.to_dict()
    assert str(a) == str(full)


def overconfident(**options):
    """Return 300 rows of three classes whose probabilities were squared, assessed."""
    rng = np.random.default_rng(0)
    honest = rng.dirichlet(np.ones(3), size=300)
    y = [rng.choice(3, p=row) for row in honest]
    probs = honest**2 / (honest**2).sum(axis=1, keepdims=True)
    return assess(probs, y, **OPTIONS, **options)


def test_classes_are_named_at_the_level_of_assess():
    usual, strict = overconfident(), overconfident(alpha=0.01)
    assert (usual.alpha, strict.alpha) == (0.05, 0.01)
    assert strict.verdict.alpha == strict.miscalibrated_classes.alpha == 0.01
    assert usual.at_level(0.05) is usual
    moved = usual.at_level(0.01)
    assert moved.text() == strict.text()
    assert moved.to_dict() == strict.to_dict()
    named = usual.attribute_miscalibration(0.01)
    assert named.to_dict() == strict.miscalibrated_classes.to_dict()
    # printed at another level, it says at which level classes were looked for
    said = {statement.kind: statement.text for statement in usual.statements(0.01)}
    assert said["attribution.level"] == (
        "Miscalibrated classes were looked for at level 0.05; assess(..., alpha=0.01) looks for "
        "them at this one."
    )
    assert "attribution.level" not in {
        statement.kind for statement in strict.statements()
    }


def test_a_level_that_is_none_is_refused():
    with pytest.raises(InputError, match="alpha"):
        assess(TOY_X, TOY_Y, alpha=2)
