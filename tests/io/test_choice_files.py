"""Choice sets in files: logged samples of lm-evaluation-harness, and any JSON lines."""

import json

import numpy as np
import pytest
from choice_data import ANSWERS, ROWS, simulate, vector

import mcllo
from mcllo.__main__ import run_command_line
from mcllo._apps.io.choice_files import _task_name
from mcllo.exceptions import FileFormatError, InputError

DATE = "2026-11-01T10-22-33.123456"


def harness_line(number, scores, right, *, subject="law", **changes):
    """A line as lm-evaluation-harness 0.4.13 logs it: leaves of the lists are texts."""
    texts = [" Yes", " No way", " Maybe", " Never"]
    sample = {
        "doc_id": number,
        "doc": {"question": f"question {number}", "subject": subject, "answer": right},
        "target": str(right),
        "arguments": {
            f"gen_args_{j}": {"arg_0": "Question", "arg_1": texts[j]}
            for j in range(len(scores))
        },
        "resps": [[[str(score), "False"]] for score in scores],
        "filtered_resps": [[str(score), "False"] for score in scores],
        "filter": "none",
        "metrics": ["acc", "acc_norm"],
        "doc_hash": "0" * 64,
        "acc": 0.0,
    }
    return json.dumps(sample | changes)


def write_harness(folder, task="mmlu_law", rows=ROWS, answers=ANSWERS, **changes):
    path = folder / f"samples_{task}_{DATE}.jsonl"
    lines = []
    for number, (row, right) in enumerate(zip(rows, answers, strict=True)):
        scores = (np.log(row) - 20.0).tolist()
        lines.append(harness_line(number, scores, right, **changes))
    path.write_text("\n".join(lines) + "\n")
    return path


def test_logged_samples(tmp_path):
    p = mcllo.read_choices(write_harness(tmp_path))
    assert p.probs == pytest.approx(vector().probs, abs=1e-12)
    assert np.array_equal(p.codes, ANSWERS)
    assert p.by is None
    test = mcllo.calibration_test(p, method="chi2")
    assert test.statistic == pytest.approx(1.115436, abs=1e-6)  # section 9a


def test_tasks_are_subgroups(tmp_path):
    files = [write_harness(tmp_path, f"mmlu_{name}") for name in ("law", "physics")]
    p = mcllo.read_choices(files)
    assert p.n_samples == 24
    assert (p.by.column, p.by.names) == ("task", ("mmlu_law", "mmlu_physics"))
    of_folder = mcllo.read_choices(tmp_path)
    assert np.array_equal(of_folder.probs, p.probs)
    assert of_folder.by.names == p.by.names


def test_by_looks_into_the_document(tmp_path):
    write_harness(tmp_path, "a", subject="law")
    write_harness(tmp_path, "b", subject="history")
    p = mcllo.read_choices(tmp_path, by="doc.subject")
    assert p.by.names == ("history", "law")


@pytest.mark.parametrize(
    ("name", "task"),
    [
        (f"samples_mmlu_law_{DATE}.jsonl", "mmlu_law"),
        ("samples_arc.jsonl", "arc"),
        ("mine.jsonl", "mine"),
    ],
)
def test_names_of_tasks(tmp_path, name, task):
    assert _task_name(tmp_path / name) == task


def test_log_likelihoods_per_character(tmp_path):
    path = tmp_path / "samples_x.jsonl"
    path.write_text(harness_line(0, [-6.0, -6.0], 0) + "\n")
    p = mcllo.read_choices(path, per_character=True)
    # "Yes" has 3 characters and "No way" 6: -2 and -1
    assert p.probs[0, 1] / p.probs[0, 0] == pytest.approx(np.e)


def test_other_filters_are_left_out_and_counted(tmp_path):
    path = tmp_path / "samples_x.jsonl"
    lines = [harness_line(0, [-1.0, -2.0], 0), harness_line(1, [-1.0, -2.0], 1)]
    others = [line.replace('"none"', '"strict"') for line in lines]
    path.write_text("\n".join(lines + others) + "\n")
    p = mcllo.read_choices(path)
    assert p.n_samples == 2
    assert [note.numbers for note in p.notes] == [{"n_lines": 2}]
    assert "2 lines of other filters" in mcllo.assess_choices(p, seed=0).text()


@pytest.mark.parametrize("shape", ["list", "object"])
def test_any_json_lines(tmp_path, shape):
    path = tmp_path / "mine.jsonl"
    lines = []
    for row, right in zip(ROWS, ANSWERS, strict=True):
        scores = row
        if shape == "object":
            scores = dict(zip("ABCD", row, strict=False))
        key = right if shape == "list" else "ABCD"[right]
        lines.append(json.dumps({"model": {"p": scores}, "key": key, "day": "mon"}))
    path.write_text("\n\n".join(lines))
    p = mcllo.read_choices(path, scores="model.p", answer="key", kind="probs")
    assert np.array_equal(p.probs, vector().probs)
    assert np.array_equal(p.codes, ANSWERS)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2 must be JSON"),
        ("[1]", "line 2 must hold a JSON object; it holds a list"),
        ('{"a": 1}', "line 2 has no 'target'"),
        (harness_line(1, [-1.0, -2.0], 0, target="yes"), "line 2: 'target'.*'yes'"),
        (harness_line(1, [-1.0, -2.0], 0, filtered_resps=["text"]), "generated text"),
        (harness_line(1, [-1.0, -2.0], 5), "line 2 has 5, and offers A, B"),
        (harness_line(1, [-1.0], 0), "line 2 has one"),
        (harness_line(1, ["nan", "nan"], 0), "line 2 has no option"),
    ],
)
def test_what_cannot_be_read_says_which_line(tmp_path, line, message):
    path = tmp_path / "samples_x.jsonl"
    path.write_text(harness_line(0, [-1.0, -2.0], 0) + "\n" + line + "\n")
    with pytest.raises((FileFormatError, InputError), match=message) as caught:
        mcllo.read_choices(path)
    assert "samples_x.jsonl line 2" in str(caught.value)


def test_other_mistakes(tmp_path):
    path = write_harness(tmp_path)
    with pytest.raises(FileFormatError, match="No such file"):
        mcllo.read_choices(tmp_path / "none.jsonl")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(FileFormatError, match="has none"):
        mcllo.read_choices(empty)
    with pytest.raises(InputError, match="logs of Inspect must be read by themselves"):
        mcllo.read_choices([path, "run.eval"])
    with pytest.raises(InputError, match="must both be given"):
        mcllo.read_choices(path, scores="resps")
    with pytest.raises(FileFormatError, match="line 1 has no 'p'"):
        mcllo.read_choices(path, scores="p", answer="target", kind="probs")
    mine = tmp_path / "mine.jsonl"
    mine.write_text('{"p": [0.5, 0.5], "key": 0}')
    with pytest.raises(InputError, match="kind must be"):
        mcllo.read_choices(mine, scores="p", answer="key")
    with pytest.raises(FileFormatError, match="line 1: 'key' must be a list"):
        mcllo.read_choices(mine, scores="key", answer="key", kind="probs")


# ---- the command line


def run(capsys, *arguments):
    code = run_command_line([str(word) for word in arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def write_run(folder):
    predictions = simulate(600, 4, 0.5, [-0.6, 0, 0, 0], seed=1)
    rows = [
        probs[offered].tolist()
        for probs, offered in zip(predictions.probs, predictions.offered, strict=True)
    ]
    for name, part in (("law", slice(0, 300)), ("physics", slice(300, 600))):
        write_harness(folder, name, rows[part], predictions.codes[part].tolist())
    return folder


def test_assess_prints_what_the_library_says(tmp_path, capsys):
    folder = write_run(tmp_path)
    code, out, _ = run(capsys, "assess", folder, "--seed", 1)
    assert code == 0
    expected = mcllo.assess_choices(mcllo.read_choices(folder), seed=1)
    assert out == f"{expected.text()}\n"
    assert "By task" in out
    files = sorted(folder.glob("*.jsonl"))
    assert run(capsys, "assess", *files, "--seed", 1)[1] == out


def test_json_and_gate(tmp_path, capsys):
    folder = write_run(tmp_path)
    code, out, _ = run(capsys, "assess", folder, "--seed", 1, "--json", "--gate")
    assert code == 1
    content = json.loads(out)
    assert content["kind"] == "choice_sets"
    assert content["verdict"]["kind"] == "miscalibrated"
    assert [row["task"] for row in content["by"]] == ["law", "physics"]
    few = tmp_path / "few"
    few.mkdir()
    assert run(capsys, "assess", write_harness(few), "--gate")[0] == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--classes", "a,b"], "--classes"),
        (["--label", "y", "--scores", "p"], "without --label"),
        (["--scores", "p"], "--scores and --answer must both be given"),
        (["--statistic", "wald"], "'lr' or 'score' for choice sets"),
    ],
)
def test_refused_on_the_command_line(tmp_path, capsys, options, message):
    code, _, err = run(capsys, "assess", write_harness(tmp_path), *options)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_report(tmp_path, capsys):
    folder = write_run(tmp_path)
    page = tmp_path / "run.html"
    assert run(capsys, "assess", folder, "--seed", 1, "--html", page)[0] == 0
    assert "parts-task" in page.read_text()


def test_a_wrong_file_says_which_line(tmp_path, capsys):
    path = write_harness(tmp_path)
    path.write_text(path.read_text() + "{\n")
    code, _, err = run(capsys, "assess", path)
    assert code == 2
    assert f"{path.name} line 13 must be JSON" in err


def test_two_tables_are_refused(tmp_path, capsys):
    code, _, err = run(capsys, "assess", "a.csv", "b.csv", "--label", "y")
    assert code == 2
    assert "a directory of them" in err


@pytest.mark.slow
def test_lines_are_those_of_the_harness():
    """The fields and texts of `harness_line` are those of the package, where it is installed."""
    utils = pytest.importorskip("lm_eval.utils")
    assert utils.sanitize_list([(-1.5, False)]) == [("-1.5", "False")]
