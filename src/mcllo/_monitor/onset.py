"""When a departure began: since which batch, where that can be told, and from which files."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._utils.results import Floats
from .detector import Detector
from .status import NEAR, reached


def estimate_onset(detector: Detector, settings: dict[str, Any]) -> int:
    """Return the number of the batch since which predictions are off; 0 where it cannot be told."""
    if not detector.has_onset(settings["alpha"]):
        return 0
    if settings["model"] is not None and not detector.knows_total:
        return 0
    return detector.onset


def alarm_and_onset(kept: Floats, settings: dict[str, Any]) -> tuple[int, int]:
    """Return the numbers of the batches of the alarm and of the onset, 0 for none.

    Files of before kept two numbers and an onset in any case. Of a fitted map it was mostly the
    map's own estimation error; from the first batch on it is none.
    """
    alarm, onset = int(kept[0]), int(kept[1])
    is_old = len(kept) == 2
    if is_old and (onset == 1 or settings["model"] is not None):
        onset = 0
    return alarm, onset


def is_near(detector: Detector, settings: dict[str, Any]) -> bool:
    """Whether the alarm is near enough to say when it began."""
    near = settings["alpha"] * np.exp(NEAR), settings["run_length"] * np.exp(-NEAR)
    return (
        reached(detector, settings["rule"], *near)
        or reached(detector, "ever", settings["alpha"], settings["run_length"])
        or reached(detector, "change", settings["alpha"], settings["run_length"])
    )
