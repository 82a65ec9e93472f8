"""Sizes: definitions by hand, limits by an independent law, and rows that allow no answer."""

from dataclasses import replace

import numpy as np
import pytest
from independent import draw
from scipy.special import expit, logit
from scipy.stats import chi2, ncx2, norm
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._fit.covariance import with_robust_covariance
from mcllo._fit.fit import fit_predictions
from mcllo._inference.effect_size import (
    MEAN_CHANGE_FOR_POWER,
    estimate_effect_size,
    sample_rows,
    sampling_distribution_rows,
)
from mcllo._inference.effect_size_distribution import (
    MapChanges,
    clear_part,
    covariance_root,
)
from mcllo._inference.levels import chosen_levels, width_at
from mcllo._model.kernel import LogPartition, probabilities_and_log_sums
from mcllo._model.likelihood import identity_theta
from mcllo._utils.statements import suppress_warnings
from mcllo.exceptions import InputError

THETA = np.array([0.2, -0.3, 0.8, 1.5])
NUMBERS = (
    "mean_change",
    "low",
    "high",
    "p95_change",
    "top_mean_change",
    "top_low",
    "top_high",
)
NUMBERS += ("top_p95_change", "gain", "gain_low", "gain_high")


def moved_of(p):
    weight = np.ones(p.n_samples) if p.sample_weight is None else p.sample_weight
    return MapChanges(p.log_odds, weight)


def of_rows(probs, y, seed=1, fit=None, **options):
    """Return the size, warnings about estimates left out."""
    p = Predictions.from_arrays(probs, y, **options)
    with suppress_warnings():
        fit = fit_predictions(p) if fit is None else fit
        return estimate_effect_size(
            p,
            with_robust_covariance(p, fit) if p.groups is not None else fit,
            seed=seed,
        )


def flat(n, c, slope=1.0, seed=0, kind=1.0):
    """Return predictions and labels that follow them with another slope."""
    rng = np.random.default_rng(seed)
    x = np.maximum(rng.dirichlet(np.full(c, kind), n), 1e-9)
    x /= x.sum(axis=1, keepdims=True)
    g = x**slope / (x**slope).sum(axis=1, keepdims=True)
    return x, draw(g, rng), g


# definitions


def test_sizes_of_a_map_by_hand():
    # two rows, two classes: 0.8 -> 0.6 and 0.5 -> 0.5
    theta = np.array([0.0, logit(0.6) / logit(0.8)])
    moved = MapChanges(logit(np.array([[0.8, 0.5]])), np.ones(2))
    change, top, gain = moved.sizes(theta)
    assert change == pytest.approx((0.2 + 0.0) / 2)
    assert top == pytest.approx(0.1)
    assert gain == pytest.approx(
        (0.6 * np.log(0.6 / 0.8) + 0.4 * np.log(0.4 / 0.2)) / 2
    )
    # the first row counts three times
    assert MapChanges(moved.odds, np.array([3.0, 1.0])).sizes(theta)[
        0
    ] == pytest.approx(0.15)


def test_sizes_of_a_map_are_those_of_its_rows():
    p = Predictions.from_arrays(TOY_X, TOY_Y)
    fit = replace(fit_predictions(p), tau=THETA[:2], gamma=THETA[2:])
    g, moved = fit.recalibrate(TOY_X), moved_of(p)
    top = TOY_X.argmax(axis=1)
    own = np.arange(16), top
    expected = [
        0.5 * np.abs(g - TOY_X).sum(axis=1).mean(),
        np.abs(g[own] - TOY_X[own]).mean(),
        (g * np.log(g / TOY_X)).sum(axis=1).mean(),
    ]
    assert moved.sizes(THETA) == pytest.approx(expected)
    change, recalibrated = moved.by_row(THETA)
    assert change == pytest.approx(0.5 * np.abs(g - TOY_X).sum(axis=1))
    assert recalibrated == pytest.approx(g[own])
    assert moved.errors(THETA) == pytest.approx((1.0 - g.max(axis=1)).mean())
    assert moved.sizes(identity_theta(2)) == pytest.approx(np.zeros(3), abs=1e-15)


def test_the_law_is_that_of_linear_rows():
    # an independent way: the derivative of every g by finite differences, row by row
    p = Predictions.from_arrays(TOY_X, TOY_Y)
    moved, rng = moved_of(p), np.random.default_rng(3)
    noise, step = rng.normal(0.0, 0.3, (7, 4)), 1e-5
    g = probabilities_and_log_sums(THETA, moved.odds)[0].copy()
    slope = np.empty((4, *g.shape))
    for j, unit in enumerate(np.eye(4)):
        up = probabilities_and_log_sums(THETA + step * unit, moved.odds)[0].copy()
        slope[j] = (
            up - probabilities_and_log_sums(THETA - step * unit, moved.odds)[0]
        ) / (2 * step)
    apart = np.abs(g + np.einsum("bj,jki->bki", noise, slope) - moved.probs)
    law = moved.sampling_distribution(THETA, noise)
    assert law[:, 0] == pytest.approx(0.5 * apart.sum(axis=1).mean(axis=1), rel=1e-6)
    top = apart[:, moved.top, np.arange(16)].mean(axis=1)
    assert law[:, 1] == pytest.approx(top, rel=1e-6)
    # the gain: to second order in the noise, at any theta
    small = 1e-3 * noise
    curve = np.array([moved.sizes(identity_theta(2) + e)[2] for e in small])
    assert moved.sampling_distribution(identity_theta(2), small)[:, 2] == pytest.approx(
        curve, rel=1e-2
    )


def test_the_gain_of_calibrated_rows_follows_chi_square():
    # 2 n gain = e' H e with e ~ N(0, H^-1): chi-square with as many degrees of freedom
    x, y, _ = flat(400, 3)
    p = Predictions.from_arrays(x, y)
    moved, fit = moved_of(p), fit_predictions(p)
    hessian = LogPartition(p.log_odds)(identity_theta(2)).hessian
    root = covariance_root(np.linalg.inv(hessian))
    noise = np.random.default_rng(0).standard_normal((20_000, 4)) @ root.T
    drawn = 2 * 400 * moved.sampling_distribution(identity_theta(2), noise)[:, 2]
    assert drawn.mean() == pytest.approx(4.0, abs=0.1)
    assert np.quantile(drawn, 0.95) == pytest.approx(chi2.isf(0.05, fit.df), rel=0.03)


# limits


def test_a_clear_size_of_two_classes_has_the_interval_of_the_delta_method():
    # one slope, all rows above 1/2: the size is a smooth function of two parameters
    rng = np.random.default_rng(2)
    x = rng.uniform(0.55, 0.95, 4000)
    g = expit(0.5 * logit(x))
    p = Predictions.from_arrays(
        np.column_stack([x, 1 - x]), (rng.random(4000) > g).astype(int)
    )
    fit = fit_predictions(p)
    size = estimate_effect_size(p, fit, seed=0, n_resamples=2000)
    moved, step = moved_of(p), 1e-5
    slope = [
        (moved.sizes(fit.theta + step * e)[0] - moved.sizes(fit.theta - step * e)[0])
        / (2 * step)
        for e in np.eye(2)
    ]
    error = np.sqrt(slope @ fit.cov_theta @ slope) * norm.isf(0.025)
    plain = moved.sizes(fit.theta)[0]
    assert size.mean_change == pytest.approx(plain, abs=0.002)
    assert (size.low, size.high) == pytest.approx(
        (plain - error, plain + error), abs=0.003
    )
    assert size.low < np.abs(x - g).mean() < size.high
    assert size.top_mean_change == pytest.approx(size.mean_change)  # two classes


def test_limits_are_in_order_and_shrink_with_more_rows():
    widths = []
    for n in (300, 3000, 12_000):
        x, y, g = flat(n, 4, 0.8, seed=2)
        size = of_rows(x, y)
        assert 0.0 <= size.low <= size.mean_change <= size.high <= 1.0
        assert size.top_low <= size.top_mean_change <= size.top_high
        assert size.gain_low <= size.gain <= size.gain_high
        assert size.mean_change <= size.p95_change
        widths.append(size.high - size.low)
    assert widths[0] > 2 * widths[1] > 3 * widths[2]
    truth = 0.5 * np.abs(g - x).sum(axis=1).mean()
    assert size.low < truth < size.high
    assert size.mean_change == pytest.approx(truth, rel=0.1)


def test_rows_that_a_map_was_fitted_to_exclude_no_more_than_chance_allows():
    # the estimate is the identity, so nothing was seen; the bound is that of noise, not 0
    x, y, _ = flat(1000, 3, 0.7)
    p = Predictions.from_arrays(x, y)
    recalibrated = p.with_probs(fit_predictions(p).recalibrate(x))
    size = estimate_effect_size(recalibrated, fit_predictions(recalibrated), seed=0)
    assert size.mean_change == size.low == size.gain == size.p95_change == 0.0
    assert 0.01 < size.high < 0.06
    assert not size.within(0.01)
    assert size.within(0.06)


def test_more_confidence_is_a_wider_interval():
    x, y, _ = flat(1000, 3, 0.7)
    p = Predictions.from_arrays(x, y)
    fit = fit_predictions(p)
    half, most = (
        estimate_effect_size(p, fit, seed=0, confidence=level) for level in (0.5, 0.99)
    )
    assert most.low < half.low < half.high < most.high
    assert half.mean_change == pytest.approx(most.mean_change, rel=0.01)


def test_what_stands_out_is_kept_and_noise_is_shrunk():
    away = np.array([0.0, 0.0, 5.0, 0.1, -0.1, 0.1, 0.1, -0.1, 0.1, 0.1, -0.1, -0.1])
    part = clear_part(away, np.eye(12))
    assert part[2] == pytest.approx(5.0)
    assert np.abs(np.delete(part, 2)).max() < 0.1
    assert clear_part(away, np.zeros((12, 12))) is None  # nothing is known of noise
    dense = np.tile([3.0, -3.0], 6)
    assert clear_part(dense, np.eye(12)) == pytest.approx(dense)


# levels


def test_levels_have_rows_and_are_few():
    rng = np.random.default_rng(0)
    for top in (
        rng.uniform(0.3, 1.0, 5000),
        1.0 - rng.exponential(0.002, 5000),
        np.full(50, 0.34),
    ):
        levels = chosen_levels(top, np.ones(len(top)), np.ones(len(top)))
        assert len(levels) <= 5
        assert levels == sorted(set(levels))
        assert all((np.abs(top - p) <= width_at(p)).sum() >= 30 for p in levels)
    assert chosen_levels(np.full(29, 0.5), np.ones(29), np.ones(29)) == []
    assert chosen_levels(np.full(15, 0.5), np.ones(15), np.full(15, 2.0)) == [0.5]


# weights, samples, groups


def test_counts_are_rows_written_out():
    x, y, _ = flat(300, 3, 0.7)
    times = np.random.default_rng(0).integers(1, 4, 300)
    once = of_rows(x, y, sample_weight=times)
    written = of_rows(np.repeat(x, times, axis=0), np.repeat(y, times))
    for name in NUMBERS:
        assert getattr(once, name) == pytest.approx(getattr(written, name), rel=0.08), (
            name
        )
    assert once.power == pytest.approx(written.power)
    assert [level.says for level in once.levels] == [
        level.says for level in written.levels
    ]


def test_a_sample_of_the_rows_gives_about_the_same_sizes():
    x, y, _ = flat(6000, 3, 0.7)
    p = Predictions.from_arrays(x, y)
    fit = fit_predictions(p)
    rows = np.random.default_rng(0).choice(6000, 2000, replace=False)
    whole, part = (
        estimate_effect_size(p, fit, seed=0),
        estimate_effect_size(p.take(rows), fit, seed=0),
    )
    for name in NUMBERS[:7]:
        assert getattr(part, name) == pytest.approx(getattr(whole, name), rel=0.1), name
    assert part.power == pytest.approx(whole.power, abs=0.02)


def test_many_rows_are_sampled_by_weight():
    x, y, _ = flat(50_000, 3)
    weight = np.ones(50_000)
    weight[:100] = 1000.0
    p = Predictions.from_arrays(x, y, sample_weight=weight)
    rows = sample_rows(p, 0)
    assert rows.n_samples == 20_000
    assert rows.sample_weight is None
    heavy = (rows.probs[:, None, 0] == x[None, :100, 0]).any(axis=1).mean()
    assert heavy == pytest.approx(100_000 / 149_900, abs=1e-3)
    few = sampling_distribution_rows(MapChanges(rows.log_odds, np.ones(20_000)))
    assert few.sizes(THETA) == pytest.approx(moved_of(rows).sizes(THETA), rel=0.1)


def test_dependent_rows_have_wider_intervals_and_less_power():
    x, y, _ = flat(200, 3, 0.7)
    groups = np.repeat(np.arange(200), 5)
    x, y = np.repeat(x, 5, axis=0), np.repeat(y, 5)
    blind, seeing = of_rows(x, y), of_rows(x, y, groups=groups)
    assert seeing.high - seeing.low > 1.5 * (blind.high - blind.low)
    assert seeing.power < blind.power
    once = of_rows(x[::5], y[::5])
    assert seeing.power == pytest.approx(once.power, abs=0.1)
    assert seeing.high == pytest.approx(once.high, rel=0.2)


# power


def test_power_is_that_of_the_noncentral_chi_square():
    x, y, _ = flat(150, 3)
    size = of_rows(x, y)
    p = Predictions.from_arrays(x, y)
    moved, found = moved_of(p), []
    for slopes in (np.linspace(1.0, 4.0, 601), np.linspace(1.0, 0.05, 601)):
        sizes = np.array([moved.sizes(np.array([0, 0, s, s])) for s in slopes])
        at = np.argmax(sizes[:, 0] >= MEAN_CHANGE_FOR_POWER)
        found.append(ncx2.sf(chi2.isf(0.05, 4), 4, 2 * 150 * sizes[at, 2]))
    assert size.power == pytest.approx(min(found), abs=0.005)


# rows that allow no interval, or hardly one


def test_separated_labels_have_a_penalised_size_and_a_rough_bound():
    size = of_rows(TOY_X, TOY_X.argmax(axis=1))
    assert size.method == "ridge"
    assert size.low == size.gain_low == 0.0
    # all are right where 60 % were promised: no size is below that
    assert size.mean_change == pytest.approx(size.in_the_large)
    assert size.mean_change < size.high < 0.7
    assert not size.within(0.05)
    said = {s.kind: s.text for s in size.statements()}
    assert "at most" in said["effect_size"]
    assert "effect_size.p95" not in said
    assert said["effect_size.reason"] == f"Sizes are rough: {size.reason}."


def test_sizes_of_a_penalised_map_are_corrected_for_chance():
    # calibrated rows of four classes, the last expected in half a row and absent: the median of
    # the map's own sizes is .035
    found = []
    for seed in range(12):
        rng = np.random.default_rng([seed, 6])
        x = np.maximum(rng.dirichlet([1.0, 1.0, 1.0, 0.005], 300), 1e-6)
        x /= x.sum(axis=1, keepdims=True)
        y = draw(x, rng)
        if (y == 3).any():
            continue
        size = of_rows(x, y, classes=range(4))
        assert size.method == "ridge"
        found.append(
            [size.mean_change, size.top_mean_change, size.gain, size.p95_change]
        )
        assert size.mean_change < size.high
    assert len(found) > 5
    assert np.median(found, axis=0) == pytest.approx([0.0] * 4, abs=0.005)
    x, y, g = flat(300, 3, slope=0.5)
    rare = np.column_stack([0.999 * x, np.full(300, 0.001)])
    size = of_rows(rare, y, classes=range(4))  # what is off is still seen
    assert size.method == "ridge"
    assert size.mean_change == pytest.approx(
        0.5 * np.abs(g - x).sum(axis=1).mean(), abs=0.04
    )


def test_too_many_parameters_have_a_size_and_no_interval():
    p = Predictions.from_arrays(TOY_X, TOY_Y)
    fit = replace(fit_predictions(p), information="blocks", cov_theta=np.empty((0, 0)))
    size = estimate_effect_size(p, fit, seed=0)
    assert size.method == "blocks"
    assert size.mean_change == pytest.approx(moved_of(p).sizes(fit.theta)[0])
    assert np.isnan([size.low, size.high, size.top_high, size.gain_high]).all()
    assert not size.within(0.9)
    assert "set no bounds" in size.statements()[0].text


EDGES = {
    "one row": ([[0.7, 0.2, 0.1]], [0]),
    "two rows of two classes": ([[0.7, 0.3], [0.4, 0.6]], [0, 0]),
    "a class that never occurs": (TOY_X, np.where(TOY_Y == 1, 0, TOY_Y)),
    "all rows alike": (np.tile([0.5, 0.3, 0.2], (40, 1)), np.arange(40) % 3),
    "all rows uniform": (np.full((40, 4), 0.25), np.arange(40) % 4),
    "zeros": (np.where(TOY_X < 0.11, 0.0, TOY_X), TOY_Y),
    "tiny probabilities": (
        np.array([[1 - 2e-300, 1e-300, 1e-300], [1e-300, 1 - 2e-300, 1e-300]] * 20),
        [0, 1] * 19 + [1, 0],
    ),
}


def test_no_rows_are_too_strange():
    for case, (probs, y) in EDGES.items():
        with suppress_warnings():
            size = of_rows(
                probs, y, normalize=True, classes=list(range(np.shape(probs)[1]))
            )
        assert size.to_dict()["method"] in ("ray", "ridge", "blocks"), case
        for name in NUMBERS:
            value = getattr(size, name)
            assert np.isnan(value) or value >= 0.0, (case, name)
        assert all(
            said.text and "nan" not in said.text for said in size.statements()
        ), case


def test_forty_classes():
    x, y, g = flat(1500, 40, 0.7, kind=0.3)
    size = of_rows(x, y)
    assert size.low < 0.5 * np.abs(g - x).sum(axis=1).mean() < size.high
    assert size.levels


def test_two_classes_do_not_depend_on_the_baseline():
    x, y, _ = flat(500, 2, 0.7)
    first, last = (of_rows(x, y, baseline=b) for b in (0, 1))
    for name in NUMBERS:
        assert getattr(first, name) == pytest.approx(
            getattr(last, name), rel=0.1, abs=0.002
        ), name


# words


def test_sentences_have_as_many_digits_as_are_known():
    x, y, _ = flat(1000, 3, 0.7)
    size = replace(
        of_rows(x, y), mean_change=0.0312, low=0.0251, high=0.0372, levels=()
    )
    size = replace(size, at_least=0.0)
    lead = "If the error is one of shifts and slopes of the log odds, "
    words = f"{lead}3.1 percentage points of probability stand on the wrong classes on average"
    assert str(size.statements()[0]) == f"{words} (95 % confidence: 2.5 to 3.7)."
    none = replace(size, low=0.0, high=0.0123)
    assert "at most 1.2 percentage points" in none.statements()[0].text
    assert not any("at most" in s.text for s in none.statements(bounded=False)[:1])
    small = replace(size, mean_change=2e-4, low=1e-4, high=4e-4).statements()[0]
    assert "less than 0.1 percentage points" in small.text
    least = replace(size, at_least=0.0212).statements()[0]
    assert least.text.startswith("At least 2.1 percentage points of probability")
    assert "do not describe these rows" in size.statements(fits=False)[0].text
    level = of_rows(x, y).levels[0]
    said = replace(
        size, levels=(replace(level, says=0.94, right=0.84, low=0.81, high=0.87),)
    )
    (level,) = (s for s in said.statements() if s.kind == "effect_size.level")
    assert str(level) == "When it says 94 %, it is right about 84 % (81 to 87)."
    assert level.numbers["says"] == 0.94


# errors


def test_what_is_refused():
    p = Predictions.from_arrays(TOY_X, TOY_Y)
    fit = fit_predictions(p)
    for options, words in [
        ({"confidence": 1.0}, r"confidence must lie in \(0, 1\)"),
        ({"n_resamples": 0}, "n_resamples must be at least 1"),
    ]:
        with pytest.raises(InputError, match=words):
            estimate_effect_size(p, fit, **options)
