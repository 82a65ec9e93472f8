"""Fourteen tasks with this package and four others: what one types, and what happens.

``python -m benchmarks.tasks`` runs every line and writes docs/how-to/other-packages.md;
``pip install -e ".[peers]"`` installs the others. None stands where a package has nothing for a
task, `NOTES` say why. Rows are of three classes wherever a package can.
"""

from __future__ import annotations

import contextlib
import datetime
import io
import os
import tempfile
import warnings
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

PAGE = Path(__file__).resolve().parents[1] / "docs/how-to/other-packages.md"
PACKAGES = {
    "mcllo": "mcllo",
    "scikit-learn": "sklearn",
    "probcal": "probcal",
    "netcal": "netcal",
    "probmetrics": "probmetrics",
}
SETUP = """
import numpy as np
rng = np.random.default_rng(0)
honest = rng.dirichlet([1, 1, 1], size=600)
y = np.array([rng.choice(3, p=row) for row in honest])
probs = honest**2 / (honest**2).sum(axis=1, keepdims=True)
logits = np.log(probs)
X = rng.normal(size=(600, 4)) + np.eye(4)[y]
weight = rng.integers(1, 4, size=600)
boxes = np.column_stack([probs.max(axis=1), rng.uniform(size=600)])
hit = (probs.argmax(axis=1) == y).astype(int)
mean, sd = rng.normal(size=(600, 1)), np.full((600, 1), 0.5)
seen = mean + rng.normal(size=(600, 1))
from sklearn.naive_bayes import GaussianNB
"""
IMPORTS = {
    "mcllo": "import mcllo",
    "scikit-learn": "import pickle\n"
    "from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay\n"
    "from sklearn.model_selection import GridSearchCV",
    "probcal": "import probcal\nimport probcal.plots\nfrom probcal import metrics",
    "netcal": "from netcal.scaling import TemperatureScaling\nfrom netcal.metrics import ECE\n"
    "from netcal.presentation import ReliabilityDiagram\n"
    "from netcal.regression import VarianceScaling\n"
    "from netcal.scaling import LogisticCalibrationDependent",
    "probmetrics": "from probmetrics.calibrators import get_calibrator\n"
    "from probmetrics.distributions import CategoricalLogits\n"
    "from probmetrics.metrics import Metrics\nimport pickle, torch",
}


INTRODUCTION = """\
What one types and what happens, for the same 600 rows of three classes (`probs`, `logits`, `y`,
`weight`; `X` for a classifier). `python -m benchmarks.tasks` runs every line and makes this page;
the tests run the lines of whatever is installed and compare. Each package has more than these tasks
show: probcal is made for two classes and credit risk (monitoring, master scales, Venn-Abers
intervals), netcal also for detection and regression, probmetrics for research on post-hoc
calibration; each has a page of its own: [scikit-learn](scikit-learn.md), [netcal](netcal.md),
[probmetrics](probmetrics.md), [probcal](probcal.md). The tasks were chosen by the authors of mcllo;
the last four are what others can do and mcllo cannot. Who is faster, and whose probabilities are
better, is measured elsewhere: [time](../explanation/performance.md),
[quality](../explanation/quality.md).

These are packages for Python. "No test" is true of them, not of the field: R's `probcal` (0.2.0,
July 2026; another package than the one here) tests several classes by a kernel, with debiased
errors and bootstrap intervals, and Julia's `CalibrationTests.jl` has kernel tests. We have not run
either."""


class Task(NamedTuple):
    """What is wanted, and the line for it in each package, in the order of `PACKAGES`."""

    name: str
    lines: tuple[str | None, ...]


TASKS = [
    Task(
        "Are these probabilities of three classes calibrated? A test.",
        (
            "mcllo.assess(probs, y).test.pvalue",
            None,
            "metrics.calibration_test(y, probs)",
            None,
            None,
        ),
    ),
    Task(
        "Which of the classes is wrong, and in which direction?",
        ("mcllo.class_tests(probs, y).to_frame()", None, None, None, None),
    ),
    Task(
        "One number: expected calibration error of three classes",
        (
            "mcllo.metrics.expected_calibration_error(y, probs)",
            None,
            "metrics.ece(y, probs)",
            "ECE(10).measure(probs, y)",
            "Metrics.from_names(['ece-15']).compute_all_from_labels_probs("
            "torch.tensor(y), torch.tensor(probs))",
        ),
    ),
    Task(
        "A reliability diagram",
        (
            "mcllo.plot.reliability(mcllo.assess(probs, y))",
            "CalibrationDisplay.from_predictions(y == 1, probs[:, 1])",
            "probcal.plots.plot_reliability(probcal.reliability_binned(y == 1, probs[:, 1]))",
            "ReliabilityDiagram(10).plot(probs, y)",
            None,
        ),
    ),
    Task(
        "Recalibrate saved probabilities of three classes",
        (
            "mcllo.AutoCalibrator().fit(probs, y).predict_proba(probs)",
            None,
            "probcal.PlattCalibrator().fit(probs, y)",
            "TemperatureScaling().fit(probs, y).transform(probs)",
            "get_calibrator('sms').fit(probs, y).predict_proba(probs)",
        ),
    ),
    Task(
        "Recalibrate logits of a network",
        (
            "mcllo.MCLLOCalibrator().fit(y=y, logits=logits).predict_proba(logits=logits)",
            None,
            None,
            "TemperatureScaling().fit(logits, y)",
            "get_calibrator('sms').fit(logits, y)",
        ),
    ),
    Task(
        "Calibrate a classifier of three classes by cross-fitting",
        (
            "mcllo.RecalibratedClassifierCV(GaussianNB(), 'auto').fit(X, y)",
            "CalibratedClassifierCV(GaussianNB(), method='isotonic').fit(X, y)",
            "probcal.CalibratedModel(GaussianNB(), probcal.PlattCalibrator(), flow='cv').fit(X, y)",
            None,
            None,
        ),
    ),
    Task(
        "Rows that count more than once",
        (
            "mcllo.MCLLOCalibrator().fit(probs, y, sample_weight=weight)",
            "CalibratedClassifierCV(GaussianNB()).fit(X, y, sample_weight=weight)",
            "probcal.PlattCalibrator().fit(probs[:, 1], y == 1, sample_weight=weight)",
            "TemperatureScaling().fit(probs, y, sample_weight=weight)",
            "get_calibrator('sms').fit(probs, y, sample_weight=weight)",
        ),
    ),
    Task(
        "Which method is best here, and could that be chance?",
        (
            "mcllo.compare(probs, y=y, cv=5, methods=['auto', 'temperature'], seed=0)"
            ".recommendation",
            "GridSearchCV(CalibratedClassifierCV(GaussianNB()), "
            "{'method': ['sigmoid', 'isotonic']}, scoring='neg_log_loss').fit(X, y)",
            "probcal.CalibratorSelector().fit(probs[:, 1], y == 1)",
            None,
            None,
        ),
    ),
    Task(
        "Save the map for another program or another year",
        (
            "mcllo.MCLLOCalibrator().fit(probs, y).save('map.json')",
            "pickle.dumps(CalibratedClassifierCV(GaussianNB()).fit(X, y))",
            "probcal.PlattCalibrator().fit(probs[:, 1], y == 1).to_json('map.json')",
            "TemperatureScaling().fit(probs, y).save_model('map.pt')",
            "pickle.dumps(get_calibrator('sms').fit(probs, y))",
        ),
    ),
    Task(
        "An interval for each probability that needs no model of the error",
        (
            None,
            None,
            "probcal.VennAbersCalibrator().fit(probs[:, 1], y == 1).predict_interval(probs[:, 1])",
            None,
            None,
        ),
    ),
    Task(
        "Confidences of detected objects, which depend on where the box is",
        (
            None,
            None,
            None,
            "LogisticCalibrationDependent().fit(boxes, hit).transform(boxes)",
            None,
        ),
    ),
    Task(
        "The spread of a regression's predictions",
        (
            None,
            None,
            None,
            "VarianceScaling().fit((mean, sd), seen).transform((mean, sd))",
            None,
        ),
    ),
    Task(
        "Logits that stay tensors, on whatever device they are",
        (
            None,
            None,
            None,
            None,
            "get_calibrator('temp-scaling').fit_torch(CategoricalLogits(torch.tensor(logits)), "
            "torch.tensor(y)).predict_proba_torch(CategoricalLogits(torch.tensor(logits)))",
        ),
    ),
]
NOTES = {
    (0, "scikit-learn"): "no test",
    (0, "probcal"): "two classes: `metrics.calibration_test(y == 1, probs[:, 1])`",
    (0, "netcal"): "no test of confidences",
    (0, "probmetrics"): "no test",
    (2, "scikit-learn"): "curves (`calibration_curve`), no such number",
    (2, "probcal"): "two classes: `metrics.ece(y == 1, probs[:, 1])`",
    (3, "scikit-learn"): "a class against the rest",
    (3, "probcal"): "two classes",
    (4, "scikit-learn"): "its calibrators are private; needs the classifier",
    (4, "probcal"): "two classes: `.fit(probs[:, 1], y == 1)`",
    (5, "scikit-learn"): "needs the classifier",
    (5, "probcal"): "two classes only",
    (5, "netcal"): "wants probabilities",
    (5, "probmetrics"): "wants probabilities; logits through its tensors",
    (6, "probcal"): "two classes",
    (6, "netcal"): "calibrates tables, no classifiers",
    (6, "probmetrics"): "wrappers for LightGBM and CatBoost only",
    (7, "probcal"): "two classes",
    (8, "mcllo"): "with intervals that allow for having looked",
    (8, "scikit-learn"): "best mean score, no interval",
    (8, "probcal"): "two classes; best mean score, no interval",
    (9, "mcllo"): "JSON",
    (9, "scikit-learn"): "pickle",
    (9, "probcal"): "two classes; JSON",
    (9, "netcal"): "a file of torch",
    (9, "probmetrics"): "pickle",
    (
        10,
        "mcllo",
    ): "intervals of `recalibrate(probs, interval=0.95)` trust the fitted map",
    (10, "probcal"): "two classes",
    (10, "probmetrics"): "Venn-Abers without its interval, through another package",
    (11, "mcllo"): "classes only",
    (12, "mcllo"): "classes only",
    (13, "mcllo"): "takes tensors, answers in NumPy; `torch_module` for the fitted map",
    (13, "netcal"): "`use_cuda` for the fit; answers in NumPy",
}
"""What a row does not show by itself: (task, package)."""


def installed(package: str) -> bool:
    """Whether a package can be imported."""
    return find_spec(PACKAGES[package]) is not None


@contextlib.contextmanager
def _elsewhere() -> Iterator[None]:
    """Work in a directory that is thrown away, in silence."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(folder)
        try:
            with (
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.redirect_stderr(io.StringIO()),
            ):
                yield
        finally:
            os.chdir(here)


def names_of(package: str) -> dict[str, Any]:
    """Return the data and what a line of this package may use."""
    import matplotlib

    matplotlib.use("Agg")
    found: dict[str, Any] = {}
    with _elsewhere():
        exec(SETUP + IMPORTS[package], found)
    return found


def outcome(line: str, names: dict[str, Any]) -> str:
    """Return ``works`` with the number or shape, or the name and the words of the error."""
    with _elsewhere():
        try:
            found = eval(line, names)
        except Exception as error:
            words = " ".join(str(error).split())
            return f"{type(error).__name__}: {words[:110]}{'…' if len(words) > 110 else ''}"
    if isinstance(found, float):
        return f"works: {found:.2g}"
    shape = getattr(found, "shape", ())
    return f"works: {shape[0]} rows of {shape[1]}" if len(shape) == 2 else "works"


def table() -> list[dict[str, tuple[str | None, str]]]:
    """Return for each task and package the line and what happens."""
    spaces = {package: names_of(package) for package in PACKAGES if installed(package)}
    found = []
    for number, task in enumerate(TASKS):
        row: dict[str, tuple[str | None, str]] = {}
        for package, line in zip(PACKAGES, task.lines, strict=True):
            note = NOTES.get((number, package), "")
            if line is None:
                row[package] = None, note or "nothing for it"
            elif package in spaces:
                said = outcome(line, spaces[package])
                row[package] = line, f"{said}; {note}" if note else said
        found.append(row)
    return found


def page() -> str:
    """Return the page."""
    versions = ", ".join(
        f"{package} {metadata.version(package)}"
        for package in PACKAGES
        if installed(package)
    )
    parts = [
        "# Fourteen tasks, five packages",
        "",
        INTRODUCTION,
        "",
        f"Run on {datetime.date.today():%d %B %Y} with {versions}.",
    ]
    for number, (task, row) in enumerate(zip(TASKS, table(), strict=True), 1):
        parts += [
            "",
            f"## {number}. {task.name}",
            "",
            "| | type | what happens |",
            "|---|---|---|",
        ]
        for package, (line, said) in row.items():
            code = "" if line is None else f"`{line}`"
            parts.append(f"| {package} | {code} | {said.replace('|', '/')} |")
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
