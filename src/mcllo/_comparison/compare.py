"""`compare`: which recalibration works best here? Train + holdout + methods -> `Comparison`.

Two questions a p-value can answer about a map fitted on n_t rows and judged on n_h others:

=======================  =====================================================================
plain                    are these recalibrated numbers calibrated? ``lambda`` against its null
corrected                is it the same map in both samples? The fitted parameters carry noise of
                         their own: with q of them in a family nested in MCLLO's,
                         ``lambda ~ chi2_{d-q} + (1 + n_h/n_t) chi2_q`` when the map is right
=======================  =====================================================================

The plain test of nominal 5 % rejects a right map in about 20 % of cases on the paper's splits. The
corrected p-value exists for maximum likelihood MCLLO (q = d) and temperature scaling (q = 1). Where
training rows hold fewer than `MIN_TRAINING_ERRORS_PER_PARAMETER` expected errors for each of
MCLLO's parameters, its noise is far from normal (the corrected test of nominal 5 % rejected 10 to
35 %): labels of both samples are then drawn anew (`_inference/likelihood_tests`), or the p-value is
withheld and says why.

There is no such theory for other methods. With ``bootstrap=`` their corrected p-value is that of a
parametric bootstrap: labels of both samples are drawn from the method's map of both, it is
fitted anew to the first and judged on the second, and p is how often the statistic is as large.

Folds of a cross-validation ignore the labels. Where classes are spread evenly over folds, left-out
rows agree with the others by construction and hide how far a fit to class frequencies overshoots:
on calibrated predictions of 4 classes, 100 rows, MCLLO adds 0.043 to the log loss; stratified folds
say 0.024, others 0.042 (standard errors 0.004).
"""

from __future__ import annotations

import time
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from .._assessment.assessment import summary_metrics
from .._fit.choice_fit import ChoiceFit, fit_choice_sets
from .._fit.fit import MCLLOFit, fit_predictions
from .._inference.budget import (
    N_EXCEEDANCES_LARGE_TABLE,
    N_RESAMPLES_REPEATED,
    TEST_WORK,
)
from .._inference.calibration_test import needs_robust_covariance, robust_score_test
from .._inference.hypothesis_test import Reason
from .._inference.likelihood_tests import (
    CalibrationTest,
    check_statistic_and_method,
    common_map_test,
    expected_errors,
    join_samples,
    run_test,
    simulated_pvalue,
    work_of_draw,
)
from .._inference.likelihood_tests import (
    Method as TestMethod,
)
from .._inference.monte_carlo import Seed, seed_entropy
from .._utils.atomic_files import progress
from .._utils.notebook import show_progress
from .._utils.parallel import one_blas_thread
from .._utils.results import Floats
from .._utils.statements import (
    ESTIMATION_WARNINGS,
    catch_warnings,
    suppress_warnings,
    warn_once,
)
from .._validation.frames import n_columns
from .._validation.predictions import Predictions, predictions_for_inference
from .._validation.row_options import RowOptions, takes_row_options
from ..calibrators._choice import Fold, apply_calibrator, clone_and_fit
from ..exceptions import InputError, LabelShiftWarning
from ..metrics._scores import label_change
from .comparison import Comparison, ComparisonRow
from .methods import Method, Methods, choose_methods, fold_indices
from .recommend import UNCALIBRATED, Recommendation, recommend

DEFAULT_FOLDS = 5
"""Folds of ``compare(probs, y)``, as in scikit-learn."""
MIN_TRAINING_ERRORS_PER_PARAMETER = 10.0
"""Expected errors of the training rows, for each parameter, from which the noise of a fitted map is
that of large samples. Sizes at nominal 5 %: 12 % at 4.9, 10 % at 5.4; 2 to 5 % at 11 and more."""


@dataclass(frozen=True, eq=False)
class _MethodPredictions:
    """One method's probabilities for the rows it is judged on, and the key of its theory."""

    probs: Floats
    fit_seconds: float
    note: str
    family: str


@dataclass(frozen=True, eq=False)
class _CorrectedPValue:
    """A corrected p-value, how it was computed, and why so or why there is none."""

    pvalue: float | None = None
    method: str = ""
    reason: str = ""


@dataclass(frozen=True, eq=False)
class _MethodEvaluator:
    """How each set of probabilities is judged.

    `train` are the rows that maps were fitted to, `before` the judged rows as predicted, `results`
    what each method made of them, `lead` the differences in log loss to the smallest one; `ratio`
    is rows judged for each row fitted on, None where folds share rows, and `elsewhere` says that
    these were not `train`; `calibrators` are fitted anew
    by `bootstrap` draws; `test_method` is how p-values are computed, `drawing` is for exact ones.
    """

    train: Predictions
    before: Predictions
    results: dict[str, _MethodPredictions]
    lead: Recommendation
    ratio: float | None
    elsewhere: bool
    calibrators: dict[str, Any]
    bootstrap: int
    test_method: TestMethod
    drawing: dict[str, Any]

    def comparison_row(
        self, method_name: str, predictions: Predictions
    ) -> ComparisonRow:
        """Return one row of the table."""
        test = self._test_calibration(predictions)
        result = self.results.get(method_name)
        corrected = _CorrectedPValue()
        changed = None
        if result is not None:
            changed = label_change(
                self.before.probs,
                predictions.probs,
                sample_weight=self.before.sample_weight,
            )
            if not needs_robust_covariance(predictions):
                corrected = self._correct_pvalue(method_name, predictions, test)
        difference, low, high = self._log_loss_difference(method_name)
        return ComparisonRow(
            method=method_name,
            n=predictions.n_samples,
            statistic=test.statistic,
            df=test.df,
            pvalue=test.pvalue,
            pvalue_method=test.method,
            pvalue_corrected=corrected.pvalue,
            corrected_method=corrected.method,
            corrected_reason=corrected.reason,
            label_change=changed,
            **summary_metrics(predictions),
            log_loss_difference=difference,
            difference_low=low,
            difference_high=high,
            fit_seconds=None if result is None else result.fit_seconds,
            n_zero_labels=predictions.n_clipped_true,
            note="" if result is None else result.note,
        )

    def _test_calibration(self, predictions: Predictions) -> CalibrationTest:
        """Test calibration of some probabilities, by the robust test where rows depend."""
        # What a separated fit means is for the test to say.
        with suppress_warnings(*ESTIMATION_WARNINGS):
            fit = _fit(predictions)
        if not needs_robust_covariance(predictions):
            return run_test(predictions, fit, method=self.test_method, **self.drawing)
        assert isinstance(fit, MCLLOFit)  # choice sets have no weights and no groups
        draws = {name: self.drawing[name] for name in ("n_resamples", "seed")}
        return robust_score_test(predictions, fit, **draws).test

    def _log_loss_difference(self, method_name: str) -> tuple[float, float, float]:
        """Return how far a method's log loss lies above the best one's, with its interval."""
        if method_name == self.lead.method:
            return 0.0, 0.0, 0.0
        other = self.lead.difference(method_name)
        if other is None:
            return np.nan, np.nan, np.nan
        return other.difference, other.low, other.high

    def _correct_pvalue(
        self, method_name: str, predictions: Predictions, test: CalibrationTest
    ) -> _CorrectedPValue:
        """Return the p-value of "the same map in both samples", where there is theory for it."""
        from scipy.special import chdtri

        family = self.results[method_name].family
        n_fitted_of = {"mcllo": test.df, "temperature": 1, "identity": 0}
        n_fitted_of |= {"both": test.df, "slope": 1, "positions": test.df - 1}
        n_fitted = n_fitted_of.get(family)
        if self.ratio is None:
            return _CorrectedPValue()
        if n_fitted is None:
            return self._bootstrap_pvalue(method_name, test)
        n_errors = expected_errors(predictions) / self.ratio / max(test.df, 1)
        has_shifts = family in ("mcllo", "both", "positions")
        if has_shifts and n_errors < MIN_TRAINING_ERRORS_PER_PARAMETER:
            return self._simulate_corrected_pvalue(
                Reason("few_errors", n_errors), test.df
            )
        if self.results[method_name].note:
            return _CorrectedPValue(reason="its fit warned")
        tail = chi_square_mixture_tail(
            test.statistic, test.df, n_fitted, 1.0 + self.ratio
        )
        if test.method == "chi2":
            return _CorrectedPValue(tail, "chi2")
        if test.method == "bound":
            return _CorrectedPValue(max(tail, test.pvalue), "bound")
        # The statistic that is as far out under chi-square as the tail says; its exact p-value.
        equivalent = float(chdtri(test.df, tail)) if tail < 1.0 else 0.0
        found = simulated_pvalue(
            predictions, "lr", equivalent, "sequential", **self.drawing
        )
        return _CorrectedPValue(found.pvalue, found.method)

    def _bootstrap_pvalue(
        self, method_name: str, test: CalibrationTest
    ) -> _CorrectedPValue:
        """Return how often the statistic is as large where labels follow this method's own map."""
        samples = (self.train, self.before)
        has_weights = any(rows.sample_weight is not None for rows in samples)
        if not self.bootstrap or self.elsewhere or has_weights:
            return _CorrectedPValue()
        calibrator = self.calibrators[method_name]
        both = join_samples(*samples)
        n_train = self.train.n_samples
        n_as_large = 1
        with suppress_warnings():
            truth = apply_calibrator(clone_and_fit(calibrator, both), both)
            ends = truth.cumsum(axis=1)
            for draw in range(self.bootstrap):
                rng = np.random.default_rng([self.drawing["seed"], draw])
                uniform = rng.random((both.n_samples, 1)) * ends[:, -1:]
                codes = (ends < uniform).sum(axis=1).astype(both.codes.dtype)
                drawn = replace(both, codes=codes)
                train = drawn.take(np.arange(n_train))
                holdout = drawn.take(np.arange(n_train, both.n_samples))
                probs = apply_calibrator(clone_and_fit(calibrator, train), holdout)
                fit = fit_predictions(holdout.with_probs(probs))
                n_as_large += fit.statistic >= test.statistic
        return _CorrectedPValue(n_as_large / (self.bootstrap + 1), "bootstrap")

    def _simulate_corrected_pvalue(self, reason: Reason, df: int) -> _CorrectedPValue:
        """Return the p-value by drawing labels of both samples, or what keeps it from that."""
        samples = (self.train, self.before)
        work = 2.0 * sum(work_of_draw(rows, df, "lr") for rows in samples)
        if self.before.offered is not None:
            return _CorrectedPValue(reason=str(reason))
        if self.elsewhere:
            reason = reason.but("elsewhere")
        elif any(needs_robust_covariance(rows) for rows in samples):
            reason = reason.but("groups")
        elif self.drawing["n_resamples"] * work > TEST_WORK:
            reason = reason.but("size")
        if reason.limits:
            return _CorrectedPValue(reason=str(reason))
        found = common_map_test(self.train, self.before, **self.drawing)
        return _CorrectedPValue(found.pvalue, found.method, str(reason))


@show_progress("comparing")
@warn_once()
@one_blas_thread()
@takes_row_options(RowOptions)
def compare(
    train: Any = None,
    holdout: Any = None,
    *,
    y: Any = None,
    methods: Methods | str | None = None,
    cv: Any = None,
    fitted_on: float | None = None,
    baseline: Hashable | None = None,
    method: TestMethod = "auto",
    n_resamples: int = N_RESAMPLES_REPEATED,
    bootstrap: int = 0,
    seed: Seed = None,
    **data: Unpack[RowOptions],
) -> Comparison:
    """Compare recalibration methods: fit each on `train`, judge all on `holdout`.

    Parameters
    ----------
    train, holdout : Predictions, (probs, y) or dict
        Rows to learn from and rows to judge on; a dict has arguments of `Predictions.from_arrays`,
        such as ``{"y": y, "logits": z}``. Both may be choice sets, `Predictions.from_choices`.
    y : array-like, optional
        The labels that came true, of the rows to learn from, with `cv`:
        ``compare(probs, y=y, cv=5)``, ``compare(y=y, logits=z, cv=5)``,
        ``compare(frame, y="label", prefix="prob_", cv=5)``; ``compare(probs, y)`` is
        cross-validated by 5 folds.
    methods : sequence or dict, optional
        Keys of `CALIBRATORS` and calibrators that are not fitted, of this package or another; a
        dict names them. By default all that suit the data. Vector and matrix scaling read log
        probabilities where there are no logits, and are then named so (``vector_log_probs``).
        Of choice sets `ChoiceCalibrator` alone: ``slope``, ``positions``, ``both`` are its `terms`
        by maximum likelihood, and ``slope_ridge`` and so on with its default penalty.
    cv : int, splitter or iterable of (train, test), optional
        Instead of a holdout: judge on `train` itself, each row by maps fitted on the other folds.
        Folds of a number are random; rows of one group share theirs. A splitter such as
        `GroupKFold` is given `groups`.
    fitted_on : float, optional
        Rows (total weight) the maps were fitted on, for the corrected p-value; the size of `train`
        when not given.
    baseline : label, optional
        Reference class of the log odds; `train`'s when not given.
    method : {'auto', 'chi2', 'exact', 'sequential'}
        How p-values are computed, as in `calibration_test`. 'chi2' is the paper's: the table then
        has the likelihood ratio statistic and its degrees of freedom too. Not used with `groups`.
    n_resamples : int
        Most draws of labels for a p-value.
    bootstrap : int
        Draws of a corrected p-value for methods that have no theory of it: vector scaling, binning,
        calibrators of other packages. Each fits the method anew; 199 take minutes on large tables.
        0: none. Not for weighted rows and choice sets.
    seed : int or numpy Generator, optional
        Makes folds and draws repeatable.
    logits, classes, prefix, sample_weight, normalize, clip, missing, weight_kind, groups : optional
        How rows are read; each is described in `Predictions.from_arrays`.

    Returns
    -------
    Comparison
        One row per method, the uncalibrated rows first, and `recommendation`; print it, or see
        `to_frame`.

    Raises
    ------
    InputError
        When the data or an option break a rule; the message names the row, the value and the
        remedy.

    See Also
    --------
    Comparison : What comes out.
    Recommendation : Which method, and how sure that is.
    assess : One set of predictions.
    AutoCalibrator : Weighs methods instead of picking one.

    Notes
    -----
    Methods are ranked by log loss, a proper score, on rows that they were not fitted to. The paper
    [1]_ tests recalibrated holdout rows with the test for given predictions, which rejects too
    often because the map was estimated; the corrected p-value stands beside it.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> honest = rng.dirichlet([1, 1, 1], size=2000)
    >>> y = np.array([rng.choice(3, p=row) for row in honest])
    >>> sharp = honest**2 / (honest**2).sum(axis=1, keepdims=True)  # overconfident
    >>> c = compare((sharp[:1500], y[:1500]), (sharp[1500:], y[1500:]),
    ...             methods=("mcllo", "temperature"), seed=0)
    >>> c.recommendation.method, c.recommendation.improves, c.recommendation.ties
    ('temperature', True, ('mcllo',))
    """
    if y is None and _are_probs_and_labels(train, holdout):
        # as assess and fit take them; the folds judge what there are no other rows for
        y, holdout = holdout, None
        cv = DEFAULT_FOLDS if cv is None else cv
    given: dict[str, Any] = {"y": y, **data}
    beside = [name for name, value in given.items() if value is not None]
    if beside:
        if isinstance(train, (Predictions, tuple, dict)) or holdout is not None:
            rule = "stand beside probs alone: not beside a Predictions, a pair or a holdout"
            remedy = 'Pass {{"y": y, "logits": z}}.'
            raise InputError(argument=beside[0], rule=rule, remedy=remedy)
        train = {"probs": train, **given}
    learn = as_predictions(train, "train", None, baseline)
    check_statistic_and_method("lr", method)
    entropy = seed_entropy(seed)
    if (holdout is None) == (cv is None):
        message = "compare must get a holdout or {cv}, and not both."
        instead = "Without other rows to judge on, pass {cv:5}."
        raise InputError(message, remedy=instead if cv is None else None, values={})
    is_cross_validated = cv is not None
    judge = learn if is_cross_validated else _match_holdout_to_training(learn, holdout)
    if learn.offered is not None and bootstrap:
        raise InputError(
            argument="bootstrap", rule="be 0 for choice sets", value=bootstrap
        )
    chosen, skipped = choose_methods(learn, judge, methods)
    folds = fold_indices(cv, learn, entropy) if is_cross_validated else None
    results: dict[str, _MethodPredictions] = {}
    with progress("comparing", "methods") as advance:
        for one in chosen:
            results[one.name] = _fit_and_recalibrate(one, learn, judge, folds)
            advance(1)
    sets = {UNCALIBRATED: judge}
    for name, result in results.items():
        sets[name] = judge.with_probs(result.probs)
    n_fitted_on = (
        float(learn.class_weight.sum()) if fitted_on is None else float(fitted_on)
    )
    n_judged = float(judge.class_weight.sum())
    lead = recommend(sets, cross_validated=is_cross_validated)
    evaluator = _MethodEvaluator(
        train=learn,
        before=judge,
        results=results,
        lead=lead,
        ratio=None if is_cross_validated else n_judged / n_fitted_on,
        elsewhere=fitted_on is not None,
        calibrators={one.name: one.calibrator for one in chosen},
        bootstrap=check_n_draws(bootstrap),
        test_method=method,
        drawing={
            "n_resamples": n_resamples,
            "seed": entropy,
            "exceedances": N_EXCEEDANCES_LARGE_TABLE,
        },
    )
    tested = sets if is_cross_validated else {"uncalibrated_train": learn, **sets}
    rows = tuple(
        evaluator.comparison_row(name, predictions)
        for name, predictions in tested.items()
    )
    return Comparison(
        rows=rows,
        skipped=skipped,
        train=learn,
        holdout=judge,
        recalibrated=sets,
        cross_validated=is_cross_validated,
        seed=entropy,
        recommendation=lead,
        test_method=method,
    )


def _are_probs_and_labels(train: Any, holdout: Any) -> bool:
    """Whether two arguments are a table and its labels, and not rows to learn from and to judge."""
    if isinstance(train, (Predictions, tuple, dict)) or holdout is None:
        return False
    # A pair (probs, y) is a tuple; a list of labels is not, and a column name is a word.
    if isinstance(holdout, (Predictions, tuple, dict)):
        return False
    return isinstance(holdout, str) or (
        n_columns(train) > 1 and n_columns(holdout) == 1
    )


def check_n_draws(bootstrap: Any) -> int:
    """Return a number of draws, or refuse what is none."""
    is_whole = isinstance(bootstrap, (int, np.integer))
    if not is_whole or isinstance(bootstrap, bool) or bootstrap < 0:
        rule = "be a whole number of draws, 0 for none"
        raise InputError(argument="bootstrap", rule=rule, value=bootstrap)
    return int(bootstrap)


def _match_holdout_to_training(training: Predictions, holdout: Any) -> Predictions:
    """Return the rows to judge on, with the classes and the baseline of those learned from."""
    has_choices = getattr(holdout, "offered", None) is not None
    if has_choices != (training.offered is not None):
        raise InputError("train and holdout must both be choice sets, or neither.")
    judge = as_predictions(holdout, "holdout", training.classes, None)
    columns = "classes"
    if training.offered is not None:
        columns = "positions"
    if training.classes != judge.classes:
        raise InputError(
            f"train and holdout must have the same {columns} in the same order; got "
            f"{list(training.classes)[:6]} and {list(judge.classes)[:6]}."
        )
    return judge.with_baseline(training.baseline)


def as_predictions(
    data: Any,
    argument_name: str,
    classes: tuple[Hashable, ...] | None,
    baseline: Hashable | None,
) -> Predictions:
    """Return `data` as predictions; arrays of a holdout take the classes of the training rows."""
    if isinstance(data, Predictions):
        return predictions_for_inference(data, baseline=baseline, choice_sets=True)
    if isinstance(data, (tuple, list)) and len(data) == 2:
        data = {"probs": data[0], "y": data[1]}
    if isinstance(data, dict):
        known: dict[str, Any] = {"classes": classes, "baseline": baseline}
        return Predictions.from_arrays(**known | data)
    raise InputError(
        argument=argument_name,
        rule='be a Predictions, (probs, y), or a dict such as {{"y": y, "logits": z}}',
        found=type(data).__name__,
    )


def _fit(predictions: Predictions) -> MCLLOFit | ChoiceFit:
    """Return the fit that tests rows of classes, or choice sets."""
    if predictions.offered is not None:
        return fit_choice_sets(predictions)
    return fit_predictions(predictions)


def _fit_and_recalibrate(
    method: Method,
    training: Predictions,
    evaluation: Predictions,
    folds: list[Fold] | None,
) -> _MethodPredictions:
    """Return what a method fitted to some rows makes of others; of folds, what each makes."""
    if folds is not None:
        probs = np.empty(evaluation.probs.shape)
        seconds = 0.0
        note = ""
        for train, held in folds:
            part = _fit_and_recalibrate(
                method, training.take(train), evaluation.take(held), None
            )
            probs[held] = part.probs
            seconds += part.fit_seconds
            note = note or part.note
        return _MethodPredictions(probs, seconds, note, method.family)
    with catch_warnings() as found:
        start = time.perf_counter()
        fitted = clone_and_fit(method.calibrator, training)
        seconds = time.perf_counter() - start
        with suppress_warnings(
            LabelShiftWarning
        ):  # of folds, and of rows whose labels are known
            probs = apply_calibrator(fitted, evaluation)
    note = found[0].text() if found else ""
    return _MethodPredictions(probs, seconds, note, method.family)


def chi_square_mixture_tail(
    statistic: float, df: int, n_fitted: int, scale: float
) -> float:
    """Return ``P(chi2_{df - fitted} + scale * chi2_fitted > statistic)``.

    By the midpoint rule over quantiles of the scaled part.
    """
    from scipy.special import chdtrc, chdtri

    if n_fitted == 0 or df == 0:
        return float(chdtrc(df, statistic)) if df else 1.0
    if n_fitted == df:
        return float(chdtrc(df, statistic / scale))
    n_points = 4000
    upper = (np.arange(n_points) + 0.5) / n_points
    rest = np.maximum(statistic - scale * chdtri(n_fitted, upper), 0.0)
    return float(np.mean(chdtrc(df - n_fitted, rest)))
