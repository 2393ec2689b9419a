"""The public task sets, by name. Each module maps the schema of one family of sets and lists them as `SETS`."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from codeenv.sources.rows import PublicSet

MODULES = (
    "apps",
    "bigcodebench",
    "codecontests",
    "deepcoder",
    "exercism",
    "harbor",
    "honepad",
    "humaneval",
    "livecodebench",
    "mbpp",
    "primeintellect",
)


@cache
def public_sets() -> dict[str, PublicSet]:
    """Every public set by name."""
    modules = [import_module(f"codeenv.sources.sets.{name}") for name in MODULES]
    return {entry.name: entry for module in modules for entry in module.SETS}
