"""What the verbs do with good input; `test_main` has the bad."""

import gzip
import io
import json
import re
import sys
from pathlib import Path

import data
import numpy as np
import pyarrow as pa
import pytest
from approval import settled_values
from inputs import (
    CLASSES,
    csv_rows,
    csv_text,
    parquet_bytes,
    parquet_table,
    predictions,
    with_line,
)
from pyarrow import parquet

import mcllo
from mcllo.__main__ import run

LABEL = ["--label", "y"]


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.csv"
    path.write_text(csv_text())
    return str(path)


@pytest.fixture
def model(tmp_path, good, capsys):
    path = str(tmp_path / "model.json")
    assert run(["fit", good, *LABEL, "-o", path]) == 0
    capsys.readouterr()
    return path


def output(capsys, *arguments):
    """Return what a command that succeeds prints; on stderr only that a map may do harm."""
    capsys.readouterr()
    assert run([str(word) for word in arguments]) == 0
    out, err = capsys.readouterr()
    harm = "mcllo: warning: On rows that it was not fitted to (5 folds) it raises log loss by "
    assert err == "" or (arguments[0] == "fit" and err.startswith(harm) and err.count("\n") == 1)
    return out


def refuse_constant(name):
    raise AssertionError(f"{name} is not strict JSON")


def strict(text):
    return json.loads(text, parse_constant=refuse_constant)


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


# help


def test_alone_it_shows_help_and_it_knows_its_version(capsys):
    assert output(capsys) == output(capsys, "--help")
    found = re.fullmatch(r"mcllo (.+) \(kernel: (C \(.+\)|NumPy)\)\n", output(capsys, "--version"))
    assert found[1] == mcllo.__version__


# assess


def test_assess_prints_what_python_prints(good, capsys):
    probs, y = predictions()
    a = mcllo.assess(probs, y, classes=CLASSES, baseline="dog", seed=1)
    words = ["assess", good, *LABEL, "--baseline", "dog", "--seed", 1]
    assert output(capsys, *words) == f"{a}\n"
    assert strict(output(capsys, *words, "--json")) == json.loads(json.dumps(a.to_dict()))


SEPARATED = "a,b,y\n" + "0.9,0.1,a\n0.8,0.2,a\n0.3,0.7,b\n0.2,0.8,b\n" * 3


@pytest.mark.parametrize("statistic", ["lr", "score", "wald"])
def test_json_of_separated_rows_has_null_and_never_nan(tmp_path, capsys, statistic):
    file = write(tmp_path, "f.csv", SEPARATED)
    method = [] if statistic != "wald" else ["--method", "chi2"]
    words = ["assess", file, *LABEL, "--json", "--seed", "0", "--statistic", statistic, *method]
    content = strict(output(capsys, *words))
    assert content["fit"]["separated"] is True
    assert content["fit"]["se_tau"] == [None]
    if statistic == "wald":
        assert content["test"]["pvalue"] is None


def test_the_gate_answers_with_the_exit_code(tmp_path, capsys):
    file = write(tmp_path, "f.csv", SEPARATED)
    words = ["assess", file, *LABEL, "--statistic", "wald", "--method", "chi2"]
    assert run(words) == 0
    assert run([*words, "--gate"]) == 3  # without a p-value it does not open
    file = write(tmp_path, "f.csv", csv_text(400))
    pvalue = strict(output(capsys, "assess", file, *LABEL, "--json"))["test"]["pvalue"]
    assert 0.0 < pvalue < 0.05
    assert run(["assess", file, *LABEL]) == 0
    assert run(["assess", file, *LABEL, "--gate"]) == 1
    assert "Verdict" in capsys.readouterr().out
    assert run(["assess", file, *LABEL, "--gate", "--json"]) == 1
    assert run(["assess", file, *LABEL, "--gate", "--alpha", repr(pvalue / 2)]) == 0


def test_a_seed_makes_the_output_repeatable(good, capsys):
    words = ["assess", good, *LABEL, "--method", "exact", "--draws", "99", "--json"]
    first = output(capsys, *words, "--seed", "5")
    assert first == output(capsys, *words, "--seed", "5")
    content = strict(first)["test"]
    assert (content["method"], content["n_resamples"], content["seed"]) == ("exact", 99, 5)
    judged = strict(output(capsys, "assess", good, *LABEL, "--alpha", "1e-9", "--json"))["verdict"]
    assert judged["alpha"] == 1e-9


def test_normalize_accepts_rounded_rows_and_clip_raises_what_is_below(tmp_path, capsys):
    file = write(tmp_path, "f.csv", with_line(9, "0.33,0.33,0.33,cat"))
    content = strict(output(capsys, "assess", file, *LABEL, "--json", "--normalize"))
    assert content["data"]["n_renormalized"] == 1
    assert "divided by their sum" in output(capsys, "assess", file, *LABEL, "--normalize")
    file = write(tmp_path, "f.csv", with_line(9, "0.5,0,0.5,cat"))
    content = strict(output(capsys, "assess", file, *LABEL, "--json", "--clip", "1e-3"))
    assert content["data"]["clip"] == 1e-3
    text = output(capsys, "assess", file, *LABEL)
    assert "Zeros: 1 of 180 probabilities are 0; the p-value is" in text
    assert "clip=" not in text


def test_weight_counts_rows(tmp_path, capsys):
    lines = csv_text(30).splitlines()
    twice = "\n".join([lines[0], *[line for line in lines[1:] for _ in range(2)]])
    weighted = "\n".join([lines[0] + ",w", *[line + ",2" for line in lines[1:]]])
    words = ["--json", "--method", "chi2", "--seed", "0"]
    a = strict(output(capsys, "assess", write(tmp_path, "a.csv", twice), *LABEL, *words))
    file = write(tmp_path, "b.csv", weighted)
    b = strict(output(capsys, "assess", file, *LABEL, *words, "--weight", "w"))
    assert b["test"]["statistic"] == pytest.approx(a["test"]["statistic"], rel=1e-9)
    assert b["data"]["weighted"] is True


def test_logits_are_what_their_softmax_is(tmp_path, good, capsys):
    probs, y = predictions()
    file = write(tmp_path, "logits.csv", csv_rows([*CLASSES, "y"], np.log(probs) + 3.0, y))
    words = [*LABEL, "--json", "--method", "chi2", "--seed", "0"]
    a = strict(output(capsys, "assess", good, *words))
    b = strict(output(capsys, "assess", file, *words, "--logits"))
    assert b["test"]["statistic"] == pytest.approx(a["test"]["statistic"], rel=1e-9)
    model = tmp_path / "m.json"
    output(capsys, "fit", file, *LABEL, "--logits", "-o", model)
    recalibrated = mcllo.load_calibrator(model).predict_proba(probs)
    out = tmp_path / "out.parquet"
    output(capsys, "apply", model, file, "--logits", "-o", out)
    np.testing.assert_allclose(written(out), recalibrated, rtol=1e-9)


# which columns


def statistic(capsys, file, *words):
    arguments = ["assess", file, *LABEL, "--json", "--method", "chi2", "--seed", "0", *words]
    return strict(output(capsys, *arguments))["test"]["statistic"]


def with_ids(header, text=None):
    """Return CSV text with another header and a column of numbers before the others."""
    lines = (text or csv_text()).splitlines()[1:]
    return "\n".join([header, *(f"{i:05d},{line}" for i, line in enumerate(lines))])


def test_classes_choose_columns_among_others(tmp_path, good, capsys):
    file = write(tmp_path, "ids.csv", with_ids("id,cat,dog,truck,y"))
    wanted = statistic(capsys, good)
    assert statistic(capsys, file, "--classes", "cat,dog,truck") == wanted
    assert statistic(capsys, file, "--classes", " truck, cat , dog", "--baseline", "truck") == (
        pytest.approx(wanted, rel=1e-9)
    )
    index = write(tmp_path, "index.csv", with_ids(",cat,dog,truck,y"))  # pandas wrote it
    assert statistic(capsys, index) == wanted


def test_class_names_may_hold_commas_and_quotes(tmp_path, good, capsys):
    quoted = ['"a, ""b"""', '"ça va"', '"c"']
    probs, y = predictions()
    text = csv_rows("", probs, [quoted[CLASSES.index(label)] for label in y])
    file = write(tmp_path, "f.csv", with_ids(",".join(["id", *quoted, "y"]), text))
    assert statistic(capsys, file, "--classes", ",".join(quoted)) == statistic(capsys, good)


def test_a_prefix_of_class_columns(tmp_path, good, model, capsys):
    file = write(tmp_path, "f.csv", with_ids("id,p_cat,p_dog,p_truck,y"))
    assert statistic(capsys, file, "--prefix", "p_") == statistic(capsys, good)
    again = tmp_path / "again.json"
    output(capsys, "fit", file, *LABEL, "--prefix", "p_", "-o", again)
    assert again.read_text() == Path(model).read_text()
    out = output(capsys, "apply", model, file, "--prefix", "p_").splitlines()
    assert out[0] == "id,p_cat,p_dog,p_truck,y"
    expected = output(capsys, "apply", model, good).splitlines()
    assert [line.split(",", 1)[1] for line in out[1:]] == expected[1:]


def test_labels_as_floats_and_spaces_around_names(tmp_path, capsys):
    probs, y = predictions()
    codes = [CLASSES.index(label) for label in y]

    def found(header, label):
        text = csv_rows(header.split(","), probs, [label.format(code) for code in codes])
        return statistic(capsys, write(tmp_path, "f.csv", text))

    plain = found("0,1,2,y", "{}")
    assert found("0,1,2,y", "{}.0") == found(" 0 , 1, 2 ,y ", " {} ") == plain


# kinds of files


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_dialects_of_csv(tmp_path, good, capsys, separator, mark, end):
    text = mark + csv_text(separator=separator).replace("\n", end)
    assert statistic(capsys, write(tmp_path, "f.csv", text)) == statistic(capsys, good)


Y = predictions()[1]
CODES = [CLASSES.index(label) for label in Y]


@pytest.mark.parametrize(
    ("table", "within"),
    [
        (parquet_table(), 1e-12),
        (parquet_table(y=pa.array(Y).dictionary_encode()), 1e-12),
        (parquet_table(y=pa.array(Y, pa.large_string())), 1e-12),
        (parquet_table(y=pa.array(CODES, pa.int8())).rename_columns(["0", "1", "2", "y"]), 1e-12),
        (parquet_table(**dict(zip(CLASSES, np.float32(predictions()[0].T), strict=True))), 1e-4),
    ],
    ids=["text", "dictionary", "large text", "integers", "single precision"],
)
def test_parquet_is_told_from_the_content(tmp_path, good, capsys, table, within):
    file = write(tmp_path, "f.csv", parquet_bytes(table))
    assert statistic(capsys, file) == pytest.approx(statistic(capsys, good), rel=within)


@pytest.mark.parametrize(
    "raw",
    [csv_text().encode(), gzip.compress(csv_text().encode()), parquet_bytes(parquet_table())],
    ids=["csv", "gzip", "parquet"],
)
def test_standard_input_and_files_are_told_from_the_content(
    tmp_path, good, capsys, monkeypatch, raw
):
    wanted = statistic(capsys, good)
    assert statistic(capsys, write(tmp_path, "f.csv", raw)) == wanted
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
    assert statistic(capsys, "-") == wanted


# fit and apply


def test_fit_apply_and_python_agree(tmp_path, good, model, capsys):
    probs, y = predictions()
    direct = mcllo.MCLLOCalibrator(classes=CLASSES).fit(probs, y)
    loaded = mcllo.load_calibrator(model)
    np.testing.assert_array_equal(loaded.predict_proba(probs), direct.predict_proba(probs))
    lines = output(capsys, "apply", model, good).splitlines()
    assert lines[0] == "cat,dog,truck,y"
    written = [[float(cell) for cell in line.split(",")[:3]] for line in lines[1:]]
    np.testing.assert_array_equal(np.array(written), direct.predict_proba(probs))


def test_fit_and_apply_say_what_they_did(tmp_path, good, model, capsys):
    out = tmp_path / "m.json"
    text = output(capsys, "fit", good, *LABEL, "--baseline", "dog", "-o", out)
    assert text == f"{out}: map of 3 classes (baseline: dog) from 60 rows\n"
    assert mcllo.load_calibrator(out).fit_.baseline == "dog"
    out = tmp_path / "out.csv"
    assert output(capsys, "apply", model, good, "-o", out) == f"{out}: 60 rows recalibrated\n"
    assert out.read_text() == output(capsys, "apply", model, good)


def test_fit_notes_what_cannot_be_estimated_and_the_remedy_works(tmp_path, capsys):
    file = write(tmp_path, "f.csv", SEPARATED)
    assert run(["fit", file, *LABEL, "-o", str(tmp_path / "m.json")]) == 0
    err = capsys.readouterr().err
    assert err.startswith("mcllo: note: the maximum likelihood estimate does not exist")
    assert err.endswith("use mcllo fit --penalty 1.\n")
    assert err.count("\n") == 1
    output(capsys, "fit", file, *LABEL, "-o", tmp_path / "m.json", "--penalty", "1")


def test_a_model_may_come_through_a_pipe(good, model, capsys, monkeypatch):
    text = output(capsys, "fit", good, *LABEL, "-o", "-")
    assert text == Path(model).read_text()
    assert text == output(capsys, "fit", good, *LABEL, "-o", "-", "--json")  # it is JSON already
    strict(text)
    expected = output(capsys, "apply", model, good)
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    assert output(capsys, "apply", "-", good) == expected


def test_apply_needs_no_labels_and_can_write_over_the_file_it_reads(tmp_path, good, model, capsys):
    bare = "\n".join(line.rsplit(",", 1)[0] for line in csv_text().splitlines())
    file = write(tmp_path, "bare.csv", bare)
    expected = output(capsys, "apply", model, good)
    without_labels = [line.rsplit(",", 1)[0] for line in expected.splitlines()]
    assert output(capsys, "apply", model, file).splitlines() == without_labels
    output(capsys, "apply", model, good, "-o", good)
    assert Path(good).read_text() == expected


def test_apply_takes_its_own_normalize_and_clip(tmp_path, model, capsys):
    rounded = write(tmp_path, "r.csv", "cat,dog,truck\n0.33,0.33,0.33\n")
    exact = write(tmp_path, "e.csv", "cat,dog,truck\n1,1,1\n")
    assert output(capsys, "apply", model, rounded, "--normalize") == output(
        capsys, "apply", model, exact, "--normalize"
    )
    zero = write(tmp_path, "z.csv", "cat,dog,truck\n0.5,0,0.5\n")
    default, low = (
        float(output(capsys, "apply", model, zero, *words).splitlines()[1].split(",")[1])
        for words in ([], ["--clip", "1e-12"])
    )
    assert low < default


# any method


PROBABILITIES = sorted(set(mcllo.CALIBRATORS) - {"vector", "matrix"})


def written(path):
    table = parquet.read_table(path)
    return np.column_stack([table[name].to_numpy() for name in CLASSES])


@pytest.mark.parametrize("method", PROBABILITIES)
def test_every_method_is_fitted_saved_and_applied_in_batches(
    tmp_path, good, capsys, monkeypatch, method
):
    model, out = tmp_path / "m.json", tmp_path / "out.parquet"
    text = output(capsys, "fit", good, *LABEL, "--method", method, "-o", model)
    assert text.startswith(f"{model}: ")
    for name, value in (("BLOCK", 1024), ("BYTES_PER_CELL", 1)):  # a few rows in each batch
        monkeypatch.setattr(f"mcllo._files.source.{name}", value)
    output(capsys, "apply", model, good, "-o", out)
    direct = mcllo.CALIBRATORS[method]().fit(mcllo.read_predictions(good, label="y"))
    np.testing.assert_allclose(written(out), direct.predict_proba(predictions()[0]), rtol=1e-12)


@pytest.mark.parametrize("method", ["auto", "temperature", "vector", "matrix"])
def test_methods_of_logits(tmp_path, capsys, method):
    probs, y = predictions(150)
    rows = 2.0 * np.log(probs) + 1.0
    file, model, out = tmp_path / "in.parquet", tmp_path / "m.json", tmp_path / "out.parquet"
    parquet.write_table(pa.table([*rows.T, y], names=[*CLASSES, "y"]), file)
    output(capsys, "fit", file, *LABEL, "--method", method, "--logits", "-o", model)
    output(capsys, "apply", model, file, "--logits", "-o", out)
    direct = mcllo.CALIBRATORS[method](on="logits").fit(
        mcllo.read_predictions(file, label="y", logits=True)
    )
    np.testing.assert_allclose(written(out), direct.predict_proba(rows), rtol=1e-12)
    assert run(["apply", str(model), str(file)]) == 2
    assert f"this {method} map was fitted to logits" in capsys.readouterr().err


def test_auto_says_what_is_in_it_and_keeps_its_gate(tmp_path, good, capsys):
    model = tmp_path / "m.json"
    words = ["fit", good, *LABEL, "--method", "auto", "--gate", "0.05", "-o", model]
    text = output(capsys, *words)
    assert text.startswith(f"{model}: auto map of 3 classes from 60 rows: ")
    assert "% temperature" in text
    made = mcllo.load_calibrator(model)
    assert made.summary() in text
    content = strict(output(capsys, *words, "--json"))
    assert content["model"] == str(model)
    assert content["gate"] == made.gate_.to_dict()
    assert content["weights"] == made.weights_


def test_the_default_method_is_mcllo_and_only_some_have_a_floor(good, model, tmp_path, capsys):
    again = str(tmp_path / "again.json")
    output(capsys, "fit", good, *LABEL, "--method", "mcllo", "-o", again)
    assert Path(again).read_text() == Path(model).read_text()
    content = strict(output(capsys, "fit", good, *LABEL, "-o", again, "--json"))
    assert (content["method"], content["n_samples"]) == ("mcllo", 60)
    output(capsys, "fit", good, *LABEL, "--method", "histogram", "-o", again)
    assert run(["apply", again, good, "--clip", "0.01"]) == 2
    assert "histogram takes zeros as they are. Leave it out." in capsys.readouterr().err


# compare, reports, figures


@pytest.fixture
def files(tmp_path):
    sharp = data.SETS["sharp"]()
    sharp.write_csv(tmp_path / "train.csv")
    sharp.holdout.write_csv(tmp_path / "holdout.csv")
    return [tmp_path / "train.csv", tmp_path / "holdout.csv"]


@pytest.mark.parametrize("methods", [None, ["mcllo", "histogram"]], ids=["all", "two"])
def test_compare_prints_what_python_compares(files, capsys, methods):
    named = [] if methods is None else ["--methods", ",".join(methods)]
    words = ["compare", *files, *LABEL, "--seed", "0", "--json", *named]
    train, holdout = (mcllo.read_predictions(file, label="y") for file in files)
    direct = mcllo.compare(train, holdout, methods=methods, seed=0).to_dict()
    # all but the seconds that fits took
    printed = settled_values(strict(output(capsys, *words)))
    assert printed == settled_values(json.loads(json.dumps(direct)))
    assert printed["skipped"] == {}


@pytest.mark.parametrize("ending", ["html", "md", "json"])
def test_verbs_write_reports(files, tmp_path, capsys, ending):
    folds = ["--cv", "2", "--methods", "temperature"]
    for verb, words in (("assess", []), ("compare", folds)):
        out = tmp_path / f"{verb}.{ending}"
        arguments = [verb, str(files[0]), *words, *LABEL, "--seed", "0", "--html", str(out)]
        assert run(arguments) == 0
        printed = capsys.readouterr()
        assert "report written" in printed.err
        assert "400" in printed.out
        assert "train.csv" in out.read_text()
        assert verb == "assess" or "temperature" in out.read_text().lower()


@pytest.mark.usefixtures("undrawn")
def test_open_needs_a_report_and_opens_it(good, tmp_path, capsys, monkeypatch):
    opened = []
    monkeypatch.setattr("typer.launch", lambda path: opened.append(path))
    assert run(["assess", good, *LABEL, "--open"]) == 2
    assert "--html OUT" in capsys.readouterr().err
    out = str(tmp_path / "r.html")
    assert run(["assess", good, *LABEL, "--html", out, "--open"]) == 0
    assert opened == [out]
    for name in ("r.pdf", "no/such/dir/r.html"):
        assert run(["assess", good, *LABEL, "--html", str(tmp_path / name)]) == 2
        assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_plot(good, tmp_path, capsys, ending):
    out = tmp_path / f"figure.{ending}"
    assert "reliability figure written" in output(capsys, "plot", good, *LABEL, "-o", out)
    assert out.stat().st_size > 1000
