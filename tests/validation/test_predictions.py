import inspect
import types
from typing import get_type_hints

import numpy as np
import pandas as pd
import pytest
from inputs import objects, refusal
from toy import TOY_X, TOY_Y

import mcllo
from mcllo import Predictions, calibration_test
from mcllo._validation.predictions import as_predictions, predictions_for_scoring
from mcllo._validation.row_options import RowOptions
from mcllo._validation.weights import (
    clean_groups,
    clean_row_facts,
    expand_count_table,
    is_count_table,
)

read = Predictions.from_arrays
NAMES = ("cat", "dog", "bird")
WORDS = np.array(NAMES)[TOY_Y]
FRAME = pd.DataFrame(TOY_X, columns=NAMES)
ZEROS = [[1.0, 0.0], [0.3, 0.7], [0.0, 1.0]]


@pytest.fixture
def toy():
    return read(FRAME, WORDS, sample_weight=np.arange(1.0, 17.0))


# ---- counts and groups --------------------------------------------------------------------------

COUNTS = np.array([[2, 1], [0, 3], [1, 0]])


@pytest.mark.parametrize("method", ["chi2", "exact"])
def test_counts_test_like_the_rows_they_stand_for(method):
    rng = np.random.default_rng(3)
    probs = rng.dirichlet([1, 1, 1], size=30)
    counts = np.array([rng.multinomial(4, row) for row in probs])
    rows, columns, times = expand_count_table(counts)
    plain = np.repeat(rows, times.astype(int))
    by_counts = calibration_test(probs, counts, method=method, n_resamples=199, seed=1)
    by_rows = calibration_test(
        probs[plain],
        np.repeat(columns, times.astype(int)),
        method=method,
        n_resamples=199,
        seed=1,
    )
    assert by_counts.statistic == pytest.approx(by_rows.statistic, rel=1e-9)
    assert by_counts.pvalue == pytest.approx(
        by_rows.pvalue, abs=0.0 if method == "exact" else 1e-9
    )


def test_columns_of_a_table_y_are_found_by_name_in_any_order():
    # three columns in a cycle: unlike a swap, a cycle is not its own inverse
    probs = pd.DataFrame({"a": [0.2, 0.5], "b": [0.3, 0.25], "c": [0.5, 0.25]})
    counts = pd.DataFrame({"c": [3, 0], "a": [1, 4], "b": [0, 2]})
    found = read(probs, counts, sample_weight=[2.0, 1.0])
    assert found.codes.tolist() == [0, 2, 0, 1]
    assert found.sample_weight.tolist() == [2.0 * 1, 2.0 * 3, 4.0, 2.0]
    hot = pd.DataFrame({"c": [1, 0], "a": [0, 1], "b": [0, 0]})
    assert read(probs, hot).codes.tolist() == [2, 0]
    hot = pd.DataFrame({"c": [0, 0], "a": [1, 0], "b": [0, 1]})
    assert read(probs, hot).codes.tolist() == [0, 1]


def test_which_tables_count():
    assert is_count_table(COUNTS)
    assert not is_count_table(np.eye(3)[TOY_Y])  # one-hot
    assert not is_count_table(TOY_X)
    assert not is_count_table([[2, -1], [1, 3]])
    error = refusal(read, [[0.5, 0.5], [0.5, 0.5]], [[1, 0], [2, -1]])
    assert error.row == 1


def test_groups_of_any_kind():
    for groups in (
        np.array([7, 3, 7]),
        pd.Series(["x", "y", "x"]),
        objects((1, 2), 3, (1, 2)),
    ):
        codes = clean_groups(groups, 3)
        assert codes[0] == codes[2] != codes[1], groups
    for groups, words in (
        (["a", "a", "a"], "at least two groups"),
        (["a", None, "b"], "groups[1] is missing"),
        (["a", "b"], "one name per row"),
    ):
        assert words in str(refusal(clean_groups, groups, 3))


def test_survey_weights_are_not_repetitions():
    weight = np.full(len(TOY_Y), 2.0)
    counted = read(TOY_X, TOY_Y, sample_weight=weight)
    sampled = read(TOY_X, TOY_Y, sample_weight=weight, weight_kind="survey")
    assert counted.has_whole_weights
    assert not sampled.has_whole_weights
    message = str(refusal(clean_row_facts, 3, None, "freq"))
    assert "'frequency', 'survey' or 'importance'; got weight_kind='freq'" in message


# ---- derived predictions ------------------------------------------------------------------------


def test_as_predictions_passes_its_own_kind(toy):
    assert as_predictions(toy) is toy
    assert as_predictions(toy, None, normalize=False, clip=None, classes=None) is toy
    assert as_predictions(toy, baseline="cat").baseline == "cat"
    assert as_predictions(TOY_X, TOY_Y, baseline=0).baseline == 0
    # it refuses what it holds already
    extra = {
        "y": TOY_Y,
        "sample_weight": np.ones(16),
        "classes": np.array(NAMES),
        "logits": TOY_X,
    }
    for name, value in [
        *extra.items(),
        ("clip", 0.0),
        ("clip", 1e-4),
        ("normalize", True),
    ]:
        message = str(refusal(as_predictions, toy, **{name: value}))
        assert message.startswith(name)
        assert message.endswith(
            "must not be given beside a Predictions; it holds its own."
        )


def test_what_is_scored_keeps_its_zeros_and_may_be_one_column(toy):
    p = predictions_for_scoring([0, 1, 0], ZEROS)
    np.testing.assert_array_equal(p.probs, ZEROS)
    assert (p.n_zeros, p.n_clipped) == (2, 0)
    p = predictions_for_scoring([0, 1], np.array([0.2, 0.7]))
    np.testing.assert_allclose(p.probs, [[0.8, 0.2], [0.3, 0.7]])
    assert "(y_true, y_prob)" in str(refusal(predictions_for_scoring, TOY_X, TOY_Y))
    assert predictions_for_scoring(None, toy) is toy
    assert "y must not be given" in str(refusal(predictions_for_scoring, TOY_Y, toy))


# ---- the default baseline occurs in the labels --------------------------------------------------

OPTIONS = np.full((4, 6), 1 / 6)  # a multiple choice of six


def test_the_default_baseline_is_the_last_class_that_occurs():
    p = Predictions.from_arrays(OPTIONS, list("ADBC"), classes=list("ABCDEF"))
    assert p.baseline == "D"
    assert p.absent == ("E", "F")
    assert (
        Predictions.from_arrays(OPTIONS, list("AFBC"), classes=list("ABCDEF")).baseline
        == "F"
    )
    # one that was asked for stays
    p = Predictions.from_arrays(
        OPTIONS, list("ADBC"), classes=list("ABCDEF"), baseline="F"
    )
    assert p.baseline == "F"
    assert p.take([0, 1]).baseline == "F"


def test_rows_of_weight_zero_do_not_occur():
    p = Predictions.from_arrays(TOY_X[:3], [0, 1, 2], sample_weight=[1, 1, 0])
    assert p.baseline == 1
    p = Predictions.from_arrays(
        TOY_X[:3], [[1, 0, 0], [2, 3, 0], [0, 1, 0]]
    )  # counted labels
    assert p.baseline == 1


def test_negative_weights_are_refused():
    found = refusal(
        Predictions.from_arrays, TOY_X, TOY_Y, sample_weight=[-1.0, *[1.0] * 15]
    )
    assert (found.argument, found.row, found.value) == ("sample_weight", 0, -1.0)


# ---- reading options ----------------------------------------------------------------------------


def test_options_that_say_how_rows_are_read_are_written_once():
    """`Predictions.from_arrays` has them; functions of ``(probs, y)`` show its list, and no other.

    Those of ``(y_true, y_prob)`` have the parameters of `sklearn.metrics`, files their own names.
    """
    options = set(get_type_hints(RowOptions))
    assert options <= set(inspect.signature(read).parameters)
    others = {"isotonic_curve", "reliability_curve", "smooth_curve", "read_predictions"}
    others.add("decide")  # it has no labels, and so only some of them
    public = {name: getattr(mcllo, name) for name in mcllo.__all__}
    functions = {n: f for n, f in public.items() if isinstance(f, types.FunctionType)}
    n_showing = 0
    for name, function in functions.items():
        code = inspect.unwrap(function).__code__
        own = set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        shown = set(inspect.signature(function).parameters)
        assert name in others or not own & options, name
        n_showing += bool((shown - own) & options)
    assert n_showing == 19
