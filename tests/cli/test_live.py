"""What is seen while an evaluation runs: it fits the terminal, whatever its size, and what fails is told once."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from codeenv.cli import live, terminal
from codeenv.cli.live import clock, view
from codeenv.cli.standing import Failure, Standing
from codeenv.record.following import Following, Running


def standing(count: int = 6) -> Standing:
    made = Standing("starter, [bold]model[/]", 40, 8, Following(Path("/nonexistent")))
    for n in range(count):
        one = Running(f"{n}.jsonl", f"task-\x1b[31m{n}", "p", {}, time.monotonic() - n, False, "turn", n)
        made.following.running[one.file] = one
    return made


def failure(message: str = "no room after 1.5 s") -> Failure:
    return Failure("task-1", "infra", "create", message, "a.jsonl")


def console(width: int, height: int) -> tuple[Console, io.StringIO]:
    file = io.StringIO()
    return Console(file=file, width=width, height=height, force_terminal=True, color_system=None), file


@pytest.mark.parametrize("width", [10, 25, 40, 80, 200])
@pytest.mark.parametrize("height", [2, 3, 5, 7, 30])
def test_it_fits(width: int, height: int) -> None:
    out, file = console(width, height)
    frame = live._Frame()
    frame.standing = standing()
    out.print(frame)
    lines = file.getvalue().rstrip("\n").split("\n")
    assert len(lines) <= height - 1 or len(lines) == 1
    assert max(map(len, lines)) <= width
    assert "\x1b[31m" not in file.getvalue()
    if height == 30:
        assert len(lines) == 9
        assert lines[3].startswith("task" if width > 10 else "t")
        assert "and" not in file.getvalue()
    if (height, width) == (7, 80):
        assert lines[0].startswith("starter, [bold]model[/] ")
        assert [line.split()[:3] for line in lines[3:]] == [
            ["task-5", "5", "playing"],
            ["task-4", "4", "playing"],
            ["and", "4", "more"],
        ]


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Any:
    def make(width: int, height: int, *, is_terminal: bool = True) -> io.StringIO:
        out, file = console(width, height)
        if not is_terminal:
            out = Console(file=file, width=width)
        monkeypatch.setattr(terminal, "console", lambda error=False: out)
        return file

    return make


def test_a_terminal_that_becomes_narrower(on: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line that was wider than it is now has become two, and that many more are taken away."""
    file = on(60, 20)
    with view() as shown:
        shown(standing(), [])
        width = max(map(len, file.getvalue().split("\n")))
        terminal.console()._width = 30
        before = len(file.getvalue())
        shown(standing(), [])
        drawn = file.getvalue()[before:]
    assert 30 < width <= 60
    height = 9
    broken = sum(len(line) > 30 for line in file.getvalue()[:before].split("\n"))
    assert broken
    assert drawn.count("\x1b[1A") == height - 1 + broken


def test_failures_are_told_above_and_not_for_ever(on: Any) -> None:
    file = on(80, 20)
    with view() as shown:
        shown(standing(), [failure("\x1b]0;gone\x07[red]no room[/]"), failure()])
        for n in range(30):
            shown(standing(), [failure(f"no room after {n} s")])
    text = file.getvalue()
    assert text.count("[red]no room[/]") == 1
    assert "\x1b]0;" not in text
    assert text.count("task-1: infra (create): no room after") == live.SAME_FAILURES
    assert "further ones like it are counted in the summary" in text
    assert text.endswith("\x1b[2K")  # nothing of the live part stays


def test_lines_where_there_is_no_terminal(on: Any) -> None:
    file = on(80, 20, is_terminal=False)
    with view() as shown:
        for _ in range(3):
            shown(standing(), [])
        shown(standing(), [failure()])
    assert file.getvalue().splitlines() == [
        "starter, [bold]model[/]: 0 of 40 done; 6 running",
        "starter, [bold]model[/]: task-1: infra (create): no room after 1.5 s",
    ]


def test_quiet_is_quiet(on: Any) -> None:
    file = on(80, 20)
    with view(quiet=True) as shown:
        shown(standing(), [failure()])
    assert file.getvalue() == ""


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0:00"), (59.6, "1:00"), (754, "12:34"), (3601, "1:00:01")])
def test_a_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text
