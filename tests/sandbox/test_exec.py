"""Running commands: what comes back, when, and what lives on."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import anyio
import pytest

from codeenv.sandbox.api import Sandbox, SandboxProvider, SandboxSpec

pytestmark = pytest.mark.anyio


def host_rss() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


# --- daemons and the end of a command ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "setsid sleep {0} & echo started",
        "sleep {0} & echo started",
        "nohup sleep {0} >/dev/null 2>&1 & echo started",
        "(setsid sh -c 'sleep {0}; :' &) ; echo started",
        "(sleep {0}) 2>&1 & disown; echo started",
    ],
    ids=["setsid", "background", "nohup", "double-fork", "disown"],
)
async def test_a_daemon_does_not_hold_up_the_command_and_lives_on(any_box: Sandbox, command: str) -> None:
    started = time.monotonic()
    seconds = unique_seconds()
    result = await any_box.exec(command.format(seconds), timeout=10)
    assert time.monotonic() - started < 1.5
    assert (result.stdout, result.exit_code, result.timed_out) == (b"started\n", 0, False)
    assert (await any_box.exec("echo next; sleep 0.1")).stdout == b"next\n"
    assert len(processes_with(seconds)) == 1


async def test_a_daemon_that_prints_to_its_ended_commands_output_is_not_killed_by_it(any_box: Sandbox) -> None:
    daemon = "i=0; while [ $i -lt 1000 ]; do i=$((i+1)); echo tick $i; echo $i > new; mv new ticks; sleep 0.02; done"
    result = await any_box.exec(f"({daemon}) & echo started", timeout=10)
    assert result.stdout.startswith(b"started\n")
    first = int((await any_box.exec("until [ -s ticks ]; do sleep 0.05; done; cat ticks", timeout=15)).stdout)
    later = f"until [ $(cat ticks) -gt {first} ]; do sleep 0.05; done; cat ticks"
    assert int((await any_box.exec(later, timeout=15)).stdout) > first > 0


async def test_a_daemon_that_floods_its_ended_commands_output_neither_blocks_nor_dies(any_box: Sandbox) -> None:
    await any_box.exec("(yes & echo $! > pid) ; sleep 0.05", timeout=10)
    result = await any_box.exec("cat /proc/$(cat pid)/io | grep wchar; sleep 0.3; cat /proc/$(cat pid)/io | grep wchar")
    before, after = (int(line.split()[1]) for line in result.stdout.decode().splitlines())
    assert after > before > 65536


async def test_daemons_are_gone_after_close(any_provider) -> None:
    seconds = unique_seconds()
    async with any_provider.create(SandboxSpec()) as box:
        await box.exec(f"setsid sleep {seconds} & (setsid nohup sleep {seconds} &) ; sleep 0.1")
        assert len(processes_with(seconds)) == 2
    assert processes_with(seconds) == []


def unique_seconds() -> str:
    """How long a process shall sleep, and the argument by which the host finds it."""
    return f"987{random.SystemRandom().randrange(10**6):06}"


def processes_with(argument: str) -> list[int]:
    """Living ones, in whatever box, as the host sees them."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if argument.encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


# --- nobody at the terminal ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("read x; echo rc=$?", b"rc=1"),
        ("python3 -c 'input()'", b"EOFError"),
        ("cat", b""),
        ("git init -q . && git commit --allow-empty; echo rc=$?", b"Aborting commit due to empty commit message"),
        ("git init -q . && git commit -q --allow-empty -m x && git log", b"Author: user"),
        ("seq 1 5000 > f; less f | tail -1", b"5000"),
        ("seq 1 5000 > f; ${PAGER} f | tail -1", b"5000"),
        ("(exec < /dev/tty) 2>&1; echo rc=$?", b"/dev/tty"),
        ("tty; echo rc=$?", b"not a tty"),
    ],
    ids=["read", "input", "cat", "git-commit", "git-log", "less", "pager", "dev-tty", "tty"],
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


async def test_timeouts_do_not_pile_up(any_box: Sandbox) -> None:
    seconds = unique_seconds()
    for _ in range(3):
        assert (await any_box.exec(f"sleep {seconds} & sleep {seconds}", timeout=0.1)).timed_out
    assert processes_with(seconds) == []


# --- exit codes and time limits -------------------------------------------------------------------------------


async def test_exit_124_is_no_timeout(any_box: Sandbox) -> None:
    result = await any_box.exec("exit 124", timeout=5)
    assert (result.exit_code, result.timed_out) == (124, False)


async def test_a_signals_death_is_128_plus_its_number(any_box: Sandbox) -> None:
    for number in (1, 2, 3, 6, 9, 11, 13, 15, 24, 31, 34, 64):
        assert (await any_box.exec(["sh", "-c", f"kill -{number} $$"])).exit_code == 128 + number


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


async def test_a_limit_keeps_what_was_printed_before(any_box: Sandbox) -> None:
    result = await any_box.exec("echo before; echo wrong >&2; sleep 99", timeout=0.3)
    assert (result.stdout, result.stderr, result.timed_out) == (b"before\n", b"wrong\n", True)
    assert 0.25 < result.seconds < 3


async def test_a_limit_covers_the_whole_list_of_commands(any_box: Sandbox) -> None:
    result = await any_box.exec("sleep 0.1 && echo one && sleep 99 && echo two || echo three; echo four", timeout=0.3)
    assert (result.stdout, result.timed_out) == (b"one\n", True)


@pytest.mark.parametrize("timeout", [0, -1.0, 1e-9])
async def test_no_time_at_all_is_a_timeout_at_once(any_box: Sandbox, timeout: float) -> None:
    result = await any_box.exec("sleep 99", timeout=timeout)
    assert result.timed_out
    assert result.seconds < 2


async def test_a_very_long_limit_is_one(any_box: Sandbox) -> None:
    assert (await any_box.exec("echo x", timeout=1e12)).stdout == b"x\n"
    assert (await any_box.exec("echo x", timeout=float("inf"))).stdout == b"x\n"


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


@pytest.mark.parametrize(
    ("command", "exit_code"),
    [
        ("no-such-command-here", 127),
        (["no-such-command-here"], 127),
        (["/no/such/file"], 127),
        (["/etc/passwd/x"], 127),
        ("touch x; ./x", 126),
        (["./x"], 126),
        (["/"], 126),
        (["./text"], 126),
    ],
    ids=["shell", "argv", "path", "not-a-folder", "shell-mode", "mode", "folder", "no-program"],
)
async def test_what_cannot_be_run_is_127_or_126(any_box: Sandbox, command: str | list[str], exit_code: int) -> None:
    await any_box.write_file("x", b"#!/bin/sh\n", mode=0o644)
    await any_box.write_file("text", b"neither ELF nor a script\n", mode=0o755)
    result = await any_box.exec(command)
    assert result.exit_code == exit_code
    assert result.stderr


async def test_a_missing_or_wrong_cwd_is_an_error_of_its_own(any_box: Sandbox) -> None:
    with pytest.raises(FileNotFoundError, match="no/such"):
        await any_box.exec("true", cwd="no/such")
    await any_box.write_file("file", b"")
    with pytest.raises(NotADirectoryError):
        await any_box.exec("true", cwd="file")
    await any_box.exec("mkdir -p a/b")
    result = await any_box.exec("pwd", cwd="a/b")
    assert result.stdout.decode().strip() == f"{any_box.workdir}/a/b"
    assert (await any_box.exec("pwd", cwd="/usr")).stdout == b"/usr\n"


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


@pytest.mark.parametrize("limit", [0, 1, 3, 9, 10, 11])
async def test_head_and_tail_add_up_to_the_limit(any_box: Sandbox, limit: int) -> None:
    result = await any_box.exec("printf 0123456789", output_limit=limit)
    assert result.stdout_bytes == 10
    assert result.truncated == (limit < 10)
    text, head = b"0123456789", limit - limit // 2
    assert result.stdout == (text if limit >= 10 else text[:head] + text[10 - limit // 2 :])


async def test_both_streams_have_the_limit_each_and_combine_keeps_their_order(any_box: Sandbox) -> None:
    apart = await any_box.exec("seq 1 5000; seq 1 5000 >&2", output_limit=1000)
    assert len(apart.stdout) == len(apart.stderr) == 1000
    assert apart.stdout_bytes == apart.stderr_bytes == 23893
    together = await any_box.exec("for i in 1 2 3; do echo out$i; echo err$i >&2; done", combine=True)
    assert together.stdout == b"out1\nerr1\nout2\nerr2\nout3\nerr3\n"
    assert (together.stderr, together.stderr_bytes) == (b"", 0)


@pytest.mark.parametrize(
    "obstacle",
    [
        "mkfifo {0}",
        "ln -s target {0}",
        "echo mine > {0}",
        "mkdir {0}",
        "ln -s /dev/full {0}",
        "echo > file; ln -s file {0}",
    ],
    ids=["fifo", "dangling-link", "file", "folder", "device-link", "file-link"],
)
async def test_output_is_never_saved_over_what_stands_there(any_box: Sandbox, obstacle: str) -> None:
    look = "find . -printf '%P %y %s %l\\n' | sort; cat file; test ! -f save || cat save"
    await any_box.exec(obstacle.format("save"))
    before = (await any_box.exec(look)).stdout
    result = await any_box.exec("seq 1 100000", save_to="save", output_limit=100, timeout=10)
    assert (result.saved_bytes, result.exit_code, result.timed_out) == (0, 0, False)
    assert (await any_box.exec(look)).stdout == before


async def test_output_that_was_not_cut_is_not_saved(any_box: Sandbox) -> None:
    result = await any_box.exec("seq 1 10", save_to="deep/er/save")
    assert result.saved_bytes == 0
    assert (await any_box.exec("ls")).stdout == b""
    result = await any_box.exec("seq 1 100000", save_to="deep/er/save", output_limit=100)
    assert await any_box.read_file("deep/er/save") == b"".join(b"%d\n" % i for i in range(1, 100_001))


async def test_saved_output_is_bounded_by_the_disk(make_box) -> None:
    box = await make_box(disk_mb=8)
    result = await box.exec("seq 1 100000000 | head -c 30000000", save_to="/tmp/full", timeout=20)
    assert result.exit_code == 0
    assert result.stdout_bytes == 30_000_000
    assert 4_000_000 < result.saved_bytes <= 8 * 1024 * 1024
    saved = await box.read_file("/tmp/full")
    assert len(saved) == result.saved_bytes
    assert saved == b"".join(b"%d\n" % i for i in range(1, 1_500_000))[: len(saved)]  # no gap
    assert (await box.exec("rm /tmp/full; echo fine > /tmp/x; cat /tmp/x")).stdout == b"fine\n"


async def test_output_is_bytes(any_box: Sandbox) -> None:
    result = await any_box.exec(["python3", "-c", "import sys; sys.stdout.buffer.write(bytes(range(256)) * 100)"])
    assert result.stdout == bytes(range(256)) * 100


# --- input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["true", "sleep 0.2", "exec 0<&-; sleep 0.2", "head -c 1"])
async def test_much_input_to_one_that_does_not_read_it(any_box: Sandbox, command: str) -> None:
    result = await any_box.exec(command, stdin=b"x" * 3_000_000, timeout=10)
    assert (result.exit_code, result.timed_out) == (0, False)
    assert (await any_box.exec("cat", stdin=b"next")).stdout == b"next"


async def test_five_megabytes_go_in_and_come_out(any_box: Sandbox) -> None:
    data = random.Random(1).randbytes(5_000_000)
    result = await any_box.exec("cat", stdin=data, output_limit=len(data), timeout=20)
    assert result.stdout == data


async def test_input_to_one_that_is_killed(any_box: Sandbox) -> None:
    assert (await any_box.exec("sleep 99", stdin=b"x" * 1_000_000, timeout=0.2)).timed_out
    assert (await any_box.exec("cat", stdin=b"next")).stdout == b"next"


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

WORDS = ["a b", "$HOME", "`id`", "'", '"', "\\", "\n", "*", "", "-n", "ü€😀", "\udcff\udc80", "a\tb\r", "!", "%s"]


async def test_an_argv_is_taken_literally(any_box: Sandbox) -> None:
    show = "import os, sys; sys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, sys.argv[1:])))"
    result = await any_box.exec(["python3", "-c", show, *WORDS])
    assert result.stdout.split(b"\0") == [word.encode("utf-8", "surrogateescape") for word in WORDS]


async def test_a_command_text_may_be_long_and_odd(any_box: Sandbox) -> None:
    assert (await any_box.exec("printf %s 'ü\udcff'\n# it's a comment \"")).stdout == b"\xc3\xbc\xff"
    assert (await any_box.exec("echo " + "x" * 100_000)).stdout_bytes == 100_001
    result = await any_box.exec("echo " + "x" * 200_000)
    assert result.exit_code == 126
    assert b"Argument list too long" in result.stderr


async def test_variables_are_added_and_override(any_box: Sandbox) -> None:
    result = await any_box.exec('echo "$A|$LANG|$EMPTY|$TERM"', env={"A": "a\nb=c'", "LANG": "de", "EMPTY": ""})
    assert result.stdout == b"a\nb=c'|de||dumb\n"
    assert (await any_box.exec('echo "$A|$LANG"')).stdout == b"|C.UTF-8\n"


@pytest.mark.parametrize(
    "call",
    [
        {"command": "a\0b"},
        {"command": ["a", "b\0"]},
        {"command": []},
        {"command": [""]},
        {"command": "true", "env": {"A": "\0"}},
        {"command": "true", "env": {"A\0": ""}},
        {"command": "true", "env": {"": "x"}},
        {"command": "true", "env": {"A=B": "x"}},
        {"command": "true", "cwd": "a\0"},
        {"command": "true", "save_to": "a\0"},
        {"command": "\ud800"},
    ],
    ids=str,
)
async def test_what_no_process_can_be_given_is_a_value_error(any_box: Sandbox, call: dict) -> None:
    with pytest.raises(ValueError, match=r"NUL|empty|name of a variable|not a path|surrogates"):
        await any_box.exec(**call)
    assert (await any_box.exec("echo fine")).stdout == b"fine\n"
