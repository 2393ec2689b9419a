"""What grading says of a workspace."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

Outcome = Literal["solved", "failed", "limit", "expired", "model", "infra"]
"""The taxonomy of `docs/architecture.md`. `model` and `infra` have no reward."""


class TestResult(BaseModel):
    """One test or case."""

    __test__ = False  # pytest collects classes of this name
    model_config = ConfigDict(frozen=True)

    id: str
    passed: bool
    message: str = ""
    """Why it did not pass, at most 2,000 characters; never the test's source."""
    seconds: float = 0.0


class Verdict(BaseModel):
    """How a workspace was judged. `reward` is 1.0 when solved (exit code 0 and evidence of every expected test), else
    0.0. `exit_code` is the test run's own, None when nothing was run. `seconds` is the whole grading, boxes
    included."""

    model_config = ConfigDict(frozen=True)

    outcome: Outcome
    reward: float = 0.0
    exit_code: int | None = None
    tests: tuple[TestResult, ...] = ()
    seconds: float = 0.0
    reason: str = ""
    """Why there is no plain pass or fail: the time that ran out, the export that was too large."""
    attempts: int = 1
    """Gradings that were made of the same workspace: more than 1 when failed ones were made again (`retries`)."""

    @property
    def tests_passed(self) -> int:
        return sum(test.passed for test in self.tests)

    @property
    def tests_total(self) -> int:
        return len(self.tests)

    @property
    def solved(self) -> bool:
        return self.reward == 1.0

    def _repr_html_(self) -> str:
        from codeenv.html import styled

        return styled("verdict", verdict=self)
