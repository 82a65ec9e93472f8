"""Does the maximum likelihood estimate exist? A linear program decides.

Write ``z_ik`` for the 2K features of class k in row i (``eta_ik = z_ik . theta``; the baseline's
are 0). The estimate fails to exist iff some ``v != 0`` has ``(z_{i,y_i} - z_{ik}) . v >= 0`` for
all i and k, with some inequality strict: along v the likelihood never falls (Albert and
Anderson 1984). So maximise the sum of those products subject to all of them being >= 0 and
``|v_j| <= 1``: the value is positive iff the rows are separated.

A solver satisfies constraints only to its tolerance, and nearly separated rows turn a violation of
e into a value of more than 1e7 e; an answer counts only when its value is 1e9 times its largest
violation.

Only the constraints that matter enter the program: it starts with the rows hardest to satisfy and
adds those its answer violates, until none is violated.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

POSITIVE = 1e-7
CLEAR = 1e-9
FIRST_ROWS = 4000


def separating_direction(log_odds: Floats, codes: NDArray[np.intp]) -> Floats | None:
    """Return a direction along which the likelihood never falls, or None when there is none.

    Parameters
    ----------
    log_odds : ndarray of shape (K, n)
        Log odds against the baseline.
    codes : ndarray of shape (n,)
        Rows of `log_odds` that came true; K stands for the baseline.
    """
    scale = np.concatenate([np.ones(len(log_odds)), np.abs(log_odds).max(axis=1)])
    scale[scale == 0.0] = 1.0
    total = _total(log_odds, codes) / scale
    rows = np.argsort(_slack(log_odds, codes), kind="stable")[:FIRST_ROWS]
    while True:
        direction, value = _solve(_constraints(log_odds[:, rows], codes[rows]) / scale, total)
        if value <= POSITIVE:
            return None
        margins = _margins(log_odds, codes, direction / scale)
        violated = np.flatnonzero(margins < -CLEAR * value)
        fresh = np.setdiff1d(violated, rows)
        if len(fresh) == 0:
            return direction / scale if len(violated) == 0 else None
        worst = fresh[np.argsort(margins[fresh], kind="stable")[:FIRST_ROWS]]
        rows = np.concatenate([rows, worst])


def _slack(log_odds: Floats, codes: NDArray[np.intp]) -> Floats:
    """Return how far the true class leads the others: rows of small slack are hard."""
    padded = np.vstack([log_odds, np.zeros(log_odds.shape[1])])
    own = padded[codes, np.arange(len(codes))]
    padded[codes, np.arange(len(codes))] = -np.inf
    slack: Floats = own - padded.max(axis=0)
    return slack


def _constraints(log_odds: Floats, codes: NDArray[np.intp]) -> Floats:
    """Return the rows ``z_{i,y_i} - z_{ik}``, k other than y_i, shape (m K, 2 K)."""
    k, m = log_odds.shape
    blocks = np.zeros((m, k + 1, 2 * k))
    own = np.flatnonzero(codes < k)
    blocks[own, :, codes[own]] += 1.0
    blocks[own, :, k + codes[own]] += log_odds[codes[own], own][:, None]
    for j in range(k):
        blocks[:, j, j] -= 1.0
        blocks[:, j, k + j] -= log_odds[j]
    keep = np.arange(k + 1) != codes[:, None]
    rows: Floats = blocks[keep]
    return rows


def _total(log_odds: Floats, codes: NDArray[np.intp]) -> Floats:
    """Return the sum of all constraint rows without building them."""
    k = len(log_odds)
    counts = np.bincount(codes, minlength=k + 1)[:k].astype(np.float64)
    own = np.flatnonzero(codes < k)
    sums = np.bincount(codes[own], weights=log_odds[codes[own], own], minlength=k)
    n = log_odds.shape[1]
    return np.concatenate([(k + 1) * counts - n, (k + 1) * sums - log_odds.sum(axis=1)])


def _margins(log_odds: Floats, codes: NDArray[np.intp], direction: Floats) -> Floats:
    """Return each row's smallest product with `direction`."""
    k, n = log_odds.shape
    eta = np.zeros((k + 1, n))
    eta[:k] = direction[:k, None] + direction[k:, None] * log_odds
    margins: Floats = eta[codes, np.arange(n)] - eta.max(axis=0)
    return margins


def _solve(constraints: Floats, total: Floats) -> tuple[Floats, float]:
    from scipy.optimize import linprog

    answer = linprog(
        -total,
        A_ub=-constraints,
        b_ub=np.zeros(len(constraints)),
        bounds=(-1.0, 1.0),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if answer.x is None:
        return np.zeros(len(total)), 0.0
    return np.asarray(answer.x), float(answer.x @ total)
