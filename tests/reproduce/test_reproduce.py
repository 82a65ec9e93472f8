"""`mcllo.reproduce`: the paper's numbers as printed, ours beside them, in the paper's order."""

import json
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2

import mcllo
from mcllo.__main__ import run_command_line
from mcllo.exceptions import InputError
from mcllo.metrics import accuracy
from mcllo.reproduce import ITEMS, printed, reproduce

PAPER = Path(__file__).resolve().parents[3] / "shared" / "paper" / "mcllo_paper.tex"


def called(*arguments):
    text = StringIO()
    with redirect_stdout(text):
        code = run_command_line(["reproduce", *map(str, arguments)])
    return code, text.getvalue()


@pytest.mark.skipif(not PAPER.exists(), reason="the paper is not part of the project")
def test_the_printed_numbers_are_those_of_the_paper():
    text = PAPER.read_text()
    for name, label in (
        ("table1", "cifar_parameters"),
        ("table3", "obesity_parameters"),
    ):
        part = text[text.index(rf"\label{{table:{label}}}") :]
        part = part[: part.index(r"\end{longtable}")]
        found = [
            tuple(map(float, pair))
            for pair in re.findall(r"(\d\.\d+) \((\d\.\d+)\)", part)
        ]
        rows, parts = printed(name), []
        for which in dict.fromkeys(row.get("part") for row in rows):
            own = [row for row in rows if row.get("part") == which]
            for what in ("delta", "gamma"):
                parts += [
                    (row[f"paper_{what}"], row[f"paper_se_{what}"]) for row in own
                ]
        assert found == parts
    for name, label in (("table2", "fig:comparison_charts_cifar"),
                        ("table4", "tab:obesity:calibration.metrics")):  # fmt: skip
        part = text[text.index(rf"\label{{{label}}}") :]
        part = part[part.index(r"\endlastfoot") : part.index(r"\end{longtable}")]
        short = {"MCLLO": "mcllo", "Xu": "xu_davoine", "EB": "histogram"}
        short |= {"TS": "temperature", "VS": "vector", "t": "uncalibrated_train"}
        known = {row["set"]: row for row in printed(name)}
        lines = [line.split("&") for line in part.splitlines() if line.startswith("$")]
        assert len(lines) == len(known)
        for first, n, p, ece, right, change in lines:
            found = re.search(r"text\{(\w+)\}|_\{(t|h)\}", first)
            row = known[short.get(found[1] or found[2], "uncalibrated")]
            assert int(n) in (8000, 2000, 396, 132)
            assert row["p"] == ("<0.001" if "<" in p else float(p))
            assert row["ece"] == float(ece)
            assert f"{100 * row['accuracy']:.1f}" in right
            shown = re.search(r"[\d.]+", change)
            assert row["label_change"] == (None if "--" in change else
                                           pytest.approx(float(shown[0]) / 100))  # fmt: skip


def test_the_order_and_names_are_the_papers():
    heads = [line[0] for line in reproduce("table2").shown]
    assert heads == ["", "X_t", "X_h", "MCLLO", "Xu", "EB", "TS", "VS"]
    heads = [line[0] for line in reproduce("table4").shown]
    assert heads[1:6] == ["X_t", "X_h", "MCLLO", "EB", "Xu"]


@pytest.mark.slow
def test_figures_have_the_papers_panels_and_titles():
    titles = [ax.get_title(loc="left") for ax in reproduce("figure5").axes]
    methods = [re.sub(r".*\((\w+)\)", r"\1", title) for title in titles]
    assert methods == ["Xₕ", "MCLLO", "TS", "VS", "EB", "Xu"]
    drawn = reproduce("figure6").axes
    assert len(drawn) == 4
    assert (
        len({ax.get_position().y0 for ax in drawn}) == 1
    )  # one row: nothing in mid-air
    for name, made in ITEMS.items():
        found = made()
        number = re.search(r"\d$", name)
        assert number is None or found.title.endswith(number[0])
        if found.axes is not None:
            assert found.title in found.axes[0].get_figure().get_suptitle()


def texts(ax):
    """Return what stands in a panel, the line under its title among it."""
    return [text.get_text() for text in ax.texts]


@pytest.mark.parametrize(
    ("figure", "table"), [("figure5", "table2"), ("figure6", "table4")]
)
def test_the_numbers_in_a_panel_are_those_of_the_table(figure, table):
    made = reproduce(figure)
    cells = {line[0]: line for line in reproduce(table).shown}
    rows = made.table.rows()
    for ax, line in zip(made.axes, made.shown[1:], strict=True):
        name = re.sub(r".*\((\w+)\)", r"\1", ax.get_title(loc="left"))
        of_table = cells[name.replace("Xₕ", "X_h")]
        assert line == (of_table[0], *of_table[8:10], *of_table[4:6])
        below = next(text for text in texts(ax) if text.startswith("ECE"))
        ece, p = re.fullmatch(r"ECE (\d\.\d{3}), p (?:= )?(.+)", below).groups()
        assert (ece, p.replace(" ", "")) == (of_table[9], of_table[5])
    # The bins of the CSV are the points that are drawn.
    n_bins = 10
    for k, ax in enumerate(made.axes):
        own = [row for row in rows[n_bins * k : n_bins * (k + 1)] if row["counts"]]
        line = max(ax.lines, key=lambda line: len(line.get_xdata()))
        np.testing.assert_array_equal(
            line.get_xydata(), [(row["mean_predicted"], row["observed"]) for row in own]
        )
        assert sum(row["counts"] for row in own) == len(
            mcllo.datasets.load_cifar10_vgg().holdout.codes
            if figure == "figure5"
            else mcllo.datasets.load_obesity_forest().holdout.codes
        )


def lines_of(ax):
    """Return the lines of a study, one for each n."""
    return [line for line in ax.lines if re.fullmatch(r"_\d", line.get_label())]


@pytest.mark.parametrize(
    ("figure", "column", "form"),
    [("figure2", "power", "{:.3f}"), ("figure4", "gain", "{:.4f}")],
)
def test_the_lines_of_the_simulation_are_the_numbers_of_its_table(figure, column, form):
    made = reproduce(figure)
    rows = made.table.rows()
    sizes = sorted({row["n"] for row in rows}, reverse=True)
    for n, line in zip(sizes, lines_of(made.axes[0]), strict=True):
        own = [row for row in rows if row["n"] == n]
        np.testing.assert_array_equal(
            line.get_xydata(), [(row["delta_1"], row[column]) for row in own]
        )
        printed_line = next(cells for cells in made.shown if cells[0] == f"{n:,}")
        assert list(printed_line[1:]) == [form.format(row[column]) for row in own]


def test_the_boxes_of_figure_3_are_the_quartiles_of_its_table():
    made = reproduce("figure3")
    rows = sorted(made.table.rows(), key=lambda row: row["when"], reverse=True)
    assert [row["when"] for row in rows] == ["before"] * 5 + ["after"] * 5
    boxes = [patch.get_path().vertices[:, 1] for patch in made.axes[0].patches]
    for row, box in zip(rows, boxes, strict=True):
        assert (min(box[:4]), max(box[:4])) == (row["quartile_1"], row["quartile_3"])
    # By hand, from the stored repetitions: NumPy's quartiles.
    from mcllo.reproduce._tables import simulation

    cell = next(c for c in simulation().rows if (c.n, c.delta_1) == (5000, 1.2))
    row = next(r for r in rows if (r["when"], r["delta_1"]) == ("after", 1.2))
    found = (row["quartile_1"], row["median"], row["quartile_3"])
    assert found == pytest.approx(np.quantile(cell.ece_after, (0.25, 0.5, 0.75)))
    assert f"{row['median']:.4f}" in made.shown[3]


def test_figure_1_prints_what_it_draws():
    made = reproduce("figure1")
    for ax, image in zip(made.axes, (5037, 4526), strict=True):
        of_label = next(
            row
            for row in made.table.rows()
            if row["image"] == image and row["class"] == row["label"]
        )
        line = next(cells for cells in made.shown if cells[0] == str(image))
        shown = f"{of_label['label']}: {line[3]}, after MCLLO {line[5]}"
        assert shown in texts(ax)


def test_what_the_paper_prints_below_a_thousandth_stays_so(tmp_path):
    made = reproduce("table2")
    assert made.table["paper_p"][0] == "<0.001"
    made.save(tmp_path / "table2.csv")
    first = (tmp_path / "table2.csv").read_text().splitlines()[1]
    assert ",<0.001," in first


def test_two_images_more_or_less_can_be_seen():
    """1,871 and 1,869 of 2,000 images: 93.55 % and 93.45 %."""
    lines = {line[0]: line for line in reproduce("table2").shown}
    assert (lines["X_h"][12], lines["EB"][12]) == ("93.55%", "93.45%")


def test_latex_has_the_same_numbers(tmp_path):
    made = reproduce("table2")
    text = made.to_latex()
    body = text[text.index(r"\midrule") : text.index(r"\bottomrule")]
    lines = [line.split(" & ") for line in body.splitlines()[1:]]
    assert len(lines) == 7
    for cells, shown in zip(lines, made.shown[1:], strict=True):
        assert len(cells) == len(shown)
    assert lines[0][0] == "$X_t$"
    assert lines[2][5] == "0.694"  # p of MCLLO, chi-square
    assert r"$\le 6.5 \times 10^{-70}$" in lines[0]
    assert "93.55\\%" in lines[1][12]
    code, said = called("table2", "--format", "latex", "-o", tmp_path)
    assert code == 0
    assert said.startswith(text)
    assert (tmp_path / "table2.tex").read_text() == text
    code, said = called("figure2", "--format", "latex", "-o", tmp_path)
    assert (tmp_path / "figure2.pdf").exists()
    assert r"delta\_1 = 1.4" in (tmp_path / "figure2.tex").read_text()


def test_table_2_by_the_letter():
    """Statistic and p-value of MCLLO's row by equation (3) and SciPy's optimiser."""
    data = mcllo.datasets.load_cifar10_vgg()
    row = next(
        r for r in reproduce("table2").table.rows() if r["set"] == "uncalibrated"
    )
    x, codes = data.holdout.probs, data.holdout.codes
    logs = np.log(x[:, :-1] / x[:, -1:])

    def loss(theta):
        odds = theta[:9] + theta[9:] * logs
        whole = np.column_stack([odds, np.zeros(len(x))])
        top = whole.max(axis=1, keepdims=True)
        total = np.log(np.exp(whole - top).sum(axis=1)) + top[:, 0]
        return float(np.mean(total - whole[np.arange(len(x)), codes]))

    start = np.concatenate([np.zeros(9), np.ones(9)])
    found = minimize(loss, start, method="BFGS", options={"gtol": 1e-7})
    statistic = 2 * len(x) * (loss(start) - found.fun)
    assert row["statistic"] == pytest.approx(statistic, rel=1e-3)
    assert row["p_chi2"] == pytest.approx(chi2.sf(row["statistic"], 18))
    assert row["accuracy"] == accuracy(None, data.holdout)


def test_estimates_are_those_of_the_fit():
    data = mcllo.datasets.load_obesity_forest()
    rows = reproduce("table3").table.rows()
    fit = mcllo.MCLLOCalibrator(baseline="Normal_Weight").fit(data.train).fit_
    np.testing.assert_allclose([row["delta"] for row in rows], fit.delta)
    np.testing.assert_allclose([row["se_gamma"] for row in rows], fit.se_gamma)


def test_the_command_prints_what_python_prints(tmp_path):
    code, text = called("table3")
    assert code == 0
    assert text.rstrip("\n") == str(reproduce("table3"))
    code, text = called("figure4", "-o", tmp_path / "new", "--format", "png")
    assert code == 0
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        "figure4.csv", "figure4.png",
    ]  # fmt: skip
    assert text.count("written: ") == 2
    code, text = called("power", "--json")
    content = json.loads(text)
    assert (code, content["name"], len(content["rows"])) == (0, "power", 30)


def test_bad_names(capsys, tmp_path):
    assert run_command_line(["reproduce", "tabel2"]) == 2
    assert "table2" in capsys.readouterr().err
    assert run_command_line(["reproduce", "figure1", "--format", "gif"]) == 2
    with pytest.raises(InputError, match=r"table1 is a table: write it as \.csv or"):
        reproduce("table1").save(tmp_path / "table1.png")


@pytest.mark.slow
def test_all_of_it(tmp_path):
    code, text = called("all", "-o", tmp_path)
    assert code == 0
    assert {path.stem for path in tmp_path.iterdir()} == set(ITEMS)
    for name in ITEMS:
        assert str(reproduce(name)).splitlines()[0] in text


# ---- the supplement


def test_the_boxes_of_every_n_are_those_of_figure_3_where_n_is_its():
    made = reproduce("boxplots")
    assert len(made.axes) == 6
    assert len(made.table) == 2 * 30
    own = [row for row in made.table.rows() if row["n"] == 5000]
    assert own == reproduce("figure3").table.rows()
    last = [patch.get_path().vertices[:, 1] for patch in made.axes[-1].patches]
    assert min(last[0][:4]) == own[0]["quartile_1"]


def test_the_baseline_is_nothing_to_a_test_where_nothing_is_wrong():
    """Within 4 standard errors of 0.05 (0.0097 each), and far apart where slopes differ."""
    made = reproduce("baseline")
    rates = [name for name in made.table.columns if name.startswith("baseline_")]
    for row in made.table.rows():
        found = [row[name] for name in rates]
        if row["labels"] == "nothing is wrong":
            assert max(abs(rate - 0.05) for rate in found) < 0.04
        if row["labels"] == "unequal slopes":
            assert min(found) + 0.05 < found[-1] == max(found)


def test_a_setting_of_the_baselines_again():
    from studies.power import baselines

    found = baselines.rejections(300, baselines.SLOPES["unequal slopes"], reps=40)
    table = reproduce("baseline").table.rows()
    row = next(r for r in table if (r["labels"], r["n"]) == ("unequal slopes", 300))
    stored = np.array([row[f"baseline_{b}"] for b in range(1, 5)])
    # the first 40 of the 500: within 4 standard errors
    error = np.sqrt(stored * (1 - stored) / 40)
    assert (abs(found / 40 - stored) < 4 * error + 0.02).all()


def test_the_trade_off_is_that_of_the_tables():
    made = reproduce("tradeoff")
    for study, table in (("images", "table2"), ("obesity", "table4")):
        known = {row["set"]: row for row in reproduce(table).table.rows()}
        for row in made.table.rows():
            if row["study"] == study:
                own, before = known[row["set"]], known["uncalibrated"]
                assert row["accuracy"] == own["accuracy"]
                change = own["ece"] - before["ece"]
                assert row["ece_change"] == pytest.approx(change, abs=1e-12)


# ---- other predictions


def written(folder, name, part, values):
    """Write a part of a data set as its owner would."""
    lines = [",".join([*map(str, part.classes), "label"])]
    for row, code in zip(values, part.codes, strict=True):
        lines.append(",".join([*(repr(float(v)) for v in row), part.classes[code]]))
    (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")


def test_the_packages_own_predictions_from_files_give_its_own_tables(tmp_path):
    images = mcllo.datasets.load_cifar10_vgg()
    people = mcllo.datasets.load_obesity_forest()
    for part in ("train", "holdout"):
        own = getattr(images, part)
        written(tmp_path, f"images_{part}_logits", own, own.logits)
        own = getattr(people, part)
        written(tmp_path, f"obesity_{part}", own, own.probs)
    for name in ("table1", "table2", "table4"):
        code, text = called(name, "--predictions", tmp_path)
        assert code == 0
        assert "the predictions that were given" in text
        own = str(reproduce(name)).split("\n\n")[1]
        assert text.split("\n\n")[1] == own


def test_a_folder_with_one_study_makes_what_is_of_it(tmp_path):
    people = mcllo.datasets.load_obesity_forest()
    for part in ("train", "holdout"):
        own = getattr(people, part)
        written(tmp_path, f"obesity_{part}", own, own.probs)
    out = tmp_path / "out"
    code, _ = called("all", "--predictions", tmp_path, "-o", out)
    assert code == 0
    assert {path.stem for path in out.iterdir()} == {"table3", "table4", "figure6"}


def test_classes_that_the_paper_does_not_have_stand_without_its_numbers():
    probs = np.random.default_rng(3).dirichlet([2, 2, 2], size=300)
    y = ["a", "b", "c"] * 100
    pair = [
        mcllo.Predictions.from_arrays(probs[part], y[part], classes=["a", "b", "c"])
        for part in (slice(0, 200), slice(200, 300))
    ]
    made = reproduce("table1", data=tuple(pair))
    assert [line[3] for line in made.shown[1:]] != ["-"] * 4
    assert [line[2] for line in made.shown[1:]] == ["-"] * 4
    # no logits: vector scaling is left out, as the paper does
    heads = [line[0] for line in reproduce("table2", data=tuple(pair)).shown]
    assert heads == ["", "X_t", "X_h", "MCLLO", "Xu", "EB", "TS"]


def test_what_is_missing_in_a_folder_is_said(tmp_path, capsys):
    def error(*arguments):
        assert run_command_line(["reproduce", *map(str, arguments)]) == 2
        return capsys.readouterr().err

    assert "must hold images_train.csv" in error("all", "--predictions", tmp_path)
    people = mcllo.datasets.load_obesity_forest()
    written(tmp_path, "obesity_train", people.train, people.train.probs)
    assert "it has no obesity_holdout.csv" in error("table4", "--predictions", tmp_path)
    written(tmp_path, "obesity_holdout", people.holdout, people.holdout.probs)
    assert "table2 needs images_train.csv" in error("table2", "--predictions", tmp_path)
    assert "figure2 is not made from predictions" in error(
        "figure2", "--predictions", tmp_path
    )
    with pytest.raises(InputError, match="power"):
        reproduce("power", data=(people.train, people.holdout))
