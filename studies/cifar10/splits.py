"""The same 10,000 images, split many times: how much one table says, for several networks.

===================  ===========================================================================
`split`              8,000 rows to learn from (X_t) and 2,000 to judge on (X_h); seed 0 is the
                     split of the package
`split_row`          the numbers of Tables 1 and 2 for one split, p-values chi-square's as the
                     paper's
`claims`             in how many splits each claim of the paper came true
`networks`           medians for each network, beside the paper's
===================  ===========================================================================

Splits share images: they show what hangs on the split, not what hangs on the network.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import chdtrc, chdtri

import mcllo
from mcllo.datasets import N_CIFAR10_TRAIN, Dataset
from mcllo.metrics import accuracy, expected_calibration_error, log_loss
from mcllo.reproduce._result import printed, read_printed_rows_by_set

from .. import tables
from ..pages import Row, Rows, Words, column
from ..rule import MARGIN
from ..tables import LEVEL, fit_maximum_likelihood

METHODS = ("mcllo", "temperature", "vector", "histogram", "xu_davoine")
JUDGED = ("uncalibrated", *METHODS)
N_SPLITS = 50
PAPER = read_printed_rows_by_set("table2")
"""Table 2 and section 4.2; p-values of 0.001 are printed as "< 0.001"."""
NETWORKS = {
    "large": "ours",
    "small": "ours, small",
    "cleanlab": "Northcutt and others",
    "keras": "Kumar and others",
}

CLAIMS = {
    "uncalibrated_rejected": "the network's predictions are rejected",
    "mcllo_not_rejected": "after MCLLO they are not rejected",
    "temperature_not_rejected": "after temperature scaling they are not rejected",
    "vector_not_rejected": "after vector scaling they are not rejected",
    "histogram_not_rejected": "after histogram binning they are not rejected",
    "xu_davoine_not_rejected": "after Xu and others they are not rejected",
    "mcllo_not_rejected_corrected": "after MCLLO, allowing for the noise of the map",
    "temperature_not_rejected_corrected": "after temperature scaling, allowing for its noise",
    "mcllo_lowers_ece": "MCLLO lowers the ECE",
    "temperature_lowers_ece": "temperature scaling lowers the ECE",
    "vector_lowers_ece": "vector scaling lowers the ECE",
    "histogram_lowers_ece": "histogram binning lowers the ECE",
    "xu_davoine_lowers_ece": "Xu and others lowers the ECE",
    "four_lower_ece": "MCLLO, temperature and vector scaling and binning all lower the ECE",
    "xu_davoine_raises_ece": "Xu and others does not lower the ECE",
    "mcllo_lower_ece_than_temperature": "MCLLO has a lower ECE than temperature scaling",
    "no_method_lowers_accuracy": "no method lowers the accuracy",
    "mcllo_accuracy_not_lower": "MCLLO does not lower the accuracy",
    "mcllo_lowers_log_loss": "MCLLO lowers the log loss",
    "temperature_lowers_log_loss": "temperature scaling lowers the log loss",
    "vector_lowers_log_loss": "vector scaling lowers the log loss",
    "histogram_lowers_log_loss": "histogram binning lowers the log loss",
    "xu_davoine_lowers_log_loss": "Xu and others lowers the log loss",
    "mcllo_lower_log_loss_than_temperature": "MCLLO has a lower log loss than temperature scaling",
    "mcllo_lower_log_loss_than_vector": "MCLLO has a lower log loss than vector scaling",
    "mcllo_like_vector": "their log losses are within 0.005",
    "cat_and_dog_worst": "after temperature scaling, cat and dog have the two farthest deltas",
    "cat_or_dog_worst": "after temperature scaling, cat or dog has the farthest delta",
    "pattern_of_table_2": "all of Table 2 at once: which six rows of X_h are rejected",
    "all_gammas_below_1": "all gammas of X_t are below 1",
    "temperature_rejected": "after temperature scaling they are rejected",
    "mcllo_lowers_ece_of_10_bins": "MCLLO lowers the ECE with 10 bins",
    "temperature_ece_comparable": "temperature scaling's ECE: at most 0.005 above the others'",
}
"""What each count of `claims` says of a split."""


def all_images(data: Dataset) -> mcllo.Predictions:
    """Return both parts as one, in the order of the test set."""
    parts = (data.train, data.holdout)
    order = np.argsort(
        np.concatenate([data.train_columns["image"], data.holdout_columns["image"]])
    )
    logits = np.concatenate([part.logits for part in parts])[order]
    return labelled(
        data.train, logits, np.concatenate([part.codes for part in parts])[order]
    )


def labelled(
    like: mcllo.Predictions, logits: Any, codes: np.ndarray
) -> mcllo.Predictions:
    """Return predictions with other logits and labels of the same classes."""
    y = np.asarray(like.classes)[codes]
    return mcllo.Predictions.from_arrays(logits=logits, y=y, classes=like.classes)


def split(
    predictions: mcllo.Predictions, seed: int
) -> tuple[mcllo.Predictions, mcllo.Predictions]:
    """Return rows to learn from and rows to judge on."""
    order = np.random.default_rng(seed).permutation(predictions.n_samples)
    return (
        predictions.take(np.sort(order[:N_CIFAR10_TRAIN])),
        predictions.take(np.sort(order[N_CIFAR10_TRAIN:])),
    )


def split_rows(network: str, predictions: mcllo.Predictions, n: int = N_SPLITS) -> Rows:
    """Return the numbers of every split of a network's predictions."""
    return [
        {"network": network, "seed": seed, **split_row(*split(predictions, seed))}
        for seed in range(n)
    ]


def split_row(train: mcllo.Predictions, holdout: mcllo.Predictions) -> dict[str, Any]:
    """Return the numbers of Tables 1 and 2 for one split."""
    fit = fit_maximum_likelihood(train)
    row: dict[str, Any] = {
        "gamma_low": fit.gamma.min(),
        "gamma_high": fit.gamma.max(),
        "statistic_uncalibrated_train": mcllo.calibration_test(
            train, method="chi2"
        ).statistic,
        "ece_uncalibrated_train": expected_calibration_error(None, train),
        "accuracy_uncalibrated_train": accuracy(None, train),
    }
    for name in JUDGED:
        after = holdout
        if name != "uncalibrated":
            calibrator = mcllo.CALIBRATORS[name]().fit(train)
            after = holdout.with_probs(calibrator.predict_proba(holdout))
        test = mcllo.calibration_test(after, method="chi2")
        row |= {
            f"statistic_{name}": test.statistic,
            f"p_{name}": test.pvalue,
            f"ece_{name}": expected_calibration_error(None, after),
            f"accuracy_{name}": accuracy(None, after),
            f"log_loss_{name}": log_loss(None, after),
        }
        if name in ("uncalibrated", "mcllo"):
            row[f"ece10_{name}"] = expected_calibration_error(None, after, n_bins=10)
        if name in ("mcllo", "temperature"):
            noisy = test.df if name == "mcllo" else 1
            ratio = 1.0 + holdout.n_samples / train.n_samples
            row[f"p_corrected_{name}"] = mixture_tail(
                test.statistic, test.df, noisy, ratio
            )
        if name != "uncalibrated":
            changed = after.probs.argmax(axis=1) != holdout.probs.argmax(axis=1)
            row[f"label_change_{name}"] = float(changed.mean())
        if name == "temperature":  # the two classes whose delta is farthest from 1
            fit = fit_maximum_likelihood(after)
            order = np.argsort(-np.abs(fit.tau / fit.se_tau), kind="stable")
            row |= {
                "worst": fit.compared[order[0]],
                "second_worst": fit.compared[order[1]],
            }
    return row


def mixture_tail(statistic: float, df: int, fitted: int, scale: float) -> float:
    """Return ``P(chi2_{df - fitted} + scale * chi2_fitted > statistic)``.

    By the midpoint rule over quantiles of the scaled part.

    >>> round(mixture_tail(28.869, 18, 0, 1.25), 4), round(mixture_tail(36.086, 18, 18, 1.25), 4)
    (0.05, 0.05)
    >>> round(mixture_tail(28.869, 18, 1, 1.0), 4)
    0.05
    """
    if fitted in (0, df):
        return float(chdtrc(df, statistic / (scale if fitted else 1.0)))
    upper = (np.arange(4000) + 0.5) / 4000
    rest = np.maximum(statistic - scale * chdtri(fitted, upper), 0.0)
    return float(np.mean(chdtrc(df - fitted, rest)))


def of_network(rows: Iterable[Row], network: str) -> Rows:
    """Return the splits of one network."""
    return [row for row in rows if row["network"] == network]


def summary(splits: Sequence[Row]) -> Rows:
    """Return the spread over the splits of every number of Table 2."""
    whats = ("p", "ece", "accuracy", "label_change", "log_loss")
    return tables.spread(splits, JUDGED, whats, PAPER)


def claims(splits: Sequence[Row]) -> dict[str, np.ndarray]:
    """Return in which of the splits each claim of the paper comes true."""
    p, ece, loss, right = (
        {name: column(splits, f"{what}_{name}") for name in JUDGED}
        for what in ("p", "ece", "log_loss", "accuracy")
    )
    raw = "uncalibrated"
    lowered = {name: ece[name] < ece[raw] for name in METHODS}
    passed = {name: p[name] > LEVEL for name in METHODS}
    worst = [(row["worst"], row["second_worst"]) for row in splits]
    return {
        "uncalibrated_rejected": p[raw] <= LEVEL,
        "all_gammas_below_1": column(splits, "gamma_high") < 1.0,
        **{f"{name}_not_rejected": passed[name] for name in METHODS},
        "mcllo_not_rejected_corrected": column(splits, "p_corrected_mcllo") > LEVEL,
        "temperature_not_rejected_corrected": column(splits, "p_corrected_temperature")
        > LEVEL,
        **{f"{name}_lowers_ece": lowered[name] for name in METHODS},
        "temperature_rejected": ~passed["temperature"],
        "mcllo_lowers_ece_of_10_bins": column(splits, "ece10_mcllo")
        < column(splits, "ece10_uncalibrated"),
        "temperature_ece_comparable": ece["temperature"]
        <= np.minimum(ece["mcllo"], ece["vector"]) + MARGIN,
        "mcllo_like_vector": np.abs(loss["mcllo"] - loss["vector"]) <= MARGIN,
        "four_lower_ece": np.all([lowered[n] for n in METHODS[:-1]], axis=0),
        "xu_davoine_raises_ece": ~lowered["xu_davoine"],
        "mcllo_lower_ece_than_temperature": ece["mcllo"] < ece["temperature"],
        "no_method_lowers_accuracy": np.all(
            [right[n] >= right[raw] for n in METHODS], axis=0
        ),
        "mcllo_accuracy_not_lower": right["mcllo"] >= right[raw],
        **{f"{name}_lowers_log_loss": loss[name] < loss[raw] for name in METHODS},
        "mcllo_lower_log_loss_than_temperature": loss["mcllo"] < loss["temperature"],
        "mcllo_lower_log_loss_than_vector": loss["mcllo"] < loss["vector"],
        "cat_and_dog_worst": np.array([set(pair) == {"cat", "dog"} for pair in worst]),
        "cat_or_dog_worst": np.array([pair[0] in ("cat", "dog") for pair in worst]),
        "pattern_of_table_2": (p[raw] <= LEVEL)
        & passed["mcllo"]
        & passed["vector"]
        & passed["histogram"]
        & ~passed["temperature"]
        & ~passed["xu_davoine"],
    }


def claim_counts(splits: Sequence[Row]) -> Rows:
    """Return in how many splits of each network each claim came true."""
    counts = {
        network: {name: int(true.sum()) for name, true in claims(own).items()}
        for network in NETWORKS
        if (own := of_network(splits, network))
    }
    n = len(of_network(splits, next(iter(counts))))
    first = next(iter(counts.values()))
    return [
        {
            "claim": name,
            **{network: found[name] for network, found in counts.items()},
            "of": n,
        }
        for name in first
    ]


def networks(splits: Sequence[Row]) -> Rows:
    """Return the median over the splits of what Tables 1 and 2 print, by network."""
    raw = ("uncalibrated_train", "uncalibrated")
    whats = [
        f"{what}_{name}" for what in ("statistic", "accuracy", "ece") for name in raw
    ]
    whats += ["log_loss_uncalibrated", "gamma_low", "gamma_high", "statistic_mcllo"]
    for name in METHODS:
        whats += [f"{what}_{name}" for what in ("p", "ece", "log_loss")]
        whats += (
            [f"label_change_{name}"] if name in ("mcllo", "vector", "histogram") else []
        )
    rows = []
    for what in whats:
        values = {
            network: float(np.median(column(own, what)))
            for network in NETWORKS
            if (own := of_network(splits, network))
        }
        rows.append({"what": what, "paper": printed_as(what), **values})
    return rows


def printed_as(what: str) -> float | None:
    """Return what the paper prints for a number of a split.

    >>> printed_as("ece_uncalibrated_train"), printed_as("gamma_high"), printed_as("log_loss_mcllo")
    (0.033, 0.732, None)
    """
    if what.startswith("gamma"):
        values = [
            row["paper_gamma"] for row in printed("table1") if row["part"] == "X_t"
        ]
        return min(values) if what == "gamma_low" else max(values)
    for name in PAPER:
        for number in ("statistic", "p", "ece", "accuracy", "label_change"):
            if what == f"{number}_{name}":
                return PAPER[name][number]
    return None


def network_words(rows: Sequence[Mapping[str, Any]]) -> Rows:
    """Return the table of networks for a page."""
    forms = {
        "statistic": "{:,.0f}",
        "accuracy": "{:%1}",
        "ece": "{:.3f}",
        "log_loss": "{:.3f}",
    }
    forms |= {"gamma": "{:.2f}", "p": "{:p}", "label_change": "{:%1}"}
    lines = []
    for row in rows:
        kind = next(kind for kind in forms if row["what"].startswith(f"{kind}_"))
        cells = {}
        for column_ in ("paper", *NETWORKS):
            value = row[column_]
            small = kind == "p" and column_ == "paper"
            cells[column_] = (
                tables.paper_p(value) if small else Words().format(forms[kind], value)
            )
        lines.append({"what": NAMES[row["what"]], **cells})
    return lines


def _names() -> dict[str, str]:
    """Return how the page calls each number."""
    parts = {"uncalibrated_train": "X_t", "uncalibrated": "X_h"}
    parts |= {"mcllo": "MCLLO", "temperature": "TS", "vector": "VS"}
    parts |= {"histogram": "EB", "xu_davoine": "Xu"}
    words = {"statistic": "statistic", "p": "p", "ece": "ECE", "accuracy": "accuracy"}
    words |= {"label_change": "labels changed", "log_loss": "log loss"}
    names = {
        f"{k}_{part}": f"{w}, {p}"
        for part, p in parts.items()
        for k, w in words.items()
    }
    return names | {
        "gamma_low": "smallest gamma, X_t",
        "gamma_high": "largest gamma, X_t",
    }


NAMES = _names()
