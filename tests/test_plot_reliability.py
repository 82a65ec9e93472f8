"""Reliability diagrams of an assessment."""

import dataclasses

import numpy as np
import pytest
from figure_checks import assert_readable, assessment, hostile, line, lines, separated, words
from matplotlib.figure import Figure

import mcllo
from mcllo import reliability_curve
from mcllo._plot.reliability import class_errors, reliability, reliability_by_class
from mcllo._text import format_number

SIZES = [2, 3, 10, 40, 100]


@pytest.mark.parametrize("n_classes", [2, 3, 100])
def test_the_diagram_is_readable(n_classes):
    ax = reliability(assessment(n_classes), caption=n_classes == 3)
    assert len(ax.figure.axes) == 2
    assert ax.get_ylabel() == "Observed frequency"
    assert ax.figure.axes[1].get_xlabel() == "Predicted probability of the most probable class"
    assert ax.figure.axes[1].get_ylabel() == "Rows"
    assert_readable(ax)


@pytest.mark.parametrize("n_classes", SIZES)
def test_the_panels_are_readable(n_classes):
    axes = reliability_by_class(assessment(n_classes), caption=n_classes == 100)
    assert len(axes) == min(n_classes, 12)
    text = assert_readable(axes)
    assert ("The 12 of" in text) == (n_classes > 12)
    if n_classes > 12:
        assert f"The 12 of {n_classes} classes with the largest calibration error" in text


def test_points_are_those_of_the_curve():
    a = assessment(3)
    curve = reliability_curve(a.predictions, n_bins=8, binning="mass")
    ax = reliability(a, n_bins=8, binning="mass")
    expected = np.column_stack([curve.mean_predicted, curve.observed])
    np.testing.assert_array_equal(lines(ax, "_inside", "_outside"), expected)


def test_the_ece_stands_beside_its_null():
    a = assessment(3)
    null, text = a.nulls["ece"], reliability(a).texts[0].get_text()
    low, high = format_number(null.low), format_number(null.high)
    ece = f"ECE {format_number(a.metrics['ece'])}"
    assert text == f"{ece}; calibrated predictions like these show {low} to {high}"
    alone = dataclasses.replace(a, nulls={})
    assert reliability(alone).texts[0].get_text() == ece


def test_classes_come_worst_first():
    a = assessment(10)
    errors = class_errors(a)
    assert np.mean(errors) == pytest.approx(a.metrics["classwise_ece"])
    order = np.argsort(-np.array(errors), kind="stable")
    axes = reliability_by_class(a, max_classes=4)
    assert [ax.get_title(loc="left") for ax in axes] == [str(k) for k in order[:4]]
    label = int(order[0])
    curve = reliability_curve(a.predictions, label=label)
    path, used = line(axes[0], "_path"), curve.counts > 0
    np.testing.assert_array_equal(path[:, 1], curve.observed[used])
    rest = format_number(sorted(errors)[5])
    assert f"that of the others is at most {rest}." in " ".join(words(axes).split())


def test_columns():
    axes = reliability_by_class(assessment(3), columns=2)
    assert axes[0].get_subplotspec().get_gridspec().ncols == 2
    assert_readable(axes)


def test_a_given_axes_is_used():
    figure = Figure(figsize=(6, 6), layout="constrained")
    ax = figure.subplots()
    assert reliability(assessment(3), ax=ax, caption=True) is ax
    assert figure.axes == [ax]
    assert ax.get_xlabel() == "Predicted probability of the most probable class"
    assert_readable(figure)


def test_hostile_names():
    axes = reliability_by_class(hostile())
    assert_readable(axes)
    titles = [ax.get_title(loc="left") for ax in axes]
    assert "<script>alert('1')…" in [title[:18] + "…" for title in titles]
    assert len(set(titles)) == 12


def test_separated_and_tiny_data():
    assert_readable(reliability(separated()))
    assert_readable(reliability_by_class(separated()))
    tiny = mcllo.assess([[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]], [0, 0, 1, 1], seed=0)
    assert_readable(reliability_by_class(tiny))


def test_a_class_without_spread_has_no_z():
    # z of a class is 0 / 0 where its probabilities are all 0 or 1
    a = assessment(3)
    columns = a.in_the_large.to_dict()
    columns["z"][0] = float("nan")
    axes = reliability_by_class(dataclasses.replace(a, in_the_large=mcllo._table.Table(columns)))
    assert "z -" in words(axes)
