"""How a program's output is compared."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeenv.grading.compare import close, difference

NINES = b"9" * 6000


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [
        (b"1.0000001", b"1", True),
        (b"1.1", b"1", False),
        (b"1000000.5", b"1000000", True),
        (b"1000002", b"1000000", False),  # integers are exact
        (b"1000000", b"1000000.5", True),
        (b"0.0000001", b"0", True),
        (b"-0.0000001", b"0", True),
        (b"-0", b"0", True),
        (b"+7", b"7", True),
        (b"-7", b"7", False),
        (b"007", b"7", True),
        (b"7", b"seven", False),
        (b"seven", b"seven", True),
        (b"Seven", b"seven", False),
        (b"1e3", b"1000.0", True),
        (b"1E+3", b"1000", True),
        (b".5", b"0.5", True),
        (b"5.", b"5.0", True),
        (b"1_0", b"10", False),
        (b"0x10", b"16", False),
        ("٣".encode(), b"3", False),
        (b"nan", b"nan", True),
        (b"NaN", b"nan", True),
        (b"nan", b"1", False),
        (b"1", b"nan", False),
        (b"sNaN", b"nan", False),
        (b"inf", b"Infinity", True),
        (b"-inf", b"inf", False),
        (b"inf", b"1e400", False),
        (b"1e400", b"1e400", True),
        (b"1e400", b"1.0000001e400", True),
        (b"1e999999999", b"1e-999999999", False),
        (b"1e9999999999", b"1", False),
        (NINES, NINES, True),
        (b"+" + NINES, NINES, True),
        (NINES + b".0", NINES, True),
        (NINES, NINES[:-1] + b"8", False),
        (NINES[:-1] + b"8.5", NINES, True),
        (b"\xff", b"\xff", True),
        (b"\xff", b"\xfe", False),
        (b"", b"0", False),
    ],
)
def test_numbers(ours: bytes, theirs: bytes, same: bool) -> None:
    assert close(ours, theirs, 1e-6) is same


def test_the_tolerance() -> None:
    assert close(b"1.05", b"1.0", 0.1)
    assert not close(b"1.05", b"1.0", 0.01)
    assert close(b"1.0", b"1.00", 0.0)
    assert not close(b"1.0000000000000000001", b"1.0", 0.0)


@pytest.mark.parametrize(
    ("got", "want", "says"),
    [
        (b"1.0 x\r\n2\n\n", b"1 x 2", ""),
        (b"1 y 2", b"1 x 2", "token 2 is wrong: 'y'"),
        (b"1 x", b"1 x 2", "2 tokens of output, fewer than expected"),
        (b"1 x 2 3", b"1 x 2", "4 tokens of output, more than expected"),
    ],
)
def test_what_is_said_of_numbers(got: bytes, want: bytes, says: str) -> None:
    assert difference(got, want, "numbers", 1e-6) == says


NUMBERS = st.decimals(-(10**6), 10**6, places=6)


@settings(deadline=None)
@given(
    expected=NUMBERS, off=st.integers(-3, 3), tolerance=st.sampled_from([0.0, 1e-6, 1e-5, 0.1]), relative=st.booleans()
)
def test_close_is_exact_at_the_edge(expected: Decimal, off: int, tolerance: float, relative: bool) -> None:
    edge = max(Fraction(tolerance), Fraction(tolerance) * abs(Fraction(expected))) if relative else Fraction(tolerance)
    with localcontext(prec=60):
        ours = expected + Decimal(edge.numerator) / edge.denominator + Decimal(off) * Decimal("1e-17")
    same = abs(Fraction(ours) - Fraction(expected)) <= edge
    assert close(f"{ours:f}".encode(), f"{expected:f}".encode() + b"0", tolerance, relative=relative) is same


def test_an_absolute_tolerance() -> None:
    assert close(b"1000000.5", b"1000000.50001", 1e-5, relative=True)
    assert close(b"1000000.500009", b"1000000.5", 1e-5, relative=False)
    assert not close(b"1000000.501", b"1000000.5", 1e-5, relative=False)
    assert close(b"1000000.501", b"1000000.5", 1e-5, relative=True)


@pytest.mark.parametrize(
    ("got", "want", "same"),
    [
        (b"1.0 2\n\n3", b"1 2.00\r\n\n3\n\n", True),
        (b"1 x", b"1.0 x", False),
        (b"  a b  \n", b"a b", True),
        (b"1 2", b"1\n2", False),
        (b"1 2", b"1 2 3", False),
        (b"", b"\n \n", True),
        (b"nan", b"nan", True),
        (b"0", b"", False),
        (NINES, b"+" + NINES, True),
        (NINES, NINES[:-1] + b"8", False),
    ],
)
def test_lines(got: bytes, want: bytes, same: bool) -> None:
    assert (difference(got, want, "lines") == "") is same


@pytest.mark.parametrize(
    ("got", "want", "same"),
    [
        (b"1.0 2\n\n3", b"1  2.00\r\n3\n\n", True),
        (b"a  0.5", b"a 0.500001", True),
        (b"a 0.5", b"a 0.501", False),
        (b"1 2", b"1\n2", False),
        (b"1 2", b"2 1", False),
        (b"1 2", b"1 2 3", False),
        (b"", b"\n \n", True),
    ],
)
def test_rows(got: bytes, want: bytes, same: bool) -> None:
    assert (difference(got, want, "rows", 1e-5) == "") is same


def test_the_case_of_letters() -> None:
    assert difference("YES É".encode(), "yes É".encode(), ignore_case=True) == ""
    assert difference("É".encode(), "é".encode(), ignore_case=True) == "token 1 is wrong: 'É'"
    assert difference(b"YES", b"no", ignore_case=True) == "token 1 is wrong: 'YES'"
    assert difference(b"Yes\n1E3", b"YES\n1000", "lines", ignore_case=True) == ""
    assert difference(b"YES", b"yes") == "token 1 is wrong: 'YES'"
