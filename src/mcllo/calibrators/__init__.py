"""Recalibration methods, one file each, one contract; `CALIBRATORS` is the registry."""

from __future__ import annotations

from typing import Any

from ._auto import AutoCalibrator
from ._beta import BetaCalibration
from ._contract import load_calibrator
from ._dirichlet import DirichletCalibration
from ._histogram import HistogramBinning
from ._identity import Identity
from ._isotonic import IsotonicCalibration
from ._matrix import MatrixScaling
from ._mcllo import MCLLOCalibrator
from ._temperature import TemperatureScaling
from ._vector import VectorScaling
from ._xu_davoine import XuDavoine

CALIBRATORS: dict[str, Any] = {
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
