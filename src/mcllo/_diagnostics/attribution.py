"""Which explanation? Classes, one slope, both, a lapse or a confused pair, held to each other.

A lapse, a confused pair, and classes beside a slope are named only where their score
(`_diagnostics/mixtures`) is better by `MIN_SCORE_LEAD` than that of every rival, and where what
they leave is not rejected. Rivals are one another, the models of the nested models, and the sets of
classes that leaving out accepts.

===============  ===========================================================================
beside a slope   the search of `_diagnostics/left_out`, where each H_S has one slope of all
                 classes outside S; fewer classes than without a slope, and at most a quarter
its score        that of the slope, and of shifts and slopes of the set's classes after it
===============  ===========================================================================

`ClassAttribution`: which classes are miscalibrated? Classes are named by leaving them out.

A parameter of class j compares j with the baseline and cannot say which of the two is off. But if
only the classes of S* are off, the others are calibrated among themselves: H_S* is true, whatever
the baseline (`_diagnostics/left_out`). Leaving out other classes instead leaves the fault in.

===============  ===========================================================================
size             the smallest number s for which some H_S, S of s classes, is not rejected
rivals           sets of s + 1 classes without class k whose H_S is not rejected, not even at
                 `REJECTED_RIVAL_TEXTS` times the level
named            a class that lies in all S of size s and has no rivals
one of           what else lies in one of them, or in a rival: the rows cannot tell them apart
nobody           if there is none up to half of the classes: it is no matter of single classes
temperature      if one slope for all classes is enough (the nested models), it is said once; unless
                 sets of classes explain more, by BIC
beside a slope   the same sets, with one slope of all classes beside them
lapse, pair      labels that follow no prediction, or two classes that are confused; these three
                 where they are 20 times likelier than all else (`_diagnostics/attribution`)
===============  ===========================================================================

If s classes are off, a calibrated one is named only if H_S* is wrongly rejected, or if fewer
classes seem to be enough, where rivals speak up: docs/explanation/miscalibrated-classes.md has the
measured frequencies. Sets grow by the classes that are most off once the others are left out, and
an accepted set is compared with all that differ from it in one class.

How a named class is wrong is in `_diagnostics/left_out`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from .._inference.budget import ATTRIBUTION_WORK, N_RESAMPLES_ATTRIBUTION
from .._inference.likelihood_tests import CalibrationTest
from .._inference.monte_carlo import Seed, seed_entropy
from .._utils.formatting import Table, align, ellipsis, format_number
from .._utils.results import Result, none_for_nan
from .._utils.statements import Statement
from .._validation.predictions import Predictions
from .left_out import (
    LeaveOut,
    LeftOut,
    MiscalibratedClass,
    describe_class,
    set_bic,
    smallest_sets,
    name_classes,
)
from .mixtures import (
    MIN_SCORE_LEAD,
    Fitted,
    Mixture,
    MixtureRows,
    constant_rate,
    fit_lapse,
    fit_pair,
    has_sure_rows,
)
from .nested_models import NestedModels

Rival = Literal["", "lapse", "pair", "slope"]
MAX_SCORED_SETS = 4
"""Accepted sets of classes that have a score: each costs a fit for each of its classes."""


@dataclass(frozen=True)
class Beside:
    """Classes that are off beside one slope of all.

    `tempered` are the predictions whose logits are multiplied by that slope; `margin` is how much
    better it is than the best set of classes without a slope.
    """

    named: frozenset[int]
    others: list[frozenset[int]]
    slope: tuple[float, float, float]
    tempered: Predictions
    margin: float


class Explanations:
    """Rival explanations of the same rows; `accepted` are sets of classes that may be left out."""

    def __init__(
        self,
        predictions: Predictions,
        accepted: list[LeftOut],
        nested_models: NestedModels,
        *,
        alpha: float,
        seed: int,
    ) -> None:
        self.rows = MixtureRows(predictions, seed)
        self.nested_models, self.alpha, self.seed = nested_models, alpha, seed
        self.predictions = self.rows.predictions
        # Where a label had probability 0, how likely a mixture is depends on what the 0 became.
        is_told = predictions.n_clipped_true == 0
        self.lapse = fit_lapse(self.rows) if is_told else None
        self.pair = fit_pair(self.rows) if is_told else None
        self.temperature = self.rows.temperature_score()
        # Of many rows mixtures are fitted to a part, whose likelihood ratios are as much smaller.
        part = self.predictions.n_samples / predictions.n_samples
        price = self.rows.log_total
        scores = {row.model: part * row.statistic - row.df * price for row in nested_models.rows}
        self.alike = max(self.temperature, scores["shift"])
        # Larger models have no sentence, and may contain what is named: they need not be far worse.
        self.larger = max(scores.values())
        self.sets = max(
            [self._set_score(t.classes) for t in accepted[:MAX_SCORED_SETS]], default=-math.inf
        )
        self.fewest = min((len(t.classes) for t in accepted), default=predictions.n_classes)

    def _set_score(self, classes: frozenset[int]) -> float:
        """Return the score of a set of classes, each with a shift and a slope."""
        n_sets = math.comb(self.predictions.n_classes, len(classes))
        return set_bic(self.predictions, classes) - 2.0 * math.log(n_sets)

    @cached_property
    def likeliest(self) -> Fitted | None:
        """The lapse or the pair, where it is far likelier than all else; whatever it leaves."""
        found = [fitted for fitted in (self.lapse, self.pair) if fitted is not None]
        scores = sorted(fitted.mixture.score for fitted in found)
        if not found:
            return None
        best = max(found, key=lambda fitted: fitted.mixture.score)
        score = best.mixture.score
        margin = score - max([self.alike, self.sets, *scores[:-1]])
        if margin < MIN_SCORE_LEAD or score < self.larger:
            return None
        return replace(best, mixture=replace(best.mixture, margin=margin))

    @cached_property
    def mixture(self) -> Mixture | None:
        """The same where it leaves nothing: then it is named."""
        best = self.likeliest
        if best is None or not self._is_enough(best):
            return None
        if not best.mixture.labels and not has_sure_rows(self.rows, best):
            return None
        return best.mixture

    def _is_enough(self, fitted: Fitted) -> bool:
        """Whether what a mixture leaves is not rejected."""
        if not fitted.mixture.labels and constant_rate(self.rows, fitted) <= self.alpha:
            return False
        after = replace(self.predictions, probs=fitted.probs, logits=None)
        return LeaveOut(after, alpha=self.alpha, seed=self.seed)([]).pvalue > self.alpha

    def find_rival(self, kind: str) -> Rival:
        """Return the mixture that speaks against what is said otherwise: of classes, a slope, ...

        It is far likelier, though it leaves something; or it is a lapse that cannot be told from
        one slope, or is likelier than the classes. A pair does not speak against single classes,
        which it consists of.
        """
        is_classes = kind in ("classes", "one_of")
        if self.likeliest is not None:
            if not self.likeliest.mixture.labels:
                return "lapse"
            return "" if is_classes else "pair"
        if self.lapse is None or not (is_classes or kind == "temperature"):
            return ""
        score = self.lapse.mixture.score
        is_near = score > (self.sets if is_classes else self.temperature - MIN_SCORE_LEAD)
        return "lapse" if is_near and self._is_enough(self.lapse) else ""

    def beside(self) -> Beside | None:
        """Return the classes that are off beside one slope of all, where that is far likelier."""
        c = self.predictions.n_classes
        slope, low, high = self.nested_models.slope
        most = min(self.fewest - 1, max(1, c // 4))
        is_off = slope > 0.0 and (high < 1.0 or low > 1.0)
        if self.nested_models.simple == "temperature" or not is_off or most < 1:
            return None
        tests = LeaveOut(self.predictions, alpha=self.alpha, seed=self.seed, slope=slope)
        if tests([]).pvalue > self.alpha:
            return None
        singles = [tests([k]) for k in range(c)]
        accepted = smallest_sets(tests, singles, self.alpha, most=most)
        if not accepted:
            return None
        best = max(accepted, key=lambda t: t.pvalue)
        tempered = self.rows.tempered(best.slope)
        score = self.rows.slope_score(best.slope) + set_bic(tempered, best.classes)
        score -= 2.0 * math.log(math.comb(c, len(best.classes)))
        mixtures = [f.mixture.score for f in (self.lapse, self.pair) if f is not None]
        if score < max([self.alike, *mixtures]) + MIN_SCORE_LEAD or score < self.larger:
            return None
        named, others = name_classes(tests, accepted, self.alpha)
        interval = self.rows.slope_interval(best.classes, best.slope)
        margin = score - self.sets
        return Beside(named, others, interval, tempered, margin)


Kind = Literal[
    "classes", "one_of", "temperature", "shift", "spread", "lapse", "pair", "two", "none"
]
NEAREST_MAP_CAVEAT = (
    "These are the nearest shifts and slopes; they are not, or not all of, what is wrong here."
)
MAX_ALTERNATIVES = 4
"""Sets beyond which "one of these" would say nothing."""
REJECTED_RIVAL_TEXTS = {
    "": "",
    "lapse": " Nor is it a matter of all alike: improbable labels come true more often than any "
    "temperature allows.",
    "pair": " Nor is it a matter of all alike: some classes are confused with each other.",
}
"""What is said where a mixture explains far more than all else, but cannot be named."""
OTHER_SHAPE_CAVEAT = "What is wrong is no shift or slope; what follows is said of these alone."
"""What stands before the nested models where a mixture is named."""
ALTERNATIVE_TEXTS = {
    "lapse": "all classes, in rows whose labels follow no prediction",
    "slope": "all classes, alike",
}
"""What may be off instead of single classes."""
LAPSE_ALTERNATIVE_TEXT = (
    "Or some labels follow no prediction, and sure predictions fail at a constant rate, which no "
    "temperature mends: the two explain these rows about equally well."
)


@dataclass(frozen=True, eq=False, repr=False)
class ClassAttribution(Result):
    """The miscalibrated classes, in order of size; ``for label in miscalibrated_classes``.

    Attributes
    ----------
    labels : tuple
        Named classes.
    one_of : tuple of tuple
        Alternatives beside them that the rows cannot tell apart: one of these (each is a class,
        or several together).
    kind : str
        'classes' or 'one_of'; 'temperature' or 'shift' where all classes are off in one way;
        'spread' where single classes do not explain it; 'lapse' where sure predictions fail at a
        constant rate; 'pair' where two classes are confused; 'two' for two classes, which are
        always off together; 'none' where the main test does not reject.
    details : tuple of MiscalibratedClass
        How each named class is wrong.
    table : Table
        For each class the test of all others without it: ``class``, ``pvalue``, ``method``,
        ``statistic`` and ``most_off``, the class that is then most off.
    slope, slope_low, slope_high : float
        One slope for all classes, with a 95 % interval (the nested models'), where there is one.
    beyond : str
        The larger model that is chosen of the nested models where that is not all; else empty.
    alpha, level : float
        Level of the tests; joint level of the intervals.
    n_samples, seed : int
        Rows that were used, and what draws were made from.
    beside : bool
        Whether the classes are off beside the one `slope` of all: `details` are how they are wrong
        once the logits are multiplied by it.
    mixture : Mixture or None
        The lapse, or the confused pair, of which `kind` speaks.
    rival : str
        'lapse' or 'pair' where one of these speaks against what is said: beside 'temperature' a
        lapse that explains the rows about as well, beside 'spread' what explains far more than all
        else, but not all. Beside 'one_of' and 'classes' 'lapse' or 'slope', where that is one of
        the alternatives. Else empty.

    See Also
    --------
    Assessment : Has it as `miscalibrated_classes`.
    class_tests : A test of each class against the baseline.
    nested_models : One kind of miscalibration for all classes.

    Notes
    -----
    A class is named if the others are calibrated among themselves once it is left out, and not with
    it. If only some classes are off, this holds whatever the baseline.
    ``docs/explanation/miscalibrated-classes.md`` has how often classes are named wrongly.

    Examples
    --------
    >>> import mcllo
    >>> probs = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.1, 0.9]] * 30
    >>> y = [0, 1, 0, 1, 0, 0, 1, 0] * 15
    >>> miscalibrated_classes = mcllo.assess(probs, y, seed=0, n_resamples=99).miscalibrated_classes
    >>> miscalibrated_classes.kind, list(miscalibrated_classes)  # of two classes both are off
    ('two', [])
    """

    labels: tuple[Any, ...]
    one_of: tuple[tuple[Any, ...], ...]
    kind: Kind
    details: tuple[MiscalibratedClass, ...]
    table: Table
    slope: float
    slope_low: float
    slope_high: float
    beyond: str
    alpha: float
    level: float
    n_samples: int
    seed: int
    beside: bool = False
    mixture: Mixture | None = None
    rival: Rival = ""
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

    def statements(self, *, fits: bool = True) -> list[Statement]:
        """Return which classes are miscalibrated and how, or why none can be named.

        Kinds: attribution (one for each named class), attribution.one_of, attribution.all,
        attribution.pair, attribution.lapse, attribution.spread, attribution.none. Empty where the
        main test does not reject. Where shifts and slopes do not describe the rows (not `fits`) and
        no mixture does, attribution.nearest says first that these are the nearest ones.
        """
        if self.mixture is not None:
            return [self.mixture.statement()]
        said = [self._all(fits)] if self.beside else []
        said += [miscalibrated_class.statement(self.level) for miscalibrated_class in self.details]
        if not fits and self.kind != "none":
            said.insert(0, Statement("attribution.nearest", NEAREST_MAP_CAVEAT, "doubt"))
        if self.one_of:
            said.append(self._state_alternatives())
        if self.kind in ("temperature", "shift"):
            said.append(self._all(fits))
        elif self.kind == "two":
            words = "With two classes no single one can be named: what one has too much of, the "
            words += f"other has too little of.{self._on_the_whole('.')}"
            said.append(Statement("attribution.none", words, "bad"))
        elif self.kind == "spread":
            words = "No single classes can be named: the others do not agree with the labels "
            words += "either, whichever few are left out."
            words += REJECTED_RIVAL_TEXTS[self.rival] or self._on_the_whole(", but not all alike.")
            said.append(Statement("attribution.spread", words, "bad"))
        return said

    def _on_the_whole(self, end: str) -> str:
        """Return in which direction one slope for all would go, where that is sure."""
        if not (self.slope_high < 1.0 or self.slope_low > 1.0):
            return ""
        return (
            " On the whole they are "
            f"{'overconfident' if self.slope < 1.0 else 'underconfident'}{end}"
        )

    def _state_alternatives(self) -> Statement:
        sets = [" with ".join(repr(ellipsis(label)) for label in some) for some in self.one_of]
        if self.rival:
            sets.append(ALTERNATIVE_TEXTS[self.rival])
        numbers = {"alternatives": self.one_of}
        n = len({label for some in self.one_of for label in some})
        single = all(len(some) == 1 for some in self.one_of)
        also = "also " if self.labels else ""
        words = (
            f"One of these is {also}off, and these rows cannot tell which: {', or '.join(sets)}."
        )
        if single and not self.rival and n > max(2, len(self.table) // 2):
            words = f"Some class is {also}off, and these rows cannot tell which."
        elif len(sets) > MAX_ALTERNATIVES:
            some = "One class" if single else "One class or more"
            words = f"{some} of {n} is {also}off, and these rows cannot tell which."
        return Statement("attribution.one_of", words, "doubt", numbers)

    def _all(self, fits: bool) -> Statement:
        numbers = {"kind": self.kind, "slope": self.slope, "beyond": self.beyond}
        last = "No single class stands out." if fits else "That alone does not mend it."
        if self.beside:
            last = "What follows is said of the probabilities after that."
        elif self.beyond and fits:
            full = ": how classes are confused matters, too" * (self.beyond == "full")
            last += f" That is not all{full}."
        if self.rival:
            last += f" {LAPSE_ALTERNATIVE_TEXT}"
        if self.kind == "shift":
            words = "Many classes are off, in how often they are predicted: their shares have "
            return Statement("attribution.all", f"{words}shifted. {last}", "bad", numbers)
        numbers |= {"low": self.slope_low, "high": self.slope_high}
        if self.slope <= 0.0:
            words = "All classes are ranked the wrong way: what is predicted more comes true less."
        elif self.slope < 1.0:
            words = (
                f"All classes are overconfident, alike: divide the logits by {self._factor(-1)}."
            )
            if not fits:
                words = (
                    "On the whole the classes are overconfident; the nearest single factor divides "
                    f"the logits by {self._factor(-1)}."
                )
        else:
            words = (
                f"All classes are underconfident, alike: multiply the logits by {self._factor(1)}."
            )
            if not fits:
                words = (
                    "On the whole the classes are underconfident; the nearest single factor "
                    "multiplies "
                    f"the logits by {self._factor(1)}."
                )
        return Statement("attribution.all", f"{words} {last}", "bad", numbers)

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
        return f"<ClassAttribution: {self.kind}, {list(self.labels)}>"


def attribute_miscalibration(
    predictions: Predictions,
    *,
    test: CalibrationTest,
    nested_models: NestedModels | None = None,
    alpha: float = 0.05,
    n_resamples: int = N_RESAMPLES_ATTRIBUTION,
    seed: Seed = None,
    work: float = ATTRIBUTION_WORK,
) -> ClassAttribution:
    """Name the miscalibrated classes, given the main test and the nested models of its rows."""
    p, entropy = predictions, seed_entropy(seed)
    if not test.rejects(alpha) or p.n_classes == 2:
        nobody = _nobody(p, "none" if p.n_classes > 2 else "two", alpha, entropy)
        return nobody if nested_models is None else replace(nobody, **_slopes(nested_models.slope))
    draws = min(n_resamples, N_RESAMPLES_ATTRIBUTION)
    leave_out = LeaveOut(p, alpha=alpha, seed=entropy, n_resamples=draws, work=work)
    singles = [leave_out([k]) for k in range(p.n_classes)]
    accepted = smallest_sets(leave_out, singles, alpha)
    named, others = name_classes(leave_out, accepted, alpha)
    attributed = AttributedError(
        "classes" if named else "one_of" if others else "spread", named, others, p
    )
    if nested_models is not None and not nested_models.separated:
        whole = _whole(nested_models, alpha, spread=attributed.kind == "spread")
        if whole == "shift" or (whole and not _explain_more(p, accepted, nested_models)):
            attributed = AttributedError(whole, frozenset(), [], p)
        if attributed.kind != "shift":
            attributed = replace(attributed, slope=nested_models.slope)
        attributed = weigh_explanations(
            attributed, Explanations(p, accepted, nested_models, alpha=alpha, seed=entropy)
        )
    kind, named = attributed.kind, attributed.named
    alike = (
        nested_models is not None
        and kind in ("temperature", "shift")
        and nested_models.chosen != kind
    )
    beyond = nested_models.chosen if nested_models is not None and alike else ""
    level = 1.0 - alpha / (2 * max(1, len(named)))
    details = [describe_class(attributed.judged, sorted(named), k, level) for k in named]
    details.sort(key=lambda miscalibrated_class: -miscalibrated_class.change)
    return ClassAttribution(
        labels=tuple(miscalibrated_class.label for miscalibrated_class in details),
        one_of=_labels(p, attributed.others),
        kind=kind,
        details=tuple(details),
        table=_table(p, singles),
        **_slopes(attributed.slope),
        beyond=beyond,
        alpha=alpha,
        level=1.0 - alpha,
        n_samples=leave_out.n_samples,
        seed=entropy,
        beside=attributed.judged is not p,
        mixture=attributed.mixture,
        rival=attributed.rival,
    )


@dataclass(frozen=True)
class AttributedError:
    """What is said of whom: named classes and alternatives beside them, as columns.

    `judged` are the predictions that it is said of: as given, or after the slope of all classes.
    """

    kind: Kind
    named: frozenset[int]
    others: list[frozenset[int]]
    judged: Predictions
    slope: tuple[float, float, float] = (math.nan, math.nan, math.nan)
    mixture: Mixture | None = None
    rival: Rival = ""


def weigh_explanations(attributed: AttributedError, explanations: Explanations) -> AttributedError:
    """Hold what shifts and slopes say to what a mixture, or a slope beside classes, explains."""
    mixture = explanations.mixture
    if mixture is not None:
        pair = frozenset(map(attributed.judged.classes.index, mixture.labels))
        kind: Kind = "pair" if pair else "lapse"
        return replace(attributed, kind=kind, named=pair, others=[], mixture=mixture)
    beside = explanations.beside() if explanations.likeliest is None else None
    if beside is not None and beside.margin >= MIN_SCORE_LEAD:
        kind = "classes" if beside.named else "one_of"
        return AttributedError(kind, beside.named, beside.others, beside.tempered, beside.slope)
    if beside is not None and beside.margin > -MIN_SCORE_LEAD and attributed.named - beside.named:
        # A class that is needed only if there is no slope of all is not named.
        named = attributed.named & beside.named
        others = [attributed.named - beside.named, *attributed.others, *beside.others]
        kind = "classes" if named else "one_of"
        return replace(attributed, kind=kind, named=named, others=others, rival="slope")
    rival = explanations.find_rival(attributed.kind)
    if rival and explanations.likeliest is not None:
        return replace(attributed, kind="spread", named=frozenset(), others=[], rival=rival)
    if rival and attributed.named:
        others = [attributed.named | own for own in attributed.others] or [attributed.named]
        return replace(attributed, kind="one_of", named=frozenset(), others=others, rival=rival)
    return replace(attributed, rival=rival)


def _labels(predictions: Predictions, sets: list[frozenset[int]]) -> tuple[tuple[Any, ...], ...]:
    """Return the classes of sets of columns."""
    return tuple(tuple(predictions.classes[j] for j in sorted(own)) for own in sets)


def _slopes(slope: tuple[float, float, float]) -> dict[str, Any]:
    """Return a slope and its interval by their names."""
    return dict(zip(("slope", "slope_low", "slope_high"), slope, strict=True))


def _nobody(predictions: Predictions, kind: Kind, alpha: float, seed: int) -> ClassAttribution:
    """Return what there is to say without a single test."""
    nan = math.nan
    table, n = _table(predictions, []), predictions.n_samples
    return ClassAttribution((), (), kind, (), table, nan, nan, nan, "", alpha, 1.0 - alpha, n, seed)


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


def _whole(
    nested_models: NestedModels, alpha: float, *, spread: bool
) -> Literal["temperature", "shift"] | None:
    """Return the model that says what is wrong with all classes at once, or None.

    One temperature where it is enough; where no set of classes is, also shifts, and either of them
    where it is not enough but the best of all models by BIC.
    """
    least = min(nested_models.rows, key=lambda row: row.bic).model
    for model, enough in (("temperature", True), ("shift", spread)):
        best = model == nested_models.simple or (spread and model == least)
        if enough and best and nested_models.row(model).pvalue <= alpha:
            return "temperature" if model == "temperature" else "shift"
    return None


def _explain_more(
    predictions: Predictions, accepted: list[LeftOut], nested_models: NestedModels
) -> bool:
    """Whether a set of classes, each with a shift and a slope, beats one temperature by BIC."""
    total = float(predictions.class_weight.sum())
    rival = nested_models.row("temperature").statistic - math.log(total)
    return any(set_bic(predictions, t.classes) > rival for t in accepted)
