"""The site of `make docs` in a real browser: whole, quiet, and found by its search.

Skipped where there is no Chromium, no chromedriver or no selenium.
"""

import json
import os
import shutil
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

if "MCLLO_SITE" not in os.environ:
    pytest.skip("`make docs` builds the site and runs this", allow_module_level=True)
webdriver = pytest.importorskip(
    "selenium.webdriver", reason="needs the Python package selenium"
)
waiting = pytest.importorskip("selenium.webdriver.support.ui")

SITE = Path(os.environ["MCLLO_SITE"]).resolve()
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (BROWSER and DRIVER),
        reason="needs Debian's packages chromium and chromium-driver",
    ),
]
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars "
    "--disable-background-networking --disable-component-update --disable-sync"
)
KINDS = [
    *(
        "index.html",
        "overview.html",
        "changes.html",
        "how-to/index.html",
        "how-to/monitor.html",
    ),
    *("explanation/theory.html", "explanation/quality.html", "studies/cifar10.html"),
    *("reference.html", "reference/command-line.html", "reference/glossary.html"),
    *("reference/api/mcllo.assess.html", "reference/api/mcllo.MCLLOCalibrator.html"),
    *(
        "gallery/index.html",
        "gallery/reliability.html",
        "tutorials/index.html",
        "report.html",
    ),
]
TUTORIALS = sorted(
    p.relative_to(SITE).as_posix() for p in (SITE / "tutorials").glob("*.html")
)
PAGES = sorted({*KINDS, *TUTORIALS})
PHONE = 390
SEARCHED = {
    "temperature": "reference/api/mcllo.calibrators.TemperatureScaling.html",
    "baseline": "explanation/baseline.html",
    "zeros": "explanation/zeros.html",
}


class Quiet(SimpleHTTPRequestHandler):
    """A static server that says nothing."""

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def address():
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in [
        *FLAGS.split(),
        f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
    ]:
        options.add_argument(flag)
    options.set_capability(
        "goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"}
    )
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def visit(browser, address):
    """Return a function that opens a page: ``visit(name, width, dark=False)``."""

    def open_page(name, width=1280, dark=False):
        size = {
            "width": width,
            "height": 900,
            "deviceScaleFactor": 1,
            "mobile": width < 500,
        }
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        for kind in ("browser", "performance"):
            browser.get_log(kind)  # forget earlier pages
        browser.get(address + name)
        return browser

    return open_page


def check_quiet(driver, address):
    """Assert that nothing went wrong on the page, and that it asked no other host."""
    assert [
        entry for entry in driver.get_log("browser") if entry["level"] != "INFO"
    ] == []
    events = [
        json.loads(entry["message"])["message"]
        for entry in driver.get_log("performance")
    ]
    sent = [e["params"] for e in events if e["method"] == "Network.requestWillBeSent"]
    asked = [request["request"]["url"] for request in sent]
    assert any(url.startswith(address) for url in asked)
    assert [url for url in asked if not url.startswith((address, "data:"))] == []


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [1280, PHONE])
def test_a_page_is_whole_and_asks_no_other_host(visit, address, name, width):
    driver = visit(name, width)
    assert len(driver.find_elements("css selector", "h1")) == 1
    check_quiet(driver, address)
    script = "return [document.documentElement.scrollWidth, window.innerWidth]"
    content, window = driver.execute_script(script)
    assert window == width
    assert content <= width  # the page does not slide sideways


@pytest.mark.parametrize("word", SEARCHED)
def test_search_finds(visit, address, word):
    driver = visit(f"search.html?q={word}")
    waiting.WebDriverWait(driver, 60).until(
        lambda d: d.find_elements("css selector", "#search-results ul.search li a")
    )
    waiting.WebDriverWait(driver, 60).until(
        lambda d: "finished" in d.find_element("css selector", "#search-results").text
    )
    links = driver.find_elements("css selector", "#search-results ul.search li a")
    found = [
        link.get_attribute("href").partition("?")[0].partition("#")[0] for link in links
    ]
    assert address + SEARCHED[word] in found
    check_quiet(driver, address)


PAPER = "return getComputedStyle(document.body).backgroundColor"


def test_dark_mode_follows_the_system_and_the_button(visit):
    light = visit("index.html").execute_script(PAPER)
    dark = visit("index.html", dark=True).execute_script(PAPER)
    assert light == "rgb(255, 255, 255)"
    assert dark == "rgb(15, 19, 23)"
    driver = visit("index.html")
    press = "document.querySelector(`.theme-change-button[data-mode='${arguments[0]}']`).click()"
    driver.execute_script(press, "dark")
    assert driver.execute_script(PAPER) == dark
    driver.execute_script(press, "auto")
    assert driver.execute_script(PAPER) == light


INK = """
return getComputedStyle(document.querySelector("figure.drawn svg text")).fill;
"""


def test_figures_follow_the_theme(visit):
    light = visit("gallery/reliability.html").execute_script(INK)
    dark = visit("gallery/reliability.html", dark=True).execute_script(INK)
    assert (light, dark) == ("rgb(31, 35, 40)", "rgb(232, 236, 240)")


SLIDING = """
return [...document.querySelectorAll(".bd-article table")]
  .filter(table => table.scrollWidth > table.clientWidth).map(table => table.tabIndex);
"""


def test_what_slides_can_be_reached_and_every_link_has_a_name(visit):
    stops = visit("studies/cifar10.html", PHONE).execute_script(SLIDING)
    assert stops
    assert set(stops) == {0}
    links = visit("gallery/index.html").find_elements(
        "css selector", ".sphx-glr-thumbcontainer a"
    )
    assert len(links) >= 12
    assert all(link.accessible_name for link in links)


def test_the_report_on_the_first_page_is_the_report(visit):
    driver = visit("index.html")
    frame = driver.find_element("css selector", ".report iframe")
    driver.execute_script("arguments[0].scrollIntoView()", frame)
    driver.switch_to.frame(frame)
    waiting.WebDriverWait(driver, 60).until(
        lambda d: d.find_elements("css selector", ".verdict")
    )
    driver.switch_to.default_content()
