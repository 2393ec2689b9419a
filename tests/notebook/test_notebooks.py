"""The committed notebooks, and what compares them with fresh ones. `.ci/notebooks.py` executes them."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from codeenv.sources import load_tasks
from codeenv.task import Task

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LONG = 24  # characters of a line that nobody writes by chance

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@cache
def executor() -> Any:
    spec = spec_from_file_location("execute_notebooks", ROOT / ".ci" / "notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def secrets() -> set[str]:
    """Long lines of the hidden parts of the tasks that come with codeenv, each of one task alone: what several have is
    nobody's secret."""
    counts = Counter(line for task in load_tasks("starter") for line in _hidden(task))
    return {line for line, count in counts.items() if count == 1}


def _hidden(task: Task) -> set[str]:
    hidden = [task.tests, task.solution or {}, *task.wrong.values()]
    shown = "\n".join([task.instruction, *(data.decode("utf-8", "replace") for data in task.files.values())])
    lines = {line.strip() for files in hidden for data in files.values() for line in _lines(data)}
    return {line for line in lines if len(line) >= LONG and line not in shown}


def _lines(data: bytes) -> list[str]:
    return data.decode("utf-8", "replace").splitlines()


@each
def test_is_committed_as_it_was_executed(path: Path) -> None:
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert not [output for cell in cells for output in cell.outputs if output.output_type == "error"]
    assert "text/html" in cells[-1].outputs[-1].data  # it ends in something worth seeing


@each
def test_has_nothing_of_a_machine_or_a_day_in_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"/(?:tmp|root|home|work|usr)/[^\s\"]*", text) == []
    assert executor().DATE.findall(text) == []
    assert set(executor().NAME.findall(text)) <= {"0" * 12}
    assert "stderr" not in text


@each
def test_has_no_hidden_test_or_solution_in_it(path: Path) -> None:
    assert len(secrets()) > 1000
    text = "\n".join(executor().shown(nbformat.read(path, as_version=4)))
    assert [line for line in secrets() if line in text] == []


SAME = [
    ("ran 4 ms at 0.2 s", "ran &lt;1 ms at 1 m 02 s"),
    ("a-0123456789ab.jsonl", "a-ba9876543210.jsonl"),
    ("39 tok", "1.2k tok"),
    ("python 3.11.7", "python 3.13.0"),
    ("tip-jar   solved  21/21   5    1.1", "tip-jar   solved  21/21   5   11.4"),
    ("<style>p { }</style><p>x</p>", "<style>p { color: red }</style><p>x</p>"),
]
OTHER = [
    ("solved", "failed"),
    ("21/21", "20/21"),
    ("mean reward 1.000", "mean reward 0.750"),
    ("5 turns", "6 turns"),
    ("exit code 0", "exit code 1"),
    ("<p>x</p>", "<p>y</p>"),
]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [*((*pair, True) for pair in SAME), *((*pair, False) for pair in OTHER)],
    ids=[*(f"same-{n}" for n in range(len(SAME))), *(f"other-{n}" for n in range(len(OTHER)))],
)
@pytest.mark.parametrize("kind", ["text/plain", "text/html"])
def test_an_output_that_is_another_is_told(one: str, other: str, same: bool, kind: str) -> None:
    told = executor().difference(*(_notebook(text, kind) for text in (one, other)), "01.ipynb")
    assert (told == "") == same
    assert same or "cell 1 gives" in told


def _notebook(text: str, kind: str) -> Any:
    output = new_output("execute_result", data={kind: text}, execution_count=1)
    return new_notebook(cells=[new_code_cell("x", execution_count=1, outputs=[output], id="c")])
