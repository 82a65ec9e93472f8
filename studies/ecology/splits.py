"""The ecology study by the paper's protocol: random splits, 80 % to learn from, 20 % to judge on.

=============  ================================================================================
years          all shipped captures, 1986-2002, and those of 1986-1994 alone
splits         `N_SPLITS` of each, the seeds 0, 1, ...; a recalibration is fitted without its logits
               where the method does not need them
``p_plots``    the robust test by plots, for three of the six sets, to save time
``top_only``   ECE when all but the top class share the rest evenly: it must not move
=============  ================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MultipleLocator, StrMethodFormatter
from scipy.stats import chi2

import mcllo
from mcllo.datasets import Dataset
from mcllo.metrics import (
    accuracy,
    expected_calibration_error,
    log_loss,
    maximum_calibration_error,
)

from ..figures import (
    BAND,
    DOTS,
    INK,
    MIDDLE,
    PRINTED,
    SKY,
    VERMILION,
    Canvas,
    heading,
    look,
    named_rows,
    ticks,
)
from ..pages import Row, Rows, column, p_word
from ..tables import LEVEL, METHODS, suppress_warnings

N_SPLITS, SHARE, SEED = 20, 0.8, 0
YEARS = {"all": "1986–2002", "middle": "1986–1994"}
WHAT = ("statistic", "p", "ece", "mce", "log_loss", "accuracy")
SHORT = {"uncalibrated": "as predicted", "mcllo": "MCLLO", "temperature": "TS"}
SHORT |= {"vector": "VS", "histogram": "EB", "xu_davoine": "Xu"}
BY_PLOTS = ("uncalibrated", "mcllo", "vector")
MEASURES = {
    "ece": expected_calibration_error,
    "mce": maximum_calibration_error,
    "log_loss": log_loss,
    "accuracy": accuracy,
}


def pooled(plain: Dataset) -> tuple[mcllo.Predictions, np.ndarray]:
    """Return the captures of all years as one table, and the plot of each."""
    parts = (plain.train, plain.holdout)
    classes = plain.train.classes
    everything = mcllo.Predictions.from_arrays(
        logits=np.concatenate([part.logits for part in parts]),
        y=np.array(classes)[np.concatenate([part.codes for part in parts])],
        classes=classes,
    )
    columns = (plain.train_columns, plain.holdout_columns)
    return everything, np.concatenate([column["plot"] for column in columns])


def random_splits(plain: Dataset, n_splits: int = N_SPLITS) -> Rows:
    """Return every split of both sets of years."""
    kept = {"all": pooled(plain), "middle": (plain.train, plain.train_columns["plot"])}
    return [
        {"years": years, "seed": seed, **split_row(*kept[years], seed)}
        for years in YEARS
        for seed in range(n_splits)
    ]


@suppress_warnings()
def split_row(predictions: mcllo.Predictions, plot: np.ndarray, seed: int) -> Row:
    """Return the numbers of one split, with chi-square p-values as in the paper."""
    order = np.random.default_rng(seed).permutation(predictions.n_samples)
    border = round(SHARE * len(order))
    learn, judge = np.sort(order[:border]), np.sort(order[border:])
    train, holdout = predictions.take(learn), predictions.take(judge)
    groups = np.unique(plot[judge], return_inverse=True)[1]
    row: Row = {"n_fitted": len(learn), "n_judged": len(judge)}
    for name in METHODS:
        after = (
            holdout if name == "uncalibrated" else recalibrated(name, train, holdout)
        )
        test = mcllo.calibration_test(after, method="chi2")
        row |= {f"statistic_{name}": test.statistic, f"p_{name}": test.pvalue}
        row |= {
            f"{what}_{name}": measure(None, after) for what, measure in MEASURES.items()
        }
        if name in BY_PLOTS:
            robust = mcllo.robust_test(replace(after, groups=groups), seed=SEED)
            row[f"p_plots_{name}"] = robust.pvalue
        if name == "mcllo":
            flat = after.with_probs(top_only(after.probs))
            row["ece_top_only"] = expected_calibration_error(None, flat)
            row["log_loss_top_only"] = log_loss(None, flat)
    return row


def recalibrated(
    name: str, train: mcllo.Predictions, holdout: mcllo.Predictions
) -> mcllo.Predictions:
    """Return the held-out rows after a recalibration; MCLLO sees probabilities and no logits."""
    if name == "mcllo":
        train, holdout = (replace(part, logits=None) for part in (train, holdout))
    calibrator = mcllo.CALIBRATORS[name]().fit(train)
    return holdout.with_probs(calibrator.predict_proba(holdout))


def top_only(probs: np.ndarray) -> np.ndarray:
    """Return rows with the same top class, all others sharing the rest evenly.

    >>> top_only(np.array([[0.7, 0.3, 0.0], [0.1, 0.4, 0.5]])).round(3).tolist()
    [[0.7, 0.15, 0.15], [0.25, 0.25, 0.5]]
    """
    top = probs.max(axis=1, keepdims=True)
    first = np.arange(probs.shape[1]) == probs.argmax(axis=1)[:, None]
    return np.where(first, top, (1.0 - top) / (probs.shape[1] - 1))


def of_years(rows: Sequence[Row], years: str) -> Rows:
    """Return the splits of some years."""
    return [row for row in rows if row["years"] == years]


def summary(rows: Sequence[Row]) -> Rows:
    """Return the median of each number over the splits, and how often the tests reject."""
    found = []
    for years in YEARS:
        own = of_years(rows, years)
        for name in METHODS:
            row: Row = {"years": years, "set": name, "splits": len(own)}
            row |= {"n_judged": own[0]["n_judged"]}
            row |= {
                what: float(np.median(column(own, f"{what}_{name}"))) for what in WHAT
            }
            row["rejected"] = int((column(own, f"p_{name}") <= LEVEL).sum())
            by_plots = f"p_plots_{name}"
            rejected = (
                int((column(own, by_plots) <= LEVEL).sum())
                if by_plots in own[0]
                else None
            )
            found.append(row | {"rejected_by_plots": rejected})
    return found


def summary_words(rows: Sequence[Row], years: str) -> Rows:
    """Return the medians of some years for the page."""
    return [
        row | {"set": SHORT[row["set"]], "p": p_word(row["p"])}
        for row in of_years(rows, years)
    ]


@look()
def splits_figure(splits: Sequence[Row], later: Sequence[Row]) -> list[Axes]:
    """Draw statistic, ECE and log loss of every random split, and of the later years."""
    figure = Canvas(9.6, 3.5)
    axes = figure.panels(1, 3, sharey=True)
    panels = {"statistic": "Test statistic", "ece": "ECE", "log_loss": "Log loss"}
    own, known = of_years(splits, "all"), {row["set"]: row for row in later}
    dots, middle = DOTS | {"markersize": 4.0}, MIDDLE | {"markersize": 15}
    for ax, what in zip(axes, panels, strict=True):
        for place, name in enumerate(SHORT):
            values = column(own, f"{what}_{name}")
            rank = np.argsort(np.argsort(values, kind="stable"), kind="stable")
            aside = 0.22 * (((rank * 7) % 11) / 5.0 - 1.0)
            ax.plot(values, place + aside, color=SKY, zorder=2, **dots)
            ax.plot(np.median(values), place, color=INK, zorder=3, **middle)
            ax.plot(known[name][what], place, color=VERMILION, zorder=4, **PRINTED)
        ax.tick_params(axis="y", length=0)
    statistic, ece, loss = axes
    named_rows(statistic, list(SHORT.values()))
    bound = float(chi2.isf(LEVEL, 2 * (7 - 1)))
    statistic.set_xscale("log")
    statistic.set_xlim(5.0, 40_000.0)
    statistic.axvspan(bound, 40_000.0, color=BAND, alpha=0.6, lw=0, zorder=0)
    ticks(statistic.xaxis, (10, 100, 1000, 10_000), "{:,.0f}".format)
    for ax, step, word in ((ece, 0.04, "{x:.2f}"), (loss, 0.2, "{x:.1f}")):
        ax.set_xlim(left=0.0)
        ax.xaxis.set_major_locator(MultipleLocator(step))
        ax.xaxis.set_major_formatter(StrMethodFormatter(word))
    heading(
        statistic, panels["statistic"], "log scale; grey: rejected, rows independent"
    )
    heading(ece, panels["ece"], "of the most probable class")
    heading(loss, panels["log_loss"], "nats")
    key = [
        Line2D([], [], color=SKY, label=f"one of {len(own)} random splits", **dots),
        Line2D(
            [], [], color=INK, label="their median", **(middle | {"markersize": 11})
        ),
        Line2D(
            [], [], color=VERMILION, label="1995–2002, fitted on 1986–1994", **PRINTED
        ),
    ]
    n = own[0]["n_judged"]
    note = f"A random split judges {n:,} rows, the later years {known['mcllo']['n']:,}: their"
    figure.footer(f"{note} statistics are not on one scale.", key)
    return axes
