import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from block_data import cut, rows, whole

from mcllo._blocks.blocks import Blocks, Streamed, in_order
from mcllo._blocks.fit import fit_blocks
from mcllo._blocks.sources import BatchSource, blocks_of_arrays, blocks_of_batches
from mcllo._blocks.sums import Reading
from mcllo._math.likelihood import LogPartition
from mcllo.exceptions import InputError


def test_results_come_in_order_and_few_wait():
    running, most, lock = 0, 0, threading.Lock()

    def work(item):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.002 * (item % 3))
        with lock:
            running -= 1
        return item

    drawn = []

    def items():
        for item in range(30):
            drawn.append(item)
            yield item

    for item in in_order(work, items(), 3):
        assert len(drawn) <= item + 5  # 3 at work, 1 waiting, this one
    assert drawn == list(range(30))
    assert most <= 3
    assert list(in_order(work, range(5), 1)) == list(range(5))


def test_an_error_ends_the_workers():
    def work(item):
        if item == 2:
            raise ValueError("two")
        return item

    before = threading.active_count()
    with pytest.raises(ValueError, match="two"):
        list(in_order(work, range(100), 4))
    assert threading.active_count() == before


def test_numpys_error_state_is_the_callers():
    with np.errstate(over="ignore"):
        found = list(in_order(lambda x: np.exp(np.array([x])), [1e4, 2e4, 3e4], 2))
    assert np.isinf(found).all()


@pytest.mark.parametrize("spill", [False, True])
def test_the_number_of_threads_changes_no_bit(spill):
    batches = cut(rows(n=5000)[:2], range(13, 5000, 170))
    fits = [
        fit_blocks(blocks_of_batches(batches, n_jobs=n_jobs, spill=spill))
        for n_jobs in (1, 2, 3, -1)
    ]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.theta, fits[0].theta)
        np.testing.assert_array_equal(fit.cov_theta, fits[0].cov_theta)
        assert fit.log_likelihood == fits[0].log_likelihood


def test_terms_are_the_sum_over_rows():
    p, theta = whole(), np.linspace(-0.2, 1.1, 8)
    found = blocks_of_arrays(p).terms(theta)
    expected = LogPartition(p.log_odds)(theta)
    np.testing.assert_allclose(found.hessian, expected.hessian, rtol=1e-12)


def test_kept_blocks_are_read_instead_of_the_source():
    source = BatchSource(lambda: iter(cut(rows(n=100)[:2], (30,))), Reading())
    blocks = Streamed(source)
    n = blocks.first.n_samples
    source._again = None  # cannot be read any more
    source._batches = ()
    assert blocks.take().n_samples == n
    assert blocks.n_passes == 2
    with blocks:
        pass
    with pytest.raises(ValueError, match="closed"):
        blocks.take()


def test_a_failed_pass_leaves_no_blocks_behind():
    blocks = blocks_of_batches(cut(rows(n=100)[:2], (30, 60)), n_jobs=1)

    def fails(block):
        if block.start == 60:
            raise RuntimeError("stop")
        return 1

    with pytest.raises(RuntimeError, match="stop"):
        blocks.total(fails)
    assert blocks.first.n_samples == 100
    assert blocks.take().n_samples == 100


def full(*_):
    raise OSError(28, "No space left on device")


def test_without_room_the_source_is_read_again(monkeypatch):
    monkeypatch.setattr(os, "pwrite", full)
    blocks = blocks_of_batches(lambda: iter(cut(rows(n=100)[:2], (30,))))
    assert blocks.take().n_samples == 100


def test_without_room_an_iterator_is_refused(monkeypatch):
    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(InputError, match="must fit into the temporary directory, which is full"):
        _ = blocks_of_batches(iter(cut(rows(n=100)[:2], (30,)))).first


def test_too_many_classes_are_refused():
    probs = np.full((2, 2600), 1.0 / 2600)
    with pytest.raises(InputError, match="there may be 5,000; got 5,198"):
        _ = blocks_of_arrays(probs, [0, 1]).first


class Elsewhere(Blocks):
    """Another way to add: what a cluster would do."""

    def __init__(self, blocks):
        self.blocks, self.layout = blocks, blocks.layout

    def total(self, work, name="reading", *, whole=True):
        parts = [work(block) for unit in self.blocks.source.units() for block in unit()]
        return sum(parts[1:], start=parts[0])


def test_total_is_all_that_a_subclass_needs():
    blocks = blocks_of_batches(cut(rows(n=900)[:2], (100, 500)))
    found, expected = fit_blocks(Elsewhere(blocks)), fit_blocks(blocks)
    np.testing.assert_allclose(found.theta, expected.theta, rtol=1e-12)


def test_work_can_be_sent():
    import pickle  # what a cluster does with work

    from mcllo._blocks.bins import bin_sums
    from mcllo._blocks.sums import block_terms, picked, row_sums

    for work in (
        row_sums,
        partial(block_terms, theta=np.ones(8)),
        partial(picked, rows=None, starts={}),
    ):
        assert pickle.loads(pickle.dumps(work)) is not None
    sums = pickle.loads(pickle.dumps(blocks_of_arrays(whole()).first))
    assert (sums + sums).n_samples == 6000
    assert bin_sums.__module__ == "mcllo._blocks.bins"


SLOW_BATCHES = """
import sys, time
import numpy as np
from mcllo._blocks.fit import fit_blocks
from mcllo._blocks.sources import blocks_of_batches

def batches():
    rng = np.random.default_rng(0)
    while True:
        probs = rng.dirichlet(np.ones(4), 20_000)
        yield probs, rng.integers(0, 4, 20_000)
        print("batch", flush=True)
        time.sleep(0.01)

try:
    fit_blocks(blocks_of_batches(batches(), n_jobs=2))
except KeyboardInterrupt:
    import threading
    print("stopped", threading.active_count(), flush=True)
    sys.exit(130)
"""


def test_an_interrupt_leaves_no_file_and_no_thread(tmp_path):
    run = subprocess.Popen(
        [sys.executable, "-c", SLOW_BATCHES],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path), "OPENBLAS_NUM_THREADS": "1"},
    )
    for _ in range(5):
        run.stdout.readline()
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 130, err
    assert out.splitlines()[-1] == "stopped 1"
    assert err == ""
    assert os.listdir(tmp_path) == []


MEASURE = """
import resource, sys
from mcllo._blocks.assess import assess_blocks
from mcllo._blocks.files import blocks_of_files
found = assess_blocks(blocks_of_files(sys.argv[1], label="y", n_jobs=2), seed=0)
print(found.predictions.n_samples, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak(path):
    """Return rows and the high-water mark of memory, in MB."""
    run = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    n, size = map(int, run.stdout.split())
    return n, size / (1 << (20 if sys.platform == "darwin" else 10))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs resource.getrusage")
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_memory_does_not_grow_with_the_file(tmp_path, kind):
    rng = np.random.default_rng(0)
    chunk = 100_000
    probs = rng.gamma(1.0, size=(chunk, 10)) + 0.01
    probs /= probs.sum(axis=1, keepdims=True)
    columns = {str(j): probs[:, j].round(6 if kind == "csv" else 16) for j in range(10)}
    columns["9"] = 1.0 - sum(columns[str(j)] for j in range(9))
    table = pa.table({**columns, "y": rng.integers(0, 10, chunk)})
    sizes = []
    for times in (3, 9):
        path = tmp_path / f"{times}.{kind}"
        if kind == "parquet":
            with pq.ParquetWriter(path, table.schema) as writer:
                for _ in range(times):
                    writer.write_table(table)
        else:
            from pyarrow import csv

            csv.write_csv(pa.concat_tables([table] * times), path)
        n, size = peak(path)
        path.unlink()
        assert n == times * chunk
        sizes.append(size)
    # 600,000 rows more in memory would be 48 MB of probabilities and 43 MB of log odds
    assert sizes[1] - sizes[0] < 60.0, sizes
