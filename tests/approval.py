"""Approved outputs: what was printed before must be printed again.

============  =====================================================================================
texts         equal to the letter
JSON          the same keys, words and whole numbers; others to 1e-6 of their size or 1e-9 near 0
              (1e-7 in comparisons, whose maps stop iterating by rules of their own); p-values to
              1e-6 of their size, however small
settled       before both: what is not the same twice is replaced, that is times, versions, colours,
              and where estimates stopped that do not exist
drifting      what maps do that do not exist is known to 1e-3 of its size, and intervals of it are
              left out of texts
============  =====================================================================================

A change that is wanted is approved by running the test with ``--approve`` and reading the
difference of the files in ``tests/texts`` like any other.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TEXTS = Path(__file__).parent / "texts"
HOW = "If this change is wanted: python -m pytest tests/public/test_texts.py --approve"
REPLACED = (
    (r"\x1b\[[0-9;]*m", ""),
    (r"(?m)(\d\.\d{4}[ *]) +\d+\.\d{3}$", r"\1  0.000"),
    (r"(?m) +fit s$", "   fit s"),
    (r"(?m)\| (\d+ ms|\d+\.\d s) \|$", "| 0 ms |"),
    (r"(labels are separated\) \()\d+", r"\g<1>0"),
    (r"kernel: (C \([\w -]+\)|NumPy), Python", "Python"),
    (r"\b(mcllo|Python|NumPy|SciPy) \d+\.\d+[\w.+]*\w", r"\1 0.0.0"),
)
NOISE = ("fit_seconds", "gradient_norm")
"""Numbers that say how long or how exactly, not what."""
DRIFTING = ("tau", "gamma", "delta", "n_iter")
"""Where a fit is separated these only say when it stopped on the way to infinity."""
INTERVALS = (
    (r"\[-?\d+\.\d{4}, -?\d+\.\d{4}\]", "[0.0000, 0.0000]"),
    (r"\(-?\d+\.\d{4} to -?\d+\.\d{4}\)", "(0.0000 to 0.0000)"),
)


def settled(text: str, *, drifting: bool = False) -> str:
    """Return `text` without colours, times and versions."""
    for pattern, new in REPLACED + (INTERVALS if drifting else ()):
        text = re.sub(pattern, new, text)
    return text.rstrip("\n") + "\n"


def settled_values(value: Any) -> Any:
    """Return JSON's values with nine digits, and 0 for what is not the same twice."""
    if isinstance(value, dict):
        noise = NOISE + (DRIFTING if value.get("separated") is True else ())
        return {
            k: 0.0 if k in noise and v else settled_values(v) for k, v in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [settled_values(v) for v in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def sections(parts: dict[str, str], *, drifting: bool = False) -> str:
    """Return texts one below the other, each below its name."""
    texts = {name: settled(text, drifting=drifting) for name, text in parts.items()}
    return "\n".join(f"===== {name}\n{text}" for name, text in texts.items())


def check_text(name: str, text: str, approve: bool) -> None:
    """Fail where `text` is not what ``texts/name`` holds, or write it there."""
    path = TEXTS / name
    if approve:
        path.write_text(text, encoding="utf-8", newline="\n")
        return
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    if text != old:
        lines = difflib.unified_diff(
            old.splitlines(), text.splitlines(), "approved", "now", lineterm=""
        )
        pytest.fail("\n".join([f"texts/{name} differs.", *lines, HOW]), pytrace=False)


def check_json(
    name: str, content: Any, approve: bool, *, drifting: bool = False
) -> None:
    """Fail where `content` is not what ``texts/name`` holds, or write it there."""
    path = TEXTS / name
    now = json.loads(json.dumps(settled_values(content), allow_nan=False, default=str))
    if approve:
        path.write_text(_json_text(now), encoding="utf-8", newline="\n")
        return
    old = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    found = list(differences(old, now, drifting=drifting))
    if found:
        pytest.fail("\n".join([f"texts/{name} differs.", *found, HOW]), pytrace=False)


def differences(
    old: Any, now: Any, where: str = "", *, drifting: bool = False
) -> Iterator[str]:
    """Yield a line for each place where two JSON values differ."""
    if isinstance(old, dict) and isinstance(now, dict) and list(old) == list(now):
        for key in old:
            yield from differences(
                old[key], now[key], f"{where}.{key}", drifting=drifting
            )
    elif isinstance(old, list) and isinstance(now, list) and len(old) == len(now):
        for i, pair in enumerate(zip(old, now, strict=True)):
            yield from differences(*pair, f"{where}[{i}]", drifting=drifting)
    elif isinstance(old, float) and isinstance(now, float):
        near = 1e-7 if where.startswith(".compare") else 1e-9
        near = 0.0 if where.endswith(("pvalue", "adjusted")) else near
        part = 1e-3 if drifting and where.startswith(".compare") else 1e-6
        if not math.isclose(old, now, rel_tol=part, abs_tol=near):
            yield f"{where}: approved {old!r}, now {now!r}"
    elif type(old) is not type(now) or old != now:
        yield f"-{where}: {_short(old)}\n+{where}: {_short(now)}"


def _short(value: Any) -> str:
    text = repr(list(value) if isinstance(value, dict) else value)
    return text if len(text) < 800 else text[:800] + " ..."


def _json_text(value: Any) -> str:
    """Return JSON with every list of plain values on one line."""
    text = json.dumps(value, indent=1, ensure_ascii=False)
    flat = re.compile(r"\[\n\s+([^\[\]{}]+?)\n\s+\]")
    return (
        flat.sub(lambda found: "[" + " ".join(found[1].split("\n")) + "]", text) + "\n"
    )
