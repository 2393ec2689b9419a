"""The shapes in which sets write tests: an object of inputs and outputs, or a list of cases, of programs or calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from codeenv.graders import StdioGrader
from codeenv.sources.rows import RowFault
from codeenv.sources.sets.calls import function
from codeenv.sources.sets.cases import COMMAND, FILE, Problem, numbered, paired, program, streams
from codeenv.sources.sets.columns import mapping, parsed
from codeenv.task import Task

CALLS = ("functional", "function_call")
PROGRAMS = ("stdin", "stdin_stdout")


LIVECODEBENCH = StdioGrader(
    command=(
        *("python3", "-X", "int_max_str_digits=0", "-c"),
        f"import sys; sys.setrecursionlimit(50000); exec(compile(open('{FILE}', 'rb').read(), '{FILE}', 'exec'))",
    ),
    compare="lines",
    tolerance=0.0,
)
"""How LiveCodeBench's judge runs and compares: its recursion limit for every program, lines, and numbers as exact
decimals where a line has nothing else."""
APPS = StdioGrader(command=COMMAND, compare="rows", tolerance=1e-5)
"""How APPS' judge compares, and those made of it: lines that are not empty, their words, and numbers about as numpy's
`allclose` does. It also takes words and lines in any order, which passes wrong answers: we do not."""


@dataclass(frozen=True)
class Tests:
    """`name`: the function that is called; empty: the cases are a program's. `as_lines`: in LiveCodeBench's form, whose
    judge compares line by line."""

    __test__ = False  # pytest collects classes of this name

    name: str
    pairs: list[tuple[Any, Any]]
    as_lines: bool

    def task(self, problem: Problem, column: str, *, seconds: float | None = None, memory: float | None = None) -> Task:
        """As LiveCodeBench's judge has it, where the tests are in its form, else as APPS' has."""
        if self.name:
            return function(problem, self.name, self.pairs, column=column, loose=not self.as_lines)
        cases = numbered("case", streams(self.pairs, column))
        return program(problem, cases, LIVECODEBENCH if self.as_lines else APPS, seconds=seconds, memory=memory)


def read_tests(value: Any, column: str, *, name: Any = None) -> Tests:
    """:param value: the column, structured or JSON; :param name: the function, where the tests do not name it.
    :raises RowFault: it is in none of the shapes, or has no test."""
    value = parsed(value, column, literal=True)
    if isinstance(value, Mapping):
        table = cast(Mapping[str, Any], value)
        pairs = paired(table.get("inputs"), table.get("outputs"), column)
        return Tests(_named(table.get("fn_name") or name, column), pairs, as_lines=False)
    if not isinstance(value, list):
        raise RowFault(f"{column}: must be a list of cases, or an object of inputs and outputs")
    cases = [mapping(case, column) for case in cast(list[Any], value)]
    if not cases:
        raise RowFault(f"{column}: there is no test")
    kinds = {_kind(case, column) for case in cases}
    if len(kinds) > 1:
        raise RowFault(f"{column}: some cases are a program's and some a function's")
    if any("input" not in case or "output" not in case for case in cases):
        raise RowFault(f"{column}: a case has no input or no output")
    as_lines = "testtype" in cases[0]
    if kinds == {"program"}:
        return Tests("", [(case["input"], case["output"]) for case in cases], as_lines)
    first = cases[0]
    own = first.get("metadata")
    inner = cast(Mapping[str, Any], own).get("func_name") if isinstance(own, Mapping) else None
    found = _named(first.get("fn_name") or inner or name, column)
    if not found:
        raise RowFault(f"{column}: the function that is called has no name")
    return Tests(
        found, [(_arguments(case["input"], column, as_lines), _value(case["output"])) for case in cases], as_lines
    )


def _named(name: Any, column: str) -> str:
    if name and not isinstance(name, str):
        raise RowFault(f"{column}: the function's name must be text")
    return name or ""


def _kind(case: Mapping[str, Any], column: str) -> Literal["program", "call"]:
    kind = case.get("testtype") or case.get("type") or ("function_call" if case.get("fn_name") else "stdin")
    if kind in CALLS:
        return "call"
    if kind in PROGRAMS:
        return "program"
    raise RowFault(f"{column}: a case's type must be one of {', '.join((*PROGRAMS, *CALLS))}")


def _arguments(value: Any, column: str, as_lines: bool) -> list[Any]:
    """A list; or text: of JSON, one argument a line or (unless it is LiveCodeBench's) one list of all."""
    if isinstance(value, str) and not as_lines:
        value = _value(value)
    if isinstance(value, str):
        return [parsed(line, column) for line in value.split("\n") if line.strip()]
    if not isinstance(value, list):
        raise RowFault(f"{column}: a call's arguments must be a list or text")
    return cast(list[Any], value)


def _value(value: Any) -> Any:
    """What is returned; as JSON, if it is text that is."""
    try:
        return parsed(value, "output")
    except RowFault:
        return value
