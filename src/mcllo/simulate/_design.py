"""Where simulated rows come from, and labels drawn for them from the MCLLO map.

====================  ==================================================================
``dirichlet_heavy``   ``X ~ Dirichlet(3, .3, ..., .3)``: the first class is likely, the others are
                      rare; the design of the paper's study as far as it can be told
``dirichlet``         ``X ~ Dirichlet(a)``, a = `concentration`, one number or one per class
``softmax_normal``    ``X = softmax(Z)``, Z independent ``N(0, scale^2)``
a table               its rows, drawn with replacement
labels                ``Y_i ~ Categorical(g_i)``, g the map of Eq. (3)-(4) with given theta; the
                      identity makes the rows calibrated
====================  ==================================================================

Named distributions are raised to 1e-6 and divided by their sum: Dirichlet rows with small
parameters come as close to 0 as numbers can. Many tables are drawn at once, each from a stream of
its own, so that neither batches nor workers change them. The arguments of `mcllo.simulate` that
say all this (designs, effects, settings) are checked here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._fit.map import MCLLOMap
from .._inference.monte_carlo import labels_at
from .._model.kernel import predicted_probabilities
from .._utils.formatting import format_count
from .._utils.parallel import refuse_beyond
from .._utils.results import Codes, Floats
from .._utils.statements import warn
from .._validation.frames import as_numbers, did_you_mean
from .._validation.labels import Classes, check_each_named, class_names, find_class
from .._validation.predictions import Predictions, as_predictions
from .._validation.probabilities import DEFAULT_CLIP, clean_probs
from ..exceptions import InputError, ZeroProbabilityWarning, show

Streams = Sequence[np.random.Generator]

NAMES = ("dirichlet_heavy", "dirichlet", "softmax_normal")
HEAVY_CONCENTRATION = 3.0
"""Dirichlet parameter of the class that has most of the probability."""
LIGHT_CONCENTRATION = 0.3
"""Dirichlet parameter of the others."""
MAX_COUNT = 10**12
"""Of anything that is counted."""
MEMORY_FACTOR_OF_TABLE = 6.0
"""Room that drawing and fitting one table take, in sizes of the table."""


@dataclass(frozen=True, eq=False)
class Design:
    """Where rows come from.

    `draw` returns so many of them, as probabilities, or as numbers of rows of `table` where there
    is one; its labels are not used. Numbers of a study depend on `settings`, which hold how many
    rows a table has, not which.
    """

    classes: Classes
    baseline_index: int
    words: str
    settings: dict[str, Any]
    draw: Callable[[np.random.Generator, int], NDArray[Any]]
    table: Predictions | None = None

    def sample(self, theta: Floats, n_samples: int, streams: Streams) -> Predictions:
        """Return a table for each stream, one below the other: first its rows, then its labels."""
        parts = [(self.draw(stream, n_samples), stream.random(n_samples)) for stream in streams]
        rows, uniform = (np.concatenate(part) for part in zip(*parts, strict=True))
        b, table, unknown = self.baseline_index, self.table, np.zeros(len(uniform), dtype=np.intp)
        if table is None:
            probs, logits, clip = np.maximum(rows, DEFAULT_CLIP), None, None
            probs /= probs.sum(axis=1, keepdims=True)
        else:
            probs, logits, clip = table.probs[rows], table.logits, table.clip
            logits = None if logits is None else logits[rows]
        drawn = Predictions(probs, unknown, self.classes, self.classes[b], logits, clip=clip)
        order = np.append(np.delete(np.arange(len(self.classes)), b), b)
        chances = predicted_probabilities(theta, drawn.log_odds)[0]
        made = replace(drawn, codes=order[labels_at(chances.T, uniform[None])[0]])
        vars(made)["log_odds"] = drawn.log_odds  # labels change nothing in them
        return made


def table_of_sample(sample: Predictions, rows: slice = slice(None)) -> Predictions:
    """Return one of the tables of a sample, and how many probabilities had been raised in it."""
    part = sample.take(np.arange(sample.n_samples)[rows])
    n_clipped = int((part.probs <= (sample.clip or 0.0)).sum())
    return replace(part, clip=DEFAULT_CLIP if n_clipped else None, n_clipped=n_clipped)


def _dirichlet(concentration: Floats, stream: np.random.Generator, n: int) -> Floats:
    return stream.dirichlet(concentration, n)


def _softmax_normal(scale: float, n_classes: int, stream: np.random.Generator, n: int) -> Floats:
    z = stream.normal(0.0, scale, (n, n_classes))
    z = np.exp(z - z.max(axis=1, keepdims=True))
    return z / z.sum(axis=1, keepdims=True)


def _draw_rows(n_rows: int, reach: Floats | None, stream: np.random.Generator, n: int) -> Codes:
    """Return rows drawn with replacement, by their weights, which add up to `reach`."""
    if reach is None:
        return stream.integers(n_rows, size=n)
    picked = np.searchsorted(reach, stream.random(n) * reach[-1], side="right")
    return np.minimum(picked, n_rows - 1)


def named_design(name: Any, n_classes: Any, concentration: Any = None, scale: Any = None) -> Design:
    """Return the distribution of that name; None stands for parameters of 1."""
    if name not in NAMES:
        message = "distribution {name!r} is not known; {hint}"
        values = {"name": name, "hint": did_you_mean(name, NAMES, "known are")}
        raise InputError(message, argument="distribution", value=name, values=values)
    c = check_count(n_classes, "n_classes", least=2)
    check_sizes([], c)
    given = (("dirichlet", concentration, "concentration"), ("softmax_normal", scale, "scale"))
    for own, parameter, argument in given:
        if parameter is not None and name != own:
            raise InputError(f"{argument}= belongs to distribution={own!r}; got {name!r}.")
    parameters = per_class(1.0 if concentration is None else concentration, "concentration", c)
    if name == "dirichlet_heavy":
        parameters = np.append(HEAVY_CONCENTRATION, np.full(c - 1, LIGHT_CONCENTRATION))
    spread = float(per_class(1.0 if scale is None else scale, "scale", 1)[0])
    shown = [f"{a:g}" for a in parameters]
    few = shown if c < 4 else [*shown[:2], "...", shown[-1]]
    words, draw = f"Dirichlet({', '.join(few)})", partial(_dirichlet, parameters)
    if name == "softmax_normal":
        words, draw = f"softmax of N(0, {spread:g}^2)", partial(_softmax_normal, spread, c)
    settings = {"distribution": name, "n_classes": c, "concentration": parameters.tolist()}
    return Design(tuple(range(c)), c - 1, words, settings | {"scale": spread}, draw)


def table_design(probs: Any, classes: Any = None, baseline: Hashable | None = None) -> Design:
    """Return the rows of `probs` to draw from; a `Predictions` brings its classes and baseline."""
    if isinstance(probs, Predictions):
        table = as_predictions(probs, classes=classes, baseline=baseline)
    else:
        names = None if classes is None else class_names(classes)
        simplex = clean_probs(probs, columns=names)
        n, c = simplex.probs.shape
        labels = tuple(names or simplex.names or range(c))
        check_each_named(labels, c)
        n_zeros, n_clipped, clip = simplex.n_zeros, 0, simplex.clip
        if simplex.raised is not None:
            n_clipped = int(simplex.raised.sum())
            raised = f"were clipped to {clip:g}; labels are drawn from the clipped rows."
            detail = f"{n_zeros} of {n * c} probabilities were 0 and {raised}"
            counts = {"n_zeros": n_zeros, "n_entries": n * c, "clip": clip}
            message = f"probabilities of 0 {raised}"
            warn(ZeroProbabilityWarning(message, detail=detail, numbers=counts))
        column = c - 1 if baseline is None else find_class(baseline, labels, "baseline")
        unlabelled = simplex.probs, np.zeros(n, dtype=np.intp), labels, labels[column]
        table = Predictions(*unlabelled, clip=clip, n_zeros=n_zeros, n_clipped=n_clipped)
    n, weight = table.n_samples, table.sample_weight
    draw = partial(_draw_rows, n, None if weight is None else np.cumsum(weight))
    words = f"drawn from {format_count(n)} predictions"
    return Design(table.classes, table.baseline_index, words, {"rows": n}, draw, table)


def build_map(delta: Any, gamma: Any, classes: Classes, baseline: int) -> MCLLOMap:
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
            message = (
                "{argument} must not name the baseline {label!r}, to which the others are "
                "compared; choose another {baseline}."
            )
            raise InputError(message, argument=name, values={"label": baseline})
        found[place] = number
    return found


def per_class(value: Any, name: str, count: int, *, positive: bool = True) -> Floats:
    """Return one finite number, repeated, or the `count` numbers given."""
    numbers = as_numbers(np.asarray(value), name).astype(np.float64)
    if numbers.ndim > 1 or (numbers.ndim == 1 and len(numbers) != count):
        many = f" or {count} of them" if count > 1 else ""
        raise InputError(argument=name, rule=f"be one number{many}", found=show(value))
    if not np.isfinite(numbers).all() or (positive and numbers.min() <= 0.0):
        rule = "be positive and finite" if positive else "be finite"
        raise InputError(argument=name, rule=rule, value=value)
    return np.broadcast_to(numbers, (count,)).copy()


def check_count(value: Any, name: str, *, least: int = 1) -> int:
    """Return a whole number that is at least so large, and not beyond all counting."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(argument=name, rule=f"be a whole number >= {least}", value=value)
    if value > MAX_COUNT:
        raise InputError(argument=name, rule=f"be at most {MAX_COUNT:,}", value=value)
    return int(value)


def check_sizes(n_samples: Iterable[int], n_classes: int) -> None:
    """Refuse tables, and matrices of parameters, that do not fit into memory."""
    rows = max(n_samples, default=0)
    numbers = MEMORY_FACTOR_OF_TABLE * max(rows * n_classes, 4 * n_classes * n_classes)
    many = f"{format_count(rows)} rows of {format_count(n_classes)} classes take"
    words = many if rows else f"the parameters of {format_count(n_classes)} classes take"
    refuse_beyond(8.0 * numbers, words, "Use fewer.")


def sizes(value: Any, design: Design) -> tuple[int, ...]:
    """Return one number of rows, or several, each once, whose tables fit into memory."""
    many = value if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
    found = tuple(check_count(n, "n_samples") for n in many)
    _check_distinct(found, "n_samples", "distinct numbers of rows", value)
    check_sizes(found, len(design.classes))
    return found


def shifts(value: Any) -> tuple[float, ...]:
    """Return one delta_1, or several, each once."""
    numbers = np.atleast_1d(np.asarray(value))
    found = tuple(per_class(numbers, "delta_1", len(numbers)).tolist()) if numbers.size else ()
    _check_distinct(found, "delta_1", "distinct positive numbers", value)
    return found


def _check_distinct(found: tuple[float, ...], name: str, rule: str, value: Any) -> None:
    if not found or len(set(found)) < len(found):
        raise InputError(argument=name, rule=f"be {rule}", found=show(value))


def check_alpha(alpha: Any) -> float:
    """Refuse a level outside (0, 1)."""
    if not isinstance(alpha, (int, float, np.floating)) or not 0.0 < alpha < 1.0:
        raise InputError(argument="alpha", rule="lie in (0, 1)", value=alpha)
    return float(alpha)


def n_workers(n_jobs: Any) -> int:
    """Return the number of processes: None is 1, -1 is one for each processor."""
    if n_jobs is None:
        return 1
    return (os.cpu_count() or 1) if n_jobs == -1 else check_count(n_jobs, "n_jobs")
