"""`same_map`: do two samples follow one map? Likelihood ratio, labels of both drawn anew.

=========  =========================================================================================
statistic  ``2 [sup l_t + sup l_h - sup (l_t + l_h)]`` over MCLLO maps: training rows t, holdout h,
           each with a map of its own, against one map for both; finite also where a sample is
           separated
draws      labels of both samples from one map, fitted to both with a ridge of 1, so that it always
           exists; all three suprema anew for each draw
p-value    as any other by drawing (`_inference/monte_carlo`), but that the map is an estimate:
           approximate
=========  =========================================================================================

Measured where training rows hold few errors for each parameter, nominal 5 %: see
`docs/how-to/compare-methods.md`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._fit.fit import fit_predictions
from .._fit.objective import free_parameters
from .._model.batched_labels import RELATIVE_TIE_TOL, LikelihoodRatio
from .._model.likelihood import recalibrate, sufficient_statistic
from .._utils.results import Floats
from .._utils.statements import ESTIMATION_WARNINGS, suppress_warnings
from .._validation.predictions import Predictions
from .monte_carlo import StatisticDraws, expand_weights, monte_carlo_p
from .pvalue import PValue

RIDGE = 1.0


class TwoSamples:
    """Both samples under the one map that their labels are drawn from."""

    def __init__(self, train: Predictions, holdout: Predictions, seed: int) -> None:
        first, second = expand_weights(train), expand_weights(holdout)
        both = join_samples(first, second)
        with suppress_warnings(*ESTIMATION_WARNINGS):
            fit = fit_predictions(both, penalty=RIDGE)
        both = both.with_probs(recalibrate(fit.theta, both.log_odds, both.baseline_index))
        cut, n = first.n_samples, both.n_samples
        self.parts = both.take(np.arange(cut)), both.take(np.arange(cut, n))
        self.ratios = [
            LikelihoodRatio(rows.log_odds, None, free_parameters(rows.log_odds))
            for rows in (*self.parts, both)
        ]
        another = int(np.random.default_rng([seed, 3]).integers(2**63))
        self.draws = StatisticDraws(self.parts[0], seed), StatisticDraws(self.parts[1], another)

    def observed(self) -> float:
        """Return the statistic of the labels at hand."""
        own = [sufficient_statistic(rows.log_odds, rows.model_codes)[None] for rows in self.parts]
        return float(self._statistics(*own)[0])

    def draw_statistics(self, start: int, size: int) -> Floats:
        """Return the statistics of draws ``start .. start + size``."""
        return self._statistics(*(draws(start, size) for draws in self.draws))

    def _statistics(self, first: Floats, second: Floats) -> Floats:
        """Return the likelihood ratios of the samples' sufficient statistics."""
        apart = self.ratios[0].statistics(first) + self.ratios[1].statistics(second)
        return apart - self.ratios[2].statistics(first + second)


def same_map(
    train: Predictions,
    holdout: Predictions,
    *,
    n_resamples: int,
    seed: int,
    exceedances: int | None = None,
) -> PValue:
    """Return the p-value of one MCLLO map in both samples; weights must be whole numbers."""
    samples = TwoSamples(train, holdout, seed)
    value = samples.observed()
    least = value - RELATIVE_TIE_TOL * max(1.0, value)
    found = monte_carlo_p(
        lambda start, size: samples.draw_statistics(start, size) >= least,
        n_resamples=n_resamples,
        batch=min(draws.batch for draws in samples.draws),
        seed=seed,
        stop_at=exceedances,
    )
    return replace(found, method="bootstrap")


def join_samples(first: Predictions, second: Predictions) -> Predictions:
    """Return the rows of both, of the same classes and baseline, each counting once."""
    logits = None
    if first.logits is not None and second.logits is not None:
        logits = np.vstack([first.logits, second.logits])
    return replace(
        first,
        probs=np.vstack([first.probs, second.probs]),
        codes=np.concatenate([first.codes, second.codes]),
        logits=logits,
        sample_weight=None,
        groups=None,
        raised=None,
    )
