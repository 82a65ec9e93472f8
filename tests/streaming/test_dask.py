"""Dask collections: any chunking gives the fit of the whole, errors name the row, workers die."""

import os
import pickle
import signal
import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from block_data import blocks_of, rows, same_fit, whole
from hypothesis import given, settings
from hypothesis import strategies as st

from mcllo import assess
from mcllo._apps.streaming.assess_file import BlockAssessment, assess_blocks, fit_blocks
from mcllo._apps.streaming.dask import (
    DaskBlocks,
    blocks_of_dask,
    is_dask,
    lazy_predict,
    lazy_predict_labels,
)
from mcllo._apps.streaming.dask_jobs import PartitionJob
from mcllo._apps.streaming.sums import sum_block_rows
from mcllo._fit.fit import fit_predictions
from mcllo.calibrators import MCLLOCalibrator
from mcllo.exceptions import InputError

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

NAMES = list("abcde")

# dask's own: deprecated words of pandas, and text that becomes an array
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:The inplace keyword"),
    pytest.mark.filterwarnings("ignore:Dask currently has limited support"),
]


def frame(n=3000, weighted=True, **options):
    """Return the rows as a pandas frame: class columns a .. e, labels of three kinds, weights."""
    probs, y, weight = rows(n, weighted=weighted, **options)
    table = pd.DataFrame(probs, columns=NAMES)
    table["word"] = np.array(NAMES)[y]
    table["category"] = table["word"].astype("category")
    table["w"] = 1.0 if weight is None else weight
    return table


def many(n_partitions=7, **options):
    return dd.from_pandas(frame(**options), npartitions=n_partitions)


def arrays(chunks=400, columns=2, **options):
    probs, y, weight = rows(**options)
    parts = [
        da.from_array(probs, chunks=(chunks, columns)),
        da.from_array(y, chunks=1100),
    ]
    return [*parts, None if weight is None else da.from_array(weight, chunks=-1)]


def graph_of(blocks):
    """Return what one pass asks of the workers, without the additions."""
    tasks = blocks.rows._make_tasks(
        PartitionJob(sum_block_rows, blocks.layout, blocks.rows.starts)
    )
    return tasks, dict(tasks[0].__dask_graph__())


def test_what_is_dask_is_told_without_importing_it():
    assert is_dask(da.ones(3))
    assert is_dask(many()["w"])
    assert not is_dask(np.ones(3))
    assert not is_dask(frame())
    code = (
        "import sys, numpy; from mcllo._apps.streaming.dask import is_dask; "
        "is_dask(numpy.ones(2)); print('dask' in sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("chunks", "weighted"),
    [(3000, False), (1, True), (37, False), ((1, 2998, 1), True)],
)
def test_any_chunking_of_arrays_gives_the_fit_of_the_whole(chunks, weighted):
    n = 3000 if chunks != 1 else 40
    probs, y, weight = rows(n, c=3, weighted=weighted)
    size = (chunks,) if isinstance(chunks, tuple) else chunks
    table, labels = (
        da.from_array(probs, chunks=(chunks, 2)),
        da.from_array(y, chunks=size),
    )
    weight = None if weight is None else da.from_array(weight, chunks=-1)
    blocks = blocks_of_dask(table, labels, sample_weight=weight)
    same_fit(fit_blocks(blocks), fit_predictions(whole(n, c=3, weighted=weighted)))


@given(cuts=st.sets(st.integers(1, 299), max_size=12), shift=st.integers(0, 40))
@settings(deadline=None, max_examples=15)
def test_labels_follow_the_chunks_of_the_probabilities(cuts, shift):
    probs, y, _ = rows(300, c=3)
    ends = [0, *sorted(cuts), 300]
    sizes = tuple(np.diff(ends).tolist())
    blocks = blocks_of_dask(
        da.from_array(probs, chunks=(sizes, 3)), da.from_array(y, chunks=50 + shift)
    )
    assert [start for start, _ in blocks.first_pass.block_sizes] == ends[:-1]
    same_fit(fit_blocks(blocks), fit_predictions(whole(300, c=3)))


@pytest.mark.parametrize(
    ("n_partitions", "label"), [(1, "word"), (40, "word"), (4, "category")]
)
def test_any_partition_of_a_frame_gives_the_fit_of_the_whole(n_partitions, label):
    table = frame()
    ddf = dd.from_pandas(table, npartitions=n_partitions)
    found = fit_blocks(blocks_of_dask(ddf[NAMES], ddf[label], sample_weight=ddf["w"]))
    same_fit(found, fit_predictions(whole(weighted=True, names=NAMES)))


def test_frames_and_arrays_mix():
    ddf, expected = many(), fit_predictions(whole(weighted=True, names=NAMES))
    known = ddf[NAMES].to_dask_array(lengths=True)
    pairs = [
        (ddf[NAMES].to_dask_array(), ddf["word"]),
        (ddf[NAMES].values, ddf["category"]),
        (known, ddf["word"]),
        (known, frame()["word"].to_numpy()),
        (ddf[NAMES], ddf["word"].to_dask_array()),
    ]
    for probs, y in pairs:
        weight = ddf["w"].to_dask_array(lengths=True)
        same_fit(fit_blocks(blocks_of_dask(probs, y, sample_weight=weight)), expected)


def test_columns_are_found_by_name():
    ddf = many()
    blocks = blocks_of_dask(
        ddf[["w", *NAMES[::-1]]],
        ddf["word"],
        classes=NAMES,
        baseline="b",
        sample_weight=ddf["w"],
    )
    same_fit(
        fit_blocks(blocks),
        fit_predictions(whole(weighted=True, names=NAMES, baseline="b")),
    )


def test_a_table_of_counts_serves_as_labels():
    probs, y, _ = rows(c=3)
    counts = np.eye(3)[y] * 2.0
    blocks = blocks_of_dask(
        da.from_array(probs, chunks=700), da.from_array(counts, chunks=500)
    )
    weighted = fit_blocks(blocks_of((probs, y, np.full(3000, 2.0))))
    np.testing.assert_allclose(fit_blocks(blocks).theta, weighted.theta, atol=1e-10)


@pytest.mark.parametrize("first", [0, 1])
def test_classes_are_those_of_all_labels(first):
    # sorted by label: the first chunk alone would name other classes, or none
    y = np.sort(np.arange(60) % 3) + first
    probs = np.random.default_rng(0).dirichlet([1, 1, 1], 60)
    table = da.from_array(probs, chunks=(20, 3))
    assert blocks_of_dask(table, y).layout.classes == tuple(range(first, first + 3))
    words = np.array(["w0", "w1", "w2", "w3"])[y]
    assert blocks_of_dask(table, words).layout.classes == tuple(
        np.unique(words).tolist()
    )


def test_column_names_take_the_type_of_the_labels():
    probs, y, _ = rows(100, c=3)
    table = pd.DataFrame(probs, columns=["0", "1", "2"]).assign(
        y=y, t=y.astype(str), f=1.0 * y
    )
    ddf = dd.from_pandas(table, npartitions=3)
    classes = {
        k: blocks_of_dask(ddf[["0", "1", "2"]], ddf[k]).layout.classes for k in "ytf"
    }
    assert classes == {"y": (0, 1, 2), "f": (0, 1, 2), "t": ("0", "1", "2")}


def test_empty_partitions_do_not_count():
    ddf = many()
    few = ddf[ddf["w"] > 0]
    few = dd.concat([few[few["w"] > 9], few, few[few["w"] > 9]])
    found = fit_blocks(blocks_of_dask(few[NAMES], few["word"], sample_weight=few["w"]))
    np.testing.assert_allclose(
        found.theta, fit_predictions(whole(weighted=True)).theta, atol=1e-10
    )


def test_dask_rows_are_assessed_as_arrays_are():
    probs, y, _ = rows(c=3)
    plain = assess(probs, y, n_resamples=99, seed=1)
    for found in (
        assess(
            da.from_array(probs, chunks=800),
            da.from_array(y, 700),
            n_resamples=99,
            seed=1,
        ),
        assess(
            None,
            y,
            logits=da.from_array(np.log(probs), chunks=800),
            n_resamples=99,
            seed=1,
        ),
    ):
        assert isinstance(found, BlockAssessment)
        assert found.test.pvalue == plain.test.pvalue
        np.testing.assert_allclose(found.fit.theta, plain.fit.theta, atol=1e-10)
        assert found.metrics == pytest.approx(plain.metrics, rel=1e-12)


def test_what_needs_all_rows_is_refused():
    probs, y, _ = rows(c=3)
    lazy = da.from_array(probs, chunks=800)
    for option in (
        {"baseline": "auto"},
        {"weight_kind": "survey"},
        {"groups": np.arange(3000)},
    ):
        with pytest.raises(
            InputError, match=r"needs all rows in memory. Pass probs\.compute\(\)"
        ):
            assess(lazy, y, **option)


def test_a_large_assessment_gathers_only_a_subsample():
    ddf = many()
    blocks = blocks_of_dask(ddf[NAMES], ddf["word"])
    found = assess_blocks(blocks, seed=1, most_cells=100)
    expected = assess_blocks(blocks_of(rows(weighted=True)[:2]), seed=1, most_cells=100)
    assert found.test.statistic == pytest.approx(expected.test.statistic, rel=1e-9)
    assert found.metrics == pytest.approx(expected.metrics, rel=1e-10)


def write_parquet(directory, n_files=6):
    """Write the rows as a directory of Parquet files."""
    directory.mkdir()
    table = frame().drop(columns="category")
    for k in range(n_files):
        part = table.iloc[k * 500 : (k + 1) * 500]
        pq.write_table(
            pa.Table.from_pandas(part, preserve_index=False), directory / f"{k}.parquet"
        )
    return directory


def test_a_pass_is_one_small_task_for_each_file(tmp_path):
    ddf = dd.read_parquet(write_parquet(tmp_path / "rows"))
    blocks = blocks_of_dask(ddf[NAMES], ddf["word"], sample_weight=ddf["w"])
    tasks, graph = graph_of(blocks)
    assert len(tasks) == 6
    assert len(graph) == 6 + 1  # and what is to be done, sent once
    (sums,) = dask.compute(tasks[0])
    assert (
        len(pickle.dumps(sums)) < 5000
    )  # 500 rows of 5 probabilities are 20,000 bytes


def test_nothing_is_read_before_it_is_needed():
    def never(*_):
        raise AssertionError("was read")

    lazy = da.ones((30, 3), chunks=10).map_blocks(
        never, dtype=float, meta=np.empty((0, 0))
    )
    y = da.zeros(30, chunks=10, dtype=int)
    blocks_of_dask(lazy, y, classes=[0, 1, 2])
    with pytest.raises(AssertionError, match="was read"):
        _ = blocks_of_dask(lazy, y, classes=[0, 1, 2]).first_pass


def test_predictions_are_lazy_and_equal():
    probs, y, _ = rows()
    fitted = MCLLOCalibrator().fit(probs, y)
    expected = fitted.predict_proba(probs)
    lazy = lazy_predict(fitted, da.from_array(probs, chunks=(700, 2)))
    labels = lazy_predict_labels(fitted, da.from_array(probs, chunks=(700, 2)))
    assert is_dask(lazy)
    assert lazy.chunks == ((700, 700, 700, 700, 200), (5,))
    fitted.fit(probs[:100], y[:100])  # what was asked for does not change
    np.testing.assert_allclose(lazy.compute(), expected, rtol=1e-12)
    np.testing.assert_array_equal(labels.compute(), expected.argmax(axis=1))


def test_a_frame_gives_a_frame_of_its_class_columns():
    table, ddf = frame(), many()
    fitted = MCLLOCalibrator().fit(table[NAMES], table["word"])
    lazy = lazy_predict(fitted, ddf[["w", "c", "a", "b", "e", "d"]])
    assert list(lazy.columns) == NAMES
    assert lazy.divisions == ddf.divisions
    found = lazy.compute()
    np.testing.assert_allclose(
        found.to_numpy(), fitted.predict_proba(table[NAMES]), rtol=1e-12
    )
    assert found.index.equals(table.index)
    assert (
        lazy_predict_labels(fitted, ddf[NAMES]).compute()[0] == found.iloc[0].idxmax()
    )
    empty = ddf[ddf["w"] > 9]
    assert lazy_predict(fitted, empty[NAMES]).compute().shape == (0, 5)


def test_an_error_names_the_row_of_the_whole():
    probs, y, _ = rows(1000, c=3)
    probs[723, 1] = np.nan
    refused(r"probs\[723, 1\]", da.from_array(probs, chunks=250), y)
    words = np.array(["a", "b", "c"], dtype=object)[y]
    words[623] = "z"
    clean = da.from_array(rows(1000, c=3)[0], chunks=250)
    refused(
        r"contains 'z' \(row 623\), which is not a class",
        clean,
        words,
        classes=[*"abc"],
    )
    fitted = MCLLOCalibrator().fit(probs[:700], y[:700])
    with pytest.raises(InputError, match=r"probs\[723, 1\]"):
        lazy_predict(fitted, da.from_array(probs, chunks=250)).compute()


def test_an_error_names_the_partition_of_a_frame():
    for row, column, value, words in (
        (2000, "c", -0.5, r"probs .*probs\[0, 2\]=-0\.5"),
        (2001, "word", None, r"every row needs a label; y\[1\]"),
        (2001, "word", "z", r"y contains 'z' \(row 1\)"),
    ):
        table = frame()
        table[column] = table[column].where(table.index != row, value)
        ddf = dd.from_pandas(table, npartitions=6)
        refused(f"in partition 4: .*{words}", ddf[NAMES], ddf["word"])


def refused(match, *args, **options):
    with pytest.raises(InputError, match=match):
        _ = blocks_of_dask(*args, **options).first_pass


def test_what_does_not_fit_together_is_refused():
    X, y, _ = arrays(c=3)
    ddf, other = many(), many(5)
    refused("same number of rows; got 3000 and 2999", X, y[:-1])
    refused("same partitions; got 7 and 5", ddf[NAMES], other["word"])
    refused("same partitions; got 7 and 5", ddf[NAMES].values, other["word"])
    refused(
        "y must be a Dask collection .* Take both from one", ddf[NAMES], frame()["word"]
    )
    refused("probs must be a Dask array or dataframe .* got ndarray", rows()[0], y)
    refused("y must hold one label per row; got None", X)
    refused("give probs or logits, not both", X, y, logits=X)
    refused("must be a Dask array of shape", y, y)
    refused("must be a Dask array of shape", ddf["w"], ddf["word"])
    refused("y must be a Dask array or series; got Delayed", X, dask.delayed([0]))
    refused(
        "column 'word' is String|column 'word' is", ddf[[*NAMES, "word"]], ddf["word"]
    )
    refused(
        "probs has no column 'z'", ddf[NAMES], ddf["word"], classes=[*NAMES[:4], "z"]
    )
    shifted = ddf["word"].map_partitions(
        lambda part: part.iloc[1:], meta=ddf["word"]._meta
    )
    refused(r"in partition \d: .*same number of rows", ddf[NAMES], shifted)
    refused(
        "probs has 3 columns and y has 5 distinct",
        X,
        ddf["word"].to_dask_array(lengths=True),
    )
    refused(
        "at least one row; got none",
        ddf[ddf["w"] > 9][NAMES],
        ddf[ddf["w"] > 9]["word"],
    )
    fitted = MCLLOCalibrator().fit(*rows(c=3)[:2])
    with pytest.raises(InputError, match=r"a column per class \(3\); got 5"):
        lazy_predict(fitted, arrays()[0])


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


class Dying(DaskBlocks):
    """Blocks that kill the worker who reads them, once, in the middle of the third pass."""

    flag = None

    def sum_over_blocks(self, work, name="reading", *, whole=True):
        if self.n_passes == 2:
            work = partial(dies_once, work=work, flag=self.flag)
        return super().sum_over_blocks(work, name, whole=whole)


def dies_once(block, work, flag):
    if block.start and not os.path.exists(flag):
        with open(flag, "w") as file:
            file.write(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    return work(block)


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.parametrize("persisted", [False, True])
def test_a_killed_worker_changes_no_bit(client, tmp_path, persisted):
    ddf = dd.read_parquet(write_parquet(tmp_path / "rows"))
    ddf = ddf.persist() if persisted else ddf
    blocks = blocks_of_dask(ddf[NAMES], ddf["word"], sample_weight=ddf["w"])
    expected = fit_blocks(blocks)
    dying = Dying(blocks.rows, blocks.layout)
    dying.flag = str(tmp_path / "killed")
    found = fit_blocks(dying)
    killed = int((tmp_path / "killed").read_text())
    assert killed != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(killed, 0)
    np.testing.assert_array_equal(found.theta, expected.theta)
    np.testing.assert_array_equal(found.cov_theta, expected.cov_theta)
    same_fit(found, fit_predictions(whole(weighted=True, names=NAMES)))


def test_workers_validate_and_predict(client, tmp_path):
    ddf = dd.read_parquet(write_parquet(tmp_path / "rows"))
    fitted = MCLLOCalibrator()._adopt_fit(
        fit_blocks(blocks_of_dask(ddf[NAMES], ddf["word"]))
    )
    table = frame()
    expected = fitted.predict_proba(table[NAMES])
    np.testing.assert_allclose(
        lazy_predict(fitted, ddf[NAMES]).compute(), expected, rtol=1e-12
    )
    bad = ddf[NAMES].assign(c=ddf["c"] - 2.0)
    refused(r"in partition \d: .*probs\[0, 2\]=-", bad, ddf["word"])


def test_partitions_whose_index_differs_are_refused():
    x = np.random.default_rng(0).dirichlet(np.ones(2), 40)
    probs = dd.from_pandas(pd.DataFrame(x, columns=["0", "1"]), npartitions=2)
    y = pd.Series(np.arange(40) % 2, index=np.arange(40))
    assert blocks_of_dask(probs, dd.from_pandas(y, npartitions=2)).facts.n_samples == 40
    turned = dd.from_pandas(y, npartitions=2).map_partitions(lambda part: part[::-1])
    with pytest.raises(InputError, match="y must have the index of probs"):
        blocks_of_dask(probs, turned).facts  # noqa: B018 - the first pass reads
