"""What a piece of Python is, and how it goes together with the code that a policy was shown. Nothing is run."""

from __future__ import annotations

import ast
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from functools import lru_cache

from codeenv.syntax import parse
from codeenv.task import Answer

PARSE_LIMIT = 100_000  # characters of code that is looked into
TRIMMINGS = 20  # times that what follows the first fault is cut off
STEP = "    "


@lru_cache(maxsize=4)  # one block is asked several things
def _parse(code: str) -> ast.Module | SyntaxError | None:
    """None where there is no saying."""
    if len(code) > PARSE_LIMIT:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return parse(code)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError):
        return None


def parsed(code: str) -> ast.Module | None:
    """The code's tree, whether or not it is indented as a whole; None when it is no Python."""
    for text in dict.fromkeys((code, _dedented(code))):
        if isinstance(tree := _parse(text), ast.Module):
            return tree
    return None


def settled(code: str) -> str:
    """The code without an indentation that it has as a whole, where it is Python only so."""
    return code if isinstance(_parse(code), ast.Module) or not parsed(code) else _dedented(code)


def ends_in_a_string(code: str) -> bool:
    """Whether a string of three quotes is open at the code's end."""
    fault = _parse(_dedented(code))
    return isinstance(fault, SyntaxError) and "unterminated triple-quoted" in (fault.msg or "")


def trimmed(code: str) -> str:
    """The code up to where it stops being Python; empty when it is none from the start."""
    for _ in range(TRIMMINGS):
        fault = _parse(code)
        if not isinstance(fault, SyntaxError):
            return code if fault else ""
        lines = code.split("\n")
        code = "\n".join(lines[: min((fault.lineno or 1), len(lines)) - 1])
    return ""


def does_something(code: str) -> bool:
    """Whether it is Python, and more than a word, a number or the like, as an output is."""
    tree = parsed(code)
    return tree is not None and any(
        not isinstance(node, ast.Expr) or isinstance(node.value, ast.Call | ast.Await) for node in tree.body
    )


def is_body(code: str, *, sure: bool = False) -> bool:
    """Whether it looks like the inside of a function: it returns, raises or yields, or, where it is `sure` that it is
    Python, defines nothing."""
    tree = parsed(code) or parsed(f"if 1:\n{_from_second_line(code)}")
    if tree is None:
        return False
    inside = [*_inside(tree.body)]
    if any(
        isinstance(node, ast.Return | ast.Raise) or isinstance(_value(node), ast.Yield | ast.YieldFrom)
        for node in inside
    ):
        return True
    return sure and not any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) for node in inside)


def _value(node: ast.stmt) -> ast.expr | None:
    return node.value if isinstance(node, ast.Expr | ast.Assign) else None


def binds(code: str) -> set[str]:
    """The names that it defines at its top level."""
    tree = parsed(code)
    return set(_names(tree.body)) if tree else set()


def with_head(code: str, answer: Answer) -> str:
    """The code, behind what stands before the asked-for definition in `answer.head` and is not in the code itself."""
    code = settled(code)
    tree = _closed(answer.head)
    own = parsed(code)
    if tree is None or own is None:
        return code
    bound, there = set(_names(own.body)), {ast.dump(node) for node in own.body}
    given = [node for node in tree.body if answer.entry_point not in _names([node]) and not _is_future(node)]
    # A call of the head's, that raises the recursion limit, say; or all names of a module.
    acts = [
        node for node in given if set(_names([node])) <= {"*"} and not _is_text(node) and ast.dump(node) not in there
    ]
    lines = _closing(answer.head).split("\n")
    missing: list[str] = []
    for node in given:
        if node in acts or set(_names([node])) - bound - {"*"} or (acts and isinstance(node, ast.Import)):
            first = min([node.lineno, *(part.lineno for part in getattr(node, "decorator_list", ()))])
            missing += lines[first - 1 : node.end_lineno]
    if not missing:
        return code
    mine = code.split("\n")
    future = max((node.end_lineno or 0 for node in own.body if _is_future(node)), default=0)
    return "\n".join([*mine[:future], *missing, "", "", *mine[future:]])


def completed(code: str, answer: Answer) -> str | None:
    """`answer.head` with the code as the inside of the function that it ends with; None when that is no Python."""
    head = answer.head.rstrip()
    tree = _closed(head)
    if not head or tree is None:
        return None
    open_function = _last_function(tree)
    if open_function is None:
        return None
    inside = head.split("\n")[open_function.body[-1].lineno - 1 :][:1] or [_closing(head).rpartition("\n")[2]]
    indent = inside[0][: len(inside[0]) - len(inside[0].lstrip())]
    first, rest = code.lstrip("\n").partition("\n")[::2]
    tries = (
        code,
        textwrap.indent(_dedented(code), indent),
        textwrap.indent(f"{first.strip()}\n{textwrap.dedent(rest)}", indent),
        f"{indent}{first.strip()}\n{rest}",
    )
    length = head.count("\n") + 1
    for text in tries:
        whole = f"{head}\n{text}"
        made = _parse(whole)
        if isinstance(made, ast.Module):
            function = _last_function(made, open_function.lineno)
            if function is not None and (function.end_lineno or 0) > length and answer.entry_point in _names(made.body):
                return whole
    return None


def as_class(code: str, answer: Answer) -> str | None:
    """The code, and the class that is asked for made of the methods that it defines as functions; None when it does
    not define those that `answer.head` has."""
    tree, head = parsed(code), _closed(answer.head)
    if tree is None or head is None:
        return None
    asked = next(
        (node for node in head.body if isinstance(node, ast.ClassDef) and node.name == answer.entry_point), None
    )
    if asked is None:
        return None
    given = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    methods = [node.name for node in asked.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    if not methods or not given.keys() >= set(methods):
        return None
    lines = [f"{STEP}{name} = {name if _takes_self(given[name]) else f'staticmethod({name})'}" for name in methods]
    return with_head("\n".join([settled(code).rstrip("\n"), "", "", f"class {asked.name}:", *lines]), answer)


def _takes_self(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    arguments = [*function.args.posonlyargs, *function.args.args]
    return bool(arguments) and arguments[0].arg == "self"


def _closing(head: str) -> str:
    """The head as Python: one that ends with a signature gets a body."""
    if isinstance(_parse(head), ast.Module):
        return head
    head = head.rstrip()
    last = head.rpartition("\n")[2]
    return f"{head}\n{last[: len(last) - len(last.lstrip())]}{STEP}pass"


def _closed(head: str) -> ast.Module | None:
    tree = _parse(_closing(head))
    return tree if isinstance(tree, ast.Module) else None


def _last_function(tree: ast.Module, line: int = 0) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The one that begins last, or the one at that line."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    found = [node for node in functions if not line or node.lineno == line]
    return max(found, key=lambda node: node.lineno, default=None)


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _dedented(code: str) -> str:
    """Without an indentation that all lines have. Text that begins at the margin stays as it is, blank lines too."""
    return textwrap.dedent(code) if code.lstrip("\n")[:1] in (" ", "\t") else code


def _from_second_line(code: str) -> str:
    first, rest = code.lstrip("\n").partition("\n")[::2]
    return textwrap.indent(f"{first.strip()}\n{textwrap.dedent(rest)}", STEP)


def _inside(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """These statements and those within them, but for those of functions and classes."""
    for node in body:
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for field in ("body", "orelse", "finalbody"):
                yield from _inside(getattr(node, field, []))
            for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                yield from _inside(part.body)


def _names(body: Sequence[ast.stmt]) -> Iterator[str]:
    for node in _inside(body):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Import() | ast.ImportFrom():
                yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
            case ast.Assign() | ast.AnnAssign():
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    yield from (part.id for part in ast.walk(target) if isinstance(part, ast.Name))
            case _:
                pass
