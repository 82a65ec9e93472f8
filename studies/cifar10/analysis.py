"""The image study: a VGG of ours in place of the paper's, on one split and on 50.

====================  =====================================================================
one split             8,000 images to learn from (X_t), 2,000 to judge on (X_h): Tables 1 and 2,
                      classes and nested models after temperature scaling, the planes of Figure 1
all images            each scaled by a temperature fitted on other folds
50 splits             of the same 10,000 images: how much does one table say? They share images,
                      and show what hangs on the split, not what hangs on the network
====================  =====================================================================

The pictures are not drawn: CIFAR-10 has no licence that lets us pass them on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from scipy.special import chdtrc, chdtri

import mcllo
import mcllo.plot
from mcllo.datasets import CIFAR10_TRAIN, Dataset, load_cifar10_vgg
from mcllo.metrics import accuracy, expected_calibration_error, log_loss
from mcllo.reproduce._printed import by_set, printed

from .. import tables
from ..figures import BLUE, MUTED, VERMILION, Canvas, heading, look, named_rows, runs_figure, ticks
from ..pages import Row, Rows, Tables, column, p_word, read, rounded, say
from ..tables import LEVEL, SETS, fitted

HERE = Path(__file__).parent
METHODS = ("mcllo", "temperature", "vector", "histogram", "xu_davoine")
JUDGED = ("uncalibrated", *METHODS)
SEED, N_SPLITS = 0, 50
BINS = (5, 10, 15, 20, 45, 90, 200)
PLANES = (5037, 4526)
"""Images of the paper's Figure 1, counted from one: counted from zero, 4526 is a cat."""
TABLE2 = """set n paper_statistic statistic paper_p p_chi2 p p_method p_corrected paper_ece ece
paper_accuracy accuracy paper_label_change label_change classwise_ece log_loss log_loss_difference
difference_low difference_high brier zero_labels"""
PAPER = by_set("table2")
"""Table 2 and section 4.2; p-values of 0.001 are printed as "< 0.001"."""
PAPER_PARAMETERS = printed("table1")
"""Table 1; its columns have no names, and are taken to be in alphabetical order."""
BEFORE: dict[str, Any] = {"ls": "none", "marker": "D", "markersize": 6.0, "color": VERMILION}
AFTER: dict[str, Any] = {"ls": "none", "marker": "o", "markersize": 6.0, "color": BLUE}


def analyse() -> tuple[Tables, dict[str, Any]]:
    """Return tables and figures, in half a minute."""
    data = load_cifar10_vgg()
    everything = all_images(data)
    c = tables.compared(data.train, data.holdout, METHODS, n_resamples=1999)
    fits = {"X_t": fitted(data.train), "X_h": fitted(data.holdout)}
    scaled = {"X_h": c.recalibrated["temperature"], "all": cross_scaled(everything)}
    splits = [{"seed": seed, **split_row(*split(everything, seed))} for seed in range(N_SPLITS)]
    again = rounded(splits)
    made = {
        "splits": splits,
        "table2": tables.compared_rows(c, TABLE2, PAPER),
        "parameters": parameters(fits),
        "classes": classes(scaled),
        "ladders": ladders({"X_t": data.train, **scaled}),
        "planes": planes(everything, fits["X_t"]),
        "bins": bins(c),
        "baselines": tables.baselines(data.train, n_resamples=199),
        "logits_needed": logits_needed(data.train, data.holdout),
        "identity": identity(data.train),
        "splits_summary": summary(again),
        "claims": claims(again),
    }
    return made, {
        "reliability": mcllo.plot.comparison(c, n_bins=10),
        "parameters": mcllo.plot.parameters(fits["X_t"]),
        "planes": planes_figure(made["planes"]),
        "shares": shares_figure([row for row in made["classes"] if row["part"] == "all"]),
        "splits": splits_figure(again),
    }


def all_images(data: Dataset) -> mcllo.Predictions:
    """Return both parts as one, in the order of the test set."""
    parts = (data.train, data.holdout)
    order = np.argsort(np.concatenate([data.train_columns["image"], data.holdout_columns["image"]]))
    logits = np.concatenate([part.logits for part in parts])[order]
    return labelled(data.train, logits, np.concatenate([part.codes for part in parts])[order])


def labelled(like: mcllo.Predictions, logits: Any, codes: np.ndarray) -> mcllo.Predictions:
    """Return predictions with other logits and labels of the same classes."""
    y = np.asarray(like.classes)[codes]
    return mcllo.Predictions.from_arrays(logits=logits, y=y, classes=like.classes)


def from_logs(predictions: mcllo.Predictions) -> mcllo.Predictions:
    """Return the predictions of someone who sees probabilities only and takes their logs."""
    return labelled(predictions, np.log(predictions.probs), predictions.codes)


def parameters(fits: Mapping[str, mcllo.MCLLOFit]) -> Rows:
    """Return the paper's Table 1 and ours, for the rows to learn from and to judge on."""
    rows: Rows = []
    for part, fit in fits.items():
        paper = [row for row in PAPER_PARAMETERS if row["part"] == part]
        rows += tables.parameter_rows(fit, paper)
    return rows


def cross_scaled(predictions: mcllo.Predictions, folds: int = 5) -> mcllo.Predictions:
    """Return all rows after temperature scaling, each by a temperature fitted on other folds."""
    c = mcllo.compare(predictions, methods=("temperature",), cv=folds, n_resamples=99, seed=SEED)
    return c.recalibrated["temperature"]


def classes(scaled: Mapping[str, mcllo.Predictions]) -> Rows:
    """Return for each class what is left to repair after temperature scaling."""
    kept = ("class", "statistic", "pvalue", "adjusted", "predicted", "observed", "large_adjusted")
    rows = []
    for part, predictions in scaled.items():
        fit = fitted(predictions)
        columns = {"delta": fit.delta, "gamma": fit.gamma, "z_delta": fit.tau / fit.se_tau}
        for row in mcllo.class_tests(predictions, seed=SEED).table.rows():
            own = dict.fromkeys(columns)
            if row["class"] in fit.compared:
                j = fit.compared.index(row["class"])
                own = {name: values[j] for name, values in columns.items()}
            rows.append({"part": part, **{name: row[name] for name in kept}, **own})
    return rows


def ladders(parts: Mapping[str, mcllo.Predictions]) -> Rows:
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


def planes(predictions: mcllo.Predictions, fit: mcllo.MCLLOFit) -> Rows:
    """Return the ten probabilities of the two planes before and after, with intervals.

    `predictions` are all 10,000 rows in the order of the test set.
    """
    rows: Rows = []
    for image in PLANES:
        before = predictions.probs[image - 1]
        after = fit.recalibrate(before[None], interval=0.95)
        label = predictions.classes[predictions.codes[image - 1]]
        for j in np.argsort(-before, kind="stable"):
            row = {"image": image, "label": label, "class": predictions.classes[j]}
            row |= {"before": before[j], "after": after.probs[0, j]}
            rows.append(row | {"low": after.low[0, j], "high": after.high[0, j]})
    return rows


def bins(c: mcllo.Comparison) -> Rows:
    """Return the ECE of the judged rows for several numbers of bins."""
    return [
        {"set": name}
        | {str(b): expected_calibration_error(None, c.recalibrated[name], n_bins=b) for b in BINS}
        for name in JUDGED
    ]


def logits_needed(train: mcllo.Predictions, holdout: mcllo.Predictions) -> Rows:
    """Return how far logs of probabilities move a map that was fitted on logits."""
    rows = []
    for name in ("temperature", "vector"):
        own, logs = (
            mcllo.CALIBRATORS[name]().fit(part(train)).predict_proba(part(holdout))
            for part in (lambda p: p, from_logs)
        )
        change = round(float(np.abs(own - logs).max()), 9)
        judged = [log_loss(None, holdout.with_probs(probs)) for probs in (own, logs)]
        row = {"method": name, "largest_change": change, "log_loss_logits": judged[0]}
        rows.append(row | {"log_loss_log_probabilities": judged[1]})
    return rows


def identity(train: mcllo.Predictions) -> Rows:
    """Return what each method does to predictions that need no repair: labels drawn from them."""
    ends = np.cumsum(train.probs, axis=1)
    uniform = np.random.default_rng(SEED).random(train.n_samples)
    drawn = labelled(train, train.logits, (uniform[:, None] * ends[:, -1:] > ends).sum(axis=1))
    top, rows = drawn.probs.max(axis=1), []
    for name in METHODS:
        after = mcllo.CALIBRATORS[name]().fit(drawn).predict_proba(drawn).max(axis=1)
        row = {"method": name, "mean_change_of_top": float(np.abs(after - top).mean())}
        rows.append(row | {"mean_top_before": top.mean(), "mean_top_after": after.mean()})
    return rows


def split(predictions: mcllo.Predictions, seed: int) -> tuple[mcllo.Predictions, mcllo.Predictions]:
    """Return rows to learn from and rows to judge on; seed 0 is the split of the package."""
    order = np.random.default_rng(seed).permutation(predictions.n_samples)
    return (
        predictions.take(np.sort(order[:CIFAR10_TRAIN])),
        predictions.take(np.sort(order[CIFAR10_TRAIN:])),
    )


def split_row(train: mcllo.Predictions, holdout: mcllo.Predictions) -> dict[str, Any]:
    """Return the numbers of Table 2 for one split, with chi-square p-values as in the paper."""
    row: dict[str, Any] = {}
    for name in JUDGED:
        after = holdout
        if name != "uncalibrated":
            calibrator = mcllo.CALIBRATORS[name]().fit(train)
            after = holdout.with_probs(calibrator.predict_proba(holdout))
        test = mcllo.calibration_test(after, method="chi2")
        row |= {
            f"p_{name}": test.pvalue,
            f"ece_{name}": expected_calibration_error(None, after),
            f"accuracy_{name}": accuracy(None, after),
            f"log_loss_{name}": log_loss(None, after),
        }
        if name in ("mcllo", "temperature"):
            noisy = test.df if name == "mcllo" else 1
            ratio = 1.0 + holdout.n_samples / train.n_samples
            row[f"p_corrected_{name}"] = mixture_tail(test.statistic, test.df, noisy, ratio)
        if name != "uncalibrated":
            changed = after.probs.argmax(axis=1) != holdout.probs.argmax(axis=1)
            row[f"label_change_{name}"] = float(changed.mean())
        if name == "temperature":  # the two classes whose delta is farthest from 1
            fit = fitted(after)
            order = np.argsort(-np.abs(fit.tau / fit.se_tau), kind="stable")
            row |= {"worst": fit.compared[order[0]], "second_worst": fit.compared[order[1]]}
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


def summary(splits: Sequence[Row]) -> Rows:
    """Return the spread over the splits of every number of Table 2."""
    whats = ("p", "ece", "accuracy", "label_change", "log_loss")
    return tables.spread(splits, JUDGED, whats, PAPER)


def claims(splits: Sequence[Row]) -> Rows:
    """Return in how many of the splits each claim of the paper comes true."""
    p, ece, loss, right = (
        {name: column(splits, f"{what}_{name}") for name in JUDGED}
        for what in ("p", "ece", "log_loss", "accuracy")
    )
    raw = "uncalibrated"
    lowered = {name: ece[name] < ece[raw] for name in METHODS}
    passed = {name: p[name] > LEVEL for name in METHODS}
    worst = [(row["worst"], row["second_worst"]) for row in splits]
    found = {
        "uncalibrated_rejected": p[raw] <= LEVEL,
        **{f"{name}_not_rejected": passed[name] for name in METHODS},
        "mcllo_not_rejected_corrected": column(splits, "p_corrected_mcllo") > LEVEL,
        "temperature_not_rejected_corrected": column(splits, "p_corrected_temperature") > LEVEL,
        **{f"{name}_lowers_ece": lowered[name] for name in METHODS},
        "all_but_xu_lower_ece": np.all([lowered[n] for n in METHODS[:-1]], axis=0)
        & ~lowered["xu_davoine"],
        "mcllo_lower_ece_than_temperature": ece["mcllo"] < ece["temperature"],
        "no_method_lowers_accuracy": np.all([right[n] >= right[raw] for n in METHODS], axis=0),
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
    return tables.counted(found, "splits")


@look()
def planes_figure(rows: Sequence[Row]) -> list[Axes]:
    """Draw the five largest probabilities of the two planes before and after MCLLO."""
    figure = Canvas(9.0, 2.9)
    axes = figure.panels(1, len(PLANES), sharex=True)
    for ax, image in zip(axes, PLANES, strict=True):
        own = [row for row in rows if row["image"] == image][:5]
        place = np.arange(len(own))
        ends = [[r[end] for r in own] for end in ("low", "high")]
        ax.hlines(place + 0.16, *ends, color=BLUE, lw=2.2)
        ax.plot([r["before"] for r in own], place - 0.16, zorder=3, **BEFORE)
        ax.plot([r["after"] for r in own], place + 0.16, zorder=3, **AFTER)
        named_rows(ax, [r["class"] for r in own], foot=0.5)
        ax.set_xlim(-0.03, 1.03)
        ticks(ax.xaxis, [0.0, 0.25, 0.5, 0.75, 1.0])
        ax.set_xlabel("Probability")
        first = next(r for r in own if r["class"] == r["label"])
        numbers = f"{first['label']}: {first['before']:.3f}, after MCLLO {first['after']:.3f}"
        heading(ax, f"Test image {image}", numbers)
    key = [
        Line2D([], [], label="as predicted", **BEFORE),
        Line2D([], [], label="after MCLLO, 95 % interval", **(AFTER | {"ls": "-", "lw": 2.2})),
    ]
    figure.footer("The five classes that the network finds most probable.", key)
    return axes


@look()
def shares_figure(rows: Sequence[Row]) -> Axes:
    """Draw by how much each class is predicted too often after temperature scaling."""
    figure = Canvas(6.4, 3.4)
    ax = figure.panels()[0]
    order = sorted(rows, key=lambda row: row["observed"] - row["predicted"])
    excess = [100.0 * (row["predicted"] - row["observed"]) for row in order]
    ax.axvline(0.0, color=MUTED, lw=0.8, zorder=1)
    ax.hlines(np.arange(len(order)), 0.0, excess, color=MUTED, lw=1.0, zorder=1)
    for flag, style in ((True, BEFORE), (False, AFTER)):
        kept = [i for i, row in enumerate(order) if (row["large_adjusted"] <= LEVEL) == flag]
        ax.plot([excess[i] for i in kept], kept, zorder=3, **style)
    named_rows(ax, [row["class"] for row in order])
    ax.set_xlabel("Predicted less observed share (percentage points)")
    heading(ax, "After temperature scaling", "10,000 images; each class has a share of 10 %")
    key = [
        Line2D([], [], label="rejected at 0.05 (Holm)", **BEFORE),
        Line2D([], [], label="not rejected", **AFTER),
    ]
    figure.footer("", key)
    return ax


def splits_figure(splits: Sequence[Row]) -> list[Axes]:
    """Draw p-value, ECE and log loss of every split, and the paper's."""
    panels = (
        ("p", "p-value", "chi-square, as in the paper"),
        ("ece", "ECE", "45 bins"),
        ("log_loss", "Log loss", "the paper does not give it"),
    )
    note = "2,000 images judged each time; splits share images. Grey: rejected at the level 0.05."
    return runs_figure(
        splits,
        tables.METHODS,
        panels,
        PAPER,
        height=3.9,
        sizes=(3.4, 15),
        ends=(-8, 0.4, 0.2),
        words=(f"one of {len(splits)} splits", f"{note} Triangle: printed as below 0.001."),
    )


def facts(t: Tables) -> dict[str, object]:
    """Return what the page asks for, from the tables."""
    gamma = {f"{row['part']}, {row['class']}": row["gamma"] for row in t["parameters"]}
    on_train = [value for name, value in gamma.items() if name.startswith("X_t")]
    statistics = column(t["baselines"], "statistic")
    log = read(HERE / "training_log_small.csv")
    return {
        **{
            f"parameters_{part}": [row for row in t["parameters"] if row["part"] == part]
            for part in ("X_t", "X_h")
        },
        "table2": map(tables.method_words, t["table2"]),
        "classes": class_words(t["classes"]),
        "ladders": ladder_words(t["ladders"]),
        "planes": [row for k, row in enumerate(t["planes"]) if k % 10 < 5],
        "splits": tables.spread_words(t["splits_summary"]),
        "bins": [{"set": SETS[r["set"]], "ece": [r[str(b)] for b in BINS]} for r in t["bins"]],
        **tables.baseline_facts(t["baselines"]),
        **tables.claim_facts(t["claims"], "splits"),
        "method": {row["set"]: row for row in t["table2"]},
        "gamma": gamma,
        "gamma_low": min(on_train),
        "gamma_high": max(on_train),
        "scaled": {row["class"]: row for row in t["classes"] if row["part"] == "all"},
        "enough": {f"{row['part']}, {row['model']}": row["larger_pvalue"] for row in t["ladders"]},
        "plane": {row["image"]: row for row in t["planes"] if row["class"] == row["label"]},
        "logs": {row["method"]: row["largest_change"] for row in t["logits_needed"]},
        "moved": {row["method"]: row["mean_change_of_top"] for row in t["identity"]},
        "with_bins": {row["set"]: {b: row[str(b)] for b in BINS} for row in t["bins"]},
        "statistic_low": statistics.min(),
        "statistic_high": statistics.max(),
        "n_epochs": len(log),
        "minutes": column(log, "seconds").sum() / 60.0,
        "test_accuracy": log[-1]["test_accuracy"],
        "epochs": log,
    }


def class_words(rows: Sequence[Row]) -> Rows:
    """Return each class after temperature scaling, its parameters in both sets as words."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        words = "baseline" if row["delta"] is None else say("{delta:.2f}, {gamma:.2f}", row)
        both = {row["part"]: words, f"p_{row['part']}": row["adjusted"]}
        found[row["class"]] = found.get(row["class"], {}) | row | both
    return list(found.values())


def ladder_words(rows: Sequence[Row]) -> Rows:
    """Return each nested model: is it enough, in each set of predictions?"""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        words = p_word(row["larger_pvalue"]) + (" ←" if row["chosen"] == "yes" else "")
        head = {"model": row["model"].replace("_", " "), "df": row["df"]}
        found[row["model"]] = found.get(row["model"], head) | {row["part"]: words}
    return list(found.values())
