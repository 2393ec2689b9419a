"""OpenEnv's own `import` of a verifiers environment: it takes ours, and what it makes gives our rewards."""

from __future__ import annotations

import importlib
import json
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import pytest
from typer.testing import CliRunner

from codeenv.policies.plans import answer
from codeenv.sandbox.api import SandboxProvider
from codeenv.sources import load_tasks
from codeenv.tools import ToolCall
from tests.env_support import SECRET, WrappedProvider, make_env, pytest_task

pytest.importorskip("openenv", reason="the extra `openenv` is not installed")
import uvicorn
from openenv.cli.__main__ import app as openenv_command
from openenv.core import GenericEnvClient

from codeenv.openenv import Server

pytestmark = pytest.mark.anyio
CONFIG = Path(__file__).parents[1] / "configs" / "openenv"


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The server's module of the package that the command made."""
    folder = tmp_path_factory.mktemp("imported")
    command = ["import", str(CONFIG), "--name", "codeenv_answers", "--output-dir", str(folder)]
    done = CliRunner().invoke(openenv_command, command)
    assert done.exit_code == 0, done.output
    assert "answers:load_environment as 'codeenv_answers' (verifiers)" in " ".join(done.output.split())
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module("codeenv_answers.server.app")
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.split(".")[0] == "codeenv_answers"]:
            del sys.modules[name]


async def test_what_it_makes_serves_our_tasks_and_rewards(imported: ModuleType) -> None:
    tasks = load_tasks("humaneval", limit=2)
    server = Server(uvicorn.Config(imported.app, log_level="warning"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        async with anyio.create_task_group() as group:
            group.start_soon(server.serve, [listening])
            try:
                rewards = await scored(f"http://127.0.0.1:{listening.getsockname()[1]}", tasks)
            finally:
                server.should_exit = True
    assert rewards == [1.0, 0.0, 1.0, 0.0]


async def scored(url: str, tasks: list[Any]) -> list[Any]:
    found: list[Any] = []
    async with GenericEnvClient(base_url=url, mode="simulation") as env:
        for index, task in enumerate(tasks):
            for policy in ("oracle", "noop"):
                start = await env.reset(split="train", index=index)
                assert task.instruction.strip() in start.metadata["prompt"][-1]["content"]
                completion = answer(policy, task).text
                call = {"type": "call_tool", "tool_name": "submit", "arguments": {"completion": completion}}
                result = await env.step(call)
                assert result.done
                found.append(result.reward)
                shown = json.dumps([start.observation, start.metadata, result.observation, await env.state()])
                assert not any(test.decode() in shown for test in task.tests.values())
    return found


# --- what it calls: the score of a completion of which there was no rollout ------------------------------------------


def state_of(env: Any, *messages: dict[str, Any]) -> dict[str, Any]:
    return {**env.get_dataset()[0], "completion": list(messages), "trajectory": []}


def said(text: str = "", *calls: ToolCall) -> dict[str, Any]:
    made = [{"id": "1", "function": {"name": c.name, "arguments": json.dumps(c.arguments)}} for c in calls]
    return {"role": "assistant", "content": text, "tool_calls": made}


GOOD = ToolCall("write_file", {"path": "calc.py", "content": "def add(a, b):\n    return a + b\n"})


@pytest.mark.parametrize(
    ("messages", "reward", "outcome"),
    [
        ([said("", GOOD), {"role": "tool", "content": "wrote"}, said("", ToolCall("submit", {}))], 1.0, "solved"),
        ([said("", GOOD)], 1.0, "limit"),
        ([said("", ToolCall("submit", {})), said("", GOOD)], 0.0, "failed"),
        ([], 0.0, "limit"),
    ],
    ids=["whole", "unfinished", "after-the-end", "nothing"],
)
async def test_a_completion_of_tool_calls_is_played_and_judged(
    provider: SandboxProvider, messages: list[Any], reward: float, outcome: str
) -> None:
    env = make_env([pytest_task()], provider, max_turns=0)
    state = state_of(env, *messages)
    await env.rubric.score_rollout(state)
    assert (state["reward"], state["outcome"], state["metrics"]["hidden_tests"]) == (reward, outcome, reward)
    assert SECRET not in json.dumps(state, default=str)


async def test_a_fault_of_the_sandbox_is_an_error_and_no_reward() -> None:
    async def fail(number: int) -> None:
        from codeenv.sandbox.api import SandboxError

        raise SandboxError("no box today", stage="create")

    env = make_env([pytest_task()], WrappedProvider(before=fail), max_turns=0)
    state = state_of(env, said("", GOOD))
    with pytest.raises(Exception, match="no box today"):
        await env.rubric.score_rollout(state)
    assert "reward" not in state


async def test_a_call_in_no_known_form_is_an_error(provider: SandboxProvider) -> None:
    env = make_env([pytest_task()], provider, max_turns=0)
    state = state_of(env, {"role": "assistant", "content": None, "tool_calls": ["bash"]})
    with pytest.raises(Exception, match="tool_calls: each has an id, and a function"):
        await env.rubric.score_rollout(state)
    assert "reward" not in state
