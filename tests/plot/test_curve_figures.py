"""Figures of curves without bins: numbers of their artists, and readable words."""

from dataclasses import replace

import numpy as np
import pytest
from figure_checks import assert_readable, assessment, hostile, line, predictions
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.figure import Figure

import mcllo
from mcllo import isotonic_curve, plot, reliability_curve, smooth_curve
from mcllo._utils.formatting import format_number
from mcllo.exceptions import InputError
from mcllo.plot import reliability, reliability_by_class
from mcllo.plot._reliability_curves import (
    MIN_ROWS,
    draw_hits_and_misses,
    draw_isotonic_curve,
    range_of_many_rows,
)
from mcllo.plot._reliability_diagram import N_OUTCOMES, class_errors_for_curve

CURVES = ["smooth", "isotonic"]


def collection(ax, kind, label):
    (found,) = (
        part
        for part in ax.collections
        if isinstance(part, kind) and part.get_label() == label
    )
    return found


def bars(ax, label):
    (found,) = (part for part in ax.containers if part.get_label() == label)
    return np.array([bar.get_height() for bar in found])


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("n_classes", [3, pytest.param(40, marks=pytest.mark.slow)])
def test_figures_are_readable(curve, n_classes):
    a = assessment(n_classes)
    ax = reliability(a, curve=curve, caption=n_classes == 40)
    assert ax.get_ylabel() == "Observed frequency"
    words = assert_readable(ax)
    assert "came true" in words
    assert "did not" in words
    axes = reliability_by_class(a, curve=curve, caption=n_classes == 3)
    assert len(axes) == min(n_classes, 12)
    name = {"smooth": "calibration error", "isotonic": "MCB"}[curve]
    folded = (
        f"The 12 of {n_classes} classes with the largest {name}; that of the others"
    )
    assert (folded in assert_readable(axes)) == (n_classes > 12)


@pytest.mark.parametrize("curve", CURVES)
def test_few_rows(curve):
    tiny = mcllo.assess(
        [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]], [0, 0, 1, 1], seed=0
    )
    assert_readable(reliability(tiny, curve=curve))


@pytest.mark.slow
@pytest.mark.parametrize("curve", CURVES)
def test_hostile_names(curve):
    assert_readable(reliability_by_class(hostile(), curve=curve))


def test_the_smooth_curve_is_drawn_with_its_band_and_bins():
    a = assessment(3)
    curve, bins = smooth_curve(a.predictions), reliability_curve(a.predictions)
    ax = reliability(a, curve="smooth")
    part = range_of_many_rows(a.predictions, curve)
    shown = curve.predicted[part]
    np.testing.assert_array_equal(
        line(ax, "_curve"), np.column_stack([shown, curve.observed[part]])
    )
    band = collection(ax, PolyCollection, "_band").get_paths()[0].vertices
    for x, y in ((shown, curve.low[part]), (shown, curve.high[part])):
        edge = {(round(a, 9), round(b, 9)) for a, b in zip(x, y, strict=True)}
        assert edge <= {(round(a, 9), round(b, 9)) for a, b in band}
    used = bins.counts >= 10
    assert (bins.counts[~used] > 0).any()  # that of few rows has no point
    points = collection(ax, PathCollection, "_bins")
    expected = np.column_stack([bins.mean_predicted, bins.observed])[used]
    np.testing.assert_allclose(points.get_offsets(), expected)
    sizes = points.get_sizes()
    assert (np.argsort(sizes) == np.argsort(bins.counts[used])).all()
    assert f"ICI {format_number(curve.ici)}" in ax.texts[0].get_text()


def test_the_isotonic_curve_is_drawn_with_its_band_and_what_is_outside():
    a = assessment(3)
    curve = isotonic_curve(a.predictions, seed=a.details.seed)
    assert curve.outside.any()
    ax = reliability(a, curve="isotonic")
    steps = line(ax, "_curve")
    np.testing.assert_allclose(steps[::2, 0], curve.blocks["from"])
    np.testing.assert_allclose(steps[1::2, 0], curve.blocks["to"])
    np.testing.assert_allclose(steps[::2, 1], curve.blocks["observed"])
    drawn = np.concatenate(
        [part.get_xdata() for part in ax.lines if part.get_label() == "_outside"]
    )
    outside = curve.predicted[curve.outside]
    assert drawn.min() <= outside.min() <= outside.max() <= drawn.max()
    words = ax.texts[0].get_text()
    assert words.startswith(
        f"Miscalibration {format_number(curve.brier.miscalibration)} (calib"
    )
    band = collection(ax, PolyCollection, "_band").get_paths()[0].vertices
    assert band[:, 1].min() == curve.band_low.min()


def test_without_a_band_nothing_is_grey():
    rows = predictions(3, 200)
    weighted = mcllo.Predictions.from_arrays(
        rows.probs, rows.codes, sample_weight=np.full(200, 1.5), weight_kind="survey"
    )
    a = mcllo.assess(weighted, seed=0)
    ax = reliability(a, curve="isotonic")
    assert not [part for part in ax.collections if part.get_label() == "_band"]
    assert "if calibrated" not in assert_readable(ax)
    assert "They assume independent rows" in plot.caption(
        "reliability", a, curve="isotonic"
    )
    assert_readable(reliability(a, curve="smooth"))


def test_a_single_point_outside_can_be_seen():
    curve = isotonic_curve(
        [[0.5, 0.5]] * 30 + [[0.1, 0.9]] * 30,
        [0] * 15 + [1] * 15 + [0] * 30,
        label=1,
        seed=0,
    )
    assert curve.outside.sum() >= 1
    ax = Figure().subplots()
    draw_isotonic_curve(
        ax, replace(curve, band_low=np.array([0.0, 0.6]), band_high=np.ones(2))
    )
    (thick,) = (part for part in ax.lines if part.get_label() == "_outside")
    assert len(thick.get_xdata()) == 2


def test_outcomes_are_square_roots_of_counts():
    rows = predictions(3, 500)
    bins = reliability_curve(rows, n_bins=N_OUTCOMES)
    ax = Figure().subplots()
    draw_hits_and_misses(ax, bins)
    hits = np.nan_to_num(bins.counts * bins.observed)
    np.testing.assert_allclose(bars(ax, "_hits") ** 2, hits, atol=1e-9)
    np.testing.assert_allclose(bars(ax, "_misses") ** 2, bins.counts - hits, atol=1e-9)
    top, foot = (text.get_text() for text in ax.texts)
    assert top == f"came true\n{hits.sum():.0f}"
    assert foot == f"did not\n{500 - hits.sum():.0f}"


@pytest.mark.parametrize("curve", CURVES)
def test_classes_come_worst_first(curve):
    a = assessment(5)
    name, sizes = class_errors_for_curve(a.predictions, curve)
    order = np.argsort(-np.array(sizes), kind="stable")
    axes = reliability_by_class(a, curve=curve, max_classes=2)
    assert [ax.get_title(loc="left") for ax in axes] == [str(k) for k in order[:2]]
    below = axes[0].texts[-1].get_text()
    if curve == "smooth":
        found = smooth_curve(a.predictions, label=int(order[0]))
        chance = format_number(found.ici_null)
        assert below == f"ICI {format_number(found.ici)} (chance: {chance})"
    else:
        assert below == f"{name} {format_number(max(sizes))}"
    first = reliability_by_class(a, curve=curve, max_classes=1, order=[3])
    assert first[0].get_title(loc="left") == "3"


def test_captions_say_what_is_drawn():
    a = assessment(3)
    told = {
        curve: plot.caption("reliability", a, curve=curve)
        for curve in (*CURVES, "bins")
    }
    assert "band holds the curves that these labels" in told["smooth"]
    assert "best one that never falls" in told["isotonic"]
    assert told["smooth"] == plot.caption("reliability", a)
    assert "Grey boxes" in told["bins"]
    assert "each class came true" in plot.caption(
        "reliability_by_class", a, curve="smooth"
    )


def test_an_unknown_curve_is_refused():
    with pytest.raises(
        InputError, match="curve must be 'smooth', 'isotonic' or 'bins'; got"
    ):
        reliability(assessment(3), curve="loess")


def test_a_smooth_curve_runs_from_the_tenth_smallest_to_the_tenth_largest():
    # 10 / max(999, 200) = 0.01001: quantiles of 0.001, ..., 0.999 are 0.01099 and 0.98901
    x = np.arange(1, 1000) / 1000.0
    y = (np.random.default_rng(0).random(999) < x).astype(int)
    curve = smooth_curve(np.column_stack([1 - x, x]), y, label=1)
    rows = mcllo.Predictions.from_arrays(np.column_stack([1 - x, x]), y)
    shown = curve.predicted[range_of_many_rows(rows, curve)]
    step = np.diff(curve.predicted).max()
    assert 0.01099 - step <= shown[0] <= 0.011
    assert 0.989 <= shown[-1] <= 0.98902 + step
    assert range_of_many_rows(None, curve) == slice(0, len(curve.predicted))


def test_no_line_runs_through_bins_of_few_rows():
    # by hand: 20 rows at .95, 3 at .75, 20 at .55
    x = np.repeat([0.95, 0.75, 0.55], [20, 3, 20])
    y = np.tile([1, 0], 22)[:43]
    ax = reliability(np.column_stack([1 - x, x]), y, label=1, curve="bins")
    path = line(ax, "_path")
    np.testing.assert_array_equal(np.isnan(path[:, 1]), [False, True, False])
    np.testing.assert_allclose(line(ax, "_few"), [[0.75, y[20:23].mean()]])
    assert f"< {MIN_ROWS} rows" in assert_readable(ax)
    joined = reliability(
        np.column_stack([1 - x, x]), y, label=1, curve="bins", min_rows=1
    )
    assert not np.isnan(line(joined, "_path")).any()
    assert "< 1 rows" not in assert_readable(joined)


@pytest.mark.parametrize("curve", [*CURVES, "bins"])
def test_arrays_are_drawn_as_their_assessment_is(curve):
    a = assessment(3)
    rows = a.predictions
    seed = a.details.seed
    for label in (None, 1):
        one = reliability(a, curve=curve, label=label)
        two = reliability(rows.probs, rows.codes, curve=curve, label=label, seed=seed)
        for name in ("_curve", "_path"):
            np.testing.assert_array_equal(line(one, name), line(two, name))
        assert one.get_title(loc="left") == two.get_title(loc="left")
    assert two.get_title(loc="left") == "Reliability of 1"
    assert two.figure.axes[-1].get_xlabel() == "Predicted probability of 1"
    panels = reliability_by_class(rows.probs, rows.codes, curve=curve, seed=seed)
    given = reliability_by_class(a, curve=curve)
    assert [ax.texts[-1].get_text() for ax in panels] == [
        ax.texts[-1].get_text() for ax in given
    ]


def test_curves_are_drawn_as_they_are():
    rows = predictions(3, 500)
    for curve in (
        reliability_curve(rows, label=2),
        smooth_curve(rows, label=2),
        isotonic_curve(rows, label=2, seed=0),
    ):
        ax = reliability(curve, caption=isinstance(curve, mcllo.SmoothCurve))
        assert ax.get_title(loc="left") == "Reliability of 2"
        name = "_path" if isinstance(curve, mcllo.ReliabilityCurve) else "_curve"
        assert len(line(ax, name)) > 2
        assert_readable(ax)
        with pytest.raises(InputError, match=r"y must not be given beside a .*Curve;"):
            reliability(curve, [0, 1])


def test_what_a_result_holds_is_not_given_beside_it():
    a = assessment(3)
    with pytest.raises(InputError, match="y must not be given beside a Assessment"):
        reliability(a, [0])
    with pytest.raises(InputError, match="classes must not be given beside"):
        reliability_by_class(a, classes=[0, 1, 2])
    with pytest.raises(InputError, match="label must not be given beside a dict"):
        reliability({"one": a}, label=1)
    with pytest.raises(InputError, match=r"swapped. Call with \(probs, y\)"):
        reliability(a.predictions.codes, a.predictions.probs)


def test_words_of_two_diagrams_beside_each_other_do_not_collide():
    figure = Figure(figsize=(8, 4))  # as plt.subplots makes it, without a layout
    left, right = figure.subplots(1, 2)
    reliability(assessment(3), ax=left)
    reliability(assessment(3), ax=right, curve="isotonic")
    words = assert_readable(figure)
    assert "The most probable class" in words
    assert "ICI" in words
    assert "MCB" in words
