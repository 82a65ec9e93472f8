"""Power studies."""

from functools import cache

import numpy as np
import pytest
from figure_checks import assert_readable, line
from matplotlib.figure import Figure

from mcllo import MCLLOMap
from mcllo._plot.power import ece_boxplot, power
from mcllo._power_study import PowerCell, PowerStudy
from mcllo.exceptions import InputError


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
    assert ax.get_xlabel() == "delta of the first class (1: the predictions are calibrated)"
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


def boxes(ax):
    """Return (left, bottom, right, top) of each box."""
    return np.array([patch.get_path().get_extents().extents for patch in ax.patches])


def test_boxes_hold_half_of_the_repetitions():
    ax = ece_boxplot(grid(), caption=True)
    cells = [c for c in grid().rows if c.n == 5000]
    drawn = boxes(ax)
    assert len(drawn) == 10
    for k, c in enumerate(cells):
        np.testing.assert_allclose(drawn[k, [1, 3]], np.quantile(c.ece_before, [0.25, 0.75]))
        np.testing.assert_allclose(drawn[k + 5, [1, 3]], np.quantile(c.ece_after, [0.25, 0.75]))
    assert ax.get_ylim()[0] == 0.0
    assert ax.get_ylabel() == "ECE (probability)"
    assert "n = 5,000; 40 data sets a box" in assert_readable(ax)


def test_many_repetitions_are_counted_with_a_comma():
    few = own()
    ece = np.linspace(0.0, 0.1, 1500)
    cells = tuple(PowerCell(c.n, None, 0.05, ece, ece, ece, ece) for c in few.rows)
    ax = ece_boxplot(PowerStudy(cells, "auto", 0.05, 0, few.design, 2, few.effect))
    assert "1,500 data sets a box" in [text.get_text() for text in ax.texts]


def test_another_n_and_a_study_of_one_effect():
    cells = [c for c in grid().rows if c.n == 450]
    drawn = boxes(ece_boxplot(grid(), n=450))
    np.testing.assert_allclose(drawn[0, 3], np.quantile(cells[0].ece_before, 0.75))
    ax = ece_boxplot(own())
    assert [text.get_text() for text in ax.get_xticklabels()] == ["250", "500", "1,000"]
    assert_readable(ax)


@pytest.mark.parametrize("draw", [power, ece_boxplot])
def test_a_given_axes_is_used(draw):
    figure = Figure(figsize=(6, 5), layout="constrained")
    ax = figure.subplots()
    assert draw(grid(), ax=ax) is ax
    assert figure.axes == [ax]


def test_errors():
    with pytest.raises(InputError, match=r"n must be a size of the study \(400, 450.*got n=7"):
        ece_boxplot(grid(), n=7)
