"""Rows of our own, in the exact schema of each set of contest problems. Every set has a program and, where it has
them, a function; each with a reference that is right."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Row = dict[str, Any]

SUM = "a, b = map(int, input().split())\nprint(a + b)\n"
MEAN = "n = int(input())\nprint(sum(map(int, input().split())) / n)\n"
TWICE = (
    "class Solution:\n    def twice(self, numbers: List[int]) -> List[int]:\n        return [2 * n for n in numbers]\n"
)
TWICE_BEGUN = "class Solution:\n    def twice(self, numbers: List[int]) -> List[int]:\n        "
PYTHON2 = "print raw_input()\n"


def apps_row(**fields: Any) -> Row:
    tests = fields.pop("tests", {"inputs": ["1 2\n", "-3 4"], "outputs": ["3\n", "1"]})
    return {
        "problem_id": 4,
        "question": "Print the sum of two integers.",
        "solutions": json.dumps([PYTHON2, SUM]),
        "input_output": json.dumps(tests),
        "difficulty": "interview",
        "url": "https://example.org/sum",
        "starter_code": "",
        **fields,
    }


def call_tests(name: str = "twice") -> Row:
    return {"fn_name": name, "inputs": [[[1, 2]], [[]]], "outputs": [[[2, 4]], [[]]]}


def taco_row(**fields: Any) -> Row:
    row = apps_row(difficulty="MEDIUM")
    del row["problem_id"]
    row |= {
        "raw_tags": "['math', 'implementation']",
        "name": "Sum",
        "source": "codeforces",
        "tags": "['Mathematics']",
        "skill_types": "[]",
        "Expected Auxiliary Space": None,
        "time_limit": "5.0 seconds",
        "date": "2019-12-31",
        "picture_num": "1",
        "memory_limit": "256.0 megabytes",
        "Expected Time Complexity": None,
    }
    return row | fields


def contests_row(**fields: Any) -> Row:
    return {
        "name": "1_A. Mean",
        "description": "Print the mean of n integers. <image>",
        "public_tests": {"input": ["2\n1 2\n"], "output": ["1.5\n"]},
        "private_tests": {"input": ["3\n1 1 2\n"], "output": ["1.3333333\n"]},
        "generated_tests": {"input": ["1\n7\n"], "output": ["7\n"]},
        "source": 2,
        "difficulty": 7,
        "solutions": {"language": [2, 1, 3], "solution": ["int main() {}", PYTHON2, MEAN]},
        "incorrect_solutions": {"language": [3], "solution": ["print(0)"]},
        "cf_contest_id": 1,
        "cf_index": "A",
        "cf_points": 500.0,
        "cf_rating": 800,
        "cf_tags": ["math", ""],
        "is_description_translated": False,
        "untranslated_description": "",
        "time_limit": {"seconds": 1, "nanos": 500000000},
        "memory_limit_bytes": 2048000000,
        "input_file": "",
        "output_file": "",
        **fields,
    }


def packed(cases: Any) -> str:
    """As LiveCodeBench packs private tests."""
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(cases)))).decode()


def lcb_row(**fields: Any) -> Row:
    return {
        "question_title": "Sum",
        "question_content": "Print the sum of two integers.",
        "platform": "atcoder",
        "question_id": "abc301_a",
        "contest_id": "abc301",
        "contest_date": "2023-05-13T00:00:00",
        "starter_code": "",
        "difficulty": "easy",
        "public_test_cases": json.dumps([{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}]),
        "private_test_cases": packed([{"input": "5 6\n", "output": "11\n", "testtype": "stdin"}]),
        "metadata": "{}",
        **fields,
    }


def lcb_function(**fields: Any) -> Row:
    case = {"input": "[1, 2]", "output": "[2, 4]", "testtype": "functional"}
    return lcb_row(
        question_id="2777",
        platform="leetcode",
        contest_date="2024-08-01T00:00:00",
        difficulty="hard",
        starter_code=TWICE_BEGUN,
        public_test_cases=json.dumps([case]),
        private_test_cases=json.dumps([{**case, "input": "[]", "output": "[]"}]),
        metadata=json.dumps({"func_name": "twice"}),
        **fields,
    )


def prime_row(**fields: Any) -> Row:
    cases = [{"type": "stdin_stdout", "input": "1 2\n", "output": "3\n"}]
    limits = {"difficulty": "7", "memory_limit": "None", "memory_limit_bytes": 256000000, "problem_url": None}
    return {
        "source": "codeforces",
        "task_type": "verifiable_code",
        "in_source_id": "1_A",
        "prompt": "Print the sum of two integers.",
        "gold_standard_solution": f"```python\n{SUM}```",
        "verification_info": str({"language": "python", "test_cases": fields.pop("cases", cases)}),
        "metadata": str({**limits, "time_limit": "2 seconds"}),
        "problem_id": "vcp_1",
        **fields,
    }


def prime_python_row() -> Row:
    """Structured, and with another column for the question."""
    row = prime_row()
    cases = [{"fn_name": None, "type": "stdin_stdout", "input": "1 2\n", "output": "3\n"}]
    limits = {"difficulty": None, "memory_limit": "256.0 megabytes", "memory_limit_bytes": None}
    row["problem_statement"] = row.pop("prompt")
    row["verification_info"] = {"language": "python", "test_cases": cases}
    return row | {"metadata": {**limits, "problem_url": "https://example.org/sum", "time_limit": "4.0 seconds"}}


def deepcoder_row(tests: Any, **fields: Any) -> Row:
    return {
        "problem": "Print the sum of two integers.",
        "solutions": [f"```python\n{SUM}```"],
        "tests": json.dumps(tests),
        **fields,
    }


CALL = {"type": "function_call", "fn_name": "twice", "input": [[1, 2]], "output": [[2, 4]]}
FUNCTION = {"solutions": json.dumps([TWICE]), "starter_code": TWICE_BEGUN, "tests": call_tests()}
LCB_CASE = {"input": "1 2\n", "output": "3\n", "testtype": "stdin_stdout"}

ROWS: dict[str, list[Row]] = {
    "apps": [apps_row(), apps_row(problem_id=5, **FUNCTION)],
    "taco": [taco_row(), taco_row(**{**FUNCTION, "tests": None}, input_output=json.dumps(call_tests()))],
    "codecontests": [contests_row()],
    "livecodebench": [lcb_row(), lcb_function()],
    "primeintellect": [prime_row(), prime_row(problem_id="vcp_2", cases=[CALL], gold_standard_solution=TWICE)],
    "primeintellect-python": [prime_python_row()],
    "deepcoder-primeintellect": [
        deepcoder_row([{"type": "stdin_stdout", "input": "1 2\n", "output": "3\n"}]),
        deepcoder_row([CALL], solutions=[TWICE]),
    ],
    "deepcoder-taco": [deepcoder_row({"inputs": ["1 2\n"], "outputs": ["3\n"]})],
    "deepcoder-lcbv5": [
        deepcoder_row([{**LCB_CASE, "metadata": {"func_name": None}}], starter_code="", metadata={}),
        deepcoder_row(
            [{"input": "[1]", "output": "[2]", "testtype": "functional", "metadata": {"func_name": "twice"}}],
            starter_code=TWICE_BEGUN,
            metadata={"func_name": "twice"},
            solutions=[TWICE],
        ),
    ],
    "deepcoder-codeforces": [deepcoder_row([LCB_CASE])],
}


def written(path: Path, rows: list[Mapping[str, Any]] | list[Row]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
