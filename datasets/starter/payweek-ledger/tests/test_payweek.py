import pytest

from payweek import OverlapError, ShiftError, WeekPay, weekly_pay


def test_readme_example():
    got = weekly_pay(["2024-03-04 09:00-17:30", "2024-03-05 22:00-06:00"], rate=1850)
    assert got == {"2024-W10": WeekPay(minutes=990, overtime=0, sunday=0, cents=30525)}


@pytest.mark.parametrize(
    "shifts, want",
    [
        pytest.param(["2024-12-30 09:00-10:00"], {"2025-W01": (60, 0, 0, 6000)}, id="december-in-next-year"),
        pytest.param(["2027-01-01 09:00-10:00"], {"2026-W53": (60, 0, 0, 6000)}, id="january-in-last-year"),
        pytest.param(
            ["2024-01-01 00:00-24:00", "2024-12-31 00:00-24:00"],
            {"2024-W01": (1440, 0, 0, 144000), "2025-W01": (1440, 0, 0, 144000)},
            id="two-first-weeks-in-one-year",
        ),
        pytest.param(
            ["2024-03-04 08:00-09:00", "2024-01-29 08:00-09:00", "2024-02-26 08:00-09:00"],
            {"2024-W05": (60, 0, 0, 6000), "2024-W09": (60, 0, 0, 6000), "2024-W10": (60, 0, 0, 6000)},
            id="two-digits-and-in-order",
        ),
        pytest.param(["2024-03-10 22:00-06:00"], {"2024-W10": (120, 0, 120, 24000), "2024-W11": (360, 0, 0, 36000)}, id="sunday-into-monday"),
        pytest.param(["2024-03-09 22:00-06:00"], {"2024-W10": (480, 0, 360, 84000)}, id="saturday-into-sunday"),
        pytest.param(["2024-03-04 09:00-09:00"], {"2024-W10": (1440, 0, 0, 144000)}, id="twenty-four-hours"),
        pytest.param(["2024-03-10 00:01-00:01"], {"2024-W10": (1439, 0, 1439, 287800), "2024-W11": (1, 0, 0, 100)}, id="all-but-a-minute"),
    ],
)
def test_weeks_and_days(shifts, want):
    got = weekly_pay(shifts, rate=6000)
    assert got == {week: WeekPay(*numbers) for week, numbers in want.items()}
    assert list(got) == list(want), "weeks in chronological order"


def test_midnight_as_the_end():
    for shift in ("2024-03-10 16:00-24:00", "2024-03-10 16:00-00:00"):
        assert weekly_pay([shift], 6000) == {"2024-W10": WeekPay(480, 0, 480, 96000)}, shift
    assert weekly_pay(["2024-03-10 00:00-00:00"], 6000) == {"2024-W10": WeekPay(1440, 0, 1440, 288000)}


def test_overtime():
    days = [f"2024-03-{day:02} 08:00-17:00" for day in (4, 5, 6, 7)]
    assert weekly_pay([*days, "2024-03-08 08:00-12:00"], 6000)["2024-W10"] == WeekPay(2400, 0, 0, 240000)
    assert weekly_pay([*days, "2024-03-08 08:00-12:02"], 6000)["2024-W10"] == WeekPay(2402, 2, 0, 240300)


def test_sunday_is_no_overtime_and_makes_none():
    days = [f"2024-03-{day:02} 08:00-17:00" for day in (4, 5, 6, 7)]
    assert weekly_pay([*days, "2024-03-10 08:00-18:00"], 6000)["2024-W10"] == WeekPay(2760, 0, 600, 216000 + 120000)
    got = weekly_pay(["2024-03-10 08:00-18:00", *days, "2024-03-09 08:00-14:00"], 6000)["2024-W10"]
    assert got == WeekPay(3120, 120, 600, 240000 + 18000 + 120000)


def cents(rate, *ends):
    shifts = [f"2024-03-{4 + i:02} 08:00-{end}" for i, end in enumerate(ends)]
    return weekly_pay(shifts, rate)["2024-W10"].cents


def test_rounded_once_per_week():
    assert cents(100, "08:01", "08:01", "08:01") == 5


def test_half_a_cent_upwards():
    assert [cents(10, end) for end in ("08:02", "08:03", "08:09", "08:15")] == [0, 1, 2, 3]
    assert cents(10, "08:01", "08:01", "08:01", "08:00") == 241


def test_exact_for_large_rates():
    assert cents(60 * 10**17 + 60, "08:01") == 10**17 + 1


OVERLAPS = {
    "same-day": ["2024-03-04 08:00-12:00", "2024-03-04 11:59-13:00"],
    "apart-in-the-list": ["2024-03-04 09:00-10:00", "2024-03-06 08:00-12:00", "2024-03-04 08:00-12:00"],
    "into-the-next-day": ["2024-03-04 22:00-06:00", "2024-03-05 05:00-09:00"],
    "full-day": ["2024-03-04 12:00-12:00", "2024-03-05 11:00-11:30"],
    "the-same-twice": ["2024-03-04 08:00-12:00", "2024-03-04 08:00-12:00"],
}


@pytest.mark.parametrize("name", OVERLAPS)
def test_overlaps(name):
    for shifts in (OVERLAPS[name], OVERLAPS[name][::-1]):
        with pytest.raises(OverlapError):
            weekly_pay(shifts, 6000)


def test_touching_is_no_overlap():
    assert weekly_pay([], 60) == {}
    shifts = ["2024-03-05 06:00-08:00", "2024-03-04 22:00-06:00", "2024-03-04 20:00-22:00", "2024-03-05 08:00-24:00", "2024-03-06 00:00-01:00"]
    assert weekly_pay(iter(shifts), 60)["2024-W10"].minutes == 29 * 60


NO_SHIFTS = {
    "form": ["", "2024-03-04", "2024-03-04 8:00-12:00", "2024-03-04  08:00-12:00", "24-03-04 08:00-12:00", "2024-03-04 \u0660\u0668:00-12:00",
             "2024-03-04 08:00-12:00 ", "2024-03-04 08:00-12:00\n"],
    "values": ["2024-02-30 08:00-12:00", "2024-03-04 08:60-12:00", "2024-03-04 25:00-12:00", "2024-03-04 08:00-99:00"],
    "hour-24": ["2024-03-04 24:00-02:00", "2024-03-04 24:00-24:00", "2024-03-04 08:00-24:01"],
}  # fmt: skip


@pytest.mark.parametrize("group", NO_SHIFTS)
def test_not_a_shift(group):
    for text in NO_SHIFTS[group]:
        try:
            weekly_pay(["2024-03-07 08:00-12:00", text], 6000)
        except ShiftError:
            continue
        pytest.fail(f"{text!r} was accepted")


def test_error_types():
    assert issubclass(ShiftError, ValueError) and issubclass(OverlapError, ValueError)
    assert not issubclass(OverlapError, ShiftError)
