"""What to do next, with the code that does it: in Python, or for the command line.

==============  ==================================================================================
matters         do not take the numbers at face value; compare repairs
little          leave them; compare repairs if small errors matter
none_found      use them; where another test rejects, look at the pictures
cannot_tell     collect more rows or groups
a hint          look at the rows first: nothing else makes sense before
a comparison    what its recommendation says, beside the verdict on the predictions as they are
==============  ==================================================================================

A report that the command line made speaks of its files and options, one made in Python of calls.
"""

from __future__ import annotations

import shlex
from typing import NamedTuple

from .._assessment.assessment import Assessment
from .._assessment.verdict import Verdict
from .._workflows.comparison import Comparison
from .._workflows.recommend import NOTHING
from ..exceptions import PYTHON, Words
from . import plain
from .repairs import title_of
from .views import Step, uncapital

HINTED = {
    "hint.own_rows": "Judge the repair on rows that it was not fitted to.",
    "hint.columns": "Put each column beside its own class, and run this again.",
    "hint.rows": "Put the labels beside their own rows, and run this again.",
}
"""What to do about each hint."""
LOOK = "Look into what stands at the top of this page, and run this again."


JUDGED = ("groups", "by", "weight_kind")
"""Options of `mcllo assess` that repairs do not have."""
UNLABELLED = (*JUDGED, "label", "classes", "baseline", "weight")
"""Those that rows without labels do not have."""


class Tongue(NamedTuple):
    """Whose words code is in: the shell's or Python's; `files` are the inputs.

    `words` say how options are typed, and which ones the files were read with.
    """

    shell: bool = False
    files: tuple[str, ...] = ()
    words: Words = PYTHON

    def read(self, *without: str) -> str:
        """Return the options to read the same kind of file with."""
        given = {"label": None, **self.words.reading}
        label = f"--label {shlex.quote(given['label'])}" if given["label"] else "--label LABEL"
        typed = [] if "label" in without else [label]
        typed += [
            self.words.option(name, value)
            for name, value in given.items()
            if name not in ("label", *without)
        ]
        return "".join(f" {word}" for word in typed)

    def file(self, place: int, name: str) -> str:
        """Return the input at this place, or a name that stands for one."""
        known = self.files[place : place + 1]
        return shlex.quote(known[0]) if known and known[0] != "-" else name

    def compare(self) -> str:
        """Compare repairs on the same rows, by folds."""
        rows = self.file(0, "ROWS.csv")
        if self.shell:
            return f"mcllo compare {rows}{self.read(*JUDGED)} --cv 5 --html repairs.html"
        return "found = mcllo.compare((probs, y), cv=5)\nmcllo.report(found).write('repairs.html')"

    def penalised(self) -> str:
        """Fit with a penalty."""
        if self.shell:
            rows = self.file(0, "ROWS.csv")
            return f"mcllo fit {rows}{self.read(*JUDGED)} --penalty 1 -o model.json"
        return "calibrator = mcllo.MCLLOCalibrator(penalty=1.0).fit(probs, y)"

    def fit(self, method: str) -> str:
        """Fit a repair and apply it."""
        if self.shell:
            rows = self.file(0, "ROWS.csv")
            return (
                f"mcllo fit {rows}{self.read(*JUDGED, 'baseline')} --method {method} "
                "-o model.json\n"
                f"mcllo apply model.json NEW.csv{self.read(*UNLABELLED)} -o repaired.csv"
            )
        return (
            f"calibrator = mcllo.CALIBRATORS[{method!r}]().fit(probs, y)\n"
            "repaired = calibrator.predict_proba(new_probs)"
        )

    def assess_repaired(self) -> str:
        """Assess repaired rows whose labels came later."""
        if self.shell:
            read = self.read("logits", "normalize")
            return f"mcllo assess repaired.csv{read} --html after.html"
        return "after = mcllo.assess(repaired, new_y)\nmcllo.report(after).write('after.html')"

    def monitor(self) -> str:
        """Watch batches as their labels arrive."""
        if self.shell:
            return (
                "mcllo monitor start watch.db\n"
                "mcllo monitor add watch.db BATCH.csv --label LABEL --batch NAME"
            )
        return (
            "monitor = mcllo.Monitor.start('watch.db')\n"
            "status = monitor.add(probs, y, batch='NAME')"
        )

    def assess_judged(self, cross_validated: bool) -> str:
        """Assess the judged rows as they were predicted."""
        if self.shell:
            judged = self.file(0, "ROWS.csv") if cross_validated else self.file(1, "HOLDOUT.csv")
            return f"mcllo assess {judged}{self.read()} --html assessment.html"
        rows = "probs, y" if cross_validated else "holdout"
        return f"mcllo.report(mcllo.assess({rows})).write('assessment.html')"


def next_steps(a: Assessment, judged: Verdict, tongue: Tongue) -> tuple[Step, ...]:
    """Return what to do about the verdict of an assessment."""
    if a.details.hints:
        return tuple(Step(HINTED.get(hint.kind, LOOK)) for hint in a.details.hints)
    text = "Compare repairs, each judged on rows that it was not fitted to."
    compare = Step(text, tongue.compare())
    repair = Step(f"Repair them: {uncapital(text)}", compare.code)
    if judged.kind == "matters":
        if a.fit.converged:
            return (_face_value(a, judged), repair)
        penalty = "An ordinary repair cannot be fitted to these rows: use one with a penalty."
        return (_face_value(a, judged), Step(penalty, tongue.penalised()))
    if judged.kind == "little":
        leave = "For most uses leave them as they are: the error is smaller than the tolerance."
        return (Step(leave), Step(f"If it matters to you: {uncapital(text)}", compare.code))
    if judged.kind == "cannot_tell":
        return (_collect(a), Step("Until then, do not call these probabilities calibrated."))
    if judged.other:
        look = "Look at the pictures of single classes for points outside their boxes."
        return (Step(look), compare)
    nothing = Step("Nothing to repair on this evidence: use them, and keep the labels.")
    return (nothing, _watch(tongue))


def _face_value(a: Assessment, judged: Verdict) -> Step:
    """Return the warning, with an example where there is one."""
    found, words = plain.example(a, judged), "Do not take these probabilities at face value"
    if found is None:
        return Step(f"{words} until they are repaired.")
    known = plain.as_right(found)
    return Step(f"{words}: until they are repaired, read {known.says} as about {known.right}.")


def _watch(tongue: Tongue) -> Step:
    """Return how to go on: a test of each new batch would sooner or later be a false alarm."""
    words = (
        "Watch the batches to come with a monitor, which may be asked after each of them; this "
        "test is for one look."
    )
    return Step(words, tongue.monitor())


def _collect(a: Assessment) -> Step:
    """Return what there must be more of."""
    if a.predictions.groups is not None:
        words = "Collect rows from more groups, and ask once, when all are there:"
        return Step(f"{words} more rows of these do not help.")
    return Step(
        "Collect more rows with labels: settle first how many, and ask once, when all are there."
    )


def repair_steps(c: Comparison, a: Assessment, judged: Verdict, tongue: Tongue) -> tuple[Step, ...]:
    """Return what to do with the recommendation, given the verdict on the predictions as they are.

    A repair that is shown to help is worth applying whatever the verdict; where none is, the
    verdict says whether the predictions can be used as they are.
    """
    if a.details.hints:
        return next_steps(a, judged, tongue)
    if c.recommendation.improves:
        words = (
            f"Fit {title_of(c.best)} on all rows whose labels you know, and apply it to new ones."
        )
        after = "Assess the repaired predictions on rows that took no part in this comparison."
        check = Step(after, tongue.assess_repaired())
        return (Step(words, tongue.fit(c.best)), check, _watch(tongue))
    if judged.kind == "cannot_tell":
        return next_steps(a, judged, tongue)
    if judged.kind != "matters":
        return (Step("Leave the predictions as they are: no repair is shown to help."),)
    none = Step("Apply none of these repairs: leaving the predictions as they are does best.")
    if c.best != NOTHING:
        best = f"the gain of {title_of(c.best)}, the best of these here, may be chance"
        none = Step(f"Apply no repair yet: {best}. Judge it on more rows.")
    return (_face_value(a, judged), none)
