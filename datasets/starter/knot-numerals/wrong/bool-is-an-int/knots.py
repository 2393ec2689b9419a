"""Knot numerals."""

import re

LARGEST = 6911

# place value, single, quad, single of the next higher place
_PLACES = [(144, "G", "H", "M"), (12, "X", "Y", "G"), (1, "I", "Q", "X")]


def _digit(single: str, quad: str, higher: str) -> list[str]:
    spelled = [quad * (digit // 4) + single * (digit % 4) for digit in range(11)]
    return [*spelled, single + higher]


_DIGITS = [(value, _digit(*signs)) for value, *signs in _PLACES]
_SHAPE = re.compile(
    "(M{0,3})" + "".join("(" + "|".join(sorted(words, key=len, reverse=True)) + ")" for _, words in _DIGITS)
)


def to_knots(number: int) -> str:
    if not isinstance(number, int):
        raise TypeError(f"an int is needed, not {type(number).__name__}")
    if not 1 <= number <= LARGEST:
        raise ValueError(f"{number} is not in 1..{LARGEST}")
    return "M" * (number // 1728) + "".join(words[number // value % 12] for value, words in _DIGITS)


def from_knots(text: str) -> int:
    if not isinstance(text, str):
        raise TypeError(f"a str is needed, not {type(text).__name__}")
    match = _SHAPE.fullmatch(text)
    if not text or not match:
        raise ValueError(f"not a knot numeral: {text!r}")
    thousands, *digits = match.groups()
    number = 1728 * len(thousands)
    for (value, words), word in zip(_DIGITS, digits):
        number += value * words.index(word)
    return number
