"""`MonitorStatus`: what a monitor says after its last batch, decided once.

With D the detector and E the evidence (`_monitor/detector`), whichever the `rule` names decides:

============  ======================================================================================
alarm         it has reached its threshold, at this batch or at an earlier one
watch         it stands at a tenth of it, or the other one has reached its own
inconclusive  neither, and a temperature that changes the predictions by `MEAN_CHANGE_FOR_POWER` on
              average is not yet contradicted: too few rows
not_detected  neither; never called calibrated
============  ======================================================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from .._inference.effect_size import MEAN_CHANGE_FOR_POWER
from .._utils.results import Result, none_for_nan
from .._utils.statements import Statement
from ..exceptions import PYTHON, Words
from .confidence_sequences import ConfidenceSequence, alpha_share, mean_range, temperature_range
from .detector import Detector, named_by_e_values
from .e_values import EXPONENTS, PER_CLASS
from .store import Numbers, Record

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
        The exponent u, if the truth were ``x^u``; below 1 the predictions are too sure.
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

    def statements(self, words: Words = PYTHON) -> list[Statement]:
        """Return what it says: monitor, evidence, size, classes, zeros, learned, step, promise."""
        from .status_sentences import status_statements

        return status_statements(self, words)

    def text(self, words: Words = PYTHON) -> str:
        """Return it as text."""
        from .status_sentences import status_text

        return status_text(self, words)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for strict JSON; its statements among them."""
        content = super().to_dict()
        content["classes"] = [none_for_nan(share._asdict()) for share in self.classes]
        said = [{"kind": s.kind, "level": s.level, "text": s.text} for s in self.statements()]
        return content | {"statements": said}

    def __str__(self) -> str:
        return self.text()


def leading_kind(place: int, n_classes: int, n_maps: int) -> str:
    """Return what kind of map stands at a place of the maps."""
    ends = (
        len(EXPONENTS),
        PER_CLASS * n_classes,
        2,
        n_maps - len(EXPONENTS) - PER_CLASS * n_classes,
    )
    names = ("temperature", "class", "shifts", "mcllo")
    if place == n_maps - 1:
        return "zeros"
    for name, size in zip(names, ends, strict=True):
        if place < size:
            return name
        place -= size
    raise IndexError(place)


def difference(now: Numbers, before: Numbers | None) -> Numbers:
    """Return the sums since a record, all of them where there is none."""
    return now if before is None else {name: now[name] - before[name] for name in now}


def decide(
    detector: Detector, rule: Rule, alpha: float, run_length: float, alarmed: bool, possible: float
) -> Kind:
    """Return what it comes to; `possible` is the largest change that is not contradicted."""
    above = {
        "ever": detector.evidence + math.log(alpha),
        "change": detector.detection - math.log(run_length),
    }
    if alarmed:
        return "alarm"
    if above[rule] >= -NEAR or max(above.values()) >= 0.0:
        return "watch"
    return "inconclusive" if possible >= MEAN_CHANGE_FOR_POWER else "not_detected"


def reached(detector: Detector, rule: Rule, alpha: float, run_length: float) -> bool:
    """Whether the alarm is raised now."""
    if rule == "ever":
        return detector.evidence >= -math.log(alpha)
    return detector.detection >= math.log(run_length)


class Sizes(NamedTuple):
    """Intervals since a batch."""

    change: ConfidenceSequence
    temperature: ConfidenceSequence
    heated: ConfidenceSequence
    shares: tuple[ConfidenceSequence, ...]


def size_sequences(sums: Numbers, since: int, alpha: float) -> Sizes:
    """Return the intervals from the sums since batch `since`."""
    level, n = alpha_share(alpha, since), int(sums["n_units"])
    seen = mean_range(float(sums["witness"][0]), float(sums["witness"][1]), n, level)
    change = ConfidenceSequence(max(0.0, seen.value), max(0.0, seen.low), max(0.0, seen.high))
    temperature, inside = temperature_range(sums["likelihood"], level)
    moved = sums["moved"] / max(n, 1)
    best = int(np.argmax(sums["likelihood"]))
    bounded = temperature.low > 0.0 and temperature.high < math.inf
    low = 0.0 if temperature.low <= 1.0 <= temperature.high else float(moved[inside].min())
    heated = ConfidenceSequence(
        float(moved[best]), low, float(moved[inside].max()) if bounded else 1.0
    )
    shares = tuple(mean_range(s, q, n, level) for s, q in sums["shares"].T.tolist())
    return Sizes(change, temperature, heated, shares)


def build_status(
    settings: dict[str, Any],
    detector: Detector,
    last: Record,
    onset: Record | None,
    alarm: Record | None,
    before: Numbers | None,
    allows_estimation_error: bool,
) -> MonitorStatus:
    """Return the status; `onset` is None where it is not told, `before` are the sums up to it."""
    alpha, run_length, rule = settings["alpha"], settings["run_length"], settings["rule"]
    since = 1 if onset is None else onset.number
    sums = difference(last.numbers, before)
    sizes = size_sequences(sums, since, alpha)
    overall = sizes if onset is None else size_sequences(last.numbers, 1, alpha)
    log_e = detector.class_evidence
    named = set(named_by_e_values(log_e, alpha).tolist())
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
    kind = decide(detector, rule, alpha, run_length, alarm is not None, overall.heated.high)
    place, saved = detector.leading_since(since)
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
        log_evidence=detector.evidence,
        log_detector=detector.detection,
        pvalue=detector.pvalue,
        alarm_batch="" if alarm is None else alarm.id,
        alarm_time="" if alarm is None else alarm.time,
        onset_batch="" if onset is None else onset.id,
        onset_time="" if onset is None else onset.time,
        since=since,
        n_rows_since=rows,
        change=sizes.change,
        temperature=sizes.temperature,
        temperature_change=sizes.heated,
        classes=shares,
        gain=gain,
        leading=leading_kind(place, len(settings["classes"]), len(detector.started)),
        n_zero_labels=int(last.numbers["n_zero_labels"]),
        recalibrated=settings["recalibrated"],
        n_rows_learned=settings.get("n_rows_learned"),
        allows_estimation_error=allows_estimation_error,
    )
