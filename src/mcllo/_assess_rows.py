"""`assess`: rows from anywhere -> what a person needs to act on them.

Arrays and frames are assessed in memory (`_assess`), Dask collections in blocks on their workers
(`_block_assess` says what then differs).
"""

from __future__ import annotations

from typing import Any

from ._assess import Assessment, assess_predictions
from ._block_assess import assess_blocks
from ._block_assessment import BlockAssessment
from ._calibration_test import N_RESAMPLES, Method, Statistic
from ._chosen_test import split_baseline
from ._dask import blocks_of_dask, is_dask
from ._monte_carlo import Seed
from ._predictions import as_predictions
from ._rows import WeightKind
from .exceptions import InputError


def assess(
    probs: Any,
    y: Any = None,
    *,
    baseline: Any = None,
    classes: Any = None,
    sample_weight: Any = None,
    weight_kind: WeightKind = "frequency",
    groups: Any = None,
    logits: Any = None,
    normalize: bool = False,
    clip: float | None = None,
    statistic: Statistic = "lr",
    method: Method = "auto",
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
) -> Assessment | BlockAssessment:
    """Judge predictions: test calibration, estimate what is wrong, and measure.

    Parameters
    ----------
    probs : array-like, frame, Predictions, or Dask array or dataframe
        Predicted probabilities, shape (n_samples, n_classes); None when `logits` is given.
    y : array-like of shape (n_samples,)
        The labels that came true; not given beside a `Predictions`.
    baseline, statistic, method, n_resamples, seed, groups
        As in `calibration_test`.
    classes, sample_weight, weight_kind, logits, normalize, clip
        As in `Predictions.from_arrays`.

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
    if any(map(is_dask, (probs, y, logits, sample_weight, groups))):
        _refuse_dependent(rule, weight_kind, groups)
        blocks = blocks_of_dask(
            probs,
            y,
            logits=logits,
            classes=classes,
            baseline=baseline,
            sample_weight=sample_weight,
            normalize=normalize,
            clip=clip,
        )
        return assess_blocks(blocks, **options)
    predictions = as_predictions(
        probs,
        y,
        baseline=baseline,
        classes=classes,
        sample_weight=sample_weight,
        weight_kind=weight_kind,
        groups=groups,
        logits=logits,
        normalize=normalize,
        clip=clip,
    )
    return assess_predictions(predictions, rule, **options)


def _refuse_dependent(rule: str, weight_kind: str, groups: Any) -> None:
    """Refuse what needs all rows at once."""
    named = {"baseline='auto'": rule, "groups=": groups is not None}
    named |= {"weight_kind='survey'": weight_kind == "survey"}
    for word in (word for word, given in named.items() if given):
        raise InputError(
            f"{word} needs all rows in memory. Pass probs.compute() and y.compute(), or leave it "
            "out."
        )
