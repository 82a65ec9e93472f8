"""`report`: an assessment or a comparison as one page to read, send and print.

Pipeline: `summarize` (all computation) -> `render` (none) -> HTML, Markdown or JSON. The room
imports Jinja2, `plot`, results and their statements; it parses no sentence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ..._assessment.assessment import Assessment
from ..._assessment.choice_assessment import ChoiceAssessment
from ..._assessment.verdict import TOLERANCE
from ..._comparison.comparison import Comparison
from ..._utils.atomic_files import StrPath, check_writable, write_text
from ..._utils.notebook import show_progress
from ..._utils.optional import CLI_EXTRA, check_installed
from ...exceptions import PYTHON, InputError, Names

check_installed(("matplotlib", "jinja2"), CLI_EXTRA)  # before what imports one of them

from .choice_report import ChoiceReport, make_choice_report
from .classes import attribute_miscalibration, class_order
from .facts import Command, Sources
from .summarize import assessment_to_report, summarize
from .views import Picture, Summary

__all__ = ["ChoiceReport", "Report", "report"]


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """A report, ready to be written; it shows itself in a notebook.

    Attributes
    ----------
    summary : Summary
        Everything it says, as plain values.
    result : Assessment or Comparison
        What it reports on.
    assessment : Assessment
        The same, or of a comparison that of the judged rows as they were predicted.
    alpha, tolerance : float
        What the verdict was decided with.

    See Also
    --------
    report : Makes it.
    Assessment : What it reports on.
    Comparison : The same.

    Examples
    --------
    >>> import mcllo
    >>> probs = [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]] * 10
    >>> y = [0, 1, 1, 0, 0, 0, 1, 1] * 5
    >>> report = mcllo.report(mcllo.assess(probs, y, seed=0, n_resamples=19), title="Pets")
    >>> report.alpha, report.markdown().splitlines()[0]
    (0.05, '# Pets')
    """

    summary: Summary
    result: Assessment | Comparison
    assessment: Assessment = field(repr=False)
    alpha: float = 0.05
    tolerance: float = TOLERANCE

    @cached_property
    def pictures(self) -> Mapping[str, Picture]:
        """The figures; drawn when first asked for."""
        from .figures import pictures

        a, comparison = self.assessment, None
        if isinstance(self.result, Comparison):
            comparison = self.result
        judged = {"alpha": self.alpha, "tolerance": self.tolerance}
        order = class_order(a, attribute_miscalibration(a, a.decide(**judged)))
        return pictures(a, comparison, order, judged)

    def html(self) -> str:
        """Return one page that needs no other file and asks for none."""
        from .html import render_html

        with show_progress("drawing the report"):
            return render_html(self.summary, self.pictures)

    def markdown(self) -> str:
        """Return the words and tables as Markdown."""
        from .html import render_markdown

        return render_markdown(self.summary)

    def json(self) -> str:
        """Return the words and every number as strict JSON."""
        assessed = self.assessment.to_dict(self.alpha, self.tolerance)
        content = {"summary": self.summary.to_dict(), "result": assessed}
        if content["summary"]["recalibrations"]:
            del content["summary"]["recalibrations"][
                "recommendation"
            ]  # that of the result
        if isinstance(self.result, Comparison):
            content |= {"result": self.result.to_dict(), "assessment": assessed}
        return json.dumps(content, indent=1, allow_nan=False, default=str) + "\n"

    def write(self, path: StrPath) -> None:
        """Write the report, as HTML, Markdown or JSON by the ending of `path`; all or nothing.

        Parameters
        ----------
        path : path-like
            Name that ends in ``.html``, ``.htm``, ``.md`` or ``.json``.

        Raises
        ------
        InputError
            When the name has another ending.
        """
        kinds = {
            ".html": self.html,
            ".htm": self.html,
            ".md": self.markdown,
            ".json": self.json,
        }
        kind = Path(path).suffix.lower()
        if kind not in kinds:
            raise InputError(
                f"path must end in .html, .md or .json; got {Path(path).name!r}. "
                "Choose one of these."
            )
        check_writable(path)
        write_text(path, kinds[kind]())

    def _repr_html_(self) -> str:
        from .html import render_frame

        return render_frame(self.html())

    def __repr__(self) -> str:
        return f"<Report {self.summary.title!r}: {self.summary.verdict.headline}>"


@show_progress("writing the report")
def report(
    result: Assessment | Comparison | ChoiceAssessment,
    *,
    title: str | None = None,
    command: Command = None,
    source: Sources = None,
    alpha: float | None = None,
    tolerance: float = TOLERANCE,
    date: str | None = None,
    names: Names = PYTHON,
    reading: Mapping[str, Any] | None = None,
) -> Report | ChoiceReport:
    """Make a report that a person who is no statistician can read.

    Parameters
    ----------
    result : Assessment, Comparison or ChoiceAssessment
        What `assess`, `compare` or `assess_choices` found.
    title : str, optional
        Heading; made from `source` when not given.
    command : str or sequence of str, optional
        What to run to get the same numbers; the Python call when not given. With a command the
        report advises commands, else calls.
    source : path or sequence of paths, optional
        Files the predictions came from; their names and checksums are shown.
    alpha : float, optional
        Level of the verdict; that of `assess` when not given, and 0.05 of a comparison.
    tolerance : float
        Average error of the probabilities that is too little to matter.
    date : str, optional
        When it was made; today when not given.
    names : Names
        What arguments are called: Python's names, or the command line's options.
    reading : mapping, optional
        Options that the files were read with; advice repeats them.

    Returns
    -------
    Report, or ChoiceReport of choice sets
        ``.write(path)``, ``.html()``, ``.markdown()``, ``.json()``.

    See Also
    --------
    Report : What comes out.
    assess : Makes what is reported.
    compare : The same.
    mcllo.plot.save : Writes a single figure.

    Examples
    --------
    >>> import mcllo
    >>> a = mcllo.assess([[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]], [0, 0, 1, 1], seed=0)
    >>> r = report(a, title="Four rows")
    >>> r.summary.verdict.kind
    'inconclusive'
    >>> print(r.markdown().splitlines()[0])
    # Four rows
    """
    if isinstance(result, ChoiceAssessment):
        return make_choice_report(result, title, date, alpha, tolerance)
    if isinstance(result, Comparison) and result.holdout.offered is not None:
        raise InputError(
            "a comparison of choice sets has no page yet; print it, or use to_dict and to_frame."
        )
    if alpha is None:
        alpha = result.alpha if isinstance(result, Assessment) else 0.05
    assessment = assessment_to_report(result, alpha)
    summary = summarize(
        result,
        assessment,
        title=title,
        command=command,
        source=source,
        alpha=alpha,
        tolerance=tolerance,
        date=date,
        names=names,
        reading=reading,
    )
    return Report(summary, result, assessment, alpha, tolerance)
