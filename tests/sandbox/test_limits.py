"""What a box may use up: the command pays, the next one works, and a neighbour hardly notices."""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path

import anyio
import pytest

from codeenv.sandbox.api import Sandbox, SandboxProvider, SandboxSpec
from tests.conftest import MakeBox

pytestmark = pytest.mark.anyio

BOMBS = {
    "bash": ":(){ :|:& };: ; while :; do :; done",
    "python": """exec python3 -c '
import os
while True:
    try: os.fork()
    except OSError: pass'""",
    "threads": """exec python3 -c '
import threading, time
while True:
    try: threading.Thread(target=lambda: [None for _ in iter(int, 1)]).start()
    except RuntimeError: time.sleep(0.001)'""",
}


@pytest.mark.alone
@pytest.mark.parametrize("bomb", BOMBS)
async def test_a_fork_bomb_is_bounded_and_a_neighbour_hardly_notices(make_box: MakeBox, bomb: str) -> None:
    victim, neighbour = await make_box(processes=200), await make_box()
    await neighbour.exec("true")
    waits: list[float] = []

    async def explode() -> None:
        result = await victim.exec(BOMBS[bomb], timeout=1, output_limit=1000)
        assert result.timed_out
        assert result.seconds < 6
        done.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(explode)
        with anyio.CancelScope() as done:
            await anyio.sleep(0.2)
            most = 0
            while True:
                started = time.monotonic()
                await neighbour.exec("true")
                waits.append(time.monotonic() - started)
                most = max(most, threads_of(victim))
    assert statistics.median(waits) < 0.25
    assert len(waits) > 3
    if os.geteuid() == 0:  # memory, then its own noise, hold threads back sooner
        assert (4 if bomb == "threads" else 50) < most <= 210
    started = time.monotonic()
    assert (await victim.exec("echo fine | cat")).stdout == b"fine\n"
    assert time.monotonic() - started < 3
    assert (await victim.exec("ps -e | wc -l")).stdout.strip() in (b"5", b"6")  # the header, the agent, and these


def threads_of(box: Sandbox) -> int:
    """Counted from outside, of the user that root gave the box; a plain user's boxes cannot be told apart."""
    owner, total = os.stat(f"/proc/{box.pid}").st_uid, 0  # type: ignore[attr-defined]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.stat().st_uid == owner:
                total += len(list((process / "task").iterdir()))
        except OSError:
            continue
    return total


FILL = """exec python3 -c '
import os, time
for _ in range(60):
    try: os.fork() or (os.setsid(), time.sleep(60))
    except OSError: break' """


async def test_processes_left_in_the_background_make_room_and_it_is_said(make_box: MakeBox) -> None:
    box = await make_box(processes=30)
    before = await box.exec("setsid sleep 60 & echo ok")
    assert (before.stdout, before.notice) == (b"ok\n", "")
    result = await box.exec(
        ["python3", "-c", "import os, time\nfor _ in range(60): os.fork() or (os.setsid(), time.sleep(60))"]
    )
    assert "limit of 30 processes" in result.notice
    assert "killed" in result.notice
    after = await box.exec("ps -e | wc -l; echo x | cat")
    assert int(after.stdout.split()[0]) <= 6  # the header, the agent, this command's supervisor and processes
    assert (after.stdout.split()[1], after.notice) == (b"x", "")


@pytest.mark.parametrize(
    "command",
    [
        "python3 -c 'x = b\"x\" * (8 << 30)'",
        "python3 -c 'x = []\nwhile True: x.append(bytearray(10_000_000))'",
        "perl -e '$x = \"x\" x (8 << 30)' || exit 1",
        "head -c 8G /dev/zero | tail | wc -c; exit ${PIPESTATUS[1]}",
    ],
    ids=["at-once", "slowly", "perl", "tail"],
)
async def test_eight_gigabytes_of_memory_are_not_to_be_had(make_box: MakeBox, command: str) -> None:
    box = await make_box(memory_mb=512, disk_mb=16)  # where files count as memory, few of them
    result = await box.exec(command, timeout=20)
    assert result.exit_code not in (0, 127)
    assert (await box.exec("echo fine")).stdout == b"fine\n"


async def test_the_memory_limit_is_the_specs_and_being_over_it_is_told(make_box: MakeBox) -> None:
    """As a ceiling of the box (a process is killed, and it is said) or, where that cannot be had, of each process."""
    box = await make_box(memory_mb=256, disk_mb=16)
    assert (await box.exec("exec python3 -c 'x = b\"x\" * (100 << 20)'")).exit_code == 0
    result = await box.exec("exec python3 -c 'x = b\"x\" * (500 << 20)'")
    if b"MemoryError" in result.stderr:
        assert (result.exit_code, result.notice) == (1, "")
    else:
        assert result.exit_code == 137
        assert "out of memory" in result.notice
        assert "256 MiB" in result.notice
    after = await box.exec("echo fine; exit 3")
    assert (after.stdout, after.notice) == (b"fine\n", "")


@pytest.mark.parametrize("place", ["/workspace", "/tmp", "/dev/shm"])
async def test_a_full_disk_is_bounded_and_the_box_works_on(make_box: MakeBox, place: str) -> None:
    box = await make_box(disk_mb=16)
    fill = "for i in $(seq 100); do head -c 4000000 /dev/zero > {0}/$i || break; done; du -sm {0}; [ $i = 100 ]"
    result = await box.exec(fill.format(place), timeout=20)
    assert result.exit_code == 1
    assert b"No space left" in result.stderr
    assert int(result.stdout.split()[0]) <= (64 if place == "/dev/shm" else 16)
    assert (await box.exec("echo fine; exit 3")).exit_code == 3
    flood = await box.exec("seq 1000000", save_to=f"{box.scratch}/saved", output_limit=1000)
    assert flood.stdout_bytes == 6888896
    assert flood.saved_bytes == (0 if place == "/tmp" else 6888896)
    await box.exec(f"rm {place}/*")
    await box.write_file(f"{place}/again", b"x" * 1_000_000)


async def test_a_huge_file_is_bounded(make_box: MakeBox) -> None:
    box = await make_box(disk_mb=16)
    for command in ("truncate -s 1T huge", "fallocate -l 1G huge", "dd if=/dev/zero of=huge bs=1 count=1 seek=1G"):
        result = await box.exec(f"{command} || exit 9", timeout=10)
        assert result.exit_code in (9, 153), result
    assert (await box.exec("head -c 50M /dev/zero > big")).exit_code != 0
    assert (await box.exec("echo fine")).stdout == b"fine\n"


async def test_descriptors_and_cores_are_bounded(box: Sandbox) -> None:
    assert (await box.exec("ulimit -n; ulimit -c")).stdout == b"4096\n0\n"
    assert int((await box.exec("nice")).stdout) >= 5  # on top of what the host has
    await box.exec("kill -SEGV $$")
    assert (await box.exec("ls -A")).stdout == b""


async def test_a_box_goes_before_its_host_when_memory_runs_out(box: Sandbox) -> None:
    assert int((await box.exec("cat /proc/self/oom_score_adj")).stdout) >= 500


async def test_memory_is_a_ceiling_for_the_box_as_a_whole(provider: SandboxProvider) -> None:
    """Six processes, each well below the ceiling, all of them over it: some go, the model is told, the box lives on."""
    if provider.capabilities.memory != "hard":
        pytest.skip("no control group can be made on this host: memory is a ceiling for each process alone")
    spec = SandboxSpec(memory_mb=256, disk_mb=16)
    hog = "python3 -S -c 'x = bytearray(150_000_000); import time; time.sleep(1.5)'"
    async with provider.create(spec) as box:
        done = await box.exec(
            f"for i in 1 2 3 4 5 6; do {hog} & pids+=($!); done; for p in ${{pids[@]}}; do wait $p || exit 9; done"
        )
        assert done.exit_code == 9
        assert "out of memory" in done.notice
        assert "256 MiB" in done.notice
        alone = await box.exec("python3 -S -c 'x = bytearray(8_000_000_000)'")
        assert alone.exit_code == 137
        assert "out of memory" in alone.notice
        after = await box.exec("echo alive")
        assert (after.stdout, after.notice) == (b"alive\n", "")
