"""Reliability before and after each method."""

from dataclasses import replace

import numpy as np
from figure_checks import assert_readable, comparison, line

from mcllo import reliability_curve
from mcllo._plot.comparison import comparison as draw
from mcllo._plot.comparison import ordered, p_of, title_of
from mcllo._text import format_number


def test_one_panel_per_method_each_with_its_numbers():
    c = comparison()
    axes = draw(c, caption=True)
    rows = ordered(c)
    assert [ax.get_title(loc="left") for ax in axes] == [title_of(row.method) for row in rows]
    for ax, row in zip(axes, rows, strict=True):
        below = ax.texts[0].get_text()
        assert below == f"ECE {format_number(row.ece)}, p {p_of(row)}"
        curve = reliability_curve(c.recalibrated[row.method])
        used = curve.counts > 0
        np.testing.assert_array_equal(line(ax, "_path")[:, 1], curve.observed[used])
    assert "The same 400 rows" in assert_readable(axes)


def test_the_uncalibrated_rows_come_first_and_then_the_best():
    rows = ordered(comparison())
    assert rows[0].method == "uncalibrated"
    losses = [row.log_loss for row in rows[1:]]
    assert losses == sorted(losses)
    assert "uncalibrated_train" not in [row.method for row in rows]


def test_columns():
    axes = draw(comparison(), columns=2)
    assert axes[0].get_subplotspec().get_gridspec().ncols == 2


def test_a_bound_says_that_it_is_one():
    row = comparison().judged[0]
    assert p_of(replace(row, pvalue=1e-20, pvalue_method="bound")) == "≤ 1.0e-20"
    assert p_of(replace(row, pvalue=1e-20, pvalue_method="exact")) == "= 1.0e-20"
    assert p_of(replace(row, pvalue=0.0, pvalue_method="bound")) == "< 1e-300"


def test_titles():
    assert title_of("xu_davoine") == "xu davoine"
