import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from mcllo.calibrators import _row_sets
from mcllo.calibrators._row_sets import RowSets, all_rows, softmax_classes, some_rows

SCORES = np.array([[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 5.0, 5.0]])
CODES = np.array([0, 1, 1, 0])


def test_hand_sized_sets():
    # Weights (1, 1, 0, 1) and (0, 0, 2, 0): three rows and one, filled up with weight 0.
    rows = some_rows(SCORES, CODES, [np.array([1.0, 1.0, 0.0, 1.0]), np.array([0, 0, 2.0, 0])])
    np.testing.assert_array_equal(rows.scores[0], SCORES[:, [0, 1, 3]])
    np.testing.assert_array_equal(rows.scores[1, :, 0], [3.0, 5.0])
    np.testing.assert_array_equal(rows.codes[0], [0, 1, 0])
    np.testing.assert_array_equal(rows.weight, [[1, 1, 1], [2, 0, 0]])
    np.testing.assert_array_equal(rows.totals, [3.0, 2.0])


def test_weights_of_one_are_none():
    kept = [np.array([1.0, 1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0, 1.0])]
    rows = some_rows(SCORES, CODES, kept)
    assert rows.weight is None
    np.testing.assert_array_equal(rows.totals, [2.0, 2.0])


def test_hand_sized_label_sums():
    # Features (z, 1), weights 1, 2, 3, 4. Class 0: rows 0 and 3, 1 * 1 + 4 * 4 = 17, 0 + 4 * 5 = 20
    # and 1 + 4 = 5; class 1: rows 1 and 2, 2 * 2 + 3 * 3 = 13, 3 * 5 = 15 and 5.
    features = np.vstack([SCORES, np.ones(4)])
    rows = all_rows(features, CODES, np.array([1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_allclose(rows.label_sums(), [[[17.0, 20.0, 5.0], [13.0, 15.0, 5.0]]])


def test_every_second_row_counts_twice():
    rows = all_rows(SCORES, CODES, np.array([1.0, 2.0, 3.0, 4.0])).every(2)
    np.testing.assert_array_equal(rows.scores[0], SCORES[:, ::2])
    np.testing.assert_array_equal(rows.weight, [[2.0, 6.0]])
    np.testing.assert_array_equal(all_rows(SCORES, CODES).every(2).totals, [4.0])


@pytest.mark.parametrize(("n", "stride"), [(3999, 1), (4000, 2), (9000, 4), (10**5, 8)])
def test_rows_of_a_first_fit(n, stride):
    few = RowSets(np.zeros((1, 2, n)), np.zeros((1, n), dtype=int)).first()
    assert (few is None) if stride == 1 else (few.codes.shape[1] == -(-n // stride))


@pytest.mark.parametrize("scale", [1.0, 2000.0])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_softmax_against_scipy(scale, kind):
    eta = scale * np.random.default_rng(0).normal(size=(2, 3, 5)).astype(kind)
    g = eta.copy()
    logs = softmax_classes(g)
    tight = 1e-12 if kind is np.float64 else 1e-5
    np.testing.assert_allclose(g, softmax(eta.astype(float), axis=1), atol=tight)
    np.testing.assert_allclose(logs, logsumexp(eta.astype(float), axis=1), rtol=tight, atol=tight)


def test_many_rows_are_float32_and_come_in_chunks(monkeypatch):
    assert all_rows(SCORES, CODES).scores.dtype == np.float64
    monkeypatch.setattr(_row_sets, "FLOAT32_PAYS", 8)
    rows = all_rows(SCORES, CODES, np.ones(4))
    assert rows.scores.dtype == rows.weight.dtype == np.float32
    assert rows.rounding[0] > 1e-6
    monkeypatch.setattr(_row_sets, "CHUNK_BYTES", 4 * 2 * 100)
    many = RowSets(np.zeros((1, 2, 250), dtype=np.float32), np.zeros((1, 250), dtype=int))
    assert [part.start for part in many.chunks(2)] == [0, 100, 200]
