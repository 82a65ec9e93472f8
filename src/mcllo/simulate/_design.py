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
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._fit.map import MCLLOMap
from .._ground.memory import refuse_beyond
from .._ground.results import Codes, Floats
from .._ground.statements import warn
from .._ground.text import format_count
from .._input.frames import as_numbers, did_you_mean
from .._input.labels import Classes, check_each_named, class_names, find_class
from .._input.predictions import Predictions, as_predictions
from .._input.probabilities import clean_probs
from .._input.zeros import DEFAULT_CLIP
from .._math.likelihood import log_odds_from_logs, softmax_against_zero
from ..exceptions import InputError, Option, Phrase, ZeroProbabilityWarning, show

Streams = Sequence[np.random.Generator]

NAMES = ("dirichlet_heavy", "dirichlet", "softmax_normal")
HEAVY, LIGHT = 3.0, 0.3
MOST = 10**12
"""Of anything that is counted."""
COPIES = 6.0
"""Room that drawing and fitting one table take, in sizes of the table."""


@dataclass(frozen=True, eq=False)
class Sample:
    """B simulated tables of n rows.

    Predictions `by_class` (c, B, n), classes in column order; `log_odds` (K, B, n) against the
    baseline, without it; `codes` (B, n), the columns that came true; `n_clipped` (B,), how many
    probabilities the zero rule had raised; `logits` (B, n, c) where the rows came with them.
    """

    by_class: Floats
    log_odds: Floats
    codes: Codes
    n_clipped: Codes
    classes: Classes
    baseline_index: int
    logits: Floats | None = None

    @property
    def model_codes(self) -> Codes:
        """Labels as rows of `log_odds`; K stands for the baseline."""
        return np.argsort(model_order(len(self.classes), self.baseline_index))[self.codes]

    def predictions(self, table: int) -> Predictions:
        """Return one of the tables."""
        return Predictions(
            probs=np.ascontiguousarray(self.by_class[:, table].T),
            codes=self.codes[table],
            classes=self.classes,
            baseline=self.classes[self.baseline_index],
            logits=None if self.logits is None else self.logits[table],
            clip=DEFAULT_CLIP if self.n_clipped[table] else None,
            n_clipped=int(self.n_clipped[table]),
        )


@dataclass(frozen=True, eq=False)
class Named:
    """A named distribution; the last class is the baseline."""

    name: str
    n_classes: int
    concentration: Floats
    scale: float

    @property
    def classes(self) -> Classes:
        """Labels 0 .. c-1."""
        return tuple(range(self.n_classes))

    @property
    def baseline_index(self) -> int:
        """The last column."""
        return self.n_classes - 1

    @property
    def words(self) -> str:
        """The distribution's formula."""
        if self.name == "softmax_normal":
            return f"softmax of N(0, {self.scale:g}^2)"
        shown = [f"{a:g}" for a in self.concentration]
        few = shown if len(shown) < 4 else [*shown[:2], "...", shown[-1]]
        return f"Dirichlet({', '.join(few)})"

    @property
    def settings(self) -> dict[str, Any]:
        """Name and parameters."""
        return {
            "distribution": self.name,
            "n_classes": self.n_classes,
            "concentration": self.concentration.tolist(),
            "scale": self.scale,
        }

    def sample(self, theta: Floats, n_samples: int, streams: Streams) -> Sample:
        """Return a table for each stream: first its rows, then its labels."""
        by_class = np.empty((self.n_classes, len(streams), n_samples))
        uniform = np.empty(by_class.shape[1:])
        for b, stream in enumerate(streams):
            by_class[:, b] = self._rows(stream, n_samples).T
            uniform[b] = stream.random(n_samples)
        np.maximum(by_class, DEFAULT_CLIP, out=by_class)
        by_class /= by_class.sum(axis=0)
        log_odds = log_odds_from_logs(np.log(by_class), self.baseline_index)
        tau, gamma = np.split(theta, 2)
        if (gamma == 1.0).all():
            codes = draw_tilted(tau, by_class, uniform)
        else:
            codes = draw_codes(theta, log_odds, uniform)
        none = np.zeros(len(streams), dtype=np.intp)
        return Sample(by_class, log_odds, codes, none, self.classes, self.baseline_index)

    def _rows(self, stream: np.random.Generator, n_samples: int) -> Floats:
        if self.name != "softmax_normal":
            return stream.dirichlet(self.concentration, n_samples)
        z = stream.normal(0.0, self.scale, (n_samples, self.n_classes))
        z = np.exp(z - z.max(axis=1, keepdims=True))
        return z / z.sum(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class Resampled:
    """Rows of a table, drawn with replacement (by their weights); its labels are not used."""

    table: Predictions

    @property
    def classes(self) -> Classes:
        """The table's."""
        return self.table.classes

    @property
    def baseline_index(self) -> int:
        """The table's."""
        return self.table.baseline_index

    @property
    def words(self) -> str:
        """How many rows there are to draw from."""
        return f"drawn from {format_count(self.table.n_samples)} predictions"

    @property
    def settings(self) -> dict[str, Any]:
        """How many rows there are; not which."""
        return {"rows": self.table.n_samples}

    def sample(self, theta: Floats, n_samples: int, streams: Streams) -> Sample:
        """Return a table for each stream: first its rows, then its labels."""
        picked = np.empty((len(streams), n_samples), dtype=np.intp)
        uniform = np.empty(picked.shape)
        table = self.table
        reach = None if table.sample_weight is None else np.cumsum(table.sample_weight)
        for b, stream in enumerate(streams):
            if reach is None:
                picked[b] = stream.integers(table.n_samples, size=n_samples)
            else:
                place = stream.random(n_samples) * reach[-1]
                picked[b] = np.searchsorted(reach, place, side="right")
            uniform[b] = stream.random(n_samples)
        np.minimum(picked, table.n_samples - 1, out=picked)
        log_odds = np.take(table.log_odds, picked, axis=1)
        by_class = np.take(table.probs.T, picked, axis=1)
        order = model_order(len(self.classes), self.baseline_index)
        return Sample(
            by_class=by_class,
            log_odds=log_odds,
            codes=order[draw_codes(theta, log_odds, uniform)],
            n_clipped=(by_class <= (table.clip or 0.0)).sum(axis=(0, 2)),
            classes=self.classes,
            baseline_index=self.baseline_index,
            logits=None if table.logits is None else table.logits[picked],
        )


Design = Named | Resampled


def model_order(n_classes: int, baseline: int) -> Codes:
    """Return the column of each row of the model: the baseline's comes last."""
    columns = np.arange(n_classes)
    return np.append(np.delete(columns, baseline), baseline)


def draw_codes(theta: Floats, log_odds: Floats, uniform: Floats) -> Codes:
    """Return labels drawn from the map, as rows of `log_odds`; K stands for the baseline."""
    odds = log_odds.reshape(len(log_odds), -1)
    below = np.empty_like(odds)
    softmax_against_zero(theta, odds, out=below)
    np.cumsum(below, axis=0, out=below)
    codes = np.add.reduce(uniform.ravel() > below, axis=0, dtype=np.intp)
    return codes.reshape(uniform.shape)


def draw_tilted(tau: Floats, by_class: Floats, uniform: Floats) -> Codes:
    """Return the same for gamma = 1, where ``g_j`` is in proportion to ``delta_j x_j``."""
    below = by_class[:-1] * np.exp(tau)[:, None, None]
    np.cumsum(below, axis=0, out=below)
    reach = uniform * (below[-1] + by_class[-1])
    return np.add.reduce(reach > below, axis=0, dtype=np.intp)


def named_design(name: Any, n_classes: Any, concentration: Any = None, scale: Any = None) -> Named:
    """Return the distribution of that name; None stands for parameters of 1."""
    if name not in NAMES:
        hint = did_you_mean(name, NAMES, "known are")
        raise InputError(
            f"distribution {name!r} is not known; {hint}", argument="distribution", value=name
        )
    c = whole(n_classes, "n_classes", least=2)
    check_sizes([], c)
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
    check_each_named(labels, c)
    if simplex.raised is not None:
        raised = f"were raised to {simplex.clip:g}; labels are drawn from the raised rows."
        whole = f"{simplex.n_zeros} of {simplex.probs.size} probabilities were 0 and {raised}"
        counts = {"n_zeros": simplex.n_zeros, "n_entries": simplex.probs.size}
        message = f"probabilities of 0 {raised}"
        warn(ZeroProbabilityWarning(message, detail=whole, numbers=counts | {"clip": simplex.clip}))
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
                Phrase(
                    "{argument} must not name the baseline {!r}, to which the others are compared; "
                    "choose another {}.",
                    baseline,
                    Option("baseline"),
                ),
                argument=name,
            )
        found[place] = number
    return found


def per_class(value: Any, name: str, count: int, *, positive: bool = True) -> Floats:
    """Return one finite number, repeated, or the `count` numbers given."""
    numbers = as_numbers(np.asarray(value), name).astype(np.float64)
    if numbers.ndim > 1 or (numbers.ndim == 1 and len(numbers) != count):
        many = f" or {count} of them" if count > 1 else ""
        found = Phrase("{}", show(value))
        raise InputError(argument=name, rule=f"be one number{many}", value=found)
    if not np.isfinite(numbers).all() or (positive and numbers.min() <= 0.0):
        rule = "be positive and finite" if positive else "be finite"
        raise InputError(argument=name, rule=rule, value=value)
    return np.broadcast_to(numbers, (count,)).copy()


def whole(value: Any, name: str, *, least: int = 1) -> int:
    """Return a whole number that is at least so large, and not beyond all counting."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(argument=name, rule=f"be a whole number >= {least}", value=value)
    if value > MOST:
        raise InputError(argument=name, rule=f"be at most {MOST:,}", value=value)
    return int(value)


def check_sizes(n_samples: Iterable[int], n_classes: int) -> None:
    """Refuse tables, and matrices of parameters, that do not fit into memory."""
    rows = max(n_samples, default=0)
    numbers = COPIES * max(rows * n_classes, 4 * n_classes * n_classes)
    many = f"{format_count(rows)} rows of {format_count(n_classes)} classes take"
    words = many if rows else f"the parameters of {format_count(n_classes)} classes take"
    refuse_beyond(8.0 * numbers, words, "Use fewer.")


def sizes(value: Any) -> tuple[int, ...]:
    """Return one number of rows, or several, each once."""
    many = value if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
    found = tuple(whole(n, "n_samples") for n in many)
    if not found or len(set(found)) < len(found):
        raise _not_distinct("n_samples", "distinct numbers of rows", value)
    return found


def shifts(value: Any) -> tuple[float, ...]:
    """Return one delta_1, or several, each once."""
    numbers = np.atleast_1d(np.asarray(value))
    found = tuple(per_class(numbers, "delta_1", len(numbers)).tolist()) if numbers.size else ()
    if not found or len(set(found)) < len(found):
        raise _not_distinct("delta_1", "distinct positive numbers", value)
    return found


def _not_distinct(name: str, rule: str, value: Any) -> InputError:
    return InputError(argument=name, rule=f"be {rule}", value=Phrase("{}", show(value)))


def check_alpha(alpha: Any) -> float:
    """Refuse a level outside (0, 1)."""
    if not isinstance(alpha, (int, float, np.floating)) or not 0.0 < alpha < 1.0:
        raise InputError(argument="alpha", rule="lie in (0, 1)", value=alpha)
    return float(alpha)


def n_workers(n_jobs: Any) -> int:
    """Return the number of processes: None is 1, -1 is one for each processor."""
    if n_jobs is None:
        return 1
    return (os.cpu_count() or 1) if n_jobs == -1 else whole(n_jobs, "n_jobs")
