"""`StreamingCalibration`: a test of calibration and metrics in one pass, from sums alone.

The score test of H0 (delta = gamma = 1) needs no fit, only sums at the identity:

==================  =====================================================================
score               ``u = s - A'(theta0)``, information ``H = A''(theta0)``
test                ``u' H^-1 u``, chi-square on rank(H) df
in the large        the same of the rows of u and H that belong to tau: are the classes as
                    frequent as predicted?
ECE                 top label, bins of equal width, their number fixed beforehand
its null            hits of each bin drawn from a binomial of its mean prediction: the true
                    law (Poisson-binomial) varies a little less, so the p-value errs on the
                    large side, by next to nothing where bins are narrow
==================  =====================================================================

They add over rows (`metrics/_row_sums`): batches, workers and epochs in any order give the same
numbers, and no row is kept. What needs the rows (exact p-values, intervals, which classes) is
`mcllo.assess`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from .._diagnostics.class_tests import share_test_columns
from .._inference.budget import N_RESAMPLES
from .._inference.hypothesis_test import TestResult
from .._inference.likelihood_tests import (
    CalibrationTest,
    chi2_sf,
    chi2_trust_reason,
)
from .._inference.monte_carlo import MetricNull
from .._model.kernel import Derivatives
from .._model.many_classes import is_full_hessian_affordable
from .._utils.formatting import Table, format_number, pvalue_text
from .._utils.linalg import whitening_matrix
from .._utils.results import Floats, Result
from .._validation.frames import column_names, n_columns
from .._validation.labels import Classes, find_baseline_column
from .._validation.predictions import Predictions
from .._validation.probabilities import (
    check_clip,
    simplex_from_arguments,
    warn_of_zeros,
)
from .._validation.weights import RowFacts
from ..exceptions import InputError
from ..metrics._binned import weight_and_sum_by_cell
from ..metrics._bins import NBins, equal_width_bin_index, resolve_n_bins, top_label
from ..metrics._row_sums import CleaningCounts, MetricSums, RowSums
from .assessment import table_of_class_shares


@dataclass(frozen=True, eq=False, kw_only=True)
class OnePassSums(RowSums):
    """Sums over rows, their number, and weight, predictions and hits of the top label's bins."""

    n_samples: int
    top_label_bins: Floats

    @classmethod
    def of(cls, rows: Predictions, n_bins: int) -> OnePassSums:
        """Return the sums of a batch."""
        weight = rows.sample_weight
        top, confidence = top_label(rows.probs)
        index = equal_width_bin_index(confidence, n_bins)
        hit = (top == rows.codes).astype(np.float64)
        counts, predicted = weight_and_sum_by_cell(index, confidence, n_bins, weight)
        _, hits = weight_and_sum_by_cell(index, hit, n_bins, weight)
        bins = np.stack([counts, predicted, hits])
        return cls.from_rows(rows, n_samples=rows.n_samples, top_label_bins=bins)

    @classmethod
    def of_no_rows(cls, n_classes: int, n_bins: int) -> OnePassSums:
        """Return what other sums are added to."""
        k = n_classes - 1
        by_class = np.zeros(n_classes)
        metrics = MetricSums(0.0, 0.0, 0.0, 0.0, 0.0, by_class, by_class)
        return cls(
            class_weight=by_class,
            statistic=np.zeros(2 * k),
            identity_log_partition=Derivatives(
                0.0, np.zeros(2 * k), np.zeros((2 * k, 2 * k))
            ),
            min_log_odds=np.full(k, np.inf),
            max_log_odds=np.full(k, -np.inf),
            metric_sums=metrics,
            changes=CleaningCounts(),
            n_samples=0,
            top_label_bins=np.zeros((3, n_bins)),
        )


def flatten(sums: Any) -> Iterator[Floats]:
    """Yield the numbers of a dataclass and of those inside it, None as NaN."""
    for field in fields(sums):
        value = getattr(sums, field.name)
        if is_dataclass(value):
            yield from flatten(value)
        else:
            yield np.ravel(np.nan if value is None else value).astype(np.float64)


def unflatten(like: Any, parts: Iterator[Floats]) -> Any:
    """Return a dataclass of the shapes of `like`, filled with what `flatten` made of it."""
    found: dict[str, Any] = {}
    for field in fields(like):
        value = getattr(like, field.name)
        if is_dataclass(value):
            found[field.name] = unflatten(value, parts)
            continue
        numbers = next(parts)
        if isinstance(value, np.ndarray):
            found[field.name] = numbers.reshape(value.shape)
        elif value is None:
            found[field.name] = None if np.isnan(numbers[0]) else float(numbers[0])
        else:
            found[field.name] = type(value)(numbers[0])
    return type(like)(**found)


@dataclass(frozen=True, eq=False)
class StreamingResult(Result):
    """What sums over rows say of the calibration of predictions.

    Attributes
    ----------
    n_samples : int
        Rows seen.
    classes, baseline : tuple, label
        Labels in column order, and the class that log odds refer to.
    test : CalibrationTest
        Score test of H0: delta = gamma = 1.
    log_loss, brier_score, accuracy : float
        Means over the rows, after clipping.
    ece : MetricNull
        Expected calibration error of the most probable class (`ece.observed`) with what
        calibrated predictions of these values would show.
    n_bins : int
        Bins of equal width behind the ECE.
    in_the_large : Table
        Predicted and observed share of each class with z and p-value (also Holm's).
    in_the_large_test : TestResult
        Are all classes as frequent as predicted?
    sums : Table
        Rows of each class, how many were predicted, and the sums of log odds against the baseline
        over the rows of the class and as predicted (NaN for the baseline).
    changes : CleaningCounts
        Zeros found and clipped, rows divided by their sum.

    See Also
    --------
    StreamingCalibration : Makes it.
    mcllo.Assessment : What rows in memory, or in a file, say.

    Examples
    --------
    >>> import mcllo
    >>> probs = [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]] * 10
    >>> y = [0, 1, 1, 0, 0, 0, 1, 1] * 5
    >>> found = mcllo.metrics.StreamingCalibration(2).update(probs, y).compute()
    >>> found.n_samples, found.test.df, round(found.log_loss, 3)
    (40, 2, 0.502)
    """

    n_samples: int
    classes: Classes
    baseline: Hashable
    test: CalibrationTest
    log_loss: float
    brier_score: float
    accuracy: float
    ece: MetricNull
    n_bins: int
    in_the_large: Table
    in_the_large_test: TestResult
    sums: Table
    changes: CleaningCounts
    left_out: ClassVar[tuple[str, ...]] = ("changes",)
    added: ClassVar[tuple[str, ...]] = ("n_zeros", "n_clipped")

    @property
    def n_zeros(self) -> int:
        """Probabilities of 0 that were found."""
        return self.changes.n_zeros

    @property
    def n_clipped(self) -> int:
        """Probabilities that were raised, because log odds need more than 0."""
        return self.changes.n_clipped

    @property
    def metrics(self) -> dict[str, float]:
        """The numbers that loggers take, by name."""
        return {
            "score_statistic": self.test.statistic,
            "score_pvalue": self.test.pvalue,
            "in_the_large_pvalue": self.in_the_large_test.pvalue,
            "log_loss": self.log_loss,
            "brier_score": self.brier_score,
            "accuracy": self.accuracy,
            "ece": self.ece.observed,
            "ece_expected": self.ece.mean,
            "ece_pvalue": self.ece.pvalue,
        }

    def __str__(self) -> str:
        rows = f"{self.n_samples:,} rows, {len(self.classes)} classes"
        null = f"{format_number(self.ece.low)} to {format_number(self.ece.high)}"
        lines = [
            f"{rows}, baseline {self.baseline!r}",
            f"calibration        {self.test}; {self.test.reason}",
            f"in the large       p {pvalue_text(self.in_the_large_test.pvalue)}",
            f"ECE ({self.n_bins} bins)      {format_number(self.ece.observed)}; calibrated "
            f"predictions like these show {null}, p {pvalue_text(self.ece.pvalue)}",
            f"log loss           {format_number(self.log_loss)}",
            f"Brier score        {format_number(self.brier_score)}",
            f"accuracy           {format_number(self.accuracy)}",
        ]
        if self.n_clipped:
            lines.append(
                f"{self.n_zeros:,} probabilities were 0; {self.n_clipped:,} were clipped "
                f"to {self.changes.clip:g}, on which the test depends"
            )
        return "\n".join(lines)


class StreamingCalibration:
    """Test and measure calibration batch by batch, without keeping a row.

    Batches, epochs and workers in any order and partition give the same numbers, up to rounding.
    Not rejecting does not show that the predictions are calibrated.

    Parameters
    ----------
    n_classes : int
        Number of columns of the probabilities.
    classes : sequence, optional
        The label of each column. Default: 0, 1, ..., ``n_classes - 1``.
    baseline : label, optional
        The class that log odds refer to. Default: the last one.
    n_bins : int
        Bins of equal width of the ECE; the number of rows is not known beforehand, so not "sqrt".
    clip : float, optional
        Lower bound of probabilities; see `Predictions.from_arrays`.

    Attributes
    ----------
    state : ndarray of float64
        All that is kept, O(n_classes ** 2) numbers: for frameworks that send arrays between
        processes. `merge` takes it.
    n_samples : int
        Rows seen since the last `reset`.

    See Also
    --------
    mcllo.assess : The whole answer, for rows in memory, in files or on Dask.
    mcllo.Monitor : Alarms that hold after every batch.
    mcllo.calibration_test : The same test, its p-value exact where chi-square is in doubt.

    Notes
    -----
    The p-value is for all rows together, looked at once: a p-value after each epoch of one run is
    not protected against repeated looks; `mcllo.Monitor` is. Pass logits where a softmax in single
    precision may have given zeros.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> seen = StreamingCalibration(3)
    >>> for _ in range(5):
    ...     probs = rng.dirichlet([1.0, 1.0, 1.0], size=1000)
    ...     y = (probs.cumsum(axis=1) > rng.random((1000, 1))).argmax(axis=1)
    ...     _ = seen.update(probs, y)
    >>> found = seen.compute()
    >>> found.n_samples, found.test.df, found.test.rejects(alpha=0.01)
    (5000, 4, False)
    """

    def __init__(
        self,
        n_classes: int,
        *,
        classes: Sequence[Hashable] | None = None,
        baseline: Hashable | None = None,
        n_bins: NBins = 15,
        clip: float | None = None,
    ) -> None:
        is_whole = isinstance(n_classes, (int, np.integer))
        if isinstance(n_classes, bool) or not is_whole or n_classes < 2:
            raise InputError(
                argument="n_classes", rule="be a whole number >= 2", value=n_classes
            )
        if not is_full_hessian_affordable(2 * (int(n_classes) - 1)):
            raise InputError(
                argument="n_classes",
                rule="be small enough for sums of all pairs of classes",
                value=n_classes,
                remedy="Use mcllo.assess.",
            )
        if isinstance(n_bins, str):
            raise InputError(
                argument="n_bins", rule="be a whole number >= 1", value=n_bins
            )
        check_clip(clip, int(n_classes))
        self.n_classes = int(n_classes)
        self.classes: Classes = tuple(
            range(self.n_classes) if classes is None else classes
        )
        if len(self.classes) != self.n_classes:
            raise InputError(
                argument="classes",
                rule=f"name the {self.n_classes} columns",
                found=f"{len(self.classes)} names",
            )
        self.baseline = self.classes[-1] if baseline is None else baseline
        self.baseline_index = find_baseline_column(self.baseline, self.classes)
        self.n_bins = resolve_n_bins(n_bins, 0.0)
        self.clip = clip
        self.reset()

    def __repr__(self) -> str:
        return (
            f"StreamingCalibration(n_classes={self.n_classes}, n_bins={self.n_bins}): "
            f"{self.n_samples:,} rows"
        )

    @property
    def n_samples(self) -> int:
        """Rows seen since the last `reset`."""
        return self._sums.n_samples

    @property
    def state(self) -> Floats:
        """All that is kept, as one array of numbers, which `merge` takes."""
        return np.concatenate(list(flatten(self._sums)))

    def reset(self) -> Self:
        """Forget all rows.

        Returns
        -------
        StreamingCalibration
            Itself.

        Examples
        --------
        >>> StreamingCalibration(2).update([[0.7, 0.3]], [0]).reset().n_samples
        0
        """
        self._sums = OnePassSums.of_no_rows(self.n_classes, self.n_bins)
        return self

    def update(self, probs: Any = None, y: Any = None, *, logits: Any = None) -> Self:
        """Add a batch; one that is refused changes nothing.

        Parameters
        ----------
        probs : array-like of shape (n_samples, n_classes), optional
            Predicted probabilities: an array, a frame, or a tensor of any library that knows
            ``__array__`` or DLPack, on whatever device.
        y : array-like of shape (n_samples,)
            The labels that came true.
        logits : array-like of shape (n_samples, n_classes), optional
            Scores before the softmax, in the place of `probs`.

        Returns
        -------
        StreamingCalibration
            Itself.

        Examples
        --------
        >>> StreamingCalibration(2).update(logits=[[0.0, 1.5], [2.0, 0.0]], y=[1, 0])
        StreamingCalibration(n_classes=2, n_bins=15): 2 rows
        """
        name = "probs" if logits is None else "logits"
        table = probs if logits is None else logits
        n_found = n_columns(table)
        if n_found > 1 and n_found != self.n_classes and column_names(table) is None:
            rule = f"have a column for each of the {self.n_classes} classes"
            raise InputError(argument=name, rule=rule, found=str(n_found))
        simplex = simplex_from_arguments(
            probs, logits, self.classes, normalize=False, clip=self.clip
        )
        rows = Predictions._labelled(
            simplex, y, self.classes, self.baseline, RowFacts()
        )
        self._sums = self._sums + OnePassSums.of(rows, self.n_bins)
        return self

    def merge(self, other: StreamingCalibration | NDArray[Any]) -> Self:
        """Add the rows that another one has seen, in another process say.

        Parameters
        ----------
        other : StreamingCalibration or array
            Of the same classes, baseline, bins and clip; or its `state`.

        Returns
        -------
        StreamingCalibration
            Itself.

        Examples
        --------
        >>> one = StreamingCalibration(2).update([[0.7, 0.3], [0.4, 0.6]], [0, 1])
        >>> two = StreamingCalibration(2).update([[0.2, 0.8]], [1])
        >>> StreamingCalibration(2).merge(one).merge(two.state).n_samples
        3
        """
        if isinstance(other, StreamingCalibration):
            for name in ("classes", "baseline", "n_bins", "clip"):
                own = getattr(self, name)
                theirs = getattr(other, name)
                if own != theirs:
                    raise InputError(
                        f"both must have the same {name}; got {own!r} and {theirs!r}."
                    )
            self._sums = self._sums + other._sums
            return self
        numbers = np.array(other, dtype=np.float64)  # a copy: the sums are kept
        empty = OnePassSums.of_no_rows(self.n_classes, self.n_bins)
        ends = np.cumsum([part.size for part in flatten(empty)])
        if numbers.shape != (ends[-1],):
            raise InputError(
                f"other must be the state of a StreamingCalibration of {self.n_classes} classes, "
                f"{ends[-1]} numbers; got shape {numbers.shape}."
            )
        parts = iter(np.split(numbers, ends[:-1]))
        self._sums = self._sums + unflatten(empty, parts)
        return self

    def compute(self) -> StreamingResult:
        """Return the test and the metrics of all rows so far.

        Returns
        -------
        StreamingResult
            The numbers; ``print`` it, or log its ``metrics``.

        Examples
        --------
        >>> seen = StreamingCalibration(2).update([[0.7, 0.3], [0.4, 0.6]], [0, 1])
        >>> seen.compute().accuracy
        1.0
        """
        sums = self._sums
        if sums.n_samples == 0:
            raise InputError("compute needs at least one row; call update first.")
        if self.clip is None:
            warn_of_zeros(sums.changes, sums.n_samples * self.n_classes)
        metrics = sums.metric_sums
        columns = share_test_columns(
            sums.class_weight, metrics.predicted_weight, metrics.spread, metrics.weight
        )
        n_compared = self.n_classes - 1
        is_tau = np.arange(2 * n_compared) < n_compared
        large, large_df = score_statistic(sums, is_tau)
        return StreamingResult(
            n_samples=sums.n_samples,
            classes=self.classes,
            baseline=self.baseline,
            test=score_test(sums),
            log_loss=metrics.log_loss / metrics.weight,
            brier_score=metrics.brier / metrics.weight,
            accuracy=metrics.correct_weight / metrics.weight,
            ece=ece_with_null(sums.top_label_bins),
            n_bins=self.n_bins,
            in_the_large=table_of_class_shares(self.classes, columns),
            in_the_large_test=TestResult(
                large, large_df, chi2_sf(large, large_df), "chi2"
            ),
            sums=self._table_of_sums(),
            changes=sums.changes,
        )

    def _table_of_sums(self) -> Table:
        sums = self._sums
        n_compared = self.n_classes - 1
        own = np.insert(sums.statistic[n_compared:], self.baseline_index, np.nan)
        expected = sums.identity_log_partition.gradient[n_compared:]
        columns: dict[str, Any] = {
            "class": self.classes,
            "rows": sums.class_weight,
            "predicted_rows": sums.metric_sums.predicted_weight,
            "log_odds": own,
            "predicted_log_odds": np.insert(expected, self.baseline_index, np.nan),
        }
        return Table(columns)


def score_statistic(sums: RowSums, chosen: NDArray[np.bool_]) -> tuple[float, int]:
    """Return ``u' H^-1 u`` of the chosen parameters, and the rank of H."""
    partition = sums.identity_log_partition
    score = (sums.statistic - partition.gradient)[chosen]
    roots = whitening_matrix(partition.hessian[np.ix_(chosen, chosen)])
    whitened = score @ roots
    return float(whitened @ whitened), roots.shape[1]


def score_test(sums: RowSums) -> CalibrationTest:
    """Return the score test of the identity, and whether chi-square can be trusted."""
    statistic, df = score_statistic(sums, sums.free)
    metrics = sums.metric_sums
    why = chi2_trust_reason(
        "score",
        metrics.expected_errors / max(df, 1),
        n_clipped=sums.changes.n_clipped,
        least_variance=lambda: float(metrics.spread.min()),
    )
    if why.wants_draws:
        why = why.but("one_pass")
    found = TestResult(statistic, df, chi2_sf(statistic, df), "chi2")
    return CalibrationTest.from_result(found, kind="score").because(why)


def ece_with_null(top_label_bins: Floats) -> MetricNull:
    """Return the ECE with its null, hits of each bin drawn from a binomial; always the same draws.

    Counts that are no whole numbers cannot come: labels count once, or as often as votes.
    """
    counts, predicted, hits = top_label_bins
    used = counts > 0.0
    counts = counts[used]
    predicted = predicted[used]
    total = counts.sum()
    chance = np.clip(predicted / counts, 0.0, 1.0)
    drawn = np.random.default_rng(0).binomial(
        counts.astype(np.int64), chance, size=(N_RESAMPLES, len(counts))
    )
    errors = np.abs(drawn - predicted).sum(axis=1) / total
    observed = float(np.abs(hits[used] - predicted).sum() / total)
    return MetricNull.from_draws(observed, errors, 0.95, 0)
