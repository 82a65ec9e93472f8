"""`_report.summarize`: results -> everything a report says."""

import json

import pytest
from report_data import PETS, calm, compared, hostile, overconfident, predictions, separated

import mcllo
from mcllo._report.summarize import assessment_of, summarize
from mcllo._report.views import show_p
from mcllo.exceptions import InputError


def test_an_assessment_is_its_own():
    a = calm()
    assert assessment_of(a) is a


def test_a_comparison_and_its_verdict_agree():
    c = compared()
    a, row = assessment_of(c), c["uncalibrated"]
    assert (a.test.pvalue, a.test.statistic) == (row.pvalue, row.statistic)
    assert a.predictions is c.holdout
    s = summarize(c)
    assert s.verdict.pvalue == f"p {show_p(row.pvalue, row.pvalue_method)}"
    assert s.kind == "comparison"
    assert s.repairs.recommendation.best == c.best


def test_the_statistic_of_a_comparison_is_that_of_assess():
    direct = mcllo.assess(predictions(500, PETS, 2.0, seed=1), seed=0, n_resamples=99)
    assert assessment_of(compared()).test.statistic == pytest.approx(direct.test.statistic)


def test_titles():
    assert summarize(calm()).title == "Calibration report"
    assert summarize(calm(), source="a/b/rows.csv").title == "Calibration report: rows.csv"
    assert summarize(calm(), title="Mine", source="rows.csv").title == "Mine"
    both = summarize(compared(), source=["train.csv", "holdout.csv"])
    assert both.title == "Repairs compared: train.csv, holdout.csv"


def test_classes_are_accused_only_after_a_rejection():
    assert summarize(calm()).departures == ()
    assert len(summarize(overconfident()).departures) == 2
    assert summarize(overconfident(), alpha=1e-40).departures == ()


def test_steps_of_a_comparison_are_about_the_repair():
    assert "Fit MCLLO" in summarize(compared()).steps[0].text


def test_separation_comes_first():
    assert summarize(separated()).alerts[0].startswith("The maximum likelihood estimate does not")


@pytest.mark.parametrize("make", [calm, overconfident, hostile, separated, compared])
def test_every_summary_is_strict_json(make):
    content = json.dumps(summarize(make()).to_dict(), allow_nan=False)
    assert json.loads(content)["verdict"]["pvalue"].startswith("p ")


def test_the_same_input_gives_the_same_summary():
    assert summarize(overconfident()) == summarize(overconfident())


def test_nothing_claims_calibration():
    s = summarize(calm())
    text = " ".join([s.verdict.headline, s.verdict.sentence, *(step.text for step in s.steps)])
    for claim in ("is calibrated", "are calibrated", "well calibrated"):
        assert claim not in text


def test_other_things_are_refused():
    with pytest.raises(InputError, match=r"must get an Assessment or a Comparison; got ndarray"):
        summarize(calm().predictions.probs)
    with pytest.raises(InputError, match=r"alpha must lie in \(0, 1\)"):
        summarize(calm(), alpha=5)
