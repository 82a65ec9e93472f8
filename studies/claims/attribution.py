"""How often a miscalibrated class, and how often a calibrated one, is named.

One or two classes are off, by a shift or a slope of their log odds; all others are right among
themselves. Named as the package does (`ClassAttribution`), and as before: every class other than
the baseline whose 95 % Wald interval for delta or gamma excludes 1.

`OUTSIDE` are truths that are not single classes alone: two classes that exchange mass, labels that
follow no prediction, a class beside one temperature. What counts there is whether the explanation
that is named is the true one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mcllo import Predictions
from mcllo._diagnostics.attribution import attribute_miscalibration
from mcllo._diagnostics.nested_models import fit_nested_models
from mcllo._inference.budget import BRIEF_NESTED_WORK
from mcllo._inference.calibration_test import fit_and_test
from mcllo._utils.statements import suppress_warnings
from studies.claims import Rows, draw, rows_like, scaled, share
from studies.pages import fill

PAGE = "explanation/miscalibrated-classes.md"


@dataclass(frozen=True)
class Design:
    """Rows, which classes are off (-1 is the last, the baseline), how, and by how much."""

    rows: str
    c: int
    n: int
    off: tuple[int, ...]
    how: str
    size: float
    part: float = 1.0
    """Of the repetitions: large tables are slow."""
    kind = "classes"
    """What the package should say; that classes are off beside a slope, it should not."""

    def truth(self, probs: np.ndarray) -> np.ndarray:
        """Return what labels are drawn from; two shifts are opposite unless "same" is asked for."""
        slope, shift = np.ones(self.c), np.zeros(self.c)
        for i, k in enumerate(self.off):
            if self.how == "slope":
                slope[k] = self.size
            else:
                shift[k] = self.size * (-1 if i == 1 and self.how == "shift" else 1)
        return scaled(probs, slope, shift)


@dataclass(frozen=True)
class Outside(Design):
    """A truth outside single classes; `off` are the classes that are confused, or that is off."""

    kind: str = ""

    def truth(self, probs: np.ndarray) -> np.ndarray:
        """Return what labels are drawn from."""
        found = probs.copy()
        shift = np.zeros(self.c)
        if self.how == "swap":
            moved = self.size * (probs[:, 0] - probs[:, 1])
            found[:, 0] -= moved
            found[:, 1] += moved
        elif self.how == "leak":
            found[:, 0] -= self.size * probs[:, 0]
            found[:, 1] += self.size * probs[:, 0]
        elif self.how == "beside":
            shift[list(self.off)] = 0.8
            found = scaled(probs, self.size, shift)
        elif self.how == "slopes":
            found = 0.5 * (scaled(probs, self.size) + scaled(probs, 2.0 - self.size))
        else:
            slope = 1.0 if self.how == "noise" else 0.8
            slope, noise = (
                (self.size, 0.0) if self.how == "slope" else (slope, self.size)
            )
            found = (1.0 - noise) * scaled(probs, slope) + noise / self.c
        return found


FLAT, SHARP, NETWORK, MARGIN = "dirichlet:0.6", "sharp", "network", "margin"
DESIGNS = (
    Design(FLAT, 4, 500, (0,), "shift", 0.7),
    Design(FLAT, 4, 1500, (-1,), "shift", 0.4),
    Design(FLAT, 4, 1500, (-1,), "slope", 0.7),
    Design(FLAT, 4, 500, (0, -1), "shift", 0.5),
    Design(FLAT, 4, 1500, (0, -1), "same", 0.4),
    Design(FLAT, 10, 500, (0,), "shift", 0.9),
    Design(FLAT, 10, 1500, (-1,), "shift", 0.7),
    Design(FLAT, 10, 1500, (-1,), "slope", 0.6),
    Design(FLAT, 10, 1500, (0, -1), "shift", 0.5),
    Design(FLAT, 10, 1500, (0, -1), "slope", 0.8),
    Design(FLAT, 10, 20_000, (-1,), "shift", 0.15, 0.3),
    Design(FLAT, 30, 1500, (0,), "shift", 0.7, 0.4),
    Design(FLAT, 30, 1500, (-1,), "slope", 0.7, 0.4),
    Design(FLAT, 30, 5000, (0, -1), "shift", 0.4, 0.2),
    Design(FLAT, 30, 20_000, (-1,), "shift", 0.25, 0.05),
    Design(NETWORK, 10, 2000, (0,), "shift", 1.2, 0.4),
    Design(NETWORK, 10, 4000, (-1,), "slope", 0.6, 0.4),
    Design(NETWORK, 10, 4000, (0, -1), "shift", 0.9, 0.4),
    Design(SHARP, 4, 2000, (-1,), "shift", 0.8, 0.4),
    Design(SHARP, 10, 4000, (0, -1), "slope", 0.7, 0.4),
    Design(SHARP, 30, 20_000, (-1,), "shift", 0.8, 0.05),
)
OUTSIDE = (
    Outside("dirichlet:1", 4, 800, (0, 1), "swap", 0.3, kind="pair"),
    Outside(MARGIN, 10, 3000, (0, 1), "swap", 0.3, kind="pair"),
    Outside(MARGIN, 10, 3000, (0, 1), "leak", 0.3, kind="pair"),
    Outside(FLAT, 5, 1500, (0, 1), "leak", 0.25, kind="pair"),
    Outside(MARGIN, 10, 3000, (4,), "beside", 0.8, kind="beside"),
    Outside(FLAT, 4, 1500, (1,), "beside", 0.7, kind="beside"),
    Outside(MARGIN, 10, 3000, (), "noise", 0.03, kind="lapse"),
    Outside(MARGIN, 10, 1000, (), "noise", 0.03, kind="lapse"),
    Outside(MARGIN, 10, 3000, (), "soft", 0.05, kind="lapse"),
    Outside(MARGIN, 10, 3000, (), "slope", 0.7, kind="temperature"),
    Outside("dirichlet:1", 5, 500, (), "slope", 0.6, kind="temperature"),
    Outside(MARGIN, 5, 3000, (), "slopes", 0.4, kind="spread"),
)
KINDS = {
    "dirichlet:1": "Dirichlet(1)",
    MARGIN: "margin",
    FLAT: "Dirichlet(.6)",
    SHARP: "sharp",
    NETWORK: "network",
}


def named_before(predictions: Predictions) -> set[int]:
    """Return the classes whose unadjusted interval against the baseline excludes 1."""
    with suppress_warnings():
        fit = fit_and_test(predictions, method="chi2").fit
    if not fit.converged:
        return set()
    interval = fit.confidence_interval(0.95)
    off = [
        (ends[:, 0] > 1.0) | (ends[:, 1] < 1.0)
        for ends in (interval.delta, interval.gamma)
    ]
    return {int(fit.compared[j]) for j in np.flatnonzero(off[0] | off[1])}


def once(design: Design, rng: np.random.Generator) -> dict[str, bool]:
    """Return what one data set of a design shows."""
    probs = rows_like(design.rows, design.n, design.c, rng)
    y = draw(design.truth(probs), rng)
    predictions = Predictions.from_arrays(probs, y, classes=list(range(design.c)))
    miscalibrated_classes, seed = (
        {k % design.c for k in design.off},
        int(rng.integers(2**31)),
    )
    with suppress_warnings():
        fitted = fit_and_test(predictions, seed=seed, n_resamples=499)
    rejected = fitted.test.rejects(0.05)
    named: set[int] = set()
    one_of = also = False
    kind = ""
    if rejected:
        with suppress_warnings():
            nested_models = fit_nested_models(
                predictions,
                fitted.fit,
                test=fitted.test if fitted.test.kind == "lr" else None,
                n_resamples=199,
                seed=seed,
                work=BRIEF_NESTED_WORK,
            )
            found = attribute_miscalibration(
                predictions, test=fitted.test, nested_models=nested_models, seed=seed
            )
        named, one_of = set(found.labels), bool(found.one_of) and not found.labels
        alternatives = {label for some in found.one_of for label in some}
        also = bool(named and alternatives) and not alternatives & miscalibrated_classes
        kind = "beside" if found.beside else found.kind
    before = named_before(predictions) if rejected else set()
    return {
        "rejected": rejected,
        "named": bool(named & miscalibrated_classes),
        "all": named >= miscalibrated_classes,
        "innocent": bool(named - miscalibrated_classes),
        "one_of": one_of,
        "also": also,
        "said": kind == design.kind and named == miscalibrated_classes,
        "temperature": kind == "temperature",
        "before": bool(before & miscalibrated_classes),
        "before_innocent": bool(before - miscalibrated_classes),
    }


def run(
    reps: int, seed: int = 7, designs: Sequence[Design] = (*DESIGNS, *OUTSIDE)
) -> Rows:
    """Return for each design how often each thing happened; `se` is of `innocent`."""
    rows: Rows = []
    for number, design in enumerate(designs):
        rng = np.random.default_rng([seed, number])
        times = max(2, round(reps * design.part))
        seen = [once(design, rng) for _ in range(times)]
        rates = {name: share([one[name] for one in seen])[0] for name in seen[0]}
        where = _where(design)
        rows.append(
            {
                "rows": KINDS[design.rows],
                "c": design.c,
                "n": design.n,
                "off": where,
                "how": design.how,
                "size": design.size,
                "reps": times,
                **rates,
                "se": share([one["innocent"] for one in seen])[1],
            }
        )
    return rows


def _where(design: Design) -> str:
    if isinstance(design, Outside):
        return design.kind
    if len(design.off) > 1:
        return "both"
    return "baseline" if design.off == (-1,) else "first"


OFF = {
    "first": "one class",
    "baseline": "the baseline",
    "both": "two classes, one the baseline",
}
HOW = {"shift": "shift {:g}", "same": "shift {:g}, the same way", "slope": "slope {:g}"}
TRUTHS = {
    "swap": "two classes exchange {:g} %",
    "leak": "{:g} % of one class are labelled another",
    "beside": "one class shifted by 0.8, and slope {:g} of all",
    "noise": "{:g} % of the labels at random",
    "soft": "{:g} % of the labels at random, and slope 0.8 of all",
    "slope": "slope {:g} of all",
    "slopes": "half of the labels by slope {:g}, half by 1.6",
}
SAYS = {
    "pair": "the pair",
    "beside": "the class, and a temperature",
    "lapse": "a lapse",
    "temperature": "a temperature",
    "spread": "none of these",
}
LINES = """\
| rows | classes | n | off | by | rejected | miscalibrated named | all of them | one of these | calibrated named | before: miscalibrated | before: calibrated |
|---|---|---|---|---|---|---|---|---|---|---|---|
{*designs} | {rows} | {c} | {n:,} | {off} | {how} | {rejected:%0} | {named:%0} | {all:%0} | {one_of:%0} | {innocent:%} | {before:%0} | {before_innocent:%0} |

{n} data sets in all ({fewest} to {most} for each line); the largest Monte Carlo error of "calibrated named"
is {se:%}. Over all of them a calibrated class was named in {innocent:%}, and by the old way in
{before:%}. "One of these is also off", without a miscalibrated class among them, was said in {also:%}.

What is no matter of single classes alone, and how often the report says so:

| rows | classes | n | truth | what should be said | said | "divide the logits" alone | calibrated named |
|---|---|---|---|---|---|---|---|
{*outside} | {rows} | {c} | {n:,} | {how} | {off} | {said:%0} | {temperature:%0} | {innocent:%} |

{outside_n} data sets, {outside_reps} for each line."""  # noqa: E501


def _truth_words(how: str, size: float) -> str:
    """Return a truth in words; shares are written in percent."""
    words = TRUTHS[how]
    return words.format(round(100 * size) if " %" in words else size)


def table(rows: Rows) -> str:
    """Return the page's tables."""
    inside = [row for row in rows if row["off"] in OFF]
    others = [row for row in rows if row["off"] not in OFF]
    total = sum(row["reps"] for row in inside)

    def mean(name: str) -> float:
        return sum(row[name] * row["reps"] for row in inside) / total

    designs = [
        row | {"off": OFF[row["off"]], "how": HOW[row["how"]].format(row["size"])}
        for row in inside
    ]
    outside = [
        row | {"off": SAYS[row["off"]], "how": _truth_words(row["how"], row["size"])}
        for row in others
    ]
    facts = {
        "designs": designs,
        "outside": outside,
        "n": total,
        "fewest": min(row["reps"] for row in inside),
        "most": max(row["reps"] for row in inside),
        "se": max(row["se"] for row in inside),
        "innocent": mean("innocent"),
        "before": mean("before_innocent"),
        "also": mean("also"),
        "outside_n": sum(row["reps"] for row in others),
        "outside_reps": max(row["reps"] for row in others),
    }
    return fill(LINES, facts)
