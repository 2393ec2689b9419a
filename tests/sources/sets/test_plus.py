"""HumanEval+ and MBPP+: rows as evalplus publishes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codeenv.grading import Verdict, box_spec, grade, workspace_of
from codeenv.sandbox.api import SandboxProvider
from codeenv.sandbox.archive import Archive
from codeenv.sources import load_tasks, open_tasks
from codeenv.sources.sets import judging
from codeenv.task import Task

PROMPT = "def mean(items):\n    '''The mean of some numbers.'''\n"
BODY = "    return sum(items) / len(items)\n"
JUDGE = """import numpy as np

def is_floats(x) -> bool:
    return isinstance(x, float)

def assertion(out, exp, atol):
    exact_match = out == exp
    if not exact_match and atol != 0:
        assert np.allclose(out, exp, rtol=1e-07, atol=atol)
    else:
        assert exact_match
"""
CHECK = """

def check(candidate):
    inputs = {}
    results = {}
    for i, (inp, exp) in enumerate(zip(inputs, results)):
        {}
"""
LOOP = "\ninputs = {}\nresults = {}\nfor i, (inp, exp) in enumerate(zip(inputs, results)):\n    {}\n"
INPUTS = [[[1, 2]], [[0.1, 0.2, 0.4]], [[1e9, 3.0]], [[7]]]
RESULTS = [1.5, 0.7000000000000001 / 3, 500000001.5, 7.0]


def human(**fields: Any) -> dict[str, Any]:
    test = JUDGE + CHECK.format(INPUTS, RESULTS, "assertion(candidate(*inp), exp, 0)")
    return {
        "task_id": "HumanEval/3", "prompt": PROMPT, "canonical_solution": BODY, "entry_point": "mean",
        "test": test, **fields,
    }  # fmt: skip


NATIVE = {
    **{key: value for key, value in human().items() if key != "test"},
    "contract": "", "base_input": INPUTS[:1], "plus_input": INPUTS[1:], "atol": 0,
}  # fmt: skip


def mbpp(code: str, test: str, entry: str = "find") -> dict[str, Any]:
    return {
        "task_id": 9, "code": code, "prompt": "Find.", "source_file": "x", "test_imports": [],
        "test_list": [f"assert {entry}(1) == 1"], "test": test,
    }  # fmt: skip


def written(path: Path, *rows: Any, name: str = "humanevalplus") -> str:
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return f"{name}:{path}"


async def judged(task: Task, provider: SandboxProvider, code: str) -> Verdict:
    left = workspace_of(task).overlay(Archive.of({"solution.py": code.encode()}))
    return await grade(task, left, provider, box_spec(task))


@pytest.mark.anyio
@pytest.mark.parametrize("row", [pytest.param(human(), id="hub"), pytest.param(NATIVE, id="release")])
async def test_floats_are_compared_as_the_set_does(tmp_path: Path, provider: SandboxProvider, row: Any) -> None:
    (task,) = load_tasks(written(tmp_path / "rows.jsonl", row))
    assert (task.id, task.metadata["source"], task.grader.kind) == ("HumanEval/3", "HumanEval+", "functions")
    assert task.packages == ()
    for error, passed in (("", 4), (" + 1e-7", 4), (" + 1e-3", 1), (" * 2", 0)):
        verdict = await judged(task, provider, f"def mean(items):\n    return sum(items) / len(items){error}\n")
        assert (verdict.tests_total, verdict.tests_passed) == (4, passed), error


@pytest.mark.anyio
async def test_what_the_candidate_does_to_its_arguments_is_not_the_references(
    tmp_path: Path, provider: SandboxProvider
) -> None:
    (task,) = load_tasks(written(tmp_path / "rows.jsonl", NATIVE))
    cheat = "def mean(items):\n    items.clear()\n    items.append(1)\n    return 1.0\n"
    verdict = await judged(task, provider, cheat)
    assert verdict.tests_passed == 0


ROOT = "    '''Any root of a polynomial of two coefficients.'''\n"
POLY = """import math


def poly(xs: list, x: float):
    return sum([coeff * math.pow(x, i) for i, coeff in enumerate(xs)])
"""


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["hub", "release"])
async def test_a_root_is_judged_by_what_it_gives(tmp_path: Path, provider: SandboxProvider, kind: str) -> None:
    row = human(prompt=f"{POLY}\n\ndef find_zero(xs: list):\n{ROOT}", entry_point="find_zero",
                canonical_solution="    return -xs[0] / xs[1]\n")  # fmt: skip
    inputs = [[[1, 2]], [[-3, 4]]]
    check = CHECK.format(inputs, [0, 0], "assert _poly(*candidate(*inp), inp) <= 0.0001")  # as it stands on the hub
    row["test"] = POLY.replace("poly", "_poly") + check
    if kind == "release":
        del row["test"]
        row |= {"base_input": inputs[:1], "plus_input": inputs[1:], "atol": 1e-4}
    (task,) = load_tasks(written(tmp_path / "rows.jsonl", row))
    for error, passed in (("", 2), (" + 1e-6", 2), (" + 1e-3", 0), (" - 1e-3", 0)):
        verdict = await judged(task, provider, f"def find_zero(xs):\n    return -xs[0] / xs[1]{error}\n")
        assert (verdict.tests_total, verdict.tests_passed) == (2, passed), error


SETS = (
    JUDGE.split("def assertion")[0] + "def assertion(out, exp, atol):\n    out = set(out)\n    assert out == set(exp)\n"
)
NONE = "def assertion(out, exp, atol):\n    if isinstance(out, bool):\n        exact_match = out == exp\n" \
    "    else:\n        exact_match = exp == (out is not None)\n"  # fmt: skip
OTHER = "import math\n\ndef _other(x):\n    return math.floor(x) + 10\n\ndef assertion(out, exp_0, exp_1, atol):\n" \
    "    assert abs(out - exp_0) <= atol or abs(out - exp_1) <= atol\n"  # fmt: skip
CROSS = f"""from math import inf
{JUDGE}
def ref_func(x):
    return [x] * 3

inputs = [[1], ['a'], [inf]]
for i, inp in enumerate(inputs):
    assertion(find(*inp), ref_func(*inp), 0)
"""
CALL = "assertion(find(*inp), exp, 0)"
MBPP: dict[str, tuple[str, str, str]] = {
    "as-sets": (SETS + LOOP.format("[[1], [2]]", "[[1, 5], [2, 5]]", CALL), "return (5, x, 5)", "return (x,)"),
    "none-or-not": (NONE + LOOP.format("[[1], [2]]", "[True, True]", CALL), "return object", "return None"),
    "one-of-two": (
        OTHER + LOOP.format("[[1], [2.5]]", "[0, 0]", "assertion(find(*inp), exp, _other(*inp), 0)"),
        "return int(x) + 10",
        "return 1",
    ),
    "against-a-reference": (CROSS, "return [x, x, x]", "return [x, x]"),
    "exactly": (
        JUDGE + LOOP.format("[[1], ['a'], [inf]]", "[(1,), ('a',), (inf,)]", CALL),
        "return (x,)",
        "return [x]",
    ),
}


@pytest.mark.anyio
@pytest.mark.parametrize(("test", "right", "wrong"), [pytest.param(*case, id=name) for name, case in MBPP.items()])
async def test_kinds_of_comparison(
    tmp_path: Path, provider: SandboxProvider, test: str, right: str, wrong: str
) -> None:
    code = "def find(x):\n    {}\n"
    (task,) = load_tasks(written(tmp_path / "rows.jsonl", mbpp(code.format(right), test), name="mbppplus"))
    assert task.id == "MBPP/9"
    assert (await judged(task, provider, code.format(right))).solved
    failed = await judged(task, provider, code.format(wrong))
    assert (failed.solved, failed.tests_passed) == (False, 0)


@pytest.mark.anyio
async def test_many_large_cases(tmp_path: Path, provider: SandboxProvider) -> None:
    big = [[list(range(3000))] for _ in range(100)] + [[[10**5000]]]
    test = JUDGE + CHECK.format(
        "[" + ", ".join(map(show, big)) + "]", [1499.5] * 100 + [7], "assertion(candidate(*inp), exp, 0)"
    )
    assert len(test) > 1_500_000
    row = human(test=test, canonical_solution="    return sum(items) / len(items) if len(items) > 1 else 7\n")
    (task,) = load_tasks(written(tmp_path / "rows.jsonl", row))
    verdict = await judged(task, provider, PROMPT + row["canonical_solution"])
    assert (verdict.solved, verdict.tests_total) == (True, 10), verdict


def show(case: list[list[int]]) -> str:
    return "[[1" + "0" * 5000 + "]]" if case == [[10**5000]] else repr(case)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no-inputs": ({"test": "def check(candidate):\n    assert candidate('SECRET')"}, "test: no line `inputs = ...`"),
    "two-loops": (
        {"test": LOOP.format([[1]], [1], "assertion(mean(*inp), 'SECRET', 0)") * 2},
        "test: must have one loop",
    ),
    "other-assertion": ({"test": LOOP.format([[1]], [1], "assert mean('SECRET')")}, "test: the assertion in its loop"),
    "no-cases": (
        {"test": LOOP.format([], [], "assertion(mean(*inp), exp, 0)")},
        "inputs: must be a list that is not empty",
    ),
    "not-python": ({"test": LOOP.format("[[1]", [1], "assertion(mean(*inp), exp, 0)")}, "inputs: no Python at line"),
    "too-many": (
        {"test": LOOP.format(f"[[{'1' * 32_500_000}]]", [1], "assertion(mean(*inp), exp, 0)")},
        "inputs: 32500007 characters of cases, more than 32000000",
    ),
    "no-list": ({"base_input": 7}, "base_input: must be a list, not int"),
    "no-plus": ({"base_input": [[1]]}, "plus_input: missing"),
    "no-number": ({"base_input": [[1]], "plus_input": [], "atol": "x"}, "atol: must be a number"),
    "empty": ({"base_input": [], "plus_input": []}, "inputs: must be a list that is not empty"),
}


@pytest.mark.parametrize(("fields", "says"), [pytest.param(*case, id=name) for name, case in BAD.items()])
def test_a_bad_row_is_named(tmp_path: Path, fields: dict[str, Any], says: str) -> None:
    tasks = open_tasks(written(tmp_path / "rows.jsonl", human(**fields), human(task_id="HumanEval/4")))
    bad = tasks.bad
    assert [task.id for task in tasks] == ["HumanEval/4"]
    assert bad[0].reason.startswith(says)
    assert "SECRET" not in bad[0].reason


NAN = float("nan")


@pytest.mark.parametrize(
    ("out", "expected", "tolerance", "agrees"),
    [
        (1, 1.0, 0, True),
        ("a", "a", 0, True),
        ([1.0], (1.0,), 0, False),
        (1.0 + 1e-7, 1.0, 0, True),
        (1.001, 1.0, 0, False),
        (1, 1.0000001, 0, False),
        ([1.0000001, 2.0], [1.0, 2.0], 0, True),
        ([1.0], [1.0, 2.0], 0, False),
        ([[1.0]], [[1.0 + 1e-9]], 0, False),
        ([[1.0]], [[1.0 + 1e-9]], 1e-6, True),
        (NAN, NAN, 0, True),
        (NAN, 1.0, 0, False),
        (float("inf"), 1e308, 0, False),
        ([float("inf"), 1.0], [float("inf"), 1.0 + 1e-8], 0, True),
        ([], [], 0, True),
        (1e10, 1e10 + 500, 0, True),
        (1e10, 1e10 + 5000, 0, False),
        ("a", 1.0, 1e-6, False),
        (None, 1.0, 0, False),
        ({"a": 1.0}, {"a": 1.0 + 1e-9}, 1e-6, False),
        (1j, 1j + 1e-9, 1e-6, True),
        (1.01, 1.0, 0.1, True),
        (2, 3, 0.1, False),
    ],
)
def test_when_values_agree(out: Any, expected: Any, tolerance: float, agrees: bool) -> None:
    assert judging.agree(out, expected, tolerance) is agrees
