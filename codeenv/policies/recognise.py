"""Which task a conversation is about: the one whose instruction stands in its first user message."""

from __future__ import annotations

import hashlib
from collections import OrderedDict, defaultdict
from collections.abc import Iterable

from codeenv.policies.message import PolicyError
from codeenv.task import Task

ANCHOR = 24  # characters of an instruction's start by which it is looked up
REMEMBERED = 4096  # first messages


class Recogniser:
    """Finds tasks by instruction, the longest that occurs; in time proportional to the message, not to the number of
    tasks."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        self._tasks: defaultdict[str, list[Task]] = defaultdict(list)
        lengths: defaultdict[str, set[int]] = defaultdict(set)
        for task in tasks:
            text = task.instruction.strip()
            self._tasks[text].append(task)
            lengths[text[:ANCHOR]].add(len(text))
        self._lengths = {start: sorted(found, reverse=True) for start, found in lengths.items()}
        self._starts = sorted({len(start) for start in self._lengths}, reverse=True)
        self._seen: OrderedDict[bytes, Task] = OrderedDict()

    def find(self, message: str) -> Task:
        """:raises PolicyError: no task's instruction is in `message`, or tasks with one instruction and the same files
        are."""
        key = hashlib.blake2b(message.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        task = self._seen.get(key)
        if task is None:
            task = self._seen[key] = self._pick(self._longest(message), message)
            if len(self._seen) > REMEMBERED:
                self._seen.popitem(last=False)
        return task

    def _longest(self, message: str) -> str:
        best = ""
        for size in self._starts:
            for at in range(len(message) - size + 1):
                for length in self._lengths.get(message[at : at + size], ()):
                    if length <= len(best):
                        break
                    candidate = message[at : at + length]
                    if candidate in self._tasks:
                        best = candidate
                        break
        if best:
            return best
        raise PolicyError(
            "no task's instruction occurs in the first user message; is this the dataset the policy was started with?"
        )

    def _pick(self, instruction: str, message: str) -> Task:
        """Of tasks with one instruction, the one whose code the message shows, or whose files it names."""
        tasks = self._tasks[instruction]
        if len(tasks) == 1:
            return tasks[0]
        rest = message.replace(instruction, "", 1)
        shown = [task for task in tasks if (code := _code(task)) and code in rest]
        if len(shown) == 1:
            return shown[0]
        named = {
            task.id: sum(path in rest for path in task.files)
            for task in tasks
            if all(path in rest for path in task.files)
        }
        best = [task for task in tasks if named.get(task.id, -1) == max(named.values(), default=0)]
        if len(best) != 1:
            names = ", ".join(task.id for task in tasks[:10])
            raise PolicyError(f"these tasks have one instruction and cannot be told apart: {names}")
        return best[0]


def _code(task: Task) -> str:
    """Of the file that an answer goes into, as the policy is shown it."""
    data = task.files.get(task.answer.path, b"") if task.answer else b""
    return data.decode("utf-8", "replace").strip()
