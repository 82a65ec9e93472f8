"""Results as sentences that a person who is no statistician can act on, and that do not overclaim.

==================  =========================================================================
gamma_j < 1         class j against the baseline is too extreme: log odds should be shrunk
gamma_j > 1         too timid: log odds should be stretched
gamma_j <= 0        ranked the wrong way
delta_j > 1         where the prediction gives even odds, class j is delta_j times as likely
==================  =========================================================================

The details of an assessment in words: a line each for `assess`, tables for ``--full``.
"""

from __future__ import annotations

import textwrap
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._diagnosis.baseline_sensitivity import BaselineSensitivity
from .._diagnosis.class_tests import ClassTests
from .._fit.fit import MCLLOFit
from .._ground.text import align, ellipsis, format_count, format_interval, format_number, format_p
from .._inference.likelihood_tests import CalibrationTest
from .._input.predictions import Predictions
from ..exceptions import PYTHON, Words

if TYPE_CHECKING:
    from .assessment import Assessment

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


MOST_CLASSES = 12


class Departure(NamedTuple):
    """A class whose intervals exclude the identity, and how it departs."""

    label: Hashable
    size: float
    sentence: str


def assessment_text(
    a: Assessment, alpha: float = 0.05, *, full: bool = False, words: Words = PYTHON
) -> str:
    """Return the report that ``print(assessment)`` and ``mcllo assess`` show."""
    parts = [
        heading(a.predictions),
        verdict(a.test, alpha),
        f"  {a.test}",
        *_indented(companion_lines(a, alpha)),
        *_indented(wrapped(detail_lines(a, alpha))),
        *_indented(notes(a.predictions, a.fit, zeros=a.details.zeros is None, words=words)),
        "",
        *metric_lines(a),
        "",
        f"Log odds against {ellipsis(a.fit.baseline)!r}: delta = gamma = 1 changes nothing "
        "(95 % intervals)",
        parameter_table(a.fit) if a.fit.converged else "  (no estimates: see the note above)",
    ]
    if a.test.rejects(alpha):
        parts += ["", "What is wrong", *_indented(departure_lines(a.fit))]
        parts += ["  To repair: fit a calibrator on these rows, and judge it on other rows."]
    if full:
        for block in full_sections(a):
            parts += ["", block]
    return "\n".join(parts)


def wrapped(lines: list[str], width: int = 96) -> list[str]:
    """Break long lines, what follows indented."""
    return [part for line in lines for part in textwrap.wrap(line, width, subsequent_indent="  ")]


def heading(predictions: Predictions) -> str:
    """Return the first line: how much was read."""
    p = predictions
    weighted = "" if p.sample_weight is None else f", {p.weight_kind} weights"
    if p.groups is not None:
        weighted += f", {format_count(int(p.groups.max()) + 1)} groups"
    return (
        f"Calibration of {format_count(p.n_samples)} predictions of {p.n_classes} classes"
        f"{weighted} (baseline: {ellipsis(p.baseline)})"
    )


def verdict(test: CalibrationTest, alpha: float = 0.05) -> str:
    """Return one sentence, with what it does not say."""
    p = test.p_text
    if test.pvalue != test.pvalue:
        return "Verdict: none, because the statistic does not exist for these rows."
    if test.rejects(alpha):
        return f"Verdict: not calibrated. Labels do not follow these probabilities ({p})."
    return (
        f"Verdict: no miscalibration found at level {alpha:g} ({p}). That is not proof of\n"
        "  calibration: the test looks for linear shifts of the log odds, and few rows show little."
    )


def notes(
    predictions: Predictions, fit: MCLLOFit, *, zeros: bool = True, words: Words = PYTHON
) -> list[str]:
    """Return what a reader must know about the data and the fit before trusting the numbers."""
    p, lines = predictions, []
    if p.n_clipped and zeros:
        lines.append(f"Note: {p.zero_phrase.text(words)}")
    if p.max_row_error > 1e-6:
        lines.append(
            f"Note: {format_count(p.n_renormalized)} rows were divided by their sum "
            f"(off by up to {format_number(p.max_row_error, 2)})."
        )
    if p.absent:
        names = ", ".join(ellipsis(label) for label in p.absent[:6])
        lines.append(f"Note: no row is labelled {names}{'...' if len(p.absent) > 6 else ''}.")
    if fit.separated:
        lines.append(
            f"Note: the maximum likelihood estimate does not exist (labels are separated"
            f"{_culprits(fit)}); the statistic is its supremum. To repair, use a penalty."
        )
    elif not fit.converged:
        lines.append(
            "Note: the estimates are not determined by these rows (the likelihood is flat). "
            "To repair, use a penalty."
        )
    return lines


def _culprits(fit: MCLLOFit) -> str:
    """Name the classes that separate, unless that is all of them."""
    names = fit.separated_classes
    if not 0 < len(names) < len(fit.classes):
        return ""
    return f" in {', '.join(ellipsis(name) for name in names[:6])}" + ("..." if names[6:] else "")


def companion_lines(a: Assessment, alpha: float) -> list[str]:
    """Return the omnibus tests, and what it means when only they reject."""
    if not a.companions:
        return []
    tests = "; ".join(str(test) for test in a.companions.values())
    lines = [f"Any other departure: {tests}"]
    found = any(test.pvalue <= alpha / len(a.companions) for test in a.companions.values())
    if found and not a.test.rejects(alpha):
        lines.append(
            "But these reject: something is wrong that is no shift or slope of the log odds. "
            "Look at a reliability diagram."
        )
    return lines


def metric_lines(a: Assessment) -> list[str]:
    """Return accuracy, log loss and Brier score, and each ECE beside its null."""
    m = a.metrics
    lines = [
        f"Accuracy {100 * m['accuracy']:.1f} %   log loss {m['log_loss']:.4f}   "
        f"Brier score {m['brier']:.4f}"
    ]
    for name, title in (("ece", "ECE (top label)"), ("classwise_ece", "ECE (class by class)")):
        line = f"{title} {m[name]:.4f}"
        if name in a.nulls:
            null = a.nulls[name]
            line += (
                f"; calibrated predictions like these show {null.low:.4f} to {null.high:.4f}, "
                f"p {format_p(null.pvalue)}"
            )
        lines.append(line)
    return lines


def parameter_table(fit: MCLLOFit, level: float = 0.95) -> str:
    """Return delta and gamma with intervals, at most `MOST_CLASSES` rows, the worst ones."""
    interval = fit.confidence_interval(level)
    rows = [
        [
            ellipsis(fit.compared[j]),
            format_number(fit.delta[j]),
            format_interval(*interval.delta[j]),
            format_number(fit.gamma[j]),
            format_interval(*interval.gamma[j]),
        ]
        for j in _widest(fit)
    ]
    head = ["class", "delta", "interval", "gamma", "interval"]
    return _with_rest([head, *rows], len(fit.compared))


def departures(fit: MCLLOFit, level: float = 0.95) -> list[Departure]:
    """Return the classes whose interval for delta or gamma excludes 1, the largest first."""
    interval = fit.confidence_interval(level)
    found = []
    for j, label in enumerate(fit.compared):
        words = []
        low, high = interval.gamma[j]
        if high < 1.0 or low > 1.0:
            words.append(f"{_slope_word(fit.gamma[j])}, gamma {_estimate(fit.gamma[j], low, high)}")
        low, high = interval.delta[j]
        if high < 1.0 or low > 1.0:
            words.append(_shift_words(fit.delta[j], low, high))
        if words:
            pair = f"{ellipsis(label)} vs {ellipsis(fit.baseline)}"
            found.append(Departure(label, departure_sizes(fit)[j], f"{pair}: {'; '.join(words)}"))
    return sorted(found, key=lambda departure: -departure.size)


def departure_lines(fit: MCLLOFit) -> list[str]:
    """Return a sentence a class; or why there is none."""
    if not fit.converged:
        return ["The classes cannot be told apart: the estimates do not exist."]
    found = departures(fit)
    if not found:
        return ["No single class stands out; the departure is spread over several."]
    lines = [departure.sentence for departure in found[:MOST_CLASSES]]
    rest = len(found) - len(lines)
    return [*lines, f"... and {rest} more classes"] if rest else lines


def _slope_word(gamma: float) -> str:
    if gamma <= 0.0:
        return "ranked the wrong way"
    return "too extreme" if gamma < 1.0 else "too timid"


def _shift_words(delta: float, low: float, high: float) -> str:
    if delta > 1.0:
        return f"odds understated by {_estimate(delta, low, high)}"
    return f"odds overstated by {_estimate(1.0 / delta, 1.0 / high, 1.0 / low)}"


def _estimate(value: float, low: float, high: float) -> str:
    return f"{format_number(value)} {format_interval(low, high)}"


def departure_sizes(fit: MCLLOFit) -> list[float]:
    """Return each class's larger Wald |z|; 0 where there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.fmax(np.abs(fit.tau / fit.se_tau), np.abs((fit.gamma - 1.0) / fit.se_gamma))
    return [float(value) for value in np.nan_to_num(z)]


def _widest(fit: MCLLOFit) -> list[int]:
    order = np.argsort(-np.array(departure_sizes(fit)), kind="stable")[:MOST_CLASSES]
    return sorted(int(j) for j in order)


def _with_rest(rows: list[list[str]], total: int) -> str:
    rest = total - (len(rows) - 1)
    text = "\n".join("  " + line for line in align(rows).splitlines())
    return text + (f"\n  ... and {rest} more classes, closer to what was predicted" if rest else "")


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]
