import dataclasses
import random

import pytest

from orchard.journal import decode, encode
from orchard.model import StockError
from orchard.stock import Stock
from orchard.views import stock_list


class Clock:
    def __init__(self, now=100):
        self.now = now

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def stock(clock):
    stock = Stock(clock)
    stock.receive("L1", "pear", 3, 300)
    stock.receive("L3", "pear", 5, 900)
    stock.receive("L2", "pear", 4, 300)
    stock.receive("K1", "plum", 2, 100)
    return stock


def pairs(picks):
    return [tuple(pick) for pick in picks]


def state(stock):
    return [(h.id, h.sku, h.expires, pairs(h.picks)) for h in stock.holds()], {
        sku: (stock.on_hand(sku), stock.free(sku)) for sku in ("pear", "plum", "fig")
    }


def refused(stock, error, operation, *args):
    from orchard.model import HoldError

    before, lines = state(stock), list(stock.journal)
    with pytest.raises(error) as info:
        getattr(stock, operation)(*args)
    assert isinstance(info.value, HoldError) == (error is HoldError)
    assert state(stock) == before, "a refused operation changed something"
    assert stock.journal == lines, "a refused operation wrote to the journal"


def test_without_holds_all_is_as_before(stock):
    assert pairs(stock.ship("pear", 8)) == [("L1", 3), ("L2", 4), ("L3", 1)]
    assert stock.journal[0] == '{"type":"receive","lot":"L1","sku":"pear","qty":3,"best_before":300}'
    assert stock.journal[-1] == '{"type":"ship","sku":"pear","picks":[["L1",3],["L2",4],["L3",1]]}'
    assert stock_list(stock) == ["pear: 4 on hand", "plum: 2 on hand"]
    assert Stock.replay(stock.journal, stock.clock).journal == stock.journal


def test_hold_takes_lots_in_shipping_order(stock):
    from orchard.model import Hold

    assert stock.hold("pear", 4, 60) == "H1"
    assert stock.holds() == [Hold(id="H1", sku="pear", expires=160, picks=(("L1", 3), ("L2", 1)))]
    assert (stock.on_hand("pear"), stock.free("pear"), stock.free("plum"), stock.free("fig")) == (12, 8, 2, 0)
    assert stock.journal[-1] == '{"type":"hold","id":"H1","sku":"pear","expires":160,"picks":[["L1",3],["L2",1]]}'
    with pytest.raises(dataclasses.FrozenInstanceError):
        stock.holds()[0].sku = "fig"
    hash(stock.holds()[0])


def test_ship_skips_held_units(stock):
    stock.hold("pear", 4, 60)
    assert pairs(stock.ship("pear", 5)) == [("L2", 3), ("L3", 2)]
    refused(stock, StockError, "ship", "pear", 4)
    assert pairs(stock.ship("pear", 3)) == [("L3", 3)]


def test_second_hold_takes_what_is_free(stock):
    stock.hold("pear", 4, 60)
    stock.hold("pear", 4, 60)
    assert pairs(stock.holds()[1].picks) == [("L2", 3), ("L3", 1)]
    refused(stock, StockError, "hold", "pear", 5, 60)
    refused(stock, StockError, "hold", "fig", 1, 60)


def test_expiry_frees_at_the_exact_tick_without_an_event(stock, clock):
    stock.hold("pear", 12, 60)
    lines = list(stock.journal)
    clock.now = 159
    assert stock.free("pear") == 0
    refused(stock, StockError, "ship", "pear", 1)
    clock.now = 160
    assert stock.free("pear") == 12 and stock.holds() == [] and stock.journal == lines
    assert pairs(stock.ship("pear", 1)) == [("L1", 1)]


def test_release(stock):
    from orchard.model import HoldError

    stock.hold("pear", 4, 60)
    stock.release("H1")
    assert stock.free("pear") == 12 and stock.holds() == []
    assert stock.journal[-1] == '{"type":"release","id":"H1"}'
    refused(stock, HoldError, "release", "H1")
    refused(stock, HoldError, "fulfil", "H1")


def test_fulfil_all(stock):
    from orchard.model import HoldError

    stock.hold("pear", 4, 60)
    assert pairs(stock.fulfil("H1")) == [("L1", 3), ("L2", 1)]
    assert stock.journal[-1] == '{"type":"fulfil","id":"H1","picks":[["L1",3],["L2",1]]}'
    assert (stock.on_hand("pear"), stock.free("pear"), stock.holds()) == (8, 8, [])
    refused(stock, HoldError, "fulfil", "H1", 1)


def test_fulfil_in_parts(stock):
    from orchard.model import HoldError

    stock.hold("pear", 6, 60)
    assert pairs(stock.fulfil("H1", 2)) == [("L1", 2)]
    assert pairs(stock.holds()[0].picks) == [("L1", 1), ("L2", 3)]
    refused(stock, StockError, "fulfil", "H1", 5)
    assert pairs(stock.fulfil("H1", 1)) == [("L1", 1)]
    assert pairs(stock.holds()[0].picks) == [("L2", 3)], "no zeros in picks"
    assert pairs(stock.ship("pear", 1)) == [("L2", 1)]
    assert pairs(stock.fulfil("H1", 3)) == [("L2", 3)]
    refused(stock, HoldError, "release", "H1")
    assert stock.on_hand("pear") == 5


def test_fulfil_uses_the_held_lots_even_if_earlier_ones_are_free(stock):
    stock.hold("pear", 3, 60)
    stock.hold("pear", 2, 60)
    stock.release("H1")
    assert pairs(stock.fulfil("H2")) == [("L2", 2)]


def test_expired_hold_is_no_hold(stock, clock):
    from orchard.model import HoldError

    stock.hold("pear", 4, 60)
    clock.now = 160
    for operation in ("release", "fulfil"):
        refused(stock, HoldError, operation, "H1")
        refused(stock, HoldError, operation, "H77")
    refused(stock, HoldError, "fulfil", "H1", 1)


@pytest.mark.parametrize("bad", [0, -1, 1.0, True, "1", None], ids=str)
def test_bad_numbers(stock, bad):
    refused(stock, ValueError, "hold", "pear", bad, 5)
    refused(stock, ValueError, "hold", "pear", 1, bad)
    stock.hold("pear", 4, 60)
    if bad is not None:
        refused(stock, ValueError, "fulfil", "H1", bad)


def test_order_of_holds(stock, clock):
    for _ in range(10):
        stock.hold("pear", 1, 50)
    stock.hold("plum", 1, 20)
    clock.now = 110
    stock.hold("plum", 1, 40)
    assert [hold.id for hold in stock.holds()] == ["H11"] + [f"H{n}" for n in range(1, 11)] + ["H12"]


def test_refused_hold_uses_up_no_number(stock):
    refused(stock, StockError, "hold", "pear", 99, 5)
    assert stock.hold("pear", 1, 5) == "H1"


def test_views(stock, clock):
    from orchard.views import hold_list

    stock.hold("pear", 4, 60)
    stock.hold("plum", 2, 30)
    assert stock_list(stock) == ["pear: 12 on hand, 4 held", "plum: 2 on hand, 2 held"]
    assert hold_list(stock) == ["H2 until 130: 2 plum (2 of K1)", "H1 until 160: 4 pear (3 of L1, 1 of L2)"]
    stock.fulfil("H1", 3)
    clock.now = 130
    assert stock_list(stock) == ["pear: 9 on hand, 1 held", "plum: 2 on hand"]
    assert hold_list(stock) == ["H1 until 160: 1 pear (1 of L2)"]


def test_journal_forms():
    line = '{"type":"hold","id":"H1","sku":"pear","expires":160,"picks":[["L1",3]]}'
    assert encode(decode(line)) == line
    shuffled = '{"picks":[["L1",3]],"id":"H1","type":"fulfil"}'
    assert encode(decode(shuffled)) == '{"type":"fulfil","id":"H1","picks":[["L1",3]]}'
    for bad in ('{"type":"release"}', '{"type":"hold","id":"H1"}', '{"type":"fulfil","id":"H1","picks":[],"sku":"pear"}'):
        with pytest.raises(ValueError):
            decode(bad)


def test_replay_long_after(stock, clock):
    stock.hold("pear", 12, 50)
    stock.fulfil("H1", 2)
    clock.now = 150
    stock.ship("pear", 4)
    stock.hold("pear", 5, 500)
    clock.now = 200
    stock.release("H2")
    stock.hold("pear", 1, 30)
    clock.now = 1000
    lines = tuple(stock.journal)
    twin = Stock.replay(lines, clock)
    assert state(twin) == state(stock)
    assert twin.hold("pear", 1, 5) == "H4" == stock.hold("pear", 1, 5)
    assert twin.journal == stock.journal
    assert len(lines) == len(stock.journal) - 1


def test_numbers_go_on_after_replay_of_ended_holds(stock, clock):
    for _ in range(3):
        stock.release(stock.hold("pear", 1, 5))
    assert Stock.replay(stock.journal, clock).hold("pear", 1, 5) == "H4"


def test_replay_does_not_share_state(stock, clock):
    stock.hold("pear", 4, 60)
    lines = list(stock.journal)
    twin = Stock.replay(lines, clock)
    twin.fulfil("H1", 1)
    twin.ship("plum", 2)
    assert lines == stock.journal and twin.journal[: len(lines)] == lines
    assert stock.on_hand("pear") == 12 and stock.holds()[0].picks == (("L1", 3), ("L2", 1))


def test_random_runs_replay_to_the_same_state():
    pick = random.Random(11)
    for _ in range(15):
        clock = Clock()
        stock = Stock(clock)
        for n in range(6):
            stock.receive(f"L{n}", pick.choice(["pear", "plum"]), pick.randint(1, 9), pick.randint(1, 4))
        for _ in range(40):
            clock.now += pick.randint(0, 4)
            name = f"H{pick.randint(1, 12)}"
            sku = pick.choice(["pear", "plum"])
            try:
                match pick.randrange(5):
                    case 0 | 1:
                        stock.hold(sku, pick.randint(1, 6), pick.randint(1, 25))
                    case 2:
                        stock.release(name)
                    case 3:
                        stock.fulfil(name, pick.choice([None, 1, 2]))
                    case 4:
                        stock.ship(sku, pick.randint(1, 3))
            except StockError:
                pass
            assert 0 <= stock.free(sku) <= stock.on_hand(sku)
        twin = Stock.replay(list(stock.journal), clock)
        assert state(twin) == state(stock)
        clock.now += 10
        assert state(twin) == state(stock)
