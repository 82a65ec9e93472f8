"""Prediction sets: made once, kept as files in ``cache/sets``.

A file holds ``probs`` (rows that hold a 0 raised by `benchmarks.real.raised`, the same for every
method), ``y`` (from 0) and the facts of `PredictionSet` as JSON.
"""

import json
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.quality.catalogue import READY, TABLES
from benchmarks.quality.models import MODELS, predict
from benchmarks.quality.sources import Source
from benchmarks.real import raised

CACHE = Path(__file__).resolve().parent / "cache"
FOLDER = CACHE / "sets"
LEAST_IN_CLASS = 6
"""Rows of a class below which it is left out: three folds could not hold it."""


@dataclass(frozen=True)
class PredictionSet:
    """What is known of a prediction set.

    Attributes
    ----------
    name, source, origin, model : str
        ``source-model``; data set; where that is from; what predicted.
    n, c : int
        Rows and classes.
    used : bool
        Whether its data took part in choosing the design of `AutoCalibrator`.
    zeros : float
        Share of probabilities that were 0 before they were raised.
    """

    name: str
    source: str
    origin: str
    model: str
    n: int
    c: int
    used: bool
    zeros: float


def planned() -> Iterator[tuple[str, Source, str]]:
    """Yield name, source and model of every set."""
    for source in READY:
        yield source.name, source, ""
    for source in TABLES:
        for model in source.models:
            yield f"{source.name}-{model}", source, model


def frequent(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of classes that are frequent enough, labels from 0."""
    kept = np.bincount(y)[y] >= LEAST_IN_CLASS
    return X[kept], np.unique(y[kept], return_inverse=True)[1]


def save(path: Path, name: str, source: Source, model: str, table: tuple[np.ndarray, ...]) -> None:
    """Write one set."""
    probs, y = np.asarray(table[0], dtype=np.float64), np.asarray(table[1]).astype(np.int64)
    title = MODELS[model][0] if model else "as published"
    facts = PredictionSet(
        name,
        source.name,
        source.origin,
        title,
        *probs.shape,
        used=source.used,
        zeros=float((probs <= 0.0).mean()),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part.npz")
    np.savez(beside, probs=raised(probs), y=y, facts=json.dumps(asdict(facts)))
    beside.replace(path)


def build(only: Iterable[str] = (), say: Callable[[str], None] = print) -> dict[str, str]:
    """Make all sets that are not there yet; return the data sets that are not there, and why."""
    warnings.simplefilter("ignore")
    wanted, missing = set(only), {}
    tables: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for name, source, model in planned():
        path = FOLDER / f"{name}.npz"
        if path.exists() or (wanted and not {name, source.name} & wanted):
            continue
        try:
            if source.name not in tables:
                tables = {source.name: source.load()}  # one table at a time
            X, y = tables[source.name]
            if model:
                X, y = frequent(X, y)
                X = predict(model, X, y)
            save(path, name, source, model, (X, y))
            say(name)
        except (ImportError, OSError) as error:
            missing[source.name] = f"{type(error).__name__}: {error}"[:200]
            say(f"{name}: {missing[source.name]}")
    return missing


def known() -> dict[str, PredictionSet]:
    """Return the facts of all sets that have been made, in the order of the plan."""
    found = {}
    for name, _, _ in planned():
        path = FOLDER / f"{name}.npz"
        if path.exists():
            with np.load(path) as data:
                found[name] = PredictionSet(**json.loads(str(data["facts"])))
    return found


@lru_cache(maxsize=8)
def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities and labels of a set."""
    with np.load(FOLDER / f"{name}.npz") as data:
        return data["probs"], data["y"]
