"""Class frequencies that a recalibration carries over to new rows: learned, kept, known, estimated.

x are the predictions of a row, q what the fitted map makes of them; bars are means over the rows
learned from, W their weight, n_j the weight of class j among the labels. Raking (r, d) and EM (pi)
are those of `calibrators/_class_shares`.

====================  ==========================================================================
prior = "fit"         q itself: the labels' frequencies are learned, as far as the map can
"keep"                shares stay as predicted: ``p ~ q e^r`` with r such that ``mean p = mean x``
frequencies pi        where a map has intercepts, rows learned from count ``pi_y / rho_y`` times,
                      0.01 at least: q is then right for pi, and so are folds, gates and what they
                      promise; ``p ~ q pi / rho'``, rho' the shares that the labels have then (pi,
                      but for the 0.01). Elsewhere ``p ~ q e^d pi / rho``
"unlabelled"          ``p ~ q e^d pi / rho``, pi of largest likelihood for new rows without labels
reference rho         ``(n_j + 1/2) / (W + c / 2)``: the labels' shares
offset d              ``mean q e^d / sum = rho``: next to 0 where a map has intercepts; raking with
                      a ridge of ``3 sqrt(c)``
the model's own       ``kappa ~ rho e^(r - d)``: frequencies at which the answer is that of "keep"
kept classes          those that no label has, unless prior = "fit": ``p_j = h_j``, and the others
                      share the rest as q says. h is x after a temperature with a lapse rate
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
another prior. What is left of it there is a matter of the model alone, but for its overconfidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._fit.linear_fit import transposed_scores
from .._utils.formatting import format_pvalue
from .._utils.linalg import TINY
from .._utils.parallel import one_blas_thread
from .._utils.results import Floats, Result
from .._utils.statements import warn
from .._validation.predictions import Predictions
from .._validation.probabilities import Simplex
from .._validation.weights import WeightKind
from ..exceptions import InputError, LabelShiftWarning
from ._base import Calibrator
from ._class_shares import (
    ClassShares,
    estimate_class_shares,
    match_class_shares,
    shift_log_odds,
)

if TYPE_CHECKING:
    from ._auto.temperature_with_lapse import TemperatureWithLapse

PRIORS = ("fit", "keep", "unlabelled")
WARNING_LEVEL = 0.01
"""Level of the warning. Nobody asked for this test and every call makes it, so one in twenty would
be too often."""
WARNING_Z = 2.57
"""Standard errors of the rows learned from alone below which no p is below `WARNING_LEVEL`: one
class, were it the only one and the new rows endless, would need 2.576."""
MIN_EXPECTED_ROWS = 5.0
"""Rows of a class, and of all others, expected below which the class is not tested: means of few
and skewed predictions are not normal. The usual rule for tables of counts."""
# rows that are added to each class of the labels, as by Jeffreys' prior
LABEL_PSEUDO_COUNT = 0.5
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
    tempered : TemperatureWithLapse or None
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
    tempered: TemperatureWithLapse | None = None
    own: Floats | None = None

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Learned:
        """Return what `to_dict` described; None stands for NaN."""
        tempered = content.get(
            "tempered"
        )  # files of before it was there kept what was predicted
        own = content.get("own")
        return cls(
            predicted=np.array(content["predicted"], dtype=float),
            variances=np.array(content["variances"], dtype=float),
            weight=content["weight"],
            reference=np.array(content["reference"], dtype=float),
            kept=tuple(content["kept"]),
            offset=np.array(content["offset"], dtype=float),
            tempered=None if tempered is None else _restore_temperature(tempered),
            own=None if own is None else np.array(own, dtype=float),
        )


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


def _estimate_new_class_shares(q: Floats, learned: Learned) -> ClassShares:
    """Return the frequencies of rows q, and warn where they could not be told."""
    estimate = estimate_class_shares(q, learned.reference, learned.weight, learned.own)
    if estimate.refused:
        message = (
            "prior='unlabelled': the class shares of these rows cannot be told from the model's "
            "own, which are used, as with prior='keep'."
        )
        numbers = {
            "rows": estimate.n_samples,
            "estimate": estimate.likeliest,
            "se": estimate.se,
        }
        warn(LabelShiftWarning(message, numbers=numbers))
    return estimate


def _reference_shares(predictions: Predictions) -> Floats:
    """Return rho."""
    counts = predictions.class_weight + LABEL_PSEUDO_COUNT
    return np.asarray(counts / counts.sum(), dtype=np.float64)


def _row_weights_for_prior(predictions: Predictions, shares: Floats) -> Floats:
    """Return how often rows of each class count for those to come.

    0.01 times at least, a round number: the map of a class that hardly ever comes must exist.
    """
    return np.maximum(shares / _reference_shares(predictions), 0.01)


def _restore_temperature(state: dict[str, float]) -> TemperatureWithLapse:
    # loaded when needed, as for `_temperature_without_classes`: only classes that keep their share
    # have one
    from ._auto.temperature_with_lapse import TemperatureWithLapse

    return TemperatureWithLapse(**state)


def _temperature_without_classes(
    predictions: Predictions, kept: tuple[int, ...]
) -> TemperatureWithLapse | None:
    """Return the temperature of the other classes, given that it is one of them; None for one.

    That a label is none of `kept` was decided by who chose the rows, so it is no evidence against
    the predictions: fitted to all columns a temperature would take it for some.
    """
    from ._auto.temperature_with_lapse import ScoredRows, fit_temperature_with_lapse

    others = np.delete(np.arange(predictions.n_classes), kept)
    if len(others) < 2:
        return None
    rows = np.flatnonzero(predictions.row_weight > 0.0)
    places = np.searchsorted(others, predictions.codes[rows])
    scores = transposed_scores(predictions)[np.ix_(others, rows)]
    weight = None
    if predictions.sample_weight is not None:
        weight = predictions.sample_weight[rows]
    return fit_temperature_with_lapse(ScoredRows(scores, places, weight))


def _replace_kept_shares(shares: Floats, kept: tuple[int, ...], held: Floats) -> Floats:
    """Return `shares` with `held` for the kept classes; the others share the rest as they did."""
    columns = list(kept)
    left_for_others = max(1.0 - float(held.sum()), EPS)
    replaced = shares.copy()
    replaced[columns] = 0.0
    replaced *= left_for_others / replaced.sum()
    replaced[columns] = np.maximum(held, EPS)
    return replaced


def shift_test(
    learned: Learned, probs: Floats, mean: Floats | None = None
) -> ShiftTest:
    """Return the test of the module's table; `mean` is that of `probs`, if known.

    Two samples of unequal variances: Welch (1947), Biometrika 34, 28-35.
    """
    from scipy.special import stdtr

    n = len(probs)
    new = _column_means(probs) if mean is None else mean
    old = learned.predicted
    n_expected = np.minimum(learned.weight * old, n * new)
    n_others = np.minimum(learned.weight * (1.0 - old), n * (1.0 - new))
    has_enough = np.minimum(n_expected, n_others) >= MIN_EXPECTED_ROWS
    z = np.full(len(new), np.nan)
    if not has_enough.any():
        return ShiftTest(np.nan, z, old, new)

    new_variance = np.maximum(_column_means(probs * probs) - new * new, 0.0)
    new_squared_error = new_variance / (n - 1.0)
    old_squared_error = learned.variances / (learned.weight - 1.0)
    squared_error = new_squared_error + old_squared_error  # of the difference
    tested = np.flatnonzero(has_enough & (squared_error > 0.0))
    if len(tested) == 0:
        return ShiftTest(np.nan, z, old, new)
    difference = new - old
    z[tested] = difference[tested] / np.sqrt(squared_error[tested])

    # Degrees of freedom by Satterthwaite.
    spent_by_new = new_squared_error**2 / (n - 1.0)
    spent_by_old = old_squared_error**2 / (learned.weight - 1.0)
    spent = spent_by_new + spent_by_old
    df = squared_error[tested] ** 2 / spent[tested]
    pvalues = 2.0 * stdtr(df, -np.abs(z[tested]))
    n_tests = 1 if len(z) == 2 else len(tested)  # two classes say the same
    pvalue = n_tests * float(pvalues.min())
    return ShiftTest(min(1.0, pvalue), z, old, new)


def _column_means(probs: Floats) -> Floats:
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
        simplex = self._validate_rows(X, logits)
        if self._prior_kind == "fit" and self._warns_of_shift:
            self._warn_of_shift(simplex.probs)
        return self._adjust_to_prior(self._apply(simplex), simplex)

    def adapt(self, X: Any) -> Self:
        """Estimate the class frequencies of new rows without labels (``prior="unlabelled"``).

        `new_shares_` then has them with their standard errors, and predictions use them. Where the
        rows do not tell their frequencies from the model's own, these are used, as with
        ``prior="keep"``: `new_shares_.refused` and a `LabelShiftWarning` say so.
        """
        if self._prior_kind != "unlabelled":
            raise InputError(
                argument="prior", rule="be 'unlabelled' for adapt", value=self.prior
            )
        simplex = self._validate_rows(X)
        learned = self._require_learned()
        q = self._with_kept_class_probs(self._apply(simplex), simplex)
        q = shift_log_odds(q, learned.offset)
        self.new_shares_ = _estimate_new_class_shares(q, learned)
        return self

    def shift_test(self, X: Any) -> ShiftTest:
        """Test whether rows X have other class shares than the rows learned from."""
        return shift_test(self._require_learned(), self._validate_rows(X).probs)

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
        return self._prior_kind == "fit" and (
            self.learned_ is None or not self.learned_.kept
        )

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
        times = _row_weights_for_prior(predictions, shares)
        weight = times[predictions.codes] * predictions.row_weight
        weight *= float(predictions.class_weight.sum()) / float(weight.sum())
        kind: WeightKind = (
            "survey" if predictions.weight_kind == "survey" else "importance"
        )
        return replace(predictions, sample_weight=weight, weight_kind=kind)

    def _learn_prior(self, predictions: Predictions) -> None:
        """Set `learned_` after the map itself was learned."""
        self.new_shares_ = None
        kept: tuple[int, ...] = ()
        if self._prior_kind != "fit":
            kept = tuple(np.flatnonzero(predictions.class_weight == 0.0).tolist())
        self.learned_ = self._summarize_rows(predictions, kept)
        are_rows_as_to_come = self._prior_kind == "frequencies" and self._has_intercepts
        if self._prior_kind == "fit" or (are_rows_as_to_come and not kept):
            return

        simplex = self._validate_rows(predictions)
        weight = predictions.row_weight
        reference = self.learned_.reference
        as_predicted = self.learned_.predicted
        if kept:
            held = (
                weight
                @ self._kept_class_probs(simplex)[:, list(kept)]
                / self.learned_.weight
            )
            held_of_reference = held
            if (
                are_rows_as_to_come
            ):  # which ask nothing of a class they lack: h is right for it
                held_of_reference = np.asarray(check_prior(self.prior))[list(kept)]
            reference = _replace_kept_shares(reference, kept, held_of_reference)
            as_predicted = _replace_kept_shares(as_predicted, kept, held)
            self.learned_ = replace(self.learned_, reference=reference)
        if are_rows_as_to_come:
            return

        q = self._with_kept_class_probs(self._apply(simplex), simplex)
        to_predicted = match_class_shares(q, as_predicted, weight)  # r
        if self._prior_kind == "keep":
            self.learned_ = replace(self.learned_, offset=to_predicted)
            return
        ridge = 3.0 * np.sqrt(
            len(reference)
        )  # as on the intercepts of look-alike classes
        to_reference = match_class_shares(q, reference, weight, ridge)  # d
        own = None
        if self._prior_kind == "unlabelled":
            own = np.maximum(reference * np.exp(to_predicted - to_reference), EPS)
            own /= own.sum()
        self.learned_ = replace(self.learned_, offset=to_reference, own=own)

    def _summarize_rows(
        self, predictions: Predictions, kept: tuple[int, ...]
    ) -> Learned:
        """Return what the rows say before their frequencies are matched."""
        x = predictions.probs
        weight = predictions.row_weight
        total = float(predictions.class_weight.sum())
        mean = weight @ x / total
        mean_square = weight @ (x * x) / total
        variances = np.maximum(
            mean_square - mean**2, 0.0
        )  # x in [0, 1]: little is cancelled
        if predictions.groups is not None or predictions.weight_kind != "frequency":
            variances = np.full(
                len(mean), np.nan
            )  # of rows that are not independent ones

        shares = check_prior(self.prior, predictions.n_classes)
        reference = _reference_shares(predictions)
        if self._has_intercepts and not isinstance(shares, str):
            reference = reference * _row_weights_for_prior(predictions, shares)
            reference /= reference.sum()
        tempered = None
        if kept and self._changes_predictions:
            tempered = _temperature_without_classes(predictions, kept)
        no_offset = np.zeros(len(mean))
        return Learned(mean, variances, total, reference, kept, no_offset, tempered)

    @property
    def _changes_predictions(self) -> bool:
        """Whether the map changes predictions."""
        return True

    def _kept_class_probs(self, simplex: Simplex) -> Floats:
        """Return h."""
        soft = None if self.learned_ is None else self.learned_.tempered
        if soft is None:
            return simplex.probs
        g, _ = soft.probs_and_logs(transposed_scores(simplex))
        return np.ascontiguousarray(g.T)

    def _with_kept_class_probs(self, q: Floats, simplex: Simplex) -> Floats:
        """Return q with h for kept classes; rows whose rest is 0 are h, whole."""
        kept = [] if self.learned_ is None else list(self.learned_.kept)
        if not kept:
            return q
        h = self._kept_class_probs(simplex)
        q = q.copy()
        q[:, kept] = 0.0
        row_sums = q.sum(axis=1, keepdims=True)
        left_for_others = 1.0 - h[:, kept].sum(axis=1, keepdims=True)
        q *= left_for_others / np.maximum(row_sums, TINY)
        q[:, kept] = h[:, kept]
        return np.where(row_sums < TINY, h, q)  # NaN stays: a load must see it

    def _adjust_to_prior(self, q: Floats, simplex: Simplex) -> Floats:
        """Return q for the class frequencies that are asked for."""
        q = self._with_kept_class_probs(q, simplex)
        if self._prior_kind == "fit":
            return q
        learned = self._require_learned()
        q = shift_log_odds(q, learned.offset)
        if self._prior_kind == "keep":
            return q
        if self._prior_kind == "unlabelled":
            estimate = self.new_shares_
            if estimate is None:
                estimate = _estimate_new_class_shares(q, learned)
            shares: Floats = estimate.shares
        else:
            shares = np.asarray(check_prior(self.prior, q.shape[1]))
        with np.errstate(divide="ignore"):  # a class that does not come has share 0
            offset = np.log(shares) - np.log(learned.reference)
        return shift_log_odds(q, offset)

    def _warn_of_shift(self, probs: Floats) -> None:
        """Warn where the test of a shift rejects at `WARNING_LEVEL`."""
        learned = getattr(self, "learned_", None)
        if learned is None or len(probs) < 2 * MIN_EXPECTED_ROWS:
            return
        mean = _column_means(probs)
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
        label = self.classes_[worst]
        old = float(test.old[worst])
        new = float(test.new[worst])
        detail = (
            f"{message} Class {label!r} is predicted with {new:.3g} on average, there with "
            f"{old:.3g} (p {format_pvalue(test.pvalue)})."
        )
        numbers = {"class": label, "learned": old, "here": new, "pvalue": test.pvalue}
        warn(LabelShiftWarning(message, detail=detail, numbers=numbers))

    def _prior_state(self) -> dict[str, Any]:
        """Return what is saved beside the map."""
        state: dict[str, Any] = {"learned": None, "new_shares": None}
        if self.learned_ is not None:
            learned = self.learned_.to_dict()
            if not np.isfinite(self.learned_.variances).all():
                learned["variances"] = None  # JSON has no NaN
            state["learned"] = learned
        if self.new_shares_ is not None:
            state["new_shares"] = self.new_shares_.to_dict()
        return state

    def _restore_prior(self, state: dict[str, Any]) -> None:
        """Take back what `_prior_state` returned; files of before have none."""
        self.learned_ = None
        self.new_shares_ = None
        learned = state.get("learned")
        if learned is not None:
            if learned["variances"] is None:
                unknown = [np.nan] * len(learned["predicted"])
                learned = {**learned, "variances": unknown}
            self.learned_ = Learned.from_dict(learned)
        new_shares = state.get("new_shares")
        if new_shares is not None:
            self.new_shares_ = ClassShares.from_dict(new_shares)
