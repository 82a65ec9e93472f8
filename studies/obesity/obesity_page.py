"""The tables of ``docs/studies/obesity.md``, from the committed results."""

from __future__ import annotations

from pathlib import Path

from _common import markdown, p_word, percent, read_table

NAMES = {
    "uncalibrated_train": "X_t, as predicted",
    "uncalibrated": "X_h, as predicted",
    "mcllo": "X_h, MCLLO",
    "histogram": "X_h, histogram binning (EB)",
    "xu_davoine": "X_h, Xu and others",
    "temperature": "X_h, temperature scaling",
}
FLOORS = {"1e-06": "1e-6", "0.001": "half a vote, 0.001"}
CLAIMS = {
    "uncalibrated_rejected": "the forest's predictions are rejected",
    "mcllo_not_rejected": "after MCLLO they are not rejected",
    "mcllo_not_rejected_corrected": "the same, allowing for the noise of the map (where it exists)",
    "histogram_not_rejected": "after histogram binning they are not rejected",
    "xu_davoine_rejected": "after Xu and others they are rejected",
    "temperature_not_rejected": "after temperature scaling they are not rejected",
    "mcllo_lowest_ece_of_the_papers_three": "MCLLO has the lowest ECE of the paper's three methods",
    "mcllo_lowers_ece": "MCLLO lowers the ECE",
    "all_three_lower_ece": "all three lower the ECE",
    "mcllo_lowers_log_loss": "MCLLO lowers the log loss",
    "mcllo_lower_log_loss_than_temperature": "MCLLO has a lower log loss than temperature scaling",
    "mcllo_raises_accuracy": "MCLLO raises the accuracy",
    "estimate_exists": "MCLLO's maximum likelihood estimate exists",
    "mcllo_not_rejected_where_it_exists": "where it exists: after MCLLO they are not rejected",
    "largest_p_has_best_log_loss": "of four methods, the one with the largest p has the lowest "
    "log loss",
    "whole_pattern_of_table_4": "all of Table 4 at once: which rows are rejected, and the lowest "
    "ECE",
}
VERDICTS = (
    ("75 % and 25 %, twice, give 528, 396 and 132 rows", "holds", "2,111 rows."),
    (
        "the baseline is the last class of the alphabet",
        "does not hold",
        "Table 3 and its text use Normal Weight; the last class is Overweight Level II. "
        "We follow the table.",
    ),
    (
        "the forest's predictions of X_h are not calibrated",
        "holds",
        "Rejected in {uncalibrated_rejected} forests. They are too timid: every gamma is above 1.",
    ),
    (
        "MCLLO repairs the predictions: the test does not reject them afterwards",
        "cannot be told",
        "Not rejected in {mcllo_not_rejected}, and 132 rows show little. Where the estimate exists "
        "({estimate_exists}) the test that allows for the noise of the map rejects about as often "
        "as it would a right map (not rejected: {mcllo_not_rejected_corrected}). Where it does "
        "not, the map can be far worse than none.",
    ),
    (
        "histogram binning repairs the predictions: the test does not reject them afterwards",
        "does not hold",
        "Not rejected in {histogram_not_rejected}: the result of one split is a toss of a coin.",
    ),
    (
        "after Xu and others the predictions are still rejected",
        "holds",
        "In {xu_davoine_rejected}, by our reading of the method.",
    ),
    (
        "MCLLO has the lowest ECE of the three methods",
        "does not hold",
        "In {mcllo_lowest_ece_of_the_papers_three}; on this split histogram binning's is a third "
        "of it.",
    ),
    (
        "repaired predictions follow the line more closely",
        "holds",
        "All three methods lower the ECE in {all_three_lower_ece}.",
    ),
    (
        "recalibration raises accuracy (78.8 % to 81.1 %)",
        "cannot be told",
        "Three people of 132. With our forests MCLLO raises it in {mcllo_raises_accuracy}.",
    ),
    (
        "the test helps to learn which strategy is best",
        "cannot be told",
        "The largest p goes with the lowest log loss in {largest_p_has_best_log_loss}; among four "
        "methods that is more than chance, and less than a guide.",
    ),
    (
        "temperature scaling cannot be used with forests",
        "does not hold",
        "Adding a constant to all logits changes nothing, so the logs of the votes will do. Its "
        "log loss is above MCLLO's in only {mcllo_lower_log_loss_than_temperature}.",
    ),
    (
        "vector scaling cannot be used with forests",
        "holds",
        "It depends on which logits are chosen, and a forest has none of its own.",
    ),
    (
        "forests are not guaranteed to be calibrated",
        "holds",
        "Rejected in {uncalibrated_rejected}.",
    ),
    (
        "MCLLO can repair predictions that are not calibrated",
        "holds",
        "It lowers the log loss of rows it never saw in {mcllo_lowers_log_loss}, and the ECE in "
        "{mcllo_lowers_ece}. Whether nothing is left to repair is another claim; see above.",
    ),
    (
        "the choice of the baseline has very small effects",
        "holds on average",
        "Decisions and means hardly move; a single person's probability moves by up to "
        "{largest_change}, and labels of up to {label_changes} of the rows change.",
    ),
)


def blocks(results: Path) -> dict[str, str]:
    """Return the generated parts of the page."""
    return {
        "table4": _table4(results),
        "parameters": _parameters(results),
        "zero-rules": _zero_rules(results),
        "seeds": _seeds(results),
        "claims": _claims(results),
        "baselines": _baselines(results),
        "verdicts": _verdicts(results),
    }


def _pair(paper: str, ours: str) -> str:
    return f"{paper or '–'} / {ours}"


def _table4(results: Path) -> str:
    parts = []
    for clip, word in FLOORS.items():
        rows = [row for row in read_table(results / "table4.csv") if row["clip"] == clip]
        header = [f"floor {word}", "n", "p: paper / chi-square", "p exact", "p corrected"]
        header += ["ECE: paper / ours", "accuracy", "label change", "log loss"]
        parts.append(markdown(header, [_row4(row) for row in rows]))
    return "\n\n".join(parts)


def _row4(row: dict[str, str]) -> list[str]:
    printed = "< 0.001" if row["set"] == "uncalibrated_train" else row["paper_p"]
    accuracy = row["paper_accuracy"] and percent(row["paper_accuracy"])
    change = row["paper_label_change"] and percent(row["paper_label_change"], 2)
    changed = _pair(change, percent(row["label_change"], 2)) if row["label_change"] else "–"
    return [
        NAMES[row["set"]],
        row["n"],
        _pair(printed, p_word(row["p_chi2"])),
        p_word(row["p"], row["p_method"]),
        p_word(row["p_corrected"]) or "–",
        _pair(row["paper_ece"] and _three(row["paper_ece"]), f"{float(row['ece']):.3f}"),
        _pair(accuracy, percent(row["accuracy"])),
        changed,
        f"{float(row['log_loss']):.3f}",
    ]


def _parameters(results: Path) -> str:
    header = ["class", "delta: paper", "ours", "ours, half a vote"]
    header += ["gamma: paper", "ours", "ours, half a vote"]
    by_clip = {
        clip: [row for row in read_table(results / "parameters.csv") if row["clip"] == clip]
        for clip in FLOORS
    }
    rows = []
    for small, half in zip(*by_clip.values(), strict=True):
        cells = [small["class"].replace("_", " ")]
        for name in ("delta", "gamma"):
            cells.append(_estimate(small[f"paper_{name}"], small[f"paper_se_{name}"]))
            cells += [_estimate(row[name], row[f"se_{name}"]) for row in (small, half)]
        rows.append(cells)
    return markdown(header, rows)


def _estimate(value: str, error: str) -> str:
    return f"{float(value):.3f} ({float(error):.3f})" if error else f"{float(value):.3g} (none)"


def _zero_rules(results: Path) -> str:
    header = ["floor", "statistic of X_h", "p exact", "log loss: MCLLO", "penalty 1", "temperature"]
    header += ["ECE: MCLLO", "penalty 1", "temperature"]
    kinds = ("maximum_likelihood", "penalty_1", "temperature")
    rows = [
        [
            row["clip"],
            f"{float(row['statistic']):.2f}",
            p_word(row["p"]),
            *(f"{float(row[f'log_loss_{kind}']):.3f}" for kind in kinds),
            *(f"{float(row[f'ece_{kind}']):.3f}" for kind in kinds),
        ]
        for row in read_table(results / "zero_rules.csv")
    ]
    return markdown(header, rows)


def _seeds(results: Path) -> str:
    header = ["", "paper", "seed 0", "5 %", "median", "95 %", "forests below the paper's"]
    words = {"p_chi2": "p (chi-square)", "ece": "ECE"}
    rows = []
    for row in read_table(results / "seeds_summary.csv"):
        if row["what"] not in words or row["set"] == "uncalibrated_train":
            continue
        show = p_word if row["what"] == "p_chi2" else _three
        share = percent(row["share_below_paper"], 0) if row["share_below_paper"] else "–"
        numbers = [show(row[name]) for name in ("seed_0", "q05", "median", "q95")]
        printed = _three(row["paper"]) if row["paper"] else "–"
        rows.append([f"{NAMES[row['set']]}: {words[row['what']]}", printed, *numbers, share])
    return markdown(header, rows)


def _three(text: str) -> str:
    return f"{float(text):.3f}"


def _claims(results: Path) -> str:
    rows = [
        [CLAIMS[row["claim"]], f"{row['forests']} of {row['of']}"]
        for row in read_table(results / "claims.csv")
    ]
    return markdown(["in our forests", "true in"], rows)


def _baselines(results: Path) -> str:
    header = ["baseline", "statistic", "largest change of a probability", "mean", "labels changed"]
    rows = [
        [
            row["baseline"].replace("_", " "),
            f"{float(row['statistic']):.1f}",
            f"{float(row['largest_change']):.3f}",
            f"{float(row['mean_change']):.4f}",
            percent(row["label_changes"]),
        ]
        for row in read_table(results / "baselines.csv")
    ]
    return markdown(header, rows)


def _verdicts(results: Path) -> str:
    facts = {
        row["claim"]: f"{row['forests']} of {row['of']}"
        for row in read_table(results / "claims.csv")
    }
    rows = read_table(results / "baselines.csv")
    facts["largest_change"] = f"{max(float(row['largest_change']) for row in rows):.2f}"
    facts["label_changes"] = percent(max(row["label_changes"] for row in rows))
    cells = [[claim, f"**{verdict}**", why.format(**facts)] for claim, verdict, why in VERDICTS]
    return markdown(["the paper says", "", "what we found"], cells, left=3)
