"""What is compared: each method is ``fit(probs, y) -> predict``, with its package's defaults.

Packages are imported on the first fit, before the clock starts (`warm_up`). A method that is not
installed raises ImportError there and takes no part; the page says so.
"""

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

Predict = Callable[[np.ndarray], np.ndarray]
Fit = Callable[[np.ndarray, np.ndarray], Predict]

REFERENCE, NOTHING, OURS, GATED = "sms", "identity", "auto", "auto-gate"
OWN = ("", "mcllo")
LEVEL = 0.05
"""Level of the gates."""
FEW = 5
"""Seeds of methods that nothing is decided by."""


@dataclass(frozen=True, eq=False)
class Method:
    """One line of the tables.

    Attributes
    ----------
    title, package : str
        As printed; whose code it is.
    fit : callable
        Fits and returns the map.
    seeds, most_rows : int or None
        Takes part in the first seeds only, and up to so many rows: slow, or nothing hangs on it.
    """

    title: str
    package: str
    fit: Fit
    seeds: int | None = None
    most_rows: int | None = None

    def suits(self, n: int, seed: int) -> bool:
        """Whether the method takes part in a case."""
        few = self.most_rows is None or n <= self.most_rows
        return few and (self.seeds is None or seed < self.seeds)


def _ours(name: str, **options: Any) -> Fit:
    def fit(probs: np.ndarray, y: np.ndarray) -> Predict:
        from mcllo import CALIBRATORS

        made = CALIBRATORS[name](classes=range(probs.shape[1]), **options)
        if made.input == "probs":
            return made.fit(probs, y).predict_proba
        made.fit(np.log(probs), y)
        return lambda rows: made.predict_proba(np.log(rows))

    return fit


def _probmetrics(name: str) -> Fit:
    def fit(probs: np.ndarray, y: np.ndarray) -> Predict:
        from probmetrics.calibrators import get_calibrator

        return get_calibrator(name).fit(probs, y).predict_proba

    return fit


def _sklearn(name: str) -> Fit:
    def fit(probs: np.ndarray, y: np.ndarray) -> Predict:
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.frozen import FrozenEstimator

        from benchmarks.peers import Given

        given = Given().fit(probs, np.arange(probs.shape[1]))  # all classes, absent ones too
        return (
            CalibratedClassifierCV(FrozenEstimator(given), method=name).fit(probs, y).predict_proba
        )

    return fit


def _netcal(module: str, name: str) -> Fit:
    def fit(probs: np.ndarray, y: np.ndarray) -> Predict:
        import importlib

        made = getattr(importlib.import_module(f"netcal.{module}"), name)().fit(probs, y)
        return lambda rows: _both_columns(made.transform(rows))

    return fit


def _both_columns(probs: np.ndarray) -> np.ndarray:
    """Return two columns where netcal returns the second of two classes alone."""
    return probs if probs.ndim == 2 else np.column_stack([1.0 - probs, probs])


def _dirichletcal(probs: np.ndarray, y: np.ndarray) -> Predict:
    from dirichletcal.calib.fulldirichlet import FullDirichletCalibrator

    return FullDirichletCalibrator(reg_lambda=1e-3).fit(probs, y).predict_proba


METHODS = {
    "identity": Method("nothing done", "", _ours("identity")),
    "auto": Method("auto", "mcllo", _ours("auto")),
    "auto-gate": Method("auto, gate 0.05", "mcllo", _ours("auto", gate=LEVEL)),
    "mcllo": Method("MCLLO, maximum likelihood", "mcllo", _ours("mcllo")),
    "mcllo-ridge": Method('MCLLO, penalty="auto"', "mcllo", _ours("mcllo", penalty="auto")),
    "mcllo-all": Method(
        'MCLLO, baseline="all"', "mcllo", _ours("mcllo", baseline="all"), seeds=FEW
    ),
    "temperature": Method("temperature", "mcllo", _ours("temperature")),
    "vector": Method("vector", "mcllo", _ours("vector"), seeds=FEW),
    "matrix": Method("matrix", "mcllo", _ours("matrix"), seeds=FEW),
    "dirichlet": Method("Dirichlet", "mcllo", _ours("dirichlet"), seeds=FEW),
    "beta": Method("beta", "mcllo", _ours("beta"), seeds=FEW),
    "isotonic": Method("isotonic", "mcllo", _ours("isotonic"), seeds=FEW),
    "histogram": Method("histogram", "mcllo", _ours("histogram"), seeds=FEW),
    "xu_davoine": Method("Xu-Davoine", "mcllo", _ours("xu_davoine"), seeds=FEW),
    "sms": Method("SMS", "probmetrics", _probmetrics("sms")),
    "svs": Method("SVS", "probmetrics", _probmetrics("svs")),
    "ts": Method("TS", "probmetrics", _probmetrics("ts-mix")),
    "sklearn-temperature": Method(
        "temperature", "scikit-learn", _sklearn("temperature"), seeds=FEW
    ),
    "sklearn-sigmoid": Method("sigmoid", "scikit-learn", _sklearn("sigmoid"), seeds=FEW),
    "sklearn-isotonic": Method("isotonic", "scikit-learn", _sklearn("isotonic"), seeds=FEW),
    "netcal-temperature": Method(
        "temperature", "netcal", _netcal("scaling", "TemperatureScaling"), seeds=FEW
    ),
    "netcal-histogram": Method(
        "histogram", "netcal", _netcal("binning", "HistogramBinning"), seeds=FEW
    ),
    "netcal-logistic": Method(
        "logistic", "netcal", _netcal("scaling", "LogisticCalibration"), seeds=1, most_rows=1000
    ),
    "netcal-beta": Method(
        "beta", "netcal", _netcal("scaling", "BetaCalibration"), seeds=1, most_rows=300
    ),
    "dirichletcal": Method("Dirichlet", "dirichletcal", _dirichletcal, seeds=3, most_rows=1000),
}

HARMLESS = {
    **{name: METHODS[name] for name in ("auto", "auto-gate", "sms", "temperature", "mcllo")},
    "mcllo-gate": Method("MCLLO, gate 0.05", "mcllo", _ours("mcllo", gate=LEVEL)),
}
"""Methods of the do-no-harm simulation."""
ALL = METHODS | HARMLESS


def full_title(name: str) -> str:
    """Return a method's title with its package.

    Examples
    --------
    >>> full_title("sms"), full_title("auto"), full_title("identity")
    ('probmetrics SMS', 'mcllo auto', 'nothing done')
    """
    method = ALL[name]
    return f"{method.package} {method.title}".strip()


def few_words(names: Iterable[str]) -> str:
    """Return which methods took part in few cases.

    Examples
    --------
    >>> few_words(["auto", "vector", "beta", "netcal-beta"])
    'Marked *, in fewer cases: mcllo vector, mcllo beta (5 seeds); netcal beta (1 seed, n <= 300).'
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        seeds, most = ALL[name].seeds, ALL[name].most_rows
        if seeds:
            rows = "" if most is None else f", n <= {most}"
            how = f"{seeds} seed{'' if seeds == 1 else 's'}{rows}"
            groups.setdefault(how, []).append(full_title(name))
    parts = [f"{', '.join(titles)} ({how})" for how, titles in groups.items()]
    return f"Marked *, in fewer cases: {'; '.join(parts)}." if parts else ""


def warm_up(names: Iterable[str]) -> dict[str, str]:
    """Fit each method once to a few rows; return those that are not installed, with the reason.

    Other errors wait for the first case: they may not come back.
    """
    rng = np.random.default_rng(0)
    probs, y = rng.dirichlet(np.ones(3), size=60), np.arange(60) % 3
    with contextlib.suppress(ImportError):
        import torch

        torch.set_num_threads(1)
    missing = {}
    for name in names:
        try:
            ALL[name].fit(probs, y)(probs)
        except ImportError as error:
            if ALL[name].package in OWN:
                raise  # a benchmark of nothing
            missing[name] = str(error)
        except Exception:  # a peer may fail in any way; cases record it
            continue
    return missing
