"""`MCLLOCalibrator`: the paper's map as a scikit-learn estimator, and the gate before it.

====================  ==========================================================================
map                   `_fit.fit` of one baseline, or the mean of the maps of all
gate                  recalibrate only when calibration is rejected; else leave predictions alone
====================  ==========================================================================

On calibrated predictions every recalibrator does harm: it fits noise. The gate tests calibration on
the training rows first. Calibrated predictions then pass untouched but for a fraction alpha of data
sets; where the departure is large enough to matter for the log loss, the test sees it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._fit.fit import MCLLOFit, fit_mean_over_baselines, fit_predictions
from .._fit.map import AllBaselinesMap
from .._inference.budget import N_RESAMPLES
from .._inference.calibration_test import (
    fit_and_test,
    likeliest_baseline,
    max_score_test,
    needs_robust_covariance,
    refuse_baseline_choice,
    robust_fit_if_needed,
    split_baseline_rule,
)
from .._inference.likelihood_tests import run_test
from .._utils.formatting import format_pvalue
from .._utils.optional import load_application
from .._utils.results import Floats, Result
from .._utils.statements import ESTIMATION_WARNINGS, suppress_warnings
from .._validation.arguments import names_unknown_keywords
from .._validation.frames import is_dask
from .._validation.labels import RESERVED_LABELS
from .._validation.predictions import Predictions
from .._validation.probabilities import Simplex
from .._validation.rounding import clip_for_recalibration
from ..exceptions import InputError
from ._label_shift import PriorCalibrator


@dataclass(frozen=True)
class GateDecision(Result):
    """What the gate did.

    Attributes
    ----------
    recalibrates : bool
        Whether predictions are changed, because calibration was rejected.
    pvalue, alpha : float
        Of the test on the training rows, and the level it was compared with.
    test : str
        Which test.
    gain : float or None
        The gain by cross-validation, where it was asked as well: the gate stays closed unless
        that is positive.
    """

    recalibrates: bool
    pvalue: float
    alpha: float
    test: str
    gain: float | None = None

    def __str__(self) -> str:
        p = f"p {format_pvalue(self.pvalue)}"
        if self.recalibrates:
            return (
                f"recalibrated: calibration is rejected at level {self.alpha:g} ({p})"
            )
        if self.pvalue <= self.alpha:
            return f"left alone: calibration is rejected ({p}), but no gain is expected of one"
        return (
            f"left alone: calibration is not rejected at level {self.alpha:g} ({p}); "
            "that is no proof of calibration"
        )


def check_gate(alpha: float) -> float:
    """Return the level of a gate; refuse what is none."""
    if not 0.0 < alpha < 1.0:
        remedy = "Leave it out for no gate."
        raise InputError(
            argument="gate", rule="lie in (0, 1)", value=alpha, remedy=remedy
        )
    return alpha


def decide_gate(
    predictions: Predictions, alpha: float, rule: str = "", seed: int = 0
) -> tuple[GateDecision, MCLLOFit | None]:
    """Test the training rows; `rule` 'auto' or 'all' tests over all baselines at once.

    The second is the fit that was tested, where that is the maximum likelihood estimate of the rows
    as they are. Weights that are no whole numbers are taken for importance, and tested by the
    robust score.
    """
    predictions = predictions.with_importance_weights()

    # Simulated p-values are exact with any number of draws. Yes or no needs few, about ten beyond
    # the critical value (199 at a level of 0.05), and no more once so many were as extreme as the
    # data that the answer is no.
    n_resamples = round(10 / check_gate(alpha)) - 1
    n_resamples = min(max(n_resamples, 99), N_RESAMPLES)
    stop_at = max(1, math.floor(alpha * (n_resamples + 1)))
    fit = None
    drawing: dict[str, Any] = {"n_resamples": n_resamples, "seed": seed}
    refuse_baseline_choice(predictions, rule)
    with suppress_warnings(*ESTIMATION_WARNINGS):
        if rule == "all" and predictions.n_classes > 2:
            columns = np.arange(predictions.n_classes)
            _, over_all = max_score_test(
                predictions, columns, **drawing, stop_at=stop_at
            )
            is_rejected = over_all.pvalue <= alpha
            return GateDecision(is_rejected, over_all.pvalue, alpha, "max_score"), None
        if rule or needs_robust_covariance(predictions):
            test = fit_and_test(predictions, rule, **drawing).test
        else:
            fit = fit_predictions(predictions)
            test = run_test(
                predictions, fit, **drawing, exceedances=stop_at, quick=True
            )
    return GateDecision(test.pvalue <= alpha, test.pvalue, alpha, test.kind), fit


class GatedCalibrator(PriorCalibrator):
    """Base of calibrators that leave predictions alone while the gate is closed.

    Attributes
    ----------
    gate_ : GateDecision or None
        What the gate did; None without a gate.
    """

    gate_: GateDecision | None

    @property
    def _closed(self) -> bool:
        """Whether predictions pass untouched; not before the fit."""
        gate = getattr(self, "gate_", None)
        return gate is not None and not gate.recalibrates

    @property
    def _changes_predictions(self) -> bool:
        return not self._closed

    @property
    def needs_logs(self) -> bool:
        """Whether zeros must be raised: not when the gate lets predictions pass untouched."""
        return not self._closed

    def _apply(self, simplex: Simplex) -> Floats:
        if self._closed:
            return simplex.probs.copy()
        return self._apply_map(simplex)

    def _apply_map(self, simplex: Simplex) -> Floats:
        """Return what the map makes of validated rows."""
        raise NotImplementedError

    def _state(self) -> dict[str, Any]:
        gate = None if self.gate_ is None else self.gate_.to_dict()
        return {"gate": gate, **self._prior_state()}

    def _restore_state(self, state: dict[str, Any]) -> None:
        gate = state.get("gate")
        self.gate_ = None if gate is None else GateDecision(**gate)
        self._restore_prior(state)


class MCLLOCalibrator(GatedCalibrator):
    """Multicategory linear log odds recalibration.

    The log odds of each class against the baseline get a slope gamma and a shift tau = log delta:
    ``log(g_j / g_b) = tau_j + gamma_j log(x_j / x_b)``.

    Parameters
    ----------
    baseline : label, 'auto' or 'all', optional
        Reference class of the log odds; when not given, the last that occurs in the labels. 'auto'
        takes the likeliest; 'all' fits every baseline and takes the geometric mean, which depends
        on none (up to 50 classes).
    penalty : float, 'auto' or 'firth'
        Ridge ``penalty / 2 * (sum tau^2 + sum (gamma - u)^2)`` towards `center`. 0 is maximum
        likelihood; 1 is safe when rows are few or the estimate does not exist; 'auto' chooses from
        the data; 'firth' is Firth's, which always exists but pulls towards gamma = 0.
    center : {'identity', 'temperature'}
        Where the ridge pulls: to no change (u = 1), or to the fitted temperature.
    gate : float, optional
        Level of a calibration test on the training rows: recalibrate only when it rejects, else
        return predictions untouched. 0.05 is usual; by default there is no gate.
    prior : {'fit', 'keep', 'unlabelled'} or array of shape (n_classes,)
        Class frequencies of the rows to come. 'fit' carries over those that the map learned from
        the labels; 'keep' leaves the mean probability of each class on the rows learned from as
        predicted; an array are known frequencies; 'unlabelled' estimates them from the rows to
        recalibrate (`adapt`, or all rows of a call), and falls back on 'keep' as far as these do
        not tell. Unless 'fit', a class that no label has keeps its probability, tempered.
    classes : sequence, optional
        The label of each column, when it cannot be told from the columns or the labels.
    normalize : bool
        Accept rows of probabilities that do not sum to 1 and divide them by their sum.
    clip : float, optional
        Smaller probabilities are clipped to this. Default: 1e-6 in rows that hold a 0; when the
        fit is penalised and all probabilities are multiples of 1/T, 1/(2T).

    Attributes
    ----------
    fit_ : MCLLOFit or AllBaselinesMap
        Estimates, standard errors and convergence; the averaged map for ``baseline='all'``.
    gate_ : GateDecision or None
        What the gate did; print it. None without a gate.
    clip_ : float or None
        The floor used for zeros, in fitting and predicting.

    See Also
    --------
    MCLLOFit : What `fit_` is.
    calibration_test : Whether a recalibration is called for.
    AutoCalibrator : When only the best probabilities are asked for.
    mcllo.calibrators.TemperatureScaling : One slope and no shifts.

    Notes
    -----
    The map and its use for recalibration are those of [1]_; the model and its likelihood ratio test
    are also those of [2]_. The penalty 'firth' is that of [3]_; that its estimate is finite is
    proved for two classes in [4]_. Frequencies of unlabelled rows are estimated by EM [5]_.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.
    .. [2] K. Van Hoorde, Y. Vergouwe, D. Timmerman, S. Van Huffel, E. W. Steyerberg, B. Van Calster
           (2014). Assessing calibration of multinomial risk prediction models. Statistics in
           Medicine 33:2585-2596.
    .. [3] D. Firth (1993). Bias reduction of maximum likelihood estimates. Biometrika 80:27-38.
    .. [4] I. Kosmidis, D. Firth (2021). Jeffreys-prior penalty, finiteness and shrinkage in
           binomial-response generalized linear models. Biometrika 108:71-82.
    .. [5] M. Saerens, P. Latinne, C. Decaestecker (2002). Adjusting the outputs of a classifier to
           new a priori probabilities: a simple procedure. Neural Computation 14:21-41.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> honest = rng.dirichlet([1, 1, 1], size=4000)
    >>> y = [rng.choice(3, p=row) for row in honest]
    >>> sharp = honest**2 / (honest**2).sum(axis=1, keepdims=True)  # overconfident
    >>> calibrator = MCLLOCalibrator().fit(sharp, y)
    >>> calibrator.fit_.gamma.round(1)
    array([0.5, 0.5])
    >>> bool(abs(calibrator.predict_proba(sharp) - honest).mean() < 0.01)
    True
    """

    method = "mcllo"
    fit_: MCLLOFit | AllBaselinesMap

    def __init__(
        self,
        *,
        baseline: Hashable | None = None,
        penalty: float | str = 0.0,
        center: str = "identity",
        gate: float | None = None,
        prior: str | Sequence[float] = "fit",
        classes: Sequence[Hashable] | None = None,
        normalize: bool = False,
        clip: float | None = None,
    ) -> None:
        super().__init__(classes=classes, normalize=normalize)
        self.baseline = baseline
        self.penalty = penalty
        self.center = center
        self.gate = gate
        self.prior = prior
        self.clip = clip

    @names_unknown_keywords
    def fit(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        logits: Any = None,
    ) -> Self:
        """Learn from predictions and labels; from Dask collections too.

        Parameters
        ----------
        X : array-like, frame, Predictions, or Dask array or dataframe
            Predicted probabilities, shape (n_samples, n_classes).
        y : array-like or Dask array of shape (n_samples,)
            The labels that came true.
        sample_weight : array-like of shape (n_samples,), optional
            Row i counts as ``sample_weight[i]`` rows.
        logits : array-like or frame, optional
            Scores before the softmax in the place of X: ``fit(y=y, logits=z)``.

        Returns
        -------
        MCLLOCalibrator
            Itself, fitted.
        """
        if any(map(is_dask, (X, y, sample_weight, logits))):
            return self._fit_dask(X, y, sample_weight, logits)
        return super().fit(X, y, sample_weight, logits=logits)

    def _check_options(self) -> None:
        split_baseline_rule(self.baseline, allowed=RESERVED_LABELS)

    def _learn(self, predictions: Predictions) -> None:
        rule, _ = split_baseline_rule(self.baseline, allowed=RESERVED_LABELS)
        self.gate_ = None
        tested_fit = None
        if self.gate is not None:
            self.gate_, tested_fit = decide_gate(predictions, self.gate, rule)
        self.clip_ = self.clip
        if self.penalty != 0.0 and self.clip is None and predictions.n_zeros:
            predictions, self.clip_ = clip_for_recalibration(predictions)

        # A map that is not used has nothing to warn of.
        with suppress_warnings(*ESTIMATION_WARNINGS) if self._closed else nullcontext():
            self.fit_ = self._fit_map(predictions, rule, tested_fit)

    def _fit_map(
        self, predictions: Predictions, rule: str, tested_fit: MCLLOFit | None
    ) -> MCLLOFit | AllBaselinesMap:
        """Return the map; `tested_fit` is that of the gate."""
        options: dict[str, Any] = {"penalty": self.penalty, "center": self.center}
        if rule == "all":
            return fit_mean_over_baselines(predictions, **options)
        if rule == "auto":
            baseline = likeliest_baseline(predictions, **options)
            predictions = predictions.with_baseline(baseline)
        if tested_fit is not None and tested_fit.converged and self.penalty == 0.0:
            return tested_fit
        fit = fit_predictions(predictions, **options)
        return robust_fit_if_needed(predictions, fit)

    def _fit_dask(self, X: Any, y: Any, sample_weight: Any, logits: Any) -> Self:
        """Fit rows that stay with their workers."""
        rule, _ = split_baseline_rule(self.baseline, allowed=RESERVED_LABELS)
        is_asked_for = {
            "gate": self.gate is not None,
            "center": self.center != "identity",
            "prior": self._prior_kind != "fit",
            "baseline": bool(rule),
        }
        for name, asked in is_asked_for.items():
            if asked:
                raise InputError(
                    f"{name}={getattr(self, name)!r} needs all rows in memory. Pass X.compute() "
                    "and y.compute(), or leave it out."
                )
        dask_rows = load_application("streaming.dask")
        fit = dask_rows.fit_dask(
            X,
            y,
            self.penalty,
            logits=logits,
            classes=self.classes,
            baseline=self.baseline,
            sample_weight=sample_weight,
            normalize=self.normalize,
            clip=self.clip,
        )
        self._clear_fitted_attributes()
        self._adopt_fit(fit, "probs" if logits is None else "logits")
        columns = getattr(X if logits is None else logits, "columns", None)
        if columns is not None:
            self.feature_names_in_ = np.array(
                [str(name) for name in columns], dtype=object
            )
        return self

    def _adopt_fit(self, fit: MCLLOFit, fitted_input: str = "probs") -> Self:
        """Take a fit of the same rows, say of blocks, as the result of `fit`."""
        self._set_classes(fit.classes)
        self.input_ = fitted_input
        self.fit_ = fit
        self.gate_ = None
        self.clip_ = self.clip
        self.learned_ = None
        self.new_shares_ = None
        return self

    def predict_proba(self, X: Any = None, *, logits: Any = None) -> Floats:
        """Return recalibrated probabilities of X, or of `logits`; columns as in `classes_`.

        Of a Dask array a lazy one; of a Dask dataframe a lazy one of the class columns. With
        ``prior="unlabelled"``, unless `adapt` was called, class frequencies are estimated from the
        rows of this call.

        Parameters
        ----------
        X : array-like, frame, Predictions, or Dask array or dataframe
            Predicted probabilities, shape (n_samples, n_classes).
        logits : array-like or frame, optional
            Scores before the softmax in the place of X, for any method.

        Returns
        -------
        ndarray or Dask array of shape (n_samples, n_classes)
            Rows sum to 1.
        """
        if is_dask(X):
            check_is_fitted(self, "classes_")
            return load_application("streaming.dask").lazy_predict(self, X)
        _refuse_dask_logits(logits)
        return super().predict_proba(X, logits=logits)

    def predict(self, X: Any = None, *, logits: Any = None) -> NDArray[Any]:
        """Return the most probable class of each row; of Dask rows a lazy array.

        Parameters
        ----------
        X : array-like, frame, Predictions, or Dask array or dataframe
            Predicted probabilities, shape (n_samples, n_classes).
        logits : array-like or frame, optional
            Scores before the softmax in the place of X, for any method.

        Returns
        -------
        ndarray or Dask array of shape (n_samples,)
            Labels.
        """
        if is_dask(X):
            check_is_fitted(self, "classes_")
            return load_application("streaming.dask").lazy_predict_labels(self, X)
        _refuse_dask_logits(logits)
        return super().predict(X, logits=logits)

    def summary(self) -> str:
        """Say in a line what was fitted, and what the gate did.

        Returns
        -------
        str
        """
        return self.describe()

    def describe(self) -> str:
        """Return in a line what was fitted, and what the gate did."""
        state = self.fit_.to_dict()
        rows = f" from {state['n_samples']:,} rows" if "n_samples" in state else ""
        gate = "" if self.gate_ is None else f"; gate: {self.gate_}"
        return f"map of {len(self.classes_)} classes (baseline: {state['baseline']}){rows}{gate}"

    def _apply_map(self, simplex: Simplex) -> Floats:
        return self.fit_.apply(simplex)

    def _state(self) -> dict[str, Any]:
        state = self.fit_.to_dict()
        state |= super()._state()
        state["clip"] = self.clip_
        return state

    def _restore_state(self, state: dict[str, Any]) -> None:
        super()._restore_state(state)
        kind = AllBaselinesMap if state["baseline"] == "all" else MCLLOFit
        self.fit_ = kind.from_dict(state)
        self.clip_ = state.get("clip", self.clip)


def _refuse_dask_logits(logits: Any) -> None:
    """Refuse Dask logits to predict from; their softmax is what X may be."""
    if is_dask(logits):
        raise InputError(
            argument="logits",
            rule="be in memory where rows are predicted",
            found="a Dask collection",
            remedy="Pass logits.compute(), or their softmax as X.",
        )
