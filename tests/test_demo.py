import shlex

import pytest

from mcllo import load_calibrator, read_predictions
from mcllo.__main__ import run
from mcllo._demo import DIGITS, digits_predictions, own_file, write_csv


def test_the_predictions_are_repeatable_and_overconfident():
    learn, judge = digits_predictions()
    again, _ = digits_predictions()
    assert (learn.n_samples, judge.n_samples) == (539, 540)
    assert (learn.probs == again.probs).all()
    assert learn.classes == DIGITS


def test_csv_round_trip(tmp_path):
    learn, _ = digits_predictions()
    write_csv(tmp_path / "x.csv", learn)
    back = read_predictions(tmp_path / "x.csv", label="digit")
    assert (back.probs == learn.probs).all()
    assert (back.codes == learn.codes).all()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "out"
    assert run(["demo", str(folder)]) == 0
    return folder


def test_everything_is_there(made):
    names = {path.name for path in made.iterdir()}
    assert names == {
        "calibration.csv",
        "holdout.csv",
        "model.json",
        "repaired.csv",
        "report.html",
    }
    assert (made / "report.html").stat().st_size < 2_000_000
    calibrator = load_calibrator(made / "model.json")
    holdout = read_predictions(made / "holdout.csv", label="digit")
    repaired = read_predictions(made / "repaired.csv", label="digit")
    assert abs(calibrator.predict_proba(holdout.probs) - repaired.probs).max() < 1e-12


@pytest.mark.filterwarnings("ignore::mcllo.exceptions.MclloWarning")
def test_the_commands_it_prints_run_as_they_stand(made, capsys):
    lines = [line.strip() for line in own_file(made).splitlines() if line.startswith("  mcllo")]
    assert len(lines) == 4
    for line in lines:
        assert run([*shlex.split(line)[1:]]) == 0, line
    capsys.readouterr()
