"""Graders as they are often built, kept to show that each cheat is alive. All of them lay the hidden tests into the
policy's own box, beside its files, variables and processes, and run them there, with `run_tests` doing the same.

Never used by codeenv: what they pay for is what ours must not.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import anyio

from codeenv.grading import box_spec, workspace_of
from codeenv.grading.cheats import Cheat, Move, RunTests, View, Write, perform
from codeenv.sandbox.api import ExecResult, ExportTooLarge, Sandbox, SandboxError, SandboxProvider
from codeenv.task import Task

SECONDS = 3.0  # for a test run
PAUSE = 0.3  # seconds between the tests' arrival and their run, where something lies in wait for them
WAITING = ("rewrite_tests", "swap_directory", "swap_solution")
OUTPUT = 32 * 1024  # bytes of output that are kept: the first and the last half

# A checker of programs: in process, and it is told what to expect in every way there is.
CHECKER = """\
import contextlib, io, os, runpy, sys
program, given, expected = sys.argv[1:]
sys.stdin = open(given)
printed = io.StringIO()
with contextlib.redirect_stdout(printed):
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit:
        pass
got, want = printed.getvalue().split(), expected.split()
if len(got) != len(want) or any(a != b for a, b in zip(got, want)):
    sys.exit(1)
"""
EACH_CASE = """\
passed=0; all=0
for given in hidden/*.in; do
    all=$((all + 1)); EXPECTED=$(cat "${given%.in}.out"); export EXPECTED
    python3 hidden/check.py main.py "$given" "$EXPECTED" && passed=$((passed + 1))
done
echo "$passed of $all"; [ "$passed" = "$all" ]
"""
EACH_OUTPUT = """\
for given in hidden/*.in; do
    python3 main.py < "$given" | grep -q "$(cat "${given%.in}.out")" || exit 1
done
"""
WITH_RESULTS = """\
import json, unittest
result = unittest.TestResult()
unittest.defaultTestLoader.loadTestsFromName("{name}").run(result)
with open("results.json", "w") as file:
    json.dump({{"passed": result.wasSuccessful(), "failed": len(result.failures) + len(result.errors)}}, file)
"""
WITH_RECORDS = """\
import json, os, sys
import pytest

def recorder(token):
    descriptor = os.dup(1)

    def record(**fields):
        os.write(descriptor, ("\\n" + token + json.dumps(fields) + "\\n").encode())

    return record

class Recorder:
    def __init__(self, record):
        self.record = record

    def pytest_runtest_logreport(self, report):
        if report.when == "call":
            self.record(id=report.nodeid, passed=report.passed)

sys.path.insert(0, ".")
pytest.main(["-q", "--capture=no", "{name}.py"], plugins=[Recorder(recorder(sys.stdin.readline().strip()))])
"""


@dataclass(frozen=True)
class Naive:
    """How tests are run, a bash script for a login shell, and what is read off the run: whether all is well. `broken`
    is what a run that could not be made is worth."""

    about: str
    command: Callable[[str], str]
    solved: Callable[[ExecResult, str, str], bool]
    broken: bool = False


def _exit_code(done: ExecResult, results: str, token: str) -> bool:
    return done.exit_code == 0 and not done.timed_out


def _benefit_of_the_doubt(done: ExecResult, results: str, token: str) -> bool:
    return done.exit_code != 1


def _printed(done: ExecResult, results: str, token: str) -> bool:
    said = done.stdout.decode(errors="replace")
    return bool(re.search(r"passed|\bOK\b", said)) and not re.search("fail|error", said, re.IGNORECASE)


def _results(done: ExecResult, results: str, token: str) -> bool:
    found = json.loads(results) if results else {}
    return bool(found.get("passed")) and not int(found.get("failed", 1))


def _records(done: ExecResult, results: str, token: str) -> bool:
    found: dict[str, bool] = {}
    for line in done.stdout.decode(errors="replace").splitlines():
        if line.startswith(token):
            record = json.loads(line.removeprefix(token))
            if record.get("id"):
                found[record["id"]] = record["passed"]
    return len(found) > 1 and all(found.values())


def _python(code: str) -> Callable[[str], str]:
    return lambda name: f"cat > .runner.py <<'END'\n{code.format(name=name)}\nEND\npython3 .runner.py"


GRADERS: Mapping[str, Naive] = {
    "unittest": Naive("exit code of python -m unittest", lambda name: f"python3 -m unittest {name}", _exit_code),
    "pytest": Naive("exit code of python -m pytest", lambda name: f"python3 -m pytest -q {name}.py", _exit_code),
    "lenient": Naive(
        "the same, but only exit code 1 is the solution's fault",
        lambda name: f"python3 -m unittest {name}",
        _benefit_of_the_doubt,
        broken=True,
    ),
    "printed": Naive("what the run printed, cut", lambda name: f"python3 -m unittest {name} 2>&1", _printed),
    "results": Naive("a results file that the run writes", _python(WITH_RESULTS), _results),
    "records": Naive("records with a secret, by a plugin of pytest's", _python(WITH_RECORDS), _records),
    "checker": Naive("exit code of a checker that runs the program", lambda name: EACH_CASE, _exit_code),
    "contains": Naive("the expected output is somewhere in the output", lambda name: EACH_OUTPUT, _exit_code),
    "command": Naive("exit code of a command", lambda name: "sh check.sh", _exit_code),
}
"""By name. The first six are for test files, the next two for programs, the last for the kind `command`."""


async def pays(cheat: Cheat, task: Task, provider: SandboxProvider, grader: str) -> bool:
    """Play a cheat in a box of its own and grade it there."""
    spec = box_spec(task)
    spec = spec.model_copy(update={"packages": tuple(dict.fromkeys((*spec.packages, "pytest")))})
    async with provider.create(spec) as box:
        await box.import_(workspace_of(task))

        async def take(move: Move) -> str:
            if isinstance(move, RunTests):
                solved, said = await _run(task, box, GRADERS[grader])
                for path in _laid(task):
                    await box.remove(path)
                return f"{said}\n{'All tests pass.' if solved else ''}"
            if isinstance(move, Write):
                await box.write_file(move.path, move.text.encode())
                return "written"
            done = await box.exec(move.command)
            return (done.stdout + done.stderr).decode(errors="replace")

        assert await perform(cheat.play(View.of(task)), take), "it has nothing to try here"
        try:
            await box.export()  # kept for the record
            return (await _run(task, box, GRADERS[grader], pause=PAUSE if cheat.name in WAITING else 0))[0]
        except (ExportTooLarge, OSError, SandboxError):
            return GRADERS[grader].broken


def _laid(task: Task) -> dict[str, bytes]:
    if task.grader.kind == "stdio":
        return {"hidden/" + path: data for path, data in {**task.tests, "check.py": CHECKER.encode()}.items()}
    return dict(task.tests)


async def _run(task: Task, box: Sandbox, grader: Naive, pause: float = 0) -> tuple[bool, str]:
    """:raises OSError: the tests could not be laid in."""
    for path, data in _laid(task).items():
        await box.write_file(path, data)
    await anyio.sleep(pause)
    name = next((path.removesuffix(".py") for path in task.tests if path.startswith("test_")), "")
    token = secrets.token_hex(16)
    script = f"[ -f .venv/bin/activate ] && . .venv/bin/activate\nunset PYTHONDONTWRITEBYTECODE\n{grader.command(name)}"
    done = await box.exec(["bash", "-lc", script], stdin=f"{token}\n".encode(), timeout=SECONDS, output_limit=OUTPUT)
    said = (done.stdout + done.stderr).decode(errors="replace")
    try:
        results = (await box.read_file("results.json")).decode()
    except OSError:
        results = ""
    return grader.solved(done, results, token), said
