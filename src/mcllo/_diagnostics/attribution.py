"""Which classes are miscalibrated? Sets of classes, one slope, a lapse or a confused pair.

`ClassAttribution` names classes by leaving them out. A parameter of class j compares j with the
baseline and cannot say which of the two is off. But if only the classes of S* are off, the others
are calibrated among themselves: H_S* is true, whatever the baseline (`_diagnostics/left_out`).
Leaving out other classes instead leaves the fault in.

===============  ===========================================================================
size             the smallest number s for which some H_S, S of s classes, is not rejected
rivals           sets of s + 1 classes without class k whose H_S is not rejected, not even at
                 `RIVAL_LEVEL_FACTOR` times the level
named            a class that lies in all S of size s and has no rivals
one of           what else lies in one of them, or in a rival: the rows cannot tell them apart
nobody           if there is none up to half of the classes: it is no matter of single classes
temperature      if one slope for all classes is enough (the nested models), it is said once; unless
                 sets of classes explain more, by BIC
beside a slope   the same sets, with one slope of all classes outside S beside them; fewer classes
                 than without a slope, and at most a quarter
lapse, pair      labels that follow no prediction, or two classes that are confused
                 (`_diagnostics/mixtures`)
===============  ===========================================================================

A lapse, a confused pair, and classes beside a slope are named only where their score
(`_diagnostics/mixtures`; that of classes beside a slope is the slope's and that of shifts and
slopes of the set's classes after it) is better by `MIN_SCORE_LEAD`, 20 times likelier, than that of
every rival, and where what they leave is not rejected. Rivals are one another, the nested models,
and the sets of classes that leaving out accepts.

If s classes are off, a calibrated one is named only if H_S* is wrongly rejected, or if fewer
classes seem to be enough, where rivals speak up: docs/explanation/miscalibrated-classes.md has the
measured frequencies. How a named class is wrong is in `_diagnostics/left_out`.
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
from .._utils.formatting import Table, align_columns, ellipsis, format_number
from .._utils.results import Result, none_for_nonfinite
from .._utils.statements import Statement
from .._validation.predictions import Predictions
from .left_out import (
    LeaveClassesOutTest,
    LeaveOut,
    MiscalibratedClass,
    bic_lead_of_classes,
    describe_class,
    smallest_accepted_sets,
    split_named_and_alternatives,
)
from .mixtures import (
    MIN_SCORE_LEAD,
    FittedMixture,
    Mixture,
    MixtureRows,
    constant_lapse_rate_pvalue,
    fit_confused_pair,
    fit_lapse,
    has_confident_rows,
)
from .nested_models import NestedModels

Rival = Literal["", "lapse", "pair", "slope"]
MAX_SCORED_SETS = 4
"""Accepted sets of classes that have a score: each costs a fit for each of its classes; a round
number."""


@dataclass(frozen=True)
class ClassesBesideSlope:
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
        accepted: list[LeaveClassesOutTest],
        nested_models: NestedModels,
        *,
        alpha: float,
        seed: int,
    ) -> None:
        self.rows = MixtureRows(predictions, seed)
        self.nested_models = nested_models
        self.alpha = alpha
        self.seed = seed
        self.predictions = self.rows.predictions
        self.lapse: FittedMixture | None = None
        self.pair: FittedMixture | None = None
        # Where a label had probability 0, how likely a mixture is depends on what the 0 became.
        if predictions.n_clipped_true == 0:
            self.lapse = fit_lapse(self.rows)
            self.pair = fit_confused_pair(self.rows)
        self.temperature = self.rows.best_temperature_score()
        # Of many rows mixtures are fitted to a part, whose likelihood ratios are as much smaller.
        part = self.predictions.n_samples / predictions.n_samples
        price = self.rows.log_total
        scores = {
            row.model: part * row.statistic - row.df * price
            for row in nested_models.rows
        }
        self.alike = max(self.temperature, scores["shift"])
        # Larger models have no sentence, and may contain what is named: they need not be far worse.
        self.larger = max(scores.values())
        scored_sets = [test.classes for test in accepted[:MAX_SCORED_SETS]]
        self.sets = max(map(self._set_score, scored_sets), default=-math.inf)
        self.fewest = min(
            (len(test.classes) for test in accepted), default=predictions.n_classes
        )

    def _set_score(
        self, classes: frozenset[int], predictions: Predictions | None = None
    ) -> float:
        """Return the score of a set of classes, each with a shift and a slope."""
        if predictions is None:
            predictions = self.predictions
        n_sets = math.comb(predictions.n_classes, len(classes))
        return bic_lead_of_classes(predictions, classes) - 2.0 * math.log(n_sets)

    @cached_property
    def likeliest_mixture(self) -> FittedMixture | None:
        """The lapse or the pair, where it is far likelier than all else; whatever it leaves."""
        found = [fitted for fitted in (self.lapse, self.pair) if fitted is not None]
        if not found:
            return None
        *others, best = sorted(found, key=lambda fitted: fitted.mixture.score)
        # Not against the larger nested models: they may contain what is named (`larger`).
        rivals = [self.alike, self.sets, *(other.mixture.score for other in others)]
        score = best.mixture.score
        margin = score - max(rivals)
        if margin < MIN_SCORE_LEAD or score < self.larger:
            return None
        return replace(best, mixture=replace(best.mixture, margin=margin))

    @cached_property
    def mixture(self) -> Mixture | None:
        """The same where it leaves nothing: then it is named."""
        best = self.likeliest_mixture
        if best is None or not self._is_remainder_calibrated(best):
            return None
        is_lapse = best.mixture.model == "lapse"
        if is_lapse and not has_confident_rows(self.rows, best):
            return None
        return best.mixture

    def _is_remainder_calibrated(self, fitted: FittedMixture) -> bool:
        """Whether what a mixture leaves is not rejected."""
        is_lapse = fitted.mixture.model == "lapse"
        if is_lapse and constant_lapse_rate_pvalue(self.rows, fitted) <= self.alpha:
            return False
        # As predictions of its own: H_S of the empty set says whether all classes are calibrated.
        explained = replace(self.predictions, probs=fitted.probs, logits=None)
        test_classes_without = LeaveOut(explained, alpha=self.alpha, seed=self.seed)
        return test_classes_without([]).pvalue > self.alpha

    def find_rival(self, kind: str) -> Rival:
        """Return the mixture that speaks against what is said otherwise: of classes, a slope, ...

        It is far likelier, though it leaves something; or it is a lapse that cannot be told from
        one slope, or is likelier than the classes. A pair does not speak against single classes,
        which it consists of.
        """
        is_classes = kind in ("classes", "one_of")
        if self.likeliest_mixture is not None:
            if self.likeliest_mixture.mixture.model == "lapse":
                return "lapse"
            return "" if is_classes else "pair"
        if self.lapse is None:
            return ""
        if is_classes:
            score_to_beat = self.sets
        elif kind == "temperature":
            score_to_beat = self.temperature - MIN_SCORE_LEAD
        else:
            return ""
        is_near = self.lapse.mixture.score > score_to_beat
        return "lapse" if is_near and self._is_remainder_calibrated(self.lapse) else ""

    def find_classes_beside_slope(self) -> ClassesBesideSlope | None:
        """Return the classes that are off beside one slope of all, where that is far likelier."""
        slope, low, high = self.nested_models.slope
        is_off = slope > 0.0 and (high < 1.0 or low > 1.0)
        n_classes = self.predictions.n_classes
        # A slope beside classes is worth saying only if fewer classes are then off, and few of all.
        most = min(self.fewest - 1, max(1, n_classes // 4))
        if self.nested_models.simple == "temperature" or not is_off or most < 1:
            return None
        tests = LeaveOut(
            self.predictions, alpha=self.alpha, seed=self.seed, slope=slope
        )
        if tests([]).pvalue > self.alpha:
            return None
        singles = [tests([k]) for k in range(n_classes)]
        accepted = smallest_accepted_sets(tests, singles, self.alpha, max_size=most)
        if not accepted:
            return None
        best = max(accepted, key=lambda test: test.pvalue)
        tempered = self.rows.scale_predictions(best.slope)
        score = self.rows.slope_score(best.slope) + self._set_score(
            best.classes, tempered
        )
        rivals = [self.alike]
        rivals += [
            fitted.mixture.score
            for fitted in (self.lapse, self.pair)
            if fitted is not None
        ]
        if score < max(rivals) + MIN_SCORE_LEAD or score < self.larger:
            return None
        named, others = split_named_and_alternatives(tests, accepted, self.alpha)
        interval = self.rows.slope_interval(best.classes, best.slope)
        return ClassesBesideSlope(
            named, others, interval, tempered, margin=score - self.sets
        )


Kind = Literal[
    "classes",
    "one_of",
    "temperature",
    "shift",
    "spread",
    "lapse",
    "pair",
    "two",
    "none",
]
NEAREST_MAP_CAVEAT = (
    "These are the nearest shifts and slopes; they are not, "
    "or not all of, what is wrong here."
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
OTHER_SHAPE_CAVEAT = (
    "What is wrong is no shift or slope; what follows is said of these alone."
)
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
        return {**super().to_dict(), "left_out": none_for_nonfinite(self.table.rows())}

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
        said = []
        if not fits and self.kind != "none":
            said.append(Statement("attribution.nearest", NEAREST_MAP_CAVEAT, "doubt"))
        if self.beside:
            said.append(self._all_classes_statement(fits))
        said += [one_class.statement(self.level) for one_class in self.details]
        if self.one_of:
            said.append(self._alternatives_statement())
        if self.kind in ("temperature", "shift"):
            said.append(self._all_classes_statement(fits))
        elif self.kind == "two":
            words = (
                "With two classes no single one can be named: what one has too much of, the "
                f"other has too little of.{self._overall_slope_text('.')}"
            )
            said.append(Statement("attribution.none", words, "bad"))
        elif self.kind == "spread":
            words = (
                "No single classes can be named: the others do not agree with the labels either, "
                "whichever few are left out."
            )
            words += REJECTED_RIVAL_TEXTS[self.rival] or self._overall_slope_text(
                ", but not all alike."
            )
            said.append(Statement("attribution.spread", words, "bad"))
        return said

    def _overall_slope_text(self, end: str) -> str:
        """Return in which direction one slope for all would go, where that is sure."""
        if self.slope_high < 1.0 or self.slope_low > 1.0:
            kind = "overconfident" if self.slope < 1.0 else "underconfident"
            return f" On the whole they are {kind}{end}"
        return ""

    def _alternatives_statement(self) -> Statement:
        quoted = [[repr(ellipsis(label)) for label in labels] for labels in self.one_of]
        alternatives = [" with ".join(labels) for labels in quoted]
        if self.rival:
            alternatives.append(ALTERNATIVE_TEXTS[self.rival])
        n_classes = len({label for labels in self.one_of for label in labels})
        are_single = all(len(labels) == 1 for labels in self.one_of)
        also = "also " if self.labels else ""
        are_most_classes = n_classes > max(2, len(self.table) // 2)
        if are_single and are_most_classes and not self.rival:
            words = f"Some class is {also}off, and these rows cannot tell which."
        elif len(alternatives) > MAX_ALTERNATIVES:
            which = "One class" if are_single else "One class or more"
            words = f"{which} of {n_classes} is {also}off, and these rows cannot tell which."
        else:
            words = (
                f"One of these is {also}off, and these rows cannot tell which: "
                f"{', or '.join(alternatives)}."
            )
        return Statement(
            "attribution.one_of", words, "doubt", {"alternatives": self.one_of}
        )

    def _all_classes_statement(self, fits: bool) -> Statement:
        """Return in which way all classes are off at once."""
        words = f"{self._all_classes_text(fits)} {self._all_classes_caveat(fits)}"
        numbers = {"kind": self.kind, "slope": self.slope, "beyond": self.beyond}
        if self.kind != "shift":
            numbers |= {"low": self.slope_low, "high": self.slope_high}
        return Statement("attribution.all", words, "bad", numbers)

    def _all_classes_text(self, fits: bool) -> str:
        if self.kind == "shift":
            return (
                "Many classes are off, in how often they are predicted: their shares "
                "have shifted."
            )
        if self.slope <= 0.0:
            return "All classes are ranked the wrong way: what is predicted more comes true less."
        if self.slope < 1.0:
            kind = "overconfident"
            remedy = ("divide", "divides")
            factor = self._logit_factor_text(-1)
        else:
            kind = "underconfident"
            remedy = ("multiply", "multiplies")
            factor = self._logit_factor_text(1)
        if fits:
            return f"All classes are {kind}, alike: {remedy[0]} the logits by {factor}."
        return (
            f"On the whole the classes are {kind}; the nearest single factor {remedy[1]} the "
            f"logits by {factor}."
        )

    def _all_classes_caveat(self, fits: bool) -> str:
        if self.beside:
            caveat = "What follows is said of the probabilities after that."
        elif not fits:
            caveat = "That alone does not mend it."
        else:
            caveat = "No single class stands out."
            if self.beyond == "full":
                caveat += " That is not all: how classes are confused matters, too."
            elif self.beyond:
                caveat += " That is not all."
        if self.rival:
            caveat += f" {LAPSE_ALTERNATIVE_TEXT}"
        return caveat

    def _logit_factor_text(self, power: int) -> str:
        """Return what the logits are multiplied (power 1) or divided by (-1), with its interval."""
        value = self.slope**power
        low, high = sorted([self.slope_low**power, self.slope_high**power])
        if not 0.0 < low <= high < math.inf:
            return format_number(value)
        return f"{format_number(value)} ({format_number(low)} to {format_number(high)})"

    def __str__(self) -> str:
        parts = [statement.text for statement in self.statements()]
        if not parts:
            parts = ["Nobody: nothing was rejected."]
        rows = [["without", "p", "then most off"]]
        for row in self.table.rows():
            most_off = ellipsis(row["most_off"])
            rows.append(
                [ellipsis(row["class"]), format_number(row["pvalue"]), most_off]
            )
        if len(rows) > 1:
            parts.append(align_columns(rows))
        return "\n".join(parts)

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
    entropy = seed_entropy(seed)
    n_classes = predictions.n_classes
    if not test.rejects(alpha) or n_classes == 2:
        nobody = _empty_attribution(
            predictions, "two" if n_classes == 2 else "none", alpha, entropy
        )
        if nested_models is None:
            return nobody
        return replace(nobody, **_slope_fields(nested_models.slope))

    leave_out = LeaveOut(
        predictions,
        alpha=alpha,
        seed=entropy,
        n_resamples=min(n_resamples, N_RESAMPLES_ATTRIBUTION),
        work=work,
    )
    singles = [leave_out([k]) for k in range(n_classes)]
    accepted = smallest_accepted_sets(leave_out, singles, alpha)
    named, others = split_named_and_alternatives(leave_out, accepted, alpha)
    kind: Kind = "spread"
    if named:
        kind = "classes"
    elif others:
        kind = "one_of"
    attributed = AttributionColumns(kind, named, others, predictions)
    if nested_models is not None and not nested_models.separated:
        attributed = _prefer_model_of_all_classes(
            attributed, accepted, nested_models, alpha
        )
        explanations = Explanations(
            predictions, accepted, nested_models, alpha=alpha, seed=entropy
        )
        attributed = revise_by_rival_explanations(attributed, explanations)

    beyond = ""
    is_all_alike = attributed.kind in ("temperature", "shift")
    if (
        nested_models is not None
        and is_all_alike
        and nested_models.chosen != attributed.kind
    ):
        beyond = nested_models.chosen
    # Bonferroni: a share and a slope of each named class, which hold all together.
    level = 1.0 - alpha / (2 * max(1, len(attributed.named)))
    columns = sorted(attributed.named)
    details = [
        describe_class(attributed.judged, columns, k, level) for k in attributed.named
    ]
    details.sort(key=lambda miscalibrated_class: -miscalibrated_class.change)
    return ClassAttribution(
        labels=tuple(miscalibrated_class.label for miscalibrated_class in details),
        one_of=_labels_of_column_sets(predictions, attributed.others),
        kind=attributed.kind,
        details=tuple(details),
        table=_leave_one_out_table(predictions, singles),
        **_slope_fields(attributed.slope),
        beyond=beyond,
        alpha=alpha,
        level=1.0 - alpha,
        n_samples=leave_out.n_samples,
        seed=entropy,
        beside=attributed.judged is not predictions,
        mixture=attributed.mixture,
        rival=attributed.rival,
    )


@dataclass(frozen=True)
class AttributionColumns:
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


def _prefer_model_of_all_classes(
    attributed: AttributionColumns,
    accepted: list[LeaveClassesOutTest],
    nested_models: NestedModels,
    alpha: float,
) -> AttributionColumns:
    """Say instead that all classes are off alike, where one temperature or shifts explain it."""
    predictions = attributed.judged
    model = _model_of_all_classes(
        nested_models, alpha, spread=attributed.kind == "spread"
    )
    if model == "shift":
        return AttributionColumns("shift", frozenset(), [], predictions)
    if model == "temperature" and not _do_sets_beat_temperature(
        predictions, accepted, nested_models
    ):
        attributed = AttributionColumns("temperature", frozenset(), [], predictions)
    return replace(attributed, slope=nested_models.slope)


def revise_by_rival_explanations(
    attributed: AttributionColumns, explanations: Explanations
) -> AttributionColumns:
    """Hold what shifts and slopes say to what a mixture, or a slope beside classes, explains."""
    named = attributed.named
    mixture = explanations.mixture
    if mixture is not None:
        pair = frozenset(map(attributed.judged.classes.index, mixture.labels))
        return replace(
            attributed,
            kind="pair" if pair else "lapse",
            named=pair,
            others=[],
            mixture=mixture,
        )

    beside = (
        explanations.find_classes_beside_slope()
        if explanations.likeliest_mixture is None
        else None
    )
    if beside is not None and beside.margin >= MIN_SCORE_LEAD:
        kind: Kind = "classes" if beside.named else "one_of"
        return AttributionColumns(
            kind, beside.named, beside.others, beside.tempered, beside.slope
        )
    if beside is not None and beside.margin > -MIN_SCORE_LEAD and named - beside.named:
        # A class that is needed only if there is no slope of all is not named.
        named_both_ways = named & beside.named
        return replace(
            attributed,
            kind="classes" if named_both_ways else "one_of",
            named=named_both_ways,
            others=[named - beside.named, *attributed.others, *beside.others],
            rival="slope",
        )

    rival = explanations.find_rival(attributed.kind)
    if rival and explanations.likeliest_mixture is not None:
        return replace(
            attributed, kind="spread", named=frozenset(), others=[], rival=rival
        )
    if rival and named:
        others = [named | classes for classes in attributed.others] or [named]
        return replace(
            attributed, kind="one_of", named=frozenset(), others=others, rival=rival
        )
    return replace(attributed, rival=rival)


def _labels_of_column_sets(
    predictions: Predictions, sets: list[frozenset[int]]
) -> tuple[tuple[Any, ...], ...]:
    """Return the classes of sets of columns."""
    return tuple(tuple(predictions.classes[j] for j in sorted(own)) for own in sets)


def _slope_fields(slope: tuple[float, float, float]) -> dict[str, Any]:
    """Return a slope and its interval by their names."""
    value, low, high = slope
    return {"slope": value, "slope_low": low, "slope_high": high}


def _empty_attribution(
    predictions: Predictions, kind: Kind, alpha: float, seed: int
) -> ClassAttribution:
    """Return what there is to say without a single test."""
    return ClassAttribution(
        labels=(),
        one_of=(),
        kind=kind,
        details=(),
        table=_leave_one_out_table(predictions, []),
        slope=math.nan,
        slope_low=math.nan,
        slope_high=math.nan,
        beyond="",
        alpha=alpha,
        level=1.0 - alpha,
        n_samples=predictions.n_samples,
        seed=seed,
    )


def _leave_one_out_table(
    predictions: Predictions, singles: list[LeaveClassesOutTest]
) -> Table:
    """Return a row for each class that was left out alone."""
    classes = predictions.classes
    columns = [k for test in singles for k in test.classes]
    return Table(
        {
            "class": [classes[k] for k in columns],
            "pvalue": [test.pvalue for test in singles],
            "method": [test.method for test in singles],
            "statistic": [test.statistic for test in singles],
            "most_off": [
                classes[int(test.kept_classes_most_off_first[0])] for test in singles
            ],
        }
    )


def _model_of_all_classes(
    nested_models: NestedModels, alpha: float, *, spread: bool
) -> Literal["temperature", "shift"] | None:
    """Return the model that says what is wrong with all classes at once, or None.

    One temperature where it is enough; where no set of classes is, also shifts, and either of them
    where it is not enough but the best of all models by BIC.
    """
    best_by_bic = min(nested_models.rows, key=lambda row: row.bic).model

    def explains(model: Literal["temperature", "shift"]) -> bool:
        is_best = model == nested_models.simple or (spread and model == best_by_bic)
        return is_best and nested_models.row(model).pvalue <= alpha

    if explains("temperature"):
        return "temperature"
    if spread and explains("shift"):
        return "shift"
    return None


def _do_sets_beat_temperature(
    predictions: Predictions,
    accepted: list[LeaveClassesOutTest],
    nested_models: NestedModels,
) -> bool:
    """Whether a set of classes, each with a shift and a slope, beats one temperature by BIC."""
    total = float(predictions.class_weight.sum())
    temperature_bic = nested_models.row("temperature").statistic - math.log(total)
    return any(
        bic_lead_of_classes(predictions, test.classes) > temperature_bic
        for test in accepted
    )
