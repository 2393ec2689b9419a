"""The command line, run as a process, `vf-eval` included."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from conftest import provider_or_skip
from env_support import double_task

from codeenv.policies import serve_in_thread
from codeenv.record import Recording, summaries
from codeenv.sources.jsonl import dump_task
from codeenv.task import Task
from tests.episodes import GOOD, pytest_task

COMMAND = [sys.executable, "-m", "codeenv"]


def codeenv(*arguments: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=120, env={**os.environ, **env}
    )


@pytest.fixture(autouse=True)
def _works_here() -> None:
    provider_or_skip("bubblewrap")


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return written(tmp_path, [double_task(0), double_task(1)])


def written(folder: Path, tasks: list[Task]) -> Path:
    path = folder / "tasks.jsonl"
    path.write_text("".join(dump_task(task) + "\n" for task in tasks))
    return path


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, codeenv.cli, typer.testing\n"
        "result = typer.testing.CliRunner().invoke(codeenv.cli.app, ['--help'])\n"
        "assert result.exit_code == 0 and 'validate' in result.output, result.output\n"
        "heavy = {'verifiers', 'datasets', 'aiohttp', 'tiktoken', 'beta9', 'openai', 'anyio', 'pydantic'}\n"
        "heavy &= set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# --- eval ----------------------------------------------------------------------------------------------------


def test_eval_of_two_policies(dataset: Path, tmp_path: Path) -> None:
    done = codeenv(
        "eval", dataset, "--policy", "oracle", "--policy", "wrong", "-r", "2", "--output-dir", tmp_path / "out"
    )
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line.strip().startswith("double-")]
    assert [row[:4] for row in rows] == [
        *[[f"double-{n}", "solved", "1/1", "5"] for n in (0, 0, 1, 1)],
        *[[f"double-{n}", "failed", "0/1", "5"] for n in (0, 0, 1, 1)],
    ]
    assert all(float(row[4]) > 0 for row in rows)
    assert "oracle: solved 4 of 4, mean reward 1.000\n" in done.stdout
    assert "wrong: solved 0 of 4, mean reward 0.000\n" in done.stdout
    assert len(list((tmp_path / "out").glob("evals/*/*/results.jsonl"))) == 2


def test_eval_of_a_model_in_the_text_protocol(tmp_path: Path) -> None:
    """A 'model' behind an endpoint. One task it cannot answer (outcome `model`), and one has files that no box of 1 MiB
    can hold (`infra`), and is tried again in vain: both are counted apart, and the second makes the exit code 1. With
    --json and --quiet one object is all that is printed."""
    big: Any = {"files": {"big.bin": bytes(3 * 1024 * 1024)}, "limits": {"disk_mb": 1}}
    tasks = [double_task(0), double_task(1, solution=None), double_task(2, **big)]
    dataset, folder = written(tmp_path, tasks), tmp_path / "rec"
    with serve_in_thread("oracle", tasks) as server:
        further = ("--protocol", "text", "--max-turns", "9", "-a", '{"feedback": "pass_fail"}', "--max-retries", "1")
        own = ("--json", "--quiet", "--record", folder)
        done = codeenv("eval", dataset, "-m", "oracle", "-b", server.base_url, *further, *own)
    assert (done.returncode, done.stderr) == (1, "")
    found = json.loads(done.stdout)
    assert (found["complete"], found["results"], found["recordings"]) == (True, None, str(folder))
    (policy,) = found["policies"]
    assert {key: policy[key] for key in ("policy", "rollouts", "done", "counted", "solved", "mean_reward")} == {
        "policy": "oracle", "rollouts": 3, "done": 3, "counted": 1, "solved": 1, "mean_reward": 1.0,
    }  # fmt: skip
    assert (policy["outcomes"], policy["retries"]) == ({"infra": 1, "model": 1, "solved": 1}, 1)
    keys = ("task", "outcome", "reward", "tests_passed", "tests_total")
    assert [[episode[key] for key in keys] for episode in policy["episodes"]] == [
        ["double-0", "solved", 1.0, 1, 1],
        ["double-1", "model", None, None, None],
        ["double-2", "infra", None, None, None],
    ]
    infra, model = policy["failures"]
    assert (infra["outcome"], infra["stage"], infra["count"], infra["final"]) == ("infra", "create", 2, 1)
    assert "do not fit the box" in infra["cause"]
    assert (model["outcome"], model["count"], model["final"]) == ("model", 1, 1)
    assert "has no solution" in model["cause"]
    good, *bad = (episode["recording"] for episode in policy["episodes"])
    summary = Recording.load(folder / good).summary
    assert (summary.outcome, summary.turns) == ("solved", 5)
    assert {good, *infra["recordings"], *model["recordings"]} == {row.file for row in summaries(folder)}
    assert {*bad} < {*infra["recordings"], *model["recordings"]}


def test_eval_shows_the_end_of_what_failed(dataset: Path) -> None:
    done = codeenv("eval", dataset, "-a", '{"max_trns": 3}')
    assert done.returncode == 1
    assert "unknown arguments: max_trns" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["eval", "nope"], "no dataset 'nope'"),
        (["eval", "{dataset}", "--sandbox", "nope"], "unknown sandbox 'nope'; valid: auto, bubblewrap"),
        (["eval", "{dataset}", "--policy", "nope"], "unknown policy 'nope'; valid: oracle"),
        (["eval", "{dataset}", "--policy", "script"], "needs a script file"),
        (["eval", "{dataset}", "-a", "[1]"], "-a: must be a JSON object"),
        (["eval", "{dataset}", "-a", "{{"], "-a: not JSON"),
        (["eval", "{dataset}", "-m", "m", "-p", "oracle"], "not both"),
        (["eval", "{dataset}", "-m", "m", "-b", "https://models.example/v1"], "--api-key-var is needed"),
        (
            ["eval", "{dataset}", "-m", "m", "-b", "http://127.0.0.1:1/v1", "-k", "NO_SUCH_KEY"],
            "NO_SUCH_KEY is not set",
        ),
        (["validate", "{bad}"], "2 faults in tasks"),
        (["validate", "nope"], "no dataset 'nope'"),
        (["policy", "nope", "--dataset", "{dataset}"], "unknown policy 'nope'"),
        (["policy", "oracle", "--dataset", "nope"], "no dataset 'nope'"),
    ],
)
def test_usage_errors(arguments: list[str], says: str, dataset: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"id": "!"}\n')
    done = codeenv(*(argument.format(dataset=dataset, bad=bad) for argument in arguments))
    assert done.returncode == 2, done.stdout + done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


# --- validate, doctor, policy ----------------------------------------------------------------------------------


def test_validate(dataset: Path, tmp_path: Path) -> None:
    done = codeenv("validate", dataset, "--runs", "1")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "2 of 2 tasks are sound (6 gradings)\n"
    bad = written(
        tmp_path, [double_task(0), double_task(1, wrong={"[right]": {"main.py": b"print(int(input()) * 2)\n"}})]
    )
    done = codeenv("validate", bad, "--runs", "1")
    assert done.returncode == 1
    assert [line.split()[:2] for line in done.stdout.splitlines() if "double-" in line] == [
        ["double-1", "wrong/[right]"]
    ]
    assert done.stdout.endswith("1 of 2 tasks are sound (6 gradings); 1 bad\n")
    done = codeenv("validate", bad, "--runs", "1", "--json")
    found: dict[str, Any] = json.loads(done.stdout)
    assert (done.returncode, found["tasks"], found["bad"], found["infra"]) == (1, 2, 1, 0)
    assert found["reports"][1]["faults"][0]["check"] == "wrong/[right]"


def test_validate_records_what_references_passed(tmp_path: Path) -> None:
    sound = pytest_task(id="sound", solution={"adding.py": GOOD.encode()})
    path = written(tmp_path, [sound, pytest_task(id="bad"), double_task(0)])
    done = codeenv("validate", path, "--runs", "2", "--record")
    assert done.returncode == 1
    assert done.stdout.endswith("2 of 3 tasks are sound (8 gradings); 1 bad\nrecorded the tests of 1 tasks\n"), (
        done.stdout
    )
    rows = [json.loads(line)["grader"] for line in path.read_text().splitlines()]
    assert rows[0]["expected"] == ["test_adding.py::test_negative", "test_adding.py::test_small"]
    assert rows[1]["expected"] == []
    found = json.loads(codeenv("validate", path, "--runs", "1", "--json").stdout)
    assert [report["flake_rate"] for report in found["reports"]] == [None, 0.0, 0.0]
    path.write_text(path.read_text().replace("def test_small", "def test_tiny"))
    done = codeenv("validate", path)
    assert done.returncode == 2
    assert "the expected ids were recorded for other tests" in done.stderr
    assert "recorded the tests of 1 tasks" in codeenv("validate", path, "--runs", "1", "--record").stdout
    assert json.loads(path.read_text().splitlines()[0])["grader"]["expected"][1] == "test_adding.py::test_tiny"


def test_validate_shows_flakes(tmp_path: Path) -> None:
    program = b"import os\nprint(int(input()) * (2 + (os.urandom(1)[0] < 64)))\n"
    flaky = double_task(solution={"main.py": program}, wrong={})
    path = written(tmp_path, [flaky.model_copy(update={"grader": flaky.grader.model_copy(update={"retries": 1})})])
    done = codeenv("validate", path, "--runs", "24")  # but for one chance in a thousand both ends are seen
    assert done.returncode == 0
    assert re.search(r"^double-0: the reference failed \d+% of 24 runs$", done.stdout, re.MULTILINE), done.stdout


def test_validate_tells_infra_from_bad_tasks(dataset: Path) -> None:
    code = (
        "import codeenv.validate, codeenv.cli\n"
        "from codeenv.sandbox.api import SandboxError\n"
        "async def grade(*_, **__): raise SandboxError('no room', stage='create')\n"
        "codeenv.validate.grade = grade\n"
        f"codeenv.cli.app(['validate', {str(dataset)!r}])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 3, done.stderr
    assert "the sandbox failed: create: no room" in done.stdout
    assert "0 of 2 tasks are sound (10 gradings); 2 not fully checked" in done.stdout


def test_doctor() -> None:
    done = codeenv("doctor")
    assert done.returncode == 0, done.stdout
    assert "auto: bubblewrap" in done.stdout
    found = json.loads(codeenv("doctor", "--json").stdout)
    assert found["works"]
    assert found["auto"]["sandbox"] == "bubblewrap"
    assert {"python", "kernel", "verifiers", "anyio"} <= set(found["versions"])
    assert found["sandboxes"][0]["capabilities"]["isolation"] == "namespaces"


def test_doctor_says_when_nothing_works(tmp_path: Path) -> None:
    code = (
        "import codeenv.sandbox.bubblewrap as b, codeenv.cli\n"
        "from codeenv.sandbox.api import Probe\n"
        "b.BubblewrapProvider.probe = lambda self: Probe('bubblewrap', False, 'no user namespaces')\n"
        "codeenv.cli.app(['doctor'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "bubblewrap does not work here: no user namespaces" in done.stdout
    assert "auto: nothing" in done.stdout


def test_policy_serves_until_interrupted(dataset: Path) -> None:
    server = subprocess.Popen(
        [*COMMAND, "policy", "noop", "--dataset", str(dataset)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        base_url = server.stdout.readline().strip()
        line = server.stdout.readline()
        assert f"vf-eval codeenv -m noop -b {base_url} " in line
        with urlopen(f"{base_url}/models") as answer:
            assert json.load(answer)["data"]
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=10) == 0
    finally:
        server.kill()
        server.communicate()
