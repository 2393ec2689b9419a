"""What the commands share: where they print, how they fail, what they show while they work."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Protocol

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

PLAIN_WIDTH = 140  # columns where there is no terminal
QUIET_SECONDS = 10.0  # between lines of progress where there is no terminal

OK, FAILED, USAGE, INFRA = 0, 1, 2, 3
"""Exit codes. FAILED: what was looked at is not well; INFRA: it could not be looked at (`validate`)."""

SURROGATE = re.compile("[\ud800-\udfff]")

COLOURS = {
    "solved": "green",
    "failed": "red",
    "limit": "yellow",
    "expired": "yellow",
    "model": "magenta",
    "infra": "magenta",
}


def console(*, error: bool = False) -> Console:
    """Plain and wide when piped. Made anew each time, for whatever stdout is now."""
    found = Console(stderr=error, highlight=False, soft_wrap=False, emoji=False)
    if not found.is_terminal:
        found.width = PLAIN_WIDTH
    return found


def table(*columns: str, title: str = "") -> Table:
    """Columns whose name starts with `>` are numbers, aligned right; none but the last one wraps."""
    from rich import box

    made = Table(title=title or None, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for n, name in enumerate(columns):
        number = name.startswith(">")
        made.add_column(name.lstrip(">"), justify="right" if number else "left", no_wrap=n < len(columns) - 1)
    return made


def fail(message: str, code: int) -> typer.Exit:
    """Print a message in red on stderr, literally; raise what this returns."""
    console(error=True).print(Text(message, style="red"), soft_wrap=True)
    return typer.Exit(code)


@contextmanager
def clear_errors(*, unavailable: int = USAGE) -> Generator[None]:
    """Errors that are the user's to mend become their text and an exit code: USAGE, or `unavailable` for a sandbox that
    does not work on this host."""
    from codeenv.sandbox.api import SandboxUnavailable

    try:
        yield
    except SandboxUnavailable as error:
        raise fail(str(error), unavailable) from error
    except (ValueError, FileNotFoundError, PermissionError, NotADirectoryError) as error:  # a TaskError is a ValueError
        raise fail(str(error), USAGE) from error


class Shown(Protocol):
    def __call__(self, done: int, note: str = "") -> None: ...


@contextmanager
def progress(what: str, total: int) -> Generator[Shown]:
    """Call the value with how many are done: a bar on a terminal (stderr), else a line now and then."""
    out = console(error=True)
    if out.is_terminal:
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        with Progress(*columns, TextColumn("{task.fields[note]}"), console=out, transient=True) as bar:
            job = bar.add_task(what, total=total, note="")
            yield lambda done, note="": bar.update(job, completed=done, note=note)
        return
    last = time.monotonic()

    def shown(done: int, note: str = "") -> None:
        nonlocal last
        if time.monotonic() - last >= QUIET_SECONDS:
            last = time.monotonic()
            out.print(f"{what}: {done} of {total} done", markup=False)

    out.print(f"{what}: 0 of {total} done", markup=False)
    yield shown


def print_json(value: Any) -> None:
    """One JSON object on stdout, and nothing else."""
    import json

    text = json.dumps(value, indent=2, ensure_ascii=False)
    # A lone surrogate, which a model can say, has no UTF-8: it stays the escape that it is in JSON.
    sys.stdout.write(SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")


def plain_text(text: str) -> str:
    """What comes from boxes, models and files as it may go to a terminal: without its control codes."""
    from codeenv.terminal import clean

    return clean(text.encode("utf-8", "replace"))


def plain_line(text: str) -> str:
    """The same on one line."""
    return " ".join(plain_text(text).split())
