"""A fair token bucket for asyncio."""

import asyncio


class LimiterClosed(RuntimeError):
    """The limiter was closed."""


class Limiter:
    def __init__(self, rate, burst, clock) -> None:
        if rate < 0 or burst <= 0:
            raise ValueError("rate must not be negative, burst must be positive")
        self._rate, self._burst, self._clock = rate, burst, clock
        self._tokens = burst
        self._last = clock.now()
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._closed = False
        self._tasks = set()

    def _refill(self):
        now = self._clock.now()
        self._tokens = min(self._burst, self._tokens + (now - self._last) * self._rate)
        self._last = now

    @property
    def available(self):
        self._refill()
        return self._tokens

    @property
    def waiting(self) -> int:
        return self._waiting

    async def acquire(self, n=1) -> None:
        if self.try_acquire(n):
            return
        self._waiting += 1
        try:
            async with self._turn:
                self._refill()
                while self._tokens < n:
                    if self._closed:
                        raise LimiterClosed
                    await self._clock.sleep((n - self._tokens) / self._rate if self._rate else 3600)
                    self._refill()
                self._tokens -= n
        finally:
            self._waiting -= 1

    def try_acquire(self, n=1) -> bool:
        if self._closed:
            raise LimiterClosed
        if not 0 < n <= self._burst:
            raise ValueError(n)
        self._refill()
        if self._waiting or self._tokens < n:
            return False
        self._tokens -= n
        return True

    def set_rate(self, rate) -> None:
        if self._closed:
            raise LimiterClosed
        if rate < 0:
            raise ValueError(rate)
        self._refill()
        self._rate = rate

    def close(self) -> None:
        self._closed = True
