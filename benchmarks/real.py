"""Held-out log loss on real predictions, beside the time of each fit.

Rows are split into two halves; each method learns from one and is judged on the other, and the
other way round. Data sets with a split of their own keep it. A row that holds a 0 has its small
probabilities raised to 1e-6 first, the same for all methods. The standard error is that of the mean
difference of row losses to those of MCLLO, which differ far less than the losses do.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks import tables
from benchmarks.crew import Crew, Record
from benchmarks.methods import REAL

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
FLOOR = 1e-6
REFERENCE = "mcllo-1"

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
Table = tuple[np.ndarray, np.ndarray]


def raised(probs: np.ndarray) -> np.ndarray:
    """Return rows without zeros: where there is one, `FLOOR` is the least, and the sum is 1.

    Examples
    --------
    >>> raised(np.array([[0.5, 0.5], [1.0, 0.0]])).round(7).tolist()
    [[0.5, 0.5], [0.999999, 1e-06]]
    """
    probs = np.array(probs, dtype=np.float64)
    zero = (probs <= 0.0).any(axis=1)
    probs[zero] = np.maximum(probs[zero], FLOOR)
    return probs / probs.sum(axis=1, keepdims=True)


def halves(probs: np.ndarray, y: np.ndarray, seed: int = 0) -> list[Split]:
    """Return two splits, each half of the rows once to learn from."""
    order = np.random.default_rng(seed).permutation(len(y))
    a, b = order[: len(y) // 2], order[len(y) // 2 :]
    return [(probs[i], y[i], probs[j], y[j]) for i, j in ((a, b), (b, a))]


def digits(model: str) -> Table:
    """Return five-fold cross-validated predictions of scikit-learn's digits."""
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = load_digits(return_X_y=True)
    models = {
        "naive Bayes": GaussianNB(var_smoothing=0.1),
        "forest": RandomForestClassifier(100, random_state=0),
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
    }
    return cross_val_predict(models[model], X, y, method="predict_proba"), y


def shared(*parts: str) -> Table:
    """Return a table of ``../shared/data``."""
    with np.load(SHARED.joinpath(*parts)) as data:
        return data["probs"], data["labels"]


def obesity() -> list[Split]:
    """Return the split of the obesity forest that comes with the package."""
    from mcllo.datasets import load_obesity_forest

    data = load_obesity_forest()
    train, held = data.train, data.holdout
    return [(train.probs, train.codes, held.probs, held.codes)]


SETS: dict[str, Callable[[], Table | list[Split]]] = {
    "digits, naive Bayes": lambda: digits("naive Bayes"),
    "digits, forest": lambda: digits("forest"),
    "digits, logistic regression": lambda: digits("logistic regression"),
    "obesity, forest": obesity,
    "CIFAR-10, VGG16": lambda: shared("cifar10_vgg16_keras", "cifar10_vgg16_keras.npz"),
    "CIFAR-10, VGG (cleanlab)": lambda: shared("cifar10_vgg_cleanlab", "cifar10_vgg_cleanlab.npz"),
    "20 newsgroups": lambda: shared("cleanlab_pyx", "20news.npz"),
}
QUICK = ("digits, naive Bayes", "obesity, forest")


def measure(
    names: Iterable[str] = SETS, rounds: int = 5, say: Callable[[str], None] = print
) -> dict[str, object]:
    """Return for each data set its shape and each method's log loss and fit times."""
    found: dict[str, object] = {}
    with Crew(REAL) as crew:
        for name in names:
            say(f"real data, {name}")
            try:
                got = SETS[name]()
            except FileNotFoundError:
                found[name] = {"missing": True}
                continue
            found[name] = one_set(crew, got if isinstance(got, list) else halves(*got), rounds)
    return found


def one_set(crew: Crew, splits: list[Split], rounds: int) -> dict[str, object]:
    """Return the records of one data set over its splits."""
    parts: list[dict[str, Record]] = []
    losses: dict[str, list[np.ndarray]] = {name: [] for name in REAL}
    for probs, y, held_probs, held_y in splits:
        with TemporaryDirectory(prefix="mcllo-bench-") as folder:
            at = tables.write(Path(folder), raised(probs), y, (raised(held_probs), held_y))
            parts.append(crew.measure(at, REAL, rounds=rounds, budget=20.0, limit=120.0))
            for name in REAL:
                if parts[-1][name]["status"] == "ok":
                    losses[name].append(_scored(crew, name, at))
    _, _, held, _ = splits[0]
    judged = sum(len(split[3]) for split in splits)
    methods = {name: _summary(name, [part[name] for part in parts], losses) for name in REAL}
    return {
        "learn": len(splits[0][1]),
        "judge": judged,
        "classes": held.shape[1],
        "methods": methods,
    }


def _scored(crew: Crew, name: str, folder: Path) -> np.ndarray:
    reply = crew.ask(name, f"score {folder / 'losses.bin'}", 120.0)
    return np.fromfile(folder / "losses.bin") if "log_loss" in reply else np.empty(0)


def _summary(name: str, parts: list[Record], losses: dict[str, list[np.ndarray]]) -> Record:
    """Return one method's record: times of all splits, mean loss, its distance to MCLLO's."""
    status = next((part for part in parts if part["status"] != "ok"), parts[0])
    record = {key: status[key] for key in ("status", "reason", "limit") if key in status}
    record["seconds"] = [seconds for part in parts for seconds in part["seconds"]]
    own, reference = losses[name], losses[REFERENCE]
    if len(own) == len(parts) and all(len(part) for part in own):
        mine = np.concatenate(own)
        record["log_loss"] = float(mine.mean())
        if len(reference) == len(own):
            apart = mine - np.concatenate(reference)
            record["difference"] = float(apart.mean())
            record["se"] = float(apart.std(ddof=1) / np.sqrt(len(apart)))
    return record
