"""Which kind of miscalibration? Nested models from the identity to the full map.

==============  ==========================================  ===================  ===========
model           log odds after recalibration                parameters           inside
==============  ==========================================  ===================  ===========
identity        ``l_j``                                     0
temperature     ``gamma l_j``                               1                    identity
shift           ``tau_j + l_j``                             c - 1                identity
scale           ``gamma_j l_j``                             c - 1                temperature
common_slope    ``tau_j + gamma l_j``                       c                    temperature, shift
mcllo           ``tau_j + gamma_j l_j``                     2 (c - 1)            all above
full            ``tau_j + sum_k W_jk l_k``                  c (c - 1)            all above
==============  ==========================================  ===================  ===========

Each is ``theta = theta0 + A beta``, A columns of ``theta = (tau_1 .. tau_K, gamma_1 .. gamma_K)``
(a common slope is the sum of those of gamma), on the solver of the whole fit. How each is tested
against the identity and against the larger model that says whether it is enough (MCLLO; for MCLLO
the full map) is in `_diagnostics/restricted_models`. ``AIC = 2 df - 2 l``, ``BIC = df log n
- 2 l``. Only `scale` and `mcllo` depend on the baseline.

Closed testing: the intersection of two of the hypotheses "the labels follow model m" is again one
of them, so rejecting m only when m and every model inside it are rejected at level alpha keeps the
probability of any false rejection at alpha. The smallest model that is not rejected is named. The
identity's test is that of `calibration_test`. A true model m below MCLLO could be contradicted by
two tests, its own against MCLLO and MCLLO's against the full map, so both share the level:

========  =================================================================================
identity  rejected locally iff ``p <= alpha``: the main test, nothing is taken from it
between   iff ``p_m <= (1 - w) alpha`` or ``p_full <= w alpha``, w = `FULL_MAP_LEVEL_SHARE`
MCLLO     iff ``p_full <= alpha``
rejected  locally, and everything inside as well
========  =================================================================================

``p_full`` counts only where there is a full map, and where its p-value is not chi-square's in spite
of too little information; else ``w = 0``.

What is said of the choice does not overclaim: "enough" always means that at this level the labels
do not contradict it; where AIC or BIC clearly prefers another model, that is said in the same
statement; where the labels are separated, no kind is named at all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from .._fit.fit import MCLLOFit, fit_predictions
from .._inference.budget import N_RESAMPLES, NESTED_WORK
from .._inference.hypothesis_test import Reason, TestResult
from .._inference.likelihood_tests import CalibrationTest, Method, chi2_sf, run_test
from .._inference.monte_carlo import Seed
from .._utils.formatting import (
    PStyle,
    Table,
    ellipsis,
    format_number,
    join_words,
    pvalue_text,
)
from .._utils.notebook import NotebookResult, show_progress
from .._utils.parallel import one_blas_thread
from .._utils.results import Floats, Result, none_for_nonfinite
from .._utils.statements import Level, Statement
from .._validation.arguments import check_share
from .._validation.predictions import Predictions, predictions_for_inference
from .._validation.row_options import TableOptions, takes_row_options
from ..exceptions import InputError
from .class_tests import closed_test, format_p_cell
from .restricted_models import (
    Family,
    PValuePlan,
    RestrictedFit,
    nested_lr_statistic,
    pvalue_against_larger,
    pvalue_of_identity,
    restricted_fit,
    unrestricted_fit,
)

INSIDE: dict[str, tuple[str, ...]] = {
    "identity": (),
    "temperature": ("identity",),
    "shift": ("identity",),
    "scale": ("identity", "temperature"),
    "common_slope": ("identity", "temperature", "shift"),
    "mcllo": ("identity", "temperature", "shift", "scale", "common_slope"),
    "full": ("identity", "temperature", "shift", "scale", "common_slope", "mcllo"),
}
NAMES = {
    "identity": "no recalibration",
    "temperature": "one temperature",
    "shift": "shifts",
    "scale": "slopes",
    "common_slope": "shifts and one slope",
    "mcllo": "shifts and slopes",
    "full": "the full map",
}
"""What the models are called in sentences and printed tables; frames and JSON keep the keys."""
FULL_MAP_LEVEL_SHARE = 0.2
"""Part of the level that a model below MCLLO leaves to MCLLO's test against the full map: a round
number, small because few are wrong in that way alone."""
MAX_CLASSES_OF_FULL_MAP = 30
"""Classes beyond which the full map, then of 870 parameters and more, is not fitted; a round
number."""
FULL_MAP_PRODUCTS_PER_WORK = 200.0
"""Products of a Hessian of the full map, ``n (c (c - 1))^2``, that a cell of `work` pays for; a
round number."""
Z95 = 1.959963984540054  # normal quantile of two-sided 95 %; its square is that of chi-square, 1 df


class FittedNestedModels:
    """The fitted nested models; the full map if `work` pays for it
    (`_diagnostics/restricted_models`).
    """

    def __init__(
        self, predictions: Predictions, fit: MCLLOFit, work: float = NESTED_WORK
    ) -> None:
        self.mcllo = Family(predictions)
        self.fits: dict[str, RestrictedFit] = {}
        for name, basis in free_directions_by_model(len(predictions.log_odds)).items():
            if name != "mcllo" or not fit.converged:
                self.fits[name] = restricted_fit(
                    self.mcllo, self.mcllo.identified_directions(basis)
                )
        # MCLLO itself was fitted already; where that fit did not converge (separated labels), the
        # restricted one says whether the estimate is finite.
        settled = fit.converged or self.fits["mcllo"].settled
        self.fits["mcllo"] = replace(
            unrestricted_fit(predictions, fit), settled=settled
        )
        self.total = float(predictions.row_weight.sum())
        self.skipped = ""
        why_not = self._why_no_full_map(predictions, work)
        if why_not:
            self.skipped = f"the full map is left out: {why_not}"
        else:
            self.full = Family(predictions, full=True)
            basis = self.full.identified_directions(np.eye(len(self.full.identity)))
            self.fits["full"] = restricted_fit(self.full, basis)

    def _why_no_full_map(self, predictions: Predictions, work: float) -> str:
        """Return why the full map is not fitted; empty where it is."""
        n_classes = predictions.n_classes
        n_parameters = n_classes * (n_classes - 1)
        if n_classes > MAX_CLASSES_OF_FULL_MAP:
            return f"more than {MAX_CLASSES_OF_FULL_MAP} classes"
        if n_parameters >= self.total:
            return f"{n_parameters} parameters for {self.total:g} rows"
        products = predictions.n_samples * float(n_parameters) ** 2
        if products > FULL_MAP_PRODUCTS_PER_WORK * work:
            return "too much data for its many parameters"
        return ""

    def temperature_slope(self) -> tuple[float, float, float]:
        """Return the slope of one temperature with its 95 % interval; NaN where there is none."""
        fit = self.fits["temperature"]
        if fit.df == 0 or not fit.settled:
            return math.nan, math.nan, math.nan
        direction = free_directions_by_model(len(self.mcllo.log_odds))["temperature"][
            :, 0
        ]
        hessian = self.mcllo.partition()(fit.theta).hessian
        information = float(direction @ hessian @ direction)
        half_width = Z95 / math.sqrt(max(information, 1e-300))
        slope = float(fit.theta[-1])
        return slope, slope - half_width, slope + half_width

    def name_larger_model(self, name: str) -> str | None:
        """Return the model that says whether this one is enough."""
        if name == "full":
            return None
        larger = "full" if name == "mcllo" else "mcllo"
        return larger if larger in self.fits else None


def free_directions_by_model(n_compared: int) -> dict[str, Floats]:
    """Return the free directions of theta = (tau, gamma), for each model up to MCLLO."""
    every = np.eye(2 * n_compared)
    tau = every[:, :n_compared]
    gamma = every[:, n_compared:]
    common_slope = gamma.sum(axis=1, keepdims=True)
    return {
        "identity": every[:, :0],
        "temperature": common_slope,
        "shift": tau,
        "scale": gamma,
        "common_slope": np.hstack([tau, common_slope]),
        "mcllo": every,
    }


@dataclass(frozen=True, eq=False)
class NestedModelRow(Result):
    """One model of the nested models.

    Attributes
    ----------
    model : str
        Its name.
    df : int
        Parameters that the rows can tell apart.
    statistic, pvalue : float
        Likelihood ratio of the identity against this model.
    method : {'chi2', 'exact', 'score', 'bound'}
        How `pvalue` was computed.
    chi2_pvalue : float
        The large-sample one.
    n_resamples, reason : int, str
        Draws behind `pvalue`, and why so.
    larger, larger_statistic, larger_df, larger_pvalue, larger_method, larger_chi2_pvalue, ...
        Is this model enough? It against MCLLO (MCLLO against the full map); 'bootstrap' draws
        labels from the fitted smaller model and is approximate, 'score' does so without refits,
        'exact' is the identity's. None or NaN at the top.
    rejected : bool
        Whether closed testing rejects that the labels follow this model.
    log_likelihood, aic, bic : float
        Of the fitted model.
    larger_too_costly : bool
        Whether `larger_pvalue` is chi-square's only because simulating it would cost too much.
    """

    model: str
    df: int
    statistic: float
    pvalue: float
    method: str
    chi2_pvalue: float
    n_resamples: int
    reason: str
    larger: str | None
    larger_statistic: float
    larger_df: int
    larger_pvalue: float
    larger_method: str | None
    larger_chi2_pvalue: float
    larger_n_resamples: int
    larger_reason: str
    rejected: bool
    log_likelihood: float
    aic: float
    bic: float
    larger_too_costly: bool = False

    left_out = ("larger_too_costly",)


def columns_of_model_test(test: TestResult, prefix: str = "") -> dict[str, Any]:
    """Return what a row holds of a model's test against another; `prefix` precedes each name."""
    has_test = test.method != ""
    columns = {
        "statistic": test.statistic,
        "pvalue": test.pvalue,
        "method": test.method if has_test else None,
        "chi2_pvalue": chi2_sf(test.statistic, test.df or 0) if has_test else math.nan,
        "n_resamples": test.n_resamples,
        "reason": test.reason,
    }
    return {prefix + name: value for name, value in columns.items()}


def nested_models_rows(
    models: FittedNestedModels, plan: PValuePlan, test: CalibrationTest, alpha: float
) -> tuple[NestedModelRow, ...]:
    """Return a row for each model; `test` is that of the identity against MCLLO."""
    comparisons = {
        name: _test_model_against_larger(
            models, plan, test, name, models.name_larger_model(name)
        )
        for name in models.fits
    }
    rejected = closed_test(closed_testing_pvalues(comparisons), INSIDE, alpha)
    rows = []
    for name, fit in models.fits.items():
        from_identity = _test_model_against_larger(models, plan, test, "identity", name)
        to_larger = comparisons[name]
        row = NestedModelRow(
            model=name,
            df=fit.df,
            **columns_of_model_test(from_identity),
            larger=models.name_larger_model(name),
            larger_df=to_larger.df or 0,
            **columns_of_model_test(to_larger, "larger_"),
            rejected=rejected[name],
            log_likelihood=fit.log_likelihood,
            aic=2.0 * fit.df - 2.0 * fit.log_likelihood,
            bic=math.log(models.total) * fit.df - 2.0 * fit.log_likelihood,
            larger_too_costly=to_larger.is_too_costly,
        )
        rows.append(row)
    return tuple(rows)


def closed_testing_pvalues(
    tests_against_larger: Mapping[str, TestResult],
) -> dict[str, float]:
    """Return the p-values that closed testing holds against alpha; NaN where a test is not used."""
    local = {name: test.pvalue for name, test in tests_against_larger.items()}
    full = tests_against_larger["mcllo"]
    # Chi-square with so many parameters rejects too often where information is missing.
    if full.df == 0 or (full.is_too_costly and full.method == "chi2"):
        return local | {"mcllo": math.nan}
    for name in local.keys() - {"identity", "mcllo", "full"}:
        own = local[name] / (1.0 - FULL_MAP_LEVEL_SHARE)
        local[name] = min(own, full.pvalue / FULL_MAP_LEVEL_SHARE)
    return local


def _test_model_against_larger(
    models: FittedNestedModels,
    plan: PValuePlan,
    test: CalibrationTest,
    small: str,
    large: str | None,
) -> TestResult:
    """Test a model against a larger one; the method is empty where there is none."""
    if large is None:
        return TestResult(math.nan, 0, math.nan, method="")
    below = models.fits[small]
    above = models.fits[large]
    family = models.full if large == "full" else models.mcllo
    statistic = nested_lr_statistic(below, above)
    if small == large:
        found = TestResult(statistic, 0, 1.0, "exact")
    elif (small, large) == ("identity", "mcllo"):
        found = TestResult.from_result(test)
    elif small == "identity":
        found = pvalue_of_identity(plan, family, above.basis, statistic)
    else:
        found = pvalue_against_larger(plan, models.mcllo, below, family, above)
    return replace(found, statistic=statistic, df=above.df - below.df)


MIN_CRITERION_LEAD = 2.0
"""How much smaller AIC or BIC must be for a model to be preferred; below that the other has
"substantial support" (Burnham and Anderson 2002, section 2.6)."""


@dataclass(frozen=True, eq=False, repr=False)
class NestedModels(NotebookResult):
    """Nested models of miscalibration; print it for a table and the verdict.

    Attributes
    ----------
    rows : tuple of NestedModelRow
        From the identity upwards.
    chosen : str
        The smallest model that closed testing does not reject. Not rejected is not proven.
    kind : str
        The kind of miscalibration that this means, in a sentence.
    alpha : float
        Probability of any false rejection.
    method : {'chi2', 'simulated', 'mixed'}
        How the p-values behind `chosen` were computed; 'simulated' stands for exact, bootstrap,
        score and guaranteed bounds. `rows` say it one by one.
    reason : str
        Why.
    skipped : str
        Why the full map is missing; empty when it is there.
    seed : int
        What draws were made from.
    why : Reason or None
        What `reason` says, as facts.
    slope : tuple of float
        The slope of all classes under one temperature, with a 95 % interval.
    simple : str
        The same as `chosen` if the full map did not exist.
    separated : bool
        Whether estimates do not exist, so that the kind cannot be told.

    See Also
    --------
    nested_models : Makes it.
    ClassTests : The class instead of the kind.
    Details : Has it as `nested_models`.
    mcllo.plot.nested_models : Draws it.

    Examples
    --------
    >>> import mcllo
    >>> probs = [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6], [0.5, 0.3, 0.2]] * 10
    >>> y = [0, 1, 2, 0, 1, 2, 0, 1] * 5
    >>> found = mcllo.nested_models(probs, y, method="chi2")
    >>> [row.model for row in found.rows][:3], found.chosen
    (['identity', 'temperature', 'shift'], 'identity')
    """

    rows: tuple[NestedModelRow, ...]
    chosen: str
    kind: str
    alpha: float
    method: str
    reason: str
    skipped: str
    seed: int
    why: Reason | None = None
    slope: tuple[float, float, float] = (math.nan, math.nan, math.nan)
    simple: str = ""
    separated: bool = False

    def row(self, model: str) -> NestedModelRow:
        """Return the row of a model."""
        for row in self.rows:
            if row.model == model:
                return row
        known = ", ".join(repr(row.model) for row in self.rows)
        raise InputError(f"model must be one of {known}; got {model!r}.")

    @property
    def table(self) -> Table:
        """All numbers, a row for each model."""
        columns = {}
        for name in self.rows[0].to_dict():
            columns[name] = [getattr(row, name) for row in self.rows]
        return Table(columns)

    def to_frame(self) -> Any:
        """Return a pandas ``DataFrame`` with a row for each model."""
        return self.table.to_frame()

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for strict JSON."""
        names = (
            "rows",
            "chosen",
            "sentence",
            "alpha",
            "method",
            "reason",
            "skipped",
            "seed",
        )
        return {name: none_for_nonfinite(getattr(self, name)) for name in names}

    @property
    def sentence(self) -> str:
        """What the choice says about the predictions, and on which evidence."""
        return " ".join(statement.text for statement in self.statements())

    def statements(self, p: PStyle = pvalue_text) -> list[Statement]:
        """Return the same as statements: the kind, the evidence, rivals, what lies beyond.

        Each is a sentence; p-values are written by `p`.
        """
        chosen = self.row(self.chosen)
        evidence = self._evidence_text(chosen, p)
        statements = [self._kind_statement()]
        statements.append(
            Statement("kind.evidence", evidence, numbers={"alpha": self.alpha})
        )

        kept = [row.model for row in self.rows if not row.rejected]
        smallest_kept = [name for name in kept if not set(kept) & set(INSIDE[name])]
        rivals = [name for name in smallest_kept if name != self.chosen]
        if rivals:
            words = (
                f"Not rejected either: {join_words([NAMES[name] for name in rivals])}."
            )
            statements.append(
                Statement("kind.rivals", words, "doubt", {"models": rivals})
            )
        if chosen.larger_too_costly and chosen.larger_method == "chi2":
            words = "That p-value is chi-square's, which so little information may not support."
            statements.append(Statement("kind.weak", words, "doubt"))
        return statements

    def _evidence_text(self, chosen: NestedModelRow, p_style: PStyle) -> str:
        """Return on which evidence a model is chosen."""
        if chosen.model == "full":
            return self._full_map_text(p_style)
        if chosen.larger is None:
            return f"Every smaller model is rejected at level {self.alpha:g}."
        pvalue = p_style(chosen.larger_pvalue, bound=chosen.larger_method == "bound")
        if chosen.model == "identity":
            return f"At level {self.alpha:g}, p {pvalue}; that is not proof of calibration."
        if self.separated:
            return (
                f"At level {self.alpha:g} {NAMES[self.chosen]} would do (p {pvalue})."
            )
        return (
            f"Nothing beyond that was found at level {self.alpha:g} (p {pvalue}), which is not "
            "proof."
        )

    def _kind_statement(self) -> Statement:
        """Return the kind, with what AIC and BIC say against it."""
        preferred = models_preferred_by_criteria(self.rows, self.chosen)
        numbers = {
            "model": self.chosen,
            "preferred": preferred,
            "separated": self.separated,
        }
        if self.separated or not preferred:
            level: Level = "doubt" if self.separated else "plain"
            return Statement("kind.name", self.kind, level, numbers)
        names = [NAMES[model] for model in preferred.values()]
        if len(preferred) == 1:
            words = f"{join_words(list(preferred))} prefers {names[0]}"
        elif names[0] == names[1]:
            words = f"{join_words(list(preferred))} prefer {names[0]}"
        else:
            words = f"AIC prefers {names[0]}, and BIC {names[1]}"
        return Statement("kind.name", f"{self.kind} But {words}.", "doubt", numbers)

    def _full_map_text(self, p_style: PStyle) -> str:
        """Return the evidence for the full map, and what the best of the others would be."""
        mcllo = self.row("mcllo")
        pvalue = p_style(mcllo.larger_pvalue, bound=mcllo.larger_method == "bound")
        words = (
            f"The full map fits better than MCLLO at level {self.alpha:g} (p {pvalue}): look at "
            "how classes are confused."
        )
        if self.simple in ("", "mcllo", "full"):
            return words
        simple = self.row(self.simple)
        pvalue = p_style(simple.larger_pvalue, bound=simple.larger_method == "bound")
        return (
            f"{words} Of the simpler recalibrations, {NAMES[self.simple]} may do as well as "
            f"shifts and slopes (p {pvalue})."
        )

    def text_blocks(self) -> tuple[list[str], str, list[str]]:
        """Return what is printed: sentences, the table, and sentences after it."""
        table = Table(
            {
                "model": [NAMES[row.model] for row in self.rows],
                "df": [row.df for row in self.rows],
                "statistic": [row.statistic for row in self.rows],
                "p": [format_p_cell(row.pvalue, row.method) for row in self.rows],
                "p (enough?)": [
                    format_p_cell(row.larger_pvalue, row.larger_method)
                    for row in self.rows
                ],
                "AIC": [row.aic for row in self.rows],
                "BIC": [row.bic for row in self.rows],
            }
        )
        return (
            [self.sentence],
            str(table),
            [f"({self.skipped})"] if self.skipped else [],
        )

    def __str__(self) -> str:
        before, table, after = self.text_blocks()
        return "\n".join([*before, table, *after])

    def __repr__(self) -> str:
        return f"<NestedModels of {len(self.rows)} models: chosen {self.chosen!r}>"


@show_progress("climbing the nested models")
@one_blas_thread()
@takes_row_options(TableOptions)
def nested_models(
    probs: Any = None,
    y: Any = None,
    *,
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
    method: Method = "auto",
    alpha: float = 0.05,
    work: float = NESTED_WORK,
    baseline: Any = None,
    **data: Unpack[TableOptions],
) -> NestedModels:
    """Find the smallest model of miscalibration that the labels do not contradict.

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
        and draws labels elsewhere. Whether a model is enough is then judged by parametric
        bootstrap, for it cannot be tested exactly.
    alpha : float
        Probability with which closed testing may reject any true model.
    work : float
        Cells (rows x classes x draws) that 'auto' may spend on simulation, for all models together;
        where that is not enough, p-values are chi-square's and say so.
    baseline : label, optional
        Reference class of the log odds. Default: the last class that occurs in `y`.
    logits, classes, prefix, sample_weight, normalize, clip, missing : optional
        How rows are read; each is described in `Predictions.from_arrays`.

    Returns
    -------
    NestedModels
        `rows`, `chosen`, `sentence`, `table`; ``print`` it.

    See Also
    --------
    NestedModels : What comes out.
    class_tests : The class instead of the kind.
    calibration_table : Intercepts and slopes with intervals.
    mcllo.plot.nested_models : Draws it.

    Notes
    -----
    Closed testing [1]_ keeps the probability of rejecting any true model at `alpha`. The full map,
    in which every class's log odds depend on all others, is the framework of [2]_. That a model is
    not rejected does not show that it is true.

    References
    ----------
    .. [1] R. Marcus, E. Peritz, K. R. Gabriel (1976). On closed testing procedures with special
           reference to ordered analysis of variance. Biometrika 63:655-660.
    .. [2] K. Van Hoorde, Y. Vergouwe, D. Timmerman, S. Van Huffel, E. W. Steyerberg, B. Van Calster
           (2014). Assessing calibration of multinomial risk prediction models. Statistics in
           Medicine 33:2585-2596.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> honest = rng.dirichlet([1, 1, 1], size=4000)
    >>> y = [rng.choice(3, p=row) for row in honest]
    >>> sharp = honest**2 / (honest**2).sum(axis=1, keepdims=True)  # overconfident
    >>> found = nested_models(sharp, y)
    >>> found.chosen, found.row("temperature").df
    ('temperature', 1)
    """
    predictions = predictions_for_inference(
        probs, y, independent=True, baseline=baseline, **data
    )
    return fit_nested_models(
        predictions,
        n_resamples=n_resamples,
        seed=seed,
        method=method,
        alpha=alpha,
        work=work,
    )


def fit_nested_models(
    predictions: Predictions,
    fit: MCLLOFit | None = None,
    *,
    test: CalibrationTest | None = None,
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
    method: Method = "auto",
    alpha: float = 0.05,
    work: float = NESTED_WORK,
) -> NestedModels:
    """Fit and test the nested models; a fit or test that is given is not made again."""
    check_share("alpha", alpha)
    plan = PValuePlan.from_predictions(
        predictions,
        method=method,
        n_resamples=n_resamples,
        seed=seed,
        # Models below MCLLO have a simulated p-value each, four against the identity and four
        # against MCLLO: eight, rounded up.
        n_tests=10,
        work=work,
    )
    if fit is None:
        fit = fit_predictions(predictions)
    models = FittedNestedModels(predictions, fit, work)
    # The p-values of the models are those of likelihood ratios, whatever the user's own test.
    if test is None or test.kind != "lr":
        test = run_test(
            predictions, fit, method=method, n_resamples=n_resamples, seed=plan.seed
        )
    rows = nested_models_rows(models, plan, test, alpha)
    chosen = smallest_model(rows, {row.model for row in rows if row.rejected})
    chosen_fit = models.fits[chosen.model]
    separated = chosen.model != "identity" and (fit.separated or not chosen_fit.settled)
    if separated:
        kind = UNTOLD
    else:
        sure = not models_preferred_by_criteria(rows, chosen.model)
        kind = describe_kind(chosen.model, chosen_fit, predictions, sure)
    why = plan.choose_simulation(models.mcllo, fit.df).why
    return NestedModels(
        rows=rows,
        chosen=chosen.model,
        kind=kind,
        alpha=alpha,
        method=_overall_method(rows),
        reason=str(why),
        skipped=models.skipped,
        seed=plan.seed,
        why=why,
        slope=models.temperature_slope(),
        simple=_smallest_below_full(rows, chosen, alpha).model,
        separated=separated,
    )


def _overall_method(rows: Sequence[NestedModelRow]) -> str:
    """Return how the p-values of models against larger ones were computed."""
    are_chi2 = [
        row.larger_method == "chi2" for row in rows if row.larger_method is not None
    ]
    if all(are_chi2) and are_chi2:
        return "chi2"
    if any(are_chi2):
        return "mixed"
    return "simulated"


def _smallest_below_full(
    rows: Sequence[NestedModelRow], chosen: NestedModelRow, alpha: float
) -> NestedModelRow:
    """Return the model that would be chosen if the full map did not exist."""
    if chosen.model != "full":
        return chosen
    pvalues = {row.model: row.larger_pvalue for row in rows}
    pvalues["mcllo"] = 1.0  # nothing is left that could contradict it
    rejected = closed_test(pvalues, INSIDE, alpha * (1.0 - FULL_MAP_LEVEL_SHARE))
    return smallest_model(
        rows, {"full", *(model for model in pvalues if rejected[model])}
    )


def smallest_model(
    rows: Sequence[NestedModelRow], excluded: Set[str]
) -> NestedModelRow:
    """Return the smallest model that is not `excluded`.

    Of equals the likelier; models that coincide for two classes are equal.
    """
    kept = [row for row in rows if row.model not in excluded]
    fewest_parameters = min(row.df for row in kept)
    smallest_rows = [row for row in kept if row.df == fewest_parameters]
    # Rounding of the likelihood must not choose among models that coincide.
    return max(smallest_rows, key=lambda row: round(row.log_likelihood, 6))


def models_preferred_by_criteria(
    rows: Sequence[NestedModelRow], chosen: str
) -> dict[str, str]:
    """Return by name of the criterion, AIC or BIC, the model that it clearly prefers."""
    preferred = {}
    chosen_row = next(row for row in rows if row.model == chosen)
    for criterion in ("aic", "bic"):
        values = {row.model: getattr(row, criterion) for row in rows}
        best = min(values, key=values.__getitem__)
        if getattr(chosen_row, criterion) - values[best] > MIN_CRITERION_LEAD:
            preferred[criterion.upper()] = best
    return preferred


UNTOLD = (
    "The kind cannot be told: these predictions separate the labels, so that recalibrations fit "
    "these few rows without limit."
)


def describe_kind(
    model: str, fit: RestrictedFit, predictions: Predictions, sure: bool = True
) -> str:
    """Name the kind of miscalibration; not `sure` where AIC or BIC prefers another."""
    baseline = repr(ellipsis(predictions.baseline))
    if model == "identity":
        return "No departure found."
    if model == "temperature":
        verb = "is" if sure else "may be"
        return f"One temperature {verb} enough: the predictions are {_slope_text(fit.theta[-1])}."
    if model == "shift":
        return f"Class priors have shifted: {_largest_shift_text(fit, predictions)}."
    if model == "scale":
        return f"Classes differ in slope against {baseline}; no shift is needed."
    if model == "common_slope":
        shift = _largest_shift_text(fit, predictions)
        slope = _slope_text(fit.theta[-1])
        return f"Class priors have shifted ({shift}), and the predictions are {slope}."
    if model == "mcllo":
        return f"Classes differ in slope: each needs its own shift and slope against {baseline}."
    return (
        "Shifts and slopes class by class are not enough: the odds of a class also depend on the "
        "probabilities of the others."
    )


def _slope_text(gamma: float) -> str:
    if gamma <= 0.0:
        return f"ranked the wrong way (slope {format_number(gamma)})"
    word = "overconfident" if gamma < 1.0 else "underconfident"
    return f"{word} (slope {format_number(gamma)})"


def _largest_shift_text(fit: RestrictedFit, predictions: Predictions) -> str:
    """Return the pair of classes whose odds are off most, whatever the baseline."""
    tau = np.insert(
        fit.theta[: len(predictions.compared)], predictions.baseline_index, 0.0
    )
    highest = int(np.argmax(tau))
    lowest = int(np.argmin(tau))
    raised = repr(ellipsis(predictions.classes[highest]))
    lowered = repr(ellipsis(predictions.classes[lowest]))
    factor = float(np.exp(tau[highest] - tau[lowest]))
    return f"most for {raised} against {lowered}, odds times {format_number(factor)}"
