"""`baseline_sensitivity`: does the answer hang on which class the log odds refer to?

The model with baseline b and the one with b' share exactly the maps with equal gamma; where the
gamma differ the models differ, unless c = 2. So every baseline is fitted and compared.

===================  =====================================================================
statistic, p-value   likelihood ratio of each baseline's fit, chi-square with its df
change               ``|g_ij(b) - g_ij(b0)|``, b0 the reference baseline (the last class)
range                ``max_b g_ij(b) - min_b g_ij(b)``, over all baselines tried
p over all           the largest score statistic, exact (`_inference/calibration_test`)
===================  =====================================================================

The smallest of the single p-values is not valid: it picks. The p-value over all baselines is.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from .._fit.fit import MCLLOFit, fit_each_baseline
from .._inference.budget import N_RESAMPLES
from .._inference.calibration_test import max_score_test
from .._inference.likelihood_tests import chi2_sf
from .._inference.monte_carlo import Seed
from .._model.likelihood import recalibrate_from_log_odds
from .._utils.formatting import (
    Table,
    ellipsis,
    format_interval,
    format_number,
    format_pvalue,
)
from .._utils.notebook import NotebookResult, show_progress
from .._utils.parallel import one_blas_thread
from .._utils.results import Codes, Floats, Result, none_for_nonfinite
from .._validation.labels import find_class
from .._validation.predictions import Predictions, predictions_for_inference
from .._validation.row_options import TableOptions, takes_row_options
from ..exceptions import InputError

TEST_LEVEL = 0.05
"""Level at which the decisions of the single tests are compared; the usual one."""

_COLUMNS = (
    "baseline",
    "statistic",
    "pvalue",
    "largest_change",
    "mean_change",
    "label_changes",
)


@dataclass(frozen=True, eq=False, repr=False)
class BaselineSensitivity(Result, NotebookResult):
    """What changes with the baseline; print it for a table and a verdict.

    Attributes
    ----------
    table : Table
        A row for each baseline: `statistic`, `df`, `pvalue` (chi-square, of this baseline alone),
        `log_likelihood`, `score`; `largest_change` and `mean_change` of a recalibrated probability
        and `label_changes`, the part of the rows whose most probable class changes, all against
        the reference; `separated`, `converged`.
    reference : label
        The baseline the others are compared with: that of the predictions, by default the last.
    max_score : float
        The largest score statistic.
    pvalue : float
        Of `max_score`: valid over all the baselines in the table.
    method : {'exact'}
        How it was computed; see `max_score_test`.
    n_resamples : int
        Draws made.
    seed : int or None
        What the draws were made from.
    mean_range, largest_range : float
        How far a recalibrated probability of these rows moves over all baselines.
    label_disagreement : float
        Part of the rows on whose most probable class the fits do not agree.
    n_classes : int
        Classes; more than rows of the table when only some baselines were asked for.

    See Also
    --------
    baseline_sensitivity : Makes it.
    Details : Has it as `baselines`.
    mcllo.plot.baselines : Draws it.

    Examples
    --------
    >>> import mcllo
    >>> probs = [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6], [0.5, 0.3, 0.2]] * 10
    >>> y = [0, 1, 2, 0, 1, 2, 0, 1] * 5
    >>> found = mcllo.baseline_sensitivity(probs, y, seed=0, n_resamples=19)
    >>> len(found.table), found.n_classes
    (3, 3)
    """

    table: Table
    reference: Hashable
    max_score: float
    pvalue: float
    method: str
    n_resamples: int
    seed: int | None
    mean_range: float
    largest_range: float
    label_disagreement: float
    n_classes: int
    left_out = ("table",)
    added = ("verdict", "notes")

    @property
    def verdict(self) -> str:
        """One sentence: how far the statistic and the recalibrated probabilities move."""
        if self.n_classes == 2:
            return "with two classes all baselines give the same fit."
        return (
            f"{self.decision}; recalibrated probabilities move by "
            f"{format_number(self.mean_range)} on average, "
            f"{format_number(self.largest_range)} at most."
        )

    @property
    def decision(self) -> str:
        """Whether the decision hangs on the baseline, and how far the statistic moves."""
        pvalues = self.table["pvalue"]
        statistics = self.table["statistic"]
        answer = "the test decision does not hang on the baseline"
        decisions = {pvalue <= TEST_LEVEL for pvalue in pvalues}
        if len(decisions) > 1:
            between = format_interval(min(pvalues), max(pvalues))
            answer = (
                "the test decision hangs on the baseline (p in "
                f"{between}; use the one over all)"
            )
        low = format_number(min(statistics))
        high = format_number(max(statistics))
        return f"{answer}: statistic {low} to {high}"

    @property
    def notes(self) -> list[str]:
        """What must be known before trusting the numbers: fits that do not exist, what was left."""
        separated = []
        flat = []
        for row in self.table.rows():
            if row["separated"]:
                separated.append(row["baseline"])
            elif not row["converged"]:
                flat.append(row["baseline"])
        notes = []
        if separated:
            problem = "the estimate does not exist (separated labels)"
            notes.append(self._note_of_fits(separated, problem))
        if flat:
            problem = "the estimate is not determined (flat likelihood)"
            notes.append(self._note_of_fits(flat, problem))
        if len(self.table) < self.n_classes:
            notes.append(f"{len(self.table)} of {self.n_classes} baselines were tried.")
        return notes

    def _note_of_fits(self, labels: list[Hashable], problem: str) -> str:
        names = ", ".join(ellipsis(label) for label in labels[:6])
        if len(labels) > 6:
            names += ", ..."
        return (
            f"for {len(labels)} of {len(self.table)} baselines ({names}) {problem}: their "
            "statistics hold, their recalibrated probabilities have no meaning."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values; what does not exist is None."""
        return {**super().to_dict(), "rows": none_for_nonfinite(self.table.rows())}

    def text_blocks(self) -> tuple[list[str], str, list[str]]:
        """Return what is printed: sentences, the table, and nothing after it."""
        shown = Table({name: self.table[name] for name in _COLUMNS})
        verdict = self.verdict[0].upper() + self.verdict[1:]
        pvalue = f"p {format_pvalue(self.pvalue)} (exact, {self.n_resamples:,} simulated data sets)"
        lines = [
            verdict,
            "Over all baselines: largest score statistic "
            f"{format_number(self.max_score, 4)}, {pvalue}",
            *(f"Note: {note}" for note in self.notes),
            "Changes of recalibrated probabilities are against baseline "
            f"{ellipsis(self.reference)!r}",
        ]
        return lines, str(shown), []

    def __str__(self) -> str:
        before, table, _ = self.text_blocks()
        return "\n".join([*before, table])

    def __repr__(self) -> str:
        return (
            f"BaselineSensitivity(n_baselines={len(self.table)}, reference={self.reference!r}, "
            f"max_score={self.max_score:.6g}, pvalue={self.pvalue:.6g})"
        )


@show_progress("trying baselines")
@one_blas_thread()
@takes_row_options(TableOptions)
def baseline_sensitivity(
    probs: Any = None,
    y: Any = None,
    *,
    baselines: Sequence[Hashable] | None = None,
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
    **data: Unpack[TableOptions],
) -> BaselineSensitivity:
    """Fit with every class as the baseline, and test calibration over all of them at once.

    Parameters
    ----------
    probs : array-like, frame or Predictions
        Predicted probabilities, shape (n_samples, n_classes).
    y : array-like of shape (n_samples,)
        The labels that came true; not given beside a `Predictions`.
    baselines : sequence of labels, optional
        The baselines to try; default all, which needs at most 50 classes. The p-value covers the
        ones tried: choose them without looking at the labels (the most predicted classes, say).
    n_resamples : int
        Draws of labels for the p-value over all baselines.
    seed : int or numpy Generator, optional
        Makes draws repeatable; another one than made simulated data.
    logits, classes, prefix, sample_weight, normalize, clip, missing : optional
        How rows are read; each is described in `Predictions.from_arrays`.

    Returns
    -------
    BaselineSensitivity
        `table`, `max_score`, `pvalue`, `mean_range`, `largest_range`, `verdict`.

    See Also
    --------
    BaselineSensitivity : What comes out.
    calibration_test : With ``baseline='auto'``, the same p-value.
    zero_sensitivity : The other choice that matters.
    mcllo.plot.baselines : Draws it.

    Notes
    -----
    The map depends on its baseline where the predictions are miscalibrated, as [1]_ points out. The
    smallest of the p-values of single baselines is not valid, because it is picked; the largest
    score statistic with p-values from drawn labels is.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([1, 1, 1], size=400)
    >>> y = [rng.choice(3, p=row) for row in probs]
    >>> found = baseline_sensitivity(probs, y, seed=1)
    >>> [round(s, 2) for s in found.table["statistic"]]
    [2.23, 2.85, 2.53]
    >>> found.pvalue > 0.05
    True
    """
    predictions = predictions_for_inference(probs, y, independent=True, **data)
    columns = _baseline_columns(predictions, baselines)
    fits = fit_each_baseline(predictions, [predictions.classes[b] for b in columns])
    scores, found = max_score_test(
        predictions, columns, n_resamples=n_resamples, seed=seed
    )
    changes, ranges = _probability_changes(predictions, fits)
    table = {
        "baseline": [fit.baseline for fit in fits],
        "statistic": [fit.statistic for fit in fits],
        "df": [fit.df for fit in fits],
        "pvalue": [chi2_sf(fit.statistic, fit.df) for fit in fits],
        "log_likelihood": [fit.log_likelihood for fit in fits],
        "score": scores.tolist(),
        **changes,
        "separated": [fit.separated for fit in fits],
        "converged": [fit.converged for fit in fits],
    }
    return BaselineSensitivity(
        table=Table(table),
        reference=predictions.baseline,
        max_score=float(scores.max()),
        pvalue=found.pvalue,
        method=found.method,
        n_resamples=found.n_resamples,
        seed=found.seed,
        **ranges,
        n_classes=predictions.n_classes,
    )


def _baseline_columns(
    predictions: Predictions, baselines: Sequence[Hashable] | None
) -> Codes:
    """Return the columns of the baselines to try, the reference always among them."""
    if baselines is None:
        return np.arange(predictions.n_classes)
    if isinstance(baselines, str) or len(baselines) == 0:
        raise InputError(f"baselines must be a list of classes; got {baselines!r}.")
    columns = {
        find_class(label, predictions.classes, "baselines") for label in baselines
    }
    columns.add(predictions.baseline_index)  # what the others are compared with
    return np.array(sorted(columns), dtype=np.intp)


def _probability_changes(
    predictions: Predictions, fits: Sequence[MCLLOFit]
) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Return how recalibrated probabilities of the fitted rows differ: fit by fit, and over all.

    Weights count rows.
    """
    weight = predictions.sample_weight
    rows: slice | Codes = slice(None)
    if weight is not None:
        rows = np.flatnonzero(weight > 0.0)
        weight = weight[rows]

    def average(values: Floats) -> float:
        return float(np.average(values, weights=weight))

    def recalibrated(fit: MCLLOFit) -> Floats:
        log_odds = predictions.with_baseline(fit.baseline).log_odds
        return recalibrate_from_log_odds(fit.theta, log_odds, fit.baseline_index)[rows]

    reference_fit = next(fit for fit in fits if fit.baseline == predictions.baseline)
    reference = recalibrated(reference_fit)
    reference_top = reference.argmax(axis=1)
    lowest = reference.copy()
    highest = reference.copy()
    all_agree = np.ones(len(reference), dtype=bool)
    changes: dict[str, list[float]] = {
        "largest_change": [],
        "mean_change": [],
        "label_changes": [],
    }
    # One fit after the other: the probabilities of all baselines are a table for each class.
    for fit in fits:
        g = recalibrated(fit)
        change = np.abs(g - reference)
        label_changes = g.argmax(axis=1) != reference_top
        changes["largest_change"].append(float(change.max()))
        changes["mean_change"].append(average(change.mean(axis=1)))
        changes["label_changes"].append(average(label_changes))
        np.minimum(lowest, g, out=lowest)
        np.maximum(highest, g, out=highest)
        all_agree &= ~label_changes
    spread = highest - lowest
    return changes, {
        "mean_range": average(spread.mean(axis=1)),
        "largest_range": float(spread.max()),
        "label_disagreement": average(~all_agree),
    }
