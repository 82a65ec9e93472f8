"""A folder of predictions in the place of those that the package carries, for `mcllo reproduce`.

=========================  ====================================================================
``images_train.csv``       X_t of the images: a column for each class, named as in the paper, and
                           one called ``label``; any table that `read_predictions` reads
``images_holdout.csv``     X_h of the images
``obesity_train.csv``,     the same of the people
``obesity_holdout.csv``
``..._logits.csv``         scores before the softmax in the place of probabilities, which vector
                           scaling needs: ``images_train_logits.csv``
=========================  ====================================================================

A study of which there are no files is left out.
"""

from __future__ import annotations

from pathlib import Path

from ..._validation.predictions import Predictions
from ...exceptions import InputError
from ...reproduce import FROM_PREDICTIONS
from .read import read_predictions

LABEL = "label"
BASELINES = {"images": "truck", "obesity": "Normal_Weight"}
"""The paper's; where there is no such class, the last one."""
Pair = tuple[Predictions, Predictions]


def read_paper_predictions(folder: str) -> dict[str, Pair]:
    """Return rows to learn from and to judge on, for each item that can be made of them."""
    found = {}
    for study, items in FROM_PREDICTIONS.items():
        parts = [
            _find_table(folder, f"{study}_{part}") for part in ("train", "holdout")
        ]
        if parts == [None, None]:
            continue
        pair = []
        for part, path in zip(("train", "holdout"), parts, strict=True):
            if path is None:
                raise InputError(
                    "{folder} must hold both parts of a study; it has no {name}.",
                    values={"folder": folder, "name": f"{study}_{part}.csv"},
                )
            pair.append(_read_part(path, BASELINES[study]))
        train, holdout = pair
        for item in items:
            found[item] = (train, holdout)
    if not found:
        raise InputError(
            "{folder} must hold images_train.csv and images_holdout.csv, or obesity_train.csv and "
            "obesity_holdout.csv.",
            values={"folder": folder},
        )
    return found


def missing_paper_predictions(item: str, folder: str) -> InputError:
    """Return why an item cannot be made from the predictions of a folder."""
    for study, items in FROM_PREDICTIONS.items():
        if item in items:
            return InputError(
                "{item} needs {study}_train.csv and {study}_holdout.csv in {folder}.",
                values={"item": item, "study": study, "folder": folder},
            )
    known = ", ".join(name for items in FROM_PREDICTIONS.values() for name in items)
    return InputError(
        "{item} is not made from predictions; {known} are.",
        values={"item": item, "known": known},
    )


def _find_table(folder: str, stem: str) -> Path | None:
    """Return the file of this name, of whatever kind, with probabilities or logits."""
    for name in (stem, f"{stem}_logits"):
        paths = sorted(Path(folder).glob(f"{name}.*"))
        if paths:
            return paths[0]
    return None


def _read_part(path: Path, baseline: str) -> Predictions:
    """Return the predictions of one file, against the paper's baseline where it has that class."""
    is_logits = "_logits." in path.name
    rows = read_predictions(path, label=LABEL, logits=is_logits)
    if baseline in rows.classes:
        return rows.with_baseline(baseline)
    return rows.with_baseline(rows.classes[-1])
