"""Factors of a batch: how much better each of many maps foretold its labels than the predictions.

For any probabilities g(x) that are chosen before the label is seen, a calibrated prediction x has
``E[g(x)[y] / x[y]] = sum_j x_j g_j / x_j = 1``: the factor of a row is an e-value, and so is the
product over rows. All is in logarithms; a map's column is its log factor of the whole batch.

============  ======================================================================================
temperatures  ``g_j ~ x_j^u`` for the `EXPONENTS` u
classes       one class j alone, the others in proportion: odds of j times ``exp(s)`` for the
              `SHIFTS`, and to the power u for the `SLOPES`. Their factors ask nothing of the other
              classes: e-values of class j by itself
learned       shifts and MCLLO (`_monitor/fitted_map`), each with a short and a long memory
zeros         whether labels fall among classes predicted as 0 more often than `MAX_ZERO_SHARE` a
              class
============  ======================================================================================

**A predicted 0** is read as "less than can be written", not as "never": a row whose label was
predicted as 0 counts 1 in every map but the last, and the others are judged given that their label
is none of these classes, which needs no number for the 0. Where a floor was given (``clip``), a 0
is that floor.

**Groups.** Rows of a group may depend on each other: a group's factor is the mean of its rows'
factors, again an e-value; where a sum of logarithms is needed (temperatures that are compared with
each other) it is the geometric mean, which is smaller.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .._model.likelihood import log_odds_from_logs
from .._utils.results import Codes, Floats
from .._validation.predictions import Predictions
from .fitted_map import MAX_CLASSES_TO_LEARN, MEMORY_ROWS_PER_CLASS, Filter, Shifts

EXPONENTS: Floats = 2.0 ** (np.arange(-16, 17) / 8.0)
"""Exponents u of the temperature family, 1/4 to 4."""
IDENTITY_TEMPERATURE_PLACE = 16
"""The place of u = 1 among them."""
SHIFTS = (-1.0, -0.5, -0.25, 0.25, 0.5, 1.0)
SLOPES = (0.7, 1.4)
MAX_ZERO_SHARE = 0.005
"""Share of labels that a predicted 0 stands for, at most: half of the last of two decimals."""
ZERO_ALTERNATIVE_FACTOR = 4.0
"""The alternative: so many times as often."""
CHUNK_ENTRIES = 200_000
"""Probabilities that are worked on at a time."""
N_BINS = 10
"""Bins of equal width of the probability of the most probable class."""
PER_CLASS = len(SHIFTS) + len(SLOPES)
TEMPERATURE_SHARES = {-12: 2, -8: 5, -6: 10, -4: 20, -2: 20, -1: 25} | {
    1: 7,
    2: 5,
    4: 3,
    8: 2,
    12: 1,
}
"""Per cent of the temperatures' share by place beside u = 1: too sure is the usual mistake."""
FAMILY_SHARES = {"temperatures": 0.6, "classes": 0.18, "shifts": 0.07, "mcllo": 0.13, "zeros": 0.02}
"""How the mixture is shared out among the families; of two and three classes, `family_prior`."""
MAX_SINGLE_CLASSES_SHARE = 0.55
"""Share of single classes at two, from which on it falls with the square of their number."""
OF_TWO = {"temperatures": 0.25, "classes": 0.68, "shifts": 0.02, "mcllo": 0.04, "zeros": 0.01}
"""The families where there are two classes: fixed maps are near to all that MCLLO can learn, and a
class too frequent is the usual mistake."""
TEMPERATURE_SHARES_OF_TWO = dict(
    zip(TEMPERATURE_SHARES, (1, 4, 10, 22, 22, 10, 6, 8, 12, 4, 1), strict=True)
)
SHIFT_SHARES_OF_TWO = (1, 4, 4, 4, 4, 1)
"""How the `SHIFTS` share what single classes have: a large one shows at once anyway."""
MEMORY_SHARES = (0.35, 0.65)
"""Of a learner with the short memory and with the long one."""


@dataclass(frozen=True, eq=False)
class History:
    """What was learned before a batch: a learner of each kind for each memory."""

    shifts: tuple[Shifts, ...]
    filters: tuple[Filter, ...]
    baseline: int

    @classmethod
    def new(cls, n_classes: int, baseline: int) -> History:
        """Return what is known before the first batch."""
        few = n_classes <= MAX_CLASSES_TO_LEARN
        filters = tuple(Filter.new(n_classes) for _ in MEMORY_ROWS_PER_CLASS) if few else ()
        return cls(tuple(Shifts.new(n_classes) for _ in MEMORY_ROWS_PER_CLASS), filters, baseline)


@dataclass(frozen=True, eq=False)
class Factors:
    """The batch in numbers; sums over rows, or over groups where there are groups.

    `temperatures`, `classes` (c, PER_CLASS), `learned` and `zeros` are log factors. `likelihood`
    is the log likelihood of every exponent, `moved` how much it changes a row. `shares` are (sum
    of ``1[y = j] - x_j``, of its squares), `witness` the same of the classes that the witness
    raises. `bins` are rows, sum of the top probability, right answers by bin.
    """

    n_rows: int
    n_units: int
    n_zero_labels: int
    temperatures: Floats
    classes: Floats
    learned: Floats
    zeros: float
    likelihood: Floats
    moved: Floats
    counts: Floats
    predicted: Floats
    shares: Floats
    witness: Floats
    bins: Floats
    loss: float

    def __add__(self, other: Factors) -> Factors:
        names = [field.name for field in fields(self)]
        return Factors(*(getattr(self, name) + getattr(other, name) for name in names))

    def maps(self) -> Floats:
        """Return the log factors of all maps, in the order of `log_weights`."""
        parts = (self.temperatures, self.classes.ravel(), self.learned, [self.zeros])
        return np.concatenate([np.asarray(part) for part in parts])


def family_prior(family: str, n_classes: int) -> float:
    """Return a family's share; what single classes have beyond the usual is the temperatures'.

    >>> [round(family_prior("classes", c), 3) for c in (2, 3, 4, 100)]
    [0.68, 0.244, 0.18, 0.18]
    """
    if n_classes == 2:
        return OF_TWO[family]
    usual = FAMILY_SHARES["classes"]
    more = max(0.0, MAX_SINGLE_CLASSES_SHARE * (2.0 / n_classes) ** 2 - usual)
    return FAMILY_SHARES[family] + more * ((family == "classes") - (family == "temperatures"))


@cache
def log_weights(n_classes: int) -> Floats:
    """Return the logarithm of each map's share of the mixture."""
    temperatures = np.zeros(len(EXPONENTS))
    by_place = TEMPERATURE_SHARES_OF_TWO if n_classes == 2 else TEMPERATURE_SHARES
    for place, per_cent in by_place.items():
        temperatures[IDENTITY_TEMPERATURE_PLACE + place] = per_cent / 100.0
    memories = np.array(MEMORY_SHARES)
    own = np.ones(PER_CLASS)
    if n_classes == 2:
        own[:] = *SHIFT_SHARES_OF_TWO, *(0.0 for _ in SLOPES)  # their slope is a temperature
    own = np.tile(own / (n_classes * own.sum()), n_classes)
    has_mcllo = n_classes <= MAX_CLASSES_TO_LEARN
    mcllo = family_prior("mcllo", n_classes)
    parts = [
        family_prior("temperatures", n_classes) * temperatures,
        family_prior("classes", n_classes) * own,
        (family_prior("shifts", n_classes) + (0.0 if has_mcllo else mcllo)) * memories,
        mcllo * memories if has_mcllo else [],
        [family_prior("zeros", n_classes)],
    ]
    with np.errstate(divide="ignore"):
        return np.log(np.concatenate(parts))


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows, whole groups of them; `first` is where each unit begins, `size` its rows.

    `logs` are those of all classes; `probs` is 0 where a 0 was predicted; `own` the logarithm of
    the label's probability, `zero` where a 0 was predicted (None: nowhere), and `counts_not` marks
    rows whose label was.
    """

    logs: Floats
    probs: Floats
    codes: Codes
    own: Floats
    counts_not: NDArray[np.bool_]
    zero: NDArray[np.bool_] | None
    first: Codes
    size: Floats
    alone: bool

    def units(self, log_factors: Floats) -> Floats:
        """Return the sum over units of the log of the mean factor; (n, m) -> (m,)."""
        log_factors[self.counts_not] = 0.0
        if self.alone:
            return log_factors.sum(axis=0)
        means = np.logaddexp.reduceat(log_factors, self.first, axis=0)
        means -= np.log(self.size).reshape(-1, *[1] * (log_factors.ndim - 1))
        return means.sum(axis=0)

    def means(self, values: Floats) -> Floats:
        """Return the mean of each unit's rows."""
        if self.alone:
            return values
        sums = np.add.reduceat(values, self.first, axis=0)
        return sums / self.size.reshape(-1, *[1] * (values.ndim - 1))


def chunks(predictions: Predictions) -> Iterator[Chunk]:
    """Yield the rows in pieces; a floor that the user gave is a probability like any other."""
    n, c = predictions.probs.shape
    order, starts = _units(predictions.groups, n)
    zeros = None if predictions.logits is not None else predictions.raised
    step = max(1, CHUNK_ENTRIES // c)
    near = np.searchsorted(starts, np.arange(step, n, step))
    bounds = np.unique(np.concatenate([[0], starts[near[near < len(starts)]], [n]]))
    for low, high in pairwise(bounds.tolist()):
        rows = slice(low, high) if order is None else order[low:high]
        probs, codes = predictions.probs[rows], predictions.codes[rows]
        if predictions.logits is None:
            with np.errstate(divide="ignore"):
                logs = np.log(probs)
        else:
            logs = predictions.logits[rows].astype(np.float64)
            logs -= logs.max(axis=1, keepdims=True)
            logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
            probs = np.exp(logs)
        at = np.arange(len(codes))
        own, out = logs[at, codes], np.zeros(len(codes), dtype=bool)
        zero = None if zeros is None else zeros[rows]
        if zero is not None:
            out = zero[at, codes]
            left = np.where(zero, 0.0, probs)
            kept = left.sum(axis=1)
            probs, own = left / kept[:, None], own - np.log(kept)
        inside = starts[(starts >= low) & (starts < high)] - low
        size = np.diff(np.append(inside, high - low)).astype(np.float64)
        yield Chunk(logs, probs, codes, own, out, zero, inside, size, order is None)


def _units(groups: Codes | None, n: int) -> tuple[Codes | None, Codes]:
    """Return the rows in the order of their groups, and where each group begins."""
    if groups is None:
        return None, np.arange(n)
    order = np.argsort(groups, kind="stable")
    sorted_groups = groups[order]
    return order, np.flatnonzero(np.append(True, sorted_groups[1:] != sorted_groups[:-1]))


def batch_e_values(predictions: Predictions, past: History, witness: int | None = None) -> Factors:
    """Return the factors of a batch under maps that were fixed before it.

    `witness` is the map, chosen before the batch, whose raised classes are counted.
    """
    if witness is None:
        witness = int(np.argmax(log_weights(predictions.n_classes)))
    first, *others = (_of_chunk(chunk, past, witness) for chunk in chunks(predictions))
    return sum(others, start=first)


def _of_chunk(chunk: Chunk, past: History, witness: int) -> Factors:
    (n, c), at = chunk.probs.shape, np.arange(len(chunk.codes))
    temperatures, likelihood, moved = _temperatures(chunk)
    learned, maps = _log_factors_of_learned_maps(chunk, past)
    hits = np.zeros((n, c))
    hits[at, chunk.codes] = 1.0
    away = chunk.means(hits - chunk.probs)
    right = np.where(is_raised(chunk, maps, witness), hits - chunk.probs, 0.0).sum(axis=1)
    seen = chunk.means(right)
    top = chunk.probs.argmax(axis=1)
    sure = chunk.probs[at, top]
    place = np.minimum((sure * N_BINS).astype(np.intp), N_BINS - 1)
    bins = [np.bincount(place, w, N_BINS) for w in (None, sure, (top == chunk.codes).astype(float))]
    lost = chunk.own[~chunk.counts_not]
    return Factors(
        n,
        len(chunk.size),
        int(chunk.counts_not.sum()),
        temperatures,
        _classes(chunk),
        learned,
        _zeros(chunk),
        likelihood,
        moved,
        hits.sum(axis=0),
        chunk.probs.sum(axis=0),
        np.stack([away.sum(axis=0), (away * away).sum(axis=0)]),
        np.array([seen.sum(), (seen * seen).sum()]),
        np.stack([np.asarray(b, dtype=np.float64) for b in bins]),
        float(-lost.sum()),
    )


def _temperatures(chunk: Chunk) -> tuple[Floats, Floats, Floats]:
    """Return log factors, weighted log likelihoods and mean changes of every exponent."""
    z = chunk.logs - chunk.logs.max(axis=1, keepdims=True)
    if chunk.zero is not None:
        z[chunk.zero] = -np.inf  # what a 0 hides takes no part
    own = z[np.arange(len(z)), chunk.codes]
    log_g, moved = np.empty((len(z), len(EXPONENTS))), np.empty(len(EXPONENTS))
    powers = np.empty_like(z)
    for k, u in enumerate(EXPONENTS):
        np.multiply(z, u, out=powers)
        np.exp(powers, out=powers)
        total = powers.sum(axis=1)
        log_g[:, k] = u * own - np.log(total)
        powers /= total[:, None]
        powers -= chunk.probs
        np.abs(powers, out=powers)
        moved[k] = 0.5 * float(chunk.means(powers.sum(axis=1)).sum())
    log_g[chunk.counts_not] = 0.0  # their own 0 has no logarithm
    likelihood = chunk.means(log_g).sum(axis=0)
    log_g -= chunk.own[:, None]
    return chunk.units(log_g), likelihood, moved


def _classes(chunk: Chunk) -> Floats:
    """Return the log factors (c, PER_CLASS) of maps that change one class."""
    n, c = chunk.probs.shape
    x, at = chunk.probs, np.arange(n)
    top = x.argmax(axis=1)
    others = x.copy()
    others[at, top] = 0.0
    rest = 1.0 - x
    rest[at, top] = others.sum(axis=1)  # exact where x is near 1
    found = np.empty((c, PER_CLASS))
    mine = (at, chunk.codes)
    for k, s in enumerate(SHIFTS):
        factor = -np.log1p(x * np.expm1(s))
        factor[mine] += s
        found[:, k] = chunk.units(factor)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_x, log_rest = np.log(x), np.log(rest)
        odds = log_x - log_rest
        for k, u in enumerate(SLOPES):
            factor = -np.logaddexp(0.0, u * odds) - log_rest
            factor[mine] = (-np.logaddexp(0.0, -u * odds) - log_x)[mine]
            found[:, len(SHIFTS) + k] = chunk.units(np.nan_to_num(factor, nan=0.0, neginf=-745.0))
    return found


def _log_factors_of_learned_maps(chunk: Chunk, past: History) -> tuple[Floats, list[Floats]]:
    """Return the log factors of learned maps, and their log probabilities."""
    at, maps = np.arange(len(chunk.codes)), [chunk.logs + shift.tau for shift in past.shifts]
    if past.filters:
        odds = log_odds_from_logs(np.array(chunk.logs.T), past.baseline)
        k = len(odds)
        for known in past.filters:
            eta = np.zeros((len(at), k + 1))
            moved = known.mean[:k, None] + known.mean[k:, None] * odds
            eta[:, np.arange(k + 1) != past.baseline] = moved.T
            maps.append(eta)
    for eta in maps:
        eta -= _log_sum(eta)
    columns = [eta[at, chunk.codes] for eta in maps]
    return chunk.units(np.stack(columns, axis=1) - chunk.own[:, None]), maps


def is_raised(chunk: Chunk, learned: list[Floats], witness: int) -> NDArray[np.bool_]:
    """Return which classes of each row a map raises; the places of maps are those of `maps`."""
    n, c = chunk.probs.shape
    if witness < len(EXPONENTS):
        eta = EXPONENTS[witness] * chunk.logs
        return eta - _log_sum(eta) > chunk.logs
    j, k = divmod(witness - len(EXPONENTS), PER_CLASS)
    if j < c:
        own = np.zeros((n, c), dtype=bool)
        own[:, j] = True
        x = chunk.probs[:, [j]]
        up = np.array([[SHIFTS[k] > 0.0]]) if k < len(SHIFTS) else None
        if up is None:
            up = (x < 0.5) == (SLOPES[k - len(SHIFTS)] < 1.0)
        return own == up
    place = witness - len(EXPONENTS) - PER_CLASS * c
    if place < len(learned):
        return learned[place] > chunk.logs
    return np.zeros((n, c), dtype=bool) if chunk.zero is None else chunk.zero


def _log_sum(eta: Floats) -> Floats:
    top = eta.max(axis=1, keepdims=True)
    return top + np.log(np.exp(eta - top).sum(axis=1, keepdims=True))


def _zeros(chunk: Chunk) -> float:
    """Return the log factor of labels among classes predicted as 0."""
    if chunk.zero is None or not chunk.zero.any():
        return 0.0
    number = chunk.zero.sum(axis=1)
    most = np.minimum(MAX_ZERO_SHARE * number, 0.5)
    other = np.minimum(ZERO_ALTERNATIVE_FACTOR * most, 0.5 * (1.0 + most))
    hit = np.log(other / np.where(most > 0.0, most, 1.0), where=most > 0.0, out=np.zeros_like(most))
    miss = np.log1p(-other) - np.log1p(-most)
    factor = np.where(number == 0, 0.0, np.where(chunk.counts_not, hit, miss))
    if chunk.alone:
        return float(factor.sum())
    means = np.logaddexp.reduceat(factor, chunk.first) - np.log(chunk.size)
    return float(means.sum())


def update_history(predictions: Predictions, past: History) -> History:
    """Return what is known once the labels of a batch were seen."""
    counts = np.bincount(predictions.codes, minlength=predictions.n_classes).astype(np.float64)
    predicted = predictions.probs.sum(axis=0)
    shifts = tuple(
        shift.after(counts, predicted, memory)
        for shift, memory in zip(past.shifts, MEMORY_ROWS_PER_CLASS, strict=True)
    )
    if not past.filters:
        return History(shifts, (), past.baseline)
    rows = predictions.with_baseline(predictions.classes[past.baseline])
    weight = None
    if predictions.groups is not None:
        weight = 1.0 / np.bincount(predictions.groups)[predictions.groups]
    filters = tuple(
        known.after(rows.log_odds, rows.model_codes, memory, weight)
        for known, memory in zip(past.filters, MEMORY_ROWS_PER_CLASS, strict=True)
    )
    return History(shifts, filters, past.baseline)
