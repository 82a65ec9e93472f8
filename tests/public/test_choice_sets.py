"""Choice sets: how they are read, what is refused, and their test."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from choice_data import ANSWERS, ROWS, simulate, vector

import mcllo
from mcllo import Predictions
from mcllo.exceptions import InputError, ZeroProbabilityWarning

nan = np.nan


def read(scores, y, kind="probs", **options):
    return Predictions.from_choices(scores, y, kind=kind, **options)


def padded():
    table = np.full((len(ROWS), 4), nan)
    for row, scores in enumerate(ROWS):
        table[row, : len(scores)] = scores
    return table


def test_padded_table_column_of_lists_and_frame_are_the_same():
    lists = vector()
    frames = [
        padded(),
        pd.DataFrame(padded()),
        pl.DataFrame(padded().tolist(), orient="row", strict=False),
        pd.Series(ROWS),
        pl.Series(ROWS),
    ]
    for scores in frames:
        p = read(scores, ANSWERS)
        assert np.array_equal(p.probs, lists.probs)
        assert np.array_equal(p.offered, lists.offered)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_long_table(frame):
    lines = []
    for question, scores in enumerate(ROWS):
        for place, score in enumerate(scores):
            right = place == ANSWERS[question]
            lines.append((f"q{question}", "ABCD"[place], score, right))
    columns = list(zip(*lines, strict=True))
    names = ("question", "option", "p", "right")
    table = frame(dict(zip(names, map(list, columns), strict=True)))
    p = read(
        table, None, question="question", option="option", score="p", right="right"
    )
    assert np.array_equal(p.probs, vector().probs)
    assert np.array_equal(p.codes, ANSWERS)


def test_log_scores_are_normalised_over_what_is_offered():
    # softmax(0, log 3) = (1/4, 3/4), also far from 0
    p = read([[0.0, np.log(3.0)], [-1e4, np.log(3.0) - 1e4, -np.inf]], [0, 1], "logits")
    assert p.probs == pytest.approx(np.array([[0.25, 0.75], [0.25, 0.75]]))
    assert p.n_renormalized == 0


def test_scores_too_far_apart_for_probabilities_keep_their_logarithms():
    p = read([[0.0, -2000.0], [0.0, -1.0]], [1, 0], "log_likelihoods")
    assert p.probs[0, 1] == 0.0
    assert p.log_odds[1, 0] == -2000.0


def test_lengths_divide_log_likelihoods():
    p = read([[-4.0, -6.0]] * 2, [0, 1], "log_likelihoods", lengths=[[2, 6]] * 2)
    # (-2, -1): the second is exp(1) times as likely
    assert p.probs[0, 1] / p.probs[0, 0] == pytest.approx(np.e)


def test_probabilities_are_divided_by_their_sum_and_counted():
    p = read([[0.6, 0.2], [0.5, 0.5]], [0, 1])
    assert p.probs[0] == pytest.approx([0.75, 0.25])
    assert p.n_renormalized == 1
    assert p.max_row_error == pytest.approx(0.2)


def test_zeros_are_clipped_where_they_are_offered():
    with pytest.warns(ZeroProbabilityWarning):
        p = read([[1.0, 0.0], [0.3, 0.3, 0.4]], [1, 0])
    assert (p.n_zeros, p.n_clipped, p.n_clipped_true) == (1, 1, 1)
    assert p.probs[0] == pytest.approx([1 / 1.000001, 1e-6 / 1.000001, 0.0], abs=1e-15)


def test_answers_are_places_or_names():
    by_name = read([[0.6, 0.4]] * 2, ["A", "B"])
    assert by_name.codes.tolist() == [0, 1]
    lanes = read([[0.6, 0.4]] * 2, [2, 1], positions=[1, 2])
    assert lanes.codes.tolist() == [1, 0]


def test_positions_that_no_row_offers_are_left_out():
    p = read([[0.6, nan, 0.4]] * 2, [0, 2])
    assert p.classes == ("A", "C")
    assert p.codes.tolist() == [0, 1]


def test_many_positions_are_numbers():
    p = read([[0.5] * 30, [0.5] * 30], [0, 29])
    assert p.classes[-1] == 30


@pytest.mark.parametrize(
    ("scores", "y", "kind", "message"),
    [
        (ROWS, ANSWERS, "scores", "kind must be 'log_likelihoods'"),
        ([[0.5, 0.5], [1.0]], [0, 0], "probs", "row 1 has one"),
        ([[nan, nan], [0.5, 0.5]], [0, 0], "logits", "row 0 has no option"),
        ([[0.5, 0.5], [0.5, 0.5]], [0, 2], "probs", "row 1 has 2, and offers A, B"),
        ([[0.5, 0.5], [0.5, 0.5]], [0, None], "probs", "row 1 has no answer"),
        ([[0.5, 0.5], [0.5, 0.5]], [0, -1], "probs", "row 1 has -1"),
        ([[0.5, 0.5, nan], [0.2, 0.3, 0.5]], [2, 0], "probs", "row 0 has 2"),
        ([[0.5, 0.5], [0.5, 0.5]], [0, 0.5], "probs", "row 1 has 0.5"),
        ([[0.5, 0.5], [-3.2, 0.5]], [0, 0], "probs", "kind='log_likelihoods'"),
        ([[0.5, 0.5], [0.0, 0.0]], [0, 0], "probs", "row 1 has none"),
        ([[0.5, np.inf]], [0], "logits", "row 0 has inf at position B"),
        ([[0.5, 0.5]], None, "probs", "say which option is right"),
        ([[0.5, 0.5]], [0, 1], "probs", "one answer per row"),
        ([], [], "probs", "at least one row"),
        ([["a", "b"]], [0], "probs", "a list of numbers for each row"),
    ],
)
def test_refused_in_one_sentence_with_the_row(scores, y, kind, message):
    with pytest.raises(InputError, match=message) as caught:
        read(scores, y, kind)
    assert "\n" not in str(caught.value)


def test_lengths_are_refused_where_they_mean_nothing():
    with pytest.raises(InputError, match="kind='log_likelihoods'"):
        read([[0.5, 0.5]], [0], lengths=[[1, 2]])
    with pytest.raises(InputError, match="lengths must be positive"):
        read([[-1.0, -2.0]], [0], "log_likelihoods", lengths=[[1, 0]])


def test_long_table_that_repeats_an_option():
    table = pd.DataFrame(
        {"q": [1, 1], "o": ["A", "A"], "p": [0.5, 0.5], "r": [True, False]}
    )
    with pytest.raises(InputError, match="line 1 of the table"):
        read(table, None, question="q", option="o", score="p", right="r")
    with pytest.raises(InputError, match="question="):
        read(table, None, question="q")


def test_functions_of_classes_refuse_choice_sets():
    with pytest.raises(InputError, match="choice sets"):
        mcllo.assess(vector())
    with pytest.raises(InputError, match="choice sets"):
        mcllo.MCLLOCalibrator().fit(vector())
    with pytest.raises(InputError, match="choice sets"):
        mcllo.metrics.classwise_calibration_error(None, vector())
    with pytest.raises(InputError, match="choice sets"):
        mcllo.report(mcllo.compare(vector(), vector(), methods=["slope"], seed=0))


def test_calibration_test_of_choice_sets():
    # methods specification, section 9a
    test = mcllo.calibration_test(vector(), method="chi2")
    assert (test.statistic, test.pvalue) == pytest.approx(
        (1.115436, 0.891815), abs=1e-6
    )
    exact = mcllo.calibration_test(vector(), method="exact", seed=0, n_resamples=499)
    assert exact.method == "exact"
    assert abs(exact.pvalue - test.pvalue) < 0.1
    with pytest.raises(InputError, match="'lr' or 'score'"):
        mcllo.calibration_test(vector(), statistic="wald")


def test_overconfident_and_biased_answers_are_found():
    test = mcllo.calibration_test(simulate(500, 5, 0.5, [0.0, 0.6, 0, 0, 0]), seed=0)
    assert test.pvalue < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "statistic"), [(2, "score"), (4, "lr"), (10, "score"), (10, "lr")]
)
def test_exact_pvalues_hold_their_level(options, statistic):
    n_sets = 200
    rejected = 0
    for seed in range(n_sets):
        test = mcllo.calibration_test(
            simulate(200, options, seed=seed),
            statistic=statistic,
            method="sequential",
            n_resamples=99,
            seed=seed + 1000,
        )
        rejected += test.pvalue <= 0.10
    # Binomial(200, .1): 7 or fewer, or 35 or more, have a chance below .1 %
    assert 7 < rejected < 35
