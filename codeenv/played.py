"""A turn that was played, as it is played again: by a fork, by a replay."""

from __future__ import annotations

from dataclasses import dataclass

from codeenv.calls import ToolCall
from codeenv.grading.verdict import Verdict
from codeenv.record.schema import Judged, Result, Said, Turn


@dataclass(frozen=True)
class Played:
    """`calls` are those that were answered: none where the message had none. `verdicts` are those that `run_tests`
    gave, in order. `broken`: why a call after them was not answered; it is not made again."""

    said: Said
    calls: tuple[ToolCall, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    broken: str = ""

    @classmethod
    def of(cls, turn: Turn) -> Played:
        """As a recording has it."""
        results = [result for result in turn.results if result.tool not in ("none", "answer")]
        verdicts = tuple(_verdict(result.verdict) for result in results if result.verdict)
        return cls(turn.said, tuple(map(_call, results)), verdicts, turn.error)


TIME_IS_UP = "the episode's time is up"
IS_OVER = "the episode is over"
"""Why calls behind an episode's end are not run. When they are played again it may not be as late: there the reason is
a fault of the calls' own."""


def _call(result: Result) -> ToolCall:
    fault = str(result.raw.values.get("fault", "")) if result.raw and result.raw.template == "invalid.j2" else ""
    late = fault if fault.startswith((TIME_IS_UP, IS_OVER)) else ""
    return ToolCall(result.name, result.arguments, result.id, result.fault or late)


def _verdict(judged: Judged) -> Verdict:
    return Verdict(
        outcome=judged.outcome,
        reward=judged.reward,
        exit_code=judged.exit_code,
        tests=tuple(judged.tests),
        seconds=judged.seconds,
        reason=judged.reason,
        attempts=judged.attempts,
    )
