"""The numbers of the image study on one split: objects of `mcllo` in, rows of tables out."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import chi2

import mcllo
from mcllo.exceptions import MclloWarning

METHODS = ("mcllo", "temperature", "vector", "histogram", "xu_davoine")
SETS = ("uncalibrated_train", "uncalibrated", *METHODS)
SEED = 0
BINS = (5, 10, 15, 20, 45, 90, 200)
PLANES = (5037, 4526)
"""Images of the paper's Figure 1, counted from one: counted from zero, 4526 is a cat."""

PAPER = {
    # set: statistic, p-value, ECE, accuracy, label change; Table 2 and section 4.2.
    # p-values of 0.001 are printed as "< 0.001".
    "uncalibrated_train": (533.0, 0.001, 0.033, 0.927, None),
    "uncalibrated": (123.0, 0.001, 0.035, 0.930, None),
    "mcllo": (24.70, 0.133, 0.021, 0.931, 0.0195),
    "temperature": (None, 0.002, 0.020, 0.930, 0.0),
    "vector": (None, 0.142, 0.020, 0.931, 0.018),
    "histogram": (None, 0.337, 0.025, 0.932, 0.008),
    "xu_davoine": (None, 0.001, 0.052, 0.930, 0.0),
}
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship")
PAPER_PARAMETERS = {
    # part: delta, its standard errors, gamma, its standard errors; Table 1, alphabetical order
    "X_t": (
        (1.461, 0.710, 1.275, 1.966, 0.908, 3.095, 1.166, 1.785, 1.111),
        (0.315, 0.135, 0.346, 0.456, 0.306, 0.769, 0.370, 0.539, 0.240),
        (0.705, 0.679, 0.692, 0.711, 0.732, 0.685, 0.659, 0.729, 0.621),
        (0.028, 0.043, 0.025, 0.022, 0.028, 0.021, 0.030, 0.031, 0.030),
    ),
    "X_h": (
        (0.693, 0.665, 0.912, 1.588, 0.312, 1.613, 1.037, 0.603, 0.711),
        (0.338, 0.211, 0.496, 0.708, 0.234, 0.824, 0.635, 0.439, 0.331),
        (0.746, 0.539, 0.719, 0.740, 0.872, 0.727, 0.676, 0.768, 0.679),
        (0.061, 0.060, 0.052, 0.047, 0.073, 0.046, 0.060, 0.077, 0.075),
    ),
}
PAPER_PLANES = {5037: (1.00, 1.00), 4526: (0.94, 0.80)}
"""Probability of airplane before and after MCLLO, as the paper's introduction gives it."""


def compared(
    train: mcllo.Predictions, holdout: mcllo.Predictions, n_resamples: int = 1999
) -> mcllo.Comparison:
    """Return the paper's comparison of five methods."""
    return mcllo.compare(train, holdout, methods=METHODS, n_resamples=n_resamples, seed=SEED)


def table2(c: mcllo.Comparison) -> list[dict[str, Any]]:
    """Return the paper's Table 2 and ours, row by row."""
    rows = []
    for name in SETS:
        row, paper = c[name], PAPER[name]
        rows.append(
            {
                "set": name,
                "n": row.n,
                "paper_statistic": paper[0],
                "statistic": row.statistic,
                "paper_p": paper[1],
                "p_chi2": float(chi2.sf(row.statistic, row.df)),
                "p": row.pvalue,
                "p_method": row.pvalue_method,
                "p_corrected": row.pvalue_corrected,
                "paper_ece": paper[2],
                "ece": row.ece,
                "paper_accuracy": paper[3],
                "accuracy": row.accuracy,
                "paper_label_change": paper[4],
                "label_change": row.label_change,
                "classwise_ece": row.classwise_ece,
                "log_loss": row.log_loss,
                "log_loss_difference": row.log_loss_difference,
                "difference_low": row.difference_low,
                "difference_high": row.difference_high,
                "brier": row.brier,
                "zero_labels": row.n_zero_labels,
            }
        )
    return rows


def fitted(predictions: mcllo.Predictions) -> mcllo.MCLLOFit:
    """Return the maximum likelihood fit; a separated one says so by its standard errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MclloWarning)
        return mcllo.MCLLOCalibrator(baseline=predictions.baseline).fit(predictions).fit_


def parameters(fits: Mapping[str, mcllo.MCLLOFit]) -> list[dict[str, Any]]:
    """Return the paper's Table 1 and ours, for the rows to learn from and to judge on."""
    names = ("delta", "se_delta", "gamma", "se_gamma")
    rows = []
    for part, fit in fits.items():
        for j, row in enumerate(fit.parameters().rows()):
            paper = {f"paper_{n}": v[j] for n, v in zip(names, PAPER_PARAMETERS[part], strict=True)}
            rows.append(
                {"part": part, "class": row["class"], **paper, **{n: row[n] for n in names}}
            )
    return rows


def cross_scaled(predictions: mcllo.Predictions, folds: int = 5) -> mcllo.Predictions:
    """Return all rows after temperature scaling, each by a temperature fitted on other folds."""
    c = mcllo.compare(predictions, methods=("temperature",), cv=folds, n_resamples=99, seed=SEED)
    return c.recalibrated["temperature"]


def classes(scaled: Mapping[str, mcllo.Predictions]) -> list[dict[str, Any]]:
    """Return for each class what is left to repair after temperature scaling."""
    kept = ("class", "statistic", "pvalue", "adjusted", "predicted", "observed", "large_adjusted")
    rows = []
    for part, predictions in scaled.items():
        fit = fitted(predictions)
        columns = {"delta": fit.delta, "gamma": fit.gamma, "z_delta": fit.tau / fit.se_tau}
        for row in mcllo.class_tests(predictions, seed=SEED).table.rows():
            j = CLASSES.index(row["class"]) if row["class"] in CLASSES else None
            own = {name: None if j is None else values[j] for name, values in columns.items()}
            rows.append({"part": part, **{name: row[name] for name in kept}, **own})
    return rows


def ladders(parts: Mapping[str, mcllo.Predictions]) -> list[dict[str, Any]]:
    """Return which nested model is enough, for each set of predictions."""
    kept = ("model", "df", "statistic", "pvalue", "method", "larger_pvalue", "larger_method")
    kept += ("rejected", "aic", "bic")
    rows = []
    for part, predictions in parts.items():
        found = mcllo.ladder(predictions, seed=SEED)
        for row in found.rows:
            own = {name: getattr(row, name) for name in kept}
            rows.append({"part": part, **own, "chosen": row.model == found.chosen})
    return rows


def planes(predictions: mcllo.Predictions, fit: mcllo.MCLLOFit) -> list[dict[str, Any]]:
    """Return the ten probabilities of the two planes before and after, with intervals.

    `predictions` are all 10,000 rows in the order of the test set.
    """
    rows: list[dict[str, Any]] = []
    for image in PLANES:
        before = predictions.probs[image - 1]
        after = fit.recalibrate(before[None], interval=0.95)
        label = predictions.classes[predictions.codes[image - 1]]
        rows += [
            {
                "image": image,
                "label": label,
                "class": predictions.classes[j],
                "before": before[j],
                "after": after.probs[0, j],
                "low": after.low[0, j],
                "high": after.high[0, j],
            }
            for j in np.argsort(-before, kind="stable")
        ]
    return rows


def bins(c: mcllo.Comparison) -> list[dict[str, Any]]:
    """Return the ECE of the judged rows for several numbers of bins."""
    ece = mcllo.metrics.expected_calibration_error
    return [
        {"set": name, **{str(b): ece(None, c.recalibrated[name], n_bins=b) for b in BINS}}
        for name in SETS[1:]
    ]


def baselines(train: mcllo.Predictions) -> list[dict[str, Any]]:
    """Return the same fit under every baseline."""
    found = mcllo.baseline_sensitivity(train, n_resamples=199, seed=SEED)
    names = ("baseline", "statistic", "pvalue", "largest_change", "mean_change", "label_changes")
    return [{name: row[name] for name in names} for row in found.table.rows()]


def logits_needed(train: mcllo.Predictions, holdout: mcllo.Predictions) -> list[dict[str, Any]]:
    """Return how far logs of probabilities move a map that was fitted on logits."""
    rows = []
    for name in ("temperature", "vector"):
        own, logs = (
            mcllo.CALIBRATORS[name]().fit(part(train)).predict_proba(part(holdout))
            for part in (lambda p: p, from_logs)
        )
        judged = [mcllo.metrics.log_loss(None, holdout.with_probs(probs)) for probs in (own, logs)]
        rows.append(
            {
                "method": name,
                "largest_change": round(float(np.abs(own - logs).max()), 9),
                "log_loss_logits": judged[0],
                "log_loss_log_probabilities": judged[1],
            }
        )
    return rows


def from_logs(predictions: mcllo.Predictions) -> mcllo.Predictions:
    """Return the predictions of someone who sees probabilities only and takes their logs."""
    y = np.asarray(predictions.classes)[predictions.codes]
    logs = np.log(predictions.probs)
    return mcllo.Predictions.from_arrays(logits=logs, y=y, classes=predictions.classes)


def identity(train: mcllo.Predictions) -> list[dict[str, Any]]:
    """Return what each method does to predictions that need no repair: labels drawn from them."""
    rng = np.random.default_rng(SEED)
    ends = np.cumsum(train.probs, axis=1)
    codes = (rng.random(train.n_samples)[:, None] * ends[:, -1:] > ends).sum(axis=1)
    y = np.asarray(train.classes)[codes]
    drawn = mcllo.Predictions.from_arrays(logits=train.logits, y=y, classes=train.classes)
    rows = []
    for name in METHODS:
        after = mcllo.CALIBRATORS[name]().fit(drawn).predict_proba(drawn)
        top = drawn.probs.max(axis=1)
        rows.append(
            {
                "method": name,
                "mean_change_of_top": float(np.abs(after.max(axis=1) - top).mean()),
                "mean_top_before": float(top.mean()),
                "mean_top_after": float(after.max(axis=1).mean()),
            }
        )
    return rows
