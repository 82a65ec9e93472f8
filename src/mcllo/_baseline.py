"""`baseline_sensitivity`: does the answer hang on which class the log odds refer to?

The model with baseline b and the one with b' share exactly the maps with equal gamma; where the
gamma differ the models differ, unless c = 2. So every baseline is fitted and compared.

===================  =====================================================================
statistic, p-value   likelihood ratio of each baseline's fit, chi-square with its df
change               ``|g_ij(b) - g_ij(b0)|``, b0 the reference baseline (the last class)
range                ``max_b g_ij(b) - min_b g_ij(b)``, over all baselines tried
p over all           the largest score statistic, exact (`_max_score`)
===================  =====================================================================

The smallest of the single p-values is not valid: it picks. The p-value over all baselines is.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._all_baselines import fit_each_baseline
from ._baseline_result import BaselineSensitivity
from ._calibration_test import N_RESAMPLES, chi2_sf
from ._chunks import one_blas_thread
from ._fit import MCLLOFit
from ._labels import find_class
from ._max_score import MaxScore, max_score_test
from ._model import recalibrate
from ._monte_carlo import Seed
from ._predictions import Predictions, as_predictions
from ._table import Table
from .exceptions import InputError

Floats = NDArray[np.float64]


@one_blas_thread()
def baseline_sensitivity(
    probs: Any,
    y: Any = None,
    *,
    baselines: Sequence[Hashable] | None = None,
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
    classes: Any = None,
    sample_weight: Any = None,
    normalize: bool = False,
    clip: float | None = None,
) -> BaselineSensitivity:
    """Fit with every class as the baseline, and test calibration over all of them at once.

    Parameters
    ----------
    probs : array-like, frame or Predictions
        Predicted probabilities, shape (n_samples, n_classes).
    y : array-like of shape (n_samples,)
        The labels that came true; not given beside a `Predictions`.
    baselines : sequence of labels, optional
        The baselines to try; default all, which needs at most 50 classes. The p-value covers the
        ones tried: choose them without looking at the labels (the most predicted classes, say).
    n_resamples : int
        Draws of labels for the p-value over all baselines.
    seed : int or numpy Generator, optional
        Makes draws repeatable; another one than made simulated data.
    classes, sample_weight, normalize, clip
        As in `Predictions.from_arrays`.

    Returns
    -------
    BaselineSensitivity
        `table`, `max_score`, `pvalue`, `mean_range`, `largest_range`, `verdict`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([1, 1, 1], size=400)
    >>> y = [rng.choice(3, p=row) for row in probs]
    >>> found = baseline_sensitivity(probs, y, seed=1)
    >>> [round(s, 2) for s in found.table["statistic"]]
    [2.23, 2.85, 2.53]
    >>> found.pvalue > 0.05
    True
    """
    options = {"classes": classes, "sample_weight": sample_weight}
    predictions = as_predictions(probs, y, normalize=normalize, clip=clip, **options)
    columns = _columns(predictions, baselines)
    fits = fit_each_baseline(predictions, [predictions.classes[b] for b in columns])
    test = max_score_test(predictions, columns, n_resamples=n_resamples, seed=seed)
    changes = _Changes(predictions, fits)
    return BaselineSensitivity(
        table=_table(fits, test, changes),
        reference=predictions.baseline,
        max_score=test.statistic,
        pvalue=test.pvalue,
        method=test.method,
        n_resamples=test.n_resamples,
        seed=test.seed,
        mean_range=changes.mean_range,
        largest_range=changes.largest_range,
        label_disagreement=changes.disagreement,
        n_classes=predictions.n_classes,
    )


def _columns(predictions: Predictions, baselines: Sequence[Hashable] | None) -> NDArray[np.intp]:
    """Return the columns of the baselines to try, the reference always among them."""
    if baselines is None:
        return np.arange(predictions.n_classes)
    if isinstance(baselines, str) or len(baselines) == 0:
        raise InputError(f"baselines must be a list of classes; got {baselines!r}.")
    asked = {find_class(b, predictions.classes, "baselines") for b in baselines}
    return np.array(sorted(asked | {predictions.baseline_index}), dtype=np.intp)


class _Changes:
    """How recalibrated probabilities of the fitted rows differ between fits; weights count rows."""

    def __init__(self, predictions: Predictions, fits: Sequence[MCLLOFit]) -> None:
        self.predictions, weight = predictions, predictions.sample_weight
        self.used = slice(None) if weight is None else np.flatnonzero(weight > 0.0)
        self.weight = None if weight is None else weight[self.used]
        base = self._repaired(next(f for f in fits if f.baseline == predictions.baseline))
        low, high, same = base.copy(), base.copy(), np.ones(len(base), dtype=bool)
        self.largest: list[float] = []
        self.mean: list[float] = []
        self.labels: list[float] = []
        for fit in fits:
            g = self._repaired(fit)
            away, moved = np.abs(g - base), g.argmax(axis=1) != base.argmax(axis=1)
            self.largest.append(float(away.max()))
            self.mean.append(self._average(away.mean(axis=1)))
            self.labels.append(self._average(moved))
            np.minimum(low, g, out=low)
            np.maximum(high, g, out=high)
            same &= ~moved
        self.largest_range = float((high - low).max())
        self.mean_range = self._average((high - low).mean(axis=1))
        self.disagreement = self._average(~same)

    def _repaired(self, fit: MCLLOFit) -> Floats:
        log_odds = self.predictions.with_baseline(fit.baseline).log_odds
        g: Floats = recalibrate(fit.theta, log_odds, fit.baseline_index)[self.used]
        return g

    def _average(self, by_row: NDArray[Any]) -> float:
        return float(np.average(by_row, weights=self.weight))


def _table(fits: Sequence[MCLLOFit], test: MaxScore, changes: _Changes) -> Table:
    return Table(
        {
            "baseline": [fit.baseline for fit in fits],
            "statistic": [fit.statistic for fit in fits],
            "df": [fit.df for fit in fits],
            "pvalue": [chi2_sf(fit.statistic, fit.df) for fit in fits],
            "log_likelihood": [fit.log_likelihood for fit in fits],
            "score": test.scores.tolist(),
            "largest_change": changes.largest,
            "mean_change": changes.mean,
            "label_changes": changes.labels,
            "separated": [fit.separated for fit in fits],
            "converged": [fit.converged for fit in fits],
        }
    )
