"""Explanations that are no shift or slope: labels that mix with others, or follow no prediction.

=============  =================================================================================
leak a -> b    ``g_a = (1 - e) x_a``, ``g_b = x_b + e x_a``: what should be a is labelled b
swap a, b      both ways with the same e
confusion      both ways, each with a share of its own
lapse          ``g = (1 - e) x + e r``, r uniform or the mean prediction: some labels follow no
               prediction, and sure predictions fail at a constant rate
with slope     a lapse around ``softmax(u log x)``, beside one temperature, where that is better by
               `MIN_SCORE_LEAD`
log ratio      ``sum_i w_i log(1 + e d_i)``, ``d_i = g_{y_i} / x_{y_i} - 1`` at ``e = 1``: concave
               in e, so that a maximum is a root of its slope
score          ``2 log likelihood ratio - df log n - 2 log m``: BIC, less what it takes to say
               which of the m explanations of its kind is meant
leaves         what a lapse leaves: hits in groups of rows by confidence, against chi-square; Rao's
               score test of a share e that changes with confidence
=============  =================================================================================

Labels that are wrong at random are a lapse, and so is a model that is sure of what nobody can know.
One temperature pays for the few rows in which it fails with the sharpness of all others.

Explanations are compared by their scores. If one of two is true, the other is k times likelier with
a probability of at most ``1 / k`` (Royall 1997, section 1.4; exactly so where nothing is
estimated): `MIN_SCORE_LEAD` is that of k = 20. Which of them is named is decided in
`_diagnostics/attribution`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from .._inference.goodness_of_fit import equal_weight_parts
from .._inference.likelihood_tests import chi2_sf
from .._model.kernel import softmax_in_place
from .._model.temperature import fit_inverse_temperature
from .._utils.formatting import ellipsis
from .._utils.results import Codes, Floats, Result
from .._utils.statements import Statement
from .._validation.predictions import Predictions
from .nested_models import Z95

Model = Literal["lapse", "leak", "swap", "confusion"]
MIN_SCORE_LEAD = 2.0 * math.log(20.0)
"""Difference of scores from which one explanation is preferred: 20 times likelier."""
MAX_ENTRIES = 1_000_000
"""Rows times classes that explanations are fitted to (a round number); of more rows some are taken
at random."""
MAX_SHARE = 1.0 - 1e-9  # at a share of 1 rows may have probability 0
SHARE_TOL = 1e-6
"""Relative; far below what a share of so many rows is known to."""
MIN_LAPSES = 5.0
"""Rows that must be lapses, by expectation, for one to be named: one odd row is no rate."""
TINY = 1e-300
"""Least probability, so that it has a logarithm."""


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
        if self.model == "lapse":
            return Statement(
                "attribution.lapse", self._lapse_text(), "bad", self.to_dict()
            )
        return Statement("attribution.pair", self._pair_text(), "bad", self.to_dict())

    def _lapse_text(self) -> str:
        words = (
            f"Sure predictions fail, however sure they are: in about {_percent(self.share)} of the "
            f"rows ({_percent_range(self.low, self.high)}), as if their labels followed no "
            "prediction. No temperature mends that, and no single class stands out: look for "
            "wrong labels, or recalibrate with mcllo.AutoCalibrator, which keeps probabilities "
            "away from 1."
        )
        if self.slope == 1.0:
            return words
        how = "overconfident" if self.slope < 1.0 else "underconfident"
        return f"{words} Beside that, all classes are {how}, alike."

    def _pair_text(self) -> str:
        first, second = (repr(ellipsis(label)) for label in self.labels)
        share = f"about {_percent(self.share)} ({_percent_range(self.low, self.high)})"
        if self.model == "swap":
            words = (
                f"{first} and {second} are confused: of the rows that should be one of them, "
                f"{share} have the label of the other."
            )
        else:
            other_way = ""
            if self.model == "confusion":
                interval = _percent_range(self.back_low, self.back_high)
                back = f"about {_percent(self.back)} ({interval})"
                other_way = f", and {back} the other way"
            words = (
                f"{first} is confused with {second}: of the rows that should be {first}, {share} "
                f"have the label {second}{other_way}."
            )
        return (
            f"{words} All else agrees with the labels. No temperature and no shift mends that: "
            "look at the labels of these two, or recalibrate with mcllo.AutoCalibrator."
        )


@dataclass(frozen=True, eq=False)
class FittedMixture:
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
        max_rows = max(1000, MAX_ENTRIES // predictions.n_classes)
        if predictions.n_samples > max_rows:
            rng = np.random.default_rng([seed, 4])
            picked = rng.choice(predictions.n_samples, max_rows, replace=False)
            predictions = predictions.take(np.sort(picked))
        self.predictions = predictions
        self.codes = predictions.codes
        self.weight = predictions.row_weight
        self.total = float(self.weight.sum())
        self.log_total = math.log(self.total)
        self.probs = np.maximum(predictions.probs, TINY)
        self.logs = np.log(self.probs.T)
        self.own = self.values_of_labels(self.probs.T)
        self.log_likelihood = float(self.weight @ np.log(self.own))

    def values_of_labels(self, values: Floats) -> Floats:
        """Return each row's value of the class that came true; `values` have shape (c, n)."""
        return values[self.codes, np.arange(len(self.codes))]

    def score(self, gain: float, df: int, n_explanations: float = 1.0) -> float:
        """Return the score of the best of `n_explanations` by its log likelihood ratio `gain`."""
        return 2.0 * gain - df * self.log_total - 2.0 * math.log(n_explanations)

    def scale_log_probs(self, slope: float) -> Floats:
        """Return ``softmax(slope log x)``, shape (c, n)."""
        g = slope * self.logs
        softmax_in_place(g)
        return g

    def scale_predictions(self, slope: float) -> Predictions:
        """Return the predictions whose logits are multiplied by `slope`."""
        probs = np.ascontiguousarray(self.scale_log_probs(slope).T)
        return replace(self.predictions, probs=probs, logits=None)

    def best_temperature_score(self) -> float:
        """Return the score of one slope for all classes, the best."""
        weight = self.predictions.sample_weight
        fitted = fit_inverse_temperature(self.logs.copy(), self.codes, weight)
        return self.slope_score(fitted.value)

    def slope_score(self, slope: float) -> float:
        """Return the score of this slope for all classes."""
        own = np.maximum(self.values_of_labels(self.scale_log_probs(slope)), TINY)
        log_likelihood = float(self.weight @ np.log(own))
        return self.score(log_likelihood - self.log_likelihood, df=1)

    def slope_interval(
        self, excluded: frozenset[int], slope: float
    ) -> tuple[float, float, float]:
        """Return a slope that was fitted without the classes `excluded`, with its 95 % interval."""
        kept = np.array([j for j in range(len(self.logs)) if j not in excluded])
        rows = np.flatnonzero(np.isin(self.codes, kept))
        logs = self.logs[np.ix_(kept, rows)]
        q = slope * logs
        softmax_in_place(q)
        # Fisher information of a slope: the variance of the log probabilities under the model.
        mean = (q * logs).sum(axis=0)
        variance = (q * logs**2).sum(axis=0) - mean**2
        information = float(self.weight[rows] @ variance)
        half_width = Z95 / math.sqrt(max(information, TINY))
        return slope, slope - half_width, slope + half_width


class Share(NamedTuple):
    """A share with its 95 % interval."""

    value: float
    low: float
    high: float


ZERO_SHARE = Share(0.0, 0.0, 0.0)


def fit_confused_pair(rows: MixtureRows) -> FittedMixture | None:
    """Return the pair of classes whose confusion explains most; None where none explains."""
    c = rows.predictions.n_classes
    gains = _largest_gain_of_pairs(rows).ravel()
    # The grid orders pairs by their gain well enough that the best is among the first three.
    candidates = np.argsort(-gains, kind="stable")[:3].tolist()
    found = []
    for i in candidates:
        if gains[i] > 0.0:
            a, b = divmod(i, c)
            found.append(_fit_confusion(rows, a, b))
    if not found:
        return None
    return max(found, key=lambda fitted: fitted.mixture.score)


def _largest_gain_of_pairs(rows: MixtureRows) -> Floats:
    """Return for each pair a < b the best gain of the forms on a grid of shares: (c, c)."""
    c = rows.predictions.n_classes
    counts = rows.predictions.class_weight
    ratio = rows.probs / rows.own[:, None]
    best = np.zeros((c, c))
    for share in (
        0.01,
        0.03,
        0.1,
        0.3,
    ):  # log likelihood ratios are flat in the share's logarithm
        swapped = rows.weight[:, None] * np.log1p(share * (ratio - 1.0))
        leaked = rows.weight[:, None] * np.log1p(share * ratio)
        # [y, b]: what the rows with label y gain by the exchange with b, by a leak from b.
        exchange = _sum_rows_by_label(swapped, rows.codes, c)
        gained = _sum_rows_by_label(leaked, rows.codes, c)
        swap = exchange + exchange.T
        leak = gained.T + counts[:, None] * math.log1p(-share)  # [a, b]: from a to b
        best_form = np.maximum(swap, np.maximum(leak, leak.T))
        best = np.maximum(best, best_form)
    return np.triu(best, 1)


def _fit_confusion(rows: MixtureRows, a: int, b: int) -> FittedMixture:
    """Return the best of both leaks, the swap, and the confusion of both shares."""
    c = rows.predictions.n_classes
    classes = rows.predictions.classes
    rows_a = np.flatnonzero(rows.codes == a)
    rows_b = np.flatnonzero(rows.codes == b)
    ratio_a = rows.probs[rows_a, b] / rows.own[rows_a]  # x_b / x_a where the label is a
    ratio_b = rows.probs[rows_b, a] / rows.own[rows_b]
    weight = np.concatenate([rows.weight[rows_a], rows.weight[rows_b]])
    # Derivatives of g_y / x_y in the share of a -> b and of b -> a.
    forth = np.concatenate([np.full(len(rows_a), -1.0), ratio_b])
    back = np.concatenate([ratio_a, np.full(len(rows_b), -1.0)])
    n_explanations = 3.0 * c * (c - 1) / 2.0  # two leaks and a swap of each pair

    forms: list[tuple[Model, tuple[int, int], Floats]] = [
        ("leak", (a, b), forth),
        ("leak", (b, a), back),
        ("swap", (a, b), forth + back),
    ]
    pairs = []
    for model, order, d in forms:
        share, gain = _fit_share_with_interval(d, weight)
        score = rows.score(gain, 1, n_explanations)
        other_way = share if model == "swap" else ZERO_SHARE
        pairs.append(_ConfusionForm(score, model, order, share, other_way))
    best = max(pairs, key=lambda pair: pair.score)
    both = maximise_over_two_shares(forth, back, weight)
    both_score = rows.score(both.gain, 2, n_explanations)
    if both_score > best.score + MIN_SCORE_LEAD:
        best = _ConfusionForm(both_score, "confusion", (a, b), both.forth, both.back)

    first, second = best.order
    leaves_first = best.forth.value * rows.probs[:, first]
    comes_back = best.back.value * rows.probs[:, second]
    moved = leaves_first - comes_back
    g = rows.probs.copy()
    g[:, first] -= moved
    g[:, second] += moved
    mixture = Mixture(
        model=best.model,
        labels=(classes[first], classes[second]),
        share=best.forth.value,
        low=best.forth.low,
        high=best.forth.high,
        back=best.back.value,
        back_low=best.back.low,
        back_high=best.back.high,
        slope=1.0,
        score=best.score,
    )
    return FittedMixture(mixture, g)


def _fit_share_with_interval(
    change_per_share: Floats, weight: Floats
) -> tuple[Share, float]:
    """Return the best share with its interval, and its gain in log likelihood."""
    share, gain = maximise_over_share(change_per_share, weight)
    low, high = likelihood_interval_of_share(change_per_share, weight, share)
    return Share(share, low, high), gain


class _ConfusionForm(NamedTuple):
    """One form of a pair's confusion: shares from the first class to the second, and back."""

    score: float
    model: Model
    order: tuple[int, int]
    forth: Share
    back: Share


class _SharesOfBothWays(NamedTuple):
    """Shares of both ways with their intervals, and the gain in log likelihood."""

    forth: Share
    back: Share
    gain: float


def _sum_rows_by_label(values: Floats, codes: Codes, c: int) -> Floats:
    """Return the sums of the rows of `values` with each label, shape (c, c)."""
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(codes, minlength=c)
    # `reduceat` would give a row for labels that do not occur: the next label's first row.
    present = np.flatnonzero(counts)
    starts = np.concatenate([[0], np.cumsum(counts[present])[:-1]])
    sums = np.zeros((c, c))
    sums[present] = np.add.reduceat(values[order], starts, axis=0)
    return sums


def maximise_over_share(
    change_per_share: Floats, weight: Floats
) -> tuple[float, float]:
    """Return the e in [0, 1) that maximises ``sum w log(1 + e d)``, and that maximum.

    d is `change_per_share`: how a row's likelihood ratio changes with the share.

    By Newton's steps inside a bracket that shrinks: SciPy's optimisers take a tenth of a second to
    import, which ``mcllo assess`` does not pay.
    """
    if len(change_per_share) == 0 or weight @ change_per_share <= 0.0:
        return 0.0, 0.0
    low = 0.0
    high = MAX_SHARE
    share = 0.02
    for _ in range(100):
        terms = change_per_share / (1.0 + share * change_per_share)
        slope = float(weight @ terms)
        curvature = float(weight @ (terms * terms))
        if slope > 0.0:
            low = share
        else:
            high = share
        trial = share + slope / curvature
        if not low < trial < high:
            trial = 0.5 * (low + high)
        if abs(trial - share) <= SHARE_TOL * share:
            break
        share = trial
    return share, float(weight @ np.log1p(share * change_per_share))


def likelihood_interval_of_share(
    change_per_share: Floats, weight: Floats, share: float
) -> tuple[float, float]:
    """Return the shares whose likelihood ratio to the best is within chi-square's 95 %."""
    if share == 0.0:
        return 0.0, 0.0
    least = float(weight @ np.log1p(share * change_per_share)) - 0.5 * Z95**2

    def above(e: float) -> float:
        return float(weight @ np.log1p(e * change_per_share)) - least

    low = 0.0
    if above(0.0) < 0.0:
        low = _find_sign_change(above, share, 0.0)
    high = 1.0
    if above(MAX_SHARE) < 0.0:
        high = _find_sign_change(above, share, MAX_SHARE)
    return low, high


def _find_sign_change(
    function: Callable[[float], float], inside: float, outside: float
) -> float:
    """Return where a function that is positive `inside` and negative `outside` changes its sign."""
    while abs(outside - inside) > SHARE_TOL * inside:
        middle = 0.5 * (inside + outside)
        if function(middle) >= 0.0:
            inside = middle
        else:
            outside = middle
    return inside


def maximise_over_two_shares(
    forth: Floats, back: Floats, weight: Floats
) -> _SharesOfBothWays:
    """Return the maximum of ``sum w log(1 + e forth + f back)``, concave in (e, f)."""
    d = np.stack([forth, back])
    shares = np.zeros(2)
    # One share after the other rises without a step size; a dozen rounds are enough for a score.
    for _ in range(12):
        for k in (0, 1):
            other = 1 - k
            given_other = 1.0 + shares[other] * d[other]
            shares[k], _ = maximise_over_share(d[k] / given_other, weight)
    ratio = 1.0 + shares @ d
    scores = d / ratio
    information = (scores * weight) @ scores.T
    variance = np.maximum(np.diagonal(np.linalg.pinv(information)), 0.0)
    half_width = Z95 * np.sqrt(variance)
    low = np.maximum(shares - half_width, 0.0)
    high = np.minimum(shares + half_width, 1.0)
    first, second = np.stack([shares, low, high]).T.tolist()
    gain = float(weight @ np.log(ratio))
    return _SharesOfBothWays(Share(*first), Share(*second), gain)


def _percent(value: float) -> str:
    return f"{100.0 * value:.1f} %"


def _percent_range(low: float, high: float) -> str:
    return f"{100.0 * low:.1f} to {100.0 * high:.1f}"


class _LapseFit(NamedTuple):
    """A lapse beside a slope."""

    score: float
    slope: float
    share: Share


def fit_lapse(rows: MixtureRows) -> FittedMixture | None:
    """Return the better lapse, alone or beside a slope; None where it is next to nothing."""
    n_classes = rows.predictions.n_classes
    uniform = np.full(n_classes, 1.0 / n_classes)
    # Not the shares of the labels: these fit a constant prediction to any labels.
    mean_prediction = np.average(rows.probs, axis=0, weights=rows.weight)
    targets = [uniform, mean_prediction]
    changes = [target[rows.codes] / rows.own - 1.0 for target in targets]
    fits = [maximise_over_share(d, rows.weight) for d in changes]
    k = int(np.argmax([gain for _, gain in fits]))
    share, gain = fits[k]
    score = rows.score(gain, 1, len(targets))
    if score <= 0.0 or share * rows.total < MIN_LAPSES:
        return None
    with_slope = _fit_lapse_with_slope(rows, targets[k], len(targets))
    if with_slope.score > score + MIN_SCORE_LEAD:
        return _apply_lapse(rows, targets[k], with_slope)
    low, high = likelihood_interval_of_share(changes[k], rows.weight, share)
    alone = _LapseFit(score, slope=1.0, share=Share(share, low, high))
    return _apply_lapse(rows, targets[k], alone)


def _fit_lapse_with_slope(
    rows: MixtureRows, target: Floats, n_targets: int
) -> _LapseFit:
    """Return the best slope, with the best lapse at it."""

    def terms(log_slope: float) -> tuple[float, Floats]:
        """Return the log likelihood without a lapse, and each row's change per share."""
        tempered = rows.scale_log_probs(math.exp(log_slope))
        own = np.maximum(rows.values_of_labels(tempered), TINY)
        log_likelihood = float(rows.weight @ np.log(own))
        d = target[rows.codes] / own - 1.0
        return log_likelihood, d

    def best_at(log_slope: float) -> tuple[float, float]:
        """Return the log likelihood with the best share at a slope, and that share."""
        log_likelihood, d = terms(log_slope)
        share, gain = maximise_over_share(d, rows.weight)
        return log_likelihood + gain, share

    def profile(log_slope: float) -> float:
        return best_at(log_slope)[0]

    def joint(log_slope: float, share: float) -> float:
        log_likelihood, d = terms(log_slope)
        return log_likelihood + float(rows.weight @ np.log1p(share * d))

    log_slope = _maximise_by_golden_section(profile, math.log(0.2), math.log(5.0))
    middle, share = best_at(log_slope)
    # Curvature by differences, in units of these steps: a hundredth of the slope and a tenth of the
    # share are far above rounding and far below what the log likelihood bends over.
    up_slope = log_slope + 0.01
    share_step = 0.1 * min(share, 1.0 - share)
    up_share = share + share_step
    higher_slope = joint(up_slope, share)
    lower_slope = joint(log_slope - 0.01, share)
    higher_share = joint(log_slope, up_share)
    lower_share = joint(log_slope, share - share_step)
    both_higher = joint(up_slope, up_share)
    cross = higher_slope + higher_share - middle - both_higher
    information = np.array(
        [
            [2.0 * middle - higher_slope - lower_slope, cross],
            [cross, 2.0 * middle - higher_share - lower_share],
        ]
    )
    variance = float(np.linalg.pinv(information)[1, 1])
    half_width = Z95 * share_step * math.sqrt(max(variance, 0.0))
    low = max(0.0, share - half_width)
    high = min(1.0, share + half_width)
    score = rows.score(middle - rows.log_likelihood, 2, n_targets)
    return _LapseFit(score, math.exp(log_slope), Share(share, low, high))


def _maximise_by_golden_section(
    function: Callable[[float], float], low: float, high: float
) -> float:
    """Return where a function with one peak has it.

    To 0.002, which is a fifth of a percent of a slope whose logarithm is sought: the log likelihood
    is flat there. Not SciPy's, for the reason in `maximise_over_share`.
    """
    part = (math.sqrt(5.0) - 1.0) / 2.0
    left = high - part * (high - low)
    right = low + part * (high - low)
    f_left = function(left)
    f_right = function(right)
    while high - low > 2e-3:
        if f_left > f_right:
            high = right
            right = left
            f_right = f_left
            left = high - part * (high - low)
            f_left = function(left)
        else:
            low = left
            left = right
            f_left = f_right
            right = low + part * (high - low)
            f_right = function(right)
    return 0.5 * (low + high)


def _apply_lapse(rows: MixtureRows, target: Floats, lapse: _LapseFit) -> FittedMixture:
    """Return the lapse with its size: how often the most probable class fails by it."""
    x = rows.probs
    if lapse.slope != 1.0:
        x = rows.scale_log_probs(lapse.slope).T
    share = lapse.share.value
    g = (1.0 - share) * x + share * target
    # A lapse may hit the most probable class by chance: then it does not fail.
    target_of_top = target[rows.probs.argmax(axis=1)]
    fails = 1.0 - float(np.average(target_of_top, weights=rows.weight))
    mixture = Mixture(
        model="lapse",
        labels=(),
        share=fails * share,
        low=fails * lapse.share.low,
        high=fails * lapse.share.high,
        back=math.nan,
        back_low=math.nan,
        back_high=math.nan,
        slope=lapse.slope,
        score=lapse.score,
    )
    return FittedMixture(mixture, g, share, target)


def has_confident_rows(rows: MixtureRows, fitted: FittedMixture) -> bool:
    """Whether there are rows sure enough to see lapses in: else "however sure" is not known."""
    doubt = 1.0 - rows.probs.max(axis=1)
    # A row is sure that expects to fail at most half as often as lapses let it.
    is_sure = doubt < 0.5 * fitted.mixture.share
    expected_lapses = fitted.lapse_share * float(rows.weight @ is_sure)
    return expected_lapses >= MIN_LAPSES


def constant_lapse_rate_pvalue(rows: MixtureRows, fitted: FittedMixture) -> float:
    """Return the p-value that sure predictions fail at a constant rate: that of the lapse."""
    confidence = rows.probs.max(axis=1)
    top = rows.probs.argmax(axis=1)
    expected = fitted.probs[np.arange(len(top)), top]
    residual = rows.weight * ((rows.codes == top) - expected)
    variance = rows.weight * expected * (1.0 - expected)
    group = equal_weight_parts(confidence, rows.weight, 10)
    group_residual = np.bincount(group, residual)
    group_variance = np.bincount(group, variance)
    # The 1 keeps a group that expects next to no failure from deciding alone.
    statistic = float((group_residual**2 / (group_variance + 1.0)).sum())
    pvalue_of_groups = chi2_sf(statistic, group.max() + 1)
    # Bonferroni: the groups see any departure, the trend the likeliest one sooner.
    return min(1.0, 2.0 * min(pvalue_of_groups, _lapse_trend_pvalue(rows, fitted)))


def _lapse_trend_pvalue(rows: MixtureRows, fitted: FittedMixture) -> float:
    """Return the p-value of Rao's score test: does the share of lapses change with confidence?

    The scores of a row and each label it could have: of the share e, of e as it changes with
    ``z = log(1 - confidence)``, and of the slope u where that was fitted.
    """
    g = fitted.probs
    share = fitted.lapse_share
    target = fitted.target
    x = (g - share * target) / (1.0 - share)
    # How far beyond 0.999999 a prediction is sure says nothing of a trend.
    doubt = np.maximum(1.0 - rows.probs.max(axis=1), 1e-6)
    z = np.log(doubt)
    share_score = (target - x) / g
    trend_score = share_score * (z - z.mean())[:, None]
    scores = [trend_score, share_score]
    if fitted.mixture.slope != 1.0:
        logs = rows.logs.T
        mean_log = (x * logs).sum(axis=1, keepdims=True)
        scores.append((1.0 - share) * x * (logs - mean_log) / g)
    all_scores = np.stack(scores)
    information = np.einsum(
        "aij,bij,ij->ab", all_scores, all_scores, g * rows.weight[:, None]
    )
    observed = trend_score[np.arange(len(g)), rows.codes] @ rows.weight
    # At the estimate the other scores are 0, so that this is the whole quadratic form.
    variance_inverse = np.linalg.pinv(information)[0, 0]
    return chi2_sf(float(observed**2 * variance_inverse), 1)
