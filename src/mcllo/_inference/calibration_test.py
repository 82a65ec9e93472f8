"""`calibration_test`: the test that suits the rows and the baseline that was asked for.

==================  =============================================  ==============================
baseline a class    likelihood ratio (score, Wald) of that fit     `_inference/likelihood_tests`
baseline "auto"     fit of the likeliest baseline, p-value of the  `_inference/max_score`
                    largest score over all baselines
groups, or weights  score test with the variance of the groups'    `_inference/robust`
that are no counts  scores; standard errors by the sandwich
==================  =============================================  ==============================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

from .._fit.fit import MCLLOFit, fit_predictions
from .._fit.sandwich import robust_fit
from .._validation.labels import RESERVED_LABELS
from .._validation.predictions import Predictions, RowOptions, reads_rows
from .._validation.rounded import unrounded_predictions
from ..exceptions import Either, InputError, Phrase
from .budget import N_RESAMPLES
from .likelihood_tests import CalibrationTest, Method, Statistic, run_test
from .max_score import best_baseline
from .monte_carlo import Seed
from .pvalue import Ground, PValue, Reason
from .robust import RobustTest, robust_test


@dataclass(frozen=True, eq=False)
class FittedTest:
    """A fit with its test; `predictions` refer to the fit's baseline."""

    predictions: Predictions
    fit: MCLLOFit
    test: CalibrationTest
    robust: RobustTest | None = None


@reads_rows(RowOptions)
def calibration_test(
    probs: Any = None,
    y: Any = None,
    *,
    statistic: Statistic = "lr",
    method: Method = "auto",
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
    baseline: Any = None,
    **data: Unpack[RowOptions],
) -> CalibrationTest:
    """Test whether labels follow the predicted probabilities.

    Parameters
    ----------
    probs : array-like, frame or Predictions
        Predicted probabilities, shape (n_samples, n_classes).
    y : array-like of shape (n_samples,)
        The labels that came true; not given beside a `Predictions`.
    statistic : {'lr', 'score', 'wald'}
        Likelihood ratio (the paper's), score, or Wald; not used with `groups`.
    method : {'auto', 'chi2', 'exact', 'sequential'}
        'exact' makes all `n_resamples` draws; 'sequential' stops when 50 draws were as extreme as
        the data, and is exact too; 'auto' uses chi-square where it can be trusted and 'sequential'
        where not, unless a guaranteed bound shows more than simulation could.
    n_resamples : int
        Most draws of labels.
    seed : int or numpy Generator, optional
        Makes draws repeatable. Use another seed than the one that made simulated data: the draws
        are the stream of ``numpy.random.default_rng(seed)``.
    baseline : label or 'auto', optional
        Reference class of the log odds, by default the last that occurs. 'auto' takes the
        likeliest; the p-value is then that of the largest score statistic over all baselines, and
        pays for the choice.
    logits, classes, prefix, sample_weight, normalize, clip, weight_kind : optional
        How rows are read; each is described in `Predictions.from_arrays`.
    groups : array-like of shape (n_samples,), optional
        Group of each row: rows of one may depend on each other. The test is then the cluster-robust
        score test, and `statistic` and `method` are not used.

    Returns
    -------
    CalibrationTest
        `statistic`, `df`, `pvalue`, `method`, `rejects(alpha)`; a `RobustTest` with `groups` or
        survey weights.

    Raises
    ------
    InputError
        When the data or an option break a rule; the message names the row, the value and the
        remedy.

    See Also
    --------
    assess : The test with estimates and measures.
    robust_test : For rows that depend on each other.
    omnibus_test : Sees departures of any shape.
    subgroups : The test in parts of the rows.

    Notes
    -----
    H0: delta = gamma = 1, that is, labels are draws from the predictions. The likelihood ratio test
    of this model is that of [1]_ and of [2]_. 'exact' p-values count how many of `n_resamples`
    drawn label sets are as extreme as the data, the data included [3]_; 'sequential' stops as [4]_
    do; the bound is the split likelihood ratio of [5]_.

    Under H0 nothing is estimated, so that drawing labels from the predictions gives a test of the
    given level at any number of rows. The test is blind to departures other than shifts and slopes
    of the log odds.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.
    .. [2] K. Van Hoorde, Y. Vergouwe, D. Timmerman, S. Van Huffel, E. W. Steyerberg, B. Van Calster
           (2014). Assessing calibration of multinomial risk prediction models. Statistics in
           Medicine 33:2585-2596.
    .. [3] B. Phipson, G. K. Smyth (2010). Permutation P-values should never be zero: calculating
           exact P-values when permutations are randomly drawn. Statistical Applications in Genetics
           and Molecular Biology 9.
    .. [4] J. Besag, P. Clifford (1991). Sequential Monte Carlo p-values. Biometrika 78:301-304.
    .. [5] L. Wasserman, A. Ramdas, S. Balakrishnan (2020). Universal inference. Proceedings of the
           National Academy of Sciences 117:16880-16890.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([1, 1, 1], size=400)
    >>> y = [rng.choice(3, p=row) for row in probs]
    >>> test = calibration_test(probs, y)
    >>> test.df, test.method, test.rejects(alpha=0.05)
    (4, 'chi2', False)
    """
    rule, baseline = split_baseline(baseline)
    predictions = unrounded_predictions(probs, y, baseline=baseline, **data)
    options: dict[str, Any] = {"n_resamples": n_resamples, "seed": seed}
    return fit_and_test(predictions, rule, statistic=statistic, method=method, **options).test


def split_baseline(baseline: Any, *, allowed: tuple[str, ...] = ("auto",)) -> tuple[str, Any]:
    """Return ('auto' or 'all', None) for these words, else ('', baseline)."""
    if not (isinstance(baseline, str) and baseline in RESERVED_LABELS):
        return "", baseline
    if baseline not in allowed:
        message = Phrase(
            "{found} averages maps and is for recalibration ({}); here baseline must be a class, "
            "or 'auto'.",
            Either("MCLLOCalibrator", shell="mcllo fit"),
        )
        raise InputError(message, argument="baseline", value=baseline)
    return baseline, None


def fit_and_test(
    predictions: Predictions,
    rule: str = "",
    *,
    statistic: Statistic = "lr",
    method: Method = "auto",
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
) -> FittedTest:
    """Fit and test validated predictions; `rule` is that of `split_baseline`."""
    refuse_choice(predictions, rule)
    draws: dict[str, Any] = {"n_resamples": n_resamples, "seed": seed}
    if rule == "auto":
        fit, test = best_baseline(predictions, **draws)
        return FittedTest(predictions.with_baseline(fit.baseline), fit, test)
    fit = fit_predictions(predictions)
    if needs_robust(predictions):
        return robust_score_test(predictions, fit, **draws)
    test = run_test(predictions, fit, statistic=statistic, method=method, **draws)
    return FittedTest(predictions, fit, test)


def needs_robust(predictions: Predictions) -> bool:
    """Whether rows depend on each other, or their weights are no counts."""
    return not predictions.counts_rows or predictions.groups is not None


def honest_fit(predictions: Predictions, fit: MCLLOFit) -> MCLLOFit:
    """Return the fit with robust standard errors where its own would not hold for these rows."""
    rows = predictions.with_importance_weights()
    return robust_fit(rows, fit) if needs_robust(rows) else fit


def refuse_choice(predictions: Predictions, rule: str) -> None:
    """Refuse a baseline chosen by the labels where no p-value pays for the choice."""
    if rule and needs_robust(predictions):
        message = Phrase(
            "{found} must not be combined with groups or weights that are no counts: the p-value "
            "that pays for the choice needs independent rows."
        )
        raise InputError(message, argument="baseline", value=rule, remedy="Name the baseline.")


def robust_score_test(
    predictions: Predictions, fit: MCLLOFit, *, n_resamples: int = N_RESAMPLES, seed: Seed = None
) -> FittedTest:
    """Return the robust score test of rows that were fitted already, and their robust errors."""
    found = robust_test(predictions, n_resamples=n_resamples, seed=seed)
    weighted = f"{predictions.weight_kind} weights"
    ground = Ground(weighted) if predictions.groups is None else Ground.GROUPS
    why = Reason(ground, notes=(found.reason,))
    own = PValue(found.pvalue, found.method, found.n_resamples, found.seed, why)
    test = CalibrationTest.from_pvalue(found.statistic, found.df, "robust_score", own)
    return FittedTest(predictions, robust_fit(predictions, fit), test, found)
