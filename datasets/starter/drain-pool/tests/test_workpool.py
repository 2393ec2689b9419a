import gc
import threading
import time
import weakref

import pytest

from workpool import Cancelled, PoolClosed, PoolFull, WorkPool

PATIENCE = 2.0


def until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f"never happened: {what}")
        time.sleep(0.001)


class Background:
    """A call in a thread of its own."""

    def __init__(self, function, *args, **kwargs):
        self._value = self._error = None
        self._thread = threading.Thread(target=self._work, args=(function, args, kwargs), daemon=True)
        self._thread.start()

    def _work(self, function, args, kwargs):
        try:
            self._value = function(*args, **kwargs)
        except BaseException as error:
            self._error = error

    @property
    def busy(self):
        return self._thread.is_alive()

    def finish(self):
        self._thread.join(PATIENCE)
        if self._thread.is_alive():
            pytest.fail("a call that should return is still blocked")
        if self._error is not None:
            raise self._error
        return self._value


class Plug:
    """A task that keeps a worker busy until it is released."""

    def __init__(self):
        self.started = threading.Event()
        self.gate = threading.Event()

    def __call__(self):
        self.started.set()
        assert self.gate.wait(10)
        return "plug"

    def await_start(self):
        assert self.started.wait(PATIENCE), "the task was not started"


@pytest.fixture
def make():
    pools, plugs = [], []

    def make_pool(workers, capacity, plugged=0):
        pool = WorkPool(workers, capacity)
        pools.append(pool)
        mine = [Plug() for _ in range(plugged)]
        plugs.extend(mine)
        for plug in mine:
            pool.submit(plug)
            plug.await_start()
        return (pool, *mine)

    yield make_pool
    for plug in plugs:
        plug.gate.set()
    for pool in pools:
        pool.close(drain=False)


def blocked_submit(pool, fn, *args, **kwargs):
    """A submit call that is (very nearly) blocked already; what the tests check holds if it is a little late, too."""
    entered = threading.Event()

    def call():
        entered.set()
        return pool.submit(fn, *args, **kwargs)

    background = Background(call)
    assert entered.wait(PATIENCE)
    return background


def test_results_and_arguments(make):
    (pool,) = make(2, 4)
    ticket = pool.submit(lambda *a, **k: (a, k), 1, 2, fn="f", self="s", timeout=3, wait=1.5)
    assert ticket.result(PATIENCE) == ((1, 2), {"fn": "f", "self": "s", "timeout": 3})
    assert ticket.result(0) == ticket.result() == ((1, 2), {"fn": "f", "self": "s", "timeout": 3})
    assert ticket.state == "done"
    assert ticket.cancel() is False and ticket.state == "done"


@pytest.mark.parametrize("workers, capacity", [(0, 1), (1, 0), (-1, 5)], ids=["no-workers", "no-line", "negative"])
def test_bad_sizes(workers, capacity):
    with pytest.raises(ValueError):
        WorkPool(workers, capacity)


@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt, TimeoutError, Cancelled])
def test_errors_go_to_the_ticket_and_the_worker_lives_on(make, kind):
    (pool,) = make(1, 4)
    error = kind("mine")

    def fail():
        raise error

    ticket = pool.submit(fail)
    for _ in range(2):
        with pytest.raises(kind) as caught:
            ticket.result(PATIENCE)
        assert caught.value is error
    assert ticket.state == "failed"
    assert pool.submit(lambda: 5).result(PATIENCE) == 5


def test_order_and_states(make):
    pool, plug = make(1, 5, plugged=1)
    seen = []
    tickets = [pool.submit(seen.append, n) for n in range(5)]
    assert pool.waiting == 5, "the running task does not count"
    assert {t.state for t in tickets} == {"waiting"}
    with pytest.raises(TimeoutError):
        tickets[0].result(0.01)
    plug.gate.set()
    tickets[-1].result(PATIENCE)
    assert seen == [0, 1, 2, 3, 4]
    assert pool.waiting == 0


def test_all_workers_run_at_once(make):
    (pool,) = make(4, 4)
    barrier = threading.Barrier(4)
    tickets = [pool.submit(barrier.wait, PATIENCE) for _ in range(4)]
    assert sorted(t.result(PATIENCE) for t in tickets) == [0, 1, 2, 3]


def test_full_line(make):
    pool, plug = make(1, 2, plugged=1)
    ran = []
    for n in range(2):
        pool.submit(ran.append, n)
    for wait in (0, -1, 0.02):
        with pytest.raises(PoolFull):
            pool.submit(ran.append, "no", wait=wait)
    late = blocked_submit(pool, ran.append, 2)
    later = blocked_submit(pool, ran.append, 2, wait=60)
    plug.gate.set()
    late.finish().result(PATIENCE)
    later.finish().result(PATIENCE)
    assert ran == [0, 1, 2, 2]


def test_cancel_waiting_task(make):
    pool, plug = make(1, 3, plugged=1)
    ran = []
    a, b, c = (pool.submit(ran.append, n) for n in "abc")
    waiter = Background(b.result)
    assert b.cancel() is True and b.cancel() is True
    with pytest.raises(Cancelled):
        waiter.finish()
    assert (b.state, pool.waiting) == ("cancelled", 2)
    plug.gate.set()
    c.result(PATIENCE)
    assert ran == ["a", "c"]
    with pytest.raises(Cancelled):
        b.result(0)


def test_cancel_frees_a_place_for_a_blocked_submit(make):
    pool, plug = make(1, 1, plugged=1)
    first = pool.submit(int, "1")
    blocked = blocked_submit(pool, int, "2")
    assert first.cancel() is True
    ticket = blocked.finish()
    assert (ticket.state, pool.waiting) == ("waiting", 1)
    plug.gate.set()
    assert ticket.result(PATIENCE) == 2


def test_cancel_running_task(make):
    (pool,) = make(1, 1)
    plug = Plug()
    ticket = pool.submit(plug)
    plug.await_start()
    assert ticket.state == "running"
    assert ticket.cancel() is False
    plug.gate.set()
    assert ticket.result(PATIENCE) == "plug"


def test_close_drains(make):
    pool, plug = make(2, 5, plugged=1)
    gate = threading.Event()
    second = pool.submit(gate.wait, PATIENCE)
    until(lambda: second.state == "running", "the second worker takes a task")
    ran = []
    tickets = [pool.submit(ran.append, n) for n in range(5)]
    pool.close()
    assert pool.waiting == 5
    with pytest.raises(PoolClosed):
        pool.submit(ran.append, 9)
    with pytest.raises(PoolClosed):
        pool.submit(ran.append, 9, wait=0)
    assert pool.join(0.02) is False
    plug.gate.set()
    gate.set()
    assert pool.join(PATIENCE) is True
    assert sorted(ran) == [0, 1, 2, 3, 4]
    assert {t.state for t in tickets} == {"done"}


def test_close_without_drain(make):
    pool, plug = make(1, 3, plugged=1)
    ran = []
    tickets = [pool.submit(ran.append, n) for n in range(3)]
    waiter = Background(tickets[2].result)
    pool.close(drain=False)
    with pytest.raises(Cancelled):
        waiter.finish()
    assert pool.waiting == 0
    assert {t.state for t in tickets} == {"cancelled"}
    assert pool.join(0.02) is False, "the running task goes on"
    plug.gate.set()
    assert pool.join(PATIENCE) is True
    assert ran == []


@pytest.mark.parametrize("drain", [True, False], ids=["drain", "drop"])
def test_close_wakes_blocked_submits(make, drain):
    pool, plug = make(1, 1, plugged=1)
    ran = []
    pool.submit(ran.append, "in line")
    blocked = [blocked_submit(pool, ran.append, "late", wait=wait) for wait in (None, 60, None)]
    pool.close(drain=drain)
    for call in blocked:
        with pytest.raises(PoolClosed):
            call.finish()
    plug.gate.set()
    assert pool.join(PATIENCE) is True
    assert ran == (["in line"] if drain else [])


def test_second_close_may_drop_but_never_revive(make):
    pool, plug = make(1, 3, plugged=1)
    a, b, c = (pool.submit(int) for _ in range(3))
    pool.close()
    assert b.cancel() is True, "tasks can be cancelled while the pool drains"
    pool.close(drain=True)
    assert (a.state, pool.waiting) == ("waiting", 2)
    pool.close(drain=False)
    assert (a.state, c.state) == ("cancelled", "cancelled")
    pool.close(drain=True)
    with pytest.raises(PoolClosed):
        pool.submit(int)
    plug.gate.set()
    assert pool.join(PATIENCE) is True


@pytest.mark.parametrize("drain", [True, False], ids=["drain", "drop"])
def test_close_from_inside_a_task(make, drain):
    pool, plug = make(1, 3, plugged=1)
    closer = pool.submit(pool.close, drain)
    after = pool.submit(int)
    plug.gate.set()
    assert closer.result(PATIENCE) is None
    assert pool.join(PATIENCE) is True
    assert after.state == ("done" if drain else "cancelled")


def test_join_from_inside_a_task(make):
    (pool,) = make(1, 3)
    with pytest.raises(RuntimeError):
        pool.submit(pool.join).result(PATIENCE)
    with pytest.raises(RuntimeError):
        pool.submit(pool.join, 0).result(PATIENCE)
    pool.close()
    assert pool.join(PATIENCE) is True


def test_join_waits_for_an_open_pool_to_be_closed(make):
    (pool,) = make(2, 3)
    assert pool.join(0) is False
    assert pool.join(0.02) is False
    joined = Background(pool.join)
    assert pool.submit(int).result(PATIENCE) == 0
    assert joined.busy
    pool.close()
    assert joined.finish() is True
    assert pool.join(0) is True


def test_no_thread_is_left(make):
    before = set(threading.enumerate())
    (pool,) = make(3, 3)
    started = set(threading.enumerate()) - before
    assert len(started) == 3, "all workers are started at once"
    assert all(thread.daemon for thread in started)
    pool.submit(int)
    pool.close()
    assert pool.join(PATIENCE) is True
    assert not any(thread.is_alive() for thread in started)


def test_with_block():
    with WorkPool(1, 20) as pool:
        tickets = [pool.submit(int, n) for n in range(15)]
    assert [t.state for t in tickets] == ["done"] * 15
    with pytest.raises(PoolClosed):
        pool.submit(int)


def test_with_block_that_fails():
    plug = Plug()
    with pytest.raises(KeyError):
        with WorkPool(1, 5) as pool:
            running = pool.submit(plug)
            plug.await_start()
            waiting = pool.submit(int)
            threading.Thread(target=lambda: (_wait_cancelled(waiting), plug.gate.set()), daemon=True).start()
            raise KeyError
    assert (running.state, waiting.state) == ("done", "cancelled")


def _wait_cancelled(ticket):
    try:
        ticket.result(PATIENCE)
    except (Cancelled, TimeoutError):
        pass


class Thing:
    def method(self, other=None):
        return "ok"


def test_finished_tasks_are_not_kept_alive(make):
    (pool,) = make(1, 3)
    thing, argument = Thing(), Thing()
    watch = [weakref.ref(thing), weakref.ref(argument)]
    ticket = pool.submit(thing.method, other=argument)
    assert ticket.result(PATIENCE) == "ok"
    del thing, argument
    until(lambda: gc.collect() is not None and not any(ref() for ref in watch), "function and arguments are released")
    assert ticket.state == "done"


def test_cancelled_tasks_are_not_kept_alive(make):
    pool, plug = make(1, 3, plugged=1)
    one, two = Thing(), Thing()
    watch = [weakref.ref(one), weakref.ref(two)]
    tickets = [pool.submit(one.method), pool.submit(int, two)]
    tickets[0].cancel()
    pool.close(drain=False)
    del one, two
    until(lambda: gc.collect() is not None and not any(ref() for ref in watch), "function and arguments are released")
    plug.gate.set()


def test_many_producers(make):
    (pool,) = make(3, 2)
    lock, seen = threading.Lock(), []

    def record(value):
        with lock:
            seen.append(value)

    def produce(start):
        return [pool.submit(record, start + n) for n in range(50)]

    producers = [Background(produce, 100 * p) for p in range(4)]
    tickets = [t for p in producers for t in p.finish()]
    pool.close()
    assert pool.join(PATIENCE) is True
    assert {t.state for t in tickets} == {"done"}
    assert sorted(seen) == sorted(100 * p + n for p in range(4) for n in range(50))
