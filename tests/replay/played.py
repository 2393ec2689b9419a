"""Episodes played and recorded for the tests of this folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from env_support import double_task

from codeenv.episode import Episode, EpisodeSettings
from codeenv.policies import Message, messages
from codeenv.record import Recording, Recordings, Said
from codeenv.record.schema import Result, Turn
from codeenv.sandbox.api import SandboxProvider
from codeenv.task import Task
from codeenv.text_protocol import write
from codeenv.tools import ToolCall


def bash(command: str) -> list[ToolCall]:
    return [ToolCall("bash", {"command": command})]


SUBMIT = [ToolCall("submit", {})]


async def recorded(
    folder: Path,
    provider: SandboxProvider,
    turns: Sequence[Sequence[ToolCall] | str | Message],
    task: Task | None = None,
    source: Any = None,
    **settings: Any,
) -> Recording:
    """Of an episode that is judged; a turn is calls, a message, or in the other protocols its text."""
    rules = EpisodeSettings(**{"max_turns": 0, "command_timeout": 20.0, **settings})
    episode = await Episode.open(task or double_task(), provider, rules, record=Recordings(folder, source=source))
    try:
        for turn in turns:
            if isinstance(turn, str):
                await episode.step(turn)
            elif isinstance(turn, Message):
                await episode.turn(turn.calls, said=Said(text=turn.text, reasoning=turn.reasoning))
            else:
                await episode.turn(turn)
        if not episode.over:
            episode.stop()
        await episode.finish()
    finally:
        await episode.close()
    assert episode.recorder is not None
    return Recording.load(episode.recorder.path)


def policy(name: str, task: Task, protocol: str = "tools") -> Sequence[Message | str]:
    """A policy's turns."""
    said = messages(name, task, text=protocol == "text")
    if protocol != "text":
        return said
    return ["\n".join([m.text, *(write(c.name, dict(c.arguments or {})) for c in m.calls)]) for m in said]  # type: ignore[arg-type]


def with_result(recording: Recording, turn: int, call: int = 1, **fields: Any) -> Recording:
    """The recording, of which one result is another."""
    turns = [*recording.turns]
    results: list[Result] = [*turns[turn - 1].results]
    results[call - 1] = results[call - 1].model_copy(update=fields)
    turns[turn - 1] = turns[turn - 1].model_copy(update={"results": results})
    return replace(recording, turns=turns)


def with_turn(recording: Recording, turn: int, **fields: Any) -> Recording:
    turns: list[Turn] = [*recording.turns]
    turns[turn - 1] = turns[turn - 1].model_copy(update=fields)
    return replace(recording, turns=turns)
