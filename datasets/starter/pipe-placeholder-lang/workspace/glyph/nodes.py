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
