"""The image study: a VGG of ours in place of the paper's, on one split and on 50.

====================  =====================================================================
one split             8,000 images to learn from (X_t), 2,000 to judge on (X_h): Tables 1 and 2,
                      Figures 1 and 5 of `mcllo.reproduce`, classes and nested models after
                      temperature scaling
all images            each scaled by a temperature fitted on other folds
50 splits             of the same 10,000 images (`splits`), under each reading of what the paper
                      does not give (`studies.choices`)
other networks        a small one of ours, and two public ones, whose splits are in ``given/``
====================  =====================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

import mcllo
import mcllo.plot
from mcllo.datasets import load_cifar10_vgg
from mcllo.metrics import expected_calibration_error, log_loss
from mcllo.reproduce import figure1, figure5, table1
from mcllo.reproduce._tables import images

from .. import choices, rule, tables
from ..ceilings import ceiling_rows, ceilings
from ..figures import (
    BLUE,
    MUTED,
    VERMILION,
    Canvas,
    heading,
    look,
    named_rows,
    runs_figure,
)
from ..pages import Row, Rows, Tables, column, p_word, read, rounded, say
from ..tables import LEVEL, SETS, fit_maximum_likelihood
from .splits import (
    CLAIMS,
    JUDGED,
    METHODS,
    N_SPLITS,
    PAPER,
    all_images,
    claim_counts,
    labelled,
    network_words,
    networks,
    of_network,
    split,
    split_rows,
    summary,
)
from .verdicts import claims

GIVEN = {
    "public_splits.csv": "studies.cifar10.public",
    "public_choices.csv": "studies.cifar10.public",
}
"""Tables that `analyse` does not make."""
DIGITS = {"parameters": 9}
"""More than six, since the page rounds to three decimals: 0.6244996 is not to become 0.625."""
HERE = Path(__file__).parent
SEED = 0
N_DRAWS = {"mcllo": 400, "vector": 400}
"""Draws of a right map, by method; a share of 0.78 has then a standard error of 0.02."""
BINS = (5, 10, 15, 20, 45, 90, 200)
TABLE2 = """set n paper_statistic statistic paper_p p_chi2 p p_method p_corrected paper_ece ece mce
paper_accuracy accuracy paper_label_change label_change classwise_ece log_loss log_loss_difference
difference_low difference_high brier zero_labels"""
N_FIRST, N_PLAIN = 18, 7
"""Epochs of the first part, and epochs without augmentation, by the recipe in `networks`."""
BEFORE: dict[str, Any] = {
    "ls": "none",
    "marker": "D",
    "markersize": 6.0,
    "color": VERMILION,
}
AFTER: dict[str, Any] = {"ls": "none", "marker": "o", "markersize": 6.0, "color": BLUE}


def analyse() -> tuple[Tables, dict[str, Any]]:
    """Return tables and figures, in a minute or two."""
    study = images()
    data, c = study.data, study.comparison
    everything = all_images(data)
    scaled = {"X_h": c.recalibrated["temperature"], "all": cross_scaled(everything)}
    splits = split_rows("large", everything)
    small = split_rows("small", all_images(load_cifar10_vgg(network="small")))
    public = read(HERE / "given" / "public_splits.csv")
    again = rounded([*splits, *small]) + public
    methods = {name: {"": {}} for name in ("mcllo", "temperature", "vector")}
    runs = choices.judged((split(everything, s) for s in range(N_SPLITS)), more=methods)
    made: Tables = {
        "splits": splits,
        "small_splits": small,
        "table2": tables.compared_rows(c, TABLE2, PAPER),
        "parameters": table1().table.rows(),
        "classes": classes(scaled),
        "nested_models": nested_models({"X_t": data.train, **scaled}),
        "planes": figure1().table.rows(),
        "bins": bins(c),
        "baselines": tables.baselines(data.train, n_resamples=199),
        "logits_needed": logits_needed(data.train, data.holdout),
        "identity": identity(data.train),
        "algebra": algebra(data.holdout, study.fit),
        "ece_null": ece_null(data.holdout),
        "ceilings": ceiling_rows(everything, N_DRAWS, data.train.n_samples),
        "xu_readings": choices.xu_readings(data.train, data.holdout, envelope=False),
        "labels": labels_changed(splits),
        "splits_summary": summary(of_network(again, "large")),
        "networks": networks(again),
        "claims": claim_counts(again),
        "choices": choices.choice_rows(runs),
    }
    known = {name: rounded(rows) for name, rows in made.items()}
    made["verdicts"] = rule.claim_rows(claims(known, runs))
    return made, {
        "reliability": figure5().axes,
        "parameters": mcllo.plot.parameters(study.fit),
        "planes": figure1().axes,
        "shares": shares_figure(
            [row for row in made["classes"] if row["part"] == "all"]
        ),
        "splits": splits_figure(of_network(again, "large")),
    }


def from_logs(predictions: mcllo.Predictions) -> mcllo.Predictions:
    """Return the predictions of someone who sees probabilities only and takes their logs."""
    return labelled(predictions, np.log(predictions.probs), predictions.codes)


def labels_changed(splits: Sequence[Row]) -> Rows:
    """Return in how many splits a method of one scalar changed a label."""
    scalar = [
        column(splits, f"label_change_{name}") > 0.0
        for name in ("temperature", "xu_davoine")
    ]
    return [{"changed": int(np.any(scalar, axis=0).sum()), "splits": len(splits)}]


def cross_scaled(predictions: mcllo.Predictions, folds: int = 5) -> mcllo.Predictions:
    """Return all rows after temperature scaling, each by a temperature fitted on other folds."""
    c = mcllo.compare(
        predictions, methods=("temperature",), cv=folds, n_resamples=99, seed=SEED
    )
    return c.recalibrated["temperature"]


def classes(scaled: Mapping[str, mcllo.Predictions]) -> Rows:
    """Return for each class what is left to recalibrate after temperature scaling."""
    kept = (
        "class",
        "statistic",
        "pvalue",
        "adjusted",
        "predicted",
        "observed",
        "large_adjusted",
    )
    rows = []
    for part, predictions in scaled.items():
        fit = fit_maximum_likelihood(predictions)
        columns = {
            "delta": fit.delta,
            "gamma": fit.gamma,
            "z_delta": fit.tau / fit.se_tau,
        }
        for row in mcllo.class_tests(predictions, seed=SEED).table.rows():
            own = dict.fromkeys(columns)
            if row["class"] in fit.compared:
                j = fit.compared.index(row["class"])
                own = {name: values[j] for name, values in columns.items()}
            rows.append({"part": part, **{name: row[name] for name in kept}, **own})
    return rows


def nested_models(parts: Mapping[str, mcllo.Predictions]) -> Rows:
    """Return which nested model is enough, for each set of predictions."""
    kept = (
        "model",
        "df",
        "statistic",
        "pvalue",
        "method",
        "larger_pvalue",
        "larger_method",
    )
    kept += ("rejected", "aic", "bic")
    rows = []
    for part, predictions in parts.items():
        found = mcllo.nested_models(predictions, seed=SEED)
        for row in found.rows:
            own = {name: getattr(row, name) for name in kept}
            rows.append({"part": part, **own, "chosen": row.model == found.chosen})
    return rows


def bins(c: mcllo.Comparison) -> Rows:
    """Return the ECE of the judged rows for several numbers of bins."""
    return [
        {"set": name}
        | {
            str(b): expected_calibration_error(None, c.recalibrated[name], n_bins=b)
            for b in BINS
        }
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
    """Return what each method does to predictions that need no recalibration: labels drawn from
    them.
    """
    ends = np.cumsum(train.probs, axis=1)
    uniform = np.random.default_rng(SEED).random(train.n_samples)
    drawn = labelled(
        train, train.logits, (uniform[:, None] * ends[:, -1:] > ends).sum(axis=1)
    )
    top, rows = drawn.probs.max(axis=1), []
    for name in METHODS:
        after = mcllo.CALIBRATORS[name]().fit(drawn).predict_proba(drawn).max(axis=1)
        row = {"method": name, "mean_change_of_top": float(np.abs(after - top).mean())}
        rows.append(
            row | {"mean_top_before": top.mean(), "mean_top_after": after.mean()}
        )
    return rows


def algebra(rows: mcllo.Predictions, fit: mcllo.MCLLOFit) -> Rows:
    """Return how far the identity map moves a probability, and whether others survive a baseline.

    Under another baseline a map of this family is a line in the log odds for each class: the
    largest distance of a log odds from its best line is 0 where the map is one there too.
    """
    ones = np.ones_like(fit.gamma)
    names = (fit.classes, fit.baseline)
    same = mcllo.MCLLOMap(np.zeros_like(fit.tau), ones, *names)
    moved = np.abs(same.recalibrate(rows.probs) - rows.probs).max()
    found = [{"what": "identity", "largest": round(float(moved), 12)}]
    slopes = {"equal slopes": fit.gamma.mean() * ones, "unequal slopes": fit.gamma}
    for what, gamma in slopes.items():
        after = mcllo.MCLLOMap(fit.tau, gamma, *names).recalibrate(rows.probs)
        furthest = 0.0
        for j in range(1, len(fit.classes)):
            x = np.log(rows.probs[:, j] / rows.probs[:, 0])
            eta = np.log(after[:, j] / after[:, 0])
            line = np.polynomial.Polynomial.fit(x, eta, 1)
            furthest = max(furthest, float(np.abs(eta - line(x)).max()))
        found.append({"what": what, "largest": round(furthest, 9)})
    return found


def ece_null(rows: mcllo.Predictions, n_draws: int = 999) -> Rows:
    """Return the p-value of the ECE, from labels drawn from the predictions."""
    observed = expected_calibration_error(None, rows)
    cumulative = rows.probs.cumsum(axis=1)
    rng = np.random.default_rng(SEED)
    as_large = 1
    for _ in range(n_draws):
        uniform = rng.random((rows.n_samples, 1)) * cumulative[:, -1:]
        codes = (cumulative < uniform).sum(axis=1)
        drawn = replace(rows, codes=codes)
        as_large += expected_calibration_error(None, drawn) >= observed
    return [{"ece": observed, "pvalue": as_large / (n_draws + 1), "draws": n_draws}]


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
        kept = [
            i for i, row in enumerate(order) if (row["large_adjusted"] <= LEVEL) == flag
        ]
        ax.plot([excess[i] for i in kept], kept, zorder=3, **style)
    named_rows(ax, [row["class"] for row in order])
    ax.set_xlabel("Predicted less observed share (percentage points)")
    heading(
        ax, "After temperature scaling", "10,000 images; each class has a share of 10 %"
    )
    told = {"rejected at 0.05 (Holm)": BEFORE, "not rejected at 0.05 (Holm)": AFTER}
    seen = [row["large_adjusted"] <= LEVEL for row in order]
    shown = zip(told.items(), (any(seen), not all(seen)), strict=True)
    key = [
        Line2D([], [], label=name, **style) for (name, style), drawn in shown if drawn
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
        words=(
            f"one of {len(splits)} splits",
            f"{note} Triangle: printed as below 0.001.",
        ),
    )


def facts(t: Tables) -> dict[str, object]:
    """Return what the page asks for, from the tables."""
    on_train = [row["gamma"] for row in t["parameters"] if row["part"] == "X_t"]
    statistics = column(t["baselines"], "statistic")
    log = read(HERE / "training_log_large.csv")
    return {
        **{
            f"parameters_{part}": [
                row for row in t["parameters"] if row["part"] == part
            ]
            for part in ("X_t", "X_h")
        },
        "table2": map(tables.format_method_rows, t["table2"]),
        "classes": class_words(t["classes"]),
        "nested_models": nested_models_words(t["nested_models"]),
        "planes": [row for k, row in enumerate(t["planes"]) if k % 10 < 5],
        "splits": tables.spread_words(t["splits_summary"]),
        "bins": [
            {"set": SETS[r["set"]], "ece": [r[str(b)] for b in BINS]} for r in t["bins"]
        ],
        **tables.baseline_facts(t["baselines"]),
        "counts": [row | {"name": CLAIMS[row["claim"]]} for row in t["claims"]],
        "true": {row["claim"]: f"{row['large']} of {row['of']}" for row in t["claims"]},
        **rule.verdict_facts(t["verdicts"]),
        "networks": network_words(t["networks"]),
        "choices": choices.choice_words(t["choices"]),
        "public_choices": public_words(t["public_choices"]),
        "method": {row["set"]: row | method_p(row) for row in t["table2"]},
        "lowest_loss": min(
            row["log_loss"] for row in t["table2"] if row["set"] in JUDGED
        ),
        "gamma_low": min(on_train),
        "gamma_high": max(on_train),
        "scaled": {row["class"]: row for row in t["classes"] if row["part"] == "all"},
        "enough": {
            f"{row['part']}, {row['model']}": row["larger_pvalue"]
            for row in t["nested_models"]
        },
        "plane": {
            row["image"]: row for row in t["planes"] if row["class"] == row["label"]
        },
        "logs": {row["method"]: row["largest_change"] for row in t["logits_needed"]},
        "right": ceilings(t["ceilings"]),
        "rejected_if_right": 1.0 - ceilings(t["ceilings"])["mcllo"],
        "xu_readings": choices.xu_words(t["xu_readings"]),
        "xu_without_change": sum(row["label_change"] == 0 for row in t["xu_readings"]),
        "xu_n": len(t["xu_readings"]),
        "ece_null": t["ece_null"][0],
        "moved": {row["method"]: row["mean_change_of_top"] for row in t["identity"]},
        "with_bins": {row["set"]: {b: row[str(b)] for b in BINS} for row in t["bins"]},
        "statistic_low": statistics.min(),
        "statistic_high": statistics.max(),
        "n_epochs": len(log),
        "n_plain": N_PLAIN,
        "n_first": N_FIRST,
        "first_accuracy": log[N_FIRST - 1]["test_accuracy"],
        "first_loss": log[N_FIRST - 1]["test_log_loss"],
        "test_log_loss": log[-1]["test_log_loss"],
        "minutes": column(log, "seconds").sum() / 60.0,
        "test_accuracy": log[-1]["test_accuracy"],
        "epochs": log,
    }


def method_p(row: Row) -> dict[str, str]:
    """Return the p-value to quote of a set: the exact one, or chi-square's where that is used."""
    exact = row["p_method"] != "chi2"
    return {"p": p_word(row["p"], row["p_method"]) if exact else p_word(row["p_chi2"])}


def public_words(rows: Sequence[Row]) -> Rows:
    """Return the readings of the public networks for the page, side by side."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in choices.choice_words(rows):
        own = {"name": row["name"], "reading": row["reading"]}
        own |= {f"{row['network']}_{what}": row[what] for what in ("kept", "lowered")}
        own[f"{row['network']}_ece"] = row["median_ece"]
        key = (row["method"], row["reading"])
        found[key] = found.get(key, {}) | own
    return list(found.values())


def class_words(rows: Sequence[Row]) -> Rows:
    """Return each class after temperature scaling, its parameters in both sets as words."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        words = (
            "baseline" if row["delta"] is None else say("{delta:.2f}, {gamma:.2f}", row)
        )
        both = {row["part"]: words, f"p_{row['part']}": row["adjusted"]}
        found[row["class"]] = found.get(row["class"], {}) | row | both
    return list(found.values())


def nested_models_words(rows: Sequence[Row]) -> Rows:
    """Return each nested model: is it enough, in each set of predictions?"""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        words = p_word(row["larger_pvalue"]) + (" ←" if row["chosen"] == "yes" else "")
        head = {"model": row["model"].replace("_", " "), "df": row["df"]}
        found[row["model"]] = found.get(row["model"], head) | {row["part"]: words}
    return list(found.values())
