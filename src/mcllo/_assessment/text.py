"""The text of an assessment: statements and tables, as ``print`` and ``mcllo assess`` show them.

==========  ======================================================================================
answer      the verdict, how large it is, what is wrong, each subgroup, what to do
behind it   tests, sizes, the kind, what the answer hangs on, notes
metrics     beside what the predictions promise, and what calibrated ones would show
estimates   of each class against the baseline: ``gamma_j`` below 1 is too extreme, above 1 timid;
            where the prediction gives even odds, class j is ``delta_j`` times as likely
full        one block for each detail
==========  ======================================================================================
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._fit.fit import MCLLOFit
from .._ground.results import Floats
from .._ground.statements import Statement, pick
from .._ground.text import align, ellipsis, format_interval, format_number
from .._inference.likelihood_tests import CalibrationTest
from .._inference.size import Size
from .._inference.sizes.words import shown_level
from ..exceptions import PYTHON, Words
from .verdict import Verdict
from .words import statements_of

if TYPE_CHECKING:
    from .assessment import Assessment

MOST_CLASSES = 12
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
    called: Words = PYTHON,
) -> str:
    """Return the report that ``print(assessment)`` and ``mcllo assess`` show; brief: its top."""
    said = statements_of(a, verdict, called)
    parts = _answer(a, verdict, said, full)
    if not brief:
        some = pick(said, "metric.accuracy", "metric.log_loss", "metric.brier")
        parts += [
            "",
            "Behind it",
            *_indented(_wrapped(_behind(said))),
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
    size = " ".join(s.text for s in said if s.kind in ("size", "size.p95", "size.reason"))
    parts = [
        said[0].text,
        *_wrapped([_verdict_line(said, a.test)]),
        *_indented(_wrapped([*pick(said, "other", "hint"), size])),
        *_indented(_levels(said, a.size)),
    ]
    if wrong := pick(said, "culprit"):
        rest = len(wrong) - MOST_CLASSES
        more = [f"... and {rest} more classes"] if rest > 0 else []
        lines: list[str | Statement] = [*wrong[:MOST_CLASSES], *more]
        parts += ["", "What is wrong", *_indented(_wrapped(lines))]
    parts += _by(a, verdict, said, full)
    if verdict.kind != "none_found" or pick(said, "other.by"):
        todo = " ".join(_small(remedy) for remedy in pick(said, "remedy"))
        parts += ["", *_wrapped([f"What to do: {todo}"])]
    return parts


def _by(a: Assessment, verdict: Verdict, said: list[Statement], full: bool) -> list[str]:
    """Return the subgroups, where rows are divided: what they come to, and a table."""
    if (divided := a.subgroups) is None:
        return []
    *table, note = divided.table_lines(verdict.alpha, verdict.tolerance, full)
    lines = [*_wrapped(pick(said, "by")[:2]), *table, *_wrapped([note])]
    return ["", f"By {ellipsis(divided.by)}", *_indented(lines)]


def _behind(said: list[Statement]) -> list[str]:
    """Return what the answer rests and hangs on, a line for each."""
    kind, zeros = (" ".join(s.text for s in pick(said, name)) for name in ("kind", "zeros"))
    tests = "; ".join(test.text for test in pick(said, "companion"))
    sizes = " ".join(size.text for size in pick(said, "size.top", "size.gain"))
    noted = [note for note in pick(said, "note") if not (zeros and note.kind == "note.zeros")]
    return [
        *(test.text for test in pick(said, "test", "subsample")),
        *([f"Any other departure: {tests}"] if tests else []),
        *([f"Size: {sizes}"] if sizes else []),
        *([f"Kind: {kind}"] if kind else []),
        *(f"Baseline: {_small(baseline)}" for baseline in pick(said, "baseline")),
        *([f"Zeros: {zeros}"] if zeros else []),
        *(f"Note: {_small(note)}" for note in noted),
    ]


def _verdict_line(said: list[Statement], test: CalibrationTest) -> str:
    """Return the verdict with the p-value beside the sentence that rests on it."""
    (verdict,), (meaning,) = pick(said, "verdict"), pick(said, "meaning")
    p = "" if math.isnan(test.pvalue) else f" ({test.p_text})"
    return f"Verdict: {_small(verdict)[:-1]}{p}. {meaning.text}"


def _levels(said: list[Statement], size: Size) -> list[str]:
    """Return how often it is right at a few levels, as two lines below each other."""
    found = [shown_level(level) for level in size.levels]
    if not found or not pick(said, "size.level"):
        return []
    right = [f"{right} ({ends})" if ends else right for _, right, ends in found]
    says = ["When it says", *(says for says, _, _ in found)]
    return align([says, ["it is right about", *right]]).splitlines()


def _small(said: Statement) -> str:
    """Return the text with a small letter at its beginning, to follow a colon."""
    return said.text[:1].lower() + said.text[1:]


def _wrapped(lines: Sequence[str | Statement], width: int = 96) -> list[str]:
    """Break long lines, what follows indented."""
    return [
        part for line in lines for part in textwrap.wrap(str(line), width, subsequent_indent="  ")
    ]


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def parameter_table(fit: MCLLOFit, level: float = 0.95) -> str:
    """Return delta and gamma with intervals, at most `MOST_CLASSES` rows, the worst ones."""
    interval = fit.confidence_interval(level)
    shown = np.sort(np.argsort(-departure_sizes(fit), kind="stable")[:MOST_CLASSES])
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
    return "\n".join(_indented(lines))


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
        ("Dependent or weighted rows", d.robust),
    ):
        if part is not None:
            blocks.append("\n".join([title, *_indented(wrapped_prose(str(part)))]))
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
    shares = _indented(align(rows).splitlines())
    blocks.append("\n".join(["Shares, predicted and observed", *shares]))
    return blocks + [f"Left out: {name.replace('_', ' ')}: {w}." for name, w in d.skipped.items()]


def wrapped_prose(text: str, width: int = 96) -> list[str]:
    """Break sentences at `width`; tables, whose cells are two spaces apart, stay as they are."""
    lines = []
    for line in text.splitlines():
        table = "  " in line.strip()
        lines += [line] if table else textwrap.wrap(line, width) or [""]
    return lines
