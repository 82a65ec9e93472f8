"""One figure of one file, for the command line: predictions -> assessment -> figure -> file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._assess import assess_predictions
from ._frames import did_you_mean
from ._predictions import Predictions
from .exceptions import InputError


def draw(predictions: Predictions, kind: str, path: str, *, seed: int | None = None) -> None:
    """Assess the predictions and write the figure `kind`; its format follows the ending."""
    from . import plot

    kinds: dict[str, Callable[[Any], Any]] = {
        "reliability": plot.reliability,
        "by_class": plot.reliability_by_class,
        "parameters": lambda a: plot.parameters(a.fit),
        "map": lambda a: plot.calibration_map(a.fit),
        "ladder": plot.ladder,
        "baselines": plot.baselines,
    }
    if kind not in kinds:
        hint = did_you_mean(kind, tuple(kinds)).replace("it has", "known are")
        raise InputError(f"kind {kind!r} is not known; {hint}")
    plot.save(kinds[kind](assess_predictions(predictions, seed=seed)), path)
