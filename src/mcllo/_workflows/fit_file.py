"""Fit any recalibration method to a file, by its name.

MCLLO reads large files in blocks (`_workflows/assess`). The others need all rows in memory, and a
file that would take more than the machine has is refused before it is read.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._blocks.files import blocks_of_files
from .._blocks.fit import fit_blocks
from .._files.read import read_predictions
from .._ground.files import StrPath
from .._ground.results import none_for_nan
from .._ground.text import format_count, listed
from ..calibrators import CALIBRATORS, MCLLOCalibrator
from ..exceptions import InputError, Option, Phrase
from .assess import blocks_of, is_large, reads_whole
from .compare import known_methods

DEFAULTS: dict[str, Any] = {"penalty": 0.0, "center": "identity", "gate": None}
"""What MCLLO takes where nothing is said."""
COPIES = 4.0
"""Room that reading and fitting take, in sizes of the table."""


@dataclass(frozen=True, eq=False)
class FittedMethod:
    """A calibrator fitted to a file.

    Attributes
    ----------
    calibrator : fitted calibrator
        Save it, or apply it.
    n_samples : int or None
        Rows it was fitted to, where the map still knows.
    """

    calibrator: Any
    n_samples: int | None

    def __str__(self) -> str:
        made = self.calibrator
        if made.method == "mcllo":
            return str(made.describe())
        rows = f"{made.method} map of {len(made.classes_)} classes from {self.n_samples:,} rows"
        return f"{rows}: {made.summary()}" if hasattr(made, "summary") else rows

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values: what was fitted, without the map itself."""
        made = self.calibrator
        gate = getattr(made, "gate_", None)
        content = {
            "method": made.method,
            "n_samples": self.n_samples,
            "classes": made.classes_.tolist(),
            "params": made.get_params(deep=False),
            "gate": None if gate is None else gate.to_dict(),
            "text": str(self),
        }
        if made.method == "auto":
            gain = {"gain": made.expected_gain_, "gain_se": made.expected_gain_se_}
            content |= {"weights": dict(made.weights_), **none_for_nan(gain)}
        return content


def fit_method(
    path: StrPath,
    reading: dict[str, Any],
    method: str,
    given: dict[str, Any],
    *,
    rule: str = "",
    workers: int | None = None,
) -> FittedMethod:
    """Fit a method, a key of `CALIBRATORS`, to a file.

    `reading` is for `read_predictions`; `given` are options of the method (penalty, center, gate),
    None where nothing was said; `rule` is a baseline that MCLLO finds by itself, 'auto' or 'all'.
    """
    if method not in CALIBRATORS:
        raise _of_method(method, "{found} is not known; {}", None, known_methods(method))
    estimator: Any = CALIBRATORS[method]()
    wanted = {name: value for name, value in given.items() if value is not None}
    _check_options(method, {**wanted, "baseline": reading.get("baseline") or rule or None})
    tidy = {name: reading[name] for name in ("normalize", "clip")}
    if method == "mcllo":
        params = {**DEFAULTS, **wanted, **tidy}
        fitted = fit_file(path, reading, params, rule=rule, workers=workers)
        return FittedMethod(fitted, fitted.fit_.to_dict().get("n_samples"))
    params = {name: value for name, value in tidy.items() if name in estimator.get_params()}
    _check_options(method, {"clip": reading["clip"]})
    if "on" in estimator.get_params() and reading["logits"]:
        params["on"] = "logits"
    elif estimator.input == "logits":
        remedy = "Pass {} with columns that hold them, or choose another method, such as 'auto'."
        raise _of_method(method, "{found} needs logits.", Phrase(remedy, Option("logits", True)))
    _check_room(path, reading, method)
    predictions = read_predictions(path, **reading)
    estimator.set_params(**params, **wanted)
    return FittedMethod(estimator.fit(predictions), predictions.n_samples)


def fit_file(
    path: StrPath,
    reading: dict[str, Any],
    params: dict[str, Any],
    *,
    rule: str = "",
    workers: int | None = None,
) -> MCLLOCalibrator:
    """Return an `MCLLOCalibrator` with these parameters, fitted to a file."""
    needs = {
        Option("penalty", "firth"): params["penalty"] == "firth",
        Option("center", params["center"]): params["center"] != "identity",
        Option("gate", params["gate"]): params["gate"] is not None,
        Option("baseline", rule): bool(rule),
    }
    if reads_whole(path, needs):
        predictions = read_predictions(path, **reading)
        return MCLLOCalibrator(baseline=rule or predictions.baseline, **params).fit(predictions)
    blocks = blocks_of(path, reading, workers)
    fit = fit_blocks(blocks, penalty=params["penalty"])
    return MCLLOCalibrator(baseline=fit.baseline, **params)._fitted_already(fit)


def _of_method(method: str, template: str, remedy: Phrase | None, *parts: str) -> InputError:
    """Return the refusal of a method."""
    return InputError(Phrase(template, *parts), argument="method", value=method, remedy=remedy)


def _check_options(method: str, given: dict[str, Any]) -> None:
    """Refuse what the method does not take, and name those that do."""
    takes = {name: set(kind().get_params()) for name, kind in CALIBRATORS.items()}
    for name, value in given.items():
        if value is not None and name not in takes[method]:
            others = listed([other for other in takes if name in takes[other]])
            known = f"{others} {'have' if ' and ' in others else 'has'} it"
            rule = "{found} must be left out: {} has no such option ({})."
            message = Phrase(rule, Option("method", method), known)
            raise InputError(message, argument=name, value=value)


def _check_room(path: StrPath, reading: dict[str, Any], method: str) -> None:
    """Refuse a directory, and a file whose rows would not fit into the memory of this machine."""
    mcllo = Option("method", "mcllo")
    if str(path) != "-" and Path(path).is_dir():
        rule = "{found} needs all rows in memory, and the files of a directory are read in blocks."
        remedy = "Join the files, or some of their rows, into one file, or use {}."
        raise _of_method(method, rule, Phrase(remedy, mcllo))
    if not is_large(path):
        return
    own = {name: value for name, value in reading.items() if name != "baseline"}
    with blocks_of_files(path, spill=False, **own) as blocks:
        need = COPIES * blocks.source.n_bytes()
    if need > memory():
        rule = "{found} needs all rows in memory, about {} GB here; there are {}."
        sizes = [format_count(size / 1e9) for size in (need, memory())]
        remedy = "Fit it to fewer rows, chosen at random, or use {}, which reads files in blocks."
        raise _of_method(method, rule, Phrase(remedy, mcllo), *sizes)


def memory() -> float:
    """Return the memory of this machine in bytes; without limit where the system does not say."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * float(os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return float("inf")
