"""What every calibrator promises, as checks of an estimator class with options.

Each takes a function that makes a fresh estimator; labels are strings where it can matter.
"""

import numpy as np
import pandas as pd
import pytest
from toy import TOY_X, TOY_Y

from mcllo import calibrators
from mcllo.exceptions import AbsentClassWarning

NAMES = np.array(["ant", "bee", "cat"])


def rows_sum_to_one_and_zeros_are_fine(make):
    X = np.vstack([TOY_X, [[1.0, 0.0, 0.0], [0.0, 0.4, 0.6]]])
    y = np.append(TOY_Y, [0, 2])
    for rows in (X, TOY_X):
        answer = make().fit(X, y).predict_proba(rows)
        assert answer.shape == rows.shape
        assert (answer >= 0.0).all()
        np.testing.assert_allclose(answer.sum(axis=1), 1.0, atol=1e-12)


def string_labels_and_frames_give_the_same_numbers(make):
    plain = make().fit(TOY_X, TOY_Y)
    frame = pd.DataFrame(TOY_X, columns=NAMES)
    named = make().fit(frame, NAMES[TOY_Y])
    assert named.classes_.tolist() == NAMES.tolist()
    assert named.feature_names_in_.tolist() == NAMES.tolist()
    expected = plain.predict_proba(TOY_X)
    np.testing.assert_array_equal(named.predict_proba(frame[["cat", "ant", "bee"]]), expected)
    assert named.predict(frame).tolist() == NAMES[expected.argmax(axis=1)].tolist()


def weight_two_is_a_row_twice(make):
    weight = np.tile([2.0, 1.0, 0.0, 3.0], 4)
    twice = np.repeat(np.arange(16), weight.astype(int))
    weighted = make().fit(TOY_X, TOY_Y, sample_weight=weight).predict_proba(TOY_X)
    written_out = make().fit(TOY_X[twice], TOY_Y[twice]).predict_proba(TOY_X)
    np.testing.assert_allclose(weighted, written_out, atol=1e-9)
    assert not np.allclose(weighted, make().fit(TOY_X, TOY_Y).predict_proba(TOY_X), atol=1e-3)


def an_absent_class_warns_and_keeps_its_column(make):
    y = np.where(TOY_Y == 1, 0, TOY_Y)
    with pytest.warns(AbsentClassWarning, match=r"no row has class 'bee'"):
        fitted = make(classes=NAMES.tolist()).fit(TOY_X, NAMES[y])
    answer = fitted.predict_proba(TOY_X)
    assert answer.shape == (16, 3)
    assert (answer[:, 1] > 0.0).all()
    np.testing.assert_allclose(answer.sum(axis=1), 1.0, atol=1e-12)


def one_class_alone_is_survived(make):
    with pytest.warns(AbsentClassWarning, match="no row has class 1, 2"):
        answer = make().fit(TOY_X, np.zeros(16, dtype=int)).predict_proba(TOY_X)
    np.testing.assert_allclose(answer.sum(axis=1), 1.0, atol=1e-12)


def refit_forgets_and_input_is_untouched(make):
    X, y = TOY_X.copy(), TOY_Y.copy()
    estimator = make().fit(X[:, ::-1], 2 - y).fit(X, y)
    answer = estimator.predict_proba(X)
    np.testing.assert_array_equal(answer, make().fit(TOY_X, TOY_Y).predict_proba(TOY_X))
    np.testing.assert_array_equal(X, TOY_X)
    np.testing.assert_array_equal(y, TOY_Y)


def json_round_trip_is_exact(make, path, monkeypatch):
    fitted = make().fit(TOY_X, NAMES[TOY_Y])
    monkeypatch.setitem(calibrators.CALIBRATORS, fitted.method, type(fitted))
    fitted.save(path)
    loaded = calibrators.load_calibrator(path)
    assert loaded.get_params() == fitted.get_params()
    assert loaded.classes_.tolist() == NAMES.tolist()
    np.testing.assert_array_equal(loaded.predict_proba(TOY_X), fitted.predict_proba(TOY_X))


PROMISES = (
    rows_sum_to_one_and_zeros_are_fine,
    string_labels_and_frames_give_the_same_numbers,
    weight_two_is_a_row_twice,
    an_absent_class_warns_and_keeps_its_column,
    one_class_alone_is_survived,
    refit_forgets_and_input_is_untouched,
)
