"""`robust_test`: a test that survives repeated measurements and weights.

U is the score at the identity, H the information there, ``U_g`` the score of unit g (a group, or a
row), G the number of units (`_fit/covariance`, which has the errors of estimates):

====================  ======================================================================
score statistic       ``S = U' H^-1 U``
its mean under H0     ``sum_k lambda_k``, eigenvalues of ``H^-1 V``, ``V = sum_g U_g U_g'``
reported statistic    ``S d / sum_k lambda_k``, to be compared with d, the rank of H
F (Rao and Scott)     ``S / sum_k lambda_k ~ F(nu, (G - 1) nu)``,
                      ``nu = (sum_k lambda_k)^2 / sum_k lambda_k^2``
sign flips            ``S* = |sum_g s_g H^-1/2 U_g|^2`` with random signs ``s_g = +-1``
drawn labels          weights that are no counts, one row a unit
                      (`_inference/null_labels`)
====================  ======================================================================

====================  ======================================================================
rows                  p-value
====================  ======================================================================
in groups             flips up to 1000 groups, else F; never below that of independent rows,
                      nor, where the groups' scores are skewed, below that of dependent rows
weights, no counts    drawn labels up to 1000 effective rows, else F
frequencies           flips up to 1000 rows, else F; never below that of independent rows
====================  ======================================================================

Under H0 every U_g has mean 0, so V is not centred and its mean is the variance of U. Flipping signs
is exact where the U_g are symmetric about 0, at any number of groups, and right in large samples
whatever they are. F is the form of Rao and Scott (1984) with the denominator of Thomas and Rao
(1987). The floor by independent rows is for few groups of sharp predictions: while no surprise has
happened all scores point one way, and no flip exceeds them. It costs power only where rows of a
group avoid each other's labels.

Why not ``U' V^-1 U``, the usual generalised score test? Labels are skewed, and V^-1 turns
directions in which no surprise has happened yet into evidence. Rejections under H0 at nominal 5 %,
in 18 designs for each number of groups (c = 2, 3, 8; flat and sharp predictions; single rows and
groups of about five whose labels come from one uniform; 400 data sets each):

==========================  ==============  ==============
test                        60 groups       600 groups
==========================  ==============  ==============
independent rows            4 to 100 %      4 to 100 %
``U' V^-1 U``, Hotelling F  7 to 31 %       4 to 11 %
S with flips                2 to 9 %        2 to 8 %
S with F                    1 to 7 %        2 to 6 %
==========================  ==============  ==============

The last two are with the floor of independent rows. The power of S is the higher one in most
designs but not in all: with eight classes and flat predictions, 60 groups, 25 % against 49 %.
`docs/explanation/groups-and-weights.md` has what is rejected now, rare events and weights included.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from .._fit.covariance import (
    ScoreSums,
    effective_sample_size,
    sum_row_scores,
    sum_unit_scores,
    unit_scores,
)
from .._fit.objective import free_parameters
from .._model.kernel import LogPartition
from .._model.likelihood import identity_theta
from .._utils.formatting import format_count, format_number
from .._utils.linalg import whitening_matrix
from .._utils.results import Floats
from .._utils.statements import Statement
from .._validation.predictions import Predictions, predictions_for_inference
from .._validation.row_options import RowOptions, takes_row_options
from ..exceptions import InputError
from . import budget
from .budget import BATCH_ENTRIES, N_RESAMPLES
from .hypothesis_test import TestResult
from .likelihood_tests import chi2_sf
from .monte_carlo import (
    Seed,
    check_n_resamples,
    monte_carlo_pvalue,
    seed_entropy,
    uniform_draws,
)
from .null_labels import (
    DEPENDENCE_STRENGTHS,
    TIE_TOL,
    RowsUnderNull,
    ScoreSkewness,
    dependent_labels_pvalue,
    drawn_labels_pvalue,
)

RobustMethod = Literal["auto", "flip", "f", "draw"]

MAX_PVALUE_IN_DOUBT = 0.2
"""P-values above it are not worth a second look: they reject at no level in use."""
MIN_EFFECTIVE_ROWS = 20.0
"""Effective rows below which weighted rows cannot be judged: a round number."""
MIN_EFFECTIVE_SHARE_OF_EQUALS = 0.995
"""Units are printed as equal when this share of them is effective: it rounds to 100 %."""
ONE_LABEL = (
    "all rows have one label, and what rows of other labels would weigh is not known"
)
TOO_MANY_ROWS_FOR_SKEWNESS = "too many rows to ask how skewed the groups' scores are"
SKEWED_NOTE = (
    "the groups' scores are skewed: the p-value is the largest over how strongly rows of a group "
    "may hang together"
)


class ChiSquareMixture:
    """S with the eigenvalues of its distribution under H0, a mixture of chi-squares.

    From ``root = whitening(H)``, U and V; for independent rows the eigenvalues are all 1.
    """

    def __init__(
        self, root: Floats, total: Floats, gram: Floats, n_units: float
    ) -> None:
        u = total @ root
        self.score = float(u @ u)
        eigenvalues = np.linalg.eigvalsh(root.T @ gram @ root)
        self.eigenvalues = np.maximum(
            eigenvalues, 0.0
        )  # of rounding, some may be below 0
        self.n_units = n_units

    @property
    def statistic(self) -> float:
        """S over the mean eigenvalue: about the number of parameters under H0."""
        mean = float(self.eigenvalues.mean()) if len(self.eigenvalues) else 0.0
        return self.score / mean if mean > 0.0 else 0.0

    def f_pvalues(self) -> tuple[float, float]:
        """Return the p-value by F with Satterthwaite's degrees of freedom, and the least of all.

        That is what units such as these can give at most: ``S <= G sum_k lambda_k``.
        """
        from scipy.special import fdtrc

        total = float(self.eigenvalues.sum())
        if total == 0.0:
            return 1.0, 1.0
        nu = total**2 / float(self.eigenvalues @ self.eigenvalues)
        denominator_df = (self.n_units - 1.0) * nu
        pvalue = float(fdtrc(nu, denominator_df, self.score / total))
        smallest_pvalue = float(fdtrc(nu, denominator_df, self.n_units))
        return pvalue, smallest_pvalue


def sign_flip_pvalue(
    scores: Floats, root: Floats, *, n_resamples: int, seed: int
) -> TestResult:
    """Return how often random signs of the units' scores give at least the observed S.

    Units are first put in an order that depends on their values alone, up to rounding, so that
    neither the order of the rows nor the names of the groups change the answer.
    """
    n_units = len(scores)
    largest = np.abs(scores).max(axis=0)
    scale = np.where(largest > 0.0, largest, 1.0)
    rounded = np.round(scores / scale, 9)
    rounded += 0.0  # turns -0.0 into 0.0
    order = np.lexsort(rounded.T)
    standardized = scores[order] @ root
    observed = float((standardized.sum(axis=0) ** 2).sum())
    threshold = observed * (1.0 - TIE_TOL)

    def exceeds(start: int, size: int) -> NDArray[np.bool_]:
        u = uniform_draws(seed, start, size, n_units)
        signs = np.where(u < 0.5, -1.0, 1.0)
        drawn = ((signs @ standardized) ** 2).sum(axis=1)
        return np.asarray(drawn >= threshold)

    batch = max(1, min(512, BATCH_ENTRIES // n_units))
    found = monte_carlo_pvalue(exceeds, n_resamples=n_resamples, batch=batch, seed=seed)
    return replace(found, statistic=observed, method="flip")


@dataclass(frozen=True, eq=False, kw_only=True)
class RobustTest(TestResult):
    """A test of H0: each row's label follows its probabilities; rows of a group may be dependent.

    Not rejecting H0 does not show that the probabilities are calibrated.

    Attributes
    ----------
    statistic, df : float, int
        Score statistic over the mean of its estimated eigenvalues, or that of drawn labels; under
        H0 about `df`, the number of parameters that the rows can tell apart.
    pvalue, method : float, {'flip', 'f', 'draw'}
        By random signs of the groups' scores, the F distribution, or drawn labels.
    kind : {'cluster', 'sandwich'}
        Whether groups were given, or every row is its own.
    n_groups : int
        Groups, or rows that count.
    n_effective : float
        As many of equal weight would average as well (Kish): ``(sum w)^2 / sum w^2`` over groups
        or rows.
    design_effect : float
        How many times larger the groups make the variance of the score; without groups how many
        times larger unequal weights make that of an average, `n_groups` / `effective_sample_size`.
    smallest_pvalue : float
        No labels of such rows could give a p-value below it.
    n_resamples, seed : int, int or None
        Flips or draws made, and what they were made from.
    reason, why : str, Reason or None
        Why `method` was used, and what limits the p-value, in words and as facts.
    limits : tuple of str
        What limits the p-value.
    obstacle : str
        Why these rows cannot show anything at any level; empty where they can.

    See Also
    --------
    robust_test : Makes it.
    CalibrationTest : For independent rows.
    Assessment : Rests on it where rows are in groups.

    Notes
    -----
    The sandwich variance is that of [1]_, the correction of the null distribution that of [2]_.

    References
    ----------
    .. [1] K.-Y. Liang, S. L. Zeger (1986). Longitudinal data analysis using generalized linear
           models. Biometrika 73:13-22.
    .. [2] J. N. K. Rao, A. J. Scott (1984). On chi-squared tests for multiway contingency tables
           with cell proportions estimated from survey data. The Annals of Statistics 12:46-60.

    Examples
    --------
    >>> import mcllo
    >>> probs = [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]] * 10
    >>> y = [0, 1, 1, 0, 0, 0, 1, 1] * 5
    >>> test = mcllo.robust_test(probs, y, groups=[i // 4 for i in range(40)], seed=0)
    >>> test.kind, test.n_groups, test.method
    ('cluster', 10, 'flip')
    """

    df: int
    kind: str
    n_groups: int
    n_effective: float
    design_effect: float
    smallest_pvalue: float
    obstacle: str = ""
    limits: tuple[str, ...] = field(default=(), repr=False)
    left_out = ("why", "limits")
    method_texts: ClassVar[Mapping[str, str]] = {
        "flip": "{n_resamples} sign flips",
        "f": "F",
        "draw": "{n_resamples} simulated data sets",
    }

    def can_reject(self, alpha: float = 0.05) -> bool:
        """Whether these rows can reject at level `alpha`, and keep it.

        Parameters
        ----------
        alpha : float
            Level of the test.

        Returns
        -------
        bool
            False where `inconclusive` says why not.
        """
        self.rejects(alpha)  # refuses a level that is none
        return not self.obstacle and self.smallest_pvalue <= alpha

    def inconclusive(self, alpha: float = 0.05) -> str:
        """Return why these rows cannot reject at level `alpha`, in words; empty where they can.

        Examples
        --------
        >>> test = robust_test([[0.9, 0.1]] * 3, [0, 1, 1], groups=[0, 1, 2], seed=0)
        >>> test.inconclusive(0.05)
        '3 groups give no p-value below 0.25; level 0.05 needs at least 6'
        """
        if self.can_reject(alpha) or self.obstacle:
            return self.obstacle
        found = f"{format_count(self.n_groups)} {self.unit}"
        needed = 1.0 - math.log2(alpha)  # 2^(1 - G) <= alpha
        if self.method != "f" and 2.0 ** (1.0 - self.n_groups) <= alpha:
            found = f"{format_count(self.n_resamples)} draws"
            needed = 1.0 / alpha - 1.0  # 1 / (B + 1) <= alpha
        words = f"{found} give no p-value below {format_number(self.smallest_pvalue)}"
        if self.method == "f":
            return words
        return f"{words}; level {alpha:g} needs at least {math.ceil(needed)}"

    def statements(self, alpha: float = 0.05) -> list[Statement]:
        """Return what the test rests on, and why it cannot reject at level `alpha` if so."""
        why = self.inconclusive(alpha)
        words = f"The test rests on {self.units}."
        if why:
            words += f" It cannot reject at level {alpha:g}: {why}."
        numbers = {
            "n_groups": self.n_groups,
            "n_effective": self.n_effective,
            "smallest_pvalue": self.smallest_pvalue,
        }
        return [Statement("note.units", words, "doubt" if why else "plain", numbers)]

    @property
    def unit(self) -> str:
        """What is independent: groups, or rows."""
        return "groups" if self.kind == "cluster" else "rows"

    @property
    def units(self) -> str:
        """How many independent units there are, and how many equal ones that makes."""
        words = f"{format_count(self.n_groups)} {self.unit}"
        are_equal = self.n_effective > MIN_EFFECTIVE_SHARE_OF_EQUALS * self.n_groups
        return (
            words
            if are_equal
            else f"{words}, effectively {format_number(self.n_effective)}"
        )

    def __str__(self) -> str:
        value = format_number(self.statistic, 4)
        effect = format_number(self.design_effect)
        words = (
            f"robust score statistic {value} on {self.df} df, {self.p_text} "
            f"({self.how}; {self.units}, design effect {effect})"
        )
        return f"{words}; {self.obstacle}" if self.obstacle else words


@takes_row_options(RowOptions)
def robust_test(
    probs: Any = None,
    y: Any = None,
    *,
    method: RobustMethod = "auto",
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
    baseline: Any = None,
    **data: Unpack[RowOptions],
) -> RobustTest:
    """Test calibration of rows that depend on each other, or whose weights are no counts.

    Parameters
    ----------
    probs : array-like, frame or Predictions
        Predicted probabilities, shape (n_samples, n_classes).
    y : array-like of shape (n_samples,) or table of label counts
        The labels that came true; not given beside a `Predictions`.
    method : {'auto', 'flip', 'f', 'draw'}
        Random signs of the groups' scores; the F distribution of Rao and Scott; labels drawn as the
        predictions and the weights have them, for weights that are no counts. 'auto' flips up to
        1000 groups, and draws up to 1000 effective rows.
    n_resamples : int
        Flips or draws.
    seed : int or numpy Generator, optional
        Makes draws repeatable.
    baseline : label, optional
        Reference class of the log odds. Default: the last class that occurs in `y`.
    logits, classes, prefix, sample_weight, normalize, clip, missing, weight_kind : optional
        How rows are read; each is described in `Predictions.from_arrays`.
    groups : array-like of shape (n_samples,), optional
        Group of each row (an animal, a patient). Groups must be independent of each other; rows of
        one need not be. Without groups every row is its own.

    Returns
    -------
    RobustTest
        `statistic`, `df`, `pvalue`, `design_effect`, `rejects(alpha)`; ``print`` it.

    See Also
    --------
    RobustTest : What comes out.
    calibration_test : For independent rows.
    MCLLOFit : Its standard errors allow for groups, too.
    Predictions : Takes `groups` and `weight_kind`.

    Notes
    -----
    The variance V of the score U is estimated from the groups' scores, the sandwich of [1]_ and
    [2]_. The statistic is ``U' H^-1 U``, H the information, with random signs or the correction of
    [3]_ for its null distribution. In 18 designs of calibrated rows in 60 groups it rejected 1 to
    9 % at nominal 5 %, the usual ``U' V^-1 U`` 7 to 31 %.

    References
    ----------
    .. [1] H. White (1982). Maximum likelihood estimation of misspecified models. Econometrica
           50:1-25.
    .. [2] K.-Y. Liang, S. L. Zeger (1986). Longitudinal data analysis using generalized linear
           models. Biometrika 73:13-22.
    .. [3] J. N. K. Rao, A. J. Scott (1984). On chi-squared tests for multiway contingency tables
           with cell proportions estimated from survey data. The Annals of Statistics 12:46-60.

    Examples
    --------
    Sixty animals, each filmed five times, with labels that come five at a time:

    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> rows = rng.dirichlet([1, 1, 1], size=60)
    >>> labels = [rng.choice(3, p=row) for row in rows]
    >>> probs, y = np.repeat(rows, 5, axis=0), np.repeat(labels, 5)
    >>> test = robust_test(probs, y, groups=np.repeat(np.arange(60), 5), seed=0)
    >>> test.n_groups, test.kind, test.rejects(alpha=0.05), round(test.design_effect, 1)
    (60, 'cluster', False, 5.1)
    """
    predictions = predictions_for_inference(probs, y, baseline=baseline, **data)
    if method not in get_args(RobustMethod):
        raise InputError(
            f"method must be 'auto', 'flip', 'f' or 'draw'; got {method!r}."
        )
    check_n_resamples(n_resamples)
    is_grouped = predictions.groups is not None
    theta0 = identity_theta(len(predictions.log_odds))
    sums = sum_unit_scores(predictions, theta0)
    _check_at_least_two_units(sums.n_units, is_grouped=is_grouped)
    hessian = LogPartition(predictions.log_odds, predictions.sample_weight)(
        theta0
    ).hessian
    root = whitening_matrix(hessian, free_parameters(predictions.log_odds))
    effective = effective_sample_size(predictions)
    null = ChiSquareMixture(root, sums.total, sums.gram, sums.n_units)
    chosen, reason = _choose_method(
        predictions, method, sums.n_units, effective, n_resamples
    )
    pvalue, smallest_pvalue = null.f_pvalues()
    test = RobustTest(
        statistic=null.statistic,
        df=root.shape[1],
        pvalue=pvalue,
        method=chosen,
        seed=None if chosen == "f" else seed_entropy(seed),
        reason=reason,
        kind="cluster" if is_grouped else "sandwich",
        n_groups=round(sums.n_units),
        n_effective=effective,
        design_effect=_design_effect(predictions, sums, root, effective),
        smallest_pvalue=smallest_pvalue,
    )
    if chosen == "flip":
        test = _flip_signs(
            test, unit_scores(predictions, theta0), root, sums.n_units, n_resamples
        )
    if chosen == "draw":
        test = _draw_labels(test, RowsUnderNull(predictions), n_resamples)
    else:
        test = _raise_pvalue(test, predictions, root, null.score, n_resamples)
    obstacle = test.obstacle
    is_weighted = not (is_grouped or predictions.counts_rows)
    if is_weighted and effective < MIN_EFFECTIVE_ROWS and not obstacle:
        obstacle = (
            f"the weights leave {format_number(effective)} effective rows; at least "
        )
        obstacle += f"{MIN_EFFECTIVE_ROWS:g} are needed"
    return replace(test, reason="; ".join([reason, *test.limits]), obstacle=obstacle)


def _check_at_least_two_units(n_units: float, *, is_grouped: bool) -> None:
    """Refuse a single unit: nothing shows how units vary."""
    if n_units > 1.0:
        return
    if is_grouped:
        raise InputError(
            "groups must name at least two groups among the rows that count; all are in one. "
            "Rows of a single group say nothing about how groups vary: add groups."
        )
    raise InputError(f"a robust test needs at least two rows; got {n_units:g}.")


def _design_effect(
    predictions: Predictions, sums: ScoreSums, root: Floats, effective: float
) -> float:
    """Return the variance of the score by groups over that by rows, added over directions.

    Without groups, Kish's: how many times larger unequal weights make the variance of an average.
    """
    if predictions.groups is None:
        return sums.n_units / effective
    rows = sum_row_scores(predictions, identity_theta(len(predictions.log_odds)))
    by_groups = float(np.trace(root.T @ sums.covariance @ root))
    by_rows = float(np.trace(root.T @ rows.covariance @ root))
    return by_groups / by_rows if by_rows > 0.0 else math.nan


def _choose_method(
    predictions: Predictions,
    method: str,
    n_units: float,
    effective: float,
    n_resamples: int,
) -> tuple[str, str]:
    """Return the method to use, and why."""
    is_grouped = predictions.groups is not None
    is_weighted = not predictions.counts_rows
    if method == "draw" and (is_grouped or not is_weighted):
        raise InputError(
            "labels are drawn for weights that are no counts, without groups: "
            "method='draw' must be left out here."
        )
    if method != "auto":
        return method, "as asked"
    units = f"{format_count(n_units)} {'groups' if is_grouped else 'rows'}"
    if is_grouped or not is_weighted:
        return "flip" if n_units <= budget.MAX_FLIPPED_GROUPS else "f", units
    if effective <= budget.MAX_FLIPPED_GROUPS and _is_drawing_affordable(
        predictions, n_resamples
    ):
        return "draw", f"{units}, effectively {format_number(effective)}"
    return "f", units


def _is_drawing_affordable(predictions: Predictions, n_resamples: int) -> bool:
    """Whether labels can be drawn in a reasonable time."""
    return float(predictions.probs.size) * n_resamples <= budget.TEST_WORK


def _flip_signs(
    test: RobustTest, scores: Floats, root: Floats, n_units: float, n_resamples: int
) -> RobustTest:
    """Return the test by sign flips."""
    assert test.seed is not None
    flipped = sign_flip_pvalue(scores, root, n_resamples=n_resamples, seed=test.seed)
    smallest_by_draws = 1.0 / (n_resamples + 1.0)
    smallest_by_signs = 2.0 ** (1.0 - n_units)  # all signs equal, or all opposite
    smallest = max(smallest_by_signs, smallest_by_draws)
    limits: tuple[str, ...] = ()
    if smallest > smallest_by_draws:
        limits = (f"so few can give no p-value below {smallest:.2g}",)
    return replace(
        test,
        pvalue=max(
            flipped.pvalue, smallest
        ),  # random flips of few groups can fall below all
        n_resamples=n_resamples,
        smallest_pvalue=smallest,
        limits=limits,
    )


def _draw_labels(test: RobustTest, rows: RowsUnderNull, n_resamples: int) -> RobustTest:
    """Return the test by drawn labels."""
    if rows.one_label:
        return replace(
            test,
            statistic=0.0,
            df=0,
            pvalue=1.0,
            smallest_pvalue=1.0,
            obstacle=ONE_LABEL,
        )
    assert test.seed is not None
    found = drawn_labels_pvalue(rows, n_resamples=n_resamples, seed=test.seed)
    return replace(
        test,
        statistic=found.statistic,
        df=rows.score_whitening.shape[1],
        pvalue=found.pvalue,
        smallest_pvalue=1.0 / (n_resamples + 1.0),
        n_resamples=found.n_resamples,
    )


def _raise_pvalue(
    test: RobustTest,
    predictions: Predictions,
    root: Floats,
    score: float,
    n_resamples: int,
) -> RobustTest:
    """Return the test, its p-value raised to that of independent rows and of skewed groups.

    1. To that of independent rows: by chi-square where weights count rows, else by drawn labels.
    2. To the largest over the strengths of dependence, where p is small and groups are skewed.
    """
    of_independent_rows = "the p-value of independent rows is larger"
    is_counted = predictions.counts_rows
    if is_counted:
        test = _raise_to_pvalue(
            test, chi2_sf(score, root.shape[1]), of_independent_rows
        )
    seed = test.seed
    if predictions.groups is None or seed is None:
        return test
    draws_rows = not is_counted and _is_drawing_affordable(predictions, n_resamples)
    n_rows = (
        float(predictions.class_weight.sum())
        if is_counted
        else float(predictions.n_samples)
    )
    work_of_draw = n_rows * root.shape[0] * len(DEPENDENCE_STRENGTHS)
    n_draws = int(
        min(budget.N_RESAMPLES_REPEATED, budget.DEPENDENT_WORK / work_of_draw)
    )
    asks_skewness = test.pvalue <= MAX_PVALUE_IN_DOUBT
    if asks_skewness and n_draws < budget.MIN_COSTLY_DRAWS:
        asks_skewness = False
        test = replace(test, limits=(*test.limits, TOO_MANY_ROWS_FOR_SKEWNESS))
    if not (draws_rows or asks_skewness):
        return test
    rows = RowsUnderNull(predictions)
    if rows.one_label:
        return replace(test, obstacle=ONE_LABEL)
    # 1. Each p-value has a stream of its own: seed, seed + 1, seed + 2.
    if draws_rows:
        found = drawn_labels_pvalue(rows, n_resamples=n_resamples, seed=seed + 1)
        test = _raise_to_pvalue(test, found.pvalue, of_independent_rows)
    # 2.
    if not asks_skewness or test.pvalue > MAX_PVALUE_IN_DOUBT:
        return test
    skewness = ScoreSkewness(rows, root)
    if not skewness.is_large:
        return test
    largest = dependent_labels_pvalue(
        rows, root, skewness.vector, n_resamples=n_draws, seed=seed + 2
    )
    smallest = max(test.smallest_pvalue, 1.0 / (n_draws + 1.0))
    return _raise_to_pvalue(
        replace(test, smallest_pvalue=smallest), largest, SKEWED_NOTE
    )


def _raise_to_pvalue(test: RobustTest, pvalue: float, why: str) -> RobustTest:
    """Return the test, with the other p-value where that is larger, and why."""
    if pvalue <= test.pvalue:
        return test
    return replace(test, pvalue=pvalue, limits=(*test.limits, why))
