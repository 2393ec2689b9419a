"""A box from its creation to its end, by closing, at its time, under cancellation: nothing is left."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from codeenv.sandbox.api import (
    Sandbox,
    SandboxError,
    SandboxExpired,
    SandboxLost,
    SandboxProvider,
    SandboxSpec,
    UnsupportedSpec,
)
from codeenv.sandbox.archive import Archive
from codeenv.sandbox.conformance.support import (
    LONG,
    SESSION,
    descendants,
    failure,
    in_time,
    marker,
    on_host,
    seen_from_here,
    settles,
)


def _calls(box: Sandbox) -> dict[str, Callable[[], Awaitable[Any]]]:
    async def process() -> None:
        async with box.open_process(["cat"]):
            pass

    return {
        "exec": lambda: box.exec("true"),
        "open_process": process,
        "read_file": lambda: box.read_file("f"),
        "write_file": lambda: box.write_file("f", b""),
        "list_files": box.list_files,
        "remove": lambda: box.remove("f"),
        "export": box.export,
        "import_": lambda: box.import_(Archive.of({"f": b"x"})),
    }


async def check_a_new_box_is_ready_and_empty(provider: SandboxProvider, spec: SandboxSpec) -> None:
    """A box that `create` gives answers at once, with an id, an empty work directory and working tools."""
    async with provider.create(spec) as box:
        assert box.id
        assert box.workdir.startswith("/")
        assert await box.list_files() == []
        result = await box.exec("bash -c 'echo bash'; python3 -c 'print(\"python\")'; mktemp")
        assert result.stdout.startswith(b"bash\npython\n/"), result
        assert result.exit_code == 0, result


async def check_closing_may_be_repeated(provider: SandboxProvider, spec: SandboxSpec) -> None:
    """`close` may be called again, at once from many and later, and never fails."""
    box = await provider.open(spec)
    with in_time(30):
        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(box.close)
        await box.close()


async def check_a_closed_box_is_lost(provider: SandboxProvider, spec: SandboxSpec) -> None:
    """Every call of a closed box is SandboxLost, at once, that says what was being done."""
    async with provider.create(spec) as box:
        pass
    with in_time():
        for stage, call in _calls(box).items():
            error = await failure(call(), SandboxLost)
            assert error.stage == stage, error
            assert not isinstance(error, SandboxExpired), error


async def check_closing_ends_the_calls_that_wait(provider: SandboxProvider, spec: SandboxSpec) -> None:
    """Calls that are under way when the box is closed end at once with SandboxLost."""
    errors: list[SandboxLost] = []

    async def wait(box: Sandbox) -> None:
        errors.append(await failure(box.exec(f"sleep {LONG}"), SandboxLost))

    box = await provider.open(spec)
    try:
        with in_time(20):
            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(wait, box)
                await anyio.sleep(0.3)
                await box.close()
    finally:
        await box.close()
    assert len(errors) == 3


async def check_closing_ends_every_process(provider: SandboxProvider, spec: SandboxSpec) -> None:
    """After `close` no process of the box is left: neither what ran nor daemons in sessions of their own."""
    seen_from_here(provider)
    argument = marker()
    box = await provider.open(spec)
    try:
        await box.exec(f"{SESSION} sleep {argument} & sleep {argument} & (trap '' HUP TERM; sleep {argument} & exit)")
        await settles(box, argument, 3)
        assert len(on_host(argument)) == 3
    finally:
        await box.close()
    assert on_host(argument) == []


async def check_closing_in_a_cancelled_scope_closes(provider: SandboxProvider, spec: SandboxSpec) -> None:
    """A cancellation does not keep a box from being closed."""
    argument, kept = marker(), list[Sandbox]()
    with anyio.CancelScope() as scope:
        async with provider.create(spec) as box:
            kept.append(box)
            await box.exec(f"{SESSION} sleep {argument} & echo")
            await settles(box, argument, 1)
            scope.cancel()
            await anyio.sleep(1)
    assert scope.cancelled_caught
    await failure(kept[0].exec("true"), SandboxLost)
    if provider.capabilities.shares_host:
        assert on_host(argument) == []


async def check_an_error_inside_closes_and_comes_through(provider: SandboxProvider, spec: SandboxSpec) -> None:
    """An exception in the block of `create` closes the box and comes through as it is."""
    kept: list[Sandbox] = []

    async def fail() -> None:
        async with provider.create(spec) as box:
            kept.append(box)
            raise ZeroDivisionError

    await failure(fail(), ZeroDivisionError)
    await failure(kept[0].exec("true"), SandboxLost)


async def check_a_box_expires_at_its_time(provider: SandboxProvider, spec: SandboxSpec) -> None:
    """At its TTL a box is destroyed: what is under way, and every later call, is SandboxExpired."""
    argument = marker()
    box, seconds = await _short_lived(provider, spec)
    try:
        with in_time(seconds + 30):
            error = await failure(box.exec(f"{SESSION} sleep {argument} & sleep {LONG}"), SandboxExpired)
            assert error.stage == "exec", error
            for call in _calls(box).values():
                await failure(call(), SandboxExpired)
        if provider.capabilities.shares_host:
            assert on_host(argument) == []
    finally:
        await box.close()


async def _short_lived(provider: SandboxProvider, spec: SandboxSpec) -> tuple[Sandbox, float]:
    """A box and its TTL, as short as this backend can have it and is able to make one in."""
    error: Exception | None = None
    for seconds in (1.5, 15.0):
        try:
            return await provider.open(spec.model_copy(update={"ttl_seconds": seconds})), seconds
        except (UnsupportedSpec, SandboxError) as refused:
            error = refused
    raise AssertionError(f"no box can be had for 15 s: {error}") from error


async def check_a_cancelled_creation_leaves_nothing(provider: SandboxProvider, spec: SandboxSpec) -> None:
    """A creation that is cancelled at any moment leaves no box behind, and the next one works."""
    await (await provider.open(spec)).close()  # what a backend keeps for its next box is there from now on
    before = descendants()
    for step in range(8):
        with anyio.move_on_after(0.002 * step):
            async with provider.create(spec) as box:
                await box.exec(f"sleep {LONG}")
    async with provider.create(spec) as box:
        assert (await box.exec("echo fine")).stdout == b"fine\n"
    if provider.capabilities.shares_host:
        with in_time():
            while descendants() - before:
                await anyio.sleep(0.05)


async def check_many_boxes_live_at_once(provider: SandboxProvider, spec: SandboxSpec) -> None:
    """Eight boxes may be made, used and closed at once."""
    ids: set[str] = set()

    async def live(number: int) -> None:
        async with provider.create(spec) as box:
            ids.add(box.id)
            await box.write_file("f", b"%d" % number)
            assert (await box.exec("cat f")).stdout == b"%d" % number

    with in_time(120):
        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(live, number)
    assert len(ids) == 8
