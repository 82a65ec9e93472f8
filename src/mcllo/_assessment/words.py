"""What an assessment says: statements that a person who is no statistician can act on.

==========================  ======================================================================
heading                     how much was read
verdict, meaning            the answer (its `status` below), and what it means or does not mean
test, subsample             the test behind it; of rows in blocks also that of some of them
companion, other            omnibus tests; what it means when only they reject
kind.*                      after a rejection: the kind, the evidence for it, its rivals (`Ladder`)
classes, baseline, zeros.*  which classes stand out, and what the answer hangs on
note.*                      what must be known of data and fit before trusting the numbers
metric.*                    accuracy, log loss, Brier score, and each ECE beside its null
departure, departure.none   after a rejection: how a class departs; why none can be named
remedy                      after a rejection: what to do
==========================  ======================================================================

============  ==================================================================================
rejected      the main test rejects at level alpha
other         the main test does not, an omnibus companion does (Bonferroni over companions)
not_rejected  none does; never called calibrated
unknown       the statistic does not exist for these rows
============  ==================================================================================

A class departs from the baseline by ``gamma_j`` (below 1: too extreme, log odds should be shrunk;
above 1: too timid; not positive: ranked the wrong way) and by ``delta_j``: where the prediction
gives even odds, class j is delta_j times as likely. The text prints statements and tables.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from .._diagnosis.class_tests import StandsOut
from .._fit.fit import MCLLOFit
from .._ground.results import Floats
from .._ground.statements import Level, Statement, pick
from .._ground.text import align, ellipsis, format_count, format_interval, format_number, p_words
from .._input.predictions import Predictions
from ..exceptions import PYTHON, Words

if TYPE_CHECKING:
    from .assessment import Assessment

Status = Literal["rejected", "other", "not_rejected", "unknown"]
MOST_NAMED = 4
"""Most classes that a sentence names."""
MOST_CLASSES = 12
"""Most classes that a table or list of the text shows."""
NO_PROOF = (
    "That is not proof of",
    "calibration: the test looks for linear shifts of the log odds, and few rows show little.",
)
"""In two lines of text."""


def statements_of(a: Assessment, alpha: float = 0.05, called: Words = PYTHON) -> list[Statement]:
    """Return everything that an assessment says at level `alpha`, in the order of the text."""
    p = a.predictions
    read = f"Calibration of {format_count(p.n_samples)} predictions of {p.n_classes} classes"
    read += "" if p.sample_weight is None else f", {p.weight_kind} weights"
    read += "" if p.groups is None else f", {format_count(int(p.groups.max()) + 1)} groups"
    said = [Statement("heading", f"{read} (baseline: {ellipsis(p.baseline)})"), *_verdict(a, alpha)]
    said += [Statement("test", str(a.test), numbers=a.test.to_dict()), *a.remarks]
    said += [Statement("companion", str(t), numbers=t.to_dict()) for t in a.companions.values()]
    if found := rejecting(a, alpha):
        words = "Something is wrong that is no shift or slope of the log odds. "
        look = "Look at a reliability diagram."
        said.append(Statement("other", words + look, "bad", {"kinds": found}))
    robust = a.details.robust
    rests = [] if robust is None else robust.statements(alpha)
    said += [*_details(a, alpha), *rests, *notes(p, a.fit, called), *_metrics(a)]
    if a.test.rejects(alpha):
        remedy = "Fit a calibrator on these rows, and judge it on other rows."
        said += [*departures(a.fit), Statement("remedy", remedy)]
    return said


def rejecting(a: Assessment, alpha: float) -> list[str]:
    """Return the omnibus tests that reject where the main test does not."""
    if a.test.rejects(alpha):
        return []
    level = alpha / max(1, len(a.companions))
    return [kind for kind, test in a.companions.items() if test.pvalue <= level]


def _verdict(a: Assessment, alpha: float) -> list[Statement]:
    """Return the answer, and what it does and does not say."""
    status: Status = "other" if rejecting(a, alpha) else "not_rejected"
    level: Level = "doubt"
    words, meaning = f"No miscalibration found at level {alpha:g}.", " ".join(NO_PROOF)
    if math.isnan(a.test.pvalue):
        status, words = "unknown", "No verdict."
        meaning = "The statistic does not exist for these rows."
    elif a.test.rejects(alpha):
        status, level, words = "rejected", "bad", "Not calibrated."
        meaning = "Labels do not follow these probabilities."
    numbers = {"status": status, "pvalue": a.test.pvalue, "alpha": alpha}
    return [Statement("verdict", words, level, numbers), Statement("meaning", meaning, level)]


def _details(a: Assessment, alpha: float) -> list[Statement]:
    """Return the ladder's verdict, the worst classes, and what the answer hangs on."""
    d, rejected = a.details, a.test.rejects(alpha)
    said = d.ladder.statements() if rejected and d.ladder is not None else []
    if rejected and (tests := d.class_tests) is not None:
        off, shares = tests.standing_out(alpha), tests.standing_out(alpha, shares=True)
        words = f"Worst classes: {_named(off) or 'no single one stands out'}"
        if shares:
            words += f"; come true more or less often than predicted: {_named(shares)}"
        said.append(Statement("classes", f"{words}.", "bad", {"off": off, "shares": shares}))
    if (found := d.baselines) is not None:
        low, high = min(found.table["statistic"]), max(found.table["statistic"])
        least = found.method == "exact" and found.pvalue <= 1.0 / (found.n_resamples + 1)
        words = (
            f"Statistic {format_number(low)} to {format_number(high)} with each class as baseline, "
            f"p {p_words(found.pvalue, bound=least)} over all of them; repaired probabilities move "
            f"by {format_number(found.mean_range)} on average, "
            f"{format_number(found.largest_range)} at most."
        )
        numbers = {"pvalue": found.pvalue, "low": low, "high": high}
        said.append(Statement("baseline", words, numbers=numbers))
    return said if d.zeros is None else [*said, *d.zeros.statements(alpha)]


def _named(found: list[StandsOut]) -> str:
    names = [f"{ellipsis(label)} (p {p_words(p, bound=bound)})" for label, p, bound in found]
    return _cut(names, MOST_NAMED)


def _cut(names: Sequence[str], most: int = 6) -> str:
    """Return the first names, and how many more there are."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def notes(predictions: Predictions, fit: MCLLOFit, called: Words = PYTHON) -> list[Statement]:
    """Return what a reader must know about the data and the fit before trusting the numbers."""
    p, said = predictions, []
    if p.n_clipped:
        raised = p.zero_phrase.text(called)
        said.append(Statement("note.zeros", raised, numbers={"n_clipped": p.n_clipped}))
    if p.max_row_error > 1e-6:
        words = (
            f"{format_count(p.n_renormalized)} rows were divided by their sum "
            f"(off by up to {format_number(p.max_row_error, 2)})."
        )
        said.append(Statement("note.sums", words, numbers={"n_rows": p.n_renormalized}))
    if p.absent:
        words = f"No row is labelled {_cut([ellipsis(label) for label in p.absent])}."
        said.append(Statement("note.absent", words, numbers={"classes": p.absent}))
    if fit.separated:
        names = fit.separated_classes
        where = f" in {_cut([ellipsis(name) for name in names])}"
        where = where if 0 < len(names) < len(fit.classes) else ""
        words = (
            f"The maximum likelihood estimate does not exist (labels are separated{where}); the "
            "statistic is its supremum. To repair, use a penalty."
        )
        said.append(Statement("note.separated", words, "bad", {"classes": names}))
    elif not fit.converged:
        words = (
            "The estimates are not determined by these rows (the likelihood is flat). "
            "To repair, use a penalty."
        )
        said.append(Statement("note.flat", words, "bad"))
    return said


def _metrics(a: Assessment) -> list[Statement]:
    """Return accuracy, log loss and Brier score, and each ECE beside its null."""
    m = a.metrics
    words = {
        "accuracy": f"Accuracy {100 * m['accuracy']:.1f} %",
        "log_loss": f"log loss {m['log_loss']:.4f}",
        "brier": f"Brier score {m['brier']:.4f}",
        "ece": f"ECE (top label) {m['ece']:.4f}",
        "classwise_ece": f"ECE (class by class) {m['classwise_ece']:.4f}",
    }
    for name in words.keys() & a.nulls.keys():
        null = a.nulls[name]
        words[name] += (
            f"; calibrated predictions like these show {null.low:.4f} to {null.high:.4f}, "
            f"p {p_words(null.pvalue)}"
        )
    return [
        Statement(f"metric.{name}", text, numbers={"value": m[name]})
        for name, text in words.items()
    ]


def departures(fit: MCLLOFit, level: float = 0.95) -> list[Statement]:
    """Return the classes whose interval for delta or gamma excludes 1, the largest first.

    Or one statement that says why there is none.
    """
    if not fit.converged:
        words = "The classes cannot be told apart: the estimates do not exist."
        return [Statement("departure.none", words, "doubt")]
    interval, found = fit.confidence_interval(level), []
    for j in np.argsort(-departure_sizes(fit), kind="stable"):
        parts = []
        low, high = interval.gamma[j]
        if high < 1.0 or low > 1.0:
            kind = "too extreme" if fit.gamma[j] < 1.0 else "too timid"
            kind = "ranked the wrong way" if fit.gamma[j] <= 0.0 else kind
            parts.append(f"{kind}, gamma {_estimate(fit.gamma[j], low, high)}")
        low, high = interval.delta[j]
        if low > 1.0:
            parts.append(f"odds understated by {_estimate(fit.delta[j], low, high)}")
        elif high < 1.0:
            turned = _estimate(1.0 / fit.delta[j], 1.0 / high, 1.0 / low)
            parts.append(f"odds overstated by {turned}")
        if parts:
            label, words = fit.compared[j], "; ".join(parts)
            numbers = {"class": label, "baseline": fit.baseline, "words": words}
            pair = f"{ellipsis(label)} vs {ellipsis(fit.baseline)}"
            found.append(Statement("departure", f"{pair}: {words}", "bad", numbers))
    if found:
        return found
    words = "No single class stands out; the departure is spread over several."
    return [Statement("departure.none", words)]


def _estimate(value: float, low: float, high: float) -> str:
    return f"{format_number(value)} {format_interval(low, high)}"


def departure_sizes(fit: MCLLOFit) -> Floats:
    """Return each class's larger Wald |z|; 0 where there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.fmax(np.abs(fit.tau / fit.se_tau), np.abs((fit.gamma - 1.0) / fit.se_gamma))
    return np.nan_to_num(z)


def assessment_text(
    a: Assessment, alpha: float = 0.05, *, full: bool = False, called: Words = PYTHON
) -> str:
    """Return the report that ``print(assessment)`` and ``mcllo assess`` show."""
    said = statements_of(a, alpha, called)
    kind, zeros = (" ".join(s.text for s in pick(said, name)) for name in ("kind", "zeros"))
    tests = "; ".join(test.text for test in pick(said, "companion"))
    hangs = [
        *([f"Kind: {kind}"] if kind else []),
        *(classes.text for classes in pick(said, "classes")),
        *(f"Baseline: {_small(baseline)}" for baseline in pick(said, "baseline")),
        *([f"Zeros: {zeros}"] if zeros else []),
    ]
    noted = [note for note in pick(said, "note") if not (zeros and note.kind == "note.zeros")]
    lines = [
        str(a.test),
        *_wrapped(pick(said, "subsample")),
        *([f"Any other departure: {tests}"] if tests else []),
        *(f"But these reject: {_small(other)}" for other in pick(said, "other")),
        *_wrapped(hangs),
        *(f"Note: {_small(note)}" for note in noted),
    ]
    some = pick(said, "metric.accuracy", "metric.log_loss", "metric.brier")
    parts = [
        said[0].text,
        _verdict_line(said, a.test.p_text),
        *_indented(lines),
        "",
        "   ".join(metric.text for metric in some),
        *(metric.text for metric in pick(said, "metric.ece", "metric.classwise_ece")),
        "",
        f"Log odds against {ellipsis(a.fit.baseline)!r}: delta = gamma = 1 changes nothing "
        "(95 % intervals)",
        parameter_table(a.fit) if a.fit.converged else "  (no estimates: see the note above)",
    ]
    if found := pick(said, "departure"):
        lines = [departure.text for departure in found[:MOST_CLASSES]]
        rest = len(found) - len(lines)
        lines += [f"... and {rest} more classes"] if rest else []
        lines += [f"To repair: {_small(remedy)}" for remedy in pick(said, "remedy")]
        parts += ["", "What is wrong", *_indented(lines)]
    if full:
        for block in full_sections(a):
            parts += ["", block]
    return "\n".join(parts)


def _verdict_line(said: list[Statement], p: str) -> str:
    """Return the verdict with the p-value beside the sentence that rests on it."""
    (verdict,), (meaning,) = pick(said, "verdict"), pick(said, "meaning")
    status = verdict.numbers["status"]
    if status == "unknown":
        return f"Verdict: none, because {_small(meaning)}"
    if status == "rejected":
        return f"Verdict: {_small(verdict)} {meaning.text[:-1]} ({p})."
    proof = "\n  ".join(NO_PROOF)
    return f"Verdict: {_small(verdict)[:-1]} ({p}). {proof}"


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
    rows = [["class", "predicted", "observed", "z", "p"]]
    rows += [
        [
            ellipsis(row["class"]),
            f"{100 * row['predicted']:.1f} %",
            f"{100 * row['observed']:.1f} %",
            f"{row['z']:+.1f}" if row["z"] == row["z"] else "-",
            format_number(float(row["pvalue"])),
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
