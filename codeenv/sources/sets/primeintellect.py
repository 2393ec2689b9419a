"""PrimeIntellect's verifiable coding problems, and sets in their form: `verification_info` holds the language and the
tests, `metadata` the limits, each an object or the text of one (JSON, or as Python's `repr` writes it)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from codeenv.sources.rows import Hub, PublicSet, Row, RowFault, identifier, text_of
from codeenv.sources.sets.cases import Problem
from codeenv.sources.sets.columns import MEBIBYTES, SECONDS, amount, clean, mapping, optional, parsed, unfenced, unnamed
from codeenv.sources.sets.shapes import read_tests
from codeenv.task import Task

INFO = "verification_info"


def to_task(row: Row) -> Task:
    column = next((name for name in ("prompt", "problem_statement", "problem") if row.get(name)), "prompt")
    question = text_of(row, column)
    clean(question, column)
    if not row.get(INFO):
        raise RowFault(f"{INFO}: there is no test")
    info = mapping(parsed(row[INFO], INFO, literal=True), INFO)
    language = info.get("language") or "python"
    if language not in ("python", "python3"):
        raise RowFault(f"{INFO}.language: {str(language)[:20]}, not Python")
    tests = read_tests(info.get("test_cases") or info.get("ground_truth") or [], INFO, name=info.get("fn_name"))
    described = parsed(row.get("metadata") or {}, "metadata", literal=True)
    metadata: Mapping[str, Any] = cast(Mapping[str, Any], described) if isinstance(described, Mapping) else {}
    size = metadata.get("memory_limit_bytes")
    gold = optional(row, "gold_standard_solution")
    problem = Problem(
        id=f"primeintellect/{identifier(row.get('problem_id') or unnamed(row, column, INFO))}",
        question=question,
        solutions=[unfenced(gold)] if gold.strip() else [],
        metadata={
            "source": row.get("source"),
            "difficulty": str(metadata.get("difficulty") or "").removeprefix("None"),
            "url": metadata.get("problem_url"),
            "dataset": info.get("dataset_type"),
        },
    )
    seconds = amount(metadata.get("time_limit"), SECONDS)
    memory = size / 2**20 if isinstance(size, int | float) else amount(metadata.get("memory_limit"), MEBIBYTES)
    return tests.task(problem, INFO, seconds=seconds, memory=memory or None)


SETS = (
    PublicSet(
        name="primeintellect",
        title="PrimeIntellect, verifiable coding problems",
        licence="not stated",
        to_task=to_task,
        hub=Hub("PrimeIntellect/verifiable-coding-problems", ""),
        splits={"train": "train"},
    ),
    PublicSet(
        name="primeintellect-python",
        title="PrimeIntellect, verifiable coding problems in Python, as open-r1 keeps them",
        licence="not stated",
        to_task=to_task,
        hub=Hub("open-r1/verifiable-coding-problems-python", "db558678436c3c1275212172746e1dd67a990059"),
        splits={"train": "train"},
    ),
)
