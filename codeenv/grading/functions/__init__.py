"""The `functions` kind: the tests run in one box, the solution in another, and only plain values go from one to the
other, through us. Nothing that the solution's process does can reach what decides."""

from __future__ import annotations

import ast
import re
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import anyio

from codeenv.graders import FunctionsGrader
from codeenv.grading.boxes import Boxes
from codeenv.grading.functions.box.special import ASKING, PREDICATES
from codeenv.grading.functions.patience import Patience
from codeenv.grading.functions.plain import encode
from codeenv.grading.functions.program import command, program
from codeenv.grading.functions.relay import Frame, Relay
from codeenv.grading.records import Record, expected_tests, results_of
from codeenv.grading.report import Report
from codeenv.grading.together import together
from codeenv.sandbox.api import Sandbox, SandboxError
from codeenv.sandbox.archive import Archive
from codeenv.syntax import parse
from codeenv.task import Task


async def run(task: Task, grader: FunctionsGrader, workspace: Archive, boxes: Boxes) -> Report:
    """:raises SandboxError: the tests' process could not start, or a box was lost."""
    records: list[Record] = []
    reason = ""
    async with _both(boxes, workspace) as (tests_box, solution_box):
        folder = f"{tests_box.scratch}/tests"
        await tests_box.import_(Archive.of(task.tests, dict.fromkeys(task.executable, 0o755)), folder)
        patience = Patience(tests_box, grader.timeout, is_near=boxes.provider.capabilities.shares_host)
        longest = grader.call_timeout * patience.factor
        relay = Relay(solution_box, longest, records.append, patience.called, patience.measure, boxes.fresh_hashes)
        with patience.scope:
            async with (
                relay.open(),
                tests_box.open_process(command("tests", fresh=boxes.fresh_hashes), cwd=folder) as process,
            ):
                await process.send(program("tests"))
                settings = (folder, modules_of(workspace), test_files(task), needs_pytest(task), asked_for(task))
                await process.send(Frame.of(b"S", 1, 0, encode(settings)).raw)
                await relay.run(process)
                if not records or records[-1].kind != "end":
                    done = await process.wait()
                    said = done.stderr[-500:].decode("utf-8", "replace").strip()
                    reason = f"the tests' process ended with exit code {done.exit_code}: {done.notice} {said}"
                    if not records:
                        raise SandboxError(reason, stage="start")
        if patience.scope.cancelled_caught:
            patience.check()
            reason = f"the tests did not end within {grader.timeout:g} s"
    expected = grader.expected or expected_tests(task.tests)
    results = results_of(records, expected, reason)
    if not results:
        reason = (
            reason or "; ".join(record.message for record in records if record.kind == "broken") or "no test was found"
        )
    solved = bool(results) and all(result.passed for result in results)
    return Report(0 if solved else 1, results, reason)


@asynccontextmanager
async def _both(boxes: Boxes, workspace: Archive) -> AsyncGenerator[tuple[Sandbox, Sandbox]]:
    """The tests' box and the solution's, opened at the same time, and closed."""
    stacks = AsyncExitStack(), AsyncExitStack()
    contents = None, workspace
    try:
        tests, solution = await together(
            *(
                partial(stack.enter_async_context, boxes.open(held))
                for stack, held in zip(stacks, contents, strict=True)
            )
        )
        yield tests, solution
    finally:
        with anyio.CancelScope(shield=True):  # a cancelled task would not even begin
            await together(*(stack.aclose for stack in stacks))


def modules_of(workspace: Archive) -> tuple[str, ...]:
    """The top-level modules that a workspace offers: its Python files, and its directories that hold some."""
    names = (re.match(r"([^\W\d]\w*)(?:/.*|\.cpython-[\w-]+|\.abi3)?\.(?:py|so)$", path) for path in workspace.entries)
    return tuple(dict.fromkeys(match[1] for match in names if match))


def asked_for(task: Task) -> dict[str, tuple[str, ...]]:
    """By class, which operators and predicates an object of it may answer for itself on a value of the tests': those
    that the class of that name has in the task's own files or in the reference, where they are part of the work. `*`:
    all, as it derives from a class that stands elsewhere."""
    found: dict[str, set[str]] = {}
    bases: dict[str, set[str]] = {}
    for path, data in [*task.files.items(), *(task.solution or {}).items()]:
        try:
            tree = parse(data) if path.endswith(".py") else None
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree) if tree else ():
            if isinstance(node, ast.ClassDef):
                names = {part.name for part in ast.walk(node) if isinstance(part, ast.FunctionDef)}
                names |= {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}  # `__radd__ = __add__`
                found.setdefault(node.name, set()).update(names & {*ASKING, *PREDICATES})
                bases.setdefault(node.name, set()).update(ast.unparse(base).split("[")[0] for base in node.bases)
    for _ in found:  # a chain of bases is no longer than that
        for name, above in bases.items():
            for base in above - {"object", "Protocol", "Generic", "ABC", "abc.ABC", "Exception", "ValueError"}:
                found[name] |= found.get(base.rpartition(".")[2], {"*"})
    return {name: tuple(sorted(names)) for name, names in sorted(found.items()) if names}


def test_files(task: Task) -> tuple[str, ...]:
    """The files that hold tests, in order."""
    return tuple(path for path in sorted(task.tests) if re.search(r"(^|/)(test_[^/]*|[^/]*_test)\.py$", path))


def needs_pytest(task: Task) -> bool:
    """Whether a test file imports pytest or has a test with arguments, which only pytest can give; or there is a
    conftest.py."""
    for path, data in task.tests.items():
        if not path.endswith(".py"):
            continue
        if path.rpartition("/")[2] == "conftest.py":
            return True
        try:
            tree = parse(data)
        except (SyntaxError, ValueError):  # a newer Python's: pytest knows how to say so
            return True
        for node in ast.walk(tree):
            if isinstance(node, ast.Import) and any(alias.name.partition(".")[0] == "pytest" for alias in node.names):
                return True
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in ("pytest", "_pytest"):
                return True
            if isinstance(node, ast.AsyncFunctionDef) and node.name.startswith("test"):
                return True
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test")]
        if any(node.args.args or node.args.kwonlyargs for node in functions):
            return True
    return False
