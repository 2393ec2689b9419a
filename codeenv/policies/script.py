"""The `script` policy: messages from a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from codeenv.policies.message import Message, PolicyError
from codeenv.tools import ToolCall


class Script:
    """Messages for every task, or for each by its id.

    A JSON file holds a list of messages, or an object of task id -> list (`"*"`: every other task). A JSONL file
    (`.jsonl`) holds a message a line, or `{"task": ID, "messages": [...]}` a line. A message is a string, or an object
    with `content` (text) and `tool_calls`: each `{"name", "arguments", "id"}` or in OpenAI's form with `"function"`;
    `arguments` is an object, or raw text to be sent as it is. In the text protocol, calls are written as blocks behind
    the text. After its last message a script submits.

    :param by_task: for each task one attempt, or several that conversations on it play in turn.
    """

    def __init__(self, by_task: Mapping[str, list[list[Message]]]) -> None:
        self._by_task = dict(by_task)

    @classmethod
    def load(cls, path: str | Path) -> Script:
        """:raises PolicyError: the file is malformed; says where. :raises FileNotFoundError: there is none."""
        path = Path(path)
        source = path.read_text(encoding="utf-8")
        try:
            if path.suffix in (".jsonl", ".ndjson"):
                return cls._of_lines([json.loads(line) for line in source.split("\n") if line.strip()])
            return cls.of(json.loads(source))
        except ValueError as error:
            raise PolicyError(f"{path}: {error}") from error

    @classmethod
    def _of_lines(cls, lines: list[Any]) -> Script:
        if lines and all(isinstance(line, dict) and "messages" in line for line in lines):
            return cls.of({str(line.get("task", "*")): line["messages"] for line in lines})
        return cls.of(lines)

    @classmethod
    def of(cls, value: object) -> Script:
        """From what such a JSON file holds. :raises PolicyError: it is malformed."""
        by_task = cast(dict[str, object], value) if isinstance(value, dict) else {"*": value}
        return cls({task: [_messages(given, "messages" if task == "*" else task)] for task, given in by_task.items()})

    def attempts(self, task_id: str) -> list[list[Message]]:
        """:raises PolicyError: the script has nothing for this task."""
        found = self._by_task.get(task_id, self._by_task.get("*"))
        if found is None:
            raise PolicyError(f"the script has no messages for task {task_id!r}, and none under '*'")
        return found


def _messages(value: object, where: str) -> list[Message]:
    if not isinstance(value, list):
        raise PolicyError(f"{where}: must be a list of messages")
    return [_message(item, f"{where}[{n}]") for n, item in enumerate(cast(list[object], value))]


def _message(value: object, where: str) -> Message:
    if isinstance(value, str):
        return Message(value)
    if not isinstance(value, dict):
        raise PolicyError(f"{where}: must be a string or an object with content and tool_calls")
    given = cast(dict[str, Any], value)
    content: object = given.get("content") or ""
    calls: object = given.get("tool_calls") or []
    if not isinstance(content, str) or not isinstance(calls, list):
        raise PolicyError(f"{where}: content must be text and tool_calls a list")
    return Message(
        content, tuple(_call(call, f"{where}.tool_calls[{n}]") for n, call in enumerate(cast(list[object], calls)))
    )


def _call(value: object, where: str) -> ToolCall:
    if not isinstance(value, dict):
        raise PolicyError(f"{where}: must be an object with name and arguments")
    given = cast(dict[str, Any], value)
    inner = given.get("function", given)
    name, arguments = (inner.get("name"), inner.get("arguments", {})) if isinstance(inner, dict) else (None, {})  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    if not isinstance(name, str) or not isinstance(arguments, str | dict):
        raise PolicyError(f"{where}: needs a name (text) and arguments (an object, or raw text)")
    return ToolCall(name, cast("str | dict[str, Any]", arguments), str(given.get("id", "")))
