"""What a metric would show if the predictions were perfectly calibrated.

Given the predictions, calibration leaves nothing unknown: ``Y_i ~ Categorical(x_i)``. Labels drawn
from the predictions therefore give the exact null distribution of any metric, at any n:

=============  ==============================================================================
mean, range    of the metric over B draws: what calibrated predictions like these show
p-value        ``(1 + #{T* >= T}) / (B + 1)``
=============  ==============================================================================

Binned metrics take few values, so equal ones must count as equal: T* >= T is asked with a tolerance
of 1e-12. One set of draws serves all metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ._monte_carlo import (
    BATCH_CELLS,
    Seed,
    check_resamples,
    draw_labels,
    entropy_of,
    whole_weights,
)
from ._predictions import Predictions
from .exceptions import InputError

Floats = NDArray[np.float64]

TIE = 1e-12


class LabelStatistic(Protocol):
    """A statistic of fixed predictions, as a function of labels of shape (n_draws, n_samples)."""

    def of_labels(self, labels: NDArray[np.intp]) -> Floats:
        """Return one number per row of `labels`."""
        ...


@dataclass(frozen=True, eq=False)
class MetricNull:
    """A metric beside what calibrated predictions of the same values would show.

    Attributes
    ----------
    observed : float
        The metric for the labels at hand.
    mean, low, high : float
        Mean and central range of the metric when labels are drawn from the predictions.
    level : float
        Probability of the range.
    pvalue : float
        Exact; never 0.
    n_resamples, seed : int
        Draws made, and what they were made from.
    """

    observed: float
    mean: float
    low: float
    high: float
    level: float
    pvalue: float
    n_resamples: int
    seed: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        return asdict(self)


def metric_nulls(
    predictions: Predictions,
    metrics: Mapping[str, Callable[[Predictions], LabelStatistic]],
    *,
    n_resamples: int = 1999,
    level: float = 0.95,
    seed: Seed = 0,
) -> dict[str, MetricNull]:
    """Return the exact null of each metric, such as ``{"ece": TopLabelECE}``.

    Raises
    ------
    InputError
        For weights that are not whole numbers: labels of a fraction of a row cannot be drawn.
    """
    check_resamples(n_resamples)
    if not 0.0 < level < 1.0:
        raise InputError(f"level must lie in (0, 1); got level={level}.")
    entropy, rows = entropy_of(seed), written_out(predictions)
    statistics = {name: build(rows) for name, build in metrics.items()}
    draws = {name: np.empty(n_resamples) for name in metrics}
    batch = max(1, BATCH_CELLS // rows.n_samples)
    for start in range(0, n_resamples, batch):
        size = min(batch, n_resamples - start)
        labels = draw_labels(rows.probs, entropy, start, size)
        for name, statistic in statistics.items():
            draws[name][start : start + size] = statistic.of_labels(labels)
    return {
        name: _summary(float(statistic.of_labels(rows.codes[None])[0]), draws[name], level, entropy)
        for name, statistic in statistics.items()
    }


def written_out(predictions: Predictions) -> Predictions:
    """Return the predictions with each row repeated as often as its weight says."""
    repeat = whole_weights(predictions)
    if repeat is None:
        return predictions
    rows = np.repeat(np.arange(predictions.n_samples), repeat)
    return replace(predictions.take(rows), sample_weight=None)


def _summary(observed: float, draws: Floats, level: float, seed: int) -> MetricNull:
    low, high = np.quantile(draws, [0.5 - level / 2.0, 0.5 + level / 2.0])
    n_exceed = int((draws >= observed - TIE).sum())
    return MetricNull(
        observed=observed,
        mean=float(draws.mean()),
        low=float(low),
        high=float(high),
        level=level,
        pvalue=(1 + n_exceed) / (len(draws) + 1),
        n_resamples=len(draws),
        seed=seed,
    )
