"""Patience with boxes that are far away: a call between them takes as long as the way, whatever the solution does."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from time import monotonic

import anyio

from codeenv.sandbox.api import Sandbox, SandboxError


@dataclass
class Patience:
    """Time on the way between far boxes is not the tests': each call gives them more, up to a limit. By how much is
    measured without the solution, and how many calls there are the tests decide."""

    scope: anyio.CancelScope
    a_call: float
    limit: float
    given: float = 0.0

    def extend(self) -> None:
        self.given += self.a_call
        if self.given <= self.limit:
            self.scope.deadline += self.a_call

    def check(self, timeout: float) -> None:
        """:raises SandboxError: the time was over for want of more: the boxes are at fault, not the solution."""
        if self.given > self.limit:
            text = f"{self.given:.0f} s of calls on the way between the boxes alone, for tests of {timeout:g} s"
            raise SandboxError(f"{text}: this task needs a sandbox that is nearer", stage="run")


async def round_trip(box: Sandbox) -> float:
    """Seconds that a request to a box takes: the median of some."""
    times: list[float] = []
    for _ in range(5):
        started = monotonic()
        await box.list_files(".", limit=1000)
        times.append(monotonic() - started)
    return median(times)
