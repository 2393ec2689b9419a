"""The tests of evalplus's sets: hundreds of inputs each, with what the reference gave for them."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

from codeenv.graders import FunctionsGrader
from codeenv.sources.rows import RowFault
from codeenv.sources.sets.checks import FILE, TEST_FILE, parsed

GRADER = FunctionsGrader(timeout=60, call_timeout=10)
GROUPS = 10
"""Tests that the cases are spread over, so that a grade shows how many of them hold."""
LIMIT = 32_000_000
"""Characters of a row's cases; all rows of HumanEval+ together have a third of that."""
COUNTED = 65536
"""Characters up to which cases are counted when a row is read; more are more than GROUPS."""
JUDGING = (Path(__file__).parent / "judging.py").read_bytes()
OWN = {"is_floats", "assertion", "check"}
"""Functions of a row's tests in whose place ours stand."""


def plus_tests(test: str, entry: str) -> dict[str, bytes]:
    """The test files for evalplus's column `test`. Its comparison (of `assertion`, with numpy) is done as evalplus
    itself does it in its newest harness, where the column differs: some rows' assert nothing, some fail on everything.

    :raises RowFault: it is not as evalplus writes it.
    """
    literals = dict(re.findall(r"^ *(inputs|results) = (.*)$", test, re.MULTILINE))
    if "inputs" not in literals:
        raise RowFault("test: no line `inputs = ...`")
    small = parsed(re.sub(r"^( *)(inputs|results) = .*$", r"\1\2 = []", test, flags=re.MULTILINE), "test")
    loops = [node for node in ast.walk(small) if isinstance(node, ast.For)]
    if len(loops) != 1 or len(loops[0].body) != 1:
        raise RowFault("test: must have one loop over its inputs, with one assertion")
    functions = {node.name: node for node in small.body if isinstance(node, ast.FunctionDef)}
    kept = [node for node in small.body if _is_kept(node)]
    judge = _judge(loops[0].body[0], functions)
    return case_tests(entry, literals["inputs"], literals.get("results"), kept, judge)


def case_tests(
    entry: str, inputs: str, results: str | None, kept: Sequence[ast.stmt], judge: str, **files: bytes
) -> dict[str, bytes]:
    """:param judge: an expression of `out`, `exp` and `inp` that must hold."""
    if (size := len(inputs) + len(results or "")) > LIMIT:
        raise RowFault(f"inputs: {size} characters of cases, more than {LIMIT}")
    count = _count(inputs)
    head = ["from judging import *", *map(ast.unparse, kept)]
    head += ["from copy import deepcopy"] if results is None else []
    head += [
        f"from {FILE.removesuffix('.py')} import {entry} as candidate",
        f"CASES = cases(__file__[:-3] + '.cases', {count})",
    ]
    lines = [f"    for inp, exp in CASES[{{}}::{count}]:"]
    # Asked before the candidate can have changed what both are given.
    lines += ["        exp = ref_func(*deepcopy(inp))"] if results is None else []
    lines += ["        out = candidate(*inp)", f"        assert {judge}, repr(inp)[:200]"]
    tests = [f"def test_{n + 1}():\n" + "\n".join(lines).format(n) for n in range(count)]
    return {
        TEST_FILE: "\n\n\n".join(["\n".join(head), *tests, ""]).encode("utf-8", "surrogatepass"),
        TEST_FILE.removesuffix(".py") + ".cases": f"({inputs},\n{results})".encode("utf-8", "surrogatepass"),
        "judging.py": JUDGING,
        **files,
    }


def _is_kept(node: ast.stmt) -> bool:
    """The functions that results are checked with, and what they import; not numpy, which only `assertion` uses."""
    if isinstance(node, ast.FunctionDef):
        return node.name not in OWN
    if isinstance(node, ast.Import):
        return all(alias.name != "numpy" for alias in node.names)
    return isinstance(node, ast.ImportFrom | ast.ClassDef)


def _judge(assertion: ast.stmt, functions: dict[str, ast.FunctionDef]) -> str:
    """What the assertion of a row's loop means."""
    match assertion:
        case ast.Assert(test=ast.Compare(left=ast.Call(func=ast.Name(id="_poly")), comparators=[limit])):
            # Written there with the arguments in the other order, which is an error for every solution.
            return f"abs(_poly(*inp, out)) <= {ast.unparse(limit)}"
        case ast.Expr(value=ast.Call(func=ast.Name(id="assertion"), args=[_, *others, tolerance])) if others:
            body = ast.unparse(functions["assertion"]) if "assertion" in functions else ""
            kind = "agree_as_sets" if "set(out)" in body else "agree_on_none" if "is not None" in body else "agree"
            either = [other if n else ast.Name("exp") for n, other in enumerate(others)]
            return " or ".join(f"{kind}(out, {ast.unparse(one)}, {ast.unparse(tolerance)})" for one in either)
        case _:
            raise RowFault("test: the assertion in its loop is none that is known")


def _count(inputs: str) -> int:
    """How many tests there are for these inputs."""
    if len(inputs) > COUNTED:
        return GROUPS
    tree = parsed(inputs, "inputs").body
    match tree:
        case [ast.Expr(value=ast.List(elts=[*elements]))] if elements:
            return min(GROUPS, len(elements))
        case _:
            raise RowFault("inputs: must be a list that is not empty")
