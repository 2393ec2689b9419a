"""A pool of worker threads behind a bounded waiting line."""

from __future__ import annotations

import time
from collections import deque
from threading import Condition, Event, Lock, Thread, current_thread


class PoolClosed(RuntimeError):
    """The pool takes no more tasks."""


class PoolFull(RuntimeError):
    """No place in the waiting line became free in time."""


class Cancelled(Exception):
    """The task was cancelled before it ran."""


class Ticket:
    def __init__(self, pool: WorkPool, call) -> None:
        self._pool = pool
        self._call = call
        self._state = "waiting"
        self._value = None
        self._over = Event()

    @property
    def state(self) -> str:
        return self._state

    def result(self, timeout: float | None = None):
        if not self._over.wait(timeout):
            raise TimeoutError("the task is not over yet")
        if self._state == "cancelled":
            raise Cancelled
        if self._state == "failed":
            raise self._value
        return self._value

    def cancel(self) -> bool:
        return self._pool._cancel(self)

    def _run(self) -> None:
        """Called by a worker, after the state was set to running."""
        fn, args, kwargs = self._call
        try:
            value, state = fn(*args, **kwargs), "done"
        except BaseException as error:
            value, state = error, "failed"
        del fn, args, kwargs
        self._finish(state, value)

    def _finish(self, state: str, value=None) -> None:
        self._value, self._state = value, state
        self._over.set()


class WorkPool:
    def __init__(self, workers: int, capacity: int) -> None:
        if workers < 1 or capacity < 1:
            raise ValueError("workers and capacity must be at least 1")
        self._capacity = capacity
        self._line: deque[Ticket] = deque()
        self._closed = False
        lock = Lock()
        self._work = Condition(lock)  # there is a task, or the pool was closed
        self._room = Condition(lock)  # there is a free place, or the pool was closed
        self._end = Condition(lock)  # the pool was closed
        self._threads = [Thread(target=self._worker, daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        with self._work:
            return len(self._line)

    def submit(self, fn, /, *args, wait: float | None = None, **kwargs) -> Ticket:
        ticket = Ticket(self, (fn, args, kwargs))
        with self._room:
            free = lambda: self._closed or len(self._line) < self._capacity  # noqa: E731
            in_time = free() if wait is not None and wait <= 0 else self._room.wait_for(free, wait)
            if self._closed:
                raise PoolClosed("the pool is closed")
            if not in_time:
                raise PoolFull("the waiting line is full")
            self._line.append(ticket)
            self._work.notify()
        return ticket

    def close(self, drain: bool = True) -> None:
        with self._work:
            self._closed = True
            dropped = []
            if not drain:
                dropped, self._line = self._line, deque()
            for ticket in dropped:
                ticket._finish("cancelled")
            self._work.notify_all()
            self._room.notify_all()
            self._end.notify_all()

    def join(self, timeout: float | None = None) -> bool:
        if current_thread() in self._threads:
            raise RuntimeError("a task cannot wait for its own pool to end")
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._end:
            if not self._end.wait_for(lambda: self._closed, timeout):
                return False
        for thread in self._threads:
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def __enter__(self) -> WorkPool:
        return self

    def __exit__(self, kind, error, trace) -> None:
        self.close(drain=kind is None)
        self.join()

    def _worker(self) -> None:
        while ticket := self._take():
            ticket._run()
            del ticket

    def _take(self) -> Ticket | None:
        with self._work:
            self._work.wait_for(lambda: self._line or self._closed)
            if not self._line:
                return None
            ticket = self._line.popleft()
            ticket._state = "running"
            self._room.notify()
            return ticket

    def _cancel(self, ticket: Ticket) -> bool:
        with self._work:
            if ticket._state == "waiting":
                self._line.remove(ticket)
                ticket._finish("cancelled")
                self._room.notify()
            return ticket._state == "cancelled"
