"""`mcllo demo`: what it writes and prints; and the figures of `mcllo plot`."""

import shlex
from contextlib import redirect_stdout
from io import StringIO

import pytest
from toy import TOY_X, TOY_Y

from mcllo import Predictions, datasets, load_calibrator, read_predictions
from mcllo.__main__ import run_command_line
from mcllo._apps.cli import demo
from mcllo._apps.cli.demo import (
    format_next_commands,
    load_demo_predictions,
    write_predictions_csv,
)
from mcllo._apps.cli.figure_file import draw_figure_file
from mcllo._apps.cli.options import KINDS


def test_the_predictions_are_those_of_the_package_and_survive_a_file(tmp_path):
    learn, judge = load_demo_predictions()
    data = datasets.load_cifar10_vgg()
    assert (learn.n_samples, judge.n_samples) == (8000, 2000)
    assert (learn.probs == data.train.probs).all()
    assert (judge.codes == data.holdout.codes).all()
    assert learn.logits is None
    write_predictions_csv(tmp_path / "x.csv", judge)
    back = read_predictions(tmp_path / "x.csv", label="class")
    assert (back.probs == judge.probs).all()
    assert (back.codes == judge.codes).all()


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder, text = tmp_path_factory.mktemp("demo") / "out", StringIO()
    with redirect_stdout(text):
        assert run_command_line(["demo", str(folder)]) == 0
    return folder, text.getvalue()


@pytest.mark.slow
def test_the_best_recalibration_is_applied(shown):
    folder, text = shown
    best = load_calibrator(folder / "model.json").method
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert f'data-test-recommended="{best}" data-test-improves="true"' in page
    assert f"3. Smallest log loss here: {best}. Learned, saved, and applied to" in text


@pytest.mark.slow
def test_a_recalibration_that_is_not_shown_to_help_is_applied_with_a_reason(
    tmp_path, monkeypatch
):
    data = datasets.load_cifar10_vgg(network="small")
    few = data.train.take(range(1500)), data.holdout.take(range(300))
    monkeypatch.setattr(demo, "load_demo_predictions", lambda: few)
    monkeypatch.setattr(demo, "METHODS", ("mcllo", "temperature"))
    said = []
    page = demo.run_demo(tmp_path, said.append).read_text(encoding="utf-8")
    best = load_calibrator(tmp_path / "model.json").method
    assert f'data-test-recommended="{best}" data-test-improves="false"' in page
    says = f"3. Smallest log loss here: {best}. That it gains is not shown; it is applied to"
    assert says in "\n".join(said)


@pytest.mark.slow
def test_everything_is_there(shown):
    folder = shown[0]
    names = [
        "calibration.csv",
        "holdout.csv",
        "model.json",
        "recalibrated.csv",
        "report.html",
    ]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert (folder / "report.html").stat().st_size < 2_000_000
    calibrator = load_calibrator(folder / "model.json")
    holdout = read_predictions(folder / "holdout.csv", label="class")
    recalibrated = read_predictions(folder / "recalibrated.csv", label="class")
    assert (
        abs(calibrator.predict_proba(holdout.probs) - recalibrated.probs).max() < 1e-12
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mcllo.exceptions.MclloWarning")
def test_the_commands_it_prints_run_as_they_stand(shown, capsys):
    lines = [
        line.strip()
        for line in format_next_commands(shown[0]).splitlines()
        if line.startswith("  mcllo")
    ]
    assert len(lines) == 4
    for line in lines:
        assert run_command_line([*shlex.split(line)[1:]]) == 0, line
    capsys.readouterr()


TOY = Predictions.from_arrays(TOY_X, TOY_Y)


def test_a_figure_is_an_svg_that_repeats(tmp_path):
    # smooth curves: bands by draws, so the seed matters
    for name in ("a.svg", "b.svg"):
        draw_figure_file(TOY, "smooth", str(tmp_path / name), seed=0)
    assert (tmp_path / "a.svg").read_text().lstrip().startswith("<?xml")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


@pytest.mark.slow
def test_every_kind_that_is_offered_is_drawn(tmp_path):
    assert (
        len(KINDS) == 12
    )  # reliability and three curves, each also by class; four others
    for kind in KINDS:
        draw_figure_file(TOY, kind, str(tmp_path / f"{kind}.svg"), seed=0)
        assert (tmp_path / f"{kind}.svg").read_text().lstrip().startswith("<?xml"), kind
