"""Stretches of the number line with open or closed ends."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import inf

Number = int | float | Fraction


@dataclass(frozen=True)
class Span:
    lo: Number
    hi: Number
    lo_closed: bool = True
    hi_closed: bool = False

    def __str__(self) -> str:
        return f"{'[' if self.lo_closed else '('}{self.lo}, {self.hi}{']' if self.hi_closed else ')'}"


# A cut is a place between points: (v, 0) lies just before the point v, (v, 1) just after it. A span is then everything
# between two cuts, and open and closed ends need no special treatment any more.
Cut = tuple[Number, int]


def _cuts(span: Span) -> tuple[Cut, Cut]:
    start = (span.lo, 0 if span.lo_closed and span.lo != -inf else 1)
    end = (span.hi, 1 if span.hi_closed and span.hi != inf else 0)
    return start, end


def _merged_cuts(spans: Iterable[Span]) -> list[tuple[Cut, Cut]]:
    merged: list[tuple[Cut, Cut]] = []
    for start, end in sorted(cuts for cuts in map(_cuts, spans) if cuts[0] < cuts[1]):
        if merged and start <= merged[-1][1]:
            first, last = merged[-1]
            merged[-1] = (first, max(last, end))
        else:
            merged.append((start, end))
    return merged


def _span(start: Cut, end: Cut) -> Span:
    return Span(start[0], end[0], start[1] == 0, end[1] == 1)


def merge(spans: Iterable[Span]) -> list[Span]:
    """All points of the spans, in normal form."""
    return [_span(start, end) for start, end in _merged_cuts(spans)]


def subtract(spans: Iterable[Span], holes: Iterable[Span]) -> list[Span]:
    """All points of the spans that are in no hole, in normal form."""
    cuts = _merged_cuts(holes)
    result: list[Span] = []
    first = 0
    for start, end in _merged_cuts(spans):
        while first < len(cuts) and cuts[first][1] <= start:
            first += 1
        at = first
        while at < len(cuts) and cuts[at][0] < end:
            hole_start, hole_end = cuts[at]
            if start < hole_start:
                result.append(_span(start, hole_start))
            start = hole_end
            at += 1
        if start < end:
            result.append(_span(start, end))
    return result
