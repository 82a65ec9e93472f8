"""JSON lines as tables: an object a line."""

import json

import numpy as np
import pytest
from inputs import CLASSES, csv_text, predictions

from mcllo import Predictions, read_predictions
from mcllo.__main__ import run_command_line
from mcllo.exceptions import FileFormatError, InputError

PROBS, LABELS = predictions()


def objects():
    rows = zip(PROBS.tolist(), LABELS, strict=True)
    return [dict(zip(CLASSES, row, strict=True)) | {"y": str(y)} for row, y in rows]


@pytest.fixture
def write(tmp_path):
    def write(lines, name="rows.jsonl", start=b""):
        words = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path = tmp_path / name
        path.write_bytes(start + "\n".join(words).encode())
        return path

    return write


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf", b"\n\n"])
def test_a_file_is_its_arrays(write, start):
    p = read_predictions(write(objects(), start=start), label="y", baseline="cat")
    q = Predictions.from_arrays(PROBS, LABELS, classes=CLASSES, baseline="cat")
    np.testing.assert_array_equal(p.probs, q.probs)
    np.testing.assert_array_equal(p.codes, q.codes)


def test_order_of_keys_integers_and_other_columns(write):
    lines = [
        {"no": 0.75, "yes": 0.25, "y": True, "tags": ["a", 1], "n": 7},
        {"y": False, "yes": 0, "no": 1, "tags": None, "n": 8},
    ]
    path = write([{**line, "y": "yes" if line["y"] else "no"} for line in lines])
    p = read_predictions(path, label="y", classes=["no", "yes"], by="n", clip=1e-6)
    assert p.probs[0].tolist() == [0.75, 0.25]
    assert p.probs[1] == pytest.approx([1.0, 0.0], abs=2e-6)
    assert p.by.names == ("7", "8")


def test_labels_that_are_numbers_are_classes_of_that_name(write):
    p = read_predictions(
        write([{"0": 0.5, "1": 0.5, "y": 1}, {"0": 0.1, "1": 0.9, "y": 0.0}]), label="y"
    )
    assert p.classes == ("0", "1")
    assert p.codes.tolist() == [1, 0]


def test_gaps_are_refused_or_dropped(write):
    lines = objects()
    del lines[3][CLASSES[0]]
    lines[4]["y"] = None
    path = write(lines)
    with pytest.raises(InputError, match="line 4 of"):
        read_predictions(path, label="y")
    p = read_predictions(path, label="y", missing="drop")
    assert p.n_samples == len(lines) - 2
    assert "line 4 of" in p.notes[0].text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"cat": 1,', "line 3 must be JSON"),
        ("[1, 2]", "line 3 must hold a JSON object; it holds a list"),
        ('{"cat": "0.5"}', "line 3: 'cat' must be a number; it is \"0.5\""),
        ('{"cat": true}', "line 3: 'cat' must be a number; it is true"),
        ('{"cat": 1, "cat": 0}', "line 3 must be JSON: the key 'cat' occurs twice"),
        ('{"horse": 1}', "line 3 has the key 'horse', which the first line has not"),
    ],
)
def test_a_bad_line_is_told_by_its_number(write, line, message):
    assert CLASSES[0] == "cat"
    path = write([*objects()[:2], line])
    with pytest.raises(FileFormatError, match=message) as caught:
        read_predictions(path, label="y")
    assert "\n" not in str(caught.value)


def test_a_row_that_breaks_a_rule_is_told_by_its_line(write):
    lines = objects()[:5]
    lines[4][CLASSES[0]] = 1.5
    path = write([*lines[:4], "", "", lines[4]])  # line 7
    with pytest.raises(InputError, match=r"1\.5 in column 'cat', line 7 of"):
        read_predictions(path, label="y")
    lines[4][CLASSES[0]] = 10**400
    with pytest.raises(InputError, match="line 5 of"):
        read_predictions(write(lines), label="y")


def test_other_json_and_other_encodings_are_refused(write):
    for text in ('[{"cat": 1}]', '{\n "cat": 1\n}'):
        with pytest.raises(FileFormatError, match="it looks like JSON"):
            read_predictions(write([text]), label="y")
    path = write(objects())
    path.write_bytes(path.read_bytes() + b'\n{"y": "caf\xe9"}')
    with pytest.raises(FileFormatError, match="utf-8 text"):
        read_predictions(path, label="y")


def test_the_command_line_says_of_json_what_it_says_of_csv(tmp_path, write, capsys):
    written = write(objects())
    table = tmp_path / "rows.csv"
    table.write_text(csv_text())
    found = {}
    for path in (written, table):
        model = tmp_path / f"{path.suffix}.json"
        out = tmp_path / f"{path.suffix}.csv"
        read = [str(path), "--label", "y"]
        assert run_command_line(["assess", *read, "--seed", "0"]) == 0
        assessed = capsys.readouterr().out
        assert run_command_line(["fit", *read, "-o", str(model)]) == 0
        # `apply` leaves the label alone
        applying = ["apply", str(model), str(path), "-o", str(out)]
        assert run_command_line(applying) == 0
        capsys.readouterr()
        found[path] = (
            assessed,
            json.loads(model.read_text())["state"],
            out.read_text(),
        )
    assert found[written] == found[table]


def test_blocks_are_the_whole_file(write):
    from mcllo._apps.io.source import Source

    source = Source(write(objects()))
    parts = list(source.parts(list(CLASSES), ["y"], rows=7))
    assert [part.num_rows for part in parts[:2]] == [7, 7]
    assert sum(part.num_rows for part in parts) == len(LABELS)
