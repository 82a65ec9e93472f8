import math

import narwhals
import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from inputs import refusal
from toy import TOY_X

import mcllo
from mcllo import Predictions
from mcllo._validation import probabilities
from mcllo._validation.probabilities import (
    clean_logits,
    clean_probs,
    simplex_from_arguments,
)
from mcllo.exceptions import InputError

ROWS = (
    st.integers(2, 5)
    .flatmap(
        lambda c: arrays(
            np.float64,
            st.tuples(st.integers(1, 8), st.just(c)),
            elements=st.floats(0, 1),
        )
    )
    .filter(lambda x: (x.sum(axis=1) > 1e-3).all())
)
"""Rows with a positive sum; hypothesis likes zeros, ones and subnormal numbers among them."""


def on_simplex(rows):
    return rows / rows.sum(axis=1, keepdims=True)


# ---- fixed points -------------------------------------------------------------------------------


def test_clean_rows_stay_as_they_are():
    clean = clean_probs(TOY_X)
    np.testing.assert_array_equal(clean.probs, TOY_X)
    assert (clean.n_zeros, clean.n_renormalized, clean.raised, clean.clip) == (
        0,
        0,
        None,
        None,
    )
    assert clean.max_row_error < 1e-15
    assert clean.logits is None
    assert clean.names is None


def test_the_result_is_new_memory():
    rows = TOY_X.copy()
    assert not np.shares_memory(clean_probs(rows).probs, rows)
    assert not np.shares_memory(clean_logits(rows).logits, rows)
    np.testing.assert_array_equal(rows, TOY_X)


def test_memory_order_does_not_matter():
    for rows in (
        np.asfortranarray(TOY_X),
        TOY_X[::-1][::-1],
        np.repeat(TOY_X, 2, axis=1)[:, ::2],
    ):
        np.testing.assert_array_equal(clean_probs(rows).probs, TOY_X)


# ---- row sums -----------------------------------------------------------------------------------


def test_a_sum_off_by_more_than_1e9_is_divided_out_and_counted():
    # 0.7 / 1.0000001 and 0.3000001 / 1.0000001; the second row is exact
    clean = clean_probs([[0.7, 0.3000001], [0.5, 0.5]])
    np.testing.assert_allclose(
        clean.probs[0], [0.7 / 1.0000001, 0.3000001 / 1.0000001], rtol=1e-15
    )
    np.testing.assert_array_equal(clean.probs[1], [0.5, 0.5])
    assert clean.n_renormalized == 1
    assert clean.max_row_error == pytest.approx(1e-7, rel=1e-6)
    # off by 1e-10: left alone
    clean = clean_probs([[0.7, 0.3 + 1e-10]])
    np.testing.assert_array_equal(clean.probs, [[0.7, 0.3 + 1e-10]])
    assert clean.n_renormalized == 0
    assert clean.max_row_error == pytest.approx(1e-10, rel=1e-4)


@pytest.mark.parametrize("off", [2e-6, -0.04])
def test_a_sum_off_by_more_is_refused(off):
    error = refusal(clean_probs, [[0.5, 0.5], [0.5, 0.5 + off]])
    assert error.row == 1
    assert f"(tolerance 1e-06); row 1 sums to {1 + off:.6g}." in str(error)
    assert "pass normalize=True" in str(error)
    far_off = refusal(clean_probs, [[0.5, 0.5, 7e-1]])
    assert "classes=" in str(far_off)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_less_precise_input_has_a_wider_tolerance_and_is_counted(dtype):
    rows = np.array([[0.7, 0.3], [0.5, 0.5], [0.5, 0.5005]], dtype)
    clean = clean_probs(rows)
    assert clean.probs.dtype == np.float64
    np.testing.assert_allclose(clean.probs.sum(axis=1), 1.0, rtol=1e-15)
    off = np.abs(rows.astype(float).sum(axis=1) - 1.0)
    assert clean.n_renormalized == (off > 1e-9).sum() >= 1
    assert clean.max_row_error == off.max()
    if dtype == "float32" or hasattr(
        narwhals, "Float16"
    ):  # older ones do not know half floats
        np.testing.assert_array_equal(
            clean_probs(pd.DataFrame(rows)).probs, clean.probs
        )
    error = refusal(clean_probs, np.array([[0.5, 0.502]], dtype))
    assert "(tolerance 0.001)" in str(error)


def test_integers_and_truth_values_are_probabilities_too():
    for rows in (np.eye(2, dtype=int), np.eye(2, dtype=bool), np.eye(2, dtype="u1")):
        clean = clean_probs(rows)
        assert clean.n_zeros == 2
        assert clean.probs.dtype == np.float64


def test_normalize_divides_by_any_positive_sum():
    # 0.2 / 0.5 = 0.4; the second row sums to 1 already
    clean = clean_probs([[0.2, 0.3], [0.25, 0.75]], normalize=True)
    np.testing.assert_allclose(clean.probs, [[0.4, 0.6], [0.25, 0.75]], rtol=1e-15)
    assert clean.n_renormalized == 1
    assert clean.max_row_error == pytest.approx(0.5)
    error = refusal(clean_probs, [[0.5, 0.5], [0.0, 0.0]], normalize=True)
    assert error.row == 1
    assert str(error).endswith("row 1 sums to 0. Drop that row.")


@settings(deadline=None, max_examples=50)
@given(ROWS)
@example(np.array([[1.0, 1e-12]]))  # off by less than 1e-9: such rows keep their digits
def test_normalising_twice_is_normalising_once(rows):
    once = clean_probs(rows, normalize=True)
    twice = clean_probs(once.probs, normalize=True)
    np.testing.assert_array_equal(twice.probs, once.probs)
    assert twice.n_renormalized == twice.n_zeros == 0
    divided = np.abs(rows.sum(axis=1) - 1.0) > 1e-9
    np.testing.assert_allclose(once.probs[divided].sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(once.probs.sum(axis=1), 1.0, rtol=1e-9)
    assert (once.probs > 0.0).all()


# ---- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "shown", "words"),
    [
        (math.nan, "nan", "be finite"),
        (-math.inf, "-inf", "be finite"),
        (-0.1, "-0.1", "lie in [0, 1]"),
        (1e308, "1e+308", "lie in [0, 1]"),
    ],
)
def test_impossible_values_are_shown_with_their_place(value, shown, words):
    rows = TOY_X.copy()
    rows[4, 1] = value
    for normalize in (False, True):
        error = refusal(clean_probs, rows, normalize=normalize)
        assert error.row == 4
        assert f"probs must {words}; got probs[4, 1]={shown}." in str(error)


def test_the_remedy_fits_the_value():
    assert refusal(clean_probs, [[np.inf, -np.inf]]).row == 0
    assert refusal(clean_probs, [[1e308, 1e308]]).row == 0
    assert "percentages" in str(refusal(clean_probs, TOY_X * 100))
    assert "logits=" in str(refusal(clean_probs, np.log(TOY_X)))
    rounding = np.array([[1.0 + 1e-16, -1e-17]])
    assert "np.clip(probs, 0, 1)" in str(refusal(clean_probs, rounding))


# ---- shapes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (
            [0.7, 0.3],
            "one-dimensional array of 2. For two classes pass np.column_stack",
        ),
        (np.zeros((2, 2, 2)), "shape (2, 2, 2)"),
        (np.empty((0, 3)), "at least one row; got none"),
        ([], "at least one row; got none"),
        ([[1.0], [1.0]], "at least two columns, one for each class; got 1"),
        (pd.DataFrame(index=[0, 1]), "at least two columns, one for each class; got 0"),
    ],
)
def test_shapes_that_are_no_predictions(rows, words):
    assert words in str(refusal(clean_probs, rows))
    assert words in str(refusal(clean_logits, rows))


# ---- zeros --------------------------------------------------------------------------------------


def test_zero_rule_by_hand():
    # row 0 holds a zero: its 0 and its 5e-7 become 1e-6, then all is divided by the new sum
    # row 1 holds none: its 5e-7 stays
    rows = [[1 - 5e-7, 5e-7, 0.0], [0.5, 0.5 - 5e-7, 5e-7]]
    clean = clean_probs(rows)
    total = 1 - 5e-7 + 2e-6
    expected = [[(1 - 5e-7) / total, 1e-6 / total, 1e-6 / total], rows[1]]
    np.testing.assert_allclose(clean.probs, expected, rtol=1e-14)
    assert clean.raised.tolist() == [[False, True, True], [False, False, False]]
    assert (clean.n_zeros, clean.clip) == (1, 1e-6)
    # other rows keep their digits: (1/3, 1/6, 1/6, 1/6, 1/6) adds up to 1 - 2^-53 in floats
    sixths = np.array([2.0, 1.0, 1.0, 1.0, 1.0]) / 6.0
    clean = clean_probs([[0.0, 0.25, 0.25, 0.25, 0.25], sixths])
    np.testing.assert_array_equal(clean.probs[1], sixths)


def test_an_explicit_floor_holds_in_every_row():
    clean = clean_probs([[0.99995, 0.00005], [1.0, 0.0], [0.5, 0.5]], clip=1e-4)
    np.testing.assert_allclose(clean.probs[0, 1], 1e-4 / 1.00005, rtol=1e-14)
    np.testing.assert_allclose(clean.probs[1, 1], 1e-4 / 1.0001, rtol=1e-14)
    assert clean.raised.tolist() == [[False, True], [False, True], [False, False]]
    assert (clean.n_zeros, clean.clip) == (1, 1e-4)
    untouched = clean_probs(TOY_X, clip=1e-4)
    np.testing.assert_array_equal(untouched.probs, TOY_X)
    assert (untouched.clip, untouched.raised) == (None, None)
    assert type(clean_probs(np.eye(2), clip=np.float32(0.01)).clip) is float


def test_a_value_at_the_floor_is_not_raised():
    clean = clean_probs([[1e-6, 1.0 - 1e-6], [0.0, 1.0]], clip=1e-6)
    assert clean.raised.tolist() == [[False, False], [True, False]]


def test_clip_0_refuses_zeros_and_passes_what_has_none():
    error = refusal(clean_probs, [[0.5, 0.5], [1.0, 0.0]], clip=0)
    assert error.row == 1
    assert "probs[1, 1]=0" in str(error)
    assert "clip=1e-6" in str(error)
    np.testing.assert_array_equal(clean_probs(TOY_X, clip=0.0).probs, TOY_X)


@pytest.mark.parametrize("clip", [-1e-9, 1 / 3, math.nan, "1e-6", True])
def test_clip_out_of_range(clip):
    message = str(refusal(clean_probs, TOY_X, clip=clip))
    assert message == f"clip must be a number in [0, 1/3); got clip={clip!r}."


def test_keep_zeros_leaves_the_zero_rule_out():
    clean = clean_probs([[1.0, 0.0], [0.4, 0.6]], keep_zeros=True)
    np.testing.assert_array_equal(clean.probs, [[1.0, 0.0], [0.4, 0.6]])
    assert (clean.n_zeros, clean.raised, clean.clip) == (1, None, None)
    # tiny probabilities are not zeros
    clean = clean_probs([[1.0, 1e-300], [5e-324, 1.0]])
    np.testing.assert_array_equal(clean.probs, [[1.0, 1e-300], [5e-324, 1.0]])
    assert clean.n_zeros == 0


@settings(deadline=None, max_examples=50)
@given(ROWS, st.data(), st.sampled_from([None, 1e-6, 1e-3]))
def test_any_partition_of_the_rows_gives_the_same_rows(rows, data, clip):
    probs = on_simplex(rows)
    cut = data.draw(st.integers(0, len(probs)))
    whole = clean_probs(probs, clip=clip)
    parts = [
        clean_probs(part, clip=clip) for part in (probs[:cut], probs[cut:]) if len(part)
    ]
    np.testing.assert_array_equal(
        np.concatenate([part.probs for part in parts]), whole.probs
    )
    assert sum(part.n_zeros for part in parts) == whole.n_zeros
    raised = [
        0 if part.raised is None else part.raised.sum() for part in [*parts, whole]
    ]
    assert sum(raised[:-1]) == raised[-1]


@settings(deadline=None, max_examples=50)
@given(ROWS)
def test_the_zero_rule_against_a_loop(rows):
    for row, clean in zip(
        on_simplex(rows), clean_probs(on_simplex(rows)).probs, strict=True
    ):
        lifted = [max(p, 1e-6) for p in row] if 0.0 in row else list(row)
        np.testing.assert_allclose(
            clean, np.array(lifted) / math.fsum(lifted), rtol=1e-9
        )


# ---- logits -------------------------------------------------------------------------------------


def test_logits_by_hand():
    # softmax(0, log 3) = (1, 3) / 4
    clean = clean_logits([[0.0, math.log(3.0)]])
    np.testing.assert_allclose(clean.probs, [[0.25, 0.75]], rtol=1e-15)
    np.testing.assert_array_equal(clean.logits, [[0.0, math.log(3.0)]])
    assert clean.logits.dtype == np.float64
    for size in (700.0, 3e38, 1e100):
        clean = clean_logits([[size, -size], [-size, -size]])
        np.testing.assert_allclose(clean.probs, [[1.0, 0.0], [0.5, 0.5]], atol=1e-300)
    # a shift changes nothing
    np.testing.assert_allclose(
        clean_logits(np.log(TOY_X) + 50.0).probs, TOY_X, rtol=1e-13
    )


@pytest.mark.parametrize("value", [math.nan, math.inf, -1e101])
def test_logits_must_be_finite(value):
    error = refusal(clean_logits, [[0.0, 1.0], [value, 0.0]])
    assert error.row == 1
    assert f"got logits[1, 0]={value:g}." in str(error)


def test_probabilities_beside_logits_are_their_softmax():
    logits = np.zeros((1, 2))
    near = simplex_from_arguments(
        np.array([[0.5005, 0.4995]]), logits, None, False, None
    )
    assert near.probs.tolist() == [[0.5, 0.5]]
    found = str(
        refusal(
            simplex_from_arguments, np.array([[0.51, 0.49]]), logits, None, False, None
        )
    )
    assert "must be the softmax of logits" in found
    assert "differs by 0.01" in found


def test_large_tables_of_single_logits_stay_single_and_change_no_number(monkeypatch):
    rng = np.random.default_rng(0)
    logits = (3.0 * rng.normal(size=(300, 3))).astype(np.float32)
    y = rng.integers(3, size=300)
    wide = Predictions.from_arrays(y=y, logits=logits)
    assert wide.logits.dtype == np.float64
    monkeypatch.setattr(probabilities, "MIN_LOGITS_KEPT_SINGLE", logits.size)
    kept = Predictions.from_arrays(y=y, logits=logits)
    assert kept.logits.dtype == np.float32
    assert kept.logits is not logits
    for name in ("probs", "log_odds"):
        assert getattr(kept, name).dtype == np.float64
        assert (getattr(kept, name) == getattr(wide, name)).all()
    assert str(mcllo.assess(kept, seed=0)) == str(mcllo.assess(wide, seed=0))
    for options in ({"baseline": "all"}, {}):
        maps = [mcllo.MCLLOCalibrator(**options).fit(rows) for rows in (kept, wide)]
        first, second = (
            one.predict_proba(rows)
            for one, rows in zip(maps, (kept, wide), strict=True)
        )
        assert (first == second).all()
    found = [
        mcllo.calibration_test(rows, baseline="auto", seed=0) for rows in (kept, wide)
    ]
    assert found[0].statistic == found[1].statistic
    logits[7, 1] = np.inf
    with pytest.raises(InputError, match="finite"):
        Predictions.from_arrays(y=y, logits=logits)
