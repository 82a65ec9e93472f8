"""Files as they come in: their names, their size, and forms that hold none."""

import asyncio

import pytest

from mcllo._apps.serve.limits import ServerLimits
from mcllo._apps.serve.upload import (
    FORM_BYTES,
    MAX_NAME_BYTES,
    limit_upload_bytes,
    receive_file,
    safe_file_name,
)
from mcllo.exceptions import FileFormatError

KIND = "multipart/form-data; boundary=XX"


def test_names_lead_out_of_no_folder_and_into_no_page():
    names = {
        "forecasts.xlsx": "forecasts.xlsx",
        "../../etc/passwd": "passwd",
        "C:\\Users\\me\\data.csv": "data.csv",
        "<img src=x onerror=alert(1)>.csv": "_img src=x onerror=alert(1)_.csv",
        'a"; filename="b.csv': "a_; filename=_b.csv",
        "--html=x.csv": "html=x.csv",
        ".bashrc": "bashrc",
        "-": "table",
        "..": "table",
        "": "table",
        "a\r\nb\x00\u202ecsv.exe": "a _bcsv.exe",
        "Recalibrated.csv": "my Recalibrated.csv",
        "model.json": "my model.json",
        "наблюдения 2026.csv": "наблюдения 2026.csv",
    }
    assert {given: safe_file_name(given) for given in names} == names
    long = safe_file_name("é" * 300 + ".parquet")
    assert long.endswith("é.parquet")
    assert len(long.encode()) <= MAX_NAME_BYTES


def received(body, folder, kind=KIND, chunk=7, **limits):
    async def chunks():
        for start in range(0, len(body), chunk):
            yield body[start : start + chunk]

    return asyncio.run(receive_file(chunks(), kind, folder, ServerLimits(**limits)))


def form(*parts):
    heads = [
        f"--XX\r\nContent-Disposition: form-data; {head}\r\n\r\n{text}\r\n"
        for head, text in parts
    ]
    return ("".join(heads) + "--XX--\r\n").encode()


def test_a_file_is_written_as_it_comes(tmp_path):
    content = "a,b,y\n" + "0.5,0.5,a\n" * 50
    body = form(('name="other"', "x"), ('name="file"; filename="my rows.csv"', content))
    assert received(body, tmp_path) == "my rows.csv"
    assert [path.name for path in tmp_path.iterdir()] == ["my rows.csv"]
    assert (tmp_path / "my rows.csv").read_text() == content


def test_only_the_first_file_counts(tmp_path):
    two = [
        ('name="file"; filename="a.csv"', "one"),
        ('name="file"; filename="b.csv"', "two"),
    ]
    assert received(form(*two), tmp_path) == "a.csv"
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_too_large_a_file_is_refused_and_not_written_to_the_end(tmp_path):
    body = form(('name="file"; filename="a.csv"', "x" * 5000))
    with pytest.raises(
        FileFormatError, match=r"at most 0\.001 MB here; this one has more\. Use fewer"
    ):
        received(body, tmp_path, n_bytes=1000)
    assert list(tmp_path.iterdir()) == []


def test_of_too_large_a_form_no_more_is_taken_and_the_rest_is_read():
    sent = []
    taken = []

    async def chunks():
        for _ in range(50):
            sent.append(1000)
            yield b"x" * 1000

    async def take():
        async for chunk in limit_upload_bytes(chunks(), ServerLimits(n_bytes=5000)):
            taken.append(len(chunk))  # noqa: PERF401 - what came before the refusal is kept

    with pytest.raises(FileFormatError, match="this one has more"):
        asyncio.run(take())
    assert sum(taken) == 5000 + FORM_BYTES
    assert sum(sent) == 50_000  # so that the browser comes to read the answer


def test_a_form_without_a_file(tmp_path):
    for body, kind in (
        (form(('name="file"; filename=""', "")), KIND),
        (form(('name="x"', "y")), KIND),
        (b"file=x", "application/x-www-form-urlencoded"),
        (b"no form at all", KIND),
        (b"", ""),
    ):
        with pytest.raises(
            FileFormatError, match="a file must be chosen; none was sent"
        ):
            received(body, tmp_path, kind=kind)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "kind",
    [
        f"multipart/form-data; boundary={'x' * 60_000}",
        "multipart/form-data; boundary=",
        "multipart/form-data",
        "text/plain",
    ],
)
def test_a_form_whose_boundary_is_none(tmp_path, kind):
    with pytest.raises(FileFormatError, match="a file must be chosen"):
        received(form(("name=a", "1")), tmp_path, kind)
