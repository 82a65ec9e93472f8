"""`_report.render`: a summary as a page and as Markdown; names are text wherever they are shown."""

import base64
import hashlib
import re
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import UndefinedError
from report_data import (
    calm,
    compared,
    divided,
    few_groups,
    grouped,
    hostile,
    many,
    mixed_up,
    overconfident,
    separated,
    zeros,
)

from mcllo._apps.report.html import (
    code_block,
    code_span,
    escape_markdown,
    keep_percent_unbroken,
    render_frame,
    render_html,
    render_markdown,
    strip_control_characters,
)
from mcllo._apps.report.summarize import summarize
from mcllo._apps.report.views import Picture

KNOWN = ("#", "https://doi.org/", "https://arxiv.org/", "https://www.jstor.org/stable/")
VOID = {"meta", "link", "br", "img", "hr", "input"}
KEYS = (
    "reliability",
    "parameters",
    "by_class",
    "map",
    "effect",
    "dots",
    "panels",
    "nested_models",
    "baselines",
)
KEYS += ("subgroups",)
DRAWING = '<svg role="img" aria-label="a picture" viewBox="0 0 1 1"></svg>'
PICTURES = {
    key: Picture(key, DRAWING, DRAWING, "How to read it.", "A picture.") for key in KEYS
}


class Page(HTMLParser):
    """Elements in order, with attributes and text; tags must nest."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.open = [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        element = {"tag": tag, "text": "", **dict(attrs)}
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def all(self, tag=None, having=None):
        return [
            e
            for e in self.elements
            if (tag is None or e["tag"] == tag) and (having is None or having in e)
        ]


@cache
def page_of(make, **options):
    text = render_html(summarize(make(), **dict(options)), PICTURES)
    return text, Page(text)


@pytest.mark.parametrize(
    "make", [overconfident, hostile, separated, compared, zeros, divided]
)
def test_every_page_is_sound(make):
    _, page = page_of(make)  # whose tags nest
    assert page.all("html")[0]["lang"] == "en"
    assert len(page.all("h1")) == len(page.all("title")) == 1
    levels = [
        int(e["tag"][1]) for e in page.elements if re.fullmatch("h[1-6]", e["tag"])
    ]
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    ids = [e["id"] for e in page.all(having="id")]
    assert len(ids) == len(set(ids))
    for link in page.all("a"):
        assert link["href"].startswith(KNOWN)
        assert not link["href"].startswith("#") or link["href"][1:] in ids
    assert all(e["aria-labelledby"] in ids for e in page.all(having="aria-labelledby"))
    assert len(page.all("table")) >= 3
    assert all(head.get("scope") in ("col", "row") for head in page.all("th"))


def marks(page, name):
    """Return the values of the elements marked ``data-test-<name>``."""
    return [e[f"data-test-{name}"] for e in page.all(having=f"data-test-{name}")]


def test_the_verdict_comes_first_and_the_evidence_below():
    _, page = page_of(overconfident)
    assert marks(page, "verdict") == ["miscalibrated"]
    assert page.all(having="data-test-size")[0]["text"].startswith(
        "For example, when it says 98"
    )
    assert len(page.all(having="data-test-levels")) == 1
    assert "compare recalibrations" in page.all(having="data-test-next")[0]["text"]
    assert page.all(having="data-test-pvalue")[0]["text"] == "p = 5.5 × 10⁻³³"
    places = {"data-test-figure", "data-test-pvalue"}
    order = [e for e in page.elements if e["tag"] == "nav" or places & set(e)]
    assert (
        order[0]["data-test-figure"] == "reliability"
    )  # before the contents: on the first screen
    assert order[1]["tag"] == "nav"


def test_what_is_wrong_is_said_after_a_rejection_only():
    assert [
        e["text"] for e in page_of(overconfident)[1].all(having="data-test-wrong")
    ] == [
        "All classes alike: overconfident, nearer to 0 and 100\u00a0% than they should be. "
        "No single one stands out."
    ]
    for make in (calm, compared, grouped, few_groups, mixed_up):
        assert not page_of(make)[1].all(having="data-test-wrong")


def test_the_date_is_at_the_top_and_at_the_foot():
    _, page = page_of(calm, date="1 May 2031")
    assert page.all(having="data-test-date")[0]["text"] == "1 May 2031"
    assert "1 May 2031" in page.all("footer")[0]["text"]
    assert (
        "1 May 2031"
        in render_markdown(summarize(calm(), date="1 May 2031")).splitlines()[2]
    )
    assert re.search(r"\b\d{1,2} \w+ 20\d\d\b", summarize(calm()).date)


@pytest.mark.parametrize(
    ("make", "parts", "tables"),
    [
        (
            overconfident,
            ["nested_models", "baselines", "zeros", "posterior"],
            [
                "expected",
                "null_distributions",
                "shares",
                "nested_models",
                "baselines",
                "parameters",
            ],
        ),
        (
            zeros,
            ["nested_models", "baselines", "zeros", "posterior"],
            [
                "expected",
                "null_distributions",
                "shares",
                "nested_models",
                "baselines",
                "zeros",
                "parameters",
            ],
        ),
        (
            grouped,
            ["robust"],
            ["expected", "null_distributions", "shares", "parameters"],
        ),
        (
            compared,
            [],
            [
                "recalibrations",
                "expected",
                "null_distributions",
                "shares",
                "effect_classes",
                "effect_rows",
            ],
        ),
    ],
)
def test_details_have_sections(make, parts, tables):
    _, page = page_of(make)
    assert (marks(page, "part"), marks(page, "table")) == (parts, tables)
    folded = (
        {"baselines", "zeros"} & set(tables) | {"posterior"} & set(parts) | {"method"}
    )
    assert len(page.all("details")) == len(page.all("summary")) == len(folded)
    assert not [e for e in page.all("details") if "open" in e]


def test_what_takes_the_verdict_back_is_an_alert_before_it():
    for make, words in (
        (mixed_up, "The columns seem to be in"),
        (separated, "use a penalty"),
    ):
        _, page = page_of(make)
        first = next(
            e
            for e in page.elements
            if {"data-test-alert", "data-test-verdict"} & set(e)
        )
        assert "data-test-alert" in first
        assert words in first["text"]
    assert not page_of(calm)[1].all(having="data-test-alert")


def test_a_comparison_shows_its_recommendation_and_where_the_details_are():
    _, page = page_of(compared)
    assert marks(page, "recommended") == ["mcllo"]
    more = next(e for e in page.all("section") if e.get("id") == "more")
    assert "report of an assessment" in more["text"]


def test_hostile_names_are_shown_as_text():
    text, page = page_of(hostile)
    assert len(page.all("script")) == 1
    assert not page.all("img")
    assert not any(name.startswith("on") for e in page.elements for name in e)
    shown = [e["text"] for e in page.all("bdi")]
    assert "<script>window.stolen = 1; aler…" in shown
    assert "👩‍👩‍👧 family 🎉" in shown
    assert "مرحبا بالعالم" in shown
    assert "$\\frac{1}{2}$ & {{ 7 * 7 }}" in shown  # neither mathematics nor a template
    assert "x" * 31 + "…" in shown
    assert "x" * 200 in [e.get("title") for e in page.all("bdi")]
    assert "\u202e" not in text


def test_a_hostile_title_and_command_are_text():
    s = summarize(
        calm(), title="</title><script>x</script>", command="<b>&", source="<i>.csv"
    )
    page = Page(render_html(s, PICTURES))
    assert len(page.all("script")) == 1
    assert page.all("h1")[0]["text"] == "</title><script>x</script>"
    assert not page.all("b")
    assert not page.all("i")


def test_the_page_allows_only_its_own_script_and_no_request():
    text, page = page_of(calm)
    policy = next(e for e in page.all("meta") if "http-equiv" in e)["content"]
    script = page.all("script")[0]["text"]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in policy
    assert not re.search(r"\ssrc=|@import|url\(\s*['\"]?(?!#)", text)


def test_a_missing_value_is_an_error_not_a_blank():
    with pytest.raises(UndefinedError):
        render_html(summarize(calm()), {})


def test_numbers_to_sort_by_travel_with_their_text():
    cells = page_of(overconfident)[1].all("td", having="data-sort")
    assert cells
    for cell in cells:
        float(cell["data-sort"])


def test_markdown_has_tables_of_equal_width():
    for make in (overconfident, hostile, compared):
        lines = render_markdown(summarize(make())).splitlines()
        block = []
        for line in [*lines, ""]:
            if line.startswith("|"):
                block.append(len(re.findall(r"(?<!\\)\|", line)))
            elif block:
                assert len(block) > 2
                assert len(set(block)) == 1
                block = []


def test_markdown_shows_hostile_names_as_text_and_escapes_them_once():
    text = render_markdown(summarize(hostile()))
    for harmful in ("<script", "](javascript", "**md**", "\u202e"):
        assert harmful not in text
    assert "&lt;script&gt;window.stolen" in text
    assert r"\|" in text
    for twice in (r"\\\|", r"\\\*", "&amp;lt;"):
        assert twice not in text


@pytest.mark.slow  # a hundred classes
def test_long_tables_fold_by_script_and_are_whole_without():
    _, page = page_of(many)
    assert [e["data-tall"] for e in page.all("table", having="data-tall")] == [
        "100",
        "99",
    ]
    assert not page_of(calm)[1].all("table", having="data-tall")


def test_plain_keeps_emoji_and_lines_and_drops_what_turns_text():
    assert (
        strip_control_characters("👩‍👩‍👧\n\ta\u202e\u2066b\x1b\ud800")
        == "👩‍👩‍👧\n ab\ufffd"
    )
    assert (
        keep_percent_unbroken("of 90 % or 100 %; %") == "of 90\u00a0% or 100\u00a0%; %"
    )


def test_markdown_escapes():
    assert escape_markdown("a_b|c*d") == r"a\_b\|c\*d"
    assert escape_markdown("<b>[a](b)") == r"&lt;b&gt;[a]\(b)"
    assert escape_markdown("two\nlines") == "two lines"
    assert code_span("a`b") == "`a'b`"
    assert code_block("x\n```\ny", 0) == "```\nx\n'''\ny\n```"


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=80))
def test_any_text_is_harmless_in_markdown(text):
    safe = escape_markdown(text)
    assert "<" not in safe
    assert "](" not in safe
    assert not re.search(r"(?<!\\)(?:\\\\)*\|", safe)
    safe.encode("utf-8")


def test_a_frame_holds_the_page_as_text():
    frame = render_frame('<p class="a">\'&</p>')
    inner = Page(frame).all("iframe")[0]
    assert inner["srcdoc"] == '<p class="a">\'&</p>'
    assert inner["sandbox"] == "allow-scripts"
