"""A fair token bucket for asyncio."""

import asyncio
from collections import deque


class LimiterClosed(RuntimeError):
    """The limiter was closed."""


class Limiter:
    def __init__(self, rate, burst, clock) -> None:
        if burst <= 0:
            raise ValueError("burst must be positive")
        self._check_rate(rate)
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._tokens = burst
        self._counted_at = clock.now()  # the moment for which _tokens is right
        self._line: deque[tuple[float, asyncio.Future]] = deque()
        self._timer: asyncio.Task | None = None
        self._closed = False

    @property
    def available(self):
        self._refill()
        return self._tokens

    @property
    def waiting(self) -> int:
        return len(self._line)

    async def acquire(self, n=1) -> None:
        if self.try_acquire(n):
            return
        place = (n, asyncio.get_running_loop().create_future())
        self._line.append(place)
        if len(self._line) == 1:
            self._serve()
        try:
            await place[1]
        except asyncio.CancelledError:
            if place in self._line:
                self._line.remove(place)
            elif not place[1].cancelled() and place[1].exception() is None:
                self._refill()
                self._tokens = min(self._burst, self._tokens + n)
            self._serve()
            raise

    def try_acquire(self, n=1) -> bool:
        self._check_open()
        if not 0 < n <= self._burst:
            raise ValueError(f"cannot take {n} tokens from a bucket of {self._burst}")
        self._refill()
        if self._line or self._tokens < n:
            return False
        self._tokens -= n
        return True

    def set_rate(self, rate) -> None:
        self._check_open()
        self._check_rate(rate)
        self._rate = rate
        self._serve()

    def close(self) -> None:
        self._closed = True
        while self._line:
            _, future = self._line.popleft()
            if not future.done():
                future.set_exception(LimiterClosed("the limiter was closed"))
        self._serve()

    @staticmethod
    def _check_rate(rate) -> None:
        if rate < 0:
            raise ValueError("the rate must not be negative")

    def _check_open(self) -> None:
        if self._closed:
            raise LimiterClosed("the limiter is closed")

    def _refill(self) -> None:
        now = self._clock.now()
        self._tokens = min(self._burst, self._tokens + (now - self._counted_at) * self._rate)
        self._counted_at = now

    def _serve(self) -> None:
        """Serve those whose turn it is, and set the timer for the next one."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._refill()
        while self._line:
            n, future = self._line[0]
            if future.done():  # cancelled, and about to leave the line by itself
                self._line.popleft()
            elif self._tokens >= n:
                self._line.popleft()
                self._tokens -= n
                future.set_result(None)
            else:
                break
        if self._line and self._rate > 0:
            missing = self._line[0][0] - self._tokens
            due = self._counted_at + missing / self._rate
            self._timer = asyncio.get_running_loop().create_task(self._serve_at(due))

    async def _serve_at(self, due) -> None:
        # The time left is worked out here, for the task may start late.
        if (left := due - self._clock.now()) > 0:
            await self._clock.sleep(left)
        self._timer = None
        self._serve()
