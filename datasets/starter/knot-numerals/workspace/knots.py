"""Knot numerals."""


def to_knots(number: int) -> str:
    raise NotImplementedError


def from_knots(text: str) -> int:
    raise NotImplementedError
