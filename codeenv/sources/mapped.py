"""Rows of any schema, by a mapping of their columns that a user gives."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from codeenv.graders import Grader
from codeenv.sources.directory import describe
from codeenv.sources.jsonl import files_of
from codeenv.sources.rows import Row, RowFault, identifier, text_of
from codeenv.syntax import parse
from codeenv.task import Answer, Task

FILE = "solution.py"
TEST_FILE = "test_solution.py"

KINDS = {
    "asserts": "statements, a list or one text, that call `entry_point`",
    "check": "code that defines `check(candidate)`, which `entry_point` is given to",
    "functions": "a file of pytest or unittest tests; they and the solution in boxes of their own",
    "pytest": "a file of pytest tests in one process with the solution",
    "stdio": "inputs and expected outputs of a program",
}
PARTS = {
    "instruction": "what the policy reads: a column, or text with `{column}` in it",
    "tests": "the hidden tests, as `kind` says; for stdio a list of {input, output}, or {inputs: [], outputs: []}",
    "inputs": "for stdio, instead of tests: a list of texts",
    "outputs": "with inputs: what is expected of each",
    "solution": "the reference: the text of solution.py, or an object of path -> text; may be absent",
    "entry_point": "the function or class that the tests call",
    "id": "by default made of the instruction",
    "head": "what solution.py begins with: imports, a signature",
    "files": "what the policy starts with: an object of path -> text",
}
"""What of a task a column may hold. A name that begins with `metadata.` is one of the metadata."""
META = "metadata."


@dataclass(frozen=True)
class Mapped:
    """Makes tasks of rows."""

    columns: Mapping[str, str]
    kind: str
    grader: Grader

    def __call__(self, row: Row) -> Task:
        """:raises RowFault: a column is missing or malformed."""
        instruction = self._instruction(row)
        entry = self._optional(row, "entry_point")
        if not entry.isidentifier() and (entry or self.kind in ("asserts", "check")):
            raise RowFault(f"{self.columns['entry_point']}: must be a Python name")
        head = self._optional(row, "head")
        files = self._files(row, "files")
        if head:
            files.setdefault(FILE, head.encode("utf-8", "surrogatepass"))
        whole_project = self.kind == "pytest" or any(path != FILE for path in files)
        program = self.kind == "stdio"
        return Task(
            id=self._id(row, instruction),
            instruction=instruction,
            files=files,
            tests=self._tests(row, entry),
            solution=self._files(row, "solution") or None,
            family="program" if program else "project" if whole_project else "function",
            answer=None if whole_project and not program else Answer(path=FILE, entry_point=entry, head=head),
            grader=self.grader,
            metadata={key.removeprefix(META): self._value(row, key) for key in self.columns if key.startswith(META)},
        )

    def _value(self, row: Row, part: str) -> Any:
        """What the row holds there. `a.b` is `b` in `a`, where there is no column of that name."""
        name = self.columns[part]
        if name in row:
            return row[name]
        value: Any = row
        for step in name.split("."):
            value = _parsed(value)
            if not isinstance(value, Mapping) or step not in value:
                raise RowFault(f"{part}: there is no column {name!r}; there are {', '.join(map(str, row))}")
            value = cast(Mapping[str, Any], value)[step]
        return value

    def _text(self, row: Row, part: str) -> str:
        name = self.columns[part]
        return text_of({name: self._value(row, part)}, name)

    def _optional(self, row: Row, part: str) -> str:
        """Empty where there is none."""
        value = self._value(row, part) if part in self.columns else None
        if value is None or isinstance(value, str):
            return value or ""
        raise RowFault(f"{self.columns[part]}: must be text, not {type(value).__name__}")

    def _instruction(self, row: Row) -> str:
        template = self.columns["instruction"]
        names = re.findall(r"\{([^{}]+)\}", template)
        if not names or template in row:
            return self._text(row, "instruction")
        inner = Mapped({name: name for name in names}, "", self.grader)
        texts = {name: str(inner._value(row, name) or "") for name in names}
        if not any(text.strip() for text in texts.values()):
            raise RowFault(f"{', '.join(names)}: is empty")
        return re.sub(r"\{([^{}]+)\}", lambda found: texts[found[1]], template).strip()

    def _id(self, row: Row, instruction: str) -> str:
        if "id" not in self.columns:
            return "row-" + hashlib.blake2b(instruction.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
        value = self._value(row, "id")
        if found := identifier("" if value is None else value):
            return found
        raise RowFault(f"{self.columns['id']}: is empty")

    def _files(self, row: Row, part: str) -> dict[str, bytes]:
        value = self._value(row, part) if part in self.columns else None
        if value is None:
            return {}
        found = _parsed(value) if part == "files" or not isinstance(value, str) else value
        if isinstance(found, str):
            return {FILE: found.encode("utf-8", "surrogatepass")}
        if isinstance(found, Mapping):  # Arrow fills a mapping up with None
            found = {path: content for path, content in cast(Mapping[str, Any], found).items() if content is not None}
        return files_of(found, self.columns[part])

    # --- tests ------------------------------------------------------------------------------------------------

    def _tests(self, row: Row, entry: str) -> dict[str, bytes]:
        if self.kind == "stdio":
            return cases_of(*self._pairs(row))
        if self.kind == "asserts":
            return {TEST_FILE: _asserts(self._value(row, "tests"), entry, self.columns["tests"]).encode()}
        text = self._text(row, "tests")
        if self.kind == "check":
            text = f"from solution import {entry}\n\n{text}\n\ndef test_{entry}():\n    check({entry})\n"
        return {TEST_FILE: text.encode("utf-8", "surrogatepass")}

    def _pairs(self, row: Row) -> tuple[Sequence[Any], Sequence[Any]]:
        if "tests" in self.columns:
            name, value = self.columns["tests"], _parsed(self._value(row, "tests"))
            if isinstance(value, Mapping):
                both = cast(Mapping[str, Any], value)
                found = [both.get(key) or both.get(f"{key}s") for key in ("input", "output")]
            elif isinstance(value, list):
                items = [_parsed(item) for item in cast(list[Any], value)]
                if not all(isinstance(item, Mapping) and "input" in item and "output" in item for item in items):
                    raise RowFault(f"{name}: each must be an object with input and output")
                found = [[item[key] for item in items] for key in ("input", "output")]
            else:
                raise RowFault(f"{name}: must be a list of {{input, output}}, or {{inputs: [...], outputs: [...]}}")
        else:
            name = f"{self.columns['inputs']} and {self.columns['outputs']}"
            found = [_parsed(self._value(row, part)) for part in ("inputs", "outputs")]
        inputs, outputs = found
        if not (isinstance(inputs, list) and isinstance(outputs, list)):
            raise RowFault(f"{name}: must be lists of inputs and outputs")
        pairs = cast(list[Any], inputs), cast(list[Any], outputs)
        if not pairs[0] or len(pairs[0]) != len(pairs[1]):
            raise RowFault(f"{name}: {len(pairs[0])} inputs and {len(pairs[1])} outputs")
        return pairs


def mapping(columns: Mapping[str, str], kind: str, grader: Mapping[str, Any]) -> Callable[[Row], Task]:
    """What makes a task of a row.

    :param columns: what of a task (`PARTS`) is in which column; `a.b` is `b` in the object, or JSON text, in `a`.
    :param kind: what the tests are (`KINDS`). :param grader: the grader's settings, but for its kind.
    :raises ValueError: it cannot be: the message says what is missing or valid.
    """
    if not columns:
        raise ValueError(f"columns: say what is in which column: {_listed(PARTS)}, {META}NAME")
    if unknown := [key for key in columns if key not in PARTS and not key.startswith(META)]:
        raise ValueError(f"columns: unknown: {', '.join(unknown)}; valid: {', '.join(PARTS)}, {META}NAME")
    if kind not in KINDS:
        raise ValueError(f"kind: must say what the tests are: {_listed(KINDS)}" + (f"; not {kind!r}" if kind else ""))
    needed = ["instruction"] + ["entry_point"] * (kind in ("asserts", "check"))
    if not (kind == "stdio" and "inputs" in columns and "outputs" in columns):
        needed.append("tests")
    if missing := [part for part in needed if part not in columns]:
        raise ValueError(f"columns: kind {kind!r} needs {', '.join(missing)}: {PARTS[missing[0]]}")
    defaults: dict[str, Any] = {"kind": kind if kind in ("pytest", "stdio") else "functions"}
    if kind == "stdio":
        defaults["command"] = ("python3", FILE)
    try:
        made: Any = TypeAdapter(Grader).validate_python({**defaults, **grader})
    except ValidationError as error:
        raise ValueError("\n".join(describe(error, "grader"))) from error
    return Mapped(columns, kind, made)


def cases_of(inputs: Sequence[Any], outputs: Sequence[Any]) -> dict[str, bytes]:
    """Files of the stdio grader. A case whose input or output is a list is that many lines."""
    width = len(str(len(inputs)))
    found: dict[str, bytes] = {}
    for number, both in enumerate(zip(inputs, outputs, strict=True), 1):
        for value, ending in zip(both, ("in", "out"), strict=True):
            lines = cast(list[Any], value) if isinstance(value, list) else [value]
            text = "\n".join(map(str, lines))
            found[f"{number:0{width}}.{ending}"] = text.encode("utf-8", "surrogatepass")
    return found


def _asserts(value: object, entry: str, column: str) -> str:
    """A test function for each statement. Parsed and written anew: a text of several lines keeps what is in it."""
    value = _parsed(value)
    statements = [value] if isinstance(value, str) else value
    if not isinstance(statements, list) or not statements:
        raise RowFault(f"{column}: must be statements, a list of texts or one text")
    tests = [f"from solution import {entry}\n"]
    for number, statement in enumerate(cast(list[Any], statements), 1):
        if not isinstance(statement, str):
            raise RowFault(f"{column}: must be texts, not {type(statement).__name__}")
        try:
            body = parse(statement).body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise RowFault(f"{column}: statement {number} does not parse: {type(error).__name__}") from error
        if not body:
            raise RowFault(f"{column}: statement {number} is empty")
        test = parse(f"def test_{number}(): pass").body[0]
        assert isinstance(test, ast.FunctionDef)
        test.body = body
        tests.append(f"{ast.unparse(test)}\n")
    return "\n\n".join(tests)


def _parsed(value: object) -> Any:
    """JSON text as what it stands for."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _listed(texts: Mapping[str, str]) -> str:
    return "; ".join(f"{name} ({text})" for name, text in texts.items())
