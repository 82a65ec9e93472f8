"""Input that once ended in an exception of another package: one sentence now, or an answer."""

import zipfile

import numpy as np
import pytest
from calls import LABEL, refused

import mcllo
from mcllo.calibrators import MatrixScaling, TemperatureScaling
from mcllo.exceptions import FileFormatError, InputError

ROWS = "a,b,y\n" + 3 * "0.6,0.4,a\n0.3,0.7,b\n0.2,0.8,a\n"


@pytest.mark.parametrize(
    "name", ["rot13", "punycode", "zlib", "hex", "base64", "bz2", "nonsense", "a\0b"]
)
def test_an_encoding_that_makes_no_text_of_bytes(tmp_path, capsys, name):
    (tmp_path / "d.csv").write_text(ROWS)
    line = refused(capsys, "assess", tmp_path / "d.csv", *LABEL, "--encoding", name)
    assert "--encoding must be the name of an encoding" in line


@pytest.mark.parametrize("name", ["utf-8", "latin-1", "cp1252", "gbk", "idna", "utf-7"])
def test_an_encoding_of_text_is_used(tmp_path, name):
    (tmp_path / "d.csv").write_text(ROWS)
    found = mcllo.read_predictions(tmp_path / "d.csv", label="y", encoding=name)
    assert found.probs[0].tolist() == [0.6, 0.4]


@pytest.mark.parametrize("table", ['a"b', "x'; --", "x/*", "a;b", "a--b", "a.", " "])
def test_what_is_no_name_of_a_table(table):
    pytest.importorskip("sqlglot")
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(2), 30)
    fitted = TemperatureScaling().fit(probs, rng.integers(0, 2, 30))
    with pytest.raises(InputError, match="name a table"):
        fitted.export("sql", table=table)
    for good in ("scores", "lake.scores", '"my table"', "db.lake.scores"):
        assert f"FROM {good}" in fitted.export("sql", table=good)


def test_damaged_arrays_are_refused(tmp_path):
    """Bytes of the header of an array, and of the archive around it, one after the other."""
    whole = np.random.default_rng(0).dirichlet(np.ones(3), 20)
    np.save(tmp_path / "whole.npy", whole)
    np.savez_compressed(tmp_path / "whole.npz", probs=whole, y=np.arange(20) % 3)
    rng = np.random.default_rng(1)
    n_refused = 0
    np.save(tmp_path / "y.npy", np.arange(20) % 3)
    for name, label in (("whole.npy", str(tmp_path / "y.npy")), ("whole.npz", "y")):
        data = (tmp_path / name).read_bytes()
        # the header of an array, and the ends of an archive, where zip keeps what is where
        places = [*range(120), *range(len(data) - 200, len(data))]
        for place in rng.choice(places, 150, replace=False):
            found = bytearray(data)
            found[place] = rng.integers(256)
            path = tmp_path / f"damaged{name[5:]}"
            path.write_bytes(found)
            try:
                mcllo.read_predictions(path, label=label, classes=[0, 1, 2])
            except (FileFormatError, InputError):
                n_refused += 1
    assert n_refused > 50


def test_an_archive_packed_in_a_way_that_is_not_known(tmp_path):
    np.savez(tmp_path / "f.npz", probs=np.full((4, 2), 0.5))
    data = bytearray((tmp_path / "f.npz").read_bytes())
    for header, place in ((b"PK\x01\x02", 10), (b"PK\x03\x04", 8)):
        at = data.index(header) + place
        data[at : at + 2] = (97).to_bytes(2, "little")  # a method of compression
    (tmp_path / "f.npz").write_bytes(data)
    with zipfile.ZipFile(tmp_path / "f.npz") as archive:
        assert archive.infolist()[0].compress_type == 97
    with pytest.raises(FileFormatError, match="it is damaged"):
        mcllo.read_predictions(tmp_path / "f.npz", label="y")


def test_weights_of_next_to_nothing():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), 200)
    y = rng.integers(0, 3, 200)
    fitted = mcllo.AutoCalibrator().fit(probs, y, sample_weight=np.full(200, 1e-50))
    assert np.isfinite(fitted.predict_proba(probs)).all()
    with pytest.raises(InputError, match="hold a weight of at least 1e-100"):
        mcllo.AutoCalibrator().fit(probs, y, sample_weight=np.full(200, 1e-290))


@pytest.mark.filterwarnings("ignore::mcllo.exceptions.MclloWarning")
def test_matrix_scaling_of_rows_that_are_sure():
    rng = np.random.default_rng(0)
    top = rng.integers(0, 60, 100)
    y = np.where(rng.random(100) < 0.7, top, rng.integers(0, 60, 100))
    fitted = MatrixScaling().fit(np.eye(60)[top], y)
    assert np.isfinite(fitted.predict_proba(np.eye(60)[top])).all()


def workbook(path, sheet, packing=zipfile.ZIP_DEFLATED):
    """Write a workbook whose one sheet is this XML."""
    openpyxl = pytest.importorskip("openpyxl")
    openpyxl.Workbook().save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    head = (
        b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
    )
    parts["xl/worksheets/sheet1.xml"] = head + sheet + b"</worksheet>"
    with zipfile.ZipFile(path, "w", packing) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def test_a_workbook_that_unpacks_to_a_thousand_times_its_size(tmp_path, capsys):
    path = tmp_path / "deep.xlsx"
    workbook(path, b"<a>" * 2_000_000 + b"</a>" * 2_000_000)
    assert path.stat().st_size < 100_000
    line = refused(capsys, "assess", path, *LABEL)
    assert "unpacks to more than 200 times its size" in line


@pytest.mark.slow
def test_rows_of_a_workbook_are_counted_while_they_are_read(tmp_path, capsys):
    path = tmp_path / "rows.xlsx"
    rows = b"".join(b'<row r="%d"/>' % k for k in range(1, 1_048_578))
    workbook(path, b"<sheetData>" + rows + b"</sheetData>")
    line = refused(capsys, "assess", path, *LABEL)
    assert "must have at most 1,048,576 rows" in line
