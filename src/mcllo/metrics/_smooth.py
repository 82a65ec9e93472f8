"""Reliability as a smooth curve with a band, and the distances read from it; no bins.

The curve is the spline of `metrics/_spline`, of one class, or of each row's most probable class.

================  ==========================================================================
ICI               ``mean |curve(x) - x|`` over the rows (integrated calibration index)
its null          95 % of calibrated rows like these have a smaller one: labels drawn `N_DRAWS`
                  times from the predictions, seed 0; not for dependent rows
E50, E90, Emax    median, 90th percentile and maximum of ``|curve(x) - x|``
points            evenly over probabilities and again over log odds, smallest to largest row
band              computed at `N_BAND_POINTS` of them; straight lines of log odds between
================  ==========================================================================

The band holds point by point, for curves about as smooth as the spline: narrow waves between its
knots are averaged out (the isotonic curve, `metrics/_isotonic`, has no such limit). The spline is
Harrell's (2015) restricted cubic spline, the distances are those of Austin and Steyerberg (2019);
they are above 0 for calibrated predictions too, which is why the ICI has its null beside it.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .._utils.formatting import Table
from .._utils.notebook import NotebookResult
from .._utils.results import Floats, Result
from .._validation.arguments import check_share
from .._validation.predictions import Predictions, scored_predictions
from ..exceptions import InputError
from ._binned import Target
from ._reliability import values_and_hits
from ._scores import Classes
from ._spline import Spline, chances, log_odds, score_covariance

N_POINTS = 101
N_BAND_POINTS = 51
N_DRAWS = 199
NULL_LEVEL = 0.95


class Distances(NamedTuple):
    """Mean, median, 90th percentile and maximum of |curve - prediction| over the rows."""

    ici: float
    e50: float
    e90: float
    emax: float


@dataclass(frozen=True, eq=False, repr=False)
class SmoothCurve(Result, NotebookResult):
    """Observed against predicted frequency as a smooth curve.

    Attributes
    ----------
    label : label or None
        The class; None for the most probable class of each row.
    predicted, observed : ndarray of shape (m,)
        Predictions from the smallest to the largest, and the curve there.
    low, high : ndarray of shape (m,)
        Ends of the band: at each point, the interval of the frequency behind the labels.
    level : float
        Of the band.
    knots : ndarray
        Predictions between which the curve bends.
    ici, e50, e90, emax : float
        Mean, median, 90th percentile and maximum of ``|curve - prediction|`` over the rows.
    ici_null : float
        What 95 % of calibrated rows like these show at most for `ici`; NaN where `robust`.
    robust : bool
        Whether the band allows for groups, or for weights that count no rows.
    spline : Spline
        The curve as a function of the prediction.

    See Also
    --------
    smooth_curve : Makes it.
    ReliabilityCurve : In bins.
    IsotonicCurve : Rising, with nothing to choose.
    mcllo.metrics.calibration_distances : The distances of every class.

    Notes
    -----
    The distances are those of [1]_.

    References
    ----------
    .. [1] P. C. Austin, E. W. Steyerberg (2019). The Integrated Calibration Index (ICI) and related
           metrics for quantifying the calibration of logistic regression models. Statistics in
           Medicine, doi:10.1002/sim.8281.

    Examples
    --------
    >>> import mcllo
    >>> probs = [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]] * 10
    >>> y = [0, 1, 1, 0, 0, 0, 1, 1] * 5
    >>> curve = mcllo.smooth_curve(probs, y, label=1, n_knots=2)
    >>> curve.ici <= curve.e90 <= curve.emax
    True
    """

    label: Hashable | None
    predicted: Floats
    observed: Floats
    low: Floats
    high: Floats
    level: float
    knots: Floats
    ici: float
    e50: float
    e90: float
    emax: float
    ici_null: float
    robust: bool
    spline: Spline = field(repr=False)

    left_out = ("spline",)

    def at(self, predicted: Any) -> Table:
        """Return the curve and its band at these predictions.

        Parameters
        ----------
        predicted : array-like
            Probabilities.

        Returns
        -------
        Table
            Columns ``predicted``, ``observed``, ``low`` and ``high``.
        """
        values = np.atleast_1d(np.asarray(predicted, dtype=np.float64))
        at, known = log_odds(values), log_odds(self.predicted)
        low, high = (np.interp(at, known, end) for end in (self.low, self.high))
        columns = {"predicted": values, "observed": self.spline(values), "low": low, "high": high}
        return Table({name: own.tolist() for name, own in columns.items()})

    def to_table(self) -> Table:
        """Return one row for each point."""
        names = ("predicted", "observed", "low", "high")
        return Table({name: getattr(self, name).tolist() for name in names})

    def __repr__(self) -> str:
        of = "most probable class" if self.label is None else repr(self.label)
        null = "" if np.isnan(self.ici_null) else f" (calibrated: up to {self.ici_null:.4g})"
        return f"<SmoothCurve of {of}: {len(self.knots)} knots, ICI {self.ici:.4g}{null}>"


def smooth_curve(
    probs: Any,
    y: Any = None,
    *,
    label: Hashable | None = None,
    n_knots: int | None = None,
    level: float = 0.95,
    classes: Any = None,
    sample_weight: Any = None,
) -> SmoothCurve:
    """Return a smooth reliability curve of the most probable class, or of one class.

    A natural cubic spline of the log odds; the band holds all such curves that explain the labels
    nearly as well (profile likelihood).

    Parameters
    ----------
    probs : array-like, frame or Predictions
        Predicted probabilities, shape (n_samples, n_classes). Groups, survey and importance weights
        of a `Predictions` widen the band.
    y : array-like of shape (n_samples,)
        The labels that came true; not given beside a `Predictions`.
    label : label, optional
        The class. Default: the most probable class of each row (of ties, the first).
    n_knots : int, optional
        Places between which the curve bends; 2 makes a straight line of log odds (a logistic
        recalibration). Default: 5, up to 10 with many rows, and two more columns that follow labels
        of which a share is wrong at random.
    level : float
        Probability of the band, point by point.
    classes : sequence, optional
        The label of each column; see `Predictions.from_arrays`.
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.

    Returns
    -------
    SmoothCurve
        The curve with its band, and the distances `ici`, `e50`, `e90`, `emax`; ``print`` it.

    See Also
    --------
    SmoothCurve : What comes out.
    mcllo.metrics.calibration_distances : The distances of every class.
    isotonic_curve : Rising, with nothing to choose.
    reliability_curve : In bins.

    Notes
    -----
    A restricted cubic spline [1]_ of the log odds, for the curve from which [2]_ compute the
    integrated calibration index.

    References
    ----------
    .. [1] F. E. Harrell (2015). Regression Modeling Strategies, second edition. Springer.
    .. [2] P. C. Austin, E. W. Steyerberg (2019). The Integrated Calibration Index (ICI) and related
           metrics for quantifying the calibration of logistic regression models. Statistics in
           Medicine, doi:10.1002/sim.8281.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0.05, 0.95, size=2000)
    >>> y = (rng.random(2000) < 0.2 + 0.6 * x).astype(int)  # overconfident at both ends
    >>> curve = smooth_curve(np.column_stack([1 - x, x]), y, label=1)
    >>> print(curve.at([0.1, 0.5, 0.9]))
    predicted  observed   low  high
    0.10           0.29  0.24  0.34
    0.50           0.51  0.47  0.56
    0.90           0.80  0.75  0.84
    >>> round(curve.ici, 2)
    0.1
    """
    check_share("level", level)
    from scipy.special import ndtri

    predictions = scored_predictions(y, probs, sample_weight=sample_weight, classes=classes)
    values, hits = values_and_hits(predictions, label)
    spline = fit_spline(predictions, values, hits, n_knots)
    sandwich = _sandwich(spline, predictions, values, hits)
    x = log_odds(values if (weight := predictions.sample_weight) is None else values[weight > 0.0])
    points = _points(float(x.min()), float(x.max()))
    at = points[np.unique(np.linspace(0, len(points) - 1, N_BAND_POINTS).round().astype(np.intp))]
    low, high = spline.band(at, float(ndtri(0.5 + level / 2.0)), sandwich)
    return SmoothCurve(
        label=label,
        predicted=chances(points),
        observed=spline(chances(points)),
        low=chances(np.interp(points, at, low)),
        high=chances(np.interp(points, at, high)),
        level=level,
        knots=chances(spline.basis.knots),
        **distances(spline(values), values, predictions.sample_weight)._asdict(),
        ici_null=np.nan if sandwich is not None else _ici_null(spline),
        robust=sandwich is not None,
        spline=spline,
    )


def fit_spline(
    predictions: Predictions, values: Floats, hits: Floats, n_knots: int | None = None
) -> Spline:
    """Fit the curve of hits on predictions."""
    whole = isinstance(n_knots, (int, np.integer)) and not isinstance(n_knots, bool)
    if n_knots is not None and (not whole or n_knots < 2):
        raise InputError(f"n_knots must be a whole number >= 2; got n_knots={n_knots!r}.")
    weight = predictions.sample_weight
    return Spline.fit(values, hits, np.ones(len(values)) if weight is None else weight, n_knots)


def _ici_null(spline: Spline) -> float:
    """Return what `NULL_LEVEL` of calibrated rows show at most."""
    return float(np.quantile(spline.calibrated_ici(N_DRAWS), NULL_LEVEL, method="higher"))


def _sandwich(
    spline: Spline, predictions: Predictions, values: Floats, hits: Floats
) -> Floats | None:
    """Return their covariance where rows depend on each other, or weights are no counts."""
    weight, groups = predictions.sample_weight, predictions.groups
    if _are_counts(predictions):
        return None
    residual = (hits - spline(values)) * (1.0 if weight is None else weight)
    scores = spline.basis(log_odds(values)) * residual[:, None]
    meat = score_covariance(scores, groups)
    return np.asarray(spline.covariance @ meat @ spline.covariance)


def _points(low: float, high: float) -> Floats:
    """Return log odds, evenly over probabilities and again over log odds."""
    ends = chances(np.array([low, high]))
    over_probs = log_odds(np.linspace(ends[0], ends[1], N_POINTS)).clip(low, high)
    return np.unique(np.concatenate([over_probs, np.linspace(low, high, N_POINTS)]))


def distances(observed: Floats, values: Floats, weight: Floats | None) -> Distances:
    """Return ICI, E50, E90 and Emax of a curve at the rows' predictions."""
    own = np.ones(len(values)) if weight is None else weight
    away = np.abs(observed - values)
    order = np.argsort(away)
    reach = np.cumsum(own[order])
    middle, high = np.searchsorted(reach, reach[-1] * np.array([0.5, 0.9]) * (1.0 - 1e-12))
    largest = away[own > 0.0].max()
    ici = np.average(away, weights=own)
    return Distances(float(ici), *(float(v) for v in (*away[order][[middle, high]], largest)))


def integrated_calibration_index(
    y_true: Any,
    y_prob: Any,
    *,
    target: Target = "top-label",
    n_knots: int | None = None,
    sample_weight: Any = None,
    classes: Classes = None,
) -> float:
    """Return the mean distance of a smooth reliability curve from the predictions (ICI).

    The curve is the spline of `mcllo.smooth_curve`. The index is above 0 for calibrated predictions
    too, the more so the fewer rows there are: `calibration_distances` says how far.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels that came true.
    y_prob : array-like or frame of shape (n_samples, n_classes)
        Predicted probabilities.
    target : {"top-label", "marginal"}
        The most probable class of each row; or the mean over classes, each against the rest.
    n_knots : int, optional
        Places between which the curve bends; see `mcllo.smooth_curve`.
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.
    classes : sequence, optional
        The label of each column. Default: the frame's column names, else the sorted distinct
        labels.

    Returns
    -------
    float
        Between 0 and 1.

    See Also
    --------
    calibration_distances : Beside E50, E90, Emax and what calibrated rows show.
    mcllo.smooth_curve : The curve.
    smooth_calibration_error : A kernel in the place of the spline.

    Notes
    -----
    The index is that of [1]_.

    References
    ----------
    .. [1] P. C. Austin, E. W. Steyerberg (2019). The Integrated Calibration Index (ICI) and related
           metrics for quantifying the calibration of logistic regression models. Statistics in
           Medicine, doi:10.1002/sim.8281.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0.05, 0.95, size=2000)
    >>> y = (rng.random(2000) < 0.2 + 0.6 * x).astype(int)
    >>> round(integrated_calibration_index(y, np.column_stack([1 - x, x]), target="marginal"), 2)
    0.1
    """
    if target not in ("top-label", "marginal"):
        raise InputError(f"target must be 'top-label' or 'marginal'; got target={target!r}.")
    p = scored_predictions(y_true, y_prob, sample_weight=sample_weight, classes=classes)
    labels: tuple[Hashable | None, ...] = (None,) if target == "top-label" else p.classes
    return float(np.mean([_curve_distances(p, label, n_knots).ici for label in labels]))


def calibration_distances(
    y_true: Any,
    y_prob: Any,
    *,
    n_knots: int | None = None,
    sample_weight: Any = None,
    classes: Classes = None,
) -> Table:
    """Return ICI, E50, E90 and Emax of the most probable class, of each class, and their mean.

    Mean, median, 90th percentile and maximum of the distance of a smooth reliability curve from the
    predictions.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels that came true.
    y_prob : array-like or frame of shape (n_samples, n_classes)
        Predicted probabilities.
    n_knots : int, optional
        Places between which the curve bends; see `mcllo.smooth_curve`.
    sample_weight : array-like of shape (n_samples,), optional
        Row i counts as ``sample_weight[i]`` rows.
    classes : sequence, optional
        The label of each column. Default: the frame's column names, else the sorted distinct
        labels.

    Returns
    -------
    Table
        Columns ``of`` ("top label", "class" or "mean of classes"), ``class``, ``ici``, ``ici_null``
        (95 % of calibrated rows like these show less; NaN for the mean, and where rows depend on
        each other), ``e50``, ``e90`` and ``emax``.

    See Also
    --------
    integrated_calibration_index : The ICI alone, as a number.
    mcllo.smooth_curve : The curve that the distances are read from.
    expected_calibration_error : The distance in bins.

    Notes
    -----
    The distances are those of [1]_; the curve is that of `mcllo.smooth_curve`, a restricted cubic
    spline [2]_ of the log odds.

    References
    ----------
    .. [1] P. C. Austin, E. W. Steyerberg (2019). The Integrated Calibration Index (ICI) and related
           metrics for quantifying the calibration of logistic regression models. Statistics in
           Medicine, doi:10.1002/sim.8281.
    .. [2] F. E. Harrell (2015). Regression Modeling Strategies, second edition. Springer.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0.05, 0.95, size=2000)
    >>> y = (rng.random(2000) < 0.2 + 0.6 * x).astype(int)
    >>> print(calibration_distances(y, np.column_stack([1 - x, x])))
    of               class   ici  ici_null   e50   e90  emax
    top label               0.10     0.028  0.10  0.15  0.15
    class                0  0.10     0.028  0.10  0.17  0.21
    class                1  0.10     0.027  0.10  0.17  0.21
    mean of classes         0.10         -  0.10  0.17  0.21
    """
    p = scored_predictions(y_true, y_prob, sample_weight=sample_weight, classes=classes)
    labels: tuple[Hashable | None, ...] = (None, *p.classes)
    found = []
    nulls = []
    for label in labels:
        values, hits = values_and_hits(p, label)
        spline = fit_spline(p, values, hits, n_knots)
        found.append(distances(spline(values), values, p.sample_weight))
        nulls.append(_ici_null(spline) if _are_counts(p) else np.nan)
    found.append(Distances(*np.mean(found[1:], axis=0).tolist()))
    nulls.append(np.nan)
    names: list[Hashable] = ["", *p.classes, ""]
    of = ["top label", *["class"] * p.n_classes, "mean of classes"]
    columns = {name: [getattr(each, name) for each in found] for name in Distances._fields}
    ici = columns.pop("ici")
    return Table({"of": of, "class": names, "ici": ici, "ici_null": nulls, **columns})


def _are_counts(p: Predictions) -> bool:
    """Whether rows are independent and weights count them."""
    return p.groups is None and p.with_importance_weights().counts_rows


def _curve_distances(p: Predictions, label: Hashable | None, n_knots: int | None) -> Distances:
    values, hits = values_and_hits(p, label)
    return distances(fit_spline(p, values, hits, n_knots)(values), values, p.sample_weight)
