"""honepad: a class built up over four levels of specification; the tests are traces of calls with what each returns.

A problem is one task, with all its levels: the set has one reference for the whole problem and none for a level, and
its own runner plays the traces of a level and of all before it, so that a task for each level would be the same work
up to four times. Whoever wants the levels apart finds them in the tests' names.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from codeenv.graders import FunctionsGrader
from codeenv.sources.rows import PublicSet, Row, RowFault, identifier, text_of
from codeenv.syntax import parse
from codeenv.task import Answer, Task

FILE = "solution.py"
TEST_FILE = "test_traces.py"
REPLAY = '''\
"""Traces of calls: on a new object each call returns what is expected."""

from solution import {name}


def same(actual, expected):
    """As honepad compares: true, false and null are themselves and no numbers."""
    if isinstance(expected, list):
        return type(actual) is list and len(actual) == len(expected) and all(map(same, actual, expected))
    if isinstance(expected, dict):
        return type(actual) is dict and actual.keys() == expected.keys() and all(
            same(actual[key], expected[key]) for key in expected
        )
    if expected is None or isinstance(expected, bool):
        return actual is expected
    return type(actual) in (int, float, str) and actual == expected


def replay(calls):
    played = {name}()
    for number, (method, arguments, expected) in enumerate(calls, 1):
        assert same(getattr(played, method)(*arguments), expected), f"call {{number}}, {{method}}: not as expected"
'''


def to_task(row: Row) -> Task:
    """A row is one problem: `problem`, `spec` (a list, a text for each level), `cases` and `hidden` (a list of traces,
    each `id`, `level` and `calls` of `m`, `a`, `e`), `stub`, `solution`."""
    problem, stub = text_of(row, "problem"), text_of(row, "stub")
    spec = row.get("spec")
    if not isinstance(spec, Sequence) or isinstance(spec, str) or not all(isinstance(text, str) for text in spec):  # pyright: ignore[reportUnknownVariableType]
        raise RowFault("spec: must be a list of texts, one for each level")
    name = _class_of(stub)
    shown, hidden = _traces(row, "cases"), _traces(row, "hidden")
    levels = sorted({trace["level"] for trace in shown})
    public = {
        f"cases/level{level}.json": (json.dumps([t for t in shown if t["level"] == level], indent=1) + "\n").encode()
        for level in levels
    }
    where = (
        f"Implement the class `{name}` in `{FILE}`, for all levels. JSON's true, false and null are True, False and "
        "None. In `cases/` are traces that the class must satisfy: `m` is a method, `a` its arguments, `e` what it "
        "returns; each trace begins with a new object. There are others that you cannot see."
    )
    return Task(
        id=identifier(f"honepad/{problem}"),
        instruction="\n\n".join([where, *(text.strip() for text in cast(Sequence[str], spec))]) + "\n",
        files={FILE: stub.encode(), **public},
        tests={TEST_FILE: _tests(name, [*shown, *hidden])},
        solution={FILE: text_of(row, "solution").encode()},
        family="function",
        answer=Answer(path=FILE, entry_point=name),
        grader=FunctionsGrader(),
        metadata={"source": "honepad", "levels": len(levels), "traces": len(shown) + len(hidden)},
    )


def _class_of(stub: str) -> str:
    try:
        names = [node.name for node in parse(stub).body if isinstance(node, ast.ClassDef)]
    except (SyntaxError, ValueError) as error:
        raise RowFault("stub: is no Python") from error
    if len(names) != 1:
        raise RowFault(f"stub: must define one class, not {len(names)}")
    return names[0]


def _traces(row: Row, column: str) -> list[dict[str, Any]]:
    traces = row.get(column)
    if not isinstance(traces, list):
        raise RowFault(f"{column}: must be a list of traces")
    for number, trace in enumerate(cast(list[Any], traces)):
        match trace:
            case {"id": str(), "level": int(), "calls": [_, *_] as calls}:
                if not all(_is_call(call) for call in cast(list[Any], calls)):
                    raise RowFault(f"{column}[{number}].calls: each must have m (a name), a (a list) and e")
            case _:
                raise RowFault(f"{column}[{number}]: must have id, level and at least one of calls")
    return cast(list[dict[str, Any]], traces)


def _is_call(call: Any) -> bool:
    match call:
        case {"m": str(method), "a": list(), "e": _}:  # pyright: ignore[reportUnknownVariableType]
            return method.isidentifier()
        case _:
            return False


def _tests(name: str, traces: Sequence[dict[str, Any]]) -> bytes:
    parts = [REPLAY.format(name=name)]
    seen: set[str] = set()
    for trace in traces:
        test = f"test_{re.sub(r'[^0-9A-Za-z_]+', '_', trace['id'])}"
        if test in seen:
            raise RowFault(f"cases, hidden: two traces have one name, {test}")
        seen.add(test)
        calls = [(call["m"], call["a"], call["e"]) for call in trace["calls"]]
        parts.append(f"def {test}():\n    replay({calls!r})\n")
    return "\n\n".join(parts).encode()


def packaged() -> Iterable[Row] | None:
    """The problems that the package `honepad` brings, from its data files; none of its code is imported."""
    found = find_spec("honepad")
    if found is None or not found.submodule_search_locations:
        return None
    data = Path(found.submodule_search_locations[0]) / "_data"
    return [_row(folder, data / "langs/python3/problems") for folder in sorted((data / "problems").iterdir())]


def _row(folder: Path, python: Path) -> Row:
    def traces(kind: str) -> list[Any]:
        files = sorted((folder / kind).glob("level*.json"))
        return [trace for file in files for trace in json.loads(file.read_text(encoding="utf-8"))]

    return {
        "problem": folder.name,
        "spec": [file.read_text(encoding="utf-8") for file in sorted((folder / "spec").glob("level*.md"))],
        "cases": traces("cases"),
        "hidden": traces("hidden"),
        "stub": (python / folder.name / "stub.py").read_text(encoding="utf-8"),
        "solution": (python / folder.name / "solution.py").read_text(encoding="utf-8"),
    }


SETS = (
    PublicSet(
        name="honepad",
        title="honepad",
        licence="Apache-2.0",
        to_task=to_task,
        package=packaged,
    ),
)
