"""What a turn changed, and what an episode left."""

# ruff: noqa: E501 - tables: one case a line
from __future__ import annotations

import hashlib

import pytest

from codeenv.grading.workspace import workspace_of
from codeenv.record.workspace import (
    DIFF_SIZE,
    FOLLOWED,
    KEPT_FILE,
    Tree,
    changes,
    left_by,
    look,
    start_of,
    workspace_from,
)
from codeenv.sandbox.api import Sandbox
from codeenv.sandbox.archive import Archive, Entry
from tests.episodes import pytest_task

pytestmark = pytest.mark.anyio
TASK = pytest_task(files={"a.py": "one\ntwo\nthree\n", "bin": b"\0\1", "keep": "k"})
START = workspace_of(TASK)


def changed(**files: bytes | None) -> Archive:
    """The start with files replaced, or removed."""
    gone = {name for name, data in files.items() if data is None}
    return START.without(gone).overlay(Archive.of({name: data for name, data in files.items() if data is not None}))


DIFF = "--- a.py\n+++ a.py\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
CASES = {
    "nothing": (changed(), []),
    "changed": (changed(**{"a.py": b"one\n2\nthree\n"}), [("a.py", "changed", DIFF, False)]),
    "added": (changed(new=b"x\n"), [("new", "added", "--- new\n+++ new\n@@ -0,0 +1 @@\n+x\n", False)]),
    "removed": (changed(keep=None), [("keep", "removed", "--- keep\n+++ keep\n@@ -1 +0,0 @@\n-k\n\\ No newline at end of file\n", False)]),
    "binary": (changed(bin=b"\0\2"), [("bin", "changed", "", True)]),
    "not-utf8": (changed(keep=b"\xff"), [("keep", "changed", "", True)]),
    "vertical-tab-is-no-line-end": (changed(keep=b"a\x0bb\n"), [("keep", "changed", "--- keep\n+++ keep\n@@ -1 +1 @@\n-k\n\\ No newline at end of file\n+a\x0bb\n", False)]),
    "too-large-a-diff": (changed(keep=b"line of text\n" * (DIFF_SIZE // 13 + 1)), [("keep", "changed", "", False)]),
    "many-lines": (changed(keep=b"\n".join(b"%d" % n for n in range(20_000))), [("keep", "changed", "", False)]),
}  # fmt: skip


@pytest.mark.parametrize(("after", "expected"), CASES.values(), ids=CASES)
def test_changes(after: Archive, expected: list[tuple[str, str, str, bool]]) -> None:
    found = changes(start_of(TASK), Tree.of(after, start_of(TASK)))
    assert [(one.path, one.change, one.diff, one.binary) for one in found] == expected
    for one in found:
        data = after.files.get(one.path)
        if data is not None:
            assert (one.size, one.digest) == (len(data), hashlib.sha256(data).hexdigest())


def test_modes_and_links() -> None:
    after = START.overlay(Archive({
        "a.py": Entry("a.py", "file", 0o755, 14, b"one\ntwo\nthree\n"),
        "link": Entry("link", "link", 0o777, 4, b"a.py"),
        "keep": Entry("keep", "link", 0o777, 3, b"bin"),
    }))  # fmt: skip
    found = {one.path: one for one in changes(start_of(TASK), Tree.of(after))}
    assert (found["a.py"].mode, found["a.py"].diff) == (0o755, "")
    assert (found["link"].change, found["link"].target, found["link"].diff) == ("added", "a.py", "")
    assert (found["keep"].change, found["keep"].target) == ("changed", "bin")
    assert len(found) == 3


async def test_a_look_leaves_caches_out_and_does_not_read_what_is_large(box: Sandbox) -> None:
    await box.import_(START)
    await box.exec(f"mkdir -p .git __pycache__; touch .git/x __pycache__/y.pyc; truncate -s {KEPT_FILE + 1} large")
    first = await look(box, TASK, start_of(TASK))
    assert [(one.path, one.size, one.digest) for one in changes(start_of(TASK), first)] == [
        ("large", KEPT_FILE + 1, "")
    ]
    await box.exec(f"echo x >> large; truncate -s {KEPT_FILE} other")
    second = await look(box, TASK, first)
    assert [(one.path, one.size, bool(one.digest)) for one in changes(first, second)] == [
        ("large", KEPT_FILE + 3, False),
        ("other", KEPT_FILE, True),
    ]
    assert changes(second, await look(box, TASK, second)) == []


async def test_a_dotfile_that_is_part_of_the_work_is_followed(box: Sandbox) -> None:
    task = pytest_task(files={"a.py": "x"}, solution={".config": b"y"})
    await box.import_(workspace_of(task))
    await box.exec("echo y > .config")
    assert [one.path for one in changes(start_of(task), await look(box, task, start_of(task)))] == [".config"]


async def test_a_workspace_that_is_too_large_is_said_to_be(box: Sandbox) -> None:
    await box.exec(f"for n in $(seq {FOLLOWED.max_entries + 1}); do : > f$n; done")
    before = start_of(TASK)
    tree = await look(box, TASK, before)
    assert "not followed" in tree.note
    assert changes(before, tree) == []


def test_what_is_left_can_be_judged_again() -> None:
    task = pytest_task(
        files={"a.py": "x", "data/in": "1", "gone": "g", ".hidden": "h"}, protected=("data/*",), executable={"a.py"}
    )
    left = Archive({
        "a.py": Entry("a.py", "file", 0o644, 3, b"\xff\0y"),
        "data/in": Entry("data/in", "file", 0o644, 1, b"2"),
        "odd-\udcff": Entry("odd-\udcff", "file", 0o600, 1, b"z"),
        "link": Entry("link", "link", 0o777, 4, b"a.py"),
        "__pycache__/m.pyc": Entry("__pycache__/m.pyc", "file", 0o644, 1, b"c"),
    })  # fmt: skip
    recorded = left_by(task, left)
    assert {file.path for file in recorded.files} == {"a.py", "odd-\udcff", "link"}
    assert recorded.removed == ["gone"]
    again = workspace_from(task, recorded)
    assert again.files == {"a.py": b"\xff\0y", "data/in": b"1", "odd-\udcff": b"z", ".hidden": b"h"}
    assert again.entries["link"].data == b"a.py"
    assert (again.entries["a.py"].mode, again.entries["odd-\udcff"].mode) == (0o644, 0o600)


def test_what_is_too_large_to_be_recorded_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codeenv.record.workspace.LEFT_BYTES", 10)
    recorded = left_by(TASK, changed(new=b"12345678901"))
    assert (recorded.files, recorded.removed) == ([], [])
    with pytest.raises(ValueError, match="was not recorded: the files that are new have over 10 bytes"):
        workspace_from(TASK, recorded)
