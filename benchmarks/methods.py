"""What is timed and compared, ours and others: each is ``fit(probs, y) -> predict``.

``methods.csv`` lists them: a function of this module and what it is given. Some take part in the
first seeds only, and up to so many rows: they are slow, or nothing hangs on them. The last column
is for `race`: ``threads`` lets threads share the rows, ``numpy`` turns the C kernel off.

============  ======================================================================================
`QUALITY`     judged on held-out rows, each with its package's defaults
programs      of the same model, MCLLO; they give numbers in which they should agree
`APPLY`       what is timed is `predict`, of a map fitted to a few rows
`PASSES`      the same, of one pass over all rows
`FORMS`       the same, of a map exported to each form
`EXACT`       p-values of the likelihood ratio by simulation
`SHIFTED`     judged on rows of other class frequencies than those learned from
`COPIES`      learned from rows and from copies of the same rows
`LARGE`       judged on sets of many rows alone
============  ======================================================================================

Packages are imported on the first fit, before the clock starts (`warm_up`). A method that is not
installed raises ImportError there and takes no part; the pages say so. Private names of ``mcllo``
are imported by `estimated` (no public function leaves out standard errors), `log_partition` (a pass
is no fit) and, for one thread over the rows, by `race` alone.
"""

from __future__ import annotations

import atexit
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from inspect import signature
from math import inf
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
from studies.pages import parsed, read

from benchmarks.machine import HERE, kernel_name

Predict = Callable[[np.ndarray], np.ndarray]
Fit = Callable[[np.ndarray, np.ndarray], Predict]

REFERENCE, NOTHING, OURS, GATED = "sms", "identity", "auto", "auto-gate"
DRAWS = 1999


@dataclass(frozen=True, eq=False)
class Method:
    """One line of the tables: as printed, whose code it is, the fit, and where it takes part."""

    title: str
    package: str
    fit: Fit
    timed: str | None = None
    seeds: float = inf
    most_rows: float = inf
    process: str = ""
    most_classes: float = inf


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
        gradient = (
            np.concatenate([g.sum(axis=0), np.einsum("ij,ij->j", g, self.odds)])
            - self.s
        )
        return float(log_total.sum() - theta @ self.s), gradient

    def hessian(self, theta: np.ndarray) -> np.ndarray:
        g = self.softmax(theta)[0]
        both = np.hstack([g, g * self.odds])
        a, b, d = (
            np.diag((g * power).sum(axis=0)) for power in (1.0, self.odds, self.odds**2)
        )
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


def flexible(name: str, probs: np.ndarray, y: np.ndarray) -> Predict:
    """Fit with ``flexible=True``, which earlier revisions do not have: there it is missing."""
    from mcllo import CALIBRATORS

    if "flexible" not in signature(CALIBRATORS[name]).parameters:
        raise ImportError(f"{name} of this revision has no option flexible")
    return ours(name, probs, y, flexible=True)


def in_full(probs: np.ndarray, y: np.ndarray) -> Predict:
    """Fit MCLLO: estimates, likelihood ratio test and standard errors."""
    from scipy.special import chdtrc

    from mcllo import MCLLOCalibrator

    made = MCLLOCalibrator(classes=range(probs.shape[1])).fit(probs, y)
    end = made.fit_
    found = {"nll": -end.log_likelihood, "pvalue": float(chdtrc(end.df, end.statistic))}
    found |= {"steps": end.n_iter, "se": float(end.se_tau[0])}
    return with_numbers(made.predict_proba, found)


def estimated(probs: np.ndarray, y: np.ndarray) -> Predict:
    """Fit MCLLO without standard errors."""
    from mcllo import Predictions
    from mcllo._fit.objective import FreeParameterObjective
    from mcllo._model.many_classes import fit_by_pcg

    p = Predictions.from_arrays(probs, y, classes=range(probs.shape[1]))
    likelihood = FreeParameterObjective.from_predictions(p)
    statistic, start = likelihood.full_objective.statistic, likelihood.identity
    done = fit_by_pcg(
        p.log_odds, statistic, start=start, free=likelihood.free, compute_hessian=False
    )
    found = {"nll": done.solution.value, "steps": done.solution.n_iter}
    return with_numbers(
        partial(apply_softmax, likelihood.theta(done.solution.x)), found
    )


def log_partition(log_odds: np.ndarray) -> Callable[[], Any]:
    """Return a pass at the identity on one thread: value, gradient and Hessian, which can be added.

    It may be called again.
    """
    from mcllo._model.kernel import LogPartition
    from mcllo._model.likelihood import identity_theta

    return partial(LogPartition(log_odds, n_jobs=1), identity_theta(len(log_odds)))


def passed(probs: np.ndarray, y: np.ndarray) -> Predict:
    """Return one pass over these rows, whatever rows it is given."""
    work = log_partition(np.ascontiguousarray(np.log(probs[:, :-1] / probs[:, -1:]).T))
    return lambda _: work()


def exact(probs: np.ndarray, y: np.ndarray) -> Predict:
    """Test calibration by the likelihood ratio, its p-value from `DRAWS` simulated data sets."""
    from mcllo import calibration_test

    given = {
        "classes": range(probs.shape[1]),
        "method": "exact",
        "n_resamples": DRAWS,
        "seed": 2,
    }
    test = calibration_test(probs, y, **given)
    return with_numbers(
        np.asarray, {"pvalue": test.pvalue, "statistic": test.statistic}
    )


def plain(solver: str, probs: np.ndarray, y: np.ndarray) -> Predict:
    model = PlainMCLLO(probs, y)
    found, pvalue = model.minimum(solver)
    se = np.sqrt(np.diagonal(np.linalg.inv(model.hessian(found.x))))
    numbers = {
        "nll": float(found.fun),
        "pvalue": pvalue,
        "steps": found.nit,
        "se": float(se[0]),
    }
    return with_numbers(partial(apply_softmax, found.x), numbers)


def in_r(probs: np.ndarray, y: np.ndarray) -> Predict:
    """Fits in R are made by ``optim.R``."""
    raise NotImplementedError


@cache
def _given(c: int, logits: bool = False) -> Any:
    """Return a fitted scikit-learn classifier whose features are its probabilities.

    With `logits` it answers with their logarithms, as a network's last layer would; of two classes
    scikit-learn takes the difference.
    """
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

    class Scores(Given):
        def decision_function(self, X: np.ndarray) -> np.ndarray:
            logs = np.log(X)
            return logs if c > 2 else logs[:, 1] - logs[:, 0]

    return FrozenEstimator(Scores() if logits else Given())


def sklearn(name: str, probs: np.ndarray, y: np.ndarray, logits: str = "") -> Predict:
    from sklearn.calibration import CalibratedClassifierCV

    given = _given(probs.shape[1], bool(logits))
    return CalibratedClassifierCV(given, method=name).fit(probs, y).predict_proba


def venn_abers(probs: np.ndarray, y: np.ndarray) -> Predict:
    """Fit an inductive Venn-Abers predictor to two classes; its two answers are made one."""
    from venn_abers import VennAbers

    made = VennAbers()
    made.fit(probs, y)
    return lambda rows: made.predict_proba(rows)[0]


def betacal(probs: np.ndarray, y: np.ndarray) -> Predict:
    """Fit the beta calibration of its authors to the second of two classes."""
    from betacal import BetaCalibration

    made = BetaCalibration().fit(probs[:, 1:], y)

    def predict(rows: np.ndarray) -> np.ndarray:
        second = made.predict(rows[:, 1])
        return np.column_stack([1.0 - second, second])

    return predict


def peer(path: str, *given: Any, **options: Any) -> Predict:
    """Fit what a class or function of another package makes; rows and labels are given last."""
    module, _, name = path.rpartition(".")
    *words, probs, y = given
    made = getattr(import_module(module), name)(*words, **options)
    made.fit(probs, y)

    def transformed(rows: np.ndarray) -> np.ndarray:
        found = made.transform(rows)  # netcal: of two classes the second alone
        return found if found.ndim == 2 else np.column_stack([1.0 - found, found])

    return getattr(made, "predict_proba", transformed)


def mixed(name: str, probs: np.ndarray, y: np.ndarray) -> Predict:
    """Fit a calibrator of probmetrics, its answers mixed with a little of the uniform ones."""
    return peer(
        "probmetrics.calibrators.get_calibrator",
        name,
        probs,
        y,
        calibrate_with_mixture=True,
    )


def applied(probs: np.ndarray, y: np.ndarray, way: str = "") -> Predict:
    """Return a map of ours, or in a way of plain NumPy."""
    from mcllo import MCLLOCalibrator

    fit = MCLLOCalibrator().fit(probs, y).fit_
    return partial(globals()[way], fit.theta) if way else fit.recalibrate


NODE = """
import {{ readFileSync }} from "node:fs";
import {{ predictRow }} from "./form.mjs";
const bytes = readFileSync("rows.bin");
const given = new Float64Array(bytes.buffer, bytes.byteOffset, bytes.length / 8);
const found = new Float64Array(given.length);
for (let i = 0; i < given.length; i += {c}) found.set(predictRow(given.subarray(i, i + {c})), i);
console.log(found[0]);
"""


NEEDED_BY_FORM = {
    "onnx": ("onnx", "onnxruntime"),
    "torch": ("torch",),
    "duckdb": ("sqlglot", "duckdb"),
    "sqlite": ("sqlglot",),
}
"""Packages without which an exported form, or a dialect of SQL, cannot be timed."""


def elsewhere(
    probs: np.ndarray, y: np.ndarray, to: str = "", **options: Any
) -> Predict:
    """Return a map of ours, or what runs it in the form that it was exported to.

    Tables of a database and the file of node are written once, by the call that warms up.
    """
    from mcllo import MCLLOCalibrator, export

    made = MCLLOCalibrator(classes=range(probs.shape[1])).fit(probs, y)
    if not to:
        return made.predict_proba
    for package in NEEDED_BY_FORM.get(options.get("dialect", to), ()):
        import_module(
            package
        )  # an ImportError here is "missing", one of ours would be "failed"
    if to == "torch":
        module, torch = export.torch_module(made), import_module("torch")
        return lambda rows: module(torch.from_numpy(rows)).detach().numpy()
    text = made.export(to, **options)
    if to == "onnx":
        runtime = import_module("onnxruntime")
        single = runtime.SessionOptions()
        single.intra_op_num_threads = 1
        session = runtime.InferenceSession(text, single, ["CPUExecutionProvider"])
        dtype = options.get("dtype", "float64")
        return lambda rows: session.run(
            ["calibrated"], {"probabilities": rows.astype(dtype)}
        )[0]
    if to == "python":
        lines: dict[str, Any] = {}
        exec(str(text), lines)
        return lambda rows: np.array(lines["predict_proba"](rows.tolist()))
    return (in_node if to == "js" else in_database)(
        str(text), probs.shape[1], **options
    )


def in_node(text: str, c: int) -> Predict:
    """Return what starts node on rows that a file holds; it answers with the first number."""
    found = shutil.which("node")
    if found is None:
        raise ImportError("node")
    folder = Path(mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "form.mjs").write_text(text)
    (folder / "run.mjs").write_text(NODE.format(c=c))

    def predict(rows: np.ndarray) -> np.ndarray:
        if not (folder / "rows.bin").exists():
            rows.tofile(folder / "rows.bin")
        command = [found, "run.mjs"]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=True
        )
        return np.array([float(done.stdout)])

    return predict


def in_database(text: str, c: int, dialect: str) -> Predict:
    """Return what makes a table of recalibrated rows out of a table; it answers with their
    number.
    """
    package = import_module("sqlite3" if dialect == "sqlite" else "duckdb")
    database = package.connect(":memory:")
    if dialect == "duckdb":
        database.execute("SET threads = 1")
    names = [f'"{k}"' for k in range(c)]

    def predict(rows: np.ndarray) -> np.ndarray:
        if not loaded:
            database.execute(
                f"CREATE TABLE predictions ({', '.join(f'{n} DOUBLE' for n in names)})"
            )
            if dialect == "duckdb":
                pyarrow = import_module("pyarrow")
                arrow = pyarrow.table({str(k): rows[:, k] for k in range(c)})
                database.register("given", arrow)
                database.execute("INSERT INTO predictions SELECT * FROM given")
            else:
                marks = ", ".join("?" * c)
                insert = f"INSERT INTO predictions VALUES ({marks})"
                database.executemany(insert, map(tuple, rows.tolist()))
            loaded.append(True)
        database.execute("DROP TABLE IF EXISTS recalibrated")
        database.execute(f"CREATE TABLE recalibrated AS {text}")
        return np.array(
            database.execute("SELECT count(*) FROM recalibrated").fetchone()
        )

    loaded: list[bool] = []
    return predict


def called(function: Callable[..., Any], given: object) -> Callable[..., Any]:
    """Return a function with arguments that a table has as words.

    >>> called(dict, "a=1 b=x")(), called(max, "1 3.5 2")()
    ({'a': 1, 'b': 'x'}, 3.5)
    """
    words = [
        word.rpartition("=") for word in str("" if given is None else given).split()
    ]
    named = {name: parsed(value) for name, equals, value in words if equals}
    return partial(
        function, *(parsed(value) for _, equals, value in words if not equals), **named
    )


_ROWS = read(HERE / "methods.csv")
METHODS = {
    row["name"]: Method(
        row["title"],
        row["package"] or "",
        called(globals()[row["fit"]], row["given"]),
        row["timed"],
        *(row[name] or inf for name in ("seeds", "most_rows")),
        row["process"] or "",
        row["most_classes"] or inf,
    )
    for row in _ROWS
}
QUALITY, LARGE, APPLY, PASSES, EXACT, FORMS = (
    {row["name"]: METHODS[row["name"]] for row in _ROWS if row["list"] == name}
    for name in ("quality", "large", "apply", "pass", "exact", "form")
)
FITS = ["mcllo-1", "mcllo-1-numpy", "mcllo", "mcllo-estimate", "mcllo-gate"]
FITS += [
    "scipy-lbfgs",
    "scipy-bfgs",
    "auto",
    "auto-gate",
    "matrix",
    "sklearn-temperature",
]
FITS += [
    "netcal-temperature",
    "netcal-logistic",
    "ts",
    "svs",
    "sms",
    "r-analytic",
    "r-numeric",
]
"""Methods whose fits are timed, in the order of the table."""
HARMLESS = ["auto", "auto-gate", "sms", "temperature", "mcllo", "mcllo-gate"]
SHIFTED = ["identity", "sms", "temperature", "auto", "mcllo-ridge"]
SHIFTED += [row["name"] for row in _ROWS if row["list"] == "shifted"]
COPIES = ["identity", "auto", "sms", "temperature"]
COPIES += [row["name"] for row in _ROWS if row["list"] == "copies"]
COPIED = "-copied"
"""How names of methods end that learn from rows drawn again and again."""
KNOWN = "-known"
"""How names of methods end that are told the class frequencies of the rows to judge on."""


def runnable(names: Iterable[str]) -> list[str]:
    """Return those that differ: without the C kernel, turning it off changes nothing."""
    without = kernel_name() == "NumPy"
    return [
        name for name in names if not (without and "numpy" in METHODS[name].process)
    ]


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
    return (
        "; ".join(f"{', '.join(titles)} ({how})" for how, titles in groups.items())
        or None
    )


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
            ours = METHODS[name].package in ("", "mcllo")
            if ours and name not in FORMS and name not in LARGE:
                raise  # a benchmark of nothing
            missing[name] = str(error)
        except Exception:  # a peer may fail in any way; cases record it
            continue
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
    return missing
