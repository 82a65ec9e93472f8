"""`best_baseline`: the likeliest baseline, and a p-value that pays for the choice.

All baselines have the same identity, so the likeliest fit has the largest likelihood ratio
statistic ``max_b lambda_b``. Its chi-square p-value is too small: it ignores that the labels chose
b. The exact p-value of ``max_b lambda_b`` would refit every draw with every baseline; that of the
largest score statistic ``max_b S_b`` needs no fit (`_max_score`), holds over all baselines whatever
the labels choose, and is the one reported.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._all_baselines import fit_each_baseline, warn_once
from ._calibration_test import N_RESAMPLES
from ._fit import MCLLOFit
from ._max_score import max_score_test
from ._monte_carlo import Seed
from ._predictions import Predictions

TIE = 1e-7
"""Log likelihoods closer than this (relative) count as equal: rounding does not choose."""


@dataclass(frozen=True, eq=False)
class BaselineChoice:
    """The baseline whose fit is likeliest, and a p-value that pays for the choice.

    Attributes
    ----------
    fit : MCLLOFit
        The likeliest of the fits that exist (of all, where none does). A tie, as always for two
        classes, goes to the baseline of the predictions.
    max_score : float
        Largest score statistic over all baselines.
    pvalue : float
        Of `max_score`, by `method`: valid although the baseline was chosen by these labels. The
        likelihood ratio statistic of `fit` has no p-value of its own here: chi-square's would
        ignore the choice.
    method : {'exact', 'bonferroni'}
        How the p-value was computed; see `MaxScore`.
    n_resamples : int
        Draws made.
    seed : int or None
        What the draws were made from.
    """

    fit: MCLLOFit
    max_score: float
    pvalue: float
    method: str
    n_resamples: int
    seed: int | None

    @property
    def baseline(self) -> Hashable:
        """The chosen class."""
        return self.fit.baseline

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        names = ("baseline", "max_score", "pvalue", "method", "n_resamples", "seed")
        return {**{name: getattr(self, name) for name in names}, "fit": self.fit.to_dict()}


def best_baseline(
    predictions: Predictions, *, n_resamples: int = N_RESAMPLES, seed: Seed = None
) -> BaselineChoice:
    """Choose the baseline of the largest likelihood; the p-value covers all that were tried.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([1, 1, 1], size=400)
    >>> p = Predictions.from_arrays(probs, [rng.choice(3, p=row) for row in probs])
    >>> chosen = best_baseline(p, seed=1)
    >>> chosen.baseline, chosen.pvalue > 0.05
    (1, True)
    """
    fits = fit_each_baseline(predictions, predictions.classes)
    fit = _likeliest(fits, predictions.baseline)
    warn_once([fit])
    columns = np.arange(predictions.n_classes)
    test = max_score_test(predictions, columns, n_resamples=n_resamples, seed=seed)
    return BaselineChoice(
        fit, test.statistic, test.pvalue, test.method, test.n_resamples, test.seed
    )


def likeliest_baseline(predictions: Predictions, **options: Any) -> Hashable:
    """Return the baseline of the largest likelihood; `options` are those of `fit_predictions`."""
    fits = fit_each_baseline(predictions, predictions.classes, **options)
    return _likeliest(fits, predictions.baseline).baseline


def _likeliest(fits: Sequence[MCLLOFit], preferred: Hashable) -> MCLLOFit:
    """Return the likeliest fit that exists; of equals the preferred baseline's, else the first."""
    exist = [fit for fit in fits if fit.converged] or list(fits)
    best = max(fit.log_likelihood for fit in exist)
    equals = [fit for fit in exist if fit.log_likelihood >= best - TIE * max(1.0, abs(best))]
    return next((fit for fit in equals if fit.baseline == preferred), equals[0])
