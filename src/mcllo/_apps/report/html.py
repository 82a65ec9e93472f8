"""`Summary` -> HTML or Markdown through Jinja2 templates; nothing is computed here.

Everything shown is text until a template says otherwise: HTML is escaped by Jinja2, Markdown by
`escape_markdown`; characters that a page cannot hold or that turn the direction of what follows
are taken out. The page forbids itself every request and every script but its own (a content
security policy with the script's hash).
"""

from __future__ import annotations

import base64
import hashlib
import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from html import escape
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from .views import Card, Picture, Summary

_BEFORE_PERCENT = re.compile(r"(?<=\d) (?=%)")
_SPECIAL = re.compile(r"([\\`*_|~$])")
_DIRECTION = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)


def render_html(summary: Summary, pictures: Mapping[str, Picture]) -> str:
    """Return the page: one file that needs no other."""
    return _page("report.html.jinja", s=summary, pictures=pictures)


def render_result_page(content: Mapping[str, Any], *, html: bool) -> str:
    """Return the page of a monitor or of choice sets, or its Markdown."""
    if html:
        return _page("result.html.jinja", s=content)
    return _markdown("result.md.jinja", content)


def _page(template: str, **content: Any) -> str:
    environment = _environment(html=True)
    style, script = (
        environment.get_template(name).render() for name in ("style.css", "tables.js")
    )
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return environment.get_template(template).render(
        **content,
        style=Markup(style),
        script=Markup(script),
        script_hash="sha256-" + base64.b64encode(digest).decode("ascii"),
    )


def render_markdown(summary: Summary) -> str:
    """Return the report as Markdown, without pictures."""
    return _markdown("report.md.jinja", summary)


def _markdown(template: str, content: Any) -> str:
    text = _environment(html=False).get_template(template).render(s=content)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def render_card(card: Card) -> str:
    """Return what a notebook shows of a result: no script, nothing asked for, no name let loose."""
    environment = _environment(html=True)
    style = " ".join(environment.get_template("card.css").render().split())
    return environment.get_template("card.html.jinja").render(
        c=card, style=Markup(style)
    )


def render_frame(page: str) -> str:
    """Return the page inside a frame, so that a notebook and the page cannot disturb each other."""
    return (
        f'<iframe srcdoc="{escape(page)}" title="Calibration report" sandbox="allow-scripts" '
        'style="width:100%;height:44rem;border:1px solid #8886;border-radius:8px"></iframe>'
    )


def strip_control_characters(text: str) -> str:
    """Return `text` without control and direction characters; half characters are replaced."""
    return "".join(map(_visible, text))


def _visible(letter: str) -> str:
    kind = unicodedata.category(letter)
    if kind == "Cs":
        return "\ufffd"
    if kind == "Cc" and letter != "\n":
        return " " if letter.isspace() else ""
    return "" if letter in _DIRECTION else letter


def keep_percent_unbroken(text: str) -> str:
    """Return visible text in which no line ends between a number and its per cent sign."""
    return _BEFORE_PERCENT.sub("\u00a0", strip_control_characters(text))


def escape_markdown(text: str) -> str:
    """Return `text` so that Markdown shows it as it is, also inside a table."""
    words = escape(" ".join(strip_control_characters(text).split()), quote=False)
    return _SPECIAL.sub(r"\\\1", words).replace("](", r"]\(")


def code_block(text: str, indent: int = 3) -> Markup:
    """Return `text` as a block of code in Markdown, indented to belong to the item of a list."""
    lines = [
        "```",
        *strip_control_characters(text).replace("```", "'''").split("\n"),
        "```",
    ]
    return Markup("\n".join(" " * indent + line for line in lines))


def code_span(text: str) -> Markup:
    """Return `text` as code inside a line of Markdown."""
    return Markup(
        "`" + " ".join(strip_control_characters(text).replace("`", "'").split()) + "`"
    )


@cache
def _environment(*, html: bool) -> Environment:
    """Return what fills the templates; `escape_markdown` does for Markdown what Jinja2 cannot."""
    show = keep_percent_unbroken if html else escape_markdown

    def finalize(value: Any) -> Any:
        return (
            show(value)
            if isinstance(value, str) and not isinstance(value, Markup)
            else value
        )

    environment = Environment(
        loader=PackageLoader("mcllo._apps.report"),
        autoescape=html,
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"code_block": code_block, "code_span": code_span}
    return environment
