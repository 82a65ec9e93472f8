"""Recalibration methods, one file each, one contract; `CALIBRATORS` is the registry.

Each method loads its module when first used; the base class is in `calibrators/_base`.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._auto.calibrator import AutoCalibrator as AutoCalibrator
    from ._base import Calibrator as Calibrator
    from ._base import Identity as Identity
    from ._beta import BetaCalibration as BetaCalibration
    from ._choice_calibrator import ChoiceCalibrator as ChoiceCalibrator
    from ._histogram import HistogramBinning as HistogramBinning
    from ._isotonic_calibrator import IsotonicCalibration as IsotonicCalibration
    from ._linear import DirichletCalibration as DirichletCalibration
    from ._linear import MatrixScaling as MatrixScaling
    from ._linear import VectorScaling as VectorScaling
    from ._mcllo import MCLLOCalibrator as MCLLOCalibrator
    from ._temperature import TemperatureScaling as TemperatureScaling
    from ._xu_davoine import XuDavoine as XuDavoine

    CALIBRATORS: dict[str, type[Calibrator]]

_HOME = {
    "MCLLOCalibrator": "_mcllo",
    "AutoCalibrator": "_auto.calibrator",
    "TemperatureScaling": "_temperature",
    "VectorScaling": "_linear",
    "MatrixScaling": "_linear",
    "DirichletCalibration": "_linear",
    "HistogramBinning": "_histogram",
    "XuDavoine": "_xu_davoine",
    "IsotonicCalibration": "_isotonic_calibrator",
    "BetaCalibration": "_beta",
    "Identity": "_base",
}
"""The module of each method, in the order of `CALIBRATORS`."""


@cache
def _registry() -> dict[str, type[Calibrator]]:
    """Return the methods by the name that `compare` and the command line know them by."""
    methods = (__getattr__(name) for name in _HOME)
    return {method.method: method for method in methods}


def __getattr__(name: str) -> Any:
    if name == "CALIBRATORS":
        return _registry()
    if name == "ChoiceCalibrator":  # not in the registry: its columns are no classes
        return import_module("._choice_calibrator", __name__).ChoiceCalibrator
    if name == "Calibrator" or name in _HOME:
        return getattr(import_module(f".{_HOME.get(name, '_base')}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)


def load_calibrator(path: str | os.PathLike[str]) -> Calibrator:
    """Return the calibrator that ``save`` wrote to a file.

    Parameters
    ----------
    path : path-like
        The file; ``-`` is standard input.

    Returns
    -------
    Calibrator
        A fitted one, which predicts what the saved one predicted.

    Raises
    ------
    FileFormatError
        When the file is not a calibrator of a format this version reads.

    See Also
    --------
    MCLLOCalibrator : One of the calibrators that have ``save``.
    CALIBRATORS : All methods by name.
    mcllo.export.export : Other forms, for programs without this package.

    Notes
    -----
    Model files are JSON and nothing in them is run. Their fields are described in
    ``docs/reference/model-file.md``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from mcllo.calibrators import TemperatureScaling
    >>> X = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]
    >>> temperature = TemperatureScaling().fit(X, ["cat", "cat", "dog", "dog"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "pets.json"
    ...     temperature.save(path)
    ...     loaded = load_calibrator(path)
    >>> loaded.temperature_ == temperature.temperature_
    True
    """
    from ._model_file import restore_calibrator

    choice_sets = __getattr__("ChoiceCalibrator")
    known = _registry() | {choice_sets.method: choice_sets}
    return restore_calibrator(path, known)


__all__ = [
    "CALIBRATORS",
    "AutoCalibrator",
    "BetaCalibration",
    "ChoiceCalibrator",
    "DirichletCalibration",
    "HistogramBinning",
    "Identity",
    "IsotonicCalibration",
    "MCLLOCalibrator",
    "MatrixScaling",
    "TemperatureScaling",
    "VectorScaling",
    "XuDavoine",
    "load_calibrator",
]
