"""The score of a completion of which there was no rollout."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codeenv.sandbox.api import SandboxError, SandboxProvider
from codeenv.tools import ToolCall
from tests.env_support import SECRET, WrappedProvider, make_env, pytest_task

pytestmark = pytest.mark.anyio


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
