"""Recalibration methods, one file each, one contract; `CALIBRATORS` is the registry.

The room imports scikit-learn and the rooms above it; its base class is in `calibrators/_base`.
"""

from __future__ import annotations

import os

from ._auto.calibrator import AutoCalibrator
from ._base import Calibrator, Identity
from ._beta import BetaCalibration
from ._file import restored
from ._histogram import HistogramBinning
from ._isotonic import IsotonicCalibration
from ._linear import DirichletCalibration, MatrixScaling, VectorScaling
from ._mcllo import MCLLOCalibrator
from ._temperature import TemperatureScaling
from ._xu_davoine import XuDavoine

CALIBRATORS: dict[str, type[Calibrator]] = {
    cls.method: cls
    for cls in (
        MCLLOCalibrator,
        AutoCalibrator,
        TemperatureScaling,
        VectorScaling,
        MatrixScaling,
        DirichletCalibration,
        HistogramBinning,
        XuDavoine,
        IsotonicCalibration,
        BetaCalibration,
        Identity,
    )
}


def load_calibrator(path: str | os.PathLike[str]) -> Calibrator:
    """Return the calibrator that ``save`` wrote to `path`; ``-`` is standard input.

    Raises
    ------
    FileFormatError
        When the file is not a calibrator of a format this version reads.
    """
    return restored(path, CALIBRATORS)


__all__ = [
    "CALIBRATORS",
    "AutoCalibrator",
    "BetaCalibration",
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
