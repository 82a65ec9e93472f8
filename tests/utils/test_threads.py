import threading
import time

import numpy as np
import pytest
from toy import TOY_X, TOY_Y

import mcllo
from mcllo._utils import parallel as _chunks
from mcllo._utils.parallel import (
    limit_threads,
    n_threads,
    one_blas_thread,
    ordered_map,
    threads,
)
from mcllo.exceptions import InputError

pytestmark = pytest.mark.threads


def test_the_limit_holds_inside_the_block_only():
    before = n_threads()
    with threads(3):
        assert n_threads() == 3
        with threads(1):
            assert n_threads() == 1
        assert n_threads() == 3
    with pytest.raises(ValueError, match="stop"), threads(7):
        raise ValueError("stop")
    assert n_threads() == before
    with threads(None):
        assert n_threads() >= 1


def test_a_limit_is_a_positive_whole_number():
    for n in (0, 1.5, True, "2"):
        with pytest.raises(
            InputError, match="number of threads must be a whole number >= 1"
        ):
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
    monkeypatch.setattr(_chunks, "_loaded_blas_libraries", lambda: found)
    return found


@pytest.mark.parametrize("n_workers", [1, 2, 9])
@pytest.mark.parametrize("kind", [list, iter])
def test_results_are_in_the_order_of_the_items(n_workers, kind):
    def slow_first(item):
        time.sleep(0.02 if item == 0 else 0.0)
        return item * item

    found = ordered_map(slow_first, kind(range(7)), n_workers)
    assert list(found) == [0, 1, 4, 9, 16, 25, 36]
    assert list(ordered_map(slow_first, kind([]), n_workers)) == []


def test_of_an_iterator_few_items_wait():
    running, most, lock = 0, 0, threading.Lock()

    def work(item):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.002 * (item % 3))
        with lock:
            running -= 1
        return item

    drawn = []

    def items():
        for item in range(30):
            drawn.append(item)
            yield item

    for item in ordered_map(work, items(), 3):
        assert len(drawn) <= item + 5  # 3 at work, 1 waiting, this one
    assert drawn == list(range(30))
    assert most <= 3


def test_the_items_are_shared_by_threads():
    # both items wait for each other, so one thread alone would never end
    meeting = threading.Barrier(2, timeout=10.0)

    def work(item):
        meeting.wait()
        return threading.get_ident(), n_threads(), np.geterr()["over"]

    with threads(2), np.errstate(over="raise"):
        (first, *inside), (second, *other) = ordered_map(work, [0, 1], 2)
        assert n_threads() == 2
    assert first != second
    assert threading.get_ident() in (first, second)
    assert (
        inside == other == [1, "raise"]
    )  # no threads of its own; NumPy as the caller has it


def test_one_worker_or_one_item_starts_no_thread():
    for items, n_workers in (([0], 4), ([0, 1, 2], 1)):
        found = ordered_map(lambda _: threading.get_ident(), items, n_workers)
        assert set(found) == {threading.get_ident()}, n_workers


@pytest.mark.parametrize("n_workers", [1, 2])
@pytest.mark.parametrize("kind", [list, iter])
def test_an_error_of_any_thread_is_raised_and_ends_the_others(n_workers, kind):
    def work(item):
        if item == 3:
            raise ZeroDivisionError("item 3")
        return item

    before = threading.active_count()
    with pytest.raises(ZeroDivisionError, match="item 3"):
        list(ordered_map(work, kind(range(100)), n_workers))
    assert threading.active_count() == before


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


def test_blas_is_restored_after_an_exception_and_left_alone_by_small_products(
    libraries,
):
    with pytest.raises(ValueError, match="inside"), one_blas_thread():
        raise ValueError("inside")
    assert libraries[0].num_threads == 4
    with one_blas_thread(100):
        assert libraries[0].num_threads == 4


DOORS = {
    "assess": lambda: mcllo.assess(TOY_X, TOY_Y, seed=0),
    "compare": lambda: mcllo.compare(
        (TOY_X, TOY_Y), (TOY_X, TOY_Y), methods=["mcllo"], seed=0
    ),
    "nested_models": lambda: mcllo.nested_models(TOY_X, TOY_Y, n_resamples=9, seed=0),
    "bootstrap_fits": lambda: mcllo.bootstrap_fits(TOY_X, TOY_Y, n_resamples=9, seed=0),
    "auto": lambda: mcllo.AutoCalibrator().fit(TOY_X, TOY_Y),
    "dirichlet": lambda: mcllo.CALIBRATORS["dirichlet"]().fit(TOY_X, TOY_Y),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_long_work_starts_no_blas_threads(libraries, door):
    # on a busy machine threads of BLAS wait for each other: a comparison of 10 s took 340 s
    door()
    assert 1 in libraries[0].told
    assert libraries[0].num_threads == 4


class _SlowLastNumber:
    """Counts; whoever takes number 4 waits, until the others have found nothing more to do."""

    def __init__(self):
        self._numbers = iter(range(100))

    def __iter__(self):
        return self

    def __next__(self):
        number = next(self._numbers)
        if number == 4:
            time.sleep(0.1)
        return number


def test_a_number_that_was_taken_is_worked_on_though_another_worker_has_ended(
    monkeypatch,
):
    monkeypatch.setattr(_chunks.itertools, "count", _SlowLastNumber)
    assert list(ordered_map(abs, list(range(5)), 2)) == list(range(5))
