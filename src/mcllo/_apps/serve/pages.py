"""Jobs -> pages, through Jinja2 templates: plain forms, whole without a script.

=========  ====================================================================================
start      choose or drop a file
columns    what was recognised, as a form
busy       what is being done, and a button that ends it
result     the report, the recalibration and what can be taken away
problem    one sentence, and the way back
=========  ====================================================================================

Everything shown is text until a template says otherwise (`_apps/report/html`): escaped by Jinja2,
without letters that a page cannot hold or that turn the direction of what follows. Style and
colours are the report's.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ..._version import __version__
from ..cli.options import READING, RECALIBRATIONS
from ..report.html import keep_percent_unbroken
from ..report.recalibrations import method_title
from ..report.views import capital
from .choices import FIELD_LABELS, MISSING, ROLES, initial_form_fields
from .jobs import TableJob, recalibrated_file_name
from .limits import ServerLimits

TASK_TEXTS = {
    "look": "Reading the table",
    "assess": "Assessing the probabilities",
    "compare": "Comparing recalibrations",
    "recalibrate": "Recalibrating the table",
}
Z_95 = 1.96
"""Standard errors to either end of a 95 % interval of a normal estimate."""
NEEDS_LOGITS = ("vector", "matrix")
KINDS = {
    "frequency": "Counts: a row of weight 3 is three rows",
    "survey": "Survey weights: 1 over the chance of being drawn",
    "importance": "Importance: how much a row matters",
}


class PageRenderer:
    """The pages of one run, whose addresses all begin with `root`."""

    def __init__(self, root: str, limits: ServerLimits) -> None:
        self.root = root
        self.limits = limits

    def render_start_page(self, problem: str = "") -> str:
        """Return the first page."""
        return self._render_template(
            "start", step=1, problem=problem, title="Choose a table"
        )

    def render_problem(self, title: str, sentence: str) -> str:
        """Return a page with one sentence."""
        return self._render_template("problem", step=0, problem=sentence, title=title)

    def render_columns_form(self, job: TableJob) -> str:
        """Return the form of what was recognised."""
        assert job.detected is not None
        fields = initial_form_fields(job.detected) | job.fields
        return self._render_template(
            "columns",
            step=2,
            title="Check the columns",
            job=job,
            seen=job.detected,
            fields=fields,
            roles=ROLES,
            boxes=FIELD_LABELS,
            gaps=MISSING,
            kinds=KINDS,
            helps={name: words for name, (_, _, words) in READING.items()},
        )

    def render_progress(self, job: TableJob) -> str:
        """Return the page of work that runs."""
        assert job.task_run is not None
        title = TASK_TEXTS[job.task_run.task]
        step = {"look": 1, "assess": 2}.get(job.task_run.task, 3)
        return self._render_template(
            "busy", step=step, title=title, job=job, work=job.task_run
        )

    def render_result(self, job: TableJob) -> str:
        """Return what was found, with what can be done next."""
        assert job.detected is not None
        compared = job.results.get("compare", {})
        recalibrated = job.results.get("recalibrate", {})
        offered = ["auto"]  # first, whatever the order of the command line's list
        for name in RECALIBRATIONS.split():
            needs_more = name in NEEDS_LOGITS and not job.reading["logits"]
            if name not in ("auto", "identity") and not needs_more:
                offered.append(name)
        best = compared["method"] if compared.get("improves") else None
        chosen = best if best in offered else "auto"
        return self._render_template(
            "result",
            step=3,
            title=job.results["assess"]["headline"],
            job=job,
            assessed=job.results["assess"],
            compared=compared,
            recalibrated=recalibrated,
            recalibrations=[(name, capital(method_title(name))) for name in offered],
            chosen=recalibrated.get("method", chosen),
            best=best,
            recommended=recommendation_sentence(compared),
            expected=expected_gain_sentence(recalibrated),
            table=recalibrated_file_name(job.detected),
        )

    def _render_template(self, name: str, **content: Any) -> str:
        defaults = {"problem": "", "job": None}
        template = template_environment().get_template(f"{name}.html.jinja")
        return template.render(
            root=self.root,
            limits=self.limits,
            version=__version__,
            **(defaults | content),
        )


def recommendation_sentence(comparison: Mapping[str, Any]) -> str:
    """Return what a comparison recommends, in the names that the list of recalibrations has."""
    if not comparison:
        return ""
    if not comparison["improves"]:
        return "No recalibration is shown to do better than leaving the probabilities as they are."
    best = capital(method_title(comparison["method"]))
    words = f"{best} does best on rows that it was not fitted to."
    n_ties = len(comparison["ties"])
    if n_ties == 0:
        return f"{words} All others are worse, beyond chance."
    others = (
        "One other recalibration" if n_ties == 1 else f"{n_ties} other recalibrations"
    )
    simplest = (
        "it"
        if comparison["simplest"] == comparison["method"]
        else method_title(comparison["simplest"])
    )
    return (
        f"{words} {others} cannot be told from it; {simplest} is the simplest of these."
    )


def expected_gain_sentence(recalibration: Mapping[str, Any]) -> str:
    """Return what a recalibration that judged itself says that it gains; nothing of the others."""
    gain = recalibration.get("expected")
    error = recalibration.get("expected_se")
    if gain is None or error is None:
        return ""
    does = "lower" if gain >= 0.0 else "raise"
    low = abs(gain) - Z_95 * error
    high = abs(gain) + Z_95 * error
    chance = ", which chance alone could show" if low <= 0.0 else ""
    return (
        f"On rows that it was not fitted to it is expected to {does} log loss by {abs(gain):.4f} "
        f"(95 % interval {low:.4f} to {high:.4f}){chance}."
    )


def render_stylesheet() -> str:
    """Return the style of all pages."""
    return template_environment().get_template("page.css").render()


def render_script() -> str:
    """Return the script of all pages."""
    return template_environment().get_template("page.js").render()


@cache
def template_environment() -> Environment:
    """Return what fills the templates: ours, and the report's style."""

    def finalize(value: Any) -> Any:
        is_text = isinstance(value, str) and not isinstance(value, Markup)
        return keep_percent_unbroken(value) if is_text else value

    return Environment(
        loader=ChoiceLoader(
            [PackageLoader("mcllo._apps.serve"), PackageLoader("mcllo._apps.report")]
        ),
        autoescape=lambda name: name is not None and name.endswith(".html.jinja"),
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
