"""The obesity study: a forest of ours in place of the paper's, 132 rows to judge on.

===========  ==================================================================================
seed 0       the votes in `mcllo.datasets`: Tables 3 and 4, with zeros raised to 1e-6 for testing
             and to half a vote for recalibration
50 seeds     forests and splits of ``given/seeds.csv``, which `make_predictions` wrote
50 splits    of the 528 rows of seed 0, for what the paper leaves open: `studies.choices`
verdicts     every claim by the rule: `verdicts`; accuracy against calibration: `tradeoff`
===========  ==================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

import mcllo
import mcllo.plot
from mcllo.datasets import Dataset, load_obesity_forest
from mcllo.metrics import (
    expected_calibration_error,
    label_change,
    log_loss,
    maximum_calibration_error,
)
from mcllo.reproduce import figure6
from mcllo.reproduce._result import (
    BELOW_PRINTED,
    MIN_PRINTED_PVALUE,
    printed,
    read_printed_rows_by_set,
)
from mcllo.reproduce._tables import OBESITY_METHODS, CaseStudy, obesity

from .. import choices, rule, tables
from ..ceilings import ceiling_rows, ceilings
from ..figures import Canvas, runs_figure, ticks
from ..pages import Row, Rows, Tables, column, read, say
from ..tables import LEVEL, fit_maximum_likelihood, suppress_warnings
from . import verdicts
from .tradeoff import tradeoff, tradeoff_figure

GIVEN = {"seeds.csv": "studies.obesity.make_predictions"}
"""Tables that `analyse` does not make."""
HERE = Path(__file__).parent
SEEDS = HERE / "given" / "seeds.csv"
METHODS = OBESITY_METHODS
SETS = ("uncalibrated_train", "uncalibrated", *METHODS)
TESTING, HALF_VOTE = 1e-6, 1e-3
FLOORS = (1e-12, 1e-6, 1e-4, 1e-3)
N_EVERYONE, N_TRAIN, SEED, N_SPLITS = 2111, 396, 0, 50
BINS = (5, 10, 12, 20, 40)
CLASSES = ("Insufficient_Weight", "Normal_Weight", "Obesity_Type_I", "Obesity_Type_II")
CLASSES += ("Obesity_Type_III", "Overweight_Level_I", "Overweight_Level_II")
METRICS = {"ece": expected_calibration_error, "mce": maximum_calibration_error}
TABLE4 = """set n clip paper_p statistic p_chi2 p p_method p_corrected paper_ece ece mce
paper_accuracy accuracy paper_label_change label_change log_loss brier zero_labels"""
PAPER = read_printed_rows_by_set("table4")
"""Table 4; the p-value of 0.001 is printed as "< 0.001"."""
PAPER_PARAMETERS = printed("table3")
"""Table 3; its columns have no names, and are taken to be in alphabetical order."""


def analyse() -> tuple[Tables, dict[str, Any]]:
    """Return tables and figures, in half a minute."""
    seeds = read(SEEDS)
    made: Tables = {"table4": [], "parameters": []}
    figures: dict[str, Any] = {}
    for clip in (TESTING, HALF_VOTE):
        data = load_obesity_forest(clip=clip)
        study = obesity() if clip == TESTING else CaseStudy(data, METHODS)
        c, fit = study.comparison, study.fit
        made["table4"] += tables.compared_rows(c, TABLE4, PAPER, clip=clip)
        made["parameters"] += [
            {"class": row["class"], "clip": clip} | row
            for row in tables.parameter_rows(fit, PAPER_PARAMETERS)
        ]
        if clip == TESTING:
            figures["reliability"] = figure6().axes
            figures["parameters"] = mcllo.plot.parameters(
                fit_maximum_likelihood(readable(data.train))
            )
            made["baselines"] = baselines(data.train, data.holdout)
            made["bins"] = bins(c)
            made["logits"] = logits(data.train, data.holdout)
    made["zero_rules"] = zero_rules()
    made["seeds_summary"] = summary(seeds)
    made["claims"] = claims(seeds)
    made["tradeoff"] = tradeoff(seeds, METHODS)
    pairs = splits(load_obesity_forest())
    runs = choices.judged(pairs, more={"mcllo": {"": {}}, "temperature": {"": {}}})
    made["choices"] = choices.choice_rows(runs)
    made["bins_moved"] = bins_moved([holdout for _, holdout in pairs])
    made["last_class"] = last_class(pairs)
    made["without_logits"] = without_logits(pairs)
    made["ceilings"] = ceiling_rows(
        whole(load_obesity_forest()), {"mcllo": 500}, N_TRAIN
    )
    data = load_obesity_forest()
    made["xu_readings"] = choices.xu_readings(data.train, data.holdout, envelope=True)
    sizes = {"everyone": N_EVERYONE, "train": N_TRAIN, "holdout": pairs[0][1].n_samples}
    made["verdicts"] = rule.claim_rows(verdicts.claims(made, runs, sizes))
    figures |= {"seeds": seeds_figure(seeds), "tradeoff": tradeoff_figure(seeds, PAPER)}
    return made, figures


def readable(predictions: mcllo.Predictions) -> mcllo.Predictions:
    """Return the same predictions with names of classes as words."""
    words = tuple(str(name).replace("_", " ") for name in predictions.classes)
    return replace(
        predictions, classes=words, baseline=words[predictions.baseline_index]
    )


def whole(data: Dataset) -> mcllo.Predictions:
    """Return the 528 rows of one forest as one table."""
    parts = (data.train, data.holdout)
    codes = np.concatenate([part.codes for part in parts])
    return mcllo.Predictions.from_arrays(
        np.concatenate([part.probs for part in parts]),
        np.array(data.train.classes)[codes],
        classes=data.train.classes,
        baseline=data.train.baseline,
    )


def splits(data: Dataset) -> list[choices.Pair]:
    """Return random splits of the 528 rows of one forest into rows to learn from and to judge."""
    rows = whole(data)
    orders = [
        np.random.default_rng(s).permutation(rows.n_samples) for s in range(N_SPLITS)
    ]
    return [
        (rows.take(order[:N_TRAIN]), rows.take(order[N_TRAIN:])) for order in orders
    ]


@suppress_warnings()
def without_logits(pairs: Sequence[choices.Pair]) -> Rows:
    """Return in how many splits a method of logits lowers the log loss with logs of the votes."""
    rows = []
    for name in ("temperature", "vector"):
        lowered = 0
        for learn, judge in pairs:
            calibrator = mcllo.CALIBRATORS[name](on="log_probs").fit(learn)
            after = judge.with_probs(calibrator.predict_proba(judge))
            lowered += log_loss(None, after) < log_loss(None, judge)
        rows.append(
            {"method": name, "lowers_log_loss": int(lowered), "splits": len(pairs)}
        )
    return rows


def bins(c: mcllo.Comparison) -> Rows:
    """Return ECE and MCE of the judged rows for several numbers of bins."""
    return [
        {"set": name}
        | {
            f"{what}_{b}": metric(None, c.recalibrated[name], n_bins=b)
            for what, metric in METRICS.items()
            for b in BINS
        }
        for name in SETS[1:]
    ]


def bins_moved(holdouts: Sequence[mcllo.Predictions]) -> Rows:
    """Return in how many splits 20 bins instead of 10 move a metric by more than the margin."""
    rows = []
    for what, metric in METRICS.items():
        ends = [[metric(None, part, n_bins=b) for part in holdouts] for b in (10, 20)]
        moved = np.abs(np.subtract(*ends))
        row = {
            "metric": what,
            "moved": int((moved > rule.MARGIN).sum()),
            "splits": len(moved),
        }
        rows.append(
            row | {"median": float(np.median(moved)), "largest": float(moved.max())}
        )
    return rows


@suppress_warnings()
def baselines(train: mcllo.Predictions, holdout: mcllo.Predictions) -> Rows:
    """Return the same fit under every baseline, and what it makes of the rows to judge on."""
    rows = []
    for row in tables.baselines(train):
        before = holdout.with_baseline(row["baseline"])
        calibrator = mcllo.MCLLOCalibrator(baseline=row["baseline"]).fit(train)
        after = before.with_probs(calibrator.predict_proba(before))
        p, p_after = (
            mcllo.calibration_test(x, method="chi2").pvalue for x in (before, after)
        )
        rows.append(
            row | {"p": p, "p_after": p_after, "log_loss": log_loss(None, after)}
        )
    return rows


@suppress_warnings()
def last_class(pairs: Sequence[choices.Pair]) -> Rows:
    """Return in how many splits the last class as baseline changes what MCLLO gives by little."""
    found: dict[str, list[float]] = {"decision": [], "labels": [], "log_loss": []}
    for pair in pairs:
        ends = []
        for name in (pair[0].baseline, CLASSES[-1]):
            learn, judge = (part.with_baseline(name) for part in pair)
            calibrator = mcllo.MCLLOCalibrator().fit(learn)
            ends.append(judge.with_probs(calibrator.predict_proba(judge)))
        p = [
            mcllo.calibration_test(after, method="chi2").pvalue > LEVEL
            for after in ends
        ]
        found["decision"].append(float(p[0] != p[1]))
        found["labels"].append(label_change(*(after.probs for after in ends)))
        found["log_loss"].append(
            abs(np.subtract(*(log_loss(None, after) for after in ends)))
        )
    margins = {"decision": 0.0, "labels": rule.SHARE, "log_loss": rule.MARGIN}
    return [
        {"what": what, "margin": margins[what], "splits": len(moved)}
        | {"within": int((np.array(moved) <= margins[what]).sum())}
        | {"median": float(np.median(moved)), "largest": float(np.max(moved))}
        for what, moved in found.items()
    ]


@suppress_warnings()
def logits(train: mcllo.Predictions, holdout: mcllo.Predictions) -> Rows:
    """Return how far a constant added to a row's logits moves its recalibrated probabilities.

    A forest has no logits: the logs of its votes and the same less their mean have equal claims.
    """
    rows = []
    for name in ("temperature", "vector"):
        ends = []
        for centred in (False, True):
            learn, judge = (with_logits(part, centred) for part in (train, holdout))
            ends.append(mcllo.CALIBRATORS[name]().fit(learn).predict_proba(judge))
        change = round(float(np.abs(np.subtract(*ends)).max()), 9)
        rows.append({"method": name, "largest_change": change})
    return rows


def with_logits(predictions: mcllo.Predictions, centred: bool) -> mcllo.Predictions:
    """Return the predictions with logs of the probabilities as logits, centred or as they are."""
    logs = np.log(predictions.probs)
    y = np.array(predictions.classes)[predictions.codes]
    given = logs - logs.mean(axis=1, keepdims=True) if centred else logs
    return mcllo.Predictions.from_arrays(logits=given, y=y, classes=predictions.classes)


@suppress_warnings()
def zero_rules() -> Rows:
    """Return what the floor for votes of 0 does: to the test, and to three recalibrations."""
    rows = []
    for clip in FLOORS:
        data = load_obesity_forest(clip=clip)
        tested = mcllo.calibration_test(data.holdout, method="exact", seed=SEED)
        row = {"clip": clip, "statistic": tested.statistic, "p": tested.pvalue}
        rule: dict[str, Any] = {"baseline": "Normal_Weight", "clip": clip}
        for name, calibrator in (
            ("maximum_likelihood", mcllo.MCLLOCalibrator(**rule)),
            ("penalty_1", mcllo.MCLLOCalibrator(**rule, penalty=1.0)),
            ("temperature", mcllo.CALIBRATORS["temperature"](clip=clip)),
        ):
            calibrator.fit(data.train)
            recalibrated = data.holdout.with_probs(
                calibrator.predict_proba(data.holdout.probs)
            )
            row[f"log_loss_{name}"] = log_loss(None, recalibrated)
            row[f"ece_{name}"] = expected_calibration_error(None, recalibrated)
        rows.append(row)
    return rows


def seed_row(probs: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Return the table's numbers for one forest and split (`make_predictions` calls this)."""
    named = np.array(CLASSES)[labels]
    rule: dict[str, Any] = {
        "classes": CLASSES,
        "baseline": "Normal_Weight",
        "clip": TESTING,
    }
    parts = [
        mcllo.Predictions.from_arrays(probs[rows], named[rows], **rule)
        for rows in (slice(0, N_TRAIN), slice(N_TRAIN, None))
    ]
    c = tables.compare_methods(*parts, METHODS, n_resamples=499)
    row: dict[str, Any] = {"zero_labels": sum(part.n_clipped_true for part in parts)}
    row["separated"] = bool(np.isnan(fit_maximum_likelihood(parts[0]).se_delta).any())
    for judged in tables.compared_rows(
        c, "set p_chi2 p ece accuracy log_loss label_change"
    ):
        name = judged.pop("set")
        row |= {
            f"{what}_{name}": value
            for what, value in judged.items()
            if value is not None
        }
    row["p_corrected_mcllo"] = c["mcllo"].pvalue_corrected
    return row


def summary(seeds: Sequence[Row]) -> Rows:
    """Return the spread over seeds of every number of Table 4, and where the paper's lies."""
    rows = tables.spread(
        seeds, SETS, ("p_chi2", "ece", "accuracy", "label_change"), PAPER
    )
    for row in rows:
        values, printed = column(seeds, f"{row['what']}_{row['set']}"), row["paper"]
        if printed == BELOW_PRINTED:
            printed = MIN_PRINTED_PVALUE
        row["share_below_paper"] = (
            None if printed is None else float(np.mean(values < printed))
        )
    return rows


def claims(seeds: Sequence[Row]) -> Rows:
    """Return in how many of the forests each claim of the paper comes true.

    The test is the paper's, with chi-square p-values; ``_exact`` is the same with exact ones.
    """
    p, exact, ece, loss = (
        {name: column(seeds, f"{what}_{name}") for name in SETS}
        for what in ("p_chi2", "p", "ece", "log_loss")
    )
    raw, papers = "uncalibrated", ("mcllo", "histogram", "xu_davoine")
    right = [column(seeds, f"accuracy_{name}") for name in ("mcllo", raw)]
    corrected = column(seeds, "p_corrected_mcllo")
    exists = np.array([row["separated"] == "no" for row in seeds])
    rejected, kept = p[raw] <= LEVEL, {name: p[name] > LEVEL for name in METHODS}
    largest_p = np.argmax([p[name] for name in METHODS], axis=0)
    best_loss = np.argmin([loss[name] for name in METHODS], axis=0)
    lowest_ece = np.argmin([ece[name] for name in papers], axis=0) == 0
    found = {
        "uncalibrated_rejected": rejected,
        "uncalibrated_rejected_exact": exact[raw] <= LEVEL,
        **{f"{name}_not_rejected": kept[name] for name in METHODS},
        **{f"{name}_not_rejected_exact": exact[name] > LEVEL for name in METHODS},
        "mcllo_not_rejected_corrected": corrected[~np.isnan(corrected)] > LEVEL,
        "mcllo_not_rejected_where_it_was_before": kept["mcllo"][rejected],
        "mcllo_lowest_ece_of_the_papers_three": lowest_ece,
        "mcllo_lowers_ece": ece["mcllo"] < ece[raw],
        "all_three_lower_ece": np.all(
            [ece[name] < ece[raw] for name in papers], axis=0
        ),
        "mcllo_lowers_log_loss": loss["mcllo"] < loss[raw],
        "temperature_lowers_log_loss": loss["temperature"] < loss[raw],
        "mcllo_lower_log_loss_than_temperature": loss["mcllo"] < loss["temperature"],
        "mcllo_raises_accuracy": right[0] > right[1],
        "estimate_exists": exists,
        "mcllo_not_rejected_where_it_exists": kept["mcllo"][exists],
        "largest_p_has_best_log_loss": largest_p == best_loss,
        "kept_have_lower_log_loss": kept_have_lower(kept, loss, METHODS[1:]),
        "whole_pattern_of_table_4": rejected
        & kept["mcllo"]
        & kept["histogram"]
        & ~kept["xu_davoine"]
        & lowest_ece,
    }
    return tables.counted(found, "forests")


def kept_have_lower(
    kept: Mapping[str, np.ndarray], loss: Mapping[str, np.ndarray], names: Sequence[str]
) -> np.ndarray:
    """Return whether methods that are not rejected have the lower mean log loss.

    Only for forests in which the test rejects some of these methods and not others.

    >>> loss = {"a": np.array([0.4, 0.5]), "b": np.array([0.6, 0.3])}
    >>> kept_have_lower({"a": np.array([True, True]), "b": np.array([False, True])}, loss, "ab")
    array([ True])
    """
    told = np.array([kept[name] for name in names])
    losses = np.array([loss[name] for name in names])
    mixed = told.any(axis=0) & ~told.all(axis=0)
    means = [
        np.where(side, losses, 0.0).sum(axis=0)[mixed] / side.sum(axis=0)[mixed]
        for side in (told, ~told)
    ]
    return means[0] < means[1]


def seeds_figure(seeds: Sequence[Row]) -> list[Axes]:
    """Draw p-value, ECE and accuracy of the 132 rows for every forest, and the paper's."""
    panels = (
        ("p_chi2", "p-value", "chi-square, as in the paper"),
        ("ece", "ECE", "12 bins"),
        ("accuracy", "Accuracy", "one person is 0.8 %"),
    )
    note = "132 rows judged each time. Grey: rejected at the level 0.05."
    axes = runs_figure(
        seeds,
        {name: tables.METHODS[name] for name in SETS[1:]},
        panels,
        PAPER,
        height=3.5,
        sizes=(3.6, 17),
        ends=(-6, 0.3, 0.15),
        words=(f"one of {len(seeds)} forests and splits", note),
    )
    figure = axes[0].get_figure(root=True)
    if isinstance(figure, Canvas):
        figure.engine.set(wspace=0.05)
    axes[2].set_xlim(0.765, 0.945)
    ticks(
        axes[2].xaxis,
        [0.76, 0.80, 0.84, 0.88, 0.92],
        lambda value: f"{100 * value:.0f} %",
    )
    return axes


def facts(t: Tables) -> dict[str, object]:
    """Return what the page asks for, from the tables."""
    small, half = (
        [row for row in t["parameters"] if row["clip"] == clip]
        for clip in (TESTING, HALF_VOTE)
    )
    return {
        **tables.claim_facts(t["claims"], "forests"),
        **tables.baseline_facts(t["baselines"]),
        **rule.verdict_facts(t["verdicts"]),
        **{
            f"table4_{name}": [
                tables.format_method_rows(r) for r in t["table4"] if r["clip"] == clip
            ]
            for name, clip in (("testing", TESTING), ("half_vote", HALF_VOTE))
        },
        "parameters": map(estimate_words, small, half),
        "zero_rules": t["zero_rules"],
        "seeds": tables.spread_words(t["seeds_summary"]),
        "choices": choices.choice_words(t["choices"]),
        "read": {row["reading"]: row for row in t["choices"] if row["reading"]},
        "tradeoff": [
            row | {"name": tables.METHODS[row["set"]]} for row in t["tradeoff"]
        ],
        "trade": {row["set"]: row for row in t["tradeoff"]},
        "bins": [row | {"name": tables.SETS[row["set"]]} for row in t["bins"]],
        "moved": {row["metric"]: row for row in t["bins_moved"]},
        "base": {row["baseline"]: row for row in t["baselines"]},
        "last": {row["what"]: row for row in t["last_class"]},
        "logs": {row["method"]: row["largest_change"] for row in t["logits"]},
        "right": ceilings(t["ceilings"]),
        "rejected_if_right": 1.0 - ceilings(t["ceilings"])["mcllo"],
        "xu_readings": choices.xu_words(t["xu_readings"]),
        "xu_n": len(t["xu_readings"]),
        "xu_largest_change": column(t["xu_readings"], "label_change").max(),
    }


def estimate_words(small: Row, half: Row) -> dict[str, str]:
    """Return a class's estimates, the paper's and ours under both floors.

    In brackets the standard error, which a separated fit has not.
    """
    found = {"class": small["class"].replace("_", " ")}
    for name in ("delta", "gamma"):
        for head, row, tail in (
            ("paper_", small, "paper_"),
            ("", small, ""),
            ("half_", half, ""),
        ):
            error = row[f"{tail}se_{name}"]
            brackets = (
                ":.3g} (none)" if error is None else f":.3f}} ({{{tail}se_{name}:.3f}})"
            )
            found[head + name] = say(f"{{{tail}{name}{brackets}", row)
    return found
