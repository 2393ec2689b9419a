"""Running commands: what comes back, when, and what lives on."""

from __future__ import annotations

import signal
from pathlib import Path

import anyio
import pytest

from codeenv.sandbox.api import Sandbox, SandboxProvider, SandboxSpec

pytestmark = pytest.mark.anyio


def host_rss() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


# --- daemons and the end of a command ------------------------------------------------------------------------


async def test_a_daemon_that_floods_its_ended_commands_output_neither_blocks_nor_dies(any_box: Sandbox) -> None:
    await any_box.exec("(yes & echo $! > pid) ; sleep 0.05", timeout=10)
    result = await any_box.exec("cat /proc/$(cat pid)/io | grep wchar; sleep 0.3; cat /proc/$(cat pid)/io | grep wchar")
    before, after = (int(line.split()[1]) for line in result.stdout.decode().splitlines())
    assert after > before > 65536


# --- nobody at the terminal ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("git init -q . && git commit --allow-empty; echo rc=$?", b"Aborting commit due to empty commit message"),
        ("git init -q . && git commit -q --allow-empty -m x && git log", b"Author: user"),
        ("seq 1 5000 > f; less f | tail -1", b"5000"),
        ("seq 1 5000 > f; ${PAGER} f | tail -1", b"5000"),
    ],
    ids=["git-commit", "git-log", "less", "pager"],
)
async def test_whatever_asks_finds_the_end_of_its_input(box: Sandbox, command: str, expected: bytes) -> None:
    if command.startswith("seq") and "less" in command and (await box.exec("command -v less")).exit_code:
        pytest.skip("less is not installed")
    result = await box.exec(command, timeout=20, combine=True)
    assert not result.timed_out
    assert result.seconds < 5
    assert expected in result.stdout


# --- the process level ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "timeout", "exit_code"),
    [
        ("exit 3", 5, 3),
        ("exec sleep 99", 0.2, 137),
        ("kill -9 $$", 5, 137),
        ("kill -TERM $$", 5, 143),
        ("kill -9 $PPID; sleep 0.1; exit 7", 5, 7),
        ("while :; do :; done", 0.2, 137),
        ("trap '' TERM INT HUP; while :; do sleep 0.01; done", 0.2, 137),
    ],
    ids=["exit", "exec-sleep", "kill-self", "term-self", "kill-parent", "loop", "trap"],
)
@pytest.mark.parametrize("daemons", [False, True], ids=["alone", "beside-a-daemon"])
async def test_the_next_command_works_after(
    any_box: Sandbox, command: str, timeout: float, exit_code: int, daemons: bool
) -> None:
    if daemons:
        await any_box.exec("setsid sleep 97 &")
    result = await any_box.exec(command, timeout=timeout)
    assert result.exit_code == exit_code
    assert result.timed_out == (timeout < 1)
    assert (await any_box.exec("echo fine; exit 4")).stdout == b"fine\n"


async def test_a_command_that_kills_its_supervisor_may_end_at_once(any_box: Sandbox) -> None:
    await any_box.exec("setsid sleep 97 &")
    for _ in range(10):
        result = await any_box.exec("kill -9 $PPID; exit 9", timeout=5)
        assert result.exit_code in (9, 137)  # the supervisor may have taken note of the end, and died with it
        assert not result.timed_out


async def test_a_command_that_stops_its_supervisor_runs_out_of_time(any_box: Sandbox) -> None:
    await any_box.exec("setsid sleep 97 &")
    result = await any_box.exec("kill -STOP $PPID; exit 8", timeout=0.3)
    assert (result.exit_code, result.timed_out) == (137, True)
    assert (await any_box.exec("echo fine; exit 4")).stdout == b"fine\n"


@pytest.mark.parametrize("signal", ["KILL", "TERM", "STOP"])
async def test_a_command_that_signals_all_processes_spares_the_box(box: Sandbox, signal: str) -> None:
    result = await box.exec(f"sleep 50 & kill -{signal} -1; echo $?; exit 5", timeout=0.5)
    assert result.exit_code in (5, 137)  # stopped with everything else: timed out
    assert (await box.exec("echo fine")).stdout == b"fine\n"


# --- exit codes and time limits -------------------------------------------------------------------------------


async def test_signals_are_at_their_defaults(any_provider: SandboxProvider) -> None:
    """Also when whoever started us ignores some, as nohup and background jobs do."""
    ours = (signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGRTMIN)
    before = [signal.signal(number, signal.SIG_IGN) for number in ours]
    try:
        async with any_provider.create(SandboxSpec()) as box:
            result = await box.exec("grep -E 'Sig(Blk|Ign)' /proc/self/status")
    finally:
        for number, handler in zip(ours, before, strict=True):
            signal.signal(number, handler)
    blocked, ignored = (int(line.split()[1], 16) for line in result.stdout.splitlines())
    reserved = 3 << 31  # signals 32 and 33 are the C library's own, and nobody can set them through it
    assert (blocked, ignored & ~reserved) == (0, 0)


TICK = "while :; do date +%N > {0}; sleep 0.02; done"
ESCAPES = {
    "setsid": f"setsid sh -c '{TICK}' & sleep 99",
    "double-fork": f"(setsid sh -c '({TICK}) & exit' &) ; sleep 99",
    "python-daemon": """python3 -c '
import os, time
if os.fork(): time.sleep(99)
os.setsid()
if os.fork(): os._exit(0)
while True:
    open("{0}", "w").write(str(time.time())); time.sleep(0.02)'""",
    "first-thread-ended": """python3 -c '
import ctypes, os, threading, time
def work():
    while True:
        open("{0}", "w").write(str(time.time())); time.sleep(0.02)
threading.Thread(target=work).start()
ctypes.CDLL(None).syscall(dict(x86_64=60).get(os.uname().machine, 93), 0)'""",
}
ORPHANED = f"(setsid sh -c '{TICK}' &); kill -9 $PPID; sleep 99"


@pytest.mark.parametrize("commands", [ESCAPES, {"orphaned": ORPHANED}], ids=["escapes", "supervisor-killed"])
async def test_a_timeout_kills_what_the_command_started_but_no_earlier_daemon(
    any_box: Sandbox, commands: dict[str, str]
) -> None:
    async def run(name: str, command: str) -> None:
        assert (await any_box.exec(command.format(name), timeout=0.5)).timed_out

    await any_box.exec(f"setsid sh -c '{TICK.format('earlier')}' & sleep 0.05", timeout=5)
    async with anyio.create_task_group() as group:
        for name, command in commands.items():
            group.start_soon(run, name, command)
    assert {entry.path for entry in await any_box.list_files()} == {"earlier", *commands}  # they all ran
    assert (await any_box.exec("rm -f *; sleep 0.25; ls")).stdout == b"earlier\n"


async def test_a_timeout_spares_a_daemon_that_another_command_left_meanwhile(any_box: Sandbox) -> None:
    async def first() -> None:
        command = f"setsid sh -c '{TICK.format('own')}' & touch started; sleep 99"
        assert (await any_box.exec(command, timeout=1)).timed_out

    async with anyio.create_task_group() as group:
        group.start_soon(first)
        waiting = "until [ -e started ]; do sleep 0.02; done"
        await any_box.exec(f"{waiting}; setsid sh -c '{TICK.format('spared')}' & wait", timeout=0.3)
        await any_box.exec(f"{waiting}; setsid sh -c '{TICK.format('spared')}' & sleep 0.05", timeout=5)
    assert (await any_box.exec("rm -f *; sleep 0.25; ls")).stdout == b"spared\n"


async def test_a_cwd_that_may_not_be_entered_is_a_permission_error(box: Sandbox) -> None:
    await box.exec("mkdir shut; chmod 0 shut")
    with pytest.raises(PermissionError):
        await box.exec("true", cwd="shut")


async def test_a_deleted_work_directory_is_said_and_can_be_made_again(any_box: Sandbox) -> None:
    await any_box.exec("mkdir d")
    await any_box.exec("rmdir ../d; sleep 0", cwd="d")
    with pytest.raises(FileNotFoundError):
        await any_box.exec("true", cwd="d")
    await any_box.write_file("d/x", b"")
    assert (await any_box.exec("ls", cwd="d")).stdout == b"x\n"


# --- output ---------------------------------------------------------------------------------------------------

FLOOD = "yes 0123456789abcde | head -c 50000000"


@pytest.mark.parametrize(
    ("command", "timeout", "exit_code"),
    [(FLOOD, 30, 0), (f"{FLOOD}; echo end; exit 9", 30, 9), (f"{FLOOD}; sleep 99", 1.5, 137)],
    ids=["success", "failure", "timeout"],
)
async def test_a_flood_of_output_costs_the_host_nothing(
    box: Sandbox, command: str, timeout: float, exit_code: int
) -> None:
    await box.exec("seq 100000", save_to="/tmp/warm")
    before = host_rss()
    result = await box.exec(command, timeout=timeout, save_to="/tmp/full", output_limit=20_000)
    assert host_rss() - before < 5_000_000
    assert result.exit_code == exit_code
    assert result.timed_out == (timeout == 1.5)
    extra = b"end\n" if exit_code == 9 else b""
    assert result.stdout_bytes == result.saved_bytes == 50_000_000 + len(extra)
    assert result.truncated
    line = b"0123456789abcde\n"
    assert result.stdout == line * 625 + (line * 625 + extra)[-10_000:]
    check = await box.exec(f"cmp <({FLOOD}; cat) /tmp/full && wc -c < /tmp/full", stdin=extra)
    assert check.stdout.decode().strip() == str(result.saved_bytes), check


# --- input ----------------------------------------------------------------------------------------------------


async def test_input_ends_also_when_another_command_was_started_meanwhile(any_box: Sandbox) -> None:
    async def second() -> None:
        await any_box.exec("until [ -e started ]; do sleep 0.02; done")
        await any_box.exec("touch other; until [ -e over ]; do sleep 0.02; done", timeout=20)

    async with anyio.create_task_group() as group:
        group.start_soon(second)
        command = "touch started; until [ -e other ]; do sleep 0.02; done; wc -c"
        result = await any_box.exec(command, stdin=b"x" * 1_000_000, timeout=10)
        await any_box.exec("touch over")
    assert (result.stdout.strip(), result.timed_out) == (b"1000000", False)


# --- argv and variables ---------------------------------------------------------------------------------------


async def test_a_command_text_that_the_kernel_refuses_is_126(any_box: Sandbox) -> None:
    result = await any_box.exec("echo " + "x" * 200_000)
    assert result.exit_code == 126
    assert b"Argument list too long" in result.stderr


async def test_a_box_has_variables_of_its_own(any_box: Sandbox) -> None:
    assert (await any_box.exec('echo "$LANG|$TERM|$USER"')).stdout == b"C.UTF-8|dumb|user\n"
