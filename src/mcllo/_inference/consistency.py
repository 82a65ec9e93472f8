"""`isotonic_curve`: reliability by isotonic regression, beside what calibrated predictions show.

The curve and its parts are those of `metrics/_isotonic`. Under calibration the labels are draws
from the predictions, so labels are drawn, and the regression is repeated for each of B draws:

=================  =========================================================================
band at a value    from the k-th smallest to the k-th largest of the B curves there,
                   ``k = floor((B + 1) (1 - level) / 2)``; where k is 0, all of [0, 1]
outside            probability at most ``1 - level`` at each value if the predictions are right:
                   the curve of the labels at hand is one more draw
null               what the miscalibration (Brier) of the B draws is, with an exact p-value
=================  =========================================================================

The band holds value by value, as the boxes of bins do. Its values are chosen without looking at the
labels: all of them, or `MAX_BAND_POINTS` spread evenly over the rows and over the range.

Rows that count several times are as many rows; weights that are not whole numbers have no band.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._utils.formatting import Table
from .._utils.notebook import NotebookResult
from .._utils.results import Codes, Floats, Result
from .._validation.arguments import check_share
from .._validation.predictions import predictions_for_scoring
from .._validation.weights import count_row_repeats
from ..metrics._isotonic import PooledPredictions, isotonic_fit, pool_equal_predictions
from ..metrics._scores import ScoreDecomposition
from .budget import (
    BATCH_ENTRIES,
    CONSISTENCY_WORK,
    MIN_DRAWS,
    N_RESAMPLES_SINGLE,
)
from .monte_carlo import (
    MetricNull,
    Seed,
    check_n_resamples,
    seed_entropy,
    uniform_draws,
)

MAX_BAND_POINTS = 200  # values at which the band is given: more than a figure shows


@dataclass(frozen=True, eq=False, repr=False)
class IsotonicCurve(Result, NotebookResult):
    """Observed against predicted frequency, the best curve that never falls.

    Attributes
    ----------
    label : label or None
        The class; None for the most probable class of each row.
    predicted, observed : ndarray of shape (m,)
        Predictions, ascending, and the curve there.
    band_low, band_high, level : ndarray of shape (m,), float
        Where the curve lies with probability `level` or more, value by value, if the predictions
        are right; NaN when weights are not whole numbers.
    blocks : Table
        The whole curve: ``from`` and ``to`` which prediction (straight lines between blocks), the
        rows or weight in ``counts``, and their frequency of hits, ``observed``.
    brier, log_loss : ScoreDecomposition
        Miscalibration, discrimination and uncertainty of this class's (or label's) score.
    null : MetricNull or None
        The Brier score's miscalibration beside that of calibrated predictions of the same values.
    n_resamples, seed : int
        Draws behind the band, and what they were made from.

    See Also
    --------
    isotonic_curve : Makes it.
    ReliabilityCurve : In bins.
    SmoothCurve : A smooth curve with a confidence band.

    Notes
    -----
    The curve and the decomposition are those of [1]_.

    References
    ----------
    .. [1] T. Dimitriadis, T. Gneiting, A. I. Jordan (2021). Stable reliability diagrams for
           probabilistic classifiers. Proceedings of the National Academy of Sciences 118 (8).

    Examples
    --------
    >>> import mcllo
    >>> probs = [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]] * 10
    >>> y = [0, 1, 1, 0, 0, 0, 1, 1] * 5
    >>> curve = mcllo.isotonic_curve(probs, y, label=1, seed=0, n_resamples=199)
    >>> len(curve.blocks), bool((curve.observed[1:] >= curve.observed[:-1]).all())
    (3, True)
    """

    label: Hashable | None
    predicted: Floats
    observed: Floats
    band_low: Floats
    band_high: Floats
    level: float
    blocks: Table
    brier: ScoreDecomposition
    log_loss: ScoreDecomposition
    null: MetricNull | None
    n_resamples: int
    seed: int

    @property
    def outside(self) -> NDArray[np.bool_]:
        """Values at which the curve lies outside the band."""
        is_below = self.observed < self.band_low - 1e-12  # 1e-12: but for rounding
        is_above = self.observed > self.band_high + 1e-12
        return np.asarray(is_below | is_above)

    def at(self, predicted: Any) -> Floats:
        """Return the curve at other predictions: straight lines, flat beyond the first and last.

        Parameters
        ----------
        predicted : array-like
            Probabilities.

        Returns
        -------
        ndarray
            Frequencies, one for each.
        """
        first = self.blocks["from"]
        last = self.blocks["to"]
        ends = np.column_stack([first, last]).ravel()
        levels = np.repeat(self.blocks["observed"], 2)
        predicted = np.asarray(predicted, dtype=np.float64)
        return np.interp(predicted, ends, levels)

    def to_table(self) -> Table:
        """Return one row for each value of the band."""
        names = ("predicted", "observed", "band_low", "band_high")
        return Table({name: getattr(self, name).tolist() for name in names})

    def __repr__(self) -> str:
        of = "most probable class" if self.label is None else repr(self.label)
        return f"<IsotonicCurve of {of}: {len(self.blocks)} blocks>"


def isotonic_curve(
    probs: Any,
    y: Any = None,
    *,
    label: Hashable | None = None,
    level: float = 0.95,
    n_resamples: int | None = None,
    seed: Seed = None,
    classes: Any = None,
    sample_weight: Any = None,
) -> IsotonicCurve:
    """Return the isotonic reliability curve of the most probable class, or of one class.

    No bins are chosen: neighbouring predictions are pooled where their labels are out of order, and
    nowhere else.

    Parameters
    ----------
    probs : array-like, frame or Predictions
        Predicted probabilities, shape (n_samples, n_classes).
    y : array-like of shape (n_samples,)
        The labels that came true; not given beside a `Predictions`.
    label : label, optional
        The class. Default: the most probable class of each row (of ties, the first).
    level : float
        Probability of the band, value by value.
    n_resamples : int, optional
        Draws of labels behind the band. Default: 999, fewer above 20,000 rows, at least 199.
    seed : int or numpy Generator, optional
        Makes draws repeatable.
    classes : sequence, optional
        The label of each column; see `Predictions.from_arrays`.
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.

    Returns
    -------
    IsotonicCurve
        `predicted`, `observed`, the band, `blocks`, and the decomposed scores; ``print`` it.

    See Also
    --------
    reliability_curve : In bins.
    smooth_curve : A smooth curve with a confidence band.
    mcllo.metrics.decompose_isotonic : The decomposition as a metric.
    mcllo.plot.reliability : Draws it.

    Notes
    -----
    The curve is the CORP reliability diagram of [1]_. The band shows where the curve of calibrated
    predictions lies, the consistency resampling of [2]_ with labels drawn from the predictions and
    rows kept.

    References
    ----------
    .. [1] T. Dimitriadis, T. Gneiting, A. I. Jordan (2021). Stable reliability diagrams for
           probabilistic classifiers. Proceedings of the National Academy of Sciences 118 (8).
    .. [2] J. Bröcker, L. A. Smith (2007). Increasing the reliability of reliability diagrams.
           Weather and Forecasting 22:651-661.

    Examples
    --------
    >>> probs = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6], [0.6, 0.4], [0.3, 0.7]]
    >>> curve = isotonic_curve(probs, [0, 0, 1, 0, 1, 1], label=1, seed=0)
    >>> print(curve.blocks)
    from    to  counts  observed
    0.10  0.30       2      0.00
    0.40  0.60       2      0.50
    0.70  0.80       2      1.00
    >>> round(float(curve.at(0.65)), 3), round(curve.brier.miscalibration, 3)
    (0.75, 0.075)
    """
    check_share("level", level)
    predictions = predictions_for_scoring(
        y, probs, sample_weight=sample_weight, classes=classes
    )
    pooled = pool_equal_predictions(predictions, label)
    entropy = seed_entropy(seed)
    curve = pooled.curve()
    points = select_band_values(pooled)
    if n_resamples is None:
        total = int(pooled.weight.sum())
        affordable = max(MIN_DRAWS, int(CONSISTENCY_WORK / max(total, 1)))
        n_resamples = min(N_RESAMPLES_SINGLE, affordable)
    check_n_resamples(n_resamples)
    # Half a row cannot have a label: of fractional weights the curve stands alone.
    band_low = np.full(len(points), np.nan)
    band_high = np.full(len(points), np.nan)
    null = None
    if predictions.has_whole_weights:
        curves, miscalibration = _draw_curves(pooled, points, n_resamples, entropy)
        band_low, band_high = band_of_draws(curves, level)
        observed = _miscalibration_of_brier(pooled, pooled.frequency, curve)
        null = MetricNull.from_draws(observed, miscalibration, level, entropy)
    return IsotonicCurve(
        label=label,
        predicted=pooled.values[points],
        observed=curve[points],
        band_low=band_low,
        band_high=band_high,
        level=level,
        blocks=_level_runs(pooled, curve),
        brier=pooled.decompose_score("brier"),
        log_loss=pooled.decompose_score("log_loss"),
        null=null,
        n_resamples=0 if null is None else n_resamples,
        seed=entropy,
    )


def select_band_values(pooled: PooledPredictions) -> Codes:
    """Return which values the band is given at: half spread over the rows, half over the range."""
    values = pooled.values
    if len(values) <= MAX_BAND_POINTS:
        return np.arange(len(values))
    half = MAX_BAND_POINTS // 2
    cumulative = np.cumsum(pooled.weight)
    # Over the rows alone, a few sure rows in a wide range would have no band.
    shares = cumulative[-1] * np.linspace(0.0, 1.0, half)
    over_rows = np.searchsorted(cumulative, shares)
    evenly = np.linspace(values[0], values[-1], half)
    over_range = np.searchsorted(values, evenly)
    points = np.minimum([over_rows, over_range], len(values) - 1)
    return np.unique(points)


def band_of_draws(drawn: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the k-th smallest and largest of each column; one more draw is inside at `level`."""
    n_draws, width = drawn.shape
    k = int(np.floor((n_draws + 1) * (1.0 - level) / 2.0 + 1e-9))  # 1e-9 for rounding
    if k == 0:
        return np.zeros(width), np.ones(width)
    ordered = np.partition(drawn, [k - 1, n_draws - k], axis=0)
    return ordered[k - 1], ordered[n_draws - k]


def _draw_curves(
    pooled: PooledPredictions, points: Codes, n_draws: int, seed: int
) -> tuple[Floats, Floats]:
    """Return the curves of drawn labels at `points`, and the miscalibration of each draw."""
    counts = count_row_repeats(pooled.weight, 1)
    starts = np.cumsum(counts) - counts
    probs = np.repeat(pooled.values, counts)
    n_rows = len(probs)
    curves = np.empty((n_draws, len(points)))
    miscalibration = np.empty(n_draws)
    batch = max(1, BATCH_ENTRIES // n_rows)
    for start in range(0, n_draws, batch):
        size = min(batch, n_draws - start)
        u = uniform_draws(seed, start, size, n_rows)
        hits = (u < probs).astype(np.float64)
        # Some values stand for several rows: their hits are counted.
        if n_rows > len(counts):
            hits = np.add.reduceat(hits, starts, axis=1)
        for draw, n_hits in enumerate(hits, start):
            frequency = n_hits / pooled.weight
            curve = isotonic_fit(frequency, pooled.weight)
            curves[draw] = curve[points]
            miscalibration[draw] = _miscalibration_of_brier(pooled, frequency, curve)
    return curves, miscalibration


def _miscalibration_of_brier(
    pooled: PooledPredictions, frequency: Floats, curve: Floats
) -> float:
    """Return the miscalibration part of the Brier score: what the curve gains over the values."""
    gain = (pooled.values - frequency) ** 2 - (curve - frequency) ** 2
    return float(pooled.weight @ gain / pooled.weight.sum())


def _level_runs(pooled: PooledPredictions, curve: Floats) -> Table:
    """Return the runs of values that share one level of the curve."""
    first = np.flatnonzero(np.append(True, np.diff(curve) > 0.0))
    last = np.append(first[1:], len(curve)) - 1
    counts = np.add.reduceat(pooled.weight, first)
    if (counts == np.floor(counts)).all():
        counts = counts.astype(np.int64)
    return Table(
        {
            "from": pooled.values[first].tolist(),
            "to": pooled.values[last].tolist(),
            "counts": counts.tolist(),
            "observed": curve[first].tolist(),
        }
    )
