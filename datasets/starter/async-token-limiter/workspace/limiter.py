"""A fair token bucket for asyncio."""


class LimiterClosed(RuntimeError):
    """The limiter was closed."""


class Limiter:
    def __init__(self, rate, burst, clock) -> None:
        raise NotImplementedError

    @property
    def available(self):
        raise NotImplementedError

    @property
    def waiting(self) -> int:
        raise NotImplementedError

    async def acquire(self, n=1) -> None:
        raise NotImplementedError

    def try_acquire(self, n=1) -> bool:
        raise NotImplementedError

    def set_rate(self, rate) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError
