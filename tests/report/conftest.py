"""A browser, where there is one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (one) => violations.push(one.violatedDirective));
window.alert = window.prompt = window.confirm = () => { window.broken = 99; };
"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[object]:
    """Headless; what a page's policy forbids is in its `violations`."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    browser, driver = shutil.which("chromium") or shutil.which("chromium-browser"), shutil.which("chromedriver")
    if not browser or not driver:
        pytest.skip("no chromium and chromedriver on this host (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1280,900",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        found.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
        yield found
    finally:
        found.quit()
