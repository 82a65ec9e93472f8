"""The text of an assessment: statements and tables, as ``print`` and ``mcllo assess`` show them.

=========  =========================================================================================
answer     the verdict, how large it is, what is wrong, each subgroup, what to do
behind it  tests, sizes, the kind, what the answer hangs on, notes
metrics    beside what is expected of calibrated predictions, and what such ones would show
estimates  of each class against the baseline: ``gamma_j`` below 1 is overconfident, above 1
           underconfident; where the prediction gives even odds, class j is ``delta_j`` times as
           likely
full       one block for each detail
=========  =========================================================================================
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._fit.fit import MCLLOFit
from .._inference.effect_size import EffectSize
from .._inference.effect_size_text import shown_level
from .._inference.likelihood_tests import CalibrationTest
from .._utils.formatting import align, ellipsis, format_interval, format_number
from .._utils.results import Floats
from .._utils.statements import Statement, pick
from ..exceptions import PYTHON, Names
from .sentences import assessment_statements
from .verdict import Verdict

if TYPE_CHECKING:
    from .assessment import Assessment

MAX_LISTED_CLASSES = 12
"""Most classes that a table or list of the text shows."""


def departure_sizes(fit: MCLLOFit) -> Floats:
    """Return each class's larger Wald |z|; 0 where there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.fmax(np.abs(fit.tau / fit.se_tau), np.abs((fit.gamma - 1.0) / fit.se_gamma))
    return np.nan_to_num(z)


def assessment_text(
    a: Assessment,
    verdict: Verdict,
    *,
    brief: bool = False,
    full: bool = False,
    names: Names = PYTHON,
) -> str:
    """Return the report that ``print(assessment)`` and ``mcllo assess`` show; brief: its top."""
    said = assessment_statements(a, verdict, names)
    parts = _answer(a, verdict, said, full)
    if not brief:
        some = pick(said, "metric.accuracy", "metric.log_loss", "metric.brier")
        parts += [
            "",
            "Behind it",
            *_indent_lines(_wrap_lines(_background_lines(said))),
            "",
            "   ".join(metric.text for metric in some),
            *(metric.text for metric in pick(said, "metric.ece", "metric.classwise_ece")),
            "",
            f"Log odds against {ellipsis(a.fit.baseline)!r}: delta = gamma = 1 changes nothing "
            "(95 % intervals)",
            parameter_table(a.fit) if a.fit.converged else "  (no estimates: see the note above)",
        ]
    for block in full_sections(a) if full else ():
        parts += ["", block]
    return "\n".join(parts)


def _answer(
    a: Assessment, verdict: Verdict, said: list[Statement], full: bool = False
) -> list[str]:
    """Return the top: the verdict, how large it is, what is wrong, what to do."""
    shown = ["effect_size.at_least", "effect_size", "effect_size.p95", "effect_size.reason"]
    if verdict.rejected:
        shown.insert(0, "effect_size.recalibration")
    size = " ".join(s.text for s in said if s.kind in shown)
    parts = [
        said[0].text,
        *_wrap_lines([_verdict_line(said, verdict, a.test)]),
        *_indent_lines(_wrap_lines([*pick(said, "other", "data_check", "note.rounded"), size])),
        *_indent_lines(_levels(said, a.effect_size)),
    ]
    if wrong := pick(said, "attribution"):
        rest = len(wrong) - MAX_LISTED_CLASSES
        more = [f"... and {rest} more classes"] if rest > 0 else []
        lines: list[str | Statement] = [*wrong[:MAX_LISTED_CLASSES], *more]
        parts += ["", "What is wrong", *_indent_lines(_wrap_lines(lines))]
    parts += _subgroup_lines(a, verdict, said, full)
    if verdict.kind != "not_detected" or pick(said, "other.by"):
        todo = " ".join(_uncapitalize(remedy) for remedy in pick(said, "remedy"))
        parts += ["", *_wrap_lines([f"What to do: {todo}"])]
    return parts


def _subgroup_lines(
    a: Assessment, verdict: Verdict, said: list[Statement], full: bool
) -> list[str]:
    """Return the subgroups, where rows are divided: what they come to, and a table."""
    if (divided := a.subgroups) is None:
        return []
    *table, note = divided.table_lines(verdict.alpha, verdict.tolerance, full)
    lines = [*_wrap_lines(pick(said, "by")[:2]), *table, *_wrap_lines([note])]
    return ["", f"By {ellipsis(divided.by)}", *_indent_lines(lines)]


def _background_lines(said: list[Statement]) -> list[str]:
    """Return what the answer rests and hangs on, a line for each."""
    (said_verdict,) = pick(said, "verdict")
    nearest = " of the nearest map" if pick(said, "attribution.nearest") else ""
    kind, zeros = (" ".join(s.text for s in pick(said, name)) for name in ("kind", "zeros"))
    tests = "; ".join(test.text for test in pick(said, "omnibus"))
    behind = ["effect_size.top", "effect_size.gain"]
    if said_verdict.numbers["kind"] == "not_detected":
        behind.insert(0, "effect_size.recalibration")
    sizes = " ".join(size.text for size in pick(said, *behind))
    by_map = " ".join(level.text for level in pick(said, "effect_size.map_level"))
    # What rounding hides stands at the top, and zeros are said with their floors.
    elsewhere = {"note.rounded", "note.zeros"} if zeros else {"note.rounded"}
    noted = [note for note in pick(said, "note") if note.kind not in elsewhere]
    return [
        *(test.text for test in pick(said, "test", "subsample")),
        *([f"Any other departure: {tests}"] if tests else []),
        *(fit.text for fit in pick(said, "map_fit")),
        *([f"Size: {sizes}"] if sizes else []),
        *([f"Levels by the map, if it is right: {by_map}"] if by_map else []),
        *([f"Kind{nearest}: {kind}"] if kind else []),
        *(f"Baseline: {_uncapitalize(baseline)}" for baseline in pick(said, "baseline")),
        *([f"Zeros: {zeros}"] if zeros else []),
        *(f"Note: {_uncapitalize(note)}" for note in noted),
    ]


def _verdict_line(said: list[Statement], judged: Verdict, test: CalibrationTest) -> str:
    """Return the verdict with the p-value beside the sentence that rests on it.

    A verdict that rests on an omnibus test has its p-values there.
    """
    (verdict,), (meaning,) = pick(said, "verdict"), pick(said, "meaning")
    p = "" if math.isnan(test.pvalue) else f" ({test.p_text})"
    if judged.rejected and judged.omnibus_alone:
        p = ""
    return f"Verdict: {_uncapitalize(verdict)[:-1]}{p}. {meaning.text}"


def _levels(said: list[Statement], size: EffectSize) -> list[str]:
    """Return how often it is right at a few levels, as two lines below each other."""
    found = [shown_level(level) for level in size.levels]
    if not found or not pick(said, "effect_size.level"):
        return []
    right = [f"{right} ({ends})" if ends else right for _, right, ends in found]
    says = ["When it says", *(says for says, _, _ in found)]
    return align([says, ["it is right about", *right]]).splitlines()


def _uncapitalize(said: Statement) -> str:
    """Return the text with a small letter at its beginning, to follow a colon."""
    return said.text[:1].lower() + said.text[1:]


def _wrap_lines(lines: Sequence[str | Statement], width: int = 96) -> list[str]:
    """Break long lines, what follows indented."""
    return [
        part for line in lines for part in textwrap.wrap(str(line), width, subsequent_indent="  ")
    ]


def _indent_lines(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def parameter_table(fit: MCLLOFit, level: float = 0.95) -> str:
    """Return delta and gamma with intervals, at most `MAX_LISTED_CLASSES` rows, the worst ones."""
    interval = fit.confidence_interval(level)
    shown = np.sort(np.argsort(-departure_sizes(fit), kind="stable")[:MAX_LISTED_CLASSES])
    rows = [
        [
            ellipsis(fit.compared[j]),
            format_number(fit.delta[j]),
            format_interval(*interval.delta[j]),
            format_number(fit.gamma[j]),
            format_interval(*interval.gamma[j]),
        ]
        for j in shown
    ]
    lines = align([["class", "delta", "interval", "gamma", "interval"], *rows]).splitlines()
    if rest := len(fit.compared) - len(shown):
        lines.append(f"... and {rest} more classes, closer to what was predicted")
    return "\n".join(_indent_lines(lines))


def full_sections(a: Assessment) -> list[str]:
    """Return everything else, for ``assess --full``: one block of text for each detail."""
    d, blocks = a.details, []
    for title, part in (
        (
            "Kinds of miscalibration, nested (p: against the identity; enough?: against more)",
            d.nested_models,
        ),
        ("Class by class, p-values after Holm", d.class_tests),
        ("Every class as the baseline", d.baselines),
        ("Clipping of zeros", d.zeros),
        ("Bayes", d.posterior),
        ("Dependent or weighted rows", d.robust),
    ):
        if part is not None:
            blocks.append("\n".join([title, *_indent_lines(wrapped_prose(str(part)))]))
    rows = [["class", "predicted", "observed", "z", "p (Holm)"]]
    rows += [
        [
            ellipsis(row["class"]),
            f"{100 * row['predicted']:.1f} %",
            f"{100 * row['observed']:.1f} %",
            f"{row['z']:+.1f}" if row["z"] == row["z"] else "-",
            format_number(float(row["adjusted"])),
        ]
        for row in a.in_the_large.rows()
    ]
    shares = _indent_lines(align(rows).splitlines())
    blocks.append("\n".join(["Shares, predicted and observed", *shares]))
    return blocks + [f"Left out: {name.replace('_', ' ')}: {w}." for name, w in d.skipped.items()]


def wrapped_prose(text: str, width: int = 96) -> list[str]:
    """Break sentences at `width`; tables, whose cells are two spaces apart, stay as they are."""
    lines = []
    for line in text.splitlines():
        table = "  " in line.strip()
        lines += [line] if table else textwrap.wrap(line, width) or [""]
    return lines
