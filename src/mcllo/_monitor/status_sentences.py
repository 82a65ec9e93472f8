"""What a monitor's status says, in sentences.

===========  ====================================================================================
monitor      the headline: alarm since about when (where that can be told), watch, nothing found,
             cannot tell
evidence     detector and evidence beside their thresholds
size         how large the departure is, with intervals that hold at every batch at once
classes      which classes, by e-BH
zeros        labels of classes predicted as 0
learned      of a watched model, from how many rows it was learned and what that leaves open
step         what to do
promise      what the numbers guarantee
===========  ====================================================================================
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .._utils.formatting import (
    align,
    format_count,
    format_interval,
    format_number,
    join_words,
    p_words,
)
from .._utils.statements import Level, Statement, pick
from ..exceptions import Either, Phrase, Words
from .fitted import MAX_CLASSES_FITTED_NULL

if TYPE_CHECKING:
    from .status import MonitorStatus

LEVELS: dict[str, Level] = {
    "alarm": "bad",
    "watch": "doubt",
    "not_detected": "good",
    "inconclusive": "doubt",
}
AS_FAR_BACK = "as far back as can be seen"
"""In the place of an onset: a departure that may have been there from the first batch on."""
MIN_ROWS_PER_PARAMETER = 30
"""Rows for each shift and slope from which on false alarms keep their level (how-to/monitor.md)."""
MAX_NAMED_CLASSES = 6
MAX_LOG_SHOWN_AS_NUMBER = 700.0
"""Logarithm beyond which a number is shown as a power of ten."""


def status_statements(status: MonitorStatus, words: Words) -> list[Statement]:
    """Return everything that a status says."""
    made = [_headline(status), _evidence(status), _size(status), _classes(status)]
    if status.n_zero_labels:
        made.append(_zeros(status))
    if status.recalibrated and status.n_rows_learned != 0:
        made.append(_state_learning(status))
    made.append(_step(status, words))
    made.append(_promise(status))
    return made


def status_text(status: MonitorStatus, words: Words) -> str:
    """Return the statements and the table of the classes."""
    said = status_statements(status, words)
    body = [str(s) for s in pick(said, "evidence", "size", "classes", "zeros", "learned")]
    parts = [str(said[0]), "\n".join(body), share_table(status)]
    parts += [str(s) for s in pick(said, "step", "promise")]
    return "\n\n".join(parts)


def share_table(status: MonitorStatus) -> str:
    """Return how often each class came and was predicted; of many classes, the strongest."""
    rows = [("class", "came true", "predicted", "difference", "e-value")]
    order = sorted(status.classes, key=lambda share: -share.log_evidence)
    shown = {share.label for share in order[:12]}
    for share in status.classes:
        if share.label in shown:
            ends = format_interval(100 * share.difference.low, 100 * share.difference.high)
            points = f"{100 * share.difference.value:+.1f} {ends}"
            shares = (f"{100 * share.observed:.1f} %", f"{100 * share.predicted:.1f} %")
            name = f"{share.label}{' *' if share.named else ''}"
            rows.append((name, *shares, points, large_number(share.log_evidence)))
    left = len(status.classes) - len(shown)
    more = f"\n({left} classes with less evidence are not shown)" if left > 0 else ""
    return align(rows) + more


def large_number(log_value: float) -> str:
    """Return ``exp(log_value)`` as people read it.

    Examples
    --------
    >>> large_number(math.log(1234.0)), large_number(2000.0), large_number(-1.0)
    ('1,234', '1e+869', '0.4')
    """
    if log_value > math.log(1e6):
        return f"1e+{log_value / math.log(10.0):.0f}"
    value = math.exp(max(log_value, -MAX_LOG_SHOWN_AS_NUMBER))
    return format_count(value) if value >= 100.0 else format_number(value, 2)


def _headline(status: MonitorStatus) -> Statement:
    what = "The recalibrated probabilities" if status.recalibrated else "The probabilities"
    rows = (
        f"{_count_words(status.n_rows, 'row', 'rows')} in "
        f"{_count_words(status.n_batches, 'batch', 'batches')}"
    )
    if status.kind == "alarm":
        off = f"do not fit the labels, {AS_FAR_BACK}"
        if status.n_rows_learned and not status.allows_estimation_error:
            n_learned = _count_words(status.n_rows_learned, "row", "rows")
            off = f"{off}: the map was learned from {n_learned}"
        if status.onset_time:
            off = f"no longer fit the labels, since about {status.onset_time}"
        text = f"Alarm: {what.lower()} {off}. Raised by {status.alarm_batch}; now {rows}."
    elif status.kind == "watch":
        begins = f"labels seem to contradict {what.lower()}, {AS_FAR_BACK}"
        if status.onset_time:
            begins = f"labels begin to contradict {what.lower()}, since about {status.onset_time}"
        text = f"Watch: {begins}. No alarm yet; {rows}."
    elif status.kind == "inconclusive":
        text = (
            f"Cannot tell yet: {rows} {'is' if status.n_rows == 1 else 'are'} too few. An average "
            f"error of {_points(status.temperature_change.high)} percentage points, by one "
            "temperature, is still possible."
        )
    else:
        text = f"No alarm: {what.lower()} are not contradicted by {rows}, up to {status.time}."
    numbers = {"kind": status.kind, "n_rows": status.n_rows, "n_batches": status.n_batches}
    return Statement("monitor", text, LEVELS[status.kind], numbers)


def _count_words(n: int, one: str, more: str) -> str:
    return f"{format_count(n)} {one if n == 1 else more}"


def _evidence(status: MonitorStatus) -> Statement:
    decides = "raises the alarm" if status.rule == "change" else "is for watching"
    also = "raises the alarm" if status.rule == "ever" else "is for watching"
    text = (
        f"Detector of a change: {large_number(status.log_detector)} of "
        f"{format_count(status.run_length)} ({decides}). Evidence since the start: "
        f"{large_number(status.log_evidence)} of {1 / status.alpha:g} ({also}); "
        f"p {p_words(status.pvalue, bound=True)} at any time."
    )
    numbers: dict[str, Any] = {
        "log_detector": status.log_detector,
        "run_length": status.run_length,
        "log_evidence": status.log_evidence,
        "alpha": status.alpha,
        "pvalue": status.pvalue,
    }
    return Statement("evidence", text, "plain", numbers)


def _size(status: MonitorStatus) -> Statement:
    since = f"Since {status.onset_time}" if status.onset_time else "So far"
    change, heat, by_heat = status.change, status.temperature, status.temperature_change
    least = (
        f"at least {_points(change.low)} percentage points of probability stand on the wrong "
        "classes on average"
        if change.low > 0.0
        else "no probability stands on the wrong classes for certain"
    )
    text = (
        f"{since}, {least}. If the predictions are off by one temperature, its exponent is "
        f"{format_number(heat.value)} ({format_number(heat.low)} to "
        f"{format_number(heat.high)}; 1 is right), which is {_points(by_heat.value)} points "
        f"({_points(by_heat.low)} to {_points(by_heat.high)})."
    )
    numbers = {"low": change.low, "exponent": heat.value, "change": by_heat.value}
    return Statement("size", text, "plain", numbers)


def _points(share: float) -> str:
    return f"{100 * share:.1f}"


def _classes(status: MonitorStatus) -> Statement:
    named = [str(name) for name in status.named]
    if not named:
        text = "No class is named by its own evidence (e-BH)."
        return Statement("classes", text, "plain", {"named": []})
    more = f" and {len(named) - MAX_NAMED_CLASSES} more" if len(named) > MAX_NAMED_CLASSES else ""
    shown = ", ".join(named[:MAX_NAMED_CLASSES]) + more if more else join_words(named)
    text = (
        f"Classes whose own probabilities are contradicted (e-BH: on average at most "
        f"{100 * status.alpha:g} % of those named are named wrongly): {shown}."
    )
    return Statement("classes", text, "bad", {"named": list(status.named)})


def _zeros(status: MonitorStatus) -> Statement:
    share = 100.0 * status.n_zero_labels / status.n_rows
    text = (
        f"{format_count(status.n_zero_labels)} labels ({format_number(share, 2)} %) are of a class "
        "that was predicted as 0. What a 0 stands for is not known: these rows count only in the "
        "one test that asks whether they are too many."
    )
    return Statement("zeros", text, "doubt", {"n_zero_labels": status.n_zero_labels})


def _state_learning(status: MonitorStatus) -> Statement:
    """Say what the rows that a map was learned from leave open, and whether that is allowed for."""
    numbers = {
        "n_rows_learned": status.n_rows_learned,
        "allows_estimation_error": status.allows_estimation_error,
    }
    if not status.allows_estimation_error:
        text = (
            f"The estimation error of the map is not allowed for: {_why_not_allowed(status)}. An "
            "alarm may mean no more than this error."
        )
        return Statement("learned", text, "doubt", numbers)
    n_learned = _count_words(status.n_rows_learned or 0, "row", "rows")
    text = (
        f"The map was learned from {n_learned}; its estimation error is allowed for, approximately."
    )
    if status.kind == "alarm" and not status.onset_time:
        text += (
            " This is more: another kind of map is needed, or something had changed before the "
            "first batch."
        )
    if _has_too_few_rows(status):
        text += (
            f" They are fewer than {MIN_ROWS_PER_PARAMETER} for each shift and slope: false alarms "
            "are more frequent than stated. Refit on all rows."
        )
    return Statement("learned", text, "plain", numbers)


def _why_not_allowed(status: MonitorStatus) -> str:
    if status.n_rows_learned is None:
        return "the model file does not say from how many rows it was learned"
    if len(status.classes) > MAX_CLASSES_FITTED_NULL:
        return f"this is done for up to {MAX_CLASSES_FITTED_NULL} classes"
    return "this monitor was started by an earlier version; start a new one"


def _has_too_few_rows(status: MonitorStatus) -> bool:
    n_parameters = 2 * (len(status.classes) - 1)
    return (status.n_rows_learned or 0) < MIN_ROWS_PER_PARAMETER * n_parameters


def _step(status: MonitorStatus, words: Words) -> Statement:
    if status.kind in ("not_detected", "inconclusive"):
        return Statement("step", "Add the next batch when its labels are there.", "plain")
    if status.kind == "watch":
        text = "Look at the newest batches; add the next as soon as its labels are there."
        return Statement("step", text, "doubt")
    method = "temperature" if status.leading == "temperature" else "mcllo"
    python, option = "mcllo.calibrators.TemperatureScaling()", ""
    if method == "mcllo":
        python, option = "mcllo.MCLLOCalibrator(penalty=1.0)", " --penalty 1"
    file = "since.csv" if status.onset_time else "all.csv"
    how = Either(
        python + ".fit(probs, y)",
        shell=f"mcllo fit {file} --label y --method {method}{option} -o model.json",
    )
    gain = ""
    if math.isfinite(status.gain) and status.gain > 0.0:
        gain = (
            f" Learned so far, a recalibration has saved {format_number(status.gain, 2)} nats "
            "a row."
        )
    text = Phrase(
        "{}: {}.{} Then start a new monitor with the recalibration.",
        _rows_to_fit(status),
        how,
        gain,
    ).text(words)
    numbers = {"method": method, "gain": status.gain, "n_rows": status.n_rows_since}
    return Statement("step", text, "plain", numbers)


def _rows_to_fit(status: MonitorStatus) -> str:
    """Return which rows a recalibration is fitted to: without an onset, all there are."""
    rows = f"{_count_words(status.n_rows_since, 'row', 'rows')} added"
    if status.onset_time:
        return f"Refit on the {rows} from {status.onset_time} on"
    if status.recalibrated and status.n_rows_learned != 0:
        return f"Refit on all rows: those that the map was learned from, and the {rows}"
    return f"Fit on the {rows}"


def _promise(status: MonitorStatus) -> Statement:
    when = "On calibrated predictions"
    about = ""
    if status.allows_estimation_error:
        # by a normal approximation, and on average over what the rows learned from leave open
        when = "While nothing changes"
        about = "about "
    if status.rule == "change":
        kept = (
            f"{when} the alarm comes after {about}{format_count(status.run_length)} batches on "
            "average, or later"
        )
    else:
        kept = (
            f"{when} the alarm ever comes with a chance of at most {about}{100 * status.alpha:g} %"
        )
    text = (
        f"{kept}, however often one looks. Each interval holds at every batch at "
        f"once ({100 * (1 - status.alpha):g} %). No alarm does not mean calibrated."
    )
    return Statement("promise", text, "plain", {"rule": status.rule})
