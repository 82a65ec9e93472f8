"""Make the corpus: small files that mcllo reads, one of each kind, always the same bytes.

========  ==================================================================================
csv       plain, with a gap, percentages, decimal commas, quotes, an index, weights
parquet   plain, in two row groups, dictionaries, float32, nulls
model     one of every method, learned from 60 rows of three classes
========  ==================================================================================
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet as pq

import mcllo
from mcllo.calibrators import CALIBRATORS

CORPUS = Path(__file__).with_name("corpus")
CSV = {
    "plain": "a,b,c,y\n0.2,0.3,0.5,c\n0.7,0.2,0.1,a\n0.1,0.8,0.1,b\n0.25,0.5,0.25,a\n",
    "gap": "a,b,c,y\n0.2,0.3,0.5,c\n0.7,,0.1,a\n0.1,0.8,0.1,\n",
    "percent": "a,b,y\n20 %,80 %,b\n55 %,45 %,a\n",
    "comma": "a;b;y\n0,25;0,75;b\n0,5;0,5;a\n",
    "quotes": '"a","b","c","y"\r\n"0.2","0.3","0.5","c"\r\n"0.7","0.2","0.1","a"\r\n',
    "index": ",a,b,y\n0,0.25,0.75,b\n1,0.5,0.5,a\n",
    "weights": "a,b,y,w\n0.25,0.75,b,2\n0.5,0.5,a,1\n1,0,a,3\n",
}


def table() -> pa.Table:
    """Return rows whose sums are 1 to the last digit."""
    columns = {"a": [0.25, 0.5, 0.125, 1.0], "b": [0.5, 0.25, 0.75, 0.0]}
    return pa.table(
        {**columns, "c": [0.25, 0.25, 0.125, 0.0], "y": ["a", "b", "c", "a"]}
    )


def parquets() -> dict[str, bytes]:
    """Return the files of Parquet by name."""
    plain = table()
    kinds = pa.schema(
        [("a", pa.float32()), ("b", pa.float32()), ("c", pa.float32()), ("y", "string")]
    )
    gaps = plain.set_column(0, "a", pa.array([None, 0.5, 0.125, 1.0]))
    words = plain.set_column(3, "y", plain["y"].dictionary_encode())
    made = {
        "plain": (plain, {}),
        "groups": (plain, {"row_group_size": 2, "compression": "none"}),
        "words": (words, {}),
        "float32": (plain.cast(kinds), {"compression": "zstd"}),
        "gaps": (gaps, {"use_dictionary": False}),
    }
    found = {}
    for name, (rows, options) in made.items():
        sink = io.BytesIO()
        pq.write_table(rows, sink, **options)
        found[name] = sink.getvalue()
    return found


def write() -> None:
    """Write all of them."""
    for kind in ("csv", "parquet", "model"):
        (CORPUS / kind).mkdir(parents=True, exist_ok=True)
    for name, text in CSV.items():
        (CORPUS / "csv" / f"{name}.csv").write_bytes(text.encode())
    for name, content in parquets().items():
        (CORPUS / "parquet" / f"{name}.parquet").write_bytes(content)
    rng = np.random.default_rng(7)
    probs = rng.dirichlet(np.ones(3), size=60)
    y = np.array(["a", "b", "c"])[
        (probs.cumsum(axis=1) > rng.random((60, 1))).argmax(axis=1)
    ]
    for name, kind in CALIBRATORS.items():
        kind().fit(probs, y).save(CORPUS / "model" / f"{name}.json")
    mcllo.MCLLOCalibrator(baseline="all").fit(probs, y).save(
        CORPUS / "model" / "all.json"
    )
