"""The numbers of the ecology study: objects of `mcllo` in, rows of tables out."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

import mcllo
from mcllo._robust import robust_test
from mcllo.datasets import Dataset, load_portal_rodents
from mcllo.exceptions import MclloWarning
from mcllo.metrics import accuracy, log_loss

METHODS = ("mcllo", "temperature", "vector", "histogram", "xu_davoine")
GROUPINGS = ("plot_month", "month", "plot")
N_PLOTS, N_HALVES, SEED = 24, 20, 0


def compared(middle: mcllo.Predictions, late: mcllo.Predictions) -> mcllo.Comparison:
    """Return the paper's five methods, fitted on the middle years, judged on the late ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MclloWarning)
        return mcllo.compare(middle, late, methods=METHODS, seed=SEED)


def comparison(c: mcllo.Comparison) -> list[dict[str, Any]]:
    """Return the table of the methods."""
    return [
        {
            "set": row.method,
            "n": row.n,
            "statistic": row.statistic,
            "p": row.pvalue,
            "p_method": row.pvalue_method,
            "ece": row.ece,
            "classwise_ece": row.classwise_ece,
            "accuracy": row.accuracy,
            "label_change": row.label_change,
            "log_loss": row.log_loss,
            "log_loss_above_best": row.log_loss_difference,
            "difference_low": row.difference_low,
            "difference_high": row.difference_high,
            "brier": row.brier,
        }
        for row in c.rows
    ]


def tests(c: mcllo.Comparison) -> list[dict[str, Any]]:
    """Return the plain test and the robust one for three ways to group the rows."""
    grouped = {name: load_portal_rodents(groups=name) for name in GROUPINGS}
    rows = []
    for name, plain in _judged(c).items():
        rows.append(_plain_row(name, plain))
        for by, data in grouped.items():
            part = data.train if name == "middle" else data.holdout
            rows.append(_robust_row(name, by, plain, part.groups))
    return rows


def _judged(c: mcllo.Comparison) -> dict[str, mcllo.Predictions]:
    after = {f"late_{name}": c.recalibrated[name] for name in ("mcllo", "vector")}
    return {"middle": c.train, "late": c.holdout, **after}


def _plain_row(name: str, predictions: mcllo.Predictions) -> dict[str, Any]:
    test = mcllo.calibration_test(predictions, statistic="score", seed=SEED)
    return {
        "set": name,
        "groups": "none",
        "n": predictions.n_samples,
        "n_groups": predictions.n_samples,
        "statistic": test.statistic,
        "df": test.df,
        "p": test.pvalue,
        "p_method": test.method,
        "design_effect": 1.0,
    }


def _robust_row(name: str, by: str, predictions: mcllo.Predictions, groups: Any) -> dict[str, Any]:
    test = robust(predictions, groups)
    return {
        "set": name,
        "groups": by,
        "n": predictions.n_samples,
        "n_groups": test.n_groups,
        "statistic": test.statistic,
        "df": test.df,
        "p": test.pvalue,
        "p_method": test.method,
        "design_effect": test.design_effect,
    }


def robust(predictions: mcllo.Predictions, groups: Any) -> Any:
    """Return the robust test of rows that depend on each other within groups."""
    return robust_test(replace(predictions, groups=groups), seed=SEED)


def repaired(plain: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Return the middle and the late rows after the map fitted on the middle ones."""
    calibrator = mcllo.MCLLOCalibrator().fit(plain.train)
    middle, late = (calibrator.predict_proba(part.probs) for part in (plain.train, plain.holdout))
    return middle, late


def years(plain: Dataset) -> list[dict[str, Any]]:
    """Return accuracy and log loss of each year, as predicted and repaired."""
    rows = []
    for period, part, probs, columns in _periods(plain):
        after = part.with_probs(probs)
        for year in np.unique(columns["year"]):
            mask = columns["year"] == year
            rows.append(
                {
                    "year": int(year),
                    "period": period,
                    "n": int(mask.sum()),
                    "accuracy": accuracy(None, part.take(mask)),
                    "accuracy_mcllo": accuracy(None, after.take(mask)),
                    "log_loss": log_loss(None, part.take(mask)),
                    "log_loss_mcllo": log_loss(None, after.take(mask)),
                }
            )
    return rows


def shares(plain: Dataset) -> list[dict[str, Any]]:
    """Return the share of each genus in the captures of a year: observed, predicted, repaired."""
    rows = []
    for period, part, probs, columns in _periods(plain):
        for year in np.unique(columns["year"]):
            mask = columns["year"] == year
            for k, genus in enumerate(part.classes):
                rows.append(
                    {
                        "year": int(year),
                        "period": period,
                        "genus": genus,
                        "observed": float((part.codes[mask] == k).mean()),
                        "predicted": float(part.probs[mask, k].mean()),
                        "repaired": float(probs[mask, k].mean()),
                    }
                )
    return rows


def periods(plain: Dataset) -> list[dict[str, Any]]:
    """Return the same shares over whole periods."""
    return [
        {
            "period": period,
            "genus": genus,
            "observed": float((part.codes == k).mean()),
            "predicted": float(part.probs[:, k].mean()),
            "repaired": float(probs[:, k].mean()),
        }
        for period, part, probs, _ in _periods(plain)
        for k, genus in enumerate(part.classes)
    ]


def _periods(plain: Dataset) -> list[tuple[str, mcllo.Predictions, np.ndarray, dict[str, Any]]]:
    middle, late = repaired(plain)
    return [
        ("middle", plain.train, middle, plain.train_columns),
        ("late", plain.holdout, late, plain.holdout_columns),
    ]


def halves(plain: Dataset, n_halves: int = N_HALVES) -> list[dict[str, Any]]:
    """Return a control without a shift of years: fit on half of the plots, judge on the others.

    Same years, plots drawn at random; what the two tests say about the repaired rows.
    """
    plot = plain.train_columns["plot"]
    rows = []
    for seed in range(n_halves):
        order = 1 + np.random.default_rng(seed).permutation(N_PLOTS)
        learn = np.isin(plot, order[: N_PLOTS // 2])
        calibrator = mcllo.MCLLOCalibrator().fit(plain.train.take(learn))
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
