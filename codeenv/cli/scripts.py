"""What the policy `script` plays: a file of messages, or recordings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from codeenv.policies import Message, Script
    from codeenv.record import Recording
    from codeenv.task import Task

FIRST_LINE = 1024 * 1024  # bytes of it that are looked at


def script_from(path: Path, tasks: Sequence[Task]) -> Script:
    """The messages of a file, or those of a recording or of a folder of them, exactly as they were recorded: several
    recordings of one task are attempts, in the order in which they began.

    :raises PolicyError, RecordingError: a file is malformed; names it. :raises FileNotFoundError: there is none.
    :raises ValueError: the recordings are of none of these tasks.
    """
    from codeenv.policies import Script
    from codeenv.record import Recording
    from codeenv.replay.several import recordings_at

    if path.exists() and not path.is_dir() and not _is_recording(path):
        return Script.load(path)
    recordings = [Recording.load(each, partial=True) for each in recordings_at(path)]
    recordings.sort(key=lambda each: (each.opening.started, each.path.name))
    known = {task.id for task in tasks}
    by_task: dict[str, list[list[Message]]] = {}
    for recording in recordings:
        name = _known(recording.opening.task.id, known)
        if name and recording.turns:
            by_task.setdefault(name, []).append(_messages(recording))
    if not by_task:
        raise ValueError(f"--script: {path} has no turns of any of the {len(known)} tasks")
    return Script(by_task)


def _is_recording(path: Path) -> bool:
    with path.open("rb") as file:
        line = file.readline(FIRST_LINE)
    try:
        opening: object = json.loads(line)
    except ValueError:
        return False
    return isinstance(opening, dict) and cast("dict[str, object]", opening).get("kind") == "episode"


def _known(name: str, known: set[str]) -> str:
    """An environment puts a set's name in front of an id that another set's task has."""
    while name and name not in known:
        name = name.partition("/")[2]
    return name


def _messages(recording: Recording) -> list[Message]:
    """In the protocols `text` and `answer` the text is all: its blocks are the calls."""
    from codeenv.policies import Message
    from codeenv.tools import ToolCall

    native = recording.opening.settings.get("protocol", "tools") == "tools"
    found: list[Message] = []
    for turn in recording.turns:
        results = [result for result in turn.results if native and result.tool != "none"]
        calls = tuple(ToolCall(result.name, result.arguments, result.id) for result in results)
        # A message with nothing at all is one that frameworks refuse.
        found.append(Message(turn.said.text or " " * (not calls), calls, turn.said.reasoning))
    return found
