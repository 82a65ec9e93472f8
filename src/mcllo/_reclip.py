"""Zeros raised to another floor, and the floor that serves recalibration.

===============  ==========================================================================
unraised         cells that were raised are 0 again, the rest of their row divided by its sum
reclip           these rows raised once more, by the rule of `_probabilities`; others untouched
recalibration    ``1 / (2 T)`` for votes k / T (`_lattice`), at most ``1 / (2 c)``; for anything
                 else the floor that is there
===============  ==========================================================================

A 0 among T votes says "less than about 1 / T", not "never". The floor 1 / (2 T) serves penalised
fits; with unpenalised maximum likelihood it drives more estimates to infinity, and in a test the
added mass is itself a departure. A 0 of rounded numbers stays at 1e-6: on sharp classifiers half a
last digit did worse than 1e-6.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._lattice import Resolution, resolution_of
from ._predictions import Predictions
from ._probabilities import DEFAULT_CLIP, clean_probs

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Reclipped(NamedTuple):
    """Predictions to fit on, and the `clip` that new rows need to be treated alike."""

    predictions: Predictions
    clip: float | None


def zero_cells(predictions: Predictions) -> Mask:
    """Return where a probability was 0 or was raised as one; nowhere when logits are given."""
    if predictions.raised is not None:
        return predictions.raised
    zero: Mask = predictions.probs == 0.0
    return zero if predictions.logits is None else np.zeros_like(zero)


def unraised(predictions: Predictions) -> Floats:
    """Return the probabilities before zeros were raised; what was raised is 0.

    Examples
    --------
    >>> p = Predictions.from_arrays([[0.75, 0.25, 0.0], [0.2, 0.3, 0.5]], [0, 2], clip=1e-3)
    >>> p.probs[0].round(6)
    array([0.749251, 0.24975 , 0.000999])
    >>> unraised(p)[0]
    array([0.75, 0.25, 0.  ])
    """
    if predictions.raised is None:
        return predictions.probs
    touched = predictions.raised.any(axis=1)
    kept: Floats = np.where(predictions.raised, 0.0, predictions.probs)
    kept /= np.where(touched, kept.sum(axis=1), 1.0)[:, None]
    return kept


def reclip(predictions: Predictions, clip: float | None) -> Predictions:
    """Return the predictions with zeros raised to another floor; None is the default rule.

    Rows in which nothing was raised stay as they are, whatever they hold.
    """
    zero = zero_cells(predictions)
    floor = DEFAULT_CLIP if clip is None else clip
    if floor == predictions.clip or not zero.any():
        return predictions
    rows = zero.any(axis=1)
    probs, raised = unraised(predictions).copy(), np.zeros_like(zero)
    lifted = clean_probs(probs[rows], clip=floor)
    probs[rows], raised[rows] = lifted.probs, lifted.raised
    return replace(
        predictions,
        probs=probs,
        raised=raised,
        clip=floor,
        n_clipped=int(raised.sum()),
        n_clipped_true=int(raised[np.arange(len(raised)), predictions.codes].sum()),
    )


def recalibration_clip(predictions: Predictions) -> float | None:
    """Return the floor for a penalised recalibration, of these rows and of new ones.

    None, as everywhere, is the default rule. A floor that the user chose stays.
    """
    if not zero_cells(predictions).any():
        return None
    return clip_for_votes(predictions, raw_resolution(predictions).votes)


def clip_for_votes(predictions: Predictions, votes: int | None) -> float | None:
    """Return the floor for a penalised recalibration of votes k / T."""
    if predictions.clip not in (None, DEFAULT_CLIP):
        return predictions.clip
    return None if votes is None else 0.5 / max(votes, predictions.n_classes)


def raw_resolution(predictions: Predictions) -> Resolution:
    """Return the resolution before zeros were raised; none where other tiny values were, too."""
    return resolution_of(unraised(predictions)) if only_zeros(predictions) else Resolution()


def only_zeros(predictions: Predictions) -> bool:
    """Whether all that was raised was 0, and nothing small but positive."""
    return predictions.n_clipped in (0, predictions.n_zeros)


def for_recalibration(predictions: Predictions) -> Reclipped:
    """Return predictions for a penalised fit, and the `clip` for the rows it will be applied to.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> votes = rng.multinomial(25, [0.8, 0.15, 0.05], size=60)
    >>> p = Predictions.from_arrays(votes / 25, votes.argmax(axis=1), classes=range(3), clip=1e-6)
    >>> moved, clip = for_recalibration(p)
    >>> clip, moved.probs.min().round(4).item()
    (0.02, 0.0196)
    """
    clip = recalibration_clip(predictions)
    return Reclipped(predictions if clip is None else reclip(predictions, clip), clip)
