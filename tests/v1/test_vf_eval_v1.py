"""What `codeenv eval` asks of 0.4's vf-eval, and what it reads of a saved episode. `.ci/faces.py` runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codeenv.cli import vf_eval_v1
from codeenv.cli.vf_eval import Endpoint, Rollout, Run


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        pytest.param({"dataset": "starter"}, {"dataset": "starter"}, id="one-split"),
        pytest.param({"dataset": "mbpp"}, {"dataset": "mbpp", "split": "eval"}, id="its-own-eval"),
        pytest.param(
            {"dataset": "mbpp", "tasks": ["MBPP/1"]},
            {"dataset": "mbpp", "tasks": ["MBPP/1"]},
            id="tasks-are-of-one-split",
        ),
        pytest.param(
            {"dataset": "mbpp", "eval_split": "train", "decontaminate": "humaneval"},
            {"dataset": "mbpp", "split": "train"},
            id="eval-split",
        ),
        pytest.param(
            {"dataset": "mbpp", "limit": 3, "eval_dataset": "humaneval", "max_turns": 4},
            {"dataset": "humaneval", "split": "", "max_turns": 4},
            id="eval-dataset",
        ),
    ],
)
def test_an_evaluation_is_over_the_same_tasks(arguments: dict[str, Any], asked: dict[str, Any], tmp_path: Path) -> None:
    run = Run(arguments=arguments, examples=2, rollouts=3, concurrent=4, output_dir=tmp_path, max_retries=5)
    path = vf_eval_v1.command(run, Endpoint("some", "http://127.0.0.1:1/v1", "KEY"))[-1]
    config = json.loads(Path(path).read_text())
    assert config["env"]["taskset"] == {"id": "codeenv", **asked}
    assert config["env"]["retries"] == {"rules": [{"type": "SandboxError", "max_retries": 5}]}
    assert (config["select"]["limit"], config["num_rollouts"], config["max_concurrent"]) == (2, 3, 4)
    assert config["push"] is False


@pytest.mark.parametrize("prompt", ["", "Be brief."])
def test_a_system_prompt_is_a_file(prompt: str, tmp_path: Path) -> None:
    run = Run({"dataset": "starter", "system_prompt": prompt}, 1, 1, 1, tmp_path)
    config = json.loads(Path(vf_eval_v1.command(run, Endpoint("some"))[-1]).read_text())
    assert Path(config["env"]["taskset"]["system_prompt"]).read_text() == prompt


def episode(ok: bool = True, errors: tuple[str, ...] = (), **info: Any) -> dict[str, Any]:
    trace = {
        "id": "t1",
        "task": {"data": {"idx": 4, "id": "double-4"}},
        "info": {"codeenv": {"task_id": "double-4", **info}},
        "rewards": {"hidden_tests": {"score": 1.0, "weight": 1.0}, "rest": {"score": 0.5, "weight": 0.5}, "none": None},
        "timing": {"start": 10.0, "setup": {"start": 10.0, "end": 11.0}, "scoring": {"start": 12.0, "end": 13.5}},
        "errors": [{"type": "SandboxError", "message": message} for message in errors],
    }
    return {"ok": ok, "errors": [], "traces": [trace]}


VERDICT = {"reward": 1.0, "tests_passed": 2, "tests_total": 2}


@pytest.mark.parametrize(
    ("saved", "expected"),
    [
        pytest.param(
            episode(outcome="solved", verdict=VERDICT, tally={"turns": 3}),
            Rollout("double-4", "solved", 1.25, True, 2, 2, 3, 3.5, "", 4, "t1"),
            id="solved",
        ),
        pytest.param(
            episode(outcome="solved", verdict=VERDICT, errors=("tried before",)),
            Rollout("double-4", "solved", 1.25, True, 2, 2, 0, 3.5, "", 4, "t1"),
            id="after-a-retry",
        ),
        pytest.param(
            episode(False, ("create: no\nroom",), outcome="infra"),
            Rollout("double-4", "infra", None, False, None, None, 0, 3.5, "create: no room", 4, "t1"),
            id="infra",
        ),
        pytest.param(
            episode(False, ("503",), outcome="model"),
            Rollout("double-4", "model", None, False, None, None, 0, 3.5, "503", 4, "t1"),
            id="model",
        ),
        pytest.param(
            episode(False, ("scoring: a bug",), outcome="solved", verdict=VERDICT),
            Rollout("double-4", "infra", None, False, 2, 2, 0, 3.5, "scoring: a bug", 4, "t1"),
            id="let-go-after-it-was-judged",
        ),
        pytest.param(
            {
                "ok": False,
                "task": {"data": {"idx": 7}},
                "errors": [{"type": "EnvError", "message": "early"}],
                "traces": [],
            },
            Rollout("example 7", "infra", None, False, None, None, 0, 0.0, "early", 7, ""),
            id="no-trace",
        ),
    ],
)
def test_a_saved_episode_is_read(saved: dict[str, Any], expected: Rollout) -> None:
    assert Rollout(**vf_eval_v1.rollout(saved)) == expected
