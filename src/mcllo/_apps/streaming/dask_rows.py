"""What `assess` and `MCLLOCalibrator` do with Dask collections.

The library looks this module up by name (`_utils/applications`), so that arrays need nothing of it.
"""

from __future__ import annotations

from typing import Any

from ..._fit.fit import MCLLOFit
from ..._validation.weights import counts_no_rows
from ...exceptions import InputError, Option, Phrase
from .assess_blocks import BlockAssessment, assess_blocks
from .dask import blocks_of_dask, lazy_labels, lazy_predict
from .fit_blocks import fit_blocks

__all__ = ["assess_dask", "fit_dask", "lazy_labels", "lazy_predict"]


def assess_dask(
    probs: Any, y: Any, rule: str, baseline: Any, by: Any, options: dict[str, Any], **data: Any
) -> BlockAssessment:
    """Assess Dask collections; `options` are those of `assess`, `data` how rows are read."""
    if data.pop("prefix", ""):
        message = "{} is for frames in memory; rename the columns of Dask's."
        raise InputError(Phrase(message, Option("prefix")), argument="prefix")
    weight_kind = data.pop("weight_kind", "")
    needs_all_rows = {
        Option("baseline", rule): bool(rule),
        Option("groups"): data.pop("groups", None) is not None,
        Option("by"): by is not None,
        Option("weight_kind", weight_kind): counts_no_rows(weight_kind),
    }
    for option in (option for option, is_given in needs_all_rows.items() if is_given):
        raise InputError(
            Phrase("{} needs all rows in memory.", option),
            argument=option.name,
            remedy="Pass probs.compute() and y.compute(), or leave it out.",
        )
    return assess_blocks(blocks_of_dask(probs, y, baseline=baseline, **data), **options)


def fit_dask(X: Any, y: Any, penalty: Any, **reading: Any) -> MCLLOFit:
    """Return the fit of rows that stay with their workers."""
    return fit_blocks(blocks_of_dask(X, y, **reading), penalty=penalty)
