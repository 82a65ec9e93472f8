"""A fit from a Parquet file through the command line: time, peak memory, passes.

The file (10 float32 columns and a label, generated) lives in a temporary folder that is deleted.
What it is held against is one pass written by hand: pyarrow reads a row group, NumPy makes log
odds, the kernel evaluates value, gradient and Hessian, and the sums are added; one process, one
thread over the rows.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

import numpy as np

from benchmarks.crew import ONE_THREAD, ROOT
from benchmarks.data import predictions

ROWS, QUICK, CLASSES = 10_000_000, 200_000, 10
GROUP = 262_144
"""Rows of a row group."""
LIMIT = 1800.0


def generate(path: Path, n: int, c: int = CLASSES, seed: int = 0) -> None:
    """Write n rows of `data.predictions`, a row group at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"p_{k}" for k in range(c)]
    schema = pa.schema([*((name, pa.float32()) for name in names), ("y", pa.int8())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, n, GROUP):
            probs, y = predictions(min(GROUP, n - start), c, seed=seed + start)
            columns = [*(probs[:, k].astype(np.float32) for k in range(c)), y.astype(np.int8)]
            writer.write_table(pa.table(dict(zip(schema.names, columns, strict=True)), schema))


def hand_written_pass(path: Path) -> float:
    """Return the value at the identity; what is timed is the way to it."""
    import pyarrow.parquet as pq

    from mcllo._model import LogPartition, identity_theta

    file = pq.ParquetFile(path)
    names = [name for name in file.schema_arrow.names if name != "y"]
    terms = None
    for k in range(file.num_row_groups):
        table = file.read_row_group(k, columns=[*names, "y"], use_threads=False)
        logs = np.log(np.stack([table[name].to_numpy() for name in names]).astype(np.float64))
        odds = np.ascontiguousarray(logs[:-1] - logs[-1])
        part = LogPartition(odds, n_jobs=1)(identity_theta(len(odds)))
        terms = part if terms is None else terms + part
    return 0.0 if terms is None else terms.value


def run(command: list[str], limit: float = LIMIT) -> dict[str, object]:
    """Return seconds, peak memory and output of a program, or that it was too slow or failed."""
    with TemporaryFile("w+") as said, TemporaryFile("w+") as complained:
        start = time.perf_counter()
        child = subprocess.Popen(
            command, cwd=ROOT, env=os.environ | ONE_THREAD, stdout=said, stderr=complained
        )
        pid = 0
        while not pid:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            seconds = time.perf_counter() - start
            if not pid and seconds > limit:
                child.kill()
                os.wait4(child.pid, 0)
                return {"status": "over", "limit": limit}
            time.sleep(0.01)
        child.returncode = os.waitstatus_to_exitcode(status)
        for text in (said, complained):
            text.seek(0)
        if child.returncode:
            return {"status": "failed", "reason": complained.read().strip()[-300:]}
        unit = 2**20 if sys.platform == "darwin" else 2**10
        peak = usage.ru_maxrss / unit
        return {"status": "ok", "seconds": seconds, "peak_mb": peak, "said": said.read()}


def run_pass(path: Path) -> dict[str, object]:
    """Return the record of one pass by hand; its seconds are its own, without the imports."""
    done = run([sys.executable, "-m", "benchmarks.outofcore", str(path)])
    if done["status"] == "ok":
        done["seconds"] = float(str(done["said"]))
    return done


def fit_command(path: Path, model: Path) -> list[str]:
    """Return the command line that is measured."""
    given = ["--label", "y", "--prefix", "p_", "-o", str(model)]
    return [sys.executable, "-m", "mcllo", "fit", str(path), *given]


def passes(model: Path) -> int | None:
    """Return the passes that a fitted model says it took."""
    content = json.loads(model.read_text())
    found = content.get("n_iter", content.get("state", {}).get("n_iter"))
    return None if found is None else int(found)


def measure(n: int = ROWS, rounds: int = 3) -> dict[str, object]:
    """Return interleaved records of the fit and of one pass, with the size of the file."""
    fits, one_pass, steps = [], [], None
    with TemporaryDirectory(prefix="mcllo-bench-") as folder:
        path, model = Path(folder) / "rows.parquet", Path(folder) / "model.json"
        generate(path, n)
        size = path.stat().st_size
        for _ in range(rounds):
            one_pass.append(run_pass(path))
            fits.append(run(fit_command(path, model)))
            if model.exists():
                steps = passes(model)
    return {
        "rows": n,
        "classes": CLASSES,
        "file_mb": size / 1e6,
        "passes": steps,
        "fit": _gathered(fits),
        "pass": _gathered(one_pass),
    }


def _gathered(runs: list[dict[str, object]]) -> dict[str, object]:
    """Return one record of several runs."""
    bad = next((run for run in runs if run["status"] != "ok"), None)
    if bad is not None:
        return {**bad, "seconds": []}
    return {
        "status": "ok",
        "seconds": [run["seconds"] for run in runs],
        "peak_mb": max(float(run["peak_mb"]) for run in runs),
    }  # type: ignore[arg-type]


if __name__ == "__main__":
    import pyarrow.parquet  # noqa: F401  not timed: what `hand_written_pass` imports

    import mcllo._model  # noqa: F401

    begin = time.perf_counter()
    hand_written_pass(Path(sys.argv[1]))
    print(time.perf_counter() - begin)
