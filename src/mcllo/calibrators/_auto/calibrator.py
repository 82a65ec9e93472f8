"""`AutoCalibrator`: a pool of repairs, from none to a full map, weighed by cross-validation.

====================  ==========================================================================
members and weights   `stack.Stack`, fitted to all rows
gate                  two tests share the level: calibration, and the split ratio of the members
`describe`            what the weights say of the predictions, in one sentence
====================  ==========================================================================
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

from ..._ground.results import Floats
from ..._inference.calibration_test import needs_robust
from ..._input.predictions import Predictions
from ..._input.probabilities import Simplex
from .._linear_fit import transposed_scores
from .._mcllo import GatedCalibrator, GateDecision, check_gate, decide
from .members import Members
from .stack import Stack, fit_stack

KINDS = {
    "full_tight": "full map",
    "full_loose": "full map",
    "full": "full map",
    "similar": "look-alike map",
    "mcllo": "MCLLO",
    "vector": "vector map",
    "temperature": "temperature",
    "identity": "identity",
}
MOST_TESTED = 20
"""Classes up to which the gate tests over all baselines; beyond, the default test."""
DECISIVE = 0.1
"""Part of the level at which the split ratio decides alone: simulation could show no less."""
SHOWN = 0.005
"""Share below which a member is not named."""
SAME = 0.05
"""Distance of log u from 0 that is not worth a word."""


def shares(weights: dict[str, float]) -> dict[str, float]:
    """Return the weights by kind of member, largest first."""
    kinds: dict[str, float] = {}
    for name, weight in weights.items():
        kinds[KINDS[name]] = kinds.get(KINDS[name], 0.0) + weight
    return dict(sorted(kinds.items(), key=lambda item: -item[1]))


def reason(stack: Stack) -> str:
    """Return what the weights say about the predictions."""
    kinds = shares(stack.weights)
    if not stack.gain > 0.0:
        return "no repair promises a gain"
    if kinds["identity"] >= 0.5:
        return "there is little to repair"
    del kinds["identity"]
    leading = max(kinds, key=lambda kind: kinds[kind])
    if leading == "full map":
        return "classes leak into each other"
    if leading == "look-alike map":
        return "classes that look alike are confused"
    if leading != "temperature":
        return "some classes are predicted too often or too boldly"
    v = math.log(stack.members.soft.inverse_temperature)
    if abs(v) < SAME:
        return "sure predictions fail now and then"
    return "predictions are too bold" if v < 0.0 else "predictions are too cautious"


def describe(stack: Stack) -> str:
    """Return shares, reason, cross-validated losses, and whether their difference may be chance."""
    named = ", ".join(
        f"{100.0 * share:.0f} % {kind}"
        for kind, share in shares(stack.weights).items()
        if share >= SHOWN
    )
    if not math.isfinite(stack.gain_se):
        return f"{named}: too few rows to leave any out"
    what = "log loss" if stack.gain > 0.0 else "log loss of a repair"
    words = (
        f"{named}: {reason(stack)}; cross-validated {what} {stack.loss:.4f} "
        f"against {stack.raw_loss:.4f} raw"
    )
    doubtful = stack.promise < 0.0 < stack.gain
    return f"{words}, a gain that chance alone could show" if doubtful else words


class AutoCalibrator(GatedCalibrator):
    """The recalibration to use when only the best probabilities are asked for.

    Repairs from none to rich are fitted: the identity, a temperature with a slip, MCLLO averaged
    over all baselines, a map that knows which classes look alike, and full linear maps of the log
    probabilities under a ridge. Cross-validation decides how much of each goes into a weighted
    mean. There is nothing to tune.

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
        share of data sets.
    prior : {"fit", "keep", "unlabelled"} or array of shape (n_classes,)
        Class frequencies of the rows to come, as in `MCLLOCalibrator`. A class that no label has
        though chance would have given it one keeps its predictions, unless an array says otherwise.
    classes, normalize, clip
        As in `Calibrator`.

    Attributes
    ----------
    weights_ : dict of str to float
        Weight of each member in the mean.
    members_ : Members
        The fitted members.
    expected_gain_, expected_gain_se_ : float
        By how much the log loss of a new row falls on average, and the standard error of that: by
        cross-validation, less what it adds that a repair is made only where cross-validation shows
        a gain. A repair of which little is known may so promise nothing, or a loss. Where
        cross-validation shows no gain nothing is repaired, with or without a gate: the identity
        then has weight 1, and this tells what a repair would do.
    gate_ : GateDecision or None
        What the gate did; print it. None without a gate.
    stack_ : Stack
        All of this together.

    Notes
    -----
    Above 12 classes there is no MCLLO, above 20 one full map, above 100 a vector map alone. Rows of
    one group (`Predictions` with `groups`) are left out together. The order of the rows does not
    matter unless predictions are tied.

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
    _keeps_removed = True
    _absent = "its probability changes as little as the other rows allow"

    def __init__(
        self,
        *,
        on: str = "log_probs",
        gate: float | None = None,
        prior: str | Sequence[float] = "fit",
        classes: Sequence[Hashable] | None = None,
        normalize: bool = False,
        clip: float | None = None,
    ) -> None:
        super().__init__(classes=classes, normalize=normalize)
        self.on = on
        self.gate = gate
        self.prior = prior
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
    def expected_gain_(self) -> float:
        """Fall of the log loss of a new row, on average."""
        return self.stack_.promise

    @property
    def expected_gain_se_(self) -> float:
        """Standard error of `expected_gain_`."""
        return self.stack_.promise_se

    def _learn(self, predictions: Predictions) -> None:
        stack, self.gate_ = fit_stack(predictions), None
        if self.gate is not None:
            kind, p = "split_ratio", stack.pvalue
            if p > DECISIVE * check_gate(self.gate):
                plain = not needs_robust(predictions.weighed())
                rule = "all" if plain and predictions.n_classes <= MOST_TESTED else ""
                test, _ = decide(predictions, self.gate, rule)
                kind, p = (test.test, test.pvalue) if test.pvalue <= p else (kind, p)
            both = min(1.0, 2.0 * p)
            opens = both <= self.gate and stack.gain > 0.0
            self.gate_ = GateDecision(opens, both, self.gate, kind, stack.gain)
        self.stack_ = stack

    def summary(self) -> str:
        """Say what is in the mean, what that means, and what it promises."""
        words = describe(self.stack_)
        return words if self.gate_ is None else f"{words}; {self.gate_}"

    def _repaired(self, simplex: Simplex) -> Floats:
        return self.stack_.pool(transposed_scores(simplex), simplex.probs)

    def _state(self) -> dict[str, Any]:
        return {**self.stack_.to_dict(), **super()._state()}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self.stack_ = Stack.from_dict(state)
