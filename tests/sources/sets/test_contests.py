"""The sets of contest problems: what becomes of a good row, and what is said of a bad one."""

# ruff: noqa: E501 - tables: one case a line
from __future__ import annotations

import base64
import json
import pickle
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

from codeenv.grading.verdict import Verdict
from codeenv.load import load_environment
from codeenv.sandbox.api import SandboxProvider
from codeenv.sources import load_tasks
from codeenv.sources.rows import RowFault
from codeenv.sources.sets import public_sets
from codeenv.sources.sets.livecodebench import pickled_text
from codeenv.task import Task
from tests.env_support import play
from tests.episodes import judge
from tests.sources.sets.contest_rows import (
    CALL,
    FUNCTION,
    LCB_CASE,
    ROWS,
    TWICE,
    Row,
    apps_row,
    contests_row,
    deepcoder_row,
    lcb_function,
    lcb_row,
    packed,
    prime_python_row,
    prime_row,
    taco_row,
    written,
)

NINES = "9" * 5000


def task_of(name: str, row: Row) -> Task:
    return public_sets()[name].to_task(row)


async def graded(task: Task, provider: SandboxProvider, program: str | None = None) -> Verdict:
    """The reference's verdict, or another program's."""
    files: dict[str, str | bytes] = {**(task.solution or {})} if program is None else {"solution.py": program}
    return await judge(task, provider, files)


# --- good rows --------------------------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize("name", ROWS)
async def test_references_pass_and_untouched_workspaces_do_not(
    name: str, provider: SandboxProvider, tmp_path: Path
) -> None:
    tasks = load_tasks(f"{name}:{written(tmp_path / 'rows.jsonl', ROWS[name])}")
    assert len(tasks) == len(ROWS[name])
    for task, row in zip(tasks, ROWS[name], strict=True):
        assert task.family == ("function" if "twice" in json.dumps(row) else "program")
        assert (await judge(task, provider)).outcome == "failed"
        if task.solution is None:
            assert name == "livecodebench"
            continue
        verdict = await graded(task, provider)
        assert verdict.solved, (task.id, verdict)


@pytest.mark.anyio
async def test_a_policy_that_knows_the_references_solves_them(tmp_path: Path) -> None:
    env = load_environment(f"apps:{written(tmp_path / 'rows.jsonl', ROWS['apps'])}", sandbox="bubblewrap")
    assert [output["reward"] for output in await play(env, "oracle")] == [1.0, 1.0]
    assert [output["reward"] for output in await play(env, "noop")] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("name", "row", "task_id", "metadata"),
    [
        pytest.param("apps", apps_row(), "apps/4", {"difficulty": "interview", "url": "https://example.org/sum", "solutions": 2}, id="apps"),
        pytest.param("taco", taco_row(), None, {"difficulty": "MEDIUM", "source": "codeforces", "date": "2019-12-31", "tags": ["Mathematics"], "raw_tags": ["math", "implementation"], "pictures": 1, "name": "Sum", "url": "https://example.org/sum", "solutions": 2}, id="taco"),
        pytest.param("apps", apps_row(question="[Image] ![a](b.png) [x](y)", difficulty="", url=""), "apps/4", {"pictures": 2, "solutions": 2}, id="apps-pictures"),
        pytest.param("taco", taco_row(date=None, tags=None, raw_tags="[", picture_num="0", source=None, url=None, name=None), None, {"difficulty": "MEDIUM", "solutions": 2}, id="taco-without"),
        pytest.param("codecontests", contests_row(), "codecontests/codeforces/1_A.-Mean", {"name": "1_A. Mean", "source": "codeforces", "difficulty": "A", "rating": 800, "tags": ["math"], "contest": 1, "index": "A", "pictures": 1, "solutions": 1}, id="codecontests"),
        pytest.param("codecontests", contests_row(source=6, difficulty=19, cf_rating=0, cf_tags=[], cf_contest_id=0, cf_index="", description="x"), "codecontests/atcoder/1_A.-Mean", {"name": "1_A. Mean", "source": "atcoder", "difficulty": "L", "solutions": 1}, id="codecontests-atcoder"),
        pytest.param("livecodebench", lcb_row(), "livecodebench/abc301_a", {"difficulty": "easy", "date": "2023-05-13", "platform": "atcoder", "contest": "abc301", "title": "Sum", "solutions": 0}, id="livecodebench"),
        pytest.param("livecodebench", lcb_function(), "livecodebench/2777", {"difficulty": "hard", "date": "2024-08-01", "platform": "leetcode", "contest": "abc301", "title": "Sum", "solutions": 0, "entry_point": "twice"}, id="livecodebench-function"),
        pytest.param("primeintellect", prime_row(), "primeintellect/vcp_1", {"source": "codeforces", "difficulty": "7", "solutions": 1}, id="primeintellect"),
        pytest.param("primeintellect-python", prime_python_row(), "primeintellect/vcp_1", {"source": "codeforces", "url": "https://example.org/sum", "solutions": 1}, id="primeintellect-python"),
        pytest.param("deepcoder-codeforces", deepcoder_row([LCB_CASE], metadata='{"difficulty": "hard"}'), None, {"source": "codeforces", "difficulty": "hard", "solutions": 1}, id="deepcoder"),
    ],
)  # fmt: skip
def test_what_a_task_is_called_and_filtered_by(name: str, row: Row, task_id: str | None, metadata: Row) -> None:
    task = task_of(name, row)
    assert task_id in (None, task.id)
    assert task.id.startswith(name.partition("-")[0])
    assert dict(task.metadata) == metadata


@pytest.mark.parametrize(
    ("row", "seconds", "memory"),
    [
        pytest.param({}, 15.0, 1024, id="three-times"),
        pytest.param({"time_limit": "1.0 seconds", "memory_limit": "1024.0 megabytes"}, 10.0, 2048, id="at-least"),
        pytest.param({"time_limit": "500 ms"}, 10.0, 1024, id="milliseconds"),
        pytest.param({"time_limit": "1 minute", "memory_limit": "2 GB"}, 60.0, 4096, id="at-most"),
        pytest.param({"time_limit": None, "memory_limit": ""}, 10.0, None, id="none"),
        pytest.param({"time_limit": "soon", "memory_limit": "0 bytes"}, 10.0, None, id="nonsense"),
    ],
)
def test_limits(row: Row, seconds: float, memory: int | None) -> None:
    grader = task_of("taco", taco_row(**row)).grader
    assert (grader.case_timeout, grader.case_memory_mb) == (seconds, memory)  # type: ignore[union-attr]


def test_limits_of_structured_rows() -> None:
    grader = task_of("primeintellect-python", prime_python_row()).grader
    assert (grader.case_timeout, grader.case_memory_mb) == (12.0, 1024)  # type: ignore[union-attr]


def test_limits_of_codecontests_and_of_all_cases() -> None:
    grader = task_of("codecontests", contests_row(time_limit={"seconds": 4, "nanos": 500000000})).grader
    assert (grader.kind, grader.timeout) == ("stdio", 20 + 3 * 13.5)
    many = {"input": ["1\n7\n"] * 500, "output": ["7\n"] * 500}
    assert task_of("codecontests", contests_row(generated_tests=many)).grader.timeout == 600
    assert task_of("codecontests", contests_row(time_limit=None, memory_limit_bytes=0)).grader.timeout == 50


@pytest.mark.parametrize("name", ROWS)
def test_nothing_hidden_is_shown(name: str) -> None:
    for row in ROWS[name]:
        secret = json.loads(json.dumps(row).replace("1 2", "771 772").replace("[1, 2]", "[771, 772]"))
        if name == "codecontests":
            secret = contests_row(private_tests={"input": ["771"], "output": ["772"]})
        if name == "livecodebench":
            secret["private_test_cases"] = packed(
                [{"input": "771", "output": "772", "testtype": json.loads(row["public_test_cases"])[0]["testtype"]}]
            )
            secret["public_test_cases"] = row["public_test_cases"]
        task = task_of(name, secret)
        shown = [
            task.instruction.encode(),
            *task.files.values(),
            repr(task).encode(),
            repr(dict(task.metadata)).encode(),
        ]
        assert not [
            text
            for text in shown
            if b"771" in text
            or b"class Solution:\n    def twice(self, numbers: List[int]) -> List[int]:\n        return" in text
            or b"a + b" in text
        ]


def test_what_the_set_shows_are_examples() -> None:
    task = task_of("codecontests", contests_row())
    assert task.files == {"examples/1.in": b"2\n1 2\n", "examples/1.out": b"1.5\n"}
    assert "examples/1.in" in task.instruction
    assert sorted(task.tests) == [f"{n}-1.{end}" for n in ("generated", "private", "public") for end in ("in", "out")]
    task = task_of("livecodebench", lcb_row())
    assert set(task.files) == {"examples/1.in", "examples/1.out"}
    assert sorted(task.tests) == ["case-1.in", "case-1.out", "case-2.in", "case-2.out"]
    assert task.instruction.startswith("# Sum\n\nPrint the sum")


def test_an_answer_goes_where_the_function_was_begun() -> None:
    task = task_of("livecodebench", lcb_function())
    assert task.answer is not None
    assert (task.answer.path, task.answer.entry_point) == ("solution.py", "Solution")
    assert task.answer.head.endswith("def twice(self, numbers: List[int]) -> List[int]:\n        ")
    begun = task.files["solution.py"].decode()
    assert begun.endswith(":\n        raise NotImplementedError\n")
    compile(begun, "solution.py", "exec")
    plain = task_of("apps", apps_row(tests={**FUNCTION["tests"], "fn_name": "f"}, starter_code="def f(a):\n\t"))
    assert plain.answer is not None
    assert plain.answer.entry_point == "f"
    compile(plain.files["solution.py"], "solution.py", "exec")
    assert task_of("apps", apps_row()).answer.entry_point == ""  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("solutions", "chosen"),
    [
        pytest.param(["print 1", "x = 1"], "x = 1", id="not-python-2"),
        pytest.param(["", "# nothing", "x = 1"], "x = 1", id="not-empty"),
        pytest.param(["x = '\\d'", "y"], "x = '\\d'", id="odd-escape"),
        pytest.param(["(" * 5000, "x\0"], None, id="none"),
        pytest.param([], None, id="no-solution"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_the_first_reference_that_is_python_3(solutions: list[str], chosen: str | None) -> None:
    task = task_of("apps", apps_row(solutions=json.dumps(solutions)))
    assert task.solution == (None if chosen is None else {"solution.py": chosen.encode()})
    assert task.metadata["solutions"] == len(solutions)


# --- judged as the sets' own judges do --------------------------------------------------------------------------

printed: Any = pytest.mark.parametrize(
    ("name", "expected", "output", "passes"),
    [
        pytest.param("apps", "0.5", "0.500004", True, id="apps-within-its-tolerance"),
        pytest.param("apps", "0.5", "0.501", False, id="apps-wrong-by-a-thousandth"),
        pytest.param("apps", "1 2\n3\n", "2 1\n3\n", False, id="apps-another-order"),
        pytest.param("apps", "1 2\n3\n", "1  2 \r\n3", True, id="apps-blanks"),
        pytest.param("apps", "1 2\n3\n", "1\n2 3", False, id="apps-other-lines"),
        pytest.param("apps", "1\n\n2", "\n1\n2\n\n", True, id="apps-empty-lines"),
        pytest.param("apps", "Yes", "YES", False, id="apps-case"),
        pytest.param("codecontests", "0.5", "0.500009", True, id="codecontests-within-its-tolerance"),
        pytest.param("codecontests", "0.5", "0.501", False, id="codecontests-wrong-by-a-thousandth"),
        pytest.param("codecontests", "1000000.5", "1000000.501", False, id="codecontests-absolutely"),
        pytest.param("codecontests", "Yes 1", "yES\n1", True, id="codecontests-case-and-lines"),
        pytest.param("codecontests", NINES, NINES[:-1] + "8", False, id="codecontests-5000-digits"),
        pytest.param("livecodebench", "0.5", "0.50", True, id="livecodebench-decimals"),
        pytest.param("livecodebench", "0.5", "0.5000000001", False, id="livecodebench-no-tolerance"),
        pytest.param("livecodebench", "1 2\n3", "1   2\n3", True, id="livecodebench-blanks-between-numbers"),
        pytest.param("livecodebench", "a b\n3", "a  b\n3", False, id="livecodebench-blanks-between-words"),
        pytest.param("livecodebench", "a b\n3", "\n  a b \r\n3\n\n", True, id="livecodebench-blanks-around"),
        pytest.param("livecodebench", "1\n2", "1 2", False, id="livecodebench-other-lines"),
        pytest.param("livecodebench", "1\n\n2", "1\n2", False, id="livecodebench-inner-empty-line"),
        pytest.param("livecodebench", "Yes", "YES", False, id="livecodebench-case"),
        pytest.param("livecodebench", "7", "007.0", True, id="livecodebench-same-number"),
    ],
)  # fmt: skip


@pytest.mark.anyio
@printed
async def test_what_is_printed(name: str, expected: str, output: str, passes: bool, provider: SandboxProvider) -> None:
    rows = {
        "apps": apps_row(tests={"inputs": [""], "outputs": [expected]}),
        "codecontests": contests_row(public_tests={}, private_tests={"input": [""], "output": [expected]}, generated_tests=None),
        "livecodebench": lcb_row(public_test_cases="[]", private_test_cases=json.dumps([{"input": "", "output": expected, "testtype": "stdin"}])),
    }  # fmt: skip
    verdict = await graded(task_of(name, rows[name]), provider, f"print({output!r}, end='')")
    assert verdict.solved is passes, verdict
    assert not any(word in test.message for test in verdict.tests for word in (expected,) if expected not in output)


CACHED = "@functools.lru_cache(None)\n" if sys.version_info < (3, 12) else ""  # then the depth in C has a fixed limit
PROGRAMS = {
    "long-ints": ("", NINES, "print(10**5000 - 1)"),
    "long-ints-read": (NINES, NINES, "print(int(input()))"),
    "buffer": ("", "ü\n", "import sys; sys.stdout.buffer.write('ü\\n'.encode())"),
    "crlf-input": ("1 2\r\n3\r\n", "6", "import sys; print(sum(map(int, sys.stdin.read().split())))"),
    "unicode": ("héllo wörld ☃", "☃ dlröw olléh", "print(input()[::-1])"),
    "no-input": ("", "1", "import sys; assert sys.stdin.read() == ''; print(1)"),
    "input-not-read": ("x" * 200_000, "1", "print(1)"),
    "exit": ("", "1", "import sys; print(1); sys.exit()"),
    "main-guard": ("", "1", "if __name__ == '__main__':\n    print(1)"),
    "recursion": ("", "30000", "import sys; sys.setrecursionlimit(10**6)\ndef f(n): return n and f(n - 1) + 1\nprint(f(30000))"),
    "recursion-through-c": ("", "100000", f"import functools, sys; sys.setrecursionlimit(10**6)\n{CACHED}def f(n): return n and f(n - 1) + 1\nprint(f(100000))"),
    "recursion-in-a-thread": ("", "100000", f"import functools, sys, threading\nsys.setrecursionlimit(10**6); threading.stack_size(2**29)\n{CACHED}def f(n): return n and f(n - 1) + 1\nt = threading.Thread(target=lambda: print(f(100000))); t.start(); t.join()"),
}  # fmt: skip


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["taco", "livecodebench"])
async def test_programs_as_people_write_them(name: str, provider: SandboxProvider) -> None:
    for what, (given, expected, program) in PROGRAMS.items():
        tests = {"inputs": [given], "outputs": [expected]}
        cases = json.dumps([{"input": given, "output": expected, "testtype": "stdin"}])
        row = (
            taco_row(input_output=json.dumps(tests))
            if name == "taco"
            else lcb_row(public_test_cases=cases, private_test_cases="[]")
        )
        verdict = await graded(task_of(name, row), provider, program)
        assert verdict.solved, (what, verdict)


@pytest.mark.anyio
async def test_livecodebench_lets_every_program_recurse(provider: SandboxProvider) -> None:
    row = lcb_row(
        public_test_cases=json.dumps([{"input": "", "output": "9000", "testtype": "stdin"}]), private_test_cases="[]"
    )
    program = "def f(n): return n and f(n - 1) + 1\nprint(f(9000))"
    assert (await graded(task_of("livecodebench", row), provider, program)).solved
    broken = await graded(task_of("livecodebench", row), provider, "x = 1\nraise ValueError(x)")
    assert 'File "solution.py", line 2' in broken.tests[0].message
    assert "raise ValueError(x)" in broken.tests[0].message


RETURNS = {
    "list": ("[[1, 2]]", "[n for n in a]", "[1, 2]", True),
    "tuple": ("[[1, 2]]", "tuple(a)", "[1, 2]", True),
    "tuples-in-a-list": ("[[1, 2]]", "[(n, n) for n in a]", "[[1, 1], [2, 2]]", True),
    "tuples-deeper": ("[[1, 2]]", "[[(n, n)] for n in a]", "[[[1, 1]], [[2, 2]]]", False),
    "wrapped": ("[[1, 2]]", "a[0] + a[1]", "[3]", True),
    "first-of-several": ("[[1, 2]]", "1", "[1, 2]", False),
    "float-of-an-int": ("[[1, 2]]", "3.0", "3", True),
    "float": ("[[1, 2]]", "0.1 + 0.2", "0.3", False),
    "text": ("[[1, 2]]", "'3'", "3", False),
    "none": ("[[1, 2]]", "None", "[1, 2]", False),
    "set": ("[[1, 2]]", "set(a)", "[1, 2]", False),
    "keys-that-are-ints": ('[{"1": "x"}]', "{k + 1: v for k, v in a.items()}", '{"2": "x"}', True),
    "keys-that-are-text": ('[{"a": 1}]', "a", '{"a": 1}', True),
    "long-int": (f"[{NINES}]", "a - 1", NINES[:-1] + "8", True),
    "long-int-wrong": (f"[{NINES}]", "a - 2", NINES[:-1] + "8", False),
    "equal-to-everything": ("[[1, 2]]", "type('X', (), {'__eq__': lambda s, o: True})()", "[1, 2]", False),
    "lone-surrogate": ('["\\ud800"]', "a", '"\\ud800"', True),
    "unicode": ('["ü☃"]', "a[::-1]", '"☃ü"', True),
    "nothing-returned": ('["x"]', "None", "null", True),
    "imports-of-the-judge": ("[[3, 1]]", "(lambda h: (heapify(h), heappop(h), Counter(h), math.inf, List)[1])(a)", "1", True),
    "deep-recursion": ("[5000]", "(lambda f: f(f, a))(lambda f, n: n and f(f, n - 1) + 1)", "5000", True),
}  # fmt: skip


STRICT = {"tuples-in-a-list", "wrapped", "keys-that-are-ints"}
"""Of these, LiveCodeBench's judge accepts none."""


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["apps", "livecodebench"])
async def test_what_is_returned(name: str, provider: SandboxProvider) -> None:
    """All in one grading: each case calls with its own name as the second argument."""
    calls = {what: (f"{given[1:-1]}", json.dumps(what), expected) for what, (given, _, expected, _) in RETURNS.items()}
    starter = "def f(a, what):\n    "
    if name == "apps":
        inputs = ", ".join(f"[{given}, {what}]" for given, what, _ in calls.values())
        outputs = ", ".join(expected for _, _, expected in calls.values())
        tests = f'{{"fn_name": "f", "inputs": [{inputs}], "outputs": [{outputs}]}}'
        task = task_of(name, apps_row(input_output=tests, starter_code=starter))
    else:
        cases = [
            {"input": f"{given}\n{what}", "output": expected, "testtype": "functional"}
            for given, what, expected in calls.values()
        ]
        row = lcb_row(private_test_cases=packed(cases), public_test_cases="[]", starter_code=starter)
        task = task_of(name, {**row, "metadata": json.dumps({"func_name": "f"})})
    body = "".join(f"    if what == {what!r}: return {code}\n" for what, (_, code, *_) in RETURNS.items())
    imports = task.files["solution.py"].decode().partition("def f")[0]
    verdict = await graded(task, provider, f"{imports}def f(a, what):\n{body}")
    found = {what: test.passed for what, test in zip(RETURNS, verdict.tests, strict=True)}
    not_here = STRICT if name == "livecodebench" else set[str]()
    assert found == {what: passes and what not in not_here for what, (*_, passes) in RETURNS.items()}, verdict


@pytest.mark.anyio
@pytest.mark.parametrize("program", [TWICE, "def twice(a): return [2 * n for n in a]"], ids=["class", "function"])
async def test_a_method_or_a_function(program: str, provider: SandboxProvider) -> None:
    task = task_of("livecodebench", lcb_function())
    assert (await graded(task, provider, "from typing import List\n" + program)).solved


# --- bad rows ---------------------------------------------------------------------------------------------------

BAD: dict[str, tuple[str, Row, str]] = {
    "apps-no-tests": ("apps", apps_row(input_output=""), "input_output: there is no test"),
    "apps-null-tests": ("apps", apps_row(input_output=None), "input_output: there is no test"),
    "apps-missing-column": ("apps", {"problem_id": 1, "question": "x"}, "input_output: there is no test"),
    "apps-empty-tests": ("apps", apps_row(tests={"inputs": [], "outputs": []}), "input_output: there is no test"),
    "apps-empty-object": ("apps", apps_row(tests={}), "input_output: inputs and outputs must be lists"),
    "apps-invalid-json": ("apps", apps_row(input_output='{"inputs": ["SECRET"'), "input_output: invalid JSON: Expecting"),
    "apps-deep-json": ("apps", apps_row(input_output="[" * 100_000), "input_output: is nested too deep"),
    "apps-unequal": ("apps", apps_row(tests={"inputs": ["SECRET", "2"], "outputs": ["1"]}), "input_output: 2 inputs, but 1 outputs"),
    "apps-no-list": ("apps", apps_row(tests={"inputs": "SECRET", "outputs": "1"}), "input_output: inputs and outputs must be lists"),
    "apps-numbers": ("apps", apps_row(tests={"inputs": [[1, 2]], "outputs": ["1"]}), "input_output: what a program reads and prints must be text or lines of text, not list"),
    "apps-null-byte": ("apps", apps_row(tests={"inputs": ["a\0SECRET"], "outputs": ["1"]}), "input_output: has null bytes"),
    "apps-null-byte-in-call": ("apps", apps_row(tests={"fn_name": "f", "inputs": [["\0001"]], "outputs": ["1"]}), "input_output: has null bytes"),
    "apps-surrogate": ("apps", apps_row(tests={"inputs": ["\ud800"], "outputs": ["1"]}), "input_output: is not valid Unicode"),
    "apps-name": ("apps", apps_row(tests={"fn_name": "a b", "inputs": [[1]], "outputs": ["1"]}), "input_output: the function's name is no identifier"),
    "apps-keyword": ("apps", apps_row(tests={"fn_name": "lambda", "inputs": [[1]], "outputs": ["1"]}), "input_output: the function's name is no identifier"),
    "apps-name-kind": ("apps", apps_row(tests={"fn_name": 7, "inputs": [[1]], "outputs": ["1"]}), "input_output: the function's name must be text"),
    "apps-arguments": ("apps", apps_row(tests={"fn_name": "f", "inputs": ["x"], "outputs": ["1"]}), "input_output: a function's arguments must be a list"),
    "apps-empty-question": ("apps", apps_row(question=" \n"), "question: is empty"),
    "apps-null-in-question": ("apps", apps_row(question="a\0"), "question: has null bytes"),
    "apps-no-id": ("apps", apps_row(problem_id=None), "problem_id: missing"),
    "apps-solutions": ("apps", apps_row(solutions="[SECRET"), "solutions: invalid JSON"),
    "codecontests-no-tests": ("codecontests", contests_row(public_tests=None, private_tests=None, generated_tests={"input": [], "output": []}), "there is no test"),
    "codecontests-unequal": ("codecontests", contests_row(private_tests={"input": ["1"], "output": []}), "private_tests: 1 inputs, but 0 outputs"),
    "codecontests-file": ("codecontests", contests_row(input_file="input.txt"), "input_file: it reads or writes a file, not standard input and output"),
    "codecontests-empty": ("codecontests", contests_row(description=""), "description: is empty"),
    "livecodebench-no-tests": ("livecodebench", lcb_row(public_test_cases="[]", private_test_cases="[]"), "test cases: there is no test"),
    "livecodebench-not-packed": ("livecodebench", lcb_row(private_test_cases="not base64!"), "private_test_cases: neither JSON nor packed"),
    "livecodebench-empty": ("livecodebench", lcb_row(private_test_cases=""), "private_test_cases: is empty"),
    "livecodebench-not-compressed": ("livecodebench", lcb_row(private_test_cases=base64.b64encode(b"xxxxxxxx").decode()), "private_test_cases: neither JSON nor packed"),
    "livecodebench-cut": ("livecodebench", lcb_row(private_test_cases=base64.b64encode(zlib.compress(pickle.dumps("[]"))[:-6]).decode()), "private_test_cases: is cut off"),
    "livecodebench-not-pickled": ("livecodebench", lcb_row(private_test_cases=base64.b64encode(zlib.compress(b"[]")).decode()), "private_test_cases: "),
    "livecodebench-no-name": ("livecodebench", {**lcb_function(), "metadata": "{}"}, "test cases: the function that is called has no name"),
    "livecodebench-mixed": ("livecodebench", lcb_row(private_test_cases=json.dumps([{"input": "1", "output": "1", "testtype": "functional"}])), "test cases: some cases are a program's and some a function's"),
    "livecodebench-case": ("livecodebench", lcb_row(public_test_cases="[7]"), "test cases: must be an object, not int"),
    "livecodebench-half": ("livecodebench", lcb_row(public_test_cases='[{"input": "1", "testtype": "stdin"}]'), "test cases: a case has no input or no output"),
    "livecodebench-kind": ("livecodebench", lcb_row(public_test_cases='[{"input": "1", "output": "1", "testtype": "magic"}]'), "test cases: a case's type must be one of stdin"),
    "livecodebench-arguments": ("livecodebench", {**lcb_function(), "public_test_cases": '[{"input": "[1", "output": "1", "testtype": "functional"}]'}, "test cases: invalid JSON"),
    "primeintellect-language": ("primeintellect", prime_row(verification_info="{'language': 'rust', 'test_cases': []}"), "verification_info.language: rust, not Python"),
    "primeintellect-no-info": ("primeintellect", prime_row(verification_info=""), "verification_info: there is no test"),
    "primeintellect-no-cases": ("primeintellect", prime_row(cases=[]), "verification_info: there is no test"),
    "primeintellect-invalid": ("primeintellect", prime_row(verification_info="{'language': SECRET}"), "verification_info: invalid JSON"),
    "primeintellect-code": ("primeintellect", prime_row(verification_info="__import__('os').getcwd()"), "verification_info: invalid JSON"),
    "primeintellect-empty": ("primeintellect", prime_row(prompt=""), "prompt: is empty"),
    "deepcoder-no-tests": ("deepcoder-taco", deepcoder_row([]), "tests: there is no test"),
    "deepcoder-missing": ("deepcoder-taco", {"problem": "x"}, "tests: there is no test"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "row", "says"), [pytest.param(*each, id=what) for what, each in BAD.items()])
def test_a_bad_row_says_what_is_wrong_with_it(name: str, row: Row, says: str) -> None:
    with pytest.raises(RowFault) as raised:
        task_of(name, row)
    assert str(raised.value).startswith(says)
    assert "SECRET" not in str(raised.value)


def test_the_other_rows_load(tmp_path: Path) -> None:
    bad = [row for name, row, _ in BAD.values() if name == "apps"]
    tasks = load_tasks(f"apps:{written(tmp_path / 'rows.jsonl', [*bad, apps_row()])}")
    assert [task.id for task in tasks] == ["apps/4"]


RAN: list[str] = []


class Runs:
    def __reduce__(self) -> tuple[Any, ...]:
        return RAN.append, ("ran",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_is_read_and_never_run(protocol: int) -> None:
    assert pickled_text(pickle.dumps("[ü\n☃]", protocol), "x") == "[ü\n☃]"
    for value in (Runs(), ["[]"], b"[]", 7, None, {"a": "b"}, ("a", "b")):
        with pytest.raises(RowFault, match=r"^x: the pickle holds"):
            pickled_text(pickle.dumps(value, protocol), "x")
    assert RAN == []


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x80\x04X\xff\xff\xff\xffabc.", b"\x80\x04\x8c\x01a", b"(.", b"Va\n"])
def test_what_is_no_pickle(data: bytes) -> None:
    with pytest.raises(RowFault, match=r"^x: "):
        pickled_text(data, "x")


def test_what_unpacks_to_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codeenv.sources.sets.livecodebench.MOST_BYTES", 1 << 20)
    with pytest.raises(RowFault, match=r"^private_test_cases: more than 1 MiB when unpacked"):
        task_of(
            "livecodebench",
            lcb_row(private_test_cases=packed([{"input": "0" * (2 << 20), "output": "", "testtype": "stdin"}])),
        )


@pytest.mark.parametrize(
    "info",
    [
        {"language": "python", "test_cases": [CALL]},
        {"language": "python", "test_cases": [{**CALL, "input": "[[1, 2]]", "output": "[2, 4]"}]},
        {"test_cases": json.dumps({"fn_name": "twice", "inputs": [[[1, 2]]], "outputs": [[[2, 4]]]})},
        {"fn_name": "twice", "test_cases": json.dumps({"inputs": [[[1, 2]]], "outputs": [[2, 4]]})},
        {"dataset_type": "primeintellect", "ground_truth": json.dumps([CALL])},
    ],
    ids=["cases", "cases-as-text", "table", "table-with-the-name-apart", "ground-truth"],
)
@pytest.mark.parametrize("write", [json.dumps, str, dict], ids=["json", "repr", "structured"])
def test_the_forms_of_verification_info(info: Row, write: Any) -> None:
    task = task_of("primeintellect", prime_row(verification_info=write(info), gold_standard_solution=TWICE))
    (case,) = json.loads(task.tests["cases.json"])
    assert case[0] == [[1, 2]]
    assert [2, 4] in case[1]
    assert task.metadata["entry_point"] == "twice"
