"""Which classes are off? A test for each class, adjusted for their number.

================  ==============================================================================
shift and slope   H0: ``delta_j = gamma_j = 1``, the other classes free; likelihood ratio of the
                  MCLLO fit to the fit with class j at the identity, 2 df; against the baseline
Wald              ``a' V^-1 a``, ``a = (tau_j, gamma_j - 1)``, V its part of the covariance: where
                  c - 1 more fits would take too long
in the large      H0: class j comes true as often as predicted, ``sum_i x_ij``; no baseline
adjusted          Holm's, over the classes, for each kind of test separately: of sorted p-values
                  ``p_(1) <= ... <= p_(m)``, ``max_{i <= k} min(1, (m - i + 1) p_(i))``
closed test       a hypothesis is rejected iff it and every hypothesis inside it are, locally
================  ==============================================================================

The first hypothesis leaves the other classes' parameters open, so its p-value is chi-square's, or a
parametric bootstrap from the restricted fit where chi-square cannot be trusted, or a guaranteed
bound where that is far smaller (`_diagnostics/restricted_models`).
The number of rows of class j is a sum of independent draws of different probabilities under the
second: its two-sided p-value, twice the smaller tail, is exact (`metrics/_reliability`); normal for
weights that are not whole and for more than 100,000 rows.

Holm's adjustment and closed testing (for the nested models) keep the probability of any false
rejection at the level, whichever hypotheses are true and however the tests depend on each other
(Holm 1979; Marcus, Peritz and Gabriel 1976). Closed testing needs a family that holds all its
intersections.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from .._fit.fit import MCLLOFit, fit_predictions
from .._inference.budget import N_RESAMPLES, NESTED_WORK
from .._inference.hypothesis_test import Reason, TestResult
from .._inference.likelihood_tests import Method, chi2_sf
from .._inference.monte_carlo import Seed
from .._model.many_classes import MIN_CLASSES_FOR_PCG
from .._utils.formatting import (
    MIN_PRINTED_PVALUE,
    Table,
    align_columns,
    ellipsis,
    format_number,
)
from .._utils.notebook import NotebookResult, show_progress
from .._utils.parallel import one_blas_thread, row_blocks
from .._utils.results import Floats, Result, none_for_nonfinite
from .._validation.predictions import Predictions, predictions_for_inference
from .._validation.row_options import TableOptions, takes_row_options
from ..metrics._reliability import (
    poisson_binomial_pmf,
    poisson_binomial_pmf_of_rare_hits,
)
from .restricted_models import (
    Family,
    PValuePlan,
    RestrictedFit,
    nested_lr_statistic,
    pvalue_against_larger,
    restricted_fit,
    unrestricted_fit,
)

MAX_ROWS_FOR_EXACT_TAIL = 100_000
"""Rows up to which a class's number of rows has its exact distribution; a round number, far above
where the normal one is as good."""
N_CELLS_PER_WORK = 4.0
"""Cells of a restricted fit (times ``c / 20`` for more than twenty classes) that one of `work` pays
for; a round number."""


def holm(pvalues: Sequence[float] | Floats) -> Floats:
    """Return Holm's adjusted p-values, in the order given; NaN stays NaN and does not count."""
    given = np.asarray(pvalues, dtype=np.float64)
    known = np.flatnonzero(~np.isnan(given))
    increasing = known[np.argsort(given[known], kind="stable")]
    n_still_open = np.arange(len(increasing), 0, -1)
    # A hypothesis is rejected only if all with smaller p-values are: hence the running maximum.
    stepwise = np.maximum.accumulate(n_still_open * given[increasing])
    adjusted = np.full(given.shape, np.nan)
    adjusted[increasing] = np.minimum(1.0, stepwise)
    return adjusted


def closed_test(
    pvalues: Mapping[str, float], inside: Mapping[str, Sequence[str]], alpha: float
) -> dict[str, bool]:
    """Return which hypotheses are rejected, any true one with probability `alpha` at most.

    `pvalues` are local, NaN where a hypothesis cannot be tested, which is then never rejected;
    `inside` names the hypotheses that imply each one, itself not listed.
    """
    locally_rejected = {name: pvalue <= alpha for name, pvalue in pvalues.items()}
    rejected = {}
    for name in locally_rejected:
        implied_by = inside[name]
        all_inside_rejected = all(locally_rejected[part] for part in implied_by)
        rejected[name] = locally_rejected[name] and all_inside_rejected
    return rejected


def format_p_cell(pvalue: float, method: str | None) -> str:
    """Return a p-value as an entry of a table; ``<=`` before a guaranteed bound.

    Examples
    --------
    >>> format_p_cell(1.0, "chi2"), format_p_cell(2e-20, "bound"), format_p_cell(float("nan"), None)
    ('1.00', '<= 2e-20', '-')
    >>> format_p_cell(0.0, "chi2")  # beyond what a double holds
    '< 1e-300'
    """
    if pvalue < MIN_PRINTED_PVALUE:
        return f"< {MIN_PRINTED_PVALUE:g}"
    sign = "<= " if method == "bound" else ""
    return f"{sign}{format_number(pvalue)}"


@dataclass(frozen=True, eq=False, repr=False)
class ClassTests(Result, NotebookResult):
    """A test for each class; print it for a table.

    Attributes
    ----------
    table : Table
        One row for each class: ``class``; ``statistic``, ``df``, ``pvalue``, ``adjusted``,
        ``chi2_pvalue`` and ``method`` for its shift and slope against the baseline (NaN for the
        baseline itself, method ``""``); ``predicted`` and ``observed`` share, ``z``,
        ``large_pvalue`` and ``large_adjusted`` for calibration in the large.
    method : {'chi2', 'bootstrap', 'score', 'bound', 'wald', 'mixed'}
        How p-values of shift and slope were computed ('wald': chi-square of a Wald statistic);
        the table's ``method`` says it class by class.
    reason : str
        Why.
    n_resamples : int
        Most draws made for a class; 0 for chi-square.
    baseline : label
        The class that log odds refer to.
    seed : int
        What draws were made from.
    why : Reason or None
        What `reason` says, as facts.

    See Also
    --------
    class_tests : Makes it.
    ClassAttribution : Which classes are miscalibrated, whatever the baseline.
    NestedModels : The kind of miscalibration.

    Examples
    --------
    >>> import mcllo
    >>> probs = [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6], [0.5, 0.3, 0.2]] * 10
    >>> y = [0, 1, 2, 0, 1, 2, 0, 1] * 5
    >>> tests = mcllo.class_tests(probs, y, method="chi2")
    >>> tests.rejected(alpha=0.05), tests.baseline
    ((), 2)
    """

    table: Table
    method: str
    reason: str
    n_resamples: int
    baseline: Any
    seed: int
    why: Reason | None = None

    left_out = ("table", "why")

    def rejected(self, alpha: float = 0.05) -> tuple[Any, ...]:
        """Return the classes whose shift or slope is off, any false one with probability alpha.

        Parameters
        ----------
        alpha : float
            Probability of any false rejection.

        Returns
        -------
        tuple
            Labels.
        """
        return self._labels_rejected(self.table["adjusted"], alpha)

    def rejected_in_the_large(self, alpha: float = 0.05) -> tuple[Any, ...]:
        """Return the classes that come true more or less often than predicted.

        Parameters
        ----------
        alpha : float
            Probability of any false rejection.

        Returns
        -------
        tuple
            Labels.
        """
        return self._labels_rejected(self.table["large_adjusted"], alpha)

    def _labels_rejected(
        self, adjusted: Sequence[float], alpha: float
    ) -> tuple[Any, ...]:
        """Return the labels of classes whose adjusted p-value is at most `alpha`; NaN is none."""
        rejected = []
        for label, pvalue in zip(self.table["class"], adjusted, strict=True):
            if pvalue <= alpha:
                rejected.append(label)
        return tuple(rejected)

    def to_frame(self) -> Any:
        """Return a pandas ``DataFrame`` with a row for each class."""
        return self.table.to_frame()

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for strict JSON."""
        return {"rows": none_for_nonfinite(self.table.rows()), **super().to_dict()}

    def text_blocks(self) -> tuple[list[str], str, list[str]]:
        """Return what is printed: a title, the table, and nothing after it."""
        head = [
            "class",
            "statistic",
            "df",
            "p (Holm)",
            "predicted",
            "observed",
            "p (Holm)",
        ]
        rows = [
            [
                ellipsis(row["class"]),
                format_number(row["statistic"]),
                str(row["df"]),
                format_p_cell(row["adjusted"], row["method"]),
                f"{100 * row['predicted']:.1f} %",
                f"{100 * row['observed']:.1f} %",
                format_number(row["large_adjusted"]),
            ]
            for row in self.table.rows()
        ]
        title = (
            f"Shift and slope against {ellipsis(self.baseline)!r}; share of the class"
        )
        return [title], align_columns([head, *rows]), []

    def __str__(self) -> str:
        before, table, _ = self.text_blocks()
        return "\n".join([*before, table])

    def __repr__(self) -> str:
        return f"<ClassTests of {len(self.table)} classes, baseline {self.baseline!r}>"


@show_progress("testing classes")
@one_blas_thread()
@takes_row_options(TableOptions)
def class_tests(
    probs: Any = None,
    y: Any = None,
    *,
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
    method: Method = "auto",
    work: float = NESTED_WORK,
    baseline: Any = None,
    **data: Unpack[TableOptions],
) -> ClassTests:
    """Test each class: its shift and slope against the baseline, and its share.

    Parameters
    ----------
    probs : array-like, frame or Predictions
        Predicted probabilities, shape (n_samples, n_classes).
    y : array-like of shape (n_samples,)
        The labels that came true; not given beside a `Predictions`.
    n_resamples : int
        Most draws of labels for a p-value.
    seed : int or numpy Generator, optional
        Makes draws repeatable.
    method : {'auto', 'chi2', 'exact', 'sequential'}
        How p-values are computed: by chi-square, by `n_resamples` draws of labels, or by draws that
        stop once 50 were as extreme as the data. 'auto' takes chi-square where it can be trusted
        and draws labels elsewhere. Instead of exact p-values, which a hypothesis that leaves other
        parameters open does not have, shift and slope get a parametric bootstrap.
    work : float
        Cells (rows x classes x draws) that 'auto' may spend on simulation, for all classes
        together; where that is not enough, p-values are chi-square's and `reason` says so.
    baseline : label, optional
        Reference class of the log odds. Default: the last class that occurs in `y`.
    logits, classes, prefix, sample_weight, normalize, clip, missing : optional
        How rows are read; each is described in `Predictions.from_arrays`.

    Returns
    -------
    ClassTests
        `table`, `rejected(alpha)`, `rejected_in_the_large(alpha)`; ``print`` it.

    See Also
    --------
    ClassTests : What comes out.
    nested_models : The kind of miscalibration instead of the class.
    assess : Has ``miscalibrated_classes``, which do not depend on the baseline.
    calibration_table : Intercepts and slopes with intervals.

    Notes
    -----
    Holm's adjustment [1]_ keeps the probability of any false rejection at the level, for shifts and
    slopes and for shares separately. A shift or slope compares a class with the baseline and cannot
    say which of the two is off.

    References
    ----------
    .. [1] S. Holm (1979). A simple sequentially rejective multiple test procedure. Scandinavian
           Journal of Statistics 6:65-70.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([1, 1, 1], size=3000)
    >>> odds = probs * [3, 1, 1]  # class "a" comes true more often than predicted
    >>> y = [rng.choice(["a", "b", "c"], p=row / row.sum()) for row in odds]
    >>> class_tests(probs, y).rejected()
    ('a',)
    """
    predictions = predictions_for_inference(
        probs, y, independent=True, baseline=baseline, **data
    )
    return run_class_tests(
        predictions,
        fit_predictions(predictions),
        n_resamples=n_resamples,
        seed=seed,
        method=method,
        work=work,
    )


def run_class_tests(
    predictions: Predictions,
    fit: MCLLOFit,
    *,
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
    method: Method = "auto",
    work: float = NESTED_WORK,
) -> ClassTests:
    """Test each class of predictions that were fitted already."""
    n_tests = len(fit.tau)
    plan = PValuePlan.from_predictions(
        predictions,
        method=method,
        n_resamples=n_resamples,
        seed=seed,
        n_tests=n_tests,
        work=work,
        fewest=20 * n_tests,  # so that Holm's smallest adjusted p-value is below 0.05
    )
    # The cost of a restricted fit grows with its parameters; below twenty classes reading the rows
    # is what costs.
    fit_cost_factor = max(1.0, (n_tests + 1) / 20.0)
    cells = predictions.probs.size * n_tests * fit_cost_factor
    if method == "auto" and fit.converged and cells > N_CELLS_PER_WORK * work:
        statistics, dfs, tails = _wald_tests(fit, plan)
    else:
        family = Family(predictions)
        whole = unrestricted_fit(predictions, fit)
        restricted = [
            fit_with_class_at_identity(family, whole, j) for j in range(n_tests)
        ]
        statistics = [nested_lr_statistic(small, whole) for small in restricted]
        dfs = [whole.df - small.df for small in restricted]
        tails = [
            pvalue_against_larger(plan, family, small, family, whole)
            for small in restricted
        ]
    pvalues = [tail.pvalue for tail in tails]
    chi2_pvalues = [
        chi2_sf(value, df) for value, df in zip(statistics, dfs, strict=True)
    ]
    methods = [tail.method for tail in tails]
    distinct_methods = sorted(set(methods))
    # The baseline's own shift and slope are 1 by definition: its row of the table has no test.
    b = predictions.baseline_index
    columns: dict[str, Any] = {
        "class": list(predictions.classes),
        "statistic": np.insert(statistics, b, np.nan),
        "df": np.insert(dfs, b, 0),
        "pvalue": np.insert(pvalues, b, np.nan),
        "adjusted": np.insert(holm(pvalues), b, np.nan),
        "chi2_pvalue": np.insert(chi2_pvalues, b, np.nan),
        "method": [*methods[:b], "", *methods[b:]],
    }
    return ClassTests(
        table=Table(columns | in_the_large_columns(predictions)),
        method=distinct_methods[0] if len(distinct_methods) == 1 else "mixed",
        reason=tails[0].reason,
        n_resamples=max(tail.n_resamples for tail in tails),
        baseline=predictions.baseline,
        seed=plan.seed,
        why=tails[0].why,
    )


def _wald_tests(
    fit: MCLLOFit, plan: PValuePlan
) -> tuple[list[float], list[int], list[TestResult]]:
    """Return statistics, df and p-values of shift and slope from the fit's covariance alone."""
    n_free = len(fit.tau)
    why = plan.reason_for_chi2(fit.df).but("fits")
    away_from_identity = np.concatenate([fit.tau, fit.gamma - 1.0])
    is_estimated = ~np.isnan(np.diagonal(fit.cov_theta))
    statistics = []
    dfs = []
    for j in range(n_free):
        own = np.array([j, n_free + j])
        own = own[is_estimated[own]]
        covariance = fit.cov_theta[np.ix_(own, own)]
        away = away_from_identity[own]
        statistics.append(float(away @ np.linalg.solve(covariance, away)))
        dfs.append(len(own))
    pairs = zip(statistics, dfs, strict=True)
    tails = [
        TestResult(value, df, chi2_sf(value, df), "wald").because(why)
        for value, df in pairs
    ]
    return statistics, dfs, tails


def fit_with_class_at_identity(
    family: Family, mcllo_fit: RestrictedFit, j: int
) -> RestrictedFit:
    """Fit the model with class j at the identity, from the others' estimates."""
    n_free = len(family.identity) // 2
    is_own = np.zeros(2 * n_free, dtype=bool)
    is_own[[j, n_free + j]] = True
    moves_own = mcllo_fit.basis[is_own].any(axis=0)
    basis = mcllo_fit.basis[:, ~moves_own]
    start = (
        np.where(is_own, family.identity, mcllo_fit.theta)
        if mcllo_fit.settled
        else None
    )
    return restricted_fit(family, basis, start)


def in_the_large_columns(predictions: Predictions) -> dict[str, list[float]]:
    """Return predicted and observed shares of each class with z, p-values and Holm's."""
    probs = predictions.probs
    weight = predictions.row_weight
    total = float(weight.sum())
    observed = predictions.class_weight
    expected = weight @ probs
    variance = np.zeros(predictions.n_classes)
    for rows in row_blocks(*probs.shape):
        variance += weight[rows] @ (probs[rows] * (1.0 - probs[rows]))
    exact = None
    if predictions.has_whole_weights and total <= MAX_ROWS_FOR_EXACT_TAIL:
        exact = _exact_pvalues_of_classes(predictions, observed)
    return share_test_columns(observed, expected, variance, total, exact)


def _exact_pvalues_of_classes(predictions: Predictions, observed: Floats) -> Floats:
    """Return the exact two-sided p-value of each class's number of rows."""
    probs = predictions.probs
    n_copies = None
    if predictions.sample_weight is not None:
        n_copies = predictions.sample_weight.astype(np.int64)
    pvalues = []
    n_at_once = 32
    for first in range(0, predictions.n_classes, n_at_once):
        some = slice(first, first + n_at_once)
        # A single column of a table of many classes is one number of each page of memory.
        columns = probs[:, some].T.copy()
        if n_copies is not None:
            columns = np.repeat(columns, n_copies, axis=1)
        for column, count in zip(columns, observed[some], strict=True):
            pvalues.append(
                _poisson_binomial_pvalue(column, count, predictions.n_classes)
            )
    return np.array(pvalues)


def share_test_columns(
    observed: Floats,
    expected: Floats,
    variance: Floats,
    total: float,
    exact: Floats | None = None,
) -> dict[str, list[float]]:
    """Return the same, given sums over the rows; p-values are normal where there is no `exact`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (observed - expected) / np.sqrt(variance)
    pvalues = exact
    if pvalues is None:
        from scipy.special import erfc

        pvalues = erfc(np.abs(z) / np.sqrt(2.0))
    return {
        "predicted": (expected / total).tolist(),
        "observed": (observed / total).tolist(),
        "z": z.tolist(),
        "large_pvalue": pvalues.tolist(),
        "large_adjusted": holm(pvalues).tolist(),
    }


def _poisson_binomial_pvalue(probs: Floats, count: float, n_classes: int) -> float:
    """Return twice the smaller tail of the number of hits."""
    distribution = poisson_binomial_pmf
    if n_classes >= MIN_CLASSES_FOR_PCG:
        distribution = poisson_binomial_pmf_of_rare_hits
    mass = distribution(probs)
    k = int(count)
    at_most = float(mass[: k + 1].sum())
    at_least = float(mass[k:].sum())
    pvalue = 2.0 * min(at_most, at_least)
    # The masses come from Fourier transforms, whose rounding hides anything below 1e-12.
    return min(1.0, max(1e-12, pvalue))
