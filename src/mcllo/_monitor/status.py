"""`MonitorStatus`: what a monitor says after its last batch, decided once and said in sentences.

With D the detector and E the evidence (`_monitor/e_process`), whichever the `rule` names decides:

============  ======================================================================================
alarm         it has reached its threshold, at this batch or at an earlier one
watch         it stands at a tenth of it, or the other one has reached its own
inconclusive  neither, and a temperature that changes the predictions by `MEAN_CHANGE_FOR_POWER` on
              average is not yet contradicted: too few rows
not_detected  neither; never called calibrated
============  ======================================================================================

Its statements:

============  ======================================================================================
monitor       the headline: alarm since about when (where that can be told), watch, nothing found,
              cannot tell
evidence      detector and evidence beside their thresholds
size          how large the departure is, with intervals that hold at every batch at once
classes       which classes, by e-BH
zeros         labels of classes predicted as 0
learned       of a watched model, from how many rows it was learned and what that leaves open
step          what to do
promise       what the numbers guarantee
============  ======================================================================================
"""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from .._inference.effect_size import MEAN_CHANGE_FOR_POWER
from .._utils.formatting import (
    align_columns,
    format_count,
    format_interval,
    format_number,
    join_words,
    pvalue_text,
)
from .._utils.results import Floats, Result, none_for_nonfinite
from .._utils.statements import Level, Statement, select_statements
from ..exceptions import PYTHON, Names
from .confidence_sequences import (
    ConfidenceSequence,
    alpha_for_start_batch,
    exponent_confidence_sequence,
    mean_confidence_sequence,
)
from .e_process import Detector, classes_rejected_by_e_bh
from .e_values import EXPONENTS, PER_CLASS
from .fitted_map import MAX_CLASSES_FITTED_NULL
from .store import Numbers, Record

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
TEXT_WIDTH = 96  # as of an assessment
MAX_LOG_SHOWN_AS_NUMBER = 700.0
"""Logarithm beyond which a number is shown as a power of ten."""


def status_statements(status: MonitorStatus, names: Names) -> list[Statement]:
    """Return everything that a status says."""
    made = [
        _headline_statement(status),
        _evidence_statement(status),
        _change_statement(status),
        _classes_statement(status),
    ]
    if status.n_zero_labels:
        made.append(_zero_labels_statement(status))
    if status.recalibrated and status.n_rows_learned != 0:
        made.append(_estimation_error_statement(status))
    made.append(_next_step_statement(status).with_names(names))
    made.append(_error_guarantee_statement(status))
    return made


def status_text(status: MonitorStatus, names: Names) -> str:
    """Return the statements and the table of the classes."""
    said = status_statements(status, names)
    body = [
        str(s)
        for s in select_statements(
            said, "evidence", "size", "classes", "zeros", "learned"
        )
    ]
    parts = [
        _wrap(str(said[0])),
        "\n".join(map(_wrap, body)),
        class_share_table(status),
    ]
    parts += [_wrap(str(s)) for s in select_statements(said, "step", "promise")]
    return "\n\n".join(parts)


def _wrap(sentence: str) -> str:
    """Return a sentence in lines of a terminal; names and options stay whole."""
    return textwrap.fill(
        sentence,
        TEXT_WIDTH,
        subsequent_indent="  ",
        break_on_hyphens=False,
        break_long_words=False,
    )


def class_share_table(status: MonitorStatus) -> str:
    """Return how often each class came and was predicted; of many classes, the strongest."""
    rows = [("class", "came true", "predicted", "difference", "e-value")]
    order = sorted(status.classes, key=lambda share: -share.log_evidence)
    shown = {share.label for share in order[:12]}
    for share in status.classes:
        if share.label in shown:
            ends = format_interval(
                100 * share.difference.low, 100 * share.difference.high
            )
            points = f"{100 * share.difference.value:+.1f} {ends}"
            shares = (f"{100 * share.observed:.1f} %", f"{100 * share.predicted:.1f} %")
            name = f"{share.label}{' *' if share.named else ''}"
            rows.append((name, *shares, points, format_exp(share.log_evidence)))
    left = len(status.classes) - len(shown)
    more = f"\n({left} classes with less evidence are not shown)" if left > 0 else ""
    return align_columns(rows) + more


def format_exp(log_value: float) -> str:
    """Return ``exp(log_value)`` as people read it.

    Examples
    --------
    >>> format_exp(math.log(1234.0)), format_exp(2000.0), format_exp(-1.0)
    ('1,234', '1e+869', '0.4')
    """
    if log_value > math.log(1e6):
        return f"1e+{log_value / math.log(10.0):.0f}"
    value = math.exp(max(log_value, -MAX_LOG_SHOWN_AS_NUMBER))
    return format_count(value) if value >= 100.0 else format_number(value, 2)


def _headline_statement(status: MonitorStatus) -> Statement:
    what = (
        "The recalibrated probabilities" if status.recalibrated else "The probabilities"
    )
    rows = (
        f"{_count_with_noun(status.n_rows, 'row', 'rows')} in "
        f"{_count_with_noun(status.n_batches, 'batch', 'batches')}"
    )
    if status.kind == "alarm":
        off = f"do not fit the labels, {AS_FAR_BACK}"
        if status.n_rows_learned and not status.allows_estimation_error:
            n_learned = _count_with_noun(status.n_rows_learned, "row", "rows")
            off = f"{off}: the map was learned from {n_learned}"
        if status.onset_time:
            off = f"no longer fit the labels, since about {status.onset_time}"
        text = (
            f"Alarm: {what.lower()} {off}. Raised by {status.alarm_batch}; now {rows}."
        )
    elif status.kind == "watch":
        begins = f"labels seem to contradict {what.lower()}, {AS_FAR_BACK}"
        if status.onset_time:
            begins = f"labels begin to contradict {what.lower()}, since about {status.onset_time}"
        text = f"Watch: {begins}. No alarm yet; {rows}."
    elif status.kind == "inconclusive":
        text = (
            f"Cannot tell yet: {rows} {'is' if status.n_rows == 1 else 'are'} too few. An average "
            f"error of {_points_text(status.temperature_change.high)} percentage points, by one "
            "temperature, is still possible."
        )
    else:
        text = f"No alarm: {what.lower()} are not contradicted by {rows}, up to {status.time}."
    numbers = {
        "kind": status.kind,
        "n_rows": status.n_rows,
        "n_batches": status.n_batches,
    }
    return Statement("monitor", text, LEVELS[status.kind], numbers)


def _count_with_noun(n: int, singular: str, plural: str) -> str:
    return f"{format_count(n)} {singular if n == 1 else plural}"


def _evidence_statement(status: MonitorStatus) -> Statement:
    decides = "raises the alarm" if status.rule == "change" else "is for watching"
    also = "raises the alarm" if status.rule == "ever" else "is for watching"
    text = (
        f"Detector of a change: {format_exp(status.log_detector)} of "
        f"{format_count(status.run_length)} ({decides}). Evidence since the start: "
        f"{format_exp(status.log_evidence)} of {1 / status.alpha:g} ({also}); "
        f"p {pvalue_text(status.pvalue, bound=True)} at any time."
    )
    numbers: dict[str, Any] = {
        "log_detector": status.log_detector,
        "run_length": status.run_length,
        "log_evidence": status.log_evidence,
        "alpha": status.alpha,
        "pvalue": status.pvalue,
    }
    return Statement("evidence", text, "plain", numbers)


def _change_statement(status: MonitorStatus) -> Statement:
    since = f"Since {status.onset_time}" if status.onset_time else "So far"
    change, heat, by_heat = status.change, status.temperature, status.temperature_change
    if change.low > 0.0:
        least = (
            f"at least {_points_text(change.low)} percentage points of probability stand on the "
            "wrong classes on average"
        )
    elif status.kind in ("alarm", "watch"):
        # that something is wrong is known long before how much: this is no all-clear
        least = (
            "how much probability stands on the wrong classes is not certain yet (0.0 "
            "percentage points or more)"
        )
    else:
        least = "no probability stands on the wrong classes for certain"
    text = (
        f"{since}, {least}. If the predictions are off by one temperature, it is "
        f"{format_number(heat.value)} ({format_number(heat.low)} to "
        f"{format_number(heat.high)}; 1 is right, more is too sure), which is "
        f"{_points_text(by_heat.value)} points ({_points_text(by_heat.low)} to "
        f"{_points_text(by_heat.high)})."
    )
    numbers = {"low": change.low, "temperature": heat.value, "change": by_heat.value}
    return Statement("size", text, "plain", numbers)


def _points_text(share: float) -> str:
    return f"{100 * share:.1f}"


def _classes_statement(status: MonitorStatus) -> Statement:
    named = [str(name) for name in status.named]
    if not named:
        text = "No class is named by its own evidence (e-BH)."
        return Statement("classes", text, "plain", {"named": []})
    more = (
        f" and {len(named) - MAX_NAMED_CLASSES} more"
        if len(named) > MAX_NAMED_CLASSES
        else ""
    )
    shown = ", ".join(named[:MAX_NAMED_CLASSES]) + more if more else join_words(named)
    text = (
        f"Classes whose own probabilities are contradicted (e-BH: on average at most "
        f"{100 * status.alpha:g} % of those named are named wrongly): {shown}."
    )
    if any(
        s.named and s.difference.low <= 0.0 <= s.difference.high for s in status.classes
    ):
        since = f"since {status.onset_time}" if status.onset_time else "so far"
        text += (
            f" Evidence is of all batches and of errors that cancel on average, too; differences "
            f"are those of the shares {since}, and may be 0."
        )
    return Statement("classes", text, "bad", {"named": list(status.named)})


def _zero_labels_statement(status: MonitorStatus) -> Statement:
    share = 100.0 * status.n_zero_labels / status.n_rows
    text = (
        f"{format_count(status.n_zero_labels)} labels ({format_number(share, 2)} %) are of a class "
        "that was predicted as 0. What a 0 stands for is not known: these rows count only in the "
        "one test that asks whether they are too many."
    )
    return Statement("zeros", text, "doubt", {"n_zero_labels": status.n_zero_labels})


def _estimation_error_statement(status: MonitorStatus) -> Statement:
    """Say what the rows that a map was learned from leave open, and whether that is allowed for."""
    numbers = {
        "n_rows_learned": status.n_rows_learned,
        "allows_estimation_error": status.allows_estimation_error,
    }
    if not status.allows_estimation_error:
        text = (
            f"The estimation error of the map is not allowed for: "
            f"{_why_error_not_allowed_for(status)}. An alarm may mean no more than this error."
        )
        return Statement("learned", text, "doubt", numbers)
    n_learned = _count_with_noun(status.n_rows_learned or 0, "row", "rows")
    text = (
        f"The map was learned from {n_learned}; its estimation "
        "error is allowed for, approximately."
    )
    if status.kind == "alarm" and not status.onset_time:
        text += (
            " This is more: another kind of map is needed, or something had changed before the "
            "first batch."
        )
    if _has_too_few_training_rows(status):
        text += (
            f" They are fewer than {MIN_ROWS_PER_PARAMETER} for each shift and slope: false alarms "
            "are more frequent than stated. Refit on all rows."
        )
    return Statement("learned", text, "plain", numbers)


def _why_error_not_allowed_for(status: MonitorStatus) -> str:
    if status.n_rows_learned is None:
        return "the model file does not say from how many rows it was learned"
    if len(status.classes) > MAX_CLASSES_FITTED_NULL:
        return f"this is done for up to {MAX_CLASSES_FITTED_NULL} classes"
    return "this monitor was started by an earlier version; start a new one"


def _has_too_few_training_rows(status: MonitorStatus) -> bool:
    n_parameters = 2 * (len(status.classes) - 1)
    return (status.n_rows_learned or 0) < MIN_ROWS_PER_PARAMETER * n_parameters


def _next_step_statement(status: MonitorStatus) -> Statement:
    if status.kind in ("not_detected", "inconclusive"):
        return Statement(
            "step", "Add the next batch when its labels are there.", "plain"
        )
    if status.kind == "watch":
        text = (
            "Look at the newest batches; add the next as soon as its labels are there."
        )
        return Statement("step", text, "doubt")
    method = "temperature" if status.leading == "temperature" else "mcllo"
    python, option = "mcllo.calibrators.TemperatureScaling()", ""
    if method == "mcllo":
        python, option = "mcllo.MCLLOCalibrator(penalty=1.0)", " --penalty 1"
    file = "since.csv" if status.onset_time else "all.csv"
    values = {
        "in_python": f"{python}.fit(probs, y)",
        "in_shell": f"mcllo fit {file} --label y --method {method}{option} -o model.json",
        "rows": _rows_to_fit(status),
    }
    gain = ""
    if math.isfinite(status.gain) and status.gain > 0.0:
        gain = (
            f" Learned so far, a recalibration has saved {format_number(status.gain, 2)} nats "
            "a row."
        )
    template = (
        f"{{rows}}: {{refit}}.{gain} Then go on with the recalibration in a new monitor: "
        "{restart}."
    )
    numbers = {"method": method, "gain": status.gain, "n_rows": status.n_rows_since}
    return Statement.filled("step", template, values, "plain", numbers)


def _rows_to_fit(status: MonitorStatus) -> str:
    """Return which rows a recalibration is fitted to: without an onset, all there are."""
    rows = f"{_count_with_noun(status.n_rows_since, 'row', 'rows')} added"
    if status.onset_time:
        return f"Refit on the {rows} from {status.onset_time} on"
    if status.recalibrated and status.n_rows_learned != 0:
        return f"Refit on all rows: those that the map was learned from, and the {rows}"
    return f"Fit on the {rows}"


def _error_guarantee_statement(status: MonitorStatus) -> Statement:
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
        chance = f"{about}{100 * status.alpha:g} %"
        kept = f"{when} the alarm ever comes with a chance of at most {chance}"
    text = (
        f"{kept}, however often one looks. Each interval holds at every batch at "
        f"once ({100 * (1 - status.alpha):g} %). No alarm does not mean calibrated."
    )
    return Statement("promise", text, "plain", {"rule": status.rule})


Kind = Literal["alarm", "watch", "not_detected", "inconclusive"]
Rule = Literal["change", "ever"]
NEAR = math.log(10.0)
"""How far below its threshold, in logarithms, the evidence is worth watching."""


class ClassShare(NamedTuple):
    """A class since `MonitorStatus.since`: how often it came, and how often it was predicted.

    `log_evidence` is against this class's probabilities alone; `named` whether e-BH names it.
    """

    label: Any
    observed: float
    predicted: float
    difference: ConfidenceSequence
    log_evidence: float
    named: bool


@dataclass(frozen=True, eq=False)
class MonitorStatus(Result):
    """What a monitor says after its last batch.

    Attributes
    ----------
    kind : {"alarm", "watch", "not_detected", "inconclusive"}
        What it comes to.
    rule : {"change", "ever"}
        What decides: the detector, with `run_length`; or the evidence, with `alpha`.
    alpha, run_length : float
        The chance that the evidence ever reaches ``1 / alpha`` on calibrated rows, at most; the
        batches until the detector reaches `run_length` on calibrated rows, on average at least.
    n_batches, n_rows : int
        What was added.
    batch, time : str
        The last batch, and what time it is about.
    log_evidence, log_detector : float
        Natural logarithms of both, now.
    pvalue : float
        1 over the largest evidence so far: a p-value that holds whenever one looks.
    alarm_batch, alarm_time : str
        The batch that raised the alarm; empty without one.
    onset_batch, onset_time : str
        Where the departure seems to have begun, on alarm and watch: an estimate. Empty where it
        cannot be told from a departure that was there from the first batch on.
    since : int
        Number of the batch from which on sizes are computed: the onset's, else 1.
    n_rows_since : int
        Rows since then.
    change : Range
        Mean probability on the wrong classes, as far as the map that led before each batch shows
        it; the lower end is a bound of the whole, for any truth.
    temperature : Range
        The temperature T, if the truth were ``x^(1/T)``; above 1 the predictions are too sure.
    temperature_change : Range
        Mean probability on the wrong classes by that temperature.
    classes : tuple of ClassShare
        Every class.
    gain : float
        Log loss a row, or a group where there are groups, that the leading map has saved since the
        onset, in nats; NaN where no map has been ahead all the time since, and where a model's
        estimation error is allowed for: its factors are not against the predictions as made.
    leading : str
        Its kind: temperature, class, shifts, mcllo or zeros.
    n_zero_labels : int
        Labels of classes predicted as 0; no map counts them.
    already : bool
        Whether the batch had been added before, so that nothing was added now.
    recalibrated : str
        The method of the saved model whose recalibrated predictions are watched; else empty.
    n_rows_learned : int or None
        Rows that this model was learned from: 0 where it changes nothing; None where that is not
        known, or no model is watched.
    allows_estimation_error : bool
        Whether the null hypothesis is that nothing has changed since the model was learned, with
        the estimation error of so many rows; else it is that the predictions are exact.

    See Also
    --------
    Monitor : Makes it.
    Verdict : The same of an assessment.
    mcllo.plot.monitor : Draws the batches behind it.

    Examples
    --------
    >>> import mcllo
    >>> probs = [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]] * 10
    >>> status = mcllo.Monitor.start(classes=[0, 1]).add(probs, [0, 1, 1, 0] * 10, batch="first")
    >>> status.n_batches, status.n_rows, status.batch
    (1, 40, 'first')
    """

    kind: Kind
    rule: Rule
    alpha: float
    run_length: float
    n_batches: int
    n_rows: int
    batch: str
    time: str
    log_evidence: float
    log_detector: float
    pvalue: float
    alarm_batch: str
    alarm_time: str
    onset_batch: str
    onset_time: str
    since: int
    n_rows_since: int
    change: ConfidenceSequence
    temperature: ConfidenceSequence
    temperature_change: ConfidenceSequence
    classes: tuple[ClassShare, ...]
    gain: float
    leading: str
    n_zero_labels: int
    already: bool = False
    recalibrated: str = ""
    n_rows_learned: int | None = None
    allows_estimation_error: bool = False

    @property
    def named(self) -> tuple[Any, ...]:
        """The classes that e-BH names, at level alpha."""
        return tuple(share.label for share in self.classes if share.named)

    def statements(self, names: Names = PYTHON) -> list[Statement]:
        """Return what it says: monitor, evidence, size, classes, zeros, learned, step, promise."""
        return status_statements(self, names)

    def text(self, names: Names = PYTHON) -> str:
        """Return it as text; `names` are Python's, or the command line's."""
        return status_text(self, names)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for strict JSON; its statements among them."""
        content = super().to_dict()
        content["classes"] = [
            none_for_nonfinite(share._asdict()) for share in self.classes
        ]
        said = [
            {"kind": s.kind, "level": s.level, "text": s.text}
            for s in self.statements()
        ]
        return content | {"statements": said}

    def __str__(self) -> str:
        return self.text()


def map_family_at(map_index: int, n_classes: int, n_maps: int) -> str:
    """Return what kind of map stands at a place of the maps."""
    if map_index == n_maps - 1:
        return "zeros"
    if map_index < len(EXPONENTS):
        return "temperature"
    map_index -= len(EXPONENTS)
    if map_index < PER_CLASS * n_classes:
        return "class"
    map_index -= PER_CLASS * n_classes
    return (
        "shifts" if map_index < 2 else "mcllo"
    )  # shifts of the short memory and of the long one


def sums_since(now: Numbers, before: Numbers | None) -> Numbers:
    """Return the sums since a record, all of them where there is none."""
    return now if before is None else {name: now[name] - before[name] for name in now}


def decide_status_kind(
    detector: Detector,
    rule: Rule,
    alpha: float,
    run_length: float,
    alarmed: bool,
    max_change: float,
) -> Kind:
    """Return what it comes to; `max_change` is the largest change that is not contradicted."""
    above = {
        "ever": detector.log_evidence + math.log(alpha),
        "change": detector.log_detector - math.log(run_length),
    }
    if alarmed:
        return "alarm"
    if above[rule] >= -NEAR or max(above.values()) >= 0.0:
        return "watch"
    return "inconclusive" if max_change >= MEAN_CHANGE_FOR_POWER else "not_detected"


def alarm_is_reached(
    detector: Detector, rule: Rule, alpha: float, run_length: float
) -> bool:
    """Whether the alarm is raised now."""
    if rule == "ever":
        return detector.log_evidence >= -math.log(alpha)
    return detector.log_detector >= math.log(run_length)


class ChangeIntervals(NamedTuple):
    """Intervals since a batch."""

    change: ConfidenceSequence
    exponent: ConfidenceSequence
    temperature_change_interval: ConfidenceSequence
    shares: tuple[ConfidenceSequence, ...]


def change_intervals(sums: Numbers, since_batch: int, alpha: float) -> ChangeIntervals:
    """Return the intervals from the sums since batch `since_batch`."""
    level = alpha_for_start_batch(alpha, since_batch)
    n_units = int(sums["n_units"])
    total, squares = sums["witness"].tolist()
    seen = mean_confidence_sequence(total, squares, n_units, level)
    change = ConfidenceSequence(
        max(0.0, seen.value), max(0.0, seen.low), max(0.0, seen.high)
    )
    exponent, inside = exponent_confidence_sequence(sums["likelihood"], level)
    moved = sums["moved"] / max(n_units, 1)
    best = int(np.argmax(sums["likelihood"]))
    is_bounded = exponent.low > 0.0 and exponent.high < math.inf
    may_be_right = exponent.low <= 1.0 <= exponent.high
    heated = ConfidenceSequence(
        value=float(moved[best]),
        low=0.0 if may_be_right else float(moved[inside].min()),
        high=float(moved[inside].max()) if is_bounded else 1.0,
    )
    shares = tuple(
        mean_confidence_sequence(s, q, n_units, level)
        for s, q in sums["shares"].T.tolist()
    )
    return ChangeIntervals(change, exponent, heated, shares)


def temperature_of_exponent(exponent: ConfidenceSequence) -> ConfidenceSequence:
    """Return T = 1/u with its interval; an end that is not bounded stays so.

    Examples
    --------
    >>> temperature_of_exponent(ConfidenceSequence(0.5, 0.25, math.inf))
    ConfidenceSequence(value=2.0, low=0.0, high=4.0)
    """
    high = math.inf if exponent.low == 0.0 else 1.0 / exponent.low
    return ConfidenceSequence(1.0 / exponent.value, 1.0 / exponent.high, high)


def build_status(
    settings: dict[str, Any],
    detector: Detector,
    last: Record,
    onset: Record | None,
    alarm: Record | None,
    sums_before_onset: Numbers | None,
    allows_estimation_error: bool,
) -> MonitorStatus:
    """Return the status; `onset` is None where it is not told."""
    alpha = settings["alpha"]
    run_length = settings["run_length"]
    rule = settings["rule"]
    since = 1 if onset is None else onset.number
    sums = sums_since(last.numbers, sums_before_onset)
    sizes = change_intervals(sums, since, alpha)
    overall = sizes if onset is None else change_intervals(last.numbers, 1, alpha)
    log_e = detector.log_class_evidence
    named = set(classes_rejected_by_e_bh(log_e, alpha).tolist())
    rows = int(sums["n_rows"])
    shares = tuple(
        ClassShare(
            label,
            float(sums["counts"][j]) / rows,
            float(sums["predicted"][j]) / rows,
            sizes.shares[j],
            float(log_e[j]),
            j in named,
        )
        for j, label in enumerate(settings["classes"])
    )
    kind = decide_status_kind(
        detector,
        rule,
        alpha,
        run_length,
        alarm is not None,
        overall.temperature_change_interval.high,
    )
    place, saved = detector.leading_map_since(since)
    gain = math.nan
    if kind in ("alarm", "watch") and not allows_estimation_error:
        gain = saved / max(1.0, float(sums["n_units"]))
    return MonitorStatus(
        kind=kind,
        rule=rule,
        alpha=alpha,
        run_length=run_length,
        n_batches=detector.n_batches,
        n_rows=int(last.numbers["n_rows"]),
        batch=last.id,
        time=last.time,
        log_evidence=detector.log_evidence,
        log_detector=detector.log_detector,
        pvalue=detector.pvalue,
        alarm_batch="" if alarm is None else alarm.id,
        alarm_time="" if alarm is None else alarm.time,
        onset_batch="" if onset is None else onset.id,
        onset_time="" if onset is None else onset.time,
        since=since,
        n_rows_since=rows,
        change=sizes.change,
        temperature=temperature_of_exponent(sizes.exponent),
        temperature_change=sizes.temperature_change_interval,
        classes=shares,
        gain=gain,
        leading=map_family_at(place, len(settings["classes"]), len(detector.started)),
        n_zero_labels=int(last.numbers["n_zero_labels"]),
        recalibrated=settings["recalibrated"],
        n_rows_learned=settings.get("n_rows_learned"),
        allows_estimation_error=allows_estimation_error,
    )


def estimate_onset(detector: Detector, settings: dict[str, Any]) -> int:
    """Return the number of the batch since which predictions are off; 0 where it cannot be told."""
    if not detector.began_after_first_batch(settings["alpha"]):
        return 0
    if settings["model"] is not None and not detector.knows_sums_of_all_batches:
        return 0
    return detector.onset_batch


def alarm_and_onset_batches(
    stored_alarm: Floats, settings: dict[str, Any]
) -> tuple[int, int]:
    """Return the numbers of the batches of the alarm and of the onset, 0 for none.

    Files of before kept two numbers and an onset in any case. Of a fitted map it was mostly the
    map's own estimation error; from the first batch on it is none.
    """
    alarm, onset = int(stored_alarm[0]), int(stored_alarm[1])
    is_old = len(stored_alarm) == 2
    if is_old and (onset == 1 or settings["model"] is not None):
        onset = 0
    return alarm, onset


def is_near_alarm(detector: Detector, settings: dict[str, Any]) -> bool:
    """Whether the alarm is near enough to say when it began."""
    alpha = settings["alpha"]
    run_length = settings["run_length"]
    return (
        alarm_is_reached(
            detector, settings["rule"], alpha * np.exp(NEAR), run_length * np.exp(-NEAR)
        )
        or alarm_is_reached(detector, "ever", alpha, run_length)
        or alarm_is_reached(detector, "change", alpha, run_length)
    )
