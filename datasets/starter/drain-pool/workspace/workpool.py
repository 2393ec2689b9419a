"""A pool of worker threads behind a bounded waiting line."""


class PoolClosed(RuntimeError):
    """The pool takes no more tasks."""


class PoolFull(RuntimeError):
    """No place in the waiting line became free in time."""


class Cancelled(Exception):
    """The task was cancelled before it ran."""


class Ticket:
    @property
    def state(self) -> str:
        raise NotImplementedError

    def result(self, timeout: float | None = None):
        raise NotImplementedError

    def cancel(self) -> bool:
        raise NotImplementedError


class WorkPool:
    def __init__(self, workers: int, capacity: int) -> None:
        raise NotImplementedError

    @property
    def waiting(self) -> int:
        raise NotImplementedError

    def submit(self, fn, /, *args, wait: float | None = None, **kwargs) -> Ticket:
        raise NotImplementedError

    def close(self, drain: bool = True) -> None:
        raise NotImplementedError

    def join(self, timeout: float | None = None) -> bool:
        raise NotImplementedError
