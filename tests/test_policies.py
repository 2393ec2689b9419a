"""Policies without a model: their plans against the real sandbox, their server with a real client."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiohttp import ClientSession
from openai import AsyncOpenAI, BadRequestError, NotFoundError

from codeenv.answer import code_of
from codeenv.episode import Episode
from codeenv.graders import StdioGrader
from codeenv.policies import PolicyError, Script, messages, plan, serve, serve_in_thread
from codeenv.policies.edits import carries
from codeenv.policies.plans import answer
from codeenv.policies.recognise import Recogniser
from codeenv.sandbox.api import SandboxProvider
from codeenv.task import Answer, Task
from codeenv.tools import TOOLS, ToolCall, definitions

pytestmark = pytest.mark.anyio

LONG = b"".join(b"line %d\n" % n for n in range(60))
ODD: dict[str, tuple[bytes | None, bytes]] = {
    "new.py": (None, b"print(1)\n"),
    "empty.txt": (None, b""),
    "small change.txt": (LONG, LONG.replace(b"line 30\n", b"LINE 30\n\n")),
    "two-changes.txt": (LONG, LONG.replace(b"line 3\n", b"").replace(b"line 50\n", b"line 50\nmore\n\n")),
    "blank-end.txt": (None, b"a\n\n\n"),
    "only-blank.txt": (None, b"\n"),
    "no-end.txt": (b"a\nb\n", b"a\nb"),
    "crlf.txt": (LONG.replace(b"\n", b"\r\n"), LONG.replace(b"\n", b"\r\n") + b"c\r\n"),
    "repeats.txt": (b"x\n" * 50, b"x\n" * 51),
    "fences.md": (None, b"```bash\nrm\n```\n````\n<<<<<<< OLD\n=======\n"),
    "deep/er/it's.bin": (b"\x00\x01", bytes(range(256)) * 40),
    "nul.txt": (None, b"a\0b\n"),
    "unicode.txt": ("é\u2028ü\x85\n".encode(), "é\u2028ü\x85\nß\x0b\n".encode()),
}


def task(number: int = 0, **changes: Any) -> Task:
    fields: dict[str, Any] = {
        "id": f"double-{number}",
        "instruction": f"Print twice the number that main.py reads. Variant {number}.",
        "files": {"main.py": b"print(input())\n"},
        "tests": {"one.in": b"21\n", "one.out": b"42\n"},
        "solution": {"main.py": b"print(int(input()) * 2)\n"},
        "wrong": {"adds": {"main.py": b"print(int(input()) + 2)\n"}, "same": {"main.py": b"print(int(input()))\n"}},
        "grader": StdioGrader(command=("python3", "-S", "main.py"), timeout=20),
    }
    return Task(**{**fields, **changes})


def answered(**changes: Any) -> Task:
    """One that a message can answer."""
    return task(**{"answer": Answer(path="main.py"), "family": "program", **changes})


def odd_task() -> Task:
    start = {path: old for path, (old, _) in ODD.items() if old is not None}
    return task(files=start, solution={path: new for path, (_, new) in ODD.items()}, executable=frozenset({"new.py"}))


@pytest.fixture
async def client() -> AsyncIterator[AsyncOpenAI]:
    tasks = [task(n) for n in range(3)]
    async with (
        serve("oracle", tasks) as server,
        AsyncOpenAI(base_url=server.base_url, api_key="none", max_retries=0) as made,
    ):
        yield made


TOOL_LIST: Any = [{"type": "function", "function": definition} for definition in definitions(tuple(TOOLS))]


def opening(number: int = 0) -> list[Any]:
    return [{"role": "user", "content": f"Hello.\n\n{task(number).instruction}\n\nThe files: main.py"}]


async def converse(client: AsyncOpenAI, model: str, number: int = 0, **options: Any) -> list[Any]:
    """A whole conversation, every call answered with 'ok'; the assistant's messages."""
    history, said = opening(number), list[Any]()
    while not said or "submit" not in str(said[-1]):
        answer = await client.chat.completions.create(model=model, messages=history, **options)
        message = answer.choices[0].message
        said.append(message)
        assert answer.usage is not None
        assert answer.usage.completion_tokens > 0
        history.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls or []:
            history.append({"role": "tool", "tool_call_id": call.id, "content": "ok"})
        if not message.tool_calls:
            history.append({"role": "user", "content": "ok"})
        assert len(said) < 40
    return said


# --- plans ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [False, True], ids=["tools", "text"])
@pytest.mark.parametrize("tools", [tuple(TOOLS), ("bash", "submit")], ids=["all", "bash"])
async def test_oracle_leaves_the_solution_byte_for_byte(
    provider: SandboxProvider, text: bool, tools: tuple[str, ...]
) -> None:
    odd = odd_task()
    calls = plan("oracle", odd, text=text, tools=tools)
    assert {call.name for turn in calls for call in turn} <= set(tools)
    if text:
        assert all(carries(call) for turn in calls for call in turn if call.name in ("write_file", "edit_file", "bash"))
    async with Episode.start(odd, provider, tools=tools) as episode:
        for turn in calls:
            if turn[0].name not in ("run_tests", "submit"):
                for call, observation in zip(turn, await episode.turn(turn), strict=True):
                    assert not observation.failed, (call, observation.text)
        left = await episode.sandbox.export()
    assert left.files == {path: new for path, (_, new) in ODD.items()}
    assert left.entries["new.py"].mode & 0o100


def test_oracle_edits_where_little_changes() -> None:
    edited = {c.arguments["path"] for turn in plan("oracle", odd_task()) for c in turn if c.name == "edit_file"}  # type: ignore[index, call-overload]
    assert {"small change.txt", "two-changes.txt", "crlf.txt"} <= edited


@pytest.mark.parametrize("policy", ["oracle", "wrong", "wrong:same", "noop", "garbage"])
async def test_one_message_is_an_answer(provider: SandboxProvider, policy: str) -> None:
    asked = answered()
    for attempt in range(2):
        async with Episode.start(asked, provider, max_turns=1) as episode:
            observation = await episode.step(answer(policy, asked, attempt=attempt, seed=attempt).text)
            verdict = await episode.finish()
        assert observation.done
        assert verdict.outcome == ("solved" if policy == "oracle" else "failed")


def test_an_answer_is_one_file_of_text() -> None:
    fences = b"TEXT = '''\n```python\nx\n```\n'''\nprint(int(input()) * 2)\n"
    assert (
        code_of(answer("oracle", answered(solution={"main.py": fences})).text, Answer(path="main.py")).encode()
        == fences
    )
    script = Script.of(["my answer"])
    assert answer("script", answered(), script=script).text == "my answer"
    for changes, says in (
        ({"solution": {"main.py": b"", "more.py": b""}}, "not in main.py alone: more.py"),
        ({"solution": {"other.py": b""}}, "not in main.py alone: other.py"),
        ({"solution": {"main.py": b"\xff"}}, "main.py is no text"),
        ({"solution": None}, "has no solution"),
    ):
        with pytest.raises(PolicyError, match=says):
            answer("oracle", answered(**changes))


@pytest.mark.parametrize("protocol", ["tools", "text"])
async def test_garbage_is_survived(provider: SandboxProvider, protocol: str) -> None:
    said = messages("garbage", task(), text=protocol == "text")
    async with Episode.start(task(), provider, protocol=protocol) as episode:
        for message in said:
            if protocol == "text" and not message.calls:
                await episode.step(message.text)
            else:
                observations = await episode.turn(message.calls)
                assert len(observations) == max(1, len(message.calls))
        assert episode.over == "submitted"
        assert episode.tally.invalid_calls >= 5
        assert (await episode.finish()).outcome == "failed"


def test_garbage_depends_on_its_seed_alone() -> None:
    assert messages("garbage", task()) == messages("garbage", task())
    assert messages("garbage", task()) != messages("garbage", task(), seed=1)


def test_what_cannot_be_played_is_named() -> None:
    with pytest.raises(PolicyError, match=r"'double-0' has no solution"):
        plan("oracle", task(solution=None))
    with pytest.raises(PolicyError, match=r"'double-0' has no wrong solution 'nope'"):
        plan("wrong:nope", task())
    with pytest.raises(PolicyError, match=r"main.py cannot be written with the tools offered \(read_file, submit\)"):
        plan("oracle", task(), tools=("read_file", "submit"))
    for name in ("oracel", "wrong:", "oracle:x", ""):
        with pytest.raises(PolicyError, match="valid: oracle, noop, wrong, garbage, script, wrong:NAME"):
            plan(name, task())


def test_tasks_are_recognised_among_many() -> None:
    tasks = [task(n, id=f"t{n}", instruction=f"{'Solve this. ' * 40}Number {n}") for n in range(5000)]
    tasks.append(task(id="short", instruction="Solve"))
    found = Recogniser(tasks)
    assert found.find(f"x {tasks[123].instruction}\nfiles").id == "t123"  # not t12, which is a part of it
    assert found.find("please Solve it").id == "short"
    with pytest.raises(PolicyError, match="no task's instruction"):
        found.find("something else")
    twins = [task(id=name, instruction="Fix it.", files={f"{name}.py": b""}) for name in ("a", "b")]
    assert Recogniser(twins).find("Fix it.\n- b.py").id == "b"
    with pytest.raises(PolicyError, match="cannot be told apart: a, b"):
        Recogniser(twins).find("Fix it.")
    twins = [answered(id=name, instruction="Fix it.", files={"main.py": name.encode()}) for name in ("aa", "bb")]
    assert Recogniser(twins).find("Fix it.\n\nbb\n\n- main.py").id == "bb"


# --- the server ----------------------------------------------------------------------------------------------


async def test_conversation_in_both_protocols(client: AsyncOpenAI) -> None:
    with_tools = await converse(client, "oracle", tools=TOOL_LIST)
    assert [call.function.name for said in with_tools for call in said.tool_calls] == [
        "bash", "read_file", "write_file", "run_tests", "submit",
    ]  # fmt: skip
    assert all(isinstance(json.loads(call.function.arguments), dict) for said in with_tools for call in said.tool_calls)
    in_text = await converse(client, "oracle")
    assert "```write_file main.py\nprint(int(input()) * 2)\n```" in in_text[2].content
    assert [said.tool_calls for said in in_text] == [None] * 5
    (noop,) = await converse(client, "noop", tools=TOOL_LIST)
    assert noop.tool_calls[0].function.name == "submit"


async def test_an_answer_is_given_where_no_tools_are_offered() -> None:
    async with (
        serve("oracle", [answered()]) as server,
        AsyncOpenAI(base_url=server.base_url, api_key="none", max_retries=0) as client,
    ):
        for system, says in (
            ([], "```python\nprint(int(input()) * 2)\n```"),
            ([{"role": "system", "content": "Answer with a block:\n```python\ncode\n```"}], "```python\nprint(int"),
            ([{"role": "system", "content": "```bash\ncommand\n```"}], "```bash\nls -la\n```"),
        ):
            given = await client.chat.completions.create(model="oracle", messages=[*system, *opening()])
            assert says in (given.choices[0].message.content or "")
        wrong = await client.chat.completions.create(model="wrong", messages=opening())
        assert (wrong.choices[0].message.content or "").endswith("\n```")


async def test_streaming_says_the_same(client: AsyncOpenAI) -> None:
    for options in ({"tools": TOOL_LIST}, {}):
        arguments: dict[str, Any] = {"model": "garbage", "messages": opening(), **options}
        whole = await client.chat.completions.create(**arguments)
        stream = await client.chat.completions.create(**arguments, stream=True, stream_options={"include_usage": True})
        content, calls, finish, usage = "", dict[int, list[str]](), None, None
        async for chunk in stream:
            usage = chunk.usage or usage
            for choice in chunk.choices:
                finish = choice.finish_reason or finish
                content += choice.delta.content or ""
                for call in choice.delta.tool_calls or []:
                    calls.setdefault(call.index, [call.function.name or ""]).append(call.function.arguments or "")
        message = whole.choices[0].message
        assert finish == whole.choices[0].finish_reason
        assert content == (message.content or "")
        assert usage == whole.usage
        assert [(parts[0], "".join(parts[1:])) for parts in calls.values()] == [
            (call.function.name, call.function.arguments) for call in message.tool_calls or []
        ]


async def test_wrong_rotates_and_keeps_to_its_choice(client: AsyncOpenAI) -> None:
    found: list[list[Any]] = []

    async def one() -> None:
        found.append(await converse(client, "wrong", 1, tools=TOOL_LIST))

    async with anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(one)
    attempts = [{said.content.split("(")[1] for said in conversation[:-1]} for conversation in found]
    assert all(len(kept) == 1 for kept in attempts)
    assert sorted(kept.pop() for kept in attempts) == ["attempt 1)"] * 3 + ["attempt 2)"] * 3
    (writes, *_) = [call.function.arguments for call in found[0][2].tool_calls]
    assert any(
        data.decode() == json.loads(writes)["content"] for files in task(1).wrong.values() for data in files.values()
    )
    named = await converse(client, "wrong:same", tools=TOOL_LIST)
    assert json.loads(named[2].tool_calls[0].function.arguments)["content"] == "print(int(input()))\n"


async def test_only_offered_tools_are_used(client: AsyncOpenAI) -> None:
    offered = [tool for tool in TOOL_LIST if tool["function"]["name"] in ("bash", "submit")]
    said = await converse(client, "oracle", tools=offered)
    assert {call.function.name for message in said for call in message.tool_calls} == {"bash", "submit"}
    system = {"role": "system", "content": "```bash\ncommand\n```\n```submit\n```"}
    answer = await client.chat.completions.create(
        model="oracle", messages=[system, *opening(), *[{"role": "assistant", "content": "x"}] * 2]
    )  # type: ignore[arg-type]
    assert "```bash\nbase64" in (answer.choices[0].message.content or "")


async def test_errors_have_the_form_of_openai() -> None:
    async with serve("noop", [task(solution=None)], host="127.0.0.1") as server, ClientSession() as session:
        async with AsyncOpenAI(base_url=server.base_url, api_key="none", max_retries=0) as client:
            with pytest.raises(BadRequestError, match="task 'double-0' has no solution"):
                await client.chat.completions.create(model="oracle", messages=opening())
            with pytest.raises(NotFoundError, match="unknown policy 'gpt-9'"):
                await client.chat.completions.create(model="gpt-9", messages=opening())
            with pytest.raises(BadRequestError, match="no task's instruction"):
                await client.chat.completions.create(model="noop", messages=[{"role": "user", "content": "hi"}])
            assert {model.id for model in (await client.models.list()).data} >= {"oracle", "noop"}
        url = server.base_url + "/chat/completions"
        for body, status in ((b"{", 400), (b"[]", 400), (b'{"messages": []}', 400), (b'{"messages": 1, "n": 2}', 400)):
            async with session.post(url, data=body) as response:
                assert response.status == status
                assert (await response.json())["error"]["type"] == "invalid_request_error"
        for method, path, status in (("GET", url, 405), ("POST", server.base_url + "/nope", 404)):
            async with session.request(method, path) as response:
                assert response.status == status
                assert (await response.json())["error"]["message"]
        async with session.post(url, json={"messages": opening()}) as response:  # no model: the server's own policy
            assert (await response.json())["choices"][0]["message"]["content"] == "```submit\n```"


def test_scripts(tmp_path: Path) -> None:
    calls = [
        {"name": "bash", "arguments": {"command": "ls"}},
        {"function": {"name": "bash", "arguments": "{"}, "id": "c1"},
    ]
    for name, content in (
        ("a.json", json.dumps([{"content": "hm", "tool_calls": calls}, "done"])),
        ("b.json", json.dumps({"double-0": [{"content": "hm", "tool_calls": calls}, "done"]})),
        ("c.jsonl", json.dumps({"content": "hm", "tool_calls": calls}) + '\n\n"done"\n'),
        ("d.jsonl", json.dumps({"task": "double-0", "messages": [{"content": "hm", "tool_calls": calls}, "done"]})),
    ):
        (tmp_path / name).write_text(content)
        first, second = messages("script", task(), script=Script.load(tmp_path / name))
        assert first.calls == (ToolCall("bash", {"command": "ls"}), ToolCall("bash", "{", "c1"))
        assert (first.text, second.text) == ("hm", "done")
    with pytest.raises(PolicyError, match="no messages for task 'double-1'"):
        messages("script", task(1), script=Script.load(tmp_path / "b.json"))
    for content, says in (
        ("{", "Expecting"),
        ("[3]", r"messages\[0\]: must be"),
        ('[{"tool_calls": [{}]}]', r"tool_calls\[0\]: needs a name"),
    ):
        (tmp_path / "bad.json").write_text(content)
        with pytest.raises(PolicyError, match=rf"bad.json: .*{says}"):
            Script.load(tmp_path / "bad.json")
    with pytest.raises(PolicyError, match="needs a script"):
        plan("script", task())


def test_server_in_a_thread_with_latency() -> None:
    import time
    from urllib.request import Request, urlopen

    with serve_in_thread("noop", [task()], latency=0.2) as server:
        started = time.monotonic()
        body = json.dumps({"messages": opening()}).encode()
        with urlopen(
            Request(f"{server.base_url}/chat/completions", body, {"Content-Type": "application/json"})
        ) as answer:
            assert json.load(answer)["choices"][0]["finish_reason"] == "stop"
        assert time.monotonic() - started >= 0.2
        assert server.requests == 1
