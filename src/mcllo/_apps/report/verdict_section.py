"""The verdict and the evidence for it: the card of the first screen, and what it rests on.

==================  ===========================================================================
verdict             the kind of the assessment's verdict (`_assessment/verdict`) in plain words
                    (`_apps/report/plain`), and the test behind it in its own
headline facts      the size, and accuracy beside what is expected
==================  ===========================================================================
"""

from __future__ import annotations

import math

from ..._assessment.assessment import Assessment
from ..._assessment.verdict import Verdict as Judged
from ..._inference.effect_size import EffectSize
from ..._inference.effect_size_text import MIN_UNINFORMATIVE_BOUND, percentage_points
from ..._inference.likelihood_tests import STATISTIC_NAMES, CalibrationTest
from ..._inference.omnibus import TEST_NAMES as OMNIBUS
from ..._utils.formatting import format_count, format_number
from ..._utils.statements import Statement, select_statements
from . import plain
from .views import Fact, VerdictView, capital, percent, show_p


def build_verdict(
    a: Assessment, judged: Judged, said: list[Statement], about: str = ""
) -> VerdictView:
    """Return the answer in words, and the evidence; `about` says what is judged."""
    (headline,) = select_statements(said, "verdict")
    return VerdictView(
        kind=judged.kind,
        about=about,
        headline=headline.text,
        buts=(
            *plain.verdict_caveats(a, judged),
            *(by.text for by in select_statements(said, "other.by")),
        ),
        sentence=plain.verdict_meaning_text(a, judged),
        size=plain.error_size_text(a, judged, said),
        pvalue=f"p {show_p(a.test.pvalue, a.test.method)}",
        how=how_tested(a.test),
        why=_why_pvalue_computed_so(a),
        other=_disagreeing_tests_text(a, judged, said),
        gain=_recalibration_gain_text(a, said),
    )


def _recalibration_gain_text(a: Assessment, said: list[Statement]) -> str:
    """Return what a recalibration gains, where the rows are not mistaken."""
    if a.details.data_checks:
        return ""
    return " ".join(
        statement.text
        for statement in select_statements(said, "effect_size.recalibration")
    )


def _disagreeing_tests_text(
    a: Assessment, judged: Judged, said: list[Statement]
) -> str:
    """Return what tests say that do not agree with the main one."""
    shape = " ".join(text.text for text in said if text.kind == "other.shape")
    if not judged.omnibus_alone:
        return shape
    found = (
        f"{OMNIBUS[kind]}, p {show_p(a.omnibus_tests[kind].pvalue)}"
        for kind in judged.other
    )
    words = " ".join(text.text for text in said if text.kind == "other")
    return (
        f"{words} ({'; '.join(found)}. Asked two "
        f"questions at level {judged.alpha:g}, calibrated predictions fail one of them in up to "
        f"{200 * judged.alpha:g} % of cases.)"
    )


def how_tested(test: CalibrationTest) -> str:
    """Return the statistic and how its p-value was computed."""
    if math.isnan(test.statistic):
        return f"There is no {STATISTIC_NAMES[test.kind]} statistic"
    draws = f"{format_count(test.n_resamples)} " if test.n_resamples else ""
    ways = {
        "chi2": "from the large-sample chi-square distribution",
        "exact": f"exact, from {draws}simulated data sets",
        "bound": "a guaranteed upper bound, by the split likelihood ratio",
        "draw": f"from {draws}simulated data sets",
        "flip": f"from {draws}random sign flips",
        "f": "from the F distribution",
    }
    way = ways.get(test.method, f"by {test.method}")
    statistic = (
        f"{capital(STATISTIC_NAMES[test.kind])} statistic "
        f"{format_number(test.statistic, 4)}"
    )
    return f"{statistic} on {test.df} df; p-value {way}"


def _why_pvalue_computed_so(a: Assessment) -> str:
    """Return why the p-value was computed that way, and what its size is limited by."""
    test, robust = a.test, a.details.robust
    if not test.reason or math.isnan(test.pvalue):
        return ""
    if test.why is not None and test.why.is_chosen_by_user:
        why = "This way of computing the p-value was asked for."
    elif test.kind == "robust_score" and robust is not None:
        about = "Survey weights are no counts of rows"
        if robust.kind == "cluster":
            about = "Rows of a group may depend on each other"
        why = f"{about}, and this test allows for it ({robust.reason})."
    elif test.kind == "max_score":
        why = (
            "The baseline was chosen by these labels; the p-value pays for that choice."
        )
    elif test.method == "bound":
        why = (
            f"Chi-square cannot be trusted here ({test.reason}), and simulation could not show a "
            "p-value this small."
        )
    elif test.method == "exact":
        why = f"Simulated because chi-square cannot be trusted here ({test.reason})."
    else:
        enough = "Not simulated" if plain.in_doubt(a) else "Simulation was not needed"
        why = f"{enough} ({test.reason})."
    if test.n_resamples and test.pvalue <= 1.001 / (test.n_resamples + 1):
        what = "flips" if test.method == "flip" else "draws"
        why += f" {format_count(test.n_resamples)} {what} can give no smaller p-value."
    return why


def headline_facts(a: Assessment, judged: Judged) -> tuple[Fact, ...]:
    """Return the few numbers of the first screen; sizes where they mean something."""
    promised = f"{percent(a.expected['accuracy'])} expected if calibrated"
    accuracy = Fact("accuracy", "Accuracy", percent(a.metrics["accuracy"]), promised)
    unsure = judged.kind == "inconclusive" and a.details.robust is not None
    if unsure or a.details.data_checks:
        return (accuracy,)
    if judged.beyond:
        return (
            (*_minimum_error_fact(a.effect_size), accuracy)
            if judged.rejected
            else (accuracy,)
        )
    facts = [accuracy]
    size = _average_error_fact(a.effect_size)
    if size is not None:
        facts.insert(0, size)
    if a.effect_size.low > 0.0:
        large = f"below {_points_text(a.effect_size.p95_change)} points"
        facts.append(Fact("p95", "Error in 19 of 20 rows", large))
    return tuple(facts)


def _minimum_error_fact(size: EffectSize) -> tuple[Fact, ...]:
    """Return the limit that holds whatever the kind of error, where there is one."""
    if not size.at_least >= 0.001:
        return ()
    sure = f"{50 * (1 + size.confidence):g} % confidence"
    note = f"of probability on the wrong classes, whatever the kind of error ({sure})"
    return (
        Fact(
            "size",
            "Average error",
            f"at least {percentage_points(size.at_least)} points",
            note,
        ),
    )


def _average_error_fact(size: EffectSize) -> Fact | None:
    """Return the average error with what is known of it; None where that is nothing."""
    if math.isnan(size.mean_change):
        return None
    if size.low == 0.0 and size.high >= MIN_UNINFORMATIVE_BOUND:
        return None
    about = "of probability on the wrong classes, if of the usual kinds"
    width = size.high - size.low
    if math.isnan(width):
        shown = f"about {_points_text(size.mean_change)}"
        known = "; a rough number"
    elif size.low == 0.0:
        one_sided = 50 * (1 + size.confidence)
        shown = f"at most {_points_text(size.high, width)}"
        known = f" ({one_sided:g} % confidence)"
    else:
        low = _points_text(size.low, width)
        high = _points_text(size.high, width)
        shown = _points_text(size.mean_change, width)
        known = f" ({100 * size.confidence:g} % confidence: {low} to {high})"
    return Fact("size", "Average error", f"{shown} points", f"{about}{known}")


def _points_text(share: float, width: float = math.nan) -> str:
    """Return a change in percentage points; what rounds to nothing is less than 0.1."""
    return "less than 0.1" if share < 0.001 else percentage_points(share, width)
