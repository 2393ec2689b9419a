"""Mutants: a reference with one small mistake in each, which its tests are there to see. A mutant can mean the same as
the reference in spite of it: how many fail is a figure, not a verdict."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any, cast

from codeenv.syntax import parse

OPERATORS: Mapping[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Add,), ast.Div: (ast.FloorDiv, ast.Mult),
    ast.FloorDiv: (ast.Div,), ast.Mod: (ast.FloorDiv,), ast.Pow: (ast.Mult,), ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,), ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,), ast.BitXor: (ast.BitOr,),
    ast.And: (ast.Or,), ast.Or: (ast.And,),
}  # fmt: skip
COMPARISONS: Mapping[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
CALLS = {"max": "min", "min": "max", "any": "all", "all": "any"} | dict.fromkeys(
    ("abs", "float", "int", "len", "list", "reversed", "round", "set", "sorted", "str", "sum", "tuple"), ""
)
"""Builtin functions, and which other one stands for each; empty: its first argument does."""
KINDS = ("operator", "comparison", "constant", "off by one", "branches", "dropped")
NOT_MUTATED = ("annotation", "returns", "decorator_list", "type_params")
LEFT = (ast.JoinedStr, ast.Import, ast.ImportFrom, ast.pattern)
DROPPED = (ast.AugAssign, ast.Expr, ast.Continue, ast.Break, ast.Delete, ast.Raise)


@dataclass(frozen=True)
class Mutant:
    """`name` says what was changed and where; `files` is the whole solution with it."""

    name: str
    files: Mapping[str, bytes]


@dataclass(frozen=True)
class _Change:
    kind: str
    path: str
    line: int
    holder: ast.AST
    field: str
    place: int | None
    new: ast.AST


def mutants(
    solution: Mapping[str, bytes], files: Mapping[str, bytes], *, count: int, seed: int | str = 0
) -> list[Mutant]:
    """At most `count` different mutants of a solution's Python files, of as many kinds as there are; the same ones for
    the same seed. What the policy was given (`files`) is not changed, nor is a mutant given that is the reference."""
    dice = random.Random(f"mutants {seed}")
    trees = {path: tree for path, data in sorted(solution.items()) if (tree := _parsed(path, data)) is not None}
    by_kind: dict[str, list[_Change]] = {kind: [] for kind in KINDS}
    for path, tree in trees.items():
        start = _parsed(path, files.get(path, b""))
        given = {_dump(part) for part in ast.walk(start) if isinstance(part, ast.stmt)} if start else set[str]()
        for change in _changes(path, tree, given):
            by_kind[change.kind].append(change)
    for found in by_kind.values():
        dice.shuffle(found)
    order = dice.sample(KINDS, len(KINDS))
    turns = chain.from_iterable(zip_longest(*(by_kind[kind] for kind in order)))
    seen = {path: {_dump(tree)} for path, tree in trees.items()}
    made: list[Mutant] = []
    for change in turns:
        if len(made) == count:
            break
        if change is None:
            continue
        text = _changed(trees[change.path], change)
        same = _dump(parse(text))
        if same not in seen[change.path]:
            seen[change.path].add(same)
            name = f"{change.kind} in {change.path}:{change.line} #{len(made) + 1}"
            made.append(Mutant(name, {**solution, change.path: text.encode("utf-8", "surrogatepass")}))
    return made


def _parsed(path: str, data: bytes) -> ast.Module | None:
    try:
        return parse(data) if path.endswith(".py") else None
    except (SyntaxError, ValueError, RecursionError):
        return None


def _dump(node: ast.AST) -> str:
    return ast.dump(node)


def _changed(tree: ast.Module, change: _Change) -> str:
    """The source with this change; the tree is as before afterwards."""
    if change.place is None:
        old = getattr(change.holder, change.field)
        setattr(change.holder, change.field, change.new)
    else:
        row = cast("list[Any]", getattr(change.holder, change.field))
        old, row[change.place] = row[change.place], change.new
    try:
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    finally:
        if change.place is None:
            setattr(change.holder, change.field, old)
        else:
            getattr(change.holder, change.field)[change.place] = old


def _changes(path: str, holder: ast.AST, given: set[str], line: int = 1) -> Iterator[_Change]:
    """Every change below `holder`, in the order of the source."""
    line = getattr(holder, "lineno", line)
    for field, value in ast.iter_fields(holder):
        if field in NOT_MUTATED:
            continue
        row = cast("Sequence[object]", value) if isinstance(value, list) else [value]
        for place, child in enumerate(row):
            if not isinstance(child, ast.AST) or isinstance(child, LEFT):
                continue
            if isinstance(child, ast.stmt) and (_is_text(child) or _dump(child) in given):
                continue
            for kind, new in _replacements(holder, field, child):
                at = getattr(child, "lineno", line)
                yield _Change(kind, path, at, holder, field, place if isinstance(value, list) else None, new)
            yield from _changes(path, child, given, line)


def _replacements(holder: ast.AST, field: str, child: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    for table, kind in ((OPERATORS, "operator"), (COMPARISONS, "comparison")):
        yield from ((kind, other()) for other in table.get(type(child), ()))
    match child:
        case ast.Constant(value=bool(value)):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield from (("constant", ast.Constant(value + more)) for more in (1, -1))
        case ast.Constant(value=float(value)):
            yield "constant", ast.Constant(value + 1)
        case ast.Constant(value=str(value)):
            yield "constant", ast.Constant("" if value else "?")
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield "operator", operand
        case ast.If(test=test, body=body, orelse=orelse):
            yield "branches", ast.If(test=_negated(test), body=body, orelse=orelse)
        case ast.IfExp(test=test, body=one, orelse=other):
            yield "branches", ast.IfExp(test=test, body=other, orelse=one)
        case ast.comprehension(target=target, iter=source, ifs=[test, *others], is_async=is_async):
            negated = [_negated(test), *others]
            yield "branches", ast.comprehension(target=target, iter=source, ifs=negated, is_async=is_async)
        case ast.Call(func=ast.Name(id=name), args=[first, *_]) if name in CALLS:
            if name == "len":
                yield "off by one", _shifted(child, -1)
            if other := CALLS[name]:
                yield "operator", ast.Call(ast.Name(other), child.args, child.keywords)
            elif not isinstance(first, ast.Starred | ast.GeneratorExp):
                yield "dropped", first
        case _:
            pass
    is_bound = isinstance(holder, ast.Slice) or (isinstance(holder, ast.Subscript) and field == "slice")
    is_range = isinstance(holder, ast.Call) and isinstance(holder.func, ast.Name) and holder.func.id == "range"
    if isinstance(child, ast.expr) and not isinstance(child, ast.Slice | ast.Tuple | ast.Constant):
        if (is_bound and isinstance(getattr(holder, "ctx", ast.Load()), ast.Load)) or (is_range and field == "args"):
            yield from (("off by one", _shifted(child, more)) for more in (1, -1))
    elif isinstance(child, ast.Constant) and isinstance(child.value, int) and (is_bound or is_range):
        yield from (("off by one", ast.Constant(child.value + more)) for more in (1, -1))
    if isinstance(child, DROPPED) or (isinstance(child, ast.Assign) and isinstance(child.targets[0], ast.Subscript)):
        yield "dropped", ast.Pass()
    elif isinstance(child, ast.Return) and child.value is not None:
        yield "dropped", ast.Return(value=None)


def _is_text(statement: ast.stmt) -> bool:
    """A docstring, or a comment written as one."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _negated(test: ast.expr) -> ast.expr:
    return (
        test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else ast.UnaryOp(ast.Not(), test)
    )


def _shifted(value: ast.expr, more: int) -> ast.expr:
    return ast.BinOp(value, ast.Add() if more > 0 else ast.Sub(), ast.Constant(abs(more)))
