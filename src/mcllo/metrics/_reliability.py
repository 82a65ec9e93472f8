"""`Predictions` -> `ReliabilityCurve`: numbers, not pictures.

For the rows of bin m, of weight ``w_m``:

==================  =====================================================================
mean predicted      mean of the confidence ``max_k x_ik``, or of ``x_ik`` for one class k
observed            frequency of hits: the most probable class, or class k, came true
interval            Wilson's, for the frequency behind the observed one
band                central range of the observed frequency if labels were draws from the
                    predictions (Broecker and Smith 2007); exact, by the Poisson-binomial
                    distribution of the number of hits
==================  =====================================================================

A point outside its band is where the predictions and the labels disagree more than chance makes
them. The bands hold bin by bin: at level 0.95 about one bin in twenty is outside under calibration.

Poisson-binomial: the probabilities of 0, 1, ..., n hits among rows that hit with ``p_i`` are the
coefficients of ``prod_i (1 - p_i + p_i z)``; the factors are multiplied in pairs, pairs of pairs
and so on, short ones by hand and long ones by Fourier transforms: O(n log^2 n).
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._utils.formatting import Table
from .._utils.notebook import NotebookResult
from .._utils.results import Floats, none_for_nonfinite
from .._validation.arguments import check_share
from .._validation.labels import find_class
from .._validation.predictions import Predictions, predictions_for_scoring
from .._validation.weights import count_row_repeats
from ._binned import weight_and_sum_by_cell
from ._bins import Binning, NBins, assign_bins, top_label
from ._vega import reliability_chart

MAX_RARE_PROB = 1.0 / 128.0
"""Probability below which eight sums of powers tell all of many rows: see
`poisson_binomial_pmf_of_rare_hits`."""


def poisson_binomial_pmf(probs: Floats) -> Floats:
    """Return the probabilities of 0 .. n hits among n rows that hit with `probs`.

    Examples
    --------
    >>> poisson_binomial_pmf(np.array([0.5, 0.5])).round(12)
    array([0.25, 0.5 , 0.25])
    """
    n = len(probs)
    n_factors = (
        1 << max(0, n - 1).bit_length()
    )  # a power of 2, filled up with rows that never hit
    factors = np.zeros((n_factors, 2))
    factors[:, 0] = 1.0
    factors[:n] = np.column_stack([1.0 - probs, probs])
    while len(factors) > 1:
        size = factors.shape[1]
        product_size = 2 * size - 1
        if size <= 9:  # below that a transform costs more than products by hand
            even = factors[0::2]
            odd = factors[1::2]
            factors = np.zeros((len(even), product_size))
            for k in range(size):
                factors[:, k : k + size] += even[:, k : k + 1] * odd
        else:
            # The size is a power of 2 and 1: the next number of small prime factors.
            length = 9 * (product_size // 8)
            waves = np.fft.rfft(factors, length, axis=1)
            products = waves[0::2] * waves[1::2]
            factors = np.fft.irfft(products, length, axis=1)[:, :product_size]
    mass: Floats = np.maximum(factors[0, : n + 1], 0.0)
    return mass


def poisson_binomial_pmf_of_rare_hits(probs: Floats) -> Floats:
    """Return the same where most rows hit rarely, up to the number of hits that has mass left.

    With p below `MAX_RARE_PROB`, ``log prod (1 + p (z - 1))`` is the series of ``(-1)^(m+1) S_m (z
    - 1)^m / m``, ``S_m = sum p^m``: on the unit circle the terms after the eighth are below 1e-11
    for 100,000 rows. So the rows are summed up once, and a transform of the length of their mass,
    not of their number, gives it. The other rows are multiplied out.

    Examples
    --------
    >>> probs = np.linspace(0.0, 0.02, 1000)
    >>> few, all_of_them = poisson_binomial_pmf_of_rare_hits(probs), poisson_binomial_pmf(probs)
    >>> len(few) < len(all_of_them), bool(np.abs(few - all_of_them[: len(few)]).max() < 1e-13)
    (True, True)
    """
    is_rare = probs < MAX_RARE_PROB
    p = probs[is_rare]
    if len(p) < 256:  # a product of all rows is faster
        return poisson_binomial_pmf(probs)
    p2 = p * p
    p3 = p2 * p
    p4 = p2 * p2
    sums = (p.sum(), p @ p, p @ p2, p2 @ p2, p @ p4, p2 @ p4, p3 @ p4, p4 @ p4)
    # Hits beyond this number have less than 1e-16 together: what would come round again.
    max_hits = sums[0] + 12.0 * math.sqrt(sums[0]) + 40.0
    length = 1 << math.ceil(math.log2(max_hits))
    angle = 2.0 * math.pi / length * np.arange(length // 2 + 1)
    z_minus_1 = np.expm1(-1j * angle)
    log_transform = np.zeros(len(z_minus_1), dtype=np.complex128)
    for m, power_sum in enumerate(sums, start=1):
        log_transform += (-1) ** (m + 1) * power_sum * z_minus_1**m / m
    mass = np.fft.irfft(np.exp(log_transform), length)
    mass = np.maximum(mass, 0.0)  # rounding
    return np.convolve(mass, poisson_binomial_pmf(probs[~is_rare]))


def central_range_of_hits(probs: Floats, level: float) -> tuple[int, int]:
    """Return numbers of hits (low, high) with at most ``(1 - level) / 2`` below and above."""
    at_most = np.cumsum(poisson_binomial_pmf(probs))
    tail = (1.0 - level) / 2.0
    # Sums that equal the tail but for rounding count as equal.
    low, high = np.searchsorted(at_most, [tail + 1e-12, 1.0 - tail - 1e-12])
    return int(low), int(min(high, len(probs)))


@dataclass(frozen=True, eq=False, repr=False)
class ReliabilityCurve(NotebookResult):
    """Predicted against observed frequencies in bins.

    Attributes
    ----------
    label : label or None
        The class; None for the most probable class of each row.
    edges : ndarray of shape (n_bins + 1,)
        Bin m holds values in ``(edges[m], edges[m + 1]]``; 0 is in the first.
    counts : ndarray of shape (n_bins,)
        Rows in each bin, or their total weight.
    mean_predicted, observed : ndarray of shape (n_bins,)
        Mean prediction and frequency of hits; NaN in empty bins.
    low, high : ndarray of shape (n_bins,)
        Wilson interval around `observed`; of Kish's effective number of rows where weights are no
        whole numbers, or no counts.
    band_low, band_high : ndarray of shape (n_bins,)
        Where `observed` lies with probability `level` or more if the predictions are right; NaN in
        empty bins, and everywhere when weights are not whole numbers.
    level : float
        Of the interval and of the band.
    binning : str
        "width" or "mass".

    See Also
    --------
    reliability_curve : Makes it.
    IsotonicCurve : Chooses its own bins.
    SmoothCurve : No bins.
    mcllo.plot.reliability : Draws it.

    Notes
    -----
    Intervals are Wilson's [1]_, the band that of [2]_.

    References
    ----------
    .. [1] E. B. Wilson (1927). Probable inference, the law of succession, and statistical
           inference. Journal of the American Statistical Association 22:209-212.
    .. [2] J. Bröcker, L. A. Smith (2007). Increasing the reliability of reliability diagrams.
           Weather and Forecasting 22:651-661.

    Examples
    --------
    >>> import mcllo
    >>> probs = [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]] * 10
    >>> y = [0, 1, 1, 0, 0, 0, 1, 1] * 5
    >>> curve = mcllo.reliability_curve(probs, y, label=1, n_bins=2)
    >>> curve.counts, curve.observed
    (array([20., 20.]), array([0.25, 0.75]))
    """

    label: Hashable | None
    edges: Floats
    counts: Floats
    mean_predicted: Floats
    observed: Floats
    low: Floats
    high: Floats
    band_low: Floats
    band_high: Floats
    level: float
    binning: str

    @property
    def n_bins(self) -> int:
        """Number of bins, empty ones included."""
        return len(self.counts)

    @property
    def outside(self) -> NDArray[np.bool_]:
        """Bins whose observed frequency lies outside the band."""
        rounding = 1e-12
        is_below = self.observed < self.band_low - rounding
        is_above = self.observed > self.band_high + rounding
        mask: NDArray[np.bool_] = is_below | is_above
        return mask

    def __repr__(self) -> str:
        of = "most probable class" if self.label is None else repr(self.label)
        n_used = int((self.counts > 0.0).sum())
        n_outside = int(self.outside.sum())
        return (
            f"<ReliabilityCurve of {of}: {n_used} bins, {n_outside} outside the band>"
        )

    def to_table(self) -> Table:
        """Return one row per bin."""
        edges = {"from": self.edges[:-1], "to": self.edges[1:]}
        columns = edges | self._columns()
        return Table({name: values.tolist() for name, values in columns.items()})

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values; what an empty bin lacks is None."""
        columns = {}
        for name, values in self._columns().items():
            columns[name] = none_for_nonfinite(values.tolist())
        return {
            "label": self.label,
            "binning": self.binning,
            "level": self.level,
            "edges": self.edges.tolist(),
            **columns,
        }

    def to_vega(self) -> dict[str, Any]:
        """Return the diagram as a dictionary of Vega-Lite, which draws without matplotlib.

        Returns
        -------
        dict
            Plain values, ready for JSON.

        Examples
        --------
        >>> curve = reliability_curve([[0.9, 0.1], [0.8, 0.2]], [0, 1], n_bins=4)
        >>> curve.to_vega()["title"]
        'Reliability of the most probable class'
        """
        return reliability_chart([self])

    def _columns(self) -> dict[str, NDArray[Any]]:
        counts: NDArray[Any] = self.counts
        if (counts == np.floor(counts)).all():
            counts = counts.astype(np.int64)
        return {
            "counts": counts,
            "mean_predicted": self.mean_predicted,
            "observed": self.observed,
            "low": self.low,
            "high": self.high,
            "band_low": self.band_low,
            "band_high": self.band_high,
        }


def reliability_curve(
    probs: Any,
    y: Any = None,
    *,
    label: Hashable | None = None,
    n_bins: NBins = 10,
    binning: Binning = "width",
    level: float = 0.95,
    classes: Any = None,
    sample_weight: Any = None,
) -> ReliabilityCurve:
    """Return the reliability curve of the most probable class, or of one class.

    Parameters
    ----------
    probs : array-like, frame or Predictions
        Predicted probabilities, shape (n_samples, n_classes).
    y : array-like of shape (n_samples,)
        The labels that came true; not given beside a `Predictions`.
    label : label, optional
        The class. Default: the most probable class of each row (of ties, the first).
    n_bins : int or "sqrt"
        Number of bins, "sqrt" for ``ceil(sqrt(n))``; of equal mass there may be fewer, where values
        tie.
    binning : {"width", "mass"}
        Bins of equal width on [0, 1], or holding equally many rows.
    level : float
        Probability of the intervals and of the band.
    classes : sequence, optional
        The label of each column; see `Predictions.from_arrays`.
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.

    Returns
    -------
    ReliabilityCurve
        Edges, counts, mean predictions, frequencies, intervals and band of the bins; ``print`` it.

    See Also
    --------
    ReliabilityCurve : What comes out.
    isotonic_curve : Chooses its own bins.
    smooth_curve : No bins.
    mcllo.plot.reliability : Draws it.

    Notes
    -----
    Intervals are Wilson's [1]_. The band holds the consistency bars of [2]_, computed exactly from
    the Poisson-binomial distribution instead of by resampling.

    References
    ----------
    .. [1] E. B. Wilson (1927). Probable inference, the law of succession, and statistical
           inference. Journal of the American Statistical Association 22:209-212.
    .. [2] J. Bröcker, L. A. Smith (2007). Increasing the reliability of reliability diagrams.
           Weather and Forecasting 22:651-661.

    Examples
    --------
    >>> p = Predictions.from_arrays([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.7, 0.3]], [0, 0, 1, 1])
    >>> print(reliability_curve(p, n_bins=4).to_table())
    from    to  counts  mean_predicted  observed    low  high  band_low  band_high
    0.00  0.25       0               -         -      -     -         -          -
    0.25  0.50       0               -         -      -     -         -          -
    0.50  0.75       2            0.65      0.50  0.095  0.91      0.00       1.00
    0.75  1.00       2            0.85      1.00   0.34  1.00      0.50       1.00
    """
    check_share("level", level)
    predictions = predictions_for_scoring(
        y,
        probs,
        sample_weight=sample_weight,
        classes=classes,
        choice_sets=label is None,
    )
    values, hits = values_and_hits(predictions, label)
    weight = predictions.sample_weight
    index, inner = assign_bins(values, n_bins, binning, weight)
    n_cells = len(inner) + 1
    counts, predicted = weight_and_sum_by_cell(index, values, n_cells, weight)
    _, successes = weight_and_sum_by_cell(index, hits, n_cells, weight)
    bands = _calibrated_frequency_bands(predictions, values, index, counts, level)
    effective = counts
    if weight is not None and not predictions.has_whole_weights:
        _, sums_of_squares = weight_and_sum_by_cell(index, weight, n_cells, weight)
        effective = ratio(counts**2, sums_of_squares)  # Kish's number of rows
    sums = (counts, predicted, successes)
    return curve_from_bin_sums(
        label, inner, sums, bands, level, binning, effective=effective
    )


def curve_from_bin_sums(
    label: Hashable | None,
    inner: Floats,
    sums: tuple[Floats, Floats, Floats],
    bands: tuple[Floats, Floats],
    level: float,
    binning: str = "width",
    *,
    effective: Floats | None = None,
) -> ReliabilityCurve:
    """Return the curve, given weight, sum of predictions and weight of hits in each bin.

    `effective` is how many rows each bin is worth, where weights are no counts.
    """
    counts, predicted, hits = sums
    band_low, band_high = bands
    observed = ratio(hits, counts)
    low, high = wilson_score_interval(
        observed, counts if effective is None else effective, level
    )
    return ReliabilityCurve(
        label=label,
        edges=np.concatenate([[0.0], inner, [1.0]]),
        counts=counts,
        mean_predicted=ratio(predicted, counts),
        observed=observed,
        low=low,
        high=high,
        band_low=band_low,
        band_high=band_high,
        level=level,
        binning=binning,
    )


def values_and_hits(p: Predictions, label: Hashable | None) -> tuple[Floats, Floats]:
    """Return predictions and hits (0 or 1) of one class, or of each row's most probable class."""
    if label is None:
        top, confidence = top_label(p.probs)
        return confidence, (top == p.codes).astype(np.float64)
    column = find_class(label, p.classes, "label")
    return p.probs[:, column], (p.codes == column).astype(np.float64)


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Return the quotient; NaN where there is nothing to divide by."""
    quotient: Floats = np.full(len(numerator), np.nan)
    np.divide(numerator, denominator, out=quotient, where=denominator > 0.0)
    return quotient


def wilson_score_interval(
    frequency: Floats, counts: Floats, level: float
) -> tuple[Floats, Floats]:
    """Return Wilson's interval ``(f + z^2/2n -/+ z sqrt(f (1-f)/n + z^2/4n^2)) / (1 + z^2/n)``.

    It begins at 0 where the frequency is 0, ends at 1 where it is 1, and is NaN without rows.
    """
    from scipy.special import ndtri

    z2 = float(ndtri(0.5 + level / 2.0)) ** 2
    centre = ratio(counts * frequency + z2 / 2.0, counts + z2)
    variance = counts * frequency * (1.0 - frequency) + z2 / 4.0
    half_width = np.sqrt(z2 * variance) / (counts + z2)
    low = np.maximum(centre - half_width, 0.0)
    high = np.minimum(centre + half_width, 1.0)
    # Rounding must not leave 1e-18 where the formula gives 0.
    low = np.where(frequency == 0.0, 0.0, low)
    high = np.where(frequency == 1.0, 1.0, high)
    return low, high


def _calibrated_frequency_bands(
    p: Predictions,
    values: Floats,
    index: NDArray[np.intp],
    counts: Floats,
    level: float,
) -> tuple[Floats, Floats]:
    """Return the central range of the observed frequency of each bin under calibration."""
    low = np.full(len(counts), np.nan)
    high = np.full(len(counts), np.nan)
    if not p.has_whole_weights:
        return low, high
    for m in np.flatnonzero(counts > 0.0):
        is_inside = index == m
        probs = values[is_inside]
        if p.sample_weight is not None:
            probs = np.repeat(probs, count_row_repeats(p.sample_weight[is_inside], 1))
        fewest, most = central_range_of_hits(probs, level)
        low[m] = fewest / counts[m]
        high[m] = most / counts[m]
    return low, high
