"""Class frequencies of a table of probabilities: shifted, raked, and estimated without labels.

Class frequencies that a recalibration carries over to new rows: learned, kept, known, or
estimated.

x are the predictions of a row, q what the fitted map makes of them; bars are means over the rows
learned from, W their weight, n_j the weight of class j among the labels.

====================  ==========================================================================
prior = "fit"         q itself: the labels' frequencies are learned, as far as the map can
"keep"                shares stay as predicted: ``p ~ q e^r`` with r such that ``mean p = mean x``
frequencies pi        where a map has intercepts, rows learned from count ``pi_y / rho_y`` times,
                      0.01 at least: q is then right for pi, and so are folds, gates and what they
                      promise; ``p ~ q pi / rho'``, rho' the shares that the labels have then (pi,
                      but for the 0.01). Elsewhere ``p ~ q e^d pi / rho``
"unlabelled"          ``p ~ q e^d pi / rho``, pi of largest likelihood for new rows without labels
reference rho         ``(n_j + 1/2) / (W + c / 2)``: the labels' shares
offset d              ``mean q e^d / sum = rho``: next to 0 where a map has intercepts
raking                r and d minimise ``sum_i w_i log sum_j q_ij e^r_j - W t . r``, t the shares
                      that are asked for; convex, Newton's method. Ridge ``3 sqrt(c)`` on d alone
likelihood of pi      ``prod_i sum_j pi_j q_ij e^d_j / rho_j`` (label shift: what rows of a class
                      look like has not changed), by EM: ``pi <- mean of the posteriors``, to which
                      for each new row 0.05 rows with the shares kappa are added: where classes are
                      hardly told apart the likelihood alone would rather have none of some
the model's own       ``kappa ~ rho e^(r - d)``: frequencies at which the answer is that of "keep"
trust t               ``log(pi_j / kappa_j)`` times ``t_j = T^2 / (T^2 + (s_j / pi_j)^2)``, T = 1/2,
                      s the standard error; pi is then divided by its sum. All t are 0 where
                      ``sum_j (log(pi_j / kappa_j) pi_j / s_j)^2 <= c - 1``: refused
its standard errors   of ``G (S'S + m^2 V) G``, ``G = B (B' S'S B)^-1 B'``: S the slopes of the m
                      rows' logarithms in pi, B a basis of changes that sum to 0; of classes with
                      ``pi > 0``
error of the map V    ``sum_k pi_k^2 / n_k C_k``, C_k the covariance of the slopes in class k, by
                      the new rows, which belong to it with the chances ``pi_k S_ik``; n_k labels
kept classes          those that no label has, unless prior = "fit": ``p_j = h_j``, and the others
                      share the rest as q says. h is x after a temperature with a slip
                      (`calibrators/_auto/temperature_with_lapse`), learned from the chances of the
                      classes that labels have, given that it is one of these; x where nothing is
                      recalibrated. Their ``rho_j``, and their share with "keep", is ``mean h_j``;
                      ``pi_j`` where rows learned from count as those to come
test of a shift       Welch's t test of the mean predictions of each class, rows learned from
                      against new rows; smallest p, Bonferroni over the classes of which 5 rows, and
                      5 rows of the others, are expected in both
====================  ==========================================================================

The test looks at predictions alone and needs no map: it asks whether the same kind of rows comes.

With prior = "fit" rows to come are like those learned from, and a class that n of these do not have
loses its mass to the map as any class does that is predicted too often: what the map promises is
promised of that. Whoever knows that a class was removed from the rows to learn from says so by
another prior. What is left of it there is a matter of the model alone, but for its boldness.

The trust is an empirical Bayes factor for a log ratio of shares that is N(0, T^2) before the new
rows are seen. It shrinks to kappa and not to rho, because who asks for "unlabelled" says that rho
is wrong. `docs/explanation/label-shift.md` has what that is worth.

V is what pi would owe to the rows learned from if the slopes were any features of a row, whose
means in each class were estimated from the ``n_k`` labels of it. It is also the influence of the
labels on pi through a map that could take any form; one with few parameters is better known, so
that the standard errors are a little too large for it. It needs neither the rows learned from nor
the covariance of a map, and so holds for every calibrator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from .._fit.linear_fit import transposed_scores
from .._model.kernel import Derivatives
from .._model.newton import minimize
from .._utils.formatting import format_p
from .._utils.parallel import one_blas_thread
from .._utils.results import Floats, Result
from .._utils.statements import warn
from .._validation.predictions import Predictions
from .._validation.probabilities import Simplex
from .._validation.weights import WeightKind
from ..exceptions import InputError, LabelShiftWarning
from ._auto.temperature_with_lapse import ScoredRows, SoftTemperature, fit_soft_temperature
from ._base import Calibrator

OFFSET_RIDGE_SHARE = 1e-9
"""Holds offsets at sum 0; part of the rows' weight."""
MAX_EM_STEPS = 5_000
EM_TOL = 1e-9
PSEUDO_ROW_SHARE = 0.05
"""Rows of the model's own shares that are added to each new row."""
PRIOR_SD_OF_LOG_SHARE_RATIO = 0.5
"""T: standard deviation of the logarithm of what a share is multiplied by. Of .35, .5 and .7 on
170 cases of benchmark sets, learned from 1,000 and 200 rows, none was better everywhere."""
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class ClassShares(Result):
    """Class frequencies estimated from predictions without labels.

    Attributes
    ----------
    shares : ndarray of shape (c,)
        Estimated frequencies, sum 1: between the model's own and the likeliest ones, as far as
        these are known.
    se : ndarray of shape (c,)
        Standard errors of `likeliest`; 0 where that is 0. They include what is not known of the
        map, as if the rows learned from were independent.
    n_samples : int
        Rows they were estimated from.
    n_iter : int
        Steps of EM.
    likeliest : ndarray of shape (c,)
        What the rows say by themselves.
    trust : ndarray of shape (c,)
        How far `shares` go from the model's own frequencies (0) to `likeliest` (1), by logarithms.
    """

    shares: Floats
    se: Floats
    n_samples: int
    n_iter: int
    likeliest: Floats
    trust: Floats

    @property
    def refused(self) -> bool:
        """Whether the rows could not be told from rows with the model's own frequencies."""
        return not self.trust.any()

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> ClassShares:
        """Return the shares that `to_dict` described; files of before have what was likeliest."""
        shares = content["shares"]
        content = {"likeliest": shares, "trust": np.ones(len(shares)), **content}
        names = ("shares", "se", "likeliest", "trust")
        arrays = {name: np.array(content[name], dtype=float) for name in names}
        return cls(**{**content, **arrays})


def match_class_shares(
    q: Floats, shares: Floats, weight: Floats | None = None, ridge: float = 0.0
) -> Floats:
    """Return r, sum 0, such that the weighted mean of ``q e^r / sum`` is `shares`, or nearly so.

    The ridge holds r back where that would take a lot.

    Classes of which `shares` or all of q is 0 get 0.
    """
    offset = np.zeros(len(shares))
    some = np.flatnonzero((shares > 0.0) & (q.max(axis=0, initial=0.0) > 0.0))
    if len(some) < 2:
        return offset
    w = np.ones(len(q)) if weight is None else weight
    total, own = float(w.sum()), np.maximum(q[:, some], TINY)
    target = shares[some] / shares[some].sum()

    def objective(r: Floats) -> Derivatives:
        p = own * np.exp(r - r.max())
        sums = p.sum(axis=1, keepdims=True)
        value = float(w @ np.log(sums[:, 0])) + total * (r.max() - float(target @ r))
        p /= sums
        mean, pull = w @ p, ridge + OFFSET_RIDGE_SHARE * total
        hessian = np.diag(mean + pull) - (p * w[:, None]).T @ p
        gradient = mean - total * target + pull * r
        return Derivatives(value + 0.5 * pull * float(r @ r), gradient, hessian)

    offset[some] = minimize(objective, np.zeros(len(some))).x
    offset[some] -= offset[some].mean()
    return offset


def shift_log_odds(q: Floats, offset: Floats) -> Floats:
    """Return ``q e^offset``, rows divided by their sums; rows whose sum is 0 are left alone."""
    p: Floats = q * np.exp(offset - offset.max())
    sums = p.sum(axis=1, keepdims=True)
    return np.where(sums < TINY, q, p / np.maximum(sums, TINY))


def estimate_class_shares(
    q: Floats, reference: Floats, n_learned: float = np.inf, own: Floats | None = None
) -> ClassShares:
    """Return class frequencies of rows q that are right for those of `reference`.

    q were learned from `n_learned` rows; infinitely many take them as known. `own` are the model's
    own frequencies, by default the reference.
    """
    some = np.flatnonzero(reference > 0.0)
    ratio = q[:, some] / reference[some]
    centre = (reference if own is None else own)[some]
    shares = centre = centre / centre.sum()
    n_iter = 0
    moved = np.inf
    while moved > EM_TOL and n_iter < MAX_EM_STEPS:
        joint = ratio * shares
        joint /= np.maximum(joint.sum(axis=1, keepdims=True), TINY)
        last = shares
        shares = (joint.mean(axis=0) + PSEUDO_ROW_SHARE * centre) / (1.0 + PSEUDO_ROW_SHARE)
        moved, n_iter = float(np.abs(shares - last).max()), n_iter + 1
    inside = np.flatnonzero(shares > 1e-6)
    slopes = ratio[:, inside] / np.maximum(ratio @ shares, TINY)[:, None]
    errors = np.zeros(len(some))
    errors[inside] = _errors_of_shares(slopes, shares[inside], n_learned * reference[some][inside])
    # Empirical Bayes: a change that is small beside its error is taken back, most of it.
    change, change_se = np.log(shares / centre), errors / shares
    known = np.flatnonzero(change_se > 0.0)
    wald = float(((change[known] / change_se[known]) ** 2).sum())
    trust = np.zeros(len(some))
    if wald > len(some) - 1.0:
        trust[known] = PRIOR_SD_OF_LOG_SHARE_RATIO**2 / (
            PRIOR_SD_OF_LOG_SHARE_RATIO**2 + change_se[known] ** 2
        )
    shrunk = centre * np.exp(trust * change)
    full = np.zeros((4, len(reference)))
    full[:, some] = shrunk / shrunk.sum(), errors, shares, trust
    return ClassShares(full[0], full[1], len(q), n_iter, full[2], full[3])


def _errors_of_shares(slopes: Floats, shares: Floats, n_labels: Floats) -> Floats:
    """Return the standard errors of the module's card; `n_labels` are those learned from."""
    basis = np.eye(len(shares))[:, 1:]
    basis[0] = -1.0  # changes that sum to 0
    information = slopes.T @ slopes
    known = basis @ np.linalg.pinv(basis.T @ information @ basis) @ basis.T
    # Row i belongs to class k with chance pi_k S_ik; sums over rows of these, for one pi_k:
    in_class = np.maximum(slopes.sum(axis=0), TINY)
    means = (slopes / in_class).T @ slopes  # of the slopes, in each class
    class_weight = shares**2 / n_labels
    row_weight = slopes @ (class_weight / in_class)
    of_map = (slopes * row_weight[:, None]).T @ slopes - (means.T * class_weight) @ means
    covariance = known + len(slopes) ** 2 * known @ of_map @ known
    return np.sqrt(np.maximum(np.diagonal(covariance), 0.0))


PRIORS = ("fit", "keep", "unlabelled")
WARNING_LEVEL = 0.01
"""Level of the warning. Nobody asked for this test and every call makes it, so one in twenty would
be too often."""
WARNING_Z = 2.57
"""Standard errors of the rows learned from alone below which no p is below `WARNING_LEVEL`: one
class, were it the only one and the new rows endless, would need 2.576."""
MIN_EXPECTED_ROWS = 5.0
"""Rows of a class, and of all others, expected below which the class is not tested: means of few
and skewed predictions are not normal."""
OFFSET_RIDGE = 3.0  # on d, for each root of c
LABEL_PSEUDO_COUNT = 0.5  # rows that are added to each class of the labels
MIN_CLASS_WEIGHT = 0.01
"""How often a row of a class that hardly ever comes counts at least: its map must exist."""
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class ShiftTest(Result):
    """Whether new rows have other class shares than the rows learned from, by their predictions.

    Attributes
    ----------
    pvalue : float
        Of the class whose mean prediction differs most clearly, times the number of classes tested
        (of two classes one, the other says the same); NaN where no class has enough rows.
    z : ndarray of shape (c,)
        Difference of the mean predictions, new less old, in standard errors; NaN where not tested.
    old, new : ndarray of shape (c,)
        The mean predictions.
    """

    pvalue: float
    z: Floats
    old: Floats
    new: Floats

    def rejects(self, alpha: float = 0.05) -> bool:
        """Whether a shift is shown at level `alpha`."""
        return bool(self.pvalue < alpha)


@dataclass(frozen=True, eq=False)
class Learned(Result):
    """What is known of the rows learned from.

    Attributes
    ----------
    predicted, variances : ndarray of shape (c,)
        Mean and variance of the predictions; variances are NaN for rows in groups.
    weight : float
        W.
    reference : ndarray of shape (c,)
        rho.
    kept : tuple of int
        Columns of classes that no label has, and that keep their probability h.
    offset : ndarray of shape (c,)
        What is added to ``log q``: r for "keep", d for frequencies; 0 for "fit".
    tempered : SoftTemperature or None
        What h is made by; None leaves it as predicted.
    own : ndarray of shape (c,) or None
        kappa; None unless the frequencies of new rows are to be estimated.
    """

    predicted: Floats
    variances: Floats
    weight: float
    reference: Floats
    kept: tuple[int, ...]
    offset: Floats
    tempered: SoftTemperature | None = None
    own: Floats | None = None

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Learned:
        """Return what `to_dict` described; None stands for NaN."""
        names = ("predicted", "variances", "reference", "offset")
        arrays = {name: np.array(content[name], dtype=float) for name in names}
        soft = content.get("tempered")  # files of before it was there kept what was predicted
        tempered = None if soft is None else SoftTemperature(**soft)
        own = None if content.get("own") is None else np.array(content["own"], dtype=float)
        kept = tuple(content["kept"])
        return cls(**{**content, **arrays, "kept": kept, "tempered": tempered, "own": own})


def check_prior(prior: Any, n_classes: int | None = None) -> str | Floats:
    """Return one of `PRIORS`, or frequencies as an array that sums to 1."""
    if isinstance(prior, str):
        if prior not in PRIORS:
            known = ", ".join(repr(name) for name in PRIORS)
            rule = f"be one of {known}, or the frequency of each class"
            raise InputError(argument="prior", rule=rule, value=prior)
        return prior
    try:
        shares = np.array(prior, dtype=np.float64)
    except (TypeError, ValueError):
        shares = np.array(np.nan)
    if shares.ndim != 1 or not np.isfinite(shares).all() or (shares < 0.0).any():
        rule = "hold a frequency, finite and not negative, for each class"
        raise InputError(argument="prior", rule=rule, value=prior)
    if n_classes is not None and len(shares) != n_classes:
        rule = f"hold a frequency for each of the {n_classes} classes"
        raise InputError(argument="prior", rule=rule, value=prior)
    if abs(shares.sum() - 1.0) > 1e-6:
        remedy = "Divide counts by their sum."
        raise InputError(argument="prior", rule="sum to 1", value=prior, remedy=remedy)
    return shares / shares.sum()


def _estimate_frequencies(q: Floats, learned: Learned) -> ClassShares:
    """Return the frequencies of rows q, and warn where they could not be told."""
    found = estimate_class_shares(q, learned.reference, learned.weight, learned.own)
    if found.refused:
        message = (
            "prior='unlabelled': the class shares of these rows cannot be told from the model's "
            "own, which are used, as with prior='keep'."
        )
        numbers = {"rows": found.n_samples, "estimate": found.likeliest, "se": found.se}
        warn(LabelShiftWarning(message, numbers=numbers))
    return found


def _reference(predictions: Predictions) -> Floats:
    """Return rho."""
    counts = predictions.class_weight
    return np.asarray(
        (counts + LABEL_PSEUDO_COUNT) / (counts.sum() + LABEL_PSEUDO_COUNT * len(counts)),
        dtype=np.float64,
    )


def _row_weights_for_prior(predictions: Predictions, shares: Floats) -> Floats:
    """Return how often rows of each class count for those to come."""
    return np.maximum(shares / _reference(predictions), MIN_CLASS_WEIGHT)


def _temperature_without(predictions: Predictions, kept: tuple[int, ...]) -> SoftTemperature | None:
    """Return the temperature of the other classes, given that it is one of them; None for one.

    That a label is none of `kept` was decided by who chose the rows, so it is no evidence against
    the predictions: fitted to all columns a temperature would take it for some.
    """
    others = np.delete(np.arange(predictions.n_classes), kept)
    if len(others) < 2:
        return None
    rows = np.flatnonzero(predictions.row_weight > 0.0)
    places = np.searchsorted(others, predictions.codes[rows])
    scores = transposed_scores(predictions)[np.ix_(others, rows)]
    weight = predictions.sample_weight
    return fit_soft_temperature(
        ScoredRows(scores, places, None if weight is None else weight[rows])
    )


def _replace_kept_shares(shares: Floats, kept: tuple[int, ...], held: Floats) -> Floats:
    """Return `shares` with `held` for the kept classes; the others share the rest as they did."""
    columns = list(kept)
    found = shares.copy()
    found[columns] = 0.0
    found *= max(1.0 - float(held.sum()), EPS) / found.sum()
    found[columns] = np.maximum(held, EPS)
    return found


def shift_test(learned: Learned, probs: Floats, mean: Floats | None = None) -> ShiftTest:
    """Return the test of the module's card (Welch 1947); `mean` is that of `probs`, if known."""
    from scipy.special import stdtr

    n = len(probs)
    new = _mean(probs) if mean is None else mean
    old = learned.predicted
    n_expected = np.minimum(learned.weight * old, n * new)
    n_others = np.minimum(learned.weight * (1.0 - old), n * (1.0 - new))
    enough = np.minimum(n_expected, n_others) >= MIN_EXPECTED_ROWS
    z = np.full(len(new), np.nan)
    if not enough.any():
        return ShiftTest(np.nan, z, old, new)
    new_variances = np.maximum(_mean(probs * probs) - new * new, 0.0)
    new_error = new_variances / (n - 1.0)
    old_error = learned.variances / (learned.weight - 1.0)
    error = new_error + old_error  # squared, of the difference
    tested = np.flatnonzero(enough & (error > 0.0))
    if len(tested) == 0:
        return ShiftTest(np.nan, z, old, new)
    z[tested] = (new - old)[tested] / np.sqrt(error[tested])
    spent = new_error**2 / (n - 1.0) + old_error**2 / (learned.weight - 1.0)
    freedom = error[tested] ** 2 / spent[tested]  # degrees of freedom (Satterthwaite)
    pvalues = 2.0 * stdtr(freedom, -np.abs(z[tested]))
    n_tests = 1 if len(z) == 2 else len(tested)  # two classes say the same
    return ShiftTest(min(1.0, n_tests * float(pvalues.min())), z, old, new)


def _mean(probs: Floats) -> Floats:
    """Return the columns' means: by a product, in a fifth of the time."""
    with one_blas_thread(probs.size):
        return np.full(len(probs), 1.0 / max(len(probs), 1)) @ probs


class PriorCalibrator(Calibrator):
    """Base of calibrators that say which class frequencies new rows have.

    Attributes
    ----------
    learned_ : Learned or None
        What is known of the rows learned from; None where they were never in memory.
    new_shares_ : ClassShares or None
        Frequencies that `adapt` found.
    """

    prior: str | Sequence[float]
    learned_: Learned | None
    new_shares_: ClassShares | None
    _warns_of_shift = True
    _has_intercepts = True

    def _check_prior(self) -> None:
        check_prior(self.prior)

    def predict_proba(self, X: Any = None, *, logits: Any = None) -> Floats:
        """Return recalibrated probabilities of X, or of `logits`; columns as in `classes_`.

        With ``prior="unlabelled"``, unless `adapt` was called, class frequencies are estimated from
        the rows of this call.
        """
        simplex = self._rows(X, logits)
        if self._prior_kind == "fit" and self._warns_of_shift:
            self._warn_of_shift(simplex.probs)
        return self._with_prior(self._apply(simplex), simplex)

    def adapt(self, X: Any) -> Self:
        """Estimate the class frequencies of new rows without labels (``prior="unlabelled"``).

        `new_shares_` then has them with their standard errors, and predictions use them. Where the
        rows do not tell their frequencies from the model's own, these are used, as with
        ``prior="keep"``: `new_shares_.refused` and a `LabelShiftWarning` say so.
        """
        if self._prior_kind != "unlabelled":
            raise InputError(argument="prior", rule="be 'unlabelled' for adapt", value=self.prior)
        simplex = self._rows(X)
        learned = self._require_learned()
        q = shift_log_odds(self._kept_mass(self._apply(simplex), simplex), learned.offset)
        self.new_shares_ = _estimate_frequencies(q, learned)
        return self

    def shift_test(self, X: Any) -> ShiftTest:
        """Test whether rows X have other class shares than the rows learned from."""
        return shift_test(self._require_learned(), self._rows(X).probs)

    def for_stream(self) -> Self:
        """Return the same calibrator for rows that come part by part: it does not test for shift.

        Class frequencies of rows that are not all there cannot be estimated from them: with
        ``prior="unlabelled"`` `adapt` must have been called.
        """
        if self._prior_kind == "unlabelled" and self.new_shares_ is None:
            raise InputError(
                "prior='unlabelled' asks for the class frequencies of all rows together.",
                remedy="Call adapt with rows in memory first, and save the calibrator after it.",
            )
        other = super().for_stream()
        other._warns_of_shift = False
        return other

    @property
    def is_plain(self) -> bool:
        """Whether the map alone is applied: no frequencies but those that it learned."""
        return self._prior_kind == "fit" and (self.learned_ is None or not self.learned_.kept)

    @property
    def _prior_kind(self) -> str:
        """One of `PRIORS`, or "frequencies"."""
        return self.prior if isinstance(self.prior, str) else "frequencies"

    def _require_learned(self) -> Learned:
        if self.learned_ is None:
            raise InputError(
                f"prior={self.prior!r} needs what a fit to rows in memory knows of them.",
                remedy="Fit again with all rows in memory.",
            )
        return self.learned_

    def _reweight_to_prior(self, predictions: Predictions) -> Predictions:
        """Return the rows as often as their classes come, in all as many, where that is known."""
        shares = check_prior(self.prior, predictions.n_classes)
        if isinstance(shares, str) or not self._has_intercepts:
            return predictions
        times = _row_weights_for_prior(predictions, shares)[predictions.codes]
        weight = times if predictions.sample_weight is None else times * predictions.sample_weight
        weight *= float(predictions.class_weight.sum()) / float(weight.sum())
        kind: WeightKind = "survey" if predictions.weight_kind == "survey" else "importance"
        return replace(predictions, sample_weight=weight, weight_kind=kind)

    def _learn_prior(self, predictions: Predictions) -> None:
        """Set `learned_` after the map itself was learned."""
        shares = check_prior(self.prior, predictions.n_classes)
        x, weight = predictions.probs, predictions.sample_weight
        total = float(predictions.class_weight.sum())
        mean = (np.ones(len(x)) if weight is None else weight) @ x / total
        squares = x if weight is None else x * weight[:, None]
        squares = np.einsum("ij,ij->j", squares, x) / total
        variances = np.maximum(squares - mean**2, 0.0)  # of numbers in [0, 1]: little is cancelled
        if predictions.groups is not None or predictions.weight_kind != "frequency":
            variances = np.full(len(mean), np.nan)  # rows that are no independent ones
        kept: tuple[int, ...] = ()
        if self._prior_kind != "fit":
            kept = tuple(np.flatnonzero(predictions.class_weight == 0.0).tolist())
        tempered = (
            _temperature_without(predictions, kept) if kept and self._recalibrations else None
        )
        reference = _reference(predictions)
        as_to_come = self._has_intercepts and not isinstance(shares, str)
        if as_to_come and not isinstance(shares, str):
            reference = reference * _row_weights_for_prior(predictions, shares)
            reference /= reference.sum()
        self.new_shares_ = None
        offset = np.zeros(len(mean))
        self.learned_ = Learned(mean, variances, total, reference, kept, offset, tempered)
        if self._prior_kind == "fit" or (as_to_come and not kept):
            return
        simplex = self._rows(predictions)
        as_predicted = mean
        if kept:
            row_weight = np.ones(len(x)) if weight is None else weight
            held = row_weight @ self._kept_probs(simplex)[:, list(kept)] / total
            # Rows that count as they will come ask nothing of a class they lack: h is right for it.
            of_reference = np.asarray(shares)[list(kept)] if as_to_come else held
            reference = _replace_kept_shares(reference, kept, of_reference)
            as_predicted = _replace_kept_shares(mean, kept, held)
            self.learned_ = replace(self.learned_, reference=reference)
        if as_to_come:
            return
        q = self._kept_mass(self._apply(simplex), simplex)
        to_predicted = match_class_shares(q, as_predicted, weight)
        if self._prior_kind == "keep":
            self.learned_ = replace(self.learned_, offset=to_predicted)
            return
        offset = match_class_shares(q, reference, weight, OFFSET_RIDGE * np.sqrt(len(mean)))
        own = None
        if self._prior_kind == "unlabelled":
            own = np.maximum(reference * np.exp(to_predicted - offset), EPS)
            own /= own.sum()
        self.learned_ = replace(self.learned_, offset=offset, own=own)

    @property
    def _recalibrations(self) -> bool:
        """Whether the map changes predictions."""
        return True

    def _kept_probs(self, simplex: Simplex) -> Floats:
        """Return h."""
        soft = None if self.learned_ is None else self.learned_.tempered
        if soft is None:
            return simplex.probs
        g, _ = soft.both(transposed_scores(simplex))
        return np.ascontiguousarray(g.T)

    def _kept_mass(self, q: Floats, simplex: Simplex) -> Floats:
        """Return q with h for kept classes; rows whose rest is 0 are h, whole."""
        kept = [] if self.learned_ is None else list(self.learned_.kept)
        if not kept:
            return q
        q, h = q.copy(), self._kept_probs(simplex)
        q[:, kept] = 0.0
        sums = q.sum(axis=1, keepdims=True)
        q *= (1.0 - h[:, kept].sum(axis=1, keepdims=True)) / np.maximum(sums, TINY)
        q[:, kept] = h[:, kept]
        return np.where(sums < TINY, h, q)  # NaN stays: a load must see it

    def _with_prior(self, q: Floats, simplex: Simplex) -> Floats:
        """Return q for the class frequencies that are asked for."""
        q = self._kept_mass(q, simplex)
        if self._prior_kind == "fit":
            return q
        learned = self._require_learned()
        q = shift_log_odds(q, learned.offset)
        if self._prior_kind == "keep":
            return q
        if self._prior_kind == "unlabelled":
            found = self.new_shares_
            found = _estimate_frequencies(q, learned) if found is None else found
            shares: Floats = found.shares
        else:
            shares = np.asarray(check_prior(self.prior, q.shape[1]))
        with np.errstate(divide="ignore"):
            return shift_log_odds(q, np.log(shares) - np.log(learned.reference))

    def _warn_of_shift(self, probs: Floats) -> None:
        """Warn where the test of a shift rejects at `WARNING_LEVEL`."""
        learned = self.__dict__.get("learned_")
        if learned is None or len(probs) < 2 * MIN_EXPECTED_ROWS:
            return
        mean = _mean(probs)
        away = mean - learned.predicted
        # The means alone rule most shifts out; without them the test would be half of the time.
        if not (away * away * learned.weight > WARNING_Z**2 * learned.variances).any():
            return
        test = shift_test(learned, probs, mean)
        if not test.rejects(WARNING_LEVEL):
            return
        worst = int(np.nanargmax(np.abs(test.z)))
        message = (
            "these rows have other class shares than those learned from; the map carries over the "
            "frequencies it learned. Where these changed, use prior='keep', prior='unlabelled' or "
            "the frequencies themselves."
        )
        label, old, new = self.classes_[worst], float(test.old[worst]), float(test.new[worst])
        detail = (
            f"{message} Class {label!r} is predicted with {new:.3g} on average, there with "
            f"{old:.3g} (p {format_p(test.pvalue)})."
        )
        numbers = {"class": label, "learned": old, "here": new, "pvalue": test.pvalue}
        warn(LabelShiftWarning(message, detail=detail, numbers=numbers))

    def _prior_state(self) -> dict[str, Any]:
        """Return what is saved beside the map."""
        learned, found = self.learned_, self.new_shares_
        state: dict[str, Any] = {"learned": None, "new_shares": None}
        if learned is not None:
            variances = learned.variances if np.isfinite(learned.variances).all() else None
            state["learned"] = {**learned.to_dict(), "variances": variances}
        if found is not None:
            state["new_shares"] = found.to_dict()
        return state

    def _restore_prior(self, state: dict[str, Any]) -> None:
        """Take back what `_prior_state` returned; files of before have none."""
        learned, found = state.get("learned"), state.get("new_shares")
        if learned is not None and learned["variances"] is None:
            learned = {**learned, "variances": [np.nan] * len(learned["predicted"])}
        self.learned_ = None if learned is None else Learned.from_dict(learned)
        self.new_shares_ = None if found is None else ClassShares.from_dict(found)
