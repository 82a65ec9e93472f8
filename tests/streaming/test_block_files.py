import gzip
import io
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from block_data import rows, same_rows, whole
from inputs import csv_text, replaced
from pyarrow import csv

from mcllo import Predictions, read_predictions
from mcllo._apps.io.read import find_files
from mcllo._apps.streaming.blocks import Spill, has_disk_room
from mcllo._apps.streaming.file_blocks import blocks_of_files
from mcllo._apps.streaming.sums import Block, BlockLayout, ValidationOptions
from mcllo.exceptions import FileFormatError, InputError

NAMES = list("01234")


def table(probs, y, weight=None, dtype=np.float64):
    columns = {
        name: column.astype(dtype) for name, column in zip(NAMES, probs.T, strict=True)
    }
    extra = {} if weight is None else {"w": weight}
    return pa.table({"note": ["x"] * len(y), **columns, "y": y, **extra})


@pytest.fixture
def parquet(tmp_path):
    """Return a function that writes a table, or the usual one, to a Parquet file."""

    def write(content=None, name="f.parquet", **options):
        content = table(*rows()[:2]) if content is None else content
        pq.write_table(content, tmp_path / name, **options)
        return tmp_path / name

    return write


def test_parquet_gives_the_rows_of_read_predictions(parquet):
    path = parquet(table(*rows(weighted=True)), row_group_size=400)
    options = {"label": "y", "weight": "w", "classes": NAMES, "baseline": "1"}
    same_rows(blocks_of_files(path, **options), read_predictions(path, **options))
    same_rows(
        blocks_of_files(path, spill=False, n_jobs=1, **options),
        whole(weighted=True).with_baseline(1),
    )


def test_one_row_group_is_read_in_order(parquet):
    path = parquet(table(*rows()[:2], dtype=np.float32))
    blocks = blocks_of_files(path, label="y", classes=NAMES, rows=700)
    same_rows(blocks, read_predictions(path, label="y", classes=NAMES))
    assert [size for _, size in blocks.first_pass.block_sizes] == [
        700,
        700,
        700,
        700,
        200,
    ]


def test_csv_and_gzip(tmp_path):
    plain, packed = tmp_path / "f.csv", tmp_path / "g.csv.gz"
    plain.write_text(csv_text(300))
    packed.write_bytes(gzip.compress(csv_text(300).encode()))
    p = read_predictions(plain, label="y")
    same_rows(blocks_of_files(plain, label="y"), p)
    same_rows(blocks_of_files(packed, label="y", spill=False), p)


def test_other_columns_types_are_read_as_ever(parquet):
    y = pa.array(["a", "b", "a", "b"]).dictionary_encode()
    half = np.array([0.5, 0.25, 0.75, 1.0])
    path = parquet(pa.table({"a": half.astype(np.float32), "b": 1.0 - half, "y": y}))
    clip = {"label": "y", "clip": 1e-6}
    same_rows(blocks_of_files(path, **clip), read_predictions(path, **clip))


def test_prefix_logits_and_spaces(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("z_a,z_b,y\n1.5,-1, a\n0,2,b\n-1,0.5,a\n")
    options = {"label": "y", "prefix": "z_", "logits": True}
    p = read_predictions(path, **options)
    blocks = blocks_of_files(path, **options)
    same_rows(blocks, p)
    np.testing.assert_array_equal(blocks.take().log_odds, p.log_odds)


@pytest.mark.parametrize(
    ("kind", "labels", "first"),
    [("csv", int, 1), ("csv", str, 0), ("parquet", float, 1), ("parquet", int, 0)],
)
def test_classes_do_not_depend_on_the_first_rows(tmp_path, kind, labels, first):
    # sorted by label: the first rows, and the first blocks, hold one label only
    y = (np.sort(np.arange(90) % 3) + first).astype(labels)
    probs = np.random.default_rng(0).dirichlet([1, 1, 1], 90)
    names = [str(first + j) for j in range(3)]
    content = pa.table({**dict(zip(names, probs.T, strict=True)), "y": y})
    path = tmp_path / "f"
    if kind == "csv":
        csv.write_csv(content, path)
    else:
        pq.write_table(content, path, row_group_size=20)
    expected = read_predictions(path, label="y")
    same_rows(blocks_of_files(path, label="y", rows=20, first_rows=5), expected)
    assert expected.class_weight.tolist() == [30.0, 30.0, 30.0]


def test_a_directory_is_its_files_in_order(tmp_path, parquet):
    (tmp_path / "part=2").mkdir()
    every = table(*rows()[:2])
    last = every[2000:].select(["y", *NAMES[::-1], "note"])
    files = [
        parquet(every[:1000], "a.parquet"),
        parquet(every[1000:2000], "b.parquet"),
        parquet(last, "part=2/c.parquet"),
    ]
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".hidden").write_text("x")
    blocks = blocks_of_files(tmp_path, label="y", classes=NAMES)
    same_rows(blocks, whole())
    assert find_files(tmp_path) == files
    same_rows(blocks_of_files(files, label="y", classes=NAMES), whole())


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_standard_input_can_be_read_again(kind, monkeypatch):
    content = csv_text(300).encode()
    if kind == "parquet":
        buffer = io.BytesIO()
        pq.write_table(table(*rows(n=300)[:2]), buffer, row_group_size=100)
        content = buffer.getvalue()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    classes = NAMES if kind == "parquet" else None
    blocks = blocks_of_files("-", label="y", classes=classes, spill=False)
    assert blocks.first_pass.n_samples == 300
    assert blocks.take().n_samples == 300


def test_csv_and_parquet_together(tmp_path, parquet):
    (tmp_path / "a.csv").write_text(csv_text(100))
    parquet(pa.table({"cat": [0.2], "dog": [0.3], "truck": [0.5], "y": ["dog"]}))
    blocks = blocks_of_files(tmp_path, label="y")
    assert blocks.first_pass.n_samples == 101
    np.testing.assert_array_equal(blocks.take(np.array([100])).probs, [[0.2, 0.3, 0.5]])


def same_error(path, **options):
    with pytest.raises((InputError, FileFormatError)) as expected:
        read_predictions(path, label="y", **options)
    with pytest.raises(type(expected.value)) as found:
        _ = blocks_of_files(path, label="y", rows=7, first_rows=5, **options).first_pass
    assert str(found.value) == str(expected.value)
    return str(found.value)


def long_lines(text):
    """Return CSV text with so many zeros in front of numbers that a block of 1 MB has 20 lines."""
    lines = text.splitlines()
    return (
        "\n".join("0" * 50_000 * line.startswith("0.") + line for line in lines) + "\n"
    )


def test_errors_are_those_of_read_predictions(tmp_path):
    path = tmp_path / "f.csv"
    probs, y = csv_text().splitlines()[30].rsplit(",", 1)
    first = probs.split(",")[0]
    for old, new, said in (
        (f"{probs},{y}", f"{probs},lorry", "line 31 of"),
        (first, "0.99999", "line 31 of"),
        (first, "", "line 31 of"),
        (f",{y}", ",", "line 31 of"),
        (first, "cat", "line 31"),
    ):
        path.write_text(long_lines(replaced(31, old, new)))
        assert said in same_error(path)
    path.write_text("cat,dog,truck,y\n")
    same_error(path)
    path.write_text(csv_text())
    same_error(path, classes=["cat", "dgo"])


def test_parquet_errors_name_the_row_of_the_file(parquet):
    probs, y, _ = rows()
    probs[2500, 3] = np.nan
    path = parquet(table(probs, y), row_group_size=400)
    message = same_error(path, classes=NAMES)
    assert "column '3', row 2500 of" in message
    other = parquet(name="a.parquet")
    with pytest.raises(InputError, match=r"row 2500 of .*f\.parquet"):
        _ = blocks_of_files([other, path], label="y", classes=NAMES).first_pass


def test_the_remedy_goes_by_the_first_labels(tmp_path):
    path = tmp_path / "f.csv"
    lines = csv_text(300, header=("p_cat", "p_dog", "p_truck", "y")).splitlines(
        keepends=True
    )
    path.write_text("".join(lines))
    hint = r"pass prefix='p_' \(by the labels among the first 50 rows"
    with pytest.raises(InputError, match=hint):
        blocks_of_files(path, label="y", data_check_rows=50)
    # all labels looked at: nothing to add; far down, a wrong label is not taken for another case
    for n, words in ((40, r", or add a column for it\.$"), (300, "")):
        path.write_text(csv_text(n) + "0.5,0.5,0,lorry\n")
        words = rf"contains 'lorry' \(line {n + 2} .*\. Correct that label{words}"
        with pytest.raises(InputError, match=words):
            _ = blocks_of_files(path, label="y", data_check_rows=50).first_pass


def test_a_damaged_file_is_one_sentence(parquet):
    path = parquet(row_group_size=400)
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 2000] = bytes(2000)
    path.write_bytes(bytes(content))
    with pytest.raises(FileFormatError, match="damaged or cut short"):
        _ = blocks_of_files(path, label="y", classes=NAMES).first_pass


def test_files_must_agree(tmp_path):
    (tmp_path / "a.csv").write_text("a,b,y\n0.5,0.5,a\n")
    (tmp_path / "b.csv").write_text("a,c,y\n0.5,0.5,a\n")
    with pytest.raises(
        FileFormatError, match=r"same class columns; .*a\.csv has \['a', 'b'\]"
    ):
        blocks_of_files(tmp_path, label="y")
    with pytest.raises(FileFormatError, match="at least one file"):
        blocks_of_files([], label="y")
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        FileFormatError, match="must hold CSV or Parquet files; it holds none"
    ):
        blocks_of_files(tmp_path / "empty", label="y")


def kept(p, *, keep=True, reading=None):
    layout = BlockLayout(p.classes, p.baseline_index, reading or ValidationOptions())
    spill = Spill(layout, whole=keep)
    half = p.n_samples // 2
    spill.write(Block(half, p.take(np.arange(half, p.n_samples))))
    spill.write(Block(0, p.take(np.arange(half))))
    spill.sort()
    return spill, half


@pytest.mark.parametrize("changed", [False, True])
def test_what_comes_back_is_what_was_put_in(changed):
    p = whole(n=101, weighted=changed, zeros=changed)
    spill, half = kept(p)
    assert [(b.start, b.n_samples) for b in spill.blocks] == [
        (0, half),
        (half, 101 - half),
    ]
    for block, part in zip(
        spill.blocks, (np.arange(half), np.arange(half, 101)), strict=True
    ):
        expected = p.take(part)
        np.testing.assert_array_equal(block.log_odds, expected.log_odds)
        for name in ("probs", "codes", "log_odds", "raised", "sample_weight"):
            np.testing.assert_array_equal(
                getattr(block.rows, name), getattr(expected, name)
            )
        np.testing.assert_array_equal(block.sample_weight, expected.sample_weight)


def test_logits_come_back_as_logits():
    scores = np.random.default_rng(0).normal(size=(20, 3))
    p = Predictions.from_arrays(None, np.arange(20) % 3, logits=scores)
    spill, _ = kept(p, reading=ValidationOptions(logits=True))
    np.testing.assert_array_equal(spill.blocks[0].rows.logits, scores[:10])
    np.testing.assert_array_equal(spill.blocks[0].rows.probs, p.probs[:10])


def test_room_is_looked_up():
    assert has_disk_room(1.0)
    assert not has_disk_room(1e30)
