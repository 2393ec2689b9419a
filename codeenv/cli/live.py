"""What is seen of an evaluation while it runs: live on a terminal, a line now and then where there is none."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from math import ceil
from typing import TYPE_CHECKING, Protocol

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.control import Control
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.segment import ControlType, Segment
from rich.table import Table
from rich.text import Text

from codeenv.cli import terminal
from codeenv.cli.terminal import COLOURS, QUIET_SECONDS, plain_line

if TYPE_CHECKING:
    from codeenv.cli.standing import Failure, Standing
    from codeenv.record.following import Running

SAME_FAILURES = 10  # of one kind that are shown as they happen; the summary counts all
SHOWN_MESSAGE = 500  # characters
BAR = 30  # columns at most
NARROW = 50  # columns, with fewer of which there is room for the task and its turn


class View(Protocol):
    def __call__(self, standing: Standing, failures: Sequence[Failure]) -> None:
        """Show where it stands, and what has failed since the last time."""
        ...


@contextmanager
def view(*, quiet: bool = False, plain: bool = False) -> Generator[View]:
    """On stderr. `quiet`: nothing is shown; `plain`: lines also on a terminal."""
    out = terminal.console(error=True)
    if quiet:
        yield lambda standing, failures: None
    elif plain or not out.is_terminal or out.is_dumb_terminal:
        yield _Lines(out)
    else:
        frame = _Frame()
        with Live(frame, console=out, auto_refresh=False, transient=True, vertical_overflow="visible") as live:
            yield _Screen(live, frame)


class _Lines:
    def __init__(self, out: Console) -> None:
        self._out, self._last, self._shown = out, -QUIET_SECONDS, Counter[tuple[str, str, str]]()

    def __call__(self, standing: Standing, failures: Sequence[Failure]) -> None:
        for text in _told(failures, self._shown):
            self._out.print(Text(f"{standing.title}: {text.plain}"), soft_wrap=True)
        if time.monotonic() - self._last >= QUIET_SECONDS:
            self._last = time.monotonic()
            self._out.print(Text(f"{standing.title}: {_line(standing)}"), soft_wrap=True)


def _line(standing: Standing) -> str:
    parts = [f"{standing.done} of {standing.total} done"]
    parts += [", ".join(f"{name} {count}" for name, count in _outcomes(standing))] if standing.done else []
    parts += [f"mean reward {standing.mean_reward:.3f}"] if standing.mean_reward is not None else []
    parts += [f"{len(standing.running)} running"] if standing.running else []
    left = standing.seconds_left
    return "; ".join(parts + ([f"about {clock(left)} left"] if left is not None else []))


class _Screen:
    def __init__(self, live: Live, frame: _Frame) -> None:
        self._live, self._frame, self._shown = live, frame, Counter[tuple[str, str, str]]()

    def __call__(self, standing: Standing, failures: Sequence[Failure]) -> None:
        self._frame.mend(self._live.console)
        for text in _told(failures, self._shown):
            self._live.console.print(text, soft_wrap=True)
        self._frame.standing = standing
        self._live.refresh()


class _Frame:
    """The live part, never more than the terminal holds."""

    def __init__(self) -> None:
        self.standing: Standing | None = None
        self._width = 0
        self._lengths: list[int] = []

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, height = console.size
        lines: list[list[Segment]] = []
        if self.standing is not None:
            parts = Group(*frame(self.standing, width, height - 1))
            lines = console.render_lines(parts, options.update(width=width, height=None), pad=False)[
                : max(1, height - 1)
            ]
        self._width, self._lengths = width, [Segment.get_line_length(line) for line in lines]
        for number, line in enumerate(lines):
            yield from line
            if number < len(lines) - 1:
                yield Segment.line()

    def mend(self, out: Console) -> None:
        """A terminal that has become narrower has broken lines in two: take away what there is more than was drawn."""
        width = out.size.width
        if width < self._width:
            more = sum(max(1, ceil(length / width)) for length in self._lengths) - len(self._lengths)
            up = ((ControlType.ERASE_IN_LINE, 2), (ControlType.CURSOR_UP, 1))
            out.control(Control(ControlType.CARRIAGE_RETURN, *(up * more)))
            self._width = width


def frame(standing: Standing, width: int, height: int) -> list[RenderableType]:
    """The live part in lines, no more than `height`."""
    head = Table.grid(padding=(0, 1))
    bar = ProgressBar(standing.total, standing.done, width=max(4, min(BAR, width // 4)))
    left = standing.seconds_left
    times = clock(standing.seconds) + (f", about {clock(left)} left" if left is not None else "")
    for _ in range(4):
        head.add_column(no_wrap=True, overflow="ellipsis")
    head.add_row(Text(standing.title, style="bold"), bar, f"{standing.done}/{standing.total}", times)
    counts = Text(no_wrap=True, overflow="ellipsis")
    for name, count in _outcomes(standing):
        counts.append(f"{name} {count}", style=COLOURS.get(name, "default")).append("  ")
    if standing.mean_reward is not None:
        counts.append(f"mean reward {standing.mean_reward:.3f}  ")
    running = standing.running
    begun = running or standing.done
    counts.append(f"{len(running)} running, {standing.boxes} boxes" if begun else "vf-eval is starting")
    lines: list[RenderableType] = [head, counts]
    room = height - len(lines) - 1
    if running and room > 0:
        shown = running if len(running) <= room else running[: max(0, room - 1)]
        lines.append(_table(shown, time.monotonic(), width))
        if more := len(running) - len(shown):
            lines.append(Text(f"and {more} more", style="dim"))
    return lines[: max(1, height)]


def _table(running: Sequence[Running], now: float, width: int) -> Table:
    shown = Table.grid(padding=(0, 2, 0, 0))
    shown.add_column(no_wrap=True, overflow="ellipsis")
    rows = [("task", "turn", "stage", "seconds")]
    rows += [(plain_line(one.task), str(one.turn or "-"), _stage(one), f"{now - one.began:.1f}") for one in running]
    columns = 4
    if width < NARROW:
        columns = 2
        shown.add_column(no_wrap=True, justify="right")
    else:  # of such a width that the columns stay where they are
        shown.add_column(no_wrap=True, justify="right", min_width=4)
        shown.add_column(no_wrap=True, min_width=12)
        shown.add_column(no_wrap=True, justify="right", min_width=7)
    for number, row in enumerate(rows):
        shown.add_row(*(Text(cell, style="" if number else "dim") for cell in row[:columns]))
    return shown


def _stage(one: Running) -> str:
    return {"box": "making box", "turn": "playing", "end": "ending", "grading": "being graded"}[one.stage]


def _outcomes(standing: Standing) -> list[tuple[str, int]]:
    found = standing.outcomes
    return [(name, found[name]) for name in [*COLOURS, *(found.keys() - COLOURS.keys())] if found[name]]


def _told(failures: Sequence[Failure], shown: Counter[tuple[str, str, str]]) -> Generator[Text]:
    for failure in failures:
        shown[failure.kind] += 1
        if shown[failure.kind] <= SAME_FAILURES:
            last = shown[failure.kind] == SAME_FAILURES
            more = " (further ones like it are counted in the summary)" if last else ""
            yield Text(f"{failure.task}: {plain_line(str(failure))[:SHOWN_MESSAGE]}{more}", style="magenta")


def clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
