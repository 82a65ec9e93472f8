"""`choices_from_top_logprobs`: the likeliest first tokens of answers, as interfaces list them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..exceptions import InputError
from .predictions import Predictions

OTHER = "other"
"""The position of all that is no option."""
MAX_EXCESS = 1e-3
"""By how much listed probabilities may exceed 1 together: that of rounded rows of choice sets."""


def choices_from_top_logprobs(
    listed: Sequence[Any], y: Any, *, options: Sequence[str], by: Any = None
) -> Predictions:
    """Return choice sets of answers of which only the likeliest first tokens are known.

    Parameters
    ----------
    listed : sequence of mappings or of sequences
        Of each answer the listed tokens with their log probabilities: ``{"A": -0.3, " B": -1.6}``,
        or entries that have `token` and `logprob`: ``logprobs.content[0].top_logprobs`` of OpenAI.
        Spaces around a token do not count.
    y : array-like of shape (n_samples,)
        The right option of each row: its place, counted from 0, or its name.
    options : sequence of str
        The options, such as A, B, C and D.
    by : array-like of shape (n_samples,), optional
        Subgroup of each row.

    Returns
    -------
    Predictions
        Choice sets with a position for each option, and ``other`` for the rest of the probability.

    Raises
    ------
    InputError
        When a row lists nothing, no log probabilities, or more probability than there is.

    See Also
    --------
    Predictions.from_choices : Reads rows in which every option has a score.
    assess_choices : Judges choice sets.
    ChoiceCalibrator : Takes the probability of ``other`` away as far as rows ask for it.

    Notes
    -----
    An option that is not listed is less likely than the last token that is. It is given half of
    that, and never more than its share of the probability that is left to it, the others like it
    and all other words. That is a convention, and no estimate.

    Examples
    --------
    >>> listed = [{"B": -0.28, "A": -2.47, "The": -3.2}, {"C": -0.5, "D": -1.9, "B": -2.4}]
    >>> p = choices_from_top_logprobs(listed, ["B", "C"], options=["A", "B", "C", "D"])
    >>> p.classes
    ('A', 'B', 'C', 'D', 'other')
    >>> p.probs.round(3)
    array([[0.085, 0.756, 0.02 , 0.02 , 0.119],
           [0.045, 0.091, 0.607, 0.15 , 0.108]])
    """
    names = list(options)
    if OTHER in names:
        raise InputError(
            argument="options",
            rule=f"not hold {OTHER!r}, which is the rest",
            found=OTHER,
        )
    rows = []
    for row, tokens in enumerate(listed):
        rows.append(list(probs_of_options(tokens, names, row).values()))
    positions = [*names, OTHER]
    return Predictions.from_choices(rows, y, kind="probs", positions=positions, by=by)


def probs_of_options(tokens: Any, names: list[str], row: int) -> dict[str, float]:
    """Return the probability of each option, and of all else, of one answer."""
    probs = _probs_of_tokens(tokens, row)
    n_missing = sum(name not in probs for name in names)
    rest = max(0.0, 1.0 - sum(probs.values()))
    share = min(min(probs.values()) / 2.0, rest / (n_missing + 1))
    own = {name: probs.get(name, share) for name in names}
    return {**own, OTHER: max(0.0, 1.0 - sum(own.values()))}


def _probs_of_tokens(tokens: Any, row: int) -> dict[str, float]:
    """Return the probability of each listed word; tokens that differ by spaces are one."""
    probs: dict[str, float] = {}
    try:
        entries = tokens.items() if isinstance(tokens, Mapping) else map(_entry, tokens)
        for token, log_prob in entries:
            word = str(token).strip()
            probs[word] = probs.get(word, 0.0) + math.exp(log_prob)
    except (TypeError, KeyError, AttributeError, OverflowError):
        probs = {}
    total = sum(probs.values())
    if not 0.0 < total <= 1.0 + MAX_EXCESS:
        raise InputError(
            "{argument} must hold tokens and their log probabilities, at most 0 and together at "
            "most a probability of 1; {row} does not.",
            argument="listed",
            row=row,
            remedy="Drop rows that list nothing.",
            values={},
        )
    return probs


def _entry(entry: Any) -> tuple[Any, Any]:
    """Return token and log probability of an entry, an object or a mapping."""
    if isinstance(entry, Mapping):
        return entry["token"], entry["logprob"]
    return entry.token, entry.logprob
