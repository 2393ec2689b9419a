"""Exercism-style folders: exercises and a track of our own, graded in real boxes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codeenv.sandbox.api import SandboxProvider
from codeenv.sources import load_tasks, open_tasks
from codeenv.task import Task
from tests.episodes import judge

pytestmark = pytest.mark.anyio

TESTS = """\
import unittest

from ferry_load import load, Ferry
from ferry_load_test_data import CARS


class FerryLoadTest(unittest.TestCase):
    def test_sums(self):
        self.assertEqual(load(CARS), 6)

    def test_variants(self):
        for cars, total in (([], 0), ([4], 4)):
            with self.subTest(cars=cars):
                self.assertEqual(load(cars), total)

    def test_full(self):
        with self.assertRaises(ValueError) as raised:
            Ferry(1).take(2)
        self.assertEqual(raised.exception.args[0], "full")
"""
REFERENCE = """\
def load(cars):
    return sum(cars)


class Ferry:
    def __init__(self, room):
        self.room = room

    def take(self, car):
        if car > self.room:
            raise ValueError("full")
"""
STUB = "def load(cars):\n    pass\n\n\nclass Ferry:\n    def __init__(self, room):\n        pass\n"


def exercise(root: Path, slug: str = "ferry-load", **changes: Any) -> Path:
    folder = root / slug
    files: dict[str, Any] = {
        ".docs/introduction.md": "# Introduction\n\nFerries.\n",
        ".docs/instructions.md": "# Instructions\n\nSum the load.\n",
        ".docs/instructions.append.md": "# Append\n\nRaise ValueError.\n",
        ".docs/hints.md": "A hint.\n",
        ".meta/example.py": REFERENCE,
        "ferry_load.py": STUB,
        "ferry_load_test.py": TESTS,
        "ferry_load_test_data.py": "CARS = [1, 2, 3]\n",
        ".meta/config.json": {
            "authors": [],
            "files": {
                "solution": ["ferry_load.py"],
                "test": ["ferry_load_test.py"],
                "example": [".meta/example.py"],
                "editor": ["ferry_load_test_data.py"],
            },
            "blurb": "Sum.",
        },
        **changes,
    }
    for name, content in files.items():
        if content is not None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def config(**files: list[str] | None) -> dict[str, Any]:
    given = {"solution": ["ferry_load.py"], "test": ["ferry_load_test.py"], "example": [".meta/example.py"]}
    return {"files": {kind: paths for kind, paths in {**given, **files}.items() if paths is not None}}


def load(folder: Path) -> Task:
    (task,) = load_tasks(f"exercism:{folder}")
    return task


async def test_an_exercise_is_graded_in_a_box_of_its_own(tmp_path: Path, provider: SandboxProvider) -> None:
    task = load(exercise(tmp_path))
    assert (task.id, task.grader.kind, task.family) == ("exercism/ferry-load", "functions", "project")
    verdict = await judge(task, provider, dict(task.solution or {}))
    assert (verdict.outcome, verdict.tests_total) == ("solved", 3), verdict
    assert (await judge(task, provider)).tests_passed == 0
    wrong = {"ferry_load.py": REFERENCE.replace("sum(cars)", "len(cars)")}
    assert (await judge(task, provider, wrong)).outcome == "failed"


async def test_what_is_shown_and_what_is_not(tmp_path: Path) -> None:
    task = load(exercise(tmp_path))
    order = [
        task.instruction.index(word) for word in ("Ferries.", "Sum the load.", "Raise ValueError.", "`ferry_load.py`")
    ]
    assert order == sorted(order)
    assert "hint" not in task.instruction
    assert set(task.files) == {"ferry_load.py", "ferry_load_test_data.py"}
    assert task.protected == ("ferry_load_test_data.py",)
    assert task.answer is not None
    assert task.answer.entry_point == ""  # two are asked for


EQUAL = REFERENCE + "\n    def __eq__(self, other):\n        return self.room == other.room\n"


@pytest.mark.parametrize(
    "changes",
    [
        {"ferry_load_test.py": TESTS.replace("import unittest", "import unittest\nfrom unittest.mock import patch")},
        {".meta/example.py": EQUAL},
    ],
    ids=["patches", "own-equality"],
)
async def test_tests_that_need_the_solutions_process_get_pytest(
    tmp_path: Path, provider: SandboxProvider, changes: dict[str, str]
) -> None:
    task = load(exercise(tmp_path, **changes))
    assert task.grader.kind == "pytest"
    assert (await judge(task, provider, dict(task.solution or {}))).outcome == "solved"


def test_a_track_with_what_it_says_of_exercises(tmp_path: Path) -> None:
    exercise(tmp_path / "exercises" / "practice")
    exercise(tmp_path / "exercises" / "practice", "old-one")
    exemplar = config(example=None, exemplar=[".meta/exemplar.py"], editor=["ferry_load_test_data.py"])
    exercise(
        tmp_path / "exercises" / "concept", "cars", **{".meta/config.json": exemplar, ".meta/exemplar.py": REFERENCE}
    )
    practice = [
        {"slug": "ferry-load", "difficulty": 3, "practices": ["lists"]},
        {"slug": "old-one", "status": "deprecated"},
    ]
    track = {"slug": "python", "exercises": {"practice": practice, "concept": [{"slug": "cars", "concepts": ["sums"]}]}}
    (tmp_path / "config.json").write_text(json.dumps(track))
    cars, ferry = load_tasks(f"exercism:{tmp_path}")
    assert (cars.id, cars.metadata["tags"], cars.solution) == (
        "exercism/cars",
        ["sums"],
        {"ferry_load.py": REFERENCE.encode()},
    )
    assert (ferry.metadata["difficulty"], ferry.metadata["tags"]) == (3, ["lists"])


def test_an_exercise_without_names_of_files_has_those_of_its_slug(tmp_path: Path) -> None:
    task = load(exercise(tmp_path, **{".meta/config.json": config(solution=[], test=[], example=[], editor=[])}))
    assert set(task.files) == {"ferry_load.py"}
    assert set(task.tests) == {"ferry_load_test.py"}
    assert task.solution == {"ferry_load.py": REFERENCE.encode()}


NO_TEXT = (".docs/instructions.md", ".docs/introduction.md", ".docs/instructions.append.md")
FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "rust": ({".meta/config.json": config(solution=["src/lib.rs"], test=["tests/x.rs"])}, "only the Python track"),
    "no-test": ({".meta/config.json": config(test=["other_test.py"])}, "files.test: other_test.py: cannot be read"),
    "outside": ({".meta/config.json": config(solution=["../../secret.py"])}, "is not in the exercise's folder"),
    "two-for-one": ({".meta/config.json": config(example=["a", "b"])}, "2 references for 1 files"),
    "no-json": ({".meta/config.json": "{"}, "config.json: cannot be read"),
    "no-files": ({".meta/config.json": {"authors": []}}, "files: missing"),
    "no-list": ({".meta/config.json": {"files": {"solution": "x.py"}}}, "files.solution: must be a list"),
    "no-text": (dict.fromkeys(NO_TEXT), "instructions.md: missing"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "says"), FAULTS.values(), ids=FAULTS)
def test_an_exercise_that_cannot_be_a_task_is_named_and_the_rest_load(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    exercise(tmp_path)
    exercise(tmp_path, "bad-one", **changes)
    tasks = open_tasks(f"exercism:{tmp_path}")
    bad = tasks.bad
    assert [task.id for task in tasks] == ["exercism/ferry-load"]
    assert [(row.name, says in row.reason) for row in bad] == [("bad-one", True)], bad


def test_a_directory_without_exercises_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="neither an exercise"):
        load_tasks(f"exercism:{tmp_path}")
