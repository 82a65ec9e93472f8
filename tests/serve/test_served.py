"""The whole way without a browser: a file, its columns, the report, the recalibration."""

import html
import json
import re
import shlex
import sys
from pathlib import Path

import pytest
from inputs import csv_text, parquet_bytes, parquet_table
from report_data import HOSTILE
from visitor import commands, problem, visiting

from mcllo import load_calibrator, read_predictions
from mcllo.__main__ import run_command_line
from mcllo._apps.serve.column_detection import DetectedColumn, DetectedTable
from mcllo._apps.serve.guard import REPORT_POLICY
from mcllo._apps.serve.jobs import TableJob
from mcllo._apps.serve.limits import LIMITS
from mcllo._apps.serve.pages import (
    PageRenderer,
    expected_gain_sentence,
    recommendation_sentence,
)

TEXT = csv_text(n=300)


slow = pytest.mark.slow  # each starts programs that work beside the page


@pytest.fixture(scope="module")
def done(visitor):
    """Return a job that was assessed and recalibrated, and the pages on the way."""
    job = visitor.drop("pets & co.csv", TEXT)
    columns = visitor.wait(job)
    visitor.post(f"{job}/assess", visitor.fields(columns))
    assessed = visitor.wait(job)
    visitor.post(f"{job}/recalibrate", {"method": "mcllo"})
    return job, columns, assessed, visitor.wait(job)


@pytest.fixture(scope="module")
def looked(visitor):
    """Return a job whose table was looked at, and nothing else."""
    job = visitor.drop("a.csv", TEXT)
    visitor.wait(job)
    return job


def test_the_columns_are_shown_as_they_were_recognised(visitor, done):
    fields = visitor.fields(done[1])
    assert [fields[f"role-{j}"] for j in range(4)] == [
        "class",
        "class",
        "class",
        "label",
    ]
    assert (fields["scale"], fields["missing"]) == ("probs", "refuse")
    assert "normalize" not in fields
    assert "pets &amp; co.csv" in done[1]
    assert "300 rows" in done[1]


def test_the_report_is_the_one_of_the_command_line(
    visitor, done, tmp_path, monkeypatch
):
    job, _, assessed, _ = done
    (command,) = commands(assessed)
    assert (
        command == "mcllo assess 'pets & co.csv' --label y --seed 0 --html report.html"
    )
    monkeypatch.chdir(tmp_path)
    Path("pets & co.csv").write_text(TEXT)
    monkeypatch.setattr(sys, "argv", shlex.split(command))
    assert run_command_line(sys.argv[1:]) == 0
    expected = Path("report.html").read_bytes()
    shown, given = visitor.get(f"{job}/see/report"), visitor.get(f"{job}/get/report")
    assert shown.content == given.content == expected
    assert shown.headers["content-security-policy"] == REPORT_POLICY
    assert shown.headers["content-type"].startswith("text/html")
    assert given.headers["content-disposition"] == 'attachment; filename="report.html"'
    kind = re.search(r'data-test-verdict="(\w+)"', expected.decode())[1]
    assert f'data-test-verdict="{kind}"' in assessed
    assert ("data-test-no-proof" in assessed) == (kind == "not_detected")


def test_the_recalibrated_table_and_the_model_are_those_of_the_command_line(
    visitor, done, tmp_path, monkeypatch
):
    job, page = done[0], done[-1]
    monkeypatch.chdir(tmp_path)
    Path("pets & co.csv").write_text(TEXT)
    for line in commands(page)[-1].splitlines():
        assert run_command_line(shlex.split(line)[1:]) == 0
    assert (
        visitor.get(f"{job}/get/table").content == Path("recalibrated.csv").read_bytes()
    )
    Path("served.json").write_bytes(visitor.get(f"{job}/get/model").content)
    ours, theirs = (
        json.loads(Path(name).read_text()) for name in ("served.json", "model.json")
    )
    assert ours == theirs
    rows = read_predictions("pets & co.csv", label="y")
    recalibrated = read_predictions("recalibrated.csv", label="y")
    assert (
        abs(
            load_calibrator("served.json").predict_proba(rows) - recalibrated.probs
        ).max()
        < 1e-12
    )


def test_a_recommendation_has_the_names_that_the_page_offers():
    found = {"method": "beta", "improves": True, "simplest": "beta"}
    best = "Beta calibration does best on rows that it was not fitted to."
    alone = recommendation_sentence({**found, "ties": []})
    assert alone == f"{best} All others are worse, beyond chance."
    one = recommendation_sentence({**found, "ties": ["mcllo"]})
    assert (
        one
        == f"{best} One other recalibration cannot be told from it; it is the simplest of these."
    )
    several = {**found, "ties": ["mcllo", "temperature"], "simplest": "temperature"}
    assert recommendation_sentence(several) == (
        f"{best} 2 other recalibrations cannot be told from it; "
        "temperature scaling is the simplest of these."
    )
    assert recommendation_sentence({**several, "improves": False}).startswith(
        "No recalibration is shown"
    )


@slow
def test_recalibrations_compared_and_their_mean(visitor, done):
    job = done[0]
    visitor.post(f"{job}/compare")
    compared = visitor.wait(job)
    text = re.search(r"data-test-compared>(.*?)</p>", compared, re.S)[1]
    assert (
        "vector_log_probs" not in text
    )  # names of the list of recalibrations, not of options
    assert '<h2 tabindex="-1" autofocus>Recalibrations compared<' in re.sub(
        r' id="[^"]*"', "", compared
    )
    report = visitor.get(f"{job}/see/recalibrations")
    assert report.status_code == 200
    assert "Which recalibration?" in report.text
    full = re.search(r"In numbers</summary><p>(.*?)</p>", compared, re.S)[1]
    assert html.unescape(full).split(".")[0] in html.unescape(report.text)
    visitor.post(f"{job}/recalibrate", {"method": "auto"})
    mean = visitor.wait(job)
    assert re.search(
        r"data-test-gain>On rows that it was not fitted to it is expected to", mean
    )
    visitor.post(f"{job}/recalibrate", {"method": "mcllo"})  # as the others find it
    page = visitor.wait(job)
    assert "Recalibrations compared" in page
    assert re.search(
        r"data-test-gain>On rows that it was not fitted to \(5 folds\)", page
    )


def test_what_the_mean_of_recalibrations_is_expected_to_gain():
    # 0.01 -+ 1.96 * 0.002 = 0.00608 and 0.01392
    said = expected_gain_sentence({"expected": -0.01, "expected_se": 0.002})
    assert "raise log loss by 0.0100 (95 % interval 0.0061 to 0.0139)." in said
    # 0.001 - 1.96 * 0.002 = -0.00292
    said = expected_gain_sentence({"expected": 0.001, "expected_se": 0.002})
    assert "-0.0029 to 0.0049), which chance alone could show." in said
    assert expected_gain_sentence({"expected": None, "expected_se": None}) == ""


def test_the_result_gets_the_focus(done):
    _, columns, assessed, recalibrated = done
    focus = r"<(h1|h2)[^>]* tabindex=\"-1\" autofocus>([^<]*)<"
    assert re.findall(focus, columns) == [("h1", "Check the columns")]
    assert re.findall(focus, assessed)[0][0] == "h1"
    assert re.findall(focus, recalibrated) == [("h2", "Recalibrated")]


def test_what_was_not_made_cannot_be_taken(visitor, looked):
    for what in ("table", "model", "recalibrations", "nothing", "../../x"):
        assert visitor.get(f"{looked}/get/{what}").status_code == 404, what
        assert visitor.get(f"{looked}/see/{what}").status_code == 404, what


@slow
def test_what_does_not_fit_is_said_in_the_words_of_the_page(visitor):
    lines = TEXT.splitlines()[:40]
    text = "\n".join(
        f"{'day' if not i else f'd{i}'},{line}" for i, line in enumerate(lines)
    )
    job = visitor.drop("days.csv", text)
    fields = visitor.fields(visitor.wait(job))
    visitor.post(f"{job}/assess", fields | {"role-0": "class"})
    page = visitor.wait(job)
    assert problem(page) == (
        "That did not work: days.csv cannot be read: column 'day' must hold numbers; line 2 has "
        "'d1'. If 'day' is not a class, pass “Probability of a class: cat, dog, truck”."
    )
    assert visitor.fields(page)["role-0"] == "class"  # the form is as it was left
    visitor.post(f"{job}/assess", fields | {"role-4": ""})
    assert "one column must be “What came true”; none is." in problem(visitor.wait(job))


def test_a_broken_file_is_one_sentence_and_the_way_back(visitor):
    job = visitor.drop("a.xlsx", b"PK\x03\x04broken")
    page = visitor.wait(job)
    assert "a.xlsx cannot be read: the archive is damaged" in problem(page)
    assert 'role="alert"' in page
    assert 'type="file"' in page  # try another
    assert visitor.get(job).status_code == 404  # it is gone


@slow
def test_a_file_that_is_named_like_a_module_is_a_table(visitor):
    assert "Check the columns" in visitor.wait(visitor.drop("json.py", TEXT))
    page = visitor.wait(visitor.drop("numpy.py", b"import os"))
    assert "numpy.py must have a header line with at least two columns" in problem(page)


@slow
def test_a_cancelled_run(visitor, looked):
    job = looked
    fields = visitor.fields(visitor.get(job).text)
    visitor.post(f"{job}/assess", fields)
    assert "Assessing the probabilities" in visitor.get(job).text
    page = visitor.post(
        f"{job}/cancel"
    ).text  # a worker takes longer to start than this
    assert "Cancelled. Nothing was changed." in page
    assert not visitor.get(f"{job}/status").json()["busy"]
    assert visitor.fields(page) == fields
    assert visitor.get(f"{job}/see/report").status_code == 404


@slow
def test_a_cancelled_look_leads_back_to_the_start(visitor):
    job = visitor.drop("a.csv", TEXT)
    assert 'type="file"' in visitor.post(f"{job}/cancel").text


@slow
def test_work_that_takes_too_long(tmp_path):
    with visiting(tmp_path, seconds=0.05) as visitor:
        page = visitor.wait(visitor.drop("a.csv", TEXT))
        assert "the work must be done within 0.05 seconds here; it was not." in problem(
            page
        )


@slow
def test_two_tables_at_once_and_a_third_that_waits(tmp_path):
    table = parquet_bytes(parquet_table())
    with visiting(tmp_path, at_once=2) as visitor:
        jobs = [visitor.drop(f"{k}.csv", TEXT) for k in "ab"] + [
            visitor.drop("c.parquet", table)
        ]
        assert len(set(jobs)) == 3
        status = [visitor.get(f"{job}/status").json() for job in jobs]
        assert [answer["busy"] for answer in status] == [True] * 3
        assert status[2]["doing"] == "waiting for its turn"
        pages = [visitor.wait(job) for job in jobs]
        assert ["300 rows" in page for page in pages] == [True, True, False]
        assert [f"{k}.csv" in page for k, page in zip("ab", pages, strict=False)] == [
            True,
            True,
        ]


def test_too_large_a_file_is_a_page(tmp_path):
    with visiting(tmp_path, n_bytes=1000) as visitor:
        answer = visitor.drop("a.csv", TEXT)
        assert answer.status_code == 400
        assert "a file must have at most 0.001 MB here; this one has more." in problem(
            answer.text
        )
        assert list(tmp_path.iterdir()) == []


@slow
def test_the_oldest_table_makes_room_and_one_can_be_removed(tmp_path):
    with visiting(tmp_path, jobs=2) as visitor:
        jobs = []
        for k in range(3):
            jobs.append(visitor.drop(f"{k}.csv", TEXT))
            visitor.wait(jobs[-1])
        assert [visitor.get(job).status_code for job in jobs] == [404, 200, 200]
        assert len(list(tmp_path.iterdir())) == 2
        page = visitor.post(f"{jobs[2]}/forget").text
        assert "Choose a table" in page
        assert len(list(tmp_path.iterdir())) == 1


def test_hostile_names_are_text(visitor):
    header = ",".join(
        '"' + name.replace('"', '""') + '"' for name in (*HOSTILE[:3], "<b>seen</b>")
    )
    rows = TEXT.split("\n", 1)[1]
    for name, word in zip(HOSTILE, ("cat", "dog", "truck"), strict=False):
        rows = rows.replace(f",{word}\n", ',"' + name.replace('"', '""') + '"\n')
    job = visitor.drop("<script>alert(1)</script>.csv", f"{header}\n{rows}")
    page = visitor.wait(job)
    assert "<script>window" not in page
    assert "<b>seen" not in page
    assert html.escape(HOSTILE[0], quote=False) in page
    assert re.findall(r"<script[^>]*>", page) == [
        f'<script src="{visitor.root}/page.js" defer>'
    ]
    fields = visitor.fields(page)
    assert [fields[f"role-{j}"] for j in range(4)] == [
        "class",
        "class",
        "class",
        "label",
    ]


def test_forms_that_no_page_sends(visitor, looked):
    job = looked
    assert visitor.post(f"{job}/assess", {"x": "y" * 2_000_000}).status_code == 413
    many = {f"x{k}": "" for k in range(6000)}
    assert visitor.post(f"{job}/assess", many).status_code == 400
    assert visitor.get("/upload").status_code == 405
    assert (
        visitor.post(f"{job}/recalibrate").status_code == 200
    )  # nothing to recalibrate yet: the form
    assert visitor.get(f"{job}/status").json() == {"busy": False}


def result_page(tmp_path, reading, **found):
    """Return the page of a result that was found elsewhere."""
    column = DetectedColumn("y", ("a",), "label")
    seen = DetectedTable("t.csv", 9, (column,), {})
    assessed = {
        "kind": "miscalibrated",
        "headline": "Off",
        "n_samples": 9,
        "n_classes": 3,
        "notes": [],
    }
    found["assess"] = {**assessed, "command": "mcllo assess"}
    job = TableJob("key", tmp_path, "t.csv", seen, reading=reading, results=found)
    return PageRenderer("/token", LIMITS).render_result(job)


def chosen_and_offered(page):
    options = re.search(r'<select id="method".*?</select>', page, re.S)[0]
    names = re.findall(r'value="(\w+)"', options)
    return re.search(r'value="(\w+)" selected', options)[1], names


def test_the_recalibration_that_did_best_is_offered_first(tmp_path):
    plain = {"logits": False, "groups": None}
    chosen, offered = chosen_and_offered(result_page(tmp_path, plain))
    assert (chosen, offered[0]) == ("auto", "auto")
    assert {"mcllo", "temperature", "dirichlet"} < set(offered)
    assert not {"identity", "vector", "matrix"} & set(
        offered
    )  # nothing, and methods of logits
    assert (
        "vector"
        in chosen_and_offered(result_page(tmp_path, {**plain, "logits": True}))[1]
    )
    compared = {
        "method": "beta",
        "improves": True,
        "text": "Beta.",
        "command": "mcllo compare",
    }
    compared |= {"ties": [], "simplest": "beta"}
    page = result_page(tmp_path, plain, compare=compared)
    assert chosen_and_offered(page)[0] == "beta"
    assert "(does best here)" in page
    for other in ({"improves": False}, {"method": "vector_log_probs"}):
        page = result_page(tmp_path, plain, compare={**compared, **other})
        assert chosen_and_offered(page)[0] == "auto"


def test_what_recalibrations_do_not_know_is_said(tmp_path):
    assert "data-test-groups" not in result_page(
        tmp_path, {"logits": False, "groups": None}
    )
    assert "data-test-groups" in result_page(
        tmp_path, {"logits": False, "groups": "ward"}
    )


def test_a_missing_extra_is_one_sentence(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "starlette", None)
    assert run_command_line(["serve", "--no-browser"]) == 2
    assert capsys.readouterr().err == (
        "mcllo: mcllo serve needs the package starlette, which is not installed. "
        "Install it with: pip install 'mcllo[serve,excel]'.\n"
    )
