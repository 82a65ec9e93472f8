"""The ecology study: a regression on desert rodents, and a community that shifts.

=============  ================================================================================
splits         random ones, the paper's protocol, in `splits`; its claims in `verdicts`
periods        1986-1994 to learn a recalibration from (middle), 1995-2002 to judge it on (late)
groups         rows of a plot, of a month, or of both depend on each other: the robust test
halves         a control without a shift of years: fitted on half of the plots, judged on the rest
cuts           other ways to cut the years, in ``given/cuts.csv``; `make_predictions` wrote it
=============  ================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

import mcllo
import mcllo.plot
from mcllo.datasets import Dataset, load_portal_rodents
from mcllo.metrics import accuracy, log_loss

from ..figures import (
    BAND,
    BLUE,
    INK,
    MUTED,
    SMALL,
    TITLE,
    VERMILION,
    Canvas,
    heading,
    look,
    ticks,
)
from ..pages import Row, Rows, Tables, column, p_word, rounded
from ..rule import claim_rows, verdict_facts
from ..tables import LEVEL, METHODS, compare_methods, compared_rows
from . import splits
from .verdicts import claims

GIVEN = {"cuts.csv": "studies.ecology.make_predictions"}
"""Tables that `analyse` does not make."""
COMPARISON = """set n statistic p p_method ece classwise_ece accuracy label_change log_loss
log_loss_above_best difference_low difference_high brier"""
N_PLOTS, N_HALVES, SEED = 24, 20, 0
RECALIBRATIONS = tuple(METHODS)[1:]
NAMES = {"uncalibrated_train": "as predicted, 1986–1994", **METHODS}
SETS = {
    "middle": "1986–1994, as predicted",
    "late": "1995–2002, as predicted",
    "late_mcllo": "1995–2002, after MCLLO",
    "late_vector": "1995–2002, after vector scaling",
}
GROUPS = {
    "none": "every row",
    "plot_month": "plot and month",
    "month": "month",
    "plot": "plot",
}
LINES: dict[str, dict[str, Any]] = {
    "observed": {"color": INK, "ls": "none", "marker": "o", "markersize": 4.0},
    "predicted": {"color": VERMILION, "ls": (0, (5, 2)), "lw": 1.6},
    "recalibrated": {"color": BLUE, "ls": "-", "lw": 1.6},
}
LINES["observed"]["label"] = "observed"
LINES["predicted"]["label"] = "predicted from 1977–1985"
LINES["recalibrated"]["label"] = "after MCLLO fitted on 1986–1994"
BORDER = 1994.5
YEARS = (1986, 1990, 1994, 1998, 2002)


def analyse() -> tuple[Tables, dict[str, Any]]:
    """Return tables and figures, in half a minute."""
    plain = load_portal_rodents(groups=None)
    c = compare_methods(plain.train, plain.holdout, RECALIBRATIONS)
    tables = {
        "comparison": compared_rows(c, COMPARISON),
        "tests": tests(c),
        "years": years(plain),
        "shares": shares(plain),
        "periods": periods(plain),
        "halves": halves(plain),
        "random_splits": splits.random_splits(plain),
    }
    tables["random_summary"] = splits.summary(tables["random_splits"])
    known = {"random_splits": rounded(tables["random_splits"])}
    tables["verdicts"] = claim_rows(claims(known))
    return tables, {
        "random_splits": splits.splits_figure(
            tables["random_splits"], tables["comparison"]
        ),
        "reliability": mcllo.plot.comparison(c, n_bins=10, names=splits.SHORT),
        "shares": shares_figure(tables["shares"]),
        "years": years_figure(tables["years"]),
        "halves": halves_figure(tables["halves"]),
    }


def tests(c: mcllo.Comparison) -> Rows:
    """Return the plain score test and the robust one for three ways to group the rows."""
    judged = {"middle": c.train, "late": c.holdout}
    judged |= {f"late_{name}": c.recalibrated[name] for name in ("mcllo", "vector")}
    grouped = {by: load_portal_rodents(groups=by) for by in GROUPS if by != "none"}
    rows = []
    for name, part in judged.items():
        for by in GROUPS:
            if by == "none":
                test: Any = mcllo.calibration_test(part, statistic="score", seed=SEED)
                n_groups, effect = part.n_samples, 1.0
            else:
                years = grouped[by].train if name == "middle" else grouped[by].holdout
                test = robust(part, years.groups)
                n_groups, effect = test.n_groups, test.design_effect
            row = {"set": name, "groups": by, "n": part.n_samples, "n_groups": n_groups}
            row |= {"statistic": test.statistic, "df": test.df, "p": test.pvalue}
            rows.append(row | {"p_method": test.method, "design_effect": effect})
    return rows


def robust(predictions: mcllo.Predictions, groups: Any) -> mcllo.RobustTest:
    """Return the robust test of rows that depend on each other within groups."""
    return mcllo.robust_test(replace(predictions, groups=groups), seed=SEED)


def by_period(
    plain: Dataset,
) -> list[tuple[str, mcllo.Predictions, np.ndarray, np.ndarray]]:
    """Return period, predictions, what the map of the middle years makes of them, and years."""
    # other years have other frequencies, which is what is asked: no warning of it
    calibrator = mcllo.MCLLOCalibrator().fit(plain.train).for_stream()
    return [
        (period, part, calibrator.predict_proba(part.probs), columns["year"])
        for period, part, columns in (
            ("middle", plain.train, plain.train_columns),
            ("late", plain.holdout, plain.holdout_columns),
        )
    ]


def years(plain: Dataset) -> Rows:
    """Return accuracy and log loss of each year, as predicted and recalibrated."""
    rows = []
    for period, part, probs, year_of in by_period(plain):
        after = part.with_probs(probs)
        for year in np.unique(year_of):
            own, recalibrated = (
                predictions.take(year_of == year) for predictions in (part, after)
            )
            row = {"year": int(year), "period": period, "n": own.n_samples}
            row |= {
                "accuracy": accuracy(None, own),
                "accuracy_mcllo": accuracy(None, recalibrated),
            }
            row |= {
                "log_loss": log_loss(None, own),
                "log_loss_mcllo": log_loss(None, recalibrated),
            }
            rows.append(row)
    return rows


def share_rows(
    part: mcllo.Predictions,
    probs: np.ndarray,
    mask: np.ndarray | slice = slice(None),
    **head: Any,
) -> Rows:
    """Return the share of each genus among the captures: observed, predicted, recalibrated."""
    return [
        {
            **head,
            "genus": genus,
            "observed": float((part.codes[mask] == k).mean()),
            "predicted": float(part.probs[mask, k].mean()),
            "recalibrated": float(probs[mask, k].mean()),
        }
        for k, genus in enumerate(part.classes)
    ]


def shares(plain: Dataset) -> Rows:
    """Return the shares of each year."""
    return [
        row
        for period, part, probs, year_of in by_period(plain)
        for year in np.unique(year_of)
        for row in share_rows(
            part, probs, year_of == year, year=int(year), period=period
        )
    ]


def periods(plain: Dataset) -> Rows:
    """Return the shares of whole periods."""
    return [
        row
        for period, part, probs, _ in by_period(plain)
        for row in share_rows(part, probs, period=period)
    ]


def halves(plain: Dataset, n_halves: int = N_HALVES) -> Rows:
    """Return a control without a shift of years: fit on half of the plots, judge on the others.

    Same years, plots drawn at random; what the two tests say about the recalibrated rows.
    """
    plot = plain.train_columns["plot"]
    rows = []
    for seed in range(n_halves):
        order = 1 + np.random.default_rng(seed).permutation(N_PLOTS)
        learn = np.isin(plot, order[: N_PLOTS // 2])
        calibrator = mcllo.MCLLOCalibrator().fit(plain.train.take(learn)).for_stream()
        judge = plain.train.take(~learn)
        after = judge.with_probs(calibrator.predict_proba(judge.probs))
        test = mcllo.calibration_test(after, statistic="score", seed=SEED)
        clustered = robust(after, np.unique(plot[~learn], return_inverse=True)[1])
        rows.append(
            {
                "seed": seed,
                "n_fitted": int(learn.sum()),
                "n_judged": judge.n_samples,
                "statistic": test.statistic,
                "p": test.pvalue,
                "p_method": test.method,
                "robust_statistic": clustered.statistic,
                "robust_p": clustered.pvalue,
                "design_effect": clustered.design_effect,
                "log_loss": log_loss(None, judge),
                "log_loss_mcllo": log_loss(None, after),
            }
        )
    return rows


def mark_years(ax: Axes) -> None:
    """Give the axes the years, those that the recalibration was not fitted on in grey."""
    ax.axvspan(BORDER, 2002.6, color=BAND, alpha=0.45, lw=0, zorder=0)
    ax.set_xlim(1985.4, 2002.6)
    ticks(ax.xaxis, YEARS)


@look()
def shares_figure(rows: Sequence[Row]) -> list[Axes]:
    """Draw the share of each genus in the captures, year by year; the largest change first."""
    by_genus: dict[str, list[Row]] = {}
    for row in rows:
        by_genus.setdefault(row["genus"], []).append(row)
    drift = {
        genus: max(abs(row["observed"] - row["predicted"]) for row in own)
        for genus, own in by_genus.items()
    }
    figure = Canvas(9.2, 5.2)
    *axes, corner = figure.panels(2, 4, sharex=True)
    corner.set_axis_off()
    for i, (ax, genus) in enumerate(
        zip(axes, sorted(drift, key=lambda g: -drift[g]), strict=True)
    ):
        own = by_genus[genus]
        mark_years(ax)
        for name, style in LINES.items():
            ax.plot([row["year"] for row in own], [row[name] for row in own], **style)
        ax.set_ylim(0.0, 1.12 * max(max(row[name] for name in LINES) for row in own))
        ax.yaxis.set_major_formatter(
            FuncFormatter(lambda value, _: f"{100 * value:.0f} %")
        )
        ax.locator_params(axis="y", nbins=4)
        ticks(ax.xaxis, YEARS[::2])
        ax.tick_params(labelbottom=i >= 3)
        ax.set_title(
            genus, loc="left", fontsize=TITLE, style="italic", weight="bold", color=INK
        )
    for ax in (axes[0], axes[4]):
        ax.set_ylabel("Share of captures")
    words = (
        "observed",
        "predicted, trained\non 1977–1985",
        "after MCLLO, fitted\non 1986–1994",
    )
    key = [
        Line2D([], [], **style | {"label": word})
        for style, word in zip(LINES.values(), words, strict=True)
    ]
    place: dict[str, Any] = {
        "loc": "upper left",
        "borderaxespad": 0.0,
        "labelspacing": 0.9,
    }
    corner.legend(handles=key, **place).set_in_layout(False)
    figure.footer("Grey: the years the recalibration was not fitted on.")
    return axes


@look()
def years_figure(rows: Sequence[Row]) -> Axes:
    """Draw the log loss of each year before and after the recalibration."""
    figure = Canvas(6.4, 3.9)
    ax, key = figure.panels()[0], []
    mark_years(ax)
    for name, what, marker in (
        ("predicted", "log_loss", "D"),
        ("recalibrated", "log_loss_mcllo", "o"),
    ):
        style = {"marker": marker, "markersize": 5.0, **LINES[name]}
        ax.plot([row["year"] for row in rows], [row[what] for row in rows], **style)
        key.append(Line2D([], [], **style))
    ax.set_ylim(0.0, 1.25)
    ax.set_xlabel("Year of capture")
    ax.set_ylabel("Log loss (nats)")
    title = "The further from the training years, the worse"
    heading(ax, title, "log loss of each year's captures")
    for x, words in ((1985.7, "fitted on"), (BORDER + 0.25, "judged on")):
        ax.text(x, 1.22, words, fontsize=SMALL, color=MUTED, va="top")
    figure.footer("", key)
    return ax


@look()
def halves_figure(rows: Sequence[Row]) -> Axes:
    """Draw both p-values of each random half of the plots."""
    order = sorted(rows, key=lambda row: row["robust_p"])
    figure = Canvas(6.4, 4.6)
    ax = figure.panels()[0]
    place = np.arange(len(order))
    plain = np.log10([max(row["p"], 1e-300) for row in order])
    clustered = np.log10([row["robust_p"] for row in order])
    left = plain.min() - 3.0
    ax.axvspan(left, np.log10(LEVEL), color=BAND, alpha=0.6, lw=0, zorder=0)
    ax.hlines(place, plain, clustered, color=MUTED, lw=0.8, zorder=1)
    marks: tuple[dict[str, Any], ...] = (
        {"marker": "D", "color": VERMILION, "label": "rows called independent"},
        {"marker": "o", "color": BLUE, "label": "plots called independent"},
    )
    for values, mark in zip((plain, clustered), marks, strict=True):
        ax.plot(
            values, place, ls="none", markersize=5.5, clip_on=False, zorder=3, **mark
        )
    ax.set_xlim(left, 0.5)
    tens = [t for t in range(-300, 1, 10) if t >= left]
    ax.set_xticks(tens, ["1" if t == 0 else f"1e{t}".replace("-", "−") for t in tens])
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.set_ylim(-0.8, len(order) - 0.2)
    ax.set_xlabel("p-value of the recalibrated predictions (log scale)")
    below = f"{len(order)} random halves of the 24 plots: fitted on one half, judged on the other"
    heading(ax, "The same years, other plots", below)
    key = [Line2D([], [], ls="none", markersize=5.5, **mark) for mark in marks]
    figure.footer("Grey: calibration is rejected at the level 0.05.", key)
    return ax


def facts(t: Tables) -> dict[str, object]:
    """Return what the page asks for, from the tables."""
    late = [row for row in t["periods"] if row["period"] == "late"]
    before, after = (
        column(t["halves"], "log_loss"),
        column(t["halves"], "log_loss_mcllo"),
    )
    return {
        **cut_facts(t["cuts"]),
        **verdict_facts(t["verdicts"]),
        **split_facts(t["random_summary"]),
        "periods": late,
        "worst": max(late, key=lambda row: abs(row["observed"] - row["recalibrated"])),
        "comparison": [
            row | {"set": NAMES[row["set"]], "p": p_word(row["p"], row["p_method"])}
            for row in t["comparison"]
        ],
        "method": {row["set"]: row for row in t["comparison"]},
        "tests": [
            row
            | {"set": SETS[row["set"]], "groups": GROUPS[row["groups"]]}
            | {"p": p_word(row["p"], row["p_method"])}
            for row in t["tests"]
        ],
        "halves": len(t["halves"]),
        "halves_rejected": (column(t["halves"], "p") <= LEVEL).sum(),
        "halves_rejected_by_plots": (column(t["halves"], "robust_p") <= LEVEL).sum(),
        "halves_lowered": (after < before).sum(),
        "halves_loss_before": before.mean(),
        "halves_loss_after": after.mean(),
    }


def split_facts(rows: Sequence[Row]) -> dict[str, object]:
    """Return the medians over the random splits: a table for each set of years, and by set."""
    by_years = {years: splits.of_years(rows, years) for years in splits.YEARS}
    return {
        **{
            f"splits_{years}": splits.summary_words(rows, years)
            for years in splits.YEARS
        },
        "split": {
            years: {row["set"]: row for row in own} for years, own in by_years.items()
        },
    }


def cut_facts(rows: Sequence[Row]) -> dict[str, object]:
    """Return the table of the cuts of the years, and in how many of them something is true."""
    cuts: dict[tuple[int, int], dict[str, Row]] = {}
    for row in rows:
        cuts.setdefault((row["last_early"], row["last_middle"]), {})[row["set"]] = row

    def lowest(what: str, name: str) -> str:
        true = [
            min(RECALIBRATIONS, key=lambda m: cut[m][what]) == name
            for cut in cuts.values()
        ]
        return f"{sum(true)} of {len(cuts)}"

    def lowers(what: str) -> str:
        true = [cut["mcllo"][what] < cut["uncalibrated"][what] for cut in cuts.values()]
        return f"{sum(true)} of {len(cuts)}"

    return {
        "cuts": [
            {"fitted": f"{early + 1}–{middle}", "judged": f"{middle + 1}–2002", **cut}
            for (early, middle), cut in cuts.items()
        ],
        "lowest_ece": lowest("ece", "mcllo"),
        "lowest_statistic": lowest("statistic", "mcllo"),
        "lowest_loss": lowest("log_loss", "mcllo"),
        "vector_lowest_loss": lowest("log_loss", "vector"),
        "lowers_ece": lowers("ece"),
        "lowers_loss": lowers("log_loss"),
    }
