"""`assess`: its numbers, its lazy details, and what dask rows give."""

import numpy as np
import pytest
from block_data import rows
from toy import TOY_X, TOY_Y

from mcllo import Assessment, Predictions, assess, baseline_sensitivity, class_tests, ladder
from mcllo._assessment.assessment import calibration_in_the_large
from mcllo._blocks.assess import BlockAssessment
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


def test_details_are_computed_when_asked_for_and_are_those_of_their_functions():
    options = {"n_resamples": 99, "seed": 1}
    a = assess(TOY_X, TOY_Y, **options)
    assert not {"ladder", "class_tests", "baselines"} & set(a.details.__dict__)
    brief = {**options, "work": BRIEF_NESTED_WORK}
    for found, expected in (
        (a.details.ladder, ladder(TOY_X, TOY_Y, **brief)),
        (a.details.class_tests, class_tests(TOY_X, TOY_Y, **brief)),
        (a.details.baselines, baseline_sensitivity(TOY_X, TOY_Y, **options)),
    ):
        assert found.to_dict() == expected.to_dict()
    assert a.details.ladder.row("identity").larger_pvalue == a.test.pvalue  # made once


da = pytest.importorskip("dask.array")


def test_dask_rows_give_what_arrays_give():
    probs, y, _ = rows(c=3)
    plain = assess(probs, y, n_resamples=99, seed=1)
    found = assess(da.from_array(probs, chunks=800), da.from_array(y, 700), n_resamples=99, seed=1)
    assert isinstance(plain, Assessment)
    assert isinstance(found, BlockAssessment)
    assert found.test.pvalue == plain.test.pvalue
    np.testing.assert_allclose(found.fit.theta, plain.fit.theta, atol=1e-10)
    assert found.metrics == pytest.approx(plain.metrics, rel=1e-12)
    assert str(found).splitlines()[0] == str(plain).splitlines()[0]


def test_dask_logits_are_read():
    probs, y, _ = rows(c=3)
    found = assess(None, y, logits=da.from_array(np.log(probs), chunks=800), method="chi2", seed=1)
    assert found.test.statistic == pytest.approx(
        assess(probs, y, method="chi2", seed=1).test.statistic, rel=1e-9
    )


@pytest.mark.parametrize(
    "option", [{"baseline": "auto"}, {"weight_kind": "survey"}, {"groups": np.arange(3000)}]
)
def test_what_needs_all_rows_is_refused(option):
    probs, y, _ = rows(c=3)
    with pytest.raises(InputError, match=r"needs all rows in memory. Pass probs\.compute\(\)"):
        assess(da.from_array(probs, chunks=800), y, **option)
