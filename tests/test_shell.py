"""The shell, as the bash tool has it: what carries over, and that nothing breaks it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest

from codeenv.sandbox.api import MiB, Sandbox, SandboxSpec
from codeenv.shell import KEPT_OUTPUTS, Shell
from tests.conftest import provider_or_skip
from tests.episodes import playing

pytestmark = pytest.mark.anyio


@pytest.fixture
async def shell(box: Sandbox) -> Shell:
    return Shell(box)


async def say(shell: Shell, command: str, timeout: float = 20.0) -> str:
    """What the command printed."""
    return (await shell.run(command, timeout=timeout)).exec.stdout.decode("utf-8", "surrogateescape")


# --- what carries over ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        "plain",
        "",
        "two words  ",
        "'single' \"double\" `back` $(echo no) $HOME \\",
        "line\nline\n\nend\n",
        "\ndeclare -x SHLVL=7\ndeclare -x A=\"",
        "héllo ☃ 𝄞",
        "tab\tbell\x07esc\x1b",
        "*?[a]~!#{1..3}",
    ],
    ids=["plain", "empty", "blanks", "quotes", "newlines", "looks-like-state", "unicode", "controls", "globs"],
)  # fmt: skip
async def test_an_exported_value_carries_over_exactly(shell: Shell, value: str) -> None:
    quoted = value.replace("'", "'\\''")
    await say(shell, f"export VALUE='{quoted}'")
    for _ in range(2):  # also when a call that says nothing of it lies between
        assert await say(shell, 'printf %s "$VALUE" | od -An -c -v | tr -d \' \\n\'; printf %s "$VALUE" | wc -c')
        assert await say(shell, 'printf %s "$VALUE"') == value
    assert await say(shell, 'echo "${VALUE+set}"') == "set\n"


async def test_bytes_that_are_no_utf8_carry_over(shell: Shell) -> None:
    await say(shell, "export VALUE=$'a\\xff\\xfeb'; mkdir $'d\\xff'; cd $'d\\xff'")
    assert await say(shell, 'printf %s "$VALUE" | od -An -tx1') == " 61 ff fe 62\n"
    assert await say(shell, 'printf %s "${PWD##*/}" | od -An -tx1') == " 64 ff\n"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("X=1", "echo ${X-none}", "none"),
        ("f() { :; }", "type -t f || echo none", "none"),
        ("export X=1; unset X", "echo ${X-none}", "none"),
        ("export X=1; export -n X", "echo ${X-none}", "none"),
        ("unset PAGER", "echo ${PAGER-none}", "none"),
        ("export PAGER=less", "echo $PAGER", "less"),
        ("mkdir -p b; echo 'echo mine' >b/tool; chmod +x b/tool; export PATH=$PWD/b:$PATH", "tool", "mine"),
        ("export PATH=/nowhere", "echo $PATH", "/nowhere"),
        ("unset PATH", "echo ${PATH-none}", "none"),
        ("export IFS=,", "x=a,b; set -- $x; echo $#", "2"),
        ("readonly X=1; export X", "echo $X", "1"),
        ("declare -ix N=3; N=N+1", "N+=1; echo $N", "5"),
        ("cd /tmp; cd /usr", "cd - ; pwd", "/tmp\n/tmp"),
        ("cd /tmp", "echo $OLDPWD", "/workspace"),
        ("mkdir 'a b\nc'; cd 'a b\nc'", "pwd", "/workspace/a b\nc"),
        ("mkdir real; ln -s real link; cd link", "pwd", "/workspace/link"),
        ("mkdir ./-; cd ./-", "pwd", "/workspace/-"),
        ("true", "echo ${OLDPWD-none}", "none"),
        ("mkdir d; cd d; __codeenv_save() { :; }", "pwd", "/workspace/d"),
        ("mkdir d; cd d; trap 'x' EXIT", "pwd", "/workspace/d"),
        ("mkdir d; cd d; export X=1; exit 3", "pwd; echo $X", "/workspace/d\n1"),
        ("mkdir d; cd d; set -e; false", "pwd", "/workspace/d"),
        ("mkdir d; cd d; set -u; echo $nope", "pwd", "/workspace/d"),
        ("mkdir d; cd d; exec >&- 2>&-", "pwd", "/workspace/d"),
        ("export BASH_ENV=/nowhere", "echo $BASH_ENV", "/nowhere"),
        ("export SHELLOPTS UID", "echo fine", "fine"),
        ("export POSIXLY_CORRECT=1", "echo $POSIXLY_CORRECT", "1"),
        ("set -f; umask 077; ulimit -n 50", "echo *; ulimit -n; umask", "*\n4096\n0022"),
    ],
    ids=lambda value: re.sub(r"\W+", "-", value)[:24],
)
async def test_what_carries_over_and_what_does_not(shell: Shell, before: str, after: str, expected: str) -> None:
    await say(shell, before)
    assert await say(shell, after) == f"{expected}\n"


# --- what may not break it --------------------------------------------------------------------------------------

BREAKERS = {
    "heredoc": "cat <<EOF\nabc",
    "open-quote": "echo 'abc",
    "open-parenthesis": "x=(",
    "open-brace": "f() {",
    "stray-done": "done; fi; }",
    "exit": "exit 3",
    "exec": "exec sleep 99",
    "kill-self": "kill -9 $$",
    "kill-all": "kill -9 -1",
    "kill-parent": "kill -9 $PPID",
    "loop": "while :; do :; done",
    "stop-self": "kill -STOP $$",
    "set-e": "set -e; false",
    "set-u": "set -u; echo $nope",
    "set-n": "set -n",
    "set-x": "set -x; cd .",
    "set-posix": "set -o posix; . /nowhere",
    "pipefail": "set -eo pipefail; false | cat",
    "trap-exit": "trap 'x' EXIT",
    "trap-exit-and-exit": "trap 'echo bye; exit 9' EXIT; exit 4",
    "trap-debug": "shopt -s extdebug; trap 'false' DEBUG",
    "trap-err": "trap 'exit 7' ERR; false",
    "stdout-gone": "exec >/dev/null",
    "stdout-closed": "exec >&-",
    "stderr-closed": "exec 2>&-",
    "fd-9-closed": "exec 9>&-",
    "fd-9-to-a-file": "exec 9>lock; flock 9",
    "all-fds-closed": "for fd in /proc/self/fd/*; do eval \"exec ${fd##*/}>&-\"; done",
    "our-function": "__codeenv_save() { echo; }; __codeenv=x; export __codeenv_cwd=/",
    "our-builtins": "printf() { echo a; }; export() { echo b; }; eval() { :; }; cd .",
    "builtin-and-exit": "builtin() { :; }; exit() { :; }; trap() { :; }; set() { :; }",
    "disabled-builtins": "enable -n printf export echo",
    "readonly": "readonly X=1; export X",
    "readonly-pwd": "readonly PWD OLDPWD",
    "unset-pwd": "unset PWD",
    "ulimit": "ulimit -n 10; ulimit -f 0",
    "alias": "shopt -s expand_aliases; alias echo=false pwd=false",
    "shell-options": "export SHELLOPTS BASHOPTS",
    "return": "return 5",
    "stopped-job": "sleep 99 & kill -STOP $!",
    "background": "sleep 99 & disown",
    "fork-then-wait": "(sleep 99 &) ; wait",
    "remove-the-others": "rm -rf /workspace/* /tmp/* 2>/dev/null; mkdir -p /workspace/sub",
    "ifs": "export IFS=/",
    "long-line": "echo " + "x" * 300_000 + " >/dev/null",
}  # fmt: skip


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def worn_shell() -> AsyncIterator[Shell]:
    """One shell for all of them: a breaker may not harm what the next ones see either."""
    async with provider_or_skip("bubblewrap").create(SandboxSpec()) as sandbox:
        yield Shell(sandbox)


@pytest.mark.parametrize("command", [pytest.param(text, id=name) for name, text in BREAKERS.items()])
async def test_after_anything_the_shell_is_alive_and_where_it_was(worn_shell: Shell, command: str) -> None:
    await say(worn_shell, "mkdir -p /workspace/sub; cd /workspace/sub; export KEPT=yes; unset IFS")
    await worn_shell.run(command, timeout=0.7)
    done = await worn_shell.run("echo alive && pwd && echo $KEPT", timeout=20)
    assert (done.exec.stdout.decode(), done.exec.exit_code) == ("alive\n/workspace/sub\nyes\n", 0)


async def test_a_directory_that_is_gone_is_told(shell: Shell) -> None:
    await say(shell, "mkdir d; cd d; rmdir ../d")
    assert await say(shell, "pwd") == "[the directory /workspace/d is gone; now in /workspace]\n/workspace\n"
    assert await say(shell, "pwd") == "/workspace\n"


async def test_a_workspace_that_may_not_be_entered_can_be_repaired(shell: Shell) -> None:
    await say(shell, "chmod 000 /workspace")
    assert "now in /]" in await say(shell, "chmod 755 /workspace")
    assert await say(shell, "cd /workspace && pwd") == "/workspace\n"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("echo 'x", "unexpected EOF while looking for matching"),
        ("trap 'echo dbg' DEBUG; echo q", "dbg\nq\n"),
        ("set -x; echo a", "echo a\na\n"),
    ],
    ids=["syntax-error", "debug-trap", "xtrace"],
)
async def test_nothing_of_the_machinery_shows(shell: Shell, command: str, expected: str) -> None:
    output = await say(shell, command)
    assert expected in output
    assert not re.search(r"codeenv|builtin|exit", output)
    assert output.count("dbg") < 2


async def test_pkill_by_name_does_not_meet_its_own_shell(shell: Shell) -> None:
    assert await say(shell, "pkill -f no_such_server; echo $?") == "1\n"


# --- ends, limits, output ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "code"),
    [("exit 124", 124), ("exit 0", 0), ("false", 1), ("kill -9 $$", 137), ("nosuch", 127), ("exit 300", 44)],
)
async def test_exit_codes(shell: Shell, command: str, code: int) -> None:
    done = (await shell.run(command, timeout=20)).exec
    assert (done.exit_code, done.timed_out) == (code, False)


async def test_the_limit_covers_the_whole_command(shell: Shell) -> None:
    done = (await shell.run("sleep 0.4 && sleep 0.4 && echo late", timeout=0.6)).exec
    assert done.timed_out
    assert done.stdout == b""
    assert done.seconds < 5
    done = (await shell.run("echo early; sleep 9", timeout=0.3)).exec
    assert (done.timed_out, done.stdout) == (True, b"early\n")


async def test_stdout_and_stderr_come_in_order(shell: Shell) -> None:
    command = "for i in 1 2 3; do echo out$i; echo err$i >&2; done; nosuch 2>/dev/null; bash -c 'echo in >&2; echo out'"
    assert await say(shell, command) == "out1\nerr1\nout2\nerr2\nout3\nerr3\nin\nout\n"


async def test_stdin_is_at_its_end(shell: Shell) -> None:
    assert await say(shell, "cat; read x || echo end") == "end\n"
    assert await say(shell, "cat; read x || echo end #" + "x" * 300_000) == "end\n"


@pytest.mark.parametrize("size", [90_000, 90_001, 300_000, 3_000_000])
async def test_commands_of_any_length_work(shell: Shell, size: int) -> None:
    command = "printf %s '" + "é" * ((size - 20) // 2) + "' | wc -c"
    assert int(await say(shell, command)) == (size - 20) // 2 * 2


async def test_a_long_heredoc_arrives_whole(shell: Shell, box: Sandbox) -> None:
    text = "".join(f"line {i} 'q' \"d\" $x `y` \\\n" for i in range(12_000))
    assert (await shell.run(f"cat >file <<'EOF'\n{text}EOF\nexit 5", timeout=20)).exec.exit_code == 5
    assert (await box.read_file("file")).decode() == text


async def test_an_environment_too_large_is_told_and_breaks_nothing(shell: Shell) -> None:
    await say(shell, "export SMALL=1")
    done = await shell.run(
        "mkdir big; cd big; export BIG=$(head -c 100000 /dev/zero | tr '\\0' x)$(seq 20000)", timeout=20
    )
    assert done.notice == "the exported variables are over 90,000 bytes: those of the call before stay"
    assert await say(shell, "echo ${BIG-none} $SMALL; pwd") == "none 1\n/workspace/big\n"
    await say(shell, "export BIG=$(head -c 80000 /dev/zero | tr '\\0' x)")
    assert await say(shell, "echo ${#BIG}") == "80000\n"


@pytest.mark.parametrize("command", ["echo a\0b", "echo \udc80", "\ud83d"], ids=["nul", "surrogate", "half-emoji"])
async def test_what_no_command_can_hold_is_a_value_error(shell: Shell, command: str) -> None:
    with pytest.raises(ValueError, match=r"NUL|surrogates not allowed"):
        await shell.run(command, timeout=5)
    assert await say(shell, "echo alive") == "alive\n"


async def test_all_of_a_long_output_is_in_the_box(provider: object) -> None:
    async with playing(provider, observation_tokens=500) as player:  # type: ignore[arg-type]
        seen = await player.bash("echo first; head -c 50000000 /dev/zero | tr '\\0' '.'; echo; echo last")
        assert seen.startswith("first\n.")
        assert seen.endswith(".\nlast")
        match = re.search(r"\[\.\.\. ([\d,]+) bytes omitted; the full output is in (\S+) \.\.\.\]", seen)
        assert match is not None
        assert int(match[1].replace(",", "")) > 49_990_000
        assert await player.bash(f"wc -c <{match[2]}; tail -1 {match[2]}") == "50000012\nlast"


async def test_only_the_last_outputs_are_kept(shell: Shell) -> None:
    for number in range(KEPT_OUTPUTS + 3):
        done = await shell.run(f"echo {number}; head -c 400000 /dev/zero", timeout=20)
        assert done.saved_to
        if number == 4:  # the policy may have removed it itself
            await say(shell, f"rm {done.saved_to}")
    assert int(await say(shell, "ls /tmp/output-* | wc -l")) == KEPT_OUTPUTS - 1
    assert await say(shell, f"head -1 {done.saved_to}") == f"{number}\n"


async def test_an_output_that_could_not_be_kept_whole_is_not_called_whole(shell: Shell) -> None:
    done = await shell.run("head -c 70000000 /dev/zero", timeout=30)
    assert done.saved_to == ""
    assert done.notice == f"only the first {64 * MiB} bytes of the output are in /tmp/output-1.txt"
    done = await shell.run("mkdir -p /tmp/output-2.txt; head -c 400000 /dev/zero", timeout=30)
    assert (done.saved_to, done.notice) == ("", "")
