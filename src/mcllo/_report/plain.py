"""The first screen in plain words, for a person who has never heard of log odds.

==========  ========================================================================================
meaning     what the verdict says, and what it does not
size        "when it says 90 %, it is right about 84 %", or how far probabilities are off on average
levels      how often it is right, at a few levels
buts        what takes the verdict back: a mistake in the rows, an error of another shape
wrong       whose fault it is: classes by what is wrong with them, each kind of error said once
alerts      what must be known before all this
==========  ========================================================================================

They are made from the objects behind the statements of `_assessment/words`, which name p-values,
statistics and parameters; here none is named. After a hint that the rows themselves are mistaken
nothing is said of sizes and classes. Levels are those of the fitted map, so that they are left out
where another test shows that this map is not the whole truth.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from .._assessment.assessment import Assessment
from .._assessment.verdict import Verdict
from .._diagnosis.culprit import Culprit
from .._diagnosis.culprits import Culprits
from .._ground.statements import Statement, pick
from .._ground.text import ellipsis, format_count
from .._inference.sizes.levels import RightAt
from .._inference.sizes.words import shown_level
from .views import Names, Right, name_cell, percent

MOST_NAMED = 6
"""Classes that a line of the first screen names."""
EXTREME = "nearer to 0 and 100 % than they should be"
TIMID = "further from 0 and 100 % than they could be"
CONFUSED = (
    "But that is not all: it also matters which classes are taken for which, and a repair of each "
    "class by itself does not mend that. Compare richer repairs too, such as dirichlet."
)
DIFFER = "But that is not all: classes differ in how far they are off."
SHARES = {"low": "Predicted too rarely", "high": "Predicted too often"}
SLOPES = {
    "extreme": f"Too extreme, {EXTREME}",
    "timid": f"Too timid, {TIMID}",
    "wrong_way": "Upside down, less often true where predicted more",
}
"""What can be wrong with a class's share of the rows and with its slope, and how that is said."""


def meaning(a: Assessment, judged: Verdict, said: list[Statement]) -> str:
    """Return what the verdict means."""
    if judged.kind == "cannot_tell":
        return _cannot_tell(a, judged)
    if judged.other:
        return (
            "That is said of the usual kinds of error: classes that are too extreme, too timid, "
            "predicted too often or too rarely."
        )
    return "".join(text.text for text in pick(said, "meaning"))


def _cannot_tell(a: Assessment, judged: Verdict) -> str:
    """Return why these rows cannot tell."""
    robust, n = a.details.robust, a.test.n_resamples
    few_draws = bool(n) and 1.0 / (n + 1) > judged.alpha
    if robust is not None and robust.cannot_tell(judged.alpha) and not few_draws:
        if robust.kind == "cluster":
            return (
                f"They come in {format_count(robust.n_groups)} groups, and rows of a group may "
                "depend on each other: so few groups cannot tell an error from chance."
            )
        return "So few rows, which count so unequally, cannot tell an error from chance."
    if math.isnan(a.test.pvalue):
        return "No answer can be computed from them."
    if few_draws:
        return f"The answer is simulated, and {format_count(n)} draws are too few for it."
    return judged.reason


def size(a: Assessment, judged: Verdict, said: list[Statement]) -> str:
    """Return how large the error is: the level that is most off, or the mean over all classes."""
    if not judged.rejected or a.details.hints:
        return ""
    if (found := example(a, judged)) is not None:
        known = as_right(found)
        ends = f" ({known.interval})" if known.interval else ""
        return f"For example, when it says {known.says}, it is right about {known.right}{ends}."
    words = [text.text for text in said if text.kind == "size"]
    if judged.kind == "matters" and a.size.levels:
        words.append("The most probable class is right about as often as it says.")
    return " ".join(words)


def example(a: Assessment, judged: Verdict) -> RightAt | None:
    """Return the level that is most off, where that says how large the error is."""
    if judged.kind != "matters" or a.details.hints:
        return None
    off = [v for v in a.size.levels if not v.low <= v.says <= v.high]
    found = max(off, key=lambda v: abs(v.right - v.says), default=None)
    small = found is None or abs(found.right - found.says) < 0.5 * a.size.mean_change
    return None if small else found


def as_right(level: RightAt) -> Right:
    """Return a level as words."""
    return Right(*shown_level(level))


def levels(a: Assessment, judged: Verdict) -> tuple[Right, ...]:
    """Return how often it is right, at the levels that the rows support."""
    if judged.kind == "cannot_tell" or judged.other or a.details.hints:
        return ()
    return tuple(as_right(level) for level in a.size.levels)


BUTS = {
    "hint.own_rows": "But that is no news: they seem to have been repaired on these very rows.",
    "hint.columns": "But that may be no fault of theirs: the columns seem to be mixed up.",
    "hint.rows": "But that may be no fault of theirs: the labels seem to be those of other rows.",
}
"""What each hint takes back."""


def buts(a: Assessment, judged: Verdict) -> tuple[str, ...]:
    """Return what takes the verdict back, in part or as a whole."""
    found = [BUTS.get(hint.kind, "But read first what stands above.") for hint in a.details.hints]
    if judged.other:
        found.append(
            "But another check finds something wrong: an error of another shape, whose size is "
            "not measured here. Look for diamonds in the pictures of single classes, below."
        )
    return tuple(found)


def wrong(
    a: Assessment, judged: Verdict, culprits: Culprits | None, said: list[Statement]
) -> tuple[Names, ...]:
    """Return whose fault it is, each kind of error once."""
    if not judged.rejected or a.details.hints:
        return ()
    found = [] if culprits is None else _of_classes(a, judged, culprits, said)
    return (*found, *_of_subgroups(a, judged))


def _of_classes(
    a: Assessment, judged: Verdict, culprits: Culprits, said: list[Statement]
) -> list[Names]:
    """Return which classes are off and how, and what that leaves unsaid."""
    found = _groups(culprits)
    if culprits.kind == "two":
        found += two_classes(a, judged.alpha)
    elif culprits.kind in ("temperature", "shift"):
        found.append(Names(_all_classes(culprits)))
    found += [Names(text.text) for text in pick(said, "culprit.one_of", "culprit.spread")]
    ladder = a.details.ladder
    if ladder is not None and ladder.chosen == "full":
        found.append(Names(CONFUSED, but=True))
    elif culprits.beyond:
        found.append(Names(DIFFER, but=True))
    return found


def _of_subgroups(a: Assessment, judged: Verdict) -> list[Names]:
    """Return that one repair does not suit all subgroups, and which of them are off."""
    divided = a.subgroups
    if divided is None or not divided.test.rejects(judged.alpha):
        return []
    verdicts = divided.decide(judged.alpha, judged.tolerance)
    ranked = divided.ranked(judged.alpha, judged.tolerance)
    off = [divided.groups[k].name for k in ranked if verdicts[k].kind == "matters"]
    lead = f"But rows differ by {ellipsis(divided.by)}, and one repair does not suit them all"
    if not off:
        return [Names(f"{lead}.", but=True)]
    return [replace(_named(f"{lead}. Off", [(name, "") for name in off]), but=True)]


def _groups(culprits: Culprits) -> list[Names]:
    """Return the named classes by what is wrong with them."""
    found = []
    for kind, lead in SHARES.items():
        own = [culprit for culprit in culprits.details if culprit.share_kind == kind]
        found.append(_named(lead, [(c.label, _shares(c.predicted, c.observed)) for c in own]))
    for kind, lead in SLOPES.items():
        own = [culprit for culprit in culprits.details if culprit.slope_kind == kind]
        found.append(_named(lead, [(c.label, _given(c)) for c in own]))
    own = [c for c in culprits.details if not (c.share_kind or c.slope_kind)]
    found.append(_named("Off, in a way that these rows do not show", [(c.label, "") for c in own]))
    return [group for group in found if group.names]


def _named(lead: str, classes: list[tuple[Any, str]]) -> Names:
    """Return a sentence that names the first of these classes."""
    shown = tuple((name_cell(label), words) for label, words in classes[:MOST_NAMED])
    more = len(classes) - len(shown)
    return Names(lead, shown, f"and {more} more" if more else "")


def _shares(predicted: float, observed: float) -> str:
    return f"{percent(predicted)} on average, came true in {percent(observed)}"


def _given(culprit: Culprit) -> str:
    """Return how often a class comes true where its probability is large."""
    if math.isnan(culprit.true):
        return ""
    return f"given {100 * culprit.given:g} %, true in {percent(culprit.true)}"


def two_classes(a: Assessment, alpha: float) -> list[Names]:
    """Return what is wrong with two classes, which are always off together."""
    low, high = a.fit.confidence_interval(1.0 - alpha).gamma[0].tolist()
    kind = "extreme" if high < 1.0 else "timid" if low > 1.0 else ""
    found = [Names(f"{SLOPES['wrong_way' if high < 0.0 else kind]}.")] if kind else []
    large = a.in_the_large.rows()
    for row in large:
        if row["adjusted"] <= alpha and row["observed"] > row["predicted"]:
            shares = _shares(row["predicted"], row["observed"])
            found.insert(0, _named(SHARES["low"], [(row["class"], shares)]))
    return found or [Names("Both classes are off, in a way that these rows do not show.")]


def _all_classes(culprits: Culprits) -> str:
    """Return how all classes are wrong, alike."""
    if culprits.kind == "shift":
        return "Many classes are predicted too often or too rarely. No single one is to blame."
    if culprits.slope <= 0.0:
        return "All classes alike: what is predicted more comes true less."
    how = f"too extreme, {EXTREME}" if culprits.slope < 1.0 else f"too timid, {TIMID}"
    return f"All classes alike: {how}. No single one is to blame."


def alerts(a: Assessment, hints: list[Statement]) -> tuple[str, ...]:
    """Return what no reader may miss."""
    found, p = [hint.text for hint in hints], a.predictions
    if not a.fit.converged:
        why = "the further, the better" if a.fit.separated else "many repairs fit equally well"
        found.append(
            f"These rows do not say how far the probabilities should move: {why}. To repair them, "
            "use a penalty."
        )
    if p.n_clipped_true:
        labels = _counted(p.n_clipped_true, "label")
        if p.n_clipped > p.n_zeros:  # a floor was asked for that raised more than zeros
            found.append(
                f"{labels} had a probability of 0 or below {p.clip:g}. What has probability 0 "
                "cannot happen: where it did, the predictions as given are refuted. This page is "
                "about the raised ones."
            )
        else:
            found.append(
                f"{labels} had probability 0: the predictions as given said that this could not "
                "happen, and are refuted whatever else is found. This page is about predictions "
                f"whose zeros were raised to {p.clip:g}."
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


def _counted(n: int, what: str) -> str:
    return f"{format_count(n)} {what}{'' if n == 1 else 's'}"
