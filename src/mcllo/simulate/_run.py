"""The repetitions of a power study: draw, fit, test, recalibrate, measure; many at once.

Repetition r of a cell draws from a stream of its own, ``default_rng([seed, *cell, r])``, and the
batches in which repetitions are worked on are cut in one way only, so that the numbers are the same
for any number of workers, and a cell's do not depend on which others are in the study.

The workers are processes that start afresh ("spawn"), each with one BLAS thread: threads would
share the interpreter that small tables keep busy. They end with the process that started them,
also where that one was killed and could not tell them.

A stopped study can go on from a JSON file: the settings that the numbers depend on, and each
finished cell with the numbers of its repetitions (JSON keeps every digit of a float). It is written
anew, atomically, after each cell. A file of other settings is refused, never mixed. The grid is not
a setting: cells do not depend on each other, so a larger grid keeps what is there.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._fit.objective import free_parameters
from .._inference.budget import N_EXCEEDANCES_LARGE_TABLE, N_RESAMPLES
from .._inference.likelihood_tests import choose_method, exact_pvalue
from .._model.batched import BatchedProblems
from .._model.kernel import predicted_probabilities
from .._model.likelihood import identity_theta
from .._utils.atomic_files import StrPath, check_writable, progress, write_text
from .._utils.parallel import keep_freed, limit_threads, one_blas_thread
from .._utils.results import Codes, Floats
from .._validation.predictions import Predictions
from ..exceptions import FileFormatError, InputError
from ..metrics._binned import cell_totals
from ..metrics._bins import resolve_n_bins, top_label, width_index
from ._design import Design, Streams, table_of_sample
from ._study import ARRAYS


class SmallFits(NamedTuple):
    """Fits of B tables: theta (B, 2K), statistics against the identity (B,), free parameters (B,).

    Where no maximum exists, theta is far out on the way to the supremum.
    """

    theta: Floats
    statistic: Floats
    df: Codes


def fit_tables(log_odds: Floats, codes: Codes) -> SmallFits:
    """Fit the MCLLO model to B tables: log odds (K, B, n), and codes (B, n), K the baseline's.

    Where the identity is saturated and leads nowhere, the search begins at the flat map.
    """
    k, tables, n = log_odds.shape
    s, null = sufficient_statistics(log_odds, codes), identity_theta(k)
    fits = BatchedProblems(s, null).minima(log_odds)
    theta, value, lost = fits.theta, fits.value, np.flatnonzero(~fits.converged)
    if len(lost):
        again = BatchedProblems(s[lost], np.zeros(2 * k)).minima(
            np.ascontiguousarray(log_odds[:, lost])
        )
        better = again.value < value[lost]
        theta[lost[better]], value[lost[better]] = again.theta[better], again.value[better]
    free = free_parameters(log_odds.reshape(k * tables, n)).reshape(2 * k, tables)
    return SmallFits(theta, np.maximum(0.0, 2.0 * (fits.start - value)), free.sum(axis=0))


def sufficient_statistics(log_odds: Floats, codes: Codes) -> Floats:
    """Return the sufficient statistic of each table, shape (B, 2K)."""
    k, tables, n = log_odds.shape
    row, column = np.divmod(np.flatnonzero(codes < k), n)
    own = codes[row, column]
    found = cell_totals(row * k + own, log_odds[own, row, column], tables * k, None)
    return np.hstack([part.reshape(tables, k) for part in found])


N_BATCH_LOG_ODDS = 150_000
"""Log odds of one batch: the more tables, the less time in Python; the fewer, the more in cache."""


@dataclass(frozen=True, eq=False)
class StudyPlan:
    """What every repetition has in common."""

    design: Design
    test: str
    n_resamples: int
    reps: int

    @property
    def settings(self) -> dict[str, Any]:
        """What the numbers depend on, as plain values."""
        draws = {} if self.test == "chi2" else {"n_resamples": self.n_resamples}
        return {"test": self.test, "reps": self.reps, **draws, **self.design.settings}


@dataclass(frozen=True, eq=False)
class StudyCell:
    """One setting: n rows whose labels follow the map theta; `key` starts its streams."""

    n: int
    delta_1: float | None
    theta: Floats
    key: tuple[int, ...]


def run_cells(
    plan: StudyPlan, cells: Sequence[StudyCell], n_jobs: int = 1
) -> Iterator[tuple[StudyCell, Floats]]:
    """Give each cell with its numbers, in order; see `run_batch`."""
    if not cells:
        return
    with _workers(plan, n_jobs) as work, progress("simulating", "repetitions") as advance:
        for cell in cells:
            parts = []
            for part in work(cell, batches(cell, plan.reps)):
                parts.append(part)
                advance(part.shape[1])
            yield cell, np.concatenate(parts, axis=1)


def batches(cell: StudyCell, reps: int) -> list[range]:
    """Return the repetitions of a cell in pieces of a size that depends on the cell alone."""
    size = max(1, N_BATCH_LOG_ODDS // (cell.n * len(cell.theta) // 2))
    return [range(start, min(start + size, reps)) for start in range(0, reps, size)]


def run_batch(plan: StudyPlan, cell: StudyCell, batch: range) -> Floats:
    """Return p-values, chi-square p-values, ECE before and ECE after, shape (4, repetitions)."""
    from scipy.special import chdtrc

    streams = [np.random.default_rng([*cell.key, r]) for r in batch]
    sample = plan.design.sample(cell.theta, cell.n, streams)
    odds = sample.log_odds.reshape(-1, len(batch), cell.n)
    fits = fit_tables(odds, sample.model_codes.reshape(len(batch), cell.n))
    chi2: Floats = chdtrc(fits.df.astype(np.float64), fits.statistic)
    pvalues = chi2 if plan.test == "chi2" else _simulate_pvalues(plan, sample, fits, streams, chi2)
    predicted_probabilities = recalibrate_tables(fits.theta, odds, sample.baseline_index)
    errors = [
        top_label_errors(p, sample.codes, len(batch))
        for p in (sample.probs, predicted_probabilities)
    ]
    return np.stack([pvalues, chi2, *errors])


def _simulate_pvalues(
    plan: StudyPlan, sample: Predictions, fits: SmallFits, streams: Streams, chi2: Floats
) -> Floats:
    """Return exact p-values, for ``test="auto"`` only where chi-square cannot be trusted."""
    pvalues, n = chi2.copy(), sample.n_samples // len(chi2)
    drawing = {"n_resamples": plan.n_resamples, "exceedances": N_EXCEEDANCES_LARGE_TABLE}
    for b, stream in enumerate(streams):
        predictions = table_of_sample(sample, slice(b * n, (b + 1) * n))
        df, value = int(fits.df[b]), float(fits.statistic[b])
        if plan.test == "auto" and choose_method(predictions, df, "lr", N_RESAMPLES)[0] == "chi2":
            continue
        drawing["seed"] = int(stream.integers(2**63))
        pvalues[b] = exact_pvalue(predictions, "lr", value, "sequential", **drawing).pvalue
    return pvalues


def recalibrate_tables(theta: Floats, log_odds: Floats, baseline: int) -> Floats:
    """Return each table's map of its own rows, one table below the other."""
    g, k = predicted_probabilities(theta.T, log_odds)[0], len(log_odds)
    if baseline < k:  # else it is where it belongs
        g = g[np.insert(np.arange(k), baseline, k)]
    return g.reshape(k + 1, -1).T


def top_label_errors(probs: Floats, codes: Codes, tables: int) -> Floats:
    """Return the top-label ECE of each table: ``sum over bins |sum of (confidence - hit)| / n``."""
    n, (top, confidence) = len(codes) // tables, top_label(probs)
    n_bins = resolve_n_bins("sqrt", n)
    index = width_index(confidence, n_bins) + np.repeat(n_bins * np.arange(tables), n)
    _, sums = cell_totals(index, confidence - (top == codes), n_bins * tables, None)
    return np.abs(sums).reshape(tables, n_bins).sum(axis=1) / n


@contextmanager
def _workers(
    plan: StudyPlan, n_jobs: int
) -> Iterator[Callable[[StudyCell, list[range]], Iterable[Floats]]]:
    """Give a function that runs batches of a cell, in order, here or in processes."""
    if n_jobs == 1:
        keep_freed()
        with one_blas_thread():
            yield lambda cell, parts: map(partial(run_batch, plan, cell), parts)
        return
    pool = ProcessPoolExecutor(
        n_jobs, mp_context=get_context("spawn"), initializer=_begin, initargs=(plan,)
    )
    try:
        yield lambda cell, parts: pool.map(partial(_run_planned, cell), parts)
    except BrokenProcessPool:
        raise InputError(
            f"n_jobs={n_jobs} needs processes that can import the program; one could not start or "
            "was stopped. Call from below `if __name__ == '__main__':`, or pass n_jobs=1."
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


_planned: StudyPlan | None = None


def _begin(plan: StudyPlan) -> None:
    """Keep the plan in a worker, which would otherwise get the rows again with every batch."""
    global _planned
    _planned = plan
    keep_freed()
    limit_threads(1)

    def end_with_parent() -> None:  # which may have been killed
        if (parent := parent_process()) is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


@one_blas_thread()
def _run_planned(cell: StudyCell, batch: range) -> Floats:
    assert _planned is not None
    return run_batch(_planned, cell, batch)


Key = tuple[int, float | None]

FORMAT = "mcllo power study, 1"


class FinishedCells(dict[Key, Floats]):
    """Finished cells by ``(n, delta_1)``, kept at `path`; None keeps them in memory only."""

    def __init__(self, path: StrPath | None) -> None:
        super().__init__()
        self.path = path
        self.settings: dict[str, Any] = {}
        if path is not None:
            check_writable(path)
        if path is None or not Path(path).exists():
            return
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            assert content["format"] == FORMAT
            self.settings = dict(content["settings"])
            for cell in content["cells"]:
                numbers = np.array([cell[name] for name in ARRAYS], dtype=np.float64)
                assert numbers.shape == (len(ARRAYS), self.settings["reps"])
                self[int(cell["n"]), float(cell["delta_1"])] = numbers
        except (OSError, ValueError, KeyError, TypeError, AssertionError):
            raise FileFormatError(
                f"{path} is not an unfinished power study of this package. Name another file."
            ) from None

    def agree_on(self, settings: dict[str, Any]) -> None:
        """Refuse to go on with other settings than those on file."""
        for name, value in settings.items() if self.settings else ():
            if self.settings.get(name) != value:
                raise InputError(
                    f"resume={str(self.path)!r} holds a study with {name}="
                    f"{self.settings.get(name)!r}; this one has {name}={value!r}. Name another "
                    "file, or ask for the same."
                )
        self.settings = settings

    def add(self, key: Key, numbers: Floats) -> None:
        """Keep a finished cell: the numbers of `ARRAYS`, shape (4, repetitions)."""
        self[key] = numbers
        if self.path is None:
            return
        cells = [
            {"n": n, "delta_1": shift, **dict(zip(ARRAYS, found.tolist(), strict=True))}
            for (n, shift), found in self.items()
        ]
        content = {"format": FORMAT, "settings": self.settings, "cells": cells}
        write_text(self.path, json.dumps(content) + "\n")
