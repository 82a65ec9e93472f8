"""`ChoiceCalibrator`: recalibration of options without identity, by one slope and position shifts.

====================  ==========================================================================
`ChoiceCalibrator`    ``g_ij ~ delta_j p_ij^gamma`` over what row i offers (`_fit/choice_fit`)
`cross_fitted_gain`   what that map gains on rows that it was not learned from: folds of a fifth
====================  ==========================================================================
"""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Sequence
from importlib import import_module
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._fit.choice_fit import Terms, fit_choice_sets
from .._inference.calibration_test import fit_and_test_choices
from .._inference.paired_loss import PairedLoss
from .._model.kernel import probabilities_and_log_sums
from .._utils.linalg import TINY
from .._utils.results import Floats
from .._validation.choice_sets import clean_choice_sets
from .._validation.frames import shorten
from .._validation.predictions import Predictions
from ..exceptions import InputError
from ._auto.gain import CrossFittedGain
from ._base import Calibrator
from ._mcllo import GateDecision, check_gate
from ._model_file import training_summary

N_FOLDS = 5
MIN_ROWS = 20
"""Rows of which a fifth are four; a round number, as for calibrators of classes."""
DEFAULT_PENALTY = 1.0
"""Ridge that pulls shifts and slope to the map that changes nothing: of a position that is never
right about so many rows' probability is left as its shift is large, three or four of any number."""


def cross_fitted_choice_gain(
    predictions: Predictions,
    *,
    penalty: float = DEFAULT_PENALTY,
    terms: Terms = "both",
    confidence: float = 0.95,
    seed: int = 0,
) -> CrossFittedGain:
    """Return the gain in log loss of the map on rows that it was not learned from."""
    from scipy.special import ndtri

    n = predictions.n_samples
    if n < MIN_ROWS:
        few = f"a fifth of {n} rows is too few to judge on"
        return CrossFittedGain.not_computed(few, confidence)
    fold = np.random.default_rng([seed, 5]).permutation(n) % N_FOLDS
    recalibrated = np.empty(predictions.probs.shape)
    for k in range(N_FOLDS):
        left_out = np.flatnonzero(fold == k)
        learned = predictions.take(np.flatnonzero(fold != k))
        fit = fit_choice_sets(learned, penalty=penalty, terms=terms)
        judged = predictions.take(left_out)
        assert judged.logits is not None
        assert judged.offered is not None
        recalibrated[left_out] = fit.apply(judged.logits, judged.offered)
    pair = _paired_loss(predictions, recalibrated)
    low, high = pair.interval(float(ndtri(0.5 + 0.5 * confidence)))
    if not math.isfinite(pair.mean):
        return CrossFittedGain.not_computed("a probability is 0", confidence)
    return CrossFittedGain(pair.mean, low, high, confidence, n)


def _paired_loss(predictions: Predictions, recalibrated: Floats) -> PairedLoss:
    """Return the gain of each row; what is not offered has no chance in either prediction."""
    raw = np.maximum(predictions.probs, TINY)
    pooled = np.maximum(recalibrated, TINY)
    own = (np.arange(predictions.n_samples), predictions.codes)
    return PairedLoss(
        observed=np.log(pooled[own]) - np.log(raw[own]),
        first=pooled,
        other=raw,
        base=0.5 * (raw + pooled),
        weight=np.ones(predictions.n_samples),
    )


class ChoiceCalibrator(Calibrator):
    """Recalibration of choice sets: ``g_ij ~ delta_j p_ij^gamma`` over what row i offers.

    Parameters
    ----------
    kind : {"probs", "log_likelihoods", "logits"}
        What the scores in X are.
    penalty : float
        Strength of a ridge that pulls to the map that changes nothing; 0 is maximum likelihood.
    terms : {"both", "slope", "positions"}
        What is learned: slope and shifts of positions, or one of them. A slope alone serves rows
        with more positions than were learned from.
    gate : float, optional
        Recalibrate only when the rows learned from reject calibration at this level.
    positions : sequence, optional
        Names of the positions. Default: A, B, C, ...

    Attributes
    ----------
    fit_ : ChoiceFit
        Slope and shifts with their standard errors, also where the gate is closed.
    gate_ : GateDecision or None
        What the gate did; None without a gate.
    classes_ : ndarray
        Names of the positions.
    training_ : dict
        Number and checksum of the rows learned from.

    See Also
    --------
    assess_choices : Whether it is needed.
    MCLLOCalibrator : Recalibrates predictions of classes.
    Predictions.from_choices : How rows are read.

    Notes
    -----
    The model is conditional logit [1]_ with the log probability of an option and its position as
    attributes. A position that is never right loses its probability when enough rows say so: the
    ridge leaves it that of a few rows, whatever their number.

    References
    ----------
    .. [1] D. McFadden (1974). Conditional logit analysis of qualitative choice behavior. In
           P. Zarembka (ed.), Frontiers in Econometrics, 105-142. Academic Press.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> rows = [rng.dirichlet(np.ones(m)) for m in rng.integers(2, 5, 2000)]
    >>> y = [rng.choice(len(p), p=p) for p in rows]
    >>> sharp = [2 * np.log(p) for p in rows]  # overconfident
    >>> cal = ChoiceCalibrator(kind="logits").fit(sharp, y)
    >>> round(cal.fit_.gamma, 1)
    0.5
    >>> cal.predict_proba([[0.0, 2.0], [0.0, 1.0, 2.0]]).round(1)
    array([[0.3, 0.7, 0. , 0. ],
           [0.2, 0.3, 0.5, 0. ]])
    """

    method = "choice_sets"

    def __init__(
        self,
        *,
        kind: str = "probs",
        penalty: float = DEFAULT_PENALTY,
        terms: Terms = "both",
        gate: float | None = None,
        positions: Sequence[Hashable] | None = None,
    ) -> None:
        self.kind = kind
        self.penalty = penalty
        self.terms = terms
        self.gate = gate
        self.positions = positions

    @property
    def input(self) -> str:
        """What X holds: "probs" or "logits"."""
        return "probs" if self.kind == "probs" else "logits"

    def fit(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        logits: Any = None,
    ) -> Self:
        """Learn from choice sets and their answers.

        Parameters
        ----------
        X : list of lists, array-like, frame or Predictions
            Scores of each row's options, of the calibrator's `kind`; or choice sets that were read.
        y : array-like of shape (n_samples,), optional
            The right option of each row; not given beside a `Predictions`.
        sample_weight : None
            Choice sets have no weights.
        logits : None
            Scores are X, of the calibrator's `kind`.

        Returns
        -------
        ChoiceCalibrator
            Itself, fitted.
        """
        if sample_weight is not None or logits is not None:
            raise InputError("choice sets have no weights, and their scores are X.")
        self._clear_fitted_attributes()
        predictions = X
        if not isinstance(X, Predictions):
            predictions = Predictions.from_choices(
                X, y, kind=self.kind, positions=self.positions
            )
        elif y is not None or X.offered is None:
            raise InputError(
                "X must be choice sets; beside a Predictions of these no y is given."
            )
        self.fit_ = fit_choice_sets(predictions, penalty=self.penalty, terms=self.terms)
        self.gate_ = None
        if self.gate is not None:
            self.gate_ = _decide_gate(predictions, check_gate(self.gate))
        self._set_classes(predictions.classes)
        self._set_map(self.fit_.tau, self.fit_.gamma)
        self.training_ = training_summary(predictions)
        return self

    def predict_proba(self, X: Any = None, *, logits: Any = None) -> Floats:
        """Return recalibrated probabilities, a column for each position.

        Parameters
        ----------
        X : list of lists, array-like, frame or Predictions
            Scores of each row's options, of the calibrator's `kind`; or choice sets that were read.
        logits : None
            Scores are X, of the calibrator's `kind`.

        Returns
        -------
        ndarray of shape (n_samples, n_positions)
            Rows sum to 1; 0 where a position is not offered.
        """
        check_is_fitted(self, "classes_")
        if logits is not None:
            raise InputError("the scores of choice sets are X.")
        names = tuple(self.classes_.tolist())
        log_probs, offered = self._read_rows(X, names)
        n_positions = offered.shape[1]
        if n_positions > len(names) and self.terms != "slope":
            row = int(np.argmax(offered[:, len(names) :].any(axis=1)))
            raise InputError(
                "rows must offer no more positions than were learned from, {n}; {row} does.",
                argument="X",
                row=row,
                remedy="A calibrator with terms='slope' needs no positions.",
                values={"n": len(names)},
            )
        tau = np.zeros(n_positions)
        tau[: len(names)] = self.tau_[:n_positions]
        theta = np.concatenate([tau, np.full(n_positions, self.gamma_)])
        g, _ = probabilities_and_log_sums(theta, log_probs.T, offered.T)
        return np.ascontiguousarray(g[:-1].T)

    def predict(self, X: Any = None, *, logits: Any = None) -> NDArray[Any]:
        """Return the position of the most probable option of each row (the first of equals).

        Parameters
        ----------
        X : list of lists, array-like, frame or Predictions
            Scores of each row's options, of the calibrator's `kind`; or choice sets that were read.
        logits : None
            Scores are X, of the calibrator's `kind`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Names of positions; places counted from 0 where there are more of them than names.
        """
        probs = self.predict_proba(X, logits=logits)
        places = probs.argmax(axis=1)
        if probs.shape[1] > len(self.classes_):
            return np.asarray(places)
        return np.asarray(self.classes_[places])

    def export(
        self, to: str, path: str | os.PathLike[str] | None = None, **options: Any
    ) -> str:
        """Write what was learned as Python, JavaScript or SQL.

        Parameters
        ----------
        to : {"python", "js", "sql"}
            The form. Python and JavaScript take the scores of one row, in order; SQL a table with a
            row for each option.
        path : path, optional
            Where to write it; ``-`` is standard output.
        **options
            Of SQL: `table`, `question`, `position`, `score`, the names of the table and its
            columns.

        Returns
        -------
        str
            What was written.
        """
        check_is_fitted(self, "classes_")
        writer = import_module("mcllo.export._choice_sources")
        return str(writer.export_choice_calibrator(self, to, path, **options))

    def _read_rows(
        self, X: Any, names: tuple[Any, ...]
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Return log probabilities and the mask of what is offered."""
        if isinstance(X, Predictions):
            if X.offered is None or X.logits is None or X.classes != names:
                raise InputError(
                    "predictions must be choice sets of the positions learned from, {names}.",
                    argument="X",
                    values={"names": shorten(names)},
                )
            return X.logits, X.offered
        rows = clean_choice_sets(
            X, None, kind=self.kind, n_positions=len(names), labelled=False
        )
        return rows.log_probs, rows.offered

    def _set_map(self, tau: Floats, gamma: float) -> None:
        """Set what rows are recalibrated by: nothing where the gate is closed."""
        is_closed = self.gate_ is not None and not self.gate_.recalibrates
        self.tau_ = np.zeros(len(tau)) if is_closed else tau
        self.gamma_ = 1.0 if is_closed else gamma

    def _learned_words(self) -> str:
        return f"slope {self.gamma_:.3g} and a shift for each class"

    def _state(self) -> dict[str, Any]:
        gate = None if self.gate_ is None else self.gate_.to_dict()
        # A map that was read from a file has no fit.
        known = self.fit_.to_dict() if hasattr(self, "fit_") else dict(self.known_)
        learned = {"tau": self.tau_.tolist(), "gamma": self.gamma_, "gate": gate}
        return {"fit": known, **learned}

    def _restore_state(self, state: dict[str, Any]) -> None:
        gate = state["gate"]
        self.gate_ = None if gate is None else GateDecision(**gate)
        self.tau_ = np.array(state["tau"], dtype=np.float64)
        self.gamma_ = float(state["gamma"])
        self.known_ = state["fit"]


def _decide_gate(predictions: Predictions, alpha: float) -> GateDecision:
    """Test the rows learned from: a map is applied only where calibration is rejected."""
    _, test = fit_and_test_choices(predictions, seed=0)
    return GateDecision(test.pvalue <= alpha, test.pvalue, alpha, test.kind)
