"""Ordering of shelf marks."""

import re
from collections.abc import Iterable

_PIECE = re.compile(r"(?P<sep>[ \-_/]+)|(?P<number>\d+)|(?P<word>[^ \-_/\d]+)")
_SEPARATORS = " -_/"
_SEPARATOR, _NUMBER, _WORD = range(3)


def shelf_key(mark: str):
    """A sort key for one shelf mark."""
    pieces: list[tuple] = []
    lengths: list[int] = []
    for piece in _PIECE.finditer(mark.strip(_SEPARATORS)):
        text = piece.group()
        if piece.lastgroup == "sep":
            pieces.append((_SEPARATOR,))
        elif piece.lastgroup == "number":
            digits = text.lstrip("0")
            pieces.append((_NUMBER, len(digits), digits))
            lengths.append(len(text))
        else:
            pieces.append((_WORD, text.casefold()))
    return pieces, lengths, mark


def sort_marks(marks: Iterable[str]) -> list[str]:
    """The marks in shelf order, as a new list."""
    return sorted(marks, key=shelf_key)
