"""What the sets of contest problems share: how their columns are read, and a program's cases made into a task."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from codeenv.graders import StdioGrader
from codeenv.sources.rows import RowFault
from codeenv.sources.sets.columns import clean, first_python
from codeenv.task import Answer, Task

FILE = "solution.py"
COMMAND = ("python3", "-X", "int_max_str_digits=0", FILE)
"""The sets and their references are older than CPython's limit of 4,300 digits."""
SLOWER = 3.0
"""How much longer than a contest's limit, which is made for compiled languages and faster machines, a case may take."""
LEAST_SECONDS, MOST_SECONDS = 10.0, 60.0
LEAST_MEMORY = 1024
"""MiB: an interpreter needs more than a compiled program, and a thread with a large stack counts as a whole."""
MOST_TOTAL = 600.0
TIMEOUTS = 2
"""Cases that may run out of their time: a solution that loops would take its time for each."""

PICTURE = re.compile(r"<image>|\[image\]|<img\b|!\[[^\]\n]*\]\(", re.IGNORECASE)
"""What the sets have left where a picture was."""

Cases = Mapping[str, tuple[bytes, bytes]]
"""By name: the input and the expected output."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What is the same for programs and functions."""

    id: str
    question: str
    solutions: Sequence[str] = ()
    """References, as the set has them; the first that is Python 3 is ours."""
    starter: str = ""
    examples: Sequence[tuple[bytes, bytes]] = ()
    """What the set itself shows: inputs and outputs."""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def described(self) -> dict[str, Any]:
        """The metadata that say something, how many references there were to choose from, and how many pictures the
        text had that nobody sees."""
        everything = {"pictures": len(PICTURE.findall(self.question)) or None, **self.metadata}
        everything["solutions"] = len(self.solutions)
        return {key: value for key, value in everything.items() if value not in (None, "", [], ())}

    def shown(self) -> dict[str, bytes]:
        """The examples as files of the workspace."""
        pairs = enumerate(self.examples, 1)
        return {f"examples/{n}.{end}": data for n, pair in pairs for end, data in zip(("in", "out"), pair, strict=True)}


def program(
    problem: Problem, cases: Cases, judge: StdioGrader, *, seconds: float | None = None, memory: float | None = None
) -> Task:
    """A task whose `solution.py` reads standard input. `judge`: how it is run and outputs are compared;
    `seconds`, `memory` (MiB): a case's limits as the set states them.

    A case may take three times its limit, at least 10 s and at most 60; all of them together at most 10 minutes.

    :raises RowFault: there are no cases.
    """
    if not cases:
        raise RowFault("there is no test")
    each = LEAST_SECONDS if seconds is None else min(max(SLOWER * seconds, LEAST_SECONDS), MOST_SECONDS)
    text = [problem.question.strip(), f"Write the program as `{FILE}`: it reads standard input and prints the answer."]
    if problem.examples:
        text.append("`examples/1.in` is an input and `examples/1.out` its output, and so on.")
    reference = first_python(problem.solutions)
    tests = {
        f"{name}.{end}": data for name, pair in cases.items() for end, data in zip(("in", "out"), pair, strict=True)
    }
    return Task(
        id=problem.id,
        instruction="\n\n".join(text),
        files={
            **problem.shown(),
            **({FILE: clean(problem.starter, "starter_code")} if problem.starter.strip() else {}),
        },
        tests=tests,
        solution=None if reference is None else {FILE: clean(reference, "solutions")},
        family="program",
        answer=Answer(path=FILE),
        grader=judge.model_copy(
            update={
                "case_timeout": each,
                "timeout": min(MOST_TOTAL, 20.0 + each * len(cases)),
                "max_timeouts": TIMEOUTS,
                "case_memory_mb": None if memory is None else max(LEAST_MEMORY, 2 * int(memory)),
            }
        ),
        metadata=problem.described,
    )


def numbered(kind: str, pairs: Sequence[tuple[bytes, bytes]]) -> dict[str, tuple[bytes, bytes]]:
    """Cases by name: `kind-01` and so on, in an order that is the names'."""
    width = len(str(len(pairs)))
    return {f"{kind}-{number:0{width}}": pair for number, pair in enumerate(pairs, 1)}


def paired(inputs: object, outputs: object, column: str) -> list[tuple[Any, Any]]:
    """:raises RowFault: one of them is no list, or they are not of one length."""
    if not isinstance(inputs, list) or not isinstance(outputs, list):
        raise RowFault(f"{column}: inputs and outputs must be lists")
    ours, theirs = cast(list[Any], inputs), cast(list[Any], outputs)
    if len(ours) != len(theirs):
        raise RowFault(f"{column}: {len(ours)} inputs, but {len(theirs)} outputs")
    if not ours:
        raise RowFault(f"{column}: there is no test")
    return list(zip(ours, theirs, strict=True))


def streams(pairs: Iterable[tuple[Any, Any]], column: str) -> list[tuple[bytes, bytes]]:
    """Inputs and outputs of a program: text, or a list of its lines."""
    return [(_stream(one, column), _stream(other, column)) for one, other in pairs]


def _stream(value: Any, column: str) -> bytes:
    kind = type(value).__name__
    if isinstance(value, list):
        lines = cast(list[Any], value)
        value = "\n".join(lines) if all(isinstance(line, str) for line in lines) else None
    if not isinstance(value, str):
        raise RowFault(f"{column}: what a program reads and prints must be text or lines of text, not {kind}")
    return clean(value, column)
