"""``python -m benchmarks speed``: what is timed, part by part; every single time is kept.

===========  =======================================================================================
limits       what this machine can do at most in NumPy, on one thread
fits         validation, estimate, test, standard errors beside peers, over sizes
passes       value, gradient and Hessian once, over sizes
exact        p-values from 1999 simulated data sets
apply        a map applied to many rows, beside plain NumPy
forms        an exported map applied to many rows, beside `predict_proba`
study        the paper's power study against a serial loop around scipy's BFGS
shell        what a person waits for at the command line
parquet      a fit from a file through the command line, against one pass written by hand
large        the same on 100 million rows; only if asked for, and kept by later runs
===========  =======================================================================================

A size is rows x classes and perhaps what rows they are (`KINDS`): ``8000x10-large``.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
import timeit
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from studies.pages import count

from benchmarks import machine
from benchmarks.machine import ONE_THREAD, ROOT, Record, comma_separated, median
from benchmarks.methods import (
    APPLY,
    EXACT,
    FITS,
    FORMS,
    PASSES,
    PlainMCLLO,
    log_partition,
    runnable,
)
from benchmarks.race import Race, Rows
from benchmarks.sets import drawn_labels, predictions, raised, shipped

SHIPPED = {
    "large": (0, partial(shipped, "cifar10_vgg")),
    "small": (0, partial(shipped, "cifar10_vgg", network="small")),
    "forest": (396, partial(shipped, "obesity_forest")),
}
"""The first row taken, and all rows: those to learn from, then those to judge on. Of the forest's
rows to learn from, the first 132 have no maximum likelihood estimate."""
KINDS = {
    "large": "large VGG",
    "small": "small VGG",
    "forest": "forest",
    "calibrated": "calibrated",
}
TARGETS = ("132x7", "8000x10", "100000x10", "1000000x10", "10000x100", "50000x1000")
SWEEP = (
    "1000x10",
    "10000x3",
    "10000x10",
    "10000x20",
    "10000x30",
    "10000x50",
    "10000x300",
)
REAL = (
    "132x7-forest",
    "500x10-large",
    "2000x10-large",
    "8000x10-large",
    "8000x10-small",
)
FULL = {
    "fits": (*TARGETS, *SWEEP, *REAL),
    "passes": (
        "400x10",
        "8000x10-large",
        "100000x10",
        "1000000x10",
        "10000x30",
        "10000x100",
    ),
    "exact": (
        "500x10-calibrated",
        "500x10-large",
        "2000x10-calibrated",
        "2000x10-large",
    ),
    "forms": ("1000000x10",),
    "parquet": ("10000000x10", "10000000x10-large"),
}
LARGE = "100000000x10"
QUICK = {
    "fits": ("132x7", "1000x10", "2000x3", "2000x30", "132x7-forest", "2000x10-large"),
    "passes": ("400x10", "2000x10-large", "10000x30"),
    "exact": ("132x7-forest",),
    "apply": ("200000x10",),
    "forms": ("2000x10",),
    "parquet": ("200000x10",),
}
ROUNDS, BUDGET = 5, 8.0
"""Most rounds, and the seconds after which a method sits out the others."""
LIMIT, MANY_ELEMENTS, LONGER = 6.0, 10**7, 2.5
"""Seconds a call may take; elements from which it may take so many times as long."""
HOPELESS = 1.5
"""A method is not started when its expected time is this many times the limit."""
MANY = 300
"""Classes from which the estimate is timed without standard errors, too."""


# sizes


def shape(size: str) -> tuple[int, int]:
    """Return rows and classes of a size written as 8000x10 or 8000x10-large."""
    n, _, c = size.partition("-")[0].partition("x")
    return int(n), int(c)


def kind(size: str) -> str:
    return size.partition("-")[2]


def elements(size: str) -> int:
    n, c = shape(size)
    return n * c


def size_words(size: str) -> str:
    """Return a size as people write it.

    >>> size_words("100000x10"), size_words("8000x10-large")
    ('100k x 10', '8000 x 10, large VGG')
    """
    n, c = shape(size)
    return ", ".join(
        [f"{count(n)} x {c}", *([KINDS[kind(size)]] if kind(size) else [])]
    )


def rows(size: str, start: int = 0) -> Rows:
    """Return the rows of a size from `start` on; shipped ones come again when they end.

    >>> rows("4x3-calibrated").probs.shape, rows("2x7-forest", 528).y.tolist() == rows(
    ...     "2x7-forest").y.tolist()
    ((4, 3), True)
    """
    n, c = shape(size)
    if kind(size) in SHIPPED:
        first, load = SHIPPED[kind(size)]
        probs, y = load()
        if probs.shape[1] != c:
            raise ValueError(f"{kind(size)} has {probs.shape[1]} classes; got {size}")
        taken = np.arange(first + start, first + start + n) % len(y)
        return Rows(raised(probs[taken]), y[taken])
    probs, y = predictions(n, c, seed=start)
    return Rows(
        probs, drawn_labels(probs, np.random.default_rng(1)) if kind(size) else y
    )


# races: a method whose time on a smaller table foretells too much is not started


def expected(done: dict[str, Record], name: str, size: str) -> float | None:
    """Return the seconds that a method's largest smaller table foretells, growing as n c.

    >>> records = {"a": {"status": "failed", "seconds": []}, "b": {"status": "over", "limit": 30.0}}
    >>> records["c"] = {"status": "skipped", "expected": 80.0, "seconds": []}
    >>> done = {"1000x10": {"a": {"status": "ok", "seconds": [1.0]}}, "8000x10": records}
    >>> [expected(done, name, "80000x10") for name in "abc"], expected(done, "a", "800000x3")
    ([80.0, 300.0, 800.0], None)
    """
    where = {"ok": "seconds", "over": "limit", "skipped": "expected"}
    for other in sorted(done, key=elements, reverse=True):
        record = done[other].get(name, {"status": "missing"})
        took = record.get(where.get(record["status"], ""))
        fewer = all(a <= b for a, b in zip(shape(other), shape(size), strict=True))
        if fewer and other != size and kind(other) == kind(size) and took:
            seconds = median(took) if isinstance(took, list) else took
            return seconds * elements(size) / elements(other)
    return None


def measure_race(
    names: Iterable[str],
    sizes: Iterable[str],
    known: dict[str, Record],
    rounds: int,
    limit: float,
    budget: float = BUDGET,
) -> Iterator[tuple[str, Record]]:
    """Yield the records of every size as soon as they are there; others may be known before."""
    done, names = dict(known), runnable(names)
    with Race() as race:
        for size in sorted(sizes, key=lambda s: (kind(s), *shape(s)[::-1])):
            machine.say(f"  {size}")
            most = limit * (LONGER if elements(size) >= MANY_ELEMENTS else 1.0)
            hopeless = {
                name: {"status": "skipped", "expected": seconds, "seconds": []}
                for name in names
                if (seconds := expected(done, name, size)) and seconds > HOPELESS * most
            }
            few = {"mcllo-estimate"} if shape(size)[1] < MANY else set()
            started = [name for name in names if name not in hopeless.keys() | few]
            timed = race.run(rows(size), started, rounds, budget, most) | hopeless
            done[size] = {name: timed[name] for name in names if name in timed}
            yield size, done[size]


APPLY_ROWS, APPLY_FEWER, NEEDED_GB = 10_000_000, 4_000_000, 14.0
"""Rows, and rows where less memory is free; times are scaled to 10 million and say so."""


def apply_size() -> str:
    """Return the size for which memory is free; 0 where the system does not tell."""
    free = (
        sum(int(s.split()[0]) for s in machine.lines("/proc/meminfo", "MemAvailable"))
        / 2**20
    )
    return f"{APPLY_ROWS if free >= NEEDED_GB else APPLY_FEWER}x10"


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
    return (
        k * found["exp64"]
        + found["log64"]
        + flops / found["gemm64"]
        + 8 * k / found["read"]
    )


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


def _seconds(
    clock: Callable[[], float], work: Callable[..., object], *given: int
) -> float:
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
        [
            _seconds(time.perf_counter, power, 1000, many, jobs)
            - _seconds(time.perf_counter, power, 1000, few, jobs)
            for jobs in (1, processes)
        ]
        for _ in range(rounds)
    ]
    one, several = (median(list(each)) for each in zip(*clock, strict=True))
    gain = max(0.1, one / max(several, 1e-9))
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
        sum(median(cells[near[n]][name]) * n / near[n] for n in SIZES)
        * len(SHIFTS)
        * REPS
        for name in ("mcllo", "bfgs")
    )
    return {"one": ours, "many": ours / found["gain"], "loop": loop}


# programs: started anew for every call, in turn

GROUP, PROGRAM_LIMIT = 262_144, 1800.0
TOLD = """
import atexit, runpy, sys
def peak():
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    except OSError:
        import resource
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
seconds = None
atexit.register(lambda: print(seconds, peak()))
"""
"""On Linux `resource` would tell the peak of the process that started this one."""
BY_HAND = "from benchmarks import speed; seconds = speed.hand_written_pass(sys.argv[1])"
BY_MCLLO = "runpy.run_module('mcllo', run_name='__main__')"
"""The seconds of a pass are its own, without the imports; those of ``mcllo`` are all."""
UNUSUAL = {*ONE_THREAD, "PYTHONDONTWRITEBYTECODE"}
AS_IT_COMES = {name: value for name, value in os.environ.items() if name not in UNUSUAL}
"""What a person's shell has: threads as they come, and a Python that keeps what it compiled."""
Program = tuple[str, list[str], dict[str, str]]


def _program(code: str, words: list[str], environment: dict[str, str]) -> Record:
    """Run a program of Python; return its time and peak memory, or why there are none."""
    command = [sys.executable, "-c", TOLD + code, *words]
    given: Any = {"cwd": ROOT, "env": environment, "text": True, "capture_output": True}
    start = time.perf_counter()
    try:
        done = subprocess.run(command, **given, timeout=PROGRAM_LIMIT, check=True)
    except subprocess.TimeoutExpired:
        return {"status": "over", "limit": PROGRAM_LIMIT}
    except subprocess.CalledProcessError as error:
        return {"status": "failed", "reason": error.stderr.strip()[-300:]}
    taken, (seconds, peak) = time.perf_counter() - start, done.stdout.split()[-2:]
    taken = taken if seconds == "None" else float(seconds)
    return {"status": "ok", "taken": taken, "peak_mb": int(peak) / 1024}


def run_programs(
    programs: dict[str, Program], rounds: int, both: bool = True
) -> dict[str, Record]:
    """Return a record of each program; with `both`, where there is C, also of those without it."""
    if both and machine.kernel_name() != "NumPy":
        programs = programs | {
            f"{name}-numpy": (code, words, given | {"MCLLO_KERNEL": "numpy"})
            for name, (code, words, given) in programs.items()
            if code == BY_MCLLO
        }
    done = [
        {name: _program(*program) for name, program in programs.items()}
        for _ in range(rounds)
    ]
    found: dict[str, Record] = {}
    for name in programs:
        runs = [each[name] for each in done]
        ends = [run for run in runs if run["status"] != "ok"]
        found[name] = ends[-1] | {"seconds": []} if ends else {
            "status": "ok",
            "seconds": [run["taken"] for run in runs],
            "peak_mb": max(run["peak_mb"] for run in runs),
        }  # fmt: skip
    return found


def measure_shell(rounds: int) -> Iterator[tuple[str, Record]]:
    """Yield records of commands on the rows that ``mcllo demo`` judges on."""
    from mcllo._apps.cli.demo import LABEL, load_demo_predictions, write_predictions_csv

    with TemporaryDirectory(prefix="mcllo-bench-") as at:
        path, judged = Path(at, "holdout.csv"), load_demo_predictions()[1]
        write_predictions_csv(path, judged)
        assess = ["assess", str(path), "--label", LABEL, "--seed", "0"]
        lines = {"version": ["--version"], "assess": assess}
        lines["report"] = [*assess, "--html", f"{at}/report.html"]
        programs = {
            name: (BY_MCLLO, words, AS_IT_COMES) for name, words in lines.items()
        }
        yield (
            f"{judged.n_samples}x{judged.n_classes}-large",
            run_programs(programs, rounds),
        )


def hand_written_pass(path: str) -> float:
    """Return the seconds of one pass: row groups, log odds, value, gradient, Hessian, sums."""
    import pyarrow.parquet as pq

    log_partition(np.ones((1, 1)))()
    begin, file, terms = time.perf_counter(), pq.ParquetFile(path), None
    names = [name for name in file.schema_arrow.names if name != "y"]
    for k in range(file.num_row_groups):
        table = file.read_row_group(k, columns=[*names, "y"], use_threads=False)
        logs = np.log(
            np.stack([table[name].to_numpy() for name in names]).astype(np.float64)
        )
        part = log_partition(np.ascontiguousarray(logs[:-1] - logs[-1]))()
        terms = part if terms is None else terms + part
    return time.perf_counter() - begin


def write_parquet(path: str, size: str) -> None:
    """Write the rows of a size: float32 columns and a label, in row groups."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    (n, c), what = shape(size), size.partition("x")[2]
    schema = pa.schema(
        [*((f"p_{k}", pa.float32()) for k in range(c)), ("y", pa.int8())]
    )
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, n, GROUP):
            probs, y = rows(f"{min(GROUP, n - start)}x{what}", start)
            columns = [*probs.T.astype(np.float32), y.astype(np.int8)]
            writer.write_table(pa.table(columns, schema=schema))


def measure_parquet(sizes: Iterable[str], rounds: int) -> Iterator[tuple[str, Record]]:
    """Yield records of the fit, with its passes, and of one pass, in a temporary folder."""
    for size in sizes:
        machine.say(f"  {size}")
        with TemporaryDirectory(prefix="mcllo-bench-") as at:
            path, model = f"{at}/rows.parquet", f"{at}/model.json"
            write_parquet(path, size)
            given = ["fit", path, "--label", "y", "--prefix", "p_", "-o", model]
            given += ["--method", "mcllo"]
            one_thread = os.environ | ONE_THREAD
            programs = {
                "pass": (BY_HAND, [path], one_thread),
                "fit": (BY_MCLLO, given, one_thread),
            }
            found = run_programs(programs, rounds, both=size != LARGE)
            content = machine.read(Path(model))
            found["fit"]["file_mb"] = Path(path).stat().st_size / 1e6
        found["fit"]["steps"] = content.get(
            "n_iter", content.get("state", {}).get("n_iter")
        )
        yield size, found


# the command

PARTS = (
    "limits",
    "fits",
    "passes",
    "exact",
    "apply",
    "forms",
    "study",
    "shell",
    "parquet",
    "large",
)


def options(arguments: list[str]) -> argparse.Namespace:
    """Return the options of a run.

    >>> options(["--only", "8000x10-large, apply"]).parts, options(["--quick"]).rounds
    (['8000x10-large', 'apply'], 1)
    >>> options([]).parts[-1], options(["--large"]).parts[-1]
    ('parquet', 'large')
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks speed")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round")
    some = f"some parts, as in 8000x10-large,apply: sizes of fits or {', '.join(PARTS)}"
    parser.add_argument(
        "--only", dest="parts", type=comma_separated, default=[], help=some
    )
    words = f"also a file of {size_words(LARGE)}: 6 GB of disk, ten minutes"
    parser.add_argument("--large", action="store_true", help=words)
    parser.add_argument(
        "--limit", type=float, default=LIMIT, help="seconds a call may take"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="interleaved rounds")
    found = parser.parse_args(arguments)
    found.whole = not found.parts
    found.parts = [*(found.parts or PARTS[:-1]), *(["large"] if found.large else [])]
    if found.quick:
        found.rounds = 1
    for part in found.parts:
        known = rf"[1-9]\d*x([2-9]|[1-9]\d+)(-({'|'.join(KINDS)}))?"
        if part not in PARTS and not re.fullmatch(known, part):
            parser.error(
                f"--only takes sizes such as 8000x10 and {', '.join(PARTS)}; got {part}"
            )
    return found


def kept(chosen: argparse.Namespace, path: Path, here: Record) -> Record:
    """Return the results that a run adds to: those of the same machine, of which all or `LARGE`."""
    found = machine.read(path)
    same = found.get("machine") == here
    if found and not (same or chosen.whole or chosen.quick):
        raise SystemExit(
            f"{path.name} is of another machine, kernel or versions: {found['machine']}; this is "
            f"{here}. Run all parts."
        )
    results: Record = found if same else {"machine": here, "runs": {}}
    if chosen.whole:
        results = {"machine": here, "runs": {}}
        if same and LARGE in found.get("parquet", {}):
            results["parquet"] = {LARGE: found["parquet"][LARGE]}
            results["runs"] = {
                name: run for name, run in found["runs"].items() if LARGE in name
            }
    return results | {"quick": chosen.quick, "limit": chosen.limit}


def main(arguments: list[str]) -> Record:
    """Measure all or some parts; write each to the file at once, and return the results."""
    chosen = options(arguments)
    quick, path = chosen.quick, machine.QUICK if chosen.quick else machine.LATEST
    if not quick:
        machine.settle()
    begin = {"begun": machine.now(), "load_at_begin": machine.load()}
    results = kept(chosen, path, machine.rounded(machine.machine()))
    sizes = [part for part in chosen.parts if part not in PARTS]
    some = QUICK if quick else FULL | {"apply": (apply_size(),)}
    some = some | ({"fits": sizes} if sizes else {})
    few, given = (1 if quick else 3), (chosen.rounds, chosen.limit)
    fits = results.get("fits", {})
    parts: dict[str, Callable[[], Any]] = {
        "limits": measure_limits,
        "fits": lambda: measure_race(FITS, some["fits"], fits, *given),
        "passes": lambda: measure_race(PASSES, some["passes"], {}, *given),
        "exact": lambda: measure_race(EXACT, some["exact"], {}, chosen.rounds, 60.0),
        "apply": lambda: measure_race(APPLY, some["apply"], {}, few, 120.0, 60.0),
        "forms": lambda: measure_race(FORMS, some["forms"], {}, few, 120.0, 60.0),
        "study": lambda: measure_study(quick),
        "shell": lambda: measure_shell(chosen.rounds),
        "parquet": lambda: measure_parquet(some["parquet"], min(few, 2)),
        "large": lambda: measure_parquet([LARGE], 1),
    }
    wanted = {*chosen.parts, *(["fits"] if sizes else [])}
    for name in (name for name in parts if name in wanted):
        machine.say(name)
        run = {"date": machine.now(), "load_start": machine.load()}
        found, where = parts[name](), "parquet" if name == "large" else name
        for size, records in [("", found)] if isinstance(found, dict) else found:
            if size:
                results.setdefault(where, {})[size] = records
            else:
                results[where] = records
            ended = {"date_end": machine.now(), "load_end": machine.load()}
            results["runs"][f"{where} {size}".strip()] = begin | run | ended
            machine.write(path, results)
            run = {"date": machine.now(), "load_start": machine.load()}
    return machine.rounded(results)
