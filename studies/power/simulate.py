"""The long run of the power study: ``python studies/power/simulate.py [--jobs 2]``.

Writes ``results/repetitions.npz``: p-values in single precision, ECE in units of 1e-5. Takes about
8 minutes of processor time. Finished settings are kept in ``cache/``: a run that was stopped goes
on from there; delete the folder to begin afresh.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mcllo.simulate import PowerStudy

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import power_designs as designs  # noqa: E402

UNIT = 1e-5
Arrays = dict[str, np.ndarray]


def packed(study: PowerStudy) -> Arrays:
    """Return the repetitions of a study, a row per setting, in few bytes."""
    cells = study.rows
    return {
        "n": np.array([cell.n for cell in cells]),
        "delta_1": np.array([cell.delta_1 or np.nan for cell in cells]),
        "p": np.array([cell.pvalues for cell in cells], dtype=np.float32),
        "p_chi2": np.array([cell.pvalues_chi2 for cell in cells], dtype=np.float32),
        "ece_before": _in_units([cell.ece_before for cell in cells]),
        "ece_after": _in_units([cell.ece_after for cell in cells]),
    }


def _in_units(errors: list[np.ndarray]) -> np.ndarray:
    return np.round(np.array(errors) / UNIT).astype(np.uint16)


def everything(cache: Path, n_jobs: int) -> Arrays:
    """Run what is not in the cache, and return all arrays by ``part/name``."""
    cache.mkdir(exist_ok=True)
    parts = {"grid": packed(designs.grid(n_jobs=n_jobs, resume=cache / "grid.json"))}
    parts["exact"] = packed(designs.exact(n_jobs=n_jobs, resume=cache / "exact.json"))
    for name in designs.OTHERS:
        study = designs.other(name, n_jobs=n_jobs, resume=cache / f"{name}.json")
        parts[name] = packed(study)
    for effect in designs.EFFECTS:
        cells = [
            _kept(
                cache / f"{effect}_{n}.npz",
                lambda n=n, effect=effect: designs.sharp(effect, n_samples=n, n_jobs=n_jobs),
            )
            for n in designs.SHARP_SIZES
        ]
        parts[effect] = {name: np.concatenate([c[name] for c in cells]) for name in cells[0]}
    del parts["grid"]["p_chi2"]  # they are its p-values
    return {
        f"{part}/{name}": values
        for part, arrays in parts.items()
        for name, values in arrays.items()
    }


def _kept(path: Path, make: Callable[[], PowerStudy]) -> Arrays:
    """Return the repetitions on file, or run the study and keep them: `power_for` has no resume."""
    if not path.exists():
        with path.with_suffix(".tmp").open("wb") as file:
            np.savez(file, **packed(make()))
        path.with_suffix(".tmp").rename(path)
    with np.load(path) as file:
        return dict(file)


def main() -> None:
    """Run, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1, help="processes; the numbers do not depend")
    arguments = parser.parse_args()
    target = HERE / "results" / "repetitions.npz"
    target.parent.mkdir(exist_ok=True)
    np.savez_compressed(target, **everything(HERE / "cache", arguments.jobs))


if __name__ == "__main__":
    main()
