"""Where an evaluation stands: what its recordings and its results tell, while it runs and at its end."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from codeenv.cli.vf_eval import Rollout
from codeenv.record.following import Ended, Following, Running
from codeenv.record.schema import Summary

NUMBERS = re.compile(r"\b0x[0-9a-f]+\b|\b[0-9a-f]{8,}\b|\d+(\.\d+)?")
EXAMPLES = 3  # recordings that are named for one kind of failure


@dataclass(frozen=True)
class Failure:
    """An attempt without a verdict, `stage` where it failed. Not `final`: another attempt has taken its place."""

    task: str
    outcome: str
    stage: str
    message: str
    recording: str
    final: bool = False

    @property
    def kind(self) -> tuple[str, str, str]:
        """The same for what differs in numbers and ids alone."""
        return self.outcome, self.stage, NUMBERS.sub("#", self.message)

    def __str__(self) -> str:
        return f"{self.outcome}{f' ({self.stage})' if self.stage else ''}: {self.message}"


@dataclass
class Standing:
    """Of one policy's evaluation, `total` rollouts of which `concurrent` run at a time."""

    title: str
    total: int
    concurrent: int
    following: Following
    kept: bool = True
    """Whether the recordings stay; else each goes when its episode has ended."""
    began: float = field(default_factory=time.monotonic)
    _done: dict[str, Rollout] = field(default_factory=dict[str, Rollout])
    _recorded: dict[str, Ended] = field(default_factory=dict[str, Ended])

    def read(self, saved: Sequence[Rollout]) -> list[Failure]:
        """Take in what is new in the recordings and in the results: the attempts that have failed since."""
        failures: list[Failure] = []
        for ended in self.following.read():
            self._recorded[_trajectory(ended)] = ended
            if ended.summary.reward is not None:
                self._count(_rollout(ended))
            elif ended.summary.outcome is not None and ended.message:
                failures.append(self._failure(ended))
            if not self.kept:
                (self.following.folder / ended.summary.file).unlink(missing_ok=True)
        for rollout in saved:
            self._count(rollout)
            known = self._recorded.get(rollout.trajectory)
            if not rollout.counts and not (known and known.message):
                failures.append(_saved_failure(rollout, known))
        return failures

    def _count(self, rollout: Rollout) -> None:
        self._done[rollout.trajectory or f"{rollout.example}, {len(self._done)}"] = rollout

    @property
    def done(self) -> int:
        """An attempt that has failed is not, while it may be tried again."""
        return len(self._done)

    @property
    def outcomes(self) -> Counter[str]:
        return Counter(rollout.outcome for rollout in self._done.values())

    @property
    def running(self) -> list[Running]:
        """The longest-running first."""
        return sorted(self.following.running.values(), key=lambda one: one.began)

    @property
    def boxes(self) -> int:
        return sum(one.boxes for one in self.following.running.values())

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    @property
    def mean_reward(self) -> float | None:
        rewards = [rollout.reward for rollout in self._done.values() if rollout.reward is not None]
        return sum(rewards) / len(rewards) if rewards else None

    @property
    def seconds_left(self) -> float | None:
        """An estimate, by the mean of those that are done; None while there is none, or where the last ones take longer
        than that."""
        took = [ended.summary.seconds for ended in self._recorded.values() if ended.summary.reward is not None]
        left = self.total - self.done
        if not took or left <= 0:
            return None
        mean, now = sum(took) / len(took), time.monotonic()
        running = [max(0.0, mean - (now - one.began)) for one in self.following.running.values()]
        return (sum(running) + max(0, left - len(running)) * mean) / min(self.concurrent, left) or None

    # --- at the end -----------------------------------------------------------------------------------------

    @property
    def rollouts(self) -> list[Rollout]:
        """Those that are done, in order of task."""
        return sorted(self._done.values(), key=lambda one: one.example)

    def summary(self, rollout: Rollout) -> Summary | None:
        """What its recording says, where there is one."""
        found = self._recorded.get(rollout.trajectory)
        return found.summary if found else None

    @property
    def slowest(self) -> list[Summary]:
        found = [summary for rollout in self._done.values() if (summary := self.summary(rollout))]
        return sorted(found, key=lambda one: -one.seconds)

    @property
    def failures(self) -> list[Failure]:
        """Every attempt that has failed, those that were tried again too."""
        recorded = [
            ended
            for ended in self._recorded.values()
            if ended.summary.reward is None and ended.summary.outcome is not None
        ]
        found = [self._failure(ended) for ended in recorded]
        for key, rollout in self._done.items():
            if not rollout.counts and key not in self._recorded:
                found.append(_saved_failure(rollout, None))
        return found

    def _failure(self, ended: Ended) -> Failure:
        key, summary = _trajectory(ended), ended.summary
        saved = self._done.get(key)
        if saved is not None and not ended.message:
            return _saved_failure(saved, ended)
        message = " ".join((ended.message or ended.fault).split())
        return Failure(summary.task, summary.outcome or "", ended.stage, message, summary.file, final=saved is not None)

    @property
    def retries(self) -> int:
        """Attempts that were tried again."""
        return sum(not failure.final for failure in self.failures)


def grouped(failures: Sequence[Failure]) -> list[dict[str, Any]]:
    """By outcome, stage and cause, the most frequent first."""
    groups: dict[tuple[str, str, str], list[Failure]] = {}
    for failure in failures:
        groups.setdefault(failure.kind, []).append(failure)
    return [
        {
            "outcome": group[0].outcome,
            "stage": group[0].stage,
            "cause": group[0].message,
            "count": len(group),
            "final": sum(failure.final for failure in group),
            "recordings": [failure.recording for failure in group if failure.recording][:EXAMPLES],
        }
        for group in sorted(groups.values(), key=len, reverse=True)
    ]


def _trajectory(ended: Ended) -> str:
    return str(ended.labels.get("trajectory_id") or ended.summary.file)


def _saved_failure(rollout: Rollout, ended: Ended | None) -> Failure:
    """One of which the results say more than its recording."""
    file = ended.summary.file if ended else ""
    return Failure(rollout.task, rollout.outcome, "", rollout.error, file, final=True)


def _rollout(ended: Ended) -> Rollout:
    summary, example = ended.summary, ended.labels.get("example_id")
    return Rollout(
        task=summary.task,
        outcome=summary.outcome or "",
        reward=summary.reward,
        solved=summary.reward == 1.0,
        passed=summary.tests_passed,
        total=summary.tests_total,
        turns=summary.turns,
        seconds=summary.seconds,
        error=summary.error,
        example=example if isinstance(example, int) else 0,
        trajectory=_trajectory(ended),
    )
