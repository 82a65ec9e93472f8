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

from .._model.likelihood import log_odds_from_log_probs
from .._utils.results import Codes, Floats
from .._validation.predictions import Predictions
from .fitted_map import MAX_CLASSES_TO_LEARN, MEMORY_ROWS_PER_CLASS, Filter, Shifts

EXPONENTS: Floats = 2.0 ** (np.arange(-16, 17) / 8.0)
"""Exponents u of the temperature family, 1/4 to 4."""
IDENTITY_TEMPERATURE_PLACE = 16
"""The place of u = 1 among them."""
SHIFTS = (-1.0, -0.5, -0.25, 0.25, 0.5, 1.0)
"""Shifts of one class's log odds."""
SLOPES = (0.7, 1.4)
"""Slopes of one class's log odds."""
PER_CLASS = len(SHIFTS) + len(SLOPES)
MAX_ZERO_SHARE = 0.005
"""Share of labels that a predicted 0 stands for, at most: half of the last of two decimals."""
ZERO_ALTERNATIVE_FACTOR = 4.0
"""The alternative: so many times as often."""
CHUNK_ENTRIES = 200_000
"""Probabilities that are worked on at a time."""
N_BINS = 10
"""Bins of equal width of the probability of the most probable class."""

# The shares of the mixture. Any that sum to 1 keep the alarm's level; these are bets on what goes
# wrong in practice, and a family with a share w is found later by log(1 / w) of evidence.
FAMILY_SHARES = {
    "temperatures": 0.6,
    "classes": 0.18,
    "shifts": 0.07,
    "mcllo": 0.13,
    "zeros": 0.02,
}
"""How the mixture is shared out among the families; of two and three classes, `family_prior`."""
FAMILY_SHARES_OF_TWO = {
    "temperatures": 0.25,
    "classes": 0.68,
    "shifts": 0.02,
    "mcllo": 0.04,
    "zeros": 0.01,
}
"""The families where there are two classes: fixed maps are near to all that MCLLO can learn, and a
class too frequent is the usual mistake."""
TEMPERATURE_PLACES = (-12, -8, -6, -4, -2, -1, 1, 2, 4, 8, 12)
"""Temperatures with a share, by their place beside u = 1."""
TEMPERATURE_SHARES = (2, 5, 10, 20, 20, 25, 7, 5, 3, 2, 1)
"""Per cent of the temperatures' share for each of them: too sure is the usual mistake."""
TEMPERATURE_SHARES_OF_TWO = (1, 4, 10, 22, 22, 10, 6, 8, 12, 4, 1)
"""The same where there are two classes."""
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
        shifts = tuple(Shifts.new(n_classes) for _ in MEMORY_ROWS_PER_CLASS)
        if n_classes > MAX_CLASSES_TO_LEARN:
            return cls(shifts, (), baseline)
        filters = tuple(Filter.new(n_classes) for _ in MEMORY_ROWS_PER_CLASS)
        return cls(shifts, filters, baseline)


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
        sums = {}
        for field in fields(self):
            sums[field.name] = getattr(self, field.name) + getattr(other, field.name)
        return Factors(**sums)

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
        return FAMILY_SHARES_OF_TWO[family]
    share = FAMILY_SHARES[family]
    # What single classes have of two is 0.55 here, and falls with the square of their number.
    more = max(0.0, 0.55 * (2.0 / n_classes) ** 2 - FAMILY_SHARES["classes"])
    if family == "classes":
        return share + more
    if family == "temperatures":
        return share - more
    return share


@cache
def log_weights(n_classes: int) -> Floats:
    """Return the logarithm of each map's share of the mixture."""
    has_two = n_classes == 2
    temperatures = np.zeros(len(EXPONENTS))
    places = IDENTITY_TEMPERATURE_PLACE + np.array(TEMPERATURE_PLACES)
    per_cent = TEMPERATURE_SHARES_OF_TWO if has_two else TEMPERATURE_SHARES
    temperatures[places] = np.array(per_cent) / 100.0
    of_class = np.ones(PER_CLASS)
    if has_two:
        of_class[: len(SHIFTS)] = SHIFT_SHARES_OF_TWO
        of_class[len(SHIFTS) :] = (
            0.0  # the slope of one of two classes is a temperature
        )
    classes = np.tile(of_class / (n_classes * of_class.sum()), n_classes)
    memories = np.array(MEMORY_SHARES)
    shifts_share = family_prior("shifts", n_classes)
    mcllo_share = family_prior("mcllo", n_classes)
    learned = [shifts_share * memories, mcllo_share * memories]
    if n_classes > MAX_CLASSES_TO_LEARN:
        learned = [(shifts_share + mcllo_share) * memories]
    shares = np.concatenate(
        [
            family_prior("temperatures", n_classes) * temperatures,
            family_prior("classes", n_classes) * classes,
            *learned,
            [family_prior("zeros", n_classes)],
        ]
    )
    with np.errstate(divide="ignore"):
        return np.log(shares)


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
    order, unit_starts = _units(predictions.groups, predictions.n_samples)
    for low, high in pairwise(_chunk_bounds(predictions, unit_starts)):
        rows = slice(low, high) if order is None else order[low:high]
        is_inside = (unit_starts >= low) & (unit_starts < high)
        first = unit_starts[is_inside] - low
        size = np.diff(np.append(first, high - low)).astype(np.float64)
        yield _chunk(predictions, rows, first, size)


def _chunk_bounds(predictions: Predictions, unit_starts: Codes) -> list[int]:
    """Return where pieces of about `CHUNK_ENTRIES` begin and end, with whole groups in each."""
    n_rows, n_classes = predictions.probs.shape
    step = max(1, CHUNK_ENTRIES // n_classes)
    nearest = np.searchsorted(unit_starts, np.arange(step, n_rows, step))
    inner = unit_starts[nearest[nearest < len(unit_starts)]]
    bounds: list[int] = np.unique(np.concatenate([[0], inner, [n_rows]])).tolist()
    return bounds


def _chunk(
    predictions: Predictions, rows: slice | Codes, first: Codes, size: Floats
) -> Chunk:
    """Return some rows as a `Chunk`."""
    codes = predictions.codes[rows]
    zero = None
    if predictions.logits is None:
        probs = predictions.probs[rows]
        with np.errstate(divide="ignore"):
            logs = np.log(probs)
        if predictions.raised is not None:
            zero = predictions.raised[rows]
    else:
        logs = predictions.logits[rows].astype(np.float64)
        logs -= logs.max(axis=1, keepdims=True)
        logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
        probs = np.exp(logs)
    at = np.arange(len(codes))
    own = logs[at, codes]
    counts_not = np.zeros(len(codes), dtype=bool)
    if zero is not None:
        # Given that the label is no class that was predicted as 0, the others sum to 1.
        counts_not = zero[at, codes]
        positive = np.where(zero, 0.0, probs)
        total = positive.sum(axis=1)
        probs = positive / total[:, None]
        own = own - np.log(total)
    is_alone = predictions.groups is None
    return Chunk(logs, probs, codes, own, counts_not, zero, first, size, is_alone)


def _units(groups: Codes | None, n: int) -> tuple[Codes | None, Codes]:
    """Return the rows in the order of their groups, and where each group begins."""
    if groups is None:
        return None, np.arange(n)
    order = np.argsort(groups, kind="stable")
    sorted_groups = groups[order]
    begins = np.append(True, sorted_groups[1:] != sorted_groups[:-1])
    return order, np.flatnonzero(begins)


def batch_e_values(
    predictions: Predictions, past: History, witness: int | None = None
) -> Factors:
    """Return the factors of a batch under maps that were fixed before it.

    `witness` is the map, chosen before the batch, whose raised classes are counted.
    """
    if witness is None:
        witness = int(np.argmax(log_weights(predictions.n_classes)))
    first, *others = (_of_chunk(chunk, past, witness) for chunk in chunks(predictions))
    return sum(others, start=first)


def _of_chunk(chunk: Chunk, past: History, witness: int) -> Factors:
    """Return the factors and sums of some rows."""
    at = np.arange(len(chunk.codes))
    temperatures, likelihood, moved = _temperatures(chunk)
    learned, log_probs = _log_factors_of_learned_maps(chunk, past)
    hits = np.zeros(chunk.probs.shape)
    hits[at, chunk.codes] = 1.0
    errors = hits - chunk.probs
    away = chunk.means(errors)
    raised = is_raised(chunk, log_probs, witness)
    seen = chunk.means(np.where(raised, errors, 0.0).sum(axis=1))
    lost = chunk.own[~chunk.counts_not]
    return Factors(
        n_rows=len(chunk.codes),
        n_units=len(chunk.size),
        n_zero_labels=int(chunk.counts_not.sum()),
        temperatures=temperatures,
        classes=_classes(chunk),
        learned=learned,
        zeros=_zeros(chunk),
        likelihood=likelihood,
        moved=moved,
        counts=hits.sum(axis=0),
        predicted=chunk.probs.sum(axis=0),
        shares=np.stack([away.sum(axis=0), (away * away).sum(axis=0)]),
        witness=np.array([seen.sum(), (seen * seen).sum()]),
        bins=_bins(chunk),
        loss=float(-lost.sum()),
    )


def _bins(chunk: Chunk) -> Floats:
    """Return rows, sum of the top probability and right answers, by bin of that probability."""
    top = chunk.probs.argmax(axis=1)
    sure = chunk.probs[np.arange(len(top)), top]
    is_right = (top == chunk.codes).astype(np.float64)
    place = np.minimum((sure * N_BINS).astype(np.intp), N_BINS - 1)
    n_rows = np.bincount(place, minlength=N_BINS).astype(np.float64)
    total = np.bincount(place, sure, N_BINS)
    right = np.bincount(place, is_right, N_BINS)
    return np.stack([n_rows, total, right])


def _temperatures(chunk: Chunk) -> tuple[Floats, Floats, Floats]:
    """Return log factors, weighted log likelihoods and mean changes of every exponent."""
    z = chunk.logs - chunk.logs.max(axis=1, keepdims=True)
    if chunk.zero is not None:
        z[chunk.zero] = -np.inf  # what a 0 hides takes no part
    own = z[np.arange(len(z)), chunk.codes]
    log_g = np.empty((len(z), len(EXPONENTS)))
    moved = np.empty(len(EXPONENTS))
    powers = np.empty_like(z)
    for k, u in enumerate(EXPONENTS):
        np.multiply(z, u, out=powers)
        np.exp(powers, out=powers)
        total = powers.sum(axis=1)
        log_g[:, k] = u * own - np.log(total)
        powers /= total[:, None]
        powers -= chunk.probs
        np.abs(powers, out=powers)
        distance = chunk.means(powers.sum(axis=1))
        moved[k] = 0.5 * float(distance.sum())
    log_g[chunk.counts_not] = 0.0  # their own 0 has no logarithm
    likelihood = chunk.means(log_g).sum(axis=0)
    log_g -= chunk.own[:, None]
    return chunk.units(log_g), likelihood, moved


def _classes(chunk: Chunk) -> Floats:
    """Return the log factors (c, PER_CLASS) of maps that change one class."""
    x = chunk.probs
    n_rows, n_classes = x.shape
    at = np.arange(n_rows)
    label = (at, chunk.codes)
    log_factors = np.empty((n_classes, PER_CLASS))
    for k, s in enumerate(SHIFTS):
        log_factor = -np.log1p(x * np.expm1(s))
        log_factor[label] += s
        log_factors[:, k] = chunk.units(log_factor)
    top = x.argmax(axis=1)
    others = x.copy()
    others[at, top] = 0.0
    rest = 1.0 - x
    rest[at, top] = others.sum(axis=1)  # 1 - x would lose the digits of an x near 1
    with np.errstate(divide="ignore", invalid="ignore"):
        log_x = np.log(x)
        log_rest = np.log(rest)
        odds = log_x - log_rest
        for k, u in enumerate(SLOPES, start=len(SHIFTS)):
            log_factor = -np.logaddexp(0.0, u * odds) - log_rest
            of_label = -np.logaddexp(0.0, -u * odds) - log_x
            log_factor[label] = of_label[label]
            # exp(-745) is the smallest number above 0: a factor of 0 would end all evidence
            log_factor = np.nan_to_num(log_factor, nan=0.0, neginf=-745.0)
            log_factors[:, k] = chunk.units(log_factor)
    return log_factors


def _log_factors_of_learned_maps(
    chunk: Chunk, past: History
) -> tuple[Floats, list[Floats]]:
    """Return the log factors of learned maps, and their log probabilities."""
    log_probs = [chunk.logs + shifts.tau for shifts in past.shifts]
    if past.filters:
        log_odds = log_odds_from_log_probs(np.array(chunk.logs.T), past.baseline)
        n_compared = len(log_odds)
        is_compared = np.arange(n_compared + 1) != past.baseline
        for known in past.filters:
            tau = known.mean[:n_compared, None]
            gamma = known.mean[n_compared:, None]
            eta = np.zeros((len(chunk.codes), n_compared + 1))
            eta[:, is_compared] = (tau + gamma * log_odds).T
            log_probs.append(eta)
    for eta in log_probs:
        eta -= _log_sum(eta)
    at = np.arange(len(chunk.codes))
    of_label = np.stack([eta[at, chunk.codes] for eta in log_probs], axis=1)
    return chunk.units(of_label - chunk.own[:, None]), log_probs


def is_raised(chunk: Chunk, learned: list[Floats], witness: int) -> NDArray[np.bool_]:
    """Return which classes of each row a map raises; the places of maps are those of `maps`."""
    n_classes = chunk.probs.shape[1]
    if witness < len(EXPONENTS):
        eta = EXPONENTS[witness] * chunk.logs
        return eta - _log_sum(eta) > chunk.logs
    label, map_of_class = divmod(witness - len(EXPONENTS), PER_CLASS)
    if label < n_classes:
        x = chunk.probs[:, [label]]
        if map_of_class < len(SHIFTS):
            goes_up = np.full(x.shape, SHIFTS[map_of_class] > 0.0)
        else:
            is_flatter = SLOPES[map_of_class - len(SHIFTS)] < 1.0
            goes_up = (x < 0.5) == is_flatter
        is_label = np.arange(n_classes) == label
        return (
            is_label == goes_up
        )  # where the class goes up the others go down, and vice versa
    place = witness - len(EXPONENTS) - PER_CLASS * n_classes
    if place < len(learned):
        return learned[place] > chunk.logs
    return np.zeros(chunk.probs.shape, dtype=bool) if chunk.zero is None else chunk.zero


def _log_sum(eta: Floats) -> Floats:
    top = eta.max(axis=1, keepdims=True)
    return top + np.log(np.exp(eta - top).sum(axis=1, keepdims=True))


def _zeros(chunk: Chunk) -> float:
    """Return the log factor of labels among classes predicted as 0."""
    if chunk.zero is None or not chunk.zero.any():
        return 0.0
    n_zeros = chunk.zero.sum(axis=1)
    has_zeros = n_zeros > 0
    expected = np.minimum(
        MAX_ZERO_SHARE * n_zeros, 0.5
    )  # chance of a label among them, at most
    alternative = np.minimum(ZERO_ALTERNATIVE_FACTOR * expected, 0.5 * (1.0 + expected))
    hit = np.zeros_like(expected)
    np.log(alternative / np.where(has_zeros, expected, 1.0), where=has_zeros, out=hit)
    miss = np.log1p(-alternative) - np.log1p(-expected)
    log_factor = np.where(chunk.counts_not, hit, miss)
    log_factor[~has_zeros] = 0.0
    if chunk.alone:
        return float(log_factor.sum())
    means = np.logaddexp.reduceat(log_factor, chunk.first) - np.log(chunk.size)
    return float(means.sum())


def update_history(predictions: Predictions, past: History) -> History:
    """Return what is known once the labels of a batch were seen."""
    counts = np.bincount(predictions.codes, minlength=predictions.n_classes).astype(
        np.float64
    )
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
