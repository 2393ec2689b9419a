"""Recurring chores."""

from datetime import date


class RuleError(ValueError):
    """A rule that cannot be understood; `pos` is where."""

    def __init__(self, message: str, pos: int):
        super().__init__(f"{message} at {pos}")
        self.pos = pos


def occurrences(rule: str, start: date, end: date) -> list[date]:
    """The days from start to end on which the rule's chore is due."""
    raise NotImplementedError
