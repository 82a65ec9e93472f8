"""What belongs to the process is left as it was found: BLAS's threads (F11).

F5, Python's warnings, is `tests/public/test_warnings.py`.
"""

import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

import mcllo
from mcllo.exceptions import InputError, SeparationWarning

pytestmark = pytest.mark.threads
RNG = np.random.default_rng(0)
PROBS = RNG.dirichlet(np.ones(4), 3000)
Y = (RNG.random((3000, 1)) > PROBS.cumsum(axis=1)[:, :-1]).sum(axis=1)
SHARP = PROBS**2 / (PROBS**2).sum(axis=1, keepdims=True)


def in_six_threads(work, times=1):
    """Run the same in six threads; the first error of any is raised."""
    errors = []

    def run():
        try:
            for _ in range(times):
                work()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def work():
    mcllo.assess(SHARP, Y, seed=0)
    mcllo.MCLLOCalibrator().fit(SHARP, Y).predict_proba(SHARP)


def blas():
    return {
        library.filepath: library
        for library in ThreadpoolController().select(user_api="blas").lib_controllers
    }


@pytest.mark.slow
@pytest.mark.parametrize("limited_before", [False, True])
def test_F11_six_threads_leave_the_threads_of_blas_as_they_were(limited_before):
    work()  # all libraries are loaded
    found = blas()
    if not found:
        pytest.skip("no BLAS that threadpoolctl knows")
    own = {path: library.num_threads for path, library in found.items()}
    try:
        for library in found.values():
            library.set_num_threads(2)
        if limited_before:
            with threadpool_limits(1):
                np.ones((200, 200)) @ np.ones((200, 200))
        before = {path: library.num_threads for path, library in found.items()}
        assert set(before.values()) == {2}
        in_six_threads(work, times=2)
        assert {path: library.num_threads for path, library in blas().items()} == before
        # and a thread that begins later sees the same
        later = []
        thread = threading.Thread(
            target=lambda: later.append(
                {p: lib.num_threads for p, lib in blas().items()}
            )
        )
        thread.start()
        thread.join()
        assert later == [before]
    finally:
        for path, library in found.items():
            library.set_num_threads(own[path])


def test_F11_an_error_gives_them_back_too():
    found = blas()
    before = {path: library.num_threads for path, library in found.items()}

    def fails():
        with pytest.raises(InputError):
            mcllo.assess(SHARP, np.full(len(Y), 9))

    in_six_threads(fails)
    assert {path: library.num_threads for path, library in blas().items()} == before


@pytest.mark.slow
def test_F5_a_thread_that_listens_does_not_silence_the_others():
    # whoever judges many fits hears their warnings instead of issuing them; others still get theirs
    separable, y = (
        np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.1, 0.9]] * 5),
        [0, 0, 1, 1] * 5,
    )
    stop = threading.Event()

    def listens():
        while not stop.is_set():
            mcllo.compare(
                (SHARP[:200], Y[:200]), cv=2, methods=["mcllo"], seed=0, n_resamples=9
            )

    thread = threading.Thread(target=listens)
    thread.start()
    try:
        for _ in range(10):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                mcllo.MCLLOCalibrator().fit(separable, y)
            assert [w.category for w in caught] == [SeparationWarning]
    finally:
        stop.set()
        thread.join()


@pytest.mark.slow
def test_importing_and_using_leaves_filters_error_state_and_signals():
    code = """
import signal, warnings, gc, sys
import numpy as np
state = lambda: (list(warnings.filters), np.geterr(), signal.getsignal(signal.SIGTERM),
                 signal.getsignal(signal.SIGINT), gc.get_threshold(), sys.getrecursionlimit())
import scipy.optimize, sklearn, pyarrow.parquet, matplotlib.figure
before = state()
import mcllo
rng = np.random.default_rng(0)
probs = rng.dirichlet(np.ones(3), 200)
y = rng.integers(0, 3, 200)
a = mcllo.assess(probs, y, seed=0)
str(a)
mcllo.CALIBRATORS["dirichlet"]().fit(probs, y).predict_proba(probs)
assert state() == before
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
