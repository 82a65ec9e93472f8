"""What the ladder's choice says about the predictions, without overclaiming.

"Enough" always means: at this level the labels do not contradict it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ._ladder_models import INSIDE
from ._nested_test import TOO_COSTLY, TOO_MANY
from ._predictions import Predictions
from ._restriction import RestrictedFit
from ._text import ellipsis, format_number, format_p

if TYPE_CHECKING:
    from ._ladder_rows import LadderRow


def ladder_sentence(
    rows: Sequence[LadderRow],
    chosen: LadderRow,
    fit: RestrictedFit,
    predictions: Predictions,
    alpha: float,
) -> str:
    """Return the verdict in a few sentences."""
    parts = [_kind(chosen.model, fit, predictions), _evidence(chosen, alpha)]
    others = _others(rows, chosen)
    if others:
        parts.append(f"Not rejected either: {', '.join(others)}.")
    return " ".join([*parts, *_beyond(rows, chosen, alpha)])


def _kind(model: str, fit: RestrictedFit, predictions: Predictions) -> str:
    """Name the kind of miscalibration."""
    baseline = repr(ellipsis(predictions.baseline))
    slope = fit.theta[-1]
    words = {
        "identity": "No departure found.",
        "temperature": f"One temperature is enough: all log odds are {_slope(slope)}.",
        "shift": f"Class priors have shifted: {_largest_shift(fit, predictions)}.",
        "scale": f"Classes differ in slope against {baseline}; no shift is needed.",
        "common_slope": f"Class priors have shifted ({_largest_shift(fit, predictions)}), and "
        f"all log odds are {_slope(slope)}.",
        "mcllo": f"Classes differ in slope: each needs its own shift and slope against {baseline}.",
        "full": "Shifts and slopes class by class are not enough: the odds of a class also depend "
        "on the probabilities of the others.",
    }
    return words[model]


def _slope(gamma: float) -> str:
    if gamma <= 0.0:
        return f"ranked the wrong way (slope {format_number(gamma)})"
    word = "too extreme" if gamma < 1.0 else "too timid"
    return f"{word} (slope {format_number(gamma)})"


def _largest_shift(fit: RestrictedFit, predictions: Predictions) -> str:
    tau = fit.theta[: len(predictions.compared)]
    j = int(np.argmax(np.abs(tau)))
    pair = f"{ellipsis(predictions.compared[j])!r} against {ellipsis(predictions.baseline)!r}"
    return f"most for {pair}, odds times {format_number(float(np.exp(tau[j])))}"


def _evidence(chosen: LadderRow, alpha: float) -> str:
    if chosen.larger is None:
        return f"Every smaller model is rejected at level {alpha:g}."
    p = format_p(chosen.larger_pvalue)
    if chosen.model == "identity":
        return f"At level {alpha:g}, p {p}; that is not proof of calibration."
    return f"Nothing beyond that was found at level {alpha:g} (p {p}), which is not proof."


def _others(rows: Sequence[LadderRow], chosen: LadderRow) -> list[str]:
    """Return the other models that are not rejected while everything inside them is."""
    kept = {row.model for row in rows if not row.rejected}
    least = [name for name in kept if not kept & set(INSIDE[name])]
    order = [row.model for row in rows]
    return sorted((name for name in least if name != chosen.model), key=order.index)


def _beyond(rows: Sequence[LadderRow], chosen: LadderRow, alpha: float) -> list[str]:
    """Say when the full map shows more, and when its p-value is weak."""
    top = next(row for row in rows if row.model == "mcllo")
    notes = []
    if chosen.model != "full" and top.larger_pvalue <= alpha:
        notes.append(
            f"But the full map fits better than MCLLO (p {format_p(top.larger_pvalue)}): look at "
            "how classes are confused."
        )
    judged = top if chosen.model == "full" or notes else chosen
    costly = TOO_COSTLY in judged.larger_reason or TOO_MANY in judged.larger_reason
    if costly and judged.larger_method == "chi2":
        which = "The p-value of MCLLO against the full map" if judged is top else "That p-value"
        notes.append(f"{which} is chi-square's, which so little information may not support.")
    return notes
