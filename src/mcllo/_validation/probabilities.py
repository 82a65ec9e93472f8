"""A table of probabilities or logits -> rows on the simplex, with everything changed counted.

Rules, applied in this order and nowhere else:

1. shape (n, c) with n >= 1 and c >= 2; numbers only; no NaN, no infinity; values in [0, 1];
2. rows sum to 1 within 1e-6 (float32 and float16 input: 1e-3; ``normalize=True``: any positive
   sum); rows off by more than 1e-9 are divided by their sum (the others keep their digits: 0.7
   stays on the edge of a bin);
3. zeros are clipped to a lower bound:

==============  ==================================================================================
``clip=None``   a row that holds a 0 has its values below 1e-6 raised to 1e-6 and is divided by its
                sum; rows without a 0 keep their digits
``clip=e > 0``  every value below e in every row is raised to e, and such rows divided by their sum
``clip=0``      nothing is raised: a 0 is refused
==============  ==================================================================================

The rules look at one row at a time, so any partition of the rows gives the same numbers. What a 0
stands for, among votes and rounded numbers, is asked in `_validation/rounding`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._utils.results import Floats
from .._utils.statements import Statement, warn
from ..exceptions import InputError, ZeroProbabilityWarning
from .frames import as_matrix

Array = NDArray[Any]

DEFAULT_CLIP = 1e-6
"""Lower bound of probabilities in rows that hold a 0: a round number, below the last digit of most
files."""
ROW_SUM_TOL = 1e-6
"""Distance of the sum of a row of double precision from 1: a round number."""
ROW_SUM_TOL_FLOAT32 = 1e-3
"""The same in single and half precision, whose epsilon is 1e-3."""
MIN_REPORTED_ROW_ERROR = 1e-9
"""Distance from 1 that is more than adding up doubles makes, so that the row is divided by its sum:
a round number."""
MIN_LOGITS_KEPT_SINGLE = 2**24
"""Logits of single precision from which they stay so: 128 MB in double precision, round."""
MAX_ROUNDING_ROW_ERROR = 0.1
"""Row error up to which rounding is the likely cause: round; two decimals of 20 classes."""
SUM_RULE = "sum to 1"
ROW_REMEDY = "Drop or correct that row."


def check_clip(clip: float | None, n_classes: int) -> None:
    """Refuse a floor that is no number, negative, or as large as even probabilities."""
    if clip is None:
        return
    is_number = isinstance(clip, (int, float, np.integer, np.floating))
    if isinstance(clip, bool) or not (is_number and 0.0 <= clip < 1.0 / n_classes):
        raise InputError(
            argument="clip", rule=f"be a number in [0, 1/{n_classes})", value=clip
        )


class ClippedProbs(NamedTuple):
    """Rows after clipping, where they were raised (None: nowhere), zeros found, and the bound."""

    probs: Floats
    raised: NDArray[np.bool_] | None
    n_zeros: int
    clip: float | None


def clip_zeros(probs: Floats, clip: float | None) -> ClippedProbs:
    """Clip probabilities by rule 3 of the module."""
    n_zeros = 0
    if probs.min() <= 0.0:
        n_zeros = int((probs == 0.0).sum())
    if clip == 0.0 or (clip is None and n_zeros == 0):
        return ClippedProbs(probs, None, n_zeros, None)
    floor = DEFAULT_CLIP if clip is None else float(clip)
    raised = probs < floor
    if clip is None:
        # small values that were meant as they are stand in rows without a 0
        raised &= (probs == 0.0).any(axis=1)[:, None]
    if not raised.any():
        return ClippedProbs(probs, None, n_zeros, None)
    lifted = np.where(raised, floor, probs)
    touched = raised.any(
        axis=1
    )  # the other rows keep their digits, whatever their company
    lifted /= np.where(touched, lifted.sum(axis=1), 1.0)[:, None]
    return ClippedProbs(lifted, raised, n_zeros, floor)


CLIPPED = (
    "{n_zeros} of {n_entries} probabilities were 0; {n_clipped} were clipped to {bound:g}, "
    "{n_clipped_true} of them of the class that came true. {what} on this bound; choose it with "
    "{clip}."
)


def describe_clipping(found: Any, n_entries: int) -> dict[str, Any]:
    """Return what clipping did to so many probabilities, as `found` counts it."""
    return {
        "n_zeros": found.n_zeros,
        "n_clipped": found.n_clipped,
        "n_clipped_true": found.n_clipped_true,
        "n_entries": n_entries,
    }


def clipping_statement(found: Any, n_entries: int) -> Statement:
    """Return what clipping did to so many probabilities; nothing where it did nothing."""
    numbers = {"n_clipped": found.n_clipped}
    if not found.n_clipped:
        return Statement("note.zeros", "", numbers=numbers)
    counts = describe_clipping(found, n_entries)
    what = "The statistic and the p-value depend"
    values = {**counts, "bound": found.clip, "what": what}
    return Statement.filled("note.zeros", CLIPPED, values, numbers=numbers)


def warn_of_zeros(found: Any, n_entries: int) -> None:
    """Warn that clipping raised some of so many probabilities; counts are in the warning."""
    if not found.n_clipped:
        return
    message = (
        "probabilities of 0 were clipped to {bound:g}, because log odds need more than 0; "
        "choose another bound with {clip}."
    )
    counts = describe_clipping(found, n_entries)
    values = {
        **counts,
        "bound": found.clip,
        "what": "What is learned or tested depends",
    }
    numbers = {**counts, "clip": found.clip}
    warn(
        ZeroProbabilityWarning(message, detail=CLIPPED, numbers=numbers, values=values)
    )


@dataclass(frozen=True, eq=False)
class Simplex:
    """Clean probabilities and what was done to them, as in `Predictions`.

    Logits, when given, define the log odds; `names` are the column names of a frame.
    """

    probs: Floats
    logits: Floats | None
    names: list[str] | None
    raised: NDArray[np.bool_] | None
    clip: float | None
    n_zeros: int
    n_renormalized: int
    max_row_error: float

    def take(self, rows: NDArray[np.intp]) -> Simplex:
        """Return the chosen rows; zeros are counted again where each raised value was one."""
        logits = None if self.logits is None else self.logits[rows]
        raised = None
        n_zeros = self.n_zeros
        if self.raised is not None:
            raised = self.raised[rows]
            if self.raised.sum() == n_zeros:
                n_zeros = int(raised.sum())
        return replace(
            self, probs=self.probs[rows], logits=logits, raised=raised, n_zeros=n_zeros
        )


def clean_probs(
    probs: Any,
    *,
    columns: Sequence[Hashable] | None = None,
    normalize: bool = False,
    clip: float | None = None,
    keep_zeros: bool = False,
) -> Simplex:
    """Validate a table of probabilities; see the module's rules.

    With `keep_zeros`, for scores that need no log odds, rule 3 is left out.
    """
    values, names = as_matrix(probs, "probs", columns)
    check_shape(values, "probs")
    clean = np.array(
        values, dtype=np.float64, order="C"
    )  # callers keep theirs; no layout matters
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # infinities are refused by name later
        sums = clean @ np.ones(clean.shape[1])
    error = np.abs(sums - 1.0)
    tolerance = ROW_SUM_TOL if values.dtype.itemsize >= 8 else ROW_SUM_TOL_FLOAT32
    # Two numbers tell that all is well; which rule is broken, and where, is only asked if not.
    # A NaN fails both comparisons.
    if not (values.min() >= 0.0 and error.max() <= tolerance):
        _refuse_invalid_rows(values, sums, tolerance, normalize)
    noteworthy = error > MIN_REPORTED_ROW_ERROR  # the other rows keep their digits
    if noteworthy.any():
        clean /= np.where(noteworthy, sums, 1.0)[:, None]
    if keep_zeros:
        clipped = ClippedProbs(clean, None, int((clean == 0.0).sum()), None)
    else:
        check_clip(clip, clean.shape[1])
        if clip == 0.0:
            _refuse_first_invalid(
                clean == 0.0,
                clean,
                "probs",
                "be positive when {clip:0}",
                "{other_clip}",
            )
        clipped = clip_zeros(clean, clip)
    return Simplex(
        probs=clipped.probs,
        logits=None,
        names=names,
        raised=clipped.raised,
        clip=clipped.clip,
        n_zeros=clipped.n_zeros,
        n_renormalized=int(noteworthy.sum()),
        max_row_error=float(error.max()),
    )


def clean_logits(
    logits: Any, *, columns: Sequence[Hashable] | None = None, keep_single: bool = False
) -> Simplex:
    """Validate logits and return their softmax beside them.

    With `keep_single` very many logits of single precision stay so: twice the memory would hold no
    more digits. All that is computed from them is computed in double precision.
    """
    values, names = as_matrix(logits, "logits", columns)
    check_shape(values, "logits")
    are_many = values.size >= MIN_LOGITS_KEPT_SINGLE
    stays_single = keep_single and are_many and values.dtype == np.float32
    values = np.array(
        values, dtype=np.float32 if stays_single else np.float64, order="C"
    )
    largest = 1e100  # squares of log odds must not overflow; a round number
    smallest_found = float(values.min())
    largest_found = float(values.max())
    if not (
        smallest_found >= -largest and largest_found <= largest
    ):  # so that NaN is no number
        values = values.astype(np.float64)  # 1e100 is infinite in single precision
        rule = f"be finite, at most {largest:g} in size"
        _refuse_first_invalid(np.isnan(values), values, "logits", rule, "{drop_row}")
        _refuse_first_invalid(
            ~(np.abs(values) <= largest), values, "logits", rule, ROW_REMEDY
        )
    # the largest logit of a row becomes 0, so that no exponential overflows
    top = values.max(axis=1, keepdims=True)
    softmax = np.subtract(values, top, dtype=np.float64)
    np.exp(softmax, out=softmax)
    softmax /= softmax.sum(axis=1, keepdims=True)
    return Simplex(
        probs=softmax,
        logits=values,
        names=names,
        raised=None,
        clip=None,
        n_zeros=0,
        n_renormalized=0,
        max_row_error=0.0,
    )


def refuse_flag_as_logits(logits: Any) -> None:
    """Refuse a flag in the place of the table."""
    if isinstance(logits, (bool, np.bool_)):
        raise InputError(
            argument="logits",
            rule="be the table of scores itself, in the place of probs",
            value=bool(logits),
            remedy="Pass y=y, logits=z instead of z, y, logits=True.",
        )


MAX_CLASSES = 20_000
"""Classes of a table. A round number: of so many, 5 rows take a quarter of a minute, and what is
asked of pairs of classes grows with their square."""


def check_n_classes(n_classes: int) -> None:
    """Refuse more classes than are worked on."""
    if n_classes > MAX_CLASSES:
        raise InputError(
            "at most {most:,} classes are worked on; got {n_classes:,}.",
            remedy="Check that the columns are classes, or join those that are rare.",
            values={"most": MAX_CLASSES, "n_classes": n_classes},
        )


def check_shape(values: Array, name: str) -> None:
    """Refuse anything but (n >= 1, c >= 2)."""
    if values.ndim == 1 and len(values) > 0:
        raise InputError(
            argument=name,
            rule="have a column per class",
            found=f"a one-dimensional array of {len(values)}",
            remedy="For two classes pass np.column_stack([1 - p, p]).",
        )
    if values.ndim > 2:
        shape = f"shape {values.shape}"
        raise InputError(
            argument=name, rule="be a table of rows and classes", found=shape
        )
    if len(values) == 0:
        raise InputError(argument=name, rule="have at least one row", found="none")
    check_n_classes(values.shape[1])
    if values.shape[1] < 2:
        rule = "have at least two columns, one for each class"
        raise InputError(argument=name, rule=rule, found=str(values.shape[1]))


def _refuse_invalid_rows(
    values: Array, sums: Floats, tolerance: float, normalize: bool
) -> None:
    """Raise for the first broken rule; return when `normalize` makes the row sums acceptable."""
    with np.errstate(invalid="ignore"):
        _refuse_first_invalid(
            np.isnan(values), values, "probs", "be finite", "{drop_row}"
        )
        _refuse_first_invalid(
            ~np.isfinite(values), values, "probs", "be finite", ROW_REMEDY
        )
        is_low = values < 0.0
        is_high = values > 1.0 + tolerance
        by_rounding = not is_high.any() and values.min() > -tolerance
        wrong = "{round_to_share}" if by_rounding else "{divide_percentages}"
        _refuse_first_invalid(is_low | is_high, values, "probs", "lie in [0, 1]", wrong)
        off = sums <= 0.0 if normalize else np.abs(sums - 1.0) > tolerance
    if off.any():
        row = int(np.argmax(off))
        remedy = "For rounded files pass {normalize:True}."
        if normalize:
            remedy = "Drop that row."
        elif abs(sums[row] - 1.0) > MAX_ROUNDING_ROW_ERROR:
            remedy = "Choose the columns that are classes with {classes}, or pass {normalize:True}."
        raise InputError(
            "each row of {argument} must sum to 1 (tolerance {tolerance:g}); {row} sums to "
            "{total:.6g}.",
            values={"tolerance": tolerance, "total": sums[row]},
            argument="probs",
            rule=SUM_RULE,
            value=float(sums[row]),
            row=row,
            remedy=remedy,
        )


def _refuse_first_invalid(
    bad: Array, values: Array, name: str, rule: str, remedy: str
) -> None:
    """Refuse the first value that breaks a rule, if one does."""
    if bad.any():
        row, column = np.argwhere(bad)[0].tolist()
        value = values[row, column].item()
        raise InputError(
            argument=name, rule=rule, value=value, row=row, column=column, remedy=remedy
        )


def simplex_from_arguments(
    probs: Any,
    logits: Any,
    classes: Sequence[Hashable] | None,
    normalize: bool,
    clip: float | None,
) -> Simplex:
    """Return the rows of probabilities, logits, or both, which must agree."""
    refuse_flag_as_logits(logits)
    if logits is None:
        if probs is None:
            raise InputError(
                argument="probs", rule="be given (or {logits})", found="neither"
            )
        return clean_probs(probs, columns=classes, normalize=normalize, clip=clip)
    if probs is None:
        return clean_logits(logits, columns=classes, keep_single=True)
    given = clean_probs(probs, columns=classes, normalize=normalize, clip=clip)
    scores = clean_logits(logits, columns=given.names if classes is None else classes)
    if given.probs.shape != scores.probs.shape:
        raise InputError(
            f"probs and logits must have the same shape; got {given.probs.shape} "
            f"and {scores.probs.shape}."
        )
    apart = np.abs(given.probs - scores.probs).max(axis=1)
    if apart.max() > 1e-3:
        row = int(np.argmax(apart))
        remedy = "Pass only one of them."
        message = (
            "{argument} must be the softmax of logits (tolerance 0.001); {row} differs by "
            "{apart:.3g}."
        )
        values = {"apart": apart[row]}
        raise InputError(
            message, argument="probs", row=row, remedy=remedy, values=values
        )
    return replace(scores, names=given.names or scores.names)
