"""honepad: from its package, whole; and rows of our own that are no good."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from codeenv.sandbox.api import SandboxProvider
from codeenv.sources import load_tasks
from codeenv.sources.rows import RowFault
from codeenv.sources.sets.honepad import to_task
from codeenv.task import Task
from tests.episodes import judge

pytestmark = pytest.mark.anyio

STUB = "class Counter:\n    def add(self, amount):\n        raise NotImplementedError\n"
COUNTS = """\
class Counter:
    total = 0

    def add(self, amount):
        self.total += amount
        return {returned}
"""


def trace(name: str = "l1-add", level: int = 1, expected: Any = 3) -> dict[str, Any]:
    return {
        "id": name,
        "level": level,
        "calls": [{"m": "add", "a": [1], "e": 1}, {"m": "add", "a": [2], "e": expected}],
    }


def row(**changes: Any) -> dict[str, Any]:
    fields = {
        "problem": "counter",
        "spec": ["# Level 1\n\nAdd.\n", "# Level 2\n\nAdd more.\n"],
        "cases": [trace(), trace("l2-add", 2)],
        "hidden": [trace("hid-l1", 1)],
        "stub": STUB,
        "solution": COUNTS.format(returned="self.total"),
    }
    return {**fields, **changes}


async def test_every_trace_passes_by_reference_and_none_by_stub(provider: SandboxProvider) -> None:
    tasks = load_tasks("honepad")
    assert len(tasks) == 10
    passed: dict[str, tuple[int, int]] = {}

    async def one(task: Task) -> None:
        reference, stub = await judge(task, provider, dict(task.solution or {})), await judge(task, provider)
        assert reference.tests_total == stub.tests_total
        passed[task.id] = reference.tests_passed, stub.tests_passed

    async with anyio.create_task_group() as group:
        for task in tasks:
            group.start_soon(one, task)
    assert sum(reference for reference, _ in passed.values()) == 203
    assert sum(stub for _, stub in passed.values()) == 0
    assert sum(task.metadata["traces"] for task in tasks) == 203


def test_public_traces_are_shown_and_hidden_ones_are_not() -> None:
    task = to_task(row(hidden=[trace("hid-secret", 1, "marker-4711")]))
    shown = task.instruction + "".join(data.decode() for data in task.files.values())
    assert json.loads(task.files["cases/level2.json"]) == [trace("l2-add", 2)]
    assert "secret" not in shown
    assert "4711" not in shown + str(task.metadata)
    assert "Level 1" in task.instruction
    assert "Level 2" in task.instruction
    assert (task.family, task.answer and task.answer.entry_point) == ("function", "Counter")


@pytest.mark.parametrize(
    ("returned", "expected", "passes"),
    [
        ("self.total", 3, True),
        ("float(self.total)", 3, True),
        ("self.total == 3", True, True),
        ("[self.total]", [3], True),
        ("self.total == 3", 1, False),
        ("int(self.total == 3)", True, False),
        ("self.total and None", 0, False),
        ("(self.total,)", [3], False),
        ("[True]", [1], False),
        ("str(self.total)", 3, False),
        ("self.total + 1", 3, False),
    ],
)
async def test_values_are_compared_as_honepad_does(
    provider: SandboxProvider, returned: str, expected: Any, passes: bool
) -> None:
    calls = [{"m": "add", "a": [3], "e": expected}]
    task = to_task(row(cases=[{"id": "one", "level": 1, "calls": calls}], hidden=[]))
    verdict = await judge(task, provider, {"solution.py": COUNTS.format(returned=returned)})
    assert verdict.solved == passes, verdict


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"stub": "def f(): pass\n"}, "stub: must define one class, not 0"),
        ({"stub": "class ("}, "stub: is no Python"),
        ({"spec": "text"}, "spec: must be a list"),
        ({"hidden": None}, "hidden: must be a list"),
        ({"cases": [trace(), trace()]}, "two traces have one name"),
        ({"cases": [{"id": "x", "level": 1, "calls": []}]}, r"cases\[0\]: must have"),
        ({"cases": [{"id": "x", "level": 1, "calls": [{"m": "a b", "a": [], "e": 1}]}]}, r"cases\[0\].calls"),
        ({"solution": " "}, "solution: is empty"),
    ],
    ids=["no-class", "no-python", "spec", "no-hidden", "twice", "no-calls", "no-name", "no-solution"],
)
def test_a_bad_row_is_named_by_its_column(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(RowFault, match=says):
        to_task(row(**changes))
