"""An environment's tasks, by the id that its rows carry; and what a policy is told of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from anyio import to_thread

from codeenv.briefing import system_message, task_message
from codeenv.grading import box_spec
from codeenv.prompts import Prompts
from codeenv.sandbox.api import SandboxProvider, SandboxSpec
from codeenv.settings import EpisodeSettings
from codeenv.sources import Entry, Tasks, TasksById
from codeenv.sources.rows import identifier
from codeenv.task import Task, TaskError


@dataclass(frozen=True)
class Row:
    """What may be published of a task. `system` is empty where there is no system message."""

    id: str
    source: str
    digest: str
    """Hexadecimal."""
    system: str
    question: str

    @property
    def info(self) -> dict[str, str]:
        return {"task_id": self.id, "source": self.source, "digest": self.digest}


class Roster:
    """:param system_prompt: replaces the rendered system message; "" for none."""

    def __init__(
        self,
        provider: SandboxProvider,
        settings: EpisodeSettings,
        spec: SandboxSpec,
        prompts: Prompts,
        system_prompt: str | None = None,
    ) -> None:
        self._isolated = provider.capabilities.isolation != "none"
        self._settings, self._spec, self._prompts = settings, spec, prompts
        self._entries: dict[str, Entry] = {}
        self.tasks = TasksById(self._entries)
        self.specs: list[SandboxSpec] = []
        """What boxes the tasks need, one of each kind."""

        @cache
        def system_of(place: str) -> str:
            return system_message(settings, prompts, place) if system_prompt is None else system_prompt

        self._system_of = system_of

    def rows(self, tasks: Sequence[Task]) -> Iterator[Row]:
        """A row for each task, which is noted by its id; an id that another task has gets its set's name in front."""
        found = Tasks.of(tasks)
        for entry, task in found.found():
            name = entry.id
            while name in self._entries and self._entries[name].digest != entry.digest:
                name = f"{identifier(found.short)}/{name}"
            self._entries.setdefault(name, replace(entry, id=name) if name != entry.id else entry)
            if (needed := box_spec(task, self._spec)) not in self.specs:
                self.specs.append(needed)
            # A box without isolation lives in a directory whose name nobody knows beforehand.
            place = task.workdir or self._spec.workdir if self._isolated else "the current directory"
            question = task_message(task, self._prompts, place, self._settings.protocol)
            yield Row(name, entry.pool.name, entry.digest.hex(), self._system_of(place), question)

    async def task(self, info: Mapping[str, Any]) -> Task:
        """The task of a row's `info`. :raises TaskError: there is none, or it is another than when the row was made."""
        name = str(info.get("task_id"))
        if name not in self.tasks:
            raise TaskError([f"info.task_id {name!r} is not a task of this environment"])
        if (digest := info.get("digest")) and digest != self.tasks.digest(name):
            raise TaskError([f"task {name!r} has changed since the row was made (digest differs)"])
        if self.tasks.at_hand(name):
            return self.tasks[name]
        return await to_thread.run_sync(self.tasks.__getitem__, name)  # reads a file, and may take its time
