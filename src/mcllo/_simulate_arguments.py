"""The arguments of `mcllo.simulate`: designs, effects, settings; each refused in a sentence."""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._design import HEAVY, LIGHT, NAMES, Named, Resampled
from ._frames import as_numbers, did_you_mean, show
from ._labels import Classes, class_names, find_class
from ._map import MCLLOMap
from ._predictions import Predictions, as_predictions
from ._probabilities import clean_probs
from .exceptions import InputError, ZeroProbabilityWarning

Floats = NDArray[np.float64]


def named_design(name: Any, n_classes: Any, concentration: Any = None, scale: Any = None) -> Named:
    """Return the distribution of that name; None stands for parameters of 1."""
    if name not in NAMES:
        hint = did_you_mean(name, NAMES).replace("it has", "known are")
        raise InputError(f"distribution {name!r} is not known; {hint}")
    c = whole(n_classes, "n_classes", least=2)
    for own, given, argument in (
        ("dirichlet", concentration, "concentration"),
        ("softmax_normal", scale, "scale"),
    ):
        if given is not None and name != own:
            raise InputError(f"{argument}= belongs to distribution={own!r}; got {name!r}.")
    parameters = per_class(1.0 if concentration is None else concentration, "concentration", c)
    if name == "dirichlet_heavy":
        parameters = np.append(HEAVY, np.full(c - 1, LIGHT))
    return Named(
        name, c, parameters, float(per_class(1.0 if scale is None else scale, "scale", 1)[0])
    )


def table_design(probs: Any, classes: Any = None, baseline: Hashable | None = None) -> Resampled:
    """Return the rows of `probs` to draw from; a `Predictions` brings its classes and baseline."""
    if isinstance(probs, Predictions):
        return Resampled(as_predictions(probs, classes=classes, baseline=baseline))
    names = None if classes is None else class_names(classes)
    simplex = clean_probs(probs, columns=names)
    n, c = simplex.probs.shape
    labels = tuple(names or simplex.names or range(c))
    if len(labels) != c:
        raise InputError(f"classes must name each of the {c} columns; got {len(labels)} names.")
    if simplex.raised is not None:
        warnings.warn(
            f"{simplex.n_zeros} of {simplex.probs.size} probabilities were 0 and were raised to "
            f"{simplex.clip:g}; labels are drawn from the raised rows.",
            ZeroProbabilityWarning,
            stacklevel=3,
        )
    table = Predictions(
        probs=simplex.probs,
        codes=np.zeros(n, dtype=np.intp),
        classes=labels,
        baseline=labels[c - 1 if baseline is None else find_class(baseline, labels, "baseline")],
        clip=simplex.clip,
        n_zeros=simplex.n_zeros,
        n_clipped=0 if simplex.raised is None else int(simplex.raised.sum()),
    )
    return Resampled(table)


def map_of(delta: Any, gamma: Any, classes: Classes, baseline: int) -> MCLLOMap:
    """Return the map with these parameters: a number for all, one each, or by label; None is 1."""
    compared = classes[:baseline] + classes[baseline + 1 :]
    both = []
    for name, value in (("delta", delta), ("gamma", gamma)):
        if isinstance(value, Mapping):
            value = _by_label(value, name, compared, classes[baseline])
        value = 1.0 if value is None else value
        both.append(per_class(value, name, len(compared), positive=name == "delta"))
    return MCLLOMap(np.log(both[0]), both[1], classes, classes[baseline])


def _by_label(
    value: Mapping[Hashable, Any], name: str, compared: Classes, baseline: Hashable
) -> list[Any]:
    """Return one number for each class; 1 where the mapping has none."""
    found: list[Any] = [1.0] * len(compared)
    for label, number in value.items():
        place = find_class(label, (*compared, baseline), f"a label of {name}")
        if place == len(compared):
            raise InputError(
                f"{name} must not name the baseline {baseline!r}, to which the others are "
                "compared; choose another baseline=."
            )
        found[place] = number
    return found


def per_class(value: Any, name: str, count: int, *, positive: bool = True) -> Floats:
    """Return one finite number, repeated, or the `count` numbers given."""
    numbers = as_numbers(np.asarray(value), name).astype(np.float64)
    if numbers.ndim > 1 or (numbers.ndim == 1 and len(numbers) != count):
        many = f" or {count} of them" if count > 1 else ""
        raise InputError(f"{name} must be one number{many}; got {show(value)}.")
    if not np.isfinite(numbers).all() or (positive and numbers.min() <= 0.0):
        rule = "positive and finite" if positive else "finite"
        raise InputError(f"{name} must be {rule}; got {name}={show(value)}.")
    return np.broadcast_to(numbers, (count,)).copy()


def whole(value: Any, name: str, *, least: int = 1) -> int:
    """Return a whole number that is at least so large."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{name} must be a whole number >= {least}; got {name}={show(value)}.")
    return int(value)


def sizes(value: Any) -> tuple[int, ...]:
    """Return one number of rows, or several, each once."""
    many = value if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
    found = tuple(whole(n, "n_samples") for n in many)
    if not found or len(set(found)) < len(found):
        raise InputError(f"n_samples must be distinct numbers of rows; got {show(value)}.")
    return found


def shifts(value: Any) -> tuple[float, ...]:
    """Return one delta_1, or several, each once."""
    numbers = np.atleast_1d(np.asarray(value))
    found = tuple(per_class(numbers, "delta_1", len(numbers)).tolist()) if numbers.size else ()
    if not found or len(set(found)) < len(found):
        raise InputError(f"delta_1 must be distinct positive numbers; got {show(value)}.")
    return found


def check_alpha(alpha: Any) -> float:
    """Refuse a level outside (0, 1)."""
    if not isinstance(alpha, (int, float, np.floating)) or not 0.0 < alpha < 1.0:
        raise InputError(f"alpha must lie in (0, 1); got alpha={show(alpha)}.")
    return float(alpha)


def n_workers(n_jobs: Any) -> int:
    """Return the number of processes: None is 1, -1 is one for each processor."""
    if n_jobs is None:
        return 1
    return (os.cpu_count() or 1) if n_jobs == -1 else whole(n_jobs, "n_jobs")
