"""Running a command: what it is, where it runs, what it sees, what comes back."""

from __future__ import annotations

from typing import Any

from codeenv.sandbox.api import Sandbox, SandboxProvider, SandboxSpec
from codeenv.sandbox.conformance.support import failure, in_time

_WORDS = ["a b", "$HOME", "`id`", "'", '"', "\\", "\n", "*", "", "-n", "ü€😀", "\udcff\udc80", "a\tb\r", "!", "%s", "~"]
_SHOW = "import os, sys; sys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, sys.argv[1:])))"


async def check_exit_code_is_the_commands(box: Sandbox) -> None:
    """The exit code is the command's own."""
    for code in (0, 1, 3, 125, 255):
        result = await box.exec(f"exit {code}")
        assert (result.exit_code, result.timed_out) == (code, False), result


async def check_exit_124_is_no_timeout(box: Sandbox) -> None:
    """A command that exits with 124, as `timeout` does, has not timed out."""
    result = await box.exec("exit 124", timeout=60)
    assert (result.exit_code, result.timed_out) == (124, False), result


async def check_death_by_a_signal_is_128_and_its_number(box: Sandbox) -> None:
    """The exit code of a command that signal n kills is 128+n."""
    for number in (1, 2, 3, 6, 9, 11, 13, 15, 24, 31, 34, 64):
        result = await box.exec(["sh", "-c", f"kill -{number} $$"])
        assert (result.exit_code, result.timed_out) == (128 + number, False), result


async def check_stdout_and_stderr_are_apart(box: Sandbox) -> None:
    """stdout and stderr come back each on its own, without a loss at their ends."""
    result = await box.exec("echo out; printf err >&2")
    assert (result.stdout, result.stderr) == (b"out\n", b"err"), result
    assert (result.stdout_bytes, result.stderr_bytes, result.truncated) == (4, 3, False), result


async def check_silence_is_no_output(box: Sandbox) -> None:
    """A command that prints nothing has no output and no notice."""
    result = await box.exec("true")
    assert (result.exit_code, result.stdout, result.stderr, result.notice) == (0, b"", b"", ""), result
    assert (result.stdout_bytes, result.stderr_bytes, result.saved_bytes) == (0, 0, 0), result


async def check_seconds_are_the_commands_own(box: Sandbox) -> None:
    """`seconds` is how long the command itself ran."""
    result = await box.exec("sleep 0.3")
    assert 0.25 < result.seconds < 10, result


async def check_a_text_is_run_by_bash(box: Sandbox) -> None:
    """A command that is a str is run with `bash -c`."""
    result = await box.exec('a=(x "y z"); [[ ${#a[@]} -eq 2 ]] && cat <(printf %s "${a[1]}"); false | true; echo $?')
    assert result.stdout == b"y z0\n", result


async def check_an_argv_is_taken_literally(box: Sandbox) -> None:
    """A command that is a sequence is the argv as it stands: no shell, no splitting, no quoting, any bytes."""
    result = await box.exec(["python3", "-c", _SHOW, *_WORDS])
    assert result.exit_code == 0, result
    assert result.stdout.split(b"\0") == [word.encode("utf-8", "surrogateescape") for word in _WORDS], result


async def check_a_text_may_hold_anything(box: Sandbox) -> None:
    """Quotes, comments, line ends, wide and undecodable characters in a text reach bash as they are."""
    result = await box.exec("printf %s 'ü😀\udcff'\n# it's a comment \"\nprintf '\\t%s' \"$(echo 'a  b')\"")
    assert result.stdout == "ü😀".encode() + b"\xff\ta  b", result


async def check_a_text_may_be_long(box: Sandbox) -> None:
    """A command of 100,000 characters runs."""
    result = await box.exec("printf %s " + "x" * 100_000 + " | wc -c")
    assert result.stdout.strip() == b"100000", result


async def check_a_line_end_is_not_needed(box: Sandbox) -> None:
    """A here-document without its end breaks neither this command nor the next."""
    result = await box.exec("cat << 'END'\nhello")
    assert result.stdout == b"hello\n", result
    assert (await box.exec("echo next")).stdout == b"next\n"


async def check_commands_start_in_the_workdir(box: Sandbox) -> None:
    """A command runs in `workdir`, which is there, empty and writable."""
    result = await box.exec("pwd -P; ls -A; touch f && rm f")
    real = await box.exec(["realpath", box.workdir])
    assert (result.stdout, result.exit_code) == (real.stdout, 0), result


async def check_cwd_is_where_a_command_runs(box: Sandbox) -> None:
    """`cwd` may be absolute or below `workdir`, and holds for that command alone."""
    await box.write_file("a b/ü/f", b"")
    assert (await box.exec("ls", cwd="a b/ü")).stdout == b"f\n"
    assert (await box.exec(["ls"], cwd=f"{box.workdir}/a b/ü")).stdout == b"f\n"
    assert (await box.exec("pwd", cwd="/")).stdout == b"/\n"
    assert (await box.exec("ls")).stdout == b"a b\n"


async def check_a_missing_cwd_is_an_error_of_its_own(box: Sandbox) -> None:
    """A `cwd` that is missing is FileNotFoundError, one that is no directory NotADirectoryError: no result."""
    await box.write_file("file", b"")
    assert "no/such" in str(await failure(box.exec("true", cwd="no/such"), FileNotFoundError))
    await failure(box.exec("true", cwd="file"), NotADirectoryError)
    assert (await box.exec("echo fine")).stdout == b"fine\n"


async def check_variables_are_added_and_override(box: Sandbox) -> None:
    """`env` adds variables, replaces those that are there, and holds for that command alone."""
    show = 'echo "$A|$LANG|${EMPTY-unset}|${PATH:+path}"'
    before = (await box.exec(show)).stdout
    result = await box.exec(show, env={"A": "a\nb=c'\udcff", "LANG": "POSIX", "EMPTY": ""})
    assert result.stdout == b"a\nb=c'\xff|POSIX||path\n", result
    assert (await box.exec(show)).stdout == before


async def check_the_specs_variables_are_every_commands(provider: SandboxProvider, spec: SandboxSpec) -> None:
    """Variables of the spec's `env` are seen by every command, and a command's own go before them."""
    ours = spec.model_copy(update={"env": {**spec.env, "FIRST": "a 'b'\n", "SECOND": "ü"}})
    async with provider.create(ours) as box:
        assert (await box.exec('printf %s "$FIRST$SECOND"')).stdout == "a 'b'\nü".encode()
        assert (await box.exec(["printenv", "SECOND"], env={"SECOND": "other"})).stdout == b"other\n"
        async with box.open_process(["printenv", "SECOND"]) as process:
            assert await process.receive() == "ü\n".encode()


async def check_one_commands_shell_is_not_the_nexts(box: Sandbox) -> None:
    """Every command has a fresh shell: what one makes in the file system stays, directory and variables do not."""
    await box.exec("mkdir d; cd d; export LEFT=1; umask 000; echo kept > f")
    result = await box.exec('pwd; cat d/f; echo "$LEFT"')
    assert result.stdout.endswith(b"\nkept\n\n"), result
    assert not result.stdout.split(b"\n")[0].endswith(b"/d"), result


async def check_what_is_not_found_is_127(box: Sandbox) -> None:
    """A command that is not there is exit code 127 and says so on stderr, in a text and in an argv."""
    for command in ("no-such-command", ["no-such-command", "x"], ["/no/such/file"], ["/etc/passwd/x"], ["./x"]):
        result = await box.exec(command)
        assert result.exit_code == 127, result
        assert result.stderr, result


async def check_what_cannot_be_run_is_126(box: Sandbox) -> None:
    """A file without the right to run, a directory and what is no program are exit code 126 and say so on stderr."""
    await box.write_file("closed", b"#!/bin/sh\n", mode=0o644)
    await box.write_file("text", b"neither ELF nor a script\n", mode=0o755)
    for command in ("./closed", ["./closed"], ["/"], ["./text"]):
        result = await box.exec(command)
        assert result.exit_code == 126, result
        assert result.stderr, result


async def check_what_no_process_can_be_given_is_a_value_error(box: Sandbox) -> None:
    """A NUL anywhere, an empty argv, a variable without a name or with `=` in it are ValueError and run nothing."""
    impossible: list[dict[str, Any]] = [
        {"command": "touch ran; a\0b"},
        {"command": ["touch", "ran", "b\0"]},
        {"command": []},
        {"command": [""]},
        {"command": "touch ran", "env": {"A": "\0"}},
        {"command": "touch ran", "env": {"A\0": ""}},
        {"command": "touch ran", "env": {"": "x"}},
        {"command": "touch ran", "env": {"A=B": "x"}},
        {"command": "touch ran", "cwd": "a\0"},
        {"command": "touch ran", "save_to": "a\0"},
        {"command": "touch ran; \ud800"},
    ]
    for call in impossible:
        await failure(box.exec(**call), ValueError)
    assert (await box.exec("echo fine; ls")).stdout == b"fine\n"


async def check_nobody_sits_at_a_terminal(box: Sandbox) -> None:
    """No stream of a command is a terminal, and there is none to open."""
    with in_time():
        result = await box.exec(
            "[ -t 0 ] || [ -t 1 ] || [ -t 2 ] || echo none; (exec < /dev/tty) 2> /dev/null || echo no"
        )
    assert result.stdout == b"none\nno\n", result


async def check_a_command_is_run_once(box: Sandbox) -> None:
    """A command runs exactly once, however often its messages are sent."""
    for number in range(1, 6):
        await box.exec("echo x >> count")
        assert (await box.exec("wc -l < count")).stdout.strip() == b"%d" % number
