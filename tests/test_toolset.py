"""Boxes behind plain functions: in a real `ToolEnv`, in the loop of an agents SDK, and called by hand."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
import verifiers as vf
from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from anyio import create_task_group
from datasets import Dataset
from openai import AsyncOpenAI
from verifiers.types import ClientConfig

from codeenv import SandboxError, SandboxSpec, sandbox_tools
from codeenv.policies import Script, serve
from codeenv.sandbox.api import Sandbox, SandboxProvider
from codeenv.toolset import SandboxTools
from tests.env_support import KEY, double_task
from tests.episodes import Watching, destroy, is_alive
from tests.wrapping import Wrapping

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[1]
TASKS = [double_task(n) for n in range(3)]
CALLED = [
    {"tool_calls": [{"name": "run_bash", "arguments": {"command": "echo ${RANDOM}${RANDOM} > mine; cat mine"}}]},
    {"tool_calls": [{"name": "run_python", "arguments": {"code": "print('again', open('mine').read())"}}]},
    {"tool_calls": [{"name": "run_tests", "arguments": {"tests": "def test_of_mine():\n    assert open('mine')\n"}}]},
    "I am done.",
]


@pytest.fixture(scope="module")
def pytest_boxes() -> SandboxSpec:
    return SandboxSpec(memory_mb=512, ttl_seconds=60)


@pytest.fixture
async def watching(provider: SandboxProvider) -> AsyncIterator[Watching]:
    """Of whose boxes none is left after the test."""
    watched = Watching(provider)
    yield watched
    assert watched.alive == 0


Make = Callable[..., SandboxTools]


@pytest.fixture
def make(watching: Watching, pytest_boxes: SandboxSpec) -> Make:
    return lambda **options: sandbox_tools(**{"sandbox": watching, "spec": pytest_boxes, **options})


# --- by hand ---------------------------------------------------------------------------------------------------------


async def test_a_call_has_a_box_of_its_own_and_tells_of_no_file_that_is_gone(make: Make, watching: Watching) -> None:
    async with make(observation_tokens=64) as tools:
        assert "[exit code 3" in await tools.run_bash("touch made; exit 3")
        assert watching.alive == 0
        long = await tools.run_bash("ls made; seq 100000")
        assert "No such file" in long
        assert "omitted" in long
        assert "full output" not in long
    assert len(watching.boxes) == 2


async def test_a_rollout_keeps_its_box_and_says_where_a_whole_output_is(make: Make, watching: Watching) -> None:
    async with make(observation_tokens=64) as tools:
        async with tools.rollout():
            await tools.run_bash("mkdir lib; cd lib; export WORD=kept; echo 'def two(): return 2' > mod.py")
            assert await tools.run_python("import mod, os; print(mod.two(), os.environ['WORD'])") == "2 kept"
            assert "1 passed" in await tools.run_tests("from mod import two\ndef test_two():\n    assert two() == 2\n")
            assert "1 failed" in await tools.run_tests("from mod import two\ndef test_two():\n    assert two() == 3\n")
            whole = await tools.run_bash("seq 100000; ls")
            assert "/tmp/output-5.txt" in whole
        assert watching.alive == 0
        assert "mod.py" not in await tools.run_bash("ls; pwd")
    assert len(watching.boxes) == 2


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda tools: tools.run_python(5), "code: must be text, not int"),
        (lambda tools: tools.run_tests("\ud800"), "tests: holds a lone surrogate"),
        (lambda tools: tools.run_bash(""), "at least 1 character"),
        (lambda tools: tools.run_bash({"a": 1}), "valid string"),
        (lambda tools: tools.run_bash("echo \0"), "NUL"),
    ],
    ids=["not-text", "surrogate", "empty", "object", "nul"],
)
async def test_what_is_not_valid_is_answered(make: Make, call: Any, said: str) -> None:
    async with make() as tools:
        assert said in await call(tools)


async def test_a_call_that_does_not_end_is_ended_and_the_rollout_goes_on(make: Make) -> None:
    async with make(command_timeout=0.3) as tools, tools.rollout():
        assert "no end within 0.3 s" in await tools.run_python("print('x', flush=True)\nwhile True: pass")
        assert await tools.run_bash("echo on") == "on"


async def test_rollouts_side_by_side_and_their_tasks_never_share(make: Make, watching: Watching) -> None:
    found: list[str] = []

    async def child(tools: SandboxTools, number: int) -> None:
        await tools.run_bash(f"echo {number} >> who")

    async def play(tools: SandboxTools, number: int) -> None:
        async with tools.rollout():
            async with create_task_group() as group:
                for _ in range(3):
                    group.start_soon(child, tools, number)
            found.append(await tools.run_bash("sort who | uniq -c"))

    async with make(max_boxes=2) as tools, create_task_group() as group, tools.rollout():
        await tools.run_bash("echo parent >> who")  # whose children have boxes of their own
        for number in range(4):
            group.start_soon(play, tools, number)
    assert sorted(line.split() for line in found) == [["3", str(n)] for n in range(4)]
    assert max(watching.live_at_creation) <= 1  # beside the one that is made then


async def test_a_box_that_is_idle_makes_room_and_its_rollout_is_told(make: Make, watching: Watching) -> None:
    async with make(max_boxes=1, idle_seconds=0.1) as tools:
        async with tools.rollout():
            await tools.run_bash("touch before")
            async with tools.rollout():
                assert "before" not in await tools.run_bash("ls")
            text = await tools.run_bash("ls")
            assert text.startswith("[this is a new box: the one before was not used for")
            assert "before" not in text.partition("\n")[2]
            assert not (await tools.run_bash("ls")).startswith("[this is")
        assert max(watching.live_at_creation) == 0


async def test_a_box_in_use_is_never_taken(make: Make) -> None:
    async with make(max_boxes=1, idle_seconds=0.0) as tools, create_task_group() as group:

        async def other() -> None:
            await anyio.sleep(0.1)
            assert await tools.run_bash("ls") == "[exit code 0, no output]"

        group.start_soon(other)
        async with tools.rollout():
            assert await tools.run_bash("touch a; sleep 0.4; ls") == "a"


async def test_a_lost_box_is_an_error_and_the_next_call_says_that_it_has_another(
    make: Make, watching: Watching
) -> None:
    async with make(max_boxes=1) as tools, tools.rollout():
        await tools.run_bash("true")
        await destroy(watching.boxes[0])
        with pytest.raises(SandboxError):
            await tools.run_bash("true")
        assert (await tools.run_bash("echo on")).startswith("[this is a new box:")


async def test_closing_ends_what_is_under_way_and_nothing_more_is_made(make: Make, watching: Watching) -> None:
    tools = make()
    faults: list[BaseException] = []

    async def call() -> None:
        try:
            await tools.run_bash("sleep 60")
        except (SandboxError, RuntimeError) as error:
            faults.append(error)

    with anyio.fail_after(20):
        async with create_task_group() as group:
            group.start_soon(call)
            while not watching.alive:
                await anyio.sleep(0.01)
            await tools.close()
    assert len(faults) == 1
    assert watching.alive == 0
    with pytest.raises(RuntimeError, match="closed"):
        await tools.run_bash("true")


async def test_a_cancelled_call_leaves_no_box_and_its_place_is_free(make: Make, watching: Watching) -> None:
    async with make(max_boxes=1) as tools:
        with anyio.move_on_after(0.3):
            await tools.run_bash("sleep 60")
        assert watching.alive == 0
        assert await tools.run_bash("echo on") == "on"


class Failing(Wrapping):
    """The first boxes cannot be made."""

    def __init__(self, inner: SandboxProvider, faults: int = 1000) -> None:
        super().__init__(inner)
        self.faults = faults

    async def open(self, spec: SandboxSpec) -> Sandbox:
        self.faults -= 1
        if self.faults < 0:
            return await super().open(spec)
        raise SandboxError("no box today", stage="create")


async def test_a_box_that_cannot_be_made_is_an_error_that_costs_no_place(provider: SandboxProvider) -> None:
    async with sandbox_tools(sandbox=Failing(provider), max_boxes=1) as tools:
        for _ in range(2):
            with anyio.fail_after(5), pytest.raises(SandboxError, match="no box today"):
                await tools.run_bash("true")


async def test_nothing_is_left_when_nobody_closed(provider: SandboxProvider) -> None:
    code = """
import asyncio
from codeenv import sandbox_tools
from tests.episodes import Watching
from codeenv.sandbox import get_provider
watching = Watching(get_provider("bubblewrap"))
tools = sandbox_tools(sandbox=watching)
async def main():
    tools.enter("one")
    await tools.run_bash("sleep 1000 & echo")
    print(watching.boxes[0].pid, flush=True)
asyncio.run(main())
"""
    done = await anyio.run_process([sys.executable, "-c", code], cwd=ROOT)
    pid = done.stdout.decode().strip()
    assert pid.isdigit()
    with anyio.fail_after(10):
        while await anyio.Path(f"/proc/{pid}").exists():
            await anyio.sleep(0.02)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_boxes": 0}, "max_boxes must be 1 or more, not 0"),
        ({"observation_tokens": 3}, "observation_tokens must be"),
        ({"command_timeout": 0}, "command_timeout must be over 0"),
        ({"sandbox": "nowhere"}, "unknown sandbox 'nowhere'"),
        ({"sandbox_settings": {"a": 1}}, "a sandbox itself was given"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
async def test_a_wrong_argument_is_named(make: Make, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make(**options)


async def test_a_rollout_of_that_name_is_not_entered_twice(make: Make) -> None:
    async with make() as tools:
        tools.enter("one")
        with pytest.raises(ValueError, match="'one' already"):
            tools.enter("one")


# --- frameworks ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sandboxed() -> Any:
    """The class of the docs."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "tools.md").read_text(), re.DOTALL)
    found: dict[str, Any] = {}
    exec(next(block for block in blocks if "class SandboxedEnv" in block), found)  # noqa: S102
    return found["SandboxedEnv"]


async def generated(env: vf.ToolEnv, script: list[Any], rollouts: int = 1, **options: Any) -> list[Any]:
    async with serve("script", TASKS, script=Script.of(script)) as server:
        rows = env.get_eval_dataset().repeat(rollouts).to_list()
        config = ClientConfig(api_key_var=KEY, api_base_url=server.base_url, max_retries=0)
        done = await env.generate(rows, client=config, model="script", state_columns=["completion"], **options)
    return list(done["outputs"])


def said_by_tools(output: Any) -> list[str]:
    return [message["content"] for message in output["completion"] if message["role"] == "tool"]


def dataset(count: int = 3) -> Dataset:
    return Dataset.from_list(
        [{"prompt": [{"role": "user", "content": task.instruction}], "answer": ""} for task in TASKS[:count]]
    )


async def test_a_tool_env_has_them_with_a_box_a_call(make: Make, watching: Watching) -> None:
    tools = make(max_boxes=2)
    env = vf.ToolEnv(tools=[*tools], dataset=dataset(1), rubric=vf.Rubric(), stop_errors=[SandboxError])
    schema = {each.name: each for each in env.tool_defs}
    assert list(schema) == ["run_python", "run_bash", "run_tests"]
    assert (
        schema["run_bash"].description == "Run a shell command with bash in an isolated sandbox and see what it prints."
    )
    assert schema["run_bash"].parameters["properties"]["command"]["description"] == "The command, any bash script."
    assert schema["run_tests"].parameters["required"] == ["tests"]
    (output,) = await generated(env, CALLED)
    number, again, tests = said_by_tools(output)
    assert number.isdigit()
    assert "FileNotFoundError" in again
    assert "1 failed" in tests
    await tools.close()
    assert len(watching.boxes) == 3


async def test_a_tool_env_has_them_with_a_box_a_rollout(make: Make, watching: Watching, sandboxed: Any) -> None:
    env = sandboxed(make(max_boxes=3), dataset=dataset(), rubric=vf.Rubric())
    outputs = await generated(env, CALLED, rollouts=2)
    seen = [said_by_tools(output) for output in outputs]
    assert all(again.split() == ["again", number] for number, again, _ in seen)
    assert all("1 passed" in tests for _, _, tests in seen)
    assert len({number for number, _, _ in seen}) == len(watching.boxes) == 6
    assert max(watching.live_at_creation) <= 2
    assert watching.alive == 0
    await env._teardown()


@pytest.mark.parametrize(("faults", "ended"), [(1, ""), (2, "no box today")], ids=["goes-away", "stays"])
async def test_a_fault_of_the_sandbox_is_retried_and_never_seen_by_the_model(
    provider: SandboxProvider, sandboxed: Any, faults: int, ended: str
) -> None:
    env = sandboxed(sandbox_tools(sandbox=Failing(provider, faults)), dataset=dataset(1), rubric=vf.Rubric())
    (output,) = await generated(env, CALLED, max_retries=1)
    assert (ended in json.dumps(output["error"])) if ended else not output["error"]
    assert "no box today" not in json.dumps(said_by_tools(output))
    await env._teardown()


async def test_an_agents_sdk_has_them_with_a_box_a_run(make: Make, watching: Watching) -> None:
    set_tracing_disabled(True)
    side_by_side = [{"tool_calls": [CALLED[0]["tool_calls"][0], CALLED[1]["tool_calls"][0]]}, *CALLED[1:]]
    async with (
        serve("script", TASKS, script=Script.of(side_by_side)) as server,
        AsyncOpenAI(base_url=server.base_url, api_key="none") as client,
        make() as tools,
    ):
        agent = Agent(
            name="coder",
            model=OpenAIChatCompletionsModel(model="script", openai_client=client),
            model_settings=ModelSettings(parallel_tool_calls=True),
            tools=[function_tool(tool) for tool in tools],
        )
        async with tools.rollout():
            result = await Runner.run(agent, TASKS[0].instruction)
    assert result.final_output == "I am done."
    outputs = [item.output for item in result.new_items if item.type == "tool_call_output_item"]
    assert len(outputs) == 4
    assert outputs[2].split() == ["again", outputs[0]]
    assert "1 passed" in outputs[3]
    assert len(watching.boxes) == 1
    assert not is_alive(watching.boxes[0])
