"""Episodes from start to verdict, in real boxes."""

# ruff: noqa: E501 - tables: one case a line
from __future__ import annotations

import time
from typing import Any, cast

import anyio
import pytest
from pydantic import ValidationError

from codeenv.episode import Episode, EpisodeSettings
from codeenv.graders import PytestGrader
from codeenv.grading import KINDS
from codeenv.sandbox.api import SandboxError, SandboxExpired, SandboxLost, SandboxProvider
from codeenv.sandbox.metered import Metered
from codeenv.sources import load_tasks
from codeenv.task import Answer
from codeenv.text_protocol import write
from codeenv.tools import ToolCall
from tests.episodes import TEST_ADD, Watching, destroy, playing, pytest_task

pytestmark = pytest.mark.anyio
FIX = {"path": "adding.py", "old_text": "abs(a) + abs(b)", "new_text": "a + b"}


@pytest.fixture
def watching(provider: SandboxProvider) -> Watching:
    return Watching(provider)


# --- ends -------------------------------------------------------------------------------------------------------


async def test_solved_and_failed(watching: Watching) -> None:
    for fixed in (True, False):
        async with playing(watching) as player:
            if fixed:
                await player.call("edit_file", **FIX)
            observation = await player.call("submit")
            assert (observation.done, player.episode.over) == (True, "submitted")
            verdict = await player.finish()
            assert (verdict.outcome, verdict.reward) == (("solved", 1.0) if fixed else ("failed", 0.0))
            assert verdict.tests_total == 2
        assert watching.alive == 0
    assert watching.live_at_creation == [0, 0, 0, 0]  # the policy's box is gone before the grader's is made


@pytest.mark.parametrize("name", ["strata-settings", "seed-order-statement", "glossary-columns"])
async def test_starter_tasks(provider: SandboxProvider, name: str) -> None:
    (task,) = load_tasks(f"starter/{name}")
    for files, outcome in ((task.solution, "solved"), (next(iter(task.wrong.values())), "failed")):
        assert files
        async with playing(provider, task) as player:
            for path, data in files.items():
                await player.call("write_file", path=path, content=data.decode())
            assert (await player.finish()).outcome == outcome


ANSWERS = [
    ("```python\ndef add(a, b):\n    return a + b\n```", "solved", ""),
    ("```python\ndef add(a, b):\n    return 3\n```", "failed", ""),
    ("```python\ndef ad(:\n```", "failed", ""),
    ("Add the two numbers.", "failed", "there is no code in the message"),
    ("```python\nTEXT = '\ud800\0'\n```", "failed", ""),
    (None, "failed", "there was no answer"),
]


@pytest.mark.parametrize(
    ("message", "outcome", "reason"), ANSWERS, ids=["right", "wrong", "no-python", "no-code", "no-text", "none"]
)
async def test_a_message_is_judged_as_the_answer(
    watching: Watching, message: str | None, outcome: str, reason: str
) -> None:
    task = pytest_task(answer=Answer(path="adding.py", entry_point="add"), family="function")
    async with playing(watching, task, max_turns=1) as player:
        episode = player.episode
        assert (episode.settings.protocol, watching.boxes) == ("answer", [])
        assert "abs(a) + abs(b)" in episode.task_message()
        assert "```python" in episode.system_message()
        with pytest.raises(RuntimeError, match="no box"):
            _ = episode.sandbox
        if message is not None:
            assert (await episode.step(message)).done
            for again in (message, ToolCall("bash", {"command": "ls"})):
                with pytest.raises(RuntimeError):
                    await episode.step(again)
        verdict = await episode.finish()
        assert (verdict.outcome, verdict.reason) == (outcome, reason)
        assert episode.tally.turns == (message is not None)
        assert (episode.tally.box_seconds > 0) == bool(watching.boxes) == (message is not None and not reason)
    assert watching.alive == 0


async def test_an_answer_needs_a_task_that_can_be_answered(watching: Watching) -> None:
    async with playing(watching, max_turns=1) as player:
        assert player.episode.settings.protocol == "tools"
    with pytest.raises(ValueError, match="cannot be answered with one block of code: adding"):
        async with playing(watching, protocol="answer"):
            pass


async def test_finish_is_idempotent_and_without_submit(watching: Watching) -> None:
    async with playing(watching) as player:
        first = await player.finish()
        assert await player.finish() is first
        assert first.outcome == "failed"
        assert len(watching.boxes) == 2
        with pytest.raises(RuntimeError, match="the episode is over"):
            await player.bash("ls")
        await player.episode.close()
        await player.episode.close()


@pytest.mark.parametrize("fixed", [True, False], ids=["solved", "failed"])
async def test_turns_run_out_and_the_workspace_is_graded(provider: SandboxProvider, fixed: bool) -> None:
    async with playing(provider, max_turns=2) as player:
        if fixed:
            await player.call("edit_file", **FIX)
        else:
            await player.bash("ls")
        assert player.episode.over == ""
        await player.bash("ls")
        assert player.episode.over == "turns"
        with pytest.raises(RuntimeError, match="turns"):
            await player.bash("ls")
        verdict = await player.finish()
        assert (verdict.outcome, verdict.reward, verdict.reason) == ("limit", float(fixed), "all 2 turns were used")
        assert verdict.tests_total == 2


async def test_submit_in_the_last_turn_is_no_limit(provider: SandboxProvider) -> None:
    async with playing(provider, max_turns=1) as player:
        await player.call("submit")
        assert player.episode.over == "submitted"
        assert (await player.finish()).outcome == "failed"


async def test_the_callers_own_limit(provider: SandboxProvider) -> None:
    async with playing(provider) as player:
        player.episode.stop()
        assert (await player.finish()).outcome == "limit"


async def test_two_messages_without_a_call_end_it(provider: SandboxProvider) -> None:
    async with playing(provider, protocol="text", tools=("bash", "submit")) as player:
        episode = player.episode
        first = await episode.step("I think.")
        assert "Write a fenced block that opens with the name of a tool: bash, submit." in first.text
        assert (first.valid, episode.over) == (False, "")
        assert (await episode.step("```bash\necho hi\n```")).text == "hi"
        await episode.step("Hm.")
        assert episode.over == ""
        await episode.step("```python\nHm.\n```")
        assert episode.over == "no_action"
        assert (await player.finish()).outcome == "failed"
    async with playing(provider, tools=("bash", "submit")) as player:
        (nudge,) = await player.episode.turn([])
        assert nudge.text == "[no tool call in your message. Call one of: bash, submit.]"


async def test_the_text_protocol(provider: SandboxProvider) -> None:
    async with playing(provider, protocol="text") as player:
        message = "\n".join(["Now.", write("edit_file", FIX | {"old_text": "    return abs(a) + abs(b)", "new_text": "    return a + b"}), "And.", write("bash", {"command": "cat adding.py; exit 3"}), "```read_file nowhere\n```"])  # fmt: skip
        observation = await player.episode.step(message)
        assert observation.text == (
            "edit_file:\nedited adding.py\n\n"
            "bash:\ndef add(a, b):\n    return a + b\n[exit code 3]\n\n"
            "read_file:\n[failed: No such file or directory: nowhere]"
        )
        assert (observation.failed, observation.valid, player.episode.tally.turns) == (True, True, 1)
        cut = await player.episode.step("```bash\ntouch RAN")
        assert "never closed" in cut.text
        assert "RAN" not in (await player.episode.step("```bash\nls\n```")).text
        done = await player.episode.step("```submit\n```")
        assert done.done
        assert (await player.finish()).outcome == "solved"


# --- time -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ttl", "timeout", "reserve"), [(600, 60, 90), (20, 60, 10)], ids=["roomy", "half-of-a-short-one"]
)
async def test_the_reserve_for_grading(provider: SandboxProvider, ttl: float, timeout: float, reserve: float) -> None:
    started = time.monotonic()
    async with playing(provider, pytest_task(grader=PytestGrader(timeout=timeout)), ttl_seconds=ttl) as player:
        assert player.episode.deadline == pytest.approx(started + ttl - reserve, abs=0.2)


async def test_the_soft_deadline(provider: SandboxProvider) -> None:
    async with playing(provider) as player:
        await player.call("edit_file", **FIX)
        player.episode._deadline = time.monotonic() + 1.2
        assert "[no end within 1.2 s" in await player.bash("sleep 60")
        first, second = await player.episode.turn([ToolCall("bash", {"command": "touch RAN"}), ToolCall("submit")])
        assert "the episode's time is up" in first.text
        assert "the episode is over (time)" in second.text
        verdict = await player.finish()
        assert (verdict.outcome, verdict.reward, verdict.reason) == ("limit", 1.0, "the episode's time ran out")


async def test_a_message_without_a_call_after_the_deadline(provider: SandboxProvider) -> None:
    async with playing(provider) as player:
        player.episode._deadline = time.monotonic()
        await player.episode.turn([])
        assert player.episode.over == "time"


async def test_a_test_run_takes_nothing_from_the_reserve(watching: Watching) -> None:
    async with playing(watching) as player:
        await player.call("write_file", path="adding.py", content="while True: pass")
        player.episode._deadline = time.monotonic() + 1.2
        observation = await player.call("run_tests")
        assert "The episode's time ran out before the tests had ended" in observation.text
        assert 1 < observation.seconds < 4
        assert watching.alive == 1


async def test_the_ttl_is_the_backstop(watching: Watching, monkeypatch: pytest.MonkeyPatch) -> None:
    async with playing(watching, ttl_seconds=10) as player:
        player.episode._deadline += 100
        monkeypatch.setattr(watching.boxes[0], "_created", watching.boxes[0]._created - 10)
        await destroy(watching.boxes[0])
        first, second = await player.episode.turn(
            [ToolCall("bash", {"command": "ls"}), ToolCall("bash", {"command": "ls"})]
        )
        assert "reached its time to live of 10 s" in first.text
        assert "the episode is over (expired)" in second.text
        verdict = await player.finish()
        assert (verdict.outcome, verdict.reward, verdict.tests) == ("expired", 0.0, ())
    assert len(watching.boxes) == 1


async def test_a_box_that_expires_between_turns(watching: Watching) -> None:
    settings = EpisodeSettings().model_copy(update={"ttl_seconds": 1.0})  # less than may be asked for
    episode = await Episode.open(pytest_task(), watching, settings)
    await anyio.sleep(1.4)
    assert (await episode.finish()).outcome == "expired"
    assert watching.alive == 0


async def test_a_tasks_own_command_limit(provider: SandboxProvider) -> None:
    async with playing(provider, pytest_task(limits={"command_timeout": 0.3})) as player:
        assert await player.bash("echo a; sleep 9") == (
            "a\n[no end within 0.3 s: the command and everything it started were killed]"
        )


# --- faults of the box ------------------------------------------------------------------------------------------


async def test_a_lost_box_is_a_sandbox_error_with_stage_and_seconds(watching: Watching) -> None:
    async with playing(watching) as player:
        await destroy(watching.boxes[0])
        with pytest.raises(SandboxLost) as raised:
            await player.bash("ls")
        assert raised.value.stage == "exec"
        assert raised.value.seconds is not None
        with pytest.raises(SandboxLost) as first:
            await player.finish()
        assert first.value.stage == "export"
        with pytest.raises(SandboxLost) as second:
            await player.finish()
        assert second.value is first.value
    assert watching.alive == 0


async def test_a_graders_box_that_is_lost_is_a_sandbox_error(watching: Watching) -> None:
    task = pytest_task({"test_adding.py": "import time\ndef test_a(): time.sleep(30)\n"})
    async with playing(watching, task) as player, anyio.create_task_group() as group:

        async def kill_the_second() -> None:
            while len(watching.boxes) < 2:
                await anyio.sleep(0.05)
            await anyio.sleep(0.5)
            await destroy(watching.boxes[1])

        group.start_soon(kill_the_second)
        with pytest.raises(SandboxError) as raised:
            await player.finish()
        assert raised.value.stage == "grading: exec"
        assert (raised.value.seconds or 0) > 0.3
    assert watching.alive == 0


async def test_files_that_do_not_fit_the_box_are_a_sandbox_error(watching: Watching) -> None:
    task = pytest_task(files={"big": b"x" * 3_000_000}, limits={"disk_mb": 1})
    with pytest.raises(SandboxError, match="do not fit the box") as raised:
        async with playing(watching, task):
            pass
    assert (raised.value.stage, watching.alive) == ("create", 0)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("head -c 70000000 /dev/zero >big", ". holds more than 67108864 bytes"),
        ("seq 11000 | xargs touch", ". holds more than 10000 files"),
        ("chmod 000 .", "the workspace cannot be read"),
    ],
    ids=["bytes", "entries", "unreadable"],
)
async def test_a_workspace_that_cannot_be_taken_has_failed(watching: Watching, command: str, reason: str) -> None:
    for turns, outcome in ((0, "failed"), (1, "limit")):
        async with playing(watching, max_turns=turns) as player:
            await player.bash(command)
            verdict = await player.finish()
            assert (verdict.outcome, verdict.reward) == (outcome, 0.0)
            assert reason in verdict.reason
        assert watching.alive == 0


# --- cancellation -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [0.0, 0.02, 0.1, 0.3, 0.6])
async def test_nothing_is_left_when_it_is_cancelled(watching: Watching, after: float) -> None:
    task = pytest_task({"test_adding.py": TEST_ADD + "\n\ndef test_slow():\n    import time\n    time.sleep(30)\n"})
    with anyio.move_on_after(after):
        async with playing(watching, task) as player:
            await player.bash("sleep 0.1; sleep 99 &")
            await player.finish()
    assert watching.alive == 0


async def test_closing_in_a_cancelled_scope(watching: Watching) -> None:
    episode = await Episode.open(pytest_task(), watching, EpisodeSettings())
    with anyio.CancelScope() as scope:
        scope.cancel()
        await episode.close()
    assert watching.alive == 0


# --- what comes through, what is counted ------------------------------------------------------------------------


async def test_what_still_runs_at_the_end_neither_breaks_nor_outlives_it(watching: Watching) -> None:
    async with playing(watching) as player:
        await player.call("edit_file", **FIX)
        close, running = player.episode.sandbox.close, list[bytes]()

        async def look_and_close() -> None:
            if not running:
                running.append(b"?")
                running[0] = (await watching.boxes[0].exec("pgrep -x sleep")).stdout
            await close()

        player.episode.sandbox.close = look_and_close  # type: ignore[method-assign]
        await player.bash("(while :; do mkdir d$RANDOM; touch d*/x; rm -rf d*; done) & setsid sleep 99 & sleep 0.1")
        assert (await player.finish()).outcome == "solved"
        assert running == [b""]  # stopped before the workspace was taken
        assert watching.alive == 0


async def test_protected_files_are_restored(provider: SandboxProvider) -> None:
    task = pytest_task(
        {"test_a.py": "import checks, adding\ndef test_a():\n    checks.check(adding.add)\n"},
        {"adding.py": "def add(a, b):\n    return 0\n", "checks.py": "def check(f):\n    assert f(1, 2) == 3\n"},
        protected=("checks.py",),
    )
    for command in ("echo 'def check(f): pass' >checks.py", "rm checks.py; ln -s adding.py checks.py; echo 'def check(f): pass' >>adding.py", "rm checks.py; mkdir checks.py; echo 'def check(f): pass' >checks.py/__init__.py"):  # fmt: skip
        async with playing(provider, task) as player:
            await player.bash(command)
            assert (await player.finish()).outcome == "failed"


async def test_executable_bits_and_starting_files(provider: SandboxProvider) -> None:
    task = pytest_task(
        files={"run.sh": "#!/bin/sh\necho ran\n", "deep/a/b.txt": b"\xff"}, executable=frozenset({"run.sh"})
    )
    async with playing(provider, task) as player:
        assert await player.bash("./run.sh; stat -c %a deep/a/b.txt; id -u; git --version >/dev/null 2>&1; env | grep -c TOKEN") == (
            "ran\n644\n1000\n0\n[exit code 1]"
        )  # fmt: skip


async def test_the_tally(provider: SandboxProvider) -> None:
    async with playing(provider) as player:
        await player.bash("sleep 0.2")
        await player.call("run_tests")
        await player.episode.turn([ToolCall("nonsense"), ToolCall("bash", "{"), ToolCall("bash", {"command": "false"})])
        await player.call("submit")
        await player.finish()
        tally = player.episode.tally
        assert (tally.turns, tally.failed_calls, tally.invalid_calls, tally.test_runs) == (4, 4, 2, 1)
        assert tally.calls == {"bash": 3, "run_tests": 1, "unknown": 1, "submit": 1}
        assert tally.observation_tokens > 10
        assert tally.create_seconds > 0
        assert 0.2 < tally.exec_seconds < tally.grade_seconds + 5
        assert tally.box_seconds > tally.create_seconds + tally.exec_seconds


async def test_seconds_of_boxes_are_those_of_all_boxes(provider: SandboxProvider) -> None:
    lived: list[float] = []
    metered = Metered(provider, lived.append)
    async with playing(metered) as player:
        before = player.episode.tally.box_seconds
        await player.call("run_tests")
        graded = player.episode.tally.box_seconds
        assert before == 0.0 < graded == pytest.approx(sum(lived), abs=0.1)
        await player.finish()
        await player.episode.close()
        assert len(lived) == 2  # each grading's; the policy's own is `open`ed
        own = player.episode.tally.box_seconds - sum(lived)
        assert player.episode.tally.create_seconds < own


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"tools": "bsh"}, "'bsh'; valid: bash"),
        ({"tools": ["bash", "bsh"]}, "'bsh'; valid: bash"),
        ({"tools": []}, "none given"),
        ({"max_turns": -1}, "max_turns"),
        ({"ttl_seconds": 1}, "ttl_seconds"),
        ({"protocol": "xml"}, "'tools', 'text' or 'answer'"),
        ({"observation_tokens": 1}, "observation_tokens"),
        ({"turns": 3}, "turns"),
    ],
)
async def test_settings_are_checked(watching: Watching, settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError) as raised:
        async with Episode.start(pytest_task(), watching, **settings):
            pass
    assert says in str(raised.value)
    assert watching.boxes == []


async def test_one_tool_by_its_name() -> None:
    assert EpisodeSettings(tools="bash").tools == ("bash",)  # type: ignore[arg-type]
    assert EpisodeSettings(tools=None).tools[:2] == ("bash", "read_file")  # type: ignore[arg-type]


async def test_a_grading_box_that_expires_is_not_the_policys(
    provider: SandboxProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def expire(*_: object) -> None:
        raise SandboxExpired("the time to live is over", stage="exec", seconds=1.0)

    monkeypatch.setitem(cast(dict[str, object], KINDS), "pytest", expire)
    async with playing(provider) as player:
        with pytest.raises(SandboxLost) as caught:
            await player.call("run_tests")
        assert not isinstance(caught.value, SandboxExpired)
        assert caught.value.stage == "grading: exec"
        assert player.episode.over == ""
        with pytest.raises(SandboxLost, match="time to live"):
            await player.finish()
