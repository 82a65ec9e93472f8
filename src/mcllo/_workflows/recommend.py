"""Which repair? The one of smallest log loss, and how sure its lead is.

==============  ================================================================================
difference      mean of ``g_i``, a row's log loss under a method less that under the best one:
                what the two share cancels
standard error  ``sqrt(sum w_i (g_i - g)^2 / (W - 1) / W)`` with frequency weights of sum W; from
                ``w_i (g_i - g)`` squared for survey weights, summed within groups first for groups
interval        ``g +- t se``, t the quantile ``1 - 0.05 / (2 k)`` for k methods
==============  ================================================================================

The winner is picked after looking at all k methods, which flatters it; hence Bonferroni's k. Then,
with 95 % confidence, (1) all k differences to doing nothing are covered at once, so that of the
picked one is; and (2) the method that is truly best is among those not told from the winner: it is
missed only where one of k others beats it beyond its interval.

"Truly" is about these fitted maps and more rows like the judged ones. The intervals do not know how
maps vary with the rows they are fitted to, nor that folds share rows. With a holdout the choice is
made on the holdout; to keep it for a last word, choose by cross-validation (``cv=``).

Paired differences in log loss: how sure is it that one method beats another on these rows?

Rows are resampled with replacement, the same rows for every method, so that what the methods share
cancels. The interval is the bootstrap's central 95 %.

What a recommendation says: what to do, why, what else would do, what the intervals mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .._ground.results import Floats, none_for_nan
from .._ground.text import format_count
from .._input.predictions import Predictions

N_BOOTSTRAP = 1000
MOST_CELLS = 2e7


def paired_differences(
    sets: Mapping[str, Predictions], seed: int, level: float = 0.95
) -> dict[str, tuple[float, float, float]]:
    """Return, for each method, its log loss less that of the best one, with an interval."""
    losses = np.column_stack([row_losses(predictions) for predictions in sets.values()])
    weight = next(iter(sets.values())).sample_weight
    own = np.ones(len(losses)) if weight is None else weight
    means = own @ losses / own.sum()
    gaps = losses - losses[:, [int(np.argmin(means))]]
    draws = bootstrap_means(gaps, own, seed)
    low, high = np.quantile(draws, [0.5 - level / 2.0, 0.5 + level / 2.0], axis=0)
    centre = means - means.min()
    return {name: (float(centre[j]), float(low[j]), float(high[j])) for j, name in enumerate(sets)}


def row_losses(predictions: Predictions) -> Floats:
    """Return the negative log probability of each row's true class."""
    rows = np.arange(predictions.n_samples)
    losses: Floats = -np.log(predictions.probs[rows, predictions.codes])
    return losses


def bootstrap_means(values: Floats, weight: Floats, seed: int) -> Floats:
    """Return weighted means of resampled rows, shape (n_draws, n_columns)."""
    values, weight = values[weight > 0.0], weight[weight > 0.0]
    n = len(values)
    rng = np.random.default_rng([seed, 2])
    draws = int(max(200, min(N_BOOTSTRAP, MOST_CELLS / n)))
    means = np.empty((draws, values.shape[1]))
    for k in range(draws):
        counts = np.bincount(rng.integers(0, n, size=n), minlength=n) * weight
        means[k] = counts @ values / counts.sum()
    return means


NOTHING = "uncalibrated"
"""The name of leaving the predictions as they are."""


def sentences_of(r: Recommendation) -> tuple[str, ...]:
    """Return the recommendation in sentences."""
    if not r.n_methods:
        return ("No method was compared.",)
    if r.improves:
        head = f"Recommended: {r.method}, which has the lowest log loss."
        return tuple(words for words in (head, _lead(r), _others(r), _meaning(r)) if words)
    none = "No method is shown to be better than leaving the predictions as they are."
    return (none, _lead(r), _meaning(r))


def _lead(r: Recommendation) -> str:
    """Say whose log loss is lowest, and by how much."""
    where = f" on {format_count(r.n_samples)} rows that no map was fitted to"
    loss = "cross-validated log loss" if r.cross_validated else "log loss"
    number = f"{r.log_loss:.4f}{'' if r.cross_validated else where}"
    after = r.runner_up
    if r.gain is None:
        next_one = "" if after is None else f"; {after.method} comes next, {_by(after)} above"
        return f"Their {loss}, {number}, is the lowest{next_one}."
    whose = f"Its {loss}" if r.improves else f"The lowest {loss}, that of {r.method}"
    text = f"{whose}, {number}, is {_by(r.gain)} below doing nothing"
    if after is not None:
        text += f" and {_by(after)} below the next of {r.n_methods} methods, {after.method}"
    return text + "."


def _others(r: Recommendation) -> str:
    """Say what cannot be told from the recommended method, and which of these is simplest."""
    if not r.ties:
        return "All others are worse, beyond chance." if r.n_methods > 1 else ""
    if len(r.ties) == 1:
        simpler = "simpler" if r.simplest == r.ties[0] else "less simple"
        return f"{r.ties[0]} cannot be told from it and is {simpler}."
    own = r.simplest == r.method
    simplest = "it is the simplest of these" if own else f"the simplest is {r.simplest}"
    return f"{listed(r.ties)} cannot be told from it; {simplest}."


def _meaning(r: Recommendation) -> str:
    many = f"hold for all {r.n_methods} methods at once (the best was picked after looking), "
    return (
        f"The intervals are paired, {many if r.n_methods > 1 else ''}with "
        f"{100.0 * r.level:.0f} % confidence; how maps vary with the rows they are fitted to is "
        "not in them."
    )


def _by(other: LossDifference) -> str:
    return f"{_four(other.difference)} ({_four(other.low)} to {_four(other.high)})"


def _four(value: float) -> str:
    return f"{value:.4f}".replace("-0.0000", "0.0000")


def listed(names: Sequence[str]) -> str:
    """Return ``a, b and c``.

    Examples
    --------
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


LEVEL = 0.95
SHOWN = 5e-5
"""Nats: a difference that four decimals do not show is none, however many rows there are."""
SIMPLEST_FIRST = (
    *(NOTHING, "identity", "temperature", "xu_davoine", "mcllo", "vector", "beta"),
    *("histogram", "isotonic", "matrix", "dirichlet", "auto"),
)
"""By how much is fitted: nothing, one number, a few for each class, bins and steps, a full matrix,
and the mean of several of these."""


@dataclass(frozen=True)
class LossDifference:
    """By how much a method's log loss lies above the recommended one's.

    Attributes
    ----------
    method : str
        The other method; ``uncalibrated`` is leaving the predictions as they are.
    difference, standard_error : float
        Paired: mean of the rows' differences, and its standard error.
    low, high : float
        Interval that holds for all methods at once.
    """

    method: str
    difference: float
    standard_error: float
    low: float
    high: float

    @property
    def told(self) -> bool:
        """Whether the method is worse beyond chance, by an amount that four decimals show."""
        return self.low > 0.0 and self.difference > SHOWN


@dataclass(frozen=True)
class Recommendation:
    """The method of smallest log loss, and what can be said about its lead; print it.

    Attributes
    ----------
    method : str
        The method of smallest log loss; ``uncalibrated`` when that is none.
    log_loss : float
        Its log loss on the judged rows.
    differences : tuple of LossDifference
        Of all others to it, the smallest first.
    level : float
        Confidence in all intervals together.
    n_methods, n_samples : int
        Methods compared, rows judged.
    cross_validated : bool
        Whether rows were judged by maps fitted on other folds.
    """

    method: str
    log_loss: float
    differences: tuple[LossDifference, ...]
    level: float
    n_methods: int
    n_samples: int
    cross_validated: bool

    @property
    def ties(self) -> tuple[str, ...]:
        """Methods that cannot be told from the recommended one, by log loss."""
        return tuple(other.method for other in self.differences if not other.told)

    @property
    def simplest(self) -> str:
        """The simplest of the recommended method and those that cannot be told from it."""
        return min((self.method, *self.ties), key=_rank)

    @property
    def runner_up(self) -> LossDifference | None:
        """The next method; None when no other was compared."""
        return next((d for d in self.differences if d.method != NOTHING), None)

    @property
    def gain(self) -> LossDifference | None:
        """The difference to leaving the predictions as they are; None when that is best."""
        return next((d for d in self.differences if d.method == NOTHING), None)

    @property
    def improves(self) -> bool:
        """Whether the method is shown to be better than leaving the predictions as they are."""
        return self.gain is not None and self.gain.told

    @property
    def sentences(self) -> tuple[str, ...]:
        """What to do, why, what else would do, and what the intervals mean."""
        return sentences_of(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for strict JSON."""
        return {
            "method": self.method,
            "log_loss": self.log_loss,
            "improves": self.improves,
            "ties": list(self.ties),
            "simplest": self.simplest,
            "differences": [none_for_nan(asdict(other)) for other in self.differences],
            "level": self.level,
            "n_methods": self.n_methods,
            "n_samples": self.n_samples,
            "cross_validated": self.cross_validated,
            "text": str(self),
        }

    def __str__(self) -> str:
        return " ".join(self.sentences)


def recommend(
    sets: Mapping[str, Predictions], *, cross_validated: bool = False, level: float = LEVEL
) -> Recommendation:
    """Return the method of smallest log loss, with its differences to all others.

    Parameters
    ----------
    sets : mapping of str to Predictions
        The same rows under each method, ``uncalibrated`` among them.
    cross_validated : bool
        What the words say of the rows.
    level : float
        Confidence in all intervals together.

    Examples
    --------
    >>> y = [0, 1] * 50
    >>> flat = Predictions.from_arrays([[0.5, 0.5]] * 100, y)
    >>> good = Predictions.from_arrays([[0.8, 0.2], [0.2, 0.8]] * 50, y)
    >>> found = recommend({"uncalibrated": flat, "temperature": good})
    >>> found.method, found.improves, round(found.gain.difference, 4)
    ('temperature', True, 0.47)
    """
    losses = {name: row_losses(predictions) for name, predictions in sets.items()}
    rows = sets[NOTHING]
    weight = np.ones(rows.n_samples) if rows.sample_weight is None else rows.sample_weight
    means = {name: float(weight @ loss / weight.sum()) for name, loss in losses.items()}
    best = min(means, key=lambda name: means[name])
    k = len(sets) - 1
    tail = (1.0 - level) / (2.0 * max(k, 1))
    others = [
        _difference(name, losses[name] - losses[best], rows, weight, tail)
        for name in sets
        if name != best
    ]
    others.sort(key=lambda other: other.difference)
    return Recommendation(
        best, means[best], tuple(others), level, k, rows.n_samples, cross_validated
    )


def _difference(
    name: str, gaps: Floats, rows: Predictions, weight: Floats, tail: float
) -> LossDifference:
    from scipy.special import stdtrit

    mean = float(weight @ gaps / weight.sum())
    error, units = paired_error(gaps, rows, weight)
    reach = float(stdtrit(units - 1.0, 1.0 - tail)) * error if units > 1.0 else np.inf
    return LossDifference(name, mean, error, mean - reach, mean + reach)


def paired_error(gaps: Floats, rows: Predictions, weight: Floats) -> tuple[float, float]:
    """Return the standard error of the weighted mean of `gaps`, and the units it comes from."""
    total = float(weight.sum())
    parts = gaps - weight @ gaps / total
    if rows.groups is None and rows.weight_kind == "frequency":
        squares, units = float(weight @ parts**2), total
    else:
        which = np.arange(len(gaps)) if rows.groups is None else rows.groups
        sums = np.bincount(which, weights=weight * parts)
        squares, units = float(sums @ sums), float((np.bincount(which, weights=weight) > 0.0).sum())
    if units <= 1.0:
        return float("nan"), units
    return float(np.sqrt(squares * units / (units - 1.0))) / total, units


def _rank(method: str) -> int:
    known = method in SIMPLEST_FIRST
    return SIMPLEST_FIRST.index(method) if known else len(SIMPLEST_FIRST)
