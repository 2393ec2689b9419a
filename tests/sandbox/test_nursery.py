"""Boxes that are forked from a nursery: apart from each other and from it, and gone when it goes."""

from __future__ import annotations

import os
import signal
import threading
import time
import weakref
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from codeenv.sandbox import bubblewrap, nursery
from codeenv.sandbox.api import Sandbox, SandboxError, SandboxLost, SandboxProvider, SandboxSpec
from codeenv.sandbox.bubblewrap import BubblewrapProvider
from tests.conftest import MakeBox

pytestmark = pytest.mark.anyio


@pytest.fixture
async def boxes(make_box: MakeBox) -> list[Sandbox]:
    made = [await make_box(), await make_box()]
    if not all(isinstance(box._process, nursery.Ward) for box in made):  # type: ignore[attr-defined]
        pytest.skip("boxes are not forked here")
    return made


def nursery_of(box: Sandbox) -> nursery.Nursery:
    return box._process._nursery  # type: ignore[attr-defined]


def contents(path: str) -> bytes:
    return Path(path).read_bytes()


def status(pid: int, name: str) -> str:
    lines = contents(f"/proc/{pid}/status").decode().splitlines()
    return next(line.split(":", 1)[1].strip() for line in lines if line.startswith(f"{name}:"))


async def test_two_boxes_come_of_one_nursery_and_have_no_namespace_in_common(boxes: list[Sandbox]) -> None:
    one, two = boxes
    assert nursery_of(one) is nursery_of(two)
    parent = int(status(one.pid, "PPid"))  # type: ignore[attr-defined]
    assert int(status(two.pid, "PPid")) == parent  # type: ignore[attr-defined]
    names = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")
    command = " ".join(["readlink", *(f"/proc/self/ns/{name}" for name in names)])
    first, second = [(await box.exec(command)).stdout.decode().split() for box in boxes]
    assert len({*first, *second}) == 2 * len(names)
    if os.geteuid() == 0:
        theirs = {os.readlink(f"/proc/{parent}/ns/{name}") for name in names}
        assert not theirs & {*first, *second}


async def test_a_box_holds_no_descriptor_of_another_or_of_the_nursery(boxes: list[Sandbox]) -> None:
    if os.geteuid():
        pytest.skip("only root may look")
    seen: list[set[str]] = []
    for box in boxes:
        folder = f"/proc/{box.pid}/fd"  # type: ignore[attr-defined]
        held = {int(name): os.readlink(f"{folder}/{name}") for name in os.listdir(folder)}
        assert held[0] == held[1]
        others = [target for number, target in held.items() if number > 2]
        assert all(target.startswith("pipe:") for target in others), held
        assert len(others) == 2  # what wakes it
        seen.append(set(held.values()))
    assert not seen[0] & seen[1]


async def test_a_nursery_has_no_rights_on_the_host_and_nothing_to_tell(boxes: list[Sandbox]) -> None:
    parent = int(status(boxes[0].pid, "PPid"))  # type: ignore[attr-defined]
    assert status(parent, "CapEff") == f"{1 << 6 | 1 << 7:016x}"  # to give its boxes their users, in its own namespace
    assert status(parent, "NoNewPrivs") == "1"
    assert status(parent, "Seccomp") == "0"
    if os.geteuid() == 0:
        assert contents(f"/proc/{parent}/environ") == b"LD_BIND_NOW=1\0PWD=/\0"
        for box in boxes:
            assert status(parent, "Uid") != status(box.pid, "Uid")  # type: ignore[attr-defined]


async def test_the_process_limit_is_each_boxs_own(make_box: MakeBox) -> None:
    many = [await make_box(processes=40) for _ in range(4)]
    for box in many:
        result = await box.exec("for i in $(seq 25); do setsid sleep 30 & done")
        assert b"Resource" not in result.stderr
    full = await many[0].exec("for i in $(seq 60); do sleep 30 & done; wait", timeout=2)
    assert b"Resource temporarily unavailable" in full.stderr
    assert (await many[1].exec("ps -e | grep -c sleep")).stdout == b"25\n"


async def test_boxes_differ_in_size_and_workdir(provider: SandboxProvider) -> None:
    async with (
        provider.create(SandboxSpec(disk_mb=7)) as one,
        provider.create(SandboxSpec(disk_mb=9, workdir="/tmp/a/b")) as two,
        provider.create(SandboxSpec(disk_mb=9, workdir="/srv/a/b")) as three,
    ):
        for box, megabytes in ((one, 7), (two, 9), (three, 9)):
            size = (await box.exec("pwd; touch x; df -m --output=size . /tmp")).stdout.decode().split()
            assert size == [box.workdir, "1M-blocks", str(megabytes), str(megabytes)]


async def test_when_the_nursery_dies_its_boxes_die_and_the_next_has_another(
    provider: SandboxProvider, boxes: list[Sandbox]
) -> None:
    one, two = boxes
    pids = [box.pid for box in boxes]  # type: ignore[attr-defined]
    parent = int(status(one.pid, "PPid"))  # type: ignore[attr-defined]
    await one.exec("(setsid sleep 50 &)")
    os.kill(parent, signal.SIGKILL)
    for box in (one, two):
        with pytest.raises(SandboxLost):
            await box.exec("sleep 5")
        await box.close()
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)  # noqa: ASYNC240
    async with provider.create(SandboxSpec()) as box:
        assert (await box.exec("echo fine")).stdout == b"fine\n"
        assert nursery_of(box) is not nursery_of(one)


async def test_a_nursery_that_hangs_does_not_keep_a_box_from_closing(
    provider: SandboxProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeenv.sandbox.local.CLOSE_SECONDS", 0.3)
    box = await provider.open(SandboxSpec())
    pid: int = box.pid  # type: ignore[attr-defined]
    os.kill(int(status(pid, "PPid")), signal.SIGSTOP)
    started = time.monotonic()
    await box.close()
    assert time.monotonic() - started < 2
    assert not os.path.exists(f"/proc/{pid}")  # noqa: ASYNC240


async def test_a_thread_has_a_nursery_of_its_own_which_goes_with_it(
    provider: SandboxProvider, boxes: list[Sandbox]
) -> None:
    found: list[nursery.Nursery] = []

    async def use() -> None:
        async with provider.create(SandboxSpec()) as box:
            found.append(nursery_of(box))

    thread = threading.Thread(target=lambda: anyio.run(use))
    thread.start()
    await anyio.to_thread.run_sync(thread.join)
    process = found.pop().process
    assert process is not nursery_of(boxes[0]).process
    assert process.returncode is not None
    assert (await boxes[0].exec("echo fine")).stdout == b"fine\n"


async def test_a_fork_of_the_host_that_ends_leaves_the_nursery_alone(boxes: list[Sandbox]) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            weakref.finalize._exitfunc()  # type: ignore[attr-defined]  as at the end of an interpreter
        finally:
            os._exit(0)
    os.waitpid(pid, 0)  # noqa: ASYNC222
    for box in boxes:
        assert (await box.exec("echo fine")).stdout == b"fine\n"


async def test_where_boxes_cannot_be_forked_each_is_started(
    provider: SandboxProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> bubblewrap.Berth:
        raise SandboxError("not here", stage="create")

    monkeypatch.setattr(BubblewrapProvider, "_forks", None)
    monkeypatch.setattr(bubblewrap, "_berth", fail)
    async with provider.create(SandboxSpec()) as box:
        assert (await box.exec("echo fine")).stdout == b"fine\n"
        assert not isinstance(box._process, nursery.Ward)  # type: ignore[attr-defined]
    assert BubblewrapProvider._forks is False
