"""What a 0 stands for: votes k / T and rounded numbers have zeros that are none.

=================  =========================================================================
votes              every x is k / T: T trees grown to the end, T neighbours, T raters
decimals           every x is k / 10^d, in rows that are perhaps divided by their sum 1 + m / 10^d
votes in a file    x is k / T rounded to d decimals, T <= 10^d / 2
undo_clipping      cells that were raised are 0 again, the rest of their row divided by its sum
change_clip        these rows raised once more (`_validation/probabilities`); others untouched
recalibration      floor ``1 / (2 T)`` for votes k / T, at most ``1 / (2 c)``; for anything else the
                   floor that is there
=================  =========================================================================

A nonzero x needs k >= 1, so rows of tiny numbers lie on no lattice. A row with f values strictly
between 0 and 1 has f - 1 free ones, and a free value of a smooth forecaster lies on a given lattice
with probability ``2 tolerance T`` (``T / 10^d`` once it is rounded). A lattice is reported when the
product of these is below 1e-9: chance does not make one among the 2000 that are tried.

T = 10^d is the hard case: 100 trees, or two decimals? Rounded rows of three or more nonzero values
miss the sum 1 at least one time in four, votes never: 24 such rows that all sum to 1 are votes.

A 0 among T votes says "less than about 1 / T", not "never". The floor 1 / (2 T) serves penalised
fits; with unpenalised maximum likelihood it drives more estimates to infinity, and in a test the
added mass is itself a departure. A 0 of rounded numbers stays at 1e-6 in a recalibration: on sharp
classifiers half a last digit did worse than 1e-6. In a test it is a number between 0 and half a
step, chosen as the labels ask (`undo_rounding`).

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

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._utils.formatting import format_count, format_number
from .._utils.results import Codes, Floats
from .._utils.statements import Statement, suppress_warnings
from ..exceptions import ZeroProbabilityWarning
from .predictions import Predictions, predictions_for_inference
from .probabilities import DEFAULT_CLIP, clean_probs, warn_of_zeros

Mask = NDArray[np.bool_]

MAX_VOTES = 2000
"""Largest T that is looked for: a round number, above the trees of most forests."""
MAX_LOG10_CHANCE = -9.0
"""Log10 of the probability below which a lattice is no coincidence: round, see the module."""
VOTE_FRACTION_TOL = 1e-6
"""Distance of a vote fraction from what it should be, float32 included: a round number."""
DECIMAL_TOL = 5e-8
"""Distance of a decimal number from what it should be: float32 rounds 1 to 6e-8 on either side."""
N_PROBED_ROWS = 100
"""Rows that are looked at before all are: a round number."""


@dataclass(frozen=True)
class Resolution:
    """How fine a forecaster speaks: the smallest T of votes k / T, and decimals rounded to.

    None where no limit shows.
    """

    votes: int | None = None
    decimals: int | None = None


def detect_resolution(probs: Floats) -> Resolution:
    """Return whether probabilities are votes, rounded, both or neither.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> detect_resolution(rng.dirichlet([1, 1, 1], size=50).round(3))
    Resolution(votes=None, decimals=3)
    >>> detect_resolution((rng.multinomial(30, [0.5, 0.3, 0.2], size=50) / 30).round(3))
    Resolution(votes=30, decimals=3)
    >>> detect_resolution(rng.dirichlet([1, 1, 1], size=50))
    Resolution(votes=None, decimals=None)
    """
    rows = probs[
        ((probs > 0.0) & (probs < 1.0)).any(axis=1)
    ]  # 0 and 1 are on every lattice
    if not len(rows):
        return Resolution()
    n_free = int(_count_free_values(rows).sum())
    exact = _smallest_denominator(rows, MAX_VOTES, VOTE_FRACTION_TOL)
    written = find_decimals(rows)
    if written is None:
        are_votes = _is_unlikely_by_chance(exact, 2.0 * VOTE_FRACTION_TOL, n_free)
        return Resolution(votes=exact if are_votes else None)
    # 0.9, 1.0 and 1.1 as sums of rounded rows make multiples of 1/990: no votes
    if exact is not None and exact <= written.unit + _max_unit_shift(rows):
        # decimals lie on a lattice that divides 10^d anyway, the closer the fewer they are
        is_rounded = written.unit % exact == 0
        coverage = 1.0 / written.unit if is_rounded else 2.0 * VOTE_FRACTION_TOL
        if _is_unlikely_by_chance(exact, coverage, n_free):
            return Resolution(votes=exact)
        if exact == written.unit and written.sums_hold:
            return Resolution(votes=exact)
    error = (0.5 + 1e-6) / written.unit  # half a last digit, and what doubles round
    coarse = _smallest_denominator(
        written.rows, min(written.unit // 2, MAX_VOTES), error
    )
    are_votes = _is_unlikely_by_chance(coarse, 1.0 / written.unit, n_free)
    return Resolution(coarse if are_votes else None, written.decimals)


class DecimalRows(NamedTuple):
    """Rows as a file held them, not yet divided by their sums; `unit` last digits make 1."""

    rows: Floats
    decimals: int
    unit: int
    sums_hold: bool


def _count_free_values(rows: Floats) -> Codes:
    """Return how many values of each row its sum leaves free."""
    n_between = ((rows > 0.0) & (rows < 1.0)).sum(axis=1)
    return np.maximum(n_between - 1, 0)


def _max_unit_shift(rows: Floats) -> int:
    """Return the largest m that is tried: half a last digit for each class, but at most 25."""
    return int(
        min(25, (rows.shape[1] + 1) // 2)
    )  # a round number: each m costs a look at all rows


def find_decimals(rows: Floats) -> DecimalRows | None:
    """Return the rows with the fewest decimals that explain all of them."""
    reach = _max_unit_shift(rows)
    n_free = _count_free_values(rows)
    for decimals in range(1, 7):  # float32 holds no more than six
        unit = 10**decimals
        # log10 of the chance that all rows lie on this lattice, each at the best of its m
        of_free_value = math.log10(2.0 * DECIMAL_TOL * unit)
        of_shifts = math.log10(2 * reach + 1)
        log10_chance = np.minimum(0.0, n_free * of_free_value + of_shifts).sum()
        if log10_chance > MAX_LOG10_CHANCE:
            continue
        if _find_unit_shifts(rows[:N_PROBED_ROWS], unit, reach) is None:
            continue
        shifts = _find_unit_shifts(rows, unit, reach)
        if shifts is not None:
            digits = np.rint(rows * (unit + shifts)[:, None])
            return DecimalRows(
                digits / unit, decimals, unit, _rows_sum_to_one(digits, unit)
            )
    return None


def _rows_sum_to_one(digits: Floats, unit: int) -> bool:
    """Whether all rows sum to 1, and so many have three nonzero values that this is no chance."""
    n_nonzero = (digits > 0.0).sum(axis=1)
    n_decisive = int((n_nonzero >= 3).sum())
    all_hold = bool((digits.sum(axis=1) == unit).all())
    return (
        all_hold and n_decisive >= 24
    )  # each misses 1 in four times at least: 0.75^24 = 0.001


def _find_unit_shifts(rows: Floats, unit: int, reach: int) -> Codes | None:
    """Return each row's m that makes ``x (unit + m)`` whole numbers; None if a row has none."""
    least = np.full(len(rows), np.inf)
    found = np.zeros(len(rows), dtype=np.intp)
    shifts = range(max(-reach, 1 - unit), reach + 1)
    for m in sorted(shifts, key=abs):
        off = _distance_to_integers(rows * (unit + m)).max(axis=1)
        better = off < least - 1e-6  # of equals but for rounding the smallest m
        least[better] = off[better]
        found[better] = m
    return None if least.max() > DECIMAL_TOL * unit else found


def _distance_to_integers(counts: Floats) -> Floats:
    """Return how far counts are from whole numbers, where only a 0 may count as 0."""
    # a tiny number is no 0 of a lattice: k >= 1 for every x > 0
    nearest = np.rint(counts)
    np.maximum(nearest, 1.0, out=nearest, where=counts > 0.0)
    return np.abs(counts - nearest)


def _smallest_denominator(rows: Floats, most: int, error: float) -> int | None:
    """Return the smallest T <= most that all rows are multiples 1 / T of, within `error`."""
    # A glance at some values rules most T out at once; all rows are looked at for the others.
    candidates = np.arange(2, most + 1)
    values = np.unique(rows[:N_PROBED_ROWS])
    values = values[:: math.ceil(len(values) / N_PROBED_ROWS)]
    counts = values[None, :] * candidates[:, None]
    off = _distance_to_integers(counts).max(axis=1)
    not_ruled_out = candidates[off <= error * candidates]
    for votes in not_ruled_out.tolist():
        if _distance_to_integers(rows * votes).max() > error * votes:
            continue
        counts = np.rint(rows * votes).astype(np.intp)
        shown = np.bincount(counts.ravel(), minlength=votes + 1)
        n_distinct = (shown[1:votes] > 0).sum()
        if n_distinct >= min(
            votes - 1, 4
        ):  # a constant is no vote; four is a round number
            return int(votes)
    return None


def _is_unlikely_by_chance(votes: int | None, coverage: float, free: int) -> bool:
    """Return whether smooth probabilities would hardly ever lie on this lattice."""
    return votes is not None and free * math.log10(coverage * votes) <= MAX_LOG10_CHANCE


class ClippedPredictions(NamedTuple):
    """Predictions to fit on, and the `clip` that new rows need to be treated alike."""

    predictions: Predictions
    clip: float | None


def find_zero_cells(predictions: Predictions) -> Mask:
    """Return where a probability was 0 or was raised as one; nowhere when logits are given."""
    if predictions.raised is not None:
        return predictions.raised
    if predictions.logits is not None:
        return np.zeros(predictions.probs.shape, dtype=bool)
    return predictions.probs == 0.0


def undo_clipping(predictions: Predictions) -> Floats:
    """Return the probabilities before zeros were raised; what was raised is 0.

    Examples
    --------
    >>> p = Predictions.from_arrays([[0.75, 0.25, 0.0], [0.2, 0.3, 0.5]], [0, 2], clip=1e-3)
    >>> p.probs[0].round(6)
    array([0.749251, 0.24975 , 0.000999])
    >>> undo_clipping(p)[0]
    array([0.75, 0.25, 0.  ])
    """
    if predictions.raised is None:
        return predictions.probs
    touched = predictions.raised.any(axis=1)
    kept = np.where(predictions.raised, 0.0, predictions.probs)
    kept /= np.where(touched, kept.sum(axis=1), 1.0)[:, None]
    return kept


def change_clip(predictions: Predictions, clip: float | None) -> Predictions:
    """Return the predictions with zeros raised to another floor; None is the default rule.

    Rows in which nothing was raised stay as they are, whatever they hold.
    """
    zero = find_zero_cells(predictions)
    floor = DEFAULT_CLIP if clip is None else clip
    if floor == predictions.clip or not zero.any():
        return predictions
    rows = zero.any(axis=1)
    probs = undo_clipping(predictions).copy()
    raised = np.zeros_like(zero)
    clipped = clean_probs(probs[rows], clip=floor)
    probs[rows] = clipped.probs
    raised[rows] = clipped.raised
    return replace(
        predictions,
        probs=probs,
        raised=raised,
        clip=floor,
        clip_given=True,
        n_clipped=int(raised.sum()),
        n_clipped_true=int(raised[np.arange(len(raised)), predictions.codes].sum()),
    )


def recalibration_clip(predictions: Predictions) -> float | None:
    """Return the floor for a penalised recalibration, of these rows and of new ones.

    None, as everywhere, is the default rule. A floor that the user chose stays.
    """
    if not find_zero_cells(predictions).any():
        return None
    return clip_for_votes(predictions, resolution_before_clipping(predictions).votes)


def clip_for_votes(predictions: Predictions, votes: int | None) -> float | None:
    """Return the floor for a penalised recalibration of votes k / T."""
    if predictions.clip not in (None, DEFAULT_CLIP):
        return predictions.clip
    return None if votes is None else 0.5 / max(votes, predictions.n_classes)


def resolution_before_clipping(predictions: Predictions) -> Resolution:
    """Return the resolution before zeros were raised; none where other tiny values were, too."""
    if not raised_only_zeros(predictions):
        return Resolution()
    return detect_resolution(undo_clipping(predictions))


def raised_only_zeros(predictions: Predictions) -> bool:
    """Whether all that was raised was 0, and nothing small but positive."""
    return predictions.n_clipped in (0, predictions.n_zeros)


def clip_for_recalibration(predictions: Predictions) -> ClippedPredictions:
    """Return predictions for a penalised fit, and the `clip` for the rows it will be applied to.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> votes = rng.multinomial(25, [0.8, 0.15, 0.05], size=60)
    >>> p = Predictions.from_arrays(votes / 25, votes.argmax(axis=1), classes=range(3), clip=1e-6)
    >>> moved, clip = clip_for_recalibration(p)
    >>> clip, moved.probs.min().round(4).item()
    (0.02, 0.0196)
    """
    clip = recalibration_clip(predictions)
    if clip is not None:
        predictions = change_clip(predictions, clip)
    return ClippedPredictions(predictions, clip)


class ZeroLimits(NamedTuple):
    """Rows of rounded numbers: their sums, their zeros, and how large a zero may have been."""

    sums: Floats
    n_zeros: Floats
    largest_zero: Floats

    @classmethod
    def from_probs(cls, probs: Floats, decimals: int) -> ZeroLimits:
        """Return sums, zeros and limits of rows that were perhaps divided by their sums since."""
        half_step = 0.5 * 10.0**-decimals
        sums = np.ones(len(probs))
        several = ((probs > 0.0) & (probs < 1.0)).any(axis=1)
        written = find_decimals(probs[several])
        if written is not None:
            sums[several] = written.rows.sum(axis=1)
        n_zeros = (probs == 0.0).sum(axis=1).astype(np.float64)
        # each of the other numbers may have lost half a step, which the zeros then share
        n_others = probs.shape[1] - n_zeros
        lost = np.maximum(0.0, 1.0 - sums) + n_others * half_step
        largest_zero = np.minimum(half_step, lost / np.maximum(n_zeros, 1.0))
        return cls(sums, n_zeros, largest_zero)

    def expected_labels_on_zeros(self, share: float, weight: Floats) -> float:
        """Return the expected number of labels on zeros, where a 0 is this share of its limit."""
        on_zeros = share * self.n_zeros * self.largest_zero
        return float(weight @ (on_zeros / (self.sums + on_zeros)))

    def find_share_of_limit(
        self, n_labels: float, weight: Floats, smallest: float
    ) -> float:
        """Return the share at which so many labels on zeros are expected, from `smallest` to 1."""
        if self.expected_labels_on_zeros(1.0, weight) <= n_labels:
            return 1.0
        if self.expected_labels_on_zeros(smallest, weight) >= n_labels:
            return smallest

        def excess(log_share: float) -> float:
            return self.expected_labels_on_zeros(math.exp(log_share), weight) - n_labels

        from scipy.optimize import (
            brentq,
        )  # takes a while to load, and few tables come here

        return math.exp(brentq(excess, math.log(smallest), 0.0, xtol=1e-9))


def unrounded_predictions(probs: Any, y: Any = None, **options: Any) -> Predictions:
    """Return `predictions_for_inference` as they were before rounding, if they are rounded.

    That zeros were raised to a floor is only said of those that are.
    """
    with suppress_warnings(ZeroProbabilityWarning):
        predictions = undo_rounding(predictions_for_inference(probs, y, **options))
    if predictions is not probs and options.get("clip") is None:
        warn_of_zeros(predictions, predictions.probs.size)
    return predictions


def undo_rounding(predictions: Predictions) -> Predictions:
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
    >>> print(undo_rounding(p).notes[0].text)
    Probabilities are rounded to 0.01: a 0 stands for up to 0.005. The 478 zeros were taken as 0.003
    on average, which suits the labels best: 1 fell on them.
    """
    p = predictions
    if p.raised is None or p.clip_given:
        return p
    resolution = resolution_before_clipping(p)
    if resolution.decimals is None or resolution.votes is not None:
        return p
    probs = undo_clipping(p)
    is_zero = probs == 0.0
    half_step = 0.5 * 10.0**-resolution.decimals
    rows = ZeroLimits.from_probs(probs, resolution.decimals)
    weight = p.row_weight
    n_labels = float(weight @ is_zero[np.arange(p.n_samples), p.codes])
    # half a label more, so that a zero stands for something where no label fell on one
    share = rows.find_share_of_limit(
        n_labels + 0.5, weight, smallest=DEFAULT_CLIP / half_step
    )

    as_zeros = (share * rows.largest_zero / rows.sums)[
        :, None
    ]  # `probs` are divided by the sums
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
