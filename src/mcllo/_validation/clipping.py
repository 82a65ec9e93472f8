"""Clipping: which small probabilities are raised, to which lower bound, and how it is said.

==============  ==================================================================================
``clip=None``   a row that holds a 0 has its values below 1e-6 raised to 1e-6 and is divided by its
                sum; rows without a 0 keep their digits
``clip=e > 0``  every value below e in every row is raised to e, and such rows divided by their sum
``clip=0``      nothing is raised: a 0 is refused (`_validation/probabilities`)
==============  ==================================================================================

The rule looks at one row at a time, so any partition of the rows gives the same numbers. What a 0
stands for, among votes and rounded numbers, is asked in `_validation/vote_fractions`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._utils.results import Floats
from .._utils.statements import warn
from ..exceptions import InputError, Option, Phrase, ZeroProbabilityWarning

DEFAULT_CLIP = 1e-6


def check_clip(clip: float | None, n_classes: int) -> None:
    """Refuse a floor that is no number, negative, or as large as even probabilities."""
    number = isinstance(clip, (int, float, np.integer, np.floating)) and not isinstance(clip, bool)
    if clip is not None and not (number and 0.0 <= clip < 1.0 / n_classes):
        raise InputError(argument="clip", rule=f"be a number in [0, 1/{n_classes})", value=clip)


def clip_zeros(
    probs: Floats, clip: float | None
) -> tuple[Floats, NDArray[np.bool_] | None, int, float | None]:
    """Return the rows, where they were raised, how many zeros there were, and the floor used."""
    n_zeros = 0 if probs.min() > 0.0 else int((probs == 0.0).sum())
    if clip == 0.0 or (clip is None and n_zeros == 0):
        return probs, None, n_zeros, None
    floor = DEFAULT_CLIP if clip is None else float(clip)
    raised = probs < floor
    if clip is None:
        raised &= (probs == 0.0).any(axis=1)[:, None]
    if not raised.any():
        return probs, None, n_zeros, None
    lifted = np.where(raised, floor, probs)
    touched = raised.any(axis=1)  # the other rows keep their digits, whatever their company
    lifted /= np.where(touched, lifted.sum(axis=1), 1.0)[:, None]
    return lifted, raised, n_zeros, floor


def clipping_sentence(
    found: Any, n_entries: int, what: str = "The statistic and the p-value depend"
) -> Phrase:
    """Return what clipping did to so many probabilities, as `found` counts it, and to what."""
    if not found.n_clipped:
        return Phrase("")
    return Phrase(
        "{} of {} probabilities were 0; {} were clipped to {:g}, {} of them of the class that came "
        "true. {} on this bound; choose it with {}.",
        *(found.n_zeros, n_entries, found.n_clipped, found.clip, found.n_clipped_true),
        *(what, Option("clip")),
    )


def warn_of_zeros(found: Any, n_entries: int) -> None:
    """Warn that clipping raised some of so many probabilities; counts are in the warning."""
    if found.n_clipped:
        message = Phrase(
            "probabilities of 0 were clipped to {:g}, because log odds need more than 0; "
            "choose another bound with {}.",
            found.clip,
            Option("clip"),
        )
        counts = {name: getattr(found, name) for name in ("n_zeros", "n_clipped", "n_clipped_true")}
        numbers = {**counts, "n_entries": n_entries, "clip": found.clip}
        detail = clipping_sentence(found, n_entries, "What is learned or tested depends")
        warn(ZeroProbabilityWarning(message, detail=detail, numbers=numbers))
