"""`calibration_test`: the test that suits the rows and the baseline that was asked for.

==================  =============================================  ==============================
baseline a class    likelihood ratio (score, Wald) of that fit     `_inference/likelihood_tests`
baseline "auto"     fit of the likeliest baseline, p-value of the  `best_baseline`
                    largest score over all baselines
groups, or weights  score test with the variance of the groups'    `_inference/robust`
that are no counts  scores; standard errors by the sandwich
choice sets         likelihood ratio or score of one slope and a   `_fit/choice_fit`
                    shift for each position
==================  =============================================  ==============================

`max_score_test`: one exact p-value for all baselines, of the largest score statistic ``max_b S_b``.
For baseline b the score at the identity needs the class counts and, of each other class j, the sum
of its log odds against b over the rows labelled j. With z = log x,

=======================  ===========================================================
own sums                 ``own_j = sum_{i: y_i = j} z_ij``
cross sums               ``M_jb = sum_{i: y_i = j} z_ib``
log odds sums            ``D_jb = own_j - M_jb``, every baseline from one pass
score                    ``U_b = (n_j - E n_j; D_jb - E D_jb)``, j other than b
statistic                ``S_b = U_b' H_b(theta0)^-1 U_b``; the test takes ``max_b S_b``
=======================  ===========================================================

H_b and the means see no labels, so all draws and the data share them and nothing is fitted again.
One set of labels serves all baselines: given X the p-value is exact at any n. M is the product of
a sparse one-hot matrix and z, as many additions as there are (draw, row, baseline) triples.

`best_baseline` reports it beside the likeliest fit. All baselines have the same identity, so that
fit has the largest likelihood ratio ``max_b lambda_b``, and its chi-square p-value is too small: it
ignores that the labels chose b. The exact one would refit every draw with every baseline; that of
``max_b S_b`` needs no fit and holds over all baselines whatever the labels choose.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from .._fit.choice_fit import ChoiceFit, fit_choice_sets
from .._fit.covariance import with_robust_covariance
from .._fit.fit import (
    MCLLOFit,
    fit_each_baseline,
    fit_predictions,
    warn_of_undetermined_fits,
)
from .._fit.objective import free_parameters
from .._model.batched import RELATIVE_TIE_TOL
from .._model.kernel import LogPartition
from .._model.likelihood import identity_theta
from .._utils.linalg import pseudo_inverse
from .._utils.results import Codes, Floats
from .._validation.labels import RESERVED_LABELS
from .._validation.predictions import Predictions
from .._validation.rounding import unrounded_predictions
from .._validation.row_options import RowOptions, takes_row_options
from ..exceptions import InputError
from .budget import BATCH_ENTRIES, N_RESAMPLES
from .hypothesis_test import Ground, Reason, TestResult
from .likelihood_tests import CalibrationTest, Method, Statistic, run_test
from .monte_carlo import (
    Seed,
    check_n_resamples,
    class_counts_and_sums,
    draw_labels,
    expand_weights,
    monte_carlo_pvalue,
    seed_entropy,
)

if TYPE_CHECKING:
    from .robust import RobustTest


def max_score_test(
    predictions: Predictions,
    columns: NDArray[np.intp],
    *,
    n_resamples: int = N_RESAMPLES,
    stop_at: int | None = None,
    seed: Seed = None,
) -> tuple[Floats, TestResult]:
    """Test calibration by the largest score statistic over the baselines in these columns.

    Return the score statistic of each baseline, and the p-value of the largest: exact, by labels
    drawn from the predictions, until `stop_at` of them, if given, were as extreme.
    """
    check_n_resamples(n_resamples)
    entropy = seed_entropy(seed)
    scores = BaselineScores(predictions, columns)
    observed = scores.observed()
    largest = float(observed.max())
    # Draws that tie with the data may differ from them by rounding, relative and around 0.
    threshold = largest * (1.0 - RELATIVE_TIE_TOL) - 1e-12
    rows = expand_weights(predictions)
    log_probs = _log_probs_less_maximum(rows)

    def exceeds(start: int, size: int) -> NDArray[np.bool_]:
        labels = draw_labels(rows.probs, entropy, start, size)
        counts, odds_sums = class_counts_and_log_odds_sums(labels, log_probs, columns)
        return np.asarray(scores(counts, odds_sums).max(axis=1) >= threshold)

    entries_of_draw = max(rows.n_samples, rows.n_classes * len(columns))
    batch = max(1, min(512, BATCH_ENTRIES // entries_of_draw))
    found = monte_carlo_pvalue(
        exceeds, n_resamples=n_resamples, batch=batch, seed=entropy, stop_at=stop_at
    )
    return observed, replace(found, statistic=largest)


class BaselineScores:
    """``(counts, log odds sums) -> S_b`` of every baseline, for many label vectors at once."""

    def __init__(self, predictions: Predictions, columns: NDArray[np.intp]) -> None:
        self.predictions = predictions
        self.columns = columns
        self.log_probs = _log_probs_less_maximum(predictions)
        expected = predictions.probs
        if predictions.sample_weight is not None:
            expected = expected * predictions.sample_weight[:, None]
        self.mean_counts, self.mean_odds = self._class_counts_and_log_odds_sums(
            expected
        )
        self.df = []
        inverses = []
        for b in columns:
            inverse, df = _inverse_information_and_df(predictions, int(b))
            inverses.append(inverse)
            self.df.append(df)
        self.inverse = np.stack(inverses)

    def __call__(self, counts: Floats, odds: Floats) -> Floats:
        """Return statistics of shape (B, m) from counts (B, c) and log odds sums (B, c, m)."""
        by_gamma = (odds - self.mean_odds).transpose(2, 0, 1)
        by_tau = np.broadcast_to(counts - self.mean_counts, by_gamma.shape)
        score = np.concatenate([by_tau, by_gamma], axis=2)
        return np.einsum("mbi,mbi->bm", score @ self.inverse, score)

    def observed(self) -> Floats:
        """Return the statistics of the labels that came true, any weights."""
        p = self.predictions
        weight = 1.0 if p.sample_weight is None else p.sample_weight
        one_hot = np.zeros(p.probs.shape)
        one_hot[np.arange(p.n_samples), p.codes] = weight
        counts, odds = self._class_counts_and_log_odds_sums(one_hot)
        return self(counts[None], odds[None])[0]

    def _class_counts_and_log_odds_sums(
        self, membership: Floats
    ) -> tuple[Floats, Floats]:
        """Return counts and log odds sums; row i is of class j by ``membership[i, j]``."""
        own_sums = np.einsum("ij,ij->j", membership, self.log_probs)
        cross_sums = membership.T @ self.log_probs[:, self.columns]
        return membership.sum(axis=0), own_sums[:, None] - cross_sums


def class_counts_and_log_odds_sums(
    labels: Codes, log_probs: Floats, columns: Codes
) -> tuple[Floats, Floats]:
    """Return counts (B, c) and log odds sums (B, c, m) of labels of shape (B, n).

    Row i of the one-hot matrix holds one entry a draw, so it needs no sorting to be sparse.
    """
    from scipy.sparse import csr_array

    size, n = labels.shape
    c = log_probs.shape[1]
    counts, own_sums = class_counts_and_sums(labels, log_probs.T)
    draw_offset = c * np.arange(size)[:, None]
    cells = (labels + draw_offset).T
    cells = cells.astype(np.int32).ravel()
    row_ends = np.arange(0, cells.size + 1, size, dtype=np.int32)
    ones = np.ones(cells.size)
    one_hot = csr_array((ones, cells, row_ends), shape=(n, size * c))
    of_baselines = np.ascontiguousarray(log_probs[:, columns])
    cross_sums = np.asarray(one_hot.T @ of_baselines)
    cross_sums = cross_sums.reshape(size, c, -1)
    return counts, own_sums[:, :, None] - cross_sums


def _log_probs_less_maximum(predictions: Predictions) -> Floats:
    """Return log probabilities (or logits) of shape (n, c), each row less its maximum."""
    logits = predictions.logits
    if logits is None:
        logits = np.log(predictions.probs)
    largest = logits.max(axis=1, keepdims=True)
    return np.subtract(logits, largest, dtype=np.float64)


def _inverse_information_and_df(
    predictions: Predictions, baseline: int
) -> tuple[Floats, int]:
    """Return ``H_b(theta0)^-1`` in 2c rows, 0 for the baseline and what is fixed; and the df."""
    c = predictions.n_classes
    rows = predictions.with_baseline(predictions.classes[baseline])
    free = free_parameters(rows.log_odds)
    terms = LogPartition(rows.log_odds, rows.sample_weight)(identity_theta(c - 1))
    compared = np.delete(np.arange(c), baseline)
    place = np.concatenate([compared, compared + c])[free]
    inverse = np.zeros((2 * c, 2 * c))
    inverse[np.ix_(place, place)] = pseudo_inverse(terms.hessian[np.ix_(free, free)])
    return inverse, int(free.sum())


def best_baseline(
    predictions: Predictions, *, n_resamples: int = N_RESAMPLES, seed: Seed = None
) -> tuple[MCLLOFit, CalibrationTest]:
    """Choose the baseline of the largest likelihood; the p-value covers all that were tried.

    Return the likeliest of the fits that exist (of all, where none does; a tie, as always for two
    classes, goes to the baseline of the predictions), and the test of the largest score statistic.
    The likelihood ratio of the fit has no p-value of its own: chi-square's would ignore the choice.
    """
    fits = fit_each_baseline(predictions, predictions.classes)
    fit = _likeliest_fit(fits, predictions.baseline)
    warn_of_undetermined_fits([fit])
    columns = np.arange(predictions.n_classes)
    _, found = max_score_test(predictions, columns, n_resamples=n_resamples, seed=seed)
    test = CalibrationTest.from_result(replace(found, df=fit.df), kind="max_score")
    return fit, test.because(Reason("baseline"))


def likeliest_baseline(predictions: Predictions, **options: Any) -> Hashable:
    """Return the baseline of the largest likelihood; `options` are those of `fit_predictions`."""
    fits = fit_each_baseline(predictions, predictions.classes, **options)
    return _likeliest_fit(fits, predictions.baseline).baseline


def _likeliest_fit(fits: Sequence[MCLLOFit], preferred_baseline: Hashable) -> MCLLOFit:
    """Return the likeliest fit that exists; of equals the preferred baseline's, else the first."""
    existing = [fit for fit in fits if fit.converged] or list(fits)
    best = max(fit.log_likelihood for fit in existing)
    # Of two classes both baselines give the same fit, and rounding must not choose between them.
    least = best - 1e-7 * max(1.0, abs(best))
    equals = [fit for fit in existing if fit.log_likelihood >= least]
    for fit in equals:
        if fit.baseline == preferred_baseline:
            return fit
    return equals[0]


@dataclass(frozen=True, eq=False)
class FittedTest:
    """A fit with its test; `predictions` refer to the fit's baseline."""

    predictions: Predictions
    fit: MCLLOFit
    test: CalibrationTest
    robust: RobustTest | None = None


@takes_row_options(RowOptions)
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
        Predicted probabilities, shape (n_samples, n_classes); a `Predictions` also of choice sets.
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
    logits, classes, prefix, sample_weight, normalize, clip, missing, weight_kind : optional
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
    if isinstance(probs, Predictions) and probs.offered is not None:
        options: dict[str, Any] = {"statistic": statistic, "method": method}
        options |= {"n_resamples": n_resamples, "seed": seed}
        return fit_and_test_choices(probs, **options)[1]
    baseline_rule, baseline = split_baseline_rule(baseline)
    predictions = unrounded_predictions(probs, y, baseline=baseline, **data)
    fitted = fit_and_test(
        predictions,
        baseline_rule,
        statistic=statistic,
        method=method,
        n_resamples=n_resamples,
        seed=seed,
    )
    return fitted.test


def split_baseline_rule(
    baseline: Any, *, allowed: tuple[str, ...] = ("auto",)
) -> tuple[str, Any]:
    """Return ('auto' or 'all', None) for these words, else ('', baseline)."""
    if not (isinstance(baseline, str) and baseline in RESERVED_LABELS):
        return "", baseline
    if baseline not in allowed:
        message = (
            "{found} averages maps and is for recalibration ({mcllo_calibrator}); here baseline "
            "must be a class, or 'auto'."
        )
        raise InputError(message, argument="baseline", value=baseline)
    return baseline, None


def fit_and_test(
    predictions: Predictions,
    baseline_rule: str = "",
    *,
    statistic: Statistic = "lr",
    method: Method = "auto",
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
) -> FittedTest:
    """Fit and test validated predictions; `baseline_rule` is that of `split_baseline_rule`."""
    refuse_baseline_choice(predictions, baseline_rule)
    if baseline_rule == "auto":
        fit, test = best_baseline(predictions, n_resamples=n_resamples, seed=seed)
        return FittedTest(predictions.with_baseline(fit.baseline), fit, test)
    fit = fit_predictions(predictions)
    if needs_robust_covariance(predictions):
        return robust_score_test(predictions, fit, n_resamples=n_resamples, seed=seed)
    test = run_test(
        predictions,
        fit,
        statistic=statistic,
        method=method,
        n_resamples=n_resamples,
        seed=seed,
    )
    return FittedTest(predictions, fit, test)


def fit_and_test_choices(
    predictions: Predictions,
    *,
    statistic: Statistic = "lr",
    method: Method = "auto",
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
) -> tuple[ChoiceFit, CalibrationTest]:
    """Fit and test choice sets: is every delta 1, and gamma?"""
    if statistic == "wald":
        raise InputError(
            "{argument} must be 'lr' or 'score' for choice sets; got {value}.",
            argument="statistic",
            value=statistic,
        )
    fit = fit_choice_sets(predictions)
    test = run_test(
        predictions,
        fit,
        statistic=statistic,
        method=method,
        n_resamples=n_resamples,
        seed=seed,
    )
    return fit, test


def needs_robust_covariance(predictions: Predictions) -> bool:
    """Whether rows depend on each other, or their weights are no counts."""
    return not predictions.counts_rows or predictions.groups is not None


def robust_fit_if_needed(predictions: Predictions, fit: MCLLOFit) -> MCLLOFit:
    """Return the fit with robust standard errors where its own would not hold for these rows."""
    rows = predictions.with_importance_weights()
    return with_robust_covariance(rows, fit) if needs_robust_covariance(rows) else fit


def refuse_baseline_choice(predictions: Predictions, baseline_rule: str) -> None:
    """Refuse a baseline chosen by the labels where no p-value pays for the choice."""
    if baseline_rule and needs_robust_covariance(predictions):
        message = (
            "{found} must not be combined with groups or weights that are no counts: the p-value "
            "that pays for the choice needs independent rows."
        )
        raise InputError(
            message,
            argument="baseline",
            value=baseline_rule,
            remedy="Name the baseline.",
        )


def robust_score_test(
    predictions: Predictions,
    fit: MCLLOFit,
    *,
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
) -> FittedTest:
    """Return the robust score test of rows that were fitted already, and their robust errors."""
    from .robust import (
        robust_test,
    )  # what only dependent rows need is loaded for them alone

    found = robust_test(predictions, n_resamples=n_resamples, seed=seed)
    ground: Ground = "groups"
    if predictions.groups is None:
        is_survey = predictions.weight_kind == "survey"
        ground = "survey_weights" if is_survey else "importance_weights"
    why = Reason(ground, notes=(found.reason,))
    test = CalibrationTest.from_result(found, kind="robust_score").because(why)
    return FittedTest(
        predictions, with_robust_covariance(predictions, fit), test, found
    )
