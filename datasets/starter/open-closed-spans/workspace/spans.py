"""Stretches of the number line with open or closed ends."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

Number = int | float | Fraction


@dataclass(frozen=True)
class Span:
    lo: Number
    hi: Number
    lo_closed: bool = True
    hi_closed: bool = False

    def __str__(self) -> str:
        return f"{'[' if self.lo_closed else '('}{self.lo}, {self.hi}{']' if self.hi_closed else ')'}"


def merge(spans: Iterable[Span]) -> list[Span]:
    """All points of the spans, in normal form."""
    raise NotImplementedError


def subtract(spans: Iterable[Span], holes: Iterable[Span]) -> list[Span]:
    """All points of the spans that are in no hole, in normal form."""
    raise NotImplementedError
