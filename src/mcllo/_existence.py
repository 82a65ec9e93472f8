"""Does the maximum exist, and is it determined? What is asked, in order, and what is said of it.

1. A penalty makes a maximum exist.
2. A class without rows keeps it from existing; of many classes, so does one that its own log odds
   drive apart (`_peel`).
3. Where information is left at the estimate (`information_left`), it exists.
4. Otherwise the linear program of `_separation` decides, unless it is too large: then nothing is
   decided, and the estimate counts as not determined.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ._estimate import COLLAPSED, FLAT, Estimate, information_left
from ._labels import Classes
from ._predictions import Predictions
from ._separation import FIRST_ROWS, separated_classes
from .exceptions import ConvergenceWarning, SeparationWarning

if TYPE_CHECKING:
    from ._fit import MCLLOFit

MOST_CONSTRAINTS = 1.2e8
"""Numbers in the linear program beyond which it is not solved: 4000 rows of 120 classes."""


@dataclass(frozen=True)
class Existence:
    """What is known of the maximum.

    Attributes
    ----------
    causes : tuple
        Classes that keep it from existing.
    determined : bool
        Whether it exists and the rows determine it.
    undecided : bool
        Whether neither is known.
    """

    causes: Classes = ()
    determined: bool = False
    undecided: bool = False


def existence(end: Estimate, predictions: Predictions) -> Existence:
    """Return what is known of the maximum, given where a solver stopped."""
    plain = end.penalty == 0.0 and end.rule != "firth"
    if plain and (causes := predictions.absent or end.left_out):
        return Existence(causes)
    left = information_left(end, predictions)
    if left >= COLLAPSED:
        return Existence(determined=True)
    k = len(predictions.log_odds)
    if 2.0 * k * k * min(predictions.n_samples, FIRST_ROWS) > MOST_CONSTRAINTS:
        return Existence(undecided=True)
    causes = separated_classes(predictions)
    return Existence(causes, determined=not causes and left >= FLAT)


def warn_of(fit: MCLLOFit, absent: Classes, undecided: bool = False) -> None:
    """Say what an estimate that is not determined means for the result."""
    if fit.converged:
        return
    remedy = "To recalibrate, use MCLLOCalibrator(penalty=1.0)."
    if fit.separated:
        named = _some(fit.separated_classes)
        cause = f"no row has {named}" if absent else f"the log odds separate the labels: {named}"
        message = (
            f"the maximum likelihood estimate does not exist ({cause}): estimates drift to "
            f"infinity, standard errors are NaN, the statistic is the supremum's. {remedy}"
        )
        warnings.warn(message, SeparationWarning, stacklevel=4)
    else:
        message = (
            f"the likelihood is all but flat after {fit.n_iter} steps (gradient "
            f"{fit.gradient_norm:.1e}): the statistic holds, the estimates are not determined. "
        )
        if undecided:
            message += "Whether a maximum exists was not decided: the linear program is too large. "
        warnings.warn(message + remedy, ConvergenceWarning, stacklevel=4)


def _some(classes: Classes) -> str:
    """Return up to three classes in words."""
    names = ", ".join(repr(label) for label in classes[:3])
    more = f" and {len(classes) - 3} more" if len(classes) > 3 else ""
    return f"class {names}{more}"
