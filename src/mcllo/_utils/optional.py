"""Packages that only some uses need: loaded when used, or one sentence says what to install.

The bare package fits, assesses, compares, predicts, saves, loads and exports with NumPy, SciPy,
scikit-learn and narwhals alone; an extra of ``pyproject.toml`` brings what the other uses need.

The library imports no application (`_apps`). A few of its methods are answered by one all the same:
`assess` and `MCLLOCalibrator` of Dask collections, `Monitor.add_file`, and what a notebook shows of
a result. `load_application` imports it by name when it is asked.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ..exceptions import InputError

PLOT_EXTRA = "'mcllo[plot]'"
CLI_EXTRA = "'mcllo[cli]'"
SERVE_EXTRA = "'mcllo[serve,excel]'"
ONNX_EXTRA = "'mcllo[onnx]'"
SQL_EXTRA = "'mcllo[sql]'"


class MissingPackageError(InputError, ImportError):
    """A package that this use needs is not installed; ``except ImportError`` catches it too."""


def import_optional(name: str, install: str) -> Any:
    """Return an optional package or module, or say what to install."""
    try:
        return import_module(name)
    except ImportError:
        raise _missing_package_error(name, install) from None


def check_installed(names: tuple[str, ...], install: str, use: str = "this") -> None:
    """Say what to install when one of these packages is missing; none is loaded."""
    for name in names:
        if not is_installed(name):
            raise _missing_package_error(name, install, use)


def is_installed(name: str) -> bool:
    """Whether a package can be imported."""
    return find_spec(name) is not None


def _missing_package_error(
    name: str, install: str, use: str = "this"
) -> MissingPackageError:
    package = name.split(".")[0]
    return MissingPackageError(
        f"{use} needs the package {package}, which is not installed. "
        f"Install it with: pip install {install}."
    )


def load_application(name: str) -> Any:
    """Return a module of ``mcllo._apps``, such as ``"report.cards"``."""
    return import_module(f"mcllo._apps.{name}")
