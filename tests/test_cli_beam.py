"""The command line and the real vf-eval on Beam, as it is played by a gateway in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from codeenv.graders import CommandGrader, FunctionsGrader
from codeenv.sources.jsonl import dump_task
from codeenv.task import Task
from tests.conftest import beam_account, provider_or_skip
from tests.env_support import double_task, pytest_task

DOUBLE = b"def double(n):\n    return 2 * n\n"
FUNCTIONS = b"from double import double\n\n\ndef test_one():\n    assert double(21) == 42\n"


def functions_task(number: int) -> Task:
    return Task(
        id=f"functions-{number}",
        instruction=f"Write double(n). Variant {number}.",
        files={"double.py": b"double = None\n"},
        tests={"test_double.py": FUNCTIONS},
        solution={"double.py": DOUBLE},
        wrong={"squares": {"double.py": DOUBLE.replace(b"2 * n", b"n * n")}},
        grader=FunctionsGrader(timeout=60),
    )


def command_task(number: int) -> Task:
    return Task(
        id=f"command-{number}",
        instruction=f"Write 42 into answer. Variant {number}.",
        files={"answer": b"\n"},
        tests={"check.sh": b'grep -qx 42 "$WORKSPACE/answer"\n'},
        solution={"answer": b"42\n"},
        wrong={"41": {"answer": b"41\n"}},
        grader=CommandGrader(command=("/bin/bash", "check.sh"), timeout=60),
    )


def adding_task(number: int) -> Task:
    return pytest_task(id=f"pytest-{number}", instruction=f"Implement add(a, b) in calc.py. Variant {number}.")


def tasks() -> list[Task]:
    kinds = [double_task, functions_task, command_task, adding_task]
    return [kind(number) for kind in kinds for number in range(2)]


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Of somebody who has an account on the gateway, as beam-client takes it."""
    provider_or_skip("bubblewrap")
    account = beam_account()
    return {
        **os.environ,
        "HOME": str(tmp_path_factory.mktemp("home")),
        "BEAM_TOKEN": account["token"],
        "GATEWAY_HOST": account["host"],
        "GATEWAY_PORT": str(account["port"]),
    }


def codeenv(*arguments: str | Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "codeenv", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=env)


def test_the_oracle_is_rewarded(env: dict[str, str], tmp_path: Path) -> None:
    """On every kind of task; `.ci/rewards.py` plays all of `starter`, here and on the local sandbox."""
    dataset = tmp_path / "tasks.jsonl"
    dataset.write_text("".join(dump_task(task) + "\n" for task in tasks()))
    arguments = ("eval", dataset, "--sandbox", "beam", "-p", "oracle", "-c", "8", "-o", tmp_path / "out")
    done = codeenv(*arguments, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    (results,) = (tmp_path / "out").glob("evals/*/*/results.jsonl")
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    assert {row["task_id"] for row in rows} == {task.id for task in tasks()}
    for row in rows:
        verdict = row["verdict"]
        assert (row["reward"], row["outcome"]) == (1.0, "solved")
        assert verdict["tests_passed"] == verdict["tests_total"] > 0
        assert row["metrics"]["box_seconds"] > 0
    saved = "".join(path.read_text() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert env["BEAM_TOKEN"] not in saved + done.stdout + done.stderr


def test_doctor_says_which_gateway_and_probes_on_request(env: dict[str, str]) -> None:
    found = json.loads(codeenv("doctor", "--json", env=env).stdout)
    (beam,) = [each for each in found["sandboxes"] if each["backend"] == "beam"]
    assert beam["available"]
    assert beam["versions"]["gateway"] == f"{env['GATEWAY_HOST']}:{env['GATEWAY_PORT']}"
    probed = codeenv("doctor", "--probe", "beam", "--json", env=env)
    looked = json.loads(probed.stdout)
    assert looked["python"].startswith("Python 3.")
    assert looked["token_exposed"] is False
    assert looked["workspace"]
    assert looked["seconds_create"] > 0
    assert env["BEAM_TOKEN"] not in probed.stdout + probed.stderr


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"BEAM_TOKEN": ""}, "not set up"),
        ({"BEAM_TOKEN": "another"}, "does not accept the token"),
        ({"GATEWAY_HOST": "127.0.0.1", "GATEWAY_PORT": "1"}, "127.0.0.1:1"),
    ],
    ids=["no-account", "wrong-token", "no-gateway"],
)
def test_a_probe_that_fails_says_why(changes: dict[str, str], says: str, env: dict[str, str]) -> None:
    done = codeenv("doctor", "--probe", "beam", env={**env, **changes})
    assert (done.returncode, done.stdout) == (1, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert env["BEAM_TOKEN"] not in done.stderr


@pytest.mark.parametrize("command", ["eval", "validate", "audit"])
@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("nothing", "must be NAME=VALUE"),
        ("token=hush", "would be saved with the results"),
        ("prot=1", "unknown settings of sandbox 'beam': prot; valid: host, port"),
        ("create_at_once=none", "create_at_once: Input should be a valid integer"),
    ],
    ids=["form", "token", "unknown", "type"],
)
def test_faults_of_settings(command: str, setting: str, says: str, env: dict[str, str]) -> None:
    done = codeenv(command, "starter", "--sandbox", "beam", "--sandbox-setting", setting, env=env)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "hush" not in done.stderr


def test_settings_reach_the_sandbox(env: dict[str, str], tmp_path: Path) -> None:
    """They are heeded: without the variables, they are what says where the gateway is."""
    dataset = tmp_path / "tasks.jsonl"
    dataset.write_text(dump_task(double_task(0)) + "\n")
    settings = [f"host={env['GATEWAY_HOST']}", f"port={env['GATEWAY_PORT']}", "create_at_once=1"]
    options = [word for setting in settings for word in ("--sandbox-setting", setting)]
    bare = {**env, "GATEWAY_HOST": "127.0.0.1", "GATEWAY_PORT": "1"}
    done = codeenv("validate", dataset, "--sandbox", "beam", "--runs", "1", *options, env=bare)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 tasks are sound" in done.stdout
