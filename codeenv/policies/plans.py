"""What each policy does with a task: pure functions from a task to messages."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from codeenv.policies.edits import change
from codeenv.policies.garbage import battery, malformed_answer
from codeenv.policies.message import Message, PolicyError
from codeenv.policies.script import Script
from codeenv.task import Task
from codeenv.text_protocol import fence_for
from codeenv.tools import TOOLS, ToolCall

__all__ = ["POLICIES", "Message", "PolicyError", "messages", "plan"]

POLICIES = ("oracle", "noop", "wrong", "garbage", "script")

EDIT_TURNS = 8  # turns over which the files to change are spread
CALLS = 16  # calls in one message at most, far below what an episode takes


def check_policy(policy: str, script: Script | None = None) -> None:
    """:raises PolicyError: there is no such policy, or it needs a script."""
    name, colon, detail = policy.partition(":")
    if name not in POLICIES or (colon and (name != "wrong" or not detail)):
        raise PolicyError(f"unknown policy {policy!r}; valid: {', '.join(POLICIES)}, wrong:NAME")
    if name == "script" and script is None:
        raise PolicyError("the policy 'script' needs a script file")


def messages(
    policy: str,
    task: Task,
    *,
    attempt: int = 0,
    tools: Sequence[str] = tuple(TOOLS),
    text: bool = False,
    seed: int = 0,
    script: Script | None = None,
) -> list[Message]:
    """All that `policy` says to `task`, one message a turn, using `tools` only.

    :param attempt: which wrong solution `wrong` takes, modulo their number, in order of name; and which of its attempts
        `script`.
    :param text: make only calls that the text protocol carries unchanged (`garbage`: malformed blocks as text).
    :param seed: of `garbage`.
    :raises PolicyError: the task has no such solution, or the tools cannot write one of its files; the message names
        both.
    """
    check_policy(policy, script)
    name, _, _ = policy.partition(":")
    if name == "script":
        assert script is not None
        attempts = script.attempts(task.id)
        return attempts[attempt % len(attempts)]
    if name == "noop":
        return [ending(tools)]
    if name == "garbage":
        return [*battery(f"{task.id}:{seed}", tools, text=text), ending(tools)]
    return _work(task, _files_of(policy, task, attempt), tools, text)


def answer(policy: str, task: Task, *, attempt: int = 0, seed: int = 0, script: Script | None = None) -> Message:
    """What `policy` says to `task` where one message is all, which is its answer; options as of `messages`.

    :raises PolicyError: the task has no such solution, or it is more than the one file of an answer.
    """
    check_policy(policy, script)
    name, _, _ = policy.partition(":")
    if name == "script":
        return next(iter(messages(policy, task, attempt=attempt, script=script)), Message())
    if name == "noop":
        return Message("I have no answer.")
    if name == "garbage":
        return malformed_answer(f"{task.id}:{seed}")
    path = task.answer.path if task.answer else ""
    files = _files_of(policy, task, attempt)
    others = sorted(other for other, data in files.items() if other != path and task.files.get(other) != data)
    if others or path not in files:
        raise PolicyError(
            f"task {task.id!r}: the solution is not in {path} alone: {', '.join(others) or 'it has none'}"
        )
    try:
        code = files[path].decode()
    except UnicodeDecodeError as error:
        raise PolicyError(f"task {task.id!r}: {path} is no text") from error
    fence = fence_for(code)
    return Message(f"This is {path}.\n\n{fence}python\n{code.rstrip()}\n{fence}")


def _files_of(policy: str, task: Task, attempt: int) -> Mapping[str, bytes]:
    """The solution that `oracle` or `wrong` plays."""
    _, _, detail = policy.partition(":")
    if policy == "oracle":
        if task.solution is None:
            raise PolicyError(f"task {task.id!r} has no solution, which the policy 'oracle' needs")
        return task.solution
    if not task.wrong or (detail and detail not in task.wrong):
        what = f"no wrong solution {detail!r}" if detail else "no wrong solutions"
        raise PolicyError(f"task {task.id!r} has {what}, which the policy {policy!r} needs")
    names = sorted(task.wrong)
    return task.wrong[detail or names[attempt % len(names)]]


def plan(policy: str, task: Task, **options: object) -> list[list[ToolCall]]:
    """The calls of `messages` (same options), one list a turn, for `Episode.turn`; empty for a turn without a call."""
    return [list(message.calls) for message in messages(policy, task, **options)]  # type: ignore[arg-type]


def ending(tools: Sequence[str]) -> Message:
    """Submit; where that is not offered, say so twice, which ends an episode as well."""
    return Message(calls=(ToolCall("submit", {}),)) if "submit" in tools else Message("I am done.")


def _work(task: Task, solution: Mapping[str, bytes], tools: Sequence[str], text: bool) -> list[Message]:
    changed = {path: data for path, data in sorted(solution.items()) if task.files.get(path) != data}
    turns: list[list[ToolCall]] = []
    if "bash" in tools:
        turns.append([ToolCall("bash", {"command": "ls -la"})])
    turns += _look([path for path in changed if _is_text(task.files.get(path))][:CALLS], tools)
    files_a_turn = -(-len(changed) // EDIT_TURNS) if changed else 1
    edits: list[list[ToolCall]] = []
    for path, data in changed.items():
        calls = change(path, task.files.get(path), data, tools=tools, text=text)
        if not calls:
            raise PolicyError(
                f"task {task.id!r}: {path} cannot be written with the tools offered ({', '.join(tools) or 'none'})"
            )
        if path in task.executable and path not in task.files and "bash" in tools:
            calls = [*calls, ToolCall("bash", {"command": f"chmod +x -- {shlex.quote(path)}"})]
        edits.append(calls)
    for first in range(0, len(edits), files_a_turn):
        calls = [call for file in edits[first : first + files_a_turn] for call in file]
        turns += [calls[n : n + CALLS] for n in range(0, len(calls), CALLS)]
    if "run_tests" in tools:
        turns.append([ToolCall("run_tests", {})])
    count = len(turns) + 1
    return [*(Message(f"Step {n} of {count}.", tuple(calls)) for n, calls in enumerate(turns, 1)), ending(tools)]


def _is_text(data: bytes | None) -> bool:
    """Whether there is such a file, and `read_file` shows it."""
    if data is None or b"\0" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _look(paths: list[str], tools: Sequence[str]) -> list[list[ToolCall]]:
    if paths and "read_file" in tools:
        return [[ToolCall("read_file", {"path": path}) for path in paths]]
    if paths and "bash" in tools:
        return [[ToolCall("bash", {"command": f"cat -- {shlex.join(paths)}"})]]
    return []
