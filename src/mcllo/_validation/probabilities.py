"""Clipping: which small probabilities are raised, to which lower bound, and how it is said.

==============  ==================================================================================
``clip=None``   a row that holds a 0 has its values below 1e-6 raised to 1e-6 and is divided by its
                sum; rows without a 0 keep their digits
``clip=e > 0``  every value below e in every row is raised to e, and such rows divided by their sum
``clip=0``      nothing is raised: a 0 is refused (`_validation/probabilities`)
==============  ==================================================================================

The rule looks at one row at a time, so any partition of the rows gives the same numbers. What a 0
stands for, among votes and rounded numbers, is asked in `_validation/rounding`.

A table of probabilities or logits -> rows on the simplex, with everything changed counted.

Rules, applied in this order and nowhere else:

1. shape (n, c) with n >= 1 and c >= 2; numbers only; no NaN, no infinity; values in [0, 1];
2. rows sum to 1 within 1e-6 (float32 and float16 input: 1e-3; ``normalize=True``: any positive
   sum); rows off by more than 1e-9 are divided by their sum (the others keep their digits: 0.7
   stays on the edge of a bin);
3. zeros are clipped to a bound, `clip`, by the rule of `_validation/probabilities`; ``clip=0``
   refuses them.

The rules look at one row at a time, so any partition of the rows gives the same numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._utils.results import Floats
from .._utils.statements import Statement, warn
from ..exceptions import InputError, ZeroProbabilityWarning
from .frames import as_matrix

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


CLIPPED = (
    "{n_zeros} of {n_entries} probabilities were 0; {n_clipped} were clipped to {bound:g}, "
    "{n_clipped_true} of them of the class that came true. {what} on this bound; choose it with "
    "{clip}."
)


def clipping_counts(found: Any, n_entries: int) -> dict[str, Any]:
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
    counts = clipping_counts(found, n_entries)
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
    counts = clipping_counts(found, n_entries)
    values = {**counts, "bound": found.clip, "what": "What is learned or tested depends"}
    numbers = {**counts, "clip": found.clip}
    warn(ZeroProbabilityWarning(message, detail=CLIPPED, numbers=numbers, values=values))


Array = NDArray[Any]

ROW_SUM_TOL = 1e-6
ROW_SUM_TOL_FLOAT32 = 1e-3
MIN_REPORTED_ROW_ERROR = 1e-9
MAX_ABS_LOGIT = 1e100
"""Squares of log odds must not overflow."""
MIN_LOGITS_KEPT_SINGLE = 2**24
"""Logits of single precision from which they stay so: twice the memory holds no more digits. All
that is computed from them is computed in double precision."""
MAX_ROUNDING_ROW_ERROR = 0.1
"""Row error up to which rounding is the likely cause."""
SUM_RULE = "sum to 1"
ROW_REMEDY = "Drop or correct that row."


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
        raised, n_zeros = None, self.n_zeros
        if self.raised is not None:
            raised = self.raised[rows]
            n_zeros = int(raised.sum()) if self.raised.sum() == n_zeros else n_zeros
        return replace(self, probs=self.probs[rows], logits=logits, raised=raised, n_zeros=n_zeros)


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
    clean = np.array(values, dtype=np.float64, order="C")  # callers keep theirs; no layout matters
    with np.errstate(over="ignore", invalid="ignore"):  # infinities are refused by name later
        sums = clean @ np.ones(clean.shape[1])
    error = np.abs(sums - 1.0)
    tolerance = ROW_SUM_TOL if values.dtype.itemsize >= 8 else ROW_SUM_TOL_FLOAT32
    if not (values.min() >= 0.0 and error.max() <= tolerance):
        _refuse(values, sums, tolerance, normalize)
    noteworthy = error > MIN_REPORTED_ROW_ERROR
    if noteworthy.any():
        clean /= np.where(noteworthy, sums, 1.0)[:, None]
    if keep_zeros:
        raised, n_zeros, used = None, int((clean == 0.0).sum()), None
    else:
        check_clip(clip, clean.shape[1])
        if clip == 0.0:
            _refuse_first(clean == 0.0, clean, "probs", "be positive when {clip:0}", "{other_clip}")
        clean, raised, n_zeros, used = clip_zeros(clean, clip)
    return Simplex(
        clean, None, names, raised, used, n_zeros, int(noteworthy.sum()), float(error.max())
    )


def clean_logits(
    logits: Any, *, columns: Sequence[Hashable] | None = None, keep_single: bool = False
) -> Simplex:
    """Validate logits and return their softmax beside them; see `MIN_LOGITS_KEPT_SINGLE`."""
    values, names = as_matrix(logits, "logits", columns)
    check_shape(values, "logits")
    single = keep_single and values.dtype == np.float32 and values.size >= MIN_LOGITS_KEPT_SINGLE
    values = np.array(values, dtype=np.float32 if single else np.float64, order="C")
    if not (float(values.min()) >= -MAX_ABS_LOGIT and float(values.max()) <= MAX_ABS_LOGIT):
        values = values.astype(np.float64)  # 1e100 is infinite in single precision
        rule = f"be finite, at most {MAX_ABS_LOGIT:g} in size"
        _refuse_first(np.isnan(values), values, "logits", rule, "{drop_row}")
        _refuse_first(~(np.abs(values) <= MAX_ABS_LOGIT), values, "logits", rule, ROW_REMEDY)
    shifted = np.subtract(values, values.max(axis=1, keepdims=True), dtype=np.float64)
    np.exp(shifted, out=shifted)
    shifted /= shifted.sum(axis=1, keepdims=True)
    return Simplex(shifted, values, names, None, None, 0, 0, 0.0)


def check_scores(logits: Any) -> None:
    """Refuse a flag in the place of the table."""
    if isinstance(logits, (bool, np.bool_)):
        raise InputError(
            argument="logits",
            rule="be the table of scores itself, in the place of probs",
            value=bool(logits),
            remedy="Pass y=y, logits=z instead of z, y, logits=True.",
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
        raise InputError(argument=name, rule="be a table of rows and classes", found=shape)
    if len(values) == 0:
        raise InputError(argument=name, rule="have at least one row", found="none")
    if values.shape[1] < 2:
        rule = "have at least two columns, one for each class"
        raise InputError(argument=name, rule=rule, found=str(values.shape[1]))


def _refuse(values: Array, sums: Floats, tolerance: float, normalize: bool) -> None:
    """Raise for the first broken rule; return when `normalize` makes the row sums acceptable."""
    with np.errstate(invalid="ignore"):
        _refuse_first(np.isnan(values), values, "probs", "be finite", "{drop_row}")
        _refuse_first(~np.isfinite(values), values, "probs", "be finite", ROW_REMEDY)
        low, high = values < 0.0, values > 1.0 + tolerance
        tiny = not high.any() and values.min() > -tolerance
        wrong = "{round_to_share}" if tiny else "{divide_percentages}"
        _refuse_first(low | high, values, "probs", "lie in [0, 1]", wrong)
        off = np.abs(sums - 1.0) > tolerance if not normalize else sums <= 0.0
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


def _refuse_first(bad: Array, values: Array, name: str, rule: str, remedy: str) -> None:
    """Refuse the first value that breaks a rule, if one does."""
    if bad.any():
        row, column = (int(k) for k in np.argwhere(bad)[0])
        value = values[row, column].item()
        raise InputError(
            argument=name, rule=rule, value=value, row=row, column=column, remedy=remedy
        )


def given_simplex(
    probs: Any, logits: Any, classes: Sequence[Hashable] | None, normalize: bool, clip: float | None
) -> Simplex:
    """Return the rows of probabilities, logits, or both, which must agree."""
    check_scores(logits)
    if logits is None:
        if probs is None:
            raise InputError(argument="probs", rule="be given (or {logits})", found="neither")
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
        row, remedy = int(np.argmax(apart)), "Pass only one of them."
        message = (
            "{argument} must be the softmax of logits (tolerance 0.001); {row} differs by "
            "{apart:.3g}."
        )
        values = {"apart": apart[row]}
        raise InputError(message, argument="probs", row=row, remedy=remedy, values=values)
    return replace(scores, names=given.names or scores.names)
