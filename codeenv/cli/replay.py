"""`codeenv replay`: recordings played again, or what the model saw made again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from codeenv.cli.options import AsJson, FromDataset, Recorded, SandboxSettings, settings_of
from codeenv.cli.recordings import code_of, unread, worked
from codeenv.cli.replay_table import Replay, show, show_all
from codeenv.cli.terminal import INFRA, USAGE, clear_errors, fail, print_json

if TYPE_CHECKING:
    from codeenv.prompts import Prompts
    from codeenv.record import Recordings
    from codeenv.record.tasks import TaskBook
    from codeenv.sandbox.api import SandboxProvider

NO_SANDBOX = "none"
SANDBOX_HELP = "A sandbox by name, or auto; none: run nothing, and make again what the model saw."


def replay(
    recorded: Recorded,
    sandbox: Annotated[str, typer.Option(help=SANDBOX_HELP)] = "auto",
    sandbox_setting: SandboxSettings = None,
    dataset: FromDataset = None,
    changed_task: Annotated[
        bool, typer.Option("--changed-task", help="Also where the task is another than it was.")
    ] = False,
    given_tests: Annotated[
        bool, typer.Option("--given-tests", help="Answer run_tests as recorded; run the tests at the end alone.")
    ] = False,
    prompts: Annotated[Path | None, typer.Option(help="A directory of templates that replace ours.")] = None,
    observation_tokens: Annotated[
        int | None, typer.Option(min=64, help="With --sandbox none: another budget of one tool's output.")
    ] = None,
    record: Annotated[Path | None, typer.Option(help="Keep the replays' own recordings in this folder.")] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Episodes at a time.")] = 4,
    as_json: AsJson = False,
) -> None:
    """Play the calls of a recording, or of a folder of them, in fresh boxes, and say turn by turn what differs: exit
    codes, what the policy saw, what changed in the workspace; and whether the verdict is the same.

    With --sandbox none nothing is run: what the model saw is made again with the present templates, or with others
    (--prompts, --observation-tokens).

    Exit code 0 when nothing differs but times, 1 when something does, 2 when a recording cannot be read or its task is
    not to be had, 3 when the sandbox failed; of several, the first of 1, 3, 2.
    """
    from codeenv.cli.rerender import rerender
    from codeenv.prompts import Prompts
    from codeenv.record import Recordings
    from codeenv.record.tasks import TaskBook
    from codeenv.replay.several import recordings_at
    from codeenv.sandbox import get_provider

    with clear_errors(unavailable=INFRA):
        paths, templates = recordings_at(recorded), Prompts(prompts)
        book = TaskBook(dataset, changed="any" if changed_task else "refuse")
        if sandbox == NO_SANDBOX:
            raise typer.Exit(rerender(paths, book, templates, observation_tokens, as_json))
        if observation_tokens is not None:
            raise fail("--observation-tokens goes with --sandbox none: a replay has the recorded settings", USAGE)
        provider = get_provider(sandbox, **settings_of(sandbox_setting))
        kept = Recordings(record) if record else None
        done = worked("replaying", paths, _Work(book, provider, templates, kept, given_tests), jobs)
    found = [each for _, each in done if not isinstance(each, Exception)]
    different = sum(not each.same for each in found)
    if as_json:
        counts = {"recordings": len(done), "same": len(found) - different, "different": different}
        print_json({**counts, "unread": unread(done), "episodes": [each.plain() for each in found]})
    elif recorded.is_dir():
        show_all(found, len(done))
    else:
        for each in found:
            show(each)
    raise typer.Exit(code_of(done, failed=bool(different)))


@dataclass
class _Work:
    book: TaskBook
    provider: SandboxProvider
    prompts: Prompts
    record: Recordings | None
    given: bool

    async def __call__(self, path: Path) -> Replay:
        from anyio import to_thread

        from codeenv.record import Recording
        from codeenv.replay import replay

        recording = await to_thread.run_sync(lambda: Recording.load(path, partial=True))
        task = await to_thread.run_sync(self.book.find, recording)
        done = await replay(recording, task, self.provider, prompts=self.prompts, record=self.record, given=self.given)
        return Replay.of(done)
