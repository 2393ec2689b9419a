import pytest

from tipjar import payout


@pytest.mark.parametrize(
    "total, shifts, coin, paid, left",
    [
        pytest.param(1000, [("Ada", 60), ("Bo", 60)], 5, {"Ada": 500, "Bo": 500}, 0, id="even"),
        pytest.param(1003, [("Ada", 60), ("Bo", 60)], 5, {"Ada": 500, "Bo": 500}, 3, id="small-change-stays"),
        pytest.param(15, [("Ada", 60), ("Bo", 60)], 5, {"Ada": 10, "Bo": 5}, 0, id="full-tie-goes-to-first-listed"),
        pytest.param(25, [("Cy", 6), ("Bo", 3), ("Ada", 1)], 5, {"Cy": 15, "Bo": 5, "Ada": 5}, 0, id="tie-goes-to-fewer-minutes"),
        pytest.param(10, [("Big", 25), ("Mid", 4), ("Small", 1)], 1, {"Big": 8, "Mid": 1, "Small": 1}, 0, id="tie-in-thirds-is-exact"),
        pytest.param(100, [("Ada", 1), ("Bo", 2)], 10, {"Ada": 30, "Bo": 70}, 0, id="largest-fraction-first"),
        pytest.param(4, [("Ada", 10)], 5, {"Ada": 0}, 4, id="less-than-one-coin"),
        pytest.param(0, [("Ada", 10), ("Bo", 0)], 5, {"Ada": 0, "Bo": 0}, 0, id="empty-jar"),
        pytest.param(35, [("Idle", 0), ("Ada", 7), ("Bo", 7), ("Cy", 7)], 5, {"Idle": 0, "Ada": 15, "Bo": 10, "Cy": 10}, 0, id="idle-listed-with-nothing"),
        pytest.param(123, [("Ada", 0), ("Bo", 0)], 5, {"Ada": 0, "Bo": 0}, 123, id="nobody-worked"),
        pytest.param(123, [], 5, {}, 123, id="no-shifts"),
        pytest.param(
            5, [("Ada", 30), ("Bo", 50), ("Ada", 30)], 5, {"Ada": 5, "Bo": 0}, 0, id="repeated-name-added-up-first"
        ),
        pytest.param(
            3, [("Ada", 1), ("Bo", 1), ("Ada", 1), ("Bo", 1)], 1, {"Ada": 2, "Bo": 1}, 0, id="repeated-names-tie"
        ),
    ],
)
def test_payout(total, shifts, coin, paid, left):
    got = payout(total, shifts, coin)
    assert got == (paid, left)
    assert sum(got[0].values()) + got[1] == total


def test_coin_is_five_cents_by_default():
    assert payout(12, [("Ada", 1)]) == ({"Ada": 10}, 2)


def test_huge_numbers_are_exact():
    total = 10**30 + 1
    got, left = payout(total, [("Ada", 1), ("Bo", 2)], 1)
    assert got == {"Ada": (10**30 + 2) // 3, "Bo": 2 * 10**30 // 3 + 1} and left == 0, (
        "both ideal numbers end in two thirds / one third; only integers get this right"
    )


def test_order_of_first_appearance_and_input_untouched():
    shifts = [("Zoe", 10), ("Ada", 90), ("Zoe", 5), ("Mo", 40)]
    before = list(shifts)
    paid, _ = payout(997, shifts)
    assert list(paid) == ["Zoe", "Ada", "Mo"]
    assert shifts == before


@pytest.mark.parametrize(
    "total, shifts, coin",
    [
        pytest.param(-1, [("Ada", 1)], 5, id="negative-total"),
        pytest.param(10, [("Ada", 1)], 0, id="coin-zero"),
        pytest.param(10, [], -5, id="coin-negative-without-shifts"),
        pytest.param(10, [("Ada", -1)], 5, id="negative-minutes"),
        pytest.param(10, [("Ada", 100), ("Ada", -1)], 5, id="negative-entry-hidden-by-sum"),
    ],
)
def test_invalid(total, shifts, coin):
    with pytest.raises(ValueError):
        payout(total, shifts, coin)
