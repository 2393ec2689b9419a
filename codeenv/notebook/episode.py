"""An open episode, with its tools as methods."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio
from anyio import to_thread

from codeenv.calls import ToolCall
from codeenv.episode import Action, Episode
from codeenv.grading.verdict import Verdict
from codeenv.html import styled
from codeenv.notebook.home import Home
from codeenv.notebook.workspace import Diff, Files
from codeenv.record.reading import Recording
from codeenv.record.timeline import timeline
from codeenv.record.workspace import start_of
from codeenv.settings import EpisodeSettings
from codeenv.task import Task
from codeenv.tools import Observation

Value = TypeVar("Value")


class Folder:
    """Of recordings that nobody asked for: it goes with the last episode that has one in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._users = 0

    def enter(self) -> None:
        self._users += 1

    async def leave(self) -> None:
        self._users -= 1
        if not self._users:
            await to_thread.run_sync(partial(shutil.rmtree, self.path, ignore_errors=True))


class Stay:
    """What an `OpenEpisode` leaves to be closed. Implements `codeenv.notebook.home.Tenant`."""

    def __init__(self, episode: Episode, folder: Folder | None) -> None:
        self.episode, self.folder = episode, folder
        if folder is not None:
            folder.enter()

    async def close(self) -> None:
        await self.episode.close()
        folder, self.folder = self.folder, None
        if folder is not None:
            await folder.leave()


class OpenEpisode:
    """Made by `codeenv.open_episode`. A call is a turn, seen as a policy would see it. One call runs at a time, and
    others wait for it; one that is interrupted is a turn too, its command is killed, and the next one works.

    `close()` it, or use it in an `async with`; else its box goes when nothing holds it any more, when its time to live
    is over, when the interpreter ends, or with the process.
    """

    def __init__(self, stay: Stay, home: Home) -> None:
        recorder = stay.episode.recorder
        assert recorder is not None
        self._episode, self._recorder = stay.episode, recorder
        self._home, self._folder = home, stay.folder
        self._turn = anyio.Lock()
        home.enter(stay)
        weakref.finalize(self, home.leave, stay).atexit = False  # then the home sees to it

    # --- what a policy may do ---------------------------------------------------------------------------------

    async def bash(self, command: str) -> Observation:
        """Run a shell command; its directory and exported variables carry over to the next."""
        return await self.step(ToolCall("bash", {"command": command}))

    async def read(self, path: str, start_line: int = 1, line_count: int = 0) -> Observation:
        """Show a file, or `line_count` lines of it from `start_line`, counted from 1; 0 lines: to its end."""
        return await self.step(
            ToolCall("read_file", {"path": path, "start_line": start_line, "line_count": line_count})
        )

    async def write(self, path: str, content: str) -> Observation:
        """Create or overwrite a file."""
        return await self.step(ToolCall("write_file", {"path": path, "content": content}))

    async def edit(self, path: str, old_text: str, new_text: str) -> Observation:
        """Replace a piece of text that a file has exactly once."""
        return await self.step(ToolCall("edit_file", {"path": path, "old_text": old_text, "new_text": new_text}))

    async def run_tests(self) -> Verdict:
        """Run the hidden tests on the workspace as it is, in a box of their own.

        :raises ValueError: all runs of this episode (`max_test_runs`) were used, or it has no such tool.
        """
        observation = await self.step(ToolCall("run_tests"))
        if observation.verdict is None:
            raise ValueError(observation.text)
        return observation.verdict

    async def step(self, action: Action) -> Observation:
        """Any action, as `Episode.step` takes it: a tool call, or a message in the text protocol.

        :raises SandboxError: the box is lost. :raises RuntimeError: the episode is over.
        """
        return await self._alone(self._episode.step, action)

    async def finish(self) -> Verdict:
        """Kill what still runs, close the box, judge what is left in a fresh one. The first verdict stands.

        :raises SandboxError: the box was lost, or the grader's broke: there is no verdict.
        """
        return await self._alone(self._episode.finish)

    async def fork(self, turn: int | None = None) -> OpenEpisode:
        """Another open episode, which goes on from the end of `turn` of this one (0: the start, None: the present); see
        `codeenv.Episode.fork`. This one stays as it is, and may be over.

        :raises ValueError: there is no such turn. :raises SandboxError: its box could not be made, or was lost.
        """

        async def forked(turn: int | None) -> OpenEpisode:
            return OpenEpisode(Stay(await self._episode.fork(turn), self._folder), self._home)

        return await self._alone(forked, turn)

    async def _alone(self, function: Callable[..., Awaitable[Value]], *args: Any) -> Value:
        async def run() -> Value:
            async with self._turn:
                return await function(*args)

        return await self._home.call(run)

    # --- what is there to see ---------------------------------------------------------------------------------

    @property
    def task(self) -> Task:
        return self._episode.task

    @property
    def settings(self) -> EpisodeSettings:
        return self._episode.settings

    @property
    def over(self) -> str:
        """Why it takes no more actions (`codeenv.episode.Over`); empty while it does."""
        return self._episode.over

    @property
    def verdict(self) -> Verdict | None:
        """What `finish` gave."""
        return self._episode.verdict

    @property
    def files(self) -> Files:
        """The workspace after the last turn."""
        return Files(self._recorder.tree)

    def diff(self) -> Diff:
        """What is other than the task had it, after the last turn."""
        return Diff.between(start_of(self.task), self._recorder.tree)

    @property
    def recording(self) -> Recording:
        """All that happened so far. :raises RecordingError: its file was damaged, or could not be written."""
        return Recording.load(self.path, partial=True)

    @property
    def path(self) -> Path:
        """The file of its recording. Without `record` it goes when this object does."""
        return self._recorder.path

    def __repr__(self) -> str:
        return timeline(self.recording, self.over or "open")

    def _repr_html_(self) -> str:
        return styled("timeline", recording=self.recording, state=self.over or "open")

    # --- the end ----------------------------------------------------------------------------------------------

    def close(self) -> Closed:
        """Destroy the box. It is gone when this returns, which a box on this machine takes milliseconds for; awaiting
        the result is possible and does nothing more. Idempotent."""
        self._home.wait_for(self._episode.close)
        return Closed()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self._home.call(self._episode.close)


class Closed:
    """What `close` gives: it has happened."""

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield

    def __repr__(self) -> str:
        return "closed"
