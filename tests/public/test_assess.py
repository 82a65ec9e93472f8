"""`assess` and reliability curves."""

import json
from functools import cache
from statistics import NormalDist

import numpy as np
import pytest
from independent import sample
from inputs import case
from toy import TOY_X, TOY_Y

from mcllo import Assessment, Predictions, assess, reliability_curve
from mcllo.exceptions import InputError, SeparationWarning, ZeroProbabilityWarning
from mcllo.metrics import expected_calibration_error


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
    assert a.metrics["ece"] == pytest.approx(
        0.309375
    )  # ceil(sqrt(16)) = 4 bins, right-closed
    assert a.fit.tau == pytest.approx([0.30894668, -0.31270571], abs=1e-6)


def test_ece_gets_its_meaning():
    # an ECE of .31 lies inside what calibrated rows like these show (methods specification 5.3)
    a, null = toy(), toy().null_distributions["ece"]
    assert null.observed == a.metrics["ece"]
    assert null.low < null.mean < null.observed < null.high
    assert 0.0 < null.pvalue < 0.2
    assert a.null_distributions["classwise_ece"].observed == a.metrics["classwise_ece"]
    assert set(a.omnibus_tests) == {"hosmer_lemeshow", "kernel"}
    assert "\n" not in repr(a)


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


def test_weights_that_are_no_counts_have_no_simulated_nulls():
    a = assess(
        TOY_X, TOY_Y, sample_weight=np.full(16, 0.5), weight_kind="importance", seed=0
    )
    assert a.null_distributions == {}
    assert a.omnibus_tests == {}


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
    assert [data[name] for name in ("n_zeros", "n_clipped_true", "n_renormalized")] == [
        1,
        1,
        1,
    ]
    assert str(a.data.zero_statement) == a.predictions.zero_note


def test_predictions_refuse_second_labels():
    with pytest.raises(InputError, match="y must not be given beside a Predictions"):
        assess(Predictions.from_arrays(TOY_X, TOY_Y), TOY_Y)


def test_everything_is_in_to_dict():
    content = toy().with_full_details().to_dict()
    json.dumps(content, allow_nan=False)
    assert next(row["model"] for row in content["nested_models"]["rows"]) == "identity"
    assert {
        "class_tests",
        "baselines",
        "posterior",
        "zeros",
        "robust",
        "skipped",
    } <= set(content)
    assert content["zeros"] is None
    # methods.md 6, TOY
    assert content["posterior"]["posterior"] == pytest.approx(0.99311890, abs=1e-8)


def test_dependent_rows_leave_out_what_needs_independence():
    a = assess(TOY_X, TOY_Y, groups=np.arange(16) // 2, seed=1)
    d = a.details
    assert d.nested_models is d.class_tests is d.baselines is d.posterior is None
    assert d.robust.pvalue == a.test.pvalue
    assert a.omnibus_tests == a.null_distributions == {}
    left_out = {"nested_models", "class_tests", "baselines", "zeros", "posterior"}
    assert set(d.skipped) == left_out | {"miscalibrated_classes"}


def test_two_classes_have_no_baseline_question():
    a = assess(
        TOY_X[:, :2] / TOY_X[:, :2].sum(axis=1, keepdims=True), TOY_Y % 2, seed=1
    )
    assert a.details.baselines is None
    assert "Baseline" not in str(a)


@pytest.mark.filterwarnings("ignore::mcllo.exceptions.SeparationWarning")
def test_many_classes_are_left_out_with_a_word():
    probs, y = sample(300, 60, 0)
    some = assess(probs, y, classes=range(60), method="chi2", seed=1).details
    assert some.baselines is None
    assert "too many classes or rows to fit every baseline" in some.skipped["baselines"]
    assert some.nested_models is not None
    probs, y = sample(400, 201, 0)
    details = assess(probs, y, classes=range(201), method="chi2", seed=1).details
    assert details.nested_models is details.class_tests is None
    assert "201 classes are too many" in details.skipped["nested_models"]


TOY = Predictions.from_arrays(TOY_X, TOY_Y)


def test_points_on_the_diagonal_and_far_off():
    curve = reliability_curve([[0.75, 0.25]] * 4, ["a", "a", "a", "b"], n_bins=4)
    assert curve.observed[2] == curve.mean_predicted[2] == 0.75
    assert not curve.outside.any()
    far = reliability_curve([[0.9, 0.1]] * 50, [0] * 20 + [1] * 30)
    assert far.outside.tolist() == [False] * 8 + [True, False]


def test_by_hand():
    # confidences .9 .8 | .6 .7 in the bins (.75, 1] and (.5, .75]; hits 1 1 | 1 0
    p = Predictions.from_arrays(
        [[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.7, 0.3]], [0, 0, 1, 1]
    )
    curve = reliability_curve(p, n_bins=4)
    assert curve.edges.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert curve.counts.tolist() == [0, 0, 2, 2]
    np.testing.assert_allclose(curve.mean_predicted, [np.nan, np.nan, 0.65, 0.85])
    np.testing.assert_allclose(curve.observed, [np.nan, np.nan, 0.5, 1.0])
    # in the last bin no hit has probability .1 * .2 = .02 < .025, one or none .28: at least 1 of 2
    np.testing.assert_allclose(curve.band_low, [np.nan, np.nan, 0.0, 0.5])
    np.testing.assert_allclose(curve.band_high, [np.nan, np.nan, 1.0, 1.0])


def test_wilson_solves_its_equation():
    # both ends q of Wilson's interval satisfy (f - q)^2 = z^2 q (1 - q) / n
    curve = reliability_curve(TOY, n_bins=3, level=0.9)
    z = NormalDist().inv_cdf(0.95)
    used = curve.counts > 0
    for q in (curve.low[used], curve.high[used]):
        f, n = curve.observed[used], curve.counts[used]
        np.testing.assert_allclose((f - q) ** 2, z**2 * q * (1 - q) / n, atol=1e-12)
    assert (curve.low[used] <= curve.observed[used]).all()
    assert (curve.high[used] >= curve.observed[used]).all()


def test_one_class():
    curve = reliability_curve(TOY, label=1, n_bins=4)
    # methods.md 2, TOY B=4: frequencies of class 1 (.166667, .285714, .5, 1)
    np.testing.assert_allclose(curve.observed, [1 / 6, 2 / 7, 1 / 2, 1.0])
    assert curve.label == 1
    assert curve.counts.sum() == 16


def test_gaps_make_up_the_expected_calibration_error():
    for binning in ("width", "mass"):
        curve = reliability_curve(TOY, n_bins=10, binning=binning)
        gaps = np.nan_to_num(np.abs(curve.observed - curve.mean_predicted))
        error = expected_calibration_error(TOY_Y, TOY_X, n_bins=10, binning=binning)
        assert curve.counts @ gaps / 16 == pytest.approx(error), binning


def test_weights_are_rows():
    w = np.arange(16) % 4
    short = Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=w)
    long = Predictions.from_arrays(np.repeat(TOY_X, w, axis=0), np.repeat(TOY_Y, w))
    for binning in ("width", "mass"):
        a = reliability_curve(short, binning=binning, n_bins="sqrt").to_dict()
        b = reliability_curve(long, binning=binning, n_bins="sqrt").to_dict()
        assert a.keys() == b.keys()
        for name in ("edges", "counts"):
            assert a[name] == b[name]
        for name in ("observed", "mean_predicted", "low", "band_low", "band_high"):
            np.testing.assert_allclose(
                *(np.array(d[name], dtype=float) for d in (a, b))
            )


def test_fractional_weights_have_intervals_and_no_band():
    p = Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=np.full(16, 0.5))
    curve = reliability_curve(p, n_bins=2)
    assert np.isnan(curve.band_low).all()
    assert not np.isnan(curve.low[1])
    assert not curve.outside.any()
    assert reliability_curve(p, n_bins=1).to_table()["counts"] == [8]
    # sixteen equal weights are worth sixteen rows, whatever their sum
    plain = reliability_curve(TOY_X, TOY_Y, n_bins=2)
    assert curve.low[1] == pytest.approx(plain.low[1])
    # one weight of 3 beside 15 of 1 is worth 18^2 / 24 = 13.5 rows
    p = Predictions.from_arrays(
        TOY_X, TOY_Y, sample_weight=[3] + [1] * 15, weight_kind="survey"
    )
    curve, z2 = reliability_curve(p, n_bins=1), 1.959963984540054**2
    f, n = curve.observed[0], 13.5
    reach = np.sqrt(z2 * (n * f * (1 - f) + z2 / 4)) / (n + z2)
    assert curve.high[0] == pytest.approx((n * f + z2 / 2) / (n + z2) + reach)


def test_errors():
    for options, message in (
        ({"label": "cat"}, "label='cat' is not a class"),
        ({"level": 95}, r"level must lie in \(0, 1\); got level=95"),
        ({"n_bins": 0}, "n_bins must be"),
    ):
        with case(options), pytest.raises(InputError, match=message):
            reliability_curve(TOY, **options)
