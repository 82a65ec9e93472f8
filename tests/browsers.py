"""A real browser for tests: Debian's Chromium, driven through its WebDriver, and axe-core."""

import json
import os
import shutil
import subprocess
from contextlib import contextmanager

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
NO_BROWSER = "needs Debian's packages chromium and chromium-driver"
PHONE = 390

FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars "
    "--disable-background-networking --disable-component-update --disable-sync"
)


@contextmanager
def started(profile, downloads=None):
    """Give a browser with a profile of its own; files that it is given go to `downloads`."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in [*FLAGS.split(), f"--user-data-dir={profile}"]:
        options.add_argument(flag)
    if downloads is not None:
        options.add_experimental_option(
            "prefs", {"download.default_directory": str(downloads)}
        )
    options.set_capability(
        "goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"}
    )
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


def look_like(driver, width=1280, dark=False):
    """Give the window a width and a colour scheme; nothing moves."""
    size = {
        "width": width,
        "height": 900,
        "deviceScaleFactor": 1,
        "mobile": width < 500,
    }
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    still = {"name": "prefers-reduced-motion", "value": "reduce"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme, still]})


def asked_for(driver):
    """Return the addresses that were asked for since this was last called."""
    events = [
        json.loads(entry["message"])["message"]
        for entry in driver.get_log("performance")
    ]
    sent = [e["params"] for e in events if e["method"] == "Network.requestWillBeSent"]
    return [request["request"]["url"] for request in sent]


def axe_text(place):
    """Return the text of axe-core, from MCLLO_AXE or from npm; skip where it cannot be had."""
    given = os.environ.get("MCLLO_AXE")
    if given:
        with open(given, encoding="utf-8") as file:
            return file.read()
    return (from_npm("axe-core@4", place) / "axe.min.js").read_text(encoding="utf-8")


def from_npm(package, place):
    """Install a package of npm into `place` and return its folder; skip where it cannot be had."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip(f"needs npm, for {package}")
    call = [npm, "install", "--no-audit", "--no-fund", "--silent", package]
    try:
        subprocess.run(call, cwd=place, check=True, capture_output=True, timeout=60)
    except (subprocess.SubprocessError, OSError):
        pytest.skip(f"{package} could not be had from npm")
    return place / "node_modules" / package.partition("@")[0]


def grave_faults(driver, axe):
    """Return what axe-core finds serious or critical on the page."""
    driver.execute_script(axe)
    found = driver.execute_async_script(
        "const done = arguments[0]; axe.run().then(r => done(r.violations));"
    )
    return [
        (rule["id"], rule["help"], rule["nodes"][0]["html"][:200])
        for rule in found
        if rule["impact"] in ("serious", "critical")
    ]
