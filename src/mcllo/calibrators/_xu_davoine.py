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

from .._fit.linear_fit import transposed_scores
from .._utils.results import Floats
from .._validation.predictions import Predictions
from .._validation.probabilities import Simplex
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

Scores = Literal["prob", "log"]
Output = Literal["pignistic", "plausibility", "plug_in"]


class XuDavoine(Calibrator):
    """Evidential calibration: soft-max with one scalar, and what the data leave open about it.

    With ``scores="prob"`` no theta changes nothing, so predictions that need no recalibration are
    changed too; ``scores="log", output="plug_in"`` is temperature scaling. The plug-in never
    changes the most probable class.

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
    classes : sequence, optional
        The label of each column, when it cannot be told from the columns or the labels.
    normalize : bool
        Accept rows of probabilities that do not sum to 1 and divide them by their sum.
    clip : float, optional
        Clips smaller probabilities, for ``scores="log"``. Default: 1e-6, and only in rows that
        hold a 0.

    Attributes
    ----------
    theta_ : float
        The maximum likelihood estimate.
    sets_ : PlausibleSets
        The ends of the sets Gamma(u) of plausible theta.

    See Also
    --------
    TemperatureScaling : The plug-in of log probabilities.
    mcllo.MCLLOCalibrator : The method that the paper compares with this one.
    mcllo.compare : Both on the same rows.

    Notes
    -----
    Evidential calibration as in [1]_, extended to more than two classes as in [2]_. Only the
    abstracts and first pages of these were at hand; the rest is derived from the likelihood-based
    belief function that they build on. Options are the choices that they leave open; the
    defaults are a reading of how [3]_ used the method, which its tables do not settle.

    References
    ----------
    .. [1] P. Xu, F. Davoine, H. Zha, T. Denœux (2016). Evidential calibration of binary SVM
           classifiers. International Journal of Approximate Reasoning 72:55-70.
    .. [2] P. Xu, F. Davoine, T. Denœux (2015). Evidential multinomial logistic regression for
           multiclass classifier calibration. 18th International Conference on Information Fusion,
           1106-1112.
    .. [3] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

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
        """Return belief, plausibility and pignistic probability of each class, by `order`.

        Parameters
        ----------
        X : array-like, frame or Predictions
            Predicted probabilities, shape (n_samples, n_classes).

        Returns
        -------
        Belief
            `bel`, `pl` and `betp`, arrays of shape (n_samples, n_classes).
        """
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
