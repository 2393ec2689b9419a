from collections import OrderedDict, deque
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


class LarderFull(Exception):
    """The entry cannot be stored within the budget."""


@dataclass
class _Entry:
    value: Any
    weight: float
    deadline: float
    serial: int
    pinned: bool = False


class Larder:
    def __init__(self, budget, ttl, clock, on_drop=None):
        self._budget = budget
        self._ttl = ttl
        self._clock = clock
        self._on_drop = on_drop
        self._entries = OrderedDict()  # least recently used first
        self._weight = 0
        self._serial = 0
        self._pending = deque()
        self._reporting = False

    # -- machinery ---------------------------------------------------------

    def _drop(self, key, reason):
        entry = self._entries.pop(key)
        self._weight -= entry.weight
        self._pending.append((key, entry.value, reason))

    def _report(self):
        if self._reporting:
            return
        self._reporting = True
        try:
            while self._pending:
                drop = self._pending.popleft()
                if self._on_drop is not None:
                    self._on_drop(*drop)
        finally:
            self._reporting = False

    @contextmanager
    def _operation(self):
        now = self._clock()
        expired = [(e.deadline, e.serial, key) for key, e in self._entries.items() if now >= e.deadline]
        for _, _, key in expired:
            self._drop(key, "expired")
        try:
            yield now
        finally:
            self._report()

    # -- public ------------------------------------------------------------

    def put(self, key, value, weight=1, ttl=None):
        if ttl is None:
            ttl = self._ttl
        if not weight > 0 or not ttl > 0:
            raise ValueError("weight and ttl must be positive")
        with self._operation() as now:
            old = self._entries.get(key)
            excess = self._weight - (old.weight if old else 0) + weight - self._budget
            victims = []
            for other, entry in self._entries.items():
                if excess <= 0:
                    break
                if other != key and not entry.pinned:
                    victims.append(other)
                    excess -= entry.weight
            if excess > 0:
                raise LarderFull(key)
            if old:
                self._drop(key, "replaced")
            for victim in victims:
                self._drop(victim, "capacity")
            self._serial += 1
            self._entries[key] = _Entry(value, weight, now + ttl, self._serial, bool(old and old.pinned))
            self._weight += weight

    def get(self, key, default=None):
        with self._operation():
            if key not in self._entries:
                return default
            self._entries.move_to_end(key)
            return self._entries[key].value

    def peek(self, key, default=None):
        with self._operation():
            return self._entries[key].value if key in self._entries else default

    def __contains__(self, key):
        with self._operation():
            return key in self._entries

    def delete(self, key):
        with self._operation():
            if key not in self._entries:
                return False
            self._drop(key, "deleted")
            return True

    def pin(self, key):
        with self._operation():
            self._entries[key].pinned = True

    def unpin(self, key):
        with self._operation():
            self._entries[key].pinned = False

    def __len__(self):
        with self._operation():
            return len(self._entries)

    @property
    def weight(self):
        with self._operation():
            return self._weight

    def keys(self):
        with self._operation():
            return list(self._entries)
