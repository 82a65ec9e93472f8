"""`assess`: one set of predictions -> `Assessment`, everything a person needs to act.

Calibration in the large needs no baseline and no model: for each class the mean predicted
probability against the observed share, ``z_j = sum_i (1[y_i = j] - x_ij) / sqrt(sum_i x_ij (1 -
x_ij))``, which is standard normal in large samples when the predictions are right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._calibration_errors import ClasswiseECE, TopLabelECE
from ._calibration_test import N_RESAMPLES, CalibrationTest, Method, Statistic, run_test
from ._fit import MCLLOFit, fit_predictions, none_for_nan
from ._metric_null import MetricNull, metric_nulls
from ._monte_carlo import Seed, entropy_of, has_whole_weights
from ._omnibus import HosmerLemeshow, OmnibusTest, kernel_companion
from ._predictions import Predictions, as_predictions
from ._table import Table
from ._words import assessment_text
from .metrics import (
    accuracy,
    brier_score,
    classwise_calibration_error,
    expected_calibration_error,
    log_loss,
)

Floats = NDArray[np.float64]

NULL_CELLS = 2e8
"""Work (rows x classes x draws) spent on what the metrics would show under calibration."""
FEWEST_DRAWS = 199
MOST_CELLS = 2e6
"""Size of the table (rows x classes) beyond which nothing is simulated for the metrics."""


@dataclass(frozen=True, eq=False, repr=False)
class Assessment:
    """What `assess` found; print it for a short report.

    Attributes
    ----------
    test : CalibrationTest
        Is delta = gamma = 1?
    fit : MCLLOFit
        Which classes depart, and how.
    metrics : dict of str to float
        ``accuracy``, ``log_loss``, ``brier``, ``ece`` (top label, ceil(sqrt(n)) bins) and
        ``classwise_ece``.
    nulls : dict of str to MetricNull
        What ``ece`` and ``classwise_ece`` would be if the predictions were calibrated, with exact
        p-values; empty where labels cannot be simulated (fractional weights) or are too many
        (tables of more than 2 million cells).
    companions : dict of str to OmnibusTest
        Tests that see departures the likelihood ratio test is blind to.
    in_the_large : Table
        For each class the mean predicted probability, the observed share and z.
    predictions : Predictions
        What was assessed.
    """

    test: CalibrationTest
    fit: MCLLOFit
    metrics: dict[str, float]
    nulls: dict[str, MetricNull]
    companions: dict[str, OmnibusTest]
    in_the_large: Table
    predictions: Predictions

    def __str__(self) -> str:
        return self.text()

    def text(self, alpha: float = 0.05) -> str:
        """Return the short report, its verdict at level `alpha`."""
        return assessment_text(self, alpha)

    def __repr__(self) -> str:
        p = self.predictions
        return (
            f"<Assessment of {p.n_samples} rows, {p.n_classes} classes: statistic "
            f"{self.test.statistic:.6g}, df {self.test.df}, pvalue {self.test.pvalue:.4g}>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for strict JSON."""
        return {
            "test": none_for_nan(self.test.to_dict()),
            "fit": none_for_nan(self.fit.to_dict()),
            "metrics": none_for_nan(self.metrics),
            "nulls": {name: null.to_dict() for name, null in self.nulls.items()},
            "companions": {name: test.to_dict() for name, test in self.companions.items()},
            "in_the_large": none_for_nan(self.in_the_large.rows()),
            "data": data_facts(self.predictions),
        }


def assess(
    probs: Any,
    y: Any = None,
    *,
    baseline: Any = None,
    classes: Any = None,
    sample_weight: Any = None,
    logits: Any = None,
    normalize: bool = False,
    clip: float | None = None,
    statistic: Statistic = "lr",
    method: Method = "auto",
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
) -> Assessment:
    """Judge predictions: test calibration, estimate what is wrong, and measure.

    Parameters
    ----------
    probs : array-like, frame or Predictions
        Predicted probabilities, shape (n_samples, n_classes); None when `logits` is given.
    y : array-like of shape (n_samples,)
        The labels that came true; not given beside a `Predictions`.
    baseline, classes, sample_weight, logits, normalize, clip
        As in `Predictions.from_arrays`.
    statistic, method, n_resamples, seed
        As in `calibration_test`.

    Returns
    -------
    Assessment
        `test`, `fit`, `metrics`, `in_the_large`; ``print`` it for a report.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> honest = rng.dirichlet([1, 1, 1], size=4000)
    >>> y = [rng.choice(["a", "b", "c"], p=row) for row in honest]
    >>> sharp = honest**2 / (honest**2).sum(axis=1, keepdims=True)  # overconfident
    >>> a = assess(sharp, y)
    >>> a.test.rejects(alpha=0.05), a.fit.gamma.round(1)
    (True, array([0.5, 0.5]))
    """
    predictions = as_predictions(
        probs,
        y,
        baseline=baseline,
        classes=classes,
        sample_weight=sample_weight,
        logits=logits,
        normalize=normalize,
        clip=clip,
    )
    return assess_predictions(
        predictions, statistic=statistic, method=method, n_resamples=n_resamples, seed=seed
    )


def assess_predictions(
    predictions: Predictions,
    *,
    statistic: Statistic = "lr",
    method: Method = "auto",
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
) -> Assessment:
    """Assess validated predictions."""
    entropy = entropy_of(seed)
    fit = fit_predictions(predictions)
    test = run_test(
        predictions, fit, statistic=statistic, method=method, n_resamples=n_resamples, seed=entropy
    )
    nulls = simulated_nulls(predictions, n_resamples, entropy)
    simulated = {kind: nulls.pop(kind) for kind in ("hosmer_lemeshow",) if kind in nulls}
    simulated |= kernel_companion(predictions, min(n_resamples, FEWEST_DRAWS), entropy)
    companions = {kind: OmnibusTest.from_null(kind, null) for kind, null in simulated.items()}
    if not nulls and predictions.sample_weight is None:
        companions["hosmer_lemeshow"] = OmnibusTest.large_sample(predictions)
    return Assessment(
        test=test,
        fit=fit,
        metrics=summary_metrics(predictions),
        nulls=nulls,
        companions=companions,
        in_the_large=calibration_in_the_large(predictions),
        predictions=predictions,
    )


def simulated_nulls(predictions: Predictions, n_resamples: int, seed: int) -> dict[str, MetricNull]:
    """Return what calibrated predictions would show: ECE, classwise ECE and Hosmer-Lemeshow."""
    cells = float(predictions.probs.size)
    if not has_whole_weights(predictions) or cells > MOST_CELLS:
        return {}
    draws = min(n_resamples, max(FEWEST_DRAWS, int(NULL_CELLS / cells)))
    statistics = {
        "ece": TopLabelECE,
        "classwise_ece": ClasswiseECE,
        "hosmer_lemeshow": HosmerLemeshow,
    }
    return metric_nulls(predictions, statistics, n_resamples=draws, seed=seed)


def summary_metrics(predictions: Predictions) -> dict[str, float]:
    """Return the numbers every assessment shows."""
    return {
        "accuracy": accuracy(None, predictions),
        "log_loss": log_loss(None, predictions),
        "brier": brier_score(None, predictions),
        "ece": expected_calibration_error(None, predictions),
        "classwise_ece": classwise_calibration_error(None, predictions),
    }


def calibration_in_the_large(predictions: Predictions) -> Table:
    """Return predicted and observed share of each class, with z and its two-sided p-value."""
    from scipy.special import erfc

    weight = np.ones(predictions.n_samples)
    if predictions.sample_weight is not None:
        weight = predictions.sample_weight
    probs, total = predictions.probs, float(weight.sum())
    expected = weight @ probs
    spread = np.sqrt(weight @ (probs * (1.0 - probs)))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (predictions.class_weight - expected) / spread
    return Table(
        {
            "class": predictions.classes,
            "predicted": (expected / total).tolist(),
            "observed": (predictions.class_weight / total).tolist(),
            "z": z.tolist(),
            "pvalue": erfc(np.abs(z) / np.sqrt(2.0)).tolist(),
        }
    )


def data_facts(predictions: Predictions) -> dict[str, Any]:
    """Return what was read and what was changed."""
    p = predictions
    return {
        "n_samples": p.n_samples,
        "n_classes": p.n_classes,
        "classes": list(p.classes),
        "baseline": p.baseline,
        "class_counts": p.class_weight.tolist(),
        "absent_classes": list(p.absent),
        "weighted": p.sample_weight is not None,
        "n_zeros": p.n_zeros,
        "n_clipped": p.n_clipped,
        "n_clipped_true": p.n_clipped_true,
        "clip": p.clip,
        "n_renormalized": p.n_renormalized,
        "max_row_error": p.max_row_error,
    }
