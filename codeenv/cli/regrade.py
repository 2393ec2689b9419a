"""`codeenv regrade`: what recorded episodes left, judged by the tests as they are now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from codeenv.cli.options import AsJson, FromDataset, Recorded, Sandbox, SandboxSettings, settings_of
from codeenv.cli.recordings import code_of, printable, say, unread, verdict_cell, worked
from codeenv.cli.terminal import INFRA, clear_errors, console, print_json, table

if TYPE_CHECKING:
    from codeenv.record import Recordings
    from codeenv.record.tasks import TaskBook
    from codeenv.replay.regrade import Regraded
    from codeenv.sandbox.api import SandboxProvider

SHOWN_TESTS = 20  # of one recording


def regrade(
    recorded: Recorded,
    dataset: FromDataset = None,
    sandbox: Sandbox = "auto",
    sandbox_setting: SandboxSettings = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A folder for copies of the recordings with their new verdicts."),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Gradings at a time.")] = 4,
    as_json: AsJson = False,
) -> None:
    """Judge the workspaces of recordings again by their tasks' present tests, without a policy, and show which verdicts
    are others, test by test. The recordings stay as they are.

    Exit code 0 when all that can be were judged, whatever the verdicts; 2 when a recording cannot be read or its task
    is not to be had, or starts with other files; 3 when the sandbox failed on one.
    """
    from codeenv.record.tasks import TaskBook
    from codeenv.replay.several import recordings_at
    from codeenv.sandbox import get_provider

    with clear_errors(unavailable=INFRA):
        paths, book = recordings_at(recorded), TaskBook(dataset, changed="tests")
        folder = _folder(output, paths) if output else None
        provider = get_provider(sandbox, **settings_of(sandbox_setting))
        done = worked("regrading", paths, _Work(book, provider, folder), jobs)
    found = sorted((each for _, each in done if isinstance(each, _Row)), key=lambda each: not each.changed)
    passed_over = [(path, each) for path, each in done if isinstance(each, str)]
    changed = sum(each.changed for each in found)
    if as_json:
        counts = {"recordings": len(done), "graded": len(found), "changed": changed}
        not_graded = [{"file": str(path), "why": why} for path, why in passed_over]
        rest = {"not_graded": not_graded, "unread": unread(done), "episodes": [each.plain() for each in found]}
        print_json({**counts, **rest})
    else:
        _show(found, Counter(why for _, why in passed_over), changed)
        if output:
            say(f"recordings with the present verdicts: {output}")
    raise typer.Exit(code_of(done, failed=False))


def _folder(output: Path, paths: Sequence[Path]) -> Recordings:
    """:raises ValueError: there are recordings in it."""
    from codeenv.record import Recordings

    folder = Recordings(output)
    there = sorted(path.name for path in paths if (folder.folder / path.name).exists())
    if there:
        raise ValueError(f"--output: {output} has {there[0]} already; recordings are not written over")
    return folder


@dataclass(frozen=True)
class _Row:
    """One that was judged, without the recording itself. `was` and `now` are for a table."""

    file: str
    task: str
    policy: str
    changed: bool
    outcomes: tuple[str | None, str]
    rewards: tuple[float | None, float]
    was: str
    now: str
    moved: dict[str, tuple[str, str]]

    @classmethod
    def of(cls, done: Regraded) -> _Row:
        before, after, opening = done.before, done.after, done.recording.opening
        return cls(
            file=str(done.recording.path),
            task=opening.task.id,
            policy=opening.policy,
            changed=done.changed,
            outcomes=(done.outcome_before, after.outcome),
            rewards=(before.reward if before else None, after.reward),
            was=verdict_cell(before) if before else (done.outcome_before or "no verdict"),
            now=verdict_cell(after) if done.changed else "[dim]the same[/]",
            moved=done.moved,
        )

    def plain(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "file": self.file,
            "task": self.task,
            "policy": self.policy,
            "changed": self.changed,
            "outcome_before": self.outcomes[0],
            "outcome_after": self.outcomes[1],
            "reward_before": self.rewards[0],
            "reward_after": self.rewards[1],
            "tests": {name: {"before": before, "after": after} for name, (before, after) in self.moved.items()},
        }


@dataclass
class _Work:
    book: TaskBook
    provider: SandboxProvider
    folder: Recordings | None

    async def __call__(self, path: Path) -> _Row | str:
        """Or why it is not to be judged."""
        from anyio import to_thread

        from codeenv.record import Recording
        from codeenv.replay.regrade import NotGraded, gradable, keep, regrade

        recording = await to_thread.run_sync(lambda: Recording.load(path, partial=True))
        regraded, why = None, ""
        try:
            gradable(recording)
            task = await to_thread.run_sync(self.book.find, recording)
            regraded = await regrade(recording, task, self.provider)
        except NotGraded as error:
            why = str(error)
        if self.folder is not None:
            await to_thread.run_sync(keep, recording, self.folder, regraded)
        return _Row.of(regraded) if regraded else why


def _show(found: Sequence[_Row], passed_over: Counter[str], changed: int) -> None:
    from rich.markup import escape

    shown = table("recording", "policy", "was", "is", "tests that are others")
    for each in found:
        moves = Counter(f"{before} -> {after}" for before, after in each.moved.values())
        others = ", ".join(f"{count} {what}" for what, count in moves.items()) or "-"
        shown.add_row(*(escape(printable(name)) for name in (_name(each), each.policy)), each.was, each.now, others)
    if found:
        console().print(shown)
    for each in found:
        if each.moved:
            say(_name(each), "bold")
        for name, (before, after) in islice(each.moved.items(), SHOWN_TESTS):
            say(f"    {name}: {before} -> {after}", {"passed": "green", "failed": "red"}.get(after, "dim"))
        if len(each.moved) > SHOWN_TESTS:
            say(f"    and {len(each.moved) - SHOWN_TESTS} more")
    for why, count in passed_over.items():
        say(f"{count} not judged: {why}", "yellow")
    before, after = sum(each.rewards[0] or 0.0 for each in found), sum(each.rewards[1] for each in found)
    say(f"{len(found)} judged, {changed} verdicts are others; sum of rewards {before:g} -> {after:g}")


def _name(row: _Row) -> str:
    return row.file.rpartition("/")[2]
