"""APPS and TACO: contest problems whose tests are `input_output`, JSON of inputs and outputs and, for a function that
is called, its name."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from codeenv.sources.rows import Hub, PublicSet, Row, RowFault, identifier, text_of
from codeenv.sources.sets.cases import Problem
from codeenv.sources.sets.columns import MEBIBYTES, SECONDS, amount, clean, optional, parsed, texts, unnamed
from codeenv.sources.sets.shapes import read_tests
from codeenv.task import Task

TESTS = "input_output"


def apps(row: Row) -> Task:
    if row.get("problem_id") is None:
        raise RowFault("problem_id: missing")
    metadata = {name: row.get(name) for name in ("difficulty", "url")}
    return to_task(row, f"apps/{identifier(row['problem_id'])}", metadata)


def taco(row: Row) -> Task:
    metadata = {name: row.get(name) for name in ("difficulty", "url", "source", "name")}
    metadata |= {name: listed(row.get(name)) for name in ("tags", "raw_tags", "skill_types")}
    metadata["date"] = str(row.get("date") or "")[:10]
    if pictures := amount(row.get("picture_num"), {}):
        metadata["pictures"] = int(pictures)
    return to_task(row, f"taco/{unnamed(row, 'question', TESTS)}", metadata)


def to_task(row: Row, name: str, metadata: Mapping[str, Any]) -> Task:
    question = text_of(row, "question")
    clean(question, "question")
    if not row.get(TESTS):
        raise RowFault(f"{TESTS}: there is no test")
    problem = Problem(
        id=name,
        question=question,
        solutions=texts(parsed(row.get("solutions") or [], "solutions")),
        starter=optional(row, "starter_code"),
        metadata=metadata,
    )
    seconds, memory = amount(row.get("time_limit"), SECONDS), amount(row.get("memory_limit"), MEBIBYTES)
    return read_tests(row[TESTS], TESTS).task(problem, TESTS, seconds=seconds, memory=memory)


def listed(value: object) -> list[str]:
    """A list that a column holds as Python writes it."""
    try:
        return texts(ast.literal_eval(value) if isinstance(value, str) else value)
    except (ValueError, SyntaxError):
        return []


SETS = (
    PublicSet(
        name="apps",
        title="APPS",
        licence="MIT",
        to_task=apps,
        hub=Hub("codeparrot/apps", "21e74ddf8de1a21436da12e3e653065c5213e9d1", files=("{split}.jsonl",)),
        splits={"train": "train", "eval": "test"},
    ),
    PublicSet(
        name="taco",
        title="TACO",
        licence="Apache-2.0",
        to_task=taco,
        hub=Hub("BAAI/TACO", "d593ed0a2becbbc952230bb89be09189bf1056dc", files=("ALL/{split}-*",)),
        splits={"train": "train", "eval": "test"},
    ),
)
