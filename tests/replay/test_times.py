"""What counts as a matter of times and ids in a text, and what does not."""

from __future__ import annotations

import pytest

from codeenv.replay.times import without_times

TIMES = {
    "ls": ("-rw-r--r-- 1 user   user    239 Nov 30 07:00 a.py", "-rw-r--r-- 1 user   user    239 Jan  2 23:59 a.py"),
    "ls-old": ("drwxr-xr-x 2 u u 80 Mar  3  2024 d", "drwxr-xr-x 2 u u 80 Mar 13  2025 d"),
    "iso": ("at 2026-11-30T07:00:10.894+00:00!", "at 2026-12-01 08:01:11!"),
    "date": ("Mon Nov 30 06:59:14 UTC 2026", "Tue Dec  1 16:09:04 UTC 2026"),
    "pytest": ("===== 3 passed in 0.12s =====", "==== 3 passed in 12.34s ===="),
    "unittest": ("Ran 3 tests in 0.001s", "Ran 3 tests in 0.010s"),
    "time": ("real\t0m0.012s\nuser\t0m0.001s", "real\t1m2.345s\nuser\t0m0.002s"),
    "timeout": ("[no end within 5 s: killed]", "[no end within 4.9 s: killed]"),
    "clock": ("[07:00:01] start", "[23:59:59.123] start"),
    "milliseconds": ("took 3 ms", "took 12 ms"),
    "address": ("<A object at 0x7f1b7a852290>", "<A object at 0x7f8ea3c1d0a0>"),
    "pid": ("killed pid 123", "killed pid 4567"),
    "job": ("a\n[1] 17\nb", "a\n[1] 4711\nb"),
    "uuid": ("id 285f33be-a1d3-4f8b-b54d-ccd25d909fbd", "id 00000000-a1d3-4f8b-b54d-ccd25d909fbd"),
    "temporary": ("/tmp/tmpab12cd_x/f", "/tmp/tmpzz99zz_9/f"),
}
OTHER = {
    "score": ("it ended 3:15", "it ended 3:16"),
    "line": ("a.py:12:34: E501", "a.py:12:35: E501"),
    "seconds": ("wait 5 s", "wait 6 s"),
    "digest": ("9e107d9d372bb6826bd81d3542a419d6  a", "e4d909c290d0fb1ca068ffaddf22cbd0  a"),
    "indent": ("    x = 1", "  x = 1"),
    "number": ("1.5", "1.6"),
    "passed": ("= 3 passed in 0.12s =", "= 2 passed in 0.12s ="),
    "version": ("pytest 8.3.1", "pytest 8.3.2"),
    "list": ("[1] 17 apples", "[1] 18 apples"),
}


@pytest.mark.parametrize(("one", "other"), TIMES.values(), ids=TIMES)
def test_times(one: str, other: str) -> None:
    assert without_times(one) == without_times(other)


@pytest.mark.parametrize(("one", "other"), OTHER.values(), ids=OTHER)
def test_other_things(one: str, other: str) -> None:
    assert without_times(one) != without_times(other)


def test_a_long_text_takes_no_time() -> None:
    for text in ("0" * 100_000, "a:" * 50_000, "= - " * 25_000 + "0.1s", "2026-11-30 " * 10_000, "\n" * 100_000):
        without_times(text)
