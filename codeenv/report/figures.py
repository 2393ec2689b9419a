"""What a run comes to: counts and shares of its episodes, as plain data for the overview."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from codeenv.record import Summary

OUTCOMES = ("solved", "failed", "limit", "expired", "model", "infra", "open")
"""In the order in which they are shown; `open` has not ended, or was closed before it was judged."""
BINS = 12
CELLS = 48  # episodes of one task that are shown one by one
TASKS = 1000  # that are listed


@dataclass(frozen=True)
class Part:
    """One of several that make up a whole; `share` and where it begins, `start`, are of 1."""

    name: str
    value: float
    start: float
    share: float


@dataclass(frozen=True)
class Histogram:
    """`counts` of the values between `low` and `high`, in bins of the same width."""

    counts: tuple[int, ...]
    low: float
    high: float

    @property
    def most(self) -> int:
        return max(self.counts, default=0)


@dataclass(frozen=True)
class Group:
    """Episodes of one task, or of one policy. `passed` is the mean share of tests that passed, None without any."""

    name: str
    episodes: int
    rewarded: int
    solved: int
    reward: float | None
    passed: float | None
    turns: float
    seconds: float
    tokens: int
    cells: tuple[Summary, ...] = ()


@dataclass(frozen=True)
class Overview:
    total: Group
    outcomes: tuple[Part, ...]
    times: tuple[Part, ...]
    rewards: Histogram
    turns: Histogram
    seconds: Histogram
    prompt_tokens: int
    completion_tokens: int
    longest: float
    """Seconds of the longest episode."""
    tasks: tuple[Group, ...]
    """The hardest first."""
    more_tasks: int
    policies: tuple[Group, ...]
    """Empty where there is one."""


def overview_of(rows: Sequence[Summary]) -> Overview:
    counts = Counter(outcome_of(row) for row in rows)
    times = [(name, sum(split(row)[n] for row in rows)) for n, name in enumerate(TIMES)]
    rewards = [row.reward for row in rows if row.reward is not None]
    tasks = _groups(rows, lambda row: row.task, cells=CELLS)
    tasks.sort(key=lambda one: (one.solved / one.rewarded if one.rewarded else -1, one.passed or 0, one.name))
    policies = _groups(rows, lambda row: row.policy)
    return Overview(
        total=_group("", rows),
        outcomes=parts((name, counts[name]) for name in OUTCOMES),
        times=parts(times),
        rewards=histogram(rewards, low=0.0, high=1.0),
        turns=histogram([row.turns for row in rows]),
        seconds=histogram([finite(row.seconds) for row in rows]),
        prompt_tokens=sum(row.prompt_tokens for row in rows),
        completion_tokens=sum(row.completion_tokens for row in rows),
        longest=max((finite(row.seconds) for row in rows), default=0.0),
        tasks=tuple(tasks[:TASKS]),
        more_tasks=max(0, len(tasks) - TASKS),
        policies=tuple(policies) if len(policies) > 1 else (),
    )


def outcome_of(row: Summary) -> str:
    return row.outcome or "open"


TIMES = ("model", "sandbox", "grading", "other")


def split(row: Summary) -> tuple[float, float, float, float]:
    """The seconds of an episode, by `TIMES`."""
    known = [finite(row.model_seconds), finite(row.sandbox_seconds), finite(row.grading_seconds)]
    return known[0], known[1], known[2], max(0.0, finite(row.seconds) - sum(known))


def finite(value: float) -> float:
    """A file may say that something took forever, or less than nothing."""
    return value if math.isfinite(value) and value > 0 else 0.0


def histogram(values: Sequence[float], *, low: float | None = None, high: float | None = None) -> Histogram:
    values = [value for value in values if math.isfinite(value)]
    low = min(values, default=0.0) if low is None else low
    high = max(values, default=0.0) if high is None else high
    counts = [0] * BINS
    for value in values:
        place = (value - low) / (high - low) if high > low else 0.0
        counts[min(max(int(place * BINS), 0), BINS - 1)] += 1
    return Histogram(tuple(counts), low, high)


def parts(named: Iterable[tuple[str, float]]) -> tuple[Part, ...]:
    """Those of a bar; what is nothing has no part."""
    there = [(name, value) for name, value in named if value > 0]
    whole = sum(value for _, value in there)
    made: list[Part] = []
    start = 0.0
    for name, value in there:
        made.append(Part(name, value, start, value / whole))
        start += value / whole
    return tuple(made)


def _groups(rows: Sequence[Summary], key: Callable[[Summary], str], *, cells: int = 0) -> list[Group]:
    found: dict[str, list[Summary]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return [_group(name, members, cells) for name, members in sorted(found.items())]


def _group(name: str, rows: Sequence[Summary], cells: int = 0) -> Group:
    rewards = [row.reward for row in rows if row.reward is not None and math.isfinite(row.reward)]
    shares = [(row.tests_passed or 0) / row.tests_total for row in rows if row.tests_total]
    return Group(
        name=name,
        episodes=len(rows),
        rewarded=len(rewards),
        solved=sum(row.outcome == "solved" or row.reward == 1.0 for row in rows),
        reward=fmean(rewards) if rewards else None,
        passed=fmean(shares) if shares else None,
        turns=median([row.turns for row in rows]) if rows else 0,
        seconds=median([finite(row.seconds) for row in rows]) if rows else 0.0,
        tokens=sum(row.prompt_tokens + row.completion_tokens for row in rows),
        cells=tuple(rows[:cells]),
    )
