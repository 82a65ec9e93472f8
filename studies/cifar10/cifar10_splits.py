"""The image study on other random splits of the same 10,000 images: how much does one table say?

Splits share their images, so that the counts here are no independent repetitions: they show what
hangs on the split, not what hangs on the network.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _common import column
from cifar10_tables import METHODS, PAPER, fitted

import mcllo
from mcllo._compare import mixture_tail
from mcllo.datasets import CIFAR10_TRAIN, Dataset

N_SPLITS = 50
JUDGED = ("uncalibrated", *METHODS)
LEVEL = 0.05


def all_images(data: Dataset) -> mcllo.Predictions:
    """Return both parts as one, in the order of the test set."""
    parts = (data.train, data.holdout)
    order = np.argsort(np.concatenate([data.train_columns["image"], data.holdout_columns["image"]]))
    logits = np.concatenate([part.logits for part in parts])[order]
    codes = np.concatenate([part.codes for part in parts])[order]
    y = np.asarray(data.train.classes)[codes]
    return mcllo.Predictions.from_arrays(logits=logits, y=y, classes=data.train.classes)


def split(predictions: mcllo.Predictions, seed: int) -> tuple[mcllo.Predictions, mcllo.Predictions]:
    """Return rows to learn from and rows to judge on; seed 0 is the split of the package."""
    order = np.random.default_rng(seed).permutation(predictions.n_samples)
    return (
        predictions.take(np.sort(order[:CIFAR10_TRAIN])),
        predictions.take(np.sort(order[CIFAR10_TRAIN:])),
    )


def splits(predictions: mcllo.Predictions, n_splits: int = N_SPLITS) -> list[dict[str, Any]]:
    """Return the numbers of Table 2 for each split, with chi-square p-values as in the paper."""
    return [{"seed": seed, **split_row(*split(predictions, seed))} for seed in range(n_splits)]


def split_row(train: mcllo.Predictions, holdout: mcllo.Predictions) -> dict[str, Any]:
    """Return the numbers of Table 2 for one split."""
    row: dict[str, Any] = {}
    for name in JUDGED:
        after = holdout
        if name != "uncalibrated":
            calibrator = mcllo.CALIBRATORS[name]().fit(train)
            after = holdout.with_probs(calibrator.predict_proba(holdout))
        test = mcllo.calibration_test(after, method="chi2")
        row |= {
            f"p_{name}": test.pvalue,
            f"ece_{name}": mcllo.metrics.expected_calibration_error(None, after),
            f"accuracy_{name}": mcllo.metrics.accuracy(None, after),
            f"log_loss_{name}": mcllo.metrics.log_loss(None, after),
        }
        if name in ("mcllo", "temperature"):
            noisy = test.df if name == "mcllo" else 1
            ratio = 1.0 + holdout.n_samples / train.n_samples
            row[f"p_corrected_{name}"] = mixture_tail(test.statistic, test.df, noisy, ratio)
        if name != "uncalibrated":
            changed = after.probs.argmax(axis=1) != holdout.probs.argmax(axis=1)
            row[f"label_change_{name}"] = float(changed.mean())
        if name == "temperature":
            row |= farthest(after)
    return row


def farthest(scaled: mcllo.Predictions) -> dict[str, Any]:
    """Return the two classes whose delta is farthest from 1 in its standard errors."""
    fit = fitted(scaled)
    order = np.argsort(-np.abs(fit.tau / fit.se_tau), kind="stable")
    return {"worst": fit.compared[order[0]], "second_worst": fit.compared[order[1]]}


def summary(rows: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Return the spread over the splits of every number of Table 2, and where the paper's lies."""
    found = []
    for name in JUDGED:
        for k, what in (
            (1, "p"),
            (2, "ece"),
            (3, "accuracy"),
            (4, "label_change"),
            (0, "log_loss"),
        ):
            if f"{what}_{name}" not in rows[0]:
                continue
            values = column(rows, f"{what}_{name}")
            low, middle, high = np.quantile(values, (0.05, 0.5, 0.95))
            paper = None if what == "log_loss" else PAPER[name][k]
            found.append(
                {
                    "set": name,
                    "what": what,
                    "paper": paper,
                    "seed_0": values[0],
                    "q05": low,
                    "median": middle,
                    "q95": high,
                }
            )
    return found


def claims(rows: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Return in how many of the splits each claim of the paper comes true."""
    p, ece, loss, accuracy = (
        {name: column(rows, f"{what}_{name}") for name in JUDGED}
        for what in ("p", "ece", "log_loss", "accuracy")
    )
    raw = "uncalibrated"
    lowered = {name: ece[name] < ece[raw] for name in METHODS}
    passed = {name: p[name] > LEVEL for name in METHODS}
    found = {
        "uncalibrated_rejected": p[raw] <= LEVEL,
        **{f"{name}_not_rejected": passed[name] for name in METHODS},
        "mcllo_not_rejected_corrected": column(rows, "p_corrected_mcllo") > LEVEL,
        "temperature_not_rejected_corrected": column(rows, "p_corrected_temperature") > LEVEL,
        **{f"{name}_lowers_ece": lowered[name] for name in METHODS},
        "all_but_xu_lower_ece": np.all([lowered[n] for n in METHODS[:-1]], axis=0)
        & ~lowered["xu_davoine"],
        "mcllo_lower_ece_than_temperature": ece["mcllo"] < ece["temperature"],
        "no_method_lowers_accuracy": np.all(
            [accuracy[n] >= accuracy[raw] for n in METHODS], axis=0
        ),
        "mcllo_accuracy_not_lower": accuracy["mcllo"] >= accuracy[raw],
        **{f"{name}_lowers_log_loss": loss[name] < loss[raw] for name in METHODS},
        "mcllo_lower_log_loss_than_temperature": loss["mcllo"] < loss["temperature"],
        "mcllo_lower_log_loss_than_vector": loss["mcllo"] < loss["vector"],
        "cat_and_dog_worst": np.array(
            [{row["worst"], row["second_worst"]} == {"cat", "dog"} for row in rows]
        ),
        "cat_or_dog_worst": np.array([row["worst"] in ("cat", "dog") for row in rows]),
        "pattern_of_table_2": (p[raw] <= LEVEL)
        & passed["mcllo"]
        & passed["vector"]
        & passed["histogram"]
        & ~passed["temperature"]
        & ~passed["xu_davoine"],
    }
    return [
        {"claim": name, "splits": int(true.sum()), "of": len(true)} for name, true in found.items()
    ]
