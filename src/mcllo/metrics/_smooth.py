"""Reliability as a smooth curve with a band, and the distances read from it; no bins.

The curve is the spline of `metrics/_spline`, of one class, or of each row's most probable class.

================  ==========================================================================
ICI               ``mean |curve(x) - x|`` over the rows (integrated calibration index)
E50, E90, Emax    median, 90th percentile and maximum of ``|curve(x) - x|``
points            evenly over probabilities and again over log odds, smallest to largest row
band              computed at `N_BAND` of them; straight lines of log odds between
================  ==========================================================================

The band holds point by point, for curves about as smooth as the spline: narrow waves between its
knots are averaged out (the isotonic curve, `metrics/_isotonic`, has no such limit). The spline is
Harrell's (2015) restricted cubic spline, the distances are those of Austin and Steyerberg (2019);
they are above 0 for calibrated predictions too.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .._ground.notebook import Shown
from .._ground.results import Floats, Result
from .._ground.text import Table
from .._input.arguments import check_share
from .._input.predictions import Predictions, scored_predictions
from ..exceptions import InputError
from ._binned import Target
from ._reliability import values_and_hits
from ._scores import Classes
from ._spline import Spline, chances, log_odds, score_covariance

N_POINTS, N_BAND = 101, 51


class Distances(NamedTuple):
    """Mean, median, 90th percentile and maximum of |curve - prediction| over the rows."""

    ici: float
    e50: float
    e90: float
    emax: float


@dataclass(frozen=True, eq=False, repr=False)
class SmoothCurve(Result, Shown):
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
    robust : bool
        Whether the band allows for groups, or for weights that count no rows.
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
    robust: bool
    spline: Spline = field(repr=False)

    left_out = ("spline",)

    def at(self, predicted: Any) -> Table:
        """Return the curve and its band at these predictions."""
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
        return f"<SmoothCurve of {of}: {len(self.knots)} knots, ICI {self.ici:.4g}>"


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
        Predicted probabilities, shape (n_samples, n_classes). Groups, survey and importance
        weights of a `Predictions` widen the band.
    y : array-like of shape (n_samples,)
        The labels that came true; not given beside a `Predictions`.
    label : label, optional
        The class. Default: the most probable class of each row (of ties, the first).
    n_knots : int, optional
        Places between which the curve bends; 2 makes a straight line of log odds (a logistic
        recalibration). Default: 5, up to 10 with many rows.
    level : float
        Probability of the band, point by point.
    classes, sample_weight
        As in `Predictions.from_arrays`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0.05, 0.95, size=2000)
    >>> y = (rng.random(2000) < 0.2 + 0.6 * x).astype(int)  # too extreme at both ends
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
    at = points[np.unique(np.linspace(0, len(points) - 1, N_BAND).round().astype(np.intp))]
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


def _sandwich(
    spline: Spline, predictions: Predictions, values: Floats, hits: Floats
) -> Floats | None:
    """Return their covariance where rows depend on each other, or weights are no counts."""
    weight, groups = predictions.sample_weight, predictions.groups
    if groups is None and predictions.weighed().counts_rows:
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

    Austin and Steyerberg (2019), with the spline of `mcllo.smooth_curve` for the curve. It is above
    0 for calibrated predictions too, the more so the fewer rows there are.

    Parameters
    ----------
    target : "top-label" or "marginal"
        The most probable class of each row; or the mean over classes, each against the rest.
    n_knots : int, optional
        As in `mcllo.smooth_curve`.
    y_true, y_prob, sample_weight, classes
        As in `accuracy`.

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
    return float(np.mean([_distances_of(p, label, n_knots).ici for label in labels]))


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
    predictions (Austin and Steyerberg 2019).

    Parameters
    ----------
    n_knots : int, optional
        As in `mcllo.smooth_curve`.
    y_true, y_prob, sample_weight, classes
        As in `accuracy`.

    Returns
    -------
    Table
        Columns ``of`` ("top label", "class" or "mean of classes"), ``class``, ``ici``, ``e50``,
        ``e90`` and ``emax``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0.05, 0.95, size=2000)
    >>> y = (rng.random(2000) < 0.2 + 0.6 * x).astype(int)
    >>> print(calibration_distances(y, np.column_stack([1 - x, x])))
    of               class   ici   e50   e90  emax
    top label               0.10  0.10  0.15  0.15
    class                0  0.10  0.10  0.17  0.21
    class                1  0.10  0.10  0.17  0.21
    mean of classes         0.10  0.10  0.17  0.21
    """
    p = scored_predictions(y_true, y_prob, sample_weight=sample_weight, classes=classes)
    found = [_distances_of(p, label, n_knots) for label in (None, *p.classes)]
    found.append(Distances(*np.mean(found[1:], axis=0).tolist()))
    names: list[Hashable] = ["", *p.classes, ""]
    of = ["top label", *["class"] * p.n_classes, "mean of classes"]
    columns = {name: [getattr(each, name) for each in found] for name in Distances._fields}
    return Table({"of": of, "class": names, **columns})


def _distances_of(p: Predictions, label: Hashable | None, n_knots: int | None) -> Distances:
    values, hits = values_and_hits(p, label)
    return distances(fit_spline(p, values, hits, n_knots)(values), values, p.sample_weight)
