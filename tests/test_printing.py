"""Results are computed first and printed last: what shows them runs nothing that computes."""

import sys
from pathlib import Path

import pytest
import report_data
from report_data import PETS, predictions

import mcllo
from mcllo._apps.streaming.assess_file import assess_blocks
from mcllo._apps.streaming.file_blocks import blocks_of_files

SRC = Path(mcllo.__file__).parent
COMPUTING = (
    *("_model", "_fit", "_inference", "_diagnostics", "calibrators", "metrics"),
    "_decisions",
)
"""Packages that compute. Of these only what is listed below may run while a result is shown."""
RESULTS = {
    # tests: their fields, how the p-value is said, whether it is below a level
    *(
        "TestResult",
        "CalibrationTest",
        "RobustTest",
        "OmnibusTest",
        "HomogeneityTest",
        "Reason",
    ),
    *("GoodnessOfFit", "MetricNull", "CalibrationPosterior"),
    # how large a departure is
    *("EffectSize", "CrossFittedGain", "PairedLoss"),
    # the fitted map: Wald intervals are arithmetic on its covariance, at the level they are shown
    *("MCLLOFit", "MCLLOMap"),
    # what lies behind a verdict
    *(
        "NestedModels",
        "NestedModelRow",
        "ClassTests",
        "ClassAttribution",
        "MiscalibratedClass",
    ),
    *("BaselineSensitivity", "ZeroSensitivity", "Mixture", "Subgroup", "Slope"),
    # what decisions cost
    *("DecisionValue", "CostEstimate", "ActionValue", "Costs"),
    # its points that lie outside their band
    "ReliabilityCurve",
}
"""Classes of results, whose methods look up or write what they hold."""
COMPUTING_METHODS = {"recalibrate", "profile", "bootstrap", "bold"}
"""Methods of these that compute."""
SENTENCES = {"_inference/effect_size_text.py"}
"""Files of nothing but sentences."""
WRITERS = {
    *(
        "format_p_cell",
        "_p_cell",
        "format_clip_value",
        "format_posterior",
        "_percent",
        "_percent_range",
    ),
    "models_preferred_by_criteria",  # the smallest AIC and BIC of a column
}
"""Functions that write one number, or look one up."""


def computing_functions(show):
    """Return the functions that compute and run while something is shown."""
    found = set()

    def note(frame, event, _):
        if event != "call":
            return
        code = frame.f_code
        path = Path(code.co_filename)
        if SRC not in path.parents:
            return
        place = path.relative_to(SRC).as_posix()
        if not place.startswith(tuple(f"{package}/" for package in COMPUTING)):
            return
        name, *rest = code.co_qualname.split(".<locals>")[0].split(".")
        is_lookup = name in RESULTS and not COMPUTING_METHODS & set(rest)
        if not (is_lookup or name in WRITERS or place in SENTENCES):
            found.add(f"{place}: {code.co_qualname}")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        show()
    finally:
        sys.setprofile(before)
    return sorted(found)


def computing_shows(result):
    """Return which ways to show a result compute something, and what."""
    found = {how: computing_functions(show) for how, show in shows(result).items()}
    return {how: names for how, names in found.items() if names}


def shows(result):
    """Return everything that shows an assessment, or is decided by it."""
    return {
        "str": lambda: str(result),
        "repr": lambda: repr(result),
        "text at another level": lambda: result.text(0.01, tolerance=0.02),
        "full text": lambda: result.text(full=True),
        "to_dict": result.to_dict,
        "verdicts": result.verdicts,
        "notebook": result._repr_html_,
    }


MADE = (
    "overconfident",
    "calm",
    "grouped",
    "few_groups",
    "zeros",
    "wave",
    "one_off",
    "divided",
)


@pytest.mark.parametrize(
    "name", [*MADE, "separated", "hostile", "own_rows", "mixed_up"]
)
def test_showing_an_assessment_computes_nothing(name):
    a = getattr(report_data, name)()
    a._repr_html_()  # a first time, which imports what draws
    assert computing_shows(a) == {}


def test_showing_a_brief_assessment_computes_nothing():
    a = mcllo.assess(predictions(300, PETS, 2.0), seed=0, n_resamples=99)
    a._repr_html_()
    assert computing_shows(a) == {}
    # but what is asked for by name is computed
    assert any("run_class_tests" in name for name in computing_functions(a.class_tests))


def test_showing_what_decisions_cost_computes_nothing():
    rows = predictions(300, PETS, 2.0)
    a = mcllo.assess(rows, seed=0, n_resamples=99, costs={"default": 1, "abstain": 0.4})
    a._repr_html_()
    assert computing_shows(a) == {}
    value = a.decision_value
    for show in (lambda: str(value), lambda: repr(value), value.to_dict):
        assert computing_functions(show) == []


def test_a_report_is_rendered_without_computing():
    made = mcllo.report(report_data.overconfident())
    assert computing_functions(made.markdown) == []
    assert computing_functions(made.json) == []


def test_showing_a_comparison_computes_nothing():
    c = report_data.compared()
    for show in (lambda: str(c), lambda: repr(c), c.to_dict, c.statements):
        assert computing_functions(show) == []


def test_showing_a_status_computes_nothing():
    with mcllo.Monitor.start(alpha=0.05) as monitor:
        rows = predictions(300, PETS, 2.0)
        status = monitor.add(rows, batch="first")
    for show in (lambda: str(status), lambda: repr(status), status.to_dict):
        assert computing_functions(show) == []


def test_showing_rows_in_blocks_computes_nothing(tmp_path):
    rows = predictions(900, PETS, 2.0)
    lines = [",".join([*PETS, "y"])]
    for probs, code in zip(rows.probs, rows.codes, strict=True):
        lines.append(",".join([*map(repr, probs.tolist()), PETS[code]]))
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with blocks_of_files(path, label="y") as blocks:
        a = assess_blocks(
            blocks, seed=0, n_resamples=99, most_cells=1.0, subsample_rows=300
        )
    for show in (lambda: str(a), lambda: a.text(full=True), a.to_dict, a.verdicts):
        assert computing_functions(show) == []
