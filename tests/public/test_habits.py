"""What people type who come from other packages: accepted, or told the line that works."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

import mcllo
from mcllo import RecalibratedClassifierCV
from mcllo.exceptions import InputError

RNG = np.random.default_rng(0)
PROBS = RNG.dirichlet([1.0, 1.0, 1.0], size=300)
Y = (PROBS.cumsum(axis=1) > RNG.random((300, 1))).argmax(axis=1)
NAMES = ["cat", "dog", "eel"]
FRAME = pd.DataFrame(PROBS, columns=NAMES)


def test_method_is_scikit_learns_name_of_the_calibrator():
    X, y = load_iris(return_X_y=True)
    classifier = LogisticRegression(max_iter=1000)
    by_method = RecalibratedClassifierCV(classifier, method="isotonic", cv=3).fit(X, y)
    by_calibrator = RecalibratedClassifierCV(classifier, "isotonic", cv=3).fit(X, y)
    expected = by_calibrator.predict_proba(X)
    np.testing.assert_array_equal(by_method.predict_proba(X), expected)
    both = RecalibratedClassifierCV(classifier, "auto", method="isotonic")
    with pytest.raises(InputError, match="method must be left out"):
        both.fit(X, y)
    platt = RecalibratedClassifierCV(classifier, method="sigmoid")
    with pytest.raises(InputError, match="Platt scaling, is 'mcllo' here"):
        platt.fit(X, y)


@pytest.mark.parametrize("name", ["sample_weights", "weights", "weight"])
def test_the_name_of_weights_is_said(name):
    given = {name: np.ones(300)}
    for function in (
        mcllo.assess,
        mcllo.calibration_test,
        mcllo.compare,
        mcllo.MCLLOCalibrator().fit,
        mcllo.AutoCalibrator().fit,
    ):
        with pytest.raises(TypeError, match=rf"'{name}'; did you mean sample_weight="):
            function(PROBS, Y, **given)
    with pytest.raises(TypeError, match="'random_state'; did you mean seed="):
        mcllo.assess(PROBS, Y, random_state=0)
    with pytest.raises(TypeError, match=r"argument 'colour'$"):
        mcllo.assess(PROBS, Y, colour="red")


def test_compare_takes_probabilities_and_labels():
    asked = {"methods": ["temperature"], "seed": 0}
    by_name = mcllo.compare(PROBS, y=Y, cv=5, **asked)
    assert mcllo.compare(PROBS, Y, **asked).rows[1].log_loss == by_name.rows[1].log_loss
    labelled = FRAME.assign(label=np.array(NAMES)[Y])
    by_column = mcllo.compare(labelled, "label", cv=5, **asked)
    assert by_column.rows[1].log_loss == pytest.approx(by_name.rows[1].log_loss)
    by_three = mcllo.compare(PROBS, Y, cv=3, **asked)
    assert by_three.rows[1].log_loss != by_name.rows[1].log_loss
    with pytest.raises(InputError, match="train must be a Predictions"):
        mcllo.compare(PROBS, PROBS)


def test_labels_that_number_the_columns_otherwise():
    # 1..c with every class: sorted labels are columns, as in scikit-learn
    assert mcllo.assess(PROBS, Y + 1).fit.classes == (1, 2, 3)
    some = Y != 1
    with pytest.raises(InputError, match=r"count the columns from 1, pass y - 1\."):
        mcllo.assess(PROBS[some], Y[some] + 1)
    with pytest.raises(InputError, match=r"count the columns from 1, pass y - 1\."):
        mcllo.assess(pd.DataFrame(PROBS), Y + 1)
    line = r"count the columns from 0, pass np.array\(\['cat', 'dog', 'eel'\]\)\[y\]\."
    with pytest.raises(InputError, match=line):
        mcllo.assess(FRAME, Y)
    mcllo.assess(FRAME, np.array(["cat", "dog", "eel"])[Y])  # the line that works
    with pytest.raises(InputError, match=r"from 1, pass np.array\(.*\)\[y - 1\]\."):
        mcllo.assess(FRAME, Y + 1)
    with pytest.raises(InputError) as found:  # 7 is no number of a column
        mcllo.assess(FRAME, Y + 5)
    assert "np.array" not in str(found.value)


def test_a_transposed_table():
    said = "must have a row for each of the 300 labels; it has a column for each, and 3 rows"
    for function in (mcllo.assess, mcllo.MCLLOCalibrator().fit):
        with pytest.raises(InputError, match=rf"^probs {said}\. Pass probs\.T\.$"):
            function(PROBS.T, Y)
    with pytest.raises(InputError, match=rf"^logits {said}\. Pass logits\.T\.$"):
        mcllo.assess(y=Y, logits=np.log(PROBS.T))
    with pytest.raises(InputError, match=rf"^y_prob {said}\. Pass y_prob\.T\.$"):
        mcllo.metrics.log_loss(Y, PROBS.T)


def test_metrics_in_the_other_order():
    for metric in (mcllo.metrics.log_loss, mcllo.metrics.expected_calibration_error):
        with pytest.raises(InputError, match=r"swapped. Call with \(y_true, y_prob\)"):
            metric(PROBS, Y)


def with_gaps(kind):
    """Return 300 rows with a gap in row 3 of the labels and row 5 of the probabilities."""
    frame = FRAME.assign(y=np.array(NAMES, dtype=object)[Y])
    frame.loc[3, "y"] = None
    frame.loc[5, "dog"] = np.nan
    if kind == "frame":
        return frame, "y"
    if kind == "arrays":
        return frame[NAMES].to_numpy(), frame["y"].to_numpy()
    masked = np.ma.masked_invalid(frame[NAMES].to_numpy())
    return masked, frame["y"].tolist()


@pytest.mark.parametrize("kind", ["frame", "arrays", "masked"])
def test_rows_with_gaps_are_left_out_where_that_is_asked_for(kind):
    probs, y = with_gaps(kind)
    kept = np.delete(np.arange(300), [3, 5])
    weight = np.ones(300)
    weight[5] = np.nan
    rows = mcllo.Predictions.from_arrays(
        probs, y, sample_weight=weight, groups=np.arange(300), missing="drop"
    )
    np.testing.assert_array_equal(rows.probs, PROBS[kept])
    assert [rows.classes[k] for k in rows.codes] == np.array(NAMES)[Y[kept]].tolist()
    assert len(np.unique(rows.groups)) == rows.n_samples == 298
    note = "2 of 300 rows were dropped for missing values (the first: row 3)."
    assert [said.text for said in rows.notes] == [note]
    judged = mcllo.assess(probs, y, missing="drop", seed=0)
    assert judged.test.statistic == mcllo.assess(PROBS[kept], Y[kept]).test.statistic
    assert note in " ".join(str(judged).split())


def test_rows_with_gaps_are_refused_with_the_option():
    probs, y = with_gaps("arrays")
    with pytest.raises(InputError, match="or pass missing='drop'"):
        mcllo.assess(probs, np.array(NAMES)[Y])
    with pytest.raises(InputError, match="or pass missing='drop'"):
        mcllo.calibration_test(PROBS, y)
    with pytest.raises(InputError, match="missing must be 'refuse' or 'drop'"):
        mcllo.assess(probs, y, missing="ignore")
    with pytest.raises(InputError, match="all 2 have a gap"):
        mcllo.assess(np.full((2, 3), np.nan), [0, 1], missing="drop")
    # a fit has no such option, and does not name it
    with pytest.raises(InputError) as found:
        mcllo.MCLLOCalibrator().fit(probs, np.array(NAMES)[Y])
    assert "missing" not in str(found.value)
    # nothing is said where nothing is missing
    assert mcllo.Predictions.from_arrays(PROBS, Y, missing="drop").notes == ()
