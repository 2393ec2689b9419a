"""The verifiers environment, in process, over a real socket to a scripted policy, on the real sandbox."""

from __future__ import annotations

import json
import logging
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest
import verifiers as vf
from env_support import SECRET, WrappedProvider, WrappedSandbox, double_task, make_env, play, pytest_task, write_set

import codeenv
from codeenv.load import load_environment
from codeenv.sandbox.api import SandboxError, SandboxLost
from codeenv.task import Answer, Task

pytestmark = pytest.mark.anyio


@pytest.fixture(
    params=[
        pytest.param(("asyncio", {"use_uvloop": False}), id="asyncio"),
        pytest.param(("asyncio", {"use_uvloop": True}), id="uvloop"),
    ]
)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return request.param


only_asyncio = pytest.mark.parametrize("anyio_backend", [("asyncio", {})], ids=["asyncio"])


@pytest.mark.parametrize("protocol", ["tools", "text"])
async def test_policies_get_the_rewards_they_deserve(protocol: str) -> None:
    tasks = [double_task(), pytest_task()]
    rewards = {}
    for policy in ("oracle", "wrong", "noop"):
        outputs = await play(make_env(tasks, protocol=protocol), policy)
        assert all(output["error"] is None for output in outputs)
        rewards[policy] = [(output["reward"], output["outcome"]) for output in outputs]
    assert rewards == {"oracle": [(1.0, "solved")] * 2, "wrong": [(0.0, "failed")] * 2, "noop": [(0.0, "failed")] * 2}


def answered_task(number: int = 0) -> Task:
    return double_task(number, family="program", answer=Answer(path="main.py"))


@only_asyncio
@pytest.mark.parametrize("system_prompt", [None, "", "Be brief."], ids=["ours", "none", "own"])
async def test_an_answer_is_one_message_and_nothing_comes_back(system_prompt: str | None) -> None:
    env = make_env([answered_task()], protocol="answer", system_prompt=system_prompt)
    for policy, reward, outcome in (("oracle", 1.0, "solved"), ("wrong", 0.0, "failed"), ("noop", 0.0, "failed")):
        (output,) = await play(env, policy)
        assert (output["reward"], output["outcome"], output["error"]) == (reward, outcome, None)
        assert [message["role"] for message in output["completion"]] == ["assistant"]
        assert not output["is_truncated"]
        assert output["metrics"]["turns"] == 1
        assert "raise NotImplementedError" in str(output["prompt"])
    assert output["verdict"]["reason"] == "there is no code in the message"


@only_asyncio
async def test_an_answer_counts_that_a_limit_of_the_frameworks_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    env = make_env([answered_task()], protocol="answer")
    env.max_total_completion_tokens = 1
    (output,) = await play(env, "oracle")
    assert (output["reward"], output["outcome"]) == (1.0, "solved")


@pytest.mark.parametrize(
    ("arguments", "protocol"),
    [
        ({"max_turns": 1}, "answer"),
        ({"max_turns": 2}, "tools"),
        ({"max_turns": 1, "protocol": "text"}, "text"),
        ({"protocol": "answer"}, "answer"),
    ],
    ids=["one-turn", "two-turns", "asked-for-text", "asked-for"],
)
def test_one_turn_is_an_answer_unless_it_is_said(arguments: dict[str, Any], protocol: str, tmp_path: Path) -> None:
    env = load_environment(write_set(tmp_path, [answered_task(n) for n in range(2)]), sandbox="bubblewrap", **arguments)
    assert env.settings.protocol == protocol
    assert bool(env.tool_defs) == (protocol == "tools")


def test_tasks_that_cannot_be_answered_are_played_with_tools_or_named(tmp_path: Path) -> None:
    path = write_set(tmp_path, [answered_task(), double_task(1)])
    assert load_environment(path, sandbox="bubblewrap", max_turns=1).settings.protocol == "tools"
    with pytest.raises(ValueError, match="protocol: 1 tasks cannot be answered with one block of code: double-1"):
        load_environment(path, sandbox="bubblewrap", protocol="answer")


@only_asyncio
async def test_starter_is_played_through_the_front_door() -> None:
    env = load_environment(tasks=["tip-jar-payout", "raft-pond"], sandbox="bubblewrap")
    outputs = await play(env, "oracle")
    assert [output["task_id"] for output in outputs] == ["tip-jar-payout", "raft-pond"]
    for output in outputs:
        assert output["reward"] == 1.0
        metrics = output["metrics"]
        assert metrics["tests_passed_fraction"] == 1.0
        assert metrics["outcome_solved"] == 1.0
        assert metrics["turns"] >= 3
        assert metrics["calls_submit"] == 1.0
        assert metrics["test_runs"] >= 1
        assert metrics["test_runs_per_turn"] == pytest.approx(metrics["test_runs"] / metrics["turns"])
        assert metrics["create_seconds"] > 0
        assert metrics["exec_seconds"] > 0
        assert metrics["grade_seconds"] > 0
        assert metrics["box_seconds"] > metrics["create_seconds"]
        assert metrics["grading_attempts"] == 1.0
        assert metrics["observation_tokens"] > 0


@only_asyncio
async def test_partial_credit_is_added() -> None:
    env = load_environment(tasks=["tip-jar-payout"], partial_credit=0.5, sandbox="bubblewrap")
    (output,) = await play(env, "wrong")
    fraction = output["metrics"]["tests_passed_fraction"]
    assert 0 < fraction < 1
    assert output["reward"] == pytest.approx(0.5 * fraction)


@only_asyncio
async def test_garbage_costs_turns_and_nothing_else() -> None:
    env = make_env([double_task(n) for n in range(3)], max_turns=40)
    outputs = await play(env, "garbage")
    for output in outputs:
        assert output["outcome"] in ("failed", "limit", "model")
        assert output["metrics"]["invalid_calls"] > 5 or output["outcome"] == "model"


@only_asyncio
@pytest.mark.parametrize("protocol", ["tools", "text"])
async def test_prompts_only_grow_by_appending(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    env = make_env([pytest_task()], protocol=protocol)
    prompts: list[list[Any]] = []
    original = env.get_model_response

    async def watch(state: vf.State, prompt: Any, **kwargs: Any) -> Any:
        prompts.append([json.loads(message.model_dump_json()) for message in prompt])
        return await original(state, prompt, **kwargs)

    monkeypatch.setattr(env, "get_model_response", watch)
    (output,) = await play(env, "oracle")
    assert output["reward"] == 1.0
    assert len(prompts) >= 4
    for before, after in pairwise(prompts):
        assert after[: len(before)] == before
        assert after[len(before)]["role"] == "assistant"


@only_asyncio
async def test_an_environment_built_in_a_worker_thread_works() -> None:
    made: list[Any] = []
    thread = threading.Thread(target=lambda: made.append(make_env([double_task()])))
    thread.start()
    await anyio.to_thread.run_sync(thread.join)
    (output,) = await play(made[0], "oracle")
    assert output["reward"] == 1.0


@only_asyncio
async def test_the_last_turn_is_played_and_the_limit_is_graded() -> None:
    """With as many turns as the oracle needs without its submit, the workspace is solved and the outcome says limit."""
    (free,) = await play(make_env([double_task()]), "oracle")
    turns = int(free["metrics"]["turns"]) - 1
    (output,) = await play(make_env([double_task()], max_turns=turns), "oracle")
    assert (output["outcome"], output["reward"], output["metrics"]["turns"]) == ("limit", 1.0, turns)
    assert output["is_truncated"]


@only_asyncio
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param({"sandbx": "auto"}, r"unknown arguments: sandbx; valid: .*sandbox", id="unknown"),
        pytest.param({"dataset": "nope"}, r"no dataset 'nope'.*starter", id="dataset"),
        pytest.param({"sandbox": "docker"}, r"unknown sandbox 'docker'; valid: auto, bubblewrap", id="sandbox"),
        pytest.param({"protocol": "xml"}, r"protocol[\s\S]*'tools', 'text' or 'answer'", id="protocol"),
        pytest.param({"tools": ["bash", "browser"]}, r"'browser'; valid: bash", id="tools"),
        pytest.param({"limits": {"memory": 5}}, r"memory", id="limits"),
        pytest.param({"limits": {"cpus": 2}}, r"cpus", id="unenforceable"),
        pytest.param({"tasks": ["nope"]}, r"no such task: nope", id="tasks"),
        pytest.param({"partial_credit": -1}, r"partial_credit", id="partial_credit"),
        pytest.param({"prompts": "/nonexistent"}, r"prompts", id="prompts"),
        pytest.param({"python": "python-nope"}, r"python-nope", id="python"),
        pytest.param({"observation_tokens": 5}, r"observation_tokens", id="observation_tokens"),
    ],
)
async def test_bad_arguments_are_named(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=says):
        load_environment(**arguments)


async def _raise(error: Exception) -> None:
    raise error


def _faulty(call: str, error: Exception, *, box: int = 1, at: int = 1) -> WrappedProvider:
    """The `box`-th box's `at`-th call of that name fails."""

    def wrap(inner: Any, number: int) -> Any:
        counts = {"n": 0}

        async def fault() -> None:
            counts["n"] += 1
            if counts["n"] == at:
                raise error

        return WrappedSandbox(inner, {call: fault}) if number == box else inner

    return WrappedProvider(wrap)


@only_asyncio
@pytest.mark.parametrize(
    ("provider", "stage"),
    [
        pytest.param(
            lambda: WrappedProvider(before=lambda n: _raise(SandboxError("no room", stage="create", seconds=0.5))),
            "create",
            id="create",
        ),
        pytest.param(
            lambda: _faulty("write_file", SandboxLost("gone", stage="write_file", seconds=0.1)),
            "write_file",
            id="later-turn",
        ),
        pytest.param(
            lambda: _faulty("export", SandboxLost("gone", stage="export", seconds=0.1)), "export", id="export"
        ),
        pytest.param(
            lambda: _faulty("exec", SandboxLost("gone", stage="exec", seconds=0.1), box=2),
            "grading: exec",
            id="grading",
        ),
        pytest.param(
            lambda: _faulty("import_", OSError(28, "disk full"), box=2), "grading: import", id="grading-import"
        ),
    ],
)
async def test_faults_of_the_sandbox_are_infra_and_say_where(provider: Any, stage: str) -> None:
    tools = ("bash", "read_file", "write_file", "edit_file", "submit")  # no run_tests: the second box is the last one
    (output,) = await play(make_env([double_task()], provider(), tools=tools), "oracle")
    assert output["outcome"] == "infra"
    assert output["error"]["error"] == "SandboxError"
    assert f"{stage} after 0." in output["error"]["message"]
    assert output["metrics"]["outcome_infra"] == 1.0
    assert "verdict" not in output or not output["verdict"]


@only_asyncio
async def test_infra_faults_are_retried_by_the_framework() -> None:
    async def first_fails(number: int) -> None:
        if number == 1:
            raise SandboxError("no room", stage="create", seconds=0.0)

    provider = WrappedProvider(before=first_fails)
    (output,) = await play(make_env([double_task()], provider), "noop", max_retries=2)
    assert output["error"] is None
    assert output["outcome"] == "failed"


@only_asyncio
async def test_a_dead_endpoint_is_the_models_fault_and_nothing_is_graded() -> None:
    provider = WrappedProvider()
    (output,) = await play(make_env([double_task()], provider), "oracle", url="http://127.0.0.1:9/v1")
    assert output["outcome"] == "model"
    assert output["error"]["error"] == "ModelError"
    assert provider.made == 1


@only_asyncio
async def test_ttl_is_expired_and_scored_zero() -> None:
    """The box goes while the policy thinks: it answers only after the TTL."""
    env = make_env([double_task(grader=double_task().grader.model_copy(update={"timeout": 1.0}))], ttl_seconds=10)
    env.settings = env.settings.model_copy(update={"ttl_seconds": 1.0})
    (output,) = await play(env, "oracle", latency=1.5)
    assert (output["outcome"], output["reward"], output["error"]) == ("expired", 0.0, None)


@only_asyncio
async def test_a_solution_that_loops_under_the_tests_has_failed() -> None:
    task = double_task(
        solution={"main.py": b"while True: pass\n"},
        grader=double_task().grader.model_copy(update={"case_timeout": 1.0}),
    )
    (output,) = await play(make_env([task]), "oracle")
    assert (output["outcome"], output["reward"], output["error"]) == ("failed", 0.0, None)


@only_asyncio
async def test_one_bad_row_never_ends_a_run() -> None:
    """A row of no task, a malformed one, a box with an unforeseen exception, one that times out: the rest finish."""

    def wrap(inner: Any, number: int) -> Any:
        if number == 1:
            return WrappedSandbox(inner, {"exec": lambda: _raise(RuntimeError("a bug"))})
        if number == 2:
            return WrappedSandbox(inner, {"exec": lambda: anyio.sleep(60)})
        return inner

    env = make_env([double_task(n) for n in range(6)], WrappedProvider(wrap), tools=("bash", "write_file", "submit"))
    env.timeout_seconds = 8.0
    rows = env.get_eval_dataset().to_list()
    rows.append({**rows[0], "example_id": 6, "info": json.dumps({"task_id": "no-such-task"})})
    rows.append({**rows[0], "example_id": 7, "info": json.dumps(["not", "a", "mapping"])})
    outputs = await play(env, "oracle", inputs=rows, concurrent=2)
    outcomes = sorted(output["outcome"] for output in outputs)
    assert len(outputs) == 8
    assert outcomes == ["infra", "infra", "infra", "limit", "solved", "solved", "solved", "solved"]
    messages = " ".join(output["error"]["message"] for output in outputs if output["error"])
    assert "no-such-task" in messages
    assert "a bug" in messages


@only_asyncio
async def test_group_advantages_leave_infra_out() -> None:
    async def third_fails(number: int) -> None:
        if number == 3:
            raise SandboxError("no room", stage="create", seconds=0.0)

    env = make_env([double_task()], WrappedProvider(before=third_fails))
    empty: dict[str, Any] = {"trajectory": [], "prompt": [], "completion": [], "input": {}, "info": {}}
    ends = (("solved", 1.0), ("failed", 0.0), ("infra", 0.0))
    states = [vf.State(**empty, outcome=outcome, verdict={"reward": reward}) for outcome, reward in ends]
    await env.rubric.score_group(states)
    assert [state["advantage"] for state in states] == [0.5, -0.5, 0.0]


@only_asyncio
async def test_nothing_hidden_is_in_rows_outputs_or_logs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    env = make_env([pytest_task()], feedback="messages")
    outputs = await play(env, "wrong") + await play(env, "noop")
    text = (
        json.dumps(outputs, default=str) + json.dumps(env.get_eval_dataset().to_list()) + caplog.text + repr(env.tasks)
    )
    # What an assert says of its own accord is the one thing that `messages` shows the policy.
    shown = text.count(SECRET)
    completions = json.dumps([output["completion"] for output in outputs], default=str).count(SECRET)
    assert shown == completions
    assert SECRET not in json.dumps([output["verdict"] for output in outputs])
    env = make_env([pytest_task()])
    outputs = await play(env, "wrong")
    assert SECRET not in json.dumps(outputs, default=str)


@only_asyncio
async def test_lazy_names_are_all_there() -> None:
    for name in codeenv.__all__:
        assert getattr(codeenv, name) is not None
    with pytest.raises(AttributeError, match="nope"):
        _ = codeenv.nope
