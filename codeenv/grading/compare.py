"""Whether a program's output is what was expected: exactly, by lines, by tokens, or as numbers. All on bytes: decoded,
what is no UTF-8 would be alike, and some thirty characters would be blanks or line ends."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Context, Decimal, DecimalException
from typing import Literal

SHOWN = 300
INTEGER = re.compile(rb"([+-]?)0*(\d+)")
NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,9})?|[+-]?(inf|infinity|nan)", re.IGNORECASE)
DIGITS = Context(prec=60, Emax=10**12, Emin=-(10**12))

Comparison = Literal["tokens", "exact", "lines", "rows", "numbers"]


def difference(
    got: bytes,
    want: bytes,
    compare: Comparison = "tokens",
    tolerance: float = 0.0,
    *,
    relative: bool = True,
    ignore_case: bool = False,
) -> str:
    """Where the output goes wrong, showing what the program printed and never what was expected of it; empty: nowhere.

    tokens: split at white space. exact: line by line, trailing blanks, CR and trailing empty lines apart. lines: line
    by line, blanks at either end and outer empty lines apart; two lines of nothing but numbers are compared as those.
    rows: lines that are not empty, each as by numbers.
    numbers: tokens, of which two integers must be equal, and other numbers differ by at most `tolerance`, absolutely
    or (`relative`) as a part of the expected one; what is no number must be the same. `ignore_case`: of ASCII letters.
    """

    def near(ours: bytes, theirs: bytes) -> bool:
        return close(ours, theirs, tolerance, relative=relative)

    def row(ours: bytes, theirs: bytes) -> bool:
        a, b = ours.split(), theirs.split()
        return len(a) == len(b) and all(map(near, a, b))

    def numbers(ours: bytes, theirs: bytes) -> bool:
        return all(map(NUMBER.fullmatch, theirs.split())) and row(ours, theirs)

    def equal(ours: bytes, theirs: bytes) -> bool:
        return ours == theirs

    split, unit, same = {
        "exact": (_lines, "line", equal),
        "lines": (_stripped, "line", numbers),
        "rows": (_filled, "line", row),
        "numbers": (bytes.split, "token", near),
        "tokens": (bytes.split, "token", equal),
    }[compare]

    def same_in_any_case(ours: bytes, theirs: bytes) -> bool:
        one, other = ours.lower(), theirs.lower()
        return one == other or same(one, other)

    return _first(split(got), split(want), unit, same_in_any_case if ignore_case else same)


def close(ours: bytes, theirs: bytes, tolerance: float, *, relative: bool = True) -> bool:
    """Whether the two tokens are the same number within the tolerance, or the same text."""
    if ours == theirs:
        return True
    mine, others = INTEGER.fullmatch(ours), INTEGER.fullmatch(theirs)
    if mine and others:  # as text: of any size, which a float or an int would not take
        return mine[2] == others[2] and (mine[2] == b"0" or (mine[1] == b"-") == (others[1] == b"-"))
    if not NUMBER.fullmatch(ours) or not NUMBER.fullmatch(theirs):
        return False
    a, b = float(ours), float(theirs)
    allowed = max(tolerance, tolerance * abs(b)) if relative else tolerance
    off, blur = abs(a - b), 1e-15 * (abs(a) + abs(b) + allowed)
    if off + blur < allowed:
        return True
    if off - blur > allowed:
        return False
    return _close_exactly(ours, theirs, tolerance, relative)  # also what is infinite or not a number


def _close_exactly(ours: bytes, theirs: bytes, tolerance: float, relative: bool) -> bool:
    """As `close`, where floats cannot tell: at the edge of the tolerance."""
    try:
        a, b = Decimal(ours.decode()), Decimal(theirs.decode())
        if a.is_nan() or b.is_nan():
            return a.is_nan() and b.is_nan()
        if a.is_infinite() or b.is_infinite():
            return a == b
        allowed = Decimal(tolerance)
        if relative:
            allowed = max(allowed, DIGITS.multiply(allowed, b.copy_abs()))
        return DIGITS.subtract(a, b).copy_abs() <= allowed
    except DecimalException:
        return False


def _lines(text: bytes) -> list[bytes]:
    lines = [line.rstrip() for line in text.split(b"\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _stripped(text: bytes) -> list[bytes]:
    return [line.strip() for line in text.strip().split(b"\n")]


def _filled(text: bytes) -> list[bytes]:
    return [line for line in _stripped(text) if line]


def _first(got: list[bytes], want: list[bytes], unit: str, same: Callable[[bytes, bytes], bool]) -> str:
    if got == want:
        return ""
    for number, (ours, theirs) in enumerate(zip(got, want, strict=False), 1):
        if ours != theirs and not same(ours, theirs):
            return f"{unit} {number} is wrong: {ours[:SHOWN].decode('utf-8', 'replace')!r}"
    if len(got) != len(want):
        return f"{len(got)} {unit}s of output, {'more' if len(got) > len(want) else 'fewer'} than expected"
    return ""
