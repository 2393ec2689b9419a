"""What a grader kind brings back from its box."""

from __future__ import annotations

from dataclasses import dataclass

from codeenv.grading.verdict import TestResult

MESSAGE_LIMIT = 2000
NOT_RUN = "did not run"


@dataclass(frozen=True)
class Report:
    """`tests` has one entry for every expected test, whether it ran or not: what did not run did not pass."""

    exit_code: int
    tests: tuple[TestResult, ...]
    reason: str = ""


def shorten(message: str) -> str:
    """At most MESSAGE_LIMIT characters, cut in the middle."""
    if len(message) <= MESSAGE_LIMIT:
        return message
    half = MESSAGE_LIMIT // 2 - 20
    return f"{message[:half]}\n[... {len(message) - 2 * half} characters ...]\n{message[-half:]}"
