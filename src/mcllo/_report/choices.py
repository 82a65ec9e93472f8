"""What the answer hangs on (baseline, floor for zeros), Bayes, and the test for dependent rows."""

from __future__ import annotations

from .._assess import Assessment
from .._baseline_result import BaselineSensitivity
from .._calibration_test import CalibrationTest
from .._plot.plain_words import format_change
from .._posterior import CalibrationPosterior, format_posterior
from .._robust import RobustTest
from .._text import format_count, format_number
from .._zeros import ZeroSensitivity, _floor
from .tables import number_cell, p_cell
from .views import (
    Cell,
    Column,
    Part,
    TableView,
    capital,
    left_out,
    name_cell,
    percent,
    printed_p,
    show_p,
)

SMALLEST_POSTERIOR = 1e-12
"""BIC is an approximation: smaller posterior probabilities would be false precision."""


def baselines_part(a: Assessment) -> Part:
    """Return how far the answer moves with the baseline."""
    found = a.details.baselines
    if found is None:
        if "baselines" in a.details.skipped:
            return Part(left_out("Other baselines are", a.details.skipped["baselines"]))
        return Part("With two classes either baseline gives the same answer.")
    how = f"exact, {format_count(found.n_resamples)} simulated data sets"
    if found.method == "bonferroni":
        how = "chi-square with Bonferroni, because fractional weights cannot be simulated"
    if found.method == "exact" and found.pvalue <= 1.001 / (found.n_resamples + 1):
        how += ", which can show no smaller one"
    over_all = f"Over all baselines together p {show_p(found.pvalue)} ({how})."
    notes = tuple(capital(note) for note in found.notes)
    verdict = found.verdict
    if _no_repair(found, found.table["baseline"].index(found.reference)):
        verdict = verdict.partition("; repaired")[0] + "."  # nothing to measure changes against
    return Part(f"{capital(verdict)} {over_all}", _baselines_table(found), notes)


def _no_repair(found: BaselineSensitivity, j: int) -> bool:
    return bool(found.table["separated"][j] or not found.table["converged"][j])


def _baselines_table(found: BaselineSensitivity) -> TableView:
    return TableView(
        "baselines",
        "Each class as the baseline. p: chi-square, of this baseline alone; the smallest of them "
        "is no valid p-value. Changes: of repaired probabilities of these rows, and of their most "
        f"probable class, against the baseline {name_cell(found.reference).text!r}.",
        (
            Column("Baseline", "name"),
            Column("Statistic"),
            Column("p"),
            Column("Mean change"),
            Column("Largest change"),
            Column("Labels that change"),
        ),
        tuple(_baseline_row(found, j) for j in range(len(found.table))),
    )


def _baseline_row(found: BaselineSensitivity, j: int) -> tuple[Cell, ...]:
    row = {name: found.table[name][j] for name in found.table.columns}
    first = (name_cell(row["baseline"]), number_cell(row["statistic"]), p_cell(row["pvalue"]))
    if row["baseline"] == found.reference:
        return (*first, Cell("reference"), Cell("-"), Cell("-"))
    if _no_repair(found, j):
        return (*first, Cell("no estimate"), Cell("-"), Cell("-"))
    changes = (_change(row["mean_change"]), _change(row["largest_change"]))
    return (*first, *changes, Cell(percent(row["label_changes"]), row["label_changes"]))


def _change(value: float) -> Cell:
    return Cell(format_change(value), value)


def zeros_part(a: Assessment, alpha: float) -> Part:
    """Return what the answer is with other floors for zeros."""
    found = a.details.zeros
    if found is not None:
        lead, *notes = found.sentences(alpha)
        return Part(printed_p(lead), _zeros_table(found), tuple(notes))
    if "zeros" in a.details.skipped and a.predictions.n_zeros:
        return Part(left_out("Other floors for zeros are", a.details.skipped["zeros"]))
    return Part("No probability was 0, so no floor was needed.")


def _zeros_table(found: ZeroSensitivity) -> TableView:
    return TableView(
        "zeros",
        "The main test with zeros raised to other floors, from the same draws where it is "
        "simulated.",
        (
            Column("Zeros raised to"),
            Column("Statistic"),
            Column("p"),
            Column("p-value by", "words"),
        ),
        tuple(
            (
                Cell(_floor(floor), floor),
                number_cell(test.statistic),
                p_cell(test.pvalue, test.method),
                Cell(_way(test)),
            )
            for floor, test in zip(found.floors, found.tests, strict=True)
        ),
    )


def _way(test: CalibrationTest) -> str:
    if test.method == "exact":
        return f"{format_count(test.n_resamples)} simulated data sets"
    return {"chi2": "chi-square", "bound": "guaranteed bound"}.get(test.method, test.method)


def posterior_part(a: Assessment) -> Part:
    """Return the posterior probability of calibration, with its warning."""
    found = a.details.posterior
    if found is None:
        unweighted = "the weights do not count rows"
        why = a.details.skipped.get("posterior", unweighted)
        return Part(left_out("The posterior probability is", why))
    return Part(_posterior_line(found), None, (printed_p(found.warning),) * bool(found.warning))


def _posterior_line(found: CalibrationPosterior) -> str:
    shown = format_posterior(found.posterior)
    if found.posterior < 1e-3:
        least = found.posterior < SMALLEST_POSTERIOR
        shown = "below 10⁻¹²" if least else show_p(found.posterior).removeprefix("= ")
    return (
        f"Posterior probability of calibration: {shown}, from even odds, if MCLLO is the only "
        f"alternative (BIC, n = {format_count(found.total_weight)}). Log Bayes factor against "
        f"calibration: {format_number(found.log_bayes_factor)}."
    )


def robust_part(a: Assessment) -> Part | None:
    """Return the test that allows for dependent rows, where it was used."""
    found = a.details.robust
    if found is None:
        return None
    title = "Dependent rows" if found.kind == "cluster" else "Survey weights"
    return Part(_robust_line(found), None, tuple(_robust_notes(found)), title)


def _robust_line(found: RobustTest) -> str:
    n = format_count(found.n_groups)
    how = "the F distribution"
    if found.method == "flip":
        how = f"{format_count(found.n_resamples)} random sign flips"
    line = (
        f"Robust score statistic {format_number(found.statistic, 4)} on {found.df} df, "
        f"p {show_p(found.pvalue)}, from {how}."
    )
    if found.kind == "cluster":
        return (
            f"Rows come in {n} groups, which may depend inside but not on each other; the variance "
            f"of the test comes from the groups. {line} Groups make that variance "
            f"{format_number(found.design_effect)} times that of independent rows."
        )
    return f"Weights are no counts, so the variance of the test comes from the {n} rows. {line}"


def _robust_notes(found: RobustTest) -> list[str]:
    unit = "groups" if found.kind == "cluster" else "weights"
    limits = [part for part in found.reason.split("; ")[1:] if part]
    return [
        f"Intervals of δ and γ allow for the {unit} too.",
        *(f"{capital(part)}." for part in limits),
        "Left out, because they assume independent rows that each count once: the kinds of "
        "miscalibration, tests of single classes, other baselines and floors, Bayes, the omnibus "
        "tests, and what the metrics would be under calibration.",
    ]
