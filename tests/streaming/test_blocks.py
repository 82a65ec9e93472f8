import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from block_data import Batches, blocks_of, cut, rows, same_rows, whole

from mcllo import Predictions
from mcllo._apps.streaming.assess_file import fit_blocks
from mcllo._apps.streaming.blocks import SpilledArray, StreamedBlocks
from mcllo._fit.fit import fit_predictions
from mcllo._utils.statements import suppress_warnings
from mcllo.exceptions import InputError


@pytest.mark.parametrize("changed", [False, True])
def test_any_partition_gives_the_same_rows(changed):
    parts = rows(weighted=changed, zeros=changed)
    p, clip = whole(weighted=changed, zeros=changed), 1e-6 if changed else None
    for at in ((), (1, 800, 801), (0, 50, 50, 3000)):  # the last: with empty batches
        same_rows(blocks_of(parts, at, clip=clip), p)


def test_words_frames_and_baseline():
    probs, y, _ = rows(n=200, c=3)
    names = np.array(["ant", "bee", "cat"])
    frame = pd.DataFrame(probs, columns=names)
    p = Predictions.from_arrays(frame, names[y], baseline="bee")
    shuffled = frame[["cat", "ant", "bee"]]
    batches = [(frame[:120], names[y[:120]]), (shuffled[120:], names[y[120:]])]
    same_rows(StreamedBlocks(Batches(batches, baseline="bee")), p)


def test_logits_one_hot_and_counts():
    scores, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 3
    p = Predictions.from_arrays(None, y, logits=scores)
    same_rows(blocks_of((scores, y), (11,), logits=True), p)
    plain = Predictions.from_arrays(p.probs, y)
    same_rows(blocks_of((p.probs, np.eye(3)[y]), (11,), classes=range(3)), plain)
    small = p.probs.astype(np.float32)
    same_rows(blocks_of((small, y), (11,)), Predictions.from_arrays(small, y))
    counts = np.random.default_rng(1).integers(1, 4, (60, 3))
    q = Predictions.from_arrays(p.probs, counts)
    some = blocks_of((p.probs, counts), (11,)).take(np.array([3, 100]))
    np.testing.assert_array_equal(some.probs, q.probs[[3, 100]])


def test_what_is_refused_names_the_row_of_the_whole():
    probs, y, _ = rows(n=100)
    bad, lost = probs.copy(), np.where(np.arange(100) == 60, 9, y)
    bad[70, 2] = np.nan
    wide = np.full((2, 2600), 1.0 / 2600)
    for parts, row, words in (
        ((bad, y), 70, r"got probs\[70, 2\]=nan"),
        ((probs, lost), 60, r"y contains 9 \(row 60\), which is not a class"),
        ((probs, y, np.zeros(100)), None, "must not be zero everywhere"),
        ((wide, [0, 1]), None, "there may be 5,000; got 5,198"),
    ):
        with pytest.raises(InputError, match=words) as found:
            _ = blocks_of(parts, (33,) if len(parts[0]) > 2 else ()).first_pass
        assert found.value.row == row
    light = np.r_[np.zeros(50), np.ones(50)]
    assert blocks_of((probs, y, light), (50,)).first_pass.metric_sums.weight == 50.0


@pytest.mark.parametrize("spill", [False, True])
def test_the_number_of_threads_changes_no_bit(spill):
    fits = [
        fit_blocks(
            blocks_of(rows(n=2000), range(13, 2000, 170), n_jobs=n_jobs, spill=spill)
        )
        for n_jobs in (1, 3, -1)
    ]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.theta, fits[0].theta)
        np.testing.assert_array_equal(fit.cov_theta, fits[0].cov_theta)
        assert fit.log_likelihood == fits[0].log_likelihood


def test_kept_blocks_are_read_instead_of_the_source():
    source = Batches(cut(rows(n=100)[:2], (30,)))
    again, blocks = (
        StreamedBlocks(source, spill=False),
        StreamedBlocks(source, spill=True),
    )
    n = blocks.first_pass.n_samples
    assert again.first_pass.n_samples == n
    source.batches = ()  # cannot be read any more
    assert blocks.take().n_samples == n
    assert blocks.n_passes == 2
    with pytest.raises(InputError, match="at least one row; got none"):
        again.take()
    with blocks:
        pass
    with pytest.raises(FileNotFoundError):
        blocks.take()


def test_a_failed_pass_leaves_no_blocks_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    blocks = blocks_of(rows(n=100), (30, 60), n_jobs=1)

    def fails(block):
        if block.start == 60:
            raise RuntimeError("stop")
        return 1

    with pytest.raises(RuntimeError, match="stop"):
        blocks.sum_over_blocks(fails)
    assert blocks.first_pass.n_samples == 100
    assert blocks.take().n_samples == 100
    assert len(os.listdir(tmp_path)) == 1
    del blocks
    assert os.listdir(tmp_path) == []


def test_without_room_the_source_is_read_again(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(SpilledArray, "write", full)
    blocks = blocks_of(rows(n=100), (30,), spill=True)
    assert blocks.take().n_samples == 100
    assert blocks._spill is None


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12.0).reshape(3, 4),
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        np.arange(24.0).reshape(4, 6)[:, ::2],  # neither order
        np.arange(5, dtype=np.int32),
        np.zeros((3, 0)),
    ],
)
def test_a_kept_array_comes_back_in_the_same_order(array, tmp_path):
    found = SpilledArray.write(tmp_path / "array", array).read()
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype
    assert found.flags.fnc == array.flags.fnc


SLOW_BATCHES = """
import os, sys, time
import numpy as np
from block_data import Batches
from mcllo._apps.streaming.blocks import StreamedBlocks
from mcllo._apps.streaming.assess_file import fit_blocks

class Endless(list):
    def __iter__(self):
        rng = np.random.default_rng(0)
        while True:
            probs = rng.dirichlet(np.ones(4), 20_000)
            yield probs, rng.integers(0, 4, 20_000)
            print("kept", len(os.listdir(os.environ["TMPDIR"])), flush=True)
            time.sleep(0.01)

try:
    fit_blocks(StreamedBlocks(Batches(Endless()), n_jobs=2))
except KeyboardInterrupt:
    import threading
    print("stopped", threading.active_count(), flush=True)
    sys.exit(130)
"""


@pytest.mark.slow
def test_an_interrupt_leaves_no_file_and_no_thread(tmp_path):
    run = subprocess.Popen(
        [sys.executable, "-c", SLOW_BATCHES],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "TMPDIR": str(tmp_path),
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
    )
    for _ in range(5):
        seen = run.stdout.readline()
    assert seen == "kept 1\n"
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 130, err
    assert out.splitlines()[-1] == "stopped 1"
    assert err == ""
    assert os.listdir(tmp_path) == []


MEASURE = """
import resource, sys
from mcllo._apps.streaming.assess_file import assess_blocks
from mcllo._apps.streaming.file_blocks import blocks_of_files
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


@pytest.mark.parametrize(("at", "spill"), [((), False), ((1, 2, 3, 150), True)])
def test_the_default_baseline_does_not_depend_on_the_partition(at, spill):
    probs, y, _ = rows(n=200, c=5)
    y = np.where(y == 4, np.arange(200) % 3, y)
    late = np.flatnonzero(y == 3)[
        -1
    ]  # the last class that occurs stands in one row, far behind
    y[(y == 3) & (np.arange(200) < late)] = 0
    p = Predictions.from_arrays(probs, y, classes=range(5))
    assert p.baseline == 3
    with (
        blocks_of((probs, y), at, spill=spill, classes=range(5)) as blocks,
        suppress_warnings(),
    ):
        fit = fit_blocks(blocks)
        same_rows(blocks, p)
        assert blocks.facts.baseline == fit.baseline == 3
        assert fit.statistic == pytest.approx(fit_predictions(p).statistic, rel=1e-9)


def test_a_baseline_that_was_asked_for_stays_though_it_never_occurs():
    probs, y, _ = rows(n=200, c=3)
    blocks = blocks_of((probs, y % 2), classes=range(3), baseline=2)
    assert blocks.facts.baseline == 2
    assert blocks.n_passes == 1
