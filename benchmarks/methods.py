"""What is timed and compared, ours and others: each is ``fit(probs, y) -> predict``.

``methods.csv`` lists them: a function of this module and what it is given. Some take part in the
first seeds only, and up to so many rows: they are slow, or nothing hangs on them.

============  ======================================================================================
`QUALITY`     judged on held-out rows, each with its package's defaults
programs      of the same model, MCLLO; they give numbers in which they should agree
`APPLY`       what is timed is `predict`, of a map fitted to a few rows
============  ======================================================================================

Packages are imported on the first fit, before the clock starts (`warm_up`). A method that is not
installed raises ImportError there and takes no part; the pages say so. Private names of ``mcllo``
are imported by `in_full` and `applied` (one thread over the rows), `estimated` (no public function
leaves out standard errors) and `one_pass` (the unit in which a fit from a file is counted) alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from math import inf
from typing import Any

import numpy as np
from studies.pages import parsed, read

from benchmarks.machine import HERE

Predict = Callable[[np.ndarray], np.ndarray]
Fit = Callable[[np.ndarray, np.ndarray], Predict]

REFERENCE, NOTHING, OURS, GATED = "sms", "identity", "auto", "auto-gate"


@dataclass(frozen=True, eq=False)
class Method:
    """One line of the tables: as printed, whose code it is, the fit, and where it takes part."""

    title: str
    package: str
    fit: Fit
    timed: str | None = None
    seeds: float = inf
    most_rows: float = inf


def with_numbers(predict: Predict, found: dict[str, float]) -> Predict:
    """Return a map for other rows, with numbers to compare as its attribute `found`."""
    known = partial(predict)
    known.found = found  # type: ignore[attr-defined]
    return known


class PlainMCLLO:
    """MCLLO as a careful user writes it in NumPy, rows first; the last class is the baseline."""

    def __init__(self, x: np.ndarray, y: np.ndarray) -> None:
        self.k = x.shape[1] - 1
        self.odds = np.log(x[:, :-1] / x[:, -1:])
        hot = (y[:, None] == np.arange(self.k)) * 1.0
        self.s = np.concatenate([hot.sum(axis=0), (hot * self.odds).sum(axis=0)])
        self.start = np.concatenate([np.zeros(self.k), np.ones(self.k)])

    def softmax(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the probabilities of the classes but the last, and log of their denominator."""
        eta = theta[: self.k] + theta[self.k :] * self.odds
        top = np.maximum(eta.max(axis=1, keepdims=True), 0.0)
        g = np.exp(eta - top)
        total = g.sum(axis=1, keepdims=True) + np.exp(-top)
        return g / total, top + np.log(total)

    def value(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        g, log_total = self.softmax(theta)
        gradient = np.concatenate([g.sum(axis=0), np.einsum("ij,ij->j", g, self.odds)]) - self.s
        return float(log_total.sum() - theta @ self.s), gradient

    def hessian(self, theta: np.ndarray) -> np.ndarray:
        g = self.softmax(theta)[0]
        both = np.hstack([g, g * self.odds])
        a, b, d = (np.diag((g * power).sum(axis=0)) for power in (1.0, self.odds, self.odds**2))
        return np.block([[a, b], [b, d]]) - both.T @ both

    def minimum(self, solver: str) -> tuple[Any, float]:
        """Return what a solver of scipy found, and the p-value of the likelihood ratio."""
        from scipy.optimize import minimize
        from scipy.special import chdtrc

        found = minimize(self.value, self.start, jac=True, method=solver)
        statistic = 2.0 * (self.value(self.start)[0] - found.fun)
        return found, float(chdtrc(2 * self.k, statistic))


def apply_softmax(theta: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return recalibrated rows the plain way: the softmax of tau + gamma log odds."""
    k = x.shape[1] - 1
    eta = np.zeros(x.shape)
    eta[:, :-1] = theta[:k] + theta[k:] * np.log(x[:, :-1] / x[:, -1:])
    g = np.exp(eta - eta.max(axis=1, keepdims=True))
    return g / g.sum(axis=1, keepdims=True)


def apply_powers(theta: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return recalibrated rows as the paper's Eq. (3) is printed: powers of odds."""
    k = x.shape[1] - 1
    g = np.ones(x.shape)
    g[:, :-1] = np.exp(theta[:k]) * (x[:, :-1] / x[:, -1:]) ** theta[k:]
    return g / g.sum(axis=1, keepdims=True)


def ours(name: str, probs: np.ndarray, y: np.ndarray, **options: Any) -> Predict:
    from mcllo import CALIBRATORS

    made = CALIBRATORS[name](classes=range(probs.shape[1]), **options)
    if made.input == "probs":
        return made.fit(probs, y).predict_proba
    made.fit(np.log(probs), y)
    return lambda rows: made.predict_proba(np.log(rows))


def in_full(probs: np.ndarray, y: np.ndarray, threads: int | None = None) -> Predict:
    """Fit MCLLO: estimates, likelihood ratio test and standard errors."""
    from scipy.special import chdtrc

    from mcllo import MCLLOCalibrator
    from mcllo._ground.threads import limit_threads

    limit_threads(threads)
    made = MCLLOCalibrator(classes=range(probs.shape[1])).fit(probs, y)
    end = made.fit_
    found = {"nll": -end.log_likelihood, "pvalue": float(chdtrc(end.df, end.statistic))}
    found |= {"steps": end.n_iter, "se": float(end.se_tau[0])}
    return with_numbers(made.predict_proba, found)


def estimated(probs: np.ndarray, y: np.ndarray) -> Predict:
    """Fit MCLLO without standard errors."""
    from mcllo import Predictions
    from mcllo._fit.objective import FreeLikelihood
    from mcllo._math.many_classes import fit_many

    p = Predictions.from_arrays(probs, y, classes=range(probs.shape[1]))
    likelihood = FreeLikelihood.of(p)
    statistic, start = likelihood.whole.statistic, likelihood.identity
    done = fit_many(p.log_odds, statistic, start=start, free=likelihood.free, hessian=False)
    found = {"nll": done.solution.value, "steps": done.solution.n_iter}
    return with_numbers(partial(apply_softmax, likelihood.theta(done.solution.x)), found)


def one_pass(log_odds: np.ndarray) -> Any:
    """Return the terms of the likelihood at the identity, on one thread; terms can be added."""
    from mcllo._math.likelihood import LogPartition, identity_theta

    return LogPartition(log_odds, n_jobs=1)(identity_theta(len(log_odds)))


def plain(solver: str, probs: np.ndarray, y: np.ndarray) -> Predict:
    model = PlainMCLLO(probs, y)
    found, pvalue = model.minimum(solver)
    se = np.sqrt(np.diagonal(np.linalg.inv(model.hessian(found.x))))
    numbers = {"nll": float(found.fun), "pvalue": pvalue, "steps": found.nit, "se": float(se[0])}
    return with_numbers(partial(apply_softmax, found.x), numbers)


def in_r(probs: np.ndarray, y: np.ndarray) -> Predict:
    """Fits in R are made by ``optim.R``."""
    raise NotImplementedError


@cache
def _given(c: int) -> Any:
    """Return a fitted scikit-learn classifier whose features are its probabilities."""
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.frozen import FrozenEstimator

    class Given(ClassifierMixin, BaseEstimator):
        classes_, n_features_in_ = np.arange(c), c  # all classes, absent ones too

        def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
            return self

        def predict_proba(self, X: np.ndarray) -> np.ndarray:
            return X

        def predict(self, X: np.ndarray) -> np.ndarray:
            return X.argmax(axis=1)

        def __sklearn_is_fitted__(self) -> bool:
            return True

    return FrozenEstimator(Given())


def sklearn(name: str, probs: np.ndarray, y: np.ndarray) -> Predict:
    from sklearn.calibration import CalibratedClassifierCV

    return CalibratedClassifierCV(_given(probs.shape[1]), method=name).fit(probs, y).predict_proba


def peer(path: str, *given: Any, **options: Any) -> Predict:
    """Fit what a class or function of another package makes; rows and labels are given last."""
    module, _, name = path.rpartition(".")
    *words, probs, y = given
    made = getattr(import_module(module), name)(*words, **options).fit(probs, y)

    def transformed(rows: np.ndarray) -> np.ndarray:
        found = made.transform(rows)  # netcal: of two classes the second alone
        return found if found.ndim == 2 else np.column_stack([1.0 - found, found])

    return getattr(made, "predict_proba", transformed)


def applied(probs: np.ndarray, y: np.ndarray, way: str = "", threads: int | None = None) -> Predict:
    """Return a map of ours, with so many threads, or in a way of plain NumPy."""
    from mcllo import MCLLOCalibrator
    from mcllo._ground.threads import limit_threads

    fit = MCLLOCalibrator().fit(probs, y).fit_
    limit_threads(threads)
    return partial(globals()[way], fit.theta) if way else fit.recalibrate


def called(function: Callable[..., Any], given: object) -> Callable[..., Any]:
    """Return a function with arguments that a table has as words.

    >>> called(dict, "a=1 b=x")(), called(max, "1 3.5 2")()
    ({'a': 1, 'b': 'x'}, 3.5)
    """
    words = [word.rpartition("=") for word in str("" if given is None else given).split()]
    named = {name: parsed(value) for name, equals, value in words if equals}
    return partial(function, *(parsed(value) for _, equals, value in words if not equals), **named)


_ROWS = read(HERE / "methods.csv")
METHODS = {
    row["name"]: Method(
        row["title"],
        row["package"] or "",
        called(globals()[row["fit"]], row["given"]),
        row["timed"],
        *(row[name] or inf for name in ("seeds", "most_rows")),
    )
    for row in _ROWS
}
QUALITY = {row["name"]: METHODS[row["name"]] for row in _ROWS if row["list"] == "quality"}
APPLY = {row["name"]: METHODS[row["name"]] for row in _ROWS if row["list"] == "apply"}
_PEERS = "auto sklearn-temperature netcal-temperature netcal-logistic ts svs sms"
FITS = f"mcllo-1 mcllo mcllo-estimate scipy-lbfgs scipy-bfgs {_PEERS} r-analytic r-numeric".split()
"""Methods whose fits are timed, in the order of the table."""
REAL = f"identity mcllo-1 mcllo-ridge temperature {_PEERS}".split()
"""Methods that are timed and judged on real predictions."""
HARMLESS = ["auto", "auto-gate", "sms", "temperature", "mcllo", "mcllo-gate"]


def full_title(name: str) -> str:
    return f"{METHODS[name].package} {METHODS[name].title}".strip()


def timed_title(name: str) -> str:
    return METHODS[name].timed or full_title(name)


def few_words(names: Iterable[str]) -> str | None:
    """Return which methods took part in few cases."""
    groups: dict[str, list[str]] = {}
    for name in names:
        seeds, most = METHODS[name].seeds, METHODS[name].most_rows
        if seeds < inf:
            rows = f", n <= {most}" if most < inf else ""
            how = f"{seeds} seed{'' if seeds == 1 else 's'}{rows}"
            groups.setdefault(how, []).append(full_title(name))
    return "; ".join(f"{', '.join(titles)} ({how})" for how, titles in groups.items()) or None


def warm_up(names: Iterable[str]) -> dict[str, str]:
    """Fit each method once to a few rows; return those that are not installed, with the reason.

    Other errors wait for the first case: they may not come back.
    """
    rng = np.random.default_rng(0)
    probs, y = rng.dirichlet(np.ones(3), size=60), np.arange(60) % 3
    missing = {}
    for name in names:
        try:
            METHODS[name].fit(probs, y)(probs)
        except ImportError as error:
            if METHODS[name].package in ("", "mcllo"):
                raise  # a benchmark of nothing
            missing[name] = str(error)
        except Exception:  # a peer may fail in any way; cases record it
            continue
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    return missing
