"""Memory and time are bounded by what a file unpacks to, or it is refused with the limit.

F2, F4, F8 (sizes), F13.
"""

import gzip
import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from calls import LABEL, refused, said
from inputs import csv_text, predictions

import mcllo
from mcllo._utils.parallel import available_memory
from mcllo.exceptions import InputError, SeparationWarning

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs resource.getrusage")
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and its limits")


PEAK = """
import sys
from mcllo.__main__ import run_command_line
code = run_command_line(sys.argv[1:])
with open("/proc/self/status") as file:
    (size,) = [line.split()[1] for line in file if line.startswith("VmHWM")]
print(code, size, file=sys.stderr)
"""
"""The peak of this program alone; `resource` would also count that of the process it came from."""


def peak(*arguments):
    """Run a verb in a process of its own; return its largest memory in MB."""
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    code, size = map(int, done.stderr.split()[-2:])
    assert code == 0, done.stderr
    return size / 1024


@linux
@pytest.mark.slow
def test_F2_apply_takes_no_more_memory_for_more_rows(tmp_path):
    # All of a file was once read ahead: 1.5 million rows of ten classes more were 148 MB. What is
    # read ahead now is full at 300,000 rows; one process takes up to 40 MB more than the next.
    rng = np.random.default_rng(0)
    names, rows = list("abcdefghij"), rng.dirichlet(np.ones(10), 100_000)
    model, labels = tmp_path / "model.json", rng.choice(names, 2000)
    mcllo.MCLLOCalibrator().fit(rows[:2000], labels).save(model)
    sizes = []
    for times in (3, 18):
        table = pa.table(
            {name: np.tile(rows[:, j], times) for j, name in enumerate(names)}
        )
        path = tmp_path / f"{times}.parquet"
        pq.write_table(table, path, row_group_size=20_000)
        runs = [
            peak("apply", model, path, "-o", tmp_path / "out.parquet") for _ in range(2)
        ]
        sizes.append(min(runs))
    assert sizes[1] - sizes[0] < 74.0, sizes


LIMITED = """
import resource, sys
import numpy, pyarrow.parquet, scipy.optimize
from mcllo.__main__ import run_command_line
with open("/proc/self/statm") as file:
    size = int(file.read().split()[0]) * resource.getpagesize() + (1 << 29)
resource.setrlimit(resource.RLIMIT_AS, (size, size))
sys.exit(run_command_line(sys.argv[1:]))
"""
"""A verb that may take half a GB more than its libraries."""


@linux
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv.gz", "parquet"])
def test_F4_a_small_file_of_very_many_rows_is_told_by_its_rows(kind, tmp_path):
    path = tmp_path / f"f.{kind}"
    if kind == "csv.gz":  # 20 million rows in 1 MB
        chunk = gzip.compress(b"0.5,0.5,a\n0.5,0.5,b\n" * 500_000, mtime=0)
        path.write_bytes(gzip.compress(b"a,b,y\n", mtime=0) + chunk * 20)
    else:
        half, y = pa.array(np.full(1_000_000, 0.5)), pa.array(["a", "b"] * 500_000)
        table = pa.table({"a": half, "b": half, "y": y.dictionary_encode()})
        with pq.ParquetWriter(path, table.schema) as writer:
            for _ in range(15):
                writer.write_table(table)
    assert path.stat().st_size < 1e7
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, "compare", path, *LABEL, "--seed", "1"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    line = done.stderr.splitlines()[-1]
    assert "rows" in line, line
    assert "damaged" not in line


def constant_rows(n):
    """Return a table of two classes that Parquet packs to next to nothing."""
    words = pa.DictionaryArray.from_arrays(
        np.zeros(n, np.int32) + np.arange(n) % 2, ["a", "b"]
    )
    half = pa.array(np.full(n, 0.5))
    return pa.table({"a": half, "b": half, "y": words})


def packed_csv(path, n_million):
    """Write millions of rows of ten bytes, packed to a few kilobytes."""
    chunk = b"0.5,0.5,a\n0.5,0.5,b\n" * 50_000
    members = gzip.compress(b"a,b,y\n" + chunk, mtime=0), gzip.compress(chunk, mtime=0)
    path.write_bytes(members[0] + members[1] * (10 * n_million - 1))


@pytest.mark.parametrize(
    ("kind", "verb"),
    [
        ("csv.gz", "compare"),
        ("csv.zst", "plot"),
        ("parquet", "fit"),
        ("feather", "assess"),
        ("csv", "monitor"),
        ("csv.gz", "power"),
    ],
)
def test_F4_what_must_be_read_at_once_is_refused_by_what_it_unpacks_to(
    kind, verb, tmp_path, capsys, monkeypatch
):
    file = tmp_path / f"f.{kind}"
    n = 100_000
    if kind == "csv.gz":
        packed_csv(file, 1)
    elif kind == "parquet":
        pq.write_table(constant_rows(n), file)
    elif kind == "feather":
        from pyarrow import feather

        feather.write_feather(constant_rows(n), file, compression="lz4")
    else:
        text = b"a,b,y\n" + b"0.5,0.5,a\n0.5,0.5,b\n" * (n // 2)
        packed = pa.compress(text, "zstd", asbytes=True) if kind == "csv.zst" else text
        file.write_bytes(packed)
    monkeypatch.setenv("MCLLO_MEMORY", "0.005")
    out = tmp_path / "out"
    command = {
        "compare": ["compare", file, *LABEL],
        "plot": ["plot", file, *LABEL, "-o", f"{out}.svg"],
        "fit": ["fit", file, *LABEL, "--method", "temperature", "-o", f"{out}.json"],
        "assess": ["assess", file, *LABEL, "--html", f"{out}.html"],
        "monitor": ["monitor", "add", f"{out}.db", file, *LABEL, "--batch", "1"],
        "power": ["power", file, *LABEL, "--gamma", "0.8"],
    }[verb]
    if verb == "monitor":
        assert said(capsys, "monitor", "start", f"{out}.db")[0] == 0
    code, _, err = said(capsys, *command)
    line = err.splitlines()[-1]
    assert code == 2
    if kind == "csv.gz":  # counted as far as it needs to be
        assert " or more rows of 2 classes take about" in line
    else:
        more = " or more" if kind == "csv.zst" else ""
        assert f"{n:,}{more} rows of 2 classes take about" in line
    assert "GB of memory; there are 0.0050." in line
    assert "MCLLO_MEMORY=1 says that there is more." in line
    assert not list(tmp_path.glob("out.[shj]*"))


def test_F4_python_is_told_the_same_and_what_fits_is_read(tmp_path, monkeypatch):
    file = tmp_path / "f.csv.gz"
    file.write_bytes(gzip.compress(csv_text(n=300).encode()))
    assert mcllo.read_predictions(file, label="y").n_samples == 300
    # 300 rows of 3 classes, a label and a word, four times: 115 kB
    for size, fits in (("0.000110", False), ("0.000120", True)):
        monkeypatch.setenv("MCLLO_MEMORY", size)
        if fits:
            assert mcllo.read_predictions(file, label="y").n_samples == 300
        else:
            with pytest.raises(
                InputError, match="read at once, and its 300 or more rows of 3"
            ):
                mcllo.read_predictions(file, label="y")


def test_how_much_memory_there_is(monkeypatch):
    monkeypatch.delenv("MCLLO_MEMORY", raising=False)
    assert available_memory() > 1e8
    monkeypatch.setenv("MCLLO_MEMORY", "2.5")
    assert available_memory() == 2.5e9
    for wrong in ("much", "-1", "0", "nan"):
        monkeypatch.setenv("MCLLO_MEMORY", wrong)
        with pytest.raises(
            InputError, match="MCLLO_MEMORY must be a number of gigabytes"
        ):
            available_memory()


@posix
@pytest.mark.slow
def test_the_limit_of_the_process_counts():
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30));"
        "from mcllo._utils.parallel import available_memory; print(available_memory() <= 3 << 30)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "True"


@pytest.mark.parametrize(
    "flags",
    [
        ["--n", "10000000000"],
        ["--n", str(10**30)],
        ["--n", "100", "--n-classes", str(10**30)],
        ["--n", "100", "--reps", str(10**30)],
    ],
)
def test_F8_a_study_that_no_machine_holds_is_one_sentence(flags, capsys, monkeypatch):
    monkeypatch.setenv("MCLLO_MEMORY", "16")
    line = refused(capsys, "power", *flags)
    assert "take about" in line or "must be at most 1,000,000,000,000" in line


def test_F8_so_are_tables_to_draw_from(monkeypatch):
    monkeypatch.setenv("MCLLO_MEMORY", "1")
    rows = np.full((10, 3), 1 / 3)
    with pytest.raises(
        InputError, match=r"1,000,000,000 rows of 3 classes take about 144 GB"
    ):
        mcllo.simulate.power_for(rows, gamma=0.8, n_samples=10**9)
    with pytest.raises(
        InputError, match=r"take about 480 GB of memory; there are 1\.00\. Use"
    ):
        mcllo.simulate.draw(10**9)


def test_F8_a_header_name_of_200_kB(tmp_path, capsys):
    path = tmp_path / "f.csv"
    path.write_text(csv_text().replace("cat", "c" * 200_000, 1))
    line = refused(capsys, "assess", path, *LABEL)
    assert (
        "column names must have at most 131,072 characters, and one has more." in line
    )


@pytest.mark.slow
def test_F8_an_open_quote_in_a_packed_file(tmp_path, capsys):
    # 40 MB of text: once the header was read to the end of the file, again and again
    path = tmp_path / "f.csv.gz"
    chunk = gzip.compress(b"0.5,0.5,a\n" * 100_000, mtime=0)
    path.write_bytes(gzip.compress(b'a,"b,y\n', mtime=0) + chunk * 40)
    line = refused(capsys, "assess", path, *LABEL)
    assert "its header line must end within 16,777,216 characters" in line
    assert "A quote in it may be open." in line


@pytest.mark.slow
def test_F13_few_rows_of_many_classes():
    """No matrix of all parameters, and none of all classes.

    One of 4,798 parameters takes 184 MB, and its inverse minutes. Without them 230 MB were measured
    in November 2026, most of them drawn labels by class.
    """
    n_classes = 2400
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(n_classes), 5)
    rows = mcllo.Predictions.from_arrays(probs, range(5), classes=range(n_classes))
    tracemalloc.start()
    with pytest.warns(SeparationWarning):
        found = mcllo.assess(rows, seed=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 350e6
    assert found.test.kind == "score"
    assert found.test.method == "exact"
    assert found.verdict.kind == "inconclusive"
    assert "5 rows are too few for 2,400 classes" in found.text(full=True)


def test_F13_more_classes_than_are_worked_on(tmp_path, capsys):
    n_classes = 20_001
    names = ",".join(f"c{j}" for j in range(n_classes))
    row = ",".join(["0"] * (n_classes - 1) + ["1"])
    path = tmp_path / "f.csv"
    path.write_text(f"{names},y\n" + 3 * f"{row},c1\n")
    line = refused(capsys, "assess", path, *LABEL)
    assert "at most 20,000 classes are worked on; got 20,001" in line


@pytest.mark.slow
def test_a_packed_file_does_not_fill_the_disk(tmp_path, monkeypatch):
    # how many rows it holds is not known before they are read: blocks are kept while there is room
    import shutil

    from mcllo._apps.streaming.file_blocks import blocks_of_files

    packed_csv(tmp_path / "f.csv.gz", 1)
    usage, seen = shutil.disk_usage(tmp_path), []

    def little(folder):
        seen.append(folder)
        return usage._replace(free=3_000_000)

    monkeypatch.setattr("mcllo._apps.streaming.blocks.shutil.disk_usage", little)
    with blocks_of_files(tmp_path / "f.csv.gz", label="y", spill=True) as blocks:
        assert blocks.first_pass.n_samples == 1_000_000
        assert len(seen) > 1
        assert blocks._spill is None


COUNTS = np.r_[1e20, np.ones(59)]


@pytest.mark.filterwarnings("ignore::mcllo.exceptions.ConvergenceWarning")
def test_a_row_that_stands_for_very_many_is_not_written_out(monkeypatch):
    # np.repeat of 1e20 rows was a ValueError, of 1e16 rows 71 PiB; 1e6 took minutes
    monkeypatch.setenv("MCLLO_MEMORY", "1")
    probs, y = predictions()
    for big in (1e7, 1e20):
        counted = np.r_[big, np.ones(59)]
        text = str(mcllo.assess(probs, y, sample_weight=counted, seed=0))
        assert "frequency weights" in text
        metric = mcllo.metrics.expected_calibration_error(
            y, probs, sample_weight=counted
        )
        assert 0.0 <= metric <= 1.0
    with pytest.raises(
        InputError, match=r"100,000,000,000,000,000,000 rows written out, as often"
    ):
        mcllo.calibration_test(probs, y, sample_weight=COUNTS, method="exact", seed=0)
    with pytest.raises(
        InputError, match=r"there are 1\.00\. Pass weight_kind='importance'"
    ):
        mcllo.Predictions.from_arrays(probs, y, sample_weight=COUNTS).expand_weights()


def test_weights_whose_sum_would_overflow_are_refused():
    # a fit with 1e308 gave NaN for every row
    probs, y = predictions()
    with pytest.raises(InputError, match=r"sample_weight must be at most 1e\+100; got"):
        mcllo.Predictions.from_arrays(probs, y, sample_weight=np.full(60, 1e308))
    rows = mcllo.Predictions.from_arrays(probs, y, sample_weight=np.full(60, 1e100))
    assert np.isfinite(
        mcllo.MCLLOCalibrator(penalty=1.0).fit(rows).predict_proba(probs)
    ).all()


MOST_TABLES = 4.5
"""Tables as large that `assess` may hold at once: 3.5 measured, 5.7 where it copied them."""
ASSESS = """
import numpy as np, mcllo
rng = np.random.default_rng(0)
z = rng.normal(scale=2.0, size=(20_000, 500))
y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
z *= 1.5
z -= z.max(axis=1, keepdims=True)
probs = np.exp(z, out=z)
probs /= probs.sum(axis=1, keepdims=True)


def peak():
    with open("/proc/self/status") as file:
        return [int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM")][0]


str(mcllo.assess(probs[:200, :3] / probs[:200, :3].sum(axis=1, keepdims=True), np.arange(200) % 3))
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # neither making the table nor loading libraries is the assessment's
before = peak()
str(mcllo.assess(probs, y, seed=0))
print((peak() - before) / probs.nbytes)
"""


@linux
@pytest.mark.slow
def test_assess_of_many_classes_holds_no_further_copies_of_the_table():
    # given, clean, log odds; the rest are matrices of 998 parameters, and libraries
    done = subprocess.run(
        [sys.executable, "-c", ASSESS],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert float(done.stdout) < MOST_TABLES
