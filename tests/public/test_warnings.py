"""Warnings: at the caller's line, one of a kind and call, the same words each time, by thread."""

import pickle
import threading
import warnings

import numpy as np
import pytest
from inputs import case
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

import mcllo
from mcllo import CALIBRATORS, MCLLOCalibrator, Predictions, RecalibratedClassifierCV
from mcllo.exceptions import MclloWarning, SeparationWarning, ZeroProbabilityWarning

RNG = np.random.default_rng(0)
HONEST = RNG.dirichlet([1, 1, 1], size=120)
Y = np.array([RNG.choice(3, p=row) for row in HONEST])
ZEROS = HONEST.copy()
ZEROS[:5] = [1.0, 0.0, 0.0]
PERFECT = HONEST.argmax(axis=1)

CALLS = {
    "assess, zeros": lambda: mcllo.assess(ZEROS, Y, seed=0),
    "assess, separated": lambda: mcllo.assess(HONEST, PERFECT, seed=0),
    "assess, a class without rows": lambda: mcllo.assess(HONEST, Y % 2, seed=0),
    "test": lambda: mcllo.calibration_test(ZEROS, Y, seed=0),
    "nested_models": lambda: mcllo.nested_models(
        HONEST, PERFECT, n_resamples=99, seed=0
    ),
    "compare": lambda: mcllo.compare((ZEROS, Y), (ZEROS, Y), methods=["mcllo"], seed=0),
    "compare, cv": lambda: mcllo.compare(
        ZEROS, y=Y, cv=3, methods=["vector", "beta"], seed=0
    ),
    "predictions": lambda: Predictions.from_arrays(ZEROS, Y),
    "every baseline": lambda: MCLLOCalibrator(baseline="all").fit(HONEST, PERFECT),
    "a forest": lambda: RecalibratedClassifierCV(
        RandomForestClassifier(5, random_state=0), cv=3
    ).fit(HONEST, Y),
    "a class in one fold": lambda: RecalibratedClassifierCV(
        GaussianNB(), "temperature", cv=KFold(3)
    ).fit(HONEST, np.where(np.arange(120) < 2, 2, Y % 2)),
}
DATA = {
    "zeros": (ZEROS, Y),
    "separated": (HONEST, PERFECT),
    "a class without rows": (HONEST, Y % 2),
}
SILENT = {
    "zeros": {"identity", "histogram", "isotonic", "beta", "xu_davoine"},
    "separated": {"identity", "histogram", "isotonic", "beta", "xu_davoine", "auto"},
    "a class without rows": set(),
}
"""Calibrators that have nothing to warn of."""


def caught_from(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return found


def check(found, named):
    """Check warnings of a call: one of a kind, at this file's line, without counts.

    Those about classes without rows are `named`: they hold the names of classes, here numbers.
    """
    for one in found:
        assert isinstance(one.message, MclloWarning)
        assert one.filename == __file__
        words = {word.strip(".,();") for word in str(one.message).split()}
        assert not {"p-value", "statistic"} & words
        assert named or not any(word.isdecimal() for word in words - {"0", "1"})
    kinds = [type(one.message) for one in found]
    assert len(set(kinds)) == len(kinds)


@pytest.mark.parametrize("name", CALLS)
def test_one_of_a_kind_at_the_callers_line_without_counts(name):
    found = caught_from(CALLS[name])
    assert found
    check(found, named="a class" in name)


@pytest.mark.parametrize("what", DATA)
def test_calibrators_warn_once_or_have_nothing_to_warn_of(what):
    X, y = DATA[what]
    for name, calibrator in CALIBRATORS.items():
        if calibrator().input != "probs":
            continue
        with case(name):
            found = caught_from(lambda calibrator=calibrator: calibrator().fit(X, y))
            assert bool(found) == (name not in SILENT[what])
            check(found, named=what == "a class without rows")


def test_a_search_over_forests_warns_once_a_fit():
    # and not for each inner fold; scikit-learn resets the filters for each candidate and fold
    forest = RandomForestClassifier(5, random_state=0)
    model = RecalibratedClassifierCV(forest, cv=2)
    search = GridSearchCV(
        model, {"estimator__max_depth": [2, None]}, cv=2, scoring="neg_log_loss"
    )
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")  # what Python does unasked
        search.fit(HONEST, Y)
    places = [(one.category, one.filename) for one in found]
    assert places == [(ZeroProbabilityWarning, __file__)] * (2 * 2 + 1)


def test_a_pipeline_between_does_not_hide_the_line():
    model = make_pipeline(
        RecalibratedClassifierCV(RandomForestClassifier(5, random_state=0), cv=3)
    )
    (found,) = caught_from(lambda: model.fit(HONEST, Y))
    assert found.filename == __file__
    assert len(found.message.also) == 2


@pytest.mark.slow
def test_warnings_of_other_processes_come_home():
    forest = RandomForestClassifier(5, random_state=0)
    found = caught_from(
        lambda: RecalibratedClassifierCV(forest, cv=2, n_jobs=2).fit(HONEST, Y)
    )
    ours = [one for one in found if issubclass(one.category, MclloWarning)]
    assert [one.filename for one in ours] == [__file__]
    assert len(ours[0].message.also) == 1


def test_details_are_in_the_object():
    (found,) = caught_from(lambda: mcllo.calibration_test(ZEROS, Y, seed=0))
    warning = found.message
    true = int((Y[:5] != 0).sum())
    counts = {"n_zeros": 10, "n_clipped": 10, "n_clipped_true": true, "n_entries": 360}
    assert warning.numbers == {**counts, "clip": 1e-6}
    assert warning.text().startswith("10 of 360 probabilities were 0")
    again = pickle.loads(pickle.dumps(warning))
    assert (again.numbers, again.text()) == (warning.numbers, warning.text())


def test_an_error_filter_raises_and_an_ignore_filter_is_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error", SeparationWarning)
        with pytest.raises(SeparationWarning):
            MCLLOCalibrator().fit(HONEST, PERFECT)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("ignore", MclloWarning)
        MCLLOCalibrator().fit(HONEST, PERFECT)
    assert not found


def test_threads_leave_the_filters_of_the_process_as_they_are():
    # once, six threads that left `catch_warnings` in another order than they had entered it
    # switched warnings off for the whole process
    before = list(warnings.filters)

    def work():
        for _ in range(3):
            mcllo.compare(
                (HONEST, Y),
                cv=3,
                methods=["mcllo", "temperature"],
                seed=0,
                n_resamples=9,
            )

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert warnings.filters == before
    assert len(caught_from(CALLS["predictions"])) == 1
