"""`fit_blocks`: the same estimates as `fit_predictions`, from rows that are never all in memory.

The objective is a sum over blocks, so Newton's method needs a pass for each step: the first reads
and validates, and is also the evaluation at the identity. Steps in float32 would save less than the
pass it takes to make up for them: standard errors come with the last step, and any partition of the
rows must give the same ones but for rounding.

Weights that are no whole numbers say how much rows matter: one more pass then gives the variance of
the score for the sandwich (`_fit/sandwich`).

Whether a maximum exists is asked only where the information at the estimate has all but vanished,
and the linear program of `_fit/separation` then needs the rows in memory. Where they are too many,
the fit counts as not determined, and the warning says that separation was not looked for.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from ..._fit.estimate import ridge_estimate
from ..._fit.fit import MCLLOFit, assemble_fit
from ..._fit.objective import FreeLikelihood, Objective, most_information
from ..._fit.penalty import Penalty, check_penalty
from ..._fit.sandwich import ScoreSums, row_sums, sandwich
from ..._fit.separation import check_separation, warn_of_separation
from ..._model.kernel import Derivatives
from ..._model.likelihood import identity_theta
from ..._utils.results import Floats
from ..._validation.predictions import Predictions
from ...exceptions import Either, InputError, Option, Phrase
from .blocks import Blocks
from .sums import Block

MAX_GATHERED_CELLS = 5e6
"""Rows times classes up to which rows are put into memory to look for separation."""


def fit_blocks(
    blocks: Blocks, *, penalty: Penalty = 0.0, most_gathered: float = MAX_GATHERED_CELLS
) -> MCLLOFit:
    """Fit the MCLLO model to rows in blocks, with a ridge towards the identity if any.

    ``penalty="auto"`` tries many strengths and so makes many passes. Rows are put into memory to
    look for separation where rows times classes are at most `most_gathered`.
    """
    check_penalty(penalty, "identity")
    if penalty == "firth":
        auto = Option("penalty", "auto")
        raise InputError(
            Phrase(
                "{found} needs all rows in memory; {}.",
                Either(Phrase("use MCLLOCalibrator with arrays, or {}", auto), shell=auto),
            ),
            argument="penalty",
            value=penalty,
        )
    sums, facts = blocks.first, blocks.facts
    identity = identity_theta(len(sums.squares))

    def objective(theta: Floats) -> Derivatives:
        # its value at the identity came with the first pass
        terms = sums.null if np.array_equal(theta, identity) else blocks.terms(theta)
        value = terms.value - float(theta @ sums.statistic)
        return Derivatives(value, terms.gradient - sums.statistic, terms.hessian)

    most = most_information(sums.scores.weight, sums.squares)
    likelihood: FreeLikelihood[Objective] = FreeLikelihood(objective, sums.free, lambda: most)
    end = ridge_estimate(likelihood, penalty, likelihood.identity[likelihood.free])

    def rows() -> Predictions | None:
        many = facts.n_samples * facts.n_classes > most_gathered
        return None if many else blocks.take()

    found = check_separation(end, likelihood, facts.absent, rows)
    fit = assemble_fit(likelihood, end, found, facts)
    if sums.fraction is not None:
        fit = replace(fit, cov_theta=_robust(blocks, fit))
    warn_of_separation(fit, facts.absent, found.undecided)
    return fit


def _robust(blocks: Blocks, fit: MCLLOFit) -> Floats:
    """Return the sandwich covariance of rows whose weights are no counts."""

    def variance() -> Floats:
        found: ScoreSums = blocks.total(partial(block_scores, theta=fit.theta), "errors")
        return found.covariance

    return sandwich(fit, lambda: blocks.terms(fit.theta).hessian, variance)


def block_scores(block: Block, theta: Floats) -> ScoreSums:
    """Return the score and its gram matrix of a block, its weights taken for importance."""
    return row_sums(replace(block.rows, weight_kind="importance"), theta)
