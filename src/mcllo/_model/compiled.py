"""The pass of `_model/kernel` in C, where it was compiled: finding the library and calling it.

====================  ==================================================================
`library`             the library beside this file (``libkernel``), or None
`kernel_name`         'C (AVX-512)', with other vectors, or 'NumPy': which of them runs
`is_for`              whether C takes such rows
`address`             where an array's numbers begin
`terms`               those of A(theta), for `_model/kernel`
`moments`, `product`  of many classes, for `_model/many_classes`
`fill`                the minima of `_model/batched`
`direction`           a step of `_model/newton`
`softmax`, `log`      down the columns of a table, of every number
`fill_log_odds`       of rows of probabilities
`labels_at`           the classes that numbers stand for
`label_sums`          counts of labels, and sums of what their rows hold for them
``MCLLO_KERNEL``      in the environment: ``numpy`` turns C off, ``c`` insists on it
====================  ==================================================================

Installation compiles ``kernel.c`` where there is a compiler (``hatch_build.py``). The library knows
the checksum of its source and is not used beside another. ctypes lets go of the interpreter, so
threads share the rows.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import zlib
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
"""Classes beside the baseline up to which C is used; from about 250 BLAS is faster."""

MAX_SOLVED_PARAMETERS = 60
"""Parameters up to which a step is solved for in C; fits of more take one such step or two."""


class _Problems(ctypes.Structure):
    """``Problems`` of kernel.c: addresses of arrays, numbers, sizes."""

    _fields_ = [
        (name, kind)
        for kind, names in (
            (ctypes.c_void_p, "odds root statistic origin basis centre reach first"),
            (ctypes.c_void_p, "theta start value gradient hessian steps"),
            (ctypes.c_double, "ridge tol"),
            (ctypes.c_ssize_t, "k n stride count free most"),
            (ctypes.c_ssize_t, "odds_apart root_apart origin_apart light"),
        )
        for name in names.split()
    ]


@cache
def library() -> ctypes.CDLL | None:
    """Return the library, or None where there is none or ``MCLLO_KERNEL=numpy``."""
    wanted = os.environ.get("MCLLO_KERNEL", "").lower()
    if wanted not in ("", "c", "numpy"):
        raise InputError(f"MCLLO_KERNEL must be 'c' or 'numpy'; got {wanted!r}.")
    found = None if wanted == "numpy" else _load(LIBRARY)
    if found is None and wanted == "c":
        raise InputError(
            f"MCLLO_KERNEL=c needs {LIBRARY.name}, made of this kernel.c. "
            "Install again where there is a C compiler."
        )
    return found


def _load(path: Path) -> ctypes.CDLL | None:
    """Return the library at `path` if it can be loaded and was made of the source beside us."""
    try:
        found = ctypes.CDLL(str(path))
        made_of = ctypes.c_uint32.in_dll(found, "mcllo_source").value
    except (OSError, ValueError):
        return None
    if SOURCE.exists() and made_of != zlib.crc32(SOURCE.read_bytes()):
        return None
    pointer, size = ctypes.c_void_p, ctypes.c_ssize_t
    found.mcllo_minimize.argtypes = [ctypes.c_int, ctypes.POINTER(_Problems)]
    found.mcllo_pass.argtypes = [ctypes.c_int, pointer, pointer, *[size] * 3, ctypes.c_int, pointer]
    found.mcllo_moments.argtypes = [ctypes.c_int, pointer, pointer, *[size] * 3, *[pointer] * 3]
    found.mcllo_product.argtypes = [ctypes.c_int, pointer, pointer, *[size] * 3, *[pointer] * 4]
    found.mcllo_direction.argtypes = [ctypes.c_int, size, *[pointer] * 3]
    found.mcllo_softmax.argtypes = [ctypes.c_int, pointer, size, size, size, pointer]
    found.mcllo_log.argtypes = [ctypes.c_int, pointer, size]
    found.mcllo_log_odds.argtypes = [ctypes.c_int, pointer, *[size] * 4, pointer, size]
    found.mcllo_labels.argtypes = [ctypes.c_int, pointer, pointer, *[size] * 3, pointer]
    found.mcllo_label_sums.argtypes = [pointer, pointer, *[size] * 3, pointer, pointer]
    return found


@cache
def _level(found: ctypes.CDLL) -> int:
    """Return the widest vectors of this processor; asking a virtual machine's takes a while."""
    return found.mcllo_level()


def kernel_name() -> str:
    """Return which kernel runs: 'C', with the vectors it uses, or 'NumPy'."""
    found = library()
    if found is None:
        return "NumPy"
    kinds = {"arm64": "NEON", "aarch64": "NEON", "amd64": "SSE2", "x86_64": "SSE2"}
    plain = kinds.get(platform.machine().lower(), "no vectors")
    return f"C ({[plain, 'AVX2', 'AVX-512'][_level(found)]})"


def is_for(log_odds: NDArray[Any]) -> bool:
    """Whether C takes such log odds: float64, rows side by side, not too many classes."""
    return len(log_odds) <= MAX_COMPARED_CLASSES and is_for_many(log_odds)


def is_for_many(log_odds: NDArray[Any]) -> bool:
    """Whether C takes such log odds where no Hessian is asked for: of any number of classes."""
    if library() is None or log_odds.dtype != np.float64:
        return False
    return log_odds.strides[-1] == 8 or log_odds.shape[-1] == 1


def terms(
    odds: int, root: int | None, theta: Floats, n: int, stride: int, diagonal_only: bool
) -> tuple[float, Floats, Floats]:
    """Return A(theta), its gradient and its Hessian, or its diagonal where `diagonal_only`.

    `odds` and `root` are addresses of the first row's; log odds are `stride` numbers apart.
    """
    found, size = library(), len(theta)
    made = np.empty(2 * size + 1 + (size if diagonal_only else size * size))
    made[:size] = theta
    assert found is not None
    given = (odds, root, size // 2, n, stride, diagonal_only, address(made))
    if found.mcllo_pass(_level(found), *given):
        raise MemoryError
    gradient, hessian = made[size + 1 : 2 * size + 1], made[2 * size + 1 :]
    return float(made[size]), gradient, hessian if diagonal_only else hessian.reshape(size, size)


def moments(
    odds: int, root: int | None, theta: Floats, n: int, stride: int, logs: Floats
) -> Floats:
    """Return the sums of `mcllo_moments`, (1 + 6 K,), and fill `logs` with A of each row."""
    found, k = library(), len(theta) // 2
    made = np.empty(1 + 6 * k)
    assert found is not None
    given = (odds, root, k, n, stride, address(theta), address(logs), address(made))
    if found.mcllo_moments(_level(found), *given):
        raise MemoryError
    return made


def product(
    odds: int, root: int | None, theta: Floats, n: int, stride: int, logs: Floats, v: Floats
) -> Floats:
    """Return ``sum_i a_i (a_i . v)``, (2 K,), given A of each row at `theta`."""
    found, made = library(), np.empty(len(theta))
    assert found is not None
    given = (odds, root, len(theta) // 2, n, stride, *map(address, (theta, logs, v, made)))
    if found.mcllo_product(_level(found), *given):
        raise MemoryError
    return made


def fill(
    log_odds: Floats,
    root: Floats | None,
    statistic: Floats,
    origin: Floats,
    others: tuple[Floats | None, ...],
    made: tuple[NDArray[Any], ...],
    *numbers: float,
) -> None:
    """Fill the arrays `made` with minima of ``Problems`` in kernel.c.

    Log odds (K, n) or (K, B, n), roots of weights (n,) or (B, n), statistics (B, 2K) and origins
    (2K,) or (B, 2K). `others` are basis, centre, reach and first; `numbers` ridge, tol, free, most.
    """
    k, n, (ridge, tol, n_free, most) = len(log_odds), log_odds.shape[-1], numbers
    arrays = (root, statistic, origin, *others)
    given = [None if array is None else np.ascontiguousarray(array, float) for array in arrays]
    problems = _Problems(
        *(address(array) for array in (log_odds, *given, *made)),
        *(ridge, tol, k, n, log_odds.strides[0] // 8, len(statistic), n_free, most),
        log_odds.strides[1] // 8 if log_odds.ndim == 3 else 0,
        n if root is not None and root.ndim == 2 else 0,
        2 * k if origin.ndim == 2 else 0,
    )
    found = library()
    assert found is not None
    if found.mcllo_minimize(_level(found), problems):
        raise MemoryError


def direction(hessian: Floats, gradient: Floats) -> Floats | None:
    """Return ``-H^-1 g`` as `_model/newton` wants it; None without C, or of many numbers."""
    found, size = library(), len(gradient)
    if found is None or size > MAX_SOLVED_PARAMETERS:
        return None
    arrays = [np.ascontiguousarray(each, np.float64) for each in (hessian, gradient)]
    arrays.append(made := np.empty(size))
    if found.mcllo_direction(_level(found), size, *map(address, arrays)):
        raise MemoryError
    return made


def softmax(eta: Floats) -> Floats | None:
    """Replace `eta` (k, n) by its softmax over k, return log sum exp; None where C does not."""
    found, plain = library(), eta.ndim == 2 and eta.strides[1] == 8 and eta.strides[0] >= 0
    if found is None or not plain or eta.dtype != np.float64:
        return None
    logs, stride = np.empty(eta.shape[1]), eta.strides[0] // 8
    if found.mcllo_softmax(_level(found), address(eta), *eta.shape, stride, address(logs)):
        raise MemoryError
    return logs


def log(x: Floats) -> bool:
    """Replace `x` by its logarithms; False where C does not."""
    found, plain = library(), x.dtype == np.float64 and x.flags.c_contiguous
    return found is not None and plain and not found.mcllo_log(_level(found), address(x), x.size)


def fill_log_odds(rows: NDArray[Any], baseline: int, odds: Floats) -> bool:
    """Fill `odds` (K, n) with those of probabilities (n, c); False where C does not."""
    found, (n, c) = library(), rows.shape
    own = rows.strides[1] == 8 and rows.strides[0] >= 8 * c
    if found is None or rows.dtype != np.float64 or not own:
        return False
    apart, stride = rows.strides[0] // 8, odds.strides[0] // 8
    given = (address(rows), n, c, apart, baseline, address(odds), stride)
    return not found.mcllo_log_odds(_level(found), *given)


def labels_at(probs: Floats, u: Floats) -> NDArray[np.intp] | None:
    """Return the class that each of `u` (B, n) stands for by `probs` (c, n); None without C."""
    found, labels = library(), np.empty(u.shape, dtype=np.intp)
    if found is None:
        return None
    probs, u = np.ascontiguousarray(probs), np.ascontiguousarray(u)
    given = (address(probs), address(u), *probs.shape, len(u), address(labels))
    if found.mcllo_labels(_level(found), *given):
        raise MemoryError
    return labels


def label_sums(labels: NDArray[np.intp], values: Floats) -> tuple[Floats, Floats] | None:
    """Return counts of labels (B, n) and sums of `values` (c, n) there, (B, c); None without C."""
    found, made = library(), np.zeros((2, len(labels), len(values)))
    if found is None:
        return None
    labels, values = np.ascontiguousarray(labels, np.intp), np.ascontiguousarray(values)
    given = (address(labels), address(values), *values.shape, len(labels))
    found.mcllo_label_sums(*given, address(made[0]), address(made[1]))
    return made[0], made[1]


def address(array: Any) -> Any:
    """Return where an array's numbers begin; None of None."""
    if array is None:
        return None
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))  # a third of the other's time
    except (TypeError, ValueError, BufferError):  # read-only, in pieces or empty
        return array.__array_interface__["data"][0]
