"""One way to pass logits: `logits=` in the place of probabilities, wherever there are rows."""

from functools import partial
from operator import attrgetter

import numpy as np
import pytest
from inputs import case
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, TimeSeriesSplit

import mcllo
from mcllo import CALIBRATORS, MCLLOCalibrator, Predictions, assess, compare
from mcllo.calibrators import TemperatureScaling, VectorScaling
from mcllo.exceptions import InputError

RNG = np.random.default_rng(0)
Z = 2.0 * RNG.normal(size=(400, 3))
Y = (0.6 * Z + RNG.gumbel(size=Z.shape)).argmax(axis=1)
P = softmax(Z, axis=1)


def test_assess():
    by_logits, by_probs = assess(y=Y, logits=Z), assess(P, Y)
    assert by_logits.test.statistic == pytest.approx(by_probs.test.statistic, rel=1e-10)
    assert assess(None, Y, logits=Z).test.statistic == by_logits.test.statistic


def column(name):
    """Return what reads a column of a table."""
    return lambda found: found.to_frame()[name]


@pytest.mark.parametrize(
    ("function", "number"),
    [
        (mcllo.calibration_test, attrgetter("statistic")),
        (mcllo.baseline_sensitivity, attrgetter("max_score")),
        (mcllo.calibration_posterior, attrgetter("posterior")),
        (mcllo.robust_test, attrgetter("statistic")),
        (mcllo.omnibus_test, attrgetter("statistic")),
        (mcllo.profile_intervals, attrgetter("gamma")),
        (mcllo.boldness_recalibrate, attrgetter("map.gamma")),
        (partial(mcllo.subgroups, by=np.arange(400) % 2), attrgetter("test.statistic")),
        (partial(mcllo.bootstrap_fits, n_resamples=9, seed=0), attrgetter("theta")),
        (mcllo.nested_models, column("aic")),
        (mcllo.class_tests, column("statistic")),
        (mcllo.calibration_table, column("estimate")),
    ],
    ids=lambda value: getattr(getattr(value, "func", value), "__name__", ""),
)
def test_every_function_of_rows(function, number):
    by_logits, by_probs = function(y=Y, logits=Z), function(P, Y)
    np.testing.assert_allclose(number(by_logits), number(by_probs), rtol=1e-6)


def test_every_calibrator():
    for key, cls in CALIBRATORS.items():
        X = Z if cls().input == "logits" else P
        expected = cls().fit(X, Y).predict_proba(X)
        with case(key):
            found = cls().fit(y=Y, logits=Z)
            np.testing.assert_allclose(
                found.predict_proba(logits=Z), expected, rtol=0, atol=1e-9
            )
            np.testing.assert_allclose(
                found.predict_proba(X), expected, rtol=0, atol=1e-9
            )
            np.testing.assert_array_equal(
                found.predict(logits=Z), expected.argmax(axis=1)
            )


def test_logits_beyond_what_probabilities_hold():
    # scores of hundreds: probabilities would be 0, and raised to 1e-6
    found = MCLLOCalibrator().fit(y=Y, logits=400.0 * Z)
    unit = MCLLOCalibrator().fit(y=Y, logits=Z)
    np.testing.assert_allclose(400.0 * found.fit_.gamma, unit.fit_.gamma, rtol=1e-5)
    expected = unit.predict_proba(logits=Z)
    np.testing.assert_allclose(
        found.predict_proba(logits=400.0 * Z), expected, rtol=0, atol=1e-6
    )


def test_a_flag_gets_a_sentence_that_works():
    for call in (
        partial(assess, Z, Y),
        partial(MCLLOCalibrator().fit, Z, Y),
        partial(Predictions.from_arrays, Z, Y),
        partial(compare, Z, y=Y, cv=3),
    ):
        with case(call), pytest.raises(InputError) as caught:
            call(logits=True)
        assert "Pass y=y, logits=z instead of z, y, logits=True" in str(caught.value)
        assert (caught.value.argument, caught.value.value) == ("logits", True)
    y, z = Y, Z  # as the sentence has them
    assess(y=y, logits=z)
    MCLLOCalibrator().fit(y=y, logits=z)
    Predictions.from_arrays(y=y, logits=z)
    compare(y=y, logits=z, cv=3, methods=["temperature"])


def test_scores_taken_for_probabilities_are_told_where_to_go():
    with pytest.raises(InputError, match="pass logits= in the place of probs"):
        assess(Z, Y)


def test_only_one_of_both():
    with pytest.raises(InputError, match="X must be left out where logits are given"):
        MCLLOCalibrator().fit(P, Y, logits=Z)
    with pytest.raises(InputError, match="X must be left out where logits are given"):
        MCLLOCalibrator().fit(P, Y).predict_proba(P, logits=Z)


class Tensor:
    """What this package needs of a tensor, so that the branch is tested without PyTorch too."""

    def __init__(self, values, dtype="torch.float64"):
        self.values, self.dtype, self.free = values, dtype, False

    def detach(self):
        free = Tensor(self.values, self.dtype)
        free.free = True
        return free

    def cpu(self):
        return self

    def float(self):
        assert self.free
        return Tensor(self.values.astype(np.float32), "torch.float32").detach()

    def __array__(self, dtype=None, copy=None):
        if not self.free or self.dtype == "torch.bfloat16":
            raise RuntimeError("cannot be converted")
        return self.values


def test_what_stands_for_a_tensor():
    expected = MCLLOCalibrator().fit(y=Y, logits=Z).fit_.theta
    found = MCLLOCalibrator().fit(y=Y, logits=Tensor(Z)).fit_.theta
    np.testing.assert_array_equal(found, expected)
    short = MCLLOCalibrator().fit(y=Y, logits=Tensor(Z, "torch.bfloat16")).fit_.theta
    np.testing.assert_allclose(short, expected, rtol=1e-4)


# ---------------------------------------------------------------------------------------- compare


def test_compare_by_logits():
    found = compare(y=Y, logits=Z, cv=4, methods=["vector", "mcllo"], seed=0)
    held = Predictions.from_arrays(y=Y, logits=Z)
    assert [row.method for row in found.judged] == ["uncalibrated", "vector", "mcllo"]
    again = compare(held, cv=4, methods=["vector", "mcllo"], seed=0)
    assert found["vector"].log_loss == again["vector"].log_loss
    pair = {"y": Y[:200], "logits": Z[:200]}, {"y": Y[200:], "logits": Z[200:]}
    split = compare(*pair, methods=["vector"], seed=0)
    by_hand = VectorScaling().fit(Z[:200], Y[:200]).predict_proba(Z[200:])
    np.testing.assert_allclose(
        split.recalibrated["vector"].probs, by_hand, rtol=0, atol=1e-12
    )


def test_compare_by_probabilities_and_labels():
    found = compare(P, y=Y, cv=4, methods=["temperature"], seed=0)
    again = compare((P, Y), cv=4, methods=["temperature"], seed=0)
    assert found["temperature"].log_loss == again["temperature"].log_loss


class Smoothed(ClassifierMixin, BaseEstimator):
    """A calibrator of another package: pulls probabilities to the shares of the labels."""

    def __init__(self, by=0.1):
        self.by = by

    def fit(self, X, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.shares_ = counts / counts.sum()
        return self

    def predict_proba(self, X):
        return (1 - self.by) * X + self.by * self.shares_


def test_compare_takes_calibrators():
    own = MCLLOCalibrator(penalty=1.0)
    methods = ["mcllo", own, Smoothed(), Smoothed(by=0.5), TemperatureScaling()]
    found = compare((P[:200], Y[:200]), (P[200:], Y[200:]), methods=methods, seed=0)
    names = [
        "mcllo",
        "mcllo(penalty=1.0)",
        "Smoothed",
        "Smoothed(by=0.5)",
        "temperature",
    ]
    assert [row.method for row in found.judged[1:]] == names
    assert not hasattr(own, "classes_")
    for method, name in zip([MCLLOCalibrator(), *methods[1:]], names, strict=True):
        by_hand = method.fit(P[:200], Y[:200]).predict_proba(P[200:])
        np.testing.assert_allclose(
            found.recalibrated[name].probs, by_hand, rtol=0, atol=1e-9
        )
    # theory knows maximum likelihood, no penalty
    assert found["mcllo"].pvalue_corrected is not None
    assert found["temperature"].pvalue_corrected is not None
    assert found["mcllo(penalty=1.0)"].pvalue_corrected is None
    words = np.array(["ant", "bee", "cat"])
    named = compare(
        (P, words[Y]), cv=3, methods={"mine": Smoothed(), "t": "temperature"}, seed=0
    )
    assert [row.method for row in named.judged[1:]] == ["mine", "t"]
    assert "mine" in str(named)


def test_names_that_cannot_be_told_apart_are_refused():
    for methods in (["mcllo", MCLLOCalibrator()], {"uncalibrated": "mcllo"}):
        with pytest.raises(InputError, match="methods must have names of their own"):
            compare((P, Y), cv=3, methods=methods)
    with pytest.raises(InputError, match="calibrator must be one of mcllo, auto"):
        compare((P, Y), cv=3, methods=[MCLLOCalibrator])


class Short(Smoothed):
    """Forgets a column."""

    def predict_proba(self, X):
        return super().predict_proba(X)[:, 1:]


def test_a_calibrator_without_a_column_for_each_class_is_refused():
    with pytest.raises(
        InputError, match=r"Short must give a column for each of the classes"
    ):
        compare((P, Y), cv=3, methods=[Short()])


def test_compare_takes_splitters():
    for cv in (
        StratifiedKFold(4),
        list(KFold(4, shuffle=True, random_state=1).split(P)),
    ):
        found = compare((P, Y), cv=cv, methods=["temperature"], seed=0)
        expected = np.empty_like(P)
        for train, test in cv if isinstance(cv, list) else cv.split(P, Y):
            expected[test] = (
                TemperatureScaling().fit(P[train], Y[train]).predict_proba(P[test])
            )
        made = found.recalibrated["temperature"].probs
        np.testing.assert_allclose(made, expected, rtol=0, atol=1e-12)


def test_splitters_by_group():
    groups = np.arange(400) // 4
    held = Predictions.from_arrays(P, Y, groups=groups)
    found = compare(held, cv=GroupKFold(4), methods=["temperature"], seed=0)
    train, test = next(GroupKFold(4).split(P, Y, groups))
    by_hand = TemperatureScaling().fit(P[train], Y[train]).predict_proba(P[test])
    made = found.recalibrated["temperature"].probs[test]
    np.testing.assert_allclose(made, by_hand, rtol=0, atol=1e-12)
    beside = compare(
        P, y=Y, groups=groups, cv=GroupKFold(4), methods=["temperature"], seed=0
    )
    np.testing.assert_array_equal(beside.recalibrated["temperature"].probs[test], made)
    with pytest.raises(InputError, match=r"GroupKFold says: .* pass groups=\.$"):
        compare(P, y=Y, cv=GroupKFold(4), methods=["temperature"])
    with pytest.raises(InputError, match=r"or cv=, and not both\. .* pass cv=5\.$"):
        compare(P, y=Y)


def test_rows_that_nobody_holds_out_are_refused():
    with pytest.raises(InputError, match=r"row 0 is held out 0 times\. Use KFold"):
        compare((P, Y), cv=TimeSeriesSplit(3))
    with pytest.raises(InputError, match="whole number of at least 2 folds"):
        compare((P, Y), cv="five")
    with pytest.raises(InputError, match="stand beside probs alone"):
        compare((P, Y), y=Y, cv=3)
