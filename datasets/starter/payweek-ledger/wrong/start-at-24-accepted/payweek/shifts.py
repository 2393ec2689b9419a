"""Reading shifts."""

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from .errors import OverlapError, ShiftError

_SHIFT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}) ([0-9]{2}):([0-9]{2})-([0-9]{2}):([0-9]{2})")

_DAY = 24 * 60


@dataclass(frozen=True, order=True)
class Shift:
    start: datetime
    end: datetime


def parse(text: str) -> Shift:
    match = _SHIFT.fullmatch(text)
    if not match:
        raise ShiftError(f"not a shift: {text!r}")
    try:
        day = datetime.combine(date.fromisoformat(match[1]), time())
    except ValueError:
        raise ShiftError(f"no such day: {text!r}") from None
    start = _minute(match[2], match[3])
    end = _minute(match[4], match[5])
    if end <= start:
        end += _DAY
    return Shift(day + timedelta(minutes=start), day + timedelta(minutes=end))


def _minute(hours: str, minutes: str) -> int:
    if int(hours) * 60 + int(minutes) > _DAY or int(minutes) > 59:
        raise ShiftError(f"no such time: {hours}:{minutes}")
    return int(hours) * 60 + int(minutes)


def check_overlaps(shifts: list[Shift]) -> None:
    in_order = sorted(shifts)
    for earlier, later in zip(in_order, in_order[1:]):
        if later.start < earlier.end:
            raise OverlapError(f"{earlier} and {later}")
