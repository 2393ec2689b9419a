"""The `stdio` kind in real boxes: programs, their output, and what is said of it."""

# ruff: noqa: E501 - tables: one case a line
from __future__ import annotations

import sys
import time
from typing import cast

import pytest

from codeenv.grading.report import MESSAGE_LIMIT
from codeenv.sandbox.api import Sandbox, SandboxLost, SandboxProvider
from tests.env_support import WrappedProvider, WrappedSandbox
from tests.episodes import Watching, judge, stdio_task

pytestmark = pytest.mark.anyio

ECHO = "import sys\nsys.stdout.buffer.write(sys.stdin.buffer.read())"


def printing(data: bytes) -> str:
    return f"import sys\nsys.stdout.buffer.write({data!r})"


@pytest.mark.parametrize(
    ("printed", "expected", "tokens", "exact"),
    [
        pytest.param(b"1 2\n3\n", b"1 2\n3\n", True, True, id="same"),
        pytest.param(b"1 2\n3", b"1 2\n3\n", True, True, id="no-final-newline"),
        pytest.param(b"1 2\r\n3\r\n", b"1 2\n3\n", True, True, id="crlf"),
        pytest.param(b"1 2  \n3\t\n\n\n", b"1 2\n3\n", True, True, id="trailing-blanks-and-lines"),
        pytest.param(b"1\n2\n3\n", b"1 2\n3\n", True, False, id="other-lines"),
        pytest.param(b" 1 2\n3\n", b"1 2\n3\n", True, False, id="leading-blank"),
        pytest.param(b"1  2\n3\n", b"1 2\n3\n", True, False, id="inner-blanks"),
        pytest.param(b"\n1 2\n3\n", b"1 2\n3\n", True, False, id="leading-line"),
        pytest.param(b"1\r2\n", b"1 2\n", True, False, id="lone-cr"),
        pytest.param(b"1\r2\n", b"1\n2\n", True, False, id="lone-cr-for-a-line-end"),
        pytest.param(b"1\x0c2\n", b"1\n2\n", True, False, id="form-feed"),
        pytest.param("1\u00a02\n".encode(), b"1 2\n", False, False, id="no-break-space"),
        pytest.param("1\u20282\n".encode(), b"1\n2\n", False, False, id="line-separator"),
        pytest.param(b"1 2\n4\n", b"1 2\n3\n", False, False, id="wrong"),
        pytest.param(b"1 2\n", b"1 2\n3\n", False, False, id="too-short"),
        pytest.param(b"1 2\n3\n4\n", b"1 2\n3\n", False, False, id="too-long"),
        pytest.param(b"1.0\n", b"1\n", False, False, id="not-as-numbers"),
        pytest.param(b"", b"", True, True, id="nothing"),
        pytest.param(b"\n \n", b"", True, True, id="blank"),
        pytest.param(b"\xff\n", b"\xfe\n", False, False, id="other-binary"),
        pytest.param(b"\xff\x00\n", b"\xff\x00\n", True, True, id="same-binary"),
        pytest.param("ü☃\n".encode(), "ü☃\n".encode(), True, True, id="unicode"),
        pytest.param(b"9" * 6000, b"9" * 6000, True, True, id="huge-int"),
    ],
)
async def test_how_outputs_are_compared(
    provider: SandboxProvider, printed: bytes, expected: bytes, tokens: bool, exact: bool
) -> None:
    for compare, same in (("tokens", tokens), ("exact", exact)):
        verdict = await judge(stdio_task({"a": ("", expected)}, printing(printed), compare=compare), provider)
        assert (verdict.outcome == "solved") == same, (compare, verdict)
        assert verdict.exit_code == (0 if same else 1)


@pytest.mark.parametrize(
    ("program", "says"),
    [
        pytest.param("import sys; sys.exit(3)", "exit code 3: ", id="exit-code"),
        pytest.param("print(9); 1/0", "ZeroDivisionError", id="traceback"),
        pytest.param("print(9); raise SystemExit(1)", "exit code 1", id="right-output-wrong-code"),
        pytest.param("import os; os.kill(os.getpid(), 9)", "exit code 137", id="killed"),
        pytest.param("print(8)", "token 1 is wrong: '8'", id="wrong"),
        pytest.param("print('x' * 5000)", "token 1 is wrong: 'xxx", id="long-token"),
        pytest.param("print('9 9')", "2 tokens of output, more than expected", id="more"),
        pytest.param("", "0 tokens of output, fewer than expected", id="nothing"),
        pytest.param("while True: pass", "no end within 0.", id="loop"),
        pytest.param("import sys\nwhile True: sys.stdout.write('9' * 9999)", "no end within 0.", id="endless-output"),
        pytest.param("import sys\nsys.stdout.write('9' * 9999999)", "9999999 bytes of output, far more than expected", id="huge-output"),
        pytest.param("x = bytearray(10**11)", "MemoryError", id="memory"),
        pytest.param("import os\nif os.fork(): os._exit(0)\nimport time; time.sleep(0.1); print(9)", "0 tokens", id="prints-after-the-end"),
    ],
)  # fmt: skip
async def test_why_a_case_fails(provider: SandboxProvider, program: str, says: str) -> None:
    task = stdio_task({"a": ("", "9\n")}, program, case_timeout=0.8)
    verdict = await judge(task, provider)
    (case,) = verdict.tests
    assert (verdict.outcome, case.passed) == ("failed", False)
    assert says in case.message
    assert len(case.message) <= MESSAGE_LIMIT


async def test_a_program_that_is_missing_has_failed(provider: SandboxProvider) -> None:
    task = stdio_task({"a": ("", "9")})
    for command in (("nosuch",), ("./main.py",), ("python3", "nosuch.py")):
        one = task.model_copy(update={"grader": task.grader.model_copy(update={"command": command})})
        verdict = await judge(one, provider)
        assert verdict.outcome == "failed"
        assert "exit code" in verdict.tests[0].message


async def test_a_program_that_does_not_read_its_input(provider: SandboxProvider) -> None:
    verdict = await judge(stdio_task({"a": (b"x" * 3_000_000, "9")}, "print(9)"), provider)
    assert verdict.outcome == "solved"


async def test_much_input_and_output(provider: SandboxProvider) -> None:
    data = b"".join(b"%d %d\n" % (n, n * n) for n in range(120_000))
    for compare in ("tokens", "exact"):
        assert (await judge(stdio_task({"a": (data, data)}, ECHO, compare=compare), provider)).outcome == "solved"


async def test_every_case_counts_in_order_of_name(provider: SandboxProvider) -> None:
    cases: dict[str, tuple[str | bytes, str | bytes]] = {"b/2": ("2", "2"), "10": ("10", "10"), "a": ("7", "8")}
    verdict = await judge(stdio_task(cases, ECHO), provider)
    assert [(test.id, test.passed) for test in verdict.tests] == [("10", True), ("a", False), ("b/2", True)]
    assert verdict.outcome == "failed"


async def test_the_time_for_all_cases(provider: SandboxProvider) -> None:
    cases: dict[str, tuple[str | bytes, str | bytes]] = {f"{n}": ("", "9") for n in range(5)}
    task = stdio_task(cases, "import time; print(9, flush=True); time.sleep(0.7)", timeout=1.3, case_timeout=5)
    started = time.monotonic()
    verdict = await judge(task, provider)
    assert time.monotonic() - started < 6
    assert verdict.outcome == "failed"
    assert verdict.reason == "the 1.3 s for all cases ran out"
    assert verdict.tests[0].passed
    assert verdict.tests[-1].message == "did not run"
    assert verdict.tests_total == 5


async def test_a_program_that_loops_is_not_run_for_every_case(provider: SandboxProvider) -> None:
    command = ("sh", "-c", "read n; echo $n; case $n in [134]) sleep 60; esac")
    cases: dict[str, tuple[str | bytes, str | bytes]] = {f"{n}": (f"{n}\n", f"{n}") for n in range(6)}
    verdict = await judge(stdio_task(cases, command=command, case_timeout=1, max_timeouts=2), provider)
    assert [test.passed for test in verdict.tests] == [True, False, True, False, False, False]
    assert [test.message for test in verdict.tests[4:]] == ["did not run"] * 2
    assert verdict.reason == "2 cases ran out of their 1 s"
    last = {name: cases[name] for name in "01"}
    verdict = await judge(stdio_task(last, command=command, case_timeout=1, max_timeouts=1), provider)
    assert ([test.passed for test in verdict.tests], verdict.reason) == ([True, False], "")


async def test_ten_megabytes(provider: SandboxProvider) -> None:
    data = b"".join(b"%d 0.5 x\n" % n for n in range(10**6 - 120_000, 10**6 + 650_000))
    assert len(data) > 10 << 20
    cases: dict[str, tuple[str | bytes, str | bytes]] = {"a": (data, data), "b": (data, data[:-2] + b"y\n")}
    for compare in ("lines", "numbers"):
        verdict = await judge(stdio_task(cases, ECHO, compare=compare), provider)
        assert [test.passed for test in verdict.tests] == [True, False], compare
        assert "is wrong" in verdict.tests[1].message


async def test_hundreds_of_cases(provider: SandboxProvider) -> None:
    cases: dict[str, tuple[str | bytes, str | bytes]] = {f"{n:03}": (f"{n}", f"{n % 399}") for n in range(400)}
    verdict = await judge(stdio_task(cases, command=("cat",)), provider)
    assert [test.id for test in verdict.tests if not test.passed] == ["399"]
    assert verdict.tests_total == 400


async def test_a_program_has_all_the_stack_there_is(provider: SandboxProvider) -> None:
    """On 8 MiB CPython 3.11 dies of this; from 3.12 on the depth through C has a fixed limit."""
    cached = "@lru_cache(None)\n" if sys.version_info < (3, 12) else ""
    deep = f"import sys\nfrom functools import lru_cache\nsys.setrecursionlimit(10**6)\n{cached}def f(n): return n and f(n - 1) + 1\n"
    threaded = "import threading\nthreading.stack_size(2**29)\nt = threading.Thread(target=lambda: print(f(int(input()))))\nt.start(); t.join()"
    cases: dict[str, tuple[str | bytes, str | bytes]] = {"a": ("100000", "100000")}
    for program in (deep + "print(f(int(input())))", deep + threaded):
        assert (await judge(stdio_task(cases, program, case_memory_mb=1024), provider)).solved
    command = ("sh", "-c", '[ "$(ulimit -s)" = "$(ulimit -H -s)" ] && echo all')
    assert (await judge(stdio_task({"a": ("", "all")}, command=command), provider)).solved


async def test_a_program_cannot_find_what_is_expected(provider: SandboxProvider) -> None:
    find = "import os, sys\nprint(sum(b'EXPECTED' in open(os.path.join(d, f), 'rb').read() for t in ('/tmp', '/workspace', '/dev/shm') for d, _, fs in os.walk(t) for f in fs if f != 'main.py'))"
    verdict = await judge(stdio_task({"a": ("", "EXPECTED")}, find), provider)
    assert verdict.tests[0].message == "token 1 is wrong: '0'"


# --- one case knows nothing of another ----------------------------------------------------------------------------

# Each leaves something behind, and prints what it finds of an earlier case: "0" is nothing.
REMEMBER = {
    "workspace-file": "n = len(glob.glob('left*')); open('left', 'w').close()",
    "own-source": "n = len(open('main.py').read().split(chr(10))) - 12; open('main.py', 'a').write('# more\\n')",
    "same-size": "n = int(open('data').read()); open('data', 'w').write('1')",
    "mode": "n = os.stat('data').st_mode & 1; os.chmod('data', 0o755)",
    "removed": "n = int(not os.path.exists('data')); n or os.remove('data')",
    "link": "n = int(os.path.islink('data')); os.remove('data'); os.symlink('main.py', 'data')",
    "fifo": "n = int(os.path.exists('pipe')); n or os.mkfifo('pipe')",
    "temporary-file": "n = len(glob.glob('/tmp/left*')); open('/tmp/left', 'w').close()",
    "home": "n = len(os.listdir('/tmp/home')); open('/tmp/home/.profile', 'w').close()",
    "shared-memory-file": "n = len(os.listdir('/dev/shm')); open('/dev/shm/left', 'w').close()",
    "shared-memory": "import ctypes; libc = ctypes.CDLL(None); n = int(libc.shmget(77, 64, 0) >= 0); assert n or libc.shmget(77, 64, 0o1600) >= 0",
    "too-large-to-look-at": "n = int(os.path.exists('big')); open('big', 'w').truncate(100_000_000)",
    "process": "n = len(others()); subprocess.Popen(['sleep', '60'])",
    "daemon": "n = len(others()); subprocess.Popen(['setsid', 'sleep', '60'], start_new_session=True)",
    "feeding-process": "n = int(b'\\0fed' in fed()); subprocess.Popen([sys.executable, '-c', FEED]); time.sleep(0.3)",
}  # fmt: skip
PROLOGUE = """\
import glob, os, socket, subprocess, sys, time
FEED = "import socket, time; s = socket.socket(socket.AF_UNIX); s.bind(chr(0) + 'fed'); s.listen(); time.sleep(60)"
def others():
    found = [int(name) for name in os.listdir('/proc') if name.isdigit()]
    return [pid for pid in found if open(f'/proc/{pid}/cmdline').read().startswith(('sleep', 'setsid'))]
def fed():
    s = socket.socket(socket.AF_UNIX)
    try: s.connect(chr(0) + 'fed')
    except OSError: return b''
    return b'\\0fed'
"""


@pytest.mark.parametrize("body", [pytest.param(body, id=name) for name, body in REMEMBER.items()])
async def test_no_case_finds_anything_of_an_earlier_one(provider: SandboxProvider, body: str) -> None:
    program = f"{PROLOGUE}{body}\nprint(n)"
    task = stdio_task({"1": ("", "0"), "2": ("", "0"), "3": ("", "0")}, program, files={"data": b"0"})
    verdict = await judge(task, provider)
    assert [(test.id, test.passed, test.message) for test in verdict.tests] == [(n, True, "") for n in "123"]


async def test_programs_that_leave_nothing_share_a_box(provider: SandboxProvider) -> None:
    watching = Watching(provider)
    cases: dict[str, tuple[str | bytes, str | bytes]] = {str(n): (str(n), str(n)) for n in range(6)}
    assert (await judge(stdio_task(cases, ECHO), watching)).outcome == "solved"
    assert (len(watching.boxes), watching.alive) == (1, 0)
    writer = "open('x' if input() == '2' else '/dev/null', 'w').close()"
    verdict = await judge(stdio_task({str(n): (str(n), "") for n in range(6)}, writer), watching)
    assert verdict.outcome == "solved"
    assert (len(watching.boxes), watching.alive) == (3, 0)
    assert watching.live_at_creation == [0, 0, 0]


async def test_the_memory_of_a_case(provider: SandboxProvider) -> None:
    program = "x = bytearray(int(input()) << 20); print(len(x) >> 20)"
    cases: dict[str, tuple[str | bytes, str | bytes]] = {"a": ("100", "100"), "b": ("900", "900"), "c": ("100", "100")}
    verdict = await judge(stdio_task(cases, program, case_memory_mb=256), provider)
    assert [test.passed for test in verdict.tests] == [True, False, True], verdict
    assert "memory" in verdict.tests[1].message.lower()
    assert (await judge(stdio_task(cases, program), provider)).outcome == "solved"


@pytest.mark.parametrize("nth", [1, 2, 4], ids=["first", "second", "fourth"])
@pytest.mark.parametrize("call", ["exec", "export", "read_file"])
async def test_a_box_that_is_lost_is_no_wrong_answer(provider: SandboxProvider, call: str, nth: int) -> None:
    calls = 0

    async def lose() -> None:
        nonlocal calls
        calls += 1
        if calls >= nth:
            raise SandboxLost("gone", stage=call)

    losing = WrappedProvider(lambda box, number: cast(Sandbox, WrappedSandbox(box, {call: lose})))
    cases: dict[str, tuple[str | bytes, str | bytes]] = {str(n): ("", "") for n in range(5)}
    with pytest.raises(SandboxLost, match="gone") as raised:
        await judge(stdio_task(cases, "pass"), losing)
    assert raised.value.stage == f"grading: {call}"
