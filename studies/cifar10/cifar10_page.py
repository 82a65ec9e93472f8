"""The tables of ``docs/studies/cifar10.md`` and of the README, from the committed results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from _common import column, markdown, p_word, percent, read_table
from cifar10_facts import facts_of, fixed, p_or_none
from cifar10_verdicts import CLAIMS, VERDICTS

NAMES = {
    "uncalibrated_train": "X_t, as predicted",
    "uncalibrated": "X_h, as predicted",
    "mcllo": "X_h, MCLLO",
    "temperature": "X_h, temperature scaling",
    "vector": "X_h, vector scaling",
    "histogram": "X_h, histogram binning (EB)",
    "xu_davoine": "X_h, Xu and others",
}
PARTS = {"X_t": "X_t, as predicted", "X_h": "X_h, after temperature scaling"}
PARTS |= {"all": "all images, after temperature scaling"}
WORDS = {
    "p": "p (chi-square)",
    "ece": "ECE",
    "label_change": "label change",
    "log_loss": "log loss",
}
WORDS |= {"accuracy": "accuracy"}

Row = dict[str, str]


def blocks(results: Path) -> dict[str, str]:
    """Return the generated parts of the page."""
    return {
        "parameters": _parameters(results),
        "table2": _table2(results),
        "classes": _classes(results),
        "ladders": _ladders(results),
        "planes": _planes(results),
        "splits": _splits(results),
        "claims": _claims(results),
        "bins": _bins(results),
        "baselines": _baselines(results),
        "verdicts": _verdicts(results),
    }


def training(log: Path) -> str:
    """Return the README's table of epochs, and the time they took."""
    header = ["epoch", "learning rate at its end", "training loss", "test accuracy"]
    header += ["test log loss", "seconds"]
    epochs = read_table(log)
    rows = [
        [
            row["epoch"],
            f"{float(row['lr']):.4f}",
            f"{float(row['train_loss']):.3f}",
            percent(row["test_accuracy"], 2),
            f"{float(row['test_log_loss']):.4f}",
            f"{float(row['seconds']):.0f}",
        ]
        for row in epochs
    ]
    minutes = column(epochs, "seconds").sum() / 60.0
    last = f"**{percent(epochs[-1]['test_accuracy'], 2)} of the test images right** after"
    head = f"{last} {len(epochs)} epochs and {minutes:.0f} minutes."
    return f"{head}\n\n{markdown(header, rows, left=0)}"


def _pair(paper: str, ours: str, shown: Callable[[str], str]) -> str:
    """Return "paper / ours"."""
    return f"{shown(paper) if paper else '–'} / {shown(ours)}" if ours else "–"


def _paper_p(text: str) -> str:
    return "< 0.001" if text == "0.001" else p_word(text)


def _parameters(results: Path) -> str:
    tables = []
    for part in ("X_t", "X_h"):
        header = [part, "delta: paper", "ours", "gamma: paper", "ours"]
        rows = [
            [
                row["class"],
                *(
                    f"{float(row[source + name]):.3f} ({float(row[source + 'se_' + name]):.3f})"
                    for name in ("delta", "gamma")
                    for source in ("paper_", "")
                ),
            ]
            for row in read_table(results / "parameters.csv")
            if row["part"] == part
        ]
        tables.append(markdown(header, rows))
    return "\n\n".join(tables)


def _table2(results: Path) -> str:
    header = ["", "n", "statistic", "p: paper / chi-square", "p exact", "p corrected", "ECE"]
    header += ["accuracy", "label change", "log loss", "worse than best by"]
    rows = []
    for row in read_table(results / "table2.csv"):
        difference = "–"
        if row["log_loss_difference"]:
            low, high = (f"{float(row[f'difference_{end}']):.4f}" for end in ("low", "high"))
            difference = f"{float(row['log_loss_difference']):.4f} [{low}, {high}]"
            difference = "best" if float(row["log_loss_difference"]) == 0.0 else difference
        rows.append(
            [
                NAMES[row["set"]],
                row["n"],
                _pair(row["paper_statistic"], row["statistic"], fixed(1)),
                f"{_paper_p(row['paper_p'])} / {p_word(row['p_chi2'])}",
                p_word(row["p"], row["p_method"]) if row["p_method"] != "chi2" else "–",
                p_word(row["p_corrected"]) or "–",
                _pair(row["paper_ece"], row["ece"], fixed(3)),
                f"{percent(row['paper_accuracy'])} / {percent(row['accuracy'], 2)}",
                _pair(row["paper_label_change"], row["label_change"], lambda t: percent(t, 2)),
                f"{float(row['log_loss']):.4f}",
                difference,
            ]
        )
    return markdown(header, rows)


def _classes(results: Path) -> str:
    found = read_table(results / "classes.csv")
    header = ["class", "X_h: delta, gamma", "p (Holm)", "all: delta, gamma", "p (Holm)"]
    header += ["all: predicted share", "observed", "p (Holm)"]
    held_out, all_images = ([r for r in found if r["part"] == p] for p in ("X_h", "all"))
    rows = []
    for held, every in zip(held_out, all_images, strict=True):
        rows.append(
            [
                held["class"],
                *(
                    cell
                    for row in (held, every)
                    for cell in (_estimates(row), p_or_none(row["adjusted"]))
                ),
                percent(every["predicted"], 2),
                percent(every["observed"], 2),
                p_or_none(every["large_adjusted"]),
            ]
        )
    return markdown(header, rows)


def _estimates(row: Row) -> str:
    if not row["delta"]:
        return "baseline"
    return f"{float(row['delta']):.2f}, {float(row['gamma']):.2f}"


def _ladders(results: Path) -> str:
    found = read_table(results / "ladders.csv")
    header = ["model", "parameters", *PARTS.values()]
    models = list(dict.fromkeys(row["model"] for row in found))
    rows = []
    for model in models:
        own = {row["part"]: row for row in found if row["model"] == model}
        cells = [
            (p_or_none(own[part]["larger_pvalue"]) + (" ←" if own[part]["chosen"] == "yes" else ""))
            for part in PARTS
        ]
        rows.append([model.replace("_", " "), own["X_t"]["df"], *cells])
    return markdown(header, rows)


def _planes(results: Path) -> str:
    header = ["image", "class", "as predicted", "after MCLLO", "95 % interval"]
    rows = []
    found = read_table(results / "planes.csv")
    for image in dict.fromkeys(row["image"] for row in found):
        for row in [r for r in found if r["image"] == image][:5]:
            numbers = [f"{float(row[name]):.4f}" for name in ("before", "after", "low", "high")]
            rows.append([image, row["class"], *numbers[:2], f"{numbers[2]} to {numbers[3]}"])
    return markdown(header, rows, left=2)


def _splits(results: Path) -> str:
    header = ["", "paper", "seed 0", "5 %", "median", "95 %"]
    rows = []
    for row in read_table(results / "splits_summary.csv"):
        what = row["what"]
        if what in ("accuracy", "label_change"):
            continue
        shown = p_word if what == "p" else fixed(3)
        printed = _paper_p(row["paper"]) if what == "p" else shown(row["paper"])
        numbers = [shown(row[name]) for name in ("seed_0", "q05", "median", "q95")]
        rows.append([f"{NAMES[row['set']]}: {WORDS[what]}", printed, *numbers])
    return markdown(header, rows)


def _claims(results: Path) -> str:
    rows = [
        [CLAIMS[row["claim"]], f"{row['splits']} of {row['of']}"]
        for row in read_table(results / "claims.csv")
    ]
    return markdown(["of the splits", "true in"], rows)


def _bins(results: Path) -> str:
    found = read_table(results / "bins.csv")
    header = ["ECE with bins:", *(name for name in found[0] if name != "set")]
    rows = [
        [NAMES[row["set"]], *(fixed(3)(row[name]) for name in row if name != "set")]
        for row in found
    ]
    return markdown(header, rows)


def _baselines(results: Path) -> str:
    header = ["baseline", "statistic", "largest change of a probability", "mean", "labels changed"]
    rows = [
        [
            row["baseline"],
            f"{float(row['statistic']):.1f}",
            f"{float(row['largest_change']):.3f}",
            f"{float(row['mean_change']):.4f}",
            percent(row["label_changes"]),
        ]
        for row in read_table(results / "baselines.csv")
    ]
    return markdown(header, rows)


def _verdicts(results: Path) -> str:
    facts = facts_of(results)
    cells = [[claim, f"**{verdict}**", why.format(**facts)] for claim, verdict, why in VERDICTS]
    return markdown(["the paper says", "", "what we found"], cells, left=3)
