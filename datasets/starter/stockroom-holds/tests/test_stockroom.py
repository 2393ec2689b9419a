import pytest

from stockroom import HoldBook, HoldClosed, Ledger, Shortage, summary


def book_with(**stock):
    ledger = Ledger()
    for sku, qty in stock.items():
        ledger.receive(sku, qty)
    return HoldBook(ledger)


def test_readme_example():
    book = book_with(lamp=5)
    hold = book.place([("lamp", 2), ("lamp", 1)], now=100, ttl=30)
    assert book.available("lamp", now=101) == 2
    book.fulfil(hold, now=110)
    assert book.ledger.on_hand("lamp") == 2 and book.available("lamp", 110) == 2


def test_ship_more_than_on_hand():
    ledger = Ledger()
    ledger.receive("lamp", 3)
    with pytest.raises(Shortage) as caught:
        ledger.ship("lamp", 5)
    assert caught.value.missing == {"lamp": 2}
    assert ledger.on_hand("lamp") == 3 and ledger.history == [("lamp", 3)]
    ledger.ship("lamp", 3)
    assert ledger.on_hand("lamp") == 0 and ledger.history == [("lamp", 3), ("lamp", -3)]


def test_lines_of_one_sku_count_together():
    book = book_with(lamp=5, rug=1)
    with pytest.raises(Shortage) as caught:
        book.place([("lamp", 3), ("rug", 1), ("lamp", 4)], now=0, ttl=10)
    assert caught.value.missing == {"lamp": 2}
    assert (book.available("lamp", 0), book.available("rug", 0)) == (5, 1), "all or nothing"


def test_all_missing_skus_are_named():
    book = book_with(lamp=5, rug=1, vase=2)
    with pytest.raises(Shortage) as caught:
        book.place([("rug", 3), ("vase", 2), ("oven", 1), ("lamp", 6)], now=0, ttl=10)
    assert caught.value.missing == {"rug": 2, "oven": 1, "lamp": 1}


@pytest.mark.parametrize("now, available", [(29.9, 0), (30, 4), (31, 4)])
def test_expiry(now, available):
    book = book_with(lamp=4)
    book.place([("lamp", 4)], now=20, ttl=10)
    assert book.available("lamp", now) == available


def test_fulfil_at_the_end_of_time_without_any_call_between():
    book = book_with(lamp=4)
    hold = book.place([("lamp", 4)], now=20, ttl=10)
    with pytest.raises(HoldClosed):
        book.fulfil(hold, now=30)
    assert book.ledger.on_hand("lamp") == 4 and book.available("lamp", 30) == 4


def test_fulfil_just_in_time():
    book = book_with(lamp=4)
    hold = book.place([("lamp", 4)], now=20, ttl=10)
    book.fulfil(hold, now=29)
    assert book.ledger.on_hand("lamp") == 0 and book.available("lamp", 40) == 0


def test_release_after_expiry_with_a_look_between():
    book = book_with(lamp=4)
    hold = book.place([("lamp", 3)], now=0, ttl=10)
    assert book.available("lamp", 50) == 4
    assert book.release(hold, now=51) is False
    assert book.available("lamp", 52) == 4, "given back twice"
    with pytest.raises(HoldClosed):
        book.fulfil(hold, now=53)


def test_release_after_expiry_without_a_look_between():
    book = book_with(lamp=4)
    hold = book.place([("lamp", 3)], now=0, ttl=10)
    assert book.release(hold, now=10) is False
    assert book.available("lamp", 11) == 4


def test_release_twice_and_after_fulfil():
    book = book_with(lamp=4)
    first = book.place([("lamp", 1)], now=0, ttl=10)
    second = book.place([("lamp", 1)], now=0, ttl=10)
    assert book.release(first, now=1) is True and book.release(first, now=1) is False
    book.fulfil(second, now=2)
    assert book.release(second, now=3) is False
    with pytest.raises(HoldClosed):
        book.fulfil(first, now=3)
    assert book.available("lamp", 4) == 3 and book.available("lamp", 20) == 3


def test_fulfil_is_all_or_nothing_and_keeps_the_hold():
    book = book_with(lamp=4, rug=3, vase=3)
    hold = book.place([("lamp", 2), ("rug", 1), ("vase", 3), ("rug", 2)], now=0, ttl=10)
    book.ledger.ship("rug", 1)
    book.ledger.ship("vase", 3)
    with pytest.raises(Shortage) as caught:
        book.fulfil(hold, now=1)
    assert caught.value.missing == {"rug": 1, "vase": 3}
    assert book.ledger.on_hand("lamp") == 4 and book.ledger.on_hand("rug") == 2
    assert book.available("lamp", 2) == 2, "still held"
    assert book.available("vase", 2) == -3, "may be negative"
    book.ledger.receive("rug", 1)
    book.ledger.receive("vase", 3)
    book.fulfil(hold, now=3)
    assert summary(book, 3) == {
        "lamp": {"on_hand": 2, "held": 0, "available": 2},
        "rug": {"on_hand": 0, "held": 0, "available": 0},
        "vase": {"on_hand": 0, "held": 0, "available": 0},
    }


def test_changing_the_lines_afterwards_changes_nothing():
    book = book_with(lamp=9)
    lines = [("lamp", 2)]
    hold = book.place(lines, now=0, ttl=10)
    lines.append(("lamp", 5))
    assert book.release(hold, now=1) is True
    assert book.available("lamp", 1) == 9


@pytest.mark.parametrize("lines, ttl", [([], 5), ([("lamp", 0)], 5), ([("lamp", 1), ("lamp", -1)], 5), ([("lamp", 1)], 0), ([("lamp", 1)], -2)])
def test_invalid_holds(lines, ttl):
    book = book_with(lamp=3)
    with pytest.raises(ValueError):
        book.place(lines, now=0, ttl=ttl)


@pytest.mark.parametrize("number", [-1, 1, 99])
def test_unknown_hold(number):
    book = book_with(lamp=3)
    book.place([("lamp", 1)], now=0, ttl=5)
    with pytest.raises(KeyError):
        book.release(number, now=1)
    with pytest.raises(KeyError):
        book.fulfil(number, now=1)


def test_summary_is_sorted_and_independent():
    book = book_with(vase=2, lamp=3)
    book.place([("vase", 2)], now=0, ttl=5)
    first = summary(book, 1)
    assert list(first) == ["lamp", "vase"] and first["vase"] == {"on_hand": 2, "held": 2, "available": 0}
    first["vase"]["on_hand"] = 77
    assert summary(book, 5)["vase"] == {"on_hand": 2, "held": 0, "available": 2}


def test_long_run_never_promises_more_than_there_is():
    book = book_with(lamp=10)
    holds = []
    for now in range(200):
        try:
            holds.append(book.place([("lamp", 1 + now % 3), ("lamp", 1)], now, ttl=1 + now % 7))
        except Shortage:
            pass
        if holds and now % 4 == 0:
            book.release(holds[now % len(holds)], now)
        assert 0 <= book.available("lamp", now) <= 10, f"at {now}"
    assert book.available("lamp", 300) == 10
