"""The report in a real browser: Debian's Chromium, driven through its WebDriver.

Skipped where there is no Chromium, no chromedriver or no selenium; the accessibility check is also
skipped where axe-core cannot be had from npm."""

import base64
from contextlib import contextmanager

import pytest
from browsers import (
    BROWSER,
    DRIVER,
    NO_BROWSER,
    PHONE,
    asked_for,
    axe_text,
    grave_faults,
    look_like,
    started,
)
from inputs import case
from report_data import (
    HOSTILE,
    calm,
    compared,
    divided,
    grouped,
    hostile,
    many,
    mixed_up,
    one_off,
    overconfident,
    reported,
)

pytest.importorskip("selenium.webdriver", reason="needs the Python package selenium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (BROWSER and DRIVER), reason=NO_BROWSER),
]

CASES = {
    "pets": overconfident,
    "hostile": hostile,
    "recalibrations": compared,
    "many": many,
}
CASES |= {
    "groups": grouped,
    "hint": mixed_up,
    "one": one_off,
    "calm": calm,
    "by": divided,
}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with started(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reports")


@pytest.fixture
def visit(browser, folder):
    """Return a function that opens a report: ``visit(name, width, dark=False)``."""

    def open_page(name, width=1280, dark=False):
        path = folder / f"{name}.html"
        path.write_text(reported(CASES[name]).html(), encoding="utf-8")
        look_like(browser, width, dark)
        for kind in ("browser", "performance"):
            browser.get_log(kind)  # forget earlier pages
        browser.get(path.as_uri())
        return browser

    return open_page


BOXES = """
return [...document.querySelectorAll("[data-test-figure]")].map(figure => {
  const boxes = [...figure.querySelectorAll("svg")].map(svg => svg.getBoundingClientRect());
  return [figure.dataset.testFigure, boxes.filter(b => b.width > 200 && b.height > 100).length];
});
"""
CUES = """
return [...document.querySelectorAll(".scroll")].filter(box => box.clientWidth).map(box => [
  box.scrollWidth > box.clientWidth + 1,
  getComputedStyle(box.parentElement.querySelector(".hint")).display !== "none",
  getComputedStyle(box).maskImage !== "none",
]);
"""


BOTTOMS = """
const bottom = path => document.querySelector(path).getBoundingClientRect().bottom;
return [bottom(".verdict"), bottom("[data-test-next] h3")];
"""


def check_page(driver, name, width):
    """Check that a page is whole."""
    assert driver.title == reported(CASES[name]).summary.title
    assert (
        driver.get_log("browser") == []
    )  # nothing is wrong, and nothing else is asked for:
    asked = asked_for(driver)
    assert [url for url in asked if not url.startswith("data:")] == [driver.current_url]
    # every figure is visible once
    shown = driver.execute_script(BOXES)
    assert len(shown) >= 4
    assert {count for _, count in shown} == {1}, shown
    # the page does not scroll sideways
    script = "return [document.documentElement.scrollWidth, window.innerWidth]"
    content, window = driver.execute_script(script)
    assert window == width
    assert content <= width
    # tables that scroll say so
    found = driver.execute_script(CUES)
    assert len(found) >= 4
    for scrolls, is_said, fades in found:
        assert scrolls == is_said == fades
    if width == PHONE:
        assert any(scrolls for scrolls, _, _ in found)


@pytest.mark.parametrize("name", CASES)
def test_a_page_is_whole_on_every_screen(visit, name):
    for width in (1280, 768, PHONE):
        with case(width):
            check_page(visit(name, width), name, width)


@pytest.mark.parametrize("name", CASES)
def test_the_answer_is_on_the_first_screen(visit, name):
    verdict, steps = visit(name, 1280).execute_script(BOTTOMS)
    assert verdict < 600
    assert steps < 900


def test_wide_tables_scroll_in_their_own_box(visit):
    script = """
    const box = document.querySelector('[data-test-table="recalibrations"] .scroll');
    return [box.scrollWidth > box.clientWidth, getComputedStyle(box).overflowX, box.tabIndex];
    """
    assert visit("recalibrations", PHONE).execute_script(script) == [True, "auto", 0]


def test_the_fade_goes_at_the_end_of_the_table(visit):
    driver = visit("recalibrations", PHONE)
    path = '[data-test-table="recalibrations"] .scroll'
    driver.execute_script(f"document.querySelector('{path}').scrollLeft = 10000")
    driver.execute_async_script("const done = arguments[0]; setTimeout(done, 200)")
    shown = f"return getComputedStyle(document.querySelector('{path}')).maskImage"
    assert driver.execute_script(shown) == "none"


HIDDEN_COLUMNS = """
return [...document.querySelectorAll(".scroll")].filter(box => box.clientWidth)
  .filter(box => box.scrollWidth > box.clientWidth + 1)
  .map(box => box.parentElement.dataset.testTable);
"""
BROKEN = """
const range = document.createRange(), broken = [];
for (const cell of document.querySelectorAll("th, td, dd, dt, h1, h2, h3, li, p, strong")) {
  for (const node of cell.childNodes) {
    const inner = node.nodeType === 3 ? node : node.firstChild;
    if (!inner || inner.nodeType !== 3 || !cell.getClientRects().length) continue;
    for (const word of inner.data.matchAll(/[A-Za-z]{2,}/g)) {
      range.setStart(inner, word.index);
      range.setEnd(inner, word.index + word[0].length);
      const tops = new Set([...range.getClientRects()].map(r => Math.round(r.top)));
      if (tops.size > 1) broken.push(word[0]);
    }
  }
}
return broken;
"""


@pytest.mark.parametrize("name", CASES)
def test_1200_pixels_show_every_column_and_no_screen_breaks_a_word(visit, name):
    driver = visit(name, 1200)
    assert driver.execute_script(HIDDEN_COLUMNS) == []
    if name != "hostile":
        assert driver.execute_script(BROKEN) == []
        assert visit(name, PHONE).execute_script(BROKEN) == []


def test_a_word_that_is_broken_is_found(visit):
    driver = visit("pets", PHONE)
    driver.execute_script(
        "document.querySelector('h1').style = 'width: 2rem; word-break: break-all'"
    )
    assert "Calibration" in driver.execute_script(BROKEN)


def test_long_tables_fold_after_a_whole_row_and_open(visit):
    driver = visit("many")
    path = '[data-test-table="shares"]'
    seen = f"""
    return [...document.querySelectorAll('{path} tbody tr')].filter(r => r.offsetHeight).length
    """
    assert driver.execute_script(seen) == 12
    hidden = f"""
    const box = document.querySelector('{path} .scroll');
    return box.scrollHeight - box.clientHeight;
    """
    assert driver.execute_script(hidden) <= 1  # nothing is cut
    button = driver.find_element("css selector", f"{path} .unfold")
    assert (button.text, button.get_attribute("aria-expanded")) == (
        "Show all 100 rows",
        "false",
    )
    button.click()
    assert driver.execute_script(seen) == 100
    assert button.get_attribute("aria-expanded") == "true"
    button.click()
    assert driver.execute_script(seen) == 12


def column(driver, table, place):
    script = """
    return [...document.querySelectorAll(`[data-test-table="${arguments[0]}"] tbody tr`)]
      .map(row => row.cells[arguments[1]]).map(cell => cell.dataset.sort ?? cell.textContent);
    """
    return driver.execute_script(script, table, place)


def click_head(driver, table, place):
    path = f'[data-test-table="{table}"] thead th:nth-child({place + 1})'
    driver.find_element("css selector", f"{path} button").click()
    return driver.find_element("css selector", path).get_attribute("aria-sort")


def test_tables_sort_when_a_head_is_clicked(visit):
    driver = visit("many")
    before = [float(v) for v in column(driver, "parameters", 3)]
    assert before != sorted(before)
    assert click_head(driver, "parameters", 3) == "ascending"
    assert [float(v) for v in column(driver, "parameters", 3)] == sorted(before)
    assert click_head(driver, "parameters", 3) == "descending"
    assert [float(v) for v in column(driver, "parameters", 3)] == sorted(
        before, reverse=True
    )
    assert click_head(driver, "parameters", 0) == "ascending"
    names = column(driver, "parameters", 0)
    assert names == sorted(names)


@pytest.mark.parametrize(
    ("name", "table", "place", "last"),
    [("recalibrations", "recalibrations", 7, "-"), ("pets", "nested_models", 4, "-")],
)
def test_missing_values_and_words_among_numbers_sort_last(
    visit, name, table, place, last
):
    driver = visit(name)
    for _ in range(2):  # both directions
        click_head(driver, table, place)
        assert column(driver, table, place)[-1] == last


def test_hostile_names_are_text_and_nothing_runs(visit):
    from selenium.common.exceptions import NoAlertPresentException

    driver = visit("hostile")
    with pytest.raises(NoAlertPresentException):
        driver.switch_to.alert.dismiss()
    assert driver.execute_script("return window.stolen === undefined")
    assert driver.execute_script("return document.images.length") == 0
    names = driver.find_elements(
        "css selector", '[data-test-table="shares"] tbody th bdi'
    )
    assert len(names) == len(HOSTILE)
    assert "<script>window.stolen = 1; aler…" in [name.text for name in names]
    assert "x" * 200 in [name.get_attribute("title") for name in names]


@contextmanager
def printed(driver):
    """Show the page as it is printed."""
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    yield
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_print_is_light_and_shows_long_tables_whole(visit):
    driver = visit("many", dark=True)
    pdf = base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert pdf.startswith(b"%PDF")
    assert len(pdf) > 20_000
    script = """
    const box = document.querySelector(".table.tall .scroll");
    const head = getComputedStyle(box.querySelector("th button")).display;
    const paper = getComputedStyle(document.body).backgroundColor;
    const rows = [...box.querySelectorAll("tbody tr")].filter(row => row.offsetHeight).length;
    const masks = [...document.querySelectorAll(".scroll")].map(b => getComputedStyle(b).maskImage);
    const data_checks = [...document.querySelectorAll(".hint, .unfold")].filter(h =>
    h.offsetHeight); return [paper, rows, head, [...new Set(masks)], data_checks.length];
    """
    with printed(driver):
        background, rows, head, masks, data_checks = driver.execute_script(script)
    assert background == "rgb(255, 255, 255)"
    assert rows == 100
    assert (
        head == "contents"
    )  # a head that holds a button is not repeated on every sheet
    assert (masks, data_checks) == (["none"], 0)  # paper does not slide


def test_folded_tables_open_and_are_printed(visit):
    driver = visit("pets")
    box = '[data-test-table="baselines"]'
    table = driver.find_element("css selector", box)
    assert not table.is_displayed()
    driver.find_element("css selector", "details summary").click()
    assert table.is_displayed()
    driver = visit("pets")
    height = (
        "return document.querySelector(arguments[0]).getBoundingClientRect().height"
    )
    folded = (box, "#method .references", "#bayes p")
    assert not any(
        driver.find_element("css selector", path).is_displayed() for path in folded
    )
    with printed(driver):
        assert all(driver.execute_script(height, path) > 5 for path in folded)
        assert driver.execute_script(height, "#method h2") > 5  # the heading stays


CONTRAST = """
const light = c => { const [r, g, b] = c.match(/[\\d.]+/g).map(v => v / 255)
  .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const paper = light(getComputedStyle(document.querySelector("#classes")).backgroundColor);
const ratio = c => { const l = light(c);
  return (Math.max(l, paper) + .05) / (Math.min(l, paper) + .05); };
const texts = [...document.querySelectorAll("svg text")];
return [paper, texts.length, Math.min(...texts.map(t => ratio(getComputedStyle(t).fill)))];
"""


@pytest.mark.parametrize("dark", [False, True])
def test_words_in_figures_can_be_read_in_light_and_dark(visit, dark):
    paper, count, worst = visit("recalibrations", dark=dark).execute_script(CONTRAST)
    assert (paper < 0.05) == dark
    assert count > 50
    assert worst >= 4.5  # WCAG 2, AA


def test_it_is_whole_without_its_script(visit):
    driver = visit("pets")
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        driver.refresh()
        heads = driver.find_elements(
            "css selector", '[data-test-table="parameters"] thead th'
        )
        assert [head.text for head in heads][:2] == ["Class", "δ (shift)"]
        assert not driver.find_elements("css selector", "th button")
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_the_keyboard_reaches_the_verdict_first(visit):
    driver = visit("pets")
    driver.switch_to.active_element.send_keys("\ue004")  # the tabulator
    link = driver.switch_to.active_element
    assert link.get_attribute("class") == "skip"
    assert link.rect["x"] >= 0


@pytest.fixture(scope="module")
def axe(tmp_path_factory):
    return axe_text(tmp_path_factory.mktemp("axe"))


@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [
        ("pets", 1280, False),
        ("pets", 1280, True),
        ("recalibrations", 1280, True),
        ("recalibrations", PHONE, False),
        ("hostile", PHONE, True),
        ("many", 1280, False),
    ],
)
def test_accessibility(visit, axe, name, width, dark):
    driver = visit(name, width, dark)
    assert grave_faults(driver, axe) == []
