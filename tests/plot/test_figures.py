"""Every figure: do its artists hold the numbers of the result, and can its words be read?"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from figure_checks import (
    assert_readable,
    assessment,
    comparison,
    hostile,
    line,
    lines,
    predictions,
    separated,
    words,
)
from matplotlib.figure import Figure

import mcllo
from mcllo import MCLLOMap, Predictions, baseline_sensitivity, reliability_curve
from mcllo import nested_models as climb
from mcllo._utils.formatting import Table, format_number
from mcllo.exceptions import InputError
from mcllo.plot import (
    baselines,
    calibration_map,
    comparison_dots,
    ece_boxplot,
    ece_difference,
    nested_models,
    parameters,
    power,
    reliability,
    reliability_by_class,
)
from mcllo.plot import comparison as draw
from mcllo.plot._comparison import (
    MIN_SHOWN_PVALUE,
    method_label,
    order_rows,
    pvalue_label,
)
from mcllo.plot._details import (
    class_against_baseline_curve,
    classes_far_from_identity,
    format_sufficiency_pvalue,
    select_baseline_columns,
)
from mcllo.plot._reliability_curves import (
    STRIP_HEIGHT,
    bins_legend,
    draw_binned_curve,
    draw_count_bars,
    short_count,
)
from mcllo.plot._reliability_diagram import class_errors
from mcllo.plot._words import SMALLEST_CHANGE, nested_model_label
from mcllo.simulate import PowerCell, PowerStudy

slow = pytest.mark.slow


@pytest.mark.parametrize(
    "n_classes", [3, *(pytest.param(n, marks=slow) for n in (2, 10, 40, 100))]
)
def test_diagrams_maps_and_forests_are_readable(n_classes):
    a, many = assessment(n_classes), n_classes > 12
    ax = reliability(a, curve="bins", caption=n_classes == 3)
    assert [part.get_ylabel() for part in ax.figure.axes] == [
        "Observed frequency",
        "Rows",
    ]
    assert (
        ax.figure.axes[1].get_xlabel()
        == "Predicted probability of the most probable class"
    )
    assert_readable(ax)

    axes = reliability_by_class(a, caption=n_classes == 100)
    assert len(axes) == min(n_classes, 12)
    folded = f"The 12 of {n_classes} classes with the largest calibration error"
    assert (folded in assert_readable(axes)) == many

    left, right = parameters(a.fit, caption=n_classes == 10)
    assert (left.get_xlabel(), right.get_xlabel()) == ("delta (log scale)", "gamma")
    assert left.get_xscale() == "log"
    assert len(left.get_yticks()) == min(n_classes - 1, 20)
    folded = f"The 20 of {n_classes - 1} classes farthest from 1"
    assert (folded in assert_readable([left])) == (n_classes > 21)

    ax = calibration_map(a.fit, caption=n_classes == 10)
    assert (
        len(ax.lines) == n_classes
    )  # one for each class but the baseline, and the diagonal
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("As predicted", "After recalibration")
    assert (f"{n_classes - 8} others" in assert_readable(ax)) == (n_classes > 8)


@pytest.mark.parametrize(
    ("draw", "result"),
    [
        (reliability, lambda: assessment(3)),
        (nested_models, lambda: climbed()),
        (power, lambda: grid()),
        pytest.param(calibration_map, lambda: assessment(3).fit, marks=slow),
        pytest.param(ece_boxplot, lambda: grid(), marks=slow),
    ],
)
def test_a_given_axes_is_used(draw, result):
    figure = Figure(figsize=(9, 6), layout="constrained")
    ax = figure.subplots()
    assert draw(result(), ax=ax, caption=True) is ax
    assert figure.axes == [ax]
    assert figure.get_size_inches().tolist() == [9.0, 6.0]
    assert_readable(figure)


def test_a_given_axes_is_divided():
    figure = Figure(figsize=(9, 4), layout="constrained")
    ax = figure.subplots(1, 2)[0]
    assert ax.child_axes == parameters(assessment(3).fit, ax=ax, caption=True) != []
    assert figure.get_size_inches().tolist() == [9.0, 4.0]
    assert_readable(figure)


@slow  # test_plot.py draws one figure with these names
def test_hostile_names():
    a, script = hostile(), "<script>alert('1')</scr…"
    axes = reliability_by_class(a)
    assert "<script>alert('1')" in assert_readable(axes)
    assert len({ax.get_title(loc="left") for ax in axes}) == 12
    assert script in assert_readable(parameters(a.fit))
    ax = calibration_map(a.fit)
    assert_readable(ax)
    assert not any(text.get_parse_math() for text in ax.get_legend().get_texts())
    assert script in assert_readable(baselines(a))
    assert_readable(nested_models(a))


def test_the_ece_stands_beside_its_null():
    a = assessment(3)
    low, high = (
        format_number(a.null_distributions["ece"].low),
        format_number(a.null_distributions["ece"].high),
    )
    ece = f"ECE {format_number(a.metrics['ece'])}"
    null = f"{ece}; calibrated predictions like these show {low} to {high}"
    assert reliability(a, curve="bins").texts[0].get_text() == null
    unknown = replace(a, null_distributions={})
    assert reliability(unknown, curve="bins").texts[0].get_text() == ece


def test_classes_come_worst_first():
    a = assessment(5)
    errors = class_errors(a.predictions)
    assert np.mean(errors) == pytest.approx(a.metrics["classwise_ece"])
    order = np.argsort(-np.array(errors), kind="stable")
    look = {"curve": "bins", "min_rows": 1}
    axes = reliability_by_class(a, max_classes=2, columns=1, **look)
    assert [ax.get_title(loc="left") for ax in axes] == [str(k) for k in order[:2]]
    assert axes[0].get_subplotspec().get_gridspec().ncols == 1
    curve = reliability_curve(a.predictions, label=int(order[0]))
    path, used = line(axes[0], "_path"), curve.counts > 0
    np.testing.assert_array_equal(path[:, 1], curve.observed[used])
    rest = format_number(
        sorted(errors)[2]
    )  # the largest of the three that are not drawn
    assert f"that of the others is at most {rest}." in " ".join(words(axes).split())


def test_tiny_data_and_a_class_without_spread():
    tiny = mcllo.assess(
        [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]], [0, 0, 1, 1], seed=0
    )
    assert_readable(reliability_by_class(tiny))
    # z of a class is 0 / 0 where its probabilities are all 0 or 1
    columns = tiny.in_the_large.to_dict()
    columns["z"][0] = float("nan")
    assert "z -" in words(
        reliability_by_class(replace(tiny, in_the_large=Table(columns)), curve="bins")
    )


def axes_of(curve, strip=True):
    ax = Figure().subplots()
    draw_binned_curve(ax, curve, strip=strip, min_rows=1)
    return ax


def boxes(ax, label):
    (found,) = (part for part in ax.collections if part.get_label() == label)
    return np.array([path.get_extents().bounds for path in found.get_paths()])


def test_by_hand():
    # confidences .9 .8 | .6 .7 in the bins (.75, 1] and (.5, .75]; hits 1 1 | 1 0
    p = Predictions.from_arrays(
        [[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.7, 0.3]], [0, 0, 1, 1]
    )
    ax = axes_of(reliability_curve(p, n_bins=4))
    np.testing.assert_allclose(line(ax, "_inside"), [[0.65, 0.5], [0.85, 1.0]])
    assert line(ax, "_outside") is None
    np.testing.assert_allclose(
        boxes(ax, "_boxes"), [[0.5, 0, 0.25, 1], [0.75, 0.5, 0.25, 0.5]]
    )


@pytest.mark.parametrize("binning", ["width", "mass"])
def test_artists_hold_the_numbers_of_the_curve(binning):
    curve = reliability_curve(predictions(3, 500), n_bins=15, binning=binning)
    ax, used, out = axes_of(curve), curve.counts > 0, curve.outside
    points = np.column_stack([curve.mean_predicted, curve.observed])
    np.testing.assert_array_equal(line(ax, "_outside"), points[out])
    np.testing.assert_array_equal(line(ax, "_inside"), points[used & ~out])
    drawn = boxes(ax, "_boxes")
    assert (drawn[:, 0] <= curve.mean_predicted[used]).all()
    assert (drawn[:, 0] + drawn[:, 2] >= curve.mean_predicted[used]).all()
    assert drawn[:, 2].max() <= 0.1 + 1e-12
    np.testing.assert_allclose(drawn[:, 1], curve.band_low[used])
    np.testing.assert_allclose(drawn[:, 1] + drawn[:, 3], curve.band_high[used])
    bars = boxes(ax, "_counts")
    heights = bars[:, 3] / bars[:, 3].max()
    np.testing.assert_allclose(heights, curve.counts[used] / curve.counts.max())
    assert bars[:, 1].tolist() == [-STRIP_HEIGHT] * used.sum()
    assert (bars[:, 1] + bars[:, 3]).max() < 0.0


def test_many_points_are_not_joined_and_without_bands_there_are_intervals():
    curve = reliability_curve(predictions(3, 500), n_bins=60, level=0.9)
    ax = axes_of(curve)
    assert line(ax, "_path") is None
    assert len(lines(ax, "_inside", "_outside")) == (curve.counts > 0).sum() > 20
    assert bins_legend(curve)[0].get_label() == "90 % of points, if calibrated"
    p = predictions(3, 100)
    curve = reliability_curve(replace(p, sample_weight=np.full(100, 0.5)), n_bins=5)
    (drawn,) = (
        part for part in axes_of(curve).collections if part.get_label() == "_intervals"
    )
    ends = np.array([segment[:, 1] for segment in drawn.get_segments()])
    np.testing.assert_allclose(
        ends, np.column_stack([curve.low, curve.high])[curve.counts > 0]
    )
    assert [handle.get_label() for handle in bins_legend(curve)] == [
        "with 95 % interval"
    ]


def counted(predictions, n_bins):
    """Return the curve and the axes of its counts."""
    ax, curve = Figure().subplots(), reliability_curve(predictions, n_bins=n_bins)
    draw_count_bars(ax, curve)
    return curve, ax


def test_counts_carry_their_numbers_where_there_is_room():
    curve, ax = counted(predictions(3, 400), 10)
    numbers = [int(text.get_text()) for text in ax.texts if text.get_text()]
    assert numbers == curve.counts[curve.counts > 0].astype(int).tolist()
    _, narrow = counted(predictions(3, 400), 40)
    assert not narrow.texts
    assert narrow.yaxis.get_major_locator()().tolist()[0] == 0.0


def test_weights_are_named():
    rows = [[0.9, 0.1], [0.2, 0.8]]
    # weights that sum to 0.5 + 1.5 = 2 are called rows
    for weight, name, word in ((1.5, "Rows", "2"), (1.25, "Weight", "1.8")):
        _, ax = counted(
            Predictions.from_arrays(rows, [0, 1], sample_weight=[0.5, weight]), 2
        )
        assert ax.get_ylabel() == name
        assert [text.get_text() for text in ax.texts] == ["", word]


def test_short_count():
    counts = (0, 999, 9999, 10_000, 999_400, 0.5, 3.6e6, 1e12, 250.5)
    words = ["0", "999", "9,999", "10k", "999k", "0.5", "4M", "1000G", "250"]
    assert [short_count(count) for count in counts] == words


def test_marks_are_the_estimates():
    fit = assessment(5).fit
    left, right = parameters(fit)
    for ax, values in ((left, fit.delta), (right, fit.gamma)):
        marks = lines(ax, "_includes", "_excludes")
        np.testing.assert_allclose(marks[np.argsort(marks[:, 1]), 0], values)
    interval = fit.confidence_interval()
    (drawn,) = (part for part in right.collections if part.get_label() == "_intervals")
    ends = np.array([segment[:, 0] for segment in drawn.get_segments()])
    np.testing.assert_allclose(ends, interval.gamma)
    excluded = (interval.gamma[:, 0] > 1) | (interval.gamma[:, 1] < 1)
    assert line(right, "_excludes")[:, 1].tolist() == np.flatnonzero(excluded).tolist()


def test_the_worst_classes_are_chosen_in_column_order():
    fit = assessment(5).fit
    z = np.maximum(np.abs(fit.tau / fit.se_tau), np.abs((fit.gamma - 1) / fit.se_gamma))
    assert classes_far_from_identity(fit, 2) == sorted(np.argsort(-z)[:2].tolist())
    left, _ = parameters(fit, max_classes=2)
    assert [text.get_text() for text in left.get_yticklabels()] == [
        str(j) for j in classes_far_from_identity(fit, 2)
    ]
    assert classes_far_from_identity(fit, 0) == classes_far_from_identity(
        fit, 1
    )  # nobody is left out


def test_the_section_is_the_map():
    # rows that differ only in the third class have the same share before and after
    fit = assessment(3).fit
    p, recalibrated = class_against_baseline_curve(fit, 0)
    third = 0.3
    rows = np.column_stack(
        [p * (1 - third), np.full(len(p), third), (1 - p) * (1 - third)]
    )
    g = fit.recalibrate(rows)
    np.testing.assert_allclose(recalibrated, g[:, 0] / (g[:, 0] + g[:, 2]), rtol=1e-9)
    np.testing.assert_allclose(
        line(calibration_map(fit), "_0"), np.column_stack([p, recalibrated])
    )


def test_a_separated_fit_says_so():
    a = separated()
    assert a.fit.separated
    left, right = parameters(a.fit)
    text = assert_readable([left])
    assert line(right, "_includes").size == line(right, "_excludes").size == 0
    assert "no interval" in text
    for figure in ([left], calibration_map(a.fit)):
        assert "The estimates do not exist" in assert_readable(figure)


def test_methods_in_the_order_and_under_the_names_that_are_asked_for():
    c = comparison()
    first, second = (row.method for row in c.judged[:2])
    axes = draw(c, names={second: "B", first: "A"})
    assert [ax.get_title(loc="left") for ax in axes] == ["B", "A"]
    assert len(draw(c, n_bins=1)) == len(
        c.judged
    )  # one bin has its middle in neither half
    with pytest.raises(InputError, match="methods of this comparison; got 'nobody'"):
        draw(c, names={"nobody": "N"})


def test_one_panel_per_method_each_with_its_numbers():
    c = comparison()
    axes = draw(c, curve="bins", min_rows=1, caption=True)
    rows = order_rows(c)
    assert [ax.get_title(loc="left") for ax in axes] == [
        method_label(row.method) for row in rows
    ]
    assert rows[0].method == "uncalibrated"  # and then the best
    losses = [row.log_loss for row in rows[1:]]
    assert losses == sorted(losses)
    for ax, row in zip(axes, rows, strict=True):
        below = ax.texts[-1].get_text()
        assert below == f"ECE {format_number(row.ece)}, p {pvalue_label(row)}"
        curve = reliability_curve(c.recalibrated[row.method])
        used = curve.counts > 0
        np.testing.assert_array_equal(line(ax, "_path")[:, 1], curve.observed[used])
    assert "The same 400 rows" in assert_readable(axes)


def test_a_bound_says_that_it_is_one():
    row = comparison().judged[0]
    assert (
        pvalue_label(replace(row, pvalue=1e-20, pvalue_method="bound")) == "≤ 1.0e-20"
    )
    assert (
        pvalue_label(replace(row, pvalue=1e-20, pvalue_method="exact")) == "= 1.0e-20"
    )
    assert pvalue_label(replace(row, pvalue=0.0, pvalue_method="bound")) == "< 1e-300"


def marks(ax, *labels):
    """Return row -> x of the marks with these labels."""
    found = [line(ax, label) for label in labels]
    return {int(y): x for part in found if part is not None for x, y in part}


def test_dots_are_the_numbers_of_the_rows():
    c = comparison()
    rows = sorted(c.judged, key=lambda row: row.log_loss)
    test, error, loss = comparison_dots(c, caption=True)
    assert [text.get_text() for text in test.get_yticklabels()] == [
        method_label(row.method) for row in rows
    ]
    ps = {k: row.pvalue for k, row in enumerate(rows) if row.pvalue >= MIN_SHOWN_PVALUE}
    assert marks(test, "_kept", "_rejected") == ps
    assert marks(test, "_rejected") == {k: p for k, p in ps.items() if p <= 0.05}
    fixed = {k: row.pvalue_corrected for k, row in enumerate(rows)}
    assert marks(test, "_corrected") == {
        k: p for k, p in fixed.items() if p is not None and p >= MIN_SHOWN_PVALUE
    }
    assert marks(error, "_errors") == {k: row.ece for k, row in enumerate(rows)}
    drawn = marks(loss, "_includes", "_excludes")
    assert drawn[0] == 0.0
    worse = c.recommendation.differences
    assert [rows[k].method for k in range(1, len(rows))] == [d.method for d in worse]
    assert all(
        drawn[k + 1] == d.difference for k, d in enumerate(worse) if k + 1 in drawn
    )
    excluded = {rows[k].method for k in marks(loss, "_excludes")}
    assert excluded.isdisjoint(c.recommendation.ties)
    assert [ax.get_xlabel() for ax in (test, error, loss)] == [
        "p-value (log scale)",
        "ECE (probability)",
        "Log loss above the best (nats)",
    ]
    assert_readable([test])


def test_tiny_p_values_and_huge_numbers_are_arrows():
    c = comparison()
    rows = [
        replace(row, pvalue=1e-40) if row.method == "mcllo" else row for row in c.rows
    ]
    rows = [
        replace(row, ece=0.9 if row.method == "histogram" else 0.02) for row in rows
    ]
    changed = replace(c, rows=tuple(rows))
    axes = comparison_dots(changed)
    place = [row.method for row in sorted(changed.judged, key=lambda row: row.log_loss)]
    assert place.index("mcllo") in marks(axes[0], "_beyond")
    assert list(marks(axes[1], "_beyond")) == [place.index("histogram")]
    text = assert_readable(axes)
    assert "1.0e-40" in text
    assert "0.90" in text


@cache
def sensitivity(n_classes=4):
    return baseline_sensitivity(predictions(n_classes, 500), n_resamples=19, seed=0)


def changed(found, **columns):
    return replace(found, table=Table(found.table.to_dict() | columns))


def test_marks_are_the_numbers_of_the_table():
    found = sensitivity()
    test, change = baselines(found, caption=True)
    assert marks(test, "_rejected", "_kept") == dict(
        enumerate(found.table["statistic"])
    )
    others = [
        j for j, name in enumerate(found.table["baseline"]) if name != found.reference
    ]
    assert marks(change, "_mean") == {j: found.table["mean_change"][j] for j in others}
    assert marks(change, "_largest") == {
        j: found.table["largest_change"][j] for j in others
    }
    assert "reference" in assert_readable([test])


def test_rejection_is_a_diamond_and_the_reference_is_marked():
    test, _ = baselines(changed(sensitivity(), pvalue=[0.01, 0.2, 0.05, 0.06]))
    assert set(marks(test, "_rejected")) == {0, 2}
    assert set(marks(test, "_kept")) == {1, 3}
    assert [text.get_text() for text in test.get_yticklabels()] == [
        "0",
        "1",
        "2",
        "3 ◂",
    ]


def test_tiny_changes_are_arrows_and_without_an_estimate_there_is_none():
    tiny, none = [1e-9, 0.01, 0.02, 0.0], [False, True, False, False]
    test, change = baselines(changed(sensitivity(), mean_change=tiny, separated=none))
    assert list(marks(change, "_beyond")) == [0]
    assert change.get_xlim()[0] < SMALLEST_CHANGE
    assert 1 in marks(test, "_rejected", "_kept")
    assert 1 not in marks(change, "_mean", "_largest")
    text = assert_readable([change])
    assert "< 0.0001; " in text
    assert "no estimate" in text


@slow
def test_of_many_baselines_those_that_move_most_are_shown():
    found = sensitivity(30)
    rows = select_baseline_columns(found, 5)
    moved = np.array(found.table["mean_change"])
    assert rows == sorted([29, *np.argsort(-moved)[:4].tolist()])
    text = assert_readable(baselines(found))
    assert "those of 30 baselines that move most: 20 are shown" in text


@cache
def climbed(n_classes=3):
    return climb(predictions(n_classes, 800), n_resamples=99, seed=0)


def test_marks_are_the_statistics_of_the_models():
    found = climbed()
    ax = nested_models(found, caption=True)
    rows = dict(enumerate(found.rows))
    for label, rejected in (("_rejected", True), ("_kept", False)):
        expected = [[r.statistic, k] for k, r in rows.items() if r.rejected is rejected]
        np.testing.assert_allclose(line(ax, label), expected)
    k = [row.model for row in found.rows].index(found.chosen)
    np.testing.assert_allclose(line(ax, "_chosen"), [[rows[k].statistic, k]])
    # the grey bars: the mean of chi-square with d degrees of freedom is d
    assert [bar.get_width() for bar in ax.containers[0]] == [
        row.df for row in found.rows
    ]
    left, right = ax.get_xlim()
    assert left == 0.0
    assert right > max(row.statistic for row in found.rows)
    text = assert_readable(ax)
    for row in found.rows:
        assert nested_model_label(row.model) in text
        assert format_sufficiency_pvalue(row) in text
    assert "enough? p" in text


def test_a_model_kept_in_spite_of_its_small_p_value_is_hollow():
    rows = [replace(row, rejected=False, larger_pvalue=0.3) for row in climbed().rows]
    rows[3] = replace(
        rows[3], larger_pvalue=0.041
    )  # slopes, but the temperature inside it stands
    ax = nested_models(
        replace(climbed(), rows=tuple(rows), chosen="identity"), caption=True
    )
    np.testing.assert_allclose(line(ax, "_held"), [[rows[3].statistic, 3]])
    assert len(line(ax, "_kept")) == len(rows) - 1
    text = assert_readable(ax)
    assert "nor this, though p is small" in text
    assert "only its own is small" in " ".join(text.split())


@pytest.mark.parametrize("chosen", ["identity", pytest.param("full", marks=slow)])
def test_the_chosen_model_is_bold_and_named(chosen):
    ax = nested_models(replace(climbed(), chosen=chosen), numbers=False)
    assert f"smallest not rejected: {nested_model_label(chosen)}" in assert_readable(ax)
    bold = [t.get_text() for t in ax.get_yticklabels() if t.get_fontweight() == "bold"]
    assert bold == [nested_model_label(chosen)]


def test_words_of_a_p_value_and_of_a_missing_map():
    found = climbed()
    row = found.rows[0]
    assert format_sufficiency_pvalue(replace(row, larger_pvalue=0.034)) == "0.034"
    assert (
        format_sufficiency_pvalue(
            replace(row, larger_pvalue=1e-9, larger_method="bound")
        )
        == "≤ 1.0e-09"
    )
    assert format_sufficiency_pvalue(found.rows[-1]) == "-"
    short = replace(
        found, rows=found.rows[:-1], skipped="the full map is left out: too large"
    )
    assert "The full map is left out: too large." in assert_readable(
        nested_models(short)
    )


def test_what_cannot_be_drawn_is_said():
    rows = predictions(3, 60)
    grouped = mcllo.assess(
        replace(rows, groups=np.arange(60) // 3), seed=0, n_resamples=19
    )
    for draw_it, message in (
        (lambda: nested_models(grouped), "left out here: it assumes independent rows"),
        (
            lambda: baselines(assessment(2)),
            "with two classes every baseline gives the same answer",
        ),
        (
            lambda: ece_boxplot(grid(), n=7),
            r"n must be a size of the study \(400, 450.*got n=7",
        ),
    ):
        with pytest.raises(InputError, match=message):
            draw_it()


def cell(n, delta_1, seed):
    rng = np.random.default_rng(seed)
    p, before, after = rng.random((3, 40))
    return PowerCell(n, delta_1, 0.05, p ** (n / 100), p, 0.1 * before, 0.05 * after)


@cache
def grid():
    sizes, shifts = (400, 450, 500, 600, 1000, 5000), (1.0, 1.1, 1.2, 1.3, 1.4)
    cells = [cell(n, d, [n, k]) for n in sizes for k, d in enumerate(shifts)]
    return PowerStudy(tuple(cells), "chi2", 0.05, 0, "Dirichlet(3, 0.3, ..., 0.3)", 10)


@cache
def own():
    effect = MCLLOMap(np.zeros(1), np.full(1, 0.8), ("a", "b"), "b")
    cells = tuple(cell(n, None, n) for n in (250, 500, 1000))
    return PowerStudy(cells, "auto", 0.05, 0, "drawn from 500 predictions", 2, effect)


def test_a_line_per_n_against_delta():
    ax = power(grid(), caption=True)
    assert (
        ax.get_xlabel()
        == "delta of the first class (1: the predictions are calibrated)"
    )
    assert ax.get_ylabel() == "Rejection rate"
    largest = [c for c in grid().rows if c.n == 5000]
    np.testing.assert_array_equal(
        line(ax, "_0"), [[c.delta_1, c.power] for c in largest]
    )  # the largest n first
    bands = [c for c in ax.collections if len(c.get_paths())]
    assert len(bands) == 6
    assert bands[0].get_paths()[0].vertices[:, 1].max() == max(c.high for c in largest)
    assert line(ax, "_alpha")[:, 1].tolist() == [0.05, 0.05]
    assert "n = 5,000" in assert_readable(ax)


def test_one_line_against_n():
    ax = power(own())
    assert ax.get_xscale() == "log"
    assert ax.get_xlabel() == "Rows in the data set (n, log scale)"
    np.testing.assert_array_equal(line(ax, "_0"), [[c.n, c.power] for c in own().rows])
    assert ax.get_legend() is None
    assert_readable(ax)


def test_boxes_hold_half_of_the_repetitions():
    ax = ece_boxplot(grid(), caption=True)
    cells = [c for c in grid().rows if c.n == 5000]
    drawn = boxes_of(ax)
    values = [c.ece_before for c in cells] + [c.ece_after for c in cells]
    np.testing.assert_allclose(drawn, [np.quantile(v, [0.25, 0.75]) for v in values])
    assert ax.get_ylim()[0] == 0.0
    assert ax.get_ylabel() == "ECE (probability)"
    assert "n = 5,000; 40 data sets a box" in assert_readable(ax)


def boxes_of(ax):
    """Return bottom and top of each box."""
    return [patch.get_path().get_extents().extents[[1, 3]] for patch in ax.patches]


def test_another_n_and_a_study_of_one_effect():
    first = next(c for c in grid().rows if c.n == 450)
    upper = boxes_of(ece_boxplot(grid(), n=450))[0][1]
    assert upper == pytest.approx(np.quantile(first.ece_before, 0.75))
    ece = np.linspace(0.0, 0.1, 1500)
    many = tuple(PowerCell(c.n, None, 0.05, ece, ece, ece, ece) for c in own().rows)
    ax = ece_boxplot(replace(own(), rows=many))
    assert [text.get_text() for text in ax.get_xticklabels()] == ["250", "500", "1,000"]
    assert "1,500 data sets a box" in assert_readable(ax)


def test_the_gain_is_the_mean_of_the_differences():
    for study, where in ((grid(), "delta_1"), (own(), "n")):
        ax = ece_difference(study, caption=True)
        cells = [c for c in study.rows if where == "n" or c.n == 5000]
        gains = [(c.ece_before - c.ece_after).mean() for c in cells]
        np.testing.assert_allclose(line(ax, "_0")[:, 1], gains)
        np.testing.assert_allclose(
            line(ax, "_0")[:, 0], [getattr(c, where) for c in cells]
        )
        reach = (
            1.96 * np.std(cells[0].ece_before - cells[0].ece_after, ddof=1) / 40**0.5
        )
        band = ax.collections[0].get_paths()[0].vertices
        assert band[band[:, 0] == getattr(cells[0], where), 1].max() == pytest.approx(
            gains[0] + reach
        )
        assert_readable(ax)


def test_outliers_stand_beyond_whiskers_of_one_and_a_half_boxes():
    cell = next(c for c in grid().rows if c.n == 5000)
    low, high = np.quantile(cell.ece_before, [0.25, 0.75])
    far = cell.ece_before[(cell.ece_before > high + 1.5 * (high - low))
                          | (cell.ece_before < low - 1.5 * (high - low))]  # fmt: skip
    ax = ece_boxplot(grid(), outliers=True)
    shown = next(line for line in ax.lines if line.get_marker() == "o").get_ydata()
    assert sorted(shown) == sorted(far)
    assert not [line for line in ece_boxplot(grid()).lines if line.get_marker() == "o"]
