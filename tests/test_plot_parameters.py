"""Forest plot and calibration map of a fit."""

import numpy as np
import pytest
from figure_checks import assert_readable, assessment, hostile, line, lines, separated
from matplotlib.figure import Figure

from mcllo._plot.parameters import calibration_map, parameters, section, worst

SIZES = [2, 3, 10, 40, 100]


@pytest.mark.parametrize("n_classes", SIZES)
def test_the_forest_is_readable(n_classes):
    left, right = parameters(assessment(n_classes).fit, caption=n_classes == 10)
    assert left.get_xlabel() == "delta (log scale)"
    assert left.get_xscale() == "log"
    assert right.get_xlabel() == "gamma"
    assert len(left.get_yticks()) == min(n_classes - 1, 20)
    text = assert_readable([left])
    folded = f"The 20 of {n_classes - 1} classes farthest from 1"
    assert (folded in text) == (n_classes > 21)


@pytest.mark.parametrize("n_classes", SIZES)
def test_the_map_is_readable(n_classes):
    ax = calibration_map(assessment(n_classes).fit, caption=n_classes == 10)
    assert len(ax.lines) == n_classes  # one for each class but the baseline, and the diagonal
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("As predicted", "After repair")
    text = assert_readable(ax)
    assert (f"{n_classes - 8} others" in text) == (n_classes > 8)


def test_marks_are_the_estimates():
    fit = assessment(10).fit
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
    fit = assessment(10).fit
    z = np.maximum(np.abs(fit.tau / fit.se_tau), np.abs((fit.gamma - 1) / fit.se_gamma))
    assert worst(fit, 3) == sorted(np.argsort(-z)[:3].tolist())
    left, _ = parameters(fit, max_classes=3)
    assert [text.get_text() for text in left.get_yticklabels()] == [str(j) for j in worst(fit, 3)]


def test_the_section_is_the_map():
    # rows that differ only in the third class have the same share before and after
    fit = assessment(3).fit
    p, repaired = section(fit, 0)
    third = 0.3
    rows = np.column_stack([p * (1 - third), np.full(len(p), third), (1 - p) * (1 - third)])
    g = fit.recalibrate(rows)
    np.testing.assert_allclose(repaired, g[:, 0] / (g[:, 0] + g[:, 2]), rtol=1e-9)
    np.testing.assert_allclose(line(calibration_map(fit), "_0"), np.column_stack([p, repaired]))


def test_a_separated_fit_says_so():
    fit = separated().fit
    assert fit.separated
    left, right = parameters(fit)
    text = assert_readable([left])
    assert line(right, "_includes").size == line(right, "_excludes").size == 0
    assert "The estimates do not exist" in text
    assert "no interval" in text
    assert "The estimates do not exist" in assert_readable(calibration_map(fit))


def test_a_given_axes_is_used():
    figure = Figure(figsize=(9, 4), layout="constrained")
    one, two = figure.subplots(1, 2)
    left, right = parameters(assessment(3).fit, ax=one, caption=True)
    assert one.child_axes == [left, right]
    assert calibration_map(assessment(3).fit, ax=two) is two
    assert figure.get_size_inches().tolist() == [9.0, 4.0]
    assert_readable(figure)


def test_hostile_names():
    fit = hostile().fit
    assert "<script>alert('1')</scr…" in assert_readable(parameters(fit))
    ax = calibration_map(fit)
    assert_readable(ax)
    assert not any(text.get_parse_math() for text in ax.get_legend().get_texts())


def test_nobody_is_left_out():
    assert worst(assessment(3).fit, 0) == [worst(assessment(3).fit, 1)[0]]
