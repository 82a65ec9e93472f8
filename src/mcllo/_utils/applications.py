"""Where an object of the library is asked for something that an application does.

The library computes with arrays and imports no application. Four methods of its objects are
answered by one all the same; the application's module is then imported by name, when it is asked:

- `assess` and `MCLLOCalibrator` of Dask collections: ``streaming.dask_rows``
- `Monitor.add_file`: ``io.read``
- what a notebook shows of a result: ``report.cards``
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def load_application(name: str) -> Any:
    """Return a module of ``mcllo._apps``, such as ``"report.cards"``."""
    return import_module(f"mcllo._apps.{name}")
