"""`fit_blocks`: the same estimates as `fit_predictions`, from rows that are never all in memory.

The objective is a sum over blocks, so Newton's method needs a pass for each step: the first reads
and validates, and is also the evaluation at the identity. Steps in float32 would save less than the
pass it takes to make up for them: standard errors come with the last step, and any partition of the
rows must give the same ones but for rounding.

Whether a maximum exists is asked only where the information at the estimate has all but vanished,
and the linear program of `_fit/existence` then needs the rows in memory. Where they are too many,
the fit counts as not determined, and the warning says that separation was not looked for.
"""

from __future__ import annotations

import numpy as np

from .._fit.estimate import COLLAPSED, FLAT, INVISIBLE, Estimate, covariance, least_information
from .._fit.existence import separated_classes, warn_of
from .._fit.fit import MCLLOFit
from .._fit.penalty import Penalty, Ridge, check_penalty, strongest_evidence
from .._ground.results import Floats
from .._input.labels import Classes
from .._math.likelihood import Terms, identity_theta
from .._math.newton import minimize
from ..exceptions import Either, InputError, Option, Phrase
from .blocks import Blocks

MOST_GATHERED = 5e6
"""Rows times classes up to which rows are put into memory to look for separation."""


class BlockLikelihood:
    """The negative log likelihood of blocks as a function of the free parameters.

    Its value at the identity comes with the first pass.
    """

    def __init__(self, blocks: Blocks) -> None:
        self.blocks, self.sums = blocks, blocks.first
        self.free = self.sums.free
        self.identity = identity_theta(len(self.free) // 2)

    def theta(self, x: Floats) -> Floats:
        """Return theta with the free parameters `x`."""
        theta = self.identity.copy()
        theta[self.free] = x
        return theta

    def __call__(self, x: Floats) -> Terms:
        """Return value, gradient and Hessian at `x`."""
        theta = self.theta(x)
        known = np.array_equal(theta, self.identity)
        return self._freed(theta, self.sums.null if known else self.blocks.terms(theta))

    def _freed(self, theta: Floats, terms: Terms) -> Terms:
        gradient = terms.gradient - self.sums.statistic
        value = terms.value - float(theta @ self.sums.statistic)
        free = self.free
        return Terms(value, gradient[free], terms.hessian[np.ix_(free, free)])


def fit_blocks(blocks: Blocks, *, penalty: Penalty = 0.0) -> MCLLOFit:
    """Fit the MCLLO model to rows in blocks.

    Parameters
    ----------
    blocks : Blocks
        The rows.
    penalty : float or 'auto'
        Strength of a ridge towards the identity; 0 is maximum likelihood. 'auto' tries many
        strengths and so makes many passes.

    Examples
    --------
    >>> from mcllo._blocks.sources import blocks_of_batches
    >>> batches = [([[0.7, 0.3], [0.2, 0.8]], [0, 1]), ([[0.6, 0.4], [0.4, 0.6]], [0, 1])]
    >>> fit_blocks(blocks_of_batches(batches), penalty=1.0).gamma.round(2)
    array([1.59])
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
    likelihood = BlockLikelihood(blocks)
    end = _estimate(likelihood, penalty)
    left = _information_left(end, likelihood)
    absent = likelihood.sums.absent(blocks.layout.classes)
    causes, looked = _causes(blocks, absent if penalty == 0.0 else (), left)
    determined = not causes and left >= (FLAT if looked else COLLAPSED)
    theta = likelihood.theta(end.solution.x)
    fit = MCLLOFit(
        tau=theta[: len(theta) // 2],
        gamma=theta[len(theta) // 2 :],
        classes=blocks.layout.classes,
        baseline=blocks.layout.baseline,
        cov_theta=covariance(end.hessian, likelihood.free, determined),
        log_likelihood=min(0.0, -end.value),
        log_likelihood_null=min(0.0, -end.null.value),
        n_samples=likelihood.sums.n_samples,
        df=int(likelihood.free.sum()),
        penalty=end.penalty,
        converged=end.solution.converged and determined,
        n_iter=end.solution.n_iter,
        gradient_norm=end.solution.gradient_norm,
        separated=bool(causes),
        null_terms=end.null,
        separated_classes=causes,
        penalty_rule=end.rule,
    )
    warn_of(fit, absent, not looked)
    return fit


def _estimate(likelihood: BlockLikelihood, penalty: Penalty) -> Estimate:
    identity = likelihood.identity[likelihood.free]
    null = likelihood(identity)
    if penalty == 0.0:
        solution = minimize(likelihood, identity)
        return Estimate(solution, solution.terms.hessian, solution.value, null)
    auto = penalty == "auto"
    rho = strongest_evidence(likelihood, identity) if auto else float(penalty)
    solution = minimize(Ridge(likelihood, rho, identity), identity)
    value = likelihood(solution.x).value
    rule = "auto" if auto else "given"
    return Estimate(solution, solution.terms.hessian, value, null, rho, rule)


def _information_left(end: Estimate, likelihood: BlockLikelihood) -> float:
    """Return the smallest information at the estimate, as `_fit/estimate.information_left` does."""
    if end.penalty:
        return 1.0
    sums = likelihood.sums
    total = np.full(len(sums.squares), sums.scores.weight)
    most = 0.25 * np.concatenate([total, np.maximum(sums.squares, 1e-300)])[likelihood.free]
    if least_information(end.hessian, most) < INVISIBLE:
        return 0.0
    return least_information(
        end.hessian, np.maximum(np.diagonal(end.null.hessian), INVISIBLE * most)
    )


def _causes(blocks: Blocks, absent: Classes, left: float) -> tuple[Classes, bool]:
    """Return the classes that keep the estimate from existing, and whether that was decided."""
    if absent or left >= COLLAPSED:
        return absent, True
    cells = blocks.first.n_samples * len(blocks.layout.classes)
    if cells > MOST_GATHERED:
        return (), False
    return separated_classes(blocks.take()), True
