"""docs/datasets.md says of each public set what its module says, and of the arguments what they are."""

from __future__ import annotations

import re
from pathlib import Path

from codeenv.load import load_environment
from codeenv.sources import catalogue
from codeenv.sources.choice import Choice
from codeenv.sources.filters import OPERATORS
from codeenv.sources.mapped import KINDS, PARTS

TEXT = (Path(__file__).parents[1] / "docs" / "datasets.md").read_text(encoding="utf-8")
FIGURES = ("grader", "tasks", "gold", "known bad rows")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def section(title: str) -> str:
    return TEXT.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_the_table_of_sets() -> None:
    head, _, *rows = [line for line in section("The public sets").splitlines() if line.startswith("|")]
    entries = catalogue()
    assert cells(head) == [*entries[0], *FIGURES]
    written = {cells(row)[0]: cells(row) for row in rows}
    known = {f"`{entry['name']}`": [f"`{entry['name']}`", *list(entry.values())[1:]] for entry in entries}
    missing = [
        "| " + " | ".join([*row, *["not known"] * len(FIGURES)]) + " |"
        for name, row in known.items()
        if name not in written
    ]
    assert not missing, "rows to add:\n" + "\n".join(missing)
    assert sorted(written) == sorted(known), "rows of sets that are no more"
    assert {name: row[: len(entries[0])] for name, row in written.items()} == known
    assert all(all(row) and len(row) == len(entries[0]) + len(FIGURES) for row in written.values())


def test_arguments_parts_kinds_and_operators_are_all_there() -> None:
    arguments = set(load_environment.__annotations__)
    told = set(re.findall(r"`(\w+)`", section("Which tasks") + section("Any other schema")))
    assert (set(Choice.model_fields) - {"dataset"}) - told == {"weight"} - told
    assert set(Choice.model_fields) - {"weight"} <= arguments
    assert {"eval_dataset", "eval_split"} <= told & arguments
    assert set(PARTS) | set(KINDS) <= told
    assert all(f"`{operator}`" in TEXT for operator in OPERATORS)
