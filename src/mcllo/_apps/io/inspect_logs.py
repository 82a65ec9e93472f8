"""Logs of Inspect (``.eval``): the letters that an answer could have been, by its own reader.

An answer is the last token that is a letter of an option; its `top_logprobs` are read as
`choices_from_top_logprobs` does. What cannot be read says which sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from ..._validation.choice_sets import default_positions
from ..._validation.top_logprobs import probs_of_options
from ...exceptions import FileFormatError, InputError

SHUFFLED = "Choices were shuffled"
"""How the explanation of a score begins where letters are not those of the sample."""


def read_samples(
    file: Path,
) -> Iterator[tuple[str, dict[str, float], str, dict[str, Any], str]]:
    """Yield place, probabilities by position, right letter, metadata and task of each sample."""
    try:
        log_module = import_module("inspect_ai.log")
    except ImportError:
        raise FileFormatError(
            f"{file} is a log of Inspect, which its own package reads.",
            remedy="Install it: pip install inspect-ai.",
        ) from None
    try:
        log = log_module.read_eval_log(str(file))
    except Exception as error:  # its reader raises what it likes
        first = str(error).partition("\n")[0].rstrip(".")
        raise FileFormatError(f"{file} cannot be read by Inspect: {first}.") from None
    for sample in log.samples or []:
        place = f"{file} sample {sample.id}"
        yield (
            place,
            _probs(sample, place),
            _target(sample, place),
            sample.metadata,
            log.eval.task,
        )


def _probs(sample: Any, place: str) -> dict[str, float]:
    """Return the probabilities of the letters, and of all else, where the answer was given."""
    if len(sample.choices or ()) < 2:
        raise FileFormatError(f"{place} must have at least two choices.")
    scores = (sample.scores or {}).values()
    if any((score.explanation or "").startswith(SHUFFLED) for score in scores):
        raise FileFormatError(
            f"{place} was asked with its choices shuffled, and the log does not keep their order.",
            remedy="Evaluate without shuffling.",
        )
    letters = [str(name) for name in default_positions(len(sample.choices))]
    completions = sample.output.choices
    log_probs = completions[0].logprobs if completions else None
    tokens = [] if log_probs is None else log_probs.content
    answers = [token for token in tokens if token.token.strip() in letters]
    if not answers or not answers[-1].top_logprobs:
        raise FileFormatError(
            f"{place} must have a letter as its answer, with log probabilities of other tokens.",
            remedy="Evaluate with --logprobs --top-logprobs 20.",
        )
    try:
        return probs_of_options(answers[-1].top_logprobs, letters, 0)
    except InputError:
        raise FileFormatError(
            f"{place}: 'top_logprobs' must hold log probabilities, together at most a probability "
            "of 1."
        ) from None


def _target(sample: Any, place: str) -> str:
    """Return the one right letter."""
    targets = [sample.target] if isinstance(sample.target, str) else list(sample.target)
    if len(targets) != 1:
        raise FileFormatError(
            f"{place} must have one right letter; it has {len(targets)}."
        )
    return str(targets[0]).strip()
