"""The served page in a real Chromium: the whole way, and what may go wrong on it.

Skipped where there is no Chromium, no chromedriver or no selenium; the accessibility check also
where axe-core cannot be had from npm."""

import csv
import os
import re
import subprocess
import sys
from contextlib import suppress
from time import monotonic, sleep

import openpyxl
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
from inputs import csv_text
from report_data import HOSTILE

pytest.importorskip("selenium.webdriver", reason="needs the Python package selenium")
from selenium.common.exceptions import StaleElementReferenceException

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (BROWSER and DRIVER), reason=NO_BROWSER),
]

TAB, ENTER = "\ue004", "\ue007"
PATIENCE = 240.0


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Return the address of ``mcllo serve``, run as anybody runs it."""
    call = [sys.executable, "-m", "mcllo", "serve", "--no-browser"]
    environment = {**os.environ, "TMPDIR": str(tmp_path_factory.mktemp("temporary"))}
    process = subprocess.Popen(call, stdout=subprocess.PIPE, text=True, env=environment)
    yield process.stdout.readline().split()[-1]
    process.terminate()
    process.wait(PATIENCE)
    process.stdout.close()


@pytest.fixture(scope="module")
def downloads(tmp_path_factory):
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def driver(tmp_path_factory, downloads):
    with started(tmp_path_factory.mktemp("profile"), downloads) as found:
        yield found


@pytest.fixture(scope="module")
def axe(tmp_path_factory):
    return axe_text(tmp_path_factory.mktemp("axe"))


def until(found):
    """Wait until something is found, and return it."""
    end = monotonic() + PATIENCE
    while True:
        with suppress(StaleElementReferenceException):  # the next page came
            if what := found():
                return what
        assert monotonic() < end, "it takes too long"
        sleep(0.1)


class Person:
    """Somebody at the page."""

    def __init__(self, driver, address):
        self.driver, self.address = driver, address
        driver.get_log("browser")
        asked_for(driver)
        driver.get(address)

    def all(self, css):
        return self.driver.find_elements("css selector", css)

    def one(self, css):
        return until(lambda: next(iter(self.all(css)), None))

    def title(self, beginning):
        """Wait for a page by its title."""
        until(lambda: self.driver.title.startswith(beginning))

    def choose(self, path):
        self.one("#file").send_keys(str(path))

    def press(self, words):
        """Reach a button with the tabulator alone, and press it."""
        from selenium.webdriver import ActionChains

        for _ in range(60):
            ActionChains(self.driver, duration=0).send_keys(TAB).perform()
            if self.driver.switch_to.active_element.text == words:
                ActionChains(self.driver).send_keys(ENTER).perform()
                return
        raise AssertionError(f"the keyboard does not reach {words!r}")

    def click(self, words):
        button = (
            f"//*[self::a or self::button][starts-with(normalize-space(), '{words}')]"
        )
        self.driver.find_element("xpath", button).click()

    def focus(self):
        return self.driver.switch_to.active_element.text

    def stays_in_width(self):
        script = "return [document.documentElement.scrollWidth, window.innerWidth]"
        content, window = self.driver.execute_script(script)
        return content <= window

    def nothing_wrong(self):
        """Nothing was complained about, and nothing asked of anybody else."""
        assert self.driver.get_log("browser") == []
        root = re.match(r"http://127\.0\.0\.1:\d+/", self.address)[0]
        foreign = [
            url for url in asked_for(self.driver) if not url.startswith((root, "data:"))
        ]
        assert [url for url in foreign if not url.startswith("chrome")] == []


@pytest.fixture
def person(driver, address):
    look_like(driver)
    found = Person(driver, address)
    yield found
    found.nothing_wrong()
    while len(driver.window_handles) > 1:
        driver.switch_to.window(driver.window_handles[-1])
        driver.close()
    driver.switch_to.window(driver.window_handles[0])


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "pets.csv"
    path.write_text(csv_text(n=300))
    return path


def workbook(path):
    """Write the rows as percentages in the second sheet of a workbook, with a column of dates."""
    book = openpyxl.Workbook()
    book.active.append(["about", "this"])
    book.active.append(["forecasts", "2026"])
    sheet = book.create_sheet("forecasts")
    header, *rows = csv.reader(csv_text(n=300).splitlines())
    sheet.append(["day", *header])
    for day, (*probs, label) in enumerate(rows):
        sheet.append(
            [
                f"day {day}",
                *(f"{100 * float(p):.1f} %".replace(".", ",") for p in probs),
                label,
            ]
        )
    book.save(path)


def test_from_a_spreadsheet_to_the_recalibrated_one_with_a_mouse(
    person, axe, downloads, tmp_path
):
    workbook(tmp_path / "forecasts.xlsx")
    assert grave_faults(person.driver, axe) == []
    person.choose(tmp_path / "forecasts.xlsx")
    assert "Chosen: forecasts.xlsx" in person.one("[data-chosen]").text
    person.click("Read the table")
    person.title("Check the columns")
    person.driver.find_element("css selector", "#sheet option[value=forecasts]").click()
    person.click("Read this sheet")
    until(lambda: "300 rows" in person.one(".file").text and person.all("#parts"))
    chosen = [select.get_attribute("value") for select in person.all("[data-role]")]
    assert chosen == ["", "class", "class", "class", "label"]
    assert person.one(
        "[name=normalize]"
    ).is_selected()  # rounded to a tenth of a percent
    assert grave_faults(person.driver, axe) == []
    person.click("Assess the probabilities")
    verdict = person.one("[data-test-verdict]").get_attribute("data-test-verdict")
    assert person.focus() == person.one("h1").text  # moved to the result
    person.driver.switch_to.frame(person.one("iframe"))
    assert person.one("#verdict").get_attribute("data-test-verdict") == verdict
    button = person.one("th button")  # its own script runs in the sandbox
    person.driver.execute_script("arguments[0].click()", button)
    assert person.one("th[aria-sort]")
    person.driver.switch_to.default_content()
    assert grave_faults(person.driver, axe) == []
    person.click("Recalibrate the table")
    assert person.one("[data-test-recalibrated]")
    assert person.focus() == "Recalibrated"
    person.click("Download recalibrated.xlsx")
    person.click("Download the model")
    person.click("Download the report")
    names = {"recalibrated.xlsx", "model.json", "report.html"}
    until(lambda: {path.name for path in downloads.iterdir()} == names)
    first = [
        cell.value
        for cell in openpyxl.load_workbook(downloads / "recalibrated.xlsx")[
            "forecasts"
        ][2]
    ]
    assert (first[0], first[-1]) == (
        "day 0",
        csv_text(n=300).splitlines()[1].split(",")[-1],
    )
    assert abs(sum(first[1:4]) - 1.0) < 1e-9


def test_the_keyboard_alone_leads_from_the_file_to_the_report(person, table):
    person.choose(table)
    person.press("Read the table")
    person.title("Check the columns")
    assert person.focus() == "Check the columns"
    person.press("Assess the probabilities")
    person.one("[data-test-verdict]")
    person.press("Read the report in its own tab")
    until(lambda: len(person.driver.window_handles) == 2)
    person.driver.switch_to.window(person.driver.window_handles[1])
    assert person.one("#verdict")
    assert person.driver.title == "Calibration report: pets.csv"


def test_a_second_tab_and_a_cancelled_run(person, table, tmp_path):
    person.choose(table)
    person.click("Read the table")
    person.title("Check the columns")
    first = person.driver.current_window_handle
    person.driver.switch_to.new_window("tab")
    look_like(person.driver)
    person.driver.get(person.address)
    other = tmp_path / "other.csv"
    other.write_text(csv_text(n=80, seed=1))
    person.choose(other)
    person.click("Read the table")
    person.title("Check the columns")
    assert "80 rows" in person.one(".file").text
    person.driver.switch_to.window(first)
    person.click("Assess the probabilities")
    person.title("Assessing")
    assert person.one("[role=status][aria-live=polite]").text
    person.click("Cancel")
    assert person.one("[data-test-notice]").text == "Cancelled. Nothing was changed."
    assert "300 rows" in person.one(".file").text


DROP = """
const data = new DataTransfer(), zone = document.querySelector("[data-drop]");
data.items.add(new File([arguments[1]], arguments[0]));
const event = kind => new DragEvent(kind, {dataTransfer: data, bubbles: true, cancelable: true});
zone.dispatchEvent(event("dragenter"));
const lit = zone.classList.contains("over");
zone.dispatchEvent(event("drop"));
return lit;
"""


def test_a_broken_file_is_one_sentence(person):
    broken = "PK\x03\x04 this is no workbook"
    assert person.driver.execute_script(
        DROP, "broken.xlsx", broken
    )  # the zone shows it
    alert = person.one("[data-test-problem]")
    assert alert.text == (
        "That did not work: broken.xlsx cannot be read: the archive is damaged or cut short. "
        "Write or download it again."
    )
    assert person.driver.switch_to.active_element == alert


def test_hostile_names_do_nothing(person, axe, tmp_path):
    names = HOSTILE[:6]
    path = tmp_path / "<img src=x onerror=alert(1)>'&quot;;.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *names, '"><script>alert(3)</script>'])
        for k in range(60):
            writer.writerow([k, 0.2, 0.2, 0.1, 0.1, 0.2, 0.2, names[k % 6]])
    person.choose(path)
    person.click("Read the table")
    person.title("Check the columns")
    shown = [cell.get_attribute("textContent") for cell in person.all("th.name bdi")]
    assert HOSTILE[0] in shown
    look_like(person.driver, PHONE, dark=True)
    assert person.stays_in_width()
    assert grave_faults(person.driver, axe) == []
    person.click("Assess the probabilities")
    person.one("[data-test-verdict]")
    assert person.stays_in_width()
    person.driver.switch_to.frame(person.one("iframe"))
    assert person.one("#verdict")
    assert person.driver.execute_script("return window.stolen") is None
    person.driver.switch_to.default_content()
    assert person.driver.execute_script("return window.stolen") is None


@pytest.mark.parametrize("dark", [False, True])
def test_a_phone(person, axe, table, dark):
    look_like(person.driver, PHONE, dark)
    assert person.stays_in_width()
    assert grave_faults(person.driver, axe) == []
    person.choose(table)
    person.click("Read the table")
    person.title("Check the columns")
    assert person.stays_in_width()
    assert grave_faults(person.driver, axe) == []


def test_it_works_without_its_script(person, table):
    person.driver.execute_cdp_cmd(
        "Emulation.setScriptExecutionDisabled", {"value": True}
    )
    try:
        person.driver.refresh()
        assert person.all(".scripted[hidden]")  # no word of dropping
        person.choose(table)
        person.click("Read the table")
        person.title("Check the columns")  # the page of progress loads itself again
    finally:
        person.driver.execute_cdp_cmd(
            "Emulation.setScriptExecutionDisabled", {"value": False}
        )
