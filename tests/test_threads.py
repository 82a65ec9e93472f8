import threading
import time

import pytest

from mcllo._threads import limit_threads, map_in_threads, n_threads, single_threaded, threads
from mcllo.exceptions import InputError


def test_the_limit_holds_inside_the_block_only():
    before = n_threads()
    with threads(3):
        assert n_threads() == 3
        with single_threaded():
            assert n_threads() == 1
        assert n_threads() == 3
    assert n_threads() == before


def test_the_limit_is_lifted_after_an_error():
    before = n_threads()
    with pytest.raises(ValueError, match="stop"), threads(7):
        raise ValueError("stop")
    assert n_threads() == before


def test_without_a_limit_there_is_at_least_one():
    with threads(None):
        assert n_threads() >= 1


@pytest.mark.parametrize("n", [1, 2, 3])
def test_results_come_in_order(n):
    def slow_first(k):
        time.sleep(0.02 if k == 0 else 0.0)
        return k * k

    with threads(n):
        assert map_in_threads(slow_first, list(range(7))) == [k * k for k in range(7)]
        assert map_in_threads(slow_first, []) == []


def test_threads_are_started_only_where_they_pay():
    def where(_):
        return threading.get_ident()

    with threads(2):
        assert set(map_in_threads(where, [0, 1, 2], pays=False)) == {threading.get_ident()}
        assert threading.get_ident() not in map_in_threads(where, [0, 1, 2])
    with single_threaded():
        assert set(map_in_threads(where, [0, 1, 2])) == {threading.get_ident()}


def test_a_worker_starts_no_threads_of_its_own():
    with threads(2):
        assert map_in_threads(lambda _: n_threads(), [0, 1, 2]) == [1, 1, 1]
        assert n_threads() == 2


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "2"])
def test_a_limit_is_a_positive_whole_number(n):
    with pytest.raises(InputError, match="number of threads must be a whole number >= 1"):
        limit_threads(n)
