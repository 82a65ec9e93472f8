"""What the next batch needs, as named arrays: detector, learners, null, alarm; and back.

`Monitor`: predictions and labels in batches, evidence after each of them.

A batch is judged with what was learned before it, then learned from: validate, recalibrate where a
model is watched, factors, detector, sums, and all of it into the file at once.
"""

from __future__ import annotations

import datetime
import hashlib
import tempfile
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._utils.atomic_files import StrPath
from .._utils.formatting import Table
from .._utils.optional import load_application
from .._utils.statements import suppress_warnings
from .._validation.labels import CLASS_RULE, as_class_list
from .._validation.predictions import Predictions, refuse_choice_sets
from ..exceptions import InputError
from .e_process import Detector
from .e_values import BatchFactors, MapLearners, batch_e_values, update_map_learners
from .fitted_map import (
    FittedNull,
    MapFilter,
    ShiftLearner,
    n_rows_learned,
    new_fitted_null,
    read_recalibration,
)
from .status import (
    MonitorStatus,
    Rule,
    alarm_and_onset_batches,
    alarm_is_reached,
    build_status,
    estimate_onset,
    is_near_alarm,
)
from .store import Numbers, Record, Store

if TYPE_CHECKING:
    from ..calibrators._base import Calibrator


def pack_state(
    detector: Detector, learners: MapLearners, null: FittedNull | None, alarm: Any
) -> dict[str, Any]:
    """Return everything that the next batch needs, as arrays."""
    state: dict[str, Any] = {
        "n_batches": detector.n_batches,
        "started": detector.started,
        "detected": detector.detected,
        "cusum": detector.cusum,
        "since": detector.since,
        "total": detector.total,
        "most": detector.most,
        "alarm": alarm,
        "baseline": learners.baseline,
        "counts": [shift.counts for shift in learners.shifts],
        "predicted": [shift.predicted for shift in learners.shifts],
    }
    if learners.filters:
        state["mean"] = [known.mean for known in learners.filters]
        state["precision"] = [known.precision for known in learners.filters]
    if null is not None:
        state["null_mean"] = null.mean
        state["null_precision"] = null.precision
        state["null_scores"] = [null.n_batches, null.score_ratios]
    return state


def read_fitted_null(state: Numbers) -> FittedNull | None:
    """Return the null hypothesis of a fitted map as it was kept; None where there is none."""
    if "null_mean" not in state:
        return None
    n_batches, score_ratios = state["null_scores"].tolist()
    return FittedNull(
        state["null_mean"],
        state["null_precision"],
        int(state["baseline"]),
        int(n_batches),
        score_ratios,
    )


def read_detector(state: Numbers) -> Detector:
    """Return the detector as it was kept."""
    return Detector(
        int(state["n_batches"]),
        state["started"],
        state["detected"],
        state["cusum"],
        state["since"].astype(np.intp),
        state.get("total", np.full(len(state["cusum"]), np.nan)),
        float(state["most"]),
    )


def read_map_learners(state: Numbers) -> MapLearners:
    """Return what was learned, as it was kept."""
    shifts = zip(state["counts"], state["predicted"], strict=True)
    filters = zip(state.get("mean", ()), state.get("precision", ()), strict=True)
    return MapLearners(
        tuple(ShiftLearner(*pair) for pair in shifts),
        tuple(MapFilter(*pair) for pair in filters),
        int(state["baseline"]),
    )


DEFAULT_RUN_LENGTH = 1000.0
"""Batches until a false alarm, on average at least, by default."""
MAX_LOG_CHANCE_OF_TWIN = -20.0
"""Logarithm of the chance that the same rows come again, below which they are the same file."""
SUMS = (
    *(
        "n_rows",
        "n_units",
        "n_zero_labels",
        "likelihood",
        "moved",
        "counts",
        "predicted",
    ),
    *("shares", "witness", "bins", "loss"),
)
"""Numbers of a batch that are kept as sums over all batches."""


class Monitor:
    """Watch whether predictions stay calibrated, batch by batch, for any number of classes.

    `start` makes one, `open` goes on with one, `restart` begins anew after an alarm; each batch is
    added once, in the order in which its labels arrive. Looking often costs nothing: see
    ``docs/explanation/monitoring.md`` for what is promised. No row is kept, only sums.

    Parameters
    ----------
    store : Store
        The file; use `start` or `open` instead.

    See Also
    --------
    MonitorStatus : What `add` returns.
    assess : One set of predictions, once.
    mcllo.plot.monitor : Draws it.
    mcllo.exceptions.LabelShiftWarning : A sign of a shift before labels arrive.

    Notes
    -----
    The evidence is an e-process [1]_: on calibrated rows the chance that it ever reaches
    ``1 / alpha`` is at most alpha, by the inequality of [2]_. The detector is an e-detector in the
    sense of [3]_. Intervals that hold at every batch are those of [4]_; classes are named by e-BH
    [5]_.

    References
    ----------
    .. [1] A. Ramdas, P. Grünwald, V. Vovk, G. Shafer (2023). Game-theoretic statistics and safe
           anytime-valid inference. Statistical Science 38:576-601.
    .. [2] J. Ville (1939). Étude critique de la notion de collectif. Gauthier-Villars.
    .. [3] J. Shin, A. Ramdas, A. Rinaldo (2022). E-detectors: a nonparametric framework for
           sequential change detection. arXiv:2203.03532.
    .. [4] S. R. Howard, A. Ramdas, J. McAuliffe, J. Sekhon (2021). Time-uniform, nonparametric,
           nonasymptotic confidence sequences. The Annals of Statistics 49:1055-1080.
    .. [5] R. Wang, A. Ramdas (2022). False discovery rate control with e-values. Journal of the
           Royal Statistical Society B 84:822-852.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> monitor = Monitor.start(classes=["cat", "dog", "eel"])
    >>> for day in range(12):
    ...     truth = rng.dirichlet([1, 1, 1], size=300)
    ...     y = [rng.choice(["cat", "dog", "eel"], p=p) for p in truth]
    ...     sure = truth**1.8 if day >= 8 else truth  # too sure from day 8 on
    ...     status = monitor.add(sure / sure.sum(axis=1, keepdims=True), y, batch=f"day {day}")
    >>> status.kind, status.alarm_batch, status.onset_batch
    ('alarm', 'day 8', 'day 8')
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._model: Calibrator | None = None

    @classmethod
    def start(
        cls,
        path: StrPath | None = None,
        *,
        classes: Sequence[Hashable] | None = None,
        model: StrPath | Calibrator | None = None,
        rule: Rule = "change",
        run_length: float = DEFAULT_RUN_LENGTH,
        alpha: float = 0.05,
        clip: float | None = None,
    ) -> Monitor:
        """Start a monitor.

        Parameters
        ----------
        path : path-like, optional
            A new file for its state; in memory when not given.
        classes : sequence, optional
            The classes in column order, which stay the same; else the model's, else those of the
            first batch.
        model : path-like or Calibrator, optional
            A saved recalibration: its recalibrated predictions are watched instead of the raw ones.
        rule : {"change", "ever"}
            What raises the alarm: the detector of a change, with `run_length`; or the evidence
            since the start, with `alpha`. Both are always computed.
        run_length : float
            Batches until a false alarm of the detector, on average at least.
        alpha : float
            Chance that the evidence ever raises a false alarm, at most; and of the intervals.
        clip : float, optional
            What a predicted 0 stands for, and any smaller probability; by default a 0 stands for
            nothing in particular, and its labels count nothing.
        """
        _check_levels(rule, run_length, alpha)
        text, recalibrated = read_recalibration(model)
        settings: dict[str, Any] = {
            "rule": rule,
            "run_length": float(run_length),
            "alpha": float(alpha),
            "clip": None if clip is None else float(clip),
            "classes": None
            if classes is None
            else [_as_python_scalar(name) for name in as_class_list(classes)],
            "model": text,
            "recalibrated": "" if recalibrated is None else recalibrated.method,
            "n_rows_learned": None
            if recalibrated is None
            else n_rows_learned(recalibrated),
        }
        if recalibrated is not None:
            own = recalibrated.classes_.tolist()
            if classes is not None and settings["classes"] != own:
                raise InputError(
                    argument="classes",
                    rule="be those of the model, {own}",
                    values={"own": own},
                )
            settings["classes"] = own
        return cls(Store.create(path, settings))

    @classmethod
    def open(cls, path: StrPath) -> Monitor:
        """Go on with a monitor that `start` made.

        Parameters
        ----------
        path : path-like
            The file that `start` made.

        Returns
        -------
        Monitor
            With everything that was added to it.
        """
        return cls(Store.open(path))

    def restart(
        self, path: StrPath | None = None, *, model: StrPath | Calibrator | None = None
    ) -> Monitor:
        """Start a new monitor with the settings of this one, which stays as it is.

        For after an alarm: an alarm stays, because the evidence for it stays. Evidence of the new
        monitor begins at its first batch, and so does what it promises.

        Parameters
        ----------
        path : path-like, optional
            A new file for its state; in memory when not given.
        model : path-like or Calibrator, optional
            A saved recalibration to watch from now on; this monitor's, if it has one, when not
            given. Without one the alarm is acknowledged and nothing else is changed.

        Returns
        -------
        Monitor
            A new one, without batches.
        """
        settings = self.settings
        names = ("rule", "run_length", "alpha", "clip")
        kept = {name: settings[name] for name in names}
        watched = self.model if model is None else model
        return Monitor.start(path, classes=self.classes, model=watched, **kept)

    @property
    def path(self) -> str:
        """The file; empty for a monitor in memory."""
        return "" if self._store.path is None else str(self._store.path)

    @property
    def settings(self) -> dict[str, Any]:
        """What it was started with."""
        return self._store.settings

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """The classes in column order; None before the first batch where none were named."""
        names = self.settings["classes"]
        return None if names is None else tuple(names)

    @property
    def model(self) -> Calibrator | None:
        """The recalibration whose predictions are watched."""
        text = self.settings["model"]
        if self._model is None and text is not None:
            from ..calibrators import load_calibrator

            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "model.json"
                path.write_text(text, encoding="utf-8")
                self._model = load_calibrator(path)
        return self._model

    def add(
        self,
        probs: Any = None,
        y: Any = None,
        *,
        batch: str,
        time: str | None = None,
        logits: Any = None,
        groups: Any = None,
        normalize: bool = False,
        sample_weight: Any = None,
    ) -> MonitorStatus:
        """Add a batch, and return what the monitor says then.

        Parameters
        ----------
        probs : array-like, frame or Predictions of shape (n_samples, n_classes)
            The predictions as they were made.
        y : array-like of shape (n_samples,)
            The labels that came true.
        batch : str
            Its name. The same batch again adds nothing; other rows by this name are refused, and
            the same rows by another name, unless they may have come again by chance.
        time : str, optional
            What time it is about, as text that sorts (2026-11-16); by default its name. Labels may
            arrive late and out of order: evidence adds up as they arrive.
        logits : array-like or frame, optional
            Scores before the softmax, instead of `probs`.
        groups : array-like of shape (n_samples,), optional
            Group of each row: rows of a group may depend on each other, and count as one on
            average. A group must not come back in a later batch.
        normalize : bool
            Accept rows that do not sum to 1 and divide them by their sum.
        sample_weight : None
            Weights are refused: a row that counts twice is no evidence twice.
        """
        if (
            sample_weight is not None
            or getattr(probs, "sample_weight", None) is not None
        ):
            raise _sample_weight_error()
        with _explain_errors_for_monitor(self.classes):
            read = self._validate_and_recalibrate(
                self.settings, probs, y, logits, groups, normalize
            )
        return self._add_unless_known(
            read, str(batch), str(batch if time is None else time)
        )

    def add_file(
        self,
        path: StrPath,
        *,
        label: str,
        batch: str,
        time: str | None = None,
        groups: str | None = None,
        prefix: str = "",
        logits: bool = False,
        normalize: bool = False,
    ) -> MonitorStatus:
        """Add a batch from a CSV or Parquet file.

        Parameters
        ----------
        path : path-like
            The file.
        label : str
            Column with the labels that came true.
        batch : str
            Name of the batch; see `add`.
        time : str, optional
            What time it is about, as text that sorts; by default its name.
        groups : str, optional
            Column with the group of each row.
        prefix : str
            What stands before a class in the name of its column.
        logits : bool
            The columns hold logits instead of probabilities.
        normalize : bool
            Accept rows that do not sum to 1 and divide them by their sum.

        Returns
        -------
        MonitorStatus
            What the monitor says then.
        """
        settings = self.settings
        with _explain_errors_for_monitor(self.classes), suppress_warnings():
            rows = load_application("io.read").read_predictions(
                path,
                label=label,
                classes=settings["classes"],
                groups=groups,
                prefix=prefix,
                logits=logits,
                normalize=normalize,
                clip=settings["clip"],
            )
            read = self._validate_and_recalibrate(
                settings, rows, None, None, None, False
            )
        return self._add_unless_known(
            read, str(batch), str(batch if time is None else time)
        )

    def _add_unless_known(
        self, read: Predictions, batch: str, time: str
    ) -> MonitorStatus:
        _check_writable_text(batch, "batch")
        _check_writable_text(time, "time")
        checksum = _checksum_of_rows(read)
        with self._store.writing():
            known = self._store.find_by_batch_id(batch)
            if known is None:
                twin = self._store.find_by_checksum(checksum)
                if (
                    twin is not None
                    and _max_log_repeat_probability(read) < MAX_LOG_CHANCE_OF_TWIN
                ):
                    raise _rows_added_before_error(twin.id, batch)
                self._append_batch(read, batch, time, checksum)
            elif known.checksum != checksum:
                raise InputError(
                    "{found} was added before, with other rows.",
                    argument="batch",
                    value=batch,
                    remedy="Give these rows a name of their own; labels that came late are a batch "
                    "too.",
                )
        return replace(self.status(), already=known is not None)

    def status(self) -> MonitorStatus:
        """Return what the monitor says after its last batch.

        Raises
        ------
        InputError
            Before the first batch.
        """
        last = self._store.last_record()
        if last is None:
            raise InputError(
                "a monitor says something after its first batch; it has none. Add one."
            )
        state = self._store.state()
        detector = read_detector(state)
        settings = self.settings
        alarm_number, start = alarm_and_onset_batches(state["alarm"], settings)
        alarm = self._store.record_by_number(alarm_number) if alarm_number else None
        if alarm is None and is_near_alarm(detector, settings):
            start = estimate_onset(detector, settings)
        onset = self._store.record_by_number(start) if start else None
        before = self._store.record_by_number(start - 1) if start > 1 else None
        sums = None if before is None else _select_sums(before.numbers)
        own = replace(last, numbers=_select_sums(last.numbers))
        if (
            self.model is not None and "n_rows_learned" not in settings
        ):  # a file of before
            settings["n_rows_learned"] = n_rows_learned(self.model)
        allows_error = read_fitted_null(state) is not None
        return build_status(settings, detector, own, onset, alarm, sums, allows_error)

    def history(self) -> Table:
        """Return a row for each batch, in the order of arrival: names, rows, evidence, sizes."""
        from .history import history_table

        return history_table(self)

    def records(self) -> list[Record]:
        """Return what is stored of each batch, in the order of arrival."""
        return self._store.records()

    def backup(self, path: StrPath) -> None:
        """Write a copy of the file, also while another process adds to it.

        Parameters
        ----------
        path : path-like
            Where to write the copy.
        """
        self._store.backup(path)

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        last = self._store.last_record()
        place = "in memory" if self._store.path is None else str(self._store.path)
        return f"<Monitor {place}: {0 if last is None else last.number} batches>"

    def _validate_and_recalibrate(
        self,
        settings: dict[str, Any],
        probs: Any,
        y: Any,
        logits: Any,
        groups: Any,
        normalize: bool,
    ) -> Predictions:
        """Return the rows that are watched: validated, and recalibrated where there is a model."""
        clip, classes = settings["clip"], settings["classes"]
        with suppress_warnings():
            rows = probs
            if not isinstance(probs, Predictions):
                rows = Predictions.from_arrays(
                    probs,
                    y,
                    logits=logits,
                    classes=classes,
                    groups=groups,
                    normalize=normalize,
                    clip=clip,
                )
            refuse_choice_sets(rows)
            if classes is not None and list(rows.classes) != classes:
                raise _classes_mismatch_error(rows.classes, classes)
            if self.model is not None:
                recalibrated = self.model.predict_proba(rows)
                labels = np.array(rows.classes, dtype=object)[rows.codes]
                rows = Predictions.from_arrays(
                    recalibrated,
                    labels,
                    classes=rows.classes,
                    groups=rows.groups,
                    clip=clip,
                )
        if clip is not None:
            rows = replace(rows, raised=None)  # the floor is what was predicted
        return rows

    def _append_batch(
        self, rows: Predictions, batch: str, time: str, checksum: str
    ) -> None:
        settings = self.settings
        if settings["classes"] is None:
            settings["classes"] = [_as_python_scalar(label) for label in rows.classes]
            self._store.write_settings(settings)
        state, last = self._store.state(), self._store.last_record()
        past = (
            read_map_learners(state)
            if state
            else MapLearners.new(
                rows.n_classes, _class_of_largest_mean_probability(rows)
            )
        )
        detector = read_detector(state) if state else Detector.new(rows.n_classes)
        null = (
            read_fitted_null(state)
            if state
            else new_fitted_null(rows, past.baseline, settings)
        )
        leading = detector.leading_map
        # sizes are about the probabilities as they were made, whatever the null hypothesis
        factors = batch_e_values(rows, past, leading)
        if null is None:
            detector = detector.after(factors)
            past = update_map_learners(rows, past)
        else:
            expected = null.predictions_at_mean(rows)
            dispersion = null.dispersion  # of the batches before this one
            null, null_gain = null.after(rows)
            against_null = batch_e_values(expected, past, leading)
            detector = detector.after(against_null, null_gain, dispersion)
            past = update_map_learners(expected, past)
        alarm = state["alarm"] if state else np.zeros(2)
        if not alarm[0] and alarm_is_reached(
            detector, settings["rule"], settings["alpha"], settings["run_length"]
        ):
            # the third number says that the second may be 0: files of before have two
            alarm = np.array(
                [detector.n_batches, estimate_onset(detector, settings), 1.0]
            )
        numbers = _cumulative_sums(factors, None if last is None else last.numbers)
        numbers |= {
            "log_evidence": np.asarray(detector.log_evidence),
            "log_detector": np.asarray(detector.log_detector),
        }
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        record = Record(detector.n_batches, batch, time, now, checksum, numbers)
        self._store.append(record, pack_state(detector, past, null, alarm))


@contextmanager
def _explain_errors_for_monitor(classes: Sequence[Any] | None) -> Iterator[None]:
    """Give errors of the door the remedy of a monitor: late classes, a batch of one group."""
    try:
        yield
    except InputError as error:
        if error.argument == "y" and error.rule == CLASS_RULE and classes is not None:
            late = "A class that appears late needs a new monitor: evidence is about fixed classes."
            raise error.but(remedy=late) from None
        if error.argument == "groups" and error.row is None:
            raise error.but(
                remedy="Add it together with the groups that come next."
            ) from None
        raise


def _check_levels(rule: str, run_length: float, alpha: float) -> None:
    if rule not in ("change", "ever"):
        raise InputError(argument="rule", rule="be 'change' or 'ever'", value=rule)
    if not 1.0 < run_length < float("inf"):
        raise InputError(
            argument="run_length",
            rule="be a number of batches above 1",
            value=run_length,
        )
    if not 0.0 < alpha < 1.0:
        raise InputError(argument="alpha", rule="lie in (0, 1)", value=alpha)


def _check_writable_text(text: str, argument: str) -> None:
    """Refuse what no file can hold: half a letter (a surrogate), or a NUL."""
    if "\0" in text or text != text.encode("utf-8", "replace").decode():
        raise InputError(
            argument=argument,
            rule="be text that can be written as UTF-8",
            value=text,
            remedy="Choose another name.",
        )


def _max_log_repeat_probability(rows: Predictions) -> float:
    """Return the log of how likely these very rows are at most, if rows are drawn from anything.

    Rows of which n_i are alike have a chance of ``prod (n_i / n)^n_i`` at most.
    """
    alike = np.unique(
        np.column_stack([rows.probs, rows.codes]), axis=0, return_counts=True
    )[1]
    return float((alike * np.log(alike / alike.sum())).sum())


def _rows_added_before_error(earlier_batch: str, batch: str) -> InputError:
    return InputError(
        "the rows of batch {batch_name!r} were added before, as {known!r}.",
        argument="batch",
        value=batch,
        remedy="Add the rows of this batch; rows count once.",
        values={"batch_name": batch, "known": earlier_batch},
    )


def _sample_weight_error() -> InputError:
    return InputError(
        "a monitor takes no {sample_weight}: a row that counts twice is no evidence twice.",
        argument="sample_weight",
        remedy="Add the rows themselves, or monitor without weights.",
    )


def _classes_mismatch_error(
    batch_classes: Sequence[Any], monitor_classes: Sequence[Any]
) -> InputError:
    return InputError(
        "the batch must have the monitor's classes {known}; got {own}.",
        argument="classes",
        remedy="Start a new monitor for other classes: evidence is about fixed ones.",
        values={"known": list(monitor_classes), "own": list(batch_classes)},
    )


def _as_python_scalar(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _class_of_largest_mean_probability(rows: Predictions) -> int:
    return int(rows.probs.mean(axis=0).argmax())


def _checksum_of_rows(rows: Predictions) -> str:
    """Return a checksum of what is watched."""
    digest = hashlib.sha256(repr((rows.probs.shape, rows.classes)).encode())
    for array in (rows.probs, rows.codes, rows.groups):
        if array is not None:
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _cumulative_sums(factors: BatchFactors, previous_sums: Numbers | None) -> Numbers:
    own = {name: np.asarray(getattr(factors, name), dtype=np.float64) for name in SUMS}
    return (
        own
        if previous_sums is None
        else {name: own[name] + previous_sums[name] for name in SUMS}
    )


def _select_sums(numbers: Numbers) -> Numbers:
    return {name: numbers[name] for name in SUMS}
