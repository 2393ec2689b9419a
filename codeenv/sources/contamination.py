"""Which tasks have a prompt of another set."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal

from codeenv.sources.tasks import Account, Found
from codeenv.task import Task

WORDS = 8
"""What has fewer words is no prompt: a stub, a note."""
SIZE = 8  # bytes of a hash


class Prompts:
    """Hashes of what policies read of some tasks: the instruction, and each file that they start with. A text that
    several of the tasks have (a README, a stub) says nothing and is left out."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        exact: Counter[bytes] = Counter()
        normal: Counter[bytes] = Counter()
        for task in tasks:
            exact.update(_exact(task))
            normal.update(_normal(task))
        self._exact = {key for key, count in exact.items() if count == 1}
        self._normal = {key for key, count in normal.items() if count == 1}

    def match(self, task: Task) -> Literal["", "exact", "normalised"]:
        """How a text of the task is one of those: to the byte, but for blanks at the ends; or in its letters and
        digits, whatever their case and what is between the words."""
        if not self._exact.isdisjoint(_exact(task)):
            return "exact"
        return "" if self._normal.isdisjoint(_normal(task)) else "normalised"

    def without(self, found: Iterable[Found], account: Account) -> Iterator[Found]:
        """The tasks that share no text; the others are counted."""
        for entry, task in found:
            if how := self.match(task):
                account.left_out[f"contaminated ({how})"] += 1
            else:
                yield entry, task


def _texts(task: Task) -> set[str]:
    files = [data.decode("utf-8", "replace") for data in task.files.values()]
    return {text for text in (task.instruction.strip(), *(f.strip() for f in files)) if len(_words(text)) >= WORDS}


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())


def _exact(task: Task) -> set[bytes]:
    return {_hash(text) for text in _texts(task)}


def _normal(task: Task) -> set[bytes]:
    return {_hash(" ".join(_words(text))) for text in _texts(task)}


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=SIZE).digest()
