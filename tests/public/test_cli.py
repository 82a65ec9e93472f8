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
    case,
    csv_rows,
    csv_text,
    parquet_bytes,
    parquet_table,
    predictions,
    with_line,
)
from pyarrow import parquet

import mcllo
from mcllo.__main__ import run_command_line

LABEL = ["--label", "y"]


PROBS, Y = predictions()
CODES = [CLASSES.index(label) for label in Y]
STATISTIC = mcllo.calibration_test(PROBS, Y, classes=CLASSES, method="chi2").statistic
"""Of the rows of every `good` file, as Python finds it."""


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    path = tmp_path_factory.mktemp("good") / "good.csv"
    path.write_text(csv_text())
    return str(path)


@pytest.fixture(scope="module")
def model(tmp_path_factory, good):
    path = str(tmp_path_factory.mktemp("model") / "model.json")
    fitting = ["fit", good, *LABEL, "--method", "mcllo", "-o", path]
    assert run_command_line(fitting) == 0
    return path


def output(capsys, *arguments):
    """Return what a command that succeeds prints; on stderr only that a map may do harm."""
    capsys.readouterr()
    assert run_command_line([str(word) for word in arguments]) == 0
    out, err = capsys.readouterr()
    harm = "mcllo: warning: On rows that it was not fitted to (5 folds) it raises log loss by "
    assert err == "" or (
        arguments[0] == "fit" and err.startswith(harm) and err.count("\n") == 1
    )
    return out


def refuse_constant(name):
    raise AssertionError(f"{name} is not strict JSON")


def strict(text):
    return json.loads(text, parse_constant=refuse_constant)


CHI2 = ["assess", *LABEL, "--json", "--method", "chi2", "--seed", "0"]


def statistic(capsys, file, *words):
    """Return the statistic of a file."""
    return strict(output(capsys, *CHI2, file, *words))["test"]["statistic"]


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


# help


def test_alone_it_shows_help_and_it_knows_its_version(capsys):
    assert output(capsys) == output(capsys, "--help")
    found = re.fullmatch(
        r"mcllo (.+) \(kernel: (C \(.+\)|NumPy)\)\n", output(capsys, "--version")
    )
    assert found[1] == mcllo.__version__


# assess


def test_assess_prints_what_python_prints(good, capsys):
    a = mcllo.assess(PROBS, Y, classes=CLASSES, baseline="dog", seed=1)
    words = ["assess", good, *LABEL, "--baseline", "dog", "--seed", 1]
    assert output(capsys, *words) == f"{a}\n"
    assert strict(output(capsys, *words, "--json")) == json.loads(
        json.dumps(a.to_dict())
    )


SEPARATED = "a,b,y\n" + "0.9,0.1,a\n0.8,0.2,a\n0.3,0.7,b\n0.2,0.8,b\n" * 3


@pytest.mark.parametrize("statistic", ["lr", "wald"])
def test_json_of_separated_rows_has_null_and_never_nan(tmp_path, capsys, statistic):
    file = write(tmp_path, "f.csv", SEPARATED)
    method = [] if statistic != "wald" else ["--method", "chi2"]
    words = [
        "assess",
        file,
        *LABEL,
        "--json",
        "--seed",
        "0",
        "--statistic",
        statistic,
        *method,
    ]
    content = strict(output(capsys, *words))
    assert content["fit"]["separated"] is True
    assert content["fit"]["se_tau"] == [None]
    if statistic == "wald":
        assert content["test"]["pvalue"] is None


def test_the_gate_answers_with_the_exit_code(tmp_path, capsys):
    file = write(tmp_path, "f.csv", SEPARATED)
    words = ["assess", file, *LABEL, "--statistic", "wald", "--method", "chi2"]
    assert run_command_line(words) == 0
    assert (
        run_command_line([*words, "--gate"]) == 3
    )  # without a p-value it does not open
    file = write(tmp_path, "f.csv", csv_text(400))
    pvalue = strict(output(capsys, "assess", file, *LABEL, "--json"))["test"]["pvalue"]
    assert 0.0 < pvalue < 0.05
    assert run_command_line(["assess", file, *LABEL]) == 0
    assert run_command_line(["assess", file, *LABEL, "--gate"]) == 1
    assert "Verdict" in capsys.readouterr().out
    assert run_command_line(["assess", file, *LABEL, "--gate", "--json"]) == 1
    assert (
        run_command_line(
            ["assess", file, *LABEL, "--gate", "--alpha", repr(pvalue / 2)]
        )
        == 0
    )


def test_a_seed_makes_the_output_repeatable(good, capsys):
    words = ["assess", good, *LABEL, "--method", "exact", "--draws", "99", "--json"]
    first = output(capsys, *words, "--seed", "5")
    assert first == output(capsys, *words, "--seed", "5")
    content = strict(first)["test"]
    assert (content["method"], content["n_resamples"], content["seed"]) == (
        "exact",
        99,
        5,
    )
    judged = strict(
        output(capsys, "assess", good, *LABEL, "--alpha", "1e-9", "--json")
    )["verdict"]
    assert judged["alpha"] == 1e-9


def test_normalize_accepts_rounded_rows_and_clip_raises_what_is_below(tmp_path, capsys):
    file = write(tmp_path, "f.csv", with_line(9, "0.33,0.33,0.33,cat"))
    content = strict(output(capsys, "assess", file, *LABEL, "--json", "--normalize"))
    assert content["data"]["n_renormalized"] == 1
    assert "divided by their sum" in output(
        capsys, "assess", file, *LABEL, "--normalize"
    )
    file = write(tmp_path, "f.csv", with_line(9, "0.5,0,0.5,cat"))
    content = strict(output(capsys, "assess", file, *LABEL, "--json", "--clip", "1e-3"))
    assert content["data"]["clip"] == 1e-3
    text = output(capsys, "assess", file, *LABEL)
    assert "Zeros: 1 of 180 probabilities are 0; the p-value is" in text
    assert "clip=" not in text


def test_weight_counts_rows(tmp_path, capsys):
    lines = csv_text().splitlines()
    weighted = "\n".join([lines[0] + ",w", *[line + ",2" for line in lines[1:]]])
    file = write(tmp_path, "f.csv", weighted)
    content = strict(output(capsys, *CHI2, file, "--weight", "w"))
    # every row twice: twice the log likelihood
    assert content["test"]["statistic"] == pytest.approx(2.0 * STATISTIC, rel=1e-9)
    assert content["data"]["weighted"] is True


def test_logits_are_what_their_softmax_is(tmp_path, capsys):
    file = write(
        tmp_path, "logits.csv", csv_rows([*CLASSES, "y"], np.log(PROBS) + 3.0, Y)
    )
    assert statistic(capsys, file, "--logits") == pytest.approx(STATISTIC, rel=1e-9)
    model = tmp_path / "m.json"
    output(capsys, "fit", file, *LABEL, "--logits", "--method", "mcllo", "-o", model)
    recalibrated = mcllo.load_calibrator(model).predict_proba(PROBS)
    out = tmp_path / "out.parquet"
    output(capsys, "apply", model, file, "--logits", "-o", out)
    np.testing.assert_allclose(written(out), recalibrated, rtol=1e-9)


# which columns


def with_ids(header, text=None):
    """Return CSV text with another header and a column of numbers before the others."""
    lines = (text or csv_text()).splitlines()[1:]
    return "\n".join([header, *(f"{i:05d},{line}" for i, line in enumerate(lines))])


def test_classes_choose_columns_among_others(tmp_path, capsys):
    file = write(tmp_path, "ids.csv", with_ids("id,cat,dog,truck,y"))
    assert statistic(capsys, file, "--classes", "cat,dog,truck") == STATISTIC
    assert statistic(
        capsys, file, "--classes", " truck, cat , dog", "--baseline", "truck"
    ) == (pytest.approx(STATISTIC, rel=1e-9))
    index = write(
        tmp_path, "index.csv", with_ids(",cat,dog,truck,y")
    )  # pandas wrote it
    assert statistic(capsys, index) == STATISTIC


def test_class_names_may_hold_commas_and_quotes(tmp_path, capsys):
    quoted = ['"a, ""b"""', '"ça va"', '"c"']
    text = csv_rows("", PROBS, [quoted[CLASSES.index(label)] for label in Y])
    file = write(tmp_path, "f.csv", with_ids(",".join(["id", *quoted, "y"]), text))
    assert statistic(capsys, file, "--classes", ",".join(quoted)) == STATISTIC


def test_a_prefix_of_class_columns(tmp_path, good, model, capsys):
    file = write(tmp_path, "f.csv", with_ids("id,p_cat,p_dog,p_truck,y"))
    assert statistic(capsys, file, "--prefix", "p_") == STATISTIC
    again = tmp_path / "again.json"
    asked = ["--method", "mcllo", "--prefix", "p_"]
    output(capsys, "fit", file, *LABEL, *asked, "-o", again)
    assert again.read_text() == Path(model).read_text()
    out = output(capsys, "apply", model, file, "--prefix", "p_").splitlines()
    assert out[0] == "id,p_cat,p_dog,p_truck,y"
    expected = output(capsys, "apply", model, good).splitlines()
    assert [line.split(",", 1)[1] for line in out[1:]] == expected[1:]


def test_labels_as_floats_and_spaces_around_names(tmp_path, capsys):
    for header, label in (("0,1,2,y", "{}.0"), (" 0 , 1, 2 ,y ", " {} ")):
        text = csv_rows(
            header.split(","), PROBS, [label.format(code) for code in CODES]
        )
        assert statistic(capsys, write(tmp_path, "f.csv", text)) == STATISTIC


# kinds of files


def test_dialects_of_csv(tmp_path, capsys):
    for separator, mark, end in (
        (";", "", "\n"),
        ("\t", "\ufeff", "\r\n"),
        ("|", "", "\r\n"),
        (",", "\ufeff", "\n"),
    ):
        text = mark + csv_text(separator=separator).replace("\n", end)
        with case((separator, mark, end)):
            assert statistic(capsys, write(tmp_path, "f.csv", text)) == STATISTIC


TABLES = {
    "text": (parquet_table(), 1e-12),
    "dictionary": (parquet_table(y=pa.array(Y).dictionary_encode()), 1e-12),
    "large text": (parquet_table(y=pa.array(Y, pa.large_string())), 1e-12),
    "integers": (
        parquet_table(y=pa.array(CODES, pa.int8())).rename_columns(
            ["0", "1", "2", "y"]
        ),
        1e-12,
    ),
    "single precision": (
        parquet_table(**dict(zip(CLASSES, np.float32(PROBS.T), strict=True))),
        1e-4,
    ),
}


def test_parquet_is_told_from_the_content(tmp_path, capsys):
    for kind, (table, within) in TABLES.items():
        file = write(tmp_path, "f.csv", parquet_bytes(table))
        with case(kind):
            assert statistic(capsys, file) == pytest.approx(STATISTIC, rel=within)


@pytest.mark.parametrize(
    "raw",
    [
        csv_text().encode(),
        gzip.compress(csv_text().encode()),
        parquet_bytes(parquet_table()),
    ],
    ids=["csv", "gzip", "parquet"],
)
def test_standard_input_and_files_are_told_from_the_content(
    tmp_path, capsys, monkeypatch, raw
):
    assert statistic(capsys, write(tmp_path, "f.csv", raw)) == STATISTIC
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
    assert statistic(capsys, "-") == STATISTIC


# fit and apply


def test_fit_apply_and_python_agree(tmp_path, good, model, capsys):
    direct = mcllo.MCLLOCalibrator(classes=CLASSES).fit(PROBS, Y)
    expected = direct.predict_proba(PROBS)
    np.testing.assert_array_equal(
        mcllo.load_calibrator(model).predict_proba(PROBS), expected
    )
    text = output(capsys, "apply", model, good)
    header, *lines = text.splitlines()
    assert header == "cat,dog,truck,y"
    cells = [[float(cell) for cell in line.split(",")[:3]] for line in lines]
    np.testing.assert_array_equal(np.array(cells), expected)
    out = tmp_path / "out.csv"
    assert (
        output(capsys, "apply", model, good, "-o", out)
        == f"{out}: 60 rows recalibrated\n"
    )
    assert out.read_text() == text


def test_fit_takes_a_baseline(tmp_path, good, capsys):
    out = tmp_path / "m.json"
    text = output(capsys, "fit", good, *LABEL, "--baseline", "dog", "-o", out)
    assert text == f"{out}: mcllo map of 3 classes (baseline: dog) from 60 rows\n"
    assert mcllo.load_calibrator(out).fit_.baseline == "dog"


def test_fit_notes_what_cannot_be_estimated_and_the_remedy_works(tmp_path, capsys):
    file = write(tmp_path, "f.csv", SEPARATED)
    fitting = ["fit", file, *LABEL, "-o", str(tmp_path / "m.json")]
    assert run_command_line([*fitting, "--method", "mcllo"]) == 0
    err = capsys.readouterr().err
    assert err.startswith("mcllo: note: the maximum likelihood estimate does not exist")
    assert err.endswith("use mcllo fit --penalty 1.\n")
    assert err.count("\n") == 1
    output(capsys, "fit", file, *LABEL, "-o", tmp_path / "m.json", "--penalty", "1")


def test_a_model_may_come_through_a_pipe(good, model, capsys, monkeypatch):
    asked = ["fit", good, *LABEL, "--method", "mcllo", "-o", "-"]
    text = output(capsys, *asked)
    assert text == Path(model).read_text()
    assert text == output(capsys, *asked, "--json")  # it is JSON already
    strict(text)
    expected = output(capsys, "apply", model, good)
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    assert output(capsys, "apply", "-", good) == expected


def test_apply_needs_no_labels_and_can_write_over_the_file_it_reads(
    tmp_path, good, model, capsys
):
    bare = "\n".join(line.rsplit(",", 1)[0] for line in csv_text().splitlines())
    file = write(tmp_path, "bare.csv", bare)
    expected = output(capsys, "apply", model, good)
    without_labels = [line.rsplit(",", 1)[0] for line in expected.splitlines()]
    assert output(capsys, "apply", model, file).splitlines() == without_labels
    own = write(tmp_path, "own.csv", csv_text())
    output(capsys, "apply", model, own, "-o", own)
    assert Path(own).read_text() == expected


def test_apply_takes_its_own_normalize_and_clip(tmp_path, model, capsys):
    rounded = write(tmp_path, "r.csv", "cat,dog,truck\n0.33,0.33,0.33\n")
    exact = write(tmp_path, "e.csv", "cat,dog,truck\n1,1,1\n")
    assert output(capsys, "apply", model, rounded, "--normalize") == output(
        capsys, "apply", model, exact, "--normalize"
    )
    zero = write(tmp_path, "z.csv", "cat,dog,truck\n0.5,0,0.5\n")
    default, low = (
        float(
            output(capsys, "apply", model, zero, *words).splitlines()[1].split(",")[1]
        )
        for words in ([], ["--clip", "1e-12"])
    )
    assert low < default


# any method


def written(path):
    table = parquet.read_table(path)
    return np.column_stack([table[name].to_numpy() for name in CLASSES])


OTHERS = sorted(
    set(mcllo.CALIBRATORS) - {"auto", "beta", "histogram", "vector", "matrix"}
)


@pytest.mark.parametrize(
    "method",
    [
        "auto",
        "beta",
        "histogram",
        *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS),
    ],
)
def test_a_method_is_fitted_saved_and_applied(tmp_path, good, capsys, method):
    model, out = tmp_path / "m.json", tmp_path / "out.parquet"
    text = output(capsys, "fit", good, *LABEL, "--method", method, "-o", model)
    assert text.startswith(f"{model}: ")
    output(capsys, "apply", model, good, "-o", out)
    direct = mcllo.CALIBRATORS[method]().fit(mcllo.read_predictions(good, label="y"))
    np.testing.assert_allclose(written(out), direct.predict_proba(PROBS), rtol=1e-12)


@pytest.mark.parametrize("method", ["temperature", "matrix"])
def test_methods_of_logits(tmp_path, capsys, method):
    probs, y = predictions(150)
    rows = 2.0 * np.log(probs) + 1.0
    file, model, out = (
        tmp_path / "in.parquet",
        tmp_path / "m.json",
        tmp_path / "out.parquet",
    )
    parquet.write_table(pa.table([*rows.T, y], names=[*CLASSES, "y"]), file)
    output(capsys, "fit", file, *LABEL, "--method", method, "--logits", "-o", model)
    output(capsys, "apply", model, file, "--logits", "-o", out)
    direct = mcllo.CALIBRATORS[method](on="logits").fit(
        mcllo.read_predictions(file, label="y", logits=True)
    )
    np.testing.assert_allclose(written(out), direct.predict_proba(rows), rtol=1e-12)
    assert run_command_line(["apply", str(model), str(file)]) == 2
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


def test_flexible_is_an_option_of_auto_alone(tmp_path, good, capsys):
    model = tmp_path / "m.json"
    words = ["fit", good, *LABEL, "--flexible", "-o", model, "--method"]
    assert "no trees: trees ask for 1,000 rows and there are 60" in output(
        capsys, *words, "auto"
    )
    assert mcllo.load_calibrator(model).flexible
    assert run_command_line([*map(str, words), "temperature"]) == 2
    message = capsys.readouterr().err
    assert "--flexible must be left out" in message
    assert "auto has it" in message


@pytest.mark.parametrize(
    ("asked", "method"),
    [
        ([], "auto"),
        (["--gate", "0.05"], "auto"),
        (["--penalty", "1"], "mcllo"),
        (["--penalty", "1", "--center", "temperature"], "mcllo"),
        (["--baseline", "dog"], "mcllo"),
        (["--baseline", "auto", "--penalty", "1"], "mcllo"),
        (["--method", "temperature"], "temperature"),
    ],
)
def test_the_default_method_is_auto_where_nothing_asks_for_mcllo(
    asked, method, good, tmp_path, capsys
):
    made = str(tmp_path / "made.json")
    content = strict(output(capsys, "fit", good, *LABEL, *asked, "-o", made, "--json"))
    assert (content["method"], content["n_samples"]) == (method, 60)
    assert mcllo.load_calibrator(made).method == method


def test_only_some_methods_have_a_floor(good, tmp_path, capsys):
    again = str(tmp_path / "again.json")
    output(capsys, "fit", good, *LABEL, "--method", "histogram", "-o", again)
    assert run_command_line(["apply", again, good, "--clip", "0.01"]) == 2
    assert "histogram takes zeros as they are. Leave it out." in capsys.readouterr().err


# compare, reports, figures


@pytest.fixture
def files(tmp_path):
    sharp = data.SETS["sharp"]()
    sharp.write_csv(tmp_path / "train.csv")
    sharp.holdout.write_csv(tmp_path / "holdout.csv")
    return [tmp_path / "train.csv", tmp_path / "holdout.csv"]


def test_compare_prints_what_python_compares(files, capsys):
    words = [
        "compare",
        *files,
        *LABEL,
        "--seed",
        "0",
        "--json",
        "--methods",
        "mcllo,histogram",
    ]
    train, holdout = (mcllo.read_predictions(file, label="y") for file in files)
    direct = mcllo.compare(
        train, holdout, methods=["mcllo", "histogram"], seed=0
    ).to_dict()
    # all but the seconds that fits took
    printed = settled_values(strict(output(capsys, *words)))
    assert printed == settled_values(json.loads(json.dumps(direct)))
    assert printed["skipped"] == {}


@pytest.mark.usefixtures("undrawn")
def test_verbs_write_reports(files, tmp_path, capsys):
    folds = ["--cv", "2", "--methods", "temperature"]
    for verb, words, ending in (
        ("assess", [], "html"),
        ("assess", [], "md"),
        ("compare", folds, "html"),
        ("compare", folds, "json"),
    ):
        out = tmp_path / f"{verb}.{ending}"
        arguments = [
            verb,
            str(files[0]),
            *words,
            *LABEL,
            "--seed",
            "0",
            "--html",
            str(out),
        ]
        with case(out.name):
            assert run_command_line(arguments) == 0
            printed = capsys.readouterr()
            assert "report written" in printed.err
            assert "400" in printed.out
            assert "train.csv" in out.read_text()
            assert verb == "assess" or "temperature" in out.read_text().lower()


@pytest.mark.usefixtures("undrawn")
def test_open_needs_a_report_and_opens_it(good, tmp_path, capsys, monkeypatch):
    opened = []
    monkeypatch.setattr("typer.launch", lambda path: opened.append(path))
    assert run_command_line(["assess", good, *LABEL, "--open"]) == 2
    assert "--html OUT" in capsys.readouterr().err
    out = str(tmp_path / "r.html")
    assert run_command_line(["assess", good, *LABEL, "--html", out, "--open"]) == 0
    assert opened == [out]
    assert (
        run_command_line(
            ["assess", good, *LABEL, "--html", str(tmp_path / "no/such/dir/r.html")]
        )
        == 2
    )
    assert "Traceback" not in capsys.readouterr().err


def test_plot(good, tmp_path, capsys):
    out = tmp_path / "figure.png"
    assert "reliability figure written" in output(
        capsys, "plot", good, *LABEL, "-o", out
    )
    assert out.read_bytes().startswith(b"\x89PNG")


def test_flags_take_no_value_and_help_says_so(capsys):
    for verb in ("assess", "fit", "monitor add"):
        assert run_command_line([*verb.split(), "--help"]) == 0
        said = capsys.readouterr().out
        assert "--json" in said
        assert "<bool>" not in said
        assert "BOOLEAN" not in said
