"""`assess`: rows from anywhere -> what a person needs to act on them; and the fit of a file.

Small files are read whole, large ones and directories in blocks, unless what is asked needs all
rows in memory; what would take more than the machine has is then refused before it is read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Unpack

from .._assessment.assessment import Assessment, assess_predictions
from .._blocks.assess_blocks import BlockAssessment, assess_blocks
from .._blocks.dask import blocks_of_dask
from .._blocks.file_blocks import blocks_of_files
from .._files import memory_estimate
from .._files.container import unpacked_size
from .._files.read import read_predictions
from .._ground.atomic_files import StrPath
from .._inference.budget import N_RESAMPLES
from .._inference.calibration_test import split_baseline
from .._inference.likelihood_tests import Method, Statistic
from .._inference.monte_carlo import Seed
from .._input.frames import is_dask
from .._input.predictions import RowOptions, reads_rows
from .._input.rounded import unrounded_predictions
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
    """Judge predictions: test calibration, estimate what is wrong, and measure it.

    Parameters
    ----------
    probs : array-like, frame, Predictions, or Dask array or dataframe
        Predicted probabilities, shape (n_samples, n_classes); left out when `logits` is given:
        ``assess(y=y, logits=z)``.
    y : array-like of shape (n_samples,), optional
        The labels that came true; not given beside a `Predictions`.
    baseline : label or 'auto', optional
        Reference class of the log odds. Default: the last class that occurs in `y`; 'auto' takes
        the likeliest, and the p-value pays for the choice.
    statistic : {'lr', 'score', 'wald'}
        Likelihood ratio (the paper's), score, or Wald.
    method : {'auto', 'chi2', 'exact', 'sequential'}
        How p-values are computed: by chi-square, by `n_resamples` draws of labels, or by draws that
        stop once 50 were as extreme as the data. 'auto' takes chi-square where it can be trusted
        and draws labels elsewhere.
    n_resamples : int
        Most draws of labels for a p-value.
    seed : int or numpy Generator, optional
        Makes draws repeatable.
    by : array-like of shape (n_samples,) or str, optional
        Subgroup of each row (a station, a sex), or the frame's column that holds it: are all of
        them alike, and which is off? See ``assessment.subgroups`` and `mcllo.subgroups`.
    logits, classes, prefix, sample_weight, normalize, clip, weight_kind : optional
        How rows are read; each is described in `Predictions.from_arrays`.
    groups : array-like of shape (n_samples,), optional
        Group of each row (an animal, a patient): rows of one may depend on each other. The verdict
        then rests on `robust_test`.

    Returns
    -------
    Assessment or BlockAssessment
        `test`, `fit`, `metrics`, `in_the_large`, `details`; ``print`` it for a report. A
        BlockAssessment of Dask collections.

    Raises
    ------
    InputError
        When the data or an option break a rule; the message names the row, the value and the
        remedy.

    See Also
    --------
    calibration_test : The test alone.
    compare : Recalibration methods beside each other.
    report : A page that can be read without statistics.
    Predictions : Each option of how rows are read.

    Notes
    -----
    The model, its likelihood ratio test and its use for recalibration are those of [1]_; model and
    test are also those of [2]_. Beside them stand tests that see other departures, because the
    likelihood ratio test is blind to those.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.
    .. [2] K. Van Hoorde, Y. Vergouwe, D. Timmerman, S. Van Huffel, E. W. Steyerberg, B. Van Calster
           (2014). Assessing calibration of multinomial risk prediction models. Statistics in
           Medicine 33:2585-2596.

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
    predictions = unrounded_predictions(probs, y, baseline=baseline, by=by, **data)
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


MIN_BYTES_FOR_BLOCKS = 50_000_000
"""Bytes, unpacked, from which a file is read in blocks."""


def is_large(path: StrPath) -> bool:
    """Whether `path` is a directory, or a file too large to be read at once."""
    if str(path) == "-":
        return False
    place = Path(path)
    return place.is_dir() or (
        place.is_file() and unpacked_size(place, MIN_BYTES_FOR_BLOCKS) > MIN_BYTES_FOR_BLOCKS
    )


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
    return assess_blocks(open_blocks(path, reading, workers), **options)


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
    own = {
        name: value for name, value in reading.items() if name not in (*COLUMN_OPTIONS, "baseline")
    }
    with blocks_of_files(path, spill=False, **own) as blocks:
        files: Any = blocks.source
        memory_estimate.check_room(files.sources, len(files.names), why, remedy)


COLUMN_OPTIONS = ("groups", "by", "weight_kind")
"""What rows in blocks do not have."""


def open_blocks(path: StrPath, reading: dict[str, Any], workers: int | None) -> Any:
    """Return the rows of a file or directory in blocks, as the reading options ask."""
    own = {name: value for name, value in reading.items() if name not in COLUMN_OPTIONS}
    return blocks_of_files(path, n_jobs=workers, **own)
