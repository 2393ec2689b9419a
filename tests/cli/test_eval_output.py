"""What `codeenv eval` prints and leaves: on a terminal and in pipes, to the end and interrupted."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import provider_or_skip
from env_support import double_task

from codeenv.cli import vf_eval
from codeenv.cli.interrupts import ENDINGS, Interrupted, interruptible
from codeenv.cli.vf_eval import Endpoint, EvalFailed, Run
from codeenv.sources.jsonl import dump_task
from codeenv.task import Task

COMMAND = [sys.executable, "-m", "codeenv", "eval"]
ON_A_TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    provider_or_skip("bubblewrap")
    (tmp_path / "tmp").mkdir()
    return {**os.environ, "TMPDIR": str(tmp_path / "tmp"), "TERM": "xterm", "COLUMNS": "90", "LINES": "20"}


def written(folder: Path, *tasks: Task) -> Path:
    path = folder / "tasks.jsonl"
    path.write_text("".join(dump_task(task) + "\n" for task in tasks))
    return path


def processes(argument: str) -> list[str]:
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if argument in text:
            found.append(text)
    return found


def test_ctrl_c_on_a_terminal(tmp_path: Path, environment: dict[str, str]) -> None:
    dataset = written(tmp_path, double_task(0), double_task(1))
    script = tmp_path / "script.json"
    waits = {"tool_calls": [{"name": "bash", "arguments": {"command": "sleep 300"}}]}
    script.write_text(json.dumps({"double-0": ["nothing"], "double-1": [waits]}))
    command = [sys.executable, "-c", ON_A_TERMINAL, *COMMAND, str(dataset), "-p", "script", "--script", str(script)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        seen = ""
        for piece in pieces(process.stdout.fileno()):
            seen += piece
            screen = seen[seen.rfind("tasks.jsonl, script") :]
            if re.search(r"1/2.*double-1 +1 +playing +\d+\.\d", screen, re.DOTALL):
                break
        assert "failed 1" in screen
        assert "1 running, 1 boxes" in screen
        assert processes("verifiers.scripts.eval")
        process.stdin.write(b"\x03")
        process.stdin.flush()
        seen = "".join(pieces(process.stdout.fileno()))
        assert process.wait(30) == 130
    finally:
        process.kill()
        process.communicate()
    assert "\x1b[?25h" in seen  # the cursor is back
    after = seen[seen.rfind("\x1b[2K") :]
    assert re.search(r"double-0 .*failed", after)
    assert "script: solved 0 of 1, mean reward 0.000; 1 of 2 not done" in after
    assert "ended by SIGINT" in after
    assert "Traceback" not in seen
    assert not [text for text in processes(str(dataset)) if "verifiers" in text]
    assert list((tmp_path / "tmp").iterdir()) == []


def pieces(file: int) -> Iterator[str]:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        data = os.read(file, 65536)
        if not data:
            return
        yield data.decode(errors="replace")
    raise AssertionError("it took too long")


# --- parts of it -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", ENDINGS, ids=lambda number: number.name)
def test_a_signal_ends_the_block(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    try:
        signal.signal(number, signal.SIG_DFL)
        with pytest.raises(Interrupted) as caught, interruptible():
            kill_ourselves(number)
        assert caught.value.exit_code == 128 + number
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, before)


def kill_ourselves(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)
    time.sleep(5)


def test_a_hangup_is_ignored_under_nohup() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


SAVES = """
import json, pathlib, signal, sys, time
folder = pathlib.Path(sys.argv[sys.argv.index("-o") + 1]) / "evals/a/b"
folder.mkdir(parents=True)
row = json.dumps({"example_id": 0, "task_id": "t", "outcome": "solved", "reward": 1.0, "trajectory_id": "x"}) + "\\n"
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with (folder / "results.jsonl").open("w") as file:
    for part in (row[:30], row[30:], row, "half"):
        file.write(part)
        file.flush()
        time.sleep(0.1)
print("this is the last line")
"""


@pytest.mark.parametrize("ends", [True, False], ids=["fails", "does-not-end"])
def test_what_was_saved_is_read_as_it_comes(ends: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = SAVES + ("sys.exit(7)" if ends else "time.sleep(300)")
    monkeypatch.setattr(vf_eval, "COMMAND", (sys.executable, "-c", program))
    monkeypatch.setattr(vf_eval, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(vf_eval, "END_SECONDS", 0.2)
    run = Run({}, 2, 1, 1, tmp_path)
    end = time.monotonic() + 30
    with run.started(Endpoint("m")) as going:
        while going.runs() and (ends or len(going.saved) < 2):
            going.read()
            assert time.monotonic() < end
    going.read()
    assert [(rollout.task, rollout.trajectory) for rollout in going.saved] == [("t", "x")] * 2
    with pytest.raises(EvalFailed, match="exit code 7.\nthis is the last line" if ends else "exit code -9"):
        going.check()
