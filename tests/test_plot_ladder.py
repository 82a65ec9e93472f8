"""The ladder of nested models as a figure."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from figure_checks import assert_readable, hostile, line, predictions
from matplotlib.figure import Figure

import mcllo
from mcllo._ladder import ladder as climb
from mcllo._ladder_models import MODELS
from mcllo._plot.ladder import enough, ladder, ladder_in
from mcllo._plot.plain_words import model_name
from mcllo.exceptions import InputError


@cache
def climbed(n_classes=3):
    return climb(predictions(n_classes, 800), n_resamples=99, seed=0)


def test_marks_are_the_statistics_of_the_models():
    found = climbed()
    ax = ladder(found, caption=True)
    rows = dict(enumerate(found.rows))
    for label, rejected in (("_rejected", True), ("_kept", False)):
        expected = [[r.statistic, k] for k, r in rows.items() if r.rejected is rejected]
        np.testing.assert_allclose(line(ax, label), expected)
    k = [row.model for row in found.rows].index(found.chosen)
    np.testing.assert_allclose(line(ax, "_chosen"), [[rows[k].statistic, k]])
    assert_readable(ax)


def test_grey_bars_are_what_chance_gives():
    # the mean of chi-square with d degrees of freedom is d
    found = climbed()
    bars = ladder(found).containers[0]
    assert [bar.get_width() for bar in bars] == [row.df for row in found.rows]


def test_parameters_and_p_values_stand_beside():
    found = climbed()
    text = assert_readable(ladder(found))
    for row in found.rows:
        assert model_name(row.model) in text
        assert enough(row) in text
    assert "enough? p" in text


def test_the_axis_begins_at_zero():
    left, right = ladder(climbed()).get_xlim()
    assert left == 0.0
    assert right > max(row.statistic for row in climbed().rows)


@pytest.mark.parametrize("numbers", [True, False])
@pytest.mark.parametrize("chosen", MODELS)
def test_every_choice_is_readable(chosen, numbers):
    ax = ladder(replace(climbed(), chosen=chosen), numbers=numbers)
    assert f"smallest not rejected: {model_name(chosen)}" in assert_readable(ax)
    bold = [t.get_text() for t in ax.get_yticklabels() if t.get_fontweight() == "bold"]
    assert bold == [model_name(chosen)]


def test_an_assessment_has_a_ladder():
    a = hostile()
    assert ladder_in(a) is a.details.ladder
    assert_readable(ladder(a))


def test_a_missing_full_map_is_said():
    found = climbed()
    short = replace(found, rows=found.rows[:-1], skipped="the full map is left out: too large")
    assert "The full map is left out: too large." in assert_readable(ladder(short))


def test_words_of_a_p_value():
    row = climbed().rows[0]
    assert enough(replace(row, larger_pvalue=0.034)) == "0.034"
    assert enough(replace(row, larger_pvalue=1e-9, larger_method="bound")) == "≤ 1.0e-09"
    assert enough(climbed().rows[-1]) == "-"


def test_a_given_axes_is_used():
    figure = Figure(figsize=(8, 4), layout="constrained")
    ax = figure.subplots()
    assert ladder(climbed(), ax=ax) is ax
    assert figure.axes == [ax]


def test_dependent_rows_have_none():
    rows = predictions(3, 60)
    a = mcllo.assess(rows.probs, rows.codes, groups=np.arange(60) // 3, seed=0, n_resamples=19)
    with pytest.raises(InputError, match="left out here: it assumes independent rows"):
        ladder(a)
