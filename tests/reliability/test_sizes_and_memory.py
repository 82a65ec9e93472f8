"""Memory and time are bounded by what a file unpacks to, or it is refused with the limit.

F4, F8 (sizes), F13.
"""

import gzip
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from calls import LABEL, refused, said, saved_model
from inputs import csv_text, predictions

import mcllo
from mcllo._ground.linalg import LARGE
from mcllo._ground.memory import memory
from mcllo._workflows.assess import is_large
from mcllo.exceptions import FileFormatError, InputError

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs resource.getrusage")


def constant_rows(n):
    """Return a table of two classes that Parquet packs to next to nothing."""
    words = pa.DictionaryArray.from_arrays(np.zeros(n, np.int32) + np.arange(n) % 2, ["a", "b"])
    half = pa.array(np.full(n, 0.5))
    return pa.table({"a": half, "b": half, "y": words})


def packed_csv(path, n_million):
    """Write millions of rows of ten bytes, packed to a few kilobytes."""
    chunk = b"0.5,0.5,a\n0.5,0.5,b\n" * 50_000
    members = gzip.compress(b"a,b,y\n" + chunk, mtime=0), gzip.compress(chunk, mtime=0)
    path.write_bytes(members[0] + members[1] * (10 * n_million - 1))


@pytest.mark.parametrize("kind", ["csv.gz", "parquet"])
def test_F4_a_small_file_of_many_rows_is_read_in_blocks(kind, tmp_path):
    # 6 million rows of text are 60 MB, 5 million of Parquet 120 MB; packed both are below 1 MB
    bomb = tmp_path / f"bomb.{kind}"
    if kind == "csv.gz":
        packed_csv(bomb, 6)
    else:
        pq.write_table(constant_rows(5_000_000), bomb, row_group_size=1 << 30)
    assert bomb.stat().st_size < 1e6
    assert is_large(bomb)
    small = tmp_path / f"small.{kind}"
    if kind == "csv.gz":
        packed_csv(small, 1)
    else:
        pq.write_table(constant_rows(1_000_000), small)
    assert not is_large(small)


@pytest.mark.parametrize("kind", ["csv.gz", "csv.zst", "parquet", "feather", "csv"])
@pytest.mark.parametrize("verb", ["compare", "plot", "fit", "assess", "monitor", "power"])
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
            with pytest.raises(InputError, match="read at once, and its 300 or more rows of 3"):
                mcllo.read_predictions(file, label="y")


def test_how_much_memory_there_is(monkeypatch):
    monkeypatch.delenv("MCLLO_MEMORY", raising=False)
    assert memory() > 1e8
    monkeypatch.setenv("MCLLO_MEMORY", "2.5")
    assert memory() == 2.5e9
    for wrong in ("much", "-1", "0", "nan"):
        monkeypatch.setenv("MCLLO_MEMORY", wrong)
        with pytest.raises(InputError, match="MCLLO_MEMORY must be a number of gigabytes"):
            memory()


@posix
def test_the_limit_of_the_process_counts():
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30));"
        "from mcllo._ground.memory import memory; print(memory() <= 3 << 30)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


@pytest.mark.parametrize(
    "flags",
    [
        ["--n", "10000000000"],
        ["--n", str(10**30)],
        ["--n", "100", "--n-classes", "1000000000"],
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
    with pytest.raises(InputError, match=r"1,000,000,000 rows of 3 classes take about 144 GB"):
        mcllo.simulate.power_for(rows, gamma=0.8, n_samples=10**9)
    with pytest.raises(InputError, match=r"take about 480 GB of memory; there are 1\.00\. Use"):
        mcllo.simulate.draw(10**9)


def test_F8_a_header_name_of_200_kB(tmp_path, capsys):
    path = tmp_path / "f.csv"
    path.write_text(csv_text().replace("cat", "c" * 200_000, 1))
    line = refused(capsys, "assess", path, *LABEL)
    assert "column names must have at most 131,072 characters, and one has more." in line


def test_F8_an_open_quote_in_a_packed_file(tmp_path, capsys):
    # 40 MB of text: once the header was read to the end of the file, again and again
    path = tmp_path / "f.csv.gz"
    chunk = gzip.compress(b"0.5,0.5,a\n" * 100_000, mtime=0)
    path.write_bytes(gzip.compress(b'a,"b,y\n', mtime=0) + chunk * 40)
    line = refused(capsys, "assess", path, *LABEL)
    assert "its header line must end within 16,777,216 characters" in line
    assert "A quote in it may be open." in line


@pytest.mark.parametrize("n_classes", [300])
def test_F13_few_rows_of_many_classes(n_classes, tmp_path, capsys, monkeypatch):
    # 10 s for 1,000 classes, 41 s for 2,000: matrices with a row a parameter were factored twice
    sizes, solve = [], np.linalg.solve
    monkeypatch.setattr(np.linalg, "solve", lambda m, r: sizes.append(m.shape[-1]) or solve(m, r))
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(n_classes), 5)
    names = [f"c{j}" for j in range(n_classes)]
    table = pa.table({name: probs[:, j] for j, name in enumerate(names)} | {"y": names[:5]})
    pq.write_table(table, tmp_path / "f.parquet")
    code, out, _ = said(capsys, "assess", tmp_path / "f.parquet", *LABEL, "--seed", "1")
    assert code == 0
    assert str(n_classes) in out
    assert sum(size > LARGE for size in sizes) <= 1  # the score at the data


def test_a_packed_file_does_not_fill_the_disk(tmp_path, monkeypatch):
    # how many rows it holds is not known before they are read: blocks are kept while there is room
    import shutil

    from mcllo._blocks.files import blocks_of_files

    packed_csv(tmp_path / "f.csv.gz", 1)
    usage, seen = shutil.disk_usage(tmp_path), []

    def little(folder):
        seen.append(folder)
        return usage._replace(free=3_000_000)

    monkeypatch.setattr("mcllo._blocks.blocks.shutil.disk_usage", little)
    with blocks_of_files(tmp_path / "f.csv.gz", label="y", spill=True) as blocks:
        assert blocks.first.n_samples == 1_000_000
        assert len(seen) > 1
        assert blocks._spill is None


def test_what_cannot_be_counted_is_left_to_who_reads_it(tmp_path):
    (tmp_path / "f.csv.gz").write_bytes(gzip.compress(csv_text().encode())[:-9])
    with pytest.raises(FileFormatError, match="the gzip file is damaged or cut short"):
        mcllo.read_predictions(tmp_path / "f.csv.gz", label="y")


def test_models_may_not_be_swapped_for_a_bomb(tmp_path, capsys):
    good, model = saved_model(tmp_path, capsys)
    model.write_bytes(gzip.compress(b"0" * 10_000_000))
    assert "must be a saved calibrator" in refused(capsys, "apply", model, good, "-o", "-")


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
        metric = mcllo.metrics.expected_calibration_error(y, probs, sample_weight=counted)
        assert 0.0 <= metric <= 1.0
    with pytest.raises(InputError, match=r"100,000,000,000,000,000,000 rows written out, as often"):
        mcllo.calibration_test(probs, y, sample_weight=COUNTS, method="exact", seed=0)
    with pytest.raises(InputError, match=r"there are 1\.00\. Pass weight_kind='importance'"):
        mcllo.Predictions.from_arrays(probs, y, sample_weight=COUNTS).written_out()


def test_weights_whose_sum_would_overflow_are_refused():
    # a fit with 1e308 gave NaN for every row
    probs, y = predictions()
    with pytest.raises(InputError, match=r"sample_weight must be at most 1e\+100; got"):
        mcllo.Predictions.from_arrays(probs, y, sample_weight=np.full(60, 1e308))
    rows = mcllo.Predictions.from_arrays(probs, y, sample_weight=np.full(60, 1e100))
    assert np.isfinite(mcllo.MCLLOCalibrator(penalty=1.0).fit(rows).predict_proba(probs)).all()
