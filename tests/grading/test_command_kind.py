"""The `command` kind in real boxes: any language's exit code, from files that the policy could not touch."""

# ruff: noqa: E501 - tables: one case a line
from __future__ import annotations

from typing import Any

import pytest

from codeenv.grading import box_spec, grade, workspace_of
from codeenv.grading.report import MESSAGE_LIMIT
from codeenv.sandbox.api import SandboxProvider
from codeenv.sandbox.archive import Archive
from codeenv.task import Task
from tests.episodes import BAD, GOOD, Files, encoded, judge

pytestmark = pytest.mark.anyio

CHECK_SH = """\
cd "$WORKSPACE"
out=$(printf '%s' "from adding import add; print(add(-1, -2))" | /usr/bin/env python3 -)
[ "$out" = -3 ]
"""
CHECK_PY = """\
import sys
word = sys.stdin.readline()
sys.path.append(__import__("os").environ["WORKSPACE"])
import adding
assert adding.add(-1, -2) == -3
print(word)
"""


def command_task(
    tests: Files | None = None, command: tuple[str, ...] = ("/bin/bash", "check.sh"), **fields: Any
) -> Task:
    grader = {
        "kind": "command",
        "command": command,
        **{k: fields.pop(k) for k in ("receipt", "timeout") if k in fields},
    }
    return Task(
        id="adding",
        instruction="Make `add` right.",
        files=encoded({"adding.py": BAD}),
        tests=encoded(tests or {"check.sh": CHECK_SH, "check.py": CHECK_PY}),
        grader=grader,  # type: ignore[arg-type]
        **fields,
    )


PYTHON = ("/usr/bin/env", "python3", "check.py")


@pytest.mark.parametrize(
    "fields",
    [{}, {"command": PYTHON}, {"command": PYTHON, "receipt": True}, {"command": ("/usr/bin/env", "-i", "/bin/bash", "-c", "true")}],
    ids=["bash", "python", "receipt", "never-fails"],
)  # fmt: skip
async def test_the_exit_code_decides(provider: SandboxProvider, fields: dict[str, Any]) -> None:
    task = command_task(**fields)
    verdict = await judge(task, provider, {"adding.py": GOOD})
    assert (verdict.outcome, verdict.exit_code) == ("solved", 0)
    assert [(test.id, test.passed) for test in verdict.tests] == [("command", True)]
    verdict = await judge(task, provider)
    assert verdict.solved == ("true" in task.grader.command), verdict  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("script", "says"),
    [
        pytest.param("exit 3", "exit code 3", id="exit-code"),
        pytest.param("echo out; echo err >&2; exit 1", "exit code 1: err", id="stderr"),
        pytest.param("echo out; exit 1", "exit code 1: out", id="stdout"),
        pytest.param("echo said; sleep 60", "no end within 1 s: said", id="time"),
        pytest.param("nonesuch", "exit code 127", id="not-found"),
        pytest.param("kill -9 $$", "exit code 137", id="killed"),
        pytest.param("head -c 9000000 /dev/zero | tr '\\0' x; exit 1", "exit code 1: xxx", id="much-output"),
        pytest.param("echo 'exit 0' >> check.sh; exit 0", "the hidden tests were changed while they ran", id="changed"),
        pytest.param("rm other; exit 0", "the hidden tests were changed while they ran", id="removed"),
        pytest.param("chmod +x other; exit 0", "the hidden tests were changed while they ran", id="mode"),
        pytest.param("rm other; ln -s /bin/true other; exit 0", "the hidden tests were changed while they ran", id="link"),
        pytest.param("cd ..; mv hidden-tests x; mkdir hidden-tests", "the hidden tests were changed while they ran", id="swapped"),
        pytest.param("(sleep 0.05; echo >> check.sh) & wait", "the hidden tests were changed while they ran", id="in-background"),
    ],
)  # fmt: skip
async def test_why_it_fails(provider: SandboxProvider, script: str, says: str) -> None:
    verdict = await judge(command_task({"check.sh": script, "other": "x"}, timeout=1), provider)
    assert verdict.outcome == "failed"
    assert says in verdict.tests[0].message
    assert len(verdict.tests[0].message) <= MESSAGE_LIMIT


async def test_what_the_tests_write_beside_themselves_is_their_affair(provider: SandboxProvider) -> None:
    script = "mkdir build; echo x > build/x; [ -x tool ] && ./tool"
    tests: Files = {"check.sh": script, "tool": "#!/bin/sh\nexit 0\n"}
    assert (await judge(command_task(tests, executable=frozenset({"tool"})), provider)).outcome == "solved"
    assert (await judge(command_task(tests), provider)).outcome == "failed"


STEERING: dict[str, Files] = {
    "shadowing-modules": {f"{name}.py": "import os; os._exit(0)" for name in ("os", "json", "sitecustomize", "usercustomize")},
    "python-dot-files": {".pythonrc.py": "import os; os._exit(0)", "evil.pth": "import os; os._exit(0)", "pyvenv.cfg": "home = /nowhere"},
    "shell-dot-files": {".bashrc": "exit 0", ".profile": "exit 0", ".bash_profile": "exit 0", ".env": "exit 0"},
    "programs": {f"{folder}/{name}": "#!/bin/sh\nexit 0\n" for name in ("env", "python3", "bash", "grep") for folder in (".", "bin")},
    "its-own-check": {"check.sh": "exit 0", "check.py": "raise SystemExit(0)", "hidden-tests/check.sh": "exit 0"},
}  # fmt: skip


@pytest.mark.parametrize("files", [pytest.param(files, id=name) for name, files in STEERING.items()])
@pytest.mark.parametrize("command", [("/bin/bash", "check.sh"), PYTHON], ids=["bash", "python"])
async def test_nothing_of_the_workspace_steers_the_command(
    provider: SandboxProvider, files: Files, command: tuple[str, ...]
) -> None:
    script = 'import json, os; raise SystemExit(0 if os.getcwd() != os.environ["WORKSPACE"] else 7)'
    tests: Files = {"check.sh": "python3 check.py && echo x | grep -q x && false", "check.py": script + "\n"}
    if command == PYTHON:
        tests["check.py"] = "import json, os\nraise SystemExit(7)\n"
    task = command_task(tests, command)
    left = workspace_of(task).overlay(Archive.of(encoded(files), dict.fromkeys(files, 0o755)))
    verdict = await grade(task, left, provider, box_spec(task))
    assert verdict.exit_code == (7 if command == PYTHON else 1), verdict


EARLY = {
    "exit-at-import": "import os\nos._exit(0)",
    "sys-exit": "raise SystemExit(0)",
    "exit-in-the-function": "import os\ndef add(a, b): os._exit(0)",
    "at-exit": "import atexit, os\natexit.register(os._exit, 0)\n" + BAD,
    "guessing-the-word": "import os\nprint('0' * 32, flush=True)\nos._exit(0)",
}


@pytest.mark.parametrize("solution", [pytest.param(text, id=name) for name, text in EARLY.items()])
async def test_a_receipt_shows_that_the_command_came_to_its_end(provider: SandboxProvider, solution: str) -> None:
    files: Files = {"adding.py": solution}
    naive = await judge(command_task(command=PYTHON), provider, files)
    assert naive.solved  # without one the exit code is all there is
    verdict = await judge(command_task(command=PYTHON, receipt=True), provider, files)
    assert verdict.outcome == "failed"
    assert "exit code 0, but the command did not come to its end" in verdict.tests[0].message
    assert (await judge(command_task(command=PYTHON, receipt=True), provider, {"adding.py": GOOD})).solved
