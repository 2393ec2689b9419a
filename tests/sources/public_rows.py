"""Rows of our own in the schema of HumanEval, and files of them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codeenv.graders import StdioGrader
from codeenv.task import Task


def humaneval_row(number: int, **changes: Any) -> dict[str, Any]:
    words = f"Add {number} to x, whatever x is, and give back the sum."
    return {
        "task_id": f"Own/{number}",
        "prompt": f"def add_{number}(x):\n    '''{words}'''\n",
        "entry_point": f"add_{number}",
        "canonical_solution": f"    return x + {number}\n",
        "test": f"def check(candidate):\n    assert candidate(1) == {number + 1}\n",
        **changes,
    }


def write_rows(path: Path, rows: Sequence[object]) -> Path:
    """One JSON object a line; a row that is text is the line itself."""
    text = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def levels(count: int = 12) -> list[Task]:
    """Tasks with metadata of all forms."""
    return [
        Task(
            id=f"t{number}",
            tests={"a.in": b"1", "a.out": b"1"},
            grader=StdioGrader(command=("python3", "main.py")),
            instruction=f"Solve problem number {number} of the many problems that there are.",
            metadata={
                "difficulty": ("easy", "medium", "hard")[number % 3],
                "date": f"2024-{number + 1:02}-01",
                "rating": number * 100,
                "tags": ["dp", "graphs"] if number % 2 else ["dp"],
                **({"odd": True} if number % 2 else {}),
            },
        )
        for number in range(count)
    ]
