"""Recalibration methods, one file each, one contract; `CALIBRATORS` is the registry."""

from __future__ import annotations

from typing import Any

from ._contract import load_calibrator
from ._mcllo import MCLLOCalibrator

CALIBRATORS: dict[str, Any] = {cls.method: cls for cls in (MCLLOCalibrator,)}

__all__ = ["CALIBRATORS", "MCLLOCalibrator", "load_calibrator"]
