import random

import pytest

from shelfmarks import shelf_key, sort_marks


@pytest.mark.parametrize(
    "ordered",
    [
        pytest.param(["C", "C-7", "C6b", "c007a", "C7b", "C07b", "CA"], id="the-example"),
        pytest.param(["C9", "C10", "C100"], id="numbers-by-value"),
        pytest.param(["a", "a-a", "a1", "aa"], id="end-separator-number-word"),
        pytest.param(["a1", "-a2", "a2_", "a02", "/ a3"], id="outer-separators-dropped"),
        pytest.param(["a - 1", "a_2", "a/3", "a--4"], id="separators-are-alike"),
        pytest.param(["x007", "X8"], id="value-before-case"),
        pytest.param(["x007b", "X7c"], id="digit-count-decides-last"),
        pytest.param(["x7y08", "x07y8"], id="digit-count-leftmost-first"),
        pytest.param(["X7-b", "x7 b", "X07-b"], id="digit-count-before-spelling"),
        pytest.param(["A1", "a1"], id="plain-strings-at-the-end"),
        pytest.param(["0", "00", "1"], id="zeros"),
        pytest.param(["stras9", "stra\u00dfe", "STRASSF"], id="casefold-not-lower"),
        pytest.param(["9", "10", "m", "\u00b2", "\u0663"], id="other-digits-are-letters"),
        pytest.param(["", "1", "a"], id="empty-mark-first"),
        pytest.param(["a\n1", "a.1"], id="any-other-character-is-a-word"),
        pytest.param(["b9" + "9" * 5000, "b1" + "0" * 5001, "b" + "0" * 6000 + "1" + "0" * 5001], id="very-long-numbers"),
    ],
)
def test_order(ordered):
    rng = random.Random(5)
    for _ in range(10):
        shuffled = ordered[:]
        rng.shuffle(shuffled)
        assert sort_marks(shuffled) == ordered, f"from {shuffled}"
        assert sorted(shuffled, key=shelf_key) == ordered, f"by shelf_key, from {shuffled}"


def test_only_separators_equals_the_empty_mark_until_the_last_rule():
    assert sort_marks(["1", " - ", "", "//"]) == ["", " - ", "//", "1"]


def test_any_iterable_and_no_change_of_the_argument():
    marks = ["b", "a10", "a9"]
    assert sort_marks(m for m in marks) == ["a9", "a10", "b"]
    assert sort_marks(marks) is not marks and marks == ["b", "a10", "a9"]


def test_duplicates_are_kept():
    assert sort_marks(["a1", "a01", "a1"]) == ["a1", "a1", "a01"]


def test_keys_of_any_two_marks_compare():
    marks = ["", "7", "a", "-", "7a", "a7", "a-7", "a-a", "7-7", "\u00b2", "a7a7"]
    for left in marks:
        for right in marks:
            assert (shelf_key(left) < shelf_key(right)) + (shelf_key(right) < shelf_key(left)) == (left != right)
