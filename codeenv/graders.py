"""The settings of the grader kinds, as a task states them. What a kind does with them is `codeenv/grading/`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field


class Strict(BaseModel):
    """Frozen, refuses what it does not know, and quotes no values in errors: they may be hidden."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class GraderSettings(Strict):
    """What every kind has. A subclass adds `kind`, a literal, and is listed in `Grader`."""

    needs: ClassVar[tuple[str, ...]] = ()
    """Python packages that the task's boxes must have for it."""

    timeout: float = Field(default=60.0, gt=0)
    """Seconds for the whole run of the tests."""

    def fault(self, tests: Mapping[str, bytes]) -> str:
        """What is wrong with these hidden tests for this kind; empty when nothing is."""
        raise NotImplementedError


class PytestGrader(GraderSettings):
    """pytest runs the hidden tests in a fresh box. A pass needs exit code 0 and a record of every expected test."""

    needs: ClassVar[tuple[str, ...]] = ("pytest",)

    kind: Literal["pytest"] = "pytest"
    expected: tuple[str, ...] = ()
    """Test functions (`test_x.py::test_name`) that must have run; empty: all that the test files define."""

    def fault(self, tests: Mapping[str, bytes]) -> str:
        if any(re.search(r"(^|/)(test_[^/]*|[^/]*_test)\.py$", name) for name in tests):
            return ""
        return "the pytest grader needs at least one test_*.py"


class StdioGrader(GraderSettings):
    """A program per case: `tests/NAME.in` on stdin, stdout compared with `tests/NAME.out` outside the box."""

    kind: Literal["stdio"] = "stdio"
    command: tuple[str, ...] = Field(min_length=1)
    compare: Literal["tokens", "exact", "numbers"] = "tokens"
    """tokens: split at white space. exact: line by line, trailing blanks and trailing empty lines apart. numbers: as
    tokens, but numbers other than two integers may differ by `tolerance`."""
    tolerance: float = Field(default=1e-6, ge=0, lt=1)
    """For numbers: the difference, absolute or as a part of the expected number, that still passes."""
    case_timeout: float = Field(default=10.0, gt=0)
    """Seconds for each case."""
    case_memory_mb: int | None = Field(default=None, ge=64)
    """MiB of memory for each process of a case; None: no ceiling but that of the box, for all its processes together."""
    timeout: float = Field(default=120.0, gt=0)
    """Seconds for all cases together."""

    def fault(self, tests: Mapping[str, bytes]) -> str:
        inputs = {name[:-3] for name in tests if name.endswith(".in")}
        outputs = {name[:-4] for name in tests if name.endswith(".out")}
        if inputs and inputs == outputs:
            return ""
        odd = ", ".join(sorted(inputs ^ outputs)) or "there is none"
        return f"the stdio grader needs pairs NAME.in and NAME.out ({odd})"


Grader = Annotated[PytestGrader | StdioGrader, Field(discriminator="kind")]
KINDS: tuple[type[GraderSettings], ...] = get_args(get_args(Grader)[0])
