"""The settings of the grader kinds, as a task states them. What a kind does with them is `codeenv/grading/`."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator

WRITABLE = ("/workspace/", "/tmp/", "/dev/", "/proc/")
"""Where a box's own processes can write."""


def digest_of(tests: Mapping[str, bytes]) -> str:
    """SHA-256 over the paths and contents of hidden tests, hexadecimal."""
    whole = hashlib.sha256()
    for path, data in sorted(tests.items()):
        whole.update(f"{path}\0{hashlib.sha256(data).hexdigest()}\n".encode())
    return whole.hexdigest()


class Strict(BaseModel):
    """Frozen, refuses what it does not know, and quotes no values in errors: they may be hidden."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class GraderSettings(Strict):
    """What every kind has. A subclass adds `kind`, a literal, and is listed in `Grader`."""

    needs: ClassVar[tuple[str, ...]] = ()
    """Python packages that the task's boxes must have for it."""

    timeout: float = Field(default=60.0, gt=0)
    """Seconds for the whole run of the tests."""
    retries: int | None = Field(default=None, ge=0, le=10)
    """Times that a failed grade is made again, for tests known to be flaky; None: what the environment says."""

    def fault(self, tests: Mapping[str, bytes]) -> str:
        """What is wrong with these hidden tests for this kind; empty when nothing is."""
        raise NotImplementedError


class PytestGrader(GraderSettings):
    """pytest runs the hidden tests in a fresh box. A pass needs exit code 0 and a record of every expected test."""

    needs: ClassVar[tuple[str, ...]] = ("pytest",)

    kind: Literal["pytest"] = "pytest"
    expected: tuple[str, ...] = ()
    """Tests (`test_x.py::test_name`, with or without parameters) that must have run; empty: all test functions that the
    test files define. `codeenv validate --record` writes them down from a run of the reference."""
    expected_of: str = ""
    """`digest_of` of the hidden tests that `expected` was written down for; empty: not checked."""

    def fault(self, tests: Mapping[str, bytes]) -> str:
        if self.expected_of and self.expected_of != digest_of(tests):
            return "the expected ids were recorded for other tests; `codeenv validate --record` writes them anew"
        if any(re.search(r"(^|/)(test_[^/]*|[^/]*_test)\.py$", name) for name in tests):
            return ""
        return f"the {self.kind} grader needs at least one test_*.py"


class StdioGrader(GraderSettings):
    """A program per case: `tests/NAME.in` on stdin, stdout compared with `tests/NAME.out` outside the box."""

    kind: Literal["stdio"] = "stdio"
    command: tuple[str, ...] = Field(min_length=1)
    compare: Literal["tokens", "exact", "lines", "rows", "numbers"] = "tokens"
    """tokens: split at white space. exact: line by line, trailing blanks and trailing empty lines apart. lines: line by
    line, blanks at either end and outer empty lines apart; lines of nothing but numbers are compared as numbers.
    numbers: as tokens, but numbers other than two integers may differ by `tolerance`. rows: line by line, empty lines
    apart, each as by numbers."""
    tolerance: float = Field(default=1e-6, ge=0, lt=1)
    """For numbers and rows: the difference, absolute or as a part of the expected number, that still passes."""
    relative: bool = True
    """Whether `tolerance` is also a part of the expected number; if not, it is absolute alone."""
    ignore_case: bool = False
    """Whether `YES` is `Yes`: of ASCII letters."""
    case_timeout: float = Field(default=10.0, gt=0)
    """Seconds for each case."""
    case_memory_mb: int | None = Field(default=None, ge=64)
    """MiB of memory for each process of a case; None: no ceiling but that of the box for all of its processes."""
    max_timeouts: int | None = Field(default=None, ge=1)
    """Cases that may run out of their time before the others are not run: a solution that loops would take as long
    for each. None: all are run."""
    timeout: float = Field(default=120.0, gt=0)
    """Seconds for all cases together."""

    def fault(self, tests: Mapping[str, bytes]) -> str:
        inputs = {name[:-3] for name in tests if name.endswith(".in")}
        outputs = {name[:-4] for name in tests if name.endswith(".out")}
        if inputs and inputs == outputs:
            return ""
        odd = ", ".join(sorted(inputs ^ outputs)) or "there is none"
        return f"the stdio grader needs pairs NAME.in and NAME.out ({odd})"


class CommandGrader(GraderSettings):
    """A command in a fresh box judges the workspace by its exit code. It runs in a directory that holds the task's
    tests; `$WORKSPACE` names what it judges."""

    kind: Literal["command"] = "command"
    command: tuple[str, ...] = Field(min_length=1)
    """An argv whose first word is an absolute path of the system's (`/bin/bash`, `/usr/bin/env`); other words may be
    relative to the tests."""
    receipt: bool = False
    """Whether a pass also needs, as the last line of its output, the word that the command finds on its standard
    input: evidence that it came to its end, for commands that load what they judge into their own process."""

    @field_validator("command")
    @classmethod
    def _begins_with_the_systems(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        first = posixpath.normpath(value[0])
        if not first.startswith("/") or first.startswith(WRITABLE):
            raise ValueError(
                f"must begin with an absolute path of the system's, like /bin/bash or /usr/bin/env, not {value[0]!r}: "
                "the policy could put its own in that place"
            )
        return value

    def fault(self, tests: Mapping[str, bytes]) -> str:
        return ""


class FunctionsGrader(PytestGrader):
    """The hidden tests run in one box, the solution in another; only plain values cross. The tests import the
    workspace's modules as they are used to; pytest runs them where they need it."""

    kind: Literal["functions"] = "functions"  # pyright: ignore[reportIncompatibleVariableOverride]
    call_timeout: float = Field(default=10.0, gt=0)
    """Seconds that a single call of a test's may take."""


Grader = Annotated[CommandGrader | FunctionsGrader | PytestGrader | StdioGrader, Field(discriminator="kind")]
KINDS: tuple[type[GraderSettings], ...] = get_args(get_args(Grader)[0])
