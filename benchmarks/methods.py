"""What is timed: each method is ``prepare(probs, y) -> job``; ``job()`` is one fit.

A job returns `Fitted`: how to recalibrate other rows, and what it found. Packages that are not
installed raise ImportError in `prepare`, and the table says so. Everything a method needs of its
package is imported there, so that a worker loads one package and no other.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Job = Callable[[], "Fitted"]


@dataclass(frozen=True, eq=False)
class Fitted:
    """What one fit gave: a map for other rows, or None, and numbers to compare."""

    predict: Callable[[np.ndarray], Any] | None = None
    found: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Method:
    """One line of the tables.

    Attributes
    ----------
    title : str
        As it is printed.
    model : str
        What is fitted; methods of the model "mcllo" must agree on the likelihood.
    prepare : callable
        ``prepare(probs, y)`` returns the job; not timed.
    least_classes : int
        Tables with fewer classes are left out.
    """

    title: str
    model: str
    prepare: Callable[[np.ndarray, np.ndarray], Job]
    least_classes: int = 2


def _mcllo(n_threads: int | None) -> Callable[[np.ndarray, np.ndarray], Job]:
    def prepare(probs: np.ndarray, y: np.ndarray) -> Job:
        from mcllo import Predictions
        from mcllo._chosen_test import fit_and_test
        from mcllo._threads import limit_threads

        limit_threads(n_threads)

        def job() -> Fitted:
            known = range(probs.shape[1])
            done = fit_and_test(Predictions.from_arrays(probs, y, classes=known), method="chi2")
            fit = done.fit
            found = {"nll": -fit.log_likelihood, "pvalue": done.test.pvalue, "steps": fit.n_iter}
            return Fitted(fit.recalibrate, found | {"se": float(fit.se_tau[0])})

        return job

    return prepare


def _mcllo_estimate(probs: np.ndarray, y: np.ndarray) -> Job:
    """Without standard errors: validation, estimate and likelihood ratio alone."""
    from mcllo import Predictions
    from mcllo._many import fit_many
    from mcllo._penalty import FreeLikelihood

    def job() -> Fitted:
        p = Predictions.from_arrays(probs, y, classes=range(probs.shape[1]))
        likelihood = FreeLikelihood(p)
        statistic, start = likelihood.whole.statistic, likelihood.identity
        found = fit_many(p.log_odds, statistic, start=start, free=likelihood.free, hessian=False)
        return Fitted(None, {"nll": found.solution.value, "steps": found.solution.n_iter})

    return job


def _estimator(make: Callable[[], Any]) -> Callable[[np.ndarray, np.ndarray], Job]:
    """Return `prepare` for something with `fit` and `predict_proba`."""

    def prepare(probs: np.ndarray, y: np.ndarray) -> Job:
        make()  # the import is not timed
        return lambda: Fitted(make().fit(probs, y).predict_proba)

    return prepare


def _ours(name: str, **options: Any) -> Callable[[], Any]:
    def make() -> Any:
        from mcllo import calibrators

        return getattr(calibrators, name)(**options)

    return make


def _probmetrics(name: str) -> Callable[[], Any]:
    def make() -> Any:
        from probmetrics.calibrators import get_calibrator

        return get_calibrator(name)

    return make


def _netcal(name: str) -> Callable[[np.ndarray, np.ndarray], Job]:
    def prepare(probs: np.ndarray, y: np.ndarray) -> Job:
        import netcal.scaling

        make = getattr(netcal.scaling, name)
        return lambda: Fitted(make().fit(probs, y).transform)

    return prepare


def _sklearn_temperature(probs: np.ndarray, y: np.ndarray) -> Job:
    from benchmarks.peers import sklearn_temperature

    fit = sklearn_temperature(probs, y)
    return lambda: Fitted(fit().predict_proba)


def _scipy(solver: str) -> Callable[[np.ndarray, np.ndarray], Job]:
    def prepare(probs: np.ndarray, y: np.ndarray) -> Job:
        from benchmarks import plain

        return lambda: Fitted(None, plain.fit(probs, y, solver))

    return prepare


def _untouched(probs: np.ndarray, y: np.ndarray) -> Job:
    return lambda: Fitted(lambda rows: rows)


FITS = {
    "mcllo-1": Method("MCLLO, one thread", "mcllo", _mcllo(1)),
    "mcllo": Method("MCLLO, as it comes", "mcllo", _mcllo(None)),
    "mcllo-estimate": Method(
        "MCLLO without standard errors", "mcllo", _mcllo_estimate, least_classes=300
    ),
    "scipy-lbfgs": Method("MCLLO by scipy L-BFGS-B", "mcllo", _scipy("L-BFGS-B")),
    "scipy-bfgs": Method("MCLLO by scipy BFGS", "mcllo", _scipy("BFGS")),
    "auto": Method("AutoCalibrator", "auto", _estimator(_ours("AutoCalibrator"))),
    "sklearn-temperature": Method("scikit-learn temperature", "temperature", _sklearn_temperature),
    "netcal-temperature": Method(
        "netcal temperature", "temperature", _netcal("TemperatureScaling")
    ),
    "netcal-logistic": Method("netcal logistic", "vector", _netcal("LogisticCalibration")),
    "probmetrics-ts": Method("probmetrics TS", "temperature", _estimator(_probmetrics("ts-mix"))),
    "probmetrics-svs": Method("probmetrics SVS", "vector", _estimator(_probmetrics("svs"))),
    "probmetrics-sms": Method("probmetrics SMS", "matrix", _estimator(_probmetrics("sms"))),
}
"""Fits in Python; those in R are `crew.R_METHODS`."""

REAL = {
    "untouched": Method("as predicted", "none", _untouched),
    "mcllo-1": FITS["mcllo-1"],
    "mcllo-auto": Method(
        'MCLLO, penalty="auto"', "ridge", _estimator(_ours("MCLLOCalibrator", penalty="auto"))
    ),
    "mcllo-temperature": Method(
        "our temperature", "temperature", _estimator(_ours("TemperatureScaling"))
    ),
    **{name: method for name, method in FITS.items() if method.model != "mcllo"},
}
"""Methods that are also judged on held-out rows."""


def _map_of(probs: np.ndarray, y: np.ndarray) -> Any:
    from mcllo import Predictions
    from mcllo._fit import fit_predictions

    return fit_predictions(Predictions.from_arrays(probs[:20_000], y[:20_000]))


def _apply_ours(n_threads: int | None) -> Callable[[np.ndarray, np.ndarray], Job]:
    def prepare(probs: np.ndarray, y: np.ndarray) -> Job:
        from mcllo._threads import limit_threads

        fit = _map_of(probs, y)
        limit_threads(n_threads)
        return lambda: Fitted(None, {"first": float(fit.recalibrate(probs)[0, 0])})

    return prepare


def _apply_plain(name: str) -> Callable[[np.ndarray, np.ndarray], Job]:
    def prepare(probs: np.ndarray, y: np.ndarray) -> Job:
        from benchmarks import plain

        theta, way = _map_of(probs, y).theta, getattr(plain, name)
        return lambda: Fitted(None, {"first": float(way(theta, probs)[0, 0])})

    return prepare


APPLY = {
    "apply-mcllo-1": Method("MCLLO, one thread", "apply", _apply_ours(1)),
    "apply-mcllo": Method("MCLLO, as it comes", "apply", _apply_ours(None)),
    "apply-softmax": Method("plain NumPy", "apply", _apply_plain("apply_softmax")),
    "apply-powers": Method("plain NumPy, powers of odds", "apply", _apply_plain("apply_powers")),
}

ALL = FITS | REAL | APPLY
