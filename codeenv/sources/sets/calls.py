"""Contest problems that ask for a function or a class's method: the calls and what they must return, as a test file of
the `functions` grader."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Sequence
from keyword import iskeyword
from typing import Any, cast

from codeenv.graders import FunctionsGrader
from codeenv.sources.rows import RowFault
from codeenv.sources.sets.cases import FILE, Problem
from codeenv.sources.sets.columns import INT_DIGITS, clean, first_python
from codeenv.syntax import parse
from codeenv.task import Answer, Task

STARS = (
    "string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics", "itertools",
    "functools", "operator", "io", "sys", "json", "builtins", "typing",
)  # fmt: skip
"""What the judges have imported before a solution, all names of each and in this order. (Some also have numpy.)"""
PRELUDE = "".join(f"from {name} import *\n" for name in STARS) + (
    "import bisect, collections, copy, datetime, fractions, functools, heapq, io, itertools, json, math, operator\n"
    "import random, re, statistics, string, sys, time\n"
    "\nsys.setrecursionlimit(50000)\nsys.set_int_max_str_digits(0)\n\n\n"
)
NULL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
LONG = re.compile(rf'"\\u0000-?\d{{{INT_DIGITS + 1},}}"')
"""How `parsed` leaves a number that is no int, in JSON."""
UNFINISHED = "raise NotImplementedError\n"
FEW_SECONDS = 60.0

TEST = '''\
"""Calls {name} with the arguments of each case."""

import json
import os
import sys

import solution

sys.set_int_max_str_digits(0)
with open(os.path.join(os.path.dirname(__file__), "cases.json"), encoding="utf-8") as file:
    CASES = json.load(file)


def with_long_numbers(value):
    if isinstance(value, list):
        return [with_long_numbers(item) for item in value]
    if isinstance(value, dict):
        return {{key: with_long_numbers(item) for key, item in value.items()}}
    return int(value[1:]) if isinstance(value, str) and value.startswith("\\0") else value


def with_int_keys(value):
    try:
        return {{int(key): item for key, item in value.items()}} if {loose} and isinstance(value, dict) else value
    except ValueError:
        return value


def as_lists(value, depth):
    if depth and isinstance(value, (list, tuple)):
        return [as_lists(item, depth - 1) for item in value]
    return value


def check(number):
    arguments, accepted = with_long_numbers(CASES[number])
    arguments = [with_int_keys(argument) for argument in arguments]
    owner = solution.Solution() if hasattr(solution, "Solution") else solution
    got = as_lists(owner.{name}(*arguments), {levels})
    for value in accepted:
        if got == with_int_keys(value):
            return
    raise AssertionError(f"returned {{str(got)[:300]}}")
'''


def function(problem: Problem, name: Any, pairs: Sequence[tuple[Any, Any]], *, column: str, loose: bool) -> Task:
    """A task whose `solution.py` has the function `name`, or a class `Solution` with that method.

    :param pairs: the arguments, a list, and the value to return. A tuple counts as a list, which is all that JSON has.
    :param loose: as APPS' judge has it, because of how its tests are written: tuples in a list count as lists too, an
        output that is a list of one value may be returned as that value alone, keys are ints where they can be.
    :raises RowFault: the name is none, or arguments are no list.
    """
    if not isinstance(name, str) or not name.isidentifier() or iskeyword(name):
        raise RowFault(f"{column}: the function's name is no identifier")
    if any(not isinstance(arguments, list) for arguments, _ in pairs):
        raise RowFault(f"{column}: a function's arguments must be a list")
    if not pairs:
        raise RowFault(f"{column}: there is no test")
    head = PRELUDE + problem.starter
    entry = "Solution" if "class Solution" in problem.starter else name
    what = f"the class `Solution` with the method `{name}`" if entry == "Solution" else f"the function `{name}`"
    text = [
        problem.question.strip(),
        f"Write {what} in `{FILE}`{', as it is begun there' * bool(problem.starter.strip())}.",
    ]
    if problem.examples:
        text.append(
            "`examples/1.in` has a call's arguments, one a line, and `examples/1.out` what it returns, and so on."
        )
    reference = first_python(problem.solutions)
    data = json.dumps([[arguments, _accepted(want) if loose else [want]] for arguments, want in pairs])
    if NULL.search(LONG.sub("", data)):
        raise RowFault(f"{column}: has null bytes")
    tests = TEST.format(name=name, loose=loose, levels=2 if loose else 1) + "".join(
        f"\n\ndef test_{number + 1:0{len(str(len(pairs)))}}():\n    check({number})\n" for number in range(len(pairs))
    )
    return Task(
        id=problem.id,
        instruction="\n\n".join(text),
        files={**problem.shown(), FILE: clean(begun(head), "starter_code")},
        tests={
            "test_solution.py": tests.encode(),
            "cases.json": data.encode(),
        },
        solution=None if reference is None else {FILE: clean(PRELUDE + reference, "solutions")},
        family="function",
        answer=Answer(path=FILE, entry_point=entry, head=head),
        grader=FunctionsGrader(timeout=FEW_SECONDS + len(pairs) / 10),
        metadata=problem.described | {"entry_point": name},
    )


def _accepted(want: Any) -> list[Any]:
    return [want, *cast(list[Any], want)] if isinstance(want, list) and len(cast(list[Any], want)) == 1 else [want]


def begun(code: str) -> str:
    """Code that ends in the middle of a function, made whole so that it can be imported."""
    lines = code.rstrip().split("\n")
    indent = lines[-1][: len(lines[-1]) - len(lines[-1].lstrip())] + ("\t" if "\t" in code else "    ")
    for whole in (code, f"{code.rstrip()}\n{indent}{UNFINISHED}"):
        try:
            with warnings.catch_warnings(action="ignore"):
                parse(whole)
        except (SyntaxError, ValueError, MemoryError):
            continue
        return whole
    return code
