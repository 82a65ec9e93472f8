"""What the next batch needs, as named arrays: the detector, the learners, the alarm; and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from .detector import Detector
from .evidence import Past
from .learned import Filter, Shifts
from .store import Numbers


def state_of(detector: Detector, past: Past, alarm: Any) -> dict[str, Any]:
    """Return everything that the next batch needs, as arrays."""
    state: dict[str, Any] = {
        "n_batches": detector.n_batches,
        "started": detector.started,
        "detected": detector.detected,
        "cusum": detector.cusum,
        "since": detector.since,
        "most": detector.most,
        "alarm": alarm,
        "baseline": past.baseline,
        "counts": [shift.counts for shift in past.shifts],
        "predicted": [shift.predicted for shift in past.shifts],
    }
    if past.filters:
        state["mean"] = [known.mean for known in past.filters]
        state["precision"] = [known.precision for known in past.filters]
    return state


def detector_of(state: Numbers) -> Detector:
    """Return the detector as it was kept."""
    return Detector(
        int(state["n_batches"]),
        state["started"],
        state["detected"],
        state["cusum"],
        state["since"].astype(np.intp),
        float(state["most"]),
    )


def past_of(state: Numbers) -> Past:
    """Return what was learned, as it was kept."""
    shifts = zip(state["counts"], state["predicted"], strict=True)
    filters = zip(state.get("mean", ()), state.get("precision", ()), strict=True)
    return Past(
        tuple(Shifts(*pair) for pair in shifts),
        tuple(Filter(*pair) for pair in filters),
        int(state["baseline"]),
    )
