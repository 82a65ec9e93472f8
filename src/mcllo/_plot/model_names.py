"""The models of the ladder in words, for figures and tables."""

from __future__ import annotations

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
