import pytest

from larder import Larder, LarderFull


class Clock:
    def __init__(self):
        self.now = 0
        self.reads = 0

    def __call__(self):
        self.reads += 1
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def drops():
    return []


@pytest.fixture
def larder(clock, drops):
    return Larder(10, 100, clock, on_drop=lambda *drop: drops.append(drop))


def test_basic_lru_by_weight(larder, drops):
    larder.put("a", 1, weight=4)
    larder.put("b", 2, weight=3)
    larder.put("c", 3, weight=3)
    assert larder.weight == 10 and drops == []
    assert larder.get("a") == 1
    larder.put("d", 4, weight=2)
    assert drops == [("b", 2, "capacity")]
    assert larder.keys() == ["c", "a", "d"]
    assert larder.weight == 9


def test_peek_and_in_are_not_uses(larder):
    for key in "abc":
        larder.put(key, key, weight=3)
    assert larder.peek("a") == "a" and "a" in larder
    assert larder.peek("zz", 7) == 7 and larder.get("zz", 8) == 8 and "zz" not in larder
    assert larder.keys() == ["a", "b", "c"]


def test_none_value_is_a_value(larder):
    larder.put("a", None)
    assert "a" in larder and larder.get("a", 5) is None and larder.peek("a", 5) is None


def test_deadline_is_exclusive_and_get_does_not_extend(larder, clock, drops):
    larder.put("a", 1, ttl=10)
    clock.now = 9
    assert larder.get("a") == 1
    clock.now = 10
    assert larder.get("a") is None
    assert drops == [("a", 1, "expired")]


@pytest.mark.parametrize(
    "look",
    [len, lambda l: l.keys(), lambda l: l.weight, lambda l: "x" in l, lambda l: l.peek("x"), lambda l: l.delete("x")],
    ids=["len", "keys", "weight", "in", "peek", "delete"],
)
def test_every_operation_expires(larder, clock, drops, look):
    larder.put("late", 1, ttl=9)
    larder.put("early", 2, ttl=5)
    larder.put("tie", 3, ttl=9)
    larder.get("late")
    clock.now = 9
    clock.reads = 0
    assert not look(larder)
    assert clock.reads == 1
    assert drops == [("early", 2, "expired"), ("late", 1, "expired"), ("tie", 3, "expired")]


def test_expired_entries_free_their_weight_before_victims(larder, clock, drops):
    larder.put("old", 1, weight=5, ttl=50)
    larder.put("dying", 2, weight=5, ttl=3)
    clock.now = 3
    larder.put("new", 3, weight=5)
    assert drops == [("dying", 2, "expired")]
    assert larder.keys() == ["old", "new"]


def test_replace_frees_old_weight_and_sets_deadline(larder, clock, drops):
    larder.put("a", 1, weight=6, ttl=5)
    larder.put("b", 2, weight=4)
    clock.now = 4
    larder.put("a", 3, weight=6, ttl=5)
    assert drops == [("a", 1, "replaced")]
    assert larder.keys() == ["b", "a"]
    clock.now = 8
    assert larder.peek("a") == 3


def test_replacement_never_evicts_itself(larder, drops):
    larder.put("a", 1, weight=3)
    larder.put("b", 2, weight=4)
    larder.put("c", 3, weight=3)
    larder.put("a", 9, weight=6)
    assert drops == [("a", 1, "replaced"), ("b", 2, "capacity")]
    assert larder.keys() == ["c", "a"] and larder.weight == 9


def test_full_is_atomic(larder, clock, drops):
    larder.put("a", 1, weight=2, ttl=20)
    larder.put("b", 2, weight=5)
    larder.pin("b")
    larder.put("c", 3, weight=1)
    with pytest.raises(LarderFull):
        larder.put("a", 9, weight=6, ttl=90)
    with pytest.raises(LarderFull):
        larder.put("huge", 9, weight=11)
    assert drops == []
    assert larder.keys() == ["a", "b", "c"] and larder.weight == 8 and larder.peek("a") == 1
    clock.now = 20
    assert "a" not in larder


def test_full_still_reports_expired(larder, clock, drops):
    larder.put("a", 1, ttl=1)
    clock.now = 1
    with pytest.raises(LarderFull):
        larder.put("b", 1, weight=11)
    assert drops == [("a", 1, "expired")]


def test_pinned_is_skipped_but_expires(larder, clock, drops):
    larder.put("a", 1, weight=4, ttl=30)
    larder.pin("a")
    larder.pin("a")
    larder.put("b", 2, weight=4)
    larder.put("c", 3, weight=4)
    assert drops == [("b", 2, "capacity")]
    larder.unpin("a")
    assert larder.keys() == ["a", "c"], "pin and unpin are not uses"
    larder.put("d", 4, weight=4)
    assert drops[1:] == [("a", 1, "capacity")]
    larder.pin("c")
    clock.now = 100
    assert larder.keys() == []


def test_pin_survives_replacement_but_not_expiry_or_delete(larder, clock):
    larder.put("a", 1, weight=5, ttl=10)
    larder.pin("a")
    larder.put("a", 2, weight=5, ttl=10)
    with pytest.raises(LarderFull):
        larder.put("b", 1, weight=6)
    clock.now = 10
    larder.put("a", 3, weight=5)
    larder.put("b", 1, weight=6)
    assert larder.keys() == ["b"]
    larder.pin("b")
    assert larder.delete("b") is True
    larder.put("b", 2, weight=5)
    larder.put("c", 3, weight=6)
    assert larder.keys() == ["c"]


def test_pin_missing(larder, clock, drops):
    larder.put("a", 1, ttl=2)
    clock.now = 2
    with pytest.raises(KeyError):
        larder.pin("a")
    assert drops == [("a", 1, "expired")]
    with pytest.raises(KeyError):
        larder.unpin("a")


def test_delete(larder, drops):
    larder.put("a", 1, weight=4)
    assert larder.delete("a") is True and larder.delete("a") is False
    assert drops == [("a", 1, "deleted")] and larder.weight == 0


@pytest.mark.parametrize("bad", [{"weight": 0}, {"weight": -1}, {"ttl": 0}, {"ttl": -5}], ids=str)
def test_bad_arguments(larder, clock, drops, bad):
    larder.put("a", 1, ttl=1)
    clock.now = 5
    with pytest.raises(ValueError):
        larder.put("a", 2, **bad)
    assert drops == []


def test_callback_sees_the_finished_change(clock):
    seen = []
    larder = Larder(4, 100, clock, on_drop=lambda k, v, r: seen.append((k, r, larder.keys(), larder.weight)))
    larder.put("a", 1, weight=2)
    larder.put("b", 2, weight=2)
    larder.put("c", 3, weight=4)
    assert seen == [("a", "capacity", ["c"], 4), ("b", "capacity", ["c"], 4)]


def test_reentrant_callback_is_queued(clock):
    log = []

    def on_drop(key, value, reason):
        log.append(("enter", key, reason))
        if key == "a":
            larder.put("a2", value, weight=2)
        log.append(("leave", key, reason))

    larder = Larder(4, 100, clock, on_drop)
    larder.put("a", 1, weight=2)
    larder.put("b", 2, weight=2)
    larder.put("c", 3, weight=4)
    assert [key for step, key, _ in log] == ["a", "a", "b", "b", "c", "c"]
    assert larder.keys() == ["a2"]


def test_raising_callback_keeps_the_rest(clock):
    seen = []

    def on_drop(key, value, reason):
        seen.append((key, reason))
        if key == "a":
            raise RuntimeError("boom")

    larder = Larder(4, 100, clock, on_drop)
    larder.put("a", 1, weight=2)
    larder.put("b", 2, weight=2)
    with pytest.raises(RuntimeError):
        larder.put("c", 3, weight=4)
    assert seen == [("a", "capacity")]
    assert larder.delete("c") is True
    assert seen == [("a", "capacity"), ("b", "capacity"), ("c", "deleted")]


def test_without_callback(clock):
    larder = Larder(1, 5, clock)
    larder.put("a", 1)
    larder.put("b", 2)
    clock.now = 5
    assert len(larder) == 0
