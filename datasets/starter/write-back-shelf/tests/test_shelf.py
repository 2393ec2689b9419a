import pytest

from shelf import Shelf


class Store:
    def __init__(self, **data):
        self.data = data
        self.loads = []
        self.calls = []
        self.fail_at = None

    def load(self, key):
        self.loads.append(key)
        return self.data[key]

    def apply(self, changes):
        assert isinstance(changes, list) and changes
        if self.fail_at == len(self.calls):
            self.fail_at = None
            raise OSError("store is down")
        self.calls.append(changes)
        for verb, key, value in changes:
            if verb == "set":
                self.data[key] = value
            else:
                assert verb == "del" and value is None
                self.data.pop(key, None)


def sets(**items):
    return [("set", key, value) for key, value in items.items()]


def test_get_loads_once():
    store = Store(a=None)
    shelf = Shelf(store, 2)
    assert shelf.get("a") is None and shelf.get("a") is None
    assert store.loads == ["a"] and shelf.dirty == [] and len(shelf) == 1


def test_missing_is_not_held():
    store = Store(b=1)
    shelf = Shelf(store, 1)
    shelf.put("x", 1)
    for _ in range(2):
        with pytest.raises(KeyError):
            shelf.get("a")
    assert store.loads == ["a", "a"]
    assert shelf.dirty == ["x"] and store.calls == [], "nothing may be evicted for a key that does not exist"


def test_put_is_lazy_and_flush_writes_in_dirty_order():
    store = Store()
    shelf = Shelf(store, 9, batch=2)
    for n, key in enumerate("cabde"):
        shelf.put(key, n)
    shelf.put("c", 9)
    assert store.calls == [] and store.loads == []
    assert shelf.dirty == list("cabde")
    shelf.flush()
    assert store.calls == [sets(c=9, a=1), sets(b=2, d=3), sets(e=4)]
    assert shelf.dirty == [] and len(shelf) == 5
    shelf.flush()
    assert len(store.calls) == 3


def test_equal_put_on_clean_stays_clean_but_is_a_use():
    store = Store(a=1, b=2, c=3)
    shelf = Shelf(store, 2)
    shelf.get("a")
    shelf.get("b")
    shelf.put("a", 1.0)
    assert shelf.dirty == []
    shelf.get("c")
    shelf.get("a")
    assert store.loads == ["a", "b", "c"], "b was the least recently used"


def test_equal_put_on_dirty_keeps_it_dirty():
    store = Store(a=1)
    shelf = Shelf(store, 2)
    shelf.get("a")
    shelf.put("a", 2)
    shelf.put("a", 2)
    assert shelf.dirty == ["a"]
    shelf.put("a", 1)
    assert shelf.dirty == ["a"], "the shelf does not remember what the store has"


def test_delete_held_value_and_again():
    store = Store(a=1)
    shelf = Shelf(store, 3)
    shelf.get("a")
    shelf.delete("a")
    assert len(shelf) == 1 and shelf.dirty == ["a"]
    with pytest.raises(KeyError):
        shelf.get("a")
    with pytest.raises(KeyError):
        shelf.delete("a")
    assert store.loads == ["a"]
    shelf.flush()
    assert store.calls == [[("del", "a", None)]] and len(shelf) == 0
    with pytest.raises(KeyError):
        shelf.get("a")
    assert store.loads == ["a", "a"]


def test_delete_unheld_asks_the_store():
    store = Store(a=1)
    shelf = Shelf(store, 3)
    with pytest.raises(KeyError):
        shelf.delete("zz")
    shelf.delete("a")
    assert store.loads == ["zz", "a"] and shelf.dirty == ["a"] and store.data == {"a": 1}


def test_value_tombstone_value_keeps_dirty_place():
    store = Store()
    shelf = Shelf(store, 3)
    shelf.put("a", 1)
    shelf.put("b", 1)
    shelf.delete("a")
    assert shelf.dirty == ["a", "b"]
    shelf.put("a", 5)
    assert shelf.dirty == ["a", "b"] and shelf.get("a") == 5
    shelf.flush()
    assert store.calls == [sets(a=5, b=1)]


def test_clean_eviction_is_silent():
    store = Store(a=1, b=2, c=3)
    shelf = Shelf(store, 2)
    for key in "abac":
        shelf.get(key)
    assert store.calls == [] and len(shelf) == 2
    shelf.get("a")
    assert store.loads == ["a", "b", "c"]
    shelf.get("b")
    assert store.loads == ["a", "b", "c", "b"]


def test_clean_victim_leaves_dirty_ones_alone():
    store = Store(a=1)
    shelf = Shelf(store, 2)
    shelf.get("a")
    shelf.put("b", 2)
    shelf.put("c", 3)
    assert store.calls == [] and shelf.dirty == ["b", "c"]


def test_dirty_eviction_takes_companions_victim_first():
    store = Store()
    shelf = Shelf(store, 4, batch=3)
    for n, key in enumerate("abcd"):
        shelf.put(key, n)
    shelf.get("a")
    shelf.get("b")
    shelf.put("e", 9)
    assert store.calls == [sets(c=2, a=0, b=1)]
    assert shelf.dirty == ["d", "e"] and len(shelf) == 4
    assert shelf.get("a") == 0 and store.loads == []
    assert shelf.get("c") == 2 and store.loads == ["c"]


def test_companions_keep_their_recency():
    store = Store()
    shelf = Shelf(store, 3, batch=3)
    for key in "abc":
        shelf.put(key, key)
    shelf.put("d", "d")
    shelf.put("e", "e")
    assert store.calls == [sets(a="a", b="b", c="c")]
    shelf.get("c")
    assert store.loads == []
    shelf.get("b")
    assert store.loads == ["b"], "b was the least recently used after a"


def test_batch_of_one():
    store = Store()
    shelf = Shelf(store, 2, batch=1)
    for key in "abc":
        shelf.put(key, 0)
    assert store.calls == [sets(a=0)] and shelf.dirty == ["b", "c"]


def test_tombstone_victim_and_companion_tombstones_are_dropped():
    store = Store(a=1, b=2)
    shelf = Shelf(store, 3, batch=3)
    shelf.delete("a")
    shelf.delete("b")
    shelf.put("c", 3)
    shelf.put("d", 4)
    assert store.calls == [[("del", "a", None), ("del", "b", None), ("set", "c", 3)]]
    assert len(shelf) == 2 and shelf.dirty == ["d"] and store.data == {"c": 3}


def test_delete_needs_room_only_when_it_exists():
    store = Store(b=2)
    shelf = Shelf(store, 1)
    shelf.put("a", 1)
    with pytest.raises(KeyError):
        shelf.delete("zz")
    assert store.calls == []
    shelf.delete("b")
    assert store.calls == [sets(a=1)] and shelf.dirty == ["b"] and len(shelf) == 1


def test_changing_a_held_entry_needs_no_room():
    store = Store()
    shelf = Shelf(store, 2)
    shelf.put("a", 1)
    shelf.put("b", 2)
    shelf.put("a", 3)
    shelf.delete("b")
    shelf.put("b", 4)
    assert store.calls == [] and len(shelf) == 2


@pytest.mark.parametrize("operation", ["put", "get", "delete"])
def test_failed_eviction_has_no_effect(operation):
    store = Store(x=7)
    shelf = Shelf(store, 3, batch=2)
    shelf.put("a", 1)
    shelf.put("b", 2)
    shelf.put("c", 3)
    shelf.get("a")
    store.fail_at = 0
    with pytest.raises(OSError):
        shelf.put("x", 8) if operation == "put" else getattr(shelf, operation)("x")
    assert shelf.dirty == ["a", "b", "c"] and len(shelf) == 3
    before = len(store.loads)
    shelf.put("y", 9)
    assert store.calls == [sets(b=2, a=1)], "victim and order must be as before the failure"
    assert shelf.get("x") == 7 and len(store.loads) == before + 1


def test_failed_flush_keeps_earlier_batches():
    store = Store()
    shelf = Shelf(store, 9, batch=2)
    for n, key in enumerate("abcde"):
        shelf.put(key, n)
    shelf.delete("b")
    store.fail_at = 1
    with pytest.raises(OSError):
        shelf.flush()
    assert shelf.dirty == ["c", "d", "e"] and len(shelf) == 4
    assert store.calls == [[("set", "a", 0), ("del", "b", None)]]
    shelf.put("a", 50)
    shelf.flush()
    assert store.calls[1:] == [sets(c=2, d=3), sets(e=4, a=50)]


def test_flush_is_not_a_use():
    store = Store()
    shelf = Shelf(store, 2)
    shelf.put("b", 1)
    shelf.put("a", 1)
    shelf.get("b")
    shelf.flush()
    shelf.put("c", 1)
    shelf.get("b")
    assert store.loads == []


@pytest.mark.parametrize("args", [(0, 1), (1, 0), (-1, 3)], ids=str)
def test_bad_arguments(args):
    with pytest.raises(ValueError):
        Shelf(Store(), *args)
