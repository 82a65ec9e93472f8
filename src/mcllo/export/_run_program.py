"""Exported forms, run: for `mcllo export --check`, tests and benchmarks.

Each function takes what a target wrote and rows, and returns the probabilities that came out.
"""

from __future__ import annotations

import hashlib
import json
import linecache
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from .._utils.optional import ONNX_EXTRA, needed
from .._utils.results import Floats
from ..exceptions import InputError

NODE = """
import {{ readFileSync }} from "node:fs";
import {{ predictProba }} from {module};
const rows = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(predictProba(rows)));
"""


def namespace(text: str) -> dict[str, Any]:
    """Return what a written Python file defines; its source stays known, as torch.jit asks."""
    name = f"<exported by mcllo {hashlib.sha256(text.encode()).hexdigest()[:16]}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    made: dict[str, Any] = {"__name__": "exported"}
    exec(compile(text, name, "exec"), made)
    return made


def run_python(text: str, rows: Floats) -> Floats:
    """Run the target "python"."""
    return np.array(namespace(text)["predict_proba"](rows.tolist()))


def run_javascript(text: str, rows: Floats) -> Floats:
    """Run the target "javascript" in node."""
    node = shutil.which("node")
    if node is None:
        raise InputError("this needs node, which is not installed; the module runs in any browser.")
    with tempfile.TemporaryDirectory() as folder:
        module, script = Path(folder, "exported.mjs"), Path(folder, "run.mjs")
        module.write_text(text, encoding="utf-8")
        script.write_text(NODE.format(module=json.dumps(module.as_uri())), encoding="utf-8")
        sent = json.dumps(rows.tolist())
        done = subprocess.run([node, str(script)], input=sent, capture_output=True, text=True)
    if done.returncode:
        raise InputError(f"node could not run the module: {done.stderr.strip()[-300:]}")
    return np.array(json.loads(done.stdout))


def run_onnx(model: bytes, rows: Floats, name: str | None = None) -> Floats:
    """Run the target "onnx" in onnxruntime, in the model's own dtype."""
    runtime = needed("onnxruntime", ONNX_EXTRA)
    session = runtime.InferenceSession(model, providers=["CPUExecutionProvider"])
    given = session.get_inputs()[0]
    dtype = np.float32 if given.type == "tensor(float)" else np.float64
    found = session.run([name or "calibrated"], {given.name: rows.astype(dtype)})
    return np.asarray(found[0])


def run_torch(text: str, rows: Floats) -> Floats:
    """Run the target "torch"."""
    torch = needed("torch", "torch")
    module = namespace(text)["Calibration"]()
    with torch.no_grad():
        return np.asarray(module(torch.from_numpy(rows)).numpy())


def run_sql(
    text: str, rows: Floats, columns: list[str], dialect: str, key: str = "mcllo_key"
) -> Floats:
    """Run the target "sql" over a table ``predictions``; `key` is the column that tells its rows.

    In DuckDB for its own dialect, else in the SQLite that Python has, which reads the query only in
    its own dialect.
    """
    quoted = [f'''"{name.replace('"', '""')}"''' for name in columns]
    if dialect == "duckdb":
        database = needed("duckdb", "duckdb").connect()
    else:
        import sqlite3

        database = sqlite3.connect(":memory:")
    kinds = ", ".join(f"{name} DOUBLE" for name in quoted)
    database.execute(f"CREATE TABLE predictions ({kinds}, {key} INTEGER)")
    given = [*rows.T.tolist(), list(range(len(rows)))]
    if dialect == "duckdb":
        marks = ", ".join(["unnest(?)"] * len(given))
        database.execute(f"INSERT INTO predictions SELECT {marks}", given)
    else:
        marks = ", ".join("?" * len(given))
        database.executemany(f"INSERT INTO predictions VALUES ({marks})", zip(*given, strict=True))
    found = database.execute(text).fetchall()
    database.close()
    return np.array([row[1:] for row in sorted(found)], dtype=np.float64)
