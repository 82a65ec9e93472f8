"""Recalibration methods, one file each, one contract; `CALIBRATORS` is the registry.

The room imports scikit-learn and the rooms above it; its base class is in `calibrators/_base`.
"""

from __future__ import annotations

import os

from ._auto import AutoCalibrator
from ._base import Calibrator, Identity
from ._beta import BetaCalibration
from ._file import restore_calibrator
from ._histogram import HistogramBinning
from ._isotonic_calibrator import IsotonicCalibration
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
    return restore_calibrator(path, CALIBRATORS)


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
