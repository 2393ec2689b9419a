"""CodeContests: programs, with public, private and generated tests and solutions in several languages.

Outputs are compared as its own execution code does: by tokens whatever the case of letters, numbers within 1e-5. Public
tests are shown as examples, and count.
"""

from __future__ import annotations

from typing import Any, cast

from codeenv.graders import StdioGrader
from codeenv.sources.rows import Hub, PublicSet, Row, RowFault, identifier, text_of
from codeenv.sources.sets.cases import COMMAND, Problem, numbered, paired, program, streams
from codeenv.sources.sets.columns import clean, mapping, optional, texts
from codeenv.task import Task

SOURCES = {1: "codechef", 2: "codeforces", 3: "hackerearth", 4: "codejam", 6: "atcoder", 7: "aizu"}
DIFFICULTIES = {
    **dict(enumerate(("easy", "medium", "hard", "harder", "hardest", "external"), 1)),
    **dict(enumerate("ABCDEFGHIJK", 7)),
    **dict(enumerate("LMNOPQRSTUV", 19)),
}
PYTHON3 = 3
"""Its number of the language; 1 is Python 2, 2 C++, 4 Java."""
JUDGE = StdioGrader(command=COMMAND, compare="numbers", tolerance=1e-5, relative=False, ignore_case=True)
GROUPS = ("public", "private", "generated")


def to_task(row: Row) -> Task:
    description = text_of(row, "description")
    clean(description, "description")
    for column in ("input_file", "output_file"):
        if row.get(column):
            raise RowFault(f"{column}: it reads or writes a file, not standard input and output")
    groups = {group: _tests(row, f"{group}_tests") for group in GROUPS}
    solutions = mapping(row.get("solutions") or {}, "solutions")
    pairs = zip(solutions.get("language") or (), solutions.get("solution") or (), strict=False)
    limit = mapping(row.get("time_limit") or {}, "time_limit")
    source = SOURCES.get(_number(row, "source"), "unknown")
    problem = Problem(
        id=f"codecontests/{source}/{identifier(text_of(row, 'name'))}",  # sources have names in common
        question=description,
        solutions=texts([text for language, text in pairs if language == PYTHON3]),
        examples=groups["public"],
        metadata={
            "name": row.get("name"),
            "source": source,
            "difficulty": DIFFICULTIES.get(_number(row, "difficulty")),
            "rating": _number(row, "cf_rating") or None,
            "tags": [tag for tag in texts(row.get("cf_tags")) if tag],
            "contest": _number(row, "cf_contest_id") or None,
            "index": optional(row, "cf_index"),
        },
    )
    cases = {name: pair for group in GROUPS for name, pair in numbered(group, groups[group]).items()}
    return program(
        problem,
        cases,
        JUDGE,
        seconds=float(limit.get("seconds") or 0) + float(limit.get("nanos") or 0) / 1e9 or None,
        memory=_number(row, "memory_limit_bytes") / 2**20 or None,
    )


def _tests(row: Row, column: str) -> list[tuple[bytes, bytes]]:
    """A table of inputs and outputs; or a list of cases, as some copies have it."""
    value: Any = row.get(column) or []
    if isinstance(value, list):
        cases = [mapping(case, column) for case in cast(list[Any], value)]
        value = {end: [case.get(end) for case in cases] for end in ("input", "output")}
    table = mapping(value, column)
    if not table.get("input") and not table.get("output"):
        return []
    return streams(paired(table.get("input"), table.get("output"), column), column)


def _number(row: Row, column: str) -> int:
    value = row.get(column)
    return int(value) if isinstance(value, int | float) else 0


SETS = (
    PublicSet(
        name="codecontests",
        title="CodeContests",
        licence="CC BY 4.0",
        to_task=to_task,
        hub=Hub("deepmind/code_contests", "802411c3010cb00d1b05bad57ca77365a3c699d6"),
        splits={"train": "train", "eval": "test"},
    ),
)
