"""Every class as the baseline, as a figure."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from figure_checks import assert_readable, assessment, hostile, line, predictions

from mcllo._baseline import baseline_sensitivity
from mcllo._plot.baselines import baselines, baselines_in, shown_rows
from mcllo._plot.plain_words import SMALLEST_CHANGE
from mcllo._table import Table
from mcllo.exceptions import InputError


@cache
def sensitivity(n_classes=4):
    return baseline_sensitivity(predictions(n_classes, 500), n_resamples=19, seed=0)


def changed(found, **columns):
    return replace(found, table=Table(found.table.to_dict() | columns))


def marks(ax, *labels):
    """Return row -> x of the marks with these labels."""
    found = [line(ax, label) for label in labels]
    return {int(y): x for part in found if part is not None for x, y in part}


def test_marks_are_the_numbers_of_the_table():
    found = sensitivity()
    test, change = baselines(found, caption=True)
    assert marks(test, "_rejected", "_kept") == dict(enumerate(found.table["statistic"]))
    others = [j for j, name in enumerate(found.table["baseline"]) if name != found.reference]
    assert marks(change, "_mean") == {j: found.table["mean_change"][j] for j in others}
    assert marks(change, "_largest") == {j: found.table["largest_change"][j] for j in others}
    assert "reference" in assert_readable([test])


def test_rejection_is_a_diamond():
    found = changed(sensitivity(), pvalue=[0.01, 0.2, 0.05, 0.06])
    test, _ = baselines(found)
    assert set(marks(test, "_rejected")) == {0, 2}
    assert set(marks(test, "_kept")) == {1, 3}


def test_the_reference_is_marked():
    test, _ = baselines(sensitivity())
    assert [text.get_text() for text in test.get_yticklabels()] == ["0", "1", "2", "3 ◂"]


def test_tiny_changes_are_arrows():
    found = changed(sensitivity(), mean_change=[1e-9, 0.01, 0.02, 0.0])
    _, change = baselines(found)
    assert list(marks(change, "_beyond")) == [0]
    assert change.get_xlim()[0] < SMALLEST_CHANGE
    assert "< 0.0001; " in assert_readable([change])


def test_where_no_estimate_exists_no_change_is_drawn():
    found = changed(sensitivity(), separated=[True, False, False, False])
    test, change = baselines(found)
    assert 0 in marks(test, "_rejected", "_kept")
    assert 0 not in marks(change, "_mean", "_largest")
    assert "no estimate" in assert_readable([change])


def test_of_many_baselines_those_that_move_most_are_shown():
    found = sensitivity(30)
    rows = shown_rows(found, 5)
    moved = np.array(found.table["mean_change"])
    assert rows == sorted([29, *np.argsort(-moved)[:4].tolist()])
    text = assert_readable(baselines(found))
    assert "those of 30 baselines that move most: 20 are shown" in text


def test_an_assessment_has_them_and_hostile_names_are_text():
    a = hostile()
    assert baselines_in(a) is a.details.baselines
    assert "<script>alert('1')</scr…" in assert_readable(baselines(a))


def test_two_classes_have_nothing_to_draw():
    with pytest.raises(InputError, match="with two classes every baseline gives the same answer"):
        baselines(assessment(2))
