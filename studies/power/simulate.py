"""The long run of the power study: ``python studies/power/simulate.py [--jobs 2]``.

Writes ``results/repetitions.npz``: chi-square p-values in single precision, ECE in units of 1e-5.
Exact p-values stay in double precision: many are 0.05 to the last digit, which decides. Takes about
7 minutes of processor time. Finished settings are kept in ``cache/``: a run that was stopped goes
on from there; delete the folder to begin afresh.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from mcllo.simulate import PowerStudy

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import power_designs as designs  # noqa: E402

UNIT = 1e-5
Arrays = dict[str, np.ndarray]


def packed(study: PowerStudy) -> Arrays:
    """Return the repetitions of a study, a row per setting, in few bytes.

    Studies with exact p-values are about these: their ECE is left out.
    """
    cells = study.rows
    kept = {
        "n": np.array([cell.n for cell in cells]),
        "delta_1": np.array([cell.delta_1 or np.nan for cell in cells]),
        "p_chi2": np.array([cell.pvalues_chi2 for cell in cells], dtype=np.float32),
    }
    if study.test != "chi2":
        return kept | {"p": np.array([cell.pvalues for cell in cells])}
    for name in ("ece_before", "ece_after"):
        errors = np.array([getattr(cell, name) for cell in cells])
        kept[name] = np.round(errors / UNIT).astype(np.uint16)
    return kept


def everything(cache: Path, n_jobs: int) -> Arrays:
    """Run what is not in the cache, and return all arrays by ``part/name``."""
    cache.mkdir(exist_ok=True)
    parts = {"grid": packed(designs.grid(n_jobs=n_jobs, resume=cache / "grid.json"))}
    parts["exact"] = packed(designs.exact(n_jobs=n_jobs, resume=cache / "exact.json"))
    for name in designs.OTHERS:
        study = designs.other(name, n_jobs=n_jobs, resume=cache / f"{name}.json")
        parts[name] = packed(study)
    for effect in designs.EFFECTS:
        cells = [_sharp(cache, effect, n, n_jobs) for n in designs.SHARP_SIZES]
        parts[effect] = {name: np.concatenate([c[name] for c in cells]) for name in cells[0]}
    return {f"{part}/{name}": a for part, arrays in parts.items() for name, a in arrays.items()}


def _sharp(cache: Path, effect: str, n: int, n_jobs: int) -> Arrays:
    """Return the repetitions on file, or make and keep them: `power_for` has no resume."""
    path = cache / f"{effect}_{n}.npz"
    if not path.exists():
        temporary = path.with_suffix(".tmp")
        with temporary.open("wb") as file:
            np.savez(file, **packed(designs.sharp(effect, n_samples=n, n_jobs=n_jobs)))
        temporary.rename(path)
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
