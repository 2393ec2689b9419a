"""All checks, in the order in which they run: what is simple first."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

TOPICS = (
    "commands",
    "input",
    "output",
    "endings",
    "concurrency",
    "processes",
    "files",
    "listings",
    "archives",
    "limits",
    "isolation",
    "life",
    "specs",
)  # fmt: skip
"""A module of this package each."""


@dataclass(frozen=True)
class Check:
    """One promise and how to see whether a backend keeps it. `run` takes what `needs` names, of `box` (one that other
    checks use too), `provider` and `spec` (for boxes of its own). It returns when the promise is kept and raises
    `NotPromised` where there is none; any other exception is a failure."""

    name: str
    topic: str
    promise: str
    needs: tuple[str, ...]
    run: Callable[..., Awaitable[None]]

    @property
    def id(self) -> str:
        return f"{self.topic}.{self.name}"


def checks() -> list[Check]:
    """Every check there is."""
    return [check for topic in TOPICS for check in _of(topic)]


def _of(topic: str) -> list[Check]:
    module = import_module(f"codeenv.sandbox.conformance.{topic}")
    found: list[Check] = []
    for name, value in vars(module).items():
        if name.startswith("check_"):
            function: Callable[..., Any] = value
            needs = tuple(inspect.signature(function).parameters)
            found.append(Check(name.removeprefix("check_"), topic, inspect.getdoc(function) or "", needs, function))
    return found
