"""Costs in every form, and the action of least expected cost."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inputs import refusal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mcllo
from mcllo import Costs, DecisionClassifier, Predictions, decide

MATRIX = [[0, 1, 5], [2, 0, 2], [4, 1, 0], [0.6, 0.6, 0.6]]
PROBS = [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.05, 0.15, 0.8], [0.34, 0.33, 0.33]]
NAMES = ["cat", "dog", "truck"]


def test_vector_of_the_specification():
    # section 9c of the methods; row 2: 4 x .05 + 1 x .15 = .35 is below .6, .2 + 4 and .1 + 1.6
    found = decide(PROBS, MATRIX)
    assert found.codes.tolist() == [3, 3, 2, 3]
    np.testing.assert_allclose(found.promised, [0.6, 0.6, 0.35, 0.6], atol=1e-12)
    np.testing.assert_allclose(found.expected[2], [4.15, 1.7, 0.35, 0.6], atol=1e-12)
    assert found.actions.tolist() == [3, 3, 2, 3]


def in_order_of_truck_dog_cat(matrix):
    return [[row[2], row[1], row[0]] for row in matrix]


FORMS = {
    "list": MATRIX,
    "array": np.array(MATRIX),
    "tensor of numbers": np.array(MATRIX, dtype=object),
    "pandas with an index": pd.DataFrame(
        in_order_of_truck_dog_cat(MATRIX),
        columns=NAMES[::-1],
        index=["0", "1", "2", "3"],
    ),
    "polars with a column of actions": pl.DataFrame(
        {"action": ["0", "1", "2", "3"]}
        | dict(zip(NAMES, np.array(MATRIX).T.tolist(), strict=True))
    ),
    "mapping of mappings": {
        str(k): dict(zip(NAMES, row, strict=True)) for k, row in enumerate(MATRIX)
    },
    "mapping of lists and one number": {
        **{str(k): row for k, row in enumerate(MATRIX[:3])},
        "3": 0.6,
    },
    "matrix and abstain": "abstain",
}


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_are_the_same_table(form):
    if form == "matrix and abstain":
        found = Costs.from_table(MATRIX[:3], NAMES, abstain=0.6)
        assert found.actions == ("cat", "dog", "truck", "abstain")
        assert found.abstain_code == 3
    else:
        found = Costs.from_table(FORMS[form], NAMES)
        assert [str(action) for action in found.actions] == ["0", "1", "2", "3"]
        assert found.abstain_code is None
    np.testing.assert_array_equal(found.matrix, MATRIX)
    again = Costs.from_table(found, NAMES[::-1])
    np.testing.assert_array_equal(again.matrix, in_order_of_truck_dog_cat(MATRIX))


def test_short_form_by_hand():
    # miss of cat 50, of dog 3; false alarm of dog 8; else 1: the larger of miss and alarm
    short = {"miss": {"cat": 50, "dog": 3}, "false_alarm": {"dog": 8}, "abstain": 0.5}
    found = Costs.from_table(short, NAMES)
    by_hand = [[0, 3, 1], [50, 0, 8], [50, 3, 0], [0.5, 0.5, 0.5]]
    np.testing.assert_array_equal(found.matrix, by_hand)
    assert found.actions == ("cat", "dog", "truck", "abstain")
    only = Costs.from_table({"default": 2}, [0, 1])
    np.testing.assert_array_equal(only.matrix, [[0, 2], [2, 0]])


def test_actions_that_are_called_like_words_of_the_short_form_are_actions():
    table = {"miss": {"a": 1, "b": 2}, "default": {"a": 0, "b": 5}}
    assert Costs.from_table(table, ["a", "b"]).actions == ("miss", "default")


def test_labels_that_are_numbers_are_found_as_text():
    frame = pd.DataFrame({"0": [0.0, 1.0], "1": [9.0, 0.0]})
    found = decide([[0.5, 0.5]], frame)
    assert found.costs.actions == ("0", "1")
    assert found.expected.tolist() == [[4.5, 0.5]]


COSTS_MISSING = "the cost of 'wait' where 'well' is true is missing"


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        ([[0, 1, 2]], "at least two actions"),
        ([[0, 1], [1, 0]], "a column for each of the 3 classes; got 2"),
        ([1, 2, 3], "a table of actions and classes; got the shape"),
        ([[0, -1, 2], [1, 0, 1], [1, 1, 0]], "of 'cat' where 'dog' is true is -1.00"),
        ([[0, np.inf, 2], [1, 0, 1], [1, 1, 0]], "must never be taken"),
        ([[0, np.nan, 2], [1, 0, 1], [1, 1, 0]], "where 'dog' is true is missing"),
        ([[0, "x", 2], [1, 0, 1], [1, 1, 0]], "is true is 'x'"),
        ({"go": {"cat": 1, "dog": 2}, "wait": 1}, "of 'go' where 'truck' is true is"),
        ({"go": [1, 2], "wait": 1}, "the 3 classes; 'go' has 2"),
        ({"go": "dear", "wait": 1}, "the cost of 'go' where 'cat' is true is 'dear'"),
        ({"miss": {"doog": 5}}, "'doog', which is not a class; did you mean 'dog'?"),
        ({"miss": {"dog": -5}}, "where 'dog' is true is -5.00"),
        ({"default": None}, "is missing"),
        ({"abstain": 1}, "at least two actions"),
        ({}, "got 0"),
        (pd.DataFrame({"cat": [0, 1], "dog": [1, 0]}), "'truck' has none"),
        (
            pd.DataFrame({c: [0, 1] for c in ["a", *NAMES, "lory"]}),
            "'lory', which is not a class",
        ),
        (
            pd.DataFrame({c: [0, 1] for c in NAMES}, index=["go", "go"]),
            "once; 'go' occurs twice",
        ),
        (
            pd.DataFrame({"action": ["go", None], **{c: [0, 1] for c in NAMES}}),
            "row 1 has no name",
        ),
        (7, "costs"),
        ("costs.csv", "costs"),
    ],
)
def test_costs_that_are_none_are_refused_in_one_sentence(costs, said):
    assert said in str(refusal(Costs.from_table, costs, NAMES))


def test_abstain_is_refused_twice_and_below_zero():
    table = {"go": 1, "abstain": 2}
    assert "occurs twice" in str(refusal(Costs.from_table, table, NAMES, abstain=1))
    said = str(refusal(decide, PROBS, MATRIX, abstain=-1))
    assert "'abstain' where 0 is true is -1.00" in said


def test_a_class_may_be_called_abstain():
    costs = Costs.from_table({"default": 1}, ["abstain", "vote"])
    assert costs.abstain_code is None
    with_action = Costs.from_table({"default": 1, "abstain": 2}, ["no", "yes"])
    assert with_action.abstain_code == 2


def test_rows_are_read_as_elsewhere():
    frame = pd.DataFrame(PROBS, columns=[f"p_{name}" for name in NAMES])
    costs = {"miss": {"truck": 7}}
    by_prefix = decide(frame, costs, prefix="p_").codes
    by_names = decide(PROBS, costs, classes=NAMES).codes
    by_logits = decide(None, costs, logits=np.log(PROBS), classes=NAMES).codes
    of_predictions = decide(
        Predictions.from_arrays(PROBS, [0, 1, 2, 0], classes=[0, 1, 2]),
        {"miss": {2: 7}},
    ).codes
    for other in (by_names, by_logits, of_predictions):
        assert by_prefix.tolist() == other.tolist()
    assert "sums to" in str(refusal(decide, [[0.5, 0.4]], {"default": 1}))
    assert "neither" in str(refusal(decide, None, {"default": 1}))
    assert "none" in str(refusal(decide, PROBS))
    assert "'cat', which is not" in str(refusal(decide, PROBS, {"miss": {"cat": 2}}))


def test_zeros_stay_zeros():
    assert decide([[1.0, 0.0]], [[0, 1e9], [1, 0]]).promised.tolist() == [0.0]


def test_table_and_frame():
    found = decide(PROBS, MATRIX)
    assert found.table["rows"] == [0, 0, 1, 3]
    assert found.table["share"] == [0.0, 0.0, 0.25, 0.75]
    frame = found.to_frame()
    assert list(frame.columns[:3]) == ["action", "expected_cost", "cost_0"]
    assert frame["cost_3"].tolist() == pytest.approx([0.6] * 4)
    assert found.to_dict()["codes"] == [3, 3, 2, 3]
    assert str(found).splitlines()[1].split() == ["0", "0", "0.00", "-"]


probabilities = st.lists(st.floats(0.01, 1.0), min_size=3, max_size=3)
numbers = st.lists(st.integers(0, 20), min_size=12, max_size=12)


@given(probabilities, numbers, st.integers(0, 9))
def test_no_action_has_a_lower_expected_cost_and_a_constant_changes_nothing(
    weights, cells, constant
):
    probs = np.array([weights]) / sum(weights)
    matrix = np.array(cells, dtype=float).reshape(4, 3)
    found = decide(probs, matrix)
    costs_by_hand = [sum(matrix[a] * probs[0]) for a in range(4)]
    assert found.promised[0] == pytest.approx(min(costs_by_hand))
    moved = decide(probs, matrix + np.array([constant, 0, 2 * constant]))
    difference = found.expected[0, moved.codes[0]] - found.promised[0]
    assert difference == pytest.approx(0.0, abs=1e-9)


def iris():
    return load_iris(return_X_y=True)


def test_classifier_stands_in_a_pipeline_and_acts_as_decide_says():
    X, y = iris()
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    plain = LogisticRegression(max_iter=500)
    inner = mcllo.RecalibratedClassifierCV(plain, "temperature", cv=3)
    costs = {"miss": {"virginica": 20}, "abstain": 0.4}
    model = make_pipeline(StandardScaler(), DecisionClassifier(inner, costs=costs))
    model.fit(X, names)
    probs = model.predict_proba(X)
    by_hand = decide(probs, costs, classes=sorted(set(names)))
    assert (model.predict(X) == by_hand.actions).all()
    assert set(by_hand.actions) == {*names, "abstain"}
    codes = np.searchsorted(sorted(set(names)), names)
    realised = by_hand.costs.matrix[by_hand.codes, codes]
    assert model.score(X, names) == pytest.approx(-realised.mean())
    weighted = DecisionClassifier(inner, costs=costs).fit(X, names)
    weight = np.arange(len(y)) % 3
    expected = -np.average(
        decide(
            weighted.predict_proba(X), weighted.costs_, classes=list(weighted.classes_)
        ).costs.matrix[weighted.decide(X).codes, codes],
        weights=weight,
    )
    assert weighted.score(X, names, weight) == pytest.approx(expected)


def test_classifier_without_costs_says_the_likeliest_class():
    X, y = iris()
    plain = LogisticRegression(max_iter=500).fit(X, y)
    model = DecisionClassifier(LogisticRegression(max_iter=500)).fit(X, y)
    assert (model.predict(X) == plain.predict(X)).all()
    assert model.score(X, y) == pytest.approx(plain.score(X, y) - 1.0)
    assert cross_val_score(clone(model), X, y, cv=3).mean() > -0.1


def test_classifier_refuses_what_cannot_be():
    X, y = iris()
    assert "be a classifier" in str(refusal(DecisionClassifier().fit, X, y))
    wrong = DecisionClassifier(LogisticRegression(max_iter=500), costs={"miss": {7: 1}})
    assert "7, which is not a class" in str(refusal(wrong.fit, X, y))
    from sklearn.svm import LinearSVC

    assert "predict_proba" in str(refusal(DecisionClassifier(LinearSVC()).fit, X, y))
