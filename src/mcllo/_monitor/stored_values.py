"""What must hold of the numbers in a monitor's file before anything is computed from them.

A checksum (`_monitor/store`) finds what was changed by accident. These rules find what no monitor
would have written: one NaN among the counts would hide an alarm for ever, as NaN is never above a
threshold.

==================  =============================================================================
`check_settings`    classes, levels and rule are of the kinds and in the ranges that `start` takes
`check_state`       lengths follow from the number of classes; counts, places and numbers of
                    batches are in range; logarithms may be -inf, and nothing is NaN
`check_sums`        the same of the sums of a batch
==================  =============================================================================

Each raises a ValueError that says what is wrong; `_monitor/store` says in which file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from .._utils.results import Floats
from .e_values import EXPONENTS, N_BINS, log_prior_weights_of_maps
from .fitted_map import MEMORY_ROWS_PER_CLASS

LOG_SUMS = ("likelihood", "log_evidence", "log_detector")
"""Sums of a batch that are logarithms, which may be -inf; the others are finite."""


def check_settings(settings: Any) -> None:
    """Refuse settings that `Monitor.start` would not have written."""
    if not isinstance(settings, dict):
        raise ValueError("its settings are no table of names and values")
    _require(settings.get("rule") in ("change", "ever"), "its rule is none that exists")
    run_length = settings.get("run_length")
    alpha = settings.get("alpha")
    clip = settings.get("clip")
    _require(_is_between(run_length, 1.0, math.inf), "its run length is out of range")
    _require(_is_between(alpha, 0.0, 1.0), "its alpha is out of range")
    is_floor = _is_between(clip, -math.inf, math.inf)
    _require(clip is None or is_floor, "its clip is no number")
    classes = settings.get("classes", "")
    named = isinstance(classes, list) and len(classes) > 1
    if named:
        named = all(isinstance(name, (str, int, float, bool)) for name in classes)
        distinct = {(type(name), name) for name in classes}
        named = named and len(distinct) == len(classes)
    _require(classes is None or named, "its classes are no list of names")
    is_text = isinstance(settings.get("model"), str)
    _require(settings.get("model", "") is None or is_text, "its model is no text")
    _require(isinstance(settings.get("recalibrated"), str), "its method is no text")


def check_state(state: Mapping[str, Floats], n_classes: int) -> None:
    """Refuse a state that cannot have come from adding batches of so many classes."""
    n_maps = len(log_prior_weights_of_maps(n_classes))
    n_memories = len(MEMORY_ROWS_PER_CLASS)
    n_parameters = 2 * (n_classes - 1)
    n_batches = _whole_number(state, "n_batches", 1, math.inf)
    for name in ("started", "detected", "cusum"):
        values = _of_shape(state, name, (n_maps,))
        _require(bool((values < math.inf).all()), f"{name!r} has no number")
    if "total" in state:  # all of it is NaN in files of before that did not keep it
        total = _of_shape(state, "total", (n_maps,))
        known = bool((total < math.inf).all())
        _require(known or bool(np.isnan(total).all()), "'total' has no number")
    since = _of_shape(state, "since", (n_maps,))
    _require(_are_whole(since, 1, n_batches), "'since' names no batch")
    _require(_is_between(_number(state, "most"), -1.0, math.inf), "'most' is too small")
    _check_alarm(state, n_batches)
    _whole_number(state, "baseline", 0, n_classes - 1)
    for name in ("counts", "predicted"):
        values = _of_shape(state, name, (n_memories, n_classes))
        _require_finite(values, name)
        _require(bool((values >= 0.0).all()), f"{name!r} is below 0")
    if "mean" in state or "precision" in state:
        _check_normal(state, "mean", "precision", (n_memories, n_parameters))
    if "null_mean" in state or "null_precision" in state:
        _check_normal(state, "null_mean", "null_precision", (n_parameters,))
        scores = _of_shape(state, "null_scores", (2,))
        _require_finite(scores, "null_scores")
        _require(scores[0] == n_batches, "'null_scores' is of other batches")
        _require(scores[1] >= 0.0, "'null_scores' is below 0")


def check_sums(sums: Mapping[str, Floats], n_classes: int) -> None:
    """Refuse sums of a batch that cannot have come from rows of so many classes."""
    n_exponents = len(EXPONENTS)
    shapes: dict[str, tuple[int, ...]] = {
        "n_rows": (),
        "n_units": (),
        "n_zero_labels": (),
        "likelihood": (n_exponents,),
        "moved": (n_exponents,),
        "counts": (n_classes,),
        "predicted": (n_classes,),
        "shares": (2, n_classes),
        "witness": (2,),
        "bins": (3, N_BINS),
        "loss": (),
        "log_evidence": (),
        "log_detector": (),
    }
    for name, shape in shapes.items():
        values = _of_shape(sums, name, shape)
        if name in LOG_SUMS:
            _require(bool((values < math.inf).all()), f"{name!r} has no number")
        else:
            _require_finite(values, name)
    n_rows = _whole_number(sums, "n_rows", 1, math.inf)
    _whole_number(sums, "n_units", 0, n_rows)
    _whole_number(sums, "n_zero_labels", 0, n_rows)


def _check_alarm(state: Mapping[str, Floats], n_batches: float) -> None:
    """Refuse an alarm that is later than the batches, or an onset later than the alarm."""
    alarm = state.get("alarm", np.empty(0))
    _require(alarm.shape in ((2,), (3,)), "'alarm' has another length")
    batch = float(alarm[0])
    _require(_are_whole(alarm[:1], 0, n_batches), "'alarm' names no batch")
    _require(_are_whole(alarm[1:2], 0, batch), "'alarm' has no such onset")


def _check_normal(
    state: Mapping[str, Floats], mean: str, precision: str, shape: tuple[int, ...]
) -> None:
    """Refuse what is no mean with a symmetric precision of positive diagonal."""
    middle = _of_shape(state, mean, shape)
    matrices = _of_shape(state, precision, (*shape, shape[-1]))
    _require_finite(middle, mean)
    _require_finite(matrices, precision)
    diagonal = np.diagonal(matrices, axis1=-2, axis2=-1)
    _require(bool((diagonal > 0.0).all()), f"{precision!r} is no precision")
    gap = np.abs(matrices - matrices.swapaxes(-2, -1)).max(initial=0.0)
    close = gap <= 1e-6 * float(np.abs(matrices).max(initial=0.0))
    _require(bool(close), f"{precision!r} is no precision")


def _of_shape(
    numbers: Mapping[str, Floats], name: str, shape: tuple[int, ...]
) -> Floats:
    _require(name in numbers, f"{name!r} is missing")
    values = numbers[name]
    _require(values.shape == shape, f"{name!r} has another length")
    return values


def _number(numbers: Mapping[str, Floats], name: str) -> float:
    return float(_of_shape(numbers, name, ()))


def _whole_number(
    numbers: Mapping[str, Floats], name: str, low: float, high: float
) -> float:
    value = _number(numbers, name)
    _require(_are_whole(np.array([value]), low, high), f"{name!r} is out of range")
    return value


def _are_whole(values: Floats, low: float, high: float) -> bool:
    inside = np.isfinite(values) & (values >= low) & (values <= high)
    return bool(inside.all()) and bool((values == np.floor(values)).all())


def _is_between(value: Any, low: float, high: float) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and low < value < high


def _require_finite(values: Floats, name: str) -> None:
    _require(bool(np.isfinite(values).all()), f"{name!r} has no number")


def _require(holds: bool, found: str) -> None:
    if not holds:
        raise ValueError(found)
