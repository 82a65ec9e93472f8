"""Simulated predictions, the power of the calibration test, and how many labelled rows it needs.

`draw` makes predictions whose labels follow the MCLLO map with parameters that you choose; `power`
repeats the paper's study; `power_for` asks the same of your own predictions: how many labelled rows
would show this much miscalibration?
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from .._inference.budget import N_RESAMPLES_STUDY
from .._inference.monte_carlo import Seed, check_n_resamples, seed_entropy
from .._model.likelihood import identity_theta
from .._utils.atomic_files import StrPath
from .._validation.predictions import Predictions
from .._version import __version__
from ..exceptions import InputError
from ._design import (
    build_map,
    check_alpha,
    check_count,
    check_delta_1_values,
    check_sample_sizes,
    check_sizes_fit_memory,
    design_of_distribution,
    design_of_table,
    resolve_n_jobs,
    take_table_of_sample,
)
from ._run import FinishedCells, StudyCell, StudyPlan, run_cells
from ._study import PowerCell, PowerStudy, RowsNeeded, solve_for_sample_size

__all__ = ["PowerCell", "PowerStudy", "RowsNeeded", "draw", "power", "power_for"]

Parameter = float | Sequence[float] | Mapping[Hashable, float] | None


def draw(
    n_samples: int,
    *,
    delta: Parameter = None,
    gamma: Parameter = None,
    n_classes: int = 10,
    distribution: Any = "dirichlet_heavy",
    concentration: float | Sequence[float] | None = None,
    scale: float | None = None,
    seed: Seed = None,
) -> Predictions:
    """Draw predictions, and labels from the MCLLO map of them.

    Parameters
    ----------
    n_samples : int
        Rows.
    delta, gamma : float, sequence or dict, optional
        Parameters of the map that labels follow: one number for all classes other than the
        baseline, one for each, or some by label. Default 1: the predictions are calibrated.
    n_classes : int
        Number of classes of a named distribution.
    distribution : {'dirichlet_heavy', 'dirichlet', 'softmax_normal'}, table or Predictions
        Where the rows come from. 'dirichlet_heavy' is ``Dirichlet(3, .3, ..., .3)``. The rows of a
        table are drawn with replacement.
    concentration : float or sequence, optional
        Parameters of 'dirichlet'. Default 1, uniform on the simplex.
    scale : float, optional
        Standard deviation of the logits of 'softmax_normal'. Default 1.
    seed : int or numpy Generator, optional
        Makes the draw repeatable.

    Returns
    -------
    Predictions
        Classes ``0 .. n_classes - 1``, the last of them the baseline; a table's own otherwise.

    See Also
    --------
    power : Repeats this many times and tests each draw.
    power_for : Rows of your own predictions.
    mcllo.MCLLOMap : The map that labels follow.

    Notes
    -----
    [1]_ simulates from the same map but does not say where its rows came from; the default
    distribution was chosen because its figures look like the paper's.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> p = draw(1000, delta={0: 1.4}, seed=0)
    >>> p
    Predictions(n_samples=1000, classes=(0, 1, 2, 3, 4, 5, 6, 7, 8, 9), baseline=9)
    """
    n = check_count(n_samples, "n_samples")
    if isinstance(distribution, str):
        design = design_of_distribution(distribution, n_classes, concentration, scale)
    elif concentration is not None or scale is not None:
        raise InputError(
            "concentration= and scale= belong to named distributions; got a table."
        )
    else:
        design = design_of_table(distribution)
    check_sizes_fit_memory([n], len(design.classes))
    effect = build_map(delta, gamma, design.classes, design.baseline_index)
    stream = np.random.default_rng(seed_entropy(seed))
    return take_table_of_sample(design.sample(effect.theta, n, [stream]))


def power(
    *,
    n_samples: int | Sequence[int] = (400, 450, 500, 600, 1000, 5000),
    delta_1: float | Sequence[float] = (1.0, 1.1, 1.2, 1.3, 1.4),
    n_classes: int = 10,
    distribution: str = "dirichlet_heavy",
    concentration: float | Sequence[float] | None = None,
    scale: float | None = None,
    reps: int = 1000,
    alpha: float = 0.05,
    exact: bool = False,
    n_resamples: int = N_RESAMPLES_STUDY,
    seed: Seed = None,
    n_jobs: int | None = None,
    resume: StrPath | None = None,
    power: float | None = None,
) -> PowerStudy:
    """Estimate the power of the likelihood ratio test, and ECE before and after recalibration.

    The paper's study: only the first class's delta differs from 1. The defaults are its grid of 30
    settings; the paper does not say where its rows came from (see `draw` for ours).

    Parameters
    ----------
    n_samples : int or sequence of int
        Numbers of rows.
    delta_1 : float or sequence of float
        The first class's delta; at 1 the predictions are calibrated and the rate is the size.
    n_classes : int
        Number of classes.
    distribution : {'dirichlet_heavy', 'dirichlet', 'softmax_normal'}
        Where the rows come from; see `draw`.
    concentration : float or sequence, optional
        Parameters of 'dirichlet'. Default 1, uniform on the simplex.
    scale : float, optional
        Standard deviation of the logits of 'softmax_normal'. Default 1.
    reps : int
        Repetitions of each setting.
    alpha : float
        Level of the test.
    exact : bool
        Judge each repetition by an exact p-value instead of chi-square's, which stays beside it. It
        takes about 0.05 s each at n = 400, and more with n.
    n_resamples : int
        Most draws of an exact p-value.
    seed : int or numpy Generator, optional
        Makes the study repeatable, whatever `n_jobs`.
    n_jobs : int, optional
        Processes; -1 for one per processor. Default 1. A script that asks for more must do so below
        ``if __name__ == "__main__":``.
    resume : path-like, optional
        File that keeps finished settings: a study that was stopped goes on from there.
    power : float, optional
        Instead of `n_samples`: find how many rows reject with this probability, of one delta_1.

    Returns
    -------
    PowerStudy
        A cell for each setting; ``print`` it for a table.

    See Also
    --------
    power_for : Rows of your own predictions.
    draw : One table.
    mcllo.plot.power : Draws it.
    mcllo.reproduce.power : The rates of the paper's grid, computed before.

    Notes
    -----
    The study is that of [1]_, section 3.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> study = power(n_samples=400, delta_1=(1.0, 1.4), reps=100, seed=5)
    >>> [(cell.n, cell.delta_1) for cell in study.rows]
    [(400, 1.0), (400, 1.4)]
    >>> study.rows[0].power < study.rows[1].power
    True
    """
    design = design_of_distribution(distribution, n_classes, concentration, scale)
    check_n_resamples(n_resamples)
    test = "exact" if exact else "chi2"
    plan = StudyPlan(design, test, int(n_resamples), check_count(reps, "reps"))
    level = check_alpha(alpha)
    workers = resolve_n_jobs(n_jobs)
    tried = check_delta_1_values(delta_1)
    if power is not None and (len(tried) > 1 or resume is not None):
        message = "{power} needs one {delta_1} and no {resume}."
        raise InputError(message, argument="power", value=power)
    finished = FinishedCells(resume)
    entropy = seed_entropy(finished.settings.get("seed") if seed is None else seed)

    def cell(n: int, shift: float = tried[0]) -> StudyCell:
        theta = build_map({0: shift}, None, design.classes, design.baseline_index).theta
        bits_of_shift = int(
            np.float64(shift).view(np.uint64)
        )  # streams are keyed by whole numbers
        return StudyCell(n, shift, theta, (entropy, n, bits_of_shift))

    facts: dict[str, Any] = {
        "test": plan.test,
        "alpha": level,
        "seed": entropy,
        "design": design.words,
        "n_classes": len(design.classes),
    }
    if power is not None:
        rows, needed = _simulate_until_power(plan, cell, level, power, workers)
        return PowerStudy(rows, **facts, needed=needed)
    grid = [
        (n, shift) for n in check_sample_sizes(n_samples, design) for shift in tried
    ]
    finished.check_same_settings(
        {"version": __version__, "seed": entropy, **plan.settings}
    )
    todo = [cell(n, shift) for n, shift in grid if (n, shift) not in finished]
    for done, numbers in run_cells(plan, todo, workers):
        finished.add((done.n, done.delta_1), numbers)
    cells = [PowerCell(n, shift, level, *finished[n, shift]) for n, shift in grid]
    return PowerStudy(tuple(cells), **facts)


def power_for(
    probs: Any,
    *,
    delta: Parameter = None,
    gamma: Parameter = None,
    n_samples: int | Sequence[int] = (250, 500, 1000, 2000, 4000),
    baseline: Hashable | None = None,
    classes: Sequence[Hashable] | None = None,
    reps: int = 200,
    alpha: float = 0.05,
    n_resamples: int = N_RESAMPLES_STUDY,
    seed: Seed = None,
    n_jobs: int | None = None,
    power: float | None = None,
) -> PowerStudy:
    """Estimate how many labelled rows it takes to notice this much miscalibration.

    Rows are drawn with replacement from your predictions (no labels needed), their labels from the
    MCLLO map of them with `delta` and `gamma`; each sample is tested as `calibration_test` does by
    default. `PowerStudy.smallest_n` reads off the answer.

    Parameters
    ----------
    probs : array-like, frame or Predictions
        Predicted probabilities, shape (n_samples, n_classes).
    delta, gamma : float, sequence or dict, optional
        How wrong the predictions are: the truth has log odds
        ``log(delta) + gamma * (predicted log odds)`` against the baseline. ``gamma=0.8`` makes the
        predictions overconfident; with ``delta={"cat": 1.5}`` the odds of a cat are 1.5 times those
        predicted. One number for all classes other than the baseline, one for each, or some by
        label. ``delta=1`` alone shows the size of the test.
    n_samples : int or sequence of int
        Numbers of labelled rows to try; more than `probs` has are no problem.
    baseline : label, optional
        Reference class of the log odds. Default: the last class.
    classes : sequence, optional
        The label of each column. Default: the frame's column names, else 0 .. c-1.
    reps : int
        Repetitions of each number of rows.
    alpha : float
        Level of the test.
    n_resamples : int
        Most draws of an exact p-value. `calibration_test` makes up to 1999, which gains less than a
        point of power.
    seed : int or numpy Generator, optional
        Makes the study repeatable, whatever `n_jobs`.
    n_jobs : int, optional
        Processes; -1 for one per processor. Default 1. A script that asks for more must do so below
        ``if __name__ == "__main__":``.
    power : float, optional
        Instead of `n_samples`: find how many rows reject with this probability. The sizes tried on
        the way are the rows of the study, and `PowerStudy.needed` is the answer.

    Returns
    -------
    PowerStudy
        A cell for each number of rows; ``print`` it for a table.

    See Also
    --------
    power : The paper's study.
    draw : Takes a table of predictions, too.
    mcllo.calibration_test : The test that is repeated.
    mcllo.plot.power : Draws it.

    Examples
    --------
    >>> probs = np.random.default_rng(0).dirichlet([1, 1, 1], size=500)
    >>> study = power_for(probs, gamma=0.6, n_samples=(200, 400, 800), reps=50, seed=0)
    >>> study.smallest_n(power=0.8)
    400
    """
    if delta is None and gamma is None:
        raise InputError(
            "power_for must know how wrong the predictions are; got neither delta= nor gamma=. "
            "Pass, say, gamma=0.8, or delta=1 for the size of the test."
        )
    design = design_of_table(probs, classes, baseline)
    check_n_resamples(n_resamples)
    plan = StudyPlan(design, "auto", int(n_resamples), check_count(reps, "reps"))
    effect = build_map(delta, gamma, design.classes, design.baseline_index)
    level = check_alpha(alpha)
    workers = resolve_n_jobs(n_jobs)
    entropy = seed_entropy(seed)

    def cell(n: int) -> StudyCell:
        return StudyCell(n, None, effect.theta, (entropy, n))

    facts: dict[str, Any] = {
        "test": plan.test,
        "alpha": level,
        "seed": entropy,
        "design": design.words,
        "n_classes": len(design.classes),
        "effect": effect,
    }
    if power is not None:
        found, needed = _simulate_until_power(plan, cell, level, power, workers)
        return PowerStudy(found, **facts, needed=needed)
    cells = [cell(n) for n in check_sample_sizes(n_samples, design)]
    rows = []
    for done, numbers in run_cells(plan, cells, workers):
        rows.append(PowerCell(done.n, None, level, *numbers))
    return PowerStudy(tuple(rows), **facts)


def _simulate_until_power(
    plan: StudyPlan,
    cell: Callable[[int], StudyCell],
    level: float,
    power: float,
    workers: int,
) -> tuple[tuple[PowerCell, ...], RowsNeeded]:
    """Return the sizes tried, in order, and how many rows the wanted power takes."""
    theta = cell(1).theta
    if isinstance(power, bool) or not level < power < 1.0:
        between = f"lie between {level:g}, the level, and 1"
        raise InputError(argument="power", rule=between, value=power)
    if np.array_equal(theta, identity_theta(len(theta) // 2)):
        raise InputError(
            "a power needs an effect: with delta = gamma = 1 the predictions are calibrated, and "
            "no number of rows shows it."
        )
    tried: dict[int, PowerCell] = {}

    def rejected(n: int) -> tuple[int, int]:
        ((asked, numbers),) = run_cells(plan, [cell(n)], workers)
        tried[n] = PowerCell(n, asked.delta_1, level, *numbers)
        n_rejected = int(np.sum(tried[n].pvalues <= level))
        return n_rejected, plan.reps

    needed = solve_for_sample_size(rejected, len(theta), float(power), level)
    return tuple(tried[n] for n in sorted(tried)), needed
