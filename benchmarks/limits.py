"""What this machine can do at most, on one thread, and the bound on a pass that follows.

One evaluation of value, gradient and Hessian reads each log odds once and needs, for each row, an
exponential of each class but one, a logarithm, and half of a (2K x 2K) outer product, K = c - 1.
The bound adds these at their fastest: in cache, nothing else done.
"""

import time
from collections.abc import Callable

import numpy as np

CACHED = 8192
"""Elements that stay in the innermost caches."""


def best(job: Callable[[], object], repeats: int = 30) -> float:
    """Return the fastest of several calls: a limit is what nothing disturbed."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        job()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def elementwise(function: np.ufunc, dtype: type) -> float:
    """Return nanoseconds an element of a function in cache."""
    x = np.random.default_rng(0).uniform(0.1, 5.0, CACHED).astype(dtype)
    out = np.empty_like(x)
    return 1e9 * best(lambda: [function(x, out=out) for _ in range(20)]) / (20 * CACHED)


def product(dtype: type, size: int = 768) -> float:
    """Return 10^9 multiplications and additions a second of a matrix product."""
    a = np.ones((size, size), dtype)
    return 2e-9 * size**3 / best(lambda: a @ a, 8)


def gram(n_compared: int, rows: int = 4096) -> float:
    """Return nanoseconds a row of the gram product of the kernel, float64."""
    a = np.random.default_rng(0).normal(size=(2 * n_compared, rows))
    return 1e9 * best(lambda: a @ a.T) / rows


def reading(elements: int = 2**24) -> float:
    """Return 10^9 bytes a second of reading memory."""
    x = np.ones(elements)
    return 8e-9 * elements / best(lambda: x @ x, 8)


def bound(found: dict[str, float], n_compared: int) -> float:
    """Return the least nanoseconds a row of one pass, from what `measure` found.

    Examples
    --------
    >>> found = {"exp64": 1.0, "log64": 2.0, "gemm64": 81.0, "read": 8.0}
    >>> bound(found, 9)  # 9 exponentials, 1 logarithm, 18 * 18 / 81 = 4, 9 * 8 / 8 = 9
    24.0
    """
    flops = (2 * n_compared) ** 2
    exponentials = n_compared * found["exp64"]
    return exponentials + found["log64"] + flops / found["gemm64"] + 8 * n_compared / found["read"]


def measure() -> dict[str, float]:
    """Return all limits."""
    return {
        "exp64": elementwise(np.exp, np.float64),
        "exp32": elementwise(np.exp, np.float32),
        "log64": elementwise(np.log, np.float64),
        "gemm64": product(np.float64),
        "gemm32": product(np.float32),
        "gram": gram(9),
        "read": reading(),
    }
