"""`XuDavoine`: evidential calibration by one scalar soft-max model (Xu, Davoine, Denoeux 2015).

=================  ==========================================================================
score              ``s = x`` (as the paper on MCLLO seems to use it) or ``s = log x``
model              ``p_k = exp(theta s_k) / sum_j exp(theta s_j)``, see `_evidential`
targets            the label; or smoothed, Platt's for c classes: a row of class k, which has n_k
                   rows, counts ``(n_k + 1) / (n_k + c)`` for k and ``1 / (n_k + c)`` for the others
belief function    every theta as plausible as its likelihood, see `_evidential`
prediction         pignistic BetP, or ``Pl / sum Pl``, or the plug-in ``p(theta_hat)``
=================  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal

import numpy as np

from .._ground.results import Floats
from .._input.predictions import Predictions
from .._input.probabilities import Simplex
from ._base import Calibrator, check_choice
from ._evidential import (
    Belief,
    Order,
    PlausibleSets,
    ScalarLikelihood,
    belief,
    scalar_sets,
    soft_max,
)
from ._linear_fit import transposed_scores

Scores = Literal["prob", "log"]
Output = Literal["pignistic", "plausibility", "plug_in"]


class XuDavoine(Calibrator):
    """Evidential calibration: soft-max with one scalar, and what the data leave open about it.

    With ``scores="prob"`` no theta changes nothing, so predictions that need no repair are changed
    too; ``scores="log", output="plug_in"`` is temperature scaling. The plug-in never changes the
    most probable class.

    Parameters
    ----------
    scores : {"prob", "log"}
        The scores: probabilities, or their logarithms.
    smooth : bool
        Smooth the targets. It shrinks theta strongly when a class has few rows; without it theta
        has no finite estimate when the most probable class came true in every row.
    output : {"pignistic", "plausibility", "plug_in"}
        How the belief function becomes probabilities.
    order : {"score", "index", "envelope"}
        Order of the classes in the cumulative probabilities: ascending score, columns, or none
        (bounds for each class alone).
    classes, normalize, clip
        As in `Calibrator`; `clip` is for ``scores="log"``.

    Attributes
    ----------
    theta_ : float
        The maximum likelihood estimate.
    sets_ : PlausibleSets
        The ends of the sets Gamma(u) of plausible theta.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.dirichlet([1, 1, 1], size=500)
    >>> y = [rng.choice(3, p=row) for row in X]
    >>> evidential = XuDavoine().fit(X, y)
    >>> evidential.predict_proba([[0.6, 0.3, 0.1]]).round(2)
    array([[0.65, 0.23, 0.12]])
    >>> bounds = evidential.belief([[0.6, 0.3, 0.1]])
    >>> bounds.bel.round(2), bounds.pl.round(2)
    (array([[0.62, 0.19, 0.1 ]]), array([[0.68, 0.27, 0.13]]))
    """

    method = "xu_davoine"
    includes_identity = False
    _absent = "its probability is only reshaped as all others are"

    def __init__(
        self,
        *,
        scores: Scores = "prob",
        smooth: bool = True,
        output: Output = "pignistic",
        order: Order = "score",
        classes: Sequence[Hashable] | None = None,
        normalize: bool = False,
        clip: float | None = None,
    ) -> None:
        super().__init__(classes=classes, normalize=normalize)
        self.scores = scores
        self.smooth = smooth
        self.output = output
        self.order = order
        self.clip = clip

    @property
    def needs_logs(self) -> bool:
        """Whether zeros must be raised first: where their logarithm is the score."""
        return self.scores == "log"

    @property
    def theta_(self) -> float:
        """The maximum likelihood estimate."""
        return self.sets_.theta

    def belief(self, X: Any) -> Belief:
        """Return belief, plausibility and pignistic probability of each class, by `order`."""
        return belief(self._scores(self._rows(X)).T, self.sets_, self.order)

    def _check_options(self) -> None:
        check_choice("scores", self.scores, ("prob", "log"))
        check_choice("output", self.output, ("pignistic", "plausibility", "plug_in"))
        check_choice("order", self.order, ("score", "index", "envelope"))

    def _learn(self, predictions: Predictions) -> None:
        scores, codes = self._scores(predictions), predictions.codes
        target = scores[codes, np.arange(len(codes))]
        if self.smooth:
            size = predictions.class_weight[codes]
            target = (size * target + scores.sum(axis=0)) / (size + len(scores))
        self.sets_ = scalar_sets(ScalarLikelihood(scores, target, predictions.sample_weight))

    def _apply(self, simplex: Simplex) -> Floats:
        scores = self._scores(simplex)
        if self.output == "plug_in":
            return np.ascontiguousarray(soft_max(scores, self.theta_).T)
        found = belief(scores.T, self.sets_, self.order)
        if self.output == "pignistic":
            return found.betp
        return found.pl / found.pl.sum(axis=1, keepdims=True)

    def _scores(self, rows: Predictions | Simplex) -> Floats:
        """Return s, shape (c, n)."""
        return transposed_scores(rows) if self.scores == "log" else rows.probs.T.copy()

    def _state(self) -> dict[str, Any]:
        return self.sets_.to_dict()

    def _restore(self, state: dict[str, Any]) -> None:
        self.sets_ = PlausibleSets.from_dict(state)
