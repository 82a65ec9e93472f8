"""Explanations that are no shift or slope: labels that mix with others. Two confused classes.

=============  =================================================================================
leak a -> b    ``g_a = (1 - e) x_a``, ``g_b = x_b + e x_a``: what should be a is labelled b
swap a, b      both ways with the same e
confusion      both ways, each with a share of its own
lapse          ``g = (1 - e) x + e r`` (`_diagnostics/mixtures`)
log ratio      ``sum_i w_i log(1 + e d_i)``, ``d_i = g_{y_i} / x_{y_i} - 1`` at ``e = 1``: concave
               in e, so that a maximum is a root of its slope
score          ``2 log likelihood ratio - df log n - 2 log m``: BIC, less what it takes to say
               which of the m explanations of its kind is meant
=============  =================================================================================

Explanations are compared by their scores. If one of two is true, the other is k times likelier with
a probability of at most ``1 / k`` (Royall 1997, section 1.4; exactly so where nothing is
estimated): `MIN_SCORE_LEAD` is that of k = 20. Which of them is named is decided in
`_diagnostics/attribution`.

A lapse: some labels follow no prediction, and sure predictions fail at a constant rate.

============  ==================================================================================
lapse         ``g = (1 - e) x + e r``, r uniform or the mean prediction
with slope    the same around ``softmax(u log x)``: a lapse beside one temperature, where that is
              better by `MIN_SCORE_LEAD`
leaves        hits in groups of rows by confidence, against chi-square; Rao's score test of a
              share e that changes with confidence
============  ==================================================================================

Labels that are wrong at random are a lapse, and so is a model that is sure of what nobody can know.
One temperature pays for the few rows in which it fails with the sharpness of all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from .._inference.goodness_of_fit import equal_parts
from .._inference.likelihood_tests import chi2_sf
from .._model.kernel import softmax
from .._model.temperature import inverse_temperature
from .._utils.formatting import ellipsis
from .._utils.results import Codes, Floats, Result
from .._utils.statements import Statement
from .._validation.predictions import Predictions

Model = Literal["lapse", "leak", "swap", "confusion"]
MIN_SCORE_LEAD = 2.0 * math.log(20.0)
"""Difference of scores from which one explanation is preferred: 20 times likelier."""
MAX_ENTRIES = 1_000_000
"""Rows times classes that explanations are fitted to; of more rows some are taken at random."""
SHARE_GRID = (0.01, 0.03, 0.1, 0.3)
"""Shares at which all pairs are compared before the best few are fitted."""
MAX_FITTED_PAIRS = 3
MAX_SHARE = 1.0 - 1e-9
FIRST_SHARE = 0.02
SHARE_TOL = 1e-6
MAX_STEPS = 100
TINY = 1e-300
"""Least probability, so that it has a logarithm."""
CHI2_95 = 3.841458820694124
Z95 = 1.959963984540054


@dataclass(frozen=True, eq=False)
class Mixture(Result):
    """A lapse or a pair of classes that is confused, fitted by maximum likelihood.

    Attributes
    ----------
    model : {'lapse', 'leak', 'swap', 'confusion'}
        Which one.
    labels : tuple
        The pair; empty for a lapse.
    share, low, high : float
        Of the rows that should be the first class, those with the label of the second, with a 95 %
        interval. For a lapse: of the rows, those in which the most probable class fails whatever
        its probability.
    back, back_low, back_high : float
        The same from the second class to the first; NaN for a lapse.
    slope : float
        Slope of all classes beside a lapse; 1 where none is needed.
    score : float
        What explanations are compared by.
    margin : float
        By how much it is better than the best rival.
    """

    model: Model
    labels: tuple[Any, ...]
    share: float
    low: float
    high: float
    back: float
    back_low: float
    back_high: float
    slope: float
    score: float
    margin: float = math.nan

    def statement(self) -> Statement:
        """Return what it means, and what can be done."""
        words = self._lapse_words() if self.model == "lapse" else self._pair_words()
        kind = "attribution.lapse" if self.model == "lapse" else "attribution.pair"
        return Statement(kind, words, "bad", self.to_dict())

    def _lapse_words(self) -> str:
        words = (
            f"Sure predictions fail, however sure they are: in about {_percent(self.share)} of the "
            f"rows ({_range(self.low, self.high)}), as if their labels followed no prediction. No "
            "temperature mends that, and no single class stands out: look for wrong labels, or "
            "recalibrate with mcllo.AutoCalibrator, which keeps probabilities away from 1."
        )
        if self.slope == 1.0:
            return words
        how = "overconfident" if self.slope < 1.0 else "underconfident"
        return f"{words} Beside that, all classes are {how}, alike."

    def _pair_words(self) -> str:
        first, second = (repr(ellipsis(label)) for label in self.labels)
        share = f"about {_percent(self.share)} ({_range(self.low, self.high)})"
        if self.model == "swap":
            words = (
                f"{first} and {second} are confused: of the rows that should be one of them, "
                f"{share} have the label of the other."
            )
        else:
            words = (
                f"{first} is confused with {second}: of the rows that should be {first}, {share} "
                f"have the label {second}"
            )
            back = f"about {_percent(self.back)} ({_range(self.back_low, self.back_high)})"
            words += f", and {back} the other way." if self.model == "confusion" else "."
        return (
            f"{words} All else agrees with the labels. No temperature and no shift mends that: "
            "look at the labels of these two, or recalibrate with mcllo.AutoCalibrator."
        )


@dataclass(frozen=True, eq=False)
class Fitted:
    """A mixture with the probabilities that it gives the rows, shape (n, c).

    A lapse also has e, its share of all labels, and r, its `target`.
    """

    mixture: Mixture
    probs: Floats
    lapse_share: float = 0.0
    target: Floats = field(default_factory=lambda: np.zeros(0))


class MixtureRows:
    """The rows that mixtures are fitted to, with what all of them need."""

    def __init__(self, predictions: Predictions, seed: int) -> None:
        p = predictions
        most = max(1000, MAX_ENTRIES // p.n_classes)
        if p.n_samples > most:
            rng = np.random.default_rng([seed, 4])
            p = p.take(np.sort(rng.choice(p.n_samples, most, replace=False)))
        self.predictions = p
        self.codes = p.codes
        self.weight = p.row_weight
        self.total = float(self.weight.sum())
        self.log_total = math.log(self.total)
        self.probs = np.maximum(p.probs, TINY)
        self.logs = np.log(self.probs.T)
        self.own = self.of_labels(self.probs.T)
        self.log_likelihood = float(self.weight @ np.log(self.own))

    def of_labels(self, values: Floats) -> Floats:
        """Return each row's value of the class that came true; `values` have shape (c, n)."""
        return values[self.codes, np.arange(len(self.codes))]

    def multiplied(self, slope: float) -> Floats:
        """Return ``softmax(slope log x)``, shape (c, n)."""
        g = slope * self.logs
        softmax(g)
        return g

    def tempered(self, slope: float) -> Predictions:
        """Return the predictions whose logits are multiplied by `slope`."""
        probs = np.ascontiguousarray(self.multiplied(slope).T)
        return replace(self.predictions, probs=probs, logits=None)

    def temperature_score(self) -> float:
        """Return the score of one slope for all classes, the best."""
        weight = self.predictions.sample_weight
        return self.slope_score(inverse_temperature(self.logs.copy(), self.codes, weight).value)

    def slope_score(self, slope: float) -> float:
        """Return the score of this slope for all classes."""
        own = np.maximum(self.of_labels(self.multiplied(slope)), TINY)
        return 2.0 * (float(self.weight @ np.log(own)) - self.log_likelihood) - self.log_total

    def slope_interval(self, out: frozenset[int], slope: float) -> tuple[float, float, float]:
        """Return a slope that was fitted without the classes `out`, with its 95 % interval."""
        kept = np.array([j for j in range(len(self.logs)) if j not in out])
        rows = np.flatnonzero(np.isin(self.codes, kept))
        logs = self.logs[np.ix_(kept, rows)]
        q = slope * logs
        softmax(q)
        mean = (q * logs).sum(axis=0)
        information = float(self.weight[rows] @ ((q * logs**2).sum(axis=0) - mean**2))
        half = Z95 / math.sqrt(max(information, TINY))
        return slope, slope - half, slope + half


def fit_pair(rows: MixtureRows) -> Fitted | None:
    """Return the pair of classes whose confusion explains most; None where none explains."""
    p = rows.predictions
    c = p.n_classes
    gains = _pair_gains(rows)
    order = np.argsort(-gains, axis=None, kind="stable")[:MAX_FITTED_PAIRS]
    found = [_fit_confusion(rows, int(i) // c, int(i) % c) for i in order if gains.flat[i] > 0.0]
    if not found:
        return None
    return max(found, key=lambda fitted: fitted.mixture.score)


def _pair_gains(rows: MixtureRows) -> Floats:
    """Return for each pair a < b the best gain of the forms on a grid of shares: (c, c)."""
    p = rows.predictions
    c = p.n_classes
    counts = p.class_weight
    ratio = rows.probs / rows.own[:, None]
    best = np.zeros((c, c))
    for share in SHARE_GRID:
        swapped = rows.weight[:, None] * np.log1p(share * (ratio - 1.0))
        leaked = rows.weight[:, None] * np.log1p(share * ratio)
        # [y, b]: what the rows with label y gain by the exchange with b, by a leak from b.
        exchange = _sum_by_label(swapped, rows.codes, c)
        gained = _sum_by_label(leaked, rows.codes, c)
        leak = gained.T + counts[:, None] * math.log1p(-share)  # [a, b]: from a to b
        here = np.maximum(exchange + exchange.T, np.maximum(leak, leak.T))
        best = np.maximum(best, here)
    return np.triu(best, 1)


def _fit_confusion(rows: MixtureRows, a: int, b: int) -> Fitted:
    """Return the best of both leaks, the swap, and the confusion of both shares."""
    p = rows.predictions
    rows_a = np.flatnonzero(rows.codes == a)
    rows_b = np.flatnonzero(rows.codes == b)
    to_a = rows.probs[rows_a, b] / rows.own[rows_a]  # x_b / x_a where the label is a
    to_b = rows.probs[rows_b, a] / rows.own[rows_b]
    weight = np.concatenate([rows.weight[rows_a], rows.weight[rows_b]])
    # Derivatives of g_y / x_y in the share of a -> b and of b -> a.
    forth = np.concatenate([np.full(len(rows_a), -1.0), to_b])
    back = np.concatenate([to_a, np.full(len(rows_b), -1.0)])
    chosen = 2.0 * math.log(3.0 * p.n_classes * (p.n_classes - 1) / 2.0)
    nothing = (0.0, 0.0, 0.0)
    forms: list[_Pair] = []
    for order, d in (((a, b), forth), ((b, a), back)):
        share, score = _one_share(rows, d, weight, chosen)
        forms.append(_Pair(score, "leak", order, share, nothing))
    share, score = _one_share(rows, forth + back, weight, chosen)
    forms.append(_Pair(score, "swap", (a, b), share, share))
    best = max(forms, key=lambda form: form.score)
    both = best_two_shares(forth, back, weight)
    both_score = 2.0 * both.gain - 2.0 * rows.log_total - chosen
    if both_score > best.score + MIN_SCORE_LEAD:
        best = _Pair(both_score, "confusion", (a, b), both.forth, both.back)
    first, second = best.order
    moved = best.sizes[0] * rows.probs[:, first] - best.back[0] * rows.probs[:, second]
    g = rows.probs.copy()
    g[:, first] -= moved
    g[:, second] += moved
    labels = (p.classes[first], p.classes[second])
    mixture = Mixture(best.model, labels, *best.sizes, *best.back, 1.0, best.score)
    return Fitted(mixture, g)


def _one_share(
    rows: MixtureRows, d: Floats, weight: Floats, chosen: float
) -> tuple[tuple[float, float, float], float]:
    """Return the best share with its interval, and the score of it."""
    share, gain = best_share(d, weight)
    ends = share_interval(d, weight, share)
    return (share, *ends), 2.0 * gain - rows.log_total - chosen


class _Pair(NamedTuple):
    """One form of a pair's confusion: shares from the first class to the second, and back."""

    score: float
    model: Model
    order: tuple[int, int]
    sizes: tuple[float, float, float]
    back: tuple[float, float, float]


class _TwoShares(NamedTuple):
    """Shares of both ways with their intervals, and the gain in log likelihood."""

    forth: tuple[float, float, float]
    back: tuple[float, float, float]
    gain: float


def _sum_by_label(values: Floats, codes: Codes, c: int) -> Floats:
    """Return the sums of the rows of `values` with each label, shape (c, c)."""
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(codes, minlength=c)
    present = np.flatnonzero(counts)
    starts = np.concatenate([[0], np.cumsum(counts[present])[:-1]])
    found = np.zeros((c, c))
    found[present] = np.add.reduceat(values[order], starts, axis=0)
    return found


def best_share(d: Floats, weight: Floats) -> tuple[float, float]:
    """Return the e in [0, 1) that maximises ``sum w log(1 + e d)``, and that maximum.

    By Newton's steps inside a bracket that shrinks: SciPy's optimisers take a tenth of a second to
    import, which ``mcllo assess`` does not pay.
    """
    if len(d) == 0 or weight @ d <= 0.0:
        return 0.0, 0.0
    low, high, share = 0.0, MAX_SHARE, FIRST_SHARE
    for _ in range(MAX_STEPS):
        each = d / (1.0 + share * d)
        slope = float(weight @ each)
        if slope > 0.0:
            low = share
        else:
            high = share
        trial = share + slope / float(weight @ (each * each))
        if not low < trial < high:
            trial = 0.5 * (low + high)
        if abs(trial - share) <= SHARE_TOL * share:
            break
        share = trial
    return share, float(weight @ np.log1p(share * d))


def share_interval(d: Floats, weight: Floats, share: float) -> tuple[float, float]:
    """Return the shares whose likelihood ratio to the best is within chi-square's 95 %."""
    if share == 0.0:
        return 0.0, 0.0
    least = float(weight @ np.log1p(share * d)) - 0.5 * CHI2_95

    def above(e: float) -> float:
        return float(weight @ np.log1p(e * d)) - least

    low = 0.0 if above(0.0) >= 0.0 else _bisect(above, share, 0.0)
    high = 1.0 if above(MAX_SHARE) >= 0.0 else _bisect(above, share, MAX_SHARE)
    return low, high


def _bisect(function: Callable[[float], float], inside: float, outside: float) -> float:
    """Return where a function that is positive `inside` and negative `outside` changes its sign."""
    while abs(outside - inside) > SHARE_TOL * inside:
        middle = 0.5 * (inside + outside)
        if function(middle) >= 0.0:
            inside = middle
        else:
            outside = middle
    return inside


def best_two_shares(forth: Floats, back: Floats, weight: Floats) -> _TwoShares:
    """Return the maximum of ``sum w log(1 + e forth + f back)``, concave in (e, f)."""
    shares = np.zeros(2)
    d = np.stack([forth, back])
    # One share after the other rises without a step size; a dozen rounds are enough for a score.
    for _ in range(12):
        for k in (0, 1):
            rest = 1.0 + shares[1 - k] * d[1 - k]
            shares[k] = best_share(d[k] / rest, weight)[0]
    inside = 1.0 + shares @ d
    scaled = d / inside
    curvature = (scaled * weight) @ scaled.T
    half = Z95 * np.sqrt(np.maximum(np.diagonal(np.linalg.pinv(curvature)), 0.0))
    low = np.maximum(shares - half, 0.0)
    high = np.minimum(shares + half, 1.0)
    forth_size, back_size = (tuple(size.tolist()) for size in np.stack([shares, low, high]).T)
    return _TwoShares(forth_size, back_size, float(weight @ np.log(inside)))


def _percent(value: float) -> str:
    return f"{100.0 * value:.1f} %"


def _range(low: float, high: float) -> str:
    return f"{100.0 * low:.1f} to {100.0 * high:.1f}"


MIN_LAPSES = 5.0
"""Rows that must be lapses, by expectation, for one to be named: one odd row is no rate."""
MAX_DOUBT_PER_LAPSE_RATE = 0.5
"""A row is sure whose 1 - confidence is below this part of the rate of lapses."""
LOG_SLOPE_RANGE = (math.log(0.2), math.log(5.0))
"""Where the slope beside a lapse is sought."""
SLOPE_TOL = 2e-3
"""Of log u: the log likelihood is flat there."""
N_CONFIDENCE_GROUPS = 10
MIN_DOUBT = 1e-6
"""Least 1 - confidence: how far beyond that a prediction is sure says nothing of a trend."""


class _Steep(NamedTuple):
    """A lapse beside a slope, with the interval of its share."""

    slope: float
    share: float
    ends: tuple[float, float]
    log_likelihood: float


def fit_lapse(rows: MixtureRows) -> Fitted | None:
    """Return the better lapse, alone or beside a slope; None where it is next to nothing."""
    p = rows.predictions
    # Not the shares of the labels: these fit a constant prediction to any labels.
    mean_prediction = np.average(rows.probs, axis=0, weights=rows.weight)
    targets = [np.full(p.n_classes, 1.0 / p.n_classes), mean_prediction]
    fits = [best_share(r[rows.codes] / rows.own - 1.0, rows.weight) for r in targets]
    k = int(np.argmax([gain for _, gain in fits]))
    share, gain = fits[k]
    chosen = 2.0 * math.log(len(targets))
    score = 2.0 * gain - rows.log_total - chosen
    if score <= 0.0 or share * rows.total < MIN_LAPSES:
        return None
    steep = _lapse_with_slope(rows, targets[k])
    steep_score = 2.0 * (steep.log_likelihood - rows.log_likelihood) - 2.0 * rows.log_total - chosen
    if steep_score > score + MIN_SCORE_LEAD:
        return _fitted_lapse(rows, targets[k], steep.slope, steep.share, steep.ends, steep_score)
    ends = share_interval(targets[k][rows.codes] / rows.own - 1.0, rows.weight, share)
    return _fitted_lapse(rows, targets[k], 1.0, share, ends, score)


def _lapse_with_slope(rows: MixtureRows, target: Floats) -> _Steep:
    """Return the best slope, with the best lapse at it."""

    def at(log_slope: float, share: float | None = None) -> tuple[float, float]:
        """Return the log likelihood at a slope, and its best share unless one is given."""
        own = np.maximum(rows.of_labels(rows.multiplied(math.exp(log_slope))), TINY)
        log_likelihood = float(rows.weight @ np.log(own))
        d = target[rows.codes] / own - 1.0
        if share is None:
            share, gain = best_share(d, rows.weight)
        else:
            gain = float(rows.weight @ np.log1p(share * d))
        return log_likelihood + gain, share

    log_slope = _golden_section(lambda v: at(v)[0], *LOG_SLOPE_RANGE)
    value, share = at(log_slope)
    # Curvature by differences: a hundredth of the slope and a tenth of the share are far above
    # rounding and far below what the log likelihood bends over.
    step = np.array([0.01, 0.1 * min(share, 1.0 - share)])
    place = np.array([log_slope, share])
    curvature = np.empty((2, 2))
    around = {s: at(*(place + step * s))[0] for s in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1))}
    curvature[0, 0] = 2.0 * value - around[1, 0] - around[-1, 0]
    curvature[1, 1] = 2.0 * value - around[0, 1] - around[0, -1]
    curvature[0, 1] = curvature[1, 0] = around[1, 0] + around[0, 1] - value - around[1, 1]
    variance = float(np.linalg.pinv(curvature)[1, 1])
    half = Z95 * step[1] * math.sqrt(max(variance, 0.0))
    ends = (max(0.0, share - half), min(1.0, share + half))
    return _Steep(math.exp(log_slope), share, ends, value)


def _golden_section(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function with one peak has it, to `SLOPE_TOL`."""
    part = (math.sqrt(5.0) - 1.0) / 2.0
    left = high - part * (high - low)
    right = low + part * (high - low)
    f_left, f_right = function(left), function(right)
    while high - low > SLOPE_TOL:
        if f_left > f_right:
            high, right, f_right = right, left, f_left
            left = high - part * (high - low)
            f_left = function(left)
        else:
            low, left, f_left = left, right, f_right
            right = low + part * (high - low)
            f_right = function(right)
    return 0.5 * (low + high)


def _fitted_lapse(
    rows: MixtureRows,
    target: Floats,
    slope: float,
    share: float,
    ends: tuple[float, float],
    score: float,
) -> Fitted:
    """Return the lapse with its size: how often the most probable class fails by it."""
    x = rows.probs if slope == 1.0 else rows.multiplied(slope).T
    g = (1.0 - share) * x + share * target
    # A lapse may hit the most probable class by chance: then it does not fail.
    top_target = target[rows.probs.argmax(axis=1)]
    fails = 1.0 - float(np.average(top_target, weights=rows.weight))
    nan = math.nan
    sizes = (fails * share, fails * ends[0], fails * ends[1])
    mixture = Mixture("lapse", (), *sizes, nan, nan, nan, slope, score)
    return Fitted(mixture, g, share, target)


def has_sure_rows(rows: MixtureRows, fitted: Fitted) -> bool:
    """Whether there are rows sure enough to see lapses in: else "however sure" is not known."""
    doubt = 1.0 - rows.probs.max(axis=1)
    is_sure = doubt < MAX_DOUBT_PER_LAPSE_RATE * fitted.mixture.share
    return fitted.lapse_share * float(rows.weight @ is_sure) >= MIN_LAPSES


def constant_rate(rows: MixtureRows, fitted: Fitted) -> float:
    """Return the p-value that sure predictions fail at a constant rate: that of the lapse."""
    confidence = rows.probs.max(axis=1)
    top = rows.probs.argmax(axis=1)
    expected = fitted.probs[np.arange(len(top)), top]
    residual = rows.weight * ((rows.codes == top) - expected)
    variance = rows.weight * expected * (1.0 - expected)
    group = equal_parts(confidence, rows.weight, N_CONFIDENCE_GROUPS)
    group_residual = np.bincount(group, residual)
    group_variance = np.bincount(group, variance)
    # The 1 keeps a group that expects next to no failure from deciding alone.
    groups = chi2_sf(float((group_residual**2 / (group_variance + 1.0)).sum()), group.max() + 1)
    return min(1.0, 2.0 * min(groups, _trend(rows, fitted)))


def _trend(rows: MixtureRows, fitted: Fitted) -> float:
    """Return the p-value of Rao's score test: does the share of lapses change with confidence?

    The scores of a row and each label it could have: of the share e, of e as it changes with
    ``z = log(1 - confidence)``, and of the slope u where that was fitted.
    """
    g, share, target = fitted.probs, fitted.lapse_share, fitted.target
    x = (g - share * target) / (1.0 - share)
    logs = rows.logs.T
    z = np.log(np.maximum(1.0 - rows.probs.max(axis=1), MIN_DOUBT))
    of_share = (target - x) / g
    scores = [of_share * (z - z.mean())[:, None], of_share]
    if fitted.mixture.slope != 1.0:
        scores.append((1.0 - share) * x * (logs - (x * logs).sum(axis=1, keepdims=True)) / g)
    every = np.stack(scores)
    information = np.einsum("aij,bij,ij->ab", every, every, g * rows.weight[:, None])
    own = every[:, np.arange(len(g)), rows.codes] @ rows.weight
    covariance = np.linalg.pinv(information)
    # At the estimate the other scores are 0, so that this is the whole quadratic form.
    return chi2_sf(float(own[0] ** 2 * covariance[0, 0]), 1)
