"""`Culprits`: whose fault is it? Classes are named by leaving them out.

A parameter of class j compares j with the baseline and cannot say which of the two is off. But if
only the classes of S* are off, the others are calibrated among themselves: H_S* is true, whatever
the baseline (`_diagnosis/left_out`). Leaving out other classes instead leaves the fault in.

===============  ===========================================================================
size             the smallest number s for which some H_S, S of s classes, is not rejected
rivals           sets of s + 1 classes without class k whose H_S is not rejected, not even at
                 `RIVALS` times the level
named            a class that lies in all S of size s and has no rivals
one of           what else lies in one of them, or in a rival: the rows cannot tell them apart
nobody           if there is none up to half of the classes: it is no matter of single classes
temperature      if one slope for all classes is enough (the ladder), it is said once; unless
                 sets of classes explain more, by BIC
===============  ===========================================================================

If s classes are off, an innocent one is named only if H_S* is wrongly rejected, or if fewer classes
seem to be enough, where rivals speak up: docs/explanation/whose-fault.md has the measured
frequencies. Sets grow by the classes that are most off once the others are left out, and an
accepted set is compared with all that differ from it in one class.

How a named class is wrong is in `_diagnosis/culprit`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from .._ground.results import Result, none_for_nan
from .._ground.statements import Statement
from .._ground.text import Table, align, ellipsis, format_number
from .._inference.budget import CULPRITS_WORK, N_RESAMPLES_CULPRITS
from .._inference.draws import Seed, entropy_of
from .._inference.likelihood_tests import CalibrationTest
from .._input.predictions import Predictions
from .culprit import Culprit, how_wrong, odds_fit
from .ladder import Ladder
from .left_out import LeaveOut, LeftOut

Kind = Literal["classes", "one_of", "temperature", "shift", "spread", "two", "none"]
BRANCHES = 3
"""Classes by which a set grows at most, the most off first."""
RIVALS = 2.0
"""Times alpha: level at which larger sets without a class must be rejected for it to be named."""
MOST_ALTERNATIVES = 4
"""Sets beyond which "one of these" would say nothing."""


@dataclass(frozen=True, eq=False, repr=False)
class Culprits(Result):
    """The classes that are to blame, in order of size; ``for label in culprits``.

    Attributes
    ----------
    labels : tuple
        Named classes.
    one_of : tuple of tuple
        Alternatives beside them that the rows cannot tell apart: one of these (each is a class,
        or several together).
    kind : str
        'classes' or 'one_of'; 'temperature' or 'shift' where all classes are off in one way;
        'spread' where single classes do not explain it; 'two' for two classes, which are always
        off together; 'none' where the main test does not reject.
    details : tuple of Culprit
        How each named class is wrong.
    table : Table
        For each class the test of all others without it: ``class``, ``pvalue``, ``method``,
        ``statistic`` and ``most_off``, the class that is then most off.
    slope, slope_low, slope_high : float
        One slope for all classes, with a 95 % interval (the ladder's), where there is one.
    beyond : str
        The larger model that the ladder chooses where that is not all; else empty.
    alpha, level : float
        Level of the tests; joint level of the intervals.
    n_samples, seed : int
        Rows that were used, and what draws were made from.
    """

    labels: tuple[Any, ...]
    one_of: tuple[tuple[Any, ...], ...]
    kind: Kind
    details: tuple[Culprit, ...]
    table: Table
    slope: float
    slope_low: float
    slope_high: float
    beyond: str
    alpha: float
    level: float
    n_samples: int
    seed: int
    left_out = ("table",)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.labels)

    def __len__(self) -> int:
        return len(self.labels)

    def __contains__(self, label: object) -> bool:
        return label in self.labels

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for strict JSON."""
        return {**super().to_dict(), "left_out": none_for_nan(self.table.rows())}

    def to_frame(self) -> Any:
        """Return `table` as a pandas ``DataFrame``."""
        return self.table.to_frame()

    def statements(self) -> list[Statement]:
        """Return who is to blame and how, or why nobody can be named.

        Kinds: culprit (one for each named class), culprit.one_of, culprit.all, culprit.spread,
        culprit.none. Empty where the main test does not reject.
        """
        said = [culprit.statement(self.level) for culprit in self.details]
        if self.one_of:
            said.append(self._one_of())
        if self.kind in ("temperature", "shift"):
            said.append(self._all())
        elif self.kind == "two":
            words = "With two classes no single one can be blamed: what one has too much of, the "
            words += f"other has too little of.{self._on_the_whole('.')}"
            said.append(Statement("culprit.none", words, "bad"))
        elif self.kind == "spread":
            words = "No single classes are to blame: the others do not agree with the labels "
            words += "either, whichever few are left out."
            words += self._on_the_whole(", but not all alike.")
            said.append(Statement("culprit.spread", words, "bad"))
        return said

    def _on_the_whole(self, end: str) -> str:
        """Return in which direction one slope for all would go, where that is sure."""
        if not (self.slope_high < 1.0 or self.slope_low > 1.0):
            return ""
        return f" On the whole they are too {'extreme' if self.slope < 1.0 else 'timid'}{end}"

    def _one_of(self) -> Statement:
        sets = [" with ".join(repr(ellipsis(label)) for label in some) for some in self.one_of]
        numbers = {"alternatives": self.one_of}
        n = len({label for some in self.one_of for label in some})
        single = all(len(some) == 1 for some in self.one_of)
        also = "also " if self.labels else ""
        words = (
            f"One of these is {also}off, and these rows cannot tell which: {', or '.join(sets)}."
        )
        if single and n > max(2, len(self.table) // 2):
            words = f"Some class is {also}off, and these rows cannot tell which."
        elif len(sets) > MOST_ALTERNATIVES:
            some = "One class" if single else "One class or more"
            words = f"{some} of {n} is {also}off, and these rows cannot tell which."
        return Statement("culprit.one_of", words, "doubt", numbers)

    def _all(self) -> Statement:
        numbers = {"kind": self.kind, "slope": self.slope, "beyond": self.beyond}
        last = "No single class is to blame."
        if self.beyond:
            full = ": how classes are confused matters, too" * (self.beyond == "full")
            last += f" That is not all{full}."
        if self.kind == "shift":
            words = "Many classes are off, in how often they are predicted: their shares have "
            return Statement("culprit.all", f"{words}shifted. {last}", "bad", numbers)
        numbers |= {"low": self.slope_low, "high": self.slope_high}
        if self.slope <= 0.0:
            words = "All classes are ranked the wrong way: what is predicted more comes true less."
        elif self.slope < 1.0:
            words = f"All classes are too extreme, alike: divide the logits by {self._factor(-1)}."
        else:
            words = f"All classes are too timid, alike: multiply the logits by {self._factor(1)}."
        return Statement("culprit.all", f"{words} {last}", "bad", numbers)

    def _factor(self, power: int) -> str:
        value, *ends = (s**power for s in (self.slope, self.slope_low, self.slope_high))
        low, high = sorted(ends)
        if not 0.0 < low <= high < math.inf:
            return format_number(value)
        return f"{format_number(value)} ({format_number(low)} to {format_number(high)})"

    def __str__(self) -> str:
        rows = [["without", "p", "then most off"]]
        rows += [
            [ellipsis(row["class"]), format_number(row["pvalue"]), ellipsis(row["most_off"])]
            for row in self.table.rows()
        ]
        said = [said.text for said in self.statements()] or ["Nobody: nothing was rejected."]
        return "\n".join([*said, *([align(rows)] if len(rows) > 1 else [])])

    def __repr__(self) -> str:
        return f"<Culprits: {self.kind}, {list(self.labels)}>"


def culprits_of(
    predictions: Predictions,
    *,
    test: CalibrationTest,
    ladder: Ladder | None = None,
    alpha: float = 0.05,
    n_resamples: int = N_RESAMPLES_CULPRITS,
    seed: Seed = None,
    work: float = CULPRITS_WORK,
) -> Culprits:
    """Name the classes that are to blame, given the main test and the ladder of its rows."""
    p, entropy = predictions, entropy_of(seed)
    if not test.rejects(alpha) or p.n_classes == 2:
        nobody = _nobody(p, "none" if p.n_classes > 2 else "two", alpha, entropy)
        return nobody if ladder is None else replace(nobody, **_slopes(ladder.slope))
    draws = min(n_resamples, N_RESAMPLES_CULPRITS)
    leave_out = LeaveOut(p, alpha=alpha, seed=entropy, n_resamples=draws, work=work)
    singles = [leave_out([k]) for k in range(p.n_classes)]
    accepted = smallest_sets(leave_out, singles, alpha)
    named, others = told_apart(leave_out, accepted, alpha)
    one_of = tuple(tuple(p.classes[j] for j in sorted(own)) for own in others)
    kind: Kind = "classes" if named else "one_of" if one_of else "spread"
    slope = (math.nan, math.nan, math.nan)
    if ladder is not None and not ladder.separated:
        whole = _whole(ladder, alpha, spread=kind == "spread")
        if whole == "shift" or (whole and not _explain_more(p, accepted, ladder)):
            kind, named, one_of = whole, frozenset(), ()
        slope = slope if kind == "shift" else ladder.slope
    alike = ladder is not None and kind in ("temperature", "shift") and ladder.chosen != kind
    beyond = ladder.chosen if ladder is not None and alike else ""
    details = [
        how_wrong(p, sorted(named), k, 1.0 - alpha / (2 * max(1, len(named)))) for k in named
    ]
    details.sort(key=lambda culprit: -culprit.change)
    return Culprits(
        labels=tuple(culprit.label for culprit in details),
        one_of=one_of,
        kind=kind,
        details=tuple(details),
        table=_table(p, singles),
        **_slopes(slope),
        beyond=beyond,
        alpha=alpha,
        level=1.0 - alpha,
        n_samples=leave_out.n_samples,
        seed=entropy,
    )


def _slopes(slope: tuple[float, float, float]) -> dict[str, Any]:
    """Return a slope and its interval by their names."""
    return dict(zip(("slope", "slope_low", "slope_high"), slope, strict=True))


def _nobody(predictions: Predictions, kind: Kind, alpha: float, seed: int) -> Culprits:
    """Return what there is to say without a single test."""
    nan = math.nan
    table, n = _table(predictions, []), predictions.n_samples
    return Culprits((), (), kind, (), table, nan, nan, nan, "", alpha, 1.0 - alpha, n, seed)


def _table(predictions: Predictions, singles: list[LeftOut]) -> Table:
    classes, found = predictions.classes, [(k, t) for t in singles for k in t.classes]
    return Table(
        {
            "class": [classes[k] for k, _ in found],
            "pvalue": [t.pvalue for _, t in found],
            "method": [t.method for _, t in found],
            "statistic": [t.statistic for _, t in found],
            "most_off": [classes[int(t.suspects[0])] for _, t in found],
        }
    )


def smallest_sets(leave_out: LeaveOut, singles: list[LeftOut], alpha: float) -> list[LeftOut]:
    """Return the smallest sets whose H_S is not rejected; empty beyond half of the classes."""
    frontier, c = sorted(singles, key=lambda t: t.strength), leave_out.n_classes
    width = c
    for size in range(1, max(2, c // 2 + 1)):
        if accepted := [t for t in frontier if t.pvalue > alpha]:
            return _swapped(leave_out, accepted, alpha) if size > 1 else accepted
        if leave_out.left < 0.0 or size + 1 > c // 2:
            break
        frontier = grown(leave_out, frontier[:width])
        width = max(BRANCHES, width // 2)
    return []


def grown(leave_out: LeaveOut, sets: list[LeftOut], without: int = -1) -> list[LeftOut]:
    """Return sets with one class more, one of those most off but `without`; the best first."""
    own: dict[frozenset[int], None] = {}
    for t in sets:
        more = [j for j in t.suspects.tolist() if j != without][:BRANCHES]
        own |= dict.fromkeys(t.classes | {j} for j in more)
    found = [leave_out(classes) for classes in own if leave_out.left >= 0.0]
    return sorted(found, key=lambda t: t.strength)


def _swapped(leave_out: LeaveOut, accepted: list[LeftOut], alpha: float) -> list[LeftOut]:
    """Add the sets that differ in one class from one of these, where they are not rejected."""
    every = {t.classes: t for t in accepted}
    for own in list(every):
        for j in own:
            for k in range(leave_out.n_classes):
                other = (own - {j}) | {k}
                if k not in own and leave_out.left >= 0.0:
                    every[other] = leave_out(other)
    return [t for _, t in sorted(every.items(), key=lambda e: sorted(e[0])) if t.pvalue > alpha]


def told_apart(
    leave_out: LeaveOut, accepted: list[LeftOut], alpha: float
) -> tuple[frozenset[int], list[frozenset[int]]]:
    """Return the classes that are named, and the alternatives beside them."""
    if not accepted:
        return frozenset(), []
    common = frozenset.intersection(*(t.classes for t in accepted))
    rivals: dict[frozenset[int], None] = {}
    doubted = set()
    for k in sorted(common):
        found = _rivals(leave_out, accepted[0].classes, k, RIVALS * alpha)
        if found:
            doubted.add(k)
            rivals |= dict.fromkeys(t.classes for t in found)
    named = common - doubted
    others = [t.classes - named for t in accepted] + [own - named for own in rivals]
    return named, [own for own in others if own]


def _rivals(leave_out: LeaveOut, own: frozenset[int], k: int, level: float) -> list[LeftOut]:
    """Return the sets without k, of one class more than `own`, that are not rejected at `level`."""
    if len(own) + 1 > leave_out.n_classes // 2:
        return []
    rest = [(own - {k}) | {j} for j in range(leave_out.n_classes) if j not in own]
    smaller = sorted((leave_out(other) for other in rest), key=lambda t: t.strength)
    found = grown(leave_out, smaller, without=k)
    return [t for t in found if t.pvalue > level]


def _whole(ladder: Ladder, alpha: float, *, spread: bool) -> Literal["temperature", "shift"] | None:
    """Return the model that says what is wrong with all classes at once, or None.

    One temperature where it is enough; where no set of classes is, also shifts, and either of them
    where it is not enough but the best of all models by BIC.
    """
    least = min(ladder.rows, key=lambda row: row.bic).model
    for model, enough in (("temperature", True), ("shift", spread)):
        best = model == ladder.simple or (spread and model == least)
        if enough and best and ladder.row(model).pvalue <= alpha:
            return "temperature" if model == "temperature" else "shift"
    return None


def _explain_more(predictions: Predictions, accepted: list[LeftOut], ladder: Ladder) -> bool:
    """Whether a set of classes, each with a shift and a slope, beats one temperature by BIC."""
    total = float(predictions.class_weight.sum())
    rival = ladder.row("temperature").statistic - math.log(total)
    for t in accepted:
        own = sorted(t.classes)
        gain = sum(odds_fit(predictions, own[i:], k).statistic for i, k in enumerate(own))
        if gain - 2.0 * len(own) * math.log(total) > rival:
            return True
    return False
