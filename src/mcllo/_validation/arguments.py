"""Arguments that are no data: shares, such as levels of tests and intervals, and priors."""

from __future__ import annotations

from ..exceptions import InputError


def check_share(name: str, value: float) -> None:
    """Refuse what does not lie between 0 and 1."""
    if not 0.0 < value < 1.0:
        raise InputError(f"{name} must lie in (0, 1); got {name}={value}.")
