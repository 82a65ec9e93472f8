"""What `mcllo demo` does: the whole job on predictions that the package carries.

They are the probabilities of a VGG for the test images of CIFAR-10 (`mcllo.datasets`): 8,000 images
to learn the recalibration from, 2,000 to judge it on.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..._assessment.assessment import assess_predictions
from ..._comparison.compare import compare
from ..._utils.atomic_files import replace_atomically
from ..._validation.predictions import Predictions
from ...calibrators import CALIBRATORS
from ...datasets import load_cifar10_vgg
from ..report import report
from ..streaming.apply import apply_file
from .options import FLAG_NAMES

SEED = 0
LABEL = "class"
METHODS = (
    "auto",
    "mcllo",
    "temperature",
    "dirichlet",
    "histogram",
    "xu_davoine",
    "isotonic",
)


def load_demo_predictions() -> tuple[Predictions, Predictions]:
    """Return probabilities of a VGG's classes: rows to learn from, rows to judge on."""
    data = load_cifar10_vgg()
    learn = data.train.with_probs(
        data.train.probs
    )  # as a user has them: zeros clipped, no logits
    judge = data.holdout.with_probs(data.holdout.probs)
    return learn, judge


def run_demo(directory: str | Path, say: Callable[[str], Any]) -> Path:
    """Assess, compare, recalibrate and write a report, which is returned; words go to `say`."""
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    learn, judge = load_demo_predictions()
    train = folder / "calibration.csv"
    holdout = folder / "holdout.csv"
    write_predictions_csv(train, learn)
    write_predictions_csv(holdout, judge)
    say(f"1. Predictions of ten kinds of images by a VGG: {train} and {holdout}\n")
    assessment = assess_predictions(learn, seed=SEED)
    say(assessment.text(brief=True))
    say("\n2. Which recalibration works best here?\n")
    comparison = compare(learn, judge, methods=METHODS, seed=SEED)
    say(str(comparison))
    best = comparison.best
    is_shown = comparison.recommendation.improves
    why = "" if is_shown else " That it gains is not shown; it is applied to show how."
    say(
        f"\n3. Smallest log loss here: {best}.{why} Learned, saved, and applied to {holdout}."
    )
    calibrator = CALIBRATORS[best]().fit(learn)
    calibrator.save(folder / "model.json")
    apply_file(calibrator, holdout, folder / "recalibrated.csv")
    page = folder / "report.html"
    files = [train, holdout]
    report(
        comparison,
        source=files,
        command="mcllo demo",
        names=FLAG_NAMES,
        reading={"label": LABEL},
    ).write(page)
    say(f"\n4. The report: {page}\n\n{format_next_commands(folder)}")
    return page


def format_next_commands(folder: Path) -> str:
    """Return the commands that do the same to a file of one's own."""
    learn = folder / "calibration.csv"
    judge = folder / "holdout.csv"
    model = folder / "model.json"
    return (
        "The same on files of your own (these run as they stand):\n"
        f"  mcllo assess {learn} --label {LABEL}\n"
        f"  mcllo compare {learn} {judge} --label {LABEL}\n"
        f"  mcllo fit {learn} --label {LABEL} -o {model}\n"
        f"  mcllo apply {model} {judge} -o {folder / 'recalibrated.csv'}"
    )


def write_predictions_csv(path: Path, predictions: Predictions) -> None:
    """Write predictions as a table of probabilities with a label column."""
    with (
        replace_atomically(path) as temporary,
        temporary.open("w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*map(str, predictions.classes), LABEL])
        for row, code in zip(
            predictions.probs.tolist(), predictions.codes, strict=True
        ):
            writer.writerow([*map(repr, row), predictions.classes[code]])
