"""`assess`: rows in memory, or a Dask collection, to what a person needs to act on them."""

from __future__ import annotations

from typing import Any, Unpack

from .._inference.budget import N_RESAMPLES
from .._inference.calibration_test import split_baseline_rule
from .._inference.likelihood_tests import Method, Statistic
from .._inference.monte_carlo import Seed
from .._utils.optional import load_application
from .._validation.frames import is_dask
from .._validation.rounding import unrounded_predictions
from .._validation.row_options import RowOptions, takes_row_options
from .assessment import Assessment, assess_predictions


@takes_row_options(RowOptions)
def assess(
    probs: Any = None,
    y: Any = None,
    *,
    baseline: Any = None,
    statistic: Statistic = "lr",
    method: Method = "auto",
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
    by: Any = None,
    alpha: float = 0.05,
    full: bool = False,
    costs: Any = None,
    cost_tolerance: float | None = None,
    **data: Unpack[RowOptions],
) -> Assessment:
    """Judge predictions: test calibration, estimate what is wrong, and measure it.

    Parameters
    ----------
    probs : array-like, frame, Predictions, or Dask array or dataframe
        Predicted probabilities, shape (n_samples, n_classes); left out when `logits` is given:
        ``assess(y=y, logits=z)``.
    y : array-like of shape (n_samples,), optional
        The labels that came true; not given beside a `Predictions`.
    baseline : label or 'auto', optional
        Reference class of the log odds. Default: the last class that occurs in `y`; 'auto' takes
        the likeliest, and the p-value pays for the choice.
    statistic : {'lr', 'score', 'wald'}
        Likelihood ratio (the paper's), score, or Wald.
    method : {'auto', 'chi2', 'exact', 'sequential'}
        How p-values are computed: by chi-square, by `n_resamples` draws of labels, or by draws that
        stop once 50 were as extreme as the data. 'auto' takes chi-square where it can be trusted
        and draws labels elsewhere.
    n_resamples : int
        Most draws of labels for a p-value.
    seed : int or numpy Generator, optional
        Makes draws repeatable.
    by : array-like of shape (n_samples,) or str, optional
        Subgroup of each row (a station, a sex), or the frame's column that holds it: are all of
        them alike, and which is off? See ``assessment.subgroups`` and `mcllo.subgroups`.
    alpha : float
        Level at which it is printed, and at which miscalibrated classes are looked for.
    full : bool
        Compute also what only the full text prints: nested models and tests of single classes.
    costs : array-like, frame, mapping or Costs, optional
        What each action costs where each class is true, in any form of `Costs`: what acting on the
        predictions costs, and what recalibration would save, is then said too.
    cost_tolerance : float, optional
        Cost of a case that is too little to matter: the verdict is then "negligible" where
        recalibration would save no more, whatever the size of the error.
    logits, classes, prefix, sample_weight, normalize, clip, missing, weight_kind : optional
        How rows are read; each is described in `Predictions.from_arrays`.
    groups : array-like of shape (n_samples,), optional
        Group of each row (an animal, a patient): rows of one may depend on each other. The verdict
        then rests on `robust_test`.

    Returns
    -------
    Assessment
        `test`, `fit`, `metrics`, `in_the_large`, `details`; ``print`` it for a report.

    Raises
    ------
    InputError
        When the data or an option break a rule; the message names the row, the value and the
        remedy.

    See Also
    --------
    calibration_test : The test alone.
    compare : Recalibration methods beside each other.
    decision_value : What acting on predictions costs, by itself.
    report : A page that can be read without statistics.
    Predictions : Each option of how rows are read.

    Notes
    -----
    The model, its likelihood ratio test and its use for recalibration are those of [1]_; model and
    test are also those of [2]_. Beside them stand tests that see other departures, because the
    likelihood ratio test is blind to those.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.
    .. [2] K. Van Hoorde, Y. Vergouwe, D. Timmerman, S. Van Huffel, E. W. Steyerberg, B. Van Calster
           (2014). Assessing calibration of multinomial risk prediction models. Statistics in
           Medicine 33:2585-2596.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> honest = rng.dirichlet([1, 1, 1], size=4000)
    >>> y = [rng.choice(["a", "b", "c"], p=row) for row in honest]
    >>> sharp = honest**2 / (honest**2).sum(axis=1, keepdims=True)  # overconfident
    >>> a = assess(sharp, y)
    >>> a.test.rejects(alpha=0.05), a.fit.gamma.round(1)
    (True, array([0.5, 0.5]))
    """
    rule, baseline = split_baseline_rule(baseline)
    options: dict[str, Any] = {"statistic": statistic, "method": method}
    options |= {"n_resamples": n_resamples, "seed": seed, "alpha": alpha, "full": full}
    options |= {"costs": costs, "cost_tolerance": cost_tolerance}
    if any(map(is_dask, (probs, y, by, *data.values()))):
        dask_rows = load_application("streaming.dask")
        return dask_rows.assess_dask(probs, y, rule, baseline, by, options, **data)
    predictions = unrounded_predictions(probs, y, baseline=baseline, by=by, **data)
    return assess_predictions(predictions, rule, **options)
