"""`assess`: rows from anywhere -> what a person needs to act on them; and the fit of a file.

Small files are read whole, large ones and directories in blocks, unless what is asked needs all
rows in memory; what would take more than the machine has is then refused before it is read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Unpack

from .._assessment.assessment import Assessment, assess_predictions
from .._blocks.assess import BlockAssessment, assess_blocks
from .._blocks.dask import blocks_of_dask, is_dask
from .._blocks.files import blocks_of_files
from .._files import room
from .._files.container import unpacked_size
from .._files.read import read_predictions
from .._ground.files import StrPath
from .._inference.budget import N_RESAMPLES
from .._inference.calibration_test import split_baseline
from .._inference.draws import Seed
from .._inference.likelihood_tests import Method, Statistic
from .._input.predictions import RowOptions, judged_predictions, reads_rows
from ..exceptions import InputError, Option, Phrase, Text


@reads_rows(RowOptions)
def assess(
    probs: Any = None,
    y: Any = None,
    *,
    baseline: Any = None,
    statistic: Statistic = "lr",
    method: Method = "auto",
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
    by: Any = None,
    **data: Unpack[RowOptions],
) -> Assessment | BlockAssessment:
    """Judge predictions: test calibration, estimate what is wrong, and measure.

    Parameters
    ----------
    probs : array-like, frame, Predictions, or Dask array or dataframe
        Predicted probabilities, shape (n_samples, n_classes); left out when `logits` is given:
        ``assess(y=y, logits=z)``.
    y : array-like of shape (n_samples,)
        The labels that came true; not given beside a `Predictions`.
    baseline, statistic, method, n_resamples, seed
        As in `calibration_test`.
    by : array-like of shape (n_samples,) or str, optional
        Subgroup of each row (a station, a sex), or the frame's column that holds it: are all of
        them alike, and which is off? See ``assessment.subgroups`` and `mcllo.subgroups`.
    **data
        How rows are read, as in `Predictions.from_arrays`: `classes`, `sample_weight`,
        `prefix`, `weight_kind`, `groups`, `logits`, `normalize`, `clip`.

    Returns
    -------
    Assessment or, of Dask collections, BlockAssessment
        `test`, `fit`, `metrics`, `in_the_large`, `details`; ``print`` it for a report.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> honest = rng.dirichlet([1, 1, 1], size=4000)
    >>> y = [rng.choice(["a", "b", "c"], p=row) for row in honest]
    >>> sharp = honest**2 / (honest**2).sum(axis=1, keepdims=True)  # overconfident
    >>> a = assess(sharp, y)
    >>> a.test.rejects(alpha=0.05), a.fit.gamma.round(1)
    (True, array([0.5, 0.5]))
    """
    rule, baseline = split_baseline(baseline)
    options: dict[str, Any] = {"statistic": statistic, "method": method}
    options |= {"n_resamples": n_resamples, "seed": seed}
    if any(map(is_dask, (probs, y, by, *data.values()))):
        given: dict[str, Any] = {**data}
        if given.pop("prefix", ""):
            rule = "{} is for frames in memory; rename the columns of Dask's."
            raise InputError(Phrase(rule, Option("prefix")), argument="prefix")
        _refuse_dependent(rule, given.pop("weight_kind", ""), given.pop("groups", None), by)
        return assess_blocks(blocks_of_dask(probs, y, baseline=baseline, **given), **options)
    predictions = judged_predictions(probs, y, baseline=baseline, by=by, **data)
    return assess_predictions(predictions, rule, **options)


def _refuse_dependent(rule: str, weight_kind: str, groups: Any, by: Any) -> None:
    """Refuse what needs all rows at once."""
    named = {Option("baseline", rule): rule, Option("groups"): groups is not None}
    named |= {Option("by"): by is not None}
    named |= {Option("weight_kind", weight_kind): _no_counts(weight_kind)}
    for option in (option for option, given in named.items() if given):
        raise InputError(
            Phrase("{} needs all rows in memory.", option),
            argument=option.name,
            remedy="Pass probs.compute() and y.compute(), or leave it out.",
        )


def _no_counts(weight_kind: str | None) -> bool:
    """Whether weights, if there are any, count no rows."""
    return weight_kind not in (None, "", "frequency")


LARGE_FILE = 50_000_000
"""Bytes, unpacked, from which a file is read in blocks."""


def is_large(path: StrPath) -> bool:
    """Whether `path` is a directory, or a file too large to be read at once."""
    if str(path) == "-":
        return False
    place = Path(path)
    return place.is_dir() or (place.is_file() and unpacked_size(place, LARGE_FILE) > LARGE_FILE)


def assess_file(
    path: StrPath,
    reading: dict[str, Any],
    *,
    rule: str = "",
    whole: bool = False,
    workers: int | None = None,
    **options: Any,
) -> Assessment | BlockAssessment:
    """Assess a file; `reading` is for `read_predictions`, `options` are those of `assess`.

    `whole` asks for an `Assessment` with all rows in memory, as a report needs it.
    """
    kind = reading.get("weight_kind")
    needs = {
        Option("groups"): reading.get("groups") is not None,
        Option("by"): reading.get("by") is not None,
        Option("weight_kind", kind): _no_counts(kind) and reading.get("weight") is not None,
        Option("baseline", rule): bool(rule),
        "a report": whole,
    }
    if reads_whole(path, needs, reading):
        return assess(read_predictions(path, **reading), baseline=rule or None, **options)
    return assess_blocks(blocks_of(path, reading, workers), **options)


def reads_whole(path: StrPath, needs: dict[Any, bool], reading: dict[str, Any]) -> bool:
    """Whether all rows are read into memory: of a small file, or where something needs them."""
    why = next((words for words, given in needs.items() if given), None)
    if why is None:
        return not is_large(path)
    check_room(path, reading, why)
    return True


def check_room(
    path: StrPath, reading: dict[str, Any], why: Any, remedy: Text = "Use fewer rows."
) -> None:
    """Refuse files whose rows would not fit into the memory of this machine, as `why` needs it."""
    if not is_large(path):
        return
    own = {name: value for name, value in reading.items() if name not in (*ASIDE, "baseline")}
    with blocks_of_files(path, spill=False, **own) as blocks:
        files: Any = blocks.source
        room.check_room(files.sources, len(files.names), why, remedy)


ASIDE = ("groups", "by", "weight_kind")
"""What rows in blocks do not have."""


def blocks_of(path: StrPath, reading: dict[str, Any], workers: int | None) -> Any:
    """Return the rows of a file or directory in blocks, as the reading options ask."""
    own = {name: value for name, value in reading.items() if name not in ASIDE}
    return blocks_of_files(path, n_jobs=workers, **own)
