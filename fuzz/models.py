"""Target ``model``: saved calibrators with changed values, or changed bytes.

What is loaded gives probabilities for every row that passes the door, at the ends of what a float
can say too, and gives the same after it was saved again.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import mcllo
from fuzz import checks, odd
from fuzz.case import CASE
from fuzz.files import seeds


def hard_rows(c: int, logits: bool) -> Any:
    """Return rows that are even, sure, tiny, or out of reach."""
    even, first = np.full(c, 1.0 / c), np.eye(c)[0]
    tiny = np.full(c, 1e-300)
    tiny[-1] = 1.0 - tiny[:-1].sum()
    rows = np.array([even, first, first[::-1], tiny, tiny[::-1], 0.5 * (even + first)])
    if not logits:
        return rows
    return np.array([*np.log(np.maximum(rows, 1e-300)), first * 1e100, -first * 1e100])


@st.composite
def model_files(draw: Any) -> bytes:
    """Return the text of a model file."""
    text = draw(st.sampled_from(seeds("model")))
    if draw(st.integers(0, 4)) == 0:
        return draw(odd.edited(st.just(text)))
    document = draw(odd.changed(json.loads(text)))
    seal = draw(st.sampled_from(["none", "none", "right", "old"]))
    if isinstance(document, dict) and seal != "old":
        document.pop("checksum", None)
        if seal == "right":
            document["checksum"] = _checksum(document)
    return json.dumps(document).encode("utf-8", "replace")


def _checksum(document: dict[str, Any]) -> str:
    """Return the checksum as docs/reference/model-file.md has it."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()}"


@odd.attempt
@given(model_files())
def model(content: bytes) -> None:
    """Load a model and use it."""
    CASE.begin(model__json=content)
    path = CASE.write("model.json", content)
    found = checks.allowed(lambda: mcllo.load_calibrator(path))
    if found is None:
        return
    CASE.accept()
    c = len(found.classes_)
    rows = hard_rows(c, found.input == "logits")
    out = checks.allowed(lambda: found.predict_proba(rows))
    checks.must(out is not None, "rows that every model takes are refused")
    checks.probabilities(out, c)
    again = CASE.tmp / "again.json"
    found.save(again)
    same = np.array_equal(mcllo.load_calibrator(again).predict_proba(rows), out)
    checks.must(same, "another map after it was saved again")
    repr(found)
    CASE.compare()
