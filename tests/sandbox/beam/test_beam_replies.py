"""Replies that are lost, late, cut off or given twice: what was asked for happens once, and its answer is whole."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import grpc
import pytest

from codeenv.sandbox.api import SandboxLost, SandboxSpec
from codeenv.sandbox.archive import Archive
from codeenv.sandbox.beam import line
from codeenv.sandbox.beam.sandbox import BeamSandbox
from tests.beam_gateway.processes import Run
from tests.beam_gateway.server import Gateway
from tests.sandbox.beam.support import beam, opened, serving

pytestmark = pytest.mark.anyio
Code = grpc.StatusCode
DATA = os.urandom(5_000_000)

OFTEN = "unavailable-after", "late-before", "twice-and-lost", "not-connected-before"
FAULTS: dict[str, dict[str, Any]] = {
    "unavailable-before": {"status": Code.UNAVAILABLE},
    "unavailable-after": {"status": Code.UNAVAILABLE, "after": True},
    "late-before": {"status": Code.DEADLINE_EXCEEDED},
    "late-after": {"status": Code.DEADLINE_EXCEEDED, "after": True},
    "reset-after": {"status": Code.INTERNAL, "details": "Received RST_STREAM with error code 2", "after": True},
    "hangs-after": {"hang": True, "after": True},
    "twice": {"copies": 2},
    "twice-and-lost": {"copies": 2, "status": Code.UNAVAILABLE, "after": True},
    "not-connected-before": {"answer": {"ok": False, "error_msg": "Failed to connect to sandbox"}},
    "not-connected-after": {"answer": {"ok": False, "error_msg": "Failed to connect to sandbox"}, "after": True},
}


@pytest.fixture(scope="module")
async def lasting(anyio_backend: Any) -> AsyncIterator[tuple[Gateway, BeamSandbox]]:
    async with serving() as gateway:
        box = await opened(beam(gateway))
        yield gateway, box
        await box.close()


@pytest.fixture
async def gateway(lasting: tuple[Gateway, BeamSandbox]) -> AsyncIterator[Gateway]:
    """One for all tests: none of them leaves a fault, or hurts the box."""
    yield lasting[0]
    lasting[0].faults.clear()
    await lasting[1].exec("find . -mindepth 1 -delete")


@pytest.fixture
def box(lasting: tuple[Gateway, BeamSandbox], gateway: Gateway) -> BeamSandbox:
    return lasting[1]


async def short_command(box: BeamSandbox) -> None:
    result = await box.exec("echo >>ran; echo out; echo err >&2; exit 3")
    assert (result.exit_code, result.stdout, result.stderr) == (3, b"out\n", b"err\n")


async def long_command(box: BeamSandbox) -> None:
    result = await box.exec("sleep 0.4; echo >>ran; echo out", timeout=30)
    assert (result.exit_code, result.stdout, result.timed_out) == (0, b"out\n", False)


async def big_command(box: BeamSandbox) -> None:
    """What goes in is uploaded, what comes out is in several pieces."""
    result = await box.exec("echo >>ran; cat", stdin=DATA[:900_000], output_limit=2_000_000)
    assert result.stdout == DATA[:900_000]


async def append(box: BeamSandbox) -> None:
    """A file above one request is written piece by piece: none may come twice."""
    await box.exec("echo >>ran")
    await box.write_file("big", DATA[:2_500_000])
    assert await box.read_file("big") == DATA[:2_500_000]


async def stream(box: BeamSandbox) -> None:
    async with box.open_process("echo >>ran; cat") as process:
        for word in (b"one", b"two", b"three"):
            await process.send(word)
            got = b""
            while len(got) < len(word):
                got += await process.receive()
            assert got == word
        await process.kill()
        assert (await process.wait()).exit_code == 137


RPCS: dict[str, tuple[str, Callable[[BeamSandbox], Awaitable[None]]]] = {
    "exec": ("SandboxExec", short_command),
    "status": ("SandboxStatus", long_command),
    "stdout": ("SandboxStdout", long_command),
    "upload": ("SandboxUploadFile", big_command),
    "pieces": ("SandboxExec", append),
    "process": ("SandboxExec", stream),
}


@pytest.mark.parametrize(
    ("name", "fault"), [(name, fault) for name in RPCS for fault in (FAULTS if name == "exec" else OFTEN)]
)
async def test_a_call_meets_a_fault(gateway: Gateway, box: BeamSandbox, name: str, fault: str) -> None:
    rpc, call = RPCS[name]
    hits = [gateway.faults.add(rpc, skip=skip, **FAULTS[fault]) for skip in (0, 1)]
    await call(box)
    assert hits[0].hits == 1
    gateway.faults.clear()
    assert await box.read_file("ran") == b"\n"


async def test_a_copy_that_comes_long_after_the_answer(gateway: Gateway, box: BeamSandbox) -> None:
    """The first goes astray, the second is answered; then the first arrives, and later a third."""
    fault = gateway.faults.add("SandboxExec", delay=1.5, again=0.3)  # longer than we wait
    assert (await box.exec("echo >>ran; echo out")).stdout == b"out\n"
    assert fault.hits == 1
    assert (await box.exec("echo next")).stdout == b"next\n"
    await anyio.sleep(1.8)
    assert await box.read_file("ran") == b"\n"
    assert (await box.exec("echo last")).stdout == b"last\n"


@pytest.mark.parametrize("what", ["cleared", "cut", "cut-to-whole-bytes"])
async def test_output_that_is_lost_or_cut_off(
    gateway: Gateway, box: BeamSandbox, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, lost = Run.take, [0, 2, 3, 5, 8]
    count = 0

    def cut(run: Run, stream: bytes, limit: int) -> str:
        nonlocal count
        said = take(run, stream, limit)
        if stream != b"o":
            return said
        count += 1
        if count - 1 not in lost:
            return said
        half = len(said) // 2
        return {"cleared": "", "cut": said[:-5], "cut-to-whole-bytes": said[: half - half % 4 + 1]}[what]

    monkeypatch.setattr(Run, "take", cut)
    assert (await box.exec("echo >>ran; echo out")).stdout == b"out\n"
    assert (await box.exec("echo >>ran; head -c 3000000 /dev/zero", output_limit=4_000_000)).stdout == bytes(3_000_000)
    assert await box.read_file("ran") == b"\n\n"
    assert count > 8


async def test_output_that_never_comes_through(box: BeamSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Run, "take", lambda *_: "")
        with pytest.raises(SandboxLost, match="answers do not come through"):
            await box.exec("true")


async def test_five_megabytes_each_way_while_replies_are_lost(gateway: Gateway, box: BeamSandbox) -> None:
    for rpc in ("SandboxExec", "SandboxUploadFile"):
        for skip in (1, 2, 3, 5, 8):
            gateway.faults.add(rpc, skip=skip, status=Code.UNAVAILABLE, after=skip % 2 == 0)
    await box.import_(Archive.of({"a": DATA, "b/c": DATA[:100]}))
    assert {entry.path: entry.data for entry in await box.export() if entry.kind == "file"} == {
        "a": DATA, "b/c": DATA[:100],
    }  # fmt: skip
    result = await box.exec("sha256sum; cat a", stdin=DATA, output_limit=20_000_000)
    assert result.stdout.endswith(DATA)


@pytest.mark.parametrize("down", [0.0, 0.8], ids=["at-once", "later"])
@pytest.mark.parametrize("grace", [None, 0.2], ids=["cut", "told-to-go"])
async def test_a_gateway_that_restarts_mid_command(
    gateway: Gateway, box: BeamSandbox, grace: float | None, down: float
) -> None:
    results: dict[str, bytes] = {}

    async def run(name: str, command: str) -> None:
        results[name] = (await box.exec(command, timeout=30)).stdout

    async def process() -> None:
        async with box.open_process("sleep 0.7; echo >>ran; echo out; sleep 60") as live:
            results["process"] = await live.receive()

    async with anyio.create_task_group() as group:
        group.start_soon(run, "long", "echo >>ran; sleep 1.5; echo long")
        group.start_soon(run, "short", "echo >>ran; sleep 0.5; echo short")
        group.start_soon(process)
        await anyio.sleep(0.3)
        await gateway.restart(grace=grace, down=down)
    assert results == {"long": b"long\n", "short": b"short\n", "process": b"out\n"}
    assert await box.read_file("ran") == b"\n\n\n"


async def test_a_gateway_that_ends_connections_of_an_age() -> None:
    async with serving(connection_age=0.3) as gateway:
        box = await opened(beam(gateway))
        for number in range(8):
            assert (await box.exec(f"echo >>ran; sleep 0.15; echo {number}")).stdout == b"%d\n" % number
        assert await box.read_file("ran") == b"\n" * 8
        await box.close()


@pytest.mark.parametrize("restarts", [False, True], ids=["steady", "restarted"])
async def test_more_commands_than_the_agent_has_slots(gateway: Gateway, box: BeamSandbox, restarts: bool) -> None:
    """What was sent again must not keep the slots of what it repeats."""
    said: list[bytes] = []

    async def run(number: int) -> None:
        said.append((await box.exec(f"sleep 1; echo {number}")).stdout)

    async with anyio.create_task_group() as group:
        for number in range(40):
            group.start_soon(run, number)
        if restarts:
            for _ in range(2):
                await anyio.sleep(0.2)
                await gateway.restart()
    assert sorted(said) == sorted(b"%d\n" % number for number in range(40))
    assert (await box.exec("echo fine")).stdout == b"fine\n"


async def test_commands_that_wait_keep_nobody_out(gateway: Gateway, box: BeamSandbox) -> None:
    """Though there are more than slots, and sent more than once: what is short has its turn, and what ends them too."""
    async with anyio.create_task_group() as group:
        for _ in range(40):
            group.start_soon(box.exec, "sleep 78")
        await anyio.sleep(0.5)
        await gateway.restart()
        await anyio.sleep(0.5)
        for number in range(3):
            with anyio.fail_after(10):
                assert (await box.exec(f"echo {number}")).stdout == b"%d\n" % number
        with anyio.fail_after(10):
            while (await box.exec("pgrep -cf '^sleep 78'")).stdout != b"40\n":
                await anyio.sleep(0.1)
        group.cancel_scope.cancel()
    assert (await box.exec("pgrep -cf '^sleep 78'")).stdout == b"0\n"


async def test_a_receive_that_is_cancelled_loses_nothing(box: BeamSandbox) -> None:
    async with box.open_process("for i in $(seq 40); do echo $i; sleep 0.03; done") as process:
        got = b""
        while not got.endswith(b"40\n"):
            with anyio.move_on_after(0.05):
                got += await process.receive()
        assert got.split() == [b"%d" % number for number in range(1, 41)]
        assert await process.receive() == b""


async def test_a_send_that_is_cancelled_loses_no_answer(box: BeamSandbox) -> None:
    chance = random.Random(7)
    async with box.open_process("while read -r line; do echo $line; done; echo end") as process:
        for number in range(30):
            with anyio.move_on_after(chance.uniform(0.0, 0.03)):
                await process.send(b"%d\n" % number)
        await process.send(b"last\n")
        got = b""
        while not got.endswith(b"last\n"):
            got += await process.receive()
    words = [int(word) for word in got.split()[:-1]]
    assert words == sorted(set(words))  # each once, if at all


@pytest.mark.parametrize(
    ("rpc", "call"), [("SandboxExec", short_command), ("SandboxStatus", long_command), ("SandboxUploadFile", append)]
)
@pytest.mark.parametrize("code", [Code.INVALID_ARGUMENT, Code.UNIMPLEMENTED, Code.UNKNOWN])
async def test_what_the_server_refuses_is_not_tried_again(
    gateway: Gateway, box: BeamSandbox, rpc: str, call: Callable[[BeamSandbox], Awaitable[None]], code: grpc.StatusCode
) -> None:
    fault = gateway.faults.add(rpc, times=None, status=code, details="of no avail")
    with pytest.raises(SandboxLost, match=f"refuses {rpc}: {code.name} of no avail"):
        await call(box)
    assert fault.hits == 1
    gateway.faults.clear()
    assert (await box.exec("echo fine")).stdout == b"fine\n"


async def test_a_disk_that_the_policy_has_filled() -> None:
    """Its doing: commands still run, and what needs room fails as it does for any program."""
    async with serving(spec=SandboxSpec(disk_mb=8)) as gateway:
        box = await opened(beam(gateway), disk_mb=8)
        await box.write_file("kept", DATA)
        fill = "while :; do for n in 1 2 3; do cat /dev/zero >>/tmp/fill.$n; done; sleep 0.01; done"
        await box.exec(f"({fill}) 2>/dev/null & sleep 0.5")
        assert (await box.exec("echo fine; exit 3")).exit_code == 3
        for call in (box.export(), box.read_file("kept"), box.write_file("more", DATA)):
            with pytest.raises(OSError, match="No space left") as raised:
                await call
            assert raised.value.errno == errno.ENOSPC
        await box.exec("pkill -f '[z]ero'; rm /tmp/fill.*")
        assert await box.read_file("kept") == DATA
        await box.close()


async def test_a_revoked_token() -> None:
    async with serving() as gateway:
        box = await opened(beam(gateway))
        old, new = gateway.token, gateway.revoke()
        with pytest.raises(
            SandboxLost, match=r"does not accept the token .*run `beam login` or set BEAM_TOKEN"
        ) as raised:
            await box.exec("true")
        assert old not in str(raised.value)
        assert new not in str(raised.value)
        await box.close()
        (left,) = gateway.active()
        await gateway.kill(left.id, 558)


async def test_requests_are_few(gateway: Gateway, box: BeamSandbox) -> None:
    """One call for a short command, and none that looks after it."""
    before = gateway.calls.total()
    for _ in range(10):
        await box.exec("true")
    assert gateway.calls.total() - before == 10
    assert line.AT_ONCE < 32
