"""Eight named data sets, small and repeatable; each is a table to assess and another to judge on.

===========  ======================================================================================
toy          15 rows by hand
sharp        overconfident rows, with logits: rejected
calm         calibrated rows: not rejected
separated    one class follows from the rows: no maximum likelihood estimate
votes        shares of 20 trees' votes: many exact zeros
grouped      rows in groups, compared by cross-validation
many         25 classes
hostile      class names that look like what mcllo prints or reads
===========  ======================================================================================
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from toy import TOY_X, TOY_Y

import mcllo


@dataclass(frozen=True, eq=False)
class DataSet:
    """Rows, what is said beside them, and the rows to judge on.

    Attributes
    ----------
    name : str
        What the files in `texts` are called.
    probs : array of shape (n_samples, n_classes)
        Predicted probabilities.
    y : list of length n_samples
        The labels that came true.
    options : mapping
        Further arguments of `mcllo.Predictions.from_arrays`, such as ``classes`` and ``groups``.
    holdout : DataSet, optional
        Rows of the same kind to judge on; None where `compare` cross-validates.
    comparing : mapping
        Further arguments of `mcllo.compare`, such as ``cv`` and ``methods``.
    """

    name: str
    probs: np.ndarray
    y: list[Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    holdout: DataSet | None = None
    comparing: Mapping[str, Any] = field(default_factory=dict)

    def predictions(self) -> mcllo.Predictions:
        """Return the rows, validated."""
        return mcllo.Predictions.from_arrays(self.probs, self.y, **self.options)

    def assess(self) -> mcllo.Assessment:
        """Return all that `mcllo.assess` finds with seed 0."""
        return mcllo.assess(self.probs, self.y, **self.options, seed=0, full=True)

    def compare(self) -> mcllo.Comparison:
        """Return what `mcllo.compare` finds with seed 0."""
        holdout = None if self.holdout is None else self.holdout.predictions()
        return mcllo.compare(self.predictions(), holdout, **self.comparing, seed=0)

    def write_csv(self, path: Path) -> None:
        """Write the classes' columns and the label ``y``, each number with all its digits."""
        with open(path, "w", newline="", encoding="utf-8") as file:
            lines = csv.writer(file, lineterminator="\n")
            lines.writerow([*self.options["classes"], "y"])
            lines.writerows(
                [*row, y] for row, y in zip(self.probs.tolist(), self.y, strict=True)
            )


def drawn(
    n: int,
    classes: Sequence[str],
    seed: int,
    *,
    power: float = 1.0,
    concentration: float = 1.0,
) -> tuple[np.ndarray, list[str]]:
    """Draw labels from Dirichlet rows and return these rows raised to `power`; 1 is calibrated."""
    rng = np.random.default_rng(seed)
    honest = rng.dirichlet(np.full(len(classes), concentration), size=n)
    codes = (honest.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    shown = honest**power / (honest**power).sum(axis=1, keepdims=True)
    return shown, [classes[code] for code in codes]


@cache
def toy() -> DataSet:
    """Return the first 15 rows of the methods specification, for numbers checked by hand.

    The rows to judge on are the first eleven, each with the label of the row after it; the
    numbers of rows keep printed shares off the edge of rounding. Only methods that change something
    are compared: two that change nothing tie, up to rounding.
    """
    classes = ["a", "b", "c"]
    labels = [classes[code] for code in TOY_Y]
    holdout = DataSet("toy", TOY_X[:11], labels[1:12], {"classes": classes})
    comparing = {"methods": ("mcllo", "temperature", "dirichlet", "isotonic", "beta")}
    return DataSet(
        "toy", TOY_X[:15], labels[:15], {"classes": classes}, holdout, comparing
    )


@cache
def sharp() -> DataSet:
    """Return overconfident rows (true rows squared): rejected, one recalibration fits, and logits.

    With logits every method of `compare` runs.
    """
    classes = ["cat", "dog", "truck"]

    def part(n: int, seed: int, holdout: DataSet | None = None) -> DataSet:
        probs, y = drawn(n, classes, seed, power=2.0)
        return DataSet(
            "sharp", probs, y, {"classes": classes, "logits": np.log(probs)}, holdout
        )

    return part(400, 1, part(300, 2))


@cache
def calm() -> DataSet:
    """Return calibrated rows of four classes: not rejected, and no recalibration is needed."""
    classes = ["north", "east", "south", "west"]
    holdout = DataSet("calm", *drawn(250, classes, 124), {"classes": classes})
    return DataSet("calm", *drawn(300, classes, 24), {"classes": classes}, holdout)


@cache
def separated() -> DataSet:
    """Return rows of which 'low' came true exactly where it was likelier than 'high': no estimate.

    Between 'middle' and 'high' labels were drawn as predicted, so that other maps stay finite.
    """
    classes = ["low", "middle", "high"]

    def part(n: int, seed: int, holdout: DataSet | None = None) -> DataSet:
        rng = np.random.default_rng(seed)
        probs = rng.dirichlet(np.full(3, 1.5), size=n)
        high = rng.random(n) < probs[:, 2] / (probs[:, 1] + probs[:, 2])
        codes = np.where(probs[:, 0] > probs[:, 2], 0, 1 + high)
        y = [classes[code] for code in codes]
        return DataSet("separated", probs, y, {"classes": classes}, holdout)

    return part(120, 5, part(100, 6))


@cache
def votes() -> DataSet:
    """Return the votes of 20 trees, k / 20: many exact zeros, some where the label came true."""
    classes = ["oak", "pine", "birch", "ash"]

    def part(n: int, seed: int, holdout: DataSet | None = None) -> DataSet:
        honest, y = drawn(n, classes, seed, concentration=0.5)
        counts = np.random.default_rng(seed + 100).multinomial(20, honest)
        return DataSet("votes", counts / 20, y, {"classes": classes}, holdout)

    return part(300, 7, part(250, 8))


@cache
def grouped() -> DataSet:
    """Return 60 groups of five overconfident rows; those of a group also share an error.

    There is no second table: `compare` cross-validates, and keeps groups together.
    """
    classes = ["fox", "hare", "lynx"]
    rng = np.random.default_rng(9)
    groups = np.repeat(np.arange(60), 5)
    shown = rng.dirichlet(np.full(3, 0.6), size=300)
    tilted = shown**0.5 * np.exp(rng.normal(0.0, 0.6, size=(60, 3)))[groups]
    honest = tilted / tilted.sum(axis=1, keepdims=True)
    codes = (honest.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)
    y = [classes[code] for code in codes]
    options = {"classes": classes, "groups": groups}
    return DataSet("grouped", shown, y, options, comparing={"cv": 4})


@cache
def many() -> DataSet:
    """Return 25 classes, somewhat overconfident: tables are cut, large maps are skipped."""
    classes = [f"species {j:02d}" for j in range(1, 26)]
    made = {"power": 1.3, "concentration": 0.4}
    holdout = DataSet("many", *drawn(500, classes, 11, **made), {"classes": classes})
    return DataSet(
        "many", *drawn(600, classes, 10, **made), {"classes": classes}, holdout
    )


@cache
def hostile() -> DataSet:
    """Return class names that look like options, places, markup or sentences of mcllo itself."""
    classes = [
        "seed=1",
        "clip=3",
        "row 6",
        "<b>x</b>",
        "a|b",
        "p = 0.05",
        "Verdict: fine. x",
        "Größe 大 🎉",
    ]
    holdout = DataSet(
        "hostile", *drawn(300, classes, 13, power=1.6), {"classes": classes}
    )
    return DataSet(
        "hostile", *drawn(400, classes, 12, power=1.6), {"classes": classes}, holdout
    )


SETS: dict[str, Callable[[], DataSet]] = {
    make.__name__: make
    for make in (toy, sharp, calm, separated, votes, grouped, many, hostile)
}


def fitted(predictions: mcllo.Predictions, **options: Any) -> mcllo.MCLLOFit:
    """Return the fit of MCLLO to predictions, by its public name."""
    return mcllo.MCLLOCalibrator(**options).fit(predictions).fit_
