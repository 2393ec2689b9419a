"""Recurring chores."""

import re
from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from typing import NamedTuple

_NAMES = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_WEEKDAYS = {name: i for i, full in enumerate(_NAMES) for name in (full, full[:3])}
_UNITS = {"day": "day", "days": "day", "week": "week", "weeks": "week", "month": "month", "months": "month"}
_TOKEN = re.compile(r",|\.\.|[A-Za-z0-9-]+")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ORDINAL = re.compile(r"([1-9][0-9]*)(st|nd|rd|th)")
_NUMBER = re.compile(r"[0-9]+")

Test = Callable[[date], bool]


class RuleError(ValueError):
    """A rule that cannot be understood; `pos` is where."""

    def __init__(self, message: str, pos: int):
        super().__init__(f"{message} at {pos}")
        self.pos = pos


class Token(NamedTuple):
    text: str  # in lower case; "" at the end of the rule or of what can be read of it
    pos: int


@dataclass
class Rule:
    unit: str = "day"
    count: int = 1
    anchors: list[Test] = field(default_factory=list)
    first: date | None = None
    last: date | None = None
    skips: list[Test] = field(default_factory=list)

    def due(self, day: date) -> bool:
        return (
            self._in_phase(day)
            and (not self.anchors or any(anchor(day) for anchor in self.anchors))
            and not any(skip(day) for skip in self.skips)
        )

    def _in_phase(self, day: date) -> bool:
        return self.first is None or (self._period(day) - self._period(self.first)) % self.count == 0

    def _period(self, day: date) -> int:
        """The number of the day, week or month."""
        if self.unit == "day":
            return day.toordinal()
        if self.unit == "week":
            return (day.toordinal() - 1) // 7  # day 1 of the calendar is a Monday
        return day.year * 12 + day.month


def _day_of_month(number: int) -> Test:
    return lambda day: day.day == number


def _last_day(day: date) -> bool:
    return day.day == monthrange(day.year, day.month)[1]


def _weekday(weekday: int) -> Test:
    return lambda day: day.weekday() == weekday


def _nth_weekday(nth: int, weekday: int) -> Test:
    return lambda day: day.weekday() == weekday and (day.day + 6) // 7 == nth


def _last_weekday(weekday: int) -> Test:
    return lambda day: day.weekday() == weekday and 22 <= day.day <= 28


def _between(first: date, last: date) -> Test:
    return lambda day: first <= day <= last


def _suffix(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


class Parser:
    def __init__(self, rule: str):
        self.rule = rule
        self.at = 0
        self.next = Token("", 0)
        self.advance()

    def advance(self) -> Token:
        """Step on; the result is the token stepped over."""
        taken = self.next
        while self.rule[self.at : self.at + 1] == " ":
            self.at += 1
        match = _TOKEN.match(self.rule, self.at)
        self.next = Token(match.group().lower() if match else "", self.at)
        self.at += len(self.next.text)
        return taken

    def skip(self, *texts: str) -> bool:
        if self.next.text not in texts:
            return False
        self.advance()
        return True

    def fail(self, wanted: str, token: Token | None = None):
        raise RuleError(f"{wanted} expected", (token or self.next).pos)

    def parse(self) -> Rule:
        rule = Rule()
        if not self.skip("every"):
            self.fail("every")
        count = self.next
        rule.count = self.count()
        unit = self.next
        if unit.text not in _UNITS:
            self.fail("a unit")
        rule.unit = _UNITS[self.advance().text]
        if rule.unit != "day" and self.skip("on"):
            anchor = self.week_anchor if rule.unit == "week" else self.month_anchor
            rule.anchors = self.list_of(anchor)
        if self.skip("from"):
            rule.first = self.date()
        if self.skip("until"):
            rule.last = self.date(not_before=rule.first)
        if self.skip("except"):
            rule.skips = self.list_of(self.exception)
        if self.next.text or self.next.pos < len(self.rule):
            self.fail("end of the rule")

        if rule.first is None:
            if rule.count > 1:
                self.fail("from, because of the count,", count)
            if rule.unit != "day" and not rule.anchors:
                self.fail("on or from", unit)
        elif rule.unit == "week" and not rule.anchors:
            rule.anchors = [_weekday(rule.first.weekday())]
        elif rule.unit == "month" and not rule.anchors:
            rule.anchors = [_day_of_month(rule.first.day)]
        return rule

    def count(self) -> int:
        if self.skip("other"):
            return 2
        if not _NUMBER.fullmatch(self.next.text):
            return 1
        if not self.next.text.strip("0"):
            self.fail("at least 1")
        return int(self.advance().text)

    def list_of(self, element: Callable[[], Test]) -> list[Test]:
        elements = [element()]
        while self.skip(","):
            elements.append(element())
        return elements

    def date(self, not_before: date | None = None) -> date:
        if not _DATE.fullmatch(self.next.text):
            self.fail("a date")
        try:
            value = date.fromisoformat(self.next.text)
        except ValueError:
            self.fail("a possible date")
        if not_before and value < not_before:
            self.fail(f"a date not before {not_before}")
        self.advance()
        return value

    def week_anchor(self) -> Test:
        if self.next.text not in _WEEKDAYS:
            self.fail("a weekday")
        return _weekday(_WEEKDAYS[self.advance().text])

    def month_anchor(self) -> Test:
        token = self.next
        if self.skip("last"):
            return _last_weekday(self.take_weekday()) if self.next.text in _WEEKDAYS else _last_day
        match = _ORDINAL.fullmatch(token.text)
        if not match or len(match[1]) > 2 or int(match[1]) > 31 or match[2] != _suffix(int(match[1])):
            self.fail("an ordinal or last")
        number = int(match[1])
        self.advance()
        if self.next.text not in _WEEKDAYS:
            return _day_of_month(number)
        if number > 5:
            self.fail("at most 5th before a weekday", token)
        return _nth_weekday(number, self.take_weekday())

    def take_weekday(self) -> int:
        return _WEEKDAYS[self.advance().text]

    def exception(self) -> Test:
        if self.next.text in _WEEKDAYS:
            return _weekday(self.take_weekday())
        first = self.date()
        return _between(first, self.date(not_before=first) if self.skip("..") else first)


def occurrences(rule: str, start: date, end: date) -> list[date]:
    """The days from start to end on which the rule's chore is due."""
    parsed = Parser(rule).parse()
    first = max(start, parsed.first or start)
    last = min(end, parsed.last or end)
    window = map(date.fromordinal, range(first.toordinal(), last.toordinal() + 1))
    return [day for day in window if parsed.due(day)]
