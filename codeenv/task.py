"""The task port: what one task is. Sources make tasks; everything else reads them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from codeenv.graders import Grader, PytestGrader, Strict
from codeenv.sandbox.archive import clean_path

ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$"


def _path(path: str) -> str:
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{path!r} is not valid Unicode") from error
    return clean_path(path)


def _no_file_below_a_file(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    for path in files:
        parents = (path[:at] for at, char in enumerate(path) if char == "/")
        if (parent := next((p for p in parents if p in files), None)) is not None:
            raise ValueError(f"{path!r} lies below {parent!r}, which is a file")
    return files


Files = Annotated[Mapping[Annotated[str, AfterValidator(_path)], bytes], AfterValidator(_no_file_below_a_file)]


class TaskError(ValueError):
    """One or more tasks are malformed; the message has a line for each fault: file, field, what is allowed."""

    def __init__(self, faults: list[str]) -> None:
        self.faults = faults
        count = len(faults)
        super().__init__(
            "\n".join([f"{count} fault{'s' * (count > 1)} in tasks:", *faults]) if count > 1 else faults[0]
        )


class Limits(Strict):
    """Ceilings of a task's boxes; what is absent comes from the environment's settings. MiB, seconds."""

    memory_mb: int | None = Field(default=None, ge=64)
    disk_mb: int | None = Field(default=None, ge=1)
    processes: int | None = Field(default=None, ge=8)
    cpus: float | None = Field(default=None, gt=0)
    command_timeout: float | None = Field(default=None, gt=0)


class Answer(Strict):
    """Where a single-turn answer, one block of code, goes: what a policy that has no tools is asked for."""

    path: str
    """The file of the workspace that it becomes."""
    entry_point: str = ""
    """The function or class that it has to define; empty: it is a whole program."""
    head: str = ""
    """Code that an answer may leave out: the imports and the signature that the policy was shown. Put in front of an
    answer that is a mere body, or that lacks the imports."""


class Task(Strict):
    """One task. Frozen. `tests`, `solution` and `wrong` are hidden: they never enter a prompt, a row, a log or a
    result, so they are left out of the repr, and errors quote no values."""

    id: str = Field(pattern=ID_PATTERN, max_length=200)
    instruction: str = Field(min_length=1)
    files: Files = Field(default_factory=dict)
    """The workspace that the policy starts with: path -> content."""
    executable: frozenset[str] = frozenset()
    """Paths of `files`, `tests` or `solution` that have the execute bit."""
    tests: Files = Field(default_factory=dict, repr=False)
    solution: Files | None = Field(default=None, repr=False)
    """Laid over `files`, passes the tests."""
    wrong: Mapping[str, Files] = Field(default_factory=dict, repr=False)
    """By name, each laid over `files`: plausible, and failing."""
    protected: tuple[str, ...] = ()
    """Globs of `files` that are put back as they were before grading."""
    family: Literal["project", "function", "program"] = "project"
    """What is asked for, which is how the policy is told: work on files, one function or class, a program that reads
    standard input."""
    answer: Answer | None = None
    """None: the task cannot be solved by one block of code."""
    grader: Grader = PytestGrader()
    limits: Limits = Limits()
    python: str | None = None
    image: str | None = None
    workdir: str | None = None
    """Where in the boxes the workspace is, absolute: for tasks whose texts name it. None: what the environment says."""
    packages: tuple[str, ...] = ()
    """Python packages (PEP 508) that the boxes must have."""
    metadata: Mapping[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _has_tests(self) -> Task:
        if not self.tests:
            raise ValueError("tests: a task needs hidden tests")
        if self.answer is not None:
            _path(self.answer.path)
        if fault := self.grader.fault(self.tests):
            raise ValueError(f"tests: {fault}")
        return self

    @property
    def digest(self) -> str:
        """SHA-256 over everything that the task is, hexadecimal: equal digests, equal tasks."""
        plain = self.model_dump(mode="python")
        return hashlib.sha256(json.dumps(plain, sort_keys=True, default=_stable).encode()).hexdigest()

    def _repr_html_(self) -> str:
        from codeenv.html import styled

        return styled("task", task=self)


def _stable(value: object) -> object:
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    if isinstance(value, frozenset | set):
        return sorted(map(str, value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return str(value)
