"""What lies behind the verdict, as words and tables.

=============  ===========================================
nested_models  which kind of miscalibration: nested models
baselines      does the answer hang on the baseline?
zeros          does it depend on the clipping of zeros?
posterior      Bayes
robust         the test for dependent rows
=============  ===========================================

`_apps/report/classes` has what is said of single classes.
"""

from __future__ import annotations

from dataclasses import replace

from ..._assessment.assessment import Assessment
from ..._assessment.details import INDEPENDENT
from ..._diagnostics.attribution import OTHER_SHAPE_CAVEAT
from ..._diagnostics.zero_sensitivity import format_clip_value
from ..._inference.calibration_test import needs_robust_covariance
from ..._inference.hypothesis_test import Reason
from ..._inference.posterior import bic_warning, format_posterior
from ..._utils.formatting import format_count, format_number
from ...plot._words import format_probability_change, nested_model_label
from .tables import number_cell, p_cell
from .views import (
    Column,
    Part,
    TableCell,
    TableView,
    capital,
    name_cell,
    percent,
    show_p,
    typeset,
)

METHOD_TEXTS = {
    "chi2": "chi-square",
    "exact": "exact, simulated",
    "bootstrap": "simulated from the fitted model, approximate",
    "score": "simulated scores, without refits",
    "bound": "guaranteed bound",
    "wald": "chi-square of a Wald statistic",
    "simulated": "simulated, or a guaranteed bound (≤)",
    "mixed": "partly chi-square, partly simulated or a guaranteed bound (≤)",
}


def nested_models_part(a: Assessment, alpha: float) -> Part:
    """Return the verdict of the nested models, its table, and what limits them."""
    nested_models = a.details.nested_models
    if nested_models is None:
        return Part(
            why_detail_is_omitted(a, "The kinds of miscalibration are", "nested_models")
        )
    notes = [f"{capital(nested_models.skipped)}."] if nested_models.skipped else []
    if alpha != nested_models.alpha:
        notes.append(
            f"The models are judged at level {nested_models.alpha:g}, not at {alpha:g}."
        )
    aic, bic = (
        min(getattr(row, name) for row in nested_models.rows) for name in ("aic", "bic")
    )
    rows = []
    for row in nested_models.rows:
        first, how = row.model == "identity", row.larger_method or ""
        enough = p_cell(row.larger_pvalue, how)
        enough = mark_cell_if_off(
            enough, row.rejected, METHOD_TEXTS.get(how, ""), "rejected"
        )
        if row.model == nested_models.chosen:
            enough = replace(
                enough, mark="best", note="the smallest model not rejected"
            )
        rows.append(
            (
                TableCell(nested_model_label(row.model)),
                TableCell(str(row.df), row.df),
                TableCell("0", 0.0) if first else number_cell(row.statistic),
                TableCell("-") if first else p_cell(row.pvalue, row.method),
                enough,
                *(
                    TableCell(f"{above:.1f}", above)
                    for above in (row.aic - aic, row.bic - bic)
                ),
            )
        )
    table = TableView(
        "nested_models",
        "Gain: likelihood ratio statistic against the predictions as they are, and its p-value. "
        "Enough?: p-value of the model against shifts and slopes for every class (of those against "
        f"the full matrix); ◆ rejected by closed testing at level {nested_models.alpha:g}, ★ the "
        "smallest "
        "model not rejected. AIC and BIC: above the smallest. P-values: "
        f"{pvalue_computation_text(nested_models.method, nested_models.why)}.",
        (
            Column("Model", "name"),
            Column("Parameters"),
            Column(
                "Gain",
                help="Likelihood ratio statistic against the predictions as they are",
            ),
            Column("p"),
            Column("Enough? p", help="Small: the labels contradict this model"),
            Column("AIC", help="Above the smallest"),
            Column("BIC", help="Above the smallest"),
        ),
        tuple(rows),
    )
    words = [said.text for said in nested_models.statements(typeset)]
    miscalibrated_classes = a.miscalibrated_classes
    if miscalibrated_classes is not None and miscalibrated_classes.mixture is not None:
        words = [OTHER_SHAPE_CAVEAT, *words]
    return Part(" ".join(words), table, tuple(notes))


def why_detail_is_omitted(a: Assessment, what: str, name: str) -> str:
    """Return a sentence that says what is missing, and why."""
    why = a.details.skipped.get(name, "the weights do not count rows")
    if needs_robust_covariance(a.predictions):
        one = name in ("posterior", "miscalibrated_classes")
        why = f"{'it assumes' if one else 'they assume'} {INDEPENDENT}"
    return f"{what} left out: {why}."


def pvalue_computation_text(method: str, why: Reason | None) -> str:
    """Return how p-values of nested models were computed, and why so if nobody asked for it."""
    return METHOD_TEXTS.get(method, method) + (
        "" if why is None or why.is_chosen_by_user else f" ({why})"
    )


def mark_cell_if_off(
    cell: TableCell, off: bool, title: str = "", note: str = "more than chance"
) -> TableCell:
    """Return a cell, marked where it is off."""
    return replace(
        cell, title=title, mark="off" if off else "", note=note if off else ""
    )


MIN_SHOWN_POSTERIOR = 1e-12
"""BIC is an approximation: smaller posterior probabilities would be false precision."""


def baselines_part(a: Assessment) -> Part:
    """Return how far the answer moves with the baseline."""
    found = a.details.baselines
    if found is None:
        if "baselines" in a.details.skipped:
            return Part(why_detail_is_omitted(a, "Other baselines are", "baselines"))
        return Part("With two classes either baseline gives the same answer.")
    how = f"exact, {format_count(found.n_resamples)} simulated data sets"
    if found.method == "exact" and found.pvalue <= 1.001 / (found.n_resamples + 1):
        how += ", which can show no smaller one"
    verdict, rows = found.verdict, []
    for row in found.table.rows():
        exists = row["converged"] and not row["separated"]
        changes = [TableCell("no estimate"), TableCell("-"), TableCell("-")]
        if row["baseline"] == found.reference:
            changes[0] = TableCell("reference")
            if not exists:
                verdict = f"{found.decision}."  # nothing to measure changes against
        elif exists:
            values = (row["mean_change"], row["largest_change"])
            changes = [
                TableCell(format_probability_change(value), value) for value in values
            ]
            changes.append(
                TableCell(percent(row["label_changes"]), row["label_changes"])
            )
        first = (
            name_cell(row["baseline"]),
            number_cell(row["statistic"]),
            p_cell(row["pvalue"]),
        )
        rows.append((*first, *changes))
    table = TableView(
        "baselines",
        "Each class as the baseline. p: chi-square, of this baseline alone; the smallest of them "
        "is no valid p-value. Changes: of recalibrated probabilities of these rows, and of their "
        "most "
        f"probable class, against the baseline {name_cell(found.reference).text!r}.",
        (
            Column("Baseline", "name"),
            Column("Statistic"),
            Column("p"),
            Column("Mean change"),
            Column("Largest change"),
            Column("Labels that change"),
        ),
        tuple(rows),
    )
    over_all = f"Over all baselines together p {show_p(found.pvalue)} ({how})."
    return Part(
        f"{capital(verdict)} {over_all}", table, tuple(map(capital, found.notes))
    )


def zeros_part(a: Assessment, alpha: float) -> Part:
    """Return what the answer is when zeros are clipped to other bounds."""
    found = a.details.zeros
    if found is None:
        if "zeros" in a.details.skipped and a.predictions.n_zeros:
            return Part(why_detail_is_omitted(a, "Other bounds for zeros are", "zeros"))
        return Part("No probability was 0, so nothing was clipped.")
    rows = []
    for floor, test in zip(found.floors, found.tests, strict=True):
        how = {"chi2": "chi-square", "bound": "guaranteed bound"}.get(
            test.method, test.method
        )
        if test.method == "exact":
            how = f"{format_count(test.n_resamples)} simulated data sets"
        p = p_cell(test.pvalue, test.method)
        rows.append(
            (
                TableCell(format_clip_value(floor), floor),
                number_cell(test.statistic),
                p,
                TableCell(how),
            )
        )
    table = TableView(
        "zeros",
        "The main test with zeros clipped to other bounds, from the same draws where it is "
        "simulated.",
        (
            Column("Zeros clipped to"),
            Column("Statistic"),
            Column("p"),
            Column("p-value by", "words"),
        ),
        tuple(rows),
    )
    lead, *notes = (said.text for said in found.statements(alpha, typeset))
    return Part(lead, table, tuple(notes))


def posterior_part(a: Assessment) -> Part:
    """Return the posterior probability of calibration, with its warning."""
    found = a.details.posterior
    if found is None:
        return Part(
            why_detail_is_omitted(a, "The posterior probability is", "posterior")
        )
    warning = bic_warning(
        found.posterior, found.pvalue, found.df, found.total_weight, typeset
    )
    shown = format_posterior(found.posterior)
    if found.posterior < 1e-3:
        least = found.posterior < MIN_SHOWN_POSTERIOR
        shown = "below 10⁻¹²" if least else typeset(found.posterior).without_equals
    return Part(
        f"Posterior probability of calibration: {shown}, from even odds, if MCLLO is the only "
        f"alternative (BIC, n = {format_count(found.total_weight)}). Log Bayes factor against "
        f"calibration: {format_number(found.log_bayes_factor)}.",
        notes=(warning,) if warning else (),
    )


def robust_part(a: Assessment) -> Part | None:
    """Return the test that allows for dependent rows, where it was used."""
    found = a.details.robust
    if found is None:
        return None
    cluster, n = found.kind == "cluster", format_count(found.n_groups)
    made = format_count(found.n_resamples)
    how = {
        "flip": f"{made} random sign flips",
        "draw": f"{made} simulated data sets",
    }.get(found.method, "the F distribution")
    line = (
        f"Robust score statistic {format_number(found.statistic, 4)} on {found.df} df, "
        f"p {show_p(found.pvalue)}, from {how}."
    )
    lead = (
        f"Weights are no counts: the {n} rows tell about as much as "
        f"{format_number(found.n_effective)} of equal weight. {line}"
    )
    if cluster:
        lead = (
            f"Rows come in {n} groups, which may depend inside but not on each other; the variance "
            f"of the test comes from the groups. {line} Groups make that variance "
            f"{format_number(found.design_effect)} times that of independent rows."
        )
    notes = (
        f"Intervals of δ and γ allow for the {'groups' if cluster else 'weights'} too.",
        *(f"{capital(limit)}." for limit in (*found.limits, found.obstacle) if limit),
        f"Left out, because they assume {INDEPENDENT}: the kinds of miscalibration, tests of "
        "single classes, other baselines, clipping, Bayes, the omnibus tests, and what the "
        "metrics would be under calibration.",
    )
    title = (
        "Dependent rows" if cluster else capital(f"{a.predictions.weight_kind} weights")
    )
    return Part(lead, None, notes, title)
