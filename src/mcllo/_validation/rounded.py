"""Zeros of rounded probabilities: a number between 0 and half a step, chosen as the labels ask.

Predictions that are calibrated and then rounded to two decimals are no longer calibrated as they
stand: a 0.00 is something below 0.005, and comes true now and then. So the hypothesis is
"calibrated before rounding", and what zeros stand for is free within what rounding allows:

===========  =====================================================================================
step         ``h = 10^-d / 2``, half a unit of the last of d decimals
row i        m zeros, k other numbers that sum to S: what the zeros stand for sums to at most
             ``1 - S + k h``, because each of the k numbers may have lost h; a row 1.00, 0, 0 has
             h / 2 for each of its two zeros
limit        ``u_i = min(h, (max(0, 1 - S) + k h) / m)``
a 0 is       ``f u_i``, with one f in (0, 1] for all rows; rows are then divided by their sum
f            the value of largest likelihood of the labels: N labels fell on a zero, and f makes
             ``sum_i f m u_i / (S + f m u_i)``, the number that the rows then promise, equal to it
===========  =====================================================================================

That number grows with f. N + 1/2 is put in the place of N, so that f is positive where no label
fell on a zero; where even f = 1 promises fewer labels than came, the predictions are off by more
than rounding explains, and f is 1. Numbers other than 0 stay as they are: half a step changes 0.30
by two parts in a hundred, to either side. What f takes from the labels makes the test a little
cautious (``docs/explanation/zeros.md`` has its level).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .._utils.formatting import format_count, format_number
from .._utils.results import Floats
from .._utils.statements import Statement, suppress_warnings
from ..exceptions import ZeroProbabilityWarning
from .clipping import DEFAULT_CLIP, warn_of_zeros
from .predictions import Predictions, judged_predictions
from .vote_fractions import find_decimals, raw_resolution, undo_clipping

N_HALVINGS = 30
"""Halvings of the interval of log f, at most 9 wide: to 1e-8 of f."""


class RoundedRows(NamedTuple):
    """Rows of rounded numbers: their sums, their zeros, and how large a zero may have been."""

    sums: Floats
    n_zeros: Floats
    limits: Floats

    @classmethod
    def from_probs(cls, probs: Floats, decimals: int) -> RoundedRows:
        """Return sums, zeros and limits of rows that were perhaps divided by their sums since."""
        half_step = 0.5 * 10.0**-decimals
        sums = np.ones(len(probs))
        several = ((probs > 0.0) & (probs < 1.0)).any(axis=1)
        written = find_decimals(probs[several])
        if written is not None:
            sums[several] = written.rows.sum(axis=1)
        n_zeros = (probs == 0.0).sum(axis=1).astype(np.float64)
        n_others = probs.shape[1] - n_zeros
        lost = np.maximum(0.0, 1.0 - sums) + n_others * half_step
        limits = np.minimum(half_step, lost / np.maximum(n_zeros, 1.0))
        return cls(sums, n_zeros, limits)

    def expected_on_zeros(self, share: float, weight: Floats) -> float:
        """Return the expected number of labels on zeros, where a 0 is this share of its limit."""
        on_zeros = share * self.n_zeros * self.limits
        return float(weight @ (on_zeros / (self.sums + on_zeros)))

    def share_for(self, n_labels: float, weight: Floats, smallest: float) -> float:
        """Return the share at which so many labels on zeros are expected, from `smallest` to 1."""
        if self.expected_on_zeros(1.0, weight) <= n_labels:
            return 1.0
        low, high = np.log(smallest), 0.0
        for _ in range(N_HALVINGS):
            middle = 0.5 * (low + high)
            if self.expected_on_zeros(float(np.exp(middle)), weight) < n_labels:
                low = middle
            else:
                high = middle
        return float(np.exp(high))


def unrounded_predictions(probs: Any, y: Any = None, **options: Any) -> Predictions:
    """Return `judged_predictions` as they were before rounding, if they are rounded.

    That zeros were raised to a floor is only said of those that are.
    """
    with suppress_warnings(ZeroProbabilityWarning):
        predictions = before_rounding(judged_predictions(probs, y, **options))
    if predictions is not probs and options.get("clip") is None:
        warn_of_zeros(predictions, predictions.probs.size)
    return predictions


def before_rounding(predictions: Predictions) -> Predictions:
    """Return predictions whose zeros are what they may have been before rounding.

    Predictions without zeros, of votes, of numbers that were not rounded, and with a floor that the
    user chose are returned as they are. What was done is the note ``note.rounded``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([0.1, 0.1, 0.1], size=400)
    >>> y = [rng.choice(3, p=row) for row in probs]
    >>> with suppress_warnings():
    ...     p = Predictions.from_arrays(probs.round(2), y, normalize=True)
    >>> print(before_rounding(p).notes[0].text)
    Probabilities are rounded to 0.01: a 0 stands for up to 0.005. The 478 zeros were taken as 0.003
    on average, which suits the labels best: 1 fell on them.
    """
    p = predictions
    if p.raised is None or p.clip_given:
        return p
    resolution = raw_resolution(p)
    if resolution.decimals is None or resolution.votes is not None:
        return p
    probs = undo_clipping(p)
    is_zero = probs == 0.0
    half_step = 0.5 * 10.0**-resolution.decimals
    rows = RoundedRows.from_probs(probs, resolution.decimals)
    weight = p.row_weight
    n_labels = float(weight @ is_zero[np.arange(p.n_samples), p.codes])
    share = rows.share_for(n_labels + 0.5, weight, smallest=DEFAULT_CLIP / half_step)

    as_zeros = (share * rows.limits / rows.sums)[:, None]  # `probs` are divided by the sums
    filled = np.where(is_zero, as_zeros, probs)
    filled /= filled.sum(axis=1, keepdims=True)
    n_zeros = int(is_zero.sum())
    mean = float(filled[is_zero].mean())
    fell = "none fell" if n_labels == 0 else f"{format_count(round(n_labels))} fell"
    text = (
        f"Probabilities are rounded to {10.0**-resolution.decimals:g}: a 0 stands for up to "
        f"{half_step:g}. The {format_count(n_zeros)} zeros were taken as "
        f"{format_number(mean, 2)} on average, which suits the labels best: {fell} on them."
    )
    numbers = {
        "decimals": resolution.decimals,
        "half_step": half_step,
        "n_zeros": n_zeros,
        "n_labels": n_labels,
        "mean": mean,
        "share": share,
    }
    return replace(
        p,
        probs=filled,
        raised=None,
        clip=None,
        n_clipped=0,
        n_clipped_true=0,
        notes=(*p.notes, Statement("note.rounded", text, "plain", numbers)),
    )
