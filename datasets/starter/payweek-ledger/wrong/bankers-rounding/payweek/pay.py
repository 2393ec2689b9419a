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
    minutes = sum(part for _, part in parts)
    sunday = sum(part for day, part in parts if day.weekday() == SUNDAY)
    overtime = max(0, minutes - sunday - ORDINARY_MINUTES)
    # In 120ths of a cent: per minute, a sixtieth of the rate, and half of that more for overtime.
    exact = rate * (2 * minutes + 2 * sunday + overtime)
    return WeekPay(minutes, overtime, sunday, cents=round(exact / 120))
