"""The details of an assessment in words: a line each for `assess`, tables for ``--full``."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from ._baseline_result import BaselineSensitivity
from ._class_tests import ClassTests
from ._text import align, ellipsis, format_number, format_p

if TYPE_CHECKING:
    from ._assess import Assessment

MOST_NAMED = 4


def detail_lines(a: Assessment, alpha: float) -> list[str]:
    """Return the ladder's verdict, the worst classes, and what the answer hangs on."""
    d, lines = a.details, []
    if a.test.rejects(alpha) and d.ladder is not None:
        lines.append(f"Kind: {d.ladder.sentence}")
    if a.test.rejects(alpha) and d.class_tests is not None:
        lines.append(class_line(d.class_tests, alpha))
    if d.baselines is not None:
        lines.append(baseline_line(d.baselines))
    if d.zeros is not None:
        lines.append(f"Zeros: {' '.join(d.zeros.sentences(alpha))}")
    return lines


def baseline_line(found: BaselineSensitivity) -> str:
    """Return how far the answer moves with the baseline, and the p-value that covers them all."""
    low, high = min(found.table["statistic"]), max(found.table["statistic"])
    return (
        f"Baseline: statistic {format_number(low)} to {format_number(high)} with each class as "
        f"baseline, p {_p_over_all(found)} over all of them; repaired probabilities move by "
        f"{format_number(found.mean_range)} on average, {format_number(found.largest_range)} at "
        "most."
    )


def _p_over_all(found: BaselineSensitivity) -> str:
    """Return the p-value; ``<=`` where more draws could only make it smaller."""
    text = format_p(found.pvalue)
    least = found.method == "exact" and found.pvalue <= 1.0 / (found.n_resamples + 1)
    return text.replace("=", "<=") if least else text


def class_line(tests: ClassTests, alpha: float) -> str:
    """Return the classes that stand out, the worst first, or that none does."""
    worst = _worst(tests, "adjusted", alpha)
    off = _worst(tests, "large_adjusted", alpha)
    shown = f"Worst classes: {worst}" if worst else "Worst classes: no single one stands out"
    shares = f"come true more or less often than predicted: {off}" if off else ""
    return "; ".join(part for part in (shown, shares) if part) + "."


def _worst(tests: ClassTests, column: str, alpha: float) -> str:
    p = np.nan_to_num(np.array(tests.table[column], dtype=float), nan=np.inf)
    found = [int(j) for j in np.argsort(p, kind="stable") if p[j] <= alpha]
    names = [
        f"{ellipsis(tests.table['class'][j])} (p {format_p(float(p[j]))})"
        for j in found[:MOST_NAMED]
    ]
    rest = len(found) - len(names)
    return ", ".join(names) + (f" and {rest} more" if rest else "")


def full_sections(a: Assessment) -> list[str]:
    """Return everything else, for ``assess --full``: one block of text for each detail."""
    d, blocks = a.details, []
    for title, part in (
        (
            "Kinds of miscalibration, nested (p: against the identity; enough?: against more)",
            d.ladder,
        ),
        ("Class by class, p-values after Holm", d.class_tests),
        ("Every class as the baseline", d.baselines),
        ("Floors for zeros", d.zeros),
        ("Bayes", d.posterior),
        ("Dependent rows", d.robust),
    ):
        if part is not None:
            blocks.append(f"{title}\n{_indent(wrapped_prose(str(part)))}")
    blocks.append(f"Shares, predicted and observed\n{_indent(_shares(a))}")
    blocks += [f"Left out: {name.replace('_', ' ')}: {why}." for name, why in d.skipped.items()]
    return blocks


def _shares(a: Assessment) -> str:
    table = a.in_the_large
    rows = [
        [
            ellipsis(row["class"]),
            f"{100 * row['predicted']:.1f} %",
            f"{100 * row['observed']:.1f} %",
            f"{row['z']:+.1f}" if row["z"] == row["z"] else "-",
            _number(row["pvalue"]),
        ]
        for row in table.rows()
    ]
    return align([["class", "predicted", "observed", "z", "p"], *rows])


def _number(value: Any) -> str:
    return format_number(float(value)) if value == value else "-"


def wrapped_prose(text: str, width: int = 96) -> str:
    """Break sentences at `width`; tables, whose cells are two spaces apart, stay as they are."""
    lines = []
    for line in text.splitlines():
        table = "  " in line.strip()
        lines += [line] if table else textwrap.wrap(line, width) or [""]
    return "\n".join(lines)


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
