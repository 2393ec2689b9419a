"""Dividing shifts among days and weeks."""

from collections.abc import Iterable, Iterator
from datetime import date, datetime, time, timedelta

from .shifts import Shift


def minutes_per_day(shift: Shift) -> Iterator[tuple[date, int]]:
    """The days a shift touches, with the minutes worked on each."""
    day = shift.start.date()
    midnight = datetime.combine(day + timedelta(days=1), time())
    if shift.end <= midnight:
        yield day, _minutes(shift.start, shift.end)
    else:
        yield day, _minutes(shift.start, midnight)
        yield midnight.date(), _minutes(midnight, shift.end)


def _minutes(start: datetime, end: datetime) -> int:
    return (end - start) // timedelta(minutes=1)


def week_name(day: date) -> str:
    year, week, _ = day.isocalendar()
    return f"{year:04}-W{week:02}"


def by_week(shifts: Iterable[Shift]) -> dict[str, list[tuple[date, int]]]:
    weeks: dict[str, list[tuple[date, int]]] = {}
    for shift in shifts:
        for day, minutes in minutes_per_day(shift):
            weeks.setdefault(week_name(day), []).append((day, minutes))
    return dict(sorted(weeks.items()))
