"""The tools through an episode: what a policy may write, and that it always gets one answer a call."""

# ruff: noqa: E501 - tables: one case a line
from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import jsonschema
import pytest

from codeenv.calls import TOOLS, definitions, select_tools
from codeenv.episode import CALLS_PER_TURN, counter
from codeenv.rendering import SLACK_TOKENS
from codeenv.sandbox.api import SandboxProvider
from codeenv.tools import Observation, ToolCall
from tests.episodes import Player, playing, pytest_task, stdio_task

pytestmark = pytest.mark.anyio
ALL = tuple(TOOLS)


@pytest.fixture
async def player(provider: SandboxProvider) -> AsyncIterator[Player]:
    async with playing(provider) as made:
        yield made


async def take(player: Player, *calls: ToolCall) -> list[Observation]:
    return await player.episode.turn(calls)


# --- definitions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("definition", definitions(ALL), ids=lambda definition: definition["name"])
async def test_definitions_are_json_schemas(definition: dict[str, Any]) -> None:
    assert json.loads(json.dumps(definition)) == definition
    assert definition["description"]
    schema = definition["parameters"]
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    for value in schema["properties"].values():
        assert value["description"]
        assert value["type"] in ("string", "integer")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"nonsense": 1}, schema)


async def test_tools_are_chosen_by_name() -> None:
    assert select_tools(None) == ALL
    assert select_tools(["submit", "bash", "bash"]) == ("submit", "bash")
    with pytest.raises(ValueError, match=r"'bsh'; valid: bash, read_file"):
        select_tools(["bash", "bsh"])
    with pytest.raises(ValueError, match="none given"):
        select_tools([])


# --- dispatch ---------------------------------------------------------------------------------------------------

CUT = '{"command": "touch /workspace/RAN'
INVALID = {
    "unknown-tool": (ToolCall("bsh", {"command": "touch RAN"}), "unknown tool 'bsh'; the tools are bash, read_file"),
    "empty-name": (ToolCall("", {"command": "touch RAN"}), "unknown tool ''"),
    "cut-json": (ToolCall("bash", CUT), 'not complete JSON'),
    "cut-json-shows-valid": (ToolCall("bash", CUT), 'bash takes {"command": string}'),
    "two-objects": (ToolCall("bash", '{"command": "touch RAN"}{"command": "ls"}'), "not complete JSON"),
    "list": (ToolCall("bash", '["touch RAN"]'), "must be a JSON object, not list"),
    "string": (ToolCall("bash", '"touch RAN"'), "must be a JSON object, not str"),
    "number": (ToolCall("bash", "7"), "must be a JSON object, not int"),
    "true": (ToolCall("bash", "true"), "must be a JSON object, not bool"),
    "encoded-twice": (ToolCall("bash", json.dumps('{"command": "touch RAN"}')), "must be a JSON object, not str"),
    "null": (ToolCall("bash", "null"), "command: Field required"),
    "none": (ToolCall("bash", None), "command: Field required"),
    "empty": (ToolCall("bash", ""), "command: Field required"),
    "deep": (ToolCall("bash", "[" * 100_000), "not complete JSON"),
    "deep-object": (ToolCall("bash", '{"command":' * 100_000), "not complete JSON"),
    "deep-value": (ToolCall("bash", '{"command":' + "[" * 900 + "]" * 900 + "}"), "command: Input should be a valid string"),
    "huge-number": (ToolCall("read_file", '{"path": "a", "start_line": ' + "9" * 5000 + "}"), "JSON"),
    "wrong-key": (ToolCall("bash", {"cmd": "touch RAN"}), "cmd: Extra inputs are not permitted"),
    "extra-key": (ToolCall("bash", {"command": "touch RAN", "timeout": 5}), "timeout: Extra inputs are not permitted"),
    "missing-key": (ToolCall("edit_file", {"path": "a", "old_text": "b"}), "new_text: Field required"),
    "wrong-type": (ToolCall("bash", {"command": 5}), "command: Input should be a valid string"),
    "list-value": (ToolCall("bash", {"command": ["touch", "RAN"]}), "command: Input should be a valid string"),
    "number-as-text": (ToolCall("read_file", {"path": "a", "start_line": "1"}), "start_line: Input should be a valid integer"),
    "bool-as-number": (ToolCall("read_file", {"path": "a", "start_line": True}), "start_line: Input should be a valid integer"),
    "zero-line": (ToolCall("read_file", {"path": "a", "start_line": 0}), "start_line: Input should be greater than or equal to 1"),
    "empty-command": (ToolCall("bash", {"command": ""}), "command: String should have at least 1 character"),
    "empty-path": (ToolCall("write_file", {"path": "", "content": ""}), "path: String should have at least 1 character"),
    "nul": (ToolCall("bash", {"command": "touch RAN\0"}), "command: it holds a NUL character"),
    "surrogate": (ToolCall("bash", '{"command": "touch RAN \\ud800"}'), "command: "),
    "surrogate-content": (ToolCall("write_file", {"path": "RAN", "content": "\udc80"}), "content: "),
    "surrogate-key": (ToolCall("bash", '{"\\ud800": 1}'), "names: Input should be a valid string"),
    "surrogate-name": (ToolCall("\udc80", {}), "unknown tool"),
    "control-key": (ToolCall("bash", {"\x1b[31mred\r": 1}), "\\x1b[31mred"),
    "not-a-key": (ToolCall("bash", {7: "x"}), "Keys should be strings"),  # type: ignore[dict-item]
    "no-arguments-taken": (ToolCall("submit", {"force": True}), "submit takes no arguments: {}"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "says"), [pytest.param(*case, id=name) for name, case in INVALID.items()])
async def test_a_call_that_cannot_be_understood_runs_nothing_and_is_told(
    player: Player, call: ToolCall, says: str
) -> None:
    (observation,) = await take(player, call)
    assert says in observation.text
    assert observation.text.startswith("[not run: ")
    assert (observation.failed, observation.valid, observation.done) == (True, False, False)
    observation.text.encode()
    assert observation.tool in (*ALL, "unknown")
    assert await player.bash("ls") == "adding.py"


@pytest.mark.parametrize("arguments", ["", "{}", None, {}, " \n"], ids=repr)
async def test_a_tool_without_arguments_takes_any_empty_ones(player: Player, arguments: Any) -> None:
    (observation,) = await take(player, ToolCall("submit", arguments))
    assert (observation.text, observation.done) == ("submitted", True)


@pytest.mark.parametrize("count", [1, 20, CALLS_PER_TURN, 40])
async def test_every_call_of_a_message_is_answered_in_order(player: Player, count: int) -> None:
    calls = [ToolCall("bash", json.dumps({"command": f"echo {n} | tee -a log"}), id="same") for n in range(count)]
    calls[0] = ToolCall("nonsense", "{", id="")
    observations = await take(player, *calls)
    ran = min(count, CALLS_PER_TURN)
    assert [o.text for o in observations[1:ran]] == [str(n) for n in range(1, ran)]
    assert "unknown tool" in observations[0].text
    assert all("more than 32 calls in one message" in o.text and not o.valid for o in observations[ran:])
    assert len(observations) == count
    assert int(await player.bash("cat log 2>/dev/null | wc -l")) == ran - 1


async def test_what_follows_submit_in_a_message_is_answered_and_not_run(player: Player) -> None:
    first, second, third = await take(
        player, ToolCall("submit"), ToolCall("bash", {"command": "touch RAN"}), ToolCall("submit")
    )
    assert first.done
    assert not second.done
    assert "the episode is over (submitted)" in second.text
    assert "the episode is over (submitted)" in third.text
    assert [e.path for e in await player.episode.sandbox.list_files()] == ["adding.py"]


# --- files ------------------------------------------------------------------------------------------------------

LONG = (
    "".join(f"line {n}: 'q' \"d\" `b` $HOME \\n EOF\nEOF\n</tool_call>\r\n{{{{x}}}}\t\u2603\n" for n in range(5000))
    + "end"
)


@pytest.mark.parametrize(
    "content",
    [LONG, "", "\n", "\n\n x", "no newline", "\r\n\r", "\ufeffbom", "\x00\x01\x1b[31m", "𝄞" * 1000],
    ids=["long", "empty", "newline", "leading-newlines", "no-final", "crlf", "bom", "controls", "astral"],
)
async def test_what_is_written_is_there_byte_for_byte(player: Player, content: str) -> None:
    assert content != LONG or len(content) > 300_000
    observation = await player.call("write_file", path="d/e/f.txt", content=content)
    assert observation.text == f"wrote {len(content.encode())} bytes to d/e/f.txt"
    assert await player.episode.sandbox.read_file("d/e/f.txt") == content.encode()


@pytest.mark.parametrize(
    "name",
    ["a b", "-rf", "q'\"`$x\\", "é☃𝄞", "new\nline", "*", "~", "a" * 255, " ", "x.tar.gz;rm"],
    ids=["blank", "dash", "quotes", "unicode", "newline", "star", "tilde", "long", "only-blank", "shell"],
)
async def test_odd_names(player: Player, name: str) -> None:
    assert not (await player.call("write_file", path=name, content="one\n")).failed
    assert not (await player.call("edit_file", path=name, old_text="one", new_text="two")).failed
    assert (await player.call("read_file", path=name)).text == "two\n"
    assert {e.path for e in await player.episode.sandbox.list_files()} == {"adding.py", name}


async def test_relative_paths_are_relative_to_the_project(player: Player) -> None:
    await player.bash("mkdir sub; cd sub")
    await player.call("write_file", path="here.txt", content="x")
    assert await player.bash("ls /workspace; pwd") == "adding.py\nhere.txt\nsub\n/workspace/sub"
    assert (await player.call("read_file", path="/workspace/here.txt")).text == "x"
    assert (await player.call("read_file", path="sub/../here.txt")).text == "x"


@pytest.mark.parametrize(
    ("start", "count", "expected"),
    [
        (1, 0, "\n\none\r\ntwo\x0bstill\nthree"),
        (1, 2, "\n\n"),
        (3, 1, "one\r\n"),
        (4, 9, "two\\x0bstill\nthree"),
        (5, 1, "three"),
        (6, 1, "[the file has 5 lines]"),
    ],
)
async def test_lines_of_a_file(player: Player, start: int, count: int, expected: str) -> None:
    await player.call("write_file", path="f", content="\n\none\r\ntwo\x0bstill\nthree")
    seen = (await player.call("read_file", path="f", start_line=start, line_count=count)).text
    assert seen == expected.replace("\x0b", "\\x0b")


async def test_an_edit_keeps_mode_and_link(player: Player) -> None:
    await player.bash("printf 'a\\r\\n\\xff\\tb\\r\\n' >real; chmod 751 real; ln -s real link")
    assert (await player.call("edit_file", path="link", old_text="\tb\n", new_text="\tc\n")).text == "edited link"
    assert await player.bash("stat -c %a real; readlink link; od -An -c real") == (
        "751\nreal\n   a  \\r  \\n 377  \\t   c  \\r  \\n"
    )


SPECIAL = {
    "missing": ("nowhere/x", "[failed: No such file or directory: nowhere/x]"),
    "directory": ("d", "[failed: Is a directory: d]"),
    "root": ("/", "[failed: Is a directory: /]"),
    "below-a-file": ("adding.py/x", "[failed: Not a directory: adding.py/x]"),
    "fifo": ("fifo", "[failed: not a regular file: fifo]"),
    "zero": ("/dev/zero", "[failed: not a regular file: /dev/zero]"),
    "stdin": ("/dev/stdin", "[failed: "),
    "binary": ("binary", "[failed: binary is a binary file of 3 bytes; look at it with bash]"),
    "big": ("big", "[failed: big is too large for this tool (over 8388608 bytes); use bash]"),
    "sparse": ("sparse", "too large for this tool"),
    "loop": ("loop", "[failed: Too many levels of symbolic links: loop]"),
    "too-long": ("x" * 300, "[failed: File name too long: xxx"),
    "no-permission": ("closed/x", "[failed: Permission denied: closed/x]"),
}


@pytest.fixture
async def odd_player(player: Player) -> Player:
    await player.bash(
        "mkdir d closed; chmod 000 closed; mkfifo fifo; printf 'a\\0b' >binary; head -c 9000000 /dev/zero | tr '\\0' x >big;"
        "truncate -s 100G sparse 2>/dev/null || truncate -s 400M sparse; ln -s loop loop"
    )
    return player


async def test_what_is_no_plain_file_is_one_clear_answer(odd_player: Player) -> None:
    for path, says in SPECIAL.values():
        for tool, more in (("read_file", {}), ("edit_file", {"old_text": "a", "new_text": "b"})):
            observation = await odd_player.call(tool, path=path, **more)
            if tool == "edit_file" and path == "binary":
                assert observation.text == "edited binary"
                continue
            assert says in observation.text, (tool, path)
            assert observation.failed
            assert observation.valid
    for name in ("directory", "root", "below-a-file", "fifo", "loop", "too-long", "no-permission"):
        observation = await odd_player.call("write_file", path=SPECIAL[name][0], content="x")
        assert observation.failed, name
        assert observation.text.startswith("[failed: "), name
    assert await odd_player.bash("echo alive") == "alive"


async def test_a_file_where_nothing_may_be_written(player: Player) -> None:
    observation = await player.call("write_file", path="/usr/x", content="x")
    assert observation.text == "[failed: Read-only file system: /usr/x]"
    observation = await player.call("write_file", path="/etc/passwd", content="x")
    assert observation.failed


async def test_a_failed_edit_shows_what_is_there(player: Player) -> None:
    observation = await player.call("edit_file", path="adding.py", old_text="return abs(a) + abs(c)", new_text="x")
    assert "The nearest text is at line 2:\n    return abs(a) + abs(b)" in observation.text
    observation = await player.call("edit_file", path="adding.py", old_text="abs", new_text="x")
    assert "found 2 times, at lines 2, 2" in observation.text
    assert await player.bash("cat adding.py") == "def add(a, b):\n    return abs(a) + abs(b)"


# --- length -----------------------------------------------------------------------------------------------------


async def test_every_observation_fits_its_budget(provider: SandboxProvider) -> None:
    names = [f"test_{'long_name_' * 20}{n}" for n in range(60)]
    tests = "".join(f"def {name}():\n    assert 'x' * 3000 == 'y' * 3000\n\n" for name in names)
    budget = 300
    noise = "".join(chr(33 + n * 7919 % 90) for n in range(40_000))
    async with playing(
        provider, pytest_task({"test_long.py": tests}), observation_tokens=budget, feedback="messages"
    ) as player:
        await player.call("write_file", path="noise", content=noise)
        long = "d" * 200 + "/" + "e" * 200
        calls = [
            ToolCall("bash", {"command": "cat noise noise"}),
            ToolCall("bash", {"command": "cat noise; exit 3"}),
            ToolCall("read_file", {"path": "noise"}),
            ToolCall("read_file", {"path": noise[:4000]}),
            ToolCall("write_file", {"path": "/".join([long] * 8), "content": ""}),
            ToolCall("write_file", {"path": noise * 3, "content": ""}),
            ToolCall("edit_file", {"path": "noise", "old_text": noise[:5000] + "?", "new_text": noise}),
            ToolCall(noise, {}),
            ToolCall("bash", {f"{n}{noise[:500]}": n for n in range(500)}),
            ToolCall("bash", noise),
            ToolCall("bash", {"command": f"mkdir -p {long}; cd {long}; export BIG=$(seq 30000); rm -rf ../../d*"}),
            ToolCall("bash", {"command": "cat /workspace/noise"}),
            ToolCall("run_tests"),
        ]  # fmt: skip
        observations = await take(player, *calls)
        for call, observation in zip(calls, observations, strict=True):
            assert observation.text.strip(), call.name[:20]
            assert counter().count(observation.text) <= budget + SLACK_TOKENS, call.name[:20]
            assert observation.tokens == counter().count(observation.text)


# --- run_tests --------------------------------------------------------------------------------------------------

SECRETIVE = """\
from adding import add

SECRET_CONSTANT = 41


def test_small():
    assert add(1, 2) == 3


def test_negative():
    # SECRET_COMMENT
    assert add(-1, -2) == -3
"""


@pytest.mark.parametrize(
    ("feedback", "expected"),
    [
        ("pass_fail", "The hidden tests do not pass."),
        ("counts", "1 of 2 hidden tests pass."),
        ("messages", "1 of 2 hidden tests pass.\n- test_adding.py::test_negative: assert 3 == -3"),
    ],
)
async def test_feedback(provider: SandboxProvider, feedback: str, expected: str) -> None:
    async with playing(provider, pytest_task({"test_adding.py": SECRETIVE}), feedback=feedback) as player:
        observation = await player.call("run_tests")
        assert observation.text.replace("\n +  where 3 = add(-1, -2)", "") == expected
        assert (observation.failed, observation.exit_code) == (True, 1)
        assert "SECRET" not in observation.text
        await player.call("edit_file", path="adding.py", old_text="abs(a) + abs(b)", new_text="a + b")
        observation = await player.call("run_tests")
        assert (observation.text, observation.failed) == ("All 2 hidden tests pass.", False)


async def test_the_runs_of_an_episode_are_limited_and_counted(provider: SandboxProvider) -> None:
    async with playing(provider, max_test_runs=2) as player:
        for _ in range(2):
            assert (await player.call("run_tests")).text == "1 of 2 hidden tests pass."
        await player.call("edit_file", path="adding.py", old_text="abs(a) + abs(b)", new_text="a + b")
        for _ in range(2):
            observation = await player.call("run_tests")
            assert observation.text == "[failed: the tests did not run: all 2 runs of this episode were used]"
            assert (observation.failed, observation.valid) == (True, True)
        assert (player.episode.tally.test_runs, player.episode.tally.calls["run_tests"]) == (2, 4)
        assert (await player.finish()).outcome == "solved"


async def test_a_limit_of_zero_is_none(provider: SandboxProvider) -> None:
    async with playing(provider, stdio_task({"a": ("", "9")}, "print(8)"), max_test_runs=0) as player:
        said = {(await player.call("run_tests")).text for _ in range(11)}
        assert said == {"0 of 1 hidden tests pass."}
        assert player.episode.tally.test_runs == 11


async def test_feedback_never_shows_an_expected_output(provider: SandboxProvider) -> None:
    task = stdio_task({"a": ("1", "EXPECTED_A\n"), "b": ("2", "EXPECTED_B1\nEXPECTED_B2\n")}, "print('EXPECTED_B1')")
    for compare in ("tokens", "exact"):
        task = task.model_copy(update={"grader": task.grader.model_copy(update={"compare": compare})})
        async with playing(provider, task, feedback="messages") as player:
            seen = (await player.call("run_tests")).text
            assert "0 of 2 hidden tests pass." in seen
            assert "1 is wrong: 'EXPECTED_B1'" in seen
            assert "fewer than expected" in seen
            assert "EXPECTED_A" not in seen
            assert "EXPECTED_B2" not in seen


async def test_tests_run_in_another_box_and_change_nothing(provider: SandboxProvider) -> None:
    probe = """\
import os, socket, subprocess
import adding

def test_alone():
    assert "MINE" not in os.environ
    assert not os.path.exists("/tmp/mine")
    assert not os.path.exists("/workspace/fifo")
    others = [n for n in os.listdir("/proc") if n.isdigit()]
    assert len(others) < 8
    for n in others:
        assert b"sleep 77" not in open(f"/proc/{n}/cmdline", "rb").read().replace(b"\\0", b" ")
    open("/workspace/adding.py", "w").write("changed")
    open("/workspace/new", "w").write("new")
"""
    async with playing(provider, pytest_task({"test_probe.py": probe}), feedback="messages") as player:
        await player.bash(
            "export MINE=1; touch /tmp/mine; sleep 77 & mkfifo fifo; ln -s /etc/passwd out; ln -s nowhere dead"
        )
        before = await player.bash("find . | sort; cat adding.py; pgrep -x sleep")
        assert (await player.call("run_tests")).text == "All 1 hidden tests pass."
        assert await player.bash("find . | sort; cat adding.py; pgrep -x sleep") == before
        assert "pycache" not in before


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("truncate -s 10G huge || truncate -s 400M huge", "holds more than 67108864 bytes"),
        ("seq 20000 | (mkdir m; cd m; xargs touch)", "holds more than 10000 files"),
        ("chmod 000 /workspace", "the workspace cannot be read"),
        ("rm adding.py; mkdir adding.py", "0 of 2"),
        ("p=x; for i in $(seq 300); do mkdir $p 2>/dev/null && cd $p || break; done", "1 of 2"),
    ],
    ids=["sparse-file", "many-files", "unreadable", "replaced-by-directory", "deep"],
)
async def test_a_workspace_that_is_odd_is_a_failed_run_and_no_fault(
    provider: SandboxProvider, command: str, says: str
) -> None:
    async with playing(provider) as player:
        await player.bash(command)
        observation = await player.call("run_tests")
        assert says.lower() in observation.text.lower()
        assert observation.failed
        verdict = await player.finish()
        assert verdict.outcome == "failed"
