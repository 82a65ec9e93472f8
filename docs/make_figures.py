"""Draw the figures of the README: ``python docs/make_figures.py``.

Predictions of scikit-learn's digits as in ``examples/digits.py``; the same bytes on every run.
"""

import sys
from pathlib import Path

import mcllo
import mcllo.plot

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "figures"


def assessment() -> mcllo.Assessment:
    """Return the assessment of the rows in the example's calibration.csv."""
    sys.path.insert(0, str(ROOT / "examples"))
    from digits import predictions

    probs, labels = predictions()
    half = len(labels) // 2
    return mcllo.assess(probs[:half], labels[:half], seed=0)


def main(folder: Path = FOLDER) -> None:
    """Write reliability.svg and parameters.svg."""
    folder.mkdir(parents=True, exist_ok=True)
    a = assessment()
    mcllo.plot.save(mcllo.plot.reliability(a), folder / "reliability.svg")
    mcllo.plot.save(mcllo.plot.parameters(a.fit), folder / "parameters.svg")


if __name__ == "__main__":
    main()
