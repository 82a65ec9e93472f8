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
from .._utils.results import Floats, none_for_nan
from .._validation.arguments import check_share
from .._validation.labels import find_class
from .._validation.predictions import Predictions, scored_predictions
from .._validation.weights import written_times
from ._binned import cell_totals
from ._bins import Binning, NBins, assign_bins, top_label

MAX_RARE_PROB = 1.0 / 128.0
"""Probability below which eight sums of powers tell all of many rows."""
MIN_RARE_ROWS_FOR_SERIES = 256
"""Rows from which these are faster than a product of all rows."""
MAX_COEFFICIENTS_WITHOUT_FFT = 9
"""Coefficients up to which factors are multiplied without a transform."""


def poisson_binomial(probs: Floats) -> Floats:
    """Return the probabilities of 0 .. n hits among n rows that hit with `probs`.

    Examples
    --------
    >>> poisson_binomial(np.array([0.5, 0.5])).round(12)
    array([0.25, 0.5 , 0.25])
    """
    n = len(probs)
    factors = np.zeros((1 << max(0, n - 1).bit_length(), 2))
    factors[:, 0] = 1.0
    factors[:n] = np.column_stack([1.0 - probs, probs])
    while len(factors) > 1:
        first, second, m = factors[0::2], factors[1::2], factors.shape[1]
        size = 2 * m - 1
        if m <= MAX_COEFFICIENTS_WITHOUT_FFT:
            factors = np.zeros((len(first), size))
            for k in range(m):
                factors[:, k : k + m] += first[:, k : k + 1] * second
            continue
        length = 9 * (size // 8)  # size is a power of 2 and 1: the next number of small factors
        waves = np.fft.rfft(factors, length, axis=1)
        factors = np.fft.irfft(waves[0::2] * waves[1::2], length, axis=1)[:, :size]
    mass: Floats = np.maximum(factors[0, : n + 1], 0.0)
    return mass


def poisson_binomial_of_rare(probs: Floats) -> Floats:
    """Return the same where most rows hit rarely, up to the number of hits that has mass left.

    With p below `MAX_RARE_PROB`, ``log prod (1 + p (z - 1))`` is the series of ``(-1)^(m+1) S_m (z
    - 1)^m / m``, ``S_m = sum p^m``: on the unit circle the terms after the eighth are below 1e-11
    for 100,000 rows. So the rows are summed up once, and a transform of the length of their mass,
    not of their number, gives it. The other rows are multiplied out.

    Examples
    --------
    >>> probs = np.linspace(0.0, 0.02, 1000)
    >>> few, all_of_them = poisson_binomial_of_rare(probs), poisson_binomial(probs)
    >>> len(few) < len(all_of_them), bool(np.abs(few - all_of_them[: len(few)]).max() < 1e-13)
    (True, True)
    """
    rare = probs < MAX_RARE_PROB
    p = probs[rare]
    if len(p) < MIN_RARE_ROWS_FOR_SERIES:
        return poisson_binomial(probs)
    p2 = p * p
    p4 = p2 * p2
    p3 = p2 * p
    sums = (p.sum(), p @ p, p @ p2, p2 @ p2, p @ p4, p2 @ p4, p3 @ p4, p4 @ p4)
    # Hits beyond this number have less than 1e-16 together: what would come round again.
    reach = sums[0] + 12.0 * math.sqrt(sums[0]) + 40.0
    length = 1 << math.ceil(math.log2(reach))
    z = np.expm1(-2j * math.pi / length * np.arange(length // 2 + 1))
    logs = sum((-1) ** m * s * z ** (m + 1) / (m + 1) for m, s in enumerate(sums))
    mass = np.maximum(np.fft.irfft(np.exp(logs), length), 0.0)
    return np.convolve(mass, poisson_binomial(probs[~rare]))


def central_range(probs: Floats, level: float) -> tuple[int, int]:
    """Return numbers of hits (low, high) with at most ``(1 - level) / 2`` below and above."""
    below = np.cumsum(poisson_binomial(probs))
    tail = (1.0 - level) / 2.0
    low, high = np.searchsorted(below, [tail + 1e-12, 1.0 - tail - 1e-12])
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
        mask: NDArray[np.bool_] = (self.observed < self.band_low - rounding) | (
            self.observed > self.band_high + rounding
        )
        return mask

    def __repr__(self) -> str:
        of = "most probable class" if self.label is None else repr(self.label)
        used, off = int((self.counts > 0.0).sum()), int(self.outside.sum())
        return f"<ReliabilityCurve of {of}: {used} bins, {off} outside the band>"

    def to_table(self) -> Table:
        """Return one row per bin."""
        columns = {"from": self.edges[:-1], "to": self.edges[1:], **self._columns()}
        return Table({name: values.tolist() for name, values in columns.items()})

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values; what an empty bin lacks is None."""
        columns = {name: none_for_nan(values.tolist()) for name, values in self._columns().items()}
        return {
            "label": self.label,
            "binning": self.binning,
            "level": self.level,
            "edges": self.edges.tolist(),
            **columns,
        }

    def _columns(self) -> dict[str, NDArray[Any]]:
        names = ("mean_predicted", "observed", "low", "high", "band_low", "band_high")
        whole = bool((self.counts == np.floor(self.counts)).all())
        counts = self.counts.astype(np.int64) if whole else self.counts
        return {"counts": counts, **{name: getattr(self, name) for name in names}}


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
    predictions = scored_predictions(y, probs, sample_weight=sample_weight, classes=classes)
    values, hits = values_and_hits(predictions, label)
    weight = predictions.sample_weight
    index, inner = assign_bins(values, n_bins, binning, weight)
    count = len(inner) + 1
    counts, predicted = cell_totals(index, values, count, weight)
    successes = cell_totals(index, hits, count, weight)[1]
    bands, effective = _bands(predictions, values, index, counts, level), counts
    if weight is not None and not predictions.has_whole_weights:
        effective = ratio(counts**2, cell_totals(index, weight, count, weight)[1])
    sums = (counts, predicted, successes)
    return curve_of_sums(label, inner, sums, bands, level, binning, effective=effective)


def curve_of_sums(
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
    observed = ratio(hits, counts)
    low, high = wilson(observed, counts if effective is None else effective, level)
    return ReliabilityCurve(
        label=label,
        edges=np.concatenate([[0.0], inner, [1.0]]),
        counts=counts,
        mean_predicted=ratio(predicted, counts),
        observed=observed,
        low=low,
        high=high,
        band_low=bands[0],
        band_high=bands[1],
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


def wilson(frequency: Floats, counts: Floats, level: float) -> tuple[Floats, Floats]:
    """Return Wilson's interval ``(f + z^2/2n -/+ z sqrt(f (1-f)/n + z^2/4n^2)) / (1 + z^2/n)``.

    It begins at 0 where the frequency is 0, ends at 1 where it is 1, and is NaN without rows.
    """
    from scipy.special import ndtri

    z2 = float(ndtri(0.5 + level / 2.0)) ** 2
    centre = ratio(counts * frequency + z2 / 2.0, counts + z2)
    reach = np.sqrt(z2 * (counts * frequency * (1.0 - frequency) + z2 / 4.0)) / (counts + z2)
    low, high = np.maximum(centre - reach, 0.0), np.minimum(centre + reach, 1.0)
    return np.where(frequency == 0.0, 0.0, low), np.where(frequency == 1.0, 1.0, high)


def _bands(
    p: Predictions, values: Floats, index: NDArray[np.intp], counts: Floats, level: float
) -> tuple[Floats, Floats]:
    """Return the central range of the observed frequency of each bin under calibration."""
    low, high = np.full((2, len(counts)), np.nan)
    if not p.has_whole_weights:
        return low, high
    for m in np.flatnonzero(counts > 0.0):
        inside = index == m
        probs = values[inside]
        if p.sample_weight is not None:
            probs = np.repeat(probs, written_times(p.sample_weight[inside], 1))
        low[m], high[m] = np.array(central_range(probs, level)) / counts[m]
    return low, high
