"""Our comparison against the rules of the sets' own judges, stated again as simply as can be, on random outputs."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

import pytest

from codeenv.grading.compare import difference

WORDS = ["a", "b", "Yes", "YES", "1", "2", "-1", "0", "0.5", "0.50", "0.500004", "0.501", "1.0", "1e3", "1000", "007"]
LARGE = ["100000.5", "100000.6", "+7", "12345678901234567890", "12345678901234567891"]
GAPS = [" ", "  ", "\n", "\n\n", "\r\n", "\t", " \n"]


def pairs(words: list[str], count: int = 20_000) -> Iterator[tuple[str, str]]:
    """An expected output, and one that differs from it a little or not at all."""
    pick = random.Random(5)
    for _ in range(count):
        want = "".join(pick.choice(words) + pick.choice(GAPS) for _ in range(pick.randrange(5)))
        got = pick.choice(["", "\n", " "]) + want
        for _ in range(pick.randrange(3)):
            old, new = (pick.choice(GAPS), pick.choice(GAPS)) if pick.random() < 0.4 else pick.choices(words, k=2)
            got = got.replace(old, new, pick.choice([1, -1]))
        yield got, want


def livecodebench(got: str, want: str) -> bool:
    """Lines without blanks at their ends: equal as text, or as lists of decimals."""
    ours, theirs = ([line.strip() for line in text.strip().split("\n")] for text in (got, want))
    return len(ours) == len(theirs) and all(map(same_line, ours, theirs))


def same_line(ours: str, theirs: str) -> bool:
    try:
        return ours == theirs or [Decimal(word) for word in ours.split()] == [Decimal(word) for word in theirs.split()]
    except InvalidOperation:
        return False


def codecontests(got: str, want: str) -> bool:
    """Words, whatever their case: equal as text, or as numbers within 1e-5."""
    ours, theirs = got.lower().split(), want.lower().split()
    return len(ours) == len(theirs) and all(map(same_word, ours, theirs))


def same_word(ours: str, theirs: str) -> bool:
    try:
        return ours == theirs or abs(float(ours) - float(theirs)) < 1e-5
    except ValueError:
        return False


@pytest.mark.parametrize(
    ("judge", "words", "settings"),
    [
        pytest.param(livecodebench, WORDS + LARGE, {"compare": "lines"}, id="livecodebench"),
        # It has integers beyond 64 bits, and those that a float cannot tell apart, as floats; we compare all digits.
        pytest.param(
            codecontests,
            WORDS + LARGE[:3],
            {"compare": "numbers", "tolerance": 1e-5, "relative": False, "ignore_case": True},
            id="codecontests",
        ),
    ],
)
def test_verdicts_agree(judge: Callable[[str, str], bool], words: list[str], settings: dict[str, Any]) -> None:
    verdicts: set[bool] = set()
    for got, want in pairs(words):
        ours = difference(got.encode(), want.encode(), **settings) == ""
        assert ours is judge(got, want), (got, want)
        verdicts.add(ours)
    assert verdicts == {True, False}
