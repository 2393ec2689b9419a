"""Boxes come and go: at their time, by accident, under cancellation, with their host. Nothing is ever left."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from codeenv.sandbox import bubblewrap, local
from codeenv.sandbox.api import (
    SandboxError,
    SandboxExpired,
    SandboxLost,
    SandboxProvider,
    SandboxSpec,
    UnsupportedSpec,
)
from codeenv.sandbox.conformance.support import descendants, on_host
from codeenv.sandbox.local import LocalSandbox
from tests.conftest import provider_or_skip

pytestmark = pytest.mark.anyio
BOTH_LOOPS = pytest.mark.parametrize(
    "anyio_backend", ["asyncio", ("asyncio", {"use_uvloop": True})], ids=["asyncio", "uvloop"]
)


def command_line(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[:-1]
    except OSError:
        return []


def traces() -> tuple[set[str], set[int], set[str]]:
    """Everything of ours that a box could leave: descriptors, processes, directories."""
    return (
        set(os.listdir("/proc/self/fd")),
        descendants(),
        {name for name in os.listdir(tempfile.gettempdir()) if name.startswith("codeenv-")},
    )


# --- the time to live ----------------------------------------------------------------------------------------


@BOTH_LOOPS
async def test_at_its_time_a_box_is_destroyed_and_says_so(any_provider: SandboxProvider) -> None:
    async with any_provider.create(SandboxSpec(ttl_seconds=0.4)) as box:
        started = time.monotonic()
        with pytest.raises(SandboxExpired, match=r"time to live of 0\.4 s") as caught:
            await box.exec("setsid sleep 987001 & sleep 60")
        assert time.monotonic() - started < 3
        assert caught.value.stage == "exec"
        assert caught.value.seconds is not None
        assert 0 < caught.value.seconds < 3
        for call in (box.exec("true"), box.read_file("x"), box.export()):
            with pytest.raises(SandboxExpired):
                await call
        assert on_host("987001") == []


async def test_a_box_that_nobody_watches_goes_at_its_time(any_provider: SandboxProvider) -> None:
    box = await any_provider.open(SandboxSpec(ttl_seconds=0.4))
    pid = box.pid  # type: ignore[attr-defined]
    await box.exec("(setsid sleep 987002 &)")
    time.sleep(0.8)  # noqa: ASYNC251  the loop stands still, as if we hung
    assert on_host("987002") == []
    assert not command_line(pid)  # only its exit status is left
    await box.close()


async def test_a_box_goes_at_its_time_also_when_it_cannot_get_rid_of_an_answer(any_provider: SandboxProvider) -> None:
    box = await any_provider.open(SandboxSpec(ttl_seconds=0.6))
    await box.exec("head -c 8000000 /dev/zero > big; (setsid sleep 987003 &)")
    with anyio.move_on_after(0.01):
        await box.read_file("big")
    time.sleep(1.2)  # noqa: ASYNC251
    assert on_host("987003") == []
    await box.close()


# --- loss -------------------------------------------------------------------------------------------------------


@BOTH_LOOPS
async def test_a_lost_box_is_noticed_by_all_who_wait(any_provider: SandboxProvider) -> None:
    async with any_provider.create(SandboxSpec()) as box:
        caught: list[SandboxLost] = []

        async def wait() -> None:
            with pytest.raises(SandboxLost) as info:
                await box.exec("sleep 60")
            caught.append(info.value)

        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                for _ in range(5):
                    group.start_soon(wait)
                await anyio.sleep(0.3)
                os.kill(box.pid, signal.SIGKILL)  # type: ignore[attr-defined]
        assert len(caught) == 5
        for error in caught:
            assert type(error) is SandboxLost
            assert error.stage == "exec"
            assert error.seconds is not None
            assert 0.2 < error.seconds < 2.5
        for stage, call in {
            "exec": box.exec("true"),
            "read_file": box.read_file("x"),
            "write_file": box.write_file("x", b"x" * 3_000_000),
            "list_files": box.list_files(),
            "remove": box.remove("x"),
            "export": box.export(),
        }.items():
            with pytest.raises(SandboxLost) as info:
                await call
            assert info.value.stage == stage


async def test_a_box_that_no_longer_answers_is_lost_for_good(
    provider: SandboxProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalSandbox, "answer_grace", 0.3)
    monkeypatch.setattr(local, "CLOSE_SECONDS", 0.5)
    await (await provider.open(SandboxSpec())).close()
    before = descendants()
    async with provider.create(SandboxSpec()) as box:
        assert (await box.exec("sleep 0.2", timeout=0.1)).timed_out
        stopped = [pid for pid in descendants() - before if "-S" in command_line(pid)]
        assert stopped
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        with pytest.raises(SandboxLost, match="no answer in time"):
            await box.exec("true", timeout=0.1)
        started = time.monotonic()
        with pytest.raises(SandboxLost):
            await box.read_file("x")
        assert time.monotonic() - started < 1
        started = time.monotonic()
    assert time.monotonic() - started < 3  # it does not leave by itself
    assert not descendants() & set(stopped)


async def test_a_dead_agent_says_why(provider: SandboxProvider) -> None:
    async with provider.create(SandboxSpec()) as box:
        with pytest.raises(SandboxLost):
            await box._channel.request(b"?", [])  # type: ignore[attr-defined]
        with pytest.raises(SandboxLost, match="KeyError"):
            await box.exec("true")


# --- closing ----------------------------------------------------------------------------------------------------


@BOTH_LOOPS
async def test_closing_is_idempotent_and_shielded_and_may_come_from_many(any_provider: SandboxProvider) -> None:
    before = traces()
    box = await any_provider.open(SandboxSpec())
    await box.exec("(setsid sleep 987004 &)")
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(box.close)
        group.cancel_scope.cancel()
    await box.close()
    assert on_host("987004") == []
    with pytest.raises(SandboxLost, match="closed"):
        await box.exec("true")
    with pytest.raises(SandboxLost, match="closed"):
        await box.write_file("x", b"")
    assert_nothing_left(before)


async def test_closing_in_a_cancelled_scope_still_closes(any_provider: SandboxProvider) -> None:
    before = traces()
    with anyio.CancelScope() as scope:
        async with any_provider.create(SandboxSpec()) as box:
            await box.exec("(setsid sleep 987005 &)")
            scope.cancel()
            await anyio.sleep(1)
    assert on_host("987005") == []
    assert_nothing_left(before)


async def test_an_error_inside_closes_and_comes_through(any_provider: SandboxProvider) -> None:
    before = traces()
    with pytest.raises(ZeroDivisionError):  # noqa: PT012
        async with any_provider.create(SandboxSpec()) as box:
            await box.exec("(setsid sleep 987006 &)")
            raise ZeroDivisionError
    assert on_host("987006") == []
    assert_nothing_left(before)


def assert_nothing_left(before: tuple[set[str], set[int], set[str]]) -> None:
    descriptors, processes, folders = traces()
    assert len(descriptors) <= len(before[0])
    assert processes <= before[1]
    assert folders <= before[2]


# --- creation that fails ------------------------------------------------------------------------------------------


async def test_a_bwrap_that_fails_is_a_sandbox_error_with_its_words(
    provider: SandboxProvider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    await (await provider.open(SandboxSpec())).close()  # whatever is kept for the next box is there now
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin" / "bwrap"
    fake.write_text("#!/bin/sh\necho 'no permissions to create a new namespace' >&2; exit 1\n")
    for path in (fake, fake.parent):
        path.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "find_bwrap", lambda: str(fake))
    with pytest.raises(SandboxError, match="no permissions to create"):
        await provider.open(SandboxSpec())
    before = traces()
    for _ in range(3):
        with pytest.raises(SandboxError, match="no permissions to create") as caught:
            await provider.open(SandboxSpec())
        assert caught.value.stage == "create"
        assert caught.value.seconds is not None
    assert_nothing_left(before)
    failed = provider.probe()
    assert not failed.available
    assert "no permissions to create" in failed.error
    assert "kernel.apparmor_restrict_unprivileged_userns" in failed.error


async def test_a_bwrap_that_is_not_there_is_a_sandbox_error(
    provider: SandboxProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    await (await provider.open(SandboxSpec())).close()
    before = traces()
    monkeypatch.setattr(bubblewrap, "find_bwrap", lambda: "/no/such/bwrap")
    with pytest.raises(SandboxError, match="could not be started"):
        await provider.open(SandboxSpec())
    assert_nothing_left(before)


async def test_a_workdir_that_cannot_be_made_is_a_sandbox_error(provider: SandboxProvider) -> None:
    with pytest.raises(SandboxError, match="/usr/nowhere"):
        await provider.open(SandboxSpec(workdir="/usr/nowhere"))


async def test_a_python_that_does_not_run_is_refused(any_provider: SandboxProvider) -> None:
    before = traces()
    for name in ("/no/such/python", "/usr/bin/true", "/usr/bin/false", "/etc/passwd", "/usr", "python2.99", "9.9"):
        with pytest.raises(UnsupportedSpec, match=name.split("/")[-1]):
            await any_provider.open(SandboxSpec(python=name))
    assert_nothing_left(before)


# --- cancellation ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "anyio_backend", "seed", "lives"),
    [
        ("bubblewrap", "asyncio", 1, 200),
        ("bubblewrap", "asyncio", 2, 200),
        ("bubblewrap", ("asyncio", {"use_uvloop": True}), 3, 50),
        ("unsafe-subprocess", "asyncio", 4, 50),
    ],
    ids=["first", "second", "uvloop", "unsafe"],
)
async def test_cancelled_anywhere_nothing_is_left(
    name: str, seed: int, lives: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lives of a box, ten at once, each cancelled after a random time: while it is made, runs, exports, closes."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    provider, chance = provider_or_skip(name), random.Random(seed)
    await (await provider.open(SandboxSpec())).close()
    await anyio.to_thread.run_sync(lambda: None)
    before = traces()
    reached: set[str] = set()

    async def live(seconds: float | None) -> None:
        with anyio.move_on_after(seconds):
            async with provider.create(SandboxSpec()) as box:
                reached.add("created")
                await box.write_file("f", b"x" * 10_000)
                await box.exec("(setsid sleep 987007 &); cat f > g", stdin=b"x" * 100_000)
                reached.add("ran")
                await box.export(stop_processes=True)
                reached.add("exported")
                await box.exec("sleep 0.05")

    started = time.monotonic()
    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(live, None)
    longest = max(0.15, 1.2 * (time.monotonic() - started))  # on a busy machine they take longer
    reached.clear()
    for _ in range(lives // 10):
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(live, chance.random() ** 2 * longest)
    assert {"created", "ran"} <= reached
    assert on_host("987007") == []
    assert_nothing_left(before)


# --- the end of the host process -----------------------------------------------------------------------------

HOST = """
import anyio, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in a shell's background
from codeenv.sandbox import make_provider
from codeenv.sandbox.api import SandboxSpec

async def main():
    provider = make_provider(sys.argv[1])
    boxes = [await provider.open(SandboxSpec()) for _ in range(5)]
    for box in boxes:
        await box.exec(f"(setsid sleep {sys.argv[2]} &) ; (trap '' INT TERM HUP; setsid sleep {sys.argv[2]} &)")
    print("ready", flush=True)
    async with anyio.create_task_group() as group:
        for box in boxes[:3]:
            group.start_soon(box.exec, f"sleep {sys.argv[2]}")
anyio.run(main)
"""


def interrupt(pid: int) -> None:
    os.kill(pid, signal.SIGINT)
    time.sleep(0.02)
    os.kill(pid, signal.SIGINT)


def interrupt_group(pid: int) -> None:
    """As a terminal does it."""
    os.killpg(pid, signal.SIGINT)
    time.sleep(0.02)
    os.killpg(pid, signal.SIGINT)


ENDS = {
    "kill": lambda pid: os.kill(pid, signal.SIGKILL),
    "term": lambda pid: os.kill(pid, signal.SIGTERM),
    "interrupt-twice": interrupt,
    "group-interrupt-twice": interrupt_group,
}


async def test_when_the_host_process_ends_every_box_is_gone(any_provider: SandboxProvider, tmp_path: Path) -> None:
    async with anyio.create_task_group() as group:
        for end in ENDS:
            (tmp_path / end).mkdir()
            group.start_soon(anyio.to_thread.run_sync, end_a_host, any_provider.name, end, tmp_path / end)


def end_a_host(name: str, end: str, folder: Path) -> None:
    marker = f"987{random.SystemRandom().randrange(10**6):06}"
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, name, marker], env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=Path(__file__).parents[2], start_new_session=True,
    )  # fmt: skip
    with host:
        try:
            assert host.stdout is not None
            assert host.stdout.readline() == b"ready\n"
            time.sleep(0.3)
            assert len(on_host(marker)) >= 13
            ENDS[end](host.pid)
            host.wait(timeout=30)
        finally:
            host.kill()
    deadline = time.monotonic() + 2
    while (on_host(marker) or list(folder.iterdir())) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert on_host(marker) == [], end
    assert list(folder.iterdir()) == [], end


async def test_an_interrupt_of_the_terminal_does_not_reach_into_a_box(any_provider: SandboxProvider) -> None:
    """Ctrl-C goes to the whole foreground group; the host may still want to save the workspace."""
    async with any_provider.create(SandboxSpec()) as box:
        assert os.getsid(box.pid) != os.getsid(0)  # type: ignore[attr-defined]
        assert os.getpgid(box.pid) != os.getpgid(0)  # type: ignore[attr-defined]


async def test_a_host_with_very_many_descriptors_can_have_boxes(any_provider: SandboxProvider) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 3000:
        pytest.skip("the limit of open files is too low")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 3000), hard))
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(1500)]
    try:
        async with any_provider.create(SandboxSpec()) as box:
            assert (await box.exec("echo fine")).stdout == b"fine\n"
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_with_too_few_descriptors_left_a_creation_is_a_sandbox_error(any_provider: SandboxProvider) -> None:
    await (await any_provider.open(SandboxSpec())).close()
    before = traces()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    failed = 0
    for spare in range(24):  # it fails at another of its steps each time, until there are enough
        free = [os.dup(0) for _ in range(spare + 1)]  # the numbers that the next ones will have
        for descriptor in free:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free[spare], hard))
        try:
            async with any_provider.create(SandboxSpec()):
                pass
        except SandboxError as error:
            failed += "Too many open files" in str(error)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert_nothing_left(before)
    assert failed >= 3
    async with any_provider.create(SandboxSpec()) as box:
        assert (await box.exec("echo fine")).stdout == b"fine\n"
