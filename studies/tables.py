"""Tables that more than one study has: objects of `mcllo` in, rows out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import mcllo
from mcllo._utils.statements import suppress_warnings as suppress_warnings
from mcllo.reproduce._result import BELOW_PRINTED
from mcllo.reproduce._tables import compare_methods as compare_methods
from mcllo.reproduce._tables import compared_rows as compared_rows
from mcllo.reproduce._tables import fit_maximum_likelihood as fit_maximum_likelihood
from mcllo.reproduce._tables import parameter_rows as parameter_rows

from .pages import Row, Rows, Words, column, p_word, say

LEVEL = 0.05
SPREAD = ("paper", "seed_0", "q05", "median", "q95")
METHODS = {
    "uncalibrated": "as predicted",
    "mcllo": "MCLLO",
    "temperature": "temperature scaling",
    "vector": "vector scaling",
    "histogram": "histogram binning",
    "xu_davoine": "Xu and others",
}
SETS = {"uncalibrated_train": "X_t, as predicted"}
SETS |= {name: f"X_h, {words}" for name, words in METHODS.items()}
SETS["histogram"] += " (EB)"


def baselines(train: mcllo.Predictions, **options: Any) -> Rows:
    """Return the same fit under every baseline."""
    found = mcllo.baseline_sensitivity(train, seed=0, **options)
    names = (
        "baseline",
        "statistic",
        "pvalue",
        "largest_change",
        "mean_change",
        "label_changes",
    )
    return [{name: row[name] for name in names} for row in found.table.rows()]


def baseline_facts(rows: Sequence[Row]) -> dict[str, object]:
    """Return the table of baselines for a page, and the largest changes."""
    return {
        "baselines": [
            row | {"baseline": row["baseline"].replace("_", " ")} for row in rows
        ],
        "largest_change": column(rows, "largest_change").max(),
        "label_changes": column(rows, "label_changes").max(),
    }


def spread(
    rows: Sequence[Row],
    sets: Iterable[str],
    whats: Sequence[str],
    paper: Mapping[str, Row],
) -> Rows:
    """Return the spread over runs of each number of each set, and the paper's."""
    found = []
    for name in sets:
        for what in (what for what in whats if f"{what}_{name}" in rows[0]):
            values = column(rows, f"{what}_{name}")
            low, middle, high = np.quantile(values, (0.05, 0.5, 0.95))
            printed = paper.get(name, {}).get(what.removesuffix("_chi2"))
            row = {"set": name, "what": what, "paper": printed, "seed_0": values[0]}
            found.append(row | {"q05": low, "median": middle, "q95": high})
    return found


def counted(claims: Mapping[str, np.ndarray], runs: str) -> Rows:
    """Return in how many runs each claim comes true.

    >>> counted({"sure": np.array([True, True]), "rare": np.array([True, False])}, "splits")
    [{'claim': 'sure', 'splits': 2, 'of': 2}, {'claim': 'rare', 'splits': 1, 'of': 2}]
    """
    return [
        {"claim": name, runs: int(true.sum()), "of": len(true)}
        for name, true in claims.items()
    ]


def claim_facts(rows: Sequence[Row], runs: str) -> dict[str, str]:
    """Return the counts in words, by claim."""
    return {row["claim"]: f"{row[runs]} of {row['of']}" for row in rows}


def spread_words(rows: Sequence[Row]) -> Rows:
    """Return the spread over runs as words."""
    words = {"p": "p (chi-square)", "p_chi2": "p (chi-square)", "ece": "ECE"}
    words |= {"log_loss": "log loss"}
    lines = []
    for row in rows:
        if row["what"] in words and row["set"] != "uncalibrated_train":
            form = "p" if row["what"].startswith("p") else ".3f"
            ours = [n for n in row if n in SPREAD and n != "paper"]
            numbers = {n: Words().format_field(row[n], form) for n in ours}
            printed = row["paper"]
            numbers["paper"] = (
                paper_p(printed) if form == "p" else Words().format_field(printed, form)
            )
            name = f"{SETS[row['set']]}: {words[row['what']]}"
            lines.append(row | numbers | {"name": name})
    return lines


def paper_p(value: float | str | None) -> str:
    """Return a p-value as the paper prints it.

    >>> paper_p("<0.001"), paper_p(0.133)
    ('< 0.001', '0.133')
    """
    if isinstance(value, str):
        return value.replace(BELOW_PRINTED, "< 0.001")
    return p_word(value)


def format_method_rows(row: Row) -> dict[str, Any]:
    """Return a row of `compared_rows` with the words that are no single number."""
    change = say("{paper_label_change:%2} / {label_change:%2}", row)
    difference = "–"
    if row.get("log_loss_difference") is not None:
        interval = (
            "{log_loss_difference:.4f} [{difference_low:.4f}, {difference_high:.4f}]"
        )
        difference = say(interval, row) if row["log_loss_difference"] else "best"
    return {
        **row,
        "name": SETS[row["set"]],
        "paper_p": paper_p(row["paper_p"]),
        "p": "–" if row["p_method"] == "chi2" else p_word(row["p"], row["p_method"]),
        "change": "–" if row["label_change"] is None else change,
        "difference": difference,
    }
