"""Episodes for clients that are elsewhere: a session plays one at a time, on tasks and boxes that stay with us.

No framework is known here; a face puts it behind its own protocol.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from uuid import uuid4

import anyio
from anyio import to_thread

from codeenv.calls import ToolCall
from codeenv.episode import Episode
from codeenv.grading.verdict import Verdict
from codeenv.prompts import Prompts
from codeenv.record import Recordings, Said
from codeenv.sandbox.api import SandboxError, SandboxProvider, SandboxSpec
from codeenv.settings import EpisodeSettings
from codeenv.sources import Tasks
from codeenv.task import Task
from codeenv.tools import Observation


class Refused(ValueError):
    """A request that cannot be met; the message says what could be."""


class Infra(RuntimeError):
    """A box could not be made, was lost or broke. There is no reward, and the session goes on with a reset."""


@dataclass
class Home:
    """What all sessions of a server share. Used from one event loop."""

    splits: Mapping[str, Tasks]
    """Tasks by the name of their split. The first is meant where none is named."""
    provider: SandboxProvider
    settings: EpisodeSettings
    spec: SandboxSpec
    prompts: Prompts
    record: Recordings | None = None
    _next: count[int] = field(default_factory=count)
    _open: set[Episode] = field(default_factory=set[Episode])
    closed: bool = False

    def split(self, name: str) -> Tasks:
        """:raises Refused: there is no such split."""
        if name not in self.splits:
            raise Refused(f"split: must be one of {', '.join(self.splits)}, not {name!r}")
        return self.splits[name]

    def listed(self, split: str, start: int | None = None, stop: int | None = None) -> list[dict[str, Any]]:
        """Names and places of tasks, without the tasks. :raises Refused: there is no such split."""
        entries = self.split(split).entries
        return [{"id": entries[at].id, "split": split, "index": at} for at in range(len(entries))[start:stop]]

    async def task(
        self, *, task_id: str | None = None, split: str | None = None, index: int | None = None, seed: int | None = None
    ) -> Task:
        """The one of that name, or at that place, or that the seed takes; else the next one, whoever asks.

        :raises Refused: there is no such task. :raises TaskError: what it is made from has changed.
        """
        if task_id is not None and (split, index, seed) != (None, None, None):
            raise Refused("task_id: it says everything; leave out split, index and seed")
        if task_id is not None:
            for tasks in self.splits.values():
                for place, entry in enumerate(tasks.entries):
                    if entry.id == task_id:
                        return await to_thread.run_sync(tasks.__getitem__, place)
            raise Refused(f"task_id: {task_id!r} is not a task of this server")
        tasks = self.split(next(iter(self.splits)) if split is None else split)
        if index is None:
            index = next(self._next) % len(tasks) if seed is None else random.Random(seed).randrange(len(tasks))
        if not 0 <= index < len(tasks):
            raise Refused(f"index: must be 0 to {len(tasks) - 1}, not {index}")
        return await to_thread.run_sync(tasks.__getitem__, index)

    async def begin(self, task: Task, labels: Mapping[str, Any]) -> Episode:
        """:raises SandboxError: its box could not be made."""
        options: dict[str, Any] = {"spec": self.spec, "prompts": self.prompts, "record": self.record, "labels": labels}
        episode = await Episode.open(task, self.provider, self.settings, **options)
        self._open.add(episode)
        if self.closed:
            await self.end(episode)
        return episode

    async def end(self, episode: Episode) -> None:
        """Idempotent, never raises."""
        await episode.close()
        self._open.discard(episode)

    async def close(self) -> None:
        """End every episode, also one whose box is still being made. Never raises."""
        self.closed = True
        with anyio.CancelScope(shield=True):
            for episode in list(self._open):
                await self.end(episode)


class Session:
    """One client's: at most one episode, the last that it began."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.episode: Episode | None = None
        self.id = ""
        """The episode's, by the client or made up."""
        self.outcome = ""
        """How the episode ended; empty while it has not."""

    async def reset(self, *, id: str | None = None, **which: Any) -> Episode:
        """End the episode that there is and begin one. `which`: as of `Home.task`.

        :raises Refused: there is no such task. :raises Infra: the box could not be made.
        """
        task = await self.home.task(**which)
        if self.episode is not None:
            await self.home.end(self.episode)
        self.episode, self.id, self.outcome = None, id or uuid4().hex, ""
        async with self._faults():
            self.episode = await self.home.begin(task, {"episode_id": self.id})
        return self.episode

    async def step(
        self, message: str = "", calls: Sequence[ToolCall] = (), *, stop: bool = False
    ) -> tuple[list[Observation], Verdict | None]:
        """Take one message of the policy; a verdict when that was the last. `stop`: there is none, and will be none.

        :raises Refused: there is no episode that takes it. :raises Infra: a box was lost or broke.
        """
        episode = self.episode
        if episode is None or episode.over:
            how = f"the episode is over ({self.outcome or episode.over})" if episode else "there is no episode yet"
            raise Refused(f"step: {how}; reset begins one")
        native = episode.settings.protocol == "tools"
        if calls and not native:
            raise Refused(f"calls: with the protocol {episode.settings.protocol!r} a message is text")
        seen: list[Observation] = []
        async with self._faults():
            if stop:
                episode.stop()
            elif native:
                seen = await episode.turn(calls, said=Said(text=message))
            else:
                seen = [await episode.step(message)]
            verdict = await episode.finish() if episode.over else None
        if verdict is not None:
            self.outcome = verdict.outcome
            await self.home.end(episode)
        return seen, verdict

    @asynccontextmanager
    async def _faults(self) -> AsyncGenerator[None]:
        """The one boundary at which a sandbox's faults become a session's: none of them is ever a reward."""
        try:
            yield
        except SandboxError as error:
            self.outcome = "infra"
            if self.episode is not None:
                self.episode.abandon("infra", error)
                await self.home.end(self.episode)
            took = f" after {error.seconds:.2f} s" if error.seconds is not None else ""
            raise Infra(f"infra: {error.stage}{took}: {error}; there is no reward, reset begins another") from error
