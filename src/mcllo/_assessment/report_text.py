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
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from .._fit.fit import MCLLOFit
from .._inference.effect_size import EffectSize
from .._inference.effect_size_text import level_texts
from .._inference.likelihood_tests import CalibrationTest
from .._utils.formatting import (
    align_columns,
    ellipsis,
    format_interval,
    format_number,
    join_words,
)
from .._utils.results import Floats
from .._utils.statements import Statement, select_statements
from ..exceptions import PYTHON, Names
from .sentences import HEADLINES, assessment_statements
from .verdict import Verdict

if TYPE_CHECKING:
    from .assessment import Assessment

MAX_LISTED_CLASSES = 12
"""Most classes that a table or list of the text shows."""


def max_abs_wald_z_by_class(fit: MCLLOFit) -> Floats:
    """Return each class's larger Wald |z|; 0 where there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z_shift = np.abs(fit.tau / fit.se_tau)
        z_slope = np.abs((fit.gamma - 1.0) / fit.se_gamma)
    return np.nan_to_num(np.fmax(z_shift, z_slope))


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
    lines = _answer_lines(a, verdict, said, full)
    if not brief:
        scores = select_statements(
            said, "metric.accuracy", "metric.log_loss", "metric.brier"
        )
        errors = select_statements(said, "metric.ece", "metric.classwise_ece")
        baseline = ellipsis(a.fit.baseline)
        lines += [
            "",
            "Behind it",
            *indent_lines(
                wrap_with_hanging_indent(_supporting_evidence_lines(said, verdict))
            ),
        ]
        lines += ["", "   ".join(score.text for score in scores)]
        lines += [error.text for error in errors]
        lines += [
            "",
            f"Log odds against {baseline!r}: delta = gamma = 1 changes nothing (95 % intervals)",
        ]
        if a.fit.converged:
            lines.append(parameter_table(a.fit, with_errors=full))
        else:
            lines.append("  (no estimates: see the note above)")
    if full:
        for block in all_detail_sections(a):
            lines += ["", block]
    return "\n".join(lines)


def _answer_lines(
    a: Assessment, verdict: Verdict, said: list[Statement], full: bool
) -> list[str]:
    """Return the top: the verdict, how large it is, what is wrong, what to do."""
    (heading,) = select_statements(said, "heading")
    size = " ".join(
        statement.text for statement in said if _states_effect_size(statement, verdict)
    )
    beside = [
        statement.text
        for statement in select_statements(said, "other", "data_check", "note.rounded")
    ]
    lines = [
        heading.text,
        *wrap_with_hanging_indent([_verdict_line_with_pvalue(said, verdict, a.test)]),
        *indent_lines(wrap_with_hanging_indent([*beside, size])),
        *indent_lines(_accuracy_by_level_lines(said, a.effect_size)),
    ]
    wrong = [statement.text for statement in select_statements(said, "attribution")]
    if wrong:
        n_left_out = len(wrong) - MAX_LISTED_CLASSES
        if n_left_out > 0:
            wrong = [*wrong[:MAX_LISTED_CLASSES], f"... and {n_left_out} more classes"]
        lines += ["", "What is wrong", *indent_lines(wrap_with_hanging_indent(wrong))]
    value = [statement.text for statement in select_statements(said, "value")]
    if value:
        lines += ["", "What decisions cost"]
        lines += indent_lines(wrap_with_hanging_indent(value))
    lines += _subgroup_lines(a, verdict, said, full)
    if verdict.kind != "not_detected" or select_statements(said, "other.by"):
        todo = " ".join(
            _uncapitalize(remedy) for remedy in select_statements(said, "remedy")
        )
        lines += ["", *wrap_with_hanging_indent([f"What to do: {todo}"])]
    return lines


def _states_effect_size(statement: Statement, verdict: Verdict) -> bool:
    """Whether a statement belongs to the sizes of the answer rather than to those behind it."""
    if statement.kind == "effect_size.recalibration":
        return verdict.rejected
    return statement.kind in (
        "effect_size",
        "effect_size.at_least",
        "effect_size.p95",
        "effect_size.reason",
    )


def _subgroup_lines(
    a: Assessment, verdict: Verdict, said: list[Statement], full: bool
) -> list[str]:
    """Return the subgroups, where rows are divided: what they come to, and a table."""
    if a.subgroups is None:
        return []
    *table, note = a.subgroups.table_lines(verdict.alpha, verdict.tolerance, full)
    headline, test = select_statements(said, "by")[:2]
    lines = [
        *wrap_with_hanging_indent([headline.text, test.text]),
        *table,
        *wrap_with_hanging_indent([note]),
    ]
    return ["", f"By {ellipsis(a.subgroups.by)}", *indent_lines(lines)]


def _supporting_evidence_lines(said: list[Statement], verdict: Verdict) -> list[str]:
    """Return what the answer rests and hangs on, a line for each."""
    sizes = ["effect_size.top", "effect_size.gain"]
    if verdict.kind == "not_detected":
        sizes.insert(0, "effect_size.recalibration")
    is_nearest = bool(select_statements(said, "attribution.nearest"))
    lines = [
        statement.text for statement in select_statements(said, "test", "subsample")
    ]
    lines += _join_after_title(
        "Any other departure", "; ", select_statements(said, "omnibus")
    )
    lines += [statement.text for statement in select_statements(said, "map_fit")]
    lines += _join_after_title("Size", " ", select_statements(said, *sizes))
    lines += _join_after_title(
        "Levels by the map, if it is right",
        " ",
        select_statements(said, "effect_size.map_level"),
    )
    lines += _join_after_title(
        "Kind of the nearest map" if is_nearest else "Kind",
        " ",
        select_statements(said, "kind"),
    )
    lines += [
        f"Baseline: {_uncapitalize(baseline)}"
        for baseline in select_statements(said, "baseline")
    ]
    zeros = select_statements(said, "zeros")
    lines += _join_after_title("Zeros", " ", zeros)
    # What rounding hides stands at the top, and zeros are said with their floors.
    elsewhere = ("note.rounded", "note.zeros") if zeros else ("note.rounded",)
    for note in select_statements(said, "note"):
        if note.kind not in elsewhere:
            lines.append(f"Note: {_uncapitalize(note)}")
    return lines


def _join_after_title(title: str, separator: str, said: list[Statement]) -> list[str]:
    """Return statements as one line after a title; no line where there are none."""
    if not said:
        return []
    return [f"{title}: {separator.join(statement.text for statement in said)}"]


def _verdict_line_with_pvalue(
    said: list[Statement], verdict: Verdict, test: CalibrationTest
) -> str:
    """Return the verdict with the p-value beside the sentence that rests on it.

    A verdict that rests on an omnibus test has its p-values there.
    """
    (meaning,) = select_statements(said, "meaning")
    headline, _ = HEADLINES[verdict.kind]
    rests_on_omnibus = verdict.rejected and verdict.omnibus_alone
    has_pvalue = not math.isnan(test.pvalue) and not rests_on_omnibus
    pvalue = f" ({test.p_text})" if has_pvalue else ""
    return f"Verdict: {headline[:1].lower()}{headline[1:]}{pvalue}. {meaning.text}"


def _accuracy_by_level_lines(
    said: list[Statement], effect_size: EffectSize
) -> list[str]:
    """Return how often it is right at a few levels, as two lines below each other."""
    if not effect_size.levels or not select_statements(said, "effect_size.level"):
        return []
    predicted = ["When it says"]
    observed = ["it is right about"]
    for level in effect_size.levels:
        says, right, interval = level_texts(level)
        predicted.append(says)
        observed.append(f"{right} ({interval})" if interval else right)
    return align_columns([predicted, observed]).splitlines()


def _uncapitalize(statement: Statement) -> str:
    """Return the text with a small letter at its beginning, to follow a colon."""
    return statement.text[:1].lower() + statement.text[1:]


def wrap_with_hanging_indent(lines: Iterable[str], width: int = 96) -> list[str]:
    """Break long lines, what follows indented."""
    return [
        part
        for line in lines
        for part in textwrap.wrap(line, width, subsequent_indent="  ")
    ]


def indent_lines(lines: Iterable[str]) -> list[str]:
    """Return lines moved to the right."""
    return [f"  {line}" for line in lines]


def parameter_table(
    fit: MCLLOFit, level: float = 0.95, *, with_errors: bool = False
) -> str:
    """Return delta and gamma with intervals, at most `MAX_LISTED_CLASSES` rows, the worst ones.

    `with_errors` has three decimals and the standard errors beside the estimates, as papers print.
    """
    interval = fit.confidence_interval(level)
    worst_first = np.argsort(-max_abs_wald_z_by_class(fit), kind="stable")
    shown = np.sort(worst_first[:MAX_LISTED_CLASSES])
    beside = ["se", "interval"] if with_errors else ["interval"]
    rows = [["class", "delta", *beside, "gamma", *beside]]
    for j in shown:
        cells = [ellipsis(fit.compared[j])]
        for estimate, error, ends in (
            (fit.delta[j], fit.se_delta[j], interval.delta[j]),
            (fit.gamma[j], fit.se_gamma[j], interval.gamma[j]),
        ):
            if with_errors:
                cells += [_format_decimals(estimate), _format_decimals(error)]
            else:
                cells.append(format_number(estimate))
            cells.append(format_interval(*ends))
        rows.append(cells)
    lines = align_columns(rows).splitlines()
    n_left_out = len(fit.compared) - len(shown)
    if n_left_out:
        lines.append(f"... and {n_left_out} more classes, closer to what was predicted")
    return "\n".join(indent_lines(lines))


def _format_decimals(value: float) -> str:
    """Return three decimals, where the number is one that they suit."""
    if 1e-3 <= abs(value) < 1e4:
        return f"{value:.3f}"
    return format_number(value)


def all_detail_sections(a: Assessment) -> list[str]:
    """Return everything else, for ``assess --full``: one block of text for each detail."""
    d = a.details
    kinds = "Kinds of miscalibration, nested (p: against the identity; enough?: against more)"
    blocks = []
    for title, part in (
        (kinds, d.nested_models),
        ("Class by class, p-values after Holm", d.class_tests),
        ("Every class as the baseline", d.baselines),
        ("Clipping of zeros", d.zeros),
    ):
        if part is not None:
            before, table, after = part.text_blocks()
            lines = [
                *_wrap_sentences(before),
                *table.splitlines(),
                *_wrap_sentences(after),
            ]
            blocks.append("\n".join([title, *indent_lines(lines)]))
    for title, sentence in (
        ("Bayes", d.posterior),
        ("Dependent or weighted rows", d.robust),
    ):
        if sentence is not None:
            blocks.append(
                "\n".join(
                    [title, *indent_lines(_wrap_sentences(str(sentence).splitlines()))]
                )
            )
    blocks.append(_class_shares_text(a))
    for name, why in d.skipped.items():
        blocks.append(f"Left out: {name.replace('_', ' ')}: {why}.")
    if d.not_computed:
        names = join_words([name.replace("_", " ") for name in d.not_computed])
        blocks.append(f"Not computed: {names}; assess(..., full=True) does.")
    return blocks


def _class_shares_text(a: Assessment) -> str:
    """Return the predicted and observed share of each class, and their tests."""
    rows = [["class", "predicted", "observed", "z", "p (Holm)"]]
    rows += [
        [
            ellipsis(row["class"]),
            f"{100 * row['predicted']:.1f} %",
            f"{100 * row['observed']:.1f} %",
            "-" if math.isnan(row["z"]) else f"{row['z']:+.1f}",
            format_number(float(row["adjusted"])),
        ]
        for row in a.in_the_large.rows()
    ]
    return "\n".join(
        [
            "Shares, predicted and observed",
            *indent_lines(align_columns(rows).splitlines()),
        ]
    )


def _wrap_sentences(lines: Iterable[str], width: int = 96) -> list[str]:
    """Break sentences at `width`."""
    return [part for line in lines for part in textwrap.wrap(line, width) or [""]]
