"""The first screen in plain words, for a person who has never heard of log odds.

=======  ===========================================================================================
meaning  what the verdict says, and what it does not
size     "when it says 90 %, it is right about 84 %", or how far probabilities are off on average
levels   how often it is right, at a few levels
buts     what takes the verdict back: a mistake in the rows, an error of another shape
wrong    which classes are miscalibrated: classes by what is wrong with them, each kind of error
         said once
alerts   what must be known before all this
=======  ===========================================================================================

They are made from the objects behind the statements of `_assessment/sentences`, which name
p-values, statistics and parameters; here none is named. After a data check says that the rows
themselves are mistaken nothing is said of sizes and classes. Levels are what the rows near them
show; no map is in them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from ..._assessment.assessment import Assessment
from ..._assessment.sentences import verdict_meaning
from ..._assessment.verdict import Verdict
from ..._diagnostics.attribution import ClassAttribution
from ..._diagnostics.left_out import MiscalibratedClass
from ..._inference.effect_size_text import level_texts
from ..._inference.levels import RightAt
from ..._utils.formatting import ellipsis, format_count
from ..._utils.statements import Statement, select_statements
from .views import AccuracyAtLevel, ClassSentence, name_cell, percent

MAX_NAMED_CLASSES = 6
"""Classes that a line of the first screen names."""
OVERCONFIDENT_TEXT = "nearer to 0 and 100 % than they should be"
UNDERCONFIDENT_TEXT = "further from 0 and 100 % than they could be"
CONFUSED_CLASSES_TEXT = (
    "But that is not all: it also matters which classes are taken for which, and a recalibration "
    "of each "
    "class by itself does not mend that. Compare richer recalibrations too, such as dirichlet."
)
CLASSES_DIFFER_TEXT = "But that is not all: classes differ in how far they are off."
NEAREST_ERROR_TEXT = (
    "Of the usual kinds of error these are the nearest; they are not, or not all of, what is wrong "
    "here."
)
"""What stands before classes that the nearest shifts and slopes name."""
CLASS_SHARE_TEXTS = {"low": "Predicted too rarely", "high": "Predicted too often"}
SLOPE_TEXTS = {
    "overconfident": f"Overconfident, {OVERCONFIDENT_TEXT}",
    "underconfident": f"Underconfident, {UNDERCONFIDENT_TEXT}",
    "wrong_way": "Upside down, less often true where predicted more",
}
"""What can be wrong with a class's share of the rows and with its slope, and how that is said."""


USUAL_KINDS_TEXT = (
    "of the usual kinds (overconfident, underconfident, too frequent, too rare)"
)
"""Shifts and slopes of the log odds, for a person who has never heard of them."""


def verdict_meaning_text(a: Assessment, judged: Verdict) -> str:
    """Return what the verdict means."""
    if judged.kind == "inconclusive":
        return _why_inconclusive_text(a, judged)
    if judged.omnibus_alone and not judged.rejected:
        return (
            "That is said of the usual kinds of error: classes that are overconfident, "
            "underconfident, "
            "predicted too often or too rarely."
        )
    return verdict_meaning(a, judged, USUAL_KINDS_TEXT)


def _why_inconclusive_text(a: Assessment, judged: Verdict) -> str:
    """Return why these rows cannot tell."""
    robust = a.details.robust
    n_draws = a.test.n_resamples
    has_few_draws = bool(n_draws) and 1.0 / (n_draws + 1) > judged.alpha
    if robust is not None and not robust.can_reject(judged.alpha) and not has_few_draws:
        if robust.kind == "cluster":
            return (
                f"They come in {format_count(robust.n_groups)} groups, and rows of a group may "
                "depend on each other: so few groups cannot tell an error from chance."
            )
        return (
            "So few rows, which count so unequally, cannot tell an error from chance."
        )
    if math.isnan(a.test.pvalue):
        return "No answer can be computed from them."
    if has_few_draws:
        return f"The answer is simulated, and {format_count(n_draws)} draws are too few for it."
    return judged.reason


def error_size_text(a: Assessment, judged: Verdict, said: list[Statement]) -> str:
    """Return how large the error is: a level that is off, or the mean over all classes."""
    if not judged.rejected or a.details.data_checks:
        return ""
    words = [text.text for text in said if text.kind == "effect_size.at_least"]
    if (found := most_confident_level_off(a, judged)) is not None:
        known = as_right(found)
        ends = f" ({known.interval})" if known.interval else ""
        words = [
            f"For example, when it says {known.says}, it is right about {known.right}{ends}."
        ]
    elif judged.kind == "miscalibrated" and (off := _levels_visibly_off(a)):
        # smaller than the error on average, which is no reason to keep silent
        known = as_right(off[-1])
        words.append(
            f"When it says {known.says}, it is right about {known.right} "
            f"({known.interval})."
        )
    elif judged.kind == "miscalibrated" and a.effect_size.levels and _is_as_accurate(a):
        words.append("The most probable class is right about as often as it says.")
    return " ".join([*words, *_recalibration_gain_sentences(a)])


def _recalibration_gain_sentences(a: Assessment) -> list[str]:
    """Return whether a recalibration of these rows predicts rows better that it did not see."""
    gain = a.recalibration_gain
    if math.isnan(gain.gain):
        return []
    lead = "A recalibration learned on four fifths of these rows"
    if gain.low > 0.0:
        return [f"{lead} predicts the others better, beyond chance."]
    return [f"{lead} does not predict the others better beyond chance."]


MIN_VISIBLE_GAP = 0.02
"""Two percentage points between what is said and how often it is right."""


def most_confident_level_off(a: Assessment, judged: Verdict) -> RightAt | None:
    """Return the surest level that is off, where that says how large the error is.

    Not the one that is most off: it is so by chance, too, and its interval would hold the truth
    less often than it says.
    """
    if judged.kind != "miscalibrated" or a.details.data_checks:
        return None
    large = [
        v
        for v in levels_off(a)
        if abs(v.right - v.says) >= 0.5 * a.effect_size.mean_change
    ]
    return large[-1] if large else None


def levels_off(a: Assessment) -> list[RightAt]:
    """Return the levels at which what these rows show is not what is said."""
    return [v for v in a.effect_size.levels if not v.low <= v.says <= v.high]


def _levels_visibly_off(a: Assessment) -> list[RightAt]:
    """Return those of them that somebody would notice: 99.5 for 99.9 % is as good as said."""
    return [v for v in levels_off(a) if abs(v.right - v.says) >= MIN_VISIBLE_GAP]


def _is_as_accurate(a: Assessment) -> bool:
    """Whether the accuracy is as expected, up to two standard errors.

    Levels are few: a difference spread over all rows shows here first.
    """
    expected = a.expected["accuracy"]
    n_rows = a.predictions.n_samples
    # at most this: rows of different probabilities vary less than rows of their mean
    standard_error = math.sqrt(expected * (1.0 - expected) / n_rows)
    return abs(a.metrics["accuracy"] - expected) <= 2.0 * standard_error


def as_right(level: RightAt) -> AccuracyAtLevel:
    """Return a level as words."""
    return AccuracyAtLevel(*level_texts(level))


def levels(a: Assessment, judged: Verdict) -> tuple[AccuracyAtLevel, ...]:
    """Return how often it is right, at the levels that the rows support."""
    if judged.kind == "inconclusive" or a.details.data_checks:
        return ()
    return tuple(as_right(level) for level in a.effect_size.levels)


DATA_CHECK_TEXTS = {
    "data_check.own_rows": "But that is no news: they seem to have been recalibrated on these "
    "very rows.",
    "data_check.columns": "But that may be no fault of theirs: the columns seem to be mixed up.",
    "data_check.rows": "But that may be no fault of theirs: the labels seem to be those of other "
    "rows.",
    "data_check.copies": "But that is surer than it should be: rows seem to be there more than "
    "once.",
}
"""What each data check takes back."""


def verdict_caveats(a: Assessment, judged: Verdict) -> tuple[str, ...]:
    """Return what takes the verdict back, in part or as a whole."""
    found = [
        DATA_CHECK_TEXTS.get(hint.kind, "But read first what stands above.")
        for hint in a.details.data_checks
    ]
    if judged.omnibus_alone and not judged.rejected:
        found.append(
            "But another check finds something wrong: an error of another shape, whose size is "
            "not measured here. Look for diamonds in the pictures of single classes, below."
        )
    if judged.rejected and judged.beyond and not found:
        found.append(OTHER_SHAPE)
    return tuple(found)


OTHER_SHAPE = (
    "The error has a shape of its own: it is not, or not only, that classes are overconfident, "
    "underconfident, predicted too often or too rarely. The levels show what these rows show."
)


def miscalibrated_class_sentences(
    a: Assessment,
    judged: Verdict,
    miscalibrated_classes: ClassAttribution | None,
    said: list[Statement],
) -> tuple[ClassSentence, ...]:
    """Return which classes are miscalibrated, each kind of error once."""
    if not judged.rejected or a.details.data_checks:
        return ()
    of_subgroups = _subgroup_sentences(a, judged)
    if miscalibrated_classes is None:
        return tuple(of_subgroups)
    return (*_class_sentences(a, judged, miscalibrated_classes, said), *of_subgroups)


def _class_sentences(
    a: Assessment,
    judged: Verdict,
    miscalibrated_classes: ClassAttribution,
    said: list[Statement],
) -> list[ClassSentence]:
    """Return which classes are off and how, and what that leaves unsaid."""
    if miscalibrated_classes.mixture is not None:
        return [
            ClassSentence(text.text)
            for text in select_statements(said, "attribution.lapse", "attribution.pair")
        ]
    found = [ClassSentence(NEAREST_ERROR_TEXT)] if judged.map_rejected else []
    found += (
        [ClassSentence(_all_classes(miscalibrated_classes))]
        if miscalibrated_classes.beside
        else []
    )
    found += _sentences_by_error_kind(miscalibrated_classes)
    if miscalibrated_classes.kind == "two":
        found += two_class_sentences(a, judged.alpha)
    elif miscalibrated_classes.kind in ("temperature", "shift"):
        alone = "" if judged.map_rejected else " No single one stands out."
        found.append(ClassSentence(f"{_all_classes(miscalibrated_classes)}{alone}"))
    found += [
        ClassSentence(text.text)
        for text in select_statements(said, "attribution.one_of", "attribution.spread")
    ]
    nested_models = a.details.nested_models
    if nested_models is not None and nested_models.chosen == "full":
        found.append(ClassSentence(CONFUSED_CLASSES_TEXT, but=True))
    elif miscalibrated_classes.beyond:
        found.append(ClassSentence(CLASSES_DIFFER_TEXT, but=True))
    return found


def _subgroup_sentences(a: Assessment, judged: Verdict) -> list[ClassSentence]:
    """Return that one recalibration does not suit all subgroups, and which of them are off."""
    divided = a.subgroups
    if divided is None or not divided.test.rejects(judged.alpha):
        return []
    verdicts = divided.decide(judged.alpha, judged.tolerance)
    ranked = divided.ranked(judged.alpha, judged.tolerance)
    off = [
        divided.groups[k].name for k in ranked if verdicts[k].kind == "miscalibrated"
    ]
    lead = (
        f"But rows differ by {ellipsis(divided.by)}, and one "
        "recalibration does not suit them all"
    )
    if not off:
        return [ClassSentence(f"{lead}.", but=True)]
    return [
        replace(_name_classes(f"{lead}. Off", [(name, "") for name in off]), but=True)
    ]


def _sentences_by_error_kind(
    miscalibrated_classes: ClassAttribution,
) -> list[ClassSentence]:
    """Return the named classes by what is wrong with them."""
    found = []
    for kind, lead in CLASS_SHARE_TEXTS.items():
        named = [
            (each.label, _predicted_and_observed_text(each.predicted, each.observed))
            for each in miscalibrated_classes.details
            if each.share_kind == kind
        ]
        found.append(_name_classes(lead, named))
    for kind, lead in SLOPE_TEXTS.items():
        named = [
            (each.label, _given_and_true(each))
            for each in miscalibrated_classes.details
            if each.slope_kind == kind
        ]
        found.append(_name_classes(lead, named))
    unclear = [
        (each.label, "")
        for each in miscalibrated_classes.details
        if not each.share_kind and not each.slope_kind
    ]
    found.append(_name_classes("Off, in a way that these rows do not show", unclear))
    return [group for group in found if group.names]


def _name_classes(lead: str, classes: list[tuple[Any, str]]) -> ClassSentence:
    """Return a sentence that names the first of these classes."""
    shown = tuple(
        (name_cell(label), words) for label, words in classes[:MAX_NAMED_CLASSES]
    )
    more = len(classes) - len(shown)
    return ClassSentence(lead, shown, f"and {more} more" if more else "")


def _predicted_and_observed_text(predicted: float, observed: float) -> str:
    return f"{percent(predicted)} on average, came true in {percent(observed)}"


def _given_and_true(miscalibrated_class: MiscalibratedClass) -> str:
    """Return how often a class comes true where its probability is large."""
    if math.isnan(miscalibrated_class.true):
        return ""
    given = 100 * miscalibrated_class.given
    return f"given {given:g} %, true in {percent(miscalibrated_class.true)}"


def two_class_sentences(a: Assessment, alpha: float) -> list[ClassSentence]:
    """Return what is wrong with two classes, which are always off together."""
    low, high = a.fit.confidence_interval(1.0 - alpha).gamma[0].tolist()
    found = []
    if high < 0.0:
        found.append(ClassSentence(f"{SLOPE_TEXTS['wrong_way']}."))
    elif high < 1.0:
        found.append(ClassSentence(f"{SLOPE_TEXTS['overconfident']}."))
    elif low > 1.0:
        found.append(ClassSentence(f"{SLOPE_TEXTS['underconfident']}."))
    for row in a.in_the_large.rows():
        if row["adjusted"] <= alpha and row["observed"] > row["predicted"]:
            shares = _predicted_and_observed_text(row["predicted"], row["observed"])
            found.insert(
                0, _name_classes(CLASS_SHARE_TEXTS["low"], [(row["class"], shares)])
            )
    return found or [
        ClassSentence("Both classes are off, in a way that these rows do not show.")
    ]


def _all_classes(miscalibrated_classes: ClassAttribution) -> str:
    """Return how all classes are wrong, alike."""
    if miscalibrated_classes.kind == "shift":
        return "Many classes are predicted too often or too rarely."
    if miscalibrated_classes.slope <= 0.0:
        return "All classes alike: what is predicted more comes true less."
    if miscalibrated_classes.slope < 1.0:
        how = f"overconfident, {OVERCONFIDENT_TEXT}"
    else:
        how = f"underconfident, {UNDERCONFIDENT_TEXT}"
    if miscalibrated_classes.beside:
        return f"All classes alike: {how}. After that, single classes are still off."
    return f"All classes alike: {how}."


def alert_texts(a: Assessment, data_checks: list[Statement]) -> tuple[str, ...]:
    """Return what no reader may miss."""
    p = a.predictions
    found = [check.text for check in data_checks]
    if not a.fit.converged:
        why = "many recalibrations fit equally well"
        if a.fit.separated:
            why = "the further, the better"
        found.append(
            f"These rows do not say how far the probabilities should move: {why}. To recalibrate "
            "them, use a penalty."
        )
    if p.n_clipped_true:
        labels = _count_words(p.n_clipped_true, "label")
        if p.n_clipped > p.n_zeros:  # a floor was asked for that raised more than zeros
            found.append(
                f"{labels} had a probability of 0 or below {p.clip:g}. What has probability 0 "
                "cannot happen: where it did, the predictions as given are refuted. This page is "
                "about the clipped ones."
            )
        else:
            found.append(
                f"{labels} had probability 0: the predictions as given said that this could not "
                "happen, and are refuted whatever else is found. This page is about predictions "
                f"whose zeros were clipped to {p.clip:g}."
            )
    if in_doubt(a):
        found.append(
            "How sure the verdict is could not be simulated, and is less certain than usual: see "
            "“How sure is that?”."
        )
    return tuple(found)


def in_doubt(a: Assessment) -> bool:
    """Whether something kept labels from being drawn where that would have been better."""
    return a.test.why is not None and bool(a.test.why.limits)


def _count_words(n: int, what: str) -> str:
    return f"{format_count(n)} {what}{'' if n == 1 else 's'}"
