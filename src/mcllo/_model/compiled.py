"""The kernel in C, where it was compiled: finding the library and calling it.

Installation compiles ``kernel.c`` where there is a compiler (``hatch_build.py``). The library knows
the checksum of its source and is not used beside another. ``MCLLO_KERNEL=numpy`` in the environment
turns C off, ``c`` insists on it. ctypes lets go of the interpreter during a call, so threads can
share the rows.

Functions that have a NumPy counterpart of their own name say by None or False that C does not do
it: `softmax_in_place` and `log_in_place` (`_model/kernel`), `newton_direction` (`_model/newton`),
`fill_log_odds` (`_model/likelihood`), `labels_from_uniforms` and `count_and_sum_by_label`.
`log_partition_derivatives`, `probability_moment_sums`, `outer_product_times` and `minimize_batch`
are for log odds that `accepts_log_odds` or `accepts_log_odds_of_many_classes` accepts.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._utils.results import Floats
from ..exceptions import InputError

SOURCE = Path(__file__).with_name("kernel.c")
LIBRARY_SUFFIX = {"win32": "dll", "darwin": "dylib"}.get(sys.platform, "so")
LIBRARY = Path(__file__).with_name(f"libkernel.{LIBRARY_SUFFIX}")

MAX_COMPARED_CLASSES = 128
"""Classes beside the baseline up to which Hessians are made in C; from about 250 BLAS is faster."""

MAX_SOLVED_PARAMETERS = 60
"""Parameters up to which a step is solved for in C; fits of more take one such step or two."""


class _ProblemsStructure(ctypes.Structure):
    """``Problems`` of kernel.c, in its order: addresses of arrays, numbers, sizes."""

    _fields_ = [
        ("odds", ctypes.c_void_p),
        ("root", ctypes.c_void_p),
        ("statistic", ctypes.c_void_p),
        ("origin", ctypes.c_void_p),
        ("basis", ctypes.c_void_p),
        ("centre", ctypes.c_void_p),
        ("reach", ctypes.c_void_p),
        ("first", ctypes.c_void_p),
        ("theta", ctypes.c_void_p),
        ("start", ctypes.c_void_p),
        ("value", ctypes.c_void_p),
        ("gradient", ctypes.c_void_p),
        ("hessian", ctypes.c_void_p),
        ("steps", ctypes.c_void_p),
        ("ridge", ctypes.c_double),
        ("tol", ctypes.c_double),
        ("k", ctypes.c_ssize_t),
        ("n", ctypes.c_ssize_t),
        ("stride", ctypes.c_ssize_t),
        ("count", ctypes.c_ssize_t),
        ("free", ctypes.c_ssize_t),
        ("most", ctypes.c_ssize_t),
        ("odds_apart", ctypes.c_ssize_t),
        ("root_apart", ctypes.c_ssize_t),
        ("origin_apart", ctypes.c_ssize_t),
        ("light", ctypes.c_ssize_t),
    ]


@cache
def kernel_library() -> ctypes.CDLL | None:
    """Return the library, or None where there is none or ``MCLLO_KERNEL=numpy``."""
    wanted = os.environ.get("MCLLO_KERNEL", "").lower()
    if wanted not in ("", "c", "numpy"):
        raise InputError(f"MCLLO_KERNEL must be 'c' or 'numpy'; got {wanted!r}.")
    found = None if wanted == "numpy" else _load_matching_library(LIBRARY)
    if found is None and wanted == "c":
        raise InputError(
            f"MCLLO_KERNEL=c needs {LIBRARY.name}, made of this kernel.c. "
            "Install again where there is a C compiler."
        )
    return found


def _load_matching_library(path: Path) -> ctypes.CDLL | None:
    """Return the library at `path` if it can be loaded and was made of the source beside us."""
    try:
        found = ctypes.CDLL(str(path))
        made_of = ctypes.c_uint32.in_dll(found, "mcllo_source").value
    except (OSError, ValueError):
        return None
    if SOURCE.exists() and made_of != zlib.crc32(SOURCE.read_bytes()):
        return None
    level = ctypes.c_int
    array = ctypes.c_void_p
    size = ctypes.c_ssize_t
    parameters = {
        "mcllo_minimize": [level, ctypes.POINTER(_ProblemsStructure)],
        "mcllo_pass": [level, array, array, size, size, size, ctypes.c_int, array],
        "mcllo_moments": [level, array, array, size, size, size, array, array, array],
        "mcllo_product": [
            level,
            array,
            array,
            size,
            size,
            size,
            array,
            array,
            array,
            array,
        ],
        "mcllo_direction": [level, size, array, array, array],
        "mcllo_softmax": [level, array, size, size, size, array],
        "mcllo_log": [level, array, size],
        "mcllo_log_odds": [level, array, size, size, size, size, array, size],
        "mcllo_labels": [level, array, array, size, size, size, array],
        "mcllo_label_sums": [array, array, size, size, size, array, array],
    }
    for name, types in parameters.items():
        getattr(found, name).argtypes = types
    return found


@cache
def _widest_vector_level(library: ctypes.CDLL) -> int:
    """Return the widest vectors of this processor; asking a virtual machine's takes a while."""
    return library.mcllo_level()


def kernel_name() -> str:
    """Return which kernel runs: 'C', with the vectors it uses, or 'NumPy'."""
    found = kernel_library()
    if found is None:
        return "NumPy"
    kinds = {"arm64": "NEON", "aarch64": "NEON", "amd64": "SSE2", "x86_64": "SSE2"}
    baseline = kinds.get(platform.machine().lower(), "no vectors")
    vectors = [baseline, "AVX2", "AVX-512"][_widest_vector_level(found)]
    return f"C ({vectors})"


def accepts_log_odds(log_odds: NDArray[Any]) -> bool:
    """Whether C takes such log odds: float64, rows side by side, not too many classes."""
    return len(log_odds) <= MAX_COMPARED_CLASSES and accepts_log_odds_of_many_classes(
        log_odds
    )


def accepts_log_odds_of_many_classes(log_odds: NDArray[Any]) -> bool:
    """Whether C takes such log odds where no Hessian is asked for: of any number of classes."""
    if kernel_library() is None or log_odds.dtype != np.float64:
        return False
    return log_odds.strides[-1] == 8 or log_odds.shape[-1] == 1


def log_partition_derivatives(
    theta: Floats, log_odds: Floats, root_weight: Floats | None, diagonal_only: bool
) -> tuple[float, Floats, Floats]:
    """Return A(theta), its gradient and its Hessian, or its diagonal where `diagonal_only`."""
    found = _loaded_library()
    k, n = log_odds.shape
    size = 2 * k
    # in one array: theta, which is given, then value, gradient and Hessian, which are made
    made = np.empty(2 * size + 1 + (size if diagonal_only else size * size))
    made[:size] = theta
    rows = (
        data_address(log_odds),
        data_address(root_weight),
        k,
        n,
        log_odds.strides[0] // 8,
    )
    if found.mcllo_pass(
        _widest_vector_level(found), *rows, diagonal_only, data_address(made)
    ):
        raise MemoryError
    gradient = made[size + 1 : 2 * size + 1]
    hessian = made[2 * size + 1 :]
    if not diagonal_only:
        hessian = hessian.reshape(size, size)
    return float(made[size]), gradient, hessian


def probability_moment_sums(
    theta: Floats, log_odds: Floats, root_weight: Floats | None, log_sums: Floats
) -> Floats:
    """Return the sums of `_model/many_classes`, (1 + 6 K,); fill `log_sums` with A of each row."""
    found = _loaded_library()
    k, n = log_odds.shape
    made = np.empty(1 + 6 * k)
    rows = (
        data_address(log_odds),
        data_address(root_weight),
        k,
        n,
        log_odds.strides[0] // 8,
    )
    if found.mcllo_moments(
        _widest_vector_level(found),
        *rows,
        data_address(theta),
        data_address(log_sums),
        data_address(made),
    ):
        raise MemoryError
    return made


def outer_product_times(
    theta: Floats,
    log_odds: Floats,
    root_weight: Floats | None,
    log_sums: Floats,
    vector: Floats,
) -> Floats:
    """Return ``sum_i w_i a_i (a_i . v)``, (2 K,), given A of each row at `theta`."""
    found = _loaded_library()
    k, n = log_odds.shape
    made = np.empty(2 * k)
    rows = (
        data_address(log_odds),
        data_address(root_weight),
        k,
        n,
        log_odds.strides[0] // 8,
    )
    others = (
        data_address(theta),
        data_address(log_sums),
        data_address(vector),
        data_address(made),
    )
    if found.mcllo_product(_widest_vector_level(found), *rows, *others):
        raise MemoryError
    return made


@dataclass(eq=False)
class KernelMinima:
    """What `minimize_batch` fills, of B problems: see ``Problems`` of kernel.c."""

    theta: Floats
    start: Floats
    value: Floats
    gradient: Floats
    hessian: Floats
    steps: NDArray[np.int64]
    """Steps taken, negative where no minimum was found."""


def minimize_batch(
    log_odds: Floats,
    root_weight: Floats | None,
    statistics: Floats,
    origin: Floats,
    *,
    basis: Floats | None,
    centre: Floats | None,
    f_target: Floats | None,
    origin_derivatives: Floats | None,
    penalty: float,
    tol: float,
    max_iter: int,
) -> KernelMinima:
    """Return the minima of `_model/batched`.

    Log odds (K, n) or (K, B, n), roots of weights (n,) or (B, n), statistics (B, 2K) and origins
    (2K,) or (B, 2K). `origin_derivatives` are value, gradient and Hessian of A at the origin, in a
    row.
    """
    found = _loaded_library()
    k = len(log_odds)
    n = log_odds.shape[-1]
    count, size = statistics.shape
    n_free = size if basis is None else basis.shape[1]
    made = KernelMinima(
        theta=np.empty((count, size)),
        start=np.empty(count),
        value=np.empty(count),
        gradient=np.empty((count, size)),
        hessian=np.empty((count, n_free, n_free)),
        steps=np.empty(count, dtype=np.int64),
    )
    # the arrays live until the call is over: C knows their addresses only
    root_weight = _as_contiguous_floats(root_weight)
    statistics = np.ascontiguousarray(statistics, np.float64)
    origin = np.ascontiguousarray(origin, np.float64)
    basis = _as_contiguous_floats(basis)
    centre = _as_contiguous_floats(centre)
    f_target = _as_contiguous_floats(f_target)
    own_odds = log_odds.ndim == 3
    own_weights = root_weight is not None and root_weight.ndim == 2
    own_origins = origin.ndim == 2
    problems = _ProblemsStructure(
        odds=data_address(log_odds),
        root=data_address(root_weight),
        statistic=data_address(statistics),
        origin=data_address(origin),
        basis=data_address(basis),
        centre=data_address(centre),
        reach=data_address(f_target),
        first=data_address(origin_derivatives),
        theta=data_address(made.theta),
        start=data_address(made.start),
        value=data_address(made.value),
        gradient=data_address(made.gradient),
        hessian=data_address(made.hessian),
        steps=data_address(made.steps),
        ridge=penalty,
        tol=tol,
        k=k,
        n=n,
        stride=log_odds.strides[0] // 8,
        count=count,
        free=n_free,
        most=max_iter,
        odds_apart=log_odds.strides[1] // 8 if own_odds else 0,
        root_apart=n if own_weights else 0,
        origin_apart=size if own_origins else 0,
    )
    if found.mcllo_minimize(_widest_vector_level(found), problems):
        raise MemoryError
    return made


def newton_direction(hessian: Floats, gradient: Floats) -> Floats | None:
    """Return ``-H^-1 g`` as `_model/newton` wants it; None without C, or of many numbers."""
    found = kernel_library()
    size = len(gradient)
    if found is None or size > MAX_SOLVED_PARAMETERS:
        return None
    hessian = np.ascontiguousarray(hessian, np.float64)
    gradient = np.ascontiguousarray(gradient, np.float64)
    made = np.empty(size)
    arrays = (data_address(hessian), data_address(gradient), data_address(made))
    if found.mcllo_direction(_widest_vector_level(found), size, *arrays):
        raise MemoryError
    return made


def softmax_in_place(eta: Floats) -> Floats | None:
    """Replace `eta` (k, n) by its softmax over k, return log sum exp; None where C does not."""
    found = kernel_library()
    if found is None or eta.ndim != 2 or eta.dtype != np.float64:
        return None
    if eta.strides[1] != 8 or eta.strides[0] < 0:
        return None
    k, n = eta.shape
    logs = np.empty(n)
    stride = eta.strides[0] // 8
    if found.mcllo_softmax(
        _widest_vector_level(found), data_address(eta), k, n, stride, data_address(logs)
    ):
        raise MemoryError
    return logs


def log_in_place(values: Floats) -> bool:
    """Replace `values` by its logarithms; False where C does not."""
    found = kernel_library()
    if found is None or values.dtype != np.float64 or not values.flags.c_contiguous:
        return False
    return not found.mcllo_log(
        _widest_vector_level(found), data_address(values), values.size
    )


def fill_log_odds(probs: NDArray[Any], baseline: int, out: Floats) -> bool:
    """Fill `out` (K, n) with those of probabilities (n, c); False where C does not."""
    found = kernel_library()
    n, c = probs.shape
    if found is None or probs.dtype != np.float64:
        return False
    if probs.strides[1] != 8 or probs.strides[0] < 8 * c:
        return False
    row_stride = probs.strides[0] // 8
    class_stride = out.strides[0] // 8
    given = (
        data_address(probs),
        n,
        c,
        row_stride,
        baseline,
        data_address(out),
        class_stride,
    )
    return not found.mcllo_log_odds(_widest_vector_level(found), *given)


def labels_from_uniforms(probs: Floats, uniforms: Floats) -> NDArray[np.intp] | None:
    """Return the labels (B, n) that `uniforms` stand for by `probs` (c, n); None without C."""
    found = kernel_library()
    if found is None:
        return None
    probs = np.ascontiguousarray(probs)
    uniforms = np.ascontiguousarray(uniforms)
    labels = np.empty(uniforms.shape, dtype=np.intp)
    c, n = probs.shape
    given = (
        data_address(probs),
        data_address(uniforms),
        c,
        n,
        len(uniforms),
        data_address(labels),
    )
    if found.mcllo_labels(_widest_vector_level(found), *given):
        raise MemoryError
    return labels


def count_and_sum_by_label(
    labels: NDArray[np.intp], values: Floats
) -> tuple[Floats, Floats] | None:
    """Return counts of labels (B, n) and sums of `values` (c, n) there, (B, c); None without C."""
    found = kernel_library()
    if found is None:
        return None
    labels = np.ascontiguousarray(labels, np.intp)
    values = np.ascontiguousarray(values)
    c, n = values.shape
    counts = np.zeros((len(labels), c))
    sums = np.zeros((len(labels), c))
    given = (data_address(labels), data_address(values), c, n, len(labels))
    found.mcllo_label_sums(*given, data_address(counts), data_address(sums))
    return counts, sums


def data_address(array: Any) -> Any:
    """Return where an array's numbers begin; None of None."""
    if array is None:
        return None
    try:
        return ctypes.addressof(
            ctypes.c_char.from_buffer(array)
        )  # a third of the other's time
    except (TypeError, ValueError, BufferError):  # read-only, in pieces or empty
        return array.__array_interface__["data"][0]


def _as_contiguous_floats(array: Floats | None) -> Floats | None:
    return None if array is None else np.ascontiguousarray(array, np.float64)


def _loaded_library() -> ctypes.CDLL:
    """Return the library, which callers have seen to be there (`accepts_log_odds`)."""
    found = kernel_library()
    assert found is not None
    return found
