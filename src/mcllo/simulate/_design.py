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
from .._model.kernel import probabilities_and_log_sums
from .._utils.formatting import format_count
from .._utils.parallel import refuse_beyond
from .._utils.results import Codes, Floats
from .._utils.statements import warn
from .._validation.frames import as_numbers, did_you_mean
from .._validation.labels import Classes, as_class_list, check_n_class_names, find_class
from .._validation.predictions import Predictions, as_predictions
from .._validation.probabilities import DEFAULT_CLIP, clean_probs
from ..exceptions import InputError, ZeroProbabilityWarning, show

Streams = Sequence[np.random.Generator]
Draw = Callable[[np.random.Generator, int], NDArray[Any]]

NAMES = ("dirichlet_heavy", "dirichlet", "softmax_normal")
MAX_COUNT = 10**12
"""Of anything that is counted: beyond all rows and repetitions, and exact as a float."""


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
    draw: Draw
    table: Predictions | None = None

    def sample(self, theta: Floats, n_samples: int, streams: Streams) -> Predictions:
        """Return a table for each stream, one below the other: first its rows, then its labels."""
        rows = []
        uniform = []
        # The order of a stream's draws is part of a study's numbers: first rows, then labels.
        for stream in streams:
            rows.append(self.draw(stream, n_samples))
            uniform.append(stream.random(n_samples))
        unlabelled = self._unlabelled(np.concatenate(rows))
        chances, _ = probabilities_and_log_sums(theta, unlabelled.log_odds)
        one_draw = np.concatenate(uniform)[None]
        labels = labels_at(chances.T, one_draw)[0]
        # The map has the baseline last.
        b = self.baseline_index
        others = np.delete(np.arange(len(self.classes)), b)
        column_of_label = np.append(others, b)
        return replace(unlabelled, codes=column_of_label[labels])

    def _unlabelled(self, rows: NDArray[Any]) -> Predictions:
        """Return what was drawn as predictions, each with the first class as its label."""
        logits = None
        clip = None
        if self.table is None:
            probs = np.maximum(rows, DEFAULT_CLIP)
            probs /= probs.sum(axis=1, keepdims=True)
        else:
            probs = self.table.probs[rows]
            clip = self.table.clip
            if self.table.logits is not None:
                logits = self.table.logits[rows]
        return Predictions(
            probs=probs,
            codes=np.zeros(len(rows), dtype=np.intp),
            classes=self.classes,
            baseline=self.classes[self.baseline_index],
            logits=logits,
            clip=clip,
        )


def table_of_sample(sample: Predictions, rows: slice = slice(None)) -> Predictions:
    """Return one of the tables of a sample, and how many probabilities had been raised in it."""
    table = sample.take(np.arange(sample.n_samples)[rows])
    n_clipped = int((table.probs <= (sample.clip or 0.0)).sum())
    clip = DEFAULT_CLIP if n_clipped else None
    return replace(table, clip=clip, n_clipped=n_clipped)


def _dirichlet(concentration: Floats, stream: np.random.Generator, n: int) -> Floats:
    """Return n rows of a Dirichlet distribution."""
    return stream.dirichlet(concentration, n)


def _softmax_normal(
    scale: float, n_classes: int, stream: np.random.Generator, n: int
) -> Floats:
    """Return n rows whose logits are independent normal numbers."""
    z = stream.normal(0.0, scale, (n, n_classes))
    exponentials = np.exp(z - z.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def _draw_rows(
    n_rows: int, cumulated_weight: Floats | None, stream: np.random.Generator, n: int
) -> Codes:
    """Return the numbers of n rows, drawn with replacement by their weights."""
    if cumulated_weight is None:
        return stream.integers(n_rows, size=n)
    position = stream.random(n) * cumulated_weight[-1]
    picked = np.searchsorted(cumulated_weight, position, side="right")
    return np.minimum(picked, n_rows - 1)


def named_design(
    name: Any, n_classes: Any, concentration: Any = None, scale: Any = None
) -> Design:
    """Return the distribution of that name; None stands for parameters of 1."""
    if name not in NAMES:
        message = "distribution {name!r} is not known; {hint}"
        values = {"name": name, "hint": did_you_mean(name, NAMES, "known are")}
        raise InputError(message, argument="distribution", value=name, values=values)
    c = check_count(n_classes, "n_classes", least=2)
    check_sizes([], c)
    if concentration is not None and name != "dirichlet":
        raise InputError(
            f"concentration= belongs to distribution='dirichlet'; got {name!r}."
        )
    if scale is not None and name != "softmax_normal":
        raise InputError(
            f"scale= belongs to distribution='softmax_normal'; got {name!r}."
        )
    parameters = per_class(
        1.0 if concentration is None else concentration, "concentration", c
    )
    if name == "dirichlet_heavy":
        # The paper does not say where its rows came from; these look like its figures.
        parameters = np.append(3.0, np.full(c - 1, 0.3))
    standard_deviation = float(
        per_class(1.0 if scale is None else scale, "scale", 1)[0]
    )
    if name == "softmax_normal":
        words = f"softmax of N(0, {standard_deviation:g}^2)"
        draw: Draw = partial(_softmax_normal, standard_deviation, c)
    else:
        shown = [f"{parameter:g}" for parameter in parameters]
        if c >= 4:
            shown = [*shown[:2], "...", shown[-1]]
        words = f"Dirichlet({', '.join(shown)})"
        draw = partial(_dirichlet, parameters)
    settings = {
        "distribution": name,
        "n_classes": c,
        "concentration": parameters.tolist(),
        "scale": standard_deviation,
    }
    return Design(tuple(range(c)), c - 1, words, settings, draw)


def table_design(
    probs: Any, classes: Any = None, baseline: Hashable | None = None
) -> Design:
    """Return the rows of `probs` to draw from; a `Predictions` brings its classes and baseline."""
    if isinstance(probs, Predictions):
        table = as_predictions(probs, classes=classes, baseline=baseline)
    else:
        table = _table_without_labels(probs, classes, baseline)
    n_rows = table.n_samples
    cumulated_weight = None
    if table.sample_weight is not None:
        cumulated_weight = np.cumsum(table.sample_weight)
    draw = partial(_draw_rows, n_rows, cumulated_weight)
    words = f"drawn from {format_count(n_rows)} predictions"
    return Design(
        table.classes, table.baseline_index, words, {"rows": n_rows}, draw, table
    )


def _table_without_labels(
    probs: Any, classes: Any, baseline: Hashable | None
) -> Predictions:
    """Return validated probabilities as predictions, each with the first class as its label."""
    names = None if classes is None else as_class_list(classes)
    simplex = clean_probs(probs, columns=names)
    n, c = simplex.probs.shape
    labels = tuple(names or simplex.names or range(c))
    check_n_class_names(labels, c)
    n_zeros = simplex.n_zeros
    n_clipped = 0
    if simplex.raised is not None:
        n_clipped = int(simplex.raised.sum())
        raised = (
            f"were clipped to {simplex.clip:g}; labels are drawn from the clipped rows."
        )
        detail = f"{n_zeros} of {n * c} probabilities were 0 and {raised}"
        counts = {"n_zeros": n_zeros, "n_entries": n * c, "clip": simplex.clip}
        message = f"probabilities of 0 {raised}"
        warn(ZeroProbabilityWarning(message, detail=detail, numbers=counts))
    column = c - 1 if baseline is None else find_class(baseline, labels, "baseline")
    return Predictions(
        probs=simplex.probs,
        codes=np.zeros(n, dtype=np.intp),
        classes=labels,
        baseline=labels[column],
        clip=simplex.clip,
        n_zeros=n_zeros,
        n_clipped=n_clipped,
    )


def build_map(delta: Any, gamma: Any, classes: Classes, baseline: int) -> MCLLOMap:
    """Return the map with these parameters: a number for all, one each, or by label; None is 1."""
    compared = classes[:baseline] + classes[baseline + 1 :]

    def parameters(value: Any, name: str, positive: bool) -> Floats:
        if value is None:
            value = 1.0
        elif isinstance(value, Mapping):
            value = _by_label(value, name, compared, classes[baseline])
        return per_class(value, name, len(compared), positive=positive)

    tau = np.log(parameters(delta, "delta", positive=True))
    slopes = parameters(gamma, "gamma", positive=False)
    return MCLLOMap(tau, slopes, classes, classes[baseline])


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
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, np.integer))
        or value < least
    ):
        raise InputError(
            argument=name, rule=f"be a whole number >= {least}", value=value
        )
    if value > MAX_COUNT:
        raise InputError(argument=name, rule=f"be at most {MAX_COUNT:,}", value=value)
    return int(value)


def check_sizes(n_samples: Iterable[int], n_classes: int) -> None:
    """Refuse tables, and matrices of parameters, that do not fit into memory."""
    max_rows = max(n_samples, default=0)
    n_parameters = 2 * n_classes
    numbers = max(max_rows * n_classes, n_parameters**2)
    # Drawing and fitting one table takes about six times its size.
    n_bytes = 8.0 * 6.0 * numbers
    classes = f"{format_count(n_classes)} classes take"
    if max_rows:
        words = f"{format_count(max_rows)} rows of {classes}"
    else:
        words = f"the parameters of {classes}"
    refuse_beyond(n_bytes, words, "Use fewer.")


def sizes(value: Any, design: Design) -> tuple[int, ...]:
    """Return one number of rows, or several, each once, whose tables fit into memory."""
    is_one = not isinstance(value, Iterable) or isinstance(value, str)
    numbers = tuple(
        check_count(n, "n_samples") for n in ((value,) if is_one else value)
    )
    _check_distinct(numbers, "n_samples", "distinct numbers of rows", value)
    check_sizes(numbers, len(design.classes))
    return numbers


def shifts(value: Any) -> tuple[float, ...]:
    """Return one delta_1, or several, each once."""
    given = np.atleast_1d(np.asarray(value))
    numbers: tuple[float, ...] = ()
    if given.size:
        numbers = tuple(per_class(given, "delta_1", len(given)).tolist())
    _check_distinct(numbers, "delta_1", "distinct positive numbers", value)
    return numbers


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
    if n_jobs == -1:
        return os.cpu_count() or 1
    return check_count(n_jobs, "n_jobs")
