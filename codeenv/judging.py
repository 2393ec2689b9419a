"""How an episode's work is judged: now and then, when its policy asks, and at its end."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio

from codeenv.answer import NoAnswer
from codeenv.grading import grade, workspace_of
from codeenv.grading.verdict import Verdict
from codeenv.sandbox.api import ExportTooLarge, Sandbox, SandboxExpired, SandboxProvider, SandboxSpec
from codeenv.sandbox.archive import Archive
from codeenv.settings import EpisodeSettings
from codeenv.tally import Over, Tally
from codeenv.task import Task

LIMITS = ("turns", "time", "stopped")
"""Ends for which the outcome is `limit`."""


@dataclass
class Judge:
    """Of one episode. `left` hears of the workspace before it is judged at the end."""

    task: Task
    provider: SandboxProvider
    spec: SandboxSpec
    settings: EpisodeSettings
    tally: Tally
    left: Callable[[Archive], Awaitable[None]]
    given: deque[Verdict] = field(default_factory=deque[Verdict])
    """What the next runs of the tests come to, without being made: those of turns that are played again."""

    async def now(self, sandbox: Sandbox, seconds: float) -> Verdict:
        """`run_tests`: the present workspace in a fresh box, the policy's own box left as it is; within `seconds`.

        :raises ValueError: the episode has had all its runs. :raises SandboxError: a box was lost, or broke.
        """
        allowed = self.settings.max_test_runs
        if allowed and self.tally.test_runs >= allowed:
            raise ValueError(f"the tests did not run: all {allowed} runs of this episode were used")
        self.tally.test_runs += 1
        if self.given:
            return self.given.popleft()
        started = time.monotonic()
        try:
            with anyio.move_on_after(seconds):
                try:
                    left = await sandbox.export()
                except (ExportTooLarge, OSError) as error:
                    return Verdict(outcome="failed", reason=unreadable(error))
                return await self._graded(left)
            return Verdict(outcome="failed", reason="the episode's time ran out before the tests had ended")
        finally:
            self.tally.grade_seconds += time.monotonic() - started

    async def work(self, sandbox: Sandbox, over: Over, close: Callable[[], Awaitable[None]]) -> Verdict:
        """Kill what still runs, take the workspace, `close` the box, judge in a fresh one."""
        ttl = self.settings.ttl_seconds
        expired = Verdict(outcome="expired", reason=f"the box reached its time to live of {ttl:g} s")
        if over == "expired":
            return expired
        outcome = "limit" if over in LIMITS else None
        try:
            left = await sandbox.export(stop_processes=True)
        except SandboxExpired:
            return expired
        except (ExportTooLarge, OSError) as error:
            return Verdict(outcome=outcome or "failed", reason=unreadable(error))
        finally:
            await close()
        await self.left(left)
        verdict = await self._graded(left)
        if outcome is None:
            return verdict
        why = {"turns": f"all {self.settings.max_turns} turns were used", "time": "the episode's time ran out"}
        return verdict.model_copy(update={"outcome": outcome, "reason": verdict.reason or why.get(over, "")})

    async def answer(self, answer: str | NoAnswer | None, over: Over) -> Verdict:
        """The task's files with the answer's code in its place."""
        if not isinstance(answer, str) or self.task.answer is None:
            outcome = "limit" if over in LIMITS else "failed"
            return Verdict(outcome=outcome, reason=str(answer or "there was no answer"))
        path = self.task.answer.path
        mode = 0o755 if path in self.task.executable else 0o644
        left = workspace_of(self.task).overlay(Archive.of({path: answer.encode("utf-8", "replace")}, {path: mode}))
        await self.left(left)
        return await self._graded(left)

    async def _graded(self, left: Archive) -> Verdict:
        return await grade(self.task, left, self.provider, self.spec, retries=self.settings.grading_retries)


def unreadable(error: Exception) -> str:
    """A workspace that cannot be taken: the policy's doing, as nobody else can take its own files from it."""
    return str(error) if isinstance(error, ExportTooLarge) else f"the workspace cannot be read: {error}"
