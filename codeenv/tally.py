"""What an episode counts, and why it ends."""

from __future__ import annotations

from collections import Counter
from copy import copy
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from codeenv.tools import Observation

Over = Literal["", "submitted", "no_action", "turns", "time", "expired", "stopped"]
"""Why an episode takes no more actions; empty while it does."""

OWN_ENDS = ("submitted", "no_action", "turns")
"""Those that are in the turns themselves: a fork has them too."""


@dataclass
class Tally:
    """What an episode has counted so far; seconds are measured wall time."""

    turns: int = 0
    calls: Counter[str] = field(default_factory=Counter[str])
    failed_calls: int = 0
    invalid_calls: int = 0
    test_runs: int = 0
    observation_tokens: int = 0
    create_seconds: float = 0.0
    exec_seconds: float = 0.0
    grade_seconds: float = 0.0
    box_seconds: float = 0.0
    """For how long boxes were there, those of gradings included, from the wish for one to its end: what is billed."""

    def count(self, observation: Observation) -> None:
        self.calls[observation.tool] += 1
        self.failed_calls += observation.failed
        self.invalid_calls += not observation.valid
        self.observation_tokens += observation.tokens
        if observation.tool != "run_tests":
            self.exec_seconds += observation.seconds

    def plain(self) -> dict[str, Any]:
        return {**vars(self), "calls": dict(self.calls)}

    def take_counts(self, other: Tally) -> None:
        """All of another's but its seconds."""
        for each in fields(self):
            if not each.name.endswith("_seconds"):
                setattr(self, each.name, copy(getattr(other, each.name)))
