import csv
import datetime
import io

import numpy as np
import pyarrow as pa
import pytest
from inputs import CLASSES, predictions
from inputs import csv_text as csv_of
from pyarrow import parquet

import mcllo
from mcllo._apps.io import csv_text
from mcllo._apps.io import source as _source
from mcllo._apps.io.source import Source
from mcllo._apps.streaming import apply as _streaming
from mcllo._apps.streaming.apply import apply_file
from mcllo.calibrators import Identity
from mcllo.exceptions import FileFormatError, InputError

PROBS, LABELS = predictions(200)
N = len(PROBS)


@pytest.fixture(scope="module")
def calibrator():
    return mcllo.MCLLOCalibrator(classes=CLASSES, baseline="dog").fit(PROBS, LABELS)


@pytest.fixture
def small_batches(monkeypatch):
    """Let CSV come in blocks of 1 kB and Parquet in batches of 7 rows."""
    monkeypatch.setattr(csv_text, "MIN_BLOCK_BYTES", 1024)
    monkeypatch.setattr(csv_text, "MIN_BLOCK_BYTES_PER_COLUMN", 1)
    monkeypatch.setattr(_source, "N_BATCH_ROWS", 7)


IDS = {
    "id": [f"{i:06d}" for i in range(N)],
    "words": ["", 'say "hi"', "a,b", "two\nlines", "größe 猫", " spaces ", "NA", "1e5"]
    * (N // 8),
    "big": [str(2**63 + i) for i in range(N)],
}
ORDER = ["id", "truck", "words", "cat", "y", "dog", "big"]


def columns():
    """Return ids, labels and class columns, the classes not in the order of the model."""
    values = {**IDS, **dict(zip(CLASSES, PROBS.T.tolist(), strict=True)), "y": LABELS}
    return {name: values[name] for name in ORDER}


def write_csv(path, separator=","):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=separator)
        writer.writerow(ORDER)
        writer.writerows(zip(*columns().values(), strict=True))
    return path


def write_parquet(path, **changes):
    parquet.write_table(pa.table({**columns(), **changes}), path, row_group_size=64)
    return path


def read_csv(path, separator=","):
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter=separator))
    return {
        name: list(cells)
        for name, cells in zip(rows[0], zip(*rows[1:], strict=True), strict=True)
    }


def read(path):
    return (
        parquet.read_table(path).to_pydict()
        if path.suffix == ".parquet"
        else read_csv(path)
    )


@pytest.mark.parametrize(("origin", "target"), [("csv", "parquet"), ("parquet", "csv")])
def test_batches_give_what_one_call_gives_and_the_rest_is_untouched(
    tmp_path, calibrator, small_batches, origin, target
):
    write = write_csv if origin == "csv" else write_parquet
    path, out = write(tmp_path / f"in.{origin}"), tmp_path / f"out.{target}"
    assert len(list(Source(path).batches(CLASSES))) > 10
    done = apply_file(calibrator, path, out)
    assert (done.n_samples, done.classes) == (N, tuple(CLASSES))
    found = read(out)
    assert list(found) == ORDER
    written = np.array([[float(v) for v in found[name]] for name in CLASSES]).T
    np.testing.assert_array_equal(written, calibrator.predict_proba(PROBS))
    for name in ("id", "words", "big"):
        assert [value or "" for value in found[name]] == IDS[name]
    assert found["y"] == LABELS


def test_parquet_keeps_the_types_of_what_passes(tmp_path, calibrator):
    day = datetime.date(2024, 2, 29)
    extra = {
        "when": pa.array([day] * N),
        "group": pa.array(["a", "b"] * (N // 2)).dictionary_encode(),
        "vector": pa.array([[1.0, 2.0]] * N),
        "count": pa.array(range(N), pa.int16()),
    }
    table = pa.table({**columns(), **extra}).replace_schema_metadata({"note": "kept"})
    parquet.write_table(table, tmp_path / "in.parquet")
    apply_file(calibrator, tmp_path / "in.parquet", tmp_path / "out.parquet")
    found = parquet.read_table(tmp_path / "out.parquet")
    for name in [*extra, "id", "y"]:
        assert found.schema.field(name).type == table.schema.field(name).type
        assert found[name].to_pylist() == table[name].to_pylist()
    assert found.schema.metadata[b"note"] == b"kept"
    with pytest.raises(FileFormatError, match="column 'vector' holds list<"):
        apply_file(calibrator, tmp_path / "in.parquet", tmp_path / "out.csv")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.parquet", "out.parquet"]


def test_single_precision_comes_out_as_double(tmp_path, calibrator):
    single = {
        name: pa.array(PROBS[:, j].astype(np.float32)) for j, name in enumerate(CLASSES)
    }
    apply_file(
        calibrator,
        write_parquet(tmp_path / "in.parquet", **single),
        tmp_path / "o.parquet",
    )
    found = parquet.read_table(tmp_path / "o.parquet")
    assert found.schema.field("cat").type == pa.float64()
    rows = np.column_stack([found[name].to_numpy() for name in CLASSES])
    np.testing.assert_allclose(rows, calibrator.predict_proba(PROBS), rtol=1e-5)


def test_csv_keeps_its_separator_and_its_header(tmp_path, calibrator):
    text = csv_of(5, separator=";", header=(" cat", "dog ", "truck", "the;y")).replace(
        "the;y", '"the;y"'
    )
    (tmp_path / "in.csv").write_text(text)
    apply_file(calibrator, tmp_path / "in.csv", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().splitlines()[
        0
    ] == ' cat;dog ;truck;"the;y"'
    found = read_csv(tmp_path / "out.csv", ";")
    first = calibrator.predict_proba(predictions(5)[0])[:, 0].tolist()
    assert [float(value) for value in found[" cat"]] == first


def test_logits_of_any_size(tmp_path, calibrator):
    (tmp_path / "in.csv").write_text("cat,dog,truck\n0,900,-900\n1,2,3\n")
    apply_file(calibrator, tmp_path / "in.csv", tmp_path / "out.parquet", logits=True)
    found = parquet.read_table(tmp_path / "out.parquet")
    rows = np.column_stack([found[name].to_numpy() for name in CLASSES])
    expected = calibrator.fit_.recalibrate(
        logits=[[0.0, 900.0, -900.0], [1.0, 2.0, 3.0]]
    )
    np.testing.assert_array_equal(rows, expected)
    assert (
        rows[0, 0] < 1e-12
    )  # by way of rounded probabilities it would be the floor 1e-6 to gamma


def test_logits_for_a_method_without_a_map(tmp_path):
    class Squared(Identity):
        def _apply(self, simplex):
            squared = simplex.probs**2
            return squared / squared.sum(axis=1, keepdims=True)

    squared = Squared().fit(np.full((3, 3), 1.0 / 3.0), CLASSES)
    (tmp_path / "in.csv").write_text("cat,dog,truck\n0,1,2\n")
    apply_file(squared, tmp_path / "in.csv", tmp_path / "out.csv", logits=True)
    found = [float(v[0]) for v in read_csv(tmp_path / "out.csv").values()]
    # softmax(0, 1, 2) squared and divided by its sum is softmax(0, 2, 4)
    np.testing.assert_allclose(
        found, np.exp([0, 2, 4]) / np.exp([0, 2, 4]).sum(), rtol=1e-12
    )


def test_a_prefix_of_the_columns(tmp_path, calibrator):
    text = csv_of(5, header=("p_cat", "p_dog", "p_truck", "y"))
    (tmp_path / "in.csv").write_text(text)
    apply_file(calibrator, tmp_path / "in.csv", tmp_path / "out.csv", prefix="p_")
    (tmp_path / "in.csv").write_text(text.replace("p_", ""))
    apply_file(calibrator, tmp_path / "in.csv", tmp_path / "plain.csv")
    expected = (tmp_path / "plain.csv").read_text()
    assert (tmp_path / "out.csv").read_text().replace("p_", "") == expected


def test_a_bad_row_of_a_later_batch_is_named_and_nothing_is_written(
    tmp_path, calibrator, small_batches
):
    rows = csv_of(200).splitlines()
    rows[150] = "0.5,0.5,0.5,cat"  # the header is line 1
    (tmp_path / "in.csv").write_text("\n".join(rows))
    (tmp_path / "out.csv").write_text("old")
    with pytest.raises(
        InputError, match=r"line 151 of .*in\.csv sums to 1\.5"
    ) as caught:
        apply_file(calibrator, tmp_path / "in.csv", tmp_path / "out.csv")
    assert caught.value.__suppress_context__
    assert (tmp_path / "out.csv").read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.csv", "out.csv"]


ROW = "0.5,0.25,0.25"


def test_a_file_that_does_not_fit_is_refused(tmp_path, calibrator):
    for lines, prefix, words in (
        # a quote that never closes does not swallow rows
        (
            ["i,cat,dog,truck", *[f"a,{ROW}"] * 3, f'"b,{ROW}', f"c,{ROW}"],
            "",
            "not end, in line 5",
        ),
        (
            ["cat,dog,truck,i", f"{ROW},a", f'{ROW},"b', f"{ROW},c"],
            "",
            "not end, in line 3",
        ),
        (["cat,dgo,truck", ROW], "", r"no class column 'dog'; did you mean 'dgo'\?"),
        (["p_cat,p_dog,p_truck", ROW], "", r"pass prefix='p_'\.$"),
        (["p_cat,p_dog,p_truck", ROW], "q_", "no class column 'q_cat'"),
        (["cat,dog,truck"], "", "only a header"),
    ):
        (tmp_path / "in.csv").write_text("\n".join(lines) + "\n")
        with pytest.raises((FileFormatError, InputError), match=words):
            apply_file(
                calibrator, tmp_path / "in.csv", tmp_path / "out.csv", prefix=prefix
            )
        assert [p.name for p in tmp_path.iterdir()] == ["in.csv"]


@pytest.mark.parametrize(
    ("kind", "ending"),
    [(KeyboardInterrupt, "csv"), (RuntimeError, "csv.gz"), (RuntimeError, "parquet")],
)
def test_a_crash_between_batches_leaves_the_old_file(
    tmp_path, calibrator, small_batches, monkeypatch, kind, ending
):
    calls = []

    def fails_later(*args):
        calls.append(1)
        if len(calls) == 3:
            raise kind
        return predict(*args)

    predict = _streaming._predict_probabilities
    monkeypatch.setattr(_streaming, "_predict_probabilities", fails_later)
    out = tmp_path / f"out.{ending}"
    out.write_text("old")
    with pytest.raises(kind):
        apply_file(calibrator, write_csv(tmp_path / "in.csv"), out)
    assert out.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.csv", f"out.{ending}"]


def test_standard_output_is_utf8(tmp_path, calibrator, capsysbinary):
    apply_file(calibrator, write_csv(tmp_path / "in.csv"), "-")
    out = capsysbinary.readouterr().out
    apply_file(calibrator, tmp_path / "in.csv", tmp_path / "out.csv")
    assert out == (tmp_path / "out.csv").read_bytes()
    rows = list(csv.reader(io.StringIO(out.decode(), newline="")))
    assert rows[5][2] == "größe 猫"
