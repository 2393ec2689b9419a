import random
import re
from fractions import Fraction
from math import inf

import pytest

from spans import Span, merge, subtract


def S(text):
    """Spans from text such as '[1, 3) (4, inf)'."""
    out = []
    for left, lo, hi, right in re.findall(r"([\[(])(-?\w+), (-?\w+)([\])])", text):
        lo, hi = (float(x) if "inf" in x else int(x) for x in (lo, hi))
        out.append(Span(lo, hi, left == "[", right == "]"))
    return out


def show(spans):
    return " ".join(map(str, spans))


MERGES = {
    "nothing-and-order": [
        ("", ""),
        ("[3, 4] [1, 2)", "[1, 2) [3, 4]"),
    ],
    "touching": [
        ("[1, 2) [2, 3]", "[1, 3]"),
        ("[1, 2] (2, 3]", "[1, 3]"),
        ("[1, 2) (2, 3]", "[1, 2) (2, 3]"),
        ("[1, 2) (2, 3] [2, 2]", "[1, 3]"),
    ],
    "containing": [
        ("[1, 9] [2, 3] [4, 5)", "[1, 9]"),
        ("[1, 5) [2, 5]", "[1, 5]"),
        ("(1, 5] [1, 3)", "[1, 5]"),
        ("(1, 5) (1, 5)", "(1, 5)"),
    ],
    "empty-spans": [
        ("(2, 2) [2, 2) (2, 2] [5, 4] [1, 1]", "[1, 1]"),
        ("[0, 1) (1, 1] (1, 2]", "[0, 1) (1, 2]"),
        ("[9, 1] [2, 3]", "[2, 3]"),
    ],
    "infinity": [
        ("[-inf, 0] [0, inf]", "(-inf, inf)"),
        ("[-inf, -inf] [inf, inf] [1, 1]", "[1, 1]"),
    ],
}


@pytest.mark.parametrize("group", MERGES)
def test_merge(group):
    for given, want in MERGES[group]:
        assert show(merge(S(given))) == want, f"merge of {given}"


SUBTRACTIONS = {
    "ends-flip": [
        ("[1, 9]", "", "[1, 9]"),
        ("[1, 9]", "[3, 4)", "[1, 3) [4, 9]"),
        ("[1, 9]", "(3, 4)", "[1, 3] [4, 9]"),
    ],
    "single-points-left": [
        ("[1, 3]", "(1, 3)", "[1, 1] [3, 3]"),
        ("[1, 3]", "(1, 2) (2, 3]", "[1, 1] [2, 2]"),
        ("[1, 3)", "[1, 3)", ""),
        ("[1, 3]", "[1, 3)", "[3, 3]"),
    ],
    "point-hole": [
        ("[1, 3)", "[2, 2]", "[1, 2) (2, 3)"),
    ],
    "empty-holes": [
        ("[1, 3)", "(2, 2] [9, 0]", "[1, 3)"),
    ],
    "holes-over-spans": [
        ("[1, 2) [4, 5) [7, 8)", "[0, 9]", ""),
        ("[1, 4) [5, 9)", "[3, 6)", "[1, 3) [6, 9)"),
        ("[0, 4] [2, 9]", "[3, 3] [3, 3]", "[0, 3) (3, 9]"),
    ],
    "infinity": [
        ("(-inf, inf)", "[0, inf]", "(-inf, 0)"),
        ("[-inf, inf]", "(0, 1)", "(-inf, 0] [1, inf)"),
    ],
    "normal-form": [
        ("[1, 2) [2, 3)", "[5, 6]", "[1, 3)"),
    ],
}


@pytest.mark.parametrize("group", SUBTRACTIONS)
def test_subtract(group):
    for spans, holes, want in SUBTRACTIONS[group]:
        assert show(subtract(S(spans), S(holes))) == want, f"{spans} without {holes}"


def test_one_shot_iterators_and_mixed_numbers():
    spans = [Span(Fraction(1, 3), 2.5), Span(0, Fraction(1, 3))]
    assert merge(iter(spans)) == [Span(0, 2.5)]
    assert subtract(iter(spans), iter([Span(1, 1, True, True)])) == [Span(0, 1), Span(1, 2.5, False, False)]


def test_against_membership():
    rng = random.Random(11)

    def some():
        ends = [-inf, *range(6), inf]
        return [Span(rng.choice(ends[:-1]), rng.choice(ends[1:]), rng.random() < 0.5, rng.random() < 0.5) for _ in range(rng.randrange(5))]

    def has(spans, x):
        return any((s.lo < x or s.lo == x and s.lo_closed) and (x < s.hi or x == s.hi and s.hi_closed) for s in spans)

    points = [i / 2 for i in range(-2, 14)]
    for _ in range(400):
        a, b = some(), some()
        for got, want, what in (
            (merge(a), [has(a, x) for x in points], f"merge({show(a)})"),
            (subtract(a, b), [has(a, x) and not has(b, x) for x in points], f"subtract({show(a)}, {show(b)})"),
        ):
            assert [has(got, x) for x in points] == want, f"{what} gave {show(got)}"
            # every half step is a point tested, so a run of points is one span
            runs = sum(w and not (i and want[i - 1]) for i, w in enumerate(want))
            assert len(got) == runs, f"{what} gave {show(got)}: not the fewest spans"


def test_many_spans_and_many_holes():
    n = 20_000
    spans = (Span(3 * i, 3 * i + 2) for i in range(n))
    holes = (Span(3 * i + 1, 3 * i + 3) for i in reversed(range(n)))
    assert subtract(spans, holes) == [Span(3 * i, 3 * i + 1) for i in range(n)]
