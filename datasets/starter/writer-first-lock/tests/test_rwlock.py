import queue
import threading
import time

import pytest

from rwlock import LockUsageError, WriterFirstLock

PATIENCE = 5.0
GIVES_UP = 0.6  # long enough to be seen waiting, from another machine too
# A call may be a message to another machine: 60 turns where it is near, and 9 at least.
ROUND_SECONDS = 4.0
ROUND_PATIENCE = 15.0


class Actor:
    """A thread that carries out calls one after the other and reports their results."""

    def __init__(self):
        self._calls = queue.Queue()
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self):
        while True:
            function, args, reply = self._calls.get()
            try:
                reply.put((True, function(*args)))
            except BaseException as error:
                reply.put((False, error))

    def begin(self, function, *args):
        reply = queue.Queue()
        self._calls.put((function, args, reply))

        def finish():
            try:
                ok, value = reply.get(timeout=PATIENCE)
            except queue.Empty:
                pytest.fail(f"{getattr(function, '__name__', function)} did not return")
            if not ok:
                raise value
            return value

        finish.done = lambda: not reply.empty()
        return finish

    def do(self, function, *args):
        return self.begin(function, *args)()


def until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f"never happened: {what}")
        time.sleep(0.001)


@pytest.fixture
def lock():
    return WriterFirstLock()


@pytest.fixture
def actors():
    return [Actor() for _ in range(5)]


def waiting_writer(lock, actor, timeout=None):
    before = lock.waiting_writers
    pending = actor.begin(lock.acquire_write, timeout)
    until(lambda: lock.waiting_writers == before + 1, "a blocked writer shows in waiting_writers")
    return pending


def test_readers_share_and_keep_writers_out(lock, actors):
    a, b, c, *_ = actors
    assert a.do(lock.acquire_read, None) is True
    assert b.do(lock.acquire_read, 0) is True
    assert (lock.readers, lock.writing_now, lock.waiting_writers) == (2, False, 0)
    assert c.do(lock.acquire_write, 0) is False
    a.do(lock.release_read)
    assert c.do(lock.acquire_write, 0) is False
    b.do(lock.release_read)
    assert c.do(lock.acquire_write, 0) is True
    assert (lock.readers, lock.writing_now) == (0, True)


def test_writer_keeps_everybody_out(lock, actors):
    a, b, *_ = actors
    assert a.do(lock.acquire_write) is True
    assert b.do(lock.acquire_read, 0) is False
    assert b.do(lock.acquire_write, 0) is False
    assert b.do(lock.acquire_read, -1) is False
    assert b.do(lock.acquire_write, 0.02) is False
    assert b.do(lock.acquire_read, 0.02) is False
    assert lock.waiting_writers == 0
    a.do(lock.release_write)
    assert not lock.writing_now
    assert b.do(lock.acquire_read, 0) is True


def test_blocked_threads_go_on_after_release(lock, actors):
    a, b, c, *_ = actors
    a.do(lock.acquire_write)
    first = b.begin(lock.acquire_read, None)
    second = c.begin(lock.acquire_read, 60)
    a.do(lock.release_write)
    assert first() is True and second() is True
    assert lock.readers == 2


def test_new_reader_does_not_pass_a_waiting_writer(lock, actors):
    a, b, c, *_ = actors
    a.do(lock.acquire_read)
    pending = waiting_writer(lock, b)
    assert c.do(lock.acquire_read, 0) is False, "a writer is waiting"
    assert c.do(lock.acquire_read, 0.02) is False, "a writer is waiting"
    a.do(lock.release_read)
    assert pending() is True
    assert lock.waiting_writers == 0


def test_reader_may_reenter_past_a_waiting_writer(lock, actors):
    a, b, c, *_ = actors
    a.do(lock.acquire_read)
    pending = waiting_writer(lock, b)
    assert a.do(lock.acquire_read) is True
    assert a.do(lock.acquire_read, 0) is True
    assert lock.readers == 1, "one thread, however often it holds the lock"
    a.do(lock.release_read)
    a.do(lock.release_read)
    assert not pending.done() and lock.waiting_writers == 1
    assert c.do(lock.acquire_read, 0) is False
    a.do(lock.release_read)
    assert pending() is True


def test_last_release_ends_the_right_to_reenter(lock, actors):
    a, b, c, *_ = actors
    a.do(lock.acquire_read)
    b.do(lock.acquire_read)
    waiting_writer(lock, c)
    a.do(lock.release_read)
    assert a.do(lock.acquire_read, 0) is False


def test_writers_are_served_in_order_and_before_readers(lock, actors):
    a, b, c, d, e = actors
    a.do(lock.acquire_write)
    reader = e.begin(lock.acquire_read, None)
    first = waiting_writer(lock, b)
    second = waiting_writer(lock, c)
    third = waiting_writer(lock, d)
    a.do(lock.release_write)
    assert first() is True
    assert (lock.waiting_writers, lock.readers) == (2, 0)
    assert not second.done() and not third.done()
    b.do(lock.release_write)
    assert second() is True
    assert b.do(lock.acquire_write, 0) is False
    c.do(lock.release_write)
    assert third() is True
    assert not reader.done()
    d.do(lock.release_write)
    assert reader() is True


def test_impatient_writer_does_not_overtake(lock, actors):
    a, b, c, *_ = actors
    a.do(lock.acquire_read)
    waiting_writer(lock, b)
    assert c.do(lock.acquire_write, 0) is False
    assert lock.waiting_writers == 1
    assert c.do(lock.acquire_write, 0.02) is False
    assert lock.waiting_writers == 1


def test_writer_that_gives_up_lets_readers_go_on(lock, actors):
    a, b, c, *_ = actors
    a.do(lock.acquire_read)
    writer = waiting_writer(lock, b, GIVES_UP)
    reader = c.begin(lock.acquire_read, None)
    assert writer() is False
    assert reader() is True, "the writer it waited for is gone"
    assert (lock.readers, lock.waiting_writers) == (2, 0)


def test_writer_in_the_middle_gives_up(lock, actors):
    a, b, c, d, _ = actors
    a.do(lock.acquire_read)
    first = waiting_writer(lock, b)
    middle = waiting_writer(lock, c, GIVES_UP)
    last = waiting_writer(lock, d)
    assert middle() is False
    assert lock.waiting_writers == 2
    a.do(lock.release_read)
    assert first() is True
    b.do(lock.release_write)
    assert last() is True


def test_first_writer_gives_up_and_next_one_inherits(lock, actors):
    a, b, c, d, _ = actors
    a.do(lock.acquire_read)
    first = waiting_writer(lock, b, GIVES_UP)
    second = waiting_writer(lock, c)
    assert first() is False
    assert d.do(lock.acquire_read, 0) is False, "another writer is still waiting"
    a.do(lock.release_read)
    assert second() is True


def test_write_reentrancy(lock, actors):
    a, b, *_ = actors
    a.do(lock.acquire_write)
    waiting_writer(lock, b)
    assert a.do(lock.acquire_write) is True
    assert a.do(lock.acquire_write, 0) is True
    a.do(lock.release_write)
    a.do(lock.release_write)
    assert lock.writing_now and lock.waiting_writers == 1
    a.do(lock.release_write)
    until(lambda: lock.waiting_writers == 0, "the waiting writer gets the lock")


def test_read_hold_may_outlive_the_write_hold(lock, actors):
    a, b, c, *_ = actors
    a.do(lock.acquire_write)
    assert a.do(lock.acquire_read) is True
    assert (lock.readers, lock.writing_now) == (1, True)
    assert a.do(lock.acquire_write, 0) is True, "still the writer, so no upgrade"
    a.do(lock.release_write)
    a.do(lock.release_write)
    assert (lock.readers, lock.writing_now) == (1, False)
    assert b.do(lock.acquire_write, 0) is False
    assert c.do(lock.acquire_read, 0) is True
    with pytest.raises(LockUsageError):
        a.do(lock.acquire_write, 0)


def test_read_hold_released_inside_write_hold_lets_nobody_in(lock, actors):
    a, b, *_ = actors
    a.do(lock.acquire_write)
    a.do(lock.acquire_read)
    a.do(lock.release_read)
    assert (lock.readers, lock.writing_now) == (0, True)
    assert b.do(lock.acquire_read, 0) is False
    assert b.do(lock.acquire_write, 0) is False


@pytest.mark.parametrize("timeout", [None, 0, 30], ids=["forever", "at-once", "long"])
def test_upgrade_is_refused_at_once(lock, actors, timeout):
    a, b, c, *_ = actors
    a.do(lock.acquire_read)
    b.do(lock.acquire_read)
    with pytest.raises(LockUsageError):
        a.do(lock.acquire_write, timeout)
    assert (lock.readers, lock.writing_now, lock.waiting_writers) == (2, False, 0)
    assert c.do(lock.acquire_read, 0) is True


def test_release_without_hold(lock, actors):
    a, b, *_ = actors
    for release in (lock.release_read, lock.release_write):
        with pytest.raises(LockUsageError):
            a.do(release)
    a.do(lock.acquire_read)
    for release in (lock.release_read, lock.release_write):
        with pytest.raises(LockUsageError):
            b.do(release)
    with pytest.raises(LockUsageError):
        a.do(lock.release_write)
    assert lock.readers == 1
    a.do(lock.release_read)
    with pytest.raises(LockUsageError):
        a.do(lock.release_read)
    b.do(lock.acquire_write)
    for release in (lock.release_read, lock.release_write):
        with pytest.raises(LockUsageError):
            a.do(release)
    with pytest.raises(LockUsageError):
        b.do(lock.release_read)
    assert (lock.readers, lock.writing_now) == (0, True)


def test_downgrade_lets_waiting_readers_in(lock, actors):
    a, b, c, *_ = actors
    a.do(lock.acquire_write)
    reader = b.begin(lock.acquire_read, None)
    a.do(lock.downgrade)
    assert reader() is True
    assert (lock.readers, lock.writing_now) == (2, False)
    assert c.do(lock.acquire_write, 0) is False
    a.do(lock.release_read)
    b.do(lock.release_read)
    assert c.do(lock.acquire_write, 0) is True


def test_downgrade_does_not_let_a_waiting_writer_in(lock, actors):
    a, b, c, *_ = actors
    a.do(lock.acquire_write)
    a.do(lock.acquire_read)
    writer = waiting_writer(lock, b)
    a.do(lock.downgrade)
    assert (lock.readers, lock.writing_now, lock.waiting_writers) == (1, False, 1)
    assert c.do(lock.acquire_read, 0) is False
    a.do(lock.release_read)
    assert lock.readers == 1 and not writer.done(), "two read holds: an old one and the downgraded one"
    a.do(lock.release_read)
    assert writer() is True


def test_downgrade_misuse(lock, actors):
    a, b, *_ = actors
    with pytest.raises(LockUsageError):
        a.do(lock.downgrade)
    a.do(lock.acquire_write)
    with pytest.raises(LockUsageError):
        b.do(lock.downgrade)
    a.do(lock.acquire_write)
    with pytest.raises(LockUsageError):
        a.do(lock.downgrade)
    assert (lock.readers, lock.writing_now) == (0, True)
    a.do(lock.release_write)
    a.do(lock.downgrade)
    assert (lock.readers, lock.writing_now) == (1, False)


def test_context_managers_release_after_an_error(lock, actors):
    a, b, *_ = actors

    def fail(manager):
        with manager():
            assert lock.readers + lock.writing_now == 1
            raise KeyError("body")

    for manager in (lock.reading, lock.writing):
        with pytest.raises(KeyError):
            a.do(fail, manager)
        assert b.do(lock.acquire_write, 0) is True
        b.do(lock.release_write)


def test_locks_are_independent(actors):
    a, b, *_ = actors
    one, other = WriterFirstLock(), WriterFirstLock()
    a.do(one.acquire_read)
    assert a.do(other.acquire_write, 0) is True
    assert b.do(one.acquire_read, 0) is True


def test_exclusion_under_load(lock):
    state = {"writers": 0, "total": 0}
    faults, finished, written = [], [], [0] * 6
    end = time.monotonic() + ROUND_SECONDS

    def work(number):
        for turn in range(60):
            if turn >= 9 and time.monotonic() > end:
                break
            if (turn + number) % 3:
                with lock.reading():
                    with lock.reading():
                        if state["writers"]:
                            faults.append("reader beside writer")
            else:
                with lock.writing():
                    state["writers"] += 1
                    seen = state["total"]
                    if state["writers"] != 1 or lock.readers:
                        faults.append("writer not alone")
                    state["total"] = seen + 1
                    state["writers"] -= 1
                written[number] += 1
        finished.append(number)

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(ROUND_PATIENCE)
        assert not thread.is_alive(), "deadlock"
    assert not faults
    assert sorted(finished) == [*range(6)], "a call raised"
    assert state["total"] == sum(written) >= 6 * 3
    assert (lock.readers, lock.writing_now, lock.waiting_writers) == (0, False, 0)
