import gc
import threading
import time
import weakref

import pytest

from flight import Flight, ReentrantLoad

LIMIT = 2.0


class Clock:
    now = 0

    def __call__(self):
        return self.now


class Gone(Exception):
    pass


class Vanished(Gone):
    pass


class Call:
    """A get() in a daemon thread."""

    def __init__(self, flight, key):
        self.value = self.error = None

        def run():
            try:
                self.value = flight.get(key)
            except BaseException as error:
                self.error = error

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    def join(self):
        self.thread.join(LIMIT)
        assert not self.thread.is_alive(), "get() did not come back"
        return self


class Gate:
    """A loader whose n-th call announces itself and then waits until it is opened with an outcome."""

    def __init__(self, size=6):
        self.entered = [threading.Event() for _ in range(size)]
        self.opened = [threading.Event() for _ in range(size)]
        self.outcomes = [None] * size
        self.calls = []
        self.lock = threading.Lock()

    def __call__(self, key):
        with self.lock:
            n = len(self.calls)
            self.calls.append(key)
        self.entered[n].set()
        assert self.opened[n].wait(LIMIT * 2), "gate never opened"
        if isinstance(self.outcomes[n], BaseException):
            raise self.outcomes[n]
        return self.outcomes[n]

    def await_call(self, n):
        assert self.entered[n].wait(LIMIT), f"load call number {n} never came"

    def open(self, n, outcome):
        self.outcomes[n] = outcome
        self.opened[n].set()


def await_waiters(flight, key, count):
    stop = time.monotonic() + LIMIT
    while flight.waiters(key) != count:
        assert time.monotonic() < stop, f"waiters({key!r}) is {flight.waiters(key)}, never got to {count}"
        time.sleep(0.001)


@pytest.fixture
def clock():
    return Clock()


def test_value_is_fresh_until_ttl(clock):
    calls = []
    flight = Flight(lambda key: calls.append(key) or len(calls), clock=clock, ttl=10)
    assert [flight.get("a"), flight.get("b"), flight.get("a")] == [1, 2, 1]
    clock.now = 9
    assert flight.get("a") == 1
    clock.now = 10
    assert flight.get("a") == 3


def test_ttl_counts_from_the_end_of_the_load(clock):
    calls = []

    def load(key):
        calls.append(key)
        clock.now += 50
        return len(calls)

    flight = Flight(load, clock=clock, ttl=10)
    assert flight.get("a") == 1
    clock.now = 59
    assert flight.get("a") == 1
    clock.now = 60
    assert flight.get("a") == 2


def test_none_is_remembered(clock):
    calls = []
    flight = Flight(lambda key: calls.append(key), clock=clock, ttl=10)
    assert flight.get("a") is None and flight.get("a") is None
    assert calls == ["a"]


def test_remembered_errors(clock):
    calls = []

    def load(key):
        calls.append(key)
        raise Vanished(key)

    flight = Flight(load, clock=clock, ttl=100, error_ttl=5, remember=(Gone,))
    caught = []
    for now in (0, 4, 5):
        clock.now = now
        with pytest.raises(Vanished) as info:
            flight.get("a")
        caught.append(info.value)
    assert caught[0] is caught[1] and caught[1] is not caught[2]
    assert calls == ["a", "a"]


def test_other_errors_are_not_remembered(clock):
    calls = []

    def load(key):
        calls.append(key)
        if len(calls) == 1:
            raise LookupError(key)
        return "fine"

    flight = Flight(load, clock=clock, ttl=100, error_ttl=100, remember=(Gone,))
    with pytest.raises(LookupError):
        flight.get("a")
    assert flight.get("a") == "fine"


def test_a_returned_exception_object_is_a_value(clock):
    thing = Gone("just a value")
    flight = Flight(lambda key: thing, clock=clock, ttl=5, error_ttl=5, remember=(Gone,))
    assert flight.get("a") is thing and flight.get("a") is thing


@pytest.mark.parametrize("ttl", [0, 10])
def test_waiters_share_one_load(clock, ttl):
    gate = Gate()
    flight = Flight(gate, clock=clock, ttl=ttl)
    first = Call(flight, "a")
    gate.await_call(0)
    assert flight.waiters("a") == 0
    others = [Call(flight, "a") for _ in range(4)]
    await_waiters(flight, "a", 4)
    gate.open(0, "v")
    assert [call.join().value for call in [first, *others]] == ["v"] * 5
    assert gate.calls == ["a"] and flight.waiters("a") == 0


def test_ttl_zero_is_never_fresh(clock):
    calls = []
    flight = Flight(lambda key: calls.append(key), clock=clock, ttl=0)
    flight.get("a")
    flight.get("a")
    assert len(calls) == 2


@pytest.mark.parametrize("error_ttl", [0, 10])
def test_waiters_share_a_remembered_error(clock, error_ttl):
    gate = Gate()
    flight = Flight(gate, clock=clock, ttl=10, error_ttl=error_ttl, remember=(Gone,))
    first = Call(flight, "a")
    gate.await_call(0)
    others = [Call(flight, "a") for _ in range(3)]
    await_waiters(flight, "a", 3)
    boom = Vanished("x")
    gate.open(0, boom)
    assert all(call.join().error is boom for call in [first, *others])
    assert gate.calls == ["a"]


@pytest.mark.parametrize("boom", [LookupError("x"), KeyboardInterrupt()], ids=["plain", "base"])
def test_other_error_goes_to_leader_only_and_one_waiter_takes_over(clock, boom):
    gate = Gate()
    flight = Flight(gate, clock=clock, ttl=10, error_ttl=10, remember=(Gone,))
    first = Call(flight, "a")
    gate.await_call(0)
    others = [Call(flight, "a") for _ in range(3)]
    await_waiters(flight, "a", 3)
    gate.open(0, boom)
    assert first.join().error is boom
    gate.await_call(1)
    await_waiters(flight, "a", 2)
    gate.open(1, "second")
    assert [call.join().value for call in others] == ["second"] * 3
    assert len(gate.calls) == 2


def test_keys_do_not_block_each_other(clock):
    gate = Gate()
    flight = Flight(gate, clock=clock, ttl=10)
    slow = Call(flight, "a")
    gate.await_call(0)
    quick = Call(flight, "b")
    gate.await_call(1)
    gate.open(1, "b!")
    assert quick.join().value == "b!"
    assert Call(flight, "b").join().value == "b!"
    gate.open(0, "a!")
    assert slow.join().value == "a!"


def test_forget_drops_outcome(clock):
    calls = []
    flight = Flight(lambda key: calls.append(key) or len(calls), clock=clock, ttl=10)
    flight.get("a")
    flight.forget("a")
    flight.forget("never seen")
    assert flight.get("a") == 2


def test_forget_detaches_the_flight(clock):
    gate = Gate()
    flight = Flight(gate, clock=clock, ttl=10)
    old = [Call(flight, "a")]
    gate.await_call(0)
    old.append(Call(flight, "a"))
    await_waiters(flight, "a", 1)
    flight.forget("a")
    assert flight.waiters("a") == 0
    new = [Call(flight, "a")]
    gate.await_call(1)
    new.append(Call(flight, "a"))
    await_waiters(flight, "a", 1)
    gate.open(0, "old")
    assert [call.join().value for call in old] == ["old", "old"]
    late = Call(flight, "a")
    await_waiters(flight, "a", 2)
    gate.open(1, "new")
    assert [call.join().value for call in [*new, late]] == ["new"] * 3
    assert flight.get("a") == "new" and len(gate.calls) == 2


def test_detached_load_that_ends_last_does_not_overwrite(clock):
    gate = Gate()
    flight = Flight(gate, clock=clock, ttl=10, error_ttl=10, remember=(Gone,))
    old = Call(flight, "a")
    gate.await_call(0)
    flight.forget("a")
    new = Call(flight, "a")
    gate.await_call(1)
    gate.open(1, "new")
    assert new.join().value == "new"
    gate.open(0, Gone("old"))
    assert isinstance(old.join().error, Gone)
    assert flight.get("a") == "new"


def test_detached_load_is_not_remembered(clock):
    gate = Gate()
    flight = Flight(gate, clock=clock, ttl=10)
    old = Call(flight, "a")
    gate.await_call(0)
    flight.forget("a")
    gate.open(0, "old")
    assert old.join().value == "old"
    gate.open(1, "new")
    assert Call(flight, "a").join().value == "new"


def test_waiters_of_a_failed_detached_load_join_the_newer_flight(clock):
    gate = Gate()
    flight = Flight(gate, clock=clock, ttl=10)
    leader = Call(flight, "a")
    gate.await_call(0)
    waiter = Call(flight, "a")
    await_waiters(flight, "a", 1)
    flight.forget("a")
    newer = Call(flight, "a")
    gate.await_call(1)
    gate.open(0, OSError("x"))
    assert isinstance(leader.join().error, OSError)
    await_waiters(flight, "a", 1)
    gate.open(1, "new")
    assert waiter.join().value == "new" and newer.join().value == "new"
    assert len(gate.calls) == 2


def test_reentrance_direct_and_indirect(clock):
    chain = {"a": "b", "b": "c", "c": "a", "x": "x"}
    calls = []

    def load(key):
        calls.append(key)
        return flight.get(chain[key])

    flight = Flight(load, clock=clock, ttl=10)
    for key in ("x", "a"):
        call = Call(flight, key).join()
        assert isinstance(call.error, ReentrantLoad)
    assert calls == ["x", "a", "b", "c"]


def test_reentrance_after_forget(clock):
    calls = []

    def load(key):
        calls.append(key)
        flight.forget(key)
        if len(calls) > 5:
            return "runaway"
        return flight.get(key)

    flight = Flight(load, clock=clock, ttl=10)
    assert isinstance(Call(flight, "a").join().error, ReentrantLoad)
    assert calls == ["a"]


def test_fresh_outcome_wins_over_reentrance(clock):
    calls = []

    def load(key):
        calls.append(key)
        if len(calls) == 2:
            return "inner"
        flight.forget(key)
        return Call(flight, key).join().value + flight.get(key)

    flight = Flight(load, clock=clock, ttl=10)
    assert Call(flight, "a").join().value == "innerinner"
    assert flight.get("a") == "inner"


def test_nested_other_keys_and_recovery_from_reentrance(clock):
    def load(key):
        if key == 0:
            return 0
        if key == "loop":
            try:
                return flight.get("loop")
            except ReentrantLoad:
                return "caught"
        return flight.get(key - 1) + key

    flight = Flight(load, clock=clock, ttl=10)
    assert Call(flight, 4).join().value == 10
    assert Call(flight, "loop").join().value == "caught"


def test_same_thread_may_load_again_after_failure(clock):
    outcomes = iter([OSError("x"), "fine"])

    def load(key):
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    flight = Flight(load, clock=clock, ttl=10)
    with pytest.raises(OSError):
        flight.get("a")
    assert flight.get("a") == "fine"


def test_nothing_is_kept_for_flights_that_are_over(clock):
    class Key:
        pass

    def load(key):
        if isinstance(key, Key):
            return "value"
        raise OSError

    flight = Flight(load, clock=clock, ttl=0)
    key = Key()
    flight.get(key)
    ghost = weakref.ref(key)
    del key
    gc.collect()
    assert ghost() is None, "the key of a finished flight with ttl 0 is still referenced"
