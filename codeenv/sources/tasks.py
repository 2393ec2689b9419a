"""Tasks as a set gives them: chosen in one pass, and made again when they are asked for, so that a set may be larger
than memory."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import overload
from weakref import WeakValueDictionary

from codeenv.sources.pool import BadPlace, ListPool, Pool
from codeenv.task import Task, TaskError

logger = logging.getLogger(__name__)

SHOWN = 5
"""Bad rows that a message names."""


@dataclass(frozen=True)
class BadRow:
    """A row that is no task: its place from 0, and for people; what the set calls it if it says; and why."""

    place: int
    where: str
    name: str
    reasons: tuple[str, ...]

    @property
    def reason(self) -> str:
        return "; ".join(self.reasons)

    def __str__(self) -> str:
        return f"{self.where}{f' ({self.name})' * bool(self.name)}: {self.reason}"


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A chosen task without the task: where to make it, and what it then is."""

    id: str
    digest: bytes
    pool: Pool
    place: int


Found = tuple[Entry, Task]


@dataclass
class Account:
    """What became of the rows that are no tasks of the choice."""

    bad: list[BadRow] = field(default_factory=list[BadRow])
    left_out: Counter[str] = field(default_factory=Counter[str])
    """By reason: `filter`, `contaminated`."""


class Tasks(Sequence[Task]):
    """Chosen tasks, in order. What is kept of each is some 200 bytes; a task is made when it is asked for, and shared
    while somebody holds it.

    The first pass over it makes the choice, and gives the tasks as it goes; what it raises is what is wrong with the
    choice or the tasks.

    :param name: what a user calls the set; `short`: what its ids begin with where they have to be told from others.
    :param choose: starts a pass, which writes into the account.
    """

    def __init__(self, name: str, choose: Callable[[Account], Iterable[Found]], *, short: str = "") -> None:
        self.name, self.short = name, short or name
        self._choose = choose
        self._entries: list[Entry] | None = None
        self._account = Account()
        self._held = Held()

    @classmethod
    def of(cls, tasks: Sequence[Task], name: str = "") -> Tasks:
        """Tasks that are in memory, as they are."""
        if isinstance(tasks, Tasks):
            return tasks
        pool = ListPool(name, tasks)
        return cls(name, lambda _: (found_at(pool, place) for place in range(len(pool))))

    # --- the choice -------------------------------------------------------------------------------------------

    def found(self, account: Account | None = None) -> Iterator[Found]:
        """A pass over it. :param account: of a larger choice that this one is a part of, which then settles it."""
        if account is not None:
            yield from self._choose(account)
        elif self._entries is not None:
            yield from ((entry, self._held.made(entry)) for entry in self._entries)
        else:
            account, entries = Account(), list[Entry]()
            for entry, task in self._choose(account):
                entries.append(entry)
                yield entry, task
            self._settle(account, entries)
            self._account, self._entries = account, entries

    def _settle(self, account: Account, entries: list[Entry]) -> None:
        if not entries and account.bad:
            lines = [str(bad) for bad in account.bad[:SHOWN]]
            raise TaskError([f"{self.name}: none of {len(account.bad)} rows is a task", *lines])
        if not entries:
            left = ", ".join(f"{count} {reason}" for reason, count in account.left_out.items())
            raise TaskError([f"{self.name}: no tasks{f' are left; left out: {left}' * bool(left)}"])
        if account.bad:
            first = "; ".join(map(str, account.bad[:SHOWN]))
            logger.warning("%s: %d rows are no tasks and were left out: %s", self.name, len(account.bad), first)
        for reason, count in account.left_out.items():
            logger.info("%s: %d tasks left out: %s", self.name, count, reason)

    @property
    def entries(self) -> Sequence[Entry]:
        if self._entries is None:
            for _ in self.found():
                pass
        assert self._entries is not None
        return self._entries

    @property
    def bad(self) -> Sequence[BadRow]:
        """Rows that were looked at and are no tasks. With a `limit`, not every row is looked at."""
        _ = self.entries
        return self._account.bad

    @property
    def left_out(self) -> Mapping[str, int]:
        """How many tasks were left out, by reason."""
        _ = self.entries
        return self._account.left_out

    # --- the tasks --------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Task]:
        return (task for _, task in self.found())

    @overload
    def __getitem__(self, index: int) -> Task: ...
    @overload
    def __getitem__(self, index: slice) -> list[Task]: ...
    def __getitem__(self, index: int | slice) -> Task | list[Task]:
        """:raises TaskError: what it is made from has changed since the tasks were chosen."""
        if isinstance(index, slice):
            return [self._held.made(entry) for entry in self.entries[index]]
        return self._held.made(self.entries[index])


class TasksById(Mapping[str, Task]):
    """Tasks by id."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self._entries = entries
        self._held = Held()

    def digest(self, name: str) -> str:
        """Hexadecimal; another for another task. :raises KeyError: there is no such task."""
        return self._entries[name].digest.hex()

    def at_hand(self, name: str) -> bool:
        """Whether it can be had without reading. :raises KeyError: there is no such task."""
        entry = self._entries[name]
        return isinstance(entry.pool, ListPool) or entry in self._held

    def __getitem__(self, name: str) -> Task:
        """:raises TaskError: what it is made from has changed since the tasks were chosen."""
        return self._held.made(self._entries[name])

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


class Held:
    """Tasks that somebody holds, so that what is asked for several times at once is made once."""

    def __init__(self) -> None:
        self._tasks: WeakValueDictionary[Entry, Task] = WeakValueDictionary()

    def __contains__(self, entry: Entry) -> bool:
        return entry in self._tasks

    def made(self, entry: Entry) -> Task:
        """:raises TaskError: it is not the task that was chosen."""
        task = self._tasks.get(entry)
        if task is None:
            task = self._tasks[entry] = made(entry)
        return task


def found_at(pool: Pool, place: int) -> Found:
    """:raises BadPlace: there is no task."""
    task, digest = pool.make(place)
    return Entry(task.id, digest, pool, place), task


def made(entry: Entry) -> Task:
    """:raises TaskError: it is not the task that was chosen."""
    try:
        task, digest = entry.pool.make(entry.place)
    except BadPlace as error:
        raise TaskError([f"{entry.pool.where(entry.place)}: has changed since it was loaded: {error}"]) from error
    if digest != entry.digest:
        raise TaskError([f"{entry.pool.where(entry.place)}: task {entry.id!r} has changed since it was loaded"])
    return task if task.id == entry.id else task.model_copy(update={"id": entry.id})
