"""Patience with boxes that are far away: a call between them takes as long as the way, whatever the solution does."""

from __future__ import annotations

from collections import deque
from statistics import median
from time import monotonic

import anyio

from codeenv.grading.boxes import FAR_AWAY
from codeenv.sandbox.api import Sandbox, SandboxError

A_CALL = 3.0  # times the way to a box: two messages, and what is done with them
AGAIN_SECONDS = 0.5
MEASURED = 5


class Patience:
    """Time on the way between far boxes is not the tests': each call gives them more, up to a limit. By how much is
    measured in the tests' box, while they run, and how many calls there are the tests decide: the solution has no say.
    """

    def __init__(self, box: Sandbox, timeout: float, *, is_near: bool) -> None:
        self.scope = anyio.CancelScope(deadline=anyio.current_time() + timeout)
        """What the tests run in: it ends when their time is over."""
        self._box, self._timeout, self._is_near = box, timeout, is_near
        self._ways: deque[float] = deque(maxlen=MEASURED)
        self._given = 0.0

    @property
    def factor(self) -> float:
        """How many times longer a single call may take, which may wait for others that are on their way."""
        return 1.0 if self._is_near else 1.0 + FAR_AWAY

    def called(self) -> None:
        """The tests have made a call."""
        if self._ways:
            more = A_CALL * median(self._ways)
            self._given += more
            if self._given <= FAR_AWAY * self._timeout:
                self.scope.deadline += more

    async def measure(self) -> None:
        """How far it is, again and again, until cancelled: it changes with what else is on the way."""
        while not self._is_near:
            started = monotonic()
            await self._box.list_files(".", limit=1000)
            self._ways.append(monotonic() - started)
            if len(self._ways) == MEASURED:
                await anyio.sleep(AGAIN_SECONDS)

    def check(self) -> None:
        """:raises SandboxError: the time was over for want of more: the boxes are at fault, not the solution."""
        if self._given > FAR_AWAY * self._timeout:
            text = f"{self._given:.0f} s of calls on the way between the boxes, for tests of {self._timeout:g} s"
            raise SandboxError(f"{text}: this task needs a sandbox that is nearer", stage="run")
