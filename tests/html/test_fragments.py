"""What fragments make of plain data: everything is there, escaped, and nothing hides."""

from __future__ import annotations

from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import jinja2
import pytest

from codeenv.grading.verdict import TestResult, Verdict
from codeenv.html import FRAGMENTS, fragment, styled, stylesheet
from codeenv.html.diff import diff_counts, diff_lines
from codeenv.html.text import seconds
from codeenv.record.schema import Change, Data, Raw, Result, Said, Summary, Turn
from codeenv.rendering import Source
from codeenv.tools import Observation

HOSTILE = (
    '<script>alert(1)</script><img src=x onerror="alert(2)">\'"&amp;</style></template>\x1b[2J\x00\u202egnp.exe\ud800\r'
)
ODD = {("b", "class"), ("b", "title")}
SHOWN = "\\x1b[2J\\x00U+202Egnp.exeU+D800\\x0d"


class Reader(HTMLParser):
    """The text of a page, its elements and their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text, self.tags, self.attributes = "", set[str](), set[tuple[str, str]]()
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {(tag, name) for name, _ in attrs}
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def hostile_verdict(text: str) -> Verdict:
    tests = (TestResult(id=f"{text}::{text}", passed=False, message=text), TestResult(id="t::fine", passed=True))
    return Verdict(outcome="failed", tests=tests, reason=text, exit_code=1)


def hostile_turn(text: str) -> Turn:
    made_of = Raw(template="bash.j2", output=Data(text=text), output_bytes=10_000)
    result = Result(
        name=text,
        arguments={"command": text, "path": text, text: text},
        tool="unknown",
        text=f"{text}\n[... 9 bytes omitted; the full output is in {text} ...]\n{text}",
        raw=made_of,
        fault=text,
    )
    changed = Change(path=text, change="changed", diff=f"--- a\n+++ a\n@@ -1 +1 @@\n-{text}\n+{text}\n", target=text)
    return Turn(
        turn=1,
        at=0.1,
        waited=0.1,
        seconds=0.1,
        said=Said(text=text, reasoning=text),
        results=[result, Result(name="bash", arguments=text, tool="bash", text="")],
        diff=[changed],
        diff_note=text,
        error=text,
    )


def recorded(text: str) -> Any:
    """With what the schema's types would not let through, too."""
    opening = SimpleNamespace(
        task=SimpleNamespace(id=text, digest=text, source=text),
        policy=text,
        sandbox=text,
        started=text,
        settings={text: text},
        spec={text: [text]},
        versions={text: text},
        labels={text: text},
        fork=None,
    )
    error = SimpleNamespace(type=text, stage=text, message=text, seconds=1.0)
    return SimpleNamespace(
        opening=opening,
        start=SimpleNamespace(prompt=[{"role": text, "content": text}]),
        turns=[hostile_turn(text)],
        left=SimpleNamespace(files=[SimpleNamespace(path=text, link=False, mode=0o644)], removed=[text], missing=text),
        end=SimpleNamespace(outcome="infra", seconds=1.0, verdict=hostile_verdict(text), error=error),
        cut=text,
    )


def given(text: str) -> dict[str, dict[str, Any]]:
    """For each fragment, values that hold the text wherever they can."""
    turn = hostile_turn(text)
    seen = Observation(text, text, source=Source(template="bash.j2", output=text.encode("utf-8", "replace")))
    row = Summary(file=text, id=text, task=text, policy=text, outcome="failed", tests_passed=1, tests_total=2)
    return {
        "verdict": {"verdict": hostile_verdict(text)},
        "observation": {"observation": seen},
        "call": {"call": turn.results[0]},
        "diff": {"changes": turn.diff, "note": text},
        "files": {"files": {text: 3, f"a/{text}": None}},
        "turn": {"turn": turn},
        "recording": {"recording": recorded(text)},
        "timeline": {"recording": recorded(text), "state": text},
        "episodes": {"episodes": [row]},
        "task": {
            "task": SimpleNamespace(
                id=text,
                instruction=text,
                files={text: b"x"},
                metadata={text: [text]},
                grader=SimpleNamespace(kind=text, timeout=1.0),
            )
        },
        "run": {"policies": [text], "tasks": {text: [[row]]}},
        "verdicts": {"verdicts": {text: hostile_verdict(text)}, "tests": {f"{text}::{text}": [True], text: [None]}},
    }


@pytest.mark.parametrize("name", FRAGMENTS)
def test_content_is_text_and_nothing_else(name: str) -> None:
    hostile, tame = (Reader(fragment(name, **given(text)[name])) for text in (HOSTILE, "tame"))
    assert hostile.tags - {"b"} == tame.tags - {"b"}  # none of its elements came to be
    assert hostile.attributes - ODD == tame.attributes - ODD
    assert not {"script", "img", "a", "style"} & hostile.tags
    assert not [name for _, name in hostile.attributes if name.startswith("on") or name in ("style", "href", "src")]
    assert '<script>alert(1)</script><img src=x onerror="alert(2)">\'"&amp;</style></template>' in hostile.text
    assert SHOWN in hostile.text
    fragment(name, **given(HOSTILE)[name]).encode()  # a lone surrogate would not let it


@pytest.mark.parametrize("name", FRAGMENTS)
def test_a_value_that_is_missing_is_an_error(name: str) -> None:
    with pytest.raises(jinja2.UndefinedError):
        fragment(name)


def test_an_unknown_fragment_is_named() -> None:
    with pytest.raises(ValueError, match=r"no fragment 'nothing'; there are verdict"):
        fragment("nothing")


def test_what_was_cut_is_marked_and_what_is_known_of_it_shown() -> None:
    text = "first\n[... 9,000 bytes omitted; the full output is in /tmp/x ...]\nlast"
    source = Source("bash.j2", output=b"first and more\n" * 10, output_bytes=9_300)
    page = fragment("observation", observation=Observation(text, "bash", source=source))
    assert '<mark class="cut">[... 9,000 bytes omitted; the full output is in /tmp/x ...]</mark>' in page
    assert "before it was cut: 9.1 KiB" in page
    assert "[9,150 bytes that were not kept]" in page
    assert "before it was cut" not in fragment("observation", observation=Observation("all", "bash", source=source))


def test_objects_show_themselves() -> None:
    for shown in (hostile_verdict("a"), Observation("b", "bash"), hostile_turn("c")):
        page = shown._repr_html_()
        assert page.startswith('<div class="codeenv"><style>')
        assert page.count("<style>") == 1
        assert "codeenv" not in repr(shown)


def test_a_style_touches_nothing_around_it() -> None:
    rules = [line for line in stylesheet().splitlines() if line.endswith("{")]
    assert rules[0] == ".codeenv {"
    assert stylesheet() in styled("files", files={})
    assert "</" not in stylesheet()


def test_a_diff_by_its_lines() -> None:
    diff = "--- a\n+++ a\n@@ -1,2 +1,2 @@\n same\n--- was\n+++ is\n\\ No newline at end of file\n"
    assert [kind for kind, _ in diff_lines(diff)] == ["head", "same", "del", "add", "note"]
    assert diff_counts(diff) == (1, 1)
    assert diff_counts("") == (0, 0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 ms"),
        (0.0001, "<1 ms"),
        (0.0994, "99 ms"),
        (0.1, "0.1 s"),
        (59.96, "1 m 00 s"),
        (3725, "1 h 02 m"),
        (None, "–"),
    ],
)
def test_seconds(value: float | None, text: str) -> None:
    assert seconds(value) == text
