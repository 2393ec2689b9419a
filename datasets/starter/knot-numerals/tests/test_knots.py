import time

import pytest

from knots import from_knots, to_knots

SPELLINGS = {
    1: "I", 3: "III", 4: "Q", 7: "QIII", 8: "QQ", 10: "QQII", 11: "IX", 12: "X", 23: "XIX", 47: "XXXIX", 48: "Y",
    96: "YY", 120: "YYXX", 131: "YYXXIX", 132: "XG", 143: "XGIX", 144: "G", 145: "GI", 287: "GXGIX", 576: "H",
    1440: "HHGG", 1583: "HHGGXGIX", 1584: "GM", 1727: "GMXGIX", 1728: "M", 3312: "MGM", 5184: "MMM", 6911: "MMMGMXGIX",
}  # fmt: skip


def test_spelling():
    assert {number: to_knots(number) for number in SPELLINGS} == SPELLINGS


def test_reading():
    assert {from_knots(text): text for text in SPELLINGS.values()} == SPELLINGS


# A call may be a message to another machine: every kind of numeral comes first, and the rest until the time is over.
# Where the calls are near, that is every number.
FIRST = sorted({*range(1, 150), *range(150, 6912, 53), *(12**3 * m + d for m in range(1, 4) for d in range(-13, 14))})
SECONDS = 6.0


def test_numbers_go_there_and_back():
    end = time.monotonic() + SECONDS
    seen = set()
    for place, number in enumerate([*FIRST, *sorted({*range(1, 6912)} - {*FIRST})]):
        if place >= len(FIRST) and time.monotonic() > end:
            break
        text = to_knots(number)
        assert text not in seen, "two numbers share a spelling"
        seen.add(text)
        assert from_knots(text) == number


@pytest.mark.parametrize("number", [0, -1, 6912, 10**9])
def test_out_of_range(number):
    with pytest.raises(ValueError):
        to_knots(number)


@pytest.mark.parametrize("thing", [True, False, 3.0, "I", None], ids=repr)
def test_not_an_int(thing):
    with pytest.raises(TypeError):
        to_knots(thing)


REJECTED = {
    "empty": [""],
    "signs-and-blanks": ["i", " I", "I ", "I\n", "V", "\u2160"],
    "too-many": ["IIII", "QIIII", "QQIII", "QQQ", "XXXX", "HHGGG", "MMMM"],
    "order": ["IQ", "IG", "IY", "IM", "XM", "QX", "QQX", "XGY"],
    "eleven": ["IIX", "IXI", "IXX", "IXIX", "IXQ", "XGX", "GMG", "GMM", "GXGXG"],
}


@pytest.mark.parametrize("group", REJECTED)
def test_rejected(group):
    for text in REJECTED[group]:
        try:
            got = from_knots(text)
        except ValueError:
            continue
        pytest.fail(f"{text!r} was read as {got}")


@pytest.mark.parametrize("thing", [None, 5, b"IX", ["I"]], ids=repr)
def test_not_a_str(thing):
    with pytest.raises(TypeError):
        from_knots(thing)
