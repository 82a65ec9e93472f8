"""``python -m benchmarks speed``: what is timed, part by part; every single time is kept.

===========  =======================================================================================
fits         validation, estimate, test, standard errors beside peers, over sizes
apply        a map applied to many rows, beside plain NumPy
study        the paper's power study against a serial loop around scipy's BFGS
parquet      a fit from a file through the command line, against one pass written by hand
real         held-out log loss on real predictions, beside the time of each fit
limits       what this machine can do at most, on one thread, and the bound on a pass that follows
===========  =======================================================================================
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
import timeit
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks import machine, sets
from benchmarks.machine import ONE_THREAD, ROOT, Record, comma_separated, median
from benchmarks.methods import APPLY, FITS, REAL, PlainMCLLO, one_pass
from benchmarks.race import Race, Rows
from benchmarks.sets import drawn_labels, predictions

OTHERS = ("limits", "apply", "study", "parquet", "real")
TARGETS = ("132x7", "8000x10", "100000x10", "1000000x10", "10000x100", "50000x1000")
SWEEP = ("1000x10", "10000x3", "10000x10", "10000x30", "10000x300")
QUICK = ("132x7", "1000x10", "8000x10", "2000x3", "2000x30")
ROUNDS, BUDGET = 11, 20.0
"""Most rounds, and the seconds after which a method sits out the others."""
SWEEP_LIMIT, QUICK_LIMIT = 30.0, 20.0
HOPELESS = 1.5
"""A method is not started when its expected time is this many times the limit."""
MANY = 300
"""Classes from which the estimate is timed without standard errors, too."""


# fits: a method whose time on fewer rows of as many classes foretells too much is not started


def shape(size: str) -> tuple[int, int]:
    """Return rows and classes of a size written as 8000x10."""
    n, _, c = size.partition("x")
    return int(n), int(c)


def expected(done: dict[str, Record], name: str, size: str) -> float | None:
    """Return the seconds that a method's largest smaller table of as many classes foretells.

    >>> records = {"a": {"status": "failed", "seconds": []}, "b": {"status": "over", "limit": 30.0}}
    >>> records["c"] = {"status": "skipped", "expected": 80.0, "seconds": []}
    >>> done = {"1000x10": {"a": {"status": "ok", "seconds": [1.0]}}, "8000x10": records}
    >>> [expected(done, name, "80000x10") for name in "abc"], expected(done, "a", "80000x20")
    ([80.0, 300.0, 800.0], None)
    """
    n, c = shape(size)
    where = {"ok": "seconds", "over": "limit", "skipped": "expected"}
    for m, k in sorted(map(shape, done), reverse=True):
        record = done[f"{m}x{k}"].get(name, {"status": "missing"})
        took = record.get(where.get(record["status"], ""))
        if k == c and m < n and took:
            return (median(took) if isinstance(took, list) else took) * n / m
    return None


def measure_fits(sizes: Iterable[str], rounds: int, limit: float) -> Iterator[tuple[str, Record]]:
    """Yield the records of every size as soon as they are there."""
    done: dict[str, Record] = {}
    with Race() as race:
        for size in sorted(sizes, key=lambda s: shape(s)[::-1]):
            machine.say(f"  fits, {size}")
            (n, c), most = shape(size), limit if size in TARGETS else min(limit, SWEEP_LIMIT)
            hopeless = {
                name: {"status": "skipped", "expected": seconds, "seconds": []}
                for name in FITS
                if (seconds := expected(done, name, size)) and seconds > HOPELESS * most
            }
            few = {"mcllo-estimate"} if c < MANY else set()
            names = [name for name in FITS if name not in hopeless.keys() | few]
            timed = race.run(Rows(*predictions(n, c)), names, rounds, BUDGET, most) | hopeless
            done[size] = {name: timed[name] for name in FITS if name in timed}
            yield size, done[size]


# apply

APPLY_ROWS, APPLY_FEWER, NEEDED_GB = 10_000_000, 4_000_000, 14.0
"""Rows, and rows where less memory is free; times are scaled to 10 million and say so."""


def measure_apply(quick: bool) -> Record:
    """Return records of applying a map to n x 10; memory is 0 where the system does not tell."""
    free = sum(int(s.split()[0]) for s in machine.lines("/proc/meminfo", "MemAvailable")) / 2**20
    n = APPLY_ROWS if free >= NEEDED_GB else APPLY_FEWER
    n, rounds = (200_000, 1) if quick else (n, 5)
    with Race() as race:
        records = race.run(Rows(*predictions(n, 10)), APPLY, rounds, 60.0, 300.0)
    return {"rows": n, "records": records}


# limits: exponentials, a logarithm and half of a (2K x 2K) outer product a row, K = c - 1

CACHED = 8192
"""Elements that stay in the innermost caches."""


def _best(job: Callable[[], object], repeats: int = 8, calls: int = 1) -> float:
    """Return the seconds of a call in the fastest of several turns: what nothing disturbed."""
    return min(timeit.repeat(job, number=calls, repeat=repeats)) / calls


def measure_limits() -> dict[str, float]:
    """Return nanoseconds an element, 10^9 operations a second, nanoseconds a row, 10^9 bytes."""
    rng, found = np.random.default_rng(0), {}
    for name, function, dtype in (
        ("exp64", np.exp, np.float64), ("exp32", np.exp, np.float32), ("log64", np.log, np.float64)
    ):  # fmt: skip
        x = rng.uniform(0.1, 5.0, CACHED).astype(dtype)
        out = np.empty_like(x)
        found[name] = 1e9 * _best(partial(function, x, out=out), 30, 20) / CACHED
    for name, dtype in (("gemm64", np.float64), ("gemm32", np.float32)):
        a = np.ones((768, 768), dtype)
        found[name] = 2e-9 * 768**3 / _best(partial(np.matmul, a, a))
    both, x = rng.normal(size=(18, 4096)), np.ones(2**24)
    found["gram"] = 1e9 * _best(lambda: both @ both.T, 30) / 4096
    return found | {"read": 8e-9 * len(x) / _best(lambda: x @ x)}


def bound(found: Record, n_compared: int = 9) -> float:
    """Return the least nanoseconds a row of one pass: each step at its fastest, nothing else done.

    >>> found = {"exp64": 1.0, "log64": 2.0, "gemm64": 81.0, "read": 8.0}
    >>> bound(found)  # 9 exponentials, 1 logarithm, 18 * 18 / 81 = 4, 9 * 8 / 8 = 9
    24.0
    """
    flops, k = (2 * n_compared) ** 2, n_compared
    return k * found["exp64"] + found["log64"] + flops / found["gemm64"] + 8 * k / found["read"]


# study: processor time, which other work hardly changes; the gain of processes by the clock

SIZES, SHIFTS, REPS = (400, 450, 500, 600, 1000, 5000), (1.0, 1.1, 1.2, 1.3, 1.4), 1000


def _ece(g: np.ndarray, y: np.ndarray) -> float:
    """Return the top-label expected calibration error with ceil(sqrt n) bins."""
    n_bins, top = int(np.ceil(np.sqrt(len(y)))), g.argmax(axis=1)
    confidence = g[np.arange(len(y)), top]
    index = np.searchsorted(np.arange(1, n_bins) / n_bins, confidence, side="left")
    return float(np.abs(np.bincount(index, confidence - (top == y))).sum() / len(y))


def _loop(n: int, reps: int) -> None:
    """Draw a table, fit, test, recalibrate and measure ECE twice, as a careful user writes it."""
    rng = np.random.default_rng(n)
    for _ in range(reps):
        x = np.maximum(rng.dirichlet(np.append(3.0, np.full(9, 0.3)), n), 1e-6)
        x /= x.sum(axis=1, keepdims=True)
        g = x * np.append(1.2, np.ones(9))
        y = drawn_labels(g / g.sum(axis=1, keepdims=True), rng)
        model = PlainMCLLO(x, y)
        g = model.softmax(model.minimum("BFGS")[0].x)[0]
        _ece(x, y)
        _ece(np.column_stack([g, 1.0 - g.sum(axis=1)]), y)


def _seconds(clock: Callable[[], float], work: Callable[..., object], *given: int) -> float:
    begin = clock()
    work(*given)
    return clock() - begin


def measure_study(quick: bool) -> Record:
    """Return seconds a repetition, interleaved, from about so many rows of each n."""
    from mcllo import simulate

    def power(n: int, reps: int, n_jobs: int = 1) -> None:
        simulate.power(n_samples=n, delta_1=1.2, reps=reps, seed=n, n_jobs=n_jobs)

    rounds, count, sizes = (1, 4000, (400, 1000)) if quick else (3, 40_000, SIZES)
    power(400, 50)
    cells: dict[str, dict[str, list[float]]] = {}
    for n in sizes:
        cell = cells[str(n)] = {"mcllo": [], "bfgs": []}
        reps = max(2, count // n)
        fewer = max(2, reps // 5)
        for _ in range(rounds):
            cell["mcllo"].append(_seconds(time.process_time, power, n, reps) / reps)
            cell["bfgs"].append(_seconds(time.process_time, _loop, n, fewer) / fewer)
    few, many, processes = max(64, count // 40), max(256, count // 10), machine.cores()
    clock = [
        _seconds(time.perf_counter, power, 1000, many, jobs)
        - _seconds(time.perf_counter, power, 1000, few, jobs)
        for jobs in (1, processes)
    ]
    gain = max(0.1, clock[0] / max(clock[1], 1e-9))
    return {"cells": cells, "processes": processes, "gain": gain}


def whole_study(found: Record) -> Record:
    """Return the seconds of all 30,000 repetitions: ours in one and many processes, the loop's.

    An n that was not run is taken to cost, a row, what the nearest n that was run did.

    >>> cells = {"500": {"mcllo": [0.002], "bfgs": [0.02]}}
    >>> whole = whole_study({"cells": cells, "gain": 2.0})  # 7950 / 500 * 0.002 * 5000
    >>> {name: round(seconds, 6) for name, seconds in whole.items()}
    {'one': 159.0, 'many': 79.5, 'loop': 1590.0}
    """
    cells = {int(n): cell for n, cell in found["cells"].items()}
    near = {n: min(cells, key=lambda other, n=n: abs(other - n)) for n in SIZES}
    ours, loop = (
        sum(median(cells[near[n]][name]) * n / near[n] for n in SIZES) * len(SHIFTS) * REPS
        for name in ("mcllo", "bfgs")
    )
    return {"one": ours, "many": ours / found["gain"], "loop": loop}


# parquet: 10 float32 columns and a label in row groups, in a temporary folder

GROUP, PARQUET_ROWS, PARQUET_LIMIT = 262_144, 10_000_000, 1800.0
RSS_UNIT = 2**20 if sys.platform == "darwin" else 2**10


def hand_written_pass(path: str) -> float:
    """Return the seconds of one pass: row groups, log odds, value, gradient, Hessian, sums."""
    import pyarrow.parquet as pq

    one_pass(np.ones((1, 1)))
    begin, file, terms = time.perf_counter(), pq.ParquetFile(path), None
    names = [name for name in file.schema_arrow.names if name != "y"]
    for k in range(file.num_row_groups):
        table = file.read_row_group(k, columns=[*names, "y"], use_threads=False)
        logs = np.log(np.stack([table[name].to_numpy() for name in names]).astype(np.float64))
        part = one_pass(np.ascontiguousarray(logs[:-1] - logs[-1]))
        terms = part if terms is None else terms + part
    return time.perf_counter() - begin


TOLD = """
import atexit, resource, runpy, sys
seconds, peak = None, lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
atexit.register(lambda: print(seconds, peak()))
"""
BY_HAND = "from benchmarks import speed; seconds = speed.hand_written_pass(sys.argv[1])"
BY_MCLLO = "runpy.run_module('mcllo', run_name='__main__')"
"""The seconds of a pass are its own, without the imports; those of a fit are all."""


def _program(code: str, *words: str) -> Record:
    """Run a program of Python; return its time and peak memory, or why there are none."""
    command = [sys.executable, "-c", TOLD + code, *words]
    given: Any = {"cwd": ROOT, "env": os.environ | ONE_THREAD, "text": True, "capture_output": True}
    start = time.perf_counter()
    try:
        done = subprocess.run(command, **given, timeout=PARQUET_LIMIT, check=True)
    except subprocess.TimeoutExpired:
        return {"status": "over", "limit": PARQUET_LIMIT}
    except subprocess.CalledProcessError as error:
        return {"status": "failed", "reason": error.stderr.strip()[-300:]}
    taken, (seconds, peak) = time.perf_counter() - start, done.stdout.split()[-2:]
    taken = taken if seconds == "None" else float(seconds)
    return {"status": "ok", "taken": taken, "peak_mb": int(peak) / RSS_UNIT}


def measure_parquet(n: int, rounds: int, c: int = 10) -> Record:
    """Return interleaved records of the fit and of one pass over a file of `predictions`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([*((f"p_{k}", pa.float32()) for k in range(c)), ("y", pa.int8())])
    with TemporaryDirectory(prefix="mcllo-bench-") as at:
        path, model = f"{at}/rows.parquet", f"{at}/model.json"
        with pq.ParquetWriter(path, schema) as writer:
            for start in range(0, n, GROUP):
                probs, y = predictions(min(GROUP, n - start), c, seed=start)
                columns = [*probs.T.astype(np.float32), y.astype(np.int8)]
                writer.write_table(pa.table(columns, schema=schema))
        given = ["fit", path, "--label", "y", "--prefix", "p_", "-o", model]
        found: Record = {"rows": n, "classes": c, "file_mb": Path(path).stat().st_size / 1e6}
        done = [(_program(BY_HAND, path), _program(BY_MCLLO, *given)) for _ in range(rounds)]
        content = machine.read(Path(model))
    for name, runs in zip(("pass", "fit"), zip(*done, strict=True), strict=True):
        ends = [run for run in runs if run["status"] != "ok"]
        found[name] = ends[-1] | {"seconds": []} if ends else {
            "status": "ok",
            "seconds": [run["taken"] for run in runs],
            "peak_mb": max(run["peak_mb"] for run in runs),
        }  # fmt: skip
    return found | {"passes": content.get("n_iter", content.get("state", {}).get("n_iter"))}


# real: sets of `sets`; two halves, each once to learn from

REFERENCE = "mcllo-1"
"""Losses of rows differ far less from its than they differ among rows."""


def halves(probs: np.ndarray, y: np.ndarray, seed: int = 0) -> list[Rows]:
    """Return two splits that judge every row once.

    >>> one, two = halves(np.arange(10.0).reshape(5, 2), np.arange(5))
    >>> np.sort([*one.held_y, *two.held_y]).tolist(), np.sort([*one.y, *one.held_y]).tolist()
    ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4])
    """
    a, b = np.split(np.random.default_rng(seed).permutation(len(y)), [len(y) // 2])
    return [Rows(probs[i], y[i], probs[j], y[j]) for i, j in ((a, b), (b, a))]


REAL_SETS = "digits-nb digits-rf digits-lr obesity-shipped cifar-vgg16 cifar-cleanlab 20news"


def measure_real(names: Sequence[str], rounds: int) -> Record:
    """Return for each set its shape, and each method's log loss and times of both halves."""
    found: Record = {}
    sets.build(names)
    with Race() as race:
        for name in sets.known(names):
            machine.say(f"  real data, {name}")
            splits, parts, losses = halves(*sets.load(name)), [], {k: [] for k in REAL}
            for split in splits:
                parts.append(race.run(split, REAL, rounds, 20.0, 120.0))
                for k in (k for k in REAL if parts[-1][k]["status"] == "ok"):
                    losses[k] += race.losses(k, 120.0)
            found[name] = {
                "learn": len(splits[0].y),
                "judge": sum(len(split.held_y) for split in splits),
                "classes": splits[0].probs.shape[1],
                "methods": {k: _summary([p[k] for p in parts], losses, k) for k in REAL},
            }
    return found


def _summary(parts: list[Record], losses: dict[str, list[np.ndarray]], name: str) -> Record:
    """Return one method's record: times of all splits, mean loss, its distance to MCLLO's."""
    status = next((part for part in parts if part["status"] != "ok"), parts[0])
    record = {key: status[key] for key in ("status", "reason", "limit") if key in status}
    record["seconds"] = [seconds for part in parts for seconds in part["seconds"]]
    if len(losses[name]) == len(losses[REFERENCE]) == len(parts):
        own = np.concatenate(losses[name])
        apart = own - np.concatenate(losses[REFERENCE])
        record |= {"log_loss": float(own.mean()), "difference": float(apart.mean())}
        record["se"] = float(apart.std(ddof=1) / np.sqrt(len(apart)))
    return record


# the command


def options(arguments: list[str]) -> argparse.Namespace:
    """Return the options of a run.

    >>> options(["--only", "8000x10, apply"]).parts, options(["--quick"]).rounds
    (['8000x10', 'apply'], 1)
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks speed")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round")
    some = f"some parts, as in 8000x10,apply: sizes or {', '.join(OTHERS)}"
    parser.add_argument("--only", dest="parts", type=comma_separated, default=[], help=some)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds a call may take")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="interleaved rounds")
    parser.add_argument("--parquet-rows", type=int, default=PARQUET_ROWS, help="rows of the file")
    found = parser.parse_args(arguments)
    if found.quick:
        found.limit, found.rounds, found.parquet_rows = min(found.limit, QUICK_LIMIT), 1, 200_000
    for part in found.parts:
        if part not in OTHERS and not re.fullmatch(r"[1-9]\d*x([2-9]|[1-9]\d+)", part):
            parser.error(f"--only takes sizes such as 8000x10 and {', '.join(OTHERS)}; got {part}")
    return found


def main(arguments: list[str]) -> Record:
    """Measure all or some parts; write each to the file at once, and return the results."""
    chosen = options(arguments)
    path = machine.QUICK if chosen.quick else machine.LATEST
    here, begin = machine.rounded(machine.machine()), machine.load()
    kept = machine.read(path) if chosen.parts else {}
    results = kept if kept.get("machine") == here else {"machine": here, "runs": {}, "fits": {}}
    results |= {"quick": chosen.quick, "limit": chosen.limit}
    quick = chosen.quick
    sizes = [part for part in chosen.parts if part not in OTHERS]
    if not chosen.parts:
        sizes = list(QUICK if quick else (*TARGETS, *SWEEP))
    parts: dict[str, Callable[[], Any]] = {
        "limits": measure_limits,
        "fits": lambda: measure_fits(sizes, chosen.rounds, chosen.limit),
        "apply": lambda: measure_apply(quick),
        "study": lambda: measure_study(quick),
        "parquet": lambda: measure_parquet(chosen.parquet_rows, 1 if quick else 3),
        "real": lambda: measure_real(REAL_SETS.split()[: 1 if quick else None], 1 if quick else 5),
    }
    wanted = {*(chosen.parts or OTHERS), *(["fits"] if sizes else [])}
    for name in (name for name in parts if name in wanted):
        machine.say(name)
        run = {"date": machine.now(), "load_at_begin": begin, "load_start": machine.load()}
        if name != "fits":
            results[name] = parts[name]()
        else:
            for size, records in parts[name]():
                results["fits"][size] = records
                machine.write(path, results)
        results["runs"][name] = run | {"date_end": machine.now(), "load_end": machine.load()}
        machine.write(path, results)
    return machine.rounded(results)
