"""What the verbs do with good input; `test_main` has the bad."""

import gzip
import io
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from inputs import CLASSES, csv_text, predictions, with_line
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
    """Return what a command that succeeds prints; it must not print anything on stderr."""
    capsys.readouterr()
    assert run([str(word) for word in arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
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


def test_alone_it_shows_help(capsys):
    assert output(capsys) == output(capsys, "--help")


def test_version(capsys):
    assert output(capsys, "--version") == f"mcllo {mcllo.__version__}\n"


# assess


def test_assess_prints_what_python_prints(good, capsys):
    probs, y = predictions()
    a = mcllo.assess(probs, y, classes=CLASSES, baseline="dog", seed=1)
    assert output(capsys, "assess", good, *LABEL, "--baseline", "dog", "--seed", 1) == f"{a}\n"


def test_json_is_strict_and_has_the_promised_keys(good, capsys):
    content = strict(output(capsys, "assess", good, *LABEL, "--json", "--seed", "3"))
    assert {"statistic", "df", "pvalue", "method"} <= set(content["test"])
    assert {"delta", "gamma", "tau", "classes", "baseline"} <= set(content["fit"])
    assert {"accuracy", "log_loss", "brier", "ece"} <= set(content["metrics"])
    probs, y = predictions()
    a = mcllo.assess(probs, y, classes=CLASSES, seed=3)
    assert content == json.loads(json.dumps(a.to_dict()))


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


def test_the_gate_does_not_open_without_a_p_value(tmp_path, capsys):
    file = write(tmp_path, "f.csv", SEPARATED)
    words = ["assess", file, *LABEL, "--statistic", "wald", "--method", "chi2"]
    assert run(words) == 0
    assert run([*words, "--gate"]) == 1


def test_the_gate_answers_with_the_exit_code(tmp_path, capsys):
    file = write(tmp_path, "f.csv", csv_text(400))
    pvalue = strict(output(capsys, "assess", file, *LABEL, "--json"))["test"]["pvalue"]
    assert 0.0 < pvalue < 0.05
    assert run(["assess", file, *LABEL]) == 0
    assert run(["assess", file, *LABEL, "--gate"]) == 1
    assert "Verdict" in capsys.readouterr().out
    assert run(["assess", file, *LABEL, "--gate", "--json"]) == 1
    assert run(["assess", file, *LABEL, "--gate", "--alpha", repr(pvalue / 2)]) == 0


def test_alpha_is_the_level_of_the_verdict(good, capsys):
    assert "at level 1e-09" in output(capsys, "assess", good, *LABEL, "--alpha", "1e-9")


def test_a_seed_makes_the_output_repeatable(good, capsys):
    words = ["assess", good, *LABEL, "--method", "exact", "--draws", "99", "--json"]
    first = output(capsys, *words, "--seed", "5")
    assert first == output(capsys, *words, "--seed", "5")
    content = strict(first)["test"]
    assert (content["method"], content["n_resamples"], content["seed"]) == ("exact", 99, 5)


def test_normalize_accepts_rounded_rows(tmp_path, capsys):
    file = write(tmp_path, "f.csv", with_line(9, "0.33,0.33,0.33,cat"))
    content = strict(output(capsys, "assess", file, *LABEL, "--json", "--normalize"))
    assert content["data"]["n_renormalized"] == 1
    assert "divided by their sum" in output(capsys, "assess", file, *LABEL, "--normalize")


def test_clip_raises_what_is_below(tmp_path, capsys):
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
    rows = np.log(probs) + 3.0
    lines = [
        f"{','.join(map(repr, row))},{label}" for row, label in zip(rows.tolist(), y, strict=True)
    ]
    file = write(tmp_path, "logits.csv", "\n".join(["cat,dog,truck,y", *lines]))
    words = [*LABEL, "--json", "--method", "chi2", "--seed", "0"]
    a = strict(output(capsys, "assess", good, *words))
    b = strict(output(capsys, "assess", file, *words, "--logits"))
    assert b["test"]["statistic"] == pytest.approx(a["test"]["statistic"], rel=1e-9)
    model = tmp_path / "m.json"
    output(capsys, "fit", file, *LABEL, "--logits", "-o", model)
    recalibrated = mcllo.load_calibrator(model).predict_proba(probs)
    out = tmp_path / "out.parquet"
    output(capsys, "apply", model, file, "--logits", "-o", out)
    table = parquet.read_table(out)
    np.testing.assert_allclose(
        np.column_stack([table[name].to_numpy() for name in CLASSES]), recalibrated, rtol=1e-9
    )


# which columns


def statistic(capsys, file, *words):
    arguments = ["assess", file, *LABEL, "--json", "--method", "chi2", "--seed", "0", *words]
    return strict(output(capsys, *arguments))["test"]["statistic"]


def test_classes_choose_columns_among_others(tmp_path, good, capsys):
    lines = csv_text().splitlines()
    text = "\n".join([f"id,{lines[0]}", *(f"{i:05d},{line}" for i, line in enumerate(lines[1:]))])
    file = write(tmp_path, "ids.csv", text)
    wanted = statistic(capsys, good)
    assert statistic(capsys, file, "--classes", "cat,dog,truck") == wanted
    assert statistic(capsys, file, "--classes", " truck, cat , dog", "--baseline", "truck") == (
        pytest.approx(wanted, rel=1e-9)
    )


def test_class_names_may_hold_commas_and_quotes(tmp_path, good, capsys):
    names = ['a, "b"', "ça va", "c"]
    swap = dict(zip(CLASSES, names, strict=True))
    rows = [line.rsplit(",", 1) for line in csv_text().splitlines()[1:]]
    quoted = {name: '"' + name.replace('"', '""') + '"' for name in names}
    lines = [f"{numbers},{quoted[swap[label]]}" for numbers, label in rows]
    text = "\n".join([",".join(["id", *quoted.values(), "y"]), *(f"7,{line}" for line in lines)])
    file = write(tmp_path, "f.csv", text)
    assert statistic(capsys, file, "--classes", ",".join(quoted.values())) == statistic(
        capsys, good
    )


def test_an_index_written_by_pandas_is_no_class(tmp_path, good, capsys):
    lines = csv_text().splitlines()
    text = "\n".join([f",{lines[0]}", *(f"{i},{line}" for i, line in enumerate(lines[1:]))])
    assert statistic(capsys, write(tmp_path, "f.csv", text)) == statistic(capsys, good)


def test_a_prefix_of_class_columns(tmp_path, good, model, capsys):
    lines = csv_text().splitlines()
    text = "\n".join(
        ["id,p_cat,p_dog,p_truck,y", *(f"{i},{line}" for i, line in enumerate(lines[1:]))]
    )
    file = write(tmp_path, "f.csv", text)
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

    def text(header, label):
        rows = zip(probs.tolist(), codes, strict=True)
        return "\n".join([header, *(f"{','.join(map(repr, row))},{label(c)}" for row, c in rows)])

    plain = statistic(capsys, write(tmp_path, "a.csv", text("0,1,2,y", str)))
    assert statistic(capsys, write(tmp_path, "b.csv", text("0,1,2,y", "{}.0".format))) == plain
    assert (
        statistic(capsys, write(tmp_path, "c.csv", text(" 0 , 1, 2 ,y ", " {} ".format))) == plain
    )


# kinds of files


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_dialects_of_csv(tmp_path, good, capsys, separator, mark, end):
    text = mark + csv_text(separator=separator).replace("\n", end)
    assert statistic(capsys, write(tmp_path, "f.csv", text)) == statistic(capsys, good)


def test_gzip_is_told_from_the_content(tmp_path, good, capsys):
    file = write(tmp_path, "f.csv", gzip.compress(csv_text().encode()))
    assert statistic(capsys, file) == statistic(capsys, good)


@pytest.mark.parametrize("labels", ["text", "int", "dictionary", "large"])
def test_parquet_is_told_from_the_content(tmp_path, capsys, labels):
    probs, y = predictions()
    codes = [CLASSES.index(label) for label in y]
    column = {
        "text": pa.array(y),
        "int": pa.array(codes, pa.int8()),
        "dictionary": pa.array(y).dictionary_encode(),
        "large": pa.array(y, pa.large_string()),
    }[labels]
    names = CLASSES if labels != "int" else ["0", "1", "2"]
    table = pa.table({**dict(zip(names, probs.T, strict=True)), "y": column})
    parquet.write_table(table, tmp_path / "f.csv")
    expected = mcllo.assess(probs, y, classes=CLASSES, method="chi2", seed=0).test.statistic
    assert statistic(capsys, tmp_path / "f.csv") == pytest.approx(expected, rel=1e-12)


def test_parquet_of_single_precision(tmp_path, capsys):
    probs, y = predictions()
    table = pa.table({**dict(zip(CLASSES, probs.T.astype(np.float32), strict=True)), "y": y})
    parquet.write_table(table, tmp_path / "f.parquet")
    expected = mcllo.assess(probs, y, classes=CLASSES, method="chi2", seed=0).test.statistic
    assert statistic(capsys, tmp_path / "f.parquet") == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("kind", ["csv", "gzip", "parquet"])
def test_standard_input(tmp_path, good, capsys, monkeypatch, kind):
    probs, y = predictions()
    sink = io.BytesIO()
    parquet.write_table(pa.table({**dict(zip(CLASSES, probs.T, strict=True)), "y": y}), sink)
    raw = {
        "csv": csv_text().encode(),
        "gzip": gzip.compress(csv_text().encode()),
        "parquet": sink.getvalue(),
    }[kind]
    wanted = statistic(capsys, good)
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


def test_fit_says_what_it_learned(tmp_path, good, capsys):
    out = tmp_path / "m.json"
    text = output(capsys, "fit", good, *LABEL, "--baseline", "dog", "-o", out)
    assert text == f"{out}: map of 3 classes (baseline: dog) from 60 rows\n"
    assert mcllo.load_calibrator(out).fit_.baseline == "dog"


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
    strict(text)
    expected = output(capsys, "apply", model, good)
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    assert output(capsys, "apply", "-", good) == expected


def test_apply_says_how_many_rows(tmp_path, good, model, capsys):
    out = tmp_path / "out.csv"
    assert output(capsys, "apply", model, good, "-o", out) == f"{out}: 60 rows recalibrated\n"
    assert out.read_text() == output(capsys, "apply", model, good)


def test_apply_needs_no_labels(tmp_path, good, model, capsys):
    bare = "\n".join(line.rsplit(",", 1)[0] for line in csv_text().splitlines())
    file = write(tmp_path, "bare.csv", bare)
    with_labels = output(capsys, "apply", model, good).splitlines()
    expected = [line.rsplit(",", 1)[0] for line in with_labels]
    assert output(capsys, "apply", model, file).splitlines() == expected


def test_apply_can_write_over_the_file_it_reads(tmp_path, good, model, capsys):
    expected = output(capsys, "apply", model, good)
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
    parquet.write_table(pa.table({**dict(zip(CLASSES, rows.T, strict=True)), "y": y}), file)
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


def test_the_default_method_is_mcllo(good, model, tmp_path, capsys):
    again = tmp_path / "again.json"
    output(capsys, "fit", good, *LABEL, "--method", "mcllo", "-o", again)
    assert again.read_text() == Path(model).read_text()
    content = strict(output(capsys, "fit", good, *LABEL, "-o", again, "--json"))
    assert (content["method"], content["n_samples"]) == ("mcllo", 60)


def test_a_model_on_standard_output_is_json_already(good, model, capsys):
    assert output(capsys, "fit", good, *LABEL, "-o", "-", "--json") == Path(model).read_text()


def test_no_floor_for_a_method_that_takes_zeros(tmp_path, good, capsys):
    model = tmp_path / "m.json"
    output(capsys, "fit", good, *LABEL, "--method", "histogram", "-o", model)
    assert run(["apply", str(model), good, "--clip", "0.01"]) == 2
    assert "histogram takes zeros as they are. Leave it out." in capsys.readouterr().err
