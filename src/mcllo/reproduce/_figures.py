"""Figures 1 to 6 of the paper and its table of rates, from our network, forest and simulation.

=========  ======================================================================================
1          the two planes: their probabilities before and after, instead of the pictures, which
           have no licence that would let us pass them on
2, 3, 4    the simulation: rejection rates, ECE before and after at n = 5,000, mean gain
5, 6       reliability of the images and of the forest before and after each recalibration
=========  ======================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cbook import boxplot_stats
from matplotlib.lines import Line2D

from .. import plot
from .._comparison.comparison import Comparison
from .._utils.formatting import Table
from .._validation.predictions import Predictions
from ..datasets import Dataset
from ..metrics._reliability import reliability_curve
from ..plot._comparison import draw_diagrams
from ..plot._layout import SelfLayoutFigure, write_footer, write_title
from ..plot._power import mean_ece_decrease
from ..plot._style import (
    BLUE,
    MUTED,
    TITLE_PT,
    VERMILION,
    set_ticks,
    style_axes,
    use_style,
)
from ..simulate._study import PowerStudy
from ._result import LONG_METHOD_NAMES, METHODS, Reproduction
from ._tables import (
    ALPHA,
    IMAGES,
    CaseStudy,
    Pair,
    Row,
    given_or,
    images,
    obesity,
    simulation,
    table2,
    table4,
)

PLANES = (5037, 4526)
"""Images of Figure 1, counted from one: counted from zero, 4526 is a cat."""
PAPER_PLANES = {5037: (1.0, 1.0), 4526: (0.94, 0.80)}
"""The probability of the label that the paper prints: before, after."""
SIMULATED = (
    "Ours: 1,000 data sets a setting, rows from {design}; where the paper's rows come from is not "
    "said, and it prints no numbers of this study."
)
LARGEST_N = 5000
"""Rows of the data sets of Figure 3."""
N_BINS = 10
"""Bins of the diagrams."""
PANEL_COLUMNS = ("set", "paper_ece", "ece", "paper_p", "p_chi2")
RATE_COLUMNS = ("n", "delta_1", "reps", "power", "low", "high")
GAIN_COLUMNS = (
    "n",
    "delta_1",
    "reps",
    "ece_before",
    "ece_after",
    "gain",
    "gain_low",
    "gain_high",
)
RATES = "Share of data sets rejected."
GAINS = "Mean ECE less mean ECE after MCLLO."
BOXES = "ECE of the data sets as drawn (before) and after MCLLO. Whiskers reach at most 1.5 boxes."
DIAGRAMS = "Ten bins of equal width; the ECE has ceil(sqrt n) bins. p by chi-square."
BEFORE_STYLE: dict[str, Any] = {
    "ls": "none",
    "marker": "D",
    "markersize": 6.0,
    "color": VERMILION,
}
AFTER_STYLE: dict[str, Any] = {
    "ls": "none",
    "marker": "o",
    "markersize": 6.0,
    "color": BLUE,
}


def figure1() -> Reproduction:
    """Return Figure 1: two planes, before and after MCLLO.

    Returns
    -------
    Reproduction
        Print it for the numbers; ``save`` writes it.

    See Also
    --------
    figure5 : Reliability of the same images.
    table1 : The parameters of the map.
    reproduce : By name.

    Notes
    -----
    Figure 1 of [1]_, with our network in the place of the paper's.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> found = figure1()
    >>> sorted(set(found.table["image"]))
    [4526, 5037]
    """
    rows = plane_probabilities(images())
    shown = [
        [
            "image",
            "label",
            "before: paper",
            "ours",
            "after: paper",
            "ours",
            "95 % interval",
        ]
    ]
    for row in rows:
        if row["class"] != row["label"]:
            continue
        paper_before, paper_after = PAPER_PLANES[row["image"]]
        shown.append(
            [
                str(row["image"]),
                row["label"],
                f"{paper_before:.2f}",
                f"{row['before']:.3f}",
                f"{paper_after:.2f}",
                f"{row['after']:.3f}",
                f"{row['low']:.3f} to {row['high']:.3f}",
            ]
        )
    note = (
        "The interval is the map's: where the number would lie if all images there are had been "
        "learned from."
    )
    return titled_figure(
        "figure1", "Figure 1", IMAGES, rows, shown, draw_planes(rows), note
    )


def figure2() -> Reproduction:
    """Return Figure 2: how often the test rejects, by n and effect.

    Returns
    -------
    Reproduction
        Print it for the numbers; ``save`` writes it.

    See Also
    --------
    power : The same rates as a table.
    mcllo.plot.power : Draws any study.
    reproduce : By name.

    Notes
    -----
    Figure 2 of [1]_, from repetitions that come with the package.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> figure2().save("figure2.svg")  # doctest: +SKIP
    """
    drawn = plot.power(simulation())
    return _simulation_figure(
        "figure2", "Figure 2", [drawn], RATE_COLUMNS, _format_rate, RATES
    )


def figure3() -> Reproduction:
    """Return Figure 3: ECE before and after MCLLO at n = 5,000.

    Returns
    -------
    Reproduction
        Print it for the numbers; ``save`` writes it.

    See Also
    --------
    figure4 : The difference of the means.
    mcllo.plot.ece_boxplot : Draws any study.
    reproduce : By name.

    Notes
    -----
    Figure 3 of [1]_, from repetitions that come with the package.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> figure3().save("figure3.svg")  # doctest: +SKIP
    """
    study = simulation()
    drawn = plot.ece_boxplot(study, n=LARGEST_N, outliers=True)
    rows = [row for row in box_rows(study) if row["n"] == LARGEST_N]
    return titled_figure(
        "figure3",
        "Figure 3",
        SIMULATED.format(design=study.design),
        rows,
        format_box_rows(rows),
        [drawn],
        BOXES,
    )


def figure4() -> Reproduction:
    """Return Figure 4: by how much MCLLO lowers the mean ECE.

    Returns
    -------
    Reproduction
        Print it for the numbers; ``save`` writes it.

    See Also
    --------
    figure3 : The distributions.
    mcllo.plot.ece_difference : Draws any study.
    reproduce : By name.

    Notes
    -----
    Figure 4 of [1]_, from repetitions that come with the package.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> figure4().save("figure4.svg")  # doctest: +SKIP
    """
    drawn = plot.ece_difference(simulation())
    return _simulation_figure(
        "figure4", "Figure 4", [drawn], GAIN_COLUMNS, _format_gain, GAINS
    )


def figure5(data: Pair | None = None) -> Reproduction:
    """Return Figure 5: reliability of the images before and after each recalibration.

    Parameters
    ----------
    data : pair of Predictions, optional
        Rows to learn from and rows to judge on, instead of those that the package carries.

    Returns
    -------
    Reproduction
        Print it for the numbers; ``save`` writes it.

    See Also
    --------
    table2 : The numbers of the same methods.
    mcllo.plot.comparison : Draws any comparison.
    reproduce : By name.

    Notes
    -----
    Figure 5 of [1]_, with our network in the place of the paper's.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> figure5().save("figure5.svg")  # doctest: +SKIP
    """
    order = (
        "uncalibrated",
        "mcllo",
        "temperature",
        "vector",
        "histogram",
        "xu_davoine",
    )
    study = given_or(images, data)
    return _reliability_figure("figure5", "Figure 5", study, order, table2(data))


def figure6(data: Pair | None = None) -> Reproduction:
    """Return Figure 6: reliability of the forest before and after each recalibration.

    Parameters
    ----------
    data : pair of Predictions, optional
        Rows to learn from and rows to judge on, instead of those that the package carries.

    Returns
    -------
    Reproduction
        Print it for the numbers; ``save`` writes it.

    See Also
    --------
    table4 : The numbers of the same methods.
    mcllo.plot.comparison : Draws any comparison.
    reproduce : By name.

    Notes
    -----
    Figure 6 of [1]_, with our forest in the place of the paper's.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> figure6().save("figure6.svg")  # doctest: +SKIP
    """
    order = ("uncalibrated", "mcllo", "histogram", "xu_davoine")
    study = given_or(obesity, data)
    return _reliability_figure("figure6", "Figure 6", study, order, table4(data))


def power() -> Reproduction:
    """Return the table of rejection rates, which the paper has in its supplement.

    Returns
    -------
    Reproduction
        Print it for the numbers; ``save`` writes it.

    See Also
    --------
    figure2 : The same rates as a figure.
    mcllo.simulate.power : Makes them anew.
    reproduce : By name.

    Notes
    -----
    The supplement of [1]_ was not at hand; its rates are not in the table.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> found = power()
    >>> [name for name in found.table.columns][:3]
    ['n', 'delta_1', 'power']
    """
    return Reproduction(
        name="power",
        title="Rejection rates (supplement)",
        source=SIMULATED.format(design=simulation().design),
        table=_columns_of_rows(_settings_with_gain()),
        shown=tuple(tuple(line) for line in _lines_by_sample_size(_format_rate)),
        notes=(f"Level {ALPHA:g}, chi-square. delta_1 = 1: nothing is wrong.",),
    )


def plane_probabilities(study: CaseStudy) -> list[Row]:
    """Return the probabilities of the two planes, likeliest class first, before and after."""
    data = study.data
    assert isinstance(data, Dataset)  # which knows the number of each image
    parts = ((data.train, data.train_columns), (data.holdout, data.holdout_columns))
    rows: list[Row] = []
    for image in PLANES:
        for part, columns in parts:
            for place in np.flatnonzero(columns["image"] == image - 1):
                rows += _rows_of_plane(study, image, part, int(place))
    return rows


def _rows_of_plane(
    study: CaseStudy, image: int, part: Predictions, place: int
) -> list[Row]:
    """Return the probabilities of one image, likeliest class first."""
    before = part.probs[place]
    after = study.fit.recalibrate(before[None], interval=0.95)
    rows = []
    for j in np.argsort(-before, kind="stable"):
        row = {
            "image": image,
            "label": part.classes[part.codes[place]],
            "class": part.classes[j],
            "before": before[j],
            "after": after.probs[0, j],
            "low": after.low[0, j],
            "high": after.high[0, j],
        }
        rows.append(row)
    return rows


@use_style
def draw_planes(rows: list[Row]) -> list[Axes]:
    """Draw the five largest probabilities of the two planes before and after MCLLO."""
    figure = SelfLayoutFigure(9.0, 3.1)
    axes = list(figure.subplots(1, len(PLANES), sharex=True))
    for ax, image in zip(axes, PLANES, strict=True):
        own = [row for row in rows if row["image"] == image][:5]
        _draw_plane(ax, image, own)
    before_key = Line2D([], [], label="as predicted", **BEFORE_STYLE)
    after_style = AFTER_STYLE | {"ls": "-", "lw": 2.2}
    after_key = Line2D([], [], label="after MCLLO, 95 % interval", **after_style)
    text = ["The five classes that the network finds most probable."]
    write_footer(axes[0], text, [before_key, after_key])
    return axes


def _draw_plane(ax: Axes, image: int, rows: list[Row]) -> None:
    """Draw the probabilities of one image, before above after."""
    style_axes(ax)
    place = np.arange(len(rows))
    before = [row["before"] for row in rows]
    after = [row["after"] for row in rows]
    low = [row["low"] for row in rows]
    high = [row["high"] for row in rows]
    ax.hlines(place + 0.16, low, high, color=BLUE, lw=2.2)
    ax.plot(before, place - 0.16, zorder=3, clip_on=False, **BEFORE_STYLE)
    ax.plot(after, place + 0.16, zorder=3, clip_on=False, **AFTER_STYLE)
    ax.set_yticks(place, [row["class"] for row in rows])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(rows) - 0.5, -0.6)
    ax.set_xlim(-0.02, 1.02)
    set_ticks(ax.xaxis, [0.0, 0.25, 0.5, 0.75, 1.0], "{:g}".format)
    ax.set_xlabel("Probability")
    of_label = next(row for row in rows if row["class"] == row["label"])
    numbers = f"{of_label['before']:.3f}, after MCLLO {of_label['after']:.3f}"
    write_title(ax, f"Test image {image}", f"{of_label['label']}: {numbers}")


def _reliability_figure(
    name: str,
    title: str,
    study: CaseStudy,
    order: tuple[str, ...],
    table: Reproduction,
) -> Reproduction:
    """Return the diagrams of these methods, with ECE and p-value as numbers."""
    row_of_method = {row["set"]: row for row in table.table.rows()}
    printed_lines = {line[0]: line for line in table.shown}
    shown = [["", "ECE: paper", "ours", "p: paper", "ours"]]
    rows = []
    below = {}
    for method in (name for name in order if name in row_of_method):
        line = printed_lines[METHODS[method]]
        own_ece, own_p = line[9], line[5]
        shown.append([line[0], line[8], own_ece, line[4], own_p])
        p = own_p.replace("<", "< ") if own_p.startswith("<") else f"= {own_p}"
        below[method] = f"ECE {own_ece}, p {p}"
        curve = reliability_curve(study.comparison.recalibrated[method], n_bins=N_BINS)
        judged = {column: row_of_method[method][column] for column in PANEL_COLUMNS}
        rows += [{**judged, **bin_row} for bin_row in curve.to_table().rows()]
    drawn = draw_reliability(study.comparison, below)
    return titled_figure(name, title, study.source, rows, shown, drawn, DIAGRAMS)


@use_style
def draw_reliability(comparison: Comparison, below: Mapping[str, str]) -> list[Axes]:
    """Draw a reliability diagram for each method, with the numbers of the table `below`."""
    titles = {method: LONG_METHOD_NAMES[method] for method in below}
    # As the paper draws them: bins of equal width, joined whatever they hold.
    axes, key = draw_diagrams(
        comparison, titles, below, curve="bins", n_bins=N_BINS, min_rows=1
    )
    write_footer(axes, [], key)
    return axes


def box_rows(study: PowerStudy) -> list[Row]:
    """Return the boxes of every setting, before and after, as they are drawn."""
    rows = []
    for cell in study.rows:
        for when, values in (("before", cell.ece_before), ("after", cell.ece_after)):
            box = boxplot_stats(values, whis=1.5)[0]
            row = {
                "n": cell.n,
                "delta_1": cell.delta_1,
                "when": when,
                "whisker_low": box["whislo"],
                "quartile_1": box["q1"],
                "median": box["med"],
                "quartile_3": box["q3"],
                "whisker_high": box["whishi"],
                "outliers": len(box["fliers"]),
                "mean": box["mean"],
            }
            rows.append(row)
    return rows


def format_box_rows(rows: list[Row]) -> list[list[str]]:
    """Return boxes as printed: a line for each setting."""
    heads = [
        "n",
        "delta_1",
        "before: median",
        "quartiles",
        "after: median",
        "quartiles",
    ]
    lines = [heads]
    for before, after in zip(rows[0::2], rows[1::2], strict=True):
        line = [f"{before['n']:,}", f"{before['delta_1']:g}"]
        for row in (before, after):
            line.append(f"{row['median']:.4f}")
            line.append(f"{row['quartile_1']:.4f} to {row['quartile_3']:.4f}")
        lines.append(line)
    return lines


def _settings_with_gain() -> list[Row]:
    """Return the thirty settings: rate, ECE before and after, gain."""
    rows = []
    for cell in simulation().rows:
        gain, low, high = mean_ece_decrease(cell)
        rows.append(cell.to_dict() | {"gain": gain, "gain_low": low, "gain_high": high})
    return rows


def _lines_by_sample_size(format_cell: Callable[[Row], str]) -> list[list[str]]:
    """Return a line for each n and a column for each effect."""
    rows = _settings_with_gain()
    deltas = sorted({row["delta_1"] for row in rows})
    sizes = sorted({row["n"] for row in rows})
    words = {(row["n"], row["delta_1"]): format_cell(row) for row in rows}
    heads = ["n", *(f"delta_1 = {delta:g}" for delta in deltas)]
    lines = [[f"{n:,}", *(words[n, delta] for delta in deltas)] for n in sizes]
    return [heads, *lines]


def _format_rate(row: Row) -> str:
    """Return how often a setting is rejected."""
    return f"{row['power']:.3f}"


def _format_gain(row: Row) -> str:
    """Return by how much the mean ECE of a setting is lowered."""
    return f"{row['gain']:.4f}"


def _simulation_figure(
    name: str,
    title: str,
    drawn: list[Axes],
    columns: tuple[str, ...],
    format_cell: Callable[[Row], str],
    note: str,
) -> Reproduction:
    """Return a figure of the simulation, with the columns that it draws."""
    settings = _settings_with_gain()
    rows = [{column: setting[column] for column in columns} for setting in settings]
    lines = _lines_by_sample_size(format_cell)
    source = SIMULATED.format(design=simulation().design)
    return titled_figure(name, title, source, rows, lines, drawn, note)


def titled_figure(
    name: str,
    title: str,
    source: str,
    rows: list[Row],
    shown: list[list[str]],
    axes: list[Axes],
    note: str,
) -> Reproduction:
    """Return a figure that carries the paper's number."""
    figure = axes[0].get_figure(root=True)
    if figure is not None:
        left = 0.1 / figure.get_size_inches()[0]
        figure.suptitle(
            f"{title}, made again", x=left, ha="left", fontsize=TITLE_PT, color=MUTED
        )
    lines = tuple(tuple(line) for line in shown)
    return Reproduction(
        name, title, source, _columns_of_rows(rows), lines, (note,), axes
    )


def _columns_of_rows(rows: list[Row]) -> Table:
    """Return rows as columns."""
    return Table({key: [row[key] for row in rows] for key in rows[0]})
