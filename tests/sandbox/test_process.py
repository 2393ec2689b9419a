"""A live process in a box: what goes in and out, how it ends, and that nothing of it stays."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

import anyio
import pytest

from codeenv.sandbox.api import Sandbox, SandboxLost, SandboxProvider, SandboxSpec
from codeenv.sandbox.conformance.support import marker, on_host

pytestmark = pytest.mark.anyio
BOTH_LOOPS = pytest.mark.parametrize(
    "anyio_backend", ["asyncio", ("asyncio", {"use_uvloop": True})], ids=["asyncio", "uvloop"]
)
ECHO = ["cat"]


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def everything(process) -> bytes:
    data = b""
    while piece := await process.receive():
        data += piece
    return data


async def gone(argument: str) -> bool:
    """Whether no process with that argument is left: two looks see none, as one that is just being exchanged for
    another has no arguments that could be seen."""
    with anyio.move_on_after(5):
        looks = 0
        while looks < 2:
            looks = 0 if on_host(argument) else looks + 1
            await anyio.sleep(0.02)
        return True
    for pid in on_host(argument):
        print(Path(f"/proc/{pid}/status").read_text())  # noqa: ASYNC240 - for whoever reads why it failed
    return False


@BOTH_LOOPS
async def test_bytes_go_both_ways_and_the_end_is_told(any_provider: SandboxProvider) -> None:
    async with any_provider.create(SandboxSpec()) as box:
        script = "read line; echo got $line; echo oops >&2; exit 3"
        async with box.open_process(script) as process:
            await process.send(b"hello\n")
            assert await everything(process) == b"got hello\n"
            ended = await process.wait()
            assert (ended.exit_code, ended.stdout, ended.stderr, ended.timed_out) == (3, b"", b"oops\n", False)
            assert (await process.wait()) == ended


@BOTH_LOOPS
async def test_many_messages_beside_other_calls(any_provider: SandboxProvider) -> None:
    """Nobody reads the box's control socket while we talk to the process, and then somebody does."""
    async with any_provider.create(SandboxSpec()) as box, box.open_process(ECHO) as process:
        async with anyio.create_task_group() as group:
            group.start_soon(process.wait)
            for number in range(50):
                await process.send(b"%d" % number)
                assert await process.receive() == b"%d" % number
                if number % 10 == 0:
                    assert (await box.exec(f"echo {number}")).stdout == b"%d\n" % number
            group.cancel_scope.cancel()
        with anyio.fail_after(5):
            assert (await box.exec("echo after")).stdout == b"after\n"


@pytest.mark.parametrize(
    ("command", "cwd", "error"),
    [
        pytest.param("true", "missing", FileNotFoundError, id="no-directory"),
        pytest.param([], ".", ValueError, id="empty"),
        pytest.param(["a\0b"], ".", ValueError, id="nul"),
    ],
)
async def test_what_cannot_be_started(any_box: Sandbox, command, cwd: str, error: type[Exception]) -> None:
    before = descriptors()
    with pytest.raises(error):
        async with any_box.open_process(command, cwd=cwd):
            pass
    assert descriptors() == before


async def test_a_command_that_is_not_there(any_box: Sandbox) -> None:
    async with any_box.open_process(["no-such-command"]) as process:
        ended = await process.wait()
        assert ended.exit_code == 127
        assert b"cannot run 'no-such-command'" in ended.stderr
        assert await process.receive() == b""
        with pytest.raises(BrokenPipeError):
            await process.send(b"x")


@BOTH_LOOPS
async def test_leaving_the_block_kills_it(any_provider: SandboxProvider) -> None:
    seconds = marker()
    async with any_provider.create(SandboxSpec()) as box:
        async with box.open_process(ECHO):
            pass  # uvloop keeps a descriptor of its own from its first stream on
        before = descriptors()
        for cancelled in (False, True):
            with anyio.CancelScope() as scope:
                async with box.open_process(f"setsid sleep {seconds} & echo started; sleep {seconds}") as process:
                    assert await process.receive() == b"started\n"
                    if cancelled:
                        scope.cancel()
                        await process.receive()
            assert await gone(seconds)
        assert descriptors() == before
        assert (await box.exec("echo well")).stdout == b"well\n"


@BOTH_LOOPS
async def test_cancelled_at_any_moment_of_its_start_nothing_stays(any_provider: SandboxProvider) -> None:
    seconds = marker()
    async with any_provider.create(SandboxSpec()) as box:
        async with box.open_process(ECHO):
            pass
        before = descriptors()
        for step in range(12):
            with anyio.move_on_after(step * 0.0005):
                async with box.open_process(["sleep", seconds]):
                    pass
        assert (await box.exec("true")).exit_code == 0  # all frames of theirs have been read
        assert await gone(seconds)
        assert descriptors() == before


async def test_it_dies_with_its_box(any_provider: SandboxProvider) -> None:
    seconds = marker()
    before = descriptors()
    box = await any_provider.open(SandboxSpec())
    async with box.open_process(["sleep", seconds]) as process:
        await box.close()
        assert await process.receive() == b""
        with pytest.raises(SandboxLost):
            await process.wait()
        assert await gone(seconds)
    assert descriptors() == before


async def test_a_lost_box_is_told_to_who_waits(provider: SandboxProvider) -> None:
    async with provider.create(SandboxSpec()) as box, box.open_process(ECHO) as process:
        async with anyio.create_task_group() as group:

            async def wait() -> None:
                with pytest.raises(SandboxLost):
                    await process.wait()

            group.start_soon(wait)
            await anyio.sleep(0.05)
            os.kill(box.pid, signal.SIGKILL)  # type: ignore[attr-defined]
        assert await process.receive() == b""


async def test_a_process_holds_only_its_own_descriptors(any_box: Sandbox) -> None:
    async with any_box.open_process(ECHO), any_box.open_process("ls /proc/self/fd; echo .") as process:
        assert set((await everything(process)).split()) <= {b"0", b"1", b"2", b"3", b"."}


async def test_when_we_have_no_descriptor_left_it_says_so(any_box: Sandbox) -> None:
    held = []
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors() + 8, hard))
    try:
        try:
            while True:
                held.append(os.dup(0))
        except OSError:
            pass
        with pytest.raises(OSError, match="Too many open files"):
            async with any_box.open_process(ECHO):
                pass
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    async with any_box.open_process(ECHO) as process:
        await process.send(b"again")
        assert await process.receive() == b"again"


OURS = ["python3", "-I", "-S", "-B", "-c"]
STATE = """
import os, signal, sys
print(sys.argv, __name__, sys.flags.isolated, sys.flags.no_site, sys.flags.dont_write_bytecode, os.getcwd())
print(sorted(os.environ.items()) == sorted(
    tuple(pair.split("=", 1)) for pair in open("/proc/self/environ").read().split("\\0") if pair) or "forked")
print([str(signal.getsignal(number)) for number in (2, 10, 13, 14, 15, 17, 25)], sys.path)
print(sorted(os.listdir("/proc/self/fd")), os.getsid(0) == os.getpid(), sys.executable)
print(os.environ.get("OWN"), os.nice(0), os.umask(0o22))
"""


async def told(box: Sandbox, argv: list[str]) -> list[str]:
    async with box.open_process(argv, cwd=".", env={"OWN": "7"}) as process:
        said = await everything(process)
        done = await process.wait()
        assert done.exit_code == 0, done
    return said.decode().splitlines()


async def test_a_python_that_is_forked_is_like_one_that_is_started(provider: SandboxProvider) -> None:
    """The agent makes those that are started as it was of itself."""
    async with provider.create(SandboxSpec()) as box:
        started = await told(box, ["python3", "-I", "-B", "-S", "-c", STATE, "one", "two"])
        forked = await told(box, [*OURS, STATE, "one", "two"])
        assert started.pop(1) == "True"
        assert forked.pop(1) == "forked"
        assert forked == started


@pytest.mark.parametrize(
    ("program", "code", "out", "err"),
    [
        ("print('no newline', end='')", 0, b"no newline", b""),
        ("import sys; print('x'); sys.exit(3)", 3, b"x\n", b""),
        ("raise SystemExit", 0, b"", b""),
        ("raise KeyError('gone')", 1, b"", b"KeyError: 'gone'"),
        ("import os; os._exit(9)", 9, b"", b""),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 137, b"", b""),
        ("import atexit; atexit.register(print, 'last')", 0, b"last\n", b""),
        ("import threading; threading.Timer(0.1, print, ['thread']).start()", 0, b"thread\n", b""),
        ("import subprocess; print(subprocess.getoutput('echo child'))", 0, b"child\n", b""),
        ("def f(", 1, b"", b"SyntaxError"),
        ("print(len({'a', 'b'}), __import__('random').random() < 1)", 0, b"2 True\n", b""),
    ],
    ids=["flush", "exit", "exit-none", "error", "leave", "killed", "atexit", "thread", "child", "syntax", "plain"],
)  # fmt: skip
async def test_the_end_of_a_forked_python(
    provider: SandboxProvider, program: str, code: int, out: bytes, err: bytes
) -> None:
    async with provider.create(SandboxSpec()) as box, box.open_process([*OURS, program]) as process:
        said = await everything(process)
        done = await process.wait()
    assert (said, done.exit_code) == (out, code), done
    assert err in done.stderr


async def test_a_forked_python_is_not_the_agent(provider: SandboxProvider) -> None:
    """It can be killed with its children, and cannot get at the agent that it was."""
    program = "import os, time; os.fork() or time.sleep(987.25); print(os.getppid(), flush=True); time.sleep(987.25)"
    look = "for fd in range(3, 200):\n    try: os.fstat(fd); print('open', fd)\n    except OSError: pass\n"
    trace = "import ctypes; print(ctypes.CDLL(None).ptrace(16, 1, 0, 0))"
    async with provider.create(SandboxSpec()) as box:
        async with box.open_process([*OURS, program]) as process:
            assert (await process.receive()).strip().isdigit()
        assert (await box.exec("cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 987.2[5] || true")).stdout == b"0\n"
        async with box.open_process([*OURS, f"import os\n{look}"]) as process:
            assert await process.receive() == b""
        async with box.open_process([*OURS, trace]) as process:
            assert (await process.receive()).strip() == b"-1"
