"""What the next batch needs, as named arrays: detector, learners, null, alarm; and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from .detector import Detector
from .e_values import History
from .fitted import FittedNull
from .learned import Filter, Shifts
from .store import Numbers


def pack_state(
    detector: Detector, past: History, null: FittedNull | None, alarm: Any
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
        "baseline": past.baseline,
        "counts": [shift.counts for shift in past.shifts],
        "predicted": [shift.predicted for shift in past.shifts],
    }
    if past.filters:
        state["mean"] = [known.mean for known in past.filters]
        state["precision"] = [known.precision for known in past.filters]
    if null is not None:
        state["null_mean"] = null.mean
        state["null_precision"] = null.precision
        state["null_scores"] = [null.n_batches, null.score_ratios]
    return state


def read_null(state: Numbers) -> FittedNull | None:
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


def read_history(state: Numbers) -> History:
    """Return what was learned, as it was kept."""
    shifts = zip(state["counts"], state["predicted"], strict=True)
    filters = zip(state.get("mean", ()), state.get("precision", ()), strict=True)
    return History(
        tuple(Shifts(*pair) for pair in shifts),
        tuple(Filter(*pair) for pair in filters),
        int(state["baseline"]),
    )
