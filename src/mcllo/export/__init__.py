"""Calibrators outside of this package: ONNX, SQL, JavaScript, PyTorch, and plain Python.

`export` writes a fitted calibrator, `check` compares what was written with ``predict_proba``. What
a calibrator does is one `Program` (`export/_programs`), which each target writes by its own rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._programs import ExportError
from ._targets import TARGETS, Check, append_to_onnx, check, export, torch_module

if TYPE_CHECKING:
    from ._skl2onnx import register_skl2onnx as register_skl2onnx

__all__ = [
    "TARGETS",
    "Check",
    "ExportError",
    "append_to_onnx",
    "check",
    "export",
    "register_skl2onnx",
    "torch_module",
]


def __getattr__(name: str) -> Any:
    if name == "register_skl2onnx":  # it needs model_selection, the others do not
        from ._skl2onnx import register_skl2onnx

        return register_skl2onnx
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
