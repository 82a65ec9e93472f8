"""The site of `make docs`, which runs this: every link leads somewhere, all is loaded from here."""

import os
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

if "MCLLO_SITE" not in os.environ:
    pytest.skip("`make docs` builds the site and runs this", allow_module_level=True)

pytestmark = pytest.mark.slow
SITE = Path(os.environ["MCLLO_SITE"]).resolve()
PAGES = sorted(
    page for page in SITE.rglob("*.html") if "_static" not in page.parts
)  # templates
LOADED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
}
LOADED |= {
    "audio": "src",
    "embed": "src",
    "object": "data",
    "link": "href",
    "use": "href",
}
NOT_LOADED = {"canonical", "next", "prev", "search", "index", "author", "license"}
"""Kinds of <link> that only say how pages belong together."""


class Reader(HTMLParser):
    """What a page links to, what it loads, and the places in it that can be linked to."""

    def __init__(self):
        super().__init__()
        self.links, self.loaded, self.ids, self.styles, self.words = (
            [],
            [],
            set(),
            [],
            [],
        )
        self.in_style = False

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids |= {given[name] for name in ("id", "name") if given.get(name)}
        self.in_style = tag == "style"
        self.styles += [given["style"]] if given.get("style") else []
        if tag in ("a", "area") and given.get("href"):
            self.links.append(given["href"])
        kinds = set((given.get("rel") or "").split())
        if given.get(LOADED.get(tag, "")) and not kinds & NOT_LOADED:
            self.loaded.append(given[LOADED[tag]])
        if given.get("srcset"):
            self.loaded += [part.split()[0] for part in given["srcset"].split(",")]

    def handle_data(self, data):
        if self.in_style:
            self.styles.append(data)
        self.words.append(data)

    def handle_endtag(self, tag):
        self.in_style = False


@cache
def read(path):
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader


def is_outside(address):
    return bool(urlsplit(address).netloc)


def goal_of(page, address):
    """Return the file and the place in it that an address on a page means."""
    parts = urlsplit(address)
    place = unquote(parts.path)
    goal = page if not place else (page.parent / place).resolve()
    return (goal / "index.html" if goal.is_dir() else goal), unquote(parts.fragment)


def faults_of(page):
    """Return the addresses on a page that lead nowhere."""
    reader = read(page)
    faults = []
    for address in [*reader.links, *reader.loaded]:
        if is_outside(address) or urlsplit(address).scheme:
            continue
        goal, fragment = goal_of(page, address)
        is_there = goal.is_file() and goal.is_relative_to(SITE)
        if is_there and fragment and goal.suffix == ".html":
            is_there = fragment in read(goal).ids
        faults += [] if is_there else [address]
    return faults


def outside_of(page):
    """Return what a page would load from elsewhere."""
    reader = read(page)
    asked = re.findall(
        r"(?:url\(|@import)\s*['\"]?([^'\")\s]+)", " ".join(reader.styles)
    )
    return [address for address in [*reader.loaded, *asked] if is_outside(address)]


def test_the_site_is_there():
    assert len(PAGES) > 150


def test_no_link_is_broken():
    found = {page.relative_to(SITE).as_posix(): faults_of(page) for page in PAGES}
    assert {page: faults for page, faults in found.items() if faults} == {}


def test_nothing_is_loaded_from_elsewhere():
    found = {page.relative_to(SITE).as_posix(): outside_of(page) for page in PAGES}
    assert {page: asked for page, asked in found.items() if asked} == {}
    for sheet in SITE.rglob("*.css"):
        text = re.sub(
            r"/\*.*?\*/", "", sheet.read_text(encoding="utf-8"), flags=re.DOTALL
        )
        asked = re.findall(r"(?:url\(|@import)\s*['\"]?([^'\")\s]+)", text)
        assert not [address for address in asked if is_outside(address)], sheet.name


def test_a_broken_link_and_a_foreign_script_are_found(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "SITE", tmp_path)
    page = tmp_path / "page.html"
    page.write_text(
        '<h1 id="top">x</h1><a href="#top">a</a><a href="#bottom">b</a><a href="no.html">c</a>'
        '<a href="https://example.org">d</a><script src="https://example.org/x.js"></script>'
        "<style>@import 'https://example.org/x.css';</style>"
    )
    assert faults_of(page) == ["#bottom", "no.html"]
    assert outside_of(page) == ["https://example.org/x.js", "https://example.org/x.css"]


@pytest.mark.parametrize(
    "folder", ["tutorials", "how-to", "reference", "explanation", "studies"]
)
def test_the_first_page_leads_to_every_part(folder):
    assert f"{folder}/index.html" in read(SITE / "index.html").links


def test_every_name_has_a_page():
    import mcllo

    made = {page.stem for page in (SITE / "reference" / "api").glob("*.html")}
    for module in (mcllo, mcllo.metrics, mcllo.plot, mcllo.datasets, mcllo.simulate):
        for name in module.__all__:
            thing = getattr(module, name)
            if callable(thing):
                full = f"{module.__name__}.{name}"
                assert {full, f"{full}-class"} & made, full


def test_the_gallery_shows_a_picture_for_every_script():
    scripts = sorted(
        path.stem for path in (SITE.parent / "docs" / "gallery").glob("*.py")
    )
    assert len(scripts) >= 12
    for name in scripts:
        text = (SITE / "gallery" / f"{name}.html").read_text(encoding="utf-8")
        assert '<figure class="drawn">\n<svg role="img"' in text, name


def test_the_first_page_shows_problem_answer_and_report():
    text = (SITE / "index.html").read_text(encoding="utf-8")
    report = (SITE / "report.html").read_text(encoding="utf-8")
    verdict = re.search(r"Verdict: ([^(.]+)", text)[1].strip()
    assert '<svg role="img"' in text
    assert "mcllo assess images.csv" in text
    assert verdict.split(",")[0] in report.lower()


def test_formulas_are_formulas():
    for name in ("theory", "delta-and-gamma", "monitoring", "posterior-and-boldness"):
        text = (SITE / "explanation" / f"{name}.html").read_text(encoding="utf-8")
        assert '<div class="math"><math ' in text, name
        assert "$$" not in text


def test_options_keep_both_dashes():
    text = " ".join(read(SITE / "reference" / "command-line.html").words)
    assert "--gate" in text
    assert re.findall(r"\s–[a-z][\w-]*", text) == []
