"""Abstention: answer where it is safe, leave the rest to somebody else.

The score of a row is the expected cost of its best answer (with costs of 0 and 1: one less the
largest probability). Rows of low score are answered. An answer is wrong where another action would
have cost less.

====================  ============================================================================
`abstention_curve`    error and realised cost of the answered rows against the share answered,
                      before and after recalibration by maps fitted to other folds; pointwise
                      intervals (`mean_costs`)
threshold             `abstention_threshold`: the most lenient one at which at most q of the answers
                      are wrong, with confidence 1 - d [1]_
====================  ============================================================================

The threshold: candidates lambda_1 < lambda_2 < ... are fixed beforehand (scores over the largest
cost whose log odds are `GRID_STEP` apart). Of the n_k rows with scores up to lambda_k e_k are
wrong. For a fixed lambda_k, ``e_k ~ Binomial(n_k, R(lambda_k))``, so that
``P(Binomial(n_k, q) <= e_k)`` is a p-value of "more than q are wrong". Candidates are tested from
the strictest on that has rows enough to pass with errors at half the rate q (`rows_to_begin`), each
at level d, until one does not pass; the last that passed is taken. Begun where only rows without
any error pass, it would often end at once. Testing in a fixed sequence needs no correction for its
length. Where answers of higher scores are wrong at least as often, skipping candidates with few
rows makes it stricter. Rows must be independent, and others than those that a map was fitted to.

References
----------
.. [1] A. N. Angelopoulos, S. Bates, E. J. Candes, M. I. Jordan, L. Lei (2025). Learn then test:
       calibrating predictive algorithms to achieve risk control. Annals of Applied Statistics
       19:1641-1662. arXiv:2110.01052.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from .._utils.formatting import Table, format_count, format_number
from .._utils.notebook import NotebookResult, show_progress
from .._utils.parallel import one_blas_thread
from .._utils.results import Codes, Floats, Result
from .._utils.statements import Statement, suppress_warnings
from .._validation.predictions import (
    Predictions,
    as_predictions,
    predictions_for_inference,
)
from .._validation.row_options import RowOptions, TableOptions, takes_row_options
from ..calibrators import CALIBRATORS
from ..calibrators._choice import (
    apply_calibrator,
    clone_and_fit,
    make_calibrator,
)
from ..exceptions import InputError
from .costs import Costs
from .decision_value import (
    calibrator_name,
    check_confidence,
    choose_folds,
    cross_fitted_probs,
)
from .mean_costs import Units, estimate_mean_cost

N_SHARES = 20
"""Points of a curve: shares of 5 %, 10 %, ... of the rows."""
GRID_STEP = 0.1
GRID_END = 14.0
"""Log odds of the thresholds that are tried: a ten-thousandth of a percent to almost certain."""
EQUAL_SCORES = 1e-12
"""Part of the largest cost up to which two scores are equal: rounding."""
ANY_ERROR: dict[str, float] = {"default": 1.0}


class Answers(NamedTuple):
    """The best answer of each row: its expected and its realised cost, and whether it is wrong."""

    scores: Floats
    realised: Floats
    wrong: NDArray[np.bool_]


def best_answers(costs: Costs, probs: Floats, codes: Codes) -> Answers:
    """Return the best answers, abstaining left aside."""
    answers = _answers_only(costs)
    expected = answers.expected(probs)
    actions = expected.argmin(axis=1)
    scores: Floats = expected[np.arange(len(actions)), actions]
    realised = answers.matrix[actions, codes]
    wrong = realised > answers.matrix.min(axis=0)[codes]
    return Answers(scores, realised, wrong)


def _answers_only(costs: Costs) -> Costs:
    """Return the costs without the action that answers nothing."""
    if costs.abstain_code is None:
        return costs
    kept = [code for code in range(len(costs.actions)) if code != costs.abstain_code]
    actions = tuple(costs.actions[code] for code in kept)
    return Costs(costs.matrix[kept], actions, costs.classes)


@dataclass(frozen=True, eq=False, repr=False)
class AbstentionCurve(Result, NotebookResult):
    """Error and cost of the answered rows by the share that is answered; print it.

    Attributes
    ----------
    table : Table
        One row for each share, before and after recalibration (`recalibrated`): `answered`, the
        `threshold` of the expected cost, `error` and `cost` of the answered rows with their
        intervals, and `total_cost` of all rows where abstaining has a cost.
    n_samples : int
        Number of rows.
    calibrator : str
        What they were recalibrated by; empty where they were not.
    confidence : float
        Of each interval, point by point.

    See Also
    --------
    abstention_curve : Makes it.
    abstention_threshold : A threshold with a guarantee.
    mcllo.plot.abstention : Draws it.

    Examples
    --------
    >>> import mcllo
    >>> rows = mcllo.simulate.draw(2000, n_classes=3, gamma=0.5, distribution="dirichlet", seed=1)
    >>> curve = mcllo.abstention_curve(rows, calibrator=None)
    >>> len(curve.table), curve.table["answered"][9]
    (20, 0.5)
    """

    table: Table
    n_samples: int
    calibrator: str
    confidence: float

    def to_frame(self) -> Any:
        """Return the table as a pandas ``DataFrame``."""
        return self.table.to_frame()

    def __str__(self) -> str:
        lines = [
            f"Answered shares of {format_count(self.n_samples)} rows, error and cost of the "
            f"answers, intervals of {100.0 * self.confidence:g} % point by point",
            "",
            str(self.table),
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<AbstentionCurve of {self.n_samples} rows>"


@takes_row_options(RowOptions)
def abstention_curve(
    probs: Any = None,
    y: Any = None,
    *,
    costs: Any = None,
    abstain: float | None = None,
    calibrator: Any = "auto",
    confidence: float = 0.95,
    seed: int = 0,
    **data: Unpack[RowOptions],
) -> AbstentionCurve:
    """Return error and cost of the answers against the share of the rows that is answered.

    Parameters
    ----------
    probs : array-like, frame or Predictions
        Predicted probabilities, shape (n_samples, n_classes).
    y : array-like of shape (n_samples,)
        The labels that came true; not given beside a `Predictions`.
    costs : array-like, frame, mapping or Costs, optional
        What each answer costs where each class is true, in any form of `Costs`. Default: every
        wrong class costs 1.
    abstain : float, optional
        Cost of answering nothing: gives the cost of all rows at each share.
    calibrator : str, calibrator or None
        What to recalibrate by, each row by a map fitted to other folds. None draws one curve.
    confidence : float
        Of each interval.
    seed : int
        What folds are drawn from.
    logits, classes, prefix, sample_weight, normalize, clip, missing, weight_kind, groups : optional
        How rows are read; each is described in `Predictions.from_arrays`.

    Returns
    -------
    AbstentionCurve
        `table`, one row for each share.

    See Also
    --------
    abstention_threshold : A threshold with a guarantee.
    decide : Abstains where an answer is expected to cost more.
    decision_value : What recalibration saves at one cost of abstaining.

    Notes
    -----
    Rows are answered from the least expected cost of their best answer on. Recalibration changes
    the curve only where it changes the order of the rows or the answers; where it does neither, it
    changes the thresholds, which are then worth what they say.

    Examples
    --------
    >>> import mcllo
    >>> rows = mcllo.simulate.draw(2000, n_classes=3, gamma=0.5, distribution="dirichlet", seed=1)
    >>> curve = abstention_curve(rows, calibrator="temperature")
    >>> half = [row for row in curve.table if round(row["answered"], 2) == 0.5]
    >>> [(row["recalibrated"], round(row["error"], 3)) for row in half]
    [(False, 0.436), (True, 0.438)]
    """
    check_confidence(confidence)
    predictions = as_predictions(probs, y, **data)
    table = Costs.from_table(
        ANY_ERROR if costs is None else costs, predictions.classes, abstain=abstain
    )
    sets = {False: predictions.probs}
    name = ""
    if calibrator is not None:
        name = calibrator_name(calibrator)
        folds, why_none = choose_folds(predictions, seed)
        if folds is None:
            raise InputError(
                f"{why_none}; recalibrating needs other rows.",
                remedy="Pass {calibrator:None} for the curve of these probabilities.",
                values={},
            )
        sets[True] = cross_fitted_probs(predictions, calibrator, folds, seed)
    rows: list[dict[str, Any]] = []
    for recalibrated, each in sets.items():
        answers = best_answers(table, each, predictions.codes)
        rows += _curve_points(answers, predictions, table, recalibrated, confidence)
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    return AbstentionCurve(Table(columns), predictions.n_samples, name, confidence)


def _curve_points(
    answers: Answers,
    predictions: Predictions,
    costs: Costs,
    recalibrated: bool,
    confidence: float,
) -> list[dict[str, Any]]:
    units = Units.of(predictions)
    order = np.argsort(answers.scores, kind="stable")
    reached = np.cumsum(units.weight[order]) / units.weight.sum()
    equal = EQUAL_SCORES * float(costs.matrix.max())
    bounds = (float(costs.matrix.min()), float(costs.matrix.max()))
    abstaining = math.nan
    if costs.abstain_code is not None:
        abstaining = float(costs.matrix[costs.abstain_code].max())
    points = []
    for k in range(1, N_SHARES + 1):
        last = int(np.searchsorted(reached, k / N_SHARES - 1e-9))
        threshold = float(answers.scores[order[min(last, len(order) - 1)]])
        rows = np.flatnonzero(answers.scores <= threshold + equal)  # ties go together
        own = units.take(rows)
        share = float(own.weight.sum() / units.weight.sum())
        error = estimate_mean_cost(
            answers.wrong[rows].astype(np.float64), own, (0.0, 1.0), confidence
        )
        cost = estimate_mean_cost(answers.realised[rows], own, bounds, confidence)
        points.append(
            {
                "recalibrated": recalibrated,
                "answered": share,
                "threshold": threshold,
                "error": error.value,
                "error_low": error.low,
                "error_high": error.high,
                "cost": cost.value,
                "cost_low": cost.low,
                "cost_high": cost.high,
                "total_cost": share * cost.value + (1.0 - share) * abstaining
                if share < 1.0
                else cost.value,
            }
        )
    return points


@dataclass(frozen=True, eq=False, repr=False)
class AbstentionThreshold(Result):
    """Which rows may be answered, so that few answers are wrong; print it.

    Attributes
    ----------
    max_error : float
        Share of the answers that may be wrong.
    confidence : float
        That no more are, for rows like those it was found on.
    threshold : float
        Rows are answered whose best answer is expected to cost at most this; NaN where no
        threshold can be promised.
    answered : float
        Share of the rows that is answered.
    n_samples, n_answered, n_wrong : int
        Rows that the promise rests on, those answered, and wrong answers among them.
    error_high : float
        Upper bound of the share of wrong answers at this threshold, one-sided.
    costs : Costs
        What the best answer is found by.
    calibrator : calibrator or None
        Fitted to rows of its own; `answers` recalibrates by it first.

    See Also
    --------
    abstention_threshold : Makes it.
    abstention_curve : Error against the share answered.

    Examples
    --------
    >>> import mcllo
    >>> rows = mcllo.simulate.draw(4000, n_classes=3, distribution="dirichlet", seed=1)
    >>> found = mcllo.abstention_threshold(rows, max_error=0.2)
    >>> found.answers([[0.98, 0.01, 0.01], [0.5, 0.3, 0.2]]).tolist()
    [True, False]
    """

    max_error: float
    confidence: float
    threshold: float
    answered: float
    n_samples: int
    n_answered: int
    n_wrong: int
    error_high: float
    costs: Costs
    calibrator: Any = None
    left_out = ("calibrator",)

    @property
    def is_found(self) -> bool:
        """Whether there is a threshold that keeps the promise."""
        return not math.isnan(self.threshold)

    def answers(self, probs: Any) -> NDArray[np.bool_]:
        """Return which rows may be answered.

        Parameters
        ----------
        probs : array-like, frame or Predictions of shape (n_samples, n_classes)
            Probabilities as they come; recalibrated by `calibrator` where there is one.

        Returns
        -------
        ndarray of bool, shape (n_samples,)
            True where the best answer is expected to cost at most `threshold`.
        """
        from .decide import decide

        if self.calibrator is not None:
            probs = self.calibrator.predict_proba(probs)
        answers = _answers_only(self.costs)
        found = decide(probs, answers, classes=self.costs.classes)
        with np.errstate(invalid="ignore"):
            kept: NDArray[np.bool_] = found.promised <= self.threshold
        return kept

    def statement(self) -> Statement:
        """Return the promise in words.

        Returns
        -------
        Statement
            Of kind threshold.
        """
        wish = (
            f"at most {100.0 * self.max_error:g} % of the answers are wrong, with "
            f"{100.0 * self.confidence:g} % confidence"
        )
        numbers = self.to_dict()
        if not self.is_found:
            least = fewest_rows(self.max_error, self.confidence)
            words = (
                f"No threshold can promise that {wish}: these {format_count(self.n_samples)} rows "
                f"show too many errors, or are too few (it takes {least} without any error)."
            )
            return Statement("threshold", words, "doubt", numbers)
        words = (
            f"Answer where the best answer is expected to cost at most "
            f"{format_number(self.threshold)}: {wish}, for rows like these. That is "
            f"{100.0 * self.answered:.1f} % of them, of which "
            f"{format_count(self.n_wrong)} of {format_count(self.n_answered)} were wrong."
        )
        return Statement("threshold", words, "good", numbers)

    def __str__(self) -> str:
        return self.statement().text

    def __repr__(self) -> str:
        return f"<AbstentionThreshold: {self.threshold:.4g}>"


def fewest_rows(max_error: float, confidence: float) -> int:
    """Return how many rows without any error show that at most `max_error` are wrong.

    Examples
    --------
    .95^59 = .0485 is the first power below .05.

    >>> fewest_rows(0.05, 0.95)
    59
    """
    return math.ceil(math.log(1.0 - confidence) / math.log(1.0 - max_error))


def rows_to_begin(max_error: float, confidence: float, n_samples: int) -> int:
    """Return with how many answered rows testing begins: so many that some errors may occur.

    The fewest that pass with errors at half of `max_error`; of fewer rows in all, the fewest that
    pass without any. It looks at no label.

    Examples
    --------
    ``P(Binomial(153, .05) <= 3) = .0494``, and 3 errors of 153 rows are not quite 2.5 %.

    >>> rows_to_begin(0.05, 0.95, 5000), rows_to_begin(0.05, 0.95, 100)
    (153, 59)
    """
    least = fewest_rows(max_error, confidence)
    for n in range(least, n_samples + 1):
        n_wrong = math.floor(0.5 * max_error * n)
        if n_wrong and binomial_tail(n_wrong, n, max_error) <= 1.0 - confidence:
            return n
    return least


@takes_row_options(TableOptions)
@show_progress("looking for a threshold")
@one_blas_thread()
def abstention_threshold(
    probs: Any = None,
    y: Any = None,
    *,
    max_error: float = 0.05,
    confidence: float = 0.95,
    costs: Any = None,
    calibrator: Any = None,
    seed: int = 0,
    **data: Unpack[TableOptions],
) -> AbstentionThreshold:
    """Find which rows may be answered, so that at most `max_error` of the answers are wrong.

    Parameters
    ----------
    probs : array-like, frame or Predictions
        Predicted probabilities, shape (n_samples, n_classes), of rows that the model was not
        trained on.
    y : array-like of shape (n_samples,)
        The labels that came true; not given beside a `Predictions`.
    max_error : float
        Share of the answers that may be wrong.
    confidence : float
        How sure the promise is.
    costs : array-like, frame, mapping or Costs, optional
        What each answer costs where each class is true, in any form of `Costs`; an answer is wrong
        where another would have cost less. Default: every wrong class costs 1.
    calibrator : str or calibrator, optional
        What to recalibrate by. A random half of the rows is then for fitting it, and the promise
        rests on the other half. Default: probabilities as they are, and all rows.
    seed : int
        What the halves are drawn from.
    logits, classes, prefix, sample_weight, normalize, clip, missing : optional
        How rows are read; each is described in `Predictions.from_arrays`.

    Returns
    -------
    AbstentionThreshold
        `threshold`, `answered`, `answers(probs)`; print it.

    Raises
    ------
    InputError
        Where rows may depend on each other: the bounds are binomial.

    See Also
    --------
    abstention_curve : Error against the share answered.
    decide : Abstains where an answer is expected to cost more.

    Notes
    -----
    The guarantee asks for independent rows like those to come, and for nothing of the
    probabilities: thresholds of a fixed list are tested one after the other by exact binomial
    p-values, from the strictest on that has rows enough, and the last that passes is taken [1]_.
    In 1 of 20 data sets the promise may be broken at 95 % confidence. It is about all answers
    together, not about each class or each level of confidence.

    References
    ----------
    .. [1] A. N. Angelopoulos, S. Bates, E. J. Candes, M. I. Jordan, L. Lei (2025). Learn then test:
           calibrating predictive algorithms to achieve risk control. Annals of Applied Statistics
           19:1641-1662. arXiv:2110.01052.

    Examples
    --------
    >>> import mcllo
    >>> rows = mcllo.simulate.draw(4000, n_classes=3, distribution="dirichlet", seed=1)
    >>> found = abstention_threshold(rows, max_error=0.2)
    >>> found.n_wrong, found.n_answered, round(found.error_high, 3)
    (120, 723, 0.19)
    """
    check_confidence(confidence)
    if not 0.0 < max_error < 1.0:
        raise InputError(
            argument="max_error", rule="lie between 0 and 1", value=max_error
        )
    predictions = predictions_for_inference(probs, y, independent=True, **data)
    table = Costs.from_table(ANY_ERROR if costs is None else costs, predictions.classes)
    fitted = None
    rows = predictions
    if calibrator is not None:
        fitted, rows = _fit_on_half(predictions, calibrator, seed)
    answers = best_answers(table, rows.probs, rows.codes)
    weight = rows.row_weight
    largest = float(table.matrix.max())
    n_samples = int(weight.sum())
    least = rows_to_begin(max_error, confidence, n_samples)
    best = None
    for share in threshold_grid():
        answered = answers.scores <= share * largest
        n_answered = int(weight[answered].sum())
        if n_answered < least:
            continue
        n_wrong = int(weight[answered & answers.wrong].sum())
        if binomial_tail(n_wrong, n_answered, max_error) > 1.0 - confidence:
            break
        best = (share * largest, n_answered, n_wrong)
    threshold, n_answered, n_wrong = best or (math.nan, 0, 0)
    return AbstentionThreshold(
        max_error=max_error,
        confidence=confidence,
        threshold=threshold,
        answered=n_answered / n_samples,
        n_samples=n_samples,
        n_answered=n_answered,
        n_wrong=n_wrong,
        error_high=binomial_upper_bound(n_wrong, n_answered, confidence),
        costs=table,
        calibrator=fitted,
    )


def threshold_grid() -> list[float]:
    """Return the thresholds that are tried, as parts of the largest cost; strict ones first."""
    n_steps = round(2.0 * GRID_END / GRID_STEP)
    odds = [-GRID_END + GRID_STEP * k for k in range(n_steps + 1)]
    return [*(1.0 / (1.0 + math.exp(-each)) for each in odds), 1.0]


def binomial_tail(n_wrong: int, n_answered: int, share: float) -> float:
    """Return the chance of so few wrong answers, or fewer, if `share` of them are wrong.

    Examples
    --------
    >>> round(binomial_tail(0, 59, 0.05), 4)  # .95^59
    0.0485
    """
    from scipy.special import bdtr

    return float(bdtr(float(n_wrong), n_answered, share))


def binomial_upper_bound(n_wrong: int, n_answered: int, confidence: float) -> float:
    """Return the one-sided bound of Clopper and Pearson; NaN without any answer."""
    from scipy.special import betaincinv

    if n_answered == 0:
        return math.nan
    if n_wrong == n_answered:
        return 1.0
    return float(betaincinv(n_wrong + 1.0, n_answered - n_wrong, confidence))


def _fit_on_half(
    predictions: Predictions, calibrator: Any, seed: int
) -> tuple[Any, Predictions]:
    """Return a calibrator fitted to a random half of the rows, and the other half recalibrated."""
    if predictions.n_samples < 4:
        raise InputError(
            f"{predictions.n_samples} rows are too few to fit a calibrator to half of them."
        )
    own = make_calibrator(calibrator, CALIBRATORS)
    rng = np.random.default_rng([seed, 6])  # a stream of its own among those of a seed
    order = rng.permutation(predictions.n_samples)
    half = predictions.n_samples // 2
    with suppress_warnings():
        fitted = clone_and_fit(own, predictions.take(np.sort(order[:half])))
        others = predictions.take(np.sort(order[half:]))
        probs = apply_calibrator(fitted, others)
    return fitted, others.with_probs(probs)
