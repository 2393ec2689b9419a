"""What of a policy's workspace is judged."""

# ruff: noqa: E501 - tables: one case a line
from __future__ import annotations

from typing import Any

import pytest

from codeenv.episode import Episode
from codeenv.grading import judged_workspace
from codeenv.sandbox.api import SandboxProvider
from codeenv.sandbox.archive import Archive, Entry
from codeenv.tools import ToolCall
from tests.episodes import GOOD, Files, encoded, pytest_task

pytestmark = pytest.mark.anyio


def judged(left: Files, files: Files | None = None, **fields: Any) -> dict[str, bytes]:
    return judged_workspace(pytest_task(files=files or {}, **fields), Archive.of(encoded(left))).files


@pytest.mark.parametrize(
    "path",
    [
        ".env", ".git/HEAD", ".venv/lib/x.py", "sub/.hidden/x", ".pytest_cache/x", "__pycache__/x.cpython-311.pyc",
        "a/__pycache__/x.txt", "x.pyc", "x.pyo", "node_modules/x/index.js", "a/node_modules/x", "x-1.dist-info/entry_points.txt",
        "x.egg-info/PKG-INFO",
    ],
)  # fmt: skip
def test_dot_files_and_caches_are_judged_only_when_they_are_the_tasks(path: str) -> None:
    assert judged({path: "theirs", "main.py": "x"}) == {"main.py": b"x"}
    shipped: Files = {path: "ours"}
    assert judged({path: "theirs"}, shipped) == judged({}, shipped) == {path: b"ours"}
    beside = f"{path.rpartition('/')[0]}/other".lstrip("/") if "/" in path else ".other"
    assert judged({beside: "theirs"}, shipped) == {path: b"ours"}
    work = {"solution": {path: b"reference"}}
    assert judged({path: "theirs"}, shipped, **work) == {path: b"theirs"}
    assert judged({}, shipped, **work) == {}


@pytest.mark.parametrize(
    "path", ["a.b/c", "main.py", "node_modules.py", "sub/x.pyx", "x.dist-info.txt", "a..", "a...b"]
)
def test_everything_else_is_judged(path: str) -> None:
    assert judged({path: "theirs"}) == {path: b"theirs"}


def test_what_is_left_aside_leaves_no_empty_folder() -> None:
    entries = [
        Entry(".git", "directory", 0o755),
        Entry(".git/x", "link", 0o777, 1, b"y"),
        Entry("keep", "directory", 0o700),
    ]
    left = Archive({entry.path: entry for entry in entries})
    assert list(judged_workspace(pytest_task(), left).entries) == ["keep"]


LEAVINGS = {
    "processes": "(while true; do echo 'raise SystemExit' > adding.py; done) & sleep 0.2; true",
    "links-out": "ln -s /etc/passwd out; ln -s ../tmp up; ln -s / root; ln -s adding.py inside",
    "special-files": "mkfifo pipe; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'",
    "unreadable": "echo secret > locked; chmod 000 locked; mkdir shut; touch shut/x; chmod 000 shut",
    "names": r"touch $'new\nline' $'\xff' -- -rf",
}


@pytest.mark.parametrize("command", [pytest.param(text, id=name) for name, text in LEAVINGS.items()])
async def test_what_cannot_be_taken_along_does_not_disturb_the_judgement(
    provider: SandboxProvider, command: str
) -> None:
    async with Episode.start(pytest_task(), provider) as episode:
        await episode.step(ToolCall("bash", {"command": command}))
        if "while" not in command:
            await episode.step(ToolCall("write_file", {"path": "adding.py", "content": GOOD}))
        verdict = await episode.finish()
    assert verdict.outcome == ("failed" if "while" in command else "solved"), verdict
    assert verdict.tests_total == 2


@pytest.mark.parametrize(
    ("command", "says"),
    [("truncate -s 70M big", "holds more than 67108864 bytes"), ("mkdir d; cd d; seq 10001 | xargs touch", "more than 10000 files")],
    ids=["bytes", "files"],
)  # fmt: skip
async def test_a_workspace_over_the_limits_is_failed_and_not_judged_in_part(
    provider: SandboxProvider, command: str, says: str
) -> None:
    async with Episode.start(pytest_task(files={"adding.py": GOOD}), provider) as episode:
        await episode.step(ToolCall("bash", {"command": command}))
        verdict = await episode.finish()
    assert (verdict.outcome, verdict.reward, verdict.tests) == ("failed", 0.0, ())
    assert says in verdict.reason
