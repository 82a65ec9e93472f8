"""What a recommendation says: what to do, why, what else would do, what the intervals mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ._text import format_count

if TYPE_CHECKING:
    from ._recommend import LossDifference, Recommendation

NOTHING = "uncalibrated"
"""The name of leaving the predictions as they are."""


def sentences_of(r: Recommendation) -> tuple[str, ...]:
    """Return the recommendation in sentences."""
    if not r.n_methods:
        return ("No method was compared.",)
    if r.improves:
        head = f"Recommended: {r.method}, which has the lowest log loss."
        return tuple(words for words in (head, _lead(r), _others(r), _meaning(r)) if words)
    none = "No method is shown to be better than leaving the predictions as they are."
    return (none, _lead(r), _meaning(r))


def _lead(r: Recommendation) -> str:
    """Say whose log loss is lowest, and by how much."""
    where = f" on {format_count(r.n_samples)} rows that no map was fitted to"
    loss = "cross-validated log loss" if r.cross_validated else "log loss"
    number = f"{r.log_loss:.4f}{'' if r.cross_validated else where}"
    after = r.runner_up
    if r.gain is None:
        next_one = "" if after is None else f"; {after.method} comes next, {_by(after)} above"
        return f"Their {loss}, {number}, is the lowest{next_one}."
    whose = f"Its {loss}" if r.improves else f"The lowest {loss}, that of {r.method}"
    text = f"{whose}, {number}, is {_by(r.gain)} below doing nothing"
    if after is not None:
        text += f" and {_by(after)} below the next of {r.n_methods} methods, {after.method}"
    return text + "."


def _others(r: Recommendation) -> str:
    """Say what cannot be told from the recommended method, and which of these is simplest."""
    if not r.ties:
        return "All others are worse, beyond chance." if r.n_methods > 1 else ""
    if len(r.ties) == 1:
        simpler = "simpler" if r.simplest == r.ties[0] else "less simple"
        return f"{r.ties[0]} cannot be told from it and is {simpler}."
    own = r.simplest == r.method
    simplest = "it is the simplest of these" if own else f"the simplest is {r.simplest}"
    return f"{listed(r.ties)} cannot be told from it; {simplest}."


def _meaning(r: Recommendation) -> str:
    many = f"hold for all {r.n_methods} methods at once (the best was picked after looking), "
    return (
        f"The intervals are paired, {many if r.n_methods > 1 else ''}with "
        f"{100.0 * r.level:.0f} % confidence; how maps vary with the rows they are fitted to is "
        "not in them."
    )


def _by(other: LossDifference) -> str:
    return f"{_four(other.difference)} ({_four(other.low)} to {_four(other.high)})"


def _four(value: float) -> str:
    return f"{value:.4f}".replace("-0.0000", "0.0000")


def listed(names: Sequence[str]) -> str:
    """Return ``a, b and c``.

    Examples
    --------
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
