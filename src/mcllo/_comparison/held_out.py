"""What a map gains on rows that it was not fitted to: by folds, before anybody relies on it.

==========  =======================================================================================
judged      each row by a map of the same method, fitted to the other folds (5 of them, at random
            with a fixed seed, whatever the labels; rows of one group share theirs)
gain        log loss as it is less log loss after, with a 95 % interval (`_comparison/recommend`)
helps       the interval lies above 0
harms       the gain is below 0: leaving the predictions as they are has the lower log loss
unclear     anything else: the gain may be chance
==========  =======================================================================================

Maximum likelihood on few rows fits noise (`docs/explanation/do-no-harm.md`). Tables of more than
two million numbers are not judged: a map of a few parameters fits hardly any noise there, and five
more fits take time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .._utils.results import Result
from .._utils.statements import Statement, suppress_warnings
from .._validation.predictions import Predictions
from ..exceptions import PYTHON, Either, Phrase, Words
from .methods import random_folds
from .recommend import UNCALIBRATED, recommend

N_FOLDS = 5
SEED = 0
MIN_ROWS = 10
MAX_CELLS = 2_000_000
"""Rows times classes up to which a map is judged by folds."""
AUTO_NAME = Either("AutoCalibrator", shell="--method auto")


@dataclass(frozen=True)
class HeldOut(Result):
    """The gain of a map on rows left out, in nats of log loss a row.

    Attributes
    ----------
    gain, low, high : float
        Mean and its 95 % interval; negative where the map does harm.
    improves : bool
        Whether it is shown to help.
    folds, n_samples : int
        How it was judged.
    """

    gain: float
    low: float
    high: float
    improves: bool
    folds: int
    n_samples: int

    @property
    def kind(self) -> Literal["helps", "harms", "unclear"]:
        """What it comes to."""
        if self.improves:
            return "helps"
        return "harms" if self.gain < 0.0 else "unclear"

    def statement(self, words: Words = PYTHON) -> Statement:
        """Return what it comes to, in words."""
        lowers = self.gain >= 0.0
        low, high = (self.low, self.high) if lowers else (-self.high, -self.low)
        does = "lowers" if lowers else "raises"
        text = (
            f"On rows that it was not fitted to ({self.folds} folds) it {does} log loss by "
            f"{abs(self.gain):.4f} ({low:.4f} to {high:.4f})"
        )
        if self.kind == "helps":
            return Statement("gain", f"{text}: expected to help.", "good", self.to_dict())
        if self.kind == "unclear":
            return Statement("gain", f"{text}, which may be chance.", "doubt", self.to_dict())
        harm = "expected to do harm" if self.high < 0.0 else "more likely to do harm than good"
        remedy = Phrase(
            "{}: {}. Use {}, which leaves predictions alone where no recalibration pays, or learn "
            "from "
            "more rows.",
            text,
            harm,
            AUTO_NAME,
        )
        return Statement("gain", remedy.text(words), "bad", self.to_dict())


def held_out(estimator: Any, predictions: Predictions) -> HeldOut | None:
    """Return what an unfitted calibrator gains on rows left out; None where that is not asked.

    Examples
    --------
    >>> from mcllo import MCLLOCalibrator, simulate
    >>> calm = simulate.draw(60, n_classes=4, distribution="dirichlet", seed=4)
    >>> held_out(MCLLOCalibrator(), calm).kind  # predictions that are right as they are
    'harms'
    """
    n = predictions.n_samples
    if n < MIN_ROWS or predictions.probs.size > MAX_CELLS:
        return None
    folds = random_folds(n, N_FOLDS, SEED, predictions.groups)
    recalibrated, params = np.empty(predictions.probs.shape), estimator.get_params(deep=False)
    with suppress_warnings():  # the fit of all rows says what there is to say
        for fold in range(N_FOLDS):
            held = folds == fold
            own = type(estimator)(**params).fit(predictions.take(~held))
            recalibrated[held] = own.predict_proba(predictions.take(held))
        sets = {UNCALIBRATED: predictions, "map": predictions.with_probs(recalibrated)}
        found = recommend(sets, cross_validated=True)
    sign = -1.0 if found.method == UNCALIBRATED else 1.0
    other = found.difference("map" if found.method == UNCALIBRATED else UNCALIBRATED)
    assert other is not None
    low, high = sorted((sign * other.low, sign * other.high))
    return HeldOut(sign * other.difference, low, high, found.improves, N_FOLDS, n)
