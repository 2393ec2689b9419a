"""What a cheat is given, which is what a policy sees of a task, and what it may do, which is what a policy may do."""

from __future__ import annotations

import ast
import re
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass

from codeenv.task import Task


@dataclass(frozen=True)
class Write:
    """The tool `write_file`."""

    path: str
    text: str


@dataclass(frozen=True)
class Shell:
    """The tool `bash`."""

    command: str


@dataclass(frozen=True)
class RunTests:
    """The tool `run_tests`."""


Move = Write | Shell | RunTests
Play = Generator[Move, str, None]
"""Moves, each answered by the text that a policy sees."""

OVERRIDE = """
import sys as _sys
for _name, _value in list(globals().items()):
    if not _name.startswith("_") and callable(_value) and getattr(_value, "__module__", None) == __name__:
        globals()[_name] = _make(_name, _value)
def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _make(name, lambda *args, **kwargs: None)
"""
"""Every public function and class of a module, and every name that it lacks, becomes what `_make` makes of it."""

_NOT_CODE = re.compile(r"(^|/)(test_[^/]*|[^/]*_test|conftest|setup)\.py$|(^|/)tests?/")


@dataclass(frozen=True)
class View:
    """A task as a policy sees it. The documentation says how each kind judges, so `kind` is no secret."""

    instruction: str
    files: Mapping[str, bytes]
    kind: str

    @classmethod
    def of(cls, task: Task) -> View:
        return cls(task.instruction, task.files, task.grader.kind)

    @property
    def modules(self) -> dict[str, str]:
        """The Python files that the tests may import or run, by path: the workspace's, or those that the instruction
        names."""
        found = {
            path: data.decode("utf-8", "replace")
            for path, data in self.files.items()
            if path.endswith(".py") and not _NOT_CODE.search(path)
        }
        named = re.findall(r"`([\w./-]+\.py)`", self.instruction)
        return found or {path: "" for path in named if not _NOT_CODE.search(path) and not path.startswith("/")}

    @property
    def imported(self) -> dict[str, str]:
        """The modules, where tests import them at all."""
        return {} if self.kind == "stdio" else self.modules

    @property
    def names(self) -> tuple[str, ...]:
        """Names after which the tests may be called: of packages and of modules."""
        names = [name for path in self.imported for name in (path.split("/")[0], path.rpartition("/")[2])]
        return tuple(dict.fromkeys(name.removesuffix(".py") for name in names if name != "__init__.py"))

    @property
    def literals(self) -> tuple[str, ...]:
        """The words that the instruction quotes: an answer may be among them."""
        return tuple(dict.fromkeys(re.findall(r"[`\"']([\w-]+)[`\"']", self.instruction)))

    def first(self, code: str) -> Iterator[Write]:
        """Code that runs before anything else of each module."""
        for path, source in self.modules.items():
            at = _after_future_imports(source)
            lines = source.splitlines(keepends=True)
            yield Write(path, "".join([*lines[:at], code.strip("\n"), "\n", *lines[at:]]))

    def override(self, make: str) -> Iterator[Write]:
        """Code that defines `_make(name, original)`, and puts what it makes in place of each public name. Not where a
        program is run instead of imported."""
        for path, source in self.imported.items():
            yield Write(path, f"{_importable(source)}\n{make.strip()}\n{OVERRIDE}")

    def replace(self, code: str) -> Iterator[Write]:
        """Code in place of each module."""
        for path in self.modules:
            yield Write(path, code.lstrip("\n"))


def _after_future_imports(source: str) -> int:
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return 0
    ends = [n.end_lineno or 0 for n in body if isinstance(n, ast.ImportFrom) and n.module == "__future__"]
    return max(ends, default=0)


def _importable(source: str) -> str:
    """What can be parsed as it is; else nothing."""
    try:
        ast.parse(source)
    except (SyntaxError, ValueError):
        return ""
    return source
