"""What the commands share that go through recordings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from codeenv.cli.terminal import COLOURS, FAILED, INFRA, OK, USAGE, console, fail, progress

if TYPE_CHECKING:
    from codeenv.record import Recording
    from codeenv.record.schema import Judged

T = TypeVar("T")
Done = Sequence[tuple[Path, T | Exception]]


def worked(what: str, paths: Sequence[Path], work: Callable[[Path], Awaitable[T]], jobs: int) -> Done[T]:
    """Do it with each, and show how far it is; in order of path."""
    import anyio

    return anyio.run(_all, what, paths, work, jobs)


async def _all(what: str, paths: Sequence[Path], work: Callable[[Path], Awaitable[T]], jobs: int) -> Done[T]:
    from codeenv.replay.several import each

    done: list[tuple[Path, T | Exception]] = []
    with progress(what, len(paths)) as shown:
        async with each(paths, work, jobs) as arriving:
            async for path, result in arriving:
                done.append((path, result))
                shown(len(done), path.name)
    return sorted(done, key=lambda one: one[0])


def code_of(done: Done[Any], *, failed: bool) -> int:
    """The exit code of a command, after what went wrong is said on stderr: FAILED before INFRA before USAGE."""
    code = OK
    for path, error in done:
        if isinstance(error, Exception):
            infra, text = _fault(path, error)
            fail(printable(text), 0)
            code = INFRA if infra else code or USAGE
    return FAILED if failed else code


def unread(done: Done[Any]) -> list[dict[str, Any]]:
    """Those of which nothing is known, and why."""
    faults = [(path, *_fault(path, error)) for path, error in done if isinstance(error, Exception)]
    return [{"file": str(path), "error": text, "infra": infra} for path, infra, text in faults]


def _fault(path: Path, error: Exception) -> tuple[bool, str]:
    from codeenv.sandbox.api import SandboxError

    text = f"{error.stage}: {error}" if isinstance(error, SandboxError) else str(error)
    return isinstance(error, SandboxError), text if str(path) in text else f"{path}: {text}"


def verdict_cell(judged: Judged | None) -> str:
    if judged is None:
        return "no verdict"
    return f"[{COLOURS.get(judged.outcome, 'default')}]{judged.outcome}[/] {judged.passed}/{len(judged.tests)}"


def heading(recording: Recording) -> str:
    opening = recording.opening
    return f"{opening.task.id}, {opening.policy or 'no policy named'}, {recording.path}"


def say(text: str, style: str = "") -> None:
    """Something that may hold anything, on one line of its own."""
    console().print(printable(text), markup=False, soft_wrap=True, style=style)


def say_diff(lines: str) -> None:
    for line in lines.split("\n") if lines else ():
        say(f"    {line}", {"-": "red", "+": "green"}.get(line[:1], "dim"))


def printable(text: str) -> str:
    """What a policy wrote may move a terminal's cursor, or do worse."""
    from codeenv.rendering import presentable

    return presentable(text).replace("\r", "\\r")
