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
from .._inference.likelihood_tests import choose_method, simulated_pvalue
from .._model.batched import BatchedProblems
from .._model.kernel import probabilities_and_log_sums
from .._model.likelihood import identity_theta
from .._utils.atomic_files import StrPath, check_writable, progress, write_text
from .._utils.parallel import keep_freed_memory, limit_threads, one_blas_thread
from .._utils.results import Codes, Floats
from .._validation.predictions import Predictions
from ..exceptions import FileFormatError, InputError
from ..metrics._binned import weight_and_sum_by_cell
from ..metrics._bins import equal_width_bin_index, resolve_n_bins, top_label
from ._design import Design, Streams, take_table_of_sample
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
    k, n_tables, n = log_odds.shape
    statistics = sufficient_statistics(log_odds, codes)
    fits = BatchedProblems(statistics, identity_theta(k)).minimize_all(log_odds)
    theta = fits.theta
    value = fits.value
    # Where the identity is sure of all labels its Hessian is next to 0, and Newton leads nowhere;
    # at the flat map the curvature is largest.
    lost = np.flatnonzero(~fits.converged)
    if len(lost):
        flat = np.zeros(2 * k)
        log_odds_of_lost = np.ascontiguousarray(log_odds[:, lost])
        again = BatchedProblems(statistics[lost], flat).minimize_all(log_odds_of_lost)
        is_better = again.value < value[lost]
        improved = lost[is_better]
        theta[improved] = again.theta[is_better]
        value[improved] = again.value[is_better]
    is_free = free_parameters(log_odds.reshape(k * n_tables, n)).reshape(
        2 * k, n_tables
    )
    likelihood_ratio = np.maximum(0.0, 2.0 * (fits.start - value))
    return SmallFits(theta, likelihood_ratio, is_free.sum(axis=0))


def sufficient_statistics(log_odds: Floats, codes: Codes) -> Floats:
    """Return the sufficient statistic of each table, shape (B, 2K)."""
    k, n_tables, n = log_odds.shape
    table, row = np.divmod(np.flatnonzero(codes < k), n)
    label = codes[table, row]
    log_odds_of_label = log_odds[label, table, row]
    counts, sums = weight_and_sum_by_cell(
        table * k + label, log_odds_of_label, n_tables * k, None
    )
    return np.hstack([counts.reshape(n_tables, k), sums.reshape(n_tables, k)])


N_BATCH_LOG_ODDS = 150_000
"""Log odds of one batch: the more tables, the less time in Python; the fewer, the more in cache. A
round number, which the numbers of a study depend on in their last digits."""


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
        settings: dict[str, Any] = {"test": self.test, "reps": self.reps}
        if self.test != "chi2":
            settings["n_resamples"] = self.n_resamples
        return settings | self.design.settings


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
    with (
        _batch_runner(plan, n_jobs) as work,
        progress("simulating", "repetitions") as advance,
    ):
        for cell in cells:
            parts = []
            for part in work(cell, split_into_batches(cell, plan.reps)):
                parts.append(part)
                advance(part.shape[1])
            yield cell, np.concatenate(parts, axis=1)


def split_into_batches(cell: StudyCell, reps: int) -> list[range]:
    """Return the repetitions of a cell in pieces of a size that depends on the cell alone."""
    log_odds_per_table = cell.n * len(cell.theta) // 2
    size = max(1, N_BATCH_LOG_ODDS // log_odds_per_table)
    return [range(start, min(start + size, reps)) for start in range(0, reps, size)]


def run_batch(plan: StudyPlan, cell: StudyCell, batch: range) -> Floats:
    """Return p-values, chi-square p-values, ECE before and ECE after, shape (4, repetitions)."""
    from scipy.special import chdtrc

    n_tables = len(batch)
    streams = [np.random.default_rng([*cell.key, repetition]) for repetition in batch]
    sample = plan.design.sample(cell.theta, cell.n, streams)
    log_odds = sample.log_odds.reshape(-1, n_tables, cell.n)
    fits = fit_tables(log_odds, sample.model_codes.reshape(n_tables, cell.n))
    chi2_pvalues: Floats = chdtrc(fits.df.astype(np.float64), fits.statistic)
    pvalues = chi2_pvalues
    if plan.test != "chi2":
        pvalues = _simulate_pvalues(plan, sample, fits, streams, chi2_pvalues)
    recalibrated = recalibrate_tables(fits.theta, log_odds, sample.baseline_index)
    ece_before = top_label_ece_by_table(sample.probs, sample.codes, n_tables)
    ece_after = top_label_ece_by_table(recalibrated, sample.codes, n_tables)
    return np.stack([pvalues, chi2_pvalues, ece_before, ece_after])


def _simulate_pvalues(
    plan: StudyPlan,
    sample: Predictions,
    fits: SmallFits,
    streams: Streams,
    chi2: Floats,
) -> Floats:
    """Return exact p-values, for ``test="auto"`` only where chi-square cannot be trusted."""
    pvalues = chi2.copy()
    n = sample.n_samples // len(chi2)
    for b, stream in enumerate(streams):
        predictions = take_table_of_sample(sample, slice(b * n, (b + 1) * n))
        if plan.test == "auto":
            method, _ = choose_method(predictions, int(fits.df[b]), "lr", N_RESAMPLES)
            if method == "chi2":
                continue
        found = simulated_pvalue(
            predictions,
            "lr",
            float(fits.statistic[b]),
            "sequential",
            n_resamples=plan.n_resamples,
            exceedances=N_EXCEEDANCES_LARGE_TABLE,
            # From the repetition's own stream: neither batches nor workers change it.
            seed=int(stream.integers(2**63)),
        )
        pvalues[b] = found.pvalue
    return pvalues


def recalibrate_tables(theta: Floats, log_odds: Floats, baseline: int) -> Floats:
    """Return each table's map of its own rows, one table below the other."""
    g, _ = probabilities_and_log_sums(theta.T, log_odds)
    k = len(log_odds)
    if baseline < k:  # else it is where it belongs
        g = g[np.insert(np.arange(k), baseline, k)]
    return g.reshape(k + 1, -1).T


def top_label_ece_by_table(probs: Floats, codes: Codes, tables: int) -> Floats:
    """Return the top-label ECE of each table: ``sum over bins |sum of (confidence - hit)| / n``."""
    n = len(codes) // tables
    n_bins = resolve_n_bins("sqrt", n)
    top, confidence = top_label(probs)
    first_bin_of_table = np.repeat(n_bins * np.arange(tables), n)
    index = equal_width_bin_index(confidence, n_bins) + first_bin_of_table
    is_hit = top == codes
    _, sums = weight_and_sum_by_cell(index, confidence - is_hit, n_bins * tables, None)
    return np.abs(sums).reshape(tables, n_bins).sum(axis=1) / n


@contextmanager
def _batch_runner(
    plan: StudyPlan, n_jobs: int
) -> Iterator[Callable[[StudyCell, list[range]], Iterable[Floats]]]:
    """Give a function that runs batches of a cell, in order, here or in processes."""
    if n_jobs == 1:

        def run_here(cell: StudyCell, parts: list[range]) -> Iterable[Floats]:
            return (run_batch(plan, cell, part) for part in parts)

        keep_freed_memory()
        with one_blas_thread():
            yield run_here
        return
    pool = ProcessPoolExecutor(
        n_jobs,
        mp_context=get_context("spawn"),
        initializer=_keep_plan_in_worker,
        initargs=(plan,),
    )

    def run_in_processes(cell: StudyCell, parts: list[range]) -> Iterable[Floats]:
        return pool.map(partial(_run_planned, cell), parts)

    try:
        yield run_in_processes
    except BrokenProcessPool:
        raise InputError(
            f"n_jobs={n_jobs} needs processes that can import the program; one could not start or "
            "was stopped. Call from below `if __name__ == '__main__':`, or pass n_jobs=1."
        ) from None
    except BaseException:  # the parts that are under way are for nobody
        for process in list((pool._processes or {}).values()):
            process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


_planned: StudyPlan | None = None


def _keep_plan_in_worker(plan: StudyPlan) -> None:
    """Keep the plan in a worker, which would otherwise get the rows again with every batch."""
    global _planned
    _planned = plan
    keep_freed_memory()
    limit_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this worker when the process that started it has ended, which may have been killed."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@one_blas_thread()
def _run_planned(cell: StudyCell, batch: range) -> Floats:
    """Run a batch of the plan that this worker keeps."""
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
        if path is None:
            return
        check_writable(path)
        if not Path(path).exists():
            return
        try:
            self._parse_file_content(json.loads(Path(path).read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            raise FileFormatError(
                f"{path} is not an unfinished power study of this package. Name another file."
            ) from None

    def _parse_file_content(self, content: Any) -> None:
        """Take settings and cells from a file's content; a ValueError where it is none of ours."""
        if content["format"] != FORMAT:
            raise ValueError("another format")
        self.settings = dict(content["settings"])
        for cell in content["cells"]:
            numbers = np.array([cell[name] for name in ARRAYS], dtype=np.float64)
            if numbers.shape != (len(ARRAYS), self.settings["reps"]):
                raise ValueError("another number of repetitions")
            self[int(cell["n"]), float(cell["delta_1"])] = numbers

    def check_same_settings(self, settings: dict[str, Any]) -> None:
        """Refuse to go on with other settings than those on file."""
        if self.settings:  # else nothing is on file
            for name, value in settings.items():
                on_file = self.settings.get(name)
                if on_file != value:
                    raise InputError(
                        f"resume={str(self.path)!r} holds a study with {name}={on_file!r}; this "
                        f"one has {name}={value!r}. Name another file, or ask for the same."
                    )
        self.settings = settings

    def add(self, key: Key, numbers: Floats) -> None:
        """Keep a finished cell: the numbers of `ARRAYS`, shape (4, repetitions)."""
        self[key] = numbers
        if self.path is None:
            return
        cells = []
        for (n, shift), found in self.items():
            lists = dict(zip(ARRAYS, found.tolist(), strict=True))
            cells.append({"n": n, "delta_1": shift, **lists})
        content = {"format": FORMAT, "settings": self.settings, "cells": cells}
        write_text(self.path, json.dumps(content) + "\n")
