"""What is timed and compared, ours and others: each is ``fit(probs, y) -> predict``.

============  ======================================================================================
`QUALITY`     judged on held-out rows, each with its package's defaults
`PROGRAMS`    programs of the same model, MCLLO; they give numbers in which they should agree
`APPLY`       what is timed is `predict`, of a map fitted to a few rows
============  ======================================================================================

Packages are imported on the first fit, before the clock starts (`warm_up`). A method that is not
installed raises ImportError there and takes no part; the pages say so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np

Predict = Callable[[np.ndarray], np.ndarray]
Fit = Callable[[np.ndarray, np.ndarray], Predict]

REFERENCE, NOTHING, OURS, GATED = "sms", "identity", "auto", "auto-gate"
LEVEL = 0.05
"""Level of the gates."""
FEW = 5
"""Seeds of methods that nothing is decided by."""


@dataclass(frozen=True, eq=False)
class Method:
    """One line of the tables: as printed, whose code it is, and the fit.

    Some take part in the first seeds only, and up to so many rows: slow, or nothing hangs on them.
    """

    title: str
    package: str
    fit: Fit
    seeds: int | None = None
    most_rows: int | None = None

    def suits(self, n: int, seed: int) -> bool:
        """Whether the method takes part in a case.

        >>> slow = Method("slow", "", None, seeds=3, most_rows=3000)
        >>> slow.suits(3000, 2), slow.suits(3000, 3), slow.suits(10_000, 0)
        (True, False, False)
        """
        few = self.most_rows is None or n <= self.most_rows
        return few and (self.seeds is None or seed < self.seeds)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A map for other rows, with numbers to compare."""

    predict: Predict
    found: dict[str, float] = field(default_factory=dict)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        return self.predict(rows)


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
        """Return the negative log likelihood and its gradient."""
        g, log_total = self.softmax(theta)
        gradient = np.concatenate([g.sum(axis=0), np.einsum("ij,ij->j", g, self.odds)]) - self.s
        return float(log_total.sum() - theta @ self.s), gradient

    def hessian(self, theta: np.ndarray) -> np.ndarray:
        """Return the Hessian: diagonals less a gram matrix."""
        g, at = self.softmax(theta)[0], np.arange(self.k)
        both = np.hstack([g, g * self.odds])
        found = -both.T @ both
        linear = (g * self.odds).sum(axis=0)
        found[at, at] += g.sum(axis=0)
        found[at, at + self.k] += linear
        found[at + self.k, at] += linear
        found[at + self.k, at + self.k] += (g * self.odds**2).sum(axis=0)
        return found

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
    """Fit a calibrator of ours."""
    from mcllo import CALIBRATORS

    made = CALIBRATORS[name](classes=range(probs.shape[1]), **options)
    if made.input == "probs":
        return made.fit(probs, y).predict_proba
    made.fit(np.log(probs), y)
    return lambda rows: made.predict_proba(np.log(rows))


def tested(threads: int | None, probs: np.ndarray, y: np.ndarray) -> Predict:
    """Fit MCLLO: estimates, likelihood ratio test and standard errors."""
    from scipy.special import chdtrc

    from benchmarks.inside import limit_threads
    from mcllo import MCLLOCalibrator

    limit_threads(threads)
    made = MCLLOCalibrator(classes=range(probs.shape[1])).fit(probs, y)
    end = made.fit_
    found = {"nll": -end.log_likelihood, "pvalue": float(chdtrc(end.df, end.statistic))}
    found |= {"steps": end.n_iter, "se": float(end.se_tau[0])}
    return Fitted(made.predict_proba, found)


def estimated(probs: np.ndarray, y: np.ndarray) -> Predict:
    """Fit MCLLO without standard errors."""
    from benchmarks.inside import estimate

    theta, found = estimate(probs, y)
    return Fitted(partial(apply_softmax, theta), found)


def plain(solver: str, probs: np.ndarray, y: np.ndarray) -> Predict:
    """Fit MCLLO by an optimiser of scipy."""
    model = PlainMCLLO(probs, y)
    found, pvalue = model.minimum(solver)
    se = np.sqrt(np.diagonal(np.linalg.inv(model.hessian(found.x))))
    numbers = {"nll": float(found.fun), "pvalue": pvalue, "steps": found.nit, "se": float(se[0])}
    return Fitted(partial(apply_softmax, found.x), numbers)


def in_r(probs: np.ndarray, y: np.ndarray) -> Predict:
    """Fits in R are made by ``optim.R``."""
    raise NotImplementedError


def probmetrics(name: str, probs: np.ndarray, y: np.ndarray) -> Predict:
    """Fit a calibrator of probmetrics."""
    from probmetrics.calibrators import get_calibrator

    return get_calibrator(name).fit(probs, y).predict_proba


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
    """Fit a calibrator of scikit-learn."""
    from sklearn.calibration import CalibratedClassifierCV

    return CalibratedClassifierCV(_given(probs.shape[1]), method=name).fit(probs, y).predict_proba


def netcal(path: str, probs: np.ndarray, y: np.ndarray) -> Predict:
    """Fit a calibrator of netcal."""
    module, _, name = path.partition(".")
    made = getattr(import_module(f"netcal.{module}"), name)().fit(probs, y)

    def predict(rows: np.ndarray) -> np.ndarray:
        found = made.transform(rows)  # of two classes the second alone
        return found if found.ndim == 2 else np.column_stack([1.0 - found, found])

    return predict


def dirichletcal(probs: np.ndarray, y: np.ndarray) -> Predict:
    """Fit the calibrator of dirichletcal."""
    from dirichletcal.calib.fulldirichlet import FullDirichletCalibrator

    return FullDirichletCalibrator(reg_lambda=1e-3).fit(probs, y).predict_proba


def applied(way: Any, probs: np.ndarray, y: np.ndarray) -> Predict:
    """Return a map of ours, with so many threads, or in a way of plain NumPy."""
    from benchmarks.inside import limit_threads
    from mcllo import MCLLOCalibrator

    fit = MCLLOCalibrator().fit(probs, y).fit_
    if callable(way):
        return partial(way, fit.theta)
    limit_threads(way)
    return fit.recalibrate


def _table(package: str, lines: Iterable[tuple[Any, ...]]) -> dict[str, Method]:
    """Return methods of one package: name, title, fit, and seeds and rows where they are few."""
    return {name: Method(title, package, fit, *few) for name, title, fit, *few in lines}


QUALITY = {
    "identity": Method("nothing done", "", partial(ours, "identity")),
    **_table("mcllo", (
        ("auto", "auto", partial(ours, "auto")),
        ("auto-gate", "auto, gate 0.05", partial(ours, "auto", gate=LEVEL)),
        ("mcllo", "MCLLO, maximum likelihood", partial(tested, None)),
        ("mcllo-ridge", 'MCLLO, penalty="auto"', partial(ours, "mcllo", penalty="auto")),
        ("mcllo-all", 'MCLLO, baseline="all"', partial(ours, "mcllo", baseline="all"), FEW),
        ("temperature", "temperature", partial(ours, "temperature")),
        ("vector", "vector", partial(ours, "vector"), FEW),
        ("matrix", "matrix", partial(ours, "matrix"), FEW),
        ("dirichlet", "Dirichlet", partial(ours, "dirichlet"), FEW),
        ("beta", "beta", partial(ours, "beta"), FEW),
        ("isotonic", "isotonic", partial(ours, "isotonic"), FEW),
        ("histogram", "histogram", partial(ours, "histogram"), FEW),
        ("xu_davoine", "Xu-Davoine", partial(ours, "xu_davoine"), FEW),
    )),
    **_table("probmetrics", (
        ("sms", "SMS", partial(probmetrics, "sms")),
        ("svs", "SVS", partial(probmetrics, "svs")),
        ("ts", "TS", partial(probmetrics, "ts-mix")),
    )),
    **_table("scikit-learn", (
        ("sklearn-temperature", "temperature", partial(sklearn, "temperature"), FEW),
        ("sklearn-sigmoid", "sigmoid", partial(sklearn, "sigmoid"), FEW),
        ("sklearn-isotonic", "isotonic", partial(sklearn, "isotonic"), FEW),
    )),
    **_table("netcal", (
        ("netcal-temperature", "temperature", partial(netcal, "scaling.TemperatureScaling"), FEW),
        ("netcal-histogram", "histogram", partial(netcal, "binning.HistogramBinning"), FEW),
        ("netcal-logistic", "logistic", partial(netcal, "scaling.LogisticCalibration"), 1, 1000),
        ("netcal-beta", "beta", partial(netcal, "scaling.BetaCalibration"), 1, 300),
    )),
    "dirichletcal": Method("Dirichlet", "dirichletcal", dirichletcal, 3, 1000),
}  # fmt: skip
PROGRAMS = _table("", (
    ("mcllo-1", "MCLLO, one thread", partial(tested, 1)),
    ("mcllo-estimate", "MCLLO without standard errors", estimated),
    ("scipy-lbfgs", "MCLLO by scipy L-BFGS-B", partial(plain, "L-BFGS-B")),
    ("scipy-bfgs", "MCLLO by scipy BFGS", partial(plain, "BFGS")),
    ("r-analytic", "MCLLO by R optim, analytic gradient", in_r),
    ("r-numeric", "MCLLO by R optim, as in the paper", in_r),
))  # fmt: skip
APPLY = _table("", (
    ("apply-mcllo-1", "MCLLO, one thread", partial(applied, 1)),
    ("apply-mcllo", "MCLLO, as it comes", partial(applied, None)),
    ("apply-softmax", "plain NumPy", partial(applied, apply_softmax)),
    ("apply-powers", "plain NumPy, powers of odds", partial(applied, apply_powers)),
))  # fmt: skip
METHODS = QUALITY | PROGRAMS | APPLY
METHODS["mcllo-gate"] = Method("MCLLO, gate 0.05", "mcllo", partial(ours, "mcllo", gate=LEVEL))

_PEERS = (
    *("auto", "sklearn-temperature", "netcal-temperature", "netcal-logistic"),
    *("ts", "svs", "sms"),
)
FITS = (
    *("mcllo-1", "mcllo", "mcllo-estimate", "scipy-lbfgs", "scipy-bfgs", *_PEERS),
    *("r-analytic", "r-numeric"),
)
"""Methods whose fits are timed, in the order of the table."""
REAL = ("identity", "mcllo-1", "mcllo-ridge", "temperature", *_PEERS)
"""Methods that are timed and judged on real predictions."""
HARMLESS = ("auto", "auto-gate", "sms", "temperature", "mcllo", "mcllo-gate")
"""Methods of the do-no-harm simulation."""
AS_TIMED = {
    "identity": "as predicted",
    "mcllo": "MCLLO, as it comes",
    "mcllo-ridge": 'MCLLO, penalty="auto"',
    "auto": "AutoCalibrator",
    "temperature": "our temperature",
}


def full_title(name: str) -> str:
    """Return a method's title with its package.

    >>> full_title("sms"), full_title("auto"), full_title("identity")
    ('probmetrics SMS', 'mcllo auto', 'nothing done')
    """
    return f"{METHODS[name].package} {METHODS[name].title}".strip()


def timed_title(name: str) -> str:
    """Return a method's title in the tables of times."""
    return AS_TIMED.get(name) or full_title(name)


def few_words(names: Iterable[str]) -> str | None:
    """Return which methods took part in few cases.

    >>> few_words(["auto", "vector", "beta", "netcal-beta"])
    'mcllo vector, mcllo beta (5 seeds); netcal beta (1 seed, n <= 300)'
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        seeds, most = METHODS[name].seeds, METHODS[name].most_rows
        if seeds:
            rows = "" if most is None else f", n <= {most}"
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
