"""Exact p-values: under H0 labels are draws from the predictions, so draw them.

Given X the null hypothesis has no unknown parameter, ``Y_i ~ Categorical(x_i)``, and labels drawn
from the predictions give the exact null distribution of any statistic or metric T, at any n:

====================  ======================================================================
p-value, B draws      ``(1 + #{T* >= T}) / (B + 1)`` (Barnard 1963)
sequential            ``h / l``, stopped at the h-th exceedance after l draws: exact as well
                      (Besag and Clifford 1991), and ends most runs early
null of a metric      mean and range over B draws: what calibrated predictions like these show
====================  ======================================================================

A draw enters the model only through its sufficient statistic. The draws are one stream of uniforms
cut into batches, and a batch can start anywhere in it (`PCG64.advance`): the answer depends on the
seed alone, not on batches or workers. One set of draws serves all metrics; binned ones take few
values, so equal ones must count as equal (`METRIC_TIE_TOL`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._model import compiled
from .._utils.parallel import one_blas_thread
from .._utils.results import Codes, Floats, Result
from .._validation.arguments import check_share
from .._validation.predictions import Predictions
from ..exceptions import InputError
from .budget import BATCH_ENTRIES, N_RESAMPLES
from .hypothesis_test import TestResult

Seed = int | np.random.Generator | None

METRIC_TIE_TOL = 1e-12
"""Metrics closer than this count as equal: they are sums of at most some millions of numbers below
1, whose rounding differs with their order."""


def seed_entropy(seed: Seed) -> int:
    """Return the integer that stands for `seed`: itself, a generator's next number, or fresh."""
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint32)[0])
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(2**63))
    is_whole = isinstance(seed, (int, np.integer)) and not isinstance(seed, bool)
    if not is_whole or seed < 0:
        message = "{argument} must be a whole number >= 0{or_a_generator}; got {value}."
        raise InputError(message, argument="seed", value=seed)
    return int(seed)


def uniform_draws(seed: int, start: int, size: int, n_samples: int) -> Floats:
    """Return draws ``start .. start + size`` of the seed's stream, shape (size, n_samples)."""
    # One number of the stream for each row of each draw: a batch can start anywhere.
    stream = np.random.PCG64(seed)
    stream.advance(start * n_samples)
    return np.random.Generator(stream).random((size, n_samples))


def draw_labels(probs: Floats, seed: int, start: int, size: int) -> Codes:
    """Return labels drawn from the predictions, shape (size, n_samples), as columns of `probs`."""
    return labels_from_uniforms(probs, uniform_draws(seed, start, size, len(probs)))


def labels_from_uniforms(probs: Floats, u: Floats) -> Codes:
    """Return the label of each row that a number in (0, 1) stands for, shape of `u`."""
    found = compiled.labels_from_uniforms(probs.T, u)
    if found is not None:
        return found
    edges = np.cumsum(probs.T, axis=0)[
        :-1
    ]  # of rounding, a sum may stay below 1: no last edge
    if (
        len(edges) > 64
    ):  # many comparisons a label: a binary search in each row is faster
        columns = [
            np.searchsorted(row, own) for row, own in zip(edges.T, u.T, strict=True)
        ]
        return np.stack(columns, axis=1)
    labels = np.zeros(u.shape, dtype=np.uint8)
    for edge in edges:
        labels += u > edge
    return labels.astype(np.intp)


def class_counts_and_sums(labels: Codes, values: Floats) -> tuple[Floats, Floats]:
    """Return, for each class, the rows that drew it and their sums of `values` (c, n): (B, c)."""
    found = compiled.count_and_sum_by_label(labels, values)
    if found is not None:
        return found
    size, n = labels.shape
    c = len(values)
    cells = (
        labels + c * np.arange(size)[:, None]
    ).ravel()  # a class of a draw is a cell
    value_of_label = values[labels, np.arange(n)].ravel()
    counts = np.bincount(cells, minlength=size * c).astype(np.float64)
    sums = np.bincount(cells, value_of_label, size * c).astype(np.float64, copy=False)
    return counts.reshape(size, c), sums.reshape(size, c)


class SufficientStatisticDraws:
    """Sufficient statistics of labels drawn under H0, in batches of the seed's stream."""

    def __init__(self, predictions: Predictions, seed: int) -> None:
        rows = expand_weights(predictions)
        baseline = predictions.baseline_index
        self.probs = rows.probs
        self.seed = seed
        self.columns = np.arange(predictions.n_classes)
        self._log_odds = rows.log_odds
        if predictions.offered is None:  # of choice sets every position has log odds
            self.columns = np.delete(self.columns, baseline)
            self._log_odds = np.insert(rows.log_odds, baseline, 0.0, axis=0)

    def __call__(self, start: int, size: int) -> Floats:
        """Return draws ``start .. start + size``: class counts and log odds sums, (size, 2K)."""
        labels = draw_labels(self.probs, self.seed, start, size)
        counts, sums = class_counts_and_sums(labels, self._log_odds)
        return np.hstack([counts[:, self.columns], sums[:, self.columns]])

    @property
    def batch(self) -> int:
        """Draws that fit comfortably in memory at once."""
        return max(1, min(512, BATCH_ENTRIES // len(self.probs)))


def expand_weights(predictions: Predictions) -> Predictions:
    """Return each row as often as its weight says; labels of a fraction cannot be drawn."""
    if not predictions.has_whole_weights:
        predictions.facts.refuse_dependence()
    return predictions.expand_weights()


@one_blas_thread()
def monte_carlo_pvalue(
    exceeds: Callable[[int, int], NDArray[np.bool_]],
    *,
    n_resamples: int,
    batch: int,
    seed: int,
    stop_at: int | None = None,
    guess: float | None = None,
) -> TestResult:
    """Return the exact p-value of ``exceeds(start, size)``, a mask of draws as extreme as observed.

    A run stops at `stop_at` exceedances, if given. `guess`, about what the p-value will be, says
    how many draws to begin with and changes no answer. The statistic is for the caller to fill in.
    """
    check_n_resamples(n_resamples)
    done = 0
    n_exceed = 0
    while done < n_resamples:
        size = min(batch, n_resamples - done)
        if stop_at is not None:
            size = min(size, _draws_needed(stop_at, n_exceed, done, guess))
        hits = exceeds(done, size)
        if stop_at is not None and n_exceed + hits.sum() >= stop_at:
            # The run ends at that very draw, wherever it lies in the batch.
            place_of_last = int(np.flatnonzero(hits)[stop_at - n_exceed - 1])
            done += place_of_last + 1
            return TestResult(math.nan, None, stop_at / done, "exact", done, seed)
        n_exceed += int(hits.sum())
        done += size
    pvalue = (1 + n_exceed) / (done + 1)
    return TestResult(math.nan, None, pvalue, "exact", done, seed)


def _draws_needed(stop_at: int, n_exceed: int, done: int, guess: float | None) -> int:
    """Return about as many draws as a sequential run still wants, so that few are made in vain.

    The factors 1.1 and 1.2 are room for chance; batches of fewer than 16 draws cost more than they
    save.
    """
    if done > 0:
        draws_per_exceedance = (done + 1) / (n_exceed + 1)
        likely = 1.1 * (stop_at - n_exceed) * draws_per_exceedance
    elif guess is None:
        likely = 64.0
    else:
        likely = 1.2 * stop_at / max(guess, 1e-3)
    return max(16, int(likely))


def check_n_resamples(n_resamples: Any) -> None:
    """Refuse anything but a positive whole number of draws."""
    whole = isinstance(n_resamples, (int, np.integer)) and not isinstance(
        n_resamples, bool
    )
    if not whole or n_resamples < 1:
        rule = "be at least 1" if whole else "be a whole number"
        message = f"{{argument}} must {rule}; got {{value}}."
        raise InputError(message, argument="n_resamples", value=n_resamples)


class LabelStatistic(Protocol):
    """A statistic of fixed predictions, as a function of labels of shape (n_draws, n_samples)."""

    def of_labels(self, labels: NDArray[np.intp]) -> Floats:
        """Return one number per row of `labels`."""
        ...


@dataclass(frozen=True, eq=False)
class MetricNull(Result):
    """A metric beside what calibrated predictions of the same values would show.

    `observed` is that of the labels at hand; `mean`, and `low` to `high` with probability `level`,
    are those of `n_resamples` draws from the predictions, made from `seed`. The p-value is exact
    and never 0. `critical` is what the metric exceeds exactly where ``pvalue <= 1 - level``;
    infinite where so few draws show no such p-value.
    """

    observed: float
    mean: float
    low: float
    high: float
    level: float
    pvalue: float
    n_resamples: int
    seed: int
    critical: float = float("inf")
    left_out = ("critical",)

    @classmethod
    def from_draws(
        cls, observed: float, drawn: Floats, level: float, seed: int
    ) -> MetricNull:
        """Return what draws of the metric say of the observed one."""
        low, high = np.quantile(drawn, [0.5 - level / 2.0, 0.5 + level / 2.0]).tolist()
        n_exceed = (drawn >= observed - METRIC_TIE_TOL).sum()
        return cls(
            observed=observed,
            mean=float(drawn.mean()),
            low=low,
            high=high,
            level=level,
            pvalue=float((1 + n_exceed) / (len(drawn) + 1)),
            n_resamples=len(drawn),
            seed=seed,
            critical=critical_value(drawn, level),
        )


def metric_nulls(
    predictions: Predictions,
    metrics: Mapping[str, Callable[[Predictions], LabelStatistic]],
    *,
    n_resamples: int = N_RESAMPLES,
    level: float = 0.95,
    seed: Seed = 0,
    batch: int | None = None,
) -> dict[str, MetricNull]:
    """Return the exact null of each metric, such as ``{"ece": TopLabelECE}``; any `batch` alike."""
    check_n_resamples(n_resamples)
    check_share("level", level)
    entropy = seed_entropy(seed)
    rows = expand_weights(predictions)
    statistics = {name: build(rows) for name, build in metrics.items()}
    draws = {name: np.empty(n_resamples) for name in metrics}
    batch = batch or max(1, BATCH_ENTRIES // rows.n_samples)
    for start in range(0, n_resamples, batch):
        size = min(batch, n_resamples - start)
        labels = draw_labels(rows.probs, entropy, start, size)
        for name, statistic in statistics.items():
            draws[name][start : start + size] = statistic.of_labels(labels)
    nulls = {}
    for name, statistic in statistics.items():
        observed = float(statistic.of_labels(rows.codes[None])[0])
        nulls[name] = MetricNull.from_draws(observed, draws[name], level, entropy)
    return nulls


def critical_value(drawn: Floats, level: float) -> float:
    """Return what a statistic exceeds exactly where its p-value is at most ``1 - level``.

    Examples
    --------
    >>> critical_value(np.arange(1.0, 20.0), 0.95), critical_value(np.arange(1.0, 19.0), 0.95)
    (19.0, inf)
    """
    # p = (1 + k) / (B + 1) <= 1 - level: at most so many draws may be as large; 1e-9 for rounding.
    n_as_large = math.floor((1.0 - level) * (len(drawn) + 1) + 1e-9) - 1
    if n_as_large < 0:
        return math.inf
    place = len(drawn) - 1 - n_as_large
    return float(np.partition(drawn, place)[place])
