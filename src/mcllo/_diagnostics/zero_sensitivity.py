"""`zero_sensitivity`: does the answer depend on the clipping of zeros?

A label whose probability was 0 has likelihood 0: no bound makes such predictions right, and a bound
e only sets the price, about ``2 log(1 / e)`` of the likelihood ratio statistic. A 0 of the
baseline makes all log odds of its row large, and forces all gamma to be equal as e goes to 0.

===============  ==========================================================================
for the test     the smallest change: 1e-6, in rows that hold a 0; beside it the answers at
                 1e-12 and at 1e-4, from the same draws
to recalibrate   `_validation/rounding`: ``1 / (2 T)`` when the probabilities are votes k / T
===============  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from .._inference.budget import N_RESAMPLES_REPEATED, ZEROS_WORK
from .._inference.calibration_test import fit_and_test
from .._inference.likelihood_tests import (
    CalibrationTest,
    Method,
    Statistic,
    choose_method,
)
from .._inference.monte_carlo import Seed, seed_entropy
from .._utils.formatting import (
    PStyle,
    Table,
    align_columns,
    format_count,
    format_number,
    pvalue_text,
)
from .._utils.results import Result, none_for_nonfinite
from .._utils.statements import ESTIMATION_WARNINGS, Statement, suppress_warnings
from .._validation.predictions import Predictions, predictions_for_inference
from .._validation.probabilities import DEFAULT_CLIP
from .._validation.rounding import (
    change_clip,
    clip_for_votes,
    find_zero_cells,
    raised_only_zeros,
    resolution_before_clipping,
)
from .._validation.row_options import RowOptions, takes_row_options
from ..exceptions import ZeroProbabilityWarning

CLIP_VALUES = (1e-12, DEFAULT_CLIP, 1e-4)
"""Floors that are tried: the default, and a factor that matters to both sides of it."""


@dataclass(frozen=True, eq=False, repr=False)
class ZeroSensitivity(Result):
    """What the test says when zeros are clipped to other bounds; print it.

    Attributes
    ----------
    floors : tuple of float
        What zeros were clipped to.
    tests : tuple of CalibrationTest
        The test at each bound.
    n_probs, n_clipped : int
        Probabilities, and how many of them move with the bound.
    n_clipped_true : int
        Rows whose label had one of those.
    all_zero : bool
        Whether all that move were 0; else some were below the bound, in a row with a 0.
    clip : float
        Bound of the predictions as given.
    lattice : int or None
        T when all probabilities are k / T.
    decimals : int or None
        Decimals that probabilities were rounded to.
    recalibration_clip : float or None
        Bound for a penalised recalibration; None for the default rule.

    See Also
    --------
    zero_sensitivity : Makes it.
    Details : Has it as `zeros`.
    Predictions : Takes `clip`, and counts what was raised.

    Examples
    --------
    >>> import warnings
    >>> import mcllo
    >>> votes = [[1.0, 0.0], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]] * 10
    >>> found = mcllo.zero_sensitivity(votes, [0, 1, 1, 0, 0, 0, 1, 1] * 5, seed=0, n_resamples=19)
    >>> found.floors, found.n_clipped, found.lattice
    ((1e-12, 1e-06, 0.0001), 10, 5)
    """

    floors: tuple[float, ...]
    tests: tuple[CalibrationTest, ...]
    n_probs: int
    n_clipped: int
    n_clipped_true: int
    all_zero: bool
    clip: float
    lattice: int | None
    decimals: int | None
    recalibration_clip: float | None
    left_out = ("floors", "tests")

    @property
    def table(self) -> Table:
        """A row for each bound: `clip`, `statistic`, `pvalue` and `method`."""
        columns: dict[str, Sequence[Any]] = {"clip": self.floors}
        for name in ("statistic", "pvalue", "method"):
            columns[name] = [getattr(test, name) for test in self.tests]
        return Table(columns)

    def hangs_on_the_floor(self, alpha: float = 0.05) -> bool:
        """Whether some floors reject at level `alpha` and others do not.

        Parameters
        ----------
        alpha : float
            Level of the test.

        Returns
        -------
        bool
            True where the answer depends on the bound.
        """
        decisions = {test.rejects(alpha) for test in self.tests}
        return len(decisions) > 1

    def sentences(self, alpha: float = 0.05) -> list[str]:
        """Return what a reader must know about the zeros."""
        return [said.text for said in self.statements(alpha)]

    def statements(
        self, alpha: float = 0.05, p: PStyle = pvalue_text
    ) -> list[Statement]:
        """Return the same as statements, p-values written by `p`."""
        statements = [self._clip_values_statement(alpha, p)]
        # A 0 that was rounded did not say "never".
        is_rounded = self.decimals is not None and self.lattice is None
        if self.n_clipped_true and not is_rounded:
            statements.append(self._zero_labels_statement())
        if self.lattice is not None or self.decimals is not None:
            numbers = {"lattice": self.lattice, "decimals": self.decimals}
            words = self._resolution_text()
            statements.append(Statement("zeros.resolution", words, "plain", numbers))
        return statements

    def _clip_values_statement(self, alpha: float, p_style: PStyle) -> Statement:
        """Return how many zeros there are, and what the p-value is with each floor."""
        pvalues = [_p_cell(test, p_style) for test in self.tests]
        if len(set(pvalues)) == 1:
            found = f"{pvalues[0]} with zeros clipped to any of"
        else:
            found = f"{', '.join(pvalues)} with zeros clipped to"
        floors = ", ".join(format_clip_value(floor) for floor in self.floors)
        hangs = self.hangs_on_the_floor(alpha)
        decision = (
            f": the decision at level {alpha:g} depends on the clipping."
            if hangs
            else "."
        )
        words = (
            f"{format_count(self.n_clipped)} of {format_count(self.n_probs)} probabilities are "
            f"{self._clipped_probability_text()}; the p-value is {found} {floors}{decision}"
        )
        numbers = {
            "floors": self.floors,
            "pvalues": [test.pvalue for test in self.tests],
            "hangs": hangs,
        }
        return Statement("zeros.floors", words, "doubt" if hangs else "plain", numbers)

    def _zero_labels_statement(self) -> Statement:
        """Return that labels came true whose probability was 0."""
        n_labels = self.n_clipped_true
        labels = "label" if n_labels == 1 else "labels"
        if self.all_zero:
            had = "probability 0"
            refuted = "the raw predictions are refuted"
        else:
            had = f"a probability of {self._clipped_probability_text()}"
            refuted = "a 0 refutes raw ones"
        words = (
            f"{format_count(n_labels)} {labels} had {had}: {refuted} whatever the clipping; "
            "p-values refer to the clipped ones."
        )
        return Statement("zeros.refuted", words, "bad", {"n_labels": n_labels})

    def _clipped_probability_text(self) -> str:
        return "0" if self.all_zero else f"0 or below {self.clip:g}"

    def _resolution_text(self) -> str:
        digits = f"{self.decimals} decimal{'' if self.decimals == 1 else 's'}"
        if self.lattice is None:
            half_step = 0.5 * 10.0 ** -(self.decimals or 0)
            return (
                f"Probabilities have {digits}: a 0 stands for something below {half_step:g}, and a "
                "test takes it as what suits the labels unless `clip` is given."
            )
        rounded = "" if self.decimals is None else f", with {digits}"
        words = (
            f"Probabilities are multiples of 1/{self.lattice}{rounded} "
            f"(fractions of {self.lattice} votes?)"
        )
        if self.recalibration_clip is None:
            return f"{words}."
        floor = f"1/{1.0 / self.recalibration_clip:g}"
        return f"{words}: a penalised recalibration clips zeros to {floor}."

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values; what does not exist is None."""
        rows = none_for_nonfinite(self.table.rows())
        return {"rows": rows, **super().to_dict(), "sentences": self.sentences()}

    def text_blocks(self) -> tuple[list[str], str, list[str]]:
        """Return what is printed: sentences, the table, and nothing after it."""
        rows = [["clip", "statistic", "p", "method"]]
        for floor, test in zip(self.floors, self.tests, strict=True):
            statistic = format_number(test.statistic, 4)
            rows.append(
                [format_clip_value(floor), statistic, _p_cell(test), test.method]
            )
        return self.sentences(), align_columns(rows), []

    def __str__(self) -> str:
        before, table, _ = self.text_blocks()
        return "\n".join([*before, table])

    def __repr__(self) -> str:
        pvalues = ", ".join(f"{test.pvalue:.4g}" for test in self.tests)
        return f"<ZeroSensitivity of {self.n_clipped} zeros: pvalue {pvalues}>"


@takes_row_options(RowOptions)
def zero_sensitivity(
    probs: Any = None,
    y: Any = None,
    *,
    statistic: Statistic = "lr",
    method: Method = "auto",
    n_resamples: int = N_RESAMPLES_REPEATED,
    seed: Seed = None,
    baseline: Any = None,
    **data: Unpack[RowOptions],
) -> ZeroSensitivity | None:
    """Test calibration with zeros clipped to 1e-12, 1e-6 and 1e-4.

    Parameters
    ----------
    probs : array-like, frame or Predictions
        Predicted probabilities, shape (n_samples, n_classes).
    y : array-like of shape (n_samples,)
        The labels that came true; not given beside a `Predictions`.
    statistic : {'lr', 'score', 'wald'}
        Likelihood ratio (the paper's), score, or Wald.
    method : {'auto', 'chi2', 'exact', 'sequential'}
        How p-values are computed: by chi-square, by `n_resamples` draws of labels, or by draws that
        stop once 50 were as extreme as the data. 'auto' takes chi-square for large tables with
        enough information, and draws labels elsewhere. All bounds share the draws, so that p-values
        can be compared.
    n_resamples : int
        Most draws of labels for a p-value.
    seed : int or numpy Generator, optional
        Makes draws repeatable.
    baseline : label, optional
        Reference class of the log odds. Default: the last class that occurs in `y`.
    logits, classes, prefix, sample_weight, normalize, clip, missing, weight_kind : optional
        How rows are read; each is described in `Predictions.from_arrays`.
    groups : array-like of shape (n_samples,), optional
        Group of each row (an animal, a patient): rows of one may depend on each other. Standard
        errors and tests then allow for that.

    Returns
    -------
    ZeroSensitivity or None
        `table`, `sentences()`, `recalibration_clip`; None when no probability was 0.

    See Also
    --------
    ZeroSensitivity : What comes out.
    Predictions : Takes `clip`, and counts what was raised.
    baseline_sensitivity : The other choice that matters.
    mcllo.exceptions.ZeroProbabilityWarning : Says that zeros were raised.

    Notes
    -----
    A label whose probability was 0 has likelihood 0. No bound makes such predictions right; a bound
    e only sets the price, about ``2 log(1 / e)`` of the likelihood ratio statistic. A bound given
    as `clip` is tried beside the others; what lay below it counts as 0.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> votes = np.array([rng.multinomial(25, row) for row in rng.dirichlet([1, 1, 1], size=200)])
    >>> y = [rng.choice(3, p=row / 25) for row in votes]
    >>> found = zero_sensitivity(votes / 25, y, seed=1)
    >>> print(found.sentences()[-1])
    Probabilities are multiples of 1/25 (fractions of 25 votes?): a penalised recalibration clips
    zeros to 1/50.
    """
    with suppress_warnings(ZeroProbabilityWarning):
        predictions = predictions_for_inference(probs, y, baseline=baseline, **data)
    return compute_zero_sensitivity(
        predictions,
        statistic=statistic,
        method=method,
        n_resamples=n_resamples,
        seed=seed,
    )


def compute_zero_sensitivity(
    predictions: Predictions,
    *,
    statistic: Statistic = "lr",
    method: Method = "auto",
    n_resamples: int = N_RESAMPLES_REPEATED,
    seed: Seed = None,
) -> ZeroSensitivity | None:
    """Return the sensitivity of validated predictions."""
    p = predictions
    is_zero = find_zero_cells(p)
    if p.n_zeros == 0 or not is_zero.any():
        return None
    if method == "auto" and p.n_expanded_probs * n_resamples > ZEROS_WORK:
        # Chi-square for large tables whose rows, the zeros aside, hold enough information.
        zeros_aside = replace(p, n_clipped=0)
        df = 2 * (p.n_classes - 1)
        trusted, _ = choose_method(zeros_aside, df, statistic, n_resamples)
        if trusted == "chi2":
            method = "chi2"
    entropy = seed_entropy(seed)
    floors = _clip_values_to_try(p)
    tests = []
    # What there is to say is said of the predictions' own fit.
    with suppress_warnings(*ESTIMATION_WARNINGS):
        for floor in floors:
            fitted = fit_and_test(
                change_clip(p, floor),
                statistic=statistic,
                method=method,
                n_resamples=n_resamples,
                seed=entropy,  # the same draws for all floors
            )
            tests.append(fitted.test)
    is_zero_of_label = is_zero[np.arange(p.n_samples), p.codes]
    resolution = resolution_before_clipping(p)
    return ZeroSensitivity(
        floors=floors,
        tests=tuple(tests),
        n_probs=p.probs.size,
        n_clipped=int(is_zero.sum()),
        n_clipped_true=int(is_zero_of_label.sum()),
        all_zero=raised_only_zeros(p),
        clip=DEFAULT_CLIP if p.clip is None else p.clip,
        lattice=resolution.votes,
        decimals=resolution.decimals,
        recalibration_clip=clip_for_votes(p, resolution.votes),
    )


def _clip_values_to_try(predictions: Predictions) -> tuple[float, ...]:
    """Return the floors to try: ours, and the one the user chose."""
    floors = {*CLIP_VALUES}
    if predictions.clip is not None:
        floors.add(predictions.clip)
    # A row of so many floors would sum to more than 1.
    possible = [floor for floor in floors if floor * predictions.n_classes < 1.0]
    return tuple(sorted(possible))


def format_clip_value(value: float) -> str:
    """Return ``1e-12``, ``1e-6``, ``1e-4``, ``0.02``."""
    if value > 1e-3:
        return f"{value:.3g}"
    text = f"{value:.3g}".replace("e-0", "e-")
    return "1e-4" if text == "0.0001" else text


def _p_cell(test: CalibrationTest, style: PStyle = pvalue_text) -> str:
    """Return the p-value; ``<= 0.002`` where no draw was as extreme as the data."""
    smallest_possible = 1.0 / (test.n_resamples + 1)
    is_smallest = test.method == "exact" and test.pvalue <= smallest_possible
    return style(
        test.pvalue, bound=is_smallest or test.method == "bound"
    ).without_equals
