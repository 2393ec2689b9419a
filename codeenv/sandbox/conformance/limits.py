"""What a box may use up, where the backend has a hard ceiling: the command pays for it, and the box goes on."""

from __future__ import annotations

import errno

from codeenv.sandbox.api import Hardness, Sandbox, SandboxProvider, SandboxSpec
from codeenv.sandbox.conformance.support import NotPromised, failure, in_time, smaller

_FORKS = """
import os, signal, time
children = []
try:
    for _ in range(400):
        child = os.fork()
        if child == 0:
            time.sleep(600)
            os._exit(0)
        children.append(child)
except OSError:
    pass
for child in children:
    os.kill(child, signal.SIGKILL)
for child in children:
    os.waitpid(child, 0)
print(len(children))
"""


def _hard(what: str, hardness: Hardness) -> None:
    if hardness != "hard":
        raise NotPromised(f"its ceiling on {what} is {hardness!r}, not 'hard'")


async def _works(box: Sandbox) -> None:
    with in_time():
        assert (await box.exec("echo fine | cat; exit 3")).exit_code == 3


async def check_memory_is_bounded(provider: SandboxProvider, spec: SandboxSpec) -> None:
    """A command that takes four times the box's memory fails, and the box goes on."""
    _hard("memory", provider.capabilities.memory)
    async with provider.create(smaller(provider, spec, memory_mb=256, disk_mb=16)) as box:
        assert (await box.exec("exec python3 -c 'x = b\"x\" * (50 << 20)'")).exit_code == 0
        result = await box.exec("exec python3 -c 'x = b\"x\" * (1024 << 20)'")
        assert result.exit_code not in (0, 127), result
        assert not result.timed_out, result
        await _works(box)


async def check_processes_together_are_bounded_in_memory(provider: SandboxProvider, spec: SandboxSpec) -> None:
    """Processes that each keep below the box's memory are over it together: some go, and the box goes on."""
    _hard("memory", provider.capabilities.memory)
    hog = "python3 -S -c 'x = b\"x\" * (150 << 20); import time; time.sleep(1)'"
    async with provider.create(smaller(provider, spec, memory_mb=256, disk_mb=16)) as box:
        script = f"for i in 1 2 3 4 5 6; do {hog} & pids+=($!); done; for p in ${{pids[@]}}; do wait $p || exit 9; done"
        result = await box.exec(script, timeout=60)
        assert result.exit_code in (9, 137), result
        await _works(box)


async def check_processes_are_bounded(provider: SandboxProvider, spec: SandboxSpec) -> None:
    """No more processes than the spec's can be started, and the next command finds room."""
    _hard("processes", provider.capabilities.processes)
    async with provider.create(smaller(provider, spec, processes=60)) as box:
        with in_time(20):
            result = await box.exec(["python3", "-S", "-c", _FORKS])
        assert result.exit_code == 0, result
        assert 10 < int(result.stdout) < 60, result
        await _works(box)


async def check_a_fork_bomb_is_bounded(provider: SandboxProvider, spec: SandboxSpec) -> None:
    """A fork bomb ends at its time limit, and the next command works."""
    _hard("processes", provider.capabilities.processes)
    async with provider.create(smaller(provider, spec, processes=60)) as box:
        with in_time(20):
            result = await box.exec(":(){ :|:& };: ; while :; do :; done", timeout=0.5, output_limit=1000)
        assert result.timed_out, result
        await _works(box)


async def check_the_disk_is_bounded(provider: SandboxProvider, spec: SandboxSpec) -> None:
    """Neither a command nor a call can write more than the disk holds, and what is removed is room again."""
    _hard("disk", provider.capabilities.disk)
    async with provider.create(smaller(provider, spec, disk_mb=16)) as box:
        result = await box.exec("for i in 1 2 3 4 5 6 7 8; do head -c 4000000 /dev/zero > $i || exit 9; done")
        assert result.exit_code == 9, result
        error = await failure(box.write_file("big", b"x" * 20_000_000), OSError)
        assert error.errno in (errno.ENOSPC, errno.EFBIG), error
        await _works(box)
        await box.exec("rm -f -- *")
        await box.write_file("again", b"x" * 4_000_000)
        assert len(await box.read_file("again")) == 4_000_000


async def check_what_is_saved_is_bounded_by_the_disk(provider: SandboxProvider, spec: SandboxSpec) -> None:
    """Output that fills the disk is saved as far as it goes, without a gap, and the command runs to its end."""
    _hard("disk", provider.capabilities.disk)
    async with provider.create(smaller(provider, spec, disk_mb=8)) as box:
        result = await box.exec("seq 1 10000000 | head -c 20000000; exit 6", save_to="saved", output_limit=1000)
        assert (result.exit_code, result.stdout_bytes) == (6, 20_000_000), result
        saved = await box.read_file("saved")
        assert 2_000_000 < len(saved) == result.saved_bytes <= 8 * 1024 * 1024
        assert saved == b"".join(b"%d\n" % n for n in range(1, 1_500_000))[: len(saved)]
        await _works(box)
