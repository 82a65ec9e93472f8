import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcllo._multiplicity import closed_test, holm

PVALUES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12)


def test_one_p_value_stays():
    assert holm([0.3]) == pytest.approx([0.3])


def test_holm_by_hand():
    # sorted .01 .02 .03 .30; times 4, 3, 2, 1: .04 .06 .06 .30; running maximum, then given order
    assert holm([0.30, 0.01, 0.03, 0.02]) == pytest.approx([0.30, 0.04, 0.06, 0.06])


def test_holm_stops_at_one_and_leaves_nan_out():
    # two p-values count: 2 * .6 = 1.2 -> 1
    np.testing.assert_allclose(holm([np.nan, 0.6, 0.9]), [np.nan, 1.0, 1.0])


@settings(deadline=None, max_examples=50)
@given(PVALUES, st.floats(0.001, 0.5))
def test_holm_rejects_what_the_step_down_procedure_rejects(pvalues, alpha):
    rejected, m = set(), len(pvalues)
    for step, place in enumerate(np.argsort(pvalues, kind="stable")):
        if pvalues[place] * (m - step) > alpha:
            break
        rejected.add(int(place))
    assert set(np.flatnonzero(holm(pvalues) <= alpha).tolist()) == rejected


def test_closed_test_needs_everything_inside_rejected():
    inside = {"a": (), "b": ("a",), "c": ("a",), "d": ("a", "b", "c")}
    found = closed_test({"a": 0.01, "b": 0.20, "c": 0.04, "d": 0.001}, inside, 0.05)
    assert found == {"a": True, "b": False, "c": True, "d": False}  # d holds b


def test_what_cannot_be_tested_is_not_rejected():
    found = closed_test({"a": 0.01, "b": float("nan")}, {"a": (), "b": ("a",)}, 0.05)
    assert found == {"a": True, "b": False}
