import threading
import time

import numpy as np
import pytest
from toy import TOY_X, TOY_Y

import mcllo
from mcllo._ground import threads as _chunks
from mcllo._ground.threads import (
    THREADS_PAY,
    borrowed,
    limit_threads,
    map_in_threads,
    n_threads,
    one_blas_thread,
    ordered_map,
    single_threaded,
    threads,
    threads_for,
)
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


class Library:
    """A BLAS that remembers how many threads it was told to use."""

    def __init__(self, num_threads):
        self.num_threads = num_threads
        self.told = []

    def set_num_threads(self, number):
        self.num_threads = number
        self.told.append(number)


@pytest.fixture
def libraries(monkeypatch):
    found = [Library(4), Library(1)]
    monkeypatch.setattr(_chunks, "_blas_libraries", lambda: found)
    return found


@pytest.mark.parametrize("n_workers", [1, 2, 3, 9])
def test_results_are_in_the_order_of_the_tasks(n_workers):
    assert ordered_map(lambda task: task * task, 5, n_workers) == [0, 1, 4, 9, 16]
    assert ordered_map(lambda task: task, 0, n_workers) == []


def test_the_tasks_are_shared_by_threads():
    # both tasks wait for each other, so one thread alone would never end
    meeting = threading.Barrier(2, timeout=10.0)

    def work(task):
        meeting.wait()
        return threading.get_ident()

    first, second = ordered_map(work, 2, 2)
    assert first != second
    assert threading.get_ident() in (first, second)


@pytest.mark.parametrize("n_workers", [1, 2])
def test_an_exception_of_any_thread_is_raised(n_workers):
    def work(task):
        if task == 3:
            raise ZeroDivisionError("task 3")
        return task

    with pytest.raises(ZeroDivisionError, match="task 3"):
        ordered_map(work, 40, n_workers)


def test_threads_have_the_error_state_of_the_caller():
    meeting = threading.Barrier(2, timeout=10.0)

    def work(task):
        meeting.wait()
        return np.geterr()["over"]

    with np.errstate(over="raise"):
        assert ordered_map(work, 2, 2) == ["raise", "raise"]


def test_how_many_threads():
    assert threads_for(THREADS_PAY - 1) == 1
    assert threads_for(1, 3) == 3
    assert threads_for(10**9, 1) == 1
    with threads(5):
        assert threads_for(THREADS_PAY) == 5
        assert threads_for(1, -1) == 5
    with threads(1):
        assert threads_for(10**9) == 1
    with threads(100):
        assert threads_for(10**9) == _chunks.MOST_THREADS


def test_a_buffer_comes_back_and_is_lent_again():
    spare = []
    with borrowed(spare, (2, 3), np.float32) as first, borrowed(spare, (2, 3), np.float32) as other:
        assert first.shape == (2, 3)
        assert first.dtype == np.float32
        assert first is not other
        assert spare == []
    assert len(spare) == 2
    with borrowed(spare, (2, 3), np.float32) as again:
        assert any(again is buffer for buffer in (first, other))


def test_blas_has_one_thread_inside_and_its_own_number_after(libraries):
    with one_blas_thread():
        assert [library.num_threads for library in libraries] == [1, 1]
        with one_blas_thread():
            assert libraries[0].num_threads == 1
        assert libraries[0].num_threads == 1  # the outer block is still at work
    assert [library.num_threads for library in libraries] == [4, 1]
    assert libraries[0].told == [1, 4]
    assert libraries[1].told == []


def test_the_last_of_several_threads_restores(libraries):
    inside, done = threading.Event(), threading.Event()

    def other():
        with one_blas_thread():
            inside.set()
            done.wait(10.0)

    thread = threading.Thread(target=other)
    with one_blas_thread():
        thread.start()
        inside.wait(10.0)
    assert libraries[0].num_threads == 1
    done.set()
    thread.join()
    assert libraries[0].num_threads == 4


def test_blas_is_restored_after_an_exception(libraries):
    with pytest.raises(ValueError, match="inside"), one_blas_thread():
        raise ValueError("inside")
    assert libraries[0].num_threads == 4


def test_small_products_leave_blas_alone(libraries):
    with one_blas_thread(100):
        assert libraries[0].num_threads == 4


def test_the_libraries_are_those_of_numpy():
    np.ones((2, 2)) @ np.ones((2, 2))
    for library in _chunks._blas_libraries():
        assert library.num_threads >= 1


DOORS = {
    "assess": lambda: mcllo.assess(TOY_X, TOY_Y, seed=0),
    "details": lambda: mcllo.assess(TOY_X, TOY_Y, seed=0).details.class_tests,
    "compare": lambda: mcllo.compare((TOY_X, TOY_Y), (TOY_X, TOY_Y), methods=["mcllo"], seed=0),
    "ladder": lambda: mcllo.ladder(TOY_X, TOY_Y, n_resamples=9, seed=0),
    "class_tests": lambda: mcllo.class_tests(TOY_X, TOY_Y, n_resamples=9, seed=0),
    "bootstrap_fits": lambda: mcllo.bootstrap_fits(TOY_X, TOY_Y, n_resamples=9, seed=0),
    "auto": lambda: mcllo.AutoCalibrator().fit(TOY_X, TOY_Y),
    "dirichlet": lambda: mcllo.CALIBRATORS["dirichlet"]().fit(TOY_X, TOY_Y),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_long_work_starts_no_blas_threads(monkeypatch, door):
    # on a busy machine threads of BLAS wait for each other: a comparison of 10 s took 340 s
    inside, most = [0], [0]

    def enter():
        inside[0] += 1
        most[0] = max(most[0], inside[0])

    monkeypatch.setattr(_chunks, "_enter", enter)
    monkeypatch.setattr(_chunks, "_leave", lambda: inside.__setitem__(0, inside[0] - 1))
    door()
    assert most[0] > 0
    assert inside[0] == 0
