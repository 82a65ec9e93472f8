"""`StreamingCalibration`: the numbers of the package, whatever the batches and the workers."""

import gc
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joblib import Parallel, delayed
from scipy.stats import chi2
from toy import TOY_X, TOY_Y

import mcllo
from mcllo import metrics
from mcllo.exceptions import InputError, ZeroProbabilityWarning
from mcllo.metrics import StreamingCalibration


def draw_rows(n=2000, c=4, seed=0, slope=1.3):
    """Return overconfident predictions of c classes (slope 1: calibrated) with their labels."""
    rng = np.random.default_rng(seed)
    log_odds = rng.normal(0.0, 1.5, (n, c))
    y = (log_odds + rng.gumbel(size=(n, c))).argmax(axis=1)
    probs = np.exp(slope * log_odds)
    return probs / probs.sum(axis=1, keepdims=True), y


def in_batches(probs, y, size=300, **options):
    """Return what has seen all rows, batch by batch."""
    seen = StreamingCalibration(probs.shape[1], **options)
    for first in range(0, len(y), size):
        seen.update(probs[first : first + size], y[first : first + size])
    return seen


# S of the methods specification, section 0.3: TOY rows by baseline, good to 10 digits
@pytest.mark.parametrize(
    ("baseline", "score"), [(2, 0.9895584940), (0, 0.9559480156), (1, 0.8315366381)]
)
def test_the_score_of_the_specification(baseline, score):
    found = in_batches(TOY_X, TOY_Y, size=5, baseline=baseline).compute()
    assert found.test.statistic == pytest.approx(score, abs=1e-10)
    assert found.test.df == 4
    assert found.test.pvalue == pytest.approx(chi2.sf(score, 4), rel=1e-9)
    assert found.baseline == baseline


def test_the_numbers_are_those_of_the_package():
    probs, y = draw_rows()
    found = in_batches(probs, y).compute()
    batch = mcllo.calibration_test(probs, y, statistic="score", method="chi2")
    assert found.test.statistic == pytest.approx(batch.statistic, rel=1e-11)
    assert (found.test.df, found.test.kind) == (batch.df, "score")
    assert found.test.pvalue == pytest.approx(batch.pvalue, rel=1e-9)
    for name in ("log_loss", "brier_score", "accuracy"):
        expected = getattr(metrics, name)(y, probs)
        assert getattr(found, name) == pytest.approx(expected, rel=1e-12)
    ece = metrics.expected_calibration_error(y, probs, n_bins=15)
    assert found.ece.observed == pytest.approx(ece, rel=1e-12)
    np.testing.assert_allclose(found.sums["rows"], np.bincount(y))
    np.testing.assert_allclose(found.sums["predicted_rows"], probs.sum(axis=0))
    # class counts less expected ones, and their covariance sum of diag(x) - x x', rank c - 1
    excess = np.bincount(y) - probs.sum(axis=0)
    covariance = np.diag(probs.sum(axis=0)) - probs.T @ probs
    expected = excess @ np.linalg.pinv(covariance, rcond=1e-10) @ excess
    assert found.in_the_large_test.statistic == pytest.approx(expected, rel=1e-9)
    assert found.in_the_large_test.df == 3
    # class 1's log odds against the last class, over the rows of class 1, and as predicted
    odds = np.log(probs[:, 1] / probs[:, 3])
    assert found.sums["log_odds"][1] == pytest.approx(odds[y == 1].sum())
    assert found.sums["predicted_log_odds"][1] == pytest.approx(odds @ probs[:, 1])
    assert np.isnan(found.sums["log_odds"][3])
    assert set(found.metrics) <= set(found.metrics | found.to_dict())


def test_a_class_whose_log_odds_never_vary_has_no_slope():
    probs, y = draw_rows(400, 2)
    probs = np.column_stack([probs[:, 0], 0.5 * probs[:, 1], 0.5 * probs[:, 1]])
    y = np.where(np.arange(400) % 2, y, 2)
    found = in_batches(probs, y, size=70).compute()
    batch = mcllo.calibration_test(probs, y, statistic="score", method="chi2")
    assert found.test.df == batch.df == 3
    assert found.test.statistic == pytest.approx(batch.statistic, rel=1e-10)


def test_in_the_large_by_hand():
    # Two classes, 4 rows of (.6, .4) and labels 0 0 0 1: 3 rows of class 0, of which 2.4 were
    # predicted; variance 4 (.6) (.4) = .96; chi-square .36 / .96 = .375 on 1 df
    found = StreamingCalibration(2).update([[0.6, 0.4]] * 4, [0, 0, 0, 1]).compute()
    assert found.in_the_large_test.statistic == pytest.approx(0.375)
    assert found.in_the_large_test.df == 1
    assert found.in_the_large["z"][0] == pytest.approx(np.sqrt(0.375))
    assert found.in_the_large["observed"] == [0.75, 0.25]
    # all rows are in one bin: |3 - 2.4| / 4
    assert found.ece.observed == pytest.approx(0.15)


@given(st.lists(st.integers(0, 200), max_size=5), st.permutations(range(6)))
def test_any_partition_in_any_order_gives_the_same(at, order):
    probs, y = draw_rows(200, 3)
    parts = np.split(np.arange(200), sorted(at))
    workers = []
    for rows in parts:
        worker = StreamingCalibration(3)
        workers.append(worker.update(probs[rows], y[rows]) if len(rows) else worker)
    merged = StreamingCalibration(3)
    for k in order:
        if k < len(workers):
            merged.merge(workers[k])
    expected = StreamingCalibration(3).update(probs, y)
    np.testing.assert_allclose(merged.state, expected.state, rtol=1e-11, atol=1e-11)
    found, whole = merged.compute(), expected.compute()
    assert found.test.statistic == pytest.approx(whole.test.statistic, rel=1e-8)
    assert found.metrics["ece"] == pytest.approx(whole.metrics["ece"], rel=1e-10)


def test_workers_send_themselves_or_their_state():
    probs, y = draw_rows(600)

    def work(rows):
        return StreamingCalibration(4).update(probs[rows], y[rows])

    parts = np.array_split(np.arange(600), 4)
    workers = Parallel(n_jobs=2, backend="threading")(delayed(work)(p) for p in parts)
    expected = StreamingCalibration(4).update(probs, y).compute().metrics
    by_object, by_state = StreamingCalibration(4), StreamingCalibration(4)
    for worker in workers:
        by_object.merge(pickle.loads(pickle.dumps(worker)))
        by_state.merge(worker.state)
    zeros = StreamingCalibration(4, clip=1e-3).update([[1.0, 0.0, 0.0, 0.0]], [0])
    assert (
        StreamingCalibration(4, clip=1e-3).merge(zeros.state).compute().n_clipped == 3
    )
    for merged in (by_object, by_state):
        assert merged.n_samples == 600
        assert merged.compute().metrics == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
def test_dask_workers():
    dask = pytest.importorskip("dask", reason="dask is not installed")
    probs, y = draw_rows(600)
    parts = np.array_split(np.arange(600), 3)
    work = dask.delayed(lambda p, labels: StreamingCalibration(4).update(p, labels))
    found = dask.compute(*[work(probs[p], y[p]) for p in parts], scheduler="processes")
    merged = StreamingCalibration(4)
    for worker in found:
        merged.merge(worker)
    expected = StreamingCalibration(4).update(probs, y).compute().metrics
    assert merged.compute().metrics == pytest.approx(expected, rel=1e-9)


def test_reset_forgets_and_a_refused_batch_changes_nothing():
    seen = StreamingCalibration(3).update(TOY_X, TOY_Y)
    before = seen.state
    with pytest.raises(InputError, match=r"row 0 sums to 1\.2"):
        seen.update([[0.6, 0.3, 0.3]], [0])
    with pytest.raises(InputError, match="y contains 3"):
        seen.update([[0.6, 0.3, 0.1]], [3])
    with pytest.raises(InputError, match="each of the 3 classes; got 2"):
        seen.update([[0.6, 0.4]], [0])
    np.testing.assert_array_equal(seen.state, before)
    assert seen.reset().n_samples == 0
    with pytest.raises(InputError, match="at least one row"):
        seen.compute()


def test_what_is_kept_does_not_grow():
    probs, y = draw_rows(1000, 10)
    seen = StreamingCalibration(10).update(probs, y)
    # 2 counts with n, 18 squared second derivatives, some rows of 10 classes, 3 x 15 bins
    size = len(seen.state)
    assert size < 18 * 18 + 20 * 10
    tracemalloc.start()
    for _ in range(20):
        seen.update(probs, y)
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    for _ in range(100):
        seen.update(probs, y)
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(seen.state) == size
    assert after - before < 5000  # one row of 1,000 would be kept in 100 batches: 8,000


def test_zeros_are_clipped_counted_and_said_once():
    probs = np.array([[1.0, 0.0], [0.4, 0.6], [0.5, 0.5], [0.2, 0.8]])
    seen = StreamingCalibration(2).update(probs, [0, 1, 0, 1])  # no warning yet
    with pytest.warns(ZeroProbabilityWarning, match="clipped to 1e-06"):
        found = seen.compute()
    assert (found.n_zeros, found.n_clipped) == (1, 1)
    assert "1 probabilities were 0; 1 were clipped to 1e-06" in str(found)
    assert "zeros were clipped, but only sums of the rows are kept" in found.test.reason
    with pytest.raises(InputError, match="positive"):
        StreamingCalibration(2, clip=0).update(probs, [0, 1, 0, 1])


def test_logits_keep_what_probabilities_lose():
    rng = np.random.default_rng(0)
    logits = rng.normal(0.0, 40.0, (50, 3)).astype(np.float32)
    y = rng.integers(0, 3, 50)
    found = StreamingCalibration(3).update(logits=logits, y=y).compute()
    batch = mcllo.calibration_test(y=y, logits=logits, statistic="score", method="chi2")
    assert found.n_zeros == 0
    assert found.test.statistic == pytest.approx(batch.statistic, rel=1e-9)


def test_names_of_classes():
    words = np.array(["a", "b", "c"])
    named = StreamingCalibration(3, classes=["a", "b", "c"], baseline="b")
    found = named.update(TOY_X, words[TOY_Y]).compute()
    assert found.in_the_large["class"] == ["a", "b", "c"]
    assert found.test.statistic == pytest.approx(0.8315366381, abs=1e-10)


class Exported:
    """An array of a library that knows the exchange protocol and nothing else of NumPy."""

    def __init__(self, array, asks=None):
        self.array = array
        self.shape = array.shape
        self.asks = asks

    def __dlpack__(self, **given):
        if self.asks and given.get("dl_device") is None:
            raise BufferError("on a device")
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return (1, 0)


def test_arrays_by_the_exchange_protocol():
    expected = StreamingCalibration(3).update(TOY_X, TOY_Y).state
    found = StreamingCalibration(3).update(Exported(TOY_X), Exported(TOY_Y))
    np.testing.assert_array_equal(found.state, expected)
    with pytest.raises(InputError, match="an array, a list or an eager frame"):
        StreamingCalibration(3).update(Exported(TOY_X.astype(">f8")), TOY_Y)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_classes": 1}, "n_classes must be a whole number >= 2"),
        ({"n_classes": 9000}, "small enough for sums of all pairs"),
        ({"n_classes": 3, "n_bins": "sqrt"}, "n_bins must be a whole number >= 1"),
        ({"n_classes": 3, "classes": ["a"]}, "classes must name the 3 columns"),
        ({"n_classes": 3, "baseline": 7}, "baseline=7 is not a class"),
    ],
)
def test_what_cannot_be_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        StreamingCalibration(**given)


def test_only_alike_are_merged():
    with pytest.raises(InputError, match="the same n_bins; got 15 and 10"):
        StreamingCalibration(3).merge(StreamingCalibration(3, n_bins=10))
    with pytest.raises(InputError, match=r"3 classes, \d+ numbers; got shape \(2,\)"):
        StreamingCalibration(3).merge(np.zeros(2))


@pytest.mark.slow
def test_pvalues_and_the_null_of_the_ece_hold_under_calibration():
    # 500 calibrated tables of 300 rows: rejections at 5 % are binomial, 4 standard errors are
    # 3.9 %; the null's mean within 1 % of the mean ECE of the draws' (its standard error: 0.9 %)
    rejected, too_large, observed, expected = 0, 0, [], []
    for seed in range(500):
        probs, y = draw_rows(300, 3, seed, slope=1.0)
        found = StreamingCalibration(3).update(probs, y).compute()
        rejected += found.test.rejects(0.05)
        too_large += found.ece.pvalue <= 0.05
        observed.append(found.ece.observed)
        expected.append(found.ece.mean)
    assert 0.011 < rejected / 500 < 0.089
    assert 0.011 < too_large / 500 < 0.089
    standard_error = np.std(observed) / np.sqrt(500)
    assert abs(np.mean(observed) - np.mean(expected)) < 4.0 * standard_error


def test_the_null_of_the_ece_is_that_of_drawn_labels():
    probs, y = draw_rows(400, 3, seed=1, slope=1.0)
    found = StreamingCalibration(3).update(probs, y).compute().ece
    rng = np.random.default_rng(5)
    drawn = []
    for _ in range(2000):  # standard error of their mean: about 1 % of it
        labels = (probs.cumsum(axis=1) > rng.random((400, 1))).argmax(axis=1)
        error = metrics.expected_calibration_error(labels, probs, n_bins=15)
        drawn.append(error)
    assert found.mean == pytest.approx(np.mean(drawn), rel=0.03)
    assert found.high == pytest.approx(np.quantile(drawn, 0.975), rel=0.05)
