"""`calibration_table`: calibration intercepts and slopes as clinical papers print them.

With l_j the log odds of class j against a reference class, the baseline (Van Hoorde et al. 2014),
or of each class against all others together (`one_class_versus_rest`: a model of two outcomes), the
maximum likelihood fits of

==================  ========================  ===================================================
model               log odds of the labels    what is printed
==================  ========================  ===================================================
shift               ``tau_j + l_j``           intercepts: calibration in the large; 0 is right
mcllo               ``tau_j + gamma_j l_j``   slopes, 1 is right, and the intercepts beside them
common_slope        ``tau_j + gamma l_j``     one slope for all classes (not against the rest)
temperature         ``gamma l_j``             one slope for all classes and no intercepts (same)
==================  ========================  ===================================================

==================  ============================================================================
interval            estimate -/+ z se, or by profile likelihood (`_fit/profile`)
covariance          ``B (B' H B)^+ B'``: B the model's directions, H the information there; in
                    groups and under survey weights the sandwich (`_fit/covariance`)
p-value             of one parameter, by Wald: ``2 Phi(-|estimate - right| / se)``; adjusted by
                    Holm over the classes, for each model's intercepts and slopes separately
joint tests         likelihood ratios: intercepts (shift against nothing), slopes (mcllo against
                    shift), both; p-values by `restricted_models`; not for dependent rows
==================  ============================================================================

Where labels are separated there is no finite estimate, and its place is empty.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from .._fit.covariance import sum_unit_scores
from .._fit.fit import MCLLOFit, fit_predictions
from .._fit.profile import ProfileLikelihood
from .._inference.budget import N_RESAMPLES, NESTED_WORK
from .._inference.calibration_test import needs_robust_covariance
from .._inference.hypothesis_test import TestResult
from .._inference.likelihood_tests import run_test
from .._inference.monte_carlo import Seed, seed_entropy
from .._model.kernel import Derivatives
from .._model.many_classes import is_full_hessian_affordable
from .._utils.atomic_files import StrPath
from .._utils.formatting import (
    Table,
    escape_latex,
    format_count,
    format_number,
    latex_pvalue,
    pvalue_text,
)
from .._utils.linalg import symmetric_inverse, whitening_matrix
from .._utils.notebook import NotebookResult, show_progress
from .._utils.parallel import one_blas_thread
from .._utils.results import Floats, Result, none_for_nonfinite
from .._utils.statements import ESTIMATION_WARNINGS, suppress_warnings
from .._validation.arguments import check_share
from .._validation.predictions import Predictions, predictions_for_inference
from .._validation.row_options import RowOptions, takes_row_options
from ..exceptions import InputError
from .class_tests import format_p_cell, holm
from .nested_models import free_directions_by_model
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

Interval = Literal["wald", "profile"]
IDENTITY_VALUES = {"intercept": 0.0, "slope": 1.0}
"""What calibrated predictions have."""


class ParameterEstimate(NamedTuple):
    """One estimate: a row of the table."""

    model: str
    label: Hashable | None
    parameter: str
    estimate: float
    se: float
    low: float
    high: float

    @property
    def pvalue(self) -> float:
        """Wald's, of the value that calibrated predictions have."""
        from scipy.special import erfc

        if not self.se > 0.0:
            return np.nan
        z = abs(self.estimate - IDENTITY_VALUES[self.parameter]) / self.se
        return float(erfc(z / np.sqrt(2.0)))


def one_class_versus_rest(predictions: Predictions, k: int) -> Predictions:
    """Return the rows as predictions of two outcomes: class k, or any other."""
    rest = np.delete(predictions.probs, k, axis=1).sum(axis=1)
    return Predictions(
        probs=np.column_stack([predictions.probs[:, k], rest]),
        codes=(predictions.codes != k).astype(np.intp),
        classes=(True, False),
        baseline=False,
        sample_weight=predictions.sample_weight,
        weight_kind=predictions.weight_kind,
        groups=predictions.groups,
    )


class CalibrationModels:
    """The fitted models with what they say of their parameters."""

    def __init__(
        self, predictions: Predictions, fit: MCLLOFit, level: float, interval: Interval
    ) -> None:
        from scipy.special import ndtri

        self.predictions = predictions
        self.family = Family(predictions)
        self.interval = interval
        self.normal_quantile = float(ndtri(0.5 + level / 2.0))
        self.bases = free_directions_by_model(len(fit.tau))
        self.fits = {"mcllo": unrestricted_fit(predictions, fit)}

    def fit(self, name: str) -> RestrictedFit:
        """Return a model's fit, made once."""
        if name not in self.fits:
            basis = self.family.identified_directions(self.bases[name])
            self.fits[name] = restricted_fit(self.family, basis)
        return self.fits[name]

    def rows(self, name: str, label: Hashable | None) -> Iterator[ParameterEstimate]:
        """Yield the parameters of a model; `label` is the class that stands against the rest."""
        compared = self.predictions.compared
        k = len(compared)
        labels = compared if label is None else (label,)
        fit = self.fit(name)
        variance, ends = self._variances_and_intervals(name, fit)

        def parameter(kind: str, own: Hashable | None, i: int) -> ParameterEstimate:
            """Return element i of theta; what has no variance is not known."""
            standard_error = float(np.sqrt(variance[i]))
            estimate = np.nan if np.isnan(standard_error) else float(fit.theta[i])
            low, high = ends[i].tolist()
            return ParameterEstimate(
                name, own, kind, estimate, standard_error, low, high
            )

        for j, own in enumerate(labels):
            if name != "temperature":
                yield parameter("intercept", own, j)
            if name == "mcllo":
                yield parameter("slope", own, k + j)
        if name in ("common_slope", "temperature"):
            yield parameter("slope", None, k)

    def joint_tests(
        self, plan: PValuePlan
    ) -> Iterator[tuple[str, float, int, TestResult]]:
        """Yield the joint tests of intercepts, of slopes, and of both: statistic, df, p-value."""
        identity = self.fit("identity")
        shift = self.fit("shift")
        mcllo = self.fit("mcllo")
        statistic = nested_lr_statistic(identity, shift)
        pvalue = pvalue_of_identity(plan, self.family, shift.basis, statistic)
        yield "intercepts", statistic, shift.df, pvalue
        statistic = nested_lr_statistic(shift, mcllo)
        pvalue = pvalue_against_larger(plan, self.family, shift, self.family, mcllo)
        yield "slopes", statistic, mcllo.df - shift.df, pvalue
        statistic = nested_lr_statistic(identity, mcllo)
        pvalue = pvalue_of_identity(plan, self.family, mcllo.basis, statistic)
        yield "intercepts and slopes", statistic, mcllo.df, pvalue

    def _variances_and_intervals(
        self, name: str, fit: RestrictedFit
    ) -> tuple[Floats, Floats]:
        """Return variances of theta and ends of intervals; NaN where nothing is known."""
        n_parameters = len(fit.theta)
        variance = np.full(n_parameters, np.nan)
        if not fit.settled:
            return variance, np.full((n_parameters, 2), np.nan)
        basis = fit.basis if name == "mcllo" else self.bases[name]
        information = basis.T @ self.family.partition()(fit.theta).hessian @ basis
        root = whitening_matrix(information)
        covariance = root @ root.T
        # The pseudoinverse leaves out directions that rows cannot tell: a parameter that loses more
        # than rounding (a millionth) by that has no variance.
        projection = information @ covariance
        lost = basis @ (np.eye(len(covariance)) - projection)
        largest_loss = np.abs(lost).max(axis=1, initial=0.0)
        is_known = basis.any(axis=1) & (largest_loss < 1e-6)
        if needs_robust_covariance(self.predictions):
            meat = sum_unit_scores(self.predictions, fit.theta).covariance
            covariance = covariance @ (basis.T @ meat @ basis) @ covariance
        variance_of_theta = np.einsum("ij,jk,ik->i", basis, covariance, basis)
        variance[is_known] = variance_of_theta[is_known]
        if self.interval == "profile" and is_known.any():
            return variance, self._profile_intervals(fit, basis, is_known)
        half_width = self.normal_quantile * np.sqrt(variance)
        low = fit.theta - half_width
        high = fit.theta + half_width
        return variance, np.stack([low, high], axis=1)

    def _profile_intervals(
        self, fit: RestrictedFit, basis: Floats, is_known: NDArray[np.bool_]
    ) -> Floats:
        """Return the ends of profile intervals of the parameters that are known."""
        # Each parameter that is free is moved by one column: its own, or that of a common slope.
        known = np.flatnonzero(is_known)
        column_of_known = basis[known].argmax(axis=1)
        columns = np.unique(column_of_known)
        free = basis[:, columns]
        identity = self.family.identity
        likelihood = self.family.likelihood()

        def objective(beta: Floats) -> Derivatives:
            terms = likelihood(identity + free @ beta)
            return Derivatives(
                terms.value, free.T @ terms.gradient, free.T @ terms.hessian @ free
            )

        beta = np.linalg.pinv(free) @ (fit.theta - identity)
        variance = np.diagonal(symmetric_inverse(objective(beta).hessian))
        profile = ProfileLikelihood(objective, beta, variance, self.normal_quantile)
        ends_of_beta = np.array(
            [
                [profile.interval_end(b, -1.0), profile.interval_end(b, 1.0)]
                for b in range(len(columns))
            ]
        )
        ends = np.full((len(fit.theta), 2), np.nan)
        position = np.searchsorted(columns, column_of_known)
        ends[known] = identity[known][:, None] + ends_of_beta[position]
        return ends


Versus = Literal["baseline", "rest"]


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationTable(Result, NotebookResult):
    """Calibration intercepts and slopes; print it, or write it for a paper with `to_latex`.

    Attributes
    ----------
    parameters : Table
        One row for each estimate: ``model``, ``class`` (None for all classes), ``parameter``
        ("intercept" or "slope"), ``estimate``, ``se``, ``low``, ``high``, ``pvalue`` and
        ``adjusted`` (Holm's).
    tests : Table
        Likelihood ratio tests of all intercepts, all slopes, and both: ``of``, ``class``,
        ``statistic``, ``df``, ``pvalue`` and ``method``; empty for dependent rows.
    versus : {"baseline", "rest"}
        What the classes are compared with.
    baseline : label or None
        The reference class; None for the rest.
    level : float
        Of the intervals.
    interval : {"wald", "profile"}
        How they were computed.
    n_samples : int
        Rows.
    robust : bool
        Whether standard errors allow for groups or survey weights.
    seed : int
        What simulated p-values were drawn from.

    See Also
    --------
    calibration_table : Makes it.
    ClassTests : A test for each class.
    NestedModels : Which of the models is enough.

    Examples
    --------
    >>> import mcllo
    >>> probs = [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]] * 10
    >>> y = [0, 1, 1, 0, 0, 0, 1, 1] * 5
    >>> found = mcllo.calibration_table(probs, y, n_resamples=19, seed=0)
    >>> found.baseline, found.interval, found.n_samples
    (1, 'wald', 40)
    """

    parameters: Table
    tests: Table
    versus: Versus
    baseline: Hashable | None
    level: float
    interval: Interval
    n_samples: int
    robust: bool
    seed: int

    left_out = ("parameters", "tests")

    @property
    def paper(self) -> Table:
        """The table that papers print, a row for each class: estimates as words with intervals."""
        estimates = {}
        for row in self.parameters.rows():
            estimates[row["model"], row["class"], row["parameter"]] = row
        rows: list[tuple[Any, ...]] = []
        for (model, label, _), shift in estimates.items():
            if model != "shift":
                continue
            slope = estimates["mcllo", label, "slope"]
            intercept = estimates["mcllo", label, "intercept"]
            rows.append(
                (
                    label,
                    _estimate_with_interval(shift),
                    shift["pvalue"],
                    _estimate_with_interval(slope),
                    slope["pvalue"],
                    _estimate_with_interval(intercept),
                )
            )
        of_all_classes = {
            "common_slope": "all classes, one slope",
            "temperature": "all classes, slope only",
        }
        for model, name in of_all_classes.items():
            if (model, None, "slope") in estimates:
                slope = estimates[model, None, "slope"]
                rows.append(
                    (
                        name,
                        "",
                        None,
                        _estimate_with_interval(slope),
                        slope["pvalue"],
                        "",
                    )
                )
        names = (
            "class",
            "intercept, slope 1",
            "p",
            "slope",
            "p of slope",
            "intercept beside it",
        )
        columns = zip(*rows, strict=True)
        return Table(dict(zip(names, columns, strict=True)))

    def to_csv(self, path: StrPath | None = None) -> str:
        """Return every estimate as CSV with all digits; also write it to `path`, if given."""
        return self.parameters.to_csv(path)

    def to_latex(
        self,
        path: StrPath | None = None,
        *,
        caption: str | None = None,
        label: str = "",
    ) -> str:
        """Return the table for a paper, in LaTeX with the rules of the package booktabs.

        Parameters
        ----------
        path : str or path, optional
            Where it is written too: whole, or not at all.
        caption : str, optional
            In LaTeX. Default: says what the numbers are, and the joint tests.
        label : str
            For references.
        """
        words = self._caption() if caption is None else caption
        formats = {"p": "p", "p of slope": "p"}
        return self.paper.to_latex(path, caption=words, label=label, formats=formats)

    def to_frame(self) -> Any:
        """Return a pandas ``DataFrame`` with a row for each estimate."""
        return self.parameters.to_frame()

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for strict JSON."""
        tables = {"parameters": self.parameters.rows(), "tests": self.tests.rows()}
        return {**none_for_nonfinite(tables), **super().to_dict()}

    def __str__(self) -> str:
        words = self.paper.to_dict()
        for name in ("p", "p of slope"):
            words[name] = [
                "" if pvalue is None else format_p_cell(pvalue, None)
                for pvalue in words[name]
            ]
        words["class"] = [str(label) for label in words["class"]]
        return "\n".join(
            [f"{self.title}:", str(Table(words)), *self._joint_test_sentences()]
        )

    def __repr__(self) -> str:
        return f"<CalibrationTable of {len(self.paper)} rows against {self._reference_text()!r}>"

    def _reference_text(self) -> str:
        return "all other classes" if self.versus == "rest" else str(self.baseline)

    @property
    def title(self) -> str:
        """What the numbers are."""
        kind = "profile likelihood" if self.interval == "profile" else "Wald"
        return (
            f"Calibration intercepts and slopes against {self._reference_text()}, "
            f"{format_count(self.n_samples)} rows, with {100 * self.level:g} % {kind} intervals"
        )

    def _joint_test_sentences(self) -> Iterator[str]:
        """Yield the joint tests, a sentence each; of single classes there are too many."""
        if self.versus != "baseline":
            return
        for row in self.tests.rows():
            pvalue = pvalue_text(row["pvalue"], bound=row["method"] == "bound")
            statistic = format_number(row["statistic"])
            how = pvalue_origin(row["method"])
            yield f"All {row['of']}: statistic {statistic} on {row['df']} df, p {pvalue} ({how})"

    @property
    def methods(self) -> str:
        """A paragraph for the methods section of a paper: what was computed, and how."""
        from .._version import __version__

        against = "each class against all others"
        models = "a logistic recalibration model was fitted for each class"
        if self.versus == "baseline":
            against = f"each class against {self._reference_text()}"
            models = "multinomial logistic recalibration models were fitted"
        kind = "profile likelihood" if self.interval == "profile" else "Wald"
        errors = " with standard errors that allow for dependent rows" * self.robust
        said = [
            f"Calibration of the predicted probabilities (n = {format_count(self.n_samples)}) was "
            f"assessed by calibration intercepts and slopes: {models} to the log odds of {against} "
            "(Cox 1958; Van Hoorde et al. 2014; Vennos, Xing and Franck 2026).",
            "Intercepts were estimated with slopes fixed at 1 and are 0 for calibrated "
            "predictions, slopes with intercepts beside them and are 1.",
            f"Intervals are {100 * self.level:g} % {kind} intervals{errors}; p-values of single "
            "parameters are Wald's.",
        ]
        used = sorted(set(map(pvalue_origin, self.tests["method"])))
        if used:
            seeded = f" with seed {self.seed}" * any(
                how != "chi-square" for how in used
            )
            said.append(
                f"Joint hypotheses were tested by likelihood ratio (p-values: "
                f"{' and '.join(used)}{seeded})."
            )
        said.append(f"Computed with the Python package mcllo {__version__}.")
        return " ".join(said)

    def _caption(self) -> str:
        """Return the caption: what the numbers are, and the joint tests."""
        kind = "profile likelihood" if self.interval == "profile" else "Wald"
        robust = ", standard errors allowing for dependent rows" if self.robust else ""
        sentences = [
            f"Calibration intercepts and slopes against {escape_latex(self._reference_text())} "
            rf"($n = {self.n_samples}$), with {100 * self.level:g}\,\% {kind} intervals{robust}.",
            "Intercepts with all slopes fixed at 1 (calibration in the large): 0 if calibrated.",
            "Slopes with intercepts estimated beside them: 1 if calibrated.",
        ]
        if self.versus == "baseline" and len(self.tests):
            tests = []
            for row in self.tests.rows():
                # only where the p-value is chi-square's the statistic is called so
                is_chi2 = row["method"] == "chi2"
                name = rf"\chi^2_{{{row['df']}}}" if is_chi2 else rf"D_{{{row['df']}}}"
                statistic = f"${name} = {format_number(row['statistic'])}$"
                pvalue = latex_pvalue(row["pvalue"], "p")
                if row["method"] == "bound":
                    pvalue = pvalue.replace("$p = ", r"$p \le ")
                drawn = "" if is_chi2 else f" ({pvalue_origin(row['method'])})"
                tests.append(f"{row['of']}, {statistic}, {pvalue}{drawn}")
            sentences.append(f"Likelihood ratio tests: {'; '.join(tests)}.")
        return " ".join(sentences)


@show_progress("estimating")
@one_blas_thread()
@takes_row_options(RowOptions)
def calibration_table(
    probs: Any = None,
    y: Any = None,
    *,
    versus: Versus = "baseline",
    level: float = 0.95,
    interval: Interval = "wald",
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
    baseline: Any = None,
    **data: Unpack[RowOptions],
) -> CalibrationTable:
    r"""Estimate calibration intercepts and slopes with intervals, as clinical papers print them.

    Parameters
    ----------
    probs : array-like, frame or Predictions
        Predicted probabilities, shape (n_samples, n_classes).
    y : array-like of shape (n_samples,)
        The labels that came true; not given beside a `Predictions`.
    versus : {"baseline", "rest"}
        Compare each class with a reference class, or with all others together, as in a model of two
        outcomes.
    level : float
        Probability with which each interval covers its parameter.
    interval : {"wald", "profile"}
        From standard errors, or from the likelihood itself.
    n_resamples : int
        Most draws for the p-values of the joint tests.
    seed : int or numpy Generator, optional
        Makes draws repeatable.
    baseline : label, optional
        Reference class of the log odds. Default: the last class that occurs in `y`.
    logits, classes, prefix, sample_weight, normalize, clip, missing, weight_kind : optional
        How rows are read; each is described in `Predictions.from_arrays`.
    groups : array-like of shape (n_samples,), optional
        Group of each row (an animal, a patient): rows of one may depend on each other. Standard
        errors and tests then allow for that.

    Returns
    -------
    CalibrationTable
        ``print`` it; `to_latex`, `to_csv`, `parameters`, `tests`.

    See Also
    --------
    CalibrationTable : What comes out.
    nested_models : Which of the models is enough.
    class_tests : A test for each class.
    reliability_curve : The diagram that goes with it.

    Notes
    -----
    Intercepts and slopes of log odds against a reference class are those of [1]_, for two classes
    those of [2]_. p-values are adjusted for the number of classes by Holm's method [3]_.

    References
    ----------
    .. [1] K. Van Hoorde, Y. Vergouwe, D. Timmerman, S. Van Huffel, E. W. Steyerberg, B. Van Calster
           (2014). Assessing calibration of multinomial risk prediction models. Statistics in
           Medicine 33:2585-2596.
    .. [2] D. R. Cox (1958). Two further applications of a model for binary regression. Biometrika
           45.
    .. [3] S. Holm (1979). A simple sequentially rejective multiple test procedure. Scandinavian
           Journal of Statistics 6:65-70.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> honest = rng.dirichlet([1, 1, 1], size=2000)
    >>> y = [rng.choice(["a", "b", "c"], p=row) for row in honest]
    >>> sharp = honest**2 / (honest**2).sum(axis=1, keepdims=True)  # overconfident
    >>> found = calibration_table(sharp, y)
    >>> [round(row["estimate"], 2) for row in found.parameters.rows() if row["class"] is None]
    [0.5, 0.5]
    >>> print(found.to_latex().splitlines()[5])
    class & intercept, slope 1 & p & slope & p of slope & intercept beside it \\
    """
    predictions = predictions_for_inference(probs, y, baseline=baseline, **data)
    options: dict[str, Any] = {"versus": versus, "level": level, "interval": interval}
    return build_calibration_table(
        predictions, n_resamples=n_resamples, seed=seed, **options
    )


def build_calibration_table(
    predictions: Predictions,
    fit: MCLLOFit | None = None,
    *,
    versus: Versus = "baseline",
    level: float = 0.95,
    interval: Interval = "wald",
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
    work: float = NESTED_WORK,
) -> CalibrationTable:
    """Return the table of validated predictions; a fit made already is not made again."""
    robust = needs_robust_covariance(predictions)
    entropy = seed_entropy(seed)
    _check_options(versus, level, interval, robust)
    rows: list[ParameterEstimate] = []
    tests: list[dict[str, Any]] = []
    options: dict[str, Any] = {
        "method": "auto",
        "n_resamples": n_resamples,
        "seed": entropy,
    }
    for label, part, names in _predictions_to_fit(predictions, versus):
        own_fit = fit if versus == "baseline" else None
        if own_fit is None:
            # What the warnings would say, empty places show.
            with suppress_warnings(*ESTIMATION_WARNINGS):
                own_fit = fit_predictions(part)
        models = CalibrationModels(part, own_fit, level, interval)
        for name in names:
            rows += models.rows(name, label)
        if robust:
            continue
        if versus == "baseline":
            plan = PValuePlan.from_predictions(part, n_tests=2, work=work, **options)
            tests += [_joint_test_row(*found) for found in models.joint_tests(plan)]
        else:
            test = run_test(part, own_fit, **options)
            tests.append(
                _joint_test_row(
                    "intercept and slope", test.statistic, test.df, test, label
                )
            )
    columns_of_tests = {name: [test[name] for test in tests] for name in TEST_COLUMNS}
    return CalibrationTable(
        parameters=_parameter_table(rows),
        tests=Table(columns_of_tests),
        versus=versus,
        baseline=predictions.baseline if versus == "baseline" else None,
        level=level,
        interval=interval,
        n_samples=predictions.n_samples,
        robust=robust,
        seed=entropy,
    )


TEST_COLUMNS = ("of", "class", "statistic", "df", "pvalue", "method")


def _check_options(versus: str, level: float, interval: str, robust: bool) -> None:
    if versus not in get_args(Versus):
        raise InputError(f"versus must be 'baseline' or 'rest'; got versus={versus!r}.")
    if interval not in get_args(Interval):
        raise InputError(
            f"interval must be 'wald' or 'profile'; got interval={interval!r}."
        )
    check_share("level", level)
    if interval == "profile" and robust:
        raise InputError(
            "{found} needs independent rows; got groups or survey weights.",
            argument="interval",
            value=interval,
            remedy="Use {interval:'wald'}.",
        )


def _predictions_to_fit(
    predictions: Predictions, versus: Versus
) -> Iterator[tuple[Hashable | None, Predictions, tuple[str, ...]]]:
    """Yield what is fitted: all classes at once, or each as one of two."""
    if versus == "rest":
        for k, label in enumerate(predictions.classes):
            yield label, one_class_versus_rest(predictions, k), ("shift", "mcllo")
        return
    size = 2 * (predictions.n_classes - 1)
    if not is_full_hessian_affordable(size):
        raise InputError(
            f"{{argument}}='baseline' has too many parameters here: {size:,}.",
            argument="versus",
            remedy="Use {versus:'rest'}.",
        )
    yield None, predictions, ("shift", "mcllo", "common_slope", "temperature")


def _joint_test_row(
    of: str,
    statistic: float,
    df: int,
    tail: TestResult | Any,
    label: Hashable | None = None,
) -> dict[str, Any]:
    values = (of, label, statistic, df, tail.pvalue, tail.method)
    return dict(zip(TEST_COLUMNS, values, strict=True))


def _parameter_table(rows: list[ParameterEstimate]) -> Table:
    """Return the estimates with p-values, Holm's within each model's intercepts and slopes."""
    pvalues = np.array([row.pvalue for row in rows])
    # Holm over the classes alone: each model's intercepts and slopes answer another question.
    families = [(row.model, row.parameter, row.label is None) for row in rows]
    adjusted = pvalues.copy()
    for family in dict.fromkeys(families):
        is_own = np.array([other == family for other in families])
        adjusted[is_own] = holm(pvalues[is_own])
    columns: dict[str, list[Any]] = {
        "model": [row.model for row in rows],
        "class": [row.label for row in rows],
    }
    for name in ("parameter", "estimate", "se", "low", "high", "pvalue"):
        columns[name] = [getattr(row, name) for row in rows]
    return Table(columns | {"adjusted": adjusted.tolist()})


def pvalue_origin(method: str) -> str:
    """Return what a way to a p-value is called in print."""
    names = {"chi2": "chi-square", "bound": "a guaranteed bound"}
    return names.get(method, "simulated")


def _estimate_with_interval(row: dict[str, Any]) -> str:
    """Return ``0.51 (0.44 to 0.58)``, a true minus before negative numbers."""
    if np.isnan(row["estimate"]):
        return "-"
    decimals = 0 if abs(row["estimate"]) >= 100.0 else 2
    estimate, low, high = (
        # rounded first, as -0.001 would be -0.00; -0.0 + 0.0 is 0.0
        f"{round(row[name], decimals) + 0.0:.{decimals}f}".replace(
            "-", "\N{MINUS SIGN}"
        )
        for name in ("estimate", "low", "high")
    )
    return f"{estimate} ({low} to {high})"
