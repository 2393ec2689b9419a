from datetime import date

import pytest

from rota import RuleError, occurrences


def due(rule, start, end):
    return " ".join(d.isoformat()[2:] for d in occurrences(rule, date.fromisoformat(start), date.fromisoformat(end)))


CASES = {
    "days": [
        ("every-day", "every day", "2024-02-28", "2024-03-01", "24-02-28 24-02-29 24-03-01"),
        ("third-days", "every 3 days from 2024-01-05", "2024-01-01", "2024-01-12", "24-01-05 24-01-08 24-01-11"),
        ("window-between-hits", "every 3 days from 2024-01-05", "2024-01-06", "2024-01-07", ""),
        ("other-day-until", "every other day from 2024-01-01 until 2024-01-05", "2024-01-02", "2024-02-01", "24-01-03 24-01-05"),
    ],
    "weeks": [
        ("week-on", "every week on thu, mon", "2024-01-01", "2024-01-11", "24-01-01 24-01-04 24-01-08 24-01-11"),
        ("from-mid-week", "every 2 weeks on mon, thu from 2024-01-03", "2024-01-01", "2024-01-31", "24-01-04 24-01-15 24-01-18 24-01-29"),
        ("from-on-sunday", "every 2 weeks on mon, sun from 2024-01-07", "2024-01-01", "2024-01-31", "24-01-07 24-01-15 24-01-21 24-01-29"),
        ("weeks-over-the-year", "every 2 weeks on wed from 2024-12-18", "2024-12-01", "2025-01-20", "24-12-18 25-01-01 25-01-15"),
        ("week-of-from", "every week from 2024-01-03", "2024-01-01", "2024-01-20", "24-01-03 24-01-10 24-01-17"),
    ],
    "days-of-the-month": [
        ("month-days", "every month on 15th, 1st,last", "2024-02-01", "2024-03-01", "24-02-01 24-02-15 24-02-29 24-03-01"),
        ("month-31st", "every month on 31st", "2024-01-01", "2024-06-30", "24-01-31 24-03-31 24-05-31"),
        ("count-goes-on", "every 3 months on 31st from 2024-01-01", "2024-01-01", "2025-01-31", "24-01-31 24-07-31 24-10-31 25-01-31"),
        ("month-of-from-30", "every other month from 2023-12-30", "2023-01-01", "2024-06-30", "23-12-30 24-04-30 24-06-30"),
        ("from-late-in-its-month", "every 2 months on 1st from 2024-01-15", "2024-01-01", "2024-06-01", "24-03-01 24-05-01"),
        ("months-over-the-year", "every 5 months on 1st from 2023-11-01", "2023-01-01", "2025-01-01", "23-11-01 24-04-01 24-09-01"),
    ],
    "weekdays-of-the-month": [
        ("second-tuesday", "every month on 2nd tue", "2024-01-01", "2024-03-31", "24-01-09 24-02-13 24-03-12"),
        ("first-on-the-first-and-seventh", "every month on 1st mon, 1st sun", "2024-01-01", "2024-01-31", "24-01-01 24-01-07"),
        ("fifth-friday", "every month on 5th Friday", "2024-01-01", "2024-06-30", "24-03-29 24-05-31"),
    ],
    "last": [
        ("last-friday", "every month on last fri", "2024-02-01", "2024-03-31", "24-02-23 24-03-29"),
        ("last-and-day-mixed", "every month on last, last wed, 31st", "2024-01-01", "2024-01-31", "24-01-31"),
    ],
    "leap-february": [
        ("leap-february", "every 12 months from 2020-02-29", "2020-01-01", "2028-12-31", "20-02-29 24-02-29 28-02-29"),
    ],
    "except": [
        ("except", "every day except sat, Sunday, 2024-01-03, 2024-01-09..2024-01-10", "2024-01-01", "2024-01-11", "24-01-01 24-01-02 24-01-04 24-01-05 24-01-08 24-01-11"),
        ("except-is-not-counted-anew", "every 2 days from 2024-01-01 except 2024-01-03", "2024-01-01", "2024-01-06", "24-01-01 24-01-05"),
    ],
    "spelling": [
        ("case-and-spaces", "  EVERY Weeks ON Mon ,TUE  Except 2024-01-08 .. 2024-01-08 ", "2024-01-07", "2024-01-09", "24-01-09"),
    ],
    "from-until-and-count": [
        ("from-equals-until", "every day from 2024-01-01 until 2024-01-01", "2023-01-01", "2025-01-01", "24-01-01"),
        ("count-one-needs-no-from", "every 1 months on 3rd", "2024-01-01", "2024-01-31", "24-01-03"),
        ("leading-zero-in-count", "every 02 days from 2024-01-01", "2024-01-01", "2024-01-03", "24-01-01 24-01-03"),
        ("until-without-from", "every day until 2024-01-02", "2024-01-01", "2024-01-31", "24-01-01 24-01-02"),
    ],
    "limits-of-the-calendar": [
        ("empty-window", "every day", "2024-01-02", "2024-01-01", ""),
        ("end-of-time", "every day", "9999-12-30", "9999-12-31", "99-12-30 99-12-31"),
        ("end-of-time-monthly", "every month on last, 5th fri", "9999-11-30", "9999-12-31", "99-11-30 99-12-31"),
        ("beginning-of-time", "every 2 weeks on sun from 0001-01-03", "0001-01-01", "0001-01-21", "01-01-07 01-01-21"),
    ],
    "far-away": [
        ("centuries-later", "every 1000 days from 0001-01-01", "9990-01-01", "9992-12-31", "91-08-17"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("group", CASES)
def test_occurrences(group):
    for what, rule, start, end, want in CASES[group]:
        assert due(rule, start, end) == want, f"{what}: {rule!r} in {start}..{end}"


ERRORS = {
    "beginning": [
        ("", 0),
        ("   ", 3),
        ("each day", 0),
        ("every", 5),
        ("every ", 6),
    ],
    "count-and-unit": [
        ("every 0 days from 2024-01-01", 6),
        ("every 2 hours", 8),
        ("every two days", 6),
        ("every 2 other days", 8),
        ("every 2days", 6),
    ],
    "week-anchors": [
        ("every day on mon", 10),
        ("every week on", 13),
        ("every week on mon,", 18),
        ("every week on mon tue", 18),
        ("every week on 1st", 14),
        ("every week on tues", 14),
        ("every week on last mon", 14),
    ],
    "month-anchors": [
        ("every month on mon", 15),
        ("every month on 1th", 15),
        ("every month on 11st", 15),
        ("every month on 22th", 15),
        ("every month on 32nd", 15),
        ("every month on 0th", 15),
        ("every month on 01st", 15),
        ("every month on 1 st", 15),
        ("every month on 15", 15),
        ("every month on 1st, 6th mon", 20),
        ("every month on last last", 20),
        ("every month on 1st mon tue", 23),
        ("every month on last 1st", 20),
    ],
    "dates": [
        ("every day from", 14),
        ("every day from 2024-1-1", 15),
        ("every day from 2024-02-30", 15),
        ("every day from 0000-01-01", 15),
        ("every day from 20240101", 15),
        ("every day from 2024-W01-1", 15),
        ("every day until 2024-01-01 from 2023-01-01", 27),
        ("every day from 2024-01-02 until 2024-01-01", 32),
        ("every day from 2024-01-01 from 2024-01-01", 26),
    ],
    "except": [
        ("every day except", 16),
        ("every day except 2024-01-02..2024-01-01", 29),
        ("every day except 2024-01-02..mon", 29),
        ("every day except mon..tue", 20),
        ("every day except 2024-01-02...2024-01-03", 29),
        ("every day except 1st", 17),
        ("every day except mon until 2024-01-01", 21),
    ],
    "characters": [
        ("every day.", 9),
        ("every day\n", 9),
        ("every\tday", 5),
        ("every day; every week", 9),
    ],
    "first-problem-wins": [
        ("every day from 2024-02-30 & more", 15),
        ("every oops & more", 6),
    ],
    "missing-from": [
        ("every 2 days", 6),
        ("every other week on mon", 6),
        ("every week", 6),
        ("every 1 months until 2024-01-01", 8),
        ("every 2 weeks", 6),
    ],
    "errors-before-missing-from": [
        ("every 2 weeks on mon except tues", 28),
        ("every week until 2024-13-01", 17),
        ("every \u0662 days from 2024-01-01", 6),
    ],
}  # fmt: skip


def error_position(rule, start, end):
    try:
        occurrences(rule, start, end)
    except RuleError as error:
        return error.pos
    return "no error"


@pytest.mark.parametrize("group", ERRORS)
def test_error_position(group):
    for rule, pos in ERRORS[group]:
        assert error_position(rule, date(2024, 1, 1), date(2024, 1, 31)) == pos, f"position of the error in {rule!r}"
        assert error_position(rule, date(2024, 1, 2), date(2024, 1, 1)) == pos, f"{rule!r} with an empty window"


def test_every_ordinal():
    month = (date(2024, 1, 1), date(2024, 1, 31))
    for number in range(1, 32):
        ending = "th" if number in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
        assert occurrences(f"every month on {number}{ending}", *month) == [date(2024, 1, number)]
        for wrong in sorted({"st", "nd", "rd", "th"} - {ending}):
            assert error_position(f"every month on {number}{wrong}", *month) == 15, f"{number}{wrong}"
