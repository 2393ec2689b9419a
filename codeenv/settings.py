"""How episodes are played."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, cast

from pydantic import BaseModel, ConfigDict, Field, field_validator

from codeenv.calls import select_tools
from codeenv.task import Task

SHOWN = 5  # names of tasks in an error


class EpisodeSettings(BaseModel):
    """Every setting of an episode."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    protocol: Literal["tools", "text", "answer"] = "tools"
    """How the policy acts: native tool calls, fenced blocks that name a tool, or one message with one block of code in
    it, which is the answer (no tools, no box, whatever `max_turns` says)."""
    tools: tuple[str, ...] = select_tools(None)
    max_turns: int = Field(default=30, ge=0)
    """Messages of the policy; 0: no limit."""
    command_timeout: float = Field(default=60.0, gt=0)
    """Seconds for one command."""
    ttl_seconds: float = Field(default=1800.0, ge=10)
    """Life of the box. The episode ends a reserve for grading earlier (the soft deadline)."""
    observation_tokens: int = Field(default=2000, ge=64)
    """Budget of one tool's output; a status line may come on top."""
    feedback: Literal["pass_fail", "counts", "messages"] = "counts"
    """How much `run_tests` shows."""
    max_test_runs: int = Field(default=10, ge=0)
    """Times that `run_tests` runs the hidden tests, each of which tells something of them; 0: no limit."""

    grading_retries: int = Field(default=0, ge=0, le=10)
    """Times that a failed grade is made again, where the task does not say."""

    @field_validator("tools", mode="before")
    @classmethod
    def _known(cls, value: object) -> object:
        if value is None or isinstance(value, str):
            return select_tools([value] if value else None)
        return select_tools([str(name) for name in cast(Iterable[object], value)])


def protocol_for(asked: str | None, max_turns: int, tasks: Iterable[Task]) -> str:
    """The protocol that is asked for; where none is, `answer` if there is one turn and every task has an `answer`, else
    `tools`.

    :raises ValueError: `answer` is asked for, and tasks have none; the message names them.
    """
    if asked not in (None, "answer") or (asked is None and max_turns != 1):
        return asked or "tools"
    without = [task.id for task in tasks if task.answer is None]
    if asked and without:
        names = ", ".join(without[:SHOWN]) + (", ..." if len(without) > SHOWN else "")
        raise ValueError(f"protocol: {len(without)} tasks cannot be answered with one block of code: {names}")
    return "tools" if without else "answer"
