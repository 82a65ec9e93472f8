"""The saved model that is watched: its text, the rows it was learned from, its null hypothesis."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._utils.atomic_files import StrPath
from .._validation.predictions import Predictions
from .fitted import MAX_CLASSES_FITTED_NULL, FittedNull

if TYPE_CHECKING:
    from ..calibrators._base import Calibrator


def model_text(model: StrPath | Calibrator | None) -> tuple[str | None, Calibrator | None]:
    """Return a recalibration as the JSON of its file, and the recalibration."""
    if model is None:
        return None, None
    from ..calibrators import load_calibrator
    from ..calibrators._base import Calibrator

    if isinstance(model, Calibrator):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.json"
            model.save(path)
            return path.read_text(encoding="utf-8"), model
    loaded = load_calibrator(model)
    return Path(model).read_text(encoding="utf-8"), loaded


def n_rows_learned(model: Calibrator) -> int | None:
    """Return how many rows a model was learned from: 0 if it changes nothing, None if unknown."""
    gate = getattr(model, "gate_", None)
    if model.method == "identity" or (gate is not None and not gate.recalibrates):
        return 0
    training = getattr(model, "training_", None)
    if training is not None:
        return int(training["n_samples"])
    fit = getattr(model, "fit_", None)
    return None if fit is None else int(fit.n_samples)


def new_null(rows: Predictions, baseline: int, settings: dict[str, Any]) -> FittedNull | None:
    """Return the null hypothesis that allows for a map's estimation error, where there is one."""
    n_learned = settings.get("n_rows_learned")
    if not n_learned or rows.n_classes > MAX_CLASSES_FITTED_NULL:
        return None
    return FittedNull.new(n_learned, rows, baseline)
