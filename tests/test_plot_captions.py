"""How to read each figure."""

import inspect
from dataclasses import replace

import numpy as np
import pytest
from figure_checks import assessment, comparison, hostile

from mcllo import plot
from mcllo._plot.captions import CAPTIONS
from mcllo._plot.files import figure_of
from mcllo.exceptions import InputError


def results():
    a, c = assessment(3), comparison()
    return {
        "reliability": a,
        "reliability_by_class": a,
        "parameters": a.fit,
        "calibration_map": a.fit,
        "ladder": a.details.ladder,
        "baselines": a.details.baselines,
        "comparison": c,
        "comparison_dots": c,
    }


def test_every_figure_has_a_caption():
    helpers = {"caption", "save", "to_svg"}
    assert set(CAPTIONS) == set(plot.__all__) - helpers
    for kind in CAPTIONS:
        assert "caption" in inspect.signature(getattr(plot, kind)).parameters


@pytest.mark.parametrize("kind", results())
def test_the_caption_stands_under_the_figure_when_asked_for(kind):
    result = results()[kind]
    text = plot.caption(kind, result)
    for wanted in (True, False):
        figure = figure_of(getattr(plot, kind)(result, caption=wanted))
        found = " ".join(" ".join(part.get_text().split()) for part in figure.texts)
        assert (text in found) == wanted


@pytest.mark.parametrize("kind", results())
def test_captions_do_not_overclaim(kind):
    text = plot.caption(kind, results()[kind])
    assert "is calibrated" not in text
    assert "well" not in text.split()
    assert text.endswith(".")


def test_the_baseline_is_named_and_shortened():
    assert "baseline, 2:" in plot.caption("calibration_map", assessment(3).fit)
    assert len(plot.caption("calibration_map", hostile().fit)) < 600


def test_where_there_are_no_boxes_none_are_spoken_of():
    rows = assessment(3).predictions
    weighted = replace(rows, sample_weight=np.full(rows.n_samples, 0.5))
    text = plot.caption("reliability", replace(assessment(3), predictions=weighted))
    assert "boxes" not in text
    assert "Lines: 95 % intervals." in text


def test_an_assessment_has_the_captions_of_its_details():
    a = assessment(3)
    assert plot.caption("ladder", a) == plot.caption("ladder", a.details.ladder)
    assert plot.caption("baselines", a) == plot.caption("baselines", a.details.baselines)


def test_dependent_rows_are_said_where_boxes_assume_independence():
    rows = assessment(3).predictions
    grouped = replace(rows, groups=np.arange(rows.n_samples) // 2)
    text = plot.caption("reliability", replace(assessment(3), predictions=grouped))
    assert "They assume independent rows" in text
    assert "assume" not in plot.caption("reliability", assessment(3))


def test_errors():
    with pytest.raises(InputError, match=r"kind must be one of reliability, .*; got 'pie'"):
        plot.caption("pie", assessment(3))
