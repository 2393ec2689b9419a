"""From minutes to money."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from . import days, shifts

ORDINARY_MINUTES = 2400
SUNDAY = 6


@dataclass
class WeekPay:
    minutes: int = 0
    overtime: int = 0
    sunday: int = 0
    cents: int = 0


def weekly_pay(texts: Iterable[str], rate: int) -> dict[str, WeekPay]:
    parsed = [shifts.parse(text) for text in texts]
    shifts.check_overlaps(parsed)
    return {week: _pay(parts, rate) for week, parts in days.by_week(parsed).items()}


def _pay(parts: list[tuple[date, int]], rate: int) -> WeekPay:
    week = WeekPay()
    for day, minutes in parts:
        week.minutes += minutes
        overtime = max(0, week.minutes - ORDINARY_MINUTES)
        if day.weekday() == SUNDAY:
            week.sunday += minutes
            week.cents += round(minutes * rate * 2 / 60)
        else:
            overtime -= week.overtime
            week.overtime += overtime
            week.cents += round((minutes - overtime) * rate / 60) + round(overtime * rate * 1.5 / 60)
    return week
