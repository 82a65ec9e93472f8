"""`assess`: its numbers, its lazy details, and what dask rows give."""

import json
from functools import cache

import numpy as np
import pytest
from block_data import rows
from independent import sample
from toy import TOY_X, TOY_Y

from mcllo import Assessment, Predictions, assess, baseline_sensitivity, class_tests, ladder
from mcllo._assessment.assessment import calibration_in_the_large
from mcllo._blocks.assess import BlockAssessment
from mcllo._inference.budget import BRIEF_NESTED_WORK
from mcllo.exceptions import InputError, SeparationWarning, ZeroProbabilityWarning


@cache
def toy():
    return assess(TOY_X, TOY_Y, seed=0)


def test_toy_assessment():
    # methods specification 0.4 and 4: TOY
    a = toy()
    assert isinstance(a, Assessment)
    assert a.test.statistic == pytest.approx(1.1462114203, abs=1e-6)
    assert a.metrics["accuracy"] == pytest.approx(0.5)
    assert a.metrics["log_loss"] == pytest.approx(0.78771135, abs=1e-8)
    assert a.metrics["brier"] == pytest.approx(0.4615625)
    assert a.metrics["ece"] == pytest.approx(0.309375)  # ceil(sqrt(16)) = 4 bins, right-closed
    assert a.fit.tau == pytest.approx([0.30894668, -0.31270571], abs=1e-6)


def test_ece_gets_its_meaning():
    # an ECE of .31 lies inside what calibrated rows like these show (methods specification 5.3)
    a, null = toy(), toy().nulls["ece"]
    assert null.observed == a.metrics["ece"]
    assert null.low < null.mean < null.observed < null.high
    assert 0.0 < null.pvalue < 0.2
    assert a.nulls["classwise_ece"].observed == a.metrics["classwise_ece"]
    assert set(a.companions) == {"hosmer_lemeshow", "kernel"}
    assert "\n" not in repr(a)


def test_calibration_in_the_large_by_hand():
    # two rows (.8, .2): expected 1.6 and .4, variance 2 * .16 = .32, observed 1 and 1
    p = Predictions.from_arrays([[0.8, 0.2], [0.8, 0.2]], [0, 1])
    shares = calibration_in_the_large(p)
    assert shares["predicted"] == pytest.approx([0.8, 0.2])
    assert shares["observed"] == pytest.approx([0.5, 0.5])
    assert shares["z"] == pytest.approx([-0.6 / np.sqrt(0.32), 0.6 / np.sqrt(0.32)])


def test_calibration_in_the_large_does_not_need_a_baseline():
    first = assess(TOY_X, TOY_Y, baseline=0, method="chi2").in_the_large.to_dict()
    last = assess(TOY_X, TOY_Y, baseline=2, method="chi2").in_the_large.to_dict()
    assert first == last


def test_everything_hangs_on_the_seed_alone():
    assert assess(TOY_X, TOY_Y, seed=0).to_dict() == toy().to_dict()


def test_to_dict_is_strict_json_even_when_separated():
    with pytest.warns(SeparationWarning):
        a = assess(TOY_X, TOY_X.argmax(axis=1), seed=0)
    content = json.loads(json.dumps(a.to_dict(), allow_nan=False))
    assert content["fit"]["se_tau"] == [None, None]
    assert content["fit"]["separated"] is True
    assert content["data"]["n_samples"] == 16


def test_weights_equal_repetition():
    weight = 1 + np.arange(16) % 2
    rows = np.repeat(np.arange(16), weight)
    weighted = assess(TOY_X, TOY_Y, sample_weight=weight, seed=1)
    repeated = assess(TOY_X[rows], TOY_Y[rows], seed=1)
    assert weighted.test.statistic == pytest.approx(repeated.test.statistic)
    assert weighted.test.pvalue == repeated.test.pvalue
    assert weighted.metrics["log_loss"] == pytest.approx(repeated.metrics["log_loss"])


def test_fractional_weights_have_no_simulated_nulls():
    a = assess(TOY_X, TOY_Y, sample_weight=np.full(16, 0.5))
    assert a.nulls == {}
    assert a.companions == {}


def test_logits_are_an_alternative_to_probabilities():
    from_logits = assess(None, TOY_Y, logits=np.log(TOY_X) + 3.0, seed=0)
    assert from_logits.test.statistic == pytest.approx(1.1462114203, abs=1e-6)


def test_what_was_changed_is_counted():
    probs = TOY_X.copy()
    probs[0] = [0.0, 0.9, 0.1]
    probs[5] *= 1.0 + 5e-7
    with pytest.warns(ZeroProbabilityWarning):
        a = assess(probs, TOY_Y, seed=0)
    data = a.to_dict()["data"]
    assert [data[name] for name in ("n_zeros", "n_clipped_true", "n_renormalized")] == [1, 1, 1]
    assert str(a.data.zero_phrase) == a.predictions.zero_note


def test_predictions_refuse_second_labels():
    with pytest.raises(InputError, match="y must not be given beside a Predictions"):
        assess(Predictions.from_arrays(TOY_X, TOY_Y), TOY_Y)


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


def test_everything_is_in_to_dict():
    content = toy().to_dict()
    json.dumps(content, allow_nan=False)
    assert next(row["model"] for row in content["ladder"]["rows"]) == "identity"
    assert {"class_tests", "baselines", "posterior", "zeros", "robust", "skipped"} <= set(content)
    assert content["zeros"] is None
    # methods.md 6, TOY
    assert content["posterior"]["posterior"] == pytest.approx(0.99311890, abs=1e-8)


def test_dependent_rows_leave_out_what_needs_independence():
    a = assess(TOY_X, TOY_Y, groups=np.arange(16) // 2, seed=1)
    d = a.details
    assert d.ladder is d.class_tests is d.baselines is d.posterior is None
    assert d.robust.pvalue == a.test.pvalue
    assert a.companions == a.nulls == {}
    assert set(d.skipped) == {"ladder", "class_tests", "baselines", "zeros", "posterior"}


def test_two_classes_have_no_baseline_question():
    a = assess(TOY_X[:, :2] / TOY_X[:, :2].sum(axis=1, keepdims=True), TOY_Y % 2, seed=1)
    assert a.details.baselines is None
    assert "Baseline" not in str(a)


@pytest.mark.filterwarnings("ignore::mcllo.exceptions.SeparationWarning")
def test_many_classes_are_left_out_with_a_word():
    probs, y = sample(300, 60, 0)
    some = assess(probs, y, classes=range(60), method="chi2", seed=1).details
    assert some.baselines is None
    assert "baselines=" in some.skipped["baselines"]
    assert some.ladder is not None
    probs, y = sample(400, 201, 0)
    details = assess(probs, y, classes=range(201), method="chi2", seed=1).details
    assert details.ladder is details.class_tests is None
    assert "201 classes are too many" in details.skipped["ladder"]


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
