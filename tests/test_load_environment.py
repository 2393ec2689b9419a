"""`load_environment`: which tasks its rows are of, for training and for evaluation, and that they are played."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import pytest
from env_support import SECRET, double_task, play, pytest_task, write_set

from codeenv.load import load_environment
from codeenv.sandbox.api import UnsupportedSpec
from codeenv.sources import load_tasks
from codeenv.task import Task

pytestmark = pytest.mark.anyio


def row(number: int, **changes: Any) -> dict[str, Any]:
    """In the schema of HumanEval."""
    return {
        "task_id": f"Own/{number}",
        "prompt": f"def add_{number}(x):\n    '''Add {number} to x.'''\n",
        "entry_point": f"add_{number}",
        "canonical_solution": f"    return x + {number}  # {SECRET}\n",
        "test": f"def check(candidate):\n    marker = '{SECRET}'\n    assert candidate(1) == {number + 1}\n",
        **changes,
    }


def named(dataset: Any) -> list[str]:
    return [json.loads(info)["task_id"] for info in dataset["info"]]


@pytest.fixture
def rows(tmp_path: Path) -> str:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in (row(0), {}, row(1), row(2))))
    return f"humaneval:{path}"


@pytest.fixture
def own(tmp_path: Path) -> str:
    return str(write_set(tmp_path, [double_task(number) for number in range(4)]))


async def test_rows_of_a_public_set_are_played(rows: str) -> None:
    env = load_environment(rows, sandbox="bubblewrap", limit=2)
    assert named(env.get_dataset()) == named(env.get_eval_dataset()) == ["Own/0", "Own/1"]
    outputs = await play(env, "oracle")
    assert [output["reward"] for output in outputs] == [1.0, 1.0]
    assert [output["task_id"] for output in outputs] == ["Own/0", "Own/1"]
    assert SECRET not in json.dumps(env.get_dataset().to_list()) + repr(env.tasks)


def change(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(path.read_bytes().replace(b"x + 1 ", b"x - 1 "))


async def test_a_row_whose_file_has_changed_is_that_rows_fault(rows: str) -> None:
    env = load_environment(rows, sandbox="bubblewrap")
    known = load_tasks(rows)
    change(Path(rows.partition(":")[2]))
    outputs = await play(env, "oracle", tasks=known)
    assert [output["reward"] for output in outputs] == [1.0, 0.0, 1.0]
    assert [bool(output["error"]) for output in outputs] == [False, True, False]
    assert "task 'Own/1' has changed since it was loaded" in str(outputs[1]["error"])


async def test_training_and_evaluation_on_different_tasks(rows: str, own: str) -> None:
    env = load_environment(own, eval_dataset={"dataset": rows, "limit": 1}, filter=None, limit=3, sandbox="bubblewrap")
    assert named(env.get_dataset()) == ["double-0", "double-1", "double-2"]
    assert named(env.get_eval_dataset()) == ["Own/0"]
    assert list(env.tasks) == ["double-0", "double-1", "double-2", "Own/0"]
    outputs = await play(env, "oracle", inputs=[*env.get_dataset(1).to_list(), *env.get_eval_dataset().to_list()])
    assert [output["reward"] for output in outputs] == [1.0, 1.0]


async def test_an_id_of_both_is_two_tasks_where_they_differ(tmp_path: Path, own: str) -> None:
    changed = double_task(1, instruction="Print twice the integer that you read, as main.py.")
    (tmp_path / "held").mkdir()
    held_out = str(write_set(tmp_path / "held", [double_task(0), changed]))
    env = load_environment(own, eval_dataset=held_out, sandbox="bubblewrap")
    assert named(env.get_eval_dataset()) == ["double-0", "tasks/double-1"]
    assert len(env.tasks) == 5
    assert env.tasks["tasks/double-1"].instruction == changed.instruction
    assert env.tasks["double-1"] == double_task(1)
    outputs = await play(env, "oracle")
    assert [(output["task_id"], output["reward"]) for output in outputs] == [("double-0", 1.0), ("tasks/double-1", 1.0)]


def test_no_task_stays_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    path.write_text("".join(json.dumps(row(number)) + "\n" for number in range(300)))

    def alive() -> int:
        gc.collect()
        return sum(isinstance(each, Task) for each in gc.get_objects())

    before = alive()
    env = load_environment(f"humaneval:{path}", sandbox="bubblewrap")
    assert len(env.get_dataset()) == len(env.tasks) == 300
    assert alive() <= before + 1
    assert env.tasks["Own/299"].answer is not None


def test_several_with_weights(rows: str, own: str) -> None:
    env = load_environment({own: 2, rows: 1}, limit=6, sandbox="bubblewrap")
    assert named(env.get_dataset()) == ["double-0", "Own/0", "double-1", "double-2", "Own/1", "double-3"]
    sources = [json.loads(info)["source"] for info in env.get_dataset()["info"]]
    assert sources[:2] == [own, rows]


def test_what_boxes_need_is_checked_of_every_kind(tmp_path: Path) -> None:
    tasks = [double_task(0), pytest_task(image="nope:latest")]
    with pytest.raises(UnsupportedSpec, match="image"):
        load_environment(str(write_set(tmp_path, tasks)), sandbox="bubblewrap")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"limit": -1}, "limit: Input should be greater than or equal to 1"),
        ({"filter": {"level": 1}}, "filter: no task has 'level'; they have: "),
        ({"filter": "easy"}, "filter: Input should be a valid dictionary"),
        ({"split": "train"}, "split: starter has no splits"),
        ({"eval_split": "test"}, "split: starter has no splits"),
        ({"eval_dataset": "nope"}, "no dataset 'nope'"),
        ({"eval_dataset": {"dataset": "starter", "limt": 1}}, "dataset: unknown: limt; valid: dataset, split"),
        ({"tasks": "nope.json"}, "tasks: nope.json: no such report"),
        ({"decontaminate": "nope"}, "no dataset 'nope'"),
        ({"seeds": 1}, "unknown arguments: seeds; valid: dataset, split, filter, limit, seed"),
    ],
    ids=str,
)
def test_faults_are_raised_at_load_by_the_arguments_name(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError)) as raised:
        load_environment("starter", sandbox="bubblewrap", **arguments)
    assert says in str(raised.value)
