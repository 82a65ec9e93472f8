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

`smallest_accepted_sets` searches the sets whose leaving out makes the others agree with the labels.
They grow by the classes that are most off once the others are left out; an accepted set is compared
with all that differ from it in one class. What the sets mean is in `_diagnostics/attribution`.

`describe_class` says how a class that was named is wrong, free of any baseline: the classes that
are not named are right among themselves, as far as the rows tell, so that its odds against them
are its own fault.

==========  ====================================================================================
odds        of the class against all classes that are not named, on the rows that have one of
            these: ``logit q_k -> tau + gamma logit q_k``, a fit of two classes
slope       overconfident where the interval of gamma is below 1, underconfident where it is above
share       the mean prediction, and how often the class came true, with Wilson's interval
example     of a few round probabilities that occur, the one that these odds move most
change      mean |change| of its probability by these odds: classes are ordered by it
==========  ====================================================================================

Its intervals have the level they are asked for; `ClassAttribution` asks for one that makes shares
and slopes hold for all named classes together (Bonferroni).
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
from .._inference.hypothesis_test import TestResult
from .._inference.monte_carlo import (
    class_counts_and_sums,
    draw_labels,
    monte_carlo_pvalue,
)
from .._model.temperature import fit_inverse_temperature
from .._utils.formatting import ellipsis
from .._utils.results import Codes, Floats, Result
from .._utils.statements import Statement, suppress_warnings
from .._validation.predictions import Predictions
from ..metrics._reliability import wilson_score_interval

MAX_EXPANDED_ROWS = 10_000_000
"""Rows up to which those that count several times are written out, and labels can be drawn; a round
number."""
MIN_OTHER_CLASSES_SHARE = 1e-15
"""Least part of a row that the other classes are taken to have: a few units of rounding of 1."""
MIN_CLASS_VARIANCE = 20.0
"""Variance ``sum_i q_ij (1 - q_ij)`` of a class from which chi-square is trusted; measured, see the
module's text."""
WORK_PER_LABEL = 5.0
"""Work (probabilities that are read) of a label that is drawn; a round number."""
N_DRAWS_OF_COSTLY_SET = 99
"""Draws for a set where the number that was asked for would cost too much: the fewest that reach a
p-value of 0.01."""
MAX_BRANCHES = 3
"""Classes by which a set grows at most, the most off first; a round number."""
RIVAL_LEVEL_FACTOR = 2.0
"""Times alpha: level at which larger sets without a class must be rejected for it to be named;
docs/explanation/miscalibrated-classes.md has how often classes are named wrongly with it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LeaveClassesOutTest(TestResult):
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
    def kept_classes_most_off_first(self) -> Codes:
        """The classes that are left, the most off first."""
        # Scores that differ by rounding alone are ordered by column, on every machine.
        order = np.argsort(-np.round(self.scores, 9), kind="stable")
        is_left = [j not in self.classes for j in order.tolist()]
        return order[is_left]


class LeaveOut:
    """``S -> LeaveClassesOutTest`` for one set of predictions; every set is tested once.

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
        n_classes = predictions.n_classes
        max_rows = max(1000, int(work / 2.0 / n_classes**2))
        n_labels = float(predictions.class_weight.sum())
        self.can_draw = predictions.has_whole_weights and n_labels <= MAX_EXPANDED_ROWS
        if self.can_draw:
            predictions = predictions.expand_weights()
        if predictions.n_samples > max_rows:
            rng = np.random.default_rng(seed)
            picked = rng.choice(predictions.n_samples, max_rows, replace=False)
            predictions = predictions.take(np.sort(picked))
        self.n_samples = predictions.n_samples
        self.n_classes = n_classes
        self.probs = predictions.probs.T.copy()
        self.codes = predictions.codes
        self.weight = predictions.sample_weight
        self.logs = np.log(
            np.maximum(self.probs, 1e-300)
        )  # a probability of 0 has a logarithm
        if self.probs.size * WORK_PER_LABEL * n_resamples > work:
            n_resamples = min(n_resamples, N_DRAWS_OF_COSTLY_SET)
        # With fewer draws no p-value could be as small as alpha.
        self.n_resamples = max(n_resamples, math.ceil(1.0 / alpha) - 1)
        self.alpha = alpha
        self.seed = seed
        self.slope = slope
        self.remaining_work = work
        self._known: dict[frozenset[int], LeaveClassesOutTest] = {}

    def __call__(self, classes: Iterable[int]) -> LeaveClassesOutTest:
        """Test H_S, S the columns `classes`."""
        own = frozenset(classes)
        if own not in self._known:
            self._known[own] = self._test_without(own)
        return self._known[own]

    @property
    def work_per_test(self) -> float:
        """Work of a test."""
        return float(self.probs.size)

    def _test_without(self, left_out: frozenset[int]) -> LeaveClassesOutTest:
        self.remaining_work -= self.work_per_test
        kept = np.array([j for j in range(self.n_classes) if j not in left_out])
        remaining = RemainingClasses(self, kept)
        own_scores = remaining.scores(remaining.counts[None], remaining.sums[None])[0]
        statistic = float(own_scores.max())
        scores = np.zeros(self.n_classes)
        scores[kept] = own_scores
        # Two classes are off together: their scores are the same one.
        n_scores = len(kept) if len(kept) > 2 else 1
        pvalue = min(1.0, n_scores * math.exp(-0.5 * statistic))
        method = "chi2"
        if self.can_draw and remaining.needs_draws(pvalue):
            pvalue = self._exact_pvalue(remaining, statistic)
            method = "exact"
        strength = statistic - 2.0 * math.log(n_scores)
        return LeaveClassesOutTest(
            statistic=statistic,
            df=2,
            pvalue=pvalue,
            method=method,
            classes=left_out,
            scores=scores,
            strength=strength,
            slope=remaining.slope,
        )

    def _exact_pvalue(self, remaining: RemainingClasses, statistic: float) -> float:
        """Return the exact p-value, or as soon as it is above alpha a rougher one."""
        q, features = remaining.renormalised_probs_and_features()
        probs = q.T
        n_rows = len(probs)
        # Drawn labels that give the statistic of the data may differ from it by rounding.
        tied_statistic = statistic * (1.0 - 1e-9)

        def exceeds(start: int, size: int) -> NDArray[np.bool_]:
            labels = draw_labels(probs, self.seed, start, size)
            drawn = remaining.scores(*class_counts_and_sums(labels, features)).max(
                axis=1
            )
            self.remaining_work -= WORK_PER_LABEL * size * n_rows
            return np.asarray(drawn >= tied_statistic, np.bool_)

        return monte_carlo_pvalue(
            exceeds,
            n_resamples=self.n_resamples,
            batch=max(1, BATCH_ENTRIES // n_rows),
            seed=self.seed,
            stop_at=max(1, math.floor(self.alpha * (self.n_resamples + 1))),
        ).pvalue


class RemainingClasses:
    """The classes `kept`, on the rows that have one of them: what their labels are held to.

    `counts` and `sums` are the labels' part of U, `mean` what is expected of it, `variance` the
    three numbers of V; for each class that is kept.
    """

    def __init__(self, data: LeaveOut, kept: Codes) -> None:
        n_kept = len(kept)
        self.data = data
        self.kept = kept
        position_of_class = np.full(data.n_classes, -1)
        position_of_class[kept] = np.arange(n_kept)
        labels = position_of_class[data.codes]
        self.rows = np.flatnonzero(labels >= 0)
        labels = labels[self.rows]
        weight = None if data.weight is None else data.weight[self.rows]
        self.slope = self._fit_slope(labels, weight)

        feature_of_label = np.empty(len(labels))
        self.mean = np.zeros((2, n_kept))
        self.variance = np.zeros((3, n_kept))
        chunk_rows = max(64, 50_000 // n_kept)  # arrays of 400 kB stay in the cache
        for start in range(0, len(labels), chunk_rows):
            part = slice(start, start + chunk_rows)
            q, others, f = self._renormalised_chunk(self.rows[part])
            feature_of_label[part] = f[labels[part], np.arange(f.shape[1])]
            if weight is not None:
                q *= weight[part]
            self.mean[0] += q.sum(axis=1)
            self.mean[1] += np.einsum("jn,jn->j", q, f)
            variance = np.multiply(others, q, out=others)
            self.variance[0] += variance.sum(axis=1)
            variance *= f
            self.variance[1] += variance.sum(axis=1)
            self.variance[2] += np.einsum("jn,jn->j", variance, f)

        if weight is None:
            weight = np.ones(len(labels))
        self.counts = np.bincount(labels, weight, n_kept).astype(np.float64)
        self.sums = np.bincount(labels, weight * feature_of_label, n_kept).astype(
            np.float64
        )

    def _fit_slope(self, labels: Codes, weight: Floats | None) -> float:
        """Return the one slope of the classes that are kept, where one is asked for."""
        if self.data.slope is None or len(labels) == 0:
            return 1.0
        logs = self.data.logs[np.ix_(self.kept, self.rows)]
        return fit_inverse_temperature(
            logs, labels, weight, start=self.data.slope
        ).value

    def _renormalised_chunk(self, rows: Codes) -> tuple[Floats, Floats, Floats]:
        """Return q, ``1 - q`` and the features of some rows, shape (classes, rows)."""
        block = np.ix_(self.kept, rows)
        features = self.data.logs[block]
        if self.slope == 1.0:
            q = self.data.probs[block]
        else:
            features -= features.max(axis=0)
            features *= self.slope
            q = np.exp(features)
        total = q.sum(axis=0)
        # Beside a probability of almost 1 nothing is left: its log odds would be infinite.
        others = np.maximum(total - q, MIN_OTHER_CLASSES_SHARE * total)
        features -= np.log(others)
        q /= total
        others /= total
        return q, others, features

    def renormalised_probs_and_features(self) -> tuple[Floats, Floats]:
        """Return q and the features of all rows."""
        q, _, features = self._renormalised_chunk(self.rows)
        return q, features

    def scores(self, counts: Floats, sums: Floats) -> Floats:
        """Return ``U_j' V_j^-1 U_j`` for many labels, of shape (draws, classes)."""
        shift = counts - self.mean[0]
        slope = sums - self.mean[1]
        a, b, d = self.variance  # V = [[a, b], [b, d]]
        determinant = a * d - b * b
        # Where all features are about the same, a slope cannot be told from a shift: the shift
        # alone has one degree of freedom less, which keeps the test at its level.
        is_singular = ~(determinant > 1e-10 * a * d)
        with np.errstate(divide="ignore", invalid="ignore"):
            both = (d * shift**2 - 2.0 * b * shift * slope + a * slope**2) / determinant
            shift_alone = np.where(a > 0.0, shift**2 / a, 0.0)
        return np.where(is_singular, shift_alone, both)

    def needs_draws(self, pvalue: float) -> bool:
        """Whether chi-square cannot be trusted with this p-value."""
        least_variance = float(self.variance[0].min())
        if least_variance >= max(MIN_CLASS_VARIANCE, 2.0 * len(self.kept)):
            return False
        # Chi-square is wrong by a factor, which does not matter for a p-value of a millionth; with
        # a variance below 5 it may be wrong by any factor.
        is_clear = pvalue < 1e-6 and least_variance >= 5.0
        return len(self.rows) > 0 and not is_clear


def smallest_accepted_sets(
    leave_out: LeaveOut,
    single_tests: list[LeaveClassesOutTest],
    alpha: float,
    max_size: int | None = None,
) -> list[LeaveClassesOutTest]:
    """Return the smallest sets whose H_S is not rejected; empty beyond half of the classes."""
    if max_size is None:
        max_size = leave_out.n_classes // 2
    frontier = sorted(single_tests, key=_misfit_of_kept_classes)
    width = leave_out.n_classes
    size = 1
    while not any(test.pvalue > alpha for test in frontier):
        if leave_out.remaining_work < 0.0 or size + 1 > max_size:
            return []
        frontier = grow_and_test_sets(leave_out, frontier[:width])
        size += 1
        # Halved at each size: the best sets grow further, and the search stays affordable.
        width = max(MAX_BRANCHES, width // 2)
    accepted = [test for test in frontier if test.pvalue > alpha]
    if size == 1:  # every set of this size was tested
        return accepted
    return _add_swapped_sets(leave_out, accepted, alpha)


def _misfit_of_kept_classes(test: LeaveClassesOutTest) -> float:
    """Return what sets are ordered by: the less, the better the other classes agree."""
    return test.strength


def grow_and_test_sets(
    leave_out: LeaveOut, sets: list[LeaveClassesOutTest], excluded: int = -1
) -> list[LeaveClassesOutTest]:
    """Return sets with one class more, one of those most off but `excluded`; the best first."""
    grown: dict[
        frozenset[int], None
    ] = {}  # a dict keeps the order, which decides where work ends
    for test in sets:
        suspects = [
            j for j in test.kept_classes_most_off_first.tolist() if j != excluded
        ]
        for j in suspects[:MAX_BRANCHES]:
            grown[test.classes | {j}] = None
    tests = [leave_out(classes) for classes in grown if leave_out.remaining_work >= 0.0]
    return sorted(tests, key=_misfit_of_kept_classes)


def _add_swapped_sets(
    leave_out: LeaveOut, accepted: list[LeaveClassesOutTest], alpha: float
) -> list[LeaveClassesOutTest]:
    """Add the sets that differ in one class from one of these, where they are not rejected."""
    tests = {test.classes: test for test in accepted}
    for classes in list(tests):
        outside = [k for k in range(leave_out.n_classes) if k not in classes]
        for j in classes:
            for k in outside:
                if leave_out.remaining_work >= 0.0:
                    swapped = (classes - {j}) | {k}
                    tests[swapped] = leave_out(swapped)
    in_order_of_columns = [tests[classes] for classes in sorted(tests, key=sorted)]
    return [test for test in in_order_of_columns if test.pvalue > alpha]


def split_named_and_alternatives(
    leave_out: LeaveOut, accepted: list[LeaveClassesOutTest], alpha: float
) -> tuple[frozenset[int], list[frozenset[int]]]:
    """Return the classes that are named, and the alternatives beside them."""
    if not accepted:
        return frozenset(), []
    in_all = frozenset.intersection(*(test.classes for test in accepted))
    doubted = set()
    rivals: dict[frozenset[int], None] = {}
    for k in sorted(in_all):
        rivals_of_k = _accepted_sets_without_class(
            leave_out, accepted[0].classes, k, RIVAL_LEVEL_FACTOR * alpha
        )
        if rivals_of_k:
            doubted.add(k)
            rivals |= dict.fromkeys(test.classes for test in rivals_of_k)
    named = in_all - doubted
    # At half the level the named classes are all but enough: that others are off as well is mostly
    # chance.
    if named and leave_out(named).pvalue > 0.5 * alpha:
        return named, []
    alternatives = [test.classes - named for test in accepted]
    alternatives += [classes - named for classes in rivals]
    return named, [classes for classes in alternatives if classes]


def _accepted_sets_without_class(
    leave_out: LeaveOut, classes: frozenset[int], k: int, level: float
) -> list[LeaveClassesOutTest]:
    """Return sets without k, of one class more than `classes`, that are not rejected at `level`."""
    if len(classes) + 1 > leave_out.n_classes // 2:
        return []
    outside = [j for j in range(leave_out.n_classes) if j not in classes]
    swapped = [leave_out((classes - {k}) | {j}) for j in outside]
    larger = grow_and_test_sets(
        leave_out, sorted(swapped, key=_misfit_of_kept_classes), excluded=k
    )
    return [test for test in larger if test.pvalue > level]


EXAMPLE_PROBS = (
    0.9,
    0.7,
    0.5,
    0.3,
    0.1,
    0.05,
    0.02,
)  # round probabilities that serve as examples


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
        if high < 0.0:
            return "wrong_way"
        if high < 1.0:
            return "overconfident"
        if low > 1.0:
            return "underconfident"
        return ""

    @property
    def share_kind(self) -> str:
        """'low' where it comes true more often than predicted, 'high' where less, or ''."""
        if self.predicted < self.low:
            return "low"
        if self.predicted > self.high:
            return "high"
        return ""

    def statement(self, level: float) -> Statement:
        """Return in a sentence or two how it is wrong."""
        name = repr(ellipsis(self.label))
        share = (
            f"its probability is {_percent(self.predicted)} on average, and it comes true in "
            f"{_percent(self.observed)} of the rows ({_percent_range(self.low, self.high)})"
        )
        sentences = []
        if self.share_kind:
            how_often = "rarely" if self.share_kind == "low" else "often"
            sentences.append(f"{name} is predicted too {how_often}: {share}.")
        if self.slope_kind:
            subject = (
                "Its probabilities" if sentences else f"The probabilities of {name}"
            )
            how = "upside down" if self.slope_kind == "wrong_way" else self.slope_kind
            example = (
                f"given {100 * self.given:g} %, it comes true in about {_percent(self.true)} "
                f"({_percent_range(self.true_low, self.true_high)})"
            )
            sentences.append(f"{subject} are {how}: {example}.")
        if not sentences:
            sentences = [
                f"{name} is off, though these rows do not show in which way: {share}."
            ]
        numbers = {
            **self.to_dict(),
            "level": level,
            "slope": self.slope_kind,
            "share": self.share_kind,
        }
        return Statement("attribution", " ".join(sentences), "bad", numbers)


def describe_class(
    predictions: Predictions, named: list[int], k: int, level: float
) -> MiscalibratedClass:
    """Return how class k is wrong against the classes that are not named."""
    weight = predictions.sample_weight
    probs = predictions.probs[:, k]
    total = float(predictions.n_samples if weight is None else weight.sum())
    predicted = float(np.average(probs, weights=weight))
    observed = float(predictions.class_weight[k]) / total
    low, high = wilson_score_interval(np.array([observed]), np.array([total]), level)
    shares: dict[str, Any] = {
        "label": predictions.classes[k],
        "predicted": predicted,
        "observed": observed,
        "low": float(low[0]),
        "high": float(high[0]),
    }
    unknown = (math.nan, math.nan)

    fit = fit_odds_of_class(predictions, named, k)
    if not fit.converged:
        return MiscalibratedClass(
            **shares,
            delta=math.nan,
            gamma=math.nan,
            delta_interval=unknown,
            gamma_interval=unknown,
            change=abs(observed - predicted),
        )
    interval = fit.confidence_interval(level)
    delta_low, delta_high = interval.delta[0].tolist()
    gamma_low, gamma_high = interval.gamma[0].tolist()
    binary = np.column_stack([probs, 1.0 - probs])
    recalibrated = fit.recalibrate(binary)[:, 0]
    change = np.average(np.abs(recalibrated - probs), weights=weight)
    return MiscalibratedClass(
        **shares,
        delta=float(fit.delta[0]),
        gamma=float(fit.gamma[0]),
        delta_interval=(delta_low, delta_high),
        gamma_interval=(gamma_low, gamma_high),
        change=float(change),
        **_example_probability(fit, probs, level),
    )


def _example_probability(
    fit: MCLLOFit, probs: Floats, level: float
) -> dict[str, float]:
    """Return a round probability that occurs and is most off, and what it should be."""
    from scipy.special import expit, ndtri

    occurring = []
    for prob in EXAMPLE_PROBS:
        as_far_out = probs >= prob if prob >= 0.5 else probs <= prob
        if as_far_out.sum() >= 20:  # fewer rows would make it an extrapolation
            occurring.append(prob)
    given = np.array(occurring or [0.5])
    log_odds = np.log(given / (1.0 - given))
    design = np.column_stack([np.ones(len(log_odds)), log_odds])
    theta = np.array([fit.tau[0], fit.gamma[0]])
    middle = design @ theta
    cov = np.where(np.isnan(fit.cov_theta), 0.0, fit.cov_theta)  # NaN: not estimated
    standard_error = np.sqrt(np.einsum("ij,jk,ik->i", design, cov, design))
    half_width = float(ndtri(0.5 + level / 2.0)) * standard_error
    true = expit(middle)
    low = expit(middle - half_width)
    high = expit(middle + half_width)
    j = int(np.argmax(np.abs(true - given)))
    return {
        "given": float(given[j]),
        "true": float(true[j]),
        "true_low": float(low[j]),
        "true_high": float(high[j]),
    }


def fit_odds_of_class(
    predictions: Predictions, excluded: list[int], k: int
) -> MCLLOFit:
    """Fit the odds of class k against all classes that are not in `excluded`, on their rows."""
    p = predictions
    is_free = np.ones(p.n_classes, dtype=bool)
    is_free[excluded] = False
    rows = np.flatnonzero(is_free[p.codes] | (p.codes == k))
    own = p.probs[rows, k]
    free_columns = np.flatnonzero(is_free)
    rest = p.probs[np.ix_(rows, free_columns)].sum(axis=1)
    rest = np.maximum(rest, MIN_OTHER_CLASSES_SHARE * own)
    total = own + rest
    binary = Predictions(
        probs=np.column_stack([own, rest]) / total[:, None],
        codes=np.where(p.codes[rows] == k, 0, 1),
        classes=("it", "the others"),
        baseline="the others",
        sample_weight=None if p.sample_weight is None else p.sample_weight[rows],
    )
    with suppress_warnings():
        return fit_predictions(binary)


def bic_lead_of_classes(predictions: Predictions, classes: frozenset[int]) -> float:
    """Return the likelihood ratio of a set of classes that are off, less its parameters' price."""
    ordered = sorted(classes)
    statistic = 0.0
    # Class by class: each against the classes after it that are not in the set, so that a chain of
    # conditional likelihoods adds up to that of all.
    for i, k in enumerate(ordered):
        statistic += fit_odds_of_class(predictions, ordered[i:], k).statistic
    log_total = math.log(float(predictions.class_weight.sum()))
    return statistic - 2.0 * len(ordered) * log_total


def _percent(value: float) -> str:
    return f"{100.0 * value:.1f} %"


def _percent_range(low: float, high: float) -> str:
    return f"{100.0 * low:.1f} to {100.0 * high:.1f}"
