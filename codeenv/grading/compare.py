"""Whether a program's output is what was expected: exactly, by tokens, or as numbers. All on bytes: decoded, what is no
UTF-8 would be alike, and some thirty characters would be blanks or line ends."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Context, Decimal, DecimalException
from typing import Literal

SHOWN = 300
INTEGER = re.compile(rb"([+-]?)0*(\d+)")
NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,9})?|[+-]?(inf|infinity|nan)", re.IGNORECASE)
DIGITS = Context(prec=60, Emax=10**12, Emin=-(10**12))

Comparison = Literal["tokens", "exact", "numbers"]


def difference(got: bytes, want: bytes, compare: Comparison = "tokens", tolerance: float = 0.0) -> str:
    """Where the output goes wrong, showing what the program printed and never what was expected of it; empty: nowhere.

    tokens: split at white space. exact: line by line, trailing blanks, CR and trailing empty lines apart. numbers:
    tokens, of which two integers must be equal, and other numbers differ by at most `tolerance` absolutely or
    as a part of the expected one; what is no number must be the same.
    """
    if compare == "exact":
        return _first(_lines(got), _lines(want), "line", lambda ours, theirs: ours == theirs)
    if compare == "tokens":
        return _first(got.split(), want.split(), "token", lambda ours, theirs: ours == theirs)
    return _first(got.split(), want.split(), "token", lambda ours, theirs: close(ours, theirs, tolerance))


def close(ours: bytes, theirs: bytes, tolerance: float) -> bool:
    """Whether the two tokens are the same number within the tolerance, or the same text."""
    if ours == theirs:
        return True
    mine, others = INTEGER.fullmatch(ours), INTEGER.fullmatch(theirs)
    if mine and others:  # as text: of any size, which a float or an int would not take
        return mine[2] == others[2] and (mine[2] == b"0" or (mine[1] == b"-") == (others[1] == b"-"))
    if not NUMBER.fullmatch(ours) or not NUMBER.fullmatch(theirs):
        return False
    try:
        a, b = Decimal(ours.decode()), Decimal(theirs.decode())
        if a.is_nan() or b.is_nan():
            return a.is_nan() and b.is_nan()
        if a.is_infinite() or b.is_infinite():
            return a == b
        allowed = max(Decimal(tolerance), DIGITS.multiply(Decimal(tolerance), b.copy_abs()))
        return DIGITS.subtract(a, b).copy_abs() <= allowed
    except DecimalException:
        return False


def _lines(text: bytes) -> list[bytes]:
    lines = [line.rstrip() for line in text.split(b"\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _first(got: list[bytes], want: list[bytes], unit: str, same: Callable[[bytes, bytes], bool]) -> str:
    for number, (ours, theirs) in enumerate(zip(got, want, strict=False), 1):
        if not same(ours, theirs):
            return f"{unit} {number} is wrong: {ours[:SHOWN].decode('utf-8', 'replace')!r}"
    if len(got) != len(want):
        return f"{len(got)} {unit}s of output, {'more' if len(got) > len(want) else 'fewer'} than expected"
    return ""
