"""The models of the ladder and changes of probabilities in words, for figures and tables."""

from __future__ import annotations

from .._text import format_number

SMALLEST_CHANGE = 1e-4
"""Smaller changes of a probability are of no interest to anybody."""

MODEL_NAMES = {
    "identity": "as predicted",
    "temperature": "one slope (temperature)",
    "shift": "shifts",
    "scale": "slopes",
    "common_slope": "shifts and one slope",
    "mcllo": "shifts and slopes (MCLLO)",
    "full": "full matrix",
}


def model_name(model: str) -> str:
    """Return a model's name as words.

    Examples
    --------
    >>> model_name("common_slope"), model_name("new_model")
    ('shifts and one slope', 'new model')
    """
    return MODEL_NAMES.get(model, model.replace("_", " "))


def format_change(change: float) -> str:
    """Return a change of a probability; tiny ones only say so.

    Examples
    --------
    >>> format_change(0.0123), format_change(3e-15)
    ('0.012', '< 0.0001')
    """
    return format_number(change) if change >= SMALLEST_CHANGE else f"< {SMALLEST_CHANGE:g}"
