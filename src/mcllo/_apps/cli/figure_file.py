"""What `mcllo plot` does: one figure of one file: predictions, assessment, figure, file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ..._assessment.assessment import assess_predictions
from ..._utils.atomic_files import check_writable
from ..._validation.frames import did_you_mean
from ..._validation.predictions import Predictions
from ...exceptions import InputError
from .options import DEFAULT_DPI, KINDS


def check_figure_request(kind: str, path: str) -> None:
    """Refuse, before any work, a figure that is not known, or a file that cannot hold it."""
    from ...plot._files import FORMATS

    if kind not in KINDS:
        hint = did_you_mean(kind, KINDS, "known are")
        message = "{found} is not known; {hint}"
        raise InputError(message, argument="kind", value=kind, values={"hint": hint})
    if Path(path).suffix.lower()[1:] not in FORMATS:
        raise InputError(
            "{argument} must end in .svg, .png, .pdf or .tiff; got {value}.",
            argument="path",
            value=Path(path).name,
            remedy="Choose one of these.",
        )
    check_writable(path)


def draw_figure_file(
    predictions: Predictions,
    kind: str,
    path: str,
    *,
    seed: int | None = None,
    dpi: float = DEFAULT_DPI,
) -> None:
    """Assess the predictions and write the figure `kind`; its format follows the ending."""
    from ... import plot

    kinds: dict[str, Callable[[Any], Any]] = {
        "reliability": plot.reliability,
        "by_class": plot.reliability_by_class,
        "bins": partial(plot.reliability, curve="bins"),
        "bins_by_class": partial(plot.reliability_by_class, curve="bins"),
        "smooth": partial(plot.reliability, curve="smooth"),
        "smooth_by_class": partial(plot.reliability_by_class, curve="smooth"),
        "isotonic": partial(plot.reliability, curve="isotonic"),
        "isotonic_by_class": partial(plot.reliability_by_class, curve="isotonic"),
        "parameters": lambda a: plot.parameters(a.fit),
        "map": lambda a: plot.calibration_map(a.fit),
        "nested_models": plot.nested_models,
        "baselines": plot.baselines,
    }
    check_figure_request(kind, path)
    assessment = assess_predictions(predictions, seed=seed)
    figure = kinds[kind](assessment)
    plot.save(figure, path, dpi=dpi)
