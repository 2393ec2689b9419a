"""A reader-writer lock for threads that puts writers first."""

from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, get_ident


class LockUsageError(RuntimeError):
    """The calling thread may not do this with the lock in its present state."""


class WriterFirstLock:
    def __init__(self) -> None:
        self._changed = Condition()
        self._reads: Counter[int] = Counter()  # read holds by thread
        self._writer: int | None = None
        self._writes = 0  # holds of the writer
        self._queue: deque[object] = deque()  # one ticket for each waiting writer

    def acquire_read(self, timeout: float | None = None) -> bool:
        me = get_ident()
        with self._changed:
            if self._writer != me and me not in self._reads:
                if not self._wait(lambda: self._writer is None and not self._queue, timeout):
                    return False
            self._reads[me] += 1
            return True

    def release_read(self) -> None:
        me = get_ident()
        with self._changed:
            if me not in self._reads:
                raise LockUsageError("this thread does not hold the read side")
            self._reads[me] -= 1
            if not self._reads[me]:
                del self._reads[me]
                self._changed.notify_all()

    def acquire_write(self, timeout: float | None = None) -> bool:
        me = get_ident()
        with self._changed:
            if self._writer == me:
                self._writes += 1
                return True
            if me in self._reads:
                raise LockUsageError("a reader cannot become a writer")
            ticket = object()
            self._queue.append(ticket)
            try:
                free = lambda: self._writer is None and not self._reads and self._queue[0] is ticket  # noqa: E731
                if not self._wait(free, timeout):
                    return False
                self._writer, self._writes = me, 1
                return True
            finally:
                self._queue.remove(ticket)
                self._changed.notify_all()

    def release_write(self) -> None:
        with self._changed:
            self._check_writer()
            self._writes -= 1
            if not self._writes:
                self._writer = None
                self._changed.notify()

    def downgrade(self) -> None:
        with self._changed:
            self._check_writer()
            if self._writes > 1:
                raise LockUsageError("the write side is held more than once")
            self._reads[get_ident()] += 1
            self._writer, self._writes = None, 0
            self._changed.notify_all()

    @contextmanager
    def reading(self) -> Iterator[None]:
        self.acquire_read()
        try:
            yield
        finally:
            self.release_read()

    @contextmanager
    def writing(self) -> Iterator[None]:
        self.acquire_write()
        try:
            yield
        finally:
            self.release_write()

    @property
    def readers(self) -> int:
        with self._changed:
            return len(self._reads)

    @property
    def writing_now(self) -> bool:
        with self._changed:
            return self._writer is not None

    @property
    def waiting_writers(self) -> int:
        with self._changed:
            return len(self._queue)

    def _check_writer(self) -> None:
        if self._writer != get_ident():
            raise LockUsageError("this thread does not hold the write side")

    def _wait(self, ready, timeout: float | None) -> bool:
        if timeout is not None and timeout <= 0:
            return ready()
        return self._changed.wait_for(ready, timeout)
