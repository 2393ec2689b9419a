import pytest

from glossary import glossary


def test_example():
    got = glossary([("ebb", "the outgoing tide"), ("neap", "a tide of small range")], 16)
    assert got == [
        " ebb  the",
        "      outgoing",
        "      tide",
        "neap  a tide of",
        "      small",
        "      range",
    ]


def test_empty_pairs_never_raise():
    assert glossary([], 0) == []
    assert glossary(iter(()), -3, gutter=9) == []


def test_one_shot_iterator():
    pairs = iter([("a", "x"), ("bcd", "y")])
    assert glossary(pairs, 12) == ["  a  x", "bcd  y"]


def test_overlong_label_does_not_widen_the_column():
    got = glossary([("flotsam", "adrift goods"), ("oar", "a blade")], 15)
    assert got == ["flotsam", "     adrift", "     goods", "oar  a blade"]


def test_label_exactly_at_cap_fits():
    assert glossary([("abcde", "one two")], 15, gutter=1) == ["abcde one two"]


def test_no_label_fits_column_is_zero():
    assert glossary([("abcdefg", "one two")], 9) == ["abcdefg", "  one two"]


def test_overlong_label_longer_than_width():
    assert glossary([("abcdefghijkl", "q")], 6) == ["abcdefghijkl", "  q"]


def test_exact_fill_of_room():
    assert glossary([("k", "abc de fg")], 9) == ["k  abc de", "   fg"]


def test_long_word_is_cut_and_tail_is_shared():
    # room is 5
    assert glossary([("k", "a bcdefghijklm n o")], 8) == [
        "k  a",
        "   bcdef",
        "   ghijk",
        "   lm n",
        "   o",
    ]


def test_long_word_with_exact_multiple_leaves_no_blank_line():
    assert glossary([("k", "abcdefghij z")], 8) == ["k  abcde", "   fghij", "   z"]


def test_long_word_last_with_exact_multiple():
    assert glossary([("k", "abcdefghij")], 8) == ["k  abcde", "   fghij"]


@pytest.mark.parametrize("text", ["", "   ", " \n ", "\n\n\t\n"], ids=["empty", "blanks", "blank-lines", "tabs"])
def test_wordless_text_shows_only_the_label(text):
    assert glossary([("k", text), ("toolong", text), ("mm", "x")], 9) == [" k", "toolong", "mm  x"]


def test_paragraphs_and_inner_blank_lines():
    assert glossary([("k", "a b\n\n  c\nd\n")], 20) == ["k  a b", "", "   c", "   d", ""]


def test_first_paragraph_empty_keeps_label_line():
    assert glossary([("k", "\nabc")], 20) == ["k", "   abc"]


def test_first_paragraph_empty_with_overlong_label():
    assert glossary([("kkkkkkkk", "\nabc")], 20) == ["kkkkkkkk", "", "  abc"]


def test_separators_are_space_and_tab_only():
    got = glossary([("k", "a\u00a0b \t  c\x0bd")], 12)
    assert got == ["k  a\u00a0b c\x0bd"]


def test_no_trailing_blanks_for_empty_label():
    assert glossary([("", ""), ("ab", "x"), ("", "y")], 12) == ["", "ab  x", "    y"]


def test_label_blanks_are_kept():
    assert glossary([("a ", "x"), ("b ", "")], 12) == ["a   x", "b "]


def test_room_of_one():
    assert glossary([("a", "bc d")], 4) == ["a  b", "   c", "   d"]


def test_no_room_is_an_error():
    with pytest.raises(ValueError):
        glossary([("a", "b")], 3)


def test_zero_gutter():
    assert glossary([("ab", "cd e")], 6, gutter=0) == ["abcd e"]
