"""OpenEnv's own client against our server, over real sockets."""

from __future__ import annotations

import importlib
import json
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import pytest
import typer
from aiohttp import ClientSession
from anyio import to_thread
from typer.testing import CliRunner, Result

from codeenv.cli import app
from codeenv.policies import messages
from codeenv.policies import serve as model_server
from codeenv.policies.plans import answer
from codeenv.record import summaries
from codeenv.sandbox.api import SandboxError, SandboxProvider, SandboxSpec
from codeenv.settings import EpisodeSettings
from codeenv.sources import Tasks, load_tasks
from codeenv.task import Task
from codeenv.text_protocol import write
from codeenv.tools import ToolCall
from tests.conftest import provider_or_skip
from tests.env_support import SECRET, double_task, pytest_task
from tests.episodes import Watching, destroy

pytest.importorskip("openenv", reason="the extra `openenv` is not installed")
from codeenv.openenv import Server, serve

# Ours first: OpenEnv then comes without its web interface, which takes seconds to import.
# isort: split
import uvicorn
from openenv.cli.__main__ import app as openenv_command
from openenv.core import GenericEnvClient
from websockets.exceptions import ConnectionClosed

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[1]
TASKS = [double_task(n) for n in range(3)]
HELD_OUT = [pytest_task()]
Client = Callable[..., AbstractAsyncContextManager[GenericEnvClient]]


@asynccontextmanager
async def serving(provider: SandboxProvider, **options: Any) -> AsyncIterator[tuple[str, Client]]:
    splits = options.pop("splits", {"train": Tasks.of(TASKS), "eval": Tasks.of(HELD_OUT)})
    own = {name: options.pop(name) for name in [*options] if name in EpisodeSettings.model_fields}
    async with serve(splits, provider, EpisodeSettings(**own), **options) as url:
        yield url, lambda **further: GenericEnvClient(base_url=url, mode="simulation", **further)


@pytest.fixture(scope="module")
async def server(anyio_backend: Any) -> AsyncIterator[tuple[str, Client]]:
    """One for the tests that break nothing and look at no box."""
    async with serving(provider_or_skip("bubblewrap")) as served:
        yield served


@pytest.fixture
async def watching(provider: SandboxProvider) -> AsyncIterator[Watching]:
    """Of whose boxes none is left after the test."""
    watched = Watching(provider)
    yield watched
    assert watched.alive == 0


def action(*calls: ToolCall, text: str = "") -> dict[str, Any]:
    return {"message": text, "calls": [{"name": c.name, "arguments": c.arguments or {}, "id": c.id} for c in calls]}


def bash(command: str) -> dict[str, Any]:
    return action(ToolCall("bash", {"command": command}, "call-1"))


SUBMIT = action(ToolCall("submit", {}))


async def played(client: GenericEnvClient, policy: str, task: Task, **which: Any) -> Any:
    result = await client.reset(**which)
    assert result.observation["task_id"] == task.id
    native = result.observation["protocol"] == "tools"
    for message in messages(policy, task, text=not native):
        text = "\n\n".join(write(call.name, dict(call.arguments or {})) for call in message.calls)
        result = await client.step(action(*message.calls) if native else {"message": text})
        if result.done:
            return result
    raise AssertionError("the episode did not end")


async def gone(watching: Watching, but: int = 0) -> None:
    with anyio.fail_after(20):
        while watching.alive > but:
            await anyio.sleep(0.01)


# --- episodes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["tools", "text"])
@pytest.mark.parametrize(("policy", "reward"), [("oracle", 1.0), ("wrong", 0.0), ("noop", 0.0)])
async def test_the_client_plays_whole_episodes_one_after_another(
    watching: Watching, protocol: str, policy: str, reward: float
) -> None:
    async with serving(watching, protocol=protocol) as (_, client), client() as env:
        for task in TASKS[:2]:
            result = await played(env, policy, task)
            assert (result.done, result.reward) == (True, reward)
            assert result.observation["outcome"] == ("solved" if reward else "failed")
            assert (result.observation["tests_passed"], result.observation["tests_total"]) == (int(reward), 1)
            state = await env.state()
            assert (state["task_id"], state["over"]) == (task.id, "submitted")
            assert state["step_count"] == state["tally"]["turns"] == sum(state["tally"]["calls"].values()) > 0
    assert watching.alive == 0


async def test_an_answer_is_a_whole_episode(provider: SandboxProvider) -> None:
    task = double_task(answer={"path": "main.py"}, family="program")
    splits = {"train": Tasks.of([task])}
    async with serving(provider, splits=splits, protocol="answer", max_turns=1) as (_, client), client() as env:
        await env.reset()
        result = await env.step({"message": "```python\nprint(int(input()) * 2)\n```"})
        assert (result.done, result.reward) == (True, 1.0)


async def test_a_step_says_what_a_policy_may_see(watching: Watching) -> None:
    async with serving(watching) as (_, client), client() as env:
        start = (await env.reset(task_id="add", episode_id="mine")).observation
        assert [message["role"] for message in start["messages"]] == ["system", "user"]
        assert "Implement add(a, b)" in start["messages"][1]["content"]
        assert [tool["name"] for tool in start["tools"]][:2] == ["bash", "read_file"]
        seen = await env.step(bash("echo out; exit 3"))
        assert (seen.done, seen.reward) == (False, None)
        assert (seen.observation["text"], seen.observation["exit_code"]) == ("out\n[exit code 3]", 3)
        assert seen.observation["results"][0]["id"] == "call-1"
        two = await env.step(action(ToolCall("bash", {"command": "echo a"}, "x"), ToolCall("nothing", '{"half', "y")))
        assert [(each["id"], each["valid"]) for each in two.observation["results"]] == [("x", True), ("y", False)]
        assert (await env.state())["episode_id"] == "mine"
        shown = json.dumps([start, seen.observation, two.observation, await env.state()])
        tests = (await env.step(action(ToolCall("run_tests")))).observation
        done = await env.step(SUBMIT)
        assert (done.reward, done.observation["tests_total"]) == (0.0, 2)
        assert SECRET not in shown + json.dumps([tests, done.observation, await env.state()])


async def test_limits_and_stop_are_judged_all_the_same(watching: Watching) -> None:
    write = action(ToolCall("write_file", {"path": "main.py", "content": "print(int(input()) * 2)"}))
    async with serving(watching, max_turns=2) as (_, client), client() as env:
        await env.reset(index=0)
        await env.step(write)
        result = await env.step(bash("true"))
        assert (result.done, result.reward, result.observation["outcome"]) == (True, 1.0, "limit")
        await env.reset(index=0)
        await env.step(write)
        result = await env.step({"stop": True})
        assert (result.done, result.reward, result.observation["outcome"]) == (True, 1.0, "limit")


async def test_the_client_of_the_docs_plays_an_episode(watching: Watching) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "openenv.md").read_text(), re.DOTALL)
    code = blocks[0].replace("tip-jar-payout", "double-1").replace("gpt-4.1-mini", "oracle")
    async with serving(watching) as (url, _), model_server("oracle", TASKS) as model:
        code = code.replace("http://localhost:8000", url).replace(
            "OpenAI()", f"OpenAI(base_url={model.base_url!r}, api_key='none')"
        )
        found: dict[str, Any] = {}
        await to_thread.run_sync(exec, code, found)
    assert (found["result"].reward, found["result"].observation["outcome"]) == (1.0, "solved")
    assert found["messages"][-1]["role"] == "tool"


# --- which task ------------------------------------------------------------------------------------------------------


async def test_tasks_are_named_placed_seeded_or_next(provider: SandboxProvider) -> None:
    async with serving(provider) as (url, client), client() as env, client() as other:

        async def task_of(env: GenericEnvClient, **which: Any) -> str:
            return (await env.reset(**which)).observation["task_id"]

        assert await task_of(env, task_id="double-2") == "double-2"
        assert await task_of(env, split="eval", index=0) == "add"
        assert await task_of(env, seed=7) == await task_of(other, seed=7)
        nexts = [await task_of(each) for each in (env, other, env, other)]
        assert nexts == ["double-0", "double-1", "double-2", "double-0"]
        async with ClientSession(url) as http:
            assert [split["name"] for split in await (await http.get("/codeenv/splits")).json()] == ["train", "eval"]
            asked = await http.post("/codeenv/task_range", json={"split": "train", "start": 1})
            assert [task["id"] for task in (await asked.json())["tasks"]] == ["double-1", "double-2"]
            assert (await http.post("/codeenv/task", json={"split": "train", "index": 9})).status == 400
            assert (await http.post("/codeenv/num_tasks", json={"split": "test"})).status == 400


async def test_the_schema_and_metadata_are_ours(server: tuple[str, Client]) -> None:
    async with ClientSession(server[0]) as http:
        schema = await (await http.get("/schema")).json()
        assert set(schema["action"]["properties"]) >= {"message", "calls", "stop"}
        assert set(schema["observation"]["properties"]) >= {"text", "exit_code", "done", "reward", "outcome"}
        assert set(schema["reset_observation"]["properties"]) >= {"task_id", "messages", "tools"}
        assert set(schema["state"]["properties"]) >= {"step_count", "over", "tally"}
        assert (await (await http.get("/metadata")).json())["name"] == "codeenv"


# --- what goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"task_id": "nope"}, "task_id: 'nope' is not a task"),
        ({"split": "test"}, "split: must be one of train, eval, not 'test'"),
        ({"index": 3}, "index: must be 0 to 2, not 3"),
        ({"index": -1}, "index: must be 0 to 2"),
        ({"task_id": "add", "seed": 1}, "leave out split, index and seed"),
        ({"taskid": "add"}, "unknown arguments taskid; valid: seed, episode_id, task_id"),
    ],
    ids=["task", "split", "index", "negative", "both", "unknown"],
)
async def test_a_wrong_reset_is_an_error_and_the_episode_goes_on(
    server: tuple[str, Client], asked: dict[str, Any], said: str
) -> None:
    async with server[1]() as env:
        await env.reset()
        with pytest.raises(RuntimeError, match=said):
            await env.reset(**asked)
        assert (await env.step(bash("echo on"))).observation["text"] == "on"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"action": "bash"}, "VALIDATION_ERROR"),
        ({"calls": [{"arguments": {}}]}, "VALIDATION_ERROR"),
        ({"calls": "bash"}, "VALIDATION_ERROR"),
    ],
    ids=["unknown", "nameless", "no-list"],
)
async def test_a_malformed_action_costs_no_turn(server: tuple[str, Client], given: Any, said: str) -> None:
    async with server[1]() as env:
        await env.reset()
        with pytest.raises(RuntimeError, match=said):
            await env.step(given)
        assert (await env.state())["step_count"] == 0


async def test_a_step_without_an_episode_is_refused(provider: SandboxProvider) -> None:
    async with serving(provider, protocol="text") as (url, client), client() as env:
        with pytest.raises(RuntimeError, match="there is no episode yet; reset begins one"):
            await env.step({"message": "hello"})
        await env.reset()
        with pytest.raises(RuntimeError, match="with the protocol 'text' a message is text"):
            await env.step(bash("true"))
        await env.step({"stop": True})
        with pytest.raises(RuntimeError, match=r"the episode is over \(limit\); reset begins one"):
            await env.step({"message": "hello"})
        async with ClientSession(url) as http:
            answer = await http.post("/step", json={"action": {"message": "hello"}})
            assert (answer.status, "no episode yet" in await answer.text()) == (400, True)


async def test_a_lost_box_is_an_error_without_a_reward_and_the_session_goes_on(watching: Watching) -> None:
    async with serving(watching) as (_, client), client() as env:
        await env.reset()
        await destroy(watching.boxes[0])
        with pytest.raises(RuntimeError, match="infra: "):
            await env.step(bash("true"))
        assert (await env.state())["outcome"] == "infra"
        with pytest.raises(RuntimeError, match=r"the episode is over \(infra\)"):
            await env.step(SUBMIT)
        assert (await played(env, "oracle", TASKS[1])).reward == 1.0


class Full(Watching):
    """There are no boxes after the first ones."""

    def __init__(self, inner: SandboxProvider, there: int) -> None:
        super().__init__(inner)
        self.there = there

    async def open(self, spec: SandboxSpec) -> Any:
        if len(self.boxes) >= self.there:
            raise SandboxError("no box today", stage="create", seconds=0.5)
        return await super().open(spec)


@pytest.mark.parametrize("there", [0, 1], ids=["of-the-policy", "of-the-tests"])
async def test_a_box_that_cannot_be_made_is_an_error_without_a_reward(provider: SandboxProvider, there: int) -> None:
    async def play(env: GenericEnvClient) -> None:
        await env.reset()
        await env.step(SUBMIT)

    async with serving(Full(provider, there)) as (url, client), client() as env:
        with pytest.raises(RuntimeError, match=r"infra: .*create after 0\.\d\d s: no box today"):
            await play(env)
        assert (await env.state())["outcome"] == "infra"
        if not there:
            async with ClientSession(url) as http:
                assert (await http.post("/reset", json={})).status == 503


# --- sessions --------------------------------------------------------------------------------------------------------


async def test_sessions_are_apart_and_bounded(watching: Watching) -> None:
    async with serving(watching, max_sessions=3) as (_, client):
        async with client() as one, client() as two, client() as three:
            await one.reset(index=0)
            await two.reset(index=0)
            await one.step(bash("touch only-here"))
            assert (await two.step(bash("ls"))).observation["text"] == "main.py"
            async with anyio.create_task_group() as group:
                group.start_soon(partial(played, three, "oracle", TASKS[1], index=1))
                group.start_soon(one.step, bash("sleep 0.2"))
            async with client() as four:
                with pytest.raises(RuntimeError, match="CAPACITY_REACHED"):
                    await four.reset()
        await gone(watching)
        async with client() as again:
            assert (await again.reset()).observation["task_id"]


@pytest.mark.parametrize("how", ["close", "drop"])
async def test_the_box_goes_with_its_session(watching: Watching, how: str) -> None:
    async with serving(watching) as (_, client):
        env, stays = client(), client()
        await stays.reset()
        await env.reset()
        assert watching.alive == 2
        if how == "close":
            await env.close()
        else:
            env._ws.transport.abort()
        await gone(watching, but=1)
        assert (await stays.step(bash("echo on"))).observation["text"] == "on"
        await stays.close()


async def test_a_reset_ends_the_episode_before(watching: Watching) -> None:
    async with serving(watching) as (_, client), client() as env:
        for _ in range(3):
            await env.reset()
            assert watching.alive == 1


async def test_the_server_ends_what_is_under_way(watching: Watching) -> None:
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            async with serving(watching) as (_, client):
                env, waits = client(), client()
                await waits.reset()
                await env.reset()

                async def step() -> None:
                    with pytest.raises((RuntimeError, OSError, ConnectionClosed)):
                        await env.step(bash("echo under way > /tmp/there; sleep 60"))

                group.start_soon(step)
                box = watching.boxes[1]
                while (await box.exec("test -e /tmp/there")).exit_code:
                    await anyio.sleep(0.02)
            assert watching.alive == 0


async def test_an_error_of_the_caller_is_his_own(watching: Watching) -> None:
    async def play() -> None:
        async with serving(watching) as (_, client):
            await client().reset()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await play()


async def test_a_request_without_a_session_leaves_no_box(watching: Watching) -> None:
    async with serving(watching) as (url, _), ClientSession(url) as http:
        answer = await http.post("/reset", json={"task_id": "double-1"})
        assert (await answer.json())["observation"]["task_id"] == "double-1"
        await gone(watching)


# --- the command -----------------------------------------------------------------------------------------------------


async def invoked(arguments: list[str], command: typer.Typer = app) -> Result:
    """In a thread, where it may have a loop of its own."""
    return await to_thread.run_sync(CliRunner().invoke, command, arguments)


async def test_the_command_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "codeenv", "serve", "--openenv", "--port", "0", "--limit", "2"]
    command += ["--settings", '{"max_turns": 1}', "--record", str(tmp_path)]
    async with await anyio.open_process(command, stderr=None) as process:
        try:
            assert process.stdout is not None
            said = b""
            with anyio.fail_after(60):
                while b"tasks of" not in said:
                    said += await process.stdout.receive()
            url, train = said.decode().split("\n", 1)
            assert train.startswith("train: 2 tasks of starter")
            env = GenericEnvClient(base_url=url, mode="simulation")
            await env.reset()
            result = await env.step(bash("pwd"))
            assert (result.done, result.observation["text"]) == (True, "/workspace")
            await env.reset()
            process.send_signal(signal.SIGTERM)
            with anyio.fail_after(30):
                assert await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()
    recorded = {(each.outcome, each.turns, each.ended) for each in summaries(tmp_path)}
    assert recorded == {("limit", 1, True), (None, 0, True)}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "say what to speak: --openenv"),
        (
            ["--openenv", "-s", '{"max_turn": 3}'],
            "--settings: max_turn: Extra inputs are not permitted; valid: protocol",
        ),
        (["--openenv", "-s", "[]"], "--settings: must be a JSON object"),
        (["--openenv", "--dataset", "nowhere"], "no dataset 'nowhere'"),
    ],
    ids=["what", "setting", "no-object", "dataset"],
)
async def test_wrong_usage_is_named(arguments: list[str], said: str) -> None:
    done = await invoked(["serve", *arguments])
    assert (done.exit_code, said in done.output) == (2, True), done.output


async def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = await invoked(["serve", "--openenv", "--limit", "1", "--port", port])
    assert (done.exit_code, f"cannot listen on 127.0.0.1:{port}: Address already in use" in done.output) == (2, True)


async def test_openenv_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "codeenv.openenv")
    for name in [name for name in sys.modules if name.split(".")[0] == "openenv"]:
        monkeypatch.setitem(sys.modules, name, None)
    done = await invoked(["serve", "--openenv", "--limit", "1", "--port", "0"])
    assert (done.exit_code, "pip install 'codeenv[openenv]'" in done.output) == (2, True), done.output


# --- OpenEnv's own `import` of a verifiers environment ---------------------------------------------------------------


@pytest.fixture
async def imported(tmp_path: Path) -> AsyncIterator[ModuleType]:
    """The server's module of the package that the command made."""
    config = ROOT / "configs" / "openenv"
    command = ["import", str(config), "--name", "codeenv_answers", "--output-dir", str(tmp_path)]
    done = await invoked(command, openenv_command)
    assert done.exit_code == 0, done.output
    assert "answers:load_environment as 'codeenv_answers' (verifiers)" in " ".join(done.output.split())
    sys.path.insert(0, str(tmp_path))
    try:
        yield importlib.import_module("codeenv_answers.server.app")
    finally:
        sys.path.remove(str(tmp_path))
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
