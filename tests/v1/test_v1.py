"""The face for verifiers v1, in process, as the framework runs it: over a real socket to a scripted policy, in real
boxes. Its commands, of 0.3.1 and 0.4.0, take seconds to start: `.ci/faces.py` runs them."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest
import verifiers.v1 as vf
from aiohttp import web
from small_tasks import (
    KEY,
    SECRET,
    WrappedProvider,
    WrappedSandbox,
    double_task,
    pytest_task,
    write_set,
)
from verifiers.v1.serve import EnvClient, EnvServer
from verifiers.v1.utils.loaders import load_environment, resolve_env_config

import codeenv
from codeenv.course import Arguments
from codeenv.policies import Script, serve
from codeenv.record import Recording
from codeenv.sandbox.api import SandboxError, SandboxLost, UnsupportedSpec
from codeenv.task import Answer, Task
from codeenv.v1 import CodeTaskset, CodeTasksetConfig

pytestmark = pytest.mark.anyio

QUICK = ["bash", "write_file", "submit"]
"""Tools without `run_tests`: one box plays, the second is grading's."""


class Run:
    """An environment over a set of tasks, as the framework loads it; and its episodes."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self.tasks = list(env.taskset)

    async def play(self, policy: str, *, url: str = "", rollouts: int = 1, **options: Any) -> list[Any]:
        known = list(self.env.taskset.config.task.stage.tasks.values())
        async with serve(policy, known, **options) as server, self.env.serving():
            client = vf.EvalClientConfig(base_url=url or server.base_url, api_key_var=KEY)
            context = vf.ModelContext(client=client, model=policy, sampling=vf.types.SamplingConfig())
            slots = [slot for task in self.tasks for slot in self.env.slots(task, rollouts)]
            episodes: list[Any] = [None] * len(slots)

            async def one(number: int) -> None:
                episodes[number] = await self.env.run_slot(slots[number], context)

            async with anyio.create_task_group() as group:
                for number in range(len(slots)):
                    group.start_soon(one, number)
        return episodes


Load = Callable[..., Run]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    def load(tasks: list[Task], provider: Any = None, agent: dict[str, Any] | None = None, **arguments: Any) -> Run:
        if provider is not None:
            monkeypatch.setattr("codeenv.course.get_provider", lambda name, **settings: provider)
        retries = {"max_retries": arguments.pop("retries", 0)}
        taskset = {"id": "codeenv", "dataset": str(write_set(tmp_path, tasks)), "sandbox": "bubblewrap", **arguments}
        config = resolve_env_config({"taskset": taskset, "agent": agent or {}, "retries": retries})
        return Run(load_environment(config))

    return load


def outcome(episode: Any) -> tuple[str, float, int, int]:
    (trace,) = episode.traces
    info = trace.info["codeenv"]
    return info["outcome"], trace.reward, info["verdict"]["tests_passed"], info["verdict"]["tests_total"]


def answered_task() -> Task:
    return double_task(family="program", answer=Answer(path="main.py"))


async def test_policies_get_the_rewards_they_deserve(load: Load) -> None:
    tasks = [double_task(), pytest_task()]
    both = {protocol: load(tasks, protocol=protocol) for protocol in ("tools", "text")}
    expected = {
        "oracle": [("solved", 1.0, 1, 1), ("solved", 1.0, 2, 2)],
        "wrong": [("failed", 0.0, 0, 1), ("failed", 0.0, 1, 2)],
        "noop": [("failed", 0.0, 0, 1), ("failed", 0.0, 0, 2)],
    }
    for protocol, run in both.items():
        for policy, found in expected.items():
            episodes = await run.play(policy)
            assert all(episode.ok for episode in episodes), (protocol, policy, episodes)
            assert [outcome(episode) for episode in episodes] == found, (protocol, policy)


async def test_a_rollout_is_whole_and_publishes_nothing_hidden(load: Load, tmp_path: Path) -> None:
    run = load([pytest_task()], partial_credit=0.5, record=str(tmp_path / "kept"))
    (episode,) = await run.play("wrong")
    (trace,) = episode.traces
    assert trace.reward == 0.25
    metrics = {"turns", "num_turns", "calls_submit", "outcome_failed", "test_runs", "grade_seconds", "box_seconds"}
    assert {name for name in metrics if trace.metrics[name] > 0} == metrics
    assert [message.role for message in trace.messages[:3]] == ["system", "user", "assistant"]
    assert len(trace.branches) == 1  # every prompt begins with the one before
    for earlier, later in pairwise(trace.calls):
        assert earlier.usage.input_tokens < later.usage.input_tokens
    assert {tool.name for tool in trace.tools} == set(codeenv.EpisodeSettings().tools)
    assert SECRET not in json.dumps(episode.model_dump(mode="json")) + json.dumps(run.tasks[0].data.model_dump())
    (recording,) = (Recording.load(path) for path in (tmp_path / "kept").glob("*.jsonl") if path.name != "index.jsonl")
    assert recording.opening.policy == "wrong"
    assert recording.end is not None
    assert recording.end.outcome == "failed"


async def test_an_answer_is_one_message(load: Load) -> None:
    run = load([answered_task()], max_turns=1)
    for policy, found in (("oracle", ("solved", 1.0)), ("wrong", ("failed", 0.0)), ("noop", ("failed", 0.0))):
        (episode,) = await run.play(policy)
        info = episode.traces[0].info["codeenv"]
        assert (info["outcome"], episode.traces[0].reward, episode.traces[0].num_turns) == (*found, 1)


async def test_a_cut_tool_call_costs_a_turn_and_says_so(load: Load) -> None:
    cut = {"tool_calls": [{"name": "bash", "arguments": '{"command": "ec', "id": "one"}]}
    (episode,) = await load([double_task()]).play("script", script=Script.of([cut]))
    assert outcome(episode)[0] == "failed"
    (trace,) = episode.traces
    assert "not complete JSON" in str(next(message for message in trace.messages if message.role == "tool").content)
    assert trace.metrics["invalid_calls"] == 1.0


@pytest.mark.parametrize("whose", ["ours", "the framework's"])
async def test_a_limit_is_graded(load: Load, whose: str) -> None:
    limit: dict[str, Any] = {"max_turns": 1} if whose == "ours" else {"agent": {"max_turns": 1}}
    (episode,) = await load([double_task()], protocol="tools", **limit).play("oracle")
    assert episode.ok
    assert outcome(episode)[0] == "limit"
    assert episode.traces[0].stop_condition == "max_turns"
    assert episode.traces[0].is_truncated


async def test_a_conversation_that_is_too_long_for_the_model_is_graded(load: Load) -> None:
    async def refuse(request: web.Request) -> web.Response:
        text = "This model's maximum context length is 10 tokens. However, your messages resulted in 99 tokens."
        body = {"error": {"message": text, "type": "invalid_request_error", "code": "context_length_exceeded"}}
        return web.json_response(body, status=400)

    app = web.Application()
    app.router.add_post("/v1/chat/completions", refuse)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        run = load([double_task()])
        (episode,) = await run.play("oracle", url=f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
    finally:
        await runner.cleanup()
    assert episode.ok
    assert (outcome(episode), episode.traces[0].stop_condition) == (("limit", 0.0, 0, 1), "context_length")


async def test_a_box_that_has_expired_is_scored_zero(load: Load) -> None:
    """It goes while the policy thinks: that answers only after the time to live."""
    run = load([double_task(grader=double_task().grader.model_copy(update={"timeout": 1.0}))])
    stage = run.env.taskset.config.task.stage
    stage.course = replace(stage.course, settings=stage.course.settings.model_copy(update={"ttl_seconds": 1.0}))
    (episode,) = await run.play("oracle", latency=1.5)
    assert episode.ok
    assert outcome(episode) == ("expired", 0.0, 0, 0)


# --- faults -----------------------------------------------------------------------------------------------------


class Counting(WrappedProvider):
    """Knows how many boxes there are."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.open_now = 0

    async def open(self, spec: Any) -> Any:
        box = await super().open(spec)
        self.open_now += 1

        async def gone() -> None:
            self.open_now -= not closed
            closed.append(True)

        closed: list[bool] = []
        return WrappedSandbox(box, {"close": gone})


async def _raise(error: Exception) -> None:
    raise error


def fails(number: int, call: str, error: Exception) -> Counting:
    return Counting(lambda box, n: WrappedSandbox(box, {call: lambda: _raise(error)}) if n == number else box)


LOST = SandboxLost("gone", stage="exec", seconds=0.1)


@pytest.mark.parametrize(
    ("provider", "says"),
    [
        pytest.param(
            lambda: Counting(before=lambda n: _raise(SandboxError("no room", stage="create", seconds=0.5))),
            "create after 0.50 s: no room",
            id="create",
        ),
        pytest.param(lambda: fails(1, "write_file", LOST), "exec after 0.10 s: gone", id="turn"),
        pytest.param(lambda: fails(1, "export", LOST), "exec after 0.10 s: gone", id="export"),
        pytest.param(lambda: fails(2, "exec", LOST), "grading: exec after 0.", id="grading"),
    ],
)
async def test_faults_of_the_sandbox_are_errors_without_a_reward(load: Load, provider: Any, says: str) -> None:
    boxes = provider()
    (episode,) = await load([double_task()], boxes, tools=QUICK).play("oracle")
    (trace,) = episode.traces
    assert not episode.ok
    assert (trace.errors[-1].type, trace.info["codeenv"]["outcome"]) == ("SandboxError", "infra")
    assert says in trace.errors[-1].message
    assert not any(trace.rewards.values())
    assert boxes.open_now == 0


async def test_infra_is_retried_and_one_bad_row_costs_no_other(load: Load) -> None:
    async def first_fails(number: int) -> None:
        if number == 1:
            raise SandboxError("no room", stage="create")

    boxes = Counting(before=first_fails)
    run = load([double_task(n) for n in range(3)], boxes, retries=1)
    run.tasks[1] = run.tasks[1].__class__(run.tasks[1].data.model_copy(update={"id": "nope"}), run.tasks[1].config)
    run.tasks[2] = run.tasks[2].__class__(run.tasks[2].data.model_copy(update={"digest": "0"}), run.tasks[2].config)
    first, unknown, changed = await run.play("oracle")
    assert outcome(first) == ("solved", 1.0, 1, 1)
    assert unknown.traces[0].errors[-1].type == changed.traces[0].errors[-1].type == "TaskError"
    assert "'nope' is not a task of this environment" in unknown.traces[0].errors[-1].message
    assert "has changed since the row was made" in changed.traces[0].errors[-1].message
    assert boxes.open_now == 0


async def test_a_failing_endpoint_is_the_models_fault(load: Load, tmp_path: Path) -> None:
    boxes = Counting()
    agent = {"harness": {"id": "codeenv", "model_retries": 0}}
    run = load([double_task()], boxes, agent=agent, record=str(tmp_path / "kept"))
    (episode,) = await run.play("oracle", url="http://127.0.0.1:9/v1")
    (trace,) = episode.traces
    assert (trace.errors[-1].type, trace.info["codeenv"]["outcome"]) == ("ProviderError", "model")
    assert not any(trace.rewards.values())
    assert (boxes.made, boxes.open_now) == (1, 0)
    (recording,) = (Recording.load(path) for path in (tmp_path / "kept").glob("*.jsonl") if path.name != "index.jsonl")
    assert recording.end is not None
    assert recording.end.outcome == "model"


@pytest.mark.parametrize("when", ["cancelled", "deadline"])
async def test_boxes_close_when_an_episode_is_cut_off(load: Load, when: str) -> None:
    boxes = Counting()
    run = load([double_task()], boxes)
    if when == "deadline":
        run.env.config.timeout.episode = 1.0
    with anyio.move_on_after(60 if when == "deadline" else 1.0):
        (episode,) = await run.play("oracle", latency=30)
        assert not episode.ok
    assert (boxes.made, boxes.open_now) == (1, 0)


async def test_the_frameworks_deadline(load: Load) -> None:
    """0.4.0 stops the agent, and what it left is judged; to 0.3.1 it is an error of the harness."""
    boxes = Counting()
    (episode,) = await load([double_task()], boxes, agent={"timeout": {"rollout": 1.0}}).play("oracle", latency=30)
    if version("verifiers").startswith("0.3."):
        assert "agent timeout" in episode.traces[0].errors[-1].message
        assert episode.traces[0].info["codeenv"]["outcome"] == "infra"
    else:
        assert outcome(episode) == ("limit", 0.0, 0, 1)
    assert boxes.open_now == 0


# --- what the framework makes of it -----------------------------------------------------------------------------


async def test_a_task_that_is_rebuilt_from_what_is_published_is_the_same(load: Load) -> None:
    run = load([double_task()], max_turns=7)
    (task,) = run.tasks
    config = resolve_env_config(json.loads(run.env.config.model_dump_json()))
    rebuilt = type(task)(type(task.data).model_validate(task.data.model_dump()), config.taskset.task)
    assert rebuilt.config.stage is task.config.stage
    assert rebuilt.config.stage.course.settings.max_turns == 7


async def test_the_server_plays_what_it_is_sent_and_a_cancelled_run_leaves_no_box(load: Load) -> None:
    boxes = Counting()
    run = load([double_task(), double_task(1)], boxes)
    known = list(run.env.taskset.config.task.stage.tasks.values())
    server = EnvServer(run.env.config, address="tcp://127.0.0.1:*")
    client, sampling = EnvClient(server.address), vf.types.SamplingConfig()
    async with (
        serve("oracle", known) as policy,
        serve("oracle", known, latency=30) as slow,
        anyio.create_task_group() as group,
    ):
        group.start_soon(server.run)
        at = vf.EvalClientConfig(base_url=policy.base_url, api_key_var=KEY)
        episode = await client.run(at, "oracle", sampling, run.tasks[1].data.model_dump())
        assert (episode.ok, episode.traces[0].task.data.id) == (True, "double-1")
        assert outcome(episode) == ("solved", 1.0, 1, 1)
        made = boxes.made
        with anyio.move_on_after(1.5):
            at = vf.EvalClientConfig(base_url=slow.base_url, api_key_var=KEY)
            await client.run(at, "oracle", sampling, run.tasks[0].data.model_dump())
        with anyio.fail_after(30):
            while boxes.open_now or boxes.made == made:
                await anyio.sleep(0.05)
        await client.close()
        group.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("changes", "sound"),
    [
        pytest.param({}, True, id="sound"),
        pytest.param({"solution": {"main.py": b"print(42 + 1)\n"}}, False, id="reference-fails"),
        pytest.param({"files": {"main.py": b"print(42)\n"}}, False, id="untouched-passes"),
        pytest.param({"solution": None}, None, id="no-reference"),
    ],
)
async def test_validate(load: Load, changes: dict[str, Any], sound: bool | None) -> None:
    (task,) = load([double_task(**changes)]).tasks
    assert await task.validate(None) is sound


async def test_an_untouched_workspace_is_judged_where_nobody_plays(load: Load) -> None:
    boxes = Counting()
    (task,) = load([double_task()], boxes).tasks
    trace = vf.Trace(
        task=vf.TraceTask(type="CodeTask", data=task.data),
        state=vf.state.state_cls(type(task))(),
        agent=vf.AgentInfo(config=vf.AgentConfig(runtime=vf.SubprocessConfig())),
    )
    await task.setup(trace)
    await task.finalize(trace)
    await task.score(trace)
    assert (trace.reward, trace.info["codeenv"]["verdict"]["tests_total"], boxes.open_now) == (0.0, 1, 0)


async def test_another_harness_is_refused(load: Load) -> None:
    boxes = Counting()
    run = load([double_task()], boxes, agent={"harness": {"id": "null"}})
    (episode,) = await run.play("oracle")
    assert "tasks of this taskset need 'codeenv'" in episode.traces[0].errors[-1].message
    assert boxes.made == 0


def test_the_arguments_are_those_of_load_environment() -> None:
    if "load_environment" not in codeenv.__all__:
        pytest.skip("load_environment is for an older verifiers")
    there = {
        name: p.default
        for name, p in inspect.signature(codeenv.load_environment).parameters.items()
        if name != "unknown"
    }
    for name in ("eval_dataset", "eval_split", "system_prompt"):
        del there[name]
    here = Arguments().model_dump()
    assert here == {name: list(value) if isinstance(value, tuple) else value for name, value in there.items()}


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"sandbox": "docker"}, ValueError, "unknown sandbox 'docker'; valid: auto, bubblewrap"),
        ({"tasks": '["nope"]'}, ValueError, "no such task: nope"),
        ({"limits": {"cpus": 2}}, UnsupportedSpec, "cpus"),
        ({"protocol": "xml"}, ValueError, r"protocol[\s\S]*'tools', 'text' or 'answer'"),
        ({"sandbx": "auto"}, ValueError, "sandbx"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_bad_arguments_are_named(arguments: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        CodeTaskset(CodeTasksetConfig(id="codeenv", **arguments))


# --- which verifiers has which face -----------------------------------------------------------------------------

V0, V1 = {"CodeEnv", "load_environment"}, {"CodeTaskset", "CodeTasksetEnv", "CodeHarness"}


@pytest.mark.parametrize(
    ("version", "there", "missing", "says"),
    [
        (
            "0.3.0",
            V0,
            "CodeTaskset",
            "is for verifiers 0.3.1 to 0.4; 0.3.0 is installed, for which there are",
        ),
        ("0.3.1", V0 | V1, "", ""),
        ("0.3.1.dev2", V0 | V1, "", ""),
        ("0.4.0", V1, "load_environment", "load_environment is for verifiers 0.3.0 to 0.3.1; 0.4.0 is installed"),
        (
            "0.4.2",
            V1,
            "CodeEnv",
            "is for verifiers 0.3.0 to 0.3.1; 0.4.2 is installed, for which there are Code",
        ),
    ],
)
def test_each_verifiers_finds_its_face(
    version: str, there: set[str], missing: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeenv.version", lambda name: version)
    assert set(codeenv.__all__) & (V0 | V1) == there
    assert {"Episode", "load_tasks"} < set(codeenv.__all__)
    if missing:
        with pytest.raises(ImportError, match=says):
            getattr(codeenv, missing)


def test_one_of_a_kind_is_exported() -> None:
    """Which verifiers finds by going through all names, and refuses two."""
    found = [getattr(codeenv, name) for name in codeenv.__all__]
    for kind in (vf.Taskset, vf.Env, vf.Harness):
        assert len([it for it in found if isinstance(it, type) and issubclass(it, kind)]) == 1
