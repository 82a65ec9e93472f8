"""Comparisons and fits as rows of numbers, the paper's beside ours.

========================  ================================================================
`fit_maximum_likelihood`  the maximum likelihood fit of one set of predictions
`compare_methods`         several recalibrations, learned on one set and judged on another
`parameter_rows`          Tables 1 and 3: estimates and standard errors by class
`compared_rows`           Tables 2 and 4: p-value, ECE, accuracy, label change by method
========================  ================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scipy.special import chdtrc

from .._comparison.compare import compare
from .._comparison.comparison import Comparison
from .._fit.fit import MCLLOFit, fit_predictions
from .._utils.statements import suppress_warnings
from .._validation.predictions import Predictions
from ..metrics import maximum_calibration_error

Row = dict[str, Any]
PARAMETERS = ("delta", "se_delta", "gamma", "se_gamma")
SEED = 0


def fit_maximum_likelihood(predictions: Predictions) -> MCLLOFit:
    """Return the maximum likelihood fit; a separated one says so by its standard errors."""
    with suppress_warnings():
        return fit_predictions(predictions)


def compare_methods(
    train: Predictions, holdout: Predictions, methods: Sequence[str], **options: Any
) -> Comparison:
    """Return the comparison of these methods; what it warns of stands in the rows."""
    with suppress_warnings():
        return compare(train, holdout, methods=methods, seed=SEED, **options)


def compared_rows(
    c: Comparison, columns: str, paper: Mapping[str, Mapping[str, Any]] | None = None, **more: Any
) -> list[Row]:
    """Return these columns of a comparison; ``paper_x`` is what the paper has for x."""
    found = []
    for row in c.rows:
        known: Row = {
            "set": row.method,
            "p_chi2": float(chdtrc(row.df, row.statistic)),
            "p": row.pvalue,
            "p_method": row.pvalue_method,
            "p_corrected": row.pvalue_corrected,
            "log_loss_above_best": row.log_loss_difference,
            "zero_labels": row.n_zero_labels,
            **more,
        }
        for name in columns.split():
            if name.startswith("paper_"):
                known[name] = (paper or {}).get(row.method, {}).get(name[len("paper_") :])
            elif name == "mce":
                known[name] = maximum_calibration_error(None, judged_probabilities(c, row.method))
            elif name not in known:
                known[name] = getattr(row, name)
        found.append({name: known[name] for name in columns.split()})
    return found


def judged_probabilities(c: Comparison, method: str) -> Predictions:
    """Return the probabilities that a row of a comparison is about."""
    return c.train if method == "uncalibrated_train" else c.recalibrated[method]


def parameter_rows(fit: MCLLOFit, paper: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Return the paper's estimates, a row for each class, and ours."""
    printed = {row["class"]: row for row in paper}
    return [
        {**printed[row["class"]], **{name: row[name] for name in PARAMETERS}}
        for row in fit.parameters().rows()
    ]
