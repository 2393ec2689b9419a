import asyncio

import pytest

from limiter import Limiter, LimiterClosed


class FakeClock:
    def __init__(self, start=1000):
        self.time = start
        self.sleepers = {}
        self.calls = 0

    def now(self):
        return self.time

    async def sleep(self, seconds):
        assert seconds > 0, "clock.sleep wants a positive number"
        self.calls += 1
        if self.calls > 5000:
            pytest.fail("busy waiting")
        future = asyncio.get_running_loop().create_future()
        self.sleepers[future] = self.time + seconds
        try:
            await future
        finally:
            self.sleepers.pop(future, None)

    async def advance(self, seconds):
        """Jump straight to the new time, then let everything happen."""
        self.time += seconds
        await turns()
        while due := [f for f, end in self.sleepers.items() if end <= self.time and not f.done()]:
            for future in due:
                future.set_result(None)
            await turns()


async def turns(count=12):
    for _ in range(count):
        await asyncio.sleep(0)


def run(scenario):
    """Run the coroutine function with a new clock; fail rather than hang."""

    async def bounded():
        clock = FakeClock()
        await asyncio.wait_for(scenario(clock), 2)

    asyncio.run(bounded())


class Line:
    """Starts acquire calls and notes which have returned, in order."""

    def __init__(self, limiter):
        self.limiter = limiter
        self.served = []
        self.tasks = {}

    async def join(self, name, n=1):
        async def call():
            await self.limiter.acquire(n)
            self.served.append(name)

        self.tasks[name] = asyncio.create_task(call())
        await turns()

    def end(self):
        for task in self.tasks.values():
            task.cancel()


def test_burst_then_wait():
    async def scenario(clock):
        limiter = Limiter(2, 3, clock)
        assert limiter.available == 3
        for _ in range(3):
            await limiter.acquire()
        assert clock.calls == 0, "no need to sleep"
        line = Line(limiter)
        await line.join("a")
        assert (line.served, limiter.waiting) == ([], 1)
        await clock.advance(0.25)
        assert (line.served, limiter.available) == ([], 0.5)
        await clock.advance(0.25)
        assert (line.served, limiter.available, limiter.waiting) == (["a"], 0, 0)

    run(scenario)


def test_bucket_never_overflows():
    async def scenario(clock):
        limiter = Limiter(4, 5, clock)
        await clock.advance(1000)
        assert limiter.available == 5
        await limiter.acquire(5)
        await clock.advance(0.5)
        assert limiter.available == 2
        assert limiter.try_acquire(2) is True
        assert limiter.try_acquire(1) is False
        assert limiter.available == 0
        await clock.advance(77)
        assert limiter.available == 5

    run(scenario)


def test_bad_numbers():
    async def scenario(clock):
        for rate, burst in ((-1, 5), (1, 0), (1, -2)):
            with pytest.raises(ValueError):
                Limiter(rate, burst, clock)
        limiter = Limiter(1, 5, clock)
        for n in (0, -1, 5.5, 6):
            with pytest.raises(ValueError):
                await limiter.acquire(n)
            with pytest.raises(ValueError):
                limiter.try_acquire(n)
        with pytest.raises(ValueError):
            limiter.set_rate(-0.5)
        assert limiter.available == 5
        await limiter.acquire(5)
        await clock.advance(2)
        assert limiter.available == 2, "a refused rate changes nothing"

    run(scenario)


def test_created_outside_a_loop():
    clock = FakeClock()
    limiter = Limiter(1, 2, clock)

    async def scenario():
        await limiter.acquire(2)
        line = Line(limiter)
        await line.join("a")
        await clock.advance(1)
        assert line.served == ["a"]

    asyncio.run(asyncio.wait_for(scenario(), 2))


def test_large_request_is_not_passed_by_small_ones():
    async def scenario(clock):
        limiter = Limiter(1, 10, clock)
        await limiter.acquire(8)
        line = Line(limiter)
        await line.join("large", 6)
        await line.join("small", 1)
        assert line.served == [] and limiter.waiting == 2
        assert limiter.try_acquire(1) is False, "others wait"
        assert limiter.available == 2
        limiter.set_rate(1)
        await turns()
        assert line.served == [] and limiter.waiting == 2
        await clock.advance(4)
        assert line.served == ["large"]
        await clock.advance(1)
        assert line.served == ["large", "small"]

    run(scenario)


def test_one_long_advance_serves_many_in_order():
    async def scenario(clock):
        limiter = Limiter(1, 6, clock)
        await limiter.acquire(6)
        line = Line(limiter)
        for name, n in (("a", 1), ("b", 3), ("c", 2), ("d", 1)):
            await line.join(name, n)
        await clock.advance(100)
        assert line.served == ["a", "b", "c"], "the bucket holds six, whatever the time"
        assert (limiter.waiting, limiter.available) == (1, 0)
        await clock.advance(1)
        assert line.served == ["a", "b", "c", "d"]

    run(scenario)


def test_latecomer_at_the_very_moment_does_not_overtake():
    async def scenario(clock):
        limiter = Limiter(1, 5, clock)
        await limiter.acquire(5)
        line = Line(limiter)
        await line.join("first", 2)
        clock.time += 2  # the tokens are there, but nothing has run yet
        assert limiter.try_acquire(1) is False
        await line.join("second", 1)
        await clock.advance(0)
        assert line.served == ["first"]
        await clock.advance(1)
        assert line.served == ["first", "second"]

    run(scenario)


def test_latecomers_in_each_turn_after_the_tokens_came():
    async def scenario(clock):
        for delay in range(8):
            limiter = Limiter(1, 4, clock)
            await limiter.acquire(4)
            line = Line(limiter)
            await line.join("a", 2)
            await line.join("b", 2)
            clock.time += 3
            for future in list(clock.sleepers):
                future.set_result(None)
            await turns(delay)
            assert limiter.try_acquire(1) is False, f"b is still waiting, {delay} turns later"
            await turns()
            assert line.served == ["a"]
            await clock.advance(1)
            assert line.served == ["a", "b"]

    run(scenario)


def test_cancelled_head_lets_the_next_one_through_at_once():
    async def scenario(clock):
        limiter = Limiter(1, 10, clock)
        await limiter.acquire(7)
        line = Line(limiter)
        await line.join("large", 9)
        await line.join("b", 2)
        await line.join("c", 2)
        line.tasks["large"].cancel()
        await turns()
        assert line.tasks["large"].cancelled()
        assert (line.served, limiter.waiting, limiter.available) == (["b"], 1, 1)
        await clock.advance(1)
        assert line.served == ["b", "c"]

    run(scenario)


def test_cancelled_in_the_middle():
    async def scenario(clock):
        limiter = Limiter(1, 10, clock)
        await limiter.acquire(10)
        line = Line(limiter)
        for name, n in (("a", 2), ("b", 8), ("c", 3)):
            await line.join(name, n)
        line.tasks["b"].cancel()
        await turns()
        assert limiter.waiting == 2
        await clock.advance(2)
        assert line.served == ["a"]
        await clock.advance(2)
        assert line.served == ["a"]
        await clock.advance(1)
        assert (line.served, limiter.available) == (["a", "c"], 0)

    run(scenario)


def test_cancelled_head_shortens_the_wait():
    async def scenario(clock):
        limiter = Limiter(1, 10, clock)
        await limiter.acquire(10)
        line = Line(limiter)
        await line.join("large", 10)
        await line.join("small", 3)
        await clock.advance(1)
        line.tasks["large"].cancel()
        await turns()
        await clock.advance(2)
        assert (line.served, limiter.available) == (["small"], 0)

    run(scenario)


@pytest.mark.parametrize("delay", range(8))
def test_tokens_are_neither_lost_nor_doubled_by_a_late_cancel(delay):
    async def scenario(clock):
        limiter = Limiter(1, 6, clock)
        await limiter.acquire(6)
        line = Line(limiter)
        await line.join("a", 4)
        await line.join("b", 3)
        clock.time += 4
        for future in list(clock.sleepers):
            future.set_result(None)
        await turns(delay)
        line.tasks["a"].cancel()
        await clock.advance(0)
        if line.tasks["a"].cancelled():
            assert (line.served, limiter.available) == (["b"], 1), "what a did not take is there for b"
        else:
            assert (line.served, limiter.available) == (["a"], 0)
            await clock.advance(3)
            assert line.served == ["a", "b"]

    run(scenario)


def test_returned_tokens_do_not_exceed_the_burst():
    async def scenario(clock):
        for delay in range(8):
            limiter = Limiter(1, 4, clock)
            await limiter.acquire(4)
            line = Line(limiter)
            await line.join("a", 3)
            clock.time += 3
            for future in list(clock.sleepers):
                future.set_result(None)
            await turns(delay)
            line.tasks["a"].cancel()
            clock.time += 50
            await clock.advance(0)
            assert limiter.available == 4

    run(scenario)


def test_two_neighbours_cancelled_in_the_same_turn():
    async def scenario(clock):
        limiter = Limiter(1, 8, clock)
        await limiter.acquire(6)
        line = Line(limiter)
        for name, n in (("a", 7), ("b", 8), ("c", 2)):
            await line.join(name, n)
        line.tasks["a"].cancel()
        line.tasks["b"].cancel()
        await turns()
        assert (line.served, limiter.waiting, limiter.available) == (["c"], 0, 0)

    run(scenario)


def test_faster_rate_reaches_those_who_wait():
    async def scenario(clock):
        limiter = Limiter(1, 20, clock)
        await limiter.acquire(20)
        line = Line(limiter)
        await line.join("a", 10)
        await clock.advance(2)
        limiter.set_rate(16)
        assert limiter.available == 2, "counted with the old rate up to now"
        await turns()
        await clock.advance(0.25)
        assert line.served == [] and limiter.available == 6
        await clock.advance(0.25)
        assert (line.served, limiter.available) == (["a"], 0)

    run(scenario)


def test_slower_rate_reaches_those_who_wait():
    async def scenario(clock):
        limiter = Limiter(4, 20, clock)
        await limiter.acquire(20)
        line = Line(limiter)
        await line.join("a", 8)
        await clock.advance(1)
        limiter.set_rate(0.5)
        await turns()
        await clock.advance(1)
        assert (line.served, limiter.available) == ([], 4.5)
        await clock.advance(7)
        assert (line.served, limiter.available) == (["a"], 0)

    run(scenario)


def test_rate_zero_halts_and_goes_on():
    async def scenario(clock):
        limiter = Limiter(0, 4, clock)
        await limiter.acquire(3)
        line = Line(limiter)
        await line.join("a", 2)
        await clock.advance(1000)
        assert (line.served, limiter.available, limiter.waiting) == ([], 1, 1)
        limiter.set_rate(1)
        await turns()
        await clock.advance(0.5)
        limiter.set_rate(0)
        await clock.advance(1000)
        assert (line.served, limiter.available) == ([], 1.5)
        limiter.set_rate(2)
        await turns()
        await clock.advance(0.25)
        assert (line.served, limiter.available) == (["a"], 0)

    run(scenario)


def test_close():
    async def scenario(clock):
        limiter = Limiter(1, 3, clock)
        await limiter.acquire(3)
        line = Line(limiter)
        await line.join("a")
        await line.join("b", 3)
        limiter.close()
        await turns()
        for name in "ab":
            assert isinstance(line.tasks[name].exception(), LimiterClosed)
        assert limiter.waiting == 0
        limiter.close()
        with pytest.raises(LimiterClosed):
            await limiter.acquire()
        with pytest.raises(LimiterClosed):
            limiter.try_acquire()
        with pytest.raises(LimiterClosed):
            limiter.set_rate(3)

    run(scenario)


def test_nothing_is_left_behind():
    async def scenario(clock):
        others = asyncio.all_tasks()

        async def check(what):
            await turns()
            assert not clock.sleepers, f"pending sleep after {what}"
            assert asyncio.all_tasks() == others, f"pending task after {what}"

        limiter = Limiter(1, 3, clock)
        await limiter.acquire(3)
        await check("an acquire that need not wait")
        line = Line(limiter)
        await line.join("a", 2)
        line.tasks["a"].cancel()
        await check("a cancelled acquire")
        await line.join("b", 2)
        await clock.advance(2)
        await check("a served acquire")
        await line.join("c", 2)
        limiter.close()
        await check("close")
        assert line.served == ["b"]
        line.tasks["c"].exception()

    run(scenario)
