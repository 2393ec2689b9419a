"""Whether cheats pay: each is played against each task on the road of a real episode, and what it gets is noted."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

import anyio
from anyio import CapacityLimiter, to_thread
from anyio.streams.memory import MemoryObjectSendStream

from codeenv.calls import ToolCall
from codeenv.episode import Episode, EpisodeSettings
from codeenv.grading import box_spec
from codeenv.grading.cheats import Cheat, Move, RunTests, View, Write, cheats, perform
from codeenv.sandbox.api import SandboxError, SandboxProvider, SandboxSpec
from codeenv.task import Task

JOBS = 2
TRIES = 3
TURNS = 0  # a cheat may take as many as it likes

Result = Literal["paid", "failed", "not applicable", "infra"]


@dataclass(frozen=True)
class Attempt:
    """One cheat on one task. `infra`: no verdict in `tries` episodes, so whether it pays is not known; a cheat that
    gets there every time breaks the grader. `note` is the last error, or the verdict's reason. Seconds are wall time.
    """

    task: str
    cheat: str
    family: str
    result: Result
    note: str = ""
    tries: int = 1
    seconds: float = 0.0


@asynccontextmanager
async def audit(
    tasks: Sequence[Task],
    provider: SandboxProvider,
    *,
    battery: Sequence[Cheat] | None = None,
    spec: SandboxSpec | None = None,
    settings: EpisodeSettings | None = None,
    jobs: int = JOBS,
) -> AsyncGenerator[AsyncIterator[Attempt]]:
    """Play every cheat on every task, at most `jobs` episodes at a time; the block's value yields each attempt as it is
    done.

    :param battery: the cheats; all by default. :param spec: what the boxes are like where a task does not say.
    :param settings: of the episodes; as they are by default, without a limit of turns, which only holds cheats up.
    :raises UnsupportedSpec: the sandbox cannot provide what a task needs; before anything is played.
    """
    for needed in dict.fromkeys(box_spec(task, spec).model_dump_json() for task in tasks):
        await to_thread.run_sync(provider.check, SandboxSpec.model_validate_json(needed))
    rules = settings or EpisodeSettings(max_turns=TURNS)
    pairs = [(task, cheat) for task in tasks for cheat in (cheats() if battery is None else battery)]
    send, receive = anyio.create_memory_object_stream[Attempt](len(pairs))
    playing = CapacityLimiter(jobs)
    async with anyio.create_task_group() as group, receive:
        async with send:
            for task, cheat in pairs:
                group.start_soon(_attempt, task, cheat, provider, spec, rules, playing, send.clone())
        yield receive
        group.cancel_scope.cancel()  # a caller that left early wants no more


async def _attempt(
    task: Task,
    cheat: Cheat,
    provider: SandboxProvider,
    spec: SandboxSpec | None,
    settings: EpisodeSettings,
    playing: CapacityLimiter,
    send: MemoryObjectSendStream[Attempt],
) -> None:
    async with send, playing:
        started = time.monotonic()
        result, note, tries = "infra", "", 0
        while result == "infra" and tries < TRIES:
            tries += 1
            try:
                result, note = await _play(task, cheat, provider, spec, settings)
            except SandboxError as error:
                note = f"{error.stage}: {error}"
        seconds = time.monotonic() - started
        await send.send(Attempt(task.id, cheat.name, cheat.family, result, note, tries, seconds))


async def _play(
    task: Task, cheat: Cheat, provider: SandboxProvider, spec: SandboxSpec | None, settings: EpisodeSettings
) -> tuple[Result, str]:
    """:raises SandboxError: there is no verdict."""
    view = View.of(task)
    if next(cheat.play(view), None) is None:
        return "not applicable", ""
    episode = await Episode.open(task, provider, settings, spec=spec)
    try:

        async def take(move: Move) -> str:
            if episode.over:
                return ""  # its time ran out: it is judged as it is
            return (await episode.step(_call(move))).text

        await perform(cheat.play(view), take)
        verdict = await episode.finish()
    finally:
        await episode.close()
    return ("paid" if verdict.reward > 0 else "failed"), verdict.reason


def _call(move: Move) -> ToolCall:
    if isinstance(move, RunTests):
        return ToolCall("run_tests", {})
    if isinstance(move, Write):
        return ToolCall("write_file", {"path": move.path, "content": move.text})
    return ToolCall("bash", {"command": move.command})
