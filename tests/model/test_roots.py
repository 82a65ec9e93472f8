"""The root of an increasing function."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from mcllo._model.newton import find_root


def newton(value, slope):
    """Return a function with Newton's steps, and the places where it was asked for."""
    places = []

    def function(x):
        places.append(x)
        return value(x), -value(x) / slope(x)

    return function, places


def test_a_line_by_hand():
    # 2 x - 6: from 0 the step is 3, and at 3 the value is 0
    function, places = newton(lambda x: 2.0 * x - 6.0, lambda x: 2.0)
    root = find_root(function, 0.0, -10.0, 10.0)
    assert (root.x, root.bound, root.n_iter) == (3.0, 0, 2)
    assert places == [0.0, 3.0]


@given(st.floats(-20.0, 20.0), st.floats(-3.0, 3.0))
def test_is_that_of_brent_where_newton_alone_diverges(x0, target):
    # beyond |x - root| = 1.39 Newton's steps for arctan grow
    function, places = newton(
        lambda x: math.atan(x - target), lambda x: 1.0 / (1.0 + (x - target) ** 2)
    )
    root = find_root(function, x0, -30.0, 30.0, xtol=1e-8)
    expected = brentq(lambda x: math.atan(x - target), -30.0, 30.0)
    assert root.x == pytest.approx(expected, abs=1e-7)
    assert root.n_iter == len(places) < 60


@pytest.mark.parametrize(("shift", "end", "bound"), [(50.0, 5.0, 1), (-50.0, -5.0, -1)])
def test_a_root_beyond_a_bound_is_said_to_be(shift, end, bound):
    function, _ = newton(lambda x: x - shift, lambda x: 1.0)
    root = find_root(function, 0.0, -5.0, 5.0)
    assert (root.x, root.bound) == (end, bound)


def test_running_out_of_evaluations_ends_inside_the_bracket():
    function, places = newton(
        lambda x: math.atan(x - 1.0), lambda x: 1.0 / (1.0 + (x - 1.0) ** 2)
    )
    root = find_root(function, 20.0, -30.0, 30.0, max_iter=3)
    assert root.n_iter == len(places) == 3
    assert -30.0 < root.x < 20.0


def test_the_last_step_may_be_relative():
    # exp(x) - e^3 from 3.001: the step is -0.001, less than 1e-3 of 3.001
    function, places = newton(lambda x: math.exp(x) - math.exp(3.0), math.exp)
    root = find_root(function, 3.001, 0.0, math.inf, rtol=1e-3)
    assert len(places) == 1
    assert root.x == pytest.approx(3.0, abs=1e-6)
