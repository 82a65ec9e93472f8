"""Fit any recalibration method to a file, by its name.

MCLLO reads large files in blocks (`_apps/streaming/assess_file`). The others need all rows in
memory, and a file that would take more than the machine has is refused before it is read. Rows in
memory also tell what the map gains on rows that it was not fitted to (`_comparison/methods`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..._comparison.methods import (
    HeldOutGain,
    estimate_held_out_gain,
    suggest_method_names,
)
from ..._utils.atomic_files import StrPath
from ..._utils.formatting import join_words
from ..._utils.results import none_for_nonfinite
from ..._utils.statements import Statement
from ..._validation.predictions import Predictions
from ...calibrators import CALIBRATORS, MCLLOCalibrator
from ...exceptions import InputError
from .assess_file import OpenedFile, fit_blocks

MCLLO_OPTIONS = ("penalty", "center")
"""Options that MCLLO has and auto has not."""
DEFAULTS: dict[str, Any] = {"penalty": 0.0, "center": "identity", "gate": None}
"""What MCLLO takes where nothing is said."""


@dataclass(frozen=True, eq=False)
class FittedMethod:
    """A calibrator fitted to a file.

    Attributes
    ----------
    calibrator : fitted calibrator
        Save it, or apply it.
    n_samples : int or None
        Rows it was fitted to, where the map still knows.
    held_out : HeldOutGain or None
        What it gains on rows left out; None where nobody asked (rows in blocks, a closed gate, and
        ``auto``, which knows its own).
    notes : tuple of Statement
        What was assumed of the file.
    """

    calibrator: Any
    n_samples: int | None
    held_out: HeldOutGain | None = None
    notes: tuple[Statement, ...] = ()

    def __str__(self) -> str:
        fitted = self.calibrator
        if fitted.method == "mcllo":
            return f"mcllo {fitted.describe()}"
        n_classes = len(fitted.classes_)
        text = (
            f"{fitted.method} map of {n_classes} classes from {self.n_samples:,} rows"
        )
        return f"{text}: {fitted.summary()}" if fitted.method == "auto" else text

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values: what was fitted, without the map itself."""
        fitted = self.calibrator
        gate = getattr(fitted, "gate_", None)
        content = {
            "method": fitted.method,
            "n_samples": self.n_samples,
            "classes": fitted.classes_.tolist(),
            "params": fitted.get_params(deep=False),
            "gate": None if gate is None else gate.to_dict(),
            "held_out": None if self.held_out is None else self.held_out.to_dict(),
            "notes": [{"kind": note.kind, "text": note.text} for note in self.notes],
            "text": str(self),
        }
        if fitted.method == "auto":
            gain = {"gain": fitted.expected_gain_, "gain_se": fitted.expected_gain_se_}
            content["weights"] = dict(fitted.weights_)
            content |= none_for_nonfinite(gain)
        return content


def choose_method_name(
    file: OpenedFile, given: dict[str, Any], baseline: str | None
) -> tuple[str, tuple[Statement, ...]]:
    """Return the method where none was asked for, and what is to be said of that.

    The best probabilities are those of auto. MCLLO is fitted where one of its own options is given,
    and where the rows do not fit into memory, which auto needs.
    """
    has_own_option = any(given.get(name) is not None for name in MCLLO_OPTIONS)
    if has_own_option or baseline is not None:
        return "mcllo", ()
    asks_for_trees = given.get("flexible") is not None
    if asks_for_trees or file.fits_memory():
        return "auto", ()
    words = (
        "The rows do not fit into memory, which auto, the default, needs: MCLLO is "
        "fitted in blocks."
    )
    return "mcllo", (Statement("note.method", words, "plain", {"method": "mcllo"}),)


def fit_method(
    path: StrPath,
    reading: dict[str, Any],
    method: str | None,
    given: dict[str, Any],
    *,
    rule: str = "",
    workers: int | None = None,
) -> FittedMethod:
    """Fit a method, a key of `CALIBRATORS`, to a file.

    None takes the one for the best probabilities (`choose_method_name`). `reading` is for
    `read_predictions`; `given` are options of the method (penalty, center, gate,
    flexible), None where nothing was said; `rule` is a baseline that MCLLO finds by itself, 'auto'
    or 'all'.
    """
    baseline = reading.get("baseline") or rule or None
    notes: tuple[Statement, ...] = ()
    file: OpenedFile | None = None
    if method is None:
        file = OpenedFile(path, reading)
        method, notes = choose_method_name(file, given, baseline)
    if method not in CALIBRATORS:
        known = suggest_method_names(method)
        message = "{found} is not known; {known}"
        raise InputError(
            message, argument="method", value=method, values={"known": known}
        )
    wanted = {name: value for name, value in given.items() if value is not None}
    _check_options(method, {**wanted, "baseline": baseline})
    if file is None:
        file = OpenedFile(path, reading)
    if method != "mcllo":
        return _fit_in_memory(file, reading, method, wanted)
    on_rows = {name: reading[name] for name in ("normalize", "clip")}
    params = {**DEFAULTS, **wanted, **on_rows}
    fitted, rows, said = _fit_mcllo(file, reading, params, rule=rule, workers=workers)
    n_samples = fitted.fit_.to_dict().get("n_samples")
    held_out = _estimate_gain(fitted, rows)
    return FittedMethod(fitted, n_samples, held_out, (*said, *notes))


def _fit_in_memory(
    file: OpenedFile, reading: dict[str, Any], method: str, wanted: dict[str, Any]
) -> FittedMethod:
    """Fit a method that needs all rows in memory, with the options that are wanted."""
    estimator: Any = CALIBRATORS[method]()
    known = estimator.get_params()
    params = {name: reading[name] for name in ("normalize", "clip") if name in known}
    _check_options(method, {"clip": reading["clip"]})
    if "on" in known and reading["logits"]:
        params["on"] = "logits"
    elif estimator.input == "logits":
        remedy = (
            "Pass {logits:True} with columns that hold them, or choose another method, such as "
            "'auto'."
        )
        message = "{found} needs logits."
        raise InputError(message, argument="method", value=method, remedy=remedy)
    remedy = (
        "Fit it to fewer rows, chosen at random, or use {method:'mcllo'}, which reads files in "
        "blocks."
    )
    file.check_rows_fit_memory("{method:{given!r}}", remedy, {"given": method})
    rows = file.read()
    estimator.set_params(**params, **wanted).fit(rows)
    return FittedMethod(
        estimator, rows.n_samples, _estimate_gain(estimator, rows), rows.notes
    )


def _estimate_gain(fitted: Any, rows: Predictions | None) -> HeldOutGain | None:
    """Return what a map gains on rows left out, where it changes any and does not know it."""
    # cross-fitting fits the map again for each fold, so only where it has something to tell
    gate = getattr(fitted, "gate_", None)
    changes_nothing = gate is not None and not gate.recalibrates
    if rows is None or changes_nothing or fitted.method in ("auto", "identity"):
        return None
    return estimate_held_out_gain(fitted, rows)


def fit_file(
    path: StrPath,
    reading: dict[str, Any],
    params: dict[str, Any],
    *,
    rule: str = "",
    workers: int | None = None,
) -> MCLLOCalibrator:
    """Return an `MCLLOCalibrator` with these parameters, fitted to a file."""
    file = OpenedFile(path, reading)
    fitted, _, _ = _fit_mcllo(file, reading, params, rule=rule, workers=workers)
    return fitted


def _fit_mcllo(
    file: OpenedFile,
    reading: dict[str, Any],
    params: dict[str, Any],
    *,
    rule: str = "",
    workers: int | None = None,
) -> tuple[MCLLOCalibrator, Predictions | None, tuple[Statement, ...]]:
    """Return the same with its rows, where they are in memory, and what was assumed of them."""
    needs = {
        "{penalty:'firth'}": params["penalty"] == "firth",
        "{center:{given[center]!r}}": params["center"] != "identity",
        "{gate:{given[gate]!r}}": params["gate"] is not None,
        "{baseline:{rule!r}}": bool(rule),
    }
    if file.reads_all_rows(needs, {"given": params, "rule": rule}):
        rows = file.read()
        made = MCLLOCalibrator(baseline=rule or rows.baseline, **params).fit(rows)
        return made, rows, rows.notes
    blocks = file.blocks(workers)
    fit = fit_blocks(blocks, penalty=params["penalty"])
    made = MCLLOCalibrator(baseline=fit.baseline, **params)
    made._adopt_fit(fit, "logits" if reading.get("logits") else "probs")
    return made, None, blocks.facts.notes


def _check_options(method: str, given: dict[str, Any]) -> None:
    """Refuse what the method does not take, and name those that do."""
    options_of = {name: set(kind().get_params()) for name, kind in CALIBRATORS.items()}
    for name, value in given.items():
        if value is not None and name not in options_of[method]:
            others = [other for other, options in options_of.items() if name in options]
            verb = "has" if len(others) == 1 else "have"
            known = f"{join_words(others)} {verb} it"
            message = (
                "{found} must be left out: {method:{its_name!r}} "
                "has no such option ({known})."
            )
            values = {"its_name": method, "known": known}
            raise InputError(message, argument=name, value=value, values=values)
