"""What the model saw, made again."""

from __future__ import annotations

from pathlib import Path

import pytest
from env_support import double_task

from codeenv.prompts import Prompts
from codeenv.record import Recording
from codeenv.replay.rerender import Rendered, rerender
from codeenv.sandbox.api import SandboxProvider
from codeenv.task import Answer
from codeenv.tools import ToolCall
from tests.replay.played import bash, policy, recorded

pytestmark = pytest.mark.anyio


def differing(texts: list[Rendered]) -> list[tuple[int, int, str]]:
    return [(text.turn, text.call, text.role) for text in texts if not text.same and text.whole]


@pytest.mark.parametrize("protocol", ["tools", "text"])
@pytest.mark.parametrize("name", ["oracle", "garbage"])
async def test_by_the_same_templates_it_is_the_same(
    name: str, protocol: str, provider: SandboxProvider, tmp_path: Path
) -> None:
    task = double_task()
    turns = [*policy(name, task, protocol)[:-1], bash("seq 9000; printf '\\033[1mx\\rY\\200'")]
    if protocol == "text":
        turns[-1] = "```bash\nseq 9000; printf '\\033[1mx\\rY\\200'\n```"
    recording = await recorded(tmp_path, provider, turns, task, protocol=protocol)
    found = rerender(recording, task)
    assert differing(found) == []
    assert [text.role for text in found[:2]] == ["system", "user"]
    assert len(found) == 2 + sum(len(turn.results) for turn in recording.turns)


async def test_an_answer_has_no_observation_to_render(provider: SandboxProvider, tmp_path: Path) -> None:
    task = double_task(answer=Answer(path="main.py"))
    recording = await recorded(tmp_path, provider, ["```python\n1\n```"], task, protocol="answer", max_turns=1)
    assert differing(rerender(recording, task)) == []


async def test_another_budget(provider: SandboxProvider, tmp_path: Path) -> None:
    recording = await recorded(tmp_path, provider, [bash("seq 2000"), bash("echo x")], observation_tokens=300)
    found = rerender(recording, observation_tokens=100)
    assert differing(found) == [(1, 1, "bash")]
    (text,) = [each for each in found if not each.same]
    assert text.tokens_after <= 100 + 64 < text.tokens_before
    assert "omitted" in text.after
    # With more than the run had, there is what the run had not shown.
    more = rerender(recording, observation_tokens=20_000)
    assert more[-2].after == "\n".join(map(str, range(1, 2001)))
    with pytest.raises(ValueError, match="observation_tokens"):
        rerender(recording, observation_tokens=3)


async def test_other_templates(provider: SandboxProvider, tmp_path: Path) -> None:
    recording = await recorded(tmp_path / "r", provider, [bash("echo x"), [ToolCall("run_tests", {})]])
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "bash.j2").write_text("<{{ output }}> {{ exit_code }}\n")
    (folder / "task.j2").write_text("Now: {{ instruction }}\n")
    found = rerender(recording, double_task(), prompts=Prompts(folder))
    assert differing(found) == [(0, 0, "user"), (1, 1, "bash")]
    assert found[1].after.startswith("Now: Write main.py")
    assert found[2].after == "<x\n> 0"
    # Without the task its message is left as it was.
    assert differing(rerender(recording, prompts=Prompts(folder))) == [(1, 1, "bash")]
    (folder / "bash.j2").write_text("{{ output.no }}\n")
    with pytest.raises(ValueError, match=r"bash\.j2"):
        rerender(recording, prompts=Prompts(folder))


async def test_what_was_not_recorded_whole_is_told_apart(provider: SandboxProvider, tmp_path: Path) -> None:
    turns = [bash("seq 30000"), [ToolCall("read_file", {"path": "long"})]]
    recording = await recorded(tmp_path, provider, [bash("seq 60000 > long"), *turns])
    found = rerender(recording)
    assert [(text.turn, text.whole) for text in found if text.turn] == [(1, True), (2, False), (3, False)]
    assert differing(found) == []


def test_a_recording_that_began_and_no_more(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    opening = '{"kind": "episode", "format": 1, "id": "a", "started": "", "task": {"id": "a", "digest": ""}, '
    path.write_text(opening + '"sandbox": "", "settings": {}, "spec": {}, "versions": {}}\n')
    assert rerender(Recording.load(path)) == []
