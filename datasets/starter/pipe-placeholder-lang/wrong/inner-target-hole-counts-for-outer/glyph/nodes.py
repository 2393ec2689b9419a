"""The syntax tree."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Literal:
    value: Any  # int or str


@dataclass(frozen=True)
class Name:
    id: str


@dataclass(frozen=True)
class ListOf:
    items: tuple


@dataclass(frozen=True)
class Negate:
    operand: Any


@dataclass(frozen=True)
class Binary:
    op: str  # one of + - *
    left: Any
    right: Any


@dataclass(frozen=True)
class Call:
    func: str
    args: tuple


@dataclass(frozen=True)
class Pipe:
    left: Any
    target: Any


@dataclass(frozen=True)
class Hole:
    """The placeholder of the innermost pipe in whose target it stands."""


def has_hole(node):
    """Whether the node has a placeholder that belongs to a pipe around it."""
    match node:
        case Hole():
            return True
        case ListOf(items):
            return any(map(has_hole, items))
        case Call(_, args):
            return any(map(has_hole, args))
        case Negate(operand):
            return has_hole(operand)
        case Binary(_, left, right):
            return has_hole(left) or has_hole(right)
        case Pipe(left, target):
            return has_hole(left) or has_hole(target)
    return False
