"""What to do next, with the code that does it: in Python, or for the command line.

==============  ==================================================================================
miscalibrated   do not take the numbers at face value; compare recalibrations
negligible      leave them; compare recalibrations if small errors matter
not_detected    use them; where another test rejects, look at the pictures
inconclusive    collect more rows or groups
a data check    look at the rows first: nothing else makes sense before
a comparison    what its recommendation says, beside the verdict on the predictions as they are
==============  ==================================================================================

A report that the command line made speaks of its files and options, one made in Python of calls.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..._assessment.assessment import Assessment
from ..._assessment.verdict import Verdict
from ..._comparison.comparison import Comparison
from ..._comparison.recommend import UNCALIBRATED
from ...exceptions import PYTHON, Names
from . import plain
from .recalibrations import method_title
from .views import NextStep, uncapital

DATA_CHECK_STEPS = {
    "data_check.own_rows": "Judge the recalibration on rows that it was not fitted to.",
    "data_check.columns": "Put each column beside its own class, and run this again.",
    "data_check.rows": "Put the labels beside their own rows, and run this again.",
    "data_check.copies": "Drop the copies, or name groups of rows that are the same, and run this "
    "again.",
}
"""What to do about each data check."""
LOOK_STEP = "Look into what stands at the top of this page, and run this again."


JUDGED_OPTIONS = ("groups", "by", "weight_kind")
"""Options of `mcllo assess` that recalibrations do not have."""
OPTIONS_OF_LABELLED_ROWS = (*JUDGED_OPTIONS, "label", "classes", "baseline", "weight")
"""Those that rows without labels do not have."""


class CodeLanguage(NamedTuple):
    """Whose words code is in: the shell's or Python's; `files` are the inputs.

    `names` say how options are typed, `reading` are those that the files were read with.
    """

    shell: bool = False
    files: tuple[str, ...] = ()
    names: Names = PYTHON
    reading: Mapping[str, Any] = {}

    def read(self, *without: str) -> str:
        """Return the options to read the same kind of file with."""
        given = {"label": None, **self.reading}
        label = (
            f"--label {shlex.quote(given['label'])}"
            if given["label"]
            else "--label LABEL"
        )
        typed = [] if "label" in without else [label]
        typed += [
            self.names.argument(name).given(value)
            for name, value in given.items()
            if name not in ("label", *without)
        ]
        return "".join(f" {word}" for word in typed)

    def file(self, place: int, name: str) -> str:
        """Return the input at this place, or a name that stands for one."""
        known = self.files[place : place + 1]
        return shlex.quote(known[0]) if known and known[0] != "-" else name

    def compare(self) -> str:
        """Compare recalibrations on the same rows, by folds."""
        rows = self.file(0, "ROWS.csv")
        if self.shell:
            return (
                f"mcllo compare {rows}{self.read(*JUDGED_OPTIONS)} --cv 5 --html "
                "recalibrations.html"
            )
        return (
            "found = mcllo.compare((probs, y), "
            "cv=5)\nmcllo.report(found).write('recalibrations.html')"
        )

    def penalised(self) -> str:
        """Fit with a penalty."""
        if self.shell:
            rows = self.file(0, "ROWS.csv")
            return f"mcllo fit {rows}{self.read(*JUDGED_OPTIONS)} --penalty 1 -o model.json"
        return "calibrator = mcllo.MCLLOCalibrator(penalty=1.0).fit(probs, y)"

    def fit(self, method: str) -> str:
        """Fit a recalibration and apply it."""
        if self.shell:
            rows = self.file(0, "ROWS.csv")
            learn = self.read(*JUDGED_OPTIONS, "baseline")
            new_rows = (
                f"{self.file(1, 'NEW.csv')}{self.read(*OPTIONS_OF_LABELLED_ROWS)}"
            )
            return (
                f"mcllo fit {rows}{learn} --method {method} -o model.json\n"
                f"mcllo apply model.json {new_rows} -o recalibrated.csv"
            )
        return (
            f"calibrator = mcllo.CALIBRATORS[{method!r}]().fit(probs, y)\n"
            "recalibrated = calibrator.predict_proba(new_probs)"
        )

    def assess_recalibrated(self) -> str:
        """Assess recalibrated rows whose labels came later."""
        if self.shell:
            read = self.read("logits", "normalize")
            return f"mcllo assess recalibrated.csv{read} --html after.html"
        return "after = mcllo.assess(recalibrated, new_y)\nmcllo.report(after).write('after.html')"

    def monitor(self, batch: str) -> str:
        """Watch batches as their labels arrive, of which `batch` is the first."""
        if self.shell:
            return (
                "mcllo monitor start watch.db\n"
                f"mcllo monitor add watch.db {batch}{self.read()} --batch first"
            )
        return (
            "monitor = mcllo.Monitor.start('watch.db')\n"
            "status = monitor.add(probs, y, batch='NAME')"
        )

    def assess_judged(self, cross_validated: bool) -> str:
        """Assess the judged rows as they were predicted."""
        if self.shell:
            judged = (
                self.file(0, "ROWS.csv")
                if cross_validated
                else self.file(1, "HOLDOUT.csv")
            )
            return f"mcllo assess {judged}{self.read()} --html assessment.html"
        rows = "probs, y" if cross_validated else "holdout"
        return f"mcllo.report(mcllo.assess({rows})).write('assessment.html')"


def next_steps(
    a: Assessment, judged: Verdict, tongue: CodeLanguage
) -> tuple[NextStep, ...]:
    """Return what to do about the verdict of an assessment."""
    if a.details.data_checks:
        return tuple(
            NextStep(DATA_CHECK_STEPS.get(hint.kind, LOOK_STEP))
            for hint in a.details.data_checks
        )
    text = "Compare recalibrations, each judged on rows that it was not fitted to."
    compare = NextStep(text, tongue.compare())
    recalibration = NextStep(f"Recalibrate them: {uncapital(text)}", compare.code)
    if judged.kind == "miscalibrated":
        if a.fit.converged:
            return (_do_not_trust_probabilities_step(a, judged), recalibration)
        penalty = (
            "An ordinary recalibration cannot be fitted to these "
            "rows: use one with a penalty."
        )
        return (
            _do_not_trust_probabilities_step(a, judged),
            NextStep(penalty, tongue.penalised()),
        )
    if judged.kind == "negligible":
        leave = "For most uses leave them as they are: the error is smaller than the tolerance."
        return (
            NextStep(leave),
            NextStep(f"If it matters to you: {uncapital(text)}", compare.code),
        )
    if judged.kind == "inconclusive":
        return (
            _collect_more_rows_step(a),
            NextStep("Until then, do not call these probabilities calibrated."),
        )
    if judged.omnibus_alone:
        look = "Look at the pictures of single classes for curves whose band leaves out the line."
        return (NextStep(look), compare)
    nothing = NextStep(
        "Nothing to recalibrate on this evidence: use them, and keep the labels."
    )
    return (nothing, _monitor_step(tongue, tongue.file(0, "ROWS.csv")))


def _do_not_trust_probabilities_step(a: Assessment, judged: Verdict) -> NextStep:
    """Return the warning, with an example where there is one."""
    found, words = (
        plain.most_confident_level_off(a, judged),
        "Do not take these probabilities at face value",
    )
    if found is None:
        return NextStep(f"{words} until they are recalibrated.")
    known = plain.as_right(found)
    return NextStep(
        f"{words}: until they are recalibrated, read {known.says} as about {known.right}."
    )


def _monitor_step(tongue: CodeLanguage, batch: str) -> NextStep:
    """Return how to go on: a test of each new batch would sooner or later be a false alarm."""
    words = (
        "Watch the batches to come with a monitor, which may be asked after each of them; this "
        "test is for one look."
    )
    return NextStep(words, tongue.monitor(batch))


def _collect_more_rows_step(a: Assessment) -> NextStep:
    """Return what there must be more of."""
    if a.predictions.groups is not None:
        words = "Collect rows from more groups, and ask once, when all are there:"
        return NextStep(f"{words} more rows of these do not help.")
    return NextStep(
        "Collect more rows with labels: settle first how many, and ask once, when all are there."
    )


def recalibration_steps(
    c: Comparison, a: Assessment, judged: Verdict, tongue: CodeLanguage
) -> tuple[NextStep, ...]:
    """Return what to do with the recommendation, given the verdict on the predictions as they are.

    A recalibration that is shown to help is worth applying whatever the verdict; where none is, the
    verdict says whether the predictions can be used as they are.
    """
    if a.details.data_checks:
        return next_steps(a, judged, tongue)
    if c.recommendation.improves:
        words = (
            f"Fit {method_title(c.best)} on all rows whose labels you know, and apply it to "
            "new ones."
        )
        after = (
            "Assess what comes out when its labels are known; rows that took part in this "
            "comparison flatter it."
        )
        check = NextStep(after, tongue.assess_recalibrated())
        return (
            NextStep(words, tongue.fit(c.best)),
            check,
            _monitor_step(tongue, "recalibrated.csv"),
        )
    if judged.kind == "inconclusive":
        return next_steps(a, judged, tongue)
    if judged.kind != "miscalibrated":
        return (
            NextStep(
                "Leave the predictions as they are: no recalibration is shown to help."
            ),
        )
    none = NextStep(
        "Apply none of these recalibrations: leaving the predictions as they are does best."
    )
    if c.best != UNCALIBRATED:
        best = (
            f"the gain of {method_title(c.best)}, the best of these here, may be chance"
        )
        none = NextStep(f"Apply no recalibration yet: {best}. Judge it on more rows.")
    return (_do_not_trust_probabilities_step(a, judged), none)
