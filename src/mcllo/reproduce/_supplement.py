"""What the paper has in its supplement, or leaves for later, from data of ours.

=============  ==================================================================================
`boxplots`     ECE before and after for every n, as Figure 3 has it for one
`tradeoff`     accuracy against calibration: what each recalibration does to both
`ecology`      the regression of the third case study, by the paper's protocol
`baseline`     size and power of the test by its baseline, where slopes differ: the limitation
               that the paper closes with
=============  ==================================================================================

The supplement is not public, and was not at hand.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from .._comparison.comparison import Comparison
from .._utils.formatting import Table, format_count
from .._validation.predictions import Predictions
from ..datasets import load_portal_rodents
from ..plot._layout import SelfLayoutFigure, write_footer, write_title
from ..plot._power import draw_boxplots
from ..plot._style import (
    BLUE,
    GREEN,
    INK,
    MARKERS,
    MUTED,
    REFERENCE_DASHES,
    SERIES,
    format_tick,
    style_axes,
    use_style,
)
from ..simulate._study import PowerCell, PowerStudy
from ._figures import SIMULATED, box_rows, format_box_rows, titled_figure
from ._result import METHODS, Reproduction, format_printed_p
from ._tables import (
    IMAGE_METHODS,
    SEED,
    CaseStudy,
    Row,
    compare_methods,
    compared_rows,
    images,
    obesity,
    simulation,
)

BOXES = "Before: as drawn. Whiskers reach at most 1.5 boxes."
TRADED = (
    "Changes are after less before, on rows that no map was fitted to. One split each: the page of "
    "the obesity study has fifty."
)
RODENTS = (
    "Ours: a multinomial regression for rodents caught near Portal, Arizona, on a random fifth of "
    "its captures; the paper's data are not named."
)
RODENTS_NOTE = (
    "p by chi-square, which takes captures for independent. The paper prints no numbers of this "
    "study in its text."
)
RODENT_COLUMNS = "set n statistic p_chi2 ece mce accuracy label_change log_loss"
BY_BASELINE = (
    "Ours: four classes, rows uniform on the simplex, labels from a map against the last class "
    "with shifts of 1 and the slopes shown; {reps} data sets a setting."
)
BY_BASELINE_NOTE = (
    "Share of data sets rejected at level 0.05, chi-square, by the class that the test has as its "
    "baseline. Where nothing is wrong the baseline is nothing to the test; the largest of several "
    "is another matter."
)


def boxplots() -> Reproduction:
    """Return the boxplots of ECE for every n, which the paper has in its supplement.

    Returns
    -------
    Reproduction
        Print it for the numbers; ``save`` writes it.

    See Also
    --------
    figure3 : The same at n = 5,000.
    mcllo.plot.ece_boxplot : Draws any study.
    reproduce : By name.

    Notes
    -----
    After Figure 3 of [1]_, from repetitions that come with the package.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> boxplots().save("boxplots.svg")  # doctest: +SKIP
    """
    study = simulation()
    rows = box_rows(study)
    return titled_figure(
        "boxplots",
        "Boxplots of every n (supplement)",
        SIMULATED.format(design=study.design),
        rows,
        format_box_rows(rows),
        draw_boxes_of_every_n(study),
        BOXES,
    )


def tradeoff() -> Reproduction:
    """Return what each recalibration does to accuracy and to calibration.

    Returns
    -------
    Reproduction
        Print it for the numbers; ``save`` writes it.

    See Also
    --------
    table2 : The same numbers of the images.
    table4 : The same numbers of the forest.
    reproduce : By name.

    Notes
    -----
    The trade-off is a matter of the supplement of [1]_, which was not at hand.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> found = tradeoff()
    >>> sorted(set(found.table["study"]))
    ['images', 'obesity']
    """
    rows = [*tradeoff_rows("images", images()), *tradeoff_rows("obesity", obesity())]
    lines = [["study", "", "accuracy", "change", "ECE", "change", "log loss", "change"]]
    for row in rows:
        line = [row["study"], METHODS[row["set"]]]
        line += [f"{row['accuracy']:.2%}", f"{row['accuracy_change']:+.2%}"]
        line += [f"{row['ece']:.3f}", f"{row['ece_change']:+.3f}"]
        line += [f"{row['log_loss']:.3f}", f"{row['log_loss_change']:+.3f}"]
        lines.append(line)
    source = "Ours: the network and the forest of Tables 2 and 4."
    return titled_figure(
        "tradeoff",
        "Accuracy against calibration (supplement)",
        source,
        rows,
        lines,
        draw_tradeoff(rows),
        TRADED,
    )


def ecology() -> Reproduction:
    """Return the third case study: a regression in ecology.

    Returns
    -------
    Reproduction
        Print it for the numbers; ``save`` writes it.

    See Also
    --------
    table2 : The first case study.
    mcllo.datasets.load_portal_rodents : The predictions.
    reproduce : By name.

    Notes
    -----
    Data and numbers are in the supplement of [1]_, which was not at hand.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> print(ecology())  # doctest: +SKIP
    """
    rows = compared_rows(rodents(), RODENT_COLUMNS)
    lines = [
        ["", "n", "statistic", "p", "ECE", "MCE", "accuracy", "changed", "log loss"]
    ]
    for row in rows:
        changed = row["label_change"]
        line = [METHODS[row["set"]], f"{row['n']:.0f}", f"{row['statistic']:.1f}"]
        line += [format_printed_p(row["p_chi2"]), f"{row['ece']:.3f}"]
        line += [f"{row['mce']:.2f}", f"{row['accuracy']:.2%}"]
        line += ["-" if changed is None else f"{changed:.2%}", f"{row['log_loss']:.3f}"]
        lines.append(line)
    return Reproduction(
        "ecology",
        "Ecology (supplement)",
        RODENTS,
        Table({name: [row[name] for row in rows] for name in rows[0]}),
        tuple(tuple(line) for line in lines),
        (RODENTS_NOTE,),
    )


def baseline() -> Reproduction:
    """Return size and power of the test by its baseline, where slopes differ.

    Returns
    -------
    Reproduction
        Print it for the numbers; ``save`` writes it.

    See Also
    --------
    power : Size and power by n and delta.
    mcllo.baseline_sensitivity : The same question of your own predictions.
    reproduce : By name.

    Notes
    -----
    [1]_ closes with it as a limitation, and prints no numbers. Ours come with the package.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> found = baseline()
    >>> found.table["labels"][0], len(found.table.columns)
    ('nothing is wrong', 8)
    """
    text = (files(__package__) / "data" / "baseline.csv").read_text(encoding="utf-8")
    rows: list[Row] = list(csv.DictReader(text.splitlines()))
    rates = [name for name in rows[0] if name.startswith("baseline_")]
    for row in rows:
        for name in ("n", "reps"):
            row[name] = int(row[name])
        for name in rates:
            row[name] = float(row[name])
    heads = [f"baseline {k}" for k in range(1, len(rates) + 1)]
    lines = [["labels", "slopes", "n", *heads]]
    for row in rows:
        shown = [f"{row[name]:.3f}" for name in rates]
        lines.append([row["labels"], row["slopes"], f"{row['n']:,}", *shown])
    return Reproduction(
        "baseline",
        "Size and power by baseline (the closing limitation)",
        BY_BASELINE.format(reps=rows[0]["reps"]),
        Table({name: [row[name] for row in rows] for name in rows[0]}),
        tuple(tuple(line) for line in lines),
        (BY_BASELINE_NOTE,),
    )


def tradeoff_rows(name: str, study: CaseStudy) -> list[Row]:
    """Return accuracy, ECE and log loss after each method, and how far each has moved."""
    before = study.comparison["uncalibrated"]
    rows = []
    for row in study.comparison.judged:
        known: Row = {"study": name, "set": row.method}
        for what in ("accuracy", "ece", "log_loss"):
            value = getattr(row, what)
            known[what] = value
            known[f"{what}_change"] = value - getattr(before, what)
        rows.append(known)
    return rows


@cache
def rodents() -> Comparison:
    """Return the methods on the rodents: a random fifth of the captures of all years is judged."""
    data = load_portal_rodents(groups=None)
    parts = (data.train, data.holdout)
    logits = [part.logits for part in parts if part.logits is not None]
    codes = np.concatenate([part.codes for part in parts])
    everything = Predictions.from_arrays(
        logits=np.concatenate(logits),
        y=np.array(data.train.classes)[codes],
        classes=data.train.classes,
    )
    order = np.random.default_rng(SEED).permutation(everything.n_samples)
    border = round(0.8 * len(order))
    train = everything.take(np.sort(order[:border]))
    holdout = everything.take(np.sort(order[border:]))
    return compare_methods(train, holdout, IMAGE_METHODS, method="chi2")


@use_style
def draw_boxes_of_every_n(study: PowerStudy) -> list[Axes]:
    """Draw the boxes before and after for each n, a panel each."""
    sizes = sorted({cell.n for cell in study.rows})
    figure = SelfLayoutFigure(9.6, 5.6)
    panels = figure.subplots(2, 3, sharey=True, squeeze=False)
    axes: list[Axes] = list(panels.flat)
    for ax, n in zip(axes, sizes, strict=True):
        _draw_boxes(ax, [cell for cell in study.rows if cell.n == n])
        write_title(ax, f"n = {format_count(n)}")
    for ax in panels[-1]:
        ax.set_xlabel("delta of the first class")
    for ax in panels[:, 0]:
        ax.set_ylabel("ECE (probability)")
    box: dict[str, Any] = {"alpha": 0.55, "edgecolor": INK}
    key = [
        Patch(facecolor=BLUE, label="as drawn", **box),
        Patch(facecolor=GREEN, label="after MCLLO", **box),
    ]
    write_footer(axes, [], key)
    return axes


def _draw_boxes(ax: Axes, cells: list[PowerCell]) -> None:
    """Draw the boxes of one n."""
    style_axes(ax)
    cells = sorted(cells, key=lambda cell: cell.delta_1 or 0.0)
    draw_boxplots(ax, [cell.ece_before for cell in cells], -0.19, BLUE)
    draw_boxplots(ax, [cell.ece_after for cell in cells], 0.19, GREEN)
    ax.set_xticks(
        range(len(cells)), [format_tick(cell.delta_1 or 0.0) for cell in cells]
    )
    ax.set_xlim(-0.6, len(cells) - 0.4)
    ax.set_ylim(bottom=0.0)


@use_style
def draw_tradeoff(rows: list[Row]) -> list[Axes]:
    """Draw the change of accuracy against that of the ECE, a panel for each study."""
    figure = SelfLayoutFigure(9.0, 3.8)
    studies = list(dict.fromkeys(row["study"] for row in rows))
    axes = list(figure.subplots(1, len(studies)))
    methods = [name for name in METHODS if not name.startswith("uncalibrated")]
    for ax, study in zip(axes, studies, strict=True):
        style_axes(ax)
        ax.axhline(0.0, color=MUTED, lw=1.0, ls=REFERENCE_DASHES)
        ax.axvline(0.0, color=MUTED, lw=1.0, ls=REFERENCE_DASHES)
        for row in rows:
            if row["study"] == study and row["set"] in methods:
                x, y = row["ece_change"], 100.0 * row["accuracy_change"]
                ax.plot(x, y, label="_point", **_point_style(methods.index(row["set"])))
        ax.margins(0.15)
        ax.set_xlabel("ECE after less before")
        write_title(ax, TRADE_TITLES[study], "left: calibration is better")
    axes[0].set_ylabel("Accuracy after less before (points)")
    key = []
    for k, name in enumerate(methods):
        key.append(Line2D([], [], label=METHODS[name], **_point_style(k)))
    write_footer(axes, [], key)
    return axes


TRADE_TITLES = {"images": "Images (Table 2)", "obesity": "People (Table 4)"}


def _point_style(k: int) -> dict[str, Any]:
    """Return the look of a method's point."""
    return {
        "ls": "none",
        "marker": MARKERS[k],
        "color": SERIES[k],
        "markersize": 8.0,
    }
