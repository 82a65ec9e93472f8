import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from mcllo._all_baselines import fit_all_baselines
from mcllo._predictions import Predictions
from mcllo.calibrators import _auto_members, _row_sets
from mcllo.calibrators._auto_members import Ladder, LadderFit, member_names
from mcllo.calibrators._soft_temperature import SoftTemperature


def sample(n=200, c=3, seed=0):
    """Scores whose labels leak from each class to the next."""
    rng = np.random.default_rng(seed)
    scores = 2.0 * rng.normal(size=(c, n))
    eta = 0.7 * scores + 0.3 * np.roll(scores, 1, axis=0)
    return scores, (eta + rng.gumbel(size=(c, n))).argmax(axis=0)


def test_identity_theta_is_the_temperature():
    scores = sample()[0]
    ladder = Ladder(SoftTemperature(0.5, 0.1), {"full_tight": np.eye(3, 4)})
    answers = ladder.probabilities(scores)
    expected = 0.9 * softmax(0.5 * scores, axis=0) + 0.1 / 3.0
    np.testing.assert_allclose(answers["temperature"], expected, atol=1e-14)
    np.testing.assert_allclose(answers["full_tight"], expected, atol=1e-14)


def test_hand_sized_example():
    # Slip 0, u = 1, p = (0.8, 0.2). Vector map with weights 2: 0.64 : 0.04 = 16/17, 1/17.
    theta = np.array([[2.0, 0.0], [2.0, 0.0]])
    ladder = Ladder(SoftTemperature(1.0, 0.0), {"vector": theta})
    logs = ladder.logs_of_labels(np.log([[0.8], [0.2]]), np.array([1]))
    np.testing.assert_allclose(np.exp(logs), [[0.2, 0.2, 1.0 / 17.0]], atol=1e-15)
    assert ladder.names == ("identity", "temperature", "vector")


def test_mcllo_against_the_fits_of_single_baselines():
    scores, codes = sample()
    fit = LadderFit(scores, codes)
    logs = fit.whole.soft.logs(scores)
    soft = Predictions.from_arrays(np.exp(logs).T, codes, classes=range(3))
    expected = fit_all_baselines(soft, penalty=_auto_members.OWN * 3).recalibrate(np.exp(logs).T)
    answer = fit.whole.probabilities(scores)["mcllo"].T
    np.testing.assert_allclose(answer, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("c", "expected"),
    [
        (2, ("identity", "temperature", "mcllo")),
        (20, ("identity", "temperature", "mcllo", "full_tight", "full_loose")),
        (100, ("identity", "temperature", "vector", "full_tight", "full_loose")),
        (101, ("identity", "temperature", "vector")),
    ],
)
def test_members_by_number_of_classes(c, expected):
    assert member_names(c) == expected
    if c < 100:
        assert LadderFit(*sample(30, c)).whole.names == expected


@pytest.mark.parametrize("most_averaged", [20, 0], ids=["mcllo", "vector"])
def test_a_part_is_a_fit_of_its_own(most_averaged, monkeypatch):
    monkeypatch.setattr(_auto_members, "MOST_AVERAGED", most_averaged)
    monkeypatch.setattr(_auto_members, "TOL_OF_PARTS", 1e-13)
    monkeypatch.setattr(_auto_members, "TOL", 1e-13)
    scores, codes = sample(300, 4)
    weight = np.random.default_rng(1).integers(0, 3, size=300).astype(float)
    part = LadderFit(scores, codes).parts([np.ones(300), weight])[1]
    kept = weight > 0.0
    alone = LadderFit(scores[:, kept], codes[kept], weight[kept]).whole
    expected = alone.probabilities(scores)
    for name, answer in part.probabilities(scores).items():
        np.testing.assert_allclose(answer, expected[name], atol=2e-5, err_msg=name)
    np.testing.assert_allclose(part.soft.slip, alone.soft.slip, atol=1e-6)


def test_parts_forget_the_rows_left_out():
    # Fits to parts begin at the fit to all rows. What is left of that in the log likelihood of the
    # rows left out is below TRACE, by far, though the fit to all rows is several nats better.
    scores, codes = sample(400, 4)
    weight = (np.arange(400) % 5 > 0).astype(float)
    out = weight == 0.0
    fit = LadderFit(scores, codes)
    found = fit.parts([weight])[0].logs_of_labels(scores[:, out], codes[out]).sum(axis=0)
    alone = LadderFit(scores[:, ~out], codes[~out]).whole
    expected = alone.logs_of_labels(scores[:, out], codes[out]).sum(axis=0)
    assert np.abs(found - expected).max() < 0.5 * _auto_members.TRACE
    seen = fit.whole.logs_of_labels(scores[:, out], codes[out]).sum(axis=0)
    assert (seen - expected)[3:].min() > 1.0


def test_float32_and_first_fits_change_little(monkeypatch):
    scores, codes = sample(3000, 4)
    exact = LadderFit(scores, codes).whole
    monkeypatch.setattr(_row_sets, "FLOAT32_PAYS", 1)
    monkeypatch.setattr(_row_sets, "FIRST", 500)
    rough = LadderFit(scores, codes).whole
    answers = rough.probabilities(scores)
    for name, expected in exact.probabilities(scores).items():
        assert 0.0 < np.abs(answers[name] - expected).max() < 1e-3, name


def test_leaking_classes_are_seen_by_the_full_maps():
    logs = LadderFit(*sample(3000, 4)).whole.logs_of_labels(*sample(3000, 4, seed=1))
    losses = dict(zip(member_names(4), -logs.mean(axis=0), strict=True))
    assert losses["full_loose"] < losses["mcllo"] - 0.01
    assert losses["temperature"] < losses["identity"]


@given(st.integers(0, 1000), st.integers(1, 40), st.floats(-20.0, 20.0))
@settings(deadline=None, max_examples=15)
def test_classes_and_shifts(seed, n, shift):
    scores, codes = sample(n, 4, seed)
    order = np.array([2, 0, 3, 1])
    answers = LadderFit(scores, codes).whole.probabilities(scores)
    moved = scores[order] + shift
    other = LadderFit(moved, np.argsort(order)[codes]).whole.probabilities(moved)
    for name, answer in answers.items():
        np.testing.assert_allclose(other[name], answer[order], atol=1e-5, err_msg=name)
        np.testing.assert_allclose(answer.sum(axis=0), 1.0, atol=1e-12)


def test_round_trip():
    scores, codes = sample()
    ladder = LadderFit(scores, codes).whole
    again = Ladder.from_dict(ladder.to_dict())
    assert again.names == ladder.names
    expected = ladder.logs_of_labels(scores, codes)
    np.testing.assert_array_equal(again.logs_of_labels(scores, codes), expected)
