"""Loaders of the real predictions beside the checkout, for tests that compare with R.

The files live in ``../shared/data`` and are not part of the repository; a test that needs one is
skipped where it is absent. Each loader returns `Predictions` whose last class is the baseline, as
in `tests/reference/vgam.json`.
"""

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest

from mcllo import Predictions

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"


def find(*parts):
    """Return the path of a data file, or skip the test that asks for it."""
    path = DATA.joinpath(*parts)
    if not path.exists():
        pytest.skip(
            f"needs {'/'.join(parts)} in ../shared/data, which is not part of the repository"
        )
    return path


def read_columns(path, *names):
    """Return the named columns of a CSV file (gzipped or not) as lists of text."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", newline="") as lines:
        rows = list(csv.DictReader(lines))
    return [[row[name] for row in rows] for name in names]


def load_cifar10_vgg16_keras():
    """VGG16 on the CIFAR-10 test set: 10,000 sharp float32 rows; Kumar, Liang and Ma 2019."""
    with np.load(find("cifar10_vgg16_keras", "cifar10_vgg16_keras.npz")) as data:
        return Predictions.from_arrays(data["probs"], data["labels"])


def load_hpc_cv():
    """Cross-validated discriminant analysis, 3,467 rows, classes VF, F, M, L; Kuhn and Johnson."""
    classes = ("VF", "F", "M", "L")
    path = find("hpc_cv", "hpc_cv.csv.gz")
    labels, *probs = read_columns(path, "obs", *classes)
    return Predictions.from_arrays(
        np.array(probs, dtype=float).T, labels, classes=classes
    )


def load_soccer_538():
    """FiveThirtyEight's club soccer forecasts without the rows that hold a 0: 32,278 x 3."""
    path = find("soccer_538", "club_soccer_matches.csv.gz")
    *columns, outcome = read_columns(path, "prob1", "probtie", "prob2", "outcome")
    probs = np.array(columns, dtype=float).T
    kept = (probs > 0.0).all(axis=1)
    labels = np.array(outcome, dtype=float).astype(int)
    return Predictions.from_arrays(probs[kept], labels[kept])


def load_hockey(column="x"):
    """BRcal's 868 hockey games: class 0 is a home win with probability `column`, 1 a loss."""
    win, x = read_columns(find("brcal", "hockey.csv"), "y", column)
    home = np.array(x, dtype=float)
    return Predictions.from_arrays(
        np.column_stack([home, 1.0 - home]), 1 - np.array(win, dtype=int)
    )


LOADERS = {
    "cifar10_vgg16_keras": load_cifar10_vgg16_keras,
    "hpc_cv": load_hpc_cv,
    "soccer_538": load_soccer_538,
    "hockey": load_hockey,
}
