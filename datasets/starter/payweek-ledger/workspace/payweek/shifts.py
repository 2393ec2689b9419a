"""Reading shifts."""

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from .errors import OverlapError, ShiftError

_SHIFT = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d):(\d\d)-(\d\d):(\d\d)$")


@dataclass(frozen=True, order=True)
class Shift:
    start: datetime
    end: datetime


def parse(text: str) -> Shift:
    match = _SHIFT.match(text)
    if not match:
        raise ShiftError(f"not a shift: {text!r}")
    try:
        day = datetime.combine(date.fromisoformat(match[1]), time())
    except ValueError:
        raise ShiftError(f"no such day: {text!r}") from None
    start = _minute(match[2], match[3])
    end = _minute(match[4], match[5])
    if end < start:
        end += 24 * 60
    return Shift(day + timedelta(minutes=start), day + timedelta(minutes=end))


def _minute(hours: str, minutes: str) -> int:
    if int(hours) > 24 or int(minutes) > 59:
        raise ShiftError(f"no such time: {hours}:{minutes}")
    return int(hours) * 60 + int(minutes)


def check_overlaps(shifts: list[Shift]) -> None:
    by_day: dict[date, list[Shift]] = {}
    for shift in shifts:
        by_day.setdefault(shift.start.date(), []).append(shift)
    for same_day in by_day.values():
        for earlier, later in zip(same_day, same_day[1:]):
            if later.start < earlier.end:
                raise OverlapError(f"{earlier} and {later}")
