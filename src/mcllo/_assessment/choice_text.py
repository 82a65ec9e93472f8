"""What an assessment of choice sets says, of options and positions, and its text.

==================  ================================================================================
heading             how much was read
verdict, meaning    the answer, and what it means and does not mean
chosen              how often the chosen option is right, and is expected to be
effect_size.*       how large the departure is, and how often it is right at a few levels
slope, position.*   after a rejection: over- or underconfident, which positions are favoured, which
                    are never right
remedy              what to do
test, map_fit,      the test behind it, what the map leaves, and what needs no map
omnibus
note.*, metric.*    what must be known of the rows; accuracy, log loss, Brier score, ECE
==================  ================================================================================
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .._inference.effect_size_text import NATS, POINTS, amount_and_interval, level_texts
from .._utils.formatting import (
    Table,
    align_columns,
    ellipsis,
    format_count,
    format_interval,
    format_number,
    pvalue_text,
)
from .._utils.results import none_for_nonfinite
from .._utils.statements import Statement, select_statements
from .report_text import indent_lines, wrap_with_hanging_indent
from .sentences import HEADLINES, state_excluded_error
from .verdict import Verdict

if TYPE_CHECKING:
    from .choice_assessment import ChoiceAssessment

MAX_LISTED = 12
"""Most subgroups, or positions, that the text lists."""
FAMILY = "by one slope and shifts of positions"
"""Which errors the main test looks for and the sizes of the map measure."""
MIN_EXPECTED = 3.0
"""Right answers expected of a position from which none is news: a chance of ``exp(-3)``, 5 %."""


def choice_statements(a: ChoiceAssessment, verdict: Verdict) -> list[Statement]:
    """Return everything that is said after a verdict, in the order of the text."""
    headline, level = HEADLINES[verdict.kind]
    numbers = none_for_nonfinite(verdict.to_dict())
    said = [
        _heading(a),
        Statement("verdict", f"{headline}.", level, numbers),
        Statement("meaning", _meaning(a, verdict), level),
        _chosen(a),
        *_other(a, verdict),
        *_sizes(a, verdict),
    ]
    if verdict.rejected and verdict.main_rejects:
        said += [*_slope(a), *_favoured_positions(a), *_never_right(a)]
    said.append(Statement("remedy", _remedy(a, verdict)))
    said.append(Statement("test", str(a.test), numbers=a.test.to_dict()))
    fit_test = a.goodness_of_fit
    said.append(Statement("map_fit", str(fit_test), numbers=fit_test.to_dict()))
    for test in a.omnibus_tests.values():
        words = f"Chosen option: {test}"
        said.append(Statement("omnibus", words, numbers=test.to_dict()))
    return [*said, *_notes(a), *_metrics(a)]


def _heading(a: ChoiceAssessment) -> Statement:
    p = a.predictions
    least = int(p.offered_counts.min())
    most = int(p.offered_counts.max())
    options = f"{least} options" if least == most else f"{least} to {most} options"
    words = f"Calibration of {format_count(p.n_samples)} choice sets of {options}"
    return Statement("heading", words)


def _meaning(a: ChoiceAssessment, verdict: Verdict) -> str:
    """Return what the verdict says and what not."""
    tolerated = f"{100 * verdict.tolerance:g} percentage points"
    if verdict.tolerance == 0.01:
        tolerated = "one percentage point"
    if verdict.kind == "inconclusive":
        return verdict.reason
    if verdict.kind == "miscalibrated":
        return (
            "Options are not right as often as their probabilities say: do not read these as "
            "frequencies."
        )
    if verdict.kind == "negligible":
        return (
            f"The average error {FAMILY} is below {tolerated}, and no other error was found: with "
            "so many rows the test sees what hardly matters."
        )
    if verdict.equivalent:
        return (
            f"Equivalent to calibrated within {tolerated}: larger errors {FAMILY} are excluded, "
            "and no other error was found."
        )
    if verdict.beyond or not a.effect_size.high < 1.0:
        return "That is not proof of calibration: these rows exclude no size of error."
    excluded = state_excluded_error(a.effect_size, FAMILY)
    return f"That is not proof of calibration: {excluded}"


def _chosen(a: ChoiceAssessment) -> Statement:
    """Return how often the most probable option is right."""
    right = a.metrics["accuracy"]
    expected = a.expected["accuracy"]
    words = (
        f"The most probable option is right in {100 * right:.1f} % of the rows; its probabilities "
        f"promise {100 * expected:.1f} %."
    )
    return Statement("chosen", words, numbers={"right": right, "expected": expected})


def _other(a: ChoiceAssessment, verdict: Verdict) -> list[Statement]:
    """Return that something is wrong which is no slope or shift."""
    if verdict.omnibus_alone:
        words = (
            "But the Hosmer-Lemeshow test of the chosen option rejects: something is wrong that is "
            "no slope or shift of positions. Look at the reliability diagram."
        )
        return [Statement("other", words, "bad")]
    if verdict.rejected and verdict.map_rejected:
        words = (
            "One slope and shifts of positions are not all that is wrong: more than chance is left "
            f"after the best of them (p {pvalue_text(verdict.map_pvalue)})."
        )
        return [Statement("other.shape", words, "bad", {"pvalue": verdict.map_pvalue})]
    return []


def _sizes(a: ChoiceAssessment, verdict: Verdict) -> list[Statement]:
    """Return how large it is, where that is known and not said yet."""
    size = a.effect_size
    said = []
    is_known = not math.isnan(size.mean_change) and not verdict.map_rejected
    if is_known and (size.low > 0.0 or verdict.kind == "inconclusive"):
        amount, ends = amount_and_interval(
            size.mean_change, size.low, size.high, POINTS, size.confidence
        )
        words = (
            f"If the error is one of slope and positions, {amount} of probability stand on the "
            f"wrong options on average{ends}."
        )
        numbers = {"mean_change": size.mean_change, "low": size.low, "high": size.high}
        said.append(Statement("effect_size", words, numbers=numbers))
    if 100.0 * size.at_least >= 0.1:
        words = (
            f"Whatever the kind of error, it is at least {100 * size.at_least:.1f} percentage "
            f"points ({50 * (1 + size.confidence):g} % confidence)."
        )
        numbers = {"at_least": size.at_least}
        said.append(Statement("effect_size.at_least", words, numbers=numbers))
    if size.reason:
        words = f"Sizes are rough: {size.reason}."
        said.append(Statement("effect_size.reason", words, "doubt"))
    said.append(_gain(a))
    for level in size.levels:
        says, right, ends = level_texts(level)
        words = f"When it says {says}, it is right about {right} ({ends})."
        numbers = level.to_dict()
        said.append(Statement("effect_size.level", words, numbers=numbers))
    return said


def _gain(a: ChoiceAssessment) -> Statement:
    """Return what a recalibration gains on rows it did not see."""
    gain = a.recalibration_gain
    if math.isnan(gain.gain) or not gain.low > 0.0:
        return gain.statement(a.predictions.n_samples)
    amount, ends = amount_and_interval(
        gain.gain, gain.low, gain.high, NATS, gain.confidence
    )
    words = (
        "A slope and shifts learned on four fifths of these rows lower the log loss of the others "
        f"by {amount} a row{ends}."
    )
    return Statement("effect_size.recalibration", words, numbers=gain.to_dict())


def _slope(a: ChoiceAssessment) -> list[Statement]:
    """Return whether probabilities are too sharp or too flat, where that is more than chance."""
    fit = a.fit
    if not fit.converged or math.isnan(fit.se_gamma):
        return []
    low = fit.gamma - 1.959964 * fit.se_gamma
    high = fit.gamma + 1.959964 * fit.se_gamma
    if low <= 1.0 <= high:
        return []
    name = "Overconfident" if fit.gamma < 1.0 else "Underconfident"
    words = (
        f"{name}: log odds should be multiplied by {format_number(fit.gamma)} (95 % confidence: "
        f"{format_number(low)} to {format_number(high)})."
    )
    numbers = {"gamma": fit.gamma, "low": low, "high": high}
    return [Statement("slope", words, "bad", numbers)]


def _favoured_positions(a: ChoiceAssessment) -> list[Statement]:
    """Return the positions whose odds should rise or fall, the clearest first."""
    said = []
    rows = [row for row in a.positions.rows() if row["low"] > 1.0 or row["high"] < 1.0]
    rows = [row for row in rows if row["position"] not in a.fit.never_right]
    for row in sorted(rows, key=lambda row: -abs(math.log(row["odds_factor"]))):
        moves = sorted(
            100.0 * abs(row[name] - 1.0) for name in ("low", "odds_factor", "high")
        )
        goes = "fall" if row["odds_factor"] < 1.0 else "rise"
        words = (
            f"Position {ellipsis(row['position'])} is chosen in {100 * row['chosen']:.1f} % of the "
            f"rows that offer it and right in {100 * row['right']:.1f} %: its odds should {goes} "
            f"by {moves[1]:.0f} % ({moves[0]:.0f} to {moves[2]:.0f})."
        )
        said.append(Statement("position", words, "bad", row))
    return said


def _never_right(a: ChoiceAssessment) -> list[Statement]:
    """Return the positions that are never right although they were expected to be."""
    said = []
    for row in a.positions.rows():
        expected = row["expected"] * row["offered"]
        if row["position"] in a.fit.never_right and expected >= MIN_EXPECTED:
            words = (
                f"Position {ellipsis(row['position'])} is never right in {row['offered']:,} rows "
                f"that offer it, where {expected:.1f} were expected."
            )
            said.append(Statement("position.never", words, "bad", row))
    return said


def _remedy(a: ChoiceAssessment, verdict: Verdict) -> str:
    """Return what to do about the verdict."""
    if verdict.kind == "not_detected":
        return "Nothing to recalibrate on this evidence."
    if verdict.kind == "inconclusive":
        return "Collect more rows before trusting or recalibrating them."
    if verdict.kind == "negligible":
        return "A recalibration would change little."
    if verdict.beyond:
        return (
            "Look at the reliability diagram; a ChoiceCalibrator takes away the slope and the "
            "shifts alone. Judge it on other rows."
        )
    return "Fit a ChoiceCalibrator on these rows, and judge it on other rows."


def _notes(a: ChoiceAssessment) -> list[Statement]:
    """Return what a reader must know about the rows and the fit."""
    p = a.predictions
    said = list(p.notes)
    if p.n_clipped:
        said.append(p.zero_statement)
    if p.max_row_error > 1e-6:
        words = (
            f"{format_count(p.n_renormalized)} rows were divided by the sum over what they offer "
            f"(off by up to {format_number(p.max_row_error, 2)})."
        )
        said.append(Statement("note.sums", words, numbers={"n_rows": p.n_renormalized}))
    if not a.fit.converged:
        words = (
            "No finite slope and shifts are best for these answers; the statistic is the supremum, "
            "and the factors of positions are those of a ridge."
        )
        said.append(Statement("note.separated", words, "bad"))
    return said


def _metrics(a: ChoiceAssessment) -> list[Statement]:
    """Return the metrics beside what is expected of calibrated probabilities."""
    names = {"log_loss": "Log loss", "brier": "Brier score"}
    said = []
    for name, title in names.items():
        words = f"{title} {a.metrics[name]:.4f} (expected: {a.expected[name]:.4f})"
        numbers = {"value": a.metrics[name], "expected": a.expected[name]}
        said.append(Statement(f"metric.{name}", words, numbers=numbers))
    null = a.null_distributions["ece"]
    words = (
        f"ECE of the chosen option {a.metrics['ece']:.4f}; calibrated probabilities like these "
        f"show {null.low:.4f} to {null.high:.4f}, p {pvalue_text(null.pvalue)}"
    )
    said.append(Statement("metric.ece", words, numbers={"value": a.metrics["ece"]}))
    return said


def choice_text(
    a: ChoiceAssessment, verdict: Verdict, *, brief: bool = False, full: bool = False
) -> str:
    """Return what ``print(assessment)`` and ``mcllo assess`` show of choice sets."""
    said = choice_statements(a, verdict)
    (heading,) = select_statements(said, "heading")
    headline, _ = HEADLINES[verdict.kind]
    (meaning,) = select_statements(said, "meaning")
    first = f"Verdict: {headline[:1].lower()}{headline[1:]} ({a.test.p_text}). {meaning.text}"
    kinds = ("chosen", "other", "effect_size")
    top = [s for s in said if s.kind in (*kinds, "other.shape", "effect_size.at_least")]
    lines = [heading.text, *wrap_with_hanging_indent([first])]
    sizes = " ".join(statement.text for statement in top)
    lines += indent_lines(wrap_with_hanging_indent([sizes]))
    lines += indent_lines(_level_lines(a))
    wrong = [s.text for s in select_statements(said, "slope", "position")]
    if wrong:
        wrong = wrap_with_hanging_indent(wrong[:MAX_LISTED])
        lines += ["", "What is wrong", *indent_lines(wrong)]
    if a.by is not None:
        title = f"By {ellipsis(a.by_name)}"
        lines += ["", title, *indent_lines(_part_lines(a.by, a.alpha, full))]
    (remedy,) = select_statements(said, "remedy")
    todo = f"What to do: {remedy.text[:1].lower()}{remedy.text[1:]}"
    lines += ["", *wrap_with_hanging_indent([todo])]
    if brief:
        return "\n".join(lines)
    behind = ("test", "map_fit", "omnibus", "effect_size.recalibration")
    evidence = [s.text for s in select_statements(said, *behind, "effect_size.reason")]
    evidence += [f"Note: {s.text}" for s in select_statements(said, "note")]
    lines += ["", "Behind it", *indent_lines(wrap_with_hanging_indent(evidence)), ""]
    lines += [s.text for s in select_statements(said, "metric")]
    lines += [
        "",
        "Positions where they are offered (odds: against the median position)",
    ]
    lines += indent_lines(_position_lines(a))
    if len(a.option_counts) > 1:
        lines += ["", "By number of options"]
        lines += indent_lines(_part_lines(a.option_counts, a.alpha, full))
    return "\n".join(lines)


def _level_lines(a: ChoiceAssessment) -> list[str]:
    """Return how often it is right at a few levels, as two lines below each other."""
    if not a.effect_size.levels:
        return []
    predicted = ["When it says"]
    observed = ["it is right about"]
    for level in a.effect_size.levels:
        says, right, interval = level_texts(level)
        predicted.append(says)
        observed.append(f"{right} ({interval})" if interval else right)
    return align_columns([predicted, observed]).splitlines()


def _position_lines(a: ChoiceAssessment) -> list[str]:
    """Return the table of positions, the first ones where they are many."""
    rows = [["position", "offered", "chosen", "right", "expected", "odds times", ""]]
    found = a.positions.rows()
    for row in found[:MAX_LISTED]:
        shares = [
            f"{100 * row[name]:.1f} %" for name in ("chosen", "right", "expected")
        ]
        factor = [
            format_number(row["odds_factor"]),
            format_interval(row["low"], row["high"]),
        ]
        offered = format_count(row["offered"])
        rows.append([ellipsis(row["position"]), offered, *shares, *factor])
    lines = align_columns(rows).splitlines()
    if len(found) > MAX_LISTED:
        lines.append(f"... and {len(found) - MAX_LISTED} more positions")
    return lines


def _part_lines(table: Table, alpha: float, full: bool) -> list[str]:
    """Return the parts of the rows, of many the clearest, and how many depart."""
    name = table.columns[0]
    found = table.rows()
    if not full and len(found) > MAX_LISTED:
        found = sorted(found, key=lambda row: (row["adjusted"], row["pvalue"]))
        found = found[:MAX_LISTED]
    rows = [[name, "rows", "right", "expected", "difference", "", "p (Holm)"]]
    for row in found:
        cells = [f"{100 * row[share]:.1f} %" for share in ("right", "expected")]
        cells.append(f"{100 * row['difference']:+.1f}")
        cells.append(f"[{100 * row['low']:+.1f}, {100 * row['high']:+.1f}]")
        cells.append(format_number(row["adjusted"], 2))
        rows.append([ellipsis(row[name]), format_count(row["n"]), *cells])
    lines = align_columns(rows).splitlines()
    n_off = sum(row["adjusted"] <= alpha for row in table.rows())
    if len(found) < len(table):
        lines.append(
            f"... and {len(table) - len(found)} more, which depart less clearly"
        )
    lines.append(
        f"{n_off} of {len(table)} depart from their probabilities (level {alpha:g})."
    )
    return lines
