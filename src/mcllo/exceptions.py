"""Errors and warnings of mcllo: each says what must hold, what was found, and the remedy."""

from __future__ import annotations

__all__ = [
    "AbsentClassWarning",
    "ConvergenceWarning",
    "FileFormatError",
    "InputError",
    "MclloError",
    "MclloWarning",
    "SeparationWarning",
    "ZeroProbabilityWarning",
]


class MclloError(Exception):
    """Base of every error this package raises on purpose."""


class InputError(MclloError, ValueError):
    """The data or an argument breaks a rule; the message is one sentence with the remedy.

    Parameters
    ----------
    message : str
        What must hold; what was found; what to do.
    row : int, optional
        Zero-based row of the offending value, for callers that can point at a line of a file.
    """

    def __init__(self, message: str, *, row: int | None = None) -> None:
        super().__init__(message)
        self.row = row


class FileFormatError(MclloError, ValueError):
    """A file cannot be read, or is not what its use needs."""


class MclloWarning(UserWarning):
    """Base of every warning of this package."""


class ZeroProbabilityWarning(MclloWarning):
    """Probabilities of 0 were raised to a floor; statistics that use log odds depend on it."""


class SeparationWarning(MclloWarning):
    """The maximum likelihood estimate does not exist: no finite parameters are best."""


class ConvergenceWarning(MclloWarning):
    """The solver stopped before it reached its tolerance; the numbers are approximate."""


class AbsentClassWarning(MclloWarning):
    """A class has no row in the labels, so nothing can be learned about it."""
