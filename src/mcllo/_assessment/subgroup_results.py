"""`subgroups`: is it the same map in every subgroup, and which of them is off?

====================  ======================================================================
are they alike?       one test over all of them (`_diagnostics/subgroups`)
which is off?         `decide_verdict`, which decides of all rows too, asked for each with its
                      p-value after Holm, and with size and power that allow for their number
====================  ======================================================================

Any subgroup that is calibrated is called miscalibrated with probability alpha at most, and any that
is off by the tolerance is called equivalent to calibrated, or negligible, with 2.5 % at most:
over all subgroups together. Rows that depend on each other, or that are survey-weighted, are
refused: no test here allows for them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

from .._diagnostics.subgroups import HomogeneityTest, Slope, Subgroup, assess_subgroups
from .._inference.budget import N_EXCEEDANCES_LARGE_TABLE, N_RESAMPLES
from .._inference.calibration_test import (
    FittedTest,
    fit_and_test,
    needs_robust_covariance,
    split_baseline_rule,
)
from .._inference.effect_size import EffectSize
from .._inference.effect_size_text import percentage_points
from .._inference.likelihood_tests import Method, Statistic
from .._inference.monte_carlo import Seed, seed_entropy
from .._utils.formatting import (
    Table,
    align_columns,
    ellipsis,
    format_count,
    format_interval,
    format_number,
    join_words,
    pvalue_text,
)
from .._utils.notebook import NotebookResult, show_progress
from .._utils.parallel import one_blas_thread
from .._utils.results import Result, none_for_nonfinite
from .._utils.statements import Level, Statement
from .._validation.predictions import Predictions
from .._validation.rounding import unrounded_predictions
from .._validation.row_options import TableOptions, takes_row_options
from ..exceptions import InputError
from .verdict import TOLERANCE, Kind, Verdict, decide_verdict

MAX_CLASSES_OF_SUBGROUP_MAPS = 200
"""Classes beyond which no map of each subgroup is fitted."""
MAX_SHOWN_SUBGROUPS = 12  # in the text's table
MAX_NAMED_SUBGROUPS = 4  # in a sentence
ORDER: tuple[Kind, ...] = (
    "miscalibrated",
    "negligible",
    "inconclusive",
    "not_detected",
)
"""The verdicts, worst first."""
WORDS: dict[Kind, str] = {
    "miscalibrated": "miscalibrated",
    "negligible": "negligible",
    "not_detected": "not detected",
    "inconclusive": "inconclusive",
}
"""The verdicts as entries of a table."""


@dataclass(frozen=True, eq=False, repr=False)
class Subgroups(Result, NotebookResult):
    """What was found subgroup by subgroup; print it for a table.

    Attributes
    ----------
    by : str
        What the rows are divided by.
    test : HomogeneityTest
        Does one map fit all subgroups?
    groups : tuple of Subgroup
        Each subgroup: its test, size and slope.
    slope : Slope
        Of all rows together, with its own 95 % interval.
    confidence : float
        Of each interval of a subgroup: all of them hold at once with 95 % confidence.
    seed : int
        What draws were made from.

    See Also
    --------
    subgroups : Makes it.
    Assessment : Has it as `subgroups`.
    Verdict : What ``decide_verdict`` returns for each subgroup.
    mcllo.plot.subgroups : Draws it.

    Examples
    --------
    >>> import mcllo
    >>> probs = [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]] * 10
    >>> y = [0, 1, 1, 0, 0, 0, 1, 1] * 5
    >>> station = ["hill"] * 20 + ["valley"] * 20
    >>> found = mcllo.subgroups(probs, y, by=station, seed=0, n_resamples=19)
    >>> len(found.groups), found.confidence > 0.95
    (2, True)
    """

    by: str
    test: HomogeneityTest
    groups: tuple[Subgroup, ...]
    slope: Slope
    confidence: float
    seed: int

    def decide(
        self, alpha: float = 0.05, tolerance: float = TOLERANCE
    ) -> tuple[Verdict, ...]:
        """Return the verdict of each subgroup, allowing for their number.

        Parameters
        ----------
        alpha : float
            Level of all tests together.
        tolerance : float
            Mean change of a probability that is too little to matter.

        Returns
        -------
        tuple of Verdict
            One for each of `groups`.
        """
        return tuple(
            self._subgroup_verdict(group, alpha, tolerance) for group in self.groups
        )

    def _subgroup_verdict(
        self, subgroup: Subgroup, alpha: float, tolerance: float
    ) -> Verdict:
        test = subgroup.test
        n_groups = len(self.groups)
        smallest_pvalue = n_groups / (test.n_resamples + 1)  # after Holm
        n_exceedances = test.pvalue * test.n_resamples
        is_stopped = test.sequential and n_exceedances >= N_EXCEEDANCES_LARGE_TABLE
        obstacle = None
        if test.n_resamples and not is_stopped and smallest_pvalue > alpha:
            words = (
                f"{format_count(test.n_resamples)} draws give no p-value below "
                f"{smallest_pvalue:.2g} for {n_groups} subgroups: allow more of them for level "
                f"{alpha:g}."
            )
            obstacle = Statement("obstacle.draws", words)
        adjusted = replace(test, pvalue=subgroup.adjusted)
        return decide_verdict(
            adjusted,
            subgroup.effect_size,
            alpha=alpha,
            tolerance=tolerance,
            n_samples=subgroup.n_samples,
            obstacle=obstacle,
            goodness_of_fit=subgroup.goodness_of_fit,
        )

    @property
    def table(self) -> Table:
        """One row for each subgroup, at level 0.05 and a tolerance of one percentage point."""
        return self.to_table()

    def to_table(self, alpha: float = 0.05, tolerance: float = TOLERANCE) -> Table:
        """Return name, rows, verdict, size, slope and p-values of each subgroup."""
        verdicts = self.decide(alpha, tolerance)
        sizes = [group.effect_size for group in self.groups]
        slopes = [group.slope for group in self.groups]
        tests = [group.test for group in self.groups]
        columns: dict[str, list[Any]] = {
            "subgroup": [group.name for group in self.groups],
            "n_samples": [group.n_samples for group in self.groups],
            "verdict": [verdict.kind for verdict in verdicts],
            "equivalent": [verdict.equivalent for verdict in verdicts],
            "mean_change": [size.mean_change for size in sizes],
            "low": [size.low for size in sizes],
            "high": [size.high for size in sizes],
            "slope": [slope.value for slope in slopes],
            "slope_low": [slope.low for slope in slopes],
            "slope_high": [slope.high for slope in slopes],
            "accuracy": [group.accuracy for group in self.groups],
            "expected_accuracy": [group.expected_accuracy for group in self.groups],
            "statistic": [test.statistic for test in tests],
            "pvalue": [test.pvalue for test in tests],
            "adjusted": [group.adjusted for group in self.groups],
            "method": [test.method for test in tests],
        }
        return Table(columns)

    def to_frame(self) -> Any:
        """Return the table as a pandas ``DataFrame``."""
        return self.table.to_frame()

    def ranked(self, alpha: float = 0.05, tolerance: float = TOLERANCE) -> list[int]:
        """Return the places of the subgroups, the worst verdict and the largest size first."""
        verdicts = self.decide(alpha, tolerance)

        def rank(index: int) -> tuple[int, float]:
            change = self.groups[index].effect_size.mean_change
            size = 0.0 if math.isnan(change) else change
            return ORDER.index(verdicts[index].kind), -size

        return sorted(range(len(self.groups)), key=rank)

    def statements(
        self,
        alpha: float = 0.05,
        tolerance: float = TOLERANCE,
        pooled: Verdict | None = None,
    ) -> list[Statement]:
        """Return what is found: kinds by, by.test and by.group, one for each that is off.

        `pooled` is the verdict of all rows together; where it finds nothing and a subgroup does,
        a statement of kind other.by says so beside it.
        """
        verdicts = self.decide(alpha, tolerance)
        test = _homogeneity_test_text(self, alpha)
        said = [
            _headline_statement(self, verdicts, alpha, pooled),
            Statement("by.test", test, numbers=self.test.to_dict()),
        ]
        some_are_off = any(verdict.kind == "miscalibrated" for verdict in verdicts)
        is_found = some_are_off or self.test.rejects(alpha)
        if pooled is not None and not pooled.rejected and is_found:
            found = "some subgroups are off" if some_are_off else "the subgroups differ"
            words = f"But by {ellipsis(self.by)} {found}: see below."
            said.append(Statement("other.by", words, "bad"))
        found_off = [k for k in self.ranked(alpha, tolerance) if verdicts[k].rejected]
        return said + [
            _subgroup_statement(self.groups[k], verdicts[k]) for k in found_off
        ]

    def remedy(self, alpha: float = 0.05, tolerance: float = TOLERANCE) -> str:
        """Return what to do beyond what all rows together ask for; empty when nothing."""
        if not self.test.rejects(alpha):
            return ""
        verdicts = self.decide(alpha, tolerance)
        names = [
            ellipsis(self.groups[place].name)
            for place in self.ranked(alpha, tolerance)
            if verdicts[place].kind == "miscalibrated"
        ]
        if not names:
            return "Collect more rows of each subgroup: they differ, but none is shown to be off."
        if len(names) > MAX_NAMED_SUBGROUPS:
            names = [
                *names[:MAX_NAMED_SUBGROUPS],
                f"{len(names) - MAX_NAMED_SUBGROUPS} more",
            ]
        return f"Fit a calibrator of its own to each subgroup that is off: {join_words(names)}."

    def text(
        self,
        alpha: float = 0.05,
        tolerance: float = TOLERANCE,
        pooled: Verdict | None = None,
        *,
        full: bool = True,
    ) -> str:
        """Return sentences and a table of all subgroups, or of the worst."""
        said = self.statements(alpha, tolerance, pooled)
        return "\n".join(
            [said[0].text, said[1].text, *self.table_lines(alpha, tolerance, full)]
        )

    def table_lines(self, alpha: float, tolerance: float, full: bool) -> list[str]:
        """Return the table for people, and what it does not show."""
        n_groups = len(self.groups)
        verdicts = self.decide(alpha, tolerance)
        places = list(range(n_groups))
        if n_groups > MAX_SHOWN_SUBGROUPS and not full:
            places = self.ranked(alpha, tolerance)[:MAX_SHOWN_SUBGROUPS]
        rows = [
            [
                ellipsis(self.by),
                "rows",
                "verdict",
                "off by (points)",
                "slope",
                "right (expected)",
                "p",
            ]
        ]
        rows += [
            _table_row_texts(self.groups[place], verdicts[place]) for place in places
        ]
        lines = align_columns(rows).splitlines()
        n_left_out = n_groups - len(places)
        if n_left_out:
            lines.append(f"... and {n_left_out} more subgroups, none of them worse")
        joint_confidence = 1.0 - (1.0 - self.confidence) * n_groups  # Bonferroni
        note = (
            f"All intervals together: {100 * joint_confidence:.0f} % confidence. p: adjusted for "
            f"{n_groups} subgroups. Slope below 1: overconfident, above 1: underconfident."
        )
        return [*lines, note]

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return (
            f"<Subgroups: {len(self.groups)} by {self.by!r}, one map for all: "
            f"p {self.test.p_words}>"
        )

    def to_dict(
        self, alpha: float = 0.05, tolerance: float = TOLERANCE
    ) -> dict[str, Any]:
        """Return plain Python values, with the verdict of each subgroup."""
        plain = super().to_dict()
        verdicts = self.decide(alpha, tolerance)
        plain["groups"] = [
            {**group, "verdict": none_for_nonfinite(verdict.to_dict())}
            for group, verdict in zip(plain["groups"], verdicts, strict=True)
        ]
        return plain


def _headline_statement(
    subgroups_result: Subgroups,
    verdicts: Sequence[Verdict],
    alpha: float,
    pooled: Verdict | None,
) -> Statement:
    """Return what all subgroups come to, beside what all rows together did."""
    differ = subgroups_result.test.rejects(alpha)
    some_are_off = any(verdict.rejected for verdict in verdicts)
    pooled_finds = pooled is not None and pooled.rejected
    if differ and pooled is not None and not pooled_finds:
        shown = "cannot tell" if pooled.kind == "inconclusive" else "show nothing"
        words = (
            f"All rows together {shown}, but the subgroups differ: errors in opposite directions "
            "cancel."
        )
    elif differ:
        words = "The subgroups differ: one recalibration does not suit all of them."
    elif pooled_finds:
        words = (
            "No difference between the subgroups is found: these "
            "rows support one recalibration."
        )
    elif some_are_off:
        words = "Some subgroups are off, though all of them may share one map."
    else:
        words = "No subgroup stands out."
    kinds = [verdict.kind for verdict in verdicts]
    numbers: dict[str, int] = {kind: kinds.count(kind) for kind in ORDER}
    numbers["equivalent"] = sum(verdict.equivalent for verdict in verdicts)
    level: Level = "bad" if differ or some_are_off else "plain"
    return Statement(
        "by", f"{words} {_verdict_counts_text(len(verdicts), numbers)}", level, numbers
    )


def _verdict_counts_text(n_subgroups: int, count_by_verdict: dict[str, int]) -> str:
    """Return how many subgroups have which verdict."""
    says = {
        "miscalibrated": "miscalibrated in {}",
        "negligible": "negligibly so in {}",
        "not_detected": "nothing found in {}",
        "inconclusive": "too few rows to tell in {}",
    }
    parts = [
        says[kind].format(count_by_verdict[kind])
        for kind in ORDER
        if count_by_verdict[kind]
    ]
    return f"Of {n_subgroups} subgroups: {', '.join(parts)}."


def _homogeneity_test_text(subgroups_result: Subgroups, alpha: float) -> str:
    """Return the test that one map fits all."""
    found = (
        "One map for all is rejected"
        if subgroups_result.test.rejects(alpha)
        else "One map for all may do"
    )
    words = f"{found}: {subgroups_result.test}."
    return (
        words
        if subgroups_result.test.rejects(alpha)
        else f"{words} That is not proof that they are alike."
    )


def _subgroup_statement(subgroup: Subgroup, verdict: Verdict) -> Statement:
    """Return what is wrong in one subgroup."""
    size = subgroup.effect_size
    slope = subgroup.slope
    words = (
        f"{ellipsis(subgroup.name)}: off by {mean_change_text(size, True)} percentage points "
        f"on average, right {100 * subgroup.accuracy:.0f} % where "
        f"{100 * subgroup.expected_accuracy:.0f} % were expected"
    )
    if slope.high < 1.0:
        words += f"; overconfident (slope {format_number(slope.value)})"
    elif slope.low > 1.0:
        words += f"; underconfident (slope {format_number(slope.value)})"
    words += (
        f"; p {pvalue_text(subgroup.adjusted, bound=subgroup.test.method == 'bound')}"
    )
    level: Level = "bad" if verdict.kind == "miscalibrated" else "doubt"
    numbers = {
        "subgroup": subgroup.name,
        "verdict": verdict.kind,
        "mean_change": size.mean_change,
    }
    return Statement("by.group", f"{words}.", level, numbers)


def mean_change_text(
    effect_size: EffectSize, miscalibration_found: bool = False
) -> str:
    """Return a mean change in percentage points, with what its interval says.

    Where miscalibration was `miscalibration_found` it is said even if the interval begins at 0.
    """
    if math.isnan(effect_size.mean_change):
        return "-"
    if not effect_size.high < 1.0:
        return f"about {percentage_points(effect_size.mean_change)}"
    width = effect_size.high - effect_size.low
    low = percentage_points(effect_size.low, width)
    high = percentage_points(effect_size.high, width)
    if effect_size.low == 0.0 and not miscalibration_found:
        return f"at most {high}"
    return f"{percentage_points(effect_size.mean_change, width)} ({low} to {high})"


def _table_row_texts(subgroup: Subgroup, verdict: Verdict) -> list[str]:
    """Return one row of the table for people."""
    kind = WORDS[verdict.kind]
    if verdict.kind == "not_detected" and verdict.equivalent:
        kind = "equivalent"
    slope = "-"
    if not math.isnan(subgroup.slope.value):
        interval = format_interval(subgroup.slope.low, subgroup.slope.high)
        slope = f"{format_number(subgroup.slope.value)} {interval}"
    return [
        ellipsis(subgroup.name),
        format_count(subgroup.n_samples),
        kind,
        mean_change_text(subgroup.effect_size, verdict.rejected),
        slope,
        f"{100 * subgroup.accuracy:.0f} % ({100 * subgroup.expected_accuracy:.0f} %)",
        pvalue_text(
            subgroup.adjusted, bound=subgroup.test.method == "bound"
        ).without_equals,
    ]


def check_subgroups_testable(predictions: Predictions) -> None:
    """Refuse subgroups of rows that no test of them allows for."""
    if predictions.by is None:
        return
    if needs_robust_covariance(predictions):
        other = "{weight_kind:{kind!r}}" if predictions.groups is None else "{groups}"
        raise InputError(
            f"{{by}} needs independent rows that each count once; got {other}.",
            values={"kind": predictions.weight_kind},
            argument="by",
            remedy="Assess the rows of each subgroup by themselves, or leave one of the two out.",
        )
    if predictions.n_classes > MAX_CLASSES_OF_SUBGROUP_MAPS:
        raise InputError(
            "{by} fits a map to each subgroup, of at most "
            f"{MAX_CLASSES_OF_SUBGROUP_MAPS} classes; got {predictions.n_classes:,}.",
            argument="by",
            remedy="Assess the rows of each subgroup by themselves.",
        )


@show_progress("testing subgroups")
@one_blas_thread()
def assess_fitted_subgroups(
    fitted: FittedTest, *, n_resamples: int = N_RESAMPLES, seed: int
) -> Subgroups:
    """Return the subgroups of rows that were fitted and tested, asking each as all were asked."""
    by = fitted.predictions.by
    test = fitted.test
    assert by is not None
    rule = ""
    statistic: Any = test.kind
    if test.kind == "max_score":  # of a baseline that was chosen by the labels
        rule = "auto"
        statistic = "lr"
    method: Method = "auto"
    if test.why is not None and test.why.is_chosen_by_user:
        simulated: Method = "sequential" if test.sequential else "exact"
        method = "chi2" if test.method == "chi2" else simulated
    found = assess_subgroups(
        fitted.predictions,
        rule,
        pooled=fitted,
        n_resamples=n_resamples,
        seed=seed,
        statistic=statistic,
        method=method,
    )
    return Subgroups(
        by.column, found.test, found.groups, found.slope, found.confidence, seed
    )


@takes_row_options(TableOptions)
def subgroups(
    probs: Any = None,
    y: Any = None,
    *,
    by: Any,
    baseline: Any = None,
    statistic: Statistic = "lr",
    method: Method = "auto",
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
    **data: Unpack[TableOptions],
) -> Subgroups:
    """Ask whether one map fits every subgroup of the rows, and which of them is off.

    Parameters
    ----------
    probs : array-like, frame or Predictions
        Predicted probabilities, shape (n_samples, n_classes).
    y : array-like of shape (n_samples,)
        The labels that came true; not given beside a `Predictions`.
    by : array-like of shape (n_samples,) or str
        Subgroup of each row, or the frame's column that holds it; 2 to 200 of them.
    baseline : label, optional
        Reference class of the log odds. Default: the last class that occurs in `y`.
    statistic : {'lr', 'score', 'wald'}
        Statistic of each subgroup's test.
    method : {'auto', 'chi2', 'exact', 'sequential'}
        How p-values are computed: by chi-square, by `n_resamples` draws of labels, or by draws that
        stop once 50 were as extreme as the data. 'auto' takes chi-square where it can be trusted
        and draws labels elsewhere.
    n_resamples : int
        Most draws of labels for a p-value.
    seed : int or numpy Generator, optional
        Makes draws repeatable.
    logits, classes, prefix, sample_weight, normalize, clip, missing : optional
        How rows are read; each is described in `Predictions.from_arrays`.

    Returns
    -------
    Subgroups
        `test` (is it one map?), `groups`, `table`, `decide_verdict(alpha, tolerance)`; print it.

    See Also
    --------
    Subgroups : What comes out.
    assess : Takes ``by=`` and shows the same.
    robust_test : Groups of dependent rows, which are something else.
    mcllo.plot.subgroups : Draws it.

    Notes
    -----
    p-values of subgroups are adjusted by Holm's method [1]_, and intervals hold for all subgroups
    at once. Rows that depend on each other or are survey-weighted are refused: no test here allows
    for them.

    References
    ----------
    .. [1] S. Holm (1979). A simple sequentially rejective multiple test procedure. Scandinavian
           Journal of Statistics 6:65-70.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> honest = rng.dirichlet([1, 1, 1], size=1200)
    >>> y = [rng.choice(3, p=row) for row in honest]
    >>> station = np.repeat(["hill", "valley"], 600)
    >>> power = np.where(station == "hill", 1.0, 2.5)[:, None]  # the valley boasts
    >>> probs = honest**power / (honest**power).sum(axis=1, keepdims=True)
    >>> found = subgroups(probs, y, by=station, seed=1)
    >>> found.test.rejects(0.05), [verdict.kind for verdict in found.decide()]
    (True, ['not_detected', 'miscalibrated'])
    """
    rule, baseline = split_baseline_rule(baseline)
    predictions = unrounded_predictions(probs, y, baseline=baseline, by=by, **data)
    if predictions.by is None:
        raise InputError(
            argument="by", rule="hold the subgroup of each row", value=None
        )
    check_subgroups_testable(predictions)
    entropy = seed_entropy(seed)
    asked: dict[str, Any] = {"n_resamples": n_resamples, "seed": entropy}
    fitted = fit_and_test(
        predictions, rule, statistic=statistic, method=method, **asked
    )
    return assess_fitted_subgroups(fitted, **asked)
