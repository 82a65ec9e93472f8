"""The gate: recalibrate only when calibration is rejected; else leave the predictions alone.

On calibrated predictions every recalibrator does harm: it fits noise. The gate tests calibration on
the training rows first. Calibrated predictions then pass untouched but for a fraction alpha of data
sets; where the departure is large enough to matter for the log loss, the test sees it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .._calibration_test import CalibrationTest
from .._chosen_test import fit_and_test
from .._max_score import max_score_test
from .._predictions import Predictions
from .._text import format_p
from ..exceptions import InputError


@dataclass(frozen=True)
class GateDecision:
    """What the gate did.

    Attributes
    ----------
    recalibrates : bool
        Whether predictions are changed, because calibration was rejected.
    pvalue, alpha : float
        Of the test on the training rows, and the level it was compared with.
    test : str
        Which test.
    gain : float or None
        What cross-validation promises, where it was asked as well: the gate stays closed unless
        that is positive.
    """

    recalibrates: bool
    pvalue: float
    alpha: float
    test: str
    gain: float | None = None

    def __str__(self) -> str:
        p = f"p {format_p(self.pvalue)}"
        if self.recalibrates:
            return f"recalibrated: calibration is rejected at level {self.alpha:g} ({p})"
        if self.pvalue <= self.alpha:
            return f"left alone: calibration is rejected ({p}), but no repair promises a gain"
        return (
            f"left alone: calibration is not rejected at level {self.alpha:g} ({p}); "
            "that is no proof of calibration"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        return asdict(self)


def decide(predictions: Predictions, alpha: float, rule: str = "", seed: int = 0) -> GateDecision:
    """Test the training rows; `rule` 'auto' or 'all' tests over all baselines at once."""
    import numpy as np

    if not 0.0 < alpha < 1.0:
        raise InputError(f"gate must lie in (0, 1); got gate={alpha}. Leave it out for no gate.")
    if rule == "all" and predictions.n_classes > 2:
        found = max_score_test(predictions, np.arange(predictions.n_classes), seed=seed)
        p, kind = found.pvalue, "max_score"
    else:
        test: CalibrationTest = fit_and_test(predictions, rule, seed=seed).test
        p, kind = test.pvalue, test.kind
    return GateDecision(p <= alpha, p, alpha, kind)
