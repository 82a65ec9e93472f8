"""Timings side by side: ratios from one interleaved run.

=====================================  =============================================================
``python -m benchmarks targets``       the targets, beside peers, with files and real data (``make
                                       bench``); ``--quick``, ``--only 8000x10,apply``, ``--help``
``python -m benchmarks page``          page and figure from the last results; nothing is timed
``python -m benchmarks core``          fit, exact p-values; also ``compare``, ``peers``, ``study``
``python -m benchmarks size``          simulated sizes of the chi-square test
=====================================  =============================================================
"""

import os
import sys
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import mcllo
from benchmarks import chi2_size, peers, run, study
from benchmarks.data import predictions, sharp_under_h0
from benchmarks.timing import interleaved, machine, show


def core() -> None:
    """Fit, test and standard errors against scikit-learn's one-parameter temperature."""
    for n, c in ((132, 7), (8000, 10), (100_000, 10)):
        probs, y = predictions(n, c)
        seconds = interleaved(
            {
                "mcllo: fit, test, standard errors": lambda probs=probs, y=y: (
                    mcllo.calibration_test(probs, y, method="chi2")
                ),
                "scikit-learn: temperature": peers.sklearn_temperature(probs, y),
            }
        )
        show(f"{n} x {c}", seconds, "mcllo: fit, test, standard errors")
    exact()


def exact() -> None:
    """Exact p-values and `assess`, in seconds a call."""
    probs, y = sharp_under_h0(2000, 10)
    jobs = {
        "score p, 1999 draws, 2000 x 10": lambda: mcllo.calibration_test(
            probs, y, statistic="score", method="exact", seed=0
        ),
        "LR p, all 1999 draws, 2000 x 10": lambda: mcllo.calibration_test(
            probs, y, method="exact", seed=0
        ),
        "LR p, all 1999 draws, 500 x 10": lambda: mcllo.calibration_test(
            probs[:500], y[:500], classes=range(10), method="exact", seed=0
        ),
    }
    for k in range(10):
        small = sharp_under_h0(500, 10, seed=k)
        jobs[f"assess under H0, 500 x 10, no. {k}"] = lambda small=small: mcllo.assess(
            *small, classes=range(10), seed=0
        )
    show("exact p-values", interleaved(jobs, rounds=3), "score p, 1999 draws, 2000 x 10")


def compare() -> None:
    """All methods, 8000 rows to learn from and 2000 to judge on."""
    import numpy as np

    probs, y = predictions(10_000, 10)
    train = mcllo.Predictions.from_arrays(y=y[:8000], logits=np.log(probs[:8000]))
    judge = mcllo.Predictions.from_arrays(y=y[8000:], logits=np.log(probs[8000:]))
    seconds = interleaved({"compare, all methods": lambda: mcllo.compare(train, judge, seed=0)}, 5)
    show("8000 x 10 and 2000 x 10", seconds, "compare, all methods")


def side_by_side() -> None:
    """Temperature, vector and matrix scaling of several packages."""
    for n, c in ((8000, 10), (100_000, 10), (10_000, 100)):
        jobs = peers.jobs(*predictions(n, c))
        show(f"{n} x {c}", interleaved(jobs, 3 if n * c > 100_000 else 7), "temperature: mcllo")


PARTS = {
    "core": core,
    "compare": compare,
    "peers": side_by_side,
    "size": chi2_size.main,
    "study": study.main,
}


WHOLE = {"targets": run.targets, "page": run.rebuild}


def main(words: list[str]) -> None:
    """Run one of `WHOLE` with its options, or the named parts, or all but the simulations."""
    warnings.simplefilter("ignore")
    if words and words[0] in WHOLE:
        WHOLE[words[0]](words[1:])
        return
    print(machine())
    for name in words or ["core", "compare", "peers"]:
        PARTS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
