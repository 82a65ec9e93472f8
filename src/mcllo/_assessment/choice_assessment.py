"""`assess_choices`: choice sets -> `ChoiceAssessment`, everything a person needs to act.

The parts are those of an assessment of classes, computed by the same functions with the map of
choice sets (`_fit/choice_fit`) in the place of MCLLO:

==================  ================================================================================
test, effect_size   likelihood ratio (or score) of one slope and a shift for each position, and how
                    far probabilities are off by it
goodness_of_fit     is anything left after that map?
omnibus_tests       Hosmer-Lemeshow of the chosen option: right or wrong, against its probability
recalibration_gain  of the map, on rows that it was not learned from
positions           each position: how often offered, chosen, right and expected to be right, and
                    what its odds should be multiplied by
option_counts, by   rows of each number of options, and each subgroup: right against expected
==================  ================================================================================

An odds factor of a position is against the median position, ``log factor_j = tau_j - median tau``
(of two, against the other one), without those that are never right, whose shift has no end. Against
the mean of the others one favoured letter would make all of them look neglected.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._diagnostics.class_tests import holm
from .._fit.choice_fit import ChoiceFit, fit_choice_sets
from .._inference.budget import N_RESAMPLES, N_RESAMPLES_REPEATED
from .._inference.calibration_test import fit_and_test_choices
from .._inference.effect_size import EffectSize, estimate_effect_size
from .._inference.goodness_of_fit import GoodnessOfFit, goodness_of_fit
from .._inference.likelihood_tests import CalibrationTest, Method, Statistic
from .._inference.monte_carlo import MetricNull, Seed, metric_nulls, seed_entropy
from .._inference.omnibus import HosmerLemeshow, OmnibusTest
from .._utils.formatting import Table
from .._utils.notebook import NotebookResult, show_progress
from .._utils.parallel import one_blas_thread
from .._utils.results import Codes, Floats, none_for_nonfinite
from .._utils.statements import Statement
from .._validation.arguments import RowSubgroups, check_share
from .._validation.predictions import DataFacts, Predictions
from ..calibrators._auto.gain import CrossFittedGain
from ..calibrators._choice_calibrator import cross_fitted_choice_gain
from ..exceptions import InputError
from ..metrics import brier_score, expected_calibration_error
from ..metrics._binned import TopLabelECE
from ..metrics._bins import top_label
from ..metrics._reliability import ReliabilityCurve, reliability_curve
from .choice_text import choice_statements, choice_text
from .verdict import TOLERANCE, Verdict, decide_verdict

MAX_DRAWN_ENTRIES = 100_000_000
"""Rows times draws of labels for the null of ECE: some seconds."""


@dataclass(frozen=True, eq=False, repr=False)
class ChoiceAssessment(NotebookResult):
    """What `assess_choices` found; print it for a short report.

    Attributes
    ----------
    test : CalibrationTest
        Is every delta 1, and gamma?
    fit : ChoiceFit
        One slope, and a shift for each position.
    effect_size : EffectSize
        How far probabilities are off, and how often the chosen option is right at a few levels.
    goodness_of_fit : GoodnessOfFit
        Whether more than chance is left after the fitted map.
    omnibus_tests : dict of str to OmnibusTest
        The Hosmer-Lemeshow test of the chosen option.
    recalibration_gain : CrossFittedGain
        What the map, learned on four fifths of the rows, gains on the others.
    metrics, expected : dict of str to float
        ``accuracy``, ``log_loss``, ``brier`` and ``ece`` of the chosen option, and the first three
        as they would be under calibration.
    null_distributions : dict of str to MetricNull
        What ``ece`` would be under calibration.
    top_label_curve : ReliabilityCurve
        Reliability of the chosen option.
    positions : Table
        A row for each position: rows that offer it, shares of these in which it is chosen and
        right, mean probability, and the factor of its odds against the median position with a
        simultaneous interval (NaN for that position, and for one that is never right).
    option_counts : Table
        A row for each number of options: rows, shares right and expected, the difference with its
        interval, p-value before and after Holm.
    by : Table or None
        The same for each subgroup.
    by_name : str
        What the rows are divided by.
    alpha : float
        Level at which it is printed.
    predictions : Predictions
        What was assessed.

    See Also
    --------
    assess_choices : Makes it.
    ChoiceCalibrator : Recalibrates choice sets.
    Assessment : The same of predictions of classes.

    Examples
    --------
    >>> import mcllo
    >>> rows = [[0.7, 0.2, 0.1], [0.6, 0.4], [0.3, 0.3, 0.4], [0.2, 0.8]] * 10
    >>> a = mcllo.assess_choices(rows, [0, 1, 2, 1, 1, 0, 2, 0] * 5, kind="probs", seed=0)
    >>> a.test.df, a.verdict.kind
    (3, 'miscalibrated')
    """

    test: CalibrationTest
    fit: ChoiceFit
    effect_size: EffectSize
    goodness_of_fit: GoodnessOfFit
    omnibus_tests: dict[str, OmnibusTest]
    recalibration_gain: CrossFittedGain
    metrics: dict[str, float]
    expected: dict[str, float]
    null_distributions: dict[str, MetricNull]
    top_label_curve: ReliabilityCurve
    positions: Table
    option_counts: Table
    by: Table | None
    by_name: str
    alpha: float
    predictions: Predictions

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        p = self.predictions
        return (
            f"<ChoiceAssessment of {p.n_samples} rows, {p.n_classes} positions: statistic "
            f"{self.test.statistic:.6g}, df {self.test.df}, pvalue {self.test.pvalue:.4g}>"
        )

    @property
    def verdict(self) -> Verdict:
        """What it comes to, at its level and a tolerance of one percentage point."""
        return self.decide()

    def decide(
        self, alpha: float | None = None, tolerance: float = TOLERANCE
    ) -> Verdict:
        """Return the verdict at level `alpha` with this tolerance.

        Parameters
        ----------
        alpha : float, optional
            Level of the tests; that of `assess_choices` when not given.
        tolerance : float
            Mean change of a probability that is too little to matter.

        Returns
        -------
        Verdict
            `kind`, and the numbers it rests on.
        """
        alpha = self.alpha if alpha is None else alpha
        check_share("alpha", alpha)
        rejecting = tuple(
            kind for kind, test in self.omnibus_tests.items() if test.pvalue <= alpha
        )
        return decide_verdict(
            self.test,
            self.effect_size,
            alpha=alpha,
            tolerance=tolerance,
            n_samples=self.predictions.n_samples,
            other=rejecting,
            goodness_of_fit=self.goodness_of_fit,
        )

    def statements(
        self, alpha: float | None = None, *, tolerance: float = TOLERANCE
    ) -> list[Statement]:
        """Return everything that is said at level `alpha`, each with `kind`, `text` and `numbers`.

        Kinds: heading, verdict, meaning, chosen, effect_size.*, slope, position, position.never,
        remedy, test, map_fit, omnibus, other, note.* and metric.*.
        """
        return choice_statements(self, self.decide(alpha, tolerance))

    def text(
        self,
        alpha: float | None = None,
        *,
        tolerance: float = TOLERANCE,
        brief: bool = False,
        full: bool = False,
    ) -> str:
        """Return the report, its verdict at level `alpha`.

        `brief` leaves it at what to do; `full` lists every subgroup.
        """
        return choice_text(self, self.decide(alpha, tolerance), brief=brief, full=full)

    def to_dict(
        self, alpha: float | None = None, tolerance: float = TOLERANCE
    ) -> dict[str, Any]:
        """Return plain Python values, ready for strict JSON, with the verdict at level `alpha`."""
        content = {
            "kind": "choice_sets",
            "verdict": self.decide(alpha, tolerance),
            "test": self.test,
            "fit": self.fit,
            "effect_size": self.effect_size,
            "recalibration_gain": self.recalibration_gain,
            "goodness_of_fit": self.goodness_of_fit,
            "omnibus_tests": self.omnibus_tests,
            "metrics": self.metrics,
            "expected": self.expected,
            "null_distributions": self.null_distributions,
            "positions": self.positions,
            "option_counts": self.option_counts,
            "by": self.by,
            "data": DataFacts.from_predictions(self.predictions),
        }
        plain: dict[str, Any] = none_for_nonfinite(content)
        # What is called a class elsewhere is a position here.
        data = plain["data"]
        for name in ("classes", "class_counts", "absent_classes", "baseline"):
            value = data.pop(name)
            data[_POSITION_NAMES[name]] = value
        data["n_positions"] = data.pop("n_classes")
        return plain


_POSITION_NAMES = {
    "classes": "positions",
    "class_counts": "right_counts",
    "absent_classes": "never_right",
    "baseline": "reference",
}


@show_progress("assessing")
@one_blas_thread()
def assess_choices(
    scores: Any,
    y: Any = None,
    *,
    kind: str | None = None,
    positions: Any = None,
    lengths: Any = None,
    by: Any = None,
    statistic: Statistic = "lr",
    method: Method = "auto",
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
    alpha: float = 0.05,
) -> ChoiceAssessment:
    """Judge choice sets: rows that offer options without identity, of varying number.

    Answers A to E of a question, the horses of a race, the candidates of a search: is an option as
    often right as its probability says, and are some positions favoured?

    Parameters
    ----------
    scores : list of lists, array-like, frame or Predictions
        The scores of each row's options, in order, as `Predictions.from_choices` reads them; or
        choice sets that were read.
    y : array-like of shape (n_samples,), optional
        The right option of each row; not given beside a `Predictions`.
    kind : {"log_likelihoods", "logits", "probs"}, optional
        What scores are; not given beside a `Predictions`.
    positions : sequence, optional
        Names of the positions. Default: A, B, C, ...
    lengths : list of lists or array-like, optional
        Characters or tokens of each option, by which its log likelihood is divided.
    by : array-like of shape (n_samples,), optional
        Subgroup of each row, such as the subject of a question.
    statistic : {'lr', 'score'}
        Likelihood ratio, or score.
    method : {'auto', 'chi2', 'exact', 'sequential'}
        How the p-value is computed: by chi-square, by `n_resamples` draws of answers, or by draws
        that stop early; 'auto' takes chi-square where it can be trusted.
    n_resamples : int
        Most draws of answers for a p-value.
    seed : int or numpy Generator, optional
        Makes draws repeatable.
    alpha : float
        Level at which it is printed.

    Returns
    -------
    ChoiceAssessment
        ``print`` it for a report.

    Raises
    ------
    InputError
        When the data or an option break a rule; the message names the row, the value and the
        remedy.

    See Also
    --------
    ChoiceCalibrator : Recalibrates choice sets.
    assess : Predictions of classes.
    Predictions.from_choices : How rows are read.

    Notes
    -----
    The model is ``g_ij`` proportional to ``delta_j p_ij^gamma`` over the options j that row i
    offers: conditional logit [1]_ with the log probability of an option and its position as
    attributes. That one slope is 1 and no position favoured is a simple hypothesis given the
    probabilities, so that drawing answers from them gives exact p-values. Rows are taken to be
    independent and to count once each.

    References
    ----------
    .. [1] D. McFadden (1974). Conditional logit analysis of qualitative choice behavior. In
           P. Zarembka (ed.), Frontiers in Econometrics, 105-142. Academic Press.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> rows = [rng.dirichlet(np.ones(m)) for m in rng.integers(2, 6, 2000)]
    >>> y = [rng.choice(len(p), p=p) for p in rows]
    >>> sharp = [2 * np.log(p) for p in rows]  # overconfident
    >>> a = assess_choices(sharp, y, kind="logits", seed=0)
    >>> a.verdict.kind, round(a.fit.gamma, 1)
    ('miscalibrated', 0.5)
    """
    check_share("alpha", alpha)
    if isinstance(scores, Predictions):
        if scores.offered is None:
            raise InputError(
                "these predictions are of classes; use assess, or Predictions.from_choices."
            )
        given = {"y": y, "kind": kind, "positions": positions, "lengths": lengths}
        for name, value in given.items():
            if value is not None:
                raise InputError(
                    f"{name} must not be given beside a Predictions; it holds its own."
                )
        predictions = scores if by is None else scores.with_by(by)
    else:
        predictions = Predictions.from_choices(
            scores, y, kind=kind or "", positions=positions, lengths=lengths, by=by
        )
    entropy = seed_entropy(seed)
    fit, test = fit_and_test_choices(
        predictions,
        statistic=statistic,
        method=method,
        n_resamples=n_resamples,
        seed=entropy,
    )
    n_repeated = min(n_resamples, N_RESAMPLES_REPEATED)
    n_drawn = int(max(99, min(n_repeated, MAX_DRAWN_ENTRIES // predictions.n_samples)))
    ece = metric_nulls(
        predictions, {"ece": TopLabelECE}, n_resamples=n_drawn, seed=entropy
    )
    chosen = _chosen_option(predictions)
    form = metric_nulls(
        chosen, {"form": HosmerLemeshow}, n_resamples=n_drawn, seed=entropy
    )["form"]
    n_options = predictions.offered_counts
    counts, codes = np.unique(n_options, return_inverse=True)
    by_count = RowSubgroups("options", tuple(counts.tolist()), codes.ravel())
    subgroups = predictions.by
    return ChoiceAssessment(
        test=test,
        fit=fit,
        effect_size=estimate_effect_size(predictions, fit, seed=entropy),
        goodness_of_fit=goodness_of_fit(
            predictions, fit, n_resamples=n_drawn, seed=entropy
        ),
        omnibus_tests={
            "hosmer_lemeshow": OmnibusTest.from_null("hosmer_lemeshow", form)
        },
        recalibration_gain=cross_fitted_choice_gain(predictions, seed=entropy),
        metrics=_metrics(predictions, fit),
        expected=_expected_metrics(predictions),
        null_distributions=ece,
        top_label_curve=reliability_curve(predictions),
        positions=_position_table(predictions, fit, alpha),
        option_counts=_part_table(predictions, by_count, entropy),
        by=None if subgroups is None else _part_table(predictions, subgroups, entropy),
        by_name="" if subgroups is None else subgroups.column,
        alpha=alpha,
        predictions=predictions,
    )


def _chosen_option(predictions: Predictions) -> Predictions:
    """Return the chosen option as two classes, wrong and right.

    Under calibration it is right with its probability, whatever the other options.
    """
    top, confidence = top_label(predictions.probs)
    return Predictions(
        probs=np.column_stack([1.0 - confidence, confidence]),
        codes=(top == predictions.codes).astype(np.intp),
        classes=("wrong", "right"),
        baseline="wrong",
    )


def _metrics(predictions: Predictions, fit: ChoiceFit) -> dict[str, float]:
    """Return the numbers that every assessment shows."""
    top, _ = top_label(predictions.probs)
    return {
        "accuracy": float((top == predictions.codes).mean()),
        "log_loss": -fit.log_likelihood_null / predictions.n_samples,
        "brier": brier_score(None, predictions),
        "ece": expected_calibration_error(None, predictions),
    }


def _expected_metrics(predictions: Predictions) -> dict[str, float]:
    """Return them as they are on average under calibration."""
    probs = predictions.probs
    assert predictions.logits is not None
    entropy = -np.einsum("ij,ij->i", probs, predictions.logits)
    return {
        "accuracy": float(probs.max(axis=1).mean()),
        "log_loss": float(entropy.mean()),
        "brier": float((1.0 - np.einsum("ij,ij->i", probs, probs)).mean()),
    }


def _position_table(predictions: Predictions, fit: ChoiceFit, alpha: float) -> Table:
    """Return each position; intervals of all factors hold at once with chance ``1 - alpha``."""
    assert predictions.offered is not None
    offered = predictions.offered
    n_offered = offered.sum(axis=0)
    n_positions = len(n_offered)
    top, _ = top_label(predictions.probs)
    chosen = np.bincount(top, minlength=n_positions) / n_offered
    right = predictions.class_weight / n_offered
    predicted = predictions.probs.sum(axis=0)
    # Where no finite estimate exists a ridge stands in: its factors are finite.
    stand_in = fit if fit.converged else fit_choice_sets(predictions, penalty=1.0)
    factor, low, high = _odds_factors(stand_in, alpha)
    return Table(
        {
            "position": list(predictions.classes),
            "offered": n_offered.tolist(),
            "chosen": chosen.tolist(),
            "right": right.tolist(),
            "expected": (predicted / n_offered).tolist(),
            "odds_factor": factor.tolist(),
            "low": low.tolist(),
            "high": high.tolist(),
        }
    )


def _odds_factors(fit: ChoiceFit, alpha: float) -> tuple[Floats, Floats, Floats]:
    """Return what each position's odds should be multiplied by, with Bonferroni's intervals."""
    from scipy.special import ndtri

    n_positions = len(fit.tau)
    contrast = np.eye(n_positions) - _measures(fit)
    covariance = np.nan_to_num(fit.cov_theta[:n_positions, :n_positions])
    variance = np.einsum("jk,kl,jl->j", contrast, covariance, contrast)
    log_factor = contrast @ fit.tau
    is_median = variance <= 1e-12 * np.maximum(np.diagonal(covariance), 1e-12)
    is_never = np.array([name in fit.never_right for name in fit.positions])
    variance = np.where(is_median | is_never, np.nan, np.maximum(variance, 0.0))
    reach = -float(ndtri(0.5 * alpha / n_positions)) * np.sqrt(variance)
    factor = np.where(is_never, 0.0, np.exp(log_factor))
    return factor, np.exp(log_factor - reach), np.exp(log_factor + reach)


def _measures(fit: ChoiceFit) -> Floats:
    """Return what each position is compared with, as weights of all positions, a row for each."""
    n_positions = len(fit.tau)
    known = [j for j in range(n_positions) if fit.positions[j] not in fit.never_right]
    weights = np.zeros((n_positions, n_positions))
    if len(known) == 2:
        first, second = known
        weights[:, first] = 1.0
        weights[first] = np.eye(n_positions)[second]
        return weights
    by_tau = sorted(known, key=lambda j: fit.tau[j])
    middle = by_tau[(len(by_tau) - 1) // 2 : len(by_tau) // 2 + 1]
    weights[:, middle] = 1.0 / len(middle)
    return weights


def _part_table(predictions: Predictions, parts: RowSubgroups, seed: int) -> Table:
    """Return each part of the rows: how often its chosen option is right, and its score test."""
    top, confidence = top_label(predictions.probs)
    hit = (top == predictions.codes).astype(np.float64)
    columns: dict[str, list[Any]] = {
        name: []
        for name in ("n", "right", "expected", "difference", "low", "high", "pvalue")
    }
    for rows in parts.parts:
        difference, reach = _difference(hit[rows], confidence[rows])
        columns["n"].append(len(rows))
        columns["right"].append(float(hit[rows].mean()))
        columns["expected"].append(float(confidence[rows].mean()))
        columns["difference"].append(difference)
        columns["low"].append(difference - reach)
        columns["high"].append(difference + reach)
        columns["pvalue"].append(_part_pvalue(predictions, rows, seed))
    adjusted = holm(columns["pvalue"]).tolist()
    return Table({parts.column: list(parts.names), **columns, "adjusted": adjusted})


def _difference(hit: Floats, confidence: Floats) -> tuple[float, float]:
    """Return share right less share expected, and the reach of its 95 % interval.

    The standard error is the observed one, or that under calibration if it is larger: of sure rows
    few errors decide, and where these are missing by chance the observed one is too small.
    """
    n = len(hit)
    residual = hit - confidence
    observed = float(residual.std()) / math.sqrt(n)
    expected = math.sqrt(float((confidence * (1.0 - confidence)).sum())) / n
    return float(residual.mean()), 1.959964 * max(observed, expected)


def _part_pvalue(predictions: Predictions, rows: Codes, seed: int) -> float:
    """Return the p-value of the score test, which needs no refits: there may be many parts."""
    part = predictions.take(rows)
    _, test = fit_and_test_choices(part, statistic="score", seed=seed)
    return test.pvalue
