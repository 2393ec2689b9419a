"""Mutants of references."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache

import pytest

from codeenv.mutants import KINDS, mutants

GIVEN = "def helper(x):\n    return x + 1\n"
SOLUTION = '''"""A docstring that is 1 constant."""
from math import pi as number
LIMIT: int = 10

def helper(x):
    return x + 1

@staticmethod
def find(items: "list[int]", flag=True) -> int:
    """Another 2."""
    best = 0
    for index in range(len(items)):
        if items[index] > best and flag:
            best = items[index]
        elif not flag:
            continue
        best += f"{best + 1}".count("a")
    return max(best, -LIMIT) if items else 0
'''
FILES = {"a.py": SOLUTION.encode(), "notes.txt": b"1 + 1", "odd.py": b"def"}


@cache
def changed(count: int = 1000, seed: int = 0) -> list[str]:
    made = mutants(FILES, {"a.py": GIVEN.encode()}, count=count, seed=seed)
    assert all(set(one.files) == set(FILES) for one in made)
    assert all(one.files["notes.txt"] == b"1 + 1" for one in made)
    return [one.files["a.py"].decode() for one in made]


@pytest.mark.parametrize(
    "piece",
    [
        "items[index] >= best", "items[index] <= best", "best or flag", "best = 1", "best = -1", "flag=False",
        "range(len(items) - 1)", "range(len(items) + 1)", "range(items)", "items[index + 1]", "items[index - 1]",
        "min(best, -LIMIT)", "max(best, LIMIT)", "if not (items[index] > best and flag)",
        "elif flag", "0 if items else max(best, -LIMIT)", "LIMIT: int = 11", "count('')", "    return\n",
    ],
)  # fmt: skip
def test_mistakes_that_are_made(piece: str) -> None:
    assert any(piece in text for text in changed())


def test_each_is_one_python_module_that_differs() -> None:
    made = changed()
    trees = {ast.dump(ast.parse(text)) for text in [SOLUTION, *made]}
    assert len(trees) == len(made) + 1 > 25


@pytest.mark.parametrize(
    "kept",
    [
        '"""A docstring that is 1 constant."""',
        '"""Another 2."""',
        "pi as number",
        "@static",
        "'list[int]'",
        "return x + 1",
    ],
)
def test_what_stays(kept: str) -> None:
    assert all(kept in text for text in changed())


def test_text_with_expressions_in_it_stays() -> None:
    assert not any("{best - 1}" in text or "{best + 2}" in text for text in changed())


def test_what_was_given_can_change_where_it_is_not_given() -> None:
    made = mutants(FILES, {}, count=1000)
    assert any(b"return x - 1" in one.files["a.py"] for one in made)


def test_as_many_as_asked_for_and_of_many_kinds() -> None:
    made = mutants(FILES, {}, count=len(KINDS))
    assert len({one.name.split(" in ")[0] for one in made}) == len(KINDS)
    assert mutants(FILES, {}, count=0) == []
    assert mutants({"a.py": b"x: int\n"}, {}, count=5) == []


def test_the_same_seed_gives_the_same_ones_in_every_process() -> None:
    code = f"from codeenv.mutants import mutants\nprint([m.name for m in mutants({FILES!r}, {{}}, count=5, seed=7)])"
    command = [sys.executable, "-c", code]
    runs = {subprocess.check_output(command, env={"PYTHONHASHSEED": salt}) for salt in "12"}
    assert len(runs) == 1
    assert changed(5, 1) != changed(5, 2)
