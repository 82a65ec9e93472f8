"""Draw the figures of the README: ``python docs/make_figures.py``.

The diagram is of the rows of ``examples/quickstart.py`` before and after, the forest plot of
scikit-learn's digits as in ``examples/digits.py``; the same bytes on every run.
"""

import io
import runpy
import sys
from contextlib import redirect_stdout
from pathlib import Path

from matplotlib.figure import Figure

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
    with redirect_stdout(io.StringIO()):
        example = runpy.run_path(str(ROOT / "examples" / "quickstart.py"))
    sets = {
        "as predicted": example["before"],
        "recalibrated": mcllo.assess(example["recalibrated"], seed=0),
    }
    small = Figure(figsize=(5.6, 3.5), layout="constrained")  # leaves the code in sight
    mcllo.plot.reliability(sets, ax=small)
    mcllo.plot.save(small, folder / "reliability.svg")
    mcllo.plot.save(mcllo.plot.parameters(assessment().fit), folder / "parameters.svg")


if __name__ == "__main__":
    main()
