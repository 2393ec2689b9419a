"""DeepCoder's training and test problems: `tests` in the form of whichever set a problem comes from."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, cast

from codeenv.sources.rows import Hub, PublicSet, Row, RowFault, text_of
from codeenv.sources.sets.cases import Problem
from codeenv.sources.sets.columns import clean, optional, parsed, texts, unfenced, unnamed
from codeenv.sources.sets.shapes import read_tests
from codeenv.task import Task

SPLITS = {
    "primeintellect": {"train": "train"},
    "taco": {"train": "train"},
    "lcbv5": {"train": "train", "eval": "test"},
    "codeforces": {"eval": "test"},
}
"""Its parts, which are configurations on the hub."""


def to_task(row: Row, part: str) -> Task:
    question = text_of(row, "problem")
    clean(question, "problem")
    if not row.get("tests"):
        raise RowFault("tests: there is no test")
    described = parsed(row.get("metadata") or {}, "metadata")
    metadata: Mapping[str, Any] = cast(Mapping[str, Any], described) if isinstance(described, Mapping) else {}
    solutions = row.get("solutions")
    problem = Problem(
        id=f"deepcoder/{part}-{unnamed(row, 'problem', 'tests')}",
        question=question,
        solutions=[unfenced(text) for text in ([solutions] if isinstance(solutions, str) else texts(solutions))],
        starter=optional(row, "starter_code"),
        metadata={"source": part, **{key: metadata.get(key) for key in ("difficulty", "platform", "date")}},
    )
    return read_tests(row["tests"], "tests", name=metadata.get("func_name")).task(problem, "tests")


SETS = tuple(
    PublicSet(
        name=f"deepcoder-{part}",
        title=f"DeepCoder, {part}",
        licence="MIT",
        to_task=partial(to_task, part=part),
        hub=Hub("agentica-org/DeepCoder-Preview-Dataset", "177913a7bd43791646ef6a43645caa3c871ab3db", config=part),
        splits=splits,
    )
    for part, splits in SPLITS.items()
)
