"""A recording as plain text, a turn a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codeenv.record.schema import Result, Turn

if TYPE_CHECKING:
    from codeenv.record.reading import Recording

LINE = 100  # characters of a turn's line


def timeline(recording: Recording, state: str = "not ended") -> str:
    """:param state: what it is, where it has not come to an outcome."""
    end = recording.end
    if end and end.outcome:
        state = end.outcome + (f", reward {end.verdict.reward:g}" if end.verdict else "")
    lines = [f"{turn.turn:3}  {_line(turn)}" for turn in recording.turns]
    return "\n".join([f"{recording.opening.task.id} on {recording.opening.sandbox}: {state}", *lines])


def _line(turn: Turn) -> str:
    told = "; ".join(_told(result) for result in turn.results) or turn.error
    return told if len(told) <= LINE else f"{told[: LINE - 3]}..."


def _told(result: Result) -> str:
    arguments = result.arguments if isinstance(result.arguments, dict) else {}
    about = str(arguments.get("command") or arguments.get("path") or "").partition("\n")[0]
    if result.verdict:
        end = f"{result.verdict.passed}/{len(result.verdict.tests)} tests"
    elif result.exit_code is not None:
        end = f"exit code {result.exit_code}"
    else:
        end = "failed" if result.failed else ""
    return " ".join(filter(None, [result.tool, about, f"({end})" if end else ""]))
