"""Calibration errors of many label vectors at once."""

import numpy as np
import pytest
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._fit.fit import fit_predictions
from mcllo._inference.monte_carlo import draw_labels, metric_nulls
from mcllo.exceptions import InputError, ZeroProbabilityWarning
from mcllo.metrics import _unbinned as _kernel_error
from mcllo.metrics import (
    brier_score,
    classwise_calibration_error,
    debiased_calibration_error,
    debiased_squared_calibration_error,
    decompose_brier,
    decompose_brier_by_group,
    decompose_log_loss,
    expected_calibration_error,
    kernel_calibration_error,
    log_loss,
    tcal_squared_calibration_error,
)
from mcllo.metrics._binned import ClasswiseECE, TopLabelECE
from mcllo.metrics._scores import standard_error_of_mean
from mcllo.metrics._unbinned import KernelError, resolve_bandwidth

TOY = Predictions.from_arrays(TOY_X, TOY_Y)


def test_labels_that_match_the_predictions_give_zero():
    half = Predictions.from_arrays([[0.5, 0.5]] * 4, [0, 1, 0, 1])
    labels = np.array([[0, 1, 0, 1], [0, 0, 0, 0]])
    assert TopLabelECE(half, 3).of_labels(labels).tolist() == [0.0, 0.5]
    assert ClasswiseECE(half, 3).of_labels(np.array([[1, 1, 0, 0]])).tolist() == [0.0]


def test_each_class_by_name():
    # methods.md 4, TOY: classwise B=4 (.06875, .075, .1125)
    per_class = ClasswiseECE(TOY, 4).errors_by_class(TOY.codes[None])
    np.testing.assert_allclose(per_class, [[0.06875, 0.075, 0.1125]], atol=1e-12)


@pytest.mark.parametrize(("binning", "weighted"), [("width", False), ("mass", True)])
def test_many_draws_equal_one_at_a_time(binning, weighted):
    rng = np.random.default_rng(2)
    probs, weight = rng.dirichlet(np.ones(4), 60), rng.random(60) if weighted else None
    labels = rng.integers(0, 4, (25, 60))
    p = Predictions.from_arrays(probs, labels[0], sample_weight=weight)
    top = TopLabelECE(p, 7, binning, 2).of_labels(labels)
    each = ClasswiseECE(p, "sqrt", binning).of_labels(labels)
    for y, a, b in zip(labels, top, each, strict=True):
        options = {"binning": binning, "sample_weight": weight}
        assert a == pytest.approx(
            expected_calibration_error(y, probs, n_bins=7, norm=2, **options)
        )
        assert b == pytest.approx(classwise_calibration_error(y, probs, **options))


HAND_X = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
EUCLID = {"distance": "euclidean", "bandwidth": 1.0}


def test_by_hand():
    # top label .9 ok .7 ok .8 ok .6 wrong; runs .6 .7 | .8 .9:
    # gaps .65 - .5 and .85 - 1; chance .25 / 1 and 0: mean of .0225 - .25 and .0225
    y = [0, 0, 1, 0]
    assert debiased_squared_calibration_error(y, HAND_X, n_bins=2) == pytest.approx(
        -0.1025
    )
    assert debiased_calibration_error(y, HAND_X, n_bins=2) == 0.0
    # one bin: sum e = 0, sum e^2 = .5; -.5 / 4 / 4
    assert tcal_squared_calibration_error(y, HAND_X, n_bins=2) == pytest.approx(
        -0.03125
    )
    # bins of one row give nothing
    assert debiased_squared_calibration_error([1, 1, 1, 0], HAND_X, n_bins=4) == 0.0
    assert tcal_squared_calibration_error(
        [1, 1, 1, 0], HAND_X, n_bins=10
    ) == pytest.approx(0.0)


def test_reference_values():
    # methods.md 4, TOY: Kumar with 4 equal-mass bins; T-Cal's m = 4, 8; kernels exp(-euclid), and
    # exp(-TV / median .4)
    for metric, options, value in (
        (debiased_squared_calibration_error, {"n_bins": 4}, 0.09868304),
        (debiased_calibration_error, {"n_bins": 4}, 0.31413856),
        (debiased_calibration_error, {"n_bins": 4, "target": "marginal"}, 0.0),
        (tcal_squared_calibration_error, {"n_bins": 4}, 0.01954167),
        (tcal_squared_calibration_error, {"n_bins": 8}, 0.05184524),
        (kernel_calibration_error, EUCLID | {"estimator": "biased"}, 0.0081278417),
        (kernel_calibration_error, EUCLID | {"estimator": "unbiased"}, -0.0221011355),
        (kernel_calibration_error, EUCLID | {"estimator": "linear"}, 0.0116299018),
        (kernel_calibration_error, {"estimator": "biased"}, 0.0109168663),
        (kernel_calibration_error, {"estimator": "unbiased"}, -0.0191261760),
    ):
        digits = 5e-11 if metric is kernel_calibration_error else 5e-9
        found = metric(TOY_Y, TOY_X, **options)
        assert found == pytest.approx(value, abs=digits), (metric, options)


def test_marginal_averages_classes():
    rng = np.random.default_rng(4)
    probs, y = rng.dirichlet(np.ones(2), 100), rng.integers(0, 2, 100)
    # two classes mirror each other, so each one's square is the mean
    squares = [
        debiased_squared_calibration_error(
            y == k, np.stack([1 - p, p], axis=1), target="marginal"
        )
        for k, p in enumerate(probs.T)
    ]
    root = debiased_calibration_error(y, probs, target="marginal")
    assert squares == pytest.approx([root**2, root**2])


def test_the_bias_is_removed():
    # under calibration both squares average 0, while the plain square does not
    rng = np.random.default_rng(5)
    p = Predictions.from_arrays(rng.dirichlet(np.ones(3), 300), rng.integers(0, 3, 300))
    labels = draw_labels(p.probs, 0, 0, 300)
    kumar = [debiased_squared_calibration_error(y, p.probs) for y in labels]
    tcal = [tcal_squared_calibration_error(y, p.probs) for y in labels]
    options = {"n_bins": 15, "binning": "mass", "norm": 2}
    plain = [expected_calibration_error(y, p.probs, **options) ** 2 for y in labels]
    for squares in (kumar, tcal):
        standard_error = np.std(squares) / np.sqrt(len(squares))
        assert abs(np.mean(squares)) < 4 * standard_error
        assert np.mean(plain) > 20 * standard_error


def pair(y, probs, i, j, width, distance):
    e = np.eye(probs.shape[1])[y] - probs
    gap = probs[i] - probs[j]
    d = np.abs(gap).sum() / 2 if distance == "tv" else np.sqrt((gap**2).sum())
    return np.exp(-d / width) * (e[i] @ e[j])


def test_two_rows_by_hand():
    # residuals (.4, -.4) and (.3, -.3): product .24; total variation .1; so h_01 = .24 exp(-.1)
    y, probs = [0, 0], [[0.6, 0.4], [0.7, 0.3]]
    h = 0.24 * np.exp(-0.1)
    expected = {"unbiased": h, "linear": h, "biased": (0.32 + 0.18 + 2 * h) / 4}
    for estimator, value in expected.items():
        error = kernel_calibration_error(y, probs, estimator=estimator, bandwidth=1.0)
        assert error == pytest.approx(value)
        assert (
            kernel_calibration_error(TOY_Y, np.eye(3)[TOY_Y], estimator=estimator)
            == 0.0
        )


@pytest.mark.parametrize("distance", ["tv", "euclidean"])
def test_double_loop_agrees(distance, monkeypatch):
    monkeypatch.setattr(
        _kernel_error, "MAX_KERNEL_VALUES_AT_ONCE", 7 * 40
    )  # several blocks, the last shorter
    rng = np.random.default_rng(8)
    probs, y = rng.dirichlet(np.ones(4), 40), rng.integers(0, 4, 40)
    h = np.array(
        [[pair(y, probs, i, j, 0.3, distance) for j in range(40)] for i in range(40)]
    )
    expected = {
        "biased": h.mean(),
        "unbiased": h[np.triu_indices(40, 1)].mean(),
        "linear": h[np.arange(0, 40, 2), np.arange(1, 40, 2)].mean(),
    }
    for estimator, value in expected.items():
        options = {"estimator": estimator, "distance": distance, "bandwidth": 0.3}
        assert kernel_calibration_error(y, probs, **options) == pytest.approx(
            value, abs=1e-12
        )
        if estimator != "linear":
            labels = np.stack([y, np.roll(y, 1)])
            many = KernelError(Predictions.from_arrays(probs, y), **options).of_labels(
                labels
            )
            single = [kernel_calibration_error(row, probs, **options) for row in labels]
            assert many == pytest.approx(single, abs=1e-12)


def test_median_distance():
    for equal, weight, expected in (
        (
            3,
            None,
            0.25,
        ),  # three of four rows equal: distances 0 0 0 .5 .5 .5 have median .25
        (
            4,
            None,
            0.2,
        ),  # four of five: six zeros and four .5; the median is 0, the mean .2
        (4, [1, 3, 0, 0, 1], 0.2),
    ):
        probs, y = [[0.9, 0.1]] * equal + [[0.4, 0.6]], [0] * equal + [1]
        p = Predictions.from_arrays(probs, y, sample_weight=weight)
        assert resolve_bandwidth(p, "median", "tv") == pytest.approx(expected)
    # methods.md 4, TOY: the median total variation is .4
    assert resolve_bandwidth(TOY, "median", "tv") == pytest.approx(0.4)
    assert resolve_bandwidth(TOY.take([0]), "median", "tv") == 1.0


def test_median_of_many_rows_is_that_of_some(monkeypatch):
    rng = np.random.default_rng(9)
    p = Predictions.from_arrays(rng.dirichlet(np.ones(3), 301), rng.integers(0, 3, 301))
    whole = resolve_bandwidth(p, "median", "tv")
    monkeypatch.setattr(_kernel_error, "MAX_ROWS_FOR_MEDIAN", 101)
    some = resolve_bandwidth(p, "median", "tv")
    assert some == resolve_bandwidth(p.take(np.arange(0, 301, 3)), "median", "tv")
    assert some == pytest.approx(whole, rel=0.1)


def test_exact_p_value():
    # methods.md 5.4, TOY: SKCE_b with exp(-euclid), p = .9835 (9999 draws, seed 0)
    error = {"skce": lambda p: KernelError(p, "biased", **EUCLID)}
    null = metric_nulls(TOY, error, n_resamples=9999, seed=0)["skce"]
    assert null.pvalue == pytest.approx(0.9835, abs=1e-12)


def test_unbiased_has_mean_zero_under_calibration():
    null = metric_nulls(
        TOY, {"skce": lambda p: KernelError(p, "unbiased")}, n_resamples=9999
    )
    assert abs(null["skce"].mean) < 4 * 0.025 / np.sqrt(9999)


def test_wrong_options_are_refused():
    for metric, options, words in (
        (expected_calibration_error, {"norm": 3}, "norm must be 1 or 2; got norm=3"),
        (
            debiased_calibration_error,
            {"target": "a"},
            "'top-label' or 'marginal'; got target='a'",
        ),
        (
            kernel_calibration_error,
            {"estimator": "quick"},
            "must be 'biased', 'unbiased' or 'lin",
        ),
        (
            kernel_calibration_error,
            {"distance": "l1"},
            "'euclidean' or 'tv'; got distance='l1'",
        ),
        (
            kernel_calibration_error,
            {"bandwidth": 0.0},
            "must be positive or 'median'; got",
        ),
        (
            kernel_calibration_error,
            {"bandwidth": "mean"},
            "must be positive or 'median'; got",
        ),
        (
            kernel_calibration_error,
            {"estimator": "linear", "sample_weight": np.full(16, 0.5)},
            "whole numbers for estimator='linear'",
        ),
        (
            decompose_brier_by_group,
            {"groups": "bins"},
            "'argmax' or 'equal'; got groups='bins'",
        ),
    ):
        with pytest.raises(InputError, match=words):
            metric(TOY_Y, TOY_X, **options)


def test_rows_that_a_kernel_error_cannot_take():
    with pytest.raises(InputError, match="must have two rows at least; got 1"):
        kernel_calibration_error([0], [[0.6, 0.4]])
    with pytest.raises(InputError, match="without weights"):
        KernelError(Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=np.ones(16)))


def test_recalibrated_predictions_have_no_miscalibration():
    again = fit_predictions(TOY).recalibrate(TOY_X)
    before, after = decompose_log_loss(TOY_Y, TOY_X), decompose_log_loss(TOY_Y, again)
    assert after.miscalibration == pytest.approx(0.0, abs=1e-12)
    assert after.discrimination == pytest.approx(before.discrimination, abs=1e-9)
    assert decompose_brier(TOY_Y, again).miscalibration == pytest.approx(0.0, abs=1e-8)


def parts_of(result):
    return list(result.to_dict().values())


def test_groups_by_hand():
    # equal rows (.75, .25) with labels 0 1: mean label (.5, .5) in both groups and overall
    parts = decompose_brier_by_group([0, 1], [[0.75, 0.25]] * 2, groups="equal")
    # reliability, resolution, uncertainty, within variance, within covariance, score
    assert parts_of(parts) == pytest.approx([0.125, 0.0, 0.5, 0.0, 0.0, 0.625])


def test_reference_values_of_decompositions():
    # methods.md 4, TOY, in the order of the fields
    for decompose, expected in (
        (decompose_log_loss, [0.03581911, 0.34288798, 1.09478023, 0.78771135]),
        (decompose_brier, [0.00894271, 0.21144271, 0.6640625, 0.4615625]),
        (
            decompose_brier_by_group,
            [0.02936458, 0.05989583, 0.6640625, 0.03219792, 0.20416667, 0.4615625],
        ),
    ):
        assert parts_of(decompose(TOY_Y, TOY_X)) == pytest.approx(expected, abs=5e-9), (
            decompose
        )


def test_miscalibration_is_the_statistic():
    # methods.md 4 (iii): for log loss MCB = lambda / (2 n); 0.4 for lambda of each baseline
    for baseline, statistic in enumerate((1.1250835514, 0.9305895999, 1.1462114203)):
        parts = decompose_log_loss(TOY_Y, TOY_X, baseline=baseline)
        assert parts.miscalibration == pytest.approx(statistic / 32, abs=1e-10), (
            baseline
        )


@pytest.mark.parametrize(("groups", "weighted"), [("argmax", False), ("equal", True)])
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
    for decompose, score in (
        (decompose_log_loss, log_loss),
        (decompose_brier, brier_score),
    ):
        parts = decompose(TOY_Y, TOY_X)
        total = parts.miscalibration - parts.discrimination + parts.uncertainty
        assert parts.score == pytest.approx(total) == pytest.approx(score(TOY_Y, TOY_X))


def test_zeros_are_raised_with_a_warning():
    probs = TOY_X.copy()
    probs[0] = [0.8, 0.2, 0.0]
    with pytest.warns(ZeroProbabilityWarning, match="probabilities of 0") as caught:
        parts = decompose_log_loss(TOY_Y, probs)
    assert caught[0].message.numbers["n_zeros"] == 1
    assert np.isfinite(parts.score)


def test_the_error_of_a_mean_by_hand():
    # Groups sum to 2 and -2 in 4 rows: sqrt(2 / (2 - 1) * (4 + 4)) / 4 = 1.
    deviations, unit = np.array([1.0, 1.0, -1.0, -1.0]), np.ones(4)
    assert standard_error_of_mean(
        deviations, unit, np.array([4, 4, 7, 7])
    ) == pytest.approx((1.0, 2))
    assert standard_error_of_mean(deviations, unit, np.zeros(4, dtype=int)) == (
        np.inf,
        1,
    )
    # Single rows: sqrt(4 / 3 * 4) / 4 = 1 / sqrt(3); a count of 2 is two rows.
    assert standard_error_of_mean(deviations, unit) == pytest.approx(
        (1.0 / np.sqrt(3.0), 4)
    )
    twice = standard_error_of_mean(np.array([1.0, -1.0]), np.array([2.0, 2.0]))
    assert twice == pytest.approx((1.0 / np.sqrt(3.0), 4))


def test_predictions_are_not_changed_and_labels_neither():
    labels = np.array([[0] * 16, [1] * 16])
    labels.setflags(write=False)
    top = TopLabelECE(TOY, 4)
    np.testing.assert_array_equal(top.of_labels(labels), top.of_labels(labels))


def test_a_negative_square_keeps_its_sign():
    assert (
        debiased_squared_calibration_error(TOY_Y, TOY_X, n_bins=4, target="marginal")
        < 0.0
    )
