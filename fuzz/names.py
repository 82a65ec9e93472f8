"""Targets of class names: ``names`` into text, Markdown and HTML, ``figures`` into SVG.

=============  ==========================================================================
text           whatever the names are, every line is one that the terminal may show
Markdown       no raw element, no heading that a name made, tables whose rows have one length
HTML           elements and attributes are those of a report with plain names, no others
SVG            parses as XML; no element that a name brought along
=============  ==========================================================================
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any
from xml.etree import ElementTree

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import mcllo
from fuzz import checks, odd
from fuzz.case import CASE

N = 24
CELL = re.compile(r"(?<!\\)\|")


@cache
def rows() -> tuple[Any, Any]:
    """Return probabilities of three classes, too sharp, and codes."""
    rng = np.random.default_rng(5)
    honest = rng.dirichlet(np.ones(3), size=N)
    codes = (honest.cumsum(axis=1) > rng.random((N, 1))).argmax(axis=1)
    codes[:3] = 0, 1, 2
    sharp = honest**2 / (honest**2).sum(axis=1, keepdims=True)
    return sharp, codes


def assessed(labels: list[str]) -> mcllo.Assessment | None:
    """Return an assessment with these class names; None where they are refused."""
    probs, codes = rows()
    y = np.array(labels, dtype=object)[codes]
    given_: dict[str, Any] = {"classes": labels, "seed": 0, "n_resamples": 99}
    return checks.allowed(lambda: mcllo.assess(probs, y, **given_))


@cache
def usual_tags() -> set[str]:
    """Return what a report with plain names is made of."""
    found: set[str] = set()
    for labels in (["cat", "dog", "owl"], ["x" * 300, "y" * 300, "z" * 300]):
        result = assessed(labels)
        assert result is not None
        found |= checks.tags(mcllo.report(result).html())
    return found


@odd.attempt
@given(odd.names(3), st.integers(0, 7))
def names(labels: list[str], page: int) -> None:
    """Write names into text, Markdown and HTML."""
    CASE.begin(names__txt=repr(labels))
    result = assessed(labels)
    if result is None:
        return
    CASE.accept()
    result.text()
    str(result)
    report = mcllo.report(result)
    _check_markdown(report.markdown())
    report.json()
    if page == 0:
        extra = checks.tags(report.html()) - usual_tags()
        checks.must(not extra, f"a name brought along {sorted(extra)}")
        CASE.compare()


def _check_markdown(text: str) -> None:
    checks.must(
        not re.search(r"^\s*#+ *zz", text, re.MULTILINE), "a name became a heading"
    )
    outside = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    checks.must("<zzq" not in outside, "a name became an element")
    width = 0
    for line in text.splitlines():
        if not line.startswith("|"):
            width = 0
            continue
        cells = len(CELL.findall(line))
        checks.must(
            width in (0, cells),
            f"a row of {cells - 1} cells among {width - 1}: {line!r}",
        )
        width = cells


@odd.attempt
@given(
    odd.names(3),
    st.sampled_from(["parameters", "reliability_by_class", "calibration_map"]),
)
def figures(labels: list[str], kind: str) -> None:
    """Draw names."""
    CASE.begin(names__txt=repr(labels), figure__txt=kind)
    from matplotlib import pyplot

    result = assessed(labels)
    if result is None:
        return
    CASE.accept()
    thing: Any = result if kind == "reliability_by_class" else result.fit
    axes = getattr(mcllo.plot, kind)(thing, caption=True)
    text = mcllo.plot.to_svg(axes, alt=" ".join(labels))
    pyplot.close("all")
    try:
        found = {
            element.tag.rsplit("}")[-1]
            for element in ElementTree.fromstring(text).iter()
        }
    except ElementTree.ParseError as error:
        raise checks.Broken(f"no XML: {error}") from None
    checks.must("zzq" not in found, "a name became an element")
    CASE.compare()
