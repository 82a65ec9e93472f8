"""Train forests on the obesity data and keep their votes.

``python -m studies.obesity.make_predictions [FILE.csv]`` writes ``obesity_forest.npz`` for
`mcllo.datasets` (seed 0) and ``given/seeds.csv``, the study's table for 50 seeds. Without a file
the data are downloaded from UCI. Takes about six minutes.

==========  ===============================================================================
data        2,111 people, 16 columns; Height and Weight are left out: the levels are cut points
            of weight / height**2
split       rows in a random order: 1,583 to train the forest, 396 to learn a recalibration from,
            132 to judge it on (75 % and 25 %, twice)
forest      500 trees, each grown out, scikit-learn's defaults; seed s makes order and forest
==========  ===============================================================================
"""

from __future__ import annotations

import csv
import io
import sys
import zipfile
from collections import Counter
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from ..pages import ship, write
from .analysis import CLASSES, N_TRAIN, SEEDS, seed_row

URL = (
    "https://archive.ics.uci.edu/static/public/544/"
    "estimation+of+obesity+levels+based+on+eating+habits+and+physical+condition.zip"
)
COUNTS = dict(zip(CLASSES, (272, 287, 351, 297, 324, 290, 290), strict=True))
N_FOREST, N_TREES, N_SEEDS = 1583, 500, 50

NUMBERS = ("Age", "FCVC", "NCP", "CH2O", "FAF", "TUE")
HOW_OFTEN = {"no": 0.0, "Sometimes": 1.0, "Frequently": 2.0, "Always": 3.0}
ORDERED = ("CAEC", "CALC")
TWO_VALUED = {"no": 0.0, "yes": 1.0, "Female": 0.0, "Male": 1.0}
BINARY = ("Gender", "family_history_with_overweight", "FAVC", "SMOKE", "SCC")
TRAVEL = ("Automobile", "Bike", "Motorbike", "Public_Transportation", "Walking")


def download(url: str = URL) -> str:
    """Return the text of the CSV file in UCI's archive."""
    try:
        with urlopen(url, timeout=60) as answer:
            content = answer.read()
    except (URLError, OSError) as error:
        raise SystemExit(
            f"The data could not be downloaded from {url} ({error}). Fetch the archive by hand and "
            "name its CSV file: python -m studies.obesity.make_predictions FILE.csv"
        ) from None
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        name = next(
            name for name in archive.namelist() if name.lower().endswith(".csv")
        )
        return archive.read(name).decode("utf-8")


def read(text: str) -> tuple[np.ndarray, np.ndarray]:
    """Return features and the numbers of the classes; refuse another version of the data."""
    rows = list(csv.DictReader(io.StringIO(text)))
    found = Counter(row["NObeyesdad"] for row in rows)
    if found != COUNTS:
        raise SystemExit(f"The data must hold the levels {COUNTS}; got {dict(found)}.")
    labels = np.array([CLASSES.index(row["NObeyesdad"]) for row in rows])
    return np.array([features(row) for row in rows]), labels


def features(row: dict[str, str]) -> list[float]:
    """Return a row as numbers, without Height and Weight."""
    return [
        *(float(row[name]) for name in NUMBERS),
        *(HOW_OFTEN[row[name]] for name in ORDERED),
        *(TWO_VALUED[row[name]] for name in BINARY),
        *(float(row["MTRANS"] == way) for way in TRAVEL),
    ]


def forest_votes(
    X: np.ndarray, labels: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the votes of a forest for the rows it did not see, and their labels."""
    order = np.random.default_rng(seed).permutation(len(labels))
    seen, unseen = order[:N_FOREST], order[N_FOREST:]
    forest = RandomForestClassifier(N_TREES, random_state=seed).fit(
        X[seen], labels[seen]
    )
    votes = forest.predict_proba(X[unseen]) * N_TREES
    return votes, labels[unseen]


def keep(votes: np.ndarray, labels: np.ndarray) -> None:
    """Write the predictions that are part of the package."""
    whole = np.round(votes)
    if np.abs(votes - whole).max() > 1e-9:
        raise SystemExit(
            "Votes must be whole numbers: a leaf of this forest holds two classes."
        )
    ship(
        "obesity_forest",
        votes=whole.astype(np.uint16),
        labels=labels.astype(np.uint8),
        train=np.arange(len(labels)) < N_TRAIN,
        classes=np.array(CLASSES),
        n_trees=np.array(N_TREES),
    )


def main(path: str | None = None) -> None:
    """Make both files."""
    X, labels = read(Path(path).read_text(encoding="utf-8") if path else download())
    rows = []
    for seed in range(N_SEEDS):
        votes, unseen = forest_votes(X, labels, seed)
        if seed == 0:
            keep(votes, unseen)
        rows.append({"seed": seed, **seed_row(votes / N_TREES, unseen)})
        print(f"forest {seed + 1} of {N_SEEDS}", file=sys.stderr)
        write(SEEDS, rows, digits=4)


if __name__ == "__main__":
    main(*sys.argv[1:2])
