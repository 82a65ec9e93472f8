"""`robust_test`: a test that survives repeated measurements and weights.

U is the score at the identity, H the information there, ``U_g`` the score of unit g (a group, or a
row), G the number of units (`_fit/sandwich`, which has the errors of estimates):

====================  ======================================================================
score statistic       ``S = U' H^-1 U``
its mean under H0     ``sum_k lambda_k``, eigenvalues of ``H^-1 V``, ``V = sum_g U_g U_g'``
reported statistic    ``S d / sum_k lambda_k``, to be compared with d, the rank of H
F (Rao and Scott)     ``S / sum_k lambda_k ~ F(nu, (G - 1) nu)``,
                      ``nu = (sum_k lambda_k)^2 / sum_k lambda_k^2``
sign flips            ``S* = |sum_g s_g H^-1/2 U_g|^2`` with random signs ``s_g = +-1``
drawn labels          `_inference/null_labels`: weights that are no counts, one row a unit
====================  ======================================================================

====================  ======================================================================
rows                  p-value
====================  ======================================================================
in groups             flips up to 1000 groups, else F; never below that of independent rows,
                      nor, where the groups' scores are skewed, below that of `null_labels`
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
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from .._fit.objective import free_parameters
from .._fit.sandwich import n_effective, row_sums, score_sums, unit_scores
from .._model.kernel import LogPartition
from .._model.likelihood import identity_theta
from .._utils.formatting import format_count, format_number, format_p
from .._utils.linalg import whitening
from .._utils.results import Floats
from .._utils.statements import Statement
from .._validation.predictions import Predictions, RowOptions, judged_predictions, reads_rows
from ..exceptions import InputError
from . import budget
from .budget import N_RESAMPLES
from .likelihood_tests import chi2_sf
from .monte_carlo import Seed, check_resamples, monte_carlo_p, seed_entropy, uniforms
from .null_labels import (
    DEPENDENCE_STRENGTHS,
    TIE_TOL,
    NullRows,
    Skew,
    dependent_pvalue,
    draw_pvalue,
)
from .pvalue import PValue, Tested

RobustMethod = Literal["auto", "flip", "f", "draw"]

MAX_PVALUE_IN_DOUBT = 0.2
"""P-values above it are not worth a second look: they reject at no level in use."""
MIN_EFFECTIVE_ROWS = 20.0
"""Effective rows below which weighted rows cannot be judged."""
MIN_EFFECTIVE_SHARE_OF_EQUALS = 0.995
"""Units are all alike when this share of them is effective."""
ONE_LABEL = "all rows have one label, and what rows of other labels would weigh is not known"
TOO_MANY_ROWS_FOR_SKEWNESS = "too many rows to ask how skewed the groups' scores are"
SKEWED_NOTE = (
    "the groups' scores are skewed: the p-value is the largest over how strongly rows of a group "
    "may hang together"
)


class ChiSquareMixture:
    """S with the eigenvalues of its distribution under H0, a mixture of chi-squares.

    From ``root = whitening(H)``, U and V; for independent rows the eigenvalues are all 1.
    """

    def __init__(self, root: Floats, total: Floats, gram: Floats, n_units: float) -> None:
        u, values = total @ root, np.linalg.eigvalsh(root.T @ gram @ root)
        self.score, self.eigenvalues = float(u @ u), np.maximum(values, 0.0)
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
        found, least = fdtrc(nu, (self.n_units - 1.0) * nu, [self.score / total, self.n_units])
        return float(found), float(least)


def flip_pvalue(scores: Floats, root: Floats, *, n_resamples: int, seed: int) -> PValue:
    """Return how often random signs of the units' scores give at least the observed S.

    Units are first put in an order that depends on their values alone, up to rounding, so that
    neither the order of the rows nor the names of the groups change the answer.
    """
    largest = np.abs(scores).max(axis=0)
    rounded = np.round(scores / np.where(largest > 0.0, largest, 1.0), 9) + 0.0
    white = scores[np.lexsort(rounded.T)] @ root
    observed = float((white.sum(axis=0) ** 2).sum())

    def exceeds(start: int, size: int) -> NDArray[np.bool_]:
        signs = np.where(uniforms(seed, start, size, len(white)) < 0.5, -1.0, 1.0)
        return ((signs @ white) ** 2).sum(axis=1) >= observed * (1.0 - TIE_TOL)

    batch = max(1, min(512, budget.BATCH_ENTRIES // len(white)))
    return monte_carlo_p(exceeds, n_resamples=n_resamples, batch=batch, seed=seed)


@dataclass(frozen=True, eq=False)
class RobustTest(Tested):
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
        times larger unequal weights make that of an average, `n_groups` / `n_effective`.
    smallest_pvalue : float
        No labels of such rows could give a p-value below it.
    n_resamples, seed : int, int or None
        Flips or draws made, and what they were made from.
    reason, limits : str, tuple of str
        Why `method` was used, and what limits the p-value; the latter by itself.
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

    statistic: float
    df: int
    pvalue: float
    method: str
    kind: str
    n_groups: int
    n_effective: float
    design_effect: float
    smallest_pvalue: float
    n_resamples: int
    seed: int | None
    reason: str
    obstacle: str = ""
    limits: tuple[str, ...] = field(default=(), repr=False)
    left_out = ("limits",)

    def inconclusive(self, alpha: float = 0.05) -> str:
        """Return why these rows cannot reject at level `alpha`, in words; empty where they can.

        Examples
        --------
        >>> test = robust_test([[0.9, 0.1]] * 3, [0, 1, 1], groups=[0, 1, 2], seed=0)
        >>> test.inconclusive(0.05)
        '3 groups give no p-value below 0.25; level 0.05 needs at least 6'
        """
        self.rejects(alpha)  # refuses a level that is none
        if self.obstacle or self.smallest_pvalue <= alpha:
            return self.obstacle
        found, needed = f"{format_count(self.n_groups)} {self.unit}", 1.0 - math.log2(alpha)
        if self.method != "f" and 2.0 ** (1.0 - self.n_groups) <= alpha:
            found, needed = f"{format_count(self.n_resamples)} draws", 1.0 / alpha - 1.0
        words = f"{found} give no p-value below {format_number(self.smallest_pvalue)}"
        more = f"; level {alpha:g} needs at least {math.ceil(needed)}"
        return words if self.method == "f" else words + more

    def statements(self, alpha: float = 0.05) -> list[Statement]:
        """Return what the test rests on, and why it cannot reject at level `alpha` if so."""
        why, words = self.inconclusive(alpha), f"The test rests on {self.units}."
        if why:
            words += f" It cannot reject at level {alpha:g}: {why}."
        names = ("n_groups", "n_effective", "smallest_pvalue")
        numbers = {name: getattr(self, name) for name in names}
        return [Statement("note.units", words, "doubt" if why else "plain", numbers)]

    @property
    def unit(self) -> str:
        """What is independent: groups, or rows."""
        return "groups" if self.kind == "cluster" else "rows"

    @property
    def way(self) -> str:
        """How the p-value was computed, in words."""
        words = {"flip": "{} sign flips", "f": "F", "draw": "{} simulated data sets"}
        return words[self.method].format(format_count(self.n_resamples))

    @property
    def units(self) -> str:
        """How many independent units there are, and how many equal ones that makes."""
        words = f"{format_count(self.n_groups)} {self.unit}"
        even = self.n_effective > MIN_EFFECTIVE_SHARE_OF_EQUALS * self.n_groups
        return words if even else f"{words}, effectively {format_number(self.n_effective)}"

    def __str__(self) -> str:
        words = (
            f"robust score statistic {format_number(self.statistic, 4)} on {self.df} df, "
            f"p {format_p(self.pvalue)} ({self.way}; {self.units}, design effect "
            f"{format_number(self.design_effect)})"
        )
        return f"{words}; {self.obstacle}" if self.obstacle else words


@reads_rows(RowOptions)
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
    logits, classes, prefix, sample_weight, normalize, clip, weight_kind : optional
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
    predictions = judged_predictions(probs, y, baseline=baseline, **data)
    if method not in get_args(RobustMethod):
        raise InputError(f"method must be 'auto', 'flip', 'f' or 'draw'; got {method!r}.")
    check_resamples(n_resamples)
    odds, grouped = predictions.log_odds, predictions.groups is not None
    theta = identity_theta(len(odds))
    sums = score_sums(predictions, theta)
    if grouped and sums.n_units <= 1.0:
        raise InputError(
            "groups must name at least two groups among the rows that count; all are in one. "
            "Rows of a single group say nothing about how groups vary: add groups."
        )
    if sums.n_units <= 1.0:
        raise InputError(f"a robust test needs at least two rows; got {sums.n_units:g}.")
    hessian = LogPartition(odds, predictions.sample_weight)(theta).hessian
    root, effective = whitening(hessian, free_parameters(odds)), n_effective(predictions)
    null = ChiSquareMixture(root, sums.total, sums.gram, sums.n_units)
    chosen, reason = _choose(predictions, method, sums.n_units, effective, n_resamples)
    entropy = None if chosen == "f" else seed_entropy(seed)
    pvalue, smallest = null.f_pvalues()
    design_effect = sums.n_units / effective
    if grouped:  # the variance of the score by groups over that by rows, added over directions
        both = (sums.covariance, row_sums(predictions, theta).covariance)
        by_groups, by_rows = (float(np.trace(root.T @ v @ root)) for v in both)
        design_effect = by_groups / by_rows if by_rows > 0.0 else float("nan")
    found = (null.statistic, root.shape[1], pvalue, chosen, "cluster" if grouped else "sandwich")
    units = (round(sums.n_units), effective, design_effect)
    test = RobustTest(*found, *units, smallest, n_resamples=0, seed=entropy, reason=reason)
    if chosen == "flip" and entropy is not None:
        scores, shown = unit_scores(predictions, theta), 1.0 / (n_resamples + 1.0)
        flipped = flip_pvalue(scores, root, n_resamples=n_resamples, seed=entropy)
        least = max(2.0 ** (1.0 - sums.n_units), shown)
        floored = max(flipped.pvalue, least)  # random flips of few groups can fall below all
        test = replace(test, pvalue=floored, n_resamples=n_resamples, smallest_pvalue=least)
        if least > shown:
            test = replace(test, limits=(f"so few can give no p-value below {least:.2g}",))
    if chosen == "draw" and entropy is not None:
        test = _simulate_labels_test(test, NullRows(predictions), n_resamples, entropy)
    else:
        test = _raise_pvalue(test, predictions, root, null.score, n_resamples)
    obstacle, weighted = test.obstacle, not (grouped or predictions.counts_rows)
    if weighted and effective < MIN_EFFECTIVE_ROWS and not obstacle:
        obstacle = f"the weights leave {format_number(effective)} effective rows; at least "
        obstacle += f"{MIN_EFFECTIVE_ROWS:g} are needed"
    return replace(test, reason="; ".join([reason, *test.limits]), obstacle=obstacle)


def _choose(
    predictions: Predictions, method: str, n_units: float, effective: float, n_resamples: int
) -> tuple[str, str]:
    """Return the method to use, and why."""
    grouped, weighted = predictions.groups is not None, not predictions.counts_rows
    if method == "draw" and (grouped or not weighted):
        raise InputError(
            "labels are drawn for weights that are no counts, without groups: "
            "method='draw' must be left out here."
        )
    if method != "auto":
        return method, "as asked"
    found = f"{format_count(n_units)} {'groups' if grouped else 'rows'}"
    if grouped or not weighted:
        return "flip" if n_units <= budget.MAX_FLIPPED_GROUPS else "f", found
    if effective <= budget.MAX_FLIPPED_GROUPS and _drawable(predictions, n_resamples):
        return "draw", f"{found}, effectively {format_number(effective)}"
    return "f", found


def _drawable(predictions: Predictions, n_resamples: int) -> bool:
    """Whether labels can be drawn in a reasonable time."""
    return float(predictions.probs.size) * n_resamples <= budget.TEST_WORK


def _simulate_labels_test(
    test: RobustTest, rows: NullRows, n_resamples: int, seed: int
) -> RobustTest:
    """Return the test of drawn labels."""
    if rows.one_label:
        test = replace(test, pvalue=1.0, smallest_pvalue=1.0, obstacle=ONE_LABEL)
        return replace(test, statistic=0.0, df=0)
    statistic, df, found = draw_pvalue(rows, n_resamples=n_resamples, seed=seed)
    least, drawn = 1.0 / (n_resamples + 1.0), found.n_resamples
    test = replace(test, pvalue=found.pvalue, smallest_pvalue=least, n_resamples=drawn)
    return replace(test, statistic=statistic, df=df)


def _raise_pvalue(
    test: RobustTest, predictions: Predictions, root: Floats, score: float, n_resamples: int
) -> RobustTest:
    """Return the test, its p-value raised to that of independent rows and of skewed groups."""
    alone, counts = "the p-value of independent rows is larger", predictions.counts_rows
    if counts:
        test = _at_least(test, chi2_sf(score, root.shape[1]), alone)
    entropy = test.seed
    if predictions.groups is None or entropy is None:
        return test
    size = float(predictions.class_weight.sum()) if counts else float(predictions.n_samples)
    drawn = not counts and _drawable(predictions, n_resamples)
    asks = test.pvalue <= MAX_PVALUE_IN_DOUBT
    affordable = budget.DEPENDENT_WORK / (size * root.shape[0] * len(DEPENDENCE_STRENGTHS))
    draws = int(min(budget.N_RESAMPLES_DEPENDENT, affordable))
    if asks and draws < budget.MIN_DEPENDENT_DRAWS:
        asks, test = False, replace(test, limits=(*test.limits, TOO_MANY_ROWS_FOR_SKEWNESS))
    if not (drawn or asks):
        return test
    rows = NullRows(predictions)
    if rows.one_label:
        return replace(test, obstacle=ONE_LABEL)
    if drawn:
        found = draw_pvalue(rows, n_resamples=n_resamples, seed=entropy + 1)[2]
        test = _at_least(test, found.pvalue, alone)
    if not asks or test.pvalue > MAX_PVALUE_IN_DOUBT or not (skew := Skew(rows, root)).misleads:
        return test
    largest = dependent_pvalue(rows, root, skew.towards, n_resamples=draws, seed=entropy + 2)
    test = replace(test, smallest_pvalue=max(test.smallest_pvalue, 1.0 / (draws + 1.0)))
    return _at_least(test, largest, SKEWED_NOTE)


def _at_least(test: RobustTest, pvalue: float, why: str) -> RobustTest:
    """Return the test, with the other p-value where that is larger, and why."""
    if pvalue <= test.pvalue:
        return test
    return replace(test, pvalue=pvalue, limits=(*test.limits, why))
