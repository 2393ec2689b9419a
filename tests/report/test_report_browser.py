"""The report in a real browser."""

# One browser and two pages for all: a page is opened anew where a test may leave it changed.
from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from codeenv.report import write_report
from tests.report.pages import HOSTILE, episode, hostile, many

WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (one) => violations.push(one.violatedDirective));
window.alert = window.prompt = window.confirm = () => { window.broken = 99; };
"""
PHONE = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
WIDE = {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}


class Page:
    """A report in the browser."""

    def __init__(self, browser: Any, file: Path) -> None:
        self.browser, self.url = browser, file.as_uri()

    def open(self, anchor: str = "", **metrics: Any) -> Page:
        self.browser.get("about:blank")
        self.browser.get_log("browser")
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {**WIDE, **metrics})
        self.browser.get(self.url + anchor)
        return self

    def js(self, script: str, *values: Any) -> Any:
        return self.browser.execute_script(script, *values)

    def keys(self, *keys: str) -> None:
        """As a person would press them."""
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.browser).send_keys(*keys).perform()

    def text(self, selector: str) -> str:
        return self.js("return document.querySelector(arguments[0]).textContent", selector)

    @property
    def anchor(self) -> str:
        return self.js("return location.hash")

    def until(self, condition: Callable[[], Any]) -> None:
        end = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < end, "it did not come to be in 10 s"
            time.sleep(0.02)

    def assert_clean(self) -> None:
        """Nothing was forbidden, went wrong or was asked of anybody."""
        assert self.js("return window.violations") == []
        assert self.js("return window.broken ?? null") is None
        assert self.js("return performance.getEntriesByType('resource').map((one) => one.name)") == []
        assert self.browser.get_log("browser") == []
        assert self.js("return frames.length") == 0


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
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
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as place:
        service = webdriver.ChromeService(driver, env={**os.environ, "TMPDIR": place})
        found = webdriver.Chrome(options=options, service=service)
        try:
            found.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
            yield found
        finally:
            found.quit()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def run(chromium: Any, folder: Path) -> Page:
    """A run of four episodes; the first has 200 turns with 4,000 characters each to read."""
    (folder / "run").mkdir()
    episode(folder / "run", "a-long", turns=200, lines=250)
    episode(folder / "run", "b-good", "solved", passed=4)
    episode(folder / "run", "c-bad", "failed", passed=1)
    episode(folder / "run", "d-infra", "infra", end={"error": {"type": "SandboxLost", "message": "the box was lost"}})
    write_report(folder / "run", folder / "run.html")
    return Page(chromium, folder / "run.html")


def test_two_hundred_turns_open_at_once(chromium: Any, folder: Path, run: Page) -> None:
    write_report(folder / "run" / "a-long.jsonl", folder / "long.html")
    page = Page(chromium, folder / "long.html").open()
    assert page.js("return document.querySelectorAll('article.turn').length") == 200
    loaded = page.js("return performance.getEntriesByType('navigation')[0].domComplete")
    painted = page.js("return performance.getEntriesByType('paint').map((one) => one.startTime)")
    print(f"opened after {loaded:.0f} ms, painted after {painted} ms")
    assert loaded < 10_000  # a second is the aim; a host may be busy
    page.assert_clean()


def test_keys_go_through_the_turns(run: Page) -> None:
    run.open("#e1")
    run.keys("j")
    assert run.anchor == "#e1-t1"
    run.keys("j", "j", "k", "\ue014")  # the right arrow
    assert run.anchor == "#e1-t3"
    assert run.text("article.turn.here .no") == run.text(".rail a.here b") == "3"
    run.js("location.hash = 'e1-t150'")
    run.until(lambda: run.text("article.turn.here .no") == "150")
    run.until(lambda: abs(run.js("return document.getElementById('e1-t150').getBoundingClientRect().top") - 60) < 30)
    run.keys("f")  # the only turn with a failed call is the second
    assert run.anchor == "#e1-t2"
    run.keys("?")
    assert run.js("return document.getElementById('keys').open")
    run.keys("\ue00c")
    assert not run.js("return document.getElementById('keys').open")
    run.keys("\ue00c")
    run.until(lambda: run.anchor == "#run")
    assert run.js("return document.querySelector('.episode.open')") is None
    run.assert_clean()


def test_search_in_an_episode(run: Page) -> None:
    run.open("#e1")
    run.keys("/", "STEP 77 of", "\ue007")
    run.until(lambda: run.text("#found") == "1 of 1")
    assert run.text("article.turn.here .no") == "77"
    run.keys("/", "secretly 9", "\ue007")  # in the reasoning, which is folded; 9 and 90 to 99
    run.until(lambda: run.text("#found") == "1 of 11")
    assert run.js("return document.querySelector('#e1-t9 .reasoning').open")
    run.keys("n")
    assert (run.text("#found"), run.text("article.turn.here .no")) == ("2 of 11", "90")
    run.keys("N", "N")
    assert (run.text("#found"), run.text("article.turn.here .no")) == ("11 of 11", "99")
    assert run.js("return CSS.highlights.get('found').size") == 11
    run.keys("\ue00c")
    assert (run.text("#found"), run.js("return CSS.highlights.has('found')")) == ("", False)
    run.assert_clean()


def shown(page: Page) -> list[str]:
    rows = "return [...document.querySelectorAll('#episodes tbody tr')].map((row) => row.cells[0].innerText)"
    return [text.partition("\n")[0] for text in page.js(rows)]


def test_the_table_is_filtered_and_sorted(run: Page) -> None:
    run.open()
    everything = ["task-a-long", "task-b-good", "task-c-bad", "task-d-infra"]
    assert shown(run) == everything
    run.js("document.querySelector('.filters [data-outcome=failed]').click()")
    assert shown(run) == ["task-a-long", "task-c-bad"]
    run.js("document.querySelector('.filters [data-outcome=\"\"]').click()")
    tests = "[...document.querySelectorAll('#episodes th')].find((one) => one.textContent == 'tests')"
    run.js(f"{tests}.click()")
    assert shown(run) == ["task-b-good", "task-a-long", "task-c-bad", "task-d-infra"]
    run.js(f"{tests}.click()")
    assert shown(run) == ["task-d-infra", "task-c-bad", "task-a-long", "task-b-good"]
    run.js(f"{tests}.click()")
    assert shown(run) == everything
    run.keys("/", "now step 2 of c-bad")  # what a model said there
    run.until(lambda: shown(run) == ["task-c-bad"])
    run.keys("\ue007", "\ue007")
    run.until(lambda: run.anchor == "#e3")
    assert run.text("#found") == "1 found"
    run.keys("\ue00c", "[")
    run.until(lambda: run.anchor == "#e2")
    run.assert_clean()


@pytest.mark.parametrize("anchor", ["", "#e1"], ids=["run", "episode"])
def test_light_and_dark(run: Page, anchor: str) -> None:
    def colour() -> int:
        got = run.js("return getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in got[4:-1].split(","))

    seen: dict[str, int] = {}
    for scheme in ("light", "dark"):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        run.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        run.open(anchor)
        seen[scheme] = colour()
        run.keys("t")
        seen[f"{scheme}, turned"] = colour()
        run.keys("t", "t")
        assert colour() == seen[scheme]
    assert seen["light"] == seen["dark, turned"] > 600
    assert seen["dark"] == seen["light, turned"] < 120
    run.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    run.assert_clean()


@pytest.mark.parametrize("anchor", ["", "#e1", "#e4"], ids=["run", "episode", "infra"])
def test_a_phone_has_no_need_to_scroll_sideways(run: Page, anchor: str) -> None:
    run.open(anchor, **PHONE)
    assert run.js("return innerWidth") == 360
    assert run.js("return document.documentElement.scrollWidth") == 360
    run.assert_clean()


def test_it_prints_all_of_it(run: Page) -> None:
    run.open("#e2")
    run.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert run.js("return getComputedStyle(document.querySelector('.top')).display") == "none"
    assert run.js("return getComputedStyle(document.querySelector('.open .output')).maxHeight") == "none"
    assert run.js("return getComputedStyle(document.querySelector('.open article')).contentVisibility") == "visible"
    run.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_it_is_read_without_a_script(run: Page) -> None:
    run.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        run.open()
        visible = "const box = arguments[0]; return document.querySelector(box).getClientRects().length > 0"
        assert run.js(visible, "#episodes tbody tr")
        assert not run.js(visible, "#search")
        assert not run.js(visible, "#e3")
        run.open("#e3-t2")
        assert run.js(visible, "#e3-t2")
        assert not run.js(visible, "#e2")
    finally:
        run.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_ten_thousand_episodes(chromium: Any, folder: Path) -> None:
    (folder / "many").mkdir()
    many(folder / "many", 10_000)
    write_report(folder / "many", folder / "many.html", limit=1)  # no timeline is looked for
    page = Page(chromium, folder / "many.html").open()
    print(f"opened after {page.js('return performance.getEntriesByType(`navigation`)[0].domComplete'):.0f} ms")
    assert page.text("#page") == "1 to 200 of 10000"
    assert len(shown(page)) == 200
    page.js("document.getElementById('after').click()")
    assert page.text("#page") == "201 to 400 of 10000"
    page.js("document.querySelector('.filters [data-outcome=infra]').click()")
    assert page.text("#page") == "1 to 200 of 2500"
    assert "without a link" in page.text("#run .notice")
    page.assert_clean()


@pytest.mark.parametrize("single", [False, True], ids=["run", "episode"])
def test_hostile_text_is_text(chromium: Any, folder: Path, single: bool) -> None:
    (folder / f"hostile{single}").mkdir()
    file = hostile(folder / f"hostile{single}")
    write_report(file if single else file.parent, folder / "hostile.html")
    page = Page(chromium, folder / "hostile.html").open("#e1")
    page.js("for (const one of document.querySelectorAll('details')) one.open = true")
    seen = page.js("return document.querySelector('.episode').innerText")
    literal = HOSTILE.partition("\x1b")[0]
    places = seen.count(literal)
    assert places > 25  # message, reasoning, prompt, command, arguments, output, diff, tests, settings, ...
    assert (
        seen.count(literal + r"\x1b[31m\x00U+202Egpj.exeU+FEFF U+D800 &lt;b&gt; \"quoted'".replace('\\"', '"'))
        == places
    )
    links = page.js("return [...document.querySelectorAll('a')].map((one) => one.getAttribute('href'))")
    assert all(link.startswith("#") for link in links)
    allowed = {"script": 2, "style": 1, "form": 1, "meta": 5, "noscript": 1}
    for tag in (
        "script",
        "style",
        "form",
        "meta",
        "noscript",
        "img",
        "iframe",
        "base",
        "textarea",
        "template",
        "object",
    ):
        assert page.js("return document.querySelectorAll(arguments[0]).length", tag) == allowed.get(tag, 0), tag
    marked = "return [...document.querySelectorAll('*')].flatMap((one) => [...one.attributes].map((a) => a.name))"
    assert not [name for name in page.js(marked) if name.startswith("on") or name == "style"]
    page.keys("/", "onload", "\ue007", "j", "n")
    page.assert_clean()


ATTACKS = {
    "element": "document.body.innerHTML = '<img src=x onerror=\"window.broken = 7\">'",
    "handler": "document.body.setAttribute('onclick', 'window.broken = 8'); document.body.click()",
    "script": "const one = document.createElement('script'); one.text = 'window.broken = 9'; document.body.append(one)",
    "image": "new Image().src = 'http://127.0.0.1:9/'",
    "style": "document.body.setAttribute('style', 'display: none')",
    "request": "fetch('http://127.0.0.1:9/').catch(() => null)",
    "frame": "const one = document.createElement('iframe'); one.src = 'data:text/html,x'; document.body.append(one)",
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_what_got_past_the_escaping_would_do_nothing(run: Page, attack: str) -> None:
    run.open()
    run.js(f"try {{ {attack} }} catch (error) {{ window.violations.push(String(error)) }}")
    run.until(lambda: run.js("return window.violations.length"))
    assert run.js("return window.broken ?? null") is None
    assert run.js("return getComputedStyle(document.body).display") == "block"
