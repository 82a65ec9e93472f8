"""Class frequencies that a repair carries over to new rows: learned, kept, known, or estimated.

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
                      for each new row 0.05 rows with the shares rho are added: where classes are
                      hardly told apart the likelihood alone would rather have none of some
its standard errors   ``B (B' J'J B)^-1 B'``, J the slopes of the rows' logarithms in pi, B a basis
                      of changes that sum to 0; of classes with ``pi > 0``
kept classes          no label has them though chance would have given them one (``exp(-W xbar_j) <
                      0.01 / c``): ``p_j = x_j``, and the others share the rest as q says
test of a shift       largest ``|z_j|`` of mean predictions, rows learned from against new rows;
                      p by Bonferroni over the classes with 5 rows expected in both
====================  ==========================================================================

The test looks at predictions alone and needs no map: it asks whether the same kind of rows comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from .._ground.results import Floats, Result
from .._ground.statements import warn
from .._ground.text import format_p
from .._ground.threads import one_blas_thread
from .._input.predictions import Predictions
from .._input.weights import WeightKind
from .._math.kernel import Terms
from .._math.newton import minimize
from ..exceptions import InputError, LabelShiftWarning
from ._base import Calibrator

PRIORS = ("fit", "keep", "unlabelled")
LEVEL, EXPECTED, CHANCE = 1e-5, 5.0, 0.01
"""Level of the warning; rows of a class expected below which it is not tested; chance of no label
below which, for all classes together, a class counts as removed."""
SURE = 4.4
"""Standard errors of the rows learned from alone below which no p is below `LEVEL`: one class, were
it the only one, would need 4.417."""
RIDGE = 1e-9
"""Holds offsets at sum 0; part of the rows' weight."""
OWN, HALF = 3.0, 0.5
"""Ridge on d for each root of c; rows that are added to each class of the labels."""
EM_STEPS, EM_TOL = 5_000, 1e-9
LEAST = 0.01
"""How often a row of a class that hardly ever comes counts at least: its map must exist."""
PSEUDO = 0.05
"""Rows of the reference's shares that are added to each new row."""
TINY, EPS = float(np.finfo(np.float64).tiny), float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class ClassShares(Result):
    """Class frequencies estimated from predictions without labels.

    Attributes
    ----------
    shares : ndarray of shape (c,)
        Estimated frequencies, sum 1.
    se : ndarray of shape (c,)
        Their standard errors, given the map; 0 where a share is 0.
    n_samples : int
        Rows they were estimated from.
    n_iter : int
        Steps of EM.
    """

    shares: Floats
    se: Floats
    n_samples: int
    n_iter: int

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> ClassShares:
        """Return the shares that `to_dict` described."""
        arrays = {name: np.array(content[name], dtype=float) for name in ("shares", "se")}
        return cls(**{**content, **arrays})


@dataclass(frozen=True, eq=False)
class ShiftTest(Result):
    """Whether new rows have other class shares than the rows learned from, by their predictions.

    Attributes
    ----------
    pvalue : float
        Of the class whose mean prediction differs most, times the number of classes tested; NaN
        where no class has enough rows.
    z : ndarray of shape (c,)
        Difference of the mean predictions, new less old, in standard errors; NaN where not tested.
    old, new : ndarray of shape (c,)
        The mean predictions.
    """

    pvalue: float
    z: Floats
    old: Floats
    new: Floats


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
        Columns of classes that were removed and keep their predictions.
    offset : ndarray of shape (c,)
        What is added to ``log q``: r for "keep", d for frequencies; 0 for "fit".
    """

    predicted: Floats
    variances: Floats
    weight: float
    reference: Floats
    kept: tuple[int, ...]
    offset: Floats

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Learned:
        """Return what `to_dict` described; None stands for NaN."""
        names = ("predicted", "variances", "reference", "offset")
        arrays = {name: np.array(content[name], dtype=float) for name in names}
        return cls(**{**content, **arrays, "kept": tuple(content["kept"])})


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


def raked(q: Floats, shares: Floats, weight: Floats | None = None, ridge: float = 0.0) -> Floats:
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

    def objective(r: Floats) -> Terms:
        p = own * np.exp(r - r.max())
        sums = p.sum(axis=1, keepdims=True)
        value = float(w @ np.log(sums[:, 0])) + total * (r.max() - float(target @ r))
        p /= sums
        mean, pull = w @ p, ridge + RIDGE * total
        hessian = np.diag(mean + pull) - (p * w[:, None]).T @ p
        gradient = mean - total * target + pull * r
        return Terms(value + 0.5 * pull * float(r @ r), gradient, hessian)

    offset[some] = minimize(objective, np.zeros(len(some))).x
    offset[some] -= offset[some].mean()
    return offset


def shifted(q: Floats, offset: Floats) -> Floats:
    """Return ``q e^offset``, rows divided by their sums; rows whose sum is 0 are left alone."""
    p: Floats = q * np.exp(offset - offset.max())
    sums = p.sum(axis=1, keepdims=True)
    return np.where(sums < TINY, q, p / np.maximum(sums, TINY))


def estimated_shares(q: Floats, reference: Floats) -> ClassShares:
    """Return the likeliest class frequencies of rows q that are right for those of `reference`."""
    some = np.flatnonzero(reference > 0.0)
    ratio = q[:, some] / reference[some]
    shares = start = reference[some] / reference[some].sum()
    n_iter = 0
    moved = np.inf
    while moved > EM_TOL and n_iter < EM_STEPS:
        joint = ratio * shares
        joint /= np.maximum(joint.sum(axis=1, keepdims=True), TINY)
        last, shares = shares, (joint.mean(axis=0) + PSEUDO * start) / (1.0 + PSEUDO)
        moved, n_iter = float(np.abs(shares - last).max()), n_iter + 1
    slopes = ratio / np.maximum(ratio @ shares, TINY)[:, None]
    inside = np.flatnonzero(shares > 1e-6)
    errors, basis = np.zeros(len(some)), np.eye(len(inside))[:, 1:]
    basis[0] = -1.0  # changes that sum to 0
    information = slopes[:, inside].T @ slopes[:, inside]
    covariance = basis @ np.linalg.pinv(basis.T @ information @ basis) @ basis.T
    errors[inside] = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    full = np.zeros((2, len(reference)))
    full[:, some] = shares, errors
    return ClassShares(full[0], full[1], len(q), n_iter)


def _reference(predictions: Predictions) -> Floats:
    """Return rho."""
    counts = predictions.class_weight
    return np.asarray((counts + HALF) / (counts.sum() + HALF * len(counts)), dtype=np.float64)


def _times(predictions: Predictions, shares: Floats) -> Floats:
    """Return how often rows of each class count for those to come."""
    return np.maximum(shares / _reference(predictions), LEAST)


def shift_test(learned: Learned, probs: Floats) -> ShiftTest:
    """Return the test of the module's card."""
    from scipy.special import ndtr

    n, mean, square = len(probs), _mean(probs), _mean(probs * probs)
    spread = np.maximum(square - mean * mean, 0.0) / max(n, 1) + learned.variances / learned.weight
    enough = np.minimum(learned.predicted * learned.weight, mean * n) >= EXPECTED
    tested, z, p = enough & (spread > 0.0), np.full(len(mean), np.nan), np.nan
    if tested.any():
        z[tested] = (mean - learned.predicted)[tested] / np.sqrt(spread[tested])
        p = min(1.0, 2.0 * tested.sum() * float(ndtr(-np.abs(z[tested]).max())))
    return ShiftTest(float(p), z, learned.predicted, mean)


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
    _keeps_removed = False
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
        return self._with_prior(self._apply(simplex), simplex.probs)

    def adapt(self, X: Any) -> Self:
        """Estimate the class frequencies of new rows without labels (``prior="unlabelled"``).

        `new_shares_` then has them with their standard errors, and predictions use them.
        """
        if self._prior_kind != "unlabelled":
            raise InputError(argument="prior", rule="be 'unlabelled' for adapt", value=self.prior)
        simplex = self._rows(X)
        learned = self._known()
        q = self._kept_mass(self._apply(simplex), simplex.probs)
        self.new_shares_ = estimated_shares(shifted(q, learned.offset), learned.reference)
        return self

    def shift_test(self, X: Any) -> ShiftTest:
        """Test whether rows X have other class shares than the rows learned from."""
        return shift_test(self._known(), self._rows(X).probs)

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

    def _known(self) -> Learned:
        if self.learned_ is None:
            raise InputError(
                f"prior={self.prior!r} needs what a fit to rows in memory knows of them.",
                remedy="Fit again with all rows in memory.",
            )
        return self.learned_

    def _as_to_come(self, predictions: Predictions) -> Predictions:
        """Return the rows as often as their classes come, in all as many, where that is known."""
        shares = check_prior(self.prior, predictions.n_classes)
        if isinstance(shares, str) or not self._has_intercepts:
            return predictions
        times = _times(predictions, shares)[predictions.codes]
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
        if self._keeps_removed or self._prior_kind != "fit":
            gone = predictions.class_weight == 0.0
            gone &= np.exp(-total * mean) < CHANCE / len(mean)
            kept = tuple(np.flatnonzero(gone).tolist())
        reference = _reference(predictions)
        as_to_come = self._has_intercepts and not isinstance(shares, str)
        if as_to_come and not isinstance(shares, str):
            reference = reference * _times(predictions, shares)
            reference /= reference.sum()
        if kept:
            held = mean[list(kept)].sum()
            reference *= max(1.0 - held, EPS) / np.delete(reference, kept).sum()
            reference[list(kept)] = mean[list(kept)]
        self.new_shares_ = None
        offset = np.zeros(len(mean))
        self.learned_ = Learned(mean, variances, total, reference, kept, offset)
        if self._prior_kind == "fit" or as_to_come:
            return
        q = self._kept_mass(self._apply(self._rows(predictions)), x)
        exact = self._prior_kind == "keep"
        ridge = 0.0 if exact else OWN * np.sqrt(len(mean))
        found = raked(q, mean if exact else reference, weight, ridge)
        self.learned_ = replace(self.learned_, offset=found)

    def _kept_mass(self, q: Floats, probs: Floats) -> Floats:
        """Return q with removed classes as predicted; rows whose rest is 0 as predicted, whole."""
        kept = [] if self.learned_ is None else list(self.learned_.kept)
        if not kept:
            return q
        q = q.copy()
        q[:, kept] = 0.0
        sums = q.sum(axis=1, keepdims=True)
        q *= (1.0 - probs[:, kept].sum(axis=1, keepdims=True)) / np.maximum(sums, TINY)
        q[:, kept] = probs[:, kept]
        return np.where(sums < TINY, probs, q)  # NaN stays: a load must see it

    def _with_prior(self, q: Floats, probs: Floats) -> Floats:
        """Return q for the class frequencies that are asked for."""
        q = self._kept_mass(q, probs)
        if self._prior_kind == "fit":
            return q
        learned = self._known()
        q = shifted(q, learned.offset)
        if self._prior_kind == "keep":
            return q
        if self._prior_kind == "unlabelled":
            found = self.new_shares_
            found = estimated_shares(q, learned.reference) if found is None else found
            shares: Floats = found.shares
        else:
            shares = np.asarray(check_prior(self.prior, q.shape[1]))
        with np.errstate(divide="ignore"):
            return shifted(q, np.log(shares) - np.log(learned.reference))

    def _warn_of_shift(self, probs: Floats) -> None:
        """Warn where the mean predictions differ by more than chance."""
        learned = self.__dict__.get("learned_")
        if learned is None or len(probs) < 2 * EXPECTED:
            return
        away = _mean(probs) - learned.predicted
        if not (away * away * learned.weight > SURE**2 * learned.variances).any():
            return
        test = shift_test(learned, probs)
        if not test.pvalue < LEVEL:
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
