"""The proof: an exported form against ``predict_proba``, on rows that are hard on purpose.

====================  ==========================================================================
rows                  a thousand by default: spread over the simplex and near its corners, rows
                      with zeros, tiny values down to 1e-300, ties, multiples of 1/20 (the edges of
                      bins), numbers at which step functions jump or bend, and every corner point
logits                the logarithms of such rows, moved and stretched
difference            largest ``|exported - predict_proba|``; the form holds below 1e-12, in float32
                      below 1e-6
====================  ==========================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._utils.results import Floats, Result
from .._utils.statements import suppress_warnings
from .._validation.probabilities import clean_logits
from ..calibrators._base import Calibrator
from ._program import Program

MAX_ROUNDING_DIFFERENCES = {"float64": 1e-12, "float32": 1e-6}
"""Largest difference that is rounding."""
N_CHECK_ROWS = 1000


@dataclass(frozen=True)
class Check(Result):
    """An exported form beside ``predict_proba``.

    Attributes
    ----------
    target : str
        The form, with what ran it.
    difference : float
        Largest difference of a probability.
    limit : float
        What it may be.
    n_rows : int
        Rows compared.

    See Also
    --------
    check : Makes it.
    export : Writes the form that is checked.
    ExportError : Where there is no such form.

    Examples
    --------
    >>> from mcllo.export import check
    >>> from mcllo.calibrators import TemperatureScaling
    >>> X = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]
    >>> temperature = TemperatureScaling().fit(X, ["cat", "cat", "dog", "dog"])
    >>> found = check(temperature, "python", n_rows=50)
    >>> found.holds, found.difference <= found.limit
    (True, True)
    """

    target: str
    difference: float
    limit: float
    n_rows: int

    @property
    def holds(self) -> bool:
        """Whether the difference is rounding."""
        return self.difference <= self.limit

    def __str__(self) -> str:
        said = "the same" if self.holds else "NOT the same"
        return (
            f"{self.target}: {said} as predict_proba on {self.n_rows:,} rows; largest difference "
            f"{self.difference:.2g} (limit {self.limit:g})"
        )


def hard_rows(program: Program, n_rows: int = N_CHECK_ROWS, seed: int = 0) -> Floats:
    """Return rows for a program: probabilities, or logits where it takes these.

    Examples
    --------
    >>> rows = hard_rows(Program("identity", ("a", "b", "c"), "probs"), 200)
    >>> rows.shape, bool((rows == 0.0).any()), bool((rows == 1.0).any())
    ((200, 3), True, True)
    >>> bool(abs(rows.sum(axis=1) - 1.0).max() < 1e-9)
    True
    """
    rng, c = np.random.default_rng(seed), len(program.classes)
    parts = [np.eye(c), np.full((1, c), 1.0 / c)]
    size = max(1, n_rows // 6)
    parts += [rng.dirichlet(np.full(c, strength), size=size) for strength in (1.0, 0.1)]
    tiny = rng.dirichlet(np.ones(c), size=size) * 10.0 ** -rng.integers(0, 300, size=(size, c))
    parts.append(tiny / tiny.sum(axis=1, keepdims=True))
    tied = rng.integers(0, 3, size=(size, c)).astype(float)
    tied[:, 0] += tied.sum(axis=1) == 0.0
    parts.append(tied / tied.sum(axis=1, keepdims=True))
    twentieths = rng.multinomial(20, np.full(c, 1.0 / c), size=size) / 20.0
    parts.append(twentieths)
    parts.append(_at_jumps(program, size, rng))
    rows = np.concatenate(parts)
    if len(rows) < n_rows:
        rows = np.concatenate([rows, rng.dirichlet(np.ones(c), size=n_rows - len(rows))])
    rows = rows[:n_rows]
    if not program.zeros:
        rows = np.maximum(rows, 1e-300)
    if program.input == "logits":
        spread = np.log(np.maximum(rows, 1e-300))
        return spread * rng.uniform(0.5, 2.0, (len(rows), 1)) + rng.normal(0, 20.0, (len(rows), 1))
    return rows


def _at_jumps(program: Program, size: int, rng: np.random.Generator) -> Floats:
    """Return rows of which one entry is where a step function of its class jumps or bends."""
    c = len(program.classes)
    rows = rng.dirichlet(np.ones(c), size=size)
    for step in program.steps:
        places = step.numbers.get("edges", step.numbers.get("at"))
        if places is None or c == 1:
            continue
        for i, j in enumerate(rng.integers(0, len(places), size=size)):
            if len(places[j]) and 0.0 <= (x := float(rng.choice(places[j]))) < 1.0:
                rest = np.delete(rows[i], j)
                rows[i] = np.insert(rest / rest.sum() * (1.0 - x), j, x)
    return rows


def reference(calibrator: Calibrator, program: Program, rows: Floats) -> Floats:
    """Return what ``predict_proba`` says of rows in the program's input."""
    with suppress_warnings():
        if program.input == "logits" and calibrator.input == "probs":
            rows = clean_logits(rows).probs
        return np.asarray(calibrator.predict_proba(rows))


def compare_with_calibrator(
    target: str, calibrator: Calibrator, program: Program, rows: Floats, found: Any, dtype: str
) -> Check:
    """Return how far `found` is from ``predict_proba`` on the same rows; NaN is infinitely far."""
    expected = reference(calibrator, program, rows)
    apart = np.abs(np.asarray(found, dtype=np.float64) - expected)
    worst = float(apart.max()) if np.isfinite(apart).all() else np.inf
    return Check(target, worst, MAX_ROUNDING_DIFFERENCES[dtype], len(rows))
