"""Are the classes outside a set S calibrated among themselves? Tests that leave classes out.

If predictions are calibrated, they stay so given that the label is not in S, with the other columns
divided by their sum: ``P(y = j | y not in S, x) = q_j = x_j / sum_{l not in S} x_l``. So H_S, "the
classes outside S are calibrated among themselves", is tested on the rows whose label is not in S,
and says nothing of the classes in S. No baseline is needed:

==============  ==============================================================================
feature         ``f_j = log(q_j / (1 - q_j))``, each class's log odds against all others left
score           ``U_j = sum_i (1[y_i = j] - q_ij) (1, f_ij)``: its shift and its slope
variance        ``V_j = sum_i q_ij (1 - q_ij) (1, f_ij)' (1, f_ij)``, known under H_S
statistic       ``max_j U_j' V_j^-1 U_j``: the class that is most off
p, chi-square   ``m exp(-statistic / 2)``, m the number of classes left (Bonferroni; 1 for two)
p, exact        labels drawn from q (`_inference/monte_carlo`), up to the decision at level alpha
==============  ==============================================================================

Beside one slope u of all classes (`slope`), H_S is that the classes outside S follow ``q_j``
proportional to ``x_j^u``, u fitted to their rows. That u is estimated makes scores a little smaller
than chi-square's and drawn ones: the test rejects a little less than its level.

The largest class's score rather than the sum of all: what is looked for is few classes, and so a
test costs ``n c`` and not ``n c^2``. Measured (1000 calibrated data sets each), chi-square at 5 %
rejects 4.6 to 5.8 % where each class has a variance ``sum_i q_ij (1 - q_ij)`` of at least 20 and of
twice the number of classes, up to 10 % below; there labels are drawn.

`smallest_sets` searches the sets whose leaving out makes the others agree with the labels. They
grow by the classes that are most off once the others are left out; an accepted set is compared with
all that differ from it in one class. What the sets mean is in `_diagnostics/attribution`.

`MiscalibratedClass`: how a class that was named is wrong, free of any baseline.

==========  ====================================================================================
odds        of the class against all classes that are not named, on the rows that have one of
            these: ``logit q_k -> tau + gamma logit q_k``, a fit of two classes
slope       overconfident where the interval of gamma is below 1, underconfident where it is above
share       the mean prediction, and how often the class came true, with Wilson's interval
example     of a few round probabilities that occur, the one that these odds move most
change      mean |change| of its probability by these odds: classes are ordered by it
==========  ====================================================================================

The classes that are not named are right among themselves, as far as the rows tell, so that the odds
against them are the class's own fault. Intervals have the level they are asked for:
`ClassAttribution` asks for one that makes shares and slopes hold for all named classes together
(Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._fit.fit import MCLLOFit, fit_predictions
from .._inference.budget import ATTRIBUTION_WORK, BATCH_ENTRIES, N_RESAMPLES_ATTRIBUTION
from .._inference.monte_carlo import draw_labels, label_sums, monte_carlo_p
from .._inference.results import TestResult
from .._model.temperature import inverse_temperature
from .._utils.formatting import ellipsis
from .._utils.results import Codes, Floats, Result
from .._utils.statements import Statement, suppress_warnings
from .._validation.predictions import Predictions
from ..metrics._reliability import wilson

MAX_EXPANDED_ROWS = 10_000_000
"""Rows up to which those that count several times are written out, and labels can be drawn."""
TINY = 1e-300
CHUNK_ENTRIES = 50_000
"""Probabilities that are worked on at once, so that they stay in cache."""
MIN_OTHER_CLASSES_SHARE = 1e-15
"""Least part of a row that the other classes are taken to have."""
MIN_CLASS_VARIANCE = 20.0  # from which chi-square is trusted
MIN_VARIANCE_PER_CLASS = 2.0  # the same for each class that is kept
# of a class, from which a very small chi-square p-value needs no draws
MIN_VARIANCE_WITHOUT_DRAWS = 5.0
MAX_PVALUE_WITHOUT_DRAWS = 1e-6  # how small
WORK_PER_LABEL = 5.0  # work of a label that is drawn
N_DRAWS_OF_COSTLY_SET = 99  # where more would cost too much
TIE_TOL = 1e-9
"""Relative difference of statistics that counts as none."""
MIN_RELATIVE_DETERMINANT = 1e-10
"""Determinant of V, relative to its diagonal, below which a slope cannot be told from a shift."""
MAX_BRANCHES = 3
"""Classes by which a set grows at most, the most off first."""
ENOUGH_LEVEL_FACTOR = 0.5
"""Times alpha: level at which the named classes must not be enough for others to be accused."""
RIVAL_LEVEL_FACTOR = 2.0
"""Times alpha: level at which larger sets without a class must be rejected for it to be named."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LeftOut(TestResult):
    """The test of H_S.

    Attributes
    ----------
    classes : frozenset of int
        S, as columns.
    statistic, pvalue, method
        Of the class that is most off among the others; 'chi2' or 'exact'.
    scores : ndarray of shape (n_classes,)
        Statistic of each class; 0 for those in S.
    strength : float
        ``statistic - 2 log m``: comparable between sets.
    slope : float
        Of all classes outside S; 1 where none was fitted.
    """

    classes: frozenset[int]
    scores: Floats
    strength: float
    slope: float = 1.0

    @property
    def suspects(self) -> Codes:
        """The classes that are left, the most off first."""
        order = np.argsort(-np.round(self.scores, 9), kind="stable")
        return order[[j not in self.classes for j in order.tolist()]]


class LeaveOut:
    """``S -> LeftOut`` for one set of predictions; every set is tested once.

    `alpha` is the level that simulated p-values are to decide at. Rows beyond what half of `work`
    pays for (one test of each single class) are left out at random. Where a `slope` of all classes
    is given, each set has one beside it, fitted from there.
    """

    def __init__(
        self,
        predictions: Predictions,
        *,
        alpha: float,
        seed: int,
        n_resamples: int = N_RESAMPLES_ATTRIBUTION,
        work: float = ATTRIBUTION_WORK,
        slope: float | None = None,
    ) -> None:
        p, most = predictions, max(1000, int(work / 2.0 / predictions.n_classes**2))
        self.draws = p.has_whole_weights and float(p.class_weight.sum()) <= MAX_EXPANDED_ROWS
        if self.draws:
            p = p.expand_weights()
        if p.n_samples > most:
            picked = np.random.default_rng(seed).choice(p.n_samples, most, replace=False)
            p = p.take(np.sort(picked))
        self.n_samples, self.n_classes = p.n_samples, p.n_classes
        self.probs, self.codes, self.weight = p.probs.T.copy(), p.codes, p.sample_weight
        self.logs = np.log(np.maximum(self.probs, TINY))
        if self.probs.size * WORK_PER_LABEL * n_resamples > work:
            n_resamples = min(n_resamples, N_DRAWS_OF_COSTLY_SET)
        self.n_resamples = max(n_resamples, math.ceil(1.0 / alpha) - 1)
        self.alpha, self.seed = alpha, seed
        self.slope = slope
        self.left = work
        self._known: dict[frozenset[int], LeftOut] = {}

    def __call__(self, classes: Iterable[int]) -> LeftOut:
        """Test H_S, S the columns `classes`."""
        own = frozenset(classes)
        if own not in self._known:
            self._known[own] = self._test(own)
        return self._known[own]

    @property
    def price(self) -> float:
        """Work of a test."""
        return float(self.probs.size)

    def _test(self, out: frozenset[int]) -> LeftOut:
        self.left -= self.price
        rest = RemainingClasses(self, np.array([j for j in range(self.n_classes) if j not in out]))
        own = rest.scores(rest.counts[None], rest.sums[None])[0]
        scores = np.zeros(self.n_classes)
        scores[rest.kept] = own
        statistic, times = float(own.max()), len(own) if len(own) > 2 else 1
        pvalue, method = min(1.0, times * math.exp(-0.5 * statistic)), "chi2"
        if self.draws and rest.needs_draws(pvalue):
            pvalue, method = self._exact(rest, statistic), "exact"
        strength = statistic - 2.0 * math.log(times)
        return LeftOut(
            statistic=statistic,
            df=2,
            pvalue=pvalue,
            method=method,
            classes=out,
            scores=scores,
            strength=strength,
            slope=rest.slope,
        )

    def _exact(self, rest: RemainingClasses, statistic: float) -> float:
        """Return the exact p-value, or as soon as it is above alpha a rougher one."""
        q, features = rest.table()
        n, probs = q.shape[1], q.T

        def exceeds(start: int, size: int) -> NDArray[np.bool_]:
            labels = draw_labels(probs, self.seed, start, size)
            drawn = rest.scores(*label_sums(labels, features)).max(axis=1)
            self.left -= WORK_PER_LABEL * size * n
            return np.asarray(drawn >= statistic * (1.0 - TIE_TOL), np.bool_)

        return monte_carlo_p(
            exceeds,
            n_resamples=self.n_resamples,
            batch=max(1, BATCH_ENTRIES // n),
            seed=self.seed,
            stop_at=max(1, math.floor(self.alpha * (self.n_resamples + 1))),
        ).pvalue


class RemainingClasses:
    """The classes `kept`, on the rows that have one of them: what their labels are held to.

    `counts` and `sums` are the labels' part of U, `mean` what is expected of it, `variance` the
    three numbers of V; for each class that is kept.
    """

    def __init__(self, data: LeaveOut, kept: Codes) -> None:
        self.data, self.kept = data, kept
        places = np.full(data.n_classes, -1)
        places[kept] = np.arange(len(kept))
        labels = places[data.codes]
        self.rows = np.flatnonzero(labels >= 0)
        labels, weight = labels[self.rows], data.weight
        self.slope = self._fitted_slope(labels)
        own = np.empty(len(labels))
        total = np.zeros((5, len(kept)))
        step = max(64, CHUNK_ENTRIES // len(kept))
        for start in range(0, len(self.rows), step):
            part = slice(start, start + step)
            q, others, f = self._chunk(self.rows[part])
            own[part] = f[labels[part], np.arange(f.shape[1])]
            if weight is not None:
                q *= weight[self.rows[part]]
            others *= q
            total[0] += q.sum(axis=1)
            total[1] += np.einsum("jn,jn->j", q, f)
            total[2] += others.sum(axis=1)
            others *= f
            total[3] += others.sum(axis=1)
            total[4] += np.einsum("jn,jn->j", others, f)
        self.mean, self.variance = total[:2], total[2:]
        w = np.ones(len(labels)) if weight is None else weight[self.rows]
        counts, sums = np.bincount(labels, w, len(kept)), np.bincount(labels, w * own, len(kept))
        self.counts, self.sums = counts.astype(np.float64), sums.astype(np.float64)

    def _fitted_slope(self, labels: Codes) -> float:
        """Return the one slope of the classes that are kept, where one is asked for."""
        if self.data.slope is None or len(labels) == 0:
            return 1.0
        weight = None if self.data.weight is None else self.data.weight[self.rows]
        logs = self.data.logs[np.ix_(self.kept, self.rows)]
        return inverse_temperature(logs, labels, weight, near=self.data.slope).value

    def _chunk(self, rows: Codes) -> tuple[Floats, Floats, Floats]:
        """Return q, ``1 - q`` and the features of some rows, shape (classes, rows)."""
        picked = np.ix_(self.kept, rows)
        features = self.data.logs[picked]
        if self.slope == 1.0:
            q = self.data.probs[picked]
        else:
            features -= features.max(axis=0)
            features *= self.slope
            q = np.exp(features)
        total = q.sum(axis=0)
        others = np.maximum(total - q, MIN_OTHER_CLASSES_SHARE * total)
        features -= np.log(others)
        q /= total
        others /= total
        return q, others, features

    def table(self) -> tuple[Floats, Floats]:
        """Return q and the features of all rows."""
        q, _, features = self._chunk(self.rows)
        return q, features

    def scores(self, counts: Floats, sums: Floats) -> Floats:
        """Return ``U_j' V_j^-1 U_j`` for many labels, of shape (draws, classes)."""
        shift, slope = counts - self.mean[0], sums - self.mean[1]
        a, b, d = self.variance
        determinant = a * d - b * b
        flat = ~(determinant > MIN_RELATIVE_DETERMINANT * a * d)
        with np.errstate(divide="ignore", invalid="ignore"):
            both = (d * shift**2 - 2.0 * b * shift * slope + a * slope**2) / determinant
            alone = np.where(a > 0.0, shift**2 / a, 0.0)
        return np.where(flat, alone, both)

    def needs_draws(self, pvalue: float) -> bool:
        """Whether chi-square cannot be trusted with this p-value."""
        least = float(self.variance[0].min())
        if least >= max(MIN_CLASS_VARIANCE, MIN_VARIANCE_PER_CLASS * len(self.kept)):
            return False
        return len(self.rows) > 0 and not (
            pvalue < MAX_PVALUE_WITHOUT_DRAWS and least >= MIN_VARIANCE_WITHOUT_DRAWS
        )


def smallest_sets(
    leave_out: LeaveOut, singles: list[LeftOut], alpha: float, most: int | None = None
) -> list[LeftOut]:
    """Return the smallest sets whose H_S is not rejected; empty beyond half of the classes."""
    frontier, c = sorted(singles, key=lambda t: t.strength), leave_out.n_classes
    most = c // 2 if most is None else most
    width = c
    for size in range(1, max(2, most + 1)):
        if accepted := [t for t in frontier if t.pvalue > alpha]:
            return _add_swapped_sets(leave_out, accepted, alpha) if size > 1 else accepted
        if leave_out.left < 0.0 or size + 1 > most:
            break
        frontier = grow_sets(leave_out, frontier[:width])
        width = max(MAX_BRANCHES, width // 2)
    return []


def grow_sets(leave_out: LeaveOut, sets: list[LeftOut], without: int = -1) -> list[LeftOut]:
    """Return sets with one class more, one of those most off but `without`; the best first."""
    own: dict[frozenset[int], None] = {}
    for t in sets:
        more = [j for j in t.suspects.tolist() if j != without][:MAX_BRANCHES]
        own |= dict.fromkeys(t.classes | {j} for j in more)
    found = [leave_out(classes) for classes in own if leave_out.left >= 0.0]
    return sorted(found, key=lambda t: t.strength)


def _add_swapped_sets(leave_out: LeaveOut, accepted: list[LeftOut], alpha: float) -> list[LeftOut]:
    """Add the sets that differ in one class from one of these, where they are not rejected."""
    every = {t.classes: t for t in accepted}
    for own in list(every):
        for j in own:
            for k in range(leave_out.n_classes):
                other = (own - {j}) | {k}
                if k not in own and leave_out.left >= 0.0:
                    every[other] = leave_out(other)
    return [t for _, t in sorted(every.items(), key=lambda e: sorted(e[0])) if t.pvalue > alpha]


def told_apart(
    leave_out: LeaveOut, accepted: list[LeftOut], alpha: float
) -> tuple[frozenset[int], list[frozenset[int]]]:
    """Return the classes that are named, and the alternatives beside them."""
    if not accepted:
        return frozenset(), []
    common = frozenset.intersection(*(t.classes for t in accepted))
    rivals: dict[frozenset[int], None] = {}
    doubted = set()
    for k in sorted(common):
        found = _rivals(leave_out, accepted[0].classes, k, RIVAL_LEVEL_FACTOR * alpha)
        if found:
            doubted.add(k)
            rivals |= dict.fromkeys(t.classes for t in found)
    named = common - doubted
    others = [t.classes - named for t in accepted] + [own - named for own in rivals]
    if named and leave_out(named).pvalue > ENOUGH_LEVEL_FACTOR * alpha:
        # The named classes are all but enough: that others are off as well is mostly chance.
        others = []
    return named, [own for own in others if own]


def _rivals(leave_out: LeaveOut, own: frozenset[int], k: int, level: float) -> list[LeftOut]:
    """Return the sets without k, of one class more than `own`, that are not rejected at `level`."""
    if len(own) + 1 > leave_out.n_classes // 2:
        return []
    rest = [(own - {k}) | {j} for j in range(leave_out.n_classes) if j not in own]
    smaller = sorted((leave_out(other) for other in rest), key=lambda t: t.strength)
    found = grow_sets(leave_out, smaller, without=k)
    return [t for t in found if t.pvalue > level]


EXAMPLE_PROBS = (0.9, 0.7, 0.5, 0.3, 0.1, 0.05, 0.02)  # round probabilities that serve as examples
MIN_EXAMPLE_ROWS = 20  # rows that must be at least as far out


@dataclass(frozen=True, eq=False)
class MiscalibratedClass(Result):
    """How one class is wrong; intervals hold for all miscalibrated classes together.

    Attributes
    ----------
    label : label
        The class.
    delta, gamma, delta_interval, gamma_interval
        Its odds against the classes that are not named: ``odds -> delta odds^gamma``; NaN where
        the rows do not determine them.
    predicted, observed, low, high : float
        Its share of the rows: the mean prediction, how often it came true, and an interval.
    change : float
        Mean |change| of its probability by these odds: what classes are ordered by.
    given, true, true_low, true_high : float
        Where it is given the probability `given` (of a few round ones that occur, the one that is
        most off), it comes true in about `true`, with an interval; NaN without estimates.
    """

    label: Any
    delta: float
    gamma: float
    delta_interval: tuple[float, float]
    gamma_interval: tuple[float, float]
    predicted: float
    observed: float
    low: float
    high: float
    change: float
    given: float = math.nan
    true: float = math.nan
    true_low: float = math.nan
    true_high: float = math.nan

    @property
    def slope_kind(self) -> str:
        """'overconfident', 'underconfident', 'wrong_way', or '' where the rows cannot say."""
        low, high = self.gamma_interval
        if high < 1.0:
            return "wrong_way" if high < 0.0 else "overconfident"
        return "underconfident" if low > 1.0 else ""

    @property
    def share_kind(self) -> str:
        """'low' where it comes true more often than predicted, 'high' where less, or ''."""
        if self.predicted < self.low:
            return "low"
        return "high" if self.predicted > self.high else ""

    def statement(self, level: float) -> Statement:
        """Return in a sentence or two how it is wrong."""
        name = repr(ellipsis(self.label))
        leads = {"low": f"{name} is predicted too rarely", "high": f"{name} is predicted too often"}
        slopes = {
            "overconfident": "overconfident",
            "underconfident": "underconfident",
            "wrong_way": "upside down",
        }
        shares = f"its probability is {_percent(self.predicted)} on average, and it comes true in "
        shares += f"{_percent(self.observed)} of the rows ({_range(self.low, self.high)})"
        parts = [f"{leads[self.share_kind]}: {shares}."] if self.share_kind else []
        if self.slope_kind:
            whose = "Its probabilities are" if parts else f"The probabilities of {name} are"
            where = f"given {100 * self.given:g} %, it comes true in about {_percent(self.true)} "
            where += f"({_range(self.true_low, self.true_high)})"
            parts.append(f"{whose} {slopes[self.slope_kind]}: {where}.")
        if not parts:
            parts = [f"{name} is off, though these rows do not show in which way: {shares}."]
        words = " ".join(parts)
        numbers = {**self.to_dict(), "level": level, "slope": self.slope_kind}
        return Statement("attribution", words, "bad", {**numbers, "share": self.share_kind})


def how_wrong(
    predictions: Predictions, named: list[int], k: int, level: float
) -> MiscalibratedClass:
    """Return how class k is wrong against the classes that are not named."""
    p, weight = predictions, predictions.sample_weight
    total = float(p.n_samples if weight is None else weight.sum())
    predicted = float(np.average(p.probs[:, k], weights=weight))
    observed = float(p.class_weight[k]) / total
    low, high = (float(e[0]) for e in wilson(np.array([observed]), np.array([total]), level))
    fit = odds_fit(p, named, k)
    change, unknown = abs(observed - predicted), (math.nan, math.nan)
    odds = (math.nan, math.nan, unknown, unknown)
    said: tuple[float, ...] = ()
    if fit.converged:
        interval = fit.confidence_interval(level)
        (d, g), x = (e[0].tolist() for e in (interval.delta, interval.gamma)), p.probs[:, k]
        odds = (float(fit.delta[0]), float(fit.gamma[0]), (d[0], d[1]), (g[0], g[1]))
        moved = fit.recalibrate(np.column_stack([x, 1.0 - x]))[:, 0] - x
        change = float(np.average(np.abs(moved), weights=weight))
        said = _most_off(fit, x, level)
    return MiscalibratedClass(p.classes[k], *odds, predicted, observed, low, high, change, *said)


def _most_off(fit: MCLLOFit, probs: Floats, level: float) -> tuple[float, ...]:
    """Return a round probability that occurs and is most off, and what it should be."""
    from scipy.special import expit, ndtri

    seen = [
        v
        for v in EXAMPLE_PROBS
        if (probs >= v if v >= 0.5 else probs <= v).sum() >= MIN_EXAMPLE_ROWS
    ]
    given = np.array(seen or [0.5])
    odds = np.log(given / (1.0 - given))
    rows = np.column_stack([np.ones(len(odds)), odds])
    middle = rows @ np.array([fit.tau[0], fit.gamma[0]])
    cov = np.where(np.isnan(fit.cov_theta), 0.0, fit.cov_theta)
    reach = float(ndtri(0.5 + level / 2.0)) * np.sqrt(np.einsum("ij,jk,ik->i", rows, cov, rows))
    true, low, high = (expit(middle + sign * reach) for sign in (0.0, -1.0, 1.0))
    j = int(np.argmax(np.abs(true - given)))
    return float(given[j]), float(true[j]), float(low[j]), float(high[j])


def odds_fit(predictions: Predictions, out: list[int], k: int) -> MCLLOFit:
    """Fit the odds of class k against all classes that are not in `out`, on their rows."""
    p, free = predictions, np.ones(predictions.n_classes, dtype=bool)
    free[out] = False
    rows = np.flatnonzero(free[p.codes] | (p.codes == k))
    own, rest = p.probs[rows, k], p.probs[np.ix_(rows, np.flatnonzero(free))].sum(axis=1)
    rest = np.maximum(rest, MIN_OTHER_CLASSES_SHARE * own)
    binary = Predictions(
        probs=np.column_stack([own, rest]) / (own + rest)[:, None],
        codes=np.where(p.codes[rows] == k, 0, 1),
        classes=("it", "the others"),
        baseline="the others",
        sample_weight=None if p.sample_weight is None else p.sample_weight[rows],
    )
    with suppress_warnings():
        return fit_predictions(binary)


def set_bic(predictions: Predictions, classes: frozenset[int]) -> float:
    """Return the likelihood ratio of a set of classes that are off, less its parameters' price."""
    own = sorted(classes)
    gain = sum(odds_fit(predictions, own[i:], k).statistic for i, k in enumerate(own))
    return gain - 2.0 * len(own) * math.log(float(predictions.class_weight.sum()))


def _percent(value: float) -> str:
    return f"{100.0 * value:.1f} %"


def _range(low: float, high: float) -> str:
    return f"{100.0 * low:.1f} to {100.0 * high:.1f}"
