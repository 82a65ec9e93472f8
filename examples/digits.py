"""Make predictions of scikit-learn's digits: two CSV files, one to learn from and one to judge.

    python examples/digits.py DIRECTORY

A naive Bayes classifier, famous for overconfidence, is trained on half of the digits; the other
half is split into calibration.csv and holdout.csv. Columns: id, d0 .. d9, digit.
"""

import csv
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB


def predictions() -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities and labels of the digits the classifier was not trained on."""
    X, y = load_digits(return_X_y=True)
    X_train, X_rest, y_train, y_rest = train_test_split(
        X, y, test_size=0.6, random_state=0, stratify=y
    )
    model = GaussianNB(var_smoothing=0.1).fit(X_train, y_train)
    return model.predict_proba(X_rest), y_rest


def write(path: Path, start: int, probs: np.ndarray, labels: np.ndarray) -> None:
    """Write rows with an id, so that it shows how other columns pass through."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *(f"d{k}" for k in range(10)), "digit"])
        for i, (row, label) in enumerate(zip(probs, labels, strict=True)):
            words = [repr(float(value)) for value in row]
            writer.writerow([f"img-{start + i:04d}", *words, f"d{label}"])


def main(directory: str) -> None:
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    probs, labels = predictions()
    half = len(labels) // 2
    write(folder / "calibration.csv", 0, probs[:half], labels[:half])
    write(folder / "holdout.csv", half, probs[half:], labels[half:])


if __name__ == "__main__":
    main(sys.argv[1])
