"""BigCodeBench: a function that calls libraries, from its docstring (complete) or from a text (instruct); the tests
are a `unittest.TestCase`.

The set's own harness runs solution and tests as one module. Here the tests take all public names of the solution's,
`os` and `sys`. Most of them patch what the solution calls, look at files that it wrote, or compare objects of a
library: they need its process, and with it the `pytest` grader. Tests of plain values, of a solution that needs no
package, go to `functions`.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable, Iterator
from functools import partial

from codeenv.graders import FunctionsGrader, PytestGrader
from codeenv.sources.rows import Hub, PublicSet, Row, RowFault, identifier, text_of
from codeenv.syntax import parse
from codeenv.task import Answer, Task

FILE = "solution.py"
TIMEOUT = 240.0  # seconds for all tests, as in the set's own harness
PACKAGES = {
    "Crypto": "pycryptodome",
    "Levenshtein": "python-Levenshtein",
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "flask_login": "flask-login",
    "flask_mail": "flask-mail",
    "flask_restful": "flask-restful",
    "flask_wtf": "flask-wtf",
    "mpl_toolkits": "matplotlib",
    "pkg_resources": "setuptools",
    "python_http_client": "python-http-client",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
"""By the name that is imported, where the package has another."""
PLAIN = frozenset({
    "base64", "bisect", "collections", "datetime", "decimal", "fractions", "functools", "hashlib", "heapq", "itertools",
    "json", "math", "operator", "re", "statistics", "string", "typing", "unittest",
})  # fmt: skip
"""What tests of plain values import. Not `random`: to seed it, they need the solution's process."""
REACHING = frozenset({"open", "input", "exec", "eval", "globals", "mock", "patch"})
"""Names that a test uses which reaches beyond the values of a call."""


def to_task(row: Row, *, instruct: bool = False) -> Task:
    prompt, entry = text_of(row, "complete_prompt"), text_of(row, "entry_point")
    solution = prompt + text_of(row, "canonical_solution")
    test = _tree(text_of(row, "test"), "test")
    imported = {*_libraries(row), *_imports(_tree(solution, "canonical_solution")), *_imports(test)}
    packages = tuple(sorted({PACKAGES.get(name, name) for name in imported - sys.stdlib_module_names}))
    plain = not packages and _is_plain(test, entry)
    names = f"from solution import {entry}" if plain else f"from solution import *\nfrom solution import {entry}"
    head, stub, said = prompt, prompt, f"Complete `{entry}` in `{FILE}`."
    if instruct:
        head = text_of(row, "code_prompt").rstrip() + "\n"
        stub, said = (
            f"{head}    raise NotImplementedError\n",
            f"{text_of(row, 'instruct_prompt')}\n\nWrite it to `{FILE}`.",
        )
    return Task(
        id=identifier(text_of(row, "task_id")),
        instruction=said,
        files={FILE: stub.encode()},
        tests={"test_solution.py": f"import os\nimport sys\n\n{names}\n\n{row['test']}\n".encode()},
        solution={FILE: solution.encode()},
        family="function",
        answer=Answer(path=FILE, entry_point=entry, head=head),
        grader=FunctionsGrader(timeout=TIMEOUT) if plain else PytestGrader(timeout=TIMEOUT),
        packages=packages,
        metadata={"source": "bigcodebench", "entry_point": entry, "tags": sorted(_libraries(row))},
    )


def _libraries(row: Row) -> list[str]:
    """`libs` is a list, written as Python writes it."""
    try:
        found = ast.literal_eval(text_of(row, "libs"))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, RowFault):
            raise
        raise RowFault("libs: is not a list as Python writes it") from error
    if not isinstance(found, list) or not all(isinstance(name, str) and name for name in found):  # pyright: ignore[reportUnknownVariableType]
        raise RowFault("libs: must be a list of names")
    return [str(name).partition(".")[0] for name in found]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _tree(code: str, column: str) -> ast.Module:
    try:
        return parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise RowFault(f"{column}: is no Python") from error


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _is_plain(test: ast.Module, entry: str) -> bool:
    """Whether the tests only call the function and look at values: all names are their own, Python's or the
    function's."""
    names = [node for node in ast.walk(test) if isinstance(node, ast.Name)]
    known = {node.id for node in names if not isinstance(node.ctx, ast.Load)} | {entry, *dir(builtins)}
    attributes = {node.attr for node in ast.walk(test) if isinstance(node, ast.Attribute)}
    for node in ast.walk(test):
        match node:
            case ast.Import() | ast.ImportFrom():
                known |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
                attributes |= {part for alias in node.names for part in alias.name.split(".")}
            case ast.FunctionDef() | ast.ClassDef():
                known.add(node.name)
            case ast.arg():
                known.add(node.arg)
            case ast.ExceptHandler():
                known.add(node.name or "")
            case _:
                pass
    used = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    return set(_imports(test)) <= PLAIN and used <= known and not (used | attributes) & REACHING


SPLITS = {"eval": "v0.1.4"}
FULL = Hub("bigcode/bigcodebench", "b74c0d0bf70d2c0bc459be537895cca163007f1a")
HARD = Hub("bigcode/bigcodebench-hard", "298d2cc7b96612e15e47313c3603ee124cee0c1f")
INSTRUCT: Callable[[Row], Task] = partial(to_task, instruct=True)

SETS = tuple(
    PublicSet(name=name, title=title, licence="Apache-2.0", to_task=made, hub=hub, splits=SPLITS)
    for name, title, made, hub in (
        ("bigcodebench", "BigCodeBench, complete", to_task, FULL),
        ("bigcodebench-instruct", "BigCodeBench, instruct", INSTRUCT, FULL),
        ("bigcodebench-hard", "BigCodeBench Hard, complete", to_task, HARD),
        ("bigcodebench-hard-instruct", "BigCodeBench Hard, instruct", INSTRUCT, HARD),
    )
)
