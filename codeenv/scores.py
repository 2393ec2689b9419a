"""What an episode's end counts for, whatever framework asks: its reward, its metrics, what may be saved of it.

All of it is read off a mapping with `outcome`, `verdict` and `tally`, each of which may be missing or None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

from codeenv.episode import Episode
from codeenv.grading.verdict import Outcome, Verdict
from codeenv.tools import TOOLS

Ended = Mapping[str, Any]

COUNTS = (
    "turns",
    "failed_calls",
    "invalid_calls",
    "test_runs",
    "observation_tokens",
    "create_seconds",
    "exec_seconds",
    "grade_seconds",
    "box_seconds",
)


def _part(ended: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return ended.get(name) or {}


def hidden_tests(ended: Ended) -> float:
    """1.0 when the hidden tests' exit code was 0, with evidence of each of them; else 0.0."""
    return float(_part(ended, "verdict").get("reward") or 0.0)


def tests_passed_fraction(ended: Ended) -> float:
    verdict = _part(ended, "verdict")
    return verdict["tests_passed"] / verdict["tests_total"] if verdict.get("tests_total") else 0.0


def test_runs_per_turn(ended: Ended) -> float:
    """How often the policy asked the hidden tests: near 1, it is probing them rather than working."""
    tally = _part(ended, "tally")
    return tally["test_runs"] / tally["turns"] if tally.get("turns") else 0.0


def _count(name: str) -> Callable[[Ended], float]:
    return lambda ended: float(_part(ended, "tally").get(name) or 0.0)


def _calls(tool: str) -> Callable[[Ended], float]:
    return lambda ended: float(_part(_part(ended, "tally"), "calls").get(tool) or 0.0)


def _was(outcome: str) -> Callable[[Ended], float]:
    return lambda ended: float(ended.get("outcome") == outcome)


METRICS: dict[str, Callable[[Ended], float]] = {
    "test_runs_per_turn": test_runs_per_turn,
    **{name: _count(name) for name in COUNTS},
    "grading_attempts": lambda ended: float(_part(ended, "verdict").get("attempts") or 0.0),
    **{f"calls_{tool}": _calls(tool) for tool in TOOLS},
    **{f"outcome_{outcome}": _was(outcome) for outcome in get_args(Outcome)},
}
"""Each by its name; with no weight in the reward."""


def public(verdict: Verdict) -> dict[str, Any]:
    """The verdict as it may be saved: a failing test's message can quote what the test expects."""
    plain = verdict.model_dump(mode="json", exclude={"tests": {"__all__": {"message"}}})
    return {**plain, "tests_passed": verdict.tests_passed, "tests_total": verdict.tests_total}


def tally_of(episode: Episode) -> dict[str, Any]:
    """What it has counted, as plain data."""
    return {**episode.tally.plain(), "over": episode.over}
