"""BigCodeBench: rows of our own in its schema, graded in real boxes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codeenv.answer import code_of
from codeenv.sandbox.api import SandboxProvider
from codeenv.sources import load_tasks
from codeenv.sources.rows import RowFault
from codeenv.sources.sets.bigcodebench import to_task
from tests.episodes import judge

pytestmark = pytest.mark.anyio

IMPORTS = "import os\nimport statistics\n\n"
DOC = '    """\n    The median of the numbers in a file, or the default when there is no such file.\n    """\n'
PROMPT = f"{IMPORTS}def task_func(path, default=0):\n{DOC}"
SOLUTION = """\
    if not os.path.exists(path):
        return default
    with open(path) as lines:
        return statistics.median(map(float, lines))
"""
PATCHES = """\
import unittest
from unittest.mock import mock_open, patch


class TestCases(unittest.TestCase):
    def setUp(self):
        self.written = "numbers.txt"
        with open(self.written, "w") as file:
            file.write("1\\n7\\n3\\n")

    def tearDown(self):
        os.remove(self.written)

    def test_case_1(self):
        self.assertEqual(task_func(self.written), 3.0)
        self.assertEqual(task_func("nothing", 6), 6)

    @patch("os.path.exists", return_value=True)
    @patch("builtins.open", mock_open(read_data="5\\n"))
    def test_case_2(self, exists):
        self.assertEqual(task_func("anything"), 5.0)

    def test_case_3(self):
        with patch.object(statistics, "median", return_value=9):
            self.assertEqual(task_func(self.written), 9)
"""
PLAIN = """\
import math
import unittest


class TestCases(unittest.TestCase):
    def test_case_1(self):
        for default in (1, 2):
            self.assertEqual(task_func("nothing", default), default)

    def test_case_2(self):
        self.assertTrue(math.isclose(task_func("nothing", 0.1 + 0.2), 0.3))
        with self.assertRaises(TypeError):
            task_func()
"""


def row(**changes: Any) -> dict[str, Any]:
    fields = {
        "task_id": "BigCodeBench/9001",
        "complete_prompt": PROMPT,
        "instruct_prompt": "Give the median of the numbers in a file.\nStart with:\n```\ndef task_func(path):\n```",
        "canonical_solution": SOLUTION,
        "code_prompt": f"{IMPORTS}def task_func(path, default=0):\n",
        "test": PATCHES,
        "entry_point": "task_func",
        "doc_struct": json.dumps({"description": ["The median."], "note": []}),
        "libs": "['os', 'statistics']",
    }
    return {**fields, **changes}


@pytest.mark.parametrize(
    ("test", "kind", "total"), [(PATCHES, "pytest", 3), (PLAIN, "functions", 2)], ids=["patches", "plain"]
)
@pytest.mark.parametrize("instruct", [False, True], ids=["complete", "instruct"])
async def test_reference_passes_and_the_rest_fails(
    provider: SandboxProvider, test: str, kind: str, total: int, instruct: bool
) -> None:
    task = to_task(row(test=test), instruct=instruct)
    assert (task.grader.kind, task.packages, task.id) == (kind, (), "BigCodeBench/9001")
    verdict = await judge(task, provider, dict(task.solution or {}))
    assert (verdict.outcome, verdict.tests_total) == ("solved", total), verdict
    assert (await judge(task, provider)).tests_passed == 0
    wrong = {"solution.py": PROMPT + SOLUTION.replace("return default", "return 4")}
    assert (await judge(task, provider, wrong)).outcome == "failed"
    assert task.answer is not None
    answered = code_of(f"```python\n{SOLUTION}```", task.answer)
    assert (await judge(task, provider, {"solution.py": answered})).outcome == "solved"


@pytest.mark.parametrize(
    ("test", "kind"),
    [
        (PLAIN, "functions"),
        (PLAIN.replace("import math", "import random"), "pytest"),
        (PLAIN.replace("import math", "import numpy as math"), "pytest"),
        (PLAIN.replace("0.3))", "0.3)); statistics.mean([1])"), "pytest"),
        (PLAIN.replace("task_func()", 'open("x")'), "pytest"),
        (PLAIN.replace("import math", "import math\nfrom unittest import mock"), "pytest"),
    ],
    ids=["plain", "random", "library", "a-name-of-the-solutions", "file", "mock"],
)
def test_only_tests_of_plain_values_go_without_the_solutions_process(test: str, kind: str) -> None:
    assert to_task(row(test=test)).grader.kind == kind


def test_libraries_become_packages() -> None:
    solution = "    import numpy\n    return default\n"
    task = to_task(
        row(libs="['sklearn.svm', 'bs4', 'os']", canonical_solution=solution, test="import yaml\n" + PATCHES)
    )
    assert task.packages == ("beautifulsoup4", "numpy", "pyyaml", "scikit-learn")
    assert task.metadata["tags"] == ["bs4", "os", "sklearn"]


def test_what_is_shown() -> None:
    complete, instruct = to_task(row()), to_task(row(), instruct=True)
    assert complete.files["solution.py"].decode() == PROMPT
    assert "Give the median" in instruct.instruction
    assert "NotImplementedError" in instruct.files["solution.py"].decode()
    for task in (complete, instruct):
        shown = f"{task.instruction} {task.files} {task.metadata}"
        assert "TestCases" not in shown
        assert "statistics.median" not in shown


def test_rows_of_a_file(tmp_path: Any) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps(row()) + "\n" + json.dumps(row(task_id="BigCodeBench/9002")) + "\n")
    names = ("bigcodebench", "bigcodebench-instruct", "bigcodebench-hard", "bigcodebench-hard-instruct")
    for name in names:
        assert len(load_tasks(f"{name}:{tmp_path}/rows.jsonl")) == 2


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"test": "class ("}, "test: is no Python"),
        ({"libs": "os, sys"}, "libs: must be a list|libs: is not a list"),
        ({"libs": "{'a': 1}"}, "libs: must be a list"),
        ({"libs": ""}, "libs: is empty"),
        ({"canonical_solution": "  return ("}, "canonical_solution: is no Python"),
        ({"entry_point": None}, "entry_point: must be text"),
    ],
)
def test_a_bad_row_is_named_by_its_column(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(RowFault, match=says):
        to_task(row(**changes))
