"""Packages that only some forms need, loaded when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..exceptions import InputError

ONNX, SQL = "'mcllo[onnx]'", "'mcllo[sql]'"


def needed(name: str, install: str) -> Any:
    """Return an optional package or module, or say what to install."""
    try:
        return import_module(name)
    except ImportError:
        package = name.split(".")[0]
        raise InputError(
            f"this needs the package {package}, which is not installed. "
            f"Install it with: pip install {install}."
        ) from None
