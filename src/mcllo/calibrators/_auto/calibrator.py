"""`AutoCalibrator`: a pool of recalibrations, from none to a full map, weighed by cross-validation.

====================  ==========================================================================
members and weights   `stacking.Stack`, fitted to all rows
gate                  two tests share the level: calibration, and the split ratio of the members
`describe_stack`            what the weights say of the predictions, in one sentence
====================  ==========================================================================
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

from ..._fit.linear_fit import transposed_scores
from ..._inference.calibration_test import needs_robust_covariance
from ..._utils.formatting import format_count
from ..._utils.results import Floats
from ..._validation.predictions import Predictions
from ..._validation.probabilities import Simplex
from .._mcllo import GatedCalibrator, GateDecision, check_gate, decide_gate
from .boosted import Correction
from .flexible import fit_flexible_stack
from .members import Members
from .stacking import Stack, fit_stack

MEMBER_NAMES = {
    "full_tight": "full map",
    "full_loose": "full map",
    "full": "full map",
    "similar": "class-similarity map",
    "venn_abers": "Venn-Abers",
    "spline": "spline",
    "mcllo": "MCLLO",
    "vector": "vector map",
    "temperature": "temperature",
    "identity": "identity",
}
MEMBERS_WITH_CURVES = ("spline", "Venn-Abers")


def weights_by_kind(weights: dict[str, float]) -> dict[str, float]:
    """Return the weights by kind of member, largest first."""
    kinds: dict[str, float] = {}
    for name, weight in weights.items():
        kind = MEMBER_NAMES[name]
        kinds[kind] = kinds.get(kind, 0.0) + weight
    by_weight = sorted(kinds, key=lambda kind: -kinds[kind])
    return {kind: kinds[kind] for kind in by_weight}


def explain_weights(stack: Stack) -> str:
    """Return what the weights say about the predictions."""
    kinds = weights_by_kind(stack.weights)
    if not stack.gain > 0.0:
        return "no gain is expected of a recalibration"
    if kinds["identity"] >= 0.5:
        return "there is little to recalibrate"
    del kinds["identity"]
    leading = max(kinds, key=lambda kind: kinds[kind])
    if leading == "full map":
        return "classes leak into each other"
    if leading == "class-similarity map":
        return "similar classes are confused"
    if leading in MEMBERS_WITH_CURVES:
        return "sure and unsure predictions are wrong in different ways"
    if leading != "temperature":
        return "some classes are predicted too often or with overconfidence"
    log_slope = math.log(stack.members.soft.inverse_temperature)
    if abs(log_slope) < 0.05:  # 5 %, not worth a word: what is left is the lapse rate
        return "sure predictions fail now and then"
    if log_slope < 0.0:
        return "predictions are overconfident"
    return "predictions are underconfident"


def describe_stack(stack: Stack) -> str:
    """Return shares, reason, cross-validated losses, and whether their difference may be chance."""
    named = ", ".join(
        f"{100.0 * share:.0f} % {kind}"
        for kind, share in weights_by_kind(stack.weights).items()
        if share >= 0.005  # less would be printed as 0 %
    )
    if not math.isfinite(stack.gain_se):
        words = f"{named}: too few rows to leave any out"
        if stack.correction is not None:
            words = f"{words}; {describe_correction(stack.correction)}"
        return words
    what = "log loss" if stack.gain > 0.0 else "log loss of a recalibration"
    words = (
        f"{named}: {explain_weights(stack)}; cross-validated {what} {stack.loss:.4f} "
        f"against {stack.raw_loss:.4f} raw"
    )
    if stack.promise < 0.0 < stack.gain:
        words = f"{words}, a gain that chance alone could show"
    if stack.correction is not None:
        words = f"{words}; {describe_correction(stack.correction)}"
    if stack.n_copies:
        count = format_count(stack.n_copies)
        words = f"{words}; {count} rows equal others, label included, and were left out with them"
    return words


def describe_correction(correction: Correction) -> str:
    """Return what trees do, or why they do nothing."""
    if correction.reason:
        return f"no trees: {correction.reason}"
    if correction.trees is None:
        return "no gain beyond that is expected of trees, and none are used"
    return (
        f"of that {correction.gain:.4f} by {correction.trees.n_rounds} rounds of trees, trusted to "
        f"{100.0 * correction.trust:.0f} %"
    )


class AutoCalibrator(GatedCalibrator):
    """The recalibration to use when only the best probabilities are asked for.

    Recalibrations from none to rich are fitted: the identity, a temperature with a lapse rate,
    MCLLO averaged over all baselines, a map that knows which classes are similar, and full linear
    maps of that map's log probabilities under a ridge; for two classes a spline and Venn-Abers.
    Cross-validation decides how much of each goes into a weighted mean. There is nothing to tune.

    Parameters
    ----------
    on : {"log_probs", "logits"}
        What X holds: probabilities or logits. A number added to all logits of a row changes
        nothing. Logits serve models whose probabilities are rounded to 0.
    gate : float, optional
        Level of a calibration test on the training rows: recalibrate only when it rejects, else
        return predictions untouched. 0.05 is usual; by default there is no gate. Two tests share
        the level: the score test over all baselines, and a split likelihood ratio of the members,
        which sees what MCLLO cannot and, where it leaves no doubt, decides alone. For 3 to 20
        classes both hold at any number of rows: calibrated predictions are changed in at most this
        share of data sets. There the score test draws at most 1,999 samples, so that it can never
        open a gate below 0.001; the split ratio can. For two classes the likelihood ratio test
        stands for the score test; above 20 classes, and with groups or weights that are no counts,
        the default test of `calibration_test` does. With groups, such weights, or copies that were
        detected (`n_copies_`) there is no split ratio: the other test decides alone, at half the
        level.
    prior : {"fit", "keep", "unlabelled"} or array of shape (n_classes,)
        Class frequencies of the rows to come: those that the labels show, those predicted, those of
        the rows to recalibrate, or known ones; see `MCLLOCalibrator`. With "fit" a class that no
        label has loses its probability as far as so many rows without it ask; with "keep" it keeps
        it, tempered.
    flexible : bool
        Also correct the mean by boosted trees, for errors that no linear map can recalibrate. They
        are grown from 1,000 rows (or groups) and up to 20 classes, and used as far as
        cross-validation trusts them. A fit takes several times as long, and the export to ONNX, SQL
        and PyTorch is left out.
    classes : sequence, optional
        The label of each column, when it cannot be told from the columns or the labels.
    normalize : bool
        Accept rows of probabilities that do not sum to 1 and divide them by their sum.
    clip : float, optional
        Smaller probabilities are clipped to this. Default: 1e-6, only in rows that hold a 0.

    Attributes
    ----------
    weights_ : dict of str to float
        Weight of each member in the mean.
    members_ : Members
        The fitted members.
    expected_gain_, expected_gain_se_ : float
        By how much the log loss of a new row falls on average, and the standard error of that: by
        cross-validation, less what it adds that a recalibration is made only where cross-validation
        shows a gain. Where little is known of a recalibration it may be 0 or less. Where
        cross-validation shows no gain nothing is recalibrated, with or without a gate: the identity
        then has weight 1, and this tells what a recalibration would do. Where a gain has no
        standard error, because one row or group was left out, nothing is recalibrated either, and
        at most 0 is expected. With ``prior="keep"`` and
        "unlabelled" it is that of the recalibration before these, on rows like those learned from.
    correction_ : Correction or None
        The trees, how far they are trusted, and what they add to the gain; or the reason why there
        are none. None unless `flexible`.
    n_copies_ : int
        Rows that equal an earlier one in every probability and in the label, where their labels do
        not show that such rows are other cases. They are left out together with it, as rows of a
        group are; where rows have groups, these alone decide.
    gate_ : GateDecision or None
        What the gate did; print it. None without a gate.
    stack_ : Stack
        All of this together.

    See Also
    --------
    MCLLOCalibrator : One map, with standard errors.
    compare : Methods beside each other on the same rows.
    mcllo.calibrators.TemperatureScaling : One of the members.

    Notes
    -----
    The identity and the temperature are always there. Two classes have a spline and, from 200 rows
    on, Venn-Abers besides; 3 to 12 classes MCLLO, the class-similarity map and two full maps (held
    back more and less); 13 to 20 the same without MCLLO; 21 to 100 the class-similarity map and one
    full map; more than 100 a vector map. Rows of one group (`Predictions`
    with `groups`) are left out together. The order of the rows does not matter unless predictions
    are tied.

    The weighted mean with weights from cross-validation is stacking [1]_ [2]_ [3]_. The split
    likelihood ratio of the gate is that of [4]_.

    Trees (`flexible`) are grown by gradient boosting with Newton steps [5]_ from the logarithm of
    the mean, four leaves each. Cross-validation judges members and trees together, on rows that
    neither has seen [6]_, and gives the corrected probabilities a part ``G^2 / (G^2 + (s / 3)^2)``
    of the answer, G what they gain beyond the mean and s its standard error. Nothing is random.

    References
    ----------
    .. [1] D. H. Wolpert (1992). Stacked generalization. Neural Networks 5:241-259.
    .. [2] P. Smyth, D. H. Wolpert (1999). Linearly combining density estimators via stacking.
           Machine Learning 36:59-83.
    .. [3] Y. Yao, A. Vehtari, D. Simpson, A. Gelman (2018). Using stacking to average Bayesian
           predictive distributions. Bayesian Analysis 13:917-1007.
    .. [4] L. Wasserman, A. Ramdas, S. Balakrishnan (2020). Universal inference. Proceedings of the
           National Academy of Sciences 117:16880-16890.
    .. [5] J. H. Friedman (2001). Greedy function approximation: a gradient boosting machine. Annals
           of Statistics 29:1189-1232.
    .. [6] M. J. van der Laan, E. C. Polley, A. E. Hubbard (2007). Super learner. Statistical
           Applications in Genetics and Molecular Biology 6:25.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> honest = rng.dirichlet([1, 1, 1], size=2000)
    >>> y = [rng.choice(3, p=row) for row in honest]
    >>> sharp = honest**2 / (honest**2).sum(axis=1, keepdims=True)  # overconfident
    >>> calibrator = AutoCalibrator().fit(sharp, y)
    >>> bool(abs(calibrator.predict_proba(sharp) - honest).mean() < 0.01)
    True
    >>> max(calibrator.weights_, key=calibrator.weights_.get)
    'temperature'
    >>> calibrator.expected_gain_ > 5 * calibrator.expected_gain_se_
    True
    """

    method = "auto"
    _absent = (
        "its probability falls as these rows ask; prior='keep' keeps it, where these rows alone "
        "lack the class"
    )

    def __init__(
        self,
        *,
        on: str = "log_probs",
        gate: float | None = None,
        prior: str | Sequence[float] = "fit",
        flexible: bool = False,
        classes: Sequence[Hashable] | None = None,
        normalize: bool = False,
        clip: float | None = None,
    ) -> None:
        super().__init__(classes=classes, normalize=normalize)
        self.on = on
        self.gate = gate
        self.prior = prior
        self.flexible = flexible
        self.clip = clip

    @property
    def weights_(self) -> dict[str, float]:
        """Weight of each member."""
        return self.stack_.weights

    @property
    def members_(self) -> Members:
        """The fitted members."""
        return self.stack_.members

    @property
    def correction_(self) -> Correction | None:
        """Trees on the mean, where they were asked for."""
        return self.stack_.correction

    @property
    def expected_gain_(self) -> float:
        """Fall of the log loss of a new row, on average."""
        return self.stack_.promise

    @property
    def expected_gain_se_(self) -> float:
        """Standard error of `expected_gain_`."""
        return self.stack_.promise_se

    @property
    def n_copies_(self) -> int:
        """Rows that repeat another one."""
        return self.stack_.n_copies

    def _learn(self, predictions: Predictions) -> None:
        stack = (
            fit_flexible_stack(predictions) if self.flexible else fit_stack(predictions)
        )
        self.gate_ = None
        if self.gate is not None:
            self.gate_ = self._decide_gate(predictions, check_gate(self.gate), stack)
        self.stack_ = stack

    def _decide_gate(
        self, predictions: Predictions, level: float, stack: Stack
    ) -> GateDecision:
        """Ask two tests whether the predictions are calibrated."""
        kind = "split_ratio"
        p = stack.pvalue
        # The score test costs a simulation, which could not show a smaller p than a tenth of the
        # level: up to there the split ratio decides alone.
        if p > 0.1 * level:
            is_plain = not needs_robust_covariance(
                predictions.with_importance_weights()
            )
            # Over all baselines up to 20 classes; beyond, and for weights or groups, the default.
            rule = "all" if is_plain and predictions.n_classes <= 20 else ""
            test, _ = decide_gate(predictions, level, rule)
            if test.pvalue <= p:
                kind = test.test
                p = test.pvalue
        pvalue = min(1.0, 2.0 * p)  # Bonferroni, of two tests
        opens = pvalue <= level and stack.gain > 0.0
        return GateDecision(opens, pvalue, level, kind, stack.gain)

    def summary(self) -> str:
        """Say what is in the mean, what that means, and what is expected of it."""
        words = describe_stack(self.stack_)
        if self._prior_kind in ("keep", "unlabelled"):
            words += f" (on rows like these, before prior={self.prior!r})"
        elif self.learned_ is not None and self.learned_.kept:
            words += " (classes without a label aside)"
        return words if self.gate_ is None else f"{words}; {self.gate_}"

    def _absent_class_consequence(self) -> str:
        if self._prior_kind == "fit":
            return super()._absent_class_consequence()
        return "it keeps its probability, as far from 0 and 1 as the others' become"

    @property
    def _changes_predictions(self) -> bool:
        return super()._changes_predictions and self.weights_["identity"] < 1.0

    def _apply_map(self, simplex: Simplex) -> Floats:
        return self.stack_.pool(transposed_scores(simplex), simplex.probs)

    def _state(self) -> dict[str, Any]:
        return {**self.stack_.to_dict(), **super()._state()}

    def _restore_state(self, state: dict[str, Any]) -> None:
        super()._restore_state(state)
        self.stack_ = Stack.from_dict(state)
